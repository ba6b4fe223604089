//! Who wins when every candidate gets its own noise: exact orders of noisy scores, without ever rounding the noise.
//!
//! Noise is a real number of which only some bits are known. Keys are compared in `f64` with certified errors; where
//! two are too close to call, both draw more bits and the comparison is made in ball arithmetic. Ties have probability 0.

use crate::ball::{self, Ball};
use crate::entropy::Entropy;
use crate::quantile::{LOG_BINADES, log_error, log_table, minus_ln};
use crate::ratio::Ratio;
use crate::uniform::Unknown;
use dashu_int::IBig;
use std::cmp::Ordering;

/// The noise that each score gets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Perturbation {
    /// Gumbel noise.
    Gumbel,
    /// Exponential noise.
    Exponential,
}

/// The first `keep` candidates in the order of `factor·score + Gumbel noise`, best first.
///
/// ```
/// use whit_noise::{Os, Ratio, race};
/// let order = race::gumbel(&[1000, 0, 0], &Ratio::ONE, 2, &mut Os);
/// assert_eq!(order[0], 0);
/// ```
pub fn gumbel(scores: &[i64], factor: &Ratio, keep: usize, entropy: &mut dyn Entropy) -> Vec<usize> {
    run(scores, factor, keep, Perturbation::Gumbel, entropy)
}

/// The first `keep` candidates in the order of `factor·score + Exp(1) noise`, best first.
pub fn exponential(scores: &[i64], factor: &Ratio, keep: usize, entropy: &mut dyn Entropy) -> Vec<usize> {
    run(scores, factor, keep, Perturbation::Exponential, entropy)
}

struct Runner {
    /// How far the score is below the best one.
    behind: u128,
    noise: Unknown,
    /// The key lies within `error` of this.
    key: f64,
    error: f64,
}

fn run(scores: &[i64], factor: &Ratio, keep: usize, noise: Perturbation, entropy: &mut dyn Entropy) -> Vec<usize> {
    let Some(&best) = scores.iter().max() else { return Vec::new() };
    let slope = factor.to_f64();
    let mut runners: Vec<Runner> = scores
        .iter()
        .map(|&score| {
            let behind = (i128::from(best) - i128::from(score)).unsigned_abs();
            let bits = entropy.bits(63);
            let lost = behind as f64 * slope;
            let (drawn, error) = near(bits, noise);
            Runner {
                behind,
                noise: Unknown::new(bits, 63),
                key: drawn - lost,
                error: error + (lost + drawn.abs()) * 2f64.powi(-48),
            }
        })
        .collect();
    let mut order: Vec<usize> = (0..scores.len()).collect();
    order.sort_by(|&a, &b| runners[b].key.total_cmp(&runners[a].key));
    // Insertion by exact comparison: the order is almost always right already, so this is one pass.
    for end in 1..order.len() {
        let mut at = end;
        while at > 0 && beats(&mut runners, order[at], order[at - 1], factor, noise, entropy) {
            order.swap(at, at - 1);
            at -= 1;
        }
    }
    order.truncate(keep);
    order
}

/// The noise in `f64`, and a bound on its error; infinite where `f64` does not know.
fn near(bits: u64, noise: Perturbation) -> (f64, f64) {
    if bits == 0 {
        return (0.0, f64::INFINITY);
    }
    let (e, binade) = minus_ln(log_table(), bits);
    let error = if binade < LOG_BINADES { log_error(binade) } else { f64::INFINITY };
    match noise {
        Perturbation::Exponential => (e, error),
        // −ln e moves by error/(e − error); the library's logarithm is within two units in the last place.
        Perturbation::Gumbel if e > 2.0 * error => {
            let log = -libm::log(e);
            (log, error / (e - error) + log.abs() * 2f64.powi(-50) + 2f64.powi(-60))
        }
        Perturbation::Gumbel => (0.0, f64::INFINITY),
    }
}

/// Whether candidate `a` has the larger key.
fn beats(
    runners: &mut [Runner],
    a: usize,
    b: usize,
    factor: &Ratio,
    noise: Perturbation,
    entropy: &mut dyn Entropy,
) -> bool {
    let slack = runners[a].error + runners[b].error;
    let lead = runners[a].key - runners[b].key;
    if lead.abs() > slack {
        return lead > 0.0;
    }
    let flip = runners[a].behind < runners[b].behind;
    let (far, close) = if flip { (b, a) } else { (a, b) };
    // e^-key is V·e^(f·behind) for exponential noise and −ln V·e^(f·behind) for Gumbel noise; divide both by the
    // larger factor, so that only the closer candidate is multiplied, by e^(−f·difference).
    let difference = runners[far].behind - runners[close].behind;
    let numerator = IBig::from(difference) * IBig::from(factor.numerator());
    let denominator = IBig::from(factor.denominator());
    let (mut mine, mut theirs) = (runners[far].noise.clone(), runners[close].noise.clone());
    let smaller = mine.race(&mut theirs, entropy, |mine, theirs, precision| {
        let shrink = ball::exp_minus(&numerator, &denominator, precision);
        match noise {
            Perturbation::Exponential => (mine.ball(precision), theirs.ball(precision).times(&shrink)),
            Perturbation::Gumbel => match (mine.minus_ln(precision), theirs.minus_ln(precision)) {
                (Some(mine), Some(theirs)) => (mine, theirs.times(&shrink)),
                _ => (Ball::integer(&IBig::ZERO, precision), Ball::integer(&IBig::ZERO, precision)), // undecided: go on
            },
        }
    });
    runners[far].noise = mine;
    runners[close].noise = theirs;
    (smaller == Ordering::Less) != flip
}
