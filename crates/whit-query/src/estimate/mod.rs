//! The element-level estimators: who has which item, and how much of it.
//!
//! [`hitters`] counts the users who have each item of a public dictionary, and ranks the items. [`histogram`] adds up how
//! often each item occurs, with every user's items grouped into the clusters of a partition. In both, one user's
//! whole contribution is a vector that is *projected* on a convex set, never cut off after the first so many entries.
//!
//! # Why a projection
//! A cap that keeps a user's first m items and drops the rest is not stable: when one of the m is emptied, one that was dropped
//! moves in, so that an element moves two coordinates and not one. A projection on a convex set brings no two vectors
//! further apart than they were, in ℓ2, so that what an element moves before it bounds what it moves after it, and
//! the set's own size bounds what a user moves. One release then has both figures, whatever it protects.

pub mod ask;
pub mod dictionary;
pub mod histogram;
pub mod hitters;
mod meaning;
mod noise;
pub mod norms;
mod order;
mod projected;
mod rows;
pub mod sql;
mod stored;
pub mod tokens;

pub use crate::plan::call::ItemList;
pub use ask::{HistogramQuestion, HittersQuestion};
pub(crate) use noise::Calibration;
pub use noise::EstimateError;
pub use projected::ProjectedSums;

use whit_core::{Change, Kind, Unit};

/// How many items (of [`hitters`]) or clusters (of [`histogram`]) the rows of one element can touch.
///
/// The declared element need not be the item or the cluster: where it is a day, its rows may hold any items.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Touch {
    /// At most so many: 1 where the element is the item or the cluster itself, or a part of one.
    Most(u64),
    /// Any number of them.
    Any,
}

/// What a change of one unit does to one user's rows, as far as a statistic that looks at users and items can see.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum RowsMoved {
    /// One row of one user comes or goes.
    Row,
    /// One row of one user goes, and one of the same or of another user comes.
    TwoRows,
    /// One user's rows in one element become others.
    Element,
    /// One user's rows come or go.
    User,
    /// One user's rows become others, or make room for another user's.
    UserReplaced,
}

impl RowsMoved {
    /// What a unit moves, where users are told apart by the column `user`; nothing where that cannot be said.
    fn by(unit: &Unit, user: &str) -> Option<Self> {
        match (unit.kind(), unit.change()) {
            (Kind::Event, Change::AddRemove) => Some(Self::Row),
            (Kind::Event, Change::Replace) => Some(Self::TwoRows),
            (Kind::Element, _) => (unit.key().first().is_some_and(|key| key == user)).then_some(Self::Element),
            (Kind::User, _) if unit.key() != [user] => None,
            (Kind::User, Change::AddRemove) => Some(Self::User),
            (Kind::User, Change::Replace) => Some(Self::UserReplaced),
            // A row whose private columns change is a row that goes and a row that comes.
            (Kind::Feature | Kind::Label, _) if unit.key().is_empty() => Some(Self::TwoRows),
            (Kind::Feature | Kind::Label, _) => (unit.key() == [user]).then_some(Self::UserReplaced),
        }
    }
}

#[cfg(test)]
mod tests;
