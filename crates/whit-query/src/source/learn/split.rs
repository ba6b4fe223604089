//! Rows that are set aside to try a model on, by a hash of who they are of or of what they are.
//!
//! # Why
//! Whether a row is set aside is a function of its own user, or of its own values, and of a seed that is written in the training file: no row decides about another. So rows that are learned from
//! are chosen as by a condition over single rows, and a unit that comes, goes or changes moves no row of another from one part to the other. Where rows stay in view, the hash is of columns that
//! are public, so that which rows there are stays public too.

use crate::bound::hash::{Role, hashes};
use crate::error::QueryError;
use crate::source::Source;
use datafusion::arrow::array::{ArrayRef, BooleanArray, RecordBatch};
use datafusion::arrow::compute::filter_record_batch;
use serde_json::{Value, json};
use whit_account::meaning::number;
use whit_core::Kind;

/// Whose hash decides.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SplitBy {
    /// The user's: all rows of one are in one part.
    User,
    /// The row's own values: rows that agree in all of them are in one part.
    Row,
}

/// One of the two parts into which rows fall.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SplitPart {
    /// Whose hash decides.
    pub by: SplitBy,
    /// The share that is set aside, between 0 and 1.
    pub test: f64,
    /// Another seed sets others aside.
    pub seed: u64,
    /// Whether this is the part that is set aside.
    pub aside: bool,
}

impl SplitPart {
    /// The columns whose values are hashed. All that there are, by name, and where rows stay in view those of them that do.
    pub(super) fn columns(&self, source: &Source, user: Option<&str>) -> Result<Vec<String>, QueryError> {
        let dataset = &source.dataset;
        match (self.by, user) {
            (SplitBy::User, Some(user)) => Ok(vec![user.to_owned()]),
            (SplitBy::User, None) => Err(QueryError::asked(
                format!("rows are split by user, and no user of `{}` is declared", dataset.name),
                "declare unit.user in whit.toml, or write split = { by = \"row\", test = 0.2 }",
            )),
            (SplitBy::Row, _) => {
                let shown = |name: &str| match &dataset.unit {
                    Some(unit) if unit.protect == Kind::Feature => unit.public.iter().any(|public| public == name),
                    Some(unit) if unit.protect == Kind::Label => unit.label.as_deref() != Some(name),
                    _ => true,
                };
                let fields = source.schema.fields().iter().map(|field| field.name());
                let mut names: Vec<String> = fields.filter(|name| shown(name)).cloned().collect();
                names.sort();
                if names.is_empty() {
                    return Err(QueryError::asked(
                        format!("rows of `{}` are split by what is public of them, and nothing is", dataset.name),
                        "name public columns in unit.public, or split by user",
                    ));
                }
                Ok(names)
            }
        }
    }

    /// Which rows there are, of those of a condition.
    pub(super) fn meaning(&self, condition: &Value) -> Value {
        let by = match self.by {
            SplitBy::User => "user",
            SplitBy::Row => "row",
        };
        let split = json!({ "by": by, "share": number(self.test), "seed": self.seed, "aside": self.aside });
        json!({ "rows": condition, "split": split })
    }

    /// The rows of a batch that are in this part, by the columns from a place on.
    pub(super) fn of(&self, batch: &RecordBatch, first: usize) -> Result<RecordBatch, QueryError> {
        // An error of the engine's may speak of a value.
        let wrong = || QueryError::failed("rows cannot be told apart, so that they could be split");
        let columns: &[ArrayRef] = &batch.columns()[first..];
        let numbers = hashes(columns, batch.num_rows(), self.seed, Role::Split).map_err(|_| wrong())?;
        let mask: BooleanArray = numbers.into_iter().map(|number| Some(self.has(number))).collect();
        filter_record_batch(batch, &mask).map_err(|_| wrong())
    }

    fn has(&self, number: u64) -> bool {
        let limit = (self.test * 2_f64.powi(64)) as u64; // a share of 1 or more would be all
        (number < limit) == self.aside
    }
}
