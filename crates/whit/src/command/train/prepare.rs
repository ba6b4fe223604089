//! From a training file and a data set to a learner: everything that can be wrong is found here, before anything is charged.

use super::beside;
use super::interval::Intervals;
use super::project::Directions;
use super::respond::Answers;
use super::slope;
use super::spec::{self, Moves, Spec, asked};
use crate::command::Error;
use whit::account::ledger::{Books, Question};
use whit::core::declare::Dataset;
use whit::core::{Charge, Kind, Sampling};
use whit::learn::loss::{Loss, Targets};
use whit::learn::model::{Named, Network};
use whit::learn::optimise::{Average, Optimiser};
use whit::learn::params::Layout;
use whit::learn::plan::check_scale;
use whit::learn::store::Builder;
use whit::learn::train::{Learner, Padding, Parts, Tuning, Way};
use whit::learn::{
    Card, Clip, Clipping, Count, Draft, Drawn, Keep, LearnError, Noise, Owners, Plan, Recipe, Rows, Store,
};
use whit::noise::{Entropy, Os, Ratio, Replay};
use whit::query::source::learn::{Block, Numbers, Reading};
use whit::query::{Fault, QueryError, Tables};

impl From<LearnError> for Error {
    fn from(error: LearnError) -> Self {
        let hint = error.hint();
        match error {
            LearnError::File(_) | LearnError::Sanitise(_) | LearnError::NotANumber(_) => {
                Self::Failed(format!("{error}\n  hint: {hint}"))
            }
            LearnError::Store(ref why) if why.is_of_the_disk() => Self::Failed(format!("{error}\n  hint: {hint}")),
            other => Self::Asked { sentence: other.to_string(), hint },
        }
    }
}

/// What gradients are clipped at where nothing has to be bounded: none is that long.
pub(super) const UNCLIPPED: f64 = 1e4;

/// A learner that stands at its start, and what is said of it.
pub(super) struct Prepared {
    pub(super) learner: Learner<Network>,
    /// What rows are to be projected on before the first step.
    pub(super) directions: Option<Directions>,
    /// How labels are told before it.
    pub(super) answers: Option<Answers>,
    /// What is released after the last one.
    pub(super) intervals: Option<Intervals>,
    pub(super) recipe: Recipe,
    pub(super) noise: Noise,
    pub(super) delta: f64,
    /// What is meant, in a canonical text.
    pub(super) meaning: String,
    /// What whoever trains should know.
    pub(super) notes: Vec<String>,
    /// Where further rows may lie.
    pub(super) rest: Keep,
}

impl Prepared {
    /// What the model will say of itself, learned from data with this fingerprint.
    pub(super) fn card(&self, fingerprint: &str) -> Result<Card, Error> {
        let (plan, parameters) = (self.learner.plan(), self.learner.layout().len());
        let card = Card::of(plan, self.delta, &self.recipe, fingerprint, parameters, self.noise)
            .map_err(|error| asked(format!("this run has no price: {error}"), "draw with Poisson sampling"))?;
        let labels = self.answers.as_ref().map(Answers::words);
        Ok(Card { labels, intervals: self.intervals.as_ref().map(Intervals::words), ..card })
    }

    /// What steps and releases beside them cost together, as far as it is not paid: what must fit before any is charged.
    pub(super) fn unpaid(&self, training: &Question, books: &mut Books) -> Result<Charge, Error> {
        let plan = self.learner.plan();
        let mut charges = Vec::new();
        if let Some(directions) = &self.directions {
            charges.push(directions.unpaid(plan.ladder(), training, books)?);
        }
        if let Some(answers) = &self.answers {
            charges.push(answers.unpaid(training, books)?);
        }
        charges.push(plan.charge());
        if let Some(intervals) = &self.intervals {
            charges.push(intervals.unpaid(plan.ladder(), training, books)?);
        }
        Ok(beside::together(charges))
    }
}

/// What is read of a data set for a recipe.
pub(super) fn reading<'a>(recipe: &'a Recipe, filter: Option<&'a str>, told: bool, owners: bool) -> Reading<'a> {
    Reading {
        dataset: &recipe.dataset,
        features: &recipe.features,
        bits: recipe.bits,
        target: told.then_some(recipe.target.as_str()),
        classes: recipe.classes.as_deref(),
        filter,
        owners,
    }
}

/// Reads rows, of which the features go where they may lie, scaled as the recipe has it.
pub(super) fn gather(
    tables: &Tables,
    recipe: &Recipe,
    reading: &Reading<'_>,
    keep: &Keep,
) -> Result<(Store, Numbers), Error> {
    let mut store: Option<Builder> = None;
    let mut take = |width: usize, block: Block<'_>| {
        let store = match &mut store {
            Some(store) => store,
            none => none.insert(Builder::new(width, keep.clone())?.scaled(recipe.scale, recipe.offset)),
        };
        match block {
            Block::Bytes(values) => store.push_bytes(values),
            Block::Floats(values) => store.push_floats(values),
        }
    };
    let mut sink = |width: usize, block: Block<'_>| {
        take(width, block).map_err(|error| {
            let fault = if error.is_of_the_disk() { Fault::Failed } else { Fault::Asked };
            QueryError { fault, sentence: error.to_string(), hint: Some(error.hint().to_owned()) }
        })
    };
    let numbers = tables.rows_for_learning(reading, &mut sink)?;
    let store = match store {
        Some(store) => store.finish(),
        None => Store::of(Vec::new(), 1).map_err(LearnError::from)?,
    };
    Ok((store, numbers))
}

/// What rows are measured against.
pub(super) fn targets(recipe: &Recipe, values: Vec<f32>) -> Result<Targets, Error> {
    if let Some(classes) = &recipe.classes {
        let fits = |value: &f32| value.fract() == 0.0 && (0.0..classes.len() as f32).contains(value);
        if !values.iter().all(fits) {
            return Err(asked(
                format!(
                    "`{}.{}` has a label out of range: there are {} classes, 0 to {}",
                    recipe.dataset,
                    recipe.target,
                    classes.len(),
                    classes.len() - 1
                ),
                "set `classes` to how many there are, or leave rows out with `where`",
            ));
        }
    }
    Ok(match recipe.loss {
        Loss::Softmax => Targets::Classes {
            labels: values.iter().map(|&value| value as u32).collect(),
            classes: recipe.classes.as_ref().map_or(0, Vec::len) as u32,
        },
        _ => Targets::Numbers { values, width: 1 },
    })
}

/// What a training file says of rows and model, before any row is read.
pub(super) fn recipe(spec: &Spec) -> Result<Recipe, Error> {
    let classes = spec.classes.as_ref().map(spec::Classes::names);
    let many = classes.as_ref().map(Vec::len);
    if many.is_some_and(|many| many < 2) {
        return Err(asked("there are fewer than 2 classes", "leave `classes` out to tell a number"));
    }
    let loss = spec.loss.unwrap_or(match many {
        None => Loss::Squared,
        Some(2) => Loss::Logistic,
        Some(_) => Loss::Softmax,
    });
    let outputs = match (loss, many) {
        (Loss::Softmax, None) => {
            return Err(asked("softmax tells classes apart, and none are named", "write classes = 10"));
        }
        (Loss::Softmax, Some(many)) => many,
        (Loss::Logistic, Some(many)) if many > 2 => {
            return Err(asked(
                format!("logistic tells 2 classes apart, and there are {many}"),
                "write loss = \"softmax\"",
            ));
        }
        _ => 1,
    };
    check_scale(spec.scale, spec.offset).map_err(|error| asked(error.to_string(), error.hint()))?;
    Ok(Recipe {
        dataset: spec.dataset.clone(),
        features: spec.features.clone(),
        bits: spec.features_as == spec::Opened::Bits,
        scale: spec.scale,
        offset: spec.offset,
        target: spec.target.clone(),
        classes,
        model: spec.model.clone(),
        loss,
        projection: spec.projection.clone(),
        inputs: 0,
        outputs,
    })
}

/// How many layers have parameters.
fn layers(model: &Named) -> u32 {
    let many = match model {
        Named::Linear { .. } => 1,
        Named::Perceptron { hidden, .. } => hidden.len() + 1,
        Named::Convolutional { stages, hidden, .. } => stages.len() + hidden.len() + 1,
    };
    many as u32
}

/// Which features a unit hides, as places of numbers.
fn private_places(spec: &Spec, public: &[String], widths: &[usize]) -> Vec<usize> {
    let mut start = 0;
    let mut places = Vec::new();
    for (name, &width) in spec.features.iter().zip(widths) {
        if !public.contains(name) {
            places.extend(start..start + width);
        }
        start += width;
    }
    places
}

/// How a unit's rows become its contribution.
fn way(spec: &Spec, dataset: &Dataset, kind: Kind, widths: &[usize]) -> Result<Way, Error> {
    let privacy = &spec.privacy;
    let unit = dataset.unit.as_ref();
    let public = unit.map_or(&[][..], |unit| &unit.public);
    if !matches!(kind, Kind::Feature) && privacy.padding.is_some() {
        return Err(asked("privacy.padding is for feature units", "leave it out, or protect `feature` in whit.toml"));
    }
    let told = kind == Kind::Label && privacy.way.is_some_and(spec::Way::tells);
    if matches!(kind, Kind::Feature | Kind::Label) && privacy.way.is_some() && !told {
        return Err(asked(
            format!("privacy.way does not apply where the unit is a {kind}: what is public goes a way of its own"),
            "leave it out; where the unit is a label, \"response\" tells all labels before the first step",
        ));
    }
    match kind {
        Kind::Event | Kind::Element | Kind::User => Ok(match privacy.way {
            None | Some(spec::Way::Mean | spec::Way::Response | spec::Way::TwoStages { .. }) => Way::Mean,
            Some(spec::Way::Truncated) => Way::Truncated,
            Some(spec::Way::Sum) => Way::Sum,
            Some(spec::Way::Local { steps, size }) if steps > 0 && size > 0.0 && size.is_finite() => {
                Way::Local { steps, size }
            }
            Some(spec::Way::Local { .. }) => {
                return Err(asked(
                    "local steps need a number and a size greater than 0",
                    "write way = { local = { steps = 5, size = 0.1 } }",
                ));
            }
        }),
        Kind::Label => {
            let label = unit.and_then(|unit| unit.label.as_deref()).unwrap_or_default();
            if spec.target != label {
                return Err(asked(
                    format!("the unit protects the label `{label}`, and the target is `{}`", spec.target),
                    format!("write target = \"{label}\", or protect another unit in whit.toml"),
                ));
            }
            Ok(if told { Way::Mean } else { Way::Label })
        }
        Kind::Feature => {
            if !public.contains(&spec.target) {
                return Err(asked(
                    format!(
                        "the target `{}` is not public, and the public part of a gradient would read it",
                        spec.target
                    ),
                    format!(
                        "add it to unit.public of `{}` if everybody may know it, or protect another unit",
                        spec.dataset
                    ),
                ));
            }
            let private = private_places(spec, public, widths);
            if private.is_empty() {
                return Err(asked(
                    "all features are public, so there is nothing to protect",
                    "take some out of unit.public, or train without whit",
                ));
            }
            let many = private.len();
            let spread = |given: &[f32]| match given {
                [one] => vec![*one; many],
                all => all.to_vec(),
            };
            let padding = match &privacy.padding {
                None => {
                    return Err(asked(
                        format!("{many} features are private, and nothing says what stands in their place"),
                        "state numbers that you can defend without looking: padding = { mean = [0.0] }",
                    ));
                }
                Some(spec::Padding::Mean(mean)) => Padding::Mean(spread(mean)),
                Some(spec::Padding::Gaussian { mean, deviation }) => {
                    Padding::Gaussian { mean: spread(mean), deviation: spread(deviation) }
                }
            };
            Ok(Way::Feature { private, padding, public: privacy.public })
        }
    }
}

/// Rows brought together by unit, within the caps.
fn rows_of(dataset: &Dataset, kind: Kind, features: Store, numbers: Numbers, targets: Targets) -> Result<Rows, Error> {
    let Some(unit) = &dataset.unit else { return Err(unprotected(&dataset.name)) };
    let caps = unit.caps();
    let Numbers { users, elements, .. } = numbers;
    // The features or labels of one user's rows move together.
    let keyed = unit.user.is_some() && matches!(kind, Kind::Feature | Kind::Label);
    let together = if keyed { Kind::User } else { kind };
    let owners = Owners { users: users.as_deref(), elements: elements.as_deref() };
    let rows = Rows::new(features, targets, together, owners)?;
    Ok(match kind {
        Kind::Element => caps.rows_per_element.into_iter().fold(rows, Rows::capped),
        Kind::User => unit.caps.rows_per_user.into_iter().fold(rows, Rows::capped),
        Kind::Event | Kind::Feature | Kind::Label => rows,
    })
}

fn unprotected(dataset: &str) -> Error {
    asked(format!("`{dataset}` is public, so there is nothing to protect"), "declare its unit in whit.toml")
}

/// The plan: what is promised.
fn plan(spec: &Spec, dataset: &Dataset, kind: Kind, read: &Read, delta: f64) -> Result<Promise, Error> {
    let privacy = &spec.privacy;
    let Some(unit) = &dataset.unit else { return Err(unprotected(&dataset.name)) };
    let ladder = unit.ladder().map_err(|error| asked(error.to_string(), error.hint()))?;
    let units = match (privacy.units, kind) {
        (Some(units), _) => Count::Declared(units),
        (None, Kind::Feature | Kind::Label) => Count::Counted(read.units() as u64),
        (None, Kind::Event | Kind::Element | Kind::User) => {
            return Err(asked(
                format!(
                    "nothing says how many units of `{}` there are, and that they are counted would tell",
                    dataset.name
                ),
                "declare about how many, without looking: privacy.units = 60000; it need not be exact",
            ));
        }
    };
    let rate: Ratio = match (privacy.batch, &privacy.rate) {
        (Some(batch), None) => Ratio::new(u128::from(batch), u128::from(units.get().max(1))).map_err(|error| {
            asked(format!("privacy.batch cannot be: {error}"), "give the number of units in a step")
        })?,
        (None, Some(rate)) => rate
            .parse()
            .map_err(|_| asked(format!("privacy.rate is `{rate}`, and no fraction"), "write rate = \"1/100\""))?,
        _ => {
            return Err(asked(
                "privacy needs one of `batch` and `rate`",
                "write batch = 500 for 500 units in a step on average",
            ));
        }
    };
    let how = match privacy.clipping {
        spec::Clipped::Flat => Clipping::Flat,
        spec::Clipped::PerLayer => Clipping::PerLayer { layers: layers(&spec.model) },
        spec::Clipped::Normalising => Clipping::Normalising,
    };
    let directions =
        spec.projection.as_ref().map(|asked| Directions::new(asked, spec, &ladder, read.width())).transpose()?;
    let around = spec.intervals.as_ref();
    let answers = Answers::new(spec, &ladder, &read.rows)?;
    let intervals = around.map(|asked| Intervals::new(asked, spec, &ladder, units.get(), &read.widths)).transpose()?;
    // Gradients of labels that were told need no bound: none is as long as this one.
    let norm = if answers.is_some() { privacy.clip.unwrap_or(UNCLIPPED) } else { privacy.clip()? };
    let of_directions = directions.as_ref().map(|directions| directions.charge(&ladder));
    let of_intervals = intervals.as_ref().map(|intervals| intervals.charge(&ladder));
    let draft = Draft {
        beside: beside::together(of_directions.into_iter().chain(of_intervals)),
        drawn: match privacy.draw {
            spec::Drawn::Units => Drawn::Units,
            spec::Drawn::Users => Drawn::Users,
        },
        sampling: match privacy.sampling {
            spec::Sampled::Poisson => Sampling::Poisson,
            spec::Sampled::Fixed => Sampling::Fixed,
        },
        users: privacy.users,
        clip: Clip { norm, how },
        ..Draft::new(ladder, rate, units, norm, privacy.steps)
    };
    let planned = match (privacy.epsilon, privacy.noise) {
        _ if answers.is_some() => draft.after_labels(answers.as_ref().map_or_else(Charge::new, Answers::charge)),
        (Some(epsilon), None) => draft.for_target(whit::account::calibrate::Target { epsilon, delta }),
        (None, Some(noise)) => draft.with_noise(noise),
        _ => {
            return Err(asked(
                "privacy needs one of `epsilon` and `noise`",
                "write epsilon = 1.0, and the noise is found that keeps it",
            ));
        }
    };
    let plan = planned.map_err(|error| asked(error.to_string(), error.hint()))?;
    Ok(Promise { plan, directions, answers, intervals })
}

/// The δ at which ε is told: the file's, or the least of the budgets.
fn delta_of(spec: &Spec, dataset: &Dataset) -> Result<f64, Error> {
    let budgets = dataset.budgets.iter().map(|budget| budget.delta).filter(|&delta| delta > 0.0);
    let delta = spec.privacy.delta.or_else(|| budgets.reduce(f64::min));
    if spec.privacy.way.is_some_and(spec::Way::tells) && delta.unwrap_or(0.0) == 0.0 {
        return Ok(0.0); // randomised response has no δ
    }
    let delta =
        delta.ok_or_else(|| asked("nothing says at which δ the promise holds", "write privacy.delta = 1e-6"))?;
    if !(delta > 0.0 && delta < 1.0) {
        return Err(asked(format!("privacy.delta is {delta}, but it must be between 0 and 1"), "1e-6 is usual"));
    }
    Ok(delta)
}

/// Whether the columns of `where` and of the features can stand there.
fn check_columns(spec: &Spec, dataset: &Dataset, kind: Kind, mut private: Vec<String>) -> Result<Vec<String>, Error> {
    let unit = dataset.unit.as_ref();
    let label = unit.and_then(|unit| unit.label.clone());
    if kind == Kind::Label {
        private.retain(|name| Some(name) == label.as_ref());
        if let Some(label) = label.filter(|label| spec.features.contains(label)) {
            return Err(asked(
                format!("the label `{label}` is among the features"),
                "take it out: it is what is protected",
            ));
        }
    }
    if spec.features.contains(&spec.target) {
        return Err(asked(format!("the target `{}` is among the features", spec.target), "take it out"));
    }
    if private.is_empty() {
        return Ok(Vec::new());
    }
    let names = private.join(", ");
    if matches!(kind, Kind::Feature | Kind::Label) {
        return Err(asked(
            format!("`where` reads {names}, which is private, so which rows there are would not be public any more"),
            "choose rows by public columns only",
        ));
    }
    Ok(vec![format!(
        "`where` reads {names}, which may change with a unit: it looks at one row at a time, so the price is the same"
    )])
}

/// Rows as a run needs them. Runs that read the same may share them.
#[derive(Clone)]
pub(super) struct Read {
    rows: Rows,
    /// How many numbers a row has.
    width: usize,
    /// How many of them each column has.
    widths: Vec<usize>,
    /// Where further rows may lie.
    rest: Keep,
}

impl Read {
    /// How many units have rows. As private as the rows.
    pub(super) fn units(&self) -> usize {
        self.rows.units()
    }

    /// How many numbers a row has.
    pub(super) fn width(&self) -> usize {
        self.width
    }

    /// Where further rows may lie.
    pub(super) fn rest(&self) -> Keep {
        self.rest.clone()
    }
}

/// What is promised, and what is released before the steps and after them.
#[derive(Clone)]
pub(super) struct Promise {
    pub(super) plan: Plan,
    pub(super) directions: Option<Directions>,
    pub(super) answers: Option<Answers>,
    pub(super) intervals: Option<Intervals>,
}

fn declared<'a>(spec: &Spec, tables: &'a Tables) -> Result<(&'a Dataset, Kind), Error> {
    let dataset = tables.warehouse().declaration().dataset(&spec.dataset).map_err(whit::query::QueryError::from)?;
    let unit = dataset.unit.as_ref().ok_or_else(|| unprotected(&dataset.name))?;
    Ok((dataset, unit.protect))
}

/// Whether what is to be read can be; returns what whoever trains should know. Reads no row.
pub(super) fn check(spec: &Spec, tables: &Tables) -> Result<Vec<String>, Error> {
    let (dataset, kind) = declared(spec, tables)?;
    let recipe = recipe(spec)?;
    let filtered = tables.check_learning(&reading(&recipe, spec.learned.as_deref(), true, true))?;
    let notes = check_columns(spec, dataset, kind, filtered.private)?;
    delta_of(spec, dataset)?;
    Ok(notes)
}

/// Reads the rows.
pub(super) fn read(spec: &Spec, tables: &Tables, keep: Keep) -> Result<Read, Error> {
    let (dataset, kind) = declared(spec, tables)?;
    let recipe = recipe(spec)?;
    let reading = reading(&recipe, spec.learned.as_deref(), true, true);
    let (features, mut numbers) = gather(tables, &recipe, &reading, &keep)?;
    if numbers.rows == 0 {
        return Err(asked(format!("no row of `{}` is to be learned from", spec.dataset), "check `where`"));
    }
    let (width, widths) = (numbers.width, std::mem::take(&mut numbers.widths));
    let targets = targets(&recipe, std::mem::take(&mut numbers.targets))?;
    let rows = rows_of(dataset, kind, features, numbers, targets)?;
    let rest = Keep { memory: keep.memory.saturating_sub(rows.memory()), ..keep };
    Ok(Read { rows, width, widths, rest })
}

/// What is promised to the units that were read.
pub(super) fn promise(spec: &Spec, tables: &Tables, read: &Read) -> Result<Promise, Error> {
    let (dataset, kind) = declared(spec, tables)?;
    plan(spec, dataset, kind, read, delta_of(spec, dataset)?)
}

/// Reads the rows and makes all that a run needs.
pub(super) fn prepare(spec: &Spec, tables: &Tables, keep: Keep) -> Result<Prepared, Error> {
    let mut notes = check(spec, tables)?;
    let spec = &*slope::clipped(spec, tables, &mut notes)?;
    let noise = match spec.output.seed {
        None => Noise::Secret { threads: 1 },
        Some(seed) => {
            notes.push("the noise comes from a seed: this model will protect nobody".to_owned());
            Noise::Replay { seed }
        }
    };
    let read = read(spec, tables, keep)?;
    let promise = promise(spec, tables, &read)?;
    Ok(Prepared { notes, ..assemble(spec, tables, read, promise, noise)? })
}

/// Makes a learner of what was read and what is promised.
pub(super) fn assemble(
    spec: &Spec,
    tables: &Tables,
    read: Read,
    Promise { plan, directions, answers, intervals }: Promise,
    noise: Noise,
) -> Result<Prepared, Error> {
    let (dataset, kind) = declared(spec, tables)?;
    let delta = delta_of(spec, dataset)?;
    let mut recipe = recipe(spec)?;
    let Read { rows, width, widths, rest } = read;
    recipe.inputs = width;
    let way = way(spec, dataset, kind, &widths)?;
    let mut start: Box<dyn Entropy> = match spec.output.seed {
        None => Box::new(Os),
        Some(seed) => Box::new(Replay::new(seed)),
    };
    let model = recipe.model.build(recipe.read(), recipe.outputs, &mut *start)?;
    let parameters = Layout::of(&model).0.len();
    // Whose labels were told is learned from without noise.
    let (off, heard) = (plan.told(), if plan.told() { Noise::Off } else { noise });
    let deviation = if off { 0.0 } else { plan.noise() * plan.clip().norm / plan.divisor() };
    let (rule, schedule) = (spec.optimiser.rule(deviation)?, spec.optimiser.schedule()?);
    let radius = spec.optimiser.radius;
    let optimiser = Optimiser::new(rule, schedule, radius, parameters).map_err(LearnError::from)?;
    let weights = spec.optimiser.average;
    let average = weights.map(|weights| Average::new(weights, parameters)).transpose().map_err(LearnError::from)?;
    let moves = Moves { rule: &rule, schedule: &schedule, radius, average: weights };
    let text = |value: serde_json::Result<String>| value.map_err(|why| Error::Failed(why.to_string()));
    let told = answers.as_ref().map_or("", Answers::meaning);
    let around = intervals.as_ref().map_or("", Intervals::meaning);
    let meaning = format!(
        "learn 1\n{}\nwhere {:?}\n{plan:?}\nδ {delta:?}\n{way:?}\n{}\nseed {:?}\n{told}{around}",
        text(serde_json::to_string(&recipe))?,
        spec.learned,
        text(serde_json::to_string(&moves))?,
        spec.output.seed
    );
    let parts = Parts {
        model,
        plan,
        loss: recipe.loss,
        way,
        rows,
        optimiser,
        average,
        noise: heard,
        tuning: Tuning::default(),
    };
    let learner = Learner::new(parts)?;
    Ok(Prepared { learner, directions, answers, intervals, recipe, noise, delta, meaning, notes: Vec::new(), rest })
}
