//! The public list of items that an estimator counts, and the elements into which they fall.

use super::Touch;
use crate::error::{QueryError, planning, running};
use crate::partition::PartitionFile;
pub use crate::plan::call::ItemList;
use crate::source::spelling::Spelling;
use crate::source::{Tables, line};
use datafusion::arrow::array::{ArrayRef, AsArray, RecordBatch, StringArray};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::DataType;
use datafusion::common::{Column, DFSchema};
use datafusion::logical_expr::Expr;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;
use whit_core::declare::{ElementSource, Keys};

/// The items, each once, in the order of the list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Dictionary {
    items: Vec<String>,
    /// BLAKE3 of the list.
    hash: String,
}

impl Dictionary {
    pub(super) fn new(items: Vec<String>) -> Result<Self, QueryError> {
        let mut seen = BTreeSet::new();
        let items: Vec<String> = items.into_iter().filter(|item| seen.insert(item.clone())).collect();
        if items.is_empty() {
            let hint = "name at least one item that may be counted";
            return Err(QueryError::asked("the list of items is empty, so there is nothing to count", hint));
        }
        let mut hash = blake3::Hasher::new();
        for item in &items {
            hash.update(&(item.len() as u64).to_le_bytes());
            hash.update(item.as_bytes());
        }
        Ok(Self { items, hash: hash.finalize().to_hex().to_string() })
    }

    /// The items.
    pub fn items(&self) -> &[String] {
        &self.items
    }

    /// What tells lists apart.
    pub fn hash(&self) -> &str {
        &self.hash
    }

    /// The list that a question names, or else what is declared of the column: its keys, or a partition file for it.
    pub(super) fn find(
        tables: &Tables,
        dataset: &str,
        item: &str,
        list: Option<&ItemList>,
    ) -> Result<Self, QueryError> {
        let declared = tables.warehouse().declaration().dataset(dataset)?;
        match list {
            Some(ItemList::Listed(items)) => Self::new(items.clone()),
            Some(ItemList::File(path)) => Self::listed_in(path, tables),
            Some(ItemList::Column { table, column }) => {
                tables.warehouse().declaration().dataset(table).map_err(|error| {
                    let sentence =
                        format!("`{table}.{column}` is neither a file that is there nor a column of a data set");
                    QueryError::asked(sentence, format!("name a file, or a column of a public table; {}", error.hint()))
                })?;
                Self::column(tables, table, column)
            }
            None => match (declared.keys(item), declared.unit.as_ref().and_then(|unit| unit.element.as_ref())) {
                (Some(Keys::Listed(items)), _) => Self::new(items.clone()),
                (Some(Keys::FromTable { table, column }), _) => Self::column(tables, table, column),
                (None, Some(ElementSource::PartitionFile { column, path })) if column == item => {
                    Self::read(&tables.warehouse().folder().join(path))
                }
                (None, Some(ElementSource::Dictionary { column, elements, .. })) if column == item => {
                    Self::new(elements.keys().cloned().collect())
                }
                (None, _) => Err(QueryError::asked(
                    format!("nothing says which values of `{dataset}.{item}` may be named"),
                    format!(
                        "give a public list with `question.items = FILE` or `question.items = table.column`, or declare {}",
                        line::with(declared, item, ("keys", "[…]"))
                    ),
                )),
            },
        }
    }

    /// The items of a file that somebody names. What is declared as private is no list of what is public: its lines would be printed as items.
    fn listed_in(path: &Path, tables: &Tables) -> Result<Self, QueryError> {
        let mut private = tables.warehouse().sources().filter(|source| !source.dataset.public);
        match private.find(|source| source.holds(path)) {
            Some(source) => Err(QueryError::asked(
                format!(
                    "`{}` holds rows of `{}`, which is private, so its lines may not be named",
                    path.display(),
                    source.dataset.name
                ),
                "name a file of items that are public, one a line, or a column of a public table",
            )),
            None => Self::read(path),
        }
    }

    fn read(path: &Path) -> Result<Self, QueryError> {
        let text = std::fs::read_to_string(path).map_err(|error| {
            let hint = "name a partition file, or a text file with one item a line";
            QueryError::asked(format!("`{}` cannot be read: {error}", path.display()), hint)
        })?;
        if text.starts_with("whit partition ") {
            return Self::new(PartitionFile::load(path)?.items().to_vec());
        }
        Self::new(text.lines().filter(|line| !line.is_empty()).map(str::to_owned).collect())
    }

    fn column(tables: &Tables, table: &str, column: &str) -> Result<Self, QueryError> {
        let source = tables.warehouse().source(table)?;
        if !source.dataset.public {
            return Err(QueryError::asked(
                format!("`{table}` is not declared public, so its values may not be named"),
                "take the list from a table with `public = true`, or from a file",
            ));
        }
        super::rows::column(&source.schema, table, column)?;
        let context = tables.warehouse().context();
        let read = async {
            let frame = context.table(datafusion::common::TableReference::bare(table)).await?;
            let text = datafusion::prelude::cast(Expr::Column(Column::new_unqualified(column)), DataType::Utf8);
            frame.select(vec![text.alias("item")])?.distinct()?.collect().await
        };
        let batches = tables.runtime().block_on(read).map_err(|error| running(&error))?;
        let texts = batches.iter().flat_map(|batch| batch.column(0).as_string::<i32>().iter().flatten());
        let items: BTreeSet<String> = texts.map(str::to_owned).collect(); // sorted: the engine has no order of its own
        Self::new(items.into_iter().collect())
    }
}

/// The number of each item's element, where the declared element is a function of the item alone.
pub(super) fn elements_of(
    tables: &Tables,
    dataset: &str,
    item: &str,
    items: &[String],
) -> Result<Option<Vec<u32>>, QueryError> {
    let declared = tables.warehouse().declaration().dataset(dataset)?;
    let Some(element) = declared.unit.as_ref().and_then(|unit| unit.element.as_ref()) else { return Ok(None) };
    match element {
        ElementSource::Dictionary { column, elements, unknown } if column == item => {
            Ok(Some(numbered(items.iter().map(|item| elements.get(item).unwrap_or(unknown)))))
        }
        ElementSource::PartitionFile { column, path } if column == item => {
            let file = PartitionFile::load(&tables.warehouse().folder().join(path))?;
            if file.is_listed() {
                return Ok(Some(items.iter().map(|item| file.element(item)).collect()));
            }
            file.sql().map_or(Ok(None), |sql| evaluated(tables, dataset, item, items, &sql))
        }
        ElementSource::Expression(sql) => evaluated(tables, dataset, item, items, sql),
        ElementSource::Dictionary { .. } | ElementSource::PartitionFile { .. } => Ok(None),
    }
}

/// The element of each item by a SQL expression, if that reads the item's column only.
fn evaluated(
    tables: &Tables,
    dataset: &str,
    item: &str,
    items: &[String],
    sql: &str,
) -> Result<Option<Vec<u32>>, QueryError> {
    let source = tables.warehouse().source(dataset)?;
    let context = tables.warehouse().context();
    let schema = DFSchema::try_from(source.schema.as_ref().clone()).map_err(|error| planning(&error))?;
    let expression = Spelling::expression(&context.state(), sql, &schema).map_err(|error| planning(&error))?;
    if matches!(&expression, Expr::Column(column) if column.name == item) {
        return Ok(Some((0..items.len() as u32).collect())); // the item itself, whatever its type
    }
    let kind = super::rows::column(&source.schema, dataset, item)?;
    let text = matches!(kind, DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View);
    // A text that stands for a number may stand for another one after it was read, so only texts are evaluated.
    if !text || expression.is_volatile() || expression.column_refs().iter().any(|column| column.name != item) {
        return Ok(None);
    }
    let values: ArrayRef = Arc::new(StringArray::from_iter_values(items));
    let values = cast(&values, &kind).map_err(|error| planning(&error.into()))?;
    let batch = RecordBatch::try_from_iter([(item, values)]).map_err(|error| planning(&error.into()))?;
    let table = context.read_batch(batch).map_err(|error| planning(&error))?;
    let found = datafusion::prelude::cast(expression, DataType::Utf8).alias("element");
    let run = async { table.select(vec![found])?.collect().await };
    let batches = tables.runtime().block_on(run).map_err(|error| running(&error))?;
    let elements: Vec<Option<String>> = batches
        .iter()
        .flat_map(|batch| batch.column(0).as_string::<i32>().iter().map(|text| text.map(str::to_owned)))
        .collect();
    Ok((elements.len() == items.len()).then(|| numbered(elements.iter())))
}

/// Numbers for values: the same for the same.
fn numbered<T: Ord>(values: impl Iterator<Item = T>) -> Vec<u32> {
    let mut numbers = BTreeMap::new();
    values
        .map(|value| {
            let next = numbers.len() as u32;
            *numbers.entry(value).or_insert(next)
        })
        .collect()
}

/// How many different values of `other` items of one element have, at most.
pub(super) fn touch(elements: Option<&[u32]>, other: impl Fn(usize) -> u32) -> Touch {
    let Some(elements) = elements else { return Touch::Any };
    let mut pairs: Vec<(u32, u32)> = elements.iter().enumerate().map(|(at, &element)| (element, other(at))).collect();
    pairs.sort_unstable();
    pairs.dedup();
    Touch::Most(pairs.chunk_by(|a, b| a.0 == b.0).map(<[_]>::len).max().unwrap_or(1) as u64)
}
