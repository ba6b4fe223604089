//! `COUNT(DISTINCT x)`, also where it is called `APPROX_DISTINCT(x)`: what is released has noise in either case. `SUM(DISTINCT x)` of whole numbers between declared bounds.

use super::call::Asked;
use super::count::CountEstimator;
use super::part::Draft;
use super::sum::{SumEstimator, are_whole};
use super::{Aggregate, Statistic};
use crate::bound::quantise::{Quantise, Shape};
use crate::error::QueryError;
use crate::plan::range::Range;
use crate::plan::track::{safe_value, type_of};
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
        let what = What::Distinct { value: RowExpr(value), most, worth: None };
        Ok(Statistic::noisy(CountEstimator(draft.add(Measure { what, low: 0, high, moved, name }))))
    }
}

/// `SUM(DISTINCT x)`: each whole number between the bounds counts once, whoever has it.
///
/// A unit that comes adds those of its values that nobody else has, and one that goes takes as much: some of at most as many as it keeps, each between the bounds. So it moves the
/// sum no further than it would move `SUM(x)`, of which 0 is taken to be a part.
pub(super) struct DistinctSum;

impl Aggregate for DistinctSum {
    fn names(&self) -> &'static [&'static str] {
        &["sum"]
    }

    fn distinct(&self) -> bool {
        true
    }

    fn exact(&self, asked: &Asked<'_>, types: &[DataType]) -> Option<Expr> {
        are_whole(types).then(|| asked.expr.clone())
    }

    fn plan(&self, asked: &Asked<'_>, draft: &mut Draft<'_>) -> Result<Statistic, QueryError> {
        let argument = asked.value()?;
        let whole = type_of(argument, draft.input)?.is_integer();
        let (low, high) = match draft.range_of(argument, &asked.title)? {
            Range::Known { low, high } if whole => (low.ceil(), high.floor()),
            Range::Known { .. } => return Err(asked.refused("different fractions are too many to be told apart")),
            Range::Auto => return Err(asked.refused("its bounds have to be declared, and not found")),
        };
        let worth = Quantise::of(low, high, Shape::Plain, true)?;
        if worth.step() != 1.0 {
            return Err(asked.refused("its bounds are too far apart for each whole number to stay one"));
        }
        let most = draft.rows()?;
        let each = (worth.low().min(0), worth.high().max(0));
        let of_many = |end: i64| i64::try_from(most).ok().and_then(|most| end.checked_mul(most));
        let ends = of_many(each.0).zip(of_many(each.1));
        let ends = ends.filter(|(low, high)| low.unsigned_abs().max(high.unsigned_abs()) < 1 << 55);
        let (low, high) = ends.ok_or_else(|| {
            asked.refused("one unit's sum may leave 55 bits; declare smaller caps or narrower bounds")
        })?;
        let moved = draft.of_rows(each.0, each.1)?;
        let value = asked.conditional(safe_value(argument, draft.around)?)?;
        let what = What::Distinct { value: RowExpr(value), most, worth: Some(worth) };
        let name = asked.title.clone();
        Ok(Statistic::noisy(SumEstimator(draft.add(Measure { what, low, high, moved, name }))))
    }
}
