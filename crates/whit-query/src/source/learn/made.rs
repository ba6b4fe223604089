//! Features and targets as the engine computes them: columns, and expressions in SQL over one row.
//!
//! An expression passes the same gate as those of questions ([`allow`](crate::evaluate::allow)): it reads its row and nothing else, and is NULL where it cannot be computed.

use super::own;
use crate::canonical::Canonical;
use crate::error::{QueryError, planning, running};
use crate::source::Tables;
use crate::source::fit::column;
use crate::source::spelling::Spelling;
use crate::translate::in_our_words;
use datafusion::arrow::array::AsArray;
use datafusion::arrow::datatypes::DataType;
use datafusion::common::{Column, DFSchema, TableReference};
use datafusion::logical_expr::{Expr, LogicalPlan, LogicalPlanBuilder};
use serde_json::Value;
use std::collections::BTreeSet;

/// What to write where a condition cannot be read.
pub(super) const CONDITION: &str = "write a condition over columns of the table, such as split = 'train'";

/// What to write where an expression cannot be.
const EXPRESSION: &str = "write a column of the table, or SQL over one row, such as minutes / 60.0";

/// A column or an expression, as it is computed.
#[derive(Debug, Clone)]
pub(super) struct Made {
    pub(super) expr: Expr,
    pub(super) kind: DataType,
    /// The columns that it reads.
    pub(super) reads: Vec<String>,
    /// What it means, however it is spelled; null where it is a column.
    pub(super) meaning: Value,
}

/// Whether somebody who wrote this meant a column.
fn is_a_name(text: &str) -> bool {
    text.chars().all(|letter| letter.is_alphanumeric() || letter == '_')
}

impl Tables {
    /// Columns and expressions of a data set; `whose` is the key of the training file that has them.
    pub(super) fn made(&self, dataset: &str, texts: &[&str], whose: &str) -> Result<Vec<Made>, QueryError> {
        let source = self.warehouse().source(dataset)?;
        let there = |text: &str| source.schema.field_with_name(text).is_ok();
        let mut computed = Vec::new();
        for text in texts.iter().filter(|text| !there(text)) {
            if is_a_name(text) {
                column(source, text, whose)?; // says what is wrong
            }
            computed.push((*text, self.row_wise(dataset, text, EXPRESSION)?));
        }
        let computed = self.computed(dataset, computed, whose)?;
        let mut computed = computed.into_iter();
        let one = |text: &&str| {
            let plain = column(source, text, whose).ok().filter(|_| there(text));
            plain.map_or_else(
                || computed.next().ok_or_else(|| QueryError::failed("an expression was lost")),
                |kind| {
                    let (expr, reads) = (own(text), vec![(*text).to_owned()]);
                    Ok(Made { expr, kind: kind.clone(), reads, meaning: Value::Null })
                },
            )
        };
        texts.iter().map(one).collect()
    }

    /// Expressions with their types and what they mean. They are tried on made-up rows, so that one which can never be computed is not paid for.
    fn computed(&self, dataset: &str, exprs: Vec<(&str, Expr)>, whose: &str) -> Result<Vec<Made>, QueryError> {
        if exprs.is_empty() {
            return Ok(Vec::new());
        }
        let table = self.runtime().block_on(self.warehouse().context().table(TableReference::bare(dataset)));
        let table = table.map_err(|error| planning(&error))?.into_unoptimized_plan();
        let context = self.warehouse().context();
        let mut made = Vec::new();
        for (text, expr) in exprs {
            let never = |words: String| {
                QueryError::asked(format!("`{text}`, which `{whose}` has, cannot be computed: {words}"), EXPRESSION)
            };
            let plan = LogicalPlanBuilder::from(table.clone()).project([expr.clone().alias("whit_0")]);
            let plan = plan.and_then(LogicalPlanBuilder::build);
            let plan = plan.map_err(|error| never(in_our_words(&error.strip_backtrace()).sentence))?;
            let analysed = crate::evaluate::guarded(plan.clone(), &context.state());
            let kind = analysed.map_err(|error| never(error.sentence))?.schema().field(0).data_type().clone();
            self.rehearse_rows(&plan).map_err(never)?;
            let meaning = Canonical::of(&table, context, &|_| None)?.expression(&expr)?;
            let reads: BTreeSet<String> = expr.column_refs().into_iter().map(|column| column.name.clone()).collect();
            made.push(Made { expr, kind, reads: reads.into_iter().collect(), meaning });
        }
        Ok(made)
    }

    /// Tries a plan on made-up rows; or says in words why it can never be computed.
    pub(super) fn rehearse_rows(&self, plan: &LogicalPlan) -> Result<(), String> {
        let tried = crate::evaluate::samples::in_place_of(plan);
        let tried = tried.map_err(|error| in_our_words(&error.strip_backtrace()).sentence)?;
        self.collect(&tried).map(drop).map_err(|error| error.sentence)
    }

    /// An expression over single rows of a data set; what it is hinted to be where it is none.
    pub(super) fn row_wise(&self, dataset: &str, sql: &str, hint: &str) -> Result<Expr, QueryError> {
        let schema = self.warehouse().source(dataset)?.schema.as_ref().clone();
        let schema = DFSchema::try_from(schema).map_err(|error| planning(&error))?;
        let made = Spelling::expression(&self.warehouse().context().state(), sql, &schema);
        let expr = made.map_err(|error| {
            QueryError::asked(
                format!("`{sql}` cannot be read: {}", in_our_words(&error.strip_backtrace()).sentence),
                hint,
            )
        })?;
        let mut never = |_: &LogicalPlan| Ok(false);
        crate::evaluate::allow::expression(expr, &mut never)
    }

    /// The values of a column of a public table, in order.
    pub(super) fn public_keys(&self, table: &str, name: &str) -> Result<Vec<String>, QueryError> {
        let source = self.warehouse().source(table)?;
        if !source.dataset.public {
            return Err(QueryError::asked(
                format!("`{table}` is not declared public, so its values may not be named"),
                "take the keys from a table with `public = true`, or list them",
            ));
        }
        column(source, name, "keys")?;
        let read = async {
            let frame = self.warehouse().context().table(TableReference::bare(table)).await?;
            let text = datafusion::prelude::cast(Expr::Column(Column::new_unqualified(name)), DataType::Utf8);
            frame.select(vec![text.alias("key")])?.distinct()?.collect().await
        };
        let batches = self.runtime().block_on(read).map_err(|error| running(&error))?;
        let texts = batches.iter().flat_map(|batch| batch.column(0).as_string::<i32>().iter().flatten());
        let keys: BTreeSet<String> = texts.map(str::to_owned).collect(); // sorted: the engine has no order of its own
        Ok(keys.into_iter().collect())
    }
}
