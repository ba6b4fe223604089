//! Races whit against the engine it stands on: the plain query, the two-level aggregate that one would write by hand,
//! and whit's own, on the same data, in the same process and session, lap by lap in turns.
//!
//! `race <folder> [laps]` reads `whit.toml` in the folder (bench/tables/run.sh puts race.toml there) and prints JSON.
//! Opening is not timed, neither ours (which fingerprints the files) nor the engine's. Everything after it is: planning,
//! the engine, noise, and a charge that is durable in a ledger.

use serde_json::{Value, json};
use std::error::Error;
use std::io::Write;
use std::path::Path;
use std::time::Instant;
use whit_account::ledger::Books;
use whit_core::declare::Declaration;
use whit_query::Tables;
use whit_query::plan::Asking;
use whit_query::source::Tuning;
use whit_query::source::owner::Owner;

type Fallible<T> = Result<T, Box<dyn Error>>;

/// What is required of whit's time: at most so many times the time of the other.
#[derive(Clone, Copy)]
enum Limit {
    /// Against the plain query.
    Plain(f64),
    /// Against the two-level aggregate by hand.
    ByHand(f64),
    /// Reported next to the peers' times by whoever reads this.
    None,
}

/// One question, asked three ways. `{table}` is the data set's name.
struct Race {
    name: &'static str,
    dataset: &'static str,
    /// As whit is asked, and as the engine is asked without privacy.
    ask: &'static str,
    /// Grouped by unit and key, bounded, then by key; by hand, and without a bound on the number of groups.
    by_hand: Option<&'static str>,
    limit: Limit,
}

/// A race at the event's rung, which the plain query is the measure of.
const fn event(name: &'static str, ask: &'static str) -> Race {
    Race { name, dataset: "visits_event", ask, by_hand: None, limit: Limit::Plain(1.1) }
}

/// A race at a rung that takes two levels.
const fn levels(name: &'static str, dataset: &'static str, ask: &'static str, by_hand: &'static str) -> Race {
    Race { name, dataset, ask, by_hand: Some(by_hand), limit: Limit::ByHand(1.2) }
}

/// A race that the peers run too: report.py knows these by name.
const fn small(name: &'static str, ask: &'static str, by_hand: &'static str) -> Race {
    Race { name, dataset: "small_user", ask, by_hand: Some(by_hand), limit: Limit::None }
}

const EPSILON: f64 = 1.0;

const COUNT_BY_KEY: &str = "SELECT key, COUNT(*) AS n FROM {table} GROUP BY key";
const COUNT_BY_SITE: &str = "SELECT site, COUNT(*) AS n FROM {table} GROUP BY site";
const SUM_BY_KEY: &str = "SELECT key, SUM(value) AS total FROM {table} GROUP BY key";
const USER_COUNT_BY_KEY: &str = "SELECT key, SUM(LEAST(n, 5)) AS n FROM \
    (SELECT user_id, key, COUNT(*) AS n FROM {table} GROUP BY user_id, key) GROUP BY key";
const USER_COUNT_BY_SITE: &str = "SELECT site, SUM(LEAST(n, 5)) AS n FROM \
    (SELECT user_id, site, COUNT(*) AS n FROM {table} GROUP BY user_id, site) GROUP BY site";
const USER_SUM_BY_KEY: &str = "SELECT key, SUM(LEAST(total, 500)) AS total FROM \
    (SELECT user_id, key, SUM(LEAST(GREATEST(value, 0), 100)) AS total FROM {table} GROUP BY user_id, key) \
    GROUP BY key";
const USERS_BY_KEY: &str = "SELECT key, COUNT(DISTINCT user_id) AS users FROM {table} GROUP BY key";
const USERS_BY_KEY_BY_HAND: &str = "SELECT key, COUNT(*) AS users FROM \
    (SELECT user_id, key FROM {table} GROUP BY user_id, key) GROUP BY key";
const MONTH_COUNT_BY_SITE: &str = "SELECT site, SUM(LEAST(n, 5)) AS n FROM \
    (SELECT user_id, date_trunc('month', day) AS month, site, COUNT(*) AS n FROM {table} \
    GROUP BY user_id, month, site) GROUP BY site";

const MONTH_BY_SITE: &str = "SELECT site, COUNT(*) AS n, SUM(value) AS total, AVG(value) AS mean FROM {table} \
    WHERE day BETWEEN DATE '2025-03-01' AND DATE '2025-03-31' GROUP BY site";

const RACES: &[Race] = &[
    event("event: count by number", COUNT_BY_KEY),
    event("event: count by text", COUNT_BY_SITE),
    event("event: sum by number", SUM_BY_KEY),
    // A twelfth of the rows, so that what does not depend on them shows most: a durable charge, prices, intervals.
    event("event: count, sum and average of a month by text", MONTH_BY_SITE),
    levels("user: count by number", "visits_user", COUNT_BY_KEY, USER_COUNT_BY_KEY),
    levels("user: count by text", "visits_user", COUNT_BY_SITE, USER_COUNT_BY_SITE),
    levels("user: sum by number", "visits_user", SUM_BY_KEY, USER_SUM_BY_KEY),
    levels("user: different users by number", "visits_user", USERS_BY_KEY, USERS_BY_KEY_BY_HAND),
    levels("element (user, site): count by site", "visits_site", COUNT_BY_SITE, USER_COUNT_BY_SITE),
    levels("element (user, month): count by site", "visits_month", COUNT_BY_SITE, MONTH_COUNT_BY_SITE),
    small("small: count", COUNT_BY_KEY, USER_COUNT_BY_KEY),
    small("small: sum", SUM_BY_KEY, USER_SUM_BY_KEY),
];

/// whit's answer: the seconds that it took, and how many groups came out. Each lap asks for a hair more ε, so that none is answered from the
/// ledger; the ledger knows the files after the first.
fn whit_query(tables: &Tables, books: &mut Books, sql: &str, lap: usize) -> Fallible<(f64, usize)> {
    let asking = Asking { epsilon: Some(EPSILON + 1e-6 * lap as f64), ..Asking::default() };
    let start = Instant::now();
    let answer = whit_query::ask(tables, sql, &asking, books, "race").map_err(|error| format!("{sql}: {error}"))?;
    Ok((start.elapsed().as_secs_f64(), answer.rows.len()))
}

/// The engine's own answer to a query: the seconds that it took, and how many rows came out.
fn engine_query(tables: &Tables, sql: &str) -> Fallible<(f64, usize)> {
    let start = Instant::now();
    let rows = tables.rows_without_privacy(&Owner::who_may_see_every_row(), sql)?;
    Ok((start.elapsed().as_secs_f64(), rows))
}

/// The laps of one contestant.
#[derive(Default)]
struct Laps {
    seconds: Vec<f64>,
    groups: usize,
}

impl Laps {
    fn add(&mut self, (seconds, groups): (f64, usize)) {
        self.seconds.push(seconds);
        self.groups = groups;
    }

    /// What else runs on the machine can only add time.
    fn fastest(&self) -> f64 {
        self.seconds.iter().copied().fold(f64::INFINITY, f64::min)
    }

    /// The middle one, or the upper of two.
    fn median(&self) -> f64 {
        let mut sorted = self.seconds.clone();
        sorted.sort_by(f64::total_cmp);
        sorted.get(sorted.len() / 2).copied().unwrap_or(f64::INFINITY)
    }

    fn json(&self) -> Value {
        json!({ "fastest": self.fastest(), "median": self.median(), "laps": self.seconds, "groups": self.groups })
    }
}

/// One race. The first round warms the caches and the allocator and is not counted.
fn run(race: &Race, tables: &Tables, folder: &Path, laps: usize) -> Fallible<Value> {
    let query = |template: &str| template.replace("{table}", race.dataset);
    let (mut plain, mut by_hand, mut whit) = (Laps::default(), Laps::default(), Laps::default());
    let ledger = folder.join(format!("{}.ledger", race.name.replace([' ', ':', ',', '(', ')'], "-")));
    let mut books = Books::open(&ledger)?;
    for lap in 0..=laps {
        let first = engine_query(tables, &query(race.ask))?;
        let second = match race.by_hand {
            Some(sql) => Some(engine_query(tables, &query(sql))?),
            None => None,
        };
        let third = whit_query(tables, &mut books, &query(race.ask), lap)?;
        if lap > 0 {
            plain.add(first);
            whit.add(third);
            if let Some(second) = second {
                by_hand.add(second);
            }
        }
    }
    let (against, limit) = match race.limit {
        Limit::Plain(limit) => (Some("plain"), Some(limit)),
        Limit::ByHand(limit) => (Some("by_hand"), Some(limit)),
        Limit::None => (None, None),
    };
    let over =
        |other: &Laps| json!({ "fastest": whit.fastest() / other.fastest(), "median": whit.median() / other.median() });
    Ok(json!({
        "name": race.name,
        "whit": whit.json(),
        "plain": plain.json(),
        "by_hand": race.by_hand.map(|_| by_hand.json()),
        "over_plain": over(&plain),
        "over_by_hand": race.by_hand.map(|_| over(&by_hand)),
        "against": against,
        "limit": limit,
    }))
}

fn races(folder: &Path, laps: usize, threads: usize) -> Fallible<Value> {
    let declaration = Declaration::parse(&std::fs::read_to_string(folder.join("whit.toml"))?)?;
    let start = Instant::now();
    let tables = Tables::of(declaration, folder, Tuning { memory: None, threads: Some(threads) })?;
    let opening = start.elapsed().as_secs_f64();
    let mut rows = Vec::new();
    for race in RACES {
        rows.push(run(race, &tables, folder, laps)?);
        writeln!(std::io::stderr(), "  {}", race.name)?;
    }
    Ok(json!({ "rows": rows, "threads": threads, "laps": laps, "opening_seconds": opening }))
}

fn main() -> Fallible<()> {
    let mut arguments = std::env::args().skip(1);
    let folder = arguments.next().ok_or("which folder? `race <folder> [laps]`")?;
    let laps = arguments.next().map_or(Ok(5), |word| word.parse())?;
    let threads = std::thread::available_parallelism()?.get();
    let report = races(Path::new(&folder), laps, threads)?;
    writeln!(std::io::stdout(), "{report}")?;
    Ok(())
}
