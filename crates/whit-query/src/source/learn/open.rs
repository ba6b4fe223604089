//! Columns as plain numbers. What is no number becomes 0, and its row is marked: nothing here fails because of what is in a row.

use datafusion::arrow::array::{Array, ArrayRef, AsArray, OffsetSizeTrait, UInt64Array};
use datafusion::arrow::buffer::ScalarBuffer;
use datafusion::arrow::compute::{CastOptions, cast_with_options, take};
use datafusion::arrow::datatypes::{DataType, Float32Type, Float64Type, UInt8Type};

/// Whether a column can be opened up to numbers.
pub(super) fn opens(kind: &DataType) -> bool {
    match kind {
        DataType::List(inner) | DataType::LargeList(inner) | DataType::FixedSizeList(inner, _) => {
            inner.data_type().is_numeric() || *inner.data_type() == DataType::Boolean
        }
        DataType::Binary
        | DataType::LargeBinary
        | DataType::BinaryView
        | DataType::FixedSizeBinary(_)
        | DataType::Boolean => true,
        other => other.is_numeric(),
    }
}

/// How many numbers a row has in a column: as its type says, or else as was declared; or what is wrong, and what to do.
pub(super) fn width_of(kind: &DataType, bits: bool, declared: Option<usize>) -> Result<usize, (String, &'static str)> {
    let a_byte = if bits { 8 } else { 1 };
    let known = match kind {
        DataType::List(_)
        | DataType::LargeList(_)
        | DataType::Binary
        | DataType::LargeBinary
        | DataType::BinaryView => None,
        DataType::FixedSizeList(_, width) => Some(*width as usize),
        DataType::FixedSizeBinary(bytes) => Some(*bytes as usize * a_byte),
        _ => Some(1),
    };
    let of_bytes = matches!(kind, DataType::Binary | DataType::LargeBinary | DataType::BinaryView);
    match (known, declared) {
        (Some(0), _) | (None, Some(0)) => Err(("has no numbers".to_owned(), "leave it out of the features")),
        (Some(known), Some(declared)) if known != declared => Err((
            format!("has {known} numbers a row by its type, and `widths` says {declared}"),
            "leave it out of `widths`",
        )),
        (None, Some(declared)) if of_bytes && !declared.is_multiple_of(a_byte) => {
            Err((format!("is opened up to bits, and {declared} are no whole bytes"), "give 8 for each byte"))
        }
        (Some(known), _) => Ok(known),
        (None, Some(declared)) => Ok(declared),
        (None, None) => Err((
            "has lists or bytes of any length, and nothing says how many numbers a row has".to_owned(),
            "write widths = { {name} = 784 } into the training file; rows of another length are left out",
        )),
    }
}

/// What cannot be cast is missing.
pub(super) fn soft(column: &ArrayRef, kind: &DataType) -> Result<ArrayRef, String> {
    let options = CastOptions { safe: true, ..CastOptions::default() };
    cast_with_options(column, kind, &options).map_err(|_| "cannot be read as numbers".to_owned())
}

/// A column as numbers.
#[derive(Debug, PartialEq)]
pub(super) struct Opened {
    pub(super) values: Values,
    /// How many a row has.
    pub(super) width: usize,
}

/// As they lie in the column, where that can be.
#[derive(Debug, PartialEq)]
pub(super) enum Values {
    Bytes(ScalarBuffer<u8>),
    Floats(ScalarBuffer<f32>),
}

impl Opened {
    /// The numbers of a column of so many a row. Those that do not fit are 0, and their rows are marked. What fails does so for every column of its type.
    pub(super) fn of(
        column: &ArrayRef,
        width: usize,
        bits: bool,
        scaled: (f32, f32),
        fits: &mut [bool],
    ) -> Result<Self, String> {
        let values = match column.data_type() {
            DataType::List(_) => flat(&level(column.as_list::<i32>(), width)?, width, scaled, fits)?,
            DataType::LargeList(_) => flat(&level(column.as_list::<i64>(), width)?, width, scaled, fits)?,
            DataType::FixedSizeList(_, _) => {
                let lists = column.as_fixed_size_list();
                let inner = lists.values().slice(lists.offset() * width, lists.len() * width);
                let inner = if lists.null_count() == 0 {
                    inner
                } else {
                    let places = (0..lists.len()).flat_map(|row| {
                        let there = lists.is_valid(row);
                        (row * width..(row + 1) * width).map(move |place| there.then_some(place as u64))
                    });
                    picked(&inner, &places.collect())?
                };
                flat(&inner, width, scaled, fits)?
            }
            DataType::Binary | DataType::LargeBinary | DataType::BinaryView | DataType::FixedSizeBinary(_) => {
                Values::Bytes(bytes(column, width, bits, fits)?)
            }
            _ => flat(column, width, scaled, fits)?,
        };
        Ok(Self { values, width })
    }

    /// Keeps the rows that fit.
    pub(super) fn retain(&mut self, fits: &[bool]) {
        fn some<T: Copy>(values: &[T], width: usize, fits: &[bool]) -> Vec<T> {
            let rows = values.chunks_exact(width).zip(fits).filter(|(_, fits)| **fits);
            rows.flat_map(|(row, _)| row.iter().copied()).collect()
        }
        self.values = match &self.values {
            Values::Bytes(values) => Values::Bytes(some(values, self.width, fits).into()),
            Values::Floats(values) => Values::Floats(some(values, self.width, fits).into()),
        };
    }
}

fn picked(values: &ArrayRef, places: &UInt64Array) -> Result<ArrayRef, String> {
    take(values, &places, None).map_err(|_| "cannot be opened up".to_owned())
}

/// The numbers of lists, each as long as was declared; those of another length are missing.
fn level<O: OffsetSizeTrait>(
    lists: &datafusion::arrow::array::GenericListArray<O>,
    width: usize,
) -> Result<ArrayRef, String> {
    let (rows, offsets) = (lists.len(), lists.offsets());
    let starts = |row: usize| offsets[row].as_usize();
    if lists.null_count() == 0 && offsets.lengths().all(|length| length == width) {
        return Ok(lists.values().slice(starts(0), rows * width));
    }
    let places = (0..rows).flat_map(|row| {
        let there = lists.is_valid(row) && starts(row + 1) - starts(row) == width;
        (starts(row)..starts(row) + width).map(move |place| there.then_some(place as u64))
    });
    picked(lists.values(), &places.collect())
}

/// Bytes, or their bits; those of another length are 0.
fn bytes(column: &ArrayRef, width: usize, bits: bool, fits: &mut [bool]) -> Result<ScalarBuffer<u8>, String> {
    let own = if bits { width / 8 } else { width };
    let column = soft(column, &DataType::Binary)?;
    let column = column.as_binary::<i32>();
    let rows = column.len();
    let all = if column.null_count() == 0 && column.offsets().lengths().all(|length| length == own) {
        ScalarBuffer::new(column.values().clone(), column.offsets()[0] as usize, rows * own)
    } else {
        let mut all = Vec::with_capacity(rows * own);
        for (row, fits) in column.iter().zip(fits) {
            if let Some(row) = row.filter(|row| row.len() == own) {
                all.extend_from_slice(row);
            } else {
                all.extend(std::iter::repeat_n(0, own));
                *fits = false;
            }
        }
        all.into()
    };
    if bits {
        return Ok(all.iter().flat_map(|&byte| (0..8_u8).rev().map(move |bit| byte >> bit & 1)).collect());
    }
    Ok(all)
}

/// Numbers as bytes where they are, and else as floats.
fn flat(values: &ArrayRef, width: usize, scaled: (f32, f32), fits: &mut [bool]) -> Result<Values, String> {
    if let DataType::UInt8 | DataType::Boolean = values.data_type() {
        if let Some(nulls) = values.nulls() {
            mark(fits, width, |place| nulls.is_valid(place));
        }
        let there = |place: usize, byte: u8| if values.is_valid(place) { byte } else { 0 };
        return Ok(Values::Bytes(match values.data_type() {
            DataType::UInt8 if values.null_count() == 0 => values.as_primitive::<UInt8Type>().values().clone(),
            DataType::UInt8 => values
                .as_primitive::<UInt8Type>()
                .values()
                .iter()
                .enumerate()
                .map(|(at, &byte)| there(at, byte))
                .collect(),
            _ => values.as_boolean().values().iter().enumerate().map(|(at, yes)| there(at, u8::from(yes))).collect(),
        }));
    }
    let (floats, nulls): (ScalarBuffer<f32>, _) = if *values.data_type() == DataType::Float32 {
        (values.as_primitive::<Float32Type>().values().clone(), values.nulls().cloned())
    } else {
        let numbers = soft(values, &DataType::Float64)?;
        let floats = numbers.as_primitive::<Float64Type>().values().iter().map(|&value| value as f32).collect();
        (floats, numbers.nulls().cloned())
    };
    let good = |place: usize| {
        let (scale, offset) = scaled;
        let value = floats[place];
        value.is_finite()
            && value.mul_add(scale, offset).is_finite()
            && nulls.as_ref().is_none_or(|nulls| nulls.is_valid(place))
    };
    if (0..floats.len()).all(good) {
        return Ok(Values::Floats(floats));
    }
    mark(fits, width, good);
    let whole = (0..floats.len()).map(|place| if good(place) { floats[place] } else { 0.0 });
    Ok(Values::Floats(whole.collect()))
}

/// Marks the rows of which a number is not good.
fn mark(fits: &mut [bool], width: usize, good: impl Fn(usize) -> bool) {
    for (row, fits) in fits.iter_mut().enumerate() {
        *fits &= (row * width..(row + 1) * width).all(&good);
    }
}
