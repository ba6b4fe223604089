//! What an adversary gains from a release that keeps (ε, δ): the errors that no test avoids, and beliefs.
//!
//! Two worlds are given, alike but for one unit; the adversary knows both of them entirely, sees the release, and says
//! in which one it was made. Let p and p′ be the laws of the release in the two worlds. The promise is
//! p(S) ≤ e^ε · p′(S) + δ for every set S of outputs, and the same with the worlds exchanged. All here follows
//! from that line and nothing else, so it holds for whatever the adversary knows and computes.

use whit_core::OutOfRange;

/// A promise of (ε, δ)-differential privacy.
///
/// ```
/// use whit::explain::Promise;
/// let promise = Promise::new(1.0, 1e-6)?;
/// // Who wants to be wrong in at most 5 % of the innocent cases misses at least 86 % of the others.
/// assert!(promise.false_negatives(0.05) > 0.86);
/// // Between two equally likely worlds nobody guesses right more often than in 73.2 % of all cases.
/// assert!(promise.best_guess() < 0.732);
/// # Ok::<(), whit::core::OutOfRange>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Promise {
    epsilon: f64,
    delta: f64,
}

/// How far a belief may move, and how rarely it moves further.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Belief {
    /// The probability that the adversary gave to the first world beforehand.
    pub prior: f64,
    /// Afterwards it is at least this, except with probability [`Belief::except`].
    pub low: f64,
    /// Afterwards it is at most this, except with probability [`Belief::except`].
    pub high: f64,
    /// A bound on the probability of an output that moves the belief beyond one of the two ends, in either world.
    pub except: f64,
}

impl Promise {
    /// A promise; ε is at least 0 (and may be infinite), δ lies in [0, 1].
    pub fn new(epsilon: f64, delta: f64) -> Result<Self, OutOfRange> {
        if epsilon.is_nan() || epsilon < 0.0 {
            return Err(OutOfRange { name: "ε", value: epsilon, range: "at least 0" });
        }
        if !(0.0..=1.0).contains(&delta) {
            return Err(OutOfRange { name: "δ", value: delta, range: "between 0 and 1" });
        }
        Ok(Self { epsilon, delta })
    }

    /// The ε that was promised.
    pub fn epsilon(&self) -> f64 {
        self.epsilon
    }

    /// The δ that was promised.
    pub fn delta(&self) -> f64 {
        self.delta
    }

    /// The factor e^ε by which the odds of the two worlds move at most, when δ = 0.
    pub fn odds_factor(&self) -> f64 {
        self.epsilon.exp()
    }

    /// The least share of false negatives of any test that has this share of false positives:
    /// f(α) = max(0, 1 − δ − e^ε·α, e^−ε·(1 − δ − α)). (Wasserman and Zhou 2010; Dong, Roth and Su 2022.)
    pub fn false_negatives(&self, false_positives: f64) -> f64 {
        // At ε = ∞ and α = 0 the product would be NaN; the promise then is what δ alone gives.
        let grown = if false_positives == 0.0 { 0.0 } else { self.odds_factor() * false_positives };
        let steep = 1.0 - self.delta - grown;
        let flat = (-self.epsilon).exp() * (1.0 - self.delta - false_positives);
        steep.max(flat).clamp(0.0, 1.0)
    }

    /// The largest share of right guesses between two equally likely worlds: (e^ε + δ) / (e^ε + 1).
    ///
    /// It is (1 + TV)/2, and the total variation between the worlds is at most (e^ε − 1 + 2δ) / (e^ε + 1), where the
    /// two arms of the trade-off curve meet on the diagonal.
    pub fn best_guess(&self) -> f64 {
        let small = (-self.epsilon).exp();
        ((1.0 + self.delta * small) / (1.0 + small)).min(1.0)
    }

    /// What an adversary comes to believe who names the first world by a test with this share of false positives.
    ///
    /// The belief after naming is π·TPR / (π·TPR + (1−π)·FPR), which grows with the share of true positives, and
    /// that is at most 1 − f(FPR). As FPR falls to 0 it grows to 1 whenever δ > 0: a mechanism may keep the promise
    /// and give somebody away entirely, but only with probability δ.
    pub fn belief_when_named(&self, prior: f64, false_positives: f64) -> f64 {
        let named = prior * (1.0 - self.false_negatives(false_positives));
        let mistaken = (1.0 - prior) * false_positives;
        if named == 0.0 { 0.0 } else { named / (named + mistaken) }
    }

    /// How far the belief in the first world moves, and how rarely it moves further.
    ///
    /// (ε, δ) does **not** mean that the odds move by at most e^ε except with probability δ: Gaussian noise with
    /// ε = 1 and δ = 0.127 moves them further with probability 0.309. What holds is, for every `slack` s > 0: the odds
    /// move by at most (1 + s)·e^ε, except with probability δ·(1 + s)/s. For let S be the outputs with
    /// p > (1+s)·e^ε·p′. Then p(S) ≤ e^ε·p′(S) + δ ≤ p(S)/(1+s) + δ, so p(S) ≤ δ·(1+s)/s, and p′(S) is smaller still;
    /// the same the other way round. At δ = 0 no slack is needed, and none is taken.
    pub fn belief(&self, prior: f64, slack: f64) -> Belief {
        let (factor, except) = if self.delta == 0.0 {
            (self.odds_factor(), 0.0)
        } else {
            ((1.0 + slack) * self.odds_factor(), (self.delta * (1.0 + slack) / slack).min(1.0))
        };
        let odds = prior / (1.0 - prior);
        let of = |odds: f64| if odds.is_infinite() { 1.0 } else { odds / (1.0 + odds) };
        Belief { prior, low: of(odds / factor), high: of(odds * factor), except }
    }
}

/// The least share of false negatives that several promises about one release leave, at one share of false positives.
///
/// Each promise bounds the trade-off from below, so the largest bound holds.
pub fn least_false_negatives(promises: &[Promise], false_positives: f64) -> f64 {
    promises.iter().map(|promise| promise.false_negatives(false_positives)).fold(0.0, f64::max)
}

#[cfg(test)]
mod tests {
    use super::*;
    use whit_account::normal::{cdf, quantile};

    fn promise(epsilon: f64, delta: f64) -> Promise {
        Promise::new(epsilon, delta).unwrap()
    }

    /// δ(ε) of Gaussian noise whose standard deviation is 1/μ of the sensitivity.
    fn gaussian_delta(mu: f64, epsilon: f64) -> f64 {
        cdf(mu / 2.0 - epsilon / mu) - epsilon.exp() * cdf(-mu / 2.0 - epsilon / mu)
    }

    #[test]
    fn no_test_on_gaussian_noise_beats_the_trade_off() {
        for mu in [0.3, 1.0, 2.5] {
            for epsilon in [0.1, 0.5, 1.0, 3.0] {
                let promise = promise(epsilon, gaussian_delta(mu, epsilon));
                for alpha in [0.001, 0.01, 0.05, 0.2, 0.5, 0.9] {
                    let best = cdf(quantile(1.0 - alpha) - mu); // Neyman and Pearson
                    let bound = promise.false_negatives(alpha);
                    assert!(bound <= best + 1e-12, "μ {mu}, ε {epsilon}, α {alpha}: {bound} > {best}");
                }
            }
        }
    }

    #[test]
    fn many_promises_close_in_on_the_true_trade_off() {
        let promises: Vec<_> =
            (0..400).map(|i| f64::from(i) * 0.02).map(|e| promise(e, gaussian_delta(1.0, e))).collect();
        for alpha in [0.001, 0.05, 0.3, 0.8] {
            let best = cdf(quantile(1.0 - alpha) - 1.0);
            let bound = least_false_negatives(&promises, alpha);
            assert!(bound <= best + 1e-12 && bound > best - 1e-3, "α {alpha}: {bound} and {best}");
        }
    }

    /// Erratum C4: "δ is the probability that ε fails" is false, and our statement with slack is true.
    #[test]
    fn odds_move_further_than_the_factor_more_often_than_delta() {
        let (mu, epsilon) = (1.0, 1.0);
        let delta = gaussian_delta(mu, epsilon);
        // The loss is N(μ²/2, μ²) in the first world.
        let beyond = |loss: f64| cdf(-(loss - mu * mu / 2.0) / mu);
        assert!((delta - 0.126_937).abs() < 1e-6 && (beyond(epsilon) - 0.308_538).abs() < 1e-6);
        assert!(beyond(epsilon) > delta, "so the short version would be a lie");
        for slack in [0.01, 0.1, 0.5, 1.0, 3.0] {
            let except = promise(epsilon, delta).belief(0.5, slack).except;
            assert!(beyond(epsilon + f64::ln_1p(slack)) <= except, "slack {slack}");
        }
    }

    #[test]
    fn the_bound_with_slack_is_met_by_a_mechanism_that_gives_away_with_probability_delta() {
        // With probability δ the secret itself, else randomised response at ε: (ε, δ), and every number is attained.
        let (epsilon, delta) = (0.7_f64, 0.02);
        let honest = epsilon.exp() / (1.0 + epsilon.exp());
        let right = delta + (1.0 - delta) * honest;
        assert!((promise(epsilon, delta).best_guess() - right).abs() < 1e-12);
        let alpha = (1.0 - delta) * (1.0 - honest);
        assert!((promise(epsilon, delta).false_negatives(alpha) - alpha).abs() < 1e-12);
        assert!((promise(epsilon, delta).false_negatives(0.0) - (1.0 - delta)).abs() < 1e-12);
    }

    #[test]
    fn nothing_learned_leaves_beliefs_alone_and_no_protection_leaves_none() {
        let (blind, open) = (promise(0.0, 0.0), promise(f64::INFINITY, 0.0));
        for prior in [0.01, 0.5, 0.9] {
            let belief = blind.belief(prior, 0.1);
            assert!((belief.low - prior).abs() < 1e-15 && (belief.high - prior).abs() < 1e-15 && belief.except == 0.0);
            assert!((blind.belief_when_named(prior, 0.05) - prior).abs() < 1e-12);
            assert_eq!((open.belief(prior, 0.1).low, open.belief(prior, 0.1).high), (0.0, 1.0));
        }
        for alpha in [0.0, 0.3, 1.0] {
            assert!((blind.false_negatives(alpha) - (1.0 - alpha)).abs() < 1e-15);
        }
        assert_eq!((open.false_negatives(0.3), open.best_guess(), blind.best_guess()), (0.0, 1.0, 0.5));
        assert_eq!(promise(1.0, 1.0).best_guess(), 1.0);
    }

    #[test]
    fn what_is_no_promise_is_refused() {
        assert!(Promise::new(-0.1, 0.0).is_err());
        assert!(Promise::new(f64::NAN, 0.0).is_err());
        assert!(Promise::new(1.0, 1.1).is_err());
        assert!(Promise::new(1.0, f64::NAN).is_err());
    }
}
