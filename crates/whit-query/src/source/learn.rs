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
use datafusion::arrow::compute::{CastOptions, cast_with_options};
use datafusion::arrow::datatypes::{DataType, Float64Type};
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

/// Rows as plain numbers.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Numbers {
    /// Row by row.
    pub features: Vec<f32>,
    /// How many numbers a row has.
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

    /// Reads rows. What comes out is as private as they are, and for whoever learns only.
    pub fn rows_for_learning(&self, reading: &Reading<'_>) -> Result<Numbers, QueryError> {
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
                gathered.take(&batch.map_err(|error| running(&error))?)?;
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

    fn take(&mut self, batch: &RecordBatch) -> Result<(), QueryError> {
        if batch.num_rows() == 0 {
            return Ok(());
        }
        let columns = self.reading.features.len();
        let mut opened = Vec::with_capacity(columns);
        for (place, name) in self.reading.features.iter().enumerate() {
            let (values, width) = open(batch.column(place), self.reading.bits)
                .map_err(|why| QueryError::asked(format!("`{}.{name}` {why}", self.reading.dataset), REPAIR))?;
            if self.numbers.rows > 0 && self.numbers.widths[place] != width {
                let sentence = format!("`{}.{name}` has lists of different lengths", self.reading.dataset);
                return Err(QueryError::asked(sentence, REPAIR));
            }
            self.numbers.widths[place] = width;
            opened.push((values, width));
        }
        self.numbers.width = self.numbers.widths.iter().sum();
        for row in 0..batch.num_rows() {
            for (values, width) in &opened {
                self.numbers.features.extend_from_slice(&values[row * width..(row + 1) * width]);
            }
        }
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
        let (values, width) = open(column, false).map_err(|why| QueryError::asked(format!("{name} {why}"), REPAIR))?;
        debug_assert_eq!(width, 1);
        self.numbers.targets.extend(values);
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

/// The numbers of a column, and how many a row has.
fn open(column: &ArrayRef, bits: bool) -> Result<(Vec<f32>, usize), String> {
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
            Ok((flat(&inner)?, width))
        }
        DataType::Binary | DataType::LargeBinary | DataType::BinaryView | DataType::FixedSizeBinary(_) => {
            let bytes = soft(column, &DataType::Binary)?;
            let bytes = bytes.as_binary::<i32>();
            let width = even(bytes.offsets().lengths()).ok_or_else(|| "has bytes of different lengths".to_owned())?;
            if width == 0 {
                return Err("has no bytes".to_owned());
            }
            let all = bytes.iter().flatten().flatten();
            if bits {
                let opened = all.flat_map(|byte| (0..8).rev().map(move |bit| f32::from(byte >> bit & 1)));
                return Ok((opened.collect(), width * 8));
            }
            Ok((all.map(|&byte| f32::from(byte)).collect(), width))
        }
        _ => Ok((flat(column)?, 1)),
    }
}

/// The one length of all.
fn even(mut lengths: impl Iterator<Item = usize>) -> Option<usize> {
    let first = lengths.next()?;
    lengths.all(|length| length == first).then_some(first)
}

fn flat(values: &ArrayRef) -> Result<Vec<f32>, String> {
    let numbers = soft(values, &DataType::Float64)?;
    let numbers = numbers.as_primitive::<Float64Type>();
    if numbers.null_count() > 0 {
        return Err("is missing in some rows".to_owned());
    }
    let values: Vec<f32> = numbers.values().iter().map(|&value| value as f32).collect();
    if values.iter().any(|value| !value.is_finite()) {
        return Err("is not a number, or too large, in some rows".to_owned());
    }
    Ok(values)
}

#[cfg(test)]
mod tests {
    use super::*;
    use datafusion::arrow::array::{FixedSizeBinaryArray, Float32Array, ListArray};
    use datafusion::arrow::datatypes::{Field, Float32Type};
    use std::sync::Arc;

    #[test]
    fn lists_and_bytes_are_opened_up() {
        let lists = |rows: Vec<Option<Vec<Option<f32>>>>| -> ArrayRef {
            Arc::new(ListArray::from_iter_primitive::<Float32Type, _, _>(rows))
        };
        let even: ArrayRef = lists(vec![Some(vec![Some(1.0), Some(2.0)]), Some(vec![Some(3.0), Some(4.0)])]);
        assert_eq!(open(&even, false).unwrap(), (vec![1.0, 2.0, 3.0, 4.0], 2));
        assert_eq!(open(&even.slice(1, 1), false).unwrap(), (vec![3.0, 4.0], 2));
        let fixed: ArrayRef = Arc::new(FixedSizeListArray::new(
            Arc::new(Field::new_list_field(DataType::Float32, true)),
            2,
            Arc::new(Float32Array::from(vec![1.0, 2.0, 3.0, 4.0])),
            None,
        ));
        assert_eq!(open(&fixed.slice(1, 1), false).unwrap(), (vec![3.0, 4.0], 2));
        let bytes: ArrayRef = Arc::new(FixedSizeBinaryArray::try_from_iter([[1_u8], [0x80]].into_iter()).unwrap());
        assert_eq!(open(&bytes, false).unwrap(), (vec![1.0, 128.0], 1));
        let (bits, width) = open(&bytes, true).unwrap();
        assert_eq!((width, bits[7], bits[8], bits.iter().sum::<f32>()), (8, 1.0, 1.0, 2.0));
        let ragged = lists(vec![Some(vec![Some(1.0)]), Some(vec![Some(3.0), Some(4.0)])]);
        assert!(open(&ragged, false).unwrap_err().contains("different lengths"));
        let missing = lists(vec![Some(vec![None])]);
        assert!(open(&missing, false).unwrap_err().contains("missing"));
        assert!(open(&lists(vec![None]), false).unwrap_err().contains("missing"));
        let odd: ArrayRef = Arc::new(Float32Array::from(vec![f32::NAN]));
        assert!(open(&odd, false).unwrap_err().contains("not a number"));
    }
}
