//! `whit ledger verify`: whether the books are as they were written.

use super::LedgerFile;
use crate::error::Error;
use crate::number::Wrong;
use crate::output::write_json;
use std::io::Write;
use std::path::Path;
use whit::account::ledger::{ChainFault, Head, LedgerError, Opener as _};
use whit_view::ledger::{FaultView, VerifyView, write_verified};

/// Recompute every hash and every total, and name the first thing that was changed.
#[derive(clap::Args)]
pub(super) struct Verify {
    #[command(flatten)]
    ledger: LedgerFile,
    /// A head that an earlier `verify` printed: then nothing up to it may have been written anew either.
    #[arg(long, value_name = "HEAD", value_parser = head)]
    head: Option<Head>,
    /// Print JSON for programs instead of a table for people.
    #[arg(long)]
    json: bool,
}

fn head(text: &str) -> Result<Head, Wrong> {
    text.parse().map_err(|_| Wrong {
        range: "a number, a colon and 64 hexadecimal digits",
        hint: "`whit ledger verify` prints the head of a ledger: keep it elsewhere, and give it here later",
    })
}

/// Whether it says nothing about what the ledger holds.
fn is_elsewhere(error: &LedgerError) -> bool {
    error.is_of_the_system()
        || matches!(
            error,
            LedgerError::Missing(_)
                | LedgerError::NotALedger { .. }
                | LedgerError::Newer { .. }
                | LedgerError::Link { .. }
                | LedgerError::Relative(_)
        )
}

/// A fault as an error, with what to do about it.
fn fault_error(path: &Path, fault: &ChainFault, hint: &str) -> Error {
    whit::Error::failed(fault.to_string()).at(path.display().to_string()).with_hint(hint).into()
}

impl Verify {
    pub(super) fn run(&self, out: &mut dyn Write, talk: &mut dyn Write) -> Result<(), Error> {
        let mut file = self.ledger.file()?;
        // What cannot even be opened is reported as what was found, where it can be something that was changed.
        let opened = match file.open_existing() {
            Err(error) if is_elsewhere(&error) => return Err(error.into()),
            opened => opened,
        };
        let verified = opened.map_err(ChainFault::from).and_then(|books| match &self.head {
            None => books.verify(),
            Some(head) => books.verify_after(head),
        });
        let path = file.path();
        match verified {
            Ok(verified) => {
                let view = VerifyView::of(&verified);
                if self.json {
                    return write_json(&view, out);
                }
                write_verified(&view, path, out)?;
                writeln!(
                    talk,
                    "note: keep the head elsewhere; `whit ledger verify --head …` then finds what was written anew"
                )?;
                Ok(())
            }
            Err(fault) if !fault.is_damage() => {
                let hint = "nothing is known to be wrong with it; see to it that its files can be read, and ask again";
                Err(fault_error(path, &fault, hint))
            }
            Err(fault) => {
                if self.json {
                    write_json(&FaultView::of(&fault), out)?;
                }
                let hint = "nothing after this can be trusted; put the files back as they were, from a backup";
                Err(fault_error(path, &fault, hint))
            }
        }
    }
}
