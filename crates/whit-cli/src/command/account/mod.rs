//! `whit account …`: what a run costs, and what a run may be for a cost.

mod compare;
mod explain;
mod price;
mod run;
mod search;

use super::Error;
use std::io::Write;

/// Price a run: ε, δ, noise, steps or rate, each from the others.
#[derive(clap::Subcommand)]
pub(super) enum Account {
    /// The ε of a run, from above and from below.
    Epsilon(price::Epsilon),
    /// The δ of a run at a given ε, from above and from below.
    Delta(price::Delta),
    /// The least noise that keeps a run within a given ε.
    Noise(search::Noise),
    /// The most steps that a run may make within a given ε.
    Steps(search::Steps),
    /// The highest rate at which units may be drawn within a given ε.
    Rate(search::Rate),
    /// Every accountant's answer, side by side.
    Compare(compare::Compare),
    /// What an adversary gains from a release: odds, beliefs, and the errors that no test avoids.
    Explain(explain::Explain),
}

impl Account {
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
