//! ε over time, as steps under the budget: one picture a data set.

use super::HistoryView;
use crate::measure::Measure;
use crate::number::brief;
use crate::plot::{ChartAxis, LimitLine, LineChart, PALETTE, Picture, Scale, Trace};

/// The picture of what was spent over time.
pub(super) fn of(histories: &[HistoryView]) -> Picture {
    let mut datasets: Vec<&str> = histories.iter().map(|history| history.dataset.as_str()).collect();
    datasets.dedup();
    let pictures: Vec<Picture> = datasets
        .into_iter()
        .map(|dataset| {
            let own: Vec<&HistoryView> = histories.iter().filter(|history| history.dataset == dataset).collect();
            one(dataset, &own)
        })
        .collect();
    if pictures.is_empty() { one("the ledger", &[]) } else { Picture::stack(&pictures) }
}

fn one(dataset: &str, histories: &[&HistoryView]) -> Picture {
    let colour = |i: usize| PALETTE[i % PALETTE.len()];
    let last = histories.iter().filter_map(|history| history.moments.last()).map(|m| m.at).fold(f64::MIN, f64::max);
    let traces = histories.iter().enumerate().map(|(i, history)| {
        let point = |at: f64, epsilon: f64| (at, Some(Measure::exactly(epsilon)).filter(|m| m.value.is_finite()));
        let mut points: Vec<_> = history.moments.iter().map(|m| point(m.at, m.epsilon.0)).collect();
        if let Some(end) = history.moments.last().filter(|m| m.at < last) {
            points.push(point(last, end.epsilon.0));
        }
        Trace {
            name: format!("{}, at δ = {}", history.unit, brief(history.delta)),
            colour: colour(i),
            steps: true,
            points,
        }
    });
    let limits = histories.iter().enumerate().filter_map(|(i, history)| {
        let value = history.budget?;
        Some(LimitLine {
            name: format!("budget per {}: ε = {}", history.unit, brief(value)), colour: colour(i), value
        })
    });
    LineChart {
        title: format!("What {dataset} has spent"),
        subtitle: "Every release that was paid for, whether or not it finished; a step down is one that was voided"
            .to_owned(),
        across: ChartAxis { name: "time (UTC)".to_owned(), scale: Scale::Time },
        axis: "ε".to_owned(),
        traces: traces.collect(),
        limits: limits.collect(),
        note: String::new(),
    }
    .draw()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_empty_ledger_has_a_picture_too() {
        let picture = of(&[]);
        assert!(picture.svg().starts_with("<svg") && picture.svg().contains("What the ledger has spent"));
    }
}
