//! A ledger in memory: a filter for each unit that has a budget, and the list of what was charged.
//!
//! It lasts as long as the process does, so it is for tests, demonstrations and programs that keep their own books.

use super::refusal;
use crate::filter::Filter;
use std::collections::BTreeMap;
use whit_core::release::{CommitError, Reservation};
use whit_core::{Charge, Ledger, Refusal, Unit};

/// One charge, and whether its work was done.
#[derive(Debug, Clone, PartialEq)]
pub struct Entry {
    /// What was charged, rung by rung.
    pub charge: Charge,
    /// Whether a value left. A charge whose work never finished stays spent all the same.
    pub committed: bool,
}

/// A ledger that forgets everything when the process ends.
///
/// A charge is all or nothing: if the budget of one rung says no, no rung is charged. Rungs without a budget are written down and
/// not limited; a charge of which no rung has a budget is refused, because nobody would ever say no to it.
///
/// ```
/// use whit_account::filter::{Currency, Filter};
/// use whit_account::ledger::Memory;
/// use whit_core::mechanism::laplace::Laplace;
/// use whit_core::{Bound, Change, Rung, Support, Unit, release};
///
/// let user = Unit::user("id", Change::AddRemove);
/// let mut ledger = Memory::new().with_budget(user.clone(), Filter::new(0.25, 0.0, Currency::Sum)?);
///
/// let rows = Bound::Coordinates { groups: 1, low: 0, high: 1, support: Support::NonNegative };
/// let count = Laplace::for_epsilon(rows, Change::AddRemove, "0.1".parse()?)?;
/// let rungs = [Rung { unit: user, holds: 1, disjoint: false }];
/// for _ in 0..2 {
///     release(&count, &1_234, &rungs, &mut ledger, &mut whit_noise::Os)?;
/// }
/// let refused = release(&count, &1_234, &rungs, &mut ledger, &mut whit_noise::Os).unwrap_err();
/// assert!(refused.to_string().starts_with("this release needs ε = 0.1"), "{refused}");
/// assert_eq!(ledger.entries().len(), 2);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, Default)]
pub struct Memory {
    budgets: BTreeMap<Unit, Filter>,
    entries: Vec<Entry>,
}

impl Memory {
    /// A ledger without budgets, which refuses everything.
    pub fn new() -> Self {
        Self::default()
    }

    /// The same with a budget for a unit, in place of one that it may have had.
    #[must_use]
    pub fn with_budget(mut self, unit: Unit, budget: Filter) -> Self {
        self.budgets.insert(unit, budget);
        self
    }

    /// The filter that watches over a unit.
    pub fn budget(&self, unit: &Unit) -> Option<&Filter> {
        self.budgets.get(unit)
    }

    /// Everything that was charged, in order.
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// Charges each rung in turn; on a "no" says which.
    fn charge_all(&mut self, charge: &Charge) -> Result<(), Refusal> {
        for (rung, cost) in charge {
            let Some(filter) = self.budgets.get_mut(&rung.unit) else { continue };
            filter.charge(cost).map_err(|refused| refusal(refused, rung.unit.to_string(), filter, cost))?;
        }
        Ok(())
    }
}

impl Ledger for Memory {
    fn reserve(&mut self, charge: &Charge) -> Result<Reservation, Refusal> {
        if !charge.iter().any(|(rung, _)| self.budgets.contains_key(&rung.unit)) {
            let unit = charge.first().map_or_else(|| "unit".to_owned(), |(rung, _)| rung.unit.to_string());
            return Err(Refusal { asked: "a budget".to_owned(), left: "none".to_owned(), unit, available: None });
        }
        let marks: Vec<_> = self.budgets.values().map(Filter::mark).collect();
        if let Err(refusal) = self.charge_all(charge) {
            self.budgets.values_mut().zip(marks).for_each(|(filter, mark)| filter.restore(mark));
            return Err(refusal);
        }
        self.entries.push(Entry { charge: charge.clone(), committed: false });
        Ok(Reservation::new(self.entries.len() as u64 - 1))
    }

    fn commit(&mut self, reservation: Reservation, _: &[u8]) -> Result<(), CommitError> {
        if let Some(entry) = self.entries.get_mut(reservation.number() as usize) {
            entry.committed = true;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::filter::Currency;
    use whit_core::{Change, Cost, Epsilon, Rung};

    fn pure(epsilon: f64) -> Cost {
        Cost::Pure { epsilon: Epsilon::new(epsilon).unwrap() }
    }

    fn rungs() -> [Rung; 2] {
        [
            Rung { unit: Unit::element("user", "domain"), holds: 1, disjoint: false },
            Rung { unit: Unit::user("user", Change::Replace), holds: 10, disjoint: false },
        ]
    }

    fn ledger() -> Memory {
        let [element, user] = rungs();
        Memory::new()
            .with_budget(element.unit, Filter::new(1.0, 0.0, Currency::Sum).unwrap())
            .with_budget(user.unit, Filter::new(2.0, 1e-6, Currency::Concentrated).unwrap())
    }

    fn charge(element: f64, user: f64) -> Charge {
        let [first, second] = rungs();
        vec![(first, pure(element)), (second, pure(user))]
    }

    #[test]
    fn a_crash_leaves_the_reservation_spent() {
        let mut ledger = ledger();
        let dropped = ledger.reserve(&charge(0.6, 0.1)).unwrap();
        drop(dropped); // the process dies here
        assert!(!ledger.entries()[0].committed);
        assert!(ledger.reserve(&charge(0.6, 0.1)).is_err(), "0.6 of 1 is gone");
        let kept = ledger.reserve(&charge(0.3, 0.1)).unwrap();
        ledger.commit(kept, b"").unwrap();
        assert!(ledger.entries()[1].committed && !ledger.entries()[0].committed);
    }

    #[test]
    fn a_refused_reservation_charges_no_rung() {
        let mut ledger = ledger();
        let before: Vec<f64> = rungs().iter().map(|rung| ledger.budget(&rung.unit).unwrap().spent()).collect();
        // The element's budget would allow it, the user's does not.
        let refused = ledger.reserve(&charge(0.5, 7.0)).unwrap_err();
        assert_eq!(refused.unit, rungs()[1].unit.to_string());
        let after: Vec<f64> = rungs().iter().map(|rung| ledger.budget(&rung.unit).unwrap().spent()).collect();
        assert_eq!(before, after);
        assert!(ledger.entries().is_empty());
        let _ = ledger.reserve(&charge(0.5, 0.5)).unwrap();
    }

    #[test]
    fn one_unit_charged_twice_at_once_pays_twice() {
        let mut ledger = ledger();
        let [element, _] = rungs();
        let twice = vec![(element.clone(), pure(0.6)), (element.clone(), pure(0.6))];
        assert!(ledger.reserve(&twice).is_err());
        assert_eq!(ledger.budget(&element.unit).unwrap().spent(), 0.0);
    }

    #[test]
    fn what_no_budget_watches_over_is_refused() {
        let refused = Memory::new().reserve(&charge(0.1, 0.1)).unwrap_err();
        assert!(refused.to_string().contains("needs a budget"), "{refused}");
        assert!(ledger().reserve(&Vec::new()).is_err());
    }
}
