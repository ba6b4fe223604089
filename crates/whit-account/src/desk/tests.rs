use super::*;
use crate::ledger::{Books, Memory, State, Which};
use std::cell::{Cell, RefCell};
use whit_core::mechanism::{Accuracy, SanitiseError};
use whit_core::{Change, Cost, Epsilon, Sealed, Unit};
use whit_noise::{Entropy, Os};

fn pure(epsilon: f64) -> Cost {
    Cost::Pure { epsilon: Epsilon::new(epsilon).unwrap() }
}

fn user() -> Rung {
    Rung { unit: Unit::user("id", Change::Replace), holds: 1, disjoint: false, slices: None }
}

fn budgets() -> [Budget; 1] {
    [Budget::new("visits", user().unit, 1.0, 0.0)]
}

fn question(meaning: &str) -> Question {
    Question {
        dataset: "visits".to_owned(),
        analyst: "alice".to_owned(),
        meaning: meaning.to_owned(),
        text: format!("SELECT {meaning}"),
        fingerprint: "blake3:1".to_owned(),
        partition: None,
    }
}

/// Adds one, at a price, and writes down that it did; or fails.
struct Plus<'a> {
    epsilon: f64,
    fails: bool,
    events: &'a RefCell<Vec<&'static str>>,
}

impl Mechanism for Plus<'_> {
    type Exact = u64;
    type Noisy = u64;

    fn cost(&self, _: &Rung) -> Cost {
        pure(self.epsilon)
    }

    fn sanitise(&self, exact: &u64, _: &mut dyn Entropy) -> Result<Sealed<u64>, SanitiseError> {
        self.events.borrow_mut().push("sanitise");
        if self.fails { Err(SanitiseError::Overflow) } else { Ok(Sealed::new(exact + 1)) }
    }

    fn accuracy(&self, confidence: f64) -> Accuracy {
        Accuracy { within: 1.0, confidence }
    }
}

fn decode(bytes: &[u8]) -> Result<u64, String> {
    bytes.try_into().map(u64::from_le_bytes).map_err(|_| "it has no 8 bytes".to_owned())
}

/// A memory that writes down when it reserves.
struct Room<'a> {
    ledger: Memory,
    events: &'a RefCell<Vec<&'static str>>,
}

impl Room<'_> {
    fn ask(
        &mut self,
        epsilon: f64,
        fails: bool,
        start: Start,
        read: Result<u64, ReadError>,
    ) -> Result<Served<u64>, DeskError> {
        let plus = Plus { epsilon, fails, events: self.events };
        let (budgets, rungs, events) = (budgets(), [user()], self.events);
        let price = |epsilon: f64, _: &mut dyn Register| Some(vec![(user(), pure(epsilon))]);
        let question = question(&format!("{epsilon}"));
        let request = ReleaseRequest {
            question: &question,
            rungs: &rungs,
            coins: Coins::Secret(&mut Os),
            start,
            instead: Instead::Search { epsilon, price: &price },
        };
        let before = self.ledger.entries().to_vec();
        let fresh = Cell::new(false);
        let read = |reservation: &Reservation| {
            fresh.set(reservation.number() as usize > before.len());
            events.borrow_mut().push("read");
            read
        };
        let served = Desk::new(&mut self.ledger, &budgets).once(request, &plus, read, decode);
        if fresh.get() {
            assert_eq!(self.ledger.entries().len(), before.len() + 1, "it was shown a reservation that is none");
        }
        served
    }

    fn states(&self) -> Vec<&'static str> {
        self.ledger.entries().iter().map(|entry| entry.state.word()).collect()
    }
}

#[test]
fn rows_are_read_after_the_reservation_and_never_without_one() {
    let events = RefCell::new(Vec::new());
    let mut room = Room { ledger: Memory::new(), events: &events };
    let first = room.ask(0.6, false, Start::Anew, Ok(41)).unwrap();
    assert_eq!((first.value, first.entry, first.stored, first.reproducible), (42, 1, false, false));
    assert_eq!(events.take(), ["read", "sanitise"]);
    // What is stored costs nothing, and reads nothing.
    let again = room.ask(0.6, false, Start::Anew, Ok(99)).unwrap();
    assert_eq!((again.value, again.entry, again.stored), (42, 1, true));
    assert_eq!(again.charge, first.charge);
    // A question that is refused reads nothing, and says what would fit: that was tried.
    let DeskError::Refused { refusal, fits } = room.ask(0.5, false, Start::Anew, Ok(41)).unwrap_err() else { panic!() };
    assert_eq!(refusal.left, "ε = 0.4");
    assert_eq!(fits.as_deref(), Some("0.3999"));
    assert!(events.take().is_empty() && room.states() == ["committed"]);
}

#[test]
fn a_read_that_fails_leaves_the_charge_spent_and_says_so() {
    let events = RefCell::new(Vec::new());
    let mut room = Room { ledger: Memory::new(), events: &events };
    let gone = ReadError::changed("`visits.csv` changed while it was read", "ask again");
    let error = room.ask(0.3, false, Start::Anew, Err(gone.clone())).unwrap_err();
    assert_eq!(error, DeskError::Release(ReleaseError::Read(gone)));
    assert!(error.to_string().ends_with("(its charge was reserved before and stays spent)"), "{error}");
    assert_eq!((events.take(), room.states()), (vec!["read"], vec!["reserved"]));
    // Asked anew it is charged anew; only work of which nothing was seen goes on under what was reserved.
    assert!(matches!(room.ask(0.3, true, Start::Anew, Ok(1)), Err(DeskError::Release(ReleaseError::Sanitise(_)))));
    assert_eq!(room.states(), ["reserved", "reserved"]);
    let served = room.ask(0.3, false, Start::Open, Ok(1)).unwrap();
    assert_eq!((served.entry, room.states()), (1, vec!["committed", "reserved"]));
}

#[test]
fn work_goes_on_under_its_entry_or_not_at_all() {
    let events = RefCell::new(Vec::new());
    let mut room = Room { ledger: Memory::new(), events: &events };
    let _ = room.ask(0.3, true, Start::Anew, Ok(1)).unwrap_err();
    let elsewhere = Some(Progress { step: 3, checkpoint: "c".to_owned() });
    events.take();
    let error = room.ask(0.3, false, Start::Under { entry: 1, at: elsewhere }, Ok(1)).unwrap_err();
    assert!(matches!(error, DeskError::Release(ReleaseError::Ledger(_))), "{error}");
    // What another question was charged does not pay for this one.
    assert!(room.ask(0.2, false, Start::Under { entry: 1, at: None }, Ok(1)).is_err());
    assert!(events.take().is_empty(), "nothing is read for it");
    room.ledger.void(1, "nothing was drawn").unwrap();
    let void = room.ask(0.3, false, Start::Under { entry: 1, at: None }, Ok(1)).unwrap_err();
    assert_eq!(void, DeskError::Void { entry: 1 });
}

#[test]
fn who_gives_all_privacy_up_is_asked_for_no_budget_and_pays_with_everything() {
    let events = RefCell::new(Vec::new());
    let (mut ledger, rungs) = (Memory::new(), [user()]);
    let plus = Plus { epsilon: 7.0, fails: false, events: &events };
    let mut replay = Replay::new(1);
    let question = question("all");
    let request = |coins| ReleaseRequest {
        question: &question,
        rungs: &rungs,
        coins,
        start: Start::Anew,
        instead: Instead::Nothing,
    };
    let read = |_: &Reservation| Ok(1_u64);
    let budgets = budgets();
    let refused = Desk::new(&mut ledger, &budgets).once(request(Coins::Seeded(&mut replay)), &plus, read, decode);
    assert!(matches!(refused, Err(DeskError::Refused { fits: None, .. })));
    let mut replay = Replay::new(1);
    let desk = Desk::new(&mut ledger, &budgets).without_privacy();
    let served = { desk }.once(request(Coins::Seeded(&mut replay)), &plus, read, decode).unwrap();
    assert_eq!((served.value, served.stored, served.reproducible), (2, false, true));
    let mut replay = Replay::new(1);
    let again =
        Desk::new(&mut ledger, &budgets).once(request(Coins::Seeded(&mut replay)), &plus, read, decode).unwrap();
    assert!(again.stored && again.reproducible, "it protects nobody now either");
    let entry = &Register::entries(&ledger, &Which::default()).unwrap()[0];
    assert!(matches!(entry.state, State::Committed { .. }) && entry.charge[0].1 == Cost::Everything);
}

#[test]
fn the_epsilon_that_is_said_to_fit_was_tried() {
    let fits = largest(2.0, |epsilon| epsilon <= 0.123_46).unwrap();
    assert_eq!(fits, "0.1234");
    assert_eq!(largest(2.0, |_| false), None);
    assert_eq!(largest(5000.0, |epsilon| epsilon <= 1234.5).unwrap(), "1234");
}

/// Two go on under one entry: one commits, and the other gets the same, though it had drawn its own.
#[test]
fn of_two_under_one_entry_both_get_what_was_committed_first() {
    let folder = std::env::temp_dir().join(format!("whit-desk-{}", std::process::id()));
    let _ = std::fs::remove_dir_all(&folder); // it may not be there
    std::fs::create_dir_all(&folder).unwrap();
    let path = folder.join("whit.ledger");
    let (events, rungs, budgets, question) = (RefCell::new(Vec::new()), [user()], budgets(), question("both"));
    let plus = Plus { epsilon: 0.5, fails: false, events: &events };
    let ask = |value: u64, start: Start, meanwhile: &dyn Fn()| {
        let mut books = Books::open(&path).unwrap();
        let (coins, instead) = (Coins::Secret(&mut Os), Instead::Nothing);
        let request = ReleaseRequest { question: &question, rungs: &rungs, coins, start, instead };
        let read = |_: &Reservation| {
            meanwhile();
            Ok(value)
        };
        Desk::new(&mut books, &budgets).once(request, &plus, read, decode).unwrap()
    };
    let nothing = || {};
    let slow = ask(10, Start::Open, &|| {
        let quick = ask(20, Start::Under { entry: 1, at: None }, &nothing);
        assert_eq!((quick.value, quick.entry, quick.stored), (21, 1, false));
    });
    assert_eq!((slow.value, slow.entry, slow.stored), (21, 1, true));
    assert_eq!(Books::open(&path).unwrap().verify().unwrap().entries, 1);
    std::fs::remove_dir_all(&folder).unwrap();
}

fn stopped() -> ReadError {
    ReadError { interrupted: true, ..ReadError::failed("it was stopped") }
}

#[test]
fn what_was_interrupted_goes_on_under_its_entry_and_is_charged_once() {
    let events = RefCell::new(Vec::new());
    let mut room = Room { ledger: Memory::new(), events: &events };
    // Of a budget of 1: what is charged a second time would not fit.
    for time in 1..=3_u64 {
        let error = room.ask(0.6, false, Start::Anew, Err(stopped())).unwrap_err();
        assert_eq!(error, DeskError::Interrupted(Interruption { entry: Some(1), goes_on: true }), "time {time}");
        assert!(error.to_string().contains("as entry 1 of the ledger, stays spent"), "{error}");
        assert!(error.hint().unwrap().contains("goes on under entry 1"), "{error}");
        assert_eq!(room.ledger.entries()[0].progress.as_ref().unwrap().step, 2 * time - 1);
        assert!(room.ledger.entries()[0].is_interrupted());
    }
    let served = room.ask(0.6, false, Start::Anew, Ok(41)).unwrap();
    assert_eq!((served.value, served.entry, served.stored), (42, 1, false));
    assert_eq!(room.states(), ["committed"]);
    assert!(room.ask(0.6, false, Start::Anew, Ok(99)).unwrap().stored);
    assert_eq!(events.take(), ["read", "read", "read", "read", "sanitise"]);
}

#[test]
fn nobody_goes_on_with_what_died_or_failed() {
    let events = RefCell::new(Vec::new());
    let mut room = Room { ledger: Memory::new(), events: &events };
    // A read that fails, and a mechanism that does, leave what is spent.
    room.ask(0.2, false, Start::Anew, Err(ReadError::failed("the disk is gone"))).unwrap_err();
    room.ask(0.2, true, Start::Anew, Ok(41)).unwrap_err();
    assert_eq!(room.states(), ["reserved", "reserved"]);
    // One that was interrupted, gone on with, and failed then, is as spent as any.
    room.ask(0.2, false, Start::Anew, Err(stopped())).unwrap_err();
    room.ask(0.2, true, Start::Anew, Ok(41)).unwrap_err();
    assert!(!room.ledger.entries()[2].is_interrupted());
    assert_eq!(room.ask(0.2, false, Start::Anew, Ok(41)).unwrap().entry, 4);
    assert_eq!(room.states(), ["reserved", "reserved", "reserved", "committed"]);
    // And what was made void is over.
    room.ask(0.1, false, Start::Anew, Err(stopped())).unwrap_err();
    room.ledger.void(5, "asked by mistake").unwrap();
    assert_eq!(room.ask(0.1, false, Start::Anew, Ok(41)).unwrap().entry, 6);
}

#[test]
fn one_of_two_goes_on_with_what_was_interrupted() {
    let events = RefCell::new(Vec::new());
    let mut room = Room { ledger: Memory::new(), events: &events };
    room.ask(0.3, false, Start::Anew, Err(stopped())).unwrap_err();
    let (budgets, charge) = (budgets(), vec![(user(), pure(0.3))]);
    let question = question("0.3");
    let mut desk = Desk::new(&mut room.ledger, &budgets);
    assert_eq!(desk.goes_on(&question, &charge).unwrap().unwrap().number, 1);
    // Another price, another analyst or other data do not go on with it.
    assert_eq!(desk.goes_on(&question, &vec![(user(), pure(0.2))]).unwrap(), None);
    for other in [
        Question { analyst: "bob".to_owned(), ..question.clone() },
        Question { fingerprint: "blake3:2".to_owned(), ..question.clone() },
        Question { meaning: "another".to_owned(), ..question.clone() },
    ] {
        assert_eq!(desk.goes_on(&other, &charge).unwrap(), None);
    }
    // Both have seen it; the first takes it, and the second finds nothing to take.
    let seen = desk.goes_on(&question, &charge).unwrap().unwrap();
    let first = desk.interrupted(&question, &charge).unwrap().unwrap();
    assert_eq!((first.0, first.1.as_ref().unwrap().step), (1, 2));
    let late = room.ledger.note_progress(1, seen.progress.as_ref(), &gone_on_with_after(seen.progress.as_ref()));
    assert!(matches!(late, Err(LedgerError::OtherCheckpoint { .. })), "{late:?}");
    assert_eq!(Desk::new(&mut room.ledger, &budgets).interrupted(&question, &charge).unwrap(), None);
}
