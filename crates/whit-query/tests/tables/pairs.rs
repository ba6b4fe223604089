//! What two values have to do with one another, and ratios of sums.

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
unit.caps = { rows_per_user = 1 }
columns.user_id = "int"
columns.x = { type = "float", bounds = [0, 100] }
columns.y = { type = "int", bounds = [-20, 40] }
columns.w = { type = "float", bounds = [0.5, 3] }
columns.free = { type = "float", bounds = "auto" }
columns.g = { type = "text", keys = ["a", "b"] }
budget.user = { epsilon = 1e7, delta = 1e-3 }
"#;

struct Row {
    group: usize,
    x: Option<f64>,
    y: Option<f64>,
    w: f64,
}

/// 2,400 users with a row each. Some values lie outside of their bounds, and some are missing.
fn tables(name: &str) -> (Room, Tables, Vec<Row>) {
    let room = Room::new(name);
    let (mut text, mut rows) = (String::from("user_id,x,y,w,free,g\n"), Vec::new());
    for user in 0..2400_usize {
        let even = |by: f64| (user as f64 + 0.5) * by % 1.0;
        let (u, v) = (even(0.618_033_988_749_895), even(0.414_213_562_373_095));
        let x = (!user.is_multiple_of(17)).then(|| (1200.0 * u - 50.0).round() / 10.0);
        let y = (!user.is_multiple_of(23)).then(|| (50.0 * u - 18.0 + 12.0 * v).round());
        let w = (10.0 * (0.5 + 2.5 * v)).round() / 10.0;
        let group = usize::from(user.is_multiple_of(3));
        let said = |value: Option<f64>| value.map_or_else(String::new, |value| value.to_string());
        let _ = writeln!(text, "{user},{},{},{w},1,{}", said(x), said(y), ["a", "b"][group]);
        rows.push(Row { group, x: x.map(|x| x.clamp(0.0, 100.0)), y: y.map(|y| y.clamp(-20.0, 40.0)), w });
    }
    room.write("t.csv", &text);
    let tables = room.tables(DECLARED);
    (room, tables, rows)
}

/// Of the pairs (y, x), by their definitions.
fn truths(pairs: &[(f64, f64)]) -> Vec<(&'static str, f64)> {
    let n = pairs.len() as f64;
    let (my, mx) = (pairs.iter().map(|p| p.0).sum::<f64>() / n, pairs.iter().map(|p| p.1).sum::<f64>() / n);
    let syy: f64 = pairs.iter().map(|p| (p.0 - my).powi(2)).sum();
    let sxx: f64 = pairs.iter().map(|p| (p.1 - mx).powi(2)).sum();
    let sxy: f64 = pairs.iter().map(|p| (p.0 - my) * (p.1 - mx)).sum();
    vec![
        ("CORR", sxy / (sxx * syy).sqrt()),
        ("COVAR_POP", sxy / n),
        ("COVAR_SAMP", sxy / (n - 1.0)),
        ("REGR_SLOPE", sxy / sxx),
        ("REGR_INTERCEPT", my - sxy / sxx * mx),
        ("REGR_R2", sxy * sxy / (sxx * syy)),
        ("REGR_COUNT", n),
        ("REGR_AVGX", mx),
        ("REGR_AVGY", my),
        ("REGR_SXX", sxx),
        ("REGR_SYY", syy),
        ("REGR_SXY", sxy),
    ]
}

#[test]
fn pairs_are_near_the_truth_in_every_group() {
    let (room, tables, rows) = tables("pairs");
    let calls: Vec<String> = truths(&[(0.0, 1.0)]).iter().map(|(name, _)| format!("{name}(y, x)")).collect();
    let sql = format!("SELECT g, {} FROM t GROUP BY g ORDER BY g", calls.join(", "));
    let answer = ask(&tables, &room, &sql, &asking(20_000.0)).unwrap();
    assert_eq!(answer.rows.len(), 2);
    for (group, row) in answer.rows.iter().enumerate() {
        let own = rows.iter().filter(|row| row.group == group);
        let pairs: Vec<(f64, f64)> = own.filter_map(|row| row.y.zip(row.x)).collect();
        for (cell, (name, truth)) in row[1..].iter().zip(truths(&pairs)) {
            let off = (number(&cell.value) - truth).abs();
            assert!(off < 2e-3 * truth.abs().max(1.0), "group {group}, {name}: {cell:?} and {truth}");
        }
    }
}

#[test]
fn several_calls_share_their_sums_in_whichever_order_the_values_stand() {
    let (_room, tables, _) = tables("pairs_shared");
    let many = |sql: &str| tables.plan(sql, &asking(1.0)).unwrap().parts[0].measures.len();
    assert_eq!(many("SELECT CORR(y, x) FROM t"), 6);
    assert_eq!(
        many(
            "SELECT CORR(y, x), CORR(x, y), REGR_SLOPE(y, x), REGR_SLOPE(x, y), COVAR_POP(x, y), REGR_AVGX(y, x), REGR_COUNT(x, y) FROM t"
        ),
        6
    );
    assert_eq!(many("SELECT COVAR_SAMP(y, x) FROM t"), 4);
    assert_eq!(many("SELECT REGR_COUNT(y, x) FROM t"), 1);
}

#[test]
fn what_has_no_bounds_or_says_nothing_is_refused() {
    let (room, tables, _) = tables("pairs_refused");
    for (sql, words) in [
        ("SELECT CORR(x, user_id) FROM t", "nothing bounds `user_id`"),
        ("SELECT CORR(x, free) FROM t", "needs bounds that are declared"),
        ("SELECT CORR(x, 1) FROM t", "says nothing of the rows"),
        ("SELECT CORR(DISTINCT x, y) FROM t", "DISTINCT counts a value once"),
        ("SELECT CORR(x, g) FROM t", "does not take"),
        ("SELECT COUNT(*) FROM (SELECT user_id, CORR(x, y) FROM t GROUP BY user_id)", "inside of a unit"),
    ] {
        let error = ask(&tables, &room, sql, &asking(1.0)).unwrap_err();
        assert!(error.sentence.contains(words), "{sql}: {error}");
    }
}

/// 600 runs have a deviation of 0.9 %. What is tried is no theorem: five are allowed below.
#[test]
fn intervals_of_pairs_and_ratios_hold_the_truth_as_often_as_they_say() {
    let (_room, tables, rows) = tables("pairs_coverage");
    let pairs: Vec<(f64, f64)> = rows.iter().filter_map(|row| row.y.zip(row.x)).collect();
    let of = |name: &str| truths(&pairs).into_iter().find(|(own, _)| *own == name).unwrap().1;
    let sum = |f: &dyn Fn(&Row) -> Option<f64>| rows.iter().filter_map(f).sum::<f64>();
    let cases = [
        ("SELECT CORR(y, x) FROM t", of("CORR")),
        ("SELECT REGR_SLOPE(y, x) FROM t", of("REGR_SLOPE")),
        ("SELECT REGR_INTERCEPT(y, x) FROM t", of("REGR_INTERCEPT")),
        ("SELECT COVAR_SAMP(y, x) FROM t", of("COVAR_SAMP")),
        ("SELECT SUM(x) / SUM(w) FROM t", sum(&|row| row.x) / sum(&|row| Some(row.w))),
        ("SELECT SUM(x) / COUNT(*) FROM t", sum(&|row| row.x) / rows.len() as f64),
        (
            "SELECT SUM(clamp(x, 0, 100) * w) / SUM(w) FROM t",
            sum(&|row| row.x.map(|x| x * row.w)) / sum(&|row| Some(row.w)),
        ),
    ];
    for (epsilon, delta) in [(2.0, 1e-6), (20.0, 0.0)] {
        for (sql, truth) in &cases {
            let asking = Asking { delta: Some(delta), ..asking(epsilon) };
            let found = tables.answer_many_for_audit(sql, &asking, 600).unwrap();
            let mut told = 0;
            let held = found.answers.iter().filter(|answer| {
                let cell = &answer.rows[0][0];
                let ends = cell.low.zip(cell.high);
                told += usize::from(ends.is_some());
                ends.is_none_or(|(low, high)| (low..=high).contains(truth))
            });
            let share = held.count() as f64 / 600.0;
            assert!(share >= 0.95 - 5.0 * 0.009, "{sql}, ε = {epsilon}, δ = {delta}: {share}");
            assert!(told >= 550, "{sql}, ε = {epsilon}, δ = {delta}: only {told} have an interval");
        }
    }
}

#[test]
fn different_values_are_counted_under_either_name_and_asked_once() {
    let (room, tables, rows) = tables("pairs_distinct");
    let one = ask(&tables, &room, "SELECT APPROX_DISTINCT(y) FROM t", &asking(500.0)).unwrap();
    let mut values: Vec<i64> = rows.iter().filter_map(|row| row.y).map(|y| y as i64).collect();
    values.sort_unstable();
    values.dedup();
    assert!((number(&one.rows[0][0].value) - values.len() as f64).abs() < 20.0, "{:?} and {}", one.rows, values.len());
    let again = ask(&tables, &room, "SELECT COUNT(DISTINCT y) FROM t", &asking(500.0)).unwrap();
    assert_eq!(number(&one.rows[0][0].value), number(&again.rows[0][0].value));
}

#[test]
fn buckets_are_public_keys_and_all_appear() {
    let (room, tables, rows) = tables("pairs_buckets");
    let sql = "SELECT width_bucket(x, 20, 80, 3) AS b, COUNT(*) AS n FROM t WHERE x IS NOT NULL GROUP BY b ORDER BY b";
    let answer = ask(&tables, &room, sql, &asking(500.0)).unwrap();
    let bucket = |x: f64| {
        if x < 20.0 {
            0
        } else if x >= 80.0 {
            4
        } else {
            ((x - 20.0) / 20.0) as i64 + 1
        }
    };
    assert_eq!(answer.rows.len(), 5);
    for (number_of, row) in answer.rows.iter().enumerate() {
        let truth = rows.iter().filter_map(|row| row.x).filter(|&x| bucket(x) == number_of as i64).count();
        assert_eq!(row[0].value, Value::Int(number_of as i64));
        assert!((number(&row[1].value) - truth as f64).abs() <= 3.0, "{row:?} and {truth}");
    }
}

/// Made-up values have nothing to do with one another, so that a correlation of 0 looked exact at any ε.
#[test]
fn a_preview_of_pairs_is_as_wrong_as_their_answers() {
    use whit_query::explain::Within;
    let (room, tables, _) = tables("pairs_previewed");
    let about = Asking { about: Some(2400.0), ..asking(0.001) };
    for call in ["CORR(y, x)", "REGR_R2(y, x)"] {
        let sql = format!("SELECT {call} FROM t");
        let hopeless = tables.preview(&sql, &about).unwrap();
        assert!(hopeless.errors[0].within.is_none_or(|within| within > 0.4), "{call}: {:?}", hopeless.errors);
        let asked = Asking { epsilon: None, ..about.clone() };
        let found = tables.within(&sql, &asked, Within::Absolute(0.1)).unwrap();
        assert!(found.epsilon > 0.1 && found.errors[0].within.unwrap() <= 0.1, "{call}: {found:?}");
        let answer = ask(&tables, &room, &sql, &asking(found.epsilon)).unwrap();
        let cell = &answer.rows[0][0];
        let half = (cell.high.unwrap() - cell.low.unwrap()) / 2.0;
        assert!(half < 0.25, "{call}: ± {half} where ± 0.1 was foreseen");
    }
}
