//! Dates: constants and spans of time, the time of asking, parts of times, zones.

use crate::ask::number;
use crate::room::{Room, ask, asking};
use std::fmt::Write as _;
use whit_query::{Tables, Value};

const DECLARED: &str = r#"
[dataset.t]
source = "t.csv"
unit.user = "user_id"
unit.protect = "user"
unit.caps = { rows_per_user = 1 }
columns.user_id = "int"
columns.day = "date"
columns.at = "timestamp"
budget.user = { epsilon = 1e6, delta = 1e-3 }
"#;

/// 720 users: one each hour of the 30 days from 2024-02-01 on, at half past, and one whose times lie at the end of the calendar.
fn tables(name: &str) -> (Room, Tables) {
    let room = Room::new(name);
    let mut text = String::from("user_id,day,at\n");
    for user in 0..720 {
        let (day, hour) = (user / 24, user % 24);
        let date = if day < 29 { format!("2024-02-{:02}", day + 1) } else { format!("2024-03-{:02}", day - 28) };
        let _ = writeln!(text, "{user},{date},{date} {hour:02}:30:00");
    }
    text.push_str("720,9999-12-31,2262-04-11 23:00:00\n");
    room.write("t.csv", &text);
    let tables = room.tables(DECLARED);
    (room, tables)
}

#[test]
fn spans_are_computed_of_constants_and_of_rows() {
    let (room, tables) = tables("dates_spans");
    for (condition, truth) in [
        ("day <= DATE '2024-02-15' - INTERVAL '5' DAY", 240.0),
        ("day <= DATE '2024-05-10' - INTERVAL '90' DAY", 240.0),
        ("day < DATE '2024-03-10' - INTERVAL '1 month'", 216.0),
        ("at < TIMESTAMP '2024-02-02 12:00:00' - INTERVAL '1 day 3 hours'", 9.0),
        ("day + INTERVAL '1 month' <= '2024-03-10'", 240.0),
        ("at + INTERVAL '30 minutes' = date_trunc('hour', at + INTERVAL '30 minutes')", 720.0),
        // A row whose sum is beyond the calendar is missing, and nothing fails.
        ("at + INTERVAL '100 years' > at", 720.0),
        ("(at + INTERVAL '100 years') IS NULL", 1.0),
        ("day BETWEEN '2024-02-10' AND '2024-02-11'", 48.0),
    ] {
        let answer = ask(&tables, &room, &format!("SELECT COUNT(*) FROM t WHERE {condition}"), &asking(500.0)).unwrap();
        assert!((number(&answer.rows[0][0].value) - truth).abs() < 0.5, "{condition}: {:?} and {truth}", answer.rows);
    }
}

#[test]
fn spans_that_are_the_same_day_are_the_same_question() {
    let (room, tables) = tables("dates_same");
    let entry = |sql: &str| ask(&tables, &room, sql, &asking(1.0)).unwrap().statement.entry;
    let one = entry("SELECT COUNT(*) FROM t WHERE day <= DATE '2024-02-15' - INTERVAL '5' DAY");
    assert_eq!(one, entry("SELECT COUNT(*) FROM t WHERE day <= DATE '2024-02-12' - INTERVAL '2 days'"));
    assert_ne!(one, entry("SELECT COUNT(*) FROM t WHERE day <= DATE '2024-02-15' - INTERVAL '6' DAY"));
}

#[test]
fn the_time_of_asking_is_fixed_and_said() {
    let (room, tables) = tables("dates_now");
    for (sql, truth, words) in [
        ("SELECT COUNT(*) FROM t WHERE at < now() - INTERVAL '7 days'", 720.0, "`now()` is TIMESTAMP '20"),
        ("SELECT COUNT(*) FROM t WHERE at >= current_timestamp", 1.0, "`now()` is TIMESTAMP '20"),
        ("SELECT COUNT(*) FROM t WHERE day > current_date", 1.0, "`current_date` is DATE '20"),
        ("SELECT COUNT(*) FROM t WHERE day < today() + INTERVAL '1 day'", 720.0, "`current_date` is DATE '20"),
    ] {
        let answer = ask(&tables, &room, sql, &asking(500.0)).unwrap();
        assert!((number(&answer.rows[0][0].value) - truth).abs() < 0.5, "{sql}: {:?}", answer.rows);
        let note = answer.statement.notes.iter().find(|note| note.contains(words));
        let note = note.unwrap_or_else(|| panic!("{sql}: {:?}", answer.statement.notes));
        // With what is said in its place it is the same question: nothing is charged, and the answer is the very same.
        let constant = note.split(" is ").nth(1).unwrap().split(" in UTC").next().unwrap();
        let written = ["now()", "current_timestamp", "current_date", "today()"]
            .iter()
            .fold(sql.to_owned(), |sql, clock| sql.replace(clock, constant));
        let again = ask(&tables, &room, &written, &asking(500.0)).unwrap();
        assert_eq!(again.statement.entry, answer.statement.entry, "{written}");
    }
    let plan = |sql: &str| tables.plan(sql, &asking(1.0)).unwrap();
    assert!(plan("SELECT COUNT(*) FROM t").notes.iter().all(|note| !note.contains("UTC")));
}

#[test]
fn parts_of_times_and_zones_are_those_of_the_row() {
    let (room, tables) = tables("dates_parts");
    for (key, condition, truth) in [
        ("to_char(day, '%Y-%m')", "TRUE", vec![("2024-02", 696.0), ("2024-03", 24.0)]),
        ("strftime('%Y-%m', at)", "TRUE", vec![("2024-02", 696.0), ("2024-03", 24.0)]),
        ("strftime(at, '%d')", "EXTRACT(day FROM day) < 2", vec![("01", 48.0)]),
        (
            "date_bin(INTERVAL '10 days', at, TIMESTAMP '2024-02-01')",
            "at < '2024-02-21'",
            vec![("2024-02-01T00:00:00", 240.0), ("2024-02-11T00:00:00", 240.0)],
        ),
        (
            "date_trunc('month', day)",
            "at < '2025-01-01'",
            vec![("2024-02-01T00:00:00", 696.0), ("2024-03-01T00:00:00", 24.0)],
        ),
    ] {
        let sql = format!("SELECT {key} AS k, COUNT(*) FROM t WHERE {condition} GROUP BY k ORDER BY k");
        let answer = ask(&tables, &room, &sql, &asking(500.0)).unwrap();
        let found: Vec<(String, f64)> = answer
            .rows
            .iter()
            .map(|row| match &row[0].value {
                Value::Text(key) => (key.clone(), number(&row[1].value)),
                other => panic!("{sql}: {other:?}"),
            })
            .collect();
        assert_eq!(found, truth.iter().map(|(key, n)| ((*key).to_owned(), *n)).collect::<Vec<_>>(), "{sql}");
    }
    // Half past noon in UTC is half past one in Vienna in winter, and half past seven in New York.
    for (zone, hour) in [("Europe/Vienna", 13), ("America/New_York", 7), ("+05:30", 18)] {
        let local = format!("EXTRACT(hour FROM at AT TIME ZONE 'UTC' AT TIME ZONE '{zone}')");
        let sql = format!(
            "SELECT COUNT(*) FROM t WHERE EXTRACT(hour FROM at) = 12 AND {local} = {hour} AND at < '2025-01-01'"
        );
        let answer = ask(&tables, &room, &sql, &asking(500.0)).unwrap();
        assert!((number(&answer.rows[0][0].value) - 30.0).abs() < 0.5, "{sql}: {:?}", answer.rows);
    }
}
