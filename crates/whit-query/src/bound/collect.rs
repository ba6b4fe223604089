//! Rows gathered user by user, cut, and added up; or added up as they come, where each stands for itself.
//!
//! Users, elements, groups and inner values become small whole numbers as rows arrive. All rows of a user are then brought
//! together by counting, which is linear, and what is done within a user stays in the processor's caches. The table
//! of (unit, group) pairs that a query of two levels would build is never built.

mod chosen;

use super::choice::{mix, share_of};
use super::hash::Role;
use super::number::Numbering;
use super::rows::KeptRows;
use super::{BoundedSums, Inner, Outcome, Rules, UnitLimit, WEIGHT};
use datafusion::arrow::array::{Array, ArrayRef, AsArray, RecordBatch, UInt32Array};
use datafusion::arrow::compute::take;
use datafusion::arrow::datatypes::{DataType, Int64Type, Schema};
use datafusion::common::{DataFusionError, HashMap};
use std::collections::BTreeMap;

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
    /// Where each row stands for itself and only so many of one user may: which are kept.
    choice: Option<KeptRows>,
    users: Numbering,
    elements: Numbering,
    groups: Numbering,
    inners: Numbering,
    /// Row by row, the numbers of its user, element, group and inner value, and what it adds. Rows that are chosen among for themselves have no user here, and no group
    /// where they do not count.
    user: Vec<u32>,
    element: Vec<u32>,
    group: Vec<u32>,
    inner: Vec<u32>,
    added: Vec<Vec<i32>>,
    /// Group by group: the sums, how many users (or rows), and which user was counted last.
    sums: Vec<Vec<i64>>,
    counted: Vec<i64>,
    last: Vec<u64>,
    /// By sum and group, what did not fit into 64 bits any more.
    beyond: BTreeMap<(usize, usize), i128>,
    /// How many users, or rows, were added up.
    settled: u64,
    /// What inner values weigh in their groups.
    weights: HashMap<(u32, u32), i64>,
    /// How many rows there were before caps, and how many count after them.
    kept: [i128; 2],
}

/// What is needed for one user at a time.
#[derive(Default)]
struct Scratch {
    rows: Vec<u128>,
    leaves: Vec<Leaf>,
    crowd: Vec<u64>,
    weights: Vec<u64>,
    order: Vec<(u64, usize)>,
}

/// Of each parent's children, those whose priority is below that of the one after the `most`-th; all where there are no more. Leaves of one parent,
/// and of one child within it, stand together.
fn thin<P: PartialEq, C: PartialEq>(
    leaves: &mut Vec<Leaf>,
    parent: impl Fn(&Leaf) -> P,
    child: impl Fn(&Leaf) -> C,
    priority: impl Fn(&Leaf) -> u64,
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
        let mut limit = None;
        if (end - read) as u64 > most {
            crowd.clear();
            let mut before = None;
            for leaf in &leaves[read..end] {
                let own = Some(child(leaf));
                if before != own {
                    before = own;
                    crowd.push(priority(leaf));
                }
            }
            limit = (crowd.len() as u64 > most).then(|| *crowd.select_nth_unstable(most as usize).1);
        }
        for i in read..end {
            if limit.is_none_or(|limit| priority(&leaves[i]) < limit) {
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
        let inner = rules.inner != Inner::None;
        // Whatever may have to be chosen is chosen by who it is, in which element, group and value.
        let ranked = layout.user && rules.chooses();
        Ok(Self {
            users: Numbering::new(schema, 0..usize::from(layout.user), (seed, Role::User), ranked)?,
            elements: Numbering::new(schema, layout.elements(), (seed, Role::Element), ranked && layout.element)?,
            groups: Numbering::new(schema, layout.groups(), (seed, Role::Group), ranked && layout.keys > 0)?,
            inners: Numbering::new(schema, layout.inners(), (seed, Role::Inner), ranked && inner)?,
            user: Vec::new(),
            element: Vec::new(),
            group: Vec::new(),
            inner: Vec::new(),
            added: vec![Vec::new(); columns],
            sums: vec![Vec::new(); rules.addends.len()],
            counted: Vec::new(),
            last: Vec::new(),
            beyond: BTreeMap::new(),
            settled: 0,
            weights: HashMap::new(),
            kept: [0; 2],
            choice: None,
            rules,
        })
    }

    /// Takes some rows, of whichever users.
    pub(crate) fn push(&mut self, batch: &RecordBatch) -> Outcome<()> {
        let (layout, rows, columns) = (self.rules.layout, batch.num_rows(), batch.columns());
        if self.choice.is_some() {
            return self.choose_among(columns, rows);
        }
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
            append(added, column);
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
        for (number, (addend, sums)) in self.rules.addends.iter().zip(&mut self.sums).enumerate() {
            sums.resize(known, 0);
            let Some(column) = addend.column.map(|column| &columns[layout.inners().end + column]) else {
                continue; // the number of rows, which is counted already
            };
            // So many rows of at most so much each: every value is one, or was clamped when it was put on its lattice.
            let UnitLimit { low, high } = addend.limit;
            let most = low.unsigned_abs().max(high.unsigned_abs()).max(1);
            if i128::from(most) * i128::from(self.settled) >= 1 << 62
                && let Some(column) = column.as_primitive_opt::<Int64Type>()
            {
                for (&id, value) in ids.iter().zip(column) {
                    add_up(sums, &mut self.beyond, number, id as usize, value.unwrap_or(0));
                }
                continue;
            }
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
        let choice = self.choice.as_ref().map_or(0, KeptRows::size);
        4 * (numbers + added) + 8 * self.user.len() + 8 * sums + tables + 24 * self.weights.capacity() + choice
    }

    /// Adds up what was pushed, user by user.
    fn settle(&mut self) {
        if self.choice.is_some() {
            self.settle_rows();
        }
        if !self.rules.layout.user {
            return;
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
        for (user, bounds) in ends.windows(2).enumerate() {
            self.settled += 1;
            let own = self.users.priorities.as_ref().map_or(0, |hashes| hashes[user]);
            self.settle_user(own, &mut placed[bounds[0] as usize..bounds[1] as usize], &mut scratch);
        }
    }

    /// All rows of one user, as numbers of groups above numbers of rows.
    fn settle_user(&mut self, own: u64, placed: &mut [u64], scratch: &mut Scratch) {
        let Scratch { rows, leaves, crowd, .. } = scratch;
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
        if let Some([most, _]) = self.rules.rows_kept {
            let units = leaves.chunk_by(|a, b| a.element == b.element);
            let rows =
                units.map(|unit| unit.iter().map(|leaf| u64::from(leaf.end - leaf.start)).sum::<u64>().min(most));
            // A user's elements beyond the cap are no reason to count more than as many full ones as may be kept.
            let of_user = self.rules.elements_per_user.map_or(u64::MAX, |elements| elements.saturating_mul(most));
            self.kept[0] += i128::from(rows.sum::<u64>().min(of_user));
        }
        self.cut(own, leaves, crowd);
        let mut start = 0;
        while start < scratch.leaves.len() {
            let element = scratch.leaves[start].element;
            let end = start + scratch.leaves[start..].iter().take_while(|leaf| leaf.element == element).count();
            self.weigh(own, start..end, scratch);
            self.add(own, start..end, placed, scratch);
            start = end;
        }
    }

    /// What decides about a group of a unit: the user, the element and the group together, under the seed.
    fn of_group(&self, own: u64, leaf: &Leaf) -> u64 {
        let hash = |numbers: &Numbering, id: u32| numbers.priorities.as_ref().map_or(0, |hashes| hashes[id as usize]);
        mix(mix(own, hash(&self.elements, leaf.element)), hash(&self.groups, leaf.group))
    }

    /// What decides about a value in a group of a unit.
    fn of_value(&self, own: u64, leaf: &Leaf) -> u64 {
        let hash = self.inners.priorities.as_ref().map_or(0, |hashes| hashes[leaf.inner as usize]);
        mix(self.of_group(own, leaf), hash)
    }

    /// Leaves what a user may contribute.
    fn cut(&self, own: u64, leaves: &mut Vec<Leaf>, crowd: &mut Vec<u64>) {
        let Rules { elements_per_user, groups_per_unit, inner, .. } = &self.rules;
        if let (Some(most), Some(hashes)) = (*elements_per_user, &self.elements.priorities)
            && self.rules.layout.element
        {
            let priority = |leaf: &Leaf| mix(own, hashes[leaf.element as usize]);
            thin(leaves, |_| (), |leaf| leaf.element, priority, most, crowd);
        }
        if let Some(most) = groups_per_unit.filter(|_| self.rules.layout.keys > 0) {
            let priority = |leaf: &Leaf| self.of_group(own, leaf);
            thin(leaves, |leaf| leaf.element, |leaf| leaf.group, priority, most, crowd);
        }
        if let Inner::Distinct { most } = *inner {
            let priority = |leaf: &Leaf| self.of_value(own, leaf);
            thin(leaves, |leaf| (leaf.element, leaf.group), |leaf| leaf.inner, priority, most, crowd);
            let child = |leaf: &Leaf| (leaf.group, leaf.inner);
            thin(leaves, |leaf| leaf.element, child, priority, self.rules.rows_in_all, crowd);
        }
    }

    /// How many rows each group of one unit counts for, in parts of one ([`WEIGHT`]): at most so many in one, and at most so many in all. (For trees in whole
    /// rows, since their weights are shared out later.)
    ///
    /// Above the latter each group gets its share, rounded so that the sum of all is kept (systematic sampling from a
    /// point that the unit's hash says). In whole rows that would be chance of the size of a row for each unit, which no interval knows of. The order in
    /// which that is done is that of the hashes of the groups, so that nobody else has a part in it.
    fn weigh(&self, own: u64, unit: std::ops::Range<usize>, scratch: &mut Scratch) {
        let Scratch { leaves, weights, order, .. } = scratch;
        weights.clear();
        if matches!(self.rules.inner, Inner::Distinct { .. }) {
            return;
        }
        let (most, in_all) = (self.rules.rows_per_group, self.rules.rows_in_all);
        let families = || leaves[unit.clone()].chunk_by(|a, b| a.group == b.group);
        let count = |family: &[Leaf]| family.iter().map(|leaf| u64::from(leaf.end - leaf.start)).sum::<u64>().min(most);
        weights.extend(families().map(count));
        let together: u64 = weights.iter().sum();
        if self.rules.inner != Inner::None {
            return;
        }
        for weight in &mut *weights {
            *weight = weight.saturating_mul(WEIGHT as u64); // no user has 2^53 rows
        }
        if together <= in_all {
            return;
        }
        order.clear();
        order.extend(families().map(|family| self.of_group(own, &family[0])).zip(0..));
        order.sort_unstable();
        if order.windows(2).any(|pair| pair[0].0 == pair[1].0) {
            weights.fill(0); // two groups with one hash: their order would be the engine's
            return;
        }
        let first = &leaves[unit.start];
        let of_unit = mix(own, self.elements.priorities.as_ref().map_or(0, |hashes| hashes[first.element as usize]));
        let (together, in_all) = (u128::from(together), u128::from(in_all));
        let mut point = u128::from(share_of(mix(of_unit, 1), together as u64));
        for &(_, family) in &*order {
            let next = point + u128::from(weights[family]) * in_all; // parts of rows, times rows over rows
            weights[family] = (next / together - point / together) as u64;
            point = next;
        }
    }

    /// Adds what is left of one unit, group by group.
    fn add(&mut self, own: u64, unit: std::ops::Range<usize>, rows: &[u64], scratch: &mut Scratch) {
        let Scratch { leaves, weights, order, .. } = scratch;
        let together: u128 = weights.iter().map(|&weight| u128::from(weight)).sum();
        if let Some([_, most]) = self.rules.rows_kept {
            let parts = if self.rules.inner == Inner::None { WEIGHT as u128 } else { 1 };
            self.kept[1] += (together / parts).min(u128::from(most)) as i128;
        }
        for (family, weight) in leaves[unit]
            .chunk_by(|a, b| a.group == b.group)
            .zip(weights.iter().map(Some).chain(std::iter::repeat(None)))
        {
            let group = family[0].group as usize;
            if self.last[group] != self.settled {
                self.last[group] = self.settled;
                self.counted[group] += 1;
            }
            match self.rules.inner {
                Inner::None => {
                    let leaf = family[0];
                    let count = u64::from(leaf.end - leaf.start);
                    let all = count.saturating_mul(WEIGHT as u64);
                    let weight = weight.copied().unwrap_or(all);
                    // Where rows count for less, all sums of a unit are scaled alike; what is left is rounded up or down by chance, so that it is
                    // right on average. Each row lies in a range, so the sum lies in as many of it as the weight says.
                    let scaled = (weight < all).then(|| i128::from(share_of(mix(self.of_group(own, &leaf), 2), all)));
                    let limit = Some(self.rules.rows_per_group).filter(|&rows| rows < u64::MAX);
                    let limit = limit.map(|rows| i128::from(rows) * i128::from(WEIGHT));
                    for (number, addend) in self.rules.addends.iter().enumerate() {
                        let UnitLimit { low, high } = addend.limit;
                        let mut total: i64 = match addend.column {
                            None => count as i64,
                            Some(column) => {
                                let added = &self.added[column];
                                let of = |&row: &u64| i64::from(added[row as usize]);
                                rows[leaf.start as usize..leaf.end as usize].iter().map(of).sum()
                            }
                        };
                        total = total.saturating_mul(addend.each); // rows in parts of one: never so many
                        if let Some(point) = scaled {
                            let whole = i128::from(total) * i128::from(weight) + point;
                            let rounded = whole.div_euclid(i128::from(all));
                            // Not beyond what so many rows may add, also where rounded up: else all groups together would have more than all rows.
                            let within = |end: i64| limit.map(|rows| i128::from(end) * i128::from(weight) / rows);
                            let ends = within(low).zip(within(high)); // towards zero
                            total = ends.map_or(rounded, |(least, most)| rounded.clamp(least, most)) as i64;
                        }
                        // A missing value adds nothing, also where the least that a value can be is above zero.
                        let total = total.clamp(low, high);
                        add_up(&mut self.sums[number], &mut self.beyond, number, group, total);
                    }
                }
                Inner::Distinct { .. } => {
                    for leaf in family {
                        self.weights.insert((leaf.group, leaf.inner), 1);
                    }
                }
                Inner::Weights { each } => {
                    let count = |leaf: &Leaf| u128::from(leaf.end - leaf.start);
                    let total: u128 = family.iter().map(count).sum();
                    let weight = weight.map_or(total, |&weight| u128::from(weight));
                    let in_all = u128::from(self.rules.rows_in_all).min(together);
                    // Rounded down, so that a unit's weights never add up to more than rows · each.
                    let whole = u128::from(each) * weight * in_all / together.max(1);
                    // Shared out so that nothing of that is lost, however many leaves there are: systematic sampling, as of groups.
                    order.clear();
                    order.extend(family.iter().map(|leaf| self.of_value(own, leaf)).zip(0..));
                    let exact = whole.is_multiple_of(total);
                    if !exact {
                        order.sort_unstable();
                        if order.windows(2).any(|pair| pair[0].0 == pair[1].0) {
                            continue; // two leaves with one hash: their order would be the engine's
                        }
                    }
                    let point = share_of(mix(self.of_group(own, &family[0]), 3), total as u64);
                    let mut point = if exact { 0 } else { u128::from(point) };
                    for &(_, place) in &*order {
                        let leaf = &family[place];
                        let next = point + count(leaf) * whole;
                        let share = next / total - point / total;
                        point = next;
                        let sum = self.weights.entry((leaf.group, leaf.inner)).or_insert(0);
                        *sum = sum.saturating_add(share as i64); // no more than 1,024 a row: never reached
                    }
                }
            }
        }
    }

    /// The sums over all that was pushed. A group in which nobody was counted is left out.
    pub(crate) fn finish(mut self) -> Outcome<BoundedSums> {
        self.settle();
        let (kept, limits) = (self.kept, self.rules.limits());
        let kept_limits = self.rules.rows_kept.unwrap_or_default().map(UnitLimit::up_to);
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
            // Of rows that are left out nothing shows, and what groups they were in neither.
            let all = self.rules.observed && self.rules.layout.keys > 0 && self.choice.is_none();
            let met = (0..).zip(&self.counted).filter(|&(_, &users)| all || users > 0);
            let met: Vec<u32> =
                met.map(|(group, _)| group).take(if all { self.groups.known } else { usize::MAX }).collect();
            let only = |number: usize, values: &[i64]| -> Vec<i128> {
                let of = |&group: &u32| {
                    let group = group as usize;
                    i128::from(values[group]) + self.beyond.get(&(number, group)).copied().unwrap_or(0)
                };
                met.iter().map(of).collect()
            };
            let mut values: Vec<Vec<i128>> =
                self.sums.iter().enumerate().map(|(number, sums)| only(number, sums)).collect();
            values.push(only(usize::MAX, &self.counted));
            let groups = met.len();
            let keys = some(&keys, &met.into())?;
            return Ok(BoundedSums { keys, groups, values, limits, kept, kept_limits });
        }
        let weights = self.weights.into_iter().map(|(pair, weight)| (pair, i128::from(weight)));
        let (pairs, weights): (Vec<(u32, u32)>, Vec<i128>) = weights.unzip();
        let (groups, inners): (Vec<u32>, Vec<u32>) = pairs.into_iter().unzip();
        keys = some(&keys, &groups.into())?;
        keys.extend(some(&self.inners.values()?, &inners.into())?);
        Ok(BoundedSums { keys, groups: weights.len(), values: vec![weights], limits, kept, kept_limits })
    }
}

/// Adds to a sum; what would leave 64 bits is put aside, so that no order of adding makes a difference.
fn add_up(sums: &mut [i64], beyond: &mut BTreeMap<(usize, usize), i128>, number: usize, group: usize, value: i64) {
    sums[group] = sums[group].checked_add(value).unwrap_or_else(|| {
        *beyond.entry((number, group)).or_insert(0) += i128::from(sums[group]);
        value
    });
}

/// What rows add: a whole number, or one where something is there.
fn append(added: &mut Vec<i32>, column: &ArrayRef) {
    if column.data_type() == &DataType::Boolean {
        match column.nulls() {
            None => added.resize(added.len() + column.len(), 1),
            Some(nulls) => added.extend(nulls.iter().map(i32::from)),
        }
        return;
    }
    let column = column.as_primitive::<Int64Type>();
    // At most 2^30 steps are planned for, so all of them fit.
    let narrow = |value: i64| value.clamp(i32::MIN.into(), i32::MAX.into()) as i32;
    if column.null_count() == 0 {
        added.extend(column.values().iter().map(|&value| narrow(value)));
    } else {
        added.extend(column.iter().map(|value| narrow(value.unwrap_or(0))));
    }
}

#[cfg(test)]
mod tests;
