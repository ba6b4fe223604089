//! Labels as a release of their own, before the first step: at the price that a plan has for them, and in no other way than it says.

use crate::custom::Model;
use crate::error::LearnError;
use crate::label::{NoisyLabels, ReportedLabels};
use crate::plan::{NoiseSource, Plan, PlanError};
use crate::reporting::PlannedLabels;
use crate::train::Learner;
use std::borrow::Borrow;
use std::marker::PhantomData;
use whit_account::desk::{Coins, Desk, DeskError, Instead, ReleaseRequest, Served, Start};
use whit_account::ledger::Question;
use whit_core::mechanism::{Mechanism, SanitiseError};
use whit_core::release::{ReadError, ReleaseError, Reservation, release_reproducibly_without_privacy};
use whit_core::{Accuracy, Cost, Ledger, Rung, Sealed};
use whit_noise::{Entropy, Os, Replay};

#[cfg(test)]
mod tests;

/// The labels of one training, reported before its steps: the one way to labels that a learner takes.
///
/// How they are reported, what that costs and where coins come from is its plan's, so that there is nothing to disagree about.
#[derive(Debug, Clone, Copy)]
pub struct LabelRun<'a> {
    plan: &'a Plan,
    labels: &'a PlannedLabels,
}

impl<'a> LabelRun<'a> {
    /// Of a plan that was made by [`Draft::after_labels`](crate::Draft::after_labels).
    pub fn new(plan: &'a Plan) -> Result<Self, PlanError> {
        let labels = plan.labels().ok_or(PlanError::NoLabels)?;
        Ok(Self { plan, labels })
    }

    /// Reserves, reads, reports and commits: for whoever keeps a ledger of their own. `read` reads the rows, and is shown the reservation.
    pub fn release<M: Model, L: Borrow<Learner<M>>>(
        &self,
        read: impl FnOnce(&Reservation) -> Result<L, ReadError>,
        ledger: &mut dyn Ledger,
    ) -> Result<ReportedLabels, ReleaseError> {
        let (mechanism, rungs) = (self.mechanism::<M>(), self.plan.ladder().rungs());
        let released = match self.seeded() {
            None => whit_core::release(&mechanism, read, rungs, ledger, &mut Os),
            Some(mut coins) => release_reproducibly_without_privacy(&mechanism, read, rungs, ledger, &mut coins),
        };
        Ok(released?.value)
    }

    /// The same at the desk: from the ledger where the same was reported before, else reported now. Where that was interrupted, the reservation is still open and nothing
    /// of it was seen, so it goes on under the same.
    pub fn release_once<M: Model, L: Borrow<Learner<M>>>(
        &self,
        read: impl FnOnce(&Reservation) -> Result<L, ReadError>,
        question: &Question,
        desk: &mut Desk<'_>,
    ) -> Result<Served<ReportedLabels>, DeskError> {
        let (mut seeded, mut secret) = (self.seeded(), Os);
        let coins = seeded.as_mut().map_or(Coins::Secret(&mut secret), Coins::Seeded);
        let rungs = self.plan.ladder().rungs();
        let request = ReleaseRequest { question, rungs, coins, start: Start::Open, instead: Instead::Nothing };
        desk.once(request, &self.mechanism::<M>(), read, |bytes| self.decode(bytes))
    }

    /// What a ledger kept under the question that means these labels.
    fn decode(&self, bytes: &[u8]) -> Result<ReportedLabels, String> {
        let noisy = NoisyLabels::read(bytes).ok_or("it holds no labels")?;
        let (given, classes) = (noisy.classes(), self.labels.reporting.classes);
        if given == classes {
            Ok(self.reported(noisy))
        } else {
            Err(format!("it holds labels of {given} classes, and the plan is for {classes}"))
        }
    }

    fn reported(&self, noisy: NoisyLabels) -> ReportedLabels {
        ReportedLabels::new(noisy, self.labels.reporting.clone(), self.plan.source().protects())
    }

    fn mechanism<M>(&self) -> Reporting<'a, M> {
        Reporting { run: *self, of: PhantomData }
    }

    /// Coins that come again, where the plan's do.
    fn seeded(&self) -> Option<Replay> {
        match self.plan.source() {
            NoiseSource::Secret { .. } => None,
            NoiseSource::Replay { seed } => Some(Replay::new(seed ^ 0xd1_4e)),
            NoiseSource::Off => Some(Replay::new(0xd1_4e)),
        }
    }
}

/// Reporting the labels of a learner's rows, as a mechanism. Only [`LabelRun`] runs it: with other coins than the plan's it would claim what does not hold.
///
/// # Neighbours
/// Data sets that differ in the labels of one unit of a rung of the plan's ladder.
///
/// # Claim
/// What [`Plan::loss`] counts for the labels; everything where the plan's noise is not secret, and for units that are not on its ladder.
///
/// # Why
/// It is [`TwoStages`](crate::label::TwoStages), with the ε, the classes and the share of first rows that the plan's price was made from. A learner of another plan is
/// refused, and so is one whose rows move more labels at once than the plan's price counts; both are known without looking at a label.
///
/// # Tried by
/// `labels_of_another_mechanism_are_refused`, `labels_of_more_rows_than_were_paid_for_are_refused`, `labels_that_a_ledger_kept_before_are_served`.
struct Reporting<'a, M> {
    run: LabelRun<'a>,
    of: PhantomData<fn(&M)>,
}

impl<M: Model> Mechanism for Reporting<'_, M> {
    type Exact = Learner<M>;
    type Noisy = ReportedLabels;

    fn cost(&self, rung: &Rung) -> Cost {
        self.run.plan.label_cost(rung)
    }

    fn sanitise(
        &self,
        learner: &Learner<M>,
        entropy: &mut dyn Entropy,
    ) -> Result<Sealed<ReportedLabels>, SanitiseError> {
        if learner.plan() != self.run.plan {
            return Err(LearnError::from(PlanError::OtherPlan).into());
        }
        let noisy = learner.label_mechanism()?.answers(&learner.labels()?, entropy)?;
        Ok(Sealed::new(self.run.reported(noisy)))
    }

    /// As for the two stages: what a model thinks likely need not hold the truth.
    fn accuracy(&self, confidence: f64) -> Accuracy {
        Accuracy { within: 1.0, confidence }
    }
}
