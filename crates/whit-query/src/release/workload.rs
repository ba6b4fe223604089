//! Questions that are asked together: released as one, and finished one by one.

use super::{Audited, ExactPart, Tables};
use crate::answer::{Answer, QuestionAnswer, Statement, WorkloadAnswer};
use crate::error::QueryError;
use crate::plan::shared::{PlannedWorkload, SharingPlan};
use crate::plan::{Asking, Plan};
use crate::workload::Workload;
use whit_account::ledger::Register;

/// Answers questions together: charges the ledger once for all of them, or finds what was released for them there.
///
/// What several of them need is released once, and has the same noise in each. Their order and their names are not what is asked: the same questions in another
/// order are answered from the same entry.
pub fn ask_workload(
    tables: &Tables,
    workload: &Workload,
    asking: &Asking,
    books: &mut dyn Register,
    analyst: &str,
) -> Result<WorkloadAnswer, QueryError> {
    let planned = tables.planned_workload(workload, asking)?;
    let (released, calibrated, statement) =
        tables.released(&planned.whole, &workload.text(), asking, books, analyst)?;
    let mut answers = Vec::new();
    for (asked, SharingPlan { plan, places }) in workload.questions().iter().zip(&planned.questions) {
        let noise = calibrated.as_ref().map(|calibrated| calibrated.picked(places));
        let own = Statement { question: asked.sql.clone(), notes: plan.notes.clone(), ..statement.clone() };
        let Answer { columns, rows, statement } = tables.finish(plan, noise.as_ref(), &released.picked(places), own)?;
        let (name, question, notes) = (asked.name.clone(), statement.question, statement.notes);
        answers.push(QuestionAnswer { name, question, columns, rows, notes });
    }
    Ok(WorkloadAnswer { statement, answers })
}

impl Tables {
    /// Plans questions together. They are tried on made-up rows, so that what can never be answered is not paid for.
    pub(crate) fn planned_workload(&self, workload: &Workload, asking: &Asking) -> Result<PlannedWorkload, QueryError> {
        self.workload_of(workload, asking, true)
    }

    /// The same without trying them.
    pub(crate) fn outlined_workload(
        &self,
        workload: &Workload,
        asking: &Asking,
    ) -> Result<PlannedWorkload, QueryError> {
        self.workload_of(workload, asking, false)
    }

    fn workload_of(&self, workload: &Workload, asking: &Asking, tried: bool) -> Result<PlannedWorkload, QueryError> {
        let mut read = Vec::new();
        for (place, question) in workload.questions().iter().enumerate() {
            let about = |error| workload.about(place, error);
            // Where it stands in its file, so that lines and columns are those of the file.
            let sql = question.in_place();
            let logical = self.logical(&sql).map_err(about)?;
            if let Some((call, _)) = self.call(&sql, &logical).map_err(about)? {
                return Err(about(QueryError::asked(
                    format!("`{}` is released by itself, and not along with other questions", call.name()),
                    "ask it by itself, and leave it out here",
                )));
            }
            read.push((sql, logical));
        }
        let divided = self.divided_at_once(&read, asking);
        let mut divided = divided.map_err(|(place, error)| workload.about(place, error))?;
        for (place, (question, (plan, _))) in workload.questions().iter().zip(&mut divided).enumerate() {
            plan.question.clone_from(&question.sql);
            if tried {
                self.rehearse(plan).map_err(|error| workload.about(place, error))?;
            }
        }
        let plans: Vec<&Plan> = divided.iter().map(|(plan, _)| plan).collect();
        one_payer(&plans, workload)?;
        let weights: Vec<f64> = workload.questions().iter().map(|question| question.weight).collect();
        let mut planned = self.shared(divided, &weights, asking)?;
        planned.whole.question = workload.text();
        if tried && workload.questions().len() > 1 {
            self.rehearse_parts(&planned.whole)?;
        }
        Ok(planned)
    }

    /// The exact, bounded integers that noise would be added to, of all questions together. Never for people: tests compare them between neighbours.
    #[doc(hidden)]
    pub fn exact_workload_for_tests(
        &self,
        workload: &Workload,
        asking: &Asking,
    ) -> Result<(Plan, Vec<ExactPart>), QueryError> {
        let plan = self.outlined_workload(workload, asking)?.whole;
        let parts = self.exact_parts(&plan)?;
        Ok((plan, parts))
    }

    /// Sanitises questions together many times over, and finishes each of them each time; the answers stand one run after the other. Nothing is charged. Never for people.
    #[doc(hidden)]
    pub fn workload_many_for_audit(
        &self,
        workload: &Workload,
        asking: &Asking,
        times: usize,
    ) -> Result<Audited, QueryError> {
        let PlannedWorkload { whole, questions } = self.planned_workload(workload, asking)?;
        let mut answers = Vec::new();
        let calibrated = self.sanitised_often(&whole, asking, times, |released, calibrated| {
            for SharingPlan { plan, places } in &questions {
                let statement = Self::statement(plan, asking.confidence()?, &released);
                let (noise, own) = (calibrated.picked(places), released.picked(places));
                answers.push(self.finish(plan, Some(&noise), &own, statement)?);
            }
            Ok(())
        })?;
        let prices = Statement::prices(&calibrated.charge, calibrated.delta);
        Ok(Audited { prices, runs: Vec::new(), answers })
    }
}

/// Refuses questions that several budgets would have to pay for.
fn one_payer(plans: &[&Plan], workload: &Workload) -> Result<(), QueryError> {
    let mut paying = plans.iter().enumerate().filter(|(_, plan)| !plan.rungs.is_empty());
    let Some((first, payer)) = paying.next() else { return Ok(()) };
    let Some((other, plan)) = paying.find(|(_, plan)| plan.dataset != payer.dataset) else { return Ok(()) };
    Err(QueryError::asked(
        format!(
            "{} is paid for from the budget of `{}`, and {} from that of `{}`, which are separate",
            workload.called(first),
            payer.dataset,
            workload.called(other),
            plan.dataset
        ),
        "ask in one file about data sets that pay from one budget, and in another about the others",
    ))
}
