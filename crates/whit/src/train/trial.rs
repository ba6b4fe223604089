//! How well a model does on rows that its owner chose. What comes out is as private as the rows.

use super::features::ChosenRows;
use super::measure::Measures;
use super::owner::Owner;
use super::rows::{gather, reading, targets};
use crate::Error;
use serde::Serialize;
use whit_learn::loss::Targets;
use whit_learn::model::Network;
use whit_learn::train::{Tuning, evaluate, predict};
use whit_learn::{Keep, Projection, Recipe, Store, Trained};
use whit_noise::Os;
use whit_query::Tables;

/// Rows to try a model on.
pub(crate) struct Trial {
    features: Store,
    targets: Targets,
}

/// How a model does.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct Score {
    /// How many rows it was tried on.
    pub rows: usize,
    /// The mean loss.
    pub loss: f64,
    /// The accuracy: the share that is predicted right, for classes.
    pub accuracy: Option<f64>,
}

impl Trial {
    /// Reads the rows. They are for the owner's eyes, and so is all that comes of them.
    pub(crate) fn read(
        _: Owner,
        tables: &Tables,
        recipe: &Recipe,
        chosen: ChosenRows<'_>,
        keep: &Keep,
    ) -> Result<Self, Error> {
        let (features, numbers) = gather(tables, recipe, &reading(recipe, chosen, true), keep)?;
        if numbers.rows == 0 {
            return Err(super::spec::asked(
                "there is no row to try the model on",
                "check `evaluate_where`, or `split`",
            ));
        }
        fits(recipe, features.width())?;
        Ok(Self { features, targets: targets(recipe, numbers.targets) })
    }

    pub(crate) fn score(
        &self,
        recipe: &Recipe,
        model: &Network,
        projection: Option<&Projection>,
    ) -> Result<Score, Error> {
        Ok(self.scored(recipe, &predict(model, &self.features, projection, Tuning::default())?))
    }

    fn scored(&self, recipe: &Recipe, outputs: &[f32]) -> Score {
        let (loss, accuracy) = evaluate(recipe.loss, outputs, &self.targets, recipe.outputs);
        Score { rows: self.targets.len(), loss, accuracy }
    }

    /// The score, and for classes all else that says how well a model tells them apart.
    pub(crate) fn measures(
        &self,
        recipe: &Recipe,
        model: &Network,
        projection: Option<&Projection>,
    ) -> Result<(Score, Option<Measures>), Error> {
        let outputs = predict(model, &self.features, projection, Tuning::default())?;
        let classes = (recipe.loss, recipe.classes.as_deref());
        Ok((self.scored(recipe, &outputs), Measures::of(&outputs, recipe.outputs, &self.targets, classes)))
    }
}

/// Whether rows are as wide as the model's input.
pub(crate) fn fits(recipe: &Recipe, width: usize) -> Result<(), Error> {
    if width == recipe.inputs {
        return Ok(());
    }
    Err(super::spec::asked(
        format!("the model reads {} numbers a row, and these rows have {width}", recipe.inputs),
        "take the data that it was made for, or one of the same columns",
    ))
}

/// The model of a file, ready to be used.
pub(crate) fn network(trained: &Trained) -> Result<Network, Error> {
    let recipe = &trained.recipe;
    Ok(trained.fill(recipe.model.build(recipe.read(), recipe.outputs, &mut Os)?)?)
}
