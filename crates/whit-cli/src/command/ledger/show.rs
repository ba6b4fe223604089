//! `whit ledger show`: what was spent and what is left.

use super::LedgerFile;
use crate::error::Error;
use crate::output::{Drawing, drawing, write_json};
use std::io::Write;
use whit_view::ledger::{ShowView, write_notes, write_releases};

/// Show what was spent and what is left, by rung, by analyst and over time.
#[derive(clap::Args)]
pub(super) struct ShowCommand {
    #[command(flatten)]
    ledger: LedgerFile,
    /// Only this data set.
    #[arg(long, value_name = "NAME")]
    dataset: Option<String>,
    /// List every release, not only the last ones.
    #[arg(long)]
    all: bool,
    /// Print JSON for programs instead of tables for people.
    #[arg(long)]
    json: bool,
    /// Draw ε over time into a file that ends in .svg, .png or .html.
    #[arg(long, value_name = "FILE", value_parser = drawing)]
    plot: Vec<Drawing>,
}

impl ShowCommand {
    pub(super) fn run(&self, out: &mut dyn Write, talk: &mut dyn Write) -> Result<(), Error> {
        let mut keeper = self.ledger.keeper()?;
        let view = ShowView::of(keeper.look()?, self.dataset.as_deref())?;
        if self.json {
            write_json(&view, out)?;
        } else {
            write_releases(&view, self.all, out)?;
            write_notes(&view, talk)?;
        }
        if !self.plot.is_empty() {
            let picture = view.picture();
            for drawing in &self.plot {
                drawing.write(picture.svg(), || view.page(), talk)?;
            }
        }
        Ok(())
    }
}
