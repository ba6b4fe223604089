//! The noise on a whole number of steps: its law, and how far it reaches, alone or in a sum with others.
//!
//! Every interval of a table comes from here. What is told is the law of the *integers* that were added, rounding and all: at large ε a
//! Gaussian of σ = 0.4 is mostly 0 and sometimes 1, and no interval of 1.96 σ says so.

use crate::error::QueryError;
use std::cell::RefCell;
use std::collections::BTreeMap;
use whit_account::normal::{upper_quantile, upper_tail};
use whit_core::mechanism::Mechanism;
use whit_core::mechanism::gaussian::GaussianVector;
use whit_core::mechanism::laplace::LaplaceVector;
use whit_core::{Bound, Cost, Rung, Sensitivity, Support};
use whit_noise::{DiscreteLaplace, Entropy, Overflow, RoundedGaussian};

/// The noise on one vector of integers.
#[derive(Debug, Clone)]
pub(crate) enum Noise {
    /// Real Gaussian noise, rounded.
    Gaussian(RoundedGaussian),
    /// Discrete Laplace noise.
    Laplace(DiscreteLaplace),
}

impl Noise {
    /// Draws noise on every coordinate.
    pub(crate) fn add(&self, exact: &mut [i64], entropy: &mut dyn Entropy) -> Result<(), Overflow> {
        let mut noise = vec![0; exact.len()];
        match self {
            Self::Gaussian(law) => law.fill(&mut noise, entropy)?,
            Self::Laplace(law) => law.fill(&mut noise, entropy)?,
        }
        for (value, noise) in exact.iter_mut().zip(noise) {
            *value = value.checked_add(noise).ok_or(Overflow)?;
        }
        Ok(())
    }

    /// The standard deviation before rounding, in lattice steps.
    pub(crate) fn deviation(&self) -> f64 {
        match self {
            Self::Gaussian(law) => law.sigma().to_f64(),
            Self::Laplace(law) => law.scale().to_f64() * std::f64::consts::SQRT_2,
        }
    }

    /// The chance that the noise is more than so many whole steps from zero.
    fn tail(&self, steps: f64) -> f64 {
        match self {
            // A real that rounds to more than m is at least m + 1/2 away.
            Self::Gaussian(law) => (2.0 * upper_tail((steps + 0.5) / law.sigma().to_f64())).min(1.0),
            Self::Laplace(law) => {
                let scale = law.scale().to_f64();
                2.0 * (-(steps + 1.0) / scale).exp() / (1.0 + (-1.0 / scale).exp())
            }
        }
    }

    /// The least whole number of steps that the noise exceeds with at most this chance.
    pub(crate) fn reach(&self, chance: f64) -> f64 {
        if chance.is_nan() || chance <= 0.0 {
            return f64::INFINITY;
        }
        let chance = chance * (1.0 - 1e-9); // a hair, for the rounding here
        let near = match self {
            Self::Gaussian(law) => law.sigma().to_f64() * upper_quantile((0.5 * chance).min(0.5)) - 0.5,
            Self::Laplace(law) => {
                let scale = law.scale().to_f64();
                -scale * (0.5 * chance * (1.0 + (-1.0 / scale).exp())).ln() - 1.0
            }
        };
        near.ceil().max(0.0)
    }

    /// How far the noise is from zero with this confidence, in whole lattice steps.
    pub(crate) fn within(&self, confidence: f64) -> f64 {
        self.reach(1.0 - confidence)
    }

    /// In words, for people who read a statement.
    pub(crate) fn words(&self, step: f64) -> String {
        match self {
            Self::Gaussian(law) => format!("rounded Gaussian, σ = {}", super::short(law.sigma().to_f64() * step)),
            Self::Laplace(law) => format!("discrete Laplace, scale {}", super::short(law.scale().to_f64() * step)),
        }
    }

    pub(super) fn cost(&self, moved: Sensitivity, rung: &Rung) -> Result<Cost, QueryError> {
        let alone = Rung { holds: 1, disjoint: false, ..rung.clone() };
        let wrong = |error: &dyn std::fmt::Display| QueryError::failed(error.to_string());
        match self {
            Self::Gaussian(law) => {
                // The sensitivity of this rung is worked out already: a length, whatever the change.
                let bound = Bound::Ball { radius: moved.l2, support: Support::Single };
                let mechanism = GaussianVector::rounded(bound, 1, *law.sigma()).map_err(|error| wrong(&error))?;
                Ok(mechanism.cost(&alone))
            }
            Self::Laplace(law) => {
                let bound = Bound::Ball { radius: moved.l1, support: Support::Single };
                let mechanism = LaplaceVector::new(bound, 2, *law.scale()).map_err(|error| wrong(&error))?;
                Ok(mechanism.cost(&alone))
            }
        }
    }

    /// Whether single steps are too many to be told apart.
    fn is_fine(&self) -> bool {
        self.deviation() >= FINE
    }

    /// The distances from zero that the noise takes, times a coefficient, and how likely each is; what is left out beyond them stands at
    /// the last.
    fn atoms(&self, coefficient: f64) -> Vec<(f64, f64)> {
        let most = self.reach(LEFT_OUT).min(4096.0);
        let mut before = 1.0;
        let mut steps = 0.0;
        let mut atoms = Vec::new();
        while steps <= most {
            let beyond = if steps < most { self.tail(steps) } else { 0.0 };
            atoms.push((coefficient.abs() * steps, before - beyond));
            (before, steps) = (beyond, steps + 1.0);
        }
        atoms
    }
}

/// From this deviation on, in steps, noise is taken as a real number.
const FINE: f64 = 6.0;
/// The chance of what is left out when noise is taken step by step.
const LEFT_OUT: f64 = 1e-6;
/// At most so many distances are told apart in a sum.
const ATOMS: usize = 512;
/// Coefficients are rounded up to powers of this, so that few sums have to be worked out.
const GRID: f64 = 1.01;

/// How far sums of independent noises reach: each noise times a coefficient.
pub(crate) struct Together<'a> {
    noises: Vec<&'a Noise>,
    confidence: f64,
    /// What was worked out already, by the sizes of the coefficients.
    known: RefCell<BTreeMap<Vec<i32>, f64>>,
}

impl<'a> Together<'a> {
    pub(crate) fn new(noises: Vec<&'a Noise>, confidence: f64) -> Self {
        Self { noises, confidence, known: RefCell::default() }
    }

    /// With this confidence, Σ cᵢ·noiseᵢ is no further from zero.
    ///
    /// The laws are symmetric and fall to both sides, so the reach grows with each |cᵢ|, and rounding coefficients up is sound.
    pub(crate) fn within(&self, coefficients: &[f64]) -> f64 {
        let sizes: Vec<f64> =
            coefficients.iter().zip(&self.noises).map(|(c, noise)| c.abs() * noise.deviation()).collect();
        let largest = sizes.iter().copied().fold(0.0, f64::max);
        if !(largest > 0.0 && largest.is_finite()) {
            return if largest == 0.0 { 0.0 } else { f64::INFINITY };
        }
        let place = |size: &f64| {
            let share = size / largest;
            if *size == 0.0 { i32::MIN } else { (share.max(1e-4).ln() / GRID.ln()).ceil() as i32 }
        };
        // The largest itself is not rounded: it stands at 0.
        let key: Vec<i32> = sizes.iter().map(place).collect();
        let whole = || {
            let unit = |(at, noise): (&i32, &&Noise)| {
                if *at == i32::MIN { 0.0 } else { GRID.powi(*at) / noise.deviation() }
            };
            let units: Vec<f64> = key.iter().zip(&self.noises).map(unit).collect();
            reach_of(&units, &self.noises, 1.0 - self.confidence)
        };
        if self.known.borrow().len() > 100_000 {
            self.known.borrow_mut().clear();
        }
        let found = self.known.borrow().get(&key).copied();
        largest
            * found.unwrap_or_else(|| {
                let found = whole();
                self.known.borrow_mut().insert(key.clone(), found);
                found
            })
    }
}

/// The least t that |Σ cᵢ·noiseᵢ| exceeds with at most this chance, to four digits and from above.
///
/// Noise of few steps is enumerated; the rest is a sum of real Gaussians, or of real Laplace noises, of which the tails are known.
fn reach_of(coefficients: &[f64], noises: &[&Noise], chance: f64) -> f64 {
    let terms = || coefficients.iter().copied().zip(noises.iter().copied()).filter(|(c, _)| *c != 0.0);
    let many = terms().count();
    if let (1, Some((coefficient, noise))) = (many, terms().next()) {
        return coefficient.abs() * noise.reach(chance);
    }
    let (mut variance, mut scales, mut atoms) = (0.0, Vec::new(), vec![(0.0, 1.0)]);
    for (coefficient, noise) in terms() {
        match noise {
            // Rounding adds the variance of a uniform number between −1/2 and 1/2.
            Noise::Gaussian(law) if noise.is_fine() => {
                variance += coefficient.powi(2) * (law.sigma().to_f64().powi(2) + 1.0 / 12.0);
            }
            Noise::Laplace(law) if noise.is_fine() => scales.push(coefficient.abs() * law.scale().to_f64()),
            _ => atoms = folded(&atoms, &noise.atoms(coefficient)),
        }
    }
    let real = Real::new(variance.sqrt(), scales);
    let beyond = |t: f64| -> f64 {
        atoms.iter().map(|(distance, chance)| chance * (real.above(t - distance) + real.above(t + distance))).sum()
    };
    let mut high: f64 = terms().map(|(c, noise)| c.abs() * noise.reach(chance / many as f64)).sum();
    let mut low = 0.0;
    if beyond(low) <= chance {
        return 0.0;
    }
    while high - low > 1e-4 * high {
        let middle = f64::midpoint(low, high);
        if beyond(middle * (1.0 + 1e-9)) <= chance { high = middle } else { low = middle }
    }
    high * (1.0 + 1e-9)
}

/// The distances of a sum of two symmetric noises, each given by its own.
fn folded(one: &[(f64, f64)], other: &[(f64, f64)]) -> Vec<(f64, f64)> {
    if let [(_, _)] = one {
        return other.to_vec();
    }
    let mut all: Vec<(f64, f64)> = one
        .iter()
        .flat_map(|&(a, p)| other.iter().flat_map(move |&(b, q)| [(a + b, 0.5 * p * q), ((a - b).abs(), 0.5 * p * q)]))
        .collect();
    all.sort_by(|a, b| a.0.total_cmp(&b.0));
    let width = all.last().map_or(0.0, |last| last.0) / ATOMS as f64;
    let few = all.len() <= ATOMS;
    let mut merged: Vec<(f64, f64)> = Vec::new();
    for (distance, chance) in all {
        // Outwards, so that no sum seems nearer than it is.
        let distance = if few || width == 0.0 { distance } else { (distance / width).ceil() * width };
        match merged.last_mut() {
            Some(last) if distance - last.0 <= 1e-12 * distance => last.1 += chance,
            _ => merged.push((distance, chance)),
        }
    }
    merged
}

/// A real Gaussian and real Laplace noises, added up.
struct Real {
    sigma: f64,
    /// Scales in rising order, none too near to the one before.
    scales: Vec<f64>,
    weights: Vec<f64>,
}

impl Real {
    fn new(sigma: f64, mut scales: Vec<f64>) -> Self {
        scales.sort_by(f64::total_cmp);
        for i in 1..scales.len() {
            scales[i] = scales[i].max(1.02 * scales[i - 1]); // upwards; equal scales would divide by zero
        }
        let weight = |i: usize| -> f64 {
            let square = |i: usize| scales[i] * scales[i];
            (0..scales.len()).filter(|&j| j != i).map(|j| square(i) / (square(i) - square(j))).product()
        };
        let weights = (0..scales.len()).map(weight).collect();
        Self { sigma, scales, weights }
    }

    /// The chance that it is above x. Tables have one kind of noise; of a mixture the tails are added, which is more than there is.
    fn above(&self, x: f64) -> f64 {
        if x < 0.0 {
            return 1.0 - self.above_positive(-x);
        }
        self.above_positive(x)
    }

    fn above_positive(&self, x: f64) -> f64 {
        let gaussian = if self.sigma > 0.0 { upper_tail(x / self.sigma) } else { 0.0 };
        // Partial fractions of the product of the characteristic functions 1 / (1 + s²u²).
        let laplace: f64 = self.scales.iter().zip(&self.weights).map(|(s, w)| 0.5 * w * (-x / s).exp()).sum();
        if self.sigma > 0.0 && !self.scales.is_empty() {
            return (gaussian + laplace).min(0.5);
        }
        gaussian + laplace
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use whit_core::mechanism::gaussian::Gaussian;
    use whit_core::mechanism::laplace::Laplace;
    use whit_noise::{Ratio, Replay};

    fn gaussian(sigma: &str) -> Noise {
        Noise::Gaussian(RoundedGaussian::new(sigma.parse::<Ratio>().unwrap()).unwrap())
    }

    fn laplace(scale: &str) -> Noise {
        Noise::Laplace(DiscreteLaplace::new(scale.parse::<Ratio>().unwrap()).unwrap())
    }

    /// The mechanisms of whit-core search their exact tails for the same number.
    #[test]
    fn noise_reaches_as_far_as_its_mechanism_says() {
        for width in ["1/20", "1/5", "1/3", "1/2", "7/8", "1", "5/2", "31", "123456"] {
            for confidence in [0.5, 0.8, 0.95, 0.999] {
                let one = Bound::Ball { radius: 1.0, support: Support::Single };
                let mechanism = Gaussian::rounded(one, width.parse().unwrap()).unwrap();
                assert_eq!(gaussian(width).within(confidence), mechanism.accuracy(confidence).within, "σ {width}");
                let mechanism = Laplace::new(one, width.parse().unwrap()).unwrap();
                assert_eq!(laplace(width).within(confidence), mechanism.accuracy(confidence).within, "scale {width}");
            }
        }
    }

    /// 4,000 sums a case. A reach that is right fails the test once in 10⁷ seeds at each comparison (five deviations of 0.35 %).
    #[test]
    fn sums_of_noises_stay_within_their_reach_as_often_as_told() {
        let mut entropy = Replay::new(0x7013);
        let widths = ["1/4", "1/2", "1", "3", "8", "200"];
        for law in [gaussian as fn(&str) -> Noise, laplace] {
            for (one, other) in widths.iter().flat_map(|one| widths.iter().map(move |other| (*one, *other))) {
                let (one, other) = (law(one), law(other));
                for (coefficient, third) in [(0.3, 0.0), (1.0, 0.0), (7.7, 2.0)] {
                    let noises = vec![&one, &other, &one];
                    let together = Together::new(noises.clone(), 0.95);
                    let within = together.within(&[1.0, coefficient, third]);
                    let times = 4000;
                    let mut draws = vec![vec![0_i64; times]; 3];
                    for (noise, drawn) in noises.iter().zip(&mut draws) {
                        noise.add(drawn, &mut entropy).unwrap();
                    }
                    let sum =
                        |i: usize| draws[0][i] as f64 + coefficient * draws[1][i] as f64 + third * draws[2][i] as f64;
                    let held = (0..times).filter(|&i| sum(i).abs() <= within).count() as f64 / times as f64;
                    // A tenth less would not do, or what it does without is a single atom.
                    let less = (0..times).filter(|&i| sum(i).abs() <= 0.9 * within).count() as f64 / times as f64;
                    let told =
                        format!("{one:?} and {coefficient} times {other:?}: {held} within {within}, {less} in less");
                    assert!(held >= 0.95 - 0.0175, "{told}");
                    assert!(held <= 0.97 + 0.0135 || less < 0.95 + 0.0175, "{told}");
                }
            }
        }
    }
}
