//! `whit predict`: what a model predicts of rows.

use super::options::{OpeningOptions, declaration_next_to};
use crate::error::Error;
use crate::output::{Readers, write_for, write_json};
use std::io::{IsTerminal, Write};
use std::path::PathBuf;
use whit::train::Prediction;
use whit_view::number::number_of;
use whit_view::training::{predictions_csv, write_predictions};

/// Let a trained model predict the target of rows.
///
/// The model is paid for, so what it says of rows that its reader knows costs nothing more. Rows of a data set with a declared unit are private, and so is what
/// a model says of each of them: that is for the owner, who says --owner. Rows that do not fit are left out, by their numbers.
#[derive(clap::Args)]
pub(crate) struct Predict {
    /// The model, as `whit train` wrote it.
    model: PathBuf,
    /// Which rows, as a condition in SQL; all without it.
    #[arg(long = "where", value_name = "SQL")]
    chosen: Option<String>,
    /// Another data set of the declaration than the one that it learned from, with the same columns.
    #[arg(long, value_name = "NAME")]
    dataset: Option<String>,
    /// A column that is carried along, such as an id; may be given several times.
    #[arg(long, value_name = "COLUMN")]
    id: Vec<String>,
    /// Tell the probability of every class, and not only of the one that is predicted.
    #[arg(long)]
    probabilities: bool,
    #[command(flatten)]
    opening: OpeningOptions,
    /// Print JSON for programs instead of a table for people.
    #[arg(long, group = "form")]
    json: bool,
    /// Write a CSV file.
    #[arg(long, group = "form", value_name = "FILE")]
    csv: Option<PathBuf>,
}

/// So many rows are shown on a terminal.
const SHOWN: usize = 40;

impl Predict {
    pub(crate) fn run(&self, out: &mut dyn Write, talk: &mut dyn Write) -> Result<(), Error> {
        let session = self.opening.session(declaration_next_to(&self.model))?;
        let asked_for = Prediction {
            model: &self.model,
            dataset: self.dataset.clone(),
            chosen: self.chosen.clone(),
            owner: self.opening.owner(),
            memory: self.opening.memory,
            carried: self.id.clone(),
            probabilities: self.probabilities,
            outputs: self.csv.iter().cloned().collect(),
        };
        let said = session.predict(&asked_for)?;
        let left_out = said.left_out;
        let readers = if said.private { Readers::Owner } else { Readers::Everybody };
        for note in &said.notes {
            writeln!(talk, "note: {note}")?;
        }
        if left_out > 0 {
            let which = if left_out == 1 { "does not fit and was" } else { "do not fit and were" };
            writeln!(talk, "{} {which} left out", number_of(left_out, "row"))?;
        }
        if self.json {
            return write_json(&said.rows, out);
        }
        if let Some(path) = &self.csv {
            write_for(readers, &session.inputs(), path.clone(), predictions_csv(&said)?, talk)?;
            return Ok(());
        }
        let shown = if std::io::stdout().is_terminal() { SHOWN } else { usize::MAX };
        Ok(write_predictions(&said, shown, out)?)
    }
}
