//! The groups of a part, and sums put in their order.

use super::Tables;
use crate::answer::Value;
use crate::bound::{BoundedSum, BoundedSums, schema_of};
use crate::error::{QueryError, planning};
use crate::evaluate::attempt::cast_each;
use crate::plan::aggregate::StatisticKind;
use crate::plan::{Groups, Part};
use crate::translate::in_words;
use datafusion::arrow::array::{Array, ArrayRef, AsArray, RecordBatch};
use datafusion::arrow::compute::{SortColumn, can_cast_types, cast, lexsort_to_indices, take, take_record_batch};
use datafusion::arrow::datatypes::{DataType, Int64Type};
use datafusion::logical_expr::LogicalPlanBuilder;
use datafusion::physical_plan::aggregates::group_values::{GroupValues, new_group_values};
use datafusion::physical_plan::aggregates::order::GroupOrdering;
use datafusion::scalar::ScalarValue;
use std::collections::BTreeMap;
use std::sync::Arc;
use whit_core::mechanism::SanitiseError;
use whit_core::mechanism::quantile::Tree;

/// The groups of a part.
pub(crate) struct Frame {
    keys: Vec<ArrayRef>,
    pub(crate) groups: usize,
    /// How many users, or rows where no user is declared, have each group.
    pub(crate) presence: Option<BoundedSum>,
    /// How many rows there were, and how many count after caps.
    pub(crate) kept: [BoundedSum; 2],
}

pub(super) fn wrong(error: impl Into<datafusion::common::DataFusionError>) -> QueryError {
    crate::error::running(&error.into())
}

/// The order in which rows of keys stand when they are sorted.
fn sorted(keys: &[ArrayRef]) -> Result<datafusion::arrow::array::UInt32Array, QueryError> {
    let plain = |key: &ArrayRef| match key.data_type() {
        DataType::Dictionary(_, inner) => cast(key, inner),
        _ => Ok(Arc::clone(key)),
    };
    let columns = keys.iter().map(|key| Ok(SortColumn { values: plain(key).map_err(wrong)?, options: None }));
    let columns = columns.collect::<Result<Vec<_>, QueryError>>()?;
    lexsort_to_indices(&columns, None).map_err(wrong)
}

/// Rows in the order of some columns; as they come where one of these has no order.
pub(super) fn in_order_of(rows: &RecordBatch, columns: &[ArrayRef]) -> Result<RecordBatch, QueryError> {
    if columns.is_empty() || columns.iter().any(|column| column.data_type().is_nested()) {
        return Ok(rows.clone());
    }
    take_record_batch(rows, &sorted(columns)?).map_err(wrong)
}

impl Frame {
    /// The groups of a part, and its plain sums in their order, without the last, which is the presence.
    pub(crate) fn of(part: &Part, plain: &BoundedSums) -> Result<(Self, Vec<BoundedSum>), QueryError> {
        let kept = plain.rows_kept();
        let mut frame = match part.groups {
            Groups::One => Self { keys: Vec::new(), groups: 1, presence: None, kept },
            Groups::Observed | Groups::Selected => {
                let keys = if plain.groups() == 0 {
                    part.keys.iter().map(|key| datafusion::arrow::array::new_empty_array(&key.data_type)).collect()
                } else {
                    plain.keys().to_vec()
                };
                // In the order of the keys themselves: that in which they were met would tell of the data.
                let order = if plain.groups() > 1 { Some(sorted(&keys)?) } else { None };
                let keys = match order {
                    Some(order) => {
                        keys.iter().map(|key| take(key, &order, None)).collect::<Result<_, _>>().map_err(wrong)?
                    }
                    None => keys,
                };
                Self { keys, groups: plain.groups(), presence: None, kept }
            }
            Groups::Listed => {
                let lists: Vec<&[ScalarValue]> =
                    part.keys.iter().map(|key| key.listed.as_deref().unwrap_or_default()).collect();
                let groups: usize = lists.iter().map(|list| list.len()).product();
                let mut keys = Vec::new();
                let mut repeat = groups;
                for (list, key) in lists.iter().zip(&part.keys) {
                    repeat /= list.len().max(1);
                    let values = (0..groups).map(|group| list[(group / repeat.max(1)) % list.len().max(1)].clone());
                    let array = if groups == 0 {
                        datafusion::arrow::array::new_empty_array(&key.data_type)
                    } else {
                        ScalarValue::iter_to_array(values).map_err(wrong)?
                    };
                    keys.push(cast(&array, &key.data_type).map_err(wrong)?);
                }
                Self { keys, groups, presence: None, kept }
            }
        };
        let mut aligned = frame.align(plain)?;
        frame.presence = aligned.pop();
        Ok((frame, aligned))
    }

    /// For each row of other sums, the group that it belongs to here.
    fn places(&self, keys: &[ArrayRef], rows: usize) -> Result<Vec<Option<usize>>, QueryError> {
        if self.keys.is_empty() {
            return Ok(vec![(self.groups > 0).then_some(0); rows]);
        }
        if rows == 0 {
            return Ok(Vec::new());
        }
        let own: Vec<ArrayRef> =
            self.keys
                .iter()
                .zip(keys)
                .map(|(own, other)| {
                    if own.data_type() == other.data_type() {
                        Ok(Arc::clone(own))
                    } else {
                        cast(own, other.data_type())
                    }
                })
                .collect::<Result<_, _>>()
                .map_err(wrong)?;
        let mut groups: Box<dyn GroupValues> =
            new_group_values(schema_of(&own), &GroupOrdering::None).map_err(wrong)?;
        let (mut first, mut second) = (Vec::new(), Vec::new());
        groups.intern(&own, &mut first).map_err(wrong)?;
        groups.intern(keys, &mut second).map_err(wrong)?;
        let mut back = vec![None; groups.len()];
        for (place, &id) in first.iter().enumerate().rev() {
            back[id] = Some(place);
        }
        Ok(second.into_iter().map(|id| back[id]).collect())
    }

    /// Sums in the order of the groups.
    pub(crate) fn align(&self, sums: &BoundedSums) -> Result<Vec<BoundedSum>, QueryError> {
        Ok(sums.in_groups(&self.places(sums.keys(), sums.groups())?, self.groups))
    }

    /// One tree of counts a group, all nodes one after the other.
    pub(crate) fn trees(&self, sums: &BoundedSums, tree: &Tree) -> Result<BoundedSum, SanitiseError> {
        let keys = sums.keys().split_last().map_or(&[][..], |(_, keys)| keys);
        sums.trees(&self.places(keys, sums.groups())?, self.groups, tree)
    }

    /// The keys of some groups as values. Only of those that show: how one is written must not depend on one that does not.
    pub(crate) fn rows(&self, groups: &[usize]) -> Result<Vec<Vec<Value>>, QueryError> {
        let wanted: datafusion::arrow::array::UInt32Array = groups.iter().map(|&group| group as u32).collect();
        let columns = self.keys.iter().map(|key| values(&take(key, &wanted, None).map_err(wrong)?));
        let columns = columns.collect::<Result<Vec<_>, _>>()?;
        Ok((0..groups.len()).map(|row| columns.iter().map(|column| column[row].clone()).collect()).collect())
    }
}

/// The statistics of a part that read nothing private, in the order of its groups.
pub(crate) fn exact_columns(
    tables: &Tables,
    part: &Part,
    frame: &Frame,
) -> Result<BTreeMap<usize, Vec<Value>>, QueryError> {
    let mut columns = BTreeMap::new();
    let exact: Vec<(usize, &datafusion::logical_expr::Expr)> = part
        .statistics
        .iter()
        .enumerate()
        .filter_map(|(i, statistic)| match statistic.kind() {
            StatisticKind::Exact(expr) => Some((i, expr.as_ref())),
            StatisticKind::Noisy(_) => None,
        })
        .collect();
    if exact.is_empty() {
        return Ok(columns);
    }
    let groups =
        part.keys.iter().enumerate().map(|(i, key)| key.expr.clone().alias(format!("k{i}"))).collect::<Vec<_>>();
    let sums = exact.iter().map(|(i, expr)| (*expr).clone().unalias().alias(format!("m{i}"))).collect::<Vec<_>>();
    let plan = LogicalPlanBuilder::from(part.rows.clone())
        .aggregate(groups, sums)
        .and_then(LogicalPlanBuilder::build)
        .map_err(|error| planning(&error))?;
    for (i, _) in &exact {
        columns.insert(*i, vec![Value::Null; frame.groups]);
    }
    for batch in tables.collect(&plan)? {
        let places = frame.places(&batch.columns()[..part.keys.len()], batch.num_rows())?;
        for (j, (i, _)) in exact.iter().enumerate() {
            let found = values(batch.column(part.keys.len() + j))?;
            let column = columns.entry(*i).or_default();
            for (place, value) in places.iter().zip(found) {
                if let Some(place) = place {
                    column[*place] = value;
                }
            }
        }
    }
    Ok(columns)
}

/// An array as values: numbers and booleans as they are, all else as text.
pub(crate) fn values(array: &ArrayRef) -> Result<Vec<Value>, QueryError> {
    let kind = array.data_type();
    let as_type = |kind: &DataType| cast(array, kind).map_err(wrong);
    let each = |f: &dyn Fn(usize) -> Value| {
        (0..array.len()).map(|i| if array.is_null(i) { Value::Null } else { f(i) }).collect()
    };
    Ok(match kind {
        DataType::Boolean => {
            let column = array.as_boolean();
            each(&|i| Value::Bool(column.value(i)))
        }
        DataType::UInt64 => {
            let (whole, wide) = (as_type(&DataType::Int64), as_type(&DataType::Float64)?);
            match whole {
                Ok(whole) if whole.null_count() == array.null_count() => {
                    each(&|i| Value::Int(whole.as_primitive::<Int64Type>().value(i)))
                }
                _ => each(&|i| Value::Float(wide.as_primitive::<datafusion::arrow::datatypes::Float64Type>().value(i))),
            }
        }
        kind if kind.is_integer() => {
            let column = as_type(&DataType::Int64)?;
            each(&|i| Value::Int(column.as_primitive::<Int64Type>().value(i)))
        }
        // A float would not tell two long decimals apart. Which way they are written follows from their type alone.
        kind if kind.is_numeric() && !matches!(kind, DataType::Decimal128(16.., _) | DataType::Decimal256(16.., _)) => {
            let column = as_type(&DataType::Float64)?;
            each(&|i| Value::Float(column.as_primitive::<datafusion::arrow::datatypes::Float64Type>().value(i)))
        }
        _ => {
            if !can_cast_types(kind, &DataType::Utf8) {
                return Err(QueryError::asked(
                    format!("a column that is {} cannot be written in an answer", in_words(kind)),
                    "name its parts instead",
                ));
            }
            // What cannot be written, such as a day beyond the calendar, is missing.
            let column = cast_each(array, &DataType::Utf8);
            let column = column.as_string::<i32>();
            each(&|i| if column.is_null(i) { Value::Null } else { Value::Text(column.value(i).to_owned()) })
        }
    })
}
