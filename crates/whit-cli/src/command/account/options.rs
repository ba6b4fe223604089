//! The run that the account commands ask about, as options describe it.

use super::words::{AccountantWord, ChangeWord, DrawWord, SamplingWord};
use crate::error::Error;
use crate::number;
use whit::price::{RunDraft, SampledRun};

/// The noise of each step.
#[derive(clap::Args)]
pub(super) struct NoiseOption {
    /// Standard deviation of the noise on the sum, over the largest norm that one drawn unit can contribute.
    ///
    /// It means the same under every change: that a replacement moves the sum by twice that norm is the
    /// accountant's business.
    #[arg(long, value_name = "SIGMA", allow_negative_numbers = true, value_parser = number::noise)]
    pub(super) noise: f64,
}

/// How often each unit is drawn.
#[derive(clap::Args)]
pub(super) struct RateOption {
    /// The probability with which a unit is drawn in one step.
    #[arg(long, value_name = "Q", default_value = "1", allow_negative_numbers = true, value_parser = number::rate)]
    pub(super) rate: f64,
}

/// How many steps are made.
#[derive(clap::Args)]
pub(super) struct StepsOption {
    /// How often a batch is drawn, summed and noised.
    #[arg(long, value_name = "T", default_value = "1", allow_negative_numbers = true, value_parser = number::steps)]
    pub(super) steps: u64,
}

/// The δ at which ε is asked for.
#[derive(clap::Args)]
pub(super) struct DeltaOption {
    /// What is added to e^ε times a probability; well below one over the number of units.
    #[arg(long, allow_negative_numbers = true, value_parser = number::delta)]
    pub(super) delta: f64,
}

/// How neighbours differ, and how units are drawn.
#[derive(clap::Args)]
pub(super) struct Relation {
    /// How neighbours differ. Unless `--difference` is given, what holds under replace holds under add-remove too.
    #[arg(long, value_enum, default_value_t = ChangeWord::Replace)]
    pub(super) change: ChangeWord,
    /// What one coin decides about.
    #[arg(long, value_enum, default_value_t = DrawWord::Unit)]
    pub(super) draw: DrawWord,
    /// The most elements that one user has; adds the price for a whole user to the answer.
    #[arg(long, value_name = "K", allow_negative_numbers = true, value_parser = number::elements)]
    pub(super) elements_per_user: Option<u64>,
    /// How a step chooses what it sees.
    #[arg(long, value_enum, default_value_t = SamplingWord::Poisson)]
    pub(super) sampling: SamplingWord,
    /// How far apart two neighbours' contributions are at most, in clip norms; 2 unless more is known. Only with
    /// `--change replace`. It is about one unit: a whole user's price does not depend on it.
    #[arg(long, value_name = "D", allow_negative_numbers = true, value_parser = number::difference)]
    pub(super) difference: Option<f64>,
}

/// Who answers, and in which form.
#[derive(clap::Args)]
pub(super) struct AnswerForm {
    /// Which accountant answers.
    #[arg(long, value_enum, default_value_t = AccountantWord::Pld)]
    pub(super) accountant: AccountantWord,
    /// Print JSON for programs instead of a table for people.
    #[arg(long)]
    pub(super) json: bool,
}

impl Relation {
    /// The run that these options describe.
    pub(super) fn run(&self, noise: f64, rate: f64, steps: u64) -> Result<SampledRun, Error> {
        let draft = RunDraft {
            change: self.change.into(),
            draw: self.draw.into(),
            sampling: self.sampling.into(),
            elements_per_user: self.elements_per_user,
            difference: self.difference,
            ..RunDraft::new(noise, rate, steps)
        };
        Ok(SampledRun::of(&draft)?)
    }
}
