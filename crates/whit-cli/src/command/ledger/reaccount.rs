//! `whit ledger reaccount`: what another accountant says of the stored costs.

use super::LedgerFile;
use crate::error::Error;
use crate::output::write_json;
use std::io::Write;
use whit::Name;
use whit_view::ledger::{ReaccountView, write_reaccounted};

/// Let another accountant read the stored costs again.
#[derive(clap::Args)]
pub(super) struct Reaccount {
    #[command(flatten)]
    ledger: LedgerFile,
    /// Which: pld, rdp, gdp, zcdp, advanced or basic.
    #[arg(long, value_name = "NAME", default_value = "pld")]
    accountant: Name,
    /// Print JSON for programs instead of a table for people.
    #[arg(long)]
    json: bool,
}

impl Reaccount {
    pub(super) fn run(&self, out: &mut dyn Write, talk: &mut dyn Write) -> Result<(), Error> {
        let lines = self.ledger.keeper()?.reaccount(self.accountant)?;
        let view: Vec<ReaccountView> = lines.iter().map(ReaccountView::of).collect();
        if self.json {
            return write_json(&view, out);
        }
        write_reaccounted(&view, self.accountant, out)?;
        writeln!(
            talk,
            "note: the filter's figure holds whatever was asked after seeing what; an accountant's is for questions that were fixed beforehand"
        )?;
        Ok(())
    }
}
