//! The equalities of a join: where they stand, and whether both sides are compared as they are.

use crate::error::{QueryError, planning};
use datafusion::arrow::datatypes::DataType;
use datafusion::logical_expr::utils::{conjunction, find_valid_equijoin_key_pair, split_conjunction_owned};
use datafusion::logical_expr::{BinaryExpr, Expr, Join, Operator};

/// Whether two types are of one kind, so that the engine compares their values as they are.
pub(super) fn of_one_kind(left: &DataType, right: &DataType) -> bool {
    let kind = |kind: &DataType| match kind {
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => Some(0),
        kind if kind.is_integer() => Some(1),
        _ => None,
    };
    let plain = |kind: &DataType| match kind {
        DataType::Dictionary(_, inner) => inner.as_ref().clone(),
        other => other.clone(),
    };
    let (left, right) = (plain(left), plain(right));
    left == right || (kind(&left).is_some() && kind(&left) == kind(&right))
}

/// A join whose equalities all stand in `on`, where SQL may have left them in the filter.
pub(super) fn sorted_out(join: &Join) -> Result<Join, QueryError> {
    let mut join = join.clone();
    let Some(filter) = join.filter.take() else { return Ok(join) };
    let mut rest = Vec::new();
    for condition in split_conjunction_owned(filter) {
        let pair = match &condition {
            Expr::BinaryExpr(BinaryExpr { left, op: Operator::Eq, right }) => {
                find_valid_equijoin_key_pair(left, right, join.left.schema(), join.right.schema())
                    .map_err(|error| planning(&error))?
            }
            _ => None,
        };
        match pair {
            Some(pair) => join.on.push(pair),
            None => rest.push(condition),
        }
    }
    join.filter = conjunction(rest);
    Ok(join)
}
