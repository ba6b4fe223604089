//! What one unit contributes, and no more: the only place where contributions are cut.
//!
//! The engine hands over rows: whose they are, in which group, and what they add. Here rows are gathered user by user; a user
//! keeps at most so many elements, a unit at most so many groups and values, each of its sums is clamped, and what
//! is left is added up over units ([`collect`]).
//!
//! # Why it is safe to cut here
//! What a unit keeps is a function of its own rows alone: the children (groups of a unit, elements of a user, values
//! of a unit in a group) with the smallest hashes, and of those whose hash stands at the limit, none. So a unit that does not
//! change keeps what it kept, whatever others do, and a unit that changes moves the sums by what it keeps before and after. Where
//! a user keeps only so many *elements*, one that is emptied may let in another: planning never takes the group of
//! an element as its own then.

pub(crate) mod collect;
mod number;
pub(crate) mod quantise;
mod text;

use crate::error::QueryError;
use datafusion::arrow::array::{Array, ArrayRef, UInt32Array};
use datafusion::arrow::compute::take;
use datafusion::arrow::datatypes::{Field, Schema, SchemaRef};
use datafusion::logical_expr::EmitTo;
use datafusion::physical_plan::aggregates::group_values::{GroupValues, new_group_values};
use datafusion::physical_plan::aggregates::order::GroupOrdering;
use std::ops::Range;
use std::sync::Arc;

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
    /// A unit's rows in a group share a weight: so much a row, for so many rows.
    Weights {
        /// The weight of a row.
        each: i64,
        /// Above so many rows, all weigh less.
        rows: u64,
    },
}

/// What rows add to one sum.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Addend {
    /// Which of the columns after the inner value holds it; without one, each row adds one.
    pub(crate) column: Option<usize>,
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
    pub(crate) inner: Inner,
    /// What is added up, where there is no inner value.
    pub(crate) addends: Vec<Addend>,
    /// Which children a parent keeps depends on this and on the children.
    pub(crate) seed: u64,
}

/// Exact sums over units, group by group.
#[derive(Debug, Clone)]
pub(crate) struct Sums {
    /// The keys (and inner values) of the groups, one array a column.
    pub(crate) keys: Vec<ArrayRef>,
    /// How many groups.
    pub(crate) groups: usize,
    /// One vector for each sum and then one for the number of users (or rows); or one for the weights of inner values.
    pub(crate) values: Vec<Vec<i64>>,
}

type Outcome<T> = datafusion::common::Result<T>;

fn overflow() -> datafusion::common::DataFusionError {
    datafusion::common::DataFusionError::Execution("a sum does not fit into 64 bits".to_owned())
}

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
    let Some(first) = parts.first() else { return Err(overflow()) };
    let (width, empty) = (first.values.len(), first.keys.clone());
    let mut groups = interner(schema_of(&empty))?;
    let (mut values, mut number) = (vec![Vec::<i64>::new(); width], 0);
    for part in &parts {
        let ids = numbers(&mut groups, &part.keys, part.groups)?;
        number = number.max(ids.iter().max().map_or(0, |most| most + 1));
        for (all, some) in values.iter_mut().zip(&part.values) {
            all.resize(number, 0);
            for (&id, &value) in ids.iter().zip(some) {
                all[id] = all[id].checked_add(value).ok_or_else(overflow)?;
            }
        }
    }
    let keys = match &mut groups {
        Some(groups) if number > 0 => groups.emit(EmitTo::All)?,
        _ => empty.iter().map(|key| key.slice(0, 0)).collect(),
    };
    Ok(Sums { keys, groups: number, values })
}

/// The number of different inner values in each group: one row a group.
pub(crate) fn count_values(sums: &Sums) -> Result<Sums, QueryError> {
    let counted = || -> Outcome<Sums> {
        let keys = &sums.keys[..sums.keys.len() - 1];
        let mut groups = interner(schema_of(keys))?;
        let ids = numbers(&mut groups, keys, sums.groups)?;
        let number = ids.iter().max().map_or(0, |most| most + 1);
        let mut counts = vec![0_i64; number];
        let inner = &sums.keys[keys.len()];
        for (row, &id) in ids.iter().enumerate() {
            counts[id] += i64::from(inner.is_valid(row)); // a missing value is no value
        }
        let first: UInt32Array = first_rows(&ids, number);
        let keys = keys.iter().map(|key| take(key, &first, None)).collect::<Result<Vec<_>, _>>()?;
        Ok(Sums { keys, groups: number, values: vec![counts] })
    };
    counted().map_err(|error| crate::engine::running(&error))
}

/// Where each group is first met.
fn first_rows(ids: &[usize], number: usize) -> UInt32Array {
    let mut first = vec![u32::MAX; number];
    for (row, &id) in ids.iter().enumerate().rev() {
        first[id] = row as u32;
    }
    UInt32Array::from(first)
}
