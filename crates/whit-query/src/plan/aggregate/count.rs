//! `COUNT(*)` and `COUNT(x)`.

use super::call::Asked;
use super::part::Draft;
use super::{Aggregate, Statistic};
use crate::error::QueryError;
use crate::plan::track::safe_value;
use crate::plan::{Measure, Part, WEIGHT, What};
use datafusion::arrow::datatypes::DataType;
use datafusion::logical_expr::{Expr, lit};

pub(super) struct Count;

impl Aggregate for Count {
    fn names(&self) -> &'static [&'static str] {
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
        Ok(Statistic::Count(draft.count(value, asked, asked.title.clone())?))
    }

    fn widest(&self, _: &Statistic, _: &Part, rows: f64) -> Option<f64> {
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
            return Ok(self.add(Measure { what: What::Parts(value), low: 0, high, moved, name }));
        }
        let moved = self.of_rows(0, 1)?;
        Ok(self.add(Measure { what: What::Rows(value), low: 0, high: rows, moved, name }))
    }
}
