//! Rows for learning: plain numbers, and whose they are.
//!
//! What comes out is as private as the rows. That rows can be read at all, and how many numbers each has, follows from schema and training file alone
//! ([`Tables::check_learning`]): a row that does not fit is left out or read as zeros ([`Misfits`]), and no message ever speaks of one. Rows come in the order
//! of their files, whatever the number of threads.
//!
//! Users and elements are told apart by our own hash of their value, which depends on nothing else, under a key that is public: a run
//! that goes on later has to find the units that it had. Should the unit in which neighbours differ share its 64 bits with another, the two would be one unit, and what
//! would be a unit that comes or goes would be one that changes: up to twice as far for a single unit, and not what was paid for. Pairs that do not
//! change are together in both data sets, and matter to nobody. So among n units that is a chance of n / 2⁶⁴, one in 10¹³ for a million: far below any δ that is asked for.

mod columns;
mod open;

use crate::bound::hash::{PUBLIC, Role, hashes};
use crate::canonical::Canonical;
use crate::error::{QueryError, planning, running};
use crate::evaluate::attempt::quietly;
use crate::source::spelling::Spelling;
use crate::source::{Patience, Stamps, Tables};
use crate::translate::in_our_words;
use crate::whose;
use datafusion::arrow::array::{Array, ArrayRef, AsArray, RecordBatch};
use datafusion::arrow::datatypes::DataType;
use datafusion::common::{Column, DFSchema, TableReference};
use datafusion::execution::SessionStateBuilder;
use datafusion::logical_expr::{Expr, LogicalPlan, LogicalPlanBuilder};
use futures::StreamExt;
use open::{Opened, Values, soft};
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::Arc;
use whit_account::ledger::Register;
use whit_core::declare::Owning;

/// What happens to a row of which something is missing, is no number, is too large, has another length than was declared, or is none of the classes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Misfits {
    /// It is as if it were not there. For units of which a row may come or go.
    #[default]
    LeftOut,
    /// What does not fit is read as 0 (and as the first class), and the row stays. For units whose rows stay in view: how many there are is public.
    Zero,
}

/// Which numbers a target may be.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Fits {
    /// Every number.
    #[default]
    Any,
    /// 0 or more: counts.
    NotNegative,
    /// 0 or 1.
    ZeroOrOne,
}

/// What is to be predicted.
#[derive(Debug, Clone, Copy)]
pub struct Target<'a> {
    /// The column.
    pub column: &'a str,
    /// The names of its classes; a column of numbers has their places, from 0.
    pub classes: Option<&'a [String]>,
    /// Whether they were counted, and have no names but their places: a text is none of them then.
    pub counted: bool,
    /// What it may be, where it is a number.
    pub fits: Fits,
}

/// What is read of each row.
#[derive(Debug, Clone)]
#[expect(clippy::struct_excessive_bools, reason = "four independent things that may be read or not")]
pub struct Reading<'a> {
    /// The data set.
    pub dataset: &'a str,
    /// Columns of numbers, of lists of them, or of bytes; in order.
    pub features: &'a [String],
    /// How many numbers a row has in columns whose type does not say so.
    pub widths: &'a BTreeMap<String, usize>,
    /// Whether bytes are opened up to bits, the highest first.
    pub bits: bool,
    /// Every number is to become `scale · x + offset`: one for which that is infinite does not fit.
    pub scaled: (f32, f32),
    /// What is to be predicted; nothing where that is not asked for.
    pub target: Option<Target<'a>>,
    /// Which rows: an expression in SQL over columns of the table.
    pub filter: Option<&'a str>,
    /// Whether users are read, where a column of them is declared.
    pub users: bool,
    /// Whether elements are.
    pub elements: bool,
    /// Whether a hash of what is read of each row is wanted, by which some rows can be chosen.
    pub contents: bool,
    /// What happens to rows that do not fit.
    pub misfits: Misfits,
}

/// The features of some rows, row by row, as they come from the files. There may be more rows than memory holds, so they are handed on and not gathered.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Block<'a> {
    /// Where every feature is a byte, a bit or a truth value.
    Bytes(&'a [u8]),
    /// Where one is not.
    Floats(&'a [f32]),
}

/// Takes blocks of features, of rows of so many numbers. What it says no to ends the reading.
pub type Sink<'a> = dyn FnMut(usize, Block<'_>) -> Result<(), QueryError> + 'a;

/// What is reported of all rows, in addition to their features.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Numbers {
    /// The target of each row: a number, or that of its class.
    pub targets: Vec<f32>,
    /// The user of each row, where one is declared.
    pub users: Option<Vec<u64>>,
    /// The element of each row, where one is declared.
    pub elements: Option<Vec<u64>>,
    /// A hash of what was read of each row, where it was wanted.
    pub contents: Option<Vec<u64>>,
    /// How many rows there are.
    pub rows: usize,
    /// Which rows were left out, counted from 0 as they came. For the owner only.
    pub left_out: Vec<u64>,
}

/// What is known of a reading before a row is read.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Checked {
    /// Which columns of the filter are not public, so that a row that changes may come or go.
    pub private: Vec<String>,
    /// How many numbers a row has in each of the feature columns.
    pub widths: Vec<usize>,
    /// What the filter means, however it is spelled; null where there is none.
    pub condition: Value,
}

/// Whose rows there are, for a unit that leaves that in view.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct InView {
    /// How many rows.
    pub rows: usize,
    /// The user of each, where one is declared.
    pub users: Option<Vec<u64>>,
}

impl InView {
    /// How many units there are: users, or rows where no user has several.
    pub fn units(&self) -> usize {
        let Some(users) = &self.users else { return self.rows };
        let mut users = users.clone();
        users.sort_unstable();
        users.dedup();
        users.len()
    }
}

fn own(name: &str) -> Expr {
    Expr::Column(Column::new_unqualified(name))
}

impl Tables {
    /// The fingerprint of one data set, as a release of it is found again by, and what its files were then. Whoever reads rows afterwards
    /// [checks](Stamps::check) that they are of the same files, before anything of them leaves.
    pub fn fingerprint_for_learning(
        &self,
        dataset: &str,
        books: &mut dyn Register,
    ) -> Result<(String, Stamps), QueryError> {
        self.fingerprint_of(&[dataset.to_owned()], books)
    }

    /// The same where the files are as they were when they were last read; nothing is read for it, and nothing said where they are not.
    pub fn known_fingerprint_for_learning(
        &self,
        dataset: &str,
        books: &mut dyn Register,
    ) -> Result<Option<String>, QueryError> {
        self.known_fingerprint_of(&[dataset.to_owned()], books)
    }

    /// Whether all that is to be read is there and of a kind that can be, which columns of the filter are private, and how wide features are. Reads no row.
    pub fn check_learning(&self, reading: &Reading<'_>) -> Result<Checked, QueryError> {
        let source = self.warehouse().source(reading.dataset)?;
        let widths = columns::widths(source, reading)?;
        reading.target.map_or(Ok(()), |target| columns::check_target(source, target))?;
        let Some(filter) = self.filter_of(reading.dataset, reading.filter)? else {
            return Ok(Checked { private: Vec::new(), widths, condition: Value::Null });
        };
        let table = self.runtime().block_on(self.warehouse().context().table(TableReference::bare(reading.dataset)));
        let table = table.map_err(|error| planning(&error))?.into_unoptimized_plan();
        let condition = Canonical::of(&table, self.warehouse().context(), &|_| None)?.expression(&filter)?;
        self.rehearse_filter(reading.dataset, &filter, table)?;
        let public = source.dataset.unit.as_ref().map(|unit| unit.public.as_slice());
        let private = filter.column_refs().into_iter().map(|column| column.name.clone());
        let mut private: Vec<String> =
            private.filter(|name| public.is_some_and(|public| !public.contains(name))).collect();
        private.sort();
        Ok(Checked { private, widths, condition })
    }

    /// Tries a filter on made-up rows, so that one which can never be computed is not paid for.
    fn rehearse_filter(&self, dataset: &str, filter: &Expr, table: LogicalPlan) -> Result<(), QueryError> {
        let never = |words: String| {
            QueryError::asked(
                format!("the condition on rows of `{dataset}` cannot be computed: {words}"),
                "write a condition over columns of the table, such as split = 'train'",
            )
        };
        let plan = LogicalPlanBuilder::from(table).filter(filter.clone()).and_then(LogicalPlanBuilder::build);
        let tried = plan.and_then(|plan| crate::evaluate::samples::in_place_of(&plan));
        let tried = tried.map_err(|error| never(in_our_words(&error.strip_backtrace()).sentence))?;
        self.collect(&tried).map(drop).map_err(|error| never(error.sentence))
    }

    /// The filter as an expression that cannot fail.
    fn filter_of(&self, dataset: &str, filter: Option<&str>) -> Result<Option<Expr>, QueryError> {
        filter.map(|sql| self.row_wise(dataset, sql)).transpose()
    }

    /// An expression over single rows of a data set.
    fn row_wise(&self, dataset: &str, sql: &str) -> Result<Expr, QueryError> {
        let schema = self.warehouse().source(dataset)?.schema.as_ref().clone();
        let schema = DFSchema::try_from(schema).map_err(|error| planning(&error))?;
        let made = Spelling::expression(&self.warehouse().context().state(), sql, &schema);
        let expr = made.map_err(|error| {
            QueryError::asked(
                format!("`{sql}` cannot be read: {}", in_our_words(&error.strip_backtrace()).sentence),
                "write a condition over columns of the table, such as split = 'train'",
            )
        })?;
        let mut never = |_: &LogicalPlan| Ok(false);
        crate::evaluate::allow::expression(expr, &mut never)
    }

    /// The column of users, where one is declared.
    fn user_of(&self, dataset: &str) -> Result<Option<&str>, QueryError> {
        let declaration = self.warehouse().declaration();
        match declaration.owning(&self.warehouse().source(dataset)?.dataset) {
            None => Ok(None),
            Some(Owning::Column(user)) => Ok(Some(user)),
            Some(Owning::LookedUp { table, .. }) => Err(QueryError::asked(
                format!(
                    "the users of `{dataset}` stand in `{table}`, and what is learned from has them in its own rows"
                ),
                format!("write the user of `{table}` into the rows of `{dataset}`, and name that column in unit.user"),
            )),
        }
    }

    /// Reads rows, and hands their features to a sink. What comes out is as private as they are, and for whoever learns only.
    pub fn rows_for_learning(&self, reading: &Reading<'_>, sink: &mut Sink<'_>) -> Result<Numbers, QueryError> {
        let widths = self.check_learning(reading)?.widths;
        let user = self.user_of(reading.dataset)?.filter(|_| reading.users);
        let element = self.element(reading.dataset).filter(|_| reading.elements).cloned();
        let mut wanted: Vec<Expr> = reading.features.iter().map(|name| own(name)).collect();
        let target = reading.target.map(|target| own(target.column));
        let parts = [target.is_some(), user.is_some(), element.is_some()];
        wanted.extend([target, user.map(own), element].into_iter().flatten());
        let mut gathered = Gathered::new(reading, widths, parts);
        let before = reading.features.len() + usize::from(parts[0]);
        let whose = [parts[1].then_some(before), parts[2].then(|| before + usize::from(parts[1]))];
        self.each_batch(reading.dataset, reading.filter, (wanted, whose), &mut |batch| gathered.take(batch, sink))?;
        Ok(gathered.numbers)
    }

    /// How many rows there are and whose they are. For feature and label units, whose neighbours agree on both, and for filters of public columns: no other
    /// column is read.
    pub fn in_view_for_learning(&self, dataset: &str, filter: Option<&str>) -> Result<InView, QueryError> {
        let user = self.user_of(dataset)?;
        let mut found = InView { rows: 0, users: user.map(|_| Vec::new()) };
        let wanted = vec![user.map_or_else(|| datafusion::prelude::lit(true), own)];
        self.each_batch(dataset, filter, (wanted, [user.map(|_| 0), None]), &mut |batch| {
            found.rows += batch.num_rows();
            if let Some(users) = &mut found.users {
                users.extend(owners_of(dataset, Role::User, batch.column(0))?);
            }
            Ok(())
        })?;
        Ok(found)
    }

    /// Goes through some expressions of the rows that a filter lets through, one batch after the other, so that rows come as they stand in their files. Which of
    /// them are the user and the element is derived again from what the engine makes of it.
    fn each_batch(
        &self,
        dataset: &str,
        filter: Option<&str>,
        (wanted, [user, element]): (Vec<Expr>, [Option<usize>; 2]),
        take: &mut dyn FnMut(&RecordBatch) -> Result<(), QueryError>,
    ) -> Result<(), QueryError> {
        let filter = self.filter_of(dataset, filter)?;
        let named = wanted.into_iter().enumerate().map(|(place, expr)| expr.alias(format!("whit_{place}")));
        let work = async {
            let context = self.warehouse().context();
            // A state that made its own catalogue would put it in the place of the one that has the tables.
            let config = context.state().config().clone().with_create_default_catalog_and_schema(false);
            let config = config.with_target_partitions(1).with_extension(Arc::new(Patience::from_the_start()));
            let state = SessionStateBuilder::new_from_existing(context.state()).with_config(config).build();
            let table = context.table(TableReference::bare(dataset)).await.map_err(|error| planning(&error))?;
            let mut plan = LogicalPlanBuilder::from(table.into_unoptimized_plan());
            if let Some(filter) = filter {
                plan = plan.filter(filter).map_err(|error| planning(&error))?;
            }
            let plan = plan.project(named).and_then(LogicalPlanBuilder::build).map_err(|error| planning(&error))?;
            let plan = crate::evaluate::guarded(plan, &state)?;
            let owners = whose::owners(self.warehouse().declaration(), &self.elements, &self.scans);
            let physical = whose::engine_plan_of_rows(&plan, &state, &owners, user, element).await;
            let physical = physical.map_err(|error| planning(&error))?;
            let stream = datafusion::physical_plan::execute_stream(physical, context.task_ctx());
            let mut stream = stream.map_err(|error| running(&error))?;
            while let Some(batch) = stream.next().await {
                take(&batch.map_err(|error| running(&error))?)?;
            }
            Ok::<(), QueryError>(())
        };
        // Rows are read on the thread of the caller, and the words of a panic may hold values of one.
        let done = quietly(|| self.runtime().block_on(work));
        done.unwrap_or_else(|| Err(QueryError::failed("the rows could not be read to their end: a panic")))
    }
}

/// Who or what the rows of a column belong to: numbers of their values, and of nothing else.
fn owners_of(dataset: &str, role: Role, column: &ArrayRef) -> Result<Vec<u64>, QueryError> {
    // An error of the engine's may speak of a value.
    let wrong = |_| {
        let what = if role == Role::User { "users" } else { "elements" };
        QueryError::failed(format!("the {what} of `{dataset}` cannot be told apart"))
    };
    hashes(std::slice::from_ref(column), column.len(), PUBLIC, role).map_err(wrong)
}

fn short(hash: &blake3::Hash) -> u64 {
    u64::from_le_bytes(hash.as_bytes()[..8].try_into().unwrap_or_default())
}

struct Gathered<'a> {
    reading: &'a Reading<'a>,
    widths: Vec<usize>,
    parts: [bool; 3],
    numbers: Numbers,
    /// How many rows came, with those that were left out.
    came: u64,
}

impl<'a> Gathered<'a> {
    fn new(reading: &'a Reading<'a>, widths: Vec<usize>, parts: [bool; 3]) -> Self {
        let numbers = Numbers {
            users: parts[1].then(Vec::new),
            elements: parts[2].then(Vec::new),
            contents: reading.contents.then(Vec::new),
            ..Numbers::default()
        };
        Self { reading, widths, parts, numbers, came: 0 }
    }

    fn take(&mut self, batch: &RecordBatch, sink: &mut Sink<'_>) -> Result<(), QueryError> {
        let (columns, rows) = (self.reading.features.len(), batch.num_rows());
        if rows == 0 {
            return Ok(());
        }
        let mut fits = vec![true; rows];
        let mut opened = Vec::with_capacity(columns);
        for (place, &width) in self.widths.iter().enumerate() {
            let one = Opened::of(batch.column(place), width, self.reading.bits, self.reading.scaled, &mut fits);
            opened.push(one.map_err(|why| self.engine(place, &why))?);
        }
        let mut next = columns;
        let mut targets = None;
        if let Some(target) = self.reading.target.filter(|_| self.parts[0]) {
            let values = target_values(batch.column(next), target, &mut fits);
            targets = Some(values.map_err(|why| QueryError::failed(format!("`{}` {why}", target.column)))?);
            next += 1;
        }
        let mut owners: [Option<Vec<u64>>; 2] = [None, None];
        for (which, role) in [Role::User, Role::Element].into_iter().enumerate() {
            if !self.parts[which + 1] {
                continue;
            }
            let column = batch.column(next);
            // A row without a user or an element is no user's; where rows stay in view, all such are one user's.
            if let Some(nulls) = column.logical_nulls() {
                fits.iter_mut().zip(&nulls).for_each(|(fits, there)| *fits &= there);
            }
            owners[which] = Some(owners_of(self.reading.dataset, role, column)?);
            next += 1;
        }
        let first = self.came;
        self.came += rows as u64;
        let mut kept = rows;
        if self.reading.misfits == Misfits::LeftOut && fits.contains(&false) {
            kept = fits.iter().filter(|fits| **fits).count();
            let out = fits.iter().zip(first..).filter(|(fits, _)| !**fits).map(|(_, row)| row);
            self.numbers.left_out.extend(out);
            for one in &mut opened {
                one.retain(&fits);
            }
            for values in owners.iter_mut().flatten() {
                keep(values, &fits);
            }
            if let Some(targets) = &mut targets {
                keep(targets, &fits);
            }
        }
        if kept == 0 {
            return Ok(());
        }
        if let Some(contents) = &mut self.numbers.contents {
            contents.extend((0..kept).map(|row| content(&opened, targets.as_deref(), row)));
        }
        hand_on(&opened, kept, self.widths.iter().sum(), sink)?;
        self.numbers.targets.extend(targets.into_iter().flatten());
        let [users, elements] = owners;
        for (all, some) in [(&mut self.numbers.users, users), (&mut self.numbers.elements, elements)] {
            if let (Some(all), Some(some)) = (all, some) {
                all.extend(some);
            }
        }
        self.numbers.rows += kept;
        Ok(())
    }

    /// What an engine could not do, whatever is in the rows.
    fn engine(&self, place: usize, why: &str) -> QueryError {
        QueryError::failed(format!("`{}.{}` {why}", self.reading.dataset, self.reading.features[place]))
    }
}

/// Keeps those that fit.
fn keep<T>(values: &mut Vec<T>, fits: &[bool]) {
    let mut flags = fits.iter();
    values.retain(|_| flags.next().copied().unwrap_or(false));
}

/// A hash of one row's numbers and target.
fn content(columns: &[Opened], targets: Option<&[f32]>, row: usize) -> u64 {
    let mut hasher = blake3::Hasher::new();
    for column in columns {
        let range = row * column.width..(row + 1) * column.width;
        match &column.values {
            Values::Bytes(values) => hasher.update(&values[range]),
            Values::Floats(values) => {
                let bytes: Vec<u8> = values[range].iter().flat_map(|value| value.to_le_bytes()).collect();
                hasher.update(&bytes)
            }
        };
    }
    if let Some(targets) = targets {
        hasher.update(&targets[row].to_le_bytes());
    }
    short(&hasher.finalize())
}

/// What is to be predicted of each row, as a number. What does not fit is 0, and its row is marked.
fn target_values(column: &ArrayRef, target: Target<'_>, fits: &mut [bool]) -> Result<Vec<f32>, String> {
    let Target { classes, fits: range, .. } = target;
    let words = classes.filter(|classes| match column.data_type() {
        DataType::Boolean => classes.iter().any(|name| name == "true" || name == "false"),
        other => !other.is_numeric(),
    });
    if let Some(classes) = words {
        let texts = soft(column, &DataType::Utf8)?;
        let place = |(text, fits): (Option<&str>, &mut bool)| {
            let place = text.and_then(|text| classes.iter().position(|class| class == text));
            *fits &= place.is_some();
            place.unwrap_or(0) as f32
        };
        return Ok(texts.as_string::<i32>().iter().zip(fits).map(place).collect());
    }
    let opened = Opened::of(column, 1, false, (1.0, 0.0), fits)?;
    let numbers: Vec<f32> = match opened.values {
        Values::Bytes(values) => values.iter().map(|&byte| f32::from(byte)).collect(),
        Values::Floats(values) => values.to_vec(),
    };
    let may_be = |value: f32| {
        classes.is_none_or(|classes| value.fract() == 0.0 && (0.0..classes.len() as f32).contains(&value))
            && match range {
                Fits::Any => true,
                Fits::NotNegative => value >= 0.0,
                Fits::ZeroOrOne => value == 0.0 || value == 1.0,
            }
    };
    let checked = numbers.into_iter().zip(fits).map(|(value, fits)| {
        let good = may_be(value);
        *fits &= good;
        if good { value } else { 0.0 }
    });
    Ok(checked.collect())
}

/// So many numbers are brought together at a time: they stay in the nearer caches while columns are laid side by side.
const AT_ONCE: usize = 1 << 15;

/// Hands the rows of columns to a sink.
fn hand_on(columns: &[Opened], rows: usize, width: usize, sink: &mut Sink<'_>) -> Result<(), QueryError> {
    if let [Opened { values, .. }] = columns {
        return match values {
            Values::Bytes(values) => sink(width, Block::Bytes(values)),
            Values::Floats(values) => sink(width, Block::Floats(values)),
        };
    }
    let bytes = columns.iter().all(|column| matches!(column.values, Values::Bytes(_)));
    let (mut of_bytes, mut of_floats) = (Vec::new(), Vec::new());
    let at_once = (AT_ONCE / width.max(1)).max(1);
    for first in (0..rows).step_by(at_once) {
        let part = first..rows.min(first + at_once);
        if bytes {
            of_bytes.resize(part.len() * width, 0);
        } else {
            of_floats.resize(part.len() * width, 0.0);
        }
        let mut start = 0;
        for Opened { values, width: own } in columns {
            let range = part.start * own..part.end * own;
            let to = Strip { start, own: *own, width };
            match values {
                Values::Bytes(values) if bytes => to.lay(&values[range], &mut of_bytes, |byte| byte),
                Values::Bytes(values) => to.lay(&values[range], &mut of_floats, f32::from),
                Values::Floats(values) => to.lay(&values[range], &mut of_floats, |value| value),
            }
            start += own;
        }
        sink(width, if bytes { Block::Bytes(&of_bytes) } else { Block::Floats(&of_floats) })?;
    }
    Ok(())
}

/// Where a column's numbers stand in a row.
struct Strip {
    start: usize,
    own: usize,
    width: usize,
}

impl Strip {
    fn lay<T: Copy, U>(&self, values: &[T], rows: &mut [U], made: impl Fn(T) -> U) {
        for (row, values) in rows.chunks_exact_mut(self.width).zip(values.chunks_exact(self.own)) {
            let places = &mut row[self.start..self.start + self.own];
            places.iter_mut().zip(values).for_each(|(place, &value)| *place = made(value));
        }
    }
}

#[cfg(test)]
mod tests;
