//! `whit predict`: what a model says of rows.

use super::{Opening, beside};
use crate::command::{Error, Readers, write_for, write_json};
use std::fmt::Write as _;
use std::io::{IsTerminal, Write};
use std::path::PathBuf;
use whit::train::{Prediction, Predictions};
use whit_view::number::brief;
use whit_view::table::{Side, Table};

/// Let a trained model tell the target of rows.
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
    #[command(flatten)]
    opening: Opening,
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
        let session = self.opening.session(beside(&self.model))?;
        let asked_for = Prediction {
            model: &self.model,
            dataset: self.dataset.clone(),
            chosen: self.chosen.clone(),
            owner: self.opening.owner(),
            memory: self.opening.memory,
            outputs: self.csv.iter().cloned().collect(),
        };
        let Predictions { rows: told, left_out, private, notes } = session.predict(&asked_for)?;
        let readers = if private { Readers::Owner } else { Readers::Everybody };
        for note in notes {
            writeln!(talk, "note: {note}")?;
        }
        if left_out > 0 {
            writeln!(talk, "{left_out} rows do not fit and were left out")?;
        }
        if self.json {
            return write_json(&told, out);
        }
        let sure = told.iter().any(|told| told.probability.is_some());
        if let Some(path) = &self.csv {
            let mut text = if sure { "row,predicted,probability\n" } else { "row,predicted\n" }.to_owned();
            for one in &told {
                let word = if one.predicted.contains([',', '"', '\n', '\r']) {
                    format!("\"{}\"", one.predicted.replace('"', "\"\""))
                } else {
                    one.predicted.clone()
                };
                let share = one.probability.map_or_else(String::new, |share| format!(",{share}"));
                let _ = writeln!(text, "{},{word}{share}", one.row); // a text takes everything
            }
            write_for(readers, &session.inputs(), path.clone(), text, talk)?;
            return Ok(());
        }
        let shown = if std::io::stdout().is_terminal() { SHOWN } else { usize::MAX };
        let mut columns = vec![("row", Side::Right), ("predicted", Side::Left)];
        columns.extend(sure.then_some(("probability", Side::Right)));
        let mut table = Table::new(columns);
        for one in told.iter().take(shown) {
            let mut cells = vec![one.row.to_string(), one.predicted.clone()];
            cells.extend(one.probability.map(brief));
            table.row(cells);
        }
        table.write(out)?;
        if told.len() > shown {
            writeln!(out, "… and {} more; --csv FILE writes all of them", told.len() - shown)?;
        }
        Ok(())
    }
}
