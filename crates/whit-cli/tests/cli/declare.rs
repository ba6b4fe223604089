//! `whit init` and `whit check`: from a file to a declaration that stands.

use super::folder;
use serde_json::Value;
use std::path::Path;
use std::process::{Command, Output};

/// Runs `whit` in a folder, with arguments that may hold blanks.
fn whit_in(folder: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_whit"));
    command.current_dir(folder).args(arguments).env("WHIT_STATE", "").output().expect("the binary was built")
}

fn printed(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).expect("text")
}

fn shown(output: &Output) -> String {
    assert!(output.status.success(), "{}", printed(output));
    String::from_utf8(output.stdout.clone()).expect("text")
}

/// A folder with visits and countries.
fn shop(name: &str) -> std::path::PathBuf {
    let folder = folder(name);
    std::fs::create_dir_all(folder.join("visits")).expect("our own folder");
    std::fs::write(folder.join("visits/1.csv"), "user_id,day,country,seconds\n1,2024-01-01,at,77.5\n").expect("room");
    std::fs::write(folder.join("visits/2.csv"), "user_id,day,country,seconds\n2,2024-01-02,de,12\n").expect("room");
    std::fs::write(folder.join("countries.csv"), "code,name\nat,Austria\nde,Germany\n").expect("room");
    folder
}

const DECLARED: &str = r#"
[dataset.visits]
source = "visits/*.csv"
unit.user = "user_id"
unit.element = "day"
unit.protect = "element"
unit.caps = { elements_per_user = 30 }
columns.user_id = "int"
columns.day = "date"
columns.country = { type = "text", keys = "countries.code" }
columns.seconds = "float"
budget.element = { epsilon = 3.0, delta = 1e-6 }
budget.user = { epsilon = 30.0, delta = 1e-6 }

[dataset.countries]
source = "countries.csv"
public = true
"#;

#[test]
fn a_draft_is_written_once_and_stands() {
    let folder = shop("init_and_check");
    let output = whit_in(&folder, &["init", "visits"]);
    assert!(output.status.success() && output.stdout.is_empty());
    let talk = printed(&output);
    assert!(talk.contains("wrote whit.toml") && talk.contains("user_id was taken for the user"), "{talk}");
    assert!(talk.contains("give bounds to what you want to add up: seconds"), "{talk}");
    let draft = std::fs::read_to_string(folder.join("whit.toml")).expect("it was written");
    assert!(draft.contains("[dataset.visits]") && draft.contains("unit.user = \"user_id\""), "{draft}");
    assert!(!draft.contains("77.5"), "no value leaves the data: {draft}");
    let text = shown(&whit_in(&folder, &["check"]));
    assert!(text.starts_with("visits: csv ("), "{text}");
    assert!(text.contains("protects one user (user_id), replace"), "{text}");

    let again = whit_in(&folder, &["init", "visits"]);
    assert_eq!(again.status.code(), Some(2));
    assert!(printed(&again).contains("error: `whit.toml` is there already\n  hint: "), "{}", printed(&again));
    assert!(whit_in(&folder, &["init", "visits", "--force", "--name", "calls"]).status.success());
    assert!(std::fs::read_to_string(folder.join("whit.toml")).expect("still there").contains("[dataset.calls]"));
}

#[test]
fn a_draft_elsewhere_finds_its_way_back() {
    let folder = shop("init_elsewhere");
    let output = whit_in(&folder, &["init", "visits/*.csv", "--output", "declared/whit.toml"]);
    assert!(output.status.success(), "{}", printed(&output));
    let text = shown(&whit_in(&folder, &["check", "declared/whit.toml"]));
    assert!(text.starts_with("visits: csv ("), "{text}");
}

#[test]
fn a_draft_without_a_user_asks_for_one() {
    let folder = shop("init_without_user");
    let output = whit_in(&folder, &["init", "countries.csv"]);
    assert!(printed(&output).contains("say whose a row is: uncomment unit.user"), "{}", printed(&output));
    let check = whit_in(&folder, &["check"]);
    assert_eq!((check.status.code(), check.stdout.len()), (Some(2), 0));
    let talk = printed(&check);
    assert!(
        talk.starts_with("error: whit.toml, line ") && talk.contains("`dataset.countries.unit.user` is missing"),
        "{talk}"
    );
}

#[test]
fn check_shows_the_ladder_with_its_caps_and_budgets() {
    let folder = shop("check_ladder");
    std::fs::write(folder.join("whit.toml"), DECLARED).expect("room");
    let text = shown(&whit_in(&folder, &["check", "whit.toml"]));
    let line = |start: &str| {
        let found =
            text.lines().find(|line| line.starts_with(start)).unwrap_or_else(|| panic!("no {start} in\n{text}"));
        found.split("  ").map(str::trim).filter(|cell| !cell.is_empty()).map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(line("rung"), ["rung", "unit", "change", "holds", "linked by", "budget"]);
    assert_eq!(line("element "), ["element", "(user_id, day)", "replace", "1", "—", "ε = 3, δ = 1e-6"]);
    assert_eq!(line("user "), ["user", "(user_id)", "replace", "60", "elements_per_user = 30", "ε = 30, δ = 1e-6"]);
    assert_eq!(line("country "), ["country", "text", "those of countries.code"]);
    assert!(text.contains("- no bounds on `seconds`: sums, means and quantiles of it are refused until"), "{text}");
    assert!(text.contains("countries: csv (countries.csv)") && text.contains("public: it joins freely"), "{text}");
    assert!(!folder.join("whit.ledger").exists(), "checking spends nothing");

    let json: Value = serde_json::from_str(&shown(&whit_in(&folder, &["check", "--json"]))).expect("JSON");
    let visits = &json["datasets"][1];
    assert_eq!((&visits["name"], visits.get("files"), visits.get("bytes")), (&Value::from("visits"), None, None));
    assert_eq!((&visits["rungs"][1]["rung"], &visits["rungs"][1]["holds"]), (&Value::from("user"), &Value::from(60)));
    assert_eq!(visits["rungs"][0]["budgets"][0]["epsilon"], 3.0);
    assert_eq!(visits["columns"][2]["keys"], "countries.code");
    assert_eq!(visits["missing"].as_array().map(Vec::len), Some(4), "{visits}");
}

/// The exit code is 2, and the sentence names the place and the next step.
#[test]
fn what_is_wrong_is_said_with_a_hint() {
    let folder = shop("check_faults");
    for (line, instead, expected) in [
        (
            "unit.user = \"user_id\"",
            "unit.user = \"usr_id\"",
            "`visits` has no column `usr_id`, which `unit.user` names\n  hint: did you mean `user_id`?",
        ),
        (
            "unit.protect = \"element\"",
            "unit.proteckt = \"element\"",
            "whit.toml, line 6: `dataset.visits.unit.proteckt` is not a key that is known here\n  hint: did you mean `protect`?",
        ),
        ("visits/*.csv", "visit/*.csv", "no file matches `visit/*.csv`, the source of `visits`\n  hint: "),
        (
            "[dataset.countries]",
            "[dataset.visits]",
            "whit.toml, line 15: this is not TOML: duplicate key at `[dataset.visits]`\n  hint: ",
        ),
        (
            "columns.country = {",
            "columns.country = { bounds = [0, 1],",
            "whit.toml, line 10: `dataset.visits.columns.country` has bounds that are not of its type, which is text\n  hint: ",
        ),
    ] {
        std::fs::write(folder.join("whit.toml"), DECLARED.replace(line, instead)).expect("room");
        let output = whit_in(&folder, &["check"]);
        assert_eq!((output.status.code(), output.stdout.len()), (Some(2), 0), "{instead}");
        assert!(printed(&output).starts_with(&format!("error: {expected}")), "{instead}: {}", printed(&output));
    }
    let missing = whit_in(&folder, &["check", "nowhere.toml"]);
    assert_eq!(missing.status.code(), Some(2));
    assert!(
        printed(&missing).contains("`nowhere.toml` cannot be read") && printed(&missing).contains("whit init"),
        "{}",
        printed(&missing)
    );
    let none = whit_in(&folder, &["init", "nothing.csv", "--output", "other.toml"]);
    assert_eq!(none.status.code(), Some(2));
    assert!(printed(&none).starts_with("error: no file matches `nothing.csv`\n  hint: "), "{}", printed(&none));
    let name = whit_in(&folder, &["init", "visits", "--name", "My Visits", "--output", "other.toml"]);
    assert!(printed(&name).contains("take --name my_visits"), "{}", printed(&name));
    assert!(!folder.join("other.toml").exists());
}

/// Rows of which nearly all are wrong, in every way.
const ODD: &str = "user_id,day,country,seconds,note\n1,2024-01-01,at,5,x\n1,2024-01-01,at,700,x\n1,2024-01-01,mars,n/a,x\n\
                   ,2024-01-02,de,7,x\n2,yesterday,de,7,\"open\n3,2024-01-03\n4,2024-01-03,de,1,x,y,z\nnobody,2024-01-04,at,3,x\n";

const OWNED: &str = r#"
[dataset.visits]
source = "visits/*.csv"
unit.user = "user_id"
unit.element = "day"
unit.protect = "element"
unit.caps = { elements_per_user = 1, rows_per_element = 2 }
columns.user_id = "int"
columns.day = "date"
columns.country = { type = "text", keys = ["at", "de"] }
columns.seconds = { type = "int", bounds = [0, 600] }
budget.element = { epsilon = 3.0, delta = 1e-6 }
"#;

#[test]
fn the_owner_sees_what_does_not_fit_and_the_analyst_does_not() {
    let folder = shop("check_owner");
    std::fs::write(folder.join("whit.toml"), OWNED).expect("room");
    let heading = ODD.lines().next().expect("it has one");
    std::fs::write(folder.join("visits/1.csv"), format!("{heading}\n1,2024-01-01,at,5,x\n")).expect("room");
    let analyst = |arguments: &[&str]| {
        let output = whit_in(&folder, arguments);
        (output.status.code(), output.stdout, output.stderr)
    };
    let ways: [&[&str]; 3] =
        [&["check"], &["check", "--json"], &["preview", "SELECT SUM(seconds) FROM visits", "--epsilon", "0.1"]];
    let before = ways.map(analyst);
    std::fs::write(folder.join("visits/1.csv"), ODD).expect("room");
    std::fs::write(folder.join("visits/3.csv"), "").expect("room");
    assert_eq!(ways.map(analyst), before, "nothing that an analyst sees follows from rows");

    let output = whit_in(&folder, &["check", "--owner", "--json"]);
    assert!(printed(&output).contains("for the owner of the data only"), "{}", printed(&output));
    let json: Value = serde_json::from_str(&shown(&output)).expect("JSON");
    let visits = &json["datasets"][0];
    assert_eq!((&visits["rows"], &visits["files"], &visits["untyped"][0]), (&9.into(), &3.into(), &"note".into()));
    assert_eq!(visits["without_user"], 2, "one is empty, and one is no number");
    let column = |name: &str| {
        let columns = visits["columns"].as_array().expect("a list");
        columns.iter().find(|column| column["name"] == name).expect("it is declared").clone()
    };
    let seconds = column("seconds");
    assert_eq!((&seconds["wrong"], &seconds["missing"], &seconds["clamped"]), (&1.into(), &2.into(), &1.into()));
    assert!(seconds["first_wrong"].as_str().expect("a place").ends_with("visits/1.csv:4"), "{seconds}");
    assert_eq!((&column("day")["wrong"], &column("country")["other_keys"]), (&1.into(), &1.into()));
    let faults: Vec<(&str, u64)> = visits["lines"]
        .as_array()
        .expect("a list")
        .iter()
        .map(|line| (line["fault"].as_str().expect("words"), line["rows"].as_u64().expect("a number")))
        .collect();
    assert_eq!(
        faults,
        [
            ("fewer values than the heading has names", 1),
            ("more values than the heading has names", 1),
            ("a quote that its line does not close", 1)
        ]
    );
    let cap = &visits["caps"][1];
    assert_eq!((&cap["cap"], &cap["over"], &cap["beyond"]), (&"rows_per_element".into(), &1.into(), &1.into()));

    let text = shown(&whit_in(&folder, &["check", "--owner"]));
    for words in [
        "9 rows in 3 files",
        "2 (22.2 %) rows have no user",
        "not declared, so nobody can ask for them: note",
        "rows_per_element",
    ] {
        assert!(text.contains(words), "{words}: {text}");
    }
    assert!(!folder.join("whit.ledger").exists(), "checking makes no ledger");
}

#[test]
fn a_draft_says_that_it_looked_and_its_types_stand() {
    let folder = shop("init_types");
    std::fs::write(folder.join("visits/1.csv"), ODD).expect("room");
    let output = whit_in(&folder, &["init", "visits"]);
    let talk = printed(&output);
    assert!(output.status.success() && talk.contains("values were looked at to draft some"), "{talk}");
    let draft = std::fs::read_to_string(folder.join("whit.toml")).expect("it was written");
    assert!(draft.contains("It LOOKED at values") && draft.contains("columns.seconds.type = "), "{draft}");
    assert!(!draft.contains("mars") && !draft.contains("yesterday"), "and nothing but types: {draft}");
    assert!(whit_in(&folder, &["check"]).status.success());
    // Without types there is nothing to ask for, and the next step is shown.
    let bare = draft.lines().filter(|line| !line.starts_with("columns.")).collect::<Vec<_>>().join("\n");
    std::fs::write(folder.join("whit.toml"), bare).expect("room");
    let refused = whit_in(&folder, &["check"]);
    assert_eq!(refused.status.code(), Some(2));
    let talk = printed(&refused);
    assert!(
        talk.contains("`visits.user_id`, which `unit.user` names, has no declared type") && talk.contains("whit init"),
        "{talk}"
    );
}

/// Files as people have them, drafted, checked and asked: what comes out is what is in them.
#[test]
fn files_as_they_are_are_noticed_drafted_and_read() {
    let wide = |text: &str| -> Vec<u8> {
        [0xfeff].into_iter().chain(text.encode_utf16()).flat_map(u16::to_le_bytes).collect()
    };
    let lines = |sign: &str| {
        let line = |all: String, user: i32| format!("{all}{user}{sign}{user}.5{sign}caf\u{e9}\n");
        (1..=40).fold(String::new(), line)
    };
    let latin = |text: &str| text.chars().map(|letter| u8::try_from(letter).expect("Latin-1")).collect::<Vec<u8>>();
    let cases: [(&str, Vec<u8>, &[&str]); 5] = [
        ("visits.csv", format!("user_id;seconds;place\n{}", lines(";")).into_bytes(), &["delimiter = \";\""]),
        ("visits.tsv", format!("user_id\tseconds\tplace\n{}", lines("\t")).into_bytes(), &[]),
        ("visits.csv", wide(&format!("user_id,seconds,place\n{}", lines(","))), &["encoding = \"utf-16\""]),
        (
            "visits.csv",
            latin(&format!("# made on Monday\nuser_id|seconds|place\n{}", lines("|"))),
            &["encoding = \"latin1\"", "comment = \"#\"", "delimiter = \"|\""],
        ),
        (
            "day=2024-01-01/visits.csv",
            format!("user_id,seconds,place\n{}", lines(",")).into_bytes(),
            &["partitioned_by = [\"day\"]"],
        ),
    ];
    for (case, (name, bytes, expected)) in cases.into_iter().enumerate() {
        let folder = folder(&format!("init_as_they_are_{case}"));
        let path = folder.join("data").join(name);
        std::fs::create_dir_all(path.parent().expect("a folder")).expect("our own folder");
        std::fs::write(&path, bytes).expect("room");
        let output = whit_in(&folder, &["init", "data", "--user", "user_id", "--rows-per-user", "2"]);
        assert!(output.status.success(), "{}", printed(&output));
        let mut draft = std::fs::read_to_string(folder.join("whit.toml")).expect("it was written");
        for line in
            expected.iter().chain(&["unit.caps = { rows_per_user = 2 }", "unit.user = \"user_id\"  # as was said"])
        {
            assert!(draft.contains(line), "{name}: `{line}` is not in\n{draft}");
        }
        draft = draft
            .replace("epsilon = 3.0", "epsilon = 1000.0")
            .replace("# columns.seconds.bounds = \"auto\"", "columns.seconds.bounds = [0, 50]");
        std::fs::write(folder.join("whit.toml"), draft).expect("room");
        shown(&whit_in(&folder, &["check"]));
        let sql = "SELECT COUNT(*) AS n, SUM(seconds) AS s FROM data WHERE place = 'caf\u{e9}'";
        let answer: Value =
            serde_json::from_str(&shown(&whit_in(&folder, &["query", sql, "--epsilon", "500", "--json"])))
                .expect("JSON");
        let row = &answer["rows"][0];
        let number = |at: usize| row[at]["value"].as_f64().expect("a number");
        assert!((number(0) - 40.0).abs() < 1.5, "{name}: {answer}");
        assert!((number(1) - 840.0).abs() < 20.0, "{name}: {answer}");
    }
    let folder = shop("init_user");
    let output = whit_in(&folder, &["init", "visits", "--user", "nobody"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(
        printed(&output).contains("`visits` has no column `nobody`\n  hint: its columns are: user_id, day"),
        "{}",
        printed(&output)
    );
}
