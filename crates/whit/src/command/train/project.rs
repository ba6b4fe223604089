//! Directions that rows are projected on before a model is learned: a release of its own, before the first step, with a charge of its own.
//!
//! The ledger keeps what was released, so whoever goes on with an interrupted run, or tries another model on the same directions, pays no second time.

use super::of_ledger;
use super::spec::{Spec, asked};
use crate::command::Error;
use crate::command::asked::Open;
use whit::account::ledger::{Books, Question};
use whit::core::release::{CommitError, ReleaseError, Reservation, release_reproducibly_without_privacy};
use whit::core::{Charge, Cost, Kind, Ladder, Ledger, Mechanism, Refusal, Rung};
use whit::learn::model::Network;
use whit::learn::pca::{Gap, Principal};
use whit::learn::scatter::{self, Scatter, Sum};
use whit::learn::train::Learner;
use whit::learn::{Noise, Plan, Projecting, Projection};
use whit::noise::{Os, Ratio, Replay};

/// What is released, and how many of its directions are kept.
#[derive(Clone)]
pub(super) struct Directions {
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
    /// Of rows of so many numbers, as a training file reads them, for the units of a ladder.
    pub(super) fn new(asked_for: &Projecting, spec: &Spec, ladder: &Ladder, width: usize) -> Result<Self, Error> {
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
                    "features are public where the unit is a label, so noise in their directions would protect nobody",
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
        let noise = Ratio::from_f64_down(*noise).ok().filter(|noise| !noise.is_zero()).ok_or_else(|| {
            asked(format!("projection.noise is {noise}, and no noise"), "give it over the squared radius, such as 5.0")
        })?;
        let scatter = Scatter::new(width, *radius, noise).map_err(|error| cannot(&error))?.on(ladder);
        let (columns, rows) = (&spec.features, &spec.learned);
        let meaning = format!(
            "second moments 1\n{columns:?} {:?} {:?} {:?}\nwhere {rows:?}\n{ladder:?}\n{radius:?} {:?}\nseed {:?}\n",
            spec.features_as, spec.scale, spec.offset, asked_for.noise, spec.output.seed
        );
        let text = format!("second moments of {}", columns.join(", "));
        Ok(Self { scatter, components: *components, meaning, text })
    }

    /// What they cost, rung by rung.
    pub(super) fn charge(&self, ladder: &Ladder) -> Charge {
        ladder.rungs().iter().map(|rung| (rung.clone(), self.scatter.cost(rung))).collect()
    }

    /// What directions and steps cost together, rung by rung, as far as it is not paid: what must fit before either is charged.
    pub(super) fn together(&self, plan: &Plan, asked_for: &Question, books: &Books) -> Result<Charge, Error> {
        if books.stored(&self.question(asked_for)).map_err(of_ledger)?.is_some() {
            return Ok(plan.charge());
        }
        let both = |(rung, steps): (Rung, Cost)| {
            let own = self.scatter.cost(&rung);
            (rung, Cost::Series(vec![own, steps]))
        };
        Ok(plan.charge().into_iter().map(both).collect())
    }

    fn question(&self, training: &Question) -> Question {
        Question { meaning: self.meaning.clone(), text: self.text.clone(), ..training.clone() }
    }

    /// The directions, from the ledger where they were released before, else released now. A run that goes on (`resumed`) has released them.
    pub(super) fn release(
        &self,
        learner: &Learner<Network>,
        training: &Question,
        noise: Noise,
        resumed: bool,
        open: &mut Open,
    ) -> Result<(Projection, Gap), Error> {
        let question = self.question(training);
        let stored = open.books.stored(&question).map_err(of_ledger)?;
        let triangle = if let Some(stored) = stored {
            Scatter::read(&stored.value).map_err(|error| Error::Failed(error.to_string()))?
        } else if resumed {
            return Err(asked(
                "the directions that this run was begun with are not in the ledger any more",
                "remove its checkpoint and void its entry, to begin anew",
            ));
        } else {
            let budgets = open.tables.budgets(&question.dataset)?;
            let both = self.together(learner.plan(), training, &open.books)?;
            open.books.booking(question.clone(), &budgets).would_fit(&both).map_err(|refusal| refused(&refusal))?;
            let sum = learner.second_moments(&self.scatter)?;
            let rungs = learner.plan().ladder().rungs().to_vec();
            let mut booking = open.books.booking(question, &budgets);
            let released = match noise {
                Noise::Secret { .. } => whit::release(&self.scatter, &sum, &rungs, &mut booking, &mut Os),
                Noise::Replay { .. } | Noise::Off => {
                    release_reproducibly_without_privacy(&self.scatter, &sum, &rungs, &mut booking, &mut seeded(noise))
                }
            };
            released.map_err(failed)?.value
        };
        self.found(&triangle)
    }

    /// What they are found from. As private as the rows.
    pub(super) fn sum(&self, learner: &Learner<Network>) -> Result<Sum, Error> {
        Ok(learner.second_moments(&self.scatter)?)
    }

    /// The directions with noise that comes again, charged to nobody: for experiments.
    pub(super) fn try_out(&self, sum: &Sum, learner: &Learner<Network>, noise: Noise) -> Result<Projection, Error> {
        let rungs = learner.plan().ladder().rungs().to_vec();
        let released =
            release_reproducibly_without_privacy(&self.scatter, sum, &rungs, &mut Unbooked, &mut seeded(noise));
        Ok(self.found(&released.map_err(failed)?.value)?.0)
    }

    fn found(&self, triangle: &[i64]) -> Result<(Projection, Gap), Error> {
        let principal = Principal::of(&self.scatter, triangle, self.components)
            .map_err(|error| asked(format!("projection: {error}"), error.hint()))?;
        Ok((Projection::of(&principal), principal.gap))
    }
}

/// A ledger that keeps no books: for experiments, whose noise comes again and protects nobody.
struct Unbooked;

impl Ledger for Unbooked {
    fn reserve(&mut self, _: &Charge) -> Result<Reservation, Refusal> {
        Ok(Reservation::new(0))
    }

    fn commit(&mut self, _: Reservation, _: &[u8]) -> Result<(), CommitError> {
        Ok(())
    }
}

fn seeded(noise: Noise) -> Replay {
    match noise {
        Noise::Replay { seed } => Replay::new(seed ^ 0xd1_4e),
        Noise::Secret { .. } | Noise::Off => Replay::new(0xd1_4e),
    }
}

fn failed(error: ReleaseError) -> Error {
    match error {
        ReleaseError::Refused(refusal) => refused(&refusal),
        other => Error::Failed(other.to_string()),
    }
}

fn refused(refusal: &Refusal) -> Error {
    Error::Refused(format!("{refusal}\n  hint: nothing was charged; `whit ledger` shows what was spent"))
}
