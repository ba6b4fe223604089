//! What can be asked on the command line.

mod account;
mod asked;
mod check;
mod demo;
mod histogram;
mod hitters;
mod init;
mod ledger;
mod manual;
mod partition;
mod preview;
mod query;
mod repl;
mod train;
mod workload;

use crate::error::Error;
use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};
use std::ffi::OsString;
use std::io::Write;
use std::process::ExitCode;
use whit_view::plain::PlainText;

/// Differential privacy that asks first what one whit is.
///
/// Say what you protect (one event, one element, one feature, one label or one user), and every release protects
/// exactly that, and says what it costs at every coarser unit too.
#[derive(Parser)]
#[command(name = "whit", version, propagate_version = true, arg_required_else_help = true)]
#[command(after_help = "Exit codes: 0 done, 1 failed, 2 asked wrongly, 3 refused, 130 interrupted.")]
struct Whit {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Look at some data, and write the draft of a declaration: whit.toml.
    Init(init::Init),
    /// Check a declaration against its files, and show the ladder.
    Check(check::CheckCommand),
    /// Ask a question in SQL, and pay for it.
    Query(query::Query),
    /// See what a question would cost and how wrong it would be; nothing is charged.
    Preview(preview::PreviewCommand),
    /// Ask and preview, one question after the other, with history and completion.
    Shell(repl::Shell),
    /// Count how many users have each item, and rank the items.
    Hitters(hitters::HittersCommand),
    /// Add up how much of each item users have, in the clusters of a partition.
    Histogram(histogram::HistogramCommand),
    /// Learn a model, and pay for it once.
    Train(train::Train),
    /// Try a trained model on rows that were set aside; the numbers are private.
    Evaluate(train::Evaluate),
    /// Let a trained model predict the target of rows.
    Predict(train::Predict),
    /// Compare training files over values and seeds, on data whose owner wants to know what works.
    Experiment(train::Experiment),
    /// Make a partition: which element a value falls into.
    #[command(subcommand)]
    Partition(partition::PartitionCommand),
    /// Price a run: ε, δ, noise, steps or rate, each from the others.
    #[command(subcommand)]
    Account(account::AccountCommand),
    /// Show the ladder: one histogram protected at event, element and user level.
    Demo(demo::Demo),
    /// Show what was spent and what is left; verify, reaccount, export, void.
    Ledger(ledger::LedgerCommand),
    /// Print a completion script for a shell.
    Completions(manual::Completions),
    /// Print the manual page, or write all of them into a folder.
    Man(manual::Man),
}

/// Runs one command line; the first argument is the program's name.
pub(crate) fn main(arguments: impl Iterator<Item = OsString>, out: &mut dyn Write, talk: &mut dyn Write) -> ExitCode {
    // Whatever somebody typed, here or into a file that is read, commands no terminal.
    let talk: &mut dyn Write = &mut PlainText::onto(talk);
    let arguments: Vec<OsString> = arguments.collect();
    crate::hint::typed(arguments.iter().skip(1).filter_map(|word| word.to_str()));
    let parsed = definition().try_get_matches_from(arguments).and_then(|matches| Whit::from_arg_matches(&matches));
    let done = match parsed {
        Ok(whit) => whit.command.run(out, talk).and_then(|()| Ok(out.flush()?)),
        Err(error) => {
            let Some(sentence) = Error::of_option(&error) else {
                // Nothing is left to say when even this cannot be printed.
                let _ = error.print();
                return ExitCode::from(error.exit_code() as u8);
            };
            Err(sentence)
        }
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let _ = out.flush();
            let _ = error.write(talk);
            ExitCode::from(error.code())
        }
    }
}

/// The command line as clap knows it.
fn definition() -> clap::Command {
    Whit::command()
}

impl Command {
    fn run(&self, out: &mut dyn Write, talk: &mut dyn Write) -> Result<(), Error> {
        // Whatever the clock says, a ledger can be looked at.
        if !matches!(self, Self::Account(_) | Self::Ledger(_) | Self::Completions(_) | Self::Man(_)) {
            whit::session::check_clock()?;
        }
        match self {
            Self::Init(init) => init.run(talk),
            Self::Check(check) => check.run(out, talk),
            Self::Query(query) => query.run(out, talk),
            Self::Preview(preview) => preview.run(out),
            Self::Shell(shell) => shell.run(out, talk),
            Self::Hitters(hitters) => hitters.run(out, talk),
            Self::Histogram(histogram) => histogram.run(out, talk),
            Self::Train(train) => train.run(out, talk),
            Self::Evaluate(evaluate) => evaluate.run(out, talk),
            Self::Predict(predict) => predict.run(out, talk),
            Self::Experiment(experiment) => experiment.run(out, talk),
            Self::Partition(partition) => partition.run(out, talk),
            Self::Account(account) => account.run(out, talk),
            Self::Demo(demo) => demo.run(out, talk),
            Self::Ledger(ledger) => ledger.run(out, talk),
            Self::Completions(completions) => completions.run(out),
            Self::Man(man) => man.run(out, talk),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_definition_is_sound() {
        definition().debug_assert();
    }
}
