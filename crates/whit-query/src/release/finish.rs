//! From released tables to the answer: HAVING, ORDER BY, LIMIT and expressions, with intervals for all that is made of noise.
//!
//! All of this is post-processing. Where a column is an expression of noisy values, its interval comes from computing it again with the
//! noisy measures moved as far as their noise may have moved them ([`Design`]). Measures have independent noise; values made of them
//! (an average and a count) have not.

use super::outline::{ROW, part_schema};
use super::{ReleasedPart, Tables, frame};
use crate::answer::{Answer, Cell, Column, Role, Statement, Value};
use crate::engine::planning;
use crate::error::QueryError;
use crate::plan::{Part, Plan, Statistic, part_name, track};
use crate::sanitise::noise::Together;
use crate::sanitise::statistic::Noisy;
use crate::sanitise::{Noise, short};
use datafusion::arrow::array::{
    Array, ArrayRef, AsArray, Float64Array, Int64Array, RecordBatch, StringArray, StringViewArray,
};
use datafusion::arrow::compute::{cast, concat_batches};
use datafusion::arrow::datatypes::{DataType, Float64Type, Int64Type};
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::datasource::{MemTable, provider_as_source};
use datafusion::logical_expr::{Expr, LogicalPlan, Operator, Projection};
use datafusion::scalar::ScalarValue;
use std::collections::BTreeSet;
use std::sync::Arc;

/// The largest number below 2^63 that is a float.
const MOST: f64 = 9_223_372_036_854_774_784.0;
/// A derived value is computed again for no more rows than this altogether.
const MOST_ROWS: usize = 400_000;
/// Nor where more noises than this come together.
const MOST_NOISES: usize = 8;

/// A released table: its keys, and then its statistics.
pub(super) struct Table<'a> {
    /// How many columns are keys.
    pub(super) keys: usize,
    /// The names and types of the columns.
    pub(super) output: &'a [(String, DataType)],
    /// Statistic by statistic, whether it is exact.
    pub(super) exact: Vec<bool>,
    /// Statistic by statistic, whether caps may leave something out of it.
    pub(super) after_caps: &'a [bool],
    /// The part and the noise of its measures, where the table is made of measures.
    pub(super) made_of: Option<(&'a Part, &'a [Noise])>,
    /// Whether the intervals of a column hold all at once, and so also of rows that are picked by their values.
    pub(super) all_at_once: bool,
    /// What was released.
    pub(super) released: &'a ReleasedPart,
}

impl<'a> Table<'a> {
    /// The released table of a part.
    pub(super) fn of(part: &'a Part, noise: &'a [Noise], released: &'a ReleasedPart) -> Self {
        let exact = part.statistics.iter().map(|statistic| matches!(statistic, Statistic::Exact(_))).collect();
        let kept = !noise.is_empty() && released.measures.len() == noise.len();
        let made_of = kept.then_some((part, noise));
        let (keys, output, after_caps) = (part.keys.len(), &part.output, &part.after_caps);
        Self { keys, output, exact, after_caps, made_of, all_at_once: false, released }
    }
}

/// Finishes an answer: `after` reads the tables, each under the name of its part.
pub(super) fn answer(
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
        format!("; with --confidence {all} all {groups} of a column would hold at once, the picked ones among them")
    });
    format!(
        "rows are picked by noisy values (HAVING, WHERE, or ORDER BY with LIMIT), and so in part for their noise: the \
         intervals of those that show hold less often than {} %; ask without picking, or for the most frequent items \
         with `whit hitters --top`{all}",
        short(100.0 * confidence)
    )
}

/// What a plan's answer will say of rows that it picks by noisy values, if it does.
pub(crate) fn picking(plan: &Plan, confidence: f64) -> Option<String> {
    let [part] = plan.parts.as_slice() else { return None };
    let released = ReleasedPart { keys: Vec::new(), cells: Vec::new(), measures: Vec::new(), found: Vec::new() };
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
fn is_noisy(expr: &Expr, input: &LogicalPlan, part: &Table<'_>) -> bool {
    expr.column_refs().into_iter().any(|column| {
        let place = input.schema().maybe_index_of_column(column);
        place.and_then(|place| uses(input, place, part)).is_none_or(|used| role_of(&used, part) == Role::Noisy)
    })
}

/// The ends of a cell's interval, beside the value as a column of this type shows it: whole where that is, and around
/// it in any case. A whole truth stays inside, since rounding keeps the order of numbers.
fn shown_ends(shown: &Value, cell: &Cell, kind: &DataType) -> (Option<f64>, Option<f64>) {
    let whole = |end: f64| if kind.is_integer() { within_type(end, kind) } else { end };
    let at = match shown {
        Value::Int(value) => Some(*value as f64),
        Value::Float(value) => Some(*value).filter(|value| value.is_finite()),
        Value::Null | Value::Bool(_) | Value::Text(_) => None,
    };
    let low = cell.low.map(whole).map(|end| at.map_or(end, |at| end.min(at)));
    let high = cell.high.map(whole).map(|end| at.map_or(end, |at| end.max(at)));
    (low, high)
}

/// The nearest number that a whole type has.
fn within_type(value: f64, kind: &DataType) -> f64 {
    let (low, high) = if kind.is_unsigned_integer() { (0.0, 18_446_744_073_709_549_568.0) } else { (-MOST, MOST) };
    value.round().clamp(low, high)
}

fn table(part: &Table<'_>, released: &ReleasedPart) -> Result<RecordBatch, QueryError> {
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
fn is_placeholder(plan: &LogicalPlan) -> bool {
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
pub(super) fn visible(after: &LogicalPlan, part: &Part) -> Option<Vec<(String, Result<usize, usize>)>> {
    let released = ReleasedPart { keys: Vec::new(), cells: Vec::new(), measures: Vec::new(), found: Vec::new() };
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
pub(super) fn moments(
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
fn evaluated(
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

/// The plan without what leaves rows out or orders them.
fn all_rows(plan: &LogicalPlan) -> Option<LogicalPlan> {
    match plan {
        LogicalPlan::Filter(_) | LogicalPlan::Sort(_) | LogicalPlan::Limit(_) => all_rows(plan.inputs().first()?),
        LogicalPlan::Projection(projection) if is_placeholder(&projection.input) => Some(plan.clone()),
        LogicalPlan::Projection(_) | LogicalPlan::SubqueryAlias(_) => {
            let input = all_rows(plan.inputs().first()?)?;
            plan.with_new_exprs(plan.expressions(), vec![input]).ok()
        }
        _ => None,
    }
}

/// What is moved to see how far an expression follows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Axis {
    /// A measure, whose noise is independent of the others'.
    Measure(usize),
    /// A statistic of which the measures are not kept: its own interval is moved over. It is the only axis then.
    Cell(usize),
}

/// Along which axes values are moved, and to which points: 0 is what was released, and from −1 to 1 each noise stays with such a
/// confidence that all do with that of the answer.
struct Design {
    axes: Vec<Axis>,
    /// Axis by axis, how many steps 1 is worth; of a cell, 1: it is moved to the ends of its interval.
    reach: Vec<f64>,
    /// Measures are moved by whole steps, and so are the points.
    points: Vec<Vec<f64>>,
    /// Point by point, whether it belongs to what holds with the answer's confidence. Noise that is mostly 0 stays there;
    /// it is moved to see its slope alone.
    inside: Vec<bool>,
    /// From here on points stand in lines, `ALONG` of them on each.
    first_line: usize,
}

/// Into so many steps a line through the box is divided.
const LINE: usize = 24;
/// So many points stand on it: the ends of its steps, and one more beside either end.
const ALONG: usize = LINE + 3;
/// What bends by no more than this share of its noise is straight, also if it seems to turn.
const STRAIGHT: f64 = 0.05;

impl Design {
    /// The design for these columns; nothing where there are none, or too many. Nor where something that is known by
    /// its interval alone meets another: that of a percentile, a least or a largest value is for one confidence, and
    /// how much wider it would be for a larger one does not follow from it.
    fn new(part: &Table<'_>, used: &BTreeSet<usize>, confidence: f64) -> Option<Self> {
        let mut axes = BTreeSet::new();
        for statistic in used.iter().filter_map(|&column| column.checked_sub(part.keys)) {
            match part.made_of.map(|(made_of, _)| &made_of.statistics[statistic]) {
                _ if part.exact[statistic] => {}
                Some(Statistic::Count(i) | Statistic::Sum(i)) => axes.extend([Axis::Measure(*i)]),
                Some(Statistic::Mean { sum, count }) => axes.extend([*sum, *count].map(Axis::Measure)),
                Some(Statistic::Spread { sum, squares, count, .. }) => {
                    axes.extend([*sum, *squares, *count].map(Axis::Measure));
                }
                _ => axes.extend([Axis::Cell(statistic)]),
            }
        }
        let axes: Vec<Axis> = axes.into_iter().collect();
        if axes.is_empty() || axes.len() > MOST_NOISES {
            return None;
        }
        if axes.len() > 1 && axes.iter().any(|axis| matches!(axis, Axis::Cell(_))) {
            return None;
        }
        // All hold at once, however they hang together.
        let (wrong, many) = (1.0 - confidence, axes.len() as f64);
        let reach = |axis: &Axis| match (axis, part.made_of) {
            (Axis::Measure(i), Some((_, noise))) => noise[*i].reach(wrong / many),
            // A cell is alone, and its interval is for the confidence of the answer.
            _ => 1.0,
        };
        let within: Vec<f64> = axes.iter().map(reach).collect();
        // At least one step: how far an expression follows is to be seen also where the noise is mostly 0.
        let reach: Vec<f64> = within.iter().map(|reach| reach.max(1.0)).collect();
        let mut points: Vec<Vec<f64>> = vec![vec![0.0; axes.len()]];
        for axis in 0..axes.len() {
            for to in [-1.0, -0.5, 0.5, 1.0] {
                let mut point = vec![0.0; axes.len()];
                point[axis] = to;
                points.push(point);
            }
        }
        let corner =
            |signs: usize| (0..axes.len()).map(|axis| if signs >> axis & 1 == 1 { 1.0 } else { -1.0 }).collect();
        points.extend((0..1 << axes.len()).filter(|_| axes.len() > 1).map(corner));
        // Lines through the box, axis by axis and from corner to corner: what turns on the way, such as ABS, is seen to.
        let mut lines: Vec<Vec<f64>> = Vec::new();
        for axis in 0..axes.len() {
            lines.push((0..axes.len()).map(|other| if other == axis { 1.0 } else { 0.0 }).collect());
        }
        // One of two opposite corners stands for both. Of very many noises the axes have to do.
        lines.extend((0..1 << (axes.len() - 1)).filter(|_| (2..=4).contains(&axes.len())).map(corner));
        let first_line = points.len();
        let inset = |(axis, reach): (&Axis, &f64)| match axis {
            // Not beyond the next point, or the line would go back and forth.
            Axis::Measure(_) => reach.recip().min(2.0 / LINE as f64),
            Axis::Cell(_) => 1e-3,
        };
        let insets: Vec<f64> = axes.iter().zip(&reach).map(inset).collect();
        for line in &lines {
            let at = |to: f64| -> Vec<f64> { line.iter().map(|end| to * end).collect() };
            // One step of the coarsest noise from either end: what turns in the last part of a line shows there.
            let insets = line.iter().zip(&insets).filter(|(end, _)| **end != 0.0).map(|(_, inset)| *inset);
            let near = 1.0 - insets.fold(0.0, f64::max);
            points.extend([at(-1.0), at(-near)]);
            points.extend((1..LINE).map(|step| at(2.0 * step as f64 / LINE as f64 - 1.0)));
            points.extend([at(near), at(1.0)]);
        }
        for point in &mut points {
            for ((axis, reach), to) in axes.iter().zip(&reach).zip(point) {
                if matches!(axis, Axis::Measure(_)) {
                    *to = (*to * reach).round() / reach;
                }
            }
        }
        let held = |point: &Vec<f64>| point.iter().zip(&within).all(|(&to, &reach)| to == 0.0 || reach > 0.0);
        let inside = points.iter().map(held).collect();
        Some(Self { axes, reach, points, inside, first_line })
    }

    /// The table with all values moved to one point.
    fn cells(&self, part: &Table<'_>, point: &[f64], confidence: f64) -> Result<Vec<Vec<Cell>>, QueryError> {
        let released = part.released;
        let mut cells = released.cells.clone();
        let mut measures = released.measures.clone();
        for ((axis, reach), &to) in self.axes.iter().zip(&self.reach).zip(point) {
            match axis {
                Axis::Measure(i) => {
                    let by = (to * reach).round() as i64;
                    measures[*i].iter_mut().for_each(|value| *value = value.saturating_add(by));
                }
                Axis::Cell(statistic) => cells[*statistic].iter_mut().for_each(|cell| shift(cell, to * reach)),
            }
        }
        if let Some((made_of, noise)) = part.made_of {
            let noisy = Noisy::new(made_of, noise, measures, &released.found, confidence);
            for (statistic, column) in made_of.statistics.iter().zip(&mut cells) {
                for (cell, value) in
                    column.iter_mut().zip(noisy.values(statistic, released.keys.len())?.into_iter().flatten())
                {
                    cell.value = value;
                }
            }
        }
        Ok(cells)
    }

    /// The interval of an expression, from its values at all points.
    ///
    /// What is as good as linear in the noises has the interval of their sum, with the confidence of the answer, and as
    /// much on either side as the value bends anywhere among the points. What bends more reaches from the least to the
    /// most that it comes to at the points of the box, in which each of m noises is with a chance of being out of 1/m
    /// of the answer's, so that all are with the answer's confidence; and where it turns along a line, by the largest
    /// step of all lines beyond that, since it may turn between two points. Points stand on whole steps, so that a line
    /// from corner to corner goes in a zigzag: what is less than one step of each noise is no turn there.
    ///
    /// Tried, not proved, in three ways. How much a value bends is seen in the box alone, and the noises of the sum are
    /// in it with the answer's confidence and no more. What happens between the points is not seen. And of what has
    /// poles, a divisor that passes through 0 is found by a value that both rises and falls along an axis, and by no
    /// other line: a quotient rises or falls all along an axis, but from corner to corner it may turn. So a pole that
    /// lies near a corner and meets no axis is found only if a point comes to no finite number.
    fn interval(&self, values: &[f64], together: Option<&Together<'_>>, poles: bool) -> Option<(f64, f64)> {
        let inside = || values.iter().zip(&self.inside).filter(|(_, inside)| **inside).map(|(value, _)| *value);
        if inside().any(|value| !value.is_finite()) {
            return None;
        }
        let (least, most) = inside().fold((values[0], values[0]), |(a, b), value| (a.min(value), b.max(value)));
        // The points −1 and 1 of an axis are the first and the last of its four.
        let slope = |axis: usize| (values[4 + 4 * axis] - values[1 + 4 * axis]) / 2.0;
        let slopes: Vec<f64> = (0..self.axes.len()).map(slope).collect();
        let coefficients: Vec<f64> = slopes.iter().zip(&self.reach).map(|(slope, reach)| slope / reach).collect();
        let hair = 1e-9 * (most - least).abs();
        let zigzag: f64 = coefficients.iter().map(|step| step.abs()).filter(|step| step.is_finite()).sum();
        // Of a line along a noise that is mostly 0, only the middle is inside.
        let lines: Vec<Vec<f64>> = values[self.first_line..]
            .chunks_exact(ALONG)
            .zip(self.inside[self.first_line..].chunks_exact(ALONG))
            .map(|(along, inside)| {
                along.iter().zip(inside).filter(|(_, inside)| **inside).map(|(value, _)| *value).collect()
            })
            .collect();
        let turning = |(line, along): (usize, &Vec<f64>)| {
            let hair = if line < self.axes.len() { hair } else { hair + zigzag };
            let steps = || along.windows(2).map(|pair| pair[1] - pair[0]);
            steps().any(|step| step > hair) && steps().any(|step| step < -hair)
        };
        // A quotient rises or falls all along an axis; from corner to corner it may turn.
        if poles && lines.iter().enumerate().take(self.axes.len()).any(turning) {
            return None;
        }
        let turns = lines.iter().enumerate().any(turning);
        let between = lines.iter().flat_map(|along| along.windows(2)).map(|pair| (pair[1] - pair[0]).abs());
        let between = if turns { between.fold(0.0, f64::max) } else { 0.0 };
        let bent = self.points.iter().zip(values).zip(&self.inside).filter(|(_, inside)| **inside);
        let bent = bent.map(|((point, value), _)| {
            // What a noise that stays at 0 would add is nothing, whatever its slope.
            let moved = point.iter().zip(&slopes).filter(|(to, _)| **to != 0.0);
            let straight: f64 = moved.map(|(to, slope)| to * slope).sum();
            (value - values[0] - straight).abs()
        });
        let bent = bent.fold(0.0, f64::max);
        if let Some(together) = together {
            let alone = together.within(&coefficients);
            let within = alone + bent;
            if (!turns || bent <= STRAIGHT * alone) && 2.0 * within < most - least {
                return Some((values[0] - within, values[0] + within));
            }
        }
        Some((least - between, most + between))
    }
}

/// Moves a value by so many times the reach of its interval.
fn shift(cell: &mut Cell, by: f64) {
    let at = match cell.value {
        Value::Int(value) => value as f64,
        Value::Float(value) => value,
        Value::Null | Value::Bool(_) | Value::Text(_) => return,
    };
    let end = if by < 0.0 { cell.low } else { cell.high };
    let to = at + by.abs() * (end.unwrap_or(f64::NAN) - at);
    cell.value = match cell.value {
        Value::Int(_) if to.is_finite() => Value::Int(to.round() as i64),
        _ => Value::Float(to),
    };
}

/// Both ends of an interval; nothing where they cannot be told.
type Ends = Option<(f64, f64)>;

/// Intervals for one column that is an expression of noisy values, one a group; nothing where they cannot be told.
fn moved(
    tables: &Tables,
    after: &LogicalPlan,
    part: &Table<'_>,
    confidence: f64,
    (column, used): (usize, &BTreeSet<usize>),
) -> Result<Option<Vec<Ends>>, QueryError> {
    let released = part.released;
    let groups = released.keys.len();
    let leap = leap(after, column, part).unwrap_or(Leap::Pole);
    if leap == Leap::Jump {
        return Ok(None);
    }
    let (Some(everything), Some(design)) = (all_rows(after), Design::new(part, used, confidence)) else {
        return Ok(None);
    };
    if design.points.len() * groups > MOST_ROWS || groups == 0 {
        return Ok(None);
    }
    let empty = vec![Vec::with_capacity(design.points.len() * groups); released.cells.len()];
    let mut all = ReleasedPart { keys: Vec::new(), cells: empty, measures: Vec::new(), found: Vec::new() };
    for point in &design.points {
        all.keys.extend(released.keys.iter().cloned());
        for (all, cells) in all.cells.iter_mut().zip(design.cells(part, point, confidence)?) {
            all.extend(cells);
        }
    }
    let batch = table(part, &all)?;
    let Some(values) = evaluated(tables, &everything, &batch, column, design.points.len() * groups)? else {
        return Ok(None);
    };
    let by_group = (0..groups).map(|group| values.iter().skip(group).step_by(groups).copied().collect::<Vec<_>>());
    let noises = design.axes.iter().map(|axis| match (axis, part.made_of) {
        (Axis::Measure(i), Some((_, noise))) => Some(&noise[*i]),
        _ => None,
    });
    let together = noises.collect::<Option<Vec<_>>>().map(|noises| Together::new(noises, confidence));
    let poles = leap == Leap::Pole;
    Ok(Some(by_group.map(|values| design.interval(&values, together.as_ref(), poles)).collect()))
}

/// How an expression of noisy values may leap where they move but little.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Leap {
    /// Not at all, or only upwards or only downwards, as rounding does.
    None,
    /// To infinity and back, where a divisor passes through 0; and whatever is not known to do less.
    Pole,
    /// Back and forth, as a remainder does: what lies between two points tells nothing of it.
    Jump,
}

/// How one column of a plan may leap, by the expressions that it is made of alone, and so whatever the noise was; nothing where these
/// cannot be followed.
fn leap(plan: &LogicalPlan, column: usize, part: &Table<'_>) -> Option<Leap> {
    match plan {
        LogicalPlan::Projection(projection) if is_placeholder(&projection.input) => Some(Leap::None),
        LogicalPlan::Projection(projection) => {
            let expr = projection.expr.get(column)?;
            let mut worst = Leap::None;
            let _ = expr.apply(|node| {
                worst = worst.max(own_leap(node, |inner| is_noisy(inner, &projection.input, part)));
                Ok(TreeNodeRecursion::Continue)
            });
            let inner: BTreeSet<&datafusion::common::Column> = expr.column_refs().into_iter().collect();
            for inner in inner {
                let place = projection.input.schema().maybe_index_of_column(inner)?;
                worst = worst.max(leap(&projection.input, place, part)?);
            }
            Some(worst)
        }
        LogicalPlan::Filter(_) | LogicalPlan::Sort(_) | LogicalPlan::Limit(_) | LogicalPlan::SubqueryAlias(_) => {
            leap(plan.inputs().first()?, column, part)
        }
        _ => None,
    }
}

/// How a step of an expression may leap by itself.
fn own_leap(expr: &Expr, is_noisy: impl Fn(&Expr) -> bool) -> Leap {
    match expr {
        Expr::BinaryExpr(binary) => match binary.op {
            Operator::Divide if is_noisy(binary.right.as_ref()) => Leap::Pole,
            Operator::Modulo | Operator::BitwiseAnd | Operator::BitwiseOr | Operator::BitwiseXor
                if is_noisy(binary.left.as_ref()) || is_noisy(binary.right.as_ref()) =>
            {
                Leap::Jump
            }
            _ => Leap::None,
        },
        Expr::ScalarFunction(function) if function.args.iter().any(&is_noisy) => match function.name() {
            "abs" | "round" | "floor" | "ceil" | "trunc" | "signum" | "sqrt" | "cbrt" | "exp" | "sin" | "cos"
            | "atan" | "sinh" | "cosh" | "tanh" | "asinh" | "degrees" | "radians" | "greatest" | "least"
            | "coalesce" => Leap::None,
            "power" if function.args.get(1).is_some_and(is_whole_exponent) => Leap::None,
            "gcd" | "lcm" => Leap::Jump,
            _ => Leap::Pole,
        },
        _ => Leap::None,
    }
}

/// Whether an exponent is a constant whole number from 0 on: such a power is a polynomial, which has no pole.
fn is_whole_exponent(expr: &Expr) -> bool {
    match expr {
        Expr::Cast(cast) => is_whole_exponent(&cast.expr),
        Expr::TryCast(cast) => is_whole_exponent(&cast.expr),
        Expr::Literal(value, _) => value.cast_to(&DataType::Float64).is_ok_and(
            |value| matches!(value, ScalarValue::Float64(Some(power)) if power >= 0.0 && power.fract() == 0.0),
        ),
        _ => false,
    }
}
