//! The mean of one user's whole numbers, exactly: added up in 128 bits, so that it depends on no order of rows and never overflows.
//!
//! The engine's own adds floats, whose last bits follow how rows of others fall into batches.

use datafusion::arrow::array::{ArrayRef, AsArray};
use datafusion::arrow::datatypes::{DataType, Decimal128Type, Field, FieldRef, Int64Type};
use datafusion::common::{Result as Outcome, not_impl_err};
use datafusion::logical_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion::logical_expr::{Accumulator, AggregateUDF, AggregateUDFImpl, Expr, Signature, TryCast, Volatility};
use datafusion::scalar::ScalarValue;
use std::sync::Arc;

/// Holds every whole number of 64 bits.
const WHOLE: DataType = DataType::Decimal128(20, 0);
/// Holds the sum of more of them than there are rows.
const SUM: (u8, i8) = (38, 0);

/// The function, and what an argument has to be made first.
pub(crate) fn mean() -> (AggregateUDF, fn(Expr) -> Expr) {
    let whole = |value: Expr| Expr::TryCast(TryCast::new(Box::new(value), WHOLE));
    let signature = Signature::any(1, Volatility::Immutable);
    (AggregateUDF::new_from_impl(Mean { signature }), whole)
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct Mean {
    signature: Signature,
}

impl AggregateUDFImpl for Mean {
    fn name(&self) -> &'static str {
        "__whit_mean"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Outcome<DataType> {
        Ok(DataType::Float64)
    }

    fn accumulator(&self, arguments: AccumulatorArgs<'_>) -> Outcome<Box<dyn Accumulator>> {
        if arguments.is_distinct {
            return not_impl_err!("a mean of different values");
        }
        Ok(Box::new(Adding::default()))
    }

    fn state_fields(&self, _: StateFieldsArgs<'_>) -> Outcome<Vec<FieldRef>> {
        let field = |name: &str, kind: DataType| Arc::new(Field::new(name, kind, true));
        Ok(vec![field("sum", DataType::Decimal128(SUM.0, SUM.1)), field("count", DataType::Int64)])
    }
}

#[derive(Debug, Default)]
struct Adding {
    sum: i128,
    count: i64,
}

impl Adding {
    fn add(&mut self, values: &ArrayRef, sign: i128) {
        let values = values.as_primitive::<Decimal128Type>();
        for value in values.iter().flatten() {
            self.sum = self.sum.wrapping_add(sign * value);
            self.count = self.count.wrapping_add(sign as i64);
        }
    }
}

impl Accumulator for Adding {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Outcome<()> {
        values.iter().for_each(|values| self.add(values, 1));
        Ok(())
    }

    fn retract_batch(&mut self, values: &[ArrayRef]) -> Outcome<()> {
        values.iter().for_each(|values| self.add(values, -1));
        Ok(())
    }

    fn supports_retract_batch(&self) -> bool {
        true
    }

    fn evaluate(&mut self) -> Outcome<ScalarValue> {
        Ok(ScalarValue::Float64((self.count > 0).then(|| self.sum as f64 / self.count as f64)))
    }

    fn size(&self) -> usize {
        size_of::<Self>()
    }

    fn state(&mut self) -> Outcome<Vec<ScalarValue>> {
        Ok(vec![ScalarValue::Decimal128(Some(self.sum), SUM.0, SUM.1), ScalarValue::Int64(Some(self.count))])
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Outcome<()> {
        let (sums, counts) = (states[0].as_primitive::<Decimal128Type>(), states[1].as_primitive::<Int64Type>());
        for row in 0..sums.len() {
            self.sum = self.sum.wrapping_add(sums.value(row));
            self.count = self.count.wrapping_add(counts.value(row));
        }
        Ok(())
    }
}
