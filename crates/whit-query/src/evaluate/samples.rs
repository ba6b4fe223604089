//! Ordinary values of every type, made up: on these a question is tried before anything is paid, so that one which
//! can never be answered is refused. They say nothing of any row.

use datafusion::arrow::array::{
    Array, ArrayRef, BooleanArray, Date32Array, Float64Array, Int64Array, IntervalMonthDayNanoArray, RecordBatch,
    RecordBatchOptions, StringArray, TimestampSecondArray, new_empty_array, new_null_array,
};
use datafusion::arrow::compute::{CastOptions, cast_with_options, concat};
use datafusion::arrow::datatypes::{DataType, IntervalMonthDayNano, IntervalUnit, SchemaRef, TimeUnit};
use datafusion::common::Result as Outcome;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::datasource::{MemTable, provider_as_source};
use datafusion::logical_expr::LogicalPlan;
use std::sync::Arc;

/// How many values of each type there are.
pub(super) const ROWS: usize = 6;

/// Some values of a type; none where there are no samples of it.
pub(super) fn ordinary(kind: &DataType) -> Option<ArrayRef> {
    let whole: ArrayRef = Arc::new(Int64Array::from(vec![1, 2, 3, 10, 12, 20]));
    // 2000-01-01 and other days.
    let days: ArrayRef = Arc::new(Date32Array::from(vec![10_957, 11_000, 12_345, 15_000, 18_000, 19_000]));
    let seconds = [946_684_800, 950_000_000, 1_066_608_000, 1_300_000_000, 1_555_555_555, 1_641_600_000];
    let from: ArrayRef = match kind {
        DataType::Null => return Some(new_null_array(kind, ROWS)),
        DataType::Boolean => Arc::new(BooleanArray::from(vec![true, false, true, false, true, true])),
        DataType::Date32 | DataType::Date64 => days,
        DataType::Timestamp(..) => Arc::new(TimestampSecondArray::from(seconds.to_vec())),
        DataType::Time32(_) => return cast(&cast(&whole, &DataType::Int32)?, kind),
        DataType::Time64(_) | DataType::Duration(_) => whole,
        DataType::Interval(IntervalUnit::MonthDayNano) => {
            let days = [1, 2, 3, 4, 5, 6].map(|days| IntervalMonthDayNano::new(0, days, 0));
            Arc::new(IntervalMonthDayNanoArray::from(days.to_vec()))
        }
        kind if kind.is_floating() => Arc::new(Float64Array::from(vec![0.5, 1.0, 2.5, 3.0, 0.25, 10.0])),
        kind if kind.is_numeric() => whole,
        _ => Arc::new(StringArray::from(vec!["1", "a", "2000-01-01", "2000-01-01T10:00:00", "10:00:00", "1 day"])),
    };
    if matches!(kind, DataType::Timestamp(_, Some(_))) {
        let plain = cast(&from, &DataType::Timestamp(TimeUnit::Second, None))?;
        return cast(&plain, kind);
    }
    cast(&from, kind)
}

fn cast(array: &ArrayRef, kind: &DataType) -> Option<ArrayRef> {
    cast_with_options(array, kind, &CastOptions { safe: true, ..CastOptions::default() }).ok()
}

/// A few rows of a schema: one of NULL, where that may be, and ordinary ones. Without samples of a type that must not be NULL there are none.
pub(crate) fn rows(schema: &SchemaRef) -> Outcome<RecordBatch> {
    let column = |field: &Arc<datafusion::arrow::datatypes::Field>| -> Option<ArrayRef> {
        let kind = field.data_type();
        let values = ordinary(kind).or_else(|| field.is_nullable().then(|| new_null_array(kind, ROWS)))?;
        let first = if field.is_nullable() { new_null_array(kind, 1) } else { values.slice(0, 1) };
        let column = concat(&[first.as_ref(), values.as_ref()]).ok()?;
        (field.is_nullable() || column.null_count() == 0).then_some(column)
    };
    let columns = schema.fields().iter().map(column).collect::<Option<Vec<_>>>();
    let (columns, rows) = match columns {
        Some(columns) => (columns, ROWS + 1),
        None => (schema.fields().iter().map(|field| new_empty_array(field.data_type())).collect(), 0),
    };
    let options = RecordBatchOptions::new().with_row_count(Some(rows));
    Ok(RecordBatch::try_new_with_options(Arc::clone(schema), columns, &options)?)
}

/// The same plan over samples in place of its tables. Sub-queries inside of expressions read public tables only, and go on doing so.
pub(crate) fn in_place_of(plan: &LogicalPlan) -> Outcome<LogicalPlan> {
    let filled = plan.clone().transform_up(|node| {
        Ok(match node {
            LogicalPlan::TableScan(mut scan) => {
                let schema = scan.source.schema();
                let table = MemTable::try_new(Arc::clone(&schema), vec![vec![rows(&schema)?]])?;
                scan.source = provider_as_source(Arc::new(table));
                Transformed::yes(LogicalPlan::TableScan(scan))
            }
            other => Transformed::no(other),
        })
    })?;
    Ok(filled.data)
}
