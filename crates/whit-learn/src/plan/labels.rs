//! Plans for labels that are reported by randomised response before the first step.

use super::{Draft, Plan, PlanError, SNAPPING, SUMMATION};
use crate::reporting::{LabelReporting, PlannedLabels};
use whit_core::{Cost, Kind, Rung};

impl Draft {
    /// The plan for noisy labels of so many rows of these users, which are reported in this way before the first step: steps have no noise and cost nothing, since they
    /// read nothing else that is private. Only a [`Learner`](crate::Learner) whose labels are all noisy takes a step of it, and it takes no labels but those that
    /// [`LabelRun`](crate::release::LabelRun) reported so, of rows that move no more labels at once than these.
    pub fn after_labels(
        self,
        reporting: LabelReporting,
        rows: usize,
        users: Option<&[u64]>,
    ) -> Result<Plan, PlanError> {
        let protected = self.ladder.protected().unit.clone();
        if protected.kind() != Kind::Label {
            return Err(PlanError::NotLabels { unit: protected });
        }
        // The noise is not drawn.
        let mut plan = self.checked(1.0, SUMMATION + SNAPPING)?;
        let price = reporting.price(rows, users, &plan.ladder)?;
        plan.labels = Some(PlannedLabels { reporting, price });
        Ok(plan)
    }
}

impl Plan {
    /// Whether it is for noisy labels, released before the first step, so that steps have no noise.
    pub fn has_noisy_labels(&self) -> bool {
        self.labels.is_some()
    }

    /// How labels are made noisy before the first step, and at which price.
    pub(crate) fn labels(&self) -> Option<&PlannedLabels> {
        self.labels.as_ref()
    }

    /// What reporting labels costs a rung: everything where they are not, or where the noise is not secret, or the unit is not on the ladder.
    pub(crate) fn label_cost(&self, rung: &Rung) -> Cost {
        let known = self.source.protects() && self.ladder.rungs().iter().any(|known| known.unit == rung.unit);
        self.labels.as_ref().filter(|_| known).map_or(Cost::Everything, |labels| labels.price.of(rung))
    }
}
