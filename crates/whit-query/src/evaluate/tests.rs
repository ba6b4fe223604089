use super::extremes;
use super::*;
use crate::plan::Asking;
use crate::release::Tables;
use crate::source::Tuning;
use crate::source::scratch::Scratch;
use datafusion::arrow::array::{Array, ArrayRef, AsArray, Float64Array, Int64Array, RecordBatch, StringArray};
use datafusion::arrow::datatypes::Float64Type;
use datafusion::datasource::MemTable;
use datafusion::logical_expr::LogicalPlanBuilder;
use datafusion::prelude::SessionContext;
use std::sync::Arc;

pub(super) fn context() -> SessionContext {
    let context = SessionContext::new();
    crate::functions::register(&context);
    context
}

pub(super) fn table(columns: Vec<(&str, ArrayRef)>) -> RecordBatch {
    RecordBatch::try_from_iter_with_nullable(columns.into_iter().map(|(name, column)| (name, column, true))).unwrap()
}

/// An expression of a question over the columns of a batch, if planning allows it.
pub(super) fn allowed(context: &SessionContext, schema: &DFSchema, sql: &str) -> Option<Expr> {
    let expr = context.state().create_logical_expr(sql, schema).ok()?;
    let mut never = |_: &LogicalPlan| Ok(false);
    let expr = allow::expression(expr, &mut never).ok()?;
    (!expr.is_volatile()).then_some(expr)
}

/// Expressions over a batch, computed as the engine does for questions.
pub(super) async fn compute(
    context: &SessionContext,
    batch: &RecordBatch,
    exprs: &[Expr],
) -> Result<RecordBatch, QueryError> {
    let source = Arc::new(MemTable::try_new(batch.schema(), vec![vec![batch.clone()]]).unwrap());
    let scan = LogicalPlanBuilder::scan("t", datafusion::datasource::provider_as_source(source), None).unwrap();
    let named = exprs.iter().enumerate().map(|(i, expr)| expr.clone().alias(format!("x{i}")));
    let plan = scan.project(named).and_then(LogicalPlanBuilder::build).map_err(|error| planning(&error))?;
    let plan = guarded(plan, &context.state())?;
    let physical = context.state().create_physical_plan(&plan).await.map_err(|error| planning(&error))?;
    let batches = datafusion::physical_plan::collect(physical, context.task_ctx()).await;
    let batches = batches.map_err(|error| QueryError::failed(error.to_string()))?;
    Ok(datafusion::arrow::compute::concat_batches(&batches[0].schema(), &batches).unwrap())
}

async fn one(context: &SessionContext, batch: &RecordBatch, sql: &str) -> Result<ArrayRef, QueryError> {
    let schema = DFSchema::try_from(batch.schema()).unwrap();
    let expr = allowed(context, &schema, sql).unwrap_or_else(|| panic!("{sql} is not allowed"));
    compute(context, batch, &[expr]).await.map(|batch| Arc::clone(batch.column(0)))
}

fn texts(array: &ArrayRef) -> Vec<String> {
    let cell =
        |i| if array.is_null(i) { "-".to_owned() } else { ScalarValue::try_from_array(array, i).unwrap().to_string() };
    (0..array.len()).map(cell).collect()
}

#[tokio::test]
async fn only_the_rows_at_fault_are_null() {
    let context = context();
    let batch = table(vec![
        ("x", Arc::new(Float64Array::from(vec![4.0, -1.0, 9.0, 0.0, -0.5]))),
        ("n", Arc::new(Int64Array::from(vec![Some(20), Some(21), None, Some(-1), Some(3)]))),
        ("d", Arc::new(StringArray::from(vec!["2000-01-01", "never", "1999-12-31", "", "2000-02-30"]))),
    ]);
    for (sql, expected) in [
        ("sqrt(x)", ["2", "-", "3", "0", "-"]),
        ("coalesce(sqrt(x), -7)", ["2", "-7", "3", "0", "-7"]),
        ("factorial(n)", ["2432902008176640000", "-", "-", "-", "6"]),
        ("n / (n - 3)", ["1", "1", "-", "0", "-"]),
        ("to_date(d)", ["2000-01-01", "-", "1999-12-31", "-", "-"]),
        ("CASE WHEN factorial(n) IS NULL THEN 'none' ELSE 'some' END", ["some", "none", "none", "none", "some"]),
        ("d ~ '^[12]'", ["true", "false", "true", "false", "true"]),
    ] {
        let found = one(&context, &batch, sql).await.unwrap_or_else(|error| panic!("{sql}: {error:?}"));
        assert_eq!(texts(&found), expected, "{sql}");
    }
}

/// A function that panics on 13, with the value in its words.
fn superstitious() -> datafusion::logical_expr::ScalarUDF {
    use datafusion::logical_expr::{ColumnarValue, Volatility, create_udf};
    let function = |arguments: &[ColumnarValue]| {
        let ColumnarValue::Array(array) = &arguments[0] else { panic!("a column") };
        let values = array.as_primitive::<Float64Type>();
        assert!(values.iter().all(|value| value != Some(13.0)), "there is {values:?}");
        Ok(ColumnarValue::Array(Arc::clone(array)))
    };
    let kind = DataType::Float64;
    create_udf("cot", vec![kind.clone()], kind, Volatility::Immutable, Arc::new(function))
}

/// Also run by the test below, in a process of its own.
#[tokio::test]
async fn rows_that_panic_are_null() {
    let context = context();
    context.register_udf(superstitious());
    let batch = table(vec![("x", Arc::new(Float64Array::from(vec![1.0, 13.0, 2.0, 13.0, 5.0])))]);
    let found = one(&context, &batch, "cot(x)").await.unwrap();
    assert_eq!(texts(&found), ["1", "-", "2", "-", "5"]);
    let elsewhere = std::panic::catch_unwind(|| panic!("a panic outside of the evaluator"));
    assert!(elsewhere.is_err());
}

#[test]
fn a_panic_is_null_and_prints_nothing() {
    let own = std::env::current_exe().unwrap();
    let name = "evaluate::tests::rows_that_panic_are_null";
    let run = std::process::Command::new(own).args([name, "--exact", "--nocapture"]).output().unwrap();
    let printed = String::from_utf8_lossy(&run.stdout).into_owned() + &String::from_utf8_lossy(&run.stderr);
    assert!(run.status.success() && printed.contains("1 passed"), "{printed}");
    assert!(!printed.contains("there is"), "{printed}");
    assert!(printed.contains("a panic outside of the evaluator"), "others are printed as before: {printed}");
}

#[tokio::test]
async fn text_grows_up_to_a_length_that_a_row_alone_decides() {
    let context = context();
    let batch = table(vec![
        ("s", Arc::new(StringArray::from(vec!["a".to_owned(), "b".repeat(40_000), "ab".to_owned(), String::new()]))),
        ("n", Arc::new(Int64Array::from(vec![65_536, 2, 1 << 62, i64::MAX]))),
    ]);
    for (sql, expected) in [
        ("octet_length(repeat(s, n))", ["65536", "-", "-", "0"]),
        ("octet_length(lpad(s, n))", ["-", "2", "-", "-"]),
        ("octet_length(s || s)", ["2", "-", "4", "0"]),
        ("octet_length(concat(s, s))", ["2", "-", "4", "0"]),
        ("octet_length(replace(s, 'b', 'cc'))", ["1", "-", "3", "0"]),
        ("octet_length(replace(s, 'b', 'c'))", ["1", "40000", "2", "0"]),
        ("octet_length(regexp_replace(s, 'b', 'c', 'g'))", ["1", "-", "2", "0"]),
        ("levenshtein(s, s)", ["0", "-", "0", "0"]),
        ("octet_length(repeat('x', 100000))", ["-", "-", "-", "-"]),
        // More than any machine has, were it asked for: an allocation that fails ends the process, and says for how many rows.
        ("octet_length(lpad(s, 2000000000, s))", ["-", "-", "-", "-"]),
        ("octet_length(rpad(s, 2000000000, s))", ["-", "-", "-", "-"]),
    ] {
        let found = one(&context, &batch, sql).await.unwrap_or_else(|error| panic!("{sql}: {error:?}"));
        assert_eq!(texts(&found), expected, "{sql}");
    }
}

#[tokio::test]
async fn what_can_be_computed_on_no_row_is_refused() {
    let context = context();
    let batch = table(extremes::columns());
    for sql in [
        "date_part('century', d)",
        "date_trunc('fortnight', w)",
        "s ~ '('",
        "sqrt(CAST('x' AS INT) + factorial(-1))",
        "s LIKE 'a!%' ESCAPE '!'",
    ] {
        let error = one(&context, &batch, sql).await.map(|found| texts(&found)).unwrap_err();
        assert_eq!(error.fault, crate::error::Fault::Asked, "{sql}: {error:?}");
    }
    // What is only sometimes so is not.
    for sql in ["to_timestamp(s, '%Y/%m/%d')", "factorial(i)", "CAST(s AS INTERVAL)", "make_date(n, n, n)"] {
        one(&context, &batch, sql).await.unwrap_or_else(|error| panic!("{sql}: {error:?}"));
    }
}

#[tokio::test]
async fn simple_filters_are_left_to_the_engine() {
    let context = context();
    let batch = table(extremes::columns());
    let schema = DFSchema::try_from(batch.schema()).unwrap();
    let state = context.state();
    for (sql, plain) in [
        ("i > 5 AND s = 'a' OR NOT (d IS NULL)", true),
        ("i + 3 * n > 7", true),
        ("s LIKE 'a%'", true),
        ("i IN (1, 2, 3)", true),
        ("m BETWEEN 1 AND 5", true),
        ("i / 7 = 2", true),
        ("m + 1 > 7", false),
        ("d + INTERVAL '1 day' > DATE '2000-01-01'", false),
        ("CAST(s AS DATE) IS NULL", false),
        ("s LIKE t", false),
    ] {
        let expr = state.create_logical_expr(sql, &schema).unwrap();
        let source = Arc::new(MemTable::try_new(batch.schema(), vec![vec![]]).unwrap());
        let scan = LogicalPlanBuilder::scan("t", datafusion::datasource::provider_as_source(source), None).unwrap();
        let plan = guarded(scan.filter(expr).unwrap().build().unwrap(), &state).unwrap();
        assert_eq!(!has_attempts(&plan), plain, "{sql}: {}", plan.display_indent());
    }
}

/// The engine's own mean adds floats, and would tell these users apart by the order of their rows.
#[test]
fn the_mean_of_whole_numbers_depends_on_no_order() {
    let scratch = Scratch::new("exact_mean");
    let values = [i64::MAX, i64::MIN, 3, i64::MAX, i64::MIN, 3, i64::MAX, i64::MAX, i64::MIN, i64::MIN];
    let users = [1, 1, 1, 1, 1, 2, 2, 2, 2, 2];
    let columns: Vec<(&str, ArrayRef)> = vec![
        ("user_id", Arc::new(Int64Array::from(users.to_vec()))),
        ("n", Arc::new(Int64Array::from(values.to_vec()))),
    ];
    scratch.parquet("t.parquet", columns);
    let config = scratch.write(
        "whit.toml",
        "[dataset.t]\nsource = 't.parquet'\nunit.user = 'user_id'\nunit.protect = 'user'\nunit.caps = { rows_per_user = 5 }\n",
    );
    let tables = Tables::open(&config, Tuning { memory: None, threads: Some(2) }).unwrap();
    for (inside, expected) in
        [("AVG(n) AS x FROM t GROUP BY user_id", 2), ("AVG(n) OVER (PARTITION BY user_id) AS x FROM t", 10)]
    {
        let sql = format!("SELECT COUNT(*) FROM (SELECT user_id, {inside}) WHERE x = 0.2");
        let (_, parts) = tables.exact_for_tests(&sql, &Asking { rows: Some(5), ..Asking::default() }).unwrap();
        assert_eq!(parts[0].measures[0], [expected], "{sql}");
    }
}

/// The optimiser would write the text out, however long, before anything is charged.
#[test]
fn a_constant_that_grows_too_long_is_missing_in_the_meaning_too() {
    let scratch = Scratch::new("long_constant");
    let columns: Vec<(&str, ArrayRef)> =
        vec![("user_id", Arc::new(Int64Array::from(vec![1, 2]))), ("s", Arc::new(StringArray::from(vec!["a", "b"])))];
    scratch.parquet("t.parquet", columns);
    let config = scratch.write(
        "whit.toml",
        "[dataset.t]\nsource = 't.parquet'\nunit.user = 'user_id'\nunit.protect = 'user'\nunit.caps = { rows_per_user = 5 }\n",
    );
    let tables = Tables::open(&config, Tuning { memory: None, threads: Some(2) }).unwrap();
    let meaning = |condition: &str| {
        let sql = format!("SELECT COUNT(*) FROM t WHERE {condition}");
        let plan = tables.plan(&sql, &Asking::default()).unwrap_or_else(|error| panic!("{sql}: {error:?}"));
        crate::plan::meaning::of(&plan, &serde_json::json!({}), tables.warehouse()).unwrap()
    };
    for long in ["s = lpad('x', 100000, upper('y'))", "s > rpad('x', 50000 + 50000, 'Y')"] {
        let meaning = meaning(long);
        assert!(!meaning.contains("YYYYYYYY"), "{long}: {} bytes", meaning.len());
    }
    assert!(meaning("s = lpad('x', 10 + 2, upper('y'))").contains("YYYYYYYYYYYx"), "others are computed");
}
