use super::*;
use crate::source::Tuning;
use crate::source::scratch::Scratch;
use serde_json::Value as Json;
use std::fmt::Write as _;
use whit_account::ledger::{Books, Terms};
use whit_core::Persist as _;
use whit_core::release::CONFIDENCE;

const SQL: &str = "SELECT shop, COUNT(*) AS n, 2 * COUNT(*) AS twice FROM visits GROUP BY shop";

fn visits(scratch: &Scratch) -> Tables {
    let mut rows = "user,shop\n".to_owned();
    for user in 0..400 {
        let _ = writeln!(rows, "{user},{}", if user % 3 == 0 { "north" } else { "south" });
    }
    scratch.write("visits.csv", rows);
    let text = "[dataset.visits]\nsource = 'visits.csv'\nunit.user = 'user'\nunit.protect = 'user'\nunit.caps = { rows_per_user = 2 }\n\
        columns.user = 'int'\ncolumns.shop = { type = 'text', keys = ['north', 'south'] }\nbudget.user = { epsilon = 100, delta = 1e-6 }\n";
    Tables::open(&scratch.write("whit.toml", text), Tuning { memory: None, threads: Some(2) }).unwrap()
}

fn asking(epsilon: f64) -> Asking {
    Asking { epsilon: Some(epsilon), ..Asking::default() }
}

/// Stores an answer to the question at one ε with noise and price for another, as a version would have that divided prices otherwise. Gives what was booked.
fn stored_at_another_price(
    tables: &Tables,
    books: &mut Books,
    (asked, paid): (f64, f64),
    written: impl Fn(&mut Json),
) -> Calibrated {
    let plan = tables.plan(SQL, &asking(asked)).unwrap();
    let (mut question, reads) = tables.question_of(&plan, SQL, &asking(asked), "anna").unwrap();
    question.fingerprint = tables.fingerprint_of(&reads, books).unwrap().0;
    let other = calibrate(&plan, paid, 1e-6).unwrap();
    let mechanism = QueryMechanism::new(tables, &plan, Some(&other), CONFIDENCE);
    let released = mechanism.everything(&Rows::unpaid(tables, 7), &mut whit_noise::Replay::new(3)).unwrap();
    let mut bytes: Json = serde_json::from_slice(&released.to_bytes()).unwrap();
    written(&mut bytes);
    let budgets = tables.budgets("visits").unwrap();
    let terms = Terms { budgets: &budgets, gives_up: false, again: false };
    let entry = books.reserve_for(&question, &other.charge, terms).unwrap();
    books.commit_entry(entry, None, bytes.to_string().as_bytes()).unwrap();
    other
}

/// How far the noise takes the count, in rows.
fn reach(tables: &Tables, noise: &Calibrated) -> f64 {
    let plan = tables.plan(SQL, &asking(1.0)).unwrap();
    noise.parts[0].measures[0].within(CONFIDENCE) * plan.parts[0].step_of(0, &[])
}

fn half_width(answer: &Answer, column: usize) -> f64 {
    (answer.rows[0][column].high.unwrap() - answer.rows[0][column].low.unwrap()) / 2.0
}

#[test]
fn what_is_stored_is_finished_with_the_noise_and_the_price_that_it_was_made_with() {
    let scratch = Scratch::new("finished-with-its-own");
    let (tables, mut books) = (visits(&scratch), Books::open(&scratch.path().join("whit.ledger")).unwrap());
    let made = stored_at_another_price(&tables, &mut books, (1.0, 0.1), |_| {});
    let answer = crate::ask(&tables, SQL, &asking(1.0), &mut books, "anna").unwrap();
    assert!(answer.statement.stored);
    assert_eq!(answer.statement.prices, Statement::prices(&made.charge, 1e-6), "what was booked");
    assert!(answer.statement.prices[0].epsilon < 0.11, "{:?}", answer.statement.prices);
    let reach = reach(&tables, &made);
    assert!((half_width(&answer, 1) - reach).abs() <= 1.0, "{reach}: {:?}", answer.rows[0]);
    assert!((half_width(&answer, 2) - 2.0 * reach).abs() <= 1.0, "{reach}: {:?}", answer.rows[0]);
}

#[test]
fn what_was_stored_without_its_noise_is_still_read_and_what_comes_later_is_not() {
    let scratch = Scratch::new("stored-before");
    let (tables, mut books) = (visits(&scratch), Books::open(&scratch.path().join("whit.ledger")).unwrap());
    let before = |json: &mut Json| {
        json["version"] = 3.into();
        json["parts"][0].as_object_mut().unwrap().remove("noise").unwrap();
    };
    let made = stored_at_another_price(&tables, &mut books, (1.0, 0.1), before);
    let answer = crate::ask(&tables, SQL, &asking(1.0), &mut books, "anna").unwrap();
    assert!(answer.statement.stored);
    assert_eq!(answer.statement.prices, Statement::prices(&made.charge, 1e-6), "what was booked");
    // Nobody wrote down what its noise was, and the noise of today is taken for it, as it always was.
    let today = calibrate(&tables.plan(SQL, &asking(1.0)).unwrap(), 1.0, 1e-6).unwrap();
    let today = reach(&tables, &today);
    assert!((half_width(&answer, 1) - reach(&tables, &made)).abs() <= 1.0, "{:?}", answer.rows[0]);
    assert!((half_width(&answer, 2) - 2.0 * today).abs() <= 1.0, "{today}: {:?}", answer.rows[0]);
    stored_at_another_price(&tables, &mut books, (2.0, 0.1), |json| json["version"] = 5.into());
    let wrong = crate::ask(&tables, SQL, &asking(2.0), &mut books, "anna").unwrap_err();
    assert!(wrong.sentence.contains("it is of form 5, and forms up to 4 are known here"), "{wrong:?}");
}

/// What a ledger says is kept as it is, for programs.
#[test]
fn what_the_ledger_said_goes_along_with_the_words() {
    use whit_account::desk::DeskError;
    use whit_account::ledger::{ChainFault, LedgerError};
    let fault = ChainFault { event: Some(3), entry: Some(2), field: "charge".into(), what: "was changed".into() };
    let said = LedgerError::Changed(fault);
    for error in [super::unserved(DeskError::Ledger(said.clone())), crate::error::of_ledger(said.clone())] {
        assert_eq!((error.ledger.as_deref(), error.hint.clone()), (Some(&said), said.hint()));
        assert_eq!((error.fault, error.sentence), (crate::Fault::Failed, said.to_string()));
    }
}

#[test]
fn a_price_that_is_stated_again_is_the_one_that_was_stated_first() {
    let scratch = Scratch::new("stated-again");
    let (tables, mut books) = (visits(&scratch), Books::open(&scratch.path().join("whit.ledger")).unwrap());
    let first = crate::ask(&tables, SQL, &asking(0.7), &mut books, "anna").unwrap();
    let again = crate::ask(&tables, SQL, &asking(0.7), &mut books, "bert").unwrap();
    assert!(!first.statement.stored && again.statement.stored);
    assert_eq!((first.rows, first.statement.prices), (again.rows, again.statement.prices));
}
