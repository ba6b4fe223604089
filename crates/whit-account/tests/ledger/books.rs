//! The durable ledger does what the one in memory does, and remembers it.

use crate::{budgets, charge, folder, question, reserve, user};
use std::path::Path;
use std::time::{Duration, Instant};
use whit_account::ledger::{
    Books, Budget, CurrencyName, Denied, LedgerError, Opening, Question, Register, State, Which,
};
use whit_core::release::Reservation;
use whit_core::{Change, Charge, Cost, Delta, Epsilon, Ledger, Progress, Rho, Rung, Unit};

fn open(name: &str) -> Books {
    Books::open(&folder(name).join("whit.ledger")).unwrap()
}

fn pure(epsilon: f64) -> Cost {
    Cost::Pure { epsilon: Epsilon::new(epsilon).unwrap() }
}

fn rung(unit: Unit) -> Rung {
    Rung { unit, holds: 1, disjoint: false, slices: None }
}

fn commit(books: &mut Books, meaning: &str, epsilon: f64, value: &[u8]) -> u64 {
    let reservation = reserve(books, meaning, epsilon).unwrap();
    let number = reservation.number();
    books.booking(question(meaning), &budgets(1.0)).commit(reservation, value).unwrap();
    number
}

#[test]
fn what_was_reserved_is_spent_after_the_file_is_opened_again() {
    let mut books = open("reopened");
    let path = books.path().to_owned();
    let dropped = reserve(&mut books, "a", 0.6).unwrap();
    assert_eq!(dropped.number(), 1);
    drop(books); // the process dies here
    let mut books = Books::open(&path).unwrap();
    let refused = reserve(&mut books, "b", 0.6).unwrap_err();
    assert_eq!(
        refused.to_string(),
        "this release needs ε = 0.6 per user (id), replace, and ε = 0.4 of the budget is left"
    );
    assert!((0.399_99..=0.400_000_1).contains(&refused.available.unwrap()), "{refused:?}");
    assert_eq!(books.entries(&Which::default()).unwrap().len(), 1, "a refusal writes nothing");
    assert_eq!(reserve(&mut books, "c", 0.4).unwrap().number(), 2);
    assert_eq!(books.entries(&Which::default()).unwrap()[0].state, State::Reserved);
    assert_eq!(books.verify().unwrap().entries, 2);
}

#[test]
fn the_same_question_of_the_same_data_is_answered_from_the_ledger() {
    let mut books = open("stored");
    let number = commit(&mut books, "count", 0.1, b"1234");
    let asked = question("count");
    let stored = books.stored(&asked).unwrap().unwrap();
    assert_eq!((stored.number, stored.value.as_slice(), stored.analyst.as_str()), (number, &b"1234"[..], "alice"));
    assert_eq!(stored.charge, charge(0.1));
    let spelt = Question { text: "select  COUNT".into(), analyst: "bob".into(), ..asked.clone() };
    assert!(books.stored(&spelt).unwrap().is_some(), "who asks and how it is spelt does not matter");
    for other in [
        Question { meaning: "count where".into(), ..asked.clone() },
        Question { dataset: "sales".into(), ..asked.clone() },
        Question { fingerprint: "blake3:2".into(), ..asked.clone() },
        Question { partition: Some("blake3:3".into()), ..asked.clone() },
    ] {
        assert_eq!(books.stored(&other).unwrap(), None, "{other:?}");
    }
    let _open = reserve(&mut books, "open", 0.1).unwrap();
    assert_eq!(books.stored(&question("open")).unwrap(), None, "what was not committed was not released");
}

#[test]
fn data_that_changed_is_noticed_once_and_each_data_set_for_itself() {
    let mut books = open("changed");
    assert!(!books.note_source("visits", "blake3:1").unwrap(), "nothing was known before");
    assert!(!books.note_source("shops", "blake3:2").unwrap());
    assert!(!books.note_source("visits", "blake3:1").unwrap(), "another was asked about in between");
    assert!(books.source_changed("visits", "blake3:3").unwrap() && !books.source_changed("sales", "blake3:3").unwrap());
    assert!(books.note_source("visits", "blake3:3").unwrap());
    assert!(!books.note_source("visits", "blake3:3").unwrap());
    assert_eq!(books.verify().unwrap().events, 0, "they are no part of the chain");
}

#[test]
fn only_a_reservation_without_a_result_is_voided_and_the_reason_is_kept() {
    let mut books = open("void");
    let released = commit(&mut books, "a", 0.5, b"1");
    let open = reserve(&mut books, "b", 0.5).unwrap();
    assert!(reserve(&mut books, "c", 0.5).is_err());
    let error = books.void(released, "a whim").unwrap_err();
    assert_eq!(error.to_string(), "entry 1 is committed already");
    assert!(error.hint().unwrap().contains("cannot be taken back"));
    assert_eq!(books.void(2, "  ").unwrap_err(), LedgerError::NoReason);
    assert_eq!(books.void(9, "typo").unwrap_err(), LedgerError::NoEntry { number: 9, last: 2 });
    assert_eq!(books.void(0, "typo").unwrap_err(), LedgerError::NoEntry { number: 0, last: 2 });
    books.void(2, "the disk was full before anything was drawn").unwrap();
    assert!(books.void(2, "again").is_err());
    let entry = &books.entries(&Which::default()).unwrap()[1];
    assert!(matches!(&entry.state, State::Void { reason, .. } if reason.starts_with("the disk was full")));
    // What still runs cannot open its value any more.
    let late = books.booking(question("b"), &budgets(1.0)).commit(open, b"2").unwrap_err();
    assert_eq!(late.sentence, "entry 2 is void already");
    assert!(reserve(&mut books, "c", 0.5).is_ok(), "what was voided is there again");
    assert_eq!(books.verify().unwrap().events, 5);
}

#[test]
fn a_result_is_committed_once() {
    let mut books = open("twice");
    let number = commit(&mut books, "a", 0.1, b"1");
    let again = books.booking(question("a"), &budgets(1.0)).commit(Reservation::new(number), b"2").unwrap_err();
    assert_eq!(again.sentence, "entry 1 is committed already");
    let unknown = books.booking(question("a"), &budgets(1.0)).commit(Reservation::new(7), b"2").unwrap_err();
    assert!(unknown.sentence.contains("has no entry 7"), "{unknown}");
    assert_eq!(books.stored(&question("a")).unwrap().unwrap().value, b"1");
}

#[test]
fn budgets_of_rungs_and_analysts_all_have_to_agree() {
    let mut books = open("analysts");
    let element = Unit::element("id", "day");
    let budgets = [
        Budget::new("visits", element.clone(), 1.0, 0.0),
        Budget::new("visits", user(), 5.0, 0.0),
        Budget::new("visits", element.clone(), 0.5, 0.0).of_analyst("bob"),
        Budget::new("sales", element.clone(), 9.0, 0.0),
    ];
    let charge =
        |fine: f64, coarse: f64| -> Charge { vec![(rung(element.clone()), pure(fine)), (rung(user()), pure(coarse))] };
    let by = |analyst: &str| Question { analyst: analyst.into(), ..question("q") };
    let _ = books.booking(by("alice"), &budgets).reserve(&charge(0.3, 3.0)).unwrap();
    let refused = books.booking(by("alice"), &budgets).reserve(&charge(0.1, 2.5)).unwrap_err();
    assert_eq!(refused.unit, "user (id), replace", "the element's budget would have allowed it");
    let refused = books.booking(by("bob"), &budgets).reserve(&charge(0.6, 0.1)).unwrap_err();
    assert_eq!(refused.unit, "element (id, day), replace for bob");
    let _ = books.booking(by("bob"), &budgets).reserve(&charge(0.5, 0.5)).unwrap();
    let refused = books.booking(by("alice"), &budgets).reserve(&charge(0.3, 0.1)).unwrap_err();
    assert!(refused.left.starts_with("ε = 0.2"), "{refused}: bob's share is gone for everybody");
    let sales = Question { dataset: "sales".into(), ..by("bob") };
    let _ = books.booking(sales, &budgets).reserve(&charge(8.0, 80.0)).unwrap();
    assert_eq!(books.entries(&Which { dataset: Some("sales".into()), analyst: None }).unwrap().len(), 1);
    assert_eq!(books.entries(&Which { dataset: None, analyst: Some("bob".into()) }).unwrap().len(), 2);
    books.verify().unwrap();
}

#[test]
fn a_release_that_no_budget_watches_over_is_refused_with_what_to_declare() {
    let mut books = open("unwatched");
    let others = [Budget::new("sales", user(), 1.0, 0.0), Budget::new("visits", user(), 1.0, 0.0).of_analyst("bob")];
    let mut booking = books.booking(question("q"), &others);
    assert!(booking.reserve(&charge(0.1)).unwrap_err().to_string().contains("needs a budget"));
    let failure = booking.failure().unwrap();
    assert_eq!(
        failure.sentence,
        "no budget of `visits` watches over this release, which is charged per user (id), replace"
    );
    assert_eq!(
        failure.hint.unwrap(),
        "declare one under [dataset.visits] in whit.toml: `budget.user = { epsilon = 1.0, delta = 1e-6 }`"
    );
    assert!(books.entries(&Which::default()).unwrap().is_empty());
}

#[test]
fn a_budget_of_which_a_charge_says_nothing_is_not_passed_over() {
    let mut books = open("silent");
    let with_events = [budgets(1.0)[0].clone(), Budget::new("visits", Unit::event(Change::Replace), 1.0, 0.0)];
    let mut booking = books.booking(question("q"), &with_events);
    assert!(booking.reserve(&charge(0.1)).is_err());
    let failure = booking.failure().unwrap();
    assert!(failure.sentence.contains("a budget per event, replace, and what this release costs there is not known"));
    assert!(failure.hint.unwrap().contains("take that budget out"));

    let _ = reserve(&mut books, "q", 0.1).unwrap();
    let fine: Charge = vec![(rung(Unit::event(Change::Replace)), pure(0.1)), (rung(user()), pure(0.2))];
    let mut booking = books.booking(question("q"), &with_events);
    assert!(booking.reserve(&fine).is_err(), "what the first entry cost an event is not known");
    assert!(booking.failure().unwrap().sentence.contains("entry 1 was charged per user (id), replace only"));

    // An element of a user is never more than the user, so for it the earlier entry has a price.
    let with_elements = [Budget::new("visits", Unit::element("id", "day"), 0.25, 0.0)];
    let elements: Charge = vec![(rung(Unit::element("id", "day")), pure(0.1))];
    let _ = books.booking(question("q"), &with_elements).reserve(&elements).unwrap();
    let refused = books.booking(question("q"), &with_elements).reserve(&elements).unwrap_err();
    assert!(refused.left.starts_with("ε = 0.05"), "{refused}");
}

#[test]
fn a_budget_that_was_lowered_below_what_is_spent_refuses_and_does_not_fail() {
    let mut books = open("lowered");
    let _ = reserve(&mut books, "a", 0.9).unwrap();
    let refused = books.booking(question("b"), &budgets(0.5)).reserve(&charge(0.01)).unwrap_err();
    assert!(refused.left.starts_with("ε = 0"), "{refused}");
    assert_eq!(refused.available, None);
    let nothing: Charge = vec![(rung(user()), Cost::Nothing)];
    assert!(
        books.booking(question("b"), &budgets(0.5)).reserve(&nothing).is_ok(),
        "what reads nothing private is free"
    );
}

#[test]
fn a_budget_at_a_delta_counts_gaussian_pure_and_approximate_runs_together() {
    let mut books = open("mixed");
    let budget = [Budget::new("visits", user(), 1.0, 1e-6)];
    let mut ask = |cost: Cost| books.booking(question("q"), &budget).reserve(&vec![(rung(user()), cost)]).map(|_| ());
    ask(Cost::Gaussian { noise: 10.0 }).unwrap();
    ask(pure(0.05)).unwrap();
    ask(Cost::Approximate { epsilon: Epsilon::new(0.05).unwrap(), delta: Delta::new(4e-7).unwrap() }).unwrap();
    let keys = Cost::Approximate { epsilon: Epsilon::ZERO, delta: Delta::new(2e-7).unwrap() };
    let refused = ask(keys).unwrap_err();
    assert!(refused.asked.starts_with("δ = 2.000e-7 of its own") && refused.left == "δ = 1.000e-7", "{refused}");
    let refused = ask(Cost::Gaussian { noise: 1.0 }).unwrap_err();
    let available = refused.available.unwrap();
    assert!(available > 0.3 && available < 1.0, "{available}");
    let refused = ask(Cost::Concentrated { rho: Rho::new(0.001).unwrap() }).unwrap_err();
    assert!(refused.asked.starts_with("what this budget cannot count"), "{refused}");
    assert_eq!(books.verify().unwrap().entries, 3);
}

#[test]
fn a_currency_that_has_no_price_for_an_earlier_entry_is_reported() {
    let mut books = open("currency");
    let mut budget = [Budget::new("visits", user(), 1.0, 1e-6)];
    budget[0].currency = CurrencyName::Concentrated;
    let rho: Charge = vec![(rung(user()), Cost::Concentrated { rho: Rho::new(0.001).unwrap() })];
    let _ = books.booking(question("q"), &budget).reserve(&rho).unwrap();
    budget[0].currency = CurrencyName::Gaussian;
    let mut booking = books.booking(question("q"), &budget);
    assert!(booking.reserve(&charge(0.1)).is_err());
    let failure = booking.failure().unwrap();
    assert!(failure.sentence.contains("cannot be kept in this currency"), "{failure}");
    assert!(failure.hint.unwrap().contains("concentrated"));
    budget[0].delta = 0.0;
    let mut booking = books.booking(question("q"), &budget);
    assert!(booking.reserve(&charge(0.1)).is_err());
    assert!(booking.failure().unwrap().sentence.contains("needs δ > 0"));
}

#[test]
fn asking_whether_a_charge_would_fit_writes_nothing() {
    let mut books = open("would-fit");
    let budget = budgets(1.0);
    let mut booking = books.booking(question("q"), &budget);
    booking.would_fit(&charge(1.0)).unwrap();
    let denied = booking.would_fit(&charge(1.1));
    assert!(matches!(&denied, Err(Denied::Refused(no)) if no.shortfall.is_some()), "{denied:?}");
    let _ = booking.reserve(&charge(0.7)).unwrap();
    assert!(booking.would_fit(&charge(0.4)).is_err());
    booking.would_fit(&charge(0.3)).unwrap();
    // That no budget watches over it is no budget's "no".
    let denied = booking.would_fit(&vec![(rung(Unit::event(Change::Replace)), pure(0.1))]);
    assert!(matches!(denied, Err(Denied::Failed(LedgerError::NoBudget { .. }))), "{denied:?}");
    assert_eq!(books.entries(&Which::default()).unwrap().len(), 1);
}

#[test]
fn what_cannot_be_written_down_is_not_reserved() {
    let mut books = open("unwritable-charge");
    let wrong: Charge = vec![(rung(user()), Cost::Gaussian { noise: f64::NAN })];
    let budget = [Budget::new("visits", user(), 1.0, 1e-6)];
    let mut booking = books.booking(question("q"), &budget);
    assert!(booking.reserve(&wrong).is_err());
    assert!(booking.failure().unwrap().sentence.starts_with("the charge cannot be written down"));
    let everything: Charge = vec![(rung(user()), pure(0.1)), (rung(Unit::element("id", "day")), Cost::Everything)];
    assert!(booking.reserve(&everything).is_ok(), "a rung without a budget may cost everything");
}

#[test]
fn hashes_of_files_are_recalled_while_size_and_time_stay() {
    let mut books = open("files");
    books.remember_file("a.parquet", 10, 5, "blake3:a").unwrap();
    books.remember_file("a.parquet", 11, 6, "blake3:b").unwrap();
    assert_eq!(books.recall_file("a.parquet", 11, 6).unwrap().as_deref(), Some("blake3:b"));
    assert_eq!(books.recall_file("a.parquet", 10, 5).unwrap(), None);
    assert_eq!(books.recall_file("b.parquet", 11, 6).unwrap(), None);
    assert_eq!(books.verify().unwrap().events, 0, "they are no part of the chain");
}

/// Waits so many milliseconds.
fn patience(milliseconds: u64) -> Opening {
    Opening { patience: Duration::from_millis(milliseconds), ..Opening::default() }
}

fn error_at(path: &Path) -> (LedgerError, String, String) {
    let error = Books::open_as(path, &patience(50)).unwrap_err();
    let (sentence, hint) = (error.to_string(), error.hint().unwrap());
    (error, sentence, hint)
}

#[test]
fn a_file_that_is_no_ledger_is_left_as_it_is() {
    let folder = folder("not-ours");
    let text = folder.join("notes.txt");
    std::fs::write(&text, "these are my notes, and not a database at all\n".repeat(100)).unwrap();
    let before = std::fs::read(&text).unwrap();
    let (error, sentence, hint) = error_at(&text);
    assert!(matches!(error, LedgerError::NotALedger { .. }), "{sentence}");
    assert!(hint.contains("nothing in this one was changed"));
    assert_eq!(std::fs::read(&text).unwrap(), before);

    let other = folder.join("other.db");
    rusqlite::Connection::open(&other).unwrap().execute_batch("CREATE TABLE mine (a)").unwrap();
    let before = std::fs::read(&other).unwrap();
    let (_, sentence, _) = error_at(&other);
    assert!(sentence.ends_with("is no ledger of whit: another program made it"), "{sentence}");
    assert_eq!(std::fs::read(&other).unwrap(), before);
}

#[test]
fn a_format_of_the_future_is_named() {
    let books = open("newer");
    let path = books.path().to_owned();
    drop(books);
    rusqlite::Connection::open(&path).unwrap().execute_batch("PRAGMA user_version = 7").unwrap();
    let (_, sentence, hint) = error_at(&path);
    assert!(sentence.ends_with("has format 7, and this whit reads formats up to 3"), "{sentence}");
    assert!(hint.contains("a later one"));
}

#[test]
fn a_ledger_that_another_process_holds_is_waited_for_and_then_named() {
    let mut books = open("locked");
    let path = books.path().to_owned();
    let holder = rusqlite::Connection::open(&path).unwrap();
    holder.execute_batch("BEGIN IMMEDIATE").unwrap();
    let mut impatient = Books::open_as(&path, &patience(200)).unwrap();
    let since = Instant::now();
    let budget = budgets(1.0);
    let mut booking = impatient.booking(question("q"), &budget);
    assert!(booking.reserve(&charge(0.1)).is_err());
    assert!(since.elapsed() >= Duration::from_millis(150), "{:?}", since.elapsed());
    let failure = booking.failure().unwrap();
    assert!(failure.sentence.ends_with("for more than 0.2 s"), "{failure}");
    assert!(failure.hint.unwrap().starts_with("wait for the other process"));
    assert!(impatient.void(1, "why not").unwrap_err().to_string().starts_with("another process has held"));
    // Who is patient gets it when the other lets go.
    let waiter = std::thread::spawn(move || reserve(&mut books, "q", 0.1).map(|reservation| reservation.number()));
    std::thread::sleep(Duration::from_millis(100));
    holder.execute_batch("ROLLBACK").unwrap();
    assert_eq!(waiter.join().unwrap().unwrap(), 1);
}

#[test]
fn a_folder_that_is_not_there_or_cannot_be_written_is_named() {
    let folder = folder("nowhere");
    let (error, _, hint) = error_at(&folder.join("missing/whit.ledger"));
    assert!(matches!(error, LedgerError::Unwritable { .. }), "{error}");
    assert_eq!(hint, format!("make the folder `{}` first", folder.join("missing").display()));
    let (error, sentence, hint) = error_at(&folder);
    assert!(sentence.ends_with("it is a folder") && matches!(error, LedgerError::NotALedger { .. }), "{sentence}");
    assert!(hint.contains(&format!("`{}`", folder.join("whit.ledger").display())), "{hint}");
    let file = folder.join("file");
    std::fs::write(&file, "").unwrap();
    assert!(matches!(error_at(&file.join("whit.ledger")).0, LedgerError::Unwritable { .. }));
    if cfg!(target_os = "linux") {
        let (error, sentence, hint) = error_at(Path::new("/proc/whit.ledger")); // not even root writes there
        assert!(matches!(error, LedgerError::Unwritable { .. }), "{sentence}");
        assert!(hint.starts_with("check who may write"), "{hint}");
    }
    let missing = Books::open_existing(&folder.join("whit.ledger"), &Opening::default()).unwrap_err();
    assert!(missing.to_string().starts_with("there is no ledger at"), "{missing}");
    assert!(!folder.join("whit.ledger").exists());
}

/// A thousand releases after ten thousand others: the time of one does not grow with what was charged before.
#[test]
fn ten_thousand_earlier_entries_do_not_slow_a_reservation_down() {
    let books = open("long");
    let path = books.path().to_owned();
    drop(books);
    long_ledger(&path, 10_000);
    let budget = [Budget::new("visits", user(), 1.0, 1e-6)];
    let since = Instant::now();
    let mut books = Books::open(&path).unwrap();
    let first: Charge = vec![(rung(user()), Cost::Gaussian { noise: 1e5 })];
    let _ = books.booking(question("first"), &budget).reserve(&first).unwrap();
    let cold = since.elapsed();
    let since = Instant::now();
    for _ in 0..100 {
        let _ = books.booking(question("next"), &budget).reserve(&first).unwrap();
    }
    let warm = since.elapsed() / 100;
    let since = Instant::now();
    assert_eq!(books.verify().unwrap().entries, 10_101);
    println!("first reservation {cold:?}, each after it {warm:?}, verify {:?}", since.elapsed());
    // Measured on two busy cores: 0.14 s, 4.5 ms (most of it waiting for the disk) and 0.17 s. These limits only catch what grows with the square.
    assert!(cold < Duration::from_secs(5) && warm < Duration::from_millis(250), "{cold:?} {warm:?}");
}

/// Ten thousand entries by way of the ledger itself, without waiting for the disk.
fn long_ledger(path: &Path, entries: u32) {
    let mut text = Vec::new();
    let mut small = Books::open(path).unwrap();
    let budget = [Budget::new("visits", user(), 1.0, 1e-6)];
    small.unsynchronised();
    for k in 0..entries {
        // A thousand different costs.
        let cost = Cost::Gaussian { noise: 1e5 + f64::from(k % 1000) };
        let _ = small.booking(question("old"), &budget).reserve(&vec![(rung(user()), cost)]).unwrap();
    }
    small.export(&mut text).unwrap();
    assert_eq!(String::from_utf8(text).unwrap().lines().count() as u32, entries + 1);
}

#[test]
fn long_work_goes_on_under_the_entry_that_it_has() {
    let mut books = open("resumed");
    let path = books.path().to_owned();
    assert_eq!(books.open_reservation(&question("train")).unwrap(), None);
    let _ = reserve(&mut books, "train", 0.6).unwrap();
    drop(books); // the process dies here
    let mut books = Books::open(&path).unwrap();
    let open = books.open_reservation(&question("train")).unwrap().unwrap();
    assert_eq!((open.number, open.question.as_str()), (1, "SELECT train"));
    for other in [
        question("train more"),
        Question { fingerprint: "blake3:2".into(), ..question("train") },
        Question { analyst: "bob".into(), ..question("train") },
    ] {
        assert_eq!(books.open_reservation(&other).unwrap(), None, "{other:?}");
    }
    let limits = budgets(1.0);
    let mut booking = books.resume(question("train"), &limits, open.number);
    assert!(booking.reserve(&charge(0.5)).is_err(), "another charge");
    assert!(booking.failure().unwrap().sentence.contains("something else"));
    let reservation = booking.reserve(&charge(0.6)).unwrap();
    assert_eq!((reservation.number(), booking.entry()), (1, Some(1)));
    booking.commit(reservation, b"model").unwrap();
    assert!(booking.reserve(&charge(0.6)).is_err(), "it is over");
    assert!(booking.failure().unwrap().sentence.contains("committed"), "{:?}", booking.failure());
    assert_eq!(books.open_reservation(&question("train")).unwrap(), None);
    assert_eq!(books.entries(&Which::default()).unwrap().len(), 1);
    assert!(reserve(&mut books, "b", 0.6).is_err(), "0.6 is spent");
    assert!(reserve(&mut books, "b", 0.4).is_ok(), "and no more");
    assert_eq!(books.verify().unwrap().entries, 2);
}

fn at(step: u64) -> Progress {
    Progress { step, checkpoint: format!("blake3:{step}") }
}

#[test]
fn one_reservation_pays_for_one_path_of_checkpoints() {
    let mut books = open("progress");
    let path = books.path().to_owned();
    let limits = budgets(1.0);
    let mut booking = books.booking(question("train"), &limits);
    let reservation = booking.reserve(&charge(0.6)).unwrap();
    booking.progress(&reservation, &at(0)).unwrap();
    booking.progress(&reservation, &at(100)).unwrap();
    drop(books); // the process dies here
    let mut books = Books::open(&path).unwrap();
    assert_eq!(books.progress_of(1).unwrap(), Some(at(100)));
    assert_eq!(books.open_reservation(&question("train")).unwrap().unwrap().progress, Some(at(100)));
    // An older checkpoint, one of another run at the same step, and none at all.
    let forged = Progress { step: 100, checkpoint: "blake3:another".to_owned() };
    for wrong in [Some(at(0)), Some(forged), None] {
        let mut booking = books.resume(question("train"), &limits, 1).from_checkpoint(wrong);
        assert!(booking.reserve(&charge(0.6)).is_err());
        let failure = booking.failure().unwrap();
        assert!(failure.sentence.starts_with("entry 1 has gone on to step 100, and what would go on"), "{failure}");
        assert!(failure.hint.unwrap().contains("one reservation pays for one run"));
    }
    // Two go on from the same checkpoint: the first to note something is the run, and the other neither goes on nor commits.
    let mut twin = Books::open(&path).unwrap();
    let mut second = twin.resume(question("train"), &limits, 1).from_checkpoint(Some(at(100)));
    let twice = second.reserve(&charge(0.6)).unwrap();
    let mut first = books.resume(question("train"), &limits, 1).from_checkpoint(Some(at(100)));
    let once = first.reserve(&charge(0.6)).unwrap();
    assert!(first.progress(&once, &at(100)).unwrap_err().sentence.contains("so step 100 is none to go on to"));
    first.progress(&once, &at(200)).unwrap();
    assert!(second.progress(&twice, &at(300)).unwrap_err().sentence.contains("gone on to step 200"));
    assert!(second.commit(twice, b"another model").unwrap_err().sentence.contains("gone on to step 200"));
    first.commit(once, b"model").unwrap();
    assert_eq!(
        books.note_progress(1, Some(&at(200)), &at(300)).unwrap_err().to_string(),
        "entry 1 is committed already"
    );
    assert_eq!(books.progress_of(7).unwrap_err(), LedgerError::NoEntry { number: 7, last: 1 });
    assert_eq!(books.verify().unwrap().events, 5);
}

/// Whoever only looks changes nothing: not the file, and nothing next to it.
#[test]
fn to_look_at_an_empty_file_makes_no_ledger_of_it() {
    let folder = folder("looked-at-empty");
    let (path, opening) =
        (folder.join("whit.ledger"), Opening { witness: Some(folder.join("heads")), ..Opening::default() });
    std::fs::write(&path, "").unwrap();
    assert_eq!(Books::open_existing(&path, &opening).unwrap_err(), LedgerError::Missing(path.clone()));
    assert_eq!(Books::accept(&path, &opening, "as it is").unwrap_err(), LedgerError::Missing(path.clone()));
    assert_eq!(std::fs::metadata(&path).unwrap().len(), 0);
    assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 1, "and nothing stands next to it");

    // Where a ledger was, an empty file is one that is gone.
    let mut books = Books::open_as(&path, &opening).unwrap();
    let _open = reserve(&mut books, "a", 0.1).unwrap();
    drop(books);
    std::fs::write(&path, "").unwrap();
    assert!(matches!(Books::open_existing(&path, &opening), Err(LedgerError::Gone { .. })));
    assert_eq!(std::fs::metadata(&path).unwrap().len(), 0);
}

#[cfg(unix)]
#[test]
fn a_ledger_that_is_made_in_a_file_of_everybody_is_for_its_owner_alone() {
    use std::os::unix::fs::PermissionsExt;
    let folder = folder("made-private");
    let path = folder.join("whit.ledger");
    std::fs::write(&path, "").unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o644)).unwrap();
    let mut books = Books::open(&path).unwrap();
    let _open = reserve(&mut books, "a", 0.1).unwrap();
    for file in std::fs::read_dir(&folder).unwrap().map(Result::unwrap) {
        let mode = file.metadata().unwrap().permissions().mode() & 0o777;
        assert_eq!(mode, 0o600, "{}", file.path().display());
    }
}

/// A pipe would be waited for without end, and a device would lose its mode to whoever keeps a ledger private.
#[cfg(unix)]
#[test]
fn what_is_no_plain_file_is_no_ledger_and_no_head() {
    use std::os::unix::fs::{MetadataExt, symlink};
    let folder = folder("no_plain_file");
    let pipe = |name: &str| {
        let made = std::process::Command::new("mkfifo").arg(folder.join(name)).status().unwrap();
        assert!(made.success());
    };
    let before = std::fs::metadata("/dev/null").unwrap().mode();
    symlink("/dev/null", folder.join("device.ledger")).unwrap();
    pipe("pipe.ledger");
    for name in ["device.ledger", "pipe.ledger"] {
        let error = Books::open(&folder.join(name)).err().unwrap();
        assert!(matches!(error, LedgerError::NotALedger { .. }), "{error}");
    }
    assert_eq!(std::fs::metadata("/dev/null").unwrap().mode(), before, "what is linked to stays as it was");
    drop(Books::open(&folder.join("own.ledger")).unwrap());
    let _ = std::fs::remove_file(folder.join("own.ledger.head"));
    pipe("own.ledger.head");
    let error = Books::open(&folder.join("own.ledger")).err().unwrap();
    assert!(error.to_string().contains("it is no plain file"), "{error}");
}
