//! Opening a ledger, making one, and bringing an old one up to date.

use super::chain::{EventKind, Head, New, append};
use super::entry::{EntriesSeen, UPGRADED};
use super::error::LedgerError;
use super::format::{APPLICATION, SCHEMA, SINCE_2, SINCE_SECRET, UNTIL_1, VERSION, genesis};
use super::opening::Opening;
use super::secret::LedgerSecret;
use super::sqlite::{Books, NOW, Step};
use super::watch::Watches;
use super::witness::{HeadStanding, Witness, file_at, private_file};
use rusqlite::types::Value;
use rusqlite::{Connection, OpenFlags, OptionalExtension, TransactionBehavior, params};
use std::io;
use std::path::Path;
use std::time::{Duration, Instant};

/// How the first event of a ledger begins that was begun anew.
const BEGUN: &str = "begun anew: ";

/// Whose word counts where a ledger and its heads differ.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Trust {
    Heads,
    File,
}

impl Trust {
    /// Whether a ledger may be made where one may have been.
    fn allows(self, witness: &Witness) -> Result<(), LedgerError> {
        match self {
            Self::Heads => witness.check_none(),
            Self::File => Ok(()),
        }
    }
}

fn given(reason: &str) -> Result<&str, LedgerError> {
    Some(reason.trim()).filter(|reason| !reason.is_empty()).ok_or(LedgerError::NoReason)
}

/// What a file is.
#[derive(Clone, Copy)]
enum LedgerFile {
    Empty,
    Version(i64),
}

impl Books {
    /// Opens the ledger in this file, or makes it.
    pub fn open(path: &Path) -> Result<Self, LedgerError> {
        Self::open_as(path, &Opening::default())
    }

    /// Opens a ledger that must be there, and makes none: an empty file is not one yet. Where nothing can be written it can be looked at all the same; what
    /// would write fails then.
    pub fn open_existing(path: &Path, opening: &Opening) -> Result<Self, LedgerError> {
        Self::connect_existing(path, opening, Trust::Heads)?.looked_at()
    }

    /// Opens or makes the ledger in this file.
    ///
    /// One that is not as its heads say is an error, and so is one that they know and that is gone: see [`accept`](Self::accept) and [`reset`](Self::reset).
    pub fn open_as(path: &Path, opening: &Opening) -> Result<Self, LedgerError> {
        let (mut books, found) = Self::attach_or_make(path, opening, Trust::Heads)?;
        books.prepare(found, Trust::Heads, None)?;
        let mut books = books.looked_at()?;
        books.unsettled.take().map_or(Ok(books), Err)
    }

    /// The same after it was compared with its heads. Those that are behind may stay so, if they cannot be written.
    fn looked_at(mut self) -> Result<Self, LedgerError> {
        let standing = self.look(Self::agrees)?;
        if standing == HeadStanding::Behind {
            match self.settle() {
                Err(error @ (LedgerError::Head { .. } | LedgerError::Unwritable { .. } | LedgerError::Disk { .. })) => {
                    self.unsettled = Some(error);
                }
                settled => settled?,
            }
        }
        Ok(self)
    }

    /// How the heads stand to what was read, where they know of no other ledger in this file.
    fn agrees(&mut self) -> Result<HeadStanding, LedgerError> {
        let standing = self.standing()?;
        self.witness.check_others(self.secret.ledger)?;
        Ok(standing)
    }

    /// Takes the ledger as it stands, whatever its heads say: for an owner who knows why they differ, such as a backup that was put back. What the
    /// heads knew and the file does not is forgotten; that, and the reason, are kept in the chain. The chain itself must be sound.
    pub fn accept(path: &Path, opening: &Opening, reason: &str) -> Result<Self, LedgerError> {
        let reason = given(reason)?;
        let mut books = Self::connect_existing(path, opening, Trust::File)?;
        let transaction = books.connection.unchecked_transaction().map_err(|error| books.explain(&error))?;
        books.replay(None)?;
        drop(transaction);
        let differed = match books.look(Self::agrees) {
            Ok(_) => String::new(),
            Err(error) => format!(" ({error})"),
        };
        books.begin()?;
        let noted = books.read_on().and_then(|()| {
            books.append(EventKind::Note, 0, &[Value::Text(format!("taken as it stood: {reason}{differed}"))])
        });
        let ended = if noted.is_ok() { "COMMIT" } else { "ROLLBACK" };
        let ended = books.connection.execute_batch(ended).map_err(|error| books.explain(&error));
        noted.and(ended)?;
        books.take_heads()?;
        Ok(books)
    }

    /// Begins anew where a ledger was and is gone: for an owner who knows why. The reason is the first thing in it.
    ///
    /// The new ledger and its reason are one transaction, and what is known of the old one is forgotten after that. So whenever this is interrupted, either
    /// nothing has changed, or a ledger stands there that says why it was begun and is refused for the old one's head: to ask for the same again completes it.
    pub fn reset(path: &Path, opening: &Opening, reason: &str) -> Result<Self, LedgerError> {
        Self::reset_watched(path, opening, reason, None)
    }

    /// The same; a test is called at its steps.
    #[doc(hidden)]
    pub fn reset_watched(
        path: &Path,
        opening: &Opening,
        reason: &str,
        hook: Option<Box<dyn FnMut(Step) + Send>>,
    ) -> Result<Self, LedgerError> {
        let begun = format!("{BEGUN}{}", given(reason)?);
        let there = std::fs::metadata(path).is_ok_and(|about| about.len() > 0);
        let in_the_way = || LedgerError::Unwritable {
            path: path.to_owned(),
            why: "there is a file; move it away first, and its journal, to begin anew".to_owned(),
        };
        let (mut books, found) = match Self::attach_or_make(path, opening, Trust::File) {
            Err(LedgerError::NotALedger { .. } | LedgerError::Damaged { .. } | LedgerError::Newer { .. }) if there => {
                return Err(in_the_way());
            }
            attached => attached?,
        };
        match found {
            LedgerFile::Empty => {}
            // An earlier attempt came so far, and nothing was charged since.
            LedgerFile::Version(SINCE_SECRET..=VERSION) if matches!(books.has_only_begun(), Ok(true)) => {}
            LedgerFile::Version(_) => return Err(in_the_way()),
        }
        books.hook = hook;
        books.prepare(found, Trust::File, Some(&begun))?;
        books.at(Step::BeforeHead);
        books.take_heads()?;
        books.at(Step::AfterReset);
        if books.seen.decisions.iter().all(|decision| decision.reason != begun) {
            books.begin()?;
            let noted =
                books.catch_up_to_write().and_then(|()| books.append(EventKind::Note, 0, &[Value::Text(begun)]));
            books.end(noted, Step::InCommit, Step::AfterCommit)?;
        }
        Ok(books)
    }

    /// Whether nothing stands in it but that it was begun anew.
    fn has_only_begun(&self) -> Result<bool, LedgerError> {
        let seen = self.read()?;
        let begun = seen.decisions.first().is_some_and(|first| first.reason.starts_with(BEGUN));
        Ok(begun && seen.head.events == 1)
    }

    /// Has the heads say what the file says, whatever they said before, and forgets those of other ledgers that stood in this file. Nobody writes meanwhile.
    fn take_heads(&mut self) -> Result<(), LedgerError> {
        self.begin()?;
        let taken = self.read_on().and_then(|()| self.witness.write(self.secret.ledger, self.seen.head));
        let ended = self.connection.execute_batch("ROLLBACK").map_err(|error| self.explain(&error));
        self.held = None;
        taken.and(ended)?;
        self.witness.forget_others(self.secret.ledger)
    }

    /// Opens a ledger that must be there, and does not look at what it says.
    fn connect_existing(path: &Path, opening: &Opening, trust: Trust) -> Result<Self, LedgerError> {
        let witness = Witness::new(path, opening)?;
        let missing = || LedgerError::Missing(path.to_owned());
        // Each is looked at once more after the heads were: another process may be making it, and its heads come last.
        if !path.exists() {
            let known = trust.allows(&witness);
            if !path.exists() {
                return Err(known.err().unwrap_or_else(missing));
            }
        }
        let (mut books, mut found) = Self::attach(path, opening, witness)?;
        if matches!(found, LedgerFile::Empty) {
            let known = trust.allows(&books.witness);
            found = books.look_at_file()?;
            if matches!(found, LedgerFile::Empty) {
                return Err(known.err().unwrap_or_else(missing));
            }
        }
        books.prepare(found, trust, None)?;
        Ok(books)
    }

    /// Opens the file, or makes an empty one, and says what it is.
    fn attach_or_make(path: &Path, opening: &Opening, trust: Trust) -> Result<(Self, LedgerFile), LedgerError> {
        let witness = Witness::new(path, opening)?;
        if !path.exists() {
            let allowed = trust.allows(&witness);
            // Once more: another process may be making it, and its heads come last.
            if !path.exists() {
                allowed?;
                let unwritable =
                    |why: io::Error| LedgerError::Unwritable { path: path.to_owned(), why: why.to_string() };
                // Before SQLite makes it, so that nobody else may read it.
                private_file().append(true).open(path).map_err(unwritable)?;
            }
        }
        Self::attach(path, opening, witness)
    }

    /// Opens the file, and says what it is. Nothing is written into it: a file that is not ours stays as it is.
    fn attach(path: &Path, opening: &Opening, witness: Witness) -> Result<(Self, LedgerFile), LedgerError> {
        let explain = |error: &rusqlite::Error| LedgerError::from_sqlite(error, path, opening.patience);
        // Whatever is no plain file would be waited for without end, or lose what it is while it is kept private.
        if let Ok(about) = std::fs::metadata(path)
            && !about.is_file()
        {
            let what = if about.is_dir() { "it is a folder" } else { "it is no plain file" };
            return Err(known_as(LedgerError::NotALedger { path: path.to_owned(), what }, &witness));
        }
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let connection = Connection::open_with_flags(path, flags).map_err(|error| explain(&error))?;
        connection.busy_timeout(opening.patience).map_err(|error| explain(&error))?;
        let books = Self {
            connection,
            path: path.to_owned(),
            patience: opening.patience,
            file: file_at(path),
            secret: LedgerSecret::new(),
            witness,
            held: None,
            unsettled: None,
            seen: EntriesSeen::default(),
            watches: Watches::default(),
            hook: None,
        };
        let found = books.look_at_file().map_err(|error| known_as(error, &books.witness))?;
        Ok((books, found))
    }

    /// Makes the tables, or brings them up to date, and reads the secret.
    fn prepare(&mut self, found: LedgerFile, trust: Trust, begun: Option<&str>) -> Result<(), LedgerError> {
        self.keep_journal()?;
        match found {
            LedgerFile::Empty => self.create(trust, begun)?,
            LedgerFile::Version(1) => self.upgrade(trust)?,
            LedgerFile::Version(_) => {}
        }
        match (self.read_secret()?, trust) {
            (Some(secret), _) => self.secret = secret,
            // With another secret nothing that was released is found again by its data; nothing that was charged is forgotten.
            (None, Trust::File) => {
                insert_secret(&self.connection, &self.secret).map_err(|error| self.explain(&error))?;
            }
            (None, Trust::Heads) => {
                let what = "its secret was changed after it was written".to_owned();
                return Err(LedgerError::Damaged { path: self.path.clone(), what });
            }
        }
        Ok(())
    }

    /// What the file is; refuses one that another program, or a later version, has made.
    fn look_at_file(&self) -> Result<LedgerFile, LedgerError> {
        // One transaction, since another process may be making the file at this very moment.
        let read = || {
            let transaction = self.connection.unchecked_transaction()?;
            let number = |sql: &str| transaction.query_row(sql, [], |row| row.get::<_, i64>(0));
            Ok((
                number("PRAGMA application_id")?,
                number("PRAGMA user_version")?,
                number("SELECT count(*) FROM sqlite_schema")?,
                number("SELECT count(*) FROM sqlite_schema WHERE name = 'secret'")?,
                number("PRAGMA page_count")? * number("PRAGMA page_size")?,
                // Nobody writes to it while we read.
                std::fs::metadata(&self.path).map_or(0, |about| about.len()),
            ))
        };
        let (application, found, tables, secrets, says, has) = read().map_err(|error| self.explain(&error))?;
        let path = || self.path.clone();
        if application == APPLICATION && has < says as u64 {
            let what = format!("it was cut: it has {has} bytes, and should have {says}");
            return Err(LedgerError::Damaged { path: path(), what });
        }
        match (application, found) {
            (APPLICATION, 1) if secrets > 0 => {
                Err(LedgerError::Damaged { path: path(), what: "its version was changed".to_owned() })
            }
            (APPLICATION, 1..=VERSION) => Ok(LedgerFile::Version(found)),
            (APPLICATION, found) if found > VERSION => Err(LedgerError::Newer { path: path(), found, known: VERSION }),
            (0, 0) if tables == 0 => Ok(LedgerFile::Empty),
            _ => Err(LedgerError::NotALedger { path: path(), what: "another program made it" }),
        }
    }

    /// What is committed stands in the main file. The journal next to it holds what is needed to take back a transaction that was killed, and stays
    /// when it is over: to make and remove it would cost more than all the rest.
    fn keep_journal(&self) -> Result<(), LedgerError> {
        let since = Instant::now();
        // Leaving a mode in which the file was written ahead needs the file for oneself, and SQLite does not wait for that: we do.
        loop {
            let mode = self.connection.query_row("PRAGMA journal_mode = PERSIST", [], |row| row.get::<_, String>(0));
            match mode {
                Ok(mode) if mode == "persist" => break,
                Ok(mode) if mode != "wal" => {
                    let why = format!("its file system allows only the journal mode `{mode}`");
                    return Err(LedgerError::Unwritable { path: self.path.clone(), why });
                }
                Err(error) if error.sqlite_error_code() != Some(rusqlite::ErrorCode::DatabaseBusy) => {
                    return Err(self.explain(&error));
                }
                _ if since.elapsed() > self.patience => {
                    return Err(LedgerError::Locked { path: self.path.clone(), waited: self.patience });
                }
                _ => std::thread::sleep(Duration::from_millis(5)),
            }
        }
        self.connection.execute_batch("PRAGMA synchronous = EXTRA").map_err(|error| self.explain(&error))
    }

    /// Makes the tables and, where a ledger is begun anew, its first event, which says why.
    fn create(&mut self, trust: Trust, begun: Option<&str>) -> Result<(), LedgerError> {
        let explain = |error: rusqlite::Error| LedgerError::from_sqlite(&error, &self.path, self.patience);
        // Before there is a secret in it, or a journal, which gets the same: the file may have been there.
        keep_private(&self.path);
        let transaction = self.connection.transaction_with_behavior(TransactionBehavior::Immediate).map_err(explain)?;
        let tables: i64 =
            transaction.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0)).map_err(explain)?;
        // Another process may have been quicker.
        if tables == 0 {
            // We hold the lock, and there is no table: what a head speaks of is gone.
            trust.allows(&self.witness)?;
            let create = || {
                transaction.execute_batch(SCHEMA)?;
                transaction.execute_batch(SINCE_2)?;
                transaction.execute("INSERT INTO head VALUES (1, 0, ?1)", [genesis().as_bytes().as_slice()])?;
                insert_secret(&transaction, &self.secret)?;
                if let Some(reason) = begun {
                    note(&transaction, Head::start(), reason)?;
                }
                transaction
                    .execute_batch(&format!("PRAGMA application_id = {APPLICATION}; PRAGMA user_version = {VERSION};"))
            };
            create().map_err(explain)?;
            if trust == Trust::Heads {
                // They are of a ledger of which nothing was ever asked, so nothing is lost if we end here.
                self.witness.forget()?;
            }
            if let Some(hook) = self.hook.as_mut().filter(|_| begun.is_some()) {
                hook(Step::InReset);
            }
        }
        transaction.commit().map_err(explain)?;
        match self.look_at_file()? {
            LedgerFile::Version(VERSION) => Ok(()),
            LedgerFile::Empty | LedgerFile::Version(_) => {
                Err(LedgerError::Damaged { path: self.path.clone(), what: "its tables were not made".to_owned() })
            }
        }
    }

    /// Brings a ledger of format 1 up to date: it gets a secret, and a head outside of the file. Its events stay as they are, and so do the
    /// fingerprints in them, which were not keyed.
    fn upgrade(&mut self, trust: Trust) -> Result<(), LedgerError> {
        let explain = |error: rusqlite::Error| LedgerError::from_sqlite(&error, &self.path, self.patience);
        let transaction = self.connection.transaction_with_behavior(TransactionBehavior::Immediate).map_err(explain)?;
        let found: i64 = transaction.query_row("PRAGMA user_version", [], |row| row.get(0)).map_err(explain)?;
        if found == 1 {
            // Format 1 had no head, so one that is there speaks of a ledger that was another.
            trust.allows(&self.witness)?;
            let mut seen = EntriesSeen::default();
            seen.catch_up(&transaction)
                .map_err(|stop| stop.into_error(|error| LedgerError::from_sqlite(error, &self.path, self.patience)))?;
            let upgrade = || {
                transaction.execute_batch(UNTIL_1)?;
                transaction.execute_batch(SINCE_2)?;
                insert_secret(&transaction, &self.secret)?;
                // It has no head yet. That the chain ends with this event says that it need not have one.
                note(&transaction, seen.head, UPGRADED)?;
                transaction.execute_batch(&format!("PRAGMA user_version = {VERSION};"))
            };
            upgrade().map_err(explain)?;
            if trust == Trust::Heads {
                // As when one is made. An owner who takes the ledger as it stands has the heads written anew after this.
                self.witness.forget()?;
            }
            keep_private(&self.path); // from now on there is a secret in it
        }
        transaction.commit().map_err(explain)
    }

    /// The secret; nothing where it is not as it was written.
    fn read_secret(&self) -> Result<Option<LedgerSecret>, LedgerError> {
        let read = |row: &rusqlite::Row<'_>| {
            let (ledger, key, sound): (Vec<u8>, Vec<u8>, Vec<u8>) = (row.get(0)?, row.get(1)?, row.get(2)?);
            Ok(LedgerSecret::of(&ledger, &key, &sound))
        };
        let found = self.connection.query_row("SELECT ledger, key, sound FROM secret", [], read).optional();
        found.map(Option::flatten).map_err(|error| self.explain(&error))
    }
}

/// A file that is no ledger was one, where a head knows of it.
fn known_as(error: LedgerError, witness: &Witness) -> LedgerError {
    match (error, witness.knows()) {
        (LedgerError::NotALedger { path, what }, Some(witness)) => {
            let what = format!("{what}, and `{}` knows of a ledger in this file: it was changed", witness.display());
            LedgerError::Damaged { path, what }
        }
        (error, _) => error,
    }
}

/// Lets nobody else read a file. Where that is not ours to say, it stays as it is.
fn keep_private(path: &Path) {
    if !path.is_file() {
        return;
    }
    #[cfg(unix)]
    let _ = std::fs::set_permissions(path, std::os::unix::fs::PermissionsExt::from_mode(0o600));
}

/// Appends what was decided about the ledger as a whole.
fn note(connection: &Connection, after: Head, reason: &str) -> rusqlite::Result<Head> {
    let time = connection.query_row(NOW, [], |row| row.get(0))?;
    let values = [Value::Text(reason.to_owned())];
    append(connection, after, &New { kind: EventKind::Note, entry: 0, time, values: &values })
}

fn insert_secret(connection: &Connection, secret: &LedgerSecret) -> rusqlite::Result<()> {
    let (ledger, key, sound) = secret.parts();
    connection.execute("INSERT OR REPLACE INTO secret VALUES (1, ?1, ?2, ?3)", params![ledger, key, sound]).map(|_| ())
}
