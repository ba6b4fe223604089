//! Training files compared over values and seeds, by whoever may look at the rows.

mod design;

pub use design::{Arm, Design, Measured, Varied};

use super::features::SplitSpec;
use super::label_clip;
use super::prepare::{self, Planned, Promise};
use super::respond::Answers;
use super::rows::{self, Read};
use super::spec::{Spec, WaySpec, asked};
use super::trial::Trial;
use super::{Owner, Watch, keep};
use crate::Error;
use design::{Job, filled, of_arm};
use std::path::{Path, PathBuf};
use std::time::Instant;
use whit_core::declare::Dataset;
use whit_learn::model::Named;
use whit_learn::release::RungLoss;
use whit_learn::scatter::Sum;
use whit_learn::{Keep, NoiseSource, Recipe};
use whit_query::source::Inputs;
use whit_query::source::learn::InView;
use whit_query::{QueryError, Tables};

/// An experiment that is asked for, by the owner of the data: whoever runs one looks at rows. Noise comes from seeds and scores are not sanitised, so it is non-private.
/// Nothing is charged, and no ledger is opened.
#[derive(Debug, Clone)]
pub struct ExperimentRequest<'a> {
    /// The experiment file.
    pub file: &'a Path,
    /// How often each training is repeated; as the file has it without.
    pub seeds: Option<u64>,
    /// The arms to run, by name; all where none are named.
    pub only: Vec<String>,
    /// The memory that rows may take.
    pub memory: Option<u64>,
    /// Files that will be written: none of them may be one that is read.
    pub outputs: Vec<PathBuf>,
}

/// What one training led to.
#[derive(Debug, Clone)]
pub struct Outcome {
    /// Which table it belongs to, where several are compared.
    pub panel: Option<usize>,
    /// Which arm it is of.
    pub arm: usize,
    /// Which value it was run with.
    pub value: Option<usize>,
    /// Which repetition it is.
    pub seed: u64,
    /// What models are compared by.
    pub score: f64,
    /// How long it took.
    pub seconds: f64,
    /// How many steps it had.
    pub steps: u64,
    /// Standard deviation over the clip norm; 0 where there is none.
    pub noise: f64,
    /// The δ at which ε holds.
    pub delta: f64,
    /// What it would lose each rung; nothing is said of what is not private.
    pub lost: Vec<RungLoss>,
}

/// What an experiment found. It is non-private.
#[derive(Debug, Clone)]
pub struct Found {
    /// What was compared.
    pub design: Design,
    /// The places of the arms that were run.
    pub arms: Vec<usize>,
    /// How often each training was repeated.
    pub seeds: u64,
    /// Every training, in the order of the design.
    pub outcomes: Vec<Outcome>,
    /// How long all of them took.
    pub seconds: f64,
}

/// All that decides which rows are read. Runs that agree in it share them.
#[derive(PartialEq)]
struct Wanted {
    recipe: Recipe,
    learned: Option<String>,
    tried: Option<String>,
    split: Option<SplitSpec>,
}

impl Wanted {
    fn of(spec: &Spec) -> Result<Self, Error> {
        // Which model reads the rows is all the same to them.
        let recipe = Recipe { model: Named::Linear { bias: true }, projection: None, ..rows::recipe(spec)? };
        Ok(Self { recipe, learned: spec.learned.clone(), tried: spec.evaluate_where.clone(), split: spec.split })
    }
}

/// A promise that was worked out, so that runs which differ in their seed alone need not do it again.
struct Promised {
    /// All that it depends on, as text.
    of: String,
    promise: Promise,
    lost: Option<(Vec<RungLoss>, f64)>,
}

/// What trainings that read the same rows share.
#[derive(Default)]
struct Shelf {
    trial: Option<Trial>,
    /// Sums of outer products, by the radius that rows were shortened to.
    moments: Vec<(f64, Sum)>,
}

impl Shelf {
    fn moments(&mut self, radius: f64, sum: impl FnOnce() -> Result<Sum, Error>) -> Result<&Sum, Error> {
        let known = self.moments.iter().position(|(known, _)| *known == radius);
        if known.is_none() {
            self.moments.push((radius, sum()?));
        }
        Ok(&self.moments[known.unwrap_or(self.moments.len() - 1)].1)
    }
}

/// What is done after each step.
type Stepped<'a> = dyn FnMut() -> Result<(), Error> + 'a;

/// What to do after an experiment was stopped.
const STOPPED: &str = "nothing was charged, and nothing was kept; it begins anew";

/// What runs one training after the other.
struct Bench<'a> {
    design: &'a Design,
    tables: &'a Tables,
    /// The folder of the declaration.
    folder: &'a Path,
    /// Whoever runs an experiment looks at rows.
    owner: Owner,
    /// Where rows may lie.
    keep: Keep,
    promised: Vec<Promised>,
}

/// Runs all trainings of an experiment, the way a training is run.
pub(crate) fn run(
    tables: &Tables,
    inputs: &Inputs,
    request: &ExperimentRequest<'_>,
    watch: &mut dyn Watch,
) -> Result<Found, Error> {
    // Whoever compares trainings by what they score looks at rows: there is nothing in it for anybody else.
    let owner = Owner::who_may_see_every_row();
    let start = Instant::now();
    let design = Design::open(request.file)?;
    let (arms, seeds) = (design.chosen(&request.only)?, request.seeds.unwrap_or(design.seeds));
    let mut jobs = design.jobs(request.file.parent().unwrap_or(Path::new("")), &arms, seeds)?;
    request.outputs.iter().try_for_each(|file| inputs.check(file))?;
    let shelves = shelves(&design, &jobs)?;
    check(&design, tables, &jobs, &shelves)?.iter().for_each(|note| watch.note(note));
    let keep = keep(tables, request.memory);
    clip(&design, tables, &mut jobs, &keep)?.iter().for_each(|note| watch.note(note));
    watch.doing("reading rows");
    let folder = tables.config().and_then(Path::parent).unwrap_or(Path::new(""));
    let mut bench = Bench { design: &design, tables, folder, owner, keep, promised: Vec::new() };
    let outcomes = bench.run(&jobs, &shelves, watch)?;
    Ok(Found { design, arms, seeds, outcomes, seconds: start.elapsed().as_secs_f64() })
}

/// Trainings that read the same rows, together: so that at any time the rows of one such set are held.
fn shelves(design: &Design, jobs: &[Job]) -> Result<Vec<Vec<usize>>, Error> {
    let mut shelves: Vec<(Wanted, Vec<usize>)> = Vec::new();
    for (place, job) in jobs.iter().enumerate() {
        let wanted = Wanted::of(&job.spec).map_err(|error| of_arm(&design.arms[job.arm].name, error))?;
        match shelves.iter_mut().find(|(other, _)| *other == wanted) {
            Some((_, places)) => places.push(place),
            None => shelves.push((wanted, vec![place])),
        }
    }
    Ok(shelves.into_iter().map(|(_, places)| places).collect())
}

/// Finds what is wrong before the first step; returns what whoever looks should know.
fn check(design: &Design, tables: &Tables, jobs: &[Job], shelves: &[Vec<usize>]) -> Result<Vec<String>, Error> {
    let mut notes: Vec<String> = Vec::new();
    for job in shelves.iter().filter_map(|shelf| shelf.first()).map(|&place| &jobs[place]) {
        let named = |error| of_arm(&design.arms[job.arm].name, error);
        for note in prepare::check(&job.spec, tables).map_err(named)? {
            if !notes.contains(&note) {
                notes.push(note);
            }
        }
        if design.measure != Measured::Distance && job.spec.tried_on().is_none() {
            let what = "no rows are set aside, and models are compared by how they do on such";
            return Err(named(asked(what, "write evaluate_where = \"…\" in the training file")));
        }
    }
    Ok(notes)
}

/// Gives label units the clip norm that `Session::train` would, where none is given; returns what whoever looks should know. Trainings that differ in other things read features once.
fn clip(design: &Design, tables: &Tables, jobs: &mut [Job], keep: &Keep) -> Result<Vec<String>, Error> {
    let (mut notes, mut known): (Vec<String>, Vec<(String, Option<f64>)>) = (Vec::new(), Vec::new());
    for job in jobs {
        let arm = &design.arms[job.arm].name;
        let of = label_clip::decided_by(&job.spec).map_err(|error| of_arm(arm, error))?;
        let norm = if let Some((_, norm)) = known.iter().find(|(other, _)| *other == of) {
            *norm
        } else {
            let mut own = Vec::new();
            let clipped = label_clip::clipped(&job.spec, tables, keep, &mut own).map_err(|error| of_arm(arm, error))?;
            let norm = clipped.privacy.clip;
            notes.extend(own.into_iter().map(|note| format!("{arm}: {note}")));
            known.push((of, norm));
            norm
        };
        job.spec.privacy.clip = norm;
    }
    Ok(notes)
}

impl Bench<'_> {
    /// All trainings, in their own order whatever was read first.
    fn run(&mut self, jobs: &[Job], shelves: &[Vec<usize>], watch: &mut dyn Watch) -> Result<Vec<Outcome>, Error> {
        let total: u64 = jobs.iter().map(|job| job.spec.privacy.steps).sum();
        let mut outcomes: Vec<(usize, Outcome)> = Vec::with_capacity(jobs.len());
        let mut taken = 0;
        for shelf in shelves {
            let (mut held, mut shelf_own) = (None, Shelf::default());
            for (nth, &place) in shelf.iter().enumerate() {
                let job = &jobs[place];
                let arm = &self.design.arms[job.arm].name;
                watch.run(outcomes.len() + 1, jobs.len(), arm);
                let last = nth + 1 == shelf.len();
                let read = match held.take() {
                    Some(read) => read,
                    None => {
                        rows::read(&job.spec, self.tables, self.keep.clone()).map_err(|error| of_arm(arm, error))?
                    }
                };
                // The last one takes the rows themselves.
                held = (!last).then(|| read.clone());
                let mut step = || {
                    taken += 1;
                    watch.taken(taken, total);
                    if watch.stop() {
                        Err(Error::failed("the experiment was stopped").with_hint(STOPPED))
                    } else {
                        Ok(())
                    }
                };
                let outcome = self.train(job, read, &mut shelf_own, &mut step).map_err(|error| of_arm(arm, error))?;
                outcomes.push((place, outcome));
            }
        }
        outcomes.sort_by_key(|(place, _)| *place);
        Ok(outcomes.into_iter().map(|(_, outcome)| outcome).collect())
    }

    /// One training, the way `Session::train` goes about it.
    fn train(&mut self, job: &Job, read: Read, own: &mut Shelf, step: &mut Stepped<'_>) -> Result<Outcome, Error> {
        let start = Instant::now();
        let private = self.design.arms[job.arm].private;
        let (promised, rest) = (self.promised(&job.spec)?, read.rest());
        let promise = self.promised[promised].promise.clone();
        let seed = job.spec.output.seed.unwrap_or(job.seed);
        let noise = if private { NoiseSource::Replay { seed } } else { NoiseSource::Off };
        let planned = prepare::with_promise(&job.spec, self.tables, promise, noise)?;
        let mut learner = planned.learner(read)?;
        if !private || planned.promise.answers.is_some() {
            learner.draw_by(seed);
        }
        let (lost, delta) = if private { self.lost(promised, &planned)? } else { (Vec::new(), planned.delta) };
        let Planned { promise: Promise { directions, answers, .. }, recipe, .. } = planned;
        if let (Some(directions), Some(asked_for)) = (&directions, &recipe.projection) {
            let sum = own.moments(asked_for.radius, || directions.sum(&learner))?;
            learner.project(&directions.try_out(sum, &learner, noise)?)?;
        }
        if answers.is_some() {
            let reported = Answers::try_out(&learner)?;
            learner.take_noisy_labels(&reported)?;
        }
        let steps = learner.plan().steps();
        while learner.taken() < steps {
            learner.step()?;
            step()?;
        }
        let score = if self.design.measure == Measured::Distance {
            distance(&learner.learned(), &self.truth(job)?)?
        } else {
            let trial = match &mut own.trial {
                Some(trial) => trial,
                none => none.insert(Trial::read(
                    self.owner,
                    self.tables,
                    &recipe,
                    job.spec.tried_on().unwrap_or_default(),
                    &rest,
                )?),
            };
            let score = trial.score(&recipe, &learner.model()?, learner.projection())?;
            match self.design.measure {
                Measured::Accuracy => score.accuracy.ok_or_else(|| {
                    asked("accuracy is for classes, and a number is predicted here", "write measure = \"loss\"")
                })?,
                Measured::Loss | Measured::Distance => score.loss,
            }
        };
        let Job { panel, arm, value, seed, .. } = *job;
        let noise = if private && answers.is_none() { learner.plan().noise() } else { 0.0 };
        let seconds = start.elapsed().as_secs_f64();
        Ok(Outcome { panel, arm, value, seed, score, seconds, steps, noise, delta, lost })
    }

    /// The place of the promise of a training.
    fn promised(&mut self, spec: &Spec) -> Result<usize, Error> {
        let declared: &Dataset =
            self.tables.warehouse().declaration().dataset(&spec.dataset).map_err(QueryError::from)?;
        // How many rows there are counts only where nobody says how many units there are.
        let shown = prepare::shown(spec, self.tables)?;
        let mut same = spec.clone();
        same.dataset.clear();
        same.output.seed = None;
        let (rows, widths) = (shown.as_ref().map(InView::units), prepare::checked(spec, self.tables)?.0.widths);
        let of = format!("{same:?} {:?} {:?} {rows:?} {widths:?}", declared.unit, declared.budgets);
        // What it costs to tell labels depends on how many rows a user has, so that each has a promise of its own.
        let own = spec.privacy.way.is_some_and(WaySpec::tells);
        if let Some(place) = self.promised.iter().position(|promised| promised.of == of && !own) {
            return Ok(place);
        }
        let promise = prepare::promise(spec, self.tables, shown.as_ref())?;
        self.promised.push(Promised { of, promise, lost: None });
        Ok(self.promised.len() - 1)
    }

    /// What a promise comes to, rung by rung and at which δ: as the card of `Session::train` would have it.
    fn lost(&mut self, promised: usize, planned: &Planned) -> Result<(Vec<RungLoss>, f64), Error> {
        let promised = &mut self.promised[promised];
        if let Some(lost) = &promised.lost {
            return Ok(lost.clone());
        }
        let rungs = RungLoss::of(&planned.promise.plan, planned.delta)
            .map_err(|error| asked(format!("this run has no price: {error}"), "draw with Poisson sampling"))?;
        Ok(promised.lost.insert((rungs, planned.delta)).clone())
    }

    /// The parameters that a distance is measured from.
    fn truth(&self, job: &Job) -> Result<Vec<f64>, Error> {
        let name = self.design.truth.as_deref().unwrap_or_default();
        let path = self.folder.join(filled(name, self.design.panel(job.panel).as_deref(), job.seed)?);
        let hint = "a truth is a JSON list of numbers, as many as the model has parameters";
        let wrong = |why: String| asked(format!("the truth `{}` cannot be read: {why}", path.display()), hint);
        let text = std::fs::read_to_string(&path).map_err(|why| wrong(why.to_string()))?;
        serde_json::from_str(&text).map_err(|why| wrong(why.to_string()))
    }
}

/// How far parameters are from the truth.
fn distance(learned: &[f32], truth: &[f64]) -> Result<f64, Error> {
    if learned.len() != truth.len() {
        return Err(asked(
            format!("the model has {} parameters, and the truth has {}", learned.len(), truth.len()),
            "leave the constant out with model = { name = \"linear\", bias = false }, or write the truth of all of them",
        ));
    }
    let apart = learned.iter().zip(truth).map(|(&a, b)| (f64::from(a) - b).powi(2));
    Ok(apart.sum::<f64>().sqrt())
}
