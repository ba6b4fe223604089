//! The front desk: `cargo xtask check`, `test`, `bench`, `attack`, `demo`, `experiment`, `storage`, `claims`, `weight`. It needs nothing but cargo, but for races and `storage`.

mod claims;
mod cycles;
mod experiment;
mod foreign;
mod long;
mod names;
mod public;
mod rust_text;
mod timings;
mod weight;

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::time::Instant;

const USAGE: &str = "\
cargo xtask <task>

  check       who uses whom, formatting, lints, the documentation and its claims, long files, type names of several types, public items that nobody names
              or that show an engine's types;
              licences where cargo-deny is installed; [--quick]: only what needs no build
  test        every test of the workspace, those in the documentation included
  bench       races against other libraries, in one run (bench/run.sh)
  attack      [--config FILE] [--laps N]: what an analyst could try against a declaration, on rows that are made up
  demo        the ladder on a small built-in table; further arguments go to `whit demo`
  experiment  NAME [--data FOLDER] [--small]: one of examples/, on the data of the folder or on a little that is made up; further
              arguments go to `whit experiment`, and the picture to out/NAME/
  storage     files on S3-compatible storage, against a real server that is installed with pip (xtask/storage/run.sh)
  claims      writes docs/claims.md from the documentation of the mechanisms
  weight      [--build] [--rebuild] [--timings FILE]: size of the release binary, time of a first build and of a change of one line,
              crates compiled, heaviest crates; plainly it builds nothing";

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1);
    let task = arguments.next();
    let rest: Vec<String> = arguments.collect();
    let done = match task.as_deref() {
        Some("check") => check(&rest),
        Some("test") => test(&rest),
        Some("bench") => bench(&rest),
        Some("attack") => attack(&rest),
        Some("demo") => demo(&rest),
        Some("experiment") => experiment::run(&rest),
        Some("storage") => storage(&rest),
        Some("claims") => write_claims(),
        Some("weight") => weight::run(&rest),
        Some("help" | "--help" | "-h") => {
            eprintln!("{USAGE}");
            return ExitCode::SUCCESS;
        }
        Some(other) => {
            eprintln!("error: there is no task `{other}`\n\n{USAGE}");
            return ExitCode::from(2);
        }
        None => {
            eprintln!("{USAGE}");
            return ExitCode::from(2);
        }
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(sentence) => {
            eprintln!("error: {sentence}");
            ExitCode::FAILURE
        }
    }
}

/// The workspace's folder.
fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("xtask lies in the workspace").to_owned()
}

/// The cargo that runs us.
fn cargo() -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.current_dir(root());
    command
}

/// Runs a command to its end, and makes a sentence of it when that is not a good one. Heads of its ledgers are not kept in the user's own state folder.
fn finish(mut command: Command, what: &str) -> Result<(), String> {
    eprintln!("── {what}");
    command.env("WHIT_STATE", "");
    let status = command.status().map_err(|error| format!("{what} could not be started: {error}"))?;
    if status.success() { Ok(()) } else { Err(format!("{what} did not pass ({status})")) }
}

fn check(rest: &[String]) -> Result<(), String> {
    let quick = match rest {
        [] => false,
        [word] if word == "--quick" => true,
        _ => return Err("`check` knows `--quick` and nothing else".into()),
    };
    eprintln!("── who uses whom");
    cycles::check(&root())?;
    let mut format = cargo();
    format.args(["fmt", "--all", "--", "--check"]);
    finish(format, "formatting (repair it with `cargo fmt --all`)")?;
    if !quick {
        let mut lint = cargo();
        lint.args(["clippy", "--workspace", "--all-targets", "--quiet", "--", "-D", "warnings"]);
        finish(lint, "lints")?;
        let mut docs = cargo();
        docs.args(["doc", "--workspace", "--no-deps", "--quiet"]).env("RUSTDOCFLAGS", "-D warnings");
        finish(docs, "documentation")?;
    }
    check_text()?;
    let installed = cargo().args(["deny", "--version"]).stdout(Stdio::null()).stderr(Stdio::null()).status();
    if installed.is_ok_and(|status| status.success()) {
        let mut deny = cargo();
        deny.args(["deny", "--offline", "check", "licenses", "bans", "sources"]);
        finish(deny, "licences and sources of dependencies")?;
    } else {
        eprintln!("── licences and sources of dependencies: skipped, because cargo-deny is not installed");
    }
    Ok(())
}

/// What is found by reading alone. All complaints are shown at once, since nothing of one hides another.
fn check_text() -> Result<(), String> {
    eprintln!("── claims, long files, type names, and public items that nobody names or that show an engine's types");
    let claims = claims::collect(&root())?;
    let page = if std::fs::read_to_string(claims_page()).unwrap_or_default() == claims::page(&claims) {
        Ok(())
    } else {
        Err("docs/claims.md is not what the mechanisms say: run `cargo xtask claims`".to_owned())
    };
    let found = [
        claims::verify(&claims, &root()),
        page,
        long::complain(&long::find(&root())?),
        names::check(&root()),
        public::complain(&public::find(&root())?),
        foreign::complain(&foreign::find(&root())?),
    ];
    let complaints: Vec<String> = found.into_iter().filter_map(Result::err).collect();
    if complaints.is_empty() { Ok(()) } else { Err(complaints.join("\nerror: ")) }
}

fn claims_page() -> PathBuf {
    root().join("docs").join("claims.md")
}

fn write_claims() -> Result<(), String> {
    let claims = claims::collect(&root())?;
    claims::verify(&claims, &root())?;
    std::fs::write(claims_page(), claims::page(&claims))
        .map_err(|error| format!("docs/claims.md could not be written: {error}"))?;
    eprintln!("wrote {} claims into docs/claims.md", claims.len());
    Ok(())
}

/// What cargo's test harnesses counted.
#[derive(Debug, Default, PartialEq, Eq)]
struct Tally {
    harnesses: u64,
    passed: u64,
    failed: u64,
    ignored: u64,
    names: Vec<String>,
}

impl Tally {
    /// Reads one line of a harness: its sum, or a test that failed.
    fn read(&mut self, line: &str) {
        if let Some(sum) = line.strip_prefix("test result: ") {
            let count = |word: &str| {
                let before = sum.split(word).next().filter(|before| before.len() < sum.len())?;
                before.split_whitespace().next_back()?.parse::<u64>().ok()
            };
            self.harnesses += 1;
            self.passed += count(" passed").unwrap_or(0);
            self.failed += count(" failed;").unwrap_or(0);
            self.ignored += count(" ignored").unwrap_or(0);
        } else if let Some(name) = line.strip_prefix("test ").and_then(|rest| rest.strip_suffix(" ... FAILED")) {
            self.names.push(name.to_owned());
        }
    }
}

fn test(rest: &[String]) -> Result<(), String> {
    let start = Instant::now();
    let mut command = cargo();
    command.args(["test", "--workspace", "--no-fail-fast"]).args(rest).stdout(Stdio::piped());
    let mut child = command.spawn().map_err(|error| format!("cargo test could not be started: {error}"))?;
    let mut tally = Tally::default();
    let output = child.stdout.take().expect("the output was asked for");
    for line in BufReader::new(output).split(b'\n') {
        let line = line.map_err(|error| format!("the output of cargo test could not be read: {error}"))?;
        let line = String::from_utf8_lossy(&line);
        tally.read(&line);
        // A log that nobody reads must not stop the tests.
        let _ = writeln!(std::io::stdout(), "{line}");
    }
    let status = child.wait().map_err(|error| format!("cargo test was lost: {error}"))?;
    eprintln!(
        "── {} passed, {} failed, {} ignored in {} harnesses, {} s",
        tally.passed,
        tally.failed,
        tally.ignored,
        tally.harnesses,
        start.elapsed().as_secs()
    );
    for name in &tally.names {
        eprintln!("   failed: {name}");
    }
    if !status.success() {
        return Err(format!("the tests did not pass ({status})"));
    }
    if tally.passed == 0 {
        return Err("no test ran: is the filter right?".into());
    }
    Ok(())
}

/// Files in a bucket against the same files in a folder, with a server that is not ours.
fn storage(rest: &[String]) -> Result<(), String> {
    let mut command = Command::new("bash");
    command.arg(root().join("xtask/storage/run.sh")).args(rest).current_dir(root());
    finish(command, "files on S3-compatible storage")
}

fn bench(rest: &[String]) -> Result<(), String> {
    let folder = root().join("bench");
    let (script, manifest) = (folder.join("run.sh"), folder.join("Cargo.toml"));
    let mut command = if script.is_file() {
        let mut command = Command::new("bash");
        command.arg(script).current_dir(root());
        command
    } else if manifest.is_file() {
        let mut command = cargo();
        command.args(["run", "--release", "--manifest-path"]).arg(manifest).arg("--");
        command
    } else {
        return Err(format!("there is no `{}`, so there is nothing to race", script.display()));
    };
    command.args(rest);
    finish(command, "benchmarks")
}

fn attack(rest: &[String]) -> Result<(), String> {
    // With the whole workspace, so that the build is the one of the tests.
    let mut build = cargo();
    build.args(["build", "--quiet", "--workspace", "--bin", "whit", "--example", "attack"]);
    finish(build, "building the command and its attackers")?;
    let here = std::env::current_exe().map_err(|error| format!("where this program lies is not known: {error}"))?;
    let program = here.with_file_name("examples").join("attack");
    let mut command = Command::new(program);
    command.args(rest);
    finish(command, "attacks")
}

fn demo(rest: &[String]) -> Result<(), String> {
    let mut command = cargo();
    command.args(["run", "--release", "--quiet", "--package", "whit-cli", "--", "demo"]).args(rest);
    finish(command, "the demo")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What `check` finds by reading alone fails every test run too: circles, long files, claims without tests, public items that nobody names.
    #[test]
    fn the_house_is_in_order() {
        cycles::check(&root()).unwrap();
        check_text().unwrap();
    }

    #[test]
    fn a_harness_is_counted_once_and_its_failures_by_name() {
        let mut tally = Tally::default();
        let log = "running 3 tests\n\
                   test a_coin_is_fair ... ok\n\
                   test a_crash_leaves_the_reservation_spent ... FAILED\n\
                   test result: FAILED. 12 passed; 1 failed; 2 ignored; 0 measured; 0 filtered out; finished in 0.01s\n\
                   test result: ok. 5 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s";
        log.lines().for_each(|line| tally.read(line));
        let names = vec!["a_crash_leaves_the_reservation_spent".to_owned()];
        assert_eq!(tally, Tally { harnesses: 2, passed: 17, failed: 1, ignored: 2, names });
    }
}
