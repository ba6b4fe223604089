//! From a training file and a declaration to a plan, and from rows to a learner.
//!
//! [`plan`] reads nothing that is private: all that can be wrong with a training is found there, before anything is charged, and follows from the training file,
//! the declaration and schemas, and where a label or features are the unit from columns that are public under it: how many rows there are and whose, and for labels
//! how long rows of features are. [`Planned::learner`] comes after the charge, and nothing that is in a row can make it fail.

use super::accompanying;
use super::features::ScaleSpec;
use super::interval::Intervals;
use super::label_clip;
use super::meaning::Learning;
use super::network::StartingModel;
use super::project::Directions;
use super::respond::Answers;
use super::rows::{Read, declared, frozen, in_view, learning, nothing, recipe, rows_per_unit, unprotected};
use super::spec::{self, Moves, Spec, asked};
use crate::Error;
use whit_account::ledger::{Question, Register};
use whit_core::declare::{Dataset, UnitDeclaration, UserKey};
use whit_core::feature::FeatureEncoding;
use whit_core::{Charge, Draw, Kind, Sampling};
use whit_learn::augment::Augmenting;
use whit_learn::custom::Model as _;
use whit_learn::model::{Named, Network};
use whit_learn::optimise::{Average, Optimiser};
use whit_learn::params::Layout;
use whit_learn::source::{Cut, Places};
use whit_learn::train::{Learner, Padding, Parts, Tuning, Way};
use whit_learn::{Card, Clip, Clipping, Count, Draft, Drawn, Keep, LearnError, NoiseSource, Plan, Recipe, Rows};
use whit_noise::{Entropy, Os, Ratio, Replay};
use whit_query::Tables;
use whit_query::source::learn::{Checked, InView};

/// What gradients are clipped at where nothing has to be bounded: none is that long.
pub(crate) const UNCLIPPED: f64 = 1e4;

/// All that is known of a run before a private row is read.
pub(crate) struct Planned {
    pub(crate) promise: Promise,
    pub(crate) recipe: Recipe,
    pub(crate) noise: NoiseSource,
    pub(crate) delta: f64,
    /// What is meant, in a canonical text.
    pub(crate) meaning: String,
    /// What whoever trains should know.
    pub(crate) notes: Vec<String>,
    /// The model, where it starts.
    model: StartingModel,
    parameters: usize,
    /// The promise's plan, with the way of a unit and the source of noise.
    plan: Plan,
    optimiser: Optimiser,
    average: Option<Average>,
    /// The most rows of one unit.
    rows_per_unit: Option<u64>,
    /// How much the loss of a row of each class counts.
    weights: Vec<f32>,
    /// How images of this shape are seen.
    augmenting: Option<(Augmenting, [usize; 3])>,
}

impl Planned {
    /// What is promised for the steps.
    pub(crate) fn steps(&self) -> &Plan {
        &self.plan
    }

    /// What the model will say of itself.
    pub(crate) fn card(&self) -> Result<Card, Error> {
        let card = Card::of(self.steps(), self.delta, &self.recipe, self.parameters)
            .map_err(|error| asked(format!("this run has no price: {error}"), "draw with Poisson sampling"))?;
        let labels = self.promise.answers.as_ref().map(Answers::words);
        let intervals = self.promise.intervals.as_ref().map(Intervals::words);
        Ok(Card { labels, intervals, start: self.model.words.clone(), ..card })
    }

    /// What steps and the releases that accompany them cost together, as far as it is not paid: what must fit before any is charged.
    pub(crate) fn unpaid(&self, training: &Question, books: &mut dyn Register) -> Result<Charge, Error> {
        let (plan, promise) = (self.steps(), &self.promise);
        let mut charges = Vec::new();
        if let Some(directions) = &promise.directions {
            charges.push(directions.unpaid(plan.ladder(), training, books)?);
        }
        if let Some(answers) = &promise.answers {
            charges.push(answers.unpaid(training, books)?);
        }
        charges.push(plan.charge());
        if let Some(intervals) = &promise.intervals {
            charges.push(intervals.unpaid(plan.ladder(), training, books)?);
        }
        Ok(accompanying::exposed(accompanying::together(charges), self.noise))
    }

    /// Rows that were read, cut to the caps, and to so many places where there are no more.
    pub(crate) fn cut(&self, read: Read, places: Option<Places>) -> Rows {
        let cut = Cut {
            ladder: self.plan.ladder(),
            rows_per_unit: self.rows_per_unit,
            places,
            contents: read.contents.as_deref(),
            key: Cut::key_of(&self.recipe.dataset),
        };
        read.rows.bounded(&cut)
    }

    /// A learner that stands at its start, of rows that were read. They are cut to the caps, whoever has more.
    pub(crate) fn learner(&self, read: Read) -> Result<Learner<Network>, Error> {
        let plan = self.steps().clone();
        let places = plan.places().map(|places| match plan.draw() {
            Draw::Unit => Places::Units(places),
            Draw::User { .. } => Places::Users(places),
        });
        let rows = self.cut(read, places);
        let parts = Parts {
            model: self.model.network.clone(),
            plan,
            loss: self.recipe.loss,
            rows,
            optimiser: self.optimiser.clone(),
            average: self.average.clone(),
            tuning: Tuning::default(),
        };
        let learner = Learner::without(parts, &self.model.frozen)?.weighing(self.weights.clone())?;
        Ok(match self.augmenting {
            Some((how, image)) => {
                learner.augmenting(how, image).map_err(|error| asked(error.to_string(), error.hint()))?
            }
            None => learner,
        })
    }
}

/// How rows are seen, where they are images.
fn augmenting(spec: &Spec) -> Result<Option<(Augmenting, [usize; 3])>, Error> {
    match (spec.augment, &spec.model.named) {
        (None, _) => Ok(None),
        (Some(_), _) if spec.projection.is_some() => {
            Err(asked("`augment` is for images, and `projection` makes other numbers of them", "leave one of them out"))
        }
        (Some(how), Named::Convolutional { image, .. }) => Ok(Some((how, *image))),
        (Some(_), Named::Linear { .. } | Named::Perceptron { .. }) => Err(asked(
            "`augment` mirrors and moves images, and this model reads numbers without a shape",
            "write model = { name = \"convolutional\", image = [1, 28, 28] }, or leave it out",
        )),
    }
}

/// Which features a unit hides, as places of numbers: those that read a column which is not public.
fn private_places(checked: &Checked, public: &[String]) -> Vec<usize> {
    let mut start = 0;
    let mut places = Vec::new();
    for (reads, &width) in checked.reads.iter().zip(&checked.widths) {
        if !reads.iter().all(|name| public.contains(name)) {
            places.extend(start..start + width);
        }
        start += width;
    }
    places
}

/// How a unit's rows become its contribution.
fn way(spec: &Spec, dataset: &Dataset, kind: Kind, checked: &Checked) -> Result<Way, Error> {
    let privacy = &spec.privacy;
    let unit = dataset.unit.as_ref();
    let public = unit.map_or(&[][..], |unit| &unit.public);
    if !matches!(kind, Kind::Feature) && privacy.padding.is_some() {
        return Err(asked("privacy.padding is for feature units", "leave it out, or protect `feature` in whit.toml"));
    }
    let noisy_labels = kind == Kind::Label && privacy.way.is_some_and(spec::WaySpec::tells);
    if matches!(kind, Kind::Feature | Kind::Label) && privacy.way.is_some() && !noisy_labels {
        return Err(asked(
            format!("privacy.way does not apply where the unit is a {kind}: what is public goes a way of its own"),
            "leave it out; where the unit is a label, \"response\" tells all labels before the first step",
        ));
    }
    match kind {
        Kind::Event | Kind::Element | Kind::User => Ok(match privacy.way {
            None | Some(spec::WaySpec::Mean | spec::WaySpec::Response | spec::WaySpec::TwoStages { .. }) => Way::Mean,
            Some(spec::WaySpec::Truncated) => Way::Truncated,
            Some(spec::WaySpec::Sum) => Way::Sum,
            Some(spec::WaySpec::Local { steps, size }) if steps > 0 && size > 0.0 && size.is_finite() => {
                Way::Local { steps, size }
            }
            Some(spec::WaySpec::Local { .. }) => {
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
            Ok(if noisy_labels { Way::Mean } else { Way::Label })
        }
        Kind::Feature => {
            if !checked.target_reads.iter().all(|name| public.contains(name)) {
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
            let private = private_places(checked, public);
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

/// How many units there are: as was declared, or, where rows stay in view, as many as there are.
fn units_of(spec: &Spec, dataset: &Dataset, kind: Kind, shown: Option<&InView>) -> Result<Count, Error> {
    match (spec.privacy.units, shown) {
        (Some(units), _) => Ok(Count::Declared(units)),
        (None, Some(shown)) if in_view(kind) => Ok(Count::Counted(shown.units() as u64)),
        (None, _) => Err(asked(
            format!(
                "nothing says how many units of `{}` there are, and that they are counted would tell",
                dataset.name
            ),
            "declare about how many, without looking: privacy.units = 60000; it need not be exact",
        )),
    }
}

/// The plan: what is promised.
fn promised(
    spec: &Spec,
    dataset: &Dataset,
    checked: &Checked,
    shown: Option<&InView>,
    delta: f64,
) -> Result<Promise, Error> {
    let privacy = &spec.privacy;
    let Some(unit) = &dataset.unit else { return Err(unprotected(&dataset.name)) };
    let ladder = unit.ladder().map_err(|error| asked(error.to_string(), error.hint()))?;
    let units = units_of(spec, dataset, unit.protect, shown)?;
    let rate: Ratio = match (privacy.batch, &privacy.rate) {
        (Some(0), None) => {
            return Err(asked(
                "privacy.batch is 0: no step would draw anybody",
                "give the number of units in a step, such as batch = 100",
            ));
        }
        (Some(batch), None) if batch > units.get() => {
            return Err(asked(
                format!("privacy.batch is {batch}, and there are {} units to draw from", units.get()),
                "give a smaller batch, or privacy.units as many as there are",
            ));
        }
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
        spec::Clipped::PerLayer => Clipping::PerLayer { layers: spec.model.layers() },
        spec::Clipped::Normalising => Clipping::Normalising,
    };
    let rows = rows_per_unit(unit);
    let directions = spec.projection.as_ref().map(|asked| Directions::new(asked, spec, (&ladder, rows), checked));
    let directions = directions.transpose()?;
    let around = spec.intervals.as_ref();
    let answers = Answers::new(spec, &ladder, (shown, checked))?;
    let intervals = around.map(|asked| Intervals::new(asked, spec, &ladder, units.get(), checked)).transpose()?;
    // Gradients of noisy labels need no bound: none is as long as this one.
    let norm = if answers.is_some() { privacy.clip.unwrap_or(UNCLIPPED) } else { privacy.clip()? };
    let of_directions = directions.as_ref().map(|directions| directions.charge(&ladder));
    let of_intervals = intervals.as_ref().map(|intervals| intervals.charge(&ladder));
    let draft = Draft {
        accompanying: accompanying::together(of_directions.into_iter().chain(of_intervals)),
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
    if let Some(epsilon) = privacy.epsilon.filter(|epsilon| !(*epsilon > 0.0 && epsilon.is_finite())) {
        return Err(asked(
            format!("privacy.epsilon is {epsilon}, and it must be a finite number above 0"),
            "write epsilon = 1.0",
        ));
    }
    let planned = match (&answers, privacy.epsilon, privacy.noise) {
        (Some(answers), ..) => answers.plan(draft, shown),
        (None, Some(epsilon), None) => draft.for_target(whit_account::calibrate::Target { epsilon, delta }),
        (None, None, Some(noise)) => draft.with_noise(noise),
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

/// The δ at which ε is stated: the file's, or the least of the budgets.
pub(crate) fn delta_of(spec: &Spec, dataset: &Dataset) -> Result<f64, Error> {
    let budgets = dataset.budgets.iter().map(|budget| budget.delta).filter(|&delta| delta > 0.0);
    let delta = spec.privacy.delta.or_else(|| budgets.reduce(f64::min));
    if spec.privacy.way.is_some_and(spec::WaySpec::tells) && delta.unwrap_or(0.0) == 0.0 {
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
fn check_columns(spec: &Spec, dataset: &Dataset, kind: Kind, checked: &Checked) -> Result<Vec<String>, Error> {
    let mut private = checked.private.clone();
    let unit = dataset.unit.as_ref();
    let label = unit.and_then(|unit| unit.label.clone());
    if kind == Kind::Label {
        private.retain(|name| Some(name) == label.as_ref());
        if let Some(label) = label.filter(|label| checked.reads.iter().any(|reads| reads.contains(label))) {
            return Err(asked(
                format!("the label `{label}` is among the features"),
                "take it out: it is what is protected",
            ));
        }
    }
    let features = &checked.features;
    let again = features.iter().enumerate().find(|(place, feature)| features[..*place].contains(feature));
    if let Some((_, again)) = again {
        return Err(asked(
            format!("`{again}` is twice among the features"),
            "name each column once, in any case of letters",
        ));
    }
    if features.iter().any(|feature| feature.of == spec.target) {
        return Err(asked(format!("the target `{}` is among the features", spec.target), "take it out"));
    }
    let mut notes: Vec<String> = unscaled(spec, checked).into_iter().collect();
    if private.is_empty() {
        return Ok(notes);
    }
    let names = private.join(", ");
    if matches!(kind, Kind::Feature | Kind::Label) {
        return Err(asked(
            format!("`where` reads {names}, which is private, so which rows there are would not be public any more"),
            "choose rows by public columns only",
        ));
    }
    notes.push(format!(
        "`where` reads {names}, which may change with a unit: it looks at one row at a time, so the price is the same"
    ));
    Ok(notes)
}

/// Which numbers stay as they are where all are to be scaled by their bounds.
fn unscaled(spec: &Spec, checked: &Checked) -> Option<String> {
    let plain = checked.features.iter().filter(|feature| feature.encoding == FeatureEncoding::Plain);
    let names: Vec<&str> = plain.map(|feature| feature.of.as_str()).collect();
    (spec.scale == ScaleSpec::Bounds && !names.is_empty()).then(|| {
        format!("scale = \"bounds\" leaves {} as is: no bounds are declared for what stands there", names.join(", "))
    })
}

/// What is promised, and what is released before the steps and after them.
#[derive(Clone)]
pub(crate) struct Promise {
    pub(crate) plan: Plan,
    pub(crate) directions: Option<Directions>,
    pub(crate) answers: Option<Answers>,
    pub(crate) intervals: Option<Intervals>,
}

/// What is known of the rows before one is read, and what whoever trains should know; or why what is to be read cannot be.
pub(crate) fn checked(spec: &Spec, tables: &Tables) -> Result<(Checked, Vec<String>), Error> {
    let (dataset, unit) = declared(spec, tables)?;
    let recipe = recipe(spec)?;
    let checked = tables.check_learning(&learning(&recipe, spec, unit))?;
    let notes = check_columns(spec, dataset, unit.protect, &checked)?;
    delta_of(spec, dataset)?;
    Ok((checked, notes))
}

/// Whether what is to be read can be; returns what whoever trains should know. Reads no row.
pub(crate) fn check(spec: &Spec, tables: &Tables) -> Result<Vec<String>, Error> {
    Ok(checked(spec, tables)?.1)
}

/// How many rows there are and whose, where that is public and somebody has to know: it reads public columns alone, and none where `privacy.units` says enough.
pub(crate) fn shown(spec: &Spec, tables: &Tables) -> Result<Option<InView>, Error> {
    let (_, unit) = declared(spec, tables)?;
    let noisy_labels = spec.privacy.way.is_some_and(spec::WaySpec::tells);
    if !in_view(unit.protect) || spec.privacy.units.is_some() && !noisy_labels {
        return Ok(None);
    }
    check(spec, tables)?; // a filter of private columns is refused before it is run
    let chosen = spec.learned_from();
    Ok(Some(tables.in_view_for_learning(&spec.dataset, chosen.filter, chosen.part)?))
}

/// What is promised. Reads no row; what is public of them was [`shown`].
pub(crate) fn promise(spec: &Spec, tables: &Tables, shown: Option<&InView>) -> Result<Promise, Error> {
    let (dataset, _) = declared(spec, tables)?;
    let (checked, _) = checked(spec, tables)?;
    promised(spec, dataset, &checked, shown, delta_of(spec, dataset)?)
}

/// Refuses a data set whose questions are paid for elsewhere: a user has one budget.
pub(crate) fn check_own_budget(dataset: &Dataset, unit: &UnitDeclaration) -> Result<(), Error> {
    let Some(UserKey::Through { other_table, .. }) = &unit.user else { return Ok(()) };
    Err(asked(
        format!(
            "`{}` pays from the budget of `{other_table}`, where its users are, and trainings are for data sets with a budget of their own",
            dataset.name
        ),
        format!("join the two where they are written, or learn from `{other_table}`"),
    ))
}

/// Plans a run, with secret noise or what the file says instead. Nothing private is read; public features lie where rows may, for as long as it takes.
pub(crate) fn plan(spec: &Spec, tables: &Tables, keep: &Keep) -> Result<Planned, Error> {
    let (dataset, unit) = declared(spec, tables)?;
    check_own_budget(dataset, unit)?;
    let mut notes = check(spec, tables)?;
    let spec = &*label_clip::clipped(spec, tables, keep, &mut notes)?;
    let noise = match spec.output.seed {
        None => NoiseSource::Secret { threads: 1 },
        Some(seed) => {
            notes.push("the noise comes from a seed: this model will protect nobody, and costs everything".to_owned());
            NoiseSource::Replay { seed }
        }
    };
    let promise = promise(spec, tables, shown(spec, tables)?.as_ref())?;
    Ok(Planned { notes, ..with_promise(spec, tables, promise, noise)? })
}

/// All else that a run needs, of what is promised.
pub(crate) fn with_promise(
    spec: &Spec,
    tables: &Tables,
    promise: Promise,
    noise: NoiseSource,
) -> Result<Planned, Error> {
    let (dataset, unit) = declared(spec, tables)?;
    let delta = delta_of(spec, dataset)?;
    let (checked, _) = checked(spec, tables)?;
    let recipe = frozen(spec, &checked)?;
    let way = way(spec, dataset, unit.protect, &checked)?;
    let mut start: Box<dyn Entropy> = match spec.output.seed {
        None => Box::new(Os),
        Some(seed) => Box::new(Replay::new(seed)),
    };
    let model = spec.model.build(&recipe, &mut *start)?;
    // The meaning of a prior for labels says nothing of where its model starts.
    let prior = spec.privacy.way.and_then(spec::WaySpec::first).is_some_and(|first| first < 1.0);
    if prior && !spec.model.is_plain() {
        return Err(asked(
            "two stages of labels learn their prior by the model as it is named, and this one starts elsewhere or is learned in part",
            "write way = \"response\", or leave model.start, model.frozen and model.lora out",
        ));
    }
    let learned = Layout::without(&model.network, &model.frozen).0.len();
    let parameters = Layout::of(&model.network.clone().merged()).0.len();
    let plan = &promise.plan;
    let deviation = if plan.has_noisy_labels() { 0.0 } else { plan.noise() * plan.clip().norm / plan.divisor() };
    let (rule, schedule) = (spec.optimiser.rule(deviation)?, spec.optimiser.schedule()?);
    let radius = spec.optimiser.radius;
    let optimiser = Optimiser::new(rule, schedule, radius, learned).map_err(LearnError::from)?;
    let weights = spec.optimiser.average;
    let average = weights.map(|weights| Average::new(weights, learned)).transpose().map_err(LearnError::from)?;
    let moves = Moves { rule: &rule, schedule: &schedule, radius, average: weights };
    let rows_per_unit = rows_per_unit(unit);
    let weights = spec.class_weights(recipe.classes.as_deref(), unit.protect)?;
    let learning = Learning {
        weights: &weights,
        recipe: &recipe,
        checked: &checked,
        plan,
        way: &way,
        moves: &moves,
        rows_per_unit,
        delta,
        start: model.meaning.as_ref(),
        accompanying: [
            promise.answers.as_ref().map(Answers::meaning),
            promise.intervals.as_ref().map(Intervals::meaning),
        ],
    };
    let meaning = learning.meaning(spec);
    let plan = plan.clone().stepping(way).map_err(LearnError::from)?.drawing(noise);
    // What a learner would refuse whatever the rows are is refused now, by one of no rows.
    let planned = Planned {
        promise,
        recipe,
        noise,
        delta,
        meaning,
        notes: Vec::new(),
        model,
        parameters,
        plan,
        optimiser,
        average,
        rows_per_unit,
        weights,
        augmenting: augmenting(spec)?,
    };
    planned.learner(nothing(&planned.recipe, unit)?)?;
    Ok(planned)
}
