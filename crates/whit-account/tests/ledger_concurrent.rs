//! Thirty-two processes on one ledger: what they are granted never exceeds the budget, and all that fits is granted.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on should say where")]

mod ledger;

use ledger::{budgets, charge, folder, question, reserve};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;
use whit_account::ledger::{Books, Opening, Which};
use whit_core::Ledger;

const ROLE: &str = "WHIT_TEST_LEDGER_CLIENT";
/// A power of two, so that sums are exact and it is known to the last one how many fit.
const EACH: f64 = 1.0 / 256.0;

/// With a head far away, and patience.
fn opening(path: &Path) -> Opening {
    Opening { patience: Duration::from_mins(2), witness: Some(path.with_extension("away")) }
}

/// What each of the processes does: asks until it is refused.
#[test]
fn client() {
    let Some(path) = std::env::var_os(ROLE) else { return };
    let path = Path::new(&path);
    // All begin at once.
    while !path.with_extension("go").exists() {
        std::thread::sleep(Duration::from_millis(1));
    }
    let mut books = Books::open_as(path, &opening(path)).unwrap();
    let (budget, pid) = (budgets(1.0), std::process::id());
    for k in 0.. {
        let value = format!("{pid} {k}");
        let mut booking = books.booking(question(&value), &budget);
        match booking.reserve(&charge(EACH)) {
            Ok(reservation) => {
                booking.commit(reservation, value.as_bytes()).unwrap();
                std::thread::sleep(Duration::from_millis(50)); // thinks about the answer, so that others come in between
            }
            Err(refusal) => {
                assert!(booking.failure().is_none(), "{:?}", booking.failure());
                assert!(refusal.left.starts_with("ε = 0"), "{refusal}");
                println!("\ngranted {k}");
                return;
            }
        }
    }
}

#[test]
fn thirty_two_processes_spend_a_budget_exactly_once() {
    let path = folder("concurrent").join("whit.ledger");
    // None of them finds a ledger: making it is a part of the race.
    let clients: Vec<_> = (0..32)
        .map(|_| {
            Command::new(std::env::current_exe().unwrap())
                .args(["--exact", "client", "--nocapture", "--test-threads=1"])
                .env(ROLE, &path)
                .stdout(Stdio::piped())
                .stderr(Stdio::piped())
                .spawn()
                .unwrap()
        })
        .collect();
    std::fs::write(path.with_extension("go"), "").unwrap();
    let mut granted = Vec::new();
    for client in clients {
        let output = client.wait_with_output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let text = String::from_utf8(output.stdout).unwrap();
        let line = text.lines().find_map(|line| line.strip_prefix("granted ")).unwrap();
        granted.push(line.parse::<u64>().unwrap());
    }
    println!("granted {granted:?}");
    assert!(granted.iter().filter(|&&granted| granted > 0).count() >= 4, "it was a race");
    assert_eq!(granted.iter().sum::<u64>(), 256, "no more than fits, and no less");
    let mut books = Books::open(&path).unwrap();
    assert!(reserve(&mut books, "one more", EACH).is_err());
    let verified = books.verify().unwrap();
    assert_eq!((verified.entries, verified.events), (256, 512));
    assert!((verified.accounts[0].spent - 1.0).abs() < 1e-9);
    for entry in books.entries(&Which::default()).unwrap() {
        let value = entry.question.strip_prefix("SELECT ").unwrap();
        assert_eq!(books.stored(&question(value)).unwrap().unwrap().value, value.as_bytes());
    }
}

/// Making a ledger is a race too, and everybody wins it.
#[test]
fn a_file_that_many_open_at_once_is_made_once() {
    let folder = folder("made-once");
    for round in 0..20 {
        let path = folder.join(format!("{round}.ledger"));
        let barrier = std::sync::Barrier::new(8);
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    barrier.wait();
                    let mut books = Books::open_as(&path, &opening(&path)).unwrap();
                    let _ = reserve(&mut books, "q", 1.0 / 8.0).unwrap();
                });
            }
        });
        assert_eq!(Books::open(&path).unwrap().verify().unwrap().entries, 8);
    }
}

/// A ledger is verified as it stood at one moment, with the heads of that moment, however busy others are.
#[test]
fn verifying_while_others_write_raises_no_alarm() {
    let path = folder("verified-meanwhile").join("whit.ledger");
    let books = Books::open_as(&path, &opening(&path)).unwrap();
    std::thread::scope(|scope| {
        let writer = scope.spawn(|| {
            let mut books = Books::open_as(&path, &opening(&path)).unwrap();
            books.unsynchronised();
            for k in 0..100 {
                let _ = reserve(&mut books, &format!("{k}"), EACH).unwrap();
            }
        });
        let mut events = 0;
        while !writer.is_finished() {
            let verified = books.verify().unwrap_or_else(|fault| panic!("{fault}"));
            assert!(verified.events >= events, "{} after {events}", verified.events);
            events = verified.events;
        }
    });
    assert_eq!(books.verify().unwrap().events, 100);
}
