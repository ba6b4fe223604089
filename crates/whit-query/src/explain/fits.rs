//! Whether a question fits its budgets, and with which ε it would.

use super::Preview;
use crate::error::{QueryError, of_ledger};
use crate::plan::Asking;
use crate::sanitise::calibrate;
use crate::source::Tables;
use serde::Serialize;
use whit_account::desk::largest;
use whit_account::ledger::{Fit, Register};
use whit_core::declare::UnitDeclaration;
use whit_core::{Charge, Rung, Unit};

/// How a question stands to one budget.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct BudgetFit {
    /// The unit.
    pub unit: String,
    /// For whom; for everybody together where there is none.
    pub analyst: Option<String>,
    /// The budget's ε.
    pub epsilon: f64,
    /// The budget's δ.
    pub delta: f64,
    /// ε left, as `whit ledger` tells it.
    #[serde(rename = "epsilon_left")]
    pub left: f64,
    /// Whether the question fits.
    pub fits: bool,
    /// What it would say, where it does not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub refusal: Option<String>,
}

/// How a question stands to all budgets.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct Fits {
    /// One after the other.
    pub budgets: Vec<BudgetFit>,
    /// The largest ε with which it would fit all of them, where it does not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub epsilon_that_fits: Option<String>,
}

impl Tables {
    /// How a question that was previewed stands to every budget, and with which ε it would fit where one says no. `books` are nothing where no ledger was made yet.
    pub fn fits(
        &self,
        sql: &str,
        preview: &Preview,
        asking: &Asking,
        books: Option<&mut dyn Register>,
        analyst: &str,
    ) -> Result<Fits, QueryError> {
        let dataset = &preview.dataset;
        let mut books = books;
        if preview.prices.is_empty() {
            return Ok(Fits::default());
        }
        let budgets = self.budgets(dataset)?;
        let units = self.warehouse.declaration().dataset(dataset)?.unit.as_ref().map(UnitDeclaration::units);
        let rung = |unit: &Unit| Rung { unit: unit.clone(), holds: 1, disjoint: false };
        let charge: Charge = units
            .into_iter()
            .flatten()
            .filter_map(|unit| {
                let price = preview.prices.iter().find(|price| price.unit == unit.to_string())?;
                Some((rung(&unit), price.cost.clone()))
            })
            .collect();
        let mut stand = |charge: &Charge| {
            if let Some(books) = &mut books {
                return books.fits((dataset, analyst), &budgets, charge).map_err(of_ledger);
            }
            let applying = budgets.iter().filter(|budget| budget.applies(dataset, analyst));
            let fits = applying.map(|budget| budget.fit(charge)).collect::<Result<Vec<_>, _>>();
            fits.map_err(|error| QueryError::failed(error.to_string()))
        };
        let fits = stand(&charge)?;
        let mut instead = None;
        let refused = fits.iter().any(|fit| fit.refusal.is_some());
        let logical = self.logical(sql)?;
        if refused && self.call(sql, &logical)?.is_none() {
            let plan = self.planned(sql, &logical, asking)?;
            let mut all =
                |charge: &Charge| stand(charge).is_ok_and(|fits| fits.iter().all(|fit| fit.refusal.is_none()));
            instead = largest(preview.epsilon, |epsilon| {
                calibrate(&plan, epsilon, preview.delta).is_ok_and(|calibrated| all(&calibrated.charge))
            });
        }
        let view = |fit: &Fit| BudgetFit {
            unit: fit.budget.unit.to_string(),
            analyst: fit.budget.analyst.clone(),
            epsilon: fit.budget.epsilon,
            delta: fit.budget.delta,
            left: fit.left,
            fits: fit.refusal.is_none(),
            refusal: fit.refusal.as_ref().map(ToString::to_string),
        };
        Ok(Fits { budgets: fits.iter().map(view).collect(), epsilon_that_fits: instead })
    }
}
