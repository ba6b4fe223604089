//! Which rule for showing private group keys shows most, for a promise to the units that the keys come from.

use crate::calibrate::CalibrateError;
use crate::normal::gaussian_sigma_up;
use whit_core::mechanism::BadParameter;
use whit_core::mechanism::keys::{Keys, Moved};
use whit_core::{Delta, Epsilon, OutOfRange, Rung};
use whit_noise::Ratio;

/// A hair less than asked for, so that shares that are rounded up add up to no more than the whole.
const SAFE: f64 = 1.0 - 1e-10;
/// Which part of δ goes to the noise; the rest goes to keys that one unit alone has.
const SHARES: [f64; 5] = [0.5, 0.25, 0.1, 0.75, 0.9];

/// The rule that shows keys at the lowest counts while a unit of the first rung loses at most ε at δ.
///
/// Where one unit moves few keys that is the optimal rule, and where it moves many it is Gaussian noise: the one pays
/// for every key, the other for the root of their number.
///
/// ```
/// use whit_account::keys::choose;
/// use whit_core::mechanism::keys::Moved;
/// use whit_core::{Change, Rung, Unit};
/// let user = Rung { unit: Unit::user("id", Change::AddRemove), holds: 1, disjoint: false, slices: None };
/// let one = choose(1.0, 1e-6, vec![(user.clone(), Moved { keys: 1, by: 1 })])?;
/// assert!(one.half() == 14 && one.sigma().is_none());
/// let many = choose(1.0, 1e-6, vec![(user, Moved { keys: 100, by: 1 })])?;
/// assert!(many.half() < 500 && many.sigma().is_some());
/// # Ok::<(), whit_account::calibrate::CalibrateError>(())
/// ```
pub fn choose(epsilon: f64, delta: f64, moved: Vec<(Rung, Moved)>) -> Result<Keys, CalibrateError> {
    let gaussian = gaussian(epsilon, delta, moved.clone())?;
    let (each, rest) = split(epsilon, delta, protected(&moved)?)?;
    // A table of probabilities that shows nothing before the other rule does is not worth making, and may be too long
    // to be made.
    if turns_at(each, rest) > gaussian.half() as f64 + 1.0 {
        return Ok(gaussian);
    }
    let optimal = Keys::optimal(Epsilon::new(each)?, Delta::new(rest)?, moved).ok();
    Ok(optimal.filter(|optimal| optimal.half() <= gaussian.half()).unwrap_or(gaussian))
}

/// The optimal rule, key by key, for this promise: see [`Keys::optimal`]. Keys that move share ε and δ in equal
/// parts, so that it is kept also where costs are only added up; where better composition would help, Gaussian noise
/// helps more.
pub fn optimal(epsilon: f64, delta: f64, moved: Vec<(Rung, Moved)>) -> Result<Keys, CalibrateError> {
    let (epsilon, delta) = split(epsilon, delta, protected(&moved)?)?;
    Keys::optimal(Epsilon::new(epsilon)?, Delta::new(delta)?, moved).map_err(unusable)
}

/// Gaussian noise and a threshold for this promise: see [`Keys::gaussian`].
///
/// Part of δ pays for the noise, by the exact curve, and the rest for keys that one unit alone has; of a few ways to
/// share it, the one with the lowest threshold.
pub fn gaussian(epsilon: f64, delta: f64, moved: Vec<(Rung, Moved)>) -> Result<Keys, CalibrateError> {
    let first = protected(&moved)?;
    check(epsilon, delta)?;
    let distance = ((first.by as f64).next_up() * (first.keys as f64).next_up().sqrt().next_up()).next_up();
    // For a share of δ: the noise, what is left of δ, and the threshold that these two give.
    let rule = |share: f64| -> Result<(Ratio, Delta, u64), CalibrateError> {
        let sigma = gaussian_sigma_up(epsilon, delta * SAFE * share, distance);
        let range = "small enough for 64 bits: move fewer keys or allow a larger δ";
        let sigma =
            Ratio::from_f64_up(sigma).map_err(|_| OutOfRange { name: "noise on the counts", value: sigma, range })?;
        let rest = Delta::new(delta * SAFE * (1.0 - share))?;
        let half = Keys::gaussian_for(sigma, rest, moved.clone()).map_err(unusable)?.half();
        Ok((sigma, rest, half))
    };
    let mut best = rule(SHARES[0])?;
    for share in &SHARES[1..] {
        best = rule(*share).ok().filter(|other| other.2 < best.2).unwrap_or(best);
    }
    Keys::gaussian_for(best.0, best.1, moved).map_err(unusable)
}

fn check(epsilon: f64, delta: f64) -> Result<(), CalibrateError> {
    if !(epsilon >= 0.0 && epsilon.is_finite()) {
        return Err(OutOfRange { name: "ε", value: epsilon, range: "finite and at least 0" }.into());
    }
    if !(delta > 0.0 && delta < 1.0) {
        let range =
            "greater than 0 and below 1: a key that shows gives away that somebody has it, and δ is the chance of that";
        return Err(OutOfRange { name: "δ for private keys", value: delta, range }.into());
    }
    Ok(())
}

/// What the first rung moves; a rung that moves nothing is taken to move one key by one.
fn protected(moved: &[(Rung, Moved)]) -> Result<Moved, CalibrateError> {
    let range = "at least 1, the protected one first";
    let first = moved.first().ok_or(OutOfRange { name: "number of rungs", value: 0.0, range })?.1;
    Ok(Moved { keys: first.keys.max(1), by: first.by.max(1) })
}

fn unusable(error: BadParameter) -> CalibrateError {
    match error {
        BadParameter::Range(error) => error.into(),
        BadParameter::Fraction(_) => {
            let range = "a fraction of moderate size";
            OutOfRange { name: "noise on the counts", value: f64::NAN, range }.into()
        }
    }
}

/// The count at which the optimal rule begins to turn, which is where it shows a key about every other time: the
/// crossover of Desfontaines, Voss, Gipson and Mandayam (2022).
fn turns_at(epsilon: f64, delta: f64) -> f64 {
    if epsilon == 0.0 {
        return 0.5 / delta;
    }
    ((epsilon.exp_m1() + 2.0 * delta) / ((epsilon.exp() + 1.0) * delta)).ln() / epsilon
}

/// The ε and δ for one key whose count changes by one, such that all keys that move, each by so many steps, lose at
/// most ε at δ.
fn split(epsilon: f64, delta: f64, moved: Moved) -> Result<(f64, f64), CalibrateError> {
    check(epsilon, delta)?;
    let keys = moved.keys as f64;
    Ok(one_step(epsilon * SAFE / keys, delta * SAFE / keys, moved.by))
}

/// The (ε, δ) of one step for which so many steps come to the given one: group privacy backwards.
fn one_step(epsilon: f64, delta: f64, steps: u64) -> (f64, f64) {
    if steps == 1 {
        return (epsilon, delta);
    }
    let each = epsilon / steps as f64 * SAFE;
    let share = if epsilon == 0.0 { 1.0 / steps as f64 } else { each.exp_m1() / epsilon.exp_m1() };
    (each, delta * share * SAFE)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::accountant::{self, Name};
    use dashu_int::IBig;
    use whit_core::{Change, Cost, Mechanism, Unit};
    use whit_noise::ball::exp_minus;

    fn user() -> Rung {
        Rung { unit: Unit::user("id", Change::AddRemove), holds: 1, disjoint: false, slices: None }
    }

    fn moves(keys: u64, by: u64) -> Vec<(Rung, Moved)> {
        vec![(user(), Moved { keys, by })]
    }

    fn step_by_step(epsilon: f64, delta: f64, keys: u64, by: u64) -> Keys {
        Keys::optimal(Epsilon::new(epsilon).unwrap(), Delta::new(delta).unwrap(), moves(keys, by)).unwrap()
    }

    /// One, in the units in which the rule's probabilities are whole numbers.
    const ONE: u128 = 1 << 120;

    /// Whether p(n) ≤ e^ε·p(n−1) + δ and 1 − p(n−1) ≤ e^ε·(1 − p(n)) + δ for the real e^ε and the real δ, whatever
    /// digits those have: both are multiplied by e^-ε, of which an upper bound is known to 400 bits.
    fn both_hold(epsilon: f64, delta: f64, before: u128, now: u128) -> bool {
        let exact = |value: f64| Ratio::from_f64_up(value).unwrap(); // both are multiples of 2^-120
        let (e, d) = (exact(epsilon), exact(delta));
        let decay = if e.is_zero() {
            IBig::ONE << 400
        } else {
            exp_minus(&IBig::from(e.numerator()), &IBig::from(e.denominator()), 400).high()
        };
        let shrinks = |more: u128, less: u128| {
            // (more − δ)·e^-ε ≤ less, all times 2^120 · δ's denominator · 2^400
            let left = IBig::from(more) * IBig::from(d.denominator()) - IBig::from(d.numerator()) * IBig::from(ONE);
            left * &decay <= (IBig::from(less) * IBig::from(d.denominator())) << 400
        };
        now >= before && shrinks(now, before) && shrinks(ONE - before, ONE - now)
    }

    #[test]
    fn both_inequalities_hold_exactly_at_every_count() {
        for (epsilon, delta) in
            [(1.0, 1e-6), (0.1, 1e-10), (0.013, 3e-9), (2.7, 1e-5), (20.0, 1e-12), (0.25, 0.2), (0.0, 0.003)]
        {
            let keys = step_by_step(epsilon, delta, 1, 1);
            let table: Vec<u128> =
                (0..1 << 22).map(|n| keys.parts(n).unwrap()).take_while(|p| *p < ONE).chain([ONE]).collect();
            assert_eq!(table[0], 0);
            for (n, pair) in table.windows(2).enumerate() {
                assert!(both_hold(epsilon, delta, pair[0], pair[1]), "ε {epsilon}, δ {delta}: {n} to {}", n + 1);
                // And no more would: one part in 10⁹ more of what is short of 1, or of what is above 0, breaks one of
                // them.
                let more = pair[1] + (pair[1].min(ONE - pair[1]) >> 30) + (1 << 20);
                assert!(
                    pair[1] == ONE || !both_hold(epsilon, delta, pair[0], more),
                    "ε {epsilon}, δ {delta}: {n} is not tight"
                );
            }
        }
    }

    /// By how much the first of two laws over which keys show exceeds e^ε times the second, over all sets of keys.
    fn divergence(keys: &Keys, epsilon: f64, from: &[u64], to: &[u64]) -> f64 {
        (0..1_u32 << from.len())
            .map(|shown| {
                let law = |counts: &[u64]| -> f64 {
                    let chance = |(i, count): (usize, &u64)| {
                        let p = keys.chance(*count);
                        if shown >> i & 1 == 1 { p } else { 1.0 - p }
                    };
                    counts.iter().enumerate().map(chance).product()
                };
                (law(from) - epsilon.exp() * law(to)).max(0.0)
            })
            .sum()
    }

    /// The worst divergence over all neighbours: each of the moved keys goes from any count to any other within
    /// reach, 0 included.
    fn worst(keys: &Keys, epsilon: f64, moved: Moved, top: u64) -> f64 {
        let pairs: Vec<(u64, u64)> = (0..=top)
            .flat_map(|a| (0..=top).filter(move |b| a.abs_diff(*b) <= moved.by).map(move |b| (a, b)))
            .collect();
        let mut worst = 0.0_f64;
        // Keys are interchangeable, so each choice is made once: in rising order of the pairs' numbers.
        let mut choice = vec![0; moved.keys as usize];
        loop {
            let (from, to): (Vec<u64>, Vec<u64>) = choice.iter().map(|i: &usize| pairs[*i]).unzip();
            worst = worst.max(divergence(keys, epsilon, &from, &to));
            let Some(turn) = choice.iter().rposition(|i| i + 1 < pairs.len()) else { return worst };
            let next = choice[turn] + 1;
            choice[turn..].fill(next);
        }
    }

    #[test]
    fn no_pair_of_data_sets_tells_more_than_the_cost_says() {
        let gaussian = |sigma: &str, threshold, keys, by| {
            Keys::gaussian(sigma.parse().unwrap(), threshold, moves(keys, by)).unwrap()
        };
        for (rule, top) in [
            (gaussian("2", 8, 1, 1), 20),
            (gaussian("2", 5, 2, 1), 12),
            (gaussian("3", 9, 1, 3), 25),
            (gaussian("1.5", 4, 2, 2), 9),
            (gaussian("1", 3, 3, 1), 6),
            (gaussian("0.7", 3, 2, 1), 8),
            (step_by_step(0.5, 1e-3, 1, 1), 30),
            (step_by_step(0.5, 1e-3, 2, 1), 12),
            (step_by_step(0.4, 0.01, 2, 2), 10),
            (step_by_step(1.0, 0.02, 3, 1), 6),
        ] {
            let moved = rule.moved()[0].1;
            let cost = rule.cost(&user());
            for epsilon in [0.0, 0.1, 0.5, 1.0, 2.0, 4.0] {
                let (seen, stated) =
                    (worst(&rule, epsilon, moved, top), accountant::delta(&cost, epsilon, Name::Pld).unwrap());
                assert!(seen <= stated.upper * (1.0 + 1e-9), "{cost:?} at ε {epsilon}: {seen} > {}", stated.upper);
            }
        }
    }

    /// Neither part of the Gaussian rule's cost is enough: a key that one data set alone has needs the δ, a key of
    /// both the noise.
    #[test]
    fn half_of_the_gaussian_cost_is_caught() {
        let rule = Keys::gaussian("2".parse().unwrap(), 4, moves(1, 1)).unwrap();
        let Cost::Series(parts) = rule.cost(&user()) else { panic!("two parts") };
        let short = |part: &Cost, epsilon: f64| {
            worst(&rule, epsilon, Moved { keys: 1, by: 1 }, 12)
                > accountant::delta(part, epsilon, Name::Pld).unwrap().upper
        };
        assert!(short(&parts[0], 2.0), "the noise alone does not cover a key of one's own");
        assert!(short(&parts[1], 0.0), "the δ alone does not cover a key that others have too");
    }

    #[test]
    fn what_is_chosen_keeps_the_promise_and_shows_most() {
        // Proven by at least one accountant; the numerical one rounds up by a little.
        let loss = |rule: &Keys, delta: f64| {
            let stated =
                |name| accountant::epsilon(&rule.cost(&user()), delta, name).map_or(f64::INFINITY, |loss| loss.upper);
            stated(Name::Pld).min(stated(Name::Basic))
        };
        for (epsilon, delta) in [(1.0, 1e-6), (0.1, 1e-8), (5.0, 1e-10), (0.01, 1e-3)] {
            for (keys, by) in [(1, 1), (2, 1), (5, 1), (20, 1), (3, 4), (1, 10), (300, 1)] {
                let chosen = choose(epsilon, delta, moves(keys, by)).unwrap();
                for rule in [optimal(epsilon, delta, moves(keys, by)), gaussian(epsilon, delta, moves(keys, by))] {
                    let Ok(rule) = rule else { continue };
                    let stated = loss(&rule, delta);
                    assert!(stated <= epsilon * (1.0 + 1e-6), "{keys} by {by}: ε {stated} for {epsilon}");
                    // Equal parts are too careful for many keys; there the noise has won.
                    let careful = keys > 2 && rule.sigma().is_none();
                    assert!(careful || stated > epsilon * 0.97, "{keys} by {by}: ε {stated} leaves some of {epsilon}");
                    assert!(chosen.half() <= rule.half(), "{keys} by {by} at ε {epsilon}");
                }
            }
        }
    }

    #[test]
    fn the_optimal_rule_wins_for_few_keys_and_noise_for_many() {
        let at = |keys| choose(1.0, 1e-6, moves(keys, 1)).unwrap();
        assert!(at(1).sigma().is_none() && at(2).sigma().is_none() && at(5).sigma().is_some());
        // Below n = 14 no rule shows a key every other time: δ·(e^13 − 1)/(e − 1) is 0.26.
        assert_eq!(at(1).half(), 14);
        assert!((at(100).half() as f64) < 1.5 * 100_f64.sqrt() * at(1).half() as f64 * 2.0);
    }

    #[test]
    fn what_cannot_be_promised_is_refused_in_a_sentence() {
        let message = choose(1.0, 0.0, moves(1, 1)).unwrap_err().to_string();
        assert!(message.starts_with("δ for private keys is 0, but it must be greater than 0"), "{message}");
        assert!(choose(f64::NAN, 1e-6, moves(1, 1)).is_err());
        assert!(choose(f64::INFINITY, 1e-6, moves(1, 1)).is_err());
        assert!(choose(1.0, 1e-6, vec![]).is_err());
        assert!(choose(1.0, 1e-6, moves(u64::MAX, u64::MAX)).is_err());
        assert!(choose(1e-12, 1e-12, moves(1, 1)).is_ok(), "tiny, but a rule");
    }
}
