//! `ROLLUP`, `CUBE` and `GROUPING SETS` over private rows.

use crate::ask::number;
use crate::room::{Room, ask, asking, visits};
use std::collections::BTreeMap;
use whit_query::plan::Asking;
use whit_query::{Tables, Value};

const DECLARED: &str = r#"
[dataset.visits]
source = "visits.csv"
unit.user = "user_id"
unit.protect = "user"
unit.caps = { rows_per_user = 8, groups = 4 }
columns.user_id = "int"
columns.shop = { type = "text", keys = ["north", "south", "east", "west"] }
columns.day = "int"
columns.seconds = { type = "int", bounds = [0, 600] }
columns.country = { type = "text", keys = ["at", "de", "ch"] }
budget.user = { epsilon = 1e6, delta = 1e-3 }

[dataset.shown]
source = "visits.csv"
public = true
"#;

fn tables(name: &str) -> (Room, Tables) {
    let room = Room::new(name);
    room.write("visits.csv", &visits());
    let tables = room.tables(DECLARED);
    (room, tables)
}

fn key(value: &Value) -> Option<String> {
    match value {
        Value::Null => None,
        Value::Text(text) => Some(text.clone()),
        other => panic!("{other:?} is no key"),
    }
}

/// How many rows, and how many seconds, by shop and country, of all and of some.
fn truths() -> BTreeMap<(Option<String>, Option<String>), (f64, f64)> {
    let mut truths = BTreeMap::new();
    for line in visits().lines().skip(1) {
        let cells: Vec<&str> = line.split(',').collect();
        let (shop, country, seconds) = (cells[1].to_owned(), cells[4].to_owned(), cells[3].parse::<f64>().unwrap());
        for set in 0..4 {
            let key = ((set & 1 == 0).then(|| shop.clone()), (set & 2 == 0).then(|| country.clone()));
            let own: &mut (f64, f64) = truths.entry(key).or_default();
            (own.0, own.1) = (own.0 + 1.0, own.1 + seconds);
        }
    }
    truths
}

#[test]
fn every_grouping_is_near_the_truth_and_has_its_interval() {
    let (room, tables) = tables("sets");
    for (grouping, of_shop, of_country) in [
        ("ROLLUP (shop, country)", true, false),
        ("CUBE (shop, country)", true, true),
        ("GROUPING SETS ((shop, country), (country), (shop), ())", true, true),
        ("country, ROLLUP (shop)", false, false),
    ] {
        let sql = format!(
            "SELECT shop, country, COUNT(*) AS n, AVG(seconds) AS mean, SUM(seconds) / COUNT(*), GROUPING(shop) AS g FROM visits GROUP BY {grouping}"
        );
        let answer = ask(&tables, &room, &sql, &asking(5000.0)).unwrap();
        let truths: BTreeMap<_, _> = truths()
            .into_iter()
            .filter(|((shop, country), _)| match (shop, country) {
                (Some(_), Some(_)) => true,
                (Some(_), None) => of_shop,
                (None, Some(_)) => of_country || grouping.starts_with("country"),
                (None, None) => !grouping.starts_with("country"),
            })
            .collect();
        assert_eq!(answer.rows.len(), truths.len(), "{sql}");
        for row in &answer.rows {
            let own = (key(&row[0].value), key(&row[1].value));
            let (n, seconds) = truths[&own];
            for (cell, truth) in row[2..5].iter().zip([n, seconds / n, seconds / n]) {
                let off = (number(&cell.value) - truth).abs();
                assert!(off < 0.05 * truth, "{sql}: {own:?}: {cell:?} and {truth}");
                let (low, high) = (cell.low.unwrap(), cell.high.unwrap());
                assert!(low <= number(&cell.value) && number(&cell.value) <= high, "{sql}: {own:?}: {cell:?}");
            }
            assert_eq!(row[5].value, Value::Int(i64::from(own.0.is_none())), "{sql}: {own:?}");
        }
    }
}

#[test]
fn groupings_are_one_release_with_one_price() {
    let (room, tables) = tables("sets_price");
    let sql = "SELECT shop, country, COUNT(*) FROM visits GROUP BY ROLLUP (shop, country)";
    let answer = ask(&tables, &room, sql, &asking(2.0)).unwrap();
    assert!(answer.statement.notes.iter().any(|note| note.contains("each grouping has noise of its own")));
    let price = answer.statement.prices.first().unwrap();
    assert!(price.epsilon <= 2.0 && price.epsilon > 1.9, "{price:?}");
    assert_eq!(tables.plan(sql, &asking(2.0)).unwrap().parts.len(), 3);
    let again = ask(
        &tables,
        &room,
        "SELECT country, shop, COUNT(*) FROM visits GROUP BY ROLLUP (shop, country) ORDER BY 3",
        &asking(2.0),
    );
    assert_eq!(again.unwrap().statement.entry, answer.statement.entry);
}

#[test]
fn rows_are_picked_and_ordered_over_all_groupings() {
    let (room, tables) = tables("sets_picked");
    let sql = "SELECT shop, COUNT(*) AS n FROM visits GROUP BY GROUPING SETS ((shop), ()) HAVING COUNT(*) > 10 ORDER BY n DESC LIMIT 1";
    let answer = ask(&tables, &room, sql, &asking(500.0)).unwrap();
    let [row] = answer.rows.as_slice() else { panic!("{:?}", answer.rows) };
    let all = truths()[&(None, None)].0;
    assert!(row[0].value == Value::Null && (number(&row[1].value) - all).abs() < 0.1 * all, "{row:?} and {all}");
    assert!(row[1].low.is_some() && answer.statement.notes.iter().any(|note| note.contains("picked by noisy values")));
}

/// 400 runs have a deviation of 1.1 %; five are allowed, of two groupings.
#[test]
fn intervals_of_totals_hold_as_often_as_they_say() {
    let (_room, tables) = tables("sets_coverage");
    let sql = "SELECT country, COUNT(*) AS n FROM visits GROUP BY ROLLUP (country)";
    for delta in [0.0, 1e-6] {
        let asking = Asking { delta: Some(delta), ..asking(3.0) };
        let found = tables.answer_many_for_audit(sql, &asking, 400).unwrap();
        let truths = truths();
        let mut held: BTreeMap<Option<String>, usize> = BTreeMap::new();
        for answer in &found.answers {
            for row in &answer.rows {
                let own = key(&row[0].value);
                let truth = truths[&(None, own.clone())].0;
                *held.entry(own).or_default() +=
                    usize::from(row[1].low.unwrap() <= truth && truth <= row[1].high.unwrap());
            }
        }
        assert_eq!(held.len(), 4);
        for (own, held) in held {
            let share = held as f64 / 400.0;
            assert!((0.95 - 0.055..=1.0).contains(&share), "δ = {delta}: {own:?}: {share}");
        }
    }
}

#[test]
fn what_would_be_paid_for_twice_or_is_about_one_person_is_refused() {
    let (room, tables) = tables("sets_refused");
    for (grouping, words) in [
        ("GROUPING SETS ((shop), (shop))", "stands twice"),
        ("ROLLUP (user_id, shop)", "makes a row of each user"),
        ("CUBE (shop, day, country, seconds, shop || 'a', shop || 'b', shop || 'c')", "more than 64 groupings"),
    ] {
        let error =
            ask(&tables, &room, &format!("SELECT COUNT(*) FROM visits GROUP BY {grouping}"), &asking(1.0)).unwrap_err();
        assert!(error.sentence.contains(words), "{grouping}: {error}");
    }
    // Of public tables the engine computes it.
    let answer = ask(&tables, &room, "SELECT shop, COUNT(*) FROM shown GROUP BY ROLLUP (shop)", &asking(1.0)).unwrap();
    assert_eq!(answer.rows.len(), 5);
}

#[test]
fn grouping_of_what_is_no_key_is_refused() {
    let (room, tables) = tables("sets_no_key");
    let sql = "SELECT shop, GROUPING(day), COUNT(*) FROM visits GROUP BY ROLLUP(shop)";
    let refused = ask(&tables, &room, sql, &asking(10.0)).unwrap_err();
    assert!(refused.sentence.contains("no key"), "{}", refused.sentence);
}
