//! What a question would cost and how wrong it would be, before anything is charged; and how it is planned.

use crate::answer::{Price, Statement};
use crate::error::QueryError;
use crate::plan::{Asking, Grain, Groups, Plan, Statistic, What};
use crate::release::Tables;
use crate::release::finish::titles;
use crate::sanitise::statistic::step_of;
use crate::sanitise::{Calibrated, calibrate, is_private, short};
use serde::Serialize;
use std::fmt::Write as _;
use whit_core::release::CONFIDENCE;

/// What one column of the answer would be off by.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Error {
    /// The column.
    pub name: String,
    /// With the preview's confidence, off by at most this; nothing where it is exact, or where it depends on the data.
    pub within: Option<f64>,
    /// In words, where a number alone would not do.
    pub words: String,
}

/// A question that was planned and priced, and not asked.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Preview {
    /// The question.
    pub question: String,
    /// The data set that would pay.
    pub dataset: String,
    /// The protected unit.
    pub unit: String,
    /// ε of the protected rung.
    pub epsilon: f64,
    /// δ.
    pub delta: f64,
    /// What each rung would pay.
    pub prices: Vec<Price>,
    /// How wrong each column would be.
    pub errors: Vec<Error>,
    /// The confidence of that.
    pub confidence: f64,
    /// How it would be done, line by line.
    pub plan: Vec<String>,
    /// What a reader must know.
    pub notes: Vec<String>,
}

/// How a question stands to one budget.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct BudgetFit {
    /// The unit.
    pub unit: String,
    /// For whom; for everybody together where there is none.
    pub analyst: Option<String>,
    /// The budget's ε.
    pub epsilon: f64,
    /// The budget's δ.
    pub delta: f64,
    /// ε left, as `whit ledger` tells it.
    #[serde(rename = "epsilon_left")]
    pub left: f64,
    /// Whether the question fits.
    pub fits: bool,
    /// What it would say, where it does not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub refusal: Option<String>,
}

/// How a question stands to all budgets.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct Fits {
    /// One after the other.
    pub budgets: Vec<BudgetFit>,
    /// The largest ε with which it would fit all of them, where it does not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub epsilon_that_fits: Option<String>,
}

/// How close an answer should be.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Within {
    /// By so much.
    Absolute(f64),
    /// By such a share of a value of this size.
    Relative {
        /// The share.
        share: f64,
        /// The size.
        of: f64,
    },
}

impl Within {
    fn number(self) -> f64 {
        match self {
            Self::Absolute(number) => number,
            Self::Relative { share, of } => share * of,
        }
    }
}

impl Tables {
    /// Plans and prices a question. Nothing private is read and nothing is charged.
    pub fn preview(&self, sql: &str, asking: &Asking) -> Result<Preview, QueryError> {
        let logical = self.logical(sql)?;
        if let Some((call, _)) = self.call(sql, &logical)? {
            return call.preview(self, sql, asking);
        }
        let plan = self.planned(sql, &logical, asking)?;
        let confidence = asking.confidence.unwrap_or(CONFIDENCE);
        if !plan.parts.iter().any(is_private) {
            return Ok(view(&plan, None, confidence));
        }
        let (epsilon, delta) = self.price_of(&plan.dataset, asking)?;
        let calibrated = calibrate(&plan, epsilon, delta)?;
        Ok(view(&plan, Some(&calibrated), confidence))
    }

    /// The smallest ε with which every count and sum of a question is off by no more than this.
    pub fn within(&self, sql: &str, asking: &Asking, within: Within) -> Result<Preview, QueryError> {
        let goal = within.number();
        if goal.is_nan() || goal <= 0.0 {
            return Err(QueryError::asked("an error of 0 or less cannot be promised", "give a number above 0"));
        }
        let at = |epsilon: f64| self.preview(sql, &Asking { epsilon: Some(epsilon), ..asking.clone() });
        let reaches =
            |preview: &Preview| preview.errors.iter().filter_map(|error| error.within).fold(0.0, f64::max) <= goal;
        let (mut low, mut high) = (1e-6_f64, 1e4_f64);
        let mut best = at(high)?;
        if best.errors.iter().all(|error| error.within.is_none()) {
            return Err(QueryError::asked(
                "how wrong the answer would be depends on the data, so no ε can be found for an error",
                "preview it with a few values of --epsilon",
            ));
        }
        if !reaches(&best) {
            return Err(QueryError::asked(
                format!("no ε up to {high} brings every value within {}", short(goal)),
                "ask for a larger error, or declare tighter caps and bounds",
            ));
        }
        let least = at(low)?;
        if reaches(&least) {
            return Ok(least);
        }
        while high / low > 1.001 {
            let middle = (low * high).sqrt();
            let preview = at(middle)?;
            if reaches(&preview) {
                (high, best) = (middle, preview);
            } else {
                low = middle;
            }
        }
        Ok(best)
    }
}

fn view(plan: &Plan, calibrated: Option<&Calibrated>, confidence: f64) -> Preview {
    let unit = match calibrated {
        Some(_) => plan.rungs.first().map_or_else(String::new, |rung| rung.unit.to_string()),
        None => "nothing private is read".to_owned(),
    };
    Preview {
        question: plan.question.clone(),
        dataset: plan.dataset.clone(),
        unit,
        epsilon: calibrated.map_or(0.0, |calibrated| calibrated.epsilon),
        delta: calibrated.map_or(0.0, |calibrated| calibrated.delta),
        prices: calibrated.map_or_else(Vec::new, |calibrated| Statement::prices(&calibrated.charge, calibrated.delta)),
        errors: errors(plan, calibrated, confidence),
        confidence,
        plan: lines(plan, calibrated),
        notes: plan.notes.clone(),
    }
}

fn errors(plan: &Plan, calibrated: Option<&Calibrated>, confidence: f64) -> Vec<Error> {
    let mut errors = Vec::new();
    for (number, part) in plan.parts.iter().enumerate() {
        let noise = calibrated.map(|calibrated| &calibrated.parts[number].measures);
        let mut titles = titles(plan, part).into_iter().skip(part.keys.len());
        for statistic in &part.statistics {
            let name = titles.next().unwrap_or_default();
            let of =
                |measure: usize| noise.map(|noise| noise[measure].within(confidence) * step_of(part, measure, &[]));
            let found = |measure: usize| match &part.measures[measure].what {
                What::Sum { place: crate::plan::Place::Found { .. }, .. } => None,
                _ => of(measure),
            };
            let (within, words) = match statistic {
                Statistic::Exact(_) => (None, "exact, and free".to_owned()),
                Statistic::Count(measure) | Statistic::Sum(measure) => match found(*measure) {
                    Some(within) => (Some(within), String::new()),
                    None => (None, "depends on the bounds that are found".to_owned()),
                },
                Statistic::Mean { sum, .. } => match found(*sum) {
                    Some(of_sum) => {
                        (None, format!("± {} for a group of 1,000 rows, less for larger ones", short(of_sum / 1000.0)))
                    }
                    None => (None, "depends on the bounds that are found".to_owned()),
                },
                Statistic::Spread { squares, .. } => match found(*squares) {
                    Some(of_squares) => {
                        (None, format!("a variance ± {} for a group of 1,000 rows", short(of_squares / 1000.0)))
                    }
                    None => (None, "depends on the bounds that are found".to_owned()),
                },
                Statistic::Quantile { tree, .. } | Statistic::Least(tree) | Statistic::Largest(tree) => (
                    None,
                    of(*tree).map_or_else(String::new, |rank| format!("within about {} ranks", short(rank * 3.0))),
                ),
            };
            errors.push(Error { name, within, words });
        }
    }
    errors
}

/// The plan as people see it: from what is released down to what is read.
fn lines(plan: &Plan, calibrated: Option<&Calibrated>) -> Vec<String> {
    let mut lines = Vec::new();
    for (number, part) in plan.parts.iter().enumerate() {
        let keys: Vec<&str> = part.keys.iter().map(|key| key.name.as_str()).collect();
        let by = if keys.is_empty() { String::new() } else { format!(" by {}", keys.join(", ")) };
        let what: Vec<&str> = part.output[part.keys.len()..].iter().map(|(name, _)| name.as_str()).collect();
        match calibrated {
            Some(calibrated) => {
                lines.push(format!("Release: {}{by}, ε = {}", what.join(", "), short(calibrated.epsilon)));
            }
            None => lines.push(format!("Release: {}{by}, free", what.join(", "))),
        }
        let groups = match part.groups {
            Groups::One => "one, of all rows".to_owned(),
            Groups::Listed => {
                let number: usize = part.keys.iter().map(|key| key.listed.as_ref().map_or(1, Vec::len)).product();
                format!("all {number} that are public")
            }
            Groups::Observed => "those that occur, which are public".to_owned(),
            Groups::Selected => {
                let half = calibrated
                    .and_then(|calibrated| calibrated.parts[number].keys.as_ref())
                    .map(whit_core::mechanism::keys::Keys::half);
                let counted = if part.grain == Grain::Row { "rows" } else { "users" };
                half.map_or_else(String::new, |half| {
                    format!("those that enough {counted} have (even chance at {half})")
                })
            }
        };
        lines.push(format!("  Groups: {groups}"));
        for (i, measure) in part.measures.iter().enumerate() {
            let mut line = format!("    Sanitise: {}", measure.name);
            if let Some(calibrated) = calibrated {
                let noise = &calibrated.parts[number].measures[i];
                let _ = write!(line, ", {}", noise.words(step_of(part, i, &[])));
            }
            lines.push(line);
        }
        let exact: Vec<&str> = part
            .statistics
            .iter()
            .enumerate()
            .filter(|(_, statistic)| matches!(statistic, Statistic::Exact(_)))
            .map(|(i, _)| part.output[part.keys.len() + i].0.as_str())
            .collect();
        if !exact.is_empty() {
            lines.push(format!("    Exact: {}: public columns only", exact.join(", ")));
        }
        for auto in &part.autos {
            lines.push(format!("    Find: the range of {}", auto.name));
        }
        let mut bound = String::from("      Bound: ");
        bound.push_str(match part.grain {
            Grain::Row => "each row on its own",
            Grain::Element => "each user's rows in one element together",
            Grain::User => "each user's rows together",
        });
        if let Some(most) = part.groups_per_unit {
            let _ = write!(bound, ", at most {most} {}", if most == 1 { "group" } else { "groups" });
        }
        if let Some(most) = part.elements_per_user {
            let _ = write!(bound, ", at most {most} elements a user");
        }
        for (within, most) in &part.row_caps {
            let _ =
                write!(bound, ", at most {most} rows a {}", if within.len() > 1 { "user and element" } else { "user" });
        }
        for measure in &part.measures {
            match measure.what {
                What::Tree { rows, .. } => {
                    let _ = write!(bound, "; {} weighs at most {rows} rows", measure.name);
                }
                _ => {
                    let _ = write!(bound, "; {} in {}..{} steps", measure.name, measure.low, measure.high);
                }
            }
        }
        lines.push(bound);
        lines.push(format!(
            "        Scan: {}, unit = {}",
            plan.dataset,
            plan.rungs.first().map_or_else(String::new, |rung| rung.unit.to_string())
        ));
    }
    lines
}
