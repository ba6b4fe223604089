//! Who may see what was computed from rows without noise.

use super::spec::asked;
use crate::command::Error;

/// Whoever runs the command owns the data, and said so. What shows something of rows without noise asks for one, so that nothing of the kind is on the way of
/// whoever only trains.
#[derive(Debug, Clone, Copy)]
pub(super) struct Owner(());

impl Owner {
    /// Where it was said.
    pub(super) fn of(said: bool) -> Option<Self> {
        said.then_some(Self(()))
    }

    /// For a command that is the owner's as a whole, and says so.
    pub(super) fn by_command() -> Self {
        Self(())
    }

    /// Refuses unless it was said. `what` shows something that was not sanitised.
    pub(super) fn needed(said: bool, what: &str) -> Result<Self, Error> {
        Self::of(said).ok_or_else(|| {
            asked(
                format!("{what} is computed from rows without noise, and is for the owner of the data only"),
                "if you are, say --owner; what you then see is as private as the rows",
            )
        })
    }
}
