//! Parquet files whose columns are not of one type: what was declared, or agreed on, wins, and values that do not fit are NULL.

pub(crate) mod bytes;
pub(super) mod nested;

use super::files::unreadable;
use super::text::tally::{Found, Tally};
use crate::error::QueryError;
use crate::evaluate::attempt::cast_each;
use datafusion::arrow::array::{Array, ArrayRef, RecordBatch, new_null_array};
use datafusion::arrow::compute::can_cast_types;
use datafusion::arrow::datatypes::{DataType, Schema, SchemaRef};
use datafusion::common::ScalarValue;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::error::Result;
use datafusion::logical_expr::{ColumnarValue, Operator};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::expressions::{BinaryExpr, Column, InListExpr, Literal};
use datafusion::physical_expr_adapter::{PhysicalExprAdapter, PhysicalExprAdapterFactory};
use std::fmt;
use std::fs::File;
use std::hash::{Hash, Hasher};
use std::path::PathBuf;
use std::sync::Arc;

/// Makes the columns of each file those of the table.
#[derive(Debug)]
pub(super) struct Fitting;

impl PhysicalExprAdapterFactory for Fitting {
    fn create(&self, table: SchemaRef, file: SchemaRef) -> Result<Arc<dyn PhysicalExprAdapter>> {
        Ok(Arc::new(Fit { table, file }))
    }
}

#[derive(Debug)]
struct Fit {
    table: SchemaRef,
    file: SchemaRef,
}

impl PhysicalExprAdapter for Fit {
    /// What a file says of its blocks (least, largest, how many NULLs) may only decide what is read where it says just what the filter asks: a column compared with a
    /// constant of its type. Of a cast or a negative the engine takes what is said of the column, which is something else where a value does not fit; then one
    /// row would bring or take all of its block. So anything else looks at columns through a step of ours, behind which nothing looks.
    fn rewrite(&self, expr: Arc<dyn PhysicalExpr>) -> Result<Arc<dyn PhysicalExpr>> {
        if let Some(both) = expr.downcast_ref::<BinaryExpr>().filter(|both| *both.op() == Operator::And) {
            let (left, right) = (self.rewrite(Arc::clone(both.left()))?, self.rewrite(Arc::clone(both.right()))?);
            return Ok(Arc::new(BinaryExpr::new(left, Operator::And, right)));
        }
        let plain = expr.is::<Column>() || self.is_plain(&expr);
        expr.transform(|expr| match expr.downcast_ref::<Column>() {
            Some(column) => self.column(column, plain),
            None => Ok(Transformed::no(expr)),
        })
        .data()
    }
}

impl Fit {
    /// Whether it compares a column with constants of the type that it has in the file.
    fn is_plain(&self, expr: &Arc<dyn PhysicalExpr>) -> bool {
        let kind = |expr: &Arc<dyn PhysicalExpr>| {
            let name = expr.downcast_ref::<Column>()?.name();
            Some(self.file.field_with_name(name).ok()?.data_type().clone())
        };
        let constant = |expr: &Arc<dyn PhysicalExpr>, kind: &DataType| {
            expr.downcast_ref::<Literal>().is_some_and(|literal| literal.value().data_type() == *kind)
        };
        if let Some(list) = expr.downcast_ref::<InListExpr>() {
            return !list.negated()
                && kind(list.expr()).is_some_and(|kind| list.list().iter().all(|value| constant(value, &kind)));
        }
        expr.downcast_ref::<BinaryExpr>().is_some_and(|both| {
            let ordered =
                matches!(both.op(), Operator::Eq | Operator::Lt | Operator::LtEq | Operator::Gt | Operator::GtEq);
            let compared = |column, value| kind(column).is_some_and(|kind| constant(value, &kind));
            ordered && (compared(both.left(), both.right()) || compared(both.right(), both.left()))
        })
    }

    fn column(&self, column: &Column, plain: bool) -> Result<Transformed<Arc<dyn PhysicalExpr>>> {
        let name = column.name();
        let wanted = self.table.field_with_name(name)?.data_type();
        let Some((place, inside)) = nested::find(&self.file, name) else {
            return Ok(Transformed::yes(Arc::new(Literal::new(ScalarValue::try_new_null(wanted)?))));
        };
        let there = Arc::new(Column::new(self.file.field(place).name(), place));
        if plain && inside.is_empty() && self.file.field(place).data_type() == wanted {
            return Ok(Transformed::yes(there));
        }
        Ok(Transformed::yes(Arc::new(Fitted { column: there, inside, kind: wanted.clone() })))
    }
}

/// A column as another type.
#[derive(Debug, Clone, Eq)]
struct Fitted {
    column: Arc<dyn PhysicalExpr>,
    /// The way to a field inside of it, where it is a struct.
    inside: Vec<usize>,
    kind: DataType,
}

// A derived one would move the trait object.
impl PartialEq for Fitted {
    fn eq(&self, other: &Self) -> bool {
        self.column.eq(&other.column) && self.inside == other.inside && self.kind == other.kind
    }
}

impl Hash for Fitted {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.column.hash(state);
        self.inside.hash(state);
        self.kind.hash(state);
    }
}

impl fmt::Display for Fitted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} as {}", self.column, self.kind)
    }
}

impl PhysicalExpr for Fitted {
    fn data_type(&self, _: &Schema) -> Result<DataType> {
        Ok(self.kind.clone())
    }

    fn nullable(&self, _: &Schema) -> Result<bool> {
        Ok(true)
    }

    fn evaluate(&self, batch: &RecordBatch) -> Result<ColumnarValue> {
        let values = self.column.evaluate(batch)?.into_array(batch.num_rows())?;
        Ok(ColumnarValue::Array(fitted(&nested::inside(&values, &self.inside)?, &self.kind)))
    }

    fn children(&self) -> Vec<&Arc<dyn PhysicalExpr>> {
        vec![&self.column]
    }

    fn with_new_children(self: Arc<Self>, children: Vec<Arc<dyn PhysicalExpr>>) -> Result<Arc<dyn PhysicalExpr>> {
        let column = children.into_iter().next().unwrap_or_else(|| Arc::clone(&self.column));
        Ok(Arc::new(Self { column, inside: self.inside.clone(), kind: self.kind.clone() }))
    }

    fn fmt_sql(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Values as another type, each by itself: a kernel that fails or panics over one value must not do so over all, nor print it.
fn fitted(values: &ArrayRef, kind: &DataType) -> ArrayRef {
    if values.data_type() == kind {
        return Arc::clone(values);
    }
    if !can_cast_types(values.data_type(), kind) {
        return new_null_array(kind, values.len());
    }
    cast_each(values, kind)
}

/// Counts the values of each column that are not of its type, for the owner. Rows are numbered from 1 in each file.
pub(super) fn tally(files: &[PathBuf], schema: &Schema) -> std::result::Result<Tally, QueryError> {
    let mut tally = Tally { wrong: vec![Found::default(); schema.fields().len()], ..Tally::default() };
    for (number, path) in files.iter().enumerate() {
        let name = path.to_string_lossy();
        let damaged =
            |error: &dyn fmt::Display| QueryError::failed(format!("`{name}` cannot be read to its end: {error}"));
        File::open(path).map_err(|error| unreadable(&name, &error))?;
        let rows = bytes::Rows::open(path, schema).map_err(|error| damaged(&error))?;
        let mut row = 1;
        for raw in rows {
            let raw = raw.map_err(|error| damaged(&error))?;
            for (found, field) in tally.wrong.iter_mut().zip(schema.fields()) {
                let Some(stored) = raw.stored(field.name()).filter(|stored| stored.data_type() != field.data_type())
                else {
                    continue;
                };
                let fitted = raw.column(field);
                let wrong = (0..raw.rows()).filter(|&at| fitted.is_null(at) && !stored.is_null(at));
                wrong.for_each(|at| found.at((number, row + at as u64)));
            }
            row += raw.rows() as u64;
        }
    }
    Ok(tally)
}

#[cfg(test)]
mod tests {
    use super::super::scratch::Scratch;
    use super::super::text::cell::arrow_of;
    use super::*;
    use datafusion::arrow::array::{
        Date64Array, Decimal128Array, Float64Array, Int64Array, StringArray, TimestampSecondArray,
    };
    use datafusion::arrow::datatypes::Field;
    use whit_core::declare::ColumnType;

    #[test]
    fn the_owner_is_shown_which_rows_do_not_fit() {
        let scratch = Scratch::new("parquet_tally");
        let texts: ArrayRef = Arc::new(StringArray::from(vec![Some("1"), None, Some("x"), Some("2.5"), Some("3")]));
        let path = scratch.parquet("a.parquet", vec![("n", texts)]);
        let schema =
            Schema::new(vec![Field::new("n", DataType::Int64, true), Field::new("none", DataType::Int64, true)]);
        let tally = tally(&[path], &schema).unwrap();
        assert_eq!((tally.wrong[0].rows, tally.wrong[0].first), (2, Some((0, 3))));
        assert_eq!(tally.wrong[1], Found::default());
    }

    #[test]
    fn whatever_does_not_fit_is_null_and_the_rest_is_not() {
        let extremes = [i64::MIN, i64::MAX, 0];
        let from: Vec<ArrayRef> = vec![
            Arc::new(Int64Array::from_iter_values(extremes)),
            Arc::new(TimestampSecondArray::from_iter_values(extremes)),
            Arc::new(Date64Array::from_iter_values(extremes)),
            Arc::new(Float64Array::from_iter_values([f64::NAN, f64::INFINITY, 0.0])),
            Arc::new(Decimal128Array::from_iter_values([i128::MAX, i128::MIN, 0])),
            Arc::new(StringArray::from_iter_values(["x", "9999999999999999999999", "1970-01-01"])),
        ];
        for values in &from {
            for kind in ["int", "float", "text", "bool", "date", "timestamp", "decimal(5, 2)", "list(int)"] {
                let kind = arrow_of(&ColumnType::parse(kind).unwrap());
                let all = fitted(values, &kind);
                assert_eq!((all.len(), all.data_type()), (3, &kind));
                // The last value is the same whatever stands next to it.
                assert_eq!(&all.slice(2, 1), &fitted(&values.slice(2, 1), &kind), "{} as {kind}", values.data_type());
            }
        }
    }
}
