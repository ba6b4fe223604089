//! Above-threshold: which of many queries is the first above a threshold, at a price that does not grow with their number.

use super::additive::{Additive, Coordinates, Law, Reach};
use super::{Accuracy, BadParameter, Mechanism, SanitiseError};
use crate::bound::{Bound, Support};
use crate::cost::Cost;
use crate::loss::Epsilon;
use crate::release::Sealed;
use crate::unit::Rung;
use whit_noise::round::{ratio_up, whole_up};
use whit_noise::{Entropy, Ratio, Secret};

/// Answers "below" to a stream of queries until one is above a threshold, says so, and halts.
///
/// What a release sanitises is the threshold, a whole number of lattice steps. That costs ε once and gives a [`NoisyThreshold`], which then takes queries,
/// each chosen with the answers so far in view, and draws the noise of each.
///
/// # Neighbours
/// Data sets that differ in one unit of the rung: every query, asked or only imagined, moves by at most `h·Δ` steps. The threshold is public, and so the same for both.
///
/// # Claim
/// `P[M(x) = z] ≤ e^(hε) · P[M(y) = z]` for every sequence of answers `z`, with discrete Laplace noise of scale `2Δ/ε` on
/// the threshold, drawn once, and `4Δ/ε` on each query. The number of queries does not matter.
///
/// # Why
/// Let the noise of all queries before the last be fixed; only the largest of their noisy values, `g`, matters. The output is
/// "last is the first above" when `g < T + ρ ≤ f + ν`. Between neighbours `g` moves by at most `Δ` and `f` by at most `Δ`; shift `ρ`
/// by the move of `g`, and `ν` by both. That maps the event onto itself at a price of `Δ/(2Δ/ε) + 2Δ/(4Δ/ε) = ε`. An
/// output without an "above" needs the first half alone. (Dwork, Naor, Reingold, Rothblum, Vadhan 2009; Dwork, Roth 2014, Theorem
/// 3.23.) All moves are whole numbers, because queries and threshold are, so the shift is a bijection of the integers and
/// the argument holds for discrete Laplace noise to the letter. It is about one run from one noisy threshold to one "above": a `NoisyThreshold` is made by a release alone, is not
/// copied, has no way back from its halt, and is not read back from what a ledger keeps, which is nothing.
///
/// # Tried by
/// `no_answer_loses_more_than_epsilon_however_many_queries`, exactly, `the_price_is_that_of_both_noises`, `noise_on_the_queries_alone_is_not_enough`,
/// `answers_follow_the_law`, `nothing_is_answered_after_the_halt`, `every_run_is_a_release_of_its_own`.
///
/// ```
/// use whit_core::mechanism::{Mechanism, threshold::AboveThreshold};
/// let alarm = AboveThreshold::new(1, "1".parse()?, 365)?; // a year of daily counts
/// assert_eq!((alarm.threshold_scale().to_string(), alarm.query_scale().to_string()), ("2".into(), "4".into()));
/// assert_eq!(alarm.accuracy(0.95).to_string(), "± 45 at 95 %");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone)]
pub struct AboveThreshold {
    epsilon: Ratio,
    /// How many queries the stated accuracy is for; the cost does not depend on it.
    queries: u64,
    scales: [Ratio; 2],
    /// What every query moves by, this moves by.
    on_threshold: Additive,
    /// What a query moves by, and with it the threshold: twice as far.
    on_query: Additive,
}

impl AboveThreshold {
    /// Watches for queries, each of which one unit moves by at most `sensitivity` steps, to reach a public threshold.
    ///
    /// Accuracy is stated for `queries` of them; more may be asked at no cost in privacy.
    pub fn new(sensitivity: u64, epsilon: Ratio, queries: u64) -> Result<Self, BadParameter> {
        if sensitivity == 0 {
            return Err(BadParameter::range("query sensitivity", 0.0, "at least 1 lattice step"));
        }
        let scale = |times: u128| {
            let distance = Ratio::new(times * u128::from(sensitivity), 1).ok()?;
            epsilon.inverse()?.times(&distance)
        };
        let bad = || BadParameter::range("ε", epsilon.to_f64(), "greater than 0, as a fraction of moderate size");
        let noise = |scale: Ratio, moves: u128| {
            // A single number, that moves so far whether a unit goes or becomes another.
            let bound = Bound::Ball { radius: whole_up(moves), support: Support::Single };
            Law::laplace(scale).map(|law| Additive::new(law, Reach::new(bound), Coordinates::One))
        };
        let scales = [scale(2).ok_or_else(bad)?, scale(4).ok_or_else(bad)?];
        let on_threshold = noise(scales[0], sensitivity.into())?;
        let on_query = noise(scales[1], 2 * u128::from(sensitivity))?;
        Ok(Self { epsilon, queries, scales, on_threshold, on_query })
    }

    /// The scale of the noise on the threshold: 2Δ/ε.
    pub fn threshold_scale(&self) -> &Ratio {
        &self.scales[0]
    }

    /// The scale of the noise on each query: 4Δ/ε.
    pub fn query_scale(&self) -> &Ratio {
        &self.scales[1]
    }
}

impl Mechanism for AboveThreshold {
    /// The threshold, in lattice steps; it is public. Queries come later, one by one.
    type Exact = i64;
    type Noisy = NoisyThreshold;

    fn cost(&self, rung: &Rung) -> Cost {
        let epsilon =
            self.epsilon.times(&Ratio::from(rung.holds)).and_then(|total| Epsilon::new(ratio_up(&total)).ok());
        epsilon.map_or(Cost::Everything, |epsilon| Cost::Pure { epsilon })
    }

    fn sanitise(&self, threshold: &i64, entropy: &mut dyn Entropy) -> Result<Sealed<NoisyThreshold>, SanitiseError> {
        let threshold = self.on_threshold.add_wide(*threshold, entropy)?;
        Ok(Sealed::new(NoisyThreshold { threshold, noise: self.on_query.clone(), halted: false }))
    }

    /// With this confidence, over all of the stated number of queries: whatever is called above is at least the threshold less this
    /// much, and whatever is called below is at most the threshold and this much.
    fn accuracy(&self, confidence: f64) -> Accuracy {
        let half = 1.0 - (1.0 - confidence) / 2.0;
        let queries = self.on_query.law().all_within(half, self.queries.max(1) as usize);
        Accuracy { within: self.on_threshold.within(half) + queries, confidence }
    }
}

/// An above-threshold run that is paid for. It says "above" once; after that it says nothing.
///
/// It is neither `Clone` nor `Debug`: a copy could go on after the halt, and the noisy threshold is nobody's to see.
///
/// ```compile_fail,E0599
/// fn twice(watch: whit_core::mechanism::threshold::NoisyThreshold) {
///     let _ = watch.clone();
/// }
/// ```
///
/// Nor does it start again, or against another threshold:
///
/// ```compile_fail,E0451
/// use whit_core::mechanism::threshold::NoisyThreshold;
/// fn again(watch: NoisyThreshold) -> NoisyThreshold {
///     NoisyThreshold { halted: false, ..watch }
/// }
/// ```
pub struct NoisyThreshold {
    threshold: i128,
    noise: Additive,
    halted: bool,
}

impl crate::Persist for NoisyThreshold {
    /// Nothing: the noisy threshold is nobody's to see, and a run cannot be taken up again.
    fn to_bytes(&self) -> Vec<u8> {
        Vec::new()
    }
}

impl NoisyThreshold {
    /// Whether the next query, whose exact answer this is, is above the threshold; nothing once one has been.
    pub fn answer(&mut self, exact: i64, entropy: &mut dyn Secret) -> Result<Option<bool>, SanitiseError> {
        self.step(exact, entropy)
    }

    /// Whether this run is over.
    ///
    /// ```
    /// use whit_core::mechanism::{SanitiseError, threshold::NoisyThreshold};
    /// /// The first of the answers that is above, by its place among them.
    /// fn first_above(mut watch: NoisyThreshold, answers: &[i64]) -> Result<Option<usize>, SanitiseError> {
    ///     for (place, &exact) in answers.iter().enumerate() {
    ///         watch.answer(exact, &mut whit_noise::Os)?;
    ///         if watch.has_halted() {
    ///             return Ok(Some(place));
    ///         }
    ///     }
    ///     Ok(None)
    /// }
    /// ```
    pub fn has_halted(&self) -> bool {
        self.halted
    }

    fn step(&mut self, exact: i64, entropy: &mut dyn Entropy) -> Result<Option<bool>, SanitiseError> {
        if self.halted {
            return Ok(None);
        }
        self.halted = true; // and so it stays when the draw fails
        self.halted = self.noise.add_wide(exact, entropy)? >= self.threshold;
        Ok(Some(self.halted))
    }
}

/// Scales of real Laplace noise for a sparse-vector run.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Scales {
    /// On the threshold.
    pub threshold: f64,
    /// On each query.
    pub query: f64,
}

/// For `positives` answers "above", each from a run of its own with ε/positives and a fresh noisy threshold.
///
/// ```
/// use whit_core::mechanism::threshold::{Scales, restart_scales};
/// assert_eq!(restart_scales(1.0, 1.0, 5), Scales { threshold: 10.0, query: 20.0 });
/// ```
pub fn restart_scales(epsilon: f64, sensitivity: f64, positives: u64) -> Scales {
    let each = sensitivity * positives as f64 / epsilon;
    Scales { threshold: 2.0 * each, query: 4.0 * each }
}

/// As [`restart_scales`], and the scale with which the value behind each "above" may be released from an ε of its own.
///
/// ```
/// use whit_core::mechanism::threshold::{numeric_scales, restart_scales};
/// assert_eq!(numeric_scales(1.0, 0.5, 1.0, 5), (restart_scales(1.0, 1.0, 5), 10.0));
/// ```
pub fn numeric_scales(epsilon: f64, epsilon_answers: f64, sensitivity: f64, positives: u64) -> (Scales, f64) {
    (restart_scales(epsilon, sensitivity, positives), positives as f64 * sensitivity / epsilon_answers)
}

/// For `positives` answers "above" against one noisy threshold, drawn once; queries may move in different directions. ε is split
/// 1 : (2c)^(2/3) between threshold and queries, which makes the variance of their difference least. (Lyu, Su, Li 2017.)
/// Returns the two parts of ε as well.
///
/// ```
/// use whit_core::mechanism::threshold::{restart_scales, single_threshold_scales};
/// let (scales, on_threshold, on_queries) = single_threshold_scales(1.0, 1.0, 4);
/// assert!((on_threshold - 0.2).abs() < 1e-12 && (on_queries - 0.8).abs() < 1e-12);
/// assert!(scales.query < restart_scales(1.0, 1.0, 4).query);
/// ```
pub fn single_threshold_scales(epsilon: f64, sensitivity: f64, positives: u64) -> (Scales, f64, f64) {
    let c = positives as f64;
    let on_threshold = epsilon / (1.0 + (2.0 * c).powf(2.0 / 3.0));
    let on_queries = epsilon - on_threshold;
    let scales = Scales { threshold: sensitivity / on_threshold, query: 2.0 * c * sensitivity / on_queries };
    (scales, on_threshold, on_queries)
}

/// How far from the threshold real Laplace noise may lead one of `queries` answers astray, except with probability β:
/// 8Δ(ln k + ln(2/β))/ε (Dwork, Roth 2014, Theorem 3.24). This, not ε, is what grows with the number of queries.
///
/// ```
/// use whit_core::mechanism::threshold::accuracy_up;
/// assert!((accuracy_up(1.0, 1.0, 1_000, 0.05) - 84.773).abs() < 1e-3);
/// ```
pub fn accuracy_up(epsilon: f64, sensitivity: f64, queries: u64, beta: f64) -> f64 {
    8.0 * sensitivity * ((queries as f64).ln() + (2.0 / beta).ln()) / epsilon
}

#[cfg(test)]
mod tests {
    use super::super::trial::{agree, epsilon, fit, number, oracles, rung, tally, worst_loss};
    use super::*;
    use crate::release::{Charge, CommitError, Ledger, Refusal, Reservation, release};
    use crate::unit::Change;
    use whit_noise::{Os, Replay};

    fn above(k: i64, scale: f64) -> f64 {
        // P(Z ≥ k) for discrete Laplace noise.
        let a = (-1.0 / scale).exp();
        if k > 0 { a.powi(k as i32) / (1.0 + a) } else { 1.0 - a.powi(1 - k as i32) / (1.0 + a) }
    }

    /// The law of the number of the first query above (the last cell: none), by summing over the threshold's noise.
    fn law(queries: &[i64], threshold: i64, on_threshold: f64, on_query: f64) -> Vec<f64> {
        let mut law = vec![0.0; queries.len() + 1];
        let a = (-1.0 / on_threshold).exp();
        for rho in -400..=400_i64 {
            let mut alive =
                if on_threshold > 0.0 { (1.0 - a) / (1.0 + a) * a.powi(rho.abs() as i32) } else { f64::from(rho == 0) };
            for (i, query) in queries.iter().enumerate() {
                let yes = above(threshold + rho - query, on_query);
                law[i] += alive * yes;
                alive *= 1.0 - yes;
            }
            law[queries.len()] += alive;
        }
        law
    }

    fn shifted(queries: &[i64], pattern: usize) -> Vec<i64> {
        queries.iter().enumerate().map(|(i, q)| q + [[1, 1], [-1, -1], [1, -1], [-1, 0]][pattern][i % 2]).collect()
    }

    /// C5: the loss stays below ε for one query and for sixty.
    #[test]
    fn no_answer_loses_more_than_epsilon_however_many_queries() {
        for (text, wanted) in [("1", 1.0), ("1/2", 0.5)] {
            let mechanism = AboveThreshold::new(1, text.parse().unwrap(), 60).unwrap();
            let (rho, nu) = (mechanism.threshold_scale().to_f64(), mechanism.query_scale().to_f64());
            let claimed = epsilon(&mechanism.cost(&rung(Change::Replace, 1)));
            assert_eq!(claimed, wanted);
            for count in [1, 2, 5, 20, 60] {
                for start in [vec![0; count], vec![5; count], (0..count as i64).map(|i| i % 7).collect()] {
                    for pattern in 0..4 {
                        // The far tail of a sum that loses digits is no evidence, so tiny cells are left out.
                        let (p, q) = (law(&start, 5, rho, nu), law(&shifted(&start, pattern), 5, rho, nu));
                        let cells: Vec<(f64, f64)> = p.into_iter().zip(q).filter(|(a, b)| a.min(*b) > 1e-9).collect();
                        let (p, q): (Vec<f64>, Vec<f64>) = cells.into_iter().unzip();
                        let loss = worst_loss(&p, &q);
                        assert!(loss <= claimed + 1e-6, "{count} queries, pattern {pattern}: {loss}");
                    }
                }
            }
        }
    }

    /// The proof pays for two moves, one of the threshold and one of the query that is above: what the two noises cost, and no more.
    #[test]
    fn the_price_is_that_of_both_noises() {
        for (sensitivity, text) in [(1, "1"), (3, "1/2"), (7, "2"), (1 << 40, "1/4")] {
            let mechanism = AboveThreshold::new(sensitivity, text.parse().unwrap(), 60).unwrap();
            for (change, holds) in [(Change::AddRemove, 1), (Change::Replace, 1), (Change::Replace, 6)] {
                let rung = rung(change, holds);
                let part = |noise: &Additive| match noise.cost(&rung) {
                    Cost::Geometric { shift, scale } => shift as f64 / scale,
                    other => panic!("{other:?}"),
                };
                let both = part(&mechanism.on_threshold) + part(&mechanism.on_query);
                let claimed = epsilon(&mechanism.cost(&rung));
                assert!((both / claimed - 1.0).abs() < 1e-12, "{both} and {claimed}");
            }
        }
    }

    /// Without noise on the threshold every "below" costs anew.
    #[test]
    fn noise_on_the_queries_alone_is_not_enough() {
        let loss = |count: usize| {
            let (p, q) = (law(&vec![0; count], 1, 0.0, 4.0), law(&vec![1; count], 1, 0.0, 4.0));
            (p[count] / q[count]).ln() // nothing was above
        };
        assert!(loss(1) < 1.0 && loss(30) > 5.0, "{} and {}", loss(1), loss(30));
    }

    /// Chi-square on 100,000 runs: a correct one fails once in 10⁶ seeds; "greater" instead of "at least" is caught.
    #[test]
    fn answers_follow_the_law() {
        let queries = [0, 3, 1, 5, 2, 6];
        let mechanism = AboveThreshold::new(1, Ratio::ONE, 6).unwrap();
        let mut entropy = Replay::new(0xab07e);
        let counts = tally(7, 100_000, || {
            let mut watch = mechanism.sanitise(&4, &mut entropy).unwrap().open();
            queries.iter().position(|query| watch.step(*query, &mut entropy).unwrap() == Some(true)).unwrap_or(6)
        });
        assert!(fit(&counts, &law(&queries, 4, 2.0, 4.0)) > 1e-6, "{counts:?}");
        assert!(fit(&counts, &law(&queries, 5, 2.0, 4.0)) < 1e-6);
    }

    #[test]
    fn nothing_is_answered_after_the_halt() {
        let mechanism = AboveThreshold::new(1, Ratio::ONE, 6).unwrap();
        let mut watch = mechanism.sanitise(&0, &mut Replay::new(1)).unwrap().open();
        assert_eq!(watch.answer(-1_000_000, &mut Os), Ok(Some(false)));
        assert!(!watch.has_halted());
        assert_eq!(watch.answer(1_000_000, &mut Os), Ok(Some(true)));
        assert!(watch.has_halted());
        assert_eq!(watch.answer(1_000_000, &mut Os), Ok(None));
        let mut edge = mechanism.sanitise(&i64::MAX, &mut Os).unwrap().open();
        assert!(edge.answer(i64::MIN, &mut Os).is_ok(), "sums are made in 128 bits");
    }

    /// One threshold is sanitised for one charge, and what the ledger keeps of it makes no second run.
    #[test]
    fn every_run_is_a_release_of_its_own() {
        #[derive(Default)]
        struct Counting {
            charges: Vec<Charge>,
            kept: Vec<Vec<u8>>,
        }
        impl Ledger for Counting {
            fn reserve(&mut self, charge: &Charge) -> Result<Reservation, Refusal> {
                self.charges.push(charge.clone());
                Ok(Reservation::new(self.charges.len() as u64))
            }
            fn commit(&mut self, _: Reservation, value: &[u8]) -> Result<(), CommitError> {
                self.kept.push(value.to_vec());
                Ok(())
            }
        }
        let mechanism = AboveThreshold::new(1, Ratio::ONE, 6).unwrap();
        let (mut ledger, rungs) = (Counting::default(), [rung(Change::Replace, 1)]);
        for run in 1..=3 {
            let mut watch = release(&mechanism, |_| Ok(100), &rungs, &mut ledger, &mut Os).unwrap().value;
            assert_eq!(watch.answer(1_000_000, &mut Os), Ok(Some(true)));
            assert_eq!(watch.answer(1_000_000, &mut Os), Ok(None), "one charge, one answer above");
            assert_eq!(ledger.charges.len(), run);
        }
        let paid: Vec<f64> = ledger.charges.iter().map(|charge| epsilon(&charge[0].1)).collect();
        assert_eq!(paid, [1.0; 3]);
        assert!(ledger.kept.iter().all(Vec::is_empty), "the noisy threshold is nobody's to see");
    }

    #[test]
    fn stated_scales_and_accuracy_match_the_reference() {
        let read = |entry: &serde_json::Value, name: &str| number(&entry["inputs"][name]);
        let check = |entry: &serde_json::Value, scales: Scales| {
            agree(entry, scales.threshold, &entry["expected"]["threshold_scale"]);
            agree(entry, scales.query, &entry["expected"]["query_scale"]);
        };
        for entry in oracles("sparse_vector", "above_threshold_scales") {
            // On a lattice of hundredths every sensitivity here is whole.
            let steps = (read(&entry, "sensitivity") * 100.0).round() as u64;
            let epsilon = Ratio::from_f64_up(read(&entry, "eps")).unwrap();
            let own = AboveThreshold::new(steps, epsilon, 1).unwrap();
            let scaled = |scale: &Ratio| scale.to_f64() / 100.0;
            check(&entry, Scales { threshold: scaled(own.threshold_scale()), query: scaled(own.query_scale()) });
            check(&entry, restart_scales(read(&entry, "eps"), read(&entry, "sensitivity"), 1));
        }
        for entry in oracles("sparse_vector", "sparse_vector_restart_scales") {
            check(&entry, restart_scales(read(&entry, "eps"), read(&entry, "sensitivity"), read(&entry, "c") as u64));
        }
        for entry in oracles("sparse_vector", "numeric_sparse_restart_scales") {
            let (threshold, answers) = (read(&entry, "eps_threshold"), read(&entry, "eps_answers"));
            let (scales, answer) =
                numeric_scales(threshold, answers, read(&entry, "sensitivity"), read(&entry, "c") as u64);
            check(&entry, scales);
            agree(&entry, answer, &entry["expected"]["answer_scale"]);
        }
        for entry in oracles("sparse_vector", "sparse_vector_single_threshold_scales") {
            let (scales, first, second) =
                single_threshold_scales(read(&entry, "eps"), read(&entry, "sensitivity"), read(&entry, "c") as u64);
            check(&entry, scales);
            agree(&entry, first, &entry["expected"]["eps1"]);
            agree(&entry, second, &entry["expected"]["eps2"]);
        }
        for entry in oracles("sparse_vector", "above_threshold_accuracy") {
            let (queries, beta) = (read(&entry, "k_queries") as u64, read(&entry, "beta"));
            let bound = accuracy_up(read(&entry, "eps"), read(&entry, "sensitivity"), queries, beta);
            agree(&entry, bound, &entry["expected"]);
            let steps = (read(&entry, "sensitivity") * 100.0).round() as u64;
            let epsilon = Ratio::from_f64_up(read(&entry, "eps")).unwrap();
            let own = AboveThreshold::new(steps, epsilon, queries).unwrap().accuracy(1.0 - beta);
            assert!(own.within / 100.0 <= bound, "exact tails need no more than the theorem: {own}");
        }
    }

    /// The error is stated for all queries together, so it grows with their number while ε does not.
    #[test]
    fn accuracy_holds_over_all_queries() {
        let mechanism = AboveThreshold::new(1, Ratio::ONE, 50).unwrap();
        let within = mechanism.accuracy(0.9).within as i64;
        // All queries that far below: hardly any run says "above". One that far above: hardly any misses it.
        let quiet = law(&[-within - 1; 50], 0, 2.0, 4.0);
        assert!(quiet[50] >= 0.9);
        let loud = law(&[within + 1], 0, 2.0, 4.0);
        assert!(loud[0] >= 0.9);
        assert!(AboveThreshold::new(1, Ratio::ONE, 5000).unwrap().accuracy(0.9).within > within as f64);
        assert!(AboveThreshold::new(0, Ratio::ONE, 5).is_err());
        assert!(AboveThreshold::new(1, Ratio::ZERO, 5).is_err());
    }
}
