//! From the text of a cell to a value of the declared type. What cannot be read is NULL, whatever it is: nothing here fails.
//!
//! Numbers, dates and moments are read by hand, so that no input, however odd or long, makes a reader panic.

use datafusion::arrow::array::builder::{
    BooleanBuilder, Date32Builder, Decimal128Builder, Float64Builder, Int64Builder, NullBufferBuilder, StringBuilder,
    TimestampNanosecondBuilder,
};
use datafusion::arrow::array::{ArrayRef, ListArray};
use datafusion::arrow::buffer::{OffsetBuffer, ScalarBuffer};
use datafusion::arrow::datatypes::{DataType, Field, TimeUnit};
use std::sync::Arc;
use whit_core::declare::ColumnType;

/// How the engine holds a declared type.
pub(in crate::source) fn arrow_of(kind: &ColumnType) -> DataType {
    match kind {
        ColumnType::Int => DataType::Int64,
        ColumnType::Float => DataType::Float64,
        ColumnType::Text => DataType::Utf8,
        ColumnType::Bool => DataType::Boolean,
        ColumnType::Date => DataType::Date32,
        // Moments in SQL are of this unit, so that comparing with one converts nothing, and nothing can overflow.
        ColumnType::Timestamp => DataType::Timestamp(TimeUnit::Nanosecond, None),
        ColumnType::Decimal { precision, scale } => DataType::Decimal128(*precision, scale.cast_signed()),
        ColumnType::List(item) => DataType::List(Arc::new(Field::new_list_field(arrow_of(item), true))),
    }
}

/// One cell as an array, for what is the same in many rows.
pub(in crate::source) fn one(text: &[u8], kind: &ColumnType) -> ArrayRef {
    let mut column = Column::new(kind);
    column.take(text);
    column.finish()
}

/// What became of a cell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Taken {
    /// It was read.
    Value,
    /// It is empty, or `null`.
    Missing,
    /// It is something else than was declared, and so NULL.
    Wrong,
}

/// A column as it is gathered.
pub(super) enum Column {
    Int(Int64Builder),
    Float(Float64Builder),
    Text(StringBuilder),
    Bool(BooleanBuilder),
    Date(Date32Builder),
    Timestamp(TimestampNanosecondBuilder),
    Decimal(Decimal128Builder, u8, u8),
    List { items: Box<Column>, ends: Vec<i32>, there: NullBufferBuilder, held: usize, field: Arc<Field> },
}

/// Appends a value or a NULL, and says which.
macro_rules! put {
    ($builder:expr, $value:expr) => {
        match $value {
            Some(value) => {
                $builder.append_value(value);
                Taken::Value
            }
            None => {
                $builder.append_null();
                Taken::Wrong
            }
        }
    };
}

impl Column {
    pub(super) fn new(kind: &ColumnType) -> Self {
        match kind {
            ColumnType::Int => Self::Int(Int64Builder::new()),
            ColumnType::Float => Self::Float(Float64Builder::new()),
            ColumnType::Text => Self::Text(StringBuilder::new()),
            ColumnType::Bool => Self::Bool(BooleanBuilder::new()),
            ColumnType::Date => Self::Date(Date32Builder::new()),
            ColumnType::Timestamp => Self::Timestamp(TimestampNanosecondBuilder::new()),
            ColumnType::Decimal { precision, scale } => {
                let builder = Decimal128Builder::new().with_data_type(arrow_of(kind));
                Self::Decimal(builder, *precision, *scale)
            }
            ColumnType::List(item) => Self::List {
                items: Box::new(Self::new(item)),
                ends: vec![0],
                there: NullBufferBuilder::new(0),
                held: 0,
                field: Arc::new(Field::new_list_field(arrow_of(item), true)),
            },
        }
    }

    pub(super) fn null(&mut self) {
        match self {
            Self::Int(builder) => builder.append_null(),
            Self::Float(builder) => builder.append_null(),
            Self::Text(builder) => builder.append_null(),
            Self::Bool(builder) => builder.append_null(),
            Self::Date(builder) => builder.append_null(),
            Self::Timestamp(builder) => builder.append_null(),
            Self::Decimal(builder, ..) => builder.append_null(),
            Self::List { ends, there, held, .. } => {
                ends.push(i32::try_from(*held).unwrap_or(i32::MAX));
                there.append_null();
            }
        }
    }

    /// Takes a cell that is not there.
    pub(super) fn none(&mut self) -> Taken {
        self.null();
        Taken::Missing
    }

    /// Takes the text of a cell. An empty one is NULL, also for text, as in every CSV.
    pub(super) fn take(&mut self, text: &[u8]) -> Taken {
        let plain = if matches!(self, Self::Text(_)) { text } else { text.trim_ascii() };
        if plain.is_empty() {
            self.null();
            return Taken::Missing;
        }
        match self {
            Self::Int(builder) => put!(builder, int(plain)),
            Self::Float(builder) => put!(builder, float(plain)),
            Self::Text(builder) => put!(builder, std::str::from_utf8(plain).ok()),
            Self::Bool(builder) => put!(builder, truth(plain)),
            Self::Date(builder) => put!(builder, date(plain)),
            Self::Timestamp(builder) => put!(builder, moment(plain)),
            Self::Decimal(builder, precision, scale) => put!(builder, decimal(plain, *precision, *scale)),
            Self::List { .. } => {
                self.null();
                Taken::Wrong
            }
        }
    }

    /// Takes a text that is there and empty, as JSON can say.
    pub(super) fn take_empty(&mut self) -> Taken {
        if let Self::Text(builder) = self {
            builder.append_value("");
            return Taken::Value;
        }
        self.null();
        Taken::Missing
    }

    /// Takes a list, whose items `each` hands to the column of items one by one.
    pub(super) fn take_list(&mut self, each: impl FnOnce(&mut Column) -> usize) -> Taken {
        let Self::List { items, ends, there, held, .. } = self else {
            self.null();
            return Taken::Wrong;
        };
        *held += each(items);
        ends.push(i32::try_from(*held).unwrap_or(i32::MAX));
        there.append_non_null();
        Taken::Value
    }

    /// What was gathered; the column is empty then.
    pub(super) fn finish(&mut self) -> ArrayRef {
        match self {
            Self::Int(builder) => Arc::new(builder.finish()),
            Self::Float(builder) => Arc::new(builder.finish()),
            Self::Text(builder) => Arc::new(builder.finish()),
            Self::Bool(builder) => Arc::new(builder.finish()),
            Self::Date(builder) => Arc::new(builder.finish()),
            Self::Timestamp(builder) => Arc::new(builder.finish()),
            Self::Decimal(builder, ..) => Arc::new(builder.finish()),
            Self::List { items, ends, there, held, field } => {
                *held = 0;
                let ends = OffsetBuffer::new(ScalarBuffer::from(std::mem::replace(ends, vec![0])));
                Arc::new(ListArray::new(Arc::clone(field), ends, items.finish(), there.finish()))
            }
        }
    }
}

/// A whole number; `12.0` is one too, since tools write so where a value is missing elsewhere.
fn int(text: &[u8]) -> Option<i64> {
    let (negative, digits) = signed(text);
    let (whole, fraction) = match digits.iter().position(|&byte| byte == b'.') {
        Some(point) => (&digits[..point], &digits[point + 1..]),
        None => (digits, &[][..]),
    };
    if whole.is_empty() || fraction.iter().any(|&byte| byte != b'0') {
        return None;
    }
    // Gathered below zero, which reaches one further.
    let below = whole.iter().try_fold(0_i64, |sum, byte| {
        let digit = byte.wrapping_sub(b'0');
        if digit > 9 { None } else { sum.checked_mul(10)?.checked_sub(i64::from(digit)) }
    })?;
    if negative { Some(below) } else { below.checked_neg() }
}

fn signed(text: &[u8]) -> (bool, &[u8]) {
    match text.split_first() {
        Some((b'-', rest)) => (true, rest),
        Some((b'+', rest)) => (false, rest),
        _ => (false, text),
    }
}

fn float(text: &[u8]) -> Option<f64> {
    std::str::from_utf8(text).ok()?.parse().ok()
}

fn truth(text: &[u8]) -> Option<bool> {
    match text {
        b"1" => Some(true),
        b"0" => Some(false),
        _ if text.eq_ignore_ascii_case(b"true") => Some(true),
        _ if text.eq_ignore_ascii_case(b"false") => Some(false),
        _ => None,
    }
}

/// A decimal without exponent, rounded half away from zero to its scale.
fn decimal(text: &[u8], precision: u8, scale: u8) -> Option<i128> {
    let (negative, digits) = signed(text);
    let (mut value, mut behind, mut any, mut up) = (0_i128, None::<u8>, false, None);
    for &byte in digits {
        match (byte, behind) {
            (b'.', None) => behind = Some(0),
            (b'0'..=b'9', _) => {
                any = true;
                if behind.is_some_and(|behind| behind >= scale) {
                    up = up.or(Some(byte >= b'5')); // the first digit beyond decides
                    continue;
                }
                value = value.checked_mul(10)?.checked_add(i128::from(byte - b'0'))?;
                behind = behind.map(|behind| behind + 1);
            }
            _ => return None,
        }
    }
    let missing = u32::from(scale - behind.unwrap_or(0).min(scale));
    let value = value.checked_mul(10_i128.checked_pow(missing)?)?.checked_add(i128::from(up == Some(true)))?;
    let fits = value < 10_i128.checked_pow(u32::from(precision))?;
    (any && fits).then_some(if negative { -value } else { value })
}

/// So many digits as a number.
fn digits(text: &[u8], many: usize) -> Option<(i64, &[u8])> {
    let (head, rest) = text.split_at_checked(many)?;
    let value = head.iter().try_fold(0_i64, |sum, byte| {
        let digit = byte.wrapping_sub(b'0');
        (digit <= 9).then(|| 10 * sum + i64::from(digit))
    })?;
    Some((value, rest))
}

fn after(text: &[u8], mark: u8) -> Option<&[u8]> {
    text.split_first().filter(|(first, _)| **first == mark).map(|(_, rest)| rest)
}

/// `2024-02-29` at the beginning of a text, as days since 1970, and the rest.
fn day(text: &[u8]) -> Option<(i64, &[u8])> {
    let (year, rest) = digits(text, 4)?;
    let (month, rest) = digits(after(rest, b'-')?, 2)?;
    let (day, rest) = digits(after(rest, b'-')?, 2)?;
    let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let days = match month {
        1 | 3 | 5 | 7 | 8 | 10 | 12 => 31,
        4 | 6 | 9 | 11 => 30,
        2 => 28 + i64::from(leap),
        _ => return None,
    };
    if !(1..=days).contains(&day) {
        return None;
    }
    // Days from civil (Hinnant): years begin in March, so that the leap day is the last.
    let shifted = year - i64::from(month <= 2);
    let era = shifted.div_euclid(400);
    let of_era = shifted.rem_euclid(400);
    let of_year = (153 * (month + if month > 2 { -3 } else { 9 }) + 2) / 5 + day - 1;
    Some((era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719_468, rest))
}

/// A day; of a moment, the day as it is written.
fn date(text: &[u8]) -> Option<i32> {
    let (days, rest) = day(text)?;
    (rest.is_empty() || moment(text).is_some()).then(|| i32::try_from(days).ok()).flatten()
}

/// `2024-02-29`, `2024-02-29T12:30`, `2024-02-29 12:30:00.25+01:00`, as nanoseconds since 1970. An offset is taken off.
fn moment(text: &[u8]) -> Option<i64> {
    let (days, rest) = day(text)?;
    let mut seconds = days * 86_400;
    let mut nanoseconds = 0_i64;
    if !rest.is_empty() {
        let (hour, rest) = digits(after(rest, b'T').or_else(|| after(rest, b' '))?, 2)?;
        let (minute, mut rest) = digits(after(rest, b':')?, 2)?;
        let mut second = 0;
        if let Some(more) = after(rest, b':') {
            (second, rest) = digits(more, 2)?;
            if let Some(fraction) = after(rest, b'.') {
                let many = fraction.iter().take_while(|byte| byte.is_ascii_digit()).count();
                // Beyond nanoseconds there is nothing to keep.
                let kept = many.min(9);
                let (value, _) = digits(fraction, kept).filter(|_| many > 0)?;
                nanoseconds = value * 10_i64.pow(9 - kept as u32);
                rest = &fraction[many..];
            }
        }
        if hour > 23 || minute > 59 || second > 59 {
            return None;
        }
        seconds += hour * 3600 + minute * 60 + second - offset(rest)?;
    }
    seconds.checked_mul(1_000_000_000)?.checked_add(nanoseconds)
}

/// `Z`, `+01:00`, `+0100`, `+01` or nothing, in seconds.
fn offset(text: &[u8]) -> Option<i64> {
    let text = after(text, b' ').unwrap_or(text);
    let sign = match text {
        [] | [b'Z' | b'z'] => return Some(0),
        [b'+', ..] => 1,
        [b'-', ..] => -1,
        _ => return None,
    };
    let (hours, rest) = digits(&text[1..], 2)?;
    let (minutes, rest) = match rest {
        [] => (0, rest),
        _ => digits(after(rest, b':').unwrap_or(rest), 2)?,
    };
    (rest.is_empty() && hours < 24 && minutes < 60).then_some(sign * (hours * 3600 + minutes * 60))
}

#[cfg(test)]
mod tests {
    use super::*;
    use datafusion::arrow::compute::kernels::cast_utils::{Parser, string_to_timestamp_nanos};
    use datafusion::arrow::datatypes::Date32Type;
    use proptest::prelude::*;

    #[test]
    fn numbers_are_read_exactly_or_not_at_all() {
        for (text, expected) in [
            ("0", Some(0)),
            ("-9223372036854775808", Some(i64::MIN)),
            ("9223372036854775807", Some(i64::MAX)),
            ("9223372036854775808", None),
            ("+5", Some(5)),
            ("12.0", Some(12)),
            ("12.", Some(12)),
            ("12.5", None),
            (".0", None),
            ("1e3", None),
            ("0x10", None),
            ("--1", None),
            ("1 2", None),
            ("١", None),
        ] {
            assert_eq!(int(text.as_bytes()), expected, "{text}");
        }
        for (text, expected) in [
            ("1.005", Some(101)),
            ("-1.005", Some(-101)),
            ("1", Some(100)),
            ("999.99", Some(99_999)),
            ("999.995", None),
            ("1000", None),
            (".5", Some(50)),
            (".", None),
            ("1.2.3", None),
            ("1e2", None),
        ] {
            assert_eq!(decimal(text.as_bytes(), 5, 2), expected, "{text}");
        }
        assert_eq!(decimal("9".repeat(500).as_bytes(), 38, 0), None);
        assert_eq!(decimal(format!("0.{}", "9".repeat(500)).as_bytes(), 38, 37), Some(10_i128.pow(37)));
        assert_eq!(["TRUE", "0", "yes"].map(|text| truth(text.as_bytes())), [Some(true), Some(false), None]);
    }

    #[test]
    fn days_and_moments_are_those_of_the_calendar() {
        for (text, expected) in [
            ("1970-01-01", Some(0)),
            ("2024-02-29", Some(19_782)),
            ("2023-02-29", None),
            ("1900-02-29", None),
            ("2000-02-29", Some(11_016)),
            ("2024-13-01", None),
            ("2024-2-1", None),
            ("2024-01-01T10:00:00Z", Some(19_723)),
            ("2024-01-01 nonsense", None),
        ] {
            assert_eq!(date(text.as_bytes()), expected, "{text}");
        }
        let hour = 3_600_000_000_000;
        for (text, expected) in [
            ("1970-01-01", Some(0)),
            ("1970-01-01T01:00", Some(hour)),
            ("1970-01-01 01:00:00.5", Some(hour + 500_000_000)),
            ("1970-01-01T01:00:00+01:00", Some(0)),
            ("1970-01-01T01:00:00-0130", Some(hour + hour * 3 / 2)),
            ("1970-01-01T00:00:00.1234567899Z", Some(123_456_789)),
            ("1970-01-01T24:00", None),
            ("1970-01-01T00:00:00.", None),
            ("2262-04-11T23:47:16.854775807", Some(i64::MAX)),
            ("2262-04-11T23:47:16.854775808", None),
            ("9999-12-31", None),
        ] {
            assert_eq!(moment(text.as_bytes()), expected, "{text}");
        }
    }

    proptest! {
        #[test]
        fn nothing_that_is_written_makes_a_reader_fail(text in prop_oneof![
            "[0-9+.eE:TZ -]{0,40}", "\\PC{0,40}", "[0-9]{4}-[0-9]{2}-[0-9]{2}[T ]?[0-9:.+Z-]{0,20}",
        ], bytes in proptest::collection::vec(any::<u8>(), 0..40)) {
            for text in [text.as_bytes(), &bytes] {
                for kind in ["int", "float", "text", "bool", "date", "timestamp", "decimal(38, 38)", "decimal(1)", "list(int)"] {
                    let mut column = Column::new(&ColumnType::parse(kind).unwrap());
                    column.take(text);
                    column.null();
                    prop_assert_eq!(column.finish().len(), 2);
                }
            }
        }

        #[test]
        fn days_and_moments_are_read_as_arrow_reads_them(
            year in 1700..2200_i32, month in 1..13_u32, day in 1..32_u32, seconds in 0..86_400_u32, nano in 0..1_000_000_000_u32,
        ) {
            let text = format!("{year:04}-{month:02}-{day:02}");
            prop_assert_eq!(date(text.as_bytes()), Date32Type::parse(&text));
            let (h, m, s) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
            let text = format!("{text}T{h:02}:{m:02}:{s:02}.{nano:09}+02:30");
            prop_assert_eq!(moment(text.as_bytes()), string_to_timestamp_nanos(&text).ok());
        }
    }
}
