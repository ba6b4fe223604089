//! What was asked, what was released to it, and when two questions are the same.

use super::budget::Budget;
use super::entry::{Entry, State};
use super::error::LedgerError;
use super::format::{hex, meaning_hash, write_budgets, write_charge};
use super::secret::UNKNOWN;
use rusqlite::types::Value;
use whit_core::{Charge, Cost, Progress};

/// What was asked, and of what.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Question {
    /// The data set, as budgets name it.
    pub dataset: String,
    /// Who asks.
    pub analyst: String,
    /// The meaning in a canonical text: two questions that mean the same have the same.
    pub meaning: String,
    /// The question as it was asked.
    pub text: String,
    /// The fingerprint of the data. The ledger keeps it under its secret.
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

impl Question {
    /// Those of these budgets that watch over it.
    pub(super) fn budgets_of<'b>(&self, budgets: &'b [Budget]) -> Vec<&'b Budget> {
        budgets.iter().filter(|budget| budget.applies(&self.dataset, &self.analyst)).collect()
    }

    /// Whether it says which data it is about. A preview of data that the ledger has not seen does not; what was built from an export names none either, and
    /// the two are not the same.
    pub(super) fn names_data(&self) -> bool {
        !self.fingerprint.is_empty() && self.fingerprint != UNKNOWN
    }
}

/// What a question is about, as entries have it; who asks is left open.
pub(super) struct About<'a> {
    question: &'a Question,
    meaning: String,
    fingerprints: &'a [String; 2],
}

impl<'a> About<'a> {
    pub(super) fn new(question: &'a Question, fingerprints: &'a [String; 2]) -> Self {
        let meaning = hex(meaning_hash(&question.meaning).as_bytes());
        Self { question, meaning, fingerprints }
    }

    pub(super) fn is_of(&self, entry: &Entry) -> bool {
        entry.meaning == self.meaning
            && entry.dataset == self.question.dataset
            && self.fingerprints.contains(&entry.fingerprint)
            && entry.partition == self.question.partition
    }

    /// The last entry that answers it, and when that was committed.
    pub(super) fn answer<'e>(&self, entries: &'e [Entry]) -> Option<(&'e Entry, i64)> {
        entries.iter().rev().find_map(|entry| match entry.state {
            State::Committed { time } if self.is_of(entry) => Some((entry, time)),
            State::Committed { .. } | State::Reserved | State::Void { .. } => None,
        })
    }

    /// The first entry of the same analyst that is open for it.
    pub(super) fn open<'e>(&self, entries: &'e [Entry]) -> Option<&'e Entry> {
        self.all_open(entries).next()
    }

    /// The first of them that was interrupted.
    pub(super) fn interrupted<'e>(&self, entries: &'e [Entry]) -> Option<&'e Entry> {
        self.all_open(entries).find(|entry| entry.is_interrupted())
    }

    fn all_open<'e>(&self, entries: &'e [Entry]) -> impl Iterator<Item = &'e Entry> {
        let open = |entry: &&Entry| entry.state == State::Reserved && entry.analyst == self.question.analyst;
        entries.iter().filter(move |entry| open(entry) && self.is_of(entry))
    }
}

/// Whether work that knows of this checkpoint follows from the one that was noted last.
pub(super) fn follows(entry: &Entry, at: Option<&Progress>) -> Result<(), LedgerError> {
    match &entry.progress {
        Some(last) if at != Some(last) => Err(LedgerError::OtherCheckpoint { number: entry.number, step: last.step }),
        None if at.is_some() => Err(LedgerError::OtherCheckpoint { number: entry.number, step: 0 }),
        _ => Ok(()),
    }
}

/// Whether this is the next checkpoint of work that knows of the one before: steps only grow.
pub(super) fn advances(entry: &Entry, after: Option<&Progress>, next: &Progress) -> Result<(), LedgerError> {
    follows(entry, after)?;
    match &entry.progress {
        Some(last) if last.step >= next.step => {
            Err(LedgerError::NoProgress { number: entry.number, last: last.step, step: next.step })
        }
        _ => Ok(()),
    }
}

/// The same charge with everything given up at every rung.
pub(super) fn everything(charge: &Charge) -> Charge {
    charge.iter().map(|(rung, _)| (rung.clone(), Cost::Everything)).collect()
}

/// What an entry keeps of a question, with the fingerprint as it is kept, and of what it is charged.
pub(super) fn reserved_values(
    question: &Question,
    fingerprint: String,
    charge: &Charge,
    budgets: &[&Budget],
) -> Result<[Value; 8], LedgerError> {
    Ok([
        Value::Text(question.dataset.clone()),
        Value::Text(question.analyst.clone()),
        Value::Text(question.text.clone()),
        Value::Blob(meaning_hash(&question.meaning).as_bytes().to_vec()),
        Value::Text(fingerprint),
        question.partition.clone().map_or(Value::Null, Value::Text),
        Value::Text(write_charge(charge).map_err(LedgerError::Charge)?),
        Value::Text(write_budgets(budgets).map_err(LedgerError::Charge)?),
    ])
}
