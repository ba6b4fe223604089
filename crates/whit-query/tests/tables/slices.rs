//! Questions that read some slices of a table alone, and those that only seem to.

use crate::neighbours::{by_key, exact, neighbour};
use crate::room::{Room, ask, asking};
use crate::small::{Dice, Row, any_rows, declare, write, write_public};
use crate::ways::{WAYS, question};
use std::collections::BTreeSet;
use whit_account::ledger::{Register as _, Which};
use whit_core::unit::{SliceRange, SliceValue};
use whit_query::plan::Asking;
use whit_query::release::ExactPart;
use whit_query::{Tables, Workload, ask_workload};

/// Conditions on the day, of which some say which days pass and some do not, or not by themselves.
const CONDITIONS: &[&str] = &[
    "DAY = 2",
    "DAY IN (0, 2)",
    "DAY BETWEEN 1 AND 2",
    "DAY < 2",
    "2 <= DAY",
    "DAY > 0 AND DAY < 3",
    "(DAY = 0 OR DAY = 3)",
    "(DAY = 0 AND x > 1 OR DAY = 3)",
    "DAY = 1 + 1",
    "CAST(DAY AS INT) = 2",
    "DAY = 2 AND (x > 1 OR DAY IS NULL)",
    "(DAY = 2 OR x > 1)",
    "NOT DAY = 2",
    "DAY <> 1",
    "DAY NOT IN (0, 1)",
    "DAY NOT BETWEEN 1 AND 2",
    "DAY + 0 = 2",
    "abs(DAY) = 2",
    "coalesce(DAY, 2) = 2",
    "DAY = 2.0",
    "CAST(DAY AS VARCHAR) = '2'",
    "DAY IS NULL",
    "DAY = n",
    "CASE WHEN DAY = 2 THEN true ELSE x > 1 END",
    "(DAY = 2) IS NOT FALSE",
];

/// Questions over a condition C, and one more, D. A prefix says of which table the day is.
const SLICED: &[&str] = &[
    "SELECT PLAIN FROM T WHERE C",
    "SELECT INNER FROM T WHERE C",
    "SELECT shop, PLAIN FROM T WHERE C AND n > 3 GROUP BY shop",
    "SELECT tag, INNER FROM T WHERE C GROUP BY tag",
    "SELECT day, COUNT(*), SUM(x) FROM T WHERE C GROUP BY day",
    "SELECT shop, COUNT(*) FROM (SELECT shop, day AS d, x AS day FROM T) WHERE C GROUP BY shop",
    "SELECT shop, COUNT(*) FROM (SELECT shop, n AS day, day AS n, x FROM T WHERE C) GROUP BY shop",
    "SELECT shop, COUNT(*) FILTER (WHERE C), SUM(CASE WHEN C THEN x ELSE 0 END) FROM T GROUP BY shop",
    "SELECT region, COUNT(*), SUM(x) FROM T JOIN regions ON T.shop = regions.shop WHERE C GROUP BY region",
    "SELECT COUNT(*), SUM(x) FROM T LEFT JOIN regions ON T.shop = regions.shop WHERE C",
    "SELECT COUNT(*), SUM(a.x) FROM T a JOIN T b ON a.user_id = b.user_id WHERE a.C AND b.D",
    "SELECT COUNT(*), SUM(a.x) FROM T a JOIN T b ON a.user_id = b.user_id AND b.D WHERE a.C",
    "SELECT COUNT(*), SUM(a.x) FROM T a JOIN T b ON a.user_id = b.user_id AND a.day = b.day WHERE a.C",
    "SELECT COUNT(*), SUM(a.x) FROM T a LEFT JOIN T b ON a.user_id = b.user_id WHERE a.C",
    "SELECT COUNT(*), SUM(a.x) FROM T a LEFT JOIN T b ON a.user_id = b.user_id AND b.D WHERE a.C",
    "SELECT COUNT(*), SUM(a.x) FROM T a LEFT JOIN (SELECT * FROM T WHERE D) b ON a.user_id = b.user_id WHERE a.C",
    "SELECT COUNT(*), SUM(b.x) FROM T a LEFT JOIN T b ON a.user_id = b.user_id WHERE b.C",
    "SELECT COUNT(*), SUM(clamp(d, -2, 2)) FROM (SELECT day, x, n, x - lag(x) OVER (PARTITION BY user_id ORDER BY day, n, x, shop, tag) AS d FROM T) WHERE C",
    "SELECT COUNT(*), SUM(clamp(d, -2, 2)) FROM (SELECT x - lag(x) OVER (PARTITION BY user_id ORDER BY day, n, x, shop, tag) AS d FROM T WHERE C)",
    "SELECT COUNT(*), SUM(clamp(c, 0, 5)) FROM (SELECT user_id, COUNT(*) AS c FROM T WHERE C GROUP BY user_id)",
    "SELECT COUNT(*), SUM(clamp(n, 0, 5)) FROM (SELECT user_id, MIN(day) AS day, MAX(x) AS x, COUNT(*) AS n FROM T GROUP BY user_id) WHERE C",
    "SELECT COUNT(*), SUM(x) FROM T WHERE C AND user_id IN (SELECT user_id FROM T WHERE D)",
    "SELECT COUNT(*), SUM(x) FROM T WHERE user_id IN (SELECT user_id FROM T WHERE C)",
    "SELECT COUNT(*), SUM(a.x) FROM T a WHERE a.C AND NOT EXISTS (SELECT 1 FROM T b WHERE b.user_id = a.user_id AND b.D)",
    "SELECT COUNT(*), SUM(x) FROM (SELECT user_id, day, x, n FROM T WHERE C UNION ALL SELECT user_id, day, x, n FROM T WHERE D)",
    "SELECT COUNT(*), SUM(x) FROM (SELECT user_id, day, x, n FROM T UNION ALL SELECT user_id, day, x, n FROM T) WHERE C",
    "SELECT COUNT(*), SUM(x) FROM (SELECT user_id, day, x, n FROM T WHERE C UNION ALL SELECT user_id, day, x, n FROM T)",
    "SELECT COUNT(*) FROM (SELECT DISTINCT user_id, tag, day, x, n FROM T) WHERE C",
    "SELECT shop, tag, COUNT(*), SUM(x) FROM T WHERE C GROUP BY ROLLUP (shop, tag)",
    "WITH few AS (SELECT * FROM T WHERE C) SELECT a.shop, COUNT(*) FROM few a JOIN few b ON a.user_id = b.user_id GROUP BY a.shop",
];

/// A question with its conditions, for the table of this name.
fn asked(template: &str, conditions: [&str; 2], table: &str) -> String {
    let mut text = template.to_owned();
    for (letter, condition) in ["C", "D"].into_iter().zip(conditions) {
        for prefix in ["a.", "b.", ""] {
            let of = |name: &str| format!("{prefix}{name}");
            let condition = condition
                .replace("DAY", &of("day"))
                .replace("x >", &format!("{} >", of("x")))
                .replace("= n", &format!("= {}", of("n")));
            for (before, after) in [(" ", " "), (" ", ")"), (" ", ""), ("WHEN ", " "), ("WHERE ", ")")] {
                let hole = format!("{before}{prefix}{letter}{after}");
                let filled = format!("{before}({condition}){after}");
                if after.is_empty() {
                    text = text.strip_suffix(&hole).map_or_else(|| text.clone(), |head| format!("{head}{filled}"));
                } else {
                    text = text.replace(&hole, &filled);
                }
            }
        }
    }
    question(&text, table)
}

/// Everything that noise would be added to, by group.
fn figures(parts: &[ExactPart]) -> String {
    let one = |part: &ExactPart| {
        let measures: Vec<_> = part.measures.iter().map(|values| by_key(part, values)).collect();
        format!("{measures:?} {:?} {:?}", by_key(part, &part.presence), part.kept)
    };
    parts.iter().map(one).collect::<Vec<_>>().join("\n")
}

/// The days of rows that one table has more often than another.
fn days_that_differ(some: &[Row], others: &[Row]) -> BTreeSet<Option<i64>> {
    let words = |row: &Row| format!("{row:?}");
    let count = |rows: &[Row], row: &Row| rows.iter().filter(|other| words(other) == words(row)).count();
    let differs = |row: &&Row| count(some, row) != count(others, row);
    some.iter().chain(others).filter(differs).map(|row| row.day).collect()
}

/// Neighbours differ on one day at most; where a question is charged to other days alone, it finds the same in both, to the last digit and whatever is asked.
#[test]
fn a_slice_that_is_not_asked_about_moves_nothing() {
    let (mut sliced, mut whole, mut apart, mut moved) = (0, 0, 0, 0);
    let ways = [
        "event, add-remove",
        "event of users, add-remove, capped",
        "element",
        "element up to user",
        "feature",
        "label",
    ];
    for (number, name) in ways.into_iter().enumerate() {
        let way = WAYS.iter().find(|way| way.name == name).unwrap();
        let mut dice = Dice(0x51_1c_e5 + number as u64);
        let room = Room::new(&format!("slices_{number}"));
        write_public(&room);
        let mut tables: Vec<(String, Vec<Row>)> = Vec::new();
        let unit = format!("slice = \"day\"\n{}", way.unit);
        write(&room, "z.parquet", &[]);
        let plan = room
            .tables(&declare(&["z".to_owned()], &unit))
            .plan("SELECT COUNT(*) FROM z WHERE day = 2", &Asking { rows: Some(1), ..Asking::default() })
            .unwrap();
        let rung = plan.rungs.iter().position(|rung| rung.slices.is_some()).unwrap();
        assert_eq!(plan.rungs[rung].slices.as_ref().unwrap().to_string(), "day = 2", "{name}");
        assert!(plan.rungs.iter().all(|rung| rung.slices.is_none() || rung.unit.kind() != whit_core::Kind::User));
        let change = &plan.rungs[rung].unit;
        for table in 0..12 {
            let rows = any_rows(14, &mut dice);
            for j in 0..4 {
                let rows = neighbour(&rows, change.kind(), change.change(), way, &mut dice);
                tables.push((format!("t{table}_{j}"), rows));
            }
            tables.push((format!("t{table}"), rows));
        }
        for (name, rows) in &tables {
            write(&room, &format!("{name}.parquet"), rows);
        }
        let names: Vec<String> = tables.iter().map(|(name, _)| name.clone()).collect();
        let open: Tables = room.tables(&declare(&names, &unit));
        for family in tables.chunks(5) {
            let (base, neighbours) = family.split_last().unwrap();
            for _ in 0..12 {
                let (template, conditions) = (dice.of(SLICED), [dice.of(CONDITIONS), dice.of(CONDITIONS)]);
                let asking =
                    Asking { groups: Some(1 + dice.below(3)), rows: Some(1 + dice.below(3)), ..Asking::default() };
                let sql = asked(template, conditions, &base.0);
                let Ok((plan, parts)) = exact(&open, &sql, &asking) else { continue }; // refused, whatever the table holds
                let Some(slices) = &plan.rungs[rung].slices else {
                    whole += 1;
                    continue;
                };
                sliced += 1;
                for (name, rows) in neighbours {
                    let days = days_that_differ(&base.1, rows);
                    assert!(days.len() <= 1, "{}: neighbours differ on {days:?}", way.name);
                    let holds = |day: i64| {
                        let point = SliceRange::one(SliceValue::Whole(day));
                        slices.ranges().iter().any(|range| range.and(&point).is_some())
                    };
                    let touched = days.iter().flatten().any(|day| holds(*day));
                    let (_, others) = exact(&open, &asked(template, conditions, name), &asking).unwrap();
                    let same = figures(&parts) == figures(&others);
                    assert!(touched || same, "{}: {sql} is charged to {slices}, but {days:?} moves it", way.name);
                    apart += usize::from(!touched && !days.is_empty());
                    moved += usize::from(touched && !same);
                }
            }
        }
    }
    println!(
        "{sliced} questions about some days, {whole} about all; {apart} pairs differ elsewhere, {moved} were told apart"
    );
    assert!(sliced > 150 && whole > 150 && apart > 150 && moved > 50, "{sliced} {whole} {apart} {moved}");
}

const VISITS: &str = r#"
[dataset.visits]
source = "visits.csv"
slice = "day"
unit.user = "user_id"
unit.element = "day"
unit.protect = "element"
unit.caps = { elements_per_user = 3, rows_per_element = 2, rows_per_group = 2 }
columns.user_id = "int"
columns.day = { type = "date", bounds = ["2024-01-01", "2024-01-31"] }
columns.shop = "text"
columns.x = { type = "int", bounds = [0, 9] }
budget.element = { epsilon = 1.0, delta = 0.0 }
budget.user = { epsilon = 1000.0, delta = 0.0 }
budget.analyst.bob.element = { epsilon = 0.4, delta = 0.0 }

[dataset.shops]
source = "shops.csv"
public = true
"#;

fn visits(name: &str) -> Room {
    let room = Room::new(name);
    let mut text = "user_id,day,shop,x\n".to_owned();
    for user in 0..60 {
        for day in 1..=5 {
            text.push_str(&format!("{user},2024-01-0{day},{},{}\n", ["north", "south"][user % 2], (user + day) % 10));
        }
    }
    room.write("visits.csv", &text);
    room.write("shops.csv", "shop,day,opened\nnorth,2024-01-03,2001\nsouth,2024-01-04,2002\n");
    room
}

/// The slices that a question is charged to at the element, and whether the user pays for all.
fn charged(tables: &Tables, sql: &str) -> Option<String> {
    let plan = tables.plan(sql, &Asking { rows: Some(2), groups: Some(2), ..Asking::default() });
    let plan = plan.unwrap_or_else(|error| panic!("{sql}: {error:?}"));
    assert_eq!(plan.rungs.len(), 2);
    assert!(plan.rungs[1].slices.is_none(), "one user is on many days");
    plan.rungs[0].slices.as_ref().map(ToString::to_string)
}

#[test]
fn what_is_plainly_about_some_days_is_charged_to_those() {
    let tables = visits("slices_plain").tables(VISITS);
    for (condition, slices) in [
        ("day = DATE '2024-01-03'", "day = 2024-01-03"),
        ("day = '2024-01-03'", "day = 2024-01-03"),
        ("DATE '2024-01-03' = day AND shop = 'north'", "day = 2024-01-03"),
        ("day IN (DATE '2024-01-03', DATE '2024-01-05')", "day = 2024-01-03, 2024-01-05"),
        ("day BETWEEN DATE '2024-01-03' AND DATE '2024-01-05'", "day = 2024-01-03 to 2024-01-05"),
        ("day >= DATE '2024-01-03' AND day < DATE '2024-01-05'", "day = 2024-01-03 to 2024-01-04"),
        ("day > DATE '2024-01-03'", "day = 2024-01-04 and above"),
        ("day < DATE '2024-01-03' OR day = DATE '2024-01-09'", "day = 2024-01-02 and below, 2024-01-09"),
        ("day = DATE '2024-01-10' - INTERVAL '7' DAY", "day = 2024-01-03"),
    ] {
        let sql = format!("SELECT COUNT(*) FROM visits WHERE {condition}");
        assert_eq!(charged(&tables, &sql).as_deref(), Some(slices), "{condition}");
    }
    for (sql, slices) in [
        (
            "SELECT AVG(clamp(c, 0, 5)) FROM (SELECT user_id, COUNT(*) AS c FROM visits WHERE day = DATE '2024-01-03' GROUP BY user_id)",
            "day = 2024-01-03",
        ),
        (
            "SELECT COUNT(*) FROM visits v JOIN shops s ON v.shop = s.shop WHERE v.day = DATE '2024-01-03'",
            "day = 2024-01-03",
        ),
        (
            "WITH d AS (SELECT day AS when_, shop FROM visits) SELECT COUNT(*) FROM d WHERE when_ = DATE '2024-01-03'",
            "day = 2024-01-03",
        ),
        (
            "SELECT COUNT(*) FROM visits WHERE day = DATE '2024-01-03' UNION ALL SELECT COUNT(*) FROM visits WHERE day = DATE '2024-01-07'",
            "day = 2024-01-03, 2024-01-07",
        ),
        (
            "SELECT COUNT(*) FROM visits WHERE day = DATE '2024-01-03' AND user_id IN (SELECT user_id FROM visits WHERE day = DATE '2024-01-04')",
            "day = 2024-01-03 to 2024-01-04",
        ),
    ] {
        assert_eq!(charged(&tables, sql).as_deref(), Some(slices), "{sql}");
    }
}

#[test]
fn what_only_seems_to_be_sliced_touches_all() {
    let tables = visits("slices_seeming").tables(VISITS);
    for condition in [
        "x > 3",
        "day = DATE '2024-01-03' OR x > 3",
        "NOT day = DATE '2024-01-03'",
        "day <> DATE '2024-01-03'",
        "NOT (day < DATE '2024-01-03')",
        "day NOT IN (DATE '2024-01-03')",
        "day IS NULL",
        "coalesce(day, DATE '2024-01-03') = DATE '2024-01-03'",
        "date_trunc('month', day) = DATE '2024-01-01'",
        "day + INTERVAL '1' DAY = DATE '2024-01-03'",
        "CAST(day AS VARCHAR) = '2024-01-03'",
        "CAST(day AS TIMESTAMP) = TIMESTAMP '2024-01-03 00:00:00'",
        "extract(day FROM day) = 3",
        "CASE WHEN day = DATE '2024-01-03' THEN true ELSE x > 3 END",
        "day = DATE '2024-01-03' AND day = DATE '2024-01-04'", // which no row is
    ] {
        let sql = format!("SELECT COUNT(*) FROM visits WHERE {condition}");
        assert_eq!(charged(&tables, &sql), None, "{condition}");
    }
    for sql in [
        "SELECT COUNT(*) FROM visits",
        "SELECT day, COUNT(*) FROM visits GROUP BY day",
        "SELECT COUNT(*) FILTER (WHERE day = DATE '2024-01-03') FROM visits",
        "SELECT SUM(CASE WHEN day = DATE '2024-01-03' THEN x ELSE 0 END) FROM visits",
        "SELECT COUNT(*) FROM (SELECT DATE '2024-01-03' AS day, x FROM visits) WHERE day = DATE '2024-01-03'",
        "SELECT COUNT(*) FROM visits v JOIN shops s ON v.shop = s.shop WHERE s.day = DATE '2024-01-03'",
        "SELECT COUNT(*) FROM visits v JOIN shops s ON v.day = s.day WHERE s.day = DATE '2024-01-03'",
        "SELECT COUNT(*) FROM visits a JOIN visits b ON a.user_id = b.user_id WHERE a.day = DATE '2024-01-03'",
        "SELECT COUNT(*) FROM visits a LEFT JOIN visits b ON a.user_id = b.user_id WHERE b.day = DATE '2024-01-03'",
        "SELECT COUNT(*) FROM visits a LEFT JOIN visits b ON a.user_id = b.user_id AND b.day = DATE '2024-01-03' WHERE a.day = DATE '2024-01-03'",
        "SELECT COUNT(*) FROM (SELECT day, row_number() OVER (PARTITION BY user_id ORDER BY day) AS k FROM visits) WHERE day = DATE '2024-01-03' AND k = 1",
        "SELECT COUNT(*) FROM (SELECT user_id, MIN(day) AS day FROM visits GROUP BY user_id) WHERE day = DATE '2024-01-03'",
        "SELECT COUNT(*) FROM visits a WHERE a.day = DATE '2024-01-03' AND EXISTS (SELECT 1 FROM visits b WHERE b.user_id = a.user_id AND b.x = a.x)",
        "SELECT COUNT(*) FROM visits WHERE day IN (SELECT day FROM shops)",
        "SELECT COUNT(*) FROM visits WHERE day = DATE '2024-01-03' UNION ALL SELECT COUNT(*) FROM visits",
    ] {
        assert_eq!(charged(&tables, sql), None, "{sql}");
    }
}

#[test]
fn one_day_that_is_spent_leaves_the_others_for_all_analysts() {
    let room = visits("slices_asked");
    let tables = room.tables(VISITS);
    let of = |day: u32, more: &str| format!("SELECT COUNT(*) FROM visits WHERE day = DATE '2024-01-0{day}'{more}");
    let pure = Asking { delta: Some(0.0), ..asking(0.6) };
    for day in 1..=5 {
        let answer = ask(&tables, &room, &of(day, ""), &pure).unwrap();
        assert_eq!(answer.statement.more_like_this, Some(0), "of this day there is no room for another");
    }
    // Asked again it costs nothing, whoever asks.
    let again = whit_query::ask(&tables, &of(3, ""), &pure, &mut room.books(), "carol").unwrap();
    assert!(again.statement.stored);
    let no = whit_query::ask(&tables, &of(3, " AND x > 3"), &pure, &mut room.books(), "carol").unwrap_err();
    assert!(no.sentence.contains("element (user_id, day), replace, where day = 2024-01-03, and ε = 0.4"), "{no:?}");
    ask(&tables, &room, &of(6, " AND x > 3"), &pure).unwrap();
    // What may read every day is short where one is.
    let all = ask(&tables, &room, "SELECT COUNT(*) FROM visits", &pure).unwrap_err();
    assert!(all.sentence.contains("where day ="), "{all:?}");
    // Bob's own budget is one of each day, and so is what a preview says.
    let few = Asking { delta: Some(0.0), ..asking(0.3) };
    for day in [7, 8] {
        let sql = of(day, "");
        let preview = tables.preview(&sql, &few).unwrap();
        let fits = tables.fits(&sql, &preview, &few, &mut room.books(), "bob").unwrap();
        let own = fits.budgets.iter().find(|budget| budget.analyst.is_some()).unwrap();
        assert_eq!((own.times, own.slice.as_deref()), (1, Some(format!("day = 2024-01-0{day}").as_str())));
        whit_query::ask(&tables, &sql, &few, &mut room.books(), "bob").unwrap();
    }
    let no = whit_query::ask(&tables, &of(8, " AND x > 3"), &few, &mut room.books(), "bob").unwrap_err();
    assert!(no.sentence.contains("for bob, where day = 2024-01-08"), "{no:?}");
}

/// Questions that are planned together have one charge, which is of all days that any of them reads.
#[test]
fn questions_that_are_asked_together_are_charged_to_the_days_of_all() {
    let room = visits("slices_together");
    let tables = room.tables(VISITS);
    let few = Asking { delta: Some(0.0), ..asking(0.1) };
    let of = |what: &str, day: u32| format!("SELECT {what} FROM visits WHERE day = DATE '2024-01-0{day}'");
    for (questions, slices) in [
        ([of("COUNT(*)", 1), of("SUM(x)", 1)], Some("day = 2024-01-01")),
        ([of("COUNT(*)", 2), of("COUNT(*)", 4)], Some("day = 2024-01-02, 2024-01-04")),
        ([of("COUNT(*)", 5), "SELECT SUM(x) FROM visits".to_owned()], None),
    ] {
        let workload = Workload::read(&questions.join(";\n")).unwrap();
        ask_workload(&tables, &workload, &few, &mut room.books(), "tester").unwrap();
        let entry = room.books().entries(&Which::default()).unwrap().pop().unwrap();
        assert_eq!(entry.charge[0].0.slices.as_ref().map(ToString::to_string).as_deref(), slices);
        assert!(entry.charge[1].0.slices.is_none(), "one user is on many days");
    }
    let budgets = tables.budgets("visits").unwrap();
    let spent = room.books().spent(&budgets[0]).unwrap();
    assert!(
        (spent.spent - 0.2).abs() < 1e-6,
        "the last touches all days, and of the others each one or two: {spent:?}"
    );
}

/// Where the column of slices is another, or the element is, what was charged to days counts in full.
#[test]
fn another_declaration_of_slices_believes_nothing_that_was_charged_before() {
    let room = visits("slices_changed");
    let pure = Asking { delta: Some(0.0), ..asking(0.6) };
    let sql = |day: u32| format!("SELECT COUNT(*) FROM visits WHERE day = DATE '2024-01-0{day}'");
    ask(&room.tables(VISITS), &room, &sql(1), &pure).unwrap();
    let without = VISITS.replace("slice = \"day\"\n", "");
    let no = ask(&room.tables(&without), &room, &sql(2), &pure).unwrap_err();
    assert!(no.sentence.contains("ε = 0.4 of the budget is left") && !no.sentence.contains("where"), "{no:?}");
    let as_text = VISITS.replace(
        "columns.day = { type = \"date\", bounds = [\"2024-01-01\", \"2024-01-31\"] }",
        "columns.day = \"text\"",
    );
    let no =
        ask(&room.tables(&as_text), &room, "SELECT COUNT(*) FROM visits WHERE day = '2024-01-02'", &pure).unwrap_err();
    assert!(no.sentence.contains("where day = '2024-01-02', and ε = 0.4"), "{no:?}");
    ask(&room.tables(VISITS), &room, &sql(2), &pure).unwrap();
}

/// Under another heading the same rows lie in other slices of the same name.
#[test]
fn slices_that_are_read_in_another_way_are_others() {
    let room = Room::new("slices_read");
    room.write("v.csv", "1,2\n1,2\n1,2\n5,6\n");
    let declared = |names: &str| {
        format!(
            "[dataset.v]\nsource = \"v.csv\"\nheader = {names}\nslice = \"day\"\nunit.protect = \"event\"\nunit.change = \"add-remove\"\n\
             columns.day = \"int\"\ncolumns.b = \"int\"\nbudget.event = {{ epsilon = 1.0, delta = 0.0 }}"
        )
    };
    let asked = |names: &str, day: u32| {
        let pure = Asking { epsilon: Some(0.9), delta: Some(0.0), ..Asking::default() };
        ask(&room.tables(&declared(names)), &room, &format!("SELECT COUNT(*) FROM v WHERE day = {day}"), &pure)
    };
    asked("[\"day\", \"b\"]", 1).unwrap();
    let no = asked("[\"b\", \"day\"]", 2).unwrap_err();
    assert!(no.sentence.contains("where day = 2"), "{no:?}");
    asked("[\"day\", \"b\"]", 5).unwrap();
}

#[test]
fn a_column_that_makes_no_slices_is_refused_when_it_is_declared() {
    let room = visits("slices_refused");
    let refused = |declaration: &str| {
        let declaration = whit_core::declare::Declaration::parse(declaration).unwrap();
        let tuning = whit_query::source::Tuning::default();
        whit_query::Tables::of(declaration, room.path(), tuning).err().unwrap().sentence
    };
    let timestamp = VISITS.replace(
        "columns.day = { type = \"date\", bounds = [\"2024-01-01\", \"2024-01-31\"] }",
        "columns.day = \"timestamp\"",
    );
    assert!(refused(&timestamp).contains("`visits.day` divides rows into slices, but is"), "{}", refused(&timestamp));
    let missing = VISITS
        .replace("slice = \"day\"", "slice = \"dey\"")
        .replace("unit.element = \"day\"", "unit.element = \"dey\"");
    assert!(refused(&missing).contains("dey"), "{}", refused(&missing));
}
