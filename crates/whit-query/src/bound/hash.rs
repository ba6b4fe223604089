//! The hash that decides what a unit keeps: our own, keyed and written down, so that every engine and every version of one keeps the same.
//!
//! A value becomes bytes that depend on what it is and not on how an engine holds it, the values of one row stand one after the other, and SipHash-2-4
//! (Aumasson and Bernstein 2012) makes one number of them under a key. Where the number decides what is kept, nobody may guess the key; where it only says who
//! is who, from one run to the next, the key is [public](PUBLIC). `docs/choice.md` says the same in words.

use super::Outcome;
use datafusion::arrow::array::{Array, ArrayRef, AsArray, StringViewArray};
use datafusion::arrow::buffer::NullBuffer;
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{
    DataType, Date32Type, Decimal128Type, Float64Type, Int64Type, Time64NanosecondType, TimeUnit,
    TimestampMicrosecondType, TimestampMillisecondType, TimestampNanosecondType, TimestampSecondType, UInt64Type,
};
use datafusion::arrow::util::display::{ArrayFormatter, FormatOptions};
use std::ops::Range;
use std::sync::Arc;

/// What a hash is for: hashes of one value for different things have nothing to do with one another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    /// Which users are computed together, when not all fit into memory.
    Share = 0,
    /// Who a user is.
    User = 1,
    /// Which element.
    Element = 2,
    /// Which group.
    Group = 3,
    /// Which value inside of a group.
    Inner = 4,
    /// Which row, where each stands for itself.
    Row = 5,
    /// Which part of the rows somebody falls into, where some are set aside to try a model on.
    Split = 6,
    /// Which place a value has among the numbers that a model reads.
    Place = 7,
}

/// The seed of numbers that have to be the same in every run over the same rows, as those are by which training tells users apart: a run that was interrupted goes on,
/// days later, with the units that it had. It is no secret, so nothing that nobody may foresee hangs on such a number alone.
pub(crate) const PUBLIC: u64 = 0;

/// One number for each row of some columns.
pub(crate) fn hashes(columns: &[ArrayRef], rows: usize, seed: u64, role: Role) -> Outcome<Vec<u64>> {
    let (key, mut hashes) = (key(seed, role), Vec::with_capacity(rows));
    in_blocks(columns, rows, |block| {
        // Two at a time: each step of one waits for the step before it, and a processor has room for another meanwhile.
        let mut rows = 0..block.rows();
        while let Some(row) = rows.next() {
            match rows.next() {
                Some(next) => hashes.extend(siphash_two(key, [block.row(row), block.row(next)])),
                None => hashes.push(siphash(key, block.row(row))),
            }
        }
    })?;
    Ok(hashes)
}

/// The number of one row's values, as they are [written](each_written).
pub(crate) fn hash(bytes: &[u8], seed: u64, role: Role) -> u64 {
    siphash(key(seed, role), bytes)
}

fn key(seed: u64, role: Role) -> [u64; 2] {
    [seed, u64::from_le_bytes(*b"whit 1\0\0") | (role as u64) << 56]
}

/// The values of each row of some columns, one after the other, as bytes: two rows have the same if their values are the same, however they are held, and else they have others.
pub(crate) fn each_written(columns: &[ArrayRef], rows: usize, mut take: impl FnMut(&[u8])) -> Outcome<()> {
    in_blocks(columns, rows, |block| (0..block.rows()).for_each(|row| take(block.row(row))))
}

/// So many rows are written at once: few enough for the processor's nearest cache.
const BLOCK: usize = 128;

/// Some rows as bytes.
#[derive(Default)]
struct ColumnBytes {
    bytes: Vec<u8>,
    /// Where each row begins, and where the last one ends.
    starts: Vec<usize>,
    /// Row by row, where the next value is written.
    next: Vec<usize>,
}

impl ColumnBytes {
    fn rows(&self) -> usize {
        self.next.len()
    }

    fn row(&self, row: usize) -> &[u8] {
        &self.bytes[self.starts[row]..self.starts[row + 1]]
    }

    /// Writes some rows, column by column.
    fn fill(&mut self, columns: &[Written], rows: &Range<usize>) {
        self.next.clear();
        self.next.resize(rows.len(), 0);
        for column in columns {
            column.measure(rows, &mut self.next);
        }
        self.starts.clear();
        self.starts.push(0);
        let mut end = 0;
        for next in &mut self.next {
            let start = end;
            end += *next;
            self.starts.push(end);
            *next = start;
        }
        self.bytes.resize(end, 0);
        for column in columns {
            column.write(rows, &mut self.next, &mut self.bytes);
        }
    }
}

/// The rows of some columns as bytes, some at a time.
fn in_blocks(columns: &[ArrayRef], rows: usize, mut take: impl FnMut(&ColumnBytes)) -> Outcome<()> {
    let columns = columns.iter().map(Written::of).collect::<Outcome<Vec<_>>>()?;
    let mut block = ColumnBytes::default();
    for start in (0..rows).step_by(BLOCK) {
        block.fill(&columns, &(start..rows.min(start + BLOCK)));
        take(&block);
    }
    Ok(())
}

/// A column in one of the few kinds that values are written as.
enum Written {
    Whole(ArrayRef),
    Large(ArrayRef),
    Float(ArrayRef),
    Text(ArrayRef),
    Bytes(ArrayRef),
    Truth(ArrayRef),
    Day(ArrayRef),
    /// Parts of a second, of which so many nanoseconds are one.
    Instant(ArrayRef, i128),
    Time(ArrayRef),
    Decimal(ArrayRef, i8),
    /// As the engine's library writes it, after the name of the type: lists, structures, and other things that are seldom kept apart by.
    Other(ArrayRef, String),
}

impl Written {
    fn of(column: &ArrayRef) -> Outcome<Self> {
        let kind = column.data_type();
        let to =
            |kind: &DataType| if column.data_type() == kind { Ok(ArrayRef::clone(column)) } else { cast(column, kind) };
        Ok(match kind {
            DataType::Dictionary(_, values) => Self::of(&cast(column, values)?)?,
            DataType::UInt64 => Self::Large(to(kind)?),
            kind if kind.is_integer() => Self::Whole(to(&DataType::Int64)?),
            kind if kind.is_floating() => Self::Float(to(&DataType::Float64)?),
            DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => Self::Text(to(&DataType::Utf8View)?),
            DataType::Binary | DataType::LargeBinary | DataType::BinaryView | DataType::FixedSizeBinary(_) => {
                Self::Bytes(to(&DataType::BinaryView)?)
            }
            DataType::Boolean => Self::Truth(to(kind)?),
            DataType::Date32 => Self::Day(to(kind)?),
            DataType::Timestamp(unit, _) => {
                let nanoseconds = match unit {
                    TimeUnit::Second => 1_000_000_000,
                    TimeUnit::Millisecond => 1_000_000,
                    TimeUnit::Microsecond => 1_000,
                    TimeUnit::Nanosecond => 1,
                };
                Self::Instant(to(kind)?, nanoseconds)
            }
            DataType::Time32(_) | DataType::Time64(_) => Self::Time(to(&DataType::Time64(TimeUnit::Nanosecond))?),
            DataType::Decimal128(_, scale) => Self::Decimal(to(kind)?, *scale),
            DataType::Decimal32(_, scale) | DataType::Decimal64(_, scale) => {
                Self::Decimal(to(&DataType::Decimal128(38, *scale))?, *scale)
            }
            kind => {
                let written = ArrayFormatter::try_new(column.as_ref(), &FormatOptions::default())?;
                let text = |row: usize| column.is_valid(row).then(|| written.value(row).to_string());
                let texts: StringViewArray = (0..column.len()).map(text).collect();
                Self::Other(Arc::new(texts), kind.to_string())
            }
        })
    }

    fn array(&self) -> &ArrayRef {
        match self {
            Self::Whole(array)
            | Self::Large(array)
            | Self::Float(array)
            | Self::Text(array)
            | Self::Bytes(array)
            | Self::Truth(array)
            | Self::Day(array)
            | Self::Instant(array, _)
            | Self::Time(array)
            | Self::Decimal(array, _)
            | Self::Other(array, _) => array,
        }
    }

    /// Adds to each row's length what a value takes; what is missing takes its letter.
    fn measure(&self, rows: &Range<usize>, lengths: &mut [usize]) {
        let nulls = self.array().nulls();
        let mut each = |of: &dyn Fn(usize) -> usize| {
            for (row, length) in rows.clone().zip(&mut *lengths) {
                let there = nulls.is_none_or(|nulls| nulls.is_valid(row));
                *length += 1 + if there { of(row) } else { 0 };
            }
        };
        match self {
            Self::Text(array) => {
                let texts = array.as_string_view();
                each(&|row| LENGTH + texts.value(row).len());
            }
            Self::Bytes(array) => {
                let texts = array.as_binary_view();
                each(&|row| LENGTH + texts.value(row).len());
            }
            Self::Other(array, kind) => {
                let texts = array.as_string_view();
                each(&|row| LENGTH + kind.len() + 1 + LENGTH + texts.value(row).len());
            }
            Self::Decimal(..) => each(&|_| NUMBER + 1 + NUMBER),
            _ => each(&|_| NUMBER),
        }
    }

    /// A letter for the kind, and then the value: numbers as 16 bytes, the lowest first; text and bytes after how many they are, as 8. Each row's goes where its next value
    /// stands.
    fn write(&self, rows: &Range<usize>, next: &mut [usize], bytes: &mut [u8]) {
        let mut out = Out { nulls: self.array().nulls(), rows: rows.clone(), next, bytes };
        match self {
            Self::Whole(array) => {
                let values = array.as_primitive::<Int64Type>().values();
                out.numbers(b'i', |row| values[row].into());
            }
            Self::Large(array) => {
                let values = array.as_primitive::<UInt64Type>().values();
                out.numbers(b'i', |row| values[row].into());
            }
            Self::Float(array) => {
                let values = array.as_primitive::<Float64Type>().values();
                out.numbers(b'f', |row| {
                    // There is one zero and one NaN.
                    let value = if values[row] == 0.0 { 0.0 } else { values[row] };
                    let value = if value.is_nan() { f64::NAN } else { value };
                    value.to_bits().into()
                });
            }
            Self::Text(array) => {
                let texts = array.as_string_view();
                out.each(|row, out| out.text(b't', texts.value(row).as_bytes()));
            }
            Self::Bytes(array) => {
                let texts = array.as_binary_view();
                out.each(|row, out| out.text(b'b', texts.value(row)));
            }
            Self::Truth(array) => {
                let values = array.as_boolean();
                out.numbers(b'l', |row| values.value(row).into());
            }
            Self::Day(array) => {
                let values = array.as_primitive::<Date32Type>().values();
                out.numbers(b'd', |row| values[row].into());
            }
            Self::Instant(array, nanoseconds) => {
                let values = match array.data_type() {
                    DataType::Timestamp(TimeUnit::Second, _) => array.as_primitive::<TimestampSecondType>().values(),
                    DataType::Timestamp(TimeUnit::Millisecond, _) => {
                        array.as_primitive::<TimestampMillisecondType>().values()
                    }
                    DataType::Timestamp(TimeUnit::Microsecond, _) => {
                        array.as_primitive::<TimestampMicrosecondType>().values()
                    }
                    _ => array.as_primitive::<TimestampNanosecondType>().values(),
                };
                out.numbers(b's', |row| i128::from(values[row]) * nanoseconds);
            }
            Self::Time(array) => {
                let values = array.as_primitive::<Time64NanosecondType>().values();
                out.numbers(b'h', |row| values[row].into());
            }
            Self::Decimal(array, scale) => {
                let values = array.as_primitive::<Decimal128Type>().values();
                out.each(|row, out| {
                    let (mut value, mut scale) = (values[row], *scale);
                    // 1.50 is 1.5.
                    while value % 10 == 0 && scale > 0 {
                        (value, scale) = (value / 10, scale - 1);
                    }
                    out.number(b'n', value);
                    out.number(b'n', scale.into());
                });
            }
            Self::Other(array, kind) => {
                let texts = array.as_string_view();
                out.each(|row, out| {
                    out.text(b'x', kind.as_bytes());
                    out.text(b'x', texts.value(row).as_bytes());
                });
            }
        }
    }
}

/// How many bytes a number takes, and how many one that says how long a text is.
const NUMBER: usize = 16;
const LENGTH: usize = 8;

/// Where the values of one column are written.
struct Out<'a> {
    nulls: Option<&'a NullBuffer>,
    rows: Range<usize>,
    next: &'a mut [usize],
    bytes: &'a mut [u8],
}

/// Where one value is written.
struct Cursor<'a> {
    next: &'a mut usize,
    bytes: &'a mut [u8],
}

impl Out<'_> {
    /// Writes what is there; what is missing is a letter.
    fn each(&mut self, write: impl Fn(usize, &mut Cursor<'_>)) {
        for (row, next) in self.rows.clone().zip(&mut *self.next) {
            let mut cursor = Cursor { next, bytes: self.bytes };
            if self.nulls.is_some_and(|nulls| nulls.is_null(row)) {
                cursor.put(b"0");
            } else {
                write(row, &mut cursor);
            }
        }
    }

    fn numbers(&mut self, letter: u8, value: impl Fn(usize) -> i128) {
        self.each(|row, cursor| cursor.number(letter, value(row)));
    }
}

impl Cursor<'_> {
    fn put(&mut self, bytes: &[u8]) {
        self.bytes[*self.next..*self.next + bytes.len()].copy_from_slice(bytes);
        *self.next += bytes.len();
    }

    fn number(&mut self, letter: u8, value: i128) {
        let mut bytes = [letter; 1 + NUMBER];
        bytes[1..].copy_from_slice(&value.to_le_bytes());
        self.put(&bytes);
    }

    fn text(&mut self, letter: u8, text: &[u8]) {
        let mut bytes = [letter; 1 + LENGTH];
        bytes[1..].copy_from_slice(&(text.len() as u64).to_le_bytes());
        self.put(&bytes);
        self.put(text);
    }
}

/// SipHash-2-4 of some bytes, under a key of two numbers.
fn siphash(key: [u64; 2], bytes: &[u8]) -> u64 {
    let mut sip = Sip::new(key);
    (0..bytes.len() / 8).for_each(|place| sip.take(word(bytes, place)));
    sip.finish(bytes)
}

/// The same of two at a time.
fn siphash_two(key: [u64; 2], [one, two]: [&[u8]; 2]) -> [u64; 2] {
    let (mut first, mut second) = (Sip::new(key), Sip::new(key));
    let (words, others) = (one.len() / 8, two.len() / 8);
    let both = words.min(others);
    for place in 0..both {
        first.take(word(one, place));
        second.take(word(two, place));
    }
    (both..words).for_each(|place| first.take(word(one, place)));
    (both..others).for_each(|place| second.take(word(two, place)));
    [first.finish(one), second.finish(two)]
}

/// Eight bytes as a number, the lowest first.
fn word(bytes: &[u8], place: usize) -> u64 {
    bytes[8 * place..].first_chunk().map_or(0, |word| u64::from_le_bytes(*word))
}

/// What the hash keeps while bytes go through it.
struct Sip([u64; 4]);

impl Sip {
    fn new(key: [u64; 2]) -> Self {
        Self([
            key[0] ^ 0x736f_6d65_7073_6575,
            key[1] ^ 0x646f_7261_6e64_6f6d,
            key[0] ^ 0x6c79_6765_6e65_7261,
            key[1] ^ 0x7465_6462_7974_6573,
        ])
    }

    fn take(&mut self, word: u64) {
        self.0[3] ^= word;
        round(&mut self.0);
        round(&mut self.0);
        self.0[0] ^= word;
    }

    /// Takes the bytes after the last whole word, and the length's last eight bits, as it was published.
    fn finish(mut self, bytes: &[u8]) -> u64 {
        let rest = &bytes[bytes.len() / 8 * 8..];
        let mut last = [0; 8];
        last[..rest.len()].copy_from_slice(rest);
        last[7] = bytes.len() as u8;
        self.take(u64::from_le_bytes(last));
        self.0[2] ^= 0xff;
        (0..4).for_each(|_| round(&mut self.0));
        let [a, b, c, d] = self.0;
        a ^ b ^ c ^ d
    }
}

fn round(v: &mut [u64; 4]) {
    v[0] = v[0].wrapping_add(v[1]);
    v[2] = v[2].wrapping_add(v[3]);
    v[1] = v[1].rotate_left(13) ^ v[0];
    v[3] = v[3].rotate_left(16) ^ v[2];
    v[0] = v[0].rotate_left(32);
    v[2] = v[2].wrapping_add(v[1]);
    v[0] = v[0].wrapping_add(v[3]);
    v[1] = v[1].rotate_left(17) ^ v[2];
    v[3] = v[3].rotate_left(21) ^ v[0];
    v[2] = v[2].rotate_left(32);
}

#[cfg(test)]
mod tests {
    use super::*;
    use datafusion::arrow::array::{
        BooleanArray, Date32Array, Decimal128Array, DictionaryArray, Float32Array, Float64Array, Int8Array, Int64Array,
        LargeStringArray, StringArray, StringViewArray, TimestampMillisecondArray, TimestampSecondArray, UInt64Array,
    };
    use datafusion::arrow::datatypes::Int32Type;
    use proptest::prelude::*;

    /// Those that its authors published, for the key 00, 01, … 0f and the inputs (), (00), (00, 01), …
    #[test]
    fn the_hash_is_the_published_one() {
        let key = [0x0706_0504_0302_0100, 0x0f0e_0d0c_0b0a_0908];
        let published = [
            (0, 0x726f_db47_dd0e_0e31),
            (1, 0x74f8_39c5_93dc_67fd),
            (2, 0x0d6c_8009_d9a9_4f5a),
            (15, 0xa129_ca61_49be_45e5),
        ];
        for (length, hash) in published {
            let bytes: Vec<u8> = (0..length).collect();
            assert_eq!(siphash(key, &bytes), hash, "{length} bytes");
        }
    }

    proptest! {
        /// However many rows are hashed together, whatever they hold, and with gaps: each has the number of its own bytes.
        #[test]
        fn rows_together_have_the_numbers_that_they_have_alone(
            cells in proptest::collection::vec(
                (proptest::option::of(any::<i64>()), proptest::option::of("[a-zü]{0,20}"), proptest::option::of(any::<f64>())),
                0..300,
            ),
        ) {
            let columns: [ArrayRef; 3] = [
                Arc::new(cells.iter().map(|cell| cell.0).collect::<Int64Array>()),
                Arc::new(cells.iter().map(|cell| cell.1.clone()).collect::<StringArray>()),
                Arc::new(cells.iter().map(|cell| cell.2).collect::<Float64Array>()),
            ];
            let mut expected = Vec::new();
            for (whole, text, float) in &cells {
                let mut bytes = Vec::new();
                match whole {
                    Some(value) => bytes.extend([&b"i"[..], &i128::from(*value).to_le_bytes()].concat()),
                    None => bytes.push(b'0'),
                }
                match text {
                    Some(text) => bytes.extend([&b"t"[..], &(text.len() as u64).to_le_bytes(), text.as_bytes()].concat()),
                    None => bytes.push(b'0'),
                }
                match float.map(|value| if value.is_nan() { f64::NAN } else if value == 0.0 { 0.0 } else { value }) {
                    Some(value) => bytes.extend([&b"f"[..], &u128::from(value.to_bits()).to_le_bytes()].concat()),
                    None => bytes.push(b'0'),
                }
                expected.push(hash(&bytes, 5, Role::Row));
            }
            prop_assert_eq!(hashes(&columns, cells.len(), 5, Role::Row).unwrap(), expected);
        }
    }

    fn one(column: ArrayRef) -> u64 {
        hashes(&[column], 1, 7, Role::Group).unwrap()[0]
    }

    /// Written down once, and never to change: another engine, or another version of this one, keeps the same of every unit.
    #[test]
    fn hashes_are_what_they_were() {
        let golden: [(&str, ArrayRef, u64); 9] = [
            ("missing", Arc::new(Int64Array::from(vec![None::<i64>])), 0xbe08_9ebf_6c87_666e),
            ("a whole number", Arc::new(Int64Array::from(vec![-42])), 0x21b8_e226_54ef_c136),
            ("a large one", Arc::new(UInt64Array::from(vec![u64::MAX])), 0x4a21_13e7_bb5a_ff20),
            ("a fraction", Arc::new(Float64Array::from(vec![0.1])), 0x987a_649b_9081_2d87),
            ("no number", Arc::new(Float64Array::from(vec![f64::NAN])), 0x2b24_d0df_e2a3_28da),
            ("text", Arc::new(StringArray::from(vec!["Zürich"])), 0xe50c_29b9_b7bb_23a0),
            ("yes", Arc::new(BooleanArray::from(vec![true])), 0x636b_a49a_c886_4380),
            ("a day", Arc::new(Date32Array::from(vec![20_000])), 0x6002_23a6_a13f_fc15),
            ("a moment", Arc::new(TimestampMillisecondArray::from(vec![1_700_000_000_123])), 0xcc80_ea81_7285_19f6),
        ];
        let found: Vec<(&str, u64)> =
            golden.iter().map(|(name, column, _)| (*name, one(ArrayRef::clone(column)))).collect();
        let expected: Vec<(&str, u64)> = golden.iter().map(|(name, _, hash)| (*name, *hash)).collect();
        assert_eq!(found, expected);
        let pair: [ArrayRef; 2] = [Arc::new(Int64Array::from(vec![1])), Arc::new(StringArray::from(vec!["a"]))];
        assert_eq!(hashes(&pair, 1, 7, Role::User).unwrap(), [0x2000_bcdf_d751_b17b]);
    }

    #[test]
    fn one_value_has_one_hash_however_it_is_held() {
        let five = one(Arc::new(Int64Array::from(vec![5])));
        assert_eq!(five, one(Arc::new(Int8Array::from(vec![5]))));
        assert_eq!(five, one(Arc::new(UInt64Array::from(vec![5]))));
        let text = one(Arc::new(StringArray::from(vec!["a"])));
        assert_eq!(text, one(Arc::new(LargeStringArray::from(vec!["a"]))));
        assert_eq!(text, one(Arc::new(StringViewArray::from(vec!["a"]))));
        assert_eq!(text, one(Arc::new(DictionaryArray::<Int32Type>::from_iter(["a"]))));
        let half = one(Arc::new(Float64Array::from(vec![0.5])));
        assert_eq!(half, one(Arc::new(Float32Array::from(vec![0.5]))));
        assert_eq!(one(Arc::new(Float64Array::from(vec![0.0]))), one(Arc::new(Float64Array::from(vec![-0.0]))));
        let second = one(Arc::new(TimestampSecondArray::from(vec![3])));
        assert_eq!(second, one(Arc::new(TimestampMillisecondArray::from(vec![3000]))));
        let price = |value, scale| -> ArrayRef {
            Arc::new(Decimal128Array::from(vec![value]).with_precision_and_scale(20, scale).unwrap())
        };
        assert_eq!(one(price(150, 2)), one(price(15, 1)));
        assert_ne!(one(price(150, 2)), one(price(150, 1)));
    }

    #[test]
    fn different_things_have_different_hashes() {
        let column: ArrayRef = Arc::new(Int64Array::from(vec![Some(1), None, Some(0), Some(-1)]));
        let all = hashes(&[ArrayRef::clone(&column)], 4, 7, Role::User).unwrap();
        let others = [
            hashes(&[ArrayRef::clone(&column)], 4, 8, Role::User).unwrap(),
            hashes(&[ArrayRef::clone(&column)], 4, 7, Role::Group).unwrap(),
            hashes(&[column], 4, 7, Role::Row).unwrap(),
        ];
        let mut seen: Vec<u64> = all.iter().chain(others.iter().flatten()).copied().collect();
        seen.sort_unstable();
        seen.dedup();
        assert_eq!(seen.len(), 16);
        // Where one text ends and the next begins belongs to them.
        let pair = |a: &str, b: &str| -> u64 {
            let columns: [ArrayRef; 2] = [Arc::new(StringArray::from(vec![a])), Arc::new(StringArray::from(vec![b]))];
            hashes(&columns, 1, 7, Role::Group).unwrap()[0]
        };
        assert_ne!(pair("ab", "c"), pair("a", "bc"));
        assert_ne!(one(Arc::new(BooleanArray::from(vec![true]))), one(Arc::new(Int64Array::from(vec![1]))));
        assert_ne!(one(Arc::new(Date32Array::from(vec![1]))), one(Arc::new(Int64Array::from(vec![1]))));
    }
}
