//! `GEOMEAN(x)`: the geometric mean, which is exp of the mean of ln x.
//!
//! Its interval is that of the mean of logarithms through exp, which rises: so one holds its truth exactly where the other does.

use super::call::Asked;
use super::estimator::NoisyMeasures;
use super::mean::MeanEstimator;
use super::part::Draft;
use super::sum::Summed;
use super::{Aggregate, Estimator, Statistic};
use crate::answer::{Cell, Value};
use crate::error::{QueryError, planning};
use crate::plan::Part;
use crate::plan::range::Range;
use crate::plan::track::said;
use datafusion::arrow::array::{ArrayRef, AsArray};
use datafusion::arrow::datatypes::{DataType, Field, FieldRef, Float64Type, Int64Type};
use datafusion::common::{Result as Outcome, ScalarValue};
use datafusion::functions::expr_fn::ln;
use datafusion::logical_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion::logical_expr::{
    Accumulator, AggregateUDF, AggregateUDFImpl, Expr, Signature, Volatility, cast, lit, when,
};
use serde_json::{Value as Json, json};
use std::sync::Arc;

pub(super) struct Geomean;

impl Aggregate for Geomean {
    fn names(&self) -> &'static [&'static str] {
        &["geomean"]
    }

    fn suggested(&self) -> &'static [&'static str] {
        &["GEOMEAN"]
    }

    fn function(&self) -> Option<AggregateUDF> {
        let signature = Signature::exact(vec![DataType::Float64], Volatility::Immutable);
        Some(AggregateUDF::new_from_impl(GeomeanFunction { signature }))
    }

    fn plan(&self, asked: &Asked<'_>, draft: &mut Draft<'_>) -> Result<Statistic, QueryError> {
        let value = asked.value()?;
        let low = match draft.range_of(value, &asked.title)? {
            Range::Known { low, high } if low == high => return Err(asked.always(value, low)),
            Range::Known { low, .. } => low,
            Range::Auto => f64::NAN,
        };
        if low.is_nan() || low <= 0.0 {
            let name = said(value);
            let found = if low.is_nan() { "is to be found first".to_owned() } else { format!("is {low}") };
            return Err(QueryError::asked(
                format!("`{}` needs a lower bound above 0, and that of `{name}` {found}", asked.title),
                format!(
                    "declare bounds whose lower one is above 0, or write GEOMEAN(clamp({name}, low, high)) with a low above 0"
                ),
            ));
        }
        // What lies below the bounds counts as the lower one, as everywhere; 0 and less have no logarithm.
        let within = |value: Expr| when(value.clone().lt(lit(low)), lit(low)).otherwise(value);
        // Whole numbers that are written out do not go with a float, other than those of columns.
        let within = within(value.clone()).or_else(|_| within(cast(value.clone(), DataType::Float64)));
        let logs = ln(within.map_err(|error| planning(&error))?);
        let logs = Summed::of_value(logs, asked, draft)?;
        Ok(Statistic::noisy(GeomeanEstimator(MeanEstimator::of(logs, asked, draft)?)))
    }
}

/// A geometric mean: of the mean of logarithms.
#[derive(Debug)]
struct GeomeanEstimator(MeanEstimator);

/// exp of a number.
fn raised(value: Value) -> Value {
    match value {
        Value::Float(log) => Value::Float(log.exp()),
        other => other,
    }
}

impl Estimator for GeomeanEstimator {
    fn measures(&self) -> Vec<usize> {
        self.0.measures()
    }

    fn meaning(&self) -> Json {
        json!({ "geomean": self.measures() })
    }

    fn cells(&self, noisy: &NoisyMeasures<'_>, groups: &[usize]) -> Result<Vec<Cell>, QueryError> {
        let raised =
            |cell: Cell| Cell { value: raised(cell.value), low: cell.low.map(f64::exp), high: cell.high.map(f64::exp) };
        Ok(self.0.cells(noisy, groups)?.into_iter().map(raised).collect())
    }

    fn values(&self, noisy: &NoisyMeasures<'_>, groups: usize) -> Result<Option<Vec<Value>>, QueryError> {
        Ok(self.0.values(noisy, groups)?.map(|logs| logs.into_iter().map(raised).collect()))
    }

    fn widest(&self, part: &Part, _: f64) -> Option<f64> {
        let (low, high) = part.bounds_of(*self.measures().first()?)?;
        Some((high.exp() - low.exp()) / 2.0)
    }

    fn rests_on(&self, rows: &str) -> String {
        self.0.rests_on(rows)
    }
}

/// The function as the engine reads it, and computes it over public and released tables.
#[derive(Debug, PartialEq, Eq, Hash)]
struct GeomeanFunction {
    signature: Signature,
}

impl AggregateUDFImpl for GeomeanFunction {
    fn name(&self) -> &'static str {
        "geomean"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Outcome<DataType> {
        Ok(DataType::Float64)
    }

    fn accumulator(&self, _: AccumulatorArgs<'_>) -> Outcome<Box<dyn Accumulator>> {
        Ok(Box::new(Logs::default()))
    }

    fn state_fields(&self, _: StateFieldsArgs<'_>) -> Outcome<Vec<FieldRef>> {
        let field = |name: &str, kind: DataType| Arc::new(Field::new(name, kind, true));
        Ok(vec![field("logs", DataType::Float64), field("count", DataType::Int64)])
    }
}

#[derive(Debug, Default)]
struct Logs {
    sum: f64,
    count: i64,
}

impl Accumulator for Logs {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Outcome<()> {
        // What has no logarithm is missing, as it would be in exp(avg(ln(x))). Of 0 it is that of no end, and the mean is 0.
        for value in values[0].as_primitive::<Float64Type>().iter().flatten().filter(|value| *value >= 0.0) {
            self.sum += value.ln();
            self.count += 1;
        }
        Ok(())
    }

    fn evaluate(&mut self) -> Outcome<ScalarValue> {
        let mean = (self.count > 0).then(|| (self.sum / self.count as f64).exp());
        Ok(ScalarValue::Float64(mean.filter(|mean| !mean.is_nan())))
    }

    fn size(&self) -> usize {
        size_of::<Self>()
    }

    fn state(&mut self) -> Outcome<Vec<ScalarValue>> {
        Ok(vec![ScalarValue::Float64(Some(self.sum)), ScalarValue::Int64(Some(self.count))])
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Outcome<()> {
        let (sums, counts) = (states[0].as_primitive::<Float64Type>(), states[1].as_primitive::<Int64Type>());
        self.sum += sums.iter().flatten().sum::<f64>();
        self.count += counts.iter().flatten().sum::<i64>();
        Ok(())
    }
}
