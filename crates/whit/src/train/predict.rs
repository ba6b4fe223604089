//! What a model says of rows.

use super::evaluate::load;
use super::features::ChosenRows;
use super::keep;
use super::measure::{likeliest, probabilities};
use super::owner::{self, Owner};
use super::rows::{gather, reading};
use super::trial::{fits, network};
use crate::Error;
use serde::Serialize;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use whit_learn::Recipe;
use whit_learn::loss::LossFunction;
use whit_learn::train::{Tuning, predict as outputs_of};
use whit_query::source::learn::Reading;
use whit_query::source::{Input, Inputs};
use whit_query::{QueryError, Tables};

/// Rows of which a model is to predict the target.
#[derive(Debug, Clone)]
pub struct Prediction<'a> {
    /// The model, as a training wrote it.
    pub model: &'a Path,
    /// Another data set than the one that it learned from, with the same columns.
    pub dataset: Option<String>,
    /// Which rows, as a condition in SQL; all without it.
    pub chosen: Option<String>,
    /// What a model says of private rows is for their owner.
    pub owner: Option<Owner>,
    /// The memory that rows may take.
    pub memory: Option<u64>,
    /// Columns that are carried along, such as ids.
    pub carried: Vec<String>,
    /// Whether the probability of every class is told, and not only of what is predicted.
    pub probabilities: bool,
    /// Files that the answer will be written into: none of them may be one that it is read from.
    pub outputs: Vec<PathBuf>,
}

/// What is said of one row.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Predicted {
    /// Which row, from 1.
    pub row: usize,
    /// What is carried along of it, by the names of columns.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub carried: BTreeMap<String, Option<String>>,
    /// A class by its name, or a number.
    pub predicted: String,
    /// How sure the model is of the class.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub probability: Option<f64>,
    /// How sure it is of each class, by their names, where that was asked for.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub probabilities: BTreeMap<String, f64>,
}

/// What is said of rows.
#[derive(Debug, Clone)]
pub struct Predictions {
    /// Row by row, by their own numbers.
    pub rows: Vec<Predicted>,
    /// The columns that are carried along, in order.
    pub carried: Vec<String>,
    /// The classes whose probabilities are told, in order.
    pub classes: Vec<String>,
    /// How many do not fit and were left out.
    pub left_out: usize,
    /// Whether the rows are private, and what is said of them too.
    pub private: bool,
    /// What whoever reads it should know.
    pub notes: Vec<String>,
}

/// The classes of a model by their names; none where it predicts a number.
fn classes_of(recipe: &Recipe) -> Vec<String> {
    let many = match recipe.loss {
        LossFunction::Softmax => recipe.outputs,
        LossFunction::Logistic => 2,
        LossFunction::Poisson | LossFunction::Squared | LossFunction::Huber { .. } => 0,
    };
    let name = |class: usize| recipe.classes.as_ref().and_then(|names| names.get(class)).cloned();
    (0..many).map(|class| name(class).unwrap_or_else(|| class.to_string())).collect()
}

fn predicted(row: usize, z: &[f32], loss: LossFunction, classes: &[String], all: bool) -> Predicted {
    let (predicted, probability, shares) = match (probabilities(z, loss), loss) {
        (Some(shares), _) => {
            let class = likeliest(z, loss);
            (classes[class].clone(), Some(shares[class]), shares)
        }
        (None, LossFunction::Poisson) => (f64::from(z[0]).exp().to_string(), None, Vec::new()),
        (None, _) => (z[0].to_string(), None, Vec::new()),
    };
    let shares = if all { classes.iter().cloned().zip(shares).collect() } else { BTreeMap::new() };
    Predicted { row, carried: BTreeMap::new(), predicted, probability, probabilities: shares }
}

pub(crate) fn predict(tables: &Tables, inputs: Inputs, asked_for: &Prediction<'_>) -> Result<Predictions, Error> {
    let mut notes = Vec::new();
    let trained = load(asked_for.model, &mut notes)?;
    let mut recipe = trained.recipe.clone();
    if let Some(dataset) = &asked_for.dataset {
        recipe.dataset.clone_from(dataset);
    }
    let dataset = tables.warehouse().declaration().dataset(&recipe.dataset).map_err(QueryError::from)?;
    let inputs = inputs.and(Input::Model, asked_for.model);
    asked_for.outputs.iter().try_for_each(|file| inputs.check(file))?;
    let private = dataset.unit.is_some();
    if private {
        owner::needed(asked_for.owner, &format!("what a model says of rows of `{}`", dataset.name))?;
    }
    let chosen = ChosenRows { filter: asked_for.chosen.as_deref(), part: None };
    let carried: Vec<String> =
        asked_for.carried.iter().map(|name| tables.column_called(&recipe.dataset, name)).collect();
    let reading = Reading { carried: &carried, ..reading(&recipe, chosen, false) };
    let (rows, numbers) = gather(tables, &recipe, &reading, &keep(tables, asked_for.memory))?;
    fits(&recipe, rows.width())?;
    let outputs = outputs_of(&network(&trained)?, &rows, trained.projection.as_ref(), Tuning::default())?;
    // Rows keep the numbers that they came with.
    let mut left_out = numbers.left_out.iter().peekable();
    let kept = (0_u64..).filter(|row| left_out.next_if_eq(&row).is_none());
    let rows = kept.zip(outputs.chunks_exact(recipe.outputs));
    let classes = classes_of(&recipe);
    let mut texts: Vec<_> = numbers.carried.into_iter().map(Vec::into_iter).collect();
    let one = |(row, z): (u64, &[f32])| {
        let own = carried.iter().zip(&mut texts).map(|(name, texts)| (name.clone(), texts.next().flatten()));
        let own = own.collect();
        let said = predicted(row as usize + 1, z, recipe.loss, &classes, asked_for.probabilities);
        Predicted { carried: own, ..said }
    };
    let rows = rows.map(one).collect();
    let classes = if asked_for.probabilities { classes } else { Vec::new() };
    Ok(Predictions { rows, carried, classes, left_out: numbers.left_out.len(), private, notes })
}
