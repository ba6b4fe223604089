//! Models and plans beyond the first: projections, images, batches of fixed size.

use super::{DECLARED, TRAINING, entries, json, refused, room, whit};
use std::fmt::Write as _;
use std::process::{Command, Stdio};
use std::time::Duration;

fn projected(components: u32, noise: f64) -> String {
    format!("{TRAINING}\n[projection]\ncomponents = {components}\nradius = 1.5\nnoise = {noise}\n")
}

#[test]
fn directions_are_released_once_and_promised_with_the_steps() {
    let folder = room("projected", &projected(2, 10.0));
    let (code, preview, talk) = whit(&folder, &["train", "train.toml", "--preview"]);
    assert!(code == 0 && preview.contains("it fits the budget") && entries(&folder) == 0, "{preview}{talk}");
    let trained = json(&folder, &["train", "train.toml"]);
    let card = &trained["card"];
    let epsilon = card["rungs"][0]["epsilon"].as_f64().unwrap();
    assert!(epsilon <= 1.0 && epsilon > 0.98, "directions and steps together: {card}");
    let said = card["projection"].as_str().unwrap();
    assert!(said.contains("2 of 2 directions") && said.contains("all directions are kept"), "{said}");
    assert_eq!(entries(&folder), 2, "directions and steps have an entry each");
    // Less noise for the steps alone would have done.
    let plain = json(&room("not_projected", TRAINING), &["train", "train.toml", "--preview"]);
    assert!(card["noise"].as_f64().unwrap() > plain["card"]["noise"].as_f64().unwrap());
    let score = json(&folder, &["evaluate", "train.toml", "--owner"]);
    assert!(score["accuracy"].as_f64().unwrap() > 0.8, "{score}");
    let predicted = json(&folder, &["predict", "model.safetensors", "--owner", "--where", "split = 'test'"]);
    assert_eq!(predicted.as_array().unwrap().len(), 800);
    // The same again is free, and another model finds the directions in the ledger.
    assert_eq!(json(&folder, &["train", "train.toml"])["stored"], true);
    assert_eq!(entries(&folder), 2);
    std::fs::write(folder.join("train.toml"), projected(2, 10.0).replace("steps = 60", "steps = 30")).unwrap();
    assert_eq!(json(&folder, &["train", "train.toml"])["stored"], false);
    assert_eq!(entries(&folder), 3);
}

#[test]
fn a_projection_that_cannot_be_is_refused_before_anything_is_charged() {
    refused("wide", &projected(3, 10.0), DECLARED, 2, &["projection.components is 3", "1 to 2"]);
    refused("silent", &projected(1, 0.0), DECLARED, 2, &["projection.noise is 0"]);
    refused("loud", &projected(1, 0.5), DECLARED, 2, &["together with the steps costs ε", "more noise"]);
    let tight = DECLARED.replace("epsilon = 3.0", "epsilon = 0.6");
    refused("tight", &projected(1, 10.0), &tight, 3, &["nothing was charged"]);
    let labels = DECLARED
        .replace("unit.protect = \"element\"", "unit.label = \"y\"\nunit.protect = \"label\"")
        .replace("budget.element", "budget.label")
        .lines()
        .filter(|line| !line.contains("budget.user") && !line.contains("caps") && !line.contains("unit.element"))
        .collect::<Vec<_>>()
        .join("\n");
    refused("labels", &projected(1, 10.0), &labels, 2, &["features are public"]);
}

#[test]
fn images_are_learned_by_windows() {
    let model = "[model]\nname = \"convolutional\"\nimage = [1, 1, 2]\nhidden = [4]\n\
                 stages = [{ channels = 4, kernel = 1, stride = 1, padding = 0, pool = [1, 1] }]\n[optimiser]";
    let folder = room("images", &TRAINING.replace("[optimiser]", model).replace("epsilon = 1.0", "epsilon = 2.0"));
    let trained = json(&folder, &["train", "train.toml", "--owner"]);
    assert_eq!(trained["card"]["parameters"], 8 + 8 * 4 + 4 + 5, "{trained}");
    assert!(trained["private"]["accuracy"].as_f64().unwrap() > 0.6, "{trained}");
    let wrong = TRAINING.replace("[optimiser]", &model.replace("[1, 1, 2]", "[1, 2, 2]"));
    refused("other_images", &wrong, DECLARED, 2, &["an image of 1 × 2 × 2 is not 2 numbers"]);
}

#[test]
fn images_are_seen_several_times_at_no_price() {
    let model = "[model]\nname = \"convolutional\"\nimage = [1, 1, 2]\nhidden = [4]\n\
                 stages = [{ channels = 4, kernel = 1, stride = 1, padding = 0, pool = [1, 1] }]\n[optimiser]";
    let once = TRAINING.replace("[optimiser]", model);
    let augmented = |how: &str| once.replace("[privacy]", &format!("[augment]\n{how}\n[privacy]"));
    let folder = room("augmented", &augmented("copies = 4\nflip = true"));
    let trained = json(&folder, &["train", "train.toml"]);
    let plain = json(&room("not_augmented", &once), &["train", "train.toml", "--preview"]);
    for key in ["rungs", "noise", "clip", "divisor", "slack"] {
        assert_eq!(trained["card"][key], plain["card"][key], "{key}");
    }
    // It is another training.
    std::fs::write(folder.join("train.toml"), augmented("copies = 2\nflip = true")).unwrap();
    assert_eq!(json(&folder, &["train", "train.toml", "--preview"])["stored"], false);
    refused("moved_out", &augmented("copies = 2\ncrop = 1"), DECLARED, 2, &["images of 1 × 2 cannot be moved by 1"]);
    refused("seen_never", &augmented("copies = 0"), DECLARED, 2, &["seen 0 times in a step"]);
    let flat = TRAINING.replace("[privacy]", "[augment]\ncopies = 2\n[privacy]");
    refused("no_image", &flat, DECLARED, 2, &["this model reads numbers without a shape"]);
}

#[test]
fn users_are_drawn_in_batches_of_fixed_size() {
    let declared = DECLARED.replace("protect = \"element\"", "protect = \"user\"").replace("200.0", "3.0");
    let declared: Vec<&str> = declared.lines().filter(|line| !line.contains("budget.element")).collect();
    let fixed =
        TRAINING.replace("units = 1600", "units = 400\nsampling = \"fixed\"").replace("batch = 200", "batch = 80");
    let folder = room("fixed", &fixed);
    std::fs::write(folder.join("whit.toml"), declared.join("\n")).unwrap();
    let trained = json(&folder, &["train", "train.toml"]);
    let card = &trained["card"];
    assert_eq!((&card["sampling"], &card["rate"]), (&"fixed".into(), &"1/5".into()), "{card}");
    assert!(card["rungs"][0]["unit"].as_str().unwrap().starts_with("user"), "{card}");
    assert!(card["rungs"][0]["epsilon"].as_f64().unwrap() <= 1.0, "{card}");
    refused(
        "crooked",
        &fixed.replace("batch = 80", "rate = \"1/7\""),
        &declared.join("\n"),
        2,
        &["not a whole number"],
    );
}

const EVENTS: &str = r#"
[dataset.visits]
source = "visits.csv"
unit.protect = "event"
columns.x = "float"
columns.z = "float"
columns.y = "float"
budget.event = { epsilon = 3.0, delta = 1e-6, currency = "renyi" }
"#;

const REGRESSION: &str = r#"
dataset = "visits"
features = ["x", "z"]
target = "y"

[privacy]
epsilon = 2.0
clip = 2.0
batch = 200
units = 6000
steps = 1500

[intervals]
curvature = 1.8
noise = 10.0

[optimiser]
schedule = { power = { first = 1.0, decay = 0.6 } }
average = { uniform = { from = 500 } }

[output]
model = "model.safetensors"
"#;

#[test]
fn parameters_come_with_intervals_that_are_promised_with_the_steps() {
    let folder = room("intervals", REGRESSION);
    std::fs::write(folder.join("whit.toml"), EVENTS).unwrap();
    let mut rows = "x,z,y\n".to_owned();
    let mut state = 3_u64;
    let mut uniform = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as f64 / (1_u64 << 31) as f64 * 2.0 - 1.0
    };
    for _ in 0..6000 {
        let (x, z) = (uniform(), uniform());
        let _ = writeln!(rows, "{x:.4},{z:.4},{:.4}", 1.0 * x - 0.5 * z + 0.25 + 0.5 * uniform());
    }
    std::fs::write(folder.join("visits.csv"), rows).unwrap();
    let trained = json(&folder, &["train", "train.toml"]);
    let epsilon = trained["card"]["rungs"][0]["epsilon"].as_f64().unwrap();
    assert!(epsilon <= 2.0 && epsilon > 1.98, "intervals and steps together: {trained}");
    assert!(trained["card"]["intervals"].as_str().unwrap().contains("at most 1.8 squared"), "{trained}");
    assert_eq!(entries(&folder), 2, "steps and intervals have an entry each");
    assert!(!trained["intervals"]["notes"].to_string().contains("seed"), "{trained}");
    let estimates = trained["intervals"]["parameters"].as_array().unwrap();
    for (estimate, (name, truth)) in estimates.iter().zip([("x", 1.0), ("z", -0.5), ("constant", 0.25)]) {
        let number = |key: &str| estimate[key].as_f64().unwrap();
        assert_eq!(estimate["parameter"], name);
        let error = number("standard_error");
        // One in 15,000 runs misses by four standard errors; the noise is drawn anew each time.
        assert!((number("value") - truth).abs() < 4.0 * error, "{estimate}");
        // Student's quantile, of about a hundred degrees of freedom for columns.
        let quantile = (number("high") - number("low")) / (2.0 * error);
        assert!((1.959..2.1).contains(&quantile), "{quantile}: {estimate}");
        // Of 6,000 rows whose rest is uniform between −½ and ½, and columns between −1 and 1: 0.29/√(6000/3), and 0.29/√6000 for the constant.
        let least_squares = if name == "constant" { 0.003_73 } else { 0.006_45 };
        // The noise on gradients is a quarter of their spread, and an eighth of a standard error.
        assert!((number("from_data") / least_squares - 1.0).abs() < 0.6, "{estimate}");
        assert!(number("from_noise") > 0.0 && number("from_sampling") > 0.0, "{estimate}");
    }
    // Neither the model nor its intervals are paid for twice.
    let again = json(&folder, &["train", "train.toml"]);
    assert!(again["stored"] == true && again["intervals"]["stored"] == true, "{again}");
    assert_eq!(again["intervals"]["parameters"], trained["intervals"]["parameters"]);
    assert_eq!(entries(&folder), 2);
    let (code, table, talk) = whit(&folder, &["train", "train.toml"]);
    assert!(code == 0 && table.contains("95 % interval") && table.contains("constant"), "{table}{talk}");
    assert!(table.contains("Shortened by the clip or the curvature's bound"), "{table}");
    assert!(table.contains("of the point where the mean clipped gradient vanishes"), "{table}");
    assert_eq!(trained["intervals"]["about"], "the point where the mean clipped gradient vanishes");
    // Another bound is another release, of a model of its own: the old card does not speak for it.
    let preview = |training: String| {
        std::fs::write(folder.join("train.toml"), training).unwrap();
        json(&folder, &["train", "train.toml", "--preview"])["stored"].clone()
    };
    assert_eq!(preview(REGRESSION.replace("curvature = 1.8", "curvature = 2.5")), false);
    assert_eq!(preview(REGRESSION.to_owned()), true);
    // A clip that shortens two gradients of three moves parameters: the model is there, and no interval that would miss.
    std::fs::write(folder.join("whit.toml"), EVENTS.replace("epsilon = 3.0", "epsilon = 9.0")).unwrap();
    std::fs::write(folder.join("train.toml"), REGRESSION.replace("clip = 2.0", "clip = 0.2")).unwrap();
    let (code, table, talk) = whit(&folder, &["train", "train.toml"]);
    assert!(code == 0 && table.contains("there are no intervals: about "), "{table}{talk}");
    assert!(table.contains("were shortened") && table.contains("clip at a larger norm"), "{table}");
    let printed = json(&folder, &["train", "train.toml"]);
    assert!(printed["intervals"]["shortened"][0].as_f64().unwrap() > 0.5, "{printed}");
    assert!(printed["intervals"]["parameters"].as_array().unwrap().is_empty(), "{printed}");
    std::fs::write(folder.join("train.toml"), REGRESSION).unwrap();
    // Columns that say the same leave parameters open: the model is there, and why it has no intervals.
    let twice = std::fs::read_to_string(folder.join("visits.csv")).unwrap();
    let twice = twice.lines().map(|line| {
        let (x, rest) = line.split_once(',').unwrap();
        let y = rest.split_once(',').unwrap().1;
        if x == "x" { "x,z,y\n".to_owned() } else { format!("{x},{x},{y}\n") }
    });
    std::fs::write(folder.join("visits.csv"), twice.collect::<String>()).unwrap();
    std::fs::write(folder.join("whit.toml"), EVENTS.replace("epsilon = 3.0", "epsilon = 9.0")).unwrap();
    let (code, table, talk) = whit(&folder, &["train", "train.toml"]);
    assert!(code == 0 && table.contains("there are no intervals") && table.contains("drop columns"), "{table}{talk}");
    // Noise that comes again is said of intervals too.
    std::fs::write(folder.join("train.toml"), REGRESSION.replace("[output]", "[output]\nseed = 3")).unwrap();
    for _ in 0..2 {
        let printed = json(&folder, &["train", "train.toml", "--seed-destroys-privacy"]);
        assert!(printed["intervals"]["notes"].to_string().contains("drawn from a seed"), "{printed}");
    }
}

#[test]
fn intervals_that_no_theorem_is_about_are_refused_before_anything_is_charged() {
    let cases = [
        ("elements", DECLARED, REGRESSION.to_owned(), "elements are not independent"),
        ("hidden", EVENTS, format!("{REGRESSION}\n[model]\nname = \"perceptron\"\nhidden = [3]\n"), "linear models"),
        ("momentum", EVENTS, REGRESSION.replace("[optimiser]", "[optimiser]\nmomentum = 0.9"), "plain descent"),
        ("last", EVENTS, REGRESSION.replace("average =", "# average ="), "average of the iterates"),
        ("steady", EVENTS, REGRESSION.replace("decay = 0.6", "decay = 0.3"), "between 0.5 and 1"),
        ("late", EVENTS, REGRESSION.replace("from = 500", "from = 1501"), "none of the steps"),
        ("early", EVENTS, REGRESSION.replace("from = 500", "from = 0"), "none of the steps"),
        ("ball", EVENTS, REGRESSION.replace("[optimiser]", "[optimiser]\nradius = 0.5"), "leave optimiser.radius out"),
        ("sure", EVENTS, REGRESSION.replace("noise =", "confidence = 1.0\nnoise ="), "no probability"),
        ("quiet", EVENTS, REGRESSION.replace("noise = 10.0", "noise = 0.2"), "more noise"),
    ];
    for (name, declared, training, said) in cases {
        refused(&format!("interval_{name}"), &training, declared, 2, &[said]);
    }
    let tight = EVENTS.replace("epsilon = 3.0", "epsilon = 1.5");
    refused("interval_tight", REGRESSION, &tight, 3, &["nothing was charged"]);
}

/// What is said of a clip comes from features alone, which are public where a label is the unit: other labels change no letter of it.
#[test]
fn a_clip_that_loses_labels_is_told_and_none_need_be_given() {
    let declared = "[dataset.visits]\nsource = 'visits.csv'\nunit.label = 'y'\nunit.protect = 'label'\n\
                    columns.x = 'float'\ncolumns.z = 'float'\ncolumns.y = 'int'\ncolumns.split = 'text'\n\
                    budget.label = { epsilon = 9.0, delta = 1e-6, currency = 'renyi' }\n";
    let said = |name: &str, training: &str, flip: bool| {
        let folder = room(name, training);
        std::fs::write(folder.join("whit.toml"), declared).unwrap();
        if flip {
            let rows = std::fs::read_to_string(folder.join("visits.csv")).unwrap();
            let flipped = rows.replace(",0,no,", ",2,no,").replace(",1,yes,", ",0,no,").replace(",2,no,", ",1,yes,");
            std::fs::write(folder.join("visits.csv"), flipped).unwrap();
        }
        let (code, card, talk) = whit(&folder, &["train", "train.toml", "--preview"]);
        assert_eq!(code, 0, "{talk}");
        (card, talk)
    };
    let (_, talk) = said("label_clip", TRAINING, false);
    assert!(talk.contains("privacy.clip = 1 shortens the label's part of the gradient of 100 % of units"), "{talk}");
    assert!(talk.contains("leave privacy.clip out"), "{talk}");
    let without = TRAINING.replace("clip = 1.0\n", "");
    let (card, talk) = said("label_no_clip", &without, false);
    assert!(talk.contains("privacy.clip is not given, and is 1.7"), "{talk}");
    let clip = |card: &str| card.lines().find(|line| line.starts_with("clip ")).map(str::to_owned);
    assert!(clip(&card).is_some_and(|clip| clip.contains(" 1.7")), "{card}");
    let (flipped, same) = said("label_no_clip_flipped", &without, true);
    assert_eq!((clip(&flipped), same), (clip(&card), talk));
    let wide = TRAINING.replace("clip = 1.0\n", "clip = 2.0\n");
    assert!(!said("label_wide_clip", &wide, false).1.contains("clip"), "nothing is shortened");
    refused("no_clip", &without, DECLARED, 2, &["privacy.clip is missing"]);
    for scale in ["0.0", "1e-38", "inf"] {
        let scaled = TRAINING.replace("classes = 2", &format!("classes = 2\nscale = {scale}"));
        refused("scaled", &scaled, DECLARED, 2, &["between 2^-100 and 2^100"]);
    }
    for clip in ["0.0", "1e-40", "1e40"] {
        let clipped = TRAINING.replace("clip = 1.0", &format!("clip = {clip}"));
        refused("clipped", &clipped, DECLARED, 2, &["between 2^-100 and 2^100"]);
    }
}

const LABELS: &str = r#"
[dataset.visits]
source = "visits.csv"
unit.user = "user"
unit.label = "y"
unit.protect = "label"
columns.user = "text"
columns.x = "float"
columns.z = "float"
columns.y = "int"
columns.split = "text"
budget.label = { epsilon = 3.0 }
"#;

fn noisy_labels(way: &str) -> String {
    TRAINING.replace("clip = 1.0\n", &format!("way = {way}\n")).replace("units = 1600\n", "")
}

#[test]
fn labels_are_told_once_and_learned_from_for_nothing() {
    let by_row = LABELS.replace("unit.user = \"user\"\n", "");
    let folder = room("responses", &noisy_labels("\"response\""));
    std::fs::write(folder.join("whit.toml"), &by_row).unwrap();
    let (code, preview, talk) = whit(&folder, &["train", "train.toml", "--preview"]);
    assert!(code == 0 && preview.contains("it fits the budget") && entries(&folder) == 0, "{preview}{talk}");
    let trained = json(&folder, &["train", "train.toml", "--owner"]);
    let card = &trained["card"];
    let epsilon = card["rungs"][0]["epsilon"].as_f64().unwrap();
    assert!((0.999..=1.0).contains(&epsilon) && card["delta"] == 0.0, "pure, and all of it: {card}");
    assert_eq!((&card["noise"], &card["reproducible"]), (&0.0.into(), &false.into()), "{card}");
    assert!(card["labels"].as_str().unwrap().contains("among 2 classes, all of them"), "{card}");
    // 73 of 100 labels are reported as they are, and 3,200 rows have two parameters and a constant.
    assert!(trained["private"]["accuracy"].as_f64().unwrap() > 0.85, "{trained}");
    assert_eq!(entries(&folder), 2);
    let words = std::fs::read_to_string(folder.join("model.card.txt")).unwrap();
    assert!(words.contains("steps cost nothing more") && !words.contains("clip norms"), "{words}");
    // Three more models of the same labels fit into a budget that three times as many answers would use up.
    for steps in ["steps = 61", "steps = 62", "steps = 63"] {
        let training = noisy_labels("\"response\"").replace("steps = 60", steps);
        std::fs::write(folder.join("train.toml"), training).unwrap();
        assert_eq!(json(&folder, &["train", "train.toml"])["stored"], false);
    }
    assert_eq!(entries(&folder), 5);
    assert_eq!(whit(&folder, &["ledger", "verify"]).0, 0);
    // The owner hears of other rows than the ledger knows of, and nobody else.
    let rows = std::fs::read_to_string(folder.join("visits.csv")).unwrap();
    std::fs::write(folder.join("visits.csv"), rows + "u1,t1,0.1,0.2,0,no,train\n").unwrap();
    let (code, _, talk) = whit(&folder, &["train", "train.toml", "--preview"]);
    assert!(code == 0 && !talk.contains("changed"), "{talk}");
    let (_, _, talk) = whit(&folder, &["train", "train.toml", "--owner"]);
    assert!(!talk.contains("changed"), "{talk}");
    let log = std::fs::read_to_string(folder.join("whit.ledger.log")).unwrap();
    assert!(log.contains("visits: the data changed"), "{log}");
}

#[test]
fn labels_of_one_user_cost_as_many_answers_in_one_stage_or_two() {
    let training = noisy_labels("{ two-stages = { first = 0.5 } }").replace("epsilon = 1.0", "epsilon = 0.25");
    let folder = room("stages", &training);
    std::fs::write(folder.join("whit.toml"), LABELS).unwrap();
    let trained = json(&folder, &["train", "train.toml"]);
    let card = &trained["card"];
    // A user has ten rows, of which eight or ten are learned from: rows of every fifth user are all set aside.
    let epsilon = card["rungs"][0]["epsilon"].as_f64().unwrap();
    assert!((2.49..=2.51).contains(&epsilon), "ten labels of one user at ε = 0.25 each: {card}");
    assert!(card["labels"].as_str().unwrap().contains("50 % of them first"), "{card}");
    assert_eq!(json(&folder, &["train", "train.toml"])["stored"], true);
    assert_eq!(entries(&folder), 2);
}

#[test]
fn one_telling_is_not_taken_for_another() {
    let by_row = LABELS.replace("unit.user = \"user\"\n", "").replace("3.0", "9.0");
    let folder = room("both-ways", &noisy_labels("\"response\""));
    std::fs::write(folder.join("whit.toml"), &by_row).unwrap();
    assert_eq!(json(&folder, &["train", "train.toml"])["stored"], false);
    let mut kept = 2;
    for way in ["{ two-stages = { first = 0.5 } }", "{ two-stages = { first = 0.25 } }"] {
        std::fs::write(folder.join("train.toml"), noisy_labels(way)).unwrap();
        let trained = json(&folder, &["train", "train.toml"]);
        assert_eq!(trained["stored"], false, "{way}");
        assert!(trained["card"]["labels"].as_str().unwrap().contains("% of them first"), "{trained}");
        kept += 2;
        assert_eq!(entries(&folder), kept, "{way}: labels and steps of its own");
    }
}

#[test]
fn telling_that_is_killed_pays_once() {
    // The prior is learned between the reservation and the commit, and that takes a while.
    let training = noisy_labels("{ two-stages = { first = 0.5 } }").replace("steps = 60", "steps = 30000");
    let training = training.replace("checkpoint_every = 7", "checkpoint_every = 5000");
    let folder = room("telling_killed", &training);
    std::fs::write(folder.join("whit.toml"), LABELS.replace("unit.user = \"user\"\n", "").replace("3.0", "1.5"))
        .unwrap();
    let begin = || {
        let mut command = Command::new(env!("CARGO_BIN_EXE_whit"));
        command.env("WHIT_STATE", "");
        command.args(["train", "train.toml"]).current_dir(&folder).stdout(Stdio::null()).stderr(Stdio::null());
        command.spawn().unwrap()
    };
    let state = || json(&folder, &["ledger"])["releases"][0]["state"].clone();
    let mut killed = 0;
    for _ in 0..3 {
        let mut child = begin();
        for _ in 0..400 {
            std::thread::sleep(Duration::from_millis(10));
            if folder.join("whit.ledger").exists() && state() == "reserved" {
                break;
            }
        }
        std::thread::sleep(Duration::from_millis(100));
        child.kill().unwrap();
        child.wait().unwrap();
        killed += usize::from(state() == "reserved");
    }
    assert!(killed > 0, "kills came too late: {}", state());
    // A second reservation would not fit the budget.
    std::fs::write(folder.join("train.toml"), &training).unwrap();
    let trained = json(&folder, &["train", "train.toml"]);
    assert!(trained["card"]["rungs"][0]["epsilon"].as_f64().unwrap() <= 1.0, "{trained}");
    assert_eq!((state(), entries(&folder)), ("committed".into(), 2));
}

#[test]
fn labels_that_cannot_be_told_are_refused_before_anything_is_charged() {
    refused(
        "response_elements",
        &noisy_labels("\"response\"").replace("batch", "clip = 1.0\nunits = 1600\nbatch"),
        DECLARED,
        2,
        &["the unit is a label"],
    );
    refused(
        "response_number",
        &noisy_labels("\"response\"").replace("classes = 2\n", ""),
        LABELS,
        2,
        &["none are named"],
    );
    refused(
        "response_noise",
        &noisy_labels("\"response\"").replace("epsilon = 1.0", "noise = 1.0"),
        LABELS,
        2,
        &["at some ε"],
    );
    refused("response_none", &noisy_labels("{ two-stages = { first = 0.0 } }"), LABELS, 2, &["in its first stage"]);
    refused("response_dear", &noisy_labels("\"response\""), LABELS, 3, &["nothing was charged"]);
    refused("unclipped", &TRAINING.replace("clip = 1.0\n", ""), DECLARED, 2, &["privacy.clip is missing"]);
}

#[test]
fn a_training_beyond_its_budget_is_told_an_epsilon_that_was_tried_and_fits() {
    let (before, rest) = REGRESSION.split_once("[intervals]").unwrap();
    let plain = format!("{before}[optimiser]{}", rest.split_once("[optimiser]").unwrap().1);
    let folder = room("tried_epsilon", &plain.replace("epsilon = 2.0", "epsilon = 5.0"));
    std::fs::write(folder.join("whit.toml"), EVENTS).unwrap();
    let (code, out, talk) = whit(&folder, &["train", "train.toml"]);
    assert_eq!((code, out.as_str()), (3, ""), "{talk}");
    let stated = talk.split_once("privacy.epsilon = ").unwrap_or_else(|| panic!("an ε is stated: {talk}")).1;
    let (fitting, rest) = stated.split_once(' ').unwrap();
    assert!(rest.starts_with("would fit") && fitting.parse::<f64>().unwrap() < 5.0, "{talk}");
    std::fs::write(folder.join("train.toml"), plain.replace("epsilon = 2.0", &format!("epsilon = {fitting}"))).unwrap();
    let (code, out, talk) = whit(&folder, &["train", "train.toml", "--preview"]);
    assert!(code == 0 && out.contains("it fits the budget"), "{out}{talk}");
}
