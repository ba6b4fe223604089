//! Who may see what was computed from rows without noise.

use super::spec::asked;
use crate::Error;
use crate::error::Reason;

pub(crate) use whit_query::source::owner::Owner;

/// Refuses unless the owner asks. `what` shows something that was not sanitised.
pub(crate) fn needed(owner: Option<Owner>, what: &str) -> Result<Owner, Error> {
    owner.ok_or_else(|| {
        asked(
            format!("{what} is computed from rows without noise, and is for the owner of the data only"),
            "if you are, say `request.owner`; what you then see is as private as the rows",
        )
        .because(Reason::OwnerOnly)
    })
}
