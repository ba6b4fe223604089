//! Who sees what: all that whoever trains can see before a charge follows from files that everybody may read, and what comes after it is the release.

use super::{DECLARED, TRAINING, json, room, whit};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

/// A row of the file, as text.
#[derive(Clone)]
struct Row {
    user: u64,
    topic: u64,
    x: String,
    z: String,
    y: String,
    split: &'static str,
}

struct Dice(u64);

impl Dice {
    fn below(&mut self, many: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % many
    }

    fn one<T: Copy>(&mut self, of: &[T]) -> T {
        of[self.below(of.len() as u64) as usize]
    }

    fn number(&mut self) -> String {
        format!("0.{:04}", 1 + self.below(9_998))
    }

    /// Whatever a row may hold: good, missing, too large, none of the classes.
    fn row(&mut self, user: u64, topic: u64) -> Row {
        let fine = self.number();
        let x = self.one(&["", "1e300", "-1e39", "much", "0.5", "0.25"]).to_owned();
        let x = if self.below(2) == 0 { fine } else { x };
        let (z, y) = (self.number(), self.one(&["0", "1", "1", "", "7", "-1", "0.5", "yes"]).to_owned());
        Row { user, topic, x, z, y, split: self.one(&["train", "train", "test"]) }
    }
}

fn write(folder: &Path, rows: &[Row]) {
    let mut text = "user,topic,x,z,y,split\n".to_owned();
    for Row { user, topic, x, z, y, split } in rows {
        let _ = writeln!(text, "u{user},t{topic},{x},{z},{y},{split}");
    }
    std::fs::write(folder.join("visits.csv"), text).unwrap();
}

/// One training, with data sets that are neighbours under its unit.
struct Case {
    declared: String,
    training: String,
    one: Vec<Row>,
    other: Vec<Row>,
    name: String,
}

fn case(number: u64) -> Case {
    let mut dice = Dice(number * 7919 + 1);
    let kind = ["event", "element", "user", "feature", "label"][(number % 5) as usize];
    let change = if matches!(kind, "event" | "user") { dice.one(&["replace", "add-remove"]) } else { "replace" };
    let in_view = matches!(kind, "feature" | "label");
    let keyed = !in_view || dice.below(2) == 0;
    let (elements, rows) = (dice.one(&[1, 2, 4]), dice.one(&[1, 2, 5]));
    let mut declared = "[dataset.visits]\nsource = \"visits.csv\"\n".to_owned();
    for (column, of) in
        [("user", "text"), ("topic", "text"), ("x", "float"), ("z", "float"), ("y", "int"), ("split", "text")]
    {
        let _ = writeln!(declared, "columns.{column} = \"{of}\"");
    }
    if keyed {
        declared.push_str("unit.user = \"user\"\n");
    }
    match kind {
        "feature" => declared.push_str("unit.public = [\"split\", \"z\", \"y\"]\n"),
        "label" => declared.push_str("unit.public = [\"split\"]\nunit.label = \"y\"\n"),
        _ => {
            declared.push_str("unit.public = [\"split\"]\nunit.element = \"topic\"\n");
            let _ = writeln!(declared, "unit.caps = {{ elements_per_user = {elements}, rows_per_element = {rows} }}");
        }
    }
    let _ = writeln!(declared, "unit.protect = \"{kind}\"");
    if matches!(kind, "event" | "user") {
        let _ = writeln!(declared, "unit.change = \"{change}\"");
    }
    let _ = writeln!(declared, "budget.{kind} = {{ epsilon = 1000.0, delta = 1e-6, currency = \"renyi\" }}");
    let chosen = if in_view {
        dice.one(&["", "split = 'train'", "split = 'moon'"])
    } else {
        dice.one(&["", "split = 'train'", "user = 'u3' AND x >= 0.5", "x > 100", "y = 1 AND topic = 't1'"])
    };
    let task = if kind == "label" {
        dice.one(&["classes = 2", "classes = 3"])
    } else {
        dice.one(&["classes = 2", "classes = 3", "loss = \"squared\"", "loss = \"poisson\"", "loss = \"logistic\""])
    };
    let mut training = format!("dataset = \"visits\"\nfeatures = [\"x\", \"z\"]\ntarget = \"y\"\n{task}\n");
    if !chosen.is_empty() {
        let _ = writeln!(training, "where = \"{chosen}\"");
    }
    if matches!(kind, "element" | "user") && dice.below(4) == 0 {
        training.push_str("projection = { components = 1, radius = 1.5, noise = 10.0 }\n");
    }
    training.push_str("[privacy]\nnoise = 3.0\nclip = 1.0\nsteps = 6\n");
    match (in_view, kind == "user" && dice.below(2) == 0) {
        (false, true) => training.push_str("sampling = \"fixed\"\nunits = 4\nbatch = 2\n"),
        (true, _) if chosen != "split = 'moon'" && dice.below(2) == 0 => training.push_str("rate = \"1/4\"\n"),
        _ => {
            let _ = writeln!(training, "rate = \"1/4\"\nunits = {}", dice.one(&[5, 40, 2000]));
        }
    }
    if kind == "element" && dice.below(3) == 0 {
        training.push_str("draw = \"users\"\n");
    }
    if kind == "feature" {
        training.push_str("padding = { mean = [0.5] }\n");
    }
    training.push_str("[output]\nmodel = \"model.safetensors\"\n");
    let one: Vec<Row> = (0..40)
        .map(|row| {
            let (user, topic) = (dice.below(6), dice.below(4));
            let plain = Row { x: dice.number(), y: dice.below(2).to_string(), ..dice.row(user, topic) };
            if row % 7 == 6 { dice.row(user, topic) } else { plain }
        })
        .collect();
    let mut other = one.clone();
    let (at, user, topic) = (dice.below(40) as usize, dice.below(6), dice.below(4));
    let many = dice.one(&[0, 1, 3, 30]);
    match (kind, change) {
        ("event", "add-remove") if dice.below(2) == 0 => drop(other.remove(at)),
        ("event", "add-remove") => other.push(dice.row(user, topic)),
        ("event", _) => other[at] = dice.row(user, topic),
        ("element", _) => {
            other.retain(|row| (row.user, row.topic) != (user, topic));
            other.extend((0..many).map(|_| dice.row(user, topic)));
        }
        ("user", _) => {
            other.retain(|row| row.user != user);
            let rows: Vec<Row> = (0..many).map(|row| dice.row(user, row % 4)).collect();
            other.extend(rows);
        }
        ("feature", _) => dice.one(&["", "1e300", "much", "0.75"]).clone_into(&mut other[at].x),
        _ => dice.one(&["", "7", "-1", "yes", "0", "1", "2"]).clone_into(&mut other[at].y),
    }
    Case { declared, training, one, other, name: format!("{number}-{kind}") }
}

/// All that a folder shows by its names and sizes, but for the data and the ledger.
fn files(folder: &Path) -> Vec<(String, u64)> {
    let files = std::fs::read_dir(folder).unwrap().map(Result::unwrap);
    let named = files.map(|file| (file.file_name().into_string().unwrap(), file.metadata().unwrap().len()));
    let mut named: Vec<_> =
        named.filter(|(name, _)| name != "visits.csv" && !name.starts_with("whit.ledger")).collect();
    named.sort();
    named
}

/// A folder with one of the data sets, and nothing else that differs.
fn with(case: &Case, which: &str, rows: &[Row]) -> PathBuf {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("roles").join(&case.name).join(which);
    let _ = std::fs::remove_dir_all(&folder); // it may not be there
    std::fs::create_dir_all(&folder).unwrap();
    write(&folder, rows);
    std::fs::write(folder.join("whit.toml"), &case.declared).unwrap();
    std::fs::write(folder.join("train.toml"), &case.training).unwrap();
    folder
}

/// 120 trainings of every unit, on neighbours with rows that do not fit, users over their caps, or no rows at all: `whit train --preview` says the very same of both, and so does every
/// fourth training, but for the parameters.
#[test]
fn neighbours_look_the_same_before_a_charge_and_after_it() {
    let (mut trained, mut previewed) = (0, 0);
    for number in 0..120 {
        let case = case(number);
        let folders = [with(&case, "one", &case.one), with(&case, "other", &case.other)];
        let printed = folders.each_ref().map(|folder| whit(folder, &["train", "train.toml", "--preview"]));
        assert_eq!(printed[0], printed[1], "{}\n{}{}", case.name, case.declared, case.training);
        assert!(!printed[0].2.contains("panicked"), "{}", printed[0].2);
        assert_eq!(files(&folders[0]), files(&folders[1]));
        previewed += usize::from(printed[0].0 == 0);
        if number / 5 % 4 != 0 {
            continue;
        }
        let printed = folders.each_ref().map(|folder| whit(folder, &["train", "train.toml"]));
        let (code, out, talk) = &printed[0];
        // How far directions are apart is released with noise, and may differ.
        if case.training.contains("projection") {
            assert_eq!(printed[0].0, printed[1].0, "{}: {talk}{}", case.name, printed[1].2);
        } else {
            assert_eq!(printed[0], printed[1], "{}\n{}{}", case.name, case.declared, case.training);
            assert_eq!(files(&folders[0]), files(&folders[1]));
        }
        assert!(*code == 0 || *code == 2, "{}: {out}{talk}", case.name);
        trained += usize::from(*code == 0);
    }
    assert!(previewed >= 100 && trained >= 24, "{previewed} previews and {trained} trainings were let through");
}

/// An income in 17 previews, a number of users in as many: neither `where` nor `units` asks the rows.
#[test]
fn a_preview_does_not_ask_the_rows() {
    let folder = room("no-oracle", TRAINING);
    let preview = |training: String| {
        std::fs::write(folder.join("train.toml"), training).unwrap();
        whit(&folder, &["train", "train.toml", "--preview"])
    };
    let answers: Vec<_> =
        (-2..=2).map(|k| preview(TRAINING.replace("split = 'train'", &format!("user = 'u17' AND x >= {k}")))).collect();
    assert!(answers[0].0 == 0 && answers.iter().all(|answer| *answer == answers[0]), "{answers:?}");
    for units in [1, 1_999, 2_000, 2_001] {
        let (code, _, talk) = preview(
            TRAINING.replace("units = 1600", &format!("units = {units}")).replace("batch = 200", "rate = \"1/8\""),
        );
        assert_eq!(code, 0, "{units}: {talk}");
    }
    // Files that are no files of rows any more, though their heads are: no row is read.
    std::fs::write(folder.join("train.toml"), TRAINING).unwrap();
    let text = std::fs::read_to_string(folder.join("visits.csv")).unwrap();
    let before = whit(&folder, &["train", "train.toml", "--preview"]);
    let half: Vec<&str> = text.lines().take(1_000).collect();
    std::fs::write(folder.join("visits.csv"), half.join("\n")).unwrap();
    assert_eq!(whit(&folder, &["train", "train.toml", "--preview"]), before);
}

/// No row at all, rows that are none of the classes, users far over their caps: all of it trains, and says nothing of it.
#[test]
fn nothing_in_a_row_stops_a_training() {
    let tight =
        DECLARED.replace("elements_per_user = 5, rows_per_element = 3", "elements_per_user = 2, rows_per_element = 1");
    let cases = [
        ("none", TRAINING.replace("split = 'train'", "split = 'moon'"), DECLARED),
        (
            "range",
            TRAINING.replace("classes = 2", "classes = [\"no\", \"maybe\"]").replace("\"y\"", "\"word\""),
            DECLARED,
        ),
        (
            "logistic",
            TRAINING.replace("classes = 2", "loss = \"logistic\"").replace("\"y\"", "\"x\"").replace("[\"x\",", "["),
            DECLARED,
        ),
        ("caps", TRAINING.to_owned(), &tight),
    ];
    for (name, training, declared) in cases {
        let folder = room(&format!("stops-{name}"), &training);
        std::fs::write(folder.join("whit.toml"), declared).unwrap();
        let (code, out, talk) = whit(&folder, &["train", "train.toml"]);
        assert!(code == 0 && out.contains("entry 1"), "{name}: {talk}");
        assert_eq!(talk.lines().filter(|line| !line.starts_with("wrote ")).count(), 0, "{name}: {talk}");
    }
}

#[test]
fn what_was_not_sanitised_is_for_the_owner_who_says_so() {
    let folder = room("owner", TRAINING);
    std::fs::copy(folder.join("visits.csv"), folder.join("known.csv")).unwrap();
    let declared = format!("{DECLARED}\n[dataset.known]\nsource = \"known.csv\"\npublic = true\n");
    std::fs::write(folder.join("whit.toml"), declared).unwrap();
    let refused = |words: &[&str]| {
        let (code, out, talk) = whit(&folder, words);
        assert!(code == 2 && out.is_empty() && talk.contains("--owner"), "{words:?}: {talk}");
    };
    refused(&["train", "train.toml", "--plot", "curve.svg"]);
    assert!(!folder.join("whit.ledger").exists());
    let trained = json(&folder, &["train", "train.toml"]);
    assert_eq!(trained["private"], serde_json::Value::Null, "{trained}");
    let (_, _, talk) = whit(&folder, &["train", "train.toml"]);
    assert!(!talk.contains("loss"), "{talk}");
    refused(&["evaluate", "train.toml"]);
    refused(&["evaluate", "train.toml", "--json"]);
    refused(&["predict", "model.safetensors"]);
    refused(&["predict", "model.safetensors", "--csv", "predicted.csv"]);
    assert!(!folder.join("curve.svg").exists() && !folder.join("predicted.csv").exists());
    // Rows that everybody knows are everybody's to ask about.
    assert_eq!(json(&folder, &["predict", "model.safetensors", "--dataset", "known"]).as_array().unwrap().len(), 4000);
    assert_eq!(json(&folder, &["evaluate", "train.toml", "--owner"])["rows"], 800);
}

/// Whoever knows all values but one could find it by trying, if a hash of the files were shown anywhere.
#[test]
fn no_hash_of_the_data_leaves() {
    let folder = room("no-hash", TRAINING);
    let out = json(&folder, &["train", "train.toml"]).to_string();
    let mut texts = vec![("stdout", out.into_bytes())];
    for name in ["model.safetensors", "model.card.json", "model.card.txt"] {
        texts.push((name, std::fs::read(folder.join(name)).unwrap()));
    }
    for (name, mut text) in texts {
        // The checksum of the released numbers is everybody's to compute.
        let says = b"\"checksum\":\"";
        if let Some(at) = text.windows(says.len()).position(|bytes| bytes == says) {
            text.drain(at + says.len()..at + says.len() + 64);
        }
        let longest = text.split(|byte| !byte.is_ascii_hexdigit()).map(<[u8]>::len).max().unwrap_or(0);
        assert!(longest < 32, "{name} has {longest} hexadecimal digits in a row");
    }
}

#[test]
fn a_training_is_not_paid_for_beside_the_budget_of_its_users() {
    let folder = room("through", TRAINING);
    let through = "unit.user = \"visits.user -> people.user\"";
    assert!(DECLARED.contains("unit.user = \"user\""), "{DECLARED}");
    let people = "[dataset.people]\nsource = \"people.csv\"\nunit.user = \"user\"\nunit.protect = \"user\"\ncolumns.user = \"text\"\n\
                  budget.user = { epsilon = 1.0, delta = 1e-6 }\n";
    std::fs::write(folder.join("people.csv"), "user\nu1\n").unwrap();
    let declared = DECLARED.replace("unit.user = \"user\"", through);
    std::fs::write(folder.join("whit.toml"), format!("{declared}\n{people}")).unwrap();
    let (code, out, talk) = whit(&folder, &["train", "train.toml"]);
    assert!(code == 2 && out.is_empty() && talk.contains("has a budget of its own"), "{talk}");
    let kept: Vec<&str> = declared.lines().filter(|line| !line.starts_with("budget")).collect();
    let without: String = kept.join("\n") + "\n";
    std::fs::write(folder.join("whit.toml"), format!("{without}\n{people}")).unwrap();
    let (code, out, talk) = whit(&folder, &["train", "train.toml"]);
    assert!(code == 2 && out.is_empty() && talk.contains("pays from the budget of `people`"), "{talk}");
}
