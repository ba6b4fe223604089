//! What the owner of the data may see, and nobody else.
//!
//! Two roles: the *owner* has the files and may see all that is in them; the *analyst* sees answers, refusals and messages, and none of those may follow
//! from rows but through noise. Everything that reads private rows in order to tell about them is here, and asks for an [`Owner`], which
//! `whit check --owner` and `whit init` make and no question does.

use super::files::unreadable;
use super::parquet::bytes::Patience;
use super::text::Shape;
use super::text::tally::Found;
use super::{Source, Tables, survey};
use crate::error::{QueryError, of_ledger, planning, running};
use crate::whose::OWNER;
use datafusion::arrow::array::{Array, AsArray, RecordBatch};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType, Int64Type};
use datafusion::logical_expr::Expr;
use datafusion::prelude::{DataFrame, SQLOptions, ident};
use serde::Serialize;
use whit_account::ledger::Register;
use whit_core::declare::{Bounds, Dataset, Keys, Owning};

/// Somebody who has the files and may see what is in them. Making one says so; what it unlocks goes to that person and to no analyst.
#[derive(Debug, Clone, Copy)]
pub struct Owner(());

impl Owner {
    /// Whoever runs this is the owner of the data, and reads the output alone.
    pub fn who_may_see_every_row() -> Self {
        Self(())
    }
}

/// One data set, as its owner looks at it. Every number is exact, and private.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct OwnerView {
    /// Its name.
    pub name: String,
    /// How many files there are.
    pub files: usize,
    /// How many bytes they have together.
    pub bytes: u64,
    /// How many rows there are.
    pub rows: u64,
    /// Whether the data is another than the ledger last saw; nothing where there is no ledger.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub changed: Option<bool>,
    /// Lines that are not written as they should be.
    pub lines: Vec<LineFault>,
    /// The columns that are read.
    pub columns: Vec<ColumnFaults>,
    /// Names in the headings that have no declared type, and are not read.
    pub untyped: Vec<String>,
    /// Rows that are left out because nothing says whose they are.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub without_user: Option<u64>,
    /// Keys that lead to several users, so that rows which have them belong to nobody; nothing where users stand in the rows themselves.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub shared_keys: Option<u64>,
    /// What caps cut.
    pub caps: Vec<CapView>,
}

/// Lines of one fault.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct LineFault {
    /// What is wrong, in words.
    pub fault: &'static str,
    /// What is done about it.
    pub becomes: &'static str,
    /// How many lines have it.
    pub rows: u64,
    /// The first of them: file and line.
    pub first: Option<String>,
}

/// What is wrong with the values of one column.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ColumnFaults {
    /// Its name.
    pub name: String,
    /// Its type, in words.
    #[serde(rename = "type")]
    pub kind: String,
    /// What it is for, where it is the user or the label.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub role: Option<&'static str>,
    /// Rows in which it is NULL, for whatever reason.
    pub missing: u64,
    /// Rows in which something stands that is not of its type, and so is NULL.
    pub wrong: u64,
    /// The first of them: file and line.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub first_wrong: Option<String>,
    /// Values that declared bounds clamp.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub clamped: Option<u64>,
    /// Values that are none of the declared keys, and so are left out where they are grouped by.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub other_keys: Option<u64>,
}

/// What one cap cuts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct CapView {
    /// Its name.
    pub cap: &'static str,
    /// What it is declared as.
    pub limit: u64,
    /// How many there are of whom it caps: users, or elements of users.
    pub units: u64,
    /// How many of them have more.
    pub over: u64,
    /// The most that one of them has.
    pub largest: u64,
    /// How many rows or elements there are in all,
    pub all: u64,
    /// and how many of them are beyond the cap.
    pub beyond: u64,
}

impl Tables {
    /// Reads every row, and tells the owner what does not fit the declaration. `changed` says whether the ledger last saw other data.
    pub fn survey_for(
        &self,
        _: &Owner,
        mut changed: impl FnMut(&str) -> Result<Option<bool>, QueryError>,
    ) -> Result<Vec<OwnerView>, QueryError> {
        let private = self.warehouse().sources().filter(|source| !source.dataset.public);
        private.map(|source| self.view_for_owner(source, changed(&source.dataset.name)?)).collect()
    }

    /// Whether a data set is another than the ledger last saw. For the owner: it tells of rows. Nothing is noted.
    pub fn changed_since(&self, _: &Owner, dataset: &str, books: &mut dyn Register) -> Result<bool, QueryError> {
        let now = self.own_fingerprint(dataset, books)?;
        books.source_changed(dataset, &now).map_err(of_ledger)
    }

    /// How many rows the engine's own answer to a query has, without noise and without a charge: for races against it. Private tables are read as they are, so this is
    /// the owner's.
    pub fn rows_without_privacy(&self, _: &Owner, sql: &str) -> Result<usize, QueryError> {
        let context = self.warehouse.context();
        let only_questions = SQLOptions::new().with_allow_ddl(false).with_allow_dml(false).with_allow_statements(false);
        let answer = async { context.sql_with_options(sql, only_questions).await?.collect().await };
        let batches = self.runtime.block_on(answer).map_err(|error| running(&error))?;
        Ok(batches.iter().map(RecordBatch::num_rows).sum())
    }

    fn view_for_owner(&self, source: &Source, changed: Option<bool>) -> Result<OwnerView, QueryError> {
        let dataset = &source.dataset;
        let tally = match &source.text {
            Some(text) => text.tally().map_err(|error| unreadable(&dataset.source.join(", "), &error))?,
            None => super::parquet::tally(&source.files, &source.stored)?,
        };
        let place = |found: &Found| {
            found.first.map(|(file, line)| {
                let name = source.files.get(file).map(|path| path.to_string_lossy().into_owned());
                format!("{}:{line}", name.unwrap_or_default())
            })
        };
        let lines = tally.shapes.iter().map(|(shape, found)| {
            let (fault, becomes) = in_words(*shape);
            LineFault { fault, becomes, rows: found.rows, first: place(found) }
        });
        let lines = lines.collect();
        let (rows, mut columns) = self.columns_for_owner(source)?;
        for (column, found) in columns.iter_mut().zip(&tally.wrong) {
            (column.wrong, column.first_wrong) = (found.rows, place(found));
        }
        let user = self.user_column(&dataset.name);
        let without_user = match self.warehouse().declaration().owning(dataset) {
            Some(Owning::Column(user)) => columns.iter().find(|column| column.name == user).map(|user| user.missing),
            Some(Owning::LookedUp { .. }) => Some(rows.saturating_sub(self.rows_with_owner(dataset)?)),
            None => None,
        };
        let shared_keys = self.shared_keys(dataset)?;
        let caps = match user {
            Some(user) => self.caps_for_owner(source, user)?,
            None => Vec::new(),
        };
        Ok(OwnerView {
            name: dataset.name.clone(),
            files: source.files.len(),
            bytes: source.bytes()?,
            rows,
            changed,
            lines,
            columns,
            untyped: source.untyped.clone(),
            without_user,
            shared_keys,
            caps,
        })
    }

    /// How many rows there are, and what their values are like.
    fn columns_for_owner(&self, source: &Source) -> Result<(u64, Vec<ColumnFaults>), QueryError> {
        let dataset = &source.dataset;
        let mut wanted = vec!["count(*)".to_owned()];
        let mut columns = Vec::new();
        for field in source.schema.fields() {
            let name = quoted(field.name());
            wanted.push(format!("count({name})"));
            let clamped = match dataset.bounds(field.name()) {
                Some(Bounds::Declared { low, high }) => {
                    let number = format!("CAST({name} AS DOUBLE)");
                    wanted.push(format!("sum(CASE WHEN {number} < {low:?} OR {number} > {high:?} THEN 1 ELSE 0 END)"));
                    true
                }
                Some(Bounds::Days { first, last }) => {
                    let day = format!("CAST({name} AS DATE)");
                    wanted.push(format!(
                        "sum(CASE WHEN {day} < DATE '{first}' OR {day} > DATE '{last}' THEN 1 ELSE 0 END)"
                    ));
                    true
                }
                Some(Bounds::Auto) | None => false,
            };
            let keyed = match dataset.keys(field.name()) {
                Some(Keys::Listed(keys)) => {
                    let keys: Vec<String> = keys.iter().map(|key| format!("'{}'", key.replace('\'', "''"))).collect();
                    let text = format!("CAST({name} AS VARCHAR)");
                    wanted.push(format!("sum(CASE WHEN {text} NOT IN ({}) THEN 1 ELSE 0 END)", keys.join(", ")));
                    true
                }
                Some(Keys::FromTable { table, column }) => {
                    let keys = format!("SELECT CAST({} AS VARCHAR) FROM {}", quoted(column), quoted(table));
                    let there = format!(
                        "SELECT count(*) FROM {} WHERE CAST({name} AS VARCHAR) NOT IN ({keys})",
                        quoted(&dataset.name)
                    );
                    wanted.push(format!("({there})"));
                    true
                }
                None => false,
            };
            columns.push((field, clamped, keyed));
        }
        let sql = format!("SELECT {} FROM {}", wanted.join(", "), quoted(&dataset.name));
        let mut numbers = self.numbers(&sql)?.into_iter();
        let mut next = || numbers.next().unwrap_or(0);
        let rows = next();
        let unit = dataset.unit.as_ref();
        let view = |(field, clamped, keyed): (&std::sync::Arc<datafusion::arrow::datatypes::Field>, bool, bool)| {
            let name = field.name().clone();
            let role = if unit.and_then(|unit| unit.user.as_ref()).is_some_and(|user| user.column() == name) {
                Some("user")
            } else {
                unit.and_then(|unit| unit.label.as_ref()).filter(|label| **label == name).map(|_| "label")
            };
            ColumnFaults {
                role,
                kind: survey::type_in_words(field.data_type()),
                missing: rows - next().min(rows),
                wrong: 0,
                first_wrong: None,
                clamped: clamped.then(&mut next),
                other_keys: keyed.then(&mut next),
                name,
            }
        };
        Ok((rows, columns.into_iter().map(view).collect()))
    }

    /// How many rows have a key that leads to one user.
    fn rows_with_owner(&self, dataset: &Dataset) -> Result<u64, QueryError> {
        let rows = self.rows_of(&dataset.name)?;
        let counted = self.runtime().block_on(async { rows.filter(ident(OWNER).is_not_null())?.count().await });
        counted.map(|rows| rows as u64).map_err(|error| running(&error))
    }

    /// How many keys lead to several users.
    fn shared_keys(&self, dataset: &Dataset) -> Result<Option<u64>, QueryError> {
        let Some(found) = self.warehouse().looked_up.get(&dataset.name) else { return Ok(None) };
        let shared = DataFrame::new(self.warehouse().context().state(), found.shared.clone());
        let batches = self.runtime().block_on(shared.collect()).map_err(|error| running(&error))?;
        let counted = batches.first().map(|batch| batch.column(0).as_primitive::<Int64Type>());
        Ok(Some(counted.filter(|keys| !keys.is_empty()).map_or(0, |keys| keys.value(0).max(0) as u64)))
    }

    /// What the caps on users and elements cut.
    fn caps_for_owner(&self, source: &Source, user: &str) -> Result<Vec<CapView>, QueryError> {
        let Some(unit) = &source.dataset.unit else { return Ok(Vec::new()) };
        // A name that no question may use.
        let view = "__whit_owner";
        let context = self.warehouse().context();
        let element: Expr = self.element(&source.dataset.name).cloned().unwrap_or_else(|| datafusion::prelude::lit(0));
        let rows = self.rows_of(&source.dataset.name)?;
        let owned = self.runtime().block_on(async {
            rows.select(vec![ident(user).alias("u"), element.alias("e")])?.filter(ident("u").is_not_null())
        });
        let owned = owned.map_err(|error| planning(&error))?;
        context.register_table(view, owned.into_view()).map_err(|error| planning(&error))?;
        let by_element = format!("SELECT u, e, count(*) AS n FROM {view} GROUP BY u, e");
        let mut caps = Vec::new();
        let counted = [
            ("rows_per_user", unit.caps.rows_per_user, format!("SELECT u, count(*) AS n FROM {view} GROUP BY u")),
            (
                "elements_per_user",
                unit.caps.elements_per_user,
                format!("SELECT u, count(*) AS n FROM ({by_element}) GROUP BY u"),
            ),
            ("rows_per_element", unit.caps.rows_per_element, by_element),
        ];
        let read = || -> Result<(), QueryError> {
            for (cap, limit, sql) in counted {
                let Some(limit) = limit else { continue };
                let numbers = self.numbers(&format!(
                    "SELECT count(*), coalesce(sum(CASE WHEN n > {limit} THEN 1 ELSE 0 END), 0), coalesce(max(n), 0), coalesce(sum(n), 0), \
                     coalesce(sum(CASE WHEN n > {limit} THEN n - {limit} ELSE 0 END), 0) FROM ({sql})"
                ))?;
                let [units, over, largest, all, beyond] = numbers[..] else { continue };
                caps.push(CapView { cap, limit, units, over, largest, all, beyond });
            }
            Ok(())
        };
        let done = read();
        context.deregister_table(view).map_err(|error| planning(&error))?;
        done.map(|()| caps)
    }

    /// The one row of a question that gives whole numbers.
    fn numbers(&self, sql: &str) -> Result<Vec<u64>, QueryError> {
        let context = self.warehouse().context();
        let batches = self.runtime().block_on(async {
            let frame = context.sql(sql).await.map_err(|error| planning(&error))?;
            match frame.clone().collect().await {
                Err(_) if Patience::gained(context) => frame.collect().await,
                done => done,
            }
            .map_err(|error| running(&error))
        })?;
        let Some(batch) = batches.iter().find(|batch| batch.num_rows() > 0) else { return Ok(Vec::new()) };
        let number = |column: &std::sync::Arc<dyn Array>| {
            let whole = cast(column, &DataType::Int64).map_err(|error| QueryError::failed(error.to_string()))?;
            let whole = whole.as_primitive::<Int64Type>();
            Ok(if whole.is_null(0) { 0 } else { u64::try_from(whole.value(0)).unwrap_or(0) })
        };
        batch.columns().iter().map(number).collect()
    }
}

/// A fault of a line, and what becomes of it.
fn in_words(shape: Shape) -> (&'static str, &'static str) {
    match shape {
        Shape::Short => ("fewer values than the heading has names", "the others are NULL"),
        Shape::Long => ("more values than the heading has names", "the surplus is left out"),
        Shape::Open => (
            "a quote that its line does not close",
            "the value ends with the line; where values hold line breaks, declare newlines_in_values = true",
        ),
        Shape::Foreign => (
            "letters that are not of the encoding, UTF-8 unless declared",
            "such text is NULL; where files are written so, declare encoding = \"latin1\", \"windows-1252\" or \"utf-16\"",
        ),
        Shape::Cut => (
            "nothing any more, since their file is packed and breaks off",
            "what stood from here on is no rows; pack the file again",
        ),
        Shape::Broken => ("no JSON object", "what stands behind the break is NULL"),
    }
}

/// A name in SQL.
fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}
