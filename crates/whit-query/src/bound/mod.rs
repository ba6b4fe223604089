//! What one unit contributes, and no more: the only place where contributions are cut.
//!
//! The engine hands over, for each unit and group, exact integers: how many rows, which sums. Here a user keeps at
//! most so many elements and a unit at most so many groups, each sum is clamped, and what is left is added up over units.
//!
//! # Why it is safe to cut here
//! What a unit keeps is a function of its own rows alone: the children (groups of a unit, elements of a user, values
//! of a unit in a group) with the smallest hashes, and of those whose hash stands at the limit, none. So a unit that does not
//! change keeps what it kept, whatever others do, and a unit that changes moves the sums by what it keeps before and after. Where
//! a user keeps only so many *elements*, one that is emptied may let in another: planning never takes the group of
//! an element as its own then.

pub(crate) mod quantise;

use crate::error::QueryError;
use datafusion::arrow::array::{Array, ArrayRef, AsArray, BooleanArray, RecordBatch, UInt32Array};
use datafusion::arrow::compute::{filter_record_batch, take};
use datafusion::arrow::datatypes::{Field, Int64Type, Schema, SchemaRef};
use datafusion::common::hash_utils::{QualityRandomState, create_hashes};
use datafusion::logical_expr::EmitTo;
use datafusion::physical_plan::aggregates::group_values::{GroupValues, new_group_values};
use datafusion::physical_plan::aggregates::order::GroupOrdering;
use std::sync::Arc;

/// What the columns of a batch are, from left to right: user, element, keys, inner value, partial sums.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Layout {
    /// Whether an element stands after the user.
    pub(crate) element: bool,
    /// How many keys.
    pub(crate) keys: usize,
    /// Whether a value stands after the keys: a leaf, or one of different values.
    pub(crate) inner: bool,
    /// How many partial sums.
    pub(crate) partials: usize,
}

impl Layout {
    fn units(self) -> usize {
        1 + usize::from(self.element)
    }

    fn groups(self) -> std::ops::Range<usize> {
        self.units()..self.units() + self.keys
    }

    fn inner_groups(self) -> std::ops::Range<usize> {
        self.units()..self.units() + self.keys + usize::from(self.inner)
    }

    fn first_partial(self) -> usize {
        self.inner_groups().end
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

/// How contributions are cut.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Rules {
    pub(crate) layout: Layout,
    pub(crate) elements_per_user: Option<u64>,
    pub(crate) groups_per_unit: Option<u64>,
    pub(crate) inner: Inner,
    /// Between which integers each partial sum of one unit in one group is clamped.
    pub(crate) clamps: Vec<(i64, i64)>,
    /// Whether users are counted besides.
    pub(crate) users: bool,
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
    /// One vector for each partial sum, and one for the number of users where they are counted.
    pub(crate) values: Vec<Vec<i64>>,
}

/// Adds up what units contribute.
pub(crate) struct Collector {
    rules: Rules,
    schema: SchemaRef,
    groups: Option<Box<dyn GroupValues>>,
    number: usize,
    values: Vec<Vec<i64>>,
}

type Outcome<T> = datafusion::common::Result<T>;

fn overflow() -> datafusion::common::DataFusionError {
    datafusion::common::DataFusionError::Execution("a sum does not fit into 64 bits".to_owned())
}

fn part_schema(schema: &Schema, columns: std::ops::Range<usize>) -> SchemaRef {
    Arc::new(Schema::new(schema.fields()[columns].to_vec()))
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

fn hashes(columns: &[ArrayRef], rows: usize, seed: u64) -> Outcome<Vec<u64>> {
    let mut hashes = vec![0; rows];
    create_hashes(columns, &QualityRandomState::with_seed(seed), &mut hashes)?;
    Ok(hashes)
}

/// Of each parent's children, those whose priority is below that of the one after the `most`-th; all where there are no more.
fn keep(parents: &[u32], priorities: &[u64], families: usize, most: u64) -> Vec<bool> {
    let mut sizes = vec![0_u64; families];
    for &parent in parents {
        sizes[parent as usize] += 1;
    }
    if sizes.iter().all(|&size| size <= most) {
        return vec![true; parents.len()];
    }
    // Only large families are looked at.
    let mut starts = vec![usize::MAX; families];
    let mut total = 0;
    for (family, &size) in sizes.iter().enumerate().filter(|&(_, &size)| size > most) {
        starts[family] = total;
        total += size as usize;
    }
    let (mut crowd, mut filled) = (vec![0_u64; total], vec![0_usize; families]);
    for (&parent, &priority) in parents.iter().zip(priorities) {
        let family = parent as usize;
        if starts[family] != usize::MAX {
            crowd[starts[family] + filled[family]] = priority;
            filled[family] += 1;
        }
    }
    let mut limits = vec![None; families];
    for (family, &start) in starts.iter().enumerate().filter(|&(_, &start)| start != usize::MAX) {
        let members = &mut crowd[start..start + sizes[family] as usize];
        limits[family] = Some(*members.select_nth_unstable(most as usize).1);
    }
    parents
        .iter()
        .zip(priorities)
        .map(|(&parent, &priority)| limits[parent as usize].is_none_or(|limit| priority < limit))
        .collect()
}

impl Collector {
    pub(crate) fn new(rules: Rules, schema: SchemaRef) -> Outcome<Self> {
        let groups = interner(part_schema(&schema, rules.layout.inner_groups()))?;
        let width = rules.layout.partials + usize::from(rules.users);
        Ok(Self { rules, schema, groups, number: 0, values: vec![Vec::new(); width] })
    }

    /// Whether rows can be added as they come, because nothing is cut but sums.
    pub(crate) fn streams(&self) -> bool {
        let Rules { elements_per_user, groups_per_unit, inner, users, layout, .. } = &self.rules;
        let nothing_cut = elements_per_user.is_none() && groups_per_unit.is_none() && *inner == Inner::None;
        nothing_cut && !(*users && layout.element)
    }

    /// Takes all rows of some users: no other call may bring more rows of any of them, unless [`streams`](Self::streams).
    pub(crate) fn take(&mut self, batches: Vec<RecordBatch>) -> Outcome<()> {
        if self.streams() {
            return batches.iter().try_for_each(|batch| self.add(batch, None));
        }
        let batches = self.keep_elements(batches)?;
        let batches = self.keep_groups(batches)?;
        let batches = self.keep_values(batches)?;
        let mut weights = self.weights(&batches)?;
        let mut seen = if self.rules.users && self.rules.layout.element { Some(self.pairs()?) } else { None };
        for batch in &batches {
            let weighted = weights.as_mut().map(|weights| weights.remove(0));
            let fresh = seen.as_mut().map(|seen| first_seen(seen, batch, self.rules.layout)).transpose()?;
            self.add_with(batch, weighted.as_deref(), fresh.as_deref())?;
        }
        Ok(())
    }

    /// Users and keys, to count each pair once.
    fn pairs(&self) -> Outcome<(Option<Box<dyn GroupValues>>, usize)> {
        let layout = self.rules.layout;
        let fields: Vec<_> =
            [0].into_iter().chain(layout.groups()).map(|i| Arc::clone(&self.schema.fields()[i])).collect();
        Ok((interner(Arc::new(Schema::new(fields)))?, 0))
    }

    /// Numbers units, and finds for each the row where it is first met.
    fn families(&self, batches: &[RecordBatch], columns: std::ops::Range<usize>) -> Outcome<(Vec<Vec<usize>>, usize)> {
        let mut groups = interner(part_schema(&self.schema, columns.clone()))?;
        let mut ids = Vec::with_capacity(batches.len());
        let mut number = 0;
        for batch in batches {
            let found = numbers(&mut groups, &batch.columns()[columns.clone()], batch.num_rows())?;
            number = number.max(found.iter().max().map_or(0, |most| most + 1));
            ids.push(found);
        }
        Ok((ids, number))
    }

    fn keep_elements(&self, batches: Vec<RecordBatch>) -> Outcome<Vec<RecordBatch>> {
        let Some(most) = self.rules.elements_per_user.filter(|_| self.rules.layout.element) else { return Ok(batches) };
        let (users, families) = self.families(&batches, 0..1)?;
        let (units, number) = self.families(&batches, 0..2)?;
        let (mut parents, mut priorities) = (vec![u32::MAX; number], vec![0; number]);
        for ((batch, users), units) in batches.iter().zip(&users).zip(&units) {
            let hashes = hashes(&batch.columns()[1..2], batch.num_rows(), self.rules.seed ^ 1)?;
            for ((&user, &unit), hash) in users.iter().zip(units).zip(hashes) {
                (parents[unit], priorities[unit]) = (user as u32, hash);
            }
        }
        let kept = keep(&parents, &priorities, families, most);
        sift(batches, &units, &kept)
    }

    fn keep_groups(&self, batches: Vec<RecordBatch>) -> Outcome<Vec<RecordBatch>> {
        let Some(most) = self.rules.groups_per_unit else { return Ok(batches) };
        let layout = self.rules.layout;
        let (units, families) = self.families(&batches, 0..layout.units())?;
        if self.rules.inner == Inner::None {
            // One row is one group of one unit: the engine grouped by them.
            let parents: Vec<u32> = units.iter().flatten().map(|&unit| unit as u32).collect();
            let mut priorities = Vec::with_capacity(parents.len());
            for batch in &batches {
                priorities.extend(hashes(&batch.columns()[layout.groups()], batch.num_rows(), self.rules.seed ^ 2)?);
            }
            let kept = keep(&parents, &priorities, families, most);
            let mut rows = kept.into_iter();
            return batches
                .into_iter()
                .map(|batch| {
                    let mask: BooleanArray = rows.by_ref().take(batch.num_rows()).map(Some).collect();
                    if mask.true_count() == batch.num_rows() {
                        Ok(batch)
                    } else {
                        Ok(filter_record_batch(&batch, &mask)?)
                    }
                })
                .collect();
        }
        let (groups, number) = self.families(&batches, 0..layout.groups().end)?;
        let (mut parents, mut priorities) = (vec![u32::MAX; number], vec![0; number]);
        for ((batch, units), groups) in batches.iter().zip(&units).zip(&groups) {
            let hashes = hashes(&batch.columns()[layout.groups()], batch.num_rows(), self.rules.seed ^ 2)?;
            for ((&unit, &group), hash) in units.iter().zip(groups).zip(hashes) {
                (parents[group], priorities[group]) = (unit as u32, hash);
            }
        }
        let kept = keep(&parents, &priorities, families, most);
        sift(batches, &groups, &kept)
    }

    fn keep_values(&self, batches: Vec<RecordBatch>) -> Outcome<Vec<RecordBatch>> {
        let Inner::Distinct { most } = self.rules.inner else { return Ok(batches) };
        let layout = self.rules.layout;
        let (groups, families) = self.families(&batches, 0..layout.groups().end)?;
        let parents: Vec<u32> = groups.iter().flatten().map(|&group| group as u32).collect();
        let mut priorities = Vec::with_capacity(parents.len());
        for batch in &batches {
            let value = layout.groups().end;
            priorities.extend(hashes(&batch.columns()[value..=value], batch.num_rows(), self.rules.seed ^ 3)?);
        }
        let mut kept = keep(&parents, &priorities, families, most).into_iter();
        batches
            .into_iter()
            .map(|batch| {
                let mask: BooleanArray = kept.by_ref().take(batch.num_rows()).map(Some).collect();
                Ok(filter_record_batch(&batch, &mask)?)
            })
            .collect()
    }

    /// What each row weighs, where the rows of a unit in a group share a weight.
    fn weights(&self, batches: &[RecordBatch]) -> Outcome<Option<Vec<Vec<i64>>>> {
        let Inner::Weights { each, rows } = self.rules.inner else { return Ok(None) };
        let layout = self.rules.layout;
        let (groups, number) = self.families(batches, 0..layout.groups().end)?;
        let mut totals = vec![0_i64; number];
        for (batch, groups) in batches.iter().zip(&groups) {
            let counts = batch.column(layout.first_partial()).as_primitive::<Int64Type>();
            for (&group, &count) in groups.iter().zip(counts.values()) {
                totals[group] = totals[group].checked_add(count).ok_or_else(overflow)?;
            }
        }
        let rows = i128::from(rows);
        let weigh = |batch: &RecordBatch, groups: &Vec<usize>| -> Vec<i64> {
            let counts = batch.column(layout.first_partial()).as_primitive::<Int64Type>();
            let share = |(&group, &count): (&usize, &i64)| {
                // Rounded down, so that a unit's weights never add up to more than rows · each.
                let (count, total) = (i128::from(count), i128::from(totals[group]));
                let weight = count * i128::from(each) * rows / total.max(rows).max(1);
                weight as i64
            };
            groups.iter().zip(counts.values()).map(share).collect()
        };
        Ok(Some(batches.iter().zip(&groups).map(|(batch, groups)| weigh(batch, groups)).collect()))
    }

    fn add(&mut self, batch: &RecordBatch, fresh: Option<&[bool]>) -> Outcome<()> {
        self.add_with(batch, None, fresh)
    }

    /// Adds a batch's rows to the sums of their groups, each partial sum clamped.
    fn add_with(&mut self, batch: &RecordBatch, weights: Option<&[i64]>, fresh: Option<&[bool]>) -> Outcome<()> {
        let layout = self.rules.layout;
        let ids = numbers(&mut self.groups, &batch.columns()[layout.inner_groups()], batch.num_rows())?;
        self.number = self.number.max(ids.iter().max().map_or(0, |most| most + 1));
        for values in &mut self.values {
            values.resize(self.number, 0);
        }
        for (i, &(low, high)) in self.rules.clamps.iter().enumerate() {
            let values = &mut self.values[i];
            if let Some(weights) = weights {
                for (&id, &weight) in ids.iter().zip(weights) {
                    values[id] = values[id].checked_add(weight).ok_or_else(overflow)?;
                }
                continue;
            }
            let partial = batch.column(layout.first_partial() + i).as_primitive::<Int64Type>();
            if partial.null_count() == 0 {
                for (&id, &value) in ids.iter().zip(partial.values()) {
                    values[id] = values[id].checked_add(value.clamp(low, high)).ok_or_else(overflow)?;
                }
            } else {
                // The sum of no values at all is missing, and adds nothing.
                for (&id, value) in ids.iter().zip(partial) {
                    let value = value.map_or(0, |value| value.clamp(low, high));
                    values[id] = values[id].checked_add(value).ok_or_else(overflow)?;
                }
            }
        }
        if self.rules.users {
            let users = &mut self.values[layout.partials];
            match fresh {
                // Each row is one user in one group.
                None => ids.iter().for_each(|&id| users[id] += 1),
                Some(fresh) => ids.iter().zip(fresh).for_each(|(&id, &fresh)| users[id] += i64::from(fresh)),
            }
        }
        Ok(())
    }

    /// The sums.
    pub(crate) fn finish(mut self) -> Outcome<Sums> {
        let keys = match &mut self.groups {
            Some(groups) if self.number > 0 => groups.emit(EmitTo::All)?,
            Some(_) => {
                let fields = part_schema(&self.schema, self.rules.layout.inner_groups());
                fields
                    .fields()
                    .iter()
                    .map(|field| datafusion::arrow::array::new_empty_array(field.data_type()))
                    .collect()
            }
            None => Vec::new(),
        };
        Ok(Sums { keys, groups: self.number, values: self.values })
    }
}

/// Which rows show a pair of user and keys for the first time.
fn first_seen(
    seen: &mut (Option<Box<dyn GroupValues>>, usize),
    batch: &RecordBatch,
    layout: Layout,
) -> Outcome<Vec<bool>> {
    let columns: Vec<ArrayRef> = [0].into_iter().chain(layout.groups()).map(|i| Arc::clone(batch.column(i))).collect();
    let ids = numbers(&mut seen.0, &columns, batch.num_rows())?;
    Ok(ids
        .into_iter()
        .map(|id| {
            let fresh = id >= seen.1;
            seen.1 = seen.1.max(id + 1);
            fresh
        })
        .collect())
}

/// The rows whose number is kept.
fn sift(batches: Vec<RecordBatch>, ids: &[Vec<usize>], kept: &[bool]) -> Outcome<Vec<RecordBatch>> {
    if kept.iter().all(|&kept| kept) {
        return Ok(batches);
    }
    let sift = |(batch, ids): (RecordBatch, &Vec<usize>)| {
        let mask: BooleanArray = ids.iter().map(|&id| Some(kept[id])).collect();
        Ok(filter_record_batch(&batch, &mask)?)
    };
    batches.into_iter().zip(ids).map(sift).collect()
}

/// One sum of several, group by group.
pub(crate) fn merge(parts: Vec<Sums>) -> Result<Sums, QueryError> {
    merged(parts).map_err(|error| crate::engine::running(&error))
}

fn merged(mut parts: Vec<Sums>) -> Outcome<Sums> {
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

#[cfg(test)]
mod tests;
