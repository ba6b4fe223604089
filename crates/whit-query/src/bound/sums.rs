//! Sums that carry their bounds.
//!
//! Gathering units makes [`BoundedSums`] and nothing else does; put in the order of their groups they become one [`BoundedSum`] a measure, and noise is the one
//! way out of it.

use super::Outcome;
use crate::error::{QueryError, running};
use datafusion::arrow::array::{Array, ArrayRef, AsArray, UInt32Array};
use datafusion::arrow::compute::take;
use datafusion::arrow::datatypes::{Field, Int64Type, Schema, SchemaRef};
use datafusion::logical_expr::EmitTo;
use datafusion::physical_plan::aggregates::group_values::{GroupValues, new_group_values};
use datafusion::physical_plan::aggregates::order::GroupOrdering;
use std::sync::Arc;
use whit_core::mechanism::SanitiseError;
use whit_core::mechanism::additive::{Additive, Reach, Reaches};
use whit_core::mechanism::keys::Keys;
use whit_core::mechanism::quantile::Tree;
use whit_core::{Rung, Sensitivity};
use whit_noise::Entropy;

/// What one unit adds to one group, in steps; of what is divided among leaves or bins, to all of them together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct UnitLimit {
    /// At the least; never above 0, since a unit may have no rows.
    pub(crate) low: i64,
    /// At the most; never below 0.
    pub(crate) high: i64,
}

impl UnitLimit {
    /// From nothing to so much.
    pub(crate) fn up_to(high: u64) -> Self {
        Self { low: 0, high: i64::try_from(high).unwrap_or(i64::MAX) }
    }

    /// Whether a unit within this one is within that one.
    fn is_within(self, other: Self) -> bool {
        other.low <= self.low && self.high <= other.high
    }
}

/// How far units move a sum: what one of them adds to one group, and how far that moves all groups on each rung. Noise that was made for it is priced by the one and
/// added by the other.
#[derive(Debug, Clone)]
pub(crate) struct SumReach {
    limit: UnitLimit,
    moved: Reach,
}

/// The noise on a sum.
pub(crate) type SumNoise = Additive<SumReach>;

impl SumReach {
    /// By what one unit adds to one group, and how far that moves all of them.
    pub(crate) fn new(limit: UnitLimit, moved: Reach) -> Self {
        Self { limit, moved }
    }

    /// Of which nobody knows how far: noise for this costs everything, and is added to nothing that a unit moves.
    pub(crate) fn unknown() -> Self {
        Self { limit: UnitLimit { low: 0, high: 0 }, moved: Reach::known(Vec::new()) }
    }
}

impl Reaches for SumReach {
    fn at(&self, rung: &Rung) -> Sensitivity {
        self.moved.at(rung)
    }

    fn of_one_number(&self, rung: &Rung) -> Sensitivity {
        self.moved.of_one_number(rung)
    }
}

/// Up to here sums go, on either side of zero. Above it there is as much room again for noise.
pub(super) const MOST: i128 = 1 << 62;

/// A sum as noise is added to it. Beyond what has room it is clamped, which moves no two sums further apart, and so keeps every bound.
pub(super) fn saturated(sum: i128) -> i64 {
    sum.clamp(-MOST, MOST) as i64
}

/// Exact sums over units, group by group, to each of which no unit adds more than its limit. Only gathering units makes them, and what is made of them has the
/// same limits.
#[derive(Clone)]
pub(crate) struct BoundedSums {
    /// The keys (and inner values) of the groups, one array a column.
    pub(super) keys: Vec<ArrayRef>,
    /// How many groups.
    pub(super) groups: usize,
    /// One vector for each sum and then one for the number of users (or rows); or one for the weights of inner values.
    pub(super) values: Vec<Vec<i128>>,
    /// Vector by vector, what one unit adds to one group of it.
    pub(super) limits: Vec<UnitLimit>,
    /// Where rows are counted before caps and after them: how many there were, and how many count.
    pub(super) kept: [i128; 2],
    /// What one unit adds to either.
    pub(super) kept_limits: [UnitLimit; 2],
}

impl std::fmt::Debug for BoundedSums {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "BoundedSums within {:?}", self.limits) // sums are not for logs, nor how many groups there are
    }
}

impl BoundedSums {
    /// The keys (and inner values) of the groups, one array a column.
    pub(crate) fn keys(&self) -> &[ArrayRef] {
        &self.keys
    }

    /// How many groups.
    pub(crate) fn groups(&self) -> usize {
        self.groups
    }

    /// How many rows there were before caps, and how many count after them.
    pub(crate) fn rows_kept(&self) -> [BoundedSum; 2] {
        [0, 1].map(|i| BoundedSum { values: vec![saturated(self.kept[i])], limit: self.kept_limits[i] })
    }

    /// One sum of several, group by group, of units that are in one of them alone.
    pub(crate) fn merge(mut parts: Vec<Self>) -> Outcome<Self> {
        if parts.len() == 1 {
            return Ok(parts.remove(0));
        }
        let Some(first) = parts.first() else {
            return Err(datafusion::common::DataFusionError::Internal("nothing to merge".to_owned()));
        };
        let (limits, kept_limits) = (first.limits.clone(), first.kept_limits);
        if parts.iter().any(|part| part.limits != limits || part.kept_limits != kept_limits) {
            return Err(datafusion::common::DataFusionError::Internal("sums of other bounds".to_owned()));
        }
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
        Ok(Self { keys, groups: number, values, limits, kept, kept_limits })
    }

    /// The number of different inner values in each group: one row a group. A unit has no more of them than it keeps.
    pub(crate) fn count_values(&self) -> Result<Self, QueryError> {
        self.of_values(|_| 1, self.limits.clone())
    }

    /// The sum of the different inner values in each group, which are whole numbers between these ends. A unit that comes or goes adds or takes those of its values that nobody else has,
    /// which are some of those that it keeps.
    pub(crate) fn sum_values(&self, each: UnitLimit) -> Result<Self, QueryError> {
        let inner = self.keys.last().ok_or_else(|| QueryError::failed("values that nobody has"))?;
        let inner = inner
            .as_primitive_opt::<Int64Type>()
            .ok_or_else(|| QueryError::failed("different values that are no whole numbers"))?;
        let of_many = |limit: &UnitLimit| UnitLimit {
            low: each.low.min(0).saturating_mul(limit.high),
            high: each.high.max(0).saturating_mul(limit.high),
        };
        self.of_values(
            |row| i128::from(inner.value(row).clamp(each.low, each.high)),
            self.limits.iter().map(of_many).collect(),
        )
    }

    /// What the different inner values in each group come to, where each is worth something.
    fn of_values(&self, worth: impl Fn(usize) -> i128, limits: Vec<UnitLimit>) -> Result<Self, QueryError> {
        let counted = || -> Outcome<Self> {
            let keys = &self.keys[..self.keys.len() - 1];
            let mut groups = interner(schema_of(keys))?;
            let ids = numbers(&mut groups, keys, self.groups)?;
            let number = ids.iter().max().map_or(0, |most| most + 1);
            let mut counts = vec![0_i128; number];
            let inner = &self.keys[keys.len()];
            for (row, &id) in ids.iter().enumerate() {
                counts[id] += if inner.is_valid(row) { worth(row) } else { 0 }; // a missing value is no value
            }
            let first: UInt32Array = first_rows(&ids, number);
            let keys = keys.iter().map(|key| take(key, &first, None)).collect::<Result<Vec<_>, _>>()?;
            Ok(Self { keys, groups: number, values: vec![counts], limits, ..self.clone() })
        };
        counted().map_err(|error| running(&error))
    }

    /// One sum for each vector, over so many groups, where `places` says for each row which of them it is: a group without rows has 0, and rows without a group
    /// are left out.
    pub(crate) fn in_groups(&self, places: &[Option<usize>], groups: usize) -> Vec<BoundedSum> {
        let placed = |(values, &limit): (&Vec<i128>, &UnitLimit)| {
            let mut sums = vec![0_i128; groups];
            for (place, value) in places.iter().zip(values) {
                if let Some(place) = place {
                    sums[*place] += value;
                }
            }
            BoundedSum { values: sums.into_iter().map(saturated).collect(), limit }
        };
        self.values.iter().zip(&self.limits).map(placed).collect()
    }

    /// One tree of counts a group, all nodes one after the other, of sums whose last key is the leaf.
    pub(crate) fn trees(
        &self,
        places: &[Option<usize>],
        groups: usize,
        tree: &Tree,
    ) -> Result<BoundedSum, SanitiseError> {
        let (leaves, limit) = self.over(places, groups, tree.leaves())?;
        let mut values = Vec::with_capacity(groups * tree.nodes());
        for leaves in leaves.chunks_exact(tree.leaves()) {
            values.extend(tree.fill(leaves)?);
        }
        Ok(BoundedSum { values, limit })
    }

    /// Counts over so many bins, of sums whose only key is the bin.
    pub(crate) fn over_bins(&self, bins: usize) -> Result<BoundedSum, SanitiseError> {
        let (values, limit) = self.over(&vec![Some(0); self.groups], 1, bins)?;
        Ok(BoundedSum { values, limit })
    }

    /// The only vector over so many cells a group, by the last key.
    fn over(
        &self,
        places: &[Option<usize>],
        groups: usize,
        cells: usize,
    ) -> Result<(Vec<i64>, UnitLimit), SanitiseError> {
        let (Some(values), Some(&limit)) = (self.values.first(), self.limits.first()) else {
            return Err(SanitiseError::Unfit("no weights of what is inside of groups"));
        };
        let mut counts = vec![0_i64; groups * cells];
        if let Some(inner) = self.keys.last() {
            let inner = inner.as_primitive::<Int64Type>();
            for (row, place) in places.iter().enumerate() {
                if let (Some(place), true) = (place, inner.is_valid(row)) {
                    let count = &mut counts[place * cells + inner.value(row) as usize];
                    *count = saturated(i128::from(*count) + values[row]); // weights are not negative, so in any order
                }
            }
        }
        Ok((counts, limit))
    }
}

/// Exact numbers, one a group or one block a group, to which no unit adds more than a limit. [`BoundedSums`] are the one way in and noise the one way out,
/// so nothing unbounded is sanitised, nor what was bounded to more than its noise was made for.
#[derive(Clone)]
pub(crate) struct BoundedSum {
    values: Vec<i64>,
    limit: UnitLimit,
}

impl std::fmt::Debug for BoundedSum {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "BoundedSum within {:?}", self.limit)
    }
}

impl BoundedSum {
    /// With noise that was made for units within these limits, or within wider ones.
    pub(crate) fn with_noise(self, noise: &SumNoise, entropy: &mut dyn Entropy) -> Result<Vec<i64>, SanitiseError> {
        if !self.limit.is_within(noise.reach().limit) {
            return Err(SanitiseError::Unfit("a sum is bounded to more than its noise was made for"));
        }
        let mut values = self.values;
        noise.add(&mut values, entropy)?;
        Ok(values)
    }

    /// The groups that show by a rule for keys, of the numbers of units that have them. Such a rule counts each unit once.
    pub(crate) fn shown(&self, keys: &Keys, entropy: &mut dyn Entropy) -> Result<Vec<usize>, SanitiseError> {
        if !self.limit.is_within(UnitLimit::up_to(1)) {
            return Err(SanitiseError::Unfit("keys are chosen by how many units have them"));
        }
        let counts: Vec<u64> = self.values.iter().map(|&count| count.max(0) as u64).collect();
        let shown = keys.draw(&counts, entropy)?;
        Ok((0..counts.len()).filter(|&group| shown[group]).collect())
    }

    /// The exact numbers. Never for people: tests compare them between neighbours.
    pub(crate) fn exact_for_tests(&self) -> Vec<i64> {
        self.values.clone()
    }
}

/// The types of some keys, under names that nobody reads.
pub(crate) fn schema_of(keys: &[ArrayRef]) -> SchemaRef {
    let field = |(i, key): (usize, &ArrayRef)| Field::new(format!("k{i}"), key.data_type().clone(), true);
    Arc::new(Schema::new(keys.iter().enumerate().map(field).collect::<Vec<_>>()))
}

pub(super) fn interner(schema: SchemaRef) -> Outcome<Option<Box<dyn GroupValues>>> {
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

/// Where each group is first met.
fn first_rows(ids: &[usize], number: usize) -> UInt32Array {
    let mut first = vec![u32::MAX; number];
    for (row, &id) in ids.iter().enumerate().rev() {
        first[id] = row as u32;
    }
    UInt32Array::from(first)
}

#[cfg(test)]
mod tests {
    use super::*;
    use whit_core::mechanism::additive::{Coordinates, Law};
    use whit_noise::{Ratio, Replay};

    #[test]
    fn a_sum_beyond_all_room_is_clamped_and_none_moves_further_from_another() {
        let room = 1_i64 << 62;
        for (sum, expected) in [
            (0, 0),
            (-7, -7),
            (MOST, room),
            (MOST + 1, room),
            (i128::MAX, room),
            (-MOST - 1, -room),
            (i128::MIN, -room),
        ] {
            assert_eq!(saturated(sum), expected, "{sum}");
        }
        let sums = [i128::MIN, -MOST - 5, -MOST + 3, -1, 0, 12, MOST - 3, MOST + 5, i128::MAX];
        for pair in sums.windows(2) {
            let (exact, found) = (pair[1].saturating_sub(pair[0]), saturated(pair[1]) - saturated(pair[0]));
            assert!((0..=exact).contains(&i128::from(found)), "{pair:?}");
        }
    }

    #[test]
    fn noise_is_added_only_to_what_is_bounded_as_it_was_made_for() {
        let law = Law::laplace(Ratio::new(1, 1 << 20).unwrap()).unwrap(); // so little that it is always 0
        let noise = |limit| {
            let reach = SumReach::new(limit, Reach::known(Vec::new()));
            Additive::new(law.clone(), reach, Coordinates::Any)
        };
        let mut entropy = Replay::new(7);
        let sum = BoundedSum { values: vec![5, -3], limit: UnitLimit { low: -2, high: 4 } };
        assert_eq!(sum.clone().with_noise(&noise(sum.limit), &mut entropy).unwrap(), [5, -3]);
        assert_eq!(sum.clone().with_noise(&noise(UnitLimit { low: -3, high: 9 }), &mut entropy).unwrap(), [5, -3]);
        for planned in [UnitLimit { low: -1, high: 4 }, UnitLimit { low: -2, high: 3 }] {
            assert!(sum.clone().with_noise(&noise(planned), &mut entropy).is_err(), "{planned:?}");
        }
        let drawn_before = Additive::new(law, SumReach::unknown(), Coordinates::Any);
        assert!(
            sum.with_noise(&drawn_before, &mut entropy).is_err(),
            "what was drawn once is no noise for another sum"
        );
    }
}
