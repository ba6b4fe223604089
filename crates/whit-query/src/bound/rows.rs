//! Which of a user's rows are kept, where each row stands for itself and only so many of one user may.
//!
//! Rows arrive with whose they are and with a number that is a hash of all that they hold ([`Role::Row`]). Of a user's rows in one element, and then of all the
//! user's rows, those with the least numbers are kept. Of rows that have been left out already nothing has to be known, so no more is held than a few times what is
//! kept in the end: whenever enough rows have come, those beyond a cap go, and from then on rows of that user with larger numbers are not even taken.
//!
//! # Why leaving out early changes nothing
//! Let `E` leave of each element, and `U` of the user, those with the least numbers, and let some rows `A` be cut before others `B` come. A row of `A` that `E` leaves out has
//! enough lesser ones in its element, and still has them when there are more rows. A row that `U` leaves out has enough lesser ones of its user among those that `E` leaves; where one
//! of them is pushed out of its element by a row of `B`, that row is less still, and takes its place. So what is left out early is left out in the end. And what is kept in the
//! end is not let in by their absence: whoever they would have kept out of its element stands behind them, and `U` leaves it out for the same reason as them. So
//! `U(E(U(E(A)) ∪ B)) = U(E(A ∪ B))` (`rows_that_are_cut_early_are_those_that_are_cut_in_the_end`).

use super::Outcome;
use super::hash::Role;
use super::number::Numbering;
use datafusion::arrow::array::{Array, ArrayRef, AsArray, UInt32Array};
use datafusion::arrow::datatypes::{DataType, Schema, UInt64Type};
use datafusion::common::DataFusionError;
use std::cmp::Ordering;

/// How many rows of a user are kept, or of a user in each element.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RowCap {
    /// Whether of each element, and not of the user as a whole.
    pub(crate) of_element: bool,
    /// At most.
    pub(crate) most: u64,
}

/// How many rows are held before those beyond a cap go for the first time.
const FIRST: usize = 1 << 18;

/// The rows of users of whom each keeps only so many. Their columns are the user, the element where a cap is on it, the number, and whether a row counts: one that does not
/// takes the place of another, as it would in the table, and adds nothing.
pub(super) struct KeptRows {
    /// Those of elements first.
    caps: Vec<RowCap>,
    users: Numbering,
    elements: Option<Numbering>,
    /// Row by row, the numbers of its user and element, and its own.
    user: Vec<u32>,
    element: Vec<u32>,
    number: Vec<u64>,
    /// User by user, the largest number with which a row may still be kept.
    largest: Vec<u64>,
    /// From so many rows on, some go: at first from so many, and then from twice as many as were left.
    full: usize,
    first: usize,
}

impl KeptRows {
    /// With the columns that stand first in a schema.
    pub(super) fn new(caps: &[RowCap], schema: &Schema) -> Outcome<Self> {
        let mut caps = caps.to_vec();
        caps.sort_by_key(|cap| !cap.of_element); // from fine to coarse, as rungs are
        let element = caps.iter().any(|cap| cap.of_element);
        let elements = element.then(|| Numbering::new(schema, 1..2, (0, Role::Element), false)).transpose()?;
        Ok(Self {
            caps,
            users: Numbering::new(schema, 0..1, (0, Role::User), false)?,
            elements,
            user: Vec::new(),
            element: Vec::new(),
            number: Vec::new(),
            largest: Vec::new(),
            full: FIRST,
            first: FIRST,
        })
    }

    /// How many columns these are.
    pub(super) fn width(caps: &[RowCap]) -> usize {
        if caps.iter().any(|cap| cap.of_element) { 4 } else { 3 }
    }

    /// Takes rows, and says which of them; nothing where all are.
    pub(super) fn take(&mut self, columns: &[ArrayRef], rows: usize) -> Outcome<Option<UInt32Array>> {
        let numbers = columns[self.elements.iter().len() + 1].as_primitive_opt::<UInt64Type>();
        let numbers = numbers.ok_or_else(|| DataFusionError::Internal("a row without its number".to_owned()))?.values();
        let users = self.users.number(&columns[..1], rows)?;
        let elements = match &mut self.elements {
            Some(elements) => elements.number(&columns[1..2], rows)?,
            None => &[],
        };
        let may = |row: usize| self.largest.get(users[row] as usize).is_none_or(|&largest| numbers[row] <= largest);
        let taken = (!self.largest.is_empty()).then(|| (0..rows).filter(|&row| may(row)).collect::<Vec<usize>>());
        match taken.filter(|taken| taken.len() < rows) {
            None => {
                self.user.extend_from_slice(users);
                self.element.extend_from_slice(elements);
                self.number.extend_from_slice(numbers);
                Ok(None)
            }
            Some(taken) => {
                self.user.extend(taken.iter().map(|&row| users[row]));
                self.number.extend(taken.iter().map(|&row| numbers[row]));
                if !elements.is_empty() {
                    self.element.extend(taken.iter().map(|&row| elements[row]));
                }
                Ok(Some(taken.into_iter().map(|row| row as u32).collect()))
            }
        }
    }

    /// Whether each of some rows that were taken counts: what stands in the last of the columns, of all rows.
    pub(super) fn counts(columns: &[ArrayRef], taken: Option<&UInt32Array>, rows: usize) -> Vec<bool> {
        let counts = columns.last().filter(|column| column.data_type() == &DataType::Boolean);
        let counts = counts.map(|column| column.as_boolean());
        let at = |row: usize| counts.is_some_and(|counts| counts.is_valid(row) && counts.value(row));
        match taken {
            Some(taken) => taken.values().iter().map(|&row| at(row as usize)).collect(),
            None => (0..rows).map(at).collect(),
        }
    }

    pub(super) fn is_full(&self) -> bool {
        self.user.len() >= self.full
    }

    /// How many bytes of memory it holds, and will need to cut.
    pub(super) fn size(&self) -> usize {
        let tables = self.users.size() + self.elements.as_ref().map_or(0, Numbering::size);
        let rows = 4 * (self.user.capacity() + self.element.capacity()) + 8 * self.number.capacity();
        rows + 17 * self.user.len() + 8 * self.largest.capacity() + tables
    }

    /// Leaves of each user's rows those with the least numbers, and says which, row by row. Rows with one number are in the order that `same` has them in, and
    /// interchangeable where it has none.
    pub(super) fn cut(&mut self, same: impl Fn(usize, usize) -> Ordering) -> Vec<bool> {
        // Counting sort by user: where each user's rows end, then each row into its place.
        let mut ends = vec![0_u32; self.users.known + 1];
        for &user in &self.user {
            ends[user as usize + 1] += 1;
        }
        for i in 1..ends.len() {
            ends[i] += ends[i - 1];
        }
        let mut placed = vec![(0_u64, 0_u32); self.user.len()];
        let mut next = ends.clone();
        for (row, (&user, &number)) in self.user.iter().zip(&self.number).enumerate() {
            let place = &mut next[user as usize];
            placed[*place as usize] = (number, row as u32);
            *place += 1;
        }
        drop(next);
        let order = |a: &(u64, u32), b: &(u64, u32)| a.0.cmp(&b.0).then_with(|| same(a.1 as usize, b.1 as usize));
        let mut kept = vec![true; self.user.len()];
        // Splits off those beyond the `most` least, and forgets them.
        let mut least = |own: &mut [(u64, u32)], most: u64| -> usize {
            if own.len() as u64 <= most {
                return own.len();
            }
            let most = most as usize;
            own.select_nth_unstable_by(most, order);
            own[most..].iter().for_each(|&(_, row)| kept[row as usize] = false);
            most
        };
        self.largest.resize(self.users.known, u64::MAX);
        for (bounds, largest) in ends.windows(2).zip(&mut self.largest) {
            let mut own = &mut placed[bounds[0] as usize..bounds[1] as usize];
            for cap in &self.caps {
                if own.len() as u64 <= cap.most {
                    continue;
                }
                if !cap.of_element {
                    let left = least(own, cap.most);
                    own = &mut own[..left];
                    *largest = own.iter().map(|&(number, _)| number).max().unwrap_or(0);
                    continue;
                }
                let element = |&(_, row): &(u64, u32)| self.element[row as usize];
                own.sort_unstable_by_key(element);
                let (mut read, mut write) = (0, 0);
                while read < own.len() {
                    let of = element(&own[read]);
                    let end = read + own[read..].iter().take_while(|row| element(row) == of).count();
                    let left = least(&mut own[read..end], cap.most);
                    own.copy_within(read..read + left, write);
                    (read, write) = (end, write + left);
                }
                own = &mut own[..write];
            }
        }
        retain(&mut self.user, &kept);
        retain(&mut self.element, &kept);
        retain(&mut self.number, &kept);
        self.full = self.first.max(2 * self.user.len());
        kept
    }
}

/// Leaves the values of the rows that are kept.
pub(super) fn retain<T>(values: &mut Vec<T>, kept: &[bool]) {
    let mut kept = kept.iter();
    values.retain(|_| kept.next().is_none_or(|&kept| kept));
}

#[cfg(test)]
mod tests;
