//! Trainings on neighbours: what a preview says, and what a run says besides its model.

use super::dice::Dice;
use super::ground::{ColumnKind, Ground};
use super::questions::Pen;
use super::{AttackOutcome, Attacker};

/// A training file over the columns of a data set.
fn training(ground: &Ground, dice: &mut Dice) -> String {
    let private = |name: &str| ground.moving.label.as_deref() == Some(name);
    let numbers: Vec<&str> = ground
        .columns
        .iter()
        .filter(|column| matches!(column.kind, ColumnKind::Int | ColumnKind::Float) && !private(&column.name))
        .filter(|column| ground.moving.user.as_deref() != Some(column.name.as_str()))
        .map(|column| column.name.as_str())
        .collect();
    let target = match (&ground.moving.label, ground.moving.protect.as_str()) {
        (Some(label), _) => label.clone(),
        (None, "feature") => ground.moving.public.last().cloned().unwrap_or_default(),
        _ => (*numbers.last().unwrap_or(&"y")).to_owned(),
    };
    let features: Vec<&str> = numbers.iter().copied().filter(|name| *name != target).take(1 + dice.below(3)).collect();
    let text = ground.columns.iter().any(|column| column.name == target && column.kind == ColumnKind::Text);
    let classes = match dice.below(6) {
        _ if text => "classes = [\"a\", \"b\", \"c\"]\n",
        0 | 1 => "classes = 2\n",
        2 => "classes = [\"a\", \"b\", \"c\"]\n",
        _ if ground.moving.protect == "label" => "classes = 100\n",
        _ => "",
    };
    let filter = match dice.below(3) {
        0 if ground.moving.protect != "feature" && ground.moving.protect != "label" => {
            format!("where = {}\n", toml::Value::from(Pen { ground, dice }.expression(ColumnKind::Bool, 2)))
        }
        _ => String::new(),
    };
    let units = *dice.of(&[10, 19, 20, 24, 25, 1000]);
    let clip = *dice.of(&["0.01", "1.0", "100.0"]);
    let padding = if ground.moving.protect == "feature" { "padding = { mean = [0.0] }\n" } else { "" };
    let model = *dice.of(&["", "[model]\nname = \"perceptron\"\nhidden = [4]\n"]);
    format!(
        "dataset = \"{}\"\nfeatures = {features:?}\ntarget = \"{target}\"\n{classes}{filter}{model}\n[privacy]\nepsilon = 0.5\ndelta = 1e-6\n\
         clip = {clip}\nbatch = 5\nunits = {units}\nsteps = 3\n{padding}\n[output]\nmodel = \"model.safetensors\"\n",
        ground.dataset
    )
}

/// What would be promised must follow from the declaration and the training file alone.
pub(crate) fn previews(attacker: &Attacker, grounds: &[Ground], each: usize) -> AttackOutcome {
    let mut outcome = AttackOutcome::new("previews of trainings");
    for (number, ground) in grounds.iter().enumerate() {
        let mut dice = Dice(3000 + number as u64);
        let rows = ground.rows(24, &mut dice);
        let other = ground.neighbour(&rows, &mut dice);
        let folders = attacker.lay("trainings", ground, &rows, &other);
        for _ in 0..each {
            let file = training(ground, &mut dice);
            for words in [&["train", "train.toml", "--preview"][..], &["train", "train.toml", "--preview", "--json"]] {
                let [one, other] = folders.each_ref().map(|folder| {
                    let _ = std::fs::write(folder.join("train.toml"), &file);
                    attacker.ask(folder, words, "")
                });
                outcome.compare(&format!("{}: whit {} of\n{file}", ground.title, words.join(" ")), &one, &other);
            }
        }
    }
    outcome
}

/// What is said besides a model is no release.
pub(crate) fn runs(attacker: &Attacker, grounds: &[Ground]) -> AttackOutcome {
    let mut outcome = AttackOutcome::new("runs of trainings");
    for (number, ground) in grounds.iter().enumerate() {
        let mut dice = Dice(4000 + number as u64);
        let rows = ground.rows(24, &mut dice);
        let other = ground.neighbour(&rows, &mut dice);
        for lap in 0..2 {
            let folders = attacker.lay("runs", ground, &rows, &other);
            let file = training(ground, &mut dice);
            let [one, other] = folders.each_ref().map(|folder| {
                let _ = std::fs::write(folder.join("train.toml"), &file);
                let printed = attacker.ask(folder, &["train", "train.toml"], "").masked();
                let mut names: Vec<String> = std::fs::read_dir(folder).map_or_else(
                    |_| Vec::new(),
                    |files| files.flatten().map(|file| file.file_name().to_string_lossy().into_owned()).collect(),
                );
                names.sort();
                super::printed::Printed { talk: format!("{}\nfiles: {}", printed.talk, names.join(" ")), ..printed }
            });
            outcome.compare(&format!("{}, lap {lap}: whit train of\n{file}", ground.title), &one, &other);
        }
    }
    outcome
}
