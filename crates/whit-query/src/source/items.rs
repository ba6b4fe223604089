//! A column of lists opened up: each item is a row, with the rest of its row beside it.
//!
//! What a row becomes is a function of that row alone, and all of it belongs to whom the row belongs to; caps are applied to what comes out, as to any rows. A row whose list is
//! empty or missing is none.

use super::text::Scanned;
use crate::error::QueryError;
use crate::translate::in_words;
use datafusion::arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use datafusion::catalog::{Session, TableProvider};
use datafusion::common::{NullHandling, UnnestOptions};
use datafusion::error::Result;
use datafusion::logical_expr::{Expr, TableType};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::projection::ProjectionExec;
use datafusion::physical_plan::unnest::{ListUnnest, UnnestExec};
use std::sync::Arc;

/// A table of which one column is opened.
#[derive(Debug)]
pub(super) struct ItemTable {
    rows: Arc<dyn TableProvider>,
    /// The place of the column.
    list: usize,
    schema: SchemaRef,
}

impl ItemTable {
    /// Opens a column of a table; `whose` is what it belongs to, for messages.
    pub(super) fn new(rows: Arc<dyn TableProvider>, whose: &str, column: &str) -> Result<Self, QueryError> {
        let whole = rows.schema();
        let Ok(list) = whole.index_of(column) else {
            let hint = "name a column of lists, of Parquet or NDJSON files; in NDJSON with the type of its items";
            return Err(QueryError::asked(format!("`{whose}` has no column `{column}`, which `open` names"), hint));
        };
        let item = match whole.field(list).data_type() {
            DataType::List(item) | DataType::LargeList(item) | DataType::FixedSizeList(item, _) => {
                item.data_type().clone()
            }
            other => {
                let sentence =
                    format!("`open` of `{whose}` names `{column}`, which is no list, but {}", in_words(other));
                return Err(QueryError::asked(sentence, "name a column of lists, or leave `open` out"));
            }
        };
        let schema = with(&whole, list, &item);
        Ok(Self { rows, list, schema })
    }
}

/// The columns with another type at one place.
fn with(schema: &Schema, place: usize, kind: &DataType) -> SchemaRef {
    let field = |(at, field): (usize, &Arc<Field>)| {
        if at == place { Arc::new(Field::new(field.name(), kind.clone(), true)) } else { Arc::clone(field) }
    };
    Arc::new(Schema::new(schema.fields().iter().enumerate().map(field).collect::<Vec<_>>()))
}

impl TableProvider for ItemTable {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    fn table_type(&self) -> TableType {
        TableType::Base
    }

    fn scan<'s, 'a, 'b, 'c, 'all>(
        &'s self,
        state: &'a dyn Session,
        projection: Option<&'b Vec<usize>>,
        _: &'c [Expr],
        _: Option<usize>,
    ) -> Scanned<'all>
    where
        's: 'all,
        'a: 'all,
        'b: 'all,
        'c: 'all,
    {
        // No filter goes below: what it says is of items, and not of lists.
        let wanted = projection.cloned().unwrap_or_else(|| (0..self.schema.fields().len()).collect());
        Box::pin(async move {
            let mut read = wanted.clone();
            if !read.contains(&self.list) {
                read.push(self.list);
            }
            let list = read.iter().position(|column| *column == self.list).unwrap_or_default();
            let rows = self.rows.scan(state, Some(&read), &[], None).await?;
            let schema = Arc::new(self.schema.project(&read)?);
            let options = UnnestOptions { null_handling: NullHandling::Drop, ..UnnestOptions::default() };
            let opened = ListUnnest { index_in_input_schema: list, depth: 1 };
            let items: Arc<dyn ExecutionPlan> =
                Arc::new(UnnestExec::new(rows, vec![opened], Vec::new(), Arc::clone(&schema), options)?);
            if read.len() == wanted.len() {
                return Ok(items);
            }
            let own = |(place, field): (usize, &Arc<Field>)| {
                (Arc::new(Column::new(field.name(), place)) as Arc<dyn PhysicalExpr>, field.name().clone())
            };
            let own: Vec<_> = schema.fields().iter().enumerate().take(wanted.len()).map(own).collect();
            Ok(Arc::new(ProjectionExec::try_new(own, items)?) as Arc<dyn ExecutionPlan>)
        })
    }
}
