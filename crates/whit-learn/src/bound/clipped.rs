//! A sum that carries its bound.

use super::{Batch, Limit, Seen, Total, add_clipped};
use crate::custom::Model;
use crate::error::LearnError;
use crate::loss::Loss;
use crate::params::Layout;
use crate::plan::{Clip, SUMMATION};
use whit_noise::round::norm_up;

/// A sum of vectors to which no unit added more than the norm of its [`Clip`], but for what rounding moves, which a plan pays for.
///
/// Adding to it clips, and there is no other way in; noise is the one way out, and takes nothing else. So nothing unclipped is released, nor is a sum that was
/// clipped to another norm than the noise is made for.
///
/// ```compile_fail
/// use whit_learn::{Clip, Clipping, bound::ClippedSum};
/// let clip = Clip { norm: 1.0, how: Clipping::Flat };
/// let mine = ClippedSum { total: vec![1e9], clip }; // no bound made this
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
        loss: Loss,
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

    /// A sum that is not bounded and says that it is: for audits, which try what a learner shows that clips wrongly.
    #[doc(hidden)]
    #[must_use]
    pub fn forged_for_audits(values: Vec<f64>, clip: Clip) -> Self {
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
