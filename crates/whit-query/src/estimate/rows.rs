//! Rows of a data set as (user, item, weight), streamed from the engine and added up as they come.

use super::tokens::Token;
use crate::bound::hash::{Role, each_written, hash};
use crate::error::{QueryError, planning, running};
use crate::evaluate::attempt::quietly;
use crate::evaluate::guarded;
use crate::partition::Lookup;
use crate::source::{Patience, Tables};
use crate::whose;
use datafusion::arrow::array::{Array, ArrayRef, AsArray, RecordBatch};
use datafusion::arrow::datatypes::{DataType, Float64Type, Int64Type, Schema};
use datafusion::arrow::row::{RowConverter, SortField};
use datafusion::common::{Column, HashMap};
use datafusion::logical_expr::Expr;
use datafusion::physical_plan::{ExecutionPlan, execute_stream};
use futures::StreamExt;
use std::sync::Arc;
use whit_core::declare::nearest;

/// How many units of weight the heaviest row has.
pub(super) const HEAVIEST: u64 = 1 << 20;

/// What is read of each row.
pub(super) struct Reading<'a> {
    pub(super) dataset: &'a str,
    pub(super) user: &'a str,
    pub(super) item: &'a str,
    pub(super) items: &'a [String],
    /// The hash of the items.
    pub(super) hash: &'a str,
    /// A column of weights and the largest of them; each row weighs 1 without.
    pub(super) weight: Option<(&'a str, f64)>,
}

/// Rows, added up by user and item.
pub(super) struct Gathered {
    pub(super) tokens: Vec<Token>,
    /// By user: a number of the user's key and of the seed, and of nothing else.
    pub(super) marks: Vec<u64>,
}

/// The type of a column; where there is none of that name, the error names the nearest.
pub(super) fn column(schema: &Schema, table: &str, name: &str) -> Result<DataType, QueryError> {
    if let Ok(field) = schema.field_with_name(name) {
        return Ok(field.data_type().clone());
    }
    let names = || schema.fields().iter().map(|field| field.name().as_str());
    let hint = match nearest(name, names()) {
        Some(near) => format!("did you mean `{near}`?"),
        None => format!("it has: {}", names().collect::<Vec<_>>().join(", ")),
    };
    Err(QueryError::asked(format!("`{table}` has no column `{name}`"), hint))
}

impl Reading<'_> {
    /// Whether the columns are there and of a kind that can be read.
    pub(super) fn check(&self, tables: &Tables) -> Result<(), QueryError> {
        let schema = &tables.warehouse().source(self.dataset)?.schema;
        let user = column(schema, self.dataset, self.user)?;
        if !RowConverter::supports_fields(&[SortField::new(user)]) {
            let sentence = format!("`{}.{}` is of a type that has no order", self.dataset, self.user);
            return Err(QueryError::asked(sentence, "declare a user of numbers or text"));
        }
        column(schema, self.dataset, self.item)?;
        if let Some((weight, _)) = self.weight {
            let kind = column(schema, self.dataset, weight)?;
            if !kind.is_numeric() {
                let sentence = format!("`{}.{weight}` is to be added up, but is no number", self.dataset);
                return Err(QueryError::asked(sentence, "name a column of numbers, or count without a weight"));
            }
        }
        // What can never be read is found out here, from types alone.
        tables.runtime().block_on(async { self.engine_plan(tables).await.map(drop) })
    }

    /// Reads all rows that have a user and an item on the list. The marks of users follow from the seed, which nobody may foresee: by them some users are set aside.
    pub(super) fn run(&self, tables: &Tables, seed: u64) -> Result<Gathered, QueryError> {
        // On the caller's thread: the words of a panic may hold values of a row.
        let read = || quietly(|| tables.runtime().block_on(self.stream(tables, seed)));
        let done = match read() {
            Some(Ok(gathered)) => return Ok(gathered),
            _ if tables.runtime().is_stopped() => Some(Err(QueryError::interrupted())),
            _ if Patience::gained(tables.warehouse().context()) => read(),
            failed => failed,
        };
        done.unwrap_or_else(|| Err(QueryError::failed("the rows could not be read to their end: a panic")))
    }

    async fn stream(&self, tables: &Tables, seed: u64) -> Result<Gathered, QueryError> {
        let (plan, context) = (self.engine_plan(tables).await?, tables.warehouse().context().task_ctx());
        let mut rows = execute_stream(plan, context).map_err(|error| running(&error))?;
        let mut pool = Pool::new(seed);
        while let Some(batch) = rows.next().await {
            if tables.runtime().is_stopped() {
                return Err(QueryError::interrupted());
            }
            pool.take(&batch.map_err(|error| running(&error))?, self.weight.map(|(_, most)| most))?;
        }
        pool.compact();
        Ok(Gathered { tokens: pool.tokens, marks: pool.marks })
    }

    /// What is read of each row. An item that is no text, and a weight that is no number, are NULL, and their rows are left out.
    /// The first column is the user, and that is derived again from what the engine makes of it.
    async fn engine_plan(&self, tables: &Tables) -> Result<Arc<dyn ExecutionPlan>, QueryError> {
        let own = |name: &str| Expr::Column(Column::new_unqualified(name));
        let numbers = self.items.iter().zip(0..).map(|(item, number)| (item.as_str(), number));
        let lookup = Lookup::new("whit_item_number", self.hash, numbers, None).udf();
        let text = datafusion::prelude::cast(own(self.item), DataType::Utf8);
        let mut wanted = vec![own(self.user).alias("whit_user"), lookup.call(vec![text]).alias("whit_item")];
        if let Some((weight, _)) = self.weight {
            wanted.push(datafusion::prelude::cast(own(weight), DataType::Float64).alias("whit_weight"));
        }
        let name = datafusion::common::TableReference::bare(self.dataset);
        let table = tables.warehouse().context().table(name).await.map_err(|error| planning(&error))?;
        let known = own("whit_item").is_not_null().and(own("whit_user").is_not_null());
        let rows = table.select(wanted).and_then(|rows| rows.filter(known)).map_err(|error| planning(&error))?;
        let (state, plan) = rows.into_parts();
        let plan = guarded(plan, &state)?;
        let owners = whose::owners(tables.warehouse().declaration(), &tables.elements, &tables.scans);
        let physical = whose::engine_plan_of_rows(&plan, &state, &owners, Some(0), None).await;
        physical.map_err(|error| planning(&error))
    }
}

/// Tokens as they come, added up whenever they have doubled.
struct Pool {
    seed: u64,
    /// By the bytes of a user's key as it is written down, and not by a hash of them: two users are never taken for one.
    numbers: HashMap<Box<[u8]>, u32>,
    marks: Vec<u64>,
    tokens: Vec<Token>,
    compacted: usize,
}

/// So many tokens are kept before they are added up for the first time.
const FIRST: usize = 1 << 20;

impl Pool {
    fn new(seed: u64) -> Self {
        Self { seed, numbers: HashMap::new(), marks: Vec::new(), tokens: Vec::new(), compacted: 0 }
    }

    fn take(&mut self, batch: &RecordBatch, most: Option<f64>) -> Result<(), QueryError> {
        let users = self.users(batch.column(0))?;
        let items = batch.column(1).as_primitive::<Int64Type>();
        let weights = batch.columns().get(2).map(AsArray::as_primitive::<Float64Type>);
        for (row, user) in users.into_iter().enumerate() {
            let weight = match weights.zip(most) {
                None => 1,
                Some((weights, most)) => units(weights.is_valid(row).then(|| weights.value(row)), most),
            };
            if weight > 0 && items.is_valid(row) {
                self.tokens.push(Token { user, item: items.value(row) as u32, weight });
            }
        }
        if self.tokens.len() >= (2 * self.compacted).max(FIRST) {
            self.compact();
        }
        Ok(())
    }

    /// The numbers of a column of users. A new user gets the next number, and a mark that depends on the key and the seed alone.
    fn users(&mut self, column: &ArrayRef) -> Result<Vec<u32>, QueryError> {
        let Self { seed, numbers, marks, .. } = self;
        let mut found = Vec::with_capacity(column.len());
        // Rows of one user often stand together.
        let (mut last, mut known) = (Vec::new(), None);
        let each = |key: &[u8]| {
            let number = known.filter(|_| last == key).unwrap_or_else(|| {
                last.clear();
                last.extend_from_slice(key);
                numbers.get(key).copied().unwrap_or_else(|| {
                    numbers.insert(key.into(), marks.len() as u32);
                    marks.push(hash(key, *seed, Role::User));
                    marks.len() as u32 - 1
                })
            });
            known = Some(number);
            found.push(number);
        };
        // An error of the engine's may speak of a value.
        let failed = |_| QueryError::failed("users cannot be told apart by the type of their column");
        each_written(std::slice::from_ref(column), column.len(), each).map_err(failed)?;
        Ok(found)
    }

    /// Adds up the weights of one user and item.
    fn compact(&mut self) {
        self.tokens.sort_unstable_by_key(|token| (token.user, token.item));
        self.tokens.dedup_by(|next, kept| {
            let same = (next.user, next.item) == (kept.user, kept.item);
            if same {
                kept.weight = kept.weight.saturating_add(next.weight);
            }
            same
        });
        self.compacted = self.tokens.len();
    }
}

/// A weight in whole units, of which `most` has 2^20: clamped to what is declared, row by row; NULL and NaN weigh nothing.
fn units(weight: Option<f64>, most: f64) -> u64 {
    let weight = weight.filter(|weight| !weight.is_nan()).unwrap_or(0.0).clamp(0.0, most);
    ((weight / most * HEAVIEST as f64).round() as u64).min(HEAVIEST)
}

#[cfg(test)]
mod tests {
    use super::*;
    use datafusion::arrow::array::{Float64Array, Int64Array, StringArray, StringViewArray};

    fn batch(users: ArrayRef, items: Vec<i64>, weights: Option<Vec<f64>>) -> RecordBatch {
        let mut columns: Vec<(&str, ArrayRef)> = vec![("u", users), ("i", Arc::new(Int64Array::from(items)))];
        if let Some(weights) = weights {
            columns.push(("w", Arc::new(Float64Array::from(weights))));
        }
        RecordBatch::try_from_iter(columns).unwrap()
    }

    #[test]
    fn rows_are_added_up_by_user_and_item_in_any_order() {
        let users = |names: &[&str]| Arc::new(StringArray::from(names.to_vec())) as ArrayRef;
        let mut pool = Pool::new(7);
        pool.take(&batch(users(&["b", "a", "b"]), vec![1, 1, 1], None), None).unwrap();
        pool.take(&batch(users(&["a", "b"]), vec![0, 1], None), None).unwrap();
        pool.compact();
        let found: Vec<(u32, u32, u64)> = pool.tokens.iter().map(|t| (t.user, t.item, t.weight)).collect();
        assert_eq!(found, [(0, 1, 3), (1, 0, 1), (1, 1, 1)]);
        // Written down once: another engine, or another version of this one, sets the same users aside.
        assert_eq!(pool.marks, [0x2bdc_b552_4e90_612a, 0xd148_0277_a870_9a63]);
        // The mark of a user is the same wherever and however the user stands.
        let mut other = Pool::new(7);
        let views = Arc::new(StringViewArray::from(vec!["x", "a"])) as ArrayRef;
        other.take(&batch(views, vec![0, 0], None), None).unwrap();
        assert_eq!(other.marks[1], pool.marks[1]);
        assert_ne!(other.marks[0], pool.marks[1]);
        let mut keyed = Pool::new(8);
        keyed.take(&batch(users(&["b"]), vec![0], None), None).unwrap();
        assert_ne!(keyed.marks[0], pool.marks[0], "who is set aside follows from a seed that nobody may foresee");
    }

    #[test]
    fn weights_are_clamped_and_counted_in_units() {
        let most = 8.0;
        for (weight, expected) in [
            (Some(8.0), HEAVIEST),
            (Some(4.0), HEAVIEST / 2),
            (Some(1e300), HEAVIEST),
            (Some(f64::INFINITY), HEAVIEST),
            (Some(-3.0), 0),
            (Some(f64::NAN), 0),
            (None, 0),
        ] {
            assert_eq!(units(weight, most), expected, "{weight:?}");
        }
        let users = Arc::new(Int64Array::from(vec![5, 5, 6])) as ArrayRef;
        let mut pool = Pool::new(7);
        pool.take(&batch(users, vec![0, 0, 0], Some(vec![2.0, 6.0, f64::NAN])), Some(most)).unwrap();
        pool.compact();
        assert_eq!(pool.tokens, [Token { user: 0, item: 0, weight: HEAVIEST }]);
    }
}
