//! Each operator, with the plan that comes out of it: what is written here is what the engine is given.

use super::*;
use crate::source::scratch::Scratch;
use crate::source::{Tables, Tuning};
use crate::whose::{self, Whose};
use datafusion::arrow::array::{Float64Array, Int64Array, StringArray};

const CONFIG: &str = "
[dataset.visits]
source = 'visits.parquet'
unit.user = 'id'
unit.element = 'day'
unit.protect = 'element'
unit.caps = { rows_per_element = 2, elements_per_user = 3 }
columns.seconds = { bounds = [0, 600] }
budget.element = { epsilon = 1, delta = 1e-6 }

[dataset.people]
source = 'people.parquet'
unit.user = 'people.id -> visits.id'
unit.protect = 'user'

[dataset.shops]
source = 'shops.parquet'
public = true
";

fn tables(name: &str) -> (Scratch, Tables) {
    let scratch = Scratch::new(name);
    let ids = || Arc::new(Int64Array::from(vec![1, 2]));
    let texts = || Arc::new(StringArray::from(vec!["a", "b"]));
    let seconds = Arc::new(Float64Array::from(vec![1.0, 2.0]));
    scratch.parquet("visits.parquet", vec![("id", ids()), ("day", ids()), ("shop", texts()), ("seconds", seconds)]);
    scratch.parquet("people.parquet", vec![("id", ids()), ("age", ids())]);
    scratch.parquet("shops.parquet", vec![("shop", texts()), ("size", ids())]);
    let config = scratch.write("whit.toml", CONFIG);
    let tables = Tables::open(&config, Tuning { memory: None, threads: Some(1) }).unwrap();
    (scratch, tables)
}

/// What comes out of a relation, and what is known of its rows.
fn followed(tables: &Tables, sql: &str) -> String {
    let logical = tables.logical(sql).unwrap();
    match tables.surrounded(|around| track(&logical, around)) {
        Ok(tracked) => {
            let plan = tracked.plan.display_indent().to_string();
            let Some(private) = tracked.private else { return format!("{plan}\npublic") };
            let unit = if private.element { "element" } else { "user" };
            let count = |rows: Option<u64>| rows.map_or_else(|| "?".to_owned(), |rows| rows.to_string());
            format!(
                "{plan}\n{unit} of {}; copies {}, rows of a user {}, of an element {}",
                private.dataset,
                count(private.copies),
                count(private.rows_of_user),
                count(private.rows_of_element)
            )
        }
        Err(Lost::Mixed) => "mixed".to_owned(),
        Err(Lost::Never(error)) => error.sentence,
    }
}

/// Whether a question comes out as written here, line by line.
fn check(name: &str, sql: &str, expected: &[&str]) {
    let (_scratch, tables) = tables(name);
    let found = followed(&tables, sql);
    assert_eq!(found.lines().collect::<Vec<_>>(), expected, "{sql}");
}

#[test]
fn a_scan_says_whose_each_row_is() {
    check(
        "track_scan",
        "SELECT shop FROM visits",
        &[
            "Projection: visits.shop, __whit_user, __whit_element",
            "  Projection: visits.id, visits.day, visits.shop, __whit_number(visits.seconds) AS seconds, visits.id AS __whit_user, visits.day AS __whit_element",
            "    Filter: visits.id IS NOT NULL",
            "      TableScan: visits",
            "element of visits; copies 1, rows of a user ?, of an element ?",
        ],
    );
}

#[test]
fn a_filter_keeps_the_unit() {
    check(
        "track_filter",
        "SELECT shop FROM visits WHERE seconds > 10",
        &[
            "Projection: visits.shop, __whit_user, __whit_element",
            "  Filter: visits.seconds > Int64(10)",
            "    Projection: visits.id, visits.day, visits.shop, __whit_number(visits.seconds) AS seconds, visits.id AS __whit_user, visits.day AS __whit_element",
            "      Filter: visits.id IS NOT NULL",
            "        TableScan: visits",
            "element of visits; copies 1, rows of a user ?, of an element ?",
        ],
    );
}

#[test]
fn another_name_keeps_the_unit() {
    check(
        "track_alias",
        "SELECT v.shop FROM visits AS v",
        &[
            "Projection: v.shop, v.__whit_user, v.__whit_element",
            "  SubqueryAlias: v",
            "    Projection: visits.id, visits.day, visits.shop, __whit_number(visits.seconds) AS seconds, visits.id AS __whit_user, visits.day AS __whit_element",
            "      Filter: visits.id IS NOT NULL",
            "        TableScan: visits",
            "element of visits; copies 1, rows of a user ?, of an element ?",
        ],
    );
}

#[test]
fn different_rows_of_a_user_are_that_users() {
    check(
        "track_distinct",
        "SELECT DISTINCT id, shop FROM visits",
        &[
            "Aggregate: groupBy=[[visits.id, visits.shop, __whit_user]], aggr=[[]]",
            "  Projection: visits.id, visits.shop, __whit_user, __whit_element",
            "    Projection: visits.id, visits.day, visits.shop, __whit_number(visits.seconds) AS seconds, visits.id AS __whit_user, visits.day AS __whit_element",
            "      Filter: visits.id IS NOT NULL",
            "        TableScan: visits",
            "user of visits; copies ?, rows of a user ?, of an element ?",
        ],
    );
}

#[test]
fn an_order_of_rows_is_left_out() {
    check(
        "track_sort",
        "SELECT shop FROM visits ORDER BY shop",
        &[
            "Projection: visits.shop, __whit_user, __whit_element",
            "  Projection: visits.id, visits.day, visits.shop, __whit_number(visits.seconds) AS seconds, visits.id AS __whit_user, visits.day AS __whit_element",
            "    Filter: visits.id IS NOT NULL",
            "      TableScan: visits",
            "element of visits; copies 1, rows of a user ?, of an element ?",
        ],
    );
}

#[test]
fn a_join_within_a_filter_keeps_the_unit() {
    check(
        "track_semi",
        "SELECT visits.shop FROM visits LEFT SEMI JOIN shops ON visits.shop = shops.shop",
        &[
            "Projection: visits.shop, __whit_user, __whit_element",
            "  LeftSemi Join: visits.shop = shops.shop",
            "    Projection: visits.id, visits.day, visits.shop, __whit_number(visits.seconds) AS seconds, visits.id AS __whit_user, visits.day AS __whit_element",
            "      Filter: visits.id IS NOT NULL",
            "        TableScan: visits",
            "    TableScan: shops",
            "element of visits; copies 1, rows of a user ?, of an element ?",
        ],
    );
}

#[test]
fn a_join_with_a_public_table_keeps_the_unit() {
    check(
        "track_public",
        "SELECT size FROM visits JOIN shops ON visits.shop = shops.shop",
        &[
            "Projection: shops.size, __whit_user, __whit_element",
            "  Inner Join: visits.shop = shops.shop",
            "    Projection: visits.id, visits.day, visits.shop, __whit_number(visits.seconds) AS seconds, visits.id AS __whit_user, visits.day AS __whit_element",
            "      Filter: visits.id IS NOT NULL",
            "        TableScan: visits",
            "    TableScan: shops",
            "element of visits; copies 1, rows of a user ?, of an element ?",
        ],
    );
}

#[test]
fn a_join_along_the_user_leaves_whole_users() {
    check(
        "track_along",
        "SELECT age FROM visits JOIN people ON visits.id = people.id",
        &[
            "Projection: people.age, __whit_user",
            "  Inner Join: visits.id = people.id",
            "    Projection: visits.id, visits.day, visits.shop, visits.seconds, __whit_user",
            "      Projection: visits.id, visits.day, visits.shop, __whit_number(visits.seconds) AS seconds, visits.id AS __whit_user, visits.day AS __whit_element",
            "        Filter: visits.id IS NOT NULL",
            "          TableScan: visits",
            "    Projection: people.id, people.age",
            "      Projection: people.id, people.age, people.id AS __whit_user",
            "        Filter: people.id IS NOT NULL",
            "          TableScan: people",
            "user of visits; copies ?, rows of a user ?, of an element ?",
        ],
    );
}

#[test]
fn an_aggregate_within_a_user_leaves_one_row_of_each() {
    check(
        "track_group",
        "SELECT id, COUNT(*) AS n FROM visits GROUP BY id",
        &[
            "Projection: visits.id, count(Int64(1)) AS count(*) AS n, __whit_user",
            "  Aggregate: groupBy=[[visits.id, __whit_user]], aggr=[[count(Int64(1)) AS count(Int64(1))]]",
            "    Projection: visits.id, visits.day, visits.shop, __whit_number(visits.seconds) AS seconds, visits.id AS __whit_user, visits.day AS __whit_element",
            "      Filter: visits.id IS NOT NULL",
            "        TableScan: visits",
            "user of visits; copies ?, rows of a user 1, of an element ?",
        ],
    );
}

#[test]
fn a_window_within_a_user_leaves_whole_users() {
    check(
        "track_window",
        "SELECT COUNT(*) OVER (PARTITION BY id) AS n FROM visits",
        &[
            "Projection: count(Int64(1)) PARTITION BY [visits.id] ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING AS count(*) PARTITION BY [visits.id] ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING AS n, __whit_user",
            "  Projection: visits.id, visits.day, visits.shop, visits.seconds, __whit_user, count(Int64(1)) PARTITION BY [visits.id] ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING",
            "    WindowAggr: windowExpr=[[count(Int64(1)) PARTITION BY [visits.id, __whit_user] ORDER BY [visits.id ASC NULLS FIRST, visits.day ASC NULLS FIRST, visits.shop ASC NULLS FIRST, visits.seconds ASC NULLS FIRST, __whit_user ASC NULLS FIRST, __whit_element ASC NULLS FIRST] ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING AS count(Int64(1)) PARTITION BY [visits.id] ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING]]",
            "      Projection: visits.id, visits.day, visits.shop, __whit_number(visits.seconds) AS seconds, visits.id AS __whit_user, visits.day AS __whit_element",
            "        Filter: visits.id IS NOT NULL",
            "          TableScan: visits",
            "user of visits; copies ?, rows of a user ?, of an element ?",
        ],
    );
}

#[test]
fn a_union_adds_up_what_a_unit_has() {
    check(
        "track_union",
        "SELECT shop FROM visits UNION ALL SELECT shop FROM visits",
        &[
            "Union",
            "  Projection: visits.shop, __whit_user AS __whit_user, __whit_element AS __whit_element",
            "    Projection: visits.shop, __whit_user, __whit_element",
            "      Projection: visits.id, visits.day, visits.shop, __whit_number(visits.seconds) AS seconds, visits.id AS __whit_user, visits.day AS __whit_element",
            "        Filter: visits.id IS NOT NULL",
            "          TableScan: visits",
            "  Projection: visits.shop, __whit_user AS __whit_user, __whit_element AS __whit_element",
            "    Projection: visits.shop, __whit_user, __whit_element",
            "      Projection: visits.id, visits.day, visits.shop, __whit_number(visits.seconds) AS seconds, visits.id AS __whit_user, visits.day AS __whit_element",
            "        Filter: visits.id IS NOT NULL",
            "          TableScan: visits",
            "element of visits; copies 2, rows of a user ?, of an element ?",
        ],
    );
}

#[test]
fn what_mixes_units_is_refused_by_name() {
    let (_scratch, tables) = tables("track_mixed");
    for (sql, message) in [
        ("SELECT shop, COUNT(*) FROM visits GROUP BY shop", "mixed"),
        ("SELECT a.shop FROM visits a JOIN visits b ON a.shop = b.shop", "not joined along the user"),
        ("SELECT COUNT(*) OVER (PARTITION BY shop) FROM visits", "reaches over the rows of several users"),
        ("SELECT shop FROM visits LIMIT 1", "which rows stay would depend on other units"),
        ("SELECT shop FROM shops LIMIT 1", "public"),
        ("SELECT shop FROM visits UNION ALL SELECT shop FROM shops", "UNION ALL of tables that do not all belong"),
        ("SELECT size FROM shops", "public"),
    ] {
        let found = followed(&tables, sql);
        assert!(found.contains(message), "{sql}: {found}");
    }
}

/// The second opinion is one: plans that tracking would never make are kept apart from those that it does.
#[test]
fn a_plan_that_mixes_users_is_not_taken_for_one_that_does_not() {
    let (_scratch, tables) = tables("track_again");
    let owners = whose::owners(tables.warehouse().declaration(), &tables.elements, &tables.scans);
    let of = |sql: &str| Whose::of(&tables.logical(sql).unwrap(), &owners);
    let users = |sql: &str| of(sql).unwrap().users.into_iter().collect::<Vec<_>>();
    assert_eq!(users("SELECT shop, id AS who FROM visits"), [1]);
    assert_eq!(
        users("SELECT id + 1 AS id, CAST(id AS SMALLINT) AS narrow, CAST(id AS TEXT) FROM visits"),
        Vec::<usize>::new()
    );
    assert_eq!(users("SELECT p.id, v.id FROM visits v LEFT JOIN people p ON v.id = p.id"), [1]);
    assert_eq!(users("SELECT size FROM shops"), Vec::<usize>::new());
    for (sql, why) in [
        ("SELECT shop, COUNT(*) FROM visits GROUP BY shop", "an aggregate"),
        ("SELECT a.id FROM visits a JOIN visits b ON a.shop = b.shop", "a join lets"),
        ("SELECT s.size FROM shops s LEFT JOIN visits v ON v.shop = s.shop", "belong to nobody"),
        ("SELECT COUNT(*) OVER (PARTITION BY shop) FROM visits", "a window"),
        ("SELECT shop FROM visits LIMIT 1", "not known to keep"),
    ] {
        assert!(of(sql).is_err_and(|message| message.contains(why)), "{sql}");
    }
}

/// Keys that are repeated have one column, so what stands behind them would be known by another's place.
#[test]
fn an_aggregate_with_other_columns_than_it_speaks_of_is_not_known() {
    let (_scratch, tables) = tables("track_repeated");
    let owners = whose::owners(tables.warehouse().declaration(), &tables.elements, &tables.scans);
    let input = Arc::new(tables.logical("SELECT id, shop, seconds FROM visits").unwrap());
    let column = |at: usize| Expr::from(input.schema().qualified_field(at));
    let of = |keys: Vec<Expr>| {
        let grouped = Aggregate::try_new(Arc::clone(&input), keys, Vec::new()).unwrap();
        Whose::of(&LogicalPlan::Aggregate(grouped), &owners)
    };
    assert!(of(vec![column(0), column(1)]).is_ok());
    assert!(of(vec![column(1), column(1), column(0)]).is_err_and(|why| why.contains("has 2 columns and speaks of 3")));
}

/// An element that is computed is found again behind joins with public tables and behind windows that stay within it, and nowhere where rows of several elements have met.
#[test]
fn a_computed_element_is_found_behind_joins_and_windows() {
    let (scratch, _) = tables("track_computed");
    let config = scratch.write("whit.toml", CONFIG.replace("'day'", "'lower(shop)'"));
    let tables = Tables::open(&config, Tuning { memory: None, threads: Some(1) }).unwrap();
    let by = "PARTITION BY id, lower(shop)";
    for (sql, kept) in [
        ("SELECT COUNT(*) FROM visits v JOIN shops s ON s.shop = v.shop AND v.shop IN (SELECT shop FROM shops)", true),
        (
            "SELECT COUNT(*) FROM visits v JOIN shops s ON s.shop = v.shop AND EXISTS (SELECT 1 FROM shops WHERE size > 1)",
            true,
        ),
        (
            &format!(
                "SELECT COUNT(*) FROM (SELECT RANK() OVER ({} ORDER BY v.day) AS r FROM visits v JOIN shops s ON s.shop = v.shop) WHERE r < 3",
                by.replace("id", "v.id").replace("(shop", "(v.shop")
            ),
            true,
        ),
        (
            &format!(
                "SELECT COUNT(*) FROM (SELECT RANK() OVER ({by} ORDER BY day) AS r, LAG(day) OVER ({by} ORDER BY seconds) AS l FROM visits) WHERE r < 3"
            ),
            true,
        ),
    ] {
        let planned = tables.plan(sql, &crate::plan::Asking::default());
        assert_eq!(planned.is_ok(), kept, "{sql}: {planned:?}");
    }
    let owners = whose::owners(tables.warehouse().declaration(), &tables.elements, &tables.scans);
    let elements = |sql: &str| Whose::of(&tables.logical(sql).unwrap(), &owners).unwrap().elements.len();
    assert_eq!(elements("SELECT lower(v.shop) FROM visits v JOIN shops s ON s.shop = v.shop"), 1);
    assert_eq!(elements("SELECT lower(s.shop) FROM visits v JOIN shops s ON s.shop = v.shop"), 0);
    assert_eq!(elements("SELECT lower(b.shop) FROM visits a JOIN visits b ON a.id = b.id"), 0);
    assert_eq!(elements("SELECT lower(shop), SUM(day) OVER (PARTITION BY id) FROM visits"), 0);
    assert_eq!(elements(&format!("SELECT lower(shop), SUM(day) OVER ({by}) FROM visits")), 1);
}

/// Whole numbers with and without a sign are compared as decimals, which keeps users apart.
#[test]
fn users_of_different_types_are_joined_and_run() {
    let (scratch, _) = tables("track_types");
    let ids = Arc::new(datafusion::arrow::array::UInt64Array::from(vec![1, 2]));
    scratch.parquet("people.parquet", vec![("id", ids.clone()), ("age", ids)]);
    let whole =
        CONFIG.replace("unit.protect = 'element'", "unit.protect = 'user'").replace("budget.element", "budget.user");
    let config = scratch.write("whit.toml", whole);
    let tables = Tables::open(&config, Tuning { memory: None, threads: Some(1) }).unwrap();
    let asking = crate::plan::Asking { rows: Some(3), ..Default::default() };
    let sql = "SELECT COUNT(*) FROM visits JOIN people ON visits.id = people.id";
    let plan = tables.plan(sql, &asking);
    assert_eq!(plan.map(|plan| plan.parts.len()), Ok(1)); // tried on made-up rows, too
}
