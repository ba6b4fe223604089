//! Rows in the directions in which they vary most, which were released before the first step.

use super::Learner;
use crate::custom::Model;
use crate::error::LearnError;
use crate::pca::Principal;
use crate::projection::Projection;
use crate::scatter::{Scatter, Sum};

impl<M: Model> Learner<M> {
    /// Σ x·xᵀ over units, each bounded as the mechanism has it, for its noise to be added. As private as the rows until then.
    pub fn second_moments(&self, scatter: &Scatter) -> Result<Sum, LearnError> {
        let width = self.rows.width();
        let mut sum = scatter.start();
        let units: Vec<u32> = (0..self.rows.units() as u32).collect();
        for units in units.chunks(256) {
            let rows: Vec<u32> = units.iter().flat_map(|&unit| self.rows.of_unit(unit)).copied().collect();
            let numbers = self.rows.pick(&rows)?;
            let mut rest = &numbers[..];
            for &unit in units {
                let own = rest.split_off(..self.rows.of_unit(unit).len() * width).unwrap_or_default();
                sum.add(own).map_err(|error| LearnError::Data(error.to_string()))?;
            }
        }
        Ok(sum)
    }

    /// Projects all rows, before the first step. The model reads as many numbers as directions are kept, and carries them when it is released.
    /// A [`TrainingRun`](crate::TrainingRun) releases it where the plan promises what the directions were found from.
    pub fn project(&mut self, principal: &Principal) -> Result<(), LearnError> {
        let projection = Projection::of(principal);
        if projection.columns() != self.rows.width() || self.projection.is_some() {
            let (expected, width) = (projection.columns(), self.rows.width());
            return Err(LearnError::Data(format!("directions of {expected} numbers do not go with rows of {width}")));
        }
        self.rows = self.rows.projected(&projection)?;
        (self.projection, self.directions_of) = (Some(projection), Some(principal.scatter().clone()));
        Ok(())
    }

    /// What rows were projected on.
    pub fn projection(&self) -> Option<&Projection> {
        self.projection.as_ref()
    }

    /// What these directions were found from.
    pub(crate) fn directions_of(&self) -> Option<&Scatter> {
        self.directions_of.as_ref()
    }
}
