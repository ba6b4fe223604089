use super::extremes::{self, FIRST, ROWS, SECOND};
use super::*;
use crate::plan::{Asking, allow};
use crate::release::Tables;
use crate::source::Tuning;
use crate::source::scratch::Scratch;
use datafusion::arrow::array::{Array, ArrayRef, AsArray, Float64Array, Int64Array, RecordBatch, StringArray};
use datafusion::arrow::datatypes::Float64Type;
use datafusion::datasource::MemTable;
use datafusion::logical_expr::LogicalPlanBuilder;
use datafusion::prelude::SessionContext;
use std::sync::Arc;

fn context() -> SessionContext {
    let context = SessionContext::new();
    crate::functions::register(&context);
    context
}

fn table(columns: Vec<(&str, ArrayRef)>) -> RecordBatch {
    RecordBatch::try_from_iter_with_nullable(columns.into_iter().map(|(name, column)| (name, column, true))).unwrap()
}

/// An expression of a question over the columns of a batch, if planning allows it.
fn allowed(context: &SessionContext, schema: &DFSchema, sql: &str) -> Option<Expr> {
    let expr = context.state().create_logical_expr(sql, schema).ok()?;
    let mut never = |_: &LogicalPlan| Ok(false);
    let expr = allow::expression(expr, &mut never).ok()?;
    (!expr.is_volatile()).then_some(expr)
}

/// Expressions over a batch, computed as the engine does for questions.
async fn compute(context: &SessionContext, batch: &RecordBatch, exprs: &[Expr]) -> Result<RecordBatch, QueryError> {
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

#[tokio::test]
#[ignore = "run by the test below, in a process of its own"]
async fn panics_in_a_process_of_their_own() {
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
    let name = "evaluate::tests::panics_in_a_process_of_their_own";
    let run = std::process::Command::new(own).args([name, "--exact", "--ignored", "--nocapture"]).output().unwrap();
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

/// Every function, cast and operator over columns of every type and a few constants, as far as planning allows them.
fn expressions(context: &SessionContext, schema: &DFSchema) -> Vec<(String, Expr)> {
    let constants =
        ["0", "-3", "1.5", "'x'", "'2000-01-01'", "INTERVAL '1 month'", "DATE '2000-01-31'", "9223372036854775807"];
    let all: Vec<&str> = FIRST.iter().chain(&SECOND).copied().collect();
    let mut texts: Vec<String> = Vec::new();
    for name in allow::names() {
        for a in &all {
            texts.push(format!("{name}({a})"));
            for b in constants {
                texts.push(format!("{name}({a}, {b})"));
            }
        }
        for a in FIRST {
            for b in SECOND {
                texts.push(format!("{name}({a}, {b})"));
            }
        }
        for (a, b, c) in [
            ("s", "i", "j"),
            ("s", "t", "i"),
            ("s", "t", "s"),
            ("s", "j", "t"),
            ("n", "q", "n"),
            ("i", "j", "i"),
            ("f", "g", "f"),
            ("m", "p", "m"),
            ("d", "e", "d"),
            ("w", "v", "w"),
        ] {
            texts.push(format!("{name}({a}, {b}, {c})"));
        }
        for a in ["b", "i", "n", "u", "f", "m", "s", "d", "w", "z", "h", "v", "y"] {
            for pattern in ["'[a-z]+'", "'x'", "''", "'(.)(.)'"] {
                texts.push(format!("{name}({a}, {pattern}, '\\1-\\2', 'g')"));
                texts.push(format!("{name}({a}, {pattern}, 1, 'i')"));
            }
            for unit in [
                "year",
                "quarter",
                "month",
                "week",
                "day",
                "hour",
                "minute",
                "second",
                "millisecond",
                "microsecond",
                "epoch",
                "dow",
                "doy",
            ] {
                texts.push(format!("{name}('{unit}', {a})"));
            }
            texts.push(format!("{name}({a}, 0, 10)"));
            texts.push(format!("{name}({a}, 0, 10, 5)"));
            texts.push(format!("{name}({a}, '%Y-%m-%d')"));
            texts.push(format!("{name}(INTERVAL '15 minutes', {a})"));
            texts.push(format!("{name}(INTERVAL '1 month', {a}, TIMESTAMP '1970-01-01')"));
        }
    }
    let kinds = [
        "BOOLEAN",
        "TINYINT",
        "SMALLINT",
        "INT",
        "BIGINT",
        "TINYINT UNSIGNED",
        "INT UNSIGNED",
        "BIGINT UNSIGNED",
        "REAL",
        "DOUBLE",
        "DECIMAL(38, 10)",
        "DECIMAL(5, 2)",
        "DECIMAL(38, 0)",
        "DECIMAL(76, 20)",
        "VARCHAR",
        "BYTEA",
        "DATE",
        "TIME",
        "TIMESTAMP",
        "TIMESTAMP(3)",
        "TIMESTAMP WITH TIME ZONE",
        "INTERVAL",
    ];
    for kind in kinds {
        for a in &all {
            texts.push(format!("CAST({a} AS {kind})"));
            texts.push(format!("TRY_CAST({a} AS {kind})"));
            texts.push(format!("CAST(CAST({a} AS VARCHAR) AS {kind})"));
        }
    }
    let operators = [
        "+",
        "-",
        "*",
        "/",
        "%",
        "=",
        "<",
        ">=",
        "<>",
        "||",
        "&",
        "|",
        "#",
        "<<",
        ">>",
        "LIKE",
        "ILIKE",
        "NOT LIKE",
        "IS DISTINCT FROM",
        "AND",
    ];
    for operator in operators {
        for a in FIRST {
            for b in SECOND.iter().chain(&FIRST) {
                texts.push(format!("{a} {operator} {b}"));
                texts.push(format!("{b} {operator} {a}"));
            }
            for b in constants {
                texts.push(format!("{a} {operator} {b}"));
                texts.push(format!("{b} {operator} {a}"));
            }
        }
    }
    for a in &all {
        for text in [
            "-{}",
            "NOT {}",
            "{} IS NULL",
            "{} BETWEEN 0 AND 5",
            "{} IN (1, 2)",
            "{} ~ 'a+'",
            "{} !~* '^x'",
            "{} SIMILAR TO 'a|b'",
            "{} AT TIME ZONE 'Europe/Vienna'",
            "CASE {} WHEN 1 THEN 2 ELSE 3 END",
            "CASE WHEN {} IS NULL THEN 0 ELSE 1 END",
            "extract(epoch FROM {})",
            "{} + INTERVAL '1000000 years'",
            "{} - INTERVAL '300000 months'",
        ] {
            texts.push(text.replace("{}", a));
        }
    }
    texts.sort();
    texts.dedup();
    texts.into_iter().filter_map(|text| allowed(context, schema, &text).map(|expr| (text, expr))).collect()
}

/// Every function, cast and operator that planning allows, over the limits of every type: all of it comes to an end, and rows that are ordinary
/// are not touched by those that are not.
#[tokio::test]
async fn no_value_makes_an_expression_fail() {
    let context = context();
    let batch = table(extremes::columns());
    let schema = DFSchema::try_from(batch.schema()).unwrap();
    let made = expressions(&context, &schema);
    let mut computed = 0;
    let mut names = std::collections::BTreeSet::new();
    let mut waiting: Vec<&[(String, Expr)]> = made.chunks(64).collect();
    while let Some(some) = waiting.pop() {
        let exprs: Vec<Expr> = some.iter().map(|(_, expr)| expr.clone()).collect();
        match compute(&context, &batch, &exprs).await {
            Ok(done) => {
                assert_eq!(done.num_rows(), ROWS);
                computed += some.len();
                names.extend(some.iter().filter_map(|(text, _)| text.split_once('(').map(|(name, _)| name.to_owned())));
            }
            Err(error) if some.len() == 1 => {
                assert_eq!(error.fault, crate::error::Fault::Asked, "{}: {error}", some[0].0);
            }
            Err(_) => waiting.extend(some.chunks(some.len().div_ceil(2))),
        }
    }
    assert!(computed > 5_000, "{computed} of {} expressions were computed", made.len());
    let missed: Vec<&str> = allow::names().filter(|name| *name != "pi" && !names.contains(*name)).collect();
    assert!(missed.is_empty(), "never computed: {missed:?}");
}

/// Two tables that differ in rows of extremes, and public ones to join with.
fn neighbours(scratch: &Scratch) -> Tables {
    let ordinary = |name: &str, column: &ArrayRef| -> ArrayRef {
        match name {
            "y" => datafusion::arrow::compute::cast(
                &(Arc::new(StringArray::from(vec!["a"; 40])) as ArrayRef),
                column.data_type(),
            )
            .unwrap(),
            _ => {
                let sample = samples::ordinary(column.data_type()).unwrap();
                let picks: datafusion::arrow::array::UInt32Array = (0..40_u32).map(|row| Some(row % 6)).collect();
                datafusion::arrow::compute::take(&sample, &picks, None).unwrap()
            }
        }
    };
    let (mut without, mut with): (Vec<(&str, ArrayRef)>, Vec<(&str, ArrayRef)>) = (Vec::new(), Vec::new());
    let users: Vec<i64> = (0..40).map(|row| row / 4).collect();
    let more: Vec<i64> = users.iter().copied().chain((0..ROWS as i64).map(|row| 100 + row / 40)).collect();
    without.push(("user_id", Arc::new(Int64Array::from(users))));
    with.push(("user_id", Arc::new(Int64Array::from(more))));
    for (name, column) in extremes::columns() {
        let plain = ordinary(name, &column);
        with.push((name, datafusion::arrow::compute::concat(&[plain.as_ref(), column.as_ref()]).unwrap()));
        without.push((name, plain));
    }
    for (file, columns) in [("without.parquet", without), ("with.parquet", with)] {
        let batch = table(columns);
        let mut bytes = Vec::new();
        let mut writer = datafusion::parquet::arrow::ArrowWriter::try_new(&mut bytes, batch.schema(), None).unwrap();
        writer.write(&batch).unwrap();
        writer.close().unwrap();
        scratch.write(file, bytes);
    }
    scratch.write("labels.csv", "number,label\n1,one\n2,two\n");
    let mut text = "[dataset.labels]\nsource = 'labels.csv'\npublic = true\n".to_owned();
    for name in ["without", "with"] {
        text += &format!(
            "[dataset.{name}]\nsource = '{name}.parquet'\nunit.user = 'user_id'\nunit.element = \"date_trunc('month', w)\"\nunit.protect = 'user'\nunit.caps = {{ rows_per_user = 50, groups = 5 }}\ncolumns.f = {{ bounds = [0, 10] }}\ncolumns.i = {{ bounds = [0, 10] }}\n"
        );
    }
    let config = scratch.write("whit.toml", text);
    Tables::open(&config, Tuning { memory: None, threads: Some(2) }).unwrap()
}

/// Steps that some row cannot be taken through.
const STEPS: [&str; 36] = [
    "sqrt(f)",
    "round(i, -n)",
    "date_trunc('year', w)",
    "date_trunc('month', z)",
    "CAST(w AS DATE)",
    "CAST(d AS TIMESTAMP)",
    "w - v",
    "w - w",
    "d + n",
    "CAST(s AS INTERVAL)",
    "m * k",
    "m + p",
    "ceil(m)",
    "k * k",
    "s LIKE t",
    "power(i, 3)",
    "power(n, q)",
    "factorial(i)",
    "repeat(s, i)",
    "lpad(s, j)",
    "date_part('year', d)",
    "date_part('epoch', z)",
    "to_timestamp(i)",
    "from_unixtime(i)",
    "i / j",
    "i % j",
    "abs(i)",
    "-i",
    "chr(i)",
    "gcd(i, j)",
    "lcm(i, j)",
    "d + INTERVAL '1 month'",
    "CAST(y AS VARCHAR)",
    "to_char(d, '%Y')",
    "h + INTERVAL '1 hour'",
    "date_bin(INTERVAL '1 day', w)",
];

/// The places of a question in which an expression over private rows may stand.
const PLACES: [&str; 15] = [
    "SELECT COUNT({}) FROM t",
    "SELECT COUNT(*) FROM t WHERE {} IS NOT NULL",
    "SELECT COUNT(DISTINCT {}) FROM t",
    "SELECT COUNT(*) FILTER (WHERE {} IS NULL) FROM t",
    "SELECT {}, COUNT(*) FROM t GROUP BY 1",
    "SELECT SUM(clamp(CASE WHEN {} IS NULL THEN 0 ELSE 1 END, 0, 1)) FROM t",
    "SELECT COUNT(*) FROM (SELECT {} AS x, user_id FROM t) WHERE x IS NOT NULL",
    "SELECT COUNT(*) FROM t JOIN labels ON CAST({} AS VARCHAR) = labels.label",
    "SELECT COUNT(*) FROM t JOIN labels ON t.i = labels.number AND {} IS NOT NULL",
    "SELECT COUNT(x) FROM (SELECT user_id, MAX({}) AS x FROM t GROUP BY user_id)",
    "SELECT COUNT(x) FROM (SELECT user_id, COUNT(DISTINCT {}) AS x FROM t GROUP BY user_id, {})",
    "SELECT COUNT(x) FROM (SELECT user_id, lag({}) OVER (PARTITION BY user_id ORDER BY {}) AS x FROM t)",
    "SELECT COUNT(x) FROM (SELECT user_id, rank() OVER (PARTITION BY user_id, {} ORDER BY i) AS x FROM t)",
    "SELECT COUNT(*) FROM (SELECT DISTINCT user_id, {} FROM t)",
    "SELECT COUNT(*) FROM (SELECT user_id, {} AS x FROM t UNION ALL SELECT user_id, {} AS x FROM t) WHERE x IS NULL",
];

/// Aggregates inside of a user, windows and their frames, over every column.
fn looking_around() -> Vec<String> {
    let mut made = Vec::new();
    for column in FIRST.iter().chain(&SECOND) {
        for inside in ["COUNT", "MIN", "MAX", "SUM", "AVG", "MEDIAN", "COUNT(DISTINCT", "BOOL_AND"] {
            let inside =
                if inside.contains('(') { format!("{inside} {column})") } else { format!("{inside}({column})") };
            made.push(format!("SELECT COUNT(x) FROM (SELECT user_id, {inside} AS x FROM t GROUP BY user_id)"));
            made.push(format!(
                "SELECT COUNT(x) FROM (SELECT user_id, {inside} OVER (PARTITION BY user_id ORDER BY {column} ROWS BETWEEN 2 PRECEDING AND 1 FOLLOWING) AS x FROM t)"
            ));
        }
        for reach in ["1", "INTERVAL '1 month'", "INTERVAL '200000 years'", "1.5", "9223372036854775807"] {
            made.push(format!(
                "SELECT COUNT(x) FROM (SELECT user_id, SUM(i) OVER (PARTITION BY user_id ORDER BY {column} RANGE BETWEEN {reach} PRECEDING AND {reach} FOLLOWING) AS x FROM t)"
            ));
        }
        made.push(format!("SELECT COUNT(*) FROM t a JOIN t b ON a.user_id = b.user_id AND a.{column} = b.{column}"));
        made.push(format!("SELECT {column}, COUNT(*) FROM t GROUP BY {column}"));
    }
    made
}

/// Whole questions, in every place where an expression may stand: one that is answered without the extreme rows is answered with them.
#[test]
fn no_value_makes_a_question_fail() {
    let scratch = Scratch::new("no_value_fails");
    let tables = neighbours(&scratch);
    let asking = Asking { groups: Some(3), rows: Some(50), ..Asking::default() };
    let (mut answered, mut refused, mut wrong) = (0, Vec::new(), Vec::new());
    let placed = PLACES.iter().flat_map(|place| STEPS.iter().map(|step| place.replace("{}", step)));
    for sql in placed.chain(looking_around()) {
        let of = |table: &str| {
            let sql =
                sql.replace("FROM t", &format!("FROM \"{table}\"")).replace("JOIN t ", &format!("JOIN \"{table}\" "));
            sql.replace("t.i", &format!("\"{table}\".i"))
        };
        match (tables.exact_for_tests(&of("without"), &asking), tables.exact_for_tests(&of("with"), &asking)) {
            (Ok((plan, _)), Ok((other, parts))) => {
                let types = |plan: &crate::plan::Plan| {
                    let outputs = plan.parts.iter().flat_map(|part| &part.output);
                    outputs.map(|(_, kind)| kind.clone()).collect::<Vec<_>>()
                };
                assert_eq!(types(&plan), types(&other), "{sql}");
                assert!(parts.iter().all(|part| !part.measures.is_empty()), "{sql}");
                answered += 1;
            }
            // What fails either way is found out before it is paid for, from made-up rows.
            (Err(without), Err(with)) => {
                let told = tables.plan(&of("with"), &asking).err().map(|told| told.fault);
                if without.fault != with.fault || told != Some(crate::error::Fault::Asked) {
                    wrong.push(format!("{sql}: {without}, {with}, {told:?}"));
                }
                refused.push(sql);
            }
            (without, with) => wrong.push(format!("{sql}: {:?} and {:?}", without.err(), with.err())),
        }
    }
    assert!(wrong.is_empty(), "{} questions: {wrong:#?}", wrong.len());
    assert!(answered >= 4 * refused.len(), "{answered} were answered, and these refused: {refused:#?}");
}
