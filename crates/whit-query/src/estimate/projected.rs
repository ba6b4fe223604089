//! Sums that carry how far a unit moves them, and the noise that is made for just that.

use super::noise::{EstimateError, for_mu};
use std::fmt;
use whit_core::mechanism::SanitiseError;
use whit_core::mechanism::additive::{Additive, Coordinates, Law, Reaches};
use whit_core::{Sensitivity, Unit};
use whit_noise::Entropy;

/// How far units move sums of projected users: what sums carry, and what their noise is made for. One and the same value prices the noise and lets it be added.
pub(super) trait ProjectionReach: Reaches {
    /// How far one unit moves the sums in ℓ2, in steps, rounded up; nothing where nothing bounds it.
    fn moved(&self, unit: &Unit) -> Option<f64>;

    /// Whether no unit moves what was bounded as `other` says further than this says.
    fn covers(&self, other: &Self) -> bool;
}

/// A way to project one user's vector on a convex set, and how far that lets units move the sum over users.
pub(super) trait UserProjection {
    /// One user's rows.
    type User<'a>;
    /// How far units move the sums.
    type Reach: ProjectionReach;

    /// How far units move the sums.
    fn reach(&self) -> Self::Reach;

    /// How many sums there are.
    fn coordinates(&self) -> usize;

    /// Hands on what one user comes to: steps, and which sum they belong to. A function of this user and of nobody else.
    fn project(&mut self, user: Self::User<'_>, add: impl FnMut(usize, i64));
}

/// What is known of ℓ2 alone; where nothing bounds it, it is infinite.
pub(super) fn in_l2(distance: Option<f64>) -> Sensitivity {
    Sensitivity { l1: f64::INFINITY, l2: distance.unwrap_or(f64::INFINITY) }
}

/// Noise on so many sums, which cost, draw and intervals are all taken from.
pub(super) fn noise_on<R: ProjectionReach>(sums: usize, reach: R, law: Law) -> Additive<R> {
    Additive::new(law, reach, Coordinates::Many(sums))
}

/// The least noise on so many sums under which neighbours by one unit are no easier to tell apart than N(0, 1) and N(μ, 1).
pub(super) fn least_noise<R: ProjectionReach>(
    sums: usize,
    reach: R,
    unit: &Unit,
    mu: f64,
) -> Result<Additive<R>, EstimateError> {
    let distance = reach.moved(unit).ok_or_else(|| EstimateError::Unbounded(unit.to_string()))?;
    Ok(noise_on(sums, reach, for_mu(mu, distance)?))
}

/// Exact sums over users, each of whom was projected, with how far that lets a unit move them. A bound is the one way in and noise the one way out,
/// and noise is added only where it was made for as much as they were bounded to.
///
/// ```
/// use whit_core::Mechanism;
/// use whit_query::estimate::{Touch, hitters::{Hitters, PresenceBound}};
/// let words = PresenceBound::new(3, Some(2), Touch::Most(1), "author")?;
/// let counts = words.gather(vec![(7, 0), (7, 2), (8, 2)])?;
/// let hitters = Hitters::new(words, 5.into())?;
/// assert!(hitters.sanitise(&counts, &mut whit_noise::Os).is_ok());
/// # Ok::<(), whit_query::estimate::EstimateError>(())
/// ```
///
/// Numbers that no bound has seen get no noise:
///
/// ```compile_fail,E0308
/// use whit_core::Mechanism;
/// use whit_query::estimate::{Touch, hitters::{Hitters, PresenceBound}};
/// let words = PresenceBound::new(3, Some(2), Touch::Most(1), "author")?;
/// let counts = vec![1_i64, 0, 2];
/// let hitters = Hitters::new(words, 5.into())?;
/// assert!(hitters.sanitise(&counts, &mut whit_noise::Os).is_ok());
/// # Ok::<(), whit_query::estimate::EstimateError>(())
/// ```
///
/// Nor can they be said to have been bounded, or what was bounded to have been so otherwise:
///
/// ```compile_fail,E0451
/// use whit_query::estimate::{ProjectedSums, hitters::PresenceBound};
/// fn mine(sums: Vec<i64>, reach: PresenceBound) -> ProjectedSums<PresenceBound> {
///     ProjectedSums { sums, reach }
/// }
/// ```
///
/// ```compile_fail,E0451
/// use whit_query::estimate::{ProjectedSums, hitters::PresenceBound};
/// fn renamed(sums: ProjectedSums<PresenceBound>, reach: PresenceBound) -> ProjectedSums<PresenceBound> {
///     ProjectedSums { reach, ..sums }
/// }
/// ```
#[derive(Clone)]
pub struct ProjectedSums<R> {
    sums: Vec<i64>,
    reach: R,
}

impl<R> fmt::Debug for ProjectedSums<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ProjectedSums of {} numbers", self.sums.len()) // sums are not for logs
    }
}

impl<R> ProjectedSums<R> {
    /// Adds up what each user comes to after a projection.
    pub(super) fn over<'a, P: UserProjection<Reach = R>>(
        mut projection: P,
        users: impl IntoIterator<Item = P::User<'a>>,
    ) -> Result<Self, EstimateError> {
        let mut sums = vec![0_i64; projection.coordinates()];
        let mut fits = true;
        for user in users {
            projection.project(user, |place, steps| {
                let (sum, overflows) = sums[place].overflowing_add(steps);
                sums[place] = sum;
                fits &= !overflows;
            });
        }
        if fits { Ok(Self { sums, reach: projection.reach() }) } else { Err(EstimateError::Overflow) }
    }

    /// With noise that was made for what one unit moves here, or for more.
    pub(super) fn with_noise(&self, noise: &Additive<R>, entropy: &mut dyn Entropy) -> Result<Vec<i64>, SanitiseError>
    where
        R: ProjectionReach,
    {
        if !noise.reach().covers(&self.reach) {
            return Err(SanitiseError::Unfit("users were bounded in another way than the noise is made for"));
        }
        let mut noisy = self.sums.clone();
        noise.add(&mut noisy, entropy)?;
        Ok(noisy)
    }

    /// The exact sums: tests compare them between neighbours.
    #[cfg(test)]
    pub(super) fn exact(&self) -> &[i64] {
        &self.sums
    }

    /// Sums that nothing bounded and that say that they were, for tests of what is made of noisy ones. In no build but that of this crate's own tests is there such a
    /// thing.
    #[cfg(test)]
    pub(super) fn forged(sums: Vec<i64>, reach: R) -> Self {
        Self { sums, reach }
    }
}
