//! Whatever becomes of a ledger's files, it says so: bytes that change, files that go, are cut, or are put back as they once were.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on should say where")]

mod ledger;

use ledger::{budgets, charge, folder, question, reserve};
use rusqlite::Connection;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use whit_account::ledger::{Books, LedgerError, Opening, OperatorLog};
use whit_core::{Ledger, Progress};

const PAID: f64 = 1.0 / 64.0;

/// A room with a ledger, and a folder far away in which its head is kept too.
struct Room {
    folder: PathBuf,
    opening: Opening,
}

/// All files of a ledger, with what is in them.
type Files = BTreeMap<PathBuf, Vec<u8>>;

impl Room {
    fn new(name: &str) -> Self {
        let folder = folder(name);
        let opening = Opening { witness: Some(folder.join("away")), ..Opening::default() };
        std::fs::create_dir_all(folder.join("here")).unwrap();
        Self { folder, opening }
    }

    /// The same without a head far away.
    fn near(name: &str) -> Self {
        Self { opening: Opening::default(), ..Self::new(name) }
    }

    fn path(&self) -> PathBuf {
        self.folder.join("here/whit.ledger")
    }

    fn open(&self) -> Result<Books, LedgerError> {
        Books::open_as(&self.path(), &self.opening)
    }

    /// Asks so many questions more, and is told their answers.
    fn ask(&self, questions: std::ops::Range<u32>) {
        let mut books = self.open().unwrap();
        let budget = budgets(1.0);
        for k in questions {
            let mut booking = books.booking(question(&format!("{k}")), &budget);
            let reservation = booking.reserve(&charge(PAID)).unwrap();
            booking.commit(reservation, format!("answer {k}").as_bytes()).unwrap();
        }
    }

    fn names(&self) -> Vec<PathBuf> {
        let listed = ["here", "away"].into_iter().filter_map(|folder| std::fs::read_dir(self.folder.join(folder)).ok());
        let files = listed.flatten().map(|file| file.unwrap().path());
        // A lock holds nothing, and stays.
        files.filter(|file| file.extension().is_none_or(|ending| ending != "lock")).collect()
    }

    /// The same ledger, or what stands in for it, in another folder; the folder far away is the same.
    fn beside(&self, name: &str) -> Self {
        Self { folder: folder(name), opening: self.opening.clone() }.with_folder()
    }

    fn with_folder(self) -> Self {
        std::fs::create_dir_all(self.folder.join("here")).unwrap();
        self
    }

    fn head(&self) -> PathBuf {
        self.folder.join("here/whit.ledger.head")
    }

    /// Heads and locks far away.
    fn away(&self, ending: &str) -> Vec<PathBuf> {
        let listed = std::fs::read_dir(self.opening.witness.as_ref().unwrap()).unwrap();
        let files = listed.map(|file| file.unwrap().path());
        files.filter(|file| file.extension().is_some_and(|found| found == ending)).collect()
    }

    /// Copies the ledger and its head.
    fn copy_to(&self, other: &Self) {
        std::fs::copy(self.path(), other.path()).unwrap();
        std::fs::copy(self.head(), other.head()).unwrap();
    }

    /// Removes everything that is beside the ledger, and itself.
    fn clear(&self) {
        for file in std::fs::read_dir(self.folder.join("here")).unwrap() {
            std::fs::remove_file(file.unwrap().path()).unwrap();
        }
    }

    fn files(&self) -> Files {
        self.names().into_iter().map(|file| (file.clone(), std::fs::read(file).unwrap())).collect()
    }

    /// Makes the files exactly these.
    fn put(&self, files: &Files) {
        for file in self.names().iter().filter(|file| !files.contains_key(*file)) {
            std::fs::remove_file(file).unwrap();
        }
        for (file, bytes) in files {
            std::fs::write(file, bytes).unwrap();
        }
    }

    /// Everything that the ledger says when it is opened, asked for each answer, verified, and charged once more; or the first error, in words.
    fn says(&self, questions: u32) -> Result<Vec<String>, String> {
        let mut books = self.open().map_err(|error| error.to_string())?;
        let mut said = Vec::new();
        for k in 0..questions {
            let stored = books.stored(&question(&format!("{k}"))).map_err(|error| error.to_string())?;
            said.push(String::from_utf8(stored.ok_or(format!("answer {k} is forgotten"))?.value).unwrap());
        }
        assert!(books.recall_file("a.csv", 1, 2).map_err(|error| error.to_string())?.is_none_or(|hash| hash == "b"));
        let verified = books.verify().map_err(|fault| format!("{}: {fault}", self.path().display()))?;
        said.push(format!("{} events, {:?}", verified.events, verified.accounts));
        let budget = budgets(1.0);
        let mut booking = books.booking(question("one more"), &budget);
        let left = booking.reserve(&charge(1.0)).unwrap_err().left;
        if let Some(failure) = booking.failure() {
            return Err(failure.sentence);
        }
        said.push(left);
        let mut text = Vec::new();
        books.export(&mut text).map_err(|error| error.to_string())?;
        said.push(String::from_utf8(text).unwrap());
        Ok(said)
    }
}

/// Whether a file of this name is a head.
fn is_head(name: &str) -> bool {
    Path::new(name).extension().is_some_and(|ending| ending == "head")
}

fn name(path: &Path) -> String {
    path.file_name().unwrap().to_string_lossy().into_owned()
}

/// One byte, any bit, of every file: found by a sentence that names the ledger or its head, or nothing that the ledger says is another.
#[test]
fn one_changed_byte_in_any_file_is_found_or_holds_nothing() {
    let room = Room::new("bytes");
    room.ask(0..5);
    room.open().unwrap().remember_file("a.csv", 1, 2, "b").unwrap();
    room.open().unwrap().note_source("visits", "c").unwrap();
    let mut books = room.open().unwrap();
    let reservation = reserve(&mut books, "train", PAID).unwrap();
    books.progress(reservation.number(), None, &Progress { step: 7, checkpoint: "d".into() }).unwrap();
    drop(books);
    OperatorLog::beside(&room.path()).write(0, "a row was bad").unwrap();
    let (files, said) = (room.files(), room.says(5).unwrap());
    let names: Vec<String> = files.keys().map(|file| name(file)).collect();
    assert_eq!(files.len(), 5, "the ledger, its journal, its log and two heads: {names:?}");
    let mut state = 7_u64;
    for (file, bytes) in &files {
        // Every 4th byte of what is small (every bit of a head is tried beside its code); every 37th of what is large; not the same ones each time.
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
fn what_was_told_stands_in_the_main_file() {
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
            // The head far away is made again while the one beside the ledger is there; an old journal is nothing.
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
            let told: Vec<String> = put_back.iter().map(|file| name(file)).collect();
            match room.says(12) {
                Ok(says) => {
                    // A journal that is over is nothing, and the head far away need only not be ahead.
                    let harmless =
                        told.iter().all(|name| name.ends_with("-journal") || (name.len() > 32 && is_head(name)));
                    assert!(says == said && harmless, "{told:?} of age {age}");
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

    // A copy elsewhere, used beside the first.
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
fn a_changed_journal_cannot_take_back_what_was_told() {
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
    OperatorLog::beside(&room.path()).write(0, "x").unwrap();
    let files = room.files();
    assert_eq!(files.len(), 5, "{:?}", files.keys());
    let locks = room.away("lock");
    assert_eq!(locks.len(), 1, "{locks:?}");
    for file in files.keys().chain(&locks) {
        let mode = std::fs::metadata(file).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode, 0o600, "{}", file.display());
    }
}

/// Where nothing can be written nothing is told, and nothing is forgotten when it can be again.
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
    assert!(booking.reserve(&charge(PAID)).is_err(), "what the head does not know of is not told");
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
fn nothing_is_told_by_a_ledger_whose_file_went_while_it_was_open() {
    let went = |name: &str, go: fn(&Path)| {
        let room = Room::near(name);
        room.ask(0..2);
        let mut books = room.open().unwrap();
        let budget = budgets(1.0);
        let mut booking = books.booking(question("before"), &budget);
        let reservation = booking.reserve(&charge(PAID)).unwrap();
        go(&room.path());
        assert!(booking.commit(reservation, b"an answer").is_err(), "{name}: it was to be told");
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

/// To make a file, or to put one in another's place, takes longer than all the rest of a charge, and a disk must be told of it once more.
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

/// A ledger of which nothing was asked, in the place of one of which something was, is no fresh budget; nor one that was made while nobody looked far away.
#[test]
fn another_ledger_in_the_place_of_one_that_is_known_is_refused() {
    let room = Room::new("foreign");
    room.ask(0..2);
    let kept = room.files();
    let other = room.beside("foreign-other");
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
    let other = room.beside("seen-copy");
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

/// The file is one, by whichever link it is reached: it has one head beside it, and a link that leads nowhere makes none.
#[cfg(unix)]
#[test]
fn a_link_to_a_ledger_is_that_ledger() {
    use std::os::unix::fs::symlink;
    let room = Room::new("linked");
    room.ask(0..1);
    let link = room.beside("linked-here");
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
    let twins: Vec<Room> = (0..4).map(|k| room.beside(&format!("twins-{k}"))).collect();
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
    let twin = room.beside("waiting-twin");
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
            assert!(booking.reserve(&charge(PAID)).is_err(), "the other is not told yet");
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

/// What was read was told: a process that has a ledger open does not take an older copy, written into the same file, for all there is.
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

/// Nor does it tell what stands in a file that went.
#[cfg(unix)]
#[test]
fn a_stored_answer_is_not_told_from_a_file_that_went() {
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

/// A head that is not as it was written concerns whom it names, and they are told what to do.
#[test]
fn a_damaged_head_concerns_only_the_ledger_that_it_names() {
    let room = Room::new("torn");
    room.ask(0..1);
    let head = room.away("head").remove(0);
    let mut bytes = std::fs::read(&head).unwrap();
    bytes[20] ^= 1;
    std::fs::write(&head, &bytes).unwrap();
    let other = room.beside("torn-other");
    other.ask(0..1);
    assert_eq!(other.open().unwrap().verify().unwrap().events, 2);

    room.clear();
    let error = room.open().unwrap_err();
    assert!(matches!(&error, LedgerError::Torn { witness, .. } if *witness == head), "{error}");
    assert!(error.hint().unwrap().contains("`Books::reset`"));
    drop(Books::reset(&room.path(), &room.opening, "it was lost").unwrap());
    room.ask(0..1);
    // The same where another ledger stands there.
    let third = room.beside("torn-third");
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
    assert!(matches!(Books::open_as(&room.path(), &opening).unwrap_err(), LedgerError::Head { .. }));
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
    std::fs::remove_dir(room.head()).unwrap();
    let fault = books.verify().unwrap_err();
    assert!(fault.is_damage(), "{fault}");
}
