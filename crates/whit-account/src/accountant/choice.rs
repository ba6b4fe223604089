//! The divergence of the best of several runs, from that of one (Papernot and Steinke 2022, Theorem 2).

use whit_core::RunLaw;

/// The second orders that are looked at. Each of them gives a bound, and the least is taken: what lies between them would be a little less, and takes as long again to find.
const ORDERS: [f64; 22] = [
    1.2, 1.5, 2.0, 2.5, 3.0, 4.0, 5.0, 6.0, 8.0, 11.0, 16.0, 23.0, 32.0, 45.0, 64.0, 90.0, 128.0, 181.0, 256.0, 512.0,
    1024.0, 4096.0,
];

/// Beyond what roundings of the formula may take away, relative to it.
const RAISE: f64 = 1e-13;

/// By how much the number of runs, which is drawn from a grid, may differ from its law: more than 40/2^64.
const GRID: f64 = 1e-17;

/// D_α of the best of so many runs, where one run has at most divergence `one`, at any order: an upper bound. What it says is proved where the mechanism is,
/// [`BestOf`](whit_core::mechanism::best::BestOf).
pub(super) fn divergence_up(law: &RunLaw, alpha: f64, mut one: impl FnMut(f64) -> f64) -> f64 {
    let (more, ln_rest) = match *law {
        RunLaw::Geometric { stop } => (2.0, -stop.ln()),
        RunLaw::Logarithmic { spread } => (1.0, spread),
    };
    // At order 1 nothing is asked of a run, and at infinity all.
    let ends = ln_rest.min(one(f64::INFINITY));
    let second = ORDERS.into_iter().fold(ends, |least, order| {
        let bound = (1.0 - 1.0 / order) * one(order) + ln_rest / order;
        if bound < least { bound } else { least } // not a number is no bound
    });
    let (many, grid) = if alpha == f64::INFINITY {
        (0.0, 2.0 * GRID)
    } else {
        (law.mean().ln().max(0.0) / (alpha - 1.0), GRID * (2.0 + 1.0 / (alpha - 1.0)))
    };
    (one(alpha) + more * second + many) * (1.0 + RAISE) + grid
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::accountant::{Name, divergence, epsilon};
    use whit_core::{Change, Cost, Delta, Draw, Epsilon, Sampled, Sampling};
    use whit_noise::{Entropy, Replay};

    const LAWS: [RunLaw; 5] = [
        RunLaw::Geometric { stop: 0.5 },
        RunLaw::Geometric { stop: 0.05 },
        RunLaw::Logarithmic { spread: 0.5 },
        RunLaw::Logarithmic { spread: 2.0 },
        RunLaw::Logarithmic { spread: 6.0 },
    ];

    /// E[x^K].
    fn generating(law: &RunLaw, x: f64) -> f64 {
        match *law {
            RunLaw::Geometric { stop } => stop * x / (1.0 - (1.0 - stop) * x),
            RunLaw::Logarithmic { spread } => -(-(1.0 - (-spread).exp()) * x).ln_1p() / spread,
        }
    }

    /// The law of the best of several, the last output being the best.
    fn best(one: &[f64], generating: impl Fn(f64) -> f64) -> Vec<f64> {
        let mut below = 0.0;
        let each = one.iter().map(|probability| {
            let upto = (below + probability).min(1.0);
            let found = generating(upto) - generating(below);
            below = upto;
            found
        });
        each.collect()
    }

    /// D_α of two laws on few outputs, in the worse direction; the largest log-ratio at infinite order.
    fn apart(p: &[f64], q: &[f64], alpha: f64) -> f64 {
        let one = |p: &[f64], q: &[f64]| {
            let pairs = p.iter().zip(q);
            if alpha == f64::INFINITY {
                return pairs.map(|(p, q)| (p / q).ln()).fold(0.0, f64::max);
            }
            pairs.map(|(p, q)| p * (p / q).powf(alpha - 1.0)).sum::<f64>().ln() / (alpha - 1.0)
        };
        one(p, q).max(one(q, p)).max(0.0)
    }

    /// Two laws on so many outputs, now near one another and now far, with outputs that hardly ever come.
    fn neighbours(outputs: usize, coins: &mut Replay) -> (Vec<f64>, Vec<f64>) {
        let mut weight = |spread: f64| (spread * (coins.bits(30) as f64 / f64::from(1 << 29) - 1.0)).exp();
        let first: Vec<f64> = (0..outputs).map(|_| weight(6.0)).collect();
        let second: Vec<f64> = first.iter().map(|one| one * weight(1.5)).collect();
        let whole = |law: Vec<f64>| {
            let sum: f64 = law.iter().sum();
            law.into_iter().map(|one| one / sum).collect::<Vec<f64>>()
        };
        (whole(first), whole(second))
    }

    #[test]
    fn no_choice_is_told_apart_more_easily_than_the_theorem_says() {
        let mut coins = Replay::new(0xc401ce);
        let mut nearest = f64::INFINITY;
        for round in 0..400 {
            let (p, q) = neighbours(2 + round % 3, &mut coins);
            for law in &LAWS {
                let (bp, bq) = (best(&p, |x| generating(law, x)), best(&q, |x| generating(law, x)));
                assert!((bp.iter().sum::<f64>() - 1.0).abs() < 1e-9);
                for alpha in [1.1, 1.5, 2.0, 4.0, 10.0, 40.0, f64::INFINITY] {
                    let bound = divergence_up(law, alpha, |order| apart(&p, &q, order));
                    let truth = apart(&bp, &bq, alpha);
                    assert!(truth <= bound * (1.0 + 1e-9) + 1e-9, "{law:?} α {alpha}: {truth} of {bound}, {p:?} {q:?}");
                    nearest = nearest.min(bound / truth.max(1e-3));
                }
            }
        }
        assert!(nearest < 1.5, "some choice comes near its price: {nearest}");
    }

    /// A mechanism that says "bad" hardly ever, and e^ε times as often on a neighbour: the best of k says it only where all of them do.
    #[test]
    fn paying_for_one_run_is_too_little() {
        let epsilon = 0.5_f64;
        let (p, q) = ([1e-3 * epsilon.exp(), 1.0 - 1e-3 * epsilon.exp()], [1e-3, 1.0 - 1e-3]);
        assert!((apart(&p, &q, f64::INFINITY) - epsilon).abs() < 1e-9, "one run");
        for k in [2_i32, 3] {
            let of = |law: &[f64]| best(law, |x| x.powi(k));
            let found = apart(&of(&p), &of(&q), f64::INFINITY);
            assert!((found - f64::from(k) * epsilon).abs() < 1e-9, "of {k} runs, always: {found}");
        }
        // A random number is no way around it either; it only bounds what it comes to.
        let (p, q) = ([0.6 * epsilon.exp(), 1.0 - 0.6 * epsilon.exp()], [0.6, 0.4]);
        for law in &LAWS {
            let of = |one: &[f64]| best(one, |x| generating(law, x));
            let (one, found) = (apart(&p, &q, 2.0), apart(&of(&p), &of(&q), 2.0));
            let bound = divergence_up(law, 2.0, |order| apart(&p, &q, order));
            assert!(found <= bound, "{law:?}: {found} of {bound}");
            let several = matches!(law, RunLaw::Geometric { stop } if *stop < 0.1)
                || matches!(law, RunLaw::Logarithmic { spread } if *spread > 5.0);
            assert!(!several || found > 0.0 && bound > one, "{law:?}: {found}, one run has {one}");
        }
        let (p, q) = ([0.3, 0.7], [0.3 * epsilon.exp(), 1.0 - 0.3 * epsilon.exp()]);
        let geometric = |one: &[f64]| best(one, |x| generating(&LAWS[1], x));
        let found = apart(&geometric(&p), &geometric(&q), f64::INFINITY);
        assert!((apart(&p, &q, f64::INFINITY) - epsilon).abs() < 1e-9);
        assert!(found > 1.5 * epsilon && found <= 3.0 * epsilon, "of twenty runs on average: {found}");
    }

    #[test]
    fn a_pure_choice_costs_two_or_three_runs_whatever_their_number() {
        let pure = Cost::Pure { epsilon: Epsilon::new(0.1).unwrap() };
        for (law, runs) in [(RunLaw::Geometric { stop: 1e-3 }, 3.0), (RunLaw::Logarithmic { spread: 9.0 }, 2.0)] {
            let chosen = Cost::Chosen { candidates: vec![pure.clone(), Cost::Nothing], law };
            for accountant in [Name::Basic, Name::Rdp, Name::Pld] {
                let found = epsilon(&chosen, 0.0, accountant).unwrap().upper;
                assert!((found - 0.1 * runs).abs() < 1e-9 && found >= 0.1 * runs, "{accountant}: {found}");
            }
        }
    }

    fn step(noise: f64) -> Cost {
        let (sampling, draw, change) = (Sampling::Poisson, Draw::Unit, Change::AddRemove);
        Cost::Sampled(Sampled { noise, rate: 0.01, sampling, draw, change, difference: 2.0, holds: 1 })
    }

    /// Numbers of mpmath with 40 digits, by the formula of the paper, with the best second order of all real ones.
    #[test]
    fn the_price_of_a_choice_is_that_of_the_theorem() {
        for (law, noise, alpha, expected) in ORACLE {
            let chosen = Cost::Chosen { candidates: vec![Cost::Gaussian { noise }], law };
            let found = divergence::run_divergence_up(&chosen, alpha).unwrap();
            assert!(
                found >= expected * (1.0 - 1e-12) && found < expected * 1.02,
                "{law:?}, σ {noise}, α {alpha}: {found} for {expected}"
            );
        }
    }

    /// law, noise, order, divergence
    const ORACLE: [(RunLaw, f64, f64, f64); 6] = [
        (RunLaw::Geometric { stop: 0.5 }, 2.0, 8.0, 2.0264310483097526),
        (RunLaw::Geometric { stop: 0.05 }, 4.0, 20.0, 1.9440435350011446),
        (RunLaw::Logarithmic { spread: 0.5 }, 1.0, 3.0, 2.1301975254963784),
        (RunLaw::Logarithmic { spread: 2.0 }, 4.0, 16.0, 1.046179290771413),
        (RunLaw::Logarithmic { spread: 6.0 }, 2.0, 5.0, 3.2834904829196237),
        (RunLaw::Geometric { stop: 0.01 }, 10.0, 64.0, 0.99006879121418697),
    ];

    #[test]
    fn the_dearest_candidate_is_paid_for_and_more_runs_cost_more() {
        let law = RunLaw::Logarithmic { spread: 3.0 };
        let chosen = |candidates: Vec<Cost>, law: RunLaw| Cost::Chosen { candidates, law };
        let price = |cost: &Cost| epsilon(cost, 1e-6, Name::Rdp).unwrap().upper;
        let (cheap, dear) = (step(2.0).repeat(100), step(1.0).repeat(100));
        let both = price(&chosen(vec![cheap.clone(), dear.clone()], law));
        assert!(both >= price(&chosen(vec![dear.clone()], law)) && both > price(&chosen(vec![cheap], law)));
        assert!(both > price(&dear), "a choice costs more than one run");
        let loud = Cost::Gaussian { noise: 0.3 };
        let chosen_loud = price(&chosen(vec![loud.clone()], law));
        assert!(
            chosen_loud < price(&loud.repeat(6)),
            "and less than the six that there are on average, where they are dear"
        );
        let mut before = 0.0;
        for spread in [0.1, 1.0, 3.0, 6.0] {
            let next = price(&chosen(vec![dear.clone()], RunLaw::Logarithmic { spread }));
            assert!(next > before, "spread {spread}");
            before = next;
        }
        // What PLD says of it is Rényi's, by name.
        let (loss, by) = crate::accountant::epsilon_by(&chosen(vec![dear], law), 1e-6, Name::Pld).unwrap();
        assert_eq!((loss.upper, loss.lower, by), (both, 0.0, Name::Rdp));
    }

    #[test]
    fn what_sets_a_delta_aside_is_not_chosen_among() {
        let law = RunLaw::Geometric { stop: 0.5 };
        let aside = Cost::Approximate { epsilon: Epsilon::new(0.1).unwrap(), delta: Delta::new(1e-9).unwrap() };
        for candidate in [aside.clone(), Cost::Series(vec![Cost::Nothing, aside.repeat(2)]), Cost::Everything] {
            let chosen = Cost::Chosen { candidates: vec![Cost::Nothing, candidate], law };
            for accountant in [Name::Rdp, Name::Pld, Name::Basic] {
                assert_eq!(epsilon(&chosen, 1e-6, accountant).unwrap().upper, f64::INFINITY);
            }
        }
        let gaussian = Cost::Chosen { candidates: vec![Cost::Gaussian { noise: 1.0 }], law };
        for accountant in [Name::Gdp, Name::Zcdp] {
            let said = epsilon(&gaussian, 1e-6, accountant).unwrap_err().to_string();
            assert!(said.contains("the best of several runs") && said.contains("rdp"), "{said}");
        }
    }
}
