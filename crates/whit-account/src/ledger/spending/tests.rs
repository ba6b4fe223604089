use super::super::budget::CurrencyName;
use super::super::entry::State;
use super::*;
use std::sync::Arc;
use whit_core::unit::SliceKind;
use whit_core::{Change, Delta, Epsilon, Unit};

fn element() -> Unit {
    Unit::element("id", "day")
}

fn by_day() -> Slicing {
    Slicing { column: "day".to_owned(), kind: SliceKind::Number, reading: String::new() }
}

fn days(days: &[i64]) -> Option<Slices> {
    Slices::new(by_day(), days.iter().map(|&day| SliceRange::one(SliceValue::Whole(day))).collect())
}

fn rung(slices: Option<Slices>) -> Rung {
    Rung { unit: element(), holds: 1, disjoint: false, slices }
}

fn entry(charge: Charge) -> Entry {
    Entry {
        number: 1,
        time: 0,
        dataset: "visits".to_owned(),
        analyst: "alice".to_owned(),
        question: String::new(),
        meaning: String::new(),
        fingerprint: String::new(),
        partition: None,
        charge: Arc::new(charge),
        budgets: Arc::new(Vec::new()),
        state: State::Reserved,
        progress: None,
    }
}

fn pure(epsilon: f64) -> Cost {
    Cost::Pure { epsilon: Epsilon::new(epsilon).unwrap() }
}

fn budget(epsilon: f64, delta: f64) -> Budget {
    Budget::new("visits", element(), epsilon, delta).along(Some(by_day()))
}

/// SameNumbers that look random and are the same in every run.
struct SameNumbers(u64);

impl SameNumbers {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % limit
    }
}

const DAYS: i64 = 7;

/// A charge at random, and the days on which it costs something.
fn asked(numbers: &mut SameNumbers) -> (Charge, Vec<i64>) {
    let all: Vec<i64> = (0..DAYS).collect();
    let cost = match numbers.below(3) {
        0 => pure(0.05 + 0.01 * numbers.below(9) as f64),
        1 => Cost::Series(vec![pure(0.02), pure(0.03)]),
        _ => Cost::Approximate { epsilon: Epsilon::new(0.04).unwrap(), delta: Delta::new(1e-9).unwrap() },
    };
    match numbers.below(7) {
        // Nothing said, another column, another kind, and a whole user.
        0 => (vec![(rung(None), cost)], all),
        1 => {
            let other = Slicing { column: "week".to_owned(), kind: SliceKind::Number, reading: String::new() };
            let slices = Slices::new(other, vec![SliceRange::one(SliceValue::Whole(1))]);
            (vec![(rung(slices), cost)], all)
        }
        2 => {
            let other = Slicing { kind: SliceKind::Day, ..by_day() };
            let slices = Slices::new(other, vec![SliceRange::one(SliceValue::Whole(1))]);
            (vec![(rung(slices), cost)], all)
        }
        3 => {
            let user = Rung { unit: Unit::user("id", Change::Replace), ..rung(days(&[1])) };
            (vec![(user, cost)], all)
        }
        4 => {
            let from = numbers.below(DAYS as u64) as i64;
            let range = SliceRange { from: Some(SliceValue::Whole(from)), to: None };
            (vec![(rung(Slices::new(by_day(), vec![range])), cost)], (from..DAYS).collect())
        }
        _ => {
            let mut chosen: Vec<i64> = (0..DAYS).filter(|_| numbers.below(3) == 0).collect();
            chosen.push(numbers.below(DAYS as u64) as i64);
            chosen.sort_unstable();
            chosen.dedup();
            (vec![(rung(days(&chosen)), cost)], chosen)
        }
    }
}

/// Another way to the same numbers: one filter for each day, which is charged in turn with what touches the day.
#[test]
fn the_state_of_every_slice_is_the_composition_of_what_touches_it() {
    let (mut refusals, mut partly) = (0, 0);
    for (seed, currency) in (0..40).flat_map(|seed| {
        let all = [CurrencyName::Gaussian, CurrencyName::Concentrated, CurrencyName::Renyi, CurrencyName::Sum];
        all.into_iter().map(move |currency| (seed, currency))
    }) {
        let mut numbers = SameNumbers(seed);
        let budget = Budget { currency, ..budget(0.6, 1e-6) };
        let mut spending = Spending::of(&budget).unwrap();
        let mut each: Vec<Filter> = (0..DAYS).map(|_| budget.filter().unwrap()).collect();
        for _ in 0..25 {
            let (charge, touched) = asked(&mut numbers);
            let cost = &charge[0].1;
            let fits = |day: &i64| each[*day as usize].clone().charge(cost).is_ok();
            let refused: Vec<i64> = touched.iter().copied().filter(|day| !fits(day)).collect();
            assert_eq!(spending.refusal(&budget, &charge).is_some(), !refused.is_empty(), "{charge:?}");
            let count = |day: &i64| {
                let mut filter = each[*day as usize].clone();
                (0..MOST_TIMES).take_while(|_| filter.charge(cost).is_ok()).count() as u64
            };
            assert_eq!(Some(spending.times(&budget, &charge)), touched.iter().map(count).min());
            let left = touched.iter().map(|day| each[*day as usize].left()).fold(f64::INFINITY, f64::min);
            assert_eq!(spending.left_for(&budget, &charge).0, left);
            refusals += usize::from(!refused.is_empty());
            partly += usize::from(!refused.is_empty() && refused.len() < DAYS as usize);
            if refused.is_empty() {
                spending.add(&budget, &entry(charge.clone())).unwrap();
                touched.iter().for_each(|day| each[*day as usize].charge(cost).unwrap());
            }
            for (day, filter) in each.iter().enumerate() {
                let point = SliceRange::one(SliceValue::Whole(day as i64));
                let holds = |range: &Option<SliceRange>| range.as_ref().unwrap().and(&point).is_some();
                let found: Vec<_> = spending.standings.iter().filter(|(range, _)| holds(range)).collect();
                assert_eq!(found.len(), 1);
                assert_eq!(found[0].1.spent, filter.mark(), "on day {day}, in {currency}");
            }
            assert_eq!(spending.spent(), each.iter().map(Filter::spent).fold(0.0, f64::max));
            assert_eq!(spending.left(), each.iter().map(Filter::left).fold(f64::INFINITY, f64::min));
        }
    }
    assert!(refusals > 100 && partly > 20, "{refusals} {partly}: a sequence that is never refused tries nothing");
}

#[test]
fn a_charge_without_slices_or_under_another_slicing_touches_all() {
    let budget = budget(1.0, 0.0);
    let spent = |rung: Rung| {
        let mut spending = Spending::of(&budget).unwrap();
        spending.add(&budget, &entry(vec![(rung, pure(0.25))])).unwrap();
        let level = |level: SliceLevel| (level.slices.join(" | "), level.number, (level.spent * 1e9).round() / 1e9);
        spending.levels().into_iter().map(level).collect::<Vec<_>>()
    };
    let sliced = spent(rung(days(&[3])));
    assert_eq!(sliced, [("3".to_owned(), Some(1), 0.25), ("2 and below | 4 and above".to_owned(), None, 0.0)]);
    let week = Slicing { column: "week".to_owned(), kind: SliceKind::Number, reading: String::new() };
    let one = |slicing| Slices::new(slicing, vec![SliceRange::one(SliceValue::Whole(3))]);
    for whole in [rung(None), rung(one(week)), rung(one(Slicing { kind: SliceKind::Day, ..by_day() }))] {
        assert_eq!(spent(whole), [("every value".to_owned(), None, 0.25)]);
    }
    // A budget of which nobody says that its units lie in slices believes no charge that speaks of some.
    let whole = Budget { slicing: None, ..budget.clone() };
    let mut spending = Spending::of(&whole).unwrap();
    for day in [1, 2] {
        spending.add(&whole, &entry(vec![(rung(days(&[day])), pure(0.25))])).unwrap();
    }
    assert!((spending.spent() - 0.5).abs() < 1e-9 && spending.levels().is_empty());
}

#[test]
fn a_slice_that_is_short_is_named_and_others_go_on() {
    let budget = budget(0.5, 0.0);
    let mut spending = Spending::of(&budget).unwrap();
    spending.add(&budget, &entry(vec![(rung(days(&[3])), pure(0.4))])).unwrap();
    let ask = |slices: Option<Slices>| vec![(rung(slices), pure(0.2))];
    let no = spending.refusal(&budget, &ask(days(&[2, 3, 4]))).unwrap();
    assert_eq!(
        no.to_string(),
        "this release needs ε = 0.2 per element (id, day), replace, where day = 3, and ε = 0.1 of the budget is left"
    );
    assert_eq!(no.shortfall.unwrap().slice.as_deref(), Some("day = 3"));
    assert_eq!(spending.refusal(&budget, &ask(days(&[2, 4]))), None);
    assert_eq!(spending.times(&budget, &ask(days(&[4]))), 2);
    let (left, slice) = spending.left_for(&budget, &ask(None));
    assert!((left - 0.1).abs() < 1e-12 && slice.as_deref() == Some("day = 3"));
}

/// Where one slice has spent more ε and another more δ, neither speaks for the other.
#[test]
fn slices_that_are_short_of_different_things_are_both_asked() {
    let budget = budget(1.0, 1e-6);
    let mut spending = Spending::of(&budget).unwrap();
    let approximate = |delta: f64| Cost::Approximate { epsilon: Epsilon::ZERO, delta: Delta::new(delta).unwrap() };
    spending.add(&budget, &entry(vec![(rung(days(&[1])), pure(0.9))])).unwrap();
    spending.add(&budget, &entry(vec![(rung(days(&[2])), approximate(4.5e-7))])).unwrap();
    let no = |spending: &mut Spending, cost| {
        let no = spending.refusal(&budget, &vec![(rung(days(&[1, 2, 3])), cost)]);
        no.and_then(|no| no.shortfall).and_then(|short| short.slice)
    };
    assert_eq!(no(&mut spending, pure(0.5)).as_deref(), Some("day = 1"));
    assert_eq!(no(&mut spending, approximate(1e-7)).as_deref(), Some("day = 2"));
}
