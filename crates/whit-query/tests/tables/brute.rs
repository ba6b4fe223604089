//! Without noise, and with caps so high that nothing is cut, every measure is what counting by hand gives.

use crate::room::Room;
use crate::small::{Dice, Row, any_rows, declare, write, write_public};
use std::collections::{BTreeMap, BTreeSet};
use whit_query::Value;
use whit_query::plan::{Asking, Grain, Measure, What};

/// The weight of a row in a tree, where rows of one unit share one.
const WEIGHT: i64 = 1 << 10;
/// Sixteen children a node and 4,096 leaves: 16, 256 and 4,096 nodes.
const LEVELS: i64 = 3;
const NODES: usize = 16 + 256 + 4096;

const WAYS: &[(&str, &str)] = &[
    ("event", "unit.protect = \"event\""),
    (
        "event of users",
        "unit.user = \"user_id\"\nunit.element = \"day\"\nunit.protect = \"event\"\nunit.caps = { rows_per_element = 1000, elements_per_user = 1000 }",
    ),
    (
        "element",
        "unit.user = \"user_id\"\nunit.element = \"day\"\nunit.protect = \"element\"\nunit.caps = { rows_per_element = 1000, elements_per_user = 1000 }",
    ),
    ("user", "unit.user = \"user_id\"\nunit.protect = \"user\"\nunit.caps = { rows_per_user = 1000 }"),
];

/// A condition as SQL and by hand.
type Condition = (&'static str, fn(&Row) -> bool);
/// A key as SQL and by hand.
type Key = (&'static str, fn(&Row) -> Value);

const CONDITIONS: &[Condition] = &[
    ("true", |_| true),
    // NaN is missing, and what is missing is not above 1. (Of a column alone it would narrow the range, and so the lattice.)
    ("x * 1 > 1", |row| row.x.is_some_and(|x| x > 1.0)),
    ("n BETWEEN 3 AND 10 OR tag IS NULL", |row| row.n.is_some_and(|n| (3..=10).contains(&n)) || row.tag.is_none()),
    ("shop IN ('a', 'b') AND day <> 2", |row| ["a", "b"].contains(&row.shop) && row.day.is_some_and(|day| day != 2)),
];

fn text(value: Option<&str>) -> Value {
    value.map_or(Value::Null, |text| Value::Text(text.to_owned()))
}

const KEYS: &[Key] = &[
    ("", |_| Value::Null),
    ("shop", |row| text(Some(row.shop))),
    ("tag", |row| text(row.tag)),
    ("day", |row| row.day.map_or(Value::Null, Value::Int)),
];

fn there(x: Option<f64>) -> Option<f64> {
    x.filter(|x| !x.is_nan())
}

/// On a lattice of 2^-`places`, halves away from zero.
fn steps(x: f64, places: i32) -> i64 {
    (x * 2_f64.powi(places)).round() as i64
}

/// What a measure should be over these rows, by its name; `None` where the name is not known.
fn by_hand(rows: &[&Row], measure: &Measure, grain: Grain) -> Option<i64> {
    let xs: Vec<f64> = rows.iter().filter_map(|row| there(row.x)).map(|x| x.clamp(-2.0, 6.0)).collect();
    let ns: Vec<i64> = rows.iter().filter_map(|row| row.n).map(|n| n.clamp(0, 10)).collect();
    let name = measure.name.as_str();
    let of_x = name.contains("(x)") || name.ends_with(" x");
    Some(match &measure.what {
        What::Rows(None) => rows.len() as i64,
        What::Rows(Some(_)) if of_x => xs.len() as i64,
        What::Rows(Some(_)) => ns.len() as i64,
        What::Parts(_) if name.contains('*') => WEIGHT * rows.len() as i64,
        What::Parts(_) => WEIGHT * if of_x { xs.len() } else { ns.len() } as i64,
        What::Users => rows.iter().filter_map(|row| row.user).collect::<BTreeSet<_>>().len() as i64,
        What::Distinct { .. } if name.contains("user_id") => {
            rows.iter().filter_map(|row| row.user).collect::<BTreeSet<_>>().len() as i64
        }
        What::Distinct { .. } if name.contains("tag") => {
            rows.iter().filter_map(|row| row.tag).collect::<BTreeSet<_>>().len() as i64
        }
        What::Distinct { worth: Some(_), .. } => ns.iter().collect::<BTreeSet<_>>().into_iter().sum(),
        What::Distinct { .. } => return None,
        What::Tree { .. } => {
            let many = if of_x { xs.len() } else { ns.len() } as i64;
            many * LEVELS * if grain == Grain::Row { 1 } else { WEIGHT }
        }
        What::Sum { .. } => match (of_x, name.split(": ").nth(1)) {
            (true, None) => xs.iter().map(|&x| steps(x, 27)).sum(),
            (true, Some("centred sum")) => xs.iter().map(|&x| steps(x - 2.0, 27)).sum(),
            (true, Some(_)) => xs.iter().map(|&x| steps((x - 2.0) * (x - 2.0), 25)).sum(),
            (false, moment) => {
                // Where rows of one unit may come to count for less, the lattice is finer than that of whole numbers.
                let fine = i64::from(grain != Grain::Row);
                match moment {
                    None => ns.iter().map(|&n| n << (26 * fine)).sum(),
                    Some("centred sum") => ns.iter().map(|&n| (n - 5) << (27 * fine)).sum(),
                    Some(_) => ns.iter().map(|&n| ((n - 5) * (n - 5)) << (25 * fine)).sum(),
                }
            }
        },
    })
}

#[test]
fn without_noise_and_cuts_every_measure_is_what_counting_by_hand_gives() {
    let mut dice = Dice(11);
    let room = Room::new("brute");
    write_public(&room);
    let tables: Vec<(String, Vec<Row>)> = (0..12).map(|i| (format!("t{i}"), any_rows(40, &mut dice))).collect();
    for (name, rows) in &tables {
        write(&room, &format!("{name}.parquet"), rows);
    }
    let names: Vec<String> = tables.iter().map(|(name, _)| name.clone()).collect();
    let asking = Asking { groups: Some(100), rows: Some(1000), ..Asking::default() };
    let mut checked: BTreeMap<&str, usize> = BTreeMap::new();
    for (way, unit) in WAYS {
        let open = room.tables(&declare(&names, unit));
        for (name, rows) in &tables {
            let ((condition, holds), (key, key_of)) = (dice.of(CONDITIONS), dice.of(KEYS));
            let grouped = if key.is_empty() { String::new() } else { format!("GROUP BY {key}") };
            let sql = format!(
                "SELECT COUNT(*), COUNT(x), COUNT(n), COUNT(DISTINCT user_id), COUNT(DISTINCT tag), SUM(DISTINCT n), SUM(x), SUM(n), AVG(x), AVG(n), VAR(n), STDDEV(x), MEDIAN(x), MAX(n) FROM {name} WHERE {condition} {grouped}"
            );
            let (plan, parts) =
                open.exact_for_tests(&sql, &asking).unwrap_or_else(|error| panic!("{way}: {sql}: {error:?}"));
            let (part, exact) = (&plan.parts[0], &parts[0]);
            let mine: Vec<&Row> =
                rows.iter().filter(|row| holds(row) && (*way == "event" || row.user.is_some())).collect();
            let mut groups: BTreeMap<String, Vec<&Row>> = BTreeMap::new();
            for row in &mine {
                let own = if key.is_empty() { Vec::new() } else { vec![key_of(row)] };
                groups.entry(format!("{own:?}")).or_default().push(row);
            }
            if key == "shop" {
                groups.retain(|own, _| !own.contains("\"d\"")); // not listed
            }
            let shown: BTreeSet<String> = exact.keys.iter().map(|own| format!("{own:?}")).collect();
            assert!(
                groups.keys().all(|own| shown.contains(own)),
                "{way}: {sql}: {shown:?} lacks some of {:?}",
                groups.keys()
            );
            assert!(key.is_empty() || key == "shop" || shown.len() == groups.len(), "{way}: {sql}: {shown:?}");
            let none = Vec::new();
            for (i, measure) in part.measures.iter().enumerate() {
                let values = &exact.measures[i];
                for (g, own) in exact.keys.iter().enumerate() {
                    let rows = groups.get(&format!("{own:?}")).unwrap_or(&none);
                    let found = if matches!(measure.what, What::Tree { .. }) {
                        values[g * NODES..(g + 1) * NODES].iter().sum()
                    } else {
                        values[g]
                    };
                    let Some(expected) = by_hand(rows, measure, part.grain) else { panic!("{}", measure.name) };
                    assert_eq!(found, expected, "{way}: {sql}: {own:?}: {} over {rows:?}", measure.name);
                    *checked
                        .entry(match measure.what {
                            What::Rows(_) => "rows",
                            What::Parts(_) => "parts of rows",
                            What::Users => "users",
                            What::Sum { .. } => "sum",
                            What::Distinct { .. } => "distinct",
                            What::Tree { .. } => "tree",
                        })
                        .or_default() += usize::from(!rows.is_empty());
                }
            }
            for (own, presence) in exact.keys.iter().zip(&exact.presence) {
                let rows = groups.get(&format!("{own:?}")).unwrap_or(&none);
                let users = rows.iter().map(|row| row.user).collect::<BTreeSet<_>>().len();
                let expected = if part.grain == Grain::Row { rows.len() } else { users };
                assert_eq!(*presence, expected as i64, "{way}: {sql}: {own:?}");
            }
        }
    }
    assert!(checked.len() == 6 && checked.values().all(|&times| times > 50), "{checked:?}");
}
