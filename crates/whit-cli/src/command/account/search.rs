//! The least noise, the most steps and the highest rate that keep a run within an ε.

use super::super::{Error, write_json};
use super::price::write_rest;
use super::run::{
    AccountantWord, Answer, DeltaOption, NoiseOption, RateOption, Relation, RunView, RungView, StepsOption, other,
    unsupported,
};
use crate::number;
use serde::Serialize;
use std::io::{self, Write};
use whit::account::calibrate::{self, CalibrateError, Calibrated, Target};
use whit::account::{Name, epsilon_by};
use whit::{Cost, Loss};
use whit_view::number::{Exact, brief, brief_down, brief_up};

/// The promise that the run has to keep.
#[derive(clap::Args)]
struct Within {
    /// The ε that the run may lose.
    #[arg(long, allow_negative_numbers = true, value_parser = number::epsilon)]
    epsilon: f64,
    #[command(flatten)]
    delta: DeltaOption,
}

impl Within {
    fn target(&self) -> Target {
        Target { epsilon: self.epsilon, delta: self.delta.delta }
    }
}

/// The least noise that keeps a run within a given ε.
#[derive(clap::Args)]
pub(crate) struct Noise {
    #[command(flatten)]
    within: Within,
    #[command(flatten)]
    rate: RateOption,
    #[command(flatten)]
    steps: StepsOption,
    #[command(flatten)]
    relation: Relation,
    #[command(flatten)]
    answer: Answer,
}

/// The most steps that a run may make within a given ε.
#[derive(clap::Args)]
pub(crate) struct Steps {
    #[command(flatten)]
    within: Within,
    #[command(flatten)]
    noise: NoiseOption,
    #[command(flatten)]
    rate: RateOption,
    #[command(flatten)]
    relation: Relation,
    #[command(flatten)]
    answer: Answer,
}

/// The highest rate at which units may be drawn within a given ε.
#[derive(clap::Args)]
pub(crate) struct Rate {
    #[command(flatten)]
    within: Within,
    #[command(flatten)]
    noise: NoiseOption,
    #[command(flatten)]
    steps: StepsOption,
    #[command(flatten)]
    relation: Relation,
    #[command(flatten)]
    answer: Answer,
}

/// What was looked for.
#[derive(Clone, Copy, Serialize)]
#[serde(rename_all = "kebab-case")]
enum Found {
    Noise,
    Steps,
    Rate,
}

#[derive(Serialize)]
struct FoundView {
    found: Found,
    epsilon_target: f64,
    epsilon_upper: Exact,
    epsilon_lower: Exact,
    delta: f64,
    accountant: Name,
    #[serde(skip_serializing_if = "Option::is_none")]
    upper_by: Option<Name>,
    #[serde(flatten)]
    run: RunView,
    rungs: Vec<RungView>,
    #[serde(skip)]
    headline: String,
}

impl Noise {
    pub(super) fn run(&self, out: &mut dyn Write) -> Result<(), Error> {
        let (rate, steps, target) = (self.rate.rate, self.steps.steps, self.within.target());
        let step = self.relation.step(1.0, rate)?;
        let found = calibrate::noise(&step, steps, target, self.answer.accountant.into());
        let found = found.map_err(|why| sentence(&why, self.answer.accountant))?;
        let price = |noise: f64| {
            let step = self.relation.step(noise, rate).ok()?;
            epsilon_by(&Cost::Sampled(step).repeat(steps), target.delta, self.answer.accountant.into()).ok()
        };
        let found = as_shown(found, target, brief_up, 1.0 + 1e-5, price);
        let headline = format!("noise {} clip norms", brief_up(found.value));
        let run = (found.value, rate, steps);
        answer(Found::Noise, headline, run, &found, target, &self.relation, &self.answer, out)
    }
}

impl Steps {
    pub(super) fn run(&self, out: &mut dyn Write) -> Result<(), Error> {
        let (noise, rate, target) = (self.noise.noise, self.rate.rate, self.within.target());
        let step = self.relation.step(noise, rate)?;
        let found = calibrate::steps(&step, target, self.answer.accountant.into());
        let found = found.map_err(|why| sentence(&why, self.answer.accountant))?;
        let headline = format!("{} steps", found.value);
        let run = (noise, rate, found.value as u64);
        answer(Found::Steps, headline, run, &found, target, &self.relation, &self.answer, out)
    }
}

impl Rate {
    pub(super) fn run(&self, out: &mut dyn Write) -> Result<(), Error> {
        let (noise, steps, target) = (self.noise.noise, self.steps.steps, self.within.target());
        let step = self.relation.step(noise, 1.0)?;
        let found = calibrate::rate(&step, steps, target, self.answer.accountant.into());
        let found = found.map_err(|why| sentence(&why, self.answer.accountant))?;
        let price = |rate: f64| {
            let step = self.relation.step(noise, rate).ok()?;
            epsilon_by(&Cost::Sampled(step).repeat(steps), target.delta, self.answer.accountant.into()).ok()
        };
        let found = as_shown(found, target, brief_down, 1.0 - 1e-5, price);
        let headline = format!("rate {}", brief_down(found.value));
        let run = (noise, found.value, steps);
        answer(Found::Rate, headline, run, &found, target, &self.relation, &self.answer, out)
    }
}

/// The value in the digits that people see, on its safe side, so that who prices it again finds the same ε. Two lattices may
/// differ in the fourth digit of ε, so that it is priced anew, and moved on by `onwards` until the promise is kept.
fn as_shown(
    found: Calibrated,
    target: Target,
    brief: fn(f64) -> String,
    onwards: f64,
    price: impl Fn(f64) -> Option<(Loss, Name)>,
) -> Calibrated {
    let mut value = found.value;
    for _ in 0..20 {
        let Ok(shown) = brief(value).parse::<f64>() else { break };
        match price(shown) {
            Some((loss, by)) if loss.upper <= target.epsilon => return Calibrated { value: shown, loss, by },
            Some(_) => value = shown * onwards,
            None => break,
        }
    }
    found
}

#[expect(
    clippy::too_many_arguments,
    reason = "three commands share this end; each argument is another part of the answer"
)]
fn answer(
    found: Found,
    headline: String,
    (noise, rate, steps): (f64, f64, u64),
    calibrated: &Calibrated,
    target: Target,
    relation: &Relation,
    answer: &Answer,
    out: &mut dyn Write,
) -> Result<(), Error> {
    let accountant = answer.accountant.into();
    let step = relation.step(noise, rate)?;
    let Calibrated { loss, by, .. } = *calibrated;
    let view = FoundView {
        found,
        epsilon_target: target.epsilon,
        epsilon_upper: Exact(loss.upper),
        epsilon_lower: Exact(loss.lower),
        delta: target.delta,
        accountant,
        upper_by: other(by, accountant),
        run: relation.view(noise, rate, steps),
        rungs: relation.prices(&step, steps, (loss, by), accountant),
        headline,
    };
    if answer.json { write_json(&view, out) } else { Ok(view.write_table(out)?) }
}

impl FoundView {
    fn write_table(&self, out: &mut dyn Write) -> io::Result<()> {
        writeln!(out, "{} for ε = {} at δ = {}", self.headline, brief(self.epsilon_target), brief(self.delta))?;
        write!(out, "  spends      ε ≤ {}", brief_up(self.epsilon_upper.0))?;
        write_rest(self.epsilon_lower.0, self.accountant, self.upper_by, out)?;
        self.run.write(out)?;
        RungView::write(&self.rungs, out)
    }
}

/// Why there is no such noise, number of steps or rate, as a mistake in the question.
fn sentence(why: &CalibrateError, accountant: AccountantWord) -> Error {
    match why {
        CalibrateError::Unsupported(why) => unsupported(why, accountant.into()),
        CalibrateError::Unreachable { epsilon, .. } => Error::asked(
            format!("--epsilon is {epsilon}, but {why}"),
            "allow a larger --epsilon or --delta, or ask for less: fewer steps, a lower rate, more noise",
        ),
        CalibrateError::Unlimited { .. } => Error::asked(
            format!("--rate is 0, but it must be greater than 0 for this question: {why}"),
            "give the probability with which a unit is drawn in one step",
        ),
    }
}
