//! The one error: whose move it is, what is wrong, where, and what to do about it.

use std::path::{Path, PathBuf};
use std::{fmt, io};
use whit_account::desk::Interruption;
use whit_account::ledger::{ChainFault, LedgerError};
use whit_core::Refusal;
use whit_learn::LearnError;
use whit_query::{Fault, QueryError};

/// Whose move it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ErrorKind {
    /// What was asked cannot be meant, or cannot be answered: ask otherwise.
    Asked,
    /// A budget said no. Nothing was charged.
    Refused,
    /// Something outside went wrong: a file, a disk, a ledger.
    Failed,
}

/// What a program may want to do something about, rather than show. The sentence says the same to people.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Reason {
    /// A budget said no: which, what was asked of it, what is left, and what would fit. Nothing was charged.
    Refused(Box<Refusal>),
    /// It is computed from rows without noise, and nobody said to be their owner.
    OwnerOnly,
    /// There is no ledger at this path.
    NoLedger(PathBuf),
    /// Something in the ledger is not as it was written, or could not be read: where, and what.
    Ledger(Box<ChainFault>),
    /// There is no interrupted run to go on with.
    NoRun,
    /// Another process is training with this checkpoint, or this very model.
    Busy(PathBuf),
    /// Somebody made the entry void while the work was under way: nothing of it is released, and nothing of it is spent.
    Voided {
        /// The entry.
        entry: u64,
    },
    /// Whoever asked stopped it: what became of its charge, and whether asking again goes on under it.
    Interrupted(Interruption),
    /// Whatever worked for an [`AsyncSession`](crate::AsyncSession) is gone. What was reserved stays spent.
    Closed,
}

/// Why something was not done. Speaks of declarations, files and parameters, never of rows.
#[derive(Debug, Clone, PartialEq)]
pub struct Error {
    /// Whose move it is.
    pub kind: ErrorKind,
    /// What is wrong.
    pub sentence: String,
    /// Where: the arm, the file or the line, from the outside in.
    pub place: Option<String>,
    /// The next step: it names fields of requests, methods and keys of files, and no options of a command.
    pub hint: Option<String>,
    /// Why, for programs, where that makes a difference to one.
    pub reason: Option<Reason>,
}

impl Error {
    /// What cannot be meant, and how to ask instead.
    pub fn asked(sentence: impl Into<String>, hint: impl Into<String>) -> Self {
        Self { hint: Some(hint.into()), ..Self::of(ErrorKind::Asked, sentence) }
    }

    /// A budget's "no".
    pub fn refused(refusal: Refusal, hint: impl Into<String>) -> Self {
        let refused = Self::of(ErrorKind::Refused, refusal.to_string()).because(Reason::Refused(Box::new(refusal)));
        refused.with_hint(hint)
    }

    /// Something outside went wrong.
    pub fn failed(sentence: impl Into<String>) -> Self {
        Self::of(ErrorKind::Failed, sentence)
    }

    /// A file that cannot be written.
    pub fn file(path: &Path, error: &io::Error) -> Self {
        Self::failed(format!("`{}` could not be written: {error}", path.display()))
    }

    fn of(kind: ErrorKind, sentence: impl Into<String>) -> Self {
        Self { kind, sentence: sentence.into(), place: None, hint: None, reason: None }
    }

    /// The same with what to do about it.
    #[must_use]
    pub(crate) fn with_hint(self, hint: impl Into<String>) -> Self {
        Self { hint: Some(hint.into()), ..self }
    }

    /// The same with why, for programs.
    #[must_use]
    pub(crate) fn because(self, reason: Reason) -> Self {
        Self { reason: Some(reason), ..self }
    }

    /// The budget's "no" that it is.
    pub fn refusal(&self) -> Option<&Refusal> {
        match &self.reason {
            Some(Reason::Refused(refusal)) => Some(refusal),
            _ => None,
        }
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
            Fault::Asked => ErrorKind::Asked,
            Fault::Refused => ErrorKind::Refused,
            Fault::Failed => ErrorKind::Failed,
        };
        let voided = error.voided.map(|entry| Reason::Voided { entry });
        let ledger = error.ledger.as_deref().and_then(reason_of);
        let interrupted = error.interrupted.map(Reason::Interrupted);
        let reason = error.refusal.map(Reason::Refused).or(voided).or(ledger).or(interrupted);
        Self { hint: error.hint, reason, ..Self::of(kind, error.sentence) }
    }
}

impl From<LearnError> for Error {
    fn from(error: LearnError) -> Self {
        let (sentence, hint) = (error.to_string(), error.hint());
        let reason = match &error {
            LearnError::Busy(path) => Some(Reason::Busy(path.clone())),
            _ => None,
        };
        let kind = match error {
            LearnError::File { .. }
            | LearnError::Damaged { .. }
            | LearnError::OtherRun(_)
            | LearnError::Busy(_)
            | LearnError::Stopped { .. }
            | LearnError::Ledger(_)
            | LearnError::Sanitise(_)
            | LearnError::NotANumber(_) => ErrorKind::Failed,
            LearnError::Store(why) if why.is_of_the_disk() => ErrorKind::Failed,
            _ => ErrorKind::Asked,
        };
        Self { hint: Some(hint), reason, ..Self::of(kind, sentence) }
    }
}

impl From<LedgerError> for Error {
    fn from(error: LedgerError) -> Self {
        let (sentence, hint, reason) = (error.to_string(), error.hint(), reason_of(&error));
        let kind = match error {
            LedgerError::Missing(_)
            | LedgerError::NotALedger { .. }
            | LedgerError::Link { .. }
            | LedgerError::Relative(_)
            | LedgerError::NoEntry { .. }
            | LedgerError::Unheard { .. }
            | LedgerError::Closed { .. }
            | LedgerError::NoReason => ErrorKind::Asked,
            _ => ErrorKind::Failed,
        };
        Self { hint, reason, ..Self::of(kind, sentence) }
    }
}

fn reason_of(error: &LedgerError) -> Option<Reason> {
    match error {
        LedgerError::Missing(path) => Some(Reason::NoLedger(path.clone())),
        LedgerError::Changed(fault) => Some(Reason::Ledger(Box::new(fault.clone()))),
        _ => None,
    }
}

/// The same for who asks of data or trains: which ledger that is was declared and not asked, so nobody asked wrongly.
#[expect(clippy::needless_pass_by_value, reason = "for map_err")]
pub(crate) fn of_ledger(error: LedgerError) -> Error {
    Error { hint: error.hint(), reason: reason_of(&error), ..Error::failed(error.to_string()) }
}

/// What a ledger that was read as a whole has wrong with it.
pub(crate) fn of_fault(fault: ChainFault) -> Error {
    Error::failed(fault.to_string()).because(Reason::Ledger(Box::new(fault)))
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
        let no = Refusal::new("ε = 2", "ε = 1", "user");
        let refused = Error::from(QueryError::refused(no.clone(), None));
        assert_eq!((refused.kind, refused.refusal()), (ErrorKind::Refused, Some(&no)));
        assert_eq!(refused.to_string(), no.to_string());
        assert_eq!(Error::from(QueryError::asked("what?", "so")).kind, ErrorKind::Asked);
        assert_eq!(Error::from(LedgerError::NoReason).kind, ErrorKind::Asked);
        let fault =
            ChainFault { event: Some(3), entry: Some(2), field: "charge".to_owned(), what: "was changed".to_owned() };
        for error in [of_fault(fault.clone()), of_ledger(LedgerError::Changed(fault.clone()))] {
            assert_eq!(
                error.reason,
                Some(Reason::Ledger(Box::new(fault.clone()))),
                "a program learns which entry it is"
            );
        }
        let asked = QueryError {
            ledger: Some(Box::new(LedgerError::Changed(fault.clone()))),
            ..QueryError::failed("the ledger was changed")
        };
        assert_eq!(Error::from(asked).reason, Some(Reason::Ledger(Box::new(fault))), "also where a question met it");
        assert_eq!(Error::from(LearnError::file("gone", "look")).kind, ErrorKind::Failed);
        assert_eq!(Error::from(LearnError::Data("no rows".to_owned())).kind, ErrorKind::Asked);
    }
}
