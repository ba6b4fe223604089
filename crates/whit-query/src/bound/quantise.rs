//! Values on a lattice, inside the engine: clamped, centred, rounded to whole steps, row by row.
//!
//! The step is a power of two, so that scaling by it is exact, and rounding is the only thing that is done to a
//! value. Every row's integer lies in a range that is known beforehand, whatever the row holds: NaN counts as missing,
//! infinities are clamped like any other number.

use crate::error::QueryError;
use datafusion::arrow::array::{Array, ArrayRef, AsArray, Int64Array};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType, Float64Type, Int64Type};
use datafusion::common::Result;
use datafusion::logical_expr::{ColumnarValue, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility};
use std::sync::Arc;

/// A centred or plain value has about so many steps on either side of zero, and at most twice as many.
///
/// Each row is rounded by up to half a step, always the same way where rows are alike, and no interval tells of it: so steps are as fine as
/// a row's 32 bits allow. A million equal rows at ε = 50 are then off by less than a hundredth of the noise
/// (`rounding_a_million_rows_is_little_next_to_the_noise`).
const STEPS: f64 = 536_870_912.0; // 2^29

/// What of a value is summed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shape {
    /// The value itself.
    Plain,
    /// Its distance from the middle of its range.
    Centred,
    /// The square of that.
    Squared,
}

/// How a value becomes a whole number of steps.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Quantise {
    /// The bits of what is subtracted first.
    centre: u64,
    /// The bits of the lower and the upper bound, before anything is subtracted.
    bounds: (u64, u64),
    /// The step is 2 to this power.
    exponent: i32,
    /// Whether the value is squared, after it is centred.
    squared: bool,
    low: i64,
    high: i64,
}

impl Quantise {
    /// For values in `low..=high`, which are `whole` numbers or not.
    pub(crate) fn of(low: f64, high: f64, shape: Shape, whole: bool) -> std::result::Result<Self, QueryError> {
        if !(low.is_finite() && high.is_finite() && low <= high) {
            return Err(QueryError::asked(
                format!("the bounds {low} and {high} are not a range"),
                "give two finite numbers, the smaller first",
            ));
        }
        let centre = match shape {
            Shape::Plain => 0.0,
            // A centre on the lattice of the values keeps whole numbers whole.
            Shape::Centred | Shape::Squared if whole => f64::midpoint(low, high).round(),
            Shape::Centred | Shape::Squared => f64::midpoint(low, high),
        };
        let furthest = (low - centre).abs().max((high - centre).abs());
        let furthest = if shape == Shape::Squared { furthest * furthest } else { furthest };
        // Whole numbers stay as they are while there are few enough of them.
        let exponent = if whole && furthest <= 2.0 * STEPS { 0 } else { exponent_for(furthest / STEPS) };
        let mut quantise = Self {
            centre: centre.to_bits(),
            bounds: (low.to_bits(), high.to_bits()),
            exponent,
            squared: shape == Shape::Squared,
            low: 0,
            high: 0,
        };
        let (at_low, at_high, at_centre) =
            (quantise.steps(low), quantise.steps(high), quantise.steps(centre.clamp(low, high)));
        (quantise.low, quantise.high) = (at_low.min(at_high).min(at_centre), at_low.max(at_high).max(at_centre));
        Ok(quantise)
    }

    /// The same with the range of integers that was planned for before the bounds were found.
    pub(crate) fn found(low: f64, high: f64, shape: Shape) -> std::result::Result<Self, QueryError> {
        let mut quantise = Self::of(low, high, shape, false)?;
        let (least, most) = found_range(shape);
        (quantise.low, quantise.high) = (quantise.low.max(least), quantise.high.min(most));
        Ok(quantise)
    }

    /// The least integer that a row may become.
    pub(crate) fn low(&self) -> i64 {
        self.low
    }

    /// The largest integer that a row may become.
    pub(crate) fn high(&self) -> i64 {
        self.high
    }

    /// What one step is worth.
    pub(crate) fn step(&self) -> f64 {
        power_of_two(self.exponent)
    }

    /// What is subtracted first.
    pub(crate) fn centre(&self) -> f64 {
        f64::from_bits(self.centre)
    }

    /// The bounds to which a value is clamped.
    pub(crate) fn bounds(&self) -> (f64, f64) {
        (f64::from_bits(self.bounds.0), f64::from_bits(self.bounds.1))
    }

    /// What a row comes to on the average, in steps, if values are spread evenly over so much of their bounds, from the upper end down.
    pub(crate) fn imagined(&self, share: f64) -> f64 {
        let (low, high) = self.bounds();
        let width = (high - low) * share;
        let middle = high - width / 2.0 - self.centre();
        let shaped = if self.squared { middle * middle + width * width / 12.0 } else { middle };
        shaped * power_of_two(-self.exponent)
    }

    fn steps(&self, value: f64) -> i64 {
        let (low, high) = self.bounds();
        let centred = value.clamp(low, high) - self.centre();
        let shaped = if self.squared { centred * centred } else { centred };
        // At most 2^31 steps are planned for.
        rounded(shaped * power_of_two(-self.exponent))
    }

    /// All of a column. What is missing or NaN stays missing.
    pub(crate) fn column(&self, values: &ArrayRef) -> Result<Int64Array> {
        let (low, high) = self.bounds();
        let whole = [low, high, self.centre()].iter().all(|end| end.fract() == 0.0 && end.abs() < 9e15);
        let integers = values.data_type().is_integer() && values.data_type() != &DataType::UInt64;
        if self.exponent == 0 && whole && integers {
            return self.whole(values);
        }
        let values = if values.data_type() == &DataType::Float64 {
            Arc::clone(values)
        } else {
            cast(values, &DataType::Float64)?
        };
        let values = values.as_primitive::<Float64Type>();
        let mut has_nan = false;
        let (centre, scale) = (self.centre(), power_of_two(-self.exponent));
        // Exact: both ends have at most 32 bits.
        let (least, most) = (self.low as f64, self.high as f64);
        let placed: Vec<i64> = if self.squared {
            let place = |&value: &f64| {
                has_nan |= value.is_nan();
                let centred = between(value, low, high) - centre;
                rounded(between(centred * centred * scale, least, most))
            };
            values.values().iter().map(place).collect()
        } else {
            let place = |&value: &f64| {
                has_nan |= value.is_nan();
                rounded(between((between(value, low, high) - centre) * scale, least, most))
            };
            values.values().iter().map(place).collect()
        };
        let nulls = if has_nan {
            let there = values.iter().map(|value| value.is_some_and(|value| !value.is_nan()));
            Some(there.collect::<Vec<bool>>().into())
        } else {
            values.nulls().cloned()
        };
        Ok(Int64Array::new(placed.into(), nulls))
    }
}

impl Quantise {
    /// The same for whole numbers between whole bounds, which need no rounding.
    fn whole(&self, values: &ArrayRef) -> Result<Int64Array> {
        let values = cast(values, &DataType::Int64)?;
        let values = values.as_primitive::<Int64Type>();
        let ((low, high), centre) = (self.bounds(), self.centre() as i64);
        let (low, high) = (low as i64, high as i64);
        let placed: Vec<i64> = if self.squared {
            let place = |&value: &i64| {
                let centred = value.clamp(low, high) - centre;
                (centred * centred).clamp(self.low, self.high)
            };
            values.values().iter().map(place).collect()
        } else {
            // Both ranges at once: the values' own, and that of the steps.
            let (low, high) = (low.max(self.low + centre), high.min(self.high + centre));
            values.values().iter().map(|&value| value.max(low).min(high) - centre).collect()
        };
        Ok(Int64Array::new(placed.into(), values.nulls().cloned()))
    }
}

/// Like `clamp`, in the two instructions that processors have for it; NaN becomes the lower end.
#[inline]
fn between(value: f64, low: f64, high: f64) -> f64 {
    let value = if value > low { value } else { low };
    if value < high { value } else { high }
}

/// The nearest whole number, of two the even one, for values below 2^51: where floats have a step of one, adding rounds,
/// and the last bits are the integer. Many times faster than `round` on processors without an instruction for it.
#[inline]
fn rounded(value: f64) -> i64 {
    const SHIFT: f64 = 6_755_399_441_055_744.0; // 1.5 · 2^52
    (value + SHIFT).to_bits() as i64 - SHIFT.to_bits() as i64
}

/// The range of integers for a value whose bounds are found privately.
pub(crate) fn found_range(shape: Shape) -> (i64, i64) {
    let most = 2 * STEPS as i64; // a step is rounded to a power of two, so up to twice as many are needed
    match shape {
        Shape::Plain | Shape::Centred => (-most, most),
        Shape::Squared => (0, most),
    }
}

/// The exponent of the largest power of two that is not above `size`.
fn exponent_for(size: f64) -> i32 {
    if size > 0.0 { (size.log2().floor() as i32).clamp(-1000, 1000) } else { -20 }
}

fn power_of_two(exponent: i32) -> f64 {
    2_f64.powi(exponent)
}

/// The same as a function that the engine calls. It is made for one plan and has no name that a question could use.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(crate) struct QuantiseFunction {
    quantise: Quantise,
    signature: Signature,
}

impl QuantiseFunction {
    /// What it is called.
    pub(crate) const NAME: &str = "__whit_quantise";

    pub(crate) fn call(quantise: Quantise, value: datafusion::logical_expr::Expr) -> datafusion::logical_expr::Expr {
        let function = Self { quantise, signature: Signature::any(1, Volatility::Immutable) };
        ScalarUDF::new_from_impl(function).call(vec![value])
    }

    /// To what it bounds a row.
    pub(crate) fn limits(&self) -> &Quantise {
        &self.quantise
    }
}

impl ScalarUDFImpl for QuantiseFunction {
    fn name(&self) -> &'static str {
        Self::NAME
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(DataType::Int64)
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let rows = args.number_rows;
        let values = args.args.into_iter().map(|value| value.into_array(rows)).collect::<Result<Vec<_>>>()?;
        Ok(ColumnarValue::Array(Arc::new(self.quantise.column(&values[0])?)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use datafusion::arrow::array::Float64Array;
    use proptest::prelude::*;

    #[test]
    fn whole_numbers_stay_whole_and_others_get_as_many_steps_as_a_row_has_room_for() {
        let seconds = Quantise::of(0.0, 600.0, Shape::Plain, true).unwrap();
        assert_eq!((seconds.low(), seconds.high(), seconds.step()), (0, 600, 1.0));
        let price = Quantise::of(0.0, 600.0, Shape::Plain, false).unwrap();
        assert!(price.low() == 0 && (1 << 29..=1 << 30).contains(&price.high()), "{price:?}");
        let middle = Quantise::of(10.0, 20.0, Shape::Centred, false).unwrap();
        assert_eq!((middle.low(), middle.centre()), (-middle.high(), 15.0));
        let square = Quantise::of(10.0, 20.0, Shape::Squared, false).unwrap();
        assert_eq!((square.low(), square.high() as f64 * square.step()), (0, 25.0));
    }

    #[test]
    fn nan_is_missing_and_infinity_is_clamped() {
        let column: ArrayRef = Arc::new(Float64Array::from(vec![
            Some(f64::NAN),
            None,
            Some(f64::INFINITY),
            Some(f64::NEG_INFINITY),
            Some(3.4),
        ]));
        let whole = Quantise::of(-5.0, 7.0, Shape::Plain, true).unwrap();
        assert_eq!(whole.column(&column).unwrap(), Int64Array::from(vec![None, None, Some(7), Some(-5), Some(3)]));
    }

    #[test]
    fn rounding_a_million_rows_is_little_next_to_the_noise() {
        let mu = whit_account::normal::gaussian_mu_down(50.0, 1e-6);
        for (low, high) in [(0.0, 600.0), (0.0, 1.0), (-3.0, 7.7), (0.0, 1e12), (1e-9, 3e-9)] {
            for shape in [Shape::Plain, Shape::Centred, Shape::Squared] {
                let quantise = Quantise::of(low, high, shape, false).unwrap();
                let noise = quantise.high() as f64 / mu; // one row of a unit
                assert!(1e6 * 0.5 < noise / 100.0, "{quantise:?}: {noise}");
            }
        }
    }

    #[test]
    fn rounding_is_to_the_nearest() {
        for (value, expected) in
            [(0.4, 0), (0.6, 1), (-0.6, -1), (1.5, 2), (2.5, 2), (-2.5, -2), (1e9 + 0.2, 1_000_000_000)]
        {
            assert_eq!(rounded(value), expected, "{value}");
        }
    }

    proptest! {
        #[test]
        fn no_value_leaves_the_range_that_was_planned_for(
            a in -1e12..1e12_f64, b in -1e12..1e12_f64, bits in any::<u64>(), shape in 0..3_u8, whole in any::<bool>(),
            small in any::<bool>(),
        ) {
            let shape = [Shape::Plain, Shape::Centred, Shape::Squared][usize::from(shape)];
            let (a, b) = if small { ((a / 1e9).round(), (b / 1e9).round()) } else { (a, b) };
            let quantise = Quantise::of(a.min(b), a.max(b), shape, whole).unwrap();
            let column: ArrayRef = Arc::new(Float64Array::from(vec![f64::from_bits(bits), a, b, 0.0, a / 3.0]));
            let placed = quantise.column(&column).unwrap();
            let numbers: ArrayRef = Arc::new(Int64Array::from(vec![bits as i64, a as i64, b as i64, 0]));
            let whole_numbers = quantise.column(&numbers).unwrap();
            let as_floats = quantise.column(&cast(&numbers, &DataType::Float64).unwrap()).unwrap();
            prop_assert_eq!(&whole_numbers, &as_floats);
            for point in placed.iter().chain(whole_numbers.iter()).flatten() {
                prop_assert!((quantise.low()..=quantise.high()).contains(&point));
            }
            let found = Quantise::found(a.min(b), a.max(b), shape).unwrap();
            let (least, most) = found_range(shape);
            prop_assert!(found.low() >= least && found.high() <= most);
        }
    }
}
