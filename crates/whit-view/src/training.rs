//! What a training leaves behind: cards, intervals, scores, curves and predictions.

use crate::csv;
use crate::measure::Measure;
use crate::number::{brief, brief_up, grouped, number_of, percent};
use crate::plain::PlainText;
use crate::plot::{BLUE, ChartAxis, LineChart, Picture, Scale, Trace};
use crate::table::{Side, Table};
use serde::Serialize;
use std::io::{self, Write};
use whit::Error;
use whit::error::ErrorKind;
use whit::learn::Card;
use whit::train::{Estimate, Estimates, Learned, Predicted, Prospect, Score, Training};
use whit_query::explain::Denial;

/// The loss over the steps.
pub fn curve(training: &Training, points: &[(f64, f64)]) -> Picture {
    let point = |&(step, loss): &(f64, f64)| (step, Some(Measure::exactly(loss)).filter(|_| loss.is_finite()));
    LineChart {
        title: format!("Learning {} from {}", training.target(), training.dataset()),
        subtitle: "The loss on rows that were set aside. It was not sanitised: for the owner of the data only"
            .to_owned(),
        across: ChartAxis { name: "step".to_owned(), scale: Scale::Number },
        axis: "mean loss (private)".to_owned(),
        traces: vec![Trace {
            name: "loss".to_owned(),
            colour: BLUE,
            steps: false,
            points: points.iter().map(point).collect(),
        }],
        limits: Vec::new(),
        note: String::new(),
    }
    .draw()
}

/// A score as a table.
pub fn write_score(score: &Score, out: &mut dyn Write) -> io::Result<()> {
    let out = &mut PlainText::onto(out);
    let mut table = Table::new([("rows", Side::Right), ("mean loss", Side::Right), ("accuracy", Side::Right)]);
    let accuracy = score.accuracy.map_or_else(|| "–".to_owned(), percent);
    table.row([grouped(&score.rows.to_string()), brief(score.loss), accuracy]);
    table.write(out)
}

/// A score in one line.
pub fn score_line(score: &Score) -> String {
    let accuracy = score.accuracy.map_or_else(String::new, |share| format!(", accuracy {}", percent(share)));
    let (rows, loss) = (number_of(grouped(&score.rows.to_string()), "row"), brief(score.loss));
    format!("private, not sanitised, for the owner only: on {rows} a mean loss of {loss}{accuracy}")
}

/// The card: a table of rungs, and what else there is.
fn write_card(card: &Card, out: &mut dyn Write) -> io::Result<()> {
    let mut table =
        Table::new([("unit", Side::Left), ("ε at most", Side::Right), ("δ", Side::Right), ("", Side::Left)]);
    for rung in &card.rungs {
        let epsilon = if rung.epsilon.is_finite() { brief_up(rung.epsilon) } else { "∞".to_owned() };
        table.row([rung.unit.clone(), epsilon, brief(card.delta), rung.neighbours.clone()]);
    }
    table.write(out)?;
    writeln!(out)?;
    let words = card.words();
    let rest = words.lines().filter(|line| !["protected ", "and ", "  "].iter().any(|start| line.starts_with(start)));
    for line in rest {
        writeln!(out, "{line}")?;
    }
    Ok(())
}

/// Intervals, for people.
fn write_estimates(estimates: &Estimates, out: &mut dyn Write) -> io::Result<()> {
    if estimates.parameters.is_empty() {
        for note in &estimates.notes {
            writeln!(out, "{note}")?;
        }
        return Ok(());
    }
    let range = format!("{} interval", percent(estimates.confidence));
    let mut table = Table::new([
        ("parameter", Side::Left),
        ("estimate", Side::Right),
        (&range, Side::Right),
        ("± data", Side::Right),
        ("± sampling", Side::Right),
        ("± noise", Side::Right),
    ]);
    for estimate in &estimates.parameters {
        let Estimate { parameter, value, low, high, from_data, from_sampling, from_noise, .. } = estimate;
        let within = format!("{} … {}", brief(*low), brief(*high));
        let shares = [from_data, from_sampling, from_noise].map(|share| brief(*share));
        let [data, sampling, noise] = shares;
        table.row([parameter.clone(), brief(*value), within, data, sampling, noise]);
    }
    table.write(out)?;
    writeln!(out, "± is a standard error; those of a row add up in squares. Intervals hold one by one.")?;
    writeln!(out, "They are of {}.", estimates.about)?;
    if let Some([share, noise]) = estimates.shortened {
        let (share, within) = (percent(share.max(0.0)), percent(2.0 * noise));
        writeln!(out, "Shortened by the clip or the curvature's bound: {share} of units, ± {within}.")?;
    }
    for note in &estimates.notes {
        writeln!(out, "note: {note}")?;
    }
    Ok(())
}

/// What a training leaves behind, for programs.
#[derive(Debug, Serialize)]
pub struct TrainView<'a> {
    card: &'a Card,
    model: Option<String>,
    /// Whether the model was read from the ledger and cost nothing this time.
    stored: bool,
    /// The step from which it went on, where it was interrupted before.
    resumed_from: Option<u64>,
    /// How sure one may be of the parameters, where that was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    intervals: Option<&'a Estimates>,
    /// On the rows of `evaluate_where`: as private as they are.
    private: Option<Score>,
    #[serde(flatten)]
    foreseen: Option<ForeseenView>,
}

/// What a training that is only foreseen would come to, for programs.
#[derive(Debug, Serialize)]
struct ForeseenView {
    /// Whether nothing would be charged.
    free: bool,
    /// Whether a seed takes all privacy away.
    gives_up_privacy: bool,
    /// What training would say in place of a model; a budget's "no" in numbers, too.
    #[serde(skip_serializing_if = "Option::is_none")]
    denied: Option<Denial>,
}

fn denial(error: &Error) -> Denial {
    let kind = match error.kind {
        ErrorKind::Asked => "asked",
        ErrorKind::Refused => "refused",
        ErrorKind::Failed => "failed",
    };
    Denial::new(kind, error.to_string(), error.hint.clone(), error.refusal())
}

impl<'a> TrainView<'a> {
    /// Of a model that was learned, or read from the ledger.
    pub fn of(learned: &'a Learned) -> Self {
        Self {
            card: &learned.trained.card,
            model: Some(learned.model.display().to_string()),
            stored: learned.stored,
            resumed_from: learned.resumed_from,
            intervals: learned.intervals.as_ref(),
            private: learned.score,
            foreseen: None,
        }
    }

    /// Of one that is only foreseen.
    pub fn of_prospect(prospect: &'a Prospect) -> Self {
        let Prospect { card, stored, free, gives_up, denied } = prospect;
        let foreseen = ForeseenView { free: *free, gives_up_privacy: *gives_up, denied: denied.as_ref().map(denial) };
        let foreseen = Some(foreseen);
        Self { card, model: None, stored: *stored, resumed_from: None, intervals: None, private: None, foreseen }
    }
}

/// The card, the intervals, and where they come from where nothing was charged.
pub fn write_learned(learned: &Learned, out: &mut dyn Write) -> io::Result<()> {
    let out = &mut PlainText::onto(out);
    let (card, intervals) = (&learned.trained.card, learned.intervals.as_ref());
    write_card(card, out)?;
    if let Some(intervals) = intervals {
        writeln!(out)?;
        write_estimates(intervals, out)?;
    }
    if learned.stored {
        let new = intervals.is_some_and(|intervals| !intervals.stored);
        let charged = if new { "intervals were charged now" } else { "nothing was charged" };
        writeln!(out, "\nfrom entry {} of the ledger: {charged}", card.entry.unwrap_or(0))?;
    }
    Ok(())
}

/// The card of a model that was not learned yet, and what training it would come to.
pub fn write_prospect(prospect: &Prospect, out: &mut dyn Write) -> io::Result<()> {
    let out = &mut PlainText::onto(out);
    let Prospect { card, stored, free, gives_up, denied } = prospect;
    write_card(card, out)?;
    writeln!(out)?;
    match denied {
        Some(error) => {
            let would = if error.kind == ErrorKind::Refused { "be refused" } else { "fail" };
            writeln!(out, "it would {would}: {error}")?;
            error.hint.iter().try_for_each(|hint| writeln!(out, "  hint: {hint}"))
        }
        None if *free && *stored => writeln!(out, "it is in the ledger already: training it costs nothing more"),
        None if *free => writeln!(out, "it was begun and is paid for: going on with it costs nothing more"),
        None if *gives_up => {
            writeln!(
                out,
                "its seed takes all privacy away, so no budget is asked, everything is charged, and nothing is left for what comes after; nothing was charged yet"
            )
        }
        None => writeln!(out, "it fits the budget; nothing was charged"),
    }
}

/// The first predictions as a table, and how many more there are.
pub fn write_predictions(predicted: &[Predicted], shown: usize, out: &mut dyn Write) -> io::Result<()> {
    let out = &mut PlainText::onto(out);
    let has_probability = predicted.iter().any(|one| one.probability.is_some());
    let mut columns = vec![("row", Side::Right), ("predicted", Side::Left)];
    columns.extend(has_probability.then_some(("probability", Side::Right)));
    let mut table = Table::new(columns);
    for one in predicted.iter().take(shown) {
        let mut cells = vec![one.row.to_string(), one.predicted.clone()];
        cells.extend(one.probability.map(brief));
        table.row(cells);
    }
    table.write(out)?;
    if predicted.len() > shown {
        writeln!(out, "… and {} more; --csv FILE writes all of them", predicted.len() - shown)?;
    }
    Ok(())
}

/// All predictions as comma-separated values.
pub fn predictions_csv(predicted: &[Predicted]) -> io::Result<Vec<u8>> {
    let has_probability = predicted.iter().any(|one| one.probability.is_some());
    let columns: &[&str] = if has_probability { &["row", "predicted", "probability"] } else { &["row", "predicted"] };
    let mut text = Vec::new();
    csv::line(columns.iter().map(|name| Some((*name).to_owned())), &mut text)?;
    for one in predicted {
        let share = one.probability.map(|share| Some(share.to_string()));
        csv::line([Some(one.row.to_string()), Some(one.predicted.clone())].into_iter().chain(share), &mut text)?;
    }
    Ok(text)
}
