//! What a training and the releases that accompany it mean: see [`whit_account::meaning`]. Whatever changes what is learned stands here, and nothing that is only called otherwise.

use super::rows::frozen;
use super::spec::{Moves, Spec};
use crate::Error;
use serde_json::{Map, Number, Value, json};
use whit_account::meaning;
use whit_account::meaning::number;
use whit_core::feature::{Feature, FeatureEncoding};
use whit_core::{Draw, Ladder, Sampling};
use whit_learn::augment::Augmenting;
use whit_learn::loss::LossFunction;
use whit_learn::model::{Activation, Named, Stage};
use whit_learn::optimise::{Rule, Schedule, Weights};
use whit_learn::plan::{Padding, Plan, Way};
use whit_learn::{Clipping, Projecting, Recipe, Trained};
use whit_query::source::learn::Checked;

/// The version of the format of all of them. Whoever changes it has what was learned paid for again.
const VERSION: u32 = 3;

/// A number of a training file; what is none of JSON's is null, as it stands in ledgers.
fn plain(value: f64) -> Value {
    Number::from_f64(value).map_or(Value::Null, Value::Number)
}

/// Who is protected, and what coarser units have of them.
fn units(ladder: &Ladder) -> Value {
    json!({ "rungs": meaning::units(ladder.rungs()), "held": ladder.held() })
}

/// What steps promise.
fn plan(plan: &Plan) -> Value {
    let clip = plan.clip();
    let how = match clip.how {
        Clipping::Flat => json!("flat"),
        Clipping::PerLayer { layers } => json!({ "layers": layers }),
        Clipping::Normalising => json!("normalising"),
    };
    let draw = match plan.draw() {
        Draw::Unit => json!("unit"),
        Draw::User { elements } => json!({ "user": { "elements": elements } }),
    };
    let sampling = match plan.sampling() {
        Sampling::Poisson => "poisson",
        Sampling::Fixed => "fixed",
    };
    json!({
        "units": units(plan.ladder()),
        "draw": draw,
        "sampling": sampling,
        "rate": plan.rate().to_string(),
        "places": plan.places(),
        "divisor": number(plan.divisor()),
        "clip": { "norm": number(clip.norm), "how": how },
        "noise": number(plan.noise()),
        "difference": number(plan.difference()),
        "steps": plan.steps(),
        "slack": number(plan.slack()),
        "labels told": plan.has_noisy_labels(),
    })
}

/// How a unit's rows become its contribution.
fn way(way: &Way) -> Value {
    let numbers = |numbers: &[f32]| numbers.iter().map(|&value| number(f64::from(value))).collect::<Vec<_>>();
    match way {
        Way::Mean => json!("mean"),
        Way::Truncated => json!("truncated"),
        Way::Sum => json!("sum"),
        Way::Local { steps, size } => json!({ "local steps": steps, "size": number(*size) }),
        Way::Feature { private, padding, public } => {
            let padding = match padding {
                Padding::Mean(mean) => json!({ "mean": numbers(mean) }),
                Padding::Gaussian { mean, deviation } => {
                    json!({ "mean": numbers(mean), "deviation": numbers(deviation) })
                }
            };
            json!({ "private features": private, "padding": padding, "public": number(*public) })
        }
        Way::Label => json!("label"),
    }
}

/// A feature: the name of its column, where there is nothing more to say. What an expression means counts, and not how it is spelled.
fn feature(feature: &Feature, meaning: Option<&Value>) -> Value {
    let of = match meaning {
        None | Some(Value::Null) => json!(feature.of),
        Some(meaning) => json!({ "sql": meaning }),
    };
    let how = match &feature.encoding {
        FeatureEncoding::Plain if !feature.indicator => return of,
        FeatureEncoding::Plain | FeatureEncoding::BoundedWhereDeclared => json!("plain"),
        FeatureEncoding::Scaled { scale, offset } => json!({ "scale": number(*scale), "offset": number(*offset) }),
        FeatureEncoding::Bounded { range } => json!({ "bounds": range.map(|range| range.map(number)) }),
        FeatureEncoding::OneHot { keys, other } => json!({ "keys": keys, "other": other }),
        FeatureEncoding::Hashed { width } => json!({ "hashed": width }),
    };
    json!({ "of": of, "as": how, "indicator": feature.indicator })
}

/// All of them, of which some have a meaning that is not their name.
fn features(features: &[Feature], meanings: &[Value]) -> Vec<Value> {
    features.iter().enumerate().map(|(place, one)| feature(one, meanings.get(place))).collect()
}

/// What is to be predicted. Its meaning comes after those of the features.
fn target(recipe: &Recipe, meanings: &[Value]) -> Value {
    feature(&Feature::from(recipe.target.as_str()), meanings.get(recipe.features.len()))
}

/// The rows that are read, as numbers.
fn read(recipe: &Recipe, meanings: &[Value]) -> Value {
    let mut what = json!({
        "columns": features(&recipe.features, meanings),
        "bits": recipe.bits,
        "scale": number(f64::from(recipe.scale)),
        "offset": number(f64::from(recipe.offset)),
    });
    if !recipe.widths.is_empty() {
        what["widths"] = json!(recipe.widths);
    }
    what
}

/// A model, by its name.
fn model(model: &Named) -> Value {
    let between = |activation: &Activation| match activation {
        Activation::Relu => "relu",
        Activation::Gelu => "gelu",
        Activation::Tanh => "tanh",
    };
    match model {
        Named::Linear { bias } => json!({ "name": "linear", "bias": bias }),
        Named::Perceptron { hidden, activation, dropout } => json!({
            "name": "perceptron",
            "hidden": hidden,
            "activation": between(activation),
            "dropout": plain(*dropout),
        }),
        Named::Convolutional { image, stages, hidden, activation } => {
            let stage = |Stage { channels, kernel, stride, padding, pool }: &Stage| json!({ "channels": channels, "kernel": kernel, "stride": stride, "padding": padding, "pool": pool });
            json!({
                "name": "convolutional",
                "image": image,
                "stages": stages.iter().map(stage).collect::<Vec<_>>(),
                "hidden": hidden,
                "activation": between(activation),
            })
        }
    }
}

/// What a model is measured by.
fn loss(loss: LossFunction) -> Value {
    match loss {
        LossFunction::Squared => json!("squared"),
        LossFunction::Logistic => json!("logistic"),
        LossFunction::Softmax => json!("softmax"),
        LossFunction::Poisson => json!("poisson"),
        LossFunction::Huber { at } => json!({ "huber": { "at": plain(f64::from(at)) } }),
    }
}

/// How rows become what a model reads, and what comes out.
fn recipe(recipe: &Recipe, meanings: &[Value]) -> Value {
    let mut what = Map::new();
    let mut says = |name: &str, value: Value| what.insert(name.to_owned(), value);
    says("dataset", json!(recipe.dataset));
    says("features", json!(features(&recipe.features, meanings)));
    says("bits", json!(recipe.bits));
    says("scale", plain(f64::from(recipe.scale)));
    says("offset", plain(f64::from(recipe.offset)));
    says("target", target(recipe, meanings));
    says("classes", json!(recipe.classes));
    says("model", model(&recipe.model));
    says("loss", loss(recipe.loss));
    says("inputs", json!(recipe.inputs));
    says("outputs", json!(recipe.outputs));
    // These came later: where they say nothing, a training means what it meant before there were any.
    if !recipe.widths.is_empty() {
        says("widths", json!(recipe.widths));
    }
    if let Some(asked) = &recipe.projection {
        let (radius, noise) = (plain(asked.radius), plain(asked.noise));
        says("projection", json!({ "components": asked.components, "radius": radius, "noise": noise }));
    }
    Value::Object(what)
}

/// How parameters move.
fn moves(moves: &Moves<'_>) -> Value {
    let rule = match *moves.rule {
        Rule::Descent { momentum, decay } => {
            json!({ "descent": { "momentum": plain(momentum), "decay": plain(decay) } })
        }
        Rule::Adam { first, second, floor, epsilon, decay } => json!({ "adam": {
            "first": plain(first),
            "second": plain(second),
            "floor": plain(floor),
            "epsilon": plain(epsilon),
            "decay": plain(decay),
        } }),
    };
    let schedule = match *moves.schedule {
        Schedule::Constant { size } => json!({ "constant": { "size": plain(size) } }),
        Schedule::Power { first, decay } => json!({ "power": { "first": plain(first), "decay": plain(decay) } }),
        Schedule::Cosine { peak, warm_up, steps, last } => json!({ "cosine": {
            "peak": plain(peak),
            "warm_up": warm_up,
            "steps": steps,
            "last": plain(last),
        } }),
    };
    let average = moves.average.map(|weights| match weights {
        Weights::Uniform { from } => json!({ "uniform": { "from": from } }),
        Weights::Exponential { decay } => json!({ "exponential": { "decay": plain(decay) } }),
    });
    json!({ "rule": rule, "schedule": schedule, "radius": moves.radius.map(plain), "average": average })
}

/// What a training is made of.
pub(super) struct Learning<'a> {
    pub(super) recipe: &'a Recipe,
    /// Which rows are learned from, and what is read of them.
    pub(super) checked: &'a Checked,
    pub(super) plan: &'a Plan,
    pub(super) way: &'a Way,
    pub(super) moves: &'a Moves<'a>,
    pub(super) rows_per_unit: Option<u64>,
    /// How much the loss of a row of each class counts; nothing where all count the same.
    pub(super) weights: &'a [f32],
    pub(super) delta: f64,
    /// What it starts from and what of it is learned, where it is not as the model's name says.
    pub(super) start: Option<&'a Value>,
    /// What is released of labels before, and of curvature afterwards.
    pub(super) accompanying: [Option<&'a Value>; 2],
}

impl Learning<'_> {
    pub(super) fn meaning(&self, spec: &Spec) -> String {
        let [labels, intervals] = self.accompanying;
        let mut what = json!({
            "recipe": recipe(self.recipe, &self.checked.meanings),
            "where": self.checked.condition,
            "plan": plan(self.plan),
            "rows of a unit": self.rows_per_unit,
            "delta": number(self.delta),
            "way": way(self.way),
            "moves": moves(self.moves),
            "seed": spec.output.seed,
            "labels": labels,
            "intervals": intervals,
        });
        // It came later: where it says nothing, a training means what it meant before.
        if !self.weights.is_empty() {
            what["weights"] = json!(self.weights.iter().map(|&weight| number(f64::from(weight))).collect::<Vec<_>>());
        }
        if let Some(start) = self.start {
            what["start"] = start.clone();
        }
        if let Some(Augmenting { copies, flip, crop }) = spec.augment {
            what["augment"] = json!({ "copies": copies, "flip": flip, "crop": crop });
        }
        meaning::of("training", VERSION, &what)
    }
}

/// The version of second moments, which once did not say all that decides which rows are summed, so that one training was given the directions of another.
const VERSION_OF_MOMENTS: u32 = 4;

/// Second moments, of which directions are made. A row is left out where its target does not fit, or its unit has too many, so these are meant too; the model is not, so that
/// others have the same directions for nothing.
pub(super) fn second_moments(
    (spec, checked): (&Spec, &Checked),
    recipe: &Recipe,
    (ladder, rows_per_unit): (&Ladder, Option<u64>),
    asked: &Projecting,
) -> String {
    let what = json!({
        "dataset": recipe.dataset,
        "features": read(recipe, &checked.meanings),
        "target": target(recipe, &checked.meanings),
        "classes": recipe.classes,
        "loss": loss(recipe.loss),
        "rows of a unit": rows_per_unit,
        "where": checked.condition,
        "units": units(ladder),
        "radius": number(asked.radius),
        "noise": number(asked.noise),
        "seed": spec.output.seed,
    });
    meaning::of("second moments", VERSION_OF_MOMENTS, &what)
}

/// Noisy labels, by randomised response among these classes; the first share of them without a prior.
pub(super) fn labels(
    (spec, checked): (&Spec, &Checked),
    ladder: &Ladder,
    (names, epsilon, first): (&[String], &str, f64),
) -> Result<Value, Error> {
    // The prior is made by the model, so all that makes the model is meant. Without one, other models read the same labels for nothing.
    let prior = if first < 1.0 {
        let (optimiser, privacy) = (&spec.optimiser, &spec.privacy);
        let (rule, schedule) = (optimiser.rule(0.0)?, optimiser.schedule()?);
        let by = Moves { rule: &rule, schedule: &schedule, radius: optimiser.radius, average: optimiser.average };
        json!({
            "features": read(&Recipe { widths: spec.widths.clone(), ..frozen(spec, checked)? }, &checked.meanings),
            "model": model(&spec.model.named),
            "loss": spec.loss.map(loss),
            "moves": moves(&by),
            "units": privacy.units,
            "batch": privacy.batch,
            "rate": privacy.rate,
            "steps": privacy.steps,
        })
    } else {
        Value::Null
    };
    Ok(json!({
        "target": spec.target,
        "classes": names,
        "epsilon": epsilon,
        "first": number(first),
        "where": checked.condition,
        "units": units(ladder),
        "seed": spec.output.seed,
        "prior": prior,
    }))
}

/// The same as a question of its own.
pub(super) fn of_labels(labels: &Value) -> String {
    meaning::of("labels", VERSION, labels)
}

/// Curvature, gradients and how many were shortened.
pub(super) fn intervals(curvature: f64, noise: f64) -> Value {
    json!({ "curvature": number(curvature), "noise": number(noise) })
}

/// The same as a question of its own, at what a training learned.
pub(super) fn of_intervals(intervals: &Value, training: &str) -> String {
    meaning::of("intervals", VERSION, &json!({ "of": intervals, "training": training }))
}

/// Which classes a model takes for which, on rows that were set aside. The model has its recipe among what is hashed.
pub(super) fn evaluation(
    trained: &Trained,
    checked: &Checked,
    (ladder, rows_per_unit): (&Ladder, u64),
    deviation: f64,
) -> String {
    let what = json!({
        "model": trained.hash(),
        "where": checked.condition,
        "units": units(ladder),
        "rows of a unit": rows_per_unit,
        "noise": number(deviation),
    });
    meaning::of("evaluation", 1, &what)
}

#[cfg(test)]
mod tests;
