//! Declared data sets as tables that an engine can read.
//!
//! [`Warehouse::open`] finds the files of every declared data set, learns their columns, checks that the declaration fits
//! them, and registers each under its name. No row of a private table is looked at: the columns of CSV and NDJSON files are those that are
//! declared with a type, and those of Parquet files stand in their descriptions. Both are taken as known to everybody, as the declaration is.
//!
//! What reads private rows for whoever owns them is in [`owner`], and needs an [`owner::Owner`].

pub(crate) mod chain;
mod delta;
mod draft;
pub(crate) mod files;
mod fit;
mod hash;
mod inputs;
mod inspect;
mod items;
pub mod learn;
pub(crate) mod line;
mod locate;
pub mod owner;
mod parquet;
mod s3;
mod schema;
#[cfg(test)]
pub(crate) mod scratch;
pub(crate) mod spelling;
mod survey;
mod tables;
mod text;
mod threads;

pub(crate) use fit::slice_kind;
#[cfg(test)]
pub(crate) use hash::NoHashes;
pub use hash::{FileHashes, Stamps};
pub use inputs::{Input, Inputs};
pub(crate) use inspect::is_text;
pub use inspect::{Inspection, inspect};
pub(crate) use parquet::bytes::Patience;
pub(crate) use survey::payer;
pub use survey::{BudgetView, ColumnView, DatasetView, RungView};
pub use tables::Tables;
pub use threads::{Interrupt, Threads};

use crate::error::QueryError;
use crate::translate::in_words;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::catalog::TableProvider;
use datafusion::datasource::listing::ListingTableUrl;
use datafusion::execution::disk_manager::{DiskManagerBuilder, DiskManagerMode};
use datafusion::execution::memory_pool::FairSpillPool;
use datafusion::execution::runtime_env::RuntimeEnvBuilder;
use datafusion::prelude::{SessionConfig, SessionContext};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use whit_core::declare::{Dataset, Declaration, DeclareError, Format};

/// Settings that cannot change a guarantee.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Tuning {
    /// The most bytes that the engine keeps in memory; beyond them it writes to a temporary folder. All there is where absent.
    pub memory: Option<u64>,
    /// How many threads work at once; as many as the machine has where absent.
    pub threads: Option<usize>,
}

impl Tuning {
    /// How many threads work at once.
    pub fn threads(&self) -> usize {
        let machine = || std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        self.threads.unwrap_or_else(machine).max(1)
    }
}

/// One declared data set, found and understood.
#[derive(Debug, Clone)]
pub struct Source {
    /// The declaration.
    pub dataset: Dataset,
    /// The columns of its files.
    pub(crate) schema: SchemaRef,
    /// The same before a list is opened.
    stored: SchemaRef,
    /// Where its files are, in the order of their names relative to `whit.toml`.
    pub files: Vec<PathBuf>,
    /// The folder of a Delta table, which also has files that are not the table's now, and what its log says of rows.
    table: Option<PathBuf>,
    /// How they are written.
    pub format: Format,
    /// Columns of private CSV files that have no declared type. Nobody can ask for them.
    pub untyped: Vec<String>,
    text: Option<text::TextTable>,
    /// What the way in which each file is read, and the names of its folders, add to a fingerprint.
    marks: Vec<String>,
    threads: usize,
}

impl Source {
    /// The content of all files as one short text: BLAKE3 over how they are read (the format, declared types) and, in the order of their names,
    /// each file's BLAKE3. It is as private as the rows: who knows all of them but one value finds that by trying.
    ///
    /// Reads every file that `hashes` does not remember.
    pub fn fingerprint(&self, hashes: &mut dyn FileHashes) -> Result<String, QueryError> {
        self.stamped(hashes).map(|(fingerprint, _)| fingerprint)
    }

    /// The same, with what the files were then.
    pub(crate) fn stamped(&self, hashes: &mut dyn FileHashes) -> Result<(String, Stamps), QueryError> {
        let mut stamps = Stamps::default();
        let mut all = blake3::Hasher::new();
        all.update(format!("whit data 1 {}\n", self.format).as_bytes());
        for (name, column) in &self.dataset.columns {
            if let Some(kind) = &column.kind {
                all.update(format!("{} {name} {kind}\n", name.len()).as_bytes());
            }
        }
        if self.dataset.newlines_in_values {
            all.update(b"newlines in values\n");
        }
        if let Some(column) = &self.dataset.open {
            all.update(format!("open {column}\n").as_bytes());
        }
        for (path, mark) in self.files.iter().zip(&self.marks) {
            let (hash, stamp) = hash::file(path, self.threads, hashes)?;
            stamps.push(path, stamp);
            all.update(mark.as_bytes());
            all.update(hash.as_bytes());
            all.update(b"\n");
        }
        Ok((all.finalize().to_hex().to_string(), stamps))
    }

    /// Whether the hashes of all files are remembered, so that [`fingerprint`](Self::fingerprint) reads none.
    pub(crate) fn is_known(&self, hashes: &dyn FileHashes) -> bool {
        self.files.iter().all(|path| hash::is_known(path, hashes))
    }

    /// The names of its columns, and their types as a declaration calls them; what it has no word for, as people do.
    pub fn columns(&self) -> impl Iterator<Item = (&str, String)> {
        let called = |kind| schema::declared_as(kind).map_or_else(|| in_words(kind), |kind| kind.to_string());
        self.schema.fields().iter().map(move |field| (field.name().as_str(), called(field.data_type())))
    }

    /// What to do about a column that a private file may have, but that has no declared type; nothing where that is not the matter.
    pub(crate) fn untyped_hint(&self, name: &str) -> Option<String> {
        let lines = self.text.is_some() && !self.dataset.public;
        let there = match self.format {
            // What headings say of folders that may be there or not is told to nobody.
            Format::Csv if self.dataset.partitioned_by.is_empty() => self.untyped.iter().any(|own| own == name),
            Format::Csv | Format::Ndjson | Format::Parquet | Format::Delta => self.dataset.column_type(name).is_none(),
        };
        (lines && there).then(|| {
            format!(
                "{} files have no types, and types that follow from values would tell of rows: declare columns.{}.type = \"text\" ({}); \
                 `DeclarationDraft::of` looks at the files and drafts them all",
                self.format,
                line::key(name),
                whit_core::declare::ColumnType::KNOWN
            )
        })
    }

    /// Whether a path leads to one of its files, under whichever name, or into its folder where that is a table as a whole.
    pub(crate) fn holds(&self, path: &Path) -> bool {
        Inputs::are_one(path, &self.files) || self.table.as_ref().is_some_and(|folder| Inputs::is_in(path, folder))
    }

    /// How many bytes all files have. For the owner: it tells of rows.
    fn bytes(&self) -> Result<u64, QueryError> {
        self.files.iter().try_fold(0_u64, |sum, path| match hash::Stamp::of(path) {
            Ok(stamp) => Ok(sum.saturating_add(stamp.size)),
            Err(error) => Err(files::unreadable(&path.to_string_lossy(), &error)),
        })
    }
}

/// Every declared data set, registered with an engine.
pub struct Warehouse {
    context: SessionContext,
    declaration: Declaration,
    folder: PathBuf,
    tuning: Tuning,
    sources: BTreeMap<String, Source>,
    /// Those tables whose users stand in others.
    looked_up: BTreeMap<String, chain::LookedUp>,
}

impl Warehouse {
    /// Finds, checks and registers every data set of a declaration that stands in `folder`.
    pub async fn open(declaration: Declaration, folder: &Path, tuning: Tuning) -> Result<Self, QueryError> {
        let context = session(tuning)?;
        crate::functions::register(&context);
        let (mut sources, mut providers) = (BTreeMap::new(), BTreeMap::new());
        for dataset in declaration.datasets.values() {
            let found = locate::declared(dataset, folder)?;
            let schema::Opened { schema, stored, provider, text, untyped, marks } =
                schema::opened(&context, dataset, &found).await?;
            register(&context, &dataset.name, Arc::clone(&provider))?;
            providers.insert(dataset.name.clone(), provider);
            let table = found.logged.and_then(|logged| logged.folder);
            let (files, format) = (found.files.into_values().collect(), found.format);
            let threads = tuning.threads();
            let dataset = dataset.clone();
            let source = Source { dataset, schema, stored, files, table, format, untyped, text, marks, threads };
            sources.insert(source.dataset.name.clone(), source);
        }
        for source in sources.values() {
            fit::check(source, &sources, &context, folder)?;
        }
        let mut looked_up = BTreeMap::new();
        for dataset in declaration.datasets.values() {
            if let Some(found) = chain::looked_up(&declaration, dataset, &providers)? {
                looked_up.insert(dataset.name.clone(), found);
            }
        }
        Ok(Self { context, declaration, folder: folder.to_owned(), tuning, sources, looked_up })
    }

    /// The engine.
    pub(crate) fn context(&self) -> &SessionContext {
        &self.context
    }

    /// A data set by its name; where there is none, the error names the nearest.
    pub fn source(&self, name: &str) -> Result<&Source, QueryError> {
        self.declaration.dataset(name)?;
        self.sources.get(name).ok_or_else(|| QueryError::failed(format!("the data set `{name}` was not opened")))
    }

    /// All data sets, by name.
    pub fn sources(&self) -> impl Iterator<Item = &Source> {
        self.sources.values()
    }

    /// What was declared.
    pub fn declaration(&self) -> &Declaration {
        &self.declaration
    }

    /// The folder of `whit.toml`, to which paths in it are relative.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// The settings that it was opened with.
    pub fn tuning(&self) -> Tuning {
        self.tuning
    }
}

/// Threads for futures that no open data set runs.
pub fn runtime(threads: Option<usize>) -> Result<Threads, QueryError> {
    Threads::start(threads)
}

/// An engine without tables.
fn session(tuning: Tuning) -> Result<SessionContext, QueryError> {
    let threads = tuning.threads();
    // What files say of their values leaves NaN out, and planning with it would take a column that has some for a constant.
    let mut config = SessionConfig::new().with_target_partitions(threads).with_collect_statistics(false);
    config.set_extension(Arc::new(Patience::default()));
    let spills = DiskManagerBuilder::default().with_mode(DiskManagerMode::OsTmpDirectory);
    let mut runtime = RuntimeEnvBuilder::new().with_disk_manager_builder(spills);
    if let Some(memory) = tuning.memory {
        let memory = usize::try_from(memory).unwrap_or(usize::MAX);
        runtime = runtime.with_memory_pool(Arc::new(FairSpillPool::new(memory)));
        // What each sort sets aside for its last merge must leave room to work, also where memory is scarce.
        let aside = config.options().execution.sort_spill_reservation_bytes.min(memory / (8 * threads));
        config = config.with_sort_spill_reservation_bytes(aside);
    }
    let runtime = runtime.build_arc().map_err(|error| {
        QueryError::failed(format!("the engine has no place for its temporary files: {}", error.strip_backtrace()))
    })?;
    Ok(crate::registry::engine(config, runtime))
}

fn register(context: &SessionContext, name: &str, table: Arc<dyn TableProvider>) -> Result<(), QueryError> {
    // Quoted by its parts, so that a name is never read as `schema.table`.
    let reference = datafusion::common::TableReference::bare(name);
    let failed = |error: datafusion::error::DataFusionError| {
        QueryError::failed(format!("`{name}` could not be made a table: {}", error.strip_backtrace()))
    };
    context.register_table(reference, table).map(|_| ()).map_err(failed)
}

/// The address of one file. Written out byte by byte, because a path with a bracket would be read as a glob.
fn url_of(name: &str, path: &Path) -> Result<ListingTableUrl, QueryError> {
    let odd = || QueryError::asked(format!("the name of `{name}` is not text"), "rename it: letters, digits, - and _");
    let text = path.to_str().ok_or_else(odd)?;
    let mut address = String::from("file://");
    for byte in text.bytes() {
        match byte {
            b'/' | b'-' | b'_' | b'.' | b'~' => address.push(char::from(byte)),
            _ if byte.is_ascii_alphanumeric() => address.push(char::from(byte)),
            _ => {
                let _ = write!(address, "%{byte:02X}"); // writing to a text never fails
            }
        }
    }
    ListingTableUrl::parse(&address).map_err(|_| odd())
}

impl From<DeclareError> for QueryError {
    fn from(error: DeclareError) -> Self {
        Self::asked(error.to_string(), error.hint())
    }
}

#[cfg(test)]
mod tests;
