//! `COUNT(DISTINCT x)`, also where it is called `APPROX_DISTINCT(x)`: what is released has noise in either case.

use super::call::Asked;
use super::count::CountEstimator;
use super::part::Draft;
use super::{Aggregate, Statistic};
use crate::error::QueryError;
use crate::plan::track::safe_value;
use crate::plan::{Grain, Measure, RowExpr, What};
use datafusion::arrow::datatypes::DataType;
use datafusion::functions_aggregate::count::count_udaf;
use datafusion::logical_expr::Expr;

pub(super) struct Distinct;

impl Aggregate for Distinct {
    fn names(&self) -> &'static [&'static str] {
        &["count", "approx_distinct"]
    }

    fn distinct(&self) -> bool {
        true
    }

    fn exact(&self, asked: &Asked<'_>, _: &[DataType]) -> Option<Expr> {
        if asked.name() == "count" {
            return Some(asked.expr.clone());
        }
        let mut call = asked.call.clone();
        (call.func, call.params.distinct) = (count_udaf(), true);
        Some(Expr::AggregateFunction(call).alias(asked.expr.schema_name().to_string()))
    }

    fn plan(&self, asked: &Asked<'_>, draft: &mut Draft<'_>) -> Result<Statistic, QueryError> {
        let argument = asked.argument.ok_or_else(|| asked.refused("COUNT(DISTINCT) of a constant"))?;
        let name = asked.title.clone();
        let tag = draft.input.tag_of(argument, draft.around);
        if tag.user && draft.grain != Grain::Row && asked.filter.is_none() {
            let moved = draft.users_moved()?;
            let users = Measure { what: What::Users, low: 0, high: 1, moved, name };
            return Ok(Statistic::noisy(CountEstimator(draft.add(users))));
        }
        let most = draft.rows()?;
        let high = i64::try_from(most).map_err(|_| asked.refused("the cap on rows does not fit into 63 bits"))?;
        // A value that others have too may stay when this unit goes: what moves is at most what a count would.
        let moved = draft.of_rows(0, 1)?;
        let value = asked.conditional(safe_value(argument, draft.around)?)?;
        let what = What::Distinct { value: RowExpr(value), most };
        Ok(Statistic::noisy(CountEstimator(draft.add(Measure { what, low: 0, high, moved, name }))))
    }
}
