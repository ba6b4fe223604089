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
mod encode;
mod lay;
mod made;
mod open;
mod split;

pub use split::{SplitBy, SplitPart};

use crate::bound::hash::{PUBLIC, Role, hashes};
use crate::canonical::Canonical;
use crate::error::{QueryError, planning, running};
use crate::evaluate::attempt::quietly;
use crate::source::{Patience, Stamps, Tables};
use crate::whose;
use datafusion::arrow::array::{Array, ArrayRef, AsArray, RecordBatch};
use datafusion::arrow::datatypes::DataType;
use datafusion::common::{Column, TableReference};
use datafusion::execution::SessionStateBuilder;
use datafusion::logical_expr::{Expr, LogicalPlanBuilder};
use futures::StreamExt;
use lay::hand_on;
use made::{CONDITION, Made};
use open::{Opened, Values, soft};
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::Arc;
use whit_account::ledger::Register;
use whit_core::declare::Owning;
use whit_core::feature::Feature;

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
    /// The column, or an expression in SQL over one row.
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
    /// Columns and expressions, and how they become numbers; in order.
    pub features: &'a [Feature],
    /// How many numbers a row has in columns whose type does not say so.
    pub widths: &'a BTreeMap<String, usize>,
    /// Whether bytes are opened up to bits, the highest first.
    pub bits: bool,
    /// Every number of a plain feature is to become `scale · x + offset`: one for which that is infinite does not fit.
    pub scaled: (f32, f32),
    /// What is to be predicted; nothing where that is not asked for.
    pub target: Option<Target<'a>>,
    /// Which rows: an expression in SQL over columns of the table.
    pub filter: Option<&'a str>,
    /// Which of the two parts into which they are split; all of them where they are not.
    pub part: Option<SplitPart>,
    /// Whether users are read, where a column of them is declared.
    pub users: bool,
    /// Whether elements are.
    pub elements: bool,
    /// Whether a hash of what is read of each row is wanted, by which some rows can be chosen.
    pub contents: bool,
    /// What happens to rows that do not fit.
    pub misfits: Misfits,
    /// Columns that are handed on as text, whatever is in them.
    pub carried: &'a [String],
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
    /// The texts of columns that are carried along, column by column.
    pub carried: Vec<Vec<Option<String>>>,
    /// How many rows there are.
    pub rows: usize,
    /// Which rows were left out, counted from 0 as they came. For the owner only.
    pub left_out: Vec<u64>,
}

/// What is known of a reading before a row is read.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Checked {
    /// Which columns of the filter are not public, so that a row that changes may come or go.
    pub private: Vec<String>,
    /// The features, with the keys and ranges that are declared where the reading says none.
    pub features: Vec<Feature>,
    /// How many numbers a row has in each of them.
    pub widths: Vec<usize>,
    /// The columns that each of them reads.
    pub reads: Vec<Vec<String>>,
    /// The columns that the target reads.
    pub target_reads: Vec<String>,
    /// What each feature that is no column means, however it is spelled, and last the target; null for columns.
    pub meanings: Vec<Value>,
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

/// Which rows.
struct RowChoice<'a> {
    dataset: &'a str,
    filter: Option<&'a str>,
    part: Option<SplitPart>,
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
        self.look_at(reading).map(|(checked, _)| checked)
    }

    /// The same, with features and target as they are computed.
    fn look_at(&self, reading: &Reading<'_>) -> Result<(Checked, Vec<Made>), QueryError> {
        let source = self.warehouse().source(reading.dataset)?;
        let texts: Vec<&str> = reading.features.iter().map(|feature| feature.of.as_str()).collect();
        let mut made = self.made(reading.dataset, &texts, "features")?;
        let (features, widths) = self.as_declared(source, reading, &made)?;
        let reads = made.iter().map(|made| made.reads.clone()).collect();
        let mut target_reads = Vec::new();
        if let Some(target) = reading.target {
            let of = self.made(reading.dataset, &[target.column], "target")?;
            of.iter().try_for_each(|of| columns::check_target(source, target, &of.kind))?;
            target_reads = of.iter().flat_map(|of| of.reads.clone()).collect();
            made.extend(of);
        }
        if let Some(part) = &reading.part {
            part.columns(source, self.user_of(reading.dataset)?)?;
        }
        reading.carried.iter().try_for_each(|name| columns::check_carried(source, name))?;
        let meanings = made.iter().map(|made| made.meaning.clone()).collect();
        let (private, mut condition) = self.check_filter(reading.dataset, reading.filter)?;
        if let Some(part) = &reading.part {
            condition = part.meaning(&condition);
        }
        Ok((Checked { private, features, widths, reads, target_reads, meanings, condition }, made))
    }

    /// Which columns of a filter are private, and what it means.
    fn check_filter(&self, dataset: &str, filter: Option<&str>) -> Result<(Vec<String>, Value), QueryError> {
        let Some(filter) = self.filter_of(dataset, filter)? else { return Ok((Vec::new(), Value::Null)) };
        let table = self.runtime().block_on(self.warehouse().context().table(TableReference::bare(dataset)));
        let table = table.map_err(|error| planning(&error))?.into_unoptimized_plan();
        let condition = Canonical::of(&table, self.warehouse().context(), &|_| None)?.expression(&filter)?;
        // One that can never be computed is not paid for.
        let plan = LogicalPlanBuilder::from(table).filter(filter.clone()).and_then(LogicalPlanBuilder::build);
        let plan = plan.map_err(|error| crate::translate::in_our_words(&error.strip_backtrace()).sentence);
        plan.and_then(|plan| self.rehearse_rows(&plan)).map_err(|words| {
            QueryError::asked(format!("the condition on rows of `{dataset}` cannot be computed: {words}"), CONDITION)
        })?;
        let unit = self.warehouse().source(dataset)?.dataset.unit.as_ref();
        let public = unit.map(|unit| unit.public.as_slice());
        let private = filter.column_refs().into_iter().map(|column| column.name.clone());
        let mut private: Vec<String> =
            private.filter(|name| public.is_some_and(|public| !public.contains(name))).collect();
        private.sort();
        Ok((private, condition))
    }

    /// The filter as an expression that cannot fail.
    fn filter_of(&self, dataset: &str, filter: Option<&str>) -> Result<Option<Expr>, QueryError> {
        filter.map(|sql| self.row_wise(dataset, sql, CONDITION)).transpose()
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
        let (checked, made) = self.look_at(reading)?;
        let user = self.user_of(reading.dataset)?.filter(|_| reading.users);
        let element = self.element(reading.dataset).filter(|_| reading.elements).cloned();
        let parts = [reading.target.is_some(), user.is_some(), element.is_some()];
        let before = made.len();
        let mut wanted: Vec<Expr> = made.into_iter().map(|made| made.expr).collect();
        wanted.extend([user.map(own), element].into_iter().flatten());
        wanted.extend(reading.carried.iter().map(|name| own(name)));
        let mut gathered = Gathered::new(reading, checked, parts);
        let whose = [parts[1].then_some(before), parts[2].then(|| before + usize::from(parts[1]))];
        let rows = RowChoice { dataset: reading.dataset, filter: reading.filter, part: reading.part };
        self.each_batch(&rows, (wanted, whose), &mut |batch| gathered.take(batch, sink))?;
        Ok(gathered.numbers)
    }

    /// How many rows there are and whose they are. For feature and label units, whose neighbours agree on both, and for filters and splits by public columns: no other
    /// column is read.
    pub fn in_view_for_learning(
        &self,
        dataset: &str,
        filter: Option<&str>,
        part: Option<SplitPart>,
    ) -> Result<InView, QueryError> {
        let user = self.user_of(dataset)?;
        let mut found = InView { rows: 0, users: user.map(|_| Vec::new()) };
        let wanted = vec![user.map_or_else(|| datafusion::prelude::lit(true), own)];
        let rows = RowChoice { dataset, filter, part };
        self.each_batch(&rows, (wanted, [user.map(|_| 0), None]), &mut |batch| {
            found.rows += batch.num_rows();
            if let Some(users) = &mut found.users {
                users.extend(owners_of(dataset, Role::User, batch.column(0))?);
            }
            Ok(())
        })?;
        Ok(found)
    }

    /// Goes through some expressions of the rows that were chosen, one batch after the other, so that rows come as they stand in their files. Which of
    /// them are the user and the element is derived again from what the engine makes of it.
    fn each_batch(
        &self,
        &RowChoice { dataset, filter, part }: &RowChoice<'_>,
        (mut wanted, [user, element]): (Vec<Expr>, [Option<usize>; 2]),
        take: &mut dyn FnMut(&RecordBatch) -> Result<(), QueryError>,
    ) -> Result<(), QueryError> {
        let filter = self.filter_of(dataset, filter)?;
        let first = wanted.len();
        if let Some(part) = &part {
            let names = part.columns(self.warehouse().source(dataset)?, self.user_of(dataset)?)?;
            wanted.extend(names.iter().map(|name| own(name)));
        }
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
                let batch = batch.map_err(|error| running(&error))?;
                take(&part.map_or(Ok(batch.clone()), |part| part.of(&batch, first))?)?;
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
    features: Vec<Feature>,
    widths: Vec<usize>,
    parts: [bool; 3],
    numbers: Numbers,
    /// How many rows came, with those that were left out.
    came: u64,
}

impl<'a> Gathered<'a> {
    fn new(reading: &'a Reading<'a>, checked: Checked, parts: [bool; 3]) -> Self {
        let numbers = Numbers {
            users: parts[1].then(Vec::new),
            elements: parts[2].then(Vec::new),
            contents: reading.contents.then(Vec::new),
            carried: vec![Vec::new(); reading.carried.len()],
            ..Numbers::default()
        };
        let Checked { features, widths, .. } = checked;
        Self { reading, features, widths, parts, numbers, came: 0 }
    }

    fn take(&mut self, batch: &RecordBatch, sink: &mut Sink<'_>) -> Result<(), QueryError> {
        let (columns, rows) = (self.features.len(), batch.num_rows());
        if rows == 0 {
            return Ok(());
        }
        let mut fits = vec![true; rows];
        let mut opened = Vec::with_capacity(columns);
        for (place, &width) in self.widths.iter().enumerate() {
            let Reading { bits, scaled, .. } = *self.reading;
            let one = encode::opened(&self.features[place], batch.column(place), (width, bits), scaled, &mut fits);
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
        for (place, texts) in self.numbers.carried.iter_mut().enumerate() {
            let column = soft(batch.column(next + place), &DataType::Utf8).map_err(QueryError::failed)?;
            let left_out = |row: usize| self.reading.misfits == Misfits::LeftOut && !fits[row];
            let own = column.as_string::<i32>().iter().enumerate().filter(|(row, _)| !left_out(*row));
            texts.extend(own.map(|(_, text)| text.map(str::to_owned)));
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
        QueryError::failed(format!("`{}.{}` {why}", self.reading.dataset, self.features[place].of))
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

#[cfg(test)]
mod tests;
