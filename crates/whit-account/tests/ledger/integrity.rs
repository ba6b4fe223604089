//! Whatever becomes of a ledger's files, it says so: bytes that change, files that go, are cut, or are put back as they once were.

use crate::room::{Files, PAID, Room, is_head, name};
use crate::{budgets, charge, folder, question, reserve};
use rusqlite::Connection;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use whit_account::ledger::{Books, LedgerError, OperatorLog, Register};
use whit_core::{Ledger, Progress};

/// One byte, any bit, of every file: found by a sentence that names the ledger or its head, or nothing that the ledger says is another.
#[test]
fn one_changed_byte_in_any_file_is_found_or_holds_nothing() {
    let room = Room::new("bytes");
    room.ask(0..5);
    room.open().unwrap().remember_file("a.csv", 1, 2, "b").unwrap();
    room.open().unwrap().note_source("visits", "c").unwrap();
    let mut books = room.open().unwrap();
    let reservation = reserve(&mut books, "train", PAID).unwrap();
    books.note_progress(reservation.number(), None, &Progress { step: 7, checkpoint: "d".into() }).unwrap();
    drop(books);
    OperatorLog::next_to(&room.path()).write(0, "a row was bad").unwrap();
    let (files, said) = (room.files(), room.says(5).unwrap());
    let names: Vec<String> = files.keys().map(|file| name(file)).collect();
    assert_eq!(files.len(), 5, "the ledger, its journal, its log and two heads: {names:?}");
    let mut state = 7_u64;
    for (file, bytes) in &files {
        // Every 4th byte of what is small (every bit of a head is tried next to its code); every 37th of what is large; not the same ones each time.
        let stride = if bytes.len() < 2000 { 4 } else { 37 };
        let (mut noticed, mut harmless) = (0, 0);
        for place in (0..bytes.len()).step_by(stride) {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let mut changed = files.clone();
            let place = (place + (state >> 40) as usize % stride).min(bytes.len() - 1);
            changed.get_mut(file).unwrap()[place] ^= 1 << (state >> 61);
            room.put(&changed);
            match room.says(5) {
                Ok(says) => {
                    assert_eq!(says, said, "byte {place} of {} was changed, and nobody noticed", file.display());
                    harmless += 1;
                }
                Err(sentence) => {
                    let named = sentence.contains("ledger") || sentence.contains(".head");
                    assert!(named, "byte {place} of {}: {sentence}", file.display());
                    noticed += 1;
                }
            }
        }
        println!("{}: {noticed} changes noticed, {harmless} to bytes that hold nothing", name(file));
        match name(file).as_str() {
            head if is_head(head) => assert_eq!(harmless, 0, "every byte of a head counts"),
            "whit.ledger" => assert!(noticed > 100, "{noticed}"),
            _ => assert_eq!(noticed, 0, "neither a log nor a journal that is over says anything of what was charged"),
        }
    }
}

/// The class of faults that the file written ahead had: a part of it, changed, made all that came after disappear.
#[test]
fn what_was_released_stands_in_the_main_file() {
    let room = Room::near("main-file");
    room.ask(0..3);
    let mut books = room.open().unwrap();
    let _ = reserve(&mut books, "open", PAID).unwrap();
    // The process is still there, and has the ledger open: a copy of the two files alone knows everything.
    let copy = Room::near("main-file-copy");
    for ending in ["", ".head"] {
        let of = |room: &Room| format!("{}{ending}", room.path().display());
        std::fs::copy(of(&room), of(&copy)).unwrap();
    }
    assert_eq!(copy.open().unwrap().verify().unwrap().events, 7);
    assert!(!room.folder.join("here/whit.ledger-wal").exists());
}

#[test]
fn a_file_that_goes_is_missed() {
    let room = Room::new("gone");
    room.ask(0..3);
    let files = room.files();
    let said = room.says(3).unwrap();
    let is_ledger = |file: &Path| name(file) == "whit.ledger";
    for file in files.keys() {
        room.put(&files);
        std::fs::remove_file(file).unwrap();
        let away = file.starts_with(room.folder.join("away"));
        match room.says(3) {
            // The head far away is made again while the one next to the ledger is there; an old journal is nothing.
            Ok(says) => assert!(says == said && (away || name(file).ends_with("-journal")), "{}", file.display()),
            Err(sentence) if is_ledger(file) => {
                assert!(
                    sentence.contains("a ledger with 6 events stood at") && sentence.contains("gone"),
                    "{sentence}"
                );
                assert!(!room.path().exists(), "it is not remade");
            }
            Err(sentence) => assert!(sentence.ends_with("there is no head, and a ledger has one"), "{sentence}"),
        }
    }
    // All of them but the one far away; and the same with an empty file in its place.
    let away: Files = files.into_iter().filter(|(file, _)| file.starts_with(room.folder.join("away"))).collect();
    room.put(&away);
    let error = room.open().unwrap_err();
    assert!(matches!(error, LedgerError::Gone { events: 6, .. }), "{error}");
    assert!(error.hint().unwrap().contains("`Books::reset`"));
    let missing = Books::open_existing(&room.path(), &room.opening).unwrap_err();
    assert!(matches!(missing, LedgerError::Gone { events: 6, .. }), "{missing}");
    std::fs::write(room.path(), "").unwrap();
    assert!(matches!(room.open().unwrap_err(), LedgerError::Gone { events: 6, .. }));
    // The owner may begin anew, and that is kept.
    assert_eq!(Books::reset(&room.path(), &room.opening, " ").unwrap_err(), LedgerError::NoReason);
    let anew = Books::reset(&room.path(), &room.opening, "the data is new").unwrap();
    assert_eq!(anew.decisions().unwrap()[0].reason, "begun anew: the data is new");
    drop(anew);
    room.ask(0..2);
    assert!(
        Books::reset(&room.path(), &room.opening, "once more").unwrap_err().to_string().contains("move it away first")
    );
    assert_eq!(room.open().unwrap().verify().unwrap().events, 5);
}

#[test]
fn a_ledger_of_which_nothing_was_asked_may_go() {
    let room = Room::new("unasked");
    drop(room.open().unwrap());
    std::fs::remove_file(room.path()).unwrap();
    room.ask(0..1);
    assert_eq!(room.open().unwrap().verify().unwrap().events, 2);
}

#[test]
fn a_file_that_is_cut_is_found() {
    let room = Room::new("cut");
    room.ask(0..4);
    let (files, said) = (room.files(), room.says(4).unwrap());
    for (file, bytes) in files.iter().filter(|(_, bytes)| !bytes.is_empty()) {
        for length in (0..bytes.len()).step_by(bytes.len().div_ceil(60)) {
            let mut changed = files.clone();
            changed.get_mut(file).unwrap().truncate(length);
            room.put(&changed);
            match room.says(4) {
                Ok(says) => {
                    assert!(says == said && name(file).ends_with("-journal"), "{} cut at {length}", file.display());
                }
                Err(sentence) => assert!(sentence.contains("ledger"), "{sentence}"),
            }
        }
    }
}

/// Older copies of one file, of every set of files, and of all.
#[test]
fn an_older_copy_is_found() {
    let room = Room::new("older");
    let mut copies = Vec::new();
    for k in 0..3 {
        room.ask(4 * k..4 * (k + 1));
        copies.push(room.files());
    }
    let now = copies.pop().unwrap();
    let said = room.says(12).unwrap();
    let names: Vec<&PathBuf> = now.keys().collect();
    for (age, old) in copies.iter().enumerate() {
        for set in 1..1_u32 << names.len() {
            let mut files = now.clone();
            let put_back: Vec<&PathBuf> =
                names.iter().enumerate().filter(|(bit, _)| set >> bit & 1 == 1).map(|(_, file)| *file).collect();
            for file in &put_back {
                files.insert((*file).clone(), old[*file].clone());
            }
            room.put(&files);
            if put_back.iter().filter(|file| !name(file).ends_with("-journal")).count() + 1 >= names.len() {
                continue; // everything that there is was put back, far away too: nobody is left who could know
            }
            let names: Vec<String> = put_back.iter().map(|file| name(file)).collect();
            match room.says(12) {
                Ok(says) => {
                    // A journal that is over is nothing, and the head far away need only not be ahead.
                    let harmless =
                        names.iter().all(|name| name.ends_with("-journal") || (name.len() > 32 && is_head(name)));
                    assert!(says == said && harmless, "{names:?} of age {age}");
                }
                Err(sentence) => assert!(sentence.contains("whit.ledger"), "{sentence}"),
            }
        }
    }
}

/// An older copy is what its owner may accept, and a second copy of the same ledger is no second budget.
#[test]
fn an_owner_who_knows_why_takes_a_ledger_as_it_stands() {
    let room = Room::new("accepted");
    room.ask(0..2);
    let old: Files = room.files().into_iter().filter(|(file, _)| file.starts_with(room.folder.join("here"))).collect();
    room.ask(2..4);
    let now = room.files();
    room.put(&now.iter().map(|(file, bytes)| (file.clone(), old.get(file).unwrap_or(bytes).clone())).collect());
    let error = room.open().unwrap_err();
    assert!(
        error.to_string().contains("it says 8 events, and the file has 4: the file was cut, or is an older copy"),
        "{error}"
    );
    assert!(error.hint().unwrap().contains("`Books::accept`"));
    let books = Books::accept(&room.path(), &room.opening, "the disk broke; this is Monday's backup").unwrap();
    let decided = books.decisions().unwrap().remove(0).reason;
    assert!(
        decided.starts_with("taken as it stood: the disk broke; this is Monday's backup (")
            && decided.contains("8 events")
    );
    drop(books);
    room.ask(4..5);
    assert_eq!(room.open().unwrap().verify().unwrap().events, 7);

    // A copy elsewhere, used along with the first.
    let other = Room { folder: folder("accepted-twin"), opening: room.opening.clone() };
    std::fs::create_dir_all(other.folder.join("here")).unwrap();
    for ending in ["", ".head"] {
        let of = |room: &Room| format!("{}{ending}", room.path().display());
        std::fs::copy(of(&room), of(&other)).unwrap();
    }
    other.ask(5..6);
    let error = room.open().unwrap_err();
    assert!(error.to_string().contains("it says 9 events, and the file has 7"), "{error}");
}

/// A journal of a transaction that was killed half-way through the main file, with any byte of it changed.
#[test]
fn a_changed_journal_cannot_take_back_what_was_released() {
    let room = Room::new("hot-journal");
    room.ask(0..3);
    // A journal as it is when pages go to the main file: SQLite writes them early where its cache is small.
    let connection = Connection::open(room.path()).unwrap();
    connection
        .execute_batch(
            "PRAGMA journal_mode = PERSIST; PRAGMA cache_size = 2; PRAGMA synchronous = FULL; BEGIN IMMEDIATE;
             DROP TRIGGER entries_stay; DROP TRIGGER results_stay;
             UPDATE entries SET question = question || zeroblob(9000); UPDATE results SET value = zeroblob(9000);",
        )
        .unwrap();
    let files = room.files();
    drop(connection);
    let journal = room.folder.join("here/whit.ledger-journal");
    room.put(&files);
    let said = room.says(3).unwrap(); // it is played back
    let length = files[&journal].len();
    assert!(length > 4096, "{length}");
    let (mut noticed, mut harmless) = (0, 0);
    for place in (0..40).chain((40..length).step_by(151)) {
        let mut changed = files.clone();
        changed.get_mut(&journal).unwrap()[place] ^= 1 << (place % 8);
        room.put(&changed);
        match room.says(3) {
            Ok(says) => {
                assert_eq!(says, said, "byte {place}");
                harmless += 1;
            }
            Err(_) => noticed += 1,
        }
    }
    let mut gone = files.clone();
    gone.remove(&journal);
    room.put(&gone);
    if let Ok(says) = room.says(3) {
        assert_eq!(says, said);
    }
    println!("{noticed} changes noticed, {harmless} to bytes that hold nothing");
    assert!(noticed > 20, "{noticed} {harmless}");
}

#[cfg(unix)]
#[test]
fn files_of_a_ledger_are_its_owners_alone() {
    use std::os::unix::fs::PermissionsExt;
    let room = Room::new("modes");
    room.ask(0..1);
    OperatorLog::next_to(&room.path()).write(0, "x").unwrap();
    let files = room.files();
    assert_eq!(files.len(), 5, "{:?}", files.keys());
    let locks = room.away("lock");
    assert_eq!(locks.len(), 1, "{locks:?}");
    for file in files.keys().chain(&locks) {
        let mode = std::fs::metadata(file).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode, 0o600, "{}", file.display());
    }
}

/// Where nothing can be written nothing is released, and nothing is forgotten when it can be again.
#[cfg(target_os = "linux")]
#[test]
fn a_head_that_cannot_be_written_stops_a_release() {
    let room = Room::near("head-unwritable");
    room.ask(0..2);
    let mut books = room.open().unwrap();
    let head = room.folder.join("here/whit.ledger.head");
    let kept = std::fs::read(&head).unwrap();
    // `/dev/full` is a disk without room; what reads the head before finds it there all the same.
    let step = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(false));
    let (hooked, place) = (step.clone(), head.clone());
    books.watch_steps(move |at| {
        if format!("{at:?}") == "BeforeHead" && !hooked.swap(true, std::sync::atomic::Ordering::Relaxed) {
            std::fs::remove_file(&place).unwrap();
            std::fs::create_dir(&place).unwrap();
        }
    });
    let budget = budgets(1.0);
    let mut booking = books.booking(question("three"), &budget);
    assert!(booking.reserve(&charge(PAID)).is_err(), "what the head does not know of is not released");
    assert!(booking.failure().unwrap().sentence.contains("whit.ledger.head"), "{:?}", booking.failure());
    drop(books);
    std::fs::remove_dir(&head).unwrap();
    std::fs::write(&head, kept).unwrap();
    let books = room.open().unwrap();
    assert_eq!(books.verify().unwrap().events, 5, "what was reserved stays spent");
}

/// A process that still holds the file could go on writing to what nobody else will ever see.
#[cfg(unix)]
#[test]
fn nothing_is_released_by_a_ledger_whose_file_went_while_it_was_open() {
    let went = |name: &str, go: fn(&Path)| {
        let room = Room::near(name);
        room.ask(0..2);
        let mut books = room.open().unwrap();
        let budget = budgets(1.0);
        let mut booking = books.booking(question("before"), &budget);
        let reservation = booking.reserve(&charge(PAID)).unwrap();
        go(&room.path());
        assert!(booking.commit(reservation, b"an answer").is_err(), "{name}: it was to be released");
        assert!(booking.reserve(&charge(PAID)).is_err(), "{name}: it was charged where nobody sees it");
        let failure = booking.failure().unwrap();
        assert!(failure.sentence.contains("while it was open"), "{name}: {failure}");
    };
    went("removed-open", |path| std::fs::remove_file(path).unwrap());
    went("replaced-open", |path| {
        let copy = path.with_extension("copy");
        std::fs::copy(path, &copy).unwrap();
        std::fs::rename(copy, path).unwrap();
    });
    // And in the moment between the event and its head.
    let room = Room::near("removed-between");
    room.ask(0..2);
    let mut books = room.open().unwrap();
    let path = room.path();
    books.watch_steps(move |at| {
        if format!("{at:?}") == "BeforeHead" {
            std::fs::remove_file(&path).unwrap();
        }
    });
    assert!(reserve(&mut books, "three", PAID).is_err());
    drop(books);
    assert!(matches!(room.open().unwrap_err(), LedgerError::Gone { events: 4, .. }), "the old head still misses it");
}

/// To make a file, or to put one in another's place, takes longer than all the rest of a charge, and a disk must be asked to keep it once more.
#[cfg(unix)]
#[test]
fn a_charge_writes_into_files_that_are_there() {
    use std::os::unix::fs::MetadataExt;
    let room = Room::new("in-place");
    room.ask(0..1);
    let places = || -> BTreeMap<PathBuf, u64> {
        room.names().into_iter().map(|file| (file.clone(), std::fs::metadata(file).unwrap().ino())).collect()
    };
    let before = places();
    assert_eq!(before.len(), 4, "the ledger, its journal and two heads: {before:?}");
    room.ask(1..20);
    assert_eq!(places(), before);
}
