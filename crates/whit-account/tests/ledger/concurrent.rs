//! Thirty-two processes on one ledger: what they are granted never exceeds the budget, and all that fits is granted.

use crate::{budgets, charge, folder, question, reserve, user};
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;
use whit_account::desk::{Coins, Desk, Instead, ReleaseRequest, Served, Start};
use whit_account::ledger::{Books, Denied, LedgerError, Opening, Register, Terms, Which};
use whit_core::mechanism::laplace::Laplace;
use whit_core::{Bound, Change, Ledger, Rung, Support};

const ROLE: &str = "WHIT_TEST_LEDGER_CLIENT";
const HOLDER: &str = "WHIT_TEST_LEDGER_HOLDER";
const WALKER: &str = "WHIT_TEST_LEDGER_WALKER";
const MEANING: &str = "WHIT_TEST_LEDGER_MEANING";
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
                .args(["--exact", "concurrent::client", "--nocapture", "--test-threads=1"])
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

/// Asks for a count at the desk, of rows that take a while to read, and counts how often they are read.
fn count(books: &mut Books, meaning: &str, reads: &AtomicU32) -> Served<i64> {
    let one_row = Bound::Coordinates { groups: 1, low: 0, high: 1, support: Support::NonNegative };
    let count = Laplace::for_epsilon(one_row, Change::Replace, "0.0625".parse().unwrap()).unwrap();
    let rungs = [Rung { unit: user(), holds: 1, disjoint: false, slices: None }];
    let (question, budgets) = (question(meaning), budgets(1.0));
    let (coins, start, instead) = (Coins::Secret(&mut whit_noise::Os), Start::Anew, Instead::Nothing);
    let request = ReleaseRequest { question: &question, rungs: &rungs, coins, start, instead };
    let read = |_: &_| {
        reads.fetch_add(1, Ordering::Relaxed);
        std::thread::sleep(Duration::from_millis(30));
        Ok(1_234)
    };
    let decode = |bytes: &[u8]| bytes.try_into().map(i64::from_le_bytes).map_err(|_| "no count".to_owned());
    Desk::new(books, &budgets).once(request, &count, read, decode).unwrap()
}

/// Of thirty-two who ask the very same at once, one pays and reads, and all get the same.
#[test]
fn the_same_question_asked_by_many_at_once_is_charged_once() {
    let path = folder("asked-at-once").join("whit.ledger");
    let (barrier, reads) = (std::sync::Barrier::new(32), AtomicU32::new(0));
    let served: Vec<Served<i64>> = std::thread::scope(|scope| {
        let ask = || {
            let mut books = Books::open_as(&path, &opening(&path)).unwrap();
            barrier.wait();
            count(&mut books, "count", &reads)
        };
        let all: Vec<_> = (0..32).map(|_| scope.spawn(ask)).collect();
        all.into_iter().map(|one| one.join().unwrap()).collect()
    });
    assert_eq!((served.iter().filter(|served| !served.stored).count(), reads.into_inner()), (1, 1));
    assert!(served.iter().all(|each| (each.value, each.entry) == (served[0].value, 1)), "{served:?}");
    let books = Books::open_as(&path, &opening(&path)).unwrap();
    assert_eq!(books.verify().unwrap().entries, 1);
    let left = std::fs::read_dir(path.parent().unwrap()).unwrap().map(|file| file.unwrap().file_name());
    assert!(!left.into_iter().any(|name| name.to_string_lossy().contains("turn")), "a turn that nobody has any more");
}

/// A turn can be missing: a folder that takes no file, a system without locks. The ledger itself looks again then, where it reserves.
#[test]
fn what_was_answered_meanwhile_is_not_reserved_again() {
    let path = folder("answered-meanwhile").join("whit.ledger");
    let (mut first, mut second) = (Books::open(&path).unwrap(), Books::open(&path).unwrap());
    assert_eq!(second.stored(&question("q")).unwrap(), None);
    let mut booking = first.booking(question("q"), &[]);
    assert!(booking.reserve(&charge(EACH)).is_err(), "no budget watches over it");
    let budgets = budgets(1.0);
    let mut booking = first.booking(question("q"), &budgets);
    let reservation = booking.reserve(&charge(EACH)).unwrap();
    booking.commit(reservation, b"7").unwrap();
    let terms = Terms { budgets: &budgets, gives_up: false, again: false };
    assert_eq!(second.reserve_for(&question("q"), &charge(EACH), terms), Err(Denied::Answered { entry: 1 }));
    assert_eq!(second.verify().unwrap().entries, 1);
}

/// Who asks while another process is at it waits; where that one dies, its reservation stays spent and the next is charged for its own.
#[test]
fn a_turn_ends_with_whoever_has_it() {
    let path = folder("turns").join("whit.ledger");
    let books = Books::open(&path).unwrap();
    let turn = books.turn(&question("q")).unwrap();
    let other = books.turn(&question("another")).unwrap(); // nobody waits for another question
    let waited = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut books = Books::open(&path).unwrap();
            let _ = reserve(&mut books, "q", EACH).unwrap(); // left open, as by a process that died
            let served = count(&mut books, "q", &AtomicU32::new(0));
            waited.store(true, Ordering::SeqCst);
            assert_eq!((served.entry, served.stored), (2, false));
        });
        std::thread::sleep(Duration::from_millis(200));
        assert!(!waited.load(Ordering::SeqCst), "it did not wait for its turn");
        drop((turn, other));
    });
    assert!(waited.into_inner());
}

/// A process that runs one test of this file, in the role that a variable gives it.
fn process(test: &str, role: &str, path: &Path, meaning: &str) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args(["--exact", test, "--nocapture", "--test-threads=1"])
        .env(role, path)
        .env(MEANING, meaning)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
}

/// The files that stand for turns at a ledger.
fn turns_at(path: &Path) -> Vec<PathBuf> {
    let listed = std::fs::read_dir(path.parent().unwrap()).unwrap().map(|file| file.unwrap().path());
    listed.filter(|file| file.to_string_lossy().contains(".turn-")).collect()
}

/// What a process does that takes a turn, says so, and works for ever.
#[test]
fn holder() {
    let Some(path) = std::env::var_os(HOLDER) else { return };
    let books = Books::open(Path::new(&path)).unwrap();
    let _turn = books.turn(&question(&std::env::var(MEANING).unwrap())).unwrap();
    println!("\nhas it");
    loop {
        std::thread::sleep(Duration::from_secs(1));
    }
}

#[test]
fn a_turn_that_a_killed_process_left_goes_with_the_next_and_one_that_is_held_stays() {
    let path = folder("turns-left").join("whit.ledger");
    let books = Books::open(&path).unwrap();
    let start = |meaning: &str| {
        let mut child = process("concurrent::holder", HOLDER, &path, meaning);
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        assert!(lines.map_while(Result::ok).any(|line| line == "has it"));
        child
    };
    let mut held = start("held");
    let of_held = turns_at(&path);
    for meaning in ["left", "left too"] {
        let mut killed = start(meaning);
        killed.kill().unwrap();
        killed.wait().unwrap();
    }
    assert_eq!((of_held.len(), turns_at(&path).len()), (1, 2), "the second found the first one's and removed it");
    let turn = books.turn(&question("mine")).unwrap();
    let there = turns_at(&path);
    assert!(there.len() == 2 && there.contains(&of_held[0]), "{there:?}");
    drop(turn);
    assert_eq!(turns_at(&path), of_held);
    // And whoever asks what is held still waits for it.
    let waits = std::thread::spawn(move || drop(books.turn(&question("held")).unwrap()));
    std::thread::sleep(Duration::from_millis(200));
    assert!(!waits.is_finished(), "its turn was swept while somebody had it");
    held.kill().unwrap();
    held.wait().unwrap();
    waits.join().unwrap();
    assert_eq!(turns_at(&path), Vec::<PathBuf>::new());
}

/// What a process does that takes turn after turn, at two questions, and ends in the middle of the last one without letting go of it.
#[test]
fn walker() {
    let Some(path) = std::env::var_os(WALKER) else { return };
    let path = Path::new(&path);
    let books = Books::open_as(path, &opening(path)).unwrap();
    for lap in 0..60 {
        let meaning = ["one", "two"][lap % 2];
        let turn = books.turn(&question(meaning)).unwrap();
        let marker = path.with_extension(meaning);
        // Fails where another process is between these two lines.
        drop(std::fs::File::create_new(&marker).unwrap());
        std::fs::remove_file(&marker).unwrap();
        if lap == 59 {
            println!("\nwalked");
            std::process::exit(0); // nothing is dropped: the file stays
        }
        drop(turn);
    }
}

/// Processes that end without letting go, and others that sweep what they leave, never have one turn together.
#[test]
fn no_two_processes_have_the_same_turn_while_others_sweep() {
    let path = folder("turns-swept").join("whit.ledger");
    drop(Books::open_as(&path, &opening(&path)).unwrap());
    for _ in 0..3 {
        let all: Vec<Child> = (0..8).map(|_| process("concurrent::walker", WALKER, &path, "")).collect();
        for one in all {
            let output = one.wait_with_output().unwrap();
            let walked = String::from_utf8_lossy(&output.stdout).lines().any(|line| line == "walked");
            assert!(walked && output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        }
    }
    assert!(!turns_at(&path).is_empty(), "the last ones left theirs");
    drop(Books::open_as(&path, &opening(&path)).unwrap().turn(&question("three")).unwrap());
    assert_eq!(turns_at(&path), Vec::<PathBuf>::new());
}

/// Only an empty file with the name of a turn is one. What somebody else put there stays, and nobody waits for it.
#[cfg(unix)]
#[test]
fn what_is_no_turn_is_neither_swept_nor_waited_for() {
    let folder = folder("no-turns");
    let path = folder.join("whit.ledger");
    let books = Books::open(&path).unwrap();
    let other = folder.join("whit.ledger.turn-b");
    let mut ledger = Books::open(&other).unwrap();
    let entry = reserve(&mut ledger, "kept", EACH).unwrap().number();
    drop(ledger);
    let key = folder.join("whit.ledger.turn-0123456789abcdef");
    std::fs::write(&key, "somebody's notes").unwrap();
    std::fs::write(folder.join("whit.ledger.turn-notes.txt"), "").unwrap();
    let link = folder.join("whit.ledger.turn-00000000000000aa");
    std::os::unix::fs::symlink(folder.join("nowhere"), &link).unwrap();
    let pipe = folder.join("whit.ledger.turn-00000000000000bb");
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let before = turns_at(&path).len();
    drop(books.turn(&question("q")).unwrap());
    assert_eq!(turns_at(&path).len(), before, "nothing of it is ours");
    assert!(!folder.join("nowhere").exists() && link.is_symlink());
    assert_eq!(std::fs::read_to_string(key).unwrap(), "somebody's notes");
    assert_eq!(Books::open(&other).unwrap().entries(&Which::default()).unwrap()[0].number, entry);
    // Nor is there anything to wait for where a question's own turn is something else.
    let turn = books.turn(&question("q")).unwrap();
    let empty = |file: &PathBuf| std::fs::metadata(file).is_ok_and(|about| about.len() == 0 && about.is_file());
    let own = turns_at(&path).into_iter().find(|file| empty(file) && !file.ends_with("whit.ledger.turn-notes.txt"));
    let own = own.unwrap();
    drop(turn);
    assert!(Command::new("mkfifo").arg(&own).status().unwrap().success());
    drop(books.turn(&question("q")).unwrap());
    assert!(own.exists());
}

/// Whoever has a turn and never lets go, as a process that was stopped, is named after a while, and what is stored needs no turn at all.
#[test]
fn a_turn_that_is_never_let_go_is_said_and_not_waited_for_without_end() {
    let path = folder("stopped").join("whit.ledger");
    let mut books = Books::open(&path).unwrap();
    count(&mut books, "answered", &AtomicU32::new(0));
    let held = (books.turn(&question("asked")).unwrap(), books.turn(&question("answered")).unwrap());
    let hasty = Opening { patience: Duration::from_millis(50), ..Opening::default() };
    let mut hasty = Books::open_as(&path, &hasty).unwrap();
    let error = hasty.turn(&question("asked")).unwrap_err();
    assert!(matches!(error, LedgerError::Working { .. }) && error.hint().unwrap().contains("ask again"), "{error}");
    assert!(count(&mut hasty, "answered", &AtomicU32::new(0)).stored);
    drop(held);
    drop(hasty.turn(&question("asked")).unwrap());
}

/// A ledger that is reached by a link has its turns where the ledger is, and whoever lets go removes no file but its own.
#[cfg(unix)]
#[test]
fn turns_meet_wherever_a_ledger_is_reached_and_end_by_themselves() {
    let folder = folder("meeting");
    let (path, link) = (folder.join("whit.ledger"), folder.join("elsewhere").join("whit.ledger"));
    let books = Books::open(&path).unwrap();
    std::fs::create_dir(link.parent().unwrap()).unwrap();
    std::os::unix::fs::symlink(&path, &link).unwrap();
    let hasty = Opening { patience: Duration::from_millis(50), ..Opening::default() };
    let linked = Books::open_as(&link, &hasty).unwrap();
    let first = books.turn(&question("q")).unwrap();
    assert!(matches!(linked.turn(&question("q")), Err(LedgerError::Working { .. })));
    // Somebody removes it by hand, and another takes its place: the first one leaves that alone.
    std::fs::remove_file(&turns_at(&path)[0]).unwrap();
    let second = linked.turn(&question("q")).unwrap();
    drop(first);
    assert_eq!(turns_at(&path).len(), 1, "it is the second one's");
    drop(second);
    assert_eq!(turns_at(&path).len(), 0);
}
