//! What questions would cost together and how wrong each would be, before any of them is asked.

use super::fits::Fits;
use super::{Within, exact, imagine, view};
use crate::answer::{Error, QuestionPreview, WorkloadPreview};
use crate::error::QueryError;
use crate::estimate::sql::Charged;
use crate::plan::Asking;
use crate::plan::shared::{PlannedWorkload, SharingPlan};
use crate::release::finish::picking;
use crate::sanitise::{Calibrated, calibrate, is_private};
use crate::source::Tables;
use crate::workload::Workload;
use whit_account::ledger::Register;

impl Tables {
    /// Plans and prices questions together. Nothing private is read and nothing is charged.
    pub fn preview_workload(&self, workload: &Workload, asking: &Asking) -> Result<WorkloadPreview, QueryError> {
        let planned = self.planned_workload(workload, asking)?;
        self.foreseen_workload(workload, &planned, asking)
    }

    /// The same with the smallest ε for all of them together at which every value of each is off by no more than this. Where an ε is asked for, it is the most that one
    /// would pay.
    pub fn workload_within(
        &self,
        workload: &Workload,
        asking: &Asking,
        within: Within,
    ) -> Result<WorkloadPreview, QueryError> {
        let planned = self.planned_workload(workload, asking)?;
        if !planned.whole.parts.iter().any(is_private) {
            return self.foreseen_workload(workload, &planned, asking);
        }
        let delta = self.price_of(&planned.whole.dataset, &Asking { epsilon: Some(1.0), ..asking.clone() })?.1;
        let at = |epsilon: f64| {
            let noise = calibrate(&planned.whole, epsilon, delta)?;
            let errors = planned.questions.iter().map(|question| Ok(self.foretold(question, &noise, asking)?.0));
            let errors = errors.collect::<Result<Vec<_>, QueryError>>()?;
            Ok((epsilon, errors.concat()))
        };
        let (epsilon, _) = within.search(at, |(_, errors)| errors.iter().collect())?;
        within.affordable(epsilon, asking)?;
        self.foreseen_workload(workload, &planned, &Asking { epsilon: Some(epsilon), ..asking.clone() })
    }

    /// What the ledger would say to questions that were previewed together: see [`Tables::fits`].
    pub fn workload_fits(
        &self,
        workload: &Workload,
        preview: &WorkloadPreview,
        asking: &Asking,
        books: &mut dyn Register,
        analyst: &str,
    ) -> Result<Fits, QueryError> {
        if preview.whole.prices.is_empty() {
            return Ok(Fits::default());
        }
        let (epsilon, delta) = (preview.whole.epsilon, preview.whole.delta);
        // As they were previewed: their ε may have been found for an error.
        let asking = Asking { epsilon: Some(epsilon), delta: Some(delta), ..asking.clone() };
        let plan = self.outlined_workload(workload, &asking)?.whole;
        let (question, reads) = self.question_of(&plan, &workload.text(), &asking, analyst)?;
        let charge = calibrate(&plan, epsilon, delta)?.charge;
        let price = Box::new(|epsilon: f64| Some(calibrate(&plan, epsilon, delta).ok()?.charge));
        self.foresee(Charged { question, reads, charge, price }, epsilon, books)
    }

    fn foreseen_workload(
        &self,
        workload: &Workload,
        planned: &PlannedWorkload,
        asking: &Asking,
    ) -> Result<WorkloadPreview, QueryError> {
        let PlannedWorkload { whole, questions } = planned;
        let confidence = asking.confidence()?;
        let mut noise = None;
        if whole.parts.iter().any(is_private) {
            let (epsilon, delta) = self.price_of(&whole.dataset, asking)?;
            noise = Some(calibrate(whole, epsilon, delta)?);
        }
        let mut previews = Vec::new();
        for (asked, sharing) in workload.questions().iter().zip(questions) {
            let (errors, told) = match &noise {
                Some(noise) => self.foretold(sharing, noise, asking)?,
                None => (imagine::columns(&sharing.plan).into_iter().map(exact).collect(), None),
            };
            let mut notes: Vec<String> = told.into_iter().collect();
            notes.extend(sharing.plan.notes.iter().cloned());
            notes.extend(picking(&sharing.plan, confidence));
            let (name, question) = (asked.name.clone(), asked.sql.clone());
            previews.push(QuestionPreview { name, question, errors, notes });
        }
        let whole = view(whole, noise.as_ref(), Vec::new(), confidence);
        Ok(WorkloadPreview { whole, questions: previews })
    }

    /// How far the columns of one question would be off with the noise of all, and what is said where one would tell nothing.
    fn foretold(
        &self,
        SharingPlan { plan, places }: &SharingPlan,
        noise: &Calibrated,
        asking: &Asking,
    ) -> Result<(Vec<Error>, Option<String>), QueryError> {
        let (errors, useless) = self.errors_of(plan, &noise.picked(places), asking)?;
        let help = "ask with a larger `asking.epsilon`, or for fewer things at once";
        Ok((errors, useless.map(|useless| format!("{}; {help}", useless.words))))
    }
}
