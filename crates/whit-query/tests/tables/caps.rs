//! What caps do to an answer: they leave each group its share, means what they are, and noise no larger than they say.

use crate::ask::number;
use crate::room::{Room, ask, asking};
use crate::small::{Dice, Row, any_rows, write, write_public};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use whit_core::Sensitivity;
use whit_query::plan::{Asking, Measure, Plan, What};
use whit_query::release::ExactPart;
use whit_query::{Tables, Value};

fn row(user: i64, day: i64, n: i64) -> Row {
    Row { user: Some(user), day: Some(day), shop: "a", tag: Some("p"), x: Some(1.0), n: Some(n) }
}

/// Declares `t.parquet`.
fn declare(unit: &str, columns: &str) -> String {
    format!(
        "[dataset.t]\nsource = \"t.parquet\"\nunit.user = \"user_id\"\nunit.protect = \"user\"\n{unit}\n{columns}\n"
    )
}

fn twenty_days() -> String {
    let days: Vec<String> = (0..20).map(|day| format!("\"{day}\"")).collect();
    format!("columns.day = {{ keys = [{}] }}\ncolumns.n = {{ bounds = [0, 1000] }}", days.join(", "))
}

fn exact(tables: &Tables, sql: &str) -> (Plan, Vec<ExactPart>) {
    tables.exact_for_tests(sql, &Asking::default()).unwrap_or_else(|error| panic!("{sql}: {error:?}"))
}

/// In how many parts a measure counts rows.
fn parts_of(measure: &Measure) -> f64 {
    if matches!(measure.what, What::Parts(_)) { 1024.0 } else { 1.0 }
}

/// How far one unit moves the first rung of each measure, in rows or steps.
fn moved(tables: &Tables, sql: &str, asking: &Asking) -> Vec<Sensitivity> {
    let plan = tables.plan(sql, asking).unwrap_or_else(|error| panic!("{sql}: {error:?}"));
    let of = |measure: &Measure| {
        let (Sensitivity { l1, l2 }, parts) = (measure.moved[0], parts_of(measure));
        Sensitivity { l1: l1 / parts, l2: l2 / parts }
    };
    plan.parts[0].measures.iter().map(of).collect()
}

/// 1,000 users on each of 20 days, of which five count: 250 are left on each day. Were the choice the day's alone, it would be 1,000 on five days and
/// nobody on fifteen. A fair choice fails once in 10⁹ runs (Hoeffding).
#[test]
fn a_cap_on_groups_leaves_each_group_its_share() {
    let room = Room::new("caps_share");
    let rows: Vec<Row> = (0..20_000).map(|i| row(i / 20, i % 20, 1)).collect();
    write(&room, "t.parquet", &rows);
    let tables = room.tables(&declare("unit.caps = { groups = 5, rows_per_user = 40 }", &twenty_days()));
    let (plan, parts) =
        exact(&tables, "SELECT day, COUNT(*), COUNT(DISTINCT user_id), COUNT(DISTINCT n) FROM t GROUP BY day");
    let tolerance = 1000.0 * ((2.0e9_f64 * 40.0).ln() / 2000.0).sqrt();
    for day in 0..20 {
        // Rows and users; how many different values there are stands between them.
        for i in [0, 2] {
            let counts = parts[0].measures[i][day] as f64 / parts_of(&plan.parts[0].measures[i]);
            assert!((counts - 250.0).abs() < tolerance, "day {day}: {counts}");
        }
    }
    assert_eq!(parts[0].presence.iter().sum::<i64>(), 5000);
}

/// Users with many rows have high values; only five rows of each count. Sums and counts that are clamped apart gave 499 for a mean of 320.
#[test]
fn means_and_variances_are_those_of_the_rows_also_above_the_cap() {
    let room = Room::new("caps_means");
    let rows: Vec<Row> = (0..2000_i64)
        .flat_map(|user| {
            let many = 1 + user % 40;
            (0..many).map(move |i| row(user, user % 3, (user * 13 + i * 29 + many * 7) % 1001))
        })
        .collect();
    write(&room, "t.parquet", &rows);
    let tables = room.tables(&declare("unit.caps = { rows_per_user = 5 }", "columns.n = { bounds = [0, 1000] }"));
    // Each user's rows weigh as much as five, or as many as there are: that is the mean that caps leave.
    let mut own = BTreeMap::<i64, Vec<f64>>::new();
    for row in &rows {
        own.entry(row.user.unwrap()).or_default().push(row.n.unwrap() as f64);
    }
    let weighted = |of: &dyn Fn(f64) -> f64| {
        let (mut sum, mut weight) = (0.0, 0.0);
        for values in own.values() {
            let counts = values.len().min(5) as f64;
            sum += counts * values.iter().map(|&value| of(value)).sum::<f64>() / values.len() as f64;
            weight += counts;
        }
        sum / weight
    };
    let mean = weighted(&|value| value);
    let variance = weighted(&|value| (value - mean) * (value - mean));
    let (plan, parts) = exact(&tables, "SELECT AVG(n), VAR_POP(n), COUNT(*), SUM(n) FROM t");
    // Five rows at the upper end are the most that a user adds.
    let step = |i: usize, most: f64| 5.0 * most / plan.parts[0].measures[i].high as f64;
    let titles = plan.parts[0].titles();
    for (title, statistic) in titles.zip(&plan.parts[0].statistics) {
        let of = |i: usize| parts[0].measures[i][0] as f64;
        let rows = |i: usize| of(i) * step(i, 1.0);
        match (title, statistic.measures().as_slice()) {
            ("AVG(n)", &[sum, count]) => {
                let found = 500.0 + of(sum) * step(sum, 500.0) / rows(count);
                assert!((found - mean).abs() < 0.01, "{found} and {mean}");
            }
            ("VAR_POP(n)", &[sum, squares, count]) => {
                let first = of(sum) * step(sum, 500.0) / rows(count);
                let second = of(squares) * step(squares, 250_000.0) / rows(count);
                let found = second - first * first;
                assert!((found / variance - 1.0).abs() < 1e-4, "{found} and {variance}");
            }
            ("COUNT(*)", &[count]) => {
                let expected: usize = own.values().map(|values| values.len().min(5)).sum();
                assert_eq!(rows(count), expected as f64);
            }
            ("SUM(n)", &[sum]) => {
                let expected = mean * own.values().map(|values| values.len().min(5) as f64).sum::<f64>();
                let found = of(sum) * step(sum, 1000.0);
                assert!((found - expected).abs() < 0.01, "{found} and {expected}");
            }
            other => panic!("{other:?}"),
        }
    }
}

/// A user beyond the cap weighs as much as it says, however many different values there are: shares that are rounded down one by one come to nothing.
#[test]
fn users_with_very_many_rows_are_not_lost_to_percentiles() {
    let room = Room::new("heavy_percentiles");
    let many = (0..40).flat_map(|user| (0..1200).map(move |i| (user, f64::from(i) / 2.0)));
    let few = (40..79).map(|user| (user, 905.0 + f64::from(user) / 100.0));
    let lines: Vec<String> = many.chain(few).map(|(user, x)| format!("{user},{x}")).collect();
    room.write("t.csv", &format!("user_id,x\n{}\n", lines.join("\n")));
    let tables = room.tables(
        "[dataset.t]\nsource = \"t.csv\"\nunit.user = \"user_id\"\nunit.protect = \"user\"\nunit.change = \"add-remove\"\nunit.caps = { rows_per_user = 1 }\ncolumns.user_id = \"int\"\ncolumns.x = { type = \"float\", bounds = [0, 1000] }\n",
    );
    // Of 79 users 40 lie evenly below 600.
    for (sql, truth, near) in [
        ("SELECT MEDIAN(x) FROM t", 592.5, 12.0),
        ("SELECT APPROX_PERCENTILE_CONT(x, 0.25) FROM t", 296.25, 12.0),
        ("SELECT MIN(x) FROM t", 0.0, 40.0),
    ] {
        let found = tables.release_many_for_audit(sql, &asking(500.0), 3).unwrap();
        for run in &found.runs {
            let released = number(&run[0].1[0]);
            assert!((released - truth).abs() <= near, "{sql}: {released} for {truth}");
        }
    }
}

/// Where rows count for less, so do those that have a value: half of a row is not one or none by chance.
#[test]
fn means_of_columns_with_gaps_are_means_also_above_the_cap() {
    let room = Room::new("gaps_above_caps");
    let value = |user: i64, i: i64| (user * 37 + i * 13) % 300;
    let rows = (0..60).flat_map(|user| (0..50).map(move |i| (user, i)));
    let line = |(user, i): (i64, i64)| match i % 2 {
        0 => format!("{user},{}", value(user, i)),
        _ => format!("{user},"),
    };
    let lines: Vec<String> = rows.map(line).collect();
    room.write("t.csv", &format!("user_id,y\n{}\n", lines.join("\n")));
    let tables = room.tables(
        "[dataset.t]\nsource = \"t.csv\"\nunit.user = \"user_id\"\nunit.protect = \"user\"\nunit.change = \"add-remove\"\nunit.caps = { rows_per_user = 1 }\ncolumns.user_id = \"int\"\ncolumns.y = { type = \"int\", bounds = [0, 300] }\n",
    );
    let all: Vec<f64> = (0..60).flat_map(|user| (0..25).map(move |i| value(user, 2 * i) as f64)).collect();
    let mean = all.iter().sum::<f64>() / all.len() as f64;
    let deviation = (all.iter().map(|y| (y - mean).powi(2)).sum::<f64>() / all.len() as f64).sqrt();
    let high: Vec<f64> = all.iter().copied().filter(|&y| y > 200.0).collect();
    for (sql, truth, near) in [
        ("SELECT AVG(y) FROM t", mean, 0.5),
        ("SELECT STDDEV_POP(y) FROM t", deviation, 0.5),
        ("SELECT AVG(y) FILTER (WHERE y > 200) FROM t", high.iter().sum::<f64>() / high.len() as f64, 1.5),
        // Each user has half of a row that counts.
        ("SELECT COUNT(y) FROM t", 30.0, 0.0),
    ] {
        let found = tables.release_many_for_audit(sql, &asking(2000.0), 3).unwrap();
        for run in &found.runs {
            let released = number(&run[0].1[0]);
            assert!((released - truth).abs() <= near, "{sql}: {released} for {truth}");
        }
    }
}

/// Every declared limit is used. What is claimed is what brute force over limits finds; here it is that limits get there.
#[test]
fn noise_is_as_small_as_the_declaration_allows() {
    let room = Room::new("caps_noise");
    write(&room, "t.parquet", &[]);
    let near = |found: Sensitivity, l1: f64, l2: f64, what: &str| {
        assert!(
            (found.l1 / l1 - 1.0).abs() < 1e-9 && (found.l2 / l2 - 1.0).abs() < 1e-9,
            "{what}: {found:?}, not {l1} and {l2}"
        );
    };
    let count = "SELECT day, COUNT(*) FROM t GROUP BY day";
    let none = Asking::default();
    // Thirty rows in all, and not thirty in each of thirty groups.
    let tables = room.tables(&declare("unit.caps = { rows_per_user = 30, groups = 30 }", ""));
    near(moved(&tables, count, &none)[0], 60.0, 1800.0_f64.sqrt(), "30 rows");
    let tables =
        room.tables(&declare("unit.change = \"add-remove\"\nunit.caps = { rows_per_user = 30, groups = 30 }", ""));
    near(moved(&tables, count, &none)[0], 30.0, 30.0, "30 rows, add-remove");
    let one_each = Asking { rows: Some(1), ..Asking::default() };
    near(moved(&tables, count, &one_each)[0], 30.0, 30.0_f64.sqrt(), "30 rows, one in a group");
    let seven = Asking { rows: Some(7), ..Asking::default() };
    near(moved(&tables, count, &seven)[0], 30.0, (4.0 * 49.0 + 4.0_f64).sqrt(), "30 rows, seven in a group");
    // Seven weekdays are seven coordinates, also where one user takes another's place.
    let week =
        "columns.day = { keys = [\"0\", \"1\", \"2\", \"3\", \"4\", \"5\", \"6\"] }\ncolumns.n = { bounds = [0, 10] }";
    let tables = room.tables(&declare("", week));
    near(moved(&tables, count, &one_each)[0], 7.0, 7.0_f64.sqrt(), "7 keys");
    let three = Asking { rows: Some(1), groups: Some(3), ..Asking::default() };
    near(moved(&tables, count, &three)[0], 6.0, 6.0_f64.sqrt(), "3 of 7 keys");
    near(
        moved(&tables, "SELECT day, COUNT(DISTINCT user_id) FROM t GROUP BY day", &one_each)[0],
        7.0,
        7.0_f64.sqrt(),
        "users on 7 days",
    );
    // And less still where rows in all are capped.
    let tables = room.tables(&declare("unit.caps = { rows_per_user = 2 }", week));
    near(moved(&tables, count, &one_each)[0], 4.0, 2.0, "2 rows on 7 days");
    // On a lattice of 2^-26, on which ten has 29 bits.
    let steps = 2_f64.powi(26);
    near(moved(&tables, "SELECT day, SUM(n) FROM t GROUP BY day", &one_each)[0], 40.0 * steps, 20.0 * steps, "a sum");
    // A user in so many elements is in so many groups, where groups follow from elements.
    let tables = room
        .tables(&declare("unit.element = \"day\"\nunit.caps = { elements_per_user = 4, rows_per_element = 1 }", ""));
    near(moved(&tables, count, &none)[0], 8.0, 8.0_f64.sqrt(), "elements");
}

/// Two private tables with caps of their own, in either order, and with a comma: one question, one answer.
#[test]
fn the_order_of_a_join_changes_neither_the_answer_nor_its_price() {
    let room = Room::new("caps_join");
    let mut dice = Dice(3);
    for name in ["left.parquet", "right.parquet"] {
        let rows: Vec<Row> = (0..300)
            .map(|_| {
                let user = dice.below(12) as i64;
                Row::some(Some(user), Some(dice.below(4) as i64), &mut dice)
            })
            .collect();
        write(&room, name, &rows);
    }
    let tables = room.tables(
        "[dataset.people]\nsource = \"left.parquet\"\nunit.user = \"user_id\"\nunit.protect = \"user\"\n\
         unit.caps = { rows_per_user = 3, groups = 2 }\ncolumns.n = { bounds = [0, 10] }\n\
         [dataset.orders]\nsource = \"right.parquet\"\nunit.user = \"orders.user_id -> people.user_id\"\n\
         unit.protect = \"user\"\nunit.caps = { rows_per_user = 20, groups = 4 }\ncolumns.n = { bounds = [0, 10] }\n",
    );
    let planned = |sql: &str| {
        let (plan, parts) = exact(&tables, sql);
        let part = &plan.parts[0];
        let moved: Vec<Vec<Sensitivity>> = part.measures.iter().map(|measure| measure.moved.clone()).collect();
        let found: Vec<_> = parts.into_iter().map(|part| (part.keys, part.measures, part.presence)).collect();
        (format!("{found:?}"), moved, part.rows_in_all, part.groups_per_unit)
    };
    for (what, groups) in [
        ("COUNT(*), SUM(a.n), SUM(b.n), AVG(a.n)", ""),
        ("a.tag, COUNT(*)", "GROUP BY a.tag"),
        ("b.tag, COUNT(*)", "GROUP BY b.tag"),
    ] {
        let one = planned(&format!("SELECT {what} FROM people a JOIN orders b ON a.user_id = b.user_id {groups}"));
        assert_eq!(one.2, Some(60), "three rows, each with twenty");
        for from in [
            "orders b JOIN people a ON a.user_id = b.user_id",
            "orders b JOIN people a ON b.user_id = a.user_id",
            "people a, orders b WHERE b.user_id = a.user_id",
            "orders b, people a WHERE b.user_id = a.user_id",
            "orders b CROSS JOIN people a WHERE b.user_id = a.user_id",
        ] {
            assert_eq!(planned(&format!("SELECT {what} FROM {from} {groups}")), one, "{what} FROM {from}");
        }
    }
    // Who has a cap on groups for the key's own table gets that one.
    let groups = |key: &str| {
        planned(&format!("SELECT {key}, COUNT(*) FROM people a JOIN orders b ON a.user_id = b.user_id GROUP BY {key}"))
            .3
    };
    assert_eq!((groups("a.tag"), groups("b.tag"), groups("a.tag || b.tag")), (Some(2), Some(4), Some(8)));
    // The rows of both tables, whichever is named first.
    let union = |a: &str, b: &str| {
        planned(&format!(
            "SELECT COUNT(*), SUM(n) FROM (SELECT user_id, n FROM {a} UNION ALL SELECT user_id, n FROM {b})"
        ))
    };
    assert_eq!(union("people", "orders"), union("orders", "people"));
    assert_eq!(union("people", "orders").2, Some(23));
}

/// `FROM a, b WHERE a.k = b.k` costs what `a JOIN b ON a.k = b.k` does, in whichever order tables and conditions stand.
#[test]
fn a_comma_is_priced_as_the_join_that_its_equalities_make() {
    let room = Room::new("caps_comma");
    write_public(&room);
    write(&room, "t.parquet", &any_rows(14, &mut Dice(8)));
    let tables = room.tables(
        "[dataset.regions]\nsource = \"regions.csv\"\npublic = true\n[dataset.seasons]\nsource = \"seasons.csv\"\npublic = true\n\
         [dataset.t]\nsource = \"t.parquet\"\nunit.protect = \"event\"\ncolumns.x = { bounds = [-2, 6] }\n",
    );
    let planned = |sql: &str| {
        let (plan, parts) = exact(&tables, sql);
        let moved: Vec<_> = plan.parts[0].measures.iter().map(|measure| measure.moved.clone()).collect();
        (moved, parts[0].measures.clone())
    };
    let one = planned("SELECT COUNT(*), SUM(x) FROM t JOIN regions ON t.shop = regions.shop");
    assert!(one.1[0][0] > 0);
    for from in [
        "t, regions WHERE t.shop = regions.shop",
        "regions, t WHERE t.shop = regions.shop",
        "t CROSS JOIN regions WHERE regions.shop = t.shop AND true",
        "(SELECT * FROM t) t, regions r WHERE r.shop = t.shop",
    ] {
        assert_eq!(planned(&format!("SELECT COUNT(*), SUM(x) FROM {from}")), one, "{from}");
    }
    let one = planned(
        "SELECT COUNT(*), SUM(x) FROM t JOIN regions ON t.shop = regions.shop JOIN seasons ON t.day = seasons.day WHERE season = 'cold' AND x > -1",
    );
    for from in [
        "t, regions r, seasons s WHERE t.shop = r.shop AND t.day = s.day AND season = 'cold' AND x > -1",
        "regions r, seasons s, t WHERE x > -1 AND t.day = s.day AND season = 'cold' AND r.shop = t.shop",
        "seasons s CROSS JOIN regions r JOIN t ON t.day = s.day AND r.shop = t.shop WHERE season = 'cold' AND x > -1",
        "(SELECT r.region, s.season, x FROM regions r, seasons s, t WHERE t.day = s.day AND r.shop = t.shop) WHERE season = 'cold' AND x > -1",
    ] {
        assert_eq!(planned(&format!("SELECT COUNT(*), SUM(x) FROM {from}")), one, "{from}");
    }
    // Without an equality it is all pairs, and of another type it stays what it was.
    assert_eq!(moved(&tables, "SELECT COUNT(*) FROM t, regions", &Asking::default())[0].l1, 5.0);
    assert_eq!(moved(&tables, "SELECT COUNT(*) FROM t, regions r WHERE t.day = r.shop", &Asking::default())[0].l1, 5.0);
    // A question's columns stand where they stood.
    let (_, parts) = exact(
        &tables,
        "SELECT region, season, COUNT(*) FROM (SELECT * FROM regions r, seasons s, t WHERE t.day = s.day AND r.shop = t.shop) GROUP BY region, season",
    );
    assert!(
        parts[0]
            .keys
            .iter()
            .all(|key| matches!(&key[0], Value::Text(region) if ["east", "west", "north"].contains(&region.as_str())))
    );
}

/// What caps cut is said in words, from a small share of the price, and columns say that their intervals are about what is left.
#[test]
fn an_answer_says_how_much_its_caps_left_out() {
    let room = Room::new("caps_noted");
    let rows: Vec<Row> = (0..60_000).map(|i| row(i / 20, i % 20, 1)).collect();
    write(&room, "t.parquet", &rows);
    let budget = "budget.user = { epsilon = 1000.0, delta = 1e-5 }";
    let tables = room
        .tables(&declare("unit.caps = { groups = 5, rows_per_group = 1 }", &format!("{}\n{budget}", twenty_days())));
    let asking = Asking { epsilon: Some(1.0), delta: Some(1e-6), ..Asking::default() };
    let sql = "SELECT day, COUNT(*) AS n, SUM(n) AS s FROM t GROUP BY day";
    let answer = whit_query::ask(&tables, sql, &asking, &mut room.books(), "tester").unwrap();
    let flags: Vec<bool> = answer.columns.iter().map(|column| column.after_caps).collect();
    assert_eq!(flags, [false, true, true]);
    let notes = answer.statement.notes.join("\n");
    assert!(
        notes.contains("of more than 5 groups of one user, 5 are kept, chosen by chance, so one in all 20 keeps 25 %"),
        "{notes}"
    );
    assert!(notes.contains("do not include what they leave out"), "{notes}");
    let note =
        notes.lines().find(|line| line.contains("were left out by `groups = 5`")).unwrap_or_else(|| panic!("{notes}"));
    // A lower bound, and its lower end.
    let least: f64 = note.strip_prefix("at least about ").unwrap().split(' ').next().unwrap().parse().unwrap();
    assert!((60.0..=77.0).contains(&least) && !note.contains("between"), "{note}");
    let json = serde_json::to_string(&answer.columns).unwrap();
    assert!(json.contains("\"after_caps\":true"), "{json}");
    let price = answer.statement.prices[0].epsilon;
    assert!(price <= 1.0 + 1e-6 && price > 0.99, "what is said is paid for within the price: {price}");

    // Nothing is said where nothing can be cut: one row of each user is left by the question itself.
    let whole = "SELECT COUNT(*), SUM(m) FROM (SELECT user_id, MAX(n) AS m FROM t GROUP BY user_id)";
    let plan = tables.plan(whole, &asking).unwrap();
    assert!(plan.parts[0].kept.is_none() && !plan.notes.iter().any(|note| note.contains("caps")), "{:?}", plan.notes);
}

/// A sum may be larger than the type that SQL gives it, and noise may take an unsigned one below zero. Neither is a reason to fail, once it is paid for.
#[test]
fn a_sum_that_leaves_its_type_is_answered() {
    use datafusion::arrow::array::{ArrayRef, Int64Array, RecordBatch, UInt64Array};
    let room = Room::new("caps_types");
    let columns: Vec<(&str, ArrayRef)> = vec![
        ("huge", std::sync::Arc::new(Int64Array::from(vec![i64::MAX; 40]))),
        ("none", std::sync::Arc::new(UInt64Array::from(vec![0; 40]))),
    ];
    let batch = RecordBatch::try_from_iter(columns).unwrap();
    let file = std::fs::File::create(room.path().join("t.parquet")).unwrap();
    let mut writer = datafusion::parquet::arrow::ArrowWriter::try_new(file, batch.schema(), None).unwrap();
    writer.write(&batch).unwrap();
    writer.close().unwrap();
    let tables = room.tables(
        "[dataset.t]\nsource = \"t.parquet\"\nunit.protect = \"event\"\nbudget.event = { epsilon = 1000.0, delta = 1e-5 }\n\
         columns.huge = { bounds = [0, 9e18] }\ncolumns.none = { bounds = [0, 9e18] }\n",
    );
    for i in 0..12 {
        let asking = Asking { epsilon: Some(1.0 + f64::from(i) / 100.0), delta: Some(1e-6), ..Asking::default() };
        let answer =
            whit_query::ask(&tables, "SELECT SUM(huge), SUM(none) FROM t", &asking, &mut room.books(), "tester");
        answer.unwrap_or_else(|error| panic!("{error:?}"));
    }
}

/// Groups of public columns are those that occur, also where no user keeps one within the cap.
#[test]
fn public_groups_that_nobody_keeps_still_show() {
    let room = Room::new("caps_observed");
    room.write("t.csv", "u,day,x\n1,1,5\n1,2,5\n1,3,5\n1,4,5\n2,1,3\n");
    let tables = room.tables(
        "[dataset.t]\nsource = \"t.csv\"\nunit.user = \"u\"\nunit.public = [\"u\", \"day\"]\nunit.protect = \"feature\"\n\
         unit.caps = { rows_per_user = 4, groups = 2 }\nbudget.feature = { epsilon = 100.0, delta = 1e-3 }\n\
         columns.u = \"int\"\ncolumns.day = \"int\"\ncolumns.x = { type = \"int\", bounds = [0, 10] }\n",
    );
    for sql in [
        "SELECT day, COUNT(*) AS n FROM t GROUP BY day ORDER BY day",
        "SELECT day, COUNT(*) AS n, SUM(x) AS s FROM t GROUP BY day ORDER BY day",
    ] {
        let answer = ask(&tables, &room, sql, &asking(1.0)).unwrap();
        let seen: Vec<String> =
            answer.rows.iter().map(|row| format!("{:?} {:?}", row[0].value, row[1].value)).collect();
        assert_eq!(seen, ["Int(1) Int(2)", "Int(2) Int(1)", "Int(3) Int(1)", "Int(4) Int(1)"], "{sql}");
    }
}

/// How many of twenty answers hold the truth, column by column; each is a question of its own, which chooses anew what units keep. Correct 95 % intervals
/// hold fewer than 13 once in 10⁷ tries.
fn held(tables: &Tables, room: &Room, sql: &str, asking: &Asking, truths: &[&[f64]]) -> Vec<usize> {
    let mut held = vec![0; truths.iter().map(|truths| truths.len()).sum()];
    for other in 1..=20 {
        let sql = sql.replace("FROM t", &format!("FROM t WHERE user_id <> -{other}"));
        let answer = ask(tables, room, &sql, asking).unwrap_or_else(|error| panic!("{sql}: {error:?}"));
        assert_eq!(answer.rows.len(), truths.len());
        let cells = answer.rows.iter().zip(truths).flat_map(|(row, truths)| {
            let skip = row.len() - truths.len();
            row.iter().skip(skip).zip(truths.iter())
        });
        for (held, (cell, truth)) in held.iter_mut().zip(cells) {
            let (low, high) = (cell.low.unwrap(), cell.high.unwrap());
            *held += usize::from(low - 1e-9 <= *truth && *truth <= high + 1e-9);
        }
    }
    held
}

/// 4,000 users with three rows, of which two count: each row counts for two thirds. Were sums and counts rounded to whole numbers user by user, they
/// would be off by 30 where the noise is 1; and an interval that ends in whole numbers holds a fraction.
#[test]
fn sums_and_counts_of_rows_that_count_for_less_hold_the_truth() {
    let room = Room::new("caps_sums");
    let mut text = String::from("user_id,g,n\n");
    for user in 0..4000 {
        for i in 0..3 {
            let _ = writeln!(text, "{user},{},{}", ["a", "b", "c"][i], i32::from(i == 0));
        }
    }
    room.write("t.csv", &text);
    let declared = |protect: &str, caps: &str| {
        format!(
            "[dataset.t]\nsource = \"t.csv\"\nbudget.user = {{ epsilon = 5000.0, delta = 1e-5 }}\nunit.user = \"user_id\"\nunit.protect = \"{protect}\"\nunit.change = \"add-remove\"\nunit.caps = {{ {caps} }}\n\
             columns.user_id = \"int\"\ncolumns.g = {{ type = \"text\", keys = [\"a\", \"b\", \"c\"] }}\ncolumns.n = {{ type = \"int\", bounds = [0, 1] }}\n"
        )
    };
    let tables = room.tables(&declared("user", "rows_per_user = 2"));
    let third = 4000.0 * 2.0 / 3.0;
    for epsilon in [5.0, 50.0] {
        let asking = Asking { epsilon: Some(epsilon), delta: Some(0.0), ..Asking::default() };
        let sql = "SELECT SUM(n), COUNT(*) FILTER (WHERE n = 1), AVG(n), COUNT(*) FROM t";
        let found = held(&tables, &room, sql, &asking, &[&[third, third, 1.0 / 3.0, 8000.0]]);
        assert!(found.iter().all(|held| *held >= 13), "ε = {epsilon}: {found:?} of 20 held");
    }
    // Four rows in two groups, of which three count: groups share them.
    let mut text = String::from("user_id,g,n\n");
    for row in 0..16_000 {
        let _ = writeln!(text, "{},{},{}", row / 4, ["a", "b"][row % 2], 1 - row % 2);
    }
    room.write("t.csv", &text);
    let tables = room.tables(&declared("user", "rows_per_user = 3").replace(", \"c\"", ""));
    let asking = Asking { epsilon: Some(5.0), delta: Some(0.0), ..Asking::default() };
    let found = held(
        &tables,
        &room,
        "SELECT g, COUNT(*), SUM(n), AVG(n) FROM t GROUP BY g",
        &asking,
        &[&[6000.0, 6000.0, 1.0], &[6000.0, 0.0, 0.0]],
    );
    assert!(found.iter().all(|held| *held >= 13), "by group: {found:?} of 20 held");
}

/// What a public table makes of one row is priced, and not cut: 1,000 users with three rows, as many as may be, of which each meets two others.
#[test]
fn a_join_with_a_public_table_cuts_nobody_who_is_within_a_cap() {
    let room = Room::new("caps_joined");
    let mut text = String::from("user_id,g\n");
    for row in 0..3000 {
        let _ = writeln!(text, "{},{}", row / 3, ["a", "b"][row % 2]);
    }
    room.write("t.csv", &text);
    room.write("k.csv", "g,name\na,1\na,2\nb,3\nb,4\n");
    let tables = room.tables(
        "[dataset.t]\nsource = \"t.csv\"\nunit.user = \"user_id\"\nunit.protect = \"user\"\nunit.change = \"add-remove\"\nunit.caps = { rows_per_user = 3 }\n\
         columns.user_id = \"int\"\ncolumns.g = \"text\"\n[dataset.k]\nsource = \"k.csv\"\npublic = true\ncolumns.g = \"text\"\ncolumns.name = \"int\"\n",
    );
    let (plan, parts) = exact(&tables, "SELECT COUNT(*) FROM t JOIN k ON t.g = k.g");
    assert_eq!(parts[0].measures[0], [6000]);
    assert_eq!(plan.parts[0].measures[0].moved[0].l1, 6.0);
}

/// An element has no more rows than its user may have: what is declared of users is not passed over.
#[test]
fn a_cap_on_users_rows_holds_for_their_elements() {
    let room = Room::new("caps_of_elements");
    let rows: Vec<Row> = (0..6000).map(|i| row(i / 60, i % 3, 1)).collect();
    write(&room, "t.parquet", &rows);
    let declared = "[dataset.t]\nsource = \"t.parquet\"\nunit.user = \"user_id\"\nunit.element = \"day\"\nunit.protect = \"element\"\n\
                    unit.caps = { elements_per_user = 5, rows_per_element = 24, rows_per_user = 10 }\n";
    let (plan, parts) = exact(&room.tables(declared), "SELECT COUNT(*) FROM t");
    assert_eq!((plan.parts[0].rows_per_group, &parts[0].measures[0][..]), (Some(10), &[3000][..]));
}

/// 1,000 users with three rows each, which is their cap: a join or a union that makes two rows of one leaves all of them, and an event moves as many as it has become.
#[test]
fn a_cap_on_the_rows_of_a_user_goes_by_rows_of_the_source_where_each_stands_for_itself() {
    for change in ["replace", "add-remove"] {
        let room = Room::new(&format!("caps_copies_{change}"));
        let mut rows = String::from("user_id,site,x\n");
        for i in 0..3000 {
            let _ = writeln!(rows, "{},a,1", i / 3);
        }
        room.write("v.csv", &rows);
        room.write("p.csv", "site,word\na,one\na,two\n");
        let tables = room.tables(&format!(
            "[dataset.v]\nsource = \"v.csv\"\nunit.user = \"user_id\"\nunit.protect = \"event\"\nunit.change = \"{change}\"\n\
             unit.caps = {{ rows_per_user = 3 }}\ncolumns.user_id = \"int\"\ncolumns.site = \"text\"\n\
             columns.x = {{ type = \"int\", bounds = [0, 1] }}\nbudget.event = {{ epsilon = 10000.0, delta = 1e-5 }}\n\
             [dataset.p]\nsource = \"p.csv\"\npublic = true\n"
        ));
        for (sql, copies) in [
            ("SELECT COUNT(*) FROM v", 1.0),
            ("SELECT COUNT(*) FROM v JOIN p ON v.site = p.site", 2.0),
            ("SELECT COUNT(*) FROM (SELECT x FROM v UNION ALL SELECT x FROM v) t", 2.0),
        ] {
            let answer = ask(&tables, &room, sql, &asking(500.0)).unwrap();
            assert!((number(&answer.rows[0][0].value) - 3000.0 * copies).abs() < 3.0, "{sql}: {:?}", answer.rows);
            // What a user moves is what three events move, with all that each became.
            let plan = tables.plan(sql, &Asking::default()).unwrap();
            let measure = &plan.parts[0].measures[0];
            let user = measure.moved.last().unwrap().l1 / parts_of(measure);
            assert!(user >= 3.0 * copies, "{sql}: {user}");
        }
    }
}

/// 2,000 users with two rows in a listed group and two in others, of which two are kept: the listed group is left half of its rows. Were rows outside of the list left out first, it
/// would have all of them. A fair choice fails once in 10⁹ runs (Hoeffding).
#[test]
fn rows_outside_of_listed_keys_are_chosen_among_like_others() {
    let room = Room::new("caps_listed");
    let rows: Vec<Row> = (0..8000).map(|i| row(i / 4, 7 * (i % 2), i)).collect();
    write(&room, "t.parquet", &rows);
    let tables = room.tables(
        "[dataset.t]\nsource = \"t.parquet\"\nunit.user = \"user_id\"\nunit.protect = \"event\"\nunit.caps = { rows_per_user = 2 }\n\
         columns.day = { keys = [\"0\"] }\ncolumns.n = { bounds = [0, 8000] }\n",
    );
    let (plan, parts) = exact(&tables, "SELECT day, COUNT(*), SUM(n), MEDIAN(n) FROM t GROUP BY day");
    assert!(plan.parts[0].measures.len() >= 3);
    let (kept, tolerance) = (parts[0].measures[0][0] as f64, 2000.0 * ((2.0e9_f64).ln() / 1000.0).sqrt());
    assert!((kept - 2000.0).abs() < tolerance, "{kept} rows of 4,000");
    // No value is missing, so that all measures are of as many rows.
    let (_, parts) = exact(&tables, "SELECT COUNT(*), COUNT(n) FROM t");
    assert_eq!(
        parts[0].measures.iter().map(|measure| measure[0]).collect::<Vec<_>>(),
        vec![4000; parts[0].measures.len()]
    );
}
