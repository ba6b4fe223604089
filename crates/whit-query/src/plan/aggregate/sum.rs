//! `SUM(x)`, and the sums that means and variances are made of.

use super::call::Asked;
use super::estimator::NoisyMeasures;
use super::part::Draft;
use super::{Aggregate, Estimator, Statistic};
use crate::answer::{Cell, Value};
use crate::bound::quantise::{self, Quantise};
use crate::error::QueryError;
use crate::plan::range::Range;
use crate::plan::track::{safe_value, type_of};
use crate::plan::{Measure, Part, Quantisation, RowExpr, Shape, What};
use datafusion::arrow::datatypes::DataType;
use datafusion::logical_expr::Expr;
use serde_json::{Value as Json, json};

pub(super) struct Sum;

impl Aggregate for Sum {
    fn names(&self) -> &'static [&'static str] {
        &["sum"]
    }

    fn suggested(&self) -> &'static [&'static str] {
        &["SUM"]
    }

    fn inside(&self) -> &'static [&'static str] {
        &["sum"]
    }

    fn exact(&self, asked: &Asked<'_>, types: &[DataType]) -> Option<Expr> {
        let exact = types.iter().all(DataType::is_decimal) || are_whole(types);
        exact.then(|| asked.expr.clone())
    }

    fn plan(&self, asked: &Asked<'_>, draft: &mut Draft<'_>) -> Result<Statistic, QueryError> {
        let summed = Summed::of(asked, draft)?;
        Ok(Statistic::noisy(SumEstimator(summed.sum(Shape::Plain, asked, draft)?)))
    }
}

/// A sum.
#[derive(Debug)]
pub(super) struct SumEstimator(pub(super) usize);

impl Estimator for SumEstimator {
    fn measures(&self) -> Vec<usize> {
        vec![self.0]
    }

    fn meaning(&self) -> Json {
        json!({ "sum": self.0 })
    }

    fn cells(&self, noisy: &NoisyMeasures<'_>, groups: &[usize]) -> Result<Vec<Cell>, QueryError> {
        let step = noisy.quantise(self.0)?.step();
        let (within, whole) = (noisy.within(self.0) * step, step == 1.0);
        let cell = |&group: &usize| {
            let steps = noisy.number(self.0, group);
            let at = steps as f64 * step;
            let value = if whole { Value::Int(steps) } else { Value::Float(at) };
            Cell { value, low: Some(at - within), high: Some(at + within) }
        };
        Ok(groups.iter().map(cell).collect())
    }

    fn is_its_measure(&self) -> bool {
        true
    }

    fn widest(&self, part: &Part, rows: f64) -> Option<f64> {
        part.bounds_of(self.0).map(|(low, high)| rows * low.abs().max(high.abs()))
    }

    fn rests_on(&self, _: &str) -> String {
        String::new()
    }
}

/// Whether all are whole numbers, whose sums no order changes.
pub(super) fn are_whole(types: &[DataType]) -> bool {
    types.iter().all(|kind| kind.is_integer() || *kind == DataType::Boolean)
}

/// A value that is added up.
pub(super) struct Summed {
    argument: Expr,
    pub(super) value: Expr,
    range: Range,
    integers: bool,
    /// Whether rows may come to count for less.
    scaled: bool,
}

impl Summed {
    /// What a call is of.
    pub(super) fn of(asked: &Asked<'_>, draft: &Draft<'_>) -> Result<Self, QueryError> {
        Self::of_value(asked.value()?.clone(), asked, draft)
    }

    /// Something that is made of it.
    pub(super) fn of_value(argument: Expr, asked: &Asked<'_>, draft: &Draft<'_>) -> Result<Self, QueryError> {
        let range = draft.range_of(&argument, &asked.title)?;
        let value = asked.conditional(safe_value(&argument, draft.around)?)?;
        let integers = type_of(&argument, draft.input)?.is_integer();
        Ok(Self { argument, value, range, integers, scaled: draft.may_scale()? })
    }

    /// The number of the measure that adds it up in this shape.
    pub(super) fn sum(&self, shape: Shape, asked: &Asked<'_>, draft: &mut Draft<'_>) -> Result<usize, QueryError> {
        let title = &asked.title;
        let name = match shape {
            Shape::Plain => title.clone(),
            Shape::Centred => format!("{title}: centred sum"),
            Shape::Squared => format!("{title}: sum of squares"),
        };
        self.sum_called(shape, name, asked, draft)
    }

    /// The same under a name of its own.
    pub(super) fn sum_called(
        &self,
        shape: Shape,
        name: String,
        asked: &Asked<'_>,
        draft: &mut Draft<'_>,
    ) -> Result<usize, QueryError> {
        let (quantisation, low, high) = match self.range {
            Range::Known { low, high } => {
                // Where rows may come to count for less, sums are fractions, so a finer lattice than that of the values is needed: each unit is
                // rounded by chance, and what that comes to grows with their number.
                let whole = self.integers && !self.scaled;
                let quantise = Quantise::of(low, high, shape, whole)?;
                if (quantise.low(), quantise.high()) == (0, 0) {
                    return Err(asked.always(&self.argument, low));
                }
                let (low, high) = (quantise.low(), quantise.high());
                (Quantisation::Known(quantise), low, high)
            }
            Range::Auto => {
                let (low, high) = quantise::found_range(shape);
                (Quantisation::Found { range: draft.auto(&self.argument, &self.value)?, shape }, low, high)
            }
        };
        let moved = draft.of_rows(low, high)?;
        let rows = i64::try_from(draft.rows()?).ok();
        let (low, high) = rows
            .and_then(|rows| Some((low.min(0).checked_mul(rows)?, high.max(0).checked_mul(rows)?)))
            .filter(|(low, high)| low.unsigned_abs().max(high.unsigned_abs()) < 1 << 55)
            .ok_or_else(|| {
                asked.refused("one unit's sum may leave 55 bits; declare smaller caps or narrower bounds")
            })?;
        let what = What::Sum { value: RowExpr(self.value.clone()), quantisation };
        Ok(draft.add(Measure { what, low, high, moved, name }))
    }
}
