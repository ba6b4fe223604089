//! Who may see what was computed from rows without noise.

use super::spec::asked;
use crate::command::Error;

pub(super) use whit::query::source::owner::Owner;

/// Whoever runs the command owns the data, where it was said.
pub(super) fn of(said: bool) -> Option<Owner> {
    said.then(Owner::who_may_see_every_row)
}

/// Refuses unless it was said. `what` shows something that was not sanitised.
pub(super) fn needed(said: bool, what: &str) -> Result<Owner, Error> {
    of(said).ok_or_else(|| {
        asked(
            format!("{what} is computed from rows without noise, and is for the owner of the data only"),
            "if you are, say --owner; what you then see is as private as the rows",
        )
    })
}
