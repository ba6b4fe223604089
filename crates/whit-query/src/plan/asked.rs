//! A question as the ledger will know it: what it means, what it may cost, and which budgets watch over it. Nothing private is read.

use super::{Asking, Plan, meaning};
use crate::error::QueryError;
use crate::source::Tables;
use serde_json::json;
use whit_account::ledger::{Budget, Question};
use whit_core::Unit;

impl Tables {
    /// ε and δ that a question gets: what it asks for, or what is declared for questions of its data set.
    pub(crate) fn price_of(&self, dataset: &str, asking: &Asking) -> Result<(f64, f64), QueryError> {
        let dataset = self.warehouse.declaration().dataset(dataset)?;
        let defaults = dataset.query;
        let epsilon = asking.epsilon.or(defaults.and_then(|query| query.epsilon)).ok_or_else(|| {
            QueryError::asked(
                "nothing says how much this question may cost",
                format!(
                    "say it with `asking.epsilon = 0.5`, or declare query = {{ epsilon = 0.5 }} under [dataset.{}]",
                    dataset.name
                ),
            )
        })?;
        let budget = dataset.budgets.iter().map(|budget| budget.delta).filter(|&delta| delta > 0.0).reduce(f64::min);
        let delta = asking.delta.or(defaults.and_then(|query| query.delta)).or(budget).unwrap_or(0.0);
        Ok((epsilon, delta))
    }

    /// The budgets of a data set, as the ledger wants them.
    pub fn budgets(&self, dataset: &str) -> Result<Vec<Budget>, QueryError> {
        let declared = self.warehouse.declaration().dataset(dataset)?;
        let Some(unit) = &declared.unit else { return Ok(Vec::new()) };
        let units = unit.units();
        let mut budgets = Vec::new();
        for budget in &declared.budgets {
            let Some(unit) = units.iter().rev().find(|unit| unit.kind() == budget.kind) else { continue };
            let mut made = Budget::new(dataset, Unit::clone(unit), budget.epsilon, budget.delta)
                .along(self.slicing_of(dataset, unit));
            if let Some(analyst) = &budget.analyst {
                made = made.of_analyst(analyst);
            }
            if let Some(currency) = budget.currency.as_ref().filter(|_| budget.delta > 0.0) {
                made.currency = currency.parse().map_err(|error: whit_account::ledger::NoSuchCurrency| {
                    QueryError::asked(error.to_string(), "write gaussian, concentrated, renyi or sum")
                })?;
            }
            budgets.push(made);
        }
        Ok(budgets)
    }

    /// A planned question as the ledger knows it, but for the fingerprint of its data, and all data sets that it reads, in order.
    pub(crate) fn question_of(
        &self,
        plan: &Plan,
        sql: &str,
        asking: &Asking,
        analyst: &str,
    ) -> Result<(Question, Vec<String>), QueryError> {
        let (epsilon, delta) = self.price_of(&plan.dataset, asking)?;
        let confidence = asking.confidence()?;
        // Answers were once made from seeds too, and those without one are stored with this.
        let price = json!({ "epsilon": epsilon, "delta": delta, "confidence": confidence, "seed": null });
        let question = Question {
            dataset: plan.dataset.clone(),
            analyst: analyst.to_owned(),
            meaning: meaning::of(plan, &price, &self.warehouse)?,
            text: sql.to_owned(),
            fingerprint: String::new(),
            partition: self.partitions.get(&plan.dataset).cloned(),
        };
        // Also those that only a sub-query in a condition, an argument or a key reads.
        let declared = |name: &&String| self.warehouse.declaration().dataset(name).is_ok();
        let mut names: Vec<String> = plan.tables.iter().filter(declared).cloned().collect();
        names.sort();
        names.dedup();
        Ok((question, names))
    }
}
