//! Laws that every accountant obeys for every cost: one suite, run on each.

#![expect(clippy::unwrap_used, reason = "a test that cannot read its reference has failed")]

use proptest::prelude::*;
use whit_account::{Name, Unsupported, calibrate, delta, epsilon, epsilon_by};
use whit_core::{Change, Cost, Delta, Draw, Epsilon, Rho, Sampled, Sampling};
use whit_noise::{Entropy, Replay};

fn eps(value: f64) -> Epsilon {
    Epsilon::new(value).unwrap()
}

fn sampled(noise: f64, rate: f64, draw: Draw, change: Change) -> Sampled {
    Sampled { noise, rate, sampling: Sampling::Poisson, draw, change, difference: 2.0, holds: 1 }
}

/// One of every leaf, with several kinds of drawing.
fn every_cost() -> Vec<Cost> {
    let replace = sampled(1.3, 0.05, Draw::Unit, Change::Replace);
    vec![
        Cost::Pure { epsilon: eps(0.3) },
        Cost::Approximate { epsilon: eps(0.2), delta: Delta::new(1e-8).unwrap() },
        Cost::Concentrated { rho: Rho::new(0.02).unwrap() },
        Cost::Gaussian { noise: 4.0 },
        Cost::Laplace { scale: 3.0 },
        Cost::Geometric { shift: 2, scale: 7.0 },
        Cost::Geometric { shift: 2000, scale: 7000.0 },
        Cost::BoundedRange { epsilon: eps(0.4) },
        Cost::Sampled(replace),
        Cost::Sampled(Sampled { difference: 0.5, ..replace }),
        Cost::Sampled(Sampled { sampling: Sampling::Fixed, ..replace }),
        Cost::Sampled(Sampled { holds: 3, ..replace }),
        Cost::Sampled(Sampled { holds: 3, change: Change::AddRemove, ..replace }),
        Cost::Sampled(sampled(1.3, 0.05, Draw::Unit, Change::AddRemove)),
        Cost::Sampled(sampled(6.0, 0.05, Draw::User { elements: 4 }, Change::Replace)),
        Cost::Sampled(Sampled { holds: 4, ..sampled(6.0, 0.05, Draw::User { elements: 4 }, Change::Replace) }),
        Cost::Sampled(sampled(6.0, 0.05, Draw::User { elements: 4 }, Change::AddRemove)),
    ]
}

/// What an accountant says, or nothing where it cannot price the cost.
fn upper(cost: &Cost, delta: f64, name: Name) -> Option<f64> {
    match epsilon(cost, delta, name) {
        Ok(loss) => {
            assert!(!loss.upper.is_nan() && !loss.lower.is_nan(), "{name}: {loss:?} for {cost:?}");
            assert!(loss.upper >= loss.lower && loss.lower >= 0.0, "{name}: {loss:?} for {cost:?}");
            Some(loss.upper)
        }
        Err(Unsupported::Cost { .. }) => None,
        Err(other) => panic!("{name} on {cost:?}: {other}"),
    }
}

/// `more` costs at least as much as `less`, up to what two lattices may differ by.
fn no_less(less: &Cost, more: &Cost, delta: f64, why: &str) {
    for name in Name::ALL {
        if let (Some(a), Some(b)) = (upper(less, delta, name), upper(more, delta, name)) {
            assert!(b >= a * (1.0 - 1e-3), "{name}: {why} brought ε from {a} to {b}\n{less:?}\n{more:?}");
        }
    }
}

#[test]
fn repeating_a_cost_is_adding_it_again() {
    for cost in every_cost() {
        let (repeated, added) = (cost.clone().repeat(7), Cost::Series(vec![cost.clone(); 7]));
        let nested = Cost::Series(vec![cost.clone().repeat(3), Cost::Series(vec![cost.clone().repeat(2); 2])]);
        for name in Name::ALL {
            assert_eq!(upper(&repeated, 1e-5, name), upper(&added, 1e-5, name), "{name}: {cost:?}");
            assert_eq!(upper(&repeated, 1e-5, name), upper(&nested, 1e-5, name), "{name}: {cost:?}");
        }
    }
}

#[test]
fn order_does_not_matter() {
    let mut costs: Vec<Cost> =
        every_cost().into_iter().filter(|cost| !matches!(cost, Cost::Approximate { .. })).collect();
    let forwards = Cost::Series(costs.clone());
    costs.reverse();
    let backwards = Cost::Series(costs);
    for name in Name::ALL {
        assert_eq!(upper(&forwards, 1e-5, name), upper(&backwards, 1e-5, name), "{name}");
    }
}

#[test]
fn more_steps_more_draws_and_less_noise_never_cost_less() {
    for cost in every_cost() {
        no_less(&cost.clone().repeat(20), &cost.clone().repeat(21), 1e-5, "one more step");
        no_less(&cost.clone().repeat(20), &cost.clone().repeat(40), 1e-5, "twice the steps");
        no_less(&cost.clone().repeat(20), &cost.clone().repeat(20), 1e-6, "the same");
        if let Cost::Sampled(s) = cost {
            let with = |s: Sampled| Cost::Sampled(s).repeat(20);
            no_less(&with(s), &with(Sampled { rate: s.rate * 1.5, ..s }), 1e-5, "a higher rate");
            no_less(&with(Sampled { rate: 0.9, ..s }), &with(Sampled { rate: 1.0, ..s }), 1e-5, "drawing everybody");
            no_less(&with(s), &with(Sampled { noise: s.noise / 1.3, ..s }), 1e-5, "less noise");
            if s.change == Change::Replace {
                no_less(&with(Sampled { difference: 0.3, ..s }), &with(s), 1e-5, "a larger difference");
            }
        }
        for name in Name::ALL {
            if let (Some(strict), Some(lax)) = (upper(&cost, 1e-7, name), upper(&cost, 1e-5, name)) {
                assert!(
                    strict >= lax * (1.0 - 1e-3),
                    "{name}: a smaller δ made ε smaller, {strict} and {lax}: {cost:?}"
                );
            }
        }
    }
}

/// Under one change, a unit that holds more never costs less.
#[test]
fn a_coarser_rung_never_costs_less() {
    for change in [Change::AddRemove, Change::Replace] {
        for holds in [1, 2, 5] {
            let pairs = sampled(3.0, 0.05, Draw::Unit, change);
            let rung = |holds| Cost::Sampled(Sampled { holds, ..pairs }).repeat(50);
            no_less(&rung(holds), &rung(holds + 1), 1e-5, "a coarser rung, pairs drawn");
            let users = sampled(12.0, 0.05, Draw::User { elements: 6 }, change);
            let rung = |holds| Cost::Sampled(Sampled { holds, ..users }).repeat(50);
            if change == Change::Replace || holds < 5 {
                no_less(&rung(holds), &rung(holds + 1), 1e-5, "a coarser rung, users drawn");
            }
        }
        for elements in [1, 2, 8] {
            let drawn = |elements| Cost::Sampled(sampled(9.0, 0.05, Draw::User { elements }, change)).repeat(50);
            no_less(&drawn(elements), &drawn(elements + 1), 1e-5, "users with more elements");
        }
    }
}

#[test]
fn no_protection_is_infinite_loss_and_nothing_is_none() {
    for name in Name::ALL {
        for cost in [Cost::Everything, Cost::Series(vec![Cost::Gaussian { noise: 9.0 }, Cost::Everything.repeat(2)])] {
            assert_eq!(epsilon(&cost, 1e-5, name).unwrap().upper, f64::INFINITY, "{name}");
            assert_eq!(delta(&cost, 3.0, name).unwrap().upper, 1.0, "{name}");
        }
        for cost in [Cost::Nothing, Cost::Nothing.repeat(9), Cost::Gaussian { noise: 1.0 }.repeat(0)] {
            assert_eq!(epsilon(&cost, 1e-5, name).unwrap().upper, 0.0, "{name}");
        }
        let never_drawn = Cost::Sampled(sampled(0.5, 0.0, Draw::Unit, Change::Replace)).repeat(100);
        assert_eq!(upper(&never_drawn, 1e-5, name), Some(0.0), "{name}: what is never drawn costs nothing");
    }
}

#[test]
fn every_accountant_stays_above_what_is_attained() {
    for cost in every_cost() {
        for times in [1, 10, 200] {
            let cost = cost.clone().repeat(times);
            for d in [1e-3, 1e-5, 1e-9] {
                let attained = epsilon(&cost, d, Name::Pld).unwrap().lower;
                for name in Name::ALL {
                    if let Some(bound) = upper(&cost, d, name) {
                        assert!(
                            bound >= attained,
                            "{name} reports {bound} at δ = {d}, but {attained} is attained: {cost:?}"
                        );
                    }
                }
            }
        }
    }
}

/// ε(δ) and δ(ε) tell the same story.
#[test]
fn going_there_and_back_loses_little() {
    for cost in every_cost() {
        let cost = cost.repeat(30);
        let there = epsilon(&cost, 1e-5, Name::Pld).unwrap();
        let back = delta(&cost, there.upper, Name::Pld).unwrap();
        assert!(back.lower <= 1e-5 * 1.001, "{cost:?}: {there:?} and back {back:?}");
        if !matches!(cost.leaves()[0].0, Cost::Concentrated { .. }) {
            assert!(back.upper > 0.9e-5 || there.upper == 0.0, "{cost:?}: {there:?} and back {back:?}");
            assert!(back.upper < 1.1e-5, "{cost:?}: {there:?} and back {back:?}");
        }
    }
}

/// The whole range that is promised: never a NaN, never a lower bound above an upper one.
#[test]
fn no_corner_of_the_parameters_breaks_an_accountant() {
    for rate in [1e-9, 1e-5, 0.01, 0.5, 0.999, 1.0] {
        for noise in [0.2, 1.0, 30.0, 1000.0] {
            for steps in [1, 1000, 100_000_000] {
                for change in [Change::AddRemove, Change::Replace] {
                    let cost = Cost::Sampled(sampled(noise, rate, Draw::Unit, change)).repeat(steps);
                    let best = upper(&cost, 1e-6, Name::Pld).unwrap();
                    for name in [Name::Rdp, Name::Gdp, Name::Zcdp] {
                        let other = upper(&cost, 1e-6, name).unwrap();
                        let at = format!("{name}: rate {rate}, noise {noise}, {steps} steps, {change:?}");
                        assert!(best <= other * 1.01 + 1e-9, "{at}: PLD says {best}, more than {other}");
                    }
                }
            }
        }
    }
}

/// Losses so large that e^ε is hardly a number: never a small answer, never a panic.
#[test]
fn what_reveals_nearly_everything_is_never_priced_low() {
    let pure = |e: f64| Cost::Pure { epsilon: eps(e) };
    for (e, times, d) in [
        (40.0, 2_u32, 0.01),
        (35.0, 3, 1e-4),
        (36.0, 2, 1e-4),
        (49.0, 2, 1e-9),
        (60.0, 2, 0.01),
        (60.0, 2, 0.5),
        (1300.0, 5, 1e-6),
    ] {
        let all = e * f64::from(times);
        let loss = epsilon(&pure(e).repeat(times.into()), d, Name::Pld).unwrap();
        assert!(loss.upper >= all + (-d).ln_1p() - 1e-6 && loss.upper <= all * (1.0 + 1e-9), "{times} × {e}: {loss:?}");
        // Two or more such answers are distinguished almost surely, so δ(ε) is 1 − e^(ε − all) nearly.
        assert!(loss.lower <= all + (-d).ln_1p() + 1e-9 * all, "{times} × {e}: {loss:?}");
        let loss = epsilon(&Cost::BoundedRange { epsilon: eps(e) }.repeat(times.into()), d, Name::Pld).unwrap();
        assert!(loss.upper >= all / 2.0 - 1.0 && loss.upper <= all * (1.0 + 1e-9), "range, {times} × {e}: {loss:?}");
    }
    let geometric = epsilon(&Cost::Geometric { shift: 1, scale: 1e-3 }.repeat(2), 0.01, Name::Pld).unwrap();
    assert!(geometric.upper >= 1999.9, "{geometric:?}");
    let step = Cost::Sampled(sampled(1.0, 0.1, Draw::Unit, Change::Replace));
    let extreme = [
        Cost::Laplace { scale: 1e-310 },
        Cost::Geometric { shift: 3, scale: 1e-310 }.repeat(2),
        Cost::Series(vec![Cost::Gaussian { noise: 1e-160 }, pure(1.0)]),
        Cost::Laplace { scale: 1.0 / 700.0 }.repeat(2),
        Cost::Laplace { scale: 1e-3 }.repeat(2),
        Cost::Series(vec![Cost::Gaussian { noise: 1e-3 }, step.clone()]),
        Cost::Series(vec![pure(200.0), step.clone()]),
        pure(1e-19).repeat(1 << 40).repeat(1 << 40),
    ];
    for cost in extreme {
        let loss = epsilon(&cost, 1e-6, Name::Pld).unwrap();
        assert!(loss.upper > 190.0 && loss.lower <= loss.upper, "{cost:?}: {loss:?}");
        assert!(delta(&cost, 1.0, Name::Pld).unwrap().upper > 0.2, "{cost:?}");
    }
    // A tiny step next to a large one is no reason for a lattice as fine as the tiny one.
    let mixed = epsilon(&Cost::Series(vec![pure(1e-6), pure(1.0)]).repeat(100), 1e-6, Name::Pld).unwrap();
    assert!(mixed.upper - mixed.lower < 0.01 * mixed.upper, "{mixed:?}");
}

/// A δ that a run brings along is never lost to rounding, however small it is.
#[test]
fn the_delta_of_a_run_is_kept_to_the_last_digit() {
    let run = |e: f64, d: f64| Cost::Approximate { epsilon: eps(e), delta: Delta::new(d).unwrap() };
    for (cost, d) in [
        (run(1.0, 5e-15), 1e-15),
        (run(1e-4, 1e-15).repeat(100_000_000), 1e-8),
        (run(1e-3, 9e-15).repeat(1_000_000), 1e-9),
        (run(1.0, 5e-14), 4.999e-14),
        (run(80.0, 1e-9), 1e-10),
    ] {
        for name in [Name::Pld, Name::Basic, Name::Advanced, Name::Rdp, Name::Zcdp] {
            assert_eq!(epsilon(&cost, d, name).unwrap().upper, f64::INFINITY, "{name}: {cost:?} at δ = {d}");
        }
    }
    assert!(delta(&run(1.0, 5e-15), 2.0, Name::Pld).unwrap().upper >= 5e-15);
}

/// A user of 30 elements, drawn pair by pair: revealing the coins gives 2,220, leaving and coming 600, and 568 is attained.
#[test]
fn a_replaced_user_is_one_who_leaves_and_one_who_comes() {
    let user = Sampled { holds: 30, ..sampled(4.0, 0.01, Draw::Unit, Change::Replace) };
    let loss = epsilon(&Cost::Sampled(user).repeat(40_000), 1e-5, Name::Pld).unwrap();
    assert!(loss.lower > 560.0 && loss.upper < 610.0, "{loss:?}");
    let removed = Sampled { change: Change::AddRemove, ..user };
    let removed = epsilon(&Cost::Sampled(removed).repeat(40_000), 1e-5, Name::Pld).unwrap();
    assert!(removed.upper < loss.lower, "who is replaced loses more than who leaves: {removed:?}");
}

/// Wide discrete Laplace noise is not randomised response: what is said to be attained must be.
#[test]
fn wide_discrete_noise_attains_no_more_than_others_prove() {
    let cost = Cost::Geometric { shift: 2000, scale: 2000.0 };
    for (times, d) in [(1, 0.1), (100, 1e-6)] {
        let cost = cost.clone().repeat(times);
        let (pld, rdp) = (epsilon(&cost, d, Name::Pld).unwrap(), epsilon(&cost, d, Name::Rdp).unwrap());
        assert!(pld.lower <= rdp.upper && pld.upper <= rdp.upper, "{pld:?} and {rdp:?}");
    }
}

/// A cost of up to three kinds of leaves with parameters from tiny to huge.
fn any_cost(seed: u64) -> (Cost, f64) {
    let mut bits = Replay::new(seed);
    let mut uniform = || bits.bits(52) as f64 / (1_u64 << 52) as f64;
    let kinds = 1 + (uniform() * 3.0) as usize;
    let mut costs = Vec::new();
    for _ in 0..kinds {
        let times = 10f64.powf(5.0 * uniform()) as u64;
        let e = 10f64.powf(5.0 * uniform() - 3.0);
        let noise = 10f64.powf(3.0 * uniform() - 0.7);
        let elements = 1 + (20.0 * uniform()) as u64;
        let change = if uniform() < 0.5 { Change::AddRemove } else { Change::Replace };
        let draw = if uniform() < 0.4 { Draw::User { elements } } else { Draw::Unit };
        let leaf = match (8.0 * uniform()) as u32 {
            0 => Cost::Pure { epsilon: eps(e) },
            1 => Cost::Approximate { epsilon: eps(e), delta: Delta::new(10f64.powf(12.0 * uniform() - 16.0)).unwrap() },
            2 => Cost::Gaussian { noise },
            3 => Cost::Laplace { scale: 1.0 / e },
            4 => Cost::Geometric { shift: 1 + (40.0 * uniform()) as u64, scale: noise },
            5 => Cost::BoundedRange { epsilon: eps(e) },
            _ => {
                let sampling = if uniform() < 0.3 { Sampling::Fixed } else { Sampling::Poisson };
                let holds = if draw == Draw::Unit || uniform() < 0.5 { 1 } else { elements };
                let rate = 10f64.powf(-5.0 * uniform());
                Cost::Sampled(Sampled { noise, rate, sampling, draw, change, difference: 2.0, holds })
            }
        };
        costs.push(leaf.repeat(times));
    }
    (Cost::Series(costs), 10f64.powf(-1.0 - 11.0 * uniform()))
}

/// A user of 35 elements, of whom one comes or goes: the lowest point of the loss was once taken for one far to the left, where slopes are rounding, and ε for 0.
#[test]
fn what_is_known_of_one_element_is_never_nothing() {
    for i in 0..60 {
        let noise = 18.5 + 0.01 * f64::from(i);
        let cost =
            Cost::Sampled(sampled(noise, 0.577_301_211_825_141_8, Draw::User { elements: 35 }, Change::AddRemove));
        for steps in [1, 2] {
            let loss = epsilon(&cost.clone().repeat(steps), 1e-3, Name::Pld).unwrap();
            assert!(loss.lower > 0.07 && loss.upper < 0.14, "noise {noise}, {steps} steps: {loss:?}");
        }
        let nothing = delta(&cost, 0.0, Name::Pld).unwrap();
        assert!(nothing.lower > 0.012 && nothing.upper < 0.0126, "noise {noise}: {nothing:?}");
    }
}

/// Whatever is added up with whatever: no NaN, no bound below what is attained, and no way back that contradicts.
#[test]
fn any_mixture_of_costs_obeys_the_laws() {
    for seed in 1..=40 {
        let (cost, d) = any_cost(seed);
        let loss = epsilon(&cost, d, Name::Pld).unwrap();
        assert!(loss.lower <= loss.upper, "seed {seed}: {loss:?} for {cost:?}");
        for name in Name::ALL {
            if let Some(bound) = upper(&cost, d, name) {
                let attained = loss.lower * (1.0 - 1e-9);
                assert!(bound >= attained, "seed {seed}: {name} reports {bound}, {loss:?} is attained: {cost:?}");
            }
        }
        if loss.upper < f64::INFINITY {
            let back = delta(&cost, loss.upper, Name::Pld).unwrap();
            assert!(back.lower <= d * (1.0 + 1e-6), "seed {seed}: {loss:?} and back {back:?}: {cost:?}");
        }
    }
}

/// A run from the far corners: up to 10¹⁸ elements and steps, rates from 1e-18 to 1 − 1e-16, noise from 1e-6 to 1e9, δ from 1e-300.
fn any_extreme(seed: u64) -> (Sampled, u64, f64) {
    let mut bits = Replay::new(seed);
    let mut uniform = || bits.bits(52) as f64 / (1_u64 << 52) as f64;
    let elements = 10f64.powf(18.0 * uniform()) as u64;
    let rate = match (3.0 * uniform()) as u32 {
        0 => 10f64.powf(-18.0 * uniform()),
        1 => 1.0 - 10f64.powf(-16.0 * uniform()),
        _ => 1.0 - f64::EPSILON / 2.0,
    };
    let steps = if uniform() < 0.5 { 10f64.powf(18.0 * uniform()) } else { 10f64.powf(3.0 * uniform()) } as u64;
    let noise = 10f64.powf(15.0 * uniform() - 6.0);
    let change = if uniform() < 0.5 { Change::AddRemove } else { Change::Replace };
    let (draw, all) = if uniform() < 0.7 { (Draw::User { elements }, elements) } else { (Draw::Unit, elements) };
    let holds = if uniform() < 0.6 { 1 } else { all };
    (Sampled { holds, ..sampled(noise, rate, draw, change) }, steps, 10f64.powf(-0.3 - 299.0 * uniform().powi(3)))
}

/// In every corner, and both ways: no NaN, no bound below what is attained, and none that more noise, fewer steps or a lower rate
/// would show to be too small.
#[test]
fn no_extreme_breaks_the_laws() {
    for seed in 1..=16 {
        let (step, steps, d) = any_extreme(seed);
        let cost = |step: Sampled, steps: u64| Cost::Sampled(step).repeat(steps);
        let (loss, _) = epsilon_by(&cost(step, steps), d, Name::Pld).unwrap();
        let at = format!("seed {seed}, {steps} steps at δ = {d:e} of {step:?}: {loss:?}");
        for name in Name::ALL {
            let bound = upper(&cost(step, steps), d, name).unwrap();
            assert!(bound >= loss.lower, "{name} reports {bound}: {at}");
            assert!(name == Name::Pld || loss.upper <= bound * (1.0 + 1e-9), "{name} proves {bound}: {at}");
        }
        let rate = step.rate * 0.9;
        let cheaper = [
            cost(Sampled { noise: step.noise * 1.1, ..step }, steps),
            cost(step, steps / 2),
            cost(Sampled { rate, ..step }, steps),
        ];
        for less in cheaper {
            let less = epsilon(&less, d, Name::Pld).unwrap();
            assert!(less.lower <= loss.upper * (1.0 + 1e-9), "{less:?} is attained by less: {at}");
        }
        if seed % 3 == 0 && loss.upper < f64::INFINITY {
            let back = delta(&cost(step, steps), loss.upper, Name::Pld).unwrap();
            assert!(back.lower <= d * (1.0 + 1e-6) && back.upper <= 1.0, "and back {back:?}: {at}");
        }
    }
}

/// A number is reported under the name of the accountant that proved it, also where one part of it was simply added.
#[test]
fn who_proved_a_part_is_named_for_the_whole() {
    let part = Cost::Concentrated { rho: Rho::new(0.1).unwrap() };
    let (_, by) = epsilon_by(&part, 1e-5, Name::Pld).unwrap();
    assert_ne!(by, Name::Pld, "of a zCDP run there is no distribution of losses");
    let whole = Cost::Series(vec![Cost::Pure { epsilon: eps(60.0) }, part]);
    let (loss, by) = epsilon_by(&whole, 1e-5, Name::Pld).unwrap();
    assert!(by != Name::Pld && loss.upper > 60.0, "{loss:?} by {by}");
}

/// The ε at which 0.01·δ_Gauss(ε; 2) is 1e-5, with 17 of 40 digits.
const SHOWN_ONCE: f64 = 7.581_279_924_570_114;

/// A user with very many elements gives the draw away, however many there are: once, ten million of them cost less than
/// three hundred, and a thousand million nothing at all.
#[test]
fn more_elements_than_tell_the_draw_cost_no_less() {
    let price = |elements: u64| {
        let step = sampled(1.0, 0.01, Draw::User { elements }, Change::Replace);
        epsilon(&Cost::Sampled(step), 1e-5, Name::Pld).unwrap()
    };
    let (most, few) = (price(1_000_000_000_000_000_000), price(10));
    assert!(most.lower <= SHOWN_ONCE && most.upper >= SHOWN_ONCE && most.upper < SHOWN_ONCE * (1.0 + 1e-9), "{most:?}");
    assert!(few.upper <= most.upper);
    for elements in [100, 300, 10_000_000, 1_000_000_000, 1 << 53, (1 << 53) + 1, u64::MAX] {
        let loss = price(elements);
        assert!(loss.upper >= SHOWN_ONCE && loss.lower <= SHOWN_ONCE, "{elements} elements: {loss:?}");
    }
    // The noise for it is that of the coin in view, not 8.7e-19.
    let step = sampled(1.0, 0.01, Draw::User { elements: 1_000_000_000 }, Change::Replace);
    let target = calibrate::Target { epsilon: 2.0, delta: 1e-5 };
    let found = calibrate::noise(&step, 100, target, Name::Pld).unwrap();
    assert!((1.0..20.0).contains(&found.value) && found.loss.upper <= 2.0, "{found:?}");
}

/// With every unit drawn it makes no difference whether units or whole users were: nor for the user's price, to which the
/// difference of two neighbours of one unit says nothing.
#[test]
fn a_user_has_one_price_where_everything_is_drawn() {
    let price = |draw: Draw, difference: f64, name: Name| {
        let step = Sampled { difference, holds: 30, ..sampled(30.0, 1.0, draw, Change::Replace) };
        upper(&Cost::Sampled(step).repeat(50), 1e-5, name)
    };
    for name in Name::ALL {
        let full = price(Draw::Unit, 2.0, name);
        for difference in [2.0, 0.5, 0.05] {
            assert_eq!(price(Draw::Unit, difference, name), full, "{name}: pairs drawn, difference {difference}");
            let users = price(Draw::User { elements: 30 }, difference, name);
            assert_eq!(users, full, "{name}: users drawn, difference {difference}");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// Random runs: bounds enclose, and the other accountants are above what is attained.
    #[test]
    fn random_runs_obey_the_laws(
        noise in 0.3_f64..20.0, rate in 1e-4_f64..1.0, steps in 1_u64..5000, elements in 1_u64..40,
        replace: bool, whole_users: bool, exponent in 3.0_f64..10.0,
    ) {
        let change = if replace { Change::Replace } else { Change::AddRemove };
        let draw = if whole_users { Draw::User { elements } } else { Draw::Unit };
        let d = 10f64.powf(-exponent);
        let cost = Cost::Sampled(sampled(noise, rate, draw, change)).repeat(steps);
        let loss = epsilon(&cost, d, Name::Pld).unwrap();
        prop_assert!(loss.lower <= loss.upper);
        for name in [Name::Rdp, Name::Gdp, Name::Zcdp, Name::Advanced, Name::Basic] {
            if let Some(bound) = upper(&cost, d, name) {
                prop_assert!(bound >= loss.lower, "{} reports {} and {} is attained", name, bound, loss.lower);
            }
        }
        let finer = Cost::Sampled(sampled(noise * 1.1, rate, draw, change)).repeat(steps);
        prop_assert!(epsilon(&finer, d, Name::Pld).unwrap().lower <= loss.upper);
    }
}
