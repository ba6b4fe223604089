//! Why a private value could not be read.

use std::fmt;

/// Why a private value could not be read. It speaks of files, plans and parameters, never of what is in a row.
///
/// ```
/// use whit_core::release::ReadError;
/// let error = ReadError::changed("`visits.csv` changed while it was read", "ask again");
/// assert_eq!(error.to_string(), "`visits.csv` changed while it was read: ask again");
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReadError {
    /// What is wrong.
    pub sentence: String,
    /// The next step, where somebody knows one.
    pub hint: Option<String>,
    /// Whether whoever asked stopped it. Nothing that is in a row may set this: what is stopped so may be asked again under the same reservation.
    pub interrupted: bool,
}

impl ReadError {
    /// Data that is not what it was.
    pub fn changed(sentence: impl Into<String>, hint: impl Into<String>) -> Self {
        Self { sentence: sentence.into(), hint: Some(hint.into()), interrupted: false }
    }

    /// Something outside that went wrong.
    pub fn failed(sentence: impl Into<String>) -> Self {
        Self { sentence: sentence.into(), hint: None, interrupted: false }
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
