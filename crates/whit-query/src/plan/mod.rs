//! From SQL to a plan of which the sensitive part is isolated and typed.
//!
//! A question becomes [`Part`]s, each one private aggregate over rows that are known to belong to units, and what is
//! done with their released tables afterwards, which is ordinary SQL again. Everything in between is typed:
//! `track` follows the unit through the relational algebra, [`range`] the bounds of a value, [`aggregate`] turns SQL
//! aggregates into [`Measure`]s, integer vectors of which it is known how far one unit moves them.
//!
//! An operator, a function or a type that planning does not know is refused, never passed through.

pub mod aggregate;
mod asked;
pub mod call;
mod clock;
mod condition;
mod dialect;
mod heeded;
pub mod meaning;
pub(crate) mod measure;
mod misread;
pub(crate) mod outline;
mod question;
pub mod range;
mod sensible;
mod sets;
pub(crate) mod shared;
pub(crate) mod slices;
pub(crate) mod title;
pub(crate) mod track;

pub use crate::bound::quantise::Shape;
pub use aggregate::Statistic;
pub use measure::{Leaves, Measure, Quantisation, RowExpr, What};

use crate::error::QueryError;
use crate::whose::Owners;
use datafusion::arrow::datatypes::DataType;
use datafusion::logical_expr::{Expr, LogicalPlan};
use datafusion::scalar::ScalarValue;
use whit_core::release::CONFIDENCE;
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
    /// All tables that the question reads, wherever it names them.
    pub(crate) tables: Vec<String>,
    /// What is done with the released tables: each part is a scan of a table called by its number.
    pub(crate) after: LogicalPlan,
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
    pub(crate) rows: LogicalPlan,
    /// The private tables that may be among them, and what of each says whose a row is.
    pub(crate) owners: Owners,
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
    /// How many shares of the price each of them gets, where questions that are asked together say so; nothing where each gets one.
    pub weights: Vec<f64>,
    /// Ranges that are found privately first.
    pub autos: Vec<Auto>,
    /// What is made of the measures, one for each aggregate of the question.
    pub statistics: Vec<Statistic>,
    /// For each of them, whether caps may leave something out of it: then it is of what they leave.
    pub after_caps: Vec<bool>,
    /// Where caps may leave something out: how much is released too.
    pub kept: Option<Kept>,
    /// The names and types of the output columns, keys first.
    pub(crate) output: Vec<(String, DataType)>,
    /// For each column of the question's aggregate, which of the output columns it is.
    pub places: Vec<usize>,
    /// How many users, or units where no user is declared, have a key: what decides whether a private key shows.
    pub presence: Option<Presence>,
}

/// How many rows there are, and how many count after caps: released along with an answer, for a small share of its price.
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
    pub(crate) expr: Expr,
    /// What people call it.
    pub name: String,
    /// Its type.
    pub(crate) data_type: DataType,
    /// The values that it may take, where they are public.
    pub(crate) listed: Option<Vec<ScalarValue>>,
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
    pub(crate) value: Expr,
    /// What people call it.
    pub name: String,
    /// Rung by rung, how far one unit moves the counts over bins, in weights of which a unit has a fixed number.
    pub moved: Vec<Sensitivity>,
}

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

impl Asking {
    /// Refuses limits with which nothing could be asked.
    pub(crate) fn check_limits(&self) -> Result<(), QueryError> {
        let none = [("groups", self.groups), ("rows", self.rows)].into_iter().find(|(_, most)| *most == Some(0));
        if let Some((setting, _)) = none {
            return Err(QueryError::asked(
                format!("with `asking.{setting} = 0` nothing of anybody would count"),
                format!("give a number from 1 on, such as `asking.{setting} = 1`"),
            ));
        }
        if let Some(about) = self.about.filter(|about| !(1.0..=f64::MAX).contains(about)) {
            return Err(QueryError::asked(
                format!("`asking.about = {about}` is no number of rows"),
                "give one from 1 on, such as `asking.about = 1000`",
            ));
        }
        Ok(())
    }

    /// How often intervals are to hold: as it is asked for, or as usual.
    pub(crate) fn confidence(&self) -> Result<f64, QueryError> {
        let confidence = self.confidence.unwrap_or(CONFIDENCE);
        if confidence > 0.0 && confidence < 1.0 {
            return Ok(confidence);
        }
        let sentence = format!("the confidence is {confidence}, but it must be between 0 and 1");
        Err(QueryError::asked(sentence, "0.95 is usual"))
    }
}
