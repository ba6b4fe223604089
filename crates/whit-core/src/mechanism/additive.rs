//! Integers plus noise: the one place where noise is added, where it is priced, and where it is said how far it reaches.
//!
//! Whoever adds noise to a statistic does it with an [`Additive`]: a [`Law`], and what [`Reaches`]: it says how far one unit of a rung moves
//! what the noise is added to. The scalars and vectors of [`laplace`](super::laplace) and [`gaussian`](super::gaussian) are faces of it.

use super::{Accuracy, BadParameter, Mechanism, SanitiseError};
use crate::bound::{Bound, Sensitivity};
use crate::cost::Cost;
use crate::loss::{Epsilon, Rho};
use crate::release::Sealed;
use crate::unit::{Change, Kind, Ladder, Rung};
use whit_noise::round::{product_up, quotient_down, ratio_down, ratio_up, root_of_whole_up, root_up, whole_up};
use whit_noise::{DiscreteGaussian, DiscreteLaplace, Entropy, Overflow, Ratio, RoundedGaussian};

/// A hair, for the rounding in a tail.
const HAIR: f64 = 1e-11;
/// Draws that wait to be added.
const BLOCK: usize = 512;
/// Up to so many steps, floats tell single steps apart in all that is computed here.
const SINGLE_STEPS: f64 = (1_u64 << 50) as f64;

/// A law of integers, symmetric about 0, that is drawn exactly.
#[derive(Debug, Clone)]
pub enum Law {
    /// Discrete Laplace noise: pure ε.
    Laplace(DiscreteLaplace),
    /// Real Gaussian noise, rounded: the default.
    Rounded(RoundedGaussian),
    /// Discrete Gaussian noise: zCDP by the letter.
    Discrete(DiscreteGaussian),
}

impl Law {
    /// Discrete Laplace noise of this scale, in lattice steps.
    pub fn laplace(scale: Ratio) -> Result<Self, BadParameter> {
        Ok(Self::Laplace(DiscreteLaplace::new(scale)?))
    }

    /// Real Gaussian noise of this standard deviation, in lattice steps, rounded to integers.
    pub fn rounded(sigma: Ratio) -> Result<Self, BadParameter> {
        Ok(Self::Rounded(RoundedGaussian::new(sigma)?))
    }

    /// Discrete Gaussian noise of this variance, in squared lattice steps.
    pub fn discrete(variance: Ratio) -> Result<Self, BadParameter> {
        Ok(Self::Discrete(DiscreteGaussian::new(variance)?))
    }

    /// One draw.
    fn draw(&self, entropy: &mut dyn Entropy) -> Result<i64, Overflow> {
        match self {
            Self::Laplace(law) => law.draw(entropy),
            Self::Rounded(law) => law.draw(entropy),
            Self::Discrete(law) => law.draw(entropy),
        }
    }

    /// Fills a slice with independent draws. After an error it holds nothing of use.
    fn fill(&self, out: &mut [i64], entropy: &mut dyn Entropy) -> Result<(), Overflow> {
        match self {
            Self::Laplace(law) => law.fill(out, entropy),
            Self::Rounded(law) => law.fill(out, entropy),
            Self::Discrete(law) => law.fill(out, entropy),
        }
    }

    /// The same on several threads, each with the operating system's entropy.
    fn fill_parallel(&self, out: &mut [i64], threads: usize) -> Result<(), Overflow> {
        match self {
            Self::Laplace(law) => law.fill_parallel(out, threads),
            Self::Rounded(law) => law.fill_parallel(out, threads),
            Self::Discrete(law) => law.fill_parallel(out, threads),
        }
    }

    /// Adds an independent draw to each value. After an error the slice holds nothing of use, and nothing of it may leave.
    fn add(&self, values: &mut [i64], entropy: &mut dyn Entropy) -> Result<(), Overflow> {
        match (self, values) {
            (_, [value]) => add_to(std::slice::from_mut(value), [self.draw(entropy)?]),
            (Self::Laplace(_) | Self::Rounded(_), values) => {
                let mut noise = [0; BLOCK];
                for block in values.chunks_mut(BLOCK) {
                    let noise = &mut noise[..block.len()];
                    self.fill(noise, entropy)?;
                    add_to(block, noise.iter().copied())?;
                }
                Ok(())
            }
            // It draws words ahead, which would be lost from block to block.
            (Self::Discrete(law), values) => {
                let mut noise = vec![0; values.len()];
                law.fill(&mut noise, entropy)?;
                add_to(values, noise)
            }
        }
    }

    /// The standard deviation in lattice steps: of a rounded law that of the real one, and of Laplace noise √2 times the scale.
    pub fn deviation(&self) -> f64 {
        match self {
            Self::Laplace(law) => law.scale().to_f64() * std::f64::consts::SQRT_2,
            Self::Rounded(law) => law.sigma().to_f64(),
            Self::Discrete(law) => law.variance().to_f64().sqrt(),
        }
    }

    /// The chance that the noise is more than so many whole steps from 0: exactly, but for the discrete Gaussian, of which it is a bound.
    pub fn tail(&self, steps: f64) -> f64 {
        match self {
            Self::Laplace(law) => laplace_tail(steps, law.scale()),
            // A real that rounds to more than m is at least m + 1/2 away.
            Self::Rounded(law) => normal_tail((steps + 0.5) / law.sigma().to_f64()),
            // Canonne, Kamath, Steinke 2020, Proposition 25: P[X ≥ m + 1] ≤ P[N(0, σ²) ≥ m].
            Self::Discrete(law) => normal_tail(steps / law.variance().to_f64().sqrt()),
        }
    }

    /// The least whole number of steps that the noise exceeds with at most this chance, as [`tail`](Self::tail) has it; infinite where the
    /// chance is not above 0.
    ///
    /// ```
    /// use whit_core::mechanism::additive::Law;
    /// let law = Law::rounded("0.4".parse()?)?;
    /// assert_eq!(law.exceeded(0.05), 1.0); // mostly 0 and sometimes 1: no interval of 1.96 σ says so
    /// # Ok::<(), whit_core::mechanism::BadParameter>(())
    /// ```
    pub fn exceeded(&self, chance: f64) -> f64 {
        let allowed = chance * (1.0 - HAIR);
        if allowed.is_nan() || allowed <= 0.0 {
            return f64::INFINITY;
        }
        if self.tail(0.0) <= allowed {
            return 0.0;
        }
        let near = match self {
            Self::Laplace(law) => {
                let scale = law.scale().to_f64();
                -scale * (0.5 * allowed * (1.0 + (-1.0 / scale).exp())).ln() - 1.0
            }
            Self::Rounded(law) => law.sigma().to_f64() * normal_distance(allowed) - 0.5,
            Self::Discrete(law) => law.variance().to_f64().sqrt() * normal_distance(allowed),
        };
        let mut steps = near.ceil().max(0.0);
        if steps >= SINGLE_STEPS {
            return (steps * (1.0 + HAIR)).ceil();
        }
        // At most a step off, unless chances are too small for floats.
        let mut stride = 1.0;
        while self.tail(steps) > allowed {
            steps += stride;
            stride *= 2.0;
        }
        while steps >= 1.0 && self.tail(steps - 1.0) <= allowed {
            steps -= 1.0;
        }
        steps
    }

    /// How far the noise is from 0 with this confidence, in whole steps.
    pub fn within(&self, confidence: f64) -> f64 {
        self.exceeded(1.0 - confidence)
    }

    /// How far none of `coordinates` independent draws is from 0 with this confidence, in whole steps.
    pub fn all_within(&self, confidence: f64, coordinates: usize) -> f64 {
        if coordinates <= 1 || !(0.0..1.0).contains(&confidence) {
            return self.within(confidence);
        }
        // All of d hold with probability c when each holds with c^(1/d).
        self.exceeded(-libm::expm1(libm::log(confidence) / coordinates as f64))
    }

    /// In words, for people who read a statement; `step` is what a lattice step is worth to them.
    pub fn words(&self, step: f64) -> String {
        match self {
            Self::Laplace(law) => format!("discrete Laplace, scale {}", short(law.scale().to_f64() * step)),
            Self::Rounded(law) => format!("rounded Gaussian, σ = {}", short(law.sigma().to_f64() * step)),
            Self::Discrete(_) => format!("discrete Gaussian, σ = {}", short(self.deviation() * step)),
        }
    }

    /// What one run costs neighbours that are this far apart, of so many coordinates.
    pub fn cost(&self, moved: Sensitivity, coordinates: Coordinates) -> Cost {
        match self {
            Self::Laplace(law) => {
                let distance = match coordinates {
                    Coordinates::One => moved.l1.min(moved.l2),
                    Coordinates::Many(number) => l1_up(moved, number),
                    Coordinates::Any => moved.l1,
                };
                match (whole_within(distance), coordinates) {
                    (None, _) => Cost::Everything,
                    (Some(0), _) => Cost::Nothing,
                    (Some(shift), Coordinates::One) => Cost::Geometric { shift, scale: ratio_down(law.scale()) },
                    (Some(distance), Coordinates::Many(_) | Coordinates::Any) => pure_up(distance, law.scale()),
                }
            }
            Self::Rounded(law) => {
                let distance = moved.l1.min(moved.l2);
                let squared = squared_within(distance);
                if squared == 0.0 {
                    return Cost::Nothing;
                }
                // Squares of long distances round, and a root of what was rounded up is no better bound than the distance itself.
                let length = if squared.is_finite() { root_up(squared).min(distance) } else { squared };
                let noise = quotient_down(ratio_down(law.sigma()), length);
                // A distance beyond numbers leaves no noise worth the name.
                if noise > 0.0 { Cost::Gaussian { noise } } else { Cost::Everything }
            }
            Self::Discrete(law) => {
                let squared = squared_within(moved.l1.min(moved.l2));
                if squared == 0.0 {
                    return Cost::Nothing;
                }
                rho_up(squared, law.variance())
                    .and_then(|rho| Rho::new(rho).ok())
                    .map_or(Cost::Everything, |rho| Cost::Concentrated { rho })
            }
        }
    }
}

/// Adds other numbers to values, one to each, or fails as a whole: nothing is wrapped and nothing clamped.
pub fn add_to(values: &mut [i64], others: impl IntoIterator<Item = i64>) -> Result<(), Overflow> {
    // Without a branch in the loop, so that it goes by vectors.
    let mut wrapped = 0;
    for (value, other) in values.iter_mut().zip(others) {
        let sum = value.wrapping_add(other);
        wrapped |= (*value ^ sum) & (other ^ sum); // negative where two equal signs gave the other one
        *value = sum;
    }
    if wrapped < 0 { Err(Overflow) } else { Ok(()) }
}

/// A number with four digits.
pub fn short(value: f64) -> String {
    if value == 0.0 || !value.is_finite() {
        return value.to_string();
    }
    let places = (3 - value.abs().log10().floor() as i32).clamp(0, 12) as usize;
    let text = format!("{value:.places$}");
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text }
}

/// The chance that discrete Laplace noise is more than so many steps from 0: two geometric tails, 2a^(m+1) / (1 + a).
pub(super) fn laplace_tail(steps: f64, scale: &Ratio) -> f64 {
    let scale = scale.to_f64();
    2.0 * (-(steps + 1.0) / scale).exp() / (1.0 + (-1.0 / scale).exp())
}

/// P(|N(0, 1)| > z).
fn normal_tail(z: f64) -> f64 {
    libm::erfc(z * std::f64::consts::FRAC_1_SQRT_2)
}

/// About the z for which P(|N(0, 1)| > z) is this chance, which is above 0 and below 1.
fn normal_distance(chance: f64) -> f64 {
    let t = (-2.0 * (0.5 * chance).ln()).sqrt();
    // Abramowitz and Stegun 26.2.23, off by less than 4.5e-4; each step of Newton's on the logarithm squares that.
    let above = 0.010_328_f64.mul_add(t, 0.802_853).mul_add(t, 2.515_517);
    let below = 0.001_308_f64.mul_add(t, 0.189_269).mul_add(t, 1.432_788).mul_add(t, 1.0);
    let mut z = (t - above / below).max(0.0);
    for _ in 0..3 {
        let tail = normal_tail(z);
        if tail < 1e-300 {
            return t; // P(|N| > t) ≤ e^(−t²/2) is half of the chance
        }
        let density = (-0.5 * z * z).exp() * (2.0 / std::f64::consts::PI).sqrt();
        z = ((tail / chance).ln() * tail / density + z).max(0.0);
    }
    z
}

/// `distance / scale` as a pure ε, rounded up; at distance 0 nothing is lost.
fn pure_up(distance: u64, scale: &Ratio) -> Cost {
    if distance == 0 {
        return Cost::Nothing;
    }
    let epsilon = match scale.inverse().and_then(|rate| rate.times(&Ratio::from(distance))) {
        Some(exact) => ratio_up(&exact),
        None => (whole_up(distance.into()) / scale.to_f64_down()).next_up(),
    };
    Epsilon::new(epsilon).map_or(Cost::Everything, |epsilon| Cost::Pure { epsilon })
}

/// The largest whole number that is not above a bound: how far apart integers within it may be.
pub(super) fn whole_within(bound: f64) -> Option<u64> {
    (bound >= 0.0 && bound < 2f64.powi(64)).then_some(bound as u64)
}

/// The largest squared ℓ2 distance of two integer vectors that are no further apart than this: a whole number.
fn squared_within(length: f64) -> f64 {
    if length == 0.0 { 0.0 } else { (length * length).next_up().floor() }
}

/// The smaller of two bounds on an ℓ1 distance in so many coordinates: the one given, and √d times the ℓ2 distance.
pub(super) fn l1_up(moved: Sensitivity, coordinates: usize) -> f64 {
    moved.l1.min(product_up(moved.l2, root_of_whole_up(coordinates as u128)))
}

/// squared / (2·variance), rounded up.
fn rho_up(squared: f64, variance: &Ratio) -> Option<f64> {
    let twice = variance.times(&Ratio::from(2))?;
    let exact = Ratio::from_f64_up(squared).ok()?.times(&twice.inverse()?);
    Some(exact.map_or_else(|| (squared / twice.to_f64_down()).next_up(), |ratio| ratio_up(&ratio)))
}

/// How many numbers noise is added to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Coordinates {
    /// A single one, in which ℓ1 and ℓ2 are one distance.
    One,
    /// So many.
    Many(usize),
    /// Any number of them, that nobody knows yet.
    Any,
}

/// What says how far one unit of a rung moves a statistic: a [`Reach`], or a bound that works it out for whatever rung is asked about.
pub trait Reaches {
    /// As far as one unit moves it, in ℓ1 and in ℓ2; infinitely far where nothing bounds that.
    fn at(&self, rung: &Rung) -> Sensitivity;

    /// The same for a statistic that is a single number, where ℓ1 and ℓ2 are one distance and the smaller bound on it holds.
    fn of_one_number(&self, rung: &Rung) -> Sensitivity {
        self.at(rung)
    }
}

/// How far one unit of a rung moves a statistic, by a bound on each contribution or as it was worked out.
#[derive(Debug, Clone, PartialEq)]
pub struct Reach {
    /// What bounds the contribution of a protected unit, where that is known.
    bound: Option<Bound>,
    /// What a ladder or a plan knows better than a single rung does.
    known: Vec<(Rung, Sensitivity)>,
}

impl Reach {
    /// Whatever the bound on what a protected unit contributes says of a rung.
    #[must_use]
    pub fn new(bound: Bound) -> Self {
        Self { bound: Some(bound), known: Vec::new() }
    }

    /// The same, with what a ladder knows of its rungs.
    #[must_use]
    pub fn on(bound: Bound, ladder: &Ladder) -> Self {
        Self { bound: Some(bound), known: ladder.rungs().iter().cloned().zip(bound.on(ladder)).collect() }
    }

    /// What was worked out for each rung already; nothing bounds a unit of any other.
    #[must_use]
    pub fn known(known: Vec<(Rung, Sensitivity)>) -> Self {
        Self { bound: None, known }
    }

    /// The same, with what is known of some rungs beyond what the bound alone says.
    #[must_use]
    pub fn knowing(self, known: Vec<(Rung, Sensitivity)>) -> Self {
        Self { known, ..self }
    }

    fn alone(&self, rung: &Rung) -> Sensitivity {
        let Some(bound) = self.bound else {
            return Sensitivity { l1: f64::INFINITY, l2: f64::INFINITY };
        };
        let mut one = bound.sensitivity(rung.unit.change());
        if rung.holds > 1 && rung.unit.kind() == Kind::User {
            // Where a user becomes another, elements come and go that a bound on one element may have taken to stay.
            let alone = bound.sensitivity(Change::AddRemove);
            one = Sensitivity { l1: one.l1.max(alone.l1), l2: one.l2.max(alone.l2) };
        }
        one.at(rung)
    }
}

impl Reaches for Reach {
    /// From a ladder, what that says. For a rung on its own: each protected unit that moves does so by the rung's change.
    fn at(&self, rung: &Rung) -> Sensitivity {
        let known = self.known.iter().find(|(known, _)| known == rung);
        known.map_or_else(|| self.alone(rung), |(_, sensitivity)| *sensitivity)
    }

    /// Two units cannot move different coordinates of a single number, whatever the rung says, so their moves add up.
    fn of_one_number(&self, rung: &Rung) -> Sensitivity {
        let moved = self.at(rung);
        if rung.disjoint && self.bound.is_some() {
            return Sensitivity { l1: moved.l1, l2: self.alone(&Rung { disjoint: false, ..rung.clone() }).l2 };
        }
        moved
    }
}

/// Adds independent noise of one law to each of some integers.
///
/// # Neighbours
/// Integers, one or several, of data sets that differ in one unit of the rung: apart by at most what [`Reaches::at`] says, in ℓ1 and in ℓ2.
///
/// # Claim
/// Laplace: one integer costs [`Cost::Geometric`], several cost a pure ε of the ℓ1 distance over the scale. Rounded: [`Cost::Gaussian`] of σ
/// over the ℓ2 distance. Discrete: zero-concentrated with the squared ℓ2 distance over 2σ². The noise exceeds
/// [`Law::exceeded`] with at most the chance that is given.
///
/// # Why
/// The proofs stand with [`Laplace`](super::laplace::Laplace), [`LaplaceVector`](super::laplace::LaplaceVector),
/// [`Gaussian`](super::gaussian::Gaussian) and [`GaussianVector`](super::gaussian::GaussianVector), which are this and nothing else. Integers that
/// are apart by at most Δ are so by at most ⌊Δ⌋, and vectors of them by at most √⌊Δ²⌋ in ℓ2; every quotient and root is rounded to the dear side.
/// What the noise exceeds is compared with the tail of the very integers that are added, rounding and all.
///
/// # Tried by
/// `every_face_is_the_one_noise`, `what_noise_exceeds_is_the_least_that_its_law_allows`, `loss_bounds_every_output`,
/// `rounding_never_costs_more_than_the_real_gaussian`, `discrete_gaussian_is_concentrated`, `noise_follows_its_law`.
///
/// ```
/// use whit_core::mechanism::additive::{Additive, Coordinates, Law, Reach};
/// use whit_core::mechanism::Mechanism;
/// use whit_core::{Bound, Change, Cost, Rung, Support, Unit};
/// let visits = Bound::coordinates(4, 0, 1, Support::NonNegative)?;
/// let noise = Additive::new(Law::rounded("6".parse()?)?, Reach::new(visits), Coordinates::Many(50));
/// let user = Rung { unit: Unit::user("id", Change::AddRemove), holds: 1, disjoint: false, slices: None };
/// assert_eq!(noise.cost(&user), Cost::Gaussian { noise: 3.0 });
/// assert_eq!(noise.law().within(0.95), 12.0);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone)]
pub struct Additive<R = Reach> {
    law: Law,
    reach: R,
    coordinates: Coordinates,
}

impl Additive {
    /// The same, with what a ladder knows of its rungs: never dearer than rung by rung, and often half as dear where a user
    /// holds several elements.
    #[must_use]
    pub fn on(mut self, ladder: &Ladder) -> Self {
        if let Some(bound) = self.reach.bound {
            self.reach = Reach::on(bound, ladder);
        }
        self
    }
}

impl<R> Additive<R> {
    /// Noise of this law on integers that one unit moves so far.
    #[must_use]
    pub fn new(law: Law, reach: R, coordinates: Coordinates) -> Self {
        Self { law, reach, coordinates }
    }

    /// The same by another law, in draw, price and interval alike.
    #[must_use]
    pub fn with_law(self, law: Law) -> Self {
        Self { law, ..self }
    }

    /// The law of the noise.
    pub fn law(&self) -> &Law {
        &self.law
    }

    /// How far units move what it is added to.
    pub fn reach(&self) -> &R {
        &self.reach
    }

    /// Adds the noise where the values stand. After an error they hold nothing of use, and nothing of them may leave.
    pub fn add(&self, values: &mut [i64], entropy: &mut dyn Entropy) -> Result<(), SanitiseError> {
        self.check(values.len())?;
        Ok(self.law.add(values, entropy)?)
    }

    /// One value with its noise, in so many bits that no sum overflows.
    pub(crate) fn add_wide(&self, value: i64, entropy: &mut dyn Entropy) -> Result<i128, SanitiseError> {
        self.check(1)?;
        Ok(i128::from(value) + i128::from(self.law.draw(entropy)?))
    }

    /// Fills a slice with the noise alone, for values that come later and are added by [`add_to`]: the same draws as those of [`add`](Self::add).
    /// They are good for one release. After an error the slice holds nothing of use.
    pub fn fill(&self, ahead: &mut [i64], entropy: &mut dyn Entropy) -> Result<(), SanitiseError> {
        self.check(ahead.len())?;
        Ok(self.law.fill(ahead, entropy)?)
    }

    /// The same on several threads, each with the operating system's entropy.
    pub fn fill_parallel(&self, ahead: &mut [i64], threads: usize) -> Result<(), SanitiseError> {
        self.check(ahead.len())?;
        Ok(self.law.fill_parallel(ahead, threads)?)
    }

    /// Whether there are as many numbers as the noise is made for.
    fn check(&self, given: usize) -> Result<(), SanitiseError> {
        let expected = match self.coordinates {
            Coordinates::One => 1,
            Coordinates::Many(number) => number,
            Coordinates::Any => given,
        };
        if given == expected { Ok(()) } else { Err(SanitiseError::Length { given, expected }) }
    }

    /// See [`Law::exceeded`].
    pub fn exceeded(&self, chance: f64) -> f64 {
        self.law.exceeded(chance)
    }

    /// See [`Law::within`].
    pub fn within(&self, confidence: f64) -> f64 {
        self.law.within(confidence)
    }

    /// See [`Law::deviation`].
    pub fn deviation(&self) -> f64 {
        self.law.deviation()
    }

    /// See [`Law::words`].
    pub fn words(&self, step: f64) -> String {
        self.law.words(step)
    }
}

impl<R: Reaches> Mechanism for Additive<R> {
    type Exact = [i64];
    type Noisy = Vec<i64>;

    fn cost(&self, rung: &Rung) -> Cost {
        let moved = match self.coordinates {
            Coordinates::One => self.reach.of_one_number(rung),
            Coordinates::Many(_) | Coordinates::Any => self.reach.at(rung),
        };
        self.law.cost(moved, self.coordinates)
    }

    fn sanitise(&self, exact: &[i64], entropy: &mut dyn Entropy) -> Result<Sealed<Vec<i64>>, SanitiseError> {
        let mut noisy = exact.to_vec();
        self.add(&mut noisy, entropy)?;
        Ok(Sealed::new(noisy))
    }

    /// The error of the worst coordinate; of any one where nobody knows how many there are.
    fn accuracy(&self, confidence: f64) -> Accuracy {
        let coordinates = match self.coordinates {
            Coordinates::One | Coordinates::Any => 1,
            Coordinates::Many(number) => number,
        };
        Accuracy { within: self.law.all_within(confidence, coordinates), confidence }
    }
}

#[cfg(test)]
mod tests;
