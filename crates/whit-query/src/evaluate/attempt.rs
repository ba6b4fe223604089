//! One step of an expression, computed for a batch of rows, and row by row where the batch as a whole fails.

use super::growth::Growth;
use super::{missing, samples};
use crate::error::QueryError;
use crate::translate::{in_our_words, with_sql_types};
use datafusion::arrow::array::{Array, ArrayRef, RecordBatch, RecordBatchOptions, UInt32Array, new_null_array};
use datafusion::arrow::compute::{cast, concat, take};
use datafusion::arrow::datatypes::{DataType, Field, FieldRef, Schema, SchemaRef};
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{Column, DFSchema, DataFusionError, Result as Outcome};
use datafusion::execution::SessionState;
use datafusion::logical_expr::{
    ColumnarValue, Expr, ExprSchemable, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature,
    Volatility,
};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::scalar::ScalarValue;
use std::cell::Cell;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Once};

#[cfg(not(panic = "unwind"))]
compile_error!(
    "a panic that one row causes must be caught, or it would tell of that row: build with panic = \"unwind\""
);

/// How the functions begin that stand for a guarded step.
pub(crate) const NAME: &str = "__whit_attempt";

/// A step over columns that are its arguments, with the constants it had.
///
/// # Neighbours
/// Tables that differ in one row, and so batches that do.
///
/// # Claim
/// What comes out for a row depends on that row alone, and whatever is in it, something comes out.
///
/// # Why
/// A step of the engine computes each row by itself, or fails as a whole. Where it fails on a batch, the halves are computed apart, down to single
/// rows; so a row is NULL exactly where the step fails on it alone, or where its result would be too long ([`Growth`]), which is said by the row's
/// own lengths. Panics are caught, and nothing is printed of them.
///
/// # Tried by
/// `only_the_rows_at_fault_are_null`, `a_panic_is_null_and_prints_nothing`, `no_value_makes_an_expression_fail` (rows alone and among others), `no_value_makes_a_question_fail`.
pub(crate) struct Attempt {
    step: Expr,
    schema: SchemaRef,
    returns: DataType,
    compiled: Arc<dyn PhysicalExpr>,
    growth: Option<Growth>,
    name: String,
    signature: Signature,
}

impl Attempt {
    /// A step as a call that cannot fail; a constant as its value. An error is a refusal: the step can be computed on no row.
    pub(super) fn of(step: Expr, schema: &DFSchema, state: &SessionState) -> Outcome<Expr> {
        let said = super::words::said(&step);
        let mut arguments: Vec<Expr> = Vec::new();
        let mut fields: Vec<FieldRef> = Vec::new();
        // Constants stay with the step: a pattern is compiled once.
        let step = step.map_children(|child| {
            if matches!(child, Expr::Literal(..)) {
                return Ok(Transformed::no(child));
            }
            let name = format!("a{}", arguments.len());
            fields.push(Arc::new(Field::new(&name, child.get_type(schema)?, true)));
            arguments.push(child);
            Ok(Transformed::yes(Expr::Column(Column::new_unqualified(name))))
        })?;
        let step = step.data;
        let schema = Arc::new(Schema::new(fields));
        let own = DFSchema::try_from(Arc::clone(&schema))?;
        let never = |error: &DataFusionError| {
            let why = in_our_words(&error.strip_backtrace());
            let sentence = format!("`{}` can be computed on no row: {}", with_sql_types(&said), why.sentence);
            let hint = why.hint.unwrap_or_else(|| "write it differently, or compute it beforehand".to_owned());
            DataFusionError::External(Box::new(QueryError::asked(sentence, hint)))
        };
        let compiled = state.create_physical_expr(step.clone(), &own).map_err(|error| never(&error))?;
        let returns = compiled.data_type(&schema)?;
        let attempt = Self {
            growth: Growth::of(&step),
            name: format!("{NAME}({step})"),
            signature: Signature::any(arguments.len().max(1), Volatility::Immutable),
            step,
            schema,
            returns,
            compiled,
        };
        if arguments.is_empty() {
            let one = attempt.batch(Vec::new(), 1)?;
            if attempt.growth.as_ref().is_some_and(|growth| growth.too_long(&one).is_some()) {
                return Ok(Expr::Literal(missing(&attempt.returns)?, None));
            }
            let value = attempt.whole(&one).map_err(|error| never(&error))?;
            return Ok(Expr::Literal(ScalarValue::try_from_array(&value, 0)?, None));
        }
        attempt.some_row().map_err(|error| never(&error))?;
        Ok(ScalarUDF::new_from_impl(attempt).call(arguments))
    }

    /// Whether there is a row on which the step can be computed. Text may have to look like something that is not among the samples, so
    /// there a row of NULL is enough.
    fn some_row(&self) -> Outcome<()> {
        let columns = self.schema.fields().iter().map(|field| samples::ordinary(field.data_type()));
        let ordinary = columns.collect::<Option<Vec<_>>>();
        let nulls = |kind: &FieldRef| new_null_array(kind.data_type(), 1);
        let missing = self.batch(self.schema.fields().iter().map(nulls).collect(), 1)?;
        // A constant by which every row grows too long: it is NULL on all of them, and never computed.
        if self.growth.as_ref().is_some_and(|growth| growth.too_long(&missing).is_some()) {
            return Ok(());
        }
        let missing = self.whole(&missing).map(drop);
        let Some(columns) = ordinary else { return missing };
        let rows = self.batch(columns, samples::ROWS)?;
        let Err(mut last) = self.whole(&rows) else { return Ok(()) };
        for row in 0..samples::ROWS {
            match self.whole(&rows.slice(row, 1)) {
                Ok(_) => return Ok(()),
                Err(error) => last = error,
            }
        }
        let reads_text = self.schema.fields().iter().any(|field| super::is_text(field.data_type()));
        if reads_text && missing.is_ok() { Ok(()) } else { Err(last) }
    }

    fn batch(&self, columns: Vec<ArrayRef>, rows: usize) -> Outcome<RecordBatch> {
        let options = RecordBatchOptions::new().with_row_count(Some(rows));
        Ok(RecordBatch::try_new_with_options(Arc::clone(&self.schema), columns, &options)?)
    }

    /// The step on all rows at once, or why that fails; a panic is an error too.
    fn whole(&self, batch: &RecordBatch) -> Outcome<ArrayRef> {
        let rows = batch.num_rows();
        let value = quietly(|| self.compiled.evaluate(batch)?.into_array(rows))
            .unwrap_or_else(|| Err(DataFusionError::Execution("a panic".to_owned())))?;
        if value.len() == rows && value.data_type() == &self.returns {
            Ok(value)
        } else {
            Err(DataFusionError::Execution("a column of another shape".to_owned()))
        }
    }

    /// The step on all rows: NULL on those on which it fails.
    fn rows(&self, batch: &RecordBatch) -> Outcome<ArrayRef> {
        let mut pieces = Vec::new();
        self.halves(batch, &mut pieces);
        if let [piece] = pieces.as_slice() {
            return Ok(Arc::clone(piece));
        }
        let pieces: Vec<&dyn Array> = pieces.iter().map(AsRef::as_ref).collect();
        Ok(concat(&pieces)?)
    }

    /// At most two computations for each row, however many rows fail: so what a user's rows cost is bounded by their number.
    fn halves(&self, batch: &RecordBatch, pieces: &mut Vec<ArrayRef>) {
        match (self.whole(batch), batch.num_rows()) {
            (Ok(value), _) => pieces.push(value),
            (Err(_), rows @ (0 | 1)) => pieces.push(new_null_array(&self.returns, rows)),
            (Err(_), rows) => {
                self.halves(&batch.slice(0, rows / 2), pieces);
                self.halves(&batch.slice(rows / 2, rows - rows / 2), pieces);
            }
        }
    }
}

/// The values of an array as another type; missing where there is no such value.
pub(crate) fn cast_each(array: &ArrayRef, kind: &DataType) -> ArrayRef {
    let one = |array: &ArrayRef| quietly(|| cast(array, kind)).and_then(Result::ok);
    one(array).unwrap_or_else(|| {
        let single = |row| one(&array.slice(row, 1)).unwrap_or_else(|| new_null_array(kind, 1));
        let singles: Vec<ArrayRef> = (0..array.len()).map(single).collect();
        let singles: Vec<&dyn Array> = singles.iter().map(AsRef::as_ref).collect();
        concat(&singles).unwrap_or_else(|_| new_null_array(kind, array.len()))
    })
}

thread_local! {
    static QUIET: Cell<bool> = const { Cell::new(false) };
}

/// Runs what may panic, of which nothing is printed: the words of a panic may hold values of a row.
pub(crate) fn quietly<T>(work: impl FnOnce() -> T) -> Option<T> {
    hush();
    let before = QUIET.replace(true);
    let done = catch_unwind(AssertUnwindSafe(work));
    QUIET.set(before);
    done.ok()
}

/// Keeps this thread's panics from being printed from now on: for threads that see rows and nothing else.
pub(crate) fn quiet_thread() {
    hush();
    QUIET.set(true);
}

/// Teaches the process not to print panics of threads that are quiet. Others print as before.
fn hush() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            if !QUIET.get() {
                before(panic);
            }
        }));
    });
}

impl fmt::Debug for Attempt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Attempt({:?}, {:?})", self.step, self.schema)
    }
}

impl PartialEq for Attempt {
    fn eq(&self, other: &Self) -> bool {
        (&self.step, &self.schema) == (&other.step, &other.schema)
    }
}

impl Eq for Attempt {}

impl Hash for Attempt {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.step.hash(state);
    }
}

impl ScalarUDFImpl for Attempt {
    fn name(&self) -> &str {
        &self.name
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Outcome<DataType> {
        Ok(self.returns.clone())
    }

    fn return_field_from_args(&self, _: ReturnFieldArgs<'_>) -> Outcome<FieldRef> {
        Ok(Arc::new(Field::new(NAME, self.returns.clone(), true)))
    }

    fn invoke_with_args(&self, arguments: ScalarFunctionArgs) -> Outcome<ColumnarValue> {
        let rows = arguments.number_rows;
        let columns = arguments.args.into_iter().map(|value| value.into_array(rows)).collect::<Outcome<Vec<_>>>()?;
        let batch = self.batch(columns, rows)?;
        let Some(long) = self.growth.as_ref().and_then(|growth| growth.too_long(&batch)) else {
            return self.rows(&batch).map(ColumnarValue::Array);
        };
        // Rows that would grow too long do not get there at all: a function may ask for memory by a constant, for each row that it is given,
        // and what cannot be had ends the process with words that count them.
        let short: UInt32Array = (0..).zip(long.values()).filter(|(_, long)| !long).map(|(row, _)| Some(row)).collect();
        let columns = batch.columns().iter().map(|column| take(column, &short, None)).collect::<Result<Vec<_>, _>>()?;
        let value = self.rows(&self.batch(columns, short.len())?)?;
        let mut next = 0..;
        let places: UInt32Array = long.values().iter().map(|long| if long { None } else { next.next() }).collect();
        Ok(ColumnarValue::Array(take(&value, &places, None)?))
    }
}
