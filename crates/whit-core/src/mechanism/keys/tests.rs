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
        let KeysLaw::Optimal { table, .. } = &keys.law else { panic!("optimal") };
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
        let GrowthBound { mantissa, shift, inverse } = GrowthBound::exp_down(epsilon);
        let (ours, exact) = (mantissa as f64 / 2f64.powi(shift as i32), epsilon.min(43.0).exp());
        assert!(ours <= exact * (1.0 + 4e-16) && ours >= exact * (1.0 - 1e-13), "ε {epsilon}: {ours} for {exact}");
        assert!(mantissa >> 63 == 1 && shift <= 63, "ε {epsilon}");
        // In integers: mantissa · inverse ≥ 2^127, so that going there and back loses nothing.
        assert!(mantissa.checked_mul(inverse).is_none_or(|product| product >= 1 << 127));
        let factor = GrowthBound { mantissa, shift, inverse };
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
fn keys_show_as_often_as_stated() {
    let draws = 100_000;
    let p_value = |keys: &Keys, count: u64, stated: f64, seed: u64| {
        let shown = keys.draw(&vec![count; draws], &mut Replay::new(seed)).unwrap();
        let yes = shown.iter().filter(|shows| **shows).count() as u64;
        if stated == 1.0 {
            return if yes == draws as u64 { 1.0 } else { 0.0 };
        }
        fit(&[yes, draws as u64 - yes], &[stated, 1.0 - stated])
    };
    let laws = [optimal(0.2, 0.01), Keys::gaussian(Ratio::from(3), 9, moved(1, 1)).unwrap()];
    for keys in &laws {
        for count in [1, 3, 6, 8, 9, 10, 14, 20] {
            assert!(p_value(keys, count, keys.chance(count), 7 + count) > 1e-7, "{keys:?} at {count}");
        }
        // Stated for one thing less, it is caught where the chance moves by a few hundredths.
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
                    assert!(gap <= grown * (1.0 + 1e-9) + 1e-15, "ε {epsilon}, {steps} steps at {n}: {gap} > {grown}");
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
        let [Cost::Gaussian { noise }, Cost::Approximate { epsilon, delta: stated }] = parts[..] else {
            panic!("{parts:?}")
        };
        let exact = sigma / (by as f64 * (keys as f64).sqrt());
        assert!(noise <= exact * (1.0 + 1e-15) && noise > exact * (1.0 - 1e-14));
        assert!(epsilon == Epsilon::ZERO && stated.get() <= delta.get() && stated.get() >= leaks(threshold));
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
    let make = |epsilon, delta| Keys::optimal(Epsilon::new(epsilon).unwrap(), Delta::new(delta).unwrap(), moved(1, 1));
    assert!(make(1.0, 0.0).unwrap_err().to_string().contains("or no key would ever show"));
    assert!(make(1e-9, 1e-12).unwrap_err().to_string().contains("large enough"));
    assert!(make(f64::INFINITY, 1e-6).is_err());
    assert!(Keys::optimal(Epsilon::ZERO, Delta::new(0.1).unwrap(), vec![]).is_err());
    assert!(Keys::gaussian(Ratio::ZERO, 5, moved(1, 1)).is_err());
    assert!(Keys::gaussian_for(Ratio::ONE, Delta::ZERO, moved(1, 1)).is_err());
    assert!(make(1.0, 1.0).unwrap().chance(1) == 1.0, "a δ of 1 shows everything");
}
