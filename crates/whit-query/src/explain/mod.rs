//! What a question would cost and how wrong it would be, before anything is charged; and how it is planned.

mod fits;
mod imagine;
mod repeated;
mod within;
mod workload;

pub use crate::answer::{Error, Preview, QuestionPreview, WorkloadPreview};
pub use fits::{BudgetFit, Denial, Fits};
pub use repeated::{Repeated, RepeatedBudget};
pub use whit_account::ledger::MOST_TIMES;
pub use within::Within;

use crate::answer::Statement;
use crate::error::QueryError;
use crate::estimate::sql;
use crate::plan::{Asking, Grain, Groups, Measure, Plan, Statistic, What};
use crate::release::finish::picking;
use crate::sanitise::{Calibrated, calibrate, is_private, short};
use crate::source::Tables;
use crate::translate::with_sql_types;
use datafusion::logical_expr::LogicalPlan;
use imagine::Guess;
use std::fmt::Write as _;
use whit_core::digits::number_of;

/// Rows of a group, where it is not said how many there are about.
pub const ABOUT: f64 = 1000.0;

impl Tables {
    /// Plans and prices a question. Nothing private is read and nothing is charged.
    pub fn preview(&self, sql: &str, asking: &Asking) -> Result<Preview, QueryError> {
        let logical = self.logical(sql)?;
        if let Some((call, _)) = self.call(sql, &logical)? {
            return sql::preview(&call, self, sql, asking);
        }
        let plan = self.planned(sql, &logical, asking)?;
        let (mut preview, useless) = self.foreseen(&plan, asking)?;
        if let Some(useless) = useless {
            let help = self.helped(&plan, &logical, asking, &useless)?;
            preview.notes.insert(0, format!("{}; {help}", useless.words));
        }
        Ok(preview)
    }

    /// The preview of a question that was planned, and whether it would tell nothing.
    fn foreseen(&self, plan: &Plan, asking: &Asking) -> Result<(Preview, Option<Useless>), QueryError> {
        let confidence = asking.confidence()?;
        if !plan.parts.iter().any(is_private) {
            let errors = imagine::columns(plan).into_iter().map(exact).collect();
            return Ok((view(plan, None, errors, confidence), None));
        }
        let (epsilon, delta) = self.price_of(&plan.dataset, asking)?;
        let calibrated = calibrate(plan, epsilon, delta)?;
        let (errors, useless) = self.errors_of(plan, &calibrated, asking)?;
        let mut view = view(plan, Some(&calibrated), errors, confidence);
        view.notes.extend(picking(plan, confidence));
        Ok((view, useless))
    }

    /// How far each column of a plan would be off with this noise, and whether one would tell nothing.
    fn errors_of(
        &self,
        plan: &Plan,
        noise: &Calibrated,
        asking: &Asking,
    ) -> Result<(Vec<Error>, Option<Useless>), QueryError> {
        let rows = asking.about.filter(|rows| *rows >= 1.0).unwrap_or(ABOUT);
        let guesses = by_grouping(plan, imagine::guesses(self, plan, noise, rows, asking.confidence()?)?);
        let useless = useless(plan, &guesses, rows);
        Ok((guesses.into_iter().map(|guess| described(plan, guess, rows)).collect(), useless))
    }

    /// What would make a useless question worth its price, found by trying: fewer groups or rows of one unit, and more ε.
    fn helped(
        &self,
        plan: &Plan,
        logical: &LogicalPlan,
        asking: &Asking,
        useless: &Useless,
    ) -> Result<String, QueryError> {
        let at = |plan: &Plan, asking: &Asking| match self.foreseen(plan, asking) {
            Ok((preview, None)) => preview.errors.iter().find(|error| error.name == useless.name)?.within,
            _ => None,
        };
        let caps = self.helped_by_caps(plan, logical, asking, useless, &at);
        let epsilon = self.price_of(&plan.dataset, asking)?.0;
        let more = [2.0, 5.0, 10.0, 20.0, 50.0, 100.0, 1000.0].into_iter().find_map(|times| {
            let within = at(plan, &Asking { epsilon: Some(epsilon * times), ..asking.clone() })?;
            Some(format!("`asking.epsilon = {}` would bring it to ± {}", short(epsilon * times), short(within)))
        });
        let helps: Vec<String> = caps.into_iter().chain(more).collect();
        Ok(if helps.is_empty() { "ask for larger groups".to_owned() } else { helps.join(", or ") })
    }

    /// The largest caps below those of a useless question with which it would tell something, and how far it would be off.
    fn helped_by_caps(
        &self,
        plan: &Plan,
        logical: &LogicalPlan,
        asking: &Asking,
        useless: &Useless,
        at: &dyn Fn(&Plan, &Asking) -> Option<f64>,
    ) -> Option<String> {
        let fewer = |most: Option<u64>, by: u64| most.filter(|most| *most > 1).map(|most| most.div_ceil(by));
        let mut by = 2;
        while by <= 1 << 16 {
            let (groups, rows) = (fewer(useless.groups, by), fewer(useless.rows, by));
            for (groups, rows) in [(None, rows), (groups, None), (groups, rows)] {
                if groups.is_none() && rows.is_none() {
                    continue;
                }
                let other = Asking { groups: groups.or(asking.groups), rows: rows.or(asking.rows), ..asking.clone() };
                // With other caps it is tried on made-up rows no more: that it can be answered is known.
                let within = self.outlined(&plan.question, logical, &other).ok().and_then(|plan| at(&plan, &other));
                if let Some(within) = within {
                    let options = [
                        groups.map(|n| format!("`asking.groups = {n}`")),
                        rows.map(|n| format!("`asking.rows = {n}`")),
                    ];
                    let options = options.into_iter().flatten().collect::<Vec<_>>().join(" ");
                    return Some(format!("{options} would bring it to ± {}", short(within)));
                }
            }
            by *= 2;
        }
        None
    }
}

fn view(plan: &Plan, calibrated: Option<&Calibrated>, errors: Vec<Error>, confidence: f64) -> Preview {
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
        errors,
        confidence,
        plan: lines(plan, calibrated),
        notes: plan.notes.clone(),
    }
}

const EXACT: &str = "exact, and free";

fn exact(name: String) -> Error {
    Error { name, within: None, share: None, words: EXACT.to_owned() }
}

/// The same guesses, with the grouping behind names that several have: those of ROLLUP.
fn by_grouping(plan: &Plan, mut guesses: Vec<Guess>) -> Vec<Guess> {
    let keys_of = |part: usize| plan.parts[part].keys.iter().map(|key| key.name.as_str()).collect::<Vec<_>>();
    let names: Vec<(String, Option<Vec<&str>>)> =
        guesses.iter().map(|guess| (guess.name.clone(), guess.of.map(|(part, _)| keys_of(part)))).collect();
    for guess in &mut guesses {
        let Some((part, _)) = guess.of else { continue };
        let keys = keys_of(part);
        if names.iter().any(|(name, others)| *name == guess.name && others.as_ref() != Some(&keys)) {
            let by = if keys.is_empty() { ", in all".to_owned() } else { format!(" by {}", keys.join(", ")) };
            guess.name = with_sql_types(&format!("{}{by}", guess.name));
        }
    }
    guesses
}

/// A guess in words: what it rests on.
fn described(plan: &Plan, guess: Guess, rows: f64) -> Error {
    let Guess { name, of, within, share } = guess;
    let statistic = of.map(|(part, statistic)| &plan.parts[part].statistics[statistic]);
    let words = match (statistic, within) {
        (Some(statistic), _) if statistic.is_exact() => return exact(name),
        (_, None) => "depends on the bounds that are found, or on what is done with the tables".to_owned(),
        (statistic, Some(_)) => match statistic.and_then(Statistic::estimator) {
            Some(estimate) => estimate.rests_on(&short(rows)),
            None => format!("for a group of {} rows, spread evenly over their bounds", short(rows)),
        },
    };
    Error { name, within, share, words }
}

/// A column that would be off by as much as its values can differ.
struct Useless {
    name: String,
    words: String,
    groups: Option<u64>,
    rows: Option<u64>,
}

/// The first column that would tell nothing.
fn useless(plan: &Plan, guesses: &[Guess], rows: f64) -> Option<Useless> {
    guesses.iter().find_map(|guess| {
        let ((number, statistic), within) = guess.of.zip(guess.within)?;
        let part = &plan.parts[number];
        let statistic = &part.statistics[statistic];
        let most = statistic.estimator()?.widest(part, rows)?;
        // A hair, for what is exactly as far off as can be.
        (within >= most * (1.0 - 1e-9)).then(|| Useless {
            name: guess.name.clone(),
            words: format!(
                "`{}` would be off by ± {}, and of {} rows it is {} at most: such an answer tells nothing",
                guess.name,
                short(within),
                short(rows),
                short(most)
            ),
            groups: part.groups_per_unit.or((!part.keys.is_empty()).then_some(1 << 10)),
            rows: part.measures.iter().map(Measure::rows).max(),
        })
    })
}

/// The plan as people see it: from what is released down to what is read, with types as SQL calls them.
fn lines(plan: &Plan, calibrated: Option<&Calibrated>) -> Vec<String> {
    described_parts(plan, calibrated).iter().map(|line| with_sql_types(line)).collect()
}

fn described_parts(plan: &Plan, calibrated: Option<&Calibrated>) -> Vec<String> {
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
                let _ = write!(line, ", {}", noise.words(part.step_of(i, &[])));
            }
            lines.push(line);
        }
        let exact: Vec<&str> = part
            .statistics
            .iter()
            .enumerate()
            .filter(|(_, statistic)| statistic.is_exact())
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
            let _ = write!(bound, ", at most {}", number_of(most, "group"));
        }
        if let Some(most) = part.elements_per_user {
            let _ = write!(bound, ", at most {} a user", number_of(most, "element"));
        }
        if let Some(most) = part.rows_in_all {
            let _ = write!(bound, ", at most {} in all", number_of(most, "row"));
        }
        for (within, most) in &part.row_caps {
            let whose = if within.len() > 1 { "user and element" } else { "user" };
            let _ = write!(bound, ", at most {} a {whose}", number_of(most, "row"));
        }
        for measure in &part.measures {
            match measure.what {
                What::Tree { rows, .. } => {
                    let _ = write!(bound, "; {} weighs at most {}", measure.name, number_of(rows, "row"));
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
