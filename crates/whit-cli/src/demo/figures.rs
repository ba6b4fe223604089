//! What the demo finds out: every question at every level, next to the truth.

use super::folder::{DELTA, DemoFolder, LEVELS, Level, SUBJECTS_PER_USER, VISITS_PER_SUBJECT};
use crate::error::Error;
use serde::Serialize;
use std::collections::BTreeMap;
use std::process::ExitCode;
use whit::core::mechanism::topk::order_loss;
use whit::core::unit::Kind;
use whit::query::estimate::histogram::Radius;
use whit::query::estimate::{HistogramQuestion, HittersQuestion};
use whit::query::plan::Asking;
use whit::query::{Answer, Role, Value};
use whit::session::Session;
use whit_view::measure::Measure;
use whit_view::text::measure;

/// The question that the story is about.
pub(super) const COUNTS: &str =
    "SELECT subject, COUNT(*) AS visits FROM visits JOIN areas USING (title) GROUP BY subject";
/// The same in other words.
pub(super) const AGAIN: &str = "select subject, count(1) as n from visits join areas on areas.title = visits.title group by 1 order by n desc limit 3";
/// A question that costs more than there is.
pub(super) const TOO_MUCH: &str = "SELECT COUNT(DISTINCT user_id) FROM visits WHERE title = 'Job Openings'";

/// A value next to its truth.
#[derive(Serialize)]
pub(super) struct Compared {
    pub(super) name: String,
    pub(super) exact: f64,
    pub(super) released: f64,
    pub(super) low: Option<f64>,
    pub(super) high: Option<f64>,
    #[serde(skip)]
    pub(super) measure: Measure,
}

/// One released table next to its truth.
#[derive(Serialize)]
pub(super) struct ComparedTable {
    /// How each value was sanitised.
    pub(super) mechanism: String,
    /// Half the length of an interval, where all have one.
    pub(super) within: f64,
    /// The mean of how far values are off the truth, noise and cut rows together.
    pub(super) mean_error: f64,
    pub(super) largest_error: f64,
    /// From the largest true value to the least.
    pub(super) rows: Vec<Compared>,
    #[serde(skip)]
    pub(super) answer: Answer,
}

/// Of all pairs of areas, how many stand in the wrong order.
#[derive(Serialize)]
pub(super) struct PairOrder {
    pub(super) wrong: u64,
    pub(super) pairs: u64,
    /// The same for the areas that most users visit.
    pub(super) wrong_at_the_top: u64,
    pub(super) top: usize,
}

/// What one rung pays for one question.
#[derive(Serialize)]
pub(super) struct DemoPrice {
    pub(super) unit: String,
    pub(super) epsilon: f64,
    pub(super) delta: f64,
}

/// Everything at one level.
#[derive(Serialize)]
pub(super) struct LevelView {
    /// "event", "element" or "user".
    pub(super) unit: String,
    pub(super) protects: &'static str,
    /// What the first question costs, rung by rung.
    pub(super) prices: Vec<DemoPrice>,
    /// Visits by subject.
    pub(super) counts: ComparedTable,
    /// Users by area.
    pub(super) hitters: ComparedTable,
    pub(super) order: PairOrder,
    /// Visits by area, each user's visits to one subject together. At event level there is none: a visit that is replaced by
    /// one elsewhere touches two elements, so what bounds elements is no help.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) histogram: Option<ComparedTable>,
    /// Whether the level's ledger is as it was written.
    pub(super) ledger_is_sound: bool,
    /// How many releases it holds.
    pub(super) releases: u64,
}

/// A command as people type it, and what it said.
pub(super) struct Scene {
    pub(super) command: String,
    pub(super) said: String,
}

/// What the demo found out.
#[derive(Serialize)]
pub(crate) struct DemoFigures {
    pub(super) epsilon: f64,
    pub(super) delta: f64,
    pub(super) users: f64,
    pub(super) visits: f64,
    pub(super) subjects_per_user: u64,
    pub(super) visits_per_subject: u64,
    pub(super) question: &'static str,
    pub(super) levels: Vec<LevelView>,
    /// Whether asking again was answered from the ledger.
    pub(super) again_was_free: bool,
    /// What was said to a question beyond the budget.
    pub(super) refusal: String,
    #[serde(skip)]
    pub(super) scenes: Scenes,
}

/// Commands and what they said, in the order of the story.
pub(super) struct Scenes {
    pub(super) check: Scene,
    pub(super) preview: Scene,
    pub(super) refused: Scene,
    pub(super) ledger: Scene,
    pub(super) verify: Scene,
}

/// So many areas stand at the top.
pub(super) const TOP: usize = 20;

impl DemoFigures {
    /// Asks everything.
    pub(crate) fn gather(
        room: &mut DemoFolder,
        epsilon: f64,
        command: &CommandLine<'_>,
        step: &dyn Fn(&str),
    ) -> Result<Self, Error> {
        let scene = |words: &[&str], expected: u8| scene(command, words, expected);
        step("looking up the truth");
        let truth = Truth::of(room)?;
        let config = room.main().config.display().to_string();
        let ledger = room.main().ledger.display().to_string();
        let check = scene(&["whit", "check", &config], 0)?;
        let preview = scene(&["whit", "preview", COUNTS, "--config", &config], 0)?;
        let partition = room.folder.join("subjects.partition");
        let mut levels = Vec::new();
        for (level, (_, protects)) in room.levels.iter_mut().zip(LEVELS) {
            step(&format!("asking at {} level", level.kind));
            levels.push(LevelView::ask(level, protects, &partition, &truth)?);
        }
        step("asking again");
        let main = room.main();
        let again = main.session.ask(AGAIN, &Asking::default())?;
        let beyond = Asking { epsilon: Some(3.0 * epsilon), ..Asking::default() };
        let refusal = match main.session.ask(TOO_MUCH, &beyond) {
            Err(error) if error.kind == whit::error::ErrorKind::Refused => error.sentence,
            Err(error) => return Err(error.into()),
            Ok(_) => return Err(Error::failed("a question beyond the budget was answered".to_owned())),
        };
        let asked = (3.0 * epsilon).to_string();
        let refused = scene(&["whit", "query", TOO_MUCH, "--epsilon", &asked, "--config", &config], 3)?;
        let picture = room.folder.join("ledger.svg").display().to_string();
        Ok(Self {
            epsilon,
            delta: DELTA,
            users: truth.users,
            visits: truth.visits,
            subjects_per_user: SUBJECTS_PER_USER,
            visits_per_subject: VISITS_PER_SUBJECT,
            question: COUNTS,
            levels,
            again_was_free: again.statement.stored,
            refusal,
            scenes: Scenes {
                check,
                preview,
                refused,
                ledger: scene(&["whit", "ledger", "--ledger", &ledger, "--plot", &picture], 0)?,
                verify: scene(&["whit", "ledger", "verify", "--ledger", &ledger], 0)?,
            },
        })
    }
}

/// What runs a command as it would run by itself: its exit code, and what it says.
pub(crate) type CommandLine<'a> = dyn Fn(&[&str]) -> (ExitCode, String) + 'a;

/// Runs a command, and keeps what it says; it must end with this exit code.
fn scene(command: &CommandLine<'_>, words: &[&str], expected: u8) -> Result<Scene, Error> {
    let (code, said) = command(words);
    let quoted = |word: &&str| if word.contains(' ') { format!("\"{word}\"") } else { (*word).to_owned() };
    let command = words.iter().map(quoted).collect::<Vec<_>>().join(" ");
    if code != ExitCode::from(expected) {
        return Err(Error::failed(format!("`{command}` did not do what the demo is to show: {said}")));
    }
    Ok(Scene { command, said })
}

/// The exact figures. The data are public, or nobody could ask for them.
struct Truth {
    users: f64,
    visits: f64,
    by_subject: BTreeMap<String, f64>,
    users_by_title: BTreeMap<String, f64>,
    visits_by_title: BTreeMap<String, f64>,
}

impl Truth {
    fn of(room: &mut DemoFolder) -> Result<Self, Error> {
        let mut exact = |sql: &str| exact(&mut room.truth, sql);
        let whole = exact("SELECT 'all', COUNT(DISTINCT user_id), COUNT(*) FROM visits")?;
        let titles = exact("SELECT title, COUNT(DISTINCT user_id), COUNT(*) FROM visits GROUP BY title")?;
        let column = |rows: &BTreeMap<String, Vec<f64>>, i: usize| {
            rows.iter().map(|(name, values)| (name.clone(), values.get(i).copied().unwrap_or(0.0))).collect()
        };
        let subjects = exact(COUNTS)?;
        let all = whole.get("all").map_or(&[][..], Vec::as_slice);
        Ok(Self {
            users: all.first().copied().unwrap_or(0.0),
            visits: all.get(1).copied().unwrap_or(0.0),
            by_subject: column(&subjects, 0),
            users_by_title: column(&titles, 0),
            visits_by_title: column(&titles, 1),
        })
    }
}

/// The answer to a question about public data: the first column names, the others count.
fn exact(truth: &mut Session, sql: &str) -> Result<BTreeMap<String, Vec<f64>>, Error> {
    let answer = truth.ask(sql, &Asking::default())?;
    let row = |cells: &Vec<whit::query::Cell>| {
        let numbers = cells[1..].iter().filter_map(|cell| measure(cell, Role::Exact)).map(|measure| measure.value);
        (name(&cells[0].value), numbers.collect())
    };
    Ok(answer.rows.iter().map(row).collect())
}

fn name(value: &Value) -> String {
    match value {
        Value::Text(text) => text.clone(),
        Value::Int(number) => number.to_string(),
        Value::Null | Value::Bool(_) | Value::Float(_) => String::new(),
    }
}

impl LevelView {
    fn ask(
        level: &mut Level,
        protects: &'static str,
        partition: &std::path::Path,
        truth: &Truth,
    ) -> Result<Self, Error> {
        let (session, asking) = (&mut level.session, Asking::default());
        let counts = ComparedTable::of(session.ask(COUNTS, &asking)?, &truth.by_subject);
        let question = HittersQuestion {
            dataset: "visits".to_owned(),
            item: "title".to_owned(),
            items: None,
            top: None,
            items_per_user: Some(SUBJECTS_PER_USER * VISITS_PER_SUBJECT),
            gap: None,
        };
        let hitters = ComparedTable::of(session.hitters(&question, &asking)?, &truth.users_by_title);
        let question = HistogramQuestion {
            dataset: "visits".to_owned(),
            item: "title".to_owned(),
            partition: partition.to_owned(),
            weight: None,
            radius: Radius::TwoStage { share: Radius::SHARE, quantile: Radius::QUANTILE },
            top: None,
            clusters_per_user: Some(SUBJECTS_PER_USER),
            shares: false,
        };
        let histogram = match level.kind {
            Kind::Event => None,
            _ => Some(ComparedTable::of(session.histogram(&question, &asking)?, &truth.visits_by_title)),
        };
        let prices = counts.answer.statement.prices.iter();
        let verified = session.verify();
        Ok(Self {
            unit: level.kind.to_string(),
            protects,
            prices: prices.map(|p| DemoPrice { unit: p.unit.clone(), epsilon: p.epsilon, delta: p.delta }).collect(),
            order: PairOrder::of(&hitters),
            counts,
            hitters,
            histogram,
            ledger_is_sound: verified.is_ok(),
            releases: verified.map_or(0, |verified| verified.entries),
        })
    }
}

impl ComparedTable {
    /// The first column names, the last one counts.
    fn of(answer: Answer, truth: &BTreeMap<String, f64>) -> Self {
        let compare = |cells: &Vec<whit::query::Cell>| {
            let measure = measure(cells.last()?, Role::Noisy)?;
            let name = name(&cells.first()?.value);
            let exact = truth.get(&name).copied().unwrap_or(0.0);
            let Measure { value, low, high, .. } = measure;
            Some(Compared { name, exact, released: value, low, high, measure })
        };
        let mut rows: Vec<Compared> = answer.rows.iter().filter_map(compare).collect();
        rows.sort_by(|a, b| b.exact.total_cmp(&a.exact).then_with(|| a.name.cmp(&b.name)));
        let errors = || rows.iter().map(|row| (row.released - row.exact).abs());
        // An upper end that was raised to zero is further away than the others, so the nearest one counts.
        let within = rows.iter().filter_map(|row| Some(row.high? - row.released)).reduce(f64::min).unwrap_or(0.0);
        Self {
            mechanism: answer.statement.mechanisms.join("; "),
            within,
            mean_error: errors().sum::<f64>() / rows.len().max(1) as f64,
            largest_error: errors().fold(0.0, f64::max),
            rows,
            answer,
        }
    }
}

impl PairOrder {
    /// Erratum E14: what is counted are pairs in the *wrong* order.
    fn of(hitters: &ComparedTable) -> Self {
        let column = |rows: &[Compared], of: fn(&Compared) -> f64| rows.iter().map(of).collect::<Vec<f64>>();
        let loss = |rows: &[Compared]| order_loss(&column(rows, |r| r.exact), &column(rows, |r| r.released), 0.0);
        let (all, top) = (hitters.rows.len() as u64, TOP.min(hitters.rows.len()));
        Self {
            wrong: loss(&hitters.rows),
            pairs: all * all.saturating_sub(1) / 2,
            wrong_at_the_top: loss(&hitters.rows[..top]),
            top,
        }
    }
}
