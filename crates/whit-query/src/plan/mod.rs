//! From SQL to a plan of which the sensitive part is isolated and typed.
//!
//! A question becomes [`Part`]s, each one private aggregate over rows that are known to belong to units, and what is
//! done with their released tables afterwards, which is ordinary SQL again. Everything in between is typed:
//! [`track`] follows the unit through the relational algebra, [`range`] the bounds of a value, [`aggregate`] turns SQL
//! aggregates into [`Measure`]s, integer vectors of which it is known how far one unit moves them.
//!
//! An operator, a function or a type that planning does not know is refused, never passed through.

pub mod aggregate;
pub mod call;
mod heeded;
pub mod meaning;
mod misread;
pub(crate) mod outline;
mod question;
pub mod range;
pub mod track;

pub use crate::bound::quantise::Shape;
pub use aggregate::Statistic;

use crate::bound::quantise::Quantise;
use crate::error::QueryError;
use datafusion::arrow::datatypes::DataType;
use datafusion::logical_expr::{Expr, LogicalPlan};
use datafusion::scalar::ScalarValue;
use std::collections::BTreeMap;
use whit_core::mechanism::quantile::Tree;
use whit_core::{Rung, Sensitivity};

/// The hidden column that holds a row's user.
pub(crate) const USER: &str = "__whit_user";
/// The hidden column that holds a row's element.
pub(crate) const ELEMENT: &str = "__whit_element";

/// A question that can be answered, before anything is paid or read.
#[derive(Debug, Clone)]
pub struct Plan {
    /// The question as it was asked.
    pub question: String,
    /// The data set whose budget pays.
    pub dataset: String,
    /// The rungs that are charged, the protected one first; empty where nothing private is read.
    pub rungs: Vec<Rung>,
    /// The private aggregates.
    pub parts: Vec<Part>,
    /// What is done with the released tables: each part is a scan of a table called by its number.
    pub after: LogicalPlan,
    /// What a reader of the answer must know.
    pub notes: Vec<String>,
}

/// The name under which a part's released table stands in [`Plan::after`].
pub(crate) fn part_name(number: usize) -> String {
    format!("__whit_part_{number}")
}

/// Which rows are bounded together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Grain {
    /// Each row on its own: it is clamped, and nothing else is needed.
    Row,
    /// All rows of one user in one element.
    Element,
    /// All rows of one user.
    User,
}

/// One private aggregate.
#[derive(Debug, Clone)]
pub struct Part {
    /// The rows, with the hidden columns that say whose they are.
    pub rows: LogicalPlan,
    /// The private tables that may be among them, and which column of each says whose a row is.
    pub owners: BTreeMap<String, Option<String>>,
    /// Which rows are bounded together.
    pub grain: Grain,
    /// The groups.
    pub keys: Vec<Key>,
    /// Which groups appear.
    pub groups: Groups,
    /// At most so many groups of one unit count; `None` where a unit has no more than one, or as many as there are.
    pub groups_per_unit: Option<u64>,
    /// At most so many elements of one user count, where a user rung rests on it.
    pub elements_per_user: Option<u64>,
    /// Above so many rows of one unit in one group, all of them count for less; `None` where each row stands for itself, or nothing is limited.
    pub rows_per_group: Option<u64>,
    /// The same for the rows that one unit has in all its groups.
    pub rows_in_all: Option<u64>,
    /// Where each row stands for itself and coarser rungs rest on caps: at most so many rows with the same hidden columns.
    pub row_caps: Vec<(Vec<&'static str>, u64)>,
    /// What is summed.
    pub measures: Vec<Measure>,
    /// Ranges that are found privately first.
    pub autos: Vec<Auto>,
    /// What is made of the measures, one for each aggregate of the question.
    pub statistics: Vec<Statistic>,
    /// For each of them, whether caps may leave something out of it: then it is of what they leave.
    pub after_caps: Vec<bool>,
    /// Where caps may leave something out: how much is told too.
    pub kept: Option<Kept>,
    /// The names and types of the output columns, keys first.
    pub output: Vec<(String, DataType)>,
    /// For each column of the question's aggregate, which of the output columns it is.
    pub places: Vec<usize>,
    /// How many users, or units where no user is declared, have a key: what decides whether a private key shows.
    pub presence: Option<Presence>,
}

impl Part {
    /// Between which numbers the values of a measure are taken, where that is known beforehand.
    pub(crate) fn bounds_of(&self, measure: usize) -> Option<(f64, f64)> {
        match &self.measures[measure].what {
            What::Sum { place: Place::Known(quantise), .. } => Some(quantise.bounds()),
            What::Tree { tree: Leaves::Known { low, high }, .. } => Some((*low, *high)),
            _ => None,
        }
    }
}

/// How many rows there are, and how many count after caps: told beside an answer, for a small share of its price.
#[derive(Debug, Clone, PartialEq)]
pub struct Kept {
    /// Of one unit at most so many rows are counted, before caps and after them.
    pub most: [u64; 2],
    /// Rung by rung, how far one unit moves the number of rows before caps, and after them.
    pub moved: [Vec<Sensitivity>; 2],
    /// The caps that may leave something out: "`groups = 5`".
    pub caps: String,
}

/// A group key.
#[derive(Debug, Clone)]
pub struct Key {
    /// The expression over the rows.
    pub expr: Expr,
    /// What people call it.
    pub name: String,
    /// Its type.
    pub data_type: DataType,
    /// The values that it may take, where they are public.
    pub listed: Option<Vec<ScalarValue>>,
}

/// Which groups appear in the answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Groups {
    /// There is one, of everything.
    One,
    /// All combinations of listed values, with zeros.
    Listed,
    /// Those that occur, which neighbours agree on.
    Observed,
    /// Those that enough users have.
    Selected,
}

/// How many things have a key, and how far that moves.
#[derive(Debug, Clone, PartialEq)]
pub struct Presence {
    /// Rung by rung: at most so many keys move, each by at most so much.
    pub moved: Vec<whit_core::mechanism::keys::Moved>,
}

/// A range that stage one of a release finds privately.
#[derive(Debug, Clone)]
pub struct Auto {
    /// The value.
    pub value: Expr,
    /// What people call it.
    pub name: String,
    /// Rung by rung, how far one unit moves the counts over bins, in weights of which a unit has a fixed number.
    pub moved: Vec<Sensitivity>,
}

/// The weight that one unit divides among the bins or leaves it has rows in, times the rows it may have.
pub(crate) const WEIGHT: i64 = crate::bound::PARTS as i64;

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

/// What one row adds to a measure.
#[derive(Debug, Clone, PartialEq)]
pub enum What {
    /// One, where the expression is there.
    Rows(Option<Expr>),
    /// The same in parts of a row, 1,024 to one: where rows of a unit count for less, and some of them have no value, those that have one count for
    /// fractions.
    Parts(Expr),
    /// One for each user (or unit) with a row.
    Users,
    /// A value on a lattice.
    Sum {
        /// The value.
        value: Expr,
        /// How it is put on the lattice; for a range that is found privately, once that is known.
        place: Place,
    },
    /// One for each different value, of which a unit keeps a few.
    Distinct {
        /// The value.
        value: Expr,
        /// At most so many of one unit in one group.
        most: u64,
    },
    /// One in the leaf that the value falls into.
    Tree {
        /// The value.
        value: Expr,
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
            What::Sum { place: Place::Known(quantise), .. } => {
                self.high.unsigned_abs().max(self.low.unsigned_abs())
                    / quantise.high().unsigned_abs().max(quantise.low().unsigned_abs()).max(1)
            }
            What::Users | What::Sum { .. } => 1,
        }
    }
}

/// How a value is put on a lattice.
#[derive(Debug, Clone, PartialEq)]
pub enum Place {
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
pub(crate) fn quantise_of(place: &Place, found: &[(f64, f64)]) -> Result<Quantise, QueryError> {
    match place {
        Place::Known(quantise) => Ok(quantise.clone()),
        Place::Found { range, shape } => {
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

/// What a question may say about bounding and price, beyond what is declared.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Asking {
    /// ε of the protected rung.
    pub epsilon: Option<f64>,
    /// δ.
    pub delta: Option<f64>,
    /// At most so many groups of one unit.
    pub groups: Option<u64>,
    /// At most so many rows of one unit in one group.
    pub rows: Option<u64>,
    /// The confidence of intervals.
    pub confidence: Option<f64>,
    /// About so many rows in a group: what a preview goes by, which reads none. Nothing else does.
    pub about: Option<f64>,
}
