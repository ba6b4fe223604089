//! Declared data sets, open: what is planned over, asked and learned from.

use super::chain::links;
use super::spelling::{Spelling, called, column_called};
use super::{FileHashes, Stamps, Threads, Tuning, Warehouse};
use crate::error::{QueryError, of_ledger, planning, running};
use crate::evaluate::attempt::quietly;
use crate::evaluate::{allow, guarded};
use crate::partition::{PARTITION_FUNCTION, PartitionFile, lookup_udf};
use crate::whose::user_column;
use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::datatypes::DataType;
use datafusion::common::{Column, DFSchema, TableReference};
use datafusion::logical_expr::{Expr, LogicalPlan, TryCast, case, lit};
use datafusion::prelude::DataFrame;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use whit_account::ledger::Register;
use whit_core::declare::{Declaration, DeclareError, ElementSource};

/// Declared data sets, open for questions.
pub struct Tables {
    pub(crate) warehouse: Warehouse,
    pub(crate) runtime: Threads,
    /// The element of each data set that has one.
    pub(crate) elements: BTreeMap<String, Expr>,
    /// The scan of each data set; where its users are looked up, with these as one more column.
    pub(crate) scans: BTreeMap<String, LogicalPlan>,
    /// The hash of each data set's partition file.
    pub(crate) partitions: BTreeMap<String, String>,
    /// Which data sets questions found to be others than the ledger had noted, and their fingerprints now.
    changed: Mutex<BTreeMap<String, String>>,
    /// Where the declaration stands, where it was read from a file.
    config: Option<PathBuf>,
}

impl Tables {
    /// Reads a `whit.toml` and opens its data sets.
    pub fn open(config: &Path, tuning: Tuning) -> Result<Self, QueryError> {
        let text = std::fs::read_to_string(config).map_err(|error| {
            QueryError::asked(
                format!("`{}` cannot be read: {error}", config.display()),
                "name the file that declares the data, or let `DeclarationDraft::of` draft one from your data",
            )
        })?;
        let wrong = |error: DeclareError| QueryError::asked(format!("{}, {error}", config.display()), error.hint());
        let declaration = Declaration::parse(&text).map_err(wrong)?;
        let folder = config.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        Ok(Self { config: Some(config.to_owned()), ..Self::of(declaration, folder, tuning)? })
    }

    /// Opens the data sets of a declaration that stands in `folder`.
    pub fn of(declaration: Declaration, folder: &Path, tuning: Tuning) -> Result<Self, QueryError> {
        let runtime = Threads::start(tuning.threads)?;
        let warehouse = runtime.block_on(Warehouse::open(declaration, folder, tuning))?;
        let mut tables = Self {
            warehouse,
            runtime,
            elements: BTreeMap::new(),
            scans: BTreeMap::new(),
            partitions: BTreeMap::new(),
            changed: Mutex::default(),
            config: None,
        };
        let names: Vec<String> = tables.warehouse.declaration().datasets.keys().cloned().collect();
        for name in names {
            let scan = if let Some(found) = tables.warehouse.looked_up.get(&name) {
                found.scan.clone()
            } else {
                let table = tables.warehouse.context().table(TableReference::bare(name.as_str()));
                tables.runtime.block_on(table).map_err(|error| planning(&error))?.into_unoptimized_plan()
            };
            tables.scans.insert(name.clone(), scan);
            if let Some(element) = tables.element_of(&name)? {
                tables.elements.insert(name, element);
            }
        }
        Ok(tables)
    }

    /// How a data set is declared that somebody calls so, without regard to case where only one can be meant.
    pub fn table_called(&self, name: &str) -> Result<&str, QueryError> {
        let declaration = self.warehouse.declaration();
        let found = called(declaration.datasets.keys().map(String::as_str), name);
        Ok(&declaration.dataset(found.as_deref().unwrap_or(name))?.name)
    }

    /// How a column is declared that somebody calls so, without regard to case where only one can be meant; the name itself where there is none.
    pub fn column_called(&self, dataset: &str, name: &str) -> String {
        self.warehouse.source(dataset).map_or_else(|_| name.to_owned(), |source| column_called(&source.schema, name))
    }

    /// The data sets and their engine.
    pub fn warehouse(&self) -> &Warehouse {
        &self.warehouse
    }

    /// The file of the declaration, where it was read from one.
    pub fn config(&self) -> Option<&Path> {
        self.config.as_deref()
    }

    /// The data sets that were others, when they were last asked about, than the ledger has noted, and their fingerprints. For the owner of the data and the
    /// operator's log: nobody else should learn that. Whoever has informed the owner has the ledger note it ([`Register::note_source`]); until then it is found
    /// again with each question, so that a log which cannot be written loses nothing.
    pub fn take_changed(&self) -> Vec<(String, String)> {
        let mut changed = self.changed.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        std::mem::take(&mut *changed).into_iter().collect()
    }

    /// The threads on which the engine runs.
    pub fn runtime(&self) -> &Threads {
        &self.runtime
    }

    /// The hash of a data set's partition file, where it has one.
    pub fn partition(&self, dataset: &str) -> Option<&str> {
        self.partitions.get(dataset).map(String::as_str)
    }

    /// The declared element of a data set as an expression over its columns.
    fn element_of(&mut self, name: &str) -> Result<Option<Expr>, QueryError> {
        let dataset = self.warehouse.declaration().dataset(name)?.clone();
        let Some(element) = dataset.unit.as_ref().and_then(|unit| unit.element.clone()) else { return Ok(None) };
        let (context, source) = (self.warehouse.context(), self.warehouse.source(name)?);
        let in_sql = |sql: &str| {
            let schema = DFSchema::try_from(source.schema.as_ref().clone()).map_err(|error| planning(&error))?;
            let expr = Spelling::expression(&context.state(), sql, &schema).map_err(|error| planning(&error))?;
            let mut never = |_: &LogicalPlan| Ok(false);
            allow::expression(expr, &mut never).map(Some)
        };
        match element {
            ElementSource::Expression(sql) => in_sql(&sql),
            ElementSource::Dictionary { column, elements, unknown } => {
                let value = Expr::Column(Column::new_unqualified(column));
                let text = Expr::TryCast(TryCast::new(Box::new(value), DataType::Utf8));
                let mut cases = elements.iter();
                let literal = |text: &str| lit(text.to_owned());
                let Some((first, named)) = cases.next() else { return Ok(Some(literal(&unknown))) };
                let mut builder = case(text).when(literal(first), literal(named));
                for (value, named) in cases {
                    builder = builder.when(literal(value), literal(named));
                }
                builder.otherwise(literal(&unknown)).map(Some).map_err(|error| planning(&error))
            }
            ElementSource::PartitionFile { column, path } => {
                let file = PartitionFile::load(&self.warehouse.folder().join(&path))?;
                if let Some(sql) = file.sql() {
                    self.partitions.insert(name.to_owned(), file.hash().to_owned());
                    return in_sql(&sql);
                }
                let function = format!("{PARTITION_FUNCTION}{name}");
                let lookup = lookup_udf(&function, &file);
                self.partitions.insert(name.to_owned(), file.hash().to_owned());
                let column = Expr::Column(Column::new_unqualified(column));
                Ok(Some(lookup.call(vec![column])))
            }
        }
    }

    /// The rows of a data set, with all that says whose they are.
    pub(crate) fn rows_of(&self, dataset: &str) -> Result<DataFrame, QueryError> {
        let missing = || QueryError::failed(format!("the data set `{dataset}` was not opened"));
        let scan = self.scans.get(dataset).ok_or_else(missing)?;
        Ok(DataFrame::new(self.warehouse.context().state(), scan.clone()))
    }

    /// The column of those rows that holds the user, where they have one.
    pub(crate) fn user_column(&self, dataset: &str) -> Option<&str> {
        let declaration = self.warehouse.declaration();
        user_column(declaration, declaration.datasets.get(dataset)?)
    }

    /// These data sets, and those that say whose the rows of these are, in order.
    fn with_links(&self, names: &[String]) -> BTreeSet<String> {
        let declaration = self.warehouse.declaration();
        let datasets = names.iter().filter_map(|name| declaration.datasets.get(name));
        let links = datasets.flat_map(|dataset| links(declaration, dataset)).map(str::to_owned);
        names.iter().cloned().chain(links).collect()
    }

    /// The declared element of a data set, where it has one.
    pub(crate) fn element(&self, dataset: &str) -> Option<&Expr> {
        self.elements.get(dataset)
    }

    /// Runs a plan that reads nothing private, or of which nobody but the caller sees the result.
    pub(crate) fn collect(&self, plan: &LogicalPlan) -> Result<Vec<RecordBatch>, QueryError> {
        let context = self.warehouse.context();
        let work = async {
            let plan = guarded(plan.clone(), &context.state())?;
            let physical = context.state().create_physical_plan(&plan).await.map_err(|error| planning(&error))?;
            datafusion::physical_plan::collect(physical, context.task_ctx()).await.map_err(|error| running(&error))
        };
        // On the caller's thread: the words of a panic may hold values of a row.
        let done = quietly(|| self.runtime.block_on(work));
        done.unwrap_or_else(|| Err(QueryError::failed("the engine could not finish the question")))
    }

    /// The fingerprint of these data sets, which stand in order, and what their files were then. Which of them changed is found one by one and so whatever else
    /// was joined, for the owner only: it tells of the data. The ledger notes a change after the owner was informed, and not before.
    pub(crate) fn fingerprint_of(
        &self,
        names: &[String],
        books: &mut dyn Register,
    ) -> Result<(String, Stamps), QueryError> {
        let (mut whole, mut stamps) = (blake3::Hasher::new(), Stamps::default());
        for name in &self.with_links(names) {
            let (own, files) = self.warehouse.source(name)?.stamped(&mut Remembered { books: &mut *books })?;
            stamps.append(files);
            if books.source_changed(name, &own).map_err(of_ledger)? {
                let mut changed = self.changed.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
                changed.insert(name.clone(), own.clone());
            } else {
                books.note_source(name, &own).map_err(of_ledger)?;
            }
            whole.update(name.as_bytes());
            whole.update(own.as_bytes());
        }
        Ok((whole.finalize().to_hex().to_string(), stamps))
    }

    /// The fingerprint of one data set; nothing is noted.
    pub(crate) fn own_fingerprint(&self, name: &str, books: &mut dyn Register) -> Result<String, QueryError> {
        self.warehouse.source(name)?.fingerprint(&mut Remembered { books })
    }

    /// The same from what is remembered of files, without reading any; nothing where one of them is not as it was. Whoever only looks notes nothing.
    pub(crate) fn known_fingerprint_of(
        &self,
        names: &[String],
        books: &mut dyn Register,
    ) -> Result<Option<String>, QueryError> {
        let mut whole = blake3::Hasher::new();
        for name in &self.with_links(names) {
            if !self.warehouse.source(name)?.is_known(&Remembered { books: &mut *books }) {
                return Ok(None);
            }
            let own = self.own_fingerprint(name, &mut *books)?;
            whole.update(name.as_bytes());
            whole.update(own.as_bytes());
        }
        Ok(Some(whole.finalize().to_hex().to_string()))
    }
}

/// Hashes of files, remembered by the ledger.
struct Remembered<'a> {
    books: &'a mut dyn Register,
}

impl FileHashes for Remembered<'_> {
    fn recall(&self, path: &str, size: u64, stamp: i64) -> Option<String> {
        // Earlier versions kept the time of change here: such rows do not fit, and their files are read again.
        self.books.recall_file(path, size, stamp).ok().flatten()
    }

    fn remember(&mut self, path: &str, size: u64, stamp: i64, hash: &str) {
        // A hash that is not remembered is made again: nothing is lost.
        let _ = self.books.remember_file(path, size, stamp, hash);
    }
}
