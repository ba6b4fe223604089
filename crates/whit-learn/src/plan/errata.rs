//! Where the papers' accounting is wrong, a plan is right. Numbers are those of the errata, where nothing is said of
//! floats, so these plans have no slack; `every_price_counts_on_less_noise_than_is_drawn` has what slack adds.

use super::tests::ladder;
use super::*;
use whit_core::Unit;

fn element(k: u64, rate: &str, steps: u64) -> Draft {
    let units = vec![Unit::element("user", "topic"), Unit::user("user", Change::Replace)];
    Draft::new(ladder(units, k, Kind::Element), rate.parse().unwrap(), Count::Declared(100_000), 1.0, steps)
}

fn event(change: Change, rate: &str, steps: u64) -> Draft {
    let units = vec![Unit::event(change)];
    Draft::new(ladder(units, 1, Kind::Event), rate.parse().unwrap(), Count::Declared(100_000), 1.0, steps)
}

/// What rung number `rung` of the draft loses at δ, without slack.
fn loss_on(rung: usize, draft: Draft, noise: f64, delta: f64) -> Loss {
    let plan = draft.checked(noise, 0.0).unwrap();
    epsilon(&plan.cost(&plan.ladder().rungs()[rung]), delta, Name::Pld).unwrap()
}

fn near(value: f64, expected: f64) -> bool {
    (value - expected).abs() <= 2e-3 * expected
}

/// E1: the paper's pair is for (user, element) pairs with coins of their own. Whole users give the draw away.
#[test]
fn whole_users_cost_what_their_other_elements_give_away() {
    let delta = 1000_f64.powf(-1.1);
    for (k, attained, sound) in [(2, 1.1025, 1.2542), (5, 2.8198, 3.2754), (8, 4.991, 5.738), (10, 5.6388, 6.4886)] {
        let printed = loss_on(0, element(k, "0.05", 200), 4.0, delta);
        assert!(near(printed.upper, 0.9732), "{printed:?}");
        let users = loss_on(0, Draft { drawn: Drawn::Users, ..element(k, "0.05", 200) }, 4.0, delta);
        assert!(near(users.upper, sound) && near(users.lower, attained), "k = {k}: {users:?}");
        assert!(printed.upper < users.lower);
    }
    let one = loss_on(0, Draft { drawn: Drawn::Users, ..element(1, "0.05", 200) }, 4.0, delta);
    assert!(near(one.upper, 0.9732), "with one element a user the claim is right");
}

/// E1, Figure 3, and E17: the noise for ε = 1. Reading the user's rung of per-element clipping takes ten times the noise;
/// a user that is clipped once as one bag takes no more than an element.
#[test]
fn calibrated_noise_is_that_of_the_errata() {
    let target = Target { epsilon: 1.0, delta: 1000_f64.powf(-1.1) };
    let noise = |draft: Draft| draft.calibrated(target, 0.0).unwrap().noise();
    assert!(near(noise(element(10, "0.05", 200)), 3.908));
    for (k, sound) in [(10, 9.790), (8, 8.700)] {
        assert!(near(noise(Draft { drawn: Drawn::Users, ..element(k, "0.05", 200) }), sound), "k = {k}");
    }
    let ten = loss_on(1, Draft { drawn: Drawn::Users, ..element(10, "0.05", 200) }, 39.08, target.delta);
    assert!(near(ten.upper, 1.0), "the user's rung, ten elements clipped one by one: {ten:?}");
    let user = ladder(vec![Unit::user("user", Change::Replace)], 10, Kind::User);
    let once = Draft { ladder: user, drawn: Drawn::Users, ..element(10, "0.05", 200) };
    assert!(near(noise(once), 3.908), "a user clipped once as one bag");
}

/// E3: when a unit is out of a batch of fixed size, another one is in.
#[test]
fn a_batch_of_fixed_size_costs_more_than_coins() {
    for (rate, noise, delta, printed, attained, sound) in
        [("0.001", 0.8, 1e-6, 0.5059, 8.6306, 8.7499), ("0.01", 1.0, 1e-5, 2.8434, 13.361, 14.821)]
    {
        let coins = loss_on(0, event(Change::Replace, rate, 1000), noise, delta);
        let fixed = Draft { sampling: Sampling::Fixed, ..event(Change::Replace, rate, 1000) };
        let fixed = loss_on(0, fixed, noise, delta);
        assert!(near(coins.upper, printed), "{coins:?}");
        assert!(near(fixed.upper, sound) && near(fixed.lower, attained), "{fixed:?}");
        assert!(coins.upper < fixed.lower);
    }
}

/// E4: the change is that of the unit, and an add-remove price for a replace unit would be too low.
#[test]
fn a_replacement_is_not_priced_as_an_addition() {
    for (rate, noise, steps, delta, added, replaced) in
        [("0.05", 4.0, 200, 1000_f64.powf(-1.1), 0.4522, 0.9732), ("0.01", 1.0, 1000, 1e-5, 1.8282, 2.8434)]
    {
        let wrong = loss_on(0, event(Change::AddRemove, rate, steps), noise, delta);
        let right = loss_on(0, event(Change::Replace, rate, steps), noise, delta);
        assert!(near(wrong.upper, added) && near(right.upper, replaced), "{wrong:?} {right:?}");
        assert!(wrong.upper < right.lower);
    }
}

/// F1: a small L_f does not make the draw smaller. F2: the multiplier is over C, and a replacement moves 2C.
#[test]
fn what_features_share_shows_that_they_were_drawn() {
    let rows = [
        (2.0, 100, 6.2331, 6.2331, 21.547),
        (2_f64.sqrt(), 100, 5.1981, 5.6280, 9.336),
        (1.0, 100, 4.3763, 4.8243, 4.3763),
        (0.5, 100, 2.7309, 3.0019, 1.3990),
        (0.1, 100, 0.5532, 0.6098, 0.2081),
        (2.0, 1000, 24.8743, 24.8743, 75.371),
        (0.5, 1000, 7.9653, 9.8873, 4.7760),
        (0.1, 1000, 1.5041, 1.8618, 0.7220),
    ];
    for (difference, steps, attained, sound, printed) in rows {
        let feature = ladder(vec![Unit::feature(&[], &["age"])], 1, Kind::Feature);
        let draft = Draft { ladder: feature, difference, ..event(Change::Replace, "1/16", steps) };
        let right = loss_on(0, draft, 1.0, 1e-5);
        assert!(near(right.upper, sound) && near(right.lower, attained), "L_f = {difference}: {right:?}");
        let paper = loss_on(0, event(Change::AddRemove, "1/16", steps), 1.0 / difference, 1e-5);
        assert!(near(paper.upper, printed), "L_f = {difference}: {paper:?}");
        assert!(difference >= 1.0 || paper.upper < right.lower);
    }
    let (short, long) = (event(Change::AddRemove, "1/16", 100), event(Change::AddRemove, "1/16", 1000));
    assert!(near(loss_on(0, short, 1.0, 1e-5).upper, 4.3763) && near(loss_on(0, long, 1.0, 1e-5).upper, 14.2763));
}

/// F3: noise is a multiple of the clip norm *on the sum*; over the mean of m = 64 it is σ·C/m = 1/64 at multiplier 1.
/// C10: the divisor is the expected batch, whatever was drawn; `the_divisor_is_not_what_was_drawn` has it in action.
#[test]
fn noise_is_for_the_sum_and_the_divisor_is_declared() {
    let draft = Draft { units: Count::Declared(1024), ..event(Change::Replace, "1/16", 100) };
    let plan = draft.with_noise(1.0).unwrap();
    assert_eq!(plan.divisor(), 64.0);
    assert_eq!(plan.noise() * plan.clip().norm / plan.divisor(), 1.0 / 64.0);
    let fine = loss_on(0, event(Change::Replace, "1/16", 100), 1.0, 1e-5);
    let mistaken = loss_on(0, event(Change::Replace, "1/16", 100), 1.0 / 64.0, 1e-5);
    assert!(near(fine.upper, 6.2331) && mistaken.upper > 1000.0, "σ of the mean is not a multiplier: {mistaken:?}");
}
