//! The durable ledger: one SQLite file that many processes may write to.

use super::booking::Booking;
use super::budget::Budget;
use super::chain::{ChainFault, EventKind, Head, New, Stop, append, read_head};
use super::entry::EntriesSeen;
use super::error::{Denied, LedgerError};
use super::format::{VERSION, genesis};
use super::question::Question;
#[cfg(doc)]
use super::register::Register;
use super::secret::LedgerSecret;
use super::watch::Watches;
use super::witness::{HeadStanding, Witness, file_at};
use rusqlite::types::Value;
use rusqlite::{Connection, OptionalExtension};
use std::borrow::Cow;
use std::fmt;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::time::Duration;
use whit_core::Charge;
#[cfg(doc)]
use whit_core::Ledger;

/// The time in milliseconds since 1970. The clock is SQLite's: this crate reads none.
/// One that is beyond what SQLite can write as text, which ends with the year 9999, is reported as the last that is not: no order, sum or limit hangs on it.
pub(super) const NOW: &str = "SELECT coalesce(CAST(unixepoch('now', 'subsec') * 1000 AS INTEGER), 253402300799999)";

/// The steps of a release at which a test may end the process.
#[doc(hidden)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    BeforeReserve,
    InReserve,
    AfterReserve,
    InCommit,
    AfterCommit,
    InProgress,
    AfterProgress,
    BeforeHead,
    InReset,
    AfterReset,
}

/// The durable ledger: one SQLite file, which many processes may write to at once.
///
/// What [`reserve`](Ledger::reserve) has returned stands in the main file, synchronised fully, and in the head outside of it, so it survives a crash of
/// the process, the system and the power, as far as the disk keeps its word. It belongs on a local disk: many network file systems do not keep SQLite's locks.
/// Each reservation looks, in one immediate transaction, at everything that was ever charged to the budgets in question, so no two
/// processes can spend the same ε. A reservation whose work never finished stays spent until the owner [voids](Register::void) it.
///
/// # What an event waits for
/// A release is two events: the charge is booked before anything is drawn, and the result before it is released. Each waits for the disk seven times
/// (six without a head far away), and each time has its reason:
///
/// | what | without it, after the power fails |
/// |---|---|
/// | the journal's pages | its header may vouch for pages that never came |
/// | the folder that names the journal | the journal may be missing. Ours stays, but SQLite asks for this whenever it opens one, and there is no way to decline |
/// | the journal's header | a main file that is half written cannot be taken back |
/// | the main file | the journal may be void before what it guards has come |
/// | the journal's void header | the event may be taken back after it was released |
/// | the head next to the file | a sound ledger may be refused, since its head is two or more events behind |
/// | the head far away | an older copy of all other files may pass until the ledger is next opened |
///
/// Nothing else waits. Events that were read are not read again, and heads that are right are not written again.
///
/// ```
/// use whit_account::ledger::{Books, Budget, Question, Register as _};
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
/// let rungs = [Rung { unit: user, holds: 1, disjoint: false, slices: None }];
/// let mut booking = books.booking(question.clone(), &budgets);
/// let released = release(&count, |_| Ok(1_234), &rungs, &mut booking, &mut whit_noise::Os)?;
///
/// // Asking again is free, and gives the very same value.
/// let stored = books.stored(&question)?.expect("it was committed");
/// assert_eq!(stored.value, released.value.to_bytes());
///
/// // A second count fits; a third is refused, and says what would fit.
/// release(&count, |_| Ok(1_234), &rungs, &mut books.booking(question.clone(), &budgets), &mut whit_noise::Os)?;
/// let refused = release(&count, |_| Ok(1_234), &rungs, &mut books.booking(question, &budgets), &mut whit_noise::Os).unwrap_err();
/// assert!(refused.to_string().contains("ε = 0.05 of the budget is left"), "{refused}");
/// assert_eq!(books.verify()?.entries, 2);
/// # std::fs::remove_dir_all(&folder)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Books {
    pub(super) connection: Connection,
    pub(super) path: PathBuf,
    pub(super) patience: Duration,
    /// Which file was opened.
    pub(super) file: Option<(u64, u64)>,
    pub(super) secret: LedgerSecret,
    pub(super) witness: Witness,
    /// The [lock](Witness::lock) far away, while an event is written.
    pub(super) held: Option<File>,
    /// Why the heads could not be brought up to date when it was opened to be looked at.
    pub(super) unsettled: Option<LedgerError>,
    pub(super) seen: EntriesSeen,
    pub(super) watches: Watches,
    pub(super) hook: Option<Box<dyn FnMut(Step) + Send>>,
}

impl fmt::Debug for Books {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Books").field("path", &self.path).finish_non_exhaustive()
    }
}

impl Books {
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

    /// A ledger for one release: the question and the budgets that watch over it. Those of other data sets and analysts do not apply.
    pub fn booking<'a>(&'a mut self, question: Question, budgets: &'a [Budget]) -> Booking<'a> {
        Booking::new(self, question, budgets)
    }

    /// A fingerprint as it is kept: under the secret, or, in entries of format 1, as it was given. There is none where a question names no data.
    pub(super) fn fingerprints(&self, question: &Question) -> Option<[String; 2]> {
        let given = &question.fingerprint;
        question.names_data().then(|| [self.secret.fingerprint(given), given.clone()])
    }

    /// A ledger for work that goes on under an entry that was reserved before: [`reserve`](Ledger::reserve) gives that entry again and charges nothing,
    /// if it is still open and is charged exactly what is asked for.
    ///
    /// One reservation pays for one run. Where its progress was noted, it goes on [from that checkpoint](Booking::from_checkpoint) and from no other. Where
    /// none was, whoever goes on sees to it that nothing of an earlier part was seen.
    pub fn resume<'a>(&'a mut self, question: Question, budgets: &'a [Budget], entry: u64) -> Booking<'a> {
        Booking::new(self, question, budgets).under(entry)
    }

    /// How far the chain goes, as the file says.
    pub(super) fn chain_head(&self) -> Result<Head, LedgerError> {
        let head = read_head(&self.connection).map_err(|error| self.explain(&error))?;
        head.ok_or_else(|| LedgerError::Changed(ChainFault::file("has no head".to_owned())))
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
        self.witness.synchronised = false;
    }

    pub(super) fn at(&mut self, step: Step) {
        if let Some(hook) = &mut self.hook {
            hook(step);
        }
    }

    /// Everything that stands in the ledger now: what was read before, with what came since.
    pub(super) fn read(&self) -> Result<Cow<'_, EntriesSeen>, LedgerError> {
        self.check_there()?;
        let transaction = self.connection.unchecked_transaction().map_err(|error| self.explain(&error))?;
        if self.seen.is_all(&transaction).map_err(|error| self.explain(&error))? {
            return Ok(Cow::Borrowed(&self.seen));
        }
        let mut seen = self.seen.clone();
        seen.catch_up(&transaction).map_err(|stop| self.stopped(stop))?;
        Ok(Cow::Owned(seen))
    }

    /// Whether a charge fits, and why not.
    pub(super) fn judge(&mut self, question: &Question, budgets: &[&Budget], charge: &Charge) -> Result<(), Denied> {
        self.watches.judge(&question.dataset, budgets, (&self.seen.entries, self.seen.voids), charge)
    }

    /// Writes one event, after all that others wrote was read and where nobody else can write.
    pub(super) fn write<T, E: From<LedgerError>>(
        &mut self,
        event: impl FnOnce(&mut Self) -> Result<T, E>,
        within: Step,
        after: Step,
    ) -> Result<T, E> {
        self.begin()?;
        let written = self.catch_up_to_write().map_err(E::from).and_then(|()| event(self));
        self.end(written, within, after)
    }

    pub(super) fn append(&mut self, kind: EventKind, entry: i64, values: &[Value]) -> Result<(), LedgerError> {
        let append = || {
            let time = self.connection.query_row(NOW, [], |row| row.get(0))?;
            // What is written from here on a program of an earlier format might not know.
            if self.connection.query_row("PRAGMA user_version", [], |row| row.get::<_, i64>(0))? != VERSION {
                self.connection.execute_batch(&format!("PRAGMA user_version = {VERSION}"))?;
            }
            append(&self.connection, self.seen.head, &New { kind, entry, time, values })
        };
        append().map(|_| ()).map_err(|error| self.explain(&error))
    }

    /// Reads what is new and does something with it, in a transaction that reads one state of the file and writes nothing.
    pub(super) fn look<T, E: From<LedgerError>>(
        &mut self,
        then: impl FnOnce(&mut Self) -> Result<T, E>,
    ) -> Result<T, E> {
        self.check_there()?;
        self.connection.execute_batch("BEGIN").map_err(|error| self.explain(&error))?;
        let done = self.catch_up().map_err(E::from).and_then(|_| then(self));
        let ended = self.connection.execute_batch("ROLLBACK").map_err(|error| self.explain(&error));
        done.and_then(|done| ended.map(|()| done).map_err(E::from))
    }

    /// Reads what is new, and compares it with the heads outside of the file.
    fn catch_up(&mut self) -> Result<HeadStanding, LedgerError> {
        self.read_on()?;
        self.standing()
    }

    /// Reads what is new.
    pub(super) fn read_on(&mut self) -> Result<(), LedgerError> {
        self.seen
            .catch_up(&self.connection)
            .map_err(|stop| stop.into_error(|error| LedgerError::from_sqlite(error, &self.path, self.patience)))
    }

    /// How the heads outside of the file stand to what was read of it.
    pub(super) fn standing(&self) -> Result<HeadStanding, LedgerError> {
        self.check_heads(&self.seen)
    }

    pub(super) fn check_heads(&self, seen: &EntriesSeen) -> Result<HeadStanding, LedgerError> {
        self.witness.check(self.secret.ledger, seen, |event| {
            let sql = "SELECT hash FROM events WHERE sequence = ?1";
            let hash: Option<Vec<u8>> = self
                .connection
                .query_row(sql, [event as i64], |row| row.get(0))
                .optional()
                .map_err(|error| self.explain(&error))?;
            Ok(if event == 0 { Some(genesis()) } else { hash.and_then(|hash| blake3::Hash::from_slice(&hash).ok()) })
        })
    }

    /// What is written into a file that was removed is gone with this process, and nobody else sees it.
    fn gone(&self) -> Option<LedgerError> {
        let what = "it was removed, or another file was put in its place, while it was open";
        (file_at(&self.path) != self.file)
            .then(|| LedgerError::Damaged { path: self.path.clone(), what: what.to_owned() })
    }

    /// That the file is still the one that was opened.
    pub(super) fn check_there(&self) -> Result<(), LedgerError> {
        self.gone().map_or(Ok(()), Err)
    }

    /// That the file goes on from what was read of it.
    pub(super) fn check_goes_on(&self) -> Result<(), LedgerError> {
        self.seen.goes_on(&self.connection).map_err(|stop| self.stopped(stop))
    }

    /// Reads and compares for whoever is about to write an event and holds the lock: the heads are one behind at most, so they must not be behind already.
    pub(super) fn catch_up_to_write(&mut self) -> Result<(), LedgerError> {
        self.check_there()?;
        if self.catch_up()? == HeadStanding::Behind {
            self.witness.write(self.secret.ledger, self.seen.head)?;
        }
        Ok(())
    }

    /// Brings the heads up to date with the file.
    pub(super) fn settle(&mut self) -> Result<(), LedgerError> {
        self.begin()?;
        let settled = self.catch_up_to_write();
        let ended = self.connection.execute_batch("ROLLBACK").map_err(|error| self.explain(&error));
        self.held = None;
        settled.and(ended)?;
        self.unsettled = None;
        Ok(())
    }

    /// Begins to write: locks the ledger far away, where there is a head, and then the file. An event's commit lets go of the file alone, since the heads come after it.
    pub(super) fn begin(&mut self) -> Result<(), LedgerError> {
        if self.held.is_none() {
            self.held = self.witness.lock(self.secret.ledger)?;
        }
        let begun = self.connection.execute_batch("BEGIN IMMEDIATE");
        begun.map_err(|error| {
            self.held = None;
            self.gone().unwrap_or_else(|| self.explain(&error))
        })
    }

    /// Ends the transaction: for good where all went well, else without a trace.
    pub(super) fn end<T, E: From<LedgerError>>(
        &mut self,
        result: Result<T, E>,
        within: Step,
        after: Step,
    ) -> Result<T, E> {
        if result.is_ok() {
            self.at(within);
        }
        let ended = self.connection.execute_batch(if result.is_ok() { "COMMIT" } else { "ROLLBACK" });
        if result.is_err() || ended.is_err() {
            self.held = None;
        }
        match (result, ended) {
            (Ok(value), Ok(())) => {
                self.at(Step::BeforeHead);
                // Whoever asked is answered only when the heads know of it too.
                self.settle()?;
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

#[cfg(test)]
mod tests {
    use super::*;

    /// What SQLite says of a clock that it cannot tell is nothing, which is no number.
    #[test]
    fn no_clock_stops_a_ledger() {
        let connection = Connection::open_in_memory().unwrap();
        let at = |clock: &str| -> i64 {
            connection.query_row(&NOW.replace("'now'", "?1"), [clock], |row| row.get(0)).unwrap()
        };
        assert_eq!(at("1970-01-01 00:00:01"), 1000);
        assert_eq!(at("1969-12-31 23:59:59"), -1000);
        for beyond in ["10000-01-01 00:00:00", "999999999999"] {
            assert_eq!(crate::ledger::time_text(at(beyond)), "9999-12-31 23:59:59");
        }
    }
}
