//! Keys that follow from what is declared: each of them appears, and what is asked of them too.

use crate::ask::number;
use crate::room::{Room, ask, asking};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use whit_query::Tables;
use whit_query::answer::{Answer, Value};

const DECLARED: &str = r#"
[dataset.visits]
source = "visits.csv"
unit.user = "user_id"
unit.protect = "user"
unit.caps = { rows_per_user = 3 }
columns.user_id = "int"
columns.hour = { type = "int", bounds = [0, 23] }
columns.zip = { type = "int", bounds = [10000, 99999] }
columns.day = { type = "date", bounds = ["2024-02-27", "2024-03-02"] }
columns.at = { type = "timestamp", bounds = [2024-01-01, 2024-01-02] }
columns.shop = { type = "text", keys = ["north", "south", "NORTH"] }
budget.user = { epsilon = 10000.0, delta = 1e-5 }
"#;

const USERS: usize = 300;

fn tables(room: &Room) -> Tables {
    let mut rows = "user_id,hour,zip,day,at,shop\n".to_owned();
    for user in 0..USERS {
        for i in 0..3 {
            let (hour, day) = ((user + i) % 6, ["2024-02-28", "2024-02-29", "2024-03-01"][i]);
            let _ = writeln!(rows, "{user},{hour},10115,{day},2024-01-01T{:02}:{:02}:00,north", hour + 2, user % 60);
        }
    }
    // Outside of what is declared.
    let _ = writeln!(rows, "{USERS},77,1,2031-01-01,2031-01-01T00:00:00,west");
    room.write("visits.csv", &rows);
    room.tables(DECLARED)
}

fn shown(value: &Value) -> String {
    match value {
        Value::Text(text) => text.clone(),
        Value::Int(whole) => whole.to_string(),
        other => format!("{other:?}"),
    }
}

/// Keys as they come, and what was counted.
fn counted(answer: &Answer) -> Vec<(String, f64)> {
    answer.rows.iter().map(|row| (shown(&row[0].value), number(&row[1].value))).collect()
}

#[test]
fn hours_and_days_of_a_declared_range_all_appear() {
    let room = Room::new("domains_all");
    let tables = tables(&room);
    let mut truth: BTreeMap<String, f64> = (0..24).map(|hour| (hour.to_string(), 0.0)).collect();
    for user in 0..USERS {
        for i in 0..3 {
            *truth.get_mut(&((user + i) % 6).to_string()).unwrap() += 1.0;
        }
    }
    let answer = ask(&tables, &room, "SELECT hour, COUNT(*) FROM visits GROUP BY hour", &asking(400.0)).unwrap();
    let found: BTreeMap<String, f64> = counted(&answer).into_iter().collect();
    assert_eq!(found.len(), 24);
    for (hour, count) in &truth {
        assert!((found[hour] - count).abs() < 5.0, "{hour}: {} for {count}", found[hour]);
    }
    let days =
        ask(&tables, &room, "SELECT day, COUNT(*) FROM visits GROUP BY day ORDER BY day", &asking(400.0)).unwrap();
    let days = counted(&days);
    let names: Vec<&str> = days.iter().map(|(day, _)| day.as_str()).collect();
    assert_eq!(names, ["2024-02-27", "2024-02-28", "2024-02-29", "2024-03-01", "2024-03-02"]);
    for ((day, found), truth) in days.iter().zip([0.0, 300.0, 300.0, 300.0, 0.0]) {
        assert!((found - truth).abs() < 5.0, "{day}: {found} for {truth}");
    }
}

#[test]
fn what_is_made_of_a_declared_range_has_all_its_values_too() {
    let room = Room::new("domains_made");
    let tables = tables(&room);
    for (key, expected) in [
        ("hour / 6", vec![("0", 900.0), ("1", 0.0), ("2", 0.0), ("3", 0.0)]),
        ("CASE WHEN hour < 12 THEN 'am' ELSE 'pm' END", vec![("am", 900.0), ("pm", 1.0)]),
        ("EXTRACT(month FROM day)", vec![("2", 600.0), ("3", 300.0)]),
        ("COALESCE(hour, -1) % 2", vec![("-1", 0.0), ("0", 450.0), ("1", 451.0)]),
        ("upper(shop)", vec![("NORTH", 900.0), ("SOUTH", 0.0)]),
        ("CAST(at AS DATE)", vec![("2024-01-01", 900.0), ("2024-01-02", 0.0)]),
        ("EXTRACT(dow FROM date_trunc('day', at))", vec![("1", 900.0), ("2", 0.0)]),
    ] {
        let sql = format!("SELECT {key} AS k, COUNT(*) FROM visits GROUP BY {key} ORDER BY k");
        let answer = ask(&tables, &room, &sql, &asking(400.0)).unwrap_or_else(|error| panic!("{sql}: {error:?}"));
        let found = counted(&answer);
        let names: Vec<&str> = found.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, expected.iter().map(|(name, _)| *name).collect::<Vec<_>>(), "{key}");
        for ((_, found), (name, truth)) in found.iter().zip(&expected) {
            assert!((found - truth).abs() < 6.0, "{key} = {name}: {found} for {truth}");
        }
    }
    let hours =
        ask(&tables, &room, "SELECT date_trunc('hour', at) AS h, COUNT(*) FROM visits GROUP BY h", &asking(400.0));
    assert_eq!(hours.unwrap().rows.len(), 48);
}

#[test]
fn a_long_range_and_a_part_of_a_moment_below_the_hour_are_selected_as_before() {
    let room = Room::new("domains_long");
    let tables = tables(&room);
    for key in [
        "zip",
        "EXTRACT(minute FROM at)",
        "hour * 0.5",
        "hour, zip",
        "hour, hour + 1, hour + 2",
        "CASE WHEN hour < 5 THEN 'low' END",
        "nullif(hour, 3)",
    ] {
        let sql = format!("SELECT {key}, COUNT(*) FROM visits GROUP BY {key}");
        let told = tables.preview(&sql, &asking(4.0)).unwrap_or_else(|error| panic!("{sql}: {error:?}"));
        let told = format!("{told:?}");
        assert!(told.contains("those that enough users have"), "{sql}: {told}");
    }
}
