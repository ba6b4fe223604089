//! What an adversary gains from a release, in words, in numbers and as a picture.

use crate::number::{Exact, brief, brief_up, percent, percent_down, percent_up};
use crate::plot::{BLUE, CurveChart, CurveLine, GREEN, ORANGE};
use crate::price::{RunView, RungPriceView, rungs};
use crate::table::{Side, Table};
use serde::Serialize;
use std::io::{self, Write};
use whit::account::Name;
use whit::explain::{Belief, Promise, least_false_negatives};
use whit::price::{EpsilonPrice, SampledRun};

/// The slack with which beliefs are stated: odds move by at most 1.1·e^ε, except with probability 11·δ.
const SLACK: f64 = 0.1;
/// The share of false positives at which "who names somebody" is stated.
const NAMED_AT: f64 = 0.01;
/// The shares of false positives in the table.
const SHOWN: [f64; 7] = [0.001, 0.01, 0.05, 0.1, 0.2, 0.3, 0.5];
/// What a promise means.
#[derive(Serialize)]
pub struct ExplainView {
    epsilon: Exact,
    epsilon_upper: Exact,
    delta: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    accountant: Option<Name>,
    #[serde(skip_serializing_if = "Option::is_none")]
    run: Option<RunView>,
    odds_factor: Exact,
    best_guess: f64,
    beliefs: Vec<BeliefView>,
    trade_off: Vec<TradeOff>,
    #[serde(skip_serializing_if = "Option::is_none")]
    profile: Option<Vec<ProfilePoint>>,
    /// What the run loses at every rung; empty where there is no run.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    rungs: Vec<RungPriceView>,
    statement: Vec<String>,
}

#[derive(Serialize)]
struct BeliefView {
    prior: f64,
    low: f64,
    high: f64,
    except_with_probability: f64,
    when_named: f64,
    named_at_false_positives: f64,
}

#[derive(Serialize)]
#[expect(clippy::struct_field_names, reason = "these are the names of the JSON fields")]
struct TradeOff {
    false_positives: f64,
    false_negatives_at_least: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    false_negatives_of_the_run_at_least: Option<f64>,
}

/// One point of a run's δ(ε).
#[derive(Serialize)]
struct ProfilePoint {
    epsilon: f64,
    delta_upper: f64,
}

impl ExplainView {
    /// What a promise means to who believes this beforehand; with the run that keeps it, its price and who said so, and what else it promises.
    pub fn of(
        promise: Promise,
        priors: &[f64],
        run: Option<(&SampledRun, &EpsilonPrice, Name)>,
        profile: Option<&[Promise]>,
    ) -> Self {
        let beliefs = priors.iter().map(|&prior| {
            let Belief { low, high, except, .. } = promise.belief(prior, SLACK);
            let when_named = promise.belief_when_named(prior, NAMED_AT);
            BeliefView {
                prior,
                low,
                high,
                except_with_probability: except,
                when_named,
                named_at_false_positives: NAMED_AT,
            }
        });
        let trade_off = SHOWN.iter().map(|&alpha| TradeOff {
            false_positives: alpha,
            false_negatives_at_least: promise.false_negatives(alpha),
            false_negatives_of_the_run_at_least: profile.map(|promises| least_false_negatives(promises, alpha)),
        });
        let rungs = run.map_or(Vec::new(), |(_, price, accountant)| rungs(&price.rungs, accountant));
        let (run, accountant) = run.map(|(run, _, accountant)| (RunView::of(run), accountant)).unzip();
        Self {
            epsilon: Exact(promise.epsilon()),
            epsilon_upper: Exact(promise.epsilon()),
            delta: promise.delta(),
            accountant,
            run,
            odds_factor: Exact(promise.odds_factor()),
            best_guess: promise.best_guess(),
            beliefs: beliefs.collect(),
            trade_off: trade_off.collect(),
            profile: profile.map(|promises| {
                promises.iter().map(|p| ProfilePoint { epsilon: p.epsilon(), delta_upper: p.delta() }).collect()
            }),
            rungs,
            statement: statement(promise),
        }
    }

    /// Sentences, beliefs, and the errors that no test avoids.
    pub fn write(&self, out: &mut dyn Write) -> io::Result<()> {
        writeln!(out, "What (ε = {}, δ = {}) means", brief_up(self.epsilon.0), brief(self.delta))?;
        if let (Some(run), Some(accountant)) = (&self.run, self.accountant) {
            run.write(out)?;
            writeln!(out, "  accountant  {accountant}")?;
            RungPriceView::write(&self.rungs, out)?;
        }
        for sentence in &self.statement {
            writeln!(out, "\n{}", wrapped(sentence))?;
        }
        writeln!(out, "\nBeliefs")?;
        let mut table = Table::new([
            ("before".to_owned(), Side::Right),
            ("after: from".to_owned(), Side::Right),
            ("to".to_owned(), Side::Right),
            ("beyond, with probability at most".to_owned(), Side::Right),
            (format!("when named at {} false alarms", percent(NAMED_AT)), Side::Right),
        ]);
        for belief in &self.beliefs {
            table.row([
                percent(belief.prior),
                percent_down(belief.low),
                percent_up(belief.high),
                brief_up(belief.except_with_probability),
                percent_up(belief.when_named),
            ]);
        }
        table.write(out)?;
        writeln!(out, "\nErrors that no test avoids")?;
        let mut columns = vec![("false alarms", Side::Right), ("misses at least", Side::Right)];
        if self.run.is_some() {
            columns.push(("this run: misses at least", Side::Right));
        }
        let mut table = Table::new(columns);
        for row in &self.trade_off {
            let least = [Some(row.false_negatives_at_least), row.false_negatives_of_the_run_at_least];
            let least = least.into_iter().flatten().map(percent_down);
            table.row([percent(row.false_positives)].into_iter().chain(least));
        }
        table.write(out)
    }
}

/// The promise in sentences, each of which holds as it stands.
fn statement(promise: Promise) -> Vec<String> {
    let (factor, delta) = (promise.odds_factor(), promise.delta());
    let mut sentences = vec![format!(
        "Two worlds differ in one unit, and the adversary knows everything else. Whatever set of outputs one looks at: \
         its probability in one world is at most {} times that in the other{}.",
        brief_up(factor),
        if delta == 0.0 { String::new() } else { format!(", plus {}", brief(delta)) }
    )];
    sentences.push(if delta == 0.0 {
        format!("So the odds between the two worlds never move by more than a factor of {}.", brief_up(factor))
    } else {
        let except = promise.belief(0.5, SLACK).except;
        format!(
            "So the odds between the two worlds move by at most a factor of {} ({} times as much), except with \
             probability {} (δ·{}/{SLACK}). That the odds move by at most e^ε except with probability δ does not follow.",
            brief_up(factor * (1.0 + SLACK)),
            1.0 + SLACK,
            brief_up(except),
            1.0 + SLACK,
        )
    });
    sentences.push(format!(
        "Between two equally likely worlds nobody guesses right more often than in {} of all cases; a coin does in 50 %.",
        percent_up(promise.best_guess())
    ));
    sentences.push(format!(
        "Who tests for the unit and raises a false alarm in {} of the cases without it misses at least {} of the cases \
         with it.",
        percent(0.05),
        percent_down(promise.false_negatives(0.05))
    ));
    sentences
}

/// The trade-off curve of the promise, and of the run where there is one.
pub fn picture(promise: Promise, profile: Option<&[Promise]>) -> String {
    // Dense near 0, where the curve is steep.
    let grid = || (0..=400).map(|i| f64::from(i) / 400.0).map(|t| t * t);
    let curve = |f: &dyn Fn(f64) -> f64| grid().map(|alpha| (alpha, f(alpha))).collect::<Vec<_>>();
    let name = format!("ε = {}, δ = {}", brief_up(promise.epsilon()), brief(promise.delta()));
    let own = CurveLine { name, colour: BLUE, dashed: false, points: curve(&|alpha| promise.false_negatives(alpha)) };
    let blind =
        CurveLine { name: "nothing learned".into(), colour: GREEN, dashed: true, points: vec![(0.0, 1.0), (1.0, 0.0)] };
    let run = profile.map(|promises| CurveLine {
        name: "this run, all its ε at once".into(),
        colour: ORANGE,
        dashed: false,
        points: curve(&|alpha| least_false_negatives(promises, alpha)),
    });
    CurveChart {
        title: "What no test can do".into(),
        subtitle: "Whoever looks for one unit in the release makes errors on or above the curve.".into(),
        axes: ("false alarms: share of cases without the unit".into(), "misses: share of cases with the unit".into()),
        lines: [run, Some(own), Some(blind)].into_iter().flatten().collect(),
        shaded: "out of reach of every test".into(),
    }
    .draw()
}

/// Breaks a paragraph into lines of at most 100 characters.
fn wrapped(text: &str) -> String {
    let (mut lines, mut line) = (Vec::new(), String::new());
    for word in text.split_whitespace() {
        let fits = line.chars().count() + 1 + word.chars().count() <= 100;
        if !line.is_empty() && !fits && word != "%" {
            lines.push(std::mem::take(&mut line));
        }
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(word);
    }
    lines.push(line);
    lines.join("\n")
}
