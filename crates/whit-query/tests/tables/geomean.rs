//! The geometric mean, which the engine itself does not have.

use crate::ask::number;
use crate::room::{Room, ask, asking};
use std::fmt::Write as _;
use whit_query::plan::Asking;
use whit_query::{Tables, Value};

const DECLARED: &str = r#"
[dataset.t]
source = "t.csv"
unit.user = "user_id"
unit.protect = "user"
unit.caps = { rows_per_user = 2, groups = 1 }
columns.user_id = "int"
columns.price = { type = "float", bounds = [0.5, 200] }
columns.stars = { type = "int", bounds = [0, 5] }
columns.free = { type = "float", bounds = "auto" }
columns.g = { type = "text", keys = ["a", "b"] }
budget.user = { epsilon = 1000.0, delta = 1e-5 }

[dataset.public]
source = "public.csv"
public = true
"#;

/// 1,000 users with one or two prices each, from 0.1 to 1,000: some lie outside of their bounds, some are missing.
fn tables(name: &str) -> (Room, Tables, Vec<(usize, Option<f64>)>) {
    let room = Room::new(name);
    let (mut text, mut rows) = (String::from("user_id,price,stars,free,g\n"), Vec::new());
    for user in 0..1500_usize {
        let even = (user as f64 + 0.5) * 0.618_033_988_749_895 % 1.0;
        let price = (!user.is_multiple_of(50)).then(|| (10_f64.powf(4.0 * even - 1.0) * 1e4).round() / 1e4);
        let written = price.map_or_else(String::new, |price| format!("{price:.4}"));
        let group = usize::from((user % 1000).is_multiple_of(3));
        let _ = writeln!(text, "{},{written},{},1,{}", user % 1000, user % 5 + 1, ["a", "b"][group]);
        rows.push((group, price));
    }
    room.write("t.csv", &text);
    room.write("public.csv", "x\n1\n4\n16\n");
    let tables = room.tables(DECLARED);
    (room, tables, rows)
}

/// Of values within their bounds, and of those alone that are there.
fn truth(values: impl Iterator<Item = f64>) -> f64 {
    let logs: Vec<f64> = values.map(|value| value.clamp(0.5, 200.0).ln()).collect();
    (logs.iter().sum::<f64>() / logs.len() as f64).exp()
}

#[test]
fn a_geometric_mean_is_near_the_truth() {
    let (room, tables, rows) = tables("geomean");
    let sql = "SELECT g, GEOMEAN(price) AS mean, GEOMEAN(price) FILTER (WHERE price < 10) FROM t GROUP BY g ORDER BY g";
    let answer = ask(&tables, &room, sql, &asking(500.0)).unwrap();
    for (group, row) in answer.rows.iter().enumerate() {
        let own = || rows.iter().filter(|row| row.0 == group).filter_map(|row| row.1);
        for (cell, truth) in row[1..].iter().zip([truth(own()), truth(own().filter(|price| *price < 10.0))]) {
            let off = number(&cell.value) / truth - 1.0;
            assert!(off.abs() < 0.01, "group {group}: {cell:?} and {truth}");
        }
    }
    let whole = ask(&tables, &room, "SELECT GEOMEAN(clamp(stars, 1, 5)) FROM t", &asking(500.0)).unwrap();
    let truth = (1..=5).product::<u32>();
    assert!((number(&whole.rows[0][0].value) / f64::from(truth).powf(0.2) - 1.0).abs() < 0.01, "{:?}", whole.rows);
}

/// 1,000 runs have a deviation of 0.7 %. Five are allowed, of six comparisons: correct intervals fail once in 10⁵ runs.
#[test]
fn the_interval_of_a_geometric_mean_holds_the_truth_as_often_as_it_says() {
    let (_room, tables, rows) = tables("geomean_coverage");
    let truth = truth(rows.iter().filter_map(|row| row.1));
    for epsilon in [0.5, 2.0, 10.0] {
        for delta in [0.0, 1e-6] {
            let asking = Asking { delta: Some(delta), ..asking(epsilon) };
            let found = tables.answer_many_for_audit("SELECT GEOMEAN(price) FROM t", &asking, 1000).unwrap();
            let held = found.answers.iter().filter(|answer| {
                let cell = &answer.rows[0][0];
                let (low, high) = (cell.low.unwrap(), cell.high.unwrap());
                assert!(0.49 < low && low <= number(&cell.value) && number(&cell.value) <= high && high < 201.0);
                (low..=high).contains(&truth)
            });
            let share = held.count() as f64 / 1000.0;
            assert!((0.95 - 5.0 * 0.007..=0.97 + 5.0 * 0.007).contains(&share), "ε = {epsilon}, δ = {delta}: {share}");
        }
    }
}

#[test]
fn a_geometric_mean_needs_a_lower_bound_above_zero() {
    let (room, tables, _) = tables("geomean_refused");
    for (sql, words) in [
        ("SELECT GEOMEAN(stars) FROM t", "needs a lower bound above 0, and that of `stars` is 0"),
        ("SELECT GEOMEAN(price - 1) FROM t", "needs a lower bound above 0, and that of `price - 1` is -0.5"),
        ("SELECT GEOMEAN(free) FROM t", "needs a lower bound above 0, and that of `free` is to be found first"),
        ("SELECT GEOMEAN(user_id) FROM t", "nothing bounds `user_id`"),
        ("SELECT GEOMEAN(g) FROM t", "`geomean` does not take text"),
        ("SELECT GEOMEAN(DISTINCT price) FROM t", "DISTINCT counts a value once"),
        ("SELECT COUNT(*) FROM (SELECT user_id, GEOMEAN(price) FROM t GROUP BY user_id)", "inside of a unit"),
    ] {
        let error = ask(&tables, &room, sql, &asking(1.0)).unwrap_err();
        assert!(error.sentence.contains(words), "{sql}: {error}");
    }
}

#[test]
fn of_public_and_released_tables_the_engine_computes_it() {
    let (room, tables, _) = tables("geomean_public");
    let answer = ask(&tables, &room, "SELECT GEOMEAN(x) FROM public", &asking(1.0)).unwrap();
    assert!((number(&answer.rows[0][0].value) - 4.0).abs() < 1e-12, "{:?}", answer.rows);
    let sql = "SELECT GEOMEAN(n) FROM (SELECT g, COUNT(*) AS n FROM t GROUP BY g)";
    let answer = ask(&tables, &room, sql, &asking(500.0)).unwrap();
    assert!((number(&answer.rows[0][0].value) - (500.0_f64 * 1000.0).sqrt()).abs() < 5.0, "{:?}", answer.rows);
    assert!(!matches!(answer.rows[0][0].value, Value::Null));
}
