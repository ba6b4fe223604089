//! Where the files of a data set are: in folders or on S3-compatible storage, and there by themselves or behind the log of a Delta table.

use super::delta::DeltaTable;
use super::files::{self, Found, LOG};
use super::s3;
use crate::error::QueryError;
use std::path::Path;
use whit_core::declare::{Dataset, Format};

/// Finds the files of a declared data set, relative to the folder of its declaration.
pub(super) fn declared(dataset: &Dataset, base: &Path) -> Result<Found, QueryError> {
    find(&dataset.name, &dataset.source, (dataset.format, dataset.version), base)
}

/// Finds files of which nothing is declared yet.
pub(super) fn undeclared(path: &Path) -> Result<Found, QueryError> {
    find("", &[path.to_string_lossy().into_owned()], (None, None), Path::new(""))
}

/// Whether one of these sources is not on this machine.
pub(super) fn is_remote(sources: &[String]) -> bool {
    sources.iter().any(|source| s3::is_remote(source))
}

fn find(
    whose: &str,
    sources: &[String],
    (format, version): (Option<Format>, Option<u64>),
    base: &Path,
) -> Result<Found, QueryError> {
    if !is_remote(sources) {
        return in_folders(whose, sources, (format, version), base);
    }
    let variable = |name: &str| std::env::var(name).ok();
    let search = |view: &Path, inside: &[String]| in_folders(whose, inside, (format, version), view);
    s3::found(sources, &format!("{format:?} {version:?}"), &variable, search)
}

pub(super) fn in_folders(
    whose: &str,
    sources: &[String],
    (format, version): (Option<Format>, Option<u64>),
    base: &Path,
) -> Result<Found, QueryError> {
    let is_table = |source: &String| base.join(source).join(LOG).is_dir();
    let delta = match format {
        Some(format) => format == Format::Delta,
        None => sources.iter().any(is_table),
    };
    if !delta {
        if version.is_some() {
            let sentence = format!("`version` of `{whose}` has no meaning: only Delta tables have versions");
            return Err(QueryError::asked(sentence, "leave it out, or name the folder of a Delta table"));
        }
        return files::find(whose, sources, format, base);
    }
    let [source] = sources else {
        return Err(QueryError::asked(
            format!("the source of `{whose}` is a Delta table and something else"),
            "a Delta table is a source by itself: make two data sets of them, and ask about both with UNION ALL",
        ));
    };
    if !is_table(source) {
        return Err(QueryError::asked(
            format!("`{}`, the source of `{whose}`, is no Delta table: it has no folder `{LOG}`", files::shown(source)),
            "name the folder that holds the log, or say how the files are written: format = \"parquet\"",
        ));
    }
    DeltaTable { name: source, folder: &base.join(source), version }.found()
}
