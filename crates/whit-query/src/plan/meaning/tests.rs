use crate::plan::Asking;
use crate::release::Tables;
use crate::source::Tuning;
use crate::source::scratch::{Scratch, golden};
use crate::workload::Workload;
use serde_json::{Value, json};

const DECLARED: &str = r#"
[dataset.visits]
source = "visits.csv"
unit.user = "user_id"
unit.element = "shop"
unit.protect = "element"
unit.change = "add-remove"
unit.caps = { elements_per_user = 4, rows_per_element = 3 }
columns.user_id = "int"
columns.shop = { type = "text", keys = ["north", "south"] }
columns.day = { type = "int", bounds = [0, 30] }
columns.spent = { type = "float", bounds = [0, 100] }
columns.tip = { type = "float", bounds = "auto" }
columns.at = "timestamp"

[dataset.shops]
source = "shops.csv"
public = true
columns.shop = "text"
columns.region = "text"
"#;

fn tables(name: &str) -> (Scratch, Tables) {
    let scratch = Scratch::new(name);
    scratch.write("visits.csv", "user_id,shop,day,spent,tip,at\n1,north,2,3.5,0.5,2024-01-02T03:04:05\n");
    scratch.write("shops.csv", "shop,region\nnorth,cold\nsouth,warm\n");
    let config = scratch.write("whit.toml", DECLARED);
    let tables = Tables::open(&config, Tuning { memory: None, threads: Some(1) }).unwrap();
    (scratch, tables)
}

fn meaning(tables: &Tables, sql: &str) -> String {
    let plan = tables.plan(sql, &Asking::default()).unwrap_or_else(|error| panic!("{sql}: {error:?}"));
    super::of(&plan, &json!({ "epsilon": 0.5 }), tables.warehouse()).unwrap()
}

/// One of everything that a meaning has words for.
const QUESTIONS: &[&str] = &[
    "SELECT COUNT(*) FROM visits",
    "SELECT shop, COUNT(*), SUM(spent), AVG(spent), STDDEV(day) FROM visits GROUP BY shop",
    "SELECT MEDIAN(spent), MIN(day), COUNT(DISTINCT user_id), COUNT(DISTINCT day) FROM visits WHERE shop = 'north'",
    "SELECT SUM(tip) FROM visits WHERE NOT (day BETWEEN 3 AND 5) OR shop IN ('south', 'north') OR shop LIKE 'n%'",
    "SELECT COUNT(*) FROM visits WHERE CASE WHEN day > 3 THEN spent ELSE -spent END > 2.5 AND CAST(day AS VARCHAR) <> '7'",
    "SELECT region, COUNT(*) FROM visits JOIN shops ON visits.shop = shops.shop WHERE region = 'cold' GROUP BY region",
    "SELECT COUNT(*) FROM visits LEFT JOIN shops ON visits.shop = shops.shop AND region > 'a' WHERE region IS NULL",
    "SELECT COUNT(*), SUM(clamp(n, 0, 5)) FROM (SELECT user_id, COUNT(*) AS n, MAX(day) AS m FROM visits GROUP BY user_id) WHERE m > 3",
    "SELECT COUNT(*) FROM (SELECT day, row_number() OVER (PARTITION BY user_id ORDER BY day DESC) AS r FROM visits) WHERE r = 1",
    "SELECT COUNT(*) FROM (SELECT user_id, day FROM visits UNION ALL SELECT user_id, day + 1 FROM visits)",
    "SELECT COUNT(*) FROM visits WHERE shop IN (SELECT shop FROM shops WHERE region = 'warm' ORDER BY shop LIMIT 1)",
    "SELECT COUNT(*) FROM visits WHERE day > (SELECT MAX(column1) FROM (VALUES (0), (3)) t)",
    "SELECT date_trunc('month', at) AS m, COUNT(*) FROM visits GROUP BY m",
    "SELECT COUNT(*) FILTER (WHERE day < 7), SUM(spent) FILTER (WHERE shop = 'south') FROM visits",
];

/// Golden files: ledgers have stored what these say, so that another text has answers paid for again. `WHIT_GOLDEN=write` writes them anew, which is
/// for a new version of the format and for questions that are new here.
#[test]
fn questions_mean_what_they_meant() {
    let (_scratch, tables) = tables("golden_meanings");
    let found: Vec<Value> = QUESTIONS
        .iter()
        .map(|sql| {
            let meaning: Value = serde_json::from_str(&meaning(&tables, sql)).unwrap();
            json!({ "question": sql, "meaning": meaning })
        })
        .collect();
    let found = serde_json::to_string_pretty(&found).unwrap() + "\n";
    assert!(!found.contains("\"engine\""), "the engine's own words");
    golden("questions.json", &found);
}

/// The same for what two values have to do with one another, for several groupings and for spans of time.
#[test]
fn questions_of_pairs_groupings_and_spans_mean_what_they_meant() {
    let (_scratch, tables) = tables("golden_pairs");
    let questions = [
        "SELECT CORR(spent, day), REGR_SLOPE(spent, day), COVAR_SAMP(day, spent), REGR_AVGX(day, spent) FROM visits",
        "SELECT shop, day > 3 AS late, COUNT(*), APPROX_DISTINCT(day) FROM visits GROUP BY ROLLUP (shop, late)",
        "SELECT width_bucket(spent, 0, 50, 2), COUNT(*) FROM visits WHERE at < TIMESTAMP '2024-05-01' - INTERVAL '90' DAY GROUP BY 1",
    ];
    let meanings = questions.iter().map(|sql| {
        let meaning: Value = serde_json::from_str(&meaning(&tables, sql)).unwrap();
        json!({ "question": sql, "meaning": meaning })
    });
    let found = serde_json::to_string_pretty(&meanings.collect::<Vec<_>>()).unwrap() + "\n";
    assert!(!found.contains("\"engine\""), "the engine's own words");
    golden("pairs.json", &found);
}

/// Questions that are asked together mean what they come to as one, in whatever order and spelling they stand.
#[test]
fn questions_together_mean_what_they_meant_in_any_order() {
    let (_scratch, tables) = tables("golden_workload");
    let by_shop = "SELECT shop, COUNT(*), SUM(spent) FROM visits GROUP BY shop";
    let means = "SELECT shop, AVG(spent) FROM visits GROUP BY shop HAVING AVG(spent) > 3";
    let all = "SELECT COUNT(*) FROM visits WHERE day > 3";
    let meaning = |questions: &[&str]| {
        let workload = Workload::read(&questions.join(";")).unwrap();
        let plan = tables.outlined_workload(&workload, &Asking::default()).unwrap().whole;
        super::of(&plan, &json!({ "epsilon": 0.5 }), tables.warehouse()).unwrap()
    };
    let found = meaning(&[by_shop, means, all]);
    for same in [
        vec![all, means, by_shop],
        vec![means, all, by_shop, all],
        vec![
            "-- name: means\nSELECT AVG(v.spent) AS m, v.shop AS s FROM visits v GROUP BY v.shop ORDER BY m",
            "SELECT COUNT(*) AS n FROM (SELECT * FROM visits WHERE 3 < day) t",
            by_shop,
        ],
    ] {
        assert_eq!(meaning(&same), found, "{same:?}");
    }
    for other in [vec![by_shop, all], vec![by_shop, means, all, "SELECT COUNT(*) FROM visits WHERE day > 4"]] {
        assert_ne!(meaning(&other), found, "{other:?}");
    }
    let found: Value = serde_json::from_str(&found).unwrap();
    assert_eq!(found["of"]["parts"].as_array().map(Vec::len), Some(2));
    golden("workload.json", &(serde_json::to_string_pretty(&found).unwrap() + "\n"));
}

/// Spellings of one question, and beside them questions that are others.
#[expect(clippy::too_many_lines, reason = "a list of questions")]
#[test]
fn spellings_of_one_question_mean_the_same_and_others_do_not() {
    let (_scratch, tables) = tables("spellings");
    let count = |rest: &str| format!("SELECT COUNT(*) FROM {rest}");
    let mut all = std::collections::BTreeMap::new();
    for spellings in [
        vec![
            "visits WHERE day > 3 AND spent < 5",
            "visits v WHERE v.spent < 5 AND 3 < v.day",
            "(SELECT * FROM visits WHERE day > 3) AS a WHERE spent < 5",
        ],
        vec!["visits WHERE day >= 3 AND spent < 5", "visits WHERE spent < 2 + 3 AND 3 <= day AND day >= 3"],
        vec![
            "visits WHERE day > 3 OR spent < 5",
            "(SELECT day AS spent, spent AS day FROM visits) WHERE day < 5 OR spent > 3",
        ],
        vec![
            "visits WHERE spent > 3 AND day < 5",
            "(SELECT day AS spent, spent AS day FROM visits) WHERE day > 3 AND spent < 5",
        ],
        vec!["visits WHERE day BETWEEN 3 AND 5", "visits WHERE day <= 5 AND day >= 3"],
        vec![
            "visits WHERE NOT day BETWEEN 3 AND 5",
            "visits WHERE NOT (5 >= day AND 3 <= day)",
            "visits WHERE day NOT BETWEEN 3 AND 5",
        ],
        vec!["visits WHERE shop IN ('a', 'b')", "visits WHERE shop IN ('b', 'a', 'b')"],
        vec!["visits WHERE shop IN ('a', 'b', 'c')"],
        vec!["visits WHERE shop NOT IN ('a', 'b')", "visits WHERE NOT shop IN ('b', 'a')"],
        vec!["visits WHERE shop = 'a'", "visits WHERE 'a' = shop"],
        vec!["visits WHERE shop = 'a\"'"],
        vec!["visits WHERE shop <> 'a'"],
        vec!["visits WHERE shop IS DISTINCT FROM 'a'"],
        vec!["visits WHERE day - 3 > spent", "visits WHERE spent < day - 3"],
        vec!["visits WHERE 3 - day > spent"],
        vec![
            "visits JOIN shops ON visits.shop = shops.shop",
            "visits a JOIN shops b ON b.shop = a.shop",
            "visits, shops WHERE visits.shop = shops.shop",
        ],
        vec!["visits JOIN shops ON visits.shop = shops.region"],
        // Outer columns, sub-queries of ANY and ALL, aggregates of sets of groups, DISTINCT ON, where a text ends.
        vec![
            "visits JOIN (SELECT x.shop FROM (SELECT shop, shop AS m FROM shops) x WHERE EXISTS (SELECT 1 FROM shops q WHERE x.m = q.region)) c ON visits.shop = c.shop",
            "visits JOIN (SELECT a.shop FROM (SELECT shop, shop AS k FROM shops) a WHERE EXISTS (SELECT 1 FROM shops p WHERE p.region = a.k)) b ON visits.shop = b.shop",
        ],
        vec![
            "visits JOIN (SELECT a.shop FROM (SELECT shop, region AS k FROM shops) a WHERE EXISTS (SELECT 1 FROM shops p WHERE p.region = a.k)) b ON visits.shop = b.shop",
        ],
        vec![
            "visits JOIN (SELECT shop FROM shops WHERE shop > ALL (SELECT region FROM shops WHERE region < 'b')) b ON visits.shop = b.shop",
        ],
        vec![
            "visits JOIN (SELECT shop FROM shops WHERE shop > ALL (SELECT region FROM shops WHERE region < 'c')) b ON visits.shop = b.shop",
        ],
        vec![
            "visits JOIN (SELECT shop, MAX(region) AS m FROM shops GROUP BY ROLLUP(shop)) b ON visits.shop = b.shop WHERE m > 'a'",
        ],
        vec![
            "visits JOIN (SELECT shop, MIN(region) AS m FROM shops GROUP BY ROLLUP(shop)) b ON visits.shop = b.shop WHERE m > 'a'",
        ],
        vec![
            "visits JOIN (SELECT DISTINCT ON (shop) shop FROM shops WHERE shop = 'a' OR shop = 'b') b ON visits.shop = b.shop",
        ],
        vec![
            "visits JOIN (SELECT DISTINCT ON (shop) shop FROM shops WHERE shop = 'a\") OR shops.shop = Utf8(\"b') b ON visits.shop = b.shop",
        ],
        vec![
            "visits JOIN (SELECT DISTINCT ON (shop) shop FROM shops ORDER BY shop, region) b ON visits.shop = b.shop",
            "visits JOIN (SELECT DISTINCT ON (s.shop) s.shop FROM shops s ORDER BY s.shop, s.region) b ON visits.shop = b.shop",
        ],
        vec![
            "visits JOIN (SELECT DISTINCT ON (shop) region AS r FROM shops ORDER BY shop, region) b ON visits.shop = b.r",
        ],
        vec![
            "visits JOIN (SELECT DISTINCT ON (shop) shop FROM shops ORDER BY shop, region DESC) b ON visits.shop = b.shop",
        ],
        vec![
            "visits JOIN (SELECT DISTINCT ON (region) shop FROM shops ORDER BY region, shop) b ON visits.shop = b.shop",
        ],
        vec!["visits JOIN (SELECT shop FROM shops GROUP BY CUBE(shop, region)) b ON visits.shop = b.shop"],
        vec![
            "visits JOIN (SELECT shop FROM shops GROUP BY GROUPING SETS ((shop), (region))) b ON visits.shop = b.shop",
        ],
        vec!["visits JOIN (SELECT shop FROM shops GROUP BY GROUPING SETS ((shop, region))) b ON visits.shop = b.shop"],
        vec![
            "visits JOIN (SELECT shop FROM shops WHERE shop > ANY (SELECT region FROM shops WHERE region < 'b')) b ON visits.shop = b.shop",
        ],
        vec!["visits JOIN (SELECT shop FROM shops GROUP BY shop HAVING COUNT(*) > 1) b ON visits.shop = b.shop"],
        vec!["visits LEFT JOIN shops ON visits.shop = shops.shop"],
        vec!["visits LEFT JOIN shops ON visits.shop = shops.shop WHERE region = 'a'"],
        vec!["visits LEFT JOIN shops ON visits.shop = shops.shop AND region = 'a'"],
        vec!["visits a JOIN visits b ON a.user_id = b.user_id WHERE a.day < 3"],
        vec!["visits a JOIN visits b ON a.user_id = b.user_id WHERE b.day < 3"],
        vec!["(SELECT row_number() OVER (PARTITION BY user_id ORDER BY day) AS r, spent FROM visits) WHERE spent > 3"],
        vec!["(SELECT row_number() OVER (PARTITION BY user_id ORDER BY day) AS r, spent FROM visits WHERE spent > 3)"],
        vec![
            "(SELECT row_number() OVER (PARTITION BY user_id ORDER BY day) AS r, spent FROM visits) WHERE r > 3",
            "(SELECT spent, row_number() OVER (PARTITION BY user_id ORDER BY day) AS q FROM visits v) WHERE 3 < q",
        ],
        vec!["(SELECT row_number() OVER (PARTITION BY user_id ORDER BY day DESC) AS r, spent FROM visits) WHERE r > 3"],
    ] {
        let texts: Vec<String> = spellings.iter().map(|rest| meaning(&tables, &count(rest))).collect();
        for (spelling, text) in spellings.iter().zip(&texts) {
            assert!(!text.contains("\"engine\""), "{spelling} has words of the engine: {text}");
            assert_eq!(*text, texts[0], "{spelling} and {}", spellings[0]);
        }
        if let Some(other) = all.insert(texts[0].clone(), spellings[0]) {
            panic!("{other} and {} are two questions", spellings[0]);
        }
    }
}
