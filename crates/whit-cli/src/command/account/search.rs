//! The least noise, the most steps and the highest rate that keep a run within an ε.

use super::not_found;
use super::options::{AnswerForm, DeltaOption, NoiseOption, RateOption, Relation, StepsOption};
use crate::error::Error;
use crate::number;
use crate::output::write_json;
use std::io::Write;
use whit::account::calibrate::{CalibrateError, Target};
use whit::price::KeptPromise;
use whit_view::price::{KeptView, Sought};

/// The promise that the run has to keep.
#[derive(clap::Args)]
struct WithinOption {
    /// The ε that the run may lose.
    #[arg(long, allow_negative_numbers = true, value_parser = number::epsilon)]
    epsilon: f64,
    #[command(flatten)]
    delta: DeltaOption,
}

impl WithinOption {
    fn target(&self) -> Target {
        Target { epsilon: self.epsilon, delta: self.delta.delta }
    }
}

/// The least noise that keeps a run within a given ε.
#[derive(clap::Args)]
pub(crate) struct NoiseCommand {
    #[command(flatten)]
    within: WithinOption,
    #[command(flatten)]
    rate: RateOption,
    #[command(flatten)]
    steps: StepsOption,
    #[command(flatten)]
    relation: Relation,
    #[command(flatten)]
    answer: AnswerForm,
}

/// The most steps that a run may make within a given ε.
#[derive(clap::Args)]
pub(crate) struct StepsCommand {
    #[command(flatten)]
    within: WithinOption,
    #[command(flatten)]
    noise: NoiseOption,
    #[command(flatten)]
    rate: RateOption,
    #[command(flatten)]
    relation: Relation,
    #[command(flatten)]
    answer: AnswerForm,
}

/// The highest rate at which units may be drawn within a given ε.
#[derive(clap::Args)]
pub(crate) struct RateCommand {
    #[command(flatten)]
    within: WithinOption,
    #[command(flatten)]
    noise: NoiseOption,
    #[command(flatten)]
    steps: StepsOption,
    #[command(flatten)]
    relation: Relation,
    #[command(flatten)]
    answer: AnswerForm,
}

/// Prints what was found, or says why nothing was.
fn print(
    sought: Sought,
    kept: Result<KeptPromise, CalibrateError>,
    within: &WithinOption,
    answer: &AnswerForm,
    out: &mut dyn Write,
) -> Result<(), Error> {
    let accountant = answer.accountant.into();
    let kept = kept.map_err(|why| not_found(&why, accountant))?;
    let view = KeptView::of(sought, &kept, within.target(), accountant);
    if answer.json { write_json(&view, out) } else { Ok(view.write(out)?) }
}

impl NoiseCommand {
    pub(super) fn run(&self, out: &mut dyn Write) -> Result<(), Error> {
        let run = self.relation.run(1.0, self.rate.rate, self.steps.steps)?;
        let kept = run.with_least_noise(self.within.target(), self.answer.accountant.into());
        print(Sought::Noise, kept, &self.within, &self.answer, out)
    }
}

impl StepsCommand {
    pub(super) fn run(&self, out: &mut dyn Write) -> Result<(), Error> {
        let run = self.relation.run(self.noise.noise, self.rate.rate, 1)?;
        let kept = run.with_most_steps(self.within.target(), self.answer.accountant.into());
        print(Sought::Steps, kept, &self.within, &self.answer, out)
    }
}

impl RateCommand {
    pub(super) fn run(&self, out: &mut dyn Write) -> Result<(), Error> {
        let run = self.relation.run(self.noise.noise, 1.0, self.steps.steps)?;
        let kept = run.with_highest_rate(self.within.target(), self.answer.accountant.into());
        print(Sought::Rate, kept, &self.within, &self.answer, out)
    }
}
