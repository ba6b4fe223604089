//! `AVG(x)`.

use super::call::Asked;
use super::part::Draft;
use super::sum::{Summed, are_whole};
use super::{Aggregate, Statistic};
use crate::error::QueryError;
use crate::evaluate::mean::mean;
use crate::plan::{Part, Shape};
use datafusion::arrow::datatypes::DataType;
use datafusion::logical_expr::Expr;
use std::sync::Arc;

pub(super) struct Mean;

impl Aggregate for Mean {
    fn names(&self) -> &'static [&'static str] {
        &["avg", "mean"]
    }

    fn exact(&self, asked: &Asked<'_>, types: &[DataType]) -> Option<Expr> {
        if asked.name() != "avg" || asked.params().distinct || !are_whole(types) {
            return None;
        }
        let mut call = asked.call.clone();
        let (mean, exactly) = mean();
        call.func = Arc::new(mean);
        call.params.args = call.params.args.into_iter().map(exactly).collect();
        Some(Expr::AggregateFunction(call).alias(asked.expr.schema_name().to_string()))
    }

    fn plan(&self, asked: &Asked<'_>, draft: &mut Draft<'_>) -> Result<Statistic, QueryError> {
        let summed = Summed::of(asked, draft)?;
        let sum = summed.sum(Shape::Centred, asked, draft)?;
        let count = draft.count(Some(summed.value), asked, format!("{}: count", asked.title))?;
        Ok(Statistic::Mean { sum, count })
    }

    fn widest(&self, statistic: &Statistic, part: &Part, _: f64) -> Option<f64> {
        let Statistic::Mean { sum, .. } = statistic else { return None };
        part.bounds_of(*sum).map(|(low, high)| (high - low) / 2.0)
    }

    fn rests_on(&self, rows: &str) -> String {
        format!("for a group of {rows} rows, less for larger ones")
    }
}
