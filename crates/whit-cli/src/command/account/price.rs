//! The ε of a run at a δ, and the δ of a run at an ε.

use super::options::{AnswerForm, DeltaOption, NoiseOption, RateOption, Relation, StepsOption};
use super::unsupported;
use crate::error::Error;
use crate::number;
use crate::output::write_json;
use std::io::Write;
use whit_view::price::{DeltaView, EpsilonView};

/// The ε of a run, from above and from below.
#[derive(clap::Args)]
pub(crate) struct EpsilonCommand {
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
    answer: AnswerForm,
}

impl EpsilonCommand {
    pub(super) fn run(&self, out: &mut dyn Write) -> Result<(), Error> {
        let accountant = self.answer.accountant.into();
        let run = self.relation.run(self.noise.noise, self.rate.rate, self.steps.steps)?;
        let price = run.epsilon(self.delta.delta, accountant).map_err(|why| unsupported(&why, accountant))?;
        let view = EpsilonView::of(&run, &price, accountant);
        if self.answer.json { write_json(&view, out) } else { Ok(view.write(out)?) }
    }
}

/// The δ of a run at a given ε, from above and from below.
#[derive(clap::Args)]
pub(crate) struct DeltaCommand {
    #[command(flatten)]
    noise: NoiseOption,
    #[command(flatten)]
    rate: RateOption,
    #[command(flatten)]
    steps: StepsOption,
    /// The ε at which δ is asked for.
    #[arg(long, allow_negative_numbers = true, value_parser = number::epsilon)]
    epsilon: f64,
    #[command(flatten)]
    relation: Relation,
    #[command(flatten)]
    answer: AnswerForm,
}

impl DeltaCommand {
    pub(super) fn run(&self, out: &mut dyn Write) -> Result<(), Error> {
        let accountant = self.answer.accountant.into();
        let run = self.relation.run(self.noise.noise, self.rate.rate, self.steps.steps)?;
        let price = run.delta(self.epsilon, accountant).map_err(|why| unsupported(&why, accountant))?;
        let view = DeltaView::of(&run, &price, accountant);
        if self.answer.json { write_json(&view, out) } else { Ok(view.write(out)?) }
    }
}
