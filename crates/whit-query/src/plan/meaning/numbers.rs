//! What rows and expressions say of one another: tables by their numbers, columns by where they come from.

use crate::error::QueryError;
use datafusion::common::{Column, DFSchema};
use datafusion::logical_expr::LogicalPlan;
use serde_json::{Value, json};

/// Numbers for tables, in the order in which they are met, and the question in which they are.
pub(super) struct Numbers {
    next: u32,
    question: String,
    /// What a sub-query inside of an expression means.
    inside: fn(&LogicalPlan, &mut Self) -> Result<Value, QueryError>,
}

impl Numbers {
    pub(super) fn of(question: &str, inside: fn(&LogicalPlan, &mut Self) -> Result<Value, QueryError>) -> Self {
        Self { next: 0, question: question.to_owned(), inside }
    }

    /// What a sub-query means that stands inside of an expression.
    pub(super) fn subquery(&mut self, plan: &LogicalPlan) -> Result<Value, QueryError> {
        (self.inside)(plan, self)
    }

    /// What only the engine has words for. Its words leave things out (what stands in a sub-query, what an outer column is, where a text ends), so that two things may
    /// have the same: the whole question stands next to them, and a question with such words means the same as itself alone.
    pub(super) fn engine(&self, words: &str) -> Value {
        json!({ "engine": words, "version": datafusion::DATAFUSION_VERSION, "question": self.question })
    }

    pub(super) fn next(&mut self) -> u32 {
        self.next += 1;
        self.next - 1
    }
}

/// Columns by name.
pub(super) struct Over<'a> {
    pub(super) schema: &'a DFSchema,
    pub(super) columns: &'a [Value],
}

impl Over<'_> {
    pub(super) fn column(&self, column: &Column) -> Result<Value, QueryError> {
        let place = self.schema.maybe_index_of_column(column);
        place.and_then(|place| self.columns.get(place)).cloned().ok_or_else(|| {
            QueryError::asked(
                format!("`{}` is not known where it stands", column.name),
                "name the table before it, as in t.column, or take it into the sub-query",
            )
        })
    }
}
