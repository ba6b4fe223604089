//! From released tables to the answer: HAVING, ORDER BY, LIMIT and expressions, with intervals for all that is made of noise.
//!
//! All of this is post-processing. Where a column is an expression of noisy values, its interval comes from computing it again with the
//! noisy measures moved as far as their noise may have moved them ([`interval`](super::interval)). Measures have independent noise; values made of them
//! (an average and a count) have not.

use super::interval::{all_rows, moved};
use super::{ReleasedPart, Tables, frame};
use crate::answer::{Answer, Cell, Column, Role, Statement, Value};
use crate::error::{QueryError, planning};
use crate::plan::outline::{ROW, part_schema};
use crate::plan::{Part, Plan, Statistic, part_name, track};
use crate::sanitise::short;
use datafusion::arrow::array::{
    Array, ArrayRef, AsArray, Float64Array, Int64Array, RecordBatch, StringArray, StringViewArray,
};
use datafusion::arrow::compute::{cast, concat_batches};
use datafusion::arrow::datatypes::{DataType, Float64Type, Int64Type};
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::datasource::{MemTable, provider_as_source};
use datafusion::logical_expr::{Expr, LogicalPlan, Projection};
use datafusion::scalar::ScalarValue;
use std::collections::BTreeSet;
use std::sync::Arc;
use whit_core::mechanism::additive::Additive;

/// The largest number below 2^63 that is a float.
const MOST: f64 = 9_223_372_036_854_774_784.0;

/// A released table: its keys, and then its statistics.
pub(crate) struct Table<'a> {
    /// How many columns are keys.
    pub(crate) keys: usize,
    /// The names and types of the columns.
    pub(crate) output: &'a [(String, DataType)],
    /// Statistic by statistic, whether it is exact.
    pub(crate) exact: Vec<bool>,
    /// Statistic by statistic, whether caps may leave something out of it.
    pub(crate) after_caps: &'a [bool],
    /// The part and the noise of its measures, where the table is made of measures.
    pub(crate) made_of: Option<(&'a Part, &'a [Additive])>,
    /// Whether the intervals of a column hold all at once, and so also of rows that are picked by their values.
    pub(crate) all_at_once: bool,
    /// What was released.
    pub(crate) released: &'a ReleasedPart,
}

impl<'a> Table<'a> {
    /// The released table of a part.
    pub(crate) fn of(part: &'a Part, noise: &'a [Additive], released: &'a ReleasedPart) -> Self {
        let exact = part.statistics.iter().map(Statistic::is_exact).collect();
        // What was made of other measures than are planned today is known by its intervals alone.
        let all = part.measures.len();
        let kept = all > 0 && noise.len() == all && released.measures.len() == all;
        let made_of = kept.then_some((part, noise));
        let (keys, output, after_caps) = (part.keys.len(), &part.output, &part.after_caps);
        Self { keys, output, exact, after_caps, made_of, all_at_once: false, released }
    }
}

/// Finishes an answer: `after` reads the tables, each under the name of its part.
pub(crate) fn answer(
    tables: &Tables,
    after: &LogicalPlan,
    parts: &[Table<'_>],
    mut statement: Statement,
) -> Result<Answer, QueryError> {
    let batches = parts.iter().map(|part| table(part, part.released)).collect::<Result<Vec<_>, _>>()?;
    // One part whose rows can be followed to the end gets intervals; where tables are joined or added up, it does not.
    let carried = if parts.len() == 1 { carry(after) } else { None };
    let traced = carried.is_some();
    let after = carried.unwrap_or_else(|| after.clone());
    let (names, whole) = run(tables, &after, &batches)?;
    let visible: Vec<usize> = (0..names.len()).filter(|&i| names[i] != ROW).collect();
    let columns_of = |i: usize| if traced { uses(&after, i, &parts[0]) } else { None };
    let role = |i: usize| match columns_of(i) {
        Some(used) => role_of(&used, &parts[0]),
        None if parts.is_empty() => Role::Exact,
        None if whole.column(i).data_type().is_numeric() => Role::Noisy,
        None => Role::Key,
    };
    let title = |i: usize| if traced { title(&after, i, parts[0].output) } else { None };
    let after_caps = |i: usize| match columns_of(i) {
        Some(used) => used.iter().filter_map(|&i| i.checked_sub(parts[0].keys)).any(|i| parts[0].after_caps[i]),
        None => role(i) == Role::Noisy && parts.iter().any(|part| part.after_caps.contains(&true)),
    };
    let column = |&i: &usize| Column {
        name: title(i).unwrap_or_else(|| names[i].clone()),
        role: role(i),
        after_caps: after_caps(i),
    };
    let columns: Vec<Column> = visible.iter().map(column).collect();
    // Keys that are decimals are written with all their digits; what has noise has none to spare, and is a number.
    let written = |&i: &usize| match whole.column(i) {
        column if role(i) == Role::Noisy && column.data_type().is_decimal() => {
            frame::values(&cast(column, &DataType::Float64).map_err(frame::wrong)?)
        }
        column => frame::values(column),
    };
    let values = visible.iter().map(written).collect::<Result<Vec<_>, _>>()?;
    let mut rows: Vec<Vec<Cell>> = (0..whole.num_rows())
        .map(|row| values.iter().map(|column| Cell { value: column[row].clone(), low: None, high: None }).collect())
        .collect();
    if let (true, Some(ids)) = (traced, names.iter().position(|name| name == ROW)) {
        let ids = whole.column(ids).as_primitive::<Int64Type>();
        let part = &parts[0];
        let derived: Vec<usize> = visible
            .iter()
            .enumerate()
            .filter(|&(place, &i)| {
                let direct = direct(&after, i).and_then(|column| column.checked_sub(part.keys));
                if let Some(statistic) = direct {
                    for (row, cells) in rows.iter_mut().enumerate() {
                        let cell = &part.released.cells[statistic][ids.value(row) as usize];
                        let kind = &part.output[part.keys + statistic].1;
                        (cells[place].low, cells[place].high) = shown_ends(&cells[place].value, cell, kind);
                    }
                }
                direct.is_none() && columns[place].role == Role::Noisy && whole.column(i).data_type().is_numeric()
            })
            .map(|(place, _)| place)
            .collect();
        for place in derived {
            let Some(used) = uses(&after, visible[place], part) else { continue };
            let Some(found) = moved(tables, &after, part, statement.confidence, (visible[place], &used))? else {
                continue;
            };
            for (row, cells) in rows.iter_mut().enumerate() {
                let ends = found[ids.value(row) as usize];
                (cells[place].low, cells[place].high) = (ends.map(|ends| ends.0), ends.map(|ends| ends.1));
            }
        }
    }
    // Where rows cannot be followed there are no intervals to speak of.
    if let ([part], true) = (parts, traced)
        && !part.all_at_once
        && picks(&after, part)
    {
        statement.notes.push(picked_by_noise(statement.confidence, Some(part.released.keys.len())));
    }
    Ok(Answer { columns, rows, statement })
}

/// What intervals are worth where rows are picked by noisy values, of so many groups where that is known.
fn picked_by_noise(confidence: f64, groups: Option<usize>) -> String {
    // If each of so many is wrong so seldom, all hold at once; whichever are picked are among them.
    let all = groups.filter(|&groups| groups > 1).map_or_else(String::new, |groups| {
        let all = format!("{:.9}", 1.0 - (1.0 - confidence) / groups as f64);
        let all = all.trim_end_matches('0');
        format!("; with a confidence of {all} all {groups} of a column would hold at once, the picked ones among them")
    });
    format!(
        "rows are picked by noisy values (HAVING, WHERE, or ORDER BY with LIMIT), and so in part for their noise: the \
         intervals of those that show hold less often than {} %; ask without picking, or for the most frequent items \
         as heavy hitters{all}",
        short(100.0 * confidence)
    )
}

/// What a plan's answer will say of rows that it picks by noisy values, if it does.
pub(crate) fn picking(plan: &Plan, confidence: f64) -> Option<String> {
    let [part] = plan.parts.as_slice() else { return None };
    let released = ReleasedPart::default();
    let table = Table::of(part, &[], &released);
    let after = carry(&plan.after)?;
    picks(&after, &table).then(|| picked_by_noise(confidence, None))
}

/// Whether a plan leaves rows out by values that have noise: by a filter, or as those behind the first in such an order.
fn picks(plan: &LogicalPlan, part: &Table<'_>) -> bool {
    let own = match plan {
        LogicalPlan::Filter(filter) => is_noisy(&filter.predicate, &filter.input, part),
        LogicalPlan::Sort(sort) => sort.fetch.is_some() && is_ordered_by_noise(plan, part),
        LogicalPlan::Limit(limit) => is_ordered_by_noise(&limit.input, part),
        _ => false,
    };
    own || plan.inputs().first().is_some_and(|input| !is_placeholder(input) && picks(input, part))
}

/// Whether the rows of a plan stand in an order that noise has a part in.
fn is_ordered_by_noise(plan: &LogicalPlan, part: &Table<'_>) -> bool {
    match plan {
        LogicalPlan::Sort(sort) => sort.expr.iter().any(|key| is_noisy(&key.expr, &sort.input, part)),
        LogicalPlan::Projection(_) | LogicalPlan::Filter(_) | LogicalPlan::Limit(_) | LogicalPlan::SubqueryAlias(_) => {
            plan.inputs().first().is_some_and(|input| is_ordered_by_noise(input, part))
        }
        _ => false,
    }
}

/// Whether an expression over a plan's columns has noise in it, as far as they can be followed.
pub(super) fn is_noisy(expr: &Expr, input: &LogicalPlan, part: &Table<'_>) -> bool {
    expr.column_refs().into_iter().any(|column| {
        let place = input.schema().maybe_index_of_column(column);
        place.and_then(|place| uses(input, place, part)).is_none_or(|used| role_of(&used, part) == Role::Noisy)
    })
}

/// The ends of a cell's interval, next to the value as a column of this type shows it: whole where that is, and around
/// it in any case. They are rounded outwards: where rows count for less, a count is a fraction.
fn shown_ends(shown: &Value, cell: &Cell, kind: &DataType) -> (Option<f64>, Option<f64>) {
    // A hair for what only arithmetic has put next to a whole number.
    let hair = |end: f64| 1e-9 * end.abs().max(1.0);
    let down = |end: f64| if kind.is_integer() { within_type((end + hair(end)).floor(), kind) } else { end };
    let up = |end: f64| if kind.is_integer() { within_type((end - hair(end)).ceil(), kind) } else { end };
    let at = match shown {
        Value::Int(value) => Some(*value as f64),
        Value::Float(value) => Some(*value).filter(|value| value.is_finite()),
        Value::Null | Value::Bool(_) | Value::Text(_) => None,
    };
    let low = cell.low.map(down).map(|end| at.map_or(end, |at| end.min(at)));
    let high = cell.high.map(up).map(|end| at.map_or(end, |at| end.max(at)));
    (low, high)
}

/// The nearest number that a whole type has.
fn within_type(value: f64, kind: &DataType) -> f64 {
    let (low, high) = if kind.is_unsigned_integer() { (0.0, 18_446_744_073_709_549_568.0) } else { (-MOST, MOST) };
    value.round().clamp(low, high)
}

pub(super) fn table(part: &Table<'_>, released: &ReleasedPart) -> Result<RecordBatch, QueryError> {
    let groups = released.keys.len();
    let mut arrays: Vec<ArrayRef> = Vec::new();
    for (i, (_, kind)) in part.output.iter().enumerate() {
        let value = |group: usize| match i.checked_sub(part.keys) {
            None => &released.keys[group][i],
            Some(statistic) => &released.cells[statistic][group].value,
        };
        arrays.push(array((0..groups).map(value), kind)?);
    }
    arrays.push(Arc::new(Int64Array::from_iter_values(0..groups as i64)));
    RecordBatch::try_new(Arc::new(part_schema(part.output)), arrays)
        .map_err(|error| QueryError::failed(error.to_string()))
}

fn array<'a>(values: impl Iterator<Item = &'a Value> + Clone, kind: &DataType) -> Result<ArrayRef, QueryError> {
    if let Some(array) = plain_array(values.clone(), kind) {
        return Ok(array);
    }
    let least = if kind.is_unsigned_integer() { 0 } else { i64::MIN };
    let wrong = |error: datafusion::common::DataFusionError| QueryError::failed(error.strip_backtrace());
    let scalar = |value: &Value| -> datafusion::common::Result<ScalarValue> {
        match value {
            Value::Null => ScalarValue::try_from(kind),
            Value::Bool(value) => ScalarValue::Boolean(Some(*value)).cast_to(kind),
            Value::Int(value) => ScalarValue::Int64(Some((*value).max(least))).cast_to(kind),
            Value::Float(value) => {
                // A sum may be larger than its type, and noise may take it below zero: that is no reason to fail.
                let value = if kind.is_integer() { within_type(*value, kind) } else { *value };
                ScalarValue::Float64(Some(value)).cast_to(kind)
            }
            Value::Text(text) => ScalarValue::Utf8(Some(text.clone())).cast_to(kind),
        }
    };
    // A key that cannot be read back, such as a day beyond the calendar, is missing: that is no reason to fail.
    let scalar = |value: &Value| scalar(value).or_else(|_| ScalarValue::try_from(kind));
    let scalars = values.map(scalar).collect::<Result<Vec<_>, _>>().map_err(wrong)?;
    if scalars.is_empty() {
        return Ok(datafusion::arrow::array::new_empty_array(kind));
    }
    ScalarValue::iter_to_array(scalars).map_err(wrong)
}

/// The same where the values are of the very type, which most are.
fn plain_array<'a>(values: impl Iterator<Item = &'a Value>, kind: &DataType) -> Option<ArrayRef> {
    Some(match kind {
        DataType::Int64 => {
            let whole = values.map(|value| match value {
                Value::Int(value) => Some(*value),
                _ => None,
            });
            Arc::new(whole.collect::<Option<Int64Array>>()?)
        }
        DataType::Float64 => {
            let floats = values.map(|value| match value {
                Value::Float(value) => Some(*value),
                _ => None,
            });
            Arc::new(floats.collect::<Option<Float64Array>>()?)
        }
        DataType::Utf8 | DataType::Utf8View => {
            let texts = values.map(|value| match value {
                Value::Text(text) => Some(text.as_str()),
                _ => None,
            });
            let texts = texts.collect::<Option<Vec<&str>>>()?;
            if kind == &DataType::Utf8 {
                Arc::new(StringArray::from(texts))
            } else {
                Arc::new(StringViewArray::from(texts))
            }
        }
        _ => return None,
    })
}

/// Runs what comes after, over these tables.
fn run(
    tables: &Tables,
    after: &LogicalPlan,
    batches: &[RecordBatch],
) -> Result<(Vec<String>, RecordBatch), QueryError> {
    if let ([batch], Some(picked)) = (batches, picked(after)) {
        let names = after.schema().fields().iter().map(|field| field.name().clone()).collect();
        let picked = picked.into_iter().map(|column| column.unwrap_or(batch.num_columns() - 1)).collect::<Vec<_>>();
        let picked = batch.project(&picked).map_err(|error| QueryError::failed(error.to_string()))?;
        return Ok((names, picked));
    }
    let filled = after.clone().transform_up(|node| {
        Ok(match node {
            LogicalPlan::TableScan(mut scan) => {
                let number = (0..batches.len()).find(|&i| part_name(i) == scan.table_name.table());
                match number {
                    None => Transformed::no(LogicalPlan::TableScan(scan)),
                    Some(number) => {
                        let batch = batches[number].clone();
                        let table = MemTable::try_new(batch.schema(), vec![vec![batch]])?;
                        scan.source = provider_as_source(Arc::new(table));
                        Transformed::yes(LogicalPlan::TableScan(scan))
                    }
                }
            }
            other => Transformed::no(other),
        })
    });
    let filled = filled.map_err(|error| planning(&error))?.data;
    let names = filled.schema().fields().iter().map(|field| field.name().clone()).collect();
    let batches = tables.collect(&filled)?;
    let schema = batches.first().map_or_else(|| Arc::new(filled.schema().as_arrow().clone()), RecordBatch::schema);
    let whole = concat_batches(&schema, &batches).map_err(|error| QueryError::failed(error.to_string()))?;
    Ok((names, whole))
}

/// Which columns of the only table a plan picks, where it does nothing else; nothing for the number of the group.
fn picked(plan: &LogicalPlan) -> Option<Vec<Option<usize>>> {
    let mut below = plan;
    while let LogicalPlan::Projection(_) | LogicalPlan::SubqueryAlias(_) = below {
        below = below.inputs().first()?;
    }
    if !is_placeholder(below) {
        return None;
    }
    let fields = plan.schema().fields().iter().enumerate();
    fields.map(|(i, field)| if field.name() == ROW { Some(None) } else { direct(plan, i).map(Some) }).collect()
}

/// Whether a plan is the scan of a released table.
pub(super) fn is_placeholder(plan: &LogicalPlan) -> bool {
    matches!(plan, LogicalPlan::TableScan(scan) if scan.table_name.table() == part_name(0))
}

/// The same plan with the number of the group carried to the end; nothing where rows are not followed so simply.
fn carry(plan: &LogicalPlan) -> Option<LogicalPlan> {
    match plan {
        LogicalPlan::Projection(projection) => {
            if is_placeholder(&projection.input) {
                return Some(plan.clone()); // the placeholder itself
            }
            let input = carry(&projection.input)?;
            let mut exprs = projection.expr.clone();
            exprs.push(track::hidden(input.schema(), ROW)?);
            Projection::try_new(exprs, Arc::new(input)).ok().map(LogicalPlan::Projection)
        }
        LogicalPlan::Filter(_) | LogicalPlan::Sort(_) | LogicalPlan::Limit(_) | LogicalPlan::SubqueryAlias(_) => {
            let input = carry(plan.inputs().first()?)?;
            plan.with_new_exprs(plan.expressions(), vec![input]).ok()
        }
        _ => None,
    }
}

/// Which columns of the part one column of the result is made of.
fn uses(plan: &LogicalPlan, column: usize, part: &Table<'_>) -> Option<BTreeSet<usize>> {
    match plan {
        LogicalPlan::Projection(projection) => {
            let expr = projection.expr.get(column)?;
            if is_placeholder(&projection.input) {
                return Some(place(expr).into_iter().filter(|&place| place < part.output.len()).collect());
            }
            let mut used = BTreeSet::new();
            let inner: BTreeSet<&datafusion::common::Column> = expr.column_refs().into_iter().collect();
            for inner in inner {
                used.extend(uses(&projection.input, projection.input.schema().maybe_index_of_column(inner)?, part)?);
            }
            Some(used)
        }
        LogicalPlan::Filter(_) | LogicalPlan::Sort(_) | LogicalPlan::Limit(_) | LogicalPlan::SubqueryAlias(_) => {
            uses(plan.inputs().first()?, column, part)
        }
        _ => None,
    }
}

fn role_of(used: &BTreeSet<usize>, part: &Table<'_>) -> Role {
    let keys = part.keys;
    let noisy = used.iter().filter_map(|&i| i.checked_sub(keys)).any(|i| !part.exact[i]);
    if noisy {
        Role::Noisy
    } else if !used.is_empty() && used.iter().all(|&i| i < keys) {
        Role::Key
    } else {
        Role::Exact
    }
}

/// Which column of the part an expression of the placeholder is: they are called c0, c1 and so on.
fn place(expr: &Expr) -> Option<usize> {
    match expr {
        Expr::Alias(alias) => place(&alias.expr),
        Expr::Column(column) => column.name.strip_prefix('c')?.parse().ok(),
        _ => None,
    }
}

/// The column of the part that one column of the result is, unchanged.
fn direct(plan: &LogicalPlan, column: usize) -> Option<usize> {
    match plan {
        LogicalPlan::Projection(projection) => {
            if is_placeholder(&projection.input) {
                return place(projection.expr.get(column)?);
            }
            let mut expr = projection.expr.get(column)?;
            while let Expr::Alias(alias) = expr {
                expr = &alias.expr;
            }
            let Expr::Column(inner) = expr else { return None };
            direct(&projection.input, projection.input.schema().maybe_index_of_column(inner)?)
        }
        LogicalPlan::Filter(_) | LogicalPlan::Sort(_) | LogicalPlan::Limit(_) | LogicalPlan::SubqueryAlias(_) => {
            direct(plan.inputs().first()?, column)
        }
        _ => None,
    }
}

/// What a column is called that is a column of the part: as the question calls it, or else as it would write it.
fn title(plan: &LogicalPlan, column: usize, output: &[(String, DataType)]) -> Option<String> {
    let (name, direct) = (plan.schema().field(column).name(), direct(plan, column)?);
    let mut below = plan;
    while let Some(input) = below.inputs().first().copied().filter(|input| !matches!(input, LogicalPlan::TableScan(_)))
    {
        below = input;
    }
    let LogicalPlan::Projection(placeholder) = below else { return None };
    let own = placeholder.expr.iter().position(|expr| place(expr) == Some(direct))?;
    let own = below.schema().field(own).name();
    let title = &output.get(direct)?.0;
    Some(if name == own || name.eq_ignore_ascii_case(title) { title.clone() } else { name.clone() })
}

/// What the columns of a plan's only part are called in its answer.
pub(crate) fn titles(plan: &Plan, part: &Part) -> Vec<String> {
    let mut titles: Vec<String> = part.output.iter().map(|(name, _)| name.clone()).collect();
    for column in 0..plan.after.schema().fields().len() {
        if let (1, Some(place)) = (plan.parts.len(), direct(&plan.after, column))
            && let (Some(title), Some(own)) = (title(&plan.after, column, &part.output), titles.get_mut(place))
        {
            *own = title;
        }
    }
    titles
}

/// The columns that a question shows of its only part: each by its name, and which statistic it is, or else which column of what comes
/// after; nothing where rows cannot be followed.
pub(crate) fn visible(after: &LogicalPlan, part: &Part) -> Option<Vec<(String, Result<usize, usize>)>> {
    let released = ReleasedPart::default();
    let table = Table::of(part, &[], &released);
    let after = carry(after)?;
    let mut columns = Vec::new();
    for (i, field) in after.schema().fields().iter().enumerate().filter(|(_, field)| field.name() != ROW) {
        let role = role_of(&uses(&after, i, &table)?, &table);
        let name = title(&after, i, table.output).unwrap_or_else(|| field.name().clone());
        match direct(&after, i).and_then(|column| column.checked_sub(table.keys)) {
            Some(statistic) => columns.push((name, Ok(statistic))),
            None if role == Role::Noisy && field.data_type().is_numeric() => columns.push((name, Err(i))),
            None => {}
        }
    }
    Some(columns)
}

/// What one column of what comes after is, group by group; no number where it is none.
pub(crate) fn moments(
    tables: &Tables,
    after: &LogicalPlan,
    part: &Table<'_>,
    column: usize,
) -> Result<Vec<f64>, QueryError> {
    let nothing = vec![f64::NAN; part.released.keys.len()];
    let Some(everything) = carry(after).and_then(|after| all_rows(&after)) else { return Ok(nothing) };
    Ok(evaluated(tables, &everything, &table(part, part.released)?, column, nothing.len())?.unwrap_or(nothing))
}

/// One column of a plan over this table, by the number of the row.
pub(super) fn evaluated(
    tables: &Tables,
    plan: &LogicalPlan,
    batch: &RecordBatch,
    column: usize,
    rows: usize,
) -> Result<Option<Vec<f64>>, QueryError> {
    let (names, whole) = run(tables, plan, std::slice::from_ref(batch))?;
    let Some(row_column) = names.iter().position(|name| name == ROW) else { return Ok(None) };
    let order = whole.column(row_column).as_primitive::<Int64Type>();
    let Ok(values) = cast(whole.column(column), &DataType::Float64) else { return Ok(None) };
    let values = values.as_primitive::<Float64Type>();
    let mut found = vec![f64::NAN; rows];
    for row in (0..whole.num_rows()).filter(|&row| values.is_valid(row)) {
        found[order.value(row) as usize] = values.value(row);
    }
    Ok(Some(found))
}
