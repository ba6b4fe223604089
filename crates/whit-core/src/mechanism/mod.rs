//! What sanitises: every mechanism is one file with one shape (parameters, claim, cost, sanitise, accuracy, tests).
//!
//! | file | what it releases | cost |
//! |---|---|---|
//! | [`additive`] | integers plus noise of a law: what the next two are faces of | that of the law |
//! | [`laplace`] | integers plus discrete Laplace noise | geometric, or pure ε for vectors |
//! | [`gaussian`] | integers plus rounded (or discrete) Gaussian noise | Gaussian (or concentrated) |
//! | [`select`] | one of several candidates, by score: exponential mechanism, permute-and-flip | bounded range, pure ε |
//! | [`noisy_max`] | the same two laws, by adding noise to the scores | the same |
//! | [`best`] | the best of a random number of runs of one mechanism | that of a choice among what runs cost |
//! | [`topk`] | the best few candidates in order | bounded range, repeated |
//! | [`response`] | one unit's own answer, true only with a stated probability | pure ε |
//! | [`unary`] | one unit's own value as noisy bits (optimised unary encoding, RAPPOR) | pure ε |
//! | [`threshold`] | which of many queries is the first above a threshold | pure ε |
//! | [`keys`] | which group keys may be named | approximate (ε, δ), or Gaussian and a δ |
//! | [`quantile`] | quantiles and extremes, from a tree of counts that [`gaussian`] sanitises | Gaussian |
//! | [`range`] | a range for values that nobody declared one for, from counts that [`gaussian`] sanitises | Gaussian |
//!
//! A cost reads parameters alone, never data. Statistics arrive as integers on a [`Lattice`](crate::Lattice) and noise
//! is drawn exactly, so each claim is about the very numbers that leave, not about an idealised version of them.

pub mod additive;
pub mod best;
pub mod gaussian;
pub mod keys;
pub mod laplace;
pub mod noisy_max;
pub mod quantile;
pub mod range;
pub mod response;
pub mod select;
pub mod threshold;
pub mod topk;
pub mod unary;

pub use crate::release::{Accuracy, Mechanism, SanitiseError};

use crate::loss::OutOfRange;
use whit_noise::BadRatio;

/// A parameter with which a mechanism would make no sense.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum BadParameter {
    /// A number outside of its range.
    #[error(transparent)]
    Range(#[from] OutOfRange),
    /// A fraction that no sampler can use.
    #[error(transparent)]
    Fraction(#[from] BadRatio),
}

impl BadParameter {
    pub(crate) fn range(name: &'static str, value: f64, range: &'static str) -> Self {
        Self::Range(OutOfRange { name, value, range })
    }
}

/// The chance that one of `dimension` independent errors exceeds what a single one exceeds with probability `one`.
#[cfg(test)]
pub(crate) fn any_of(dimension: usize, one: f64) -> f64 {
    if one >= 1.0 { 1.0 } else { -libm::expm1(dimension as f64 * libm::log1p(-one)) }
}

/// What the tests of several mechanisms share: rungs, reference numbers, and the two questions that are asked of them.
#[cfg(test)]
pub(crate) mod trial {
    use crate::cost::Cost;
    use crate::unit::{Change, Rung, Unit};
    use serde_json::Value;
    use whit_noise::fit::chi_square_p_value;

    pub(crate) fn rung(change: Change, holds: u64) -> Rung {
        Rung { unit: Unit::user("id", change), holds, disjoint: false, slices: None }
    }

    /// The ε of a pure or bounded-range cost, all of it together.
    pub(crate) fn epsilon(cost: &Cost) -> f64 {
        cost.leaves()
            .into_iter()
            .map(|(leaf, times)| match leaf {
                Cost::Pure { epsilon } | Cost::BoundedRange { epsilon } => epsilon.get() * times as f64,
                other => panic!("{other:?} is no pure cost"),
            })
            .sum()
    }

    /// The entries of one kind in a file of reference numbers.
    pub(crate) fn oracles(file: &str, kind: &str) -> Vec<Value> {
        let path = format!("{}/../whit-account/tests/oracles/{file}.json", env!("CARGO_MANIFEST_DIR"));
        let text = std::fs::read_to_string(path).unwrap();
        let Value::Array(entries) = serde_json::from_str::<Value>(&text).unwrap()["entries"].take() else {
            panic!("{file} has no entries")
        };
        let found: Vec<Value> = entries.into_iter().filter(|entry| entry["kind"] == kind).collect();
        assert!(!found.is_empty(), "{file} has no entry of kind {kind}");
        found
    }

    pub(crate) fn number(value: &Value) -> f64 {
        value.as_f64().unwrap_or_else(|| panic!("{value} is no number"))
    }

    /// Whether a value agrees with what an entry expects, by the entry's own tolerance.
    pub(crate) fn agree(entry: &Value, value: f64, expected: &Value) {
        let (tolerance, expected) = (&entry["tolerance"], number(expected));
        let allowed =
            tolerance["abs"].as_f64().unwrap_or(0.0) + tolerance["rel"].as_f64().unwrap_or(0.0) * expected.abs();
        assert!((value - expected).abs() <= allowed, "{}: {value} instead of {expected}", entry["id"]);
    }

    /// The chance that a correct sampler's counts stray this far from the probabilities.
    pub(crate) fn fit(counts: &[u64], probabilities: &[f64]) -> f64 {
        let draws: u64 = counts.iter().sum();
        let expected: Vec<f64> = probabilities.iter().map(|p| p * draws as f64).collect();
        chi_square_p_value(counts, &expected)
    }

    /// Whether so many misses of so many trials are what chance allows, if each trial misses with probability at most
    /// `rate`: a correct procedure fails this once in 10⁹ seeds.
    pub(crate) fn within_chance(misses: u64, trials: u64, rate: f64) -> bool {
        let factorial = |n: u64| libm::lgamma(n as f64 + 1.0);
        let ways = |k: u64| factorial(trials) - factorial(k) - factorial(trials - k);
        let at = |k: u64| (ways(k) + k as f64 * rate.ln() + (trials - k) as f64 * (1.0 - rate).ln()).exp();
        (misses..=trials).map(at).sum::<f64>() > 1e-9
    }

    /// How often each of `0..size` comes up in `draws` draws.
    pub(crate) fn tally(size: usize, draws: u32, mut draw: impl FnMut() -> usize) -> Vec<u64> {
        let mut counts = vec![0; size];
        for _ in 0..draws {
            counts[draw()] += 1;
        }
        counts
    }

    /// The largest log-ratio of two laws over the same outputs, in either direction.
    pub(crate) fn worst_loss(p: &[f64], q: &[f64]) -> f64 {
        p.iter().zip(q).map(|(a, b)| (a / b).ln().abs()).fold(0.0, f64::max)
    }

    /// The length of the interval in which all log-ratios lie.
    pub(crate) fn loss_range(p: &[f64], q: &[f64]) -> f64 {
        let losses = || p.iter().zip(q).map(|(a, b)| (a / b).ln());
        losses().fold(f64::MIN, f64::max) - losses().fold(f64::MAX, f64::min)
    }
}
