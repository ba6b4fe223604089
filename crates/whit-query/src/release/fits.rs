//! Whether a question fits its budgets, and with which ε it would.

use super::{Tables, of_ledger};
use crate::error::QueryError;
use crate::explain::{BudgetFit, Fits, Preview};
use crate::plan::Asking;
use crate::sanitise::calibrate;
use whit_account::ledger::{Books, Fit};
use whit_core::declare::{QueryDefaults, UnitDeclaration};
use whit_core::{Charge, Rung, Unit};

/// The least ε that can be asked for.
const LEAST_EPSILON: f64 = *QueryDefaults::EPSILON.start();

/// The largest ε below the one that was refused with which the same question would fit now, as it is written: that very text was tried.
pub(crate) fn largest(refused: f64, mut fits: impl FnMut(f64) -> bool) -> Option<String> {
    // Below this nobody can ask: see `--epsilon`.
    let (mut low, mut high) = ((refused * 1e-4).max(LEAST_EPSILON), refused);
    if low >= high || !fits(low) {
        return None;
    }
    while high / low > 1.000_1 {
        let middle = (low * high).sqrt();
        if fits(middle) { low = middle } else { high = middle }
    }
    // Four digits, rounded down; what is rounded down fits if more did, and that is looked at all the same.
    let digits = (3 - low.log10().floor() as i32).clamp(0, 15) as usize;
    let scale = 10_f64.powi(digits as i32);
    let text = |steps: f64| format!("{:.digits$}", ((low * scale).floor() - steps) / scale);
    let told = [0.0, 1.0, 2.0, 10.0]
        .into_iter()
        .map(text)
        .find(|told| told.parse().is_ok_and(|told| told >= LEAST_EPSILON && fits(told)))?;
    Some(if told.contains('.') { told.trim_end_matches('0').trim_end_matches('.').to_owned() } else { told })
}

impl Tables {
    /// How a question that was previewed stands to every budget, and with which ε it would fit where one says no. `books` are nothing where no ledger was made yet.
    pub fn fits(
        &self,
        sql: &str,
        preview: &Preview,
        asking: &Asking,
        books: Option<&mut Books>,
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
