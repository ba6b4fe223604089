//! Tables of extreme values, for tests: every value of one column meets every value of another.

use datafusion::arrow::array::{
    ArrayRef, BinaryArray, BooleanArray, Date32Array, Decimal128Array, Float64Array, Int32Array, Int64Array,
    StringArray, Time64NanosecondArray, TimestampMicrosecondArray, TimestampNanosecondArray, UInt64Array,
};
use std::sync::Arc;

/// So many values each column has, one of them missing; there are as many rows as pairs of them.
pub(crate) const VALUES: usize = 11;
pub(crate) const ROWS: usize = VALUES * VALUES;

/// Columns of the first half change from row to row, those of the second every eleven rows.
pub(crate) const FIRST: [&str; 11] = ["b", "i", "n", "u", "f", "m", "s", "d", "w", "z", "h"];
pub(crate) const SECOND: [&str; 9] = ["j", "g", "p", "t", "y", "e", "v", "k", "q"];

fn laid<T: Clone>(values: &[T], second: bool) -> Vec<Option<T>> {
    let place = |row: usize| if second { row / VALUES } else { row % VALUES };
    (0..ROWS).map(|row| (place(row) > 0).then(|| values[(place(row) - 1) % values.len()].clone())).collect()
}

/// The columns by name.
pub(crate) fn columns() -> Vec<(&'static str, ArrayRef)> {
    let whole = [0, 1, -1, 2, i64::MAX, i64::MIN, 1 << 53, -(1 << 33), 1 << 40, 63];
    let small = [0, 1, -1, 31, i32::MAX, i32::MIN, 1 << 20, -45, 3, 400];
    let natural = [0, 1, u64::MAX, i64::MAX as u64, 1 << 63, 2, 64, 1 << 40, 3, 100];
    let floats = [0.0, -0.0, 1.0, -1.0, f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 1e308, -1e308, 5e-324];
    let ten = 10_i128.pow(38) - 1;
    let long = [0, 1, -1, ten, -ten, 10_i128.pow(10), -10_i128.pow(10), ten / 2, 7, 10_i128.pow(30)];
    let short = [0, 1, -1, 999_999_999, -999_999_999, 100, -100, 50, 12_345, 500_000_000];
    let huge = "x".repeat(70_000);
    let texts = [
        "",
        " ",
        "a",
        "-1",
        "9223372036854775808",
        "1e400",
        "%_\\",
        "2000-02-30T25:61:61Z",
        "ünï\u{0}cödé 👩‍👧",
        huge.as_str(),
    ];
    let more = [
        "1 day",
        "infinity",
        "(",
        "[a-",
        "NaN",
        "999999999-12-31",
        "\\",
        "12:00:00",
        "99999 years",
        "1677-09-21 00:12:43.1",
    ];
    let bytes: [&[u8]; 5] = [b"", b"text", b"\xff\xfe", b"\xc3\x28", b"\xed\xa0\x80"];
    let days = [0, 1, -1, i32::MAX, i32::MIN, 2_932_896, -719_528, 106_751, -106_752, 95_000_000];
    let nanos =
        [0, 1, -1, i64::MAX, i64::MIN, i64::MIN + 1, 946_684_800_000_000_000, -1_000_000_000, 999, i64::MAX - 1];
    let micros = [
        0,
        1,
        -1,
        i64::MAX,
        i64::MIN,
        253_402_300_799_999_999,
        -62_135_596_800_000_000,
        9_223_372_036_854_775,
        8_210_298_412_799_999_999,
        3,
    ];
    let times = [0, 1, 86_399_999_999_999, -1, i64::MAX, i64::MIN, 86_400_000_000_000, 3_600_000_000_000, 60, 5];
    let decimals = |values: &[i128], second, digits, scale| {
        Arc::new(Decimal128Array::from(laid(values, second)).with_precision_and_scale(digits, scale).unwrap())
            as ArrayRef
    };
    let zoned = TimestampMicrosecondArray::from(laid(&micros, false)).with_timezone("Europe/Vienna");
    vec![
        ("b", Arc::new(BooleanArray::from(laid(&[true, false], false)))),
        ("i", Arc::new(Int64Array::from(laid(&whole, false)))),
        ("n", Arc::new(Int32Array::from(laid(&small, false)))),
        ("u", Arc::new(UInt64Array::from(laid(&natural, false)))),
        ("f", Arc::new(Float64Array::from(laid(&floats, false)))),
        ("m", decimals(&long, false, 38, 10)),
        ("s", Arc::new(StringArray::from(laid(&texts, false)))),
        ("d", Arc::new(Date32Array::from(laid(&days, false)))),
        ("w", Arc::new(TimestampNanosecondArray::from(laid(&nanos, false)))),
        ("z", Arc::new(zoned)),
        ("h", Arc::new(Time64NanosecondArray::from(laid(&times, false)))),
        ("j", Arc::new(Int64Array::from(laid(&whole, true)))),
        ("g", Arc::new(Float64Array::from(laid(&floats, true)))),
        ("p", decimals(&short, true, 9, 2)),
        ("t", Arc::new(StringArray::from(laid(&more, true)))),
        ("y", Arc::new(BinaryArray::from_iter(laid(&bytes, true)))),
        ("e", Arc::new(Date32Array::from(laid(&days, true)))),
        ("v", Arc::new(TimestampMicrosecondArray::from(laid(&micros, true)))),
        ("k", decimals(&long, true, 38, 0)),
        ("q", Arc::new(Int32Array::from(laid(&small, true)))),
    ]
}
