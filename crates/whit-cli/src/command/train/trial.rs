//! How well a model does on rows that its owner chose. What comes out is as private as the rows.

use super::owner::Owner;
use super::prepare::{gather, reading, targets};
use crate::command::Error;
use serde::Serialize;
use whit::learn::loss::Targets;
use whit::learn::model::Network;
use whit::learn::train::{Tuning, evaluate, predict};
use whit::learn::{Keep, Projection, Recipe, Store, Trained};
use whit::noise::Os;
use whit::query::Tables;

/// Rows to try a model on.
pub(super) struct Trial {
    features: Store,
    targets: Targets,
}

/// How a model does.
#[derive(Debug, Clone, Copy, Serialize)]
pub(super) struct Score {
    pub(super) rows: usize,
    /// The mean loss.
    pub(super) loss: f64,
    /// The share that is told right, for classes.
    pub(super) accuracy: Option<f64>,
}

impl Trial {
    /// Reads the rows. They are for the owner's eyes, and so is all that comes of them.
    pub(super) fn read(
        _: Owner,
        tables: &Tables,
        recipe: &Recipe,
        filter: Option<&str>,
        keep: &Keep,
    ) -> Result<Self, Error> {
        let (features, numbers) = gather(tables, recipe, &reading(recipe, filter, true), keep)?;
        if numbers.rows == 0 {
            return Err(super::spec::asked("there is no row to try the model on", "check `evaluate_where`"));
        }
        fits(recipe, features.width())?;
        Ok(Self { features, targets: targets(recipe, numbers.targets) })
    }

    pub(super) fn score(
        &self,
        recipe: &Recipe,
        model: &Network,
        projection: Option<&Projection>,
    ) -> Result<Score, Error> {
        let outputs = predict(model, &self.features, projection, Tuning::default())?;
        let (loss, accuracy) = evaluate(recipe.loss, &outputs, &self.targets, recipe.outputs);
        Ok(Score { rows: self.targets.len(), loss, accuracy })
    }
}

/// Whether rows are as wide as the model's input.
pub(super) fn fits(recipe: &Recipe, width: usize) -> Result<(), Error> {
    if width == recipe.inputs {
        return Ok(());
    }
    Err(super::spec::asked(
        format!("the model reads {} numbers a row, and these rows have {width}", recipe.inputs),
        "take the data that it was made for, or one of the same columns",
    ))
}

/// The model of a file, ready to be used.
pub(super) fn network(trained: &Trained) -> Result<Network, Error> {
    let recipe = &trained.recipe;
    Ok(trained.fill(recipe.model.build(recipe.read(), recipe.outputs, &mut Os)?)?)
}
