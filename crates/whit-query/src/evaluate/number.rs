//! Literals as numbers, and floats whose NaN is missing and whose zero has no sign.

use datafusion::arrow::array::{AsArray, Float64Array};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType, Float64Type};
use datafusion::common::{Result as Outcome, ScalarValue};
use datafusion::logical_expr::{
    ColumnarValue, Expr, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};
use std::sync::Arc;

/// What the function is called.
pub(crate) const NAME: &str = "__whit_number";

/// A float whose NaN is missing, and whose zero has no sign: of two equal values that are written differently, an extreme would be the one that stands first in
/// the file. The engine's own functions disagree on whether NaN is larger than all numbers, and files leave it
/// out of what they say of their values: so it never gets there.
pub(crate) fn number(value: Expr) -> Expr {
    ScalarUDF::new_from_impl(Number { signature: Signature::any(1, Volatility::Immutable) }).call(vec![value])
}

/// A literal as a number.
pub(crate) fn literal(value: &ScalarValue) -> Option<f64> {
    if value.is_null() {
        return None;
    }
    match value.cast_to(&DataType::Float64) {
        Ok(ScalarValue::Float64(Some(number))) => Some(number),
        _ => None,
    }
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct Number {
    signature: Signature,
}

impl ScalarUDFImpl for Number {
    fn name(&self) -> &'static str {
        NAME
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Outcome<DataType> {
        Ok(DataType::Float64)
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Outcome<ColumnarValue> {
        let columns = ColumnarValue::values_to_arrays(&args.args)?;
        let values = cast(&columns[0], &DataType::Float64)?;
        let floats = values.as_primitive::<Float64Type>();
        let odd = |value: &f64| value.is_nan() | (value.to_bits() == (-0.0_f64).to_bits());
        if !floats.values().iter().fold(false, |found, value| found | odd(value)) {
            return Ok(ColumnarValue::Array(values));
        }
        let plain = |value: f64| (!value.is_nan()).then_some(value + 0.0); // which takes the sign off zero
        let there: Float64Array = floats.iter().map(|value| value.and_then(plain)).collect();
        Ok(ColumnarValue::Array(Arc::new(there)))
    }
}
