//! `COUNT(*)` and `COUNT(x)`.

use super::call::Asked;
use super::estimator::NoisyMeasures;
use super::part::Draft;
use super::{Aggregate, Estimator, Statistic};
use crate::answer::{Cell, Value};
use crate::bound::WEIGHT;
use crate::error::QueryError;
use crate::plan::track::safe_value;
use crate::plan::{Measure, Part, RowExpr, What};
use datafusion::arrow::datatypes::DataType;
use datafusion::logical_expr::{Expr, lit};
use serde_json::{Value as Json, json};

pub(super) struct Count;

impl Aggregate for Count {
    fn names(&self) -> &'static [&'static str] {
        &["count"]
    }

    fn suggested(&self) -> &'static [&'static str] {
        &["COUNT"]
    }

    fn inside(&self) -> &'static [&'static str] {
        &["count"]
    }

    fn exact(&self, asked: &Asked<'_>, _: &[DataType]) -> Option<Expr> {
        Some(asked.expr.clone())
    }

    fn plan(&self, asked: &Asked<'_>, draft: &mut Draft<'_>) -> Result<Statistic, QueryError> {
        let value = asked.argument.map(|argument| safe_value(argument, draft.around)).transpose()?;
        let value = match (value, &asked.filter) {
            (None, None) => None,
            (None, Some(_)) => Some(asked.conditional(lit(1_i64))?),
            (Some(value), _) => Some(asked.conditional(value)?),
        };
        Ok(Statistic::noisy(CountEstimator(draft.count(value, asked, asked.title.clone())?)))
    }
}

/// A count, of rows, users or different values.
#[derive(Debug)]
pub(super) struct CountEstimator(pub(super) usize);

impl Estimator for CountEstimator {
    fn measures(&self) -> Vec<usize> {
        vec![self.0]
    }

    fn meaning(&self) -> Json {
        json!({ "count": self.0 })
    }

    fn cells(&self, noisy: &NoisyMeasures<'_>, groups: &[usize]) -> Result<Vec<Cell>, QueryError> {
        let step = noisy.step(self.0);
        let within = noisy.within(self.0) * step;
        let cell = |&group: &usize| {
            let at = noisy.number(self.0, group) as f64 * step;
            let whole = at.round();
            // A count is reported as a whole number, and lies in its own interval.
            let (low, high) = ((at - within).min(whole), (at + within).max(whole));
            Cell { value: Value::Int(whole as i64), low: Some(low), high: Some(high) }
        };
        Ok(groups.iter().map(cell).collect())
    }

    fn is_its_measure(&self) -> bool {
        true
    }

    fn widest(&self, _: &Part, rows: f64) -> Option<f64> {
        Some(rows)
    }

    fn rests_on(&self, _: &str) -> String {
        String::new()
    }
}

impl Draft<'_> {
    /// The number of a measure that counts rows, or those in which a value is there.
    pub(super) fn count(&mut self, value: Option<Expr>, asked: &Asked<'_>, name: String) -> Result<usize, QueryError> {
        let rows =
            i64::try_from(self.rows()?).map_err(|_| asked.refused("the cap on rows does not fit into 63 bits"))?;
        // Of rows that share what counts in all groups, each counts for a part; and so do those with a value, among rows that count for less.
        let in_parts =
            if self.may_share()? { Some(value.clone().unwrap_or_else(|| lit(1_i64))) } else { value.clone() };
        if let Some(value) = in_parts.filter(|_| rows < 1 << 40)
            && self.may_scale()?
        {
            let (moved, high) = (self.of_rows(0, WEIGHT)?, rows * WEIGHT);
            return Ok(self.add(Measure { what: What::Parts(RowExpr(value)), low: 0, high, moved, name }));
        }
        let moved = self.of_rows(0, 1)?;
        Ok(self.add(Measure { what: What::Rows(value.map(RowExpr)), low: 0, high: rows, moved, name }))
    }
}
