use super::*;
use crate::train::prepare::{self, Planned};
use crate::train::{Training, keep};
use std::path::{Path, PathBuf};
use whit_core::{Caps, Change, Kind, Unit};
use whit_learn::projection::Projecting;
use whit_learn::{Count, Draft};
use whit_query::Tables;
use whit_query::source::Tuning;

/// Golden: ledgers have stored what these say, so that another text has models paid for again.
#[test]
fn plans_and_ways_mean_what_they_meant() {
    let ladder = Ladder::new(vec![Unit::event(Change::Replace)], Caps::default(), Kind::Event).unwrap();
    let drafted = Draft::new(ladder, "1/4".parse().unwrap(), Count::Declared(20), 1.5, 5).with_noise(2.0).unwrap();
    assert_eq!(
        meaning::text(&plan(&drafted)),
        concat!(
            r#"{"clip":{"how":"flat","norm":1.5e0},"difference":2e0,"divisor":5e0,"draw":"unit","labels told":false,"noise":2e0,"#,
            r#""places":null,"rate":"1/4","sampling":"poisson","slack":8.7890625e-3,"steps":5,"units":{"held":[1],"rungs":[{"disjoint":false,"holds":1,"#,
            r#""unit":{"change":"replace","key":[],"kind":"event"}}]}}"#
        )
    );
    let padding = Padding::Gaussian { mean: vec![0.5], deviation: vec![2.0] };
    for (one, said) in [
        (Way::Mean, r#""mean""#),
        (Way::Local { steps: 3, size: 0.1 }, r#"{"local steps":3,"size":1e-1}"#),
        (
            Way::Feature { private: vec![1], padding, public: 1.0 },
            r#"{"padding":{"deviation":[2e0],"mean":[5e-1]},"private features":[1],"public":1e0}"#,
        ),
    ] {
        assert_eq!(meaning::text(&way(&one)), said);
    }
}

/// The same for everything that a training file can name: each word once.
#[test]
fn models_losses_and_moves_mean_what_they_meant() {
    let stage = Stage { channels: 8, kernel: 3, stride: 1, padding: 1, pool: [2, 2] };
    let convolutional =
        Named::Convolutional { image: [1, 8, 8], stages: vec![stage], hidden: vec![16], activation: Activation::Gelu };
    let perceptron = |activation| Named::Perceptron { hidden: vec![4, 2], activation, dropout: 0.25 };
    let mut said: Vec<Value> =
        [Named::Linear { bias: true }, perceptron(Activation::Relu), perceptron(Activation::Tanh), convolutional]
            .iter()
            .map(model)
            .collect();
    said.extend(
        [
            LossFunction::Squared,
            LossFunction::Logistic,
            LossFunction::Softmax,
            LossFunction::Poisson,
            LossFunction::Huber { at: 0.1 },
        ]
        .into_iter()
        .map(loss),
    );
    let (descent, adam) = (Rule::Descent { momentum: 0.9, decay: 1e-4 }, Rule::ADAM);
    let constant = Schedule::Constant { size: 0.5 };
    let power = Schedule::Power { first: 1.0, decay: 0.6 };
    let cosine = Schedule::Cosine { peak: 1.0, warm_up: 10, steps: 90, last: 0.01 };
    let (uniform, exponential) = (Weights::Uniform { from: 5 }, Weights::Exponential { decay: 0.99 });
    for (rule, schedule, radius, average) in [
        (&descent, &constant, None, None),
        (&adam, &power, Some(2.0), Some(uniform)),
        (&adam, &cosine, Some(f64::INFINITY), Some(exponential)),
    ] {
        said.push(moves(&Moves { rule, schedule, radius, average }));
    }
    let plain = Recipe {
        dataset: "visits".to_owned(),
        features: vec!["x".into(), "z".into()],
        widths: [].into(),
        bits: false,
        scale: 0.1,
        offset: -1.0,
        target: "y".to_owned(),
        classes: None,
        model: Named::Linear { bias: false },
        loss: LossFunction::Squared,
        projection: None,
        inputs: 2,
        outputs: 1,
    };
    said.push(recipe(&plain, &[]));
    let whole = Recipe {
        widths: [("x".to_owned(), 3)].into(),
        bits: true,
        classes: Some(vec!["no".to_owned(), "yes".to_owned()]),
        projection: Some(Projecting { components: 2, radius: 1.5, noise: 10.0 }),
        ..plain
    };
    said.push(recipe(&whole, &[]));
    golden("parts_of_trainings.txt", &said.iter().map(|value| meaning::text(value) + "\n").collect::<String>());
}

const EVENTS: &str = "unit.protect = 'event'\n";
const ELEMENTS: &str = "unit.user = 'user'\nunit.element = 'topic'\nunit.protect = 'element'\n\
    unit.caps = { elements_per_user = 5, rows_per_element = 3 }\n";
const LABELS: &str = "unit.label = 'y'\nunit.protect = 'label'\n";
const FEATURES: &str = "unit.public = ['z', 'y']\nunit.protect = 'feature'\n";

const TRAINING: &str = "dataset = 'visits'\nfeatures = ['x', 'z']\ntarget = 'y'\nclasses = 2\nwhere = 'z > 0.5'\n\
    [privacy]\nnoise = 2.0\ndelta = 1e-6\nclip = 1.0\nbatch = 20\nunits = 160\nsteps = 60\n\
    [optimiser]\nsize = 2.0\n[output]\nmodel = 'model.safetensors'\n";

/// A folder in which a training with this unit can be planned.
fn planned(name: &str, unit: &str, training: &str) -> (PathBuf, Training, Planned) {
    let folder = std::env::temp_dir().join(format!("whit-meaning-{}-{name}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let declared = format!(
        "[dataset.visits]\nsource = 'visits.csv'\n{unit}columns.user = 'text'\ncolumns.topic = 'text'\n\
         columns.x = 'float'\ncolumns.z = 'float'\ncolumns.y = 'int'\n"
    );
    let row = |i: usize| format!("u{},t{},0.{i:02},0.{},{}", i % 8, i % 5, 99 - i, i % 2);
    let rows = (0..40).map(row).collect::<Vec<_>>().join("\n") + "\n";
    for (name, text) in [
        ("visits.csv", format!("user,topic,x,z,y\n{rows}").as_str()),
        ("whit.toml", declared.as_str()),
        ("train.toml", training),
    ] {
        std::fs::write(folder.join(name), text).unwrap();
    }
    let tables = Tables::open(&folder.join("whit.toml"), Tuning::default()).unwrap();
    let training = Training::open(&folder.join("train.toml")).unwrap();
    let planned = prepare::plan(&training.spec, &tables, &keep(&tables, None));
    let planned = planned.unwrap_or_else(|error| panic!("{name}: {}", error.words()));
    (folder, training, planned)
}

/// Golden: a whole training of each kind, and what accompanies it. Ledgers have stored what these say, so that another text has models paid for again.
#[test]
fn trainings_mean_what_they_meant() {
    let with = |from: &str, to: &str| {
        assert!(TRAINING.contains(from), "{from}");
        TRAINING.replace(from, to)
    };
    let deep = with("[optimiser]\nsize = 2.0", "draw = 'users'\nusers = 40\n[model]\nname = 'perceptron'\nhidden = [4]\nactivation = 'tanh'\n\
         [optimiser]\nrule = 'adam'\nradius = 3.0\nschedule = { cosine = { peak = 0.1, warm_up = 5, steps = 60, last = 0.01 } }\n\
         average = { exponential = { decay = 0.9 } }")
    .replace("model = 'model", "seed = 7\nmodel = 'model");
    let labels = with("batch = 20\nunits = 160\n", "rate = '1/8'\n");
    let noisy =
        |way: &str| labels.replace("noise = 2.0", "epsilon = 1.0").replace("clip = 1.0", &format!("way = {way}"));
    let features = labels
        .replace("clip = 1.0", "clip = 1.0\npadding = { gaussian = { mean = [0.5], deviation = [2.0] } }")
        .replace("where = 'z > 0.5'\n", "");
    let projected = format!("{TRAINING}[projection]\ncomponents = 1\nradius = 1.5\nnoise = 10.0\n");
    let intervals = with(
        "size = 2.0",
        "schedule = { power = { first = 1.0, decay = 0.6 } }\naverage = { uniform = { from = 20 } }",
    ) + "[intervals]\ncurvature = 1.8\nnoise = 10.0\n";
    let mut said = String::new();
    for (name, unit, training) in [
        ("plain", EVENTS, TRAINING),
        ("users", ELEMENTS, &deep),
        ("label", LABELS, &labels),
        ("noisy-labels", LABELS, &noisy("'response'")),
        ("two-stages", LABELS, &noisy("{ two-stages = { first = 0.5 } }")),
        ("feature", FEATURES, &features),
        ("second-moments", EVENTS, &projected),
        ("intervals", EVENTS, &intervals),
    ] {
        let (folder, _, planned) = planned(name, unit, training);
        let mut line = |text: &str| said.push_str(&[name, ": ", text, "\n"].concat());
        line(&planned.meaning);
        if let Some(directions) = &planned.promise.directions {
            line(directions.meaning());
        }
        if let Some(answers) = &planned.promise.answers {
            line(&of_labels(answers.meaning()));
        }
        if let Some(intervals) = &planned.promise.intervals {
            line(&of_intervals(intervals.meaning(), &planned.meaning));
        }
        std::fs::remove_dir_all(folder).unwrap();
    }
    golden("trainings.txt", &said);
}

/// Whatever decides which rows are summed, and how, makes other second moments; what only the model has does not.
#[test]
fn directions_are_those_of_the_rows_that_a_training_reads() {
    let projected = format!("{TRAINING}[projection]\ncomponents = 1\nradius = 1.5\nnoise = 10.0\n");
    let of = |name: &str, unit: &str, text: &str| {
        let (folder, training, planned) = planned(name, unit, text);
        let question = planned.promise.directions.as_ref().unwrap().meaning().to_owned();
        assert!(question.contains("second moments") && training.spec.projection.is_some());
        std::fs::remove_dir_all(folder).unwrap();
        question
    };
    let with = |from: &str, to: &str| {
        assert!(projected.contains(from), "{from}");
        projected.replace(from, to)
    };
    let plain = of("moments", ELEMENTS, &projected);
    for (number, other) in [
        with("target = 'y'", "target = 'x'")
            .replace("features = ['x', 'z']", "features = ['z']")
            .replace("classes = 2\n", ""),
        with("classes = 2", "classes = 3"),
        with("where = 'z > 0.5'", "where = 'z > 0.4'"),
    ]
    .iter()
    .enumerate()
    {
        assert_ne!(of(&format!("moments-{number}"), ELEMENTS, other), plain, "{other}");
    }
    let caps = ELEMENTS.replace("rows_per_element = 3", "rows_per_element = 4");
    assert_ne!(of("moments-caps", &caps, &projected), plain);
    let deeper = with("[optimiser]", "[model]\nname = 'perceptron'\nhidden = [4]\n[optimiser]");
    assert_eq!(of("moments-model", ELEMENTS, &deeper), plain, "another model has the same directions");
    let spelled = with("where = 'z > 0.5'", "where = '0.25 + 0.25 < Z'");
    assert_eq!(of("moments-spelled", ELEMENTS, &spelled), plain, "and so has another spelling of the condition");
}

/// Compares with what a golden file holds. `WHIT_GOLDEN=write` writes it anew, which is for a new version of the format and for trainings that are new here.
fn golden(name: &str, found: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(name);
    if std::env::var("WHIT_GOLDEN").is_ok_and(|value| value == "write") {
        std::fs::write(&path, found).unwrap();
    }
    let kept = std::fs::read_to_string(&path).unwrap();
    for (kept, found) in kept.lines().zip(found.lines()) {
        assert_eq!(kept, found, "{name}");
    }
    assert_eq!(kept.lines().count(), found.lines().count(), "{name}");
}
