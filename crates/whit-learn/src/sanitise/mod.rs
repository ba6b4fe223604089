//! The one way out of a clipped sum: snapped to a lattice, noise added once, divided by a number fixed before.

mod ahead;
mod grid;
#[cfg(test)]
mod tests;

pub use crate::error::SanitiserError;
pub use crate::plan::NoiseSource;
pub use grid::Grid;

use crate::bound::ClippedSum;
use crate::plan::Plan;
use ahead::Ahead;
use whit_core::mechanism::additive::{Additive, Coordinates, Law, Reach};
use whit_core::{Bound, Support};
use whit_noise::Overflow;
use whit_noise::round::product_up;

/// Adds Gaussian noise to the clipped sum of each step of a plan, as often as the plan pays for.
///
/// # Neighbours
/// Data sets that differ in one unit of a rung. Given all other coins, a step's exact clipped sum `S` is `e` where the
/// unit is not drawn and `a` or `b` where it is, with `|a − e| ≤ r·C` and `|a − b| ≤ d·C` for an `r ≥ 1` and the `d` of
/// [`dominating`](whit_account::accountant::pair::dominating).
///
/// # Claim
/// All steps together are at most as easy to tell apart as [`Plan::cost`] says: subsampled Gaussian noise of multiplier
/// `σ/(1 + slack)`, on contributions of at most 1 that are at most `(d + slack)/(1 + slack)` apart.
///
/// # Why
/// 1. *The float sum* is within `C·SUMMATION/2` of `S`, whatever the rows are, from the smallest float to the largest: norms are taken in wide arithmetic and raised by
///    more than it rounds, products are taken in f32 only where that errs by less, and added up to twice the digits of f64, however many there are. It is a function of the drawn bags, in the
///    order of their units, alone: where the unit is not drawn, both data sets give the same floats, bit by bit.
/// 2. *Snapping* moves it by at most `√d·step/2 ≤ C·SNAPPING/2` more: see [`Grid`]. So the lattice point `T` is within
///    `C·slack/2` of `S`, with `slack = SUMMATION + SNAPPING`, and the distance of two of them grows by at most `C·slack`.
/// 3. Let `C′ = C(1 + slack)`. As `r ≥ 1`, `r·C + slack·C ≤ r·C′`: what is drawn moves `T` by at most `r` units of `C′`,
///    and neighbours are apart by at most `d·C + slack·C = C′·(d + slack)/(1 + slack)`. For `h` units at once it is
///    `h·d·C + slack·C`, which is not more than `h` times that; where none of them is drawn the floats are the same.
/// 4. The noise has deviation `σ·C`, exactly, in a lattice that `T` is a point of, so `T + round(N) = round(T + N)`: rounding is
///    post-processing of the real Gaussian mechanism with multiplier `σ·C/C′ = σ/(1 + slack)`. So is the division, by
///    a number that is the same for all data sets.
/// 5. Noise is drawn once for each step and used once: buffers have one owner, and a fork is refused.
///
/// A refusal of a sum would show something of the data. A unit of which something is infinite or no number therefore contributes nothing, and a coordinate of the sum
/// that is beyond the lattice (2^51 steps, which takes millions of units in one step) stays at its end, as in a projection. That a sum is not finite is still looked for; no rows make it
/// so.
///
/// # Tried by
/// `a_snapped_sum_is_within_the_stated_slack`, `noise_follows_its_law`, `each_step_has_noise_of_its_own`,
/// `what_is_refused_takes_no_noise`, `no_row_of_any_size_adds_more_than_the_clip`, `every_buffer_is_given_once_and_in_order`, `a_plan_pays_for_so_many_steps_and_no_more`,
/// `slack_is_paid_for_at_every_difference`, `sums_of_another_bound_are_refused`, `one_step_has_the_noise_that_the_plan_counts_on`,
/// `an_attack_on_whole_users_attains_what_the_plan_charges_and_not_what_the_paper_does`.
///
/// ```
/// use whit_core::{Change, Ladder, Unit, unit::{Caps, Kind}};
/// use whit_learn::{Count, Draft, Sanitiser, bound::ClippedSum};
/// let ladder = Ladder::new(vec![Unit::event(Change::AddRemove)], Caps::default(), Kind::Event)?;
/// let plan = Draft::new(ladder, "1/100".parse()?, Count::Declared(10_000), 1.0, 1000).with_noise(1.0)?;
/// let mut sanitiser = Sanitiser::new(&plan, 3)?;
/// let mut sum = ClippedSum::new(3, plan.clip());
/// for _ in 0..40 {
///     sum.add(&[25.0, 0.0, 0.0])?; // which counts for 1
/// }
/// let mut gradient = [0.0; 3];
/// sanitiser.sanitise(&sum, &mut gradient)?;
/// assert!((gradient[0] - 0.4).abs() < 0.2); // divided by the 100 that are drawn on average, noise 0.01
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Sanitiser {
    grid: Grid,
    coordinates: usize,
    clip: f64,
    divisor: f64,
    steps: u64,
    left: u64,
    source: NoiseSource,
    ahead: Ahead,
}

impl Sanitiser {
    /// The sanitiser of a plan for so many coordinates, with noise from where the plan says. Its thread begins to draw at once.
    pub fn new(plan: &Plan, coordinates: usize) -> Result<Self, SanitiserError> {
        if coordinates == 0 || coordinates as u64 > 1 << 32 {
            return Err(SanitiserError::Coordinates { coordinates });
        }
        let clip = plan.clip().norm;
        let grid = Grid::new(clip, coordinates);
        let sigma = grid.in_steps(plan.noise(), clip).ok_or(Overflow)?;
        let law = Law::rounded(sigma)?;
        // What a unit that is drawn moves the snapped sum by, in steps; the quotient is exact.
        let radius = product_up(clip / grid.step(), 1.0 + plan.slack());
        let reach = Reach::new(Bound::Ball { radius, support: Support::Any });
        let (divisor, steps, source) = (plan.divisor(), plan.steps(), plan.step_noise());
        let noise = Additive::new(law, reach, Coordinates::Many(coordinates));
        let ahead = Ahead::new(noise, coordinates, source)?;
        Ok(Self { grid, coordinates, clip, divisor, steps, left: steps, source, ahead })
    }

    /// The lattice that sums are snapped to.
    pub fn grid(&self) -> &Grid {
        &self.grid
    }

    /// How many steps are left of what the plan pays for.
    pub fn left(&self) -> u64 {
        self.left
    }

    /// Goes on after a checkpoint: so many steps were taken before.
    pub(crate) fn resume(&mut self, taken: u64) {
        self.left = self.steps.saturating_sub(taken);
    }

    /// The noise of one step on lattice points, and how far one unit that is drawn moves them. What all steps cost is [`Plan::cost`]'s to say, which knows
    /// of the coins.
    pub fn noise(&self) -> &Additive {
        self.ahead.noise()
    }

    /// The noisy mean of one step: the clipped sum, snapped, with noise, over the plan's divisor.
    pub fn sanitise(&mut self, sum: &ClippedSum, mean: &mut [f64]) -> Result<(), SanitiserError> {
        if mean.len() != self.coordinates {
            return Err(SanitiserError::Length { expected: self.coordinates, found: mean.len() });
        }
        if self.source == NoiseSource::Off {
            return self.divide(sum, mean);
        }
        let scale = self.grid.step() / self.divisor;
        self.sanitise_with(sum, |points| {
            for (mean, &point) in mean.iter_mut().zip(points) {
                *mean = point as f64 * scale;
            }
        })
    }

    /// Whether a step is left, and the sum is one of this plan's.
    fn check(&self, sum: &ClippedSum) -> Result<(), SanitiserError> {
        if self.left == 0 {
            return Err(SanitiserError::Spent { steps: self.steps });
        }
        if sum.coordinates() != self.coordinates {
            return Err(SanitiserError::Length { expected: self.coordinates, found: sum.coordinates() });
        }
        let (expected, found) = (self.clip, sum.clip().norm);
        if found.is_nan() || found > expected {
            return Err(SanitiserError::Clip { expected, found });
        }
        Grid::check(sum.values())
    }

    /// Without noise there is nothing that a lattice could hide.
    fn divide(&mut self, sum: &ClippedSum, mean: &mut [f64]) -> Result<(), SanitiserError> {
        self.check(sum)?;
        self.left -= 1;
        mean.iter_mut().zip(sum.values()).for_each(|(mean, sum)| *mean = sum / self.divisor);
        Ok(())
    }

    /// The noisy lattice points of one step, for those who scale them themselves: see [`Sanitiser::value`].
    ///
    /// What is refused leaves no trace: no noise is taken and no step is used up.
    fn sanitise_with<R>(&mut self, sum: &ClippedSum, read: impl FnOnce(&[i64]) -> R) -> Result<R, SanitiserError> {
        self.check(sum)?;
        let mut noisy = self.ahead.take()?;
        self.left -= 1;
        let done = self.grid.add_to(&mut noisy, sum.values()).map(|()| read(&noisy));
        self.ahead.give_back(noisy);
        Ok(done?)
    }

    /// What a lattice point stands for, over the plan's divisor.
    pub fn value(&self, point: i64) -> f64 {
        point as f64 * (self.grid.step() / self.divisor)
    }
}
