//! How well a model does, released with noise: which classes it takes for which on rows that were set aside, counted, and paid for once.

use super::accompanying::{self, Budgets};
use super::evaluate::{load, of_training};
use super::measure::{classes_of, likeliest};
use super::rows::{self, declared, gather, of_units, rows_of, targets};
use super::spec::asked;
use super::trial::network;
use super::{Training, keep, meaning, prepare};
use crate::Error;
use crate::state::SessionState;
use serde::Serialize;
use std::path::PathBuf;
use whit_account::ledger::Question;
use whit_account::normal::gaussian_sigma_up;
use whit_core::declare::{Dataset, UnitDeclaration};
use whit_core::mechanism::additive::Law;
use whit_core::release::Reservation;
use whit_core::{Kind, Ladder};
use whit_learn::confusion::{Confusion, Counts};
use whit_learn::loss::LossFunction;
use whit_learn::scatter::Scatter;
use whit_learn::source::Cut;
use whit_learn::train::{Tuning, predict};
use whit_learn::{LearnError, NoiseSource, Recipe};
use whit_noise::Ratio;

/// How sure intervals are.
const CONFIDENCE: f64 = 0.95;

/// A model whose quality is to be released.
#[derive(Debug, Clone)]
pub struct PrivateEvaluation<'a> {
    /// The training that made it.
    pub training: &'a Training,
    /// Its file, where it is not the one that the training names.
    pub model: Option<PathBuf>,
    /// The ε that the protected unit may lose.
    pub epsilon: f64,
    /// The δ at which it holds; that of the training where absent.
    pub delta: Option<f64>,
    /// The memory that rows may take.
    pub memory: Option<u64>,
}

/// A number with noise, and what it is within.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct AccuracyRange {
    /// The best guess.
    pub value: f64,
    /// Not below this,
    pub low: f64,
    /// nor above this.
    pub high: f64,
}

/// How a model does, as everybody may know it.
#[derive(Debug, Clone, Serialize)]
pub struct Judged {
    /// The file of the model.
    pub model: PathBuf,
    /// The names of the classes.
    pub classes: Vec<String>,
    /// How many rows of each class (outer) were taken for each (inner), with noise: a cell may be below 0.
    pub confusion: Vec<Vec<i64>>,
    /// Each cell is within this of the rows that were counted.
    pub within: f64,
    /// The share that is predicted right of the rows that were counted; nothing where noise leaves nothing to divide.
    pub accuracy: Option<AccuracyRange>,
    /// How sure the two before are, each by itself.
    pub confidence: f64,
    /// The noise of each cell, in words.
    pub noise: String,
    /// The most rows of one unit that were counted.
    pub rows_per_unit: u64,
    /// What is protected.
    pub unit: String,
    /// The ε that it loses, at most
    pub epsilon: f64,
    /// at this δ.
    pub delta: f64,
    /// Its entry in the ledger.
    pub entry: u64,
    /// Whether it was there already, and cost nothing this time.
    pub stored: bool,
    /// What whoever reads it should know.
    #[serde(skip)]
    pub notes: Vec<String>,
}

/// The share that is right, of counts with noise. Those on the diagonal and those off it have noises of their own: where both sums are within what they exceed with half of the chance each, the share is
/// between those of their ends, since it grows with the one and falls with the other.
fn accuracy(cells: &[i64], classes: usize, sigma: f64) -> Option<AccuracyRange> {
    let sum = |diagonal: bool| {
        let own = cells.iter().enumerate().filter(|(place, _)| (place % (classes + 1) == 0) == diagonal);
        let (sum, many) = own.fold((0.0, 0.0), |(sum, many), (_, &cell)| (sum + cell as f64, many + 1.0_f64));
        (sum, off(sigma, many))
    };
    let ((right, off_right), (wrong, off_wrong)) = (sum(true), sum(false));
    let share = |right: f64, wrong: f64| {
        let (right, wrong) = (right.max(0.0), wrong.max(0.0));
        (right + wrong > 0.0).then(|| right / (right + wrong))
    };
    let value = share(right, wrong)?;
    let low = share(right - off_right, wrong + off_wrong).unwrap_or(0.0);
    let high = share(right + off_right, wrong - off_wrong).unwrap_or(1.0);
    Some(AccuracyRange { value, low, high })
}

/// What the noise of a sum of so many cells exceeds with half of the chance that is left: a sum of reals of deviation σ, each of which was rounded by at most a half.
fn off(sigma: f64, many: f64) -> f64 {
    let law = Ratio::from_f64_up(sigma * many.sqrt()).ok().and_then(|sigma| Law::rounded(sigma).ok());
    law.map_or(f64::INFINITY, |law| law.exceeded((1.0 - CONFIDENCE) / 2.0) + 0.5 + many / 2.0)
}

/// How many classes a model tells apart.
fn told_apart(recipe: &Recipe) -> Result<usize, Error> {
    match recipe.loss {
        LossFunction::Softmax => Ok(recipe.outputs),
        LossFunction::Logistic => Ok(2),
        LossFunction::Squared | LossFunction::Huber { .. } | LossFunction::Poisson => Err(asked(
            "a number is predicted, and what is released is which classes are taken for which",
            "the owner of the data sees its loss: `request.owner`",
        )),
    }
}

/// The most rows of one unit that are counted.
fn counted_of(dataset: &Dataset, unit: &UnitDeclaration) -> Result<u64, Error> {
    match unit.protect {
        Kind::Event => Ok(1),
        Kind::Element | Kind::User => rows::rows_per_unit(unit).ok_or_else(|| {
            asked(
                format!(
                    "a {} of `{}` may have any number of rows, and all of them would be counted",
                    unit.protect, dataset.name
                ),
                "declare the most in whit.toml: unit.caps = { rows_per_user = 10 }, or rows_per_element",
            )
        }),
        Kind::Feature | Kind::Label => Err(asked(
            format!("where the unit is a {}, how well a model does is not released", unit.protect),
            "the owner of the data sees it: `request.owner`",
        )),
    }
}

/// The mechanism that keeps a promise for the protected unit of a ladder, and the deviation of its noise.
fn noisy((classes, rows): (usize, u64), ladder: &Ladder, epsilon: f64, delta: f64) -> Result<(Confusion, f64), Error> {
    if !(epsilon > 0.0 && epsilon.is_finite() && delta > 0.0 && delta < 1.0) {
        return Err(asked(
            format!("counts are released at ε = {epsilon} and δ = {delta}, and there is no such promise"),
            "give an ε above 0, and a δ between 0 and 1, such as 1e-6",
        ));
    }
    let none = |why: String| asked(format!("there is no noise for ε = {epsilon}: {why}"), "give a larger ε");
    let sigma = gaussian_sigma_up(epsilon, delta, Confusion::moved(rows, ladder));
    let sigma = Ratio::from_f64_up(sigma).map_err(|error| none(error.to_string()))?;
    let deviation = sigma.to_f64_up();
    let confusion = Confusion::new(classes, rows, sigma).map_err(|error| none(error.to_string()))?;
    Ok((confusion.on(ladder), deviation))
}

/// Releases how a model does on rows that were set aside; from the ledger where it was released before.
pub(crate) fn judge(state: &mut SessionState, asked_for: &PrivateEvaluation<'_>) -> Result<Judged, Error> {
    let training = asked_for.training.spelled(&state.tables);
    let spec = &training.spec;
    state.books_if_any()?;
    let tables = &state.tables;
    let (dataset, unit) = declared(spec, tables)?;
    let (dataset, unit) = (&dataset.clone(), &unit.clone()); // the ledger and the tables are of one state
    prepare::check_own_budget(dataset, unit)?;
    let path = asked_for.model.clone().unwrap_or_else(|| training.model());
    let mut notes = Vec::new();
    let trained = load(&path, &mut notes)?;
    of_training(tables, spec, &trained, &path)?;
    let recipe = &trained.recipe;
    let chosen = spec.tried_on().ok_or_else(|| {
        asked(
            "no rows are set aside, and a model that is tried on what it learned from says nothing of others",
            "write evaluate_where = \"…\", or split = { by = \"user\", test = 0.2 }",
        )
    })?;
    let classes = told_apart(recipe)?;
    let rows_per_unit = counted_of(dataset, unit)?;
    let ladder = unit.ladder().map_err(|error| asked(error.to_string(), error.hint()))?;
    let delta = asked_for.delta.map_or_else(|| prepare::delta_of(spec, dataset), Ok)?;
    let (confusion, deviation) = noisy((classes, rows_per_unit), &ladder, asked_for.epsilon, delta)?;
    let reading = of_units(recipe, spec, unit, chosen);
    let checked = tables.check_learning(&reading)?;
    let model = network(&trained)?;
    let mut question = Question {
        dataset: spec.dataset.clone(),
        analyst: state.analyst.clone(),
        meaning: meaning::evaluation(&trained, &checked, (&ladder, rows_per_unit), deviation),
        text: format!("which classes of {} are taken for which, by {}", spec.target, path.display()),
        fingerprint: String::new(),
        partition: tables.partition(&spec.dataset).map(str::to_owned),
    };
    let (tables, mut books) = state.charging()?;
    let keep = keep(tables, asked_for.memory);
    keep.check().map_err(LearnError::from)?;
    let (fingerprint, stamps) = tables.fingerprint_for_learning(&spec.dataset, &mut books)?;
    question.fingerprint = fingerprint;
    state.log_change();
    let (tables, mut books) = state.charging()?;
    let budgets = Budgets { list: tables.budgets(&spec.dataset)?, given_up: false };
    let count = || -> Result<Counts, Error> {
        let (features, mut numbers) = gather(tables, recipe, &reading, &keep)?;
        stamps.check()?;
        // One row at a time: what a row is taken for must not depend on its neighbours, nor by rounding.
        let alone = Tuning { rows_at_once: 1, ..Tuning::default() };
        let outputs = predict(&model, &features, trained.projection.as_ref(), alone)?;
        let taken: Vec<usize> = outputs.chunks_exact(recipe.outputs).map(|z| likeliest(z, recipe.loss)).collect();
        let targets = targets(recipe, std::mem::take(&mut numbers.targets));
        let own = classes_of(&targets, recipe.loss).unwrap_or_default();
        let cut = Cut {
            ladder: &ladder,
            rows_per_unit: rows::rows_per_unit(unit),
            places: None,
            contents: numbers.contents.as_deref(),
            key: Cut::key_of(&recipe.dataset),
        };
        let rows = rows_of(unit, features, &numbers, targets)?.bounded(&cut);
        Ok(confusion.count(&rows, &own, &taken, &ladder)?)
    };
    let exact =
        |_: &Reservation| count().map_err(|error| LearnError::file(error.words(), "nothing of the rows was released"));
    let decode = |bytes: &[u8]| Scatter::read(bytes).map_err(|error| error.to_string());
    let noise = NoiseSource::Secret { threads: 1 };
    let served =
        accompanying::release_of(&confusion, (exact, decode), &ladder, &question, noise, (&mut books, &budgets))?;
    let cells = served.value;
    let names = recipe.classes.clone().unwrap_or_else(|| (0..classes).map(|class| class.to_string()).collect());
    Ok(Judged {
        model: path,
        classes: names,
        confusion: cells.chunks(classes).map(<[i64]>::to_vec).collect(),
        within: confusion.law().within(CONFIDENCE),
        accuracy: accuracy(&cells, classes, deviation),
        confidence: CONFIDENCE,
        noise: confusion.law().words(1.0),
        rows_per_unit,
        unit: ladder.protected().unit.to_string(),
        epsilon: asked_for.epsilon,
        delta,
        entry: served.entry,
        stored: served.stored,
        notes,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use whit_noise::{Entropy, Os, RoundedGaussian};

    #[test]
    fn without_noise_the_share_is_what_it_is() {
        let found = accuracy(&[80, 10, 5, 5], 2, 1e-9).unwrap();
        assert!((found.value - 0.85).abs() < 1e-12);
        assert!(found.low <= 0.85 && found.high >= 0.85 && found.high - found.low < 0.1, "{found:?}");
        assert_eq!(accuracy(&[-3, 0, -2, 0], 2, 5.0), None, "where noise leaves nothing to divide");
    }

    /// Of 2,000 releases with secret noise, an interval that held one time in twenty less than it says would be caught; this one holds more often, since two chances are added.
    #[test]
    fn intervals_cover_the_share_as_often_as_they_say() {
        let law = RoundedGaussian::new(Ratio::from(12_u64)).unwrap();
        let (exact, runs) = ([300_i64, 40, 60, 200], 2000);
        let covered = (0..runs).filter(|_| {
            let draw = || law.draw(&mut Os as &mut dyn Entropy).unwrap();
            let noisy = exact.map(|cell| cell + draw());
            let found = accuracy(&noisy, 2, 12.0).unwrap();
            (found.low..=found.high).contains(&(500.0 / 600.0))
        });
        let share = covered.count() as f64 / f64::from(runs);
        assert!(share > 0.935, "{share}");
    }
}
