//! What a part sums: the few kinds of sums that aggregates are made of, and what each comes to.
//!
//! An aggregate says in its own file which of them it needs; the engine reads them off here, and nothing above knows which aggregate they are for.

use super::{Grain, Part};
use crate::bound::quantise::{Quantise, Shape};
use crate::bound::{UnitLimit, WEIGHT};
use crate::error::QueryError;
use datafusion::logical_expr::Expr;
use whit_core::Sensitivity;
use whit_core::mechanism::quantile::Tree;

/// What is summed over the rows of a unit, clamped, and then over units.
#[derive(Debug, Clone)]
pub struct Measure {
    /// What one row adds.
    pub what: What,
    /// The least that one unit adds to one group, in lattice steps.
    pub low: i64,
    /// The most.
    pub high: i64,
    /// Rung by rung, how far one unit moves the vector, in lattice steps.
    pub moved: Vec<Sensitivity>,
    /// What people call it.
    pub name: String,
}

/// An expression over the rows of a [`Part`], in the engine's own form, which stays inside.
#[derive(Debug, Clone, PartialEq)]
pub struct RowExpr(pub(crate) Expr);

/// What one row adds to a measure.
#[derive(Debug, Clone, PartialEq)]
pub enum What {
    /// One, where the expression is there.
    Rows(Option<RowExpr>),
    /// The same in parts of a row, 1,024 to one: where rows of a unit count for less, and some of them have no value, those that have one count for
    /// fractions.
    Parts(RowExpr),
    /// One for each user (or unit) with a row.
    Users,
    /// A value on a lattice.
    Sum {
        /// The value.
        value: RowExpr,
        /// How it is put on the lattice; for a range that is found privately, once that is known.
        quantisation: Quantisation,
    },
    /// One for each different value, of which a unit keeps a few; or what each of them is worth.
    Distinct {
        /// The value.
        value: RowExpr,
        /// At most so many of one unit in one group.
        most: u64,
        /// How many steps each is worth; without it, one.
        worth: Option<Quantise>,
    },
    /// One in the leaf that the value falls into.
    Tree {
        /// The value.
        value: RowExpr,
        /// The tree, or the number of the range that stage one finds.
        tree: Leaves,
        /// The rows of one unit in one group share this weight, in rows.
        rows: u64,
    },
}

impl What {
    /// Whether it looks at values inside of groups, and so needs a run of its own.
    pub(crate) fn is_inner(&self) -> bool {
        matches!(self, Self::Distinct { .. } | Self::Tree { .. })
    }

    /// Whether rows say what they add; otherwise each adds one.
    pub(crate) fn has_column(&self) -> bool {
        matches!(self, Self::Rows(Some(_)) | Self::Parts(_) | Self::Sum { .. })
    }

    /// How many steps one row is.
    pub(crate) fn each(&self) -> i64 {
        if matches!(self, Self::Parts(_)) { WEIGHT } else { 1 }
    }
}

impl Measure {
    /// How many rows of one unit count in one group, at most.
    pub(crate) fn rows(&self) -> u64 {
        match &self.what {
            What::Rows(_) | What::Parts(_) => self.high.unsigned_abs() / self.what.each().unsigned_abs(),
            What::Distinct { most, .. } => *most,
            What::Tree { rows, .. } => *rows,
            What::Sum { quantisation: Quantisation::Known(quantise), .. } => {
                self.high.unsigned_abs().max(self.low.unsigned_abs())
                    / quantise.high().unsigned_abs().max(quantise.low().unsigned_abs()).max(1)
            }
            What::Users | What::Sum { .. } => 1,
        }
    }
}

/// How a value is put on a lattice.
#[derive(Debug, Clone, PartialEq)]
pub enum Quantisation {
    /// Known beforehand.
    Known(Quantise),
    /// Once stage one has found range number `range`: [`Shape`] says how.
    Found {
        /// Which of [`Part::autos`].
        range: usize,
        /// What is summed.
        shape: Shape,
    },
}

/// Where the leaves of a tree of counts are.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Leaves {
    /// Over a range that is known beforehand.
    Known {
        /// The least value.
        low: f64,
        /// The largest.
        high: f64,
    },
    /// Over the range that stage one finds.
    Found {
        /// Which of [`Part::autos`].
        range: usize,
    },
}

/// How a value is put on the lattice, once all ranges are known.
pub(crate) fn quantise_of(quantisation: &Quantisation, found: &[(f64, f64)]) -> Result<Quantise, QueryError> {
    match quantisation {
        Quantisation::Known(quantise) => Ok(quantise.clone()),
        Quantisation::Found { range, shape } => {
            let &(low, high) = found.get(*range).ok_or_else(|| QueryError::failed("a range that was not found"))?;
            Quantise::found(low, high, *shape)
        }
    }
}

/// The ends of a tree's range, once all ranges are known.
pub(crate) fn ends_of(leaves: &Leaves, found: &[(f64, f64)]) -> Result<(f64, f64), QueryError> {
    let (low, high) = match leaves {
        Leaves::Known { low, high } => (*low, *high),
        Leaves::Found { range } => {
            *found.get(*range).ok_or_else(|| QueryError::failed("a range that was not found"))?
        }
    };
    Ok((low, if high > low { high } else { low + 1.0 }))
}

/// The tree of a measure, once all ranges are known.
pub(crate) fn tree_of(leaves: &Leaves, found: &[(f64, f64)]) -> Result<Tree, QueryError> {
    let (low, high) = ends_of(leaves, found)?;
    Tree::new(low, high, LEAVES).map_err(|error| QueryError::failed(error.to_string()))
}

/// Into how many leaves a quantile's range is cut.
pub(crate) const LEAVES: u32 = 4096;

impl Part {
    /// The names of the output columns, keys first.
    pub fn titles(&self) -> impl Iterator<Item = &str> {
        self.output.iter().map(|(title, _)| title.as_str())
    }

    /// How many shares of the price a measure gets.
    pub(crate) fn weight(&self, measure: usize) -> f64 {
        self.weights.get(measure).copied().unwrap_or(1.0)
    }

    /// Between which numbers the values of a measure are taken, where that is known beforehand.
    pub(crate) fn bounds_of(&self, measure: usize) -> Option<(f64, f64)> {
        match &self.measures[measure].what {
            What::Sum { quantisation: Quantisation::Known(quantise), .. }
            | What::Distinct { worth: Some(quantise), .. } => Some(quantise.bounds()),
            What::Tree { tree: Leaves::Known { low, high }, .. } => Some((*low, *high)),
            _ => None,
        }
    }

    /// What one step of a measure is worth, for people.
    pub(crate) fn step_of(&self, measure: usize, found: &[(f64, f64)]) -> f64 {
        match &self.measures[measure].what {
            What::Sum { quantisation, .. } => quantise_of(quantisation, found).map_or(1.0, |quantise| quantise.step()),
            What::Distinct { worth: Some(quantise), .. } => quantise.step(),
            What::Parts(_) => 1.0 / WEIGHT as f64,
            What::Tree { .. } => 1.0 / self.weight_of_leaves() as f64,
            What::Rows(_) | What::Users | What::Distinct { .. } => 1.0,
        }
    }

    /// What one unit adds to one group of a measure; of a tree, to all of its leaves together.
    pub(crate) fn limit_of(&self, measure: usize) -> UnitLimit {
        let Measure { what, low, high, .. } = &self.measures[measure];
        match what {
            What::Tree { rows, .. } => UnitLimit::up_to(rows.saturating_mul(self.weight_of_leaves().unsigned_abs())),
            _ => UnitLimit { low: (*low).min(0), high: (*high).max(0) },
        }
    }

    /// What one unit adds to all bins of a range that is found privately.
    pub(crate) fn limit_of_bins(&self) -> UnitLimit {
        UnitLimit::up_to(self.weight_of_leaves().unsigned_abs())
    }

    /// What one row adds to the leaf that it falls into.
    fn weight_of_leaves(&self) -> i64 {
        if self.grain == Grain::Row { 1 } else { WEIGHT }
    }

    /// What a measure comes to in a group of so many rows that are made up, with values spread evenly over so much of their bounds, from the upper end
    /// down; nothing where a range has to be found first.
    pub(crate) fn imagined(&self, measure: usize, rows: f64, share: f64) -> Result<Option<Vec<i64>>, QueryError> {
        Ok(match &self.measures[measure].what {
            What::Distinct { worth: Some(quantise), .. } => {
                // There are no more different values than whole numbers between the bounds.
                let (low, high) = quantise.bounds();
                let different = rows.round().min(high - low + 1.0);
                Some(vec![(different * quantise.imagined(share)).round() as i64])
            }
            What::Rows(_) | What::Users | What::Distinct { .. } => Some(vec![rows.round() as i64]),
            What::Parts(_) => Some(vec![rows.round() as i64 * WEIGHT]),
            What::Sum { quantisation: Quantisation::Known(quantise), .. } => {
                Some(vec![(rows.round() * quantise.imagined(share)).round() as i64])
            }
            What::Tree { tree: leaves @ Leaves::Known { .. }, .. } => {
                let (tree, weight) = (tree_of(leaves, &[])?, self.weight_of_leaves() as f64);
                let below = |leaf: usize| (rows.round() * weight * leaf as f64 / tree.leaves() as f64).round() as i64;
                let counts: Vec<i64> = (0..tree.leaves()).map(|leaf| below(leaf + 1) - below(leaf)).collect();
                Some(tree.fill(&counts).map_err(|error| QueryError::failed(error.to_string()))?)
            }
            What::Sum { .. } | What::Tree { .. } => None,
        })
    }
}
