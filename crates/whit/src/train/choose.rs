//! A choice among trainings, at its true price: planned as a whole, reserved as a whole, and the best model written.
//!
//! How many trainings there are is drawn, and nobody is told: the price holds for whoever does not know it. The clock would tell, so it is for the owner to ask.

use super::accompanying;
use super::prepare::{self, Planned};
use super::rows::{self, Read};
use super::run::{self, Learned, Outcome, Prospect, Request};
use super::spec::{Choosing, RunsLaw, Spec, asked, merge};
use super::{Training, Watch, keep};
use crate::Error;
use crate::error::{ErrorKind, Reason, of_ledger};
use crate::state::SessionState;
use serde_json::{Value, json};
use whit_account::ledger::{Question, Register};
use whit_account::meaning::{self, number};
use whit_account::{Name, epsilon};
use whit_core::mechanism::SanitiseError;
use whit_core::mechanism::best::{BestOf, RunCount};
use whit_core::release::Reservation;
use whit_core::{Charge, Cost, Sealed};
use whit_learn::choice::{Candidate, Choice, Scoring};
use whit_learn::model::Network;
use whit_learn::train::Learner;
use whit_learn::{Keep, LearnError, NoiseSource, Plan, Rows, Trained};
use whit_noise::{Entropy, Ratio};
use whit_query::Tables;

/// The version of what a choice means.
const VERSION: u32 = 1;

/// The tables and keys that candidates may differ in: all read the same rows, and keep to the same units.
const MAY_DIFFER: [(&str, &[&str]); 3] =
    [("model", &[]), ("optimiser", &[]), ("privacy", &["clip", "clipping", "batch", "rate", "steps", "way", "noise"])];

/// Rows to learn from, and rows to score by.
struct Given {
    read: Read,
    aside: Rows,
}

/// A choice that is planned, of which no private row was read.
struct Chosen {
    choice: Choice,
    planned: Vec<Planned>,
    /// The file's own training, with the rows that are set aside in the place of those that are learned from.
    aside: Spec,
    question: Question,
}

fn unfit(what: &str, hint: &str) -> Error {
    asked(format!("choose is for trainings of one release, and {what}"), hint)
}

/// What cannot be chosen among is refused, by the training file alone.
fn check(spec: &Spec, choosing: &Choosing) -> Result<(), Error> {
    if spec.projection.is_some() {
        return Err(unfit("`projection` is another", "leave one of them out"));
    }
    if spec.intervals.is_some() {
        return Err(unfit("`intervals` are another", "leave one of them out"));
    }
    if spec.privacy.way.is_some_and(super::spec::WaySpec::tells) {
        return Err(unfit(
            "noisy labels are another, which cost nothing more however many models learn from them",
            "leave `choose` out",
        ));
    }
    if spec.output.seed.is_some() {
        return Err(asked("choose is for secret noise, and output.seed makes it come again", "leave one of them out"));
    }
    if spec.split.is_some() {
        return Err(asked(
            "choose scores models on the rows of evaluate_where, and `split` sets rows aside by a hash",
            "write `where` and `evaluate_where` in its place",
        ));
    }
    if spec.evaluate_where.is_none() {
        return Err(asked(
            "there are no rows to choose by",
            "write evaluate_where = \"…\": models are scored on these",
        ));
    }
    if choosing.among.is_empty() {
        return Err(asked(
            "choose.among is empty",
            "write among = [{ optimiser = { size = 0.5 } }, { optimiser = { size = 2.0 } }]",
        ));
    }
    if !(choosing.runs > 1.0 && choosing.runs <= 1e4) {
        return Err(asked(
            format!("choose.runs is {}: expected more than 1 training on average, and at most 10,000", choosing.runs),
            "write runs = 5.0; the file's own training alone needs no `choose`",
        ));
    }
    Ok(())
}

/// The file of each candidate: the training file, with what the candidate sets written over it.
fn candidates(training: &Training, choosing: &Choosing) -> Result<Vec<Training>, Error> {
    let one = |(nth, set): (usize, &toml::Table)| {
        let at = format!("choose.among, the {}. candidate", nth + 1);
        for (key, value) in set {
            let inner = MAY_DIFFER.iter().find(|(table, _)| *table == key.as_str()).map(|(_, inner)| *inner);
            let other = match (inner, value) {
                (None, _) => Some(key.clone()),
                (Some(known), toml::Value::Table(table)) if !known.is_empty() => {
                    table.keys().find(|key| !known.contains(&key.as_str())).map(|inner| format!("{key}.{inner}"))
                }
                (Some(_), _) => None,
            };
            if let Some(other) = other {
                return Err(asked(
                    format!("`{other}` cannot differ among candidates: all of them read the same rows, for the same units"),
                    "they may differ in model, optimiser, and in privacy.clip, clipping, batch, rate, steps, way and noise",
                )
                .at(at));
            }
        }
        let mut table = training.spec.raw.clone();
        table.remove("choose");
        merge(&mut table, set);
        let spec = Spec::of_table(table).map_err(|error| error.at(at))?.beside(&training.path);
        Ok(Training { path: training.path.clone(), spec })
    };
    choosing.among.iter().enumerate().map(one).collect()
}

/// The law of the number of runs that has this mean.
fn best_of(choosing: &Choosing) -> Result<BestOf, Error> {
    let wrong = |error: &dyn std::fmt::Display| asked(format!("choose.runs cannot be: {error}"), "write runs = 5.0");
    let count = match choosing.law {
        RunsLaw::Geometric => {
            RunCount::Geometric { stop: Ratio::from_f64_up(1.0 / choosing.runs).map_err(|error| wrong(&error))? }
        }
        RunsLaw::Logarithmic => {
            // (e^x − 1)/x grows with x.
            let (mut low, mut high) = (0.0_f64, 40.0_f64);
            for _ in 0..80 {
                let middle = f64::midpoint(low, high);
                if middle.exp_m1() / middle < choosing.runs { low = middle } else { high = middle }
            }
            let steps = (high * f64::from(1 << 20)).round().max(1.0) as u128;
            RunCount::Logarithmic { spread: Ratio::new(steps, 1 << 20).map_err(|error| wrong(&error))? }
        }
    };
    BestOf::new(count).map_err(|error| wrong(&error))
}

/// What the protected unit loses by a choice among these, at δ.
fn price((best, scoring): (&BestOf, &Scoring), plans: &[Plan], delta: f64) -> Result<f64, Error> {
    let Some(first) = plans.first() else { return Ok(f64::INFINITY) };
    let rung = first.ladder().protected();
    let one = |plan: &Plan| Cost::Series(vec![plan.cost(rung), scoring.cost(plan.ladder(), rung)]);
    let loss = epsilon(&best.cost(plans.iter().map(one).collect()), delta, Name::Rdp);
    Ok(loss.map_err(|error| asked(format!("this choice has no price: {error}"), "draw with Poisson sampling"))?.upper)
}

/// All candidates, with so much noise that the choice as a whole keeps the ε that the file names; or with the noise that it names.
fn planned(
    trainings: &[Training],
    choice: (&BestOf, &Scoring),
    tables: &Tables,
    keep: &Keep,
) -> Result<Vec<Planned>, Error> {
    let plan = |spec: &Spec| prepare::plan(spec, tables, keep);
    let first: Vec<Planned> = trainings.iter().map(|training| plan(&training.spec)).collect::<Result<_, _>>()?;
    let target = trainings.iter().filter_map(|training| training.spec.privacy.epsilon).reduce(f64::min);
    let (Some(target), Some(delta)) = (target, first.first().map(|planned| planned.delta)) else { return Ok(first) };
    if trainings.iter().any(|training| training.spec.privacy.noise.is_some()) {
        return Err(asked(
            "privacy.epsilon is for the choice as a whole, and some candidate names its noise",
            "leave epsilon out and let all of them name it, or none",
        ));
    }
    // What each would need alone is where the search begins; the noise of all of them grows by one factor.
    let with = |factor: f64| -> Vec<Spec> {
        let one = |(training, alone): (&Training, &Planned)| {
            let mut spec = training.spec.clone();
            spec.privacy.clip = Some(alone.steps().clip().norm);
            (spec.privacy.epsilon, spec.privacy.noise) = (None, Some(alone.steps().noise() * factor));
            spec
        };
        trainings.iter().zip(&first).map(one).collect()
    };
    // How many rows there are, where that is public: the same for all.
    let shown = prepare::shown(&trainings[0].spec, tables)?;
    let keeps = |factor: f64| -> Result<bool, Error> {
        let plan = |spec: &Spec| Ok(prepare::promise(spec, tables, shown.as_ref())?.plan);
        let plans: Vec<Plan> = with(factor).iter().map(plan).collect::<Result<_, Error>>()?;
        Ok(price(choice, &plans, delta)? <= target)
    };
    let (mut low, mut high) = (1.0, 2.0);
    while !keeps(high)? {
        if high > 1e4 {
            return Err(asked(
                format!("no noise of the steps keeps ε = {target}: the scores alone cost more"),
                "write a larger choose.noise, fewer choose.runs, or a larger privacy.epsilon",
            ));
        }
        (low, high) = (high, high * 2.0);
    }
    while high > low * 1.002 {
        let middle = f64::midpoint(low, high);
        if keeps(middle)? { high = middle } else { low = middle }
    }
    with(high).iter().map(plan).collect()
}

/// Plans a choice. Nothing private is read.
fn plan(
    state: &SessionState,
    training: &Training,
    memory: Option<u64>,
    watch: &mut dyn Watch,
) -> Result<Chosen, Error> {
    let (spec, tables) = (&training.spec, &state.tables);
    let choosing =
        spec.choose.as_ref().ok_or_else(|| asked("there is nothing to choose among", "write a table `choose`"))?;
    check(spec, choosing)?;
    let trainings: Vec<Training> =
        candidates(training, choosing)?.iter().map(|candidate| candidate.spelled(tables)).collect();
    for candidate in &trainings {
        check(&candidate.spec, choosing)?;
    }
    let best = best_of(choosing)?;
    let limit = match (&choosing.limit, spec.classes.is_some()) {
        (None, false) => {
            return Err(asked(
                "a number is predicted, and nothing says from which loss on a row counts nothing in the score",
                "write choose.limit = 1.0, a loss that you can defend without looking",
            ));
        }
        (Some(_), true) => {
            return Err(asked("choose.limit is for numbers, and classes are right or wrong", "leave it out"));
        }
        (limit, _) => *limit,
    };
    let scoring = Scoring::new(choosing.noise, limit).map_err(|error| {
        asked(format!("choose.noise or choose.limit cannot be: {error}"), "write noise = 20.0, in units")
    })?;
    watch.doing("planning");
    let keep = keep(tables, memory);
    let planned = planned(&trainings, (&best, &scoring), tables, &keep)?;
    for note in planned.iter().flat_map(|planned| &planned.notes).collect::<std::collections::BTreeSet<_>>() {
        watch.note(note);
    }
    let mut aside = trainings[0].spec.clone();
    aside.learned = aside.evaluate_where.take();
    let (checked, _) = prepare::checked(&aside, tables)?;
    let meaning = meaning_of(&planned, choosing, &checked.condition);
    let question = Question {
        dataset: spec.dataset.clone(),
        analyst: state.analyst.clone(),
        meaning,
        text: String::new(),
        fingerprint: String::new(),
        partition: tables.partition(&spec.dataset).map(str::to_owned),
    };
    let choice = priced(&planned, best, scoring, choosing)?;
    Ok(Chosen { choice, planned, aside, question })
}

/// Finds all that can be wrong with a request, and plans it.
fn ready(state: &SessionState, request: &Request<'_>, watch: &mut dyn Watch) -> Result<Chosen, Error> {
    // What cannot be meant is said with the file that says it.
    let in_file = |error: Error| match error.kind {
        ErrorKind::Asked => error.at(format!("`{}`", request.training.path().display())),
        ErrorKind::Refused | ErrorKind::Failed => error,
    };
    run::check_outputs(request, state.inputs()).map_err(in_file)?;
    plan(state, request.training, request.memory, watch).map_err(in_file)
}

/// The candidates with the cards that their models would have: those of the choice as a whole.
fn priced(planned: &[Planned], best: BestOf, scoring: Scoring, choosing: &Choosing) -> Result<Choice, Error> {
    let mut choice = Choice { best, scoring, candidates: Vec::new() };
    for planned in planned {
        let candidate =
            Candidate { plan: planned.steps().clone(), card: planned.card()?, recipe: planned.recipe.clone() };
        choice.candidates.push(candidate);
    }
    let charge = choice.charge();
    let many = choice.candidates.len();
    let mean = choice.best.law().mean();
    for (place, candidate) in choice.candidates.iter_mut().enumerate() {
        for ((_, cost), rung) in charge.iter().zip(&mut candidate.card.rungs) {
            let loss = epsilon(cost, candidate.card.delta, Name::Rdp);
            rung.epsilon = loss.map_err(|error| Error::failed(error.to_string()))?.upper;
        }
        candidate.card.accountant = format!("{}, for the best of a random number of trainings", Name::Rdp);
        candidate.card.choice = Some(format!(
            "candidate {} of {many}, the best of a random number of trainings ({}, {:.3} on average) by a score with noise of {} units",
            place + 1,
            choosing.law.word(),
            mean,
            choosing.noise
        ));
    }
    Ok(choice)
}

/// What a choice means: its candidates in their order, how many are run, and how they are scored.
fn meaning_of(planned: &[Planned], choosing: &Choosing, aside: &Value) -> String {
    let what = json!({
        "candidates": planned.iter().map(|planned| &planned.meaning).collect::<Vec<_>>(),
        "law": choosing.law.word(),
        "runs": number(choosing.runs),
        "noise": number(choosing.noise),
        "limit": choosing.limit.map(number),
        "scored where": aside,
    });
    meaning::of("choice", VERSION, &what)
}

/// What a choice would come to. Nothing more is read but the ledger.
pub(super) fn preview(
    state: &mut SessionState,
    request: &Request<'_>,
    watch: &mut dyn Watch,
) -> Result<Prospect, Error> {
    state.books_if_any()?;
    let Chosen { choice, mut question, .. } = ready(state, request, watch)?;
    let (tables, books) = state.looking()?;
    let budgets = run::budgets(request, tables)?;
    let known = tables.known_fingerprint_for_learning(&question.dataset, books)?;
    let is_known = known.is_some();
    question.fingerprint = known.unwrap_or_default();
    let stored = is_known && books.stored(&question).map_err(of_ledger)?.is_some();
    let free = stored || books.open_reservation(&question).map_err(of_ledger)?.is_some();
    let charge = if free { Charge::new() } else { choice.charge() };
    let denied = if free { None } else { accompanying::check(&charge, &question, books, &budgets, |_, _| None).err() };
    let card = choice.candidates[0].card.clone();
    Ok(Prospect { card, stored, free, gives_up: false, denied })
}

/// Chooses, or finds the same choice in the ledger.
pub(super) fn train(state: &mut SessionState, request: &Request<'_>, watch: &mut dyn Watch) -> Result<Outcome, Error> {
    if request.owner.is_none() {
        return Err(asked(
            "how long a choice takes tells how many trainings it had, and its price holds for those who do not know that: it is for the owner of the data only",
            "if you are, say `request.owner`, and do not show others how long it took",
        )
        .because(Reason::OwnerOnly));
    }
    if request.curve || request.resume {
        return Err(asked(
            "a choice has no curve, and keeps no checkpoints: both would tell how many trainings there were",
            "ask for the model alone; where it was interrupted, the same `Session::train` begins it anew under the same reservation",
        ));
    }
    state.books_if_any()?;
    let Chosen { choice, planned, aside, mut question } = ready(state, request, watch)?;
    let (tables, mut books) = state.charging()?;
    let keep = keep(tables, request.memory);
    keep.check().map_err(LearnError::from)?;
    watch.doing("looking whether the files are those that the ledger knows");
    let (fingerprint, stamps) = tables.fingerprint_for_learning(&question.dataset, &mut books)?;
    question.fingerprint = fingerprint;
    state.log_change();
    let (tables, mut books) = state.charging()?;
    let spec = &request.training.spec;
    let file = request.training.path().file_name().unwrap_or_default().to_string_lossy();
    question.text = format!("choose {file}: {} from {}", spec.target, spec.feature_names());
    run::check_running(&question, &request.training.model(), &mut books)?;
    let budgets = run::budgets(request, tables)?;
    let charge = choice.charge();
    if books.stored(&question).map_err(of_ledger)?.is_none()
        && books.open_reservation(&question).map_err(of_ledger)?.is_none()
    {
        accompanying::check(&charge, &question, &mut books, &budgets, |_, _| None)?;
    }
    watch.doing("learning and choosing");
    let read = |_: &Reservation| -> Result<Given, whit_core::release::ReadError> {
        let given = given(spec, &aside, &planned[0], tables, &keep).map_err(|error| unread(&error))?;
        // Rows of other files than those of the fingerprint would be learned from in their name.
        stamps.check().map_err(|error| unread(&error.into()))?;
        Ok(given)
    };
    let work = |given: &Given, entropy: &mut dyn Entropy| -> Result<Sealed<Trained>, SanitiseError> {
        let make = |place: usize| -> Result<Learner<Network>, LearnError> {
            planned[place].learner(given.read.clone()).map_err(|error| unread(&error))
        };
        Ok(Sealed::new(choice.choose(&make, &given.aside, entropy)?))
    };
    let decode = |bytes: &[u8]| Trained::of_file(bytes).map_err(|error| error.to_string());
    let secret = NoiseSource::Secret { threads: 1 };
    let served =
        accompanying::release((charge, Box::new(work)), (read, decode), &question, secret, (&mut books, &budgets))?;
    let mut trained = served.value;
    trained.card.entry = Some(served.entry);
    run::write_model(request.training, &trained, watch)?;
    let score = run::score(request, tables, &trained)?;
    let (model, stored) = (request.training.model(), served.stored);
    let (resumed_from, intervals, shortened, curve) = (None, None, None, Vec::new());
    Ok(Outcome::Done(Box::new(Learned { trained, model, stored, resumed_from, intervals, score, shortened, curve })))
}

/// Reads the rows of a choice, after its charge.
fn given(spec: &Spec, aside: &Spec, first: &Planned, tables: &Tables, keep: &Keep) -> Result<Given, Error> {
    let read = rows::read(spec, tables, keep.clone())?;
    let aside = rows::read(aside, tables, read.rest())?;
    Ok(Given { read, aside: first.cut(aside, None) })
}

/// Rows that could not be read, in the words of whoever learns.
fn unread(error: &Error) -> LearnError {
    LearnError::file(
        error.to_string(),
        error.hint.clone().unwrap_or_else(|| "nothing of the rows was released".to_owned()),
    )
}

/// The candidates of a training file, as they are declared; none where it chooses among none.
pub(super) fn specs(training: &Training, tables: &Tables) -> Result<Vec<Spec>, Error> {
    let Some(choosing) = &training.spec.choose else { return Ok(Vec::new()) };
    Ok(candidates(training, choosing)?.iter().map(|candidate| candidate.spelled(tables).spec).collect())
}
