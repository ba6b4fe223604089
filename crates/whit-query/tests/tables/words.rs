//! What an analyst reads: messages in plain words, columns as they were written, and rows in an order that does not change.

use crate::ask::number;
use crate::room::{Room, ask, asking};
use std::fmt::Write as _;
use whit_query::{Fault, Role, Tables, Value};

const DECLARED: &str = r#"
[dataset.visits]
source = "visits.csv"
unit.user = "user_id"
unit.protect = "user"
unit.caps = { rows_per_user = 4 }
budget.user = { epsilon = 10000.0, delta = 1e-5 }
columns.user_id = "int"
columns.shop = { type = "text", keys = ["north", "south"] }
columns.day = { type = "int", bounds = [0, 10] }
columns.seconds = { type = "int", bounds = [0, 600] }
columns.ts = "timestamp"
columns."Ship Country" = "text"
columns."Paid?" = "text"
columns."unit price" = "float"

[dataset.shown]
source = "visits.csv"
unit.user = "user_id"
unit.public = ["user_id", "shop", "day"]
unit.protect = "feature"
unit.caps = { rows_per_user = 4 }
budget.feature = { epsilon = 10000.0, delta = 1e-5 }
columns.user_id = "int"
columns.shop = "text"
columns.day = "int"
columns.seconds = { type = "int", bounds = [0, 600] }
"#;

fn tables(name: &str) -> (Room, Tables) {
    let room = Room::new(name);
    let mut text = "user_id,shop,day,seconds,ts,Ship Country,Paid?,unit price\n".to_owned();
    for i in 0..1200 {
        let (shop, day) = (["north", "south"][i % 2], i % 7);
        let _ = writeln!(text, "{},{shop},{day},{},2024-01-01 10:00:00,Austria,yes,2.5", i % 300, i % 600);
    }
    room.write("visits.csv", &text);
    let tables = room.tables(DECLARED);
    (room, tables)
}

/// Each with something that its sentence or its hint has to say, or nothing.
const WRONG: &[(&str, &str)] = &[
    ("SELECT shop, COUNT(*) FROM visits", "GROUP BY shop"),
    ("SELECT shop, day, COUNT(*) FROM visits GROUP BY shop", "`day` stands in SELECT"),
    ("SELECT COUNT(*) FROM visits HAVING shop = 'a'", "`shop` stands in HAVING"),
    ("SELECT shop, COUNT(*) FROM visits GROUP BY shop ORDER BY seconds", "`seconds` stands in ORDER BY"),
    ("SELECT hour(ts), COUNT(*) FROM visits GROUP BY 1", "EXTRACT(hour FROM x) or date_part('hour', x)"),
    ("SELECT date_part(hour, ts), COUNT(*) FROM visits GROUP BY 1", "date_part('hour'"),
    ("SELECT Ship Country, COUNT(*) FROM visits GROUP BY 1", "double quotes: \"Ship Country\""),
    ("SELECT Ship Country FROM visits", "double quotes: \"Ship Country\""),
    ("SELECT COUNT(*) FROM visits WHERE Ship Country = 'Austria'", "double quotes: \"Ship Country\""),
    ("SELECT COUNT(*) FROM visits WHERE Paid? = 'yes'", "double quotes: \"Paid?\""),
    ("SELECT COUNT(*) FROM visits WHERE \"Paid?\" = TRUE", "`Paid?` is text and `true` is true or false"),
    ("SELECT COUNT(*) FROM visits WHERE \"Paid?\"", "a condition is true or false"),
    ("SELECT COUNT(*) FROM visits TABLESAMPLE BERNOULLI (10)", "TABLESAMPLE"),
    ("SELECT COUNT(* FROM visits", "`)` is expected where `FROM` stands (line 1, column 16)"),
    ("SELECT COUNT(*) FROM visits WHERE", "the question ends where an expression is expected"),
    ("SELECT COUNT(*) FROM visits WHERE shop = 'north", "a quote has no end"),
    ("SELECT COUNT(*) FROM visits WHERE shop = north", "single quotes: 'north'"),
    ("SELECT shop", "say of which table, with FROM: shown or visits"),
    ("SELECT x.shop, COUNT(*) FROM visits v GROUP BY 1", "`shop` is a column of `visits`"),
    ("SELECT day FROM (SELECT shop, COUNT(*) FROM visits GROUP BY shop)", "select it in the sub-query too"),
    ("SELECT COUNT(*) FROM visits WHERE seconds > INTERVAL '3 months'", "`INTERVAL '3 months'` is a span of time"),
    ("SELECT COUNT(*) FROM visits WHERE ts + INTERVAL '1 day 2 hours' > 5", "INTERVAL '1 days 7200 seconds'"),
    ("SELECT SUM(ts + INTERVAL '1 month') FROM visits", "does not take a time"),
    ("SELECT kurtosis(seconds) FROM visits", "VAR(x), STDDEV(x)"),
    ("SELECT variance(seconds) FROM visits", "ask for VAR(x)"),
    ("SELECT COUNT(*) FROM visits WHERE date_part('fortnight', ts) > 1", "a time has no part 'fortnight'"),
    ("SELECT COUNT(*) FROM visits WHERE ts + INTERVAL 'soon' > ts", "a span of time cannot be read"),
    ("SELECT COUNT(*) FROM visits WHERE coalesce(ts, 5) > ts", "coalesce"),
    ("SELECT COUNT(*) FROM visits WHERE regexp_match(shop, 'a') IS NULL", "regexp_like(x, 'pattern')"),
    ("SELECT AVG(DISTINCT seconds) FROM visits", "FROM (SELECT DISTINCT seconds FROM …)"),
    ("SELECT COUNT(DISTINCT shop, day) FROM visits", "concat_ws('|', shop, day)"),
    ("SELECT SUM(CAST(shop AS INT)) FROM visits", "write clamp(CAST(shop AS INT), low, high)"),
    ("SELECT string_agg(shop, ',') FROM visits", "`string_agg` has no private form"),
    ("SELECT COUNT(*) FROM visits WHERE arrow_typeof(shop) = 'a'", "nothing of a row is in it"),
    ("SELECT cuont(seconds) FROM visits", "did you mean `count`?"),
    ("SELECT medain(seconds) FROM visits", "did you mean `median`?"),
    ("SELECT strftime('%Y'), COUNT(*) FROM visits GROUP BY 1", "to_char"),
    ("SELECT IF(day > 1, 1, 2), COUNT(*) FROM visits GROUP BY 1", "CASE WHEN"),
    ("SELECT SUM(shop) FROM visits", "does not take text"),
    ("SELECT AVG() FROM visits", "needs something in its parentheses"),
    ("SELECT AVG(seconds, day) FROM visits", ""),
    ("SELECT MAX(shop) FROM visits", "`shop` is text"),
    ("SELECT MIN(ts) FROM visits", "`ts` is a time"),
    ("SELECT SUM(\"unit price\") FROM visits", "clamp(\"unit price\", low, high)"),
    (
        "SELECT SUM(character_length(\"Ship Country\")) FROM visits",
        "write clamp(character_length(\"Ship Country\"), low, high)",
    ),
    ("SELECT COUNT(*) FROM visits WHERE seconds = 'abc'", "`seconds` is a whole number"),
    ("SELECT COUNT(*) FROM visits WHERE shop LIKE 5", "LIKE is for text"),
    ("SELECT COUNT(*) FROM visits WHERE shop + 1 > 2", "no arithmetic"),
    ("SELECT COUNT(*) FROM visits WHERE shop AND day", ""),
    ("SELECT COUNT(*) FROM visits WHERE NOT shop", "NOT stands before a condition"),
    ("SELECT COUNT(*) FROM visits WHERE shop IS TRUE", ""),
    ("SELECT COUNT(*) FROM visits WHERE shop ~ '('", "unclosed group"),
    ("SELECT COUNT(*) FROM visits WHERE COUNT(*) > 3", "HAVING"),
    ("SELECT SUM(COUNT(*)) FROM visits", "an aggregate stands inside of another"),
    ("SELECT shop, COUNT(*) FROM visits GROUP BY 5", "GROUP BY 5"),
    ("SELECT shop, COUNT(*) FROM visits GROUP BY shop ORDER BY 7", "ORDER BY 7"),
    ("SELECT shop, COUNT(*) FROM visits GROUP BY shop LIMIT 'a'", "LIMIT"),
    ("SELECT COUNT(*) FROM visits LIMIT -1", "LIMIT"),
    ("SELECT TOP 5 shop, COUNT(*) FROM visits GROUP BY shop", "LIMIT"),
    ("SELECT date_trunc('fortnight', ts), COUNT(*) FROM visits GROUP BY 1", "fortnight"),
    ("SELECT CAST(shop AS NUMBER), COUNT(*) FROM visits GROUP BY 1", "there is no type NUMBER"),
    ("SELECT COUNT(*) FROM visits v, visits w WHERE user_id = 3", "a column of several tables"),
    ("SELECT COUNT(*) FROM a.b.c.visits", "too many parts"),
    ("SELECT COUNT(*) FROM visits; SELECT COUNT(*) FROM visits", "one question at a time"),
    ("SHOW TABLES", "only questions"),
    ("INSERT INTO visits VALUES (1)", "would change something"),
    ("hello", "a question is expected where `hello` stands"),
    ("SELECT shop FROM visits UNION SELECT day, 1 FROM visits", "as many columns"),
    ("SELECT DISTINCT shop, shop FROM visits", "two columns would be called"),
    ("SELECT COUNT(*) FROM visits WHERE @x = 2", "no variables"),
    ("SELECT COUNT(*) FROM visits PIVOT (SUM(seconds) FOR day IN (1,2))", "PIVOT is not understood"),
    ("SELECT {'a': 1}, COUNT(*) FROM visits", "a structure"),
    ("SELECT shop.x, COUNT(*) FROM visits GROUP BY 1", "no parts"),
    ("SELECT ts - shop, COUNT(*) FROM visits GROUP BY 1", "a time - text"),
    ("SELECT SUM(INTERVAL '1 month' * day) FROM visits", "arithmetic of times"),
    ("SELECT * FROM heavy_hitters('visits', 'shop')", "hitters, histogram"),
    ("SELECT COUNT(*) FROM visits WHERE shop ILIKE ANY ('a')", "OR"),
    ("SELECT UNNEST(shop) FROM visits", ""),
    ("SELECT COUNT(*) FROM visits WHERE day = (SELECT shop, day FROM visits)", ""),
    ("SELECT COUNT(*) FROM visits WHERE date_trunc('fortnight', ts) > ts", "cut down to 'fortnight'"),
    ("SELECT SUM(ts::date) FROM visits", "`sum` does not take a date"),
    ("SELECT CAST(day > 3 AS DATE), COUNT(*) FROM visits GROUP BY 1", "true or false cannot become a date"),
    ("SELECT CORR(seconds) FROM visits", "write corr(y, x)"),
    ("SELECT CORR(seconds, shop) FROM visits", "`corr` does not take a whole number, text"),
    ("SELECT COVAR_SAMP(seconds) FROM visits", "is given 1 argument, and takes 2"),
    ("SELECT width_bucket(seconds, 0, 10), COUNT(*) FROM visits GROUP BY 1", "write width_bucket(x, low, high, n)"),
    ("SELECT SUM(clamp(seconds)) FROM visits", "write clamp(x, low, high)"),
    ("SELECT bin(seconds, 0), COUNT(*) FROM visits GROUP BY 1", "write bin(x, low, high, n)"),
    ("SELECT COUNT(*) FROM visits WHERE ts > now() - 7", "- INTERVAL '7 days'"),
    ("SELECT COUNT(*) FROM visits WHERE ts > now() - '7 days'", "- INTERVAL '7 days'"),
    ("SELECT COUNT(*) FROM visits WHERE ts - INTERVAL 7 > ts", "INTERVAL '7 days'"),
    ("SELECT COUNT(*) FROM visits WHERE ts - INTERVAL '7' > ts", "says no unit"),
    ("SELECT shop, day, COUNT(*) FROM visits GROUP BY shop, day WITH ROLLUP", "write GROUP BY ROLLUP(shop, day)"),
    ("SELECT shop, day, COUNT(*) FROM visits GROUP BY shop, day WITH CUBE", "write GROUP BY CUBE(shop, day)"),
    ("SELECT shop, COUNT(*) FROM visits GROUP BY shop WITH TOTALS", "GROUPING SETS ((shop), ())"),
    ("SELECT first(seconds) FROM visits", "MEDIAN(x)"),
    ("SELECT list(shop) FROM visits", "with GROUP BY"),
    ("SELECT product(seconds) FROM visits", "exp(SUM("),
    ("SELECT json_extract(shop, '$.a'), COUNT(*) FROM visits GROUP BY 1", "unpacked where the file is written"),
    ("SELECT shop -> 'a', COUNT(*) FROM visits GROUP BY 1", "no operator ->"),
    ("SELECT LAG(seconds) FROM visits", "LAG(…) OVER (PARTITION BY the user"),
    ("SELECT rank() FROM visits", "OVER (PARTITION BY the user"),
    ("SELECT COUNT(*) FROM visits WHERE ts > date_sub(now(), INTERVAL 7 DAY)", "x - INTERVAL '7 days'"),
    ("SELECT COUNT(*) FROM visits WHERE ts > dateadd(day, -7, now())", "x + INTERVAL '7 days'"),
    ("SELECT CAST(shop, INT), COUNT(*) FROM visits GROUP BY 1", "CAST(x AS INT)"),
    ("SELECT COUNT(*) FROM visits WHERE seconds IN (SELECT user_id, day FROM visits)", "select one column in it"),
    ("SELECT COUNT(*) FROM visits WHERE date_part('hour', seconds) = 1", "write date_part('hour', ts)"),
    ("SELECT date_bin(INTERVAL '0 hours', ts), COUNT(*) FROM visits GROUP BY 1", "no width"),
    ("SELECT to_timestamp('never'), COUNT(*) FROM visits GROUP BY 1", "'never' is not a time"),
    ("SELECT seconds / 0, COUNT(*) FROM visits GROUP BY 1", "`seconds / 0`"),
    ("SELECT seconds & shop, COUNT(*) FROM visits GROUP BY 1", "no arithmetic"),
    ("SELECT SUM(day > 3) FROM visits", "COUNT(*) FILTER (WHERE …)"),
    ("SELECT APPROX_PERCENTILE_CONT(seconds) FROM visits", "approx_percentile_cont(x, 0.9)"),
    ("SELECT APPROX_PERCENTILE_CONT(seconds, 2) FROM visits", "write the share out"),
    ("SELECT COUNT(seconds, day) FROM visits", "concat_ws('|', a, b)"),
    ("SELECT COUNT(*) FILTER (WHERE seconds) FROM visits", "seconds <> 0"),
    ("SELECT CASE WHEN seconds THEN 1 END, COUNT(*) FROM visits GROUP BY 1", "a condition is true or false"),
    ("SELECT v.shop, COUNT(*) FROM visits GROUP BY 1", "FROM visits AS v"),
    ("SELECT shop COUNT(*) FROM visits", "is a comma or a sign missing before it?"),
    ("SELECT COUNT(*) FROM visits GROUP shop", "write GROUP BY"),
    ("SELECT shop, COUNT(*) FROM visits ORDER BY shop GROUP BY shop", "clauses stand in this order"),
    ("SELECT shop, SUM(seconds) / COUNT(*) * FROM visits GROUP BY shop", "between * and FROM"),
    ("SELECT shop, COUNT(*) AS n FROM visits WHERE n > 5 GROUP BY shop", "put the condition into HAVING"),
    ("SELECT COUNT(*) FROM visits LIMIT shop", "whole numbers"),
    ("SELECT COUNT(*) FROM visits FETCH FIRST 5 ROWS ONLY", "use LIMIT"),
    ("SELECT COUNT(*) FROM visits WHERE shop LIKE '%a' ESCAPE 'ab'", "ESCAPE '!'"),
    ("SELECT COUNT(*) FROM visits WHERE shop RLIKE 'a'", "regexp_like(x, 'pattern')"),
    ("SELECT COUNT(*) FROM visits WHERE shop = ANY(ARRAY['a'])", "functions of one row"),
    ("SELECT COUNT(*) FROM visits WHERE $1 = shop", "write the value itself"),
    ("SELECT COUNT(*) FROM visits v FULL OUTER JOIN visits w ON v.user_id = w.user_id", "a FULL join"),
    ("SELECT MAP {'a': 1}, COUNT(*) FROM visits", ""),
    ("SELECT shop[1], COUNT(*) FROM visits GROUP BY 1", ""),
    ("SELECT X'zz', COUNT(*) FROM visits", "single quotes"),
    ("SELECT N'abc', COUNT(*) FROM visits", "single quotes"),
    ("SELECT COUNT(shop.*) FROM visits", "no table is called `shop` here"),
    ("SELECT SUM(*) FROM visits", "name a column there"),
    ("SELECT shop::varchar(2), COUNT(*) FROM visits GROUP BY 1", "write left(shop, 2)"),
    ("SELECT COUNT(*) FROM visits WHERE shop IS 'north'", "NULL, TRUE or FALSE is expected"),
    ("SELECT COUNT(*) OVER w FROM visits", "no window is called `w` here"),
    (
        "SELECT COUNT(*) FROM visits LEFT JOIN visits ON visits.user_id = visits.user_id",
        "two tables are called `visits`",
    ),
    (";", "the question is empty"),
    ("SELECT seconds::interval, COUNT(*) FROM visits GROUP BY 1", "cannot become a span of time"),
    ("SELECT COUNT(*) FROM visits WHERE ts > now - INTERVAL '1 day'", "the time of asking is now()"),
    ("SELECT COUNT(*) AS \"n FROM visits", "a quote has no end"),
    ("/* open", "a comment has no end"),
    ("SELECT COUNT(*) FROM", "ends where a name is expected"),
    ("SELECT bool_and(day > 1) FROM visits", "FILTER (WHERE …)"),
    ("SELECT COUNT(*) FROM visits WHERE (shop, day) = ('north', 1)", "with AND between them"),
    ("SELECT shop, day, COUNT(*) FROM visits GROUP BY (shop, day)", "leave out the parentheses"),
    ("SELECT substr(shop), COUNT(*) FROM visits GROUP BY 1", ""),
    ("SELECT left(shop), COUNT(*) FROM visits GROUP BY 1", "write left(text, n)"),
    ("SELECT date_trunc(ts, 'day'), COUNT(*) FROM visits GROUP BY 1", "write date_trunc('day', ts)"),
];

#[test]
fn no_message_is_in_the_words_of_the_engine() {
    let (_room, tables) = tables("plain_words");
    let foreign = [
        "DataFusion",
        "ParserError",
        "TokenizerError",
        "Utf8",
        "Int64",
        "Float64",
        "Boolean",
        "Timestamp(",
        "Interval(",
        "MonthDayNano",
        "Schema error",
        "LogicalPlan",
        "UDF",
        "type_coercion",
        "caused by",
        "Arrow",
        "Execution error",
        "Internal error",
        "not implemented",
        "Optimizer",
        "{ ",
        "::",
        "Some(",
        "did you mean `strpos`",
        "Date32",
        "__whit",
        "not supported",
        "Unsupported",
    ];
    for (sql, wanted) in WRONG {
        let error = tables.preview(sql, &asking(1.0)).map(drop).expect_err(sql);
        let hint = error.hint.clone().unwrap_or_default();
        let all = format!("{}; {hint}", error.sentence);
        assert!(error.fault == Fault::Asked && all.contains(wanted), "{sql}: {all}");
        // A line of whit.toml is written as that file has it.
        let words = all.replace("{ type =", "").replace("`Session::preview`", "").replace("`Declared::check`", "");
        for word in foreign {
            assert!(!words.contains(word), "{sql}: {all}");
        }
    }
}

#[test]
fn previews_call_types_as_sql_does_and_name_each_grouping() {
    let (_room, tables) = tables("preview_words");
    let preview = tables.preview("SELECT ts::date, COUNT(*) FROM visits GROUP BY 1", &asking(1.0)).unwrap();
    assert!(preview.plan[0].contains("by CAST(ts AS DATE)"), "{:?}", preview.plan);
    let sql = "SELECT shop, day, COUNT(*) FROM visits GROUP BY ROLLUP(shop, day)";
    let names: Vec<String> =
        tables.preview(sql, &asking(1.0)).unwrap().errors.into_iter().map(|error| error.name).collect();
    assert_eq!(names, ["COUNT(*) by day, shop", "COUNT(*) by shop", "COUNT(*), in all"]);
}

#[test]
fn the_values_of_a_column_are_united_with_constants() {
    let (room, tables) = tables("united_values");
    for sql in [
        "SELECT DISTINCT shop FROM visits UNION ALL SELECT 'all'",
        "SELECT DISTINCT shop FROM visits UNION SELECT 'all'",
        "SELECT 'all' UNION ALL SELECT DISTINCT shop FROM visits",
        "SELECT DISTINCT shop FROM shown UNION ALL SELECT 'all'",
    ] {
        let answer = ask(&tables, &room, sql, &asking(10.0)).unwrap_or_else(|error| panic!("{sql}: {error:?}"));
        let mut found: Vec<_> = answer.rows.iter().map(|row| row[0].value.clone()).collect();
        found.sort_by_key(|value| format!("{value:?}"));
        let wanted = ["all", "north", "south"].map(|text| Value::Text(text.to_owned()));
        assert_eq!((found.as_slice(), answer.columns.len()), (wanted.as_slice(), 1), "{sql}");
    }
    // Other rows that are united keep their keys and have no column more.
    let sql = "SELECT shop, COUNT(*) FROM visits GROUP BY shop UNION ALL SELECT 'all', COUNT(*) FROM visits";
    let answer = ask(&tables, &room, sql, &asking(10.0)).unwrap();
    assert_eq!((answer.rows.len(), answer.columns.len()), (3, 2));
}

#[test]
fn what_is_made_of_exact_groups_is_exact_and_in_order() {
    let (room, tables) = tables("exact_twice");
    for (sql, roles) in [
        (
            "SELECT n, COUNT(*) FROM (SELECT shop, day, COUNT(*) AS n FROM shown GROUP BY shop, day) GROUP BY n",
            [Role::Key, Role::Exact],
        ),
        (
            "SELECT day, SUM(n) FROM (SELECT shop, day, COUNT(*) AS n FROM shown GROUP BY shop, day) GROUP BY day",
            [Role::Key, Role::Exact],
        ),
        (
            "SELECT a.day, a.n + b.n FROM (SELECT day, COUNT(*) AS n FROM shown GROUP BY day) a JOIN (SELECT day, COUNT(DISTINCT shop) AS n FROM shown GROUP BY day) b ON a.day = b.day",
            [Role::Key, Role::Exact],
        ),
        // What has noise has some afterwards, and its key has none.
        (
            "SELECT day, SUM(n) FROM (SELECT shop, day, SUM(seconds) AS n FROM shown GROUP BY shop, day) GROUP BY day",
            [Role::Key, Role::Noisy],
        ),
        (
            "SELECT shop, MAX(n) FROM (SELECT shop, seconds > 300 AS long, COUNT(*) AS n FROM visits GROUP BY 1, 2) GROUP BY shop",
            [Role::Key, Role::Noisy],
        ),
    ] {
        let answer = ask(&tables, &room, sql, &asking(10.0)).unwrap_or_else(|error| panic!("{sql}: {error:?}"));
        let found: Vec<Role> = answer.columns.iter().map(|column| column.role).collect();
        assert_eq!(found, roles, "{sql}");
        let keys: Vec<String> = answer
            .rows
            .iter()
            .map(|row| match &row[0].value {
                Value::Text(text) => text.clone(),
                value => format!("{:09}", number(value)),
            })
            .collect();
        assert!(keys.len() > 1 && keys.is_sorted(), "{sql}: {keys:?}");
    }
    // An order that was asked for stays.
    let sql = "SELECT day, SUM(n) FROM (SELECT shop, day, COUNT(*) AS n FROM shown GROUP BY shop, day) GROUP BY day ORDER BY day DESC";
    let answer = ask(&tables, &room, sql, &asking(10.0)).unwrap();
    let days: Vec<f64> = answer.rows.iter().map(|row| number(&row[0].value)).collect();
    assert_eq!(days, [6.0, 5.0, 4.0, 3.0, 2.0, 1.0, 0.0]);
}

#[test]
fn columns_are_called_as_they_were_written_also_if_two_are_alike() {
    let (room, tables) = tables("titles");
    let titles = |sql: &str| {
        let answer = ask(&tables, &room, sql, &asking(10.0)).unwrap_or_else(|error| panic!("{sql}: {error:?}"));
        answer.columns.into_iter().map(|column| column.name).collect::<Vec<_>>()
    };
    assert_eq!(
        titles("SELECT shop, COUNT(*) * 2, sum(v.seconds) / count(*), count(*) FROM visits v GROUP BY shop"),
        ["shop", "COUNT(*) * 2", "sum(v.seconds) / count(*)", "COUNT(*)"]
    );
    assert_eq!(
        titles("SELECT COUNT(*), COUNT(*), SUM(seconds) AS n, COUNT(*) AS n FROM visits"),
        ["COUNT(*)", "COUNT(*)", "n", "n"]
    );
    assert_eq!(titles("SELECT shop, shop, COUNT(*) FROM visits GROUP BY shop"), ["shop", "shop", "COUNT(*)"]);
    let twice =
        "SELECT day, SUM(n), MAX(n) FROM (SELECT shop, day, COUNT(*) AS n FROM shown GROUP BY shop, day) GROUP BY day";
    assert_eq!(titles(twice), ["day", "SUM(n)", "MAX(n)"]);
    assert_eq!(
        titles("SELECT 1 + 1, COUNT(*) FROM visits UNION ALL SELECT 3, COUNT(*) FROM visits WHERE day > 3")[0],
        "1 + 1"
    );
}
