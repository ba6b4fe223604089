//! The one error: whose move it is, what is wrong, where, and what to do about it.

use std::path::Path;
use std::{fmt, io};
use whit_account::ledger::LedgerError;
use whit_learn::LearnError;
use whit_query::{Fault, QueryError};

/// Whose move it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// What was asked cannot be meant, or cannot be answered: ask otherwise.
    Asked,
    /// A budget said no. Nothing was charged.
    Refused,
    /// Something outside went wrong: a file, a disk, a ledger.
    Failed,
}

/// Why something was not done. Speaks of declarations, files and parameters, never of rows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Error {
    /// Whose move it is.
    pub kind: Kind,
    /// What is wrong.
    pub sentence: String,
    /// Where: the arm, the file or the line, from the outside in.
    pub place: Option<String>,
    /// The next step.
    pub hint: Option<String>,
}

impl Error {
    /// What cannot be meant, and how to ask instead.
    pub fn asked(sentence: impl Into<String>, hint: impl Into<String>) -> Self {
        Self { hint: Some(hint.into()), ..Self::of(Kind::Asked, sentence) }
    }

    /// A budget's "no".
    pub fn refused(sentence: impl Into<String>, hint: impl Into<String>) -> Self {
        Self { hint: Some(hint.into()), ..Self::of(Kind::Refused, sentence) }
    }

    /// Something outside went wrong.
    pub fn failed(sentence: impl Into<String>) -> Self {
        Self::of(Kind::Failed, sentence)
    }

    /// A file that cannot be written.
    pub fn file(path: &Path, error: &io::Error) -> Self {
        Self::failed(format!("`{}` could not be written: {error}", path.display()))
    }

    fn of(kind: Kind, sentence: impl Into<String>) -> Self {
        Self { kind, sentence: sentence.into(), place: None, hint: None }
    }

    /// The same with what to do about it.
    #[must_use]
    pub fn with_hint(self, hint: impl Into<String>) -> Self {
        Self { hint: Some(hint.into()), ..self }
    }

    /// The same, and where it is; what was said of the place before lies inside of it.
    #[must_use]
    pub fn at(mut self, place: impl Into<String>) -> Self {
        let outer = place.into();
        self.place = Some(match self.place {
            Some(inner) => format!("{outer}: {inner}"),
            None => outer,
        });
        self
    }

    /// Place, sentence and hint, on two lines.
    pub fn words(&self) -> String {
        match &self.hint {
            Some(hint) => format!("{self}\n  hint: {hint}"),
            None => self.to_string(),
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.place {
            Some(place) => write!(f, "{place}: {}", self.sentence),
            None => f.write_str(&self.sentence),
        }
    }
}

impl std::error::Error for Error {}

impl From<QueryError> for Error {
    fn from(error: QueryError) -> Self {
        let kind = match error.fault {
            Fault::Asked => Kind::Asked,
            Fault::Refused => Kind::Refused,
            Fault::Failed => Kind::Failed,
        };
        Self { hint: error.hint, ..Self::of(kind, error.sentence) }
    }
}

impl From<LearnError> for Error {
    fn from(error: LearnError) -> Self {
        let (sentence, hint) = (error.to_string(), error.hint());
        let kind = match error {
            LearnError::File { .. }
            | LearnError::Damaged { .. }
            | LearnError::OtherRun(_)
            | LearnError::Busy(_)
            | LearnError::Stopped { .. }
            | LearnError::Ledger(_)
            | LearnError::Sanitise(_)
            | LearnError::NotANumber(_) => Kind::Failed,
            LearnError::Store(why) if why.is_of_the_disk() => Kind::Failed,
            _ => Kind::Asked,
        };
        Self { hint: Some(hint), ..Self::of(kind, sentence) }
    }
}

impl From<LedgerError> for Error {
    fn from(error: LedgerError) -> Self {
        let (sentence, hint) = (error.to_string(), error.hint());
        let kind = match error {
            LedgerError::Missing(_)
            | LedgerError::NotALedger { .. }
            | LedgerError::Link { .. }
            | LedgerError::Relative(_)
            | LedgerError::NoEntry { .. }
            | LedgerError::Closed { .. }
            | LedgerError::NoReason => Kind::Asked,
            _ => Kind::Failed,
        };
        Self { hint, ..Self::of(kind, sentence) }
    }
}

/// The same for who asks of data or trains: which ledger that is was declared and not asked, so nobody asked wrongly.
#[expect(clippy::needless_pass_by_value, reason = "for map_err")]
pub(crate) fn of_ledger(error: LedgerError) -> Error {
    Error { hint: error.hint(), ..Error::failed(error.to_string()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_lie_within_one_another_and_hints_on_a_line_of_their_own() {
        let error = Error::asked("there are no features", "name some").at("`train.toml`").at("arm `DP-SGD`");
        assert_eq!(error.to_string(), "arm `DP-SGD`: `train.toml`: there are no features");
        assert_eq!(error.words(), "arm `DP-SGD`: `train.toml`: there are no features\n  hint: name some");
        assert_eq!(Error::failed("the disk is full").words(), "the disk is full");
    }

    #[test]
    fn whose_move_it_is_survives_the_way_up() {
        assert_eq!(Error::from(QueryError::refused("no", None)).kind, Kind::Refused);
        assert_eq!(Error::from(QueryError::asked("what?", "so")).kind, Kind::Asked);
        assert_eq!(Error::from(LedgerError::NoReason).kind, Kind::Asked);
        assert_eq!(Error::from(LearnError::file("gone", "look")).kind, Kind::Failed);
        assert_eq!(Error::from(LearnError::Data("no rows".to_owned())).kind, Kind::Asked);
    }
}
