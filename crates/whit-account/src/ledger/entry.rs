//! The entries of a ledger, as the chain of events gives them.

use super::budget::Budget;
use super::chain::{ChainFault, Event, EventKind, Head, RESERVED, Stop, check_head, read_head, walk};
use super::error::LedgerError;
use super::format::{hex, read_budgets, read_charge};
use rusqlite::types::Value;
use rusqlite::{Connection, OptionalExtension};
use std::collections::BTreeMap;
use std::sync::Arc;
use whit_core::{Charge, Progress};

/// What became of an entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum State {
    /// It is paid for, and nothing came of it yet, or ever will: a crash leaves it so.
    Reserved,
    /// Its result was written down and left.
    Committed {
        /// When, in milliseconds since 1970.
        time: i64,
    },
    /// Its owner took it back.
    Void {
        /// When, in milliseconds since 1970.
        time: i64,
        /// Why.
        reason: String,
    },
}

impl State {
    /// The state in one word.
    pub fn word(&self) -> &'static str {
        match self {
            Self::Reserved => "reserved",
            Self::Committed { .. } => "committed",
            Self::Void { .. } => "void",
        }
    }
}

/// One release in the ledger.
#[derive(Debug, Clone, PartialEq)]
pub struct Entry {
    /// Its number, from 1.
    pub number: u64,
    /// When it was reserved, in milliseconds since 1970.
    pub time: i64,
    /// The data set.
    pub dataset: String,
    /// Who asked.
    pub analyst: String,
    /// The question as it was asked.
    pub question: String,
    /// The hash of its meaning, in hexadecimal.
    pub meaning: String,
    /// The fingerprint of the data, under the ledger's secret; as it was given in entries of format 1. It is for the ledger alone: no report has it.
    pub fingerprint: String,
    /// The hash of the partition, where there is one.
    pub partition: Option<String>,
    /// What it cost, rung by rung.
    pub charge: Arc<Charge>,
    /// The budgets that were in force and applied to it.
    pub budgets: Arc<Vec<Budget>>,
    /// What became of it.
    pub state: State,
    /// How far its work had come when that was last noted.
    pub progress: Option<Progress>,
}

/// What the owner decided about the ledger as a whole: to take it as it stood, or to begin anew.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Decision {
    /// When, in milliseconds since 1970.
    pub time: i64,
    /// What was decided, and why.
    pub reason: String,
    /// The number of the event.
    pub(super) event: u64,
}

/// The last event of a ledger that was just brought up to date, and has no head outside of its file yet.
pub(super) const UPGRADED: &str = "brought up to format 2: fingerprints of data are keyed from here on";

impl Entry {
    /// Whether it counts: all do but those that were voided.
    pub fn counts(&self) -> bool {
        !matches!(self.state, State::Void { .. })
    }
}

/// Everything that a walk has seen, entry by entry.
#[derive(Debug, Clone)]
pub(super) struct EntriesSeen {
    pub(super) head: Head,
    /// The head before the last event.
    pub(super) before: Head,
    pub(super) entries: Vec<Entry>,
    pub(super) decisions: Vec<Decision>,
    /// How often something was voided, after which sums must be made anew.
    pub(super) voids: u64,
    /// By which event an entry was committed.
    pub(super) commits: BTreeMap<u64, u64>,
    charges: Once<Charge>,
    budgets: Once<Vec<Budget>>,
}

impl Default for EntriesSeen {
    fn default() -> Self {
        Self {
            head: Head::start(),
            before: Head::start(),
            entries: Vec::new(),
            decisions: Vec::new(),
            voids: 0,
            commits: BTreeMap::new(),
            charges: Once::default(),
            budgets: Once::default(),
        }
    }
}

impl EntriesSeen {
    /// The entry of this number.
    pub(super) fn numbered(&self, number: u64) -> Result<&Entry, LedgerError> {
        let place = number.checked_sub(1).and_then(|place| self.entries.get(place as usize));
        place.ok_or(LedgerError::NoEntry { number, last: self.entries.len() as u64 })
    }

    /// The same, if it is open.
    pub(super) fn open_entry(&self, number: u64) -> Result<&Entry, LedgerError> {
        let entry = self.numbered(number)?;
        if entry.state == State::Reserved {
            Ok(entry)
        } else {
            Err(LedgerError::Closed { number, state: entry.state.word() })
        }
    }

    /// Reads what was appended since. The file must go on from what was seen: what was read once was shown, and is not forgotten.
    pub(super) fn catch_up(&mut self, connection: &Connection) -> Result<(), Stop> {
        let says = read_head(connection)?.ok_or_else(|| ChainFault::file("has no head".to_owned()))?;
        self.goes_on(connection)?;
        let head = walk(connection, self.head, false, |event| Ok(self.take(event)?))?;
        check_head(head, says)?;
        Ok(())
    }

    /// That the file leads through what was seen.
    pub(super) fn goes_on(&self, connection: &Connection) -> Result<(), Stop> {
        if self.head.events == 0 {
            return Ok(());
        }
        let sql = "SELECT hash FROM events WHERE sequence = ?1";
        let kept: Option<Vec<u8>> =
            connection.query_row(sql, [self.head.events as i64], |row| row.get(0)).optional()?;
        if kept.as_deref() == Some(self.head.hash().as_bytes()) {
            return Ok(());
        }
        let what = "is not the one that was read before: an older copy, or another ledger, was put in its place while it was open";
        let (event, field) = (Some(self.head.events), "hash".to_owned());
        Err(ChainFault { event, entry: None, field, what: what.to_owned() }.into())
    }

    /// Whether the file ends where this does, so that there is nothing to read. Rows before the last are not looked at again.
    pub(super) fn is_all(&self, connection: &Connection) -> rusqlite::Result<bool> {
        let sql = "SELECT sequence, hash FROM events ORDER BY sequence DESC LIMIT 1";
        let last: Option<(i64, Vec<u8>)> =
            connection.query_row(sql, [], |row| Ok((row.get(0)?, row.get(1)?))).optional()?;
        let ends = match last {
            Some((sequence, hash)) => {
                sequence as u64 == self.head.events && hash.as_slice() == self.head.hash().as_bytes().as_slice()
            }
            None => self.head.events == 0,
        };
        Ok(ends && read_head(connection)? == Some(self.head))
    }

    /// Whether no head outside of the file need know of it: it is empty, or was just brought up to date.
    pub(super) fn may_lack_head(&self) -> bool {
        let upgraded = |last: &Decision| last.event == self.head.events && last.reason == UPGRADED;
        self.head.events == 0 || self.decisions.last().is_some_and(upgraded)
    }

    /// Takes in one event that was read and checked.
    pub(super) fn take(&mut self, event: Event) -> Result<(), ChainFault> {
        let Event { head, kind, entry, time, values } = event;
        let fault = |field: &str, what: String| ChainFault {
            event: Some(head.events),
            entry: Some(entry),
            field: field.to_owned(),
            what,
        };
        if kind == EventKind::Reserve {
            if entry != self.entries.len() as u64 + 1 {
                return Err(fault("entry", format!("should be {}", self.entries.len() + 1)));
            }
            let new = self.entry(entry, time, values).map_err(|(field, what)| fault(field, what))?;
            self.entries.push(new);
        } else if kind == EventKind::Note {
            let Some(Value::Text(reason)) = values.into_iter().next() else {
                return Err(fault("reason", "is no text".to_owned()));
            };
            self.decisions.push(Decision { time, reason, event: head.events });
        } else {
            let place = entry.checked_sub(1).and_then(|place| self.entries.get_mut(place as usize));
            let Some(open) = place.filter(|open| open.state == State::Reserved) else {
                return Err(fault("entry", format!("names no open entry to {}", kind.word())));
            };
            match (kind, values.into_iter().next()) {
                (EventKind::Void, Some(Value::Text(reason))) => open.state = State::Void { time, reason },
                (EventKind::Progress, Some(Value::Text(text))) => {
                    let next = read_progress(&text).ok_or_else(|| fault("reason", "is no progress".to_owned()))?;
                    if open.progress.as_ref().is_some_and(|last| last.step >= next.step) {
                        return Err(fault("reason", format!("goes back to step {}", next.step)));
                    }
                    open.progress = Some(next);
                }
                (EventKind::Commit, _) => {
                    open.state = State::Committed { time };
                    self.commits.insert(entry, head.events);
                }
                _ => return Err(fault("reason", "is no text".to_owned())),
            }
            self.voids += u64::from(kind == EventKind::Void);
        }
        (self.before, self.head) = (self.head, head);
        Ok(())
    }

    fn entry(&mut self, number: u64, time: i64, values: Vec<Value>) -> Result<Entry, (&'static str, String)> {
        let mut fields = RESERVED.into_iter().zip(values);
        let mut text = || match fields.next() {
            Some((_, Value::Text(text))) => Ok(Some(text)),
            Some((_, Value::Blob(bytes))) => Ok(Some(hex(&bytes))),
            Some((_, Value::Null)) => Ok(None),
            Some((name, _)) => Err((name, "is no text".to_owned())),
            None => Err(("digests", "is too short".to_owned())),
        };
        let (dataset, analyst, question, meaning) = (text()?, text()?, text()?, text()?);
        let (fingerprint, partition, charge, budgets) = (text()?, text()?, text()?, text()?);
        let (charge, budgets) = (charge.unwrap_or_default(), budgets.unwrap_or_default());
        let charge = self.charges.get(charge, read_charge).map_err(|what| ("charge", what))?;
        let budgets = self.budgets.get(budgets, read_budgets).map_err(|what| ("budgets", what))?;
        Ok(Entry {
            number,
            time,
            dataset: dataset.unwrap_or_default(),
            analyst: analyst.unwrap_or_default(),
            question: question.unwrap_or_default(),
            meaning: meaning.unwrap_or_default(),
            fingerprint: fingerprint.unwrap_or_default(),
            partition,
            charge,
            budgets,
            state: State::Reserved,
            progress: None,
        })
    }
}

/// What is noted in place of a checkpoint, where whoever asked stopped the work before anything of it was released,
const INTERRUPTED: &str = "interrupted";
/// and where somebody goes on with that.
const GONE_ON_WITH: &str = "gone on with";

impl Entry {
    /// Whether whoever asked stopped the work, and nobody has gone on with it since.
    pub fn is_interrupted(&self) -> bool {
        self.state == State::Reserved && self.progress.as_ref().is_some_and(|last| last.checkpoint == INTERRUPTED)
    }
}

/// What is noted of work that was stopped, after what was noted last.
pub(crate) fn interrupted_after(last: Option<&Progress>) -> Progress {
    Progress { step: last.map_or(0, |last| last.step) + 1, checkpoint: INTERRUPTED.to_owned() }
}

/// What is noted of work that somebody goes on with, after what was noted last.
pub(crate) fn gone_on_with_after(last: Option<&Progress>) -> Progress {
    Progress { step: last.map_or(0, |last| last.step) + 1, checkpoint: GONE_ON_WITH.to_owned() }
}

/// How far work has come, as the chain keeps it.
pub(super) fn write_progress(progress: &Progress) -> String {
    format!("{} {}", progress.step, progress.checkpoint)
}

pub(super) fn read_progress(text: &str) -> Option<Progress> {
    let (step, checkpoint) = text.split_once(' ')?;
    Some(Progress { step: step.parse().ok()?, checkpoint: checkpoint.to_owned() })
}

/// Texts that were read. Many entries have the same charge and the same budgets: each is read, and kept, once.
#[derive(Debug, Clone)]
struct Once<T>(BTreeMap<String, Arc<T>>);

impl<T> Default for Once<T> {
    fn default() -> Self {
        Self(BTreeMap::new())
    }
}

impl<T> Once<T> {
    fn get(&mut self, text: String, read: impl FnOnce(&str) -> Result<T, String>) -> Result<Arc<T>, String> {
        if let Some(known) = self.0.get(&text) {
            return Ok(Arc::clone(known));
        }
        let value = Arc::new(read(&text).map_err(|what| format!("cannot be read: {what}"))?);
        self.0.insert(text, Arc::clone(&value));
        Ok(value)
    }
}
