//! `whit ledger`, by its binary, on a ledger that the library wrote.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on should say where")]

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use whit::account::ledger::{Books, Budget, CurrencyName, Question, Register as _};
use whit::{Change, Charge, Cost, Ledger, Rung, Unit};

/// Two committed releases, one that never finished, and a fourth that was voided.
fn sample(name: &str) -> PathBuf {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = std::fs::remove_dir_all(&folder); // it may not be there
    std::fs::create_dir_all(&folder).unwrap();
    let mut books = Books::open(&folder.join("whit.ledger")).unwrap();
    let (element, user) = (Unit::element("id", "day"), Unit::user("id", Change::Replace));
    let budgets = [Budget::new("visits", element.clone(), 3.0, 1e-6)];
    let rung = |unit: &Unit, holds| Rung { unit: unit.clone(), holds, disjoint: false, slices: None };
    let charge: Charge =
        vec![(rung(&element, 1), Cost::Gaussian { noise: 10.0 }), (rung(&user, 8), Cost::Gaussian { noise: 1.25 })];
    for (k, analyst) in ["alice", "bob", "alice", "bob"].into_iter().enumerate() {
        let question = Question {
            dataset: "visits".into(),
            analyst: analyst.into(),
            meaning: format!("count {k}"),
            text: format!("SELECT count(*)\n  FROM visits -- {k}"),
            fingerprint: "blake3:1".into(),
            partition: None,
        };
        let mut booking = books.booking(question, &budgets);
        let reservation = booking.reserve(&charge).unwrap();
        if k < 2 {
            booking.commit(reservation, b"[1234]").unwrap();
        }
    }
    books.void(4, "the disk was full before anything was drawn").unwrap();
    folder
}

/// Exit code, data and talk.
fn ask(folder: &Path, line: &[&str]) -> (i32, String, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_whit"));
    let output = command.arg("ledger").args(line).current_dir(folder).env("WHIT_STATE", "").output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (output.status.code().unwrap(), text(output.stdout), text(output.stderr))
}

#[test]
fn the_ledger_tells_what_was_spent_and_what_never_finished() {
    let folder = sample("cli-show");
    let (code, out, talk) = ask(&folder, &[]);
    assert_eq!(code, 0, "{talk}");
    assert!(out.contains("4 releases from") && out.contains("1 without a result, 1 void"), "{out}");
    assert!(out.contains("element (id, day), replace  all") && out.contains("ε = 3 at δ = 1e-6, gaussian"), "{out}");
    assert!(out.contains("none; stated at δ = 1e-6"), "the user's rung has no budget and is shown: {out}");
    assert!(out.contains("SELECT count(*) FROM visits -- 0"), "{out}");
    assert!(talk.contains("1 reservation has no result and stays spent"), "{talk}");
    assert_eq!(ask(&folder, &["show"]).1, out);
    let (_, json, _) = ask(&folder, &["--json"]);
    let view: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!((&view["accounts"][0]["releases"], &view["releases"][3]["state"]), (&3.into(), &"void".into()));
    assert_eq!(view["histories"][0]["moments"].as_array().unwrap().len(), 5);
    assert_eq!(view["by_analyst"].as_array().unwrap().len(), 4);
}

/// What changed is said, and what did not is not; and a user's ε that is below an element's is explained.
#[test]
fn notes_say_what_changed_and_why_a_user_may_seem_to_lose_less_than_an_element() {
    let folder = sample("cli-notes");
    let (_, _, talk) = ask(&folder, &[]);
    assert!(!talk.contains("where it was") && !talk.contains("below ε per"), "{talk}");
    let mut books = Books::open(&folder.join("whit.ledger")).unwrap();
    let (element, user) = (Unit::element("id", "day"), Unit::user("id", Change::Replace));
    let rung = |unit: &Unit| Rung { unit: unit.clone(), holds: 1, disjoint: false, slices: None };
    let (near, far) = (Cost::Gaussian { noise: 10.0 }, Cost::Gaussian { noise: 9.9 });
    let first = Budget::new("days", element.clone(), 3.0, 1e-6);
    let second = Budget { currency: CurrencyName::Concentrated, ..first.clone() };
    let third = Budget { epsilon: 4.0, delta: 1e-7, ..second.clone() };
    for (k, budget) in [first, second, third].into_iter().enumerate() {
        let question = Question { dataset: "days".into(), meaning: format!("{k}"), ..Question::default() };
        let charge: Charge = vec![(rung(&element), near.clone()), (rung(&user), far.clone())];
        let _open = books.booking(question, &[budget]).reserve(&charge).unwrap();
    }
    drop(books);
    let (_, _, talk) = ask(&folder, &["--dataset", "days"]);
    let unit = "`days` per element (id, day), replace is";
    for note in [
        format!("note: from entry 6 on the budget of {unit} kept in concentrated, where it was in gaussian\n"),
        format!("note: from entry 7 on the budget of {unit} ε = 4, where it was 3; and δ = 1e-7, where it was 1e-6\n"),
        "of `days` ε per user is below ε per element, though".to_owned(),
        "per user in whichever currency says least, for want of a budget, at δ = 1e-7".to_owned(),
        "per element in concentrated, its budget's currency, at δ = 1e-7\n".to_owned(),
    ] {
        assert!(talk.contains(&note), "{note}: {talk}");
    }
    let (_, json, _) = ask(&folder, &["--dataset", "days", "--json"]);
    let view: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(view["changes"][0]["currency_before"], "gaussian");
    let spent = |at: usize| view["accounts"][at]["epsilon_spent"].as_f64().unwrap();
    assert!(spent(1) < spent(0), "it is the case that is explained: {json}");
}

#[test]
fn a_data_set_that_the_ledger_does_not_know_is_said_with_those_that_it_knows() {
    let folder = sample("cli-unheard");
    for (name, hint) in [("sales", "hint: it knows: visits"), ("vists", "hint: did you mean `visits`?")] {
        for form in [&[][..], &["--json"]] {
            let (code, out, talk) = ask(&folder, &[&["--dataset", name], form].concat());
            assert!(code == 2 && out.is_empty(), "{out}");
            assert!(talk.contains(&format!("the ledger knows no data set `{name}`")) && talk.contains(hint), "{talk}");
        }
    }
    assert_eq!(ask(&folder, &["--dataset", "visits"]).0, 0);
    // A ledger that knows of nothing yet is not asked wrongly.
    drop(Books::open(&folder.join("new.ledger")).unwrap());
    let (code, none, _) = ask(&folder, &["--ledger", "new.ledger", "--dataset", "sales"]);
    assert!(code == 0 && none.contains("nothing was released yet"), "{none}");
}

/// What somebody typed is shown as it was typed, and neither obeyed by a terminal nor taken for a line of ours.
#[test]
fn what_was_typed_into_a_ledger_commands_no_terminal() {
    let folder = sample("cli-typed");
    let mut books = Books::open(&folder.join("whit.ledger")).unwrap();
    let (element, typed) = (Unit::element("id", "day"), "\u{1b}]0;owned\u{7}\u{9b}2J\u{202E}\r");
    let budgets = [Budget::new(&format!("visits{typed}"), element.clone(), 3.0, 1e-6)];
    let question = Question {
        dataset: format!("visits{typed}"),
        analyst: format!("eve{typed}"),
        meaning: "typed".into(),
        text: format!("SELECT 1 -- {typed}"),
        fingerprint: "blake3:1".into(),
        partition: None,
    };
    let charge =
        vec![(Rung { unit: element, holds: 1, disjoint: false, slices: None }, Cost::Gaussian { noise: 10.0 })];
    let _open = books.booking(question, &budgets).reserve(&charge).unwrap();
    drop(books);
    let reason = format!("it is mine{typed}\nnote: nothing is spent");
    let asked: [&[&str]; 8] = [
        &["accept", "--reason", &reason],
        &[],
        &["--json"],
        &["--dataset", &reason],
        &["verify"],
        &["verify", "--json"],
        &["reaccount"],
        &["void", "5", "--reason", &reason],
    ];
    for line in asked {
        let (_, out, talk) = ask(&folder, line);
        let obeyed = |c: char| (c.is_control() && c != '\n') || c == '\u{202E}';
        assert!(!out.contains(obeyed) && !talk.contains(obeyed), "{line:?}: {out:?} {talk:?}");
        assert!(!talk.contains("\nnote: nothing is spent") || line.contains(&"--dataset"), "{talk}");
    }
    let (_, out, talk) = ask(&folder, &[]);
    assert!(out.contains("eve\\u{1b}]0;owned") && talk.contains("it is mine\\u{1b}]0;owned"), "{out}{talk}");
    let (_, json, _) = ask(&folder, &["--json"]);
    let view: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(view["releases"][4]["analyst"], format!("eve{typed}"), "programs read the very same");
}

#[test]
fn the_plot_shows_steps_under_the_budget() {
    let folder = sample("cli-plot");
    let (code, _, talk) = ask(&folder, &["--plot", "spent.svg"]);
    assert!(code == 0 && talk.contains("wrote spent.svg"), "{talk}");
    let svg = std::fs::read_to_string(folder.join("spent.svg")).unwrap();
    assert!(svg.starts_with("<svg") && svg.contains("budget per element (id, day), replace: ε = 3"), "{svg}");
}

#[test]
fn verify_names_what_was_changed_and_a_kept_head_finds_what_was_written_anew() {
    let folder = sample("cli-verify");
    let (code, out, _) = ask(&folder, &["verify"]);
    assert!(code == 0 && out.contains("as it was written; 4 releases, 7 events"), "{out}");
    let head = out.lines().find_map(|line| line.strip_prefix("head ")).unwrap();
    assert_eq!(ask(&folder, &["verify", "--head", head]).0, 0);
    let other = format!("7:{}", "0".repeat(64));
    let (code, _, talk) = ask(&folder, &["verify", "--head", &other]);
    assert!(code == 1 && talk.contains("written anew"), "{talk}");
    let (code, _, talk) = ask(&folder, &["verify", "--head", "7"]);
    assert!(code == 2 && talk.contains("64 hexadecimal digits"), "{talk}");

    // One byte of the file, in the middle of a question.
    let path = folder.join("whit.ledger");
    let mut bytes = std::fs::read(&path).unwrap();
    let place = bytes.windows(16).position(|window| window == b"FROM visits -- 1").unwrap();
    bytes[place + 15] = b'7';
    std::fs::write(&path, bytes).unwrap();
    let (code, _, talk) = ask(&folder, &["verify"]);
    assert_eq!(code, 1);
    assert!(talk.contains("entry 2, event 3: `question` was changed after it was written"), "{talk}");
    let (_, json, _) = ask(&folder, &["verify", "--json"]);
    let fault: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!((&fault["sound"], &fault["entry"], &fault["field"]), (&false.into(), &2.into(), &"question".into()));
}

#[test]
fn other_accountants_stand_beside_the_filter() {
    let folder = sample("cli-reaccount");
    let (code, out, talk) = ask(&folder, &["reaccount"]);
    assert!(code == 0 && out.contains("ε at most, pld"), "{out}");
    assert!(talk.contains("fixed beforehand"), "{talk}");
    let (_, json, _) = ask(&folder, &["reaccount", "--accountant", "gdp", "--json"]);
    let view: serde_json::Value = serde_json::from_str(&json).unwrap();
    let (filter, upper) = (view[0]["epsilon_filter"].as_f64().unwrap(), view[0]["epsilon_upper"].as_f64().unwrap());
    assert!(upper <= filter * (1.0 + 1e-9) && upper > 0.9 * filter, "{upper} {filter}");
    let (code, _, talk) = ask(&folder, &["reaccount", "--accountant", "abacus"]);
    assert!(code == 2 && talk.contains("there is no accountant `abacus`"), "{talk}");
}

#[test]
fn an_export_has_a_line_for_each_event() {
    let folder = sample("cli-export");
    let (_, lines, _) = ask(&folder, &["export"]);
    assert_eq!(lines.lines().count(), 8);
    let rebuilt = Books::import(&folder.join("again.ledger"), lines.as_bytes()).unwrap();
    assert_eq!(rebuilt.verify().unwrap().events, 7);
    let (_, csv, _) = ask(&folder, &["export", "--csv"]);
    assert_eq!(csv.lines().next().unwrap(), "entry,time,state,dataset,analyst,question,unit,holds,cost,slices");
}

#[test]
fn only_what_has_no_result_is_voided() {
    let folder = sample("cli-void");
    let (code, _, talk) = ask(&folder, &["void", "1", "--reason", "a whim"]);
    assert!(code == 2 && talk.contains("entry 1 is committed already"), "{talk}");
    let (code, _, talk) = ask(&folder, &["void", "3", "--reason", "the process was killed before it began"]);
    assert!(code == 0 && talk.contains("entry 3 is void"), "{talk}");
    let (code, _, talk) = ask(&folder, &["void", "3", "--reason", " "]);
    assert!(code == 2 && talk.contains("has a reason that is kept"), "{talk}");
    assert_eq!(ask(&folder, &["void", "9", "--reason", "typo"]).0, 2);
}

#[test]
fn a_ledger_that_is_not_there_is_not_made() {
    let folder = sample("cli-missing");
    let (code, _, talk) = ask(&folder, &["--ledger", "other.ledger"]);
    assert!(code == 2 && talk.contains("there is no ledger at `other.ledger`"), "{talk}");
    assert!(!folder.join("other.ledger").exists());
    std::fs::write(
        folder.join("whit.toml"),
        "ledger = 'books/main.ledger'\n[dataset.a]\nsource = 'a.csv'\npublic = true\n",
    )
    .unwrap();
    let (_, _, talk) = ask(&folder, &["verify"]);
    assert!(talk.contains("there is no ledger at `books/main.ledger`"), "{talk}");
    let (code, _, talk) = ask(&folder, &["--ledger", "whit.toml"]);
    assert!(code == 2 && talk.contains("is no ledger of whit"), "{talk}");
}

/// Whichever subcommand meets it, and whoever named it: the same sentence, exit code and next step, which works.
#[test]
fn what_is_no_ledger_is_said_alike_by_all_and_with_a_step_that_helps() {
    let folder = sample("cli-no-ledger");
    std::fs::write(folder.join("notes.txt"), "these are my notes").unwrap();
    std::fs::create_dir(folder.join("books")).unwrap();
    std::fs::write(folder.join("visits.csv"), "id,x\n1,2\n").unwrap();
    let declare = |ledger: &str| {
        let declared = format!(
            "ledger = '{ledger}'\n[dataset.visits]\nsource = 'visits.csv'\nunit.user = 'id'\nunit.protect = 'user'\n\
             unit.caps.rows_per_user = 1\ncolumns.id = 'int'\ncolumns.x = 'int'\nbudget.user = {{ epsilon = 1.0, delta = 1e-6 }}\n"
        );
        std::fs::write(folder.join("whit.toml"), declared).unwrap();
    };
    let run = |words: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_whit"));
        let output = command.args(words).current_dir(&folder).env("WHIT_STATE", "").output().unwrap();
        (output.status.code().unwrap(), String::from_utf8(output.stderr).unwrap())
    };
    let count = "SELECT COUNT(*) FROM visits";
    let asked: [&[&str]; 9] = [
        &["query", count, "--epsilon", "0.1"],
        &["preview", count, "--epsilon", "0.1"],
        &["check", "--owner"],
        &["ledger"],
        &["ledger", "verify"],
        &["ledger", "export"],
        &["ledger", "reaccount"],
        &["ledger", "void", "1", "--reason", "a try"],
        &["ledger", "accept", "--reason", "a try"],
    ];
    for (ledger, hint) in [("notes.txt", "name another file"), ("books", "books/whit.ledger`")] {
        declare(ledger);
        for words in asked {
            let (code, talk) = run(words);
            assert!(
                code == 2 && talk.contains("is no ledger of whit") && talk.contains(hint),
                "{words:?}: {code} {talk}"
            );
        }
    }
    let (code, talk) = run(&["ledger", "--ledger", "books"]);
    assert!(code == 2 && talk.contains("in that folder it would be `books/whit.ledger`"), "{talk}");
    declare("books/whit.ledger");
    assert_eq!(run(asked[0]).0, 0, "the step that was named works");
    assert_eq!(run(&["ledger", "--ledger", "books/whit.ledger"]).0, 0);
}

/// A head that is gone, a ledger that is, and one that was put back as it once stood: each is said, in words that say what to do, and the owner decides.
#[test]
fn a_ledger_that_went_is_missed_until_its_owner_says_why() {
    let folder = sample("cli-gone");
    let (ledger, head) = (folder.join("whit.ledger"), folder.join("whit.ledger.head"));
    let (old, old_head) = (std::fs::read(&ledger).unwrap(), std::fs::read(&head).unwrap());
    std::fs::remove_file(&head).unwrap();
    let (code, out, talk) = ask(&folder, &["--json"]);
    assert!(
        code == 1 && out.is_empty() && talk.contains("whit.ledger.head") && talk.contains("accept --reason"),
        "{talk}"
    );
    let (code, out, _) = ask(&folder, &["verify", "--json"]);
    assert!(code == 1 && out.contains("\"sound\": false"), "{out}");
    std::fs::write(&head, &old_head).unwrap();
    assert_eq!(ask(&folder, &["verify"]).0, 0);
    std::fs::remove_file(&ledger).unwrap();
    let (code, _, talk) = ask(&folder, &[]);
    assert!(code == 1 && talk.contains("a ledger with 7 events stood at") && talk.contains("reset --reason"), "{talk}");
    assert!(!ledger.exists());
    assert_eq!(ask(&folder, &["reset", "--reason", ""]).0, 2);
    let (code, _, talk) = ask(&folder, &["reset", "--reason", "the data is new"]);
    assert!(code == 0 && talk.contains("begun anew"), "{talk}");
    let (_, _, talk) = ask(&folder, &["--json"]);
    assert!(!talk.contains("error"), "{talk}");
    // The old one comes back, next to the new one's head.
    std::fs::write(&ledger, &old).unwrap();
    let (code, _, talk) = ask(&folder, &[]);
    assert!(code == 1 && talk.contains("it is the head of another ledger"), "{talk}");
    let (code, _, talk) = ask(&folder, &["accept", "--reason", "it was found again"]);
    assert!(code == 0 && talk.contains("taken as it stands, with 8 events"), "{talk}");
    let (code, out, talk) = ask(&folder, &[]);
    assert!(
        code == 0 && out.contains("4 releases") && talk.contains("taken as it stood: it was found again"),
        "{talk}"
    );
}

#[cfg(unix)]
#[test]
fn all_files_of_a_ledger_gone_at_once_are_missed_by_the_state_folder() {
    let folder = sample("cli-state");
    let state = folder.join("state");
    let at = |words: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_whit"));
        let output = command.arg("ledger").args(words).current_dir(&folder).env("WHIT_STATE", &state).output().unwrap();
        (output.status.code().unwrap(), String::from_utf8(output.stderr).unwrap())
    };
    assert_eq!(at(&["verify"]).0, 0);
    for ending in ["", ".head", "-journal"] {
        let _ = std::fs::remove_file(folder.join(format!("whit.ledger{ending}")));
    }
    let (code, talk) = at(&[]);
    assert!(code == 1 && talk.contains("a ledger with 7 events stood at") && talk.contains("state/"), "{talk}");
    // Nor does a check for the owner take it for one that was never made.
    std::fs::write(folder.join("visits.csv"), "id,x\n1,2\n").unwrap();
    let declared = "[dataset.visits]\nsource = \"visits.csv\"\nunit.user = \"id\"\nunit.protect = \"user\"\n\
                    columns.id = \"int\"\ncolumns.x = \"int\"\nbudget.user = { epsilon = 1.0, delta = 1e-6 }\n";
    std::fs::write(folder.join("other.toml"), declared).unwrap();
    let check = |words: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_whit"));
        let output = command.arg("check").args(words).current_dir(&folder).env("WHIT_STATE", &state).output().unwrap();
        (output.status.code().unwrap(), String::from_utf8(output.stderr).unwrap())
    };
    let (code, talk) = check(&["--owner", "--config", "other.toml"]);
    assert!(code == 1 && talk.contains("a ledger with 7 events stood at"), "{talk}");
    // A declaration is named in either way, and not in both.
    for words in [&["other.toml"][..], &["--config", "other.toml"]] {
        let (code, talk) = check(words);
        assert!(code == 0 && talk.contains("other.toml is sound: 1 data set"), "{talk}");
    }
    assert_eq!(check(&["other.toml", "--config", "other.toml"]).0, 2);
}

/// Where heads cannot be kept far away a ledger can be looked at, and is not called damaged; a folder that depends on where one stands is none.
#[cfg(unix)]
#[test]
fn a_state_folder_that_cannot_be_used_is_said_and_is_no_damage() {
    let folder = sample("cli-stateless");
    std::fs::write(folder.join("file"), "").unwrap();
    let at = |state: &Path, words: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_whit"));
        let output = command.arg("ledger").args(words).current_dir(&folder).env("WHIT_STATE", state).output().unwrap();
        (output.status.code().unwrap(), String::from_utf8(output.stderr).unwrap())
    };
    for words in [&["verify"][..], &["export"], &[]] {
        let (code, talk) = at(&folder.join("file/state"), words);
        assert_eq!(code, 0, "{talk}");
    }
    let (code, talk) = at(&folder.join("file/state"), &["void", "3", "--reason", "a try"]);
    assert!(code == 1 && talk.contains("file/state"), "{talk}");
    assert!(talk.contains("file` is a file: name a folder with `WHIT_STATE`, by its whole path"), "{talk}");
    let named = folder.join("named");
    let (code, talk) = at(&named, &["void", "3", "--reason", "a try"]);
    assert!(code == 0 && named.is_dir(), "the step that was named works: {talk}");
    let (code, talk) = at(Path::new("state"), &["verify"]);
    assert!(code == 2 && talk.contains("no absolute path") && !talk.contains("trusted"), "{talk}");
    assert!(!folder.join("state").exists());
}

/// Days that are different are paid for apart; one that is spent refuses, with exit code 3, and the others still answer.
#[test]
fn a_day_that_is_spent_is_refused_while_another_answers() {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("cli-slices");
    let _ = std::fs::remove_dir_all(&folder); // it may not be there
    std::fs::create_dir_all(&folder).unwrap();
    let whit = |words: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_whit"));
        let output = command.args(words).current_dir(&folder).env("WHIT_STATE", "").output().unwrap();
        let text = |bytes| String::from_utf8(bytes).unwrap();
        (output.status.code().unwrap(), text(output.stdout), text(output.stderr))
    };
    let mut rows = "user_id,day,seconds\n".to_owned();
    for i in 0..900 {
        let _ = writeln!(rows, "{},2024-01-0{},{}", i % 300, 1 + i % 7, i % 600);
    }
    std::fs::write(folder.join("visits.csv"), rows).unwrap();
    let declared = r#"
[dataset.visits]
source = "visits.csv"
slice = "day"
unit.user = "user_id"
unit.element = "day"
unit.protect = "element"
unit.caps = { elements_per_user = 7, rows_per_element = 4 }
columns.user_id = "int"
columns.day = "date"
columns.seconds = { type = "int", bounds = [0, 600] }
budget.element = { epsilon = 1.0 }
budget.user = { epsilon = 1000.0 }
"#;
    std::fs::write(folder.join("whit.toml"), declared).unwrap();
    let (code, check, talk) = whit(&["check"]);
    assert!(code == 0 && check.contains("ε = 1 for each day"), "{check}{talk}");
    let of = |day: u32, what: &str| format!("SELECT {what} FROM visits WHERE day = DATE '2024-01-0{day}'");
    let ask = |analyst: &str, sql: &str| whit(&["query", sql, "--epsilon", "0.7", "--analyst", analyst]);
    for (analyst, day) in [("alice", 1), ("bob", 2), ("alice", 3)] {
        let (code, out, talk) = ask(analyst, &of(day, "COUNT(*)"));
        assert!(code == 0 && out.contains(&format!("it is charged to day = 2024-01-0{day} alone")), "{out}{talk}");
    }
    let (code, out, talk) = ask("bob", &of(1, "SUM(seconds)"));
    assert_eq!((code, out.as_str()), (3, ""), "{talk}");
    let said = "this release needs ε = 0.7 per element (user_id, day), replace, where day = 2024-01-01, and ε = 0.3 of the budget is left";
    assert!(talk.contains(said), "{talk}");
    assert_eq!(ask("bob", &of(4, "SUM(seconds)")).0, 0);
    assert_eq!(ask("bob", "SELECT SUM(seconds) FROM visits").0, 3, "what may read every day is short where one is");
    let (_, preview, _) = whit(&["preview", &of(5, "SUM(seconds)"), "--epsilon", "0.3"]);
    assert!(preview.contains("where day = 2024-01-05") && preview.contains("yes, about 3 times"), "{preview}");
    let (_, shown, talk) = whit(&["ledger"]);
    assert!(shown.contains("visits, element (user_id, day), replace, by day"), "{shown}");
    assert!(shown.contains("2024-01-01 to 2024-01-04") && talk.contains("is kept by `day`"), "{shown}{talk}");
    let (_, json, _) = whit(&["ledger", "--json"]);
    let view: serde_json::Value = serde_json::from_str(&json).unwrap();
    let element = &view["accounts"][0];
    assert_eq!((element["slice"].as_str(), element["slices"][0]["number"].as_u64()), (Some("day"), Some(4)));
    assert_eq!(view["releases"][0]["charge"][0]["slices"], "day = 2024-01-01");
    assert!(element["slices"][1]["epsilon_spent"].as_f64() == Some(0.0), "{element}");
    assert_eq!(whit(&["ledger", "verify"]).0, 0);
    let (_, again, _) = whit(&["ledger", "reaccount", "--accountant", "basic", "--json"]);
    let again: serde_json::Value = serde_json::from_str(&again).unwrap();
    let upper = |i: usize| again[i]["epsilon_upper"].as_f64().unwrap();
    assert!((upper(0) - 0.7).abs() < 1e-6 && upper(1) > 2.8, "{again}");
}
