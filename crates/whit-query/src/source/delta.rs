//! Delta tables: which files are a table's, what its columns are, and what its partitions are called, all from its log.
//!
//! The log is a folder of numbered commits, one JSON object a line, and of checkpoints, Parquet files that have the whole state at one of them. A version is the
//! newest checkpoint before it and the commits behind that. What whit has to understand in order to read a table stands in its `protocol` and `metaData`,
//! which are properties of the table like the columns of a Parquet file, and as public as these; nothing that is refused follows from a file or a row.
//!
//! Which files are live is private: rows that somebody deletes make others live. So no message names one or says how many there are, none need be there, and
//! their descriptions decide no column and no type. What the log says of values in files (`stats`) is never read.

mod log;
mod types;

use super::files::{Found, LOG, Logged, shown, unreadable};
use crate::error::QueryError;
use log::{LogParts, ReaderProtocol, TableMetadata, TableState};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use whit_core::declare::Format;

/// Features that a reader need not know: the one is a type that types of tables name anyway, the other is about who may take away files.
const HARMLESS: [&str; 2] = ["timestampNtz", "vacuumProtocolCheck"];

/// A Delta table that somebody named: what it is called, where it is, and which version is wanted.
pub(super) struct DeltaTable<'a> {
    pub(super) name: &'a str,
    pub(super) folder: &'a Path,
    pub(super) version: Option<u64>,
}

impl DeltaTable<'_> {
    /// Its files, and what the log says of them.
    pub(super) fn found(&self) -> Result<Found, QueryError> {
        let log = self.folder.join(LOG);
        let entries = std::fs::read_dir(&log).map_err(|error| unreadable(&self.log_file(""), &error))?;
        let names = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
        let parts = LogParts::of(names, self.version).map_err(|gap| self.no_version(&gap))?;
        let mut state = TableState::default();
        for name in &parts.checkpoint {
            state.checkpoint(&log.join(name)).map_err(|error| self.broken(name, &error))?;
        }
        for name in &parts.commits {
            state.commit(&log.join(name)).map_err(|error| self.broken(name, &error))?;
        }
        let TableState { protocol, metadata, live, struck } = state;
        let (Some(protocol), Some(metadata)) = (protocol, metadata) else {
            let first = parts.checkpoint.first().or(parts.commits.first()).map_or("", String::as_str);
            return Err(self.broken(first, &log::LogFault::Short));
        };
        self.understood(&protocol, &metadata)?;
        // A protocol that is understood has no struck rows: a file that has some contradicts it, and read as it is would bring them back.
        if !struck.is_empty() {
            let last = parts.commits.last().or(parts.checkpoint.last()).map_or("", String::as_str);
            return Err(self.broken(last, &log::LogFault::NoAction));
        }
        let columns = types::columns(&metadata.schema, &metadata.partitions).map_err(|why| {
            QueryError::asked(format!("`{}` is a Delta table that cannot be read: {why}", self.shown()), ELSEWHERE)
        })?;
        let (mut files, mut values) = (BTreeMap::new(), BTreeMap::new());
        for (path, own) in live {
            let name = format!("{}/{path}", self.name.trim_end_matches('/'));
            files.insert(name.clone(), self.file(&path)?);
            values.insert(
                name,
                metadata
                    .partitions
                    .iter()
                    .map(|column| (column.clone(), own.get(column).cloned().flatten().filter(|text| !text.is_empty())))
                    .collect(),
            );
        }
        let logged = Logged {
            folder: Some(self.folder.to_owned()),
            schema: columns.schema,
            mark: columns.mark,
            partitions: metadata.partitions,
            values,
        };
        Ok(Found { files, format: Format::Delta, logged: Some(logged) })
    }

    fn shown(&self) -> String {
        shown(self.name)
    }

    fn log_file(&self, name: &str) -> String {
        format!("{}/{LOG}/{name}", self.name.trim_end_matches('/')).trim_end_matches('/').to_owned()
    }

    /// Where a live file is.
    fn file(&self, path: &str) -> Result<PathBuf, QueryError> {
        self.folder.join(path).canonicalize().map_err(|_| {
            QueryError::asked(
                format!("a file that the log of `{}` lists is not there, or may not be read", self.shown()),
                "copy the table as a whole; old versions are gone after a VACUUM: leave `version` out for the newest",
            )
        })
    }

    /// Refuses what cannot be read rightly, by what the table says of itself.
    fn understood(&self, protocol: &ReaderProtocol, metadata: &TableMetadata) -> Result<(), QueryError> {
        let name = self.shown();
        let refused = |feature: &str| {
            QueryError::asked(
                format!("`{name}` is a Delta table with `{feature}`, which is not understood here"),
                format!(
                    "have the table rewritten without it (ALTER TABLE … DROP FEATURE {feature}), or write its rows to Parquet files"
                ),
            )
        };
        if metadata.provider != "parquet" {
            return Err(refused(&metadata.provider));
        }
        match protocol.min_reader {
            0..=2 => {}
            3 => {
                let known = |feature: &&String| HARMLESS.contains(&feature.as_str()) || *feature == "columnMapping";
                if let Some(feature) = protocol.features.iter().find(|feature| !known(feature)) {
                    return Err(refused(feature));
                }
            }
            newer => {
                let sentence = format!(
                    "`{name}` is a Delta table for readers of version {newer}, and version 3 is the last that is known here"
                );
                return Err(QueryError::asked(sentence, ELSEWHERE));
            }
        }
        // That columns may be called otherwise in files is allowed by many protocols; whether they are is said by the table.
        if metadata.mapping != "none" {
            return Err(refused("columnMapping"));
        }
        Ok(())
    }

    fn no_version(&self, gap: &log::NoVersion) -> QueryError {
        let name = self.shown();
        match gap {
            log::NoVersion::Empty => QueryError::asked(
                format!("the log of `{name}` has no commit, so it is no Delta table"),
                "a table that is still being written has its first commit soon; else say how the files are written: format = \"parquet\"",
            ),
            log::NoVersion::NoSuchVersion(version) => QueryError::asked(
                format!("`{name}` has no version {version}"),
                "leave `version` out for the newest, or name one that is there",
            ),
            log::NoVersion::Missing(file) => QueryError::asked(
                format!("`{}` is missing, so the table cannot be put together", self.log_file(file)),
                "copy the log as a whole; commits before a checkpoint may be gone, those behind it may not",
            ),
        }
    }

    fn broken(&self, name: &str, error: &log::LogFault) -> QueryError {
        let file = self.log_file(name);
        match error {
            log::LogFault::Unreadable(error) => unreadable(&file, error),
            log::LogFault::NoAction => QueryError::asked(
                format!(
                    "`{file}` is no part of a Delta log that can be read: something in it is not as the protocol has it"
                ),
                "it may be cut short: copy the log again from where it was written",
            ),
            log::LogFault::Outside => QueryError::asked(
                format!("the log of `{}` lists files that are not in its folder, as shallow clones do", self.shown()),
                "name the table that it was cloned from, or make a deep clone",
            ),
            log::LogFault::Short => QueryError::asked(
                format!(
                    "`{file}` and what is behind it do not say what the table is: its protocol or its columns are missing"
                ),
                "copy the log as a whole, with its checkpoints",
            ),
        }
    }
}

/// What can be done about a table that is of no use here.
const ELSEWHERE: &str = "write its rows to Parquet files, or to a Delta table with fewer features";
