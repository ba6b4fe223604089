//! `whit ledger …`: what was spent and what is left, and whether the books are as they were written.

mod reaccount;
mod show;
mod verify;

use crate::error::Error;
use reaccount::Reaccount;
use show::ShowCommand;
use std::io::Write;
use std::path::{Path, PathBuf};
use verify::Verify;
use whit::ledger::{Bookkeeper, heads};
use whit_view::number::number_of;

/// Show what was spent and what is left, by rung, by analyst and over time.
#[derive(clap::Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(super) struct LedgerCommand {
    #[command(subcommand)]
    action: Option<Action>,
    #[command(flatten)]
    show: ShowCommand,
}

#[derive(clap::Subcommand)]
enum Action {
    /// Show what was spent and what is left, by rung, by analyst and over time.
    Show(ShowCommand),
    /// Recompute every hash and every total, and name the first thing that was changed.
    Verify(Verify),
    /// Let another accountant read the stored costs again.
    Reaccount(Reaccount),
    /// Write the whole ledger as lines of JSON.
    Export(Export),
    /// Take back a reservation of which nothing came; the reason is kept.
    Void(Void),
    /// Go on with the ledger as it stands, where its head says otherwise: after a backup was put back. The reason is kept.
    Accept(Decide),
    /// Begin anew where a ledger was and is gone. The reason is kept.
    Reset(Decide),
}

/// What the owner decides about the ledger as a whole.
#[derive(clap::Args)]
struct Decide {
    #[command(flatten)]
    ledger: LedgerFile,
    /// Why. Whatever was charged and is not in the file is forgotten: who asked may have seen more than the budget allows.
    #[arg(long, value_name = "TEXT")]
    reason: String,
}

/// Which ledger.
#[derive(clap::Args)]
struct LedgerFile {
    /// The ledger's file; without it the one that `whit.toml` names, or `whit.ledger`.
    #[arg(long, value_name = "FILE")]
    ledger: Option<PathBuf>,
}

/// Write the whole ledger as lines of JSON.
#[derive(clap::Args)]
struct Export {
    #[command(flatten)]
    ledger: LedgerFile,
    /// One line for each rung of each release, for spreadsheets; not enough to build the ledger again.
    #[arg(long)]
    csv: bool,
}

/// Take back a reservation of which nothing came; the reason is kept.
#[derive(clap::Args)]
struct Void {
    #[command(flatten)]
    ledger: LedgerFile,
    /// The number of the entry.
    entry: u64,
    /// Why nothing can have left.
    #[arg(long, value_name = "TEXT")]
    reason: String,
}

impl LedgerFile {
    /// Who has it. A ledger can be looked at, and decided about, without the data that it is of.
    fn keeper(&self) -> Result<Bookkeeper, Error> {
        crate::hint::about_ledger(self.ledger.as_deref());
        Ok(match &self.ledger {
            Some(path) => Bookkeeper::at(path.clone(), heads()),
            None => Bookkeeper::declared(Path::new("whit.toml"), heads())?,
        })
    }
}

/// The file that a ledger is, in words.
fn name_of(keeper: &Bookkeeper) -> String {
    keeper.file().map_or_else(|| "the ledger".to_owned(), |file| file.display().to_string())
}

impl LedgerCommand {
    pub(super) fn run(&self, out: &mut dyn Write, talk: &mut dyn Write) -> Result<(), Error> {
        match self.action.as_ref() {
            None => self.show.run(out, talk),
            Some(Action::Show(command)) => command.run(out, talk),
            Some(Action::Verify(command)) => command.run(out, talk),
            Some(Action::Reaccount(command)) => command.run(out, talk),
            Some(Action::Export(command)) => command.run(out),
            Some(Action::Void(command)) => command.run(talk),
            Some(Action::Accept(command)) => command.accept(talk),
            Some(Action::Reset(command)) => command.reset(talk),
        }
    }
}

impl Export {
    fn run(&self, out: &mut dyn Write) -> Result<(), Error> {
        let mut keeper = self.ledger.keeper()?;
        Ok(if self.csv { keeper.export_csv(out) } else { keeper.export(out) }?)
    }
}

impl Decide {
    fn accept(&self, talk: &mut dyn Write) -> Result<(), Error> {
        let mut keeper = self.ledger.keeper()?;
        let events = keeper.accept(&self.reason)?.events;
        Ok(writeln!(talk, "{}: taken as it stands, with {}", name_of(&keeper), number_of(events, "event"))?)
    }

    fn reset(&self, talk: &mut dyn Write) -> Result<(), Error> {
        let mut keeper = self.ledger.keeper()?;
        keeper.reset(&self.reason)?;
        Ok(writeln!(talk, "{}: begun anew; nothing is spent", name_of(&keeper))?)
    }
}

impl Void {
    fn run(&self, talk: &mut dyn Write) -> Result<(), Error> {
        self.ledger.keeper()?.void(self.entry, &self.reason)?;
        Ok(writeln!(talk, "entry {} is void; what it had reserved is there again", self.entry)?)
    }
}
