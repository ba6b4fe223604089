//! What rows and expressions say of one another: tables by their numbers, columns by where they come from.

use crate::error::QueryError;
use datafusion::common::{Column, DFSchema};
use datafusion::logical_expr::LogicalPlan;
use serde_json::Value;

/// Numbers for tables, in the order in which they are met, and the rows around a sub-query.
pub(super) struct Numbers<'a> {
    next: u32,
    /// What a sub-query inside of an expression means.
    inside: fn(&LogicalPlan, &mut Self) -> Result<Value, QueryError>,
    /// The columns of the rows for which a sub-query is asked, the nearest last.
    around: Vec<(DFSchema, Vec<Value>)>,
    /// How the rows of a table find their users, where that is not in the table.
    users: &'a dyn Fn(&str) -> Option<Value>,
}

impl<'a> Numbers<'a> {
    pub(super) fn of(
        inside: fn(&LogicalPlan, &mut Self) -> Result<Value, QueryError>,
        users: &'a dyn Fn(&str) -> Option<Value>,
    ) -> Self {
        Self { next: 0, inside, around: Vec::new(), users }
    }

    /// How the rows of a table find their users.
    pub(super) fn users_of(&self, table: &str) -> Option<Value> {
        (self.users)(table)
    }

    /// What a sub-query means that stands inside of an expression over these columns.
    pub(super) fn subquery(&mut self, plan: &LogicalPlan, over: &Over<'_>) -> Result<Value, QueryError> {
        self.around.push((over.schema.clone(), over.columns.to_vec()));
        let said = (self.inside)(plan, self);
        self.around.pop();
        said
    }

    /// A column of the rows around a sub-query: of the nearest that have it, as names are looked up in SQL.
    pub(super) fn outer(&self, column: &Column) -> Result<Value, QueryError> {
        let found = self.around.iter().rev().find_map(|(schema, columns)| find(schema, columns, column));
        found.ok_or_else(|| unknown(column))
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
        find(self.schema, self.columns, column).ok_or_else(|| unknown(column))
    }
}

fn find(schema: &DFSchema, columns: &[Value], column: &Column) -> Option<Value> {
    schema.maybe_index_of_column(column).and_then(|place| columns.get(place)).cloned()
}

fn unknown(column: &Column) -> QueryError {
    QueryError::asked(
        format!("`{}` is not known where it stands", column.name),
        "name the table before it, as in t.column, or take it into the sub-query",
    )
}

/// What has no words here is no question: two of them could be given one answer.
pub(super) fn wordless(what: &str, hint: &'static str) -> QueryError {
    QueryError::asked(format!("{what} cannot be told from others of its kind, so its answer could not be stored"), hint)
}
