//! The durable ledger: one SQLite file that many processes may write to.

use super::budget::{Budget, costs_for};
use super::chain::{Fault, Head, Kind, New, Stop, append, read_head};
use super::entry::{Entry, Seen, State};
use super::error::LedgerError;
use super::format::{
    APPLICATION, SCHEMA, VERSION, digest, genesis, meaning_hash, read_charge, write_budgets, write_charge,
};
use super::refusal;
use super::watch::{Watches, units_of};
use rusqlite::types::{Value, ValueRef};
use rusqlite::{Connection, OpenFlags, OptionalExtension, TransactionBehavior, params};
use std::fmt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use whit_core::release::{CommitError, LedgerFailure, Reservation};
use whit_core::{Charge, Ledger, Refusal};

/// How long to wait for another process.
const PATIENCE: Duration = Duration::from_secs(30);

/// What was asked, and of what.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Question {
    /// The data set, as budgets name it.
    pub dataset: String,
    /// Who asks.
    pub analyst: String,
    /// The meaning in a canonical text: two questions that mean the same have the same.
    pub meaning: String,
    /// The question as it was asked.
    pub text: String,
    /// The fingerprint of the data.
    pub fingerprint: String,
    /// The hash of the partition, where there is one.
    pub partition: Option<String>,
}

/// A release that was made before.
#[derive(Debug, Clone, PartialEq)]
pub struct Stored {
    /// The number of its entry.
    pub number: u64,
    /// When it was committed, in milliseconds since 1970.
    pub time: i64,
    /// Who had asked.
    pub analyst: String,
    /// What it had cost.
    pub charge: Charge,
    /// What had been released, as [`Persist`](whit_core::Persist) wrote it.
    pub value: Vec<u8>,
}

/// The steps of a release at which a test may end the process.
#[doc(hidden)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    BeforeReserve,
    InReserve,
    AfterReserve,
    InCommit,
    AfterCommit,
}

/// The durable ledger: one SQLite file, which many processes may write to at once.
///
/// Written ahead and synchronised fully, so that what [`reserve`](Ledger::reserve) has returned survives a crash of the process, the system and the power,
/// as far as the disk keeps its word. It belongs on a local disk: many network file systems do not keep SQLite's locks.
/// Each reservation looks, in one immediate transaction, at everything that was ever charged to the budgets in question, so no two
/// processes can spend the same ε. A reservation whose work never finished stays spent until the owner [voids](Books::void) it.
///
/// ```
/// use whit_account::ledger::{Books, Budget, Question};
/// use whit_core::mechanism::laplace::Laplace;
/// use whit_core::{Bound, Change, Persist, Rung, Support, Unit, release};
///
/// # let folder = std::env::temp_dir().join(format!("whit-books-{}", std::process::id()));
/// # std::fs::create_dir_all(&folder)?;
/// let mut books = Books::open(&folder.join("whit.ledger"))?;
/// let user = Unit::user("id", Change::AddRemove);
/// let budgets = [Budget::new("visits", user.clone(), 0.25, 0.0)];
/// let question = Question {
///     dataset: "visits".into(),
///     analyst: "alice".into(),
///     meaning: "count(visits) at ε = 0.1".into(),
///     text: "SELECT count(*) FROM visits".into(),
///     fingerprint: "blake3:5f…".into(),
///     partition: None,
/// };
///
/// let rows = Bound::Coordinates { groups: 1, low: 0, high: 1, support: Support::NonNegative };
/// let count = Laplace::for_epsilon(rows, Change::AddRemove, "0.1".parse()?)?;
/// let rungs = [Rung { unit: user, holds: 1, disjoint: false }];
/// let mut booking = books.booking(question.clone(), &budgets);
/// let released = release(&count, &1_234, &rungs, &mut booking, &mut whit_noise::Os)?;
///
/// // Asking again is free, and gives the very same value.
/// let stored = books.stored(&question)?.expect("it was committed");
/// assert_eq!(stored.value, released.value.to_bytes());
///
/// // A second count fits; a third is refused, and says what would fit.
/// release(&count, &1_234, &rungs, &mut books.booking(question.clone(), &budgets), &mut whit_noise::Os)?;
/// let refused = release(&count, &1_234, &rungs, &mut books.booking(question, &budgets), &mut whit_noise::Os).unwrap_err();
/// assert!(refused.to_string().contains("ε = 0.05 of the budget is left"), "{refused}");
/// assert_eq!(books.verify()?.entries, 2);
/// # std::fs::remove_dir_all(&folder)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Books {
    pub(super) connection: Connection,
    path: PathBuf,
    patience: Duration,
    seen: Seen,
    watches: Watches,
    hook: Option<Box<dyn FnMut(Step) + Send>>,
}

impl fmt::Debug for Books {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Books").field("path", &self.path).finish_non_exhaustive()
    }
}

/// Why there is no reservation.
enum Denied {
    Refused(Refusal),
    Failed(LedgerError),
}

impl From<LedgerError> for Denied {
    fn from(error: LedgerError) -> Self {
        Self::Failed(error)
    }
}

impl Books {
    /// Opens the ledger in this file, or makes it.
    pub fn open(path: &Path) -> Result<Self, LedgerError> {
        Self::open_with(path, PATIENCE)
    }

    /// Opens a ledger that must be there.
    pub fn open_existing(path: &Path) -> Result<Self, LedgerError> {
        if path.exists() { Self::open(path) } else { Err(LedgerError::Missing(path.to_owned())) }
    }

    /// Opens or makes the ledger in this file, and waits at most so long whenever another process holds it.
    pub fn open_with(path: &Path, patience: Duration) -> Result<Self, LedgerError> {
        let explain = |error: &rusqlite::Error| LedgerError::from_sqlite(error, path, patience);
        if path.is_dir() {
            return Err(LedgerError::Unwritable { path: path.to_owned(), why: "it is a folder".to_owned() });
        }
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let connection = Connection::open_with_flags(path, flags).map_err(|error| explain(&error))?;
        connection.busy_timeout(patience).map_err(|error| explain(&error))?;
        let mut books = Self {
            connection,
            path: path.to_owned(),
            patience,
            seen: Seen::default(),
            watches: Watches::default(),
            hook: None,
        };
        // Looked at before anything is written: a file that is not ours stays as it is.
        let is_new = books.is_new()?;
        books.write_ahead()?;
        if is_new {
            books.create()?;
        }
        Ok(books)
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    pub(super) fn explain(&self, error: &rusqlite::Error) -> LedgerError {
        LedgerError::from_sqlite(error, &self.path, self.patience)
    }

    fn stopped(&self, stop: Stop) -> LedgerError {
        stop.into_error(|error| self.explain(error))
    }

    /// Whether the file is empty; refuses one that another program, or a later version, has made.
    fn is_new(&self) -> Result<bool, LedgerError> {
        // One transaction, since another process may be making the file at this very moment.
        let read = || {
            let transaction = self.connection.unchecked_transaction()?;
            let number = |sql: &str| transaction.query_row(sql, [], |row| row.get::<_, i64>(0));
            Ok((
                number("PRAGMA application_id")?,
                number("PRAGMA user_version")?,
                number("SELECT count(*) FROM sqlite_schema")?,
            ))
        };
        let (application, found, tables) = read().map_err(|error| self.explain(&error))?;
        match (application, found) {
            (APPLICATION, 1..=VERSION) => Ok(false),
            (APPLICATION, VERSION..) => Err(LedgerError::Newer { path: self.path.clone(), found, known: VERSION }),
            (0, 0) if tables == 0 => Ok(true),
            _ => Err(LedgerError::NotALedger { path: self.path.clone(), what: "another program made it" }),
        }
    }

    fn write_ahead(&self) -> Result<(), LedgerError> {
        let since = Instant::now();
        // Changing the mode needs the file for oneself, and SQLite does not wait for that: we do.
        loop {
            let mode = self.connection.query_row("PRAGMA journal_mode = WAL", [], |row| row.get::<_, String>(0));
            match mode {
                Ok(mode) if mode == "wal" => break,
                Ok(mode) => {
                    let why = format!("its file system allows only the journal mode `{mode}`");
                    return Err(LedgerError::Unwritable { path: self.path.clone(), why });
                }
                Err(error) if error.sqlite_error_code() == Some(rusqlite::ErrorCode::DatabaseBusy) => {
                    if since.elapsed() > self.patience {
                        return Err(self.explain(&error));
                    }
                    std::thread::sleep(Duration::from_millis(5));
                }
                Err(error) => return Err(self.explain(&error)),
            }
        }
        self.connection.execute_batch("PRAGMA synchronous = FULL").map_err(|error| self.explain(&error))
    }

    fn create(&mut self) -> Result<(), LedgerError> {
        let create = |connection: &mut Connection| {
            let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
            // Another process may have been quicker.
            if transaction.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get::<_, i64>(0))? == 0 {
                transaction.execute_batch(SCHEMA)?;
                transaction.execute("INSERT INTO head VALUES (1, 0, ?1)", [genesis().as_bytes().as_slice()])?;
                transaction.execute_batch(&format!(
                    "PRAGMA application_id = {APPLICATION}; PRAGMA user_version = {VERSION};"
                ))?;
            }
            transaction.commit()
        };
        create(&mut self.connection).map_err(|error| self.explain(&error))?;
        if self.is_new()? {
            return Err(LedgerError::Damaged { path: self.path.clone(), what: "its tables were not made".to_owned() });
        }
        Ok(())
    }

    /// What was released before to the same question about the same data, by whomever it was asked: it costs nothing more.
    ///
    /// The same means: the same data set, meaning, fingerprint and partition; committed, and so never void.
    pub fn stored(&self, question: &Question) -> Result<Option<Stored>, LedgerError> {
        let meaning = meaning_hash(&question.meaning);
        let found = self
            .connection
            .query_row(
                "SELECT n.number, n.analyst, n.charge, e.time, e.digests, r.value
                 FROM entries n JOIN events e ON e.entry = n.number AND e.kind = 'commit' JOIN results r ON r.entry = n.number
                 WHERE n.meaning = ?1 AND n.dataset = ?2 AND n.fingerprint = ?3 AND n.partition_hash IS ?4
                 ORDER BY n.number DESC LIMIT 1",
                params![meaning.as_bytes().as_slice(), question.dataset, question.fingerprint, question.partition],
                |row| {
                    let charge: String = row.get(2)?;
                    let digests: Vec<u8> = row.get(4)?;
                    let stored = Stored {
                        number: row.get::<_, i64>(0)? as u64,
                        time: row.get(3)?,
                        analyst: row.get(1)?,
                        charge: Charge::new(),
                        value: row.get(5)?,
                    };
                    Ok((stored, charge, digests))
                },
            )
            .optional()
            .map_err(|error| self.explain(&error))?;
        let Some((mut stored, charge, digests)) = found else { return Ok(None) };
        let fault = |field: &str, what: String| {
            LedgerError::Changed(Fault { event: None, entry: Some(stored.number), field: field.to_owned(), what })
        };
        if digests.get(96..128) != Some(digest("value", ValueRef::Blob(&stored.value)).as_bytes()) {
            return Err(fault("value", "was changed after it was written".to_owned()));
        }
        stored.charge = read_charge(&charge).map_err(|what| fault("charge", format!("cannot be read: {what}")))?;
        Ok(Some(stored))
    }

    /// A ledger for one release: the question and the budgets that watch over it. Those of other data sets and analysts do not apply.
    pub fn booking<'a>(&'a mut self, question: Question, budgets: &'a [Budget]) -> Booking<'a> {
        Booking { books: self, question, budgets, resumed: None, entry: None, failure: None }
    }

    /// The entry of the same question about the same data, by the same analyst, that was reserved and of which nothing has come yet: the oldest, where there
    /// are several. Long work that was interrupted goes on under it.
    pub fn open_reservation(&mut self, question: &Question) -> Result<Option<Entry>, LedgerError> {
        let meaning = super::format::hex(meaning_hash(&question.meaning).as_bytes());
        let looked = self.look(|books| {
            let open = books.seen.entries.iter().find(|entry| {
                entry.state == State::Reserved
                    && entry.meaning == meaning
                    && entry.dataset == question.dataset
                    && entry.analyst == question.analyst
                    && entry.fingerprint == question.fingerprint
                    && entry.partition == question.partition
            });
            Ok(open.cloned())
        });
        looked.map_err(|denied| match denied {
            Denied::Failed(error) => error,
            Denied::Refused(refusal) => LedgerError::Charge(refusal.to_string()),
        })
    }

    /// A ledger for work that goes on under an entry that was reserved before: [`reserve`](Ledger::reserve) gives that entry again and charges nothing,
    /// if it is still open and is charged exactly what is asked for.
    ///
    /// One reservation pays for one run. Whoever goes on under it sees to it that nobody else does, and that what an earlier part of the run showed is where it
    /// begins again.
    pub fn resume<'a>(&'a mut self, question: Question, budgets: &'a [Budget], entry: u64) -> Booking<'a> {
        Booking { books: self, question, budgets, resumed: Some(entry), entry: None, failure: None }
    }

    /// Whether an entry is open and charged with this.
    fn check_open(&mut self, number: u64, charge: &Charge) -> Result<(), Denied> {
        self.look(|books| {
            let last = books.seen.entries.len() as u64;
            let place = number.checked_sub(1).and_then(|place| books.seen.entries.get(place as usize));
            let entry = place.ok_or(LedgerError::NoEntry { number, last })?;
            if entry.state != State::Reserved {
                return Err(LedgerError::Closed { number, state: entry.state.word() }.into());
            }
            if *entry.charge != *charge {
                return Err(LedgerError::OtherCharge { number }.into());
            }
            Ok(())
        })
    }

    /// Takes back a reservation of which nothing came. The reason is kept, and so is the entry.
    ///
    /// It is for the owner of the data to say that no value left: the ledger knows only that none was committed. Work that still runs
    /// when its entry is voided cannot commit, so its value is never opened.
    pub fn void(&mut self, number: u64, reason: &str) -> Result<(), LedgerError> {
        if reason.trim().is_empty() {
            return Err(LedgerError::NoReason);
        }
        self.close(number, Kind::Void, Value::Text(reason.trim().to_owned()))
    }

    /// How far the chain goes: a short text to keep elsewhere.
    pub fn head(&self) -> Result<Head, LedgerError> {
        let head = read_head(&self.connection).map_err(|error| self.explain(&error))?;
        head.ok_or_else(|| LedgerError::Changed(Fault::file("has no head".to_owned())))
    }

    /// The fingerprint that the data set had when it was last asked about.
    pub fn last_fingerprint(&self, dataset: &str) -> Result<Option<String>, LedgerError> {
        let sql = "SELECT fingerprint FROM entries WHERE dataset = ?1 ORDER BY number DESC LIMIT 1";
        self.connection.query_row(sql, [dataset], |row| row.get(0)).optional().map_err(|error| self.explain(&error))
    }

    /// Notes the hash of a source file, so that it need not be read again while its size and time stay the same. No part of the chain.
    pub fn remember_file(&mut self, path: &str, size: u64, modified: i64, hash: &str) -> Result<(), LedgerError> {
        let sql = "INSERT INTO files VALUES (?1, ?2, ?3, ?4)
                   ON CONFLICT (path) DO UPDATE SET size = ?2, modified = ?3, hash = ?4";
        let done = self.connection.execute(sql, params![path, size as i64, modified, hash]);
        done.map(|_| ()).map_err(|error| self.explain(&error))
    }

    /// The hash that was noted for a file of this size and time.
    pub fn recall_file(&self, path: &str, size: u64, modified: i64) -> Result<Option<String>, LedgerError> {
        let sql = "SELECT hash FROM files WHERE path = ?1 AND size = ?2 AND modified = ?3";
        let found = self.connection.query_row(sql, params![path, size as i64, modified], |row| row.get(0));
        found.optional().map_err(|error| self.explain(&error))
    }

    /// Calls a test at every step of a release.
    #[doc(hidden)]
    pub fn watch_steps(&mut self, hook: impl FnMut(Step) + Send + 'static) {
        self.hook = Some(Box::new(hook));
    }

    /// Does not wait for the disk: for a test that writes many entries and does not pull the plug.
    #[doc(hidden)]
    pub fn unsynchronised(&mut self) {
        let _ = self.connection.execute_batch("PRAGMA synchronous = OFF");
    }

    fn at(&mut self, step: Step) {
        if let Some(hook) = &mut self.hook {
            hook(step);
        }
    }

    /// Everything that stands in the ledger now.
    pub(super) fn read(&self) -> Result<Seen, LedgerError> {
        let mut seen = Seen::default();
        let transaction = self.connection.unchecked_transaction().map_err(|error| self.explain(&error))?;
        seen.catch_up(&transaction).map_err(|stop| self.stopped(stop))?;
        Ok(seen)
    }

    /// Whether a charge fits, and why not.
    fn judge(&mut self, question: &Question, budgets: &[&Budget], charge: &Charge) -> Result<(), Denied> {
        if !budgets.iter().any(|budget| charge.iter().any(|(rung, _)| rung.unit == budget.unit)) {
            let kind = charge.first().map_or(whit_core::Kind::User, |(rung, _)| rung.unit.kind());
            let (dataset, units) = (question.dataset.clone(), units_of(charge));
            return Err(LedgerError::NoBudget { dataset, units, kind }.into());
        }
        for budget in budgets {
            let costs = costs_for(&budget.unit, charge);
            if costs.is_empty() {
                let (dataset, unit) = (budget.dataset.clone(), budget.unit.to_string());
                return Err(LedgerError::Silent { dataset, unit, units: units_of(charge) }.into());
            }
            let filter = self.watches.filter(budget, &self.seen.entries, self.seen.voids)?;
            let mark = filter.mark();
            let refused = costs.into_iter().find_map(|cost| filter.charge(cost).err().map(|refused| (refused, cost)));
            let denied = refused.map(|(refused, cost)| {
                let unit = match &budget.analyst {
                    Some(analyst) => format!("{} for {analyst}", budget.unit),
                    None => budget.unit.to_string(),
                };
                refusal(refused, unit, filter, cost)
            });
            // The entry itself is added when it is read back, so that all sums are made in one way.
            filter.restore(mark);
            if let Some(refusal) = denied {
                return Err(Denied::Refused(refusal));
            }
        }
        Ok(())
    }

    fn reserve(&mut self, question: &Question, budgets: &[Budget], charge: &Charge) -> Result<u64, Denied> {
        let budgets: Vec<&Budget> =
            budgets.iter().filter(|budget| budget.applies(&question.dataset, &question.analyst)).collect();
        let values = [
            Value::Text(question.dataset.clone()),
            Value::Text(question.analyst.clone()),
            Value::Text(question.text.clone()),
            Value::Blob(meaning_hash(&question.meaning).as_bytes().to_vec()),
            Value::Text(question.fingerprint.clone()),
            question.partition.clone().map_or(Value::Null, Value::Text),
            Value::Text(write_charge(charge).map_err(LedgerError::Charge)?),
            Value::Text(write_budgets(&budgets).map_err(LedgerError::Charge)?),
        ];
        self.at(Step::BeforeReserve);
        // What can be read and priced beforehand is, so that others wait only for what came since. Its verdict does not count.
        let _ = self.look(|books| books.judge(question, &budgets, charge));
        self.begin()?;
        let reserved = self.reserve_within(question, &budgets, charge, &values);
        self.end(reserved, Step::InReserve, Step::AfterReserve)
    }

    fn reserve_within(
        &mut self,
        question: &Question,
        budgets: &[&Budget],
        charge: &Charge,
        values: &[Value],
    ) -> Result<u64, Denied> {
        self.catch_up()?;
        self.judge(question, budgets, charge)?;
        let entry = self.seen.entries.len() as i64 + 1;
        self.append(Kind::Reserve, entry, values)?;
        Ok(entry as u64)
    }

    /// Commits or voids an open entry.
    fn close(&mut self, number: u64, kind: Kind, value: Value) -> Result<(), LedgerError> {
        self.begin()?;
        let closed = self.close_within(number, kind, value);
        let (within, after) = (Step::InCommit, Step::AfterCommit);
        self.end(closed.map_err(Denied::Failed), within, after).map_err(|denied| match denied {
            Denied::Failed(error) => error,
            Denied::Refused(refusal) => LedgerError::Charge(refusal.to_string()),
        })
    }

    fn close_within(&mut self, number: u64, kind: Kind, value: Value) -> Result<(), LedgerError> {
        self.catch_up()?;
        let last = self.seen.entries.len() as u64;
        let place = number.checked_sub(1).and_then(|place| self.seen.entries.get(place as usize));
        let entry = place.ok_or(LedgerError::NoEntry { number, last })?;
        if entry.state != State::Reserved {
            return Err(LedgerError::Closed { number, state: entry.state.word() });
        }
        self.append(kind, number as i64, &[value])
    }

    fn append(&mut self, kind: Kind, entry: i64, values: &[Value]) -> Result<(), LedgerError> {
        // The clock is SQLite's: this crate reads none.
        let sql = "SELECT CAST(unixepoch('now', 'subsec') * 1000 AS INTEGER)";
        let append = || {
            let time = self.connection.query_row(sql, [], |row| row.get(0))?;
            append(&self.connection, self.seen.head, &New { kind, entry, time, values })
        };
        append().map(|_| ()).map_err(|error| self.explain(&error))
    }

    /// Reads what is new and does something with it, in a transaction that reads one state of the file and writes nothing.
    fn look<T>(&mut self, then: impl FnOnce(&mut Self) -> Result<T, Denied>) -> Result<T, Denied> {
        self.connection.execute_batch("BEGIN").map_err(|error| self.explain(&error))?;
        let done = self.catch_up().map_err(Denied::Failed).and_then(|()| then(self));
        let ended = self.connection.execute_batch("ROLLBACK").map_err(|error| self.explain(&error));
        done.and_then(|done| ended.map(|()| done).map_err(Denied::Failed))
    }

    fn catch_up(&mut self) -> Result<(), LedgerError> {
        self.seen
            .catch_up(&self.connection)
            .map_err(|stop| stop.into_error(|error| LedgerError::from_sqlite(error, &self.path, self.patience)))
    }

    fn begin(&self) -> Result<(), LedgerError> {
        self.connection.execute_batch("BEGIN IMMEDIATE").map_err(|error| self.explain(&error))
    }

    /// Ends the transaction: for good where all went well, else without a trace.
    fn end<T>(&mut self, result: Result<T, Denied>, within: Step, after: Step) -> Result<T, Denied> {
        if result.is_ok() {
            self.at(within);
        }
        let ended = self.connection.execute_batch(if result.is_ok() { "COMMIT" } else { "ROLLBACK" });
        match (result, ended) {
            (Ok(value), Ok(())) => {
                self.at(after);
                Ok(value)
            }
            (Ok(_), Err(error)) => {
                // Nothing of it stays. If even this fails, closing the connection rolls back.
                let _ = self.connection.execute_batch("ROLLBACK");
                Err(self.explain(&error).into())
            }
            (Err(denied), _) => Err(denied),
        }
    }
}

/// [`Books`], open at one question. See [`Books::booking`].
#[derive(Debug)]
pub struct Booking<'a> {
    books: &'a mut Books,
    question: Question,
    budgets: &'a [Budget],
    resumed: Option<u64>,
    entry: Option<u64>,
    failure: Option<LedgerFailure>,
}

impl Booking<'_> {
    /// The number of the entry that was reserved last, if one was.
    pub fn entry(&self) -> Option<u64> {
        self.entry
    }

    /// Whether a charge would fit now. Nothing is written, so it may not fit any more when it is reserved.
    pub fn would_fit(&mut self, charge: &Charge) -> Result<(), Refusal> {
        self.failure = None;
        let (question, books) = (&self.question, &mut *self.books);
        let budgets: Vec<&Budget> =
            self.budgets.iter().filter(|budget| budget.applies(&question.dataset, &question.analyst)).collect();
        let judged = books.look(|books| books.judge(question, &budgets, charge));
        judged.map_err(|denied| self.refused(denied, charge))
    }

    fn refused(&mut self, denied: Denied, charge: &Charge) -> Refusal {
        match denied {
            Denied::Refused(refusal) => refusal,
            Denied::Failed(error) => {
                let asked = if matches!(error, LedgerError::NoBudget { .. }) { "a budget" } else { "a ledger" };
                self.failure = Some(error.into());
                let unit = charge.first().map_or_else(|| "unit".to_owned(), |(rung, _)| rung.unit.to_string());
                Refusal { asked: asked.to_owned(), left: "none".to_owned(), unit, available: None }
            }
        }
    }
}

impl Ledger for Booking<'_> {
    fn reserve(&mut self, charge: &Charge) -> Result<Reservation, Refusal> {
        self.failure = None;
        let reserved = match self.resumed {
            None => self.books.reserve(&self.question, self.budgets, charge),
            Some(number) => self.books.check_open(number, charge).map(|()| number),
        };
        let number = reserved.map_err(|denied| self.refused(denied, charge))?;
        self.entry = Some(number);
        Ok(Reservation::new(number))
    }

    fn commit(&mut self, reservation: Reservation, value: &[u8]) -> Result<(), CommitError> {
        Ok(self.books.close(reservation.number(), Kind::Commit, Value::Blob(value.to_vec()))?)
    }

    fn failure(&self) -> Option<LedgerFailure> {
        self.failure.clone()
    }
}
