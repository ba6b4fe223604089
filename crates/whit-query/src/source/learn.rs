//! Rows for learning: plain numbers, and whose they are.
//!
//! What comes out is as private as the rows. Rows come in the order of their files, whatever the number of threads, so that which of a user's rows
//! count beyond a cap is the user's own business. Users and elements are told apart by a hash of their value, which depends on nothing else; should two
//! ever share one, they would be one unit, which protects both.

use crate::engine::{planning, running};
use crate::error::QueryError;
use crate::release::Tables;
use crate::source::schema::in_words;
use datafusion::arrow::array::{Array, ArrayRef, AsArray, FixedSizeListArray, RecordBatch};
use datafusion::arrow::buffer::ScalarBuffer;
use datafusion::arrow::compute::{CastOptions, cast_with_options};
use datafusion::arrow::datatypes::{DataType, Float32Type, Float64Type, UInt8Type};
use datafusion::arrow::row::{RowConverter, SortField};
use datafusion::common::{Column, DFSchema, TableReference};
use datafusion::execution::SessionStateBuilder;
use datafusion::logical_expr::{Expr, LogicalPlan, LogicalPlanBuilder};
use futures::StreamExt;
use whit_account::ledger::Books;
use whit_core::declare::{UserKey, nearest};

/// What is read of each row.
#[derive(Debug, Clone)]
pub struct Reading<'a> {
    /// The data set.
    pub dataset: &'a str,
    /// Columns of numbers, of lists of them, or of bytes; in order.
    pub features: &'a [String],
    /// Whether bytes are opened up to bits, the highest first.
    pub bits: bool,
    /// The column to be told; nothing where nobody asks.
    pub target: Option<&'a str>,
    /// The names of its classes, where it is text.
    pub classes: Option<&'a [String]>,
    /// Which rows: an expression in SQL over columns of the table.
    pub filter: Option<&'a str>,
    /// Whether users and elements are read.
    pub owners: bool,
}

/// The features of some rows, row by row, as they come from the files. There may be more rows than memory holds, so they are handed on and not gathered.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Block<'a> {
    /// Where every feature is a byte, a bit or a truth value.
    Bytes(&'a [u8]),
    /// Where one is not.
    Floats(&'a [f32]),
}

/// Takes blocks of features, of rows of so many numbers. What it says no to ends the reading.
pub type Sink<'a> = dyn FnMut(usize, Block<'_>) -> Result<(), QueryError> + 'a;

/// What is told of all rows, beside their features.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Numbers {
    /// How many features a row has.
    pub width: usize,
    /// How many of them each column has.
    pub widths: Vec<usize>,
    /// The target of each row: a number, or that of its class.
    pub targets: Vec<f32>,
    /// The user of each row, where one is declared.
    pub users: Option<Vec<u64>>,
    /// The element of each row, where one is declared.
    pub elements: Option<Vec<u64>>,
    /// How many rows there are.
    pub rows: usize,
}

/// Which columns of a filter are not public, so that a row that changes may come or go.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Filtered {
    /// Their names.
    pub private: Vec<String>,
}

fn own(name: &str) -> Expr {
    Expr::Column(Column::new_unqualified(name))
}

impl Tables {
    /// The fingerprint of one data set, as a release of it is found again by.
    pub fn fingerprint_for_learning(&self, dataset: &str, books: &mut Books) -> Result<String, QueryError> {
        self.fingerprint_of(&[dataset.to_owned()], books)
    }

    /// Whether all that is to be read is there and of a kind that can be, and which columns of the filter are private. Reads no row.
    pub fn check_learning(&self, reading: &Reading<'_>) -> Result<Filtered, QueryError> {
        let source = self.warehouse().source(reading.dataset)?;
        let kind_of = |name: &str| {
            let field = source.schema.field_with_name(name);
            field.map(datafusion::arrow::datatypes::Field::data_type).map_err(|_| {
                let names = || source.schema.fields().iter().map(|field| field.name().as_str());
                let hint = match nearest(name, names()) {
                    Some(near) => format!("did you mean `{near}`?"),
                    None => format!("it has: {}", names().collect::<Vec<_>>().join(", ")),
                };
                QueryError::asked(format!("`{}` has no column `{name}`", reading.dataset), hint)
            })
        };
        if reading.features.is_empty() {
            return Err(QueryError::asked("no features are named", "write features = [\"age\", \"income\"]"));
        }
        for name in reading.features {
            let kind = kind_of(name)?;
            if !opens(kind) {
                return Err(QueryError::asked(
                    format!("`{}.{name}` is to be a feature, but is {}", reading.dataset, in_words(kind)),
                    "features are numbers, lists of numbers, or bytes: make it one where it is written",
                ));
            }
        }
        if let Some(target) = reading.target {
            let kind = kind_of(target)?;
            let text = matches!(kind, DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View);
            if text && reading.classes.is_none() {
                return Err(QueryError::asked(
                    format!("`{}.{target}` is text, and nothing says which classes there are", reading.dataset),
                    "name them: classes = [\"no\", \"yes\"]",
                ));
            }
            if !text && !kind.is_numeric() && *kind != DataType::Boolean {
                return Err(QueryError::asked(
                    format!("`{}.{target}` is to be told, but is {}", reading.dataset, in_words(kind)),
                    "a target is a number, true or false, or one of some texts",
                ));
            }
        }
        let Some(filter) = self.filter_of(reading)? else { return Ok(Filtered::default()) };
        let public = source.dataset.unit.as_ref().map(|unit| unit.public.as_slice());
        let private = filter.column_refs().into_iter().map(|column| column.name.clone());
        let mut private: Vec<String> =
            private.filter(|name| public.is_some_and(|public| !public.contains(name))).collect();
        private.sort();
        Ok(Filtered { private })
    }

    /// The filter as an expression that cannot fail.
    fn filter_of(&self, reading: &Reading<'_>) -> Result<Option<Expr>, QueryError> {
        reading.filter.map(|sql| self.row_wise(reading.dataset, sql)).transpose()
    }

    /// An expression over single rows of a data set.
    fn row_wise(&self, dataset: &str, sql: &str) -> Result<Expr, QueryError> {
        let schema = self.warehouse().source(dataset)?.schema.as_ref().clone();
        let schema = DFSchema::try_from(schema).map_err(|error| planning(&error))?;
        let made = self.warehouse().context().state().create_logical_expr(sql, &schema);
        let expr = made.map_err(|error| {
            QueryError::asked(
                format!("`{sql}` cannot be read: {}", error.strip_backtrace()),
                "write a condition over columns of the table, such as split = 'train'",
            )
        })?;
        let mut never = |_: &LogicalPlan| Ok(false);
        crate::plan::allow::expression(expr, &mut never)
    }

    /// Reads rows, and hands their features to a sink. What comes out is as private as they are, and for whoever learns only.
    pub fn rows_for_learning(&self, reading: &Reading<'_>, sink: &mut Sink<'_>) -> Result<Numbers, QueryError> {
        self.check_learning(reading)?;
        let unit = self.warehouse().source(reading.dataset)?.dataset.unit.as_ref();
        let user = unit.and_then(|unit| unit.user.as_ref()).map(UserKey::column).filter(|_| reading.owners);
        let element = self.element(reading.dataset).filter(|_| reading.owners).cloned();
        let mut wanted: Vec<Expr> = Vec::new();
        let mut want = |expr: Expr| wanted.push(expr.alias(format!("whit_{}", wanted.len())));
        reading.features.iter().for_each(|name| want(own(name)));
        let target = reading.target.map(own);
        let parts = [target.is_some(), user.is_some(), element.is_some()];
        [target, user.map(own), element].into_iter().flatten().for_each(&mut want);
        let filter = self.filter_of(reading)?;
        self.runtime().block_on(async {
            // One after the other, so that rows come as they stand in their files.
            let context = self.warehouse().context();
            // A state that made its own catalogue would put it in the place of the one that has the tables.
            let config = context.state().config().clone().with_create_default_catalog_and_schema(false);
            let config = config.with_target_partitions(1);
            let state = SessionStateBuilder::new_from_existing(context.state()).with_config(config).build();
            let table = context.table(TableReference::bare(reading.dataset)).await.map_err(|error| planning(&error))?;
            let mut plan = LogicalPlanBuilder::from(table.into_unoptimized_plan());
            if let Some(filter) = filter {
                plan = plan.filter(filter).map_err(|error| planning(&error))?;
            }
            let plan = plan.project(wanted).and_then(LogicalPlanBuilder::build).map_err(|error| planning(&error))?;
            let physical = state.create_physical_plan(&plan).await.map_err(|error| planning(&error))?;
            let stream = datafusion::physical_plan::execute_stream(physical, context.task_ctx());
            let mut stream = stream.map_err(|error| running(&error))?;
            let mut gathered = Gathered::new(reading, parts);
            while let Some(batch) = stream.next().await {
                gathered.take(&batch.map_err(|error| running(&error))?, sink)?;
            }
            Ok(gathered.numbers)
        })
    }
}

/// Whether a column can be opened up to numbers.
fn opens(kind: &DataType) -> bool {
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

struct Gathered<'a> {
    reading: &'a Reading<'a>,
    parts: [bool; 3],
    numbers: Numbers,
    keys: [Option<RowConverter>; 2],
}

impl<'a> Gathered<'a> {
    fn new(reading: &'a Reading<'a>, parts: [bool; 3]) -> Self {
        let numbers = Numbers {
            users: parts[1].then(Vec::new),
            elements: parts[2].then(Vec::new),
            widths: vec![0; reading.features.len()],
            ..Numbers::default()
        };
        Self { reading, parts, numbers, keys: [None, None] }
    }

    fn take(&mut self, batch: &RecordBatch, sink: &mut Sink<'_>) -> Result<(), QueryError> {
        if batch.num_rows() == 0 {
            return Ok(());
        }
        let columns = self.reading.features.len();
        let mut opened = Vec::with_capacity(columns);
        for (place, name) in self.reading.features.iter().enumerate() {
            let one = open(batch.column(place), self.reading.bits)
                .map_err(|why| QueryError::asked(format!("`{}.{name}` {why}", self.reading.dataset), REPAIR))?;
            if self.numbers.rows > 0 && self.numbers.widths[place] != one.width {
                let sentence = format!("`{}.{name}` has lists of different lengths", self.reading.dataset);
                return Err(QueryError::asked(sentence, REPAIR));
            }
            self.numbers.widths[place] = one.width;
            opened.push(one);
        }
        self.numbers.width = self.numbers.widths.iter().sum();
        hand_on(&opened, batch.num_rows(), self.numbers.width, sink)?;
        let mut next = columns;
        if self.parts[0] {
            self.targets(batch.column(next))?;
            next += 1;
        }
        for (which, what) in [(1, "user"), (2, "element")] {
            if self.parts[which] {
                let hashes = self.hashes(which - 1, batch.column(next), what)?;
                let all = if which == 1 { &mut self.numbers.users } else { &mut self.numbers.elements };
                all.get_or_insert_default().extend(hashes);
                next += 1;
            }
        }
        self.numbers.rows += batch.num_rows();
        Ok(())
    }

    fn targets(&mut self, column: &ArrayRef) -> Result<(), QueryError> {
        let name = format!("`{}.{}`", self.reading.dataset, self.reading.target.unwrap_or_default());
        if column.null_count() > 0 {
            return Err(QueryError::asked(format!("{name} is missing in some rows"), REPAIR));
        }
        if let Some(classes) = self.reading.classes
            && !column.data_type().is_numeric()
        {
            let texts =
                soft(column, &DataType::Utf8).map_err(|why| QueryError::asked(format!("{name} {why}"), REPAIR))?;
            for text in texts.as_string::<i32>().iter().flatten() {
                let place = classes.iter().position(|class| class == text).ok_or_else(|| {
                    QueryError::asked(
                        format!("{name} has a value that is none of the {} classes", classes.len()),
                        "name every class, or leave rows out with `where`",
                    )
                })?;
                self.numbers.targets.push(place as f32);
            }
            return Ok(());
        }
        let opened = open(column, false).map_err(|why| QueryError::asked(format!("{name} {why}"), REPAIR))?;
        debug_assert_eq!(opened.width, 1);
        match opened.values {
            Values::Bytes(values) => self.numbers.targets.extend(values.iter().map(|&byte| f32::from(byte))),
            Values::Floats(values) => self.numbers.targets.extend_from_slice(&values),
        }
        Ok(())
    }

    /// A hash of each value, and of nothing else.
    fn hashes(&mut self, which: usize, column: &ArrayRef, what: &str) -> Result<Vec<u64>, QueryError> {
        if column.null_count() > 0 {
            let sentence =
                format!("some rows of `{}` have no {what}, so whose they are is not known", self.reading.dataset);
            return Err(QueryError::asked(sentence, "leave them out with `where`"));
        }
        let wrong = |error: datafusion::arrow::error::ArrowError| {
            QueryError::failed(format!("the {what} of `{}` cannot be read: {error}", self.reading.dataset))
        };
        let converter = match &mut self.keys[which] {
            Some(converter) => converter,
            empty => empty.insert(RowConverter::new(vec![SortField::new(column.data_type().clone())]).map_err(wrong)?),
        };
        let rows = converter.convert_columns(std::slice::from_ref(column)).map_err(wrong)?;
        let hash = |row: datafusion::arrow::row::Row<'_>| {
            let hash = blake3::hash(row.as_ref());
            u64::from_le_bytes(hash.as_bytes()[..8].try_into().unwrap_or_default())
        };
        Ok(rows.iter().map(hash).collect())
    }
}

const REPAIR: &str = "repair it where it is written, or leave such rows out with `where`";

/// What cannot be cast is missing.
fn soft(column: &ArrayRef, kind: &DataType) -> Result<ArrayRef, String> {
    let options = CastOptions { safe: true, ..CastOptions::default() };
    cast_with_options(column, kind, &options).map_err(|_| "cannot be read as numbers".to_owned())
}

/// A column as numbers.
struct Opened {
    values: Values,
    /// How many a row has.
    width: usize,
}

/// As they lie in the column, where that can be.
#[derive(Debug, PartialEq)]
enum Values {
    Bytes(ScalarBuffer<u8>),
    Floats(ScalarBuffer<f32>),
}

fn open(column: &ArrayRef, bits: bool) -> Result<Opened, String> {
    if column.null_count() > 0 {
        return Err("is missing in some rows".to_owned());
    }
    let rows = column.len();
    let ragged = || "has lists of different lengths".to_owned();
    match column.data_type() {
        DataType::List(_) | DataType::LargeList(_) | DataType::FixedSizeList(_, _) => {
            let (inner, width) = match column.data_type() {
                DataType::FixedSizeList(_, _) => {
                    let lists: &FixedSizeListArray = column.as_fixed_size_list();
                    let width = lists.value_length() as usize;
                    (lists.values().slice(lists.offset() * width, rows * width), width)
                }
                DataType::LargeList(_) => {
                    let lists = column.as_list::<i64>();
                    let width = even(lists.offsets().lengths()).ok_or_else(ragged)?;
                    (lists.values().slice(lists.offsets()[0] as usize, rows * width), width)
                }
                _ => {
                    let lists = column.as_list::<i32>();
                    let width = even(lists.offsets().lengths()).ok_or_else(ragged)?;
                    (lists.values().slice(lists.offsets()[0] as usize, rows * width), width)
                }
            };
            if width == 0 {
                return Err("has empty lists".to_owned());
            }
            Ok(Opened { values: flat(&inner)?, width })
        }
        DataType::Binary | DataType::LargeBinary | DataType::BinaryView | DataType::FixedSizeBinary(_) => {
            let bytes = soft(column, &DataType::Binary)?;
            let bytes = bytes.as_binary::<i32>();
            let width = even(bytes.offsets().lengths()).ok_or_else(|| "has bytes of different lengths".to_owned())?;
            if width == 0 {
                return Err("has no bytes".to_owned());
            }
            let all = ScalarBuffer::new(bytes.values().clone(), bytes.offsets()[0] as usize, rows * width);
            if bits {
                let opened = all.iter().flat_map(|&byte| (0..8_u8).rev().map(move |bit| byte >> bit & 1));
                return Ok(Opened { values: Values::Bytes(opened.collect()), width: width * 8 });
            }
            Ok(Opened { values: Values::Bytes(all), width })
        }
        _ => Ok(Opened { values: flat(column)?, width: 1 }),
    }
}

/// The one length of all.
fn even(mut lengths: impl Iterator<Item = usize>) -> Option<usize> {
    let first = lengths.next()?;
    lengths.all(|length| length == first).then_some(first)
}

fn flat(values: &ArrayRef) -> Result<Values, String> {
    if values.null_count() > 0 {
        return Err("is missing in some rows".to_owned());
    }
    let floats: ScalarBuffer<f32> = match values.data_type() {
        DataType::UInt8 => return Ok(Values::Bytes(values.as_primitive::<UInt8Type>().values().clone())),
        DataType::Boolean => {
            return Ok(Values::Bytes(values.as_boolean().values().iter().map(u8::from).collect()));
        }
        DataType::Float32 => values.as_primitive::<Float32Type>().values().clone(),
        _ => {
            let numbers = soft(values, &DataType::Float64)?;
            if numbers.null_count() > 0 {
                return Err("is missing in some rows".to_owned());
            }
            numbers.as_primitive::<Float64Type>().values().iter().map(|&value| value as f32).collect()
        }
    };
    if floats.iter().any(|value| !value.is_finite()) {
        return Err("is not a number, or too large, in some rows".to_owned());
    }
    Ok(Values::Floats(floats))
}

/// So many numbers are brought together at a time: they stay in the nearer caches while columns are laid side by side.
const AT_ONCE: usize = 1 << 15;

/// Hands the rows of columns to a sink.
fn hand_on(columns: &[Opened], rows: usize, width: usize, sink: &mut Sink<'_>) -> Result<(), QueryError> {
    if let [Opened { values, .. }] = columns {
        return match values {
            Values::Bytes(values) => sink(width, Block::Bytes(values)),
            Values::Floats(values) => sink(width, Block::Floats(values)),
        };
    }
    let bytes = columns.iter().all(|column| matches!(column.values, Values::Bytes(_)));
    let (mut of_bytes, mut of_floats) = (Vec::new(), Vec::new());
    let at_once = (AT_ONCE / width.max(1)).max(1);
    for first in (0..rows).step_by(at_once) {
        let part = first..rows.min(first + at_once);
        if bytes {
            of_bytes.resize(part.len() * width, 0);
        } else {
            of_floats.resize(part.len() * width, 0.0);
        }
        let mut start = 0;
        for Opened { values, width: own } in columns {
            let range = part.start * own..part.end * own;
            let to = Strip { start, own: *own, width };
            match values {
                Values::Bytes(values) if bytes => to.lay(&values[range], &mut of_bytes, |byte| byte),
                Values::Bytes(values) => to.lay(&values[range], &mut of_floats, f32::from),
                Values::Floats(values) => to.lay(&values[range], &mut of_floats, |value| value),
            }
            start += own;
        }
        sink(width, if bytes { Block::Bytes(&of_bytes) } else { Block::Floats(&of_floats) })?;
    }
    Ok(())
}

/// Where a column's numbers stand in a row.
struct Strip {
    start: usize,
    own: usize,
    width: usize,
}

impl Strip {
    fn lay<T: Copy, U>(&self, values: &[T], rows: &mut [U], made: impl Fn(T) -> U) {
        for (row, values) in rows.chunks_exact_mut(self.width).zip(values.chunks_exact(self.own)) {
            let places = &mut row[self.start..self.start + self.own];
            places.iter_mut().zip(values).for_each(|(place, &value)| *place = made(value));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use datafusion::arrow::array::{
        BinaryArray, BooleanArray, FixedSizeBinaryArray, Float32Array, Float64Array, Int64Array, ListArray, UInt8Array,
    };
    use datafusion::arrow::datatypes::Field;
    use std::sync::Arc;

    fn floats(column: &ArrayRef) -> (Vec<f32>, usize) {
        match open(column, false).unwrap() {
            Opened { values: Values::Floats(values), width } => (values.to_vec(), width),
            Opened { values: Values::Bytes(_), .. } => panic!("bytes"),
        }
    }

    fn bytes(column: &ArrayRef, bits: bool) -> (Vec<u8>, usize) {
        match open(column, bits).unwrap() {
            Opened { values: Values::Bytes(values), width } => (values.to_vec(), width),
            Opened { values: Values::Floats(_), .. } => panic!("floats"),
        }
    }

    fn said(column: &ArrayRef) -> String {
        open(column, false).err().unwrap()
    }

    #[test]
    fn lists_and_bytes_are_opened_up() {
        let lists = |rows: Vec<Option<Vec<Option<f32>>>>| -> ArrayRef {
            Arc::new(ListArray::from_iter_primitive::<Float32Type, _, _>(rows))
        };
        let even: ArrayRef = lists(vec![Some(vec![Some(1.0), Some(2.0)]), Some(vec![Some(3.0), Some(4.0)])]);
        assert_eq!(floats(&even), (vec![1.0, 2.0, 3.0, 4.0], 2));
        assert_eq!(floats(&even.slice(1, 1)), (vec![3.0, 4.0], 2));
        let fixed: ArrayRef = Arc::new(FixedSizeListArray::new(
            Arc::new(Field::new_list_field(DataType::Float32, true)),
            2,
            Arc::new(Float32Array::from(vec![1.0, 2.0, 3.0, 4.0])),
            None,
        ));
        assert_eq!(floats(&fixed.slice(1, 1)), (vec![3.0, 4.0], 2));
        let fixed: ArrayRef = Arc::new(FixedSizeBinaryArray::try_from_iter([[1_u8], [0x80]].into_iter()).unwrap());
        assert_eq!(bytes(&fixed, false), (vec![1, 128], 1));
        let (bits, width) = bytes(&fixed, true);
        assert_eq!((width, bits[7], bits[8], bits.iter().sum::<u8>()), (8, 1, 1, 2));
        let binary: ArrayRef = Arc::new(BinaryArray::from(vec![&[9, 8][..], &[7, 6], &[5, 4]]));
        assert_eq!(bytes(&binary.slice(1, 2), false), (vec![7, 6, 5, 4], 2));
        let small: ArrayRef = Arc::new(UInt8Array::from(vec![3, 200, 7]));
        assert_eq!(bytes(&small.slice(1, 2), false), (vec![200, 7], 1));
        let flags: ArrayRef = Arc::new(BooleanArray::from(vec![true, false, true]));
        assert_eq!(bytes(&flags.slice(1, 2), false), (vec![0, 1], 1));
        let wide: ArrayRef = Arc::new(Int64Array::from(vec![1 << 40, -3]));
        assert_eq!(floats(&wide), (vec![(1_i64 << 40) as f32, -3.0], 1));
        let ragged = lists(vec![Some(vec![Some(1.0)]), Some(vec![Some(3.0), Some(4.0)])]);
        assert!(said(&ragged).contains("different lengths"));
        assert!(said(&lists(vec![Some(vec![None])])).contains("missing"));
        assert!(said(&lists(vec![None])).contains("missing"));
        for odd in [f64::NAN, 1e300] {
            let odd: ArrayRef = Arc::new(Float64Array::from(vec![odd]));
            assert!(said(&odd).contains("not a number"));
        }
        let odd: ArrayRef = Arc::new(Float32Array::from(vec![f32::NAN]));
        assert!(said(&odd).contains("not a number"));
    }

    #[test]
    fn columns_are_laid_side_by_side_and_stay_bytes_where_all_are() {
        let bytes = |width: usize, rows: usize| Opened {
            values: Values::Bytes((0..rows * width).map(|i| (i % 251) as u8).collect()),
            width,
        };
        let floats = |width: usize, rows: usize| Opened {
            values: Values::Floats((0..rows * width).map(|i| i as f32 * 0.5).collect()),
            width,
        };
        let number = |opened: &Opened, at: usize| match &opened.values {
            Values::Bytes(values) => f32::from(values[at]),
            Values::Floats(values) => values[at],
        };
        for rows in [1, 7, 40_000] {
            for columns in [
                vec![bytes(3, rows)],
                vec![bytes(2, rows), bytes(1, rows)],
                vec![floats(2, rows), bytes(3, rows), floats(1, rows)],
            ] {
                let width = columns.iter().map(|column| column.width).sum();
                let expected: Vec<f32> = (0..rows)
                    .flat_map(|row| {
                        let columns = columns.iter();
                        columns.flat_map(move |one| (0..one.width).map(move |i| number(one, row * one.width + i)))
                    })
                    .collect();
                let (mut found, mut whole) = (Vec::new(), true);
                hand_on(&columns, rows, width, &mut |told, block| {
                    assert_eq!(told, width);
                    match block {
                        Block::Bytes(values) => found.extend(values.iter().map(|&byte| f32::from(byte))),
                        Block::Floats(values) => {
                            whole = false;
                            found.extend_from_slice(values);
                        }
                    }
                    Ok(())
                })
                .unwrap();
                assert_eq!(found, expected);
                assert_eq!(whole, columns.iter().all(|column| matches!(column.values, Values::Bytes(_))));
            }
        }
    }
}
