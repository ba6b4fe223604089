//! Errors as a command tells them: words, and an exit code.

use super::hint::for_command;
use std::io::{self, Write};
use std::path::Path;
use whit::account::ledger::{ExportError, LedgerError};
use whit::error::Kind;
use whit::query::QueryError;

/// Why a command did not do what it was asked.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    /// The library's own: exit code 2 where it was asked wrongly, 3 where a budget said no, 1 where something outside went wrong.
    #[error("{0}")]
    Whit(#[from] whit::Error),
    /// The reader of our output went away or its disk is full: exit code 1, or 0 where the reader simply had enough.
    #[error("the output could not be written: {0}")]
    Output(#[from] io::Error),
}

impl Error {
    /// What cannot be meant, and how to ask instead.
    pub(crate) fn asked(sentence: impl Into<String>, hint: impl Into<String>) -> Self {
        Self::Whit(whit::Error::asked(sentence, hint))
    }

    /// Something outside went wrong.
    pub(crate) fn failed(sentence: impl Into<String>) -> Self {
        Self::Whit(whit::Error::failed(sentence))
    }

    /// A file that cannot be written.
    pub(crate) fn file(path: &Path, error: &io::Error) -> Self {
        Self::Whit(whit::Error::file(path, error))
    }

    pub(super) fn code(&self) -> u8 {
        match self {
            Self::Output(error) if error.kind() == io::ErrorKind::BrokenPipe => 0,
            Self::Output(_) => 1,
            Self::Whit(error) => match error.kind {
                Kind::Failed => 1,
                Kind::Asked => 2,
                Kind::Refused => 3,
            },
        }
    }

    pub(super) fn tell(&self, talk: &mut dyn Write) -> io::Result<()> {
        match self {
            Self::Output(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
            Self::Output(_) => writeln!(talk, "error: {self}"),
            Self::Whit(error) if error.kind == Kind::Asked && error.hint.is_none() => {
                writeln!(talk, "error: {error}\n  hint: see `whit help`")
            }
            Self::Whit(error) => writeln!(talk, "error: {}", for_command(&error.words())),
        }
    }
}

impl From<QueryError> for Error {
    fn from(error: QueryError) -> Self {
        Self::Whit(error.into())
    }
}

impl From<LedgerError> for Error {
    fn from(error: LedgerError) -> Self {
        Self::Whit(error.into())
    }
}

impl From<ExportError> for Error {
    fn from(error: ExportError) -> Self {
        match error {
            ExportError::Ledger(error) => error.into(),
            ExportError::Output(error) => Self::Output(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exit_codes_tell_what_happened() {
        let pipe = Error::Output(io::Error::from(io::ErrorKind::BrokenPipe));
        let full = Error::Output(io::Error::from(io::ErrorKind::StorageFull));
        let refused = Error::from(whit::Error::refused(whit::Refusal::new("", "", ""), ""));
        let codes = [pipe, Error::failed(""), full, Error::asked("", ""), refused].map(|e| e.code());
        assert_eq!(codes, [0, 1, 1, 2, 3]);
    }
}
