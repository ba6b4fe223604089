//! How long the label's part of gradients may be, by what is public under a label unit: features, and parameters that are released.

use crate::bound::{Bags, Batch, lengths_of};
use crate::custom::{Inputs, Model};
use crate::error::LearnError;
use crate::loss::{LossFunction, Share, Targets};
use crate::source::Rows;

/// How long the label's part of a unit's gradient may be, whatever the labels are: all that a clip norm has to leave room for.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LabelGradients {
    /// The longest, of the units that were looked at.
    pub longest: f64,
    /// The share of these units for which some label has one that is longer than the clip norm.
    pub beyond: f64,
}

impl Rows {
    /// The longest that the label's part of a unit's gradient can be in a linear model of classes: of a row, its length, with 1 for the constant
    /// where there is one, whatever its label is; of several, the mean of these. It reads features alone, which are public under a label unit and under no other.
    pub fn longest_label_gradient(&self, constant: bool) -> Result<f64, LearnError> {
        let (width, one) = (self.width(), if constant { 1.0 } else { 0.0 });
        let mut longest = 0.0_f64;
        for unit in 0..self.units() as u32 {
            let own = self.of_unit(unit);
            let numbers = self.pick(own)?;
            let length = |row: &[f32]| (row.iter().map(|&x| f64::from(x).powi(2)).sum::<f64>() + one).sqrt();
            let mean = numbers.chunks_exact(width.max(1)).map(length).sum::<f64>() / own.len().max(1) as f64;
            longest = longest.max(mean);
        }
        Ok(longest)
    }
}

/// How long the label's part of gradients may be at a model's parameters, of at most so many units, evenly spread, compared with a clip norm. Nothing where labels are numbers, of
/// which nothing public says how large they are. It reads no label.
pub fn label_gradients<M: Model>(
    model: &M,
    loss: LossFunction,
    rows: &Rows,
    clip: f64,
    most: usize,
) -> Result<Option<LabelGradients>, LearnError> {
    let outputs = model.outputs() as u32;
    let labels = match loss {
        LossFunction::Softmax => 0..outputs,
        LossFunction::Logistic => 1..2, // a label of 0 has no part of its own
        LossFunction::Squared | LossFunction::Poisson | LossFunction::Huber { .. } => return Ok(None),
    };
    let apart = rows.units().div_ceil(most.max(1)).max(1);
    let units: Vec<u32> = (0..rows.units() as u32).step_by(apart).collect();
    let (mut longest, mut beyond) = (0.0_f64, 0);
    for units in units.chunks(64) {
        let picked: Vec<u32> = units.iter().flat_map(|&unit| rows.of_unit(unit)).copied().collect();
        let features = rows.pick(&picked)?;
        let mut lengths = vec![0.0_f64; picked.len()];
        for label in labels.clone() {
            let targets = match loss {
                LossFunction::Softmax => Targets::Classes { labels: vec![label; picked.len()], classes: outputs },
                _ => Targets::Numbers { values: vec![label as f32; picked.len()], width: 1 },
            };
            let batch = Batch {
                inputs: Inputs::of(features.clone(), rows.width()),
                targets: &targets,
                weights: &vec![1.0; picked.len()],
                bags: &Bags::single(picked.len()),
                share: Share::OfLabel,
                coins: None,
            };
            let found = lengths_of(model, loss, batch)?;
            lengths.iter_mut().zip(found).for_each(|(length, found)| *length = length.max(found));
        }
        let mut rest = &lengths[..];
        for &unit in units {
            let own = rest.split_off(..rows.of_unit(unit).len()).unwrap_or_default();
            let mean = own.iter().sum::<f64>() / own.len().max(1) as f64;
            longest = longest.max(mean);
            beyond += usize::from(mean > clip * (1.0 + 1e-6));
        }
    }
    Ok(Some(LabelGradients { longest, beyond: beyond as f64 / units.len().max(1) as f64 }))
}
