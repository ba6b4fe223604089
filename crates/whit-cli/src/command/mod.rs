//! What can be asked on the command line.

mod account;
mod asked;
mod check;
mod demo;
mod error;
mod hint;
mod histogram;
mod hitters;
mod init;
mod ledger;
mod partition;
mod preview;
mod query;
mod repl;
mod shell;
mod train;

pub(crate) use error::Error;

use crate::number::Wrong;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};
use serde::Serialize;
use std::error::Error as _;
use std::ffi::OsString;
use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;
use whit::learn::checkpoint::write_privately;
use whit::query::source::Inputs;

/// Differential privacy that asks first what one whit is.
///
/// Say what you protect (one event, one element, one feature, one label or one user), and every release protects
/// exactly that, and says what it costs at every coarser unit too.
#[derive(Parser)]
#[command(name = "whit", version, propagate_version = true, arg_required_else_help = true)]
#[command(after_help = "Exit codes: 0 done, 1 failed, 2 asked wrongly, 3 refused.")]
struct Whit {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Look at some data, and write the draft of a declaration: whit.toml.
    Init(init::Init),
    /// Check a declaration against its files, and show the ladder.
    Check(check::Check),
    /// Ask a question in SQL, and pay for it.
    Query(query::Query),
    /// See what a question would cost and how wrong it would be; nothing is charged.
    Preview(preview::Preview),
    /// Ask and preview, one question after the other, with history and completion.
    Shell(repl::Shell),
    /// Count how many users have each item, and rank the items.
    Hitters(hitters::Hitters),
    /// Add up how much of each item users have, in the clusters of a partition.
    Histogram(histogram::Histogram),
    /// Learn a model, and pay for it once.
    Train(train::Train),
    /// Try a trained model on rows that were set aside; the numbers are private.
    Evaluate(train::Evaluate),
    /// Let a trained model tell the target of rows.
    Predict(train::Predict),
    /// Compare training files over values and seeds, on data whose owner wants to know what works.
    Experiment(train::Experiment),
    /// Make a partition: which element a value falls into.
    #[command(subcommand)]
    Partition(partition::Partition),
    /// Price a run: ε, δ, noise, steps or rate, each from the others.
    #[command(subcommand)]
    Account(account::Account),
    /// Show the ladder: one histogram protected at event, element and user level.
    Demo(demo::Demo),
    /// Show what was spent and what is left; verify, reaccount, export, void.
    Ledger(ledger::Ledger),
    /// Print a completion script for a shell.
    Completions(shell::Completions),
    /// Print the manual page, or write all of them into a folder.
    Man(shell::Man),
}

/// Runs one command line; the first argument is the program's name.
pub(crate) fn main(arguments: impl Iterator<Item = OsString>, out: &mut dyn Write, talk: &mut dyn Write) -> ExitCode {
    let parsed = definition().try_get_matches_from(arguments).and_then(|matches| Whit::from_arg_matches(&matches));
    let done = match parsed {
        Ok(whit) => whit.command.run(out, talk).and_then(|()| Ok(out.flush()?)),
        Err(error) => {
            let Some(sentence) = sentence_of(&error) else {
                // Nothing is left to tell when even this cannot be printed.
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
            let _ = error.tell(talk);
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
        // Whatever the clock tells, a ledger can be looked at.
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

/// Our own sentence for a value that is out of range; everything else clap says well.
fn sentence_of(error: &clap::Error) -> Option<Error> {
    if error.kind() != ErrorKind::ValueValidation {
        return None;
    }
    let wrong = error.source()?.downcast_ref::<Wrong>()?;
    let text = |kind| match error.get(kind) {
        Some(ContextValue::String(text)) => Some(text.as_str()),
        _ => None,
    };
    let option = text(ContextKind::InvalidArg)?.split_whitespace().next()?;
    let value = text(ContextKind::InvalidValue)?;
    Some(Error::asked(format!("{option} is {value}, but it must be {}", wrong.range), wrong.hint))
}

/// Writes what a program reads: indented JSON and a newline.
pub(crate) fn write_json(view: &impl Serialize, out: &mut dyn Write) -> Result<(), Error> {
    serde_json::to_writer_pretty(&mut *out, view).map_err(io::Error::from)?;
    Ok(writeln!(out)?)
}

/// What no output may replace wherever it goes: the heads of ledgers that are kept elsewhere. Whatever is charged for asks its session first, which knows of data sets too.
pub(crate) fn inputs() -> Inputs {
    match whit::session::heads().witness {
        Some(folder) => Inputs::default().and_heads_in(&folder),
        None => Inputs::default(),
    }
}

/// Who may open a file that is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Readers {
    /// Whoever the system lets.
    Everybody,
    /// The owner of the data alone: it tells of rows without noise.
    Owner,
}

/// Writes a file for everybody, with the folders that lead to it, and says so.
pub(crate) fn write_file(path: PathBuf, content: impl AsRef<[u8]>, talk: &mut dyn Write) -> Result<PathBuf, Error> {
    write_for(Readers::Everybody, &inputs(), path, content, talk)
}

/// The same for these readers, and where it replaces none of these files.
pub(crate) fn write_for(
    readers: Readers,
    inputs: &Inputs,
    path: PathBuf,
    content: impl AsRef<[u8]>,
    talk: &mut dyn Write,
) -> Result<PathBuf, Error> {
    inputs.check(&path)?;
    let write = || {
        if let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
            std::fs::create_dir_all(folder)?;
        }
        // What is neither a file nor to become one, as a pipe, has readers of its own.
        let is_file = std::fs::metadata(&path).map_or(true, |about| about.is_file());
        if readers == Readers::Owner && is_file {
            // In the place of the file that a link leads to, and not of the link.
            let place = path.canonicalize().unwrap_or_else(|_| path.clone());
            return write_privately(&place, content.as_ref());
        }
        std::fs::write(&path, content)
    };
    write().map_err(|error| Error::file(&path, &error))?;
    writeln!(talk, "wrote {}", path.display())?;
    Ok(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ask(line: &str) -> (u8, String, String) {
        let (mut out, mut talk) = (Vec::new(), Vec::new());
        let code = main(line.split_whitespace().map(OsString::from), &mut out, &mut talk);
        let code = (0..=3).find(|&n| code == ExitCode::from(n)).unwrap();
        (code, String::from_utf8(out).unwrap(), String::from_utf8(talk).unwrap())
    }

    #[test]
    fn the_definition_is_sound() {
        definition().debug_assert();
    }

    #[test]
    fn a_wrong_number_is_named_with_its_option_and_range() {
        let (code, out, talk) = ask("whit account epsilon --noise -1 --delta 1e-5");
        assert_eq!((code, out.as_str()), (2, ""));
        assert!(talk.starts_with("error: --noise is -1, but it must be a number greater than 0\n  hint: "), "{talk}");
    }
}
