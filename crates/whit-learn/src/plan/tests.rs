use super::*;
use whit_core::{Caps, Unit};

pub(super) fn ladder(units: Vec<Unit>, elements: u64, protect: Kind) -> Ladder {
    let caps = Caps { elements_per_user: Some(elements), rows_per_element: Some(1) };
    Ladder::new(units, caps, protect).unwrap()
}

fn elements() -> Ladder {
    ladder(vec![Unit::element("user", "topic"), Unit::user("user", Change::Replace)], 10, Kind::Element)
}

fn draft(ladder: Ladder) -> Draft {
    Draft::new(ladder, "1/100".parse().unwrap(), Count::Declared(10_000), 1.0, 100)
}

fn events(change: Change) -> Draft {
    draft(ladder(vec![Unit::event(change)], 1, Kind::Event))
}

fn step_of(plan: &Plan, rung: usize) -> Sampled {
    match plan.cost(&plan.ladder().rungs()[rung]) {
        Cost::Repeat { times, cost } if times == plan.steps() => match *cost {
            Cost::Sampled(sampled) => sampled,
            other => panic!("{other:?}"),
        },
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_plan_charges_every_rung_for_what_it_holds() {
    let pairs = draft(elements()).with_noise(4.0).unwrap();
    assert_eq!((step_of(&pairs, 0).holds, step_of(&pairs, 0).draw), (1, Draw::Unit));
    assert_eq!(step_of(&pairs, 1).holds, 10, "ten bags become ten others, and not twenty bags change");
    let users = Draft { drawn: Drawn::Users, ..draft(elements()) }.with_noise(4.0).unwrap();
    assert_eq!((step_of(&users, 0).holds, step_of(&users, 0).draw), (1, Draw::User { elements: 10 }));
    assert_eq!((step_of(&users, 1).holds, step_of(&users, 1).draw), (10, Draw::User { elements: 10 }));
    assert_eq!(users.charge().len(), 2);
    let stranger = Rung { unit: Unit::event(Change::Replace), holds: 1, disjoint: false, slices: None };
    assert_eq!(users.cost(&stranger), Cost::Everything, "a unit that is not on the ladder is promised nothing");
    let user = ladder(vec![Unit::user("user", Change::AddRemove)], 10, Kind::User);
    let whole = Draft { drawn: Drawn::Users, ..draft(user) }.with_noise(4.0).unwrap();
    assert_eq!(whole.draw(), Draw::Unit, "a user unit is one bag with one coin");
}

#[test]
fn every_price_counts_on_less_noise_than_is_drawn() {
    let plan = draft(elements()).with_noise(4.0).unwrap();
    assert_eq!(plan.slack(), 9.0 / 1024.0);
    let step = step_of(&plan, 0);
    assert!(step.noise * (1.0 + plan.slack()) <= 4.0 && step.noise.next_up() * (1.0 + plan.slack()) > 4.0 - 1e-15);
    let rate = Ratio::from_f64_down(step.rate).unwrap();
    assert!(rate >= *plan.rate() && step.rate < 0.01 * (1.0 + 1e-14), "the rate is rounded up");
    assert_eq!(plan.divisor(), 100.0);
    assert_eq!((plan.protects(), plan.sampling(), plan.places()), (Kind::Element, Sampling::Poisson, None));
}

/// d·C + slack·C is what two lattice points are apart; the price must be for as much, at every d, and not for more
/// than a hair beyond it. At d < 1, scaling d alone by 1 + slack would not be enough.
#[test]
fn slack_is_paid_for_at_every_difference() {
    let labels = || draft(ladder(vec![Unit::label(&[], "ill")], 1, Kind::Label));
    for difference in [2.0, 2_f64.sqrt(), 1.0, 0.5, 0.1, 0.001] {
        let plan = Draft { difference, ..labels() }.with_noise(1.0).unwrap();
        let step = step_of(&plan, 0);
        // in units of σ: what is paid for, and what the lattice points are apart
        let (paid, apart) = (step.difference / step.noise, difference + plan.slack());
        assert!(paid >= apart && paid <= apart * (1.0 + 1e-14), "{difference}: {paid} for {apart}");
        assert!(difference >= 1.0 || difference * (1.0 + plan.slack()) < apart);
        assert!(1.0 / step.noise >= 1.0 + plan.slack(), "the reach");
    }
}

#[test]
fn a_calibrated_plan_keeps_its_promise_and_wastes_little() {
    let target = Target { epsilon: 1.0, delta: 1e-5 };
    for draft in [draft(elements()), Draft { drawn: Drawn::Users, ..draft(elements()) }, events(Change::AddRemove)] {
        let plan = draft.for_target(target).unwrap();
        let loss = plan.loss(target.delta).unwrap()[0].1;
        assert!(loss.upper <= 1.0 && loss.upper > 0.999, "{loss:?}");
    }
}

/// What is stated is what was asked for, also where an ε promises little: the card has the very bound by which the noise was found.
#[test]
fn a_large_epsilon_is_stated_by_the_bound_that_its_noise_was_found_by() {
    for epsilon in [55.0, 61.0, 70.0, 150.0] {
        let target = Target { epsilon, delta: 1e-5 };
        for draft in [draft(elements()), events(Change::AddRemove)] {
            let plan = draft.for_target(target).unwrap();
            let loss = plan.loss(target.delta).unwrap();
            let stated = loss[0].1.upper;
            assert!(stated <= epsilon && stated > 0.99 * epsilon, "asked {epsilon}, and {stated} is stated");
            assert!(loss.windows(2).all(|pair| pair[0].1.upper <= pair[1].1.upper), "{loss:?}");
        }
    }
}

#[test]
fn a_coarser_rung_never_costs_less() {
    for drawn in [Drawn::Units, Drawn::Users] {
        let loss = Draft { drawn, ..draft(elements()) }.with_noise(2.0).unwrap().loss(1e-5).unwrap();
        assert!(loss[0].1.upper < loss[1].1.upper, "{drawn:?}: {loss:?}");
    }
}

#[test]
fn clipping_layer_by_layer_stays_within_the_norm() {
    for layers in 1..200 {
        for norm in [1.0, 0.3, 7.7e9] {
            let part = Clip { norm, how: Clipping::PerLayer { layers } }.of_layer();
            // Σ part² ≤ C², in exact integers: part and norm are floats, so scale both to whole numbers.
            let (part, norm) = (Ratio::from_f64_up(part).unwrap(), Ratio::from_f64_up(norm).unwrap());
            let share = part.times(&norm.inverse().unwrap());
            let near = share.map_or(part.to_f64() / norm.to_f64(), |share| share.to_f64());
            assert!(near * near * f64::from(layers) <= 1.0 + 1e-15, "{layers} layers");
        }
    }
    assert_eq!(Clip { norm: 0.3, how: Clipping::PerLayer { layers: 1 } }.of_layer(), 0.3);
    assert_eq!(Clip { norm: 0.3, how: Clipping::Normalising }.of_layer(), 0.3);
}

#[test]
fn a_plan_that_cannot_be_kept_is_refused_with_the_next_step() {
    let refuse = |draft: Draft| {
        let error = draft.with_noise(1.0).unwrap_err();
        assert!(!error.hint().is_empty() && !error.to_string().is_empty());
        error
    };
    let base = || draft(elements());
    for rate in ["0", "3/2"] {
        assert!(matches!(refuse(Draft { rate: rate.parse().unwrap(), ..base() }), PlanError::Rate { .. }));
    }
    for norm in [0.0, -1.0, f64::NAN, f64::INFINITY, 1e-40, 1e40] {
        let clip = Clip { norm, how: Clipping::Flat };
        assert!(matches!(refuse(Draft { clip, ..base() }), PlanError::Clip { .. }), "{norm}");
    }
    let layers = Clip { norm: 1.0, how: Clipping::PerLayer { layers: 0 } };
    assert_eq!(refuse(Draft { clip: layers, ..base() }), PlanError::NoLayers);
    for noise in [0.0, -1.0, f64::NAN, f64::INFINITY, 1e-12] {
        assert!(matches!(base().with_noise(noise), Err(PlanError::Noise { .. })), "{noise}");
    }
    for difference in [0.0, 2.1, f64::NAN] {
        assert!(matches!(refuse(Draft { difference, ..base() }), PlanError::Difference { .. }));
    }
    assert!(matches!(refuse(Draft { difference: 1.0, ..base() }), PlanError::DifferenceOf { .. }));
    let normalised = Clip { norm: 1.0, how: Clipping::Normalising };
    let label = draft(ladder(vec![Unit::label(&[], "ill")], 1, Kind::Label));
    let near = Draft { difference: 1.0, clip: normalised, ..label.clone() };
    assert!(matches!(refuse(near), PlanError::DifferenceNormalised { .. }));
    assert_eq!(refuse(Draft { steps: 0, ..base() }), PlanError::NoSteps);
    assert_eq!(refuse(Draft { units: Count::Declared(0), ..base() }), PlanError::NoUnits);
    let no_user = draft(ladder(vec![Unit::element("user", "topic")], 10, Kind::Element));
    assert_eq!(refuse(Draft { drawn: Drawn::Users, ..no_user }), PlanError::NoUserRung { kind: Kind::Element });
    // C10, F3: a divisor that is counted from private rows; only where rows stay in view is their number public.
    for draft in [events(Change::AddRemove), events(Change::Replace), base()] {
        assert!(matches!(refuse(Draft { units: Count::Counted(9_999), ..draft }), PlanError::CountedUnits { .. }));
    }
    assert!(Draft { units: Count::Counted(9_999), ..label }.with_noise(1.0).is_ok());
}

#[test]
fn batches_of_fixed_size_need_a_public_number_of_whole_units() {
    let fixed = |draft: Draft| Draft { sampling: Sampling::Fixed, ..draft };
    assert!(matches!(fixed(events(Change::AddRemove)).with_noise(1.0), Err(PlanError::FixedSize { .. })));
    let plan = fixed(events(Change::Replace)).with_noise(1.0).unwrap();
    assert_eq!((plan.places(), plan.divisor()), (Some(10_000), 100.0));
    let odd = Draft { units: Count::Declared(9_999), ..fixed(events(Change::Replace)) };
    assert!(matches!(odd.with_noise(1.0), Err(PlanError::NotWhole { places: 9_999, .. })));
    // Ten elements that change at once, each with a place of its own: no accountant has a bound.
    assert!(matches!(fixed(draft(elements())).with_noise(1.0), Err(PlanError::Unpriced { .. })));
    let users = Draft { drawn: Drawn::Users, ..fixed(draft(elements())) };
    assert_eq!(users.clone().with_noise(1.0), Err(PlanError::NoUsers));
    let plan = Draft { users: Some(1_000), ..users }.with_noise(1.0).unwrap();
    assert_eq!((plan.places(), plan.divisor()), (Some(1_000), 100.0));
    // A user who goes leaves an empty place behind: a replacement, also where the rung says add-remove.
    let user = vec![Unit::element("user", "topic"), Unit::user("user", Change::AddRemove)];
    let mixed = Draft { drawn: Drawn::Users, users: Some(1_000), ..fixed(draft(ladder(user, 10, Kind::Element))) };
    assert_eq!(step_of(&mixed.with_noise(1.0).unwrap(), 1).change, Change::Replace);
}

#[test]
fn a_target_that_no_noise_reaches_is_said() {
    let never = Target { epsilon: 0.0, delta: 0.0 };
    let error = events(Change::Replace).for_target(never).unwrap_err();
    assert!(matches!(error, PlanError::Unreachable(_)), "{error:?}");
    let absurd = Target { epsilon: -1.0, delta: 1e-6 };
    assert!(matches!(events(Change::Replace).for_target(absurd), Err(PlanError::Unreachable(_))));
}

#[test]
fn what_accompanies_the_steps_is_promised_with_them() {
    let target = Target { epsilon: 2.0, delta: 1e-5 };
    let alone = events(Change::AddRemove).for_target(target).unwrap();
    let rung = alone.ladder().protected().clone();
    let with =
        |noise| Draft { accompanying: vec![(rung.clone(), Cost::Gaussian { noise })], ..events(Change::AddRemove) };
    let plan = with(5.0).for_target(target).unwrap();
    let lost = plan.loss(1e-5).unwrap()[0].1.upper;
    assert!(plan.noise() > alone.noise() && lost <= 2.0 && lost > 1.99, "{} {lost}", plan.noise());
    // The steps reserve what they cost themselves: the rest has a charge of its own.
    assert_eq!(plan.charge(), events(Change::AddRemove).with_noise(plan.noise()).unwrap().charge());
    let whole = Cost::Series(vec![Cost::Gaussian { noise: 5.0 }, plan.charge()[0].1.clone()]);
    assert_eq!(epsilon(&whole, 1e-5, Name::Pld).unwrap().upper, lost);
    assert!(matches!(with(0.5).for_target(target), Err(PlanError::Accompanying { .. })));
    // A rung that nothing is said of loses everything.
    let strange = Rung { unit: Unit::user("user", Change::Replace), ..rung };
    let plan =
        Draft { accompanying: vec![(strange, Cost::Nothing)], ..events(Change::AddRemove) }.with_noise(2.0).unwrap();
    assert_eq!(plan.loss(1e-5).unwrap()[0].1.upper, f64::INFINITY);
}

/// A row that a cap cuts makes room for another of its user, so a row that comes or goes replaces a bag, and one that becomes another user's replaces two. See `Cut`.
#[test]
fn rows_of_users_with_caps_are_priced_for_those_that_come_in() {
    let with_users = |change| {
        let units = vec![Unit::event(change), Unit::user("user", change)];
        let caps = whit_core::unit::Caps::one_element(7);
        draft(Ladder::new(units, caps, Kind::Event).unwrap())
    };
    let first = |draft: Draft| step_of(&draft.with_noise(1.0).unwrap(), 0);
    let (alone, cut) = (first(events(Change::AddRemove)), first(with_users(Change::AddRemove)));
    assert_eq!((alone.change, alone.holds), (Change::AddRemove, 1));
    assert_eq!((cut.change, cut.holds), (Change::Replace, 1));
    let (alone, cut) = (first(events(Change::Replace)), first(with_users(Change::Replace)));
    assert_eq!((alone.change, alone.holds), (Change::Replace, 1));
    assert_eq!((cut.change, cut.holds), (Change::Replace, 2));
    let user = step_of(&with_users(Change::AddRemove).with_noise(1.0).unwrap(), 1);
    assert_eq!((user.change, user.holds), (Change::AddRemove, 7), "a user who goes lets no other in");
    let users = Draft { drawn: Drawn::Users, ..with_users(Change::Replace) };
    assert!(matches!(users.with_noise(1.0), Err(PlanError::MovedRows { .. })));
    // Whole users in batches of fixed size: one who is emptied may make room for one with all that a user can have.
    let whole = Draft { drawn: Drawn::Users, users: Some(1_000), sampling: Sampling::Fixed, ..draft(elements()) };
    assert_eq!(first(whole).holds, 10);
}
