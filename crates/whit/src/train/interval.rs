//! Intervals around the parameters of a generalised linear model: two matrices are released at the parameters that were learned, after the last step, with a
//! charge of their own that was promised before the first.

use super::accompanying;
use super::accompanying::Budgets;
use super::meaning;
use super::reader::Reader;
use super::spec::{self, Around, Spec, asked};
use crate::Error;
use serde::Serialize;
use serde_json::Value;
use whit_account::ledger::{Question, Register};
use whit_core::release::Reservation;
use whit_core::{Charge, Kind, Ladder};
use whit_learn::loss::LossFunction;
use whit_learn::model::Named;
use whit_learn::optimise::{Rule, Schedule, Weights};
use whit_learn::scatter::Scatter;
use whit_learn::statistics::{self, AveragedDescent, Moments, Sandwich, Spread};
use whit_learn::{Plan, Trained};
use whit_query::source::learn::Checked;

/// What is released, and of which run.
#[derive(Clone)]
pub(crate) struct Intervals {
    sandwich: Sandwich,
    asked: Around,
    /// How many units there are, as was declared.
    units: f64,
    schedule: Schedule,
    /// The first step that counts in the average.
    from: u64,
    /// What each parameter belongs to.
    names: Vec<String>,
    /// Whether several units may be of one user.
    shared: bool,
    /// What is meant, in a canonical text.
    meaning: Value,
}

/// One parameter and how sure one may be of it.
#[derive(Debug, Clone, Serialize)]
pub struct Estimate {
    /// Its name: the column that it belongs to.
    pub parameter: String,
    /// What was learned.
    pub value: f64,
    /// The lower end of its interval.
    pub low: f64,
    /// The upper end.
    pub high: f64,
    /// The standard error, and what of it comes from where: shares add up in squares.
    pub standard_error: f64,
    /// What comes from there being other data.
    pub from_data: f64,
    /// What comes from drawing units.
    pub from_sampling: f64,
    /// What comes from the noise.
    pub from_noise: f64,
}

/// What an interval is about, whether the clip bites or not.
const ABOUT: &str = "the point where the mean clipped gradient vanishes";

/// What was found.
#[derive(Debug, Clone, Serialize)]
pub struct Estimates {
    /// The probability with which each interval holds.
    pub confidence: f64,
    /// What the intervals are of.
    pub about: &'static str,
    /// One by one; none where none could be had, and then a note says why.
    pub parameters: Vec<Estimate>,
    /// The share of units that the clip or the curvature's bound shortened, as it was released, and the deviation of its noise.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub shortened: Option<[f64; 2]>,
    /// Whether they were read from the ledger and cost nothing this time.
    pub stored: bool,
    /// What whoever reads them should know.
    pub notes: Vec<String>,
}

fn cannot(error: &statistics::Error) -> Error {
    asked(format!("intervals: {error}"), error.hint())
}

/// Whether the theorem is about a run like this one.
fn check(spec: &Spec, kind: Kind) -> Result<(Schedule, u64), Error> {
    let refuse = |what: &str, hint: &str| Err(asked(format!("intervals: {what}"), hint));
    match kind {
        Kind::Event | Kind::User => {}
        Kind::Element => {
            return refuse(
                "a user's elements are not independent of one another, so how far they vary says little about users",
                "protect the user or the event, or leave `intervals` out",
            );
        }
        Kind::Feature | Kind::Label => {
            return refuse(
                "they are known for learning in one part, and this unit learns in two, a private and a public one",
                "protect the user or the event, or leave `intervals` out",
            );
        }
    }
    let plain = spec.model.is_learned_as_a_whole() && matches!(spec.model.named, Named::Linear { .. });
    let one = plain && spec.loss != Some(LossFunction::Softmax);
    if !one || spec.classes.as_ref().is_some_and(|classes| classes.names().len() > 2) {
        return refuse(
            "they are for linear models of one output",
            "write model = { name = \"linear\" }, for 2 classes or a number",
        );
    }
    if spec.projection.is_some() {
        return refuse("parameters of projected rows are about no column", "leave `projection` or `intervals` out");
    }
    if !matches!(spec.privacy.way, None | Some(spec::WaySpec::Mean | spec::WaySpec::Sum)) {
        return refuse("steps are gradients there, neither truncated nor local", "leave privacy.way out");
    }
    if spec.privacy.clipping != spec::Clipped::Flat {
        return refuse("gradients that are short must stay as they are", "leave privacy.clipping out");
    }
    if spec.optimiser.rule(0.0)? != Rule::PLAIN {
        return refuse("they are for plain descent", "leave momentum, decay and adam out");
    }
    let Some(Weights::Uniform { from }) = spec.optimiser.average else {
        return refuse(
            "they are about the average of the iterates",
            "write optimiser.average = { uniform = { from = 100 } }",
        );
    };
    if !(1..=spec.privacy.steps).contains(&from) {
        return refuse(
            "the average begins at none of the steps",
            "let optimiser.average begin at step 1 or later, and not after the last",
        );
    }
    if spec.optimiser.radius.is_some() {
        return refuse("iterates that are held within a ball may lie at its border", "leave optimiser.radius out");
    }
    if spec.privacy.draw == spec::Drawn::Users && kind == Kind::Event {
        return refuse("rows of one user are drawn together, and they are known for rows", "leave privacy.draw out");
    }
    let schedule = spec.optimiser.schedule()?;
    match schedule {
        Schedule::Power { decay, .. } if decay > 0.5 && decay < 1.0 => Ok((schedule, from)),
        _ => refuse(
            "steps must become shorter, and neither too slowly nor too fast",
            "write optimiser.schedule = { power = { first = 0.5, decay = 0.6 } }, with a decay between 0.5 and 1",
        ),
    }
}

impl Intervals {
    /// For rows as a training file reads them, and the units of a ladder.
    pub(crate) fn new(
        asked_for: &Around,
        spec: &Spec,
        ladder: &Ladder,
        units: u64,
        checked: &Checked,
    ) -> Result<Self, Error> {
        let (schedule, from) = check(spec, ladder.protected().unit.kind())?;
        if !(asked_for.confidence > 0.0 && asked_for.confidence < 1.0) {
            return Err(asked(
                format!("intervals.confidence is {}, and no probability", asked_for.confidence),
                "0.95 is usual",
            ));
        }
        let features = checked.features.iter().zip(&checked.widths);
        let mut names: Vec<String> = features.flat_map(|(feature, &width)| feature.names(width)).collect();
        if let Named::Linear { bias: true } = spec.model.named {
            names.push("constant".to_owned());
        }
        let clip = spec.privacy.clip()?;
        let noise = accompanying::noise("intervals.noise", asked_for.noise)?;
        let sandwich = Sandwich::new(names.len(), asked_for.curvature, clip, noise).map_err(|error| cannot(&error))?;
        let meaning = meaning::intervals(asked_for.curvature, asked_for.noise);
        let (sandwich, units, shared) = (sandwich.on(ladder), units as f64, ladder.rungs().len() > 1);
        Ok(Self { sandwich, asked: asked_for.clone(), units, schedule, from, names, shared, meaning })
    }

    /// What they cost, rung by rung.
    pub(crate) fn charge(&self, ladder: &Ladder) -> Charge {
        accompanying::charge(&self.sandwich, ladder)
    }

    /// What they cost where they are not paid yet.
    pub(crate) fn unpaid(
        &self,
        ladder: &Ladder,
        training: &Question,
        books: &mut dyn Register,
    ) -> Result<Charge, Error> {
        accompanying::unpaid(self.charge(ladder), &self.question(training), books)
    }

    /// What is meant, as a part of what a training means.
    pub(crate) fn meaning(&self) -> &Value {
        &self.meaning
    }

    /// What is released, in words.
    pub(crate) fn words(&self) -> String {
        let Around { curvature, noise, .. } = self.asked;
        format!(
            "curvature of at most {curvature} squared a unit and gradients, at the parameters that were learned, with noise of {noise} squared bounds, and how many units were beyond these"
        )
    }

    fn question(&self, training: &Question) -> Question {
        let (meaning, names) = (meaning::of_intervals(&self.meaning, &training.meaning), self.names.join(", "));
        Question { meaning, text: format!("intervals around the parameters of {names}"), ..training.clone() }
    }

    /// The intervals, from the ledger where their matrices were released before, else released now.
    pub(crate) fn release(
        &self,
        reader: &Reader<'_>,
        trained: &Trained,
        training: &Question,
        (books, budgets): (&mut dyn Register, &Budgets),
    ) -> Result<Estimates, Error> {
        let (question, plan) = (self.question(training), reader.plan);
        let sums = |reservation: &Reservation| {
            reader.with(reservation, |learner| learner.sandwich(&self.sandwich, trained.theta()))
        };
        let decode = |bytes: &[u8]| Scatter::read(bytes).map_err(|error| error.to_string());
        let (ladder, noise) = (plan.ladder(), plan.source());
        let served =
            accompanying::release_of(&self.sandwich, (sums, decode), ladder, &question, noise, (books, budgets))?;
        let (again, reproducible) = (served.stored, served.reproducible);
        let moments = self.sandwich.moments(&served.value, self.units);
        let shortened = moments.as_ref().ok().map(|of| [of.shortened, of.shortened_noise]);
        let found = moments.and_then(|moments| self.found(plan, trained, &moments));
        let mut estimates = found.unwrap_or_else(|error| {
            let message = format!("there are no intervals: {error}; {}", error.hint());
            self.estimates(Vec::new(), vec![message])
        });
        if reproducible {
            estimates.notes.push("their noise was drawn from a seed: this protects nobody".to_owned());
        }
        Ok(Estimates { shortened, stored: again, ..estimates })
    }

    fn estimates(&self, parameters: Vec<Estimate>, notes: Vec<String>) -> Estimates {
        let confidence = self.asked.confidence;
        Estimates { confidence, about: ABOUT, parameters, shortened: None, stored: false, notes }
    }

    fn found(&self, plan: &Plan, trained: &Trained, moments: &Moments) -> Result<Estimates, statistics::Error> {
        let run = AveragedDescent {
            steps: plan.steps(),
            from: self.from,
            schedule: self.schedule,
            rate: plan.rate().to_f64(),
            expected: plan.divisor(),
            noise: plan.noise() * plan.clip().norm / plan.divisor(),
        };
        let average: Vec<f64> = trained.theta().iter().map(|&value| f64::from(value)).collect();
        let spread = Spread::of(moments, self.units, &run)?;
        // Linear models start at zero.
        let start = vec![0.0; average.len()];
        let bitten = spread.check(moments, self.sandwich.clip(), &start, &average)?;
        let pull = spread.pull(&start, &average)?;
        let intervals = spread.intervals(&average, self.asked.confidence)?;
        let mut notes = Vec::new();
        if moments.bitten() {
            notes.push(format!(
                "more units were shortened than the noise in their number explains: {ABOUT} is not where the loss is least, and where rows have heavy tails it may be \
                 far from it"
            ));
        }
        if bitten > 0 {
            notes.push(format!(
                "{bitten} of {} parameters may be off by half a standard error or more, if units that were shortened are beyond their bound by half of it: clip at a larger norm, \
                 or give intervals.noise less",
                average.len()
            ));
        }
        let pulled = pull.iter().zip(&spread.errors).filter(|(pull, error)| pull.abs() > 0.2 * error.total()).count();
        if pulled > 0 {
            notes.push(format!(
                "{pulled} of {} parameters are still on their way from where they started, by more than a fifth of a standard error: intervals miss more often than they say; take more or longer steps",
                average.len()
            ));
        }
        let unsure = spread.unsure.iter().filter(|unsure| **unsure > 0.25).count();
        if unsure > 0 {
            notes.push(format!(
                "the spread of gradients is not known well beside its own noise, for {unsure} of {} parameters: their intervals are widened for it, and may still be too narrow or too wide; \
                 clip at a smaller norm, or give intervals.noise less",
                average.len()
            ));
        }
        if self.shared {
            notes.push(
                "rows are taken as independent; where those of one user are alike, intervals are too narrow".to_owned(),
            );
        }
        let rows = self.names.iter().zip(&average).zip(intervals).zip(&spread.errors);
        let parameters = rows.map(|(((name, &value), interval), error)| Estimate {
            parameter: name.clone(),
            value,
            low: interval.low,
            high: interval.high,
            standard_error: error.total(),
            from_data: error.data,
            from_sampling: error.sampling,
            from_noise: error.noise,
        });
        Ok(self.estimates(parameters.collect(), notes))
    }
}
