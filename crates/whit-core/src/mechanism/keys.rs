//! Private group keys: which of the keys that occur may be named ("partition selection").
//!
//! A list of keys gives away that somebody has each of them, so a key shows only when enough units have it.

use super::{Accuracy, BadParameter, Mechanism, SanitiseError};
use crate::bound::{Bound, Support};
use crate::cost::Cost;
use crate::loss::{Delta, Epsilon};
use crate::release::Sealed;
use crate::unit::{Change, Rung};
use whit_noise::round::{quotient_down, ratio_down};
use whit_noise::{Entropy, Ratio, RoundedGaussian};

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
/// Gaussian: one run of Gaussian noise of σ/(by·√keys), and beside it (0, δ) with
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
/// `keys_show_as_often_as_told`, `a_group_of_steps_loses_what_is_charged`,
/// `no_pair_of_data_sets_tells_more_than_the_cost_says`.
///
/// ```
/// use whit_core::mechanism::{Mechanism, keys::{Keys, Moved}};
/// use whit_core::{Change, Delta, Epsilon, Rung, Unit};
/// let user = Rung { unit: Unit::user("id", Change::AddRemove), holds: 1, disjoint: false };
/// let keys = Keys::optimal(Epsilon::new(1.0)?, Delta::new(1e-6)?, vec![(user, Moved { keys: 1, by: 1 })])?;
/// assert_eq!((keys.chance(0), keys.half()), (0.0, 14));
/// assert!(keys.chance(1) <= 1e-6 && keys.chance(28) == 1.0);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone)]
pub struct Keys {
    law: Law,
    moved: Vec<(Rung, Moved)>,
}

#[derive(Debug, Clone)]
enum Law {
    Optimal {
        epsilon: Epsilon,
        delta: Delta,
        /// By count, the probability of showing in units of 2^-120; beyond the end it is 1.
        table: Vec<u128>,
    },
    Gaussian {
        noise: Box<RoundedGaussian>,
        threshold: i64,
    },
}

impl Keys {
    /// The rule that shows most among all that are (ε, δ) for a count that changes by one.
    pub fn optimal(epsilon: Epsilon, delta: Delta, moved: Vec<(Rung, Moved)>) -> Result<Self, BadParameter> {
        protected(&moved)?;
        Ok(Self { law: Law::Optimal { epsilon, delta, table: table(epsilon, delta)? }, moved })
    }

    /// Rounded Gaussian noise of this standard deviation on each count; a key shows where that reaches the threshold.
    pub fn gaussian(sigma: Ratio, threshold: i64, moved: Vec<(Rung, Moved)>) -> Result<Self, BadParameter> {
        protected(&moved)?;
        Ok(Self { law: Law::Gaussian { noise: Box::new(RoundedGaussian::new(sigma)?), threshold }, moved })
    }

    /// The same with the lowest threshold at which a unit of the first rung pays at most δ for keys that it alone has.
    pub fn gaussian_for(sigma: Ratio, delta: Delta, moved: Vec<(Rung, Moved)>) -> Result<Self, BadParameter> {
        let first = protected(&moved)?;
        let noise = Box::new(RoundedGaussian::new(sigma)?);
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
        Ok(Self { law: Law::Gaussian { noise, threshold: high }, moved })
    }

    /// The chance that a key shows which so many things have.
    pub fn chance(&self, count: u64) -> f64 {
        match &self.law {
            Law::Optimal { .. } => self.parts(count).unwrap_or(0) as f64 / ONE as f64,
            Law::Gaussian { .. } if count == 0 => 0.0,
            Law::Gaussian { noise, threshold } => reaches(noise, *threshold, count),
        }
    }

    /// Of 2^120 equally likely draws, those that show a key which so many things have: [`chance`](Self::chance)
    /// without rounding, for audits. Nothing for the Gaussian law.
    pub fn parts(&self, count: u64) -> Option<u128> {
        match &self.law {
            Law::Optimal { table, .. } => {
                Some(usize::try_from(count).ok().and_then(|count| table.get(count).copied()).unwrap_or(ONE))
            }
            Law::Gaussian { .. } => None,
        }
    }

    /// The least count at which a key shows at least every other time.
    pub fn half(&self) -> u64 {
        match &self.law {
            Law::Optimal { table, .. } => table.partition_point(|parts| *parts < ONE / 2) as u64,
            Law::Gaussian { threshold, .. } => (*threshold).max(1) as u64,
        }
    }

    /// The threshold of the Gaussian law.
    pub fn threshold(&self) -> Option<i64> {
        match &self.law {
            Law::Optimal { .. } => None,
            Law::Gaussian { threshold, .. } => Some(*threshold),
        }
    }

    /// The standard deviation of the Gaussian law.
    pub fn sigma(&self) -> Option<&Ratio> {
        match &self.law {
            Law::Optimal { .. } => None,
            Law::Gaussian { noise, .. } => Some(noise.sigma()),
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
            Law::Optimal { table, .. } => {
                let mut words = vec![0; 2 * counts.len()];
                entropy.fill(&mut words);
                let draws = words.chunks_exact(2).map(|pair| (u128::from(pair[0]) << 64 | u128::from(pair[1])) >> 8);
                let parts = |count: u64| table.get(usize::try_from(count).unwrap_or(usize::MAX)).map_or(ONE, |p| *p);
                Ok(counts.iter().zip(draws).map(|(count, draw)| draw < parts(*count)).collect())
            }
            Law::Gaussian { noise, threshold } => {
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
            Law::Optimal { epsilon, delta, .. } => {
                steps_up(*epsilon, *delta, moved.by).map_or(Cost::Everything, |cost| cost.repeat(moved.keys))
            }
            Law::Gaussian { noise, threshold } => {
                let spread = quotient_down(ratio_down(noise.sigma()), distance_up(*moved));
                match Delta::new(alone_up(noise, *threshold, *moved)) {
                    Ok(delta) if delta.get() < 1.0 && spread > 0.0 => Cost::Series(vec![
                        Cost::Gaussian { noise: spread },
                        Cost::Approximate { epsilon: Epsilon::ZERO, delta },
                    ]),
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

/// by·√keys, rounded up.
fn distance_up(moved: Moved) -> f64 {
    let Ok(high) = i64::try_from(moved.by) else { return f64::INFINITY };
    let counts = Bound::Coordinates { groups: moved.keys, low: 0, high, support: Support::NonNegative };
    counts.sensitivity(Change::AddRemove).l2
}

/// P[count + round(N) ≥ threshold]: a real that is at least half a step below the threshold rounds up to it.
fn reaches(noise: &RoundedGaussian, threshold: i64, count: u64) -> f64 {
    let missing = (i128::from(threshold) - i128::from(count)) as f64 - 0.5;
    libm::erfc(missing / (noise.sigma().to_f64() * std::f64::consts::SQRT_2)) / 2.0
}

/// The chance that one of the keys that only one of two neighbours has shows, rounded up.
fn alone_up(noise: &RoundedGaussian, threshold: i64, moved: Moved) -> f64 {
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
struct Factor {
    /// Between 2^63 and 2^64.
    mantissa: u128,
    /// At most 63.
    shift: u32,
    /// Rounded up: inverse / 2^(127 − shift) ≥ 2^shift / mantissa.
    inverse: u128,
}

impl Factor {
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
    let factor = Factor::exp_down(epsilon.get());
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
mod tests {
    use super::super::trial::{fit, rung};
    use super::*;
    use whit_noise::Replay;

    fn moved(keys: u64, by: u64) -> Vec<(Rung, Moved)> {
        vec![(rung(Change::AddRemove, 1), Moved { keys, by })]
    }

    fn optimal(epsilon: f64, delta: f64) -> Keys {
        Keys::optimal(Epsilon::new(epsilon).unwrap(), Delta::new(delta).unwrap(), moved(1, 1)).unwrap()
    }

    /// The paper's two pieces of the rule, without recursion.
    fn closed_form(epsilon: f64, delta: f64, n: u64) -> f64 {
        let (growth, n) = (epsilon.exp(), n as f64);
        let turn = 1.0 + (((growth + 2.0 * delta - 1.0) / ((growth + 1.0) * delta)).ln() / epsilon).floor();
        let rising = |n: f64| delta * (n * epsilon).exp_m1() / epsilon.exp_m1();
        let end = turn + ((1.0 + epsilon.exp_m1() / delta * (1.0 - rising(turn))).ln() / epsilon).floor();
        if n <= turn {
            rising(n)
        } else if n <= end {
            let steps = (turn - n) * epsilon;
            -steps.exp_m1() * (1.0 + delta / epsilon.exp_m1()) + steps.exp() * rising(turn)
        } else {
            1.0
        }
    }

    #[test]
    fn the_rule_is_the_papers_closed_form() {
        for (epsilon, delta) in
            [(1.0, 1e-6), (0.1, 1e-10), (0.01, 1e-8), (3.0, 1e-5), (2.5e-4, 1e-12), (0.5, 0.05), (12.0, 1e-24)]
        {
            let keys = optimal(epsilon, delta);
            let Law::Optimal { table, .. } = &keys.law else { panic!("optimal") };
            assert_eq!(keys.chance(table.len() as u64 + 5), 1.0);
            for n in 0..table.len() as u64 + 2 {
                let (ours, theirs) = (keys.chance(n), closed_form(epsilon, delta, n));
                // Where it turns, a floor of a float may be off by one; both rules are then within rounding of each
                // other.
                assert!((ours / theirs - 1.0).abs() < 1e-9 || n == 0, "ε {epsilon}, δ {delta}, {n}: {ours} {theirs}");
            }
            assert_eq!(keys.chance(0), 0.0);
            assert!(keys.chance(keys.half()) >= 0.5 && keys.chance(keys.half() - 1) < 0.5);
        }
    }

    #[test]
    fn the_factor_is_below_e_to_epsilon_and_close() {
        for epsilon in [0.0, 1e-18, 1e-9, 1e-4, 0.1, 0.69, 1.0, 2.0, 7.7, 20.0, 42.9, 300.0_f64] {
            let Factor { mantissa, shift, inverse } = Factor::exp_down(epsilon);
            let (ours, exact) = (mantissa as f64 / 2f64.powi(shift as i32), epsilon.min(43.0).exp());
            assert!(ours <= exact * (1.0 + 4e-16) && ours >= exact * (1.0 - 1e-13), "ε {epsilon}: {ours} for {exact}");
            assert!(mantissa >> 63 == 1 && shift <= 63, "ε {epsilon}");
            // In integers: mantissa · inverse ≥ 2^127, so that going there and back loses nothing.
            assert!(mantissa.checked_mul(inverse).is_none_or(|product| product >= 1 << 127));
            let factor = Factor { mantissa, shift, inverse };
            for parts in [0, 1, 2, 12_345, 1 << 64, ONE / 3, ONE - 1, ONE] {
                assert!(factor.times(factor.over(parts)) >= parts, "ε {epsilon}, {parts}");
                assert!(factor.over(parts) <= parts && factor.times(parts) >= parts);
            }
        }
    }

    #[test]
    fn products_agree_with_plain_ones_where_these_fit() {
        let mut state = 1_u128;
        for _ in 0..20_000 {
            state = state.wrapping_mul(0x2360_ed05_1fc6_5da4_4385_df64_9fcc_f645).wrapping_add(12_345);
            let (parts, factor, shift) =
                ((state >> 77) & ((1 << 51) - 1), (state >> 3) & ((1 << 63) - 1), state as u32 % 60);
            let exact = parts * factor;
            let cut = exact & ((1 << shift) - 1) != 0;
            assert_eq!(product(parts, factor, shift), ((exact >> shift).min(ONE), cut && exact >> shift < ONE));
            // Moved up by 64 bits in all three places.
            let (whole, _) = product(parts << 64, factor, 64 + shift);
            assert_eq!(whole, exact >> shift);
        }
    }

    /// Sixteen counts, 100,000 draws each. A correct coin fails once in 10⁷ seeds at each, so the test about once in
    /// 600,000.
    #[test]
    fn keys_show_as_often_as_told() {
        let draws = 100_000;
        let p_value = |keys: &Keys, count: u64, told: f64, seed: u64| {
            let shown = keys.draw(&vec![count; draws], &mut Replay::new(seed)).unwrap();
            let yes = shown.iter().filter(|shows| **shows).count() as u64;
            if told == 1.0 {
                return if yes == draws as u64 { 1.0 } else { 0.0 };
            }
            fit(&[yes, draws as u64 - yes], &[told, 1.0 - told])
        };
        let laws = [optimal(0.2, 0.01), Keys::gaussian(Ratio::from(3), 9, moved(1, 1)).unwrap()];
        for keys in &laws {
            for count in [1, 3, 6, 8, 9, 10, 14, 20] {
                assert!(p_value(keys, count, keys.chance(count), 7 + count) > 1e-7, "{keys:?} at {count}");
            }
            // Told for one thing less, it is caught where the chance moves by a few hundredths.
            for count in [8, 9, 10] {
                assert!(p_value(keys, count, keys.chance(count - 1), 7 + count) < 1e-7, "a wrong law must be caught");
            }
        }
    }

    /// Words that say where the uniform number lies.
    struct Script(u128);

    impl Entropy for Script {
        fn bits(&mut self, _: u32) -> u64 {
            unreachable!("words are drawn all at once")
        }
        fn fill(&mut self, words: &mut [u64]) {
            words.copy_from_slice(&[(self.0 >> 64) as u64, self.0 as u64]);
        }
    }

    #[test]
    fn a_coin_turns_at_its_exact_part() {
        let keys = optimal(0.7, 1e-9);
        for count in 0..60 {
            let parts = keys.parts(count).unwrap();
            let shows = |draw: u128| keys.draw(&[count], &mut Script(draw << 8 | 0xff)).unwrap()[0];
            assert!(parts == 0 || shows(parts - 1), "{count}");
            assert!(parts == ONE || !shows(parts), "{count}");
        }
    }

    /// Both events, both directions, every count, one to seven steps.
    #[test]
    fn a_group_of_steps_loses_what_is_charged() {
        for (epsilon, delta) in [(1.0, 1e-6), (0.3, 1e-3), (0.05, 1e-4), (0.0, 0.01)] {
            for steps in 1..=7_u64 {
                let (e, d) = (Epsilon::new(epsilon).unwrap(), Delta::new(delta).unwrap());
                let keys = Keys::optimal(e, d, moved(3, steps)).unwrap();
                let cost = keys.cost(&rung(Change::AddRemove, 1));
                let [(Cost::Approximate { epsilon: all, delta: grown }, 3)] = cost.leaves()[..] else {
                    panic!("three keys: {cost:?}")
                };
                let (all, grown) = (all.get(), grown.get());
                let mut attained = 0.0_f64;
                for n in 0..400 {
                    let (p, q) = (keys.chance(n), keys.chance(n + steps));
                    for (one, other) in [(p, q), (q, p), (1.0 - p, 1.0 - q), (1.0 - q, 1.0 - p)] {
                        let gap = one - all.exp() * other;
                        assert!(
                            gap <= grown * (1.0 + 1e-9) + 1e-15,
                            "ε {epsilon}, {steps} steps at {n}: {gap} > {grown}"
                        );
                        attained = attained.max(gap);
                    }
                }
                assert!(attained > grown * (1.0 - 1e-6), "{attained} is less than {grown}: something is given away");
                // What one step costs does not cover several.
                assert!(steps == 1 || attained > delta * 1.5);
            }
        }
    }

    #[test]
    fn a_key_that_nothing_has_never_shows() {
        let certain = Keys::gaussian(Ratio::ONE, -1000, moved(1, 1)).unwrap();
        assert_eq!(certain.draw(&[0, 1], &mut Replay::new(1)).unwrap(), [false, true]);
        assert_eq!((certain.chance(0), certain.half()), (0.0, 1));
        assert_eq!(certain.cost(&rung(Change::AddRemove, 1)), Cost::Everything, "it hides nobody's own key");
        assert_eq!(optimal(5.0, 0.5).draw(&[0; 64], &mut Replay::new(1)).unwrap(), [false; 64]);
        let kept = optimal(1.0, 1e-6).keep(vec![("a", 40), ("b", 0), ("c", 1), ("d", 99)], &mut Replay::new(1));
        assert_eq!(kept.unwrap().open(), ["a", "d"]);
    }

    #[test]
    fn the_threshold_is_the_lowest_that_delta_allows() {
        for (sigma, delta, keys, by) in
            [("4", 1e-8, 1, 1), ("35.5", 1e-6, 20, 3), ("0.3", 1e-12, 2, 1), ("1000", 0.4, 1, 1)]
        {
            let delta = Delta::new(delta).unwrap();
            let rule = Keys::gaussian_for(sigma.parse().unwrap(), delta, moved(keys, by)).unwrap();
            let (threshold, sigma) = (rule.threshold().unwrap(), rule.sigma().unwrap().to_f64());
            let leaks = |t: i64| {
                keys as f64 * libm::erfc((t - by as i64) as f64 / sigma / 2f64.sqrt() - 0.5 / sigma / 2f64.sqrt()) / 2.0
            };
            assert!(leaks(threshold) <= delta.get() && leaks(threshold - 1) > delta.get() * (1.0 - 1e-9));
            let Cost::Series(parts) = rule.cost(&rung(Change::AddRemove, 1)) else { panic!("two parts") };
            let [Cost::Gaussian { noise }, Cost::Approximate { epsilon, delta: told }] = parts[..] else {
                panic!("{parts:?}")
            };
            let exact = sigma / (by as f64 * (keys as f64).sqrt());
            assert!(noise <= exact * (1.0 + 1e-15) && noise > exact * (1.0 - 1e-14));
            assert!(epsilon == Epsilon::ZERO && told.get() <= delta.get() && told.get() >= leaks(threshold));
            // Half of the time at the threshold itself: the noise is rounded, so a little more.
            assert!((0.5..0.96).contains(&rule.chance(rule.half())) && rule.chance(rule.half() - 1) < 0.5);
        }
    }

    #[test]
    fn accuracy_is_the_count_that_shows_that_often() {
        for keys in [optimal(0.5, 1e-6), Keys::gaussian(Ratio::from(10), 60, moved(1, 1)).unwrap()] {
            for confidence in [0.5, 0.95, 0.999] {
                let count = keys.accuracy(confidence).within as u64;
                assert!(keys.chance(count) >= confidence && keys.chance(count - 1) < confidence + 1e-9);
            }
            assert_eq!(keys.accuracy(0.5).within, keys.half() as f64);
        }
    }

    #[test]
    fn what_nobody_vouched_for_costs_everything() {
        let user = rung(Change::AddRemove, 1);
        let coarse = rung(Change::Replace, 8);
        let both = vec![(user.clone(), Moved { keys: 1, by: 1 }), (coarse.clone(), Moved { keys: 6, by: 8 })];
        let keys = Keys::optimal(Epsilon::new(0.1).unwrap(), Delta::new(1e-7).unwrap(), both).unwrap();
        let approximate = |cost: &Cost| match cost.leaves()[..] {
            [(Cost::Approximate { epsilon, delta }, times)] => (epsilon.get(), delta.get(), times),
            _ => panic!("{cost:?}"),
        };
        assert_eq!(approximate(&keys.cost(&user)), (0.1, 1e-7, 1));
        let (epsilon, delta, times) = approximate(&keys.cost(&coarse));
        assert!((0.8..0.800_001).contains(&epsilon) && delta > 8e-7 && times == 6);
        assert_eq!(keys.cost(&rung(Change::Replace, 1)), Cost::Everything);
        let still = Keys::gaussian(Ratio::ONE, 5, moved(0, 1)).unwrap();
        assert_eq!(still.cost(&user), Cost::Nothing);
        for far in [moved(u64::MAX, u64::MAX), moved(1, 1 << 62)] {
            assert_eq!(Keys::gaussian(Ratio::ONE, 5, far.clone()).unwrap().cost(&user), Cost::Everything);
            assert_eq!(
                Keys::optimal(Epsilon::new(1.0).unwrap(), Delta::new(1e-6).unwrap(), far).unwrap().cost(&user),
                Cost::Everything
            );
        }
    }

    #[test]
    fn rules_that_would_show_nothing_are_refused() {
        let make =
            |epsilon, delta| Keys::optimal(Epsilon::new(epsilon).unwrap(), Delta::new(delta).unwrap(), moved(1, 1));
        assert!(make(1.0, 0.0).unwrap_err().to_string().contains("or no key would ever show"));
        assert!(make(1e-9, 1e-12).unwrap_err().to_string().contains("large enough"));
        assert!(make(f64::INFINITY, 1e-6).is_err());
        assert!(Keys::optimal(Epsilon::ZERO, Delta::new(0.1).unwrap(), vec![]).is_err());
        assert!(Keys::gaussian(Ratio::ZERO, 5, moved(1, 1)).is_err());
        assert!(Keys::gaussian_for(Ratio::ONE, Delta::ZERO, moved(1, 1)).is_err());
        assert!(make(1.0, 1.0).unwrap().chance(1) == 1.0, "a δ of 1 shows everything");
    }
}
