//! Learning without a clip and without noise.

use crate::bound::{Bags, Batch, Seen, Total, add_plain};
use crate::custom::{Inputs, Model};
use crate::error::LearnError;
use crate::loss::{LossFunction, Share, Targets};
use crate::optimise::Optimiser;
use crate::params::Layout;

/// Plain learning, which is non-private: what private learning is compared with.
pub struct Plain<M: Model> {
    model: M,
    layout: Layout,
    theta: Vec<f32>,
    loss: LossFunction,
    optimiser: Optimiser,
    sums: Total,
}

impl<M: Model> Plain<M> {
    /// A model, where it starts.
    pub fn new(model: M, loss: LossFunction, optimiser: Optimiser) -> Self {
        let (layout, theta) = Layout::of(&model);
        let sums = Total::new(layout.len());
        Self { model, layout, theta, loss, optimiser, sums }
    }

    /// One step along the mean gradient of rows.
    pub fn step(&mut self, features: Vec<f32>, width: usize, targets: &Targets) -> Result<Seen, LearnError> {
        let rows = targets.len();
        self.sums.clear();
        let batch = Batch {
            inputs: Inputs::of(features, width),
            targets,
            weights: &vec![1.0 / rows.max(1) as f32; rows],
            bags: &Bags::of_sizes([rows]),
            share: Share::Whole,
            coins: None,
        };
        let seen = add_plain(&self.model, &self.layout, self.loss, batch, &mut self.sums)?;
        if seen.emptied > 0 || !self.sums.values().iter().all(|sum| sum.is_finite()) {
            return Err(LearnError::NotANumber("the batch".to_owned()));
        }
        self.optimiser.step(&mut self.theta, self.sums.values(), 0.0)?;
        self.model = self.layout.fill(self.model.clone(), &self.theta)?;
        Ok(seen)
    }

    /// The model as it is now.
    pub fn model(&self) -> &M {
        &self.model
    }

    /// θ as it is now.
    pub fn theta(&self) -> &[f32] {
        &self.theta
    }
}
