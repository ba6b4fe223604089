//! `whit train`, `whit evaluate`, `whit predict` and `whit experiment`: a model, learned and paid for once, and what it does.

mod beside;
mod evaluate;
mod experiment;
mod interval;
mod predict;
mod prepare;
mod project;
mod respond;
mod slope;
mod spec;
mod trial;
mod watch;

pub(super) use evaluate::Evaluate;
pub(super) use experiment::Experiment;
pub(super) use predict::Predict;

use super::asked::{Open, room};
use super::{Error, write_json};
use crate::measure::Measure;
use crate::number::{self, brief, percent};
use crate::output::{Drawing, Progress, Report, drawing};
use crate::plot::{Axis, BLUE, Lines, Picture, Scale, Trace};
use crate::table::{Side, Table};
use interval::{Estimates, Intervals};
use prepare::Prepared;
use serde::Serialize;
use spec::Spec;
use std::io::Write;
use std::path::{Path, PathBuf};
use trial::{Score, Trial, network};
use watch::Watcher;
use whit::account::ledger::{Books, LedgerError, Question};
use whit::core::release::ReleaseError;
use whit::learn::checkpoint::{Checkpoint, Place, with_ending, write_at_once};
use whit::learn::model::Network;
use whit::learn::release::{self, Keeping};
use whit::learn::train::{Learner, keep_memory};
use whit::learn::{Card, Keep, Run, Trained};
use whit::noise::{Entropy, Os};
use whit::query::source::Tuning;
use whit::query::{QueryError, Tables};

/// Learn a model, and pay for it once.
///
/// The training file names a data set of the `whit.toml` beside it; unit, caps and budgets are declared there. The whole price is reserved in the
/// ledger before the first step. What is interrupted goes on from its last checkpoint under the same reservation, by the same command;
/// training the same again is answered from the ledger and costs nothing.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  whit train train.toml --preview
  whit train train.toml --plot curve.svg
  whit evaluate train.toml
  whit predict model.safetensors --where \"split = 'test'\" --csv told.csv")]
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
    /// Draw the loss on the rows of `evaluate_where`, step by step, into a file that ends in .svg, .png or .html. It is as private as
    /// the rows.
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
    /// How many threads read the data; as many as the machine has without it.
    #[arg(long, value_name = "N", value_parser = number::elements)]
    threads: Option<u64>,
    /// The memory that rows may take, such as 512MiB; 1GiB without it. Those beyond lie in a file without a name, in the folder that TMPDIR names or
    /// else beside the ledger.
    #[arg(long, value_name = "SIZE", value_parser = room)]
    memory: Option<u64>,
}

impl Opening {
    fn tables(&self, beside: &Path) -> Result<Tables, Error> {
        let config = self.config.clone().unwrap_or_else(|| Spec::beside(beside, Path::new("whit.toml")));
        Ok(Tables::open(&config, Tuning { memory: None, threads: self.threads.map(|threads| threads as usize) })?)
    }

    fn open(&self, beside: &Path) -> Result<Open, Error> {
        let tables = self.tables(beside)?;
        let books = Books::open(&ledger_of(&tables)).map_err(of_ledger)?;
        Ok(Open { tables, books, analyst: self.analyst.clone() })
    }

    /// Where rows lie. The folder of the ledger is on a disk that its owner chose, while `/tmp` may be in memory.
    fn keep(&self, tables: &Tables) -> Keep {
        keep(tables, self.memory)
    }
}

fn keep(tables: &Tables, memory: Option<u64>) -> Keep {
    let chosen = std::env::var_os("TMPDIR").filter(|folder| !folder.is_empty()).map(PathBuf::from);
    let beside = || ledger_of(tables).parent().unwrap_or(Path::new(".")).to_owned();
    Keep { memory: memory.unwrap_or_else(|| Keep::default().memory), folder: chosen.unwrap_or_else(beside) }
}

/// Where the ledger is.
fn ledger_of(tables: &Tables) -> PathBuf {
    let warehouse = tables.warehouse();
    warehouse.folder().join(warehouse.declaration().ledger.as_deref().unwrap_or("whit.ledger"))
}

#[expect(clippy::needless_pass_by_value, reason = "for map_err")]
fn of_ledger(error: LedgerError) -> Error {
    let hint = error.hint();
    Error::from(QueryError { hint, ..QueryError::failed(error.to_string()) })
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

/// How a run begins.
enum Begin {
    New,
    /// Under this entry, or under one that is reserved now where there is none yet.
    On {
        name: String,
        entry: Option<u64>,
        from: u64,
    },
}

impl Train {
    pub(super) fn run(&self, out: &mut dyn Write, talk: &mut dyn Write) -> Result<(), Error> {
        keep_memory();
        let spec = Spec::open(&self.training)?;
        let progress = Progress::new(self.json);
        progress.start("opening the data");
        let mut open = self.opening.open(&self.training)?;
        open.tables.warehouse().declaration().dataset(&spec.dataset).map_err(QueryError::from)?;
        let fingerprint = open.tables.fingerprint_for_learning(&spec.dataset, &mut open.books)?;
        open.warn_of_change(talk)?;
        progress.start("reading rows and planning");
        let prepared = prepare::prepare(&spec, &open.tables, self.opening.keep(&open.tables))?;
        let card = prepared.card(&fingerprint)?;
        progress.finish();
        for note in &prepared.notes {
            writeln!(talk, "note: {note}")?;
        }
        let question = Question {
            dataset: spec.dataset.clone(),
            analyst: open.analyst.clone(),
            meaning: prepared.meaning.clone(),
            text: String::new(),
            fingerprint,
            partition: open.tables.partition(&spec.dataset).map(str::to_owned),
        };
        if self.preview {
            return self.show_preview(&spec, (&prepared, &card), question, &mut open, out);
        }
        let path = Spec::beside(&self.training, &spec.output.model);
        let filter = spec.evaluate_where.as_deref();
        let read = |filter| Trial::read(&open.tables, &prepared.recipe, Some(filter), &prepared.rest);
        let trial = filter.map(read).transpose()?;
        if trial.is_none() && !self.plot.is_empty() {
            return Err(spec::asked("there is nothing to draw: no rows are set aside", "write evaluate_where = \"…\""));
        }
        let place = Place::take(&with_ending(&path, "checkpoint"))?;
        let run = release::run_hash(&prepared.meaning, &question.fingerprint, question.partition.as_deref());
        let mut points = Vec::new();
        let stored = open.books.stored(&question).map_err(of_ledger)?;
        let (noise, intervals, training) = (prepared.noise, prepared.intervals.clone(), question.clone());
        let (trained, learner, resumed_from, again) = if let Some(stored) = stored {
            let mut trained = Trained::of_file(&stored.value)?;
            trained.card.entry = Some(stored.number);
            (trained, prepared.learner, None, true)
        } else {
            progress.start("learning");
            let watcher = Watcher::new(&progress, trial.as_ref().filter(|_| !self.plot.is_empty()), &prepared);
            let (trained, learner, from) =
                self.learn(&spec, (prepared, card), question, &mut open, (&place, &run), watcher, &mut points)?;
            (trained, learner, from, false)
        };
        progress.finish();
        write_model(&path, &trained, talk)?;
        // The ledger has the model now, so the checkpoint is of no more use. Another run's stays.
        if place.find(&run).is_ok() {
            place.clear().map_err(|error| Error::file(place.path(), &error))?;
            let _ = std::fs::remove_file(curve_of(&place)); // there is none where none was asked for
        }
        let scored = |trial: Trial| trial.score(&trained.recipe, &network(&trained)?, trained.projection.as_ref());
        let score = trial.map(scored).transpose()?;
        let around = |intervals: Intervals| intervals.release(&learner, &trained, &training, noise, &mut open);
        let estimates = intervals.map(around).transpose()?;
        let estimates = estimates.as_ref();
        if self.json {
            let (card, model) = (&trained.card, Some(path.display().to_string()));
            let view = TrainView { card, model, stored: again, resumed_from, intervals: estimates, private: score };
            write_json(&view, out)?;
        } else {
            write_card(&trained.card, out)?;
            if let Some(estimates) = estimates {
                writeln!(out)?;
                estimates.write(out)?;
            }
            if again {
                let new = estimates.is_some_and(|estimates| !estimates.stored);
                let charged = if new { "intervals were charged now" } else { "nothing was charged" };
                writeln!(out, "\nfrom entry {} of the ledger: {charged}", trained.card.entry.unwrap_or(0))?;
            }
        }
        out.flush()?;
        if let Some(from) = resumed_from {
            writeln!(talk, "went on from step {from}, under the same reservation")?;
        }
        if let Some(score) = score.filter(|_| !self.json) {
            writeln!(talk, "{}", told(&score))?;
        }
        self.draw(&spec, &points, talk)
    }

    /// What would be promised.
    fn show_preview(
        &self,
        spec: &Spec,
        (prepared, card): (&Prepared, &Card),
        question: Question,
        open: &mut Open,
        out: &mut dyn Write,
    ) -> Result<(), Error> {
        let budgets = open.tables.budgets(&spec.dataset)?;
        let stored = open.books.stored(&question).map_err(of_ledger)?.is_some();
        let charge = match &prepared.intervals {
            Some(intervals) if stored => {
                intervals.unpaid(prepared.learner.plan().ladder(), &question, &mut open.books)?
            }
            _ => prepared.unpaid(&question, &mut open.books)?,
        };
        let nothing = stored && (prepared.intervals.is_none() || charge.is_empty());
        let fits = open.books.booking(question, &budgets).would_fit(&charge);
        if self.json {
            let view = TrainView { card, model: None, stored, resumed_from: None, intervals: None, private: None };
            return write_json(&view, out);
        }
        write_card(card, out)?;
        match (nothing, fits) {
            (true, _) => writeln!(out, "\nit is in the ledger already: training it costs nothing more")?,
            (false, Ok(())) => writeln!(out, "\nit fits the budget; nothing was charged")?,
            (false, Err(refusal)) => writeln!(out, "\nit would be refused: {refusal}")?,
        }
        Ok(())
    }

    /// How to begin: anew, or where this very run was interrupted.
    fn begin(
        &self,
        place: &Place,
        run: &str,
        books: &mut Books,
        question: &Question,
    ) -> Result<(Begin, Option<Checkpoint>), Error> {
        let open = books.open_reservation(question).map_err(of_ledger)?;
        let found = place.find(run)?;
        let void = |entry: u64| format!("`whit ledger void {entry} --reason …` ends it, if nothing of it has left");
        match (open, found) {
            (None, None) if self.resume => {
                Err(spec::asked("there is no interrupted run to go on with", "leave --resume out to begin one"))
            }
            (None, None) => Ok((Begin::New, None)),
            (None, Some(found)) => match found.entry {
                None => Ok((Begin::On { name: found.name.clone(), entry: None, from: 0 }, Some(found))),
                Some(entry) => Err(spec::asked(
                    format!(
                        "`{}` belongs to entry {entry} of the ledger, which is not open any more",
                        place.path().display()
                    ),
                    "remove it to begin anew, with a charge of its own",
                )),
            },
            (Some(entry), Some(found))
                if entry.question.ends_with(&found.name) && found.entry.is_none_or(|own| own == entry.number) =>
            {
                Ok((Begin::On { name: found.name.clone(), entry: Some(entry.number), from: found.taken }, Some(found)))
            }
            (Some(entry), _) => Err(spec::asked(
                format!(
                    "entry {} of the ledger is open for the same training, and `{}` is not its checkpoint",
                    entry.number,
                    place.path().display()
                ),
                format!("put its checkpoint back to go on under it; {}", void(entry.number)),
            )),
        }
    }

    #[expect(clippy::too_many_arguments, reason = "the parts of one run, which come together here")]
    fn learn(
        &self,
        spec: &Spec,
        (prepared, mut card): (Prepared, Card),
        mut question: Question,
        open: &mut Open,
        (place, run): (&Place, &str),
        mut watcher: Watcher<'_>,
        points: &mut Vec<(f64, f64)>,
    ) -> Result<(Trained, Learner<Network>, Option<u64>), Error> {
        let (begin, found) = self.begin(place, run, &mut open.books, &question)?;
        let resumed = matches!(begin, Begin::On { entry: Some(_), .. });
        if !resumed {
            let (all, budgets) = (prepared.unpaid(&question, &mut open.books)?, open.tables.budgets(&spec.dataset)?);
            beside::check(&all, open.books.booking(question.clone(), &budgets), &budgets).inspect_err(|_| {
                let _ = place.clear(); // nothing is reserved, and nothing was drawn
            })?;
        }
        let Prepared { mut learner, directions, answers, recipe, noise, .. } = prepared;
        if let Some(found) = found {
            let theta = found.theta.iter().map(|&value| value as f32).collect::<Vec<f32>>();
            let average = found.average.map(|average| average.validated(theta.len())).transpose();
            let average = average.map_err(whit::learn::LearnError::from)?;
            learner.resume(theta, found.optimiser, average, found.taken)?;
        }
        if let Some(directions) = &directions {
            let (projection, gap) = directions.release(&learner, &question, noise, resumed, open)?;
            if let Some(told) = &mut card.projection {
                *told = format!("{told}; {gap}");
            }
            learner.project(projection)?;
        }
        if let Some(answers) = &answers {
            let told = answers.release(&learner, &question, noise, resumed, open)?;
            learner.tell(&told)?;
        }
        if !self.plot.is_empty() {
            watcher.keep(&curve_of(place), learner.taken());
        }
        let name = match &begin {
            Begin::New => format!("{:016x}", Os.bits(64)),
            Begin::On { name, .. } => name.clone(),
        };
        let file = self.training.file_name().unwrap_or_default().to_string_lossy();
        question.text = format!("whit train {file}: {} from {}, run {name}", spec.target, spec.features.join(", "));
        let budgets = open.tables.budgets(&spec.dataset)?;
        let (mut booking, from) = match begin {
            Begin::New => {
                // Before the reservation, so that an open one without a checkpoint is one whose checkpoint was taken away.
                place.keep(&Checkpoint::new(run, &name, None, learner.state()))?;
                (open.books.booking(question, &budgets), None)
            }
            Begin::On { entry: None, .. } => (open.books.booking(question, &budgets), None),
            Begin::On { entry: Some(entry), from, .. } => (open.books.resume(question, &budgets, entry), Some(from)),
        };
        let every = spec.output.checkpoint_every;
        let mut watch = |learner: &_, seen: &_| {
            watcher.see(learner, seen);
            Ok(())
        };
        let run = Run::new(learner, card, recipe, Keeping { run: run.to_owned(), name, place, every }, &mut watch);
        let released = release::train(&run, &mut booking, noise);
        let learner = run.into_learner();
        *points = watcher.points;
        let trained = released.map_err(|error| match error {
            ReleaseError::Refused(refusal) => {
                let _ = place.clear(); // nothing is reserved, and nothing was drawn
                beside::refused(&refusal, &budgets)
            }
            ReleaseError::Ledger(failure) => {
                if !resumed {
                    let _ = place.clear();
                }
                beside::broken(&failure)
            }
            other => Error::Failed(format!(
                "{other}\n  hint: the same command goes on from the last checkpoint, and pays no second time"
            )),
        })?;
        Ok((trained, learner, from))
    }

    /// Draws the loss over the steps.
    fn draw(&self, spec: &Spec, points: &[(f64, f64)], talk: &mut dyn Write) -> Result<(), Error> {
        if self.plot.is_empty() {
            return Ok(());
        }
        if points.is_empty() {
            writeln!(talk, "note: no step was taken this time, so there is no curve to draw")?;
            return Ok(());
        }
        let picture = curve(spec, points);
        for drawing in &self.plot {
            let page = || Report::new(format!("Learning {}", spec.target)).picture(picture.svg()).finish();
            drawing.write(picture.svg(), page, talk)?;
        }
        Ok(())
    }
}

/// Where the points of a curve lie until its run is done.
fn curve_of(place: &Place) -> PathBuf {
    with_ending(place.path(), "curve")
}

fn curve(spec: &Spec, points: &[(f64, f64)]) -> Picture {
    let point = |&(step, loss): &(f64, f64)| (step, Some(Measure::exactly(loss)).filter(|_| loss.is_finite()));
    Lines {
        title: format!("Learning {} from {}", spec.target, spec.dataset),
        subtitle: "The loss on rows that were set aside. It was not sanitised: for the owner of the data only"
            .to_owned(),
        across: Axis { name: "step".to_owned(), scale: Scale::Number },
        axis: "mean loss (private)".to_owned(),
        traces: vec![Trace {
            name: "loss".to_owned(),
            colour: BLUE,
            steps: false,
            points: points.iter().map(point).collect(),
        }],
        limits: Vec::new(),
        note: String::new(),
    }
    .draw()
}

/// A score in one line.
fn told(score: &Score) -> String {
    let accuracy = score.accuracy.map_or_else(String::new, |share| format!(", {} told right", percent(share)));
    let (rows, loss) = (number::grouped(&score.rows.to_string()), brief(score.loss));
    format!("private, not sanitised, for the owner only: on {rows} rows a mean loss of {loss}{accuracy}")
}

/// The card: a table of rungs, and what else there is.
fn write_card(card: &Card, out: &mut dyn Write) -> Result<(), Error> {
    let mut table =
        Table::new([("unit", Side::Left), ("ε at most", Side::Right), ("δ", Side::Right), ("", Side::Left)]);
    for rung in &card.rungs {
        let epsilon = if rung.epsilon.is_finite() { number::brief_up(rung.epsilon) } else { "∞".to_owned() };
        table.row([rung.unit.clone(), epsilon, brief(card.delta), rung.neighbours.clone()]);
    }
    table.write(out)?;
    writeln!(out)?;
    let words = card.words();
    let rest = words.lines().filter(|line| !["protected ", "and ", "  "].iter().any(|start| line.starts_with(start)));
    for line in rest {
        writeln!(out, "{line}")?;
    }
    Ok(())
}

/// Writes the model and its two cards.
fn write_model(path: &Path, trained: &Trained, talk: &mut dyn Write) -> Result<(), Error> {
    let stem = path.with_extension("");
    let card = serde_json::to_string_pretty(&trained.card).map_err(|why| Error::Failed(why.to_string()))?;
    for (path, bytes) in [
        (path.to_owned(), trained.to_file()),
        (with_ending(&stem, "card.json"), format!("{card}\n").into_bytes()),
        (with_ending(&stem, "card.txt"), trained.card.words().into_bytes()),
    ] {
        write_at_once(&path, &bytes).map_err(|error| {
            Error::Failed(format!(
                "`{}` could not be written: {error}; the model is in the ledger, so training again costs nothing",
                path.display()
            ))
        })?;
        writeln!(talk, "wrote {}", path.display())?;
    }
    Ok(())
}
