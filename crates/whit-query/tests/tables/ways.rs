//! Units that are declared in many ways, and every kind of question: what neighbours are tried with.

use crate::small::Dice;

/// A declared unit with its caps, and what a row keeps of itself when it changes.
pub(crate) struct Way {
    pub(crate) name: &'static str,
    pub(crate) unit: &'static str,
    /// Whether neighbours of a feature or label unit change all rows of one user.
    pub(crate) keyed: bool,
}

pub(crate) const WAYS: &[Way] = &[
    Way { name: "event, replace", unit: "unit.protect = \"event\"", keyed: false },
    Way { name: "event, add-remove", unit: "unit.protect = \"event\"\nunit.change = \"add-remove\"", keyed: false },
    Way { name: "event of users", unit: "unit.user = \"user_id\"\nunit.protect = \"event\"", keyed: false },
    Way {
        name: "event of users, add-remove, capped",
        unit: "unit.user = \"user_id\"\nunit.protect = \"event\"\nunit.change = \"add-remove\"\nunit.caps = { rows_per_user = 2 }",
        keyed: false,
    },
    Way {
        name: "event up to user",
        unit: "unit.user = \"user_id\"\nunit.element = \"day\"\nunit.protect = \"event\"\nunit.caps = { rows_per_element = 1, elements_per_user = 2 }",
        keyed: false,
    },
    Way {
        name: "element",
        unit: "unit.user = \"user_id\"\nunit.element = \"day\"\nunit.protect = \"element\"\nunit.caps = { rows_per_element = 3 }",
        keyed: false,
    },
    Way {
        name: "element up to user",
        unit: "unit.user = \"user_id\"\nunit.element = \"day\"\nunit.protect = \"element\"\nunit.caps = { elements_per_user = 2, rows_per_element = 2 }",
        keyed: false,
    },
    Way {
        name: "element up to user, add-remove",
        unit: "unit.user = \"user_id\"\nunit.element = \"day\"\nunit.protect = \"element\"\nunit.change = \"add-remove\"\nunit.caps = { elements_per_user = 2, rows_per_element = 2 }",
        keyed: false,
    },
    Way {
        name: "user, replace",
        unit: "unit.user = \"user_id\"\nunit.protect = \"user\"\nunit.caps = { rows_per_user = 4 }",
        keyed: false,
    },
    Way {
        name: "user, add-remove",
        unit: "unit.user = \"user_id\"\nunit.protect = \"user\"\nunit.change = \"add-remove\"\nunit.caps = { rows_per_user = 4 }",
        keyed: false,
    },
    Way {
        name: "user, replace, few rows in all",
        unit: "unit.user = \"user_id\"\nunit.protect = \"user\"\nunit.caps = { rows_per_user = 3, groups = 3 }",
        keyed: false,
    },
    Way {
        name: "user with elements",
        unit: "unit.user = \"user_id\"\nunit.element = \"day\"\nunit.protect = \"user\"\nunit.caps = { elements_per_user = 2, rows_per_element = 2 }",
        keyed: false,
    },
    Way { name: "feature", unit: "unit.public = [\"shop\", \"day\"]\nunit.protect = \"feature\"", keyed: false },
    Way {
        name: "feature of a user",
        unit: "unit.user = \"user_id\"\nunit.public = [\"shop\", \"day\"]\nunit.protect = \"feature\"\nunit.caps = { rows_per_user = 3 }",
        keyed: true,
    },
    Way { name: "label", unit: "unit.label = \"x\"\nunit.protect = \"label\"", keyed: false },
];

/// Everything that is a plain sum.
const PLAIN: &str = "COUNT(*), COUNT(x), COUNT(DISTINCT user_id), SUM(x), SUM(n), AVG(x), VAR(n), STDDEV_POP(x)";
/// Everything that looks at values inside of groups.
const INNER: &str = "COUNT(DISTINCT tag), COUNT(DISTINCT x), SUM(DISTINCT n), MEDIAN(x), APPROX_PERCENTILE_CONT(n, 0.9), MIN(n), MAX(x)";
/// No ties, save between rows that are equal.
const ORDER: &str = "ORDER BY n, x, shop, tag, day";

/// A window function of any kind, over any frame, with or without ties, over a user's rows or some of them.
pub(crate) fn any_window(dice: &mut Dice) -> String {
    let function = dice.of(&[
        "SUM(n % 7)",
        "COUNT(x)",
        "MIN(n)",
        "MAX(x)",
        "AVG(n % 7)",
        "MEDIAN(n)",
        "first_value(n)",
        "last_value(x)",
        "nth_value(n, 2)",
        "lag(n)",
        "lead(n, 2)",
        "row_number()",
        "ntile(2)",
        "rank()",
        "dense_rank()",
        "cume_dist()",
    ]);
    let partition = dice.of(&["user_id", "user_id, day", "day, user_id", "user_id, shop", "user_id, tag, x > 1"]);
    let order =
        dice.of(&["", "ORDER BY shop", "ORDER BY day DESC", "ORDER BY tag, day", "ORDER BY n", "ORDER BY x, shop"]);
    let frame = dice.of(&[
        "",
        "",
        "ROWS BETWEEN 1 PRECEDING AND CURRENT ROW",
        "ROWS BETWEEN UNBOUNDED PRECEDING AND 1 FOLLOWING",
        "ROWS BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING",
        "ROWS 2 PRECEDING",
        "ROWS UNBOUNDED PRECEDING",
        "RANGE BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW",
        "RANGE BETWEEN 1 PRECEDING AND 1 FOLLOWING",
        "GROUPS BETWEEN 1 PRECEDING AND CURRENT ROW",
    ]);
    format!("{function} OVER (PARTITION BY {partition} {order} {frame})")
}

/// Questions; T is the table, PLAIN and INNER are lists of aggregates, ORDER is an order without ties, WINDOW and WINDOW2 are windows of any kind.
pub(crate) const QUESTIONS: &[&str] = &[
    "SELECT PLAIN FROM T",
    "SELECT INNER FROM T",
    "SELECT shop, PLAIN FROM T GROUP BY shop",
    "SELECT shop, INNER FROM T GROUP BY shop",
    "SELECT tag, PLAIN FROM T GROUP BY tag",
    "SELECT tag, INNER FROM T GROUP BY tag",
    "SELECT day, PLAIN FROM T GROUP BY day",
    "SELECT day, INNER FROM T GROUP BY day",
    "SELECT x, COUNT(*), SUM(n) FROM T GROUP BY x",
    "SELECT shop, tag, COUNT(*), SUM(x) FROM T GROUP BY shop, tag",
    "SELECT day, shop, COUNT(*), COUNT(DISTINCT user_id), SUM(x) FROM T GROUP BY day, shop",
    "SELECT DISTINCT tag FROM T",
    "SELECT user_id % 2, PLAIN FROM T GROUP BY user_id % 2",
    "SELECT shop, PLAIN FROM T WHERE x > 1 GROUP BY shop",
    "SELECT shop, INNER FROM T WHERE n > 3 GROUP BY shop",
    "SELECT PLAIN FROM T WHERE shop = 'a' OR x IS NULL",
    "SELECT CASE WHEN x > 2 THEN 'high' ELSE 'low' END, PLAIN FROM T GROUP BY 1",
    "SELECT x > 1, PLAIN FROM T GROUP BY x > 1",
    "SELECT bin(x, -2.0, 6.0, 4), COUNT(*), SUM(n) FROM T GROUP BY 1",
    "SELECT SUM(CASE WHEN n > 3 THEN x ELSE 0 END), COUNT(CASE WHEN n > 3 THEN 1 END), SUM(clamp(x * n, -5, 5)) FROM T",
    "SELECT shop, COUNT(*) FILTER (WHERE x > 0), SUM(x) FILTER (WHERE n > 3), MEDIAN(x) FILTER (WHERE n > 3) FROM T GROUP BY shop",
    "SELECT region, COUNT(*), SUM(x), COUNT(DISTINCT user_id), MEDIAN(x) FROM T JOIN regions ON T.shop = regions.shop GROUP BY region",
    "SELECT COUNT(*), SUM(x), COUNT(DISTINCT tag), MEDIAN(x) FROM T LEFT JOIN regions ON T.shop = regions.shop",
    "SELECT season, COUNT(*), SUM(x), COUNT(DISTINCT user_id) FROM T JOIN seasons ON T.day = seasons.day GROUP BY season",
    "SELECT season, COUNT(*), SUM(x) FROM T JOIN seasons ON T.n = seasons.day GROUP BY season",
    "SELECT COUNT(*), SUM(a.x), COUNT(DISTINCT a.user_id) FROM T a JOIN T b ON a.user_id = b.user_id AND a.day < b.day",
    "SELECT a.shop, COUNT(*), SUM(a.x) FROM T a JOIN T b ON a.user_id = b.user_id AND a.n = b.n GROUP BY a.shop",
    "SELECT b.tag, COUNT(*), SUM(a.x) FROM T a LEFT JOIN T b ON a.user_id = b.user_id AND a.day = b.day + 1 GROUP BY b.tag",
    "SELECT shop, PLAIN FROM (SELECT user_id, shop, tag, x, n FROM T UNION ALL SELECT user_id, shop, tag, x, n FROM T WHERE x > 0) GROUP BY shop",
    "SELECT tag, INNER FROM (SELECT user_id, shop, tag, x, n FROM T UNION ALL SELECT user_id, shop, shop, x, n FROM T) GROUP BY tag",
    "SELECT k, COUNT(*), COUNT(DISTINCT user_id) FROM (SELECT user_id, day AS k FROM T UNION ALL SELECT user_id, 7 AS k FROM T) GROUP BY k",
    "SELECT k, COUNT(*), SUM(x) FROM (SELECT day AS k, x FROM T UNION ALL SELECT day + 1, x FROM T) GROUP BY k",
    "SELECT shop, COUNT(*), SUM(x) FROM (SELECT *, row_number() OVER (PARTITION BY user_id ORDER) AS k FROM T) WHERE k <= 2 GROUP BY shop",
    "SELECT day, COUNT(*), SUM(x) FROM (SELECT *, row_number() OVER (PARTITION BY user_id, day ORDER) AS k FROM T) WHERE k = 1 GROUP BY day",
    "SELECT SUM(clamp(d, -2, 2)), COUNT(d) FROM (SELECT x - lag(x) OVER (PARTITION BY user_id ORDER) AS d FROM T)",
    "SELECT COUNT(*), SUM(clamp(c, 0, 5)), SUM(m), MEDIAN(m) FROM (SELECT user_id, COUNT(*) AS c, MAX(x) AS m FROM T GROUP BY user_id)",
    "SELECT COUNT(*) FROM (SELECT user_id, COUNT(*) AS c FROM T GROUP BY user_id) WHERE c = 2",
    "SELECT c, COUNT(*) FROM (SELECT user_id, COUNT(*) AS c FROM T GROUP BY user_id) GROUP BY c",
    "SELECT day, COUNT(*), SUM(clamp(c, 0, 5)), COUNT(DISTINCT user_id) FROM (SELECT user_id, day, COUNT(*) AS c FROM T GROUP BY user_id, day) GROUP BY day",
    "SELECT c, COUNT(*) FROM (SELECT user_id, day, COUNT(*) AS c FROM T GROUP BY user_id, day) GROUP BY c",
    "SELECT shop, COUNT(*), SUM(m) FROM (SELECT user_id, shop, MAX(n) AS m FROM T GROUP BY user_id, shop) GROUP BY shop",
    "SELECT COUNT(*), SUM(c) FROM (SELECT user_id, MAX(n) AS c FROM T GROUP BY user_id UNION ALL SELECT user_id, MIN(n) AS c FROM T GROUP BY user_id)",
    "SELECT u IS NULL, COUNT(*), SUM(m) FROM (SELECT b.user_id AS u, MAX(a.x) AS m FROM T a LEFT JOIN T b ON a.user_id = b.user_id AND a.day = b.day + 1 GROUP BY b.user_id) GROUP BY u IS NULL",
    "SELECT COUNT(*), SUM(x) FROM (SELECT a.x AS x, row_number() OVER (PARTITION BY b.user_id ORDER BY a.n, a.x, a.shop, a.tag, a.day, a.user_id) AS k FROM T a LEFT JOIN T b ON a.user_id = b.user_id AND a.day = b.day + 1) WHERE k % 2 = 0",
    "SELECT COUNT(w), SUM(clamp(w, -5, 5)) FROM (SELECT WINDOW AS w FROM T)",
    "SELECT shop, COUNT(w), SUM(clamp(w, -5, 5)), MEDIAN(clamp(w, 0, 4)) FROM (SELECT *, WINDOW AS w FROM T) GROUP BY shop",
    "SELECT day, COUNT(*), SUM(x) FROM (SELECT *, WINDOW AS w, WINDOW2 AS v FROM T) WHERE w > 2 OR v > 1 GROUP BY day",
    "SELECT w > 1, COUNT(*) FROM (SELECT *, WINDOW AS w FROM (SELECT *, WINDOW2 AS v FROM T) WHERE v IS NOT NULL) GROUP BY w > 1",
    "SELECT COUNT(*), SUM(T.x) FROM regions, T WHERE T.shop = regions.shop AND x > 0",
    "SELECT a.shop, COUNT(*), SUM(b.n), AVG(b.n) FROM T a, T b WHERE a.user_id = b.user_id GROUP BY a.shop",
    "SELECT CORR(x, n), REGR_SLOPE(n, x), COVAR_POP(n, x), REGR_AVGX(x, n) FROM T",
    "SELECT shop, CORR(x, n), REGR_COUNT(n, x), COUNT(*) FROM T GROUP BY shop",
    "SELECT shop, tag, COUNT(*), SUM(x), COUNT(DISTINCT user_id), MEDIAN(n) FROM T GROUP BY ROLLUP (shop, tag)",
    "SELECT width_bucket(x, 0, 5, 3), x > 1, COUNT(*), SUM(n), APPROX_DISTINCT(tag) FROM T GROUP BY CUBE (1, 2)",
];

pub(crate) fn question(template: &str, table: &str) -> String {
    let text = template
        .replace("ORDER)", &format!("{ORDER})"))
        .replace("PLAIN", PLAIN)
        .replace("INNER FROM", &format!("{INNER} FROM"));
    text.replace("FROM T", &format!("FROM {table}"))
        .replace("JOIN T ", &format!("JOIN {table} "))
        .replace(", T ", &format!(", {table} "))
        .replace("T.", &format!("{table}."))
}
