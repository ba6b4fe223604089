//! Private group keys: which of the keys that occur may be named ("partition selection").
//!
//! A list of keys gives away that somebody has each of them, so a key shows only when enough units have it.

use super::additive::{Additive, Coordinates, Law, Reach};
use super::{Accuracy, BadParameter, Mechanism, SanitiseError};
use crate::bound::{Bound, Sensitivity, Support};
use crate::cost::Cost;
use crate::loss::{Delta, Epsilon};
use crate::release::Sealed;
use crate::unit::{Change, Rung};
use whit_noise::{Entropy, Ratio};

/// Probabilities are whole multiples of 2^-120, so that 120 fair bits draw them exactly.
const PLACES: u32 = 120;
const ONE: u128 = 1 << PLACES;
/// The most counts that the optimal rule keeps a probability for: 32 MiB.
const LONGEST: usize = 1 << 21;
/// What rounding in exp, expm1 and erfc (each good to a unit in the last place) and in their arguments may come to.
const HAIR: f64 = 1e-11;

/// What one unit of a rung moves: at most so many keys, the count of each by at most so much.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Moved {
    /// The most keys whose count changes. A unit that is replaced leaves its old keys and joins others, so it moves
    /// twice as many as it has.
    pub keys: u64,
    /// The most that one key's count changes by.
    pub by: u64,
}

/// Shows a key with a probability that depends on how many things have it, and never shows one that nothing has.
///
/// # Neighbours
/// Counts of things (users, or units) by key, of data sets that differ in one unit of the rung: at most `keys` keys
/// have another count, each by at most `by`. A key that does not occur has the count 0.
///
/// # Claim
/// About the set of the keys that show, whatever keys there are.
/// Optimal: for one key and counts that differ by 1, (ε, δ); so `keys` times (by·ε, δ·(e^(by·ε) − 1)/(e^ε − 1)).
/// Gaussian: one run of Gaussian noise of σ/(by·√keys), and apart from it (0, δ) with
/// `δ = keys · P[by + round(N) ≥ threshold]`.
///
/// # Why
/// Keys are shown or not independently of each other, so only those whose counts differ matter, and they compose.
///
/// Optimal: the probability `p(n)` of showing a key that n things have is the largest with `p(0) = 0`,
/// `p(n) ≤ e^ε·p(n−1) + δ` and `1 − p(n−1) ≤ e^ε·(1 − p(n)) + δ` (Desfontaines, Voss, Gipson, Mandayam 2022); since p
/// rises, these two are all that (ε, δ) asks of a coin. Here p is rounded down to 2^-120 and e^ε to 64 bits, both
/// inequalities are checked in integers as the table is made, and the coin is drawn exactly. For `by` steps they
/// chain: `P₀ ≤ e^ε·P₁ + δ ≤ e^ε·(e^ε·P₂ + δ) + δ ≤ …`
///
/// Gaussian: a key that both data sets have is post-processing of its count plus Gaussian noise, and the moved counts
/// are at most by·√keys apart in ℓ2. A key that only one of them has shows there with a chance of at most
/// `P[by + round(N) ≥ threshold]`, and never in the other: the two laws are that far apart in total variation,
/// whichever direction one looks in. There are at most `keys` of both sorts together.
///
/// # Tried by
/// `both_inequalities_hold_exactly_at_every_count` (big integers), `the_rule_is_the_papers_closed_form`,
/// `keys_show_as_often_as_stated`, `a_group_of_steps_loses_what_is_charged`,
/// `no_pair_of_data_sets_tells_more_than_the_cost_says`.
///
/// ```
/// use whit_core::mechanism::{Mechanism, keys::{Keys, Moved}};
/// use whit_core::{Change, Delta, Epsilon, Rung, Unit};
/// let user = Rung { unit: Unit::user("id", Change::AddRemove), holds: 1, disjoint: false, slices: None };
/// let keys = Keys::optimal(Epsilon::new(1.0)?, Delta::new(1e-6)?, vec![(user, Moved { keys: 1, by: 1 })])?;
/// assert_eq!((keys.chance(0), keys.half()), (0.0, 14));
/// assert!(keys.chance(1) <= 1e-6 && keys.chance(28) == 1.0);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone)]
pub struct Keys {
    law: KeysLaw,
    moved: Vec<(Rung, Moved)>,
}

#[derive(Debug, Clone)]
enum KeysLaw {
    Optimal {
        epsilon: Epsilon,
        delta: Delta,
        /// By count, the probability of showing in units of 2^-120; beyond the end it is 1.
        table: Vec<u128>,
    },
    Gaussian {
        noise: Box<Additive>,
        sigma: Ratio,
        threshold: i64,
    },
}

impl Keys {
    /// The rule that shows most among all that are (ε, δ) for a count that changes by one.
    pub fn optimal(epsilon: Epsilon, delta: Delta, moved: Vec<(Rung, Moved)>) -> Result<Self, BadParameter> {
        protected(&moved)?;
        Ok(Self { law: KeysLaw::Optimal { epsilon, delta, table: table(epsilon, delta)? }, moved })
    }

    /// Rounded Gaussian noise of this standard deviation on each count; a key shows where that reaches the threshold.
    pub fn gaussian(sigma: Ratio, threshold: i64, moved: Vec<(Rung, Moved)>) -> Result<Self, BadParameter> {
        protected(&moved)?;
        Ok(Self { law: KeysLaw::Gaussian { noise: Box::new(on_counts(sigma, &moved)?), sigma, threshold }, moved })
    }

    /// The same with the lowest threshold at which a unit of the first rung pays at most δ for keys that it alone has.
    pub fn gaussian_for(sigma: Ratio, delta: Delta, moved: Vec<(Rung, Moved)>) -> Result<Self, BadParameter> {
        let first = protected(&moved)?;
        let noise = Box::new(on_counts(sigma, &moved)?);
        let fits = |threshold: i64| alone_up(&noise, threshold, first) <= delta.get();
        let bad = |range| BadParameter::range("δ", delta.get(), range);
        if delta.get() >= 1.0 {
            return Err(bad("below 1, or every key would show"));
        }
        let mut high = 1_i64;
        while !fits(high) {
            high = high.checked_mul(2).ok_or_else(|| bad("large enough for a threshold that fits into 64 bits"))?;
        }
        let mut low = 0; // does not fit, or is lower than any threshold needs to be
        while high - low > 1 {
            let middle = low + (high - low) / 2;
            if fits(middle) { high = middle } else { low = middle }
        }
        Ok(Self { law: KeysLaw::Gaussian { noise, sigma, threshold: high }, moved })
    }

    /// The chance that a key shows which so many things have.
    pub fn chance(&self, count: u64) -> f64 {
        match &self.law {
            KeysLaw::Optimal { .. } => self.parts(count).unwrap_or(0) as f64 / ONE as f64,
            KeysLaw::Gaussian { .. } if count == 0 => 0.0,
            KeysLaw::Gaussian { noise, threshold, .. } => reaches(noise, *threshold, count),
        }
    }

    /// Of 2^120 equally likely draws, those that show a key which so many things have: [`chance`](Self::chance)
    /// without rounding, for audits. Nothing for the Gaussian law.
    pub fn parts(&self, count: u64) -> Option<u128> {
        match &self.law {
            KeysLaw::Optimal { table, .. } => {
                Some(usize::try_from(count).ok().and_then(|count| table.get(count).copied()).unwrap_or(ONE))
            }
            KeysLaw::Gaussian { .. } => None,
        }
    }

    /// The least count at which a key shows at least every other time.
    pub fn half(&self) -> u64 {
        match &self.law {
            KeysLaw::Optimal { table, .. } => table.partition_point(|parts| *parts < ONE / 2) as u64,
            KeysLaw::Gaussian { threshold, .. } => (*threshold).max(1) as u64,
        }
    }

    /// The threshold of the Gaussian law.
    pub fn threshold(&self) -> Option<i64> {
        match &self.law {
            KeysLaw::Optimal { .. } => None,
            KeysLaw::Gaussian { threshold, .. } => Some(*threshold),
        }
    }

    /// The standard deviation of the Gaussian law.
    pub fn sigma(&self) -> Option<&Ratio> {
        match &self.law {
            KeysLaw::Optimal { .. } => None,
            KeysLaw::Gaussian { sigma, .. } => Some(sigma),
        }
    }

    /// What a unit of each rung moves, as it was said when this was made.
    pub fn moved(&self) -> &[(Rung, Moved)] {
        &self.moved
    }

    /// The keys that show, in the order in which they were given. That order must be the keys' own (sorted, say),
    /// since one that came from the data would leave with them.
    pub fn keep<K>(&self, counted: Vec<(K, u64)>, entropy: &mut dyn Entropy) -> Result<Sealed<Vec<K>>, SanitiseError> {
        let counts: Vec<u64> = counted.iter().map(|(_, count)| *count).collect();
        let shown = self.draw(&counts, entropy)?;
        let kept = counted.into_iter().zip(shown).filter(|(_, shows)| *shows);
        Ok(Sealed::new(kept.map(|((key, _), _)| key).collect()))
    }

    /// Whether each of the keys shows, unsealed: for a mechanism that this is a part of, and that seals the whole. It
    /// must seal the names of the keys that show, or what it releases about these, and nothing of the others.
    pub fn draw(&self, counts: &[u64], entropy: &mut dyn Entropy) -> Result<Vec<bool>, SanitiseError> {
        match &self.law {
            KeysLaw::Optimal { table, .. } => {
                let mut words = vec![0; 2 * counts.len()];
                entropy.fill(&mut words);
                let draws = words.chunks_exact(2).map(|pair| (u128::from(pair[0]) << 64 | u128::from(pair[1])) >> 8);
                let parts = |count: u64| table.get(usize::try_from(count).unwrap_or(usize::MAX)).map_or(ONE, |p| *p);
                Ok(counts.iter().zip(draws).map(|(count, draw)| draw < parts(*count)).collect())
            }
            KeysLaw::Gaussian { noise, threshold, .. } => {
                let mut noisy = vec![0; counts.len()];
                noise.fill(&mut noisy, entropy)?;
                let reaches = |count: u64, noise: i64| i128::from(count) + i128::from(noise) >= i128::from(*threshold);
                Ok(counts.iter().zip(noisy).map(|(&count, noise)| count > 0 && reaches(count, noise)).collect())
            }
        }
    }
}

impl Mechanism for Keys {
    /// For each key that occurs, how many things have it.
    type Exact = [u64];
    /// For each of them, whether it shows. How many flags there are is as private as the keys: only the names of
    /// those that show may leave, which is what [`Keys::keep`] makes of them.
    type Noisy = Vec<bool>;

    fn cost(&self, rung: &Rung) -> Cost {
        let Some((_, moved)) = self.moved.iter().find(|(known, _)| known == rung) else {
            return Cost::Everything; // nobody said what it moves
        };
        if moved.keys == 0 || moved.by == 0 {
            return Cost::Nothing;
        }
        match &self.law {
            KeysLaw::Optimal { epsilon, delta, .. } => {
                steps_up(*epsilon, *delta, moved.by).map_or(Cost::Everything, |cost| cost.repeat(moved.keys))
            }
            KeysLaw::Gaussian { noise, threshold, .. } => {
                let counts = noise.cost(rung);
                match Delta::new(alone_up(noise, *threshold, *moved)) {
                    Ok(delta) if delta.get() < 1.0 && counts != Cost::Everything => {
                        Cost::Series(vec![counts, Cost::Approximate { epsilon: Epsilon::ZERO, delta }])
                    }
                    _ => Cost::Everything,
                }
            }
        }
    }

    fn sanitise(&self, exact: &[u64], entropy: &mut dyn Entropy) -> Result<Sealed<Vec<bool>>, SanitiseError> {
        self.draw(exact, entropy).map(Sealed::new)
    }

    /// A key that this many things have shows with at least this probability.
    fn accuracy(&self, confidence: f64) -> Accuracy {
        Accuracy::of_tail(confidence, |count| 1.0 - self.chance(count))
    }
}

/// What the first rung, which is the protected one, moves.
fn protected(moved: &[(Rung, Moved)]) -> Result<Moved, BadParameter> {
    let first = moved.first().map(|(_, moved)| *moved);
    first.ok_or_else(|| BadParameter::range("number of rungs", 0.0, "at least 1, the protected one first"))
}

/// The noise of the Gaussian law, on as many counts as there happen to be.
fn on_counts(sigma: Ratio, moved: &[(Rung, Moved)]) -> Result<Additive, BadParameter> {
    let known =
        |(rung, moved): &(Rung, Moved)| (rung.clone(), Sensitivity { l1: f64::INFINITY, l2: distance_up(*moved) });
    let reach = Reach::known(moved.iter().map(known).collect());
    Ok(Additive::new(Law::rounded(sigma)?, reach, Coordinates::Any))
}

/// by·√keys, rounded up.
fn distance_up(moved: Moved) -> f64 {
    let Ok(high) = i64::try_from(moved.by) else { return f64::INFINITY };
    let counts = Bound::Coordinates { groups: moved.keys, low: 0, high, support: Support::NonNegative };
    counts.sensitivity(Change::AddRemove).l2
}

/// P[count + round(N) ≥ threshold]: a real that is at least half a step below the threshold rounds up to it.
fn reaches(noise: &Additive, threshold: i64, count: u64) -> f64 {
    let missing = (i128::from(threshold) - i128::from(count)) as f64 - 0.5;
    libm::erfc(missing / (noise.deviation() * std::f64::consts::SQRT_2)) / 2.0
}

/// The chance that one of the keys that only one of two neighbours has shows, rounded up.
fn alone_up(noise: &Additive, threshold: i64, moved: Moved) -> f64 {
    // Below 1e-300 erfc has few digits left.
    let one = reaches(noise, threshold, moved.by) * (1.0 + HAIR) + 1e-300;
    (one * (moved.keys as f64).next_up()).next_up()
}

/// (kε, δ·(e^(kε) − 1)/(e^ε − 1)), rounded up; nothing where that protects nothing.
fn steps_up(epsilon: Epsilon, delta: Delta, steps: u64) -> Option<Cost> {
    let all = epsilon.times(steps);
    let grown = if steps == 1 {
        delta.get()
    } else if epsilon == Epsilon::ZERO {
        delta.times(steps).get()
    } else {
        delta.get() * (libm::expm1(all.get()) / libm::expm1(epsilon.get())) * (1.0 + HAIR)
    };
    let delta = Delta::new(grown).ok().filter(|delta| delta.get() < 1.0)?;
    all.get().is_finite().then_some(Cost::Approximate { epsilon: all, delta })
}

/// A lower bound on e^ε, `mantissa / 2^shift`, and an upper bound on what one over it is.
struct GrowthBound {
    /// Between 2^63 and 2^64.
    mantissa: u128,
    /// At most 63.
    shift: u32,
    /// Rounded up: inverse / 2^(127 − shift) ≥ 2^shift / mantissa.
    inverse: u128,
}

impl GrowthBound {
    /// The series Σ xⁿ/n! at x = ε/2^k, cut short, and squared k times; every step rounds down, and every term is
    /// positive.
    fn exp_down(epsilon: f64) -> Self {
        const POINT: u32 = 63;
        let epsilon = epsilon.min(43.0); // e^43 is the largest that fits, and a bound for what is larger
        let squarings = if epsilon > 0.0 { (epsilon.log2().ceil() as i32 + 10).clamp(0, 16) as u32 } else { 0 };
        let x = libm::ldexp(epsilon, POINT as i32 - squarings as i32) as u128; // times a power of two, then cut
        let (mut term, mut mantissa) = (1_u128 << POINT, 1_u128 << POINT);
        for n in 1.. {
            term = ((term * x) >> POINT) / n;
            mantissa += term;
            if term == 0 {
                break;
            }
        }
        let mut exponent = 0;
        for _ in 0..squarings {
            let square = mantissa * mantissa;
            let carry = u32::from(square >> 127 == 1);
            mantissa = square >> (POINT + carry);
            exponent = 2 * exponent + carry;
        }
        Self { mantissa, shift: POINT - exponent, inverse: (1_u128 << 127).div_ceil(mantissa) }
    }

    /// At most `parts`·e^ε, and at most 1.
    fn times(&self, parts: u128) -> u128 {
        product(parts, self.mantissa, self.shift).0
    }

    /// Not below `parts`·e^-ε, in the sense that [`times`](Self::times) leads back to `parts` or more.
    fn over(&self, parts: u128) -> u128 {
        let (whole, cut) = product(parts, self.inverse, 127 - self.shift);
        whole + u128::from(cut)
    }
}

/// ⌊parts · factor / 2^shift⌋ but at most 1, and whether anything was cut off; parts ≤ 1 and factor ≤ 2^64.
fn product(parts: u128, factor: u128, shift: u32) -> (u128, bool) {
    const WORD: u128 = (1 << 64) - 1;
    let low = (parts & WORD) * factor;
    let (high, low) = ((parts >> 64) * factor + (low >> 64), low & WORD);
    if shift >= 64 {
        let drop = shift - 64;
        return (high >> drop, low != 0 || high & ((1 << drop) - 1) != 0);
    }
    if high >> (PLACES - 64 + shift) != 0 {
        return (ONE, false);
    }
    ((high << (64 - shift)) | (low >> shift), low & ((1 << shift) - 1) != 0)
}

/// By count, the probability of showing, in units of 2^-120, up to where it is 1.
fn table(epsilon: Epsilon, delta: Delta) -> Result<Vec<u128>, BadParameter> {
    let bad = |name, value, range| BadParameter::range(name, value, range);
    if !epsilon.get().is_finite() {
        return Err(bad("ε", epsilon.get(), "finite"));
    }
    let step = libm::ldexp(delta.get().min(1.0), PLACES as i32) as u128; // times a power of two, then cut
    if step == 0 {
        return Err(bad("δ", delta.get(), "greater than 10^-36, or no key would ever show"));
    }
    let factor = GrowthBound::exp_down(epsilon.get());
    let mut table = vec![0];
    let mut before = 0;
    while before < ONE {
        let rises = factor.times(before) + step;
        let falls = ONE - factor.over((ONE - before).saturating_sub(step));
        let now = rises.min(falls).min(ONE);
        // What the claim rests on, in integers: both inequalities, and that the probability rises.
        let holds = now <= factor.times(before) + step && ONE - before <= factor.times(ONE - now) + step;
        if !holds || now <= before || table.len() >= LONGEST {
            return Err(bad("ε", epsilon.get(), "large enough for a key to show before two million things have it"));
        }
        table.push(now);
        before = now;
    }
    Ok(table)
}

#[cfg(test)]
mod tests;
