//! Rows and expressions of the engine in words of our own, which have neither its version nor its spelling: what [`crate::plan`] says that a question means, and
//! whoever learns what a condition on rows means, is made of them.

mod expression;
mod numbers;
mod rows;
mod value;

pub(crate) use value::{kind, literal as constant};

use crate::error::QueryError;
use crate::evaluate::attempt::quietly;
use datafusion::logical_expr::{Expr, LogicalPlan};
use datafusion::prelude::SessionContext;
use numbers::Numbers;
use rows::Rows;
use serde_json::Value;

/// Rows, and what is asked of them.
pub(crate) struct Canonical<'a> {
    plan: &'a LogicalPlan,
    context: &'a SessionContext,
    rows: Rows,
    numbers: Numbers<'a>,
}

impl<'a> Canonical<'a> {
    /// Of rows whose constants are computed, and of tables whose rows find their users in this way, where they do not have them.
    pub(crate) fn of(
        plan: &'a LogicalPlan,
        context: &'a SessionContext,
        users: &'a dyn Fn(&str) -> Option<Value>,
    ) -> Result<Self, QueryError> {
        let mut numbers = Numbers::of(rows::inside, users);
        let rows = rows::of(plan, &mut numbers)?;
        Ok(Self { plan, context, rows, numbers })
    }

    /// What the rows are.
    pub(crate) fn rows(&self) -> Value {
        self.rows.json()
    }

    /// What each column of the rows is, in the order of the plan's own.
    pub(crate) fn columns(&self) -> Vec<Value> {
        self.rows.columns.clone()
    }

    /// What an expression over these rows means.
    pub(crate) fn expression(&mut self, expr: &Expr) -> Result<Value, QueryError> {
        let state = self.context.state();
        let computed = quietly(|| crate::evaluate::computed_over(expr.clone(), self.plan.schema(), &state));
        let computed = computed.and_then(Result::ok).unwrap_or_else(|| expr.clone());
        expression::of(&computed, &self.rows.over(self.plan.schema()), &mut self.numbers)
    }
}
