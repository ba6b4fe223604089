//! A changed byte is found and named; a cut tail is found; an old file is read.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on should say where")]

mod ledger;

use ledger::{budgets, charge, folder, question, reserve, user};
use rusqlite::Connection;
use std::path::{Path, PathBuf};
use whit_account::ledger::{Books, Budget, Fault, Head, Question, State, Which};
use whit_core::{Charge, Cost, Delta, Epsilon, Ledger, Rung, Unit};

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

/// Writes into the tables as somebody would who owns the file: past the triggers.
fn tamper(path: &Path, sql: &str) -> Result<(), Fault> {
    let copy = path.with_extension("tampered");
    std::fs::copy(path, &copy).unwrap();
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
    Books::open(&copy).unwrap().verify().map(|_| ())
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
    let path = sample("cut");
    let fault = tamper(&path, "DELETE FROM events WHERE sequence >= 6").unwrap_err();
    assert_eq!(fault.to_string(), "event 6: `head` is cut off: the last 2 of 7 records are missing");
    for sql in ["DELETE FROM head", "UPDATE head SET events = 3", "UPDATE head SET hash = zeroblob(32)"] {
        assert!(tamper(&path, sql).is_err(), "{sql}");
    }
}

/// What the file alone cannot show: somebody who cuts the tail and writes the head anew. A head kept elsewhere shows it.
#[test]
fn a_forged_tail_is_found_only_by_a_head_that_was_kept_elsewhere() {
    let path = sample("forged");
    let books = Books::open(&path).unwrap();
    let kept: Head = books.head().unwrap().to_string().parse().unwrap();
    assert_eq!(books.verify_after(&kept).unwrap().events, 7);
    drop(books);
    let forge = "DELETE FROM events WHERE sequence = 7; DELETE FROM entries WHERE number = 4;
                 UPDATE head SET events = 6, hash = (SELECT hash FROM events WHERE sequence = 6)";
    assert_eq!(tamper(&path, forge), Ok(()), "the file alone cannot tell");
    let forged = Books::open(&path.with_extension("tampered")).unwrap();
    let fault = forged.verify_after(&kept).unwrap_err();
    assert_eq!(fault.to_string(), "event 6: `head` ends at event 6, before the one that was kept, 7");
    drop(forged);
    // and so does one that goes on from the forged tail
    let mut forged = Books::open(&path.with_extension("tampered")).unwrap();
    let _ = reserve(&mut forged, "five", 0.01).unwrap();
    let fault = forged.verify_after(&kept).unwrap_err();
    assert!(fault.field == "hash" && fault.to_string().contains("written anew"), "{fault}");
    // a head from before the change still fits
    assert!("x:1".parse::<Head>().is_err() && "3".parse::<Head>().is_err());
}

#[test]
fn a_ledger_that_was_changed_releases_nothing_more() {
    let path = sample("no-more");
    let sql = "UPDATE entries SET charge = replace(charge, '0.25', '0.01') WHERE number = 3";
    tamper(&path, sql).unwrap_err();
    let mut books = Books::open(&path.with_extension("tampered")).unwrap();
    let budget = budgets(1.0);
    let mut booking = books.booking(question("q"), &budget);
    assert!(booking.reserve(&charge(0.01)).is_err());
    let failure = booking.failure().unwrap();
    assert_eq!(failure.sentence, "the ledger was changed: entry 3, event 5: `charge` was changed after it was written");
    assert!(failure.hint.unwrap().contains("backup"));
    assert!(books.void(4, "why not").is_err());
    // A stored value that was changed is not handed out either.
    tamper(&path, "UPDATE results SET value = x'31' WHERE entry = 3").unwrap_err();
    let books = Books::open(&path.with_extension("tampered")).unwrap();
    let error = books.stored(&question("three")).unwrap_err();
    assert_eq!(error.to_string(), "the ledger was changed: entry 3, `value` was changed after it was written");
}

/// Any byte of the file, changed: either the ledger says that it is not as it was, or nothing that it holds has changed.
#[test]
fn no_changed_byte_of_the_file_changes_what_the_ledger_says_unnoticed() {
    let path = sample("bytes");
    let bytes = std::fs::read(&path).unwrap();
    let said = exported(&Books::open(&path).unwrap()).unwrap();
    let copy = path.with_extension("flipped");
    let (mut noticed, mut harmless, mut state) = (0, 0, 7_u64);
    // Every byte of the file in turn would take long; every 23rd, with a different bit, is 1,500 of them.
    for place in (0..bytes.len()).step_by(23) {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        let mut changed = bytes.clone();
        changed[place] ^= 1 << (state >> 61);
        for extension in ["flipped", "flipped-wal", "flipped-shm"] {
            let _ = std::fs::remove_file(path.with_extension(extension));
        }
        std::fs::write(&copy, &changed).unwrap();
        let sound = Books::open(&copy).ok().filter(|books| books.verify().is_ok());
        match sound.map(|books| exported(&books)) {
            None => noticed += 1,
            Some(says) => {
                assert_eq!(says.as_ref(), Some(&said), "byte {place} was changed and nobody noticed");
                harmless += 1;
            }
        }
    }
    println!("{noticed} changes noticed, {harmless} to bytes that hold nothing");
    assert!(noticed > 100, "{noticed} noticed, {harmless} harmless");
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
    tamper(&path, "UPDATE files SET size = 1").unwrap();
    forge(&copy);
    let forged = Books::open(&copy).unwrap();
    assert_eq!(forged.head().unwrap(), before, "hashes that are written anew from the same fields are the same");
    forged.verify_after(&before).unwrap();
    drop(forged);

    tamper(&path, "UPDATE entries SET charge = replace(charge, '0.25', '0.75') WHERE number = 4").unwrap_err();
    forge(&copy);
    let forged = Books::open(&copy).unwrap();
    let fault = forged.verify().unwrap_err();
    assert_eq!((fault.entry, fault.field.as_str()), (Some(4), "charge"), "{fault}");
    assert!(fault.what.starts_with("does not fit into the budget per user (id), replace"), "{fault}");
    drop(forged);

    tamper(&path, "UPDATE entries SET question = 'SELECT nothing' WHERE number = 4").unwrap_err();
    forge(&copy);
    let forged = Books::open(&copy).unwrap();
    forged.verify().unwrap();
    assert_eq!(forged.verify_after(&before).unwrap_err().entry, Some(4), "only the kept head shows this one");
}

#[test]
fn a_changed_export_is_not_imported() {
    let path = sample("changed-export");
    let text = exported(&Books::open(&path).unwrap()).unwrap().replace("0.125", "0.0625");
    let error = Books::import(&path.with_extension("again"), text.as_bytes()).unwrap_err();
    assert!(error.to_string().contains("line 2 of the export: its hash does not follow"), "{error}");
}

#[test]
fn an_export_builds_the_same_ledger_again() {
    let path = sample("export");
    let books = Books::open(&path).unwrap();
    let text = exported(&books).unwrap();
    assert_eq!(text.lines().count(), 8, "what it is, and seven events");
    let rebuilt = Books::import(&path.with_extension("rebuilt"), text.as_bytes()).unwrap();
    assert_eq!(rebuilt.verify().unwrap(), books.verify().unwrap());
    assert_eq!(rebuilt.entries(&Which::default()).unwrap(), books.entries(&Which::default()).unwrap());
    assert_eq!(exported(&rebuilt).unwrap(), text);
    assert!(Books::import(&path, text.as_bytes()).is_err(), "not over a ledger that is there");
    let cut: Vec<&str> = text.lines().take(6).collect();
    let error = Books::import(&path.with_extension("short"), cut.join("\n").as_bytes()).unwrap_err();
    assert!(error.to_string().contains("cut off"), "{error}");
    let mut csv = Vec::new();
    books.export_csv(&mut csv).unwrap();
    let csv = String::from_utf8(csv).unwrap();
    assert_eq!(csv.lines().count(), 5);
    assert!(
        csv.lines().nth(2).unwrap().contains(",void,visits,alice,SELECT two,blake3:1,\"user (id), replace\",1,"),
        "{csv}"
    );
}

/// The first format, as it was first written. `WHIT_WRITE_LEDGER=1 cargo test -p whit-account --test ledger_verify version` writes the text anew.
#[test]
fn a_ledger_of_version_1_is_read() {
    let text = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/ledger/version-1.sql");
    let folder = folder("version-1");
    if std::env::var_os("WHIT_WRITE_LEDGER").is_some() {
        std::fs::write(&text, written(&folder.join("written.ledger"))).unwrap();
    }
    let path = folder.join("whit.ledger");
    Connection::open(&path).unwrap().execute_batch(&std::fs::read_to_string(&text).unwrap()).unwrap();
    let mut books = Books::open(&path).unwrap();
    let verified = books.verify().unwrap();
    assert_eq!((verified.events, verified.entries), (9, 5));
    let entries = books.entries(&Which::default()).unwrap();
    assert_eq!(entries[4].charge.len(), 2);
    assert!(matches!(entries[1].state, State::Void { .. }) && matches!(entries[2].state, State::Committed { .. }));
    assert_eq!(books.stored(&question("three")).unwrap().unwrap().value, [0, 159, 146, 150, 255]);
    let spent: Vec<f64> = verified.accounts.iter().map(|account| (account.spent * 1e6).round() / 1e6).collect();
    assert_eq!(spent, SPENT_IN_VERSION_1);
    assert!(reserve(&mut books, "six", 0.01).is_ok());
    books.verify().unwrap();
}

const SPENT_IN_VERSION_1: [f64; 2] = [2.369_215, 0.725];

/// A ledger of today's version, as text.
fn written(path: &Path) -> String {
    let mut books = Books::open(path).unwrap();
    fill(&mut books);
    let element = Unit::element("id", "day");
    let budget = [Budget::new("visits", user(), 1.0, 0.0), Budget::new("visits", element.clone(), 3.0, 1e-6)];
    let pure = Cost::Pure { epsilon: Epsilon::new(0.1).unwrap() };
    let approximate = Cost::Approximate { epsilon: Epsilon::ZERO, delta: Delta::new(1e-8).unwrap() };
    let costs = Cost::Series(vec![Cost::Gaussian { noise: 12.5 }, approximate, pure.clone().repeat(2)]);
    let rung = |unit: Unit, holds| Rung { unit, holds, disjoint: false };
    let charge: Charge = vec![(rung(element, 1), costs), (rung(user(), 8), pure)];
    let mut booking = books.booking(question("five"), &budget);
    let reservation = booking.reserve(&charge).unwrap();
    booking.commit(reservation, b"[1,2,3]").unwrap();
    drop(books);
    let connection = Connection::open(path).unwrap();
    let list = |sql: &str| -> Vec<String> {
        let mut statement = connection.prepare(sql).unwrap();
        statement.query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect()
    };
    let mut text = vec!["PRAGMA application_id = 2003331444;".to_owned(), "PRAGMA user_version = 1;".to_owned()];
    let schema = list("SELECT sql || ';' FROM sqlite_schema WHERE sql IS NOT NULL ORDER BY type = 'trigger', rowid");
    text.extend(schema);
    for table in ["entries", "results", "events", "head"] {
        let columns = list(&format!("SELECT name FROM pragma_table_info('{table}')"));
        let quoted: Vec<String> = columns.iter().map(|column| format!("quote({column})")).collect();
        let values = quoted.join(" || ', ' || ");
        text.extend(list(&format!("SELECT 'INSERT INTO {table} VALUES (' || {values} || ');' FROM {table}")));
    }
    text.join("\n") + "\n"
}
