//! How wrong an answer would be, from rows that nobody has: a preview reads none.
//!
//! A group is made up, of about so many rows whose values lie evenly between their bounds, and sanitised a few hundred times over. What is reported
//! is how far the values then are from what they should be, by the very code that makes answers.

use crate::answer::{Cell, Value};
use crate::bound::{SumNoise, SumReach};
use crate::error::QueryError;
use crate::plan::aggregate::estimator::{Estimator, NoisyMeasures};
use crate::plan::measure::tree_of;
use crate::plan::{Part, Plan, Quantisation, Statistic, What};
use crate::release::ReleasedPart;
use crate::release::after::Table;
use crate::release::finish::{moments, titles, visible};
use crate::sanitise::Calibrated;
use crate::source::Tables;
use std::collections::BTreeSet;
use whit_core::mechanism::additive::{Coordinates, Law};
use whit_noise::{Ratio, Replay};

/// How often a made-up group is sanitised: errors are then known to about 2 %.
const DRAWS: usize = 2000;
/// How often with trees, which have thousands of counts: about 5 %.
const DRAWS_OF_TREES: usize = 400;
/// Means alone: values from the upper end down to here, and the worst of these is reported. The noise of a mean grows by 1.41 from the middle of the
/// bounds to their ends, and the last lies between; but a mean is clamped to its bounds, so that with much noise one near them is off by less than
/// one in the middle.
const MEANS: [f64; 3] = [1.0, 0.7, 0.4];

/// How far a column of the answer would be off.
pub(super) struct Guess {
    /// The column.
    pub(super) name: String,
    /// The part and the statistic that it is, where it is one.
    pub(super) of: Option<(usize, usize)>,
    /// With the confidence that was asked for, off by no more.
    pub(super) within: Option<f64>,
    /// The same as a share of the value; infinite where that is 0.
    pub(super) share: Option<f64>,
}

/// How far off a value is, and what it is.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Off {
    within: f64,
    truth: f64,
}

impl Off {
    fn share(self) -> f64 {
        match self.truth.abs() {
            _ if self.within == 0.0 => 0.0,
            // What arithmetic has left of 0 is 0.
            truth if truth <= 1e-9 * self.within => f64::INFINITY,
            truth => self.within / truth,
        }
    }
}

/// The names of the columns of a question that reads nothing private.
pub(super) fn columns(plan: &Plan) -> Vec<String> {
    plan.parts.iter().flat_map(|part| titles(plan, part).into_iter().skip(part.keys.len())).collect()
}

/// How far each column would be off in a group of so many rows.
pub(super) fn guesses(
    tables: &Tables,
    plan: &Plan,
    noise: &Calibrated,
    rows: f64,
    confidence: f64,
) -> Result<Vec<Guess>, QueryError> {
    let mut guesses = Vec::new();
    for (number, part) in plan.parts.iter().enumerate() {
        let noises = &noise.parts[number].measures;
        let single = if plan.parts.len() == 1 { visible(&plan.question, &plan.after, part) } else { None };
        let statistics = single.unwrap_or_else(|| {
            let names = titles(plan, part).into_iter().skip(part.keys.len());
            names.enumerate().map(|(i, name)| (name, Ok(i))).collect()
        });
        // What is known exactly need not be tried, nor is a range needed for it.
        let tried = statistics.iter().any(|(_, column)| match column {
            Ok(i) => known(part, *i).is_none(),
            Err(_) => true,
        });
        let groups = if tried { drawn_often(part, noises, rows, confidence)? } else { Vec::new() };
        for (name, column) in statistics {
            let of = column.ok().map(|statistic| (number, statistic));
            let off = match column {
                Ok(i) => match known(part, i) {
                    Some(measure) => worst(exactly(part, &noises[measure], (measure, rows), confidence)?.into_iter()),
                    None => worst(groups.iter().map(|drawn| reach(drawn.cells[i].iter().map(number_of), confidence))),
                },
                Err(column) => {
                    let reaches = groups.iter().map(|drawn| {
                        let values = moments(tables, &plan.after, &Table::of(part, &[], drawn), column)?;
                        Ok(reach(values.into_iter(), confidence))
                    });
                    worst(reaches.collect::<Result<Vec<_>, QueryError>>()?.into_iter())
                }
            };
            let (within, share) = off.unzip();
            guesses.push(Guess { name, of, within, share });
        }
    }
    Ok(guesses)
}

/// The largest of some errors, by itself and as a share of its value; nothing where one of them is not known, or where there are none.
fn worst(errors: impl Iterator<Item = Option<Off>>) -> Option<(f64, f64)> {
    let both = errors.map(|off| off.map(|off| (off.within, off.share())));
    both.reduce(|one, other| {
        let ((within, share), (own, part)) = (one?, other?);
        Some((within.max(own), share.max(part)))
    })
    .flatten()
}

/// How far a count or a sum is off, whose noise is that of the value, in each of the groups that are made up.
fn exactly(
    part: &Part,
    noise: &SumNoise,
    (measure, rows): (usize, f64),
    confidence: f64,
) -> Result<Vec<Option<Off>>, QueryError> {
    let step = part.step_of(measure, &[]);
    let within = noise.within(confidence) * step;
    let of = |share: f64| {
        let made = part.imagined(measure, rows, share)?;
        Ok(made.and_then(|made| made.first().map(|&steps| Off { within, truth: steps as f64 * step })))
    };
    MEANS.into_iter().map(of).collect()
}

/// The groups that are made up, each drawn often; none where a range has to be found first.
fn drawn_often(part: &Part, noise: &[SumNoise], rows: f64, confidence: f64) -> Result<Vec<ReleasedPart>, QueryError> {
    let mut groups: Vec<Vec<Vec<i64>>> = Vec::new();
    for share in MEANS {
        let made = imagined(part, rows, share)?.filter(|made| !groups.contains(made));
        groups.extend(made);
    }
    groups.iter().map(|made| drawn(part, noise, made, confidence)).collect()
}

/// The measure of a count or a sum, whose noise is that of the value.
fn known(part: &Part, statistic: usize) -> Option<usize> {
    let estimate = part.statistics[statistic].estimator().filter(|estimate| estimate.is_its_measure())?;
    let measure = *estimate.measures().first()?;
    let unknown = matches!(part.measures[measure].what, What::Sum { quantisation: Quantisation::Found { .. }, .. });
    (!unknown).then_some(measure)
}

fn number_of(cell: &Cell) -> f64 {
    match cell.value {
        Value::Int(value) => value as f64,
        Value::Float(value) => value,
        Value::Null | Value::Bool(_) | Value::Text(_) => f64::NAN,
    }
}

/// With this confidence, how far values are from the first, which is the truth.
fn reach(mut values: impl Iterator<Item = f64>, confidence: f64) -> Option<Off> {
    let truth = values.next().filter(|truth| truth.is_finite())?;
    let mut off: Vec<f64> = values.map(|value| (value - truth).abs()).collect();
    off.sort_by(f64::total_cmp); // what is no number is furthest off
    let place = (off.len() as f64 * confidence).ceil() as usize;
    let within = off.get(place.clamp(1, off.len().max(1)) - 1).copied().filter(|off| off.is_finite())?;
    Some(Off { within, truth })
}

/// The measures of a group that is made up, without noise, with means over so much of their bounds; nothing where a range has to be found first.
fn imagined(part: &Part, rows: f64, means: f64) -> Result<Option<Vec<Vec<i64>>>, QueryError> {
    let about_spread = part.statistics.iter().filter_map(Statistic::estimator).filter(|own| own.is_about_spread());
    let spread: BTreeSet<usize> = about_spread.flat_map(Estimator::measures).collect();
    let needed = needed(part);
    let mut measures = Vec::new();
    for measure in 0..part.measures.len() {
        if !needed.contains(&measure) {
            measures.push(vec![0]);
            continue;
        }
        let share = if spread.contains(&measure) { 1.0 } else { means };
        let Some(made) = part.imagined(measure, rows, share)? else { return Ok(None) };
        measures.push(made);
    }
    Ok(Some(measures))
}

/// The measures that a part's own statistics are made of: those of questions that share it are not.
fn needed(part: &Part) -> BTreeSet<usize> {
    part.statistics.iter().flat_map(Statistic::measures).collect()
}

/// The range of a statistic that is read from a tree.
fn range_of(part: &Part, statistic: &Statistic) -> Result<(f64, f64), QueryError> {
    let tree = statistic.measures().into_iter().find_map(|measure| match &part.measures[measure].what {
        What::Tree { tree, .. } => Some(tree),
        _ => None,
    });
    Ok(tree_of(tree.ok_or_else(|| QueryError::failed("a range of what is read from no tree"))?, &[])?.range())
}

/// An answer that leaves all of the range open tells nothing, wherever in it the value stands: it counts as off by as
/// much as it may be, which is half of the range or more, and all of it for the least and the largest value. The
/// middle, which is reported then, would be right by chance, since made-up values lie evenly around it.
fn counted(cell: Cell, estimate: &dyn Estimator, truth: f64, (low, high): (f64, f64)) -> Cell {
    if cell.low.is_some_and(|end| end > low) || cell.high.is_some_and(|end| end < high) {
        return cell;
    }
    let off = estimate.furthest(truth, (low, high));
    Cell { value: Value::Float(truth + off), ..cell }
}

/// The made-up group as it is, and then as often as it is drawn.
fn drawn(part: &Part, noise: &[SumNoise], made: &[Vec<i64>], confidence: f64) -> Result<ReleasedPart, QueryError> {
    let failed = |error: &dyn std::fmt::Display| QueryError::failed(error.to_string());
    let mut entropy = Replay::new(0x5ee5); // of rows that nobody has: nothing here is secret
    let trees = needed(part).into_iter().any(|measure| matches!(part.measures[measure].what, What::Tree { .. }));
    let draws = if trees { DRAWS_OF_TREES } else { DRAWS };
    let mut values: Vec<Vec<i64>> = made.iter().map(|made| made.repeat(draws)).collect();
    for (values, noise) in values.iter_mut().zip(noise) {
        noise.add(values, &mut entropy).map_err(|error| failed(&error))?;
    }
    let nothing = Ratio::new(1, 1 << 20).map_err(|error| failed(&error))?;
    let nothing = Law::laplace(nothing).map_err(|error| failed(&error))?;
    let nothing = SumNoise::new(nothing, SumReach::unknown(), Coordinates::Any);
    let nothing = vec![nothing; noise.len()]; // so little that it is always 0
    let truth = NoisyMeasures::new(part, &nothing, made.to_vec(), &[], confidence).without_noise();
    let noisy_measures = NoisyMeasures::new(part, noise, values, &[], confidence);
    let groups: Vec<usize> = (0..draws).collect();
    let mut cells = Vec::new();
    for statistic in &part.statistics {
        let bare = |value: Value| Cell { value, low: None, high: None };
        let Some(estimate) = statistic.estimator() else {
            cells.push((0..=draws).map(|_| bare(Value::Null)).collect());
            continue;
        };
        // Only trees need their intervals to be read at all, and those take the longest.
        cells.push(
            if let (Some(truth), Some(noisy)) = (estimate.values(&truth, 1)?, estimate.values(&noisy_measures, draws)?)
            {
                let at = truth.first().map_or(f64::NAN, |truth| number_of(&bare(truth.clone())));
                let noisy = match estimate.previewed(&noisy_measures, draws)? {
                    Some(off) => off.into_iter().map(|off| Value::Float(at + off)).collect(),
                    None => noisy,
                };
                truth.into_iter().chain(noisy).map(bare).collect()
            } else {
                let (mut cells, noisy) = (estimate.cells(&truth, &[0])?, estimate.cells(&noisy_measures, &groups)?);
                let (truth, range) = (cells.first().map_or(f64::NAN, number_of), range_of(part, statistic)?);
                cells.extend(noisy.into_iter().map(|cell| counted(cell, estimate, truth, range)));
                cells
            },
        );
    }
    let keys = vec![vec![Value::Null; part.keys.len()]; draws + 1];
    Ok(ReleasedPart { keys, cells, ..ReleasedPart::default() })
}
