//! The ε of a run at a δ, and the δ of a run at an ε.

use super::super::{Error, write_json};
use super::run::{
    Answer, DeltaOption, NoiseOption, RateOption, Relation, RunView, RungView, StepsOption, other, unsupported,
};
use crate::number;
use serde::Serialize;
use std::io::{self, Write};
use whit::Cost;
use whit::account::{Name, delta_by, epsilon_by};
use whit_view::number::{Exact, brief, brief_down, brief_up};

/// The ε of a run, from above and from below.
#[derive(clap::Args)]
pub(crate) struct Epsilon {
    #[command(flatten)]
    noise: NoiseOption,
    #[command(flatten)]
    rate: RateOption,
    #[command(flatten)]
    steps: StepsOption,
    #[command(flatten)]
    delta: DeltaOption,
    #[command(flatten)]
    relation: Relation,
    #[command(flatten)]
    answer: Answer,
}

#[derive(Serialize)]
struct EpsilonView {
    epsilon_upper: Exact,
    epsilon_lower: Exact,
    delta: f64,
    accountant: Name,
    #[serde(skip_serializing_if = "Option::is_none")]
    upper_by: Option<Name>,
    #[serde(flatten)]
    run: RunView,
    rungs: Vec<RungView>,
}

impl Epsilon {
    pub(super) fn run(&self, out: &mut dyn Write) -> Result<(), Error> {
        let (noise, rate, steps, at) = (self.noise.noise, self.rate.rate, self.steps.steps, self.delta.delta);
        let accountant = self.answer.accountant.into();
        let step = self.relation.step(noise, rate)?;
        let told = epsilon_by(&Cost::Sampled(step).repeat(steps), at, accountant);
        let (loss, by) = told.map_err(|why| unsupported(&why, accountant))?;
        let view = EpsilonView {
            epsilon_upper: Exact(loss.upper),
            epsilon_lower: Exact(loss.lower),
            delta: at,
            accountant,
            upper_by: other(by, accountant),
            run: self.relation.view(noise, rate, steps),
            rungs: self.relation.prices(&step, steps, (loss, by), accountant),
        };
        if self.answer.json { write_json(&view, out) } else { Ok(view.write_table(out)?) }
    }
}

impl EpsilonView {
    fn write_table(&self, out: &mut dyn Write) -> io::Result<()> {
        write!(out, "ε ≤ {} at δ = {}", brief_up(self.epsilon_upper.0), brief(self.delta))?;
        write_rest(self.epsilon_lower.0, self.accountant, self.upper_by, out)?;
        self.run.write(out)?;
        RungView::write(&self.rungs, out)
    }
}

/// The δ of a run at a given ε, from above and from below.
#[derive(clap::Args)]
pub(crate) struct Delta {
    #[command(flatten)]
    noise: NoiseOption,
    #[command(flatten)]
    rate: RateOption,
    #[command(flatten)]
    steps: StepsOption,
    /// The ε at which δ is told.
    #[arg(long, allow_negative_numbers = true, value_parser = number::epsilon)]
    epsilon: f64,
    #[command(flatten)]
    relation: Relation,
    #[command(flatten)]
    answer: Answer,
}

#[derive(Serialize)]
struct DeltaView {
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
    rungs: Vec<RungView>,
}

impl Delta {
    pub(super) fn run(&self, out: &mut dyn Write) -> Result<(), Error> {
        let (noise, rate, steps) = (self.noise.noise, self.rate.rate, self.steps.steps);
        let accountant = self.answer.accountant.into();
        let step = self.relation.step(noise, rate)?;
        let cost = Cost::Sampled(step).repeat(steps);
        let (loss, by) = delta_by(&cost, self.epsilon, accountant).map_err(|why| unsupported(&why, accountant))?;
        // What is known from below of ε at this δ, where δ is one that can be asked about.
        let asked = loss.upper > 0.0 && loss.upper < 1.0;
        let back = if asked { epsilon_by(&cost, loss.upper, accountant).ok() } else { None };
        let lower = back.map_or(0.0, |told| told.0.lower);
        let view = DeltaView {
            delta: loss.upper,
            delta_upper: loss.upper,
            delta_lower: loss.lower,
            epsilon: self.epsilon,
            epsilon_upper: Exact(self.epsilon),
            epsilon_lower: Exact(lower.min(self.epsilon)),
            accountant,
            upper_by: other(by, accountant),
            run: self.relation.view(noise, rate, steps),
            rungs: back.map_or(Vec::new(), |known| self.relation.prices(&step, steps, known, accountant)),
        };
        if self.answer.json { write_json(&view, out) } else { Ok(view.write_table(out)?) }
    }
}

impl DeltaView {
    fn write_table(&self, out: &mut dyn Write) -> io::Result<()> {
        write!(out, "δ ≤ {} at ε = {}", brief_up(self.delta_upper), brief(self.epsilon))?;
        write_rest(self.delta_lower, self.accountant, self.upper_by, out)?;
        self.run.write(out)?;
        RungView::write(&self.rungs, out)
    }
}

/// The end of a headline: the bound from below, and who says so.
pub(super) fn write_rest(lower: f64, accountant: Name, by: Option<Name>, out: &mut dyn Write) -> io::Result<()> {
    if lower > 0.0 {
        write!(out, ", and not below {}", brief_down(lower))?;
    }
    match by {
        Some(by) => writeln!(out, "  ({accountant}; the upper bound is {by}'s)"),
        None => writeln!(out, "  ({accountant})"),
    }
}
