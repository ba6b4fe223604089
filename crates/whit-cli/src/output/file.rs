//! Files that a command writes, and JSON for programs.

use crate::error::Error;
use serde::Serialize;
use std::io::{self, Write};
use std::path::PathBuf;
use whit::learn::checkpoint::write_privately;
use whit::query::source::Inputs;
use whit_view::plain::PlainText;

/// Writes what a program reads: indented JSON and a newline.
pub(crate) fn write_json(view: &impl Serialize, out: &mut dyn Write) -> Result<(), Error> {
    serde_json::to_writer_pretty(PlainText::json(out), view).map_err(io::Error::from)?;
    Ok(writeln!(out)?)
}

/// What no output may replace wherever it goes: the heads of ledgers that are kept elsewhere. Whatever is charged for asks its session first, which knows of data sets too.
pub(crate) fn inputs() -> Inputs {
    match whit::ledger::heads().witness {
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
