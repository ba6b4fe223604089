//! What sanitises: every mechanism is one file with one shape (parameters, claim, cost, sanitise, accuracy, tests).
//!
//! | file | what it releases | cost |
//! |---|---|---|
//! | [`additive`] | integers plus noise of a law: what the next two are faces of | that of the law |
//! | [`laplace`] | integers plus discrete Laplace noise | geometric, or pure ε for vectors |
//! | [`gaussian`] | integers plus rounded (or discrete) Gaussian noise | Gaussian (or concentrated) |
//! | [`select`] | one of several candidates, by score: exponential mechanism, permute-and-flip | bounded range, pure ε |
//! | [`noisy_max`] | the same two laws, by adding noise to the scores | the same |
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

use crate::cost::Cost;
use crate::loss::OutOfRange;
use crate::release::{LedgerFailure, Note, ReadError, Sealed};
use crate::unit::Rung;
use std::fmt;
use whit_noise::{BadRatio, Entropy, Overflow};

/// What sanitises a bounded, exact statistic.
///
/// The documentation of each has four headings: who are neighbours, what is claimed of them, why that is so, and which
/// tests tried to break it.
pub trait Mechanism {
    /// The exact statistic; where noise is drawn between one reading and the next, what reads it. Nobody has one before its charge is reserved: see
    /// [`release`](crate::release()).
    type Exact: ?Sized;
    /// What may leave once it is paid for.
    type Noisy;

    /// What one run costs one unit of this rung. It depends on parameters only, never on data.
    fn cost(&self, rung: &Rung) -> Cost;

    /// Draws the noise. The result stays sealed until a ledger has been charged.
    fn sanitise(&self, exact: &Self::Exact, entropy: &mut dyn Entropy) -> Result<Sealed<Self::Noisy>, SanitiseError>;

    /// The same for long work, which has the ledger note how far it has come, so that it can go on after being killed. This is what a release calls.
    fn sanitise_in_steps(
        &self,
        exact: &Self::Exact,
        entropy: &mut dyn Entropy,
        note: &mut Note<'_>,
    ) -> Result<Sealed<Self::Noisy>, SanitiseError> {
        let _ = note;
        self.sanitise(exact, entropy)
    }

    /// With at least this probability, the error is at most [`Accuracy::within`].
    fn accuracy(&self, confidence: f64) -> Accuracy;
}

/// Why a mechanism could not run. The messages speak of parameters and shapes, never of values.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SanitiseError {
    /// Statistic plus noise leaves 64 bits. It is never wrapped and never clamped.
    #[error("the noisy value does not fit into 64 bits; use a coarser lattice or a smaller scale")]
    Overflow,
    /// The statistic has another number of coordinates than the mechanism was made for.
    #[error("the statistic has {given} coordinates, but the mechanism was made for {expected}")]
    Length {
        /// How many it has.
        given: usize,
        /// How many it should have.
        expected: usize,
    },
    /// A value lies outside of the declared domain.
    #[error("a value is not in the declared domain of {size} values (0 to {size} exclusive)")]
    Domain {
        /// How many values the domain has.
        size: u64,
    },
    /// What the mechanism was given is not what it was made for.
    #[error("{0}")]
    Unfit(&'static str),
    /// What is read while the mechanism runs could not be.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// The ledger did not note how far the work has come, so it ended.
    #[error(transparent)]
    Note(#[from] LedgerFailure),
}

impl From<Overflow> for SanitiseError {
    fn from(_: Overflow) -> Self {
        Self::Overflow
    }
}

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

/// With probability at least `confidence`, the error is at most `within`.
///
/// ```
/// use whit_core::Accuracy;
/// let preview = Accuracy { within: 41.0, confidence: 0.95 };
/// assert_eq!(preview.to_string(), "± 41 at 95 %");
/// assert_eq!(preview.times(0.01).to_string(), "± 0.41 at 95 %");
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Accuracy {
    /// The error, in lattice steps or in the unit that the mechanism names.
    pub within: f64,
    /// The probability.
    pub confidence: f64,
}

impl Accuracy {
    /// The same in units of `step` to a lattice step.
    #[must_use]
    pub fn times(self, step: f64) -> Self {
        Self { within: self.within * step, ..self }
    }

    /// The smallest whole error that is exceeded with probability at most 1 − `confidence`, where `tail(m)` bounds the
    /// probability that it exceeds m and falls with m. At confidence 1 the error is unbounded.
    pub(crate) fn of_tail(confidence: f64, tail: impl Fn(u64) -> f64) -> Self {
        // A hair less than allowed, for the rounding in the tail itself.
        let allowed = (1.0 - confidence) * (1.0 - 1e-12);
        if allowed.is_nan() || allowed <= 0.0 {
            return Self { within: f64::INFINITY, confidence };
        }
        let (mut low, mut high) = (0, 1_u64);
        while tail(high) > allowed {
            if high >= 1 << 62 {
                return Self { within: f64::INFINITY, confidence };
            }
            (low, high) = (high, high * 2);
        }
        if tail(0) <= allowed {
            return Self { within: 0.0, confidence };
        }
        // tail(low) is too much, tail(high) is not.
        while high - low > 1 {
            let middle = low + (high - low) / 2;
            if tail(middle) > allowed { low = middle } else { high = middle }
        }
        Self { within: high as f64, confidence }
    }
}

impl fmt::Display for Accuracy {
    /// Whole errors are written out; others have three digits and are rounded up.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let percent = (self.confidence * 1e8).round() / 1e6;
        if self.within.fract() == 0.0 || !self.within.is_finite() {
            return write!(f, "± {} at {percent} %", self.within);
        }
        let places = (2 - self.within.abs().log10().floor() as i32).clamp(0, 300);
        let scale = 10_f64.powi(places);
        // The hair keeps 0.41 from becoming 0.411 because 41 · 0.01 is a little more.
        let shown = (self.within * scale * (1.0 - 1e-12)).ceil() / scale;
        write!(f, "± {shown} at {percent} %")
    }
}

/// The chance that one of `dimension` independent errors exceeds what a single one exceeds with probability `one`.
pub(crate) fn any_of(dimension: usize, one: f64) -> f64 {
    if one >= 1.0 { 1.0 } else { -libm::expm1(dimension as f64 * libm::log1p(-one)) }
}

/// What the tests of several mechanisms share: rungs, reference numbers, and the two questions that are asked of them.
#[cfg(test)]
pub(crate) mod trial {
    use super::{Cost, Rung};
    use crate::unit::{Change, Unit};
    use serde_json::Value;
    use whit_noise::fit::chi_square_p_value;

    pub(crate) fn rung(change: Change, holds: u64) -> Rung {
        Rung { unit: Unit::user("id", change), holds, disjoint: false }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_accuracy_reads_like_an_error_bar() {
        let read = |within, confidence| Accuracy { within, confidence }.to_string();
        assert_eq!(read(41.0, 0.95), "± 41 at 95 %");
        assert_eq!(read(123_456.0, 0.999), "± 123456 at 99.9 %");
        assert_eq!(read(8.188_689, 0.95), "± 8.19 at 95 %");
        assert_eq!(read(0.001_234_1, 0.99), "± 0.00124 at 99 %");
        assert_eq!(read(98_765.4, 0.9), "± 98766 at 90 %");
        assert_eq!(read(f64::INFINITY, 1.0), "± inf at 100 %");
    }

    #[test]
    fn the_smallest_sufficient_error_is_found() {
        for wanted in [0_u64, 1, 2, 3, 17, 1 << 40] {
            let found = Accuracy::of_tail(0.95, |m| if m >= wanted { 0.049 } else { 0.051 });
            assert_eq!(found.within, wanted as f64);
        }
        assert_eq!(Accuracy::of_tail(1.0, |_| 0.0).within, f64::INFINITY);
        assert_eq!(Accuracy::of_tail(0.95, |_| 1.0).within, f64::INFINITY);
    }
}
