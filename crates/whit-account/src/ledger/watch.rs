//! Budgets whose filters have seen every entry that counts against them.

use super::budget::{Budget, Fit, costs_for};
use super::entry::Entry;
use super::error::{Denied, LedgerError};
use super::spending::{Spending, units_of};
use whit_core::Charge;

/// So many budgets are watched at a time; when they change more often than that, the oldest are forgotten.
const WATCHED: usize = 64;

/// What was spent of each budget, kept from charge to charge so that only new entries are added.
#[derive(Debug, Clone, Default)]
pub(super) struct Watches {
    voids: u64,
    list: Vec<BudgetWatch>,
}

#[derive(Debug, Clone)]
struct BudgetWatch {
    budget: Budget,
    spending: Spending,
    /// So many entries have been looked at.
    upto: usize,
}

impl Watches {
    /// What was spent of a budget after all entries. `voids` counts what was taken back: a sum cannot be, so it is made anew.
    pub(super) fn spending(
        &mut self,
        budget: &Budget,
        entries: &[Entry],
        voids: u64,
    ) -> Result<&mut Spending, LedgerError> {
        if self.voids != voids {
            *self = Self { voids, list: Vec::new() };
        }
        let place = self.list.iter().position(|watch| watch.budget == *budget);
        let place = if let Some(place) = place {
            place
        } else {
            let spending = Spending::of(budget)?;
            if self.list.len() >= WATCHED {
                self.list.remove(0);
            }
            self.list.push(BudgetWatch { budget: budget.clone(), spending, upto: 0 });
            self.list.len() - 1
        };
        let watch = &mut self.list[place];
        for entry in &entries[watch.upto..] {
            if entry.counts() && budget.applies(&entry.dataset, &entry.analyst) {
                watch.spending.add(budget, entry)?;
            }
            watch.upto += 1;
        }
        Ok(&mut watch.spending)
    }

    /// What was spent of a budget of which a charge says something, after these entries, of which so many were voided.
    fn spending_for(
        &mut self,
        budget: &Budget,
        (entries, voids): (&[Entry], u64),
        charge: &Charge,
    ) -> Result<&mut Spending, LedgerError> {
        if costs_for(&budget.unit, charge).is_empty() {
            let (dataset, unit) = (budget.dataset.clone(), budget.unit.to_string());
            return Err(LedgerError::Silent { dataset, unit, units: units_of(charge) });
        }
        self.spending(budget, entries, voids)
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
            let spending = self.spending_for(budget, entries, charge)?;
            let (left, slice) = spending.left_for(budget, charge);
            let (refusal, times) = (spending.refusal(budget, charge), spending.times(budget, charge));
            let share = spending.share(budget, charge);
            Ok(Fit { budget: budget.clone(), left, slice, refusal, share, times })
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
            if let Some(refusal) = self.spending_for(budget, entries, charge)?.refusal(budget, charge) {
                return Err(Denied::Refused(refusal));
            }
        }
        Ok(())
    }
}
