//! `whit completions` and `whit man`: what a terminal wants to know of the command.

use super::definition;
use crate::error::Error;
use std::io::Write;
use std::path::PathBuf;

/// Print a completion script for a shell.
///
/// For bash: `whit completions bash > ~/.local/share/bash-completion/completions/whit`.
#[derive(clap::Args)]
pub(super) struct Completions {
    /// The shell that will read the script.
    #[arg(value_enum)]
    shell: clap_complete::Shell,
}

impl Completions {
    pub(super) fn run(&self, out: &mut dyn Write) -> Result<(), Error> {
        let mut script = Vec::new(); // the generator panics where it cannot write, so it writes to memory
        clap_complete::generate(self.shell, &mut definition(), "whit", &mut script);
        Ok(out.write_all(&script)?)
    }
}

/// Print the manual page, or write all of them into a folder.
#[derive(clap::Args)]
pub(super) struct Man {
    /// Write one page for each command into this folder instead of printing the first.
    #[arg(long, value_name = "FOLDER")]
    dir: Option<PathBuf>,
}

impl Man {
    pub(super) fn run(&self, out: &mut dyn Write, talk: &mut dyn Write) -> Result<(), Error> {
        let Some(folder) = &self.dir else {
            return Ok(clap_mangen::Man::new(definition()).render(out)?);
        };
        std::fs::create_dir_all(folder)
            .and_then(|()| clap_mangen::generate_to(definition(), folder))
            .map_err(|error| Error::file(folder, &error))?;
        Ok(writeln!(talk, "wrote the manual pages into {}", folder.display())?)
    }
}
