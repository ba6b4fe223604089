//! The log of a Delta table: which of its files make a version, and what they say.

use super::super::files::plain;
use datafusion::arrow::array::{Array, AsArray, RecordBatch, StructArray};
use datafusion::arrow::datatypes::Int32Type;
use datafusion::parquet::arrow::ProjectionMask;
use datafusion::parquet::arrow::arrow_reader::{ArrowReaderOptions, ParquetRecordBatchReaderBuilder};
use serde::Deserialize;
use serde::de::IgnoredAny;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::path::{Component, Path};

/// The names of those files of a log that make one version.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct LogParts {
    /// One checkpoint, in one or several files; none where the log is read from its beginning.
    pub(super) checkpoint: Vec<String>,
    /// The commits behind it, in order.
    pub(super) commits: Vec<String>,
}

/// Why there is no such version.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum NoVersion {
    /// There is no commit at all.
    Empty,
    /// The log does not go so far, or not so far back.
    NoSuchVersion(u64),
    /// A commit or a part of a checkpoint that has to be there is not.
    Missing(String),
}

impl LogParts {
    /// What to read for a version, or for the newest. The newest checkpoint that is whole is as good as any other: `_last_checkpoint` only saves who cannot list a
    /// folder from looking for it.
    pub(super) fn of(names: impl Iterator<Item = String>, version: Option<u64>) -> Result<Self, NoVersion> {
        let (mut commits, mut checkpoints) = (BTreeSet::new(), BTreeMap::<(u64, u64), BTreeSet<(u64, String)>>::new());
        for name in names {
            if let Some(number) = name.strip_suffix(".json").and_then(number) {
                commits.insert(number);
            } else if let Some((number, part, of)) = checkpoint(&name) {
                checkpoints.entry((number, of)).or_default().insert((part, name));
            }
        }
        let whole = |of: u64, parts: &BTreeSet<(u64, String)>| parts.iter().map(|(part, _)| *part).eq(1..=of);
        let last = commits.last().copied().max(checkpoints.keys().last().map(|(number, _)| *number));
        let last = last.ok_or(NoVersion::Empty)?;
        let wanted = version.unwrap_or(last);
        if wanted > last {
            return Err(NoVersion::NoSuchVersion(wanted));
        }
        let mut before = checkpoints.iter().filter(|((number, of), parts)| *number <= wanted && whole(*of, parts));
        let (start, checkpoint) = before.next_back().map_or((0, Vec::new()), |((number, _), parts)| {
            (number + 1, parts.iter().map(|(_, name)| name.clone()).collect())
        });
        if let Some(missing) = (start..=wanted).find(|number| !commits.contains(number)) {
            // What a clean-up took away is gone on purpose; a hole is not.
            let cleaned = checkpoint.is_empty() && commits.first().is_none_or(|first| missing < *first);
            return Err(match version {
                Some(version) if cleaned => NoVersion::NoSuchVersion(version),
                _ => NoVersion::Missing(commit_name(missing)),
            });
        }
        Ok(Self { checkpoint, commits: (start..=wanted).map(commit_name).collect() })
    }
}

fn commit_name(number: u64) -> String {
    format!("{number:020}.json")
}

/// The number of a version, written in twenty digits.
fn number(text: &str) -> Option<u64> {
    (text.len() == 20 && text.bytes().all(|digit| digit.is_ascii_digit())).then(|| text.parse().ok()).flatten()
}

/// The version of a checkpoint, which part of it this is, and how many there are. Those with other names need a feature that is not understood.
fn checkpoint(name: &str) -> Option<(u64, u64, u64)> {
    let (version, rest) = name.strip_suffix(".parquet")?.split_once(".checkpoint")?;
    let version = number(version)?;
    if rest.is_empty() {
        return Some((version, 1, 1));
    }
    let (part, of) = rest.strip_prefix('.')?.split_once('.')?;
    let ten = |text: &str| (text.len() == 10).then(|| text.parse::<u64>().ok()).flatten();
    Some((version, ten(part)?, ten(of)?))
}

/// What is wrong with a file of the log.
#[derive(Debug)]
pub(super) enum LogFault {
    /// It cannot be opened or read.
    Unreadable(io::Error),
    /// Something in it is no action of the protocol.
    NoAction,
    /// It lists a file that is not in the table's folder.
    Outside,
    /// It ends before it has said what the table is.
    Short,
}

/// What a reader has to understand.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ReaderProtocol {
    pub(super) min_reader: i32,
    pub(super) features: Vec<String>,
}

/// What a table is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct TableMetadata {
    pub(super) schema: String,
    pub(super) partitions: Vec<String>,
    /// How its files are written.
    pub(super) provider: String,
    /// Whether columns are called otherwise in files: `none`, `name` or `id`.
    pub(super) mapping: String,
}

/// What partitions a file is of.
type PartitionValues = BTreeMap<String, Option<String>>;

/// A table as far as its log was read.
#[derive(Debug, Default)]
pub(super) struct TableState {
    pub(super) protocol: Option<ReaderProtocol>,
    pub(super) metadata: Option<TableMetadata>,
    /// The files that are the table's, by their paths in its folder.
    pub(super) live: BTreeMap<String, PartitionValues>,
    /// Those of them of which rows are struck out. Whether there may be such is for the protocol to say, once all of it is known: actions of a commit have no order.
    pub(super) struck: BTreeSet<String>,
}

/// One line of a commit. What else there may be says nothing about which rows there are.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct LogAction {
    add: Option<Add>,
    remove: Option<Remove>,
    meta_data: Option<MetaData>,
    protocol: Option<ProtocolAction>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Add {
    path: String,
    partition_values: Option<PartitionValues>,
    deletion_vector: Option<IgnoredAny>,
}

#[derive(Deserialize)]
struct Remove {
    path: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct MetaData {
    schema_string: String,
    partition_columns: Option<Vec<String>>,
    configuration: Option<BTreeMap<String, Option<String>>>,
    format: Option<Provider>,
}

#[derive(Deserialize)]
struct Provider {
    provider: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ProtocolAction {
    min_reader_version: i32,
    reader_features: Option<Vec<String>>,
}

const PROVIDER: &str = "parquet";
const MAPPING: &str = "delta.columnMapping.mode";

impl TableState {
    /// Does what a commit says.
    pub(super) fn commit(&mut self, path: &Path) -> Result<(), LogFault> {
        let file = File::open(path).map_err(LogFault::Unreadable)?;
        for line in BufReader::new(file).lines() {
            let line = line.map_err(|error| match error.kind() {
                io::ErrorKind::InvalidData => LogFault::NoAction,
                _ => LogFault::Unreadable(error),
            })?;
            if line.trim().is_empty() {
                continue;
            }
            // The parser's own words would quote the line.
            let action: LogAction = serde_json::from_str(&line).map_err(|_| LogFault::NoAction)?;
            self.act(action)?;
        }
        Ok(())
    }

    fn act(&mut self, action: LogAction) -> Result<(), LogFault> {
        if let Some(own) = action.protocol {
            let features = own.reader_features.unwrap_or_default();
            self.protocol = Some(ReaderProtocol { min_reader: own.min_reader_version, features });
        }
        if let Some(own) = action.meta_data {
            let configuration = own.configuration.unwrap_or_default();
            self.metadata = Some(TableMetadata {
                schema: own.schema_string,
                partitions: own.partition_columns.unwrap_or_default(),
                provider: own.format.and_then(|format| format.provider).unwrap_or_else(|| PROVIDER.to_owned()),
                mapping: configuration.get(MAPPING).cloned().flatten().unwrap_or_else(|| "none".to_owned()),
            });
        }
        if let Some(own) = action.remove {
            let path = plain(&own.path).ok_or(LogFault::NoAction)?;
            self.struck.remove(&path);
            self.live.remove(&path);
        }
        if let Some(own) = action.add {
            self.add(&own.path, own.partition_values.unwrap_or_default(), own.deletion_vector.is_some())?;
        }
        Ok(())
    }

    fn add(&mut self, path: &str, values: PartitionValues, rows_are_struck: bool) -> Result<(), LogFault> {
        let path = plain(path).ok_or(LogFault::NoAction)?;
        if !is_inside(&path) {
            return Err(LogFault::Outside);
        }
        if rows_are_struck {
            self.struck.insert(path.clone());
        } else {
            self.struck.remove(&path);
        }
        self.live.insert(path, values);
        Ok(())
    }

    /// Takes what one file of a checkpoint says.
    pub(super) fn checkpoint(&mut self, path: &Path) -> Result<(), LogFault> {
        let file = File::open(path).map_err(LogFault::Unreadable)?;
        // Without the writer's own notes on types text is text, whoever wrote it.
        let options = ArrowReaderOptions::new().with_skip_arrow_metadata(true);
        let builder =
            ParquetRecordBatchReaderBuilder::try_new_with_options(file, options).map_err(|_| LogFault::NoAction)?;
        let schema = builder.parquet_schema();
        let leaf = |at: &usize| {
            let path = schema.column(*at).path().string();
            WANTED.iter().any(|wanted| path.starts_with(wanted))
        };
        let mask = ProjectionMask::leaves(schema, (0..schema.num_columns()).filter(leaf).collect::<Vec<_>>());
        let reader = builder.with_projection(mask).build().map_err(|_| LogFault::NoAction)?;
        for batch in reader {
            let batch = batch.map_err(|_| LogFault::NoAction)?;
            self.rows(&batch).ok_or(LogFault::NoAction)??;
        }
        Ok(())
    }

    /// Nothing where a column is not of the type that the protocol gives it.
    fn rows(&mut self, batch: &RecordBatch) -> Option<Result<(), LogFault>> {
        let column = |name: &str| match batch.column_by_name(name) {
            None => Some(None),
            Some(column) => column.as_struct_opt().map(Some),
        };
        let (adds, metadata, protocols) = (column("add")?, column("metaData")?, column("protocol")?);
        for row in 0..batch.num_rows() {
            let there = |of: Option<&'_ StructArray>| of.is_some_and(|of| of.is_valid(row));
            let mut action = LogAction { add: None, remove: None, meta_data: None, protocol: None };
            if let Some(adds) = adds.filter(|_| there(adds)) {
                let vector = adds.column_by_name("deletionVector").is_some_and(|vector| vector.is_valid(row));
                action.add = Some(Add {
                    path: text(adds, "path", row)?,
                    partition_values: pairs(adds, "partitionValues", row),
                    deletion_vector: vector.then_some(IgnoredAny),
                });
            }
            if let Some(own) = metadata.filter(|_| there(metadata)) {
                let format = own.column_by_name("format").and_then(AsArray::as_struct_opt);
                action.meta_data = Some(MetaData {
                    schema_string: text(own, "schemaString", row)?,
                    partition_columns: texts(own, "partitionColumns", row),
                    configuration: pairs(own, "configuration", row),
                    format: format.map(|format| Provider { provider: text(format, "provider", row) }),
                });
            }
            if let Some(own) = protocols.filter(|_| there(protocols)) {
                let version = own.column_by_name("minReaderVersion")?.as_primitive_opt::<Int32Type>()?;
                action.protocol = Some(ProtocolAction {
                    min_reader_version: version.is_valid(row).then(|| version.value(row))?,
                    reader_features: texts(own, "readerFeatures", row),
                });
            }
            if let Err(broken) = self.act(action) {
                return Some(Err(broken));
            }
        }
        Some(Ok(()))
    }
}

/// Whether a path leads to something below where it starts: it is no address and goes nowhere up.
fn is_inside(path: &str) -> bool {
    let scheme = |text: &str| text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte));
    let address = path.split_once(":/").is_some_and(|(before, _)| scheme(before));
    !address && Path::new(path).components().all(|part| matches!(part, Component::Normal(_)))
}

/// The columns of a checkpoint that say what a table is. What is known of values in files is not among them.
const WANTED: [&str; 8] = [
    "add.path",
    "add.partitionValues.",
    "add.deletionVector.storageType",
    "metaData.schemaString",
    "metaData.partitionColumns.",
    "metaData.configuration.",
    "metaData.format.provider",
    "protocol.",
];

fn text(of: &StructArray, name: &str, row: usize) -> Option<String> {
    let texts = of.column_by_name(name)?.as_string_opt::<i32>()?;
    texts.is_valid(row).then(|| texts.value(row).to_owned())
}

fn texts(of: &StructArray, name: &str, row: usize) -> Option<Vec<String>> {
    let lists = of.column_by_name(name)?.as_list_opt::<i32>()?;
    let list = lists.is_valid(row).then(|| lists.value(row))?;
    Some(list.as_string_opt::<i32>()?.iter().flatten().map(str::to_owned).collect())
}

fn pairs(of: &StructArray, name: &str, row: usize) -> Option<BTreeMap<String, Option<String>>> {
    let maps = of.column_by_name(name)?.as_map_opt()?;
    let entries = maps.is_valid(row).then(|| maps.value(row))?;
    let (keys, values) = (entries.column(0).as_string_opt::<i32>()?, entries.column(1).as_string_opt::<i32>()?);
    let pair = |(key, value): (Option<&str>, Option<&str>)| Some((key?.to_owned(), value.map(str::to_owned)));
    keys.iter().zip(values).map(pair).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(names: &[&str], version: Option<u64>) -> Result<(Vec<String>, Vec<u64>), NoVersion> {
        let full = |name: &&str| match name.split_once('.') {
            Some((number, rest)) => format!("{number:0>20}.{rest}"),
            None => (*name).to_owned(),
        };
        LogParts::of(names.iter().map(full), version).map(|parts| {
            let short = |name: &String| name.trim_start_matches('0').to_owned();
            let commits = parts.commits.iter().map(|name| number(&name[..20]).unwrap()).collect();
            (parts.checkpoint.iter().map(short).collect(), commits)
        })
    }

    #[test]
    fn a_version_is_its_newest_whole_checkpoint_and_the_commits_behind() {
        let log = ["0.json", "1.json", "2.json", "3.json", "1.checkpoint.parquet", "0.crc", "_last_checkpoint"];
        assert_eq!(of(&log, None), Ok((vec!["1.checkpoint.parquet".to_owned()], vec![2, 3])));
        assert_eq!(of(&log, Some(1)), Ok((vec!["1.checkpoint.parquet".to_owned()], vec![])));
        assert_eq!(of(&log, Some(0)), Ok((vec![], vec![0])));
        assert_eq!(of(&log, Some(4)), Err(NoVersion::NoSuchVersion(4)));
        let parts = ["2.checkpoint.0000000001.0000000002.parquet", "2.checkpoint.0000000002.0000000002.parquet"];
        let (first, second) = (parts[0].to_owned(), parts[1].to_owned());
        assert_eq!(of(&["3.json", parts[1], parts[0]], None), Ok((vec![first, second], vec![3])));
        // A checkpoint of which a part is missing is none.
        assert_eq!(of(&["0.json", "1.json", "2.json", parts[1]], None), Ok((vec![], vec![0, 1, 2])));
    }

    #[test]
    fn a_hole_in_a_log_is_found_and_named() {
        let missing = |number: u64| Err(NoVersion::Missing(commit_name(number)));
        assert_eq!(of(&["0.json", "2.json"], None), missing(1));
        assert_eq!(of(&["0.json", "2.json"], Some(2)), missing(1));
        assert_eq!(of(&["5.json", "4.checkpoint.parquet", "7.json"], None), missing(6));
        assert_eq!(of(&["8.json", "8.checkpoint.parquet"], Some(3)), Err(NoVersion::NoSuchVersion(3)), "cleaned up");
        assert_eq!(of(&["3.json"], None), missing(0));
        assert_eq!(of(&["1.crc", "x.json", "-1.json"], None), Err(NoVersion::Empty));
    }
}
