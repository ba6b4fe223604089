//! What a model says of rows.

use super::evaluate::load;
use super::keep;
use super::owner::{self, Owner};
use super::rows::{gather, reading};
use super::trial::{fits, network};
use crate::Error;
use serde::Serialize;
use std::path::{Path, PathBuf};
use whit_learn::loss::LossFunction;
use whit_learn::train::{Tuning, predict as outputs_of};
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
    /// Files that the answer will be written into: none of them may be one that it is read from.
    pub outputs: Vec<PathBuf>,
}

/// What is said of one row.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Predicted {
    /// Which row, from 1.
    pub row: usize,
    /// A class by its name, or a number.
    pub predicted: String,
    /// How sure the model is of the class.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub probability: Option<f64>,
}

/// What is said of rows.
#[derive(Debug, Clone)]
pub struct Predictions {
    /// Row by row, by their own numbers.
    pub rows: Vec<Predicted>,
    /// How many do not fit and were left out.
    pub left_out: usize,
    /// Whether the rows are private, and what is said of them too.
    pub private: bool,
    /// What whoever reads it should know.
    pub notes: Vec<String>,
}

fn sigmoid(z: f64) -> f64 {
    1.0 / (1.0 + (-z).exp())
}

fn predicted(row: usize, z: &[f32], loss: LossFunction, classes: Option<&[String]>) -> Predicted {
    let name = |class: usize| classes.and_then(|names| names.get(class)).cloned().unwrap_or_else(|| class.to_string());
    match loss {
        LossFunction::Softmax => {
            let best = (0..z.len()).fold(0, |best, class| if z[class] > z[best] { class } else { best });
            let total: f64 = z.iter().map(|&other| f64::from(other - z[best]).exp()).sum();
            Predicted { row, predicted: name(best), probability: Some(1.0 / total) }
        }
        LossFunction::Logistic => {
            let yes = sigmoid(f64::from(z[0]));
            let class = usize::from(z[0] > 0.0);
            Predicted { row, predicted: name(class), probability: Some(if class == 1 { yes } else { 1.0 - yes }) }
        }
        LossFunction::Poisson => Predicted { row, predicted: f64::from(z[0]).exp().to_string(), probability: None },
        LossFunction::Squared | LossFunction::Huber { .. } => {
            Predicted { row, predicted: z[0].to_string(), probability: None }
        }
    }
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
    let reading = reading(&recipe, asked_for.chosen.as_deref(), false);
    let (rows, numbers) = gather(tables, &recipe, &reading, &keep(tables, asked_for.memory))?;
    fits(&recipe, rows.width())?;
    let outputs = outputs_of(&network(&trained)?, &rows, trained.projection.as_ref(), Tuning::default())?;
    // Rows keep the numbers that they came with.
    let mut left_out = numbers.left_out.iter().peekable();
    let kept = (0_u64..).filter(|row| left_out.next_if_eq(&row).is_none());
    let rows = kept.zip(outputs.chunks_exact(recipe.outputs));
    let rows = rows.map(|(row, z)| predicted(row as usize + 1, z, recipe.loss, recipe.classes.as_deref())).collect();
    Ok(Predictions { rows, left_out: numbers.left_out.len(), private, notes })
}
