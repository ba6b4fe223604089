//! Columns that no training can learn from: refused by their types, before anything is charged and without a look at a row.

use super::{DECLARED, TRAINING, refused, room, whit};

fn with(old: &str, new: &str) -> String {
    assert!(TRAINING.contains(old), "{old}");
    TRAINING.replace(old, new)
}

/// Texts are no numbers from 0, so that such a training would be paid for and learn from no row.
#[test]
fn a_target_of_text_needs_the_names_of_its_classes() {
    let word = with("target = \"y\"", "target = \"word\"");
    let next = ["name them: classes = [\"no\", \"yes\"]", "columns that are: x, z, y", "columns.word = \"float\""];
    let counted = ["`visits.word` is text, and `classes = 2` are numbers from 0"];
    refused("text-counted", &word, DECLARED, 2, &[&counted[..], &next].concat());
    let none = ["`visits.word` is text, and nothing says which classes there are"];
    refused("text-none", &word.replace("classes = 2\n", ""), DECLARED, 2, &[&none[..], &next].concat());
    // What the hints say works.
    for (name, training, declared) in [
        ("text-named", word.replace("classes = 2", "classes = [\"no\", \"yes\"]"), DECLARED.to_owned()),
        ("text-declared", word, DECLARED.replace("columns.word = \"text\"", "columns.word = \"float\"")),
    ] {
        let folder = room(name, &training);
        std::fs::write(folder.join("whit.toml"), declared).unwrap();
        let (code, out, talk) = whit(&folder, &["train", "train.toml", "--preview"]);
        assert!(code == 0 && out.contains("it fits the budget"), "{name}: {out}{talk}");
    }
}

#[test]
fn a_column_of_another_kind_is_refused_with_those_that_would_do() {
    let dated = DECLARED.replace("columns.word = \"text\"", "columns.word = \"date\"");
    let would_do = "columns that are: x, z, y";
    let target = with("target = \"y\"", "target = \"word\"");
    refused("date-target", &target, &dated, 2, &["`visits.word` is to be predicted, but is a date", would_do]);
    let feature = with("\"x\"", "\"word\"");
    refused("date-feature", &feature, &dated, 2, &["`visits.word` is to be a feature, but is a date", would_do]);
    let next = ["`visits.word` is to be a feature, but is text", would_do, "columns.word = \"float\""];
    refused("text-feature", &feature, DECLARED, 2, &next);
    let untyped = DECLARED.replace("columns.word = \"text\"\n", "");
    let next = ["`visits.word`, which `target` names, has no declared type", "declare columns.word.type"];
    refused("untyped-target", &target, &untyped, 2, &next);
    refused("untyped-feature", &feature, &untyped, 2, &["`visits.word`, which `features` names", next[1]]);
    let missing = with("target = \"y\"", "target = \"yy\"");
    refused("missing-target", &missing, DECLARED, 2, &["no column `yy`", "did you mean `y`?"]);
}

#[test]
fn a_list_is_a_feature_of_a_declared_width_and_no_target() {
    let declared = DECLARED
        .replace("visits.csv", "visits.ndjson")
        .replace("\"text\"\ncolumns.split", "\"list(float)\"\ncolumns.split");
    for (training, said) in [
        (with("target = \"y\"", "target = \"word\""), "`visits.word` is to be predicted, but is a list"),
        (with("\"x\"", "\"word\""), "`visits.word` has lists or bytes of any length, and nothing says how many"),
    ] {
        let folder = room("lists", &training);
        std::fs::write(folder.join("whit.toml"), &declared).unwrap();
        std::fs::write(folder.join("visits.ndjson"), "{\"user\": \"u1\", \"word\": [1.0]}\n").unwrap();
        let (code, out, talk) = whit(&folder, &["train", "train.toml"]);
        assert!(code == 2 && out.is_empty() && talk.contains(said) && talk.contains("hint: "), "{talk}");
    }
}

/// Of numbers the first class is 0, whatever it is called, and of truth it is false: other names would be learned as what they are not.
#[test]
fn names_of_classes_that_contradict_their_column_are_refused() {
    let named = |names: &str| with("classes = 2", &format!("classes = {names}"));
    let next = ["classes of numbers are counted from 0: what is called \"1\" would be 0", "classes = 10"];
    refused("classes-from-1", &named("[\"1\", \"2\"]"), DECLARED, 2, &next);
    let truth = DECLARED.replace("columns.y = \"int\"", "columns.y = \"bool\"");
    let next = ["`classes` names one of them alone", "classes = [\"false\", \"true\"]"];
    refused("half-true", &named("[\"true\", \"other\"]"), &truth, 2, &next);
    for (name, classes, declared) in [
        ("classes-from-0", "[\"0\", \"1\"]", DECLARED),
        ("classes-called", "[\"no\", \"yes\"]", DECLARED),
        ("truth-called", "[\"false\", \"true\"]", &truth),
        ("truth-words", "[\"no\", \"yes\"]", &truth),
    ] {
        let folder = room(name, &named(classes));
        std::fs::write(folder.join("whit.toml"), declared).unwrap();
        let (code, _, talk) = whit(&folder, &["train", "train.toml", "--preview"]);
        assert_eq!(code, 0, "{name}: {talk}");
    }
}

/// The same is said of texts, of numbers, and of no row at all.
#[test]
fn a_refusal_of_a_column_asks_no_row() {
    let heading = "user,topic,x,z,y,word,split\n";
    let rows = [
        String::new(),
        "u1,t1,0.5,0.5,1,yes,train\n".repeat(5),
        "u1,t1,0.5,0.5,1,1,train\n".repeat(5),
        "u1,t1,much,0.5,0.5,0,train\n\"".to_owned(),
    ];
    let said = rows.map(|rows| {
        let folder = room("asks-no-row", &with("target = \"y\"", "target = \"word\""));
        std::fs::write(folder.join("visits.csv"), format!("{heading}{rows}")).unwrap();
        whit(&folder, &["train", "train.toml"])
    });
    assert!(said[0].0 == 2 && said[0].2.contains("`visits.word` is text"), "{}", said[0].2);
    assert!(said.iter().all(|other| *other == said[0]), "{said:?}");
}
