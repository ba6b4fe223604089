//! `whit train`, `whit evaluate`, `whit predict` and `whit experiment`: a model, learned and paid for once, and what it does.

mod beside;
mod evaluate;
mod experiment;
mod interval;
mod owner;
mod predict;
mod prepare;
mod project;
mod reader;
mod respond;
mod resume;
mod slope;
mod spec;
mod trial;
mod watch;

pub(super) use evaluate::Evaluate;
pub(super) use experiment::Experiment;
pub(super) use predict::Predict;

use super::asked::{Open, ledger_of, of_ledger, room};
use super::{Error, inputs, write_json};
use crate::number;
use crate::output::{Drawing, Progress, drawing};
use interval::{Estimates, Intervals};
use owner::Owner;
use prepare::Planned;
use reader::Reader;
use resume::Begin;
use serde::Serialize;
use spec::Spec;
use std::io::Write;
use std::path::{Path, PathBuf};
use trial::{Score, Trial, network};
use watch::Watcher;
use whit::account::desk::{DeskError, Start};
use whit::account::ledger::{Books, Question, Register};
use whit::core::Charge;
use whit::learn::checkpoint::{Place, with_ending, write_at_once};
use whit::learn::release::{self, Keeping, Task};
use whit::learn::train::keep_memory;
use whit::learn::{Card, Keep, LearnError, Run, Trained};
use whit::query::Tables;
use whit::query::source::{Input, Tuning};
use whit_view::measure::Measure;
use whit_view::number::{brief, percent};
use whit_view::page::Report;
use whit_view::plot::{Axis, BLUE, Lines, Picture, Scale, Trace};
use whit_view::table::{Side, Table};

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
    fn tables(&self, beside: &Path) -> Result<Tables, Error> {
        let config = self.config.clone().unwrap_or_else(|| Spec::beside(beside, Path::new("whit.toml")));
        Ok(Tables::open(&config, Tuning { memory: None, threads: self.threads.map(|threads| threads as usize) })?)
    }

    fn open(&self, beside: &Path) -> Result<Open, Error> {
        let tables = self.tables(beside)?;
        let books = Books::open_as(&ledger_of(&tables), &super::ledger::opening()).map_err(of_ledger)?;
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

/// What the same training would cost at another ε, as far as it is not paid; nothing where it says its noise, or cannot be planned so.
fn cost_at(reader: &Reader<'_>, epsilon: f64, question: &Question, books: &mut dyn Register) -> Option<Charge> {
    let Reader { spec, tables, planned, .. } = *reader;
    let mut spec = spec.clone();
    spec.privacy.epsilon = spec.privacy.epsilon.map(|_| epsilon);
    spec.privacy.epsilon?;
    // The norm that was found where none is given is found already.
    spec.privacy.clip = Some(planned.steps().clip().norm);
    let shown = prepare::shown(&spec, tables).ok()?;
    let promise = prepare::promise(&spec, tables, shown.as_ref()).ok()?;
    prepare::with_promise(&spec, tables, promise, planned.noise).ok()?.unpaid(question, books).ok()
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

/// What a training came to.
struct Done {
    trained: Trained,
    /// Whether it was read from the ledger.
    again: bool,
    resumed_from: Option<u64>,
    /// Steps, and the loss on rows that were set aside.
    points: Vec<(f64, f64)>,
}

impl Train {
    pub(super) fn run(&self, out: &mut dyn Write, talk: &mut dyn Write) -> Result<(), Error> {
        keep_memory();
        let spec = Spec::open(&self.training)?;
        let owner = owner::of(self.opening.owner);
        if !self.plot.is_empty() {
            owner::needed(self.opening.owner, "the curve of --plot")?;
            if spec.evaluate_where.is_none() {
                let hint = "write evaluate_where = \"…\"";
                return Err(spec::asked("there is nothing to draw: no rows are set aside", hint));
            }
        }
        let progress = Progress::new(self.json);
        progress.start("opening the data");
        let mut open = self.opening.open(&self.training)?;
        let path = Spec::beside(&self.training, &spec.output.model);
        self.check_outputs(&path, &open.tables)?;
        progress.start("planning");
        // Nothing private is read before a charge is reserved: all that is said until then follows from what was declared, and from columns that are public under the unit.
        let planned = prepare::plan(&spec, &open.tables, &self.opening.keep(&open.tables))?;
        let card = planned.card()?;
        progress.finish();
        for note in &planned.notes {
            writeln!(talk, "note: {note}")?;
        }
        let mut question = Question {
            dataset: spec.dataset.clone(),
            analyst: open.analyst.clone(),
            meaning: planned.meaning.clone(),
            text: String::new(),
            fingerprint: String::new(),
            partition: open.tables.partition(&spec.dataset).map(str::to_owned),
        };
        if self.preview {
            return self.show_preview((&planned, &card), question, &mut open, out);
        }
        self.opening.keep(&open.tables).check().map_err(LearnError::from)?;
        progress.start("looking whether the files are those that the ledger knows");
        let (fingerprint, stamps) = open.tables.fingerprint_for_learning(&spec.dataset, &mut open.books)?;
        question.fingerprint = fingerprint;
        open.log_change();
        let file = self.training.file_name().unwrap_or_default().to_string_lossy();
        question.text = format!("whit train {file}: {} from {}", spec.target, spec.features.join(", "));
        let place = Place::take(&with_ending(&path, "checkpoint"))?;
        let run = release::run_hash(&planned.meaning, question.partition.as_deref());
        let Open { tables, books, .. } = &mut open;
        let reader = Reader::new(&spec, tables, &planned, (self.opening.keep(tables), stamps));
        let done = self.learn((&reader, card), &question, books, (&place, &run), (owner, &progress))?;
        let Done { trained, again, resumed_from, points } = done;
        progress.finish();
        write_model(&path, &trained, talk)?;
        // The ledger has the model now, so the checkpoint is of no more use. Another run's stays.
        if place.find(&run).is_ok() {
            place.clear().map_err(|error| Error::file(place.path(), &error))?;
            let _ = std::fs::remove_file(curve_of(&place)); // there is none where none was asked for
        }
        let budgets = self.budgets(&spec, tables)?;
        let around = |intervals: &Intervals| intervals.release(&reader, &trained, &question, (&mut *books, &budgets));
        let estimates = planned.promise.intervals.as_ref().map(around).transpose()?;
        let estimates = estimates.as_ref();
        let score = self.score(&reader, owner, &trained)?;
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

    /// Refuses files that no output may replace, before anything is charged: the model, its cards, its checkpoints and pictures.
    fn check_outputs(&self, model: &Path, tables: &Tables) -> Result<(), Error> {
        let inputs = inputs(Some(tables)).and(Input::Declaration, &self.training);
        let [_, card, words] = files_of(model);
        for file in [model, &card, &words].into_iter().chain(self.plot.iter().map(Drawing::path)) {
            inputs.check(file)?;
        }
        // Its own checkpoints are there where it was interrupted.
        let inputs = inputs.may_replace(Input::Checkpoint);
        let checkpoint = with_ending(model, "checkpoint");
        for ending in ["next", "lock", "curve"] {
            inputs.check(&with_ending(&checkpoint, ending))?;
        }
        Ok(inputs.check(&checkpoint)?)
    }

    /// The budgets that watch over a training, unless its owner gives all privacy up.
    fn budgets(&self, spec: &Spec, tables: &Tables) -> Result<beside::Budgets, Error> {
        let given_up = spec.output.seed.is_some() && self.seed_destroys_privacy;
        Ok(beside::Budgets { list: tables.budgets(&spec.dataset)?, given_up })
    }

    /// How the model does on rows that were set aside, for the owner alone.
    fn score(&self, reader: &Reader<'_>, owner: Option<Owner>, trained: &Trained) -> Result<Option<Score>, Error> {
        let Some((owner, filter)) = owner.zip(reader.spec.evaluate_where.as_deref()) else { return Ok(None) };
        let keep = self.opening.keep(reader.tables);
        let trial = Trial::read(owner, reader.tables, &trained.recipe, Some(filter), &keep)?;
        trial.score(&trained.recipe, &network(trained)?, trained.projection.as_ref()).map(Some)
    }

    /// What would be promised. Nothing more is read but the ledger.
    fn show_preview(
        &self,
        (planned, card): (&Planned, &Card),
        mut question: Question,
        open: &mut Open,
        out: &mut dyn Write,
    ) -> Result<(), Error> {
        let budgets = open.tables.budgets(&question.dataset)?;
        // Of data that is not as the ledger last saw it, nothing is stored.
        let known = open.tables.known_fingerprint_for_learning(&question.dataset, &mut open.books)?;
        let is_known = known.is_some();
        question.fingerprint = known.unwrap_or_default();
        let stored = is_known && open.books.stored(&question).map_err(of_ledger)?.is_some();
        let ladder = planned.steps().ladder();
        let charge = match &planned.promise.intervals {
            Some(intervals) if stored => {
                beside::exposed(intervals.unpaid(ladder, &question, &mut open.books)?, planned.noise)
            }
            _ => planned.unpaid(&question, &mut open.books)?,
        };
        let nothing = stored && (planned.promise.intervals.is_none() || charge.is_empty());
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

    /// Finds the model in the ledger, or learns it: reserves, reads, takes all steps and commits.
    fn learn(
        &self,
        (reader, mut card): (&Reader<'_>, Card),
        question: &Question,
        books: &mut dyn Register,
        (place, run): (&Place, &str),
        (owner, progress): (Option<Owner>, &Progress),
    ) -> Result<Done, Error> {
        if let Some(stored) = books.stored(question).map_err(of_ledger)? {
            let mut trained = Trained::of_file(&stored.value)?;
            trained.card.entry = Some(stored.number);
            return Ok(Done { trained, again: true, resumed_from: None, points: Vec::new() });
        }
        let entry = books.open_reservation(question).map_err(of_ledger)?;
        let begin = Begin::find(place, run, entry.as_ref())?;
        if self.resume && begin.entry.is_none() {
            let hint = "leave --resume out to begin one";
            return Err(spec::asked("there is no interrupted run to go on with", hint));
        }
        let (planned, spec) = (reader.planned, reader.spec);
        let budgets = self.budgets(spec, reader.tables)?;
        let (resumed, taken) = (begin.entry.is_some(), begin.taken());
        if !resumed {
            let all = planned.unpaid(question, books)?;
            let at = |epsilon: f64, books: &mut dyn Register| cost_at(reader, epsilon, question, books);
            beside::check(&all, question, books, &budgets, at)?;
        }
        progress.start("learning");
        let promise = &planned.promise;
        let directions = promise.directions.as_ref();
        let directions =
            directions.map(|directions| directions.release(reader, question, resumed, (&mut *books, &budgets)));
        let projection = directions.transpose()?.map(|(projection, gap)| {
            card.projection = card.projection.take().map(|told| format!("{told}; {gap}"));
            projection
        });
        let answers = promise.answers.as_ref();
        let answers = answers.map(|answers| answers.release(reader, question, resumed, (&mut *books, &budgets)));
        let labels = answers.transpose()?;
        let trial = match owner.filter(|_| !self.plot.is_empty()) {
            Some(owner) => {
                let (filter, keep) = (spec.evaluate_where.as_deref(), self.opening.keep(reader.tables));
                Some(Trial::read(owner, reader.tables, &planned.recipe, filter, &keep)?)
            }
            None => None,
        };
        let mut watcher = Watcher::new(progress, owner, trial.as_ref(), planned);
        if trial.is_some() {
            watcher.keep(&curve_of(place), taken);
        }
        let make = || {
            let mut learner = reader.take()?;
            projection.clone().map_or(Ok(()), |projection| learner.project(projection))?;
            labels.as_ref().map_or(Ok(()), |labels| learner.tell(labels))?;
            Ok(learner)
        };
        let task = Task { plan: planned.steps().clone(), card, recipe: planned.recipe.clone(), make: Box::new(make) };
        let start = begin.entry.map_or(Start::Anew, |entry| Start::Under { entry, at: begin.at });
        let (from, every) = (begin.from, spec.output.checkpoint_every);
        let keeping = Keeping { run: run.to_owned(), place, every, from, unnoted: begin.unnoted };
        let mut see = |learner: &_, seen: &_| {
            watcher.see(learner, seen);
            Ok(())
        };
        let run = Run::new(task, keeping, &mut see).map_err(LearnError::from)?;
        let served = release::train_once(&run, question, start, &mut budgets.desk(books));
        if let Some(learner) = run.into_learner() {
            reader.put(learner);
        }
        let hint =
            "while the data is as it was, the same command goes on from the last checkpoint, and pays no second time";
        let served = served.map_err(|error| match error {
            DeskError::Void { entry } => ended(entry, place),
            other => budgets.unserved(other, hint),
        })?;
        Ok(Done {
            trained: served.value,
            again: served.stored,
            resumed_from: resumed.then_some(taken),
            points: watcher.points,
        })
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
            drawing.write_for_owner(picture.svg(), page, talk)?;
        }
        Ok(())
    }
}

/// A run whose entry was made void by somebody. Its checkpoints belong to nothing any more, so they go.
fn ended(entry: u64, place: &Place) -> Error {
    let _ = std::fs::remove_file(curve_of(place)); // there is none where none was asked for
    let hint = match place.clear() {
        Ok(()) => beside::AGAIN.to_owned(),
        Err(why) => format!("remove `{}` ({why}); then {}", place.path().display(), beside::AGAIN),
    };
    Error::Failed(beside::voided(entry, &hint))
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
    let (rows, loss) = (whit_view::number::grouped(&score.rows.to_string()), brief(score.loss));
    format!("private, not sanitised, for the owner only: on {rows} rows a mean loss of {loss}{accuracy}")
}

/// The card: a table of rungs, and what else there is.
fn write_card(card: &Card, out: &mut dyn Write) -> Result<(), Error> {
    let mut table =
        Table::new([("unit", Side::Left), ("ε at most", Side::Right), ("δ", Side::Right), ("", Side::Left)]);
    for rung in &card.rungs {
        let epsilon =
            if rung.epsilon.is_finite() { whit_view::number::brief_up(rung.epsilon) } else { "∞".to_owned() };
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

/// The files of a model: itself, and its cards for programs and for people.
fn files_of(model: &Path) -> [PathBuf; 3] {
    let stem = model.with_extension("");
    [model.to_owned(), with_ending(&stem, "card.json"), with_ending(&stem, "card.txt")]
}

/// Writes the model and its two cards.
fn write_model(path: &Path, trained: &Trained, talk: &mut dyn Write) -> Result<(), Error> {
    let card = serde_json::to_string_pretty(&trained.card).map_err(|why| Error::Failed(why.to_string()))?;
    let contents = [trained.to_file(), format!("{card}\n").into_bytes(), trained.card.words().into_bytes()];
    for (path, bytes) in files_of(path).into_iter().zip(contents) {
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
