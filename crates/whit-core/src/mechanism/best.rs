//! The best of several runs of a mechanism, at its true price.
//!
//! Whoever tries ten settings and releases the best of ten private models has released more than one private model: which of them won depends on all ten. Where the number of
//! runs is fixed, that costs as much as all of them together, in the worst case. Where it is random, and stays secret, it costs little more than two or three of them, however many
//! there were (Liu and Talwar 2019; Papernot and Steinke 2022).

use super::BadParameter;
use crate::cost::{Cost, RunLaw};
use whit_noise::{Entropy, Ratio, bernoulli, bernoulli_exp};

/// How many runs there are: a law that depends on no data, with parameters as exact fractions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RunCount {
    /// A coin that shows "stop" with this probability is thrown after each run.
    Geometric {
        /// The probability.
        stop: Ratio,
    },
    /// k runs with a probability proportional to (1 − e^−spread)^k/k: mostly few, and now and then many.
    Logarithmic {
        /// What the law is spread over: the larger, the more runs.
        spread: Ratio,
    },
}

/// The best, by its score, of a random number of runs of one mechanism, of which each run draws its settings from a list.
///
/// # Neighbours
/// Those of the candidates: data sets that differ in one unit of a rung.
///
/// # Claim
/// Let each candidate, with the score that it gives to its own output, cost at most as [`BestOf::cost`] is told. Then what [`BestOf::run`] returns costs [`Cost::Chosen`], of which
/// Rényi accounting says: at order λ at most
/// `ε(λ) + (1 + η)·((1 − 1/μ)·ε(μ) + ln(1/γ)/μ) + ln E[K]/(λ − 1)` for every order μ ≥ 1, where ε is the largest divergence among the candidates, η is 1 for the geometric law of the number
/// of runs K and 0 for the logarithmic one, and γ is the probability of stopping, or e^−spread. That holds for whoever knows neither K nor anything of the runs that did not win,
/// and so for nobody who can take the time.
///
/// # Why
/// Papernot and Steinke 2022, Theorem 2, whose proof is short. A run draws its candidate by coins, shows which one it was, and so diverges by ε at most; call its law Q, and Q′ on
/// the neighbour. Put outputs in the order of their scores; equal ones are as good as ordered by a coin of their own, since the first of them is taken and runs are independent.
///
/// 1. With f(x) = E[x^K], the best is y with probability f(Q(≤ y)) − f(Q(< y)), which is Q(y) times the mean of f′ between Q(< y) and Q(≤ y). The function a^λ·b^(1−λ) is convex in both,
///    so the divergence of the best is at most that of Q plus the largest ln(f′(q)^λ·f′(q′)^(1−λ))/(λ − 1), where q and q′ are the probabilities of one event under Q and Q′.
/// 2. For both laws f′(x) = E[K]·(γ/(γ + (1−γ)(1−x)))^(1+η), which grows with x up to E[K]. So that is at most ln E[K]/(λ−1) + (1+η)·ln((γ + (1−γ)p′)/(γ + (1−γ)p)) with p = 1 − q and p′ = 1 − q′.
/// 3. Seen through the event alone, Q′ and Q are no further apart: p′^μ·p^(1−μ) ≤ e^((μ−1)·ε(μ)), so p′ ≤ e^((1−1/μ)·ε(μ))·p^(1−1/μ). By concavity γ + (1−γ)·p^(1−1/μ) ≤ (γ + (1−γ)p)^(1−1/μ), and the
///    logarithm is at most (1 − 1/μ)·ε(μ) + ln(1/γ)/μ.
///
/// The logarithmic law is drawn as a geometric one that stops with probability e^(−U·spread), where U is uniform: its derivative f′ is the mean of those. U has 2^63 values here, of which each is in
/// the middle of its cell, and the logarithm of each derivative moves with U by at most the spread: f′ is within a factor e^(±spread/2^64) of the true one, which the accountant adds.
///
/// # Tried by
/// `no_choice_is_told_apart_more_easily_than_the_theorem_says`, exactly and with all outputs enumerated, `paying_for_one_run_is_too_little`,
/// `the_price_of_a_choice_is_that_of_the_theorem` against other arithmetic, `the_number_of_runs_follows_its_law`, and `the_first_of_the_best_is_returned`.
#[derive(Debug, Clone, PartialEq)]
pub struct BestOf {
    count: RunCount,
}

/// The largest spread: e to this is more runs than anybody waits for.
const MOST_SPREAD: f64 = 40.0;

impl BestOf {
    /// The best of so many runs.
    pub fn new(count: RunCount) -> Result<Self, BadParameter> {
        match &count {
            RunCount::Geometric { stop } if stop.is_zero() || *stop > Ratio::ONE => {
                Err(BadParameter::range("probability of stopping", stop.to_f64(), "greater than 0 and at most 1"))
            }
            RunCount::Logarithmic { spread }
                if spread.is_zero()
                    || spread.to_f64() > MOST_SPREAD
                    || spread.denominator() >= 1 << 32
                    || spread.numerator() >= 1 << 38 =>
            {
                Err(BadParameter::range(
                    "spread",
                    spread.to_f64(),
                    "greater than 0 and at most 40, in fractions of less than 2^32",
                ))
            }
            _ => Ok(Self { count }),
        }
    }

    /// As the cost language has the law, rounded so that there are rather more runs.
    pub fn law(&self) -> RunLaw {
        match &self.count {
            RunCount::Geometric { stop } => RunLaw::Geometric { stop: stop.to_f64_down() },
            RunCount::Logarithmic { spread } => RunLaw::Logarithmic { spread: spread.to_f64_up() },
        }
    }

    /// What the best costs a rung, of candidates whose runs cost it this.
    pub fn cost(&self, candidates: Vec<Cost>) -> Cost {
        Cost::Chosen { candidates, law: self.law() }
    }

    /// How many runs there are this time. Nobody is to know.
    fn draw(&self, entropy: &mut dyn Entropy) -> u64 {
        let mut runs = 1;
        match &self.count {
            RunCount::Geometric { stop } => {
                while !bernoulli(stop, entropy) {
                    runs += 1;
                }
            }
            RunCount::Logarithmic { spread } => {
                let middle = 2 * u128::from(entropy.bits(63)) + 1;
                // Below 2^64·2^38 over 2^64·2^32: always a fraction.
                let Ok(exponent) = Ratio::new(middle * spread.numerator(), spread.denominator() << 64) else {
                    unreachable!("spreads are checked when they are made");
                };
                while !bernoulli_exp(&exponent, entropy) {
                    runs += 1;
                }
            }
        }
        runs
    }

    /// Runs as often as the law says, and returns the output with the highest score, the first where several have it. Of the others nothing is left.
    ///
    /// `run` draws which candidate it is, by coins alone, and returns its output with a score that is a part of what it was priced for.
    pub fn run<T, E>(
        &self,
        entropy: &mut dyn Entropy,
        mut run: impl FnMut(&mut dyn Entropy) -> Result<(i64, T), E>,
    ) -> Result<T, E> {
        let runs = self.draw(entropy);
        let mut best = run(entropy)?;
        for _ in 1..runs {
            let next = run(entropy)?;
            if next.0 > best.0 {
                best = next;
            }
        }
        Ok(best.1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mechanism::trial::fit;
    use whit_noise::Replay;

    fn ratio(numerator: u128, denominator: u128) -> Ratio {
        Ratio::new(numerator, denominator).unwrap()
    }

    /// A correct sampler fails once in 10⁶ seeds; one that draws the other law of the same mean is caught.
    #[test]
    fn the_number_of_runs_follows_its_law() {
        const DRAWS: usize = 40_000;
        const MOST: usize = 12;
        let counts = |best: &BestOf| {
            let (mut entropy, mut counts) = (Replay::new(0xbe57), vec![0_u64; MOST + 1]);
            for _ in 0..DRAWS {
                let runs = best.draw(&mut entropy) as usize;
                counts[runs.min(MOST + 1) - 1] += 1;
            }
            counts
        };
        let with_rest = |mut law: Vec<f64>| {
            law.push(1.0 - law.iter().sum::<f64>());
            law
        };
        let geometric = BestOf::new(RunCount::Geometric { stop: ratio(1, 3) }).unwrap();
        let expected = with_rest((0..MOST as i32).map(|k| (2.0_f64 / 3.0).powi(k) / 3.0).collect());
        assert!(fit(&counts(&geometric), &expected) > 1e-6);
        let logarithmic = BestOf::new(RunCount::Logarithmic { spread: ratio(2, 1) }).unwrap();
        let rest = 1.0 - (-2.0_f64).exp();
        let law = with_rest((1..=MOST as i32).map(|k| rest.powi(k) / (2.0 * f64::from(k))).collect());
        assert!(fit(&counts(&logarithmic), &law) > 1e-6);
        assert!(fit(&counts(&geometric), &law) < 1e-6, "another law is noticed");
        let mean = logarithmic.law().mean();
        assert!((mean - (2.0_f64.exp() - 1.0) / 2.0).abs() < 1e-12, "{mean}");
    }

    #[test]
    fn the_first_of_the_best_is_returned() {
        let best = BestOf::new(RunCount::Geometric { stop: ratio(1, 5) }).unwrap();
        for seed in 0..50 {
            let mut scores = Vec::new();
            let mut entropy = Replay::new(seed);
            let chosen = best.run(&mut entropy, |entropy| {
                let score = (entropy.bits(2)) as i64;
                scores.push(score);
                Ok::<_, ()>((score, scores.len() - 1))
            });
            let most = *scores.iter().max().unwrap();
            assert_eq!(chosen, Ok(scores.iter().position(|&score| score == most).unwrap()), "{scores:?}");
        }
        assert_eq!(best.run(&mut Replay::new(1), |_| Err::<(i64, ()), _>("no")), Err("no"));
    }

    #[test]
    fn laws_that_cannot_be_are_refused() {
        for count in [
            RunCount::Geometric { stop: Ratio::ZERO },
            RunCount::Geometric { stop: ratio(3, 2) },
            RunCount::Logarithmic { spread: Ratio::ZERO },
            RunCount::Logarithmic { spread: ratio(41, 1) },
            RunCount::Logarithmic { spread: ratio(1, 1 << 40) },
        ] {
            assert!(BestOf::new(count).is_err());
        }
        let cost = BestOf::new(RunCount::Geometric { stop: ratio(1, 3) }).unwrap().cost(vec![Cost::Nothing]);
        assert!(matches!(cost, Cost::Chosen { law: RunLaw::Geometric { stop }, .. } if stop <= 1.0 / 3.0));
    }
}
