//! Questions as people ask them.

use crate::room::{Room, ask, asking, visits};
use whit_account::ledger::Register as _;
use whit_query::{Role, Value};

/// The visits of [`visits`], by user.
pub(crate) const USER: &str = r#"
[dataset.visits]
source = "visits.csv"
unit.user = "user_id"
unit.protect = "user"
unit.caps = { rows_per_user = 8 }
columns.user_id = "int"
columns.seconds = { type = "int", bounds = [0, 600] }
columns.shop = { type = "text", keys = ["north", "south", "east", "west", "moon"] }
columns.country = "text"
columns.day = "int"
budget.user = { epsilon = 1000.0, delta = 1e-5 }
"#;

pub(crate) fn number(value: &Value) -> f64 {
    match value {
        Value::Int(value) => *value as f64,
        Value::Float(value) => *value,
        other => panic!("{other:?} is no number"),
    }
}

/// Rows of the made-up table: user, shop, day, seconds.
fn rows() -> Vec<(u64, String, u64, f64)> {
    visits()
        .lines()
        .skip(1)
        .map(|line| {
            let cells: Vec<&str> = line.split(',').collect();
            (cells[0].parse().unwrap(), cells[1].to_owned(), cells[2].parse().unwrap(), cells[3].parse().unwrap())
        })
        .collect()
}

#[test]
fn listed_groups_all_appear_and_their_values_are_near_the_truth() {
    let room = Room::new("listed_groups");
    room.write("visits.csv", &visits());
    let tables = room.tables(USER);
    let answer = ask(&tables, &room, "SELECT shop, COUNT(*) AS n, SUM(seconds) AS s, AVG(seconds) AS mean, COUNT(DISTINCT user_id) AS users FROM visits GROUP BY shop ORDER BY shop", &asking(200.0)).unwrap();
    assert_eq!(answer.columns.iter().map(|c| c.name.as_str()).collect::<Vec<_>>(), ["shop", "n", "s", "mean", "users"]);
    assert_eq!(answer.columns[0].role, Role::Key);
    assert_eq!(answer.rows.len(), 5, "also the shop where nobody was");
    for row in &answer.rows {
        let Value::Text(shop) = &row[0].value else { panic!("{row:?}") };
        let own: Vec<_> = rows().into_iter().filter(|r| r.1 == *shop).collect();
        let users: std::collections::BTreeSet<u64> = own.iter().map(|r| r.0).collect();
        let (n, s) = (own.len() as f64, own.iter().map(|r| r.3).sum::<f64>());
        let truth = [n, s, if n > 0.0 { s / n } else { 300.0 }, users.len() as f64];
        for (cell, truth) in row[1..].iter().zip(truth) {
            let width = cell.high.unwrap() - cell.low.unwrap();
            assert!((number(&cell.value) - truth).abs() <= 3.0 * width + 1e-9, "{shop}: {cell:?} and {truth}");
        }
    }
    assert_eq!(answer.statement.prices.len(), 1);
    let price = &answer.statement.prices[0];
    assert!(price.epsilon <= 200.0 * (1.0 + 1e-6) && price.epsilon > 190.0, "{price:?}");
}

#[test]
fn asking_again_is_free_also_in_other_words() {
    let room = Room::new("again_is_free");
    room.write("visits.csv", &visits());
    let tables = room.tables(USER);
    let first = ask(
        &tables,
        &room,
        "SELECT shop, COUNT(*) AS n FROM visits WHERE seconds > 100 AND day < 5 GROUP BY shop",
        &asking(1.0),
    )
    .unwrap();
    let again = ask(&tables, &room, "select v.shop as s, count(1) c from visits v where v.day < 5 and 100 < v.seconds group by v.shop order by 2 limit 3", &asking(1.0)).unwrap();
    assert!(!first.statement.stored && again.statement.stored, "{:?}", again.statement);
    assert_eq!((again.rows.len(), again.columns[0].name.as_str()), (3, "s"));
    for row in &again.rows {
        assert!(first.rows.iter().any(|other| other[0].value == row[0].value && other[1].value == row[1].value));
    }
    let other = ask(
        &tables,
        &room,
        "SELECT shop, COUNT(*) AS n FROM visits WHERE seconds > 101 AND day < 5 GROUP BY shop",
        &asking(1.0),
    )
    .unwrap();
    assert!(!other.statement.stored);
    assert_eq!(room.books().verify().unwrap().entries, 2);
}

#[test]
fn the_order_of_columns_and_the_names_of_tables_are_not_the_question() {
    let room = Room::new("other_order");
    room.write("visits.csv", &visits());
    room.write("shops.csv", "shop,region\nnorth,cold\nsouth,warm\neast,warm\nwest,cold\n");
    let public = "[dataset.shops]\nsource = \"shops.csv\"\npublic = true\n";
    let tables = room.tables(&format!(
        "{}{public}",
        USER.replace("columns.day = \"int\"", "columns.day = { type = \"int\", keys = [1, 2] }")
    ));
    let stored = |sql: &str| ask(&tables, &room, sql, &asking(1.0)).map(|answer| (answer.statement.stored, answer));
    let (first, by_shop) =
        stored("SELECT shop, day, COUNT(*) AS n, SUM(seconds) FROM visits GROUP BY shop, day").unwrap();
    let (again, by_day) =
        stored("SELECT SUM(seconds) AS s, COUNT(*), day, shop FROM visits GROUP BY day, shop").unwrap();
    assert!(!first && again);
    let names = |answer: &whit_query::Answer| answer.columns.iter().map(|c| c.name.clone()).collect::<Vec<_>>();
    assert_eq!(
        (names(&by_shop), names(&by_day)),
        (
            ["shop", "day", "n", "SUM(seconds)"].map(str::to_owned).to_vec(),
            ["s", "COUNT(*)", "day", "shop"].map(str::to_owned).to_vec(),
        )
    );
    for row in &by_day.rows {
        let same = by_shop.rows.iter().find(|other| other[0] == row[3] && other[1] == row[2]).unwrap();
        assert_eq!((&row[0], &row[1]), (&same[3], &same[2]), "values, intervals and all");
    }
    for (sql, again) in [
        ("SELECT region, COUNT(*) FROM visits JOIN shops ON visits.shop = shops.shop GROUP BY region", false),
        ("SELECT s.region, COUNT(*) FROM visits v JOIN shops s ON v.shop = s.shop GROUP BY s.region", true),
        ("SELECT s.region, COUNT(*) FROM visits AS shops JOIN shops s ON shops.shop = s.shop GROUP BY 1", true),
        ("SELECT COUNT(*) FROM visits v JOIN shops s ON v.shop = s.shop", false),
        ("SELECT COUNT(*) FROM visits v JOIN shops s ON v.shop IS NOT DISTINCT FROM s.shop", false),
        (
            "SELECT COUNT(*) FROM visits WHERE day > (SELECT MAX(column1) FROM (VALUES (0),(0),(0),(0),(0),(3)) t)",
            false,
        ),
        (
            "SELECT COUNT(*) FROM visits WHERE day > (SELECT MAX(column1) FROM (VALUES (0),(0),(0),(0),(0),(5)) t)",
            false,
        ),
        ("SELECT COUNT(*) FROM visits WHERE shop IN (SELECT shop FROM shops WHERE region = 'cold')", false),
        ("SELECT COUNT(*) FROM visits v WHERE v.shop IN (SELECT shop FROM shops WHERE region = 'cold')", true),
        ("SELECT COUNT(*) FROM visits a JOIN visits b ON a.user_id = b.user_id WHERE a.day < 3", false),
        ("SELECT COUNT(*) FROM visits x JOIN visits y ON x.user_id = y.user_id WHERE x.day < 3", true),
        ("SELECT COUNT(*) FROM visits b JOIN visits a ON a.user_id = b.user_id WHERE a.day < 3", false),
        (
            "SELECT region, COUNT(*) FROM visits JOIN shops ON visits.shop = shops.shop AND region = 'cold' GROUP BY region",
            false,
        ),
    ] {
        assert_eq!(stored(sql).unwrap().0, again, "{sql}");
    }
}

/// Whoever has all rows but one could guess the last by the fingerprint of the data.
#[test]
fn the_fingerprint_of_the_data_never_leaves() {
    let room = Room::new("fingerprint");
    room.write("visits.csv", &visits());
    let answer = ask(&room.tables(USER), &room, "SELECT COUNT(*) FROM visits", &asking(1.0)).unwrap();
    let entry = room.books().entries(&whit_account::ledger::Which::default()).unwrap().remove(0);
    assert!(answer.statement.entry == Some(entry.number) && entry.fingerprint.starts_with("keyed:"), "{entry:?}");
    assert!(!serde_json::to_string(&answer).unwrap().contains(&entry.fingerprint));
    // The same data under another ledger has another: nobody can guess at it who has not this ledger.
    let other = Room::new("fingerprint_again");
    other.write("visits.csv", &visits());
    ask(&other.tables(USER), &other, "SELECT COUNT(*) FROM visits", &asking(1.0)).unwrap();
    let others = other.books().entries(&whit_account::ledger::Which::default()).unwrap().remove(0);
    assert_ne!(others.fingerprint, entry.fingerprint);
}

#[test]
fn questions_that_differ_far_down_a_list_are_two() {
    let room = Room::new("long_lists");
    room.write("visits.csv", &visits());
    let tables = room.tables(USER);
    let sql = |last: u32| {
        format!(
            "SELECT COUNT(*) FROM visits JOIN (VALUES (1), (2), (3), (4), (5), (6), ({last})) v(d) ON visits.day = v.d"
        )
    };
    for (last, stored) in [(7, false), (8, false), (7, true)] {
        assert_eq!(ask(&tables, &room, &sql(last), &asking(1.0)).unwrap().statement.stored, stored, "{last}");
    }
}

/// Rows of a union whose parts are aggregates: hidden columns stand between keys and sums there.
#[test]
fn a_union_of_aggregates_adds_up_what_it_shows() {
    let room = Room::new("union_of_aggregates");
    room.write("visits.csv", &visits());
    let tables = room.tables(USER);
    let part = "(SELECT user_id, COUNT(*) AS n FROM visits GROUP BY user_id)";
    let sql = format!("SELECT SUM(clamp(n, 0, 8)) AS n FROM ({part} UNION ALL {part}) q");
    let answer = ask(&tables, &room, &sql, &asking(100.0)).unwrap();
    let (found, truth) = (number(&answer.rows[0][0].value), 2.0 * rows().len() as f64);
    assert!((found - truth).abs() < 0.05 * truth, "{found} and {truth}");
}

#[test]
fn private_keys_show_only_where_many_have_them() {
    let room = Room::new("private_keys");
    let mut text = visits();
    text.push_str("999,secret,1,1,at\n");
    room.write("visits.csv", &text);
    let tables = room.tables(&USER.replace(", keys = [\"north\", \"south\", \"east\", \"west\", \"moon\"]", ""));
    let answer = ask(&tables, &room, "SELECT shop, COUNT(*) AS n FROM visits GROUP BY shop", &asking(3.0)).unwrap();
    let shown: Vec<&Value> = answer.rows.iter().map(|row| &row[0].value).collect();
    assert!(!shown.contains(&&Value::Text("secret".to_owned())), "{shown:?}");
    assert_eq!(shown.len(), 4, "{shown:?} {:?}", answer.statement);
}

#[test]
fn medians_and_extremes_lie_where_they_should() {
    let room = Room::new("medians");
    room.write("visits.csv", &visits());
    let tables = room.tables(USER);
    let answer = ask(&tables, &room, "SELECT MEDIAN(seconds) AS m, APPROX_PERCENTILE_CONT(seconds, 0.9) AS p, MIN(seconds) AS lo, MAX(seconds) AS hi, STDDEV(seconds) AS sd FROM visits", &asking(50.0)).unwrap();
    let values: Vec<f64> = answer.rows[0].iter().map(|cell| number(&cell.value)).collect();
    assert!((250.0..350.0).contains(&values[0]) && (480.0..600.0).contains(&values[1]), "{values:?}");
    assert!(values[2] < 60.0 && values[3] > 540.0, "{values:?}");
    assert!((150.0..200.0).contains(&values[4]), "{values:?}");
}

#[test]
fn expressions_of_noisy_values_get_intervals_and_having_works_on_what_was_released() {
    let room = Room::new("expressions");
    room.write("visits.csv", &visits());
    let tables = room.tables(USER);
    let answer = ask(&tables, &room, "SELECT upper(shop) AS place, SUM(seconds) / 60.0 AS minutes, SUM(seconds) / COUNT(*) AS each_one FROM visits GROUP BY shop HAVING COUNT(*) > 100 ORDER BY place", &asking(50.0)).unwrap();
    assert_eq!(answer.rows.len(), 4, "{:?}", answer.rows);
    assert_eq!(answer.rows[0][0].value, Value::Text("EAST".to_owned()));
    for row in &answer.rows {
        for cell in &row[1..] {
            let (low, high) = (cell.low.unwrap(), cell.high.unwrap());
            assert!(low < number(&cell.value) && number(&cell.value) < high, "{cell:?}");
        }
    }
}

#[test]
fn what_cannot_be_made_private_is_refused_with_the_reason_and_the_place() {
    let room = Room::new("refusals");
    room.write("visits.csv", &visits());
    room.write("shops.csv", "shop,region\nnorth,cold\nsouth,warm\n");
    let tables = room.tables(&format!("{USER}\n[dataset.shops]\nsource = \"shops.csv\"\npublic = true\n"));
    for (sql, part) in [
        ("SELECT * FROM visits", "the rows of `visits` themselves"),
        ("SELECT user_id, COUNT(*) FROM visits GROUP BY user_id", "makes a row of each user"),
        ("SELECT SUM(day) FROM visits", "no finite sensitivity"),
        ("SELECT COUNT(*) FROM (SELECT * FROM visits LIMIT 5)", "LIMIT"),
        ("SELECT COUNT(*) FROM visits a JOIN visits b ON a.shop = b.shop", "not joined along the user"),
        ("SELECT COUNT(*) FROM visits WHERE random() < 0.5", "`random()"),
        ("SELECT COUNT(*) FROM visits WHERE secnds > 5", "no column `secnds`"),
        ("SELECT COUNT(*) FROM vists", "no table `vists`"),
        ("SELECT array_agg(shop) FROM visits", "`array_agg` has no private form"),
        ("SELECT COUNT(*) FROM visits WHERE seconds > (SELECT AVG(seconds) FROM visits)", "sub-query"),
        ("DELETE FROM visits", "only questions"),
        // Ways round the plan: each of these once read private rows for nothing, or more of one user than was priced.
        ("SELECT MAX(x) FROM (SELECT (SELECT MAX(seconds) FROM visits WHERE user_id = 1) AS x) q", "sub-query"),
        ("SELECT DISTINCT shop FROM shops WHERE shop IN (SELECT shop FROM visits)", "sub-query"),
        ("SELECT shop FROM shops WHERE shop = ANY (SELECT shop FROM visits WHERE user_id = 1)", "sub-query"),
        (
            "SELECT COUNT(*) FROM (SELECT column1 AS k, column1 AS __whit_user FROM (VALUES (1), (2)) z) p JOIN visits ON p.k = visits.day",
            "names that begin with",
        ),
        ("SELECT COUNT(*) FROM visits JOIN (VALUES ('1'), ('01')) v(k) ON visits.day = v.k", "how they are compared"),
        ("SELECT COUNT(*) FROM visits JOIN (SELECT shop FROM shops LIMIT 2) s ON visits.shop = s.shop", "LIMIT"),
        (
            "SELECT COUNT(*) FROM (SELECT MAX(a.day) OVER (PARTITION BY b.user_id) AS m FROM visits a LEFT JOIN visits b ON a.user_id = b.user_id AND false) q",
            "several users",
        ),
        (
            "SELECT COUNT(*) FROM (SELECT COUNT(*) FILTER (WHERE seconds > (SELECT AVG(seconds) FROM visits)) OVER (PARTITION BY user_id) AS n FROM visits) q",
            "sub-query",
        ),
        (
            "SELECT COUNT(*) FROM visits WHERE CASE WHEN user_id = 1 THEN clamp(seconds, 2, 1) ELSE 1 END > 0",
            "constants that make sense",
        ),
        ("SELECT COUNT(*) FROM visits WHERE shop ~ shop", "is no constant"),
        ("SELECT COUNT(shop, day) FROM visits", "more than one argument"),
        ("SELECT MEDIAN(DISTINCT seconds) FROM visits", "DISTINCT"),
    ] {
        let error = ask(&tables, &room, sql, &asking(1.0)).unwrap_err();
        assert!(error.sentence.contains(part), "{sql}: {}", error.sentence);
        assert!(error.hint.is_some(), "{sql}");
    }
    assert_eq!(room.books().verify().unwrap().entries, 0, "nothing is charged for what is refused");
}

#[test]
fn subqueries_unions_joins_and_windows_keep_the_user() {
    let room = Room::new("subqueries");
    room.write("visits.csv", &visits());
    room.write("shops.csv", "shop,region\nnorth,cold\nsouth,warm\neast,warm\nwest,cold\n");
    let tables = room.tables(&format!("{USER}\n[dataset.shops]\nsource = \"shops.csv\"\npublic = true\n"));
    let truth = rows().len() as f64;
    for (sql, expected) in [
        ("SELECT AVG(clamp(c, 0, 8)) FROM (SELECT user_id, COUNT(*) AS c FROM visits GROUP BY user_id)", truth / 300.0),
        (
            "WITH v AS (SELECT * FROM visits WHERE day < 5) SELECT COUNT(*) FROM v",
            rows().iter().filter(|r| r.2 < 5).count() as f64,
        ),
        ("SELECT COUNT(*) FROM (SELECT user_id FROM visits UNION ALL SELECT user_id FROM visits)", 2.0 * truth),
        (
            "SELECT COUNT(*) FROM visits JOIN shops ON visits.shop = shops.shop WHERE region = 'warm'",
            rows().iter().filter(|r| r.1 == "south" || r.1 == "east").count() as f64,
        ),
        (
            "SELECT COUNT(*) FROM (SELECT *, row_number() OVER (PARTITION BY user_id ORDER BY day) AS k FROM visits) WHERE k = 1",
            300.0,
        ),
        (
            "SELECT COUNT(DISTINCT a.user_id) FROM visits a JOIN visits b ON a.user_id = b.user_id AND a.day = b.day",
            300.0,
        ),
        ("SELECT COUNT(*) FROM (SELECT DISTINCT user_id, shop FROM visits)", {
            let s: std::collections::BTreeSet<_> = rows().into_iter().map(|r| (r.0, r.1)).collect();
            s.len() as f64
        }),
    ] {
        let answer = whit_query::ask(
            &tables,
            sql,
            &whit_query::plan::Asking { rows: Some(16), ..asking(100.0) },
            &mut room.books(),
            "tester",
        )
        .unwrap_or_else(|error| panic!("{sql}: {error:?}"));
        let cell = &answer.rows[0][0];
        let width = cell.high.unwrap() - cell.low.unwrap();
        assert!((number(&cell.value) - expected).abs() <= 2.0 * width + 0.05, "{sql}: {cell:?} and {expected}");
    }
    let answer = ask(
        &tables,
        &room,
        "SELECT region, COUNT(*) FROM visits JOIN shops ON visits.shop = shops.shop GROUP BY region",
        &asking(5.0),
    )
    .unwrap();
    assert_eq!(answer.rows.len(), 2, "keys of a public table are public");
    assert!(answer.statement.mechanisms.iter().all(|line| !line.starts_with("keys")));
}

#[test]
fn a_question_beyond_the_budget_is_refused_with_what_fits() {
    let room = Room::new("budget");
    room.write("visits.csv", &visits());
    let tables = room.tables(&USER.replace("epsilon = 1000.0", "epsilon = 1.0"));
    ask(&tables, &room, "SELECT COUNT(*) FROM visits", &asking(0.5)).unwrap();
    let error = ask(&tables, &room, "SELECT SUM(seconds) FROM visits", &asking(3.0)).unwrap_err();
    assert_eq!(error.fault, whit_query::Fault::Refused);
    assert!(error.hint.as_ref().unwrap().contains("asking.epsilon"), "{error:?}");
    let fits: f64 =
        error.hint.unwrap().split("asking.epsilon = ").nth(1).unwrap().split('`').next().unwrap().parse().unwrap();
    ask(&tables, &room, "SELECT SUM(seconds) FROM visits", &asking(fits))
        .unwrap_or_else(|error| panic!("{fits}: {error:?}"));
}

#[test]
fn feature_units_get_public_statistics_exactly_and_for_free() {
    let room = Room::new("features");
    room.write("visits.csv", &visits());
    let tables = room.tables(
        r#"
[dataset.visits]
source = "visits.csv"
unit.public = ["shop", "day", "country"]
unit.protect = "feature"
columns.shop = "text"
columns.day = "int"
columns.country = "text"
columns.seconds = { type = "int", bounds = [0, 600] }
budget.feature = { epsilon = 10.0, delta = 1e-6 }
"#,
    );
    let answer = ask(
        &tables,
        &room,
        "SELECT shop, COUNT(*) AS n, AVG(seconds) AS mean FROM visits WHERE day < 5 GROUP BY shop ORDER BY shop",
        &asking(2.0),
    )
    .unwrap();
    assert_eq!(answer.columns.iter().map(|c| c.role).collect::<Vec<_>>(), [Role::Key, Role::Exact, Role::Noisy]);
    for row in &answer.rows {
        let Value::Text(shop) = &row[0].value else { panic!() };
        let own = rows().into_iter().filter(|r| r.1 == *shop && r.2 < 5).count();
        assert_eq!(row[1].value, Value::Int(own as i64));
        assert!((number(&row[2].value) - 300.0).abs() < 60.0);
    }
    let free = ask(&tables, &room, "SELECT country, COUNT(*) FROM visits GROUP BY country", &asking(1.0)).unwrap();
    assert!(free.statement.prices.is_empty() && free.statement.entry.is_none(), "{:?}", free.statement);
    assert_eq!(room.books().verify().unwrap().entries, 1);
    // In which order public values stand may follow what is private next to them, so what would show it is refused.
    for sql in
        ["first_value(country ORDER BY day)", "string_agg(country, ',')", "array_agg(country)", "nth_value(country, 2)"]
    {
        let refused = ask(&tables, &room, &format!("SELECT {sql} FROM visits"), &asking(0.1)).unwrap_err();
        assert!(refused.sentence.contains("private"), "{sql}: {refused:?}");
    }
}

#[test]
fn bounds_can_be_found_privately() {
    let room = Room::new("auto");
    room.write("visits.csv", &visits());
    let tables = room.tables(&USER.replace("bounds = [0, 600]", "bounds = \"auto\""));
    let answer =
        ask(&tables, &room, "SELECT SUM(seconds) AS s, MEDIAN(seconds) AS m FROM visits", &asking(40.0)).unwrap();
    let truth: f64 = rows().iter().map(|r| r.3).sum();
    let found = number(&answer.rows[0][0].value);
    assert!((found - truth).abs() < 0.2 * truth, "{found} and {truth}: {:?}", answer.statement.notes);
    assert!(answer.statement.notes.iter().any(|note| note.contains("found privately")), "{:?}", answer.statement.notes);
}

#[test]
fn elements_and_events_have_their_ladders() {
    let declaration = |protect: &str, caps: &str| {
        format!(
            r#"
[dataset.visits]
source = "visits.csv"
unit.user = "user_id"
unit.element = "day"
unit.protect = "{protect}"
unit.caps = {{ {caps} }}
columns.user_id = "int"
columns.day = "int"
columns.seconds = {{ type = "int", bounds = [0, 600] }}
columns.shop = {{ type = "text", keys = ["north", "south", "east", "west"] }}
budget.{protect} = {{ epsilon = 100.0, delta = 1e-5 }}
"#
        )
    };
    for (protect, caps, rungs) in [
        ("event", "rows_per_element = 3, elements_per_user = 8", 3),
        ("event", "", 1),
        ("element", "rows_per_element = 3, elements_per_user = 8", 2),
        ("element", "rows_per_element = 3", 1),
        ("user", "rows_per_element = 3, elements_per_user = 8", 1),
    ] {
        let room = Room::new(&format!("ladders_{protect}_{}", caps.len()));
        room.write("visits.csv", &visits());
        let tables = room.tables(&declaration(protect, caps));
        let sql =
            "SELECT shop, COUNT(*) AS n, SUM(seconds) AS s, COUNT(DISTINCT user_id) AS u FROM visits GROUP BY shop";
        let answer = ask(&tables, &room, sql, &whit_query::plan::Asking { groups: Some(4), ..asking(20.0) });
        let answer = answer.unwrap_or_else(|error| panic!("{protect} {caps}: {error:?}"));
        assert_eq!(answer.statement.prices.len(), rungs, "{protect} {caps}");
        let losses: Vec<f64> = answer.statement.prices.iter().map(|price| price.epsilon).collect();
        assert!(losses.windows(2).all(|pair| pair[0] <= pair[1]), "{losses:?}");
        assert!(losses[0] <= 20.0 * (1.0 + 1e-6), "{losses:?}");
    }
}

/// A million rows by 40,000 users need more than 16 MiB while they are brought together, so that they are read for a share of the users at a time.
#[test]
fn what_does_not_fit_into_memory_is_read_in_shares_and_comes_to_the_same() {
    use std::fmt::Write as _;
    use whit_core::declare::Declaration;
    use whit_query::Tables;
    use whit_query::source::Tuning;

    let room = Room::new("shares");
    let mut rows = "user_id,shop,day,seconds,country\n".to_owned();
    for i in 0..1_000_000_u64 {
        let shop = ["north", "south", "east", "west", "moon"][(i * i % 5) as usize];
        writeln!(rows, "{},{shop},{},{},at", i * 7919 % 40_000, i % 9, i % 600).unwrap();
    }
    room.write("visits.csv", &rows);
    let open = |memory| {
        let declaration = Declaration::parse(USER).unwrap();
        Tables::of(declaration, room.path(), Tuning { memory, threads: Some(2) }).unwrap()
    };
    let (ample, tight) = (open(None), open(Some(16 << 20)));
    for sql in [
        "SELECT shop, COUNT(*), SUM(seconds), AVG(seconds), COUNT(DISTINCT user_id) FROM visits GROUP BY shop",
        "SELECT MEDIAN(seconds), COUNT(DISTINCT day) FROM visits",
    ] {
        let exact = |tables: &Tables| tables.exact_for_tests(sql, &asking(1.0)).unwrap().1;
        for (whole, shared) in exact(&ample).iter().zip(exact(&tight)) {
            assert_eq!((&whole.keys, &whole.measures), (&shared.keys, &shared.measures), "{sql}");
            assert_eq!(whole.presence, shared.presence, "{sql}");
        }
    }
}

/// A mean is clamped to its bounds, so that with much noise one near them is off by less than one in the middle: the preview tells the worse.
#[test]
fn what_is_stated_of_a_mean_covers_small_groups() {
    let room = Room::new("means_of_small_groups");
    let lines: Vec<String> = (0..200).map(|user| format!("{user},{}", 10 * user + 5)).collect();
    room.write("t.csv", &format!("user_id,x\n{}\n", lines.join("\n")));
    let tables = room.tables(
        "[dataset.t]\nsource = \"t.csv\"\nunit.user = \"user_id\"\nunit.protect = \"user\"\nunit.change = \"add-remove\"\nunit.caps = { rows_per_user = 1 }\ncolumns.user_id = \"int\"\ncolumns.x = { type = \"float\", bounds = [0, 2000] }\n",
    );
    let sql = "SELECT AVG(x) FROM t";
    for epsilon in [0.05, 0.07, 0.09, 0.12, 0.3] {
        let asking = whit_query::plan::Asking { about: Some(200.0), ..asking(epsilon) };
        let stated = tables.preview(sql, &asking).unwrap().errors[0].within.unwrap();
        let found = tables.release_many_for_audit(sql, &asking, 2000).unwrap();
        let mut errors: Vec<f64> = found.runs.iter().map(|run| (number(&run[0].1[0]) - 1000.0).abs()).collect();
        errors.sort_by(f64::total_cmp);
        assert!(errors[1899] <= 1.2 * stated, "ε = {epsilon}: {} where {stated} was stated", errors[1899]);
    }
}

/// Swaps the file of visits for another of the same size when a charge has been reserved: after the fingerprint, and before rows are read.
fn swapped_meanwhile(room: &Room) -> whit_account::ledger::Books {
    let path = room.path().join("visits.csv");
    let mut books = room.books();
    books.watch_steps(move |step| {
        if step == whit_account::ledger::Step::AfterReserve {
            std::thread::sleep(std::time::Duration::from_millis(30)); // the system's clock goes in steps
            let other = std::fs::read_to_string(&path).unwrap().replace("north", "south");
            std::fs::write(&path, other).unwrap();
        }
    });
    books
}

#[test]
fn rows_of_a_file_that_changed_after_its_fingerprint_are_neither_released_nor_stored() {
    let room = Room::new("swapped");
    room.write("visits.csv", &visits());
    let tables = room.tables(USER);
    let count = "SELECT shop, COUNT(*) AS n FROM visits GROUP BY shop";
    let hitters = "SELECT * FROM hitters('visits', 'shop')";
    for (number, sql) in (1_usize..).zip([count, hitters]) {
        room.write("visits.csv", &visits());
        let error = whit_query::ask(&tables, sql, &asking(100.0), &mut swapped_meanwhile(&room), "tester").unwrap_err();
        assert!(error.sentence.contains("visits.csv` changed while it was read"), "{sql}: {error:?}");
        assert!(error.sentence.contains("ask again"), "{error:?}");
        let entries = room.books().entries(&whit_account::ledger::Which::default()).unwrap();
        assert_eq!(entries.len(), number, "{sql}");
        assert!(entries.iter().all(|entry| entry.state == whit_account::ledger::State::Reserved), "{entries:?}");
    }
    // Left alone, it is answered, and of the rows that are there.
    let answer = ask(&tables, &room, count, &asking(200.0)).unwrap();
    let north = answer.rows.iter().find(|row| row[0].value == Value::Text("north".to_owned())).unwrap();
    assert!(!answer.statement.stored && number(&north[1].value).abs() < 20.0, "{answer:?}");
}

/// Whoever tells the owner says so to the ledger: until then each question finds it again.
#[test]
fn data_that_changed_is_reported_until_it_is_noted() {
    let room = Room::new("changed_until_noted");
    room.write("visits.csv", &visits());
    let tables = room.tables(USER);
    let question = |epsilon: f64| ask(&tables, &room, "SELECT COUNT(*) FROM visits", &asking(epsilon)).unwrap();
    question(1.0);
    assert!(tables.take_changed().is_empty());
    room.write("visits.csv", &visits().replace("north", "south"));
    for (epsilon, noted) in [(2.0, false), (3.0, true)] {
        question(epsilon);
        let changed = tables.take_changed();
        assert_eq!(changed.len(), 1);
        if noted {
            room.books().note_source(&changed[0].0, &changed[0].1).unwrap();
        }
    }
    question(4.0);
    assert!(tables.take_changed().is_empty());
}

/// Sixteen who ask the very same at once: one is charged, and all get the answer that it got.
#[test]
fn the_same_question_asked_at_once_is_charged_once() {
    let room = Room::new("asked_at_once");
    room.write("visits.csv", &visits());
    let tables = room.tables(USER);
    let together = std::sync::Barrier::new(16);
    for (entry, sql) in
        [(1, "SELECT shop, COUNT(*) AS n FROM visits GROUP BY shop"), (2, "SELECT * FROM hitters('visits', 'shop')")]
    {
        let answers: Vec<_> = std::thread::scope(|scope| {
            let one = || {
                let mut books = room.books();
                together.wait();
                whit_query::ask(&tables, sql, &asking(100.0), &mut books, "tester").unwrap()
            };
            let all: Vec<_> = (0..16).map(|_| scope.spawn(one)).collect();
            all.into_iter().map(|one| one.join().unwrap()).collect()
        });
        assert_eq!(answers.iter().filter(|answer| !answer.statement.stored).count(), 1, "{sql}");
        for answer in &answers {
            assert_eq!((&answer.rows, answer.statement.entry), (&answers[0].rows, Some(entry)), "{sql}");
        }
    }
    assert_eq!(room.books().verify().unwrap().entries, 2);
}
