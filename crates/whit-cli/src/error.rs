//! Errors as a command prints them: words, and an exit code.

use crate::hint::for_command;
use crate::number::Wrong;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use std::error::Error as _;
use std::io::{self, Write};
use std::path::Path;
use whit::account::ledger::{ExportError, LedgerError};
use whit::error::{ErrorKind as Kind, Reason};
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

    /// Our own sentence for a value that is out of range; everything else clap says well.
    pub(crate) fn of_option(error: &clap::Error) -> Option<Self> {
        if error.kind() != ErrorKind::ValueValidation {
            return None;
        }
        let wrong = error.source()?.downcast_ref::<Wrong>()?;
        let text = |kind| match error.get(kind) {
            Some(ContextValue::String(text)) => Some(text.as_str()),
            _ => None,
        };
        let option = text(ContextKind::InvalidArg)?.split_whitespace().next()?;
        let value = text(ContextKind::InvalidValue)?;
        Some(Self::asked(format!("{option} is {value}, but it must be {}", wrong.range), wrong.hint))
    }

    /// Whether somebody pressed Ctrl-C.
    pub(crate) fn is_interruption(&self) -> bool {
        matches!(self, Self::Whit(error) if matches!(error.reason, Some(Reason::Interrupted(_))))
    }

    /// The exit code.
    pub(crate) fn code(&self) -> u8 {
        match self {
            // What a shell says of a program that Ctrl-C ended.
            _ if self.is_interruption() => 130,
            Self::Output(error) if error.kind() == io::ErrorKind::BrokenPipe => 0,
            Self::Output(_) => 1,
            Self::Whit(error) => match error.kind {
                Kind::Failed => 1,
                Kind::Asked => 2,
                Kind::Refused => 3,
            },
        }
    }

    /// Prints what is wrong, and the next step.
    pub(crate) fn write(&self, talk: &mut dyn Write) -> io::Result<()> {
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
    use std::ffi::OsString;
    use std::process::ExitCode;

    #[test]
    fn exit_codes_say_what_happened() {
        let pipe = Error::Output(io::Error::from(io::ErrorKind::BrokenPipe));
        let full = Error::Output(io::Error::from(io::ErrorKind::StorageFull));
        let refused = Error::from(whit::Error::refused(whit::Refusal::new("", "", ""), ""));
        let codes = [pipe, Error::failed(""), full, Error::asked("", ""), refused].map(|e| e.code());
        assert_eq!(codes, [0, 1, 1, 2, 3]);
    }

    fn ask(line: &str) -> (u8, String, String) {
        let (mut out, mut talk) = (Vec::new(), Vec::new());
        let code = crate::command::main(line.split_whitespace().map(OsString::from), &mut out, &mut talk);
        let code = (0..=3).find(|&n| code == ExitCode::from(n)).unwrap();
        (code, String::from_utf8(out).unwrap(), String::from_utf8(talk).unwrap())
    }

    #[test]
    fn a_wrong_number_is_named_with_its_option_and_range() {
        let (code, out, talk) = ask("whit account epsilon --noise -1 --delta 1e-5");
        assert_eq!((code, out.as_str()), (2, ""));
        assert!(talk.starts_with("error: --noise is -1, but it must be a number greater than 0\n  hint: "), "{talk}");
    }
}
