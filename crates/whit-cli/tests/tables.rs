//! Questions over tables by the real binary, and everything that can be wrong with them: files, declarations, questions, budgets, ledgers.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on should say where")]

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

/// A folder with a table of 900 visits by 300 users, and its declaration.
fn room(name: &str) -> PathBuf {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("tables").join(name);
    let _ = std::fs::remove_dir_all(&folder); // it may not be there
    std::fs::create_dir_all(&folder).unwrap();
    let mut rows = "user_id,shop,seconds\n".to_owned();
    for i in 0..900 {
        let _ = writeln!(rows, "{},{},{}", i % 300, ["north", "south", "east"][i % 3], i % 600);
    }
    std::fs::write(folder.join("visits.csv"), rows).unwrap();
    std::fs::write(folder.join("whit.toml"), DECLARED).unwrap();
    folder
}

/// Exit code, data and talk.
fn whit(folder: &Path, words: &[&str]) -> (i32, String, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_whit"))
        .args(words)
        .current_dir(folder)
        .env("WHIT_STATE", "")
        .output()
        .unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (output.status.code().unwrap(), text(output.stdout), text(output.stderr))
}

fn answer(folder: &Path, words: &[&str]) -> Value {
    let (code, out, talk) = whit(folder, &[words, &["--json"]].concat());
    assert_eq!(code, 0, "{words:?}: {talk}");
    serde_json::from_str(&out).unwrap()
}

/// A question that is refused with this exit code, these words, and without a charge.
fn refused(folder: &Path, words: &[&str], code: i32, said: &[&str]) -> String {
    let (got, out, talk) = whit(folder, words);
    assert_eq!((got, out.as_str()), (code, ""), "{words:?}: {talk}");
    for word in said {
        assert!(talk.contains(word), "{words:?} should say `{word}`: {talk}");
    }
    assert!(!talk.contains("panicked"), "{talk}");
    talk
}

const COUNT: &str = "SELECT shop, COUNT(*) AS n FROM visits GROUP BY shop ORDER BY shop";

#[test]
fn from_a_file_to_an_answer_in_every_format() {
    let folder = room("road");
    std::fs::remove_file(folder.join("whit.toml")).unwrap();
    assert_eq!(whit(&folder, &["init", "visits.csv"]).0, 0);
    let draft = std::fs::read_to_string(folder.join("whit.toml")).unwrap();
    assert!(draft.contains("[dataset.visits]") && !draft.contains("north"), "no values in the draft: {draft}");
    std::fs::write(folder.join("whit.toml"), DECLARED).unwrap();
    let (code, ladder, _) = whit(&folder, &["check"]);
    assert!(code == 0 && ladder.contains("user (user_id)"), "{ladder}");

    let (_, preview, talk) = whit(&folder, &["preview", COUNT, "--epsilon", "1"]);
    assert!(preview.contains("COUNT(*)") && preview.contains("off by"), "{preview}{talk}");
    for words in [&["preview", COUNT, "--epsilon", "0.001"][..], &["preview", COUNT, "--epsilon", "0.001", "--json"]] {
        let (_, preview, _) = whit(&folder, words);
        assert!(!preview.contains("asking."), "notes name options, also for programs: {preview}");
    }
    let cheap = answer(&folder, &["preview", COUNT, "--within", "200"]);
    assert!(cheap["epsilon"].as_f64().unwrap() < 1.0, "{cheap}");

    let first = answer(&folder, &["query", COUNT, "--epsilon", "1"]);
    assert_eq!(first["rows"].as_array().unwrap().len(), 3, "moon too: {first}");
    let again = answer(&folder, &["query", "select count(*) as n, shop from visits group by shop", "--epsilon", "1"]);
    assert_eq!(again["statement"]["stored"], true, "{again}");
    for (option, file, magic) in [
        ("--csv", "", "shop,n"),
        ("--parquet", "n.parquet", "PAR1"),
        ("--plot", "n.svg", "<svg"),
        ("--plot", "n.html", "<!doctype html"),
    ] {
        let mut words = vec!["query", COUNT, "--epsilon", "1", option];
        words.extend((!file.is_empty()).then_some(file));
        let (code, out, talk) = whit(&folder, &words);
        let made = if file.is_empty() { out.into_bytes() } else { std::fs::read(folder.join(file)).unwrap() };
        let start = String::from_utf8_lossy(&made[..magic.len()]).to_lowercase();
        assert!(code == 0 && start == magic.to_lowercase(), "{option} {file}: {start} {talk}");
    }
    let (_, ledger, _) = whit(&folder, &["ledger"]);
    assert!(ledger.contains("1 release"), "everything after the first was free: {ledger}");
    assert_eq!(whit(&folder, &["ledger", "verify"]).0, 0);
}

#[test]
fn files_that_are_missing_damaged_or_empty() {
    let folder = room("files");
    std::fs::remove_file(folder.join("visits.csv")).unwrap();
    refused(&folder, &["query", COUNT, "--epsilon", "1"], 2, &["visits.csv"]);

    std::fs::write(folder.join("visits.parquet"), b"PAR1 this is none PAR1").unwrap();
    std::fs::write(folder.join("whit.toml"), DECLARED.replace("visits.csv", "visits.parquet")).unwrap();
    let (code, _, talk) = whit(&folder, &["query", COUNT, "--epsilon", "1"]);
    assert!(code != 0 && talk.contains("visits.parquet") && !talk.contains("panicked"), "{talk}");

    std::fs::write(folder.join("whit.toml"), DECLARED).unwrap();
    std::fs::write(folder.join("visits.csv"), "user_id,shop,seconds\n").unwrap();
    let (code, _, talk) = whit(&folder, &["query", COUNT, "--epsilon", "1"]);
    assert!(!talk.contains("panicked"), "an empty table: {code} {talk}");

    // Missing users, shops and numbers, and numbers that are none.
    std::fs::write(
        folder.join("visits.csv"),
        "user_id,shop,seconds\n1,north,5\n,north,7\n2,,9\n3,south,\n4,moon,NaN\n",
    )
    .unwrap();
    let some = answer(
        &folder,
        &[
            "query",
            "SELECT shop, COUNT(*) AS n, SUM(seconds) AS s, AVG(seconds) AS m FROM visits GROUP BY shop",
            "--epsilon",
            "1",
        ],
    );
    assert_eq!(some["rows"].as_array().unwrap().len(), 3, "{some}");
}

/// What is missing is said by `check` already, and not only by the question that is refused for it.
#[test]
fn a_check_names_what_questions_would_be_refused_for() {
    let folder = room("check_names");
    let declared = DECLARED
        .replace("unit.caps = { groups = 3, rows_per_group = 4 }", "")
        .replace("columns.shop = { type = \"text\"", "columns.shop = { type = \"int\"");
    std::fs::write(folder.join("whit.toml"), declared).unwrap();
    let (code, out, talk) = whit(&folder, &["check"]);
    assert_eq!(code, 0, "{talk}");
    for said in [
        "no unit.caps.rows_per_user: each question has to say how many rows of one user count",
        "the key `north` of `shop` is not of its type, and the column is a whole number",
    ] {
        assert!(out.contains(said), "{out}");
    }
    assert!(!out.contains("Int64"), "{out}");
    let kmeans = ["partition", "kmeans", "none.parquet", "--clusters", "2", "--output", "p.partition"];
    refused(&folder, &kmeans, 2, &["`none.parquet` could not be read: there is no such file", "hint: "]);
}

#[test]
fn hints_can_be_followed_as_they_are_printed() {
    let folder = room("hints_as_printed");
    let rows = std::fs::read_to_string(folder.join("visits.csv")).unwrap().replacen("shop", "shop name", 1);
    std::fs::write(folder.join("visits.csv"), rows).unwrap();
    let declared = DECLARED
        .replace(
            "columns.shop = { type = \"text\", keys = [\"north\", \"south\", \"moon\"] }",
            "columns.\"shop name\" = \"text\"",
        )
        .replace("delta = 1e-6 }", "delta = 1e-6, currency = \"sum\" }");
    std::fs::write(folder.join("whit.toml"), declared).unwrap();
    let by_shop = "SELECT \"shop name\", COUNT(*) FROM visits GROUP BY 1";
    let said = ["list the keys: columns.\"shop name\".keys = […]"];
    refused(&folder, &["query", by_shop, "--epsilon", "1", "--delta", "0"], 2, &said);
    let said = ["currency = \"sum\"", "--delta 0"];
    refused(&folder, &["query", "SELECT COUNT(*) FROM visits", "--epsilon", "1"], 3, &said);
    answer(&folder, &["query", "SELECT COUNT(*) FROM visits", "--epsilon", "1", "--delta", "0"]);
}

#[test]
fn an_item_is_found_without_regard_to_case_and_is_the_same_question() {
    let folder = room("hitters_case");
    let first = answer(&folder, &["hitters", "visits", "--item", "SHOP", "--epsilon", "1"]);
    assert_eq!(first["columns"][0]["name"], "shop", "{first}");
    let again = answer(&folder, &["hitters", "visits", "--item", "shop", "--epsilon", "1"]);
    assert_eq!(again["statement"]["stored"], true, "{again}");
}

/// The next step follows from the question alone, and is said where no group shows.
#[test]
fn an_answer_without_groups_says_what_would_show_some() {
    let folder = room("no_groups");
    std::fs::write(folder.join("whit.toml"), DECLARED.replace(", keys = [\"north\", \"south\", \"moon\"]", ""))
        .unwrap();
    let sql = "SELECT seconds, COUNT(*) FROM visits GROUP BY seconds";
    let (code, out, talk) = whit(&folder, &["query", sql, "--epsilon", "0.1"]);
    assert_eq!(code, 0, "{talk}");
    assert!(out.contains("(no rows)") && out.contains("no group shows"), "{out}");
    let all = whit(&folder, &["query", "SELECT shop, COUNT(*) FROM visits GROUP BY shop", "--epsilon", "2"]);
    assert!(all.0 == 0 && !all.1.contains("no group shows"), "{}", all.1);
}

#[test]
fn questions_that_are_wrong_name_the_thing_and_the_next_step() {
    let folder = room("questions");
    let ask = |sql: &str, said: &[&str]| refused(&folder, &["query", sql, "--epsilon", "1"], 2, said);
    ask("SELECT AVG(secnods) FROM visits", &["secnods", "did you mean `seconds`?", "line 1, column 12"]);
    ask("SELECT COUNT(*) FROM vists", &["vists", "did you mean `visits`?"]);
    ask("SELECT SUM(shop) FROM visits", &["`sum` does not take text", "line 1, column 8"]);
    ask("SELECT SUM(sqr(seconds)) FROM visits", &[]);
    ask("SELECT COUNT(*) FROM visits WHERE to_timestmp(shop) IS NULL", &["to_timestmp", "to_timestamp"]);
    ask("SELECT COUNT(*) FROM visits WHERE random() > 0.5", &["random()", "changes from one run to the next"]);
    ask("SELECT * FROM visits", &["cannot be released", "aggregate"]);
    ask("SELECT COUNT(* FROM visits", &[]);
    ask("SELECT SUM(user_id) FROM visits", &["nothing bounds `user_id`", "clamp("]);
    ask("DROP TABLE visits", &["SELECT"]);
    refused(&folder, &["query", COUNT, "--epsilon", "-1"], 2, &["--epsilon"]);
    refused(&folder, &["query", COUNT], 2, &["--epsilon"]);
    refused(&folder, &["query", COUNT, "--epsilon", "1", "--config", "none.toml"], 2, &["none.toml", "whit init"]);
    let (_, ledger, _) = whit(&folder, &["ledger"]);
    assert!(!ledger.contains("1 release"), "nothing was charged: {ledger}");
}

#[test]
fn declarations_that_are_wrong_name_the_line() {
    let folder = room("declarations");
    let declare = |text: &str, said: &[&str]| {
        std::fs::write(folder.join("whit.toml"), text).unwrap();
        refused(&folder, &["check"], 2, said);
    };
    declare(&format!("{DECLARED}{DECLARED}"), &["visits"]); // two of one name
    declare(&DECLARED.replace("\"user_id\"", "\"userid\""), &["userid", "user_id"]);
    declare(&DECLARED.replace("bounds = [0, 600]", "bounds = [600, 0]"), &["seconds"]);
    declare(&DECLARED.replace("unit.protect = \"user\"", "unit.protect = \"house\""), &["house"]);
    declare(&DECLARED.replace("columns.seconds", "columns.minutes"), &["minutes"]);
}

#[test]
fn a_budget_that_is_spent_refuses_and_says_what_fits() {
    let folder = room("budget");
    answer(&folder, &["query", COUNT, "--epsilon", "2.5"]);
    let sum = "SELECT SUM(seconds) AS s FROM visits";
    let talk = refused(&folder, &["query", sum, "--epsilon", "2.5"], 3, &["nothing was charged", "--epsilon"]);
    let fits = talk.split("--epsilon ").nth(1).and_then(|rest| rest.split_whitespace().next()).unwrap();
    let fitting = answer(&folder, &["query", sum, "--epsilon", fits]);
    assert_eq!(fitting["statement"]["stored"], false);
    let more = format!("{}", fits.parse::<f64>().unwrap() * 1.5);
    refused(&folder, &["query", "SELECT COUNT(*) FROM visits", "--epsilon", &more], 3, &["nothing was charged"]);
    // What was paid for stays free, also without a budget.
    assert_eq!(answer(&folder, &["query", COUNT, "--epsilon", "2.5"])["statement"]["stored"], true);
}

#[test]
fn ledgers_that_are_damaged_or_locked_stop_everything() {
    let folder = room("ledger");
    answer(&folder, &["query", COUNT, "--epsilon", "1"]);
    let ledger = std::fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path());
    let ledger = ledger.into_iter().find(|path| path.extension().is_some_and(|e| e == "ledger")).unwrap();
    let other = "SELECT SUM(seconds) FROM visits";

    let lock = rusqlite::Connection::open(&ledger).unwrap();
    lock.execute_batch("BEGIN EXCLUSIVE").unwrap();
    let patient = std::time::Instant::now();
    let (code, out, talk) = whit(&folder, &["query", other, "--epsilon", "1"]);
    assert!(code != 0 && out.is_empty() && talk.contains("another process"), "{code} {talk}");
    assert!(patient.elapsed().as_secs() < 60);
    lock.execute_batch("ROLLBACK").unwrap();
    drop(lock);
    answer(&folder, &["query", other, "--epsilon", "0.5"]);

    std::fs::write(&ledger, b"this is no ledger, and never was one of any kind; not at all, whatever it is called")
        .unwrap();
    for suffix in ["-wal", "-shm"] {
        let _ = std::fs::remove_file(format!("{}{suffix}", ledger.display())); // they may not be there
    }
    let (code, out, talk) = whit(&folder, &["query", other, "--epsilon", "1"]);
    assert!(code != 0 && out.is_empty() && talk.contains("ledger") && !talk.contains("panicked"), "{code} {talk}");
}

#[test]
fn data_that_changed_is_told_to_its_owner_only() {
    let folder = room("changed");
    let shops = "[dataset.shops]\nsource = 'shops.csv'\npublic = true\n";
    std::fs::write(folder.join("shops.csv"), "shop,region\nnorth,cold\nsouth,warm\n").unwrap();
    std::fs::write(folder.join("whit.toml"), format!("{DECLARED}{shops}")).unwrap();
    let joined = "SELECT region, COUNT(*) AS n FROM visits JOIN shops ON visits.shop = shops.shop GROUP BY region";
    let changed = || {
        let (code, out, talk) = whit(&folder, &["check", "--owner", "--json"]);
        assert_eq!(code, 0, "{talk}");
        serde_json::from_str::<Value>(&out).unwrap()["datasets"][0]["changed"].clone()
    };
    let logged = || std::fs::read_to_string(folder.join("whit.ledger.log")).unwrap_or_default();
    assert_eq!(changed(), Value::Null, "there is no ledger yet");
    // Questions over one table and over two see the same rows.
    for sql in [COUNT, joined, COUNT] {
        answer(&folder, &["query", sql, "--epsilon", "0.5"]);
    }
    assert_eq!((changed(), logged()), (Value::Bool(false), String::new()));

    let mut rows = std::fs::read_to_string(folder.join("visits.csv")).unwrap();
    rows.push_str("301,north,5\n");
    std::fs::write(folder.join("visits.csv"), rows).unwrap();
    assert_eq!((changed(), changed()), (Value::Bool(true), Value::Bool(true)), "looking is not seeing");
    let (code, out, talk) = whit(&folder, &["query", COUNT, "--epsilon", "0.25", "--json"]);
    assert!(code == 0 && !talk.contains("changed") && !out.contains("changed"), "{talk}");
    assert!(logged().contains("visits: the data changed") && logged().lines().count() == 1, "{}", logged());
    // A question that is refused tells the owner too, and its analyst nothing.
    std::fs::write(folder.join("visits.csv"), "user_id,shop,seconds\n1,north,5\n").unwrap();
    let (code, _, talk) = whit(&folder, &["query", COUNT, "--epsilon", "100"]);
    assert!(code == 3 && !talk.contains("changed"), "{talk}");
    assert_eq!((logged().lines().count(), changed()), (2, Value::Bool(false)));
}

#[test]
fn one_user_with_a_million_rows_counts_as_one_user() {
    let folder = room("million");
    let mut rows = "user_id,shop,seconds\n".to_owned();
    for i in 0..1_000_000 {
        let _ = writeln!(rows, "7,{},{}", if i % 2 == 0 { "north" } else { "south" }, i % 600);
    }
    std::fs::write(folder.join("visits.csv"), rows).unwrap();
    let counted = answer(&folder, &["query", COUNT, "--epsilon", "2.9"]);
    for row in counted["rows"].as_array().unwrap() {
        let n = row[1]["value"].as_f64().unwrap();
        assert!(n.abs() < 1000.0, "at most 4 rows of one user count: {counted}");
    }
}

/// The number after a word.
fn number_after(text: &str, word: &str) -> f64 {
    let rest = text.split(word).nth(1).unwrap_or_else(|| panic!("no `{word}` in {text}"));
    let end = rest.find(|c: char| !(c.is_ascii_digit() || c == '.')).unwrap_or(rest.len());
    rest[..end].trim_end_matches('.').parse().unwrap_or_else(|_| panic!("no number after `{word}` in {text}"))
}

/// `ledger`, preview and refusal tell one ε left, and what a hint says fits is asked and fits: for public keys and private ones, in every currency, one budget or several.
#[test]
fn one_price_is_told_everywhere_and_what_is_hinted_fits() {
    let private = "SELECT shop, COUNT(*) AS n FROM visits GROUP BY shop";
    let cases = [
        ("gaussian", "budget.user = { epsilon = 1.0, delta = 1e-6 }", COUNT),
        (
            "analyst",
            "budget.user = { epsilon = 3.0, delta = 1e-6 }\nbudget.analyst.anyone.user = { epsilon = 1.0, delta = 1e-6 }",
            COUNT,
        ),
        ("concentrated", "budget.user = { epsilon = 1.0, delta = 1e-6, currency = \"concentrated\" }", COUNT),
        ("renyi", "budget.user = { epsilon = 1.0, delta = 1e-6, currency = \"renyi\" }", COUNT),
        ("sum", "budget.user = { epsilon = 1.0, delta = 0.0 }", COUNT),
        ("keys", "budget.user = { epsilon = 1.0, delta = 1e-6 }", private),
    ];
    for (name, budget, sql) in cases {
        let folder = room(&format!("price-{name}"));
        let mut declared = DECLARED.replace("budget.user = { epsilon = 3.0, delta = 1e-6 }", budget);
        if name == "keys" {
            declared = declared.replace(", keys = [\"north\", \"south\", \"moon\"]", "");
        }
        std::fs::write(folder.join("whit.toml"), &declared).unwrap();
        // Before there is a ledger too, and a look makes none.
        let fresh = answer(&folder, &["preview", sql, "--epsilon", "9"]);
        assert!(fresh["budgets"].as_array().unwrap().iter().any(|budget| budget["fits"] == false), "{fresh}");
        assert!(!folder.join("whit.ledger").exists());
        answer(&folder, &["query", sql, "--epsilon", "0.5"]);
        let talk = refused(&folder, &["query", sql, "--epsilon", "0.9"], 3, &["nothing was charged"]);
        let (stated, hinted) = (number_after(&talk, ", and ε = "), number_after(&talk, "--epsilon "));
        let (_, ledger, note) = whit(&folder, &["ledger"]);
        let view = answer(&folder, &["ledger"]);
        let accounts = view["accounts"].as_array().unwrap();
        let left = accounts.iter().filter_map(|account| account["epsilon_left"].as_f64()).fold(f64::INFINITY, f64::min);
        assert!((left - stated).abs() <= 2e-4 * left, "{name}: {stated} is left by the refusal, {left} by the ledger");
        assert!(ledger.contains(&format!(" {stated} ")), "{name}: {stated} in the ledger's own table: {ledger}");
        let preview = answer(&folder, &["preview", sql, "--epsilon", "0.9"]);
        let budgets = preview["budgets"].as_array().unwrap();
        let least = budgets.iter().map(|budget| budget["epsilon_left"].as_f64().unwrap()).fold(f64::INFINITY, f64::min);
        assert_eq!(least, left, "{name}: {preview}");
        let no = budgets.iter().find(|budget| budget["fits"] == false).unwrap();
        assert!(talk.contains(no["refusal"].as_str().unwrap()), "{name}: {talk} {no}");
        assert_eq!(preview["denied"]["message"], no["refusal"], "{name}: {preview}");
        assert_eq!(no["shortfall"]["fits"].as_f64().unwrap(), hinted, "{name}: {no}");
        let stored = answer(&folder, &["preview", sql, "--epsilon", "0.5"]);
        assert_eq!((&stored["stored_entry"], &stored["denied"]), (&1.into(), &Value::Null), "{name}: {stored}");
        let (_, out, _) = whit(&folder, &["preview", sql, "--epsilon", "0.5"]);
        assert!(
            out.contains("reads entry 1 of the ledger again, and costs nothing") && !out.contains("--epsilon"),
            "{out}"
        );
        assert_eq!(preview["epsilon_that_fits"].as_str().unwrap().parse::<f64>().unwrap(), hinted, "{name}");
        if name != "sum" {
            assert!(note.contains("need not make up the budget"), "{name}: {note}");
        }
        if matches!(name, "gaussian" | "analyst" | "sum") {
            assert!((hinted - stated).abs() < 2e-3 * stated, "{name}: {hinted} may be asked for, {stated} is left");
        }
        // What is hinted fits, and a hundredth more does not.
        let more = format!("{}", hinted * 1.01);
        refused(&folder, &["query", sql, "--epsilon", &more], 3, &[]);
        let fits = answer(&folder, &["preview", sql, "--epsilon", &format!("{hinted}")]);
        assert!(fits["budgets"].as_array().unwrap().iter().all(|budget| budget["fits"] == true), "{name}: {fits}");
        let asked = answer(&folder, &["query", sql, "--epsilon", &format!("{hinted}")]);
        assert_eq!(asked["statement"]["stored"], false);
    }
}

/// A large ε is stated as what was asked for.
#[test]
fn an_epsilon_of_a_hundred_is_told_as_no_more() {
    let folder = room("hundred");
    std::fs::write(folder.join("whit.toml"), DECLARED.replace("epsilon = 3.0", "epsilon = 500.0")).unwrap();
    let preview = answer(&folder, &["preview", COUNT, "--epsilon", "100"]);
    let stated = preview["prices"][0]["epsilon"].as_f64().unwrap();
    assert!(stated <= 100.0 * 1.000_001 && stated > 99.0, "{stated}");
    let asked = answer(&folder, &["query", COUNT, "--epsilon", "100"]);
    assert_eq!(asked["statement"]["prices"][0]["epsilon"].as_f64().unwrap(), stated);
    let spent = answer(&folder, &["ledger"])["accounts"][0]["epsilon_spent"].as_f64().unwrap();
    assert!(spent <= 100.0 * 1.000_001 && spent > 99.0, "{spent}");
}

/// How many releases the ledger holds.
fn entries(folder: &Path) -> usize {
    answer(folder, &["ledger"])["releases"].as_array().unwrap().len()
}

/// An output replaced the ledger, its head, the data or the declaration, with exit code 0.
#[test]
fn no_output_replaces_the_ledger_the_data_or_a_declaration() {
    let folder = room("outputs");
    let at = |name: &str| folder.join(name);
    assert_eq!(whit(&folder, &["query", COUNT, "--epsilon", "0.1"]).0, 0);
    std::fs::write(at("whit.ledger.log"), "a line\n").unwrap();
    std::fs::write(at("train.toml"), "steps = 3\n").unwrap();
    std::fs::create_dir_all(at("below")).unwrap();
    let files = ["whit.ledger", "whit.ledger.head", "whit.ledger.log", "visits.csv", "whit.toml", "train.toml"];
    let mut names: Vec<String> = files.iter().chain(&["whit.ledger-journal"]).map(|&name| name.to_owned()).collect();
    #[cfg(unix)]
    {
        std::os::unix::fs::symlink("whit.ledger", at("link.parquet")).unwrap();
        std::os::unix::fs::symlink("whit.ledger-wal", at("loose.parquet")).unwrap();
        std::fs::hard_link(at("visits.csv"), at("hard.parquet")).unwrap();
        names.extend(["link.parquet", "loose.parquet", "hard.parquet"].map(str::to_owned));
    }
    names.extend(["below/../whit.ledger".to_owned(), at("visits.csv").to_string_lossy().into_owned()]);
    // What is in the ledger is compared below, by its chain.
    let kept = ["whit.ledger.log", "visits.csv", "whit.toml", "train.toml"];
    let before = kept.map(|name| std::fs::read(at(name)).unwrap());
    for name in &names {
        let said = &["no output is written over it", "name another file"];
        refused(&folder, &["query", "SELECT COUNT(*) FROM visits", "--epsilon", "0.2", "--parquet", name], 2, said);
        refused(&folder, &["partition", "column", "shop", "--output", name], 2, said);
    }
    assert!(kept.map(|name| std::fs::read(at(name)).unwrap()) == before, "a file was written to");
    assert!(!at("whit.ledger-wal").exists());
    assert_eq!(entries(&folder), 1, "what was refused was charged");
    assert_eq!(whit(&folder, &["ledger", "verify"]).0, 0);
    // Pictures go the same way, with a ledger that was given such a name.
    std::fs::copy(at("whit.ledger"), at("books.svg")).unwrap();
    let words = ["query", "SELECT COUNT(*) FROM visits", "--epsilon", "0.2", "--plot", "books.svg"];
    refused(&folder, &words, 2, &["a ledger or belongs to one"]);
    let words = ["account", "explain", "--epsilon", "1", "--delta", "1e-6", "--plot", "books.svg"];
    refused(&folder, &words, 2, &["a ledger"]);
    refused(&folder, &["init", "visits.csv", "--output", "visits.csv", "--force"], 2, &["data is read from"]);
    // What may be written is: an answer over an earlier one, a draft over a declaration.
    for _ in 0..2 {
        assert_eq!(whit(&folder, &["query", COUNT, "--epsilon", "0.1", "--parquet", "n.parquet"]).0, 0);
    }
    assert_eq!(whit(&folder, &["init", "visits.csv", "--force"]).0, 0);
}

/// The same length and the same time of change: the old answer was given of other rows.
#[cfg(unix)]
#[test]
fn rows_that_were_changed_behind_an_old_time_are_other_rows() {
    let folder = room("old-time");
    let ask = || answer(&folder, &["query", "SELECT COUNT(*) AS n FROM visits WHERE shop = 'north'", "--epsilon", "1"]);
    ask();
    assert_eq!(ask()["statement"]["stored"], true);
    let path = folder.join("visits.csv");
    let time = std::fs::metadata(&path).unwrap().modified().unwrap();
    let rows = std::fs::read_to_string(&path).unwrap().replace("north", "south");
    std::fs::write(&path, rows).unwrap();
    std::fs::File::options().write(true).open(&path).unwrap().set_modified(time).unwrap();
    let after = ask();
    assert_eq!(after["statement"]["stored"], false, "{after}");
    assert!(after["rows"][0][0]["value"].as_f64().unwrap().abs() < 100.0, "nobody was in the north: {after}");
}

/// What could not be logged was noted as logged, and the owner never learned of it.
#[test]
fn a_change_that_could_not_be_logged_is_logged_by_the_next_question() {
    let folder = room("log");
    let log = folder.join("whit.ledger.log");
    let ask = |epsilon: &str| assert_eq!(whit(&folder, &["query", COUNT, "--epsilon", epsilon]).0, 0);
    ask("0.1");
    let rows = std::fs::read_to_string(folder.join("visits.csv")).unwrap();
    std::fs::write(folder.join("visits.csv"), format!("{rows}1,north,1\n")).unwrap();
    std::fs::create_dir(&log).unwrap(); // nobody writes lines into a folder
    ask("0.2");
    std::fs::remove_dir(&log).unwrap();
    ask("0.3");
    let logged = std::fs::read_to_string(&log).unwrap();
    assert!(logged.contains("visits: the data changed") && logged.lines().count() == 1, "{logged}");
    ask("0.4");
    assert_eq!(std::fs::read_to_string(&log).unwrap(), logged, "once is enough");
}

/// What a command that only looks prints is what the one says that asks.
#[test]
fn a_question_without_a_budget_is_not_offered_to_be_asked() {
    let folder = room("unwatched");
    let declared: Vec<&str> = DECLARED.lines().filter(|line| !line.starts_with("budget")).collect();
    std::fs::write(folder.join("whit.toml"), declared.join("\n")).unwrap();
    let (code, out, _) = whit(&folder, &["preview", COUNT, "--epsilon", "0.5"]);
    assert!(code == 0 && out.contains("it would cost") && !out.contains("Ask it"), "{out}");
    let talk = refused(&folder, &["query", COUNT, "--epsilon", "0.5"], 1, &["no budget of `visits` watches over"]);
    let sentence = talk.lines().next().unwrap().strip_prefix("error: ").unwrap();
    assert!(out.contains(&format!("Asking it would fail: {sentence}.")), "{out}{talk}");
}

/// What only looks makes no ledger, and one that does not do is said before the first question all the same.
#[test]
fn a_shell_that_only_looks_makes_no_ledger() {
    let folder = room("shell");
    let shell = |lines: &str| {
        let mut child = Command::new(env!("CARGO_BIN_EXE_whit"))
            .arg("shell")
            .current_dir(&folder)
            .env("WHIT_STATE", "")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let _ = child.stdin.take().unwrap().write_all(lines.as_bytes()); // one that ends early does not read them
        let output = child.wait_with_output().unwrap();
        let text = |bytes| String::from_utf8(bytes).unwrap();
        (output.status.code().unwrap(), text(output.stdout), text(output.stderr))
    };
    let look = "\\tables\n.schema VISITS\n\\timing\n\\budget\n\\epsilon 0.5\n\\preview SELECT COUNT(*) FROM visits;\n";
    let (code, out, talk) = shell(look);
    assert_eq!(code, 0, "{talk}");
    assert!(!out.contains("event, "), "{out}");
    for word in ["protects", "seconds", "visits", "it is said how long", "left ε", "ε = 0.5"] {
        assert!(out.contains(word), "{word}: {out}");
    }
    let mut files: Vec<_> = std::fs::read_dir(&folder).unwrap().map(|file| file.unwrap().file_name()).collect();
    files.sort();
    assert_eq!(files, ["visits.csv", "whit.toml"]);
    let (code, _, talk) = shell("\\epsilon 0.5\nSELECT COUNT(*) FROM visits;\n");
    assert_eq!((code, entries(&folder)), (0, 1), "{talk}");
    std::fs::write(folder.join("whit.ledger"), "no ledger at all, but long enough to be read as one").unwrap();
    let (code, out, talk) = shell(look);
    assert!(code == 1 && out.is_empty() && talk.contains("whit.ledger"), "{code} {out}{talk}");
}
