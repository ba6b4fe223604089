//! What the ledger tells of itself: by rung, by analyst, over time, and as other accountants see it.

use crate::{budgets, charge, folder, question, reserve, user};
use whit_account::Name;
use whit_account::ledger::{Account, Books, Budget, CurrencyName, Question, Register, SpendingReport, Which};
use whit_core::{Change, Charge, Cost, Draw, Ledger, Rho, Rung, Sampled, Sampling, Unit};

fn element() -> Unit {
    Unit::element("id", "day")
}

fn rung(unit: Unit, holds: u64) -> Rung {
    Rung { unit, holds, disjoint: false, slices: None }
}

fn gaussian(noise: f64) -> Charge {
    vec![(rung(element(), 1), Cost::Gaussian { noise }), (rung(user(), 4), Cost::Gaussian { noise: noise / 4.0 })]
}

fn by(analyst: &str) -> Question {
    Question { analyst: analyst.to_owned(), ..question("q") }
}

fn budget(epsilon: f64) -> Budget {
    Budget::new("visits", element(), epsilon, 1e-6)
}

/// Three releases by Alice, two by Bob, one of which is void.
fn sample(name: &str) -> Books {
    let mut books = Books::open(&folder(name).join("whit.ledger")).unwrap();
    let budgets = [budget(3.0), budget(2.0).of_analyst("bob")];
    for analyst in ["alice", "bob", "alice", "bob", "alice"] {
        let mut booking = books.booking(by(analyst), &budgets);
        let reservation = booking.reserve(&gaussian(8.0)).unwrap();
        if analyst == "alice" {
            booking.commit(reservation, b"1").unwrap();
        }
    }
    books.void(4, "never ran").unwrap();
    books
}

fn find<'a>(accounts: &'a [Account], unit: &Unit, analyst: Option<&str>) -> &'a Account {
    let own = |account: &&Account| account.unit == *unit && account.analyst.as_deref() == analyst;
    let mut found = accounts.iter().filter(own);
    let only = found.next().unwrap();
    assert!(found.next().is_none(), "one account for each");
    only
}

/// ε of so many Gaussian runs at the budget's δ, of which nothing was brought along.
fn gaussians(noise: f64, times: u64) -> f64 {
    whit_account::epsilon(&Cost::Gaussian { noise }.repeat(times), 1e-6, Name::Gdp).unwrap().upper
}

/// The same where nobody limits it: of δ a fiftieth is for other ways of adding up.
fn unlimited(noise: f64, times: u64) -> f64 {
    whit_account::epsilon(&Cost::Gaussian { noise }.repeat(times), 0.98e-6, Name::Gdp).unwrap().upper
}

fn near(found: f64, expected: f64) {
    assert!((found / expected - 1.0).abs() < 1e-8, "{found} instead of {expected}");
}

#[test]
fn a_statement_tells_what_was_spent_by_rung_and_by_analyst() {
    let books = sample("statement");
    let in_force = books.budgets().unwrap();
    assert_eq!(in_force, [budget(3.0), budget(2.0).of_analyst("bob")]);
    let SpendingReport { accounts, by_analyst, changes, open } = books.statement(&in_force).unwrap();
    assert_eq!((accounts.len(), open), (3, 1), "bob's second entry is void, his first is open");
    assert!(changes.is_empty());
    let all = find(&accounts, &element(), None);
    near(all.spent, gaussians(8.0, 4));
    let mu_left = 1.0 / f64::sqrt(1.0 / whit_account::normal::gaussian_sigma_up(3.0, 5e-7, 1.0).powi(2) - 4.0 / 64.0);
    near(all.left.unwrap(), gaussians(mu_left, 1));
    assert_eq!((all.releases, all.unknown, all.delta, all.budget.as_ref()), (4, 0, 1e-6, Some(&budget(3.0))));
    near(find(&accounts, &element(), Some("bob")).spent, gaussians(8.0, 1));
    let users = find(&accounts, &user(), None);
    near(users.spent, unlimited(2.0, 4));
    assert_eq!((users.budget.as_ref(), users.left), (None, None), "reported, though nobody limits it");
    near(find(&by_analyst, &element(), Some("alice")).spent, gaussians(8.0, 3));
    near(find(&by_analyst, &user(), Some("bob")).spent, unlimited(2.0, 1));
    assert!(find(&by_analyst, &element(), Some("bob")).left.is_some(), "bob has a budget of his own");
    assert_eq!(books.spent(&budget(3.0)).unwrap().spent, all.spent);
}

#[test]
fn over_time_what_is_spent_grows_and_falls_only_where_an_entry_is_voided() {
    let books = sample("history");
    let moments = books.history(&budget(3.0)).unwrap();
    assert_eq!(moments.iter().map(|moment| moment.entry).collect::<Vec<_>>(), [1, 2, 3, 4, 5, 4]);
    for (moment, count) in moments.iter().zip([1, 2, 3, 4, 5, 4]) {
        near(moment.epsilon, gaussians(8.0, count));
    }
    assert!(moments.windows(2).all(|pair| pair[0].time <= pair[1].time));
    let bobs = books.history(&budget(2.0).of_analyst("bob")).unwrap();
    assert_eq!(bobs.len(), 3);
}

#[test]
fn other_accountants_read_the_stored_costs_again() {
    let books = sample("reaccount");
    let lines = books.reaccount(Name::Pld, &books.budgets().unwrap()).unwrap();
    assert_eq!(lines.len(), 3);
    for line in &lines {
        let loss = line.loss.clone().unwrap();
        let releases = line.account.releases;
        let noise = if line.account.unit == user() { 2.0 } else { 8.0 };
        let exact = whit_account::epsilon(&Cost::Gaussian { noise }.repeat(releases), 1e-6, Name::Gdp).unwrap().upper;
        assert!(loss.lower <= exact && exact <= loss.upper * (1.0 + 1e-9), "{loss:?} {exact}");
        let limited = line.account.budget.is_some();
        near(line.account.spent, if limited { exact } else { unlimited(noise, releases) });
    }
    for name in [Name::Rdp, Name::Zcdp] {
        let lines = books.reaccount(name, &[budget(3.0)]).unwrap();
        assert!(lines[0].loss.as_ref().unwrap().upper >= gaussians(8.0, 4) * 0.9);
    }
    let basic = books.reaccount(Name::Basic, &[budget(3.0)]).unwrap();
    assert!(basic[0].loss.is_ok(), "{:?}", basic[0].loss);
}

#[test]
fn a_budget_that_was_changed_between_entries_is_noted() {
    let mut books = Books::open(&folder("changes").join("whit.ledger")).unwrap();
    let _ = reserve(&mut books, "a", 0.1).unwrap();
    let _ = reserve(&mut books, "b", 0.1).unwrap();
    let _ = books.booking(question("c"), &budgets(2.0)).reserve(&charge(0.1)).unwrap();
    let changes = books.statement(&budgets(2.0)).unwrap().changes;
    assert_eq!(changes.len(), 1);
    assert_eq!((changes[0].entry, changes[0].before.epsilon, changes[0].after.epsilon), (3, 1.0, 2.0));
    assert_eq!(books.budgets().unwrap(), budgets(2.0));
    books.verify().unwrap();
}

#[test]
fn a_unit_of_which_some_releases_say_nothing_has_an_infinite_loss() {
    let mut books = Books::open(&folder("unknown").join("whit.ledger")).unwrap();
    let only: Charge = vec![(rung(element(), 1), Cost::Gaussian { noise: 8.0 })];
    let _ = books.booking(by("alice"), &[budget(3.0)]).reserve(&gaussian(8.0)).unwrap();
    let _ = books.booking(by("alice"), &[budget(3.0)]).reserve(&only).unwrap();
    let statement = books.statement(&[budget(3.0)]).unwrap();
    let users = find(&statement.accounts, &user(), None);
    assert_eq!((users.spent, users.unknown, users.releases), (f64::INFINITY, 1, 2));
    let wanted = Budget::new("visits", user(), 30.0, 1e-6);
    let account = books.spent(&wanted).unwrap();
    assert_eq!((account.spent, account.left), (f64::INFINITY, Some(0.0)));
    let line = &books.reaccount(Name::Pld, &[wanted]).unwrap()[1];
    assert_eq!(line.loss, Err("1 of 2 releases say nothing of this unit".to_owned()));
}

#[test]
fn what_the_usual_currency_cannot_count_is_reported_in_another() {
    let mut books = Books::open(&folder("rho").join("whit.ledger")).unwrap();
    let rho = Cost::Concentrated { rho: Rho::new(0.01).unwrap() };
    let mut own = budget(3.0);
    own.currency = CurrencyName::Concentrated;
    let both: Charge = vec![(rung(element(), 1), rho.clone()), (rung(user(), 4), rho)];
    let _ = books.booking(by("alice"), &[own.clone()]).reserve(&both).unwrap();
    let statement = books.statement(&[own]).unwrap();
    let users = find(&statement.accounts, &user(), None);
    assert!(users.spent > 0.1 && users.spent < 1.0, "{users:?}");
}

#[test]
fn an_empty_ledger_has_nothing_to_tell() {
    let books = Books::open(&folder("empty").join("whit.ledger")).unwrap();
    let statement = books.statement(&[]).unwrap();
    assert!(statement.accounts.is_empty() && statement.by_analyst.is_empty());
    assert!(books.budgets().unwrap().is_empty() && books.history(&budget(1.0)).unwrap().is_empty());
    let account = books.spent(&budget(1.0)).unwrap();
    // Half of δ is kept for what brings a δ along, so Gaussian noise may not have all of ε at all of δ.
    assert!(account.spent == 0.0 && (0.96..1.0).contains(&account.left.unwrap()), "{account:?}");
    assert_eq!(books.verify().unwrap().events, 0);
}

/// What was read before is not read again, and what another process wrote since is there at once.
#[test]
fn a_report_tells_what_others_wrote_since() {
    let path = folder("report-since").join("whit.ledger");
    let (reader, mut writer) = (Books::open(&path).unwrap(), Books::open(&path).unwrap());
    let budget = budgets(1.0);
    for k in 1..=3 {
        let asked = question(&format!("{k}"));
        let mut booking = writer.booking(asked.clone(), &budget);
        let reservation = booking.reserve(&charge(0.125)).unwrap();
        assert_eq!(reader.stored(&asked).unwrap(), None);
        booking.commit(reservation, b"an answer").unwrap();
        for books in [&reader, &writer] {
            assert_eq!(books.stored(&asked).unwrap().unwrap().value, b"an answer");
            assert_eq!(books.entries(&Which::default()).unwrap().len(), k);
            let spent = books.spent(&budget[0]).unwrap().spent;
            assert!((spent - 0.125 * k as f64).abs() < 1e-12, "{spent}");
        }
    }
}

/// Drawing few units in each step is what makes many steps cheap: for a unit, or an analyst, without a budget of its own too.
#[test]
fn what_nobody_limits_is_composed_as_tightly_as_what_has_a_budget() {
    let training = |holds: u64| {
        let (sampling, draw, change) = (Sampling::Poisson, Draw::Unit, Change::Replace);
        let step = Sampled { noise: 1.5, rate: 0.01, sampling, draw, change, difference: 2.0, holds };
        Cost::Sampled(step).repeat(2000)
    };
    let all: Charge = vec![(rung(element(), 1), training(1)), (rung(user(), 4), training(4))];
    let mut books = Books::open(&folder("metered").join("whit.ledger")).unwrap();
    let budgets = [Budget { currency: CurrencyName::Renyi, ..budget(12.0) }];
    for analyst in ["alice", "bob"] {
        let _open = books.booking(by(analyst), &budgets).reserve(&all).unwrap();
    }
    let SpendingReport { accounts, by_analyst, .. } = books.statement(&budgets).unwrap();
    let by = |name, holds, times| whit_account::epsilon(&training(holds).repeat(times), 1e-6, name).unwrap();
    for (accounts, analyst, times) in [(&accounts, None, 2), (&by_analyst, Some("alice"), 1)] {
        for (unit, holds) in [(element(), 1), (user(), 4)] {
            let spent = find(accounts, &unit, analyst).spent;
            let (truth, renyi) = (by(Name::Pld, holds, times).lower, by(Name::Rdp, holds, times).upper);
            // Its orders were chosen before anything was asked, so it is a little more than an accountant says afterwards.
            assert!(spent >= truth && spent < 1.3 * renyi, "{unit}, {times}: {spent}, where it is {truth} to {renyi}");
            let plain = by(Name::Gdp, holds, times).upper;
            assert!(spent < plain / 100.0, "{unit}, {times}: {spent}, and {plain} if sampling counted for nothing");
        }
    }
    // Over time it comes to the same.
    for account in &accounts {
        let moments = books.history_of(account).unwrap();
        assert_eq!((moments.len(), moments[1].epsilon), (2, account.spent), "{}", account.unit);
    }
}
