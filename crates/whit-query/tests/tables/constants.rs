//! Constants, orders and unions inside of aggregates: what is asked is answered, and what cannot be is said in plain words.

use crate::ask::number;
use crate::room::{Room, ask, asking};
use whit_query::{Fault, Tables};

const DECLARED: &str = r#"
[dataset.v]
source = "v.csv"
unit.user = "u"
unit.protect = "user"
unit.caps = { rows_per_user = 4 }
columns.u = "int"
columns.k = { type = "text", keys = ["a", "b"] }
columns.pages = "int"
columns."page count" = "int"
columns.n = { type = "int", bounds = [1, 10] }
columns.x = { type = "float", bounds = [1, 10] }
budget.user = { epsilon = 10000, delta = 1e-3 }

[dataset.w]
source = "w.csv"
unit.user = "u"
unit.protect = "user"
unit.caps = { rows_per_user = 4 }
columns.u = "text"
columns.n = { type = "int", bounds = [1, 10] }
budget.user = { epsilon = 10000, delta = 1e-3 }

[dataset.p]
source = "p.csv"
public = true
"#;

/// 100 users with four rows each: n is 2, x is 4.5.
fn tables(name: &str) -> (Room, Tables) {
    let room = Room::new(name);
    let row = |i: usize| format!("{},{},{},0,2,4.5", i % 100, ["a", "b"][i % 2], i % 7);
    let rows = (0..400).map(row).collect::<Vec<_>>().join("\n");
    room.write("v.csv", &format!("u,k,pages,page count,n,x\n{rows}"));
    room.write("w.csv", "u,n\n1,2\n");
    room.write("p.csv", "x,kind\n1,a\n-4,a\n16,a\n0,b\n5,b\n-1,c\n");
    let tables = room.tables(DECLARED);
    (room, tables)
}

/// The order of rows changes no sum: once `SUM(1 ORDER BY x)` was the sum of x.
#[test]
fn an_order_inside_of_an_aggregate_is_not_what_it_is_of() {
    let (room, tables) = tables("ordered_aggregates");
    for (sql, title, truth) in [
        ("SELECT SUM(1 ORDER BY x) FROM v", "SUM(1)", 400.0),
        ("SELECT SUM(n ORDER BY x DESC) FROM v", "SUM(n)", 800.0),
        ("SELECT COUNT(1 ORDER BY pages) FROM v", "COUNT(*)", 400.0),
        ("SELECT GEOMEAN(n ORDER BY x) FROM v", "GEOMEAN(n)", 2.0),
        ("SELECT percentile_cont(0.9) WITHIN GROUP (ORDER BY x) FROM v", "PERCENTILE_CONT(x, 0.9)", 4.5),
        ("SELECT percentile_cont(0.9) WITHIN GROUP (ORDER BY x DESC) FROM v", "PERCENTILE_CONT(x DESC, 0.9)", 4.5),
    ] {
        let answer = ask(&tables, &room, sql, &asking(500.0)).unwrap_or_else(|error| panic!("{sql}: {error:?}"));
        assert_eq!(answer.columns[0].name, title, "{sql}");
        let found = number(&answer.rows[0][0].value);
        assert!((found / truth - 1.0).abs() < 0.02, "{sql}: {found} and {truth}");
    }
}

#[test]
fn a_constant_is_summed_and_what_says_nothing_of_rows_is_refused_in_plain_words() {
    let (room, tables) = tables("constants");
    for (sql, truth) in [("SELECT SUM(5) FROM v", 2000.0), ("SELECT SUM(-0.5) FROM v", -200.0)] {
        let found = number(&ask(&tables, &room, sql, &asking(500.0)).unwrap().rows[0][0].value);
        assert!((found / truth - 1.0).abs() < 0.02, "{sql}: {found} and {truth}");
    }
    for (sql, words) in [
        ("SELECT SUM(0) FROM v", "`SUM(0)` says nothing of the rows: `0` is a constant"),
        ("SELECT AVG(5) FROM v", "`AVG(5)` says nothing of the rows: `5` is a constant"),
        ("SELECT k, STDDEV(5) FROM v GROUP BY k", "`STDDEV(5)` says nothing of the rows: `5` is a constant"),
        ("SELECT MEDIAN(1) FROM v", "`MEDIAN(1)` says nothing of the rows: `1` is a constant"),
        ("SELECT APPROX_PERCENTILE_CONT(5, 0.9) FROM v", "says nothing of the rows: `5` is a constant"),
        ("SELECT GEOMEAN(2) FROM v", "`GEOMEAN(2)` says nothing of the rows: `2` is a constant"),
        ("SELECT MAX(clamp(n, 3, 3)) FROM v", "says nothing of the rows: `clamp(n, 3, 3)` is always 3"),
    ] {
        let error = ask(&tables, &room, sql, &asking(1.0)).map(|answer| answer.rows).expect_err(sql);
        assert!(error.fault == Fault::Asked && error.sentence.contains(words), "{sql}: {error}");
        assert!(error.hint.is_some_and(|hint| hint.contains("COUNT(*)")), "{sql}");
    }
    // Whole numbers that are written out are numbers like others.
    let sql = "SELECT GEOMEAN(CASE WHEN x > 2 THEN 2 ELSE 3 END) FROM v";
    let found = number(&ask(&tables, &room, sql, &asking(500.0)).unwrap().rows[0][0].value);
    assert!((found / 2.0 - 1.0).abs() < 0.02, "{found}");
}

/// What has no logarithm is missing, and never "not a number".
#[test]
fn a_geometric_mean_of_public_numbers_leaves_out_what_has_no_logarithm() {
    let (room, tables) = tables("public_geomean");
    let sql = "SELECT kind, GEOMEAN(x) FROM p GROUP BY kind ORDER BY kind";
    let answer = ask(&tables, &room, sql, &asking(1.0)).unwrap();
    let [a, b, c] = [0, 1, 2].map(|i: usize| &answer.rows[i][1].value);
    assert!((number(a) - 4.0).abs() < 1e-12, "{a:?}");
    assert_eq!((number(b), c), (0.0, &whit_query::Value::Null));
}

#[test]
fn united_numbers_of_different_types_are_brought_to_one() {
    let (room, tables) = tables("united_types");
    for (sql, truth) in [
        ("SELECT SUM(a) FROM (SELECT u, n AS a FROM v UNION ALL SELECT u, x FROM v)", 2600.0),
        ("SELECT SUM(a) FROM (SELECT u, x AS a FROM v UNION ALL SELECT u, n FROM v)", 2600.0),
        (
            "SELECT AVG(clamp(a, 0, 10)) FROM (SELECT u, n AS a FROM v UNION ALL SELECT u, CAST(x AS DECIMAL(9, 2)) FROM v)",
            3.25,
        ),
        (
            "SELECT SUM(b) FROM (SELECT u, a + 1 AS b FROM (SELECT u, n AS a FROM v UNION ALL SELECT u, x FROM v))",
            3400.0,
        ),
        ("SELECT COUNT(*) FROM (SELECT u, n AS a FROM v UNION ALL SELECT u, x FROM v) WHERE a = 4.5", 400.0),
        (
            "SELECT SUM(a) FROM (SELECT u, 1 AS a FROM v UNION ALL SELECT u, n FROM v UNION ALL SELECT u, x FROM v)",
            3000.0,
        ),
    ] {
        let clamped = sql.replace("SUM(a)", "SUM(clamp(a, 0, 10))").replace("SUM(b)", "SUM(clamp(b, 0, 11))");
        let asked = whit_query::plan::Asking { rows: Some(12), ..asking(500.0) };
        let answer = ask(&tables, &room, &clamped, &asked).unwrap_or_else(|error| panic!("{sql}: {error:?}"));
        let found = number(&answer.rows[0][0].value);
        assert!((found / truth - 1.0).abs() < 0.03, "{sql}: {found} and {truth}");
    }
    for (sql, sentence, hint) in [
        (
            "SELECT a, COUNT(*) FROM (SELECT u, k AS a FROM v UNION ALL SELECT u, n FROM v) GROUP BY a",
            "`a` is text in one branch and a whole number in another",
            "CAST(a AS VARCHAR)",
        ),
        (
            "SELECT COUNT(*) FROM (SELECT n AS a, k AS b FROM v UNION ALL SELECT x, n FROM v)",
            "`b` is text in one branch and a whole number in another",
            "CAST(b AS",
        ),
    ] {
        let error = ask(&tables, &room, sql, &asking(1.0)).map(|answer| answer.rows).expect_err(sql);
        assert!(error.fault == Fault::Asked && error.sentence.contains(sentence), "{sql}: {error}");
        assert!(error.hint.as_ref().is_some_and(|words| words.contains(hint)), "{sql}: {:?}", error.hint);
    }
    // Over public tables too, and to the same type.
    let sql = "SELECT SUM(a) FROM (SELECT 1 AS a UNION ALL SELECT 0.5)";
    assert_eq!(number(&ask(&tables, &room, sql, &asking(1.0)).unwrap().rows[0][0].value), 1.5);
}

/// A key stands in a file once, so what is suggested goes in the place of what is there.
#[test]
fn the_hint_for_bounds_is_a_line_that_can_be_written() {
    let (_room, tables) = tables("bounds_hint");
    for (sql, hint) in [
        (
            "SELECT SUM(pages) FROM v",
            "declare `columns.pages = { type = \"int\", bounds = [low, high] }` in place of what whit.toml says of it now",
        ),
        (
            "SELECT SUM(\"page count\") FROM v",
            "declare `columns.\"page count\" = { type = \"int\", bounds = [low, high] }` in place of",
        ),
        (
            "SELECT SUM(n + pages) FROM v",
            "declare `columns.pages = { type = \"int\", bounds = [low, high] }` in place of",
        ),
        ("SELECT SUM(m) FROM (SELECT u, COUNT(*) AS m FROM v GROUP BY u)", "write clamp(m, low, high)"),
    ] {
        let error = tables.plan(sql, &asking(1.0)).map(|plan| plan.parts.len()).expect_err(sql);
        assert!(error.hint.as_ref().is_some_and(|words| words.starts_with(hint)), "{sql}: {:?}", error.hint);
    }
}
