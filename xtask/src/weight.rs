//! `cargo xtask weight`: what the command costs to build and to carry, next to what it may cost.
//!
//! Plainly called it builds nothing: it reads what lies in `target/` and what was measured before. `--build` measures a first build and
//! `--rebuild` a change of one line. Like a race it is a report: an aim that is missed says so, and the exit code stays 0.

use crate::timings::{self, Unit};
use crate::{cargo, root};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant, SystemTime};

/// The most that the release binary may have.
const BINARY: f64 = 70e6;
/// The most CPU-seconds of the first `cargo run -- demo`.
const FIRST: f64 = 20.0 * 60.0;
/// The most seconds until a change of one line in the command is built.
const CHANGE: f64 = 30.0;

/// Where measurements are kept, below cargo's folder, and where the first build is made, so that it is a first one.
const FOLDER: &str = "weight";

/// What was asked for.
#[derive(Debug, Default, PartialEq, Eq)]
struct Asked {
    build: bool,
    rebuild: bool,
    timings: Option<PathBuf>,
}

impl Asked {
    fn read(words: &[String]) -> Result<Self, String> {
        let (mut asked, mut words) = (Self::default(), words.iter());
        while let Some(word) = words.next() {
            match word.as_str() {
                "--build" => asked.build = true,
                "--rebuild" => asked.rebuild = true,
                "--timings" => asked.timings = Some(words.next().ok_or("--timings needs a file of cargo's")?.into()),
                other => return Err(format!("`weight` knows --build, --rebuild and --timings FILE, not `{other}`")),
            }
        }
        Ok(asked)
    }
}

pub(crate) fn run(words: &[String]) -> Result<(), String> {
    let asked = Asked::read(words)?;
    let root = root();
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), |folder| root.join(folder));
    let folder = target.join(FOLDER);
    let command = command_crate(&root)?;
    if asked.build {
        first_build(&folder, &command)?;
    }
    if asked.rebuild {
        change_one_line(&root, &folder, &command)?;
    }
    let mut lines = Vec::new();
    lines.push(binary(&target.join("release/whit")));
    lines.push(recorded(&folder.join("first-build"), "first dev build of the command, CPU", FIRST, "--build"));
    lines.push(recorded(&folder.join("one-line"), "change of one line in the command", CHANGE, "--rebuild"));
    for name in BTreeSet::from(["whit", command.as_str()]) {
        lines.push(format!("{:<42}{:>12}", format!("crates compiled for `{name}`"), dependencies(name)?));
    }
    for line in lines {
        eprintln!("{line}");
    }
    let report = asked.timings.or_else(|| newest_timings(&[target.clone(), folder.join("build")]));
    match report {
        Some(file) => heaviest(&file)?,
        None => eprintln!(
            "heaviest to compile: not known; `cargo build --timings` or `cargo xtask weight --build` records it"
        ),
    }
    objects(&target.join("release/deps"))
}

/// The crate that has the command, whichever it is called.
fn command_crate(root: &Path) -> Result<String, String> {
    ["whit-cli", "whit"]
        .into_iter()
        .find(|name| root.join("crates").join(name).join("src/main.rs").is_file())
        .map(str::to_owned)
        .ok_or_else(|| "no crate has the command's `src/main.rs`".to_owned())
}

/// A measured number next to its aim.
fn against_aim(what: &str, measured: &str, holds: bool, aim: &str) -> String {
    format!("{what:<42}{measured:>12}   at most {aim}: {}", if holds { "yes" } else { "NO" })
}

fn binary(file: &Path) -> String {
    match std::fs::metadata(file) {
        Ok(found) => {
            let bytes = found.len() as f64;
            let name = "release binary";
            against_aim(name, &format!("{:.1} MB", bytes / 1e6), bytes <= BINARY, &format!("{:.0} MB", BINARY / 1e6))
        }
        Err(_) => "release binary: there is none; `cargo build --release` makes it".to_owned(),
    }
}

/// What was measured before, or how to measure it.
fn recorded(file: &Path, what: &str, aim: f64, option: &str) -> String {
    let seconds = std::fs::read_to_string(file).ok().and_then(|text| text.trim().parse::<f64>().ok());
    let Some(seconds) = seconds else {
        return format!("{what}: not measured yet; `cargo xtask weight {option}`");
    };
    let age = std::fs::metadata(file).and_then(|found| found.modified()).ok();
    let age = age.and_then(|then| then.elapsed().ok()).unwrap_or_default();
    let measured = if aim >= 600.0 { format!("{:.1} min", seconds / 60.0) } else { format!("{seconds:.1} s") };
    let limit = if aim >= 600.0 { format!("{:.0} min", aim / 60.0) } else { format!("{aim:.0} s") };
    format!("{} (measured {} hours ago)", against_aim(what, &measured, seconds <= aim, &limit), age.as_secs() / 3600)
}

fn write(folder: &Path, name: &str, seconds: f64) -> Result<(), String> {
    std::fs::create_dir_all(folder)
        .and_then(|()| std::fs::write(folder.join(name), format!("{seconds:.2}\n")))
        .map_err(|error| format!("`{}` could not be written: {error}", folder.join(name).display()))
}

/// Builds the command as `cargo run -- demo` does for somebody who has just come, and counts processor time.
fn first_build(folder: &Path, command: &str) -> Result<(), String> {
    let place = folder.join("build");
    let _ = std::fs::remove_dir_all(&place); // it may not be there
    let before = children().ok_or("the processor time of children is read from /proc/self/stat, which is not here")?;
    let mut build = cargo();
    build.args(["build", "--timings", "--package", command, "--bin", "whit", "--target-dir"]).arg(&place);
    crate::finish(build, "a first build of the command, into a folder of its own")?;
    let spent = children().unwrap_or(before).saturating_sub(before);
    write(folder, "first-build", spent.as_secs_f64())
}

/// The processor time of all children that ended, by Linux' own count of hundredths.
fn children() -> Option<Duration> {
    ticks(&std::fs::read_to_string("/proc/self/stat").ok()?).map(|hundredths| Duration::from_millis(hundredths * 10))
}

/// The time of ended children, in user and in kernel mode, from a line of `/proc/PID/stat`. The program's name stands in brackets and may
/// have blanks, so fields are counted from behind it.
fn ticks(stat: &str) -> Option<u64> {
    let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_whitespace().collect();
    Some(fields.get(13)?.parse::<u64>().ok()? + fields.get(14)?.parse::<u64>().ok()?)
}

/// Builds, adds one line to the command, builds again with a clock, and takes the line away.
fn change_one_line(root: &Path, folder: &Path, command: &str) -> Result<(), String> {
    let file = root.join("crates").join(command).join("src/main.rs");
    let source = crate::claims::text(&file)?;
    let build = || {
        let mut build = cargo();
        build.args(["build", "--package", command, "--bin", "whit"]);
        build
    };
    crate::finish(build(), "a build of the command, to begin with")?;
    // A static that must be kept, and another one each time: a line that the compiler would drop changes nothing.
    let line = format!("#[used]\nstatic WEIGHED: u32 = {};\n", std::process::id());
    let fail = |error: std::io::Error| format!("`{}` could not be written: {error}", file.display());
    std::fs::write(&file, format!("{source}\n{line}")).map_err(fail)?;
    let start = Instant::now();
    let done = crate::finish(build(), &format!("the same with one line more in {}", file.display()));
    let seconds = start.elapsed().as_secs_f64();
    std::fs::write(&file, source).map_err(fail)?;
    done?;
    write(folder, "one-line", seconds)
}

/// How many crates a package compiles, itself included: build scripts and macros too, tests not.
fn dependencies(package: &str) -> Result<String, String> {
    let mut tree = cargo();
    tree.args(["tree", "--offline", "--package", package, "--edges", "normal,build", "--prefix", "none"]);
    let done =
        tree.stderr(Stdio::null()).output().map_err(|error| format!("cargo tree could not be started: {error}"))?;
    if !done.status.success() {
        return Ok("not known".to_owned());
    }
    Ok(distinct(&String::from_utf8_lossy(&done.stdout)).to_string())
}

/// The number of different packages in what `cargo tree --prefix none` prints.
fn distinct(tree: &str) -> usize {
    let packages = tree.lines().filter_map(|line| {
        let mut words = line.split_whitespace();
        Some((words.next()?, words.next()?))
    });
    packages.collect::<BTreeSet<_>>().len()
}

/// The newest report of `cargo build --timings` under some folders of cargo's.
fn newest_timings(targets: &[PathBuf]) -> Option<PathBuf> {
    let reports = targets.iter().map(|target| target.join("cargo-timings").join("cargo-timing.html"));
    reports.filter(|file| file.is_file()).max_by_key(|file| file.metadata().and_then(|found| found.modified()).ok())
}

fn heaviest(file: &Path) -> Result<(), String> {
    let units = timings::read(&crate::claims::text(file)?)?;
    let sum: f64 = units.iter().map(|unit| unit.seconds).sum();
    eprintln!(
        "\nheaviest to compile, of {} units and {:.1} minutes of compilers ({})",
        units.len(),
        sum / 60.0,
        file.display()
    );
    for Unit { name, seconds } in timings::by_crate(&units).into_iter().take(15) {
        eprintln!("  {seconds:>7.1} s  {:>4.1} %  {name}", 100.0 * seconds / sum.max(f64::MIN_POSITIVE));
    }
    Ok(())
}

/// Tells how much object code each crate has before linking, the newest of each name.
fn objects(folder: &Path) -> Result<(), String> {
    let Ok(entries) = std::fs::read_dir(folder) else { return Ok(()) };
    let mut sizes = std::collections::BTreeMap::new();
    for path in entries.flatten().map(|entry| entry.path()) {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let Some(name) = name.strip_prefix("lib").and_then(|name| name.strip_suffix(".rlib")) else { continue };
        let name = name.rsplit_once('-').map_or(name, |(name, _)| name).to_owned();
        let made = path.metadata().and_then(|found| found.modified()).unwrap_or(SystemTime::UNIX_EPOCH);
        let bytes = std::fs::read(&path).map_err(|error| format!("`{}` could not be read: {error}", path.display()))?;
        let found = (made, code_in(&bytes));
        let kept = sizes.entry(name).or_insert(found);
        if kept.0 < found.0 {
            *kept = found;
        }
    }
    let mut sizes: Vec<_> = sizes.into_iter().map(|(name, (_, bytes))| (bytes, name)).collect();
    sizes.sort_unstable_by(|a, b| b.cmp(a));
    eprintln!("\nobject code of release, before the linker leaves out what nobody calls");
    for (bytes, name) in sizes.into_iter().take(15) {
        eprintln!("  {:>7.1} MB  {name}", bytes as f64 / 1e6);
    }
    Ok(())
}

/// The bytes of the object files in an archive. An archive is a line of eight bytes and then members, each with a head of 60 bytes: its
/// name in the first 16, its length in ten figures from the 49th on; members begin at even places.
fn code_in(archive: &[u8]) -> u64 {
    let (mut at, mut names, mut sum): (usize, &[u8], u64) = (8, &[], 0);
    if !archive.starts_with(b"!<arch>\n") {
        return 0;
    }
    while let Some(head) = archive.get(at..at + 60) {
        let name = String::from_utf8_lossy(&head[..16]).trim_end().to_owned();
        let Ok(length) = String::from_utf8_lossy(&head[48..58]).trim_end().parse::<usize>() else { break };
        let body = archive.get(at + 60..at + 60 + length).unwrap_or_default();
        if name == "//" {
            names = body; // names that are longer than 15 bytes
        }
        // A long name is known by where it begins among those.
        let long =
            name.strip_prefix('/').and_then(|from| from.parse::<usize>().ok()).and_then(|from| names.get(from..));
        let long = long.map(|rest| rest.split(|&byte| byte == b'/').next().unwrap_or_default());
        let is_object = long.map_or_else(
            || Path::new(name.trim_end_matches('/')).extension().is_some_and(|kind| kind == "o"),
            |name| name.ends_with(b".o"),
        );
        sum += if is_object { length as u64 } else { 0 };
        at += 60 + length + length % 2;
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_three_and_no_others() {
        let words = |text: &str| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
        assert_eq!(Asked::read(&[]), Ok(Asked::default()));
        let asked = Asked::read(&words("--rebuild --timings t.html")).unwrap();
        assert_eq!(asked, Asked { build: false, rebuild: true, timings: Some("t.html".into()) });
        assert!(Asked::read(&words("--timings")).is_err() && Asked::read(&words("--all")).is_err());
    }

    #[test]
    fn packages_of_a_tree_are_counted_once() {
        let tree = "whit v0.1.0 (/somewhere)\nserde v1.0.1\nsyn v2.0.0 (proc-macro)\nserde v1.0.1 (*)\nsyn v1.0.0\n\n";
        assert_eq!(distinct(tree), 4);
    }

    #[test]
    fn time_of_children_stands_behind_a_name_with_blanks() {
        let stat = "42 (a (b) c) S 1 2 3 4 5 6 7 8 9 10 11 12 700 55 20 0 1 0 9 0";
        assert_eq!(ticks(stat), Some(755));
        assert_eq!(ticks("no such line"), None);
    }

    #[test]
    fn only_objects_of_an_archive_count() {
        let member = |name: &str, body: &[u8]| {
            let mut bytes = format!("{name:<16}{:<12}{:<6}{:<6}{:<8}{:<10}`\n", 0, 0, 0, 644, body.len()).into_bytes();
            bytes.extend_from_slice(body);
            bytes.extend(vec![b'\n'; body.len() % 2]);
            bytes
        };
        let mut archive = b"!<arch>\n".to_vec();
        archive.extend(member("//", b"whit_noise.a-long-name.rcgu.o/\nlib.rmeta.but.longer/\n"));
        archive.extend(member("/0", &[1; 101]));
        archive.extend(member("/31", &[2; 50]));
        archive.extend(member("short.o/", &[3; 7]));
        archive.extend(member("lib.rmeta/", &[4; 1000]));
        assert_eq!(code_in(&archive), 108);
        assert_eq!(code_in(b"something else"), 0);
    }

    #[test]
    fn what_is_measured_stands_next_to_its_aim() {
        assert!(against_aim("release binary", "153.5 MB", false, "70 MB").ends_with("153.5 MB   at most 70 MB: NO"));
        let folder = std::env::temp_dir().join(format!("whit-weight-{}", std::process::id()));
        assert!(recorded(&folder.join("one-line"), "a change", CHANGE, "--rebuild").contains("weight --rebuild"));
        write(&folder, "one-line", 12.5).unwrap();
        let message = recorded(&folder.join("one-line"), "a change", CHANGE, "--rebuild");
        assert!(message.contains("12.5 s   at most 30 s: yes (measured 0 hours ago)"), "{message}");
        write(&folder, "first-build", 2100.0).unwrap();
        let message = recorded(&folder.join("first-build"), "a build", FIRST, "--build");
        assert!(message.contains("35.0 min   at most 20 min: NO"), "{message}");
        std::fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn the_command_is_found() {
        assert!(command_crate(&crate::root()).is_ok());
    }
}
