//! A run's parameters, and what it loses at each rung.

use crate::number::{Exact, brief, brief_down, brief_up, number_of, percent};
use crate::table::{Side, Table};
use serde::Serialize;
use std::io::{self, Write};
use whit::account::Name;
use whit::price::{RungPrice, SampledRun};
use whit::{Change, Draw, Sampling};

/// A run's parameters.
#[derive(Debug, Serialize)]
pub(crate) struct RunView {
    noise: f64,
    rate: f64,
    steps: u64,
    sampling: Sampling,
    draw: &'static str,
    elements_per_user: Option<u64>,
    change: Change,
    difference: Option<f64>,
}

impl RunView {
    /// The parameters, as every answer repeats them.
    pub(crate) fn of(run: &SampledRun) -> Self {
        let step = &run.step;
        Self {
            noise: step.noise,
            rate: step.rate,
            steps: run.steps,
            sampling: step.sampling,
            draw: match step.draw {
                Draw::Unit => "unit",
                Draw::User { .. } => "user",
            },
            elements_per_user: run.elements_per_user,
            change: step.change,
            difference: (step.change == Change::Replace).then_some(step.difference),
        }
    }

    /// The parameters in words, a line each.
    pub(crate) fn write(&self, out: &mut dyn Write) -> io::Result<()> {
        let steps = number_of(self.steps, "step");
        let batch = match (self.rate == 1.0, self.sampling) {
            (true, _) => "on all units".into(),
            (false, Sampling::Poisson) => format!("on units drawn with probability {}", brief_down(self.rate)),
            (false, Sampling::Fixed) => {
                format!("on batches of a fixed {} of the units", percent(self.rate))
            }
        };
        let drawn = match (self.draw, self.elements_per_user) {
            ("user", Some(k)) => format!("whole users are drawn, each with at most {}", number_of(k, "element")),
            _ => "the unit itself is drawn".into(),
        };
        let change = match (self.change, self.difference) {
            (Change::AddRemove, _) => "a unit is there or not (add-remove)".into(),
            (Change::Replace, Some(d)) if d < 2.0 => {
                format!("a unit becomes any other whose contribution is at most {} clip norms away (replace)", brief(d))
            }
            (Change::Replace, _) => "a unit becomes any other (replace)".into(),
        };
        writeln!(out, "  run         {steps} {batch}, noise {} clip norms", brief_up(self.noise))?;
        writeln!(out, "  drawing     {drawn}")?;
        writeln!(out, "  neighbours  {change}")
    }
}

/// What the run loses at one rung.
#[derive(Debug, Serialize)]
pub(crate) struct RungPriceView {
    unit: &'static str,
    change: Change,
    epsilon_upper: Option<Exact>,
    epsilon_lower: Option<Exact>,
    /// Who proved the upper bound, where it is not the accountant that was asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    upper_by: Option<Name>,
    #[serde(skip_serializing_if = "Option::is_none")]
    unsupported: Option<String>,
}

impl RungPriceView {
    /// What is known of one rung, where this accountant was asked.
    pub(crate) fn of(price: &RungPrice, asked: Name) -> Self {
        let (epsilon_upper, epsilon_lower, upper_by, unsupported) = match &price.loss {
            Ok((loss, by)) => (Some(Exact(loss.upper)), Some(Exact(loss.lower)), other(*by, asked), None),
            Err(why) => (None, None, None, Some(why.to_string())),
        };
        Self { unit: price.unit, change: price.change, epsilon_upper, epsilon_lower, upper_by, unsupported }
    }

    /// The ladder as a table; nothing where there is but one rung.
    pub(crate) fn write(rungs: &[Self], out: &mut dyn Write) -> io::Result<()> {
        if rungs.len() < 2 {
            return Ok(());
        }
        let columns = [
            ("protects one", Side::Left),
            ("change", Side::Left),
            ("ε at least", Side::Right),
            ("ε at most", Side::Right),
        ];
        let mut table = Table::new(columns);
        for rung in rungs {
            let show =
                |value: Option<Exact>, brief: fn(f64) -> String| value.map_or("–".to_owned(), |Exact(v)| brief(v));
            table.row([
                rung.unit.to_owned(),
                rung.change.to_string(),
                show(rung.epsilon_lower, brief_down),
                show(rung.epsilon_upper, brief_up),
            ]);
        }
        writeln!(out)?;
        table.write(out)?;
        for rung in rungs {
            if let Some(by) = rung.upper_by {
                writeln!(out, "\nFor one {} the upper bound is {by}'s, which is less than pld proves.", rung.unit)?;
            }
            if let Some(why) = &rung.unsupported {
                writeln!(out, "\nNo figure for one {}: {why}.", rung.unit)?;
            }
        }
        Ok(())
    }
}

/// Who proved a bound, where that is another than was asked.
pub(crate) fn other(by: Name, asked: Name) -> Option<Name> {
    (by != asked).then_some(by)
}
