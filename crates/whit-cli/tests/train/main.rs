//! Models by the real binary: learned, refused, killed, gone on with, tried and used.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on should say where")]

mod choose;
mod columns;
mod data;
mod experiment;
mod judged;
mod models;
mod network;
mod path;
mod roles;

use serde_json::Value;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

const DECLARED: &str = r#"
[dataset.visits]
source = "visits.csv"
unit.user = "user"
unit.element = "topic"
unit.public = ["split"]
unit.protect = "element"
unit.caps = { elements_per_user = 5, rows_per_element = 3 }
columns.user = "text"
columns.topic = "text"
columns.x = "float"
columns.z = "float"
columns.y = "int"
columns.word = "text"
columns.split = "text"
budget.element = { epsilon = 3.0, delta = 1e-6, currency = "renyi" }
budget.user = { epsilon = 200.0, delta = 1e-6, currency = "renyi" }
"#;

const TRAINING: &str = r#"
dataset = "visits"
features = ["x", "z"]
target = "y"
classes = 2
where = "split = 'train'"
evaluate_where = "split = 'test'"

[privacy]
epsilon = 1.0
clip = 1.0
batch = 200
units = 1600
steps = 60

[optimiser]
size = 2.0

[output]
model = "model.safetensors"
checkpoint_every = 7
"#;

/// A folder with 400 users, who have two rows in each of five topics; y is 1 where x > z, mostly.
fn room(name: &str, training: &str) -> PathBuf {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("train").join(name);
    let _ = std::fs::remove_dir_all(&folder); // it may not be there
    std::fs::create_dir_all(&folder).unwrap();
    let mut rows = "user,topic,x,z,y,word,split\n".to_owned();
    let mut state = 7_u64;
    let mut uniform = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as f64 / (1_u64 << 31) as f64
    };
    for i in 0..4000 {
        let (x, z) = (uniform() * 2.0 - 1.0, uniform() * 2.0 - 1.0);
        let y = u8::from(x > z) ^ u8::from(uniform() < 0.05);
        let split = if i % 5 == 0 { "test" } else { "train" };
        let _ =
            writeln!(rows, "u{},t{},{x:.4},{z:.4},{y},{},{split}", i % 400, i / 400 % 5, ["no", "yes"][usize::from(y)]);
    }
    std::fs::write(folder.join("visits.csv"), rows).unwrap();
    std::fs::write(folder.join("whit.toml"), DECLARED).unwrap();
    std::fs::write(folder.join("train.toml"), training).unwrap();
    folder
}

/// Exit code, data and talk.
fn whit(folder: &Path, words: &[&str]) -> (i32, String, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_whit"));
    let output = command.args(words).current_dir(folder).env("WHIT_STATE", "").output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (output.status.code().unwrap(), text(output.stdout), text(output.stderr))
}

fn json(folder: &Path, words: &[&str]) -> Value {
    let (code, out, talk) = whit(folder, &[words, &["--json"]].concat());
    assert_eq!(code, 0, "{words:?}: {talk}");
    serde_json::from_str(&out).unwrap()
}

/// How many releases the ledger holds.
fn entries(folder: &Path) -> usize {
    // What only looks makes none, and whoever was killed while making one leaves an empty file.
    if std::fs::metadata(folder.join("whit.ledger")).map_or(0, |about| about.len()) == 0 {
        return 0;
    }
    json(folder, &["ledger"])["releases"].as_array().unwrap().len()
}

/// A training that is refused with these words, and without a charge.
fn refused(name: &str, training: &str, declared: &str, code: i32, said: &[&str]) {
    let folder = room(name, training);
    std::fs::write(folder.join("whit.toml"), declared).unwrap();
    let (got, out, talk) = whit(&folder, &["train", "train.toml"]);
    assert_eq!((got, out.as_str()), (code, ""), "{name}: {talk}");
    for word in said {
        assert!(talk.contains(word), "{name} should say `{word}`: {talk}");
    }
    assert!(!talk.contains("panicked"), "{talk}");
    assert!(!folder.join("model.safetensors").exists() && !folder.join("model.safetensors.checkpoint").exists());
    if folder.join("whit.ledger").exists() {
        assert_eq!(entries(&folder), 0, "{name}");
    }
}

#[test]
fn a_logistic_regression_is_learned_paid_once_tried_and_used() {
    let folder = room("road", TRAINING);
    let (code, preview, talk) = whit(&folder, &["train", "train.toml", "--preview"]);
    assert!(code == 0 && preview.contains("it fits the budget; nothing was charged"), "{preview}{talk}");
    assert!(!folder.join("whit.ledger").exists());

    let trained = json(&folder, &["train", "train.toml", "--owner", "--plot", "curve.svg"]);
    let card = &trained["card"];
    let epsilon = |rung: usize| card["rungs"][rung]["epsilon"].as_f64().unwrap();
    assert!(epsilon(0) <= 1.0 && epsilon(0) > 0.98, "{card}");
    assert!(epsilon(1) > epsilon(0), "{card}");
    assert_eq!(card["rungs"][0]["unit"], "element (user, topic), replace");
    assert_eq!((&card["steps"], &card["entry"], &card["reproducible"]), (&60.into(), &1.into(), &false.into()));
    assert_eq!((&card["rate"], &card["divisor"]), (&"1/8".into(), &200.0.into()), "{card}");
    assert!(trained["private"]["accuracy"].as_f64().unwrap() > 0.85, "{trained}");
    let written = std::fs::read_to_string(folder.join("model.card.json")).unwrap();
    assert_eq!(serde_json::from_str::<Value>(&written).unwrap(), *card);
    let words = std::fs::read_to_string(folder.join("model.card.txt")).unwrap();
    assert!(words.contains("element (user, topic), replace: ε = ") && words.contains("entry 1"), "{words}");
    assert!(std::fs::read_to_string(folder.join("curve.svg")).unwrap().starts_with("<svg"));
    assert!(!folder.join("model.safetensors.checkpoint").exists());

    // The same again is free, also where the file is gone, and is the same model.
    let model = std::fs::read(folder.join("model.safetensors")).unwrap();
    std::fs::remove_file(folder.join("model.safetensors")).unwrap();
    assert_eq!(json(&folder, &["train", "train.toml"])["stored"], true);
    assert_eq!(std::fs::read(folder.join("model.safetensors")).unwrap(), model);
    assert_eq!(entries(&folder), 1);
    assert_eq!(whit(&folder, &["ledger", "verify"]).0, 0);

    let (code, table, talk) = whit(&folder, &["evaluate", "train.toml", "--owner"]);
    assert!(code == 0 && table.contains("accuracy") && talk.contains("not sanitised"), "{table}{talk}");
    assert_eq!(json(&folder, &["evaluate", "train.toml", "--owner"])["rows"], 800);
    let words = ["predict", "model.safetensors", "--owner", "--where", "split = 'test'", "--csv", "predicted.csv"];
    assert_eq!(whit(&folder, &words).0, 0);
    let predicted = std::fs::read_to_string(folder.join("predicted.csv")).unwrap();
    assert!(predicted.starts_with("row,predicted,probability\n1,") && predicted.lines().count() == 801, "{predicted}");

    // Another training file has another model.
    std::fs::write(folder.join("train.toml"), TRAINING.replace("[\"x\", \"z\"]", "[\"z\", \"x\"]")).unwrap();
    let (code, _, talk) = whit(&folder, &["evaluate", "train.toml", "--owner"]);
    assert!(code == 2 && talk.contains("the features differ"), "{talk}");
}

/// A column is found without regard to case, and is the same training: it is paid once.
#[test]
fn columns_that_are_spelled_otherwise_make_no_other_training() {
    let folder = room("spelled", TRAINING);
    assert_eq!(whit(&folder, &["train", "train.toml"]).0, 0);
    let shouted = TRAINING.replace("[\"x\", \"z\"]", "[\"X\", \"Z\"]").replace("target = \"y\"", "target = \"Y\"");
    std::fs::write(folder.join("train.toml"), shouted).unwrap();
    assert_eq!(json(&folder, &["train", "train.toml"])["stored"], true);
    assert_eq!(entries(&folder), 1);
    assert_eq!(whit(&folder, &["evaluate", "train.toml", "--owner"]).0, 0);
}

#[test]
fn what_cannot_be_is_said_and_charges_nothing() {
    let with = |old: &str, new: &str| {
        assert!(TRAINING.contains(old), "{old}");
        TRAINING.replace(old, new)
    };
    refused("nearest", &with("\"x\"", "\"xx\""), DECLARED, 2, &["no column `xx`", "did you mean `x`?"]);
    refused("key", &with("clip =", "clp ="), DECLARED, 2, &["unknown field `clp`", "did you mean `clip`?"]);
    refused("dataset", &with("\"visits\"", "\"visit\""), DECLARED, 2, &["did you mean `visits`?"]);
    refused("text", &with("\"x\"", "\"word\""), DECLARED, 2, &["`visits.word` is to be a feature, but is text"]);
    let range = with("classes = 2", "classes = 3").replace("\"y\"", "\"user_class\"");
    refused("no-target", &range, DECLARED, 2, &["no column `user_class`"]);
    refused(
        "unit",
        TRAINING,
        &DECLARED.replace("unit.user = \"user\"", "unit.user = \"usr\""),
        2,
        &["no column `usr`"],
    );
    refused("unreachable", &with("epsilon = 1.0", "epsilon = -1.0"), DECLARED, 2, &["hint: "]);
    refused(
        "units",
        &with("units = 1600\n", "").replace("batch = 200", "rate = \"1/8\""),
        DECLARED,
        2,
        &["nothing says how many units"],
    );
    refused(
        "budget",
        &with("epsilon = 1.0", "epsilon = 5.0"),
        DECLARED,
        3,
        &["of the budget is left", "nothing was charged"],
    );
    refused("batch", &with("batch = 200", "batch = 0"), DECLARED, 2, &["train.toml", "privacy.batch is 0", "hint: "]);
    let most = with("batch = 200", "batch = 2000");
    refused("batch-most", &most, DECLARED, 2, &["privacy.batch is 2000, and there are 1600 units"]);
    let number = with("steps = 60", "steps = \"many\"");
    refused("number", &number, DECLARED, 2, &["train.toml", "`steps` has to be a whole number", "line "]);
    let elsewhere = with("\"model.safetensors\"", "\"models/model.safetensors\"");
    refused("folder", &elsewhere, DECLARED, 2, &["train.toml", "models`, which is no folder", "output.model"]);
    let (code, _, talk) = whit(&room("folder", &elsewhere), &["train", "train.toml", "--preview"]);
    assert!(code == 2 && talk.contains("which is no folder"), "{talk}");
    refused("filter", &with("split = 'train'", "split = ("), DECLARED, 2, &["cannot be read"]);
    for (name, never) in
        [("filter-number", "x"), ("filter-pattern", "split ~ '('"), ("filter-part", "date_trunc('no', now()) = x")]
    {
        refused(name, &with("split = 'train'", never), DECLARED, 2, &["hint: "]);
    }
}

#[test]
fn features_hide_what_is_not_public_and_labels_the_label() {
    let declared = r#"
[dataset.visits]
source = "visits.csv"
unit.public = ["split", "z", "y"]
unit.protect = "feature"
columns.user = "text"
columns.topic = "text"
columns.x = "float"
columns.z = "float"
columns.y = "int"
columns.word = "text"
columns.split = "text"
budget.feature = { epsilon = 3.0, delta = 1e-6, currency = "renyi" }
"#;
    let training =
        TRAINING.replace("units = 1600\n", "padding = { mean = [0.0] }\n").replace("batch = 200", "rate = \"1/8\"");
    let folder = room("feature", &training);
    std::fs::write(folder.join("whit.toml"), declared).unwrap();
    let card = json(&folder, &["train", "train.toml"])["card"].clone();
    assert_eq!(card["rungs"][0]["neighbours"], "neighbours: what is not public of one row is replaced");
    assert!(card["rungs"][0]["epsilon"].as_f64().unwrap() <= 1.0, "{card}");
    let hidden = declared.replace(", \"y\"]", "]");
    refused("feature-target", &training, &hidden, 2, &["the target `y` is not public"]);
    refused(
        "feature-filter",
        &training.replace("split = 'train'", "x > 0"),
        declared,
        2,
        &["`where` reads x, which is private"],
    );

    let label = "[dataset.visits]\nsource = 'visits.csv'\nunit.label = 'y'\nunit.protect = 'label'\ncolumns.x = 'float'\ncolumns.z = 'float'\ncolumns.y = 'int'\ncolumns.split = 'text'\nbudget.label = { epsilon = 3.0, delta = 1e-6, currency = 'renyi' }\n";
    let training = training.replace("padding = { mean = [0.0] }\n", "");
    let folder = room("label-unit", &training);
    std::fs::write(folder.join("whit.toml"), label).unwrap();
    let trained = json(&folder, &["train", "train.toml"]);
    assert_eq!(trained["card"]["rungs"][0]["unit"], "label of y, replace");
    refused(
        "label-target",
        &training.replace("\"y\"", "\"x\"").replace("[\"x\",", "[").replace("classes = 2", ""),
        label,
        2,
        &["protects the label `y`"],
    );
}

#[test]
fn a_seed_comes_again_and_protects_nobody() {
    let training = TRAINING.replace("[output]", "[output]\nseed = 5");
    let models = ["seed-a", "seed-b"].map(|name| {
        let folder = room(name, &training);
        // It costs everything, so that every budget says no, and nothing is read.
        let (code, out, talk) = whit(&folder, &["train", "train.toml"]);
        assert!(code == 3 && out.is_empty() && talk.contains("protect nobody"), "{out}{talk}");
        assert_eq!(entries(&folder), 0);
        let (_, out, _) = whit(&folder, &["train", "train.toml", "--preview"]);
        assert!(out.contains("∞") && out.contains("it would be refused"), "{out}");
        let denied = json(&folder, &["train", "train.toml", "--preview"])["denied"].clone();
        assert_eq!(
            (&denied["kind"], &denied["shortfall"]["asked"]),
            (&"refused".into(), &"Infinity".into()),
            "{denied}"
        );
        assert!(
            denied["shortfall"]["left"].as_f64().unwrap() > 2.0 && talk.contains(denied["message"].as_str().unwrap())
        );
        let (_, out, _) = whit(&folder, &["train", "train.toml", "--preview", "--seed-destroys-privacy"]);
        assert!(out.contains("its seed takes all privacy away") && !out.contains("refused"), "{out}");
        assert_eq!(entries(&folder), 0);
        // Unless the owner says what that means.
        let (code, out, talk) = whit(&folder, &["train", "train.toml", "--seed-destroys-privacy"]);
        assert!(code == 0 && out.contains("∞") && out.contains("non-private"), "{out}{talk}");
        let card = std::fs::read_to_string(folder.join("model.card.json")).unwrap();
        assert_eq!(card.matches("\"epsilon\": \"Infinity\"").count(), 2, "{card}");
        // Nothing is left for anybody, with noise or without.
        std::fs::write(folder.join("train.toml"), TRAINING).unwrap();
        let (code, _, talk) = whit(&folder, &["train", "train.toml"]);
        assert!(code == 3 && talk.contains("of the budget is left"), "{talk}");
        assert_eq!(whit(&folder, &["ledger", "verify"]).0, 0);
        std::fs::read(folder.join("model.safetensors")).unwrap()
    });
    assert!(models[0] == models[1]);
    // The flag gives nothing up where there is no seed.
    let folder = room("seed-none", &TRAINING.replace("epsilon = 1.0", "epsilon = 5.0"));
    assert_eq!(whit(&folder, &["train", "train.toml", "--seed-destroys-privacy"]).0, 3);
}

/// Where rows lie changes nothing of a model, nor of what it is tried on, and they leave nothing behind.
#[test]
fn rows_that_do_not_fit_into_memory_make_the_same_model() {
    let training = format!("scale = 0.7\noffset = -0.1\n{}", TRAINING.replace("[output]", "[output]\nseed = 5"));
    let models = [&[][..], &["--memory", "1KiB"], &["--memory", "0"]].map(|memory| {
        let folder = room(&format!("memory-{}", memory.last().unwrap_or(&"all")), &training);
        let seeded = &["train", "train.toml", "--owner", "--seed-destroys-privacy"][..];
        let trained = json(&folder, &[seeded, memory].concat());
        let score = json(&folder, &[&["evaluate", "train.toml", "--owner"], memory].concat());
        let chosen = &["predict", "model.safetensors", "--owner", "--where", "split = 'test'"][..];
        let said = json(&folder, &[chosen, memory].concat());
        let mut left: Vec<_> = std::fs::read_dir(&folder).unwrap().map(|file| file.unwrap().file_name()).collect();
        left.sort();
        (
            std::fs::read(folder.join("model.safetensors")).unwrap(),
            trained["private"].clone(),
            score["loss"].clone(),
            said,
            left,
        )
    });
    assert!(models[0] == models[1] && models[0] == models[2]);

    // Where there is no place for them, nothing is charged, whether or not one would be needed: how many rows there are is private.
    let folder = room("memory-nowhere", TRAINING);
    for memory in ["1KiB", "1GiB"] {
        let output = Command::new(env!("CARGO_BIN_EXE_whit"))
            .args(["train", "train.toml", "--memory", memory])
            .env("TMPDIR", folder.join("not-there"))
            .env("WHIT_STATE", "")
            .current_dir(&folder)
            .output()
            .unwrap();
        let talk = String::from_utf8(output.stderr).unwrap();
        assert!(output.status.code() == Some(1) && talk.contains("not-there") && talk.contains("TMPDIR"), "{talk}");
        assert_eq!(entries(&folder), 0);
    }
    let (code, _, talk) = whit(&folder, &["train", "train.toml", "--memory", "much"]);
    assert!(code == 2 && talk.contains("write it as 512MiB"), "{talk}");
}

#[test]
fn a_training_that_is_killed_pays_once() {
    // Noise is given, so that little time is spent before the first step.
    let training = TRAINING.replace("epsilon = 1.0", "noise = 200.0").replace("steps = 60", "steps = 25000");
    let training = training.replace("checkpoint_every = 7", "checkpoint_every = 100");
    let folder = room("killed", &training);
    let mut state = 0x5eed_u64;
    let mut ended = 0;
    let mut stood_at = Vec::new();
    for _ in 0..20 {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        let mut child = Command::new(env!("CARGO_BIN_EXE_whit"))
            .args(["train", "train.toml", "--owner", "--plot", "curve.svg"])
            .env("WHIT_STATE", "")
            .current_dir(&folder)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        std::thread::sleep(Duration::from_millis(100 + (state >> 33) % 1400));
        child.kill().unwrap(); // SIGKILL
        ended += usize::from(child.wait().unwrap().success());
        // Whatever the moment, the checkpoint is a whole one.
        if let Ok(checkpoint) = std::fs::read_to_string(folder.join("model.safetensors.checkpoint")) {
            let body: Value = serde_json::from_str(checkpoint.split_once('\n').unwrap().1).unwrap();
            stood_at.push(body["taken"].as_u64().unwrap());
        }
        assert!(entries(&folder) <= 1);
    }
    let curve = folder.join("model.safetensors.checkpoint.curve");
    assert!(ended > 0 || !std::fs::read_to_string(&curve).unwrap().is_empty());
    let last = json(&folder, &["train", "train.toml", "--owner", "--plot", "curve.svg"]);
    assert!(!curve.exists(), "it is drawn, and as private as the rows");
    // The curve is that of all steps, however often they were interrupted: 40 points, and a line from one to the next.
    let drawn = std::fs::read_to_string(folder.join("curve.svg")).unwrap();
    let lines = drawn.split("<path d=").skip(1).map(|path| path.split('/').next().unwrap_or("").matches('L').count());
    assert_eq!(lines.max(), Some(39), "{drawn}");
    assert!(stood_at.is_sorted(), "no step that was kept is taken twice: {stood_at:?}");
    stood_at.dedup();
    assert!(stood_at.len() > 2, "kills came too late or too early: {stood_at:?}, {ended} ended");
    assert_eq!((&last["card"]["steps"], &last["card"]["entry"]), (&25000.into(), &1.into()));
    let ledger = json(&folder, &["ledger"]);
    let releases = ledger["releases"].as_array().unwrap();
    assert_eq!((releases.len(), &releases[0]["state"]), (1, &"committed".into()), "{ledger}");
    assert_eq!(whit(&folder, &["ledger", "verify"]).0, 0);
    // What it cost is what a run that nobody killed costs.
    let whole = room("not-killed", &training);
    let card = json(&whole, &["train", "train.toml", "--preview"])["card"].clone();
    assert_eq!(card["rungs"], last["card"]["rungs"]);
    let spent = |folder: &Path| json(folder, &["ledger"])["accounts"].clone();
    assert_eq!(json(&whole, &["train", "train.toml"])["card"]["steps"], 25000);
    assert_eq!(spent(&folder), spent(&whole));
}

#[test]
fn a_checkpoint_goes_on_with_its_own_run_only() {
    let training = TRAINING.replace("epsilon = 1.0", "noise = 200.0").replace("steps = 60", "steps = 40000");
    let folder = room("checkpoint", &training);
    let checkpoint = folder.join("model.safetensors.checkpoint");
    let begin = || {
        let child = Command::new(env!("CARGO_BIN_EXE_whit"))
            .args(["train", "train.toml"])
            .env("WHIT_STATE", "")
            .current_dir(&folder)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn();
        child.unwrap()
    };
    let mut child = begin();
    for _ in 0..2400 {
        std::thread::sleep(Duration::from_millis(25));
        if std::fs::read_to_string(&checkpoint).is_ok_and(|text| text.contains("\"entry\":1")) {
            break;
        }
    }
    let (code, _, talk) = whit(&folder, &["train", "train.toml"]);
    assert!(code == 1 && talk.contains("another process is training"), "{talk}");
    assert!(talk.contains("wait until it is done") && !talk.contains("begin anew"), "{talk}");
    child.kill().unwrap();
    child.wait().unwrap();
    // A run that was killed between a checkpoint and its name goes on from the one without: what follows is about one file, so it is killed again until there is one.
    while folder.join("model.safetensors.checkpoint.next").exists() {
        let mut child = begin();
        std::thread::sleep(Duration::from_millis(500));
        child.kill().unwrap();
        child.wait().unwrap();
    }

    // Of another training file.
    std::fs::write(folder.join("train.toml"), training.replace("size = 2.0", "size = 1.0")).unwrap();
    let (code, out, talk) = whit(&folder, &["train", "train.toml"]);
    assert!(code == 1 && out.is_empty() && talk.contains("the checkpoint of another run"), "{talk}");
    assert!(talk.contains("another output.model") && !talk.contains("void"), "{talk}");
    assert_eq!(entries(&folder), 1);

    // Gone: what it showed may be elsewhere, so no second way begins under the entry.
    std::fs::write(folder.join("train.toml"), &training).unwrap();
    let kept = std::fs::read(&checkpoint).unwrap();
    std::fs::remove_file(&checkpoint).unwrap();
    let (code, _, talk) = whit(&folder, &["train", "train.toml"]);
    assert!(code == 2 && talk.contains("entry 1 of the ledger is open for the same training"), "{talk}");

    // Damaged.
    std::fs::write(&checkpoint, &kept[..kept.len() / 2]).unwrap();
    let (code, _, talk) = whit(&folder, &["train", "train.toml"]);
    assert!(code == 1 && talk.contains("is damaged"), "{talk}");
    assert!(talk.contains("remove `model.safetensors.checkpoint` and say `whit ledger void 1"), "{talk}");

    // Voided: the checkpoint is of an entry that is over.
    std::fs::write(&checkpoint, &kept).unwrap();
    assert_eq!(whit(&folder, &["ledger", "void", "1", "--reason", "a test"]).0, 0);
    let (code, _, talk) = whit(&folder, &["train", "train.toml"]);
    assert!(code == 2 && talk.contains("which is not open for this training"), "{talk}");
    // One that is none: the entry is over, and the file is all that stands in the way.
    let half = &kept[..kept.len() / 2];
    let broken: [&[u8]; 4] = [b"", b"no checkpoint", b"whit checkpoint 9 f00d\n{}", half];
    for bytes in broken {
        std::fs::write(&checkpoint, bytes).unwrap();
        let (code, _, talk) = whit(&folder, &["train", "train.toml"]);
        assert!(code == 1 && talk.contains("remove `model.safetensors.checkpoint`: no entry is open"), "{talk}");
    }
    std::fs::remove_file(&checkpoint).unwrap();
    let (code, _, talk) = whit(&folder, &["train", "train.toml", "--resume"]);
    assert!(code == 2 && talk.contains("no interrupted run"), "{talk}");
}

/// The run said that its charge stays spent and that it can be gone on with; neither was true.
#[test]
fn a_run_whose_entry_is_made_void_says_so_and_the_next_begins_anew() {
    let training = TRAINING.replace("epsilon = 1.0", "noise = 200.0").replace("steps = 60", "steps = 40000");
    let folder = room("voided", &training);
    let checkpoint = folder.join("model.safetensors.checkpoint");
    let child = Command::new(env!("CARGO_BIN_EXE_whit"))
        .args(["train", "train.toml"])
        .env("WHIT_STATE", "")
        .current_dir(&folder)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    for _ in 0..2400 {
        std::thread::sleep(Duration::from_millis(25));
        if checkpoint.exists() {
            break;
        }
    }
    assert_eq!(whit(&folder, &["ledger", "void", "1", "--reason", "a test"]).0, 0);
    let output = child.wait_with_output().unwrap();
    let talk = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.code() == Some(1) && output.stdout.is_empty(), "{talk}");
    assert!(talk.contains("entry 1 of the ledger was made void while this run was under way"), "{talk}");
    assert!(talk.contains("the same command begins anew") && !talk.contains("stays spent"), "{talk}");
    assert!(!talk.contains("goes on from") && !checkpoint.exists(), "{talk}");
    // It does begin anew: nothing is there to go on with, and nothing in the way.
    let (code, _, talk) = whit(&folder, &["train", "train.toml", "--resume"]);
    assert!(code == 2 && talk.contains("no interrupted run"), "{talk}");
}

/// What a model or its cards would replace is found before anything is charged.
#[test]
fn no_model_replaces_the_ledger_the_data_or_a_training_file() {
    let names = ["whit.ledger", "visits.csv", "train.toml", "./whit.toml", "whit.ledger.head"];
    for (at, model) in names.into_iter().enumerate() {
        let folder = room(&format!("replaces-{at}"), &TRAINING.replace("model.safetensors", model));
        let data = std::fs::read(folder.join("visits.csv")).unwrap();
        let (code, out, talk) = whit(&folder, &["train", "train.toml"]);
        assert!(code == 2 && out.is_empty() && talk.contains("no output is written over it"), "{model}: {talk}");
        assert_eq!(entries(&folder), 0, "{model}");
        assert!(!folder.join("whit.ledger").exists(), "{model}: what is asked wrongly makes no ledger");
        assert!(std::fs::read(folder.join("visits.csv")).unwrap() == data, "{model}");
        assert_eq!(std::fs::read_to_string(folder.join("whit.toml")).unwrap(), DECLARED, "{model}");
    }
    let folder = room("replaces-predict", TRAINING);
    assert_eq!(whit(&folder, &["train", "train.toml"]).0, 0);
    let model = std::fs::read(folder.join("model.safetensors")).unwrap();
    for name in ["visits.csv", "whit.ledger", "model.safetensors", "train.toml"] {
        let (code, _, talk) = whit(&folder, &["predict", "model.safetensors", "--owner", "--csv", name]);
        assert!(code == 2 && talk.contains("no output is written over it"), "{name}: {talk}");
    }
    assert!(std::fs::read(folder.join("model.safetensors")).unwrap() == model);
    assert_eq!(whit(&folder, &["ledger", "verify"]).0, 0);

    // One bit of it is another model, and a file that says nothing of bits is of an earlier version.
    let mut flipped = model.clone();
    *flipped.last_mut().unwrap() ^= 1;
    std::fs::write(folder.join("model.safetensors"), flipped).unwrap();
    for words in [["predict", "model.safetensors", "--owner"], ["evaluate", "train.toml", "--owner"]] {
        let (code, out, talk) = whit(&folder, &words);
        assert!(code == 2 && out.is_empty() && talk.contains("its checksum is another"), "{talk}");
        assert!(talk.contains("writes it again") && talk.contains("`whit train`"), "{talk}");
    }
    let end = 8 + usize::try_from(u64::from_le_bytes(model[..8].try_into().unwrap())).unwrap();
    let header = String::from_utf8(model[8..end].to_vec()).unwrap();
    let header = header.replace("whit model 3", "whit model 2").replace("\"checksum\"", "\"checksam\"");
    std::fs::write(folder.join("model.safetensors"), [&model[..8], header.as_bytes(), &model[end..]].concat()).unwrap();
    let (code, _, talk) = whit(&folder, &["evaluate", "train.toml", "--owner"]);
    assert!(code == 0 && talk.contains("without a checksum"), "{talk}");
    // The hint works.
    assert_eq!(whit(&folder, &["train", "train.toml"]).0, 0);
    assert!(std::fs::read(folder.join("model.safetensors")).unwrap() == model);
}

/// They had the mode of any file, so that everybody could read what is for the owner alone.
#[cfg(unix)]
#[test]
fn what_is_for_the_owner_nobody_else_may_open() {
    use std::os::unix::fs::PermissionsExt;
    let folder = room("owner-files", TRAINING);
    let mode = |name: &str| std::fs::metadata(folder.join(name)).unwrap().permissions().mode() & 0o777;
    // Also where a file of that name could be read by everybody.
    for name in ["curve.html", "predicted.csv"] {
        std::fs::write(folder.join(name), "old").unwrap();
        std::fs::set_permissions(folder.join(name), std::fs::Permissions::from_mode(0o644)).unwrap();
    }
    let train =
        ["train", "train.toml", "--owner", "--plot", "curve.svg", "--plot", "curve.png", "--plot", "curve.html"];
    assert_eq!(whit(&folder, &train).0, 0);
    for name in ["predicted.csv", "again.csv"] {
        assert_eq!(whit(&folder, &["predict", "model.safetensors", "--owner", "--csv", name]).0, 0);
    }
    for name in ["curve.svg", "curve.png", "curve.html", "predicted.csv", "again.csv"] {
        assert_eq!(mode(name), 0o600, "{name}");
        assert_ne!(std::fs::read(folder.join(name)).unwrap(), b"old", "{name}");
    }
    assert!(!folder.join("predicted.csv.part").exists());
}
