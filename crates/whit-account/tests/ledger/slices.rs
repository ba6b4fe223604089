//! Questions about different slices are booked in parallel: on every ledger, for all analysts, and whoever writes at once.

use crate::{folder, question, user};
use whit_account::Name;
use whit_account::ledger::{Account, Books, Budget, Denied, Memory, Question, Register, Terms};
use whit_core::unit::{SliceKind, SliceRange, SliceValue, Slices, Slicing};
use whit_core::{Charge, Cost, Epsilon, Rung, Unit};

fn element() -> Unit {
    Unit::element("id", "day")
}

fn by_day() -> Slicing {
    Slicing { column: "day".to_owned(), kind: SliceKind::Day, reading: String::new() }
}

/// The third of January 2024, and days after it.
const THIRD: i64 = 19_725;

fn rung(unit: Unit, holds: u64, slices: Option<Slices>) -> Rung {
    Rung { unit, holds, disjoint: false, slices }
}

fn days(days: &[i64]) -> Option<Slices> {
    Slices::new(by_day(), days.iter().map(|day| SliceRange::one(SliceValue::Whole(THIRD + day))).collect())
}

/// A pure ε at the element, of some days alone, and as much of a whole user, who has rows on many.
fn charge(slices: Option<Slices>, epsilon: f64) -> Charge {
    let cost = Cost::Pure { epsilon: Epsilon::new(epsilon).unwrap() };
    vec![(rung(element(), 1, slices), cost.clone()), (rung(user(), 4, None), cost)]
}

fn budgets() -> [Budget; 3] {
    let by_element = Budget::new("visits", element(), 1.0, 0.0).along(Some(by_day()));
    let of_bob = Budget { epsilon: 0.5, ..by_element.clone() }.of_analyst("bob");
    [by_element, of_bob, Budget::new("visits", user(), 100.0, 0.0)]
}

fn by(analyst: &str, meaning: &str) -> Question {
    Question { analyst: analyst.to_owned(), ..question(meaning) }
}

fn reserve(ledger: &mut dyn Register, analyst: &str, meaning: &str, charge: &Charge) -> Result<u64, Denied> {
    let terms = Terms { budgets: &budgets(), gives_up: false, again: false };
    ledger.reserve_for(&by(analyst, meaning), charge, terms)
}

/// Whether two figures are the same, but for what is added to sums so that they are never too small.
fn near(a: f64, b: f64) -> bool {
    (a - b).abs() < 1e-9
}

/// What was spent on each level, and on how many days.
fn levels(account: &Account) -> Vec<(f64, Option<u64>)> {
    account.slices.iter().map(|level| ((level.spent * 1e9).round() / 1e9, level.number)).collect()
}

/// The laws of slices, for any ledger.
fn slices_hold(ledger: &mut dyn Register) {
    let short = |denied: Result<u64, Denied>| match denied {
        Err(Denied::Refused(no)) => {
            let short = no.shortfall.unwrap();
            (short.unit, short.analyst, short.slice)
        }
        other => panic!("{other:?} is no refusal"),
    };
    // Five questions of 0.6 each, about different days, are paid by one unit once.
    for day in 0..5 {
        reserve(ledger, "alice", &format!("day {day}"), &charge(days(&[day]), 0.6)).unwrap();
    }
    let [element_budget, of_bob, user_budget] = budgets();
    let spent = |ledger: &mut dyn Register, budget: &Budget| ledger.spent(budget).unwrap();
    assert!(near(spent(ledger, &element_budget).spent, 0.6));
    assert_eq!(levels(&spent(ledger, &element_budget)), [(0.6, Some(5)), (0.0, None)]);
    assert!(near(spent(ledger, &user_budget).spent, 3.0), "a user is on all days, and pays for all");
    // One day is short, for whomever; the others go on.
    let no = short(reserve(ledger, "carol", "more of day 3", &charge(days(&[3]), 0.5)));
    assert_eq!(no, (element(), None, Some("day = 2024-01-06".to_owned())));
    let both = charge(days(&[3, 9]), 0.5);
    assert_eq!(short(reserve(ledger, "carol", "two days", &both)).2.as_deref(), Some("day = 2024-01-06"));
    reserve(ledger, "carol", "day 9", &charge(days(&[9]), 0.5)).unwrap();
    // An analyst has a budget of each day, too.
    reserve(ledger, "bob", "day 20", &charge(days(&[20]), 0.4)).unwrap();
    reserve(ledger, "bob", "day 21", &charge(days(&[21]), 0.4)).unwrap();
    let no = short(reserve(ledger, "bob", "more of day 20", &charge(days(&[20]), 0.2)));
    assert_eq!(no, (element(), Some("bob".to_owned()), Some("day = 2024-01-23".to_owned())));
    assert!(near(spent(ledger, &of_bob).spent, 0.4));
    // What reads everything is charged to every day, and so is what was sliced otherwise.
    let entry = reserve(ledger, "alice", "all days", &charge(None, 0.3)).unwrap();
    let week = Slicing { column: "week".to_owned(), kind: SliceKind::Day, reading: String::new() };
    let weekly = Slices::new(week, vec![SliceRange::one(SliceValue::Whole(1))]);
    assert!(short(reserve(ledger, "alice", "a week", &charge(weekly.clone(), 0.2))).2.is_some());
    assert_eq!(levels(&spent(ledger, &element_budget)), [(0.9, Some(5)), (0.8, Some(1)), (0.7, Some(2)), (0.3, None)]);
    // A budget that is sliced in another way, or in none, believes no charge to be of some days alone.
    for other in [None, Some(Slicing { column: "week".to_owned(), kind: SliceKind::Day, reading: String::new() })] {
        let sum = spent(ledger, &element_budget.clone().along(other));
        assert!(near(sum.spent, 4.6) && sum.slices.len() < 2, "{sum:?}");
    }
    // What asking would say is said beforehand: how often it fits, and where least is left.
    let fits = ledger.fits(("visits", "alice"), &budgets(), &charge(days(&[3, 9]), 0.05)).unwrap();
    assert_eq!((fits[0].times, fits[0].slice.as_deref()), (2, Some("day = 2024-01-06")));
    assert!(near(fits[0].left, 0.1));
    let fits = ledger.fits(("visits", "alice"), &budgets(), &charge(days(&[30]), 0.05)).unwrap();
    assert_eq!((fits[0].times, fits[0].slice.as_deref()), (14, Some("day = 2024-02-02")));
    // Taken back, it is free again on every day.
    ledger.void(entry, "nothing was drawn").unwrap();
    assert_eq!(levels(&spent(ledger, &element_budget)), [(0.6, Some(5)), (0.5, Some(1)), (0.4, Some(2)), (0.0, None)]);
    // Over time, and by other accountants, it is the worst day that counts.
    let last = ledger.history(&element_budget).unwrap().pop().unwrap();
    assert!(near(last.epsilon, 0.6));
    let again = ledger.reaccount(Name::Basic, &budgets()).unwrap();
    let upper = |unit: &Unit| {
        let own = again.iter().find(|line| line.account.unit == *unit && line.account.analyst.is_none());
        own.unwrap().loss.as_ref().unwrap().upper
    };
    assert!(near(upper(&element()), 0.6) && near(upper(&user()), 4.3));
    let verified = ledger.verify().unwrap();
    assert_eq!(verified.entries, 9);
    let own = |account: &&Account| account.unit == element() && account.analyst.is_none();
    assert!(near(verified.accounts.iter().find(own).unwrap().spent, 0.6));
}

#[test]
fn slices_hold_on_every_ledger() {
    slices_hold(&mut Memory::new());
    let path = folder("slices").join("whit.ledger");
    slices_hold(&mut Books::open(&path).unwrap());
    // They are read again as they were written, also from an export.
    let books = Books::open(&path).unwrap();
    let mut lines = Vec::new();
    books.export(&mut lines).unwrap();
    let built = Books::import(&path.with_file_name("again.ledger"), lines.as_slice()).unwrap();
    let [budget, ..] = budgets();
    assert_eq!(built.spent(&budget).unwrap(), books.spent(&budget).unwrap());
    assert_eq!(levels(&built.spent(&budget).unwrap())[0], (0.6, Some(5)));
    let mut csv = Vec::new();
    books.export_csv(&mut csv).unwrap();
    assert!(String::from_utf8(csv).unwrap().contains("day = 2024-01-03"));
}

/// Each thread has a ledger of its own in one file, and asks for one of three days in turn.
#[test]
fn nobody_overspends_a_slice_however_many_write_at_once() {
    let path = folder("slices-at-once").join("whit.ledger");
    drop(Books::open(&path).unwrap());
    let client = |number: u32| {
        let mut books = Books::open(&path).unwrap();
        books.unsynchronised();
        let mut granted = [0_u32; 3];
        for k in 0..24_usize {
            let day = (k + number as usize) % 3;
            let sliced = charge(days(&[day as i64]), 1.0 / 16.0);
            match reserve(&mut books, "alice", &format!("{number} {k}"), &sliced) {
                Ok(_) => granted[day] += 1,
                Err(Denied::Refused(_)) => {}
                Err(other) => panic!("{other}"),
            }
        }
        granted
    };
    let granted = std::thread::scope(|scope| {
        let clients: Vec<_> = (0..4).map(|number| scope.spawn(move || client(number))).collect();
        clients.into_iter().map(|client| client.join().unwrap()).collect::<Vec<_>>()
    });
    // A budget of 1 has room for sixteen of a sixteenth, on each day, and no more.
    for day in 0..3 {
        assert_eq!(granted.iter().map(|granted| granted[day]).sum::<u32>(), 16, "{granted:?}");
    }
    Books::open(&path).unwrap().verify().unwrap();
}

/// Somebody who writes another day into an entry is found, as with every other field.
#[test]
fn slices_that_are_changed_are_found() {
    let path = folder("slices-changed").join("whit.ledger");
    let mut books = Books::open(&path).unwrap();
    reserve(&mut books, "alice", "a day", &charge(days(&[0]), 0.5)).unwrap();
    drop(books);
    let connection = rusqlite::Connection::open(&path).unwrap();
    connection.execute_batch("DROP TRIGGER entries_stay").unwrap();
    let changed = connection.execute("UPDATE entries SET charge = replace(charge, '19725', '19726')", []).unwrap();
    assert_eq!(changed, 1);
    drop(connection);
    let error = Books::open(&path).unwrap_err().to_string();
    assert!(error.contains("charge"), "{error}");
}
