//! CSV and NDJSON files as tables whose columns are declared.
//!
//! A line is a row, whatever stands in it, and says nothing about another. A cell that is not of its column's type is NULL; so is one that is
//! not there, or that a line cannot be read up to; what is too much is left out. So no row can make a reader fail, change a type, or
//! move another row, and how many rows there are is how many lines there are. Lines that are empty are none.
//!
//! Columns go by the names in the first line of each CSV file, and by the names of members in NDJSON. A declared column that a file has not is NULL there.

pub(super) mod cell;
mod csv;
pub(super) mod guess;
mod json;
pub(super) mod letters;
mod lines;
pub(super) mod sniff;
pub(super) mod tally;
pub(super) mod writing;

use crate::error::QueryError;
use cell::{Column, Taken, arrow_of};
use csv::Signs;
use datafusion::arrow::array::{ArrayRef, RecordBatch, RecordBatchOptions};
use datafusion::arrow::datatypes::{Field, Schema, SchemaRef};
use datafusion::catalog::{Session, TableProvider};
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::logical_expr::{Expr, TableType};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::streaming::{PartitionStream, StreamingTableExec};
use lines::Lines;
use std::collections::BTreeMap;
use std::fmt;
use std::future::Future;
use std::io::{self, Read};
use std::ops::Range;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::Arc;
use whit_core::declare::{ColumnType, Format};
use writing::{Heading, Writing};

/// How many rows a batch has,
const ROWS: usize = 8192;
/// or how many bytes were read for it.
const BYTES: usize = 1 << 23;
/// No thread is woken for less than this.
const PART: u64 = 1 << 20;

/// Whether some value in the first part of a file seems to hold a line break: a quote that its line does not close, and a later one does.
pub(super) fn newlines<'a>(
    files: impl Iterator<Item = (&'a PathBuf, Writing)>,
) -> std::result::Result<bool, QueryError> {
    for (path, writing) in files {
        let wrong = |error: io::Error| super::files::unreadable(&path.to_string_lossy(), &error);
        let mut text = Vec::new();
        writing.text(path).map_err(wrong)?.take(1 << 24).read_to_end(&mut text).map_err(wrong)?;
        let mut rest = text.as_slice();
        while let Some(end) = writing.signs.end_of_record(rest) {
            if rest[..end].contains(&b'\n') {
                return Ok(true);
            }
            rest = &rest[end + 1..];
        }
    }
    Ok(false)
}

/// A file as a table is given it: where it is, how it is written, and what the names of its folders say of columns.
#[derive(Debug, Clone)]
pub(super) struct GivenFile {
    pub(super) path: PathBuf,
    pub(super) writing: Writing,
    /// The text of each column that folders are named after; nothing where no folder of this file says it.
    pub(super) folders: BTreeMap<String, Option<String>>,
}

/// One file of a table.
#[derive(Debug, Clone)]
struct OneFile {
    path: PathBuf,
    writing: Writing,
    size: u64,
    /// Where rows begin,
    start: u64,
    /// and how many lines are before them.
    lines: u64,
    /// How many columns its heading has; 0 in NDJSON.
    width: usize,
    /// Where each column of the table stands in a line of CSV.
    places: Vec<Option<usize>>,
    /// What is the same in all rows, by column.
    folders: BTreeMap<usize, Option<String>>,
}

/// Files of one format as a table.
#[derive(Debug, Clone)]
pub(super) struct TextTable {
    format: Format,
    columns: Arc<Vec<(String, ColumnType)>>,
    schema: SchemaRef,
    files: Arc<Vec<OneFile>>,
}

impl TextTable {
    /// The table of these files with these columns.
    pub(super) fn new(
        format: Format,
        columns: Vec<(String, ColumnType)>,
        given: impl IntoIterator<Item = GivenFile>,
    ) -> io::Result<Self> {
        let fields: Vec<Field> = columns.iter().map(|(name, kind)| Field::new(name, arrow_of(kind), true)).collect();
        let mut files = Vec::new();
        for GivenFile { path, writing, folders } in given {
            // Of a packed file this finds out, before anything is paid for, whether it is one.
            let Heading { names, start, lines, .. } = writing.heading(&path)?;
            let place = |(column, _): &(String, _)| names.iter().position(|name| name == column);
            let places = columns.iter().map(place).collect();
            let number = |column: &String| columns.iter().position(|(name, _)| name == column);
            let folders = folders.into_iter().filter_map(|(name, text)| number(&name).map(|at| (at, text))).collect();
            let size = std::fs::metadata(&path)?.len();
            files.push(OneFile { path, writing, size, start, lines, width: names.len(), places, folders });
        }
        Ok(Self { format, columns: Arc::new(columns), schema: Arc::new(Schema::new(fields)), files: Arc::new(files) })
    }

    pub(super) fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    /// The whole, divided into at most so many shares of about the same size, each in the order of the files.
    fn shares(&self, many: usize) -> Vec<Vec<(usize, Range<u64>)>> {
        let total: u64 = self.files.iter().map(|file| file.size).sum();
        let share = total.div_ceil(many.max(1) as u64).max(PART);
        let mut shares = vec![Vec::new()];
        let mut room = share;
        for (number, file) in self.files.iter().enumerate() {
            let mut at = 0;
            while at < file.size {
                if room == 0 {
                    shares.push(Vec::new());
                    room = share;
                }
                // Where quotes may hold line breaks, only who read all that is before knows where a line begins.
                let end = if file.writing.is_divisible() { file.size.min(at + room) } else { file.size };
                if let Some(last) = shares.last_mut() {
                    last.push((number, at..end));
                }
                room = room.saturating_sub(end - at);
                at = end;
            }
        }
        shares
    }

    fn share(&self, wanted: &Arc<Vec<usize>>, parts: Vec<(usize, Range<u64>)>) -> Result<Share> {
        let schema = Arc::new(self.schema.project(wanted)?);
        Ok(Share { table: self.clone(), wanted: Arc::clone(wanted), parts, schema })
    }
}

pub(super) type Scanned<'a> = Pin<Box<dyn Future<Output = Result<Arc<dyn ExecutionPlan>>> + Send + 'a>>;

impl TableProvider for TextTable {
    fn schema(&self) -> SchemaRef {
        self.schema()
    }

    fn table_type(&self) -> TableType {
        TableType::Base
    }

    fn scan<'s, 'a, 'b, 'c, 'all>(
        &'s self,
        state: &'a dyn Session,
        projection: Option<&'b Vec<usize>>,
        _: &'c [Expr],
        _: Option<usize>,
    ) -> Scanned<'all>
    where
        's: 'all,
        'a: 'all,
        'b: 'all,
        'c: 'all,
    {
        let wanted = projection.cloned().unwrap_or_else(|| (0..self.columns.len()).collect());
        let many = state.config().target_partitions();
        Box::pin(async move {
            let wanted = Arc::new(wanted);
            let schema = Arc::new(self.schema.project(&wanted)?);
            let shares = self.shares(many).into_iter();
            let shares = shares.map(|parts| Ok(Arc::new(self.share(&wanted, parts)?) as Arc<dyn PartitionStream>));
            let shares = shares.collect::<Result<Vec<_>>>()?;
            Ok(Arc::new(StreamingTableExec::try_new(schema, shares, None, [], false, None)?) as Arc<dyn ExecutionPlan>)
        })
    }
}

/// What one thread reads of a table.
#[derive(Clone)]
struct Share {
    table: TextTable,
    wanted: Arc<Vec<usize>>,
    parts: Vec<(usize, Range<u64>)>,
    schema: SchemaRef,
}

impl fmt::Debug for Share {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "lines of {}", self.table.format)
    }
}

impl PartitionStream for Share {
    fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    fn execute(&self, _: Arc<TaskContext>) -> SendableRecordBatchStream {
        let schema = Arc::clone(&self.schema);
        let batches = futures::stream::iter(Reading::new(self.clone()));
        Box::pin(RecordBatchStreamAdapter::new(schema, batches))
    }
}

/// A share as it is read.
struct Reading {
    share: Share,
    parts: std::vec::IntoIter<(usize, Range<u64>)>,
    now: Option<(Rows, Lines)>,
    columns: Vec<Column>,
    failed: bool,
}

impl Reading {
    fn new(share: Share) -> Self {
        let columns = share.wanted.iter().map(|&column| Column::new(&share.table.columns[column].1)).collect();
        let parts = share.parts.clone().into_iter();
        Self { share, parts, now: None, columns, failed: false }
    }

    fn batch(&mut self) -> io::Result<usize> {
        let (mut rows, mut bytes) = (0, 0);
        while rows < ROWS && bytes < BYTES {
            let Some((reader, lines)) = &mut self.now else {
                let Some((number, part)) = self.parts.next() else { break };
                let table = &self.share.table;
                let file = &table.files[number];
                let lines = Lines::open(&file.path, file.start, part, &file.writing)?;
                self.now = Some((Rows::new(table, file, &self.share.wanted), lines));
                continue;
            };
            match lines.next()? {
                None => self.now = None,
                Some(line) => {
                    bytes += line.len();
                    rows += usize::from(reader.row(line, &mut self.columns, &mut ()));
                }
            }
        }
        Ok(rows)
    }
}

impl Iterator for Reading {
    type Item = Result<RecordBatch>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.failed {
            return None;
        }
        let rows = match self.batch() {
            Ok(0) => return None,
            Ok(rows) => rows,
            Err(error) => {
                self.failed = true;
                return Some(Err(DataFusionError::IoError(error)));
            }
        };
        let columns: Vec<ArrayRef> = self.columns.iter_mut().map(Column::finish).collect();
        let options = RecordBatchOptions::new().with_row_count(Some(rows));
        let schema = Arc::clone(&self.share.schema);
        Some(RecordBatch::try_new_with_options(schema, columns, &options).map_err(DataFusionError::from))
    }
}

/// What is noticed of lines, where somebody may know. Nothing is, on the way of a question.
trait Notice {
    /// Whether all fields are counted, also those that no question asks for.
    const COUNTS: bool;
    /// A cell of a column, by its place among those that are read.
    fn cell(&mut self, column: usize, taken: Taken);
    /// A line that is not written as it should be.
    fn shape(&mut self, shape: Shape);
}

impl Notice for () {
    const COUNTS: bool = false;
    fn cell(&mut self, _: usize, _: Taken) {}
    fn shape(&mut self, _: Shape) {}
}

/// What may be wrong with a line as a whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Shape {
    /// Fewer fields than the heading has.
    Short,
    /// More fields than the heading has.
    Long,
    /// A quote that nothing closes.
    Open,
    /// No JSON object.
    Broken,
    /// Bytes that are not UTF-8.
    Foreign,
    /// The first line that is no row, since its file is packed and breaks off.
    Cut,
}

/// From lines of one file to cells.
struct Rows {
    format: Format,
    /// The columns that are read, by their place in a line, and where they go.
    places: Vec<(usize, usize)>,
    /// Columns that the file has not.
    absent: Vec<usize>,
    /// Columns that the names of its folders say.
    folders: BTreeMap<usize, Option<String>>,
    names: Vec<Vec<u8>>,
    width: usize,
    signs: Signs,
    nulls: Arc<[String]>,
    spare: Vec<u8>,
}

impl Rows {
    fn new(table: &TextTable, file: &OneFile, wanted: &[usize]) -> Self {
        let (mut places, mut absent, mut folders) = (Vec::new(), Vec::new(), BTreeMap::new());
        for (target, column) in wanted.iter().enumerate() {
            match (file.folders.get(column), file.places[*column]) {
                (Some(text), _) => drop(folders.insert(target, text.clone())),
                (None, Some(place)) => places.push((place, target)),
                (None, None) => absent.push(target),
            }
        }
        places.sort_unstable();
        Self {
            format: table.format,
            places,
            absent,
            folders,
            names: wanted.iter().map(|&column| table.columns[column].0.clone().into_bytes()).collect(),
            width: file.width,
            signs: file.writing.signs,
            nulls: Arc::clone(&file.writing.nulls),
            spare: Vec::new(),
        }
    }

    /// Puts one cell into every column. Whether the line is a row: one that is empty is none, unless a row is a single cell.
    fn row<N: Notice>(&mut self, line: &[u8], columns: &mut [Column], notice: &mut N) -> bool {
        match self.format {
            Format::Csv => {
                if (line.is_empty() && self.width != 1) || self.signs.is_comment(line) {
                    return false;
                }
                self.csv(line, columns, notice);
                true
            }
            Format::Ndjson | Format::Parquet | Format::Delta => {
                if line.trim_ascii().is_empty() {
                    return false;
                }
                self.json(line, columns, notice);
                true
            }
        }
    }

    fn csv<N: Notice>(&mut self, line: &[u8], columns: &mut [Column], notice: &mut N) {
        let mut next = 0;
        if !self.places.is_empty() || N::COUNTS {
            let (places, nulls) = (&self.places, &self.nulls);
            let ended = self.signs.fields(line, &mut self.spare, |number, field| {
                if let Some(&(place, target)) = places.get(next)
                    && place == number
                {
                    let missing = nulls.iter().any(|null| null.as_bytes() == field);
                    let taken = if missing { columns[target].none() } else { columns[target].take(field) };
                    notice.cell(target, taken);
                    next += 1;
                }
                N::COUNTS || next < places.len()
            });
            if N::COUNTS {
                if ended.open {
                    notice.shape(Shape::Open);
                } else if ended.fields != self.width {
                    notice.shape(if ended.fields < self.width { Shape::Short } else { Shape::Long });
                }
            }
        }
        for target in self.places[next..].iter().map(|(_, target)| target).chain(&self.absent) {
            notice.cell(*target, columns[*target].none());
        }
        for (&target, text) in &self.folders {
            notice.cell(target, columns[target].take(text.as_deref().unwrap_or_default().as_bytes()));
        }
    }

    fn json<N: Notice>(&mut self, line: &[u8], columns: &mut [Column], notice: &mut N) {
        let mut found: Vec<Option<json::Raw<'_>>> = vec![None; self.names.len()];
        let mut near = 0;
        let whole = json::members(line, |name, raw| {
            let mut spare = String::new();
            let Some(name) = json::plain(name, &mut spare) else { return };
            // Members mostly come in one order.
            let many = self.names.len();
            let place = (0..many).map(|step| (near + step) % many).find(|&place| self.names[place] == name);
            if let Some(place) = place {
                found[place] = Some(raw);
                near = (place + 1) % many;
            }
        });
        if !whole {
            notice.shape(Shape::Broken);
        }
        for (target, raw) in found.into_iter().enumerate() {
            let taken = match (self.folders.get(&target), raw) {
                (Some(text), _) => columns[target].take(text.as_deref().unwrap_or_default().as_bytes()),
                (None, Some(raw)) => json::put(&mut columns[target], raw),
                (None, None) => columns[target].none(),
            };
            notice.cell(target, taken);
        }
    }
}
