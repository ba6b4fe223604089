//! Filters that have seen every entry that counts against their budget.

use super::budget::{Budget, Fit, costs_for, fit, times};
use super::entry::Entry;
use super::error::{Denied, LedgerError};
use crate::accountant::Unsupported;
use crate::filter::Filter;
use whit_core::{Charge, Unit};

/// So many budgets are watched at a time; when they change more often than that, the oldest are forgotten.
const WATCHED: usize = 64;

/// One filter a budget, kept from charge to charge so that only new entries are added.
#[derive(Debug, Clone, Default)]
pub(super) struct Watches {
    voids: u64,
    list: Vec<BudgetWatch>,
}

#[derive(Debug, Clone)]
struct BudgetWatch {
    budget: Budget,
    filter: Filter,
    /// So many entries have been looked at.
    upto: usize,
}

impl Watches {
    /// The filter of a budget after all entries. `voids` counts what was taken back: a sum cannot be, so it is made anew.
    pub(super) fn filter(
        &mut self,
        budget: &Budget,
        entries: &[Entry],
        voids: u64,
    ) -> Result<&mut Filter, LedgerError> {
        if self.voids != voids {
            *self = Self { voids, list: Vec::new() };
        }
        let place = self.list.iter().position(|watch| watch.budget == *budget);
        let place = if let Some(place) = place {
            place
        } else {
            let filter = budget.filter().map_err(|why| currency_error(budget, why))?;
            if self.list.len() >= WATCHED {
                self.list.remove(0);
            }
            self.list.push(BudgetWatch { budget: budget.clone(), filter, upto: 0 });
            self.list.len() - 1
        };
        let watch = &mut self.list[place];
        for entry in &entries[watch.upto..] {
            if entry.counts() && budget.applies(&entry.dataset, &entry.analyst) {
                add(&mut watch.filter, budget, entry)?;
            }
            watch.upto += 1;
        }
        Ok(&mut watch.filter)
    }

    /// How a charge stands to one budget, after these entries, of which so many were voided.
    fn fit(&mut self, budget: &Budget, (entries, voids): (&[Entry], u64), charge: &Charge) -> Result<Fit, LedgerError> {
        if costs_for(&budget.unit, charge).is_empty() {
            let (dataset, unit) = (budget.dataset.clone(), budget.unit.to_string());
            return Err(LedgerError::Silent { dataset, unit, units: units_of(charge) });
        }
        Ok(fit(budget, self.filter(budget, entries, voids)?, charge))
    }

    /// How a charge stands to each of these budgets that applies to what this analyst asks of this data set.
    pub(super) fn fits(
        &mut self,
        (dataset, analyst): (&str, &str),
        budgets: &[Budget],
        entries: (&[Entry], u64),
        charge: &Charge,
    ) -> Result<Vec<Fit>, LedgerError> {
        let applying = budgets.iter().filter(|budget| budget.applies(dataset, analyst));
        let fit = |budget: &Budget| {
            let fit = self.fit(budget, entries, charge)?;
            Ok(Fit { times: times(budget, self.filter(budget, entries.0, entries.1)?, charge), ..fit })
        };
        applying.map(fit).collect()
    }

    /// Whether a charge fits all these budgets of a data set, and why not.
    pub(super) fn judge(
        &mut self,
        dataset: &str,
        budgets: &[&Budget],
        entries: (&[Entry], u64),
        charge: &Charge,
    ) -> Result<(), Denied> {
        if !budgets.iter().any(|budget| charge.iter().any(|(rung, _)| rung.unit == budget.unit)) {
            let kind = charge.first().map_or(whit_core::Kind::User, |(rung, _)| rung.unit.kind());
            return Err(LedgerError::NoBudget { dataset: dataset.to_owned(), units: units_of(charge), kind }.into());
        }
        for budget in budgets {
            if let Some(refusal) = self.fit(budget, entries, charge)?.refusal {
                return Err(Denied::Refused(refusal));
            }
        }
        Ok(())
    }
}

/// Adds what an entry cost, whether or not it fits: it was spent.
pub(super) fn add(filter: &mut Filter, budget: &Budget, entry: &Entry) -> Result<(), LedgerError> {
    let costs = costs_for(&budget.unit, &entry.charge);
    if costs.is_empty() {
        return Err(LedgerError::Unknown {
            dataset: budget.dataset.clone(),
            unit: budget.unit.to_string(),
            number: entry.number,
            units: units_of(&entry.charge),
        });
    }
    // All prices first, so that an entry is added as a whole or not at all.
    let prices: Result<Vec<_>, _> = costs.into_iter().map(|cost| filter.price(cost)).collect();
    for price in &prices.map_err(|why| currency_error(budget, why))? {
        filter.add(price);
    }
    Ok(())
}

pub(super) fn currency_error(budget: &Budget, why: Unsupported) -> LedgerError {
    LedgerError::Currency { dataset: budget.dataset.clone(), unit: budget.unit.to_string(), why }
}

/// The units of a charge, in words.
pub(super) fn units_of(charge: &Charge) -> String {
    let mut units: Vec<&Unit> = charge.iter().map(|(rung, _)| &rung.unit).collect();
    units.dedup();
    let words: Vec<String> = units.iter().map(ToString::to_string).collect();
    if words.is_empty() { "nothing".to_owned() } else { words.join(" and per ") }
}
