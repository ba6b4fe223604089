//! `whit evaluate`: how well a model does on rows that its owner chose.

use super::options::OpeningOptions;
use crate::error::Error;
use crate::number;
use crate::output::{Drawing, drawing, write_json};
use serde::Serialize;
use std::io::Write;
use std::path::PathBuf;
use whit::session::Session;
use whit::train::{Evaluated, Evaluation, Measures, PrivateEvaluation, Score, Training};
use whit_view::page::Report;
use whit_view::training::{reliability, score_line, write_judged, write_measures, write_score};

/// Try a trained model on rows that were set aside; the numbers are private, or released with --epsilon.
///
/// Reads the rows of `evaluate_where`, or all rows where nothing is said. What comes out was not sanitised and nothing is charged for it: it is for
/// the owner of the data, who says --owner, and publishing it is a release that nobody paid for. Rows that do not fit are left out. With --epsilon, counts with noise are charged to the ledger instead, once, and are for everybody.
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
    /// Release which classes are taken for which, and the accuracy, with noise that keeps this ε for the protected unit. It is charged, once, and then anybody may see it.
    #[arg(long, value_name = "E", value_parser = number::positive_epsilon, conflicts_with_all = ["owner", "plot"])]
    epsilon: Option<f64>,
    /// The δ at which ε holds; that of the training without it.
    #[arg(long, value_name = "D", requires = "epsilon", value_parser = number::delta)]
    delta: Option<f64>,
    /// Draw how often predictions are right, by how sure the model is of them, into a file that ends in .svg, .png or .html. For classes.
    #[arg(long, value_name = "FILE", value_parser = drawing)]
    plot: Vec<Drawing>,
}

#[derive(Serialize)]
struct EvaluateView<'a> {
    model: String,
    chosen: Option<&'a str>,
    /// Never sanitised.
    sanitised: bool,
    #[serde(flatten)]
    score: Score,
    /// For classes.
    #[serde(flatten)]
    measures: Option<&'a Measures>,
}

impl Evaluate {
    pub(crate) fn run(&self, out: &mut dyn Write, talk: &mut dyn Write) -> Result<(), Error> {
        let training = Training::open(&self.training)?;
        let mut session = self.opening.session(training.config())?;
        if let Some(epsilon) = self.epsilon {
            return self.judge((&mut session, &training), epsilon, out, talk);
        }
        let (owner, memory) = (self.opening.owner(), self.opening.memory);
        let asked_for = Evaluation { training: &training, model: self.model.clone(), owner, memory };
        let Evaluated { model, score, measures, notes } = session.evaluate(&asked_for)?;
        for note in notes {
            writeln!(talk, "note: {note}")?;
        }
        if self.json {
            let (model, chosen) = (model.display().to_string(), training.evaluate_where());
            let measures = measures.as_ref();
            write_json(&EvaluateView { model, chosen, sanitised: false, score, measures }, out)?;
        } else {
            write_score(&score, out)?;
            if let Some(measures) = &measures {
                writeln!(out)?;
                write_measures(measures, out)?;
            }
            writeln!(talk, "{}", score_line(&score))?;
        }
        self.draw(&training, measures.as_ref(), talk)
    }

    /// What anybody may see, after a charge.
    fn judge(
        &self,
        (session, training): (&mut Session, &Training),
        epsilon: f64,
        out: &mut dyn Write,
        talk: &mut dyn Write,
    ) -> Result<(), Error> {
        let (model, delta, memory) = (self.model.clone(), self.delta, self.opening.memory);
        let asked_for = PrivateEvaluation { training, model, epsilon, delta, memory };
        let judged = session.evaluate_privately(&asked_for)?;
        for note in &judged.notes {
            writeln!(talk, "note: {note}")?;
        }
        if self.json { write_json(&judged, out) } else { Ok(write_judged(&judged, out)?) }
    }

    fn draw(&self, training: &Training, measures: Option<&Measures>, talk: &mut dyn Write) -> Result<(), Error> {
        let Some(measures) = measures else {
            if !self.plot.is_empty() {
                writeln!(talk, "note: a number is predicted, so there is no probability to draw")?;
            }
            return Ok(());
        };
        let picture = reliability(training, measures);
        for drawing in &self.plot {
            let page = || Report::new(format!("Predicting {}", training.target())).picture(picture.svg()).finish();
            drawing.write_for_owner(picture.svg(), page, talk)?;
        }
        Ok(())
    }
}
