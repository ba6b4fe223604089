//! Integers plus Gaussian noise: rounded, which is the default, or discrete.

use super::additive::{Additive, Coordinates, Law, Reach};
use super::{Accuracy, BadParameter, Mechanism, SanitiseError};
use crate::bound::Bound;
use crate::cost::Cost;
use crate::release::Sealed;
use crate::unit::{Ladder, Rung};
use whit_noise::{Entropy, Ratio};

/// Adds Gaussian noise to one integer.
///
/// # Neighbours
/// Integers of data sets that differ in one unit of the rung, so by at most `Δ`: what the bound says for the rung's change,
/// times the units that move at once.
///
/// # Claim
/// Rounded: every pair of neighbours is at most as easy to tell apart as `N(0, σ²)` and `N(Δ, σ²)`, for every test, at
/// every ε. Discrete: `M` is ρ-zero-concentrated with `ρ = Δ² / (2σ²)`.
///
/// # Why
/// Rounded: for an integer `x`, `x + round(N) = round(x + N)`, which is post-processing of the continuous Gaussian
/// mechanism, so its exact curves hold without correction (Balle, Wang 2018; Dong, Roth, Su 2022). The input must be an
/// integer: `0.4 + round(N)` shows its fraction to everybody, and statistics are put on a lattice first.
/// Discrete: Canonne, Kamath, Steinke 2020, Theorem 4 (and its product form, Theorem 14, for vectors).
///
/// # Tried by
/// `rounding_never_costs_more_than_the_real_gaussian`, `adding_rounded_noise_to_a_fraction_shows_it`,
/// `discrete_gaussian_is_concentrated`, `noise_follows_its_law`.
///
/// ```
/// use whit_core::mechanism::{Mechanism, gaussian::Gaussian};
/// use whit_core::{Bound, Support};
/// let visits = Bound::Coordinates { groups: 1, low: 0, high: 3, support: Support::NonNegative };
/// let sum = Gaussian::rounded(visits, "12".parse()?)?;
/// assert_eq!(sum.accuracy(0.95).to_string(), "± 24 at 95 %");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone)]
pub struct Gaussian(Additive);

impl Gaussian {
    /// Real Gaussian noise of this standard deviation in lattice steps, rounded to integers: the default.
    pub fn rounded(bound: Bound, sigma: Ratio) -> Result<Self, BadParameter> {
        Ok(Self(Additive::new(Law::rounded(sigma)?, Reach::new(bound), Coordinates::One)))
    }

    /// Discrete Gaussian noise of this variance (squared lattice steps): zCDP by the letter.
    pub fn discrete(bound: Bound, variance: Ratio) -> Result<Self, BadParameter> {
        Ok(Self(Additive::new(Law::discrete(variance)?, Reach::new(bound), Coordinates::One)))
    }

    /// The same, with what a ladder knows of its rungs: never dearer than rung by rung, and often half as dear where a user
    /// holds several elements.
    #[must_use]
    pub fn on(self, ladder: &Ladder) -> Self {
        Self(self.0.on(ladder))
    }

    /// The noise and how far units move what it is added to.
    pub fn additive(&self) -> &Additive {
        &self.0
    }
}

impl Mechanism for Gaussian {
    type Exact = i64;
    type Noisy = i64;

    fn cost(&self, rung: &Rung) -> Cost {
        self.0.cost(rung)
    }

    fn sanitise(&self, exact: &i64, entropy: &mut dyn Entropy) -> Result<Sealed<i64>, SanitiseError> {
        let mut value = [*exact];
        self.0.add(&mut value, entropy)?;
        Ok(Sealed::new(value[0]))
    }

    fn accuracy(&self, confidence: f64) -> Accuracy {
        self.0.accuracy(confidence)
    }
}

/// Adds independent Gaussian noise to each of several integers.
///
/// # Neighbours
/// Integer vectors of data sets that differ in one unit of the rung, so by at most `Δ2` in ℓ2.
///
/// # Claim
/// As for [`Gaussian`], with `Δ2` for `Δ`, whatever the number of coordinates.
///
/// # Why
/// Rounding works coordinate by coordinate, and the continuous law is invariant under rotation: only the distance along
/// the line through the two inputs matters.
///
/// # Tried by
/// `a_vector_costs_its_length_and_not_its_dimension`, `noise_follows_its_law`.
#[derive(Debug, Clone)]
pub struct GaussianVector(Additive);

impl GaussianVector {
    /// Real Gaussian noise of this standard deviation in lattice steps on each coordinate, rounded to integers: the default.
    pub fn rounded(bound: Bound, dimension: usize, sigma: Ratio) -> Result<Self, BadParameter> {
        Ok(Self(Additive::new(Law::rounded(sigma)?, Reach::new(bound), Coordinates::Many(dimension))))
    }

    /// Discrete Gaussian noise of this variance (squared lattice steps) on each coordinate: zCDP by the letter.
    pub fn discrete(bound: Bound, dimension: usize, variance: Ratio) -> Result<Self, BadParameter> {
        Ok(Self(Additive::new(Law::discrete(variance)?, Reach::new(bound), Coordinates::Many(dimension))))
    }

    /// The same, with what a ladder knows of its rungs: never dearer than rung by rung, and often half as dear where a user
    /// holds several elements.
    #[must_use]
    pub fn on(self, ladder: &Ladder) -> Self {
        Self(self.0.on(ladder))
    }

    /// The noise and how far units move what it is added to.
    pub fn additive(&self) -> &Additive {
        &self.0
    }
}

impl Mechanism for GaussianVector {
    type Exact = [i64];
    type Noisy = Vec<i64>;

    fn cost(&self, rung: &Rung) -> Cost {
        self.0.cost(rung)
    }

    fn sanitise(&self, exact: &[i64], entropy: &mut dyn Entropy) -> Result<Sealed<Vec<i64>>, SanitiseError> {
        self.0.sanitise(exact, entropy)
    }

    /// The error of the worst coordinate.
    fn accuracy(&self, confidence: f64) -> Accuracy {
        self.0.accuracy(confidence)
    }
}

#[cfg(test)]
mod tests {
    use super::super::trial::{fit, rung, tally};
    use super::*;
    use crate::bound::Support;
    use crate::unit::{Caps, Change, Kind, Unit};
    use whit_noise::{Replay, RoundedGaussian};

    fn ratio(text: &str) -> Ratio {
        text.parse().unwrap()
    }

    fn count() -> Bound {
        Bound::Coordinates { groups: 1, low: 0, high: 1, support: Support::NonNegative }
    }

    fn above(z: f64) -> f64 {
        libm::erfc(z / std::f64::consts::SQRT_2) / 2.0
    }

    /// δ(ε) of N(μ, 1) against N(0, 1).
    fn real_delta(epsilon: f64, mu: f64) -> f64 {
        above(epsilon / mu - mu / 2.0) - epsilon.exp() * above(epsilon / mu + mu / 2.0)
    }

    /// P(round(N(0, σ²)) = k), from the tail on k's own side so that nothing cancels.
    fn rounded(k: i64, sigma: f64) -> f64 {
        let k = k.abs() as f64;
        if k == 0.0 { 1.0 - 2.0 * above(0.5 / sigma) } else { above((k - 0.5) / sigma) - above((k + 0.5) / sigma) }
    }

    fn discrete(variance: f64, reach: i64) -> Vec<f64> {
        let weight = |k: i64| (-(k * k) as f64 / (2.0 * variance)).exp();
        let total: f64 = (-reach..=reach).map(weight).sum();
        (-reach..=reach).map(|k| weight(k) / total).collect()
    }

    #[test]
    fn rounding_never_costs_more_than_the_real_gaussian() {
        for (sigma, shift) in [(0.4, 1), (1.0, 1), (2.5, 3), (10.0, 1), (3.0, 9)] {
            for epsilon in [0.0, 0.1, 0.5, 1.0, 2.0, 5.0] {
                let event: f64 = (-200..=200)
                    .map(|k| rounded(k - shift, sigma) - f64::exp(epsilon) * rounded(k, sigma))
                    .filter(|gain| *gain > 0.0)
                    .sum();
                let claimed = real_delta(epsilon, shift as f64 / sigma);
                assert!(event <= claimed + 1e-13, "σ {sigma}, shift {shift}, ε {epsilon}: {event} > {claimed}");
            }
        }
    }

    /// Neighbours 0 and 0.4: the fractional part of 0.4 + round(N) is 0.4 whatever the noise, so nothing is hidden.
    #[test]
    fn adding_rounded_noise_to_a_fraction_shows_it() {
        let noise = RoundedGaussian::new(ratio("100")).unwrap();
        let mut entropy = Replay::new(4);
        for _ in 0..1000 {
            let shown = 0.4 + noise.draw(&mut entropy).unwrap() as f64;
            assert!((shown - shown.floor() - 0.4).abs() < 1e-9);
        }
    }

    /// Rényi divergence of exact probabilities, order by order.
    #[test]
    fn discrete_gaussian_is_concentrated() {
        for (variance, shift) in [(0.25, 1), (1.0, 1), (9.0, 2), (30.0, 5)] {
            let law = discrete(variance, 300);
            let at = |k: i64| law.get((k + 300) as usize).copied().unwrap_or(0.0);
            let bound = Gaussian::discrete(count(), Ratio::from_f64_up(variance).unwrap()).unwrap();
            let Cost::Concentrated { rho } = bound.cost(&rung(Change::AddRemove, shift as u64)) else { panic!("zCDP") };
            for order in [1.5_f64, 2.0, 4.0, 16.0] {
                let moment: f64 = (-100..=100)
                    .filter(|k| at(*k) > 0.0 && at(k - shift) > 0.0)
                    .map(|k| (order * at(k - shift).ln() + (1.0 - order) * at(k).ln()).exp())
                    .sum();
                let divergence = moment.ln() / (order - 1.0);
                assert!(divergence <= rho.get() * order * (1.0 + 1e-12), "σ² {variance}, order {order}: {divergence}");
            }
            let exact = (shift * shift) as f64 / (2.0 * variance);
            assert!((exact..=exact.next_up()).contains(&rho.get()));
        }
    }

    /// Chi-square on 200,000 draws: a correct sampler falls below once in 10⁶ seeds; a deviation off by 3 % is caught.
    #[test]
    fn noise_follows_its_law() {
        let reach = 20_i64;
        let p_value = |mechanism: &Gaussian, law: &[f64]| {
            let mut entropy = Replay::new(0x6a55);
            let counts = tally(law.len(), 200_000, || {
                let noise = mechanism.sanitise(&50, &mut entropy).unwrap().open() - 50;
                (noise.clamp(-reach, reach) + reach) as usize
            });
            fit(&counts, law)
        };
        let law: Vec<f64> = (-reach..=reach).map(|k| rounded(k, 3.0)).collect();
        assert!(p_value(&Gaussian::rounded(count(), ratio("3")).unwrap(), &law) > 1e-6);
        assert!(p_value(&Gaussian::rounded(count(), ratio("3.1")).unwrap(), &law) < 1e-6, "a broken one must fail");
        let narrow: Vec<f64> = (-reach..=reach).map(|k| rounded(k, 1.0)).collect();
        let discrete_noise = Gaussian::discrete(count(), Ratio::ONE).unwrap();
        assert!(p_value(&discrete_noise, &discrete(1.0, reach)) > 1e-6);
        assert!(p_value(&discrete_noise, &narrow) < 1e-6, "the two laws are not the same: variances 1 and 13/12");
    }

    #[test]
    fn accuracy_holds_and_is_exact_for_the_rounded_law() {
        for sigma in ["1/3", "1", "25"] {
            let mechanism = Gaussian::rounded(count(), ratio(sigma)).unwrap();
            for confidence in [0.5, 0.95, 0.999_9] {
                let within = mechanism.accuracy(confidence).within as i64;
                let covered = |m: i64| (-m..=m).map(|k| rounded(k, ratio(sigma).to_f64())).sum::<f64>();
                assert!(covered(within) >= confidence - 1e-12);
                assert!(within == 0 || covered(within - 1) < confidence);
            }
        }
        let mechanism = Gaussian::discrete(count(), ratio("6.25")).unwrap();
        let within = mechanism.accuracy(0.95).within as usize;
        let covered: f64 = discrete(6.25, 100)[100 - within..=100 + within].iter().sum();
        assert!(covered >= 0.95, "± {within} covers {covered}");
        let one = GaussianVector::rounded(count(), 1, ratio("25")).unwrap().accuracy(0.95).within;
        let many = GaussianVector::rounded(count(), 1000, ratio("25")).unwrap().accuracy(0.95).within;
        assert_eq!((one, many), (49.0, 101.0), "1.96 σ for one coordinate, 4.05 σ for the worst of a thousand");
    }

    #[test]
    fn a_vector_costs_its_length_and_not_its_dimension() {
        let bound = Bound::Coordinates { groups: 3, low: 0, high: 1, support: Support::NonNegative };
        for dimension in [3, 300] {
            let mechanism = GaussianVector::rounded(bound, dimension, ratio("6")).unwrap();
            let Cost::Gaussian { noise } = mechanism.cost(&rung(Change::Replace, 1)) else { panic!("Gaussian") };
            assert!(noise <= 6.0 / 6_f64.sqrt() && noise > 2.449_489);
            // Never above: noise² · 6 ≤ 36 in exact fractions.
            let square = |x: f64| Ratio::from_f64_up(x * (1.0 + f64::EPSILON)).unwrap();
            assert!(square(noise).times(&Ratio::from(6)).unwrap() <= Ratio::from(15));
        }
        let words = Bound::Coordinates { groups: 1, low: 0, high: 1, support: Support::Single };
        let units = vec![Unit::element("author", "word"), Unit::user("author", Change::Replace)];
        let caps = Caps { elements_per_user: Some(8), rows_per_element: None };
        let ladder = Ladder::new(units, caps, Kind::Element).unwrap().element_wise().unwrap();
        let histogram = GaussianVector::rounded(words, 400, ratio("6")).unwrap().on(&ladder);
        let noise: Vec<Cost> = ladder.rungs().iter().map(|rung| histogram.cost(rung)).collect();
        assert_eq!(noise, [Cost::Gaussian { noise: 6.0 }, Cost::Gaussian { noise: 1.5 }]); // 1 and √16 words
        let far = Gaussian::rounded(Bound::Ball { radius: f64::MAX, support: Support::Any }, Ratio::ONE).unwrap();
        assert_eq!(far.cost(&rung(Change::Replace, 9)), Cost::Everything);
        let wrong = GaussianVector::rounded(bound, 3, ratio("6")).unwrap().sanitise(&[1], &mut Replay::new(0));
        assert_eq!(wrong.err(), Some(SanitiseError::Length { given: 1, expected: 3 }));
    }

    /// E13: σ = √(2 ln(1/δ))/ε and the formula with 1.25 give too little noise at large ε; calibration must be exact.
    #[test]
    fn closed_formulas_for_the_noise_fail_at_large_epsilon() {
        let (epsilon, delta) = (10.0_f64, 1e-5_f64);
        let short_paper = (2.0 * (1.0 / delta).ln()).sqrt() / epsilon;
        let textbook = (2.0 * (1.25 / delta).ln()).sqrt() / epsilon;
        assert!((real_delta(epsilon, 1.0 / short_paper) - 2.883e-5).abs() < 1e-8);
        assert!(real_delta(epsilon, 1.0 / textbook) > delta);
        assert!(real_delta(epsilon, 1.0 / 0.499_90) <= delta && real_delta(epsilon, 1.0 / 0.499_88) > delta);
    }

    /// C4: δ is not the probability that the loss exceeds ε; that probability is an upper bound, and far above it.
    #[test]
    fn delta_is_not_the_chance_of_a_large_loss() {
        let (mu, epsilon) = (1.0, 1.0);
        assert!((real_delta(epsilon, mu) - 0.126_937).abs() < 1e-6);
        let loss_exceeds = above((epsilon - mu * mu / 2.0) / mu);
        assert!((loss_exceeds - 0.308_538).abs() < 1e-6);
    }
}
