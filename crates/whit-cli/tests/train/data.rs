//! What a model reads of rows: categories, SQL, scales, what is missing, and rows that are set aside.

use super::{DECLARED, TRAINING, entries, json, refused, room, whit};
use std::path::PathBuf;

const FEATURES: &str = "features = [\"x\", \"z\"]";

/// A training with other features, or whatever else stands in their place.
fn with(features: &str) -> String {
    assert!(TRAINING.contains(FEATURES));
    TRAINING.replace(FEATURES, features)
}

/// How right a model is on rows that were set aside.
fn accuracy(name: &str, training: &str, declared: &str) -> (PathBuf, f64) {
    let folder = room(name, training);
    std::fs::write(folder.join("whit.toml"), declared).unwrap();
    let trained = json(&folder, &["train", "train.toml", "--owner"]);
    let accuracy = trained["private"]["accuracy"].as_f64().unwrap();
    (folder, accuracy)
}

/// `word` says what y is, while x and z leave one row in twenty to chance: only who reads the word is always right.
#[test]
fn categories_are_read_by_listed_keys_by_declared_ones_and_by_a_hash() {
    let declared =
        DECLARED.replace("columns.word = \"text\"", "columns.word = { type = \"text\", keys = [\"no\", \"yes\"] }");
    for (name, features, declared) in [
        (
            "keys-listed",
            "features = [{ column = \"word\", as = \"one-hot\", keys = [\"yes\"], other = true }]",
            DECLARED,
        ),
        ("keys-declared", "features = [\"x\", { column = \"Word\", as = \"one-hot\" }]", &declared),
        ("keys-hashed", "features = [{ column = \"word\", as = \"hashed\", width = 64 }]", DECLARED),
        ("keys-sql", "features = [\"CASE WHEN word = 'yes' THEN 1 ELSE -1 END\"]", DECLARED),
    ] {
        let (folder, right) = accuracy(name, &with(features), declared);
        assert!(right > 0.99, "{name}: {right}");
        // The model knows its keys, so that predicting needs no training file.
        let words = ["predict", "model.safetensors", "--owner", "--where", "split = 'test' AND word = 'yes'"];
        let said = json(&folder, &words);
        assert!(said.as_array().unwrap().iter().all(|row| row["predicted"] == "1"), "{name}");
        let again = json(&folder, &["train", "train.toml"]);
        assert_eq!((&again["stored"], entries(&folder)), (&true.into(), 1), "{name}");
    }
}

/// What is asked counts, and not how it is spelled; and what is declared counts, where keys come from there.
#[test]
fn an_expression_is_the_same_training_however_it_is_spelled() {
    let (folder, right) = accuracy("sql", &with("features = [\"x - z\"]"), DECLARED);
    assert!(right > 0.85, "{right}");
    std::fs::write(folder.join("train.toml"), with("features = [\"(X)-Z\"]")).unwrap();
    assert_eq!(json(&folder, &["train", "train.toml"])["stored"], true);
    assert_eq!(whit(&folder, &["evaluate", "train.toml", "--owner"]).0, 0);
    std::fs::write(folder.join("train.toml"), with("features = [\"x + z\"]")).unwrap();
    let (code, _, talk) = whit(&folder, &["evaluate", "train.toml", "--owner"]);
    assert!(code == 2 && talk.contains("the features differ"), "{talk}");
    assert_eq!(json(&folder, &["train", "train.toml", "--preview"])["stored"], false);
    // A target may be one, too. A quotient by zero is NULL, and its row is left out.
    let target = with("features = [\"x\", \"z\", \"x / (z - z)\"]")
        .replace("target = \"y\"", "target = \"CASE WHEN x > z THEN 1 ELSE 0 END\"");
    assert_eq!(whit(&room("sql-nothing", &target), &["train", "train.toml"]).0, 0);
    let (_, right) = accuracy("sql-target", &target.replace(", \"x / (z - z)\"", ""), DECLARED);
    assert!(right > 0.85, "{right}");
}

#[test]
fn what_is_no_feature_is_refused_before_a_row_is_read() {
    for (name, features, said) in [
        (
            "no-keys",
            "{ column = \"word\", as = \"one-hot\" }",
            &["nothing says which values there are", "as = \"hashed\""][..],
        ),
        ("float-key", "{ column = \"x\", as = \"hashed\", width = 4 }", &["is to be a category, but is a"]),
        ("key-twice", "{ column = \"word\", as = \"one-hot\", keys = [\"a\", \"a\"] }", &["have `a` twice"]),
        ("key-never", "{ column = \"y\", as = \"one-hot\", keys = [\"yes\"] }", &["have `yes`, which no row can"]),
        ("no-width", "{ column = \"word\", as = \"hashed\", width = 0 }", &["1 to 1048576"]),
        ("no-bounds", "{ column = \"x\", scale = \"bounds\" }", &["and none are declared", "bounds = [0, 600]"]),
        ("no-range", "{ column = \"x\", scale = \"bounds\", bounds = [1, 1] }", &["bounds that are no range"]),
        ("no-scale", "{ column = \"x\", scale = 0 }", &["is scaled by what is 0"]),
        ("key", "{ column = \"x\", widht = 3 }", &["unknown field `widht`", "did you mean `width`?"]),
        ("way", "{ column = \"x\", as = \"one-hod\" }", &["unknown variant `one-hod`", "did you mean `one-hot`?"]),
        ("aggregate", "\"x - avg(x)\"", &["hint: "]),
        ("random", "\"x * random()\"", &["hint: "]),
        ("no-column", "\"x + q\"", &["cannot be read"]),
        ("words", "\"lower(word)\"", &["is to be a feature, but is text", "as = \"one-hot\""]),
        ("again", "\"z\"", &["`z` is twice among the features"]),
        ("missing", "{ column = \"x\", missing = \"mean\" }", &["unknown variant `mean`"]),
    ] {
        let training = with(&format!("features = [{features}, \"z\"]"));
        refused(&format!("feature-{name}"), &training, DECLARED, 2, said);
    }
}

/// Rows of all kinds, and none, are told the same.
#[test]
fn a_preview_says_the_same_whatever_is_in_the_rows() {
    let training = with(
        "missing = \"indicator\"\nscale = \"bounds\"\nsplit = { by = \"user\", test = 0.2, seed = 7 }\n\
         features = [\"1 / x\", { column = \"word\", as = \"one-hot\", keys = [\"no\"], other = true }, { column = \"z\", scale = 0.5 }]",
    )
    .replace("evaluate_where = \"split = 'test'\"\n", "");
    let heading = "user,topic,x,z,y,word,split\n";
    let rows = ["", "u1,t1,0,much,1,\"no\",train\n", "u1,t1,,,,,\nu2,t2,1e308,-1e308,0,maybe,train\n"];
    let said = rows.map(|rows| {
        let folder = room("rows-of-all-kinds", &training);
        std::fs::write(folder.join("visits.csv"), format!("{heading}{rows}")).unwrap();
        let before = whit(&folder, &["train", "train.toml", "--preview"]);
        assert_eq!(whit(&folder, &["train", "train.toml"]).0, 0, "no row makes a training fail");
        before
    });
    assert!(said[0].0 == 0 && said[0].1.contains("it fits the budget"), "{said:?}");
    assert!(said.iter().all(|other| *other == said[0]), "{said:?}");
    assert!(said[0].2.contains("scale = \"bounds\" leaves 1 / x as is"), "{}", said[0].2);
}

#[test]
fn bounds_scale_each_column_and_what_is_missing_has_a_feature_of_its_own() {
    let declared = DECLARED
        .replace("columns.x = \"float\"", "columns.x = { type = \"float\", bounds = [-1, 1] }")
        .replace("columns.z = \"float\"", "columns.z = { type = \"float\", bounds = [-1, 1] }");
    let (folder, right) = accuracy("bounds", &with(&format!("scale = \"bounds\"\n{FEATURES}")), &declared);
    assert!(right > 0.85, "{right}");
    assert_eq!(json(&folder, &["train", "train.toml"])["card"]["parameters"], 3);
    // Every second x is missing: its rows are left out, or stay with a number that says so.
    let rows = std::fs::read_to_string(folder.join("visits.csv")).unwrap();
    let hole = |(at, row): (usize, &str)| {
        let mut cells: Vec<&str> = row.split(',').collect();
        if at % 2 == 1 {
            cells[2] = "";
        }
        cells.join(",") + "\n"
    };
    let holes: String = rows.lines().enumerate().map(hole).collect();
    for (name, missing, rows, parameters) in [("drop", "drop", 400, 3), ("indicator", "indicator", 800, 5)] {
        let folder = room(&format!("missing-{name}"), &with(&format!("missing = \"{missing}\"\n{FEATURES}")));
        std::fs::write(folder.join("visits.csv"), &holes).unwrap();
        let trained = json(&folder, &["train", "train.toml", "--owner"]);
        assert_eq!(trained["private"]["rows"], rows, "{name}");
        assert_eq!(trained["card"]["parameters"], parameters, "{name}");
    }
}

#[test]
fn rows_are_set_aside_by_user_or_by_what_they_are() {
    let split = |split: &str| {
        TRAINING.replace("evaluate_where = \"split = 'test'\"\n", "").replace("where = \"split = 'train'\"", split)
    };
    let mut rows = Vec::new();
    for (name, by, seed) in [("user", "user", 7), ("user-again", "user", 8), ("row", "row", 7)] {
        let training = split(&format!("split = {{ by = \"{by}\", test = 0.2, seed = {seed} }}"));
        let folder = room(&format!("split-{name}"), &training);
        let trained = json(&folder, &["train", "train.toml", "--owner"]);
        assert!(trained["private"]["accuracy"].as_f64().unwrap() > 0.85, "{trained}");
        rows.push(trained["private"]["rows"].as_u64().unwrap());
        assert_eq!(json(&folder, &["evaluate", "train.toml", "--owner"])["rows"], *rows.last().unwrap());
        // Another split is another training.
        std::fs::write(folder.join("train.toml"), training.replace("0.2", "0.3")).unwrap();
        assert_eq!(json(&folder, &["train", "train.toml", "--preview"])["stored"], false);
    }
    // Every user has ten rows, and they are all in one part.
    assert!(rows[0] % 10 == 0 && rows[1] % 10 == 0 && rows[2] % 10 != 0, "{rows:?}");
    assert!(rows.iter().all(|rows| (500..1100).contains(rows)) && rows[0] != rows[1], "{rows:?}");
    let both = split("split = { by = \"user\", test = 0.2 }")
        .replace("classes = 2", "classes = 2\nevaluate_where = \"x > 0\"");
    refused("split-both", &both, DECLARED, 2, &["`split` and `evaluate_where` both say"]);
    refused("split-all", &split("split = { by = \"user\", test = 1.0 }"), DECLARED, 2, &["split.test is 1"]);
    refused("split-key", &split("split = { by = \"usr\", test = 0.5 }"), DECLARED, 2, &["did you mean `user`?"]);
    let events = DECLARED.replace("unit.user = \"user\"\n", "").replace("unit.element = \"topic\"\n", "");
    let events = events.replace("\"element\"", "\"event\"").replace("unit.caps", "# ").replace("budget.user", "# ");
    let events = events.replace("budget.element", "budget.event");
    refused(
        "split-nobody",
        &split("split = { by = \"user\", test = 0.5 }"),
        &events,
        2,
        &["no user of `visits` is declared"],
    );
}

/// What a unit hides stays hidden, whatever it is made into; and what is in view decides alone which rows are set aside.
#[test]
fn expressions_are_as_private_as_the_columns_that_they_read() {
    let features = "[dataset.visits]\nsource = 'visits.csv'\nunit.public = ['split', 'z', 'y']\nunit.protect = 'feature'\n\
        columns.x = 'float'\ncolumns.z = 'float'\ncolumns.y = 'int'\ncolumns.word = 'text'\ncolumns.split = 'text'\n\
        budget.feature = { epsilon = 3.0, delta = 1e-6, currency = 'renyi' }\n";
    let padded = |text: &str| {
        with(text)
            .replace("units = 1600\n", "padding = { mean = [0.0] }\n")
            .replace("batch = 200", "rate = \"1/8\"")
            .replace(
                "where = \"split = 'train'\"\nevaluate_where = \"split = 'test'\"\n",
                "split = { by = \"row\", test = 0.2 }\n",
            )
    };
    let all_public = padded("features = [\"z * z\", { column = \"split\", as = \"one-hot\", keys = [\"train\"] }]");
    refused("made-public", &all_public, features, 2, &["all features are public"]);
    let target = padded(FEATURES).replace("target = \"y\"", "target = \"CASE WHEN x > 0 THEN 1 ELSE 0 END\"");
    refused("made-target", &target, features, 2, &["is not public, and the public part of a gradient would read it"]);
    let folder = room(
        "made-private",
        &padded("features = [\"x * z\", \"z\", { column = \"word\", as = \"hashed\", width = 2 }]"),
    );
    std::fs::write(folder.join("whit.toml"), features).unwrap();
    let (code, out, talk) = whit(&folder, &["train", "train.toml", "--preview"]);
    assert_eq!(code, 0, "{out}{talk}");
    // Two private features of three numbers need so many numbers in their place.
    let short = padded("features = [\"x * z\", \"z\", { column = \"word\", as = \"hashed\", width = 2 }]")
        .replace("mean = [0.0]", "mean = [0.0, 0.0]");
    refused("made-padding", &short, features, 2, &["hint: "]);
    let labels = "[dataset.visits]\nsource = 'visits.csv'\nunit.label = 'y'\nunit.protect = 'label'\ncolumns.x = 'float'\n\
        columns.z = 'float'\ncolumns.y = 'int'\ncolumns.word = 'text'\ncolumns.split = 'text'\n\
        budget.label = { epsilon = 3.0, delta = 1e-6, currency = 'renyi' }\n";
    let leak = padded("features = [\"x + y\"]").replace("padding = { mean = [0.0] }\n", "");
    refused("made-label", &leak, labels, 2, &["the label `y` is among the features"]);
}
