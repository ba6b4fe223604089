//! The best few of many candidates, in order, with one draw of noise each.

use super::select::Candidates;
use super::{Accuracy, BadParameter, Mechanism, SanitiseError};
use crate::cost::Cost;
use crate::release::Sealed;
use crate::unit::Rung;
use whit_noise::{Entropy, race};

/// One-shot top-k: every score gets Gumbel noise once, and the numbers of the `keep` largest leave in their noisy order.
///
/// # Neighbours
/// As for [`Exponential`](super::select::Exponential): scores of data sets that differ in one unit of the rung.
///
/// # Claim
/// The law is that of `keep` exponential mechanisms in a row, each among the candidates that are left. So the cost is their
/// bounded-range cost, `keep` times.
///
/// # Why
/// The largest `factor·score + Gumbel` is chosen with exponential weights, and given that, the order of the rest is again a Gumbel
/// race among them, independent of who won (Durfee, Rogers 2019, after Yellott 1977). Each run is one step of an adaptive
/// composition: its candidates depend only on what was released before.
///
/// # Tried by
/// `one_race_is_the_same_as_peeling`, `ordered_pairs_lose_no_more_than_two_runs`.
///
/// ```
/// use whit_core::mechanism::{select::{Candidates, Scores}, topk::TopK};
/// let shops = Candidates::new(100, "0.2".parse()?, 1, Scores::Monotone)?;
/// let five = TopK::new(shops, 5)?; // costs five times 0.2
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct TopK {
    candidates: Candidates,
    keep: usize,
}

impl TopK {
    /// The best `keep` of these; `candidates` carries the ε of a single pick.
    pub fn new(candidates: Candidates, keep: usize) -> Result<Self, BadParameter> {
        if keep == 0 || keep > candidates.len() {
            return Err(BadParameter::range(
                "number of candidates to keep",
                keep as f64,
                "at least 1 and at most the number of candidates",
            ));
        }
        Ok(Self { candidates, keep })
    }
}

impl Mechanism for TopK {
    type Exact = [i64];
    type Noisy = Vec<usize>;

    fn cost(&self, rung: &Rung) -> Cost {
        self.candidates
            .range_up(rung)
            .map_or(Cost::Everything, |epsilon| Cost::BoundedRange { epsilon }.repeat(self.keep as u64))
    }

    fn sanitise(&self, exact: &[i64], entropy: &mut dyn Entropy) -> Result<Sealed<Vec<usize>>, SanitiseError> {
        let (numbers, scores): (Vec<usize>, Vec<i64>) = self.candidates.contest(exact)?.into_iter().unzip();
        let order = race::gumbel(&scores, self.candidates.factor(), self.keep, entropy);
        Ok(Sealed::new(order.into_iter().map(|place| numbers[place]).collect()))
    }

    /// How far the score of any pick is below the best score that was still there, and so below the true score of its place.
    fn accuracy(&self, confidence: f64) -> Accuracy {
        self.candidates.accuracy(confidence, self.keep)
    }
}

/// How many pairs of items a noisy histogram puts in the wrong order, of those whose true frequencies are at least `gamma`
/// apart. A tie of noisy counts is a wrong order; items of equal frequency have no right one.
///
/// ```
/// use whit_core::mechanism::topk::order_loss;
/// assert_eq!(order_loss(&[0.5, 0.3, 0.2], &[3.0, 2.0, 1.0], 0.0), 0); // all three pairs are right
/// assert_eq!(order_loss(&[0.5, 0.3, 0.2], &[3.0, 1.0, 1.0], 0.0), 1);
/// ```
///
/// # Panics
/// When the two have different lengths.
pub fn order_loss(frequencies: &[f64], noisy: &[f64], gamma: f64) -> u64 {
    assert_eq!(frequencies.len(), noisy.len(), "every item has a frequency and a noisy count");
    let items = || frequencies.iter().zip(noisy);
    let wrong = |(p, h): (&f64, &f64)| items().filter(|(q, g)| p > q && *p - *q >= gamma && h <= g).count() as u64;
    items().map(wrong).sum()
}

#[cfg(test)]
mod tests {
    use super::super::select::{Exponential, Scores};
    use super::super::trial::{epsilon, fit, rung, tally, worst_loss};
    use super::*;
    use crate::unit::Change;
    use whit_noise::Replay;

    fn candidates(scores: Scores) -> Candidates {
        Candidates::new(4, "0.8".parse().unwrap(), 1, scores).unwrap()
    }

    /// The law of the ordered pair (first, second), by peeling, as a table of 16 cells.
    fn pairs(scores: &[i64], kind: Scores) -> Vec<f64> {
        let first = Exponential::new(candidates(kind)).probabilities(scores).unwrap();
        (0..16)
            .map(|cell| {
                let (a, b) = (cell / 4, cell % 4);
                if a == b {
                    return 0.0;
                }
                let rest = Exponential::new(candidates(kind).without([a]).unwrap());
                first[a] * rest.probabilities(scores).unwrap()[b]
            })
            .collect()
    }

    /// Chi-square on 100,000 races: a correct one fails once in 10⁶ seeds; releasing the pair in the wrong order is caught.
    #[test]
    fn one_race_is_the_same_as_peeling() {
        let scores = [12, 10, 9, 4];
        let mechanism = TopK::new(candidates(Scores::General), 2).unwrap();
        let mut entropy = Replay::new(0x70b);
        let counts = tally(16, 100_000, || {
            let pair = mechanism.sanitise(&scores, &mut entropy).unwrap().open();
            pair[0] * 4 + pair[1]
        });
        let law = pairs(&scores, Scores::General);
        assert!(fit(&counts, &law) > 1e-6, "{counts:?} {law:?}");
        let swapped: Vec<u64> = (0..16).map(|cell| counts[cell % 4 * 4 + cell / 4]).collect();
        assert!(fit(&swapped, &law) < 1e-6);
    }

    #[test]
    fn ordered_pairs_lose_no_more_than_two_runs() {
        for kind in [Scores::General, Scores::Monotone] {
            let claimed = epsilon(&TopK::new(candidates(kind), 2).unwrap().cost(&rung(Change::AddRemove, 1)));
            let low = if kind == Scores::Monotone { 0 } else { -1 };
            let (start, width) = ([3, 1, 0, 0], 2 - low);
            for code in 0..i64::pow(width, 4) {
                let moved: Vec<i64> = (0..4).map(|i| start[i] + code / width.pow(i as u32) % width + low).collect();
                let cells = |scores: &[i64]| pairs(scores, kind).into_iter().filter(|p| *p > 0.0).collect::<Vec<_>>();
                let loss = worst_loss(&cells(&start), &cells(&moved));
                assert!(loss <= claimed + 1e-12, "{moved:?}: {loss} > {claimed}");
            }
        }
    }

    #[test]
    fn what_is_excluded_is_never_among_the_best() {
        let mechanism = TopK::new(candidates(Scores::General).without([0]).unwrap(), 3).unwrap();
        let best = mechanism.sanitise(&[1000, 0, 500, 250], &mut Replay::new(2)).unwrap().open();
        assert_eq!(best, [2, 3, 1]);
        assert!(TopK::new(candidates(Scores::General).without([0]).unwrap(), 4).is_err());
        assert!(TopK::new(candidates(Scores::General), 0).is_err());
    }

    /// E14: the printed formula counts right orders.
    #[test]
    fn order_loss_counts_wrong_orders() {
        let (p, h) = ([0.5, 0.3, 0.2], [3.0, 2.0, 1.0]);
        let printed = (0..3).flat_map(|j| (j + 1..3).map(move |l| u64::from(h[j] > h[l]))).sum::<u64>();
        assert_eq!((order_loss(&p, &h, 0.0), printed), (0, 3));
        assert_eq!(order_loss(&p, &[1.0, 2.0, 3.0], 0.0), 3);
        assert_eq!(order_loss(&p, &[1.0, 2.0, 3.0], 0.15), 2, "0.3 and 0.2 are closer than 0.15");
        assert_eq!(order_loss(&[0.2, 0.5, 0.3], &[3.0, 1.0, 2.0], 0.0), 3, "the items need not be sorted");
    }
}
