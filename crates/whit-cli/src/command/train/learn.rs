//! `whit train`: a model, learned and paid for once.

use super::options::OpeningOptions;
use super::watch::Watcher;
use crate::error::Error;
use crate::hint::for_command;
use crate::output::{Drawing, ProgressLine, drawing, write_json};
use std::io::Write;
use std::path::PathBuf;
use whit::learn::train::keep_memory;
use whit::train::{Learned, Outcome, Prospect, Request, Training, Watch};
use whit_view::page::Report;
use whit_view::training::{TrainView, curve, score_line, shortened_line, write_learned, write_prospect};

/// Learn a model, and pay for it once.
///
/// The training file names a data set of the `whit.toml` in its folder; unit, caps and budgets are declared there. The whole price is reserved in the
/// ledger before a private row is read; what is said before, and by --preview, follows from files and declaration, and where a label or features are the unit from columns that are public under it. What is interrupted goes on from its last checkpoint under the same reservation, by the same command;
/// training the same again is answered from the ledger and costs nothing.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  whit train train.toml --preview
  whit train train.toml
For the owner of the data, who may see what was not sanitised:
  whit train train.toml --owner --plot curve.svg
  whit evaluate train.toml --owner
  whit predict model.safetensors --owner --where \"split = 'test'\" --csv predicted.csv")]
#[expect(clippy::struct_excessive_bools, reason = "flags of a command")]
pub(crate) struct Train {
    /// The training file.
    training: PathBuf,
    /// Show what would be promised and whether it fits, and charge nothing.
    #[arg(long)]
    preview: bool,
    /// Go on with an interrupted run, and refuse to begin one.
    #[arg(long, conflicts_with = "preview")]
    resume: bool,
    #[command(flatten)]
    opening: OpeningOptions,
    /// Print JSON for programs instead of a card for people.
    #[arg(long)]
    json: bool,
    /// Let a seed in the training file take all privacy away: without this every budget refuses it. The ledger has an infinite ε for it, and refuses all that
    /// comes after.
    #[arg(long)]
    seed_destroys_privacy: bool,
    /// Draw the loss on the rows of `evaluate_where`, step by step, into a file that ends in .svg, .png or .html. It is as private as
    /// the rows, and for their owner (--owner).
    #[arg(long, value_name = "FILE", value_parser = drawing)]
    plot: Vec<Drawing>,
}

impl Train {
    pub(crate) fn run(&self, out: &mut dyn Write, talk: &mut dyn Write) -> Result<(), Error> {
        keep_memory();
        let training = Training::open(&self.training)?;
        let request = Request {
            owner: self.opening.owner(),
            memory: self.opening.memory,
            resume: self.resume,
            seed_destroys_privacy: self.seed_destroys_privacy,
            curve: !self.plot.is_empty(),
            outputs: self.plot.iter().map(|drawing| drawing.path().to_owned()).collect(),
            ..Request::new(&training)
        };
        let mut watcher = Watcher::new(ProgressLine::new(self.json), talk);
        watcher.doing("opening the data");
        let mut session = self.opening.session(training.config())?;
        if self.preview {
            let prospect = session.preview_training(&request, &mut watcher)?;
            drop(watcher);
            return self.print_prospect(&prospect, out);
        }
        let outcome = session.train(&request, &mut watcher)?;
        drop(watcher);
        match outcome {
            Outcome::Done(learned) => {
                self.print(&learned, out, talk)?;
                self.draw(&training, &learned.curve, talk)
            }
            Outcome::Stopped { taken, steps } => Ok(writeln!(talk, "stopped after step {taken} of {steps}")?),
        }
    }

    /// The model, for people or for programs; and its score, where its owner asked for it.
    fn print(&self, learned: &Learned, out: &mut dyn Write, talk: &mut dyn Write) -> Result<(), Error> {
        if self.json {
            write_json(&TrainView::of(learned), out)?;
        } else {
            write_learned(learned, out)?;
        }
        out.flush()?;
        if let Some(from) = learned.resumed_from {
            writeln!(talk, "went on from step {from}, under the same reservation")?;
        }
        if self.json {
            return Ok(());
        }
        if let Some(score) = &learned.score {
            writeln!(talk, "{}", score_line(score))?;
        }
        if let Some(shortened) = &learned.shortened {
            writeln!(talk, "{}", shortened_line(shortened))?;
        }
        Ok(())
    }

    fn print_prospect(&self, prospect: &Prospect, out: &mut dyn Write) -> Result<(), Error> {
        if self.json {
            return write_json(&TrainView::of_prospect(prospect), out);
        }
        let mut prospect = prospect.clone();
        if let Some(hint) = prospect.denied.as_mut().and_then(|denied| denied.hint.as_mut()) {
            *hint = for_command(hint);
        }
        Ok(write_prospect(&prospect, out)?)
    }

    /// Draws the loss over the steps.
    fn draw(&self, training: &Training, points: &[(f64, f64)], talk: &mut dyn Write) -> Result<(), Error> {
        if self.plot.is_empty() {
            return Ok(());
        }
        if points.is_empty() {
            writeln!(talk, "note: no step was taken this time, so there is no curve to draw")?;
            return Ok(());
        }
        let picture = curve(training, points);
        for drawing in &self.plot {
            let page = || Report::new(format!("Learning {}", training.target())).picture(picture.svg()).finish();
            drawing.write_for_owner(picture.svg(), page, talk)?;
        }
        Ok(())
    }
}
