//! Why a question got no answer, in a sentence that names the thing, and the next step.

use std::fmt;

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
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QueryError {
    /// Whose move it is.
    pub fault: Fault,
    /// What is wrong.
    pub sentence: String,
    /// The next step.
    pub hint: Option<String>,
}

impl QueryError {
    /// A question that cannot be meant, and how to ask instead.
    pub fn asked(sentence: impl Into<String>, hint: impl Into<String>) -> Self {
        Self { fault: Fault::Asked, sentence: sentence.into(), hint: Some(hint.into()) }
    }

    /// A budget's "no".
    pub fn refused(sentence: impl Into<String>, hint: Option<String>) -> Self {
        Self { fault: Fault::Refused, sentence: sentence.into(), hint }
    }

    /// Something outside went wrong.
    pub fn failed(sentence: impl Into<String>) -> Self {
        Self { fault: Fault::Failed, sentence: sentence.into(), hint: None }
    }
}

impl fmt::Display for QueryError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.sentence)
    }
}

impl std::error::Error for QueryError {}
