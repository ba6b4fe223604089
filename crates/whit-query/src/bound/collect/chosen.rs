//! Rows of which each stands for itself and a user keeps only so many: held until it is known which, and added up then.

use super::super::hash::Role;
use super::super::number::Numbering;
use super::super::rows::{KeptRows, RowCap, retain};
use super::super::text::NONE;
use super::super::{Inner, Outcome, Rules};
use super::{Collector, append};
use datafusion::arrow::array::ArrayRef;
use datafusion::arrow::compute::take;
use datafusion::arrow::datatypes::Schema;
use datafusion::common::DataFusionError;

impl Collector {
    /// For rows that stand each for itself and of which a user, or a user in one element, keeps only so many. Whose they are, their numbers and whether they count
    /// stand before all else ([`KeptRows`]).
    pub(crate) fn keeping(rules: Rules, schema: &Schema, caps: &[RowCap]) -> Outcome<Self> {
        let (own, rest) = schema.fields().split_at(KeptRows::width(caps));
        let (layout, seed, rest) = (rules.layout, rules.seed, Schema::new(rest.to_vec()));
        let choice = KeptRows::new(caps, &Schema::new(own.to_vec()))?;
        // Rows with one number are told apart by what they add to.
        let groups = Numbering::new(&rest, layout.groups(), (seed, Role::Group), layout.keys > 0)?;
        let inners = Numbering::new(&rest, layout.inners(), (seed, Role::Inner), layout.inner)?;
        Ok(Self { choice: Some(choice), groups, inners, ..Self::new(rules, &rest)? })
    }

    /// Lets rows beyond a cap go as soon as there are so many.
    #[cfg(test)]
    pub(in crate::bound) fn choose_early(&mut self, first: usize) {
        self.choice.iter_mut().for_each(|choice| choice.early(first));
    }

    /// Takes rows that stand for themselves and of which a user keeps only so many.
    pub(super) fn choose_among(&mut self, columns: &[ArrayRef], rows: usize) -> Outcome<()> {
        let Some(choice) = &mut self.choice else { return Ok(()) };
        let (own, rest) = columns.split_at(columns.len() - self.rules.layout.inners().end - self.added.len());
        let taken = choice.take(own, rows)?;
        let counts = KeptRows::counts(own, taken.as_ref(), rows);
        let rest = match &taken {
            Some(taken) => rest.iter().map(|column| take(column, taken, None)).collect::<Result<Vec<_>, _>>()?,
            None => rest.to_vec(),
        };
        let (layout, rows) = (self.rules.layout, counts.len());
        let groups = self.groups.number(&rest[layout.groups()], rows)?;
        self.group.extend(groups.iter().zip(&counts).map(|(&group, &counts)| if counts { group } else { NONE }));
        if layout.inner {
            self.inner.extend_from_slice(self.inners.number(&rest[layout.inners()], rows)?);
        }
        for (added, column) in self.added.iter_mut().zip(&rest[layout.inners().end..]) {
            append(added, column);
        }
        if choice.is_full() {
            self.leave_least();
        }
        if self.group.len() > u32::MAX as usize {
            return Err(DataFusionError::ResourcesExhausted("more than 2^32 rows at once".to_owned()));
        }
        Ok(())
    }

    /// Leaves of the rows that stand for themselves those that their users may keep. Rows with one number that add the same to the same group are interchangeable; others
    /// with one number there are once in 2^64 pairs, and their order is one of their own.
    fn leave_least(&mut self) {
        let Some(choice) = &mut self.choice else { return };
        let hash = |numbers: &Numbering, id: Option<&u32>| {
            let hashes = numbers.priorities.as_ref().zip(id);
            hashes.and_then(|(hashes, &id)| hashes.get(id as usize).copied())
        };
        let held = |row: usize| {
            let (group, inner) = (self.group.get(row), self.inner.get(row));
            let counts = group.is_some_and(|&group| group != NONE);
            (counts, hash(&self.groups, group), hash(&self.inners, inner))
        };
        let adds = |row: usize| self.added.iter().map(move |added| added[row]);
        let kept = choice.cut(|a, b| held(a).cmp(&held(b)).then_with(|| adds(a).cmp(adds(b))));
        retain(&mut self.group, &kept);
        retain(&mut self.inner, &kept);
        self.added.iter_mut().for_each(|added| retain(added, &kept));
    }

    /// Adds up the rows that their users keep.
    pub(super) fn settle_rows(&mut self) {
        self.leave_least();
        let known = self.groups.known;
        self.counted.resize(known, 0);
        let there = || self.group.iter().enumerate().filter(|&(_, &group)| group != NONE);
        if self.rules.inner != Inner::None {
            for (row, &group) in there() {
                *self.weights.entry((group, self.inner[row])).or_insert(0) += 1;
            }
            return;
        }
        there().for_each(|(_, &group)| self.counted[group as usize] += 1);
        for (addend, sums) in self.rules.addends.iter().zip(&mut self.sums) {
            sums.resize(known, 0);
            // Fewer than 2^32 rows of 32 bits each: no sum leaves 64 bits.
            if let Some(added) = addend.column.map(|column| &self.added[column]) {
                there().for_each(|(row, &group)| sums[group as usize] += i64::from(added[row]));
            }
        }
    }
}
