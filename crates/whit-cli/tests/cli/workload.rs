//! Several questions in one file, by the real binary.

use super::folder;
use serde_json::Value;
use std::fmt::Write as _;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

const DECLARED: &str = r#"
[dataset.visits]
source = "visits.csv"
unit.user = "user_id"
unit.protect = "user"
unit.caps = { groups = 3, rows_per_group = 4 }
columns.user_id = "int"
columns.seconds = { type = "int", bounds = [0, 600] }
columns.shop = { type = "text", keys = ["north", "south", "moon"] }
budget.user = { epsilon = 3.0, delta = 1e-6 }
"#;

const DASHBOARD: &str = "
-- name: visits by shop
SELECT shop, COUNT(*) AS visits FROM visits GROUP BY shop;

/* and how long; they last */
SELECT shop, AVG(seconds) AS mean, COUNT(*) AS visits FROM visits GROUP BY shop;
-- name: all
SELECT COUNT(*) AS visits FROM visits;
";

/// A folder with a table of 900 visits by 300 users, its declaration and a file of questions.
fn room(name: &str) -> PathBuf {
    let folder = folder(name);
    std::fs::create_dir_all(&folder).expect("our own folder");
    let mut rows = "user_id,shop,seconds\n".to_owned();
    for i in 0..900 {
        let _ = writeln!(rows, "{},{},{}", i % 300, ["north", "south", "east"][i % 3], i % 600);
    }
    for (name, text) in [("visits.csv", rows.as_str()), ("whit.toml", DECLARED), ("dashboard.sql", DASHBOARD)] {
        std::fs::write(folder.join(name), text).expect("room");
    }
    folder
}

/// Exit code, data and talk.
fn whit(folder: &Path, words: &[&str], input: &str) -> (Option<i32>, String, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_whit"));
    command.args(words).current_dir(folder).env("WHIT_STATE", "");
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("the binary was built");
    // Who reads a file reads no input, and may be gone before it is written.
    let _ = child.stdin.take().expect("a pipe").write_all(input.as_bytes());
    let output = child.wait_with_output().expect("it ends");
    let text = |bytes| String::from_utf8(bytes).expect("text");
    (output.status.code(), text(output.stdout), text(output.stderr))
}

fn shown(folder: &Path, words: &[&str], input: &str) -> String {
    let (code, out, talk) = whit(folder, words, input);
    assert_eq!(code, Some(0), "{words:?} said: {talk}");
    out
}

#[test]
fn a_file_of_questions_is_one_entry_and_an_answer_for_each() {
    let folder = room("workload");
    let file = ["query", "--file", "dashboard.sql", "--epsilon", "0.5"];
    let page = shown(&folder, &[&file[..], &["--plot", "page.html"]].concat(), "");
    for words in
        ["1. visits by shop\n\nshop ", "2. SELECT shop, AVG(seconds) AS mean", "3. all\n\n", "ledger     entry 1;"]
    {
        assert!(page.contains(words), "{words}: {page}");
    }
    assert_eq!(page.matches("ε at most").count(), 1, "one price: {page}");
    let html = std::fs::read_to_string(folder.join("page.html")).expect("it was written");
    assert!(
        html.contains("3 answers about <code>visits</code>") && html.contains("<h2>1. visits by shop</h2>"),
        "{html}"
    );
    assert_eq!(html.matches("What it costs, rung by rung").count(), 1);
    // The same from standard input, in another order: read again, with the same numbers in all that is shared.
    let other = "SELECT COUNT(*) AS visits FROM visits;SELECT shop, AVG(seconds) AS mean, COUNT(*) AS visits FROM visits GROUP BY shop;SELECT shop, COUNT(*) FROM visits GROUP BY shop";
    let again = shown(&folder, &["query", "-", "--epsilon", "0.5", "--json"], other);
    let again: Value = serde_json::from_str(&again).expect("JSON");
    assert_eq!((&again["statement"]["stored"], &again["statement"]["entry"]), (&Value::Bool(true), &Value::from(1)));
    let answers = again["answers"].as_array().expect("a list");
    assert_eq!(answers.len(), 3);
    for row in 0..3 {
        assert_eq!(answers[1]["rows"][row][2], answers[2]["rows"][row][1], "shared counts are the same");
    }
    let ledger = shown(&folder, &["ledger", "--json"], "");
    let ledger: Value = serde_json::from_str(&ledger).expect("JSON");
    assert_eq!(ledger["releases"].as_array().map(Vec::len), Some(1), "{ledger}");
    // One question in a file is a question like any other.
    std::fs::write(folder.join("one.sql"), "-- name: all\nSELECT COUNT(*) FROM visits;\n").expect("room");
    let csv = shown(&folder, &["query", "--file", "one.sql", "--epsilon", "0.1", "--csv"], "");
    assert!(csv.to_lowercase().starts_with("count(*),count(*)_low"), "{csv}");
}

#[test]
fn a_preview_says_what_each_is_worth_and_what_a_week_costs() {
    let folder = room("workload_preview");
    let text = shown(&folder, &["preview", "--file", "dashboard.sql", "--epsilon", "0.5", "--times", "7"], "");
    for words in
        ["1. visits by shop\n", "± ", "it would cost", "7 times, of changed data", "they take", "room for about"]
    {
        assert!(text.contains(words), "{words}: {text}");
    }
    assert_eq!(text.matches("Release: ").count(), 2, "one by shop, and one of all: {text}");
    let json = shown(
        &folder,
        &["preview", "--file", "dashboard.sql", "--within", "10%", "--about", "300", "--times", "7", "--json"],
        "",
    );
    let view: Value = serde_json::from_str(&json).expect("JSON");
    let shares = view["questions"].as_array().expect("a list").iter().flat_map(|question| {
        question["errors"].as_array().expect("a list").iter().map(|error| error["share"].as_f64().expect("a number"))
    });
    let worst = shares.fold(0.0, f64::max);
    assert!(worst <= 0.1 && worst > 0.095, "{worst}");
    assert_eq!(view["repeated"]["times"], 7);
    let (one, all) = (&view["budgets"][0], &view["repeated"]["budgets"][0]);
    let share = |of: &Value| of["share"].as_f64().expect("a number");
    assert!((share(all) - 7.0 * share(one)).abs() < 1e-9, "{view}");
    assert_eq!(all["room"], one["times"]);
    assert!(!folder.join("whit.ledger").exists(), "what only looks makes no ledger");
    let single = shown(&folder, &["preview", "SELECT AVG(seconds) FROM visits", "--within", "5%", "--times", "2"], "");
    assert!(single.contains("2 times, of changed data"), "{single}");
}

#[test]
fn what_is_wrong_with_one_of_them_is_said_with_its_place_and_costs_nothing() {
    let folder = room("workload_wrong");
    let ask = |text: &str, more: &[&str]| {
        std::fs::write(folder.join("wrong.sql"), text).expect("room");
        whit(&folder, &[&["query", "--file", "wrong.sql", "--epsilon", "0.5"], more].concat(), "")
    };
    let (code, out, talk) = ask("SELECT COUNT(*) FROM visits;\n-- name: b\nSELECT\n  AVG(colour) FROM visits", &[]);
    assert_eq!((code, out.as_str()), (Some(2), ""));
    assert!(talk.contains("question 2 (`b`, line 3): there is no column `colour` (line 4, column 7)"), "{talk}");
    for (option, more) in
        [("--csv", &["--csv"][..]), ("--parquet", &["--parquet", "a.parquet"]), ("a --plot", &["--plot", "a.png"])]
    {
        let (code, out, talk) = ask(DASHBOARD, more);
        assert_eq!((code, out.as_str()), (Some(2), ""), "{option}");
        assert!(
            talk.contains(&format!("{option} ")) && talk.contains("room for one answer, and 3 questions"),
            "{talk}"
        );
    }
    let (code, _, talk) = whit(&folder, &["query", "--file", "none.sql", "--epsilon", "1"], "");
    assert!(code == Some(2) && talk.contains("`none.sql` cannot be read"), "{talk}");
    let (code, _, talk) = whit(&folder, &["query", "--file", "visits.csv", "--epsilon", "1"], "");
    assert!(
        code == Some(2) && talk.contains("`visits.csv` is no file of questions"),
        "rows are not read as SQL: {talk}"
    );
    let (code, _, talk) = whit(&folder, &["query", "SELECT 1", "--file", "wrong.sql"], "");
    assert!(code == Some(2) && talk.contains("--file"), "{talk}");
    let (code, _, talk) = whit(&folder, &["query", "--file", "dashboard.sql", "--epsilon", "50"], "");
    assert!(code == Some(3) && (talk.contains("--epsilon 2.") || talk.contains("--epsilon 3")), "{talk}");
    assert!(!folder.join("whit.ledger").exists(), "nothing was charged");
}
