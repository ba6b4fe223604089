//! What was followed, compared with what [`whose`](crate::whose) derives from the plan that came out.

use super::{Lost, Tracked};
use crate::error::QueryError;
use crate::plan::{ELEMENT, USER};
use crate::whose::{Owners, Whose};

/// Refuses what was followed in one way and derived in another.
pub(super) fn compare(tracked: &Tracked, owners: &Owners) -> Result<(), Lost> {
    let wrong =
        |why: &str| Lost::Never(QueryError::failed(format!("whose rows these are cannot be derived again: {why}")));
    let whose = Whose::of(&tracked.plan, owners).map_err(|why| wrong(&why))?;
    // What is known of a column is known by its place.
    if tracked.tags.len() != tracked.plan.schema().fields().len() {
        return Err(wrong("it has other columns than were followed"));
    }
    let Some(private) = &tracked.private else {
        return if whose.private { Err(wrong("private rows were taken for public ones")) } else { Ok(()) };
    };
    if private.user && !whose.has_user(&tracked.plan, USER) {
        return Err(wrong("the hidden column is not the user"));
    }
    if private.element && !whose.has_element(&tracked.plan, ELEMENT) {
        return Err(wrong("the hidden column is not the element"));
    }
    if private.copies.is_some() && !whose.single {
        return Err(wrong("a row stands for several"));
    }
    let mut claimed = tracked.tags.iter().enumerate().filter(|(_, tag)| tag.user).map(|(i, _)| i);
    if claimed.any(|column| !whose.users.contains(&column)) {
        return Err(wrong("a column is taken for the user"));
    }
    Ok(())
}
