//! What a training leaves behind: cards, intervals, scores, curves and predictions.

use crate::csv;
use crate::measure::Measure;
use crate::number::{brief, brief_up, grouped, number_of, percent};
use crate::plain::PlainText;
use crate::plot::{BLUE, ChartAxis, LineChart, ORANGE, Picture, Scale, Trace};
use crate::table::{Side, Table};
use serde::Serialize;
use std::io::{self, Write};
use whit::Error;
use whit::error::ErrorKind;
use whit::learn::Card;
use whit::train::{Estimate, Estimates, Judged, Learned, Measures, Predictions, Prospect, Score, Shortened, Training};
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

/// A share, or that there is none.
fn share(share: Option<f64>) -> String {
    share.map_or_else(|| "–".to_owned(), percent)
}

/// How well classes are told apart: which is taken for which, class by class, and how far probabilities may be believed.
pub fn write_measures(measures: &Measures, out: &mut dyn Write) -> io::Result<()> {
    let out = &mut PlainText::onto(out);
    let Measures { classes, confusion, by_class, f1, auc, calibration_error, reliability } = measures;
    let mut table = Table::new([("F1", Side::Right), ("AUC", Side::Right), ("calibration error", Side::Right)]);
    table.row([share(*f1), auc.map_or_else(|| "–".to_owned(), brief), percent(*calibration_error)]);
    table.write(out)?;
    writeln!(out)?;
    let mut columns = vec![("is, predicted as".to_owned(), Side::Left)];
    columns.extend(classes.iter().map(|class| (class.clone(), Side::Right)));
    columns.extend(["precision", "recall", "F1"].map(|name| (name.to_owned(), Side::Right)));
    let mut table = Table::new(columns);
    for ((class, counts), own) in classes.iter().zip(confusion).zip(by_class) {
        let mut cells = vec![class.clone()];
        cells.extend(counts.iter().map(|count| grouped(&count.to_string())));
        cells.extend([own.precision, own.recall, own.f1].map(share));
        table.row(cells);
    }
    table.write(out)?;
    writeln!(out)?;
    let mut table = Table::new([
        ("sure by", Side::Left),
        ("rows", Side::Right),
        ("on average", Side::Right),
        ("right", Side::Right),
    ]);
    for range in reliability {
        let within = format!("{} … {}", percent(range.from), percent(range.to));
        let rows = grouped(&range.rows.to_string());
        table.row([within, rows, percent(range.probability), percent(range.accuracy)]);
    }
    table.write(out)
}

/// What was released of how well a model does.
pub fn write_judged(judged: &Judged, out: &mut dyn Write) -> io::Result<()> {
    let out = &mut PlainText::onto(out);
    let mut columns = vec![("is, predicted as".to_owned(), Side::Left)];
    columns.extend(judged.classes.iter().map(|class| (class.clone(), Side::Right)));
    let mut table = Table::new(columns);
    for (class, counts) in judged.classes.iter().zip(&judged.confusion) {
        table.row(std::iter::once(class.clone()).chain(counts.iter().map(|count| grouped(&count.to_string()))));
    }
    table.write(out)?;
    let (sure, within) = (percent(judged.confidence), brief(judged.within));
    writeln!(
        out,
        "\neach count is ± {within} ({sure}) of at most {} a unit, on rows that were set aside",
        number_of(judged.rows_per_unit, "row")
    )?;
    match judged.accuracy {
        Some(share) => {
            let (value, low, high) = (percent(share.value), percent(share.low), percent(share.high));
            writeln!(out, "accuracy on these rows: {value}, within {low} … {high} ({sure})")?;
        }
        None => writeln!(out, "accuracy: the noise leaves no rows to divide by; a larger ε would")?,
    }
    let charged = if judged.stored { "from the ledger: nothing was charged" } else { "charged" };
    let (epsilon, delta) = (brief_up(judged.epsilon), brief(judged.delta));
    writeln!(
        out,
        "ε at most {epsilon} at δ = {delta} for {}; {}; entry {}, {charged}",
        judged.unit, judged.noise, judged.entry
    )
}

/// How often predictions are right, by how sure the model is of them: on the line where it may be believed.
pub fn reliability(training: &Training, measures: &Measures) -> Picture {
    let line = |name: &str, colour: &'static str, points: Vec<(f64, f64)>| Trace {
        name: name.to_owned(),
        colour,
        steps: false,
        points: points.into_iter().map(|(x, y)| (x, Some(Measure::exactly(y)))).collect(),
    };
    let found = measures.reliability.iter().map(|range| (range.probability, range.accuracy)).collect();
    LineChart {
        title: format!("How far predictions of {} may be believed", training.target()),
        subtitle: "On rows that were set aside. It was not sanitised: for the owner of the data only".to_owned(),
        across: ChartAxis { name: "probability of what is predicted".to_owned(), scale: Scale::Number },
        axis: "share that is right (private)".to_owned(),
        traces: vec![line("found", BLUE, found), line("as sure as right", ORANGE, vec![(0.0, 0.0), (1.0, 1.0)])],
        limits: Vec::new(),
        note: format!("Expected calibration error {}", percent(measures.calibration_error)),
    }
    .draw()
}

/// A score in one line.
pub fn score_line(score: &Score) -> String {
    let accuracy = score.accuracy.map_or_else(String::new, |share| format!(", accuracy {}", percent(share)));
    let (rows, loss) = (number_of(grouped(&score.rows.to_string()), "row"), brief(score.loss));
    format!("private, not sanitised, for the owner only: on {rows} a mean loss of {loss}{accuracy}")
}

/// How many units were clipped, in one line.
pub fn shortened_line(shortened: &Shortened) -> String {
    let (all, last) = (percent(shortened.all), percent(shortened.last));
    format!(
        "private, not sanitised, for the owner only: {all} of the units that were drawn had gradients longer than the clip norm, {last} in the last tenth of the steps"
    )
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
    /// How many of the units that were drawn were clipped: as private as the rows.
    #[serde(skip_serializing_if = "Option::is_none")]
    private_clipped: Option<Shortened>,
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
            private_clipped: learned.shortened,
            foreseen: None,
        }
    }

    /// Of one that is only foreseen.
    pub fn of_prospect(prospect: &'a Prospect) -> Self {
        let Prospect { card, stored, free, gives_up, denied } = prospect;
        let foreseen = ForeseenView { free: *free, gives_up_privacy: *gives_up, denied: denied.as_ref().map(denial) };
        let foreseen = Some(foreseen);
        Self {
            card,
            model: None,
            stored: *stored,
            resumed_from: None,
            intervals: None,
            private: None,
            private_clipped: None,
            foreseen,
        }
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

/// The columns of predictions, and on which side they stand.
fn columns_of(predicted: &Predictions) -> Vec<(String, Side)> {
    let has_probability = predicted.rows.iter().any(|one| one.probability.is_some());
    let mut columns = vec![("row".to_owned(), Side::Right)];
    columns.extend(predicted.carried.iter().map(|name| (name.clone(), Side::Left)));
    columns.push(("predicted".to_owned(), Side::Left));
    columns.extend(has_probability.then(|| ("probability".to_owned(), Side::Right)));
    columns.extend(predicted.classes.iter().map(|class| (format!("p({class})"), Side::Right)));
    columns
}

/// The cells of one row of predictions; what is missing has none.
fn cells_of(predicted: &Predictions, row: usize, number: impl Fn(f64) -> String) -> Vec<Option<String>> {
    let one = &predicted.rows[row];
    let mut cells = vec![Some(one.row.to_string())];
    cells.extend(predicted.carried.iter().map(|name| one.carried.get(name).cloned().flatten()));
    cells.push(Some(one.predicted.clone()));
    cells.extend(one.probability.map(|share| Some(number(share))));
    cells.extend(predicted.classes.iter().map(|class| one.probabilities.get(class).map(|share| number(*share))));
    cells
}

/// The first predictions as a table, and how many more there are.
pub fn write_predictions(predicted: &Predictions, shown: usize, out: &mut dyn Write) -> io::Result<()> {
    let out = &mut PlainText::onto(out);
    let mut table = Table::new(columns_of(predicted));
    let many = predicted.rows.len();
    for row in 0..many.min(shown) {
        table.row(cells_of(predicted, row, brief).into_iter().map(Option::unwrap_or_default));
    }
    table.write(out)?;
    if many > shown {
        writeln!(out, "… and {} more; --csv FILE writes all of them", many - shown)?;
    }
    Ok(())
}

/// All predictions as comma-separated values.
pub fn predictions_csv(predicted: &Predictions) -> io::Result<Vec<u8>> {
    let mut text = Vec::new();
    csv::line(columns_of(predicted).into_iter().map(|(name, _)| Some(name)), &mut text)?;
    for row in 0..predicted.rows.len() {
        csv::line(cells_of(predicted, row, |share| share.to_string()).into_iter(), &mut text)?;
    }
    Ok(text)
}
