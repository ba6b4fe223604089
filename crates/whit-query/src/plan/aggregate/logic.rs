//! `BOOL_AND(x)` and `BOOL_OR(x)`: exact over public columns, and without a private form.

use super::call::{Asked, no_private_form};
use super::part::Draft;
use super::{Aggregate, Statistic};
use crate::error::QueryError;
use datafusion::arrow::datatypes::DataType;
use datafusion::logical_expr::Expr;

pub(super) struct Logic;

impl Aggregate for Logic {
    fn names(&self) -> &'static [&'static str] {
        &["bool_and", "bool_or"]
    }

    fn inside(&self) -> &'static [&'static str] {
        &["bool_and", "bool_or"]
    }

    fn exact(&self, asked: &Asked<'_>, _: &[DataType]) -> Option<Expr> {
        Some(asked.expr.clone())
    }

    fn plan(&self, asked: &Asked<'_>, _: &mut Draft<'_>) -> Result<Statistic, QueryError> {
        Err(no_private_form(asked.name()))
    }
}
