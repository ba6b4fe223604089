//! The whole way of a training: plan, check budgets, reserve, read, step, keep, release, and write the model with its card.

use super::accompanying::{self, Budgets};
use super::curve::Curve;
use super::interval::{Estimates, Intervals};
use super::owner::{self, Owner};
use super::prepare::{self, Planned};
use super::reader::Reader;
use super::resume::Begin;
use super::shortened::{Shortened, Shortening};
use super::spec::{Spec, asked};
use super::trial::{Score, Trial, network};
use super::{Step, Training, Watch, keep};
use crate::Error;
use crate::error::{ErrorKind, Reason, of_ledger};
use crate::state::SessionState;
use std::path::{Path, PathBuf};
use whit_account::desk::{DeskError, Start};
use whit_account::ledger::{Entry, Question, Register, time_text};
use whit_core::Charge;
use whit_core::release::{ReleaseError, Reservation};
use whit_learn::bound::Seen;
use whit_learn::checkpoint::{CheckpointFile, with_ending, write_at_once};
use whit_learn::model::Network;
use whit_learn::release::{self, Keeping, Task};
use whit_learn::train::Learner;
use whit_learn::{Card, LearnError, Trained, TrainingRun};
use whit_query::Tables;
use whit_query::source::{Input, Inputs};

/// A training that is asked for.
#[derive(Debug, Clone)]
pub struct Request<'a> {
    /// What is learned.
    pub training: &'a Training,
    /// Whoever may see scores and curves, which are not sanitised; the model does not depend on it.
    pub owner: Option<Owner>,
    /// The memory that rows may take.
    pub memory: Option<u64>,
    /// Go on with an interrupted run, and refuse to begin one.
    pub resume: bool,
    /// Let a seed in the training file take all privacy away.
    pub seed_destroys_privacy: bool,
    /// Follow the loss on rows that were set aside, for the owner.
    pub curve: bool,
    /// Files that will be written besides: none of them may be one that is read.
    pub outputs: Vec<PathBuf>,
}

impl<'a> Request<'a> {
    /// The training as its file has it, for anybody.
    pub fn new(training: &'a Training) -> Self {
        let outputs = Vec::new();
        let (resume, seed_destroys_privacy, curve) = (false, false, false);
        Self { training, owner: None, memory: None, resume, seed_destroys_privacy, curve, outputs }
    }
}

/// What a training would come to. Nothing was charged for it.
#[derive(Debug, Clone)]
pub struct Prospect {
    /// What the model would say of itself.
    pub card: Card,
    /// Whether the model is in the ledger already.
    pub stored: bool,
    /// Whether nothing would be charged: it is in the ledger, or was begun and is paid for.
    pub free: bool,
    /// Whether a seed takes all privacy away, as the owner wants: no budget is asked, and everything is charged.
    pub gives_up: bool,
    /// What [`Session::train`](crate::Session::train) would say now in place of a model, word for word, as far as the ledger has a say in it: a budget's "no", or why it cannot be
    /// charged. Nothing where it would be learned.
    pub denied: Option<Error>,
}

/// What a training came to.
#[derive(Debug)]
pub enum Outcome {
    /// It is done, and paid for.
    Done(Box<Learned>),
    /// It was stopped, and goes on from there under the same reservation.
    Stopped {
        /// How many steps were taken.
        taken: u64,
        /// Of how many.
        steps: u64,
    },
}

/// A model that was learned.
#[derive(Debug)]
pub struct Learned {
    /// The model, with its card.
    pub trained: Trained,
    /// Its file.
    pub model: PathBuf,
    /// Whether it was read from the ledger and cost nothing this time.
    pub stored: bool,
    /// The step from which it went on, where it was interrupted before.
    pub resumed_from: Option<u64>,
    /// How sure one may be of the parameters, where that was asked for.
    pub intervals: Option<Estimates>,
    /// How it does on rows that were set aside: not sanitised, and for the owner.
    pub score: Option<Score>,
    /// How many of the units that were drawn were clipped, where steps were taken: not sanitised, and for the owner.
    pub shortened: Option<Shortened>,
    /// Steps, and the loss on these rows: not sanitised either.
    pub curve: Vec<(f64, f64)>,
}

/// What comes of the steps.
enum Stepped {
    Done(Box<Done>),
    Stopped { taken: u64, steps: u64 },
}

struct Done {
    trained: Trained,
    stored: bool,
    resumed_from: Option<u64>,
    points: Vec<(f64, f64)>,
    shortened: Option<Shortened>,
}

/// A training whose price is known, and of which no private row was read.
struct Ready {
    planned: Planned,
    card: Card,
    question: Question,
}

/// Refuses a curve that nobody may see, or of nothing, before a ledger is made.
fn check_curve(request: &Request<'_>) -> Result<(), Error> {
    if !request.curve {
        return Ok(());
    }
    owner::needed(request.owner, "the curve of a training")?;
    match request.training.spec.tried_on() {
        Some(_) => Ok(()),
        None => Err(asked(
            "there is nothing to draw: no rows are set aside",
            "write evaluate_where = \"…\", or split = { by = \"user\", test = 0.2 }",
        )),
    }
}

/// Finds all that can be wrong with a request, and plans it. Nothing private is read: all that is said follows from what was declared, and from columns that are public under the
/// unit.
fn ready(state: &SessionState, request: &Request<'_>, watch: &mut dyn Watch) -> Result<Ready, Error> {
    let (spec, tables) = (&request.training.spec, &state.tables);
    // What cannot be meant is said with the file that says it.
    let in_file = |error: Error| match error.kind {
        ErrorKind::Asked => error.at(format!("`{}`", request.training.path().display())),
        ErrorKind::Refused | ErrorKind::Failed => error,
    };
    check_outputs(request, state.inputs()).map_err(in_file)?;
    watch.doing("planning");
    let planned = prepare::plan(spec, tables, &keep(tables, request.memory)).map_err(in_file)?;
    let card = planned.card().map_err(in_file)?;
    planned.notes.iter().for_each(|note| watch.note(note));
    let question = Question {
        dataset: spec.dataset.clone(),
        analyst: state.analyst.clone(),
        meaning: planned.meaning.clone(),
        text: String::new(),
        fingerprint: String::new(),
        partition: tables.partition(&spec.dataset).map(str::to_owned),
    };
    Ok(Ready { planned, card, question })
}

/// What would be promised. Nothing more is read but the ledger.
pub(crate) fn preview(
    state: &mut SessionState,
    request: &Request<'_>,
    watch: &mut dyn Watch,
) -> Result<Prospect, Error> {
    check_curve(request)?;
    state.books_if_any()?;
    let Ready { planned, card, mut question } = ready(state, request, watch)?;
    let (tables, books) = state.looking()?;
    let budgets = budgets(request, tables)?;
    // Of data that is not as the ledger last saw it, nothing is stored.
    let known = tables.known_fingerprint_for_learning(&question.dataset, books)?;
    let is_known = known.is_some();
    question.fingerprint = known.unwrap_or_default();
    let stored = is_known && books.stored(&question).map_err(of_ledger)?.is_some();
    let ladder = planned.steps().ladder();
    let charge = match &planned.promise.intervals {
        Some(intervals) if stored => accompanying::exposed(intervals.unpaid(ladder, &question, books)?, planned.noise),
        None if stored => Charge::new(),
        // What was begun was charged as a whole, and goes on under that.
        _ if books.open_reservation(&question).map_err(of_ledger)?.is_some() => Charge::new(),
        _ => planned.unpaid(&question, books)?,
    };
    let free = charge.is_empty();
    let mut denied = None;
    if !free {
        let spec = &request.training.spec;
        let at = |epsilon: f64, books: &mut dyn Register| cost_at((spec, tables, &planned), epsilon, &question, books);
        denied = accompanying::check(&charge, &question, books, &budgets, at).err();
    }
    Ok(Prospect { card, stored, free, gives_up: budgets.given_up, denied })
}

/// Trains, or finds the same training in the ledger.
pub(crate) fn train(state: &mut SessionState, request: &Request<'_>, watch: &mut dyn Watch) -> Result<Outcome, Error> {
    check_curve(request)?;
    state.books_if_any()?;
    let Ready { planned, card, mut question } = ready(state, request, watch)?;
    let spec = &request.training.spec;
    let (tables, mut books) = state.charging()?;
    let keep = keep(tables, request.memory);
    keep.check().map_err(LearnError::from)?;
    watch.doing("looking whether the files are those that the ledger knows");
    let (fingerprint, stamps) = tables.fingerprint_for_learning(&spec.dataset, &mut books)?;
    question.fingerprint = fingerprint;
    state.log_change();
    let (tables, mut books) = state.charging()?;
    let file = request.training.path().file_name().unwrap_or_default().to_string_lossy();
    question.text = format!("train {file}: {} from {}", spec.target, spec.feature_names());
    let path = request.training.model();
    check_running(&question, &path, &mut books)?;
    let place = CheckpointFile::take(&with_ending(&path, "checkpoint"))?;
    let run = release::run_hash(&planned.meaning, question.partition.as_deref());
    let start = |read| planned.learner(read);
    let reader = Reader::new((spec, tables), planned.steps(), &start, (keep, stamps));
    let budgets = budgets(request, tables)?;
    let planned = &planned;
    let way = Course {
        request,
        tables,
        planned,
        reader: &reader,
        budgets: &budgets,
        question: &question,
        place: &place,
        run: &run,
    };
    let Done { trained, stored, resumed_from, points, shortened } = match way.learn(card, &mut books, watch)? {
        Stepped::Done(done) => *done,
        Stepped::Stopped { taken, steps } => return Ok(Outcome::Stopped { taken, steps }),
    };
    write_model(request.training, &trained, watch)?;
    // The ledger has the model now, so the checkpoint is of no more use. Another run's stays.
    if place.find(&run).is_ok() {
        place.clear().map_err(|error| Error::file(place.path(), &error))?;
        let _ = std::fs::remove_file(curve_of(&place)); // there is none where none was asked for
    }
    let around = |intervals: &Intervals| intervals.release(&reader, &trained, &question, (&mut books, &budgets));
    let intervals = planned.promise.intervals.as_ref().map(around).transpose()?;
    let score = score(request, tables, &trained)?;
    let learned = Learned { trained, model: path, stored, resumed_from, intervals, score, shortened, curve: points };
    Ok(Outcome::Done(Box::new(learned)))
}

/// Refuses a training that somebody is at work on, wherever that writes its model. Its entry is open, and to void it would end a good run.
pub(super) fn check_running(question: &Question, model: &Path, books: &mut dyn Register) -> Result<(), Error> {
    if !books.is_at_work(question).map_err(of_ledger)? {
        return Ok(());
    }
    let entry = books.open_reservation(question).map_err(of_ledger)?;
    let since = entry.map_or_else(String::new, |Entry { number, time, .. }| {
        format!(" since {} UTC, under entry {number} of the ledger", time_text(time))
    });
    let running = Error::failed(format!("another process is training this very model{since}"));
    let hint = "wait until it is done: the same training then takes its model from the ledger, and pays nothing; `Register::entries` shows what is charged";
    Err(running.with_hint(hint).because(Reason::Busy(with_ending(model, "checkpoint"))))
}

/// Refuses files that no output may replace, before anything is charged: the model, its cards, its checkpoints and whatever else is written.
pub(super) fn check_outputs(request: &Request<'_>, inputs: Inputs) -> Result<(), Error> {
    let mut inputs = inputs.and(Input::Declaration, request.training.path());
    if let Some(start) = &request.training.spec.model.start {
        inputs = inputs.and(Input::Model, start);
    }
    let model = request.training.model();
    let folder = model.parent().filter(|folder| !folder.as_os_str().is_empty());
    if let Some(folder) = folder.filter(|folder| !folder.is_dir()) {
        return Err(asked(
            format!("the model is to be written into `{}`, which is no folder that is there", folder.display()),
            "make the folder, or write another path as output.model",
        ));
    }
    let onnx = request.training.onnx();
    files_of(&model).iter().chain(&onnx).chain(&request.outputs).try_for_each(|file| inputs.check(file))?;
    if let Some(onnx) = onnx.filter(|onnx| files_of(&model).contains(onnx)) {
        return Err(asked(
            format!("output.onnx is `{}`, where the model or its card is written", onnx.display()),
            "give it a name of its own, such as \"model.onnx\"",
        ));
    }
    // Its own checkpoints are there where it was interrupted.
    let inputs = inputs.may_replace(Input::Checkpoint);
    let checkpoint = with_ending(&model, "checkpoint");
    for ending in ["next", "lock", "curve"] {
        inputs.check(&with_ending(&checkpoint, ending))?;
    }
    Ok(inputs.check(&checkpoint)?)
}

/// The budgets that watch over a training, unless its owner gives all privacy up.
pub(super) fn budgets(request: &Request<'_>, tables: &Tables) -> Result<Budgets, Error> {
    let spec = &request.training.spec;
    let given_up = spec.output.seed.is_some() && request.seed_destroys_privacy;
    Ok(Budgets { list: tables.budgets(&spec.dataset)?, given_up })
}

/// How the model does on rows that were set aside, for the owner alone.
pub(super) fn score(request: &Request<'_>, tables: &Tables, trained: &Trained) -> Result<Option<Score>, Error> {
    let chosen = request.training.spec.tried_on();
    let Some((owner, chosen)) = request.owner.zip(chosen) else { return Ok(None) };
    let trial = Trial::read(owner, tables, &trained.recipe, chosen, &keep(tables, request.memory))?;
    trial.score(&trained.recipe, &network(trained)?, trained.projection.as_ref()).map(Some)
}

/// What the same training would cost at another ε, as far as it is not paid; nothing where it says its noise, or cannot be planned so.
fn cost_at(
    (spec, tables, planned): (&Spec, &Tables, &Planned),
    epsilon: f64,
    question: &Question,
    books: &mut dyn Register,
) -> Option<Charge> {
    let mut spec: Spec = spec.clone();
    spec.privacy.epsilon = spec.privacy.epsilon.map(|_| epsilon);
    spec.privacy.epsilon?;
    // The norm that was found where none is given is found already.
    spec.privacy.clip = Some(planned.steps().clip().norm);
    let shown = prepare::shown(&spec, tables).ok()?;
    let promise = prepare::promise(&spec, tables, shown.as_ref()).ok()?;
    prepare::with_promise(&spec, tables, promise, planned.noise).ok()?.unpaid(question, books).ok()
}

/// One training, from its plan to its model.
struct Course<'a> {
    request: &'a Request<'a>,
    tables: &'a Tables,
    planned: &'a Planned,
    reader: &'a Reader<'a>,
    budgets: &'a Budgets,
    question: &'a Question,
    place: &'a CheckpointFile,
    run: &'a str,
}

impl Course<'_> {
    /// Finds the model in the ledger, or learns it: reserves, reads, takes all steps and commits.
    fn learn(&self, mut card: Card, books: &mut dyn Register, watch: &mut dyn Watch) -> Result<Stepped, Error> {
        let Self { request, tables, planned, reader, budgets, question, place, run } = *self;
        if let Some(stored) = books.stored(question).map_err(of_ledger)? {
            let mut trained = Trained::of_file(&stored.value)?;
            trained.card.entry = Some(stored.number);
            let done = Done { trained, stored: true, resumed_from: None, points: Vec::new(), shortened: None };
            return Ok(Stepped::Done(Box::new(done)));
        }
        let entry = books.open_reservation(question).map_err(of_ledger)?;
        let begin = Begin::find(place, run, entry.as_ref())?;
        if request.resume && begin.entry.is_none() {
            let none = asked("there is no interrupted run to go on with", "leave `request.resume` out to begin one");
            return Err(none.because(Reason::NoRun));
        }
        // What goes on is at work from here on, wherever it writes its model: nobody is to take it for one that died.
        let _turn = begin.entry.map(|_| books.turn(question)).transpose().map_err(of_ledger)?;
        let spec = &request.training.spec;
        let (resumed, taken) = (begin.entry.is_some(), begin.taken());
        if !resumed {
            let all = planned.unpaid(question, books)?;
            let training = (spec, tables, planned);
            let at = |epsilon: f64, books: &mut dyn Register| cost_at(training, epsilon, question, books);
            accompanying::check(&all, question, books, budgets, at)?;
        }
        watch.doing("learning");
        let promise = &planned.promise;
        let directions = promise.directions.as_ref();
        let directions =
            directions.map(|directions| directions.release(reader, question, resumed, (&mut *books, budgets)));
        let principal = directions.transpose()?;
        if let Some(principal) = &principal {
            card.projection = card.projection.take().map(|words| format!("{words}; {}", principal.gap));
        }
        let answers = promise.answers.as_ref();
        let answers = answers.map(|answers| answers.release(reader, question, resumed, (&mut *books, budgets)));
        let labels = answers.transpose()?;
        let mut curve = self.curve(taken)?;
        let make = |reservation: &Reservation| {
            let mut learner = reader.take(reservation)?;
            principal.as_ref().map_or(Ok(()), |principal| learner.project(principal))?;
            labels.as_ref().map_or(Ok(()), |labels| learner.take_noisy_labels(labels))?;
            Ok(learner)
        };
        let task = Task { plan: planned.steps().clone(), card, recipe: planned.recipe.clone(), make: Box::new(make) };
        let start = begin.entry.map_or(Start::Anew, |entry| Start::Under { entry, at: begin.at });
        let (from, every) = (begin.from, spec.output.checkpoint_every);
        let keeping = Keeping { run: run.to_owned(), file: place, every, from, unnoted: begin.unnoted };
        let mut stopped = None;
        let mut shortened = Shortening::new(planned.steps().steps());
        let mut see = |learner: &Learner<Network>, seen: &Seen| {
            if let Some(curve) = &mut curve {
                curve.see(learner);
            }
            let (taken, steps) = (learner.taken(), planned.steps().steps());
            let loss = request.owner.filter(|_| seen.rows > 0).map(|_| seen.loss / seen.rows as f64);
            let clipped = request.owner.and_then(|owner| shortened.see(owner, taken, seen));
            watch.step(&Step { taken, steps, loss, clipped, plan: learner.plan(), delta: planned.delta });
            if watch.stop() && taken < steps {
                stopped = Some((taken, steps));
                return Err(LearnError::Stopped { taken, steps });
            }
            Ok(())
        };
        let run = TrainingRun::new(task, keeping, &mut see).map_err(LearnError::from)?;
        let served = release::train_once(&run, question, start, &mut budgets.desk(books));
        if let Some(learner) = run.into_learner() {
            reader.put(learner);
        }
        let hint = "while the data is as it was, the same `Session::train` goes on from the last checkpoint, and pays no second time";
        // A checkpoint that could not be written is said, whoever wanted to stop.
        let stopped = stopped.filter(|(taken, _)| stands_at(place, self.run, *taken));
        let served = match (served, stopped) {
            (Ok(served), _) => served,
            (Err(DeskError::Void { entry }), _) => return Err(ended(entry, place)),
            (Err(DeskError::Release(ReleaseError::Sanitise(_))), Some((taken, steps))) => {
                return Ok(Stepped::Stopped { taken, steps });
            }
            (Err(other), _) => return Err(budgets.unserved(other, hint)),
        };
        let (trained, stored, resumed_from) = (served.value, served.stored, resumed.then_some(taken));
        let points = curve.map_or_else(Vec::new, |curve| curve.points);
        let done = Done { trained, stored, resumed_from, points, shortened: shortened.found() };
        Ok(Stepped::Done(Box::new(done)))
    }

    /// A curve in the making, where one was asked for, of a run that goes on after so many steps.
    fn curve(&self, taken: u64) -> Result<Option<Curve>, Error> {
        let Self { request, tables, planned, place, .. } = *self;
        let Some(owner) = request.owner.filter(|_| request.curve) else { return Ok(None) };
        let keep = keep(tables, request.memory);
        let chosen = request.training.spec.tried_on().unwrap_or_default();
        let trial = Trial::read(owner, tables, &planned.recipe, chosen, &keep)?;
        let steps = planned.steps().steps();
        Ok(Some(Curve::new(trial, planned.recipe.clone(), steps, (&curve_of(place), taken))))
    }
}

/// A run whose entry was made void by somebody. Its checkpoints belong to nothing any more, so they go.
fn ended(entry: u64, place: &CheckpointFile) -> Error {
    let _ = std::fs::remove_file(curve_of(place)); // there is none where none was asked for
    let hint = match place.clear() {
        Ok(()) => accompanying::AGAIN.to_owned(),
        Err(why) => format!("remove `{}` ({why}); then {}", place.path().display(), accompanying::AGAIN),
    };
    accompanying::voided(entry, &hint)
}

/// Whether a run can go on from this step.
fn stands_at(place: &CheckpointFile, run: &str, taken: u64) -> bool {
    place.find(run).ok().flatten().is_some_and(|standing| standing.checkpoint.taken == taken)
}

/// Where the points of a curve lie until its run is done.
fn curve_of(place: &CheckpointFile) -> PathBuf {
    with_ending(place.path(), "curve")
}

/// The files of a model: itself, and its cards for programs and for people.
fn files_of(model: &Path) -> [PathBuf; 3] {
    let stem = model.with_extension("");
    [model.to_owned(), with_ending(&stem, "card.json"), with_ending(&stem, "card.txt")]
}

/// Writes the model and its two cards, and once more for other runtimes where that is asked for.
pub(super) fn write_model(training: &Training, trained: &Trained, watch: &mut dyn Watch) -> Result<(), Error> {
    let card = serde_json::to_string_pretty(&trained.card).map_err(|why| Error::failed(why.to_string()))?;
    let model = trained.to_file_as(training.spec.output.layout);
    let contents = [model, format!("{card}\n").into_bytes(), trained.card.words().into_bytes()];
    let onnx = training.onnx().map(|path| (path, trained.to_onnx()));
    for (path, bytes) in files_of(&training.model()).into_iter().zip(contents).chain(onnx) {
        write_at_once(&path, &bytes).map_err(|error| {
            Error::failed(format!(
                "`{}` could not be written: {error}; the model is in the ledger, so training again costs nothing",
                path.display()
            ))
        })?;
        watch.wrote(&path);
    }
    Ok(())
}
