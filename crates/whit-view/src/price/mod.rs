//! What a run costs, and what a run may be for a cost: tables for people, and values for programs.

mod compare;
mod run;

pub use compare::CompareView;
pub(crate) use run::{RunView, RungPriceView};

use crate::number::{Exact, brief, brief_down, brief_up, number_of};
use run::other;
use serde::Serialize;
use std::io::{self, Write};
use whit::account::Name;
use whit::account::calibrate::Target;
use whit::price::{DeltaPrice, EpsilonPrice, KeptPromise, RungPrice, SampledRun};

/// What is known of all rungs, where this accountant was asked.
pub(crate) fn rungs(prices: &[RungPrice], asked: Name) -> Vec<RungPriceView> {
    prices.iter().map(|price| RungPriceView::of(price, asked)).collect()
}

/// The ε of a run.
#[derive(Serialize)]
pub struct EpsilonView {
    epsilon_upper: Exact,
    epsilon_lower: Exact,
    delta: f64,
    accountant: Name,
    #[serde(skip_serializing_if = "Option::is_none")]
    upper_by: Option<Name>,
    #[serde(flatten)]
    run: RunView,
    rungs: Vec<RungPriceView>,
}

impl EpsilonView {
    /// What this accountant says of a run.
    pub fn of(run: &SampledRun, price: &EpsilonPrice, accountant: Name) -> Self {
        Self {
            epsilon_upper: Exact(price.loss.upper),
            epsilon_lower: Exact(price.loss.lower),
            delta: price.loss.delta,
            accountant,
            upper_by: other(price.by, accountant),
            run: RunView::of(run),
            rungs: rungs(&price.rungs, accountant),
        }
    }

    /// The bound, the run and its rungs.
    pub fn write(&self, out: &mut dyn Write) -> io::Result<()> {
        write!(out, "ε ≤ {} at δ = {}", brief_up(self.epsilon_upper.0), brief(self.delta))?;
        self.write_rest(out)
    }

    /// What follows the bound, whatever stands before it.
    fn write_rest(&self, out: &mut dyn Write) -> io::Result<()> {
        write_rest(self.epsilon_lower.0, self.accountant, self.upper_by, out)?;
        self.run.write(out)?;
        RungPriceView::write(&self.rungs, out)
    }
}

/// The δ of a run.
#[derive(Serialize)]
pub struct DeltaView {
    delta: f64,
    delta_upper: f64,
    delta_lower: f64,
    epsilon: f64,
    epsilon_upper: Exact,
    epsilon_lower: Exact,
    accountant: Name,
    #[serde(skip_serializing_if = "Option::is_none")]
    upper_by: Option<Name>,
    #[serde(flatten)]
    run: RunView,
    rungs: Vec<RungPriceView>,
}

impl DeltaView {
    /// What this accountant says of a run at an ε.
    pub fn of(run: &SampledRun, price: &DeltaPrice, accountant: Name) -> Self {
        let DeltaPrice { loss, by, epsilon_lower, .. } = price;
        Self {
            delta: loss.upper,
            delta_upper: loss.upper,
            delta_lower: loss.lower,
            epsilon: loss.epsilon,
            epsilon_upper: Exact(loss.epsilon),
            epsilon_lower: Exact(*epsilon_lower),
            accountant,
            upper_by: other(*by, accountant),
            run: RunView::of(run),
            rungs: rungs(&price.rungs, accountant),
        }
    }

    /// The bound, the run and its rungs.
    pub fn write(&self, out: &mut dyn Write) -> io::Result<()> {
        write!(out, "δ ≤ {} at ε = {}", brief_up(self.delta_upper), brief(self.epsilon))?;
        write_rest(self.delta_lower, self.accountant, self.upper_by, out)?;
        self.run.write(out)?;
        RungPriceView::write(&self.rungs, out)
    }
}

/// What was looked for.
#[derive(Debug, Clone, Copy, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Sought {
    /// The least noise.
    Noise,
    /// The most steps.
    Steps,
    /// The highest rate.
    Rate,
}

/// A run that keeps a promise.
#[derive(Serialize)]
pub struct KeptView {
    found: Sought,
    epsilon_target: f64,
    /// What it spends, at the δ of the promise.
    #[serde(flatten)]
    spent: EpsilonView,
    /// Whether more would do as well: the search ended at a rate of 1, or at the most steps that it looks at.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    is_end: bool,
    #[serde(skip)]
    headline: String,
}

impl KeptView {
    /// What was found for this promise.
    pub fn of(sought: Sought, kept: &KeptPromise, target: Target, accountant: Name) -> Self {
        let KeptPromise { run, price, is_end } = kept;
        Self {
            found: sought,
            epsilon_target: target.epsilon,
            spent: EpsilonView { delta: target.delta, ..EpsilonView::of(run, price, accountant) },
            is_end: *is_end,
            headline: match (sought, is_end) {
                (Sought::Noise, _) => format!("noise {} clip norms", brief_up(run.step.noise)),
                (Sought::Steps, false) => number_of(run.steps, "step"),
                (Sought::Steps, true) => format!("more than {}, where the search ends,", number_of(run.steps, "step")),
                (Sought::Rate, false) => format!("rate {}", brief_down(run.step.rate)),
                (Sought::Rate, true) => "rate 1, so that all may be drawn in every step,".to_owned(),
            },
        }
    }

    /// The value, what it spends, the run and its rungs.
    pub fn write(&self, out: &mut dyn Write) -> io::Result<()> {
        writeln!(out, "{} for ε = {} at δ = {}", self.headline, brief(self.epsilon_target), brief(self.spent.delta))?;
        write!(out, "  spends      ε ≤ {}", brief_up(self.spent.epsilon_upper.0))?;
        self.spent.write_rest(out)
    }
}

/// The end of a headline: the bound from below, and who says so.
fn write_rest(lower: f64, accountant: Name, by: Option<Name>, out: &mut dyn Write) -> io::Result<()> {
    if lower > 0.0 {
        write!(out, ", and not below {}", brief_down(lower))?;
    }
    match by {
        Some(by) => writeln!(out, "  ({accountant}; the upper bound is {by}'s)"),
        None => writeln!(out, "  ({accountant})"),
    }
}
