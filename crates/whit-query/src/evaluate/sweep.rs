//! Every function, cast and operator that planning allows, over the limits of every type, alone and in whole questions.

use super::extremes::{self, FIRST, ROWS, SECOND};
use super::samples;
use super::tests::{allowed, compute, context, table};
use crate::evaluate::allow;
use crate::plan::Asking;
use crate::release::Tables;
use crate::source::Tuning;
use crate::source::scratch::Scratch;
use datafusion::arrow::array::{ArrayRef, Int64Array, StringArray, UInt32Array};
use datafusion::arrow::compute::{cast, concat, take};
use datafusion::common::DFSchema;
use datafusion::logical_expr::Expr;
use datafusion::prelude::SessionContext;
use std::fmt::Write as _;
use std::sync::Arc;

const CONSTANTS: [&str; 8] =
    ["0", "-3", "1.5", "'x'", "'2000-01-01'", "INTERVAL '1 month'", "DATE '2000-01-31'", "9223372036854775807"];

/// Every function, cast and operator over columns of every type and a few constants, as far as planning allows them.
fn expressions(context: &SessionContext, schema: &DFSchema) -> Vec<(String, Expr)> {
    let mut texts: Vec<String> = functions().chain(casts()).chain(operators()).collect();
    texts.sort();
    texts.dedup();
    texts.into_iter().filter_map(|text| allowed(context, schema, &text).map(|expr| (text, expr))).collect()
}

fn all() -> impl Iterator<Item = &'static str> {
    FIRST.into_iter().chain(SECOND)
}

fn functions() -> impl Iterator<Item = String> {
    let mut texts: Vec<String> = Vec::new();
    for name in allow::names() {
        for a in all() {
            texts.push(format!("{name}({a})"));
            for b in CONSTANTS {
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
    texts.into_iter()
}

fn casts() -> impl Iterator<Item = String> {
    let mut texts = Vec::new();
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
        for a in all() {
            texts.push(format!("CAST({a} AS {kind})"));
            texts.push(format!("TRY_CAST({a} AS {kind})"));
            texts.push(format!("CAST(CAST({a} AS VARCHAR) AS {kind})"));
        }
    }
    texts.into_iter()
}

fn operators() -> impl Iterator<Item = String> {
    let mut texts = Vec::new();
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
            for b in CONSTANTS {
                texts.push(format!("{a} {operator} {b}"));
                texts.push(format!("{b} {operator} {a}"));
            }
        }
    }
    for a in all() {
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
    texts.into_iter()
}

/// So many rows are also computed alone.
const FEW: usize = 7;

/// Every function, cast and operator that planning allows, over the limits of every type: all of it comes to an end, and a row alone decides what
/// comes out for it.
#[tokio::test]
async fn no_value_makes_an_expression_fail() {
    let context = context();
    let batch = table(extremes::columns());
    let schema = DFSchema::try_from(batch.schema()).unwrap();
    let made = expressions(&context, &schema);
    let mut computed = 0;
    let mut wrong: Vec<String> = Vec::new();
    let mut names = std::collections::BTreeSet::new();
    let mut waiting: Vec<&[(String, Expr)]> = made.chunks(64).collect();
    while let Some(some) = waiting.pop() {
        let exprs: Vec<Expr> = some.iter().map(|(_, expr)| expr.clone()).collect();
        match compute(&context, &batch, &exprs).await {
            Ok(done) => {
                assert_eq!(done.num_rows(), ROWS);
                // A few rows alone come to what they came to among all.
                let few = (computed % (ROWS - FEW), FEW);
                let alone = compute(&context, &batch.slice(few.0, few.1), &exprs).await.unwrap();
                for ((text, _), (all, alone)) in some.iter().zip(done.columns().iter().zip(alone.columns())) {
                    if all.slice(few.0, few.1).ne(alone) {
                        wrong.push(format!("{text}, from row {}", few.0));
                    }
                }
                computed += some.len();
                names.extend(some.iter().filter_map(|(text, _)| text.split_once('(').map(|(name, _)| name.to_owned())));
            }
            Err(error) if some.len() == 1 => {
                assert_eq!(error.fault, crate::error::Fault::Asked, "{}: {error}", some[0].0);
            }
            Err(_) => waiting.extend(some.chunks(some.len().div_ceil(2))),
        }
    }
    assert!(wrong.is_empty(), "other rows decide: {wrong:#?}");
    assert!(computed > 5_000, "{computed} of {} expressions were computed", made.len());
    let missed: Vec<&str> = allow::names().filter(|name| *name != "pi" && !names.contains(*name)).collect();
    assert!(missed.is_empty(), "never computed: {missed:?}");
}

type Columns = Vec<(&'static str, ArrayRef)>;

/// Two tables that differ in rows of extremes, and public ones to join with.
fn neighbours(scratch: &Scratch) -> Tables {
    let ordinary = |name: &str, column: &ArrayRef| -> ArrayRef {
        if name == "y" {
            let texts: ArrayRef = Arc::new(StringArray::from(vec!["a"; 40]));
            return cast(&texts, column.data_type()).unwrap();
        }
        let sample = samples::ordinary(column.data_type()).unwrap();
        let picks: UInt32Array = (0..40_u32).map(|row| Some(row % 6)).collect();
        take(&sample, &picks, None).unwrap()
    };
    let (mut without, mut with) = (Columns::new(), Columns::new());
    let users: Vec<i64> = (0..40).map(|row| row / 4).collect();
    let more: Vec<i64> = users.iter().copied().chain((0..ROWS as i64).map(|row| 100 + row / 40)).collect();
    without.push(("user_id", Arc::new(Int64Array::from(users))));
    with.push(("user_id", Arc::new(Int64Array::from(more))));
    for (name, column) in extremes::columns() {
        let plain = ordinary(name, &column);
        with.push((name, concat(&[plain.as_ref(), column.as_ref()]).unwrap()));
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
        let _ = write!(
            text,
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
                let planned = tables.plan(&of("with"), &asking).err().map(|error| error.fault);
                if without.fault != with.fault || planned != Some(crate::error::Fault::Asked) {
                    wrong.push(format!("{sql}: {without}, {with}, {planned:?}"));
                }
                refused.push(sql);
            }
            (without, with) => wrong.push(format!("{sql}: {:?} and {:?}", without.err(), with.err())),
        }
    }
    assert!(wrong.is_empty(), "{} questions: {wrong:#?}", wrong.len());
    assert!(answered >= 4 * refused.len(), "{answered} were answered, and these refused: {refused:#?}");
}
