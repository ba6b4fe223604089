//! `whit train`, `whit evaluate`, `whit predict` and `whit experiment`: a model, learned and paid for once, and what it does.

mod evaluate;
mod experiment;
mod predict;
mod show;
mod watch;

pub(super) use evaluate::Evaluate;
pub(super) use experiment::Experiment;
pub(super) use predict::Predict;

use super::asked::room;
use super::{Error, write_json};
use crate::number;
use crate::output::{Drawing, Progress, drawing};
use serde::Serialize;
use show::{picture, told, write_card, write_estimates};
use std::io::Write;
use std::path::{Path, PathBuf};
use watch::Watcher;
use whit::learn::Card;
use whit::query::source::Tuning;
use whit::session::{Options, Session};
use whit::train::{Estimates, Learned, Outcome, Owner, Prospect, Request, Score, Training, Watch};
use whit_view::page::Report;

/// Learn a model, and pay for it once.
///
/// The training file names a data set of the `whit.toml` beside it; unit, caps and budgets are declared there. The whole price is reserved in the
/// ledger before a private row is read; what is said before, and by --preview, follows from files and declaration, and where a label or features are the unit from columns that are public under it. What is interrupted goes on from its last checkpoint under the same reservation, by the same command;
/// training the same again is answered from the ledger and costs nothing.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  whit train train.toml --preview
  whit train train.toml
For the owner of the data, who may see what was not sanitised:
  whit train train.toml --owner --plot curve.svg
  whit evaluate train.toml --owner
  whit predict model.safetensors --owner --where \"split = 'test'\" --csv told.csv")]
#[expect(clippy::struct_excessive_bools, reason = "flags of a command")]
pub(super) struct Train {
    /// The training file.
    training: PathBuf,
    /// Show what would be promised and whether it fits, and charge nothing.
    #[arg(long)]
    preview: bool,
    /// Go on with an interrupted run, and refuse to begin one.
    #[arg(long, conflicts_with = "preview")]
    resume: bool,
    #[command(flatten)]
    opening: Opening,
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

/// Where data and ledger are, and who asks.
#[derive(Debug, Clone, clap::Args)]
struct Opening {
    /// The declaration; without it, the `whit.toml` beside the file.
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Who asks, for budgets of single analysts.
    #[arg(long, value_name = "NAME", default_value = "anyone")]
    analyst: String,
    /// You own the data, and may see what is computed from rows without noise: scores, curves, what a model says of each row. Nobody else may.
    #[arg(long)]
    owner: bool,
    /// How many threads read the data; as many as the machine has without it.
    #[arg(long, value_name = "N", value_parser = number::elements)]
    threads: Option<u64>,
    /// The memory that rows may take, such as 512MiB; 1GiB without it. Those beyond lie in a file without a name, in the folder that TMPDIR names or
    /// else beside the ledger.
    #[arg(long, value_name = "SIZE", value_parser = room)]
    memory: Option<u64>,
}

impl Opening {
    /// Opens the data sets; the ledger is opened by whatever is paid for.
    fn session(&self, beside: PathBuf) -> Result<Session, Error> {
        let config = self.config.clone().unwrap_or(beside);
        let tuning = Tuning { memory: None, threads: self.threads.map(|threads| threads as usize) };
        let options = Options { analyst: self.analyst.clone(), tuning, ..Options::default() };
        Ok(Session::open(&config, options)?)
    }

    /// Whoever runs the command owns the data, where it was said.
    fn owner(&self) -> Option<Owner> {
        self.owner.then(Owner::who_may_see_every_row)
    }
}

/// What a training leaves behind, for programs.
#[derive(Serialize)]
struct TrainView<'a> {
    card: &'a Card,
    model: Option<String>,
    /// Whether the model was read from the ledger and cost nothing this time.
    stored: bool,
    /// The step from which it went on, where it was interrupted before.
    resumed_from: Option<u64>,
    /// How sure one may be of the parameters, where that was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    intervals: Option<&'a Estimates>,
    /// On the rows of `evaluate_where`: as private as they are.
    private: Option<Score>,
}

impl Train {
    pub(super) fn run(&self, out: &mut dyn Write, talk: &mut dyn Write) -> Result<(), Error> {
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
        let mut watcher = Watcher::new(Progress::new(self.json), talk);
        watcher.doing("opening the data");
        let mut session = self.opening.session(training.config())?;
        if self.preview {
            let prospect = session.preview_training(&request, &mut watcher)?;
            drop(watcher);
            return self.write_prospect(&prospect, out);
        }
        let outcome = session.train(&request, &mut watcher)?;
        drop(watcher);
        match outcome {
            Outcome::Done(learned) => self.write(&training, &learned, out, talk),
            Outcome::Stopped { taken, steps } => Ok(writeln!(talk, "stopped after step {taken} of {steps}")?),
        }
    }

    /// The model, for people or for programs; and what its owner asked for besides.
    fn write(
        &self,
        training: &Training,
        learned: &Learned,
        out: &mut dyn Write,
        talk: &mut dyn Write,
    ) -> Result<(), Error> {
        let Learned { trained, model, stored, resumed_from, intervals, score, curve } = learned;
        let (card, resumed_from, intervals) = (&trained.card, *resumed_from, intervals.as_ref());
        if self.json {
            let model = Some(model.display().to_string());
            write_json(&TrainView { card, model, stored: *stored, resumed_from, intervals, private: *score }, out)?;
        } else {
            write_card(card, out)?;
            if let Some(intervals) = intervals {
                writeln!(out)?;
                write_estimates(intervals, out)?;
            }
            if *stored {
                let new = intervals.is_some_and(|intervals| !intervals.stored);
                let charged = if new { "intervals were charged now" } else { "nothing was charged" };
                writeln!(out, "\nfrom entry {} of the ledger: {charged}", card.entry.unwrap_or(0))?;
            }
        }
        out.flush()?;
        if let Some(from) = resumed_from {
            writeln!(talk, "went on from step {from}, under the same reservation")?;
        }
        if let Some(score) = score.as_ref().filter(|_| !self.json) {
            writeln!(talk, "{}", told(score))?;
        }
        self.draw(training, curve, talk)
    }

    fn write_prospect(&self, prospect: &Prospect, out: &mut dyn Write) -> Result<(), Error> {
        let Prospect { card, stored, free, refusal } = prospect;
        if self.json {
            let (stored, resumed_from, intervals) = (*stored, None, None);
            let view = TrainView { card, model: None, stored, resumed_from, intervals, private: None };
            return write_json(&view, out);
        }
        write_card(card, out)?;
        match (free, refusal) {
            (true, _) => writeln!(out, "\nit is in the ledger already: training it costs nothing more")?,
            (false, None) => writeln!(out, "\nit fits the budget; nothing was charged")?,
            (false, Some(refusal)) => writeln!(out, "\nit would be refused: {refusal}")?,
        }
        Ok(())
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
        let picture = picture(training, points);
        for drawing in &self.plot {
            let page = || Report::new(format!("Learning {}", training.target())).picture(picture.svg()).finish();
            drawing.write_for_owner(picture.svg(), page, talk)?;
        }
        Ok(())
    }
}

/// The `whit.toml` beside a file.
fn beside(file: &Path) -> PathBuf {
    file.parent().unwrap_or(Path::new("")).join("whit.toml")
}
