//! Directions that rows are projected on before a model is learned: a release of its own, before the first step, with a charge of its own.
//!
//! The ledger keeps what was released, so whoever goes on with an interrupted run, or tries another model on the same directions, pays no second time.

use super::accompanying;
use super::accompanying::Budgets;
use super::meaning;
use super::reader::Reader;
use super::rows::frozen;
use super::spec::{Spec, asked};
use crate::Error;
use whit_account::ledger::{Question, Register};
use whit_core::release::Reservation;
use whit_core::{Charge, Kind, Ladder};
use whit_learn::model::Network;
use whit_learn::pca::Principal;
use whit_learn::scatter::{self, Scatter, Sum};
use whit_learn::train::Learner;
use whit_learn::{NoiseSource, Projecting};
use whit_query::source::learn::Checked;

/// What is released, and how many of its directions are kept.
#[derive(Clone)]
pub(crate) struct Directions {
    scatter: Scatter,
    components: usize,
    /// What is meant, in a canonical text.
    meaning: String,
    /// What is asked, for people.
    text: String,
}

fn cannot(error: &scatter::Error) -> Error {
    asked(format!("projection: {error}"), error.hint())
}

impl Directions {
    /// Of rows as a training file reads them, for the units of a ladder.
    pub(crate) fn new(
        asked_for: &Projecting,
        spec: &Spec,
        (ladder, rows_per_unit): (&Ladder, Option<u64>),
        checked: &Checked,
    ) -> Result<Self, Error> {
        let width = checked.widths.iter().sum();
        let Projecting { components, radius, noise } = asked_for;
        let kind = ladder.protected().unit.kind();
        match kind {
            Kind::Event | Kind::Element | Kind::User => {}
            Kind::Feature => {
                return Err(asked(
                    "a projection mixes private features with public ones, and the unit hides some of them only",
                    "leave `projection` out, or protect another unit",
                ));
            }
            Kind::Label => {
                return Err(asked(
                    "features are public where the unit is a label, so noise in their directions would protect no unit",
                    "project them where they are written, and leave `projection` out",
                ));
            }
        }
        if !(1..=width).contains(components) {
            return Err(asked(
                format!("projection.components is {components}, and rows have {width} numbers"),
                format!("keep 1 to {width} directions"),
            ));
        }
        let noise = accompanying::noise("projection.noise", *noise)?;
        let scatter = Scatter::new(width, *radius, noise).map_err(|error| cannot(&error))?.on(ladder);
        let meaning =
            meaning::second_moments((spec, checked), &frozen(spec, checked)?, (ladder, rows_per_unit), asked_for);
        let text = format!("second moments of {}", spec.feature_names());
        Ok(Self { scatter, components: *components, meaning, text })
    }

    /// What is meant.
    #[cfg(test)]
    pub(crate) fn meaning(&self) -> &str {
        &self.meaning
    }

    /// What they cost, rung by rung.
    pub(crate) fn charge(&self, ladder: &Ladder) -> Charge {
        accompanying::charge(&self.scatter, ladder)
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

    fn question(&self, training: &Question) -> Question {
        Question { meaning: self.meaning.clone(), text: self.text.clone(), ..training.clone() }
    }

    /// The directions, from the ledger where they were released before, else released now. A run that goes on (`resumed`) has released them.
    pub(crate) fn release(
        &self,
        reader: &Reader<'_>,
        training: &Question,
        resumed: bool,
        (books, budgets): (&mut dyn Register, &Budgets),
    ) -> Result<Principal, Error> {
        let question = self.question(training);
        accompanying::still_there(resumed, &question, books, "directions")?;
        let (ladder, noise) = (reader.plan.ladder(), reader.plan.source());
        let sum = |reservation: &Reservation| reader.with(reservation, |learner| learner.second_moments(&self.scatter));
        let decode = |bytes: &[u8]| Scatter::read(bytes).map_err(|error| error.to_string());
        let served =
            accompanying::release_of(&self.scatter, (sum, decode), ladder, &question, noise, (books, budgets))?;
        self.found(&served.value)
    }

    /// What they are found from. As private as the rows.
    pub(crate) fn sum(&self, learner: &Learner<Network>) -> Result<Sum, Error> {
        Ok(learner.second_moments(&self.scatter)?)
    }

    /// The directions with noise that comes again, charged to no budget: for experiments.
    pub(crate) fn try_out(
        &self,
        sum: &Sum,
        learner: &Learner<Network>,
        noise: NoiseSource,
    ) -> Result<Principal, Error> {
        self.found(&accompanying::try_out(&self.scatter, sum, learner.plan().ladder(), noise)?)
    }

    fn found(&self, triangle: &[i64]) -> Result<Principal, Error> {
        Principal::of(&self.scatter, triangle, self.components)
            .map_err(|error| asked(format!("projection: {error}"), error.hint()))
    }
}
