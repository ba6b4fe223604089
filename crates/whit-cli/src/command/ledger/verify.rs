//! `whit ledger verify`: whether the books are as they were written.

use super::{LedgerFile, name_of};
use crate::error::Error;
use crate::number::Wrong;
use crate::output::write_json;
use std::io::Write;
use whit::account::ledger::Head;
use whit::error::Reason;
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

impl Verify {
    pub(super) fn run(&self, out: &mut dyn Write, talk: &mut dyn Write) -> Result<(), Error> {
        let mut keeper = self.ledger.keeper()?;
        let verified = keeper.verify(self.head.as_ref());
        if let (true, Err(error)) = (self.json, &verified)
            && let Some(Reason::Ledger(fault)) = &error.reason
            && fault.is_damage()
        {
            write_json(&FaultView::of(fault), out)?;
        }
        let view = VerifyView::of(&verified?);
        if self.json {
            return write_json(&view, out);
        }
        write_verified(&view, &name_of(&keeper), out)?;
        writeln!(
            talk,
            "note: keep the head elsewhere; `whit ledger verify --head …` then finds what was written anew"
        )?;
        Ok(())
    }
}
