//! `whit evaluate`: how well a model does on rows that its owner chose.

use super::options::OpeningOptions;
use crate::error::Error;
use crate::output::write_json;
use serde::Serialize;
use std::io::Write;
use std::path::PathBuf;
use whit::train::{Evaluated, Evaluation, Score, Training};
use whit_view::training::{score_line, write_score};

/// Try a trained model on rows that were set aside; the numbers are private.
///
/// Reads the rows of `evaluate_where`, or all rows where nothing is said. What comes out was not sanitised and nothing is charged for it: it is for
/// the owner of the data, who says --owner, and publishing it is a release that nobody paid for. Rows that do not fit are left out.
#[derive(clap::Args)]
pub(crate) struct Evaluate {
    /// The training file.
    training: PathBuf,
    /// Another model than the one that the training file names.
    #[arg(long, value_name = "FILE")]
    model: Option<PathBuf>,
    #[command(flatten)]
    opening: OpeningOptions,
    /// Print JSON for programs instead of a table for people.
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct EvaluateView<'a> {
    model: String,
    chosen: Option<&'a str>,
    /// Never sanitised.
    sanitised: bool,
    #[serde(flatten)]
    score: Score,
}

impl Evaluate {
    pub(crate) fn run(&self, out: &mut dyn Write, talk: &mut dyn Write) -> Result<(), Error> {
        let training = Training::open(&self.training)?;
        let session = self.opening.session(training.config())?;
        let (owner, memory) = (self.opening.owner(), self.opening.memory);
        let asked_for = Evaluation { training: &training, model: self.model.clone(), owner, memory };
        let Evaluated { model, score, notes } = session.evaluate(&asked_for)?;
        for note in notes {
            writeln!(talk, "note: {note}")?;
        }
        if self.json {
            let (model, chosen) = (model.display().to_string(), training.evaluate_where());
            return write_json(&EvaluateView { model, chosen, sanitised: false, score }, out);
        }
        write_score(&score, out)?;
        writeln!(talk, "{}", score_line(&score))?;
        Ok(())
    }
}
