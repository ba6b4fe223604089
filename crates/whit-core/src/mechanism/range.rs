//! A range for values that nobody declared one for: where most of them lie, from noisy counts over public bins.

use super::quantile::{blocks, deviations};
use super::{BadParameter, SanitiseError};
use crate::bound::{Bound, BoundError};
use crate::release::CONFIDENCE;

/// Public bins whose edges are signed powers of two, finer towards 0.
///
/// From −2^(highest + 1) through −2^lowest to 2^lowest and on to 2^(highest + 1); the middle bin holds all that is
/// nearer to 0. They are fixed before anybody sees the data.
///
/// # Neighbours
/// Counts by bin of data sets that differ in one unit, each unit with at most `rows` values in each of at most `groups`
/// groups (a set of bins a group).
///
/// # Claim
/// What a unit adds to all counts is a non-negative vector of length at most `rows · √groups`, which is what
/// [`Bins::bound`] says; with it, releasing the counts costs what `GaussianVector` claims, and choosing a range from
/// them costs nothing more.
///
/// # Why
/// Each value falls into one bin. So in one group a unit's counts are not negative and add up to at most `rows`, and
/// their length is at most their sum.
///
/// # Tried by
/// `no_unit_adds_more_than_the_bound_says_to_the_bins`, `the_range_covers_what_it_says_at_any_noise`.
///
/// ```
/// use whit_core::mechanism::range::Bins;
/// let bins = Bins::default();
/// let mut counts = vec![0; bins.len()];
/// for seconds in [12.0, 30.0, 45.0, 59.0, f64::NAN] {
///     if let Some(bin) = bins.index(seconds) {
///         counts[bin] += 1;
///     }
/// }
/// let found = bins.choose(&counts, 0.0, 1.0)?.expect("without noise everything is seen");
/// assert_eq!((found.low, found.high), (8.0, 64.0));
/// # Ok::<(), whit_core::mechanism::SanitiseError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bins {
    lowest: i32,
    highest: i32,
}

/// How often an empty bin may be taken for a full one, all bins together.
const FALSE_ALARM: f64 = 1e-6;

impl Default for Bins {
    /// Exponents from −40 to 63: from a million-millionth to what 64 bits hold.
    fn default() -> Self {
        Self { lowest: -40, highest: 63 }
    }
}

/// A range that was found, and what it leaves out.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Found {
    /// Its lower end.
    pub low: f64,
    /// Its upper end.
    pub high: f64,
    /// The share of all values that lies outside, as far as can be seen: those that clamping to the range would move.
    pub outside: f64,
    /// With 95 % confidence, no larger share lies outside.
    pub outside_at_most: f64,
}

impl Bins {
    /// Bins from 2^`lowest` to 2^(`highest` + 1), on both sides of 0.
    pub fn new(lowest: i32, highest: i32) -> Result<Self, BadParameter> {
        if lowest < -1022 || highest > 1022 || lowest > highest {
            let range = "a lowest and a highest exponent between −1022 and 1022, the lowest first";
            return Err(BadParameter::range("exponents", f64::from(lowest), range));
        }
        Ok(Self { lowest, highest })
    }

    /// How many bins there are on one side of 0.
    fn side(self) -> usize {
        (self.highest - self.lowest) as usize + 1
    }

    /// How many bins there are.
    #[expect(clippy::len_without_is_empty, reason = "there is always the bin around 0")]
    pub fn len(&self) -> usize {
        2 * self.side() + 1
    }

    /// The bin of a value. What is farther out than the last edge, infinities too, is in the outermost bin; what is
    /// not a number is in none.
    pub fn index(&self, value: f64) -> Option<usize> {
        if value.is_nan() {
            return None;
        }
        let side = self.side();
        if value.abs() < libm::ldexp(1.0, self.lowest) {
            return Some(side);
        }
        let exponent = if value.is_infinite() { self.highest } else { libm::ilogb(value).min(self.highest) };
        let steps = (exponent - self.lowest) as usize + 1;
        Some(if value > 0.0 { side + steps } else { side - steps })
    }

    /// The edges of a bin, the smaller first.
    ///
    /// # Panics
    /// When there is no such bin.
    pub fn edges(&self, bin: usize) -> (f64, f64) {
        assert!(bin < self.len(), "there are {} bins, and {bin} is not one of them", self.len());
        let edge = |steps: usize| libm::ldexp(1.0, self.lowest + steps as i32);
        let side = self.side();
        match bin.abs_diff(side) {
            0 => (-edge(0), edge(0)),
            steps if bin > side => (edge(steps - 1), edge(steps)),
            steps => (-edge(steps), -edge(steps - 1)),
        }
    }

    /// What one unit adds to the counts of all groups, if it has at most `rows` values in each of at most `groups`
    /// groups.
    pub fn bound(&self, groups: u64, rows: u64) -> Result<Bound, BoundError> {
        blocks(groups, 1, rows)
    }

    /// The smallest run of bins that leaves out at most a share 1 − `coverage` of the values that can be seen; nothing
    /// when none can, because there are too few for the noise.
    ///
    /// A bin is seen when its noisy count is higher than noise of standard deviation `sigma` (0 for none) makes any
    /// empty bin's, but for one release in a million: a range that reaches out to an empty bin is worse than useless. Values in bins that are not seen are the price: [`Found::outside`] tells
    /// how many those may be.
    pub fn choose(&self, noisy: &[i64], sigma: f64, coverage: f64) -> Result<Option<Found>, SanitiseError> {
        if noisy.len() != self.len() {
            return Err(SanitiseError::Length { given: noisy.len(), expected: self.len() });
        }
        // Rounding adds the variance of a uniform number between −1/2 and 1/2.
        let deviation = if sigma > 0.0 { (sigma * sigma + 1.0 / 12.0).sqrt() } else { 0.0 };
        let least = deviation * deviations(FALSE_ALARM / noisy.len() as f64);
        let seen: Vec<f64> =
            noisy.iter().map(|&count| count as f64).map(|count| if count > least { count } else { 0.0 }).collect();
        let total: f64 = seen.iter().sum();
        if total <= 0.0 {
            return Ok(None);
        }
        let wanted = total * if coverage.is_nan() { 1.0 } else { coverage.clamp(0.0, 1.0) } * (1.0 - 1e-12);
        let Some((first, last)) = shortest(&seen, wanted) else { return Ok(None) };
        let within = |(bin, _): &(usize, f64)| (first..=last).contains(bin);
        let counts = || noisy.iter().map(|&count| count as f64).enumerate();
        let inside: f64 = counts().filter(within).map(|(_, count)| count).sum();
        let outside: f64 = counts().filter(|bin| !within(bin)).map(|(_, count)| count).sum();
        let kept = (last - first + 1) as f64;
        let z = deviations((1.0 - CONFIDENCE) / 2.0); // half for what is inside, half for what is outside
        let most = (outside + z * deviation * (noisy.len() as f64 - kept).sqrt()).max(0.0);
        let fewest = (inside - z * deviation * kept.sqrt()).max(0.0);
        let share = |outside: f64, inside: f64| if outside > 0.0 { outside / (outside + inside) } else { 0.0 };
        Ok(Some(Found {
            low: self.edges(first).0,
            high: self.edges(last).1,
            outside: share(outside, inside.max(0.0)),
            outside_at_most: share(most, fewest),
        }))
    }
}

/// The shortest run that adds up to `wanted`; among equally short ones, the one that adds up to most.
fn shortest(counts: &[f64], wanted: f64) -> Option<(usize, usize)> {
    let (mut best, mut start, mut sum): (Option<(usize, usize, f64)>, usize, f64) = (None, 0, 0.0);
    for (end, count) in counts.iter().enumerate() {
        sum += count;
        while start < end && sum - counts[start] >= wanted {
            sum -= counts[start];
            start += 1;
        }
        let better = best.is_none_or(|(first, last, most)| {
            end - start < last - first || (end - start == last - first && sum > most)
        });
        if sum >= wanted && better {
            best = Some((start, end, sum));
        }
    }
    best.map(|(first, last, _)| (first, last))
}

#[cfg(test)]
mod tests {
    use super::super::Mechanism;
    use super::super::gaussian::GaussianVector;
    use super::super::trial::within_chance;
    use super::*;
    use crate::unit::Change;
    use whit_noise::{DiscreteGaussian, Entropy, Ratio, Replay, below};

    #[test]
    fn bins_lie_side_by_side_and_hold_their_values() {
        for bins in [Bins::default(), Bins::new(-3, 4).unwrap(), Bins::new(0, 0).unwrap()] {
            for bin in 1..bins.len() {
                assert_eq!(bins.edges(bin - 1).1, bins.edges(bin).0);
            }
            for bin in 0..bins.len() {
                let (low, high) = bins.edges(bin);
                assert_eq!(bins.index(f64::midpoint(low, high)), Some(bin));
                // An edge belongs to the bin that is farther out, on either side.
                assert_eq!(
                    bins.index(if high > 0.0 && low >= 0.0 { low } else { high }),
                    Some(bin).filter(|_| low >= 0.0 || high <= 0.0).or(bins.index(high))
                );
                assert_eq!(bins.index(-f64::midpoint(low, high)), Some(bins.len() - 1 - bin));
            }
            let last = bins.len() - 1;
            assert_eq!(bins.index(f64::INFINITY), Some(last));
            assert_eq!(bins.index(f64::MAX), Some(last));
            assert_eq!(bins.index(f64::NEG_INFINITY), Some(0));
            assert_eq!(
                (bins.index(0.0), bins.index(-0.0), bins.index(5e-324)),
                (Some(last / 2), Some(last / 2), Some(last / 2))
            );
            assert_eq!(bins.index(f64::NAN), None);
        }
        let bins = Bins::default();
        assert_eq!(bins.len(), 209);
        assert_eq!((bins.edges(0).0, bins.edges(208).1), (-(2f64.powi(64)), 2f64.powi(64)));
        for (value, edges) in [(1.0, (1.0, 2.0)), (1.999, (1.0, 2.0)), (-1.0, (-2.0, -1.0)), (600.0, (512.0, 1024.0))] {
            assert_eq!(bins.edges(bins.index(value).unwrap()), edges);
        }
        assert!(Bins::new(3, 2).is_err() && Bins::new(-2000, 0).is_err() && Bins::new(0, 1023).is_err());
    }

    /// A real near enough to a standard normal one for data: a discrete Gaussian over its own deviation.
    fn normal(entropy: &mut dyn Entropy) -> f64 {
        DiscreteGaussian::new(Ratio::from(1_000_000)).unwrap().draw(entropy).unwrap() as f64 / 1000.0
    }

    /// What people have in tables: by name, n values.
    fn data(kind: &str, n: usize, entropy: &mut dyn Entropy) -> Vec<f64> {
        (0..n)
            .map(|_| match kind {
                "normal" => 40.0 + 12.0 * normal(entropy),
                "around zero" => 3.0 * normal(entropy),
                "lognormal" => (2.0 + 1.5 * normal(entropy)).exp(),
                "constant" => 5.0,
                "zero" => 0.0,
                "heavy tail" => 1.0 / (1.0 + below(1 << 30, entropy) as f64) * 2f64.powi(30),
                "losses" => -(normal(entropy) * 0.4).exp() * 1000.0,
                _ => panic!("{kind}"),
            })
            .collect()
    }

    const KINDS: [&str; 7] = ["normal", "around zero", "lognormal", "constant", "zero", "heavy tail", "losses"];

    fn counts(bins: Bins, values: &[f64]) -> Vec<i64> {
        let mut counts = vec![0; bins.len()];
        values.iter().filter_map(|value| bins.index(*value)).for_each(|bin| counts[bin] += 1);
        counts
    }

    fn noisy(bins: Bins, exact: &[i64], sigma: &str, entropy: &mut dyn Entropy) -> Vec<i64> {
        let mechanism = GaussianVector::rounded(bins.bound(1, 1).unwrap(), bins.len(), sigma.parse().unwrap()).unwrap();
        mechanism.sanitise(exact, entropy).unwrap().open()
    }

    /// 200 noisy counts of 20,000 values a case. A bin counts as seen at about 6 σ, so up to that much of each bin
    /// beyond the run may be lost on either side.
    #[test]
    fn the_range_covers_what_it_says_at_any_noise() {
        let (bins, n, trials) = (Bins::default(), 20_000, 200);
        let mut entropy = Replay::new(0x2a9e);
        for kind in KINDS {
            let values = data(kind, n, &mut entropy);
            let exact = counts(bins, &values);
            for (sigma, coverage) in [("1", 1.0), ("5", 0.99), ("40", 0.95), ("150", 0.9)] {
                let spread: f64 = sigma.parse().unwrap();
                let (mut wide, mut stated_too_little) = (0, 0);
                for _ in 0..trials {
                    let found = bins.choose(&noisy(bins, &exact, sigma, &mut entropy), spread, coverage).unwrap();
                    let Found { low, high, outside, outside_at_most } = found.expect("20,000 values are seen");
                    let inside = values.iter().filter(|value| (low..=high).contains(*value)).count();
                    let lost = 1.0 - inside as f64 / n as f64;
                    let hidden: f64 =
                        exact.iter().map(|count| (*count as f64).min(8.0 * spread)).sum::<f64>() / n as f64;
                    assert!(lost <= 1.0 - coverage + hidden, "{kind}, σ {sigma}: {lost} lost, {hidden} may hide");
                    // No run of occupied bins is wider than all of them.
                    let occupied: Vec<usize> = (0..bins.len()).filter(|bin| exact[*bin] > 0).collect();
                    let (first, last) = (bins.edges(occupied[0]).0, bins.edges(occupied[occupied.len() - 1]).1);
                    wide += u64::from(low < first || high > last);
                    stated_too_little += u64::from(outside_at_most < lost);
                    assert!(outside <= outside_at_most && (0.0..=1.0).contains(&outside_at_most));
                }
                assert!(within_chance(wide, trials, 0.05), "{kind}, σ {sigma}: {wide} ranges beyond the data");
                assert!(within_chance(stated_too_little, trials, 0.05), "{kind}, σ {sigma}: {stated_too_little}");
            }
        }
    }

    #[test]
    fn without_noise_the_run_is_the_shortest() {
        let bins = Bins::default();
        let mut entropy = Replay::new(3);
        for kind in KINDS {
            let exact = counts(bins, &data(kind, 3000, &mut entropy));
            for coverage in [0.5, 0.9, 0.99, 1.0] {
                let found = bins.choose(&exact, 0.0, coverage).unwrap().unwrap();
                let bin_at = |edge: f64, up: bool| {
                    (0..bins.len())
                        .find(|bin| if up { bins.edges(*bin).1 } else { bins.edges(*bin).0 } == edge)
                        .unwrap()
                };
                let (first, last) = (bin_at(found.low, false), bin_at(found.high, true));
                let mass = |first: usize, last: usize| exact[first..=last].iter().sum::<i64>() as f64;
                assert!(mass(first, last) >= coverage * 3000.0 - 1e-6);
                let length = last - first;
                assert!(
                    length == 0
                        || (0..bins.len() - length).all(|start| mass(start, start + length - 1) < coverage * 3000.0),
                    "{kind}: a shorter run would do"
                );
                assert!((found.outside - (1.0 - mass(first, last) / 3000.0)).abs() < 1e-12);
            }
        }
        let five = bins.choose(&counts(bins, &[5.0; 10]), 0.0, 1.0).unwrap().unwrap();
        assert_eq!((five.low, five.high, five.outside), (4.0, 8.0, 0.0));
    }

    /// 1000 noisy counts of no data: something is seen in one of a thousand such tests. If the noise were stated as a third of what
    /// it is, it would be seen nearly always.
    #[test]
    fn no_data_gives_no_range() {
        let bins = Bins::default();
        assert_eq!(bins.choose(&vec![0; bins.len()], 0.0, 0.99), Ok(None));
        let mut entropy = Replay::new(8);
        let (mut seen, mut broken) = (0, 0);
        for _ in 0..1000 {
            let released = noisy(bins, &vec![0; bins.len()], "6", &mut entropy);
            seen += u64::from(bins.choose(&released, 6.0, 0.99).unwrap().is_some());
            broken += u64::from(bins.choose(&released, 2.0, 0.99).unwrap().is_some());
        }
        assert_eq!(seen, 0);
        assert!(broken > 900, "{broken}");
        let few = noisy(bins, &counts(bins, &[7.0; 5]), "40", &mut entropy);
        assert_eq!(bins.choose(&few, 40.0, 0.99), Ok(None), "five values cannot be distinguished from noise of 40");
        assert!(bins.choose(&[0; 3], 1.0, 0.9).is_err());
    }

    #[test]
    fn no_unit_adds_more_than_the_bound_says_to_the_bins() {
        let bins = Bins::new(0, 0).unwrap(); // three bins
        for (all_groups, groups, rows) in [(1, 1, 3_i64), (2, 1, 2), (3, 2, 1), (2, 2, 2)] {
            let mut units: Vec<Vec<i64>> = vec![vec![]];
            for _ in 0..all_groups * bins.len() {
                units = units.iter().flat_map(|unit| (0..=rows).map(|x| [unit.as_slice(), &[x]].concat())).collect();
            }
            let allowed = |unit: &Vec<i64>| {
                let sums: Vec<i64> = unit.chunks(3).map(|group| group.iter().sum()).collect();
                sums.iter().all(|sum| *sum <= rows) && sums.iter().filter(|sum| **sum > 0).count() <= groups
            };
            units.retain(allowed);
            let apart = |a: &[i64], b: &[i64]| a.iter().zip(b).map(|(x, y)| ((x - y) * (x - y)) as f64).sum::<f64>();
            let nothing = vec![0; all_groups * 3];
            let added = units.iter().map(|unit| apart(unit, &nothing)).fold(0.0, f64::max);
            let replaced = units.iter().flat_map(|a| units.iter().map(|b| apart(a, b))).fold(0.0, f64::max);
            for (change, furthest) in [(Change::AddRemove, added), (Change::Replace, replaced)] {
                let stated = bins.bound(groups as u64, rows as u64).unwrap().sensitivity(change).l2;
                assert!(
                    stated * stated >= furthest * (1.0 - 1e-15),
                    "{groups} groups of {rows}: {stated}² < {furthest}"
                );
                assert!(
                    stated * stated <= furthest * (1.0 + 1e-12),
                    "{groups} groups of {rows}: {furthest} is attained"
                );
            }
        }
    }
}
