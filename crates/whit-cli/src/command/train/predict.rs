//! `whit predict`: what a model says of rows.

use super::Opening;
use super::evaluate::load;
use super::owner;
use super::prepare::{gather, reading};
use super::trial::{fits, network};
use crate::command::{Error, Readers, inputs, write_for, write_json};
use serde::Serialize;
use std::fmt::Write as _;
use std::io::{IsTerminal, Write};
use std::path::PathBuf;
use whit::learn::loss::Loss;
use whit::learn::train::{Tuning, predict};
use whit::query::QueryError;
use whit::query::source::Input;
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

/// What is said of one row.
#[derive(Serialize)]
struct Said {
    row: usize,
    /// A class by its name, or a number.
    told: String,
    /// How sure the model is of the class.
    #[serde(skip_serializing_if = "Option::is_none")]
    probability: Option<f64>,
}

/// So many rows are shown on a terminal.
const SHOWN: usize = 40;

fn sigmoid(z: f64) -> f64 {
    1.0 / (1.0 + (-z).exp())
}

fn tell(row: usize, z: &[f32], loss: Loss, classes: Option<&[String]>) -> Said {
    let name = |class: usize| classes.and_then(|names| names.get(class)).cloned().unwrap_or_else(|| class.to_string());
    match loss {
        Loss::Softmax => {
            let best = (0..z.len()).fold(0, |best, class| if z[class] > z[best] { class } else { best });
            let total: f64 = z.iter().map(|&other| f64::from(other - z[best]).exp()).sum();
            Said { row, told: name(best), probability: Some(1.0 / total) }
        }
        Loss::Logistic => {
            let yes = sigmoid(f64::from(z[0]));
            let class = usize::from(z[0] > 0.0);
            Said { row, told: name(class), probability: Some(if class == 1 { yes } else { 1.0 - yes }) }
        }
        Loss::Poisson => Said { row, told: f64::from(z[0]).exp().to_string(), probability: None },
        Loss::Squared | Loss::Huber { .. } => Said { row, told: z[0].to_string(), probability: None },
    }
}

impl Predict {
    pub(crate) fn run(&self, out: &mut dyn Write, talk: &mut dyn Write) -> Result<(), Error> {
        let trained = load(&self.model, talk)?;
        let mut recipe = trained.recipe.clone();
        if let Some(dataset) = &self.dataset {
            recipe.dataset.clone_from(dataset);
        }
        let tables = self.opening.tables(&self.model)?;
        let dataset = tables.warehouse().declaration().dataset(&recipe.dataset).map_err(QueryError::from)?;
        let inputs = inputs(Some(&tables)).and(Input::Model, &self.model);
        self.csv.as_deref().map_or(Ok(()), |file| inputs.check(file))?;
        let readers = if dataset.unit.is_some() { Readers::Owner } else { Readers::Everybody };
        if dataset.unit.is_some() {
            owner::needed(self.opening.owner, &format!("what a model says of rows of `{}`", dataset.name))?;
        }
        let reading = reading(&recipe, self.chosen.as_deref(), false);
        let (rows, numbers) = gather(&tables, &recipe, &reading, &self.opening.keep(&tables))?;
        fits(&recipe, rows.width())?;
        let outputs = predict(&network(&trained)?, &rows, trained.projection.as_ref(), Tuning::default())?;
        // Rows keep the numbers that they came with.
        let mut left_out = numbers.left_out.iter().peekable();
        let kept = (0_u64..).filter(|row| left_out.next_if_eq(&row).is_none());
        let rows = kept.zip(outputs.chunks_exact(recipe.outputs));
        let told: Vec<Said> =
            rows.map(|(row, z)| tell(row as usize + 1, z, recipe.loss, recipe.classes.as_deref())).collect();
        if !numbers.left_out.is_empty() {
            writeln!(talk, "{} rows do not fit and were left out", numbers.left_out.len())?;
        }
        if self.json {
            return write_json(&told, out);
        }
        let sure = told.iter().any(|told| told.probability.is_some());
        if let Some(path) = &self.csv {
            let mut text = if sure { "row,told,probability\n" } else { "row,told\n" }.to_owned();
            for one in &told {
                let word = if one.told.contains([',', '"', '\n', '\r']) {
                    format!("\"{}\"", one.told.replace('"', "\"\""))
                } else {
                    one.told.clone()
                };
                let share = one.probability.map_or_else(String::new, |share| format!(",{share}"));
                let _ = writeln!(text, "{},{word}{share}", one.row); // a text takes everything
            }
            write_for(readers, &inputs, path.clone(), text, talk)?;
            return Ok(());
        }
        let shown = if std::io::stdout().is_terminal() { SHOWN } else { usize::MAX };
        let mut columns = vec![("row", Side::Right), ("told", Side::Left)];
        columns.extend(sure.then_some(("probability", Side::Right)));
        let mut table = Table::new(columns);
        for one in told.iter().take(shown) {
            let mut cells = vec![one.row.to_string(), one.told.clone()];
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
