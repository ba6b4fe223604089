//! Processes that are killed at every step of a release: no budget is exceeded, no committed release is lost, no reservation is forgotten.
//!
//! The test starts itself again as a child, which releases in a loop and says aloud what it has been promised. The parent kills it
//! (SIGKILL, as the kernel does when memory runs out) at a named step, or at any moment, opens the ledger and compares.

use crate::{budgets, charge, folder, question, reserve, user};
use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;
use whit_account::ledger::{Books, LedgerError, Opening, Register, State, Step, Which};
use whit_core::mechanism::{Accuracy, SanitiseError};
use whit_core::{Cost, Mechanism, Rung, Sealed, release};
use whit_noise::Entropy;

const ROLE: &str = "WHIT_TEST_LEDGER_CHILD";
const RESET: &str = "WHIT_TEST_LEDGER_RESET";
const STEP: &str = "WHIT_TEST_LEDGER_STEP";
/// Each release costs so much of a budget of 1.
const EACH: f64 = 1.0 / 4096.0;

/// Where the child is killed: before anything, inside both transactions, between them, after the noise is drawn, and after all.
const STEPS: [&str; 7] =
    ["BeforeReserve", "InReserve", "BeforeHead", "AfterReserve", "AfterSanitise", "InCommit", "AfterCommit"];

/// Says a line to the parent; it is through the pipe when this returns.
fn say(line: &str) {
    let mut out = std::io::stdout().lock();
    writeln!(out, "\n{line}").and_then(|()| out.flush()).unwrap();
}

/// Tells the parent where we are, and stays there until we are killed.
fn wait_for_the_end() -> ! {
    say("here");
    loop {
        std::thread::sleep(Duration::from_mins(1));
    }
}

/// Releases its argument, and stops after the draw where it is to.
struct Traced<'a> {
    stops: &'a dyn Fn(&str),
}

impl Mechanism for Traced<'_> {
    type Exact = u64;
    type Noisy = u64;

    fn cost(&self, _: &Rung) -> Cost {
        charge(EACH).remove(0).1
    }

    fn sanitise(&self, exact: &u64, _: &mut dyn Entropy) -> Result<Sealed<u64>, SanitiseError> {
        (self.stops)("AfterSanitise");
        Ok(Sealed::new(*exact))
    }

    fn accuracy(&self, confidence: f64) -> Accuracy {
        Accuracy { within: 0.0, confidence }
    }
}

/// What the child does: releases after releases, until its turn at the step has come or it is killed.
#[test]
fn child() {
    let Some(path) = std::env::var_os(ROLE) else { return };
    // "InReserve 3": the third time that this step is reached.
    let step = std::env::var(STEP).unwrap_or_default();
    let (name, turn) =
        step.split_once(' ').map_or((String::new(), 0), |(name, turn)| (name.to_owned(), turn.parse().unwrap()));
    let reached = std::sync::Arc::new(std::sync::atomic::AtomicU32::new(0));
    let stops = move |at: &str| {
        if at == name && reached.fetch_add(1, std::sync::atomic::Ordering::Relaxed) + 1 == turn {
            wait_for_the_end();
        }
    };
    let mut books = Books::open(Path::new(&path)).unwrap();
    let hooked = stops.clone();
    books.watch_steps(move |step: Step| hooked(&format!("{step:?}")));
    let rungs = [Rung { unit: user(), holds: 1, disjoint: false, slices: None }];
    let budget = budgets(1.0);
    let pid = u64::from(std::process::id());
    for k in 0_u64.. {
        let value = pid << 32 | k;
        let meaning = format!("{value}");
        let stops = |at: &str| {
            if at == "AfterSanitise" {
                say(&format!("reserved {value}"));
            }
            stops(at);
        };
        let mut booking = books.booking(question(&meaning), &budget);
        release(&Traced { stops: &stops }, |_| Ok(value), &rungs, &mut booking, &mut whit_noise::Os).unwrap();
        say(&format!("committed {value}"));
    }
}

/// With a head far away.
fn with_away(path: &Path) -> Opening {
    Opening { witness: Some(path.with_extension("away")), ..Opening::default() }
}

/// What a child does that begins a ledger anew, until it comes to the step that it was given.
#[test]
fn resetting_child() {
    let Some(path) = std::env::var_os(RESET) else { return };
    let (path, step) = (Path::new(&path), std::env::var(STEP).unwrap());
    let stop = move |at: Step| {
        if format!("{at:?}") == step {
            wait_for_the_end();
        }
    };
    drop(Books::reset_watched(path, &with_away(path), "the data is new", Some(Box::new(stop))).unwrap());
}

fn start(path: &Path, step: &str) -> Child {
    start_as(("crash::child", ROLE), path, step)
}

fn start_as((test, role): (&str, &str), path: &Path, step: &str) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args(["--exact", test, "--nocapture", "--test-threads=1"])
        .env(role, path)
        .env(STEP, step)
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap()
}

/// What all children so far were promised.
#[derive(Default)]
struct Promised {
    reserved: BTreeSet<u64>,
    committed: BTreeSet<u64>,
}

impl Promised {
    fn hear(&mut self, line: &str) {
        let number = |text: &str| text.trim().parse::<u64>().ok();
        if let Some(value) = line.strip_prefix("reserved ").and_then(number) {
            self.reserved.insert(value);
        }
        if let Some(value) = line.strip_prefix("committed ").and_then(number) {
            self.committed.insert(value);
        }
    }

    /// Everything that was promised is there, and nothing is there twice. Tells how many entries there are.
    fn check(&self, path: &Path, before: u64) -> u64 {
        let books = Books::open(path).unwrap();
        let verified = books.verify().unwrap_or_else(|fault| panic!("{fault}"));
        assert!(verified.entries >= before, "entries are never fewer than before");
        let mut found = BTreeMap::new();
        for entry in books.entries(&Which::default()).unwrap() {
            let value: u64 = entry.question.strip_prefix("SELECT ").unwrap().parse().unwrap();
            assert!(found.insert(value, entry.state).is_none(), "{value} was reserved once");
        }
        for value in &self.reserved {
            assert!(found.contains_key(value), "the reservation of {value} was forgotten");
        }
        for value in &self.committed {
            // Verifying has read every result; that each is the right one is looked at below.
            assert!(matches!(found[value], State::Committed { .. }), "the release {value} was lost");
        }
        // Spent is what was reserved, whatever became of it, and it never exceeds the budget.
        let spent = verified.accounts.first().map_or(0.0, |account| account.spent);
        assert!((spent - EACH * verified.entries as f64).abs() < 1e-9 && spent <= 1.0, "{spent}");
        verified.entries
    }

    /// Every result that was promised is the one that was written.
    fn check_results(&self, path: &Path) {
        let books = Books::open(path).unwrap();
        for value in &self.committed {
            let stored = books.stored(&question(&format!("{value}"))).unwrap().unwrap();
            assert_eq!(stored.value, value.to_le_bytes());
        }
    }
}

/// A number from a stream that is the same in every run.
fn draw(state: &mut u64) -> u32 {
    *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    (*state >> 33) as u32
}

/// At each step of the first, second or third release of a child, in turn.
#[test]
fn four_hundred_processes_killed_at_each_step_lose_nothing_and_forget_nothing() {
    let path = folder("crash-steps").join("whit.ledger");
    let (mut promised, mut entries, mut state) = (Promised::default(), 0, 1);
    for kills in 1..=399_usize {
        let step = STEPS[kills % STEPS.len()];
        let mut child = start(&path, &format!("{step} {}", draw(&mut state) % 3 + 1));
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let here = lines.by_ref().map_while(Result::ok).find(|line| {
            promised.hear(line);
            line == "here"
        });
        assert!(here.is_some(), "the child never came to {step}");
        child.kill().unwrap();
        child.wait().unwrap();
        entries = promised.check(&path, entries);
        if kills % 67 == 0 {
            promised.check_results(&path);
        }
    }
    println!("{entries} entries, {} committed", promised.committed.len());
    assert!(promised.committed.len() > 300 && entries > 500, "{entries}");

    // What crashes left behind is spent: the rest of the budget is what remains, to the last release.
    let mut books = Books::open(&path).unwrap();
    let open = books.entries(&Which::default()).unwrap().iter().filter(|entry| entry.state == State::Reserved).count();
    assert!(
        open >= 3 * 57,
        "{open} reservations were left open: after the reservation, after the draw, and inside the commit"
    );
    let left = 1.0 - EACH * entries as f64;
    assert!(reserve(&mut books, "too much", left + EACH).is_err());
    let _ = reserve(&mut books, "the rest", left).unwrap();
    assert!(reserve(&mut books, "one more", EACH).is_err());
}

/// At any moment: from the very start, or from the first release on.
#[test]
fn a_hundred_processes_killed_at_any_moment_lose_nothing_and_forget_nothing() {
    let path = folder("crash-any").join("whit.ledger");
    let (mut promised, mut entries, mut state) = (Promised::default(), 0, 2);
    for kills in 1..=120 {
        let mut child = start(&path, "");
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let (mut first, mut longest) = (None, 25_000);
        if kills % 3 > 0 {
            first = lines.by_ref().map_while(Result::ok).find(|line| line.starts_with("reserved"));
            longest = 10_000;
        }
        std::thread::sleep(Duration::from_micros(u64::from(draw(&mut state) % longest)));
        child.kill().unwrap();
        first.into_iter().chain(lines.map_while(Result::ok)).for_each(|line| promised.hear(&line));
        child.wait().unwrap();
        entries = promised.check(&path, entries);
    }
    promised.check_results(&path);
    println!("{entries} entries, {} committed", promised.committed.len());
    assert!(!promised.committed.is_empty() && entries >= 80, "{entries}");
}

/// Killed before the new ledger stands, before its heads do, and after: what went is missed until there is a ledger that says why, whichever heads of the old one
/// are left; and to ask for the same again completes it.
#[test]
fn a_ledger_is_begun_anew_with_its_reason_or_not_at_all() {
    for left in ["both", "near", "away"] {
        for step in ["InReset", "BeforeHead", "AfterReset"] {
            let path = folder(&format!("crash-reset-{left}-{step}")).join("whit.ledger");
            let opening = with_away(&path);
            let _ = reserve(&mut Books::open_as(&path, &opening).unwrap(), "7", EACH).unwrap();
            std::fs::remove_file(&path).unwrap();
            if left == "near" {
                std::fs::remove_dir_all(path.with_extension("away")).unwrap();
            }
            if left == "away" {
                std::fs::remove_file(path.with_extension("ledger.head")).unwrap();
            }
            let mut child = start_as(("crash::resetting_child", RESET), &path, step);
            let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
            let here = lines.by_ref().map_while(Result::ok).find(|line| line == "here");
            assert!(here.is_some(), "the child never came to {step}");
            child.kill().unwrap();
            child.wait().unwrap();
            match (step, Books::open_as(&path, &opening)) {
                ("InReset", Err(LedgerError::Gone { events: 1, .. }))
                | ("BeforeHead", Err(LedgerError::Unlike { .. }))
                | ("AfterReset", Ok(_)) => {}
                (_, opened) => panic!("killed at {step}, with {left} left: {opened:?}"),
            }
            drop(Books::reset(&path, &opening, "the data is new").unwrap());
            let books = Books::open_as(&path, &opening).unwrap();
            let reasons: Vec<String> = books.decisions().unwrap().into_iter().map(|decided| decided.reason).collect();
            assert_eq!(reasons, ["begun anew: the data is new"], "killed at {step}, with {left} left");
            assert_eq!(books.verify().unwrap().events, 1);
        }
    }
}

#[test]
#[should_panic(expected = "was forgotten")]
fn a_forgotten_reservation_would_be_noticed() {
    let path = folder("crash-forgotten").join("whit.ledger");
    Promised { reserved: [7].into(), ..Promised::default() }.check(&path, 0);
}

#[test]
#[should_panic(expected = "was lost")]
fn a_lost_release_would_be_noticed() {
    let path = folder("crash-lost").join("whit.ledger");
    let _ = reserve(&mut Books::open(&path).unwrap(), "7", EACH).unwrap();
    Promised { reserved: [7].into(), committed: [7].into() }.check(&path, 0);
}
