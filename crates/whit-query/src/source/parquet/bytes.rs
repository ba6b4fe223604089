//! Parquet files whose text is read as bytes first, so that text that is not UTF-8 is NULL and fails nothing.
//!
//! The engine's own reader is faster, and gives up at the first such text. So it goes first, and these tables take over where it failed: what
//! is released is the same, and only the time that it takes tells of it.

use super::super::text::Scanned;
use super::{fitted, nested};
use crate::evaluate::attempt::cast_each;
use datafusion::arrow::array::{ArrayRef, RecordBatch, RecordBatchOptions, UInt64Array, new_null_array};
use datafusion::arrow::compute::take;
use datafusion::arrow::datatypes::{DataType, Field, FieldRef, Schema, SchemaRef};
use datafusion::arrow::error::ArrowError;
use datafusion::catalog::{Session, TableProvider};
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::logical_expr::{Expr, TableProviderFilterPushDown, TableType};
use datafusion::parquet::arrow::arrow_reader::{
    ArrowReaderMetadata, ArrowReaderOptions, ParquetRecordBatchReader, ParquetRecordBatchReaderBuilder,
};
use datafusion::parquet::arrow::{ProjectionMask, parquet_to_arrow_schema};
use datafusion::parquet::basic::Type as Physical;
use datafusion::parquet::errors::{ParquetError, Result as Decoded};
use datafusion::parquet::file::metadata::{FileMetaData, ParquetMetaData};
use datafusion::parquet::schema::types::{SchemaDescriptor, Type};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::streaming::{PartitionStream, StreamingTableExec};
use datafusion::prelude::SessionContext;
use std::collections::BTreeMap;
use std::fmt;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Whether text is read as bytes first. Every engine has one.
#[derive(Debug, Default)]
pub(crate) struct Patience(AtomicBool);

impl Patience {
    /// For rows that cannot be read a second time.
    pub(crate) fn from_the_start() -> Self {
        Self(AtomicBool::new(true))
    }

    fn is_in(state: &dyn Session) -> bool {
        state.config().get_extension::<Self>().is_some_and(|patience| patience.0.load(Ordering::Relaxed))
    }

    /// Whether reading once more may help: the first time that it is asked, after which text is read as bytes.
    pub(crate) fn gained(context: &SessionContext) -> bool {
        let patience = context.state().config().get_extension::<Self>();
        patience.is_some_and(|patience| !patience.0.swap(true, Ordering::Relaxed))
    }
}

/// A data set of Parquet files, read by the engine or with patience.
#[derive(Debug)]
pub(in crate::source) struct Patient {
    /// The engine's own reader; none where folders or a log say what stands in columns, which it is not told, and where there are no files.
    pub(in crate::source) engine: Option<Arc<dyn TableProvider>>,
    pub(in crate::source) schema: SchemaRef,
    pub(in crate::source) files: Vec<ParquetFile>,
}

/// One file of a data set, and what the names of its folders say of columns.
#[derive(Debug, Clone)]
pub(in crate::source) struct ParquetFile {
    pub(in crate::source) path: PathBuf,
    /// One value each, for all rows.
    pub(in crate::source) folders: BTreeMap<String, ArrayRef>,
}

impl TableProvider for Patient {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    fn table_type(&self) -> TableType {
        TableType::Base
    }

    fn supports_filters_pushdown(&self, filters: &[&Expr]) -> Result<Vec<TableProviderFilterPushDown>> {
        // With patience no filter is heeded here, so that all stay in the plan above.
        Ok(vec![TableProviderFilterPushDown::Inexact; filters.len()])
    }

    fn scan<'s, 'a, 'b, 'c, 'all>(
        &'s self,
        state: &'a dyn Session,
        projection: Option<&'b Vec<usize>>,
        filters: &'c [Expr],
        limit: Option<usize>,
    ) -> Scanned<'all>
    where
        's: 'all,
        'a: 'all,
        'b: 'all,
        'c: 'all,
    {
        if let Some(engine) = self.engine.as_ref().filter(|_| !Patience::is_in(state)) {
            return engine.scan(state, projection, filters, limit);
        }
        Box::pin(async move {
            let whole = self.schema();
            let schema = match projection {
                Some(wanted) => Arc::new(whole.project(wanted)?),
                None => whole,
            };
            let many = self.files.len().div_ceil(state.config().target_partitions()).max(1);
            let share = |files: &[ParquetFile]| {
                Arc::new(Share { files: files.to_vec(), schema: Arc::clone(&schema) }) as Arc<dyn PartitionStream>
            };
            let mut shares: Vec<_> = self.files.chunks(many).map(share).collect();
            // A table may have no files at all, and is a table without rows then.
            if shares.is_empty() {
                shares.push(share(&[]));
            }
            let exec = StreamingTableExec::try_new(Arc::clone(&schema), shares, None, [], false, None)?;
            Ok(Arc::new(exec) as Arc<dyn ExecutionPlan>)
        })
    }
}

/// The files that one thread reads, one after the other.
struct Share {
    files: Vec<ParquetFile>,
    schema: SchemaRef,
}

impl fmt::Debug for Share {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "text as bytes of {} files", self.files.len())
    }
}

impl PartitionStream for Share {
    fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    fn execute(&self, _: Arc<TaskContext>) -> SendableRecordBatchStream {
        let schema = Arc::clone(&self.schema);
        let batches = self.files.clone().into_iter().flat_map(move |file| read(file, &schema));
        let batches = batches.map(|batch| batch.map_err(|error| DataFusionError::ParquetError(Box::new(error))));
        Box::pin(RecordBatchStreamAdapter::new(Arc::clone(&self.schema), futures::stream::iter(batches)))
    }
}

/// The rows of one file as those of a table.
fn read(file: ParquetFile, schema: &SchemaRef) -> Box<dyn Iterator<Item = Decoded<RecordBatch>> + Send> {
    let schema = Arc::clone(schema);
    match Rows::open(&file.path, &schema) {
        Ok(rows) => Box::new(rows.map(move |raw| Ok(raw?.fitted(&schema, &file.folders)?))),
        Err(error) => Box::new(std::iter::once(Err(error))),
    }
}

/// The rows of one file, with text as bytes.
pub(super) struct Rows {
    reader: ParquetRecordBatchReader,
    /// The columns as the file says that they are.
    columns: SchemaRef,
}

/// Some rows of a file, with text as bytes.
pub(super) struct Raw {
    batch: RecordBatch,
    columns: SchemaRef,
}

impl Rows {
    /// Opens a file for the columns of a schema.
    pub(super) fn open(path: &Path, wanted: &Schema) -> Decoded<Self> {
        let file = File::open(path)?;
        let found = ArrowReaderMetadata::load(&file, ArrowReaderOptions::new())?;
        let about = found.metadata().file_metadata();
        let columns = parquet_to_arrow_schema(about.schema_descr(), about.key_value_metadata())?;
        let (descriptor, schema) = as_bytes(about.schema_descr(), &columns)?;
        let descriptor = Arc::new(descriptor);
        let about = FileMetaData::new(
            about.version(),
            about.num_rows(),
            about.created_by().map(str::to_owned),
            None,
            Arc::clone(&descriptor),
            None,
        );
        let metadata = ParquetMetaData::new(about, found.metadata().row_groups().to_vec());
        let options = ArrowReaderOptions::new().with_schema(Arc::new(schema));
        let metadata = ArrowReaderMetadata::try_new(Arc::new(metadata), options)?;
        let places = wanted.fields().iter().filter_map(|field| Some(nested::find(&columns, field.name())?.0));
        let mask = ProjectionMask::roots(&descriptor, places);
        let reader =
            ParquetRecordBatchReaderBuilder::new_with_metadata(file, metadata).with_projection(mask).build()?;
        Ok(Self { reader, columns: Arc::new(columns) })
    }
}

impl Iterator for Rows {
    type Item = Decoded<Raw>;

    fn next(&mut self) -> Option<Self::Item> {
        let batch = self.reader.next()?;
        Some(batch.map(|batch| Raw { batch, columns: Arc::clone(&self.columns) }).map_err(ParquetError::from))
    }
}

impl Raw {
    pub(super) fn rows(&self) -> usize {
        self.batch.num_rows()
    }

    /// A column as it lies in the file, with text as bytes.
    pub(super) fn stored(&self, name: &str) -> Option<ArrayRef> {
        let (root, way) = nested::find(&self.columns, name)?;
        nested::inside(self.batch.column_by_name(self.columns.field(root).name())?, &way).ok()
    }

    /// A column as a field of a table; NULL where bytes are no text, and where a value is not of the field's type.
    pub(super) fn column(&self, field: &Field) -> ArrayRef {
        let own = nested::find(&self.columns, field.name())
            .and_then(|(root, way)| nested::kind_inside(self.columns.field(root).data_type(), &way));
        let (Some(stored), Some(own)) = (self.stored(field.name()), own) else {
            return new_null_array(field.data_type(), self.rows());
        };
        let text = if stored.data_type() == own { stored } else { cast_each(&stored, own) };
        fitted(&text, field.data_type())
    }

    fn fitted(
        &self,
        schema: &SchemaRef,
        folders: &BTreeMap<String, ArrayRef>,
    ) -> std::result::Result<RecordBatch, ArrowError> {
        let column = |field: &FieldRef| match folders.get(field.name()) {
            Some(one) => take(one, &UInt64Array::from(vec![0; self.rows()]), None),
            None => Ok(self.column(field)),
        };
        let columns = schema.fields().iter().map(column).collect::<std::result::Result<_, _>>()?;
        let rows = RecordBatchOptions::new().with_row_count(Some(self.rows()));
        RecordBatch::try_new_with_options(Arc::clone(schema), columns, &rows)
    }
}

/// What a file says of its columns, with text, and lists of it, as bytes.
fn as_bytes(descriptor: &SchemaDescriptor, columns: &Schema) -> Decoded<(SchemaDescriptor, Schema)> {
    let root = descriptor.root_schema();
    let mut fields = root.get_fields().to_vec();
    let mut bytes: Vec<FieldRef> = columns.fields().to_vec();
    for (field, column) in fields.iter_mut().zip(&mut bytes) {
        if let Some(kind) = bytes_of(column.data_type()) {
            *field = Arc::new(text_taken(field, column.data_type())?);
            *column = Arc::new(column.as_ref().clone().with_data_type(kind));
        }
    }
    let root = Type::GroupType { basic_info: root.get_basic_info().clone(), fields };
    Ok((SchemaDescriptor::new(Arc::new(root)), Schema::new(bytes)))
}

/// The type with bytes in the place of text, where it is text or made of nothing else.
fn bytes_of(kind: &DataType) -> Option<DataType> {
    let item = |field: &FieldRef| Some(Arc::new(field.as_ref().clone().with_data_type(bytes_of(field.data_type())?)));
    match kind {
        DataType::Utf8 => Some(DataType::Binary),
        DataType::LargeUtf8 => Some(DataType::LargeBinary),
        DataType::Utf8View => Some(DataType::BinaryView),
        DataType::Dictionary(key, value) => Some(DataType::Dictionary(key.clone(), Box::new(bytes_of(value)?))),
        DataType::List(field) if !field.data_type().is_nested() => Some(DataType::List(item(field)?)),
        DataType::LargeList(field) if !field.data_type().is_nested() => Some(DataType::LargeList(item(field)?)),
        DataType::Struct(fields) => {
            let any = fields.iter().any(|field| bytes_of(field.data_type()).is_some());
            let fields = fields.iter().map(|field| item(field).unwrap_or_else(|| Arc::clone(field)));
            any.then(|| DataType::Struct(fields.collect()))
        }
        _ => None,
    }
}

/// What a file says of a column that has text in it, without saying so of that; what else is in a struct stays what it is.
fn text_taken(kind: &Type, column: &DataType) -> Decoded<Type> {
    let DataType::Struct(columns) = column else { return without_text(kind) };
    let field = |(field, column): (&Arc<Type>, &FieldRef)| match bytes_of(column.data_type()) {
        Some(_) => Ok(Arc::new(text_taken(field, column.data_type())?)),
        None => Ok(Arc::clone(field)),
    };
    let fields = kind.get_fields().iter().zip(columns).map(field).collect::<Decoded<_>>()?;
    Ok(Type::GroupType { basic_info: kind.get_basic_info().clone(), fields })
}

/// What a file says of a column, without saying that its bytes are text.
fn without_text(kind: &Type) -> Decoded<Type> {
    let about = kind.get_basic_info();
    if kind.is_group() {
        let fields = kind.get_fields().iter().map(|field| Ok(Arc::new(without_text(field)?)));
        return Ok(Type::GroupType { basic_info: about.clone(), fields: fields.collect::<Decoded<_>>()? });
    }
    if kind.get_physical_type() != Physical::BYTE_ARRAY {
        return Ok(kind.clone());
    }
    let id = about.has_id().then(|| about.id());
    Type::primitive_type_builder(kind.name(), Physical::BYTE_ARRAY)
        .with_repetition(about.repetition())
        .with_id(id)
        .build()
}

#[cfg(test)]
mod tests;
