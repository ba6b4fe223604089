//! SQL functions that whit adds to the engine's own. Each reads its arguments and nothing else.

use datafusion::arrow::array::{ArrayRef, ArrowPrimitiveType, AsArray, Int64Array, PrimitiveArray};
use datafusion::arrow::datatypes::{DataType, Float64Type, Int64Type};
use datafusion::common::{Result, exec_err};
use datafusion::logical_expr::{
    ColumnarValue, Expr, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, TypeSignature, Volatility, lit,
};
use datafusion::prelude::SessionContext;
use datafusion::scalar::ScalarValue;
use std::sync::Arc;

/// Gives the engine whit's own functions.
pub(crate) fn register(context: &SessionContext) {
    context.register_udf(ScalarUDF::from(Bin::new()));
    context.register_udf(ScalarUDF::from(Clamp::new()));
    context.register_udf(ScalarUDF::from(WidthBucket::new()));
    context.register_udf(crate::partition::registrable_domain_udf());
}

/// `clamp(x, low, high)` of a float, as planning writes it.
pub(crate) fn clamped(x: Expr, low: f64, high: f64) -> Expr {
    ScalarUDF::from(Clamp::new()).call(vec![x, lit(low), lit(high)])
}

/// `bin(x, low, high, n)`: the lower edge of that of `n` bins of one width into which `x` falls.
///
/// What lies outside falls into the first or last bin; NaN and NULL give NULL. The edges are constants, so that which bins
/// there are is known without looking at the data.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Bin {
    signature: Signature,
}

impl Bin {
    fn new() -> Self {
        let types = vec![DataType::Float64, DataType::Float64, DataType::Float64, DataType::Int64];
        Self { signature: Signature::exact(types, Volatility::Immutable) }
    }
}

/// The bins of one width from `low` to `high`.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Bins {
    low: f64,
    width: f64,
    last: f64,
}

impl Bins {
    /// The bins, unless they make no sense: no room between the edges, or less room than a float can tell.
    fn new(low: f64, high: f64, n: i64) -> Option<Self> {
        let count = n as f64;
        let width = high / count - low / count; // and not (high − low) / n, which may overflow
        let bins = Self { low, width, last: count - 1.0 };
        let apart = n >= 1 && low < high && low.is_finite() && high.is_finite() && bins.edge(bins.last) < high;
        (apart && bins.edge(1.0) > low).then_some(bins)
    }

    fn edge(&self, number: f64) -> f64 {
        self.low + number * self.width
    }

    /// The lower edge of the bin of `x`; it is at most `x`, unless `x` is below all.
    fn lower(&self, x: f64) -> Option<f64> {
        self.number(x).map(|number| self.edge(number))
    }

    /// The number of the bin of `x`, from 0 on.
    fn number(&self, x: f64) -> Option<f64> {
        if x.is_nan() {
            return None;
        }
        let mut number = ((x - self.low) / self.width).floor().clamp(0.0, self.last);
        // The quotient is rounded and so is the edge: they may disagree by one where x is an edge.
        if number < self.last && self.edge(number + 1.0) <= x {
            number += 1.0;
        } else if number > 0.0 && self.edge(number) > x {
            number -= 1.0;
        }
        Some(number)
    }
}

/// The values that `bin(x, low, high, n)` can take; none where that makes no sense or there would be a million.
pub(crate) fn edges(low: f64, high: f64, n: f64) -> Option<Vec<f64>> {
    let number = (n.fract() == 0.0 && (1.0..=1e6).contains(&n)).then_some(n as i64)?;
    let bins = Bins::new(low, high, number)?;
    Some((0..number).map(|i| bins.edge(i as f64)).collect())
}

impl ScalarUDFImpl for Bin {
    fn name(&self) -> &'static str {
        "bin"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(DataType::Float64)
    }

    fn invoke_with_args(&self, arguments: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let [x, low, high, n] = arguments.args.as_slice() else {
            return exec_err!("bin(x, low, high, n) has four arguments");
        };
        let constants = (float("bin", low)?, float("bin", high)?, int("bin", n)?);
        let (Some(low), Some(high), Some(n)) = constants else {
            return Ok(ColumnarValue::Scalar(ScalarValue::Float64(None)));
        };
        let Some(bins) = Bins::new(low, high, n) else {
            return exec_err!(
                "bin(x, {low}, {high}, {n}) has no bins: give a low below high, both finite, and a number of at least 1"
            );
        };
        each::<Float64Type>(x, |x| bins.lower(x))
    }
}

/// `width_bucket(x, low, high, n)`: the number of the bin into which `x` falls, from 1 on; 0 below `low`, and n + 1 from `high` on, as in other engines.
#[derive(Debug, PartialEq, Eq, Hash)]
struct WidthBucket {
    signature: Signature,
}

impl WidthBucket {
    fn new() -> Self {
        let types = vec![DataType::Float64, DataType::Float64, DataType::Float64, DataType::Int64];
        Self { signature: Signature::exact(types, Volatility::Immutable) }
    }
}

impl ScalarUDFImpl for WidthBucket {
    fn name(&self) -> &'static str {
        "width_bucket"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(DataType::Int64)
    }

    fn invoke_with_args(&self, arguments: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let [x, low, high, n] = arguments.args.as_slice() else {
            return exec_err!("width_bucket(x, low, high, n) has four arguments");
        };
        let name = self.name();
        let (Some(low), Some(high), Some(n)) = (float(name, low)?, float(name, high)?, int(name, n)?) else {
            return Ok(ColumnarValue::Scalar(ScalarValue::Int64(None)));
        };
        let Some(bins) = Bins::new(low, high, n) else {
            return exec_err!(
                "width_bucket(x, {low}, {high}, {n}) has no bins: give a low below high, both finite, and a number of at least 1"
            );
        };
        let number = |x: f64| match x {
            x if x.is_nan() => None,
            x if x < low => Some(0),
            x if x >= high => Some(n + 1),
            x => bins.number(x).map(|number| number as i64 + 1),
        };
        let over = |array: &ArrayRef| -> Int64Array {
            array.as_primitive::<Float64Type>().iter().map(|x| number(x?)).collect()
        };
        Ok(match x {
            ColumnarValue::Array(array) => ColumnarValue::Array(Arc::new(over(array))),
            ColumnarValue::Scalar(one) => {
                ColumnarValue::Scalar(ScalarValue::try_from_array(&over(&one.to_array()?), 0)?)
            }
        })
    }
}

/// `clamp(x, low, high)`: `x`, or the nearer end where it lies outside. NaN and NULL give NULL. Whole numbers stay whole.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Clamp {
    signature: Signature,
}

impl Clamp {
    fn new() -> Self {
        let three = |kind: DataType| TypeSignature::Exact(vec![kind.clone(), kind.clone(), kind]);
        let types = vec![three(DataType::Int64), three(DataType::Float64)];
        Self { signature: Signature::one_of(types, Volatility::Immutable) }
    }
}

impl ScalarUDFImpl for Clamp {
    fn name(&self) -> &'static str {
        "clamp"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        Ok(if types.iter().all(|kind| *kind == DataType::Int64) { DataType::Int64 } else { DataType::Float64 })
    }

    fn invoke_with_args(&self, arguments: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let [x, low, high] = arguments.args.as_slice() else {
            return exec_err!("clamp(x, low, high) has three arguments");
        };
        if x.data_type() == DataType::Int64 {
            let (Some(low), Some(high)) = (int("clamp", low)?, int("clamp", high)?) else {
                return Ok(ColumnarValue::Scalar(ScalarValue::Int64(None)));
            };
            if low > high {
                return exec_err!("clamp(x, {low}, {high}) has no room: give a low that is at most high");
            }
            return each::<Int64Type>(x, |x| Some(x.clamp(low, high)));
        }
        let (Some(low), Some(high)) = (float("clamp", low)?, float("clamp", high)?) else {
            return Ok(ColumnarValue::Scalar(ScalarValue::Float64(None)));
        };
        if low.is_nan() || high.is_nan() || low > high {
            return exec_err!("clamp(x, {low}, {high}) has no room: give a low that is at most high");
        }
        each::<Float64Type>(x, |x| (!x.is_nan()).then(|| x.clamp(low, high)))
    }
}

/// Applies a function to every value that is there.
fn each<T: ArrowPrimitiveType>(x: &ColumnarValue, f: impl Fn(T::Native) -> Option<T::Native>) -> Result<ColumnarValue> {
    let over = |array: &ArrayRef| -> PrimitiveArray<T> { array.as_primitive::<T>().unary_opt(&f) };
    Ok(match x {
        ColumnarValue::Array(array) => ColumnarValue::Array(Arc::new(over(array))),
        ColumnarValue::Scalar(one) => ColumnarValue::Scalar(ScalarValue::try_from_array(&over(&one.to_array()?), 0)?),
    })
}

fn float(function: &str, value: &ColumnarValue) -> Result<Option<f64>> {
    match value {
        ColumnarValue::Scalar(ScalarValue::Float64(number)) => Ok(*number),
        ColumnarValue::Scalar(_) | ColumnarValue::Array(_) => not_constant(function),
    }
}

fn int(function: &str, value: &ColumnarValue) -> Result<Option<i64>> {
    match value {
        ColumnarValue::Scalar(ScalarValue::Int64(number)) => Ok(*number),
        ColumnarValue::Scalar(_) | ColumnarValue::Array(_) => not_constant(function),
    }
}

fn not_constant<T>(function: &str) -> Result<T> {
    exec_err!("all arguments of {function} but the first are constants: write numbers")
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    async fn ask(sql: &str) -> Result<Vec<String>> {
        let context = SessionContext::new();
        register(&context);
        let batches = context.sql(sql).await?.collect().await?;
        let mut rows = Vec::new();
        for batch in &batches {
            for row in 0..batch.num_rows() {
                let cell = |column: &ArrayRef| ScalarValue::try_from_array(column, row).unwrap().to_string();
                rows.push(batch.columns().iter().map(cell).collect::<Vec<_>>().join(" "));
            }
        }
        Ok(rows)
    }

    #[tokio::test]
    async fn numbers_fall_into_bins_and_what_is_outside_into_the_outermost() {
        let xs = "(VALUES (-5.0), (0.0), (49.9), (50.0), (599.9), (600.0), (1e300), (NULL), (CAST('NaN' AS DOUBLE))) AS t(x)";
        let rows = ask(&format!("SELECT bin(x, 0, 600, 12) FROM {xs}")).await.unwrap();
        assert_eq!(rows, ["0", "0", "0", "50", "550", "550", "550", "NULL", "NULL"]);
        assert_eq!(
            ask("SELECT bin(7, 0, 10, 5), bin(NULL, 0, 10, 5), bin(7, NULL, 10, 5)").await.unwrap(),
            ["6 NULL NULL"]
        );
        assert_eq!(ask("SELECT arrow_typeof(bin(7, 0, 10, 5))").await.unwrap(), ["Float64"]);
    }

    /// What PostgreSQL gives for the same.
    #[tokio::test]
    async fn buckets_are_numbered_from_one_and_what_is_outside_is_beyond_them() {
        let xs =
            "(VALUES (-5.0), (0.0), (1.9), (2.0), (9.99), (10.0), (1e300), (NULL), (CAST('NaN' AS DOUBLE))) AS t(x)";
        let rows = ask(&format!("SELECT width_bucket(x, 0, 10, 5) FROM {xs}")).await.unwrap();
        assert_eq!(rows, ["0", "1", "1", "2", "5", "6", "6", "NULL", "NULL"]);
        assert_eq!(ask("SELECT width_bucket(5.35, 0.024, 10.06, 5)").await.unwrap(), ["3"]);
        assert_eq!(ask("SELECT width_bucket(7, 0, 10, 5), width_bucket(7, NULL, 10, 5)").await.unwrap(), ["4 NULL"]);
        for sql in ["SELECT width_bucket(1.5, 10, 0, 5)", "SELECT width_bucket(1.5, 0, 10, 0)"] {
            assert!(ask(sql).await.unwrap_err().to_string().contains("has no bins"), "{sql}");
        }
    }

    #[tokio::test]
    async fn numbers_are_clamped_and_whole_numbers_stay_whole() {
        let ints = "(VALUES (-5), (3), (9223372036854775807), (NULL)) AS t(x)";
        assert_eq!(ask(&format!("SELECT clamp(x, 0, 10) FROM {ints}")).await.unwrap(), ["0", "3", "10", "NULL"]);
        assert_eq!(
            ask("SELECT arrow_typeof(clamp(7, 0, 10)), arrow_typeof(clamp(7, 0, 10.5))").await.unwrap(),
            ["Int64 Float64"]
        );
        let floats = "(VALUES (-0.5), (0.25), (CAST('Infinity' AS DOUBLE)), (CAST('NaN' AS DOUBLE))) AS t(x)";
        assert_eq!(ask(&format!("SELECT clamp(x, 0, 1) FROM {floats}")).await.unwrap(), ["0", "0.25", "1", "NULL"]);
    }

    #[tokio::test]
    async fn edges_that_make_no_sense_are_refused() {
        for (sql, words) in [
            ("SELECT bin(1.5, 10, 0, 5)", "has no bins"),
            ("SELECT bin(1.5, 0, 10, 0)", "has no bins"),
            ("SELECT bin(1.5, 0, CAST('Infinity' AS DOUBLE), 5)", "has no bins"),
            ("SELECT bin(x, x, 10, 5) FROM (VALUES (1.0), (2.0)) AS t(x)", "are constants"),
            ("SELECT clamp(1, 2, 1)", "has no room"),
            ("SELECT clamp(1.5, CAST('NaN' AS DOUBLE), 1)", "has no room"),
            ("SELECT clamp('a', 0, 1)", "clamp"),
        ] {
            let error = ask(sql).await.unwrap_err().to_string();
            assert!(error.contains(words), "{sql}: {error}");
        }
    }

    proptest! {
        /// Every number lies in the bin that it is given, and the edge is one of the n.
        #[test]
        fn a_number_lies_in_its_bin(low in -1e6..1e6_f64, room in 1e-3..1e6_f64, n in 1..5000_i64, at in -0.2..1.2_f64, edge in 0..5000_i64) {
            let bins = Bins::new(low, low + room, n).unwrap();
            for x in [low + room * at, bins.edge((edge % n) as f64)] {
                let lower = bins.lower(x).unwrap();
                let number = ((lower - low) / bins.width).round();
                prop_assert!((0.0..=bins.last).contains(&number) && lower == bins.edge(number));
                prop_assert!(lower <= x || number == 0.0, "{x} is below its bin");
                prop_assert!(number == bins.last || x < bins.edge(number + 1.0), "{x} is above its bin");
            }
        }

        #[test]
        fn no_edges_make_the_bins_panic(low in any::<f64>(), high in any::<f64>(), n in any::<i64>(), x in any::<f64>()) {
            if let Some(bins) = Bins::new(low, high, n) {
                prop_assert!(bins.lower(x).is_none_or(f64::is_finite));
            }
        }
    }
}
