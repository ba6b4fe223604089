//! Questions that are refused before anything is paid, and keys that keep their type.

use crate::ask::{USER, number};
use crate::room::{Room, ask, asking, visits};
use datafusion::arrow::array::{
    ArrayRef, Decimal128Array, Float64Array, Int64Array, RecordBatch, StringArray, StructArray,
};
use datafusion::arrow::datatypes::{DataType, Field};
use datafusion::parquet::arrow::ArrowWriter;
use datafusion::parquet::file::properties::{EnabledStatistics, WriterProperties};
use std::sync::Arc;
use whit_account::ledger::Register as _;
use whit_core::declare::Declaration;
use whit_query::plan::Asking;
use whit_query::source::Tuning;
use whit_query::{Fault, Tables, Value};

fn parquet(room: &Room, name: &str, columns: Vec<(&str, ArrayRef)>) {
    let batch =
        RecordBatch::try_from_iter_with_nullable(columns.into_iter().map(|(name, column)| (name, column, true)));
    let batch = batch.unwrap();
    let file = std::fs::File::create(room.path().join(name)).unwrap();
    let mut writer = ArrowWriter::try_new(file, batch.schema(), None).unwrap();
    writer.write(&batch).unwrap();
    writer.close().unwrap();
}

/// None of these can be answered whatever the rows are, so none costs anything.
#[test]
fn a_question_that_can_never_be_answered_is_not_charged() {
    let room = Room::new("never_answered");
    room.write("visits.csv", &visits());
    let owner: ArrayRef = Arc::new(Int64Array::from(vec![1, 2, 3]));
    let pair = StructArray::from(vec![(Arc::new(Field::new("a", DataType::Int64, true)), Arc::clone(&owner))]);
    let day: ArrayRef = Arc::new(datafusion::arrow::array::Date32Array::from(vec![1, 2, 3]));
    parquet(&room, "pairs.parquet", vec![("user_id", owner), ("pair", Arc::new(pair)), ("day", day)]);
    let pairs = USER.replace("visits.csv", "pairs.parquet").replace("dataset.visits", "dataset.pairs");
    let pairs = pairs.lines().filter(|line| !line.starts_with("columns")).collect::<Vec<_>>().join("\n");
    let tables = room.tables(&format!("{USER}{pairs}"));
    let mut wrong = Vec::new();
    for sql in [
        "SELECT COUNT(*) FROM visits WHERE shop LIKE 'n!%' ESCAPE '!'",
        "SELECT COUNT(*) FROM visits WHERE shop ~ '('",
        "SELECT pair, COUNT(*) FROM pairs GROUP BY pair",
        "SELECT date_part('century', day), COUNT(*) FROM pairs GROUP BY 1",
        "SELECT COUNT(*) FROM pairs WHERE date_part('century', day) = 20",
        "SELECT COUNT(*) FROM visits WHERE CASE WHEN user_id = 42 THEN factorial(-1) ELSE 1 END = 1",
        "SELECT date_part('century', MAX(to_timestamp(n))) FROM (SELECT shop, COUNT(*) AS n FROM visits GROUP BY shop)",
        "SELECT COUNT(*) FROM (SELECT user_id, lag(seconds, day) OVER (PARTITION BY user_id ORDER BY day) AS x FROM visits) WHERE x > 1",
        "SELECT COUNT(x) FROM (SELECT user_id, ntile(0) OVER (PARTITION BY user_id ORDER BY day) AS x FROM visits)",
        "SELECT COUNT(*) FROM visits WHERE day > (SELECT column1 FROM (VALUES (1), (2)) AS v)",
    ] {
        // A preview, and then the question.
        let errors = [tables.plan(sql, &asking(1.0)).err(), ask(&tables, &room, sql, &asking(1.0)).err()];
        if !errors.iter().all(|error| error.as_ref().is_some_and(|error| error.fault == Fault::Asked)) {
            wrong.push(format!("{sql}: {errors:?}"));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
    assert_eq!(room.books().verify().unwrap().entries, 0);
}

/// The engine reads these clauses and goes on without them.
#[test]
fn clauses_that_are_not_heeded_are_refused() {
    let room = Room::new("unheeded");
    room.write("visits.csv", &visits());
    let tables = room.tables(USER);
    for (sql, clause) in [
        ("SELECT COUNT(*) FROM visits TABLESAMPLE BERNOULLI (10)", "TABLESAMPLE"),
        ("SELECT COUNT(*) FROM visits v TABLESAMPLE SYSTEM (10 PERCENT)", "TABLESAMPLE"),
        ("SELECT COUNT(*) FROM (SELECT * FROM visits TABLESAMPLE (5 ROWS)) AS v", "TABLESAMPLE"),
        ("WITH v AS (SELECT * FROM visits TABLESAMPLE (5)) SELECT COUNT(*) FROM v", "TABLESAMPLE"),
        ("SELECT COUNT(*) FROM visits FOR UPDATE", "FOR UPDATE"),
        ("SELECT day, COUNT(*) FROM visits GROUP BY day WITH ROLLUP", "WITH ROLLUP"),
        ("SELECT day, COUNT(*) FROM visits GROUP BY day WITH CUBE", "WITH CUBE"),
        ("SELECT COUNT(*) FROM (SELECT user_id FROM visits GROUP BY user_id WITH TOTALS)", "WITH TOTALS"),
    ] {
        let error = ask(&tables, &room, sql, &asking(1.0)).map(|answer| answer.rows.len()).expect_err(sql);
        assert!(error.fault == Fault::Asked && error.sentence.contains(clause), "{sql}: {error}");
    }
    assert_eq!(room.books().verify().unwrap().entries, 0);
}

/// Each in words that name the thing and the next step.
#[test]
fn slips_are_answered_with_what_was_probably_meant() {
    let room = Room::new("slips");
    room.write("visits.csv", &visits());
    let tables = room.tables(USER);
    let groups = Asking { groups: Some(0), ..asking(1.0) };
    let about = Asking { about: Some(-5.0), ..asking(1.0) };
    for (sql, asking, sentence, hint) in [
        (" \n", asking(1.0), "is empty", "SELECT"),
        (
            "SELECT COUNT(*) FROM visits WHERE shop = \"zz zz\"",
            asking(1.0),
            "no column `zz zz`",
            "single quotes: 'zz zz'",
        ),
        ("SELECT COUNT(*) FORM visits", asking(1.0), "", "FROM where FORM stands"),
        ("SELECT QUANTILE(seconds, 0.9) FROM visits", asking(1.0), "`quantile`", "APPROX_PERCENTILE_CONT"),
        ("SELECT MODE(shop) FROM visits", asking(1.0), "`mode`", "GROUP BY"),
        ("SELECT day, COUNT(*) FROM visits GROUP BY day", groups, "`asking.groups = 0`", "from 1 on"),
        ("SELECT COUNT(*) FROM visits", about, "`asking.about = -5`", "from 1 on"),
    ] {
        let error = tables.plan(sql, &asking).map(|plan| plan.parts.len()).expect_err(sql);
        let found = error.hint.clone().unwrap_or_default();
        assert!(error.sentence.contains(sentence) && found.contains(hint), "{sql}: {error}; {found}");
    }
}

/// The pages of a file are damaged and its description is not, so whatever reads a row fails: what a budget refuses reads none, and what fails
/// stays reserved.
#[test]
fn rows_are_read_only_after_the_reservation() {
    let room = Room::new("read_after_reserving");
    let ids: ArrayRef = Arc::new(Int64Array::from((0..1000).collect::<Vec<i64>>()));
    parquet(&room, "t.parquet", vec![("user_id", ids)]);
    let unit = "unit.user = \"user_id\"\nunit.protect = \"user\"\nunit.caps = { rows_per_user = 1 }\n";
    let budget = "budget.user = { epsilon = 3.0, delta = 1e-5 }\n";
    let tables = room.tables(&format!("[dataset.t]\nsource = \"t.parquet\"\n{unit}{budget}"));
    let fault = |epsilon: f64| {
        let asked = ask(&tables, &room, "SELECT COUNT(*) FROM t", &asking(epsilon));
        asked.map(|answer| answer.rows.len()).map_err(|error| error.fault)
    };
    let entries = || room.books().verify().unwrap().entries;
    assert_eq!(fault(1.0), Ok(1), "as long as the file is whole; its hash is remembered from here on");
    let path = room.path().join("t.parquet");
    let modified = std::fs::metadata(&path).unwrap().modified().unwrap();
    let mut bytes = std::fs::read(&path).unwrap();
    let end = bytes.len() - 8;
    let described = u32::from_le_bytes(bytes[end..end + 4].try_into().unwrap()) as usize;
    bytes[4..end - described].fill(0xff);
    std::fs::write(&path, &bytes).unwrap();
    std::fs::File::options().write(true).open(&path).unwrap().set_modified(modified).unwrap();
    assert_eq!(fault(50.0), Err(Fault::Refused), "no row was read");
    let before = entries();
    assert_eq!(fault(1.5), Err(Fault::Failed), "a row was read");
    assert_eq!(entries(), before + 1, "and the reservation stands");
}

/// 65 users whose keys are one float and 65 decimals.
#[test]
fn decimal_keys_are_compared_as_decimals() {
    let room = Room::new("decimal_keys");
    let first = 9_007_199_254_740_992_i128 * 1000;
    let keys = |many: i128| -> ArrayRef {
        let keys = Decimal128Array::from_iter_values((0..many).map(|i| first + i));
        Arc::new(keys.with_precision_and_scale(38, 3).unwrap())
    };
    for (name, many) in [("all", 65), ("fewer", 64)] {
        let ones: ArrayRef = Arc::new(Float64Array::from(vec![1.0; many as usize]));
        parquet(&room, &format!("{name}.parquet"), vec![("user_id", keys(many)), ("x", ones)]);
    }
    parquet(&room, "public.parquet", vec![("k", keys(65))]);
    let unit = "unit.user = \"user_id\"\nunit.protect = \"user\"\nunit.caps = { rows_per_user = 1 }\ncolumns.x = { bounds = [0, 1] }\n";
    let declare = |name: &str| format!("[dataset.{name}]\nsource = \"{name}.parquet\"\n{unit}");
    let public = "[dataset.public]\nsource = \"public.parquet\"\npublic = true\n";
    let tables = room.tables(&format!("{}{}{public}", declare("all"), declare("fewer")));
    for sql in [
        "SELECT COUNT(*) FROM {T} a JOIN {T} b ON a.user_id = b.user_id",
        "SELECT SUM(a.x) FROM {T} a JOIN {T} b ON a.user_id = b.user_id AND a.x = b.x",
        "SELECT COUNT(*) FROM (SELECT user_id, COUNT(*) AS n FROM {T} GROUP BY user_id)",
        "SELECT COUNT(DISTINCT user_id) FROM {T}",
        "SELECT COUNT(DISTINCT user_id + 1) FROM {T}",
        "SELECT COUNT(*) FROM {T} a JOIN public p ON a.user_id = p.k",
        "SELECT COUNT(*) FROM {T} a JOIN public p ON a.user_id + 1 = p.k + 1",
    ] {
        let exact = |table: &str| {
            let sql = sql.replace("{T}", &format!("\"{table}\""));
            let asking = Asking { rows: Some(1), ..Asking::default() };
            tables.exact_for_tests(&sql, &asking).unwrap_or_else(|error| panic!("{sql}: {error}"))
        };
        let ((plan, all), (_, fewer)) = (exact("all"), exact("fewer"));
        let moved = plan.parts[0].measures[0].moved[0].l1;
        let step = (all[0].measures[0][0] - fewer[0].measures[0][0]).unsigned_abs() as f64;
        assert!(step <= moved, "{sql}: {step} where {moved} was planned");
        assert_eq!(all[0].measures[0][0] / plan.parts[0].measures[0].high.max(1), 65, "{sql}");
    }
}

/// A count with a private condition is not public because its argument is.
#[test]
fn an_inner_aggregate_with_a_private_filter_is_private() {
    let room = Room::new("private_filter");
    room.write("visits.csv", &visits());
    let tables = room.tables(
        "[dataset.visits]\nsource = \"visits.csv\"\nunit.user = \"user_id\"\nunit.public = [\"user_id\", \"shop\", \"day\"]\nunit.protect = \"feature\"\nunit.caps = { rows_per_user = 8 }\ncolumns.user_id = \"int\"\ncolumns.shop = \"text\"\ncolumns.seconds = { type = \"int\", bounds = [0, 600] }\ncolumns.day = { type = \"int\", bounds = [0, 10] }\n",
    );
    for filter in ["FILTER (WHERE seconds > 300)", "FILTER (WHERE day > 3 AND seconds < 300)"] {
        let sql = format!(
            "SELECT SUM(clamp(c, 0, 10)) FROM (SELECT user_id, COUNT(*) {filter} AS c FROM visits GROUP BY user_id)"
        );
        let plan = tables.plan(&sql, &Asking { rows: Some(1), ..Asking::default() });
        let plan = plan.unwrap_or_else(|error| panic!("{sql}: {error}"));
        assert!(!plan.parts[0].statistics[0].is_exact(), "{sql}");
    }
}

/// What some noise or some row makes impossible is missing, and the answer comes.
#[test]
fn an_expression_that_fails_on_some_rows_is_answered() {
    let room = Room::new("some_rows_fail");
    room.write("visits.csv", &visits());
    let tables = room.tables(USER);
    let count = |sql: &str| {
        let answer = ask(&tables, &room, sql, &asking(50.0)).unwrap_or_else(|error| panic!("{sql}: {error:?}"));
        match answer.rows[0][0].value {
            Value::Int(value) => value as f64,
            Value::Float(value) => value,
            ref other => panic!("{sql}: {other:?}"),
        }
    };
    let all = count("SELECT COUNT(*) FROM visits");
    assert!((count("SELECT COUNT(sqrt(CASE WHEN user_id = 42 THEN -1 ELSE 1 END)) FROM visits") - all).abs() < 20.0);
    assert!(count("SELECT COUNT(sqrt(seconds - 300)) FROM visits") < 0.7 * all);
    assert!(count("SELECT COUNT(factorial(day * 7)) FROM visits") < 0.5 * all, "from 21! on there is none");
    let mean = count("SELECT AVG(sqrt(seconds)) FROM visits");
    assert!((10.0..25.0).contains(&mean), "{mean}");
    let nothing = "SELECT sqrt(-COUNT(*)) FROM visits";
    assert_eq!(ask(&tables, &room, nothing, &asking(50.0)).unwrap().rows[0][0].value, Value::Null);
}

/// Who wrote a row may have written what is no text. That the question fails would tell of it.
#[test]
fn text_in_parquet_that_is_not_utf8_is_missing_and_fails_nothing() {
    let room = Room::new("no_utf8");
    let users: ArrayRef = Arc::new(Int64Array::from_iter_values(0..400));
    let shop = |user: i64| if user == 17 { "mark~~" } else { ["north", "south"][usize::from(user % 2 == 0)] };
    let shops: ArrayRef = Arc::new(StringArray::from_iter_values((0..400).map(shop)));
    parquet(&room, "t.parquet", vec![("user_id", users), ("shop", shops)]);
    let path = room.path().join("t.parquet");
    let mut bytes = std::fs::read(&path).unwrap();
    let marks: Vec<usize> = (0..bytes.len()).filter(|&at| bytes[at..].starts_with(b"mark~~")).collect();
    assert!(!marks.is_empty());
    for at in marks {
        bytes[at..at + 6].fill(0xc0);
    }
    std::fs::write(&path, bytes).unwrap();
    let declared = "[dataset.t]\nsource = \"t.parquet\"\nunit.user = \"user_id\"\nunit.protect = \"user\"\nunit.change = \"add-remove\"\nunit.caps = { rows_per_user = 1 }\ncolumns.shop.keys = [\"north\", \"south\"]\n";
    for threads in [1, 2] {
        for (sql, expected) in [
            ("SELECT COUNT(shop) FROM t", 399),
            ("SELECT COUNT(*) FROM t WHERE shop = 'north'", 199),
            ("SELECT COUNT(*) FROM t WHERE shop IS NULL", 1),
            ("SELECT COUNT(*) FROM t", 400),
        ] {
            let declaration = Declaration::parse(declared).unwrap();
            let tables = Tables::of(declaration, room.path(), Tuning { memory: None, threads: Some(threads) }).unwrap();
            let found = tables.release_many_for_audit(sql, &asking(1000.0), 1).unwrap();
            assert_eq!(number(&found.runs[0][0].1[0]).round() as i64, expected, "{sql}");
        }
    }
}

/// What a file says of its blocks may save reading them, and never change an answer: a cast or a negative of a column is not what is said of the column. One
/// row would bring or take its whole block.
#[test]
fn what_a_file_says_of_its_blocks_changes_no_answer() {
    let room = Room::new("blocks");
    let users: ArrayRef = Arc::new(Int64Array::from_iter_values(0..501));
    // The last row differs from all others of its block.
    for (last, name) in [(Some(7), "some"), (None, "none"), (Some(i64::MIN), "least")] {
        let x: ArrayRef = Arc::new((0..500).map(|i| Some(1000 + i % 100)).chain([last]).collect::<Int64Array>());
        for (statistics, kept) in [("with", EnabledStatistics::Page), ("without", EnabledStatistics::None)] {
            let batch = RecordBatch::try_from_iter_with_nullable([
                ("user_id", Arc::clone(&users), true),
                ("x", Arc::clone(&x), true),
            ]);
            let batch = batch.unwrap();
            let properties = WriterProperties::builder().set_statistics_enabled(kept).build();
            let file = std::fs::File::create(room.path().join(format!("{name}_{statistics}.parquet"))).unwrap();
            let mut writer = ArrowWriter::try_new(file, batch.schema(), Some(properties)).unwrap();
            writer.write(&batch).unwrap();
            writer.close().unwrap();
        }
    }
    let tables = |file: &str| {
        let declared = format!(
            "[dataset.t]\nsource = \"{file}.parquet\"\nunit.user = \"user_id\"\nunit.protect = \"user\"\nunit.change = \"add-remove\"\nunit.caps = {{ rows_per_user = 1 }}\n"
        );
        room.tables(&declared)
    };
    for (condition, expected) in [
        ("-CAST(x AS TINYINT) IS NOT DISTINCT FROM CAST(NULL AS TINYINT)", [500, 501, 501]),
        ("CAST(x AS TINYINT) IS NULL", [500, 501, 501]),
        ("CAST(x AS TINYINT) > 5", [1, 0, 0]),
        ("CAST(x AS TINYINT) <> 5", [1, 0, 0]),
        ("(CAST(x AS TINYINT) = 5) IS NULL", [500, 501, 501]),
        ("CAST(CAST(x AS REAL) AS TINYINT) IS NOT DISTINCT FROM CAST(NULL AS TINYINT)", [500, 501, 501]),
        ("-x < -10", [500, 500, 501]),
        ("-x IS NULL", [0, 1, 0]),
        ("x > 1050 AND x <= 1060", [50, 50, 50]),
        ("x IN (7, 8)", [1, 0, 0]),
        ("x NOT IN (1000, 1001)", [491, 490, 491]),
        ("x IS NULL OR x < 0", [0, 1, 1]),
    ] {
        for (name, expected) in ["some", "none", "least"].into_iter().zip(expected) {
            for statistics in ["with", "without"] {
                let sql = format!("SELECT COUNT(*) FROM t WHERE {condition}");
                let found =
                    tables(&format!("{name}_{statistics}")).release_many_for_audit(&sql, &asking(1000.0), 1).unwrap();
                assert_eq!(number(&found.runs[0][0].1[0]) as i64, expected, "{condition}: {name}, {statistics}");
            }
        }
    }
}

/// Where the engine adds a row's place and so large a distance, it depends on how many rows there are whether that overflows.
#[test]
fn a_window_reaches_no_further_than_the_engine_can_count() {
    let room = Room::new("far_windows");
    room.write("visits.csv", &visits());
    let tables = room.tables(USER);
    for far in [
        "SUM(day) OVER (PARTITION BY user_id ORDER BY day ROWS BETWEEN CURRENT ROW AND 18446744073709551615 FOLLOWING)",
        "SUM(day) OVER (ORDER BY day ROWS BETWEEN 18446744073709551515 PRECEDING AND CURRENT ROW)",
        "COUNT(*) OVER (ORDER BY day GROUPS BETWEEN CURRENT ROW AND 9223372036854775807 FOLLOWING)",
        "lag(day, 9223372036854775807) OVER (ORDER BY day)",
        "lead(day, -9223372036854775807) OVER (ORDER BY day)",
        "nth_value(day, 4294967296) OVER (ORDER BY day)",
    ] {
        let sql =
            format!("SELECT COUNT(*) FROM (SELECT user_id, {far} AS r FROM visits WHERE user_id = 1) WHERE r > 0");
        let error = tables.preview(&sql, &asking(1.0)).unwrap_err();
        assert_eq!(error.fault, Fault::Asked, "{far}: {error:?}");
    }
    let near = "SUM(day) OVER (PARTITION BY user_id ORDER BY day ROWS BETWEEN 2147483647 PRECEDING AND 1 FOLLOWING)";
    let sql = format!("SELECT COUNT(*) FROM (SELECT user_id, {near} AS r FROM visits) WHERE r > 0");
    tables.preview(&sql, &asking(1.0)).unwrap();
}
