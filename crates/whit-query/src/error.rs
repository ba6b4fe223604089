//! Why a question got no answer, in a sentence that names the thing, and the next step.

use crate::translate::in_our_words;
use datafusion::common::DataFusionError;
use std::fmt;
use whit_account::desk::{DeskError, Interruption};
use whit_account::ledger::LedgerError;
use whit_core::Refusal;
use whit_core::mechanism::SanitiseError;
use whit_core::release::ReadError;

/// Whose move it is now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// The question or the declaration cannot be meant: ask differently.
    Asked,
    /// A budget said no.
    Refused,
    /// Something outside went wrong: a file, the disk, the ledger.
    Failed,
}

/// Why a question got no answer. Speaks of schemas and parameters, never of rows.
#[derive(Debug, Clone, PartialEq)]
pub struct QueryError {
    /// Whose move it is.
    pub fault: Fault,
    /// What is wrong.
    pub sentence: String,
    /// The next step.
    pub hint: Option<String>,
    /// The budget's "no" that it is, in numbers.
    pub refusal: Option<Box<Refusal>>,
    /// The entry that somebody made void while the question was answered.
    pub voided: Option<u64>,
    /// What the ledger said, where it was the ledger that failed.
    pub ledger: Option<Box<LedgerError>>,
    /// That whoever asked stopped it, and what became of its charge.
    pub interrupted: Option<Interruption>,
}

impl QueryError {
    /// A question that cannot be meant, and how to ask instead.
    pub fn asked(sentence: impl Into<String>, hint: impl Into<String>) -> Self {
        Self { hint: Some(hint.into()), ..Self::of(Fault::Asked, sentence) }
    }

    /// A budget's "no".
    pub fn refused(refusal: Refusal, hint: Option<String>) -> Self {
        let refused = Self::of(Fault::Refused, refusal.to_string());
        Self { hint, refusal: Some(Box::new(refusal)), ..refused }
    }

    /// Something outside went wrong.
    pub fn failed(sentence: impl Into<String>) -> Self {
        Self::of(Fault::Failed, sentence)
    }

    fn of(fault: Fault, sentence: impl Into<String>) -> Self {
        let (hint, refusal, voided, ledger, interrupted) = (None, None, None, None, None);
        Self { fault, sentence: sentence.into(), hint, refusal, voided, ledger, interrupted }
    }

    /// Whoever asked stopped it, before anything was charged as far as is known here.
    pub(crate) fn interrupted() -> Self {
        let interruption = Interruption { entry: None, goes_on: false };
        let error = DeskError::Interrupted(interruption);
        Self { hint: error.hint(), interrupted: Some(interruption), ..Self::failed(error.to_string()) }
    }
}

/// What could not be read for a question, as a release says it.
impl From<QueryError> for ReadError {
    fn from(error: QueryError) -> Self {
        Self { interrupted: error.interrupted.is_some(), sentence: error.sentence, hint: error.hint }
    }
}

impl From<QueryError> for SanitiseError {
    fn from(error: QueryError) -> Self {
        Self::Read(error.into())
    }
}

impl fmt::Display for QueryError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.sentence)
    }
}

impl std::error::Error for QueryError {}

/// What planning found wrong.
pub(crate) fn planning(error: &DataFusionError) -> QueryError {
    if let Some(own) = own_words(error) {
        return own;
    }
    let said = in_our_words(&error.strip_backtrace());
    let hint = "check the question against the columns that `Declared::check` shows";
    QueryError::asked(said.sentence, said.hint.unwrap_or_else(|| hint.to_owned()))
}

/// An error that whit made itself, on its way through the engine.
pub(crate) fn own_words(error: &DataFusionError) -> Option<QueryError> {
    match error.find_root() {
        DataFusionError::External(inner) => inner.downcast_ref::<QueryError>().cloned(),
        _ => None,
    }
}

/// What went wrong while running. The engine's words could speak of values, so only their kind is said.
pub(crate) fn running(error: &DataFusionError) -> QueryError {
    if let Some(own) = own_words(error) {
        return own;
    }
    let sentence = match error.find_root() {
        DataFusionError::ResourcesExhausted(_) => "the engine ran out of memory".to_owned(),
        DataFusionError::IoError(error) => format!("a file could not be read: {}", error.kind()),
        DataFusionError::ObjectStore(_) => "a file of the data set could not be read".to_owned(),
        DataFusionError::ParquetError(_) => "a Parquet file of the data set is damaged".to_owned(),
        _ => "the engine could not finish the question".to_owned(),
    };
    QueryError::failed(sentence)
}

/// What the ledger could not do.
pub(crate) fn of_ledger(error: LedgerError) -> QueryError {
    let failed = QueryError::failed(error.to_string());
    QueryError { hint: error.hint(), ledger: Some(Box::new(error)), ..failed }
}
