//! Noisy labels, by randomised response before the first step: a release of its own, and the only one that costs anything.

use super::accompanying;
use super::accompanying::Budgets;
use super::meaning;
use super::reader::Reader;
use super::spec::{Classes, Spec, Way, asked};
use crate::Error;
use crate::error::of_ledger;
use serde_json::Value;
use std::cell::OnceCell;
use whit_account::ledger::{Question, Register};
use whit_core::release::Reservation;
use whit_core::{Charge, Kind, Ladder, Mechanism};
use whit_learn::NoiseSource;
use whit_learn::label::NoisyLabels;
use whit_learn::model::Network;
use whit_learn::train::{LabelReporting, Learner};
use whit_noise::{Entropy, Ratio};
use whit_query::source::learn::InView;

/// How noisy labels are made, and what that costs.
#[derive(Clone)]
pub(crate) struct Answers {
    telling: LabelReporting,
    charge: Charge,
    /// What is meant, in a canonical text.
    meaning: Value,
    /// What is asked, for people.
    text: String,
}

impl Answers {
    /// Of the labels of rows whose number and owners are public, where a training file asks for it.
    pub(crate) fn new(spec: &Spec, ladder: &Ladder, shown: Option<&InView>) -> Result<Option<Self>, Error> {
        let Some(first) = spec.privacy.way.and_then(Way::first) else { return Ok(None) };
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
        let telling = LabelReporting { epsilon, classes: names.len() as u32, first };
        let Some(shown) = shown.filter(|shown| shown.rows > 0) else {
            return Err(asked(format!("no row of `{}` is to be learned from", spec.dataset), "check `where`"));
        };
        let charge = telling.charge(shown.rows, shown.users.as_deref(), ladder)?;
        let meaning = meaning::labels(spec, ladder, (&names, &telling.epsilon.to_string(), first))?;
        let text = format!("labels of {}, reported by randomised response", spec.target);
        Ok(Some(Self { telling, charge, meaning, text }))
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
        let LabelReporting { epsilon, classes, first } = &self.telling;
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
    ) -> Result<NoisyLabels, Error> {
        let question = self.question(training);
        if resumed && books.stored(&question).map_err(of_ledger)?.is_none() {
            return Err(accompanying::gone("labels"));
        }
        let work = |learner: &Learner<Network>, entropy: &mut dyn Entropy| {
            let (mechanism, labels) = (learner.label_mechanism(&self.telling)?, learner.labels()?);
            mechanism.sanitise(&labels[..], entropy)
        };
        // Given back afterwards, so that rows are read once.
        let held = OnceCell::new();
        let read = |_: &Reservation| {
            let learner = reader.take()?;
            Ok(held.get_or_init(|| learner))
        };
        let decode = |bytes: &[u8]| NoisyLabels::read(bytes).ok_or_else(|| "it holds no labels".to_owned());
        let (charge, noise) = (self.charge(), reader.planned.noise);
        let served =
            accompanying::release((charge, Box::new(work)), (read, decode), &question, noise, (books, budgets));
        if let Some(learner) = held.into_inner() {
            reader.put(learner);
        }
        Ok(served?.value)
    }

    /// The labels with coins that come again, charged to no budget: for experiments.
    pub(crate) fn try_out(&self, learner: &Learner<Network>, noise: NoiseSource) -> Result<NoisyLabels, Error> {
        let (mechanism, labels) = (learner.label_mechanism(&self.telling)?, learner.labels()?);
        accompanying::try_out(&mechanism, &labels[..], learner.plan().ladder(), noise)
    }
}
