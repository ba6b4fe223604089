//! What one unit contributes, and no more: the only place where contributions are cut.
//!
//! The engine hands over rows: whose they are, in which group, and what they add. Here rows are gathered user by user; a user
//! keeps at most so many elements, a unit at most so many groups and values, each of its sums is clamped, and what
//! is left is added up over units ([`collect`]).
//!
//! # Why it is safe to cut here
//! What a unit keeps is a function of its own rows and of a secret seed alone: the children (groups of a unit, elements of a user, values
//! of a unit in a group) with the smallest hashes, and of those whose hash stands at the limit, none. So a unit that does not
//! change keeps what it kept, whatever others do, and a unit that changes moves the sums by what it keeps before and after. Where
//! a user keeps only so many *elements*, one that is emptied may let in another: planning never takes the group of
//! an element as its own then. Where each row stands for itself and a user keeps only so many, a row that comes or goes takes the place of at most one other of its
//! user ([`rows`]), and is priced so.
//!
//! # Why it is fair
//! The hash is our own ([`hash`]) and of the unit *and* the child ([`choice`]), so each unit keeps a sample of its own, and no group is kept by all
//! or by none. A unit with more rows in a group than count, or with more in all, has each of its rows count for less:
//! one weight for all sums alike, so that a mean stays the mean of that unit's rows.

pub(crate) mod choice;
pub(crate) mod collect;
pub(crate) mod hash;
mod number;
pub(crate) mod quantise;
mod rows;
mod sums;
mod text;

pub(crate) use rows::RowCap;
pub(crate) use sums::{BoundedSum, BoundedSums, SumNoise, SumReach, UnitLimit, schema_of};

use std::ops::Range;

/// What one row weighs: where rows of a unit count for less, they are counted in so many parts of one, and over leaves and bins a unit's rows share so much
/// weight for each row that counts.
pub(crate) const WEIGHT: i64 = 1 << 10;

/// What the columns of a batch are, from left to right: user, element, keys, inner value, and then what rows add.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Layout {
    /// Whether a user stands first; otherwise each row is a unit of its own.
    pub(crate) user: bool,
    /// Whether an element stands after the user.
    pub(crate) element: bool,
    /// How many keys.
    pub(crate) keys: usize,
    /// Whether a value stands after the keys: a leaf, or one of different values.
    pub(crate) inner: bool,
}

impl Layout {
    fn elements(self) -> Range<usize> {
        let start = usize::from(self.user);
        start..start + usize::from(self.element)
    }

    fn groups(self) -> Range<usize> {
        let start = self.elements().end;
        start..start + self.keys
    }

    fn inners(self) -> Range<usize> {
        let start = self.groups().end;
        start..start + usize::from(self.inner)
    }
}

/// What is done with the value inside of a group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Inner {
    /// There is none.
    None,
    /// A unit keeps so many different ones in a group.
    Distinct {
        /// At most.
        most: u64,
    },
    /// A unit's rows in a group share a weight: so much a row, for as many rows as count.
    Weights {
        /// The weight of a row.
        each: u32,
    },
}

/// What rows add to one sum.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Addend {
    /// Which of the columns after the inner value holds it; without one, each row adds one.
    pub(crate) column: Option<usize>,
    /// Times so much, where it is of units.
    pub(crate) each: i64,
    /// What one unit adds to one group.
    pub(crate) limit: UnitLimit,
}

/// How contributions are cut.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Rules {
    pub(crate) layout: Layout,
    pub(crate) elements_per_user: Option<u64>,
    pub(crate) groups_per_unit: Option<u64>,
    /// Above so many rows of a unit in a group, all of them count for less.
    pub(crate) rows_per_group: u64,
    /// The same for the rows that a unit has in all its groups.
    pub(crate) rows_in_all: u64,
    /// Where what caps leave out is released: rows are counted before and after them, of one unit at most so many each time.
    pub(crate) rows_kept: Option<[u64; 2]>,
    /// Whether groups show that occur, also where nobody keeps them: neighbours agree on which they are.
    pub(crate) observed: bool,
    pub(crate) inner: Inner,
    /// What is added up, where there is no inner value.
    pub(crate) addends: Vec<Addend>,
    /// Which children a parent keeps depends on this, on the parent and on the children. Nobody may guess it.
    pub(crate) seed: u64,
}

impl Rules {
    /// Whether there is anything to choose.
    fn chooses(&self) -> bool {
        self.elements_per_user.is_some()
            || self.groups_per_unit.is_some()
            || self.rows_per_group < u64::MAX
            || self.rows_in_all < u64::MAX
            || self.inner != Inner::None
    }

    /// Sum by sum, and then of the number of users (or rows), or else of what is inside of groups: what one unit adds to one group. Where each row stands for
    /// itself, what is counted is counted row by row.
    fn limits(&self) -> Vec<UnitLimit> {
        match self.inner {
            Inner::None => self.addends.iter().map(|addend| addend.limit).chain([UnitLimit::up_to(1)]).collect(),
            Inner::Distinct { .. } | Inner::Weights { .. } if !self.layout.user => vec![UnitLimit::up_to(1)],
            Inner::Distinct { most } => vec![UnitLimit::up_to(most)],
            Inner::Weights { each } => vec![UnitLimit::up_to(self.rows_per_group.saturating_mul(each.into()))],
        }
    }
}

type Outcome<T> = datafusion::common::Result<T>;
