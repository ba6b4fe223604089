//! Ledgers in each other's place: copies, links, files that are swapped or go while a ledger is open, and heads that are not this ledger's.

use crate::room::{PAID, Room};
use crate::{budgets, charge, question, reserve};
use std::path::PathBuf;
use whit_account::ledger::{Books, LedgerError, Opening, Register};
use whit_core::Ledger;

/// A ledger of which nothing was asked, in the place of one of which something was, is no fresh budget; nor one that was made while nobody looked far away.
#[test]
fn another_ledger_in_the_place_of_one_that_is_known_is_refused() {
    let room = Room::new("foreign");
    room.ask(0..2);
    let kept = room.files();
    let other = room.elsewhere("foreign-other");
    drop(other.open().unwrap());
    other.copy_to(&room);
    let error = room.open().unwrap_err();
    assert!(matches!(error, LedgerError::Foreign { events: 4, .. }), "{error}");
    assert!(error.hint().unwrap().contains("`Books::accept`"));
    room.put(&kept);
    assert_eq!(room.open().unwrap().verify().unwrap().events, 4, "the one that was there is as it was");

    room.clear();
    assert!(matches!(room.open().unwrap_err(), LedgerError::Gone { events: 4, .. }));
    drop(Books::open(&room.path()).unwrap()); // once without a folder far away
    for _ in 0..2 {
        assert!(matches!(room.open().unwrap_err(), LedgerError::Foreign { events: 4, .. }));
    }
    // The owner may go on with it, and then nothing is missed any more.
    let books = Books::accept(&room.path(), &room.opening, "the data is new").unwrap();
    let decided = books.decisions().unwrap().remove(0).reason;
    assert!(decided.contains("the data is new (another ledger stood at") && decided.contains("4 events"), "{decided}");
    drop(books);
    room.ask(0..1);
    assert_eq!(room.open().unwrap().verify().unwrap().events, 3);
}

/// Wherever a ledger was once seen it is missed, wherever else it is seen after that.
#[test]
fn to_look_at_a_copy_does_not_make_the_first_be_forgotten() {
    let room = Room::new("seen");
    room.ask(0..2);
    let other = room.elsewhere("seen-copy");
    room.copy_to(&other);
    assert_eq!(other.open().unwrap().verify().unwrap().events, 4);
    room.clear();
    for _ in 0..2 {
        let error = room.open().unwrap_err();
        assert!(matches!(error, LedgerError::Gone { events: 4, .. }), "{error}");
    }
    other.clear();
    assert!(matches!(other.open().unwrap_err(), LedgerError::Gone { events: 4, .. }));
    // To begin anew here is said for here alone.
    drop(Books::reset(&other.path(), &other.opening, "a new project").unwrap());
    other.ask(0..1);
    assert!(matches!(room.open().unwrap_err(), LedgerError::Gone { events: 4, .. }));
}

/// The file is one, by whichever link it is reached: it has one head next to it, and a link that leads nowhere makes none.
#[cfg(unix)]
#[test]
fn a_link_to_a_ledger_is_that_ledger() {
    use std::os::unix::fs::symlink;
    let room = Room::new("linked");
    room.ask(0..1);
    let link = room.elsewhere("linked-here");
    symlink(room.path(), link.path()).unwrap();
    link.ask(1..2);
    room.ask(2..3);
    link.ask(3..4);
    assert!(!link.head().exists());
    drop(Books::accept(&link.path(), &link.opening, "a try").unwrap());
    room.ask(4..5);
    link.ask(5..6);
    assert_eq!(link.says(6).unwrap(), room.says(6).unwrap());
    room.clear();
    let error = link.open().unwrap_err();
    assert!(matches!(error, LedgerError::Link { .. }) && !room.path().exists(), "{error}");
    assert!(error.hint().unwrap().contains("where the link leads"));
    assert!(matches!(room.open().unwrap_err(), LedgerError::Gone { events: 13, .. }));
    // Nor is the link's own path forgotten.
    std::fs::remove_file(link.path()).unwrap();
    assert!(matches!(link.open().unwrap_err(), LedgerError::Gone { events: 13, .. }));
}

#[test]
fn a_folder_for_heads_that_depends_on_the_present_one_is_refused() {
    let room = Room::new("relative");
    let opening = Opening { witness: Some("state".into()), ..Opening::default() };
    let error = Books::open_as(&room.path(), &opening).unwrap_err();
    assert_eq!(error, LedgerError::Relative("state".into()));
    assert!(error.to_string().contains("no absolute path") && error.hint().unwrap().contains("WHIT_STATE"));
    assert!(!room.path().exists());
}

/// A hint to name another file would begin a fresh budget.
#[test]
fn a_file_that_is_no_ledger_any_more_was_one() {
    let with_away = |name: &str, near: bool| {
        let room = Room::new(name);
        room.ask(0..1);
        if !near {
            std::fs::remove_file(room.head()).unwrap();
        }
        let bytes = std::fs::read(room.path()).unwrap();
        // The title of the database, and which program made it.
        for place in [0, 7, 15, 68, 71] {
            let mut changed = bytes.clone();
            changed[place] ^= 1;
            std::fs::write(room.path(), &changed).unwrap();
            let error = room.open().unwrap_err();
            assert!(matches!(error, LedgerError::Damaged { .. }), "byte {place}: {error}");
            assert!(error.to_string().contains("knows of a ledger in this file"), "{error}");
            assert!(error.hint().unwrap().contains("from a backup"));
        }
    };
    with_away("title-near", true);
    with_away("title-away", false);
}

/// Copies are files of their own, so only the lock far away keeps them apart.
#[test]
fn of_copies_that_are_asked_at_once_one_answers() {
    let room = Room::new("twins");
    room.ask(0..1);
    let twins: Vec<Room> = (0..4).map(|k| room.elsewhere(&format!("twins-{k}"))).collect();
    for round in 1..=12 {
        for twin in &twins {
            room.copy_to(twin);
        }
        let mut open: Vec<Books> = twins.iter().map(|twin| twin.open().unwrap()).collect();
        let barrier = &std::sync::Barrier::new(open.len());
        let granted = std::thread::scope(|scope| {
            let asked: Vec<_> = open
                .iter_mut()
                .map(|books| {
                    scope.spawn(move || {
                        barrier.wait();
                        reserve(books, &format!("round {round}"), 1.0 / 1024.0).is_ok()
                    })
                })
                .collect();
            asked.into_iter().map(|asked| asked.join().unwrap()).filter(|granted| *granted).count()
        });
        assert_eq!(granted, 1, "round {round}");
        drop(open);
        // The one that answered is the ledger from here on.
        let sound = twins.iter().find(|twin| twin.open().is_ok()).unwrap();
        sound.copy_to(&room);
    }
    assert_eq!(room.open().unwrap().verify().unwrap().events, 14);
}

/// Not even when the event of the other is booked, and its head is not written yet.
#[test]
fn a_copy_waits_until_what_is_charged_to_another_is_known_far_away() {
    let room = Room::new("waiting");
    room.ask(0..1);
    let twin = room.elsewhere("waiting-twin");
    room.copy_to(&twin);
    let impatient = Opening { patience: std::time::Duration::from_millis(50), ..room.opening.clone() };
    let mut second = Books::open_as(&twin.path(), &impatient).unwrap();
    let mut first = room.open().unwrap();
    let tried = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(false));
    let hooked = tried.clone();
    first.watch_steps(move |at| {
        if format!("{at:?}") == "BeforeHead" && !hooked.swap(true, std::sync::atomic::Ordering::Relaxed) {
            let budget = budgets(1.0);
            let mut booking = second.booking(question("b"), &budget);
            assert!(booking.reserve(&charge(PAID)).is_err(), "the other is not answered yet");
            let failure = booking.failure().unwrap();
            assert!(failure.sentence.starts_with("another process has held the ledger"), "{failure}");
        }
    });
    let _ = reserve(&mut first, "a", PAID).unwrap();
    assert!(tried.load(std::sync::atomic::Ordering::Relaxed));
    drop(first);
    assert_eq!(room.open().unwrap().verify().unwrap().events, 3);
    assert!(matches!(twin.open().unwrap_err(), LedgerError::Unlike { .. }));
}

/// What was read was shown: a process that has a ledger open does not take an older copy, written into the same file, for all there is.
#[test]
fn an_older_copy_that_comes_while_it_is_open_is_found() {
    let room = Room::near("rolled-back-open");
    room.ask(0..1);
    let old = room.files();
    room.ask(1..3);
    let mut books = room.open().unwrap();
    room.put(&old); // into the same files
    let error = books.stored(&question("2")).unwrap_err();
    assert!(error.to_string().contains("while it was open"), "{error}");
    assert!(books.verify().unwrap_err().to_string().contains("while it was open"));
    let budget = budgets(1.0);
    let mut booking = books.booking(question("2"), &budget);
    assert!(booking.reserve(&charge(PAID)).is_err(), "it was to be drawn again");
    assert!(booking.failure().unwrap().sentence.contains("while it was open"), "{:?}", booking.failure());
    drop(books);
    assert_eq!(room.open().unwrap().verify().unwrap().events, 2, "nothing was written");
}

/// Nor does it release what stands in a file that went.
#[cfg(unix)]
#[test]
fn a_stored_answer_is_not_released_from_a_file_that_went() {
    let room = Room::near("moved-open");
    room.ask(0..1);
    let books = room.open().unwrap();
    assert!(books.stored(&question("0")).unwrap().is_some());
    std::fs::rename(room.path(), room.folder.join("elsewhere.ledger")).unwrap();
    drop(Books::reset(&room.path(), &room.opening, "the data is new").unwrap());
    let error = books.stored(&question("0")).unwrap_err();
    assert!(error.to_string().contains("while it was open"), "{error}");
    assert!(books.verify().is_err() && books.export(&mut std::io::sink()).is_err());
}

/// A head that is not as it was written concerns whom it names, and they learn what to do.
#[test]
fn a_damaged_head_concerns_only_the_ledger_that_it_names() {
    let room = Room::new("torn");
    room.ask(0..1);
    let head = room.away("head").remove(0);
    let mut bytes = std::fs::read(&head).unwrap();
    bytes[20] ^= 1;
    std::fs::write(&head, &bytes).unwrap();
    let other = room.elsewhere("torn-other");
    other.ask(0..1);
    assert_eq!(other.open().unwrap().verify().unwrap().events, 2);

    room.clear();
    let error = room.open().unwrap_err();
    assert!(matches!(&error, LedgerError::Torn { witness, .. } if *witness == head), "{error}");
    assert!(error.hint().unwrap().contains("`Books::reset`"));
    drop(Books::reset(&room.path(), &room.opening, "it was lost").unwrap());
    room.ask(0..1);
    // The same where another ledger stands there.
    let third = room.elsewhere("torn-third");
    third.ask(0..1);
    let names_other = |file: &PathBuf| {
        let text = String::from_utf8(std::fs::read(file).unwrap()).unwrap();
        text.contains("torn-other/here/whit.ledger")
    };
    let head = room.away("head").into_iter().find(names_other).unwrap();
    let mut bytes = std::fs::read(&head).unwrap();
    bytes[20] ^= 1;
    std::fs::write(&head, &bytes).unwrap();
    third.copy_to(&other);
    assert!(matches!(other.open().unwrap_err(), LedgerError::Torn { .. }));
    drop(Books::accept(&other.path(), &other.opening, "it was lost").unwrap());
    other.ask(1..2);
}

/// Heads that cannot be written stop what would be charged, and no look at a sound ledger.
#[test]
fn a_sound_ledger_can_be_looked_at_where_nothing_can_be_written() {
    let room = Room::near("read-only");
    room.ask(0..2);
    std::fs::write(room.folder.join("file"), "").unwrap();
    // Below a file there is no folder, whoever asks.
    let opening = Opening { witness: Some(room.folder.join("file/away")), ..Opening::default() };
    let mut books = Books::open_existing(&room.path(), &opening).unwrap();
    assert_eq!(books.verify().unwrap().events, 4);
    books.export(&mut std::io::sink()).unwrap();
    assert!(books.stored(&question("0")).is_err(), "the head far away does not know of it");
    assert!(books.void(1, "a try").unwrap_err().to_string().contains("file/away"));
    assert!(reserve(&mut books, "more", PAID).is_err());
    let error = Books::open_as(&room.path(), &opening).unwrap_err();
    assert!(matches!(error, LedgerError::Head { .. }));
    let hint = error.hint().unwrap();
    let file = room.folder.join("file");
    assert!(hint.starts_with(&format!("`{}` is a file: name a folder with `WHIT_STATE`", file.display())), "{hint}");
    assert_eq!(room.open().unwrap().verify().unwrap().events, 4);
}

/// What the system does not let us read is not called damage.
#[test]
fn a_head_that_cannot_be_read_is_no_damage() {
    let room = Room::near("no-damage");
    room.ask(0..1);
    let books = room.open().unwrap();
    std::fs::remove_file(room.head()).unwrap();
    std::fs::create_dir(room.head()).unwrap(); // a folder is no file that could be read
    let fault = books.verify().unwrap_err();
    assert!(!fault.is_damage() && fault.to_string().contains("cannot be looked at"), "{fault}");
    // It stands next to its ledger, and to name another folder for heads would not help.
    let hint = room.open().unwrap_err().hint().unwrap();
    assert!(hint.starts_with("see to it that it can be read and written, and its folder too"), "{hint}");
    std::fs::remove_dir(room.head()).unwrap();
    let fault = books.verify().unwrap_err();
    assert!(fault.is_damage(), "{fault}");
}
