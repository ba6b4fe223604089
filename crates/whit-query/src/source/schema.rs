//! The columns of a data set: as they are declared, or as its files say, and then whether all of them agree.

use super::files::{self, Found, Logged, unreadable};
use super::items::ItemTable;
use super::line;
use super::parquet::bytes::{ParquetFile, Patient};
use super::parquet::{Fitting, nested};
use super::text::cell::{arrow_of, one};
use super::text::writing::Writing;
use super::text::{self, GivenFile, TextTable};
use super::url_of;
use crate::error::QueryError;
use crate::translate::in_words;
use datafusion::arrow::array::new_null_array;
use datafusion::arrow::compute::cast;
use datafusion::arrow::csv::reader::Format as CsvReader;
use datafusion::arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use datafusion::arrow::error::ArrowError;
use datafusion::arrow::json::reader::infer_json_schema;
use datafusion::catalog::TableProvider;
use datafusion::datasource::file_format::FileFormat;
use datafusion::datasource::file_format::csv::CsvFormat;
use datafusion::datasource::file_format::json::JsonFormat;
use datafusion::datasource::file_format::parquet::ParquetFormat;
use datafusion::datasource::listing::{ListingOptions, ListingTable, ListingTableConfig};
use datafusion::object_store::ObjectStoreExt;
use datafusion::prelude::SessionContext;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{BufReader, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use whit_core::declare::{ColumnDeclaration, ColumnType, Dataset, Encoding, Format, nearest};

/// The types of a public CSV or NDJSON file's columns are taken from so many rows of the first file,
pub(super) const ROWS_OF_FIRST: usize = 100_000;
/// and from so many rows of each other one.
pub(super) const ROWS_OF_OTHERS: usize = 1_000;

/// How the engine reads files whose types are their own, or public.
fn options(format: Format) -> ListingOptions {
    let format: Arc<dyn FileFormat> = match format {
        Format::Parquet | Format::Delta => Arc::new(ParquetFormat::default()),
        Format::Csv => Arc::new(CsvFormat::default().with_has_header(true).with_newlines_in_values(true)),
        Format::Ndjson => Arc::new(JsonFormat::default()),
    };
    // The files are named one by one, so no extension need be asked for.
    ListingOptions::new(format).with_file_extension("")
}

/// What is declared of columns.
type Columns = BTreeMap<String, ColumnDeclaration>;

fn kind_in<'a>(columns: &'a Columns, name: &str) -> Option<&'a ColumnType> {
    columns.get(name).and_then(|column| column.kind.as_ref())
}

/// A data set as a table.
pub(super) struct Opened {
    pub(super) schema: SchemaRef,
    /// The columns as the files have them.
    pub(super) stored: SchemaRef,
    pub(super) provider: Arc<dyn TableProvider>,
    /// The lines, where it is a table of lines.
    pub(super) text: Option<TextTable>,
    /// Columns of private CSV files that have no declared type, so that nobody can ask for them.
    pub(super) untyped: Vec<String>,
    /// What each file adds to a fingerprint besides its content.
    pub(super) marks: Vec<String>,
}

/// A data set as a table, with its lists opened where that is declared.
pub(super) async fn opened(context: &SessionContext, dataset: &Dataset, found: &Found) -> Result<Opened, QueryError> {
    let Some(column) = &dataset.open else { return open(context, dataset, found).await };
    if found.format == Format::Csv {
        let sentence = format!("`open` of `{}` names `{column}`, but a value of a CSV file is no list", dataset.name);
        return Err(QueryError::asked(sentence, "write the files as NDJSON or Parquet, or leave `open` out"));
    }
    let mut lists = dataset.clone();
    if let Some(kind) = lists.columns.get_mut(column).and_then(|own| own.kind.as_mut()) {
        *kind = ColumnType::List(Box::new(kind.clone()));
    }
    let rows = open(context, &lists, found).await?;
    let items = ItemTable::new(Arc::clone(&rows.provider), &dataset.name, column)?;
    Ok(Opened { schema: items.schema(), provider: Arc::new(items), ..rows })
}

/// Finds the columns of a data set, and makes a table of its files.
///
/// Of private CSV and NDJSON files no row is looked at: their columns are those that are declared with a type, and CSV files say by their first
/// line where each stands. Of Parquet files the description at the end is read. Only public files are asked for the types of their values.
async fn open(context: &SessionContext, dataset: &Dataset, found: &Found) -> Result<Opened, QueryError> {
    let layout = &dataset.layout;
    laid_out(dataset, found.format)?;
    if found.format.is_parquet() {
        return of_parquet(context, dataset, found).await;
    }
    let folders = |name: &str| files::folders_of(name, &dataset.partitioned_by);
    let quotes = dataset.newlines_in_values || dataset.public;
    let given = |(name, path): (&String, &PathBuf)| GivenFile {
        path: path.clone(),
        writing: Writing::of(layout, found.format, quotes, name),
        folders: folders(name),
    };
    let given: Vec<GivenFile> = found.files.iter().map(given).collect();
    let mark = |file: &GivenFile| file.writing.fingerprint().unwrap_or_default() + &folder_mark(&file.folders);
    let marks = given.iter().map(mark).collect();
    let typed = dataset.columns.values().any(|column| column.kind.is_some());
    let plain = dataset.partitioned_by.is_empty() && given.iter().all(|file| file.writing.is_plain());
    if dataset.public && !typed && plain {
        let schema = read(context, found, &dataset.columns).await?;
        let provider = listing(context, &dataset.name, found, Arc::clone(&schema))?;
        return Ok(Opened { stored: Arc::clone(&schema), schema, provider, text: None, untyped: Vec::new(), marks });
    }
    let (mut columns, untyped) = if !dataset.public {
        declared(dataset, found, &given)?
    } else if plain {
        let inferred = read(context, found, &dataset.columns).await?;
        let kind = |field: &Field| declared_as(field.data_type()).unwrap_or(ColumnType::Text);
        let fields = inferred.fields().iter();
        let own = |field: &Arc<Field>| dataset.column_type(field.name()).cloned().unwrap_or_else(|| kind(field));
        (fields.map(|field| (field.name().clone(), own(field))).collect(), Vec::new())
    } else {
        (asked(dataset, found, &given)?, Vec::new())
    };
    columns.retain(|(name, _)| !dataset.partitioned_by.contains(name));
    columns.extend(by_folder(dataset));
    let text =
        TextTable::new(found.format, columns, given).map_err(|error| unreadable(&dataset.source.join(", "), &error))?;
    let (schema, stored, provider) = (text.schema(), text.schema(), Arc::new(text.clone()));
    Ok(Opened { schema, stored, provider, text: Some(text), untyped, marks })
}

/// Parquet files as a table, by themselves, in folders that are named after values, or behind a log.
async fn of_parquet(context: &SessionContext, dataset: &Dataset, found: &Found) -> Result<Opened, QueryError> {
    let by_file = |name: &String| match &found.logged {
        Some(logged) => logged.values.get(name).cloned().unwrap_or_default(),
        None => files::folders_of(name, &dataset.partitioned_by),
    };
    let mark = found.logged.as_ref().map_or("", |logged| &logged.mark);
    let marks = found.files.keys().map(|name| mark.to_owned() + &folder_mark(&by_file(name))).collect();
    let (schema, alike) = match &found.logged {
        Some(logged) => (behind_log(dataset, logged, found)?, logged.partitions.is_empty()),
        None if dataset.partitioned_by.is_empty() => (read(context, found, &dataset.columns).await?, true),
        None => (partitioned(context, dataset, found).await?, false),
    };
    let listed = alike && !found.files.is_empty();
    let engine = listed.then(|| listing(context, &dataset.name, found, Arc::clone(&schema))).transpose()?;
    // A value that is not of its column's type is NULL, also in the name of a folder.
    let value = |(name, text): (String, Option<String>)| {
        let wanted = schema.field_with_name(&name).ok()?.data_type();
        let kind = dataset.column_type(&name).cloned().or_else(|| declared_as(wanted))?;
        let one = one(text.unwrap_or_default().as_bytes(), &kind);
        Some((name, cast(&one, wanted).unwrap_or_else(|_| new_null_array(wanted, 1))))
    };
    let file = |(name, path): (&String, &PathBuf)| {
        let folders = by_file(name).into_iter().filter_map(value).collect();
        ParquetFile { path: path.clone(), folders }
    };
    let files = found.files.iter().map(file).collect();
    let provider = Arc::new(Patient { engine, schema: Arc::clone(&schema), files });
    Ok(Opened { stored: Arc::clone(&schema), schema, provider, text: None, untyped: Vec::new(), marks })
}

/// The columns of a table with a log: what that says, or else what is declared. Which files there are is private, so that none of them is asked.
fn behind_log(dataset: &Dataset, logged: &Logged, found: &Found) -> Result<SchemaRef, QueryError> {
    if !dataset.partitioned_by.is_empty() {
        let sentence =
            format!("`partitioned_by` of `{}` has no meaning: the log of a Delta table says it", dataset.name);
        return Err(QueryError::asked(sentence, "leave it out; `columns` may still say what each of them is"));
    }
    if !found.files.values().all(|path| has_footer(path).unwrap_or(false)) {
        return Err(QueryError::asked(
            format!("a file that the log of `{}` lists is not a Parquet file that can be read", dataset.name),
            "copy the table as a whole from where it was written",
        ));
    }
    Ok(Arc::new(overridden(&logged.schema, &dataset.columns)))
}

/// What folders say of a file, for its fingerprint.
fn folder_mark(folders: &BTreeMap<String, Option<String>>) -> String {
    folders.iter().fold(String::new(), |mark, (column, value)| format!("{mark}folder {column:?} {value:?}\n"))
}

/// Nothing is declared of files that has no meaning for them.
fn laid_out(dataset: &Dataset, format: Format) -> Result<(), QueryError> {
    let idle = match format {
        Format::Csv => None,
        Format::Ndjson => dataset.layout.of_csv_alone(),
        Format::Parquet | Format::Delta => dataset.layout.of_lines_alone(),
    };
    idle.map_or(Ok(()), |key| {
        let sentence = format!("`{key}` of `{}` has no meaning: its files are {format}", dataset.name);
        Err(QueryError::asked(sentence, "leave it out, or say how the files are written with `format`"))
    })
}

/// The columns that folders are named after.
fn by_folder(dataset: &Dataset) -> impl Iterator<Item = (String, ColumnType)> {
    dataset.partitioned_by.iter().filter_map(|name| Some((name.clone(), dataset.column_type(name)?.clone())))
}

/// The columns of Parquet files in folders that are named after values. Which of them are there is private, and so must be what they hold: of a private table the
/// declaration alone says which columns there are.
async fn partitioned(context: &SessionContext, dataset: &Dataset, found: &Found) -> Result<SchemaRef, QueryError> {
    for (name, path) in &found.files {
        footer(name, path)?;
    }
    let known = if dataset.public {
        read(context, found, &dataset.columns).await?.fields().to_vec()
    } else {
        let typed = dataset.columns.iter().filter_map(|(name, column)| Some((name, column.kind.as_ref()?)));
        typed.map(|(name, kind)| field_of(name, kind)).collect()
    };
    let own = |field: &Arc<Field>| !dataset.partitioned_by.contains(field.name());
    let folders = by_folder(dataset).map(|(name, kind)| field_of(&name, &kind));
    Ok(Arc::new(Schema::new(known.into_iter().filter(own).chain(folders).collect::<Vec<_>>())))
}

/// The columns of public files that the engine has no reader for, with types that all values have which are looked at.
fn asked(dataset: &Dataset, found: &Found, given: &[GivenFile]) -> Result<Typed, QueryError> {
    let files = found.files.iter().zip(given).map(|((name, path), file)| (name, path, file.writing.clone()));
    let suggested = text::guess::suggest(&files.collect::<Vec<_>>())?;
    let kind = |one: text::guess::Suggested| {
        let kind = if one.wrong == 0 { one.kind } else { ColumnType::Text };
        (one.name.clone(), dataset.column_type(&one.name).cloned().unwrap_or(kind))
    };
    Ok(suggested.into_iter().map(kind).collect())
}

/// Columns with their types, in order.
type Typed = Vec<(String, ColumnType)>;

/// The declared columns of private files of lines, and the names in their headings that have no type.
fn declared(dataset: &Dataset, found: &Found, given: &[GivenFile]) -> Result<(Typed, Vec<String>), QueryError> {
    let folder = |name: &str| dataset.partitioned_by.iter().any(|own| own == name);
    let typed = |name: &str| dataset.column_type(name).filter(|_| !folder(name)).cloned();
    let (mut names, mut hidden): (Vec<String>, bool) = (Vec::new(), false);
    // Where folders are named after values, which files there are is private, and so is what they call their columns.
    if found.format == Format::Csv && dataset.partitioned_by.is_empty() {
        for ((file, path), own) in found.files.iter().zip(given) {
            let heading = own.writing.heading(path).map_err(|error| unreadable(file, &error))?;
            hidden |= heading.hidden;
            if let Some(encoding) = heading.foreign {
                return Err(text::writing::packed_by(path).map_or_else(
                    || foreign(file, encoding),
                    |packed| {
                        let hint =
                            format!("declare compression = \"{packed}\", or let its name end so that it says it");
                        QueryError::asked(
                            format!(
                                "`{file}` is packed, by {packed}, and neither its name nor the declaration says so"
                            ),
                            hint,
                        )
                    },
                ));
            }
            let heading = heading.names;
            let twice =
                heading.iter().enumerate().find(|(at, name)| typed(name).is_some() && heading[..*at].contains(name));
            if let Some((_, twice)) = twice {
                return Err(two_of(file, twice));
            }
            let more: Vec<String> = heading.into_iter().filter(|name| !names.contains(name)).collect();
            names.extend(more);
        }
    }
    let known = dataset.columns.keys().filter_map(|name| typed(name).map(|kind| (name.clone(), kind)));
    let known: Vec<(String, ColumnType)> = known.collect();
    if found.format == Format::Csv
        && let Some((name, kind)) = known.iter().find(|(_, kind)| matches!(kind, ColumnType::List(_)))
    {
        return Err(QueryError::asked(
            format!("`{}.{name}` is declared as {kind}, but a value of a CSV file is no list", dataset.name),
            "write the files as NDJSON or Parquet, or each item into a column of its own",
        ));
    }
    if names.is_empty() {
        // Nothing but the declaration says which columns there are.
        return Ok((known, Vec::new()));
    }
    if let Some((missing, _)) = known.iter().find(|(name, _)| !names.contains(name)) {
        let hint = match nearest(missing, names.iter().map(String::as_str)) {
            Some(near) if !hidden => format!("did you mean `{near}`?"),
            _ if hidden => "the first line of one of its files has no end of its own: write line ends as \\n, and say in which encoding it is".to_owned(),
            _ if names.len() > 20 => format!("its columns are: {}, and {} more", names[..20].join(", "), names.len() - 20),
            _ => format!("its columns are: {}", names.join(", ")),
        };
        let sentence =
            format!("`{}` has no column `{missing}`, which `columns.{}` names", dataset.name, line::key(missing));
        return Err(QueryError::asked(sentence, hint));
    }
    let columns = names.iter().filter_map(|name| typed(name).map(|kind| (name.clone(), kind))).collect();
    let untyped = names.into_iter().filter(|name| !hidden && typed(name).is_none() && !name.is_empty()).collect();
    Ok((columns, untyped))
}

/// A heading whose letters are not UTF-8. It is public, so that anybody may know.
fn foreign(file: &str, encoding: Encoding) -> QueryError {
    let (what, hint) = match encoding {
        Encoding::Utf16 => ("UTF-16", "declare encoding = \"utf-16\", or write the file as UTF-8"),
        Encoding::Windows1252 => ("Windows-1252", "declare encoding = \"windows-1252\", or write the file as UTF-8"),
        Encoding::Latin1 | Encoding::Utf8 => {
            let hint =
                "declare encoding = \"latin1\" (\"windows-1252\" if it comes from Windows), or write the file as UTF-8";
            ("Latin-1 or Windows-1252", hint)
        }
    };
    QueryError::asked(format!("the heading of `{file}` is not UTF-8, and seems to be {what}"), hint)
}

/// The declared type that comes to the same as one that was found.
pub(super) fn declared_as(kind: &DataType) -> Option<ColumnType> {
    match kind {
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View | DataType::Null => Some(ColumnType::Text),
        DataType::Boolean => Some(ColumnType::Bool),
        DataType::Float16 | DataType::Float32 | DataType::Float64 => Some(ColumnType::Float),
        DataType::Date32 | DataType::Date64 => Some(ColumnType::Date),
        DataType::Timestamp(_, _) => Some(ColumnType::Timestamp),
        DataType::Decimal128(precision, scale) => {
            Some(ColumnType::Decimal { precision: *precision, scale: u8::try_from(*scale).ok()? })
        }
        DataType::List(item) => declared_as(item.data_type()).map(|item| ColumnType::List(Box::new(item))),
        DataType::Dictionary(_, value) => declared_as(value),
        other if other.is_integer() => Some(ColumnType::Int),
        _ => None,
    }
}

/// Files that the engine lists and reads by itself.
fn listing(
    context: &SessionContext,
    name: &str,
    found: &Found,
    schema: SchemaRef,
) -> Result<Arc<dyn TableProvider>, QueryError> {
    let urls = found.files.iter().map(|(name, path)| url_of(name, path)).collect::<Result<Vec<_>, _>>()?;
    let mut config =
        ListingTableConfig::new_with_multi_paths(urls).with_listing_options(options(found.format)).with_schema(schema);
    if found.format.is_parquet() {
        config = config.with_expr_adapter_factory(Arc::new(Fitting));
    }
    let cache = context.runtime_env().cache_manager.get_file_statistic_cache();
    let failed = |error: datafusion::error::DataFusionError| {
        QueryError::failed(format!("`{name}` could not be made a table: {}", error.strip_backtrace()))
    };
    Ok(Arc::new(ListingTable::try_new(config).map_err(failed)?.with_cache(cache)))
}

/// The columns of Parquet files of which nothing is declared yet.
pub(super) async fn parquets(context: &SessionContext, found: &Found) -> Result<SchemaRef, QueryError> {
    read(context, found, &BTreeMap::new()).await
}

/// The columns of files that say of themselves what they are, or may be asked.
async fn read(context: &SessionContext, found: &Found, columns: &Columns) -> Result<SchemaRef, QueryError> {
    let mut agreed: Option<(&str, Schema)> = None;
    for (name, path) in &found.files {
        let rows = if agreed.is_none() { ROWS_OF_FIRST } else { ROWS_OF_OTHERS };
        let schema = match found.format {
            Format::Parquet | Format::Delta => parquet(context, name, path).await?,
            Format::Csv => csv(name, path, rows)?,
            Format::Ndjson => ndjson(name, path, rows)?,
        };
        check_names(name, &schema)?;
        let schema = if found.format.is_parquet() { overridden(&schema, columns) } else { schema };
        agreed = Some(match agreed {
            None => (name, schema),
            Some((first, so_far)) => (first, agree(found.format, columns, (first, &so_far), (name, &schema))?),
        });
    }
    let (_, schema) = agreed.ok_or_else(|| QueryError::failed("there are no files"))?;
    // A column without a single value so far may hold anything, and anything is text. That nothing is missing may follow from rows.
    let fields = schema.fields().iter().map(|field| match field.data_type() {
        DataType::Null => Arc::new(Field::new(field.name(), DataType::Utf8, true)),
        // With narrow indices a dictionary may overflow, depending on what is in a row: its values do not.
        DataType::Dictionary(_, value) => Arc::new(Field::new(field.name(), value.as_ref().clone(), true)),
        _ => Arc::new(field.as_ref().clone().with_nullable(true)),
    });
    Ok(Arc::new(Schema::new(fields.collect::<Vec<_>>())))
}

/// A file's columns with declared types in place of its own.
fn overridden(schema: &Schema, columns: &Columns) -> Schema {
    let field = |field: &Arc<Field>| {
        kind_in(columns, field.name()).map_or(Arc::clone(field), |kind| field_of(field.name(), kind))
    };
    // Fields of structs are columns where they are declared as such: `address.city`.
    let inside = columns.iter().filter_map(|(name, column)| {
        let kind = column.kind.as_ref().filter(|_| schema.index_of(name).is_err())?;
        nested::find(schema, name).map(|_| field_of(name, kind))
    });
    Schema::new(schema.fields().iter().map(field).chain(inside).collect::<Vec<_>>())
}

/// A column of a declared type, as it is read from Parquet.
fn field_of(name: &str, kind: &ColumnType) -> Arc<Field> {
    // The engine reads text from Parquet as views, which copy nothing.
    let kind = if *kind == ColumnType::Text { DataType::Utf8View } else { arrow_of(kind) };
    Arc::new(Field::new(name, kind, true))
}

/// A file that does not end as Parquet files do is none.
fn footer(name: &str, path: &Path) -> Result<(), QueryError> {
    if has_footer(path).map_err(|error| unreadable(name, &error))? {
        return Ok(());
    }
    let name = files::shown(name);
    Err(QueryError::asked(
        format!("`{name}` is not a Parquet file that can be read: its end does not say where its description begins"),
        "it may be cut short or be of another kind: write it again, or say how it is written with `format`",
    ))
}

async fn parquet(context: &SessionContext, name: &str, path: &Path) -> Result<Schema, QueryError> {
    footer(name, path)?;
    let (state, url) = (context.state(), url_of(name, path)?);
    let read = async {
        let store = state.runtime_env().object_store(&url)?;
        let about = store.head(url.prefix()).await?;
        options(Format::Parquet).format.infer_schema(&state, &store, &[about]).await
    };
    let schema = read.await.map_err(|error| {
        // Of a Parquet file only the footer was read, which has no rows; its complaint may be shown.
        let message = error.strip_backtrace();
        let message = message.lines().next().unwrap_or("").trim_end_matches('.').to_owned();
        QueryError::asked(
            format!("`{name}` is not a Parquet file that can be read: {message}"),
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
        Some(twice) => Err(two_of(name, twice.name())),
    }
}

fn two_of(file: &str, column: &str) -> QueryError {
    QueryError::asked(
        format!("`{file}` has two columns called `{column}`"),
        "rename one, so that a question can say which it means",
    )
}

/// What two files agree on; the first says what the columns are.
fn agree(
    format: Format,
    columns: &Columns,
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
            // An object need not say what it has not; what is declared is NULL where a file has it not.
            if format == Format::Ndjson || kind_in(columns, field.name()).is_some() {
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
            None if format == Format::Ndjson || kind_in(columns, other.name()).is_some() => {
                fields.push(Arc::clone(other));
            }
            None => return Err(lacks(first, other.name(), name)),
        }
    }
    Ok(Schema::new(fields))
}

/// The type that holds the values of both, where types were taken from values; else they must be the same.
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
