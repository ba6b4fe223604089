//! Random small tables, their neighbours at every unit, and every kind of question: no measure moves further than was planned.
//!
//! Noise is drawn over the figures of [`whit_query::plan::Measure::moved`]. If one of them is too small for some pair of neighbours,
//! the promise is broken, whatever the noise is like; here such a pair is looked for.

use crate::room::Room;
use crate::small::{Dice, Row, any_day, any_row, any_rows, any_user, declare, write, write_public, write_with};
use crate::ways::{QUESTIONS, WAYS, Way, any_window, question};
use datafusion::parquet::file::properties::EnabledStatistics;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::sync::OnceLock;
use whit_core::unit::{Change, Kind};
use whit_query::plan::{Asking, Groups, Plan, What};
use whit_query::release::ExactPart;
use whit_query::{Tables, Workload};

/// A neighbour at a unit of this kind and change.
pub(crate) fn neighbour(rows: &[Row], kind: Kind, change: Change, way: &Way, dice: &mut Dice) -> Vec<Row> {
    let mut rows = rows.to_vec();
    match kind {
        Kind::Event => {
            let gone = !rows.is_empty() && (change == Change::Replace || dice.one_in(2));
            if gone && !(change == Change::Replace && dice.one_in(6)) {
                let at = dice.below(rows.len() as u64) as usize;
                rows.remove(at);
            }
            if (change == Change::AddRemove && !gone) || (change == Change::Replace && !dice.one_in(6)) {
                rows.push(any_row(dice));
            }
        }
        Kind::Element => {
            let owners: Vec<_> = rows.iter().filter(|row| row.user.is_some()).map(|row| (row.user, row.day)).collect();
            let (user, day) = if owners.is_empty() || dice.one_in(4) {
                (Some(dice.below(4) as i64), any_day(dice))
            } else {
                dice.of(&owners)
            };
            rows.retain(|row| (row.user, row.day) != (user, day));
            let like: Option<Row> = dice.one_in(2).then(|| any_row(dice));
            for _ in 0..dice.below(4) {
                let row = like.clone().unwrap_or_else(|| any_row(dice));
                rows.push(Row { user, day, ..row });
            }
        }
        Kind::User => {
            let seen: BTreeSet<i64> = rows.iter().filter_map(|row| row.user).collect();
            let seen: Vec<i64> = seen.into_iter().collect();
            let fresh: Vec<i64> = (0..9).filter(|user| !seen.contains(user)).collect();
            let gone = (!seen.is_empty() && (change == Change::Replace || dice.one_in(2))).then(|| dice.of(&seen));
            rows.retain(|row| gone.is_none() || row.user != gone);
            if change == Change::Replace || gone.is_none() {
                let user = gone.filter(|_| dice.one_in(2)).unwrap_or_else(|| dice.of(&fresh));
                let like: Option<Row> = dice.one_in(2).then(|| any_row(dice));
                for _ in 0..dice.below(7) {
                    let day = any_day(dice);
                    let row = like.clone().unwrap_or_else(|| any_row(dice));
                    rows.push(Row { user: Some(user), day, ..row });
                }
            }
        }
        Kind::Feature | Kind::Label => {
            if rows.is_empty() {
                return rows;
            }
            let at = dice.below(rows.len() as u64) as usize;
            let (user, like) = (rows[at].user, any_row(dice));
            let same = dice.one_in(2);
            for (i, row) in rows.iter_mut().enumerate() {
                if i == at || (way.keyed && row.user == user) {
                    let new = if same { like.clone() } else { any_row(dice) };
                    row.x = new.x;
                    if kind == Kind::Feature {
                        (row.tag, row.n) = (new.tag, new.n);
                        if !way.keyed {
                            row.user = any_user(dice);
                        }
                    }
                }
            }
        }
    }
    // A data set is a bag of rows: their order is nobody's.
    dice.shuffle(&mut rows);
    rows
}

/// What was found wrong, with the smallest tables that showed it.
struct Fault {
    size: usize,
    words: String,
}

#[derive(Default)]
struct Found {
    pairs: usize,
    comparisons: usize,
    faults: BTreeMap<String, Fault>,
    /// By kind of measure and of rung: how near the largest move came to what was planned, in ℓ1 and ℓ2.
    nearest: BTreeMap<String, (f64, f64)>,
    /// By way, how many questions have a plan.
    planned: BTreeMap<&'static str, usize>,
    /// Questions that came to fewer parts together than each by itself.
    shared: BTreeSet<&'static str>,
}

impl Found {
    fn fault(&mut self, key: String, size: usize, words: impl FnOnce() -> String) {
        if self.faults.get(&key).is_none_or(|fault| fault.size > size) {
            self.faults.insert(key, Fault { size, words: words() });
        }
    }

    fn join(&mut self, other: Self) {
        self.pairs += other.pairs;
        self.comparisons += other.comparisons;
        for (key, fault) in other.faults {
            self.fault(key, fault.size, || fault.words.clone());
        }
        for (key, (l1, l2)) in other.nearest {
            let nearest = self.nearest.entry(key).or_default();
            *nearest = (nearest.0.max(l1), nearest.1.max(l2));
        }
        self.planned.extend(other.planned);
        self.shared.extend(other.shared);
    }
}

/// One measure by group.
pub(crate) fn by_key<'a>(part: &'a ExactPart, values: &'a [i64]) -> BTreeMap<String, &'a [i64]> {
    let width = if part.keys.is_empty() { 0 } else { values.len() / part.keys.len() };
    part.keys.iter().enumerate().map(|(i, key)| (format!("{key:?}"), &values[i * width..(i + 1) * width])).collect()
}

/// How far two measures are apart, in ℓ1 and ℓ2; a group that is missing has zeros.
fn apart(a: &BTreeMap<String, &[i64]>, b: &BTreeMap<String, &[i64]>) -> (f64, f64) {
    let (mut l1, mut l2) = (0_i128, 0_i128);
    for key in a.keys().chain(b.keys().filter(|key| !a.contains_key(*key))) {
        let (left, right) = (a.get(key).copied().unwrap_or_default(), b.get(key).copied().unwrap_or_default());
        for i in 0..left.len().max(right.len()) {
            let step = i128::from(left.get(i).copied().unwrap_or(0)) - i128::from(right.get(i).copied().unwrap_or(0));
            l1 += step.abs();
            l2 += step * step;
        }
    }
    (l1 as f64, (l2 as f64).sqrt())
}

fn kind_of(what: &What) -> &'static str {
    match what {
        What::Rows(_) => "count of rows",
        What::Parts(_) => "count of parts of rows",
        What::Users => "count of users",
        What::Sum { .. } => "sum",
        What::Distinct { .. } => "count of values",
        What::Tree { .. } => "tree",
    }
}

/// Compares what a question finds in two neighbours with what was planned for this rung.
fn compare(
    found: &mut Found,
    (at, options): (&str, &str),
    rung: usize,
    one: &(Plan, Vec<ExactPart>),
    other: &(Plan, Vec<ExactPart>),
    size: usize,
    show: &dyn Fn() -> String,
) {
    let ((plan, parts), (other_plan, others)) = (one, other);
    found.comparisons += 1;
    let word = &plan.rungs[rung].unit;
    for (number, part) in plan.parts.iter().enumerate() {
        let (here, there, twin) = (&parts[number], &others[number], &other_plan.parts[number]);
        let keys = |part: &ExactPart| part.keys.iter().map(|key| format!("{key:?}")).collect::<BTreeSet<_>>();
        if part.groups != Groups::Selected && keys(here) != keys(there) {
            found.fault(format!("{at} [{word}] shows other groups"), size, show);
        }
        for (i, measure) in part.measures.iter().enumerate() {
            let claimed = measure.moved[rung];
            let (mut a, mut b) = (by_key(here, &here.measures[i]), by_key(there, &there.measures[i]));
            // A group that nobody is counted in never shows, and what it would hold is not kept: where values inside of groups are
            // looked at, and rows without one are left out first, it need not be zero.
            if part.groups == Groups::Selected && matches!(measure.what, What::Distinct { .. } | What::Tree { .. }) {
                a.retain(|key, _| there.keys.iter().any(|other| format!("{other:?}") == *key));
                b.retain(|key, _| a.contains_key(key));
            }
            let (l1, l2) = apart(&a, &b);
            let kind = kind_of(&measure.what);
            let name = format!("{at} [{word}] {kind}");
            if twin.measures[i].moved[rung] != claimed {
                found.fault(format!("{name}: its sensitivity depends on the data"), size, show);
            }
            if l1 > claimed.l1 * (1.0 + 1e-12) || l2 > claimed.l2 * (1.0 + 1e-12) {
                found.fault(name, size, || {
                    format!(
                        "  {} with {options}: moved by ℓ1 {l1}, ℓ2 {l2}; claimed ℓ1 {}, ℓ2 {}\n{}",
                        measure.name,
                        claimed.l1,
                        claimed.l2,
                        show()
                    )
                });
            }
            let nearest = found.nearest.entry(format!("{kind} at {:?} grain", part.grain)).or_default();
            if rung == 0 {
                let ratio =
                    |found: f64, claimed: f64| if claimed > 0.0 && claimed.is_finite() { found / claimed } else { 0.0 };
                *nearest = (nearest.0.max(ratio(l1, claimed.l1)), nearest.1.max(ratio(l2, claimed.l2)));
            }
        }
        if let Some(kept) = &part.kept {
            for (i, moved) in kept.moved.iter().enumerate() {
                let (step, claimed) = (here.kept[i].abs_diff(there.kept[i]) as f64, moved[rung]);
                if step > claimed.l1.min(claimed.l2) {
                    found.fault(format!("{at} [{word}] rows before and after caps"), size, || {
                        format!("  with {options}: number {i} moved by {step}; claimed {claimed:?}\n{}", show())
                    });
                }
                if rung == 0 {
                    let nearest = found.nearest.entry(format!("rows counted at {:?} grain", part.grain)).or_default();
                    nearest.0 = nearest.0.max(if i == 1 { step / claimed.l1 } else { 0.0 });
                }
            }
        }
        if let Some(presence) = &part.presence {
            let (a, b) = (by_key(here, &here.presence), by_key(there, &there.presence));
            let counts = |of: &BTreeMap<String, &[i64]>, key: &String| of.get(key).map_or(0, |count| count[0]);
            let all: BTreeSet<&String> = a.keys().chain(b.keys()).collect();
            let moves: Vec<u64> =
                all.into_iter().map(|key| counts(&a, key).abs_diff(counts(&b, key))).filter(|&step| step > 0).collect();
            let (keys, by, claimed) =
                (moves.len() as u64, moves.iter().copied().max().unwrap_or(0), presence.moved[rung]);
            if keys > claimed.keys || by > claimed.by {
                found.fault(format!("{at} [{word}] presence of keys"), size, || {
                    format!(
                        "  with {options}: {keys} keys moved, by up to {by}; claimed {} keys by {}\n{}",
                        claimed.keys,
                        claimed.by,
                        show()
                    )
                });
            }
            if rung == 0 {
                let nearest = found.nearest.entry(format!("keys at {:?} grain", part.grain)).or_default();
                *nearest =
                    (nearest.0.max(keys as f64 / claimed.keys as f64), nearest.1.max(by as f64 / claimed.by as f64));
            }
        }
    }
}

/// Questions that are asked together, with semicolons between them, and that share rows and groups in other spellings.
const TOGETHER: &[&str] = &[
    "SELECT shop, PLAIN FROM T GROUP BY shop; SELECT v.shop AS place, INNER FROM (SELECT * FROM T) v GROUP BY v.shop",
    "SELECT tag, PLAIN FROM T GROUP BY tag; SELECT DISTINCT tag FROM T; SELECT INNER FROM T; SELECT PLAIN FROM T",
    "SELECT shop, tag, COUNT(*) FROM T GROUP BY shop, tag; SELECT tag AS t, shop AS s, SUM(x), COUNT(*) FROM T GROUP BY t, s",
    "SELECT region, COUNT(*) FROM T JOIN regions ON T.shop = regions.shop GROUP BY region; \
     SELECT r.region, SUM(v.x), COUNT(DISTINCT v.user_id) FROM T v JOIN regions r ON v.shop = r.shop GROUP BY r.region",
    "SELECT day, COUNT(*) FROM T WHERE n > 2 GROUP BY day; SELECT d, MEDIAN(y) FROM (SELECT x AS y, day AS d, user_id FROM T WHERE 2 < n) w GROUP BY d",
];

/// The exact sums, or why there are none: a question that fails on one table and not on another tells of their rows.
pub(crate) fn exact(tables: &Tables, sql: &str, asking: &Asking) -> Result<(Plan, Vec<ExactPart>), String> {
    let run = std::panic::AssertUnwindSafe(|| {
        if !sql.contains(';') {
            return tables.exact_for_tests(sql, asking);
        }
        tables.exact_workload_for_tests(&Workload::read(sql)?, asking)
    });
    std::panic::catch_unwind(run).unwrap_or_else(|_| panic_fault()).map_err(|error| error.sentence)
}

fn panic_fault() -> Result<(Plan, Vec<ExactPart>), whit_query::QueryError> {
    Err(whit_query::QueryError::failed("the engine panicked"))
}

/// Tables of each unit, neighbours of each table at each rung, and questions to each pair.
const TABLES: usize = 16;
const NEIGHBOURS: usize = 4;
const ASKED: usize = 10;

fn try_way(number: usize, way: &'static Way, together: bool) -> Found {
    let mut found = Found::default();
    let mut dice = Dice(0x77_68_69_74 + number as u64);
    let room = Room::new(&format!("neighbours_{number}{}", if together { "_together" } else { "" }));
    write_public(&room);
    // The rungs, from a table that is never asked about.
    write(&room, "z.parquet", &[]);
    let rungs = room
        .tables(&declare(&["z".to_owned()], way.unit))
        .plan("SELECT COUNT(*), SUM(x) FROM z", &Asking { rows: Some(1), ..Asking::default() })
        .unwrap()
        .rungs;
    let mut tables: Vec<(String, Vec<Row>)> = Vec::new();
    let each = 1 + rungs.len() * NEIGHBOURS;
    for table in 0..if together { TABLES / 4 } else { TABLES } {
        let most = dice.of(&[3, 6, 14]);
        let rows = any_rows(most, &mut dice);
        for (i, rung) in rungs.iter().enumerate() {
            for j in 0..NEIGHBOURS {
                let rows = neighbour(&rows, rung.unit.kind(), rung.unit.change(), way, &mut dice);
                tables.push((format!("t{table}_{i}_{j}"), rows));
            }
        }
        tables.push((format!("t{table}"), rows));
    }
    for (name, rows) in &tables {
        write(&room, &format!("{name}.parquet"), rows);
    }
    let names: Vec<String> = tables.iter().map(|(name, _)| name.clone()).collect();
    let open: Tables = room.tables(&declare(&names, way.unit));
    let mut planned = BTreeSet::new();
    for family in tables.chunks(each) {
        let (base, neighbours) = family.split_last().unwrap();
        for _ in 0..ASKED {
            // A third of what is asked looks through a window.
            let windows = QUESTIONS.iter().filter(|question| question.contains("WINDOW")).copied().collect::<Vec<_>>();
            let asked = if together {
                dice.of(TOGETHER)
            } else if dice.one_in(3) {
                dice.of(&windows)
            } else {
                dice.of(QUESTIONS)
            };
            let template = asked.replace("WINDOW2", &any_window(&mut dice)).replace("WINDOW", &any_window(&mut dice));
            let template = template.as_str();
            let asking = Asking { groups: Some(1 + dice.below(3)), rows: Some(1 + dice.below(3)), ..Asking::default() };
            let sql = question(template, &base.0);
            if sql.split(';').any(|sql| open.plan(sql, &asking).is_err()) {
                continue; // refused, whatever the table holds
            }
            planned.insert(asked);
            let at = format!("{}: {template}", way.name);
            let options = format!("groups {}, rows {}", asking.groups.unwrap(), asking.rows.unwrap());
            let one = exact(&open, &sql, &asking);
            let apart = |sql: &str| open.plan(sql, &asking).unwrap().parts.len();
            if one.as_ref().is_ok_and(|(plan, _)| plan.parts.len() < sql.split(';').map(apart).sum()) {
                found.shared.insert(asked);
            }
            for (i, (name, rows)) in neighbours.iter().enumerate() {
                let other = exact(&open, &question(template, name), &asking);
                let show = || {
                    let mut words = String::new();
                    for (word, rows) in [("table", &base.1), ("neighbour", rows)] {
                        let _ = writeln!(words, "  {word}:");
                        for row in rows {
                            let _ = writeln!(words, "    {row:?}");
                        }
                    }
                    words
                };
                let size = base.1.len() + rows.len();
                match (&one, &other) {
                    (Ok(one), Ok(other)) => {
                        compare(&mut found, (&at, &options), i / NEIGHBOURS, one, other, size, &show);
                    }
                    (Err(error), _) | (_, Err(error)) => found.fault(format!("{at}: failed: {error}"), size, show),
                }
            }
        }
        found.pairs += neighbours.len();
    }
    found.planned.insert(way.name, planned.len());
    found
}

/// All of it, once, on two threads.
fn everything() -> &'static Found {
    static FOUND: OnceLock<Found> = OnceLock::new();
    FOUND.get_or_init(|| {
        let mut found = Found::default();
        std::thread::scope(|scope| {
            let half = |odd: usize| WAYS.iter().enumerate().filter(move |(i, _)| i % 2 == odd);
            let work = move |odd: usize| {
                let mut found = Found::default();
                half(odd).for_each(|(i, way)| found.join(try_way(i, way, false)));
                found
            };
            let other = scope.spawn(move || work(1));
            found.join(work(0));
            found.join(other.join().unwrap());
        });
        found
    })
}

#[test]
fn no_neighbour_moves_a_measure_further_than_planned() {
    let found = everything();
    let mut words = String::new();
    for (key, fault) in &found.faults {
        let _ = writeln!(words, "{key}\n{}", fault.words);
    }
    assert!(
        found.pairs >= 1000 && found.comparisons >= 5000,
        "{} pairs and {} comparisons",
        found.pairs,
        found.comparisons
    );
    for (way, planned) in &found.planned {
        assert!(*planned >= 15, "only {planned} of {} questions have a plan: {way}", QUESTIONS.len());
    }
    assert!(
        found.faults.is_empty(),
        "{} of {} comparisons of {} pairs go too far:\n{words}",
        found.faults.len(),
        found.comparisons,
        found.pairs
    );
}

/// The same for questions that are asked together and share rows: what they come to as one moves no further than was planned for it.
#[test]
fn no_neighbour_moves_what_questions_share_further_than_planned() {
    let mut found = Found::default();
    for (i, way) in WAYS.iter().enumerate() {
        found.join(try_way(i, way, true));
    }
    let words =
        found.faults.iter().map(|(key, fault)| format!("{key}\n{}", fault.words)).collect::<Vec<_>>().join("\n");
    println!("{} pairs, {} comparisons, nearest {:#?}", found.pairs, found.comparisons, found.nearest);
    assert!(found.faults.is_empty(), "{words}");
    assert!(found.comparisons >= 1000, "{} comparisons", found.comparisons);
    assert_eq!(found.shared.len(), TOGETHER.len(), "all of them share something: {:#?}", found.shared);
    assert!(found.nearest.values().any(|(l1, l2)| l1.max(*l2) > 0.7), "{:?}", found.nearest);
}

/// A search that never comes near a bound would not see it broken. So each kind of measure must come so near that half of what is claimed would be found too little.
#[test]
fn the_search_for_neighbours_would_see_half_the_sensitivity() {
    let nearest = &everything().nearest;
    assert!(nearest.len() >= 12, "{nearest:?}");
    for (kind, (l1, l2)) in nearest {
        let reached = l1.max(*l2);
        let enough = if kind.starts_with("count of rows") || kind.starts_with("keys") { 0.7 } else { 0.5 };
        assert!(reached > enough, "{kind}: the largest move is {reached} of what is planned; all: {nearest:#?}");
    }
}

/// A data set is a bag of rows. What a user's rows come to must not depend on how they lie in the file, since that
/// depends on the rows of others.
#[test]
fn the_order_of_rows_never_matters() {
    let mut dice = Dice(5);
    let room = Room::new("order_of_rows");
    write_public(&room);
    let mut names = Vec::new();
    for table in 0..24 {
        let mut rows = any_rows(14, &mut dice);
        for copy in ["a", "b"] {
            let name = format!("t{table}_{copy}");
            write(&room, &format!("{name}.parquet"), &rows);
            names.push(name);
            dice.shuffle(&mut rows);
        }
    }
    let asking = Asking { groups: Some(1), rows: Some(2), ..Asking::default() };
    let mut wrong = BTreeMap::new();
    for way in WAYS.iter().filter(|way| ["event up to user", "element up to user", "user, replace"].contains(&way.name))
    {
        let tables = room.tables(&declare(&names, way.unit));
        for template in [
            "SELECT shop, PLAIN FROM T GROUP BY shop",
            "SELECT tag, INNER FROM T GROUP BY tag",
            "SELECT shop, COUNT(*), SUM(x) FROM (SELECT *, row_number() OVER (PARTITION BY user_id ORDER BY day) AS k FROM T) WHERE k = 1 GROUP BY shop",
            "SELECT SUM(f), COUNT(f) FROM (SELECT x - lag(x) OVER (PARTITION BY user_id, day ORDER BY shop) AS d, clamp(first_value(n) OVER (PARTITION BY user_id, day), 0, 10) AS f FROM T)",
            "SELECT SUM(clamp(s, 0, 30)), SUM(clamp(m, 0, 9)) FROM (SELECT SUM(n % 10) OVER (PARTITION BY user_id ORDER BY shop ROWS BETWEEN 1 PRECEDING AND CURRENT ROW) AS s, MAX(n) OVER (PARTITION BY user_id ROWS 1 PRECEDING) AS m FROM T)",
            "SELECT SUM(m), SUM(l) FROM (SELECT user_id, MAX(x) AS m, MIN(x) AS l FROM T GROUP BY user_id)",
            "SELECT SUM(clamp(s, -50, 50)) FROM (SELECT user_id, SUM(n) AS s FROM T GROUP BY user_id)",
        ] {
            for pair in names.chunks(2) {
                let found: Vec<_> = pair
                    .iter()
                    .map(|name| {
                        let (_, parts) = tables
                            .exact_for_tests(&question(template, name), &asking)
                            .unwrap_or_else(|error| panic!("{template}: {error:?}"));
                        parts.into_iter().map(|part| (part.keys, part.measures, part.presence)).collect::<Vec<_>>()
                    })
                    .collect();
                if format!("{:?}", found[0]) != format!("{:?}", found[1]) {
                    *wrong.entry(format!("{}: {template}", way.name)).or_insert(0) += 1;
                }
            }
        }
    }
    assert!(
        wrong.is_empty(),
        "of 24 tables each, so many give something else when their rows are shuffled:\n{wrong:#?}"
    );
}

/// A Parquet file says what the least and the largest of its values are, NaN left out, and that is about everybody's rows. An
/// engine that reads less, or takes a column for a constant, because of it lets one row change what others come to.
#[test]
fn what_a_file_says_of_its_values_changes_nothing() {
    let mut dice = Dice(6);
    let room = Room::new("statistics_of_files");
    write_public(&room);
    let mut names = Vec::new();
    for table in 0..12 {
        let rows = any_rows(dice.of(&[3, 5]), &mut dice);
        for (copy, statistics) in [("a", EnabledStatistics::None), ("b", EnabledStatistics::Page)] {
            let name = format!("t{table}_{copy}");
            write_with(&room, &format!("{name}.parquet"), &rows, statistics);
            names.push(name);
        }
    }
    let asking = Asking { groups: Some(1), rows: Some(2), ..Asking::default() };
    let mut wrong = BTreeMap::new();
    for way in WAYS.iter().filter(|way| ["event, replace", "user, replace"].contains(&way.name)) {
        let tables = room.tables(&declare(&names, way.unit));
        for template in QUESTIONS.iter().filter(|template| !template.contains("JOIN")) {
            if tables.plan(&question(template, &names[0]), &asking).is_err() {
                continue;
            }
            for pair in names.chunks(2) {
                let found: Vec<_> = pair
                    .iter()
                    .map(|name| {
                        exact(&tables, &question(template, name), &asking).map(|(_, parts)| format!("{parts:?}"))
                    })
                    .collect();
                if found[0] != found[1] {
                    *wrong.entry(format!("{}: {template}", way.name)).or_insert(0) += 1;
                }
            }
        }
    }
    assert!(
        wrong.is_empty(),
        "of 12 tables each, so many give something else when their files have statistics:\n{wrong:#?}"
    );
}
