//! The columns of files, and whether all files of a data set agree on them.

use super::files::{Found, unreadable};
use super::url_of;
use crate::error::QueryError;
use datafusion::arrow::csv::reader::Format as CsvReader;
use datafusion::arrow::datatypes::{DataType, Field, Schema, SchemaRef, TimeUnit};
use datafusion::arrow::error::ArrowError;
use datafusion::arrow::json::reader::infer_json_schema;
use datafusion::datasource::file_format::FileFormat;
use datafusion::datasource::file_format::csv::CsvFormat;
use datafusion::datasource::file_format::json::JsonFormat;
use datafusion::datasource::file_format::parquet::ParquetFormat;
use datafusion::datasource::listing::ListingOptions;
use datafusion::object_store::ObjectStoreExt;
use datafusion::prelude::SessionContext;
use std::collections::BTreeSet;
use std::fs::File;
use std::io::{BufReader, Read, Seek, SeekFrom};
use std::path::Path;
use std::sync::Arc;
use whit_core::declare::Format;

/// The types of a CSV or NDJSON file's columns are told from so many rows of the first file,
pub(super) const ROWS_OF_FIRST: usize = 100_000;
/// and from so many rows of each other one.
pub(super) const ROWS_OF_OTHERS: usize = 1_000;

/// How the engine reads files of a format.
pub(super) fn options(format: Format) -> ListingOptions {
    let format: Arc<dyn FileFormat> = match format {
        Format::Parquet => Arc::new(ParquetFormat::default()),
        // A line break within quotes does not end a row. Were a file cut at one, a text that one user wrote could become
        // another user's row, and no bound on what one user contributes would hold.
        Format::Csv => Arc::new(CsvFormat::default().with_has_header(true).with_newlines_in_values(true)),
        Format::Ndjson => Arc::new(JsonFormat::default()),
    };
    // The files are named one by one, so no extension need be asked for.
    ListingOptions::new(format).with_file_extension("")
}

/// The columns on which all files agree.
pub(super) async fn read(context: &SessionContext, found: &Found) -> Result<SchemaRef, QueryError> {
    let mut agreed: Option<(&str, Schema)> = None;
    for (name, path) in &found.files {
        let rows = if agreed.is_none() { ROWS_OF_FIRST } else { ROWS_OF_OTHERS };
        let schema = match found.format {
            Format::Parquet => parquet(context, name, path).await?,
            Format::Csv => csv(name, path, rows)?,
            Format::Ndjson => ndjson(name, path, rows)?,
        };
        check_names(name, &schema)?;
        agreed = Some(match agreed {
            None => (name, schema),
            Some((first, so_far)) => (first, agree(found.format, (first, &so_far), (name, &schema))?),
        });
    }
    let (_, schema) = agreed.ok_or_else(|| QueryError::failed("there are no files"))?;
    // A column without a single value so far may hold anything, and anything is text.
    let fields = schema.fields().iter().map(|field| match field.data_type() {
        DataType::Null => Arc::new(Field::new(field.name(), DataType::Utf8, true)),
        // With narrow indices a dictionary may overflow, depending on what is in a row: its values do not.
        DataType::Dictionary(_, value) => Arc::new(Field::new(field.name(), value.as_ref().clone(), true)),
        _ => Arc::clone(field),
    });
    Ok(Arc::new(Schema::new(fields.collect::<Vec<_>>())))
}

async fn parquet(context: &SessionContext, name: &str, path: &Path) -> Result<Schema, QueryError> {
    if !has_footer(path).map_err(|error| unreadable(name, &error))? {
        return Err(QueryError::asked(
            format!(
                "`{name}` is not a Parquet file that can be read: its end does not say where its description begins"
            ),
            "it may be cut short or be of another kind: write it again, or say how it is written with `format`",
        ));
    }
    let (state, url) = (context.state(), url_of(name, path)?);
    let read = async {
        let store = state.runtime_env().object_store(&url)?;
        let about = store.head(url.prefix()).await?;
        options(Format::Parquet).format.infer_schema(&state, &store, &[about]).await
    };
    let schema = read.await.map_err(|error| {
        // Of a Parquet file only the footer was read, which has no rows; its complaint may be told.
        let told = error.strip_backtrace();
        let told = told.lines().next().unwrap_or("").trim_end_matches('.').to_owned();
        QueryError::asked(
            format!("`{name}` is not a Parquet file that can be read: {told}"),
            "it may be cut short or be of another kind: write it again, or say how it is written with `format`",
        )
    })?;
    Ok(Schema::new(schema.fields().clone()))
}

/// Whether a file ends as a Parquet file does: the length of its description, which fits into it, and a mark.
fn has_footer(path: &Path) -> std::io::Result<bool> {
    let mut file = File::open(path)?;
    let length = file.metadata()?.len();
    if length < 12 {
        return Ok(false);
    }
    let mut end = [0; 8];
    file.seek(SeekFrom::End(-8))?;
    file.read_exact(&mut end)?;
    let described = u64::from(u32::from_le_bytes([end[0], end[1], end[2], end[3]]));
    Ok(end[4..] == *b"PAR1" && described <= length - 12)
}

fn csv(name: &str, path: &Path, rows: usize) -> Result<Schema, QueryError> {
    let file = File::open(path).map_err(|error| unreadable(name, &error))?;
    let (schema, _) =
        CsvReader::default().with_header(true).infer_schema(BufReader::new(file), Some(rows)).map_err(|error| {
            let line = line_of(&error).map(|line| format!(", near line {line}")).unwrap_or_default();
            QueryError::asked(
                format!("`{name}` cannot be read as CSV{line}: a line has more or fewer values than the heading, or is not UTF-8"),
                "a CSV file has one line of names, commas between values, and quotes around values with commas",
            )
        })?;
    if schema.fields().is_empty() {
        return Err(QueryError::asked(
            format!("`{name}` is empty, so it has no columns"),
            "a CSV file begins with a line of names, also where it has no rows",
        ));
    }
    Ok(schema)
}

fn ndjson(name: &str, path: &Path, rows: usize) -> Result<Schema, QueryError> {
    let file = File::open(path).map_err(|error| unreadable(name, &error))?;
    // The parser's own words would quote the line, which is a row.
    let (schema, _) = infer_json_schema(BufReader::new(file), Some(rows)).map_err(|_| {
        QueryError::asked(
            format!(
                "`{name}` cannot be read as NDJSON: one of its first {rows} lines is not a JSON object like the others"
            ),
            "an NDJSON file has one JSON object a line, and no list around them",
        )
    })?;
    Ok(schema)
}

/// The number of a line, where a complaint has one; the rest of the complaint may quote the line, which is a row.
fn line_of(error: &ArrowError) -> Option<u64> {
    let text = error.to_string();
    let (_, after) = text.split_once("line ")?;
    after.chars().take_while(char::is_ascii_digit).collect::<String>().parse().ok()
}

fn check_names(name: &str, schema: &Schema) -> Result<(), QueryError> {
    let mut seen = BTreeSet::new();
    match schema.fields().iter().find(|field| !seen.insert(field.name())) {
        None => Ok(()),
        Some(twice) => Err(QueryError::asked(
            format!("`{name}` has two columns called `{}`", twice.name()),
            "rename one, so that a question can say which it means",
        )),
    }
}

/// What two files agree on; the first says what the columns are.
fn agree(
    format: Format,
    (first, agreed): (&str, &Schema),
    (name, schema): (&str, &Schema),
) -> Result<Schema, QueryError> {
    let hint = "write all files of a data set alike, or make two data sets of them";
    let lacks = |who: &str, column: &str, other: &str| {
        QueryError::asked(format!("`{who}` has no column `{column}`, which `{other}` has"), hint)
    };
    let mut fields = Vec::new();
    for field in agreed.fields() {
        let Some((_, other)) = schema.column_with_name(field.name()) else {
            // An object need not say what it has not.
            if format == Format::Ndjson {
                fields.push(Arc::new(field.as_ref().clone().with_nullable(true)));
                continue;
            }
            return Err(lacks(name, field.name(), first));
        };
        let Some(both) = common(format, field.data_type(), other.data_type()) else {
            return Err(QueryError::asked(
                format!(
                    "column `{}` is {} in `{first}` and {} in `{name}`",
                    field.name(),
                    in_words(field.data_type()),
                    in_words(other.data_type())
                ),
                hint,
            ));
        };
        fields.push(Arc::new(Field::new(field.name(), both, field.is_nullable() || other.is_nullable())));
    }
    for (at, other) in schema.fields().iter().enumerate() {
        match agreed.column_with_name(other.name()) {
            // Values of CSV files have their place, and no name.
            Some((place, _)) if format == Format::Csv && place != at => {
                return Err(QueryError::asked(
                    format!(
                        "column `{}` stands in place {} in `{first}` and in place {} in `{name}`",
                        other.name(),
                        place + 1,
                        at + 1
                    ),
                    "write the columns of all CSV files in one order",
                ));
            }
            Some(_) => {}
            None if format == Format::Ndjson => fields.push(Arc::clone(other)),
            None => return Err(lacks(first, other.name(), name)),
        }
    }
    Ok(Schema::new(fields))
}

/// The type that holds the values of both, where types were told from values; else they must be the same.
fn common(format: Format, one: &DataType, other: &DataType) -> Option<DataType> {
    use DataType::{Float64, Int64, Null, Utf8};
    match (one, other) {
        (one, other) if one == other => Some(one.clone()),
        (Null, known) | (known, Null) if format != Format::Parquet => Some(known.clone()),
        (Int64, Float64) | (Float64, Int64) if format != Format::Parquet => Some(Float64),
        // Codes that look like numbers in one file and not in the other are text.
        (Utf8, Int64) | (Int64, Utf8) if format == Format::Csv => Some(Utf8),
        _ => None,
    }
}

/// What people call a type.
pub(crate) fn in_words(data_type: &DataType) -> String {
    match data_type {
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => "text".to_owned(),
        DataType::Boolean => "true or false".to_owned(),
        DataType::Date32 | DataType::Date64 => "a date".to_owned(),
        DataType::Timestamp(
            TimeUnit::Second | TimeUnit::Millisecond | TimeUnit::Microsecond | TimeUnit::Nanosecond,
            _,
        ) => "a time".to_owned(),
        DataType::Dictionary(_, values) => in_words(values),
        DataType::List(_) | DataType::LargeList(_) | DataType::FixedSizeList(_, _) => "a list".to_owned(),
        DataType::Struct(_) => "a structure".to_owned(),
        DataType::Null => "always missing".to_owned(),
        other if other.is_integer() => format!("a whole number ({other})"),
        other if other.is_numeric() => format!("a number ({other})"),
        other => format!("of type {other}"),
    }
}
