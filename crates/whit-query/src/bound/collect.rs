//! Rows gathered user by user, cut, and added up; or added up as they come, where each stands for itself.
//!
//! Users, elements, groups and inner values become small whole numbers as rows arrive. All rows of a user are then brought
//! together by counting, which is linear, and what is done within a user stays in the processor's caches. The table
//! of (unit, group) pairs that a query of two levels would build is never built.

use super::number::Numbering;
use super::{Inner, Outcome, Rules, Sums, overflow};
use datafusion::arrow::array::{Array, ArrayRef, AsArray, RecordBatch, UInt32Array};
use datafusion::arrow::compute::take;
use datafusion::arrow::datatypes::{DataType, Int64Type, Schema};
use datafusion::common::{DataFusionError, HashMap};

/// Rows of one user with the same element, group and inner value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Leaf {
    element: u32,
    group: u32,
    inner: u32,
    /// Where they stand among the user's rows.
    start: u32,
    end: u32,
}

/// Adds up what units contribute.
pub(crate) struct Collector {
    rules: Rules,
    users: Numbering,
    elements: Numbering,
    groups: Numbering,
    inners: Numbering,
    /// Row by row, the numbers of its user, element, group and inner value, and what it adds.
    user: Vec<u32>,
    element: Vec<u32>,
    group: Vec<u32>,
    inner: Vec<u32>,
    added: Vec<Vec<i32>>,
    /// Group by group: the sums, how many users (or rows), and which user was counted last.
    sums: Vec<Vec<i64>>,
    counted: Vec<i64>,
    last: Vec<u64>,
    /// How many users, or rows, were added up.
    settled: u64,
    /// What inner values weigh in their groups.
    weights: HashMap<(u32, u32), i64>,
}

/// What is needed for one user at a time.
#[derive(Default)]
struct Scratch {
    rows: Vec<u128>,
    leaves: Vec<Leaf>,
    crowd: Vec<u64>,
}

/// Of each parent's children, those whose priority is below that of the one after the `most`-th; all where there are no more. Leaves of one parent,
/// and of one child within it, stand together.
fn thin<P: PartialEq>(
    leaves: &mut Vec<Leaf>,
    parent: impl Fn(&Leaf) -> P,
    child: impl Fn(&Leaf) -> u32,
    priorities: &[u64],
    most: u64,
    crowd: &mut Vec<u64>,
) {
    if leaves.len() as u64 <= most {
        return;
    }
    let (mut read, mut write) = (0, 0);
    while read < leaves.len() {
        let family = parent(&leaves[read]);
        let end = read + leaves[read..].iter().take_while(|leaf| parent(leaf) == family).count();
        crowd.clear();
        let mut before = None;
        for leaf in &leaves[read..end] {
            if before != Some(child(leaf)) {
                before = Some(child(leaf));
                crowd.push(priorities[child(leaf) as usize]);
            }
        }
        let limit = (crowd.len() as u64 > most).then(|| *crowd.select_nth_unstable(most as usize).1);
        for i in read..end {
            if limit.is_none_or(|limit| priorities[child(&leaves[i]) as usize] < limit) {
                leaves[write] = leaves[i];
                write += 1;
            }
        }
        read = end;
    }
    leaves.truncate(write);
}

impl Collector {
    pub(crate) fn new(rules: Rules, schema: &Schema) -> Outcome<Self> {
        let (layout, seed) = (rules.layout, rules.seed);
        let columns = rules.addends.iter().filter_map(|addend| addend.column).max().map_or(0, |last| last + 1);
        let distinct = matches!(rules.inner, Inner::Distinct { .. });
        Ok(Self {
            users: Numbering::new(schema, 0..usize::from(layout.user), 0, false)?,
            elements: Numbering::new(schema, layout.elements(), seed ^ 1, rules.elements_per_user.is_some())?,
            groups: Numbering::new(schema, layout.groups(), seed ^ 2, rules.groups_per_unit.is_some())?,
            inners: Numbering::new(schema, layout.inners(), seed ^ 3, distinct)?,
            user: Vec::new(),
            element: Vec::new(),
            group: Vec::new(),
            inner: Vec::new(),
            added: vec![Vec::new(); columns],
            sums: vec![Vec::new(); rules.addends.len()],
            counted: Vec::new(),
            last: Vec::new(),
            settled: 0,
            weights: HashMap::new(),
            rules,
        })
    }

    /// Takes some rows, of whichever users.
    pub(crate) fn push(&mut self, batch: &RecordBatch) -> Outcome<()> {
        let (layout, rows, columns) = (self.rules.layout, batch.num_rows(), batch.columns());
        if !layout.user {
            return self.add_rows(columns, rows);
        }
        self.user.extend_from_slice(self.users.number(&columns[..1], rows)?);
        if layout.element {
            self.element.extend_from_slice(self.elements.number(&columns[layout.elements()], rows)?);
        }
        self.group.extend_from_slice(self.groups.number(&columns[layout.groups()], rows)?);
        if layout.inner {
            self.inner.extend_from_slice(self.inners.number(&columns[layout.inners()], rows)?);
        }
        for (added, column) in self.added.iter_mut().zip(&columns[layout.inners().end..]) {
            append(added, column)?;
        }
        if self.user.len() > u32::MAX as usize {
            return Err(DataFusionError::ResourcesExhausted("more than 2^32 rows at once".to_owned()));
        }
        Ok(())
    }

    /// Adds rows of which each stands for itself.
    fn add_rows(&mut self, columns: &[ArrayRef], rows: usize) -> Outcome<()> {
        let layout = self.rules.layout;
        self.groups.number(&columns[layout.groups()], rows)?;
        let (ids, known) = (&self.groups.ids, self.groups.known);
        self.counted.resize(known, 0);
        self.settled += rows as u64;
        if self.rules.inner != Inner::None {
            let inners = self.inners.number(&columns[layout.inners()], rows)?;
            for (&group, &inner) in ids.iter().zip(inners) {
                *self.weights.entry((group, inner)).or_insert(0) += 1;
            }
            return Ok(());
        }
        // The first column is added in the pass that counts.
        let mut counted = Some(&mut self.counted);
        for (addend, sums) in self.rules.addends.iter().zip(&mut self.sums) {
            sums.resize(known, 0);
            // So many rows of at most so much each: every value is one, or was clamped when it was put on its lattice.
            let most = addend.low.unsigned_abs().max(addend.high.unsigned_abs()).max(1);
            if i128::from(most) * i128::from(self.settled) >= 1 << 62 {
                return Err(overflow());
            }
            let Some(column) = addend.column.map(|column| &columns[layout.inners().end + column]) else {
                continue; // the number of rows, which is counted already
            };
            match (column.as_primitive_opt::<Int64Type>(), column.nulls()) {
                (Some(column), None) if counted.is_some() => {
                    let Some(counted) = counted.take() else { continue };
                    let (counted, sums) = (&mut counted[..known], &mut sums[..known]);
                    for (&id, &value) in ids.iter().zip(column.values()) {
                        counted[id as usize] += 1;
                        sums[id as usize] += value;
                    }
                }
                (Some(column), None) => {
                    ids.iter().zip(column.values()).for_each(|(&id, &value)| sums[id as usize] += value);
                }
                (Some(column), Some(_)) => {
                    ids.iter().zip(column).for_each(|(&id, value)| sums[id as usize] += value.unwrap_or(0));
                }
                (None, None) => ids.iter().for_each(|&id| sums[id as usize] += 1),
                (None, Some(nulls)) => {
                    ids.iter().zip(nulls).for_each(|(&id, there)| sums[id as usize] += i64::from(there));
                }
            }
        }
        if let Some(counted) = counted {
            for &id in ids {
                counted[id as usize] += 1;
            }
        }
        Ok(())
    }

    /// How many bytes of memory it holds, and will need to settle.
    pub(crate) fn size(&self) -> usize {
        let numbers = self.user.capacity() + self.element.capacity() + self.group.capacity() + self.inner.capacity();
        let added: usize = self.added.iter().map(Vec::capacity).sum();
        let sums = (self.sums.len() + 2) * self.groups.known;
        let tables = self.users.size() + self.elements.size() + self.groups.size() + self.inners.size();
        4 * (numbers + added) + 8 * self.user.len() + 8 * sums + tables + 24 * self.weights.capacity()
    }

    /// Adds up what was pushed, user by user.
    fn settle(&mut self) -> Outcome<()> {
        if !self.rules.layout.user {
            return Ok(());
        }
        let groups = self.groups.known.max(1);
        self.sums.iter_mut().for_each(|sums| sums.resize(groups, 0));
        self.counted.resize(groups, 0);
        self.last.resize(groups, 0);
        // Counting sort by user: where each user's rows end, then each row into its place.
        let mut ends = vec![0_u32; self.users.known + 1];
        for &user in &self.user {
            ends[user as usize + 1] += 1;
        }
        for i in 1..ends.len() {
            ends[i] += ends[i - 1];
        }
        let mut placed = vec![0_u64; self.user.len()];
        let mut next = ends.clone();
        for (row, (&user, &group)) in self.user.iter().zip(&self.group).enumerate() {
            let place = &mut next[user as usize];
            placed[*place as usize] = u64::from(group) << 32 | row as u64;
            *place += 1;
        }
        drop(next);
        let mut scratch = Scratch::default();
        for bounds in ends.windows(2) {
            self.settled += 1;
            self.settle_user(&mut placed[bounds[0] as usize..bounds[1] as usize], &mut scratch)?;
        }
        Ok(())
    }

    /// All rows of one user, as numbers of groups above numbers of rows.
    fn settle_user(&mut self, placed: &mut [u64], scratch: &mut Scratch) -> Outcome<()> {
        let Scratch { rows, leaves, crowd } = scratch;
        leaves.clear();
        let layout = self.rules.layout;
        if layout.element || layout.inner {
            rows.clear();
            rows.extend(placed.iter().map(|&place| {
                let row = (place & u64::from(u32::MAX)) as usize;
                let of = |numbers: &[u32]| u128::from(numbers.get(row).copied().unwrap_or(0));
                of(&self.element) << 96 | u128::from(place >> 32) << 64 | of(&self.inner) << 32 | row as u128
            }));
            rows.sort_unstable();
            for (i, (&row, place)) in rows.iter().zip(placed.iter_mut()).enumerate() {
                *place = row as u64 & u64::from(u32::MAX);
                let (element, group, inner) = ((row >> 96) as u32, (row >> 64) as u32, (row >> 32) as u32);
                match leaves.last_mut() {
                    Some(leaf) if (leaf.element, leaf.group, leaf.inner) == (element, group, inner) => leaf.end += 1,
                    _ => leaves.push(Leaf { element, group, inner, start: i as u32, end: i as u32 + 1 }),
                }
            }
        } else {
            placed.sort_unstable();
            for (i, place) in placed.iter_mut().enumerate() {
                let group = (*place >> 32) as u32;
                *place &= u64::from(u32::MAX);
                match leaves.last_mut() {
                    Some(leaf) if leaf.group == group => leaf.end += 1,
                    _ => leaves.push(Leaf { element: 0, group, inner: 0, start: i as u32, end: i as u32 + 1 }),
                }
            }
        }
        self.cut(leaves, crowd);
        self.add(leaves, placed)
    }

    /// Leaves what a user may contribute.
    fn cut(&self, leaves: &mut Vec<Leaf>, crowd: &mut Vec<u64>) {
        let Rules { elements_per_user, groups_per_unit, inner, .. } = &self.rules;
        if let (Some(most), Some(priorities)) = (*elements_per_user, &self.elements.priorities)
            && self.rules.layout.element
        {
            thin(leaves, |_| (), |leaf| leaf.element, priorities, most, crowd);
        }
        if let (Some(most), Some(priorities)) = (*groups_per_unit, &self.groups.priorities)
            && self.rules.layout.keys > 0
        {
            thin(leaves, |leaf| leaf.element, |leaf| leaf.group, priorities, most, crowd);
        }
        if let (Inner::Distinct { most }, Some(priorities)) = (*inner, &self.inners.priorities) {
            thin(leaves, |leaf| (leaf.element, leaf.group), |leaf| leaf.inner, priorities, most, crowd);
        }
    }

    /// Adds what is left of a user, unit by unit and group by group.
    fn add(&mut self, leaves: &[Leaf], rows: &[u64]) -> Outcome<()> {
        for family in leaves.chunk_by(|a, b| (a.element, a.group) == (b.element, b.group)) {
            let group = family[0].group as usize;
            if self.last[group] != self.settled {
                self.last[group] = self.settled;
                self.counted[group] += 1;
            }
            match self.rules.inner {
                Inner::None => {
                    let leaf = family[0];
                    for (addend, sums) in self.rules.addends.iter().zip(&mut self.sums) {
                        let total = match addend.column {
                            None => i64::from(leaf.end - leaf.start),
                            Some(column) => {
                                let added = &self.added[column];
                                let of = |&row: &u64| i64::from(added[row as usize]);
                                rows[leaf.start as usize..leaf.end as usize].iter().map(of).sum()
                            }
                        };
                        // A missing value adds nothing, also where the least that a value can be is above zero.
                        let total = total.clamp(addend.low.min(0), addend.high.max(0));
                        sums[group] = sums[group].checked_add(total).ok_or_else(overflow)?;
                    }
                }
                Inner::Distinct { .. } => {
                    for leaf in family {
                        self.weights.insert((leaf.group, leaf.inner), 1);
                    }
                }
                Inner::Weights { each, rows } => {
                    let count = |leaf: &Leaf| i128::from(leaf.end - leaf.start);
                    let (total, rows): (i128, _) = (family.iter().map(count).sum(), i128::from(rows));
                    for leaf in family {
                        // Rounded down, so that a unit's weights never add up to more than rows · each.
                        let weight = (count(leaf) * i128::from(each) * rows / total.max(rows).max(1)) as i64;
                        let sum = self.weights.entry((leaf.group, leaf.inner)).or_insert(0);
                        *sum = sum.checked_add(weight).ok_or_else(overflow)?;
                    }
                }
            }
        }
        Ok(())
    }

    /// The sums over all that was pushed. A group in which nobody was counted is left out.
    pub(crate) fn finish(mut self) -> Outcome<Sums> {
        self.settle()?;
        let some = |values: &[ArrayRef], which: &UInt32Array| {
            values.iter().map(|values| take(values, which, None)).collect::<Result<Vec<_>, _>>()
        };
        let mut keys = self.groups.values()?;
        if self.rules.inner == Inner::None {
            if !self.rules.layout.user {
                // A row that stands for itself adds one to the number of rows.
                for (addend, sums) in self.rules.addends.iter().zip(&mut self.sums) {
                    if addend.column.is_none() {
                        sums.clone_from(&self.counted);
                    }
                }
            }
            let met: Vec<u32> = (0..).zip(&self.counted).filter(|&(_, &users)| users > 0).map(|(g, _)| g).collect();
            let only = |values: &[i64]| met.iter().map(|&group| values[group as usize]).collect::<Vec<_>>();
            let mut values: Vec<Vec<i64>> = self.sums.iter().map(|sums| only(sums)).collect();
            values.push(only(&self.counted));
            let groups = met.len();
            return Ok(Sums { keys: some(&keys, &met.into())?, groups, values });
        }
        let (pairs, weights): (Vec<(u32, u32)>, Vec<i64>) = self.weights.into_iter().unzip();
        let (groups, inners): (Vec<u32>, Vec<u32>) = pairs.into_iter().unzip();
        keys = some(&keys, &groups.into())?;
        keys.extend(some(&self.inners.values()?, &inners.into())?);
        Ok(Sums { keys, groups: weights.len(), values: vec![weights] })
    }
}

/// What rows add: a whole number, or one where something is there.
fn append(added: &mut Vec<i32>, column: &ArrayRef) -> Outcome<()> {
    if column.data_type() == &DataType::Boolean {
        match column.nulls() {
            None => added.resize(added.len() + column.len(), 1),
            Some(nulls) => added.extend(nulls.iter().map(i32::from)),
        }
        return Ok(());
    }
    let column = column.as_primitive::<Int64Type>();
    // At most 2^31 steps are planned for, so all of them fit.
    let narrow = |value: i64| i32::try_from(value).map_err(|_| overflow());
    if column.null_count() == 0 {
        for &value in column.values() {
            added.push(narrow(value)?);
        }
    } else {
        for value in column {
            added.push(narrow(value.unwrap_or(0))?);
        }
    }
    Ok(())
}

#[cfg(test)]
#[path = "collect_tests.rs"]
mod tests;
