//! Noisy labels, by randomised response before the first step: a release of its own, and the only one that costs anything.

use super::accompanying;
use super::accompanying::{Budgets, Unbooked};
use super::meaning;
use super::reader::Reader;
use super::spec::{Classes, Spec, WaySpec, asked};
use crate::Error;
use serde_json::Value;
use std::cell::OnceCell;
use whit_account::ledger::{Question, Register};
use whit_core::release::Reservation;
use whit_core::{Charge, Kind, Ladder};
use whit_learn::label::ReportedLabels;
use whit_learn::model::Network;
use whit_learn::release::LabelRun;
use whit_learn::train::{LabelReporting, Learner};
use whit_learn::{Draft, LearnError, Plan, PlanError};
use whit_noise::Ratio;
use whit_query::source::learn::{Checked, InView};

/// How noisy labels are made, and what that costs.
#[derive(Clone)]
pub(crate) struct Answers {
    reporting: LabelReporting,
    charge: Charge,
    /// What is meant, in a canonical text.
    meaning: Value,
    /// What is asked, for people.
    text: String,
}

impl Answers {
    /// Of the labels of rows whose number and owners are public, where a training file asks for it.
    pub(crate) fn new(
        spec: &Spec,
        ladder: &Ladder,
        (shown, checked): (Option<&InView>, &Checked),
    ) -> Result<Option<Self>, Error> {
        let Some(first) = spec.privacy.way.and_then(WaySpec::first) else { return Ok(None) };
        let kind = ladder.protected().unit.kind();
        if kind != Kind::Label {
            return Err(asked(
                format!("labels are made noisy where the unit is a label, and here it is a {kind}"),
                "protect `label` in whit.toml, or take another privacy.way",
            ));
        }
        let Some(names) = spec.classes.as_ref().map(Classes::names) else {
            return Err(asked("noisy labels are of classes, and none are named", "write classes = 10"));
        };
        if !(first > 0.0 && first <= 1.0) {
            return Err(asked(
                format!("privacy.way has {first} of all rows in its first stage"),
                "give a share of more than 0 and at most 1, such as 0.5",
            ));
        }
        let epsilon = spec.privacy.epsilon.and_then(|epsilon| Ratio::from_f64_down(epsilon).ok());
        let epsilon =
            epsilon.filter(|epsilon| !epsilon.is_zero() && spec.privacy.noise.is_none()).ok_or_else(|| {
                asked("noisy labels are made at some ε, and privacy.epsilon does not say which", "write epsilon = 1.0")
            })?;
        let reporting = LabelReporting { epsilon, classes: names.len() as u32, first };
        let Some(shown) = shown.filter(|shown| shown.rows > 0) else {
            return Err(asked(format!("no row of `{}` is to be learned from", spec.dataset), "check `where`"));
        };
        let charge = reporting.charge(shown.rows, shown.users.as_deref(), ladder).map_err(LearnError::from)?;
        let meaning = meaning::labels((spec, checked), ladder, (&names, &reporting.epsilon.to_string(), first))?;
        let text = format!("labels of {}, reported by randomised response", spec.target);
        Ok(Some(Self { reporting, charge, meaning, text }))
    }

    /// The plan of steps after these labels, of rows of which this much is public.
    pub(crate) fn plan(&self, draft: Draft, shown: Option<&InView>) -> Result<Plan, PlanError> {
        let (rows, users) = shown.map_or((0, None), |shown| (shown.rows, shown.users.as_deref()));
        draft.after_labels(self.reporting.clone(), rows, users)
    }

    /// What they cost, rung by rung.
    pub(crate) fn charge(&self) -> Charge {
        self.charge.clone()
    }

    /// What they cost where they are not paid yet.
    pub(crate) fn unpaid(&self, training: &Question, books: &mut dyn Register) -> Result<Charge, Error> {
        accompanying::unpaid(self.charge(), &self.question(training), books)
    }

    /// What is meant, as a part of what a training means.
    pub(crate) fn meaning(&self) -> &Value {
        &self.meaning
    }

    /// How they are made, in words.
    pub(crate) fn words(&self) -> String {
        let LabelReporting { epsilon, classes, first } = &self.reporting;
        let epsilon = epsilon.to_f64();
        let how = if *first < 1.0 {
            format!("{} % of them first, and the others among what a model of these finds likely", 100.0 * first)
        } else {
            "all of them among all classes".to_owned()
        };
        format!(
            "reported by randomised response at ε = {epsilon} among {classes} classes, {how}; steps cost nothing more"
        )
    }

    fn question(&self, training: &Question) -> Question {
        Question { meaning: meaning::of_labels(&self.meaning), text: self.text.clone(), ..training.clone() }
    }

    /// The labels, from the ledger where they were released before, else released now. A run that goes on (`resumed`) has released them.
    pub(crate) fn release(
        &self,
        reader: &Reader<'_>,
        training: &Question,
        resumed: bool,
        (books, budgets): (&mut dyn Register, &Budgets),
    ) -> Result<ReportedLabels, Error> {
        let question = self.question(training);
        accompanying::still_there(resumed, &question, books, "labels")?;
        // Given back afterwards, so that rows are read once.
        let held = OnceCell::new();
        let read = |reservation: &Reservation| {
            let learner = reader.take(reservation)?;
            Ok(held.get_or_init(|| learner))
        };
        let run = LabelRun::new(reader.plan).map_err(LearnError::from)?;
        let served = run.release_once(read, &question, &mut budgets.desk(books));
        if let Some(learner) = held.into_inner() {
            reader.put(learner);
        }
        Ok(served.map_err(|error| budgets.unserved(error, accompanying::GOES_ON))?.value)
    }

    /// The labels with the coins of the learner's plan, which come again, charged to no budget: for experiments.
    pub(crate) fn try_out(learner: &Learner<Network>) -> Result<ReportedLabels, Error> {
        let run = LabelRun::new(learner.plan()).map_err(LearnError::from)?;
        run.release(|_| Ok(learner), &mut Unbooked).map_err(|error| Error::failed(error.to_string()))
    }
}
