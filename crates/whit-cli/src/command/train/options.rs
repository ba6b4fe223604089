//! Where the data of a training or a model are, and who asks.

use crate::command::asked::room;
use crate::error::Error;
use crate::hint::about_ledger;
use crate::number;
use std::path::{Path, PathBuf};
use whit::query::source::Tuning;
use whit::session::{Options, Session};
use whit::train::Owner;

/// Where data and ledger are, and who asks.
#[derive(Debug, Clone, clap::Args)]
pub(super) struct OpeningOptions {
    /// The declaration; without it, the `whit.toml` in the same folder.
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Who asks, for budgets of single analysts.
    #[arg(long, value_name = "NAME", default_value = "anyone")]
    analyst: String,
    /// You own the data, and may see what is computed from rows without noise: scores, curves, what a model says of each row. Nobody else may.
    #[arg(long)]
    owner: bool,
    /// How many threads read the data; as many as the machine has without it.
    #[arg(long, value_name = "N", value_parser = number::count)]
    threads: Option<u64>,
    /// The memory that rows may take, such as 512MiB; 1GiB without it. Those beyond lie in a file without a name, in the folder that TMPDIR names or
    /// else in the folder of the ledger.
    #[arg(long, value_name = "SIZE", value_parser = room)]
    pub(super) memory: Option<u64>,
}

impl OpeningOptions {
    /// Opens the data sets; the ledger is opened by whatever is paid for.
    pub(super) fn session(&self, declaration: PathBuf) -> Result<Session, Error> {
        let config = self.config.clone().unwrap_or(declaration);
        let tuning = Tuning { memory: None, threads: self.threads.map(|threads| threads as usize) };
        let options = Options { analyst: self.analyst.clone(), tuning, ..Options::default() };
        let session = Session::open(&config, options)?;
        about_ledger(session.ledger_file());
        Ok(session)
    }

    /// Whoever runs the command owns the data, where it was said.
    pub(super) fn owner(&self) -> Option<Owner> {
        self.owner.then(Owner::who_may_see_every_row)
    }
}

/// The `whit.toml` in the folder of a file.
pub(super) fn declaration_next_to(file: &Path) -> PathBuf {
    file.parent().unwrap_or(Path::new("")).join("whit.toml")
}
