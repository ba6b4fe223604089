//! What is done with released tables is a plan over them: it is run here, and its columns are followed back to those of the tables.

use super::{ReleasedPart, Tables};
use crate::answer::{Role, Value};
use crate::bound::SumNoise;
use crate::error::{QueryError, planning};
use crate::plan::outline::{ROW, part_schema};
use crate::plan::{Groups, Part, Statistic, part_name, track};
use crate::sanitise::is_private;
use datafusion::arrow::array::{
    Array, ArrayRef, AsArray, Float64Array, Int64Array, RecordBatch, StringArray, StringViewArray,
};
use datafusion::arrow::compute::{cast, concat_batches};
use datafusion::arrow::datatypes::{DataType, Float64Type, Int64Type};
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::datasource::{MemTable, provider_as_source};
use datafusion::logical_expr::{Distinct, Expr, JoinType, LogicalPlan, LogicalPlanBuilder, Projection};
use datafusion::scalar::ScalarValue;
use std::collections::BTreeSet;
use std::sync::Arc;

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
    pub(crate) made_of: Option<(&'a Part, &'a [SumNoise])>,
    /// Whether nothing in it has noise, nor which groups there are.
    pub(crate) public: bool,
    /// Whether a group shows only where it has enough users.
    pub(crate) selected: bool,
    /// Whether the intervals of a column hold all at once, and so also of rows that are picked by their values.
    pub(crate) all_at_once: bool,
    /// What was released.
    pub(crate) released: &'a ReleasedPart,
}

impl<'a> Table<'a> {
    /// The released table of a part.
    pub(crate) fn of(part: &'a Part, noise: &'a [SumNoise], released: &'a ReleasedPart) -> Self {
        let exact = part.statistics.iter().map(Statistic::is_exact).collect();
        // What was made of other measures than are planned today is known by its intervals alone.
        let all = part.measures.len();
        let kept = all > 0 && noise.len() == all && released.measures.len() == all;
        let made_of = kept.then_some((part, noise));
        let (keys, output, after_caps) = (part.keys.len(), &part.output, &part.after_caps);
        let (public, selected) = (!is_private(part), part.groups == Groups::Selected);
        Self { keys, output, exact, after_caps, made_of, public, selected, all_at_once: false, released }
    }
}

/// Whether an expression over a plan's columns has noise in it, as far as they can be followed.
pub(super) fn is_noisy(expr: &Expr, input: &LogicalPlan, part: &Table<'_>) -> bool {
    expr.column_refs().into_iter().any(|column| {
        let place = input.schema().maybe_index_of_column(column);
        place.and_then(|place| uses(input, place, part)).is_none_or(|used| role_of(&used, part) == Role::Noisy)
    })
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

pub(super) fn array<'a>(
    values: impl Iterator<Item = &'a Value> + Clone,
    kind: &DataType,
) -> Result<ArrayRef, QueryError> {
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
pub(super) fn plain_array<'a>(values: impl Iterator<Item = &'a Value>, kind: &DataType) -> Option<ArrayRef> {
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
pub(super) fn run(
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
    let filled = with_limits_in_order(after.clone())?.transform_up(|node| {
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
pub(super) fn picked(plan: &LogicalPlan) -> Option<Vec<Option<usize>>> {
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
    matches!(plan, LogicalPlan::TableScan(scan) if scan.table_name.table().starts_with("__whit_part_"))
}

/// The same plan with the number of the group carried to the end; nothing where rows are not followed so simply.
pub(super) fn carry(plan: &LogicalPlan) -> Option<LogicalPlan> {
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
pub(super) fn uses(plan: &LogicalPlan, column: usize, part: &Table<'_>) -> Option<BTreeSet<usize>> {
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

/// What one column is of a plan over several tables, or over a table that is aggregated again; nothing where that cannot be followed.
///
/// What is aggregated of rows that are there or not for their noise has some itself.
pub(super) fn role_of_several(plan: &LogicalPlan, column: usize, parts: &[Table<'_>]) -> Option<Role> {
    let of_exprs = |expr: &Expr, input: &LogicalPlan| {
        let roles = expr
            .column_refs()
            .into_iter()
            .map(|inner| role_of_several(input, input.schema().maybe_index_of_column(inner)?, parts));
        let roles = roles.collect::<Option<Vec<_>>>()?;
        let has = |role: Role| roles.contains(&role);
        Some(if has(Role::Noisy) {
            Role::Noisy
        } else if has(Role::Key) && !has(Role::Exact) {
            Role::Key
        } else {
            Role::Exact
        })
    };
    match plan {
        LogicalPlan::Projection(projection) => {
            let expr = projection.expr.get(column)?;
            let LogicalPlan::TableScan(scan) = projection.input.as_ref() else {
                return of_exprs(expr, &projection.input);
            };
            let number = (0..parts.len()).find(|&i| part_name(i) == scan.table_name.table());
            match (number, place(expr)) {
                (Some(number), Some(place)) => Some(role_of(&BTreeSet::from([place]), &parts[number])),
                _ => of_exprs(expr, &projection.input),
            }
        }
        LogicalPlan::TableScan(_) | LogicalPlan::Values(_) | LogicalPlan::EmptyRelation(_) => Some(Role::Exact),
        LogicalPlan::Aggregate(aggregate) => match aggregate.group_expr.get(column) {
            Some(key) => of_exprs(key, &aggregate.input).map(|role| if role == Role::Noisy { role } else { Role::Key }),
            None if parts.iter().all(|part| part.public) => Some(Role::Exact),
            None => Some(Role::Noisy),
        },
        LogicalPlan::Filter(_)
        | LogicalPlan::Sort(_)
        | LogicalPlan::Limit(_)
        | LogicalPlan::Distinct(Distinct::All(_))
        | LogicalPlan::SubqueryAlias(_) => role_of_several(plan.inputs().first()?, column, parts),
        LogicalPlan::Join(join) if join.join_type == JoinType::Inner || join.join_type.is_outer() => {
            let left = join.left.schema().fields().len();
            match column.checked_sub(left) {
                None => role_of_several(&join.left, column, parts),
                Some(column) => role_of_several(&join.right, column, parts),
            }
        }
        LogicalPlan::Union(union) => {
            let roles = union.inputs.iter().map(|input| role_of_several(input, column, parts));
            let roles = roles.collect::<Option<Vec<_>>>()?;
            let most = |role: Role| roles.contains(&role).then_some(role);
            most(Role::Noisy).or_else(|| most(Role::Key)).or(Some(Role::Exact))
        }
        _ => None,
    }
}

/// Whether the order of a plan's rows is left to the engine, which takes them as its threads come: rows of joins and of groups that nothing puts in an order.
pub(super) fn in_no_order(plan: &LogicalPlan) -> bool {
    match plan {
        LogicalPlan::Projection(_) | LogicalPlan::Filter(_) | LogicalPlan::Limit(_) | LogicalPlan::SubqueryAlias(_) => {
            plan.inputs().first().is_some_and(|input| in_no_order(input))
        }
        LogicalPlan::Aggregate(_) | LogicalPlan::Distinct(_) | LogicalPlan::Join(_) | LogicalPlan::Union(_) => true,
        _ => false,
    }
}

/// The same plan, in which the first so many rows are the same each time it is run: where LIMIT picks from rows in no order, they are put in one before.
pub(super) fn with_limits_in_order(plan: LogicalPlan) -> Result<LogicalPlan, QueryError> {
    let done = plan.transform_up(|node| match node {
        LogicalPlan::Limit(mut limit) if in_no_order(&limit.input) => {
            // Lists and structures have no order.
            let plain = limit.input.schema().iter().filter(|(_, field)| !field.data_type().is_nested());
            let by = plain.map(|field| Expr::from(field).sort(true, false));
            let sorted =
                LogicalPlanBuilder::from(limit.input.as_ref().clone()).sort(by.collect::<Vec<_>>())?.build()?;
            limit.input = Arc::new(sorted);
            Ok(Transformed::yes(LogicalPlan::Limit(limit)))
        }
        other => Ok(Transformed::no(other)),
    });
    done.map(|done| done.data).map_err(|error| planning(&error))
}

/// Which column of the part an expression of the placeholder is: they are called c0, c1 and so on.
pub(super) fn place(expr: &Expr) -> Option<usize> {
    match expr {
        Expr::Alias(alias) => place(&alias.expr),
        Expr::Column(column) => column.name.strip_prefix('c')?.parse().ok(),
        _ => None,
    }
}

/// The column of the part that one column of the result is, unchanged.
pub(super) fn direct(plan: &LogicalPlan, column: usize) -> Option<usize> {
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

pub(super) fn role_of(used: &BTreeSet<usize>, part: &Table<'_>) -> Role {
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

/// The nearest number that a whole type has.
pub(super) fn within_type(value: f64, kind: &DataType) -> f64 {
    let (low, high) = if kind.is_unsigned_integer() { (0.0, 18_446_744_073_709_549_568.0) } else { (-MOST, MOST) };
    value.round().clamp(low, high)
}
