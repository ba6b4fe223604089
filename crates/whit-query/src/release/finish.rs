//! From released tables to the answer: HAVING, ORDER BY, LIMIT and expressions, with intervals for all that is made of noise.
//!
//! All of this is post-processing. Where a column is an expression of noisy values, its interval comes from computing it again with the
//! noisy measures moved as far as their noise may have moved them ([`interval`](super::interval)). Measures have independent noise; values made of them
//! (an average and a count) have not.

use super::after::{
    Table, carry, direct, evaluated, in_no_order, is_noisy, is_placeholder, place, role_of, role_of_several, run,
    table, uses, within_type,
};
use super::interval::{all_rows, moved};
use super::united::{Branch, United};
use super::{ReleasedPart, Tables, frame};
use crate::answer::{Answer, Cell, Column, Role, Statement, Value};
use crate::error::QueryError;
use crate::plan::outline::ROW;
use crate::plan::{Part, Plan, title};
use crate::sanitise::short;
use datafusion::arrow::array::{Array, AsArray};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType, Int64Type};
use datafusion::logical_expr::LogicalPlan;
use std::sync::Arc;

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
    // So do several that stand below one another.
    let united = if parts.len() > 1 { United::of(after, parts) } else { None };
    let (after, branches) = match (carried, united) {
        (Some(carried), _) => {
            let alone = Branch { part: 0, after: carried.clone(), first: 0 };
            (carried, vec![alone])
        }
        (None, Some(united)) => (united.after, united.branches),
        (None, None) => (after.clone(), Vec::new()),
    };
    let (names, mut whole) = run(tables, &after, &batches)?;
    let visible: Vec<usize> = (0..names.len()).filter(|&i| names[i] != ROW).collect();
    let numeric: Vec<bool> = whole.columns().iter().map(|column| column.data_type().is_numeric()).collect();
    let columns_of = |i: usize| if traced { uses(&after, i, &parts[0]) } else { None };
    let role = |i: usize| match columns_of(i) {
        Some(used) => role_of(&used, &parts[0]),
        None if parts.is_empty() => Role::Exact,
        None if !numeric[i] => Role::Key,
        None => role_of_several(&after, i, parts).unwrap_or(Role::Noisy),
    };
    if in_no_order(&after) {
        let (keys, others): (Vec<usize>, Vec<usize>) = visible.iter().partition(|&&i| role(i) == Role::Key);
        let by: Vec<_> = keys.into_iter().chain(others).map(|i| Arc::clone(whole.column(i))).collect();
        whole = frame::in_order_of(&whole, &by)?;
    }
    let asked = title::written(&statement.question);
    let title = |i: usize| if traced { title(&after, i, parts[0].output) } else { None };
    let after_caps = |i: usize| match columns_of(i) {
        Some(used) => used.iter().filter_map(|&i| i.checked_sub(parts[0].keys)).any(|i| parts[0].after_caps[i]),
        None => role(i) == Role::Noisy && parts.iter().any(|part| part.after_caps.contains(&true)),
    };
    let column = |&i: &usize| Column {
        name: called(title(i), asked.get(i), &names[i]),
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
    if let Some(ids) = names.iter().position(|name| name == ROW).filter(|_| !branches.is_empty()) {
        let ids: Vec<usize> =
            whole.column(ids).as_primitive::<Int64Type>().values().iter().map(|&id| id as usize).collect();
        let numeric: Vec<bool> = visible.iter().map(|&i| numeric[i]).collect();
        for branch in &branches {
            let shown = ShownRows { columns: &columns, visible: &visible, numeric: &numeric, ids: &ids };
            intervals(tables, branch, &parts[branch.part], &shown, statement.confidence, &mut rows)?;
        }
    }
    // That there is no row was released, and what is said of it follows from the question and its declaration alone.
    if rows.is_empty() && parts.iter().any(|part| part.selected && part.released.keys.is_empty()) {
        statement.notes.push(NO_GROUP.to_owned());
    }
    // Where rows cannot be followed there are no intervals to speak of.
    let picked = |branch: &&Branch| !parts[branch.part].all_at_once && picks(&branch.after, &parts[branch.part]);
    if branches.iter().any(|branch| picked(&branch)) {
        let groups = parts.iter().map(|part| part.released.keys.len()).sum();
        statement.notes.push(picked_by_noise(statement.confidence, Some(groups)));
    }
    Ok(Answer { columns, rows, statement })
}

/// The rows of an answer as they are shown.
struct ShownRows<'a> {
    columns: &'a [Column],
    /// For each of them, which column it is of what comes after.
    visible: &'a [usize],
    /// Whether it is a number.
    numeric: &'a [bool],
    /// The number of each row.
    ids: &'a [usize],
}

/// Gives the rows of one table their intervals.
fn intervals(
    tables: &Tables,
    branch: &Branch,
    part: &Table<'_>,
    shown: &ShownRows<'_>,
    confidence: f64,
    rows: &mut [Vec<Cell>],
) -> Result<(), QueryError> {
    let groups = part.released.keys.len();
    let own: Vec<(usize, usize)> = shown
        .ids
        .iter()
        .enumerate()
        .filter_map(|(row, id)| Some((row, id.checked_sub(branch.first).filter(|&group| group < groups)?)))
        .collect();
    for (place, &i) in shown.visible.iter().enumerate() {
        if let Some(statistic) = direct(&branch.after, i).and_then(|column| column.checked_sub(part.keys)) {
            let kind = &part.output[part.keys + statistic].1;
            for &(row, group) in &own {
                let (cell, found) = (&mut rows[row][place], &part.released.cells[statistic][group]);
                (cell.low, cell.high) = shown_ends(&cell.value, found, kind);
            }
        } else if shown.columns[place].role == Role::Noisy && shown.numeric[place] {
            let Some(used) = uses(&branch.after, i, part) else { continue };
            let Some(found) = moved(tables, &branch.after, part, confidence, (i, &used))? else { continue };
            for &(row, group) in &own {
                let (cell, ends) = (&mut rows[row][place], found[group]);
                (cell.low, cell.high) = (ends.map(|ends| ends.0), ends.map(|ends| ends.1));
            }
        }
    }
    Ok(())
}

/// What to do where no group shows.
const NO_GROUP: &str = "no group shows: one does only if enough of the units that are protected have it, so that none is found by a key of its own. \
                        More show with a larger ε or δ, with coarser groups, or with fewer groups of one unit; with GROUP BY all of \
                        them show where their keys are listed, if these are known without looking (columns.NAME.keys)";

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

/// What a column is called that is a column of the part: as the question calls it, or else as it would write it.
fn title(plan: &LogicalPlan, column: usize, output: &[(String, DataType)]) -> Option<String> {
    let (name, direct) = (title::shown(plan.schema().field(column).name()), direct(plan, column)?);
    let mut below = plan;
    while let Some(input) = below.inputs().first().copied().filter(|input| !matches!(input, LogicalPlan::TableScan(_)))
    {
        below = input;
    }
    let LogicalPlan::Projection(placeholder) = below else { return None };
    let own = placeholder.expr.iter().position(|expr| place(expr) == Some(direct))?;
    let own = below.schema().field(own).name();
    let title = &output.get(direct)?.0;
    Some(if name == own || name.eq_ignore_ascii_case(title) { title.clone() } else { name.to_owned() })
}

/// What a column is called: by its title, as the question wrote it, or as the engine calls it. A title that is the engine's own gives way to what was written: where a
/// function has several names, the engine gives a column another than its own.
fn called(title: Option<String>, written: Option<&Option<String>>, engine: &str) -> String {
    let written = written.and_then(Option::as_ref);
    match (title, written) {
        (Some(title), Some(written)) if title == title::shown(engine) => written.clone(),
        (Some(title), _) => title,
        (None, Some(written)) => written.clone(),
        (None, None) => title::shown(engine).to_owned(),
    }
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
pub(crate) fn visible(sql: &str, after: &LogicalPlan, part: &Part) -> Option<Vec<(String, Result<usize, usize>)>> {
    let released = ReleasedPart::default();
    let table = Table::of(part, &[], &released);
    let (after, asked) = (carry(after)?, title::written(sql));
    let mut columns = Vec::new();
    for (i, field) in after.schema().fields().iter().enumerate().filter(|(_, field)| field.name() != ROW) {
        let role = role_of(&uses(&after, i, &table)?, &table);
        let name = called(title(&after, i, table.output), asked.get(i), field.name());
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
