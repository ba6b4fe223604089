//! Public columns and public tables: what they show of private ones, and whether a change of them is noticed.

use crate::room::{Room, ask, asking};
use whit_query::Value;

/// In which order rows stand in a file may follow from what is private, and no exact answer tells it: not by which of two equal zeros, nor by NaN.
#[test]
fn exact_extremes_do_not_show_the_order_of_rows() {
    const LABEL: &str = r#"
[dataset.people]
source = "people.csv"
unit.protect = "label"
unit.label = "income"
columns.id = "int"
columns.town = "text"
columns.income = { type = "int", bounds = [0, 100000] }
budget.label = { epsilon = 1.0, delta = 1e-6 }
"#;
    let zero = "CASE WHEN id = 1 THEN CAST('0.0' AS DOUBLE) ELSE CAST('-0.0' AS DOUBLE) END";
    let nan = "CASE WHEN id = 1 THEN CAST('NaN' AS DOUBLE) ELSE CAST('0.5' AS DOUBLE) END";
    for (number, rows) in [["1,a,5", "2,a,7"], ["2,a,5", "1,a,7"]].iter().enumerate() {
        let room = Room::new(&format!("extremes_{number}"));
        room.write("people.csv", &format!("id,town,income\n{}\n{}\n", rows[0], rows[1]));
        let tables = room.tables(LABEL);
        for extreme in ["MIN", "MAX", "MEDIAN"] {
            let one = |of: &str, by: &str| {
                let sql = format!("SELECT {extreme}({of}) AS m FROM people {by}");
                let answer = ask(&tables, &room, &sql, &asking(1.0)).unwrap();
                assert!(answer.statement.entry.is_none(), "it is free");
                match answer.rows[0][0].value {
                    Value::Float(value) => value,
                    ref other => panic!("{other:?}"),
                }
            };
            for by in ["GROUP BY town", "GROUP BY id > 0", ""] {
                assert_eq!(one(zero, by).to_bits(), 0, "{extreme} {by}");
                assert_eq!(one(nan, by), 0.5, "{extreme} {by}");
            }
        }
    }
}

/// A public table that stands only in a condition, an argument or a key is read as much as one in FROM: where it changed, so did the answer.
#[test]
fn a_public_table_that_changed_is_noticed_wherever_it_is_read() {
    const DECLARED: &str = r#"
[dataset.v]
source = "v.csv"
unit.user = "user_id"
unit.protect = "user"
unit.caps = { rows_per_user = 2 }
columns.user_id = "int"
columns.x = { type = "int", bounds = [0, 9] }
budget.user = { epsilon = 1000.0, delta = 1e-5 }

[dataset.pub]
source = "pub.csv"
public = true
"#;
    let room = Room::new("public_changes");
    let rows = (0..200).map(|i| format!("{i},{}", i % 10)).collect::<Vec<_>>().join("\n");
    room.write("v.csv", &format!("user_id,x\n{rows}"));
    for sql in [
        "SELECT COUNT(*) FILTER (WHERE x > (SELECT MAX(y) FROM pub)) AS n FROM v",
        "SELECT SUM(CASE WHEN x > (SELECT MAX(y) FROM pub) THEN 1 ELSE 0 END) AS n FROM v",
        "SELECT COUNT(*) AS n FROM v WHERE x > (SELECT MAX(y) FROM pub)",
    ] {
        room.write("pub.csv", "y\n1\n2\n");
        let first = ask(&room.tables(DECLARED), &room, sql, &asking(5.0)).unwrap();
        assert!(ask(&room.tables(DECLARED), &room, sql, &asking(5.0)).unwrap().statement.stored, "{sql}");
        room.write("pub.csv", "y\n1\n8\n");
        let then = ask(&room.tables(DECLARED), &room, sql, &asking(5.0)).unwrap();
        assert!(!first.statement.stored && !then.statement.stored, "{sql}: an answer about another table");
        assert_ne!(first.rows[0][0].value, then.rows[0][0].value, "{sql}: 140 and 20");
    }
}

/// The engine has one column for keys that are repeated, and what is known of columns is known by their place: the largest label of each user once stood in that of a public key, exact and free.
#[test]
fn keys_that_are_repeated_are_said_once() {
    const LABEL: &str = r#"
[dataset.t]
source = "t.csv"
unit.user = "u"
unit.protect = "label"
unit.label = "y"
unit.caps = { rows_per_user = 4 }
columns.u = "int"
columns.k = { type = "text", keys = ["a", "b"] }
columns.y = { type = "float", bounds = [0, 100] }
budget.label = { epsilon = 10000, delta = 1e-3 }
"#;
    let room = Room::new("repeated_keys");
    let row = |i: usize| format!("{},{},{}", i % 100, ["a", "b"][i % 2], 10 + i % 80);
    let rows = (0..400).map(row).collect::<Vec<_>>().join("\n");
    room.write("t.csv", &format!("u,k,y\n{rows}"));
    let tables = room.tables(LABEL);
    for sql in [
        "SELECT v, MAX(m) FROM (SELECT u AS v, MAX(y) AS m FROM t GROUP BY k, k, u, k) GROUP BY v",
        "SELECT m, COUNT(*) FROM (SELECT u AS v, MAX(y) AS m FROM t GROUP BY k, k, u, k) GROUP BY m",
        "SELECT COUNT(*) FROM (SELECT u AS v, MAX(y) AS m FROM t GROUP BY k, k, u, k) WHERE m > 50",
    ] {
        let free = ask(&tables, &room, sql, &asking(50.0)).is_ok_and(|answer| answer.statement.entry.is_none());
        assert!(!free, "{sql} shows labels for nothing");
    }
    // Two questions that differ only behind a repeated key are two, and groups are as many as there are.
    let users = LABEL.replace("unit.protect = \"label\"\nunit.label = \"y\"", "unit.protect = \"user\"");
    let room = Room::new("repeated_keys_of_users");
    room.write("t.csv", &format!("u,k,y\n{rows}"));
    let tables = room.tables(&users.replace("budget.label", "budget.user"));
    let asked = |sql: &str| ask(&tables, &room, sql, &asking(50.0)).unwrap();
    let mean = |of: &str| format!("SELECT AVG(clamp(m, 0, 100)) AS r FROM (SELECT {of}(y) AS m FROM t GROUP BY u, u)");
    let (most, least) = (asked(&mean("MAX")), asked(&mean("MIN")));
    assert!(!least.statement.stored && most.rows[0][0].value != least.rows[0][0].value);
    let counted = asked("SELECT k, COUNT(*) AS n FROM t GROUP BY k, k");
    let counts: Vec<_> = counted.rows.iter().map(|row| &row[1].value).collect();
    assert!(counts.len() == 2 && counts.iter().all(|count| matches!(count, Value::Int(150..=250))), "{counts:?}");
    assert!(asked("SELECT k, COUNT(*) AS n FROM t GROUP BY k").statement.stored, "it is the same");
}

/// Under a label unit the values of a public column are known, and which of them have a label above 50 is not: all values once came back, exact and free, whatever the condition.
#[test]
fn values_that_occur_under_a_condition_are_asked_of_the_rows() {
    const LABEL: &str = r#"
[dataset.t]
source = "t.csv"
unit.protect = "label"
unit.label = "y"
columns.town = "text"
columns.big = "bool"
columns.y = { type = "float", bounds = [0, 100] }
budget.label = { epsilon = 10000, delta = 1e-3 }
"#;
    let feature = LABEL.replace(
        "unit.protect = \"label\"\nunit.label = \"y\"",
        "unit.protect = \"feature\"\nunit.public = [\"town\", \"big\"]",
    );
    let feature = feature.replace("budget.label", "budget.feature");
    let row =
        |i: usize| format!("{},{},{}", ["a", "b", "c"][i % 3], i.is_multiple_of(3), if i % 3 == 2 { 90 } else { 10 });
    let rows = (0..300).map(row).collect::<Vec<_>>().join("\n");
    for (unit, declared) in [("label", LABEL), ("feature", &feature)] {
        let room = Room::new(&format!("occurring_{unit}"));
        room.write("t.csv", &format!("town,big,y\n{rows}"));
        let tables = room.tables(declared);
        let asked = |sql: &str| {
            let answer =
                ask(&tables, &room, sql, &asking(20.0)).unwrap_or_else(|error| panic!("{unit}, {sql}: {error:?}"));
            let cells = answer.rows.iter().map(|row| format!("{:?}", row[0].value)).collect::<Vec<_>>().join(" ");
            (cells.replace("Text", "").replace("Bool", ""), answer.statement.entry.is_none())
        };
        let text = |values: &[&str]| values.iter().map(|value| format!("({value:?})")).collect::<Vec<_>>().join(" ");
        // Conditions on what is public are exact and free.
        assert_eq!(asked("SELECT DISTINCT town FROM t"), (text(&["a", "b", "c"]), true), "{unit}");
        assert_eq!(asked("SELECT DISTINCT town FROM t WHERE big"), (text(&["a"]), true), "{unit}");
        // Those on what is private are paid for.
        for sql in [
            "SELECT DISTINCT town FROM t WHERE y > 50",
            "SELECT town FROM t WHERE y > 50 GROUP BY town",
            "SELECT town FROM (SELECT town, y AS z FROM t) WHERE z > 50 GROUP BY town, town",
        ] {
            assert_eq!(asked(sql), (text(&["c"]), false), "{unit}: {sql}");
        }
        assert_eq!(asked("SELECT DISTINCT big FROM t WHERE y > 50"), ("(false)".to_owned(), false), "{unit}");
        assert_eq!(asked("SELECT DISTINCT y > 50 FROM t WHERE y > 50"), ("(true)".to_owned(), false), "{unit}");
        assert_eq!(asked("SELECT DISTINCT town FROM t WHERE y > 95"), (String::new(), false), "{unit}");
        // Where something is counted, all public values appear, those that no row has included.
        assert_eq!(
            asked("SELECT town, COUNT(*) FROM t WHERE y > 50 GROUP BY town").0,
            text(&["a", "b", "c"]),
            "{unit}"
        );
    }
}

/// A list that is declared says which values may show, and not which do.
#[test]
fn listed_values_show_where_rows_have_them() {
    let room = Room::new("listed_and_occurring");
    room.write("visits.csv", &crate::room::visits());
    let tables = room.tables(crate::ask::USER);
    for (sql, shops) in
        [("SELECT DISTINCT shop FROM visits", 4), ("SELECT DISTINCT shop FROM visits WHERE day > 99", 0)]
    {
        let answer = ask(&tables, &room, sql, &asking(20.0)).unwrap();
        assert_eq!((answer.rows.len(), answer.statement.entry.is_some()), (shops, true), "{sql}");
    }
}

/// LIMIT once picked other rows each time the engine's threads came in another order, of a stored answer too.
#[test]
fn the_first_rows_of_an_answer_are_the_same_each_time() {
    let room = Room::new("limits");
    let rows: Vec<String> = (0..60).map(|i| format!("{i},{},{}", i % 7, ["a", "b", "c"][i % 3])).collect();
    room.write("t.csv", &format!("id,x,q\n{}\n", rows.join("\n")));
    let tables = room.tables(
        "[dataset.t]\nsource = 't.csv'\nunit.protect = 'feature'\nunit.public = ['id', 'x']\ncolumns.id = 'int'\ncolumns.x = 'int'\n\
         columns.q = { type = 'text', keys = ['a', 'b', 'c'] }\nbudget.feature = { epsilon = 100, delta = 1e-3 }\n",
    );
    for sql in [
        "SELECT x % 3 AS k, COUNT(*) AS n FROM (SELECT DISTINCT id, x FROM t) GROUP BY x % 3 LIMIT 2",
        "SELECT x % 3 AS k, SUM(n) AS n FROM (SELECT x, COUNT(*) AS n FROM t WHERE q = 'a' GROUP BY x) GROUP BY x % 3 LIMIT 2",
        "SELECT x, COUNT(*) AS n FROM t GROUP BY x UNION ALL SELECT 100, 0",
    ] {
        let asked = || ask(&tables, &room, sql, &asking(1.0)).unwrap_or_else(|error| panic!("{sql}: {error:?}")).rows;
        let first = asked();
        for _ in 0..25 {
            assert_eq!(asked(), first, "{sql}");
        }
    }
}
