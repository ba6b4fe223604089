//! Which classes a model takes for which, counted with noise.

use crate::error::LearnError;
use crate::plan::moves;
use crate::source::Rows;
use whit_core::mechanism::additive::{Additive, Coordinates, Law, Reach};
use whit_core::mechanism::{BadParameter, SanitiseError};
use whit_core::{Accuracy, Bound, Cost, Ladder, Mechanism, Rung, Sealed, Support};
use whit_noise::{Entropy, Ratio};

/// Counts rows by their class and the class that they are taken for, and adds noise to every cell.
///
/// # Neighbours
/// Counts of data sets that differ in one unit of the rung, of which at most `rows` rows are counted.
///
/// # Claim
/// Every pair of neighbours is at most as easy to tell apart as `N(0, σ²)` and `N(Δ, σ²)`, where Δ is `rows` under add-remove and `√2·rows` under replacement, and at a coarser rung
/// what the units that it holds move together.
///
/// # Why
/// A unit adds a vector v ≥ 0 of whole numbers with `Σ v ≤ rows`, so `‖v‖ ≤ rows`; and for two of them `‖v − w‖² = ‖v‖² + ‖w‖² − 2⟨v, w⟩ ≤ 2·rows²`, since products of what is not negative are not
/// negative (the ball of [`Bound`] with [`Support::NonNegative`]). What a row is taken for must be a function of that row and of the model alone, which is known: whoever predicts, predicts
/// row by row, since a product of matrices may round a row otherwise where it stands elsewhere or beside others. [`Counts`] are made by [`Confusion::count`] alone, which counts at most so many rows of
/// each unit, and refuses rows that do not keep to the ladder. Rounded noise on integers is post-processing of real noise.
///
/// # Tried by
/// `no_unit_moves_the_counts_further_than_claimed`, `noise_is_priced_for_what_units_move`, `rows_beyond_the_cap_are_not_counted`.
#[derive(Debug, Clone)]
pub struct Confusion {
    classes: usize,
    rows: u64,
    noise: Additive,
}

/// How many rows of each class were taken for each, of which no unit added more than its rows: as private as they are.
pub struct Counts {
    classes: usize,
    rows: u64,
    cells: Vec<i64>,
}

impl Confusion {
    /// For so many classes, at most so many rows of a unit, and noise of this deviation in each cell.
    pub fn new(classes: usize, rows: u64, sigma: Ratio) -> Result<Self, BadParameter> {
        let noise = Additive::new(Law::rounded(sigma)?, Reach::new(Self::bound(rows)), Coordinates::Any);
        Ok(Self { classes, rows, noise })
    }

    fn bound(rows: u64) -> Bound {
        Bound::Ball { radius: rows as f64, support: Support::NonNegative }
    }

    /// Units of a coarser rung share cells.
    fn shared(rung: &Rung) -> Rung {
        Rung { disjoint: false, ..rung.clone() }
    }

    /// The same, with what a ladder knows of its rungs, and of rows that make room for others where they are cut to caps.
    #[must_use]
    pub fn on(self, ladder: &Ladder) -> Self {
        let bound = Self::bound(self.rows);
        let known = |(rung, &held): (&Rung, &u64)| {
            let (change, holds) = moves(ladder, rung, held);
            let rung = Self::shared(rung);
            let moved = bound.sensitivity(change).at(&Rung { holds, ..rung.clone() });
            (rung, moved)
        };
        let known = ladder.rungs().iter().zip(ladder.held()).map(known).collect();
        let reach = Reach::new(bound).knowing(known);
        Self { noise: Additive::new(self.noise.law().clone(), reach, Coordinates::Any), ..self }
    }

    /// How far one unit of a ladder's protected rung moves the counts, in ℓ2.
    pub fn moved(rows: u64, ladder: &Ladder) -> f64 {
        let rung = ladder.protected();
        let held =
            ladder.rungs().iter().zip(ladder.held()).find(|(known, _)| *known == rung).map_or(1, |(_, &held)| held);
        let (change, holds) = moves(ladder, rung, held);
        Self::bound(rows).sensitivity(change).at(&Rung { holds, ..Self::shared(rung) }).l2
    }

    /// Counts rows that were cut to the caps of a ladder, by their classes and those that they are taken for.
    pub fn count(
        &self,
        rows: &Rows,
        classes: &[usize],
        taken_for: &[usize],
        ladder: &Ladder,
    ) -> Result<Counts, LearnError> {
        rows.check(ladder)?;
        let mut cells = vec![0_i64; self.classes * self.classes];
        for unit in 0..rows.units() as u32 {
            let own = rows.of_unit(unit);
            for &row in &own[..own.len().min(usize::try_from(self.rows).unwrap_or(usize::MAX))] {
                let place = classes.get(row as usize).zip(taken_for.get(row as usize));
                let cell = place.filter(|(class, taken)| **class < self.classes && **taken < self.classes);
                if let Some((class, taken)) = cell {
                    cells[class * self.classes + taken] += 1;
                }
            }
        }
        Ok(Counts { classes: self.classes, rows: self.rows, cells })
    }

    /// The law of the noise of each cell.
    pub fn law(&self) -> &Law {
        self.noise.law()
    }
}

impl Mechanism for Confusion {
    type Exact = Counts;
    type Noisy = Vec<i64>;

    fn cost(&self, rung: &Rung) -> Cost {
        self.noise.cost(&Self::shared(rung))
    }

    fn sanitise(&self, exact: &Counts, entropy: &mut dyn Entropy) -> Result<Sealed<Vec<i64>>, SanitiseError> {
        if exact.classes != self.classes {
            return Err(SanitiseError::Length { given: exact.classes, expected: self.classes });
        }
        if exact.rows > self.rows {
            return Err(SanitiseError::Unfit("more rows of a unit were counted than the noise is made for"));
        }
        let mut cells = exact.cells.clone();
        self.noise.add(&mut cells, entropy)?;
        Ok(Sealed::new(cells))
    }

    /// The error of the worst cell, in rows.
    fn accuracy(&self, confidence: f64) -> Accuracy {
        Accuracy { within: self.law().all_within(confidence, self.classes * self.classes), confidence }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::loss::Targets;
    use crate::source::Owners;
    use crate::store::Store;
    use whit_core::{Caps, Change, Kind, Unit};

    fn ladder(change: Change) -> Ladder {
        Ladder::new(vec![Unit::user("user", change)], Caps::default(), Kind::User).unwrap()
    }

    fn rows(users: &[u64]) -> Rows {
        let targets = Targets::Numbers { values: vec![0.0; users.len()], width: 1 };
        let owners = Owners { users: Some(users), elements: None };
        Rows::new(Store::of(vec![0.0; users.len()], 1).unwrap(), targets, Kind::User, owners).unwrap()
    }

    #[test]
    fn rows_beyond_the_cap_are_not_counted() {
        let confusion = Confusion::new(2, 2, Ratio::from(3_u64)).unwrap();
        let rows = rows(&[1, 1, 1, 2]);
        let counts = confusion.count(&rows, &[0, 1, 1, 1], &[0, 1, 0, 1], &ladder(Change::AddRemove)).unwrap();
        assert_eq!(counts.cells.iter().sum::<i64>(), 3, "two of the first user, and one of the second");
        // What is none of the classes is not counted, and harms nobody.
        let counts = confusion.count(&rows, &[0, 9, 1, 1], &[0, 1, 0, 7], &ladder(Change::AddRemove)).unwrap();
        assert!(counts.cells.iter().sum::<i64>() <= 2);
    }

    /// All contents of one user of at most two rows, beside a user that stays.
    #[test]
    fn no_unit_moves_the_counts_further_than_claimed() {
        let confusion = Confusion::new(2, 2, Ratio::from(3_u64)).unwrap();
        let all: Vec<Vec<(usize, usize)>> = {
            let cells = [(0, 0), (0, 1), (1, 0), (1, 1)];
            let one = cells.iter().map(|&cell| vec![cell]);
            let two = cells.iter().flat_map(|&first| cells.iter().map(move |&second| vec![first, second]));
            std::iter::once(Vec::new()).chain(one).chain(two).collect()
        };
        let count = |own: &[(usize, usize)]| {
            let users: Vec<u64> = std::iter::repeat_n(7, own.len()).chain([8]).collect();
            let classes: Vec<usize> = own.iter().map(|cell| cell.0).chain([1]).collect();
            let taken: Vec<usize> = own.iter().map(|cell| cell.1).chain([1]).collect();
            confusion.count(&rows(&users), &classes, &taken, &ladder(Change::Replace)).unwrap().cells
        };
        let apart = |one: &[(usize, usize)], other: &[(usize, usize)]| {
            let squared: i64 = count(one).iter().zip(count(other)).map(|(a, b)| (a - b) * (a - b)).sum();
            (squared as f64).sqrt()
        };
        let moved = |change| Confusion::moved(2, &ladder(change));
        let most = all.iter().flat_map(|one| all.iter().map(move |other| apart(one, other))).fold(0.0, f64::max);
        assert!(most <= moved(Change::Replace) && most > moved(Change::Replace) - 1e-9, "{most}, and it is attained");
        let most = all.iter().map(|one| apart(one, &[])).fold(0.0, f64::max);
        assert!(most <= moved(Change::AddRemove) && most > moved(Change::AddRemove) - 1e-9, "{most}");
    }

    #[test]
    fn noise_is_priced_for_what_units_move() {
        for (change, distance) in [(Change::AddRemove, 2.0), (Change::Replace, 8_f64.sqrt())] {
            let ladder = ladder(change);
            let confusion = Confusion::new(3, 2, Ratio::from(10_u64)).unwrap().on(&ladder);
            let Cost::Gaussian { noise } = confusion.cost(ladder.protected()) else { panic!("Gaussian") };
            assert!(noise <= 10.0 / distance && noise > 10.0 / distance - 1e-9, "{noise}");
        }
    }
}
