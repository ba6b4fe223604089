//! An audit: two neighbours, thousands of releases of each, and the best test that can be found to tell them apart.
//!
//! An event is chosen on one half of the runs and its two probabilities are bounded on the other half (Clopper and
//! Pearson 1934), so that the loss found is a lower bound with a stated chance of being wrong. It must not be above the loss that was claimed.

use crate::room::{Room, asking};
use crate::small::{Row, declare, write, write_public};
use whit_query::plan::Asking;
use whit_query::{Tables, Value};

/// The chance that any of the bounds of one audit is wrong.
const FALSE_ALARM: f64 = 1e-6;
/// Two bounds for each of at most so many tests.
const TESTS: f64 = 30.0;
const TIMES: usize = 4000;

type Run = Vec<(Vec<Value>, Vec<Value>)>;

/// The chance that of n tosses at least k succeed, from the sum of its logarithms.
fn at_least(k: usize, n: usize, p: f64, factorials: &[f64]) -> f64 {
    if k == 0 || p >= 1.0 {
        return 1.0;
    }
    if p <= 0.0 {
        return 0.0;
    }
    let term = |i: usize| {
        factorials[n] - factorials[i] - factorials[n - i] + i as f64 * p.ln() + (n - i) as f64 * (-p).ln_1p()
    };
    (k..=n).map(|i| term(i).exp()).sum::<f64>().min(1.0)
}

fn factorials(n: usize) -> Vec<f64> {
    let mut sums = vec![0.0; n + 1];
    for i in 1..=n {
        sums[i] = sums[i - 1] + (i as f64).ln();
    }
    sums
}

/// Below this the probability lies with a chance of at most `wrong`, when k of n succeeded.
fn lower(k: usize, n: usize, wrong: f64, factorials: &[f64]) -> f64 {
    let (mut low, mut high) = (0.0, k as f64 / n as f64);
    for _ in 0..50 {
        let middle = f64::midpoint(low, high);
        if at_least(k, n, middle, factorials) <= wrong { low = middle } else { high = middle }
    }
    low
}

fn upper(k: usize, n: usize, wrong: f64, factorials: &[f64]) -> f64 {
    1.0 - lower(n - k, n, wrong, factorials)
}

/// A lower bound on ε at δ, from scores of runs on two neighbours.
fn loss(one: &[f64], other: &[f64], delta: f64) -> f64 {
    let half = one.len() / 2;
    let n = one.len() - half;
    let factorials = factorials(n);
    let wrong = FALSE_ALARM / (2.0 * TESTS);
    let count = |scores: &[f64], at: f64, above: bool| {
        scores.iter().filter(|&&score| if above { score >= at } else { score < at }).count()
    };
    let bound = |p: f64, q: f64| if p > delta { ((p - delta) / q.max(1e-300)).ln() } else { f64::NEG_INFINITY };
    // The event is chosen on the first half, among quantiles of both, both sides and both directions, by the very bound that it is to give.
    let mut cuts: Vec<f64> = one[..half].iter().chain(&other[..half]).copied().collect();
    cuts.sort_by(f64::total_cmp);
    let mut best = (f64::NEG_INFINITY, cuts[0], true, true);
    for &cut in cuts.iter().step_by((cuts.len() / 60).max(1)) {
        for (above, straight) in [(true, true), (true, false), (false, true), (false, false)] {
            let (first, second) = if straight { (one, other) } else { (other, one) };
            let (k, l) = (count(&first[..half], cut, above), count(&second[..half], cut, above));
            let found = bound(lower(k, half, wrong, &factorials[..=half]), upper(l, half, wrong, &factorials[..=half]));
            if found > best.0 {
                best = (found, cut, above, straight);
            }
        }
    }
    let (_, cut, above, straight) = best;
    let (first, second) = if straight { (one, other) } else { (other, one) };
    let (k, l) = (count(&first[half..], cut, above), count(&second[half..], cut, above));
    bound(lower(k, n, wrong, &factorials), upper(l, n, wrong, &factorials)).max(0.0)
}

fn number(value: &Value) -> f64 {
    match value {
        Value::Int(value) => *value as f64,
        Value::Float(value) => *value,
        _ => 0.0,
    }
}

/// All numbers of a run, added up; a group that does not show adds nothing, and one that shows adds a hundredth.
fn total(run: &Run) -> f64 {
    run.iter().map(|(_, values)| 0.01 + values.iter().map(number).sum::<f64>()).sum()
}

/// The first group less the second.
fn contrast(run: &Run) -> f64 {
    let at = |i: usize| run.get(i).map_or(0.0, |(_, values)| values.iter().map(number).sum());
    at(0) - at(1)
}

/// The first two groups together.
fn pair(run: &Run) -> f64 {
    run.iter().take(2).flat_map(|(_, values)| values).map(number).sum()
}

struct Case {
    name: &'static str,
    unit: &'static str,
    sql: &'static str,
    asking: Asking,
    one: Vec<Row>,
    other: Vec<Row>,
    score: fn(&Run) -> f64,
    times: usize,
    /// Whether the noise is so near to the loss that a quarter of the claim is seen to be too little.
    tight: bool,
}

fn row(user: i64, day: i64, shop: &'static str, tag: &'static str, x: f64, n: i64) -> Row {
    Row { user: Some(user), day: Some(day), shop, tag: Some(tag), x: Some(x), n: Some(n) }
}

/// Users 100 and up, who are the same in both.
fn others() -> Vec<Row> {
    (0..6).map(|i| row(100 + i, i % 4, ["a", "b", "c"][i as usize % 3], "p", 1.0, 5)).collect()
}

fn with(rows: Vec<Row>) -> Vec<Row> {
    others().into_iter().chain(rows).collect()
}

const USER: &str =
    "unit.user = \"user_id\"\nunit.protect = \"user\"\nunit.change = \"add-remove\"\nunit.caps = { rows_per_user = 3 }";
const REPLACE: &str = "unit.user = \"user_id\"\nunit.protect = \"user\"\nunit.caps = { rows_per_user = 3 }";
const ELEMENT: &str = "unit.user = \"user_id\"\nunit.element = \"day\"\nunit.protect = \"element\"\nunit.caps = { elements_per_user = 4, rows_per_element = 2 }";
const EVENT: &str = "unit.protect = \"event\"";
const FEATURE: &str = "unit.public = [\"shop\", \"day\"]\nunit.protect = \"feature\"";

fn pure(epsilon: f64) -> Asking {
    Asking { epsilon: Some(epsilon), delta: Some(0.0), groups: Some(1), rows: Some(3), ..Asking::default() }
}

fn gaussian(epsilon: f64) -> Asking {
    Asking { epsilon: Some(epsilon), delta: Some(1e-3), groups: Some(2), rows: Some(3), ..asking(epsilon) }
}

impl Case {
    /// The same with four times the runs: Gaussian tails show a loss only to many of them.
    fn longer(self) -> Self {
        Self { times: 4 * self.times, ..self }
    }
}

fn cases() -> Vec<Case> {
    // More rows than the cap allows: what is beyond it must not be seen.
    let crowd = |shop: &'static str, x: f64| (0..9).map(|i| row(1, i % 4, shop, "q", x, 10)).collect::<Vec<_>>();
    let case = |name, unit, sql, asking, one: Vec<Row>, other: Vec<Row>, score, tight| Case {
        name,
        unit,
        sql,
        asking,
        one: with(one),
        other: with(other),
        score,
        times: TIMES,
        tight,
    };
    vec![
        case("rows, Laplace", USER, "SELECT COUNT(*) FROM t", pure(2.0), crowd("a", 1.0), vec![], total, true),
        case(
            "sums by shop, Laplace",
            REPLACE,
            "SELECT shop, SUM(x) FROM t GROUP BY shop",
            pure(2.0),
            crowd("a", 6.0),
            crowd("b", 6.0),
            contrast,
            true,
        ),
        case("mean, Laplace", USER, "SELECT AVG(x) FROM t", pure(4.0), crowd("a", 6.0), vec![], total, false),
        case("rows, Gaussian", USER, "SELECT COUNT(*) FROM t", gaussian(4.0), crowd("a", 1.0), vec![], total, true)
            .longer(),
        case(
            "users by shop",
            USER,
            "SELECT shop, COUNT(DISTINCT user_id) FROM t GROUP BY shop",
            gaussian(4.0),
            [crowd("a", 1.0), crowd("b", 1.0)].concat(),
            vec![],
            pair,
            true,
        )
        .longer(),
        case(
            "private keys",
            USER,
            "SELECT tag, COUNT(*) FROM t GROUP BY tag",
            gaussian(4.0),
            [crowd("a", 1.0), (10..14).map(|user| row(user, 0, "a", "q", 1.0, 1)).collect()].concat(),
            (10..14).map(|user| row(user, 0, "a", "q", 1.0, 1)).collect(),
            total,
            false,
        ),
        Case {
            times: 1000,
            ..case("median", USER, "SELECT MEDIAN(x) FROM t", gaussian(4.0), crowd("a", 6.0), vec![], total, false)
        },
        case(
            "one element",
            ELEMENT,
            "SELECT COUNT(*), SUM(x) FROM t",
            gaussian(4.0),
            vec![row(1, 0, "a", "q", 6.0, 1); 5],
            vec![],
            total,
            false,
        ),
        case(
            "one event",
            EVENT,
            "SELECT SUM(n) FROM t WHERE x > 0",
            pure(2.0),
            vec![row(1, 0, "a", "q", 6.0, 99)],
            vec![row(1, 0, "a", "q", -1.0, 99)],
            total,
            true,
        ),
        case(
            "features",
            FEATURE,
            "SELECT shop, SUM(x) FROM t GROUP BY shop",
            pure(2.0),
            vec![row(1, 0, "a", "q", 60.0, 9)],
            vec![row(1, 0, "a", "q", -60.0, 9)],
            contrast,
            true,
        ),
        case(
            "different values",
            USER,
            "SELECT COUNT(DISTINCT tag) FROM t",
            pure(2.0),
            vec![row(1, 0, "a", "q", 0.0, 0), row(1, 0, "a", "r", 0.0, 0), row(1, 0, "a", "s", 0.0, 0)],
            vec![],
            total,
            true,
        ),
        case(
            "the sum of different values",
            USER,
            "SELECT SUM(DISTINCT n) FROM t",
            pure(2.0),
            vec![row(1, 0, "a", "q", 0.0, 10), row(1, 0, "a", "r", 0.0, 9), row(1, 0, "a", "s", 0.0, 8)],
            vec![],
            total,
            true,
        ),
    ]
}

/// Scores of one table's runs, and the prices by rung.
fn scores(room: &Room, case: &Case, rows: &[Row]) -> (Vec<f64>, Vec<whit_query::Price>) {
    write(room, "t.parquet", rows);
    let tables: Tables = room.tables(&declare(&["t".to_owned()], case.unit));
    let audited = tables
        .release_many_for_audit(case.sql, &case.asking, case.times)
        .unwrap_or_else(|error| panic!("{}: {error:?}", case.name));
    (audited.runs.iter().map(case.score).collect(), audited.prices)
}

/// False alarm: once in a million runs of the whole audit.
#[test]
fn audited_queries_never_show_more_than_they_claim() {
    let mut seen = Vec::new();
    for (i, case) in cases().iter().enumerate() {
        let room = Room::new(&format!("audit_{i}"));
        write_public(&room);
        let ((one, prices), (other, twin)) = (scores(&room, case, &case.one), scores(&room, case, &case.other));
        assert_eq!(prices, twin, "{}: a price depends on the data", case.name);
        let price = &prices[0];
        let asked = case.asking.epsilon.unwrap();
        assert!(price.epsilon <= asked * (1.0 + 1e-6), "{}: {price:?}", case.name);
        let found = loss(&one, &other, price.delta);
        seen.push(format!("{}: at least {found:.3} of {:.3}", case.name, price.epsilon));
        assert!(
            found <= price.epsilon,
            "{}: the loss is at least {found}, and {} was claimed at δ = {}",
            case.name,
            price.epsilon,
            price.delta
        );
        // The broken twin: a claim of a quarter of it would be found out.
        assert!(
            !case.tight || found > price.epsilon / 4.0,
            "{}: the audit sees only {found} of {}: {seen:#?}",
            case.name,
            price.epsilon
        );
    }
    assert!(seen.len() >= 10);
}

/// What holds for one element does not hold for one user with four of them: an audit that takes the one for the other sees it.
#[test]
fn an_audit_sees_a_user_behind_the_price_of_an_element() {
    let room = Room::new("audit_user");
    write_public(&room);
    let whole: Vec<Row> = (0..4).flat_map(|day| vec![row(1, day, "a", "q", 6.0, 1); 5]).collect();
    let case = Case {
        name: "one user",
        unit: ELEMENT,
        sql: "SELECT COUNT(*) FROM t",
        asking: Asking { rows: None, ..pure(0.5) },
        one: with(whole),
        other: with(Vec::new()),
        score: total,
        times: TIMES,
        tight: true,
    };
    let ((one, prices), (other, _)) = (scores(&room, &case, &case.one), scores(&room, &case, &case.other));
    let found = loss(&one, &other, 0.0);
    assert_eq!(prices.len(), 2);
    assert!(found > prices[0].epsilon, "{found} of {}", prices[0].epsilon);
    assert!(found <= prices[1].epsilon, "{found} of {}", prices[1].epsilon);
}

#[test]
fn the_bounds_of_an_audit_are_those_of_the_tables() {
    let factorials = factorials(100);
    // 10 of 100 at 95 %, two-sided: 0.0490 to 0.1762.
    assert!((lower(10, 100, 0.025, &factorials) - 0.0490).abs() < 1e-4);
    assert!((upper(10, 100, 0.025, &factorials) - 0.1762).abs() < 1e-4);
    assert!(lower(0, 100, 0.025, &factorials) < 1e-12);
    assert!((upper(0, 100, 0.025, &factorials) - 0.0362).abs() < 1e-4);
}
