//! A changed byte is found and named; a cut tail is found; an old file is read.

use crate::{budgets, charge, folder, question, reserve, user};
use rusqlite::Connection;
use std::path::{Path, PathBuf};
use whit_account::ledger::{Books, Budget, ChainFault, Head, LedgerError, Opening, Question, Register, State, Which};
use whit_core::unit::{SliceKind, SliceRange, SliceValue, Slices, Slicing};
use whit_core::{Charge, Cost, Delta, Epsilon, Ledger, Progress, Rung, Unit};

/// Four entries: two committed, one void, one open. The events are reserve 1, commit 1, reserve 2, void 2, reserve 3, commit 3, reserve 4.
fn sample(name: &str) -> PathBuf {
    let path = folder(name).join("whit.ledger");
    fill(&mut Books::open(&path).unwrap());
    path
}

fn fill(books: &mut Books) {
    let budget = budgets(1.0);
    let mut ask = |meaning: &str, value: Option<&[u8]>| {
        let asked = Question { partition: Some("blake3:p".into()), ..question(meaning) };
        let mut booking = books.booking(asked, &budget);
        let reservation = booking.reserve(&charge(0.125)).unwrap();
        if let Some(value) = value {
            booking.commit(reservation, value).unwrap();
        }
    };
    ask("one", Some(b"{\"rows\":[1234]}"));
    ask("two", None);
    books.void(2, "the source went away").unwrap();
    let mut ask = |meaning: &str, value: Option<&[u8]>| {
        let mut booking = books.booking(question(meaning), &budget);
        let reservation = booking.reserve(&charge(0.25)).unwrap();
        if let Some(value) = value {
            booking.commit(reservation, value).unwrap();
        }
    };
    ask("three", Some(&[0, 159, 146, 150, 255]));
    ask("four", None);
}

/// A copy of the ledger with its head, under another name.
fn copied(path: &Path, ending: &str) -> PathBuf {
    let copy = path.with_extension(ending);
    let with_ending = |path: &Path, ending: &str| PathBuf::from(format!("{}{ending}", path.display()));
    let _ = std::fs::remove_file(with_ending(&copy, "-journal")); // there may be none
    std::fs::copy(path, &copy).unwrap();
    std::fs::copy(with_ending(path, ".head"), with_ending(&copy, ".head")).unwrap();
    copy
}

/// What a ledger says of itself when it is opened and verified.
fn verified(path: &Path) -> Result<(), ChainFault> {
    let fault = |what: String| ChainFault { event: None, entry: None, field: "file".to_owned(), what };
    match Books::open(path) {
        Ok(books) => books.verify().map(|_| ()),
        Err(LedgerError::Changed(fault)) => Err(fault),
        Err(error) => Err(fault(error.to_string())),
    }
}

/// Writes into the tables as somebody would who owns the file: past the triggers.
fn tamper(path: &Path, sql: &str) -> Result<(), ChainFault> {
    let copy = copied(path, "tampered");
    let connection = Connection::open(&copy).unwrap();
    let triggers: Vec<String> = connection
        .prepare("SELECT name FROM sqlite_schema WHERE type = 'trigger'")
        .unwrap()
        .query_map([], |row| row.get(0))
        .unwrap()
        .map(Result::unwrap)
        .collect();
    for trigger in triggers {
        connection.execute_batch(&format!("DROP TRIGGER {trigger}")).unwrap();
    }
    connection.execute_batch(sql).unwrap();
    drop(connection);
    verified(&copy)
}

#[test]
fn a_sound_ledger_says_what_was_spent() {
    let path = sample("sound");
    let books = Books::open(&path).unwrap();
    let verified = books.verify().unwrap();
    assert_eq!((verified.events, verified.entries), (7, 4));
    assert_eq!(verified.head, books.head().unwrap());
    let [account] = verified.accounts.as_slice() else { panic!("{:?}", verified.accounts) };
    assert!((account.spent - 0.625).abs() < 1e-12 && (account.left.unwrap() - 0.375).abs() < 1e-8, "{account:?}");
    assert_eq!((account.releases, account.dataset.as_str(), &account.unit), (3, "visits", &user()));
    tamper(&path, "UPDATE files SET size = 1").unwrap();
}

#[test]
fn a_change_to_any_field_is_named_with_its_entry() {
    let path = sample("fields");
    let cases = [
        ("UPDATE entries SET dataset = 'visitz' WHERE number = 3", 3, "dataset"),
        ("UPDATE entries SET analyst = 'bob' WHERE number = 1", 1, "analyst"),
        ("UPDATE entries SET question = question || ' ' WHERE number = 4", 4, "question"),
        ("UPDATE entries SET meaning = x'00' WHERE number = 2", 2, "meaning"),
        ("UPDATE entries SET fingerprint = 'blake3:2' WHERE number = 1", 1, "fingerprint"),
        ("UPDATE entries SET partition_hash = NULL WHERE number = 1", 1, "partition_hash"),
        ("UPDATE entries SET partition_hash = '' WHERE number = 3", 3, "partition_hash"),
        ("UPDATE entries SET charge = replace(charge, '0.25', '0.01') WHERE number = 3", 3, "charge"),
        ("UPDATE entries SET budgets = replace(budgets, '1.0', '9.0') WHERE number = 3", 3, "budgets"),
        ("UPDATE results SET value = x'00' WHERE entry = 3", 3, "value"),
        ("UPDATE results SET entry = 4 WHERE entry = 3", 3, "value"),
        ("DELETE FROM results WHERE entry = 1", 1, "value"),
        ("DELETE FROM entries WHERE number = 3", 3, "dataset"),
        ("UPDATE events SET reason = 'another' WHERE kind = 'void'", 2, "reason"),
        ("UPDATE events SET time = time + 1 WHERE sequence = 5", 3, "time"),
        ("UPDATE events SET kind = 'void', reason = '' WHERE sequence = 6", 3, "kind"),
        ("UPDATE events SET entry = 4 WHERE sequence = 6", 4, "entry"),
        ("UPDATE events SET hash = zeroblob(32) WHERE sequence = 5", 3, "hash"),
        ("UPDATE events SET digests = zeroblob(352) WHERE sequence = 5", 3, "kind"),
        ("UPDATE events SET digests = CAST(digests || x'00' AS BLOB) WHERE sequence = 5", 3, "digests"),
        ("DELETE FROM events WHERE sequence = 4", 3, "sequence"),
        ("DELETE FROM events WHERE sequence = 1", 1, "sequence"),
        ("INSERT INTO entries SELECT 5, dataset, analyst, question, meaning, fingerprint, partition_hash, charge, budgets
          FROM entries WHERE number = 4", 5, "number"),
        ("INSERT INTO results VALUES (4, x'00')", 4, "value"),
    ];
    for (sql, entry, field) in cases {
        let fault = tamper(&path, sql).expect_err(sql);
        assert_eq!((fault.entry, fault.field.as_str()), (Some(entry), field), "{sql}: {fault}");
    }
    let fault = tamper(&path, "UPDATE entries SET analyst = 'bob' WHERE number = 1").unwrap_err();
    assert_eq!(fault.to_string(), "entry 1, event 1: `analyst` was changed after it was written");
}

#[test]
fn a_tail_that_was_cut_off_is_found_by_the_head() {
    let path = sample("verify-cut");
    let fault = tamper(&path, "DELETE FROM events WHERE sequence >= 6").unwrap_err();
    assert_eq!(fault.to_string(), "event 6: `head` is cut off: the last 2 of 7 records are missing");
    for sql in ["DELETE FROM head", "UPDATE head SET events = 3", "UPDATE head SET hash = zeroblob(32)"] {
        assert!(tamper(&path, sql).is_err(), "{sql}");
    }
}

/// Somebody who cuts the tail and writes the head inside of the file anew is found by the head next to it; one whose owner is assured that all is well, by a head
/// that was kept elsewhere.
#[test]
fn a_forged_tail_is_found_by_the_heads_outside_of_the_file() {
    let path = sample("forged");
    let books = Books::open(&path).unwrap();
    let kept: Head = books.head().unwrap().to_string().parse().unwrap();
    assert_eq!(books.verify_after(&kept).unwrap().events, 7);
    drop(books);
    let forge = "DELETE FROM events WHERE sequence = 7; DELETE FROM entries WHERE number = 4;
                 UPDATE head SET events = 6, hash = (SELECT hash FROM events WHERE sequence = 6)";
    let fault = tamper(&path, forge).unwrap_err();
    assert!(
        fault.what.contains("it says 7 events, and the file has 6: the file was cut, or is an older copy"),
        "{fault}"
    );
    let forged = path.with_extension("tampered");
    let mut forged = Books::accept(&forged, &Opening::default(), "so I was told").unwrap();
    let fault = forged.verify_after(&kept).unwrap_err();
    assert!(fault.field == "hash" && fault.to_string().contains("written anew"), "{fault}");
    let _ = reserve(&mut forged, "five", 0.01).unwrap();
    assert!(forged.verify_after(&kept).is_err());
    let reason = &forged.decisions().unwrap()[0].reason;
    assert!(reason.starts_with("taken as it stood: so I was told (the ledger"), "{reason}");
    assert!("x:1".parse::<Head>().is_err() && "3".parse::<Head>().is_err());
}

#[test]
fn a_ledger_that_was_changed_releases_nothing_more() {
    let path = sample("no-more");
    let mut books = Books::open(&path).unwrap();
    let sql = "DROP TRIGGER entries_stay; UPDATE entries SET charge = replace(charge, '0.25', '0.01') WHERE number = 3";
    Connection::open(&path).unwrap().execute_batch(sql).unwrap();
    assert!(books.void(4, "what was read before is not read again").is_ok());
    let error = Books::open(&path).unwrap_err();
    let sentence = "the ledger was changed: entry 3, event 5: `charge` was changed after it was written";
    assert_eq!(error.to_string(), sentence);
    assert!(error.hint().unwrap().contains("backup"));
    // A stored value that was changed is not handed out either.
    let path = sample("no-value");
    tamper(&path, "UPDATE results SET value = x'31' WHERE entry = 3").unwrap_err();
    let books = Books::open(&path.with_extension("tampered")).unwrap();
    let error = books.stored(&question("three")).unwrap_err();
    assert_eq!(error.to_string(), "the ledger was changed: entry 3, `value` was changed after it was written");
}

fn exported(books: &Books) -> Option<String> {
    let mut text = Vec::new();
    books.export(&mut text).ok()?;
    Some(String::from_utf8(text).unwrap())
}

/// Digests and hashes as the format says, written a second time: what a forger would do who knows it.
fn forge(path: &Path) {
    let connection = Connection::open(path).unwrap();
    let digest = |name: &str, kind: u8, bytes: &[u8]| {
        let length = (name.len() as u64).to_le_bytes();
        blake3::hash(&[&length, name.as_bytes(), &[kind], bytes].concat()).as_bytes().to_vec()
    };
    let mut previous = blake3::hash(b"whit ledger, format 1");
    for sequence in 1..=7_i64 {
        let read = |sql: &str| -> Vec<rusqlite::types::Value> {
            let sql = format!(
                "SELECT {sql} FROM events e LEFT JOIN entries n ON n.number = e.entry
                LEFT JOIN results r ON r.entry = e.entry WHERE e.sequence = {sequence}"
            );
            let count = connection.prepare(&sql).unwrap().column_count();
            connection.query_row(&sql, [], |row| (0..count).map(|column| row.get(column)).collect()).unwrap()
        };
        let own = match read("e.kind")[0].clone() {
            rusqlite::types::Value::Text(kind) if kind == "reserve" => {
                "dataset analyst question meaning fingerprint partition_hash charge budgets"
            }
            rusqlite::types::Value::Text(kind) if kind == "commit" => "value",
            _ => "reason",
        };
        let mut digests = Vec::new();
        for name in "kind entry time".split(' ').chain(own.split(' ')) {
            let column = if name == "entry" { "e.entry" } else { name };
            digests.extend(match &read(column)[0] {
                rusqlite::types::Value::Null => digest(name, 0, &[]),
                rusqlite::types::Value::Integer(number) => digest(name, 1, &number.to_le_bytes()),
                rusqlite::types::Value::Real(_) => panic!("no field is a float"),
                rusqlite::types::Value::Text(text) => digest(name, 3, text.as_bytes()),
                rusqlite::types::Value::Blob(bytes) => digest(name, 4, bytes),
            });
        }
        previous = blake3::hash(&[previous.as_bytes(), &sequence.to_le_bytes()[..], &digests].concat());
        let hash = previous.as_bytes().to_vec();
        connection
            .execute("UPDATE events SET digests = ?1, hash = ?2 WHERE sequence = ?3", (&digests, &hash, sequence))
            .unwrap();
        connection.execute("UPDATE head SET hash = ?1", [&hash]).unwrap();
    }
}

#[test]
fn a_charge_that_never_fitted_is_found_even_under_right_hashes() {
    let path = sample("never-fitted");
    let before = Books::open(&path).unwrap().head().unwrap();
    let copy = path.with_extension("tampered");
    let accept = || Books::accept(&copy, &Opening::default(), "a forger says so");
    tamper(&path, "UPDATE files SET size = 1").unwrap();
    forge(&copy);
    let forged = Books::open(&copy).unwrap();
    assert_eq!(forged.head().unwrap(), before, "hashes that are written anew from the same fields are the same");
    forged.verify_after(&before).unwrap();
    drop(forged);

    tamper(&path, "UPDATE entries SET charge = replace(charge, '0.25', '0.75') WHERE number = 4").unwrap_err();
    forge(&copy);
    let fault = verified(&copy).unwrap_err();
    assert!(fault.what.contains("both have 7 events, and the last is another"), "{fault}");
    let LedgerError::Changed(fault) = accept().unwrap_err() else { panic!("the chain is sound") };
    assert_eq!((fault.entry, fault.field.as_str()), (Some(4), "charge"), "{fault}");
    assert!(fault.what.starts_with("does not fit into the budget per user (id), replace"), "{fault}");

    tamper(&path, "UPDATE entries SET question = 'SELECT nothing' WHERE number = 4").unwrap_err();
    forge(&copy);
    let forged = accept().unwrap();
    forged.verify().unwrap();
    assert_eq!(forged.verify_after(&before).unwrap_err().entry, Some(4), "only the kept head shows this one");
}

#[test]
fn a_changed_export_is_not_imported() {
    let path = sample("changed-export");
    let text = exported(&Books::open(&path).unwrap()).unwrap();
    let changed = text.replace("0.125", "0.0625");
    let error = Books::import(&path.with_extension("again"), changed.as_bytes()).unwrap_err();
    assert!(error.to_string().contains("line 2 of the export: its check does not follow"), "{error}");
    let old = text.replace("\"version\":3", "\"version\":1");
    let error = Books::import(&path.with_extension("old"), old.as_bytes()).unwrap_err();
    assert!(error.to_string().contains("an export of format 1, and this whit reads formats 2 to 3"), "{error}");
}

#[test]
fn an_export_builds_a_ledger_with_the_same_charges_again() {
    let path = sample("export");
    let mut books = Books::open(&path).unwrap();
    let progress = Progress { step: 40, checkpoint: "blake3:checkpoint".to_owned() };
    books.note_progress(4, None, &progress).unwrap();
    let text = exported(&books).unwrap();
    assert_eq!(text.lines().count(), 9, "what it is, and eight events");
    let rebuilt = Books::import(&path.with_extension("rebuilt"), text.as_bytes()).unwrap();
    assert_eq!(rebuilt.verify().unwrap().accounts, books.verify().unwrap().accounts);
    let (old, new) = (books.entries(&Which::default()).unwrap(), rebuilt.entries(&Which::default()).unwrap());
    for (old, mut new) in old.into_iter().zip(new) {
        assert_eq!(old.progress.as_ref().map(|old| old.step), new.progress.as_ref().map(|new| new.step));
        (new.fingerprint, new.progress) = (old.fingerprint.clone(), old.progress.clone());
        assert_eq!(new, old);
    }
    assert_eq!(rebuilt.stored(&question("three")).unwrap(), None, "it does not know of which data that was");
    assert_eq!(exported(&rebuilt).unwrap(), text);
    assert!(Books::import(&path, text.as_bytes()).is_err(), "not over a ledger that is there");
    let cut: Vec<&str> = text.lines().take(6).collect();
    let error = Books::import(&path.with_extension("short"), cut.join("\n").as_bytes()).unwrap_err();
    assert!(error.to_string().contains("cut off"), "{error}");
    let mut csv = Vec::new();
    books.export_csv(&mut csv).unwrap();
    let csv = String::from_utf8(csv).unwrap();
    assert_eq!(csv.lines().count(), 5);
    assert!(csv.lines().nth(2).unwrap().contains(",void,visits,alice,SELECT two,\"user (id), replace\",1,"), "{csv}");
}

/// A preview of data that the ledger has not seen names none, and so does what was built from an export: that is no reason to take one for the other.
#[test]
fn a_question_that_names_no_data_finds_nothing() {
    let path = sample("no-data");
    let text = exported(&Books::open(&path).unwrap()).unwrap();
    let mut rebuilt = Books::import(&path.with_extension("rebuilt"), text.as_bytes()).unwrap();
    let kept = rebuilt.entries(&Which::default()).unwrap().remove(2).fingerprint;
    assert!(!kept.is_empty(), "an entry says that nobody knows its data");
    for fingerprint in [String::new(), kept] {
        let asked = |meaning: &str| Question { fingerprint: fingerprint.clone(), ..question(meaning) };
        assert_eq!(rebuilt.stored(&asked("three")).unwrap(), None, "`{fingerprint}` finds an answer");
        assert_eq!(rebuilt.open_reservation(&asked("four")).unwrap(), None, "`{fingerprint}` finds an open entry");
    }
}

/// Whoever knows all of the data but one value tries every value: nothing that may be shown says when it was right.
#[test]
fn nothing_that_a_ledger_shows_tells_the_fingerprint_of_the_data() {
    let secret = |value: u32| format!("blake3:{}", blake3::hash(format!("all else, {value}").as_bytes()));
    let shown = |name: &str, value: u32| {
        let path = folder(name).join("whit.ledger");
        let mut books = Books::open(&path).unwrap();
        let asked = Question { fingerprint: secret(value), ..question("count") };
        let budget = budgets(1.0);
        let mut booking = books.booking(asked.clone(), &budget);
        let reservation = booking.reserve(&charge(0.1)).unwrap();
        booking.commit(reservation, b"1").unwrap();
        assert!(books.stored(&asked).unwrap().is_some(), "the ledger itself knows it again");
        let mut csv = Vec::new();
        books.export_csv(&mut csv).unwrap();
        let head = books.head().unwrap().to_string();
        (format!("{}{}{head}", exported(&books).unwrap(), String::from_utf8(csv).unwrap()), path)
    };
    let (text, path) = shown("guessed", 7);
    let kept = Books::open(&path).unwrap().entries(&Which::default()).unwrap().remove(0).fingerprint;
    for guess in 0..20 {
        assert!(!text.contains(secret(guess).trim_start_matches("blake3:")), "{guess}");
    }
    assert!(!text.contains(kept.trim_start_matches("keyed:")) && !text.contains("fingerprint"));
    // What a guess would be compared with, the chain's hashes, is in the file and in its head alone; the file has mode 0600.
    let raw: String = std::fs::read_to_string(format!("{}.head", path.display())).unwrap();
    let chain = raw.lines().find_map(|line| line.strip_prefix("at 2:")).unwrap().to_owned();
    assert!(!text.contains(&chain));
    // The very same questions of other data show the same, but for times and what is made from them and the secret.
    let plain = |text: &str| -> String {
        let digits = |word: &str| word.len() >= 13 && word.chars().all(|c| c.is_ascii_hexdigit());
        text.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| !digits(word)).collect()
    };
    assert_eq!(plain(&text.replace(':', " ")).len(), plain(&shown("guessed-other", 8).0.replace(':', " ")).len());
}

/// The first format, as it was first written.
#[test]
fn a_ledger_of_version_1_is_read() {
    let text = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/ledger/version-1.sql");
    let folder = folder("version-1");
    let path = folder.join("whit.ledger");
    Connection::open(&path).unwrap().execute_batch(&std::fs::read_to_string(&text).unwrap()).unwrap();
    let mut books = Books::open(&path).unwrap();
    let verified = books.verify().unwrap();
    assert_eq!((verified.events, verified.entries), (10, 5), "and one that says that it was brought up to date");
    assert!(books.decisions().unwrap()[0].reason.contains("format 2"));
    let kept: Head = HEAD_IN_VERSION_1.parse().unwrap();
    assert_eq!(books.verify_after(&kept).unwrap().events, 10, "heads that were kept before are still known");
    let entries = books.entries(&Which::default()).unwrap();
    assert_eq!(entries[4].charge.len(), 2);
    assert!(matches!(entries[1].state, State::Void { .. }) && matches!(entries[2].state, State::Committed { .. }));
    assert_eq!(books.stored(&question("three")).unwrap().unwrap().value, [0, 159, 146, 150, 255]);
    let spent: Vec<f64> = verified.accounts.iter().map(|account| (account.spent * 1e6).round() / 1e6).collect();
    assert_eq!(spent, SPENT_IN_VERSION_1);
    assert!(reserve(&mut books, "six", 0.01).is_ok());
    books.verify().unwrap();
}

/// What `whit ledger verify` had printed of it.
const HEAD_IN_VERSION_1: &str = "9:3ee7efbd14de15d959d0db6cb73179824bee5016215734ced4bed29da6ddf9cb";

const SPENT_IN_VERSION_1: [f64; 2] = [2.295_742, 0.725];

/// The ledger in a file of this version, as it was written then.
fn of_version(version: u32) -> Books {
    let text = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(format!("tests/ledger/version-{version}.sql"));
    let path = folder(&format!("version-{version}")).join("whit.ledger");
    Connection::open(&path).unwrap().execute_batch(&std::fs::read_to_string(&text).unwrap()).unwrap();
    std::fs::copy(text.with_extension("head"), path.with_extension("ledger.head")).unwrap();
    Books::open(&path).unwrap()
}

/// The second format, which knew of no slices: what is in it touches all of them, also under a budget that has some today.
#[test]
fn a_ledger_of_version_2_is_read() {
    let mut books = of_version(2);
    let version = |books: &Books| -> i64 {
        Connection::open(books.path()).unwrap().query_row("PRAGMA user_version", [], |row| row.get(0)).unwrap()
    };
    assert_eq!(version(&books), 2, "to look at it writes nothing");
    let day = Slicing { column: "day".to_owned(), kind: SliceKind::Day, reading: String::new() };
    let whole = Budget::new("visits", Unit::element("id", "day"), 3.0, 1e-6);
    let (whole, by_day) = (books.spent(&whole).unwrap(), books.spent(&whole.along(Some(day))).unwrap());
    assert_eq!((whole.spent, by_day.slices.len()), (by_day.spent, 1));
    let verified = books.verify().unwrap();
    assert_eq!((verified.events, verified.entries), (10, 5));
    assert_eq!(books.stored(&question("three")).unwrap().unwrap().value, [0, 159, 146, 150, 255]);
    assert_eq!(books.progress_of(4).unwrap().unwrap().step, 120);
    assert!(reserve(&mut books, "six", 0.01).is_ok());
    books.verify().unwrap();
    assert_eq!(version(&books), 3, "from the next event on");
    assert!(Books::open(books.path()).is_ok());
}

/// Today's format, as text. `WHIT_WRITE_LEDGER=1 cargo test -p whit-account --test ledger version` writes it anew.
#[test]
fn a_ledger_of_version_3_is_read() {
    if std::env::var_os("WHIT_WRITE_LEDGER").is_some() {
        let text = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/ledger/version-3.sql");
        let folder = folder("version-3-written");
        std::fs::write(&text, written(&folder.join("written.ledger"))).unwrap();
        std::fs::copy(folder.join("written.ledger.head"), text.with_extension("head")).unwrap();
    }
    let mut books = of_version(3);
    let verified = books.verify().unwrap();
    assert_eq!((verified.events, verified.entries), (12, 6));
    let element = Unit::element("id", "day");
    let account = verified.accounts.iter().find(|account| account.unit == element).unwrap();
    let slices: Vec<(&str, u64)> =
        account.slices.iter().map(|level| (level.slices[0].as_str(), level.releases)).collect();
    assert_eq!(slices, [("2024-01-03 to 2024-01-04", 5), ("2024-01-02 and below", 4)]);
    assert_eq!(books.stored(&question("six")).unwrap().unwrap().value, b"7");
    assert!(reserve(&mut books, "seven", 0.01).is_ok());
    books.verify().unwrap();
}

/// A ledger of today's version, as text.
fn written(path: &Path) -> String {
    let mut books = Books::open(path).unwrap();
    fill(&mut books);
    books.note_progress(4, None, &Progress { step: 120, checkpoint: "blake3:c".to_owned() }).unwrap();
    let element = Unit::element("id", "day");
    let day = Slicing { column: "day".to_owned(), kind: SliceKind::Day, reading: String::new() };
    let by_day = Budget::new("visits", element.clone(), 3.0, 1e-6).along(Some(day.clone()));
    let budget = [Budget::new("visits", user(), 1.0, 0.0), by_day];
    let pure = Cost::Pure { epsilon: Epsilon::new(0.1).unwrap() };
    let approximate = Cost::Approximate { epsilon: Epsilon::ZERO, delta: Delta::new(1e-8).unwrap() };
    let costs = Cost::Series(vec![Cost::Gaussian { noise: 12.5 }, approximate, pure.clone().repeat(2)]);
    let rung = |unit: Unit, holds| Rung { unit, holds, disjoint: false, slices: None };
    let charge: Charge = vec![(rung(element.clone(), 1), costs), (rung(user(), 8), pure.clone())];
    let mut booking = books.booking(question("five"), &budget);
    let reservation = booking.reserve(&charge).unwrap();
    booking.commit(reservation, b"[1,2,3]").unwrap();
    let two_days = SliceRange { from: Some(SliceValue::Whole(19_725)), to: Some(SliceValue::Whole(19_726)) };
    let sliced = Rung { slices: Slices::new(day, vec![two_days]), ..rung(element, 1) };
    let mut booking = books.booking(question("six"), &budget);
    let reservation =
        booking.reserve(&vec![(sliced, Cost::Gaussian { noise: 12.5 }), (rung(user(), 8), pure)]).unwrap();
    booking.commit(reservation, b"7").unwrap();
    drop(books);
    let connection = Connection::open(path).unwrap();
    let list = |sql: &str| -> Vec<String> {
        let mut statement = connection.prepare(sql).unwrap();
        statement.query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect()
    };
    let mut text = vec!["PRAGMA application_id = 2003331444;".to_owned(), "PRAGMA user_version = 3;".to_owned()];
    let schema = list("SELECT sql || ';' FROM sqlite_schema WHERE sql IS NOT NULL ORDER BY type = 'trigger', rowid");
    text.extend(schema);
    for table in ["entries", "results", "events", "head", "secret"] {
        let columns = list(&format!("SELECT name FROM pragma_table_info('{table}')"));
        let quoted: Vec<String> = columns.iter().map(|column| format!("quote({column})")).collect();
        let values = quoted.join(" || ', ' || ");
        text.extend(list(&format!("SELECT 'INSERT INTO {table} VALUES (' || {values} || ');' FROM {table}")));
    }
    text.join("\n") + "\n"
}
