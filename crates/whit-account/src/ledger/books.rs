//! The durable ledger as a [`Register`]: what callers of any ledger find here too.

use super::budget::{Budget, Fit};
use super::chain::{ChainFault, EventKind, Head, Stop};
use super::entry::{Decision, EntriesSeen, Entry, write_progress};
use super::error::{Denied, LedgerError};
use super::export::ExportError;
use super::format::{digest, hex};
use super::question::{About, Question, Stored, advances, everything, follows, reserved_values};
use super::rebuild::write_chain;
use super::register::{Register, Terms};
use super::report::{Which, accounts, in_force};
use super::sqlite::{Books, Step};
use super::turn::{KEY, Turn};
use super::verify::{Verified, replay, strays};
use rusqlite::types::{Value, ValueRef};
use rusqlite::{OptionalExtension, params};
use std::io::Write;
use std::path::Path;
#[cfg(doc)]
use whit_core::Ledger;
use whit_core::{Charge, Progress};

impl Books {
    /// What names the turn of a question, where it names its data.
    fn turn_key(&self, question: &Question) -> Option<String> {
        let partition = question.partition.as_deref().unwrap_or_default();
        let fields = [&question.dataset, &question.meaning, &question.fingerprint].map(String::as_bytes);
        let [dataset, meaning, fingerprint] = fields;
        let key = || self.secret.hash("turn", &[dataset, meaning, fingerprint, partition.as_bytes()]);
        question.names_data().then(|| hex(&key().as_bytes()[..KEY / 2]))
    }

    /// Walks the whole chain again, for what is said to its owner, who decides what the heads outside of the file are worth. The caller holds a transaction, so that all is of one state.
    pub(super) fn replay(&self, kept: Option<&Head>) -> Result<EntriesSeen, ChainFault> {
        let seen = replay(&self.connection, kept, &self.secret).map_err(|stop| match stop {
            Stop::ChainFault(fault) => fault,
            Stop::Sqlite(error) => self.unreadable(&error),
        })?;
        let strays = strays(&self.connection).map_err(|error| self.unreadable(&error))?;
        if let Some(fault) = strays {
            return Err(fault);
        }
        let sound: String = self
            .connection
            .query_row("PRAGMA integrity_check(1)", [], |row| row.get(0))
            .map_err(|error| self.unreadable(&error))?;
        if sound != "ok" {
            return Err(ChainFault::file(format!("is damaged: {sound}")));
        }
        if let Some(table) = self.changed_rows().map_err(|error| self.unreadable(&error))? {
            return Err(ChainFault::file(format!("has a row in `{table}` that was changed after it was written")));
        }
        Ok(seen)
    }

    fn unreadable(&self, error: &rusqlite::Error) -> ChainFault {
        match self.explain(error) {
            error if error.is_of_the_system() => ChainFault::unread(&error),
            error => ChainFault::file(format!("cannot be read: {error}")),
        }
    }

    /// Recomputes every hash and every total; where a head was kept elsewhere, the chain also leads through that.
    pub(super) fn verify_from(&self, kept: Option<&Head>) -> Result<Verified, ChainFault> {
        // Others may write meanwhile, and the heads with it: while this is open they cannot commit.
        let transaction = self.connection.unchecked_transaction().map_err(|error| self.unreadable(&error))?;
        self.check_there()?;
        let seen = self.replay(kept)?;
        self.check_goes_on()?;
        self.check_heads(&seen)?;
        self.witness.check_others(self.secret.ledger)?;
        drop(transaction);
        let accounts = accounts(&seen.entries, &in_force(&seen.entries));
        let accounts = accounts.map_err(|error| ChainFault::file(format!("cannot be added up: {error}")))?;
        Ok(Verified {
            events: seen.head.events,
            entries: seen.entries.len() as u64,
            head: self.secret.shown(seen.head),
            accounts,
        })
    }
}

impl Register for Books {
    fn file(&self) -> Option<&Path> {
        Some(&self.path)
    }

    /// Waits until nobody else is at work on the very same question, until the turn is dropped. Whoever dies lets go of theirs, and the next who takes any turn
    /// removes the file that stood for it.
    ///
    /// It saves work and charges, and nothing that is promised hangs on it: where no turn can be had, as in a folder that nobody may write to, there is none to
    /// wait for, and [`reserve_for`](Register::reserve_for) still looks whether the question is answered. Whoever waits for longer than the patience of its
    /// [`Opening`](super::Opening) gets [that](LedgerError::Working) as an error.
    fn turn(&self, question: &Question) -> Result<Turn, LedgerError> {
        match self.turn_key(question) {
            Some(key) => Turn::at(&self.path, &key, self.patience),
            None => Ok(Turn::default()),
        }
    }

    fn is_at_work(&self, question: &Question) -> Result<bool, LedgerError> {
        Ok(self.turn_key(question).is_some_and(|key| Turn::is_taken(&self.path, &key)))
    }

    /// What was released before to the same question about the same data, by whomever it was asked: it costs nothing more.
    ///
    /// The same means: the same data set, meaning, fingerprint and partition; committed, and so never void. Entries of format 1 have
    /// the fingerprint as it was given, and are found by that: to draw again what was released already would cost a second time and tell more.
    /// It is looked for among the entries that were read and checked when the ledger was opened, and those that came since.
    fn stored(&self, question: &Question) -> Result<Option<Stored>, LedgerError> {
        let Some(fingerprints) = self.fingerprints(question) else { return Ok(None) };
        let about = About::new(question, &fingerprints);
        let seen = self.read()?;
        let Some((entry, time)) = about.answer(&seen.entries) else { return Ok(None) };
        // What the heads do not know of could be forgotten, and then drawn again.
        if let Some(error) = &self.unsettled {
            return Err(error.clone());
        }
        // Results may be large, so they are not read with the chain. One that is missing was there.
        let bytes = |sql: &str, number: u64| -> Result<Option<Vec<u8>>, LedgerError> {
            let found = self.connection.query_row(sql, [number as i64], |row| row.get(0)).optional();
            found.map_err(|error| self.explain(&error))
        };
        let event = seen.commits.get(&entry.number).copied().unwrap_or_default();
        let digests = bytes("SELECT digests FROM events WHERE sequence = ?1", event)?.unwrap_or_default();
        let value = bytes("SELECT value FROM results WHERE entry = ?1", entry.number)?;
        let kept = value.as_deref().map_or(ValueRef::Null, ValueRef::Blob);
        if digests.get(96..128) != Some(digest("value", kept).as_bytes()) {
            let (field, what) = ("value".to_owned(), "was changed after it was written".to_owned());
            return Err(LedgerError::Changed(ChainFault { event: None, entry: Some(entry.number), field, what }));
        }
        Ok(Some(Stored {
            number: entry.number,
            time,
            analyst: entry.analyst.clone(),
            charge: (*entry.charge).clone(),
            value: value.unwrap_or_default(),
        }))
    }

    /// The entry of the same question about the same data, by the same analyst, that was reserved and of which nothing has come yet: the oldest, where there
    /// are several. Long work that was interrupted goes on under it.
    fn open_reservation(&mut self, question: &Question) -> Result<Option<Entry>, LedgerError> {
        let Some(fingerprints) = self.fingerprints(question) else { return Ok(None) };
        let about = About::new(question, &fingerprints);
        self.look(|books| Ok(about.open(&books.seen.entries).cloned()))
    }

    fn interrupted_reservation(&mut self, question: &Question) -> Result<Option<Entry>, LedgerError> {
        let Some(fingerprints) = self.fingerprints(question) else { return Ok(None) };
        let about = About::new(question, &fingerprints);
        self.look(|books| Ok(about.interrupted(&books.seen.entries).cloned()))
    }

    /// Whether a charge would fit now. Nothing is written, so it may not fit any more when it is reserved.
    fn would_fit(&mut self, question: &Question, budgets: &[Budget], charge: &Charge) -> Result<(), Denied> {
        let budgets = question.budgets_of(budgets);
        self.look(|books| books.judge(question, &budgets, charge))
    }

    fn fits(&mut self, asked: (&str, &str), budgets: &[Budget], charge: &Charge) -> Result<Vec<Fit>, LedgerError> {
        self.look(|books| books.watches.fits(asked, budgets, (&books.seen.entries, books.seen.voids), charge))
    }

    /// Reserves a charge, if it fits and, unless it is to be charged again, the question is not answered yet: that is looked at where nobody else can write.
    fn reserve_for(&mut self, question: &Question, charge: &Charge, terms: Terms<'_>) -> Result<u64, Denied> {
        let budgets = question.budgets_of(terms.budgets);
        let given_up = terms.gives_up.then(|| everything(charge));
        let charge = given_up.as_ref().unwrap_or(charge);
        let kept = self.secret.fingerprint(&question.fingerprint);
        let values = reserved_values(question, kept, charge, if terms.gives_up { &[] } else { &budgets })?;
        let fingerprints = self.fingerprints(question).filter(|_| !terms.again);
        let about = fingerprints.as_ref().map(|fingerprints| About::new(question, fingerprints));
        self.at(Step::BeforeReserve);
        let judge = |books: &mut Self| {
            if let Some((entry, _)) = about.as_ref().and_then(|about| about.answer(&books.seen.entries)) {
                return Err(Denied::Answered { entry: entry.number });
            }
            if terms.gives_up { Ok(()) } else { books.judge(question, &budgets, charge) }
        };
        // What can be read and priced beforehand is, so that others wait only for what came since. Its verdict does not count.
        let _ = self.look(judge);
        let write = |books: &mut Self| {
            judge(books)?;
            let entry = books.seen.entries.len() as i64 + 1;
            books.append(EventKind::Reserve, entry, &values)?;
            Ok(entry as u64)
        };
        self.write(write, Step::InReserve, Step::AfterReserve)
    }

    fn check_open(&mut self, number: u64, charge: &Charge, at: Option<&Progress>) -> Result<(), LedgerError> {
        self.look(|books| {
            let entry = books.seen.open_entry(number)?;
            if *entry.charge != *charge {
                return Err(LedgerError::OtherCharge { number });
            }
            follows(entry, at)
        })
    }

    /// Notes how far the work of an open entry has come, durably and in the chain. `after` is what was noted before: where that is not the last, somebody else
    /// has gone on under this entry. Steps only grow. [`Ledger::progress`] says in which order checkpoints and notes are written.
    fn note_progress(&mut self, number: u64, after: Option<&Progress>, next: &Progress) -> Result<(), LedgerError> {
        let write = |books: &mut Self| {
            advances(books.seen.open_entry(number)?, after, next)?;
            books.append(EventKind::Progress, number as i64, &[Value::Text(write_progress(next))])
        };
        self.write(write, Step::InProgress, Step::AfterProgress)
    }

    fn progress_of(&mut self, number: u64) -> Result<Option<Progress>, LedgerError> {
        self.look(|books| Ok(books.seen.numbered(number)?.progress.clone()))
    }

    fn commit_entry(&mut self, number: u64, at: Option<&Progress>, value: &[u8]) -> Result<(), LedgerError> {
        let write = |books: &mut Self| {
            follows(books.seen.open_entry(number)?, at)?;
            books.append(EventKind::Commit, number as i64, &[Value::Blob(value.to_vec())])
        };
        self.write(write, Step::InCommit, Step::AfterCommit)
    }

    fn void(&mut self, number: u64, reason: &str) -> Result<(), LedgerError> {
        if reason.trim().is_empty() {
            return Err(LedgerError::NoReason);
        }
        let write = |books: &mut Self| {
            books.seen.open_entry(number)?;
            books.append(EventKind::Void, number as i64, &[Value::Text(reason.trim().to_owned())])
        };
        self.write(write, Step::InCommit, Step::AfterCommit)
    }

    fn entries(&self, which: &Which) -> Result<Vec<Entry>, LedgerError> {
        Ok(self.read()?.entries.iter().filter(|entry| which.takes(entry)).cloned().collect())
    }

    fn decisions(&self) -> Result<Vec<Decision>, LedgerError> {
        Ok(self.read()?.decisions.clone())
    }

    /// How far the chain goes: a short text to keep elsewhere. It is made under the ledger's secret, so nobody can guess from it what the data is.
    fn head(&self) -> Result<Head, LedgerError> {
        Ok(self.secret.shown(self.chain_head()?))
    }

    /// Besides the chain it checks that each charge fitted into the budgets that were in force when it was reserved, by
    /// today's accounting. What it cannot find is said in the [module's documentation](super).
    fn verify(&self) -> Result<Verified, ChainFault> {
        self.verify_from(None)
    }

    fn verify_after(&self, kept: &Head) -> Result<Verified, ChainFault> {
        self.verify_from(Some(kept))
    }

    fn export(&self, out: &mut dyn Write) -> Result<(), ExportError> {
        write_chain(self, out)
    }

    fn note_source(&mut self, dataset: &str, fingerprint: &str) -> Result<bool, LedgerError> {
        let (keyed, last) = (self.secret.fingerprint(fingerprint), self.last_source(dataset)?);
        if last.as_ref() == Some(&keyed) {
            return Ok(false);
        }
        let sql = "INSERT INTO sources VALUES (?1, ?2, ?3)
                   ON CONFLICT (dataset) DO UPDATE SET fingerprint = ?2, sound = ?3";
        let noted = self.connection.execute(sql, params![dataset, keyed, self.sound_source(dataset, &keyed)]);
        noted.map_err(|error| self.explain(&error))?;
        Ok(last.is_some())
    }

    /// Whether a data set had another fingerprint when it was last noted, if it ever was. Nothing is noted now.
    fn source_changed(&self, dataset: &str, fingerprint: &str) -> Result<bool, LedgerError> {
        Ok(self.last_source(dataset)?.is_some_and(|last| last != self.secret.fingerprint(fingerprint)))
    }

    /// Notes the hash of a source file, so that it need not be read again while its size and time stay the same. No part of the chain.
    fn remember_file(&mut self, path: &str, size: u64, modified: i64, hash: &str) -> Result<(), LedgerError> {
        let sound = self.sound_file(path, size, modified, hash);
        let sql = "INSERT INTO files VALUES (?1, ?2, ?3, ?4, ?5)
                   ON CONFLICT (path) DO UPDATE SET size = ?2, modified = ?3, hash = ?4, sound = ?5";
        let done = self.connection.execute(sql, params![path, size as i64, modified, hash, sound]);
        done.map(|_| ()).map_err(|error| self.explain(&error))
    }

    fn recall_file(&self, path: &str, size: u64, modified: i64) -> Result<Option<String>, LedgerError> {
        let sql = "SELECT hash, sound FROM files WHERE path = ?1 AND size = ?2 AND modified = ?3";
        let read = |row: &rusqlite::Row<'_>| Ok((row.get::<_, String>(0)?, row.get::<_, Vec<u8>>(1)?));
        let found = self.connection.query_row(sql, params![path, size as i64, modified], read);
        match found.optional().map_err(|error| self.explain(&error))? {
            Some((hash, sound)) if self.sound_file(path, size, modified, &hash) == sound => Ok(Some(hash)),
            Some(_) => Err(self.changed_row("files")),
            None => Ok(None),
        }
    }
}
