//! Parquet files, written and read batch by batch.

use super::Fallible;
use datafusion::arrow::array::{
    Array, ArrayRef, AsArray, BinaryArray, FixedSizeBinaryArray, FixedSizeListArray, Float32Array, Int32Array,
    RecordBatch, StringArray, UInt8Array,
};
use datafusion::arrow::buffer::{Buffer, OffsetBuffer};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType, Field, UInt8Type};
use datafusion::parquet::arrow::ArrowWriter;
use datafusion::parquet::arrow::arrow_reader::{ParquetRecordBatchReader, ParquetRecordBatchReaderBuilder};
use datafusion::parquet::basic::{Compression, ZstdLevel};
use datafusion::parquet::file::properties::{EnabledStatistics, WriterProperties};
use std::fs::File;
use std::path::Path;
use std::sync::Arc;

/// Numbers.
pub(crate) fn whole(values: Vec<i32>) -> ArrayRef {
    Arc::new(Int32Array::from(values))
}

/// Labels.
pub(crate) fn labels(values: Vec<u8>) -> ArrayRef {
    Arc::new(UInt8Array::from(values))
}

/// Texts.
pub(crate) fn texts(values: &[&str]) -> ArrayRef {
    Arc::new(StringArray::from(values.to_vec()))
}

/// So many numbers a row.
pub(crate) fn vectors(values: Vec<f32>, width: usize) -> Fallible<ArrayRef> {
    let item = Arc::new(Field::new_list_field(DataType::Float32, false));
    let values = Arc::new(Float32Array::from(values));
    Ok(Arc::new(FixedSizeListArray::try_new(item, i32::try_from(width)?, values, None)?))
}

/// So many bytes a row.
pub(crate) fn bytes(values: Vec<u8>, width: usize) -> Fallible<ArrayRef> {
    Ok(Arc::new(FixedSizeBinaryArray::try_new(i32::try_from(width)?, Buffer::from_vec(values), None)?))
}

/// So many bytes a row, as bytes of any length: the writer keeps those that come again once, by copying them. Of bytes of one length it would keep the whole batch
/// in which they came.
pub(crate) fn images(values: Vec<u8>, width: usize) -> Fallible<ArrayRef> {
    let offsets = OffsetBuffer::from_repeated_length(width, values.len() / width);
    Ok(Arc::new(BinaryArray::try_new(offsets, Buffer::from_vec(values), None)?))
}

/// A file in the making.
pub(crate) struct Writer {
    writer: ArrowWriter<File>,
}

/// The columns of one batch, by name.
pub(crate) type Columns<'a> = Vec<(&'a str, ArrayRef)>;

fn batch(columns: Columns<'_>) -> Fallible<RecordBatch> {
    Ok(RecordBatch::try_from_iter(columns)?)
}

impl Writer {
    /// Begins a file with its first batch.
    ///
    /// All rows are one group, in which bytes that come again are kept once as long as there are less than 256 MiB of different ones: images that many users have take
    /// the room of one.
    pub(crate) fn new(path: &Path, columns: Columns<'_>) -> Fallible<Self> {
        let first = batch(columns)?;
        let properties = WriterProperties::builder()
            .set_compression(Compression::ZSTD(ZstdLevel::try_new(3)?))
            .set_dictionary_page_size_limit(256 << 20)
            .set_max_row_group_row_count(Some(2_000_000))
            // The least and the largest image of a page would be of no use, and as large as images are.
            .set_statistics_enabled(EnabledStatistics::None)
            .build();
        let mut writer = ArrowWriter::try_new(File::create(path)?, first.schema(), Some(properties))?;
        writer.write(&first)?;
        Ok(Self { writer })
    }

    pub(crate) fn add(&mut self, columns: Columns<'_>) -> Fallible<()> {
        Ok(self.writer.write(&batch(columns)?)?)
    }

    pub(crate) fn close(self) -> Fallible<()> {
        self.writer.close()?;
        Ok(())
    }
}

/// Writes a file of one batch.
pub(crate) fn write(path: &Path, columns: Columns<'_>) -> Fallible<()> {
    Writer::new(path, columns)?.close()
}

/// Opens a file.
pub(crate) fn read(path: &Path) -> Fallible<ParquetRecordBatchReader> {
    let file = File::open(path).map_err(|why| format!("`{}` cannot be read: {why}", path.display()))?;
    Ok(ParquetRecordBatchReaderBuilder::try_new(file)?.with_batch_size(4096).build()?)
}

fn column<'a>(batch: &'a RecordBatch, name: &str) -> Fallible<&'a ArrayRef> {
    batch.column_by_name(name).ok_or_else(|| format!("there is no column `{name}`").into())
}

/// A column of texts, dictionaries among them.
pub(crate) fn text_column(batch: &RecordBatch, name: &str) -> Fallible<Vec<String>> {
    let texts = cast(column(batch, name)?, &DataType::Utf8)?;
    Ok(texts.as_string::<i32>().iter().map(|text| text.unwrap_or_default().to_owned()).collect())
}

/// A column of labels.
pub(crate) fn label_column(batch: &RecordBatch, name: &str) -> Fallible<Vec<u8>> {
    let labels = cast(column(batch, name)?, &DataType::UInt8)?;
    Ok(labels.as_primitive::<UInt8Type>().values().to_vec())
}

/// A column of bytes.
pub(crate) fn byte_column(batch: &RecordBatch, name: &str) -> Fallible<Vec<Vec<u8>>> {
    let bytes = cast(column(batch, name)?, &DataType::Binary)?;
    Ok(bytes.as_binary::<i32>().iter().map(|bytes| bytes.unwrap_or_default().to_vec()).collect())
}

/// A column of vectors, one after the other, and how long each is.
pub(crate) fn vector_column(batch: &RecordBatch, name: &str) -> Fallible<(Vec<f32>, usize)> {
    let lists = column(batch, name)?;
    let lists = lists.as_fixed_size_list_opt().ok_or_else(|| format!("`{name}` has no vectors of one length"))?;
    let width = usize::try_from(lists.value_length())?;
    let values = lists.values().slice(lists.offset() * width, lists.len() * width);
    let values = cast(&values, &DataType::Float32)?;
    Ok((values.as_primitive::<datafusion::arrow::datatypes::Float32Type>().values().to_vec(), width))
}
