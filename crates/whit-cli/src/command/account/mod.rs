//! `whit account …`: what a run costs, and what a run may be for a cost.

mod compare;
mod explain;
mod options;
mod price;
mod search;
mod words;

use crate::error::Error;
use std::io::Write;
use whit::account::calibrate::CalibrateError;
use whit::{Name, Unsupported};
use whit_view::number::brief;

/// Price a run: ε, δ, noise, steps or rate, each from the others.
#[derive(clap::Subcommand)]
pub(super) enum AccountCommand {
    /// The ε of a run, from above and from below.
    Epsilon(price::EpsilonCommand),
    /// The δ of a run at a given ε, from above and from below.
    Delta(price::DeltaCommand),
    /// The least noise that keeps a run within a given ε.
    Noise(search::NoiseCommand),
    /// The most steps that a run may make within a given ε.
    Steps(search::StepsCommand),
    /// The highest rate at which units may be drawn within a given ε.
    Rate(search::RateCommand),
    /// Every accountant's answer, side by side.
    Compare(compare::Compare),
    /// What an adversary gains from a release: odds, beliefs, and the errors that no test avoids.
    Explain(explain::Explain),
}

impl AccountCommand {
    pub(super) fn run(&self, out: &mut dyn Write, talk: &mut dyn Write) -> Result<(), Error> {
        match self {
            Self::Epsilon(command) => command.run(out),
            Self::Delta(command) => command.run(out),
            Self::Noise(command) => command.run(out),
            Self::Steps(command) => command.run(out),
            Self::Rate(command) => command.run(out),
            Self::Compare(command) => command.run(out),
            Self::Explain(command) => command.run(out, talk),
        }
    }
}

/// An accountant's "no number from me" as a mistake in the question, with the option that caused it.
fn unsupported(why: &Unsupported, accountant: Name) -> Error {
    let (sentence, hint) = match why {
        Unsupported::Cost { .. } | Unsupported::NeedsDelta { .. } => (
            format!("--accountant is {accountant}, but {why}"),
            "--accountant pld prices every run that this command can describe, from above and from below",
        ),
        Unsupported::Drawing { .. } => (format!("--sampling is fixed, but {why}"), "ask with --sampling poisson"),
        Unsupported::OutOfRange(_) => (why.to_string(), "`whit account epsilon --help` says what each option means"),
    };
    Error::asked(sentence, hint)
}

/// Why there is no such noise, number of steps or rate, as a mistake in the question.
fn not_found(why: &CalibrateError, accountant: Name) -> Error {
    match why {
        CalibrateError::Unsupported(why) => unsupported(why, accountant),
        CalibrateError::Unreachable { epsilon, .. } => Error::asked(
            format!("--epsilon is {}, but {why}", brief(*epsilon)),
            "allow a larger --epsilon or --delta, or ask for less: fewer steps, a lower rate, more noise",
        ),
        CalibrateError::Unlimited { .. } => Error::asked(
            format!("--rate is 0, but it must be greater than 0 for this question: {why}"),
            "give the probability with which a unit is drawn in one step",
        ),
    }
}
