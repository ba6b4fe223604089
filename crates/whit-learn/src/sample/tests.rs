use super::*;
use crate::plan::{Count, Draft, Drawn};
use whit_core::unit::Caps;
use whit_core::{Change, Kind, Ladder, Sampling, Unit};
use whit_noise::fit::chi_square_p_value;
use whit_noise::{Os, Replay};

/// A correct sampler fails a test of this file once in 10⁹ seeds; the seeds are fixed, so it fails never or always.
const FALSE_ALARM: f64 = 1e-9;

fn plan(rate: &str, drawn: Drawn, sampling: Sampling, places: u64) -> Plan {
    let caps = Caps { elements_per_user: Some(3), rows_per_element: Some(1) };
    let units = match drawn {
        Drawn::Units => vec![Unit::event(Change::Replace)],
        Drawn::Users => vec![Unit::element("user", "topic"), Unit::user("user", Change::Replace)],
    };
    let ladder = Ladder::new(units.clone(), caps, units[0].kind()).unwrap();
    let draft = Draft::new(ladder, rate.parse().unwrap(), Count::Declared(places), 1.0, 10);
    Draft { drawn, sampling, users: Some(places), ..draft }.with_noise(1.0).unwrap()
}

fn poisson(rate: &str, units: usize) -> Sampler {
    Sampler::new(&plan(rate, Drawn::Units, Sampling::Poisson, 100), Pool::Units(units)).unwrap()
}

/// How often each of the 2^n sets was drawn.
fn sets(sampler: &mut Sampler, n: usize, draws: u32, seed: u64) -> Vec<u64> {
    let mut entropy = Replay::new(seed);
    let mut seen = vec![0; 1 << n];
    for _ in 0..draws {
        let drawn = sampler.draw(&mut entropy);
        assert!(drawn.windows(2).all(|pair| pair[0] < pair[1]), "sorted, each once");
        seen[drawn.iter().fold(0_usize, |set, &unit| set | 1 << unit)] += 1;
    }
    seen
}

fn independent(n: usize, rate: f64, draws: u32) -> Vec<f64> {
    let weight = |set: usize| {
        let drawn = set.count_ones() as i32;
        rate.powi(drawn) * (1.0 - rate).powi(n as i32 - drawn)
    };
    (0..1 << n).map(|set| weight(set) * f64::from(draws)).collect()
}

/// Pearson's test on all 2^n sets at once: inclusion, pairs, triples and the empty set have their products.
#[test]
fn coins_are_exact_and_independent() {
    let draws = 400_000;
    for (text, rate) in [("1/10", 0.1), ("1/2", 0.5), ("2/3", 2.0 / 3.0), ("1/1000", 0.001), ("97/100", 0.97)] {
        let n = 6;
        let seen = sets(&mut poisson(text, n), n, draws, 0xc01);
        let expected = independent(n, rate, draws);
        let p = chi_square_p_value(&seen, &expected);
        assert!(p > FALSE_ALARM, "rate {text}: p = {p:e}");
        assert!(rate > 0.5 || seen[0] > 0, "an empty draw is possible");
    }
}

/// The same test catches a rate that is off by one part in fifty, and coins that lean on their neighbours.
#[test]
fn a_sampler_that_is_a_little_off_is_caught() {
    let (n, draws) = (6, 400_000);
    let seen = sets(&mut poisson("51/500", n), n, draws, 0xc01);
    assert!(chi_square_p_value(&seen, &independent(n, 0.1, draws)) < FALSE_ALARM);
    let mut leaning = vec![0; 1 << n];
    for (set, count) in sets(&mut poisson("1/10", n), n, draws, 0xc01).into_iter().enumerate() {
        let swapped = if set == 0b11 { 0b1 } else { set }; // the second coin never falls with the first alone
        leaning[swapped] += count;
    }
    assert!(chi_square_p_value(&leaning, &independent(n, 0.1, draws)) < FALSE_ALARM);
}

/// Each of 2,000 units is drawn Binomial(draws, q) times, and so is each pair of neighbours at q².
#[test]
fn no_unit_of_many_is_favoured() {
    let (n, draws, rate) = (2_000, 20_000_u32, 0.05);
    let mut sampler = poisson("1/20", n);
    let mut entropy = Replay::new(0x2000);
    let (mut single, mut pairs, mut drawn) = (vec![0_u64; n], vec![0_u64; n - 1], Vec::new());
    for _ in 0..draws {
        sampler.draw_into(&mut drawn, &mut entropy);
        for &unit in &drawn {
            single[unit as usize] += 1;
        }
        drawn.windows(2).filter(|pair| pair[0] + 1 == pair[1]).for_each(|pair| pairs[pair[0] as usize] += 1);
    }
    // Each count is within z deviations but for a chance of 2·exp(−z²/2)-ish; z = 8 leaves 4,000 · 1e-15.
    for (counts, p) in [(&single, rate), (&pairs, rate * rate)] {
        let (mean, deviation) = (p * f64::from(draws), (p * (1.0 - p) * f64::from(draws)).sqrt());
        for (unit, &count) in counts.iter().enumerate() {
            assert!((count as f64 - mean).abs() < 8.0 * deviation, "{unit}: {count} for {mean}");
        }
    }
}

#[test]
fn the_ends_of_the_range_are_drawn_as_they_should() {
    assert_eq!(poisson("1", 5).draw(&mut Os), [0, 1, 2, 3, 4]);
    assert!(poisson("1/2", 0).draw(&mut Os).is_empty());
    let tiny = &mut poisson("1/1000000000000", 1000);
    assert!((0..1000).all(|_| tiny.draw(&mut Os).is_empty()), "fails once in 10⁶ runs");
}

/// All 20 sets of three out of six, equally often.
#[test]
fn a_batch_of_fixed_size_has_it_and_is_uniform() {
    let mut sampler = Sampler::new(&plan("1/2", Drawn::Units, Sampling::Fixed, 6), Pool::Units(6)).unwrap();
    let draws = 200_000;
    let seen = sets(&mut sampler, 6, draws, 0xf10);
    assert!(seen.iter().enumerate().all(|(set, &count)| set.count_ones() == 3 || count == 0));
    let seen: Vec<u64> =
        seen.into_iter().enumerate().filter(|(set, _)| set.count_ones() == 3).map(|(_, c)| c).collect();
    let p = chi_square_p_value(&seen, &[f64::from(draws) / 20.0; 20]);
    assert!(p > FALSE_ALARM, "p = {p:e}");
}

/// Two of the six places have no unit: they are drawn as often as the others, and add nothing.
#[test]
fn empty_places_are_drawn_and_add_nothing() {
    let mut sampler = Sampler::new(&plan("1/2", Drawn::Units, Sampling::Fixed, 6), Pool::Units(4)).unwrap();
    let draws = 200_000;
    let seen = sets(&mut sampler, 4, draws, 0xe3);
    // k of the four and 3 − k of the two: C(2, 3 − k) of 20 sets for each set of k
    let ways = |drawn: u32| match drawn {
        1 | 3 => 1.0,
        2 => 2.0,
        _ => 0.0,
    };
    let expected: Vec<f64> = (0..16_u32).map(|set| ways(set.count_ones()) / 20.0 * f64::from(draws)).collect();
    assert!(seen.iter().zip(&expected).all(|(&seen, &due)| due > 0.0 || seen == 0));
    let (seen, expected): (Vec<u64>, Vec<f64>) = seen.into_iter().zip(expected).filter(|cell| cell.1 > 0.0).unzip();
    assert!(chi_square_p_value(&seen, &expected) > FALSE_ALARM);
}

#[test]
fn all_units_of_a_drawn_user_come_along() {
    let ends = [2, 2, 5, 6]; // the second user has none
    let draws = 200_000;
    for sampling in [Sampling::Poisson, Sampling::Fixed] {
        let mut sampler = Sampler::new(&plan("1/4", Drawn::Users, sampling, 4), Pool::Users { ends: &ends }).unwrap();
        let mut entropy = Replay::new(0x05e5);
        let mut seen = [0_u64; 8];
        for _ in 0..draws {
            let drawn = sampler.draw(&mut entropy);
            let has = |unit: u32| usize::from(drawn.contains(&unit));
            assert!(has(0) == has(1) && has(2) == has(3) && has(3) == has(4) && drawn.is_sorted());
            seen[has(0) | has(2) << 1 | has(5) << 2] += 1;
        }
        let expected: Vec<f64> = match sampling {
            Sampling::Poisson => independent(3, 0.25, draws),
            // one user of four: three of them are seen, and one has no units
            Sampling::Fixed => [1, 1, 1, 0, 1, 0, 0, 0].map(|hit| f64::from(hit) * f64::from(draws) / 4.0).to_vec(),
        };
        assert!(seen.iter().zip(&expected).all(|(&seen, &due)| due > 0.0 || seen == 0));
        let cells = seen.into_iter().zip(expected).filter(|cell| cell.1 > 0.0);
        let (seen, expected): (Vec<u64>, Vec<f64>) = cells.unzip();
        assert!(chi_square_p_value(&seen, &expected) > FALSE_ALARM, "{sampling:?}");
    }
}

#[test]
fn a_pool_that_the_plan_was_not_made_for_is_refused() {
    let units = plan("1/2", Drawn::Units, Sampling::Fixed, 6);
    let users = plan("1/2", Drawn::Users, Sampling::Poisson, 6);
    let refuse = |plan: &Plan, pool| {
        let error = Sampler::new(plan, pool).unwrap_err();
        assert!(!error.hint().is_empty());
        error
    };
    assert!(matches!(refuse(&units, Pool::Users { ends: &[1] }), PoolError::Kind { .. }));
    assert!(matches!(refuse(&users, Pool::Units(3)), PoolError::Kind { .. }));
    assert_eq!(refuse(&units, Pool::Units(7)), PoolError::Places { places: 6 });
    assert_eq!(refuse(&users, Pool::Users { ends: &[3, 7] }), PoolError::Cap { elements: 3 });
    assert_eq!(refuse(&users, Pool::Users { ends: &[3, 2] }), PoolError::Order);
    assert_eq!(users.ladder().protected().unit.kind(), Kind::Element);
}
