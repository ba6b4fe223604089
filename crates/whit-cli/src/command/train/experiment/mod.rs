//! `whit experiment`: training files compared over values and seeds, by whoever may look at the rows.

mod design;
mod show;

use super::keep;
use super::owner::Owner;
use super::prepare::{self, Planned, Promise, Read};
use super::slope;
use super::spec::{Spec, Way, asked};
use super::trial::Trial;
use crate::command::asked::room;
use crate::command::{Error, inputs};
use crate::number;
use crate::output::{Drawing, Progress, drawing};
use design::{Design, Job, Measured, filled, of_arm};
use show::{Found, Outcome};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Instant;
use whit::core::declare::Dataset;
use whit::learn::model::Named;
use whit::learn::release::RungLoss;
use whit::learn::scatter::Sum;
use whit::learn::train::keep_memory;
use whit::learn::{Keep, Noise, Recipe};
use whit::query::source::Tuning;
use whit::query::source::learn::InView;
use whit::query::{QueryError, Tables};

/// Compare training files over values and seeds, on data whose owner wants to know what works.
///
/// A command for the owner of the data. Each arm of the experiment is a training file of `whit train`; it is run for each value and each seed, the way `whit train`
/// runs it. For data that is public or whose owner only looks: noise comes from seeds and scores are not sanitised, so this protects nobody. Nothing is charged, and
/// no ledger is opened.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  whit experiment experiment.toml --plot figure.svg
  whit experiment experiment.toml --config out/mnist/whit.toml --seeds 1 --only DP-SGD")]
pub(crate) struct Experiment {
    /// The experiment file.
    file: PathBuf,
    /// The declaration; without it, the `whit.toml` beside the file.
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// How often each training is repeated; as the file has it without.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    seeds: Option<u64>,
    /// Run this arm alone; may be given several times.
    #[arg(long, value_name = "ARM")]
    only: Vec<String>,
    /// How many threads read the data; as many as the machine has without it.
    #[arg(long, value_name = "N", value_parser = number::elements)]
    threads: Option<u64>,
    /// The memory that rows may take, such as 512MiB; 1GiB without it.
    #[arg(long, value_name = "SIZE", value_parser = room)]
    memory: Option<u64>,
    /// Print JSON for programs, with every run, instead of tables for people.
    #[arg(long)]
    json: bool,
    /// Draw the comparison into a file that ends in .svg, .png or .html; may be given several times.
    #[arg(long, value_name = "FILE", value_parser = drawing)]
    plot: Vec<Drawing>,
}

/// All that decides which rows are read. Runs that agree in it share them.
#[derive(PartialEq)]
struct Wanted {
    recipe: Recipe,
    learned: Option<String>,
    tried: Option<String>,
}

impl Wanted {
    fn of(spec: &Spec) -> Result<Self, Error> {
        // Which model reads the rows is all the same to them.
        let recipe = Recipe { model: Named::Linear { bias: true }, projection: None, ..prepare::recipe(spec)? };
        Ok(Self { recipe, learned: spec.learned.clone(), tried: spec.evaluate_where.clone() })
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

impl Experiment {
    pub(crate) fn run(&self, out: &mut dyn Write, talk: &mut dyn Write) -> Result<(), Error> {
        keep_memory();
        let start = Instant::now();
        let design = Design::open(&self.file)?;
        let (arms, seeds) = (design.chosen(&self.only)?, self.seeds.unwrap_or(design.seeds));
        let mut jobs = design.jobs(self.file.parent().unwrap_or(Path::new("")), &arms, seeds)?;
        let config = self.config.clone().unwrap_or_else(|| Spec::beside(&self.file, Path::new("whit.toml")));
        let tuning = Tuning { memory: None, threads: self.threads.map(|threads| threads as usize) };
        let tables = Tables::open(&config, tuning)?;
        let inputs = inputs(Some(&tables));
        self.plot.iter().try_for_each(|drawing| inputs.check(drawing.path()))?;
        let folder = config.parent().unwrap_or(Path::new(""));
        let shelves = shelves(&design, &jobs)?;
        for note in check(&design, &tables, &jobs, &shelves)? {
            writeln!(talk, "note: {note}")?;
        }
        let progress = Progress::new(self.json);
        let keep = keep(&tables, self.memory);
        for note in clip(&design, &tables, &mut jobs, &keep)? {
            writeln!(talk, "note: {note}")?;
        }
        progress.start("reading rows");
        let owner = Owner::who_may_see_every_row(); // the command is the owner's as a whole, and says so
        let mut bench = Bench { design: &design, tables: &tables, folder, owner, keep, promised: Vec::new() };
        let outcomes = bench.run(&jobs, &shelves, &progress)?;
        progress.finish();
        let found = Found { design: &design, arms: &arms, seeds, outcomes, seconds: start.elapsed().as_secs_f64() };
        if self.json {
            found.write_json(out)?;
        } else {
            found.write_tables(out)?;
        }
        out.flush()?;
        writeln!(talk, "{}", found.lasted())?;
        for drawing in &self.plot {
            drawing.write_for_owner(found.picture().svg(), || found.page(), talk)?;
        }
        Ok(())
    }
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
        if design.measure != Measured::Distance && job.spec.evaluate_where.is_none() {
            let what = "no rows are set aside, and models are compared by how they do on such";
            return Err(named(asked(what, "write evaluate_where = \"…\" in the training file")));
        }
    }
    Ok(notes)
}

/// Gives label units the clip norm that `whit train` would, where none is given; returns what whoever looks should know. Trainings that differ in other things read features once.
fn clip(design: &Design, tables: &Tables, jobs: &mut [Job], keep: &Keep) -> Result<Vec<String>, Error> {
    let (mut notes, mut known): (Vec<String>, Vec<(String, Option<f64>)>) = (Vec::new(), Vec::new());
    for job in jobs {
        let arm = &design.arms[job.arm].name;
        let of = slope::decided_by(&job.spec).map_err(|error| of_arm(arm, error))?;
        let norm = if let Some((_, norm)) = known.iter().find(|(other, _)| *other == of) {
            *norm
        } else {
            let mut own = Vec::new();
            let clipped = slope::clipped(&job.spec, tables, keep, &mut own).map_err(|error| of_arm(arm, error))?;
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
    fn run(&mut self, jobs: &[Job], shelves: &[Vec<usize>], progress: &Progress) -> Result<Vec<Outcome>, Error> {
        let total: u64 = jobs.iter().map(|job| job.spec.privacy.steps).sum();
        let mut outcomes: Vec<(usize, Outcome)> = Vec::with_capacity(jobs.len());
        let mut taken = 0;
        for shelf in shelves {
            let (mut held, mut shelf_own) = (None, Shelf::default());
            for (nth, &place) in shelf.iter().enumerate() {
                let job = &jobs[place];
                let arm = &self.design.arms[job.arm].name;
                progress.say(&format!("run {} of {}: {arm}", outcomes.len() + 1, jobs.len()));
                let last = nth + 1 == shelf.len();
                let read = match held.take() {
                    Some(read) => read,
                    None => {
                        prepare::read(&job.spec, self.tables, self.keep.clone()).map_err(|error| of_arm(arm, error))?
                    }
                };
                // The last one takes the rows themselves.
                held = (!last).then(|| read.clone());
                let mut step = || {
                    taken += 1;
                    progress.set(taken, total);
                };
                let outcome = self.train(job, read, &mut shelf_own, &mut step).map_err(|error| of_arm(arm, error))?;
                outcomes.push((place, outcome));
            }
        }
        outcomes.sort_by_key(|(place, _)| *place);
        Ok(outcomes.into_iter().map(|(_, outcome)| outcome).collect())
    }

    /// One training, the way `whit train` goes about it.
    fn train(&mut self, job: &Job, read: Read, own: &mut Shelf, step: &mut dyn FnMut()) -> Result<Outcome, Error> {
        let start = Instant::now();
        let private = self.design.arms[job.arm].private;
        let (promised, rest) = (self.promised(&job.spec)?, read.rest());
        let promise = self.promised[promised].promise.clone();
        let seed = job.spec.output.seed.unwrap_or(job.seed);
        let noise = if private { Noise::Replay { seed } } else { Noise::Off };
        let planned = prepare::with_promise(&job.spec, self.tables, promise, noise)?;
        let mut learner = planned.learner(read)?;
        if !private || planned.promise.answers.is_some() {
            learner.draw_by(seed);
        }
        let (lost, delta) = if private { self.lost(promised, &planned)? } else { (Vec::new(), planned.delta) };
        let Planned { promise: Promise { directions, answers, .. }, recipe, .. } = planned;
        if let (Some(directions), Some(asked_for)) = (&directions, &recipe.projection) {
            let sum = own.moments(asked_for.radius, || directions.sum(&learner))?;
            let projection = directions.try_out(sum, &learner, noise)?;
            learner.project(projection)?;
        }
        if let Some(answers) = &answers {
            let told = answers.try_out(&learner, noise)?;
            learner.tell(&told)?;
        }
        let steps = learner.plan().steps();
        while learner.taken() < steps {
            learner.step()?;
            step();
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
                    job.spec.evaluate_where.as_deref(),
                    &rest,
                )?),
            };
            let score = trial.score(&recipe, &learner.model()?, learner.projection())?;
            match self.design.measure {
                Measured::Accuracy => score.accuracy.ok_or_else(|| {
                    asked("accuracy is for classes, and a number is told here", "write measure = \"loss\"")
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
        let (rows, widths) = (shown.as_ref().map(InView::units), prepare::widths_of(spec, self.tables)?.0);
        let of = format!("{same:?} {:?} {:?} {rows:?} {widths:?}", declared.unit, declared.budgets);
        // What it costs to tell labels depends on how many rows a user has, so that each has a promise of its own.
        let own = spec.privacy.way.is_some_and(Way::tells);
        if let Some(place) = self.promised.iter().position(|promised| promised.of == of && !own) {
            return Ok(place);
        }
        let promise = prepare::promise(spec, self.tables, shown.as_ref())?;
        self.promised.push(Promised { of, promise, lost: None });
        Ok(self.promised.len() - 1)
    }

    /// What a promise comes to, rung by rung and at which δ: as the card of `whit train` would have it.
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
