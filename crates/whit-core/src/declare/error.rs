//! What is wrong with a declaration, where, and the next step.

use std::fmt;

/// What reading or checking a part of a declaration gives.
pub(super) type DeclareResult<T> = Result<T, DeclareError>;

/// A declaration that cannot be meant: one sentence that names the place and the key, and [`DeclareError::hint`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeclareError {
    line: Option<usize>,
    sentence: String,
    hint: String,
}

impl DeclareError {
    /// A sentence and the next step, of no place in particular.
    pub fn new(sentence: impl Into<String>, hint: impl Into<String>) -> Self {
        Self { line: None, sentence: sentence.into(), hint: hint.into() }
    }

    /// The same, at a line of the text.
    pub(super) fn at(self, line: usize) -> Self {
        Self { line: Some(line), ..self }
    }

    /// The line of the text, from 1, where the mistake has one.
    pub fn line(&self) -> Option<usize> {
        self.line
    }

    /// What is wrong, without the line.
    pub fn sentence(&self) -> &str {
        &self.sentence
    }

    /// What to do next.
    pub fn hint(&self) -> &str {
        &self.hint
    }
}

impl fmt::Display for DeclareError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            Some(line) => write!(f, "line {line}: {}", self.sentence),
            None => f.write_str(&self.sentence),
        }
    }
}

impl std::error::Error for DeclareError {}
