//! Why a private value could not be read.

use std::fmt;

/// Whose move it is when a private value could not be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReadKind {
    /// It is not there as it was asked for: ask differently, or declare it otherwise.
    Asked,
    /// The data is not what it was when the question was put: ask again.
    Changed,
    /// Something outside went wrong: a file, the disk, the engine.
    Failed,
}

/// Why a private value could not be read. It speaks of files, plans and parameters, never of what is in a row.
///
/// ```
/// use whit_core::release::ReadError;
/// let error = ReadError::changed("`visits.csv` changed while it was read", "ask again");
/// assert_eq!(error.to_string(), "`visits.csv` changed while it was read: ask again");
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReadError {
    /// Whose move it is.
    pub kind: ReadKind,
    /// What is wrong.
    pub sentence: String,
    /// The next step, where somebody knows one.
    pub hint: Option<String>,
}

impl ReadError {
    /// What is not there as it was asked for.
    pub fn asked(sentence: impl Into<String>, hint: impl Into<String>) -> Self {
        Self { kind: ReadKind::Asked, sentence: sentence.into(), hint: Some(hint.into()) }
    }

    /// Data that is not what it was.
    pub fn changed(sentence: impl Into<String>, hint: impl Into<String>) -> Self {
        Self { kind: ReadKind::Changed, sentence: sentence.into(), hint: Some(hint.into()) }
    }

    /// Something outside that went wrong.
    pub fn failed(sentence: impl Into<String>) -> Self {
        Self { kind: ReadKind::Failed, sentence: sentence.into(), hint: None }
    }
}

impl fmt::Display for ReadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.hint {
            Some(hint) => write!(f, "{}: {hint}", self.sentence),
            None => f.write_str(&self.sentence),
        }
    }
}

impl std::error::Error for ReadError {}
