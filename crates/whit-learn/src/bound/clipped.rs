//! A sum that carries its bound.

use super::{Bags, Batch, Limit, Seen, Total, add_clipped};
use crate::custom::{Inputs, Model};
use crate::error::LearnError;
use crate::loss::{LossFunction, Share, Targets};
use crate::params::Layout;
use crate::plan::{Clip, SUMMATION};
use whit_noise::round::norm_up;

/// A sum of vectors to which no unit added more than the norm of its [`Clip`], but for what rounding moves, which a plan pays for.
///
/// Adding to it clips, and there is no other way in; noise is the one way out, and takes nothing else. So nothing unclipped is released, nor is a sum that was
/// clipped to another norm than the noise is made for. Not even a sum that was clipped can be said to have been so to another norm:
///
/// ```compile_fail,E0451
/// use whit_learn::{Clip, bound::ClippedSum};
/// fn renamed(sum: ClippedSum, clip: Clip) -> ClippedSum {
///     ClippedSum { clip, ..sum }
/// }
/// ```
///
/// What audits forge, they forge inside of this crate:
///
/// ```compile_fail,E0599
/// use whit_learn::{Clip, bound::ClippedSum};
/// fn mine(values: Vec<f64>, clip: Clip) -> ClippedSum {
///     ClippedSum::forged(values, clip)
/// }
/// ```
#[derive(Clone)]
pub struct ClippedSum {
    total: Total,
    clip: Clip,
}

/// How a batch is a part of a step.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Step {
    /// The share of the step's units that are in it, and so of the error that its sum may have.
    pub(crate) share: f64,
    /// The step size of a truncated step, where steps are truncated.
    pub(crate) truncated: Option<f64>,
}

impl std::fmt::Debug for ClippedSum {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "ClippedSum of {} numbers", self.values().len()) // sums are not for logs
    }
}

impl ClippedSum {
    /// So many zeros, to which contributions of at most this norm are added.
    #[must_use]
    pub fn new(coordinates: usize, clip: Clip) -> Self {
        Self { total: Total::new(coordinates), clip }
    }

    /// The clipped gradients of bags of rows, all that a step has: their error from rounding is what a plan pays for once.
    ///
    /// ```
    /// use whit_learn::bound::{Bags, ClippedSum};
    /// use whit_learn::custom::{Inputs, Linear};
    /// use whit_learn::loss::{LossFunction, Targets};
    /// use whit_learn::{Clip, Clipping};
    /// let (model, clip) = (Linear::at_zero(1, 1, false), Clip { norm: 1.0, how: Clipping::Flat });
    /// let targets = Targets::Numbers { values: vec![1e4, 1e4, -1e4], width: 1 };
    /// let rows = Inputs::of(vec![0.5; 3], 1);
    /// let sum = ClippedSum::of_gradients(&model, LossFunction::Squared, rows, &targets, &[1.0; 3], &Bags::single(3), clip)?;
    /// assert_eq!(sum.coordinates(), 1); // two pull one way and one the other, each by 1
    /// # Ok::<(), whit_learn::LearnError>(())
    /// ```
    pub fn of_gradients<M: Model>(
        model: &M,
        loss: LossFunction,
        inputs: Inputs,
        targets: &Targets,
        weights: &[f32],
        bags: &Bags,
        clip: Clip,
    ) -> Result<Self, LearnError> {
        let layout = Layout::of(model).0;
        let mut sum = Self::new(layout.len(), clip);
        let batch = Batch { inputs, targets, weights, bags, share: Share::Whole, coins: None };
        sum.add_bags(model, &layout, loss, batch, Step { share: 1.0, truncated: None })?;
        Ok(sum)
    }

    /// What no contribution is longer than.
    pub fn clip(&self) -> Clip {
        self.clip
    }

    /// How many numbers it has.
    pub fn coordinates(&self) -> usize {
        self.total.values().len()
    }

    /// Adds what one unit contributes, shortened to the norm as a whole, and says whether it did: a number that is infinite or none adds nothing.
    pub fn add(&mut self, contribution: &[f64]) -> Result<bool, LearnError> {
        if contribution.len() != self.coordinates() {
            let (given, expected) = (contribution.len(), self.coordinates());
            return Err(LearnError::Data(format!("a contribution of {given} numbers to a sum of {expected}")));
        }
        let (norm, length) = (self.clip.norm, norm_up(contribution));
        if !length.is_finite() {
            return Ok(false);
        }
        let factor = if length <= norm { 1.0 } else { (norm / length).next_down() };
        self.total.whole().add(contribution.iter().map(|value| factor * value));
        Ok(true)
    }

    /// Adds the clipped gradients of bags.
    pub(crate) fn add_bags<M: Model>(
        &mut self,
        model: &M,
        layout: &Layout,
        loss: LossFunction,
        batch: Batch<'_>,
        step: Step,
    ) -> Result<Seen, LearnError> {
        let allowed = self.clip.norm * SUMMATION / 2.0 * step.share;
        let limit = Limit { clip: Some(self.clip), allowed, truncated: step.truncated };
        add_clipped(model, layout, loss, batch, limit, &mut self.total)
    }

    /// Zeros again.
    pub(crate) fn clear(&mut self) {
        self.total.clear();
    }

    pub(crate) fn values(&self) -> &[f64] {
        self.total.values()
    }

    /// A sum that is not bounded and says that it is: for audits, which try what a learner shows that clips wrongly. In no build but that of this crate's own
    /// tests is there such a thing.
    #[cfg(test)]
    pub(crate) fn forged(values: Vec<f64>, clip: Clip) -> Self {
        Self { total: Total::of(values), clip }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::Clipping;

    #[test]
    fn no_contribution_is_longer_than_the_clip() {
        let clip = Clip { norm: 0.7, how: Clipping::Flat };
        for contribution in [[3.0, 4.0], [0.1, 0.2], [1e300, -1e300], [5e-324, 0.0], [0.7, 1e-17], [1e-160, 7e-161]] {
            let mut sum = ClippedSum::new(2, clip);
            assert!(sum.add(&contribution).unwrap());
            assert!(norm_up(sum.values()) <= 0.7 * (1.0 + 16.0 * f64::EPSILON), "{contribution:?}");
            let short = norm_up(&contribution) <= 0.7;
            assert!(!short || sum.values() == contribution, "what is short stays as it is");
        }
    }

    /// Twelve rows in four bags, through the door for tests and through the honest one, to the last bit.
    #[test]
    fn the_gradients_of_a_step_are_those_that_are_clipped() {
        use crate::custom::Linear;
        let (model, clip) = (Linear::at_zero(2, 1, true), Clip { norm: 0.7, how: Clipping::Flat });
        let features: Vec<f32> = (0..24).map(|i| (i * 7 % 11) as f32 - 5.0).collect();
        let targets = Targets::Numbers { values: (0..12).map(|i| (i * i % 5) as f32).collect(), width: 1 };
        let (weights, bags) = (vec![1.0 / 3.0; 12], Bags::of_sizes(vec![3; 4]));
        let inputs = || Inputs::of(features.clone(), 2);
        let sum =
            ClippedSum::of_gradients(&model, LossFunction::Squared, inputs(), &targets, &weights, &bags, clip).unwrap();
        let (layout, squared) = (Layout::of(&model).0, LossFunction::Squared);
        let door = super::super::clipped_sum_for_tests;
        let values = door(&model, &layout, squared, inputs(), &targets, &weights, &bags, Some(clip)).unwrap();
        assert_eq!((sum.values(), sum.clip()), (&values[..], clip));
        assert!(norm_up(&values) <= 4.0 * 0.7 * (1.0 + 1e-6) && norm_up(&values) > 0.1);
    }

    #[test]
    fn what_is_no_number_adds_nothing_and_harms_nobody() {
        let mut sum = ClippedSum::new(2, Clip { norm: 10.0, how: Clipping::Flat });
        assert!(sum.add(&[1.0, 2.0]).unwrap());
        assert!(!sum.add(&[f64::NAN, 0.0]).unwrap() && !sum.add(&[f64::INFINITY, 1.0]).unwrap());
        assert!(sum.add(&[1.0]).is_err());
        assert_eq!(sum.values(), [1.0, 2.0]);
        assert_eq!(format!("{sum:?}"), "ClippedSum of 2 numbers");
    }
}
