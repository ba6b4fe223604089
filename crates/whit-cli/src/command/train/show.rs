//! Cards, intervals, scores and curves, for people.

use crate::command::Error;
use std::io::Write;
use whit::learn::Card;
use whit::train::{Estimate, Estimates, Score, Training};
use whit_view::measure::Measure;
use whit_view::number::{brief, brief_up, grouped, percent};
use whit_view::plot::{Axis, BLUE, Lines, Picture, Scale, Trace};
use whit_view::table::{Side, Table};

/// The loss over the steps.
pub(super) fn picture(training: &Training, points: &[(f64, f64)]) -> Picture {
    let point = |&(step, loss): &(f64, f64)| (step, Some(Measure::exactly(loss)).filter(|_| loss.is_finite()));
    Lines {
        title: format!("Learning {} from {}", training.target(), training.dataset()),
        subtitle: "The loss on rows that were set aside. It was not sanitised: for the owner of the data only"
            .to_owned(),
        across: Axis { name: "step".to_owned(), scale: Scale::Number },
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

/// A score in one line.
pub(super) fn told(score: &Score) -> String {
    let accuracy = score.accuracy.map_or_else(String::new, |share| format!(", {} told right", percent(share)));
    let (rows, loss) = (grouped(&score.rows.to_string()), brief(score.loss));
    format!("private, not sanitised, for the owner only: on {rows} rows a mean loss of {loss}{accuracy}")
}

/// The card: a table of rungs, and what else there is.
pub(super) fn write_card(card: &Card, out: &mut dyn Write) -> Result<(), Error> {
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
pub(super) fn write_estimates(estimates: &Estimates, out: &mut dyn Write) -> Result<(), Error> {
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
