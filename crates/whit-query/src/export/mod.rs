//! Answers in files that other programs read: flat columns, and Parquet with the statement inside.

mod flat;

pub use flat::{CellPart, Flat, flat, text};

use crate::answer::{Answer, Value};
use crate::error::QueryError;
use datafusion::arrow::array::{
    ArrayRef, BooleanArray, Float64Array, Int64Array, RecordBatch, RecordBatchOptions, StringArray,
};
use datafusion::arrow::datatypes::{DataType, Field, Schema};
use datafusion::parquet::arrow::ArrowWriter;
use datafusion::parquet::errors::ParquetError;
use datafusion::parquet::file::metadata::KeyValue;
use datafusion::parquet::file::properties::WriterProperties;
use flat::Sort;
use std::fs::File;
use std::path::Path;
use std::sync::Arc;

/// The key under which a Parquet file has the statement, as JSON.
const STATEMENT: &str = "whit.statement";

/// The answer as one batch: each column under its name, each noisy one with `_low` and `_high` behind it.
fn to_record_batch(answer: &Answer) -> Result<RecordBatch, QueryError> {
    let columns = flat(&answer.columns);
    let sorts: Vec<Sort> = columns.iter().map(|column| Sort::of(column, answer)).collect();
    let fields = columns.iter().zip(&sorts).map(|(column, sort)| {
        let kind = match sort {
            Sort::Bool => DataType::Boolean,
            Sort::Int => DataType::Int64,
            Sort::Float => DataType::Float64,
            Sort::Text => DataType::Utf8,
        };
        Field::new(&column.name, kind, true)
    });
    let schema = Arc::new(Schema::new(fields.collect::<Vec<_>>()));
    let arrays = columns.iter().zip(&sorts).map(|(column, sort)| array(column, *sort, answer)).collect();
    // Said because an answer without columns still has a number of rows.
    let rows = RecordBatchOptions::new().with_row_count(Some(answer.rows.len()));
    RecordBatch::try_new_with_options(schema, arrays, &rows)
        .map_err(|why| QueryError::failed(format!("the answer could not be made into a batch: {why}")))
}

fn array(column: &Flat, sort: Sort, answer: &Answer) -> ArrayRef {
    let values = answer.rows.iter().map(|row| column.of(row));
    let truth = |value| if let Value::Bool(value) = value { Some(value) } else { None };
    let whole = |value| if let Value::Int(value) = value { Some(value) } else { None };
    let number = |value| match value {
        Value::Int(value) => Some(value as f64),
        Value::Float(value) => Some(value),
        Value::Null | Value::Bool(_) | Value::Text(_) => None,
    };
    match sort {
        Sort::Bool => Arc::new(values.map(truth).collect::<BooleanArray>()),
        Sort::Int => Arc::new(values.map(whole).collect::<Int64Array>()),
        Sort::Float => Arc::new(values.map(number).collect::<Float64Array>()),
        Sort::Text => Arc::new(values.map(|value| text(&value)).collect::<StringArray>()),
    }
}

/// Writes the answer as a Parquet file, with its statement as JSON under the key `whit.statement` in the file's metadata.
/// Folders that lead to it are made. What is no output of somebody's, such as a ledger, is not written over.
pub fn write_parquet(answer: &Answer, path: &Path) -> Result<(), QueryError> {
    crate::source::Inputs::default().check(path)?;
    let batch = to_record_batch(answer)?;
    let write = || -> Result<(), ParquetError> {
        if let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
            std::fs::create_dir_all(folder)?;
        }
        let statement = serde_json::to_string(&answer.statement).map_err(|why| ParquetError::External(why.into()))?;
        let metadata = KeyValue { key: STATEMENT.into(), value: Some(statement) };
        let properties = WriterProperties::builder().set_key_value_metadata(Some(vec![metadata])).build();
        let mut writer = ArrowWriter::try_new(File::create(path)?, batch.schema(), Some(properties))?;
        writer.write(&batch)?;
        writer.close()?;
        Ok(())
    };
    write().map_err(|why| QueryError::failed(format!("`{}` could not be written: {why}", path.display())))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::answer::{Cell, Column, Role, Statement};
    use datafusion::arrow::array::{Array, AsArray};
    use datafusion::arrow::datatypes::{Float64Type, Int64Type};
    use datafusion::parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;

    fn answer() -> Answer {
        let column = |name: &str, role| Column { name: name.into(), role, after_caps: false };
        let cell = |value, low, high| Cell { value, low, high };
        let rows = vec![
            vec![
                cell(Value::Text("a,\"b\"".into()), None, None),
                cell(Value::Int(1234), Some(1193.25), Some(f64::INFINITY)),
                cell(Value::Float(0.1), Some(0.0), Some(0.2)),
                cell(Value::Bool(true), None, None),
            ],
            vec![
                cell(Value::Null, None, None),
                cell(Value::Null, None, None),
                cell(Value::Int(3), None, None),
                cell(Value::Null, None, None),
            ],
        ];
        let statement = Statement {
            dataset: "visits".into(),
            question: "SELECT shop, COUNT(*) FROM visits GROUP BY shop".into(),
            unit: "element (user, shop), replace".into(),
            prices: Vec::new(),
            confidence: 0.95,
            mechanisms: vec!["count(*): rounded Gaussian".into()],
            notes: Vec::new(),
            partition: None,
            entry: Some(7),
            stored: false,
            more_like_this: None,
        };
        let columns = vec![
            column("shop", Role::Key),
            column("n", Role::Noisy),
            column("share", Role::Noisy),
            column("open", Role::Exact),
        ];
        Answer { columns, rows, statement }
    }

    #[test]
    fn a_batch_has_the_ends_of_the_intervals_beside_the_values() {
        let batch = to_record_batch(&answer()).unwrap();
        let schema = batch.schema();
        let fields: Vec<String> =
            schema.fields().iter().map(|field| format!("{} {}", field.name(), field.data_type())).collect();
        assert_eq!(
            fields,
            [
                "shop Utf8",
                "n Int64",
                "n_low Float64",
                "n_high Float64",
                "share Float64",
                "share_low Float64",
                "share_high Float64",
                "open Boolean"
            ]
        );
        assert!(batch.column(0).is_null(1) && batch.column(1).is_null(1) && batch.column(2).is_null(1));
        assert_eq!(batch.column(1).as_primitive::<Int64Type>().value(0), 1234);
        assert_eq!(batch.column(4).as_primitive::<Float64Type>().values(), &[0.1, 3.0]);
    }

    #[test]
    fn a_parquet_file_reads_back_with_its_statement() {
        let folder = std::env::temp_dir().join(format!("whit-export-{}", std::process::id()));
        let path = folder.join("new/answer.parquet");
        write_parquet(&answer(), &path).unwrap();
        let reader = ParquetRecordBatchReaderBuilder::try_new(File::open(&path).unwrap()).unwrap();
        let metadata = reader.metadata().file_metadata().key_value_metadata().unwrap().clone();
        let stored = metadata.iter().find(|pair| pair.key == STATEMENT).unwrap().value.clone().unwrap();
        let statement: Statement = serde_json::from_str(&stored).unwrap();
        assert_eq!(statement, answer().statement);
        let batches: Vec<RecordBatch> = reader.build().unwrap().map(Result::unwrap).collect();
        assert_eq!(batches, [to_record_batch(&answer()).unwrap()]);
        std::fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn words_beside_numbers_make_a_column_of_words() {
        let mut mixed = answer();
        mixed.rows[1][2].value = Value::Text("unknown".into());
        let batch = to_record_batch(&mixed).unwrap();
        let texts: Vec<Option<&str>> = batch.column(4).as_string::<i32>().iter().collect();
        assert_eq!(texts, [Some("0.1"), Some("unknown")]);
    }

    #[test]
    fn an_answer_without_rows_or_columns_is_still_a_file() {
        let mut empty = answer();
        empty.rows.clear();
        assert_eq!(to_record_batch(&empty).unwrap().num_rows(), 0);
        empty.columns.clear();
        assert_eq!(to_record_batch(&empty).unwrap().num_columns(), 0);
    }

    #[test]
    fn a_file_that_cannot_be_written_is_named() {
        let error = write_parquet(&answer(), Path::new("/dev/null/answer.parquet")).unwrap_err();
        assert!(error.sentence.starts_with("`/dev/null/answer.parquet` could not be written"), "{error}");
    }
}
