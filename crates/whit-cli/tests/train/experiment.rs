//! Experiments by the real binary: compared, printed, drawn, and free of charge.

use super::{DECLARED, TRAINING, json, room, whit};
use serde_json::Value;
use std::path::{Path, PathBuf};

const EXPERIMENT: &str = r#"
title = "which of two numbers is larger"
measure = "accuracy"
seeds = 2
across = { key = "privacy.epsilon", values = [0.2, 2.0], name = "ε" }

[[arm]]
name = "flat"
file = "train.toml"

[[arm]]
name = "few"
file = "train.toml"
set = { privacy = { batch = 100, steps = 30 } }

[[arm]]
name = "no privacy"
file = "train.toml"
private = false
"#;

fn lab(name: &str, experiment: &str) -> PathBuf {
    let folder = room(name, TRAINING);
    std::fs::write(folder.join("experiment.toml"), experiment).unwrap();
    folder
}

/// An experiment that is not begun, for these reasons.
fn refused(name: &str, experiment: &str, words: &[&str], said: &[&str]) {
    let folder = lab(name, experiment);
    let (code, out, talk) = whit(&folder, &[&["experiment", "experiment.toml"], words].concat());
    assert_eq!((code, out.as_str()), (2, ""), "{name}: {talk}");
    for word in said {
        assert!(talk.contains(word), "{name} should say `{word}`: {talk}");
    }
}

fn untouched(folder: &Path) {
    for name in ["whit.ledger", "model.safetensors", "model.safetensors.checkpoint"] {
        assert!(!folder.join(name).exists(), "{name}");
    }
}

#[test]
fn arms_are_compared_over_values_and_seeds_and_nothing_is_charged() {
    let folder = lab("experiment", EXPERIMENT);
    let line = ["experiment", "experiment.toml", "--plot", "figure.svg", "--plot", "figure.html"];
    let (code, table, talk) = whit(&folder, &line);
    assert_eq!(code, 0, "{talk}");
    let head = "which of two numbers is larger\naccuracy, in %: mean of 2 seeds ± 1.64 standard errors\n\n";
    assert!(table.starts_with(head), "{table}");
    let lines: Vec<&str> = table.lines().skip(3).collect();
    let words = |line: &str| line.split_whitespace().map(str::to_owned).collect::<Vec<String>>();
    assert_eq!(words(lines[0]), ["ε", "flat", "few", "no", "privacy"], "{table}");
    for (line, epsilon) in lines[2..4].iter().zip(["0.2", "2"]) {
        let row = words(line);
        assert!(row.len() == 10 && row[0] == epsilon && line.matches(" ± ").count() == 3, "{table}");
    }
    let promised = ["flat", "element", "(user,", "topic),", "replace", "0.2", "…", "2", "1e-6"];
    assert!(lines.iter().any(|line| words(line) == promised), "{table}");
    assert_eq!(table.matches("are non-private").count(), 1, "{table}");
    assert!(talk.contains("10 runs in "), "{talk}");
    let drawn = std::fs::read_to_string(folder.join("figure.svg")).unwrap();
    assert!(drawn.starts_with("<svg") && drawn.contains(">few<") && drawn.contains("no privacy: "), "{drawn}");
    assert!(std::fs::read_to_string(folder.join("figure.html")).unwrap().contains("are non-private"));

    // The same again prints the same.
    assert_eq!(whit(&folder, &["experiment", "experiment.toml"]).1, table);

    let printed = json(&folder, &["experiment", "experiment.toml"]);
    let runs = printed["runs"].as_array().unwrap();
    assert_eq!(runs.len(), 10);
    let of = |arm: &str, value: Value| {
        let runs = runs.iter().filter(move |run| run["arm"] == arm && run["value"] == value);
        runs.cloned().collect::<Vec<Value>>()
    };
    for epsilon in [0.2, 2.0] {
        let [first, second] = &of("flat", epsilon.into())[..] else { panic!("two seeds: {printed}") };
        let said = first["rungs"][0]["epsilon"].as_f64().unwrap();
        assert!(said <= epsilon && said > 0.95 * epsilon, "{first}");
        assert!(first["rungs"][1]["epsilon"].as_f64().unwrap() > said, "{first}");
        assert!(first["noise"].as_f64().unwrap() > 0.0 && first["rungs"] == second["rungs"], "{first}");
    }
    let noisy = of("flat", 0.2.into());
    assert_ne!(noisy[0]["score"], noisy[1]["score"]);
    let score = |run: &Value| run["score"].as_f64().unwrap();
    let free = of("no privacy", Value::Null);
    assert!(free.len() == 2 && free[0]["rungs"] == Value::Array(Vec::new()) && free[0]["noise"] == 0.0, "{free:?}");
    assert!(free.iter().all(|run| score(run) > 0.9), "{free:?}");
    // An interval is 1.64 standard errors: of two scores, 1.64·|a − b|/2.
    let cell = printed["cells"].as_array().unwrap().iter().find(|cell| cell["arm"] == "flat" && cell["value"] == 2.0);
    let [a, b] = &of("flat", 2.0.into()).iter().map(score).collect::<Vec<f64>>()[..] else { panic!("{printed}") };
    let cell = cell.unwrap();
    assert!((cell["mean"].as_f64().unwrap() - (a + b) / 2.0).abs() < 1e-12, "{cell}");
    assert!((cell["reach"].as_f64().unwrap() - 0.82 * (a - b).abs()).abs() < 1e-12, "{cell}");

    // One arm alone gets the figures that it got among others.
    let alone = json(&folder, &["experiment", "experiment.toml", "--only", "few", "--seeds", "1"]);
    assert_eq!(alone["runs"].as_array().unwrap().len(), 2);
    assert_eq!(alone["runs"][1]["score"], of("few", 2.0.into())[0]["score"]);
    assert_eq!(alone["cells"][0]["reach"], Value::Null);
    untouched(&folder);
}

#[test]
fn panels_and_seeds_name_data_and_truth() {
    let experiment = r#"
        title = "how far from the truth"
        measure = "distance"
        panels = { key = "privacy.steps", values = [5, 60], name = "steps" }
        truth = "truth_{panel}.json"
        [[arm]]
        name = "free"
        file = "train.toml"
        set = { dataset = "visits{seed}", model = { name = "linear", bias = false }, privacy = { batch = "2{seed}0" } }
        private = false
    "#;
    let folder = lab("panels", experiment);
    std::fs::write(folder.join("whit.toml"), DECLARED.replace("dataset.visits", "dataset.visits0")).unwrap();
    std::fs::write(folder.join("truth_5.json"), "[0.0, 0.0]").unwrap();
    std::fs::write(folder.join("truth_60.json"), "[0.0, 0.0]").unwrap();
    let printed = json(&folder, &["experiment", "experiment.toml"]);
    let scores: Vec<f64> =
        printed["runs"].as_array().unwrap().iter().map(|run| run["score"].as_f64().unwrap()).collect();
    // From 0 the way goes further with more steps.
    assert!(scores.len() == 2 && 0.1 < scores[0] && scores[0] < scores[1], "{scores:?}");
    let (code, table, talk) = whit(&folder, &["experiment", "experiment.toml", "--plot", "bars.svg"]);
    assert!(code == 0 && table.contains("\nsteps = 5\n") && table.contains("\nsteps = 60\n"), "{table}{talk}");
    assert!(folder.join("bars.svg").exists());
    std::fs::write(folder.join("truth_60.json"), "[0.0]").unwrap();
    let (code, _, talk) = whit(&folder, &["experiment", "experiment.toml"]);
    assert!(code == 2 && talk.contains("arm `free`: the model has 2 parameters, and the truth has 1"), "{talk}");
    std::fs::remove_file(folder.join("truth_60.json")).unwrap();
    let (code, _, talk) = whit(&folder, &["experiment", "experiment.toml"]);
    assert!(code == 2 && talk.contains("truth_60.json` cannot be read"), "{talk}");
    untouched(&folder);
}

#[test]
fn what_cannot_be_compared_is_said_before_the_first_step() {
    let with = |old: &str, new: &str| {
        assert!(EXPERIMENT.contains(old), "{old}");
        EXPERIMENT.replace(old, new)
    };
    refused("x-field", &with("measure", "mesure"), &[], &["unknown field `mesure`", "did you mean `measure`?"]);
    refused("x-only", EXPERIMENT, &["--only", "flt"], &["there is no arm `flt`", "did you mean `flat`?"]);
    let set = with("batch = 100", "bach = 100");
    refused("x-set", &set, &[], &["arm `few`", "train.toml", "unknown field `bach`", "did you mean `batch`?"]);
    let key = with("privacy.epsilon", "privacy.epsilom");
    refused("x-key", &key, &[], &["unknown field `epsilom`", "did you mean `epsilon`?"]);
    refused("x-file", &with("\"train.toml\"", "\"trian.toml\""), &[], &["arm `flat`", "trian.toml` cannot be read"]);
    let column = with("batch = 100, steps = 30 }", "steps = 30 }, features = [\"xx\"]");
    refused("x-column", &column, &[], &["arm `few`", "no column `xx`", "did you mean `x`?"]);
    refused("x-seeds", EXPERIMENT, &["--seeds", "0"], &["--seeds"]);
    let number = with(
        "[[arm]]\nname = \"few\"",
        "[[arm]]\nname = \"number\"\nfile = \"number.toml\"\n\n[[arm]]\nname = \"few\"",
    );
    let folder = lab("x-number", &number);
    let training = TRAINING.replace("classes = 2\n", "");
    std::fs::write(folder.join("number.toml"), training.replace("evaluate_where", "# evaluate_where")).unwrap();
    let (code, _, talk) = whit(&folder, &["experiment", "experiment.toml"]);
    assert!(code == 2 && talk.contains("arm `number`: no rows are set aside"), "{talk}");
    std::fs::write(folder.join("number.toml"), training).unwrap();
    let (code, _, talk) = whit(&folder, &["experiment", "experiment.toml", "--only", "number"]);
    assert!(code == 2 && talk.contains("accuracy is for classes"), "{talk}");
}

#[test]
fn noise_on_labels_is_compared_with_noise_on_gradients() {
    let arms = r#"
title = "labels"
measure = "accuracy"

[[arm]]
name = "gradients"
file = "train.toml"

[[arm]]
name = "labels"
file = "train.toml"
set = { privacy = { way = "response" } }

[[arm]]
name = "two stages"
file = "train.toml"
set = { privacy = { way = { two-stages = { first = 0.5 } } } }

[[arm]]
name = "non-private"
file = "train.toml"
set = { privacy = { way = "response" } }
private = false
"#;
    let folder = lab("labels", arms);
    let declared = "[dataset.visits]\nsource = \"visits.csv\"\nunit.label = \"y\"\nunit.protect = \"label\"\n\
                    columns.x = \"float\"\ncolumns.z = \"float\"\ncolumns.y = \"int\"\ncolumns.split = \"text\"\n\
                    budget.label = { epsilon = 3.0, delta = 1e-6 }\n";
    std::fs::write(folder.join("whit.toml"), declared).unwrap();
    let training = std::fs::read_to_string(folder.join("train.toml")).unwrap().replace("units = 1600\n", "");
    std::fs::write(folder.join("train.toml"), training).unwrap();
    let printed = json(&folder, &["experiment", "experiment.toml"]);
    let runs = printed["runs"].as_array().unwrap();
    let of = |arm: &str| runs.iter().find(|run| run["arm"] == arm).unwrap();
    for arm in ["labels", "two stages"] {
        let run = of(arm);
        let epsilon = run["rungs"][0]["epsilon"].as_f64().unwrap();
        assert!((0.999..=1.0).contains(&epsilon) && run["noise"] == 0.0, "{run}");
        assert!(run["score"].as_f64().unwrap() > 0.8, "{run}");
    }
    assert!(of("gradients")["noise"].as_f64().unwrap() > 0.0);

    // Who has more rows loses more, under the same declaration and as many users.
    let panels = "title = \"users\"\nmeasure = \"accuracy\"\npanels = { values = [\"t0\", \"t4\"], name = \"up to\" }\n\
                  [[arm]]\nname = \"labels\"\nfile = \"train.toml\"\nset = { where = \"topic <= '{panel}'\", privacy = { way = \"response\" } }\n";
    std::fs::write(folder.join("experiment.toml"), panels).unwrap();
    let users = "unit.user = \"user\"\ncolumns.user = \"text\"\ncolumns.topic = \"text\"\nunit.label";
    std::fs::write(folder.join("whit.toml"), declared.replace("unit.label", users)).unwrap();
    let printed = json(&folder, &["experiment", "experiment.toml"]);
    let epsilons: Vec<f64> =
        printed["runs"].as_array().unwrap().iter().map(|run| run["rungs"][0]["epsilon"].as_f64().unwrap()).collect();
    assert!((1.99..2.01).contains(&epsilons[0]) && (9.98..10.02).contains(&epsilons[1]), "{epsilons:?}");
    assert!(of("non-private")["score"].as_f64() > of("labels")["score"].as_f64(), "true labels teach more: {printed}");
    untouched(&folder);
}

#[test]
fn label_units_without_a_clip_norm_get_that_of_their_features_as_in_a_training() {
    let arms =
        "title = \"clips\"\nmeasure = \"accuracy\"\nseeds = 2\n[[arm]]\nname = \"gradients\"\nfile = \"train.toml\"\n";
    let folder = lab("label_clips", arms);
    let declared = "[dataset.visits]\nsource = \"visits.csv\"\nunit.label = \"y\"\nunit.protect = \"label\"\n\
                    columns.x = \"float\"\ncolumns.z = \"float\"\ncolumns.y = \"int\"\ncolumns.split = \"text\"\n\
                    budget.label = { epsilon = 3.0, delta = 1e-6 }\n";
    std::fs::write(folder.join("whit.toml"), declared).unwrap();
    let given = |line: &&str| line.starts_with("clip = ") || line.starts_with("units = ");
    let training = TRAINING.lines().filter(|line| !given(line));
    let training: String = training.flat_map(|line| [line, "\n"]).collect();
    assert!(!training.contains("clip"), "{training}");
    std::fs::write(folder.join("train.toml"), training).unwrap();
    // No room in memory: features go where rows may.
    let (code, _, talk) = whit(&folder, &["experiment", "experiment.toml", "--memory", "0"]);
    assert_eq!(code, 0, "{talk}");
    assert_eq!(talk.matches("gradients: privacy.clip is not given, and is ").count(), 1, "once for both seeds: {talk}");
    let (code, _, said) = whit(&folder, &["train", "train.toml", "--preview", "--memory", "0"]);
    assert_eq!(code, 0, "{said}");
    let norm = |talk: &str| talk.split_once("is not given, and is ").unwrap().1.split(':').next().unwrap().to_owned();
    assert_eq!(norm(&talk), norm(&said));
}
