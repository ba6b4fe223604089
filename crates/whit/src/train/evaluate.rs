//! How well a model does on rows that its owner chose.

use super::features::ChosenRows;
use super::measure::Measures;
use super::owner::{self, Owner};
use super::spec::{Spec, asked};
use super::trial::{Score, Trial, network};
use super::{Training, choose, keep, rows};
use crate::Error;
use std::path::{Path, PathBuf};
use whit_learn::{Recipe, Trained};
use whit_query::Tables;
use whit_query::source::learn::Checked;

/// A model that is to be tried.
#[derive(Debug, Clone)]
pub struct Evaluation<'a> {
    /// The training that made it.
    pub training: &'a Training,
    /// Its file, where it is not the one that the training names.
    pub model: Option<PathBuf>,
    /// Scores are not sanitised: they are for the owner.
    pub owner: Option<Owner>,
    /// The memory that rows may take.
    pub memory: Option<u64>,
}

/// How a model did. Nothing of it was sanitised.
#[derive(Debug, Clone)]
pub struct Evaluated {
    /// The file of the model.
    pub model: PathBuf,
    /// How it did.
    pub score: Score,
    /// For classes: which is taken for which, and how far probabilities may be believed.
    pub measures: Option<Measures>,
    /// What whoever reads it should know.
    pub notes: Vec<String>,
}

/// Reads the file of a model. One that says no checksum is read, and that is noted.
pub(crate) fn load(path: &Path, notes: &mut Vec<String>) -> Result<Trained, Error> {
    let name = path.display();
    let bytes = std::fs::read(path)
        .map_err(|why| asked(format!("the model `{name}` cannot be read: {why}"), "`Session::train` writes one"))?;
    let again = "the training that made it writes it again, from the ledger and at no cost: `Session::train`";
    let (trained, checked) =
        Trained::of_file_checked(&bytes).map_err(|error| asked(format!("`{name}`: {error}"), again))?;
    if !checked {
        notes
            .push(format!("`{name}` is of an earlier version, without a checksum: whether it is as it was is unknown"));
    }
    Ok(trained)
}

pub(crate) fn evaluate(tables: &Tables, asked_for: &Evaluation<'_>) -> Result<Evaluated, Error> {
    let owner = owner::needed(asked_for.owner, "how well a model does")?;
    let spec = &asked_for.training.spelled(tables).spec;
    let path = asked_for.model.clone().unwrap_or_else(|| asked_for.training.model());
    let mut notes = Vec::new();
    let trained = load(&path, &mut notes)?;
    // A choice makes the model of one of its candidates.
    let candidates = choose::specs(asked_for.training, tables)?;
    if !candidates.iter().any(|candidate| of_training(tables, candidate, &trained, &path).is_ok()) {
        of_training(tables, spec, &trained, &path)?;
    }
    let chosen = spec.tried_on().unwrap_or_default();
    let trial = Trial::read(owner, tables, &trained.recipe, chosen, &keep(tables, asked_for.memory))?;
    let (score, measures) = trial.measures(&trained.recipe, &network(&trained)?, trained.projection.as_ref())?;
    Ok(Evaluated { model: path, score, measures, notes })
}

/// Refuses a model that another training file made.
pub(crate) fn of_training(tables: &Tables, spec: &Spec, trained: &Trained, path: &Path) -> Result<(), Error> {
    let mut recipe = rows::recipe(spec)?;
    let checked = tables.check_learning(&rows::reading(&recipe, ChosenRows::default(), true))?;
    recipe = rows::frozen(spec, &checked)?;
    recipe.inputs = trained.recipe.inputs;
    respelled(tables, &mut recipe, &checked, &trained.recipe);
    if recipe == trained.recipe {
        return Ok(());
    }
    Err(asked(
        format!("`{}` was made by another training file: {}", path.display(), differs(&recipe, &trained.recipe)),
        "train again, or name its own training file",
    ))
}

/// Takes the model's own spelling of features and target, where the training file says the same in other words.
fn respelled(tables: &Tables, recipe: &mut Recipe, checked: &Checked, own: &Recipe) {
    let Ok(theirs) = tables.check_learning(&rows::reading(own, ChosenRows::default(), true)) else { return };
    if theirs.meanings != checked.meanings || recipe.features.len() != own.features.len() {
        return;
    }
    let (features, target) = checked.meanings.split_at(recipe.features.len().min(checked.meanings.len()));
    for ((feature, own), meaning) in recipe.features.iter_mut().zip(&own.features).zip(features) {
        if !meaning.is_null() {
            feature.of.clone_from(&own.of);
        }
    }
    if target.first().is_some_and(|meaning| !meaning.is_null()) {
        recipe.target.clone_from(&own.target);
    }
}

/// Which part of two recipes differs.
fn differs(asked_for: &Recipe, own: &Recipe) -> &'static str {
    [
        (asked_for.dataset != own.dataset, "the data set differs"),
        (asked_for.features != own.features, "the features differ"),
        (asked_for.widths != own.widths, "`widths` differ"),
        (asked_for.bits != own.bits, "`features_as` differs"),
        ((asked_for.scale, asked_for.offset) != (own.scale, own.offset), "the scale differs"),
        (asked_for.target != own.target, "the target differs"),
        (asked_for.classes != own.classes, "the classes differ"),
        (asked_for.loss != own.loss, "the loss differs"),
        (asked_for.projection != own.projection, "the projection differs"),
        (asked_for.model != own.model, "the model differs"),
    ]
    .into_iter()
    .find_map(|(differs, what)| differs.then_some(what))
    .unwrap_or("something differs")
}
