//! Questions that are stopped and killed, by the binary.

#![cfg(unix)]
#![expect(clippy::unwrap_used, reason = "a test that cannot go on should say where")]

use std::fmt::Write as _;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

const DECLARED: &str = r#"
[dataset.visits]
source = "visits.csv"
unit.user = "user_id"
unit.protect = "user"
unit.caps = { rows_per_user = 20 }
budget.user = { epsilon = 1000.0, delta = 1e-5 }
columns.user_id = "int"
columns.shop = { type = "text", keys = ["north", "south"] }
columns.seconds = { type = "int", bounds = [0, 600] }
"#;

/// Enough rows that a question can be stopped while they are read.
fn room(name: &str, rows: usize) -> PathBuf {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = std::fs::remove_dir_all(&folder); // it may not be there
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("whit.toml"), DECLARED).unwrap();
    let mut text = "user_id,shop,seconds\n".to_owned();
    for i in 0..rows {
        let _ = writeln!(text, "{},{},{}", i * 7919 % 40_009, ["north", "south"][i % 2], i * 31 % 601);
    }
    std::fs::write(folder.join("visits.csv"), text).unwrap();
    folder
}

/// A question that takes a while, and is another one for each number.
fn question(number: usize) -> String {
    format!(
        "SELECT shop, COUNT(DISTINCT seconds % 50), MEDIAN(seconds) FROM visits WHERE seconds <> {number} GROUP BY shop"
    )
}

fn whit(folder: &Path, line: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_whit"));
    command.args(line).current_dir(folder).env("WHIT_STATE", "");
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

fn asked(folder: &Path, sql: &str) -> Child {
    whit(folder, &["query", sql, "--epsilon", "1", "--threads", "2", "--json"]).spawn().unwrap()
}

fn signal(child: &Child, name: &str) {
    // One that has ended meanwhile cannot be reached, and need not be.
    let _ = Command::new("kill").args([&format!("-{name}"), &child.id().to_string()]).stderr(Stdio::null()).status();
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// The entries of the ledger: number, question and state.
fn entries(folder: &Path) -> Vec<(u64, String, String)> {
    let output = whit(folder, &["ledger", "--json"]).output().unwrap();
    if output.status.code() != Some(0) {
        return Vec::new(); // there is none yet
    }
    let view: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let of = |entry: &serde_json::Value| {
        let word = |name: &str| entry[name].as_str().unwrap_or_default().to_owned();
        (entry["entry"].as_u64().unwrap(), word("question"), word("state"))
    };
    view["releases"].as_array().unwrap().iter().map(of).collect()
}

fn rows(output: &Output) -> serde_json::Value {
    let answer: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    answer["rows"].clone()
}

/// How long the question takes if nobody stops it.
fn whole_time(folder: &Path) -> Duration {
    let begun = Instant::now();
    let output = asked(folder, &question(1000)).wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    begun.elapsed()
}

/// Waits until a question is charged and reads rows, however busy the machine is; not longer than a minute.
fn until_charged(folder: &Path, sql: &str) {
    let begun = Instant::now();
    let charged = || entries(folder).iter().any(|entry| entry.1 == sql);
    while !charged() && begun.elapsed() < Duration::from_secs(60) {
        std::thread::sleep(Duration::from_millis(2));
    }
}

#[test]
fn questions_that_are_stopped_go_on_and_are_charged_once() {
    let folder = room("interrupted", 600_000);
    let whole = whole_time(&folder);
    let mut stopped_after_charge = 0;
    for round in 0..7_usize {
        let sql = question(round);
        let child = asked(&folder, &sql);
        if round == 3 {
            until_charged(&folder, &sql);
        } else {
            std::thread::sleep(whole.mul_f64((round * 3 % 7) as f64 / 7.0));
        }
        signal(&child, if round % 3 == 2 { "TERM" } else { "INT" });
        let output = child.wait_with_output().unwrap();
        let (code, said) = (output.status.code(), text(&output.stderr));
        let own = |folder: &Path| entries(folder).into_iter().filter(|entry| entry.1 == sql).collect::<Vec<_>>();
        let before = own(&folder);
        match code {
            Some(0) => {}
            Some(130) if said.contains("nothing was charged") => assert!(before.is_empty(), "{said}"),
            Some(130) => {
                stopped_after_charge += 1;
                assert!(output.stdout.is_empty() && said.contains("it was interrupted"), "{said}");
                let [(number, _, state)] = &before[..] else { panic!("{before:?}") };
                assert_eq!(state, "interrupted");
                assert!(said.contains(&format!("goes on under entry {number}")), "{said}");
                let preview = whit(&folder, &["preview", &sql, "--epsilon", "1"]).output().unwrap();
                assert!(text(&preview.stdout).contains(&format!("goes on under entry {number}")), "{preview:?}");
            }
            // Before a question is asked, and when it is answered, a signal ends the program, as it ends any.
            None => assert!(before.iter().all(|entry| entry.2 == "committed"), "{said}"),
            other => panic!("{other:?}: {said}"),
        }
        // Two at once: one goes on, and the other reads what comes of it.
        let both = [asked(&folder, &sql), asked(&folder, &sql)].map(|child| child.wait_with_output().unwrap());
        assert!(both.iter().all(|output| output.status.code() == Some(0)), "{both:?}");
        assert_eq!(rows(&both[0]), rows(&both[1]));
        let after = own(&folder);
        assert!(after.len() == 1 && after[0].2 == "committed", "round {round}: {after:?}");
    }
    assert!(stopped_after_charge > 0, "no question was stopped while rows were read: they took {whole:?}");
    assert_eq!(whit(&folder, &["ledger", "verify"]).output().unwrap().status.code(), Some(0));
}

/// Why a process died is not known, so nobody goes on with its reservation: it stays spent, and the same question is charged anew.
#[test]
fn questions_that_are_killed_stay_spent_and_are_charged_anew() {
    let folder = room("killed", 600_000);
    let whole = whole_time(&folder);
    let mut killed_after_charge = 0;
    for round in 0..6_usize {
        let sql = question(round);
        let own = || entries(&folder).into_iter().filter(|entry| entry.1 == sql).collect::<Vec<_>>();
        let child = asked(&folder, &sql);
        if round == 2 {
            until_charged(&folder, &sql);
        } else {
            std::thread::sleep(whole.mul_f64((round * 5 % 6) as f64 / 6.0));
        }
        if round % 2 == 1 {
            // Stopped, and killed while it says so.
            signal(&child, "INT");
            std::thread::sleep(Duration::from_millis(round as u64));
        }
        signal(&child, "KILL");
        let first = child.wait_with_output().unwrap();
        let before = own();
        assert!(before.len() <= 1, "{before:?}");
        killed_after_charge += usize::from(before.iter().any(|entry| entry.2 == "reserved"));
        let second = asked(&folder, &sql).wait_with_output().unwrap();
        assert_eq!(second.status.code(), Some(0), "{}", text(&second.stderr));
        let after = own();
        // One answer, whatever came before it; and what was shown is what is stored.
        assert_eq!(after.iter().filter(|entry| entry.2 == "committed").count(), 1, "{after:?}");
        assert!(after.len() <= 2, "{after:?}");
        if first.status.code() == Some(0) {
            assert_eq!(rows(&first), rows(&second));
        }
    }
    assert!(killed_after_charge > 0, "no question was killed while rows were read: they took {whole:?}");
    assert_eq!(whit(&folder, &["ledger", "verify"]).output().unwrap().status.code(), Some(0));
}

#[test]
fn a_shell_that_is_stopped_says_what_was_charged_and_goes_on_with_the_same() {
    let folder = room("interrupted-shell", 600_000);
    for number in 0..5 {
        let sql = question(number);
        let mut shell = whit(&folder, &["shell", "--epsilon", "1", "--threads", "2", "--keep-going"]);
        let mut shell = shell.stdin(Stdio::piped()).spawn().unwrap();
        let mut input = shell.stdin.take().unwrap();
        writeln!(input, "{sql};\n\\tables").unwrap();
        until_charged(&folder, &sql);
        signal(&shell, "INT");
        drop(input);
        let output = shell.wait_with_output().unwrap();
        let said = text(&output.stderr);
        if output.status.code() != Some(130) || !said.contains("goes on under entry") {
            continue; // it was stopped too late
        }
        assert!(!text(&output.stdout).contains("protects"), "whoever stops it means all that a program asked");
        let again = asked(&folder, &sql).wait_with_output().unwrap();
        assert_eq!(again.status.code(), Some(0), "{}", text(&again.stderr));
        assert_eq!(entries(&folder).iter().filter(|entry| entry.1 == sql).count(), 1);
        return;
    }
    panic!("no question was stopped while rows were read");
}
