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
//! an element as its own then.
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
mod text;

use crate::error::{QueryError, running};
use datafusion::arrow::array::{Array, ArrayRef, UInt32Array};
use datafusion::arrow::compute::take;
use datafusion::arrow::datatypes::{Field, Schema, SchemaRef};
use datafusion::logical_expr::EmitTo;
use datafusion::physical_plan::aggregates::group_values::{GroupValues, new_group_values};
use datafusion::physical_plan::aggregates::order::GroupOrdering;
use std::ops::Range;
use std::sync::Arc;

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
    /// The least that one unit adds to one group.
    pub(crate) low: i64,
    /// The most.
    pub(crate) high: i64,
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
    /// Where it is to be told what caps leave: rows are counted before and after them, of one unit at most so many each time.
    pub(crate) told: Option<[u64; 2]>,
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
}

/// Exact sums over units, group by group.
#[derive(Debug, Clone)]
pub(crate) struct Sums {
    /// The keys (and inner values) of the groups, one array a column.
    pub(crate) keys: Vec<ArrayRef>,
    /// How many groups.
    pub(crate) groups: usize,
    /// One vector for each sum and then one for the number of users (or rows); or one for the weights of inner values.
    pub(crate) values: Vec<Vec<i128>>,
    /// Where it is told what caps leave: how many rows there were, and how many of them count.
    pub(crate) kept: [i128; 2],
}

/// Up to here sums are told, on either side of zero; beyond it they are clamped, which moves no two of them further apart. Above it there
/// is as much room again for noise.
pub(crate) const MOST: i128 = 1 << 62;

/// A sum as noise is added to it.
pub(crate) fn told(sum: i128) -> i64 {
    sum.clamp(-MOST, MOST) as i64
}

type Outcome<T> = datafusion::common::Result<T>;

/// The types of some keys, under names that nobody reads.
pub(crate) fn schema_of(keys: &[ArrayRef]) -> SchemaRef {
    let field = |(i, key): (usize, &ArrayRef)| Field::new(format!("k{i}"), key.data_type().clone(), true);
    Arc::new(Schema::new(keys.iter().enumerate().map(field).collect::<Vec<_>>()))
}

fn interner(schema: SchemaRef) -> Outcome<Option<Box<dyn GroupValues>>> {
    if schema.fields().is_empty() { Ok(None) } else { new_group_values(schema, &GroupOrdering::None).map(Some) }
}

/// Gives each row the number of its group; without columns all rows are one group.
fn numbers(groups: &mut Option<Box<dyn GroupValues>>, columns: &[ArrayRef], rows: usize) -> Outcome<Vec<usize>> {
    let mut ids = Vec::with_capacity(rows);
    match groups {
        Some(groups) => groups.intern(columns, &mut ids)?,
        None => ids.resize(rows, 0),
    }
    Ok(ids)
}

/// One sum of several, group by group.
pub(crate) fn merge(mut parts: Vec<Sums>) -> Outcome<Sums> {
    if parts.len() == 1 {
        return Ok(parts.remove(0));
    }
    let Some(first) = parts.first() else {
        return Err(datafusion::common::DataFusionError::Internal("nothing to merge".to_owned()));
    };
    let (width, empty) = (first.values.len(), first.keys.clone());
    let mut groups = interner(schema_of(&empty))?;
    let (mut values, mut number) = (vec![Vec::<i128>::new(); width], 0);
    let kept = [0, 1].map(|i| parts.iter().map(|part| part.kept[i]).sum());
    for part in &parts {
        let ids = numbers(&mut groups, &part.keys, part.groups)?;
        number = number.max(ids.iter().max().map_or(0, |most| most + 1));
        for (all, some) in values.iter_mut().zip(&part.values) {
            all.resize(number, 0);
            for (&id, &value) in ids.iter().zip(some) {
                all[id] += value;
            }
        }
    }
    let keys = match &mut groups {
        Some(groups) if number > 0 => groups.emit(EmitTo::All)?,
        _ => empty.iter().map(|key| key.slice(0, 0)).collect(),
    };
    Ok(Sums { keys, groups: number, values, kept })
}

/// The number of different inner values in each group: one row a group.
pub(crate) fn count_values(sums: &Sums) -> Result<Sums, QueryError> {
    let counted = || -> Outcome<Sums> {
        let keys = &sums.keys[..sums.keys.len() - 1];
        let mut groups = interner(schema_of(keys))?;
        let ids = numbers(&mut groups, keys, sums.groups)?;
        let number = ids.iter().max().map_or(0, |most| most + 1);
        let mut counts = vec![0_i128; number];
        let inner = &sums.keys[keys.len()];
        for (row, &id) in ids.iter().enumerate() {
            counts[id] += i128::from(inner.is_valid(row)); // a missing value is no value
        }
        let first: UInt32Array = first_rows(&ids, number);
        let keys = keys.iter().map(|key| take(key, &first, None)).collect::<Result<Vec<_>, _>>()?;
        Ok(Sums { keys, groups: number, values: vec![counts], kept: sums.kept })
    };
    counted().map_err(|error| running(&error))
}

/// Where each group is first met.
fn first_rows(ids: &[usize], number: usize) -> UInt32Array {
    let mut first = vec![u32::MAX; number];
    for (row, &id) in ids.iter().enumerate().rev() {
        first[id] = row as u32;
    }
    UInt32Array::from(first)
}
