//! Integers plus discrete Laplace noise: pure ε.

use super::additive::{Additive, Coordinates, Law, Reach, l1_up, whole_within};
use super::{Accuracy, BadParameter, Mechanism, SanitiseError};
use crate::bound::Bound;
use crate::cost::Cost;
use crate::release::Sealed;
use crate::unit::{Change, Ladder, Rung};
use whit_noise::{Entropy, Ratio};

/// The scale at which a distance costs exactly ε.
fn scale_for(distance: Option<u64>, epsilon: &Ratio) -> Result<Ratio, BadParameter> {
    let bad = |value| BadParameter::range("sensitivity", value, "a whole number of lattice steps, at least 1");
    let distance = distance.ok_or_else(|| bad(f64::INFINITY))?;
    if distance == 0 {
        return Err(bad(0.0));
    }
    let scale = epsilon.inverse().and_then(|inverse| inverse.times(&Ratio::from(distance)));
    scale.ok_or_else(|| BadParameter::range("ε", epsilon.to_f64(), "greater than 0, as a fraction of moderate size"))
}

/// Adds discrete Laplace noise to one integer.
///
/// # Neighbours
/// Integers of data sets that differ in one unit of the rung, so by at most `Δ`: what the bound says for the rung's
/// change, times the units that move at once, rounded down to a whole number because both are integers.
///
/// # Claim
/// For neighbours `x`, `y` and every output `z`, `P[M(x) = z] ≤ exp(Δ / scale) · P[M(y) = z]`; and the two laws are
/// exactly discrete Laplace laws of this scale, `Δ` apart at most, which is what `Cost::Geometric` says.
///
/// # Why
/// `P[M(x) = z]` is `exp(−|z − x| / scale)` times a constant that is the same for every `x`, and
/// `|z − y| ≤ |z − x| + Δ`. (Ghosh, Roughgarden, Sundararajan 2009.) A smaller distance is dominated by a larger one.
/// `scale` is not the standard deviation, which is about √2 times as large.
///
/// # Tried by
/// `loss_bounds_every_output`, exactly, `discrete_laplace_follows_its_cdf`, and `scale_is_not_standard_deviation`.
///
/// ```
/// use whit_core::mechanism::{Mechanism, laplace::Laplace};
/// use whit_core::{Bound, Change, Support};
/// let visits = Bound::Coordinates { groups: 1, low: 0, high: 3, support: Support::NonNegative };
/// let sum = Laplace::for_epsilon(visits, Change::AddRemove, "0.5".parse()?)?;
/// assert_eq!(sum.scale().to_string(), "6");
/// assert_eq!(sum.accuracy(0.95).to_string(), "± 18 at 95 %");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone)]
pub struct Laplace {
    noise: Additive,
    scale: Ratio,
}

impl Laplace {
    /// Noise of this scale, in lattice steps, on a statistic to which each unit contributes within `bound`.
    pub fn new(bound: Bound, scale: Ratio) -> Result<Self, BadParameter> {
        Ok(Self { noise: Additive::new(Law::laplace(scale)?, Reach::new(bound), Coordinates::One), scale })
    }

    /// The least noise that costs one unit under `change` at most ε.
    pub fn for_epsilon(bound: Bound, change: Change, epsilon: Ratio) -> Result<Self, BadParameter> {
        let sensitivity = bound.sensitivity(change);
        let scale = scale_for(whole_within(sensitivity.l1.min(sensitivity.l2)), &epsilon)?;
        Self::new(bound, scale)
    }

    /// The same, with what a ladder knows of its rungs: never dearer than rung by rung, and often half as dear where a user
    /// holds several elements.
    #[must_use]
    pub fn on(self, ladder: &Ladder) -> Self {
        Self { noise: self.noise.on(ladder), ..self }
    }

    /// The noise and how far units move what it is added to.
    pub fn additive(&self) -> &Additive {
        &self.noise
    }

    /// The noise's scale, in lattice steps.
    pub fn scale(&self) -> &Ratio {
        &self.scale
    }
}

impl Mechanism for Laplace {
    type Exact = i64;
    type Noisy = i64;

    fn cost(&self, rung: &Rung) -> Cost {
        self.noise.cost(rung)
    }

    fn sanitise(&self, exact: &i64, entropy: &mut dyn Entropy) -> Result<Sealed<i64>, SanitiseError> {
        let mut value = [*exact];
        self.noise.add(&mut value, entropy)?;
        Ok(Sealed::new(value[0]))
    }

    fn accuracy(&self, confidence: f64) -> Accuracy {
        self.noise.accuracy(confidence)
    }
}

/// Adds independent discrete Laplace noise to each of several integers.
///
/// # Neighbours
/// Integer vectors of data sets that differ in one unit of the rung, so by at most `Δ1` in the sum of the distances of
/// their coordinates; `Δ1` is also at most `√d` times the ℓ2 distance.
///
/// # Claim
/// For neighbours `x`, `y` and every output `z`, `P[M(x) = z] ≤ exp(Δ1 / scale) · P[M(y) = z]`.
///
/// # Why
/// The probability of `z` is a product over coordinates, so log-ratios add up:
/// `Σ (|z_i − y_i| − |z_i − x_i|) / scale ≤ Σ |x_i − y_i| / scale`. The cost is that bound and no more: how a
/// distance is split over coordinates changes the law of the loss, and `Cost::Pure` covers every split.
///
/// # Tried by
/// `loss_bounds_every_output_of_a_vector`, `the_sum_of_errors_is_not_their_maximum`.
#[derive(Debug, Clone)]
pub struct LaplaceVector {
    noise: Additive,
    scale: Ratio,
}

impl LaplaceVector {
    /// Noise of this scale, in lattice steps, on each of `dimension` coordinates.
    pub fn new(bound: Bound, dimension: usize, scale: Ratio) -> Result<Self, BadParameter> {
        Ok(Self { noise: Additive::new(Law::laplace(scale)?, Reach::new(bound), Coordinates::Many(dimension)), scale })
    }

    /// The least noise that costs one unit under `change` at most ε.
    pub fn for_epsilon(bound: Bound, dimension: usize, change: Change, epsilon: Ratio) -> Result<Self, BadParameter> {
        let sensitivity = bound.sensitivity(change);
        let scale = scale_for(whole_within(l1_up(sensitivity, dimension)), &epsilon)?;
        Self::new(bound, dimension, scale)
    }

    /// The same, with what a ladder knows of its rungs: never dearer than rung by rung, and often half as dear where a user
    /// holds several elements.
    #[must_use]
    pub fn on(self, ladder: &Ladder) -> Self {
        Self { noise: self.noise.on(ladder), ..self }
    }

    /// The noise and how far units move what it is added to.
    pub fn additive(&self) -> &Additive {
        &self.noise
    }

    /// The noise's scale, in lattice steps.
    pub fn scale(&self) -> &Ratio {
        &self.scale
    }
}

impl Mechanism for LaplaceVector {
    type Exact = [i64];
    type Noisy = Vec<i64>;

    fn cost(&self, rung: &Rung) -> Cost {
        self.noise.cost(rung)
    }

    fn sanitise(&self, exact: &[i64], entropy: &mut dyn Entropy) -> Result<Sealed<Vec<i64>>, SanitiseError> {
        self.noise.sanitise(exact, entropy)
    }

    /// The error of the worst coordinate.
    fn accuracy(&self, confidence: f64) -> Accuracy {
        self.noise.accuracy(confidence)
    }
}

/// The sup-norm of `dimension` real Laplace errors exceeds this with probability at most `beta`: scale · ln(d / β).
/// Rounded up to a whole number it holds for discrete Laplace noise too; the mechanisms' own accuracy is sharper.
pub fn largest_error(dimension: usize, scale: f64, beta: f64) -> f64 {
    scale * (dimension as f64 / beta).ln()
}

/// The sum of the absolute values of `dimension` real Laplace errors exceeds this with probability `beta`:
/// the sum has the Gamma law of shape `dimension`, so it is far larger than [`largest_error`].
///
/// ```
/// use whit_core::mechanism::laplace::{largest_error, total_error};
/// assert!((largest_error(10, 1.0, 0.05) - 5.298).abs() < 1e-3);
/// assert!((total_error(10, 1.0, 0.05) - 15.705).abs() < 1e-3);
/// ```
pub fn total_error(dimension: usize, scale: f64, beta: f64) -> f64 {
    // P(Gamma(d) > x) is P(Poisson(x) < d), a sum of positive terms.
    let exceeds = |x: f64| -> f64 {
        let log = x.ln();
        (0..dimension).map(|k| (k as f64 * log - x - libm::lgamma(k as f64 + 1.0)).exp()).sum()
    };
    let (mut low, mut high) = (0.0, 1.0);
    while exceeds(high) > beta && high < 1e300 {
        (low, high) = (high, high * 2.0);
    }
    while high - low > high * f64::EPSILON {
        let middle = f64::midpoint(low, high);
        if middle <= low || middle >= high {
            break;
        }
        if exceeds(middle) > beta { low = middle } else { high = middle }
    }
    scale * high
}

#[cfg(test)]
mod tests {
    use super::super::additive::laplace_tail;
    use super::super::any_of;
    use super::super::trial::{agree, number, oracles, rung};
    use super::*;
    use crate::bound::Support;
    use whit_noise::Replay;
    use whit_noise::fit::dkw_tolerance;

    fn ratio(text: &str) -> Ratio {
        text.parse().unwrap()
    }

    fn up_to(high: i64) -> Bound {
        Bound::Coordinates { groups: 1, low: 0, high, support: Support::NonNegative }
    }

    fn cdf(k: i64, scale: f64) -> f64 {
        let a = (-1.0 / scale).exp();
        if k < 0 { a.powi(-k as i32) / (1.0 + a) } else { 1.0 - a.powi(k as i32 + 1) / (1.0 + a) }
    }

    /// Integers only: a rounded log-ratio could hide the error that we look for.
    #[test]
    fn loss_bounds_every_output() {
        for (high, holds, scale) in [(1, 1, "1"), (3, 1, "10/3"), (2, 7, "5/2"), (1, 3, "1000003/7")] {
            let mechanism = Laplace::new(up_to(high), ratio(scale)).unwrap();
            let Cost::Geometric { shift, scale: stated } = mechanism.cost(&rung(Change::AddRemove, holds)) else {
                panic!("a finite bound has a geometric cost")
            };
            assert_eq!(shift, high as u64 * holds);
            assert!(
                Ratio::from_f64_up(stated).unwrap() <= ratio(scale),
                "the stated scale may not exceed the true one"
            );
            for y in -(shift as i64)..=shift as i64 {
                for z in -60..=60_i64 {
                    let scaled_log_ratio = (z - y).abs() - z.abs(); // scale · ln P[M(0) = z] / P[M(y) = z]
                    assert!(scaled_log_ratio <= shift as i64, "neighbours 0 and {y}, output {z}");
                }
            }
        }
    }

    #[test]
    fn for_epsilon_costs_exactly_epsilon() {
        for (high, change, epsilon) in
            [(1, Change::AddRemove, "0.1"), (7, Change::Replace, "1/3"), (3, Change::Replace, "9")]
        {
            let mechanism = Laplace::for_epsilon(up_to(high), change, ratio(epsilon)).unwrap();
            let Cost::Geometric { shift, .. } = mechanism.cost(&rung(change, 1)) else { panic!("finite") };
            let spent = Ratio::from(shift).times(&mechanism.scale().inverse().unwrap()).unwrap();
            assert_eq!(spent, ratio(epsilon));
        }
        assert!(Laplace::for_epsilon(up_to(1), Change::AddRemove, Ratio::ZERO).is_err());
        assert!(Laplace::for_epsilon(up_to(0), Change::AddRemove, Ratio::ONE).is_err(), "nothing to protect");
    }

    /// A correct sampler fails once in 10⁹ seeds (Dvoretzky–Kiefer–Wolfowitz); a scale that is off by 5 % is caught.
    #[test]
    fn discrete_laplace_follows_its_cdf() {
        let n = 200_000_u64;
        let farthest = |mechanism: &Laplace, scale: f64| {
            let mut entropy = Replay::new(0x0117);
            let mut draws: Vec<i64> = (0..n).map(|_| mechanism.sanitise(&100, &mut entropy).unwrap().open()).collect();
            draws.sort_unstable();
            let share = |k: i64| draws.partition_point(|d| *d <= 100 + k) as f64 / n as f64;
            (-80..=80).map(|k| (share(k) - cdf(k, scale)).abs()).fold(0.0, f64::max)
        };
        let tolerance = dkw_tolerance(n, 1e-9);
        let mechanism = Laplace::new(up_to(1), ratio("10/3")).unwrap();
        let gap = farthest(&mechanism, 10.0 / 3.0);
        assert!(gap < tolerance, "off by {gap:.5}, tolerance {tolerance:.5}");
        let broken = Laplace::new(up_to(1), ratio("3")).unwrap();
        assert!(farthest(&broken, 10.0 / 3.0) > tolerance, "a scale of 3 instead of 10/3 must be caught");
    }

    /// C1: "standard deviation Δ/ε" is the scale b; the standard deviation is √2·b.
    #[test]
    fn scale_is_not_standard_deviation() {
        let deviation = |b: f64| {
            let a = (-1.0 / b).exp();
            (2.0 * a).sqrt() / (1.0 - a)
        };
        assert!((deviation(1000.0) / 1000.0 - std::f64::consts::SQRT_2).abs() < 1e-6);
        // Whoever reads Δ/ε as the standard deviation uses the scale 1/√2 for ε = 1, and spends √2.
        let misread = Laplace::new(up_to(1), Ratio::from_f64_up(0.5_f64.sqrt()).unwrap()).unwrap();
        let Cost::Geometric { shift, scale } = misread.cost(&rung(Change::AddRemove, 1)) else { panic!("finite") };
        assert!(shift as f64 / scale > 1.414);
    }

    #[test]
    fn accuracy_is_the_exact_tail() {
        for scale in ["1/2", "1", "10", "12345"] {
            let mechanism = Laplace::new(up_to(1), ratio(scale)).unwrap();
            for confidence in [0.5, 0.95, 0.999] {
                let within = mechanism.accuracy(confidence).within as i64;
                let b = ratio(scale).to_f64();
                let covered = |m: i64| cdf(m, b) - cdf(-m - 1, b);
                assert!(covered(within) >= confidence - 1e-12, "scale {scale} at {confidence}");
                assert!(within == 0 || covered(within - 1) < confidence, "scale {scale}: {within} is more than needed");
            }
        }
    }

    #[test]
    fn loss_bounds_every_output_of_a_vector() {
        let bound = Bound::Coordinates { groups: 2, low: 0, high: 1, support: Support::NonNegative };
        let mechanism = LaplaceVector::for_epsilon(bound, 3, Change::AddRemove, ratio("0.5")).unwrap();
        assert_eq!(mechanism.scale(), &ratio("4"));
        let law = |k: i64| (-(k.abs() as f64) / 4.0).exp();
        for y in [[1, 1, 0], [2, 0, 0], [0, 0, 1], [1, 0, 1]] {
            for z in (0..11_i64.pow(3)).map(|i| [i % 11 - 5, i / 11 % 11 - 5, i / 121 - 5]) {
                let loss: f64 = (0..3).map(|i| (law(z[i]) / law(z[i] - y[i])).ln()).sum();
                assert!(loss <= 0.5 + 1e-12, "neighbours 0 and {y:?}, output {z:?}: {loss}");
            }
        }
        assert_eq!(super::super::trial::epsilon(&mechanism.cost(&rung(Change::AddRemove, 1))), 0.5);
        assert_eq!(super::super::trial::epsilon(&mechanism.cost(&rung(Change::Replace, 1))), 0.75);
        assert!(mechanism.sanitise(&[1, 2], &mut Replay::new(1)).is_err());
    }

    #[test]
    fn a_ball_has_a_finite_l1_distance_in_a_known_dimension() {
        let ball = Bound::Ball { radius: 3.0, support: Support::Any };
        let mechanism = LaplaceVector::new(ball, 4, Ratio::ONE).unwrap();
        assert_eq!(super::super::trial::epsilon(&mechanism.cost(&rung(Change::AddRemove, 1))), 6.0);
        assert_eq!(
            Laplace::new(ball, Ratio::ONE).unwrap().cost(&rung(Change::AddRemove, 1)),
            Cost::Geometric { shift: 3, scale: 1.0 }
        );
    }

    /// C2: ln(d/β) bounds the largest error, not the sum of all.
    #[test]
    fn the_sum_of_errors_is_not_their_maximum() {
        for entry in oracles("selection", "laplace_linf_error_bound") {
            let inputs = &entry["inputs"];
            let (dimension, beta) = (number(&inputs["dimension"]) as usize, number(&inputs["beta"]));
            let scale = number(&inputs["l1_sensitivity"]) / number(&inputs["eps"]);
            let bound = largest_error(dimension, scale, beta);
            agree(&entry, bound, &entry["expected"]);
            let covered = (1.0 - (-bound / scale).exp()).powi(dimension as i32);
            assert!((covered - number(&entry["exact_coverage"])).abs() < 1e-12);
            // Rounded up it holds for the discrete law as well, and our own accuracy needs no more than that.
            let whole = bound.ceil();
            let fraction = Ratio::from_f64_up(scale).unwrap();
            assert!(any_of(dimension, laplace_tail(whole, &fraction)) <= beta);
            let own = LaplaceVector::new(up_to(1), dimension, fraction).unwrap().accuracy(1.0 - beta);
            assert!(own.within <= whole, "{own}");
        }
        for entry in oracles("selection", "laplace_l1_error_quantile") {
            let inputs = &entry["inputs"];
            let scale = number(&inputs["l1_sensitivity"]) / number(&inputs["eps"]);
            let dimension = number(&inputs["dimension"]) as usize;
            agree(&entry, total_error(dimension, scale, number(&inputs["beta"])), &entry["expected"]);
        }
        // As printed, for the sum: ten errors would have to add up to at most ln 200, and do so in 4.4 % of cases.
        let printed = 200_f64.ln();
        assert!((total_error(10, 1.0, 1.0 - 0.043_98) - printed).abs() < 1e-3);
        assert!((total_error(2, 1.0, 1.0 - 0.882_78) - (2.0 / 0.05_f64).ln()).abs() < 1e-3);
    }
}
