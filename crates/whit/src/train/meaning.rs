//! What a training and the releases that accompany it mean: see [`whit_account::meaning`]. Whatever changes what is learned stands here, and nothing that is only called otherwise.

use super::spec::{Moves, Opened, Spec};
use crate::Error;
use serde::Serialize;
use serde_json::{Value, json};
use whit_account::meaning;
use whit_account::meaning::number;
use whit_core::Ladder;
use whit_learn::plan::{Padding, Plan, Way};
use whit_learn::{Clipping, Recipe};

/// The version of the format of all of them. Whoever changes it has what was learned paid for again.
const VERSION: u32 = 3;

fn written(value: &impl Serialize) -> Result<Value, Error> {
    serde_json::to_value(value).map_err(|why| Error::failed(why.to_string()))
}

/// Who is protected, and what coarser units have of them.
fn units(ladder: &Ladder) -> Value {
    json!({ "rungs": meaning::units(ladder.rungs()), "held": ladder.held() })
}

/// What steps promise.
fn plan(plan: &Plan) -> Result<Value, Error> {
    let clip = plan.clip();
    let how = match clip.how {
        Clipping::Flat => json!("flat"),
        Clipping::PerLayer { layers } => json!({ "layers": layers }),
        Clipping::Normalising => json!("normalising"),
    };
    Ok(json!({
        "units": units(plan.ladder()),
        "draw": written(&plan.draw())?,
        "sampling": written(&plan.sampling())?,
        "rate": plan.rate().to_string(),
        "places": plan.places(),
        "divisor": number(plan.divisor()),
        "clip": { "norm": number(clip.norm), "how": how },
        "noise": number(plan.noise()),
        "difference": number(plan.difference()),
        "steps": plan.steps(),
        "slack": number(plan.slack()),
        "labels told": plan.has_noisy_labels(),
    }))
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

/// The rows that are read, as numbers.
fn features(spec: &Spec) -> Value {
    json!({
        "columns": spec.features,
        "bits": spec.features_as == Opened::Bits,
        "scale": number(f64::from(spec.scale)),
        "offset": number(f64::from(spec.offset)),
    })
}

/// What a training is made of.
pub(super) struct Learning<'a> {
    pub(super) recipe: &'a Recipe,
    pub(super) plan: &'a Plan,
    pub(super) way: &'a Way,
    pub(super) moves: &'a Moves<'a>,
    pub(super) rows_per_unit: Option<u64>,
    pub(super) delta: f64,
    /// What is released of labels before, and of curvature afterwards.
    pub(super) accompanying: [Option<&'a Value>; 2],
}

impl Learning<'_> {
    pub(super) fn meaning(&self, spec: &Spec) -> Result<String, Error> {
        let [labels, intervals] = self.accompanying;
        let what = json!({
            "recipe": written(self.recipe)?,
            "where": spec.learned,
            "plan": plan(self.plan)?,
            "rows of a unit": self.rows_per_unit,
            "delta": number(self.delta),
            "way": way(self.way),
            "moves": written(self.moves)?,
            "seed": spec.output.seed,
            "labels": labels,
            "intervals": intervals,
        });
        Ok(meaning::of("training", VERSION, &what))
    }
}

/// Second moments, of which directions are made.
pub(super) fn second_moments(spec: &Spec, ladder: &Ladder, radius: f64, noise: f64) -> String {
    let what = json!({
        "features": features(spec),
        "where": spec.learned,
        "units": units(ladder),
        "radius": number(radius),
        "noise": number(noise),
        "seed": spec.output.seed,
    });
    meaning::of("second moments", VERSION, &what)
}

/// Noisy labels, by randomised response among these classes; the first share of them without a prior.
pub(super) fn labels(
    spec: &Spec,
    ladder: &Ladder,
    (names, epsilon, first): (&[String], &str, f64),
) -> Result<Value, Error> {
    // The prior is made by the model, so all that makes the model is meant. Without one, other models read the same labels for nothing.
    let prior = if first < 1.0 {
        let (optimiser, privacy) = (&spec.optimiser, &spec.privacy);
        let (rule, schedule) = (optimiser.rule(0.0)?, optimiser.schedule()?);
        let moves = Moves { rule: &rule, schedule: &schedule, radius: optimiser.radius, average: optimiser.average };
        json!({
            "features": features(spec),
            "model": written(&spec.model)?,
            "loss": written(&spec.loss)?,
            "moves": written(&moves)?,
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
        "where": spec.learned,
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

#[cfg(test)]
mod tests {
    use super::*;
    use whit_core::{Caps, Change, Kind, Unit};
    use whit_learn::{Count, Draft};

    /// Golden: ledgers have stored what these say, so that another text has models paid for again.
    #[test]
    fn plans_and_ways_mean_what_they_meant() {
        let ladder = Ladder::new(vec![Unit::event(Change::Replace)], Caps::default(), Kind::Event).unwrap();
        let drafted = Draft::new(ladder, "1/4".parse().unwrap(), Count::Declared(20), 1.5, 5).with_noise(2.0).unwrap();
        assert_eq!(
            meaning::text(&plan(&drafted).unwrap()),
            concat!(
                r#"{"clip":{"how":"flat","norm":1.5e0},"difference":2e0,"divisor":5e0,"draw":"unit","labels told":false,"noise":2e0,"#,
                r#""places":null,"rate":"1/4","sampling":"poisson","slack":8.7890625e-3,"steps":5,"units":{"held":[1],"rungs":[{"disjoint":false,"holds":1,"#,
                r#""unit":{"change":"replace","key":[],"kind":"event"}}]}}"#
            )
        );
        let padding = Padding::Gaussian { mean: vec![0.5], deviation: vec![2.0] };
        for (one, said) in [
            (Way::Mean, r#""mean""#),
            (Way::Local { steps: 3, size: 0.1 }, r#"{"local steps":3,"size":1e-1}"#),
            (
                Way::Feature { private: vec![1], padding, public: 1.0 },
                r#"{"padding":{"deviation":[2e0],"mean":[5e-1]},"private features":[1],"public":1e0}"#,
            ),
        ] {
            assert_eq!(meaning::text(&way(&one)), said);
        }
    }
}
