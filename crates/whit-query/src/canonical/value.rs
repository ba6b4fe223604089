//! Values and types of the engine in our own words.

use super::numbers::wordless;
use crate::error::QueryError;
use datafusion::arrow::datatypes::{DataType, IntervalUnit, TimeUnit};
use datafusion::scalar::ScalarValue;
use serde_json::{Value, json};
use whit_account::meaning::number;

/// What a type is called.
pub(crate) fn kind(kind: &DataType) -> Value {
    use DataType as D;
    let fields = |fields: &datafusion::arrow::datatypes::Fields| -> Vec<Value> {
        fields.iter().map(|field| json!([field.name(), self::kind(field.data_type())])).collect()
    };
    match kind {
        D::Null => json!("null"),
        D::Boolean => json!("bool"),
        D::Int8 => json!("int8"),
        D::Int16 => json!("int16"),
        D::Int32 => json!("int32"),
        D::Int64 => json!("int64"),
        D::UInt8 => json!("uint8"),
        D::UInt16 => json!("uint16"),
        D::UInt32 => json!("uint32"),
        D::UInt64 => json!("uint64"),
        D::Float16 => json!("float16"),
        D::Float32 => json!("float32"),
        D::Float64 => json!("float64"),
        // How text lies in memory is the engine's affair.
        D::Utf8 | D::LargeUtf8 | D::Utf8View => json!("text"),
        D::Binary | D::LargeBinary | D::BinaryView | D::FixedSizeBinary(_) => json!("bytes"),
        D::Date32 => json!("date"),
        D::Date64 => json!("date in milliseconds"),
        D::Time32(unit) | D::Time64(unit) => json!({ "time": unit_of(*unit) }),
        D::Timestamp(unit, zone) => json!({ "timestamp": unit_of(*unit), "zone": zone.as_deref() }),
        D::Duration(unit) => json!({ "duration": unit_of(*unit) }),
        D::Interval(unit) => json!({
            "interval": match unit {
                IntervalUnit::YearMonth => "months",
                IntervalUnit::DayTime => "days and milliseconds",
                IntervalUnit::MonthDayNano => "months, days and nanoseconds",
            }
        }),
        D::Decimal32(digits, scale)
        | D::Decimal64(digits, scale)
        | D::Decimal128(digits, scale)
        | D::Decimal256(digits, scale) => json!({ "decimal": [digits, scale] }),
        D::List(field) | D::LargeList(field) | D::ListView(field) | D::LargeListView(field) => {
            json!({ "list": self::kind(field.data_type()) })
        }
        D::FixedSizeList(field, size) => json!({ "list": self::kind(field.data_type()), "size": size }),
        D::Struct(inner) => json!({ "struct": fields(inner) }),
        D::Map(field, _) => json!({ "map": self::kind(field.data_type()) }),
        D::Dictionary(_, values) => self::kind(values),
        D::RunEndEncoded(_, values) => self::kind(values.data_type()),
        D::Union(variants, _) => {
            let variants: Vec<Value> =
                variants.iter().map(|(id, field)| json!([id, field.name(), self::kind(field.data_type())])).collect();
            json!({ "one of": variants })
        }
    }
}

fn unit_of(unit: TimeUnit) -> &'static str {
    match unit {
        TimeUnit::Second => "seconds",
        TimeUnit::Millisecond => "milliseconds",
        TimeUnit::Microsecond => "microseconds",
        TimeUnit::Nanosecond => "nanoseconds",
    }
}

/// A constant with its type: numbers in digits, so that none is rounded.
pub(crate) fn literal(value: &ScalarValue) -> Result<Value, QueryError> {
    use ScalarValue as S;
    let whole = |number: &dyn ToString| Value::from(number.to_string());
    let said = match value {
        S::Dictionary(_, inner) | S::RunEndEncoded(_, _, inner) => return literal(inner),
        value if value.is_null() => Value::Null,
        S::Boolean(Some(value)) => json!(value),
        S::Int8(Some(value)) => whole(value),
        S::Int16(Some(value)) => whole(value),
        S::Int32(Some(value))
        | S::Date32(Some(value))
        | S::Time32Second(Some(value))
        | S::Time32Millisecond(Some(value))
        | S::Decimal32(Some(value), _, _) => whole(value),
        S::Int64(Some(value))
        | S::Date64(Some(value))
        | S::Time64Microsecond(Some(value))
        | S::Time64Nanosecond(Some(value))
        | S::TimestampSecond(Some(value), _)
        | S::TimestampMillisecond(Some(value), _)
        | S::TimestampMicrosecond(Some(value), _)
        | S::TimestampNanosecond(Some(value), _)
        | S::DurationSecond(Some(value))
        | S::DurationMillisecond(Some(value))
        | S::DurationMicrosecond(Some(value))
        | S::DurationNanosecond(Some(value))
        | S::Decimal64(Some(value), _, _) => whole(value),
        S::UInt8(Some(value)) => whole(value),
        S::UInt16(Some(value)) => whole(value),
        S::UInt32(Some(value)) => whole(value),
        S::UInt64(Some(value)) => whole(value),
        S::Float32(Some(value)) => number(f64::from(*value)),
        S::Float64(Some(value)) => number(*value),
        S::Utf8(Some(value)) | S::LargeUtf8(Some(value)) | S::Utf8View(Some(value)) => json!(value),
        S::Binary(Some(bytes))
        | S::LargeBinary(Some(bytes))
        | S::BinaryView(Some(bytes))
        | S::FixedSizeBinary(_, Some(bytes)) => json!(bytes),
        S::Decimal128(Some(value), _, _) => whole(value),
        S::Decimal256(Some(value), _, _) => whole(value),
        S::IntervalYearMonth(Some(months)) => json!([months]),
        S::IntervalDayTime(Some(value)) => json!([value.days, value.milliseconds]),
        S::IntervalMonthDayNano(Some(value)) => json!([value.months, value.days, value.nanoseconds]),
        S::Float16(Some(value)) => number(f64::from(value.to_f32())),
        S::Union(..)
        | S::List(_)
        | S::LargeList(_)
        | S::ListView(_)
        | S::LargeListView(_)
        | S::FixedSizeList(_)
        | S::Struct(_)
        | S::Map(_) => return Err(wordless("a constant that is a list", "write its values one by one")),
        // Those without a value are NULL, which came first.
        _ => Value::Null,
    };
    Ok(json!({ "is": said, "type": kind(&value.data_type()) }))
}
