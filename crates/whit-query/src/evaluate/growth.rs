//! How long a text may grow: a function that makes text longer gives NULL where the result may have more than [`MOST`] bytes.
//!
//! The rule reads the lengths of one row's arguments and nothing else. What is no longer than what it was made of is never cut.

use datafusion::arrow::array::{Array, ArrayRef, AsArray, BooleanArray, RecordBatch};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType, Int64Type};
use datafusion::logical_expr::{Expr, Operator};
use datafusion::scalar::ScalarValue;

/// The most bytes of a text that a function makes longer: a batch of rows then takes half a gibibyte at worst.
pub(crate) const MOST: u64 = 1 << 16;
/// The most pairs of letters that are compared for a distance between two texts.
const PAIRS: u64 = 1 << 24;

/// A function that makes text longer, and its arguments.
#[derive(Debug)]
pub(super) struct Growth {
    how: How,
    arguments: Vec<Argument>,
}

#[derive(Debug, Clone, Copy)]
enum How {
    /// All arguments one after the other, with the first between them.
    Joined,
    /// All arguments one after the other.
    Concatenated,
    /// The first so many times as the second says.
    Repeated,
    /// So many letters as the second argument says.
    Padded,
    /// The third wherever the second was.
    Replaced,
    /// The third wherever a pattern was; it may repeat what was found.
    Matched,
    /// Each letter of the one is compared with each of the other.
    Compared,
}

#[derive(Debug)]
enum Argument {
    Constant(ScalarValue),
    Column(usize),
}

impl Growth {
    /// How a step grows, where it does.
    pub(super) fn of(step: &Expr) -> Option<Self> {
        let (how, arguments): (How, Vec<&Expr>) = match step {
            Expr::BinaryExpr(binary) if binary.op == Operator::StringConcat => {
                (How::Concatenated, vec![&binary.left, &binary.right])
            }
            Expr::ScalarFunction(call) => {
                let how = match call.name() {
                    "concat" | "overlay" => How::Concatenated,
                    "concat_ws" => How::Joined,
                    "repeat" => How::Repeated,
                    "lpad" | "rpad" => How::Padded,
                    "replace" => How::Replaced,
                    "regexp_replace" => How::Matched,
                    "levenshtein" => How::Compared,
                    _ => return None,
                };
                (how, call.args.iter().collect())
            }
            _ => return None,
        };
        let mut columns = 0..;
        let argument = |expr: &Expr| match expr {
            Expr::Literal(value, _) => Some(Argument::Constant(value.clone())),
            _ => columns.next().map(Argument::Column),
        };
        Some(Self { how, arguments: arguments.into_iter().map(argument).collect::<Option<_>>()? })
    }

    /// The rows that would grow too long, where there are some.
    pub(super) fn too_long(&self, batch: &RecordBatch) -> Option<BooleanArray> {
        let rows = batch.num_rows();
        let column = |argument: &Argument| match argument {
            Argument::Constant(value) => value.to_array_of_size(rows).ok(),
            Argument::Column(i) => batch.columns().get(*i).cloned(),
        };
        let columns = self.arguments.iter().map(column).collect::<Option<Vec<_>>>()?;
        let sizes: Vec<Size> = columns.iter().map(Size::of).collect();
        let most = if matches!(self.how, How::Compared) { PAIRS } else { MOST };
        let long: BooleanArray = (0..rows).map(|row| Some(self.bytes(&sizes, row) > most)).collect();
        (long.true_count() > 0).then_some(long)
    }

    /// At most so many bytes come out of a row.
    fn bytes(&self, sizes: &[Size], row: usize) -> u64 {
        let length = |i: usize| sizes.get(i).map_or(0, |size| size.bytes(row));
        let number = |i: usize| sizes.get(i).map_or(0, |size| size.number(row));
        let all = || (0..sizes.len()).map(length).fold(0, u64::saturating_add);
        match self.how {
            How::Concatenated => all(),
            How::Joined => all().saturating_add(length(0).saturating_mul(sizes.len() as u64)),
            How::Repeated => length(0).saturating_mul(number(1)),
            How::Padded => number(1).saturating_mul(4), // a letter has up to four bytes
            How::Replaced => {
                let (old, new) = (length(1), length(2));
                if new <= old {
                    return 0;
                }
                let found = if old == 0 { length(0).saturating_add(1) } else { length(0) / old };
                length(0).saturating_add(found.saturating_mul(new - old))
            }
            How::Matched => {
                let (text, new) = (length(0).saturating_mul(2).saturating_add(1), length(2));
                if new == 0 { 0 } else { text.saturating_mul(new.saturating_add(1)) }
            }
            How::Compared => length(0).saturating_mul(length(1)),
        }
    }
}

/// The lengths of a column's texts, or its numbers.
enum Size {
    Lengths(Vec<u64>),
    Numbers(ArrayRef),
}

/// A value that is no text is short when it is written.
const SHORT: u64 = 64;

impl Size {
    fn of(column: &ArrayRef) -> Self {
        let lengths = |length: &dyn Fn(usize) -> usize| {
            let of = |row| if column.is_null(row) { 0 } else { length(row) as u64 };
            Self::Lengths((0..column.len()).map(of).collect())
        };
        match column.data_type() {
            DataType::Utf8 => {
                let texts = column.as_string::<i32>();
                lengths(&|row| texts.value(row).len())
            }
            DataType::LargeUtf8 => {
                let texts = column.as_string::<i64>();
                lengths(&|row| texts.value(row).len())
            }
            DataType::Utf8View => {
                let texts = column.as_string_view();
                lengths(&|row| texts.value(row).len())
            }
            DataType::Binary => {
                let bytes = column.as_binary::<i32>();
                lengths(&|row| bytes.value(row).len())
            }
            DataType::LargeBinary => {
                let bytes = column.as_binary::<i64>();
                lengths(&|row| bytes.value(row).len())
            }
            DataType::BinaryView => {
                let bytes = column.as_binary_view();
                lengths(&|row| bytes.value(row).len())
            }
            kind if kind.is_integer() && kind != &DataType::UInt64 => match cast(column, &DataType::Int64) {
                Ok(numbers) => Self::Numbers(numbers),
                Err(_) => lengths(&|_| usize::MAX),
            },
            DataType::Dictionary(_, inner) if super::is_text(inner) => match cast(column, inner) {
                Ok(texts) => Self::of(&texts),
                Err(_) => lengths(&|_| usize::MAX),
            },
            kind if kind.is_primitive() || matches!(kind, DataType::Boolean | DataType::Null) => {
                lengths(&|_| SHORT as usize)
            }
            // What cannot be measured does not grow.
            _ => lengths(&|_| usize::MAX),
        }
    }

    fn bytes(&self, row: usize) -> u64 {
        match self {
            Self::Lengths(lengths) => lengths.get(row).copied().unwrap_or_default(),
            Self::Numbers(_) => SHORT,
        }
    }

    /// The number of a row; none is zero, and so is one below it.
    fn number(&self, row: usize) -> u64 {
        match self {
            Self::Numbers(numbers) => {
                let numbers = numbers.as_primitive::<Int64Type>();
                if numbers.is_valid(row) { u64::try_from(numbers.value(row)).unwrap_or_default() } else { 0 }
            }
            Self::Lengths(_) => u64::MAX,
        }
    }
}
