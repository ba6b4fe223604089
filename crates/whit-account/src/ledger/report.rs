//! What was spent and what is left: by rung, by analyst, over time, and as other accountants see it.

use super::budget::{Budget, costs_for};
use super::entry::{Entry, State};
use super::error::LedgerError;
use super::watch::{Watches, add, currency_error};
use crate::accountant::{self, Name};
use crate::filter::Filter;
use std::collections::BTreeSet;
use whit_core::{Cost, Loss, Unit};

/// Which entries to look at; all, if nothing is said.
///
/// ```
/// use whit_account::ledger::Which;
/// let hers = Which { analyst: Some("alice".into()), ..Which::default() };
/// assert_eq!(hers.dataset, None);
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Which {
    /// Those of one data set.
    pub dataset: Option<String>,
    /// Those of one analyst.
    pub analyst: Option<String>,
}

impl Which {
    /// That these entries know whom and what is asked for. Of a ledger that knows of nothing yet, nobody asks wrongly.
    pub(super) fn check(&self, entries: &[Entry]) -> Result<(), LedgerError> {
        type Of = fn(&Entry) -> &str;
        let asked: [(_, _, Of); 2] =
            [("data set", &self.dataset, |entry| &entry.dataset), ("analyst", &self.analyst, |entry| &entry.analyst)];
        for (what, name, of) in asked {
            let Some(name) = name else { continue };
            let known: BTreeSet<&str> = entries.iter().map(of).collect();
            if !known.is_empty() && !known.contains(name.as_str()) {
                let known = known.into_iter().map(str::to_owned).collect();
                return Err(LedgerError::Unheard { what, name: name.clone(), known });
            }
        }
        Ok(())
    }

    pub(super) fn takes(&self, entry: &Entry) -> bool {
        self.dataset.as_deref().is_none_or(|dataset| dataset == entry.dataset)
            && self.analyst.as_deref().is_none_or(|analyst| analyst == entry.analyst)
    }
}

/// What one unit of one data set has lost, to everybody or to one analyst.
#[derive(Debug, Clone, PartialEq)]
pub struct Account {
    /// The data set.
    pub dataset: String,
    /// The unit.
    pub unit: Unit,
    /// To whom; to everybody where there is none.
    pub analyst: Option<String>,
    /// How many releases count.
    pub releases: u64,
    /// How many of them say nothing of this unit, so that ε is infinite.
    pub unknown: u64,
    /// ε so far, at δ.
    pub spent: f64,
    /// The δ at which ε is reported: the budget's.
    pub delta: f64,
    /// The budget, where there is one.
    pub budget: Option<Budget>,
    /// ε of the largest release that would still fit into the budget.
    pub left: Option<f64>,
}

/// What was spent, by rung and by analyst.
#[derive(Debug, Clone, PartialEq)]
pub struct Statement {
    /// By data set and rung, and by analyst where one has a budget.
    pub accounts: Vec<Account>,
    /// By data set, rung and analyst.
    pub by_analyst: Vec<Account>,
    /// Where a budget was another than before.
    pub changes: Vec<BudgetChange>,
    /// How many entries were reserved and not committed: they stay spent.
    pub open: u64,
}

/// A budget that was in force with one entry and another that was with a later one.
#[derive(Debug, Clone, PartialEq)]
pub struct BudgetChange {
    /// The first entry under the new budget.
    pub entry: u64,
    /// The budget before.
    pub before: Budget,
    /// The budget after.
    pub after: Budget,
}

/// What had been spent when an entry was reserved or voided.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Moment {
    /// When, in milliseconds since 1970.
    pub time: i64,
    /// The entry.
    pub entry: u64,
    /// ε of all that counted then, at the budget's δ.
    pub epsilon: f64,
}

/// What an accountant says of all that was charged to one unit, next to what the budget's filter says.
#[derive(Debug, Clone, PartialEq)]
pub struct Reaccounted {
    /// What the filter says.
    pub account: Account,
    /// The accountant.
    pub accountant: Name,
    /// What it says, at the account's δ; the sentence where it has no answer.
    pub loss: Result<Loss, String>,
}

impl Statement {
    /// What these entries spent.
    pub(super) fn of(entries: &[Entry], budgets: &[Budget]) -> Result<Self, LedgerError> {
        let accounts = accounts(entries, budgets)?;
        let mut by_analyst = Vec::new();
        for account in accounts.iter().filter(|account| account.analyst.is_none()) {
            let own = |entry: &&Entry| entry.counts() && entry.dataset == account.dataset;
            let analysts: BTreeSet<&str> = entries.iter().filter(own).map(|entry| entry.analyst.as_str()).collect();
            for analyst in analysts {
                let own = |budget: &&Budget| {
                    budget.dataset == account.dataset
                        && budget.unit == account.unit
                        && budget.analyst.as_deref() == Some(analyst)
                };
                let mut meter = meter(account.budget.as_ref(), &account.dataset, &account.unit, account.delta);
                meter.analyst = Some(analyst.to_owned());
                let mut line = meter_account(entries, &meter)?;
                if let Some(budget) = budgets.iter().find(own) {
                    line = Account::of(entries, budget)?;
                }
                by_analyst.push(line);
            }
        }
        let open = entries.iter().filter(|entry| entry.state == State::Reserved).count() as u64;
        Ok(Self { accounts, by_analyst, changes: changes(entries), open })
    }
}

impl Account {
    /// What these entries spent of one budget, and what they left.
    pub(super) fn of(entries: &[Entry], budget: &Budget) -> Result<Self, LedgerError> {
        kept(entries, &mut Watches::default(), budget)
    }
}

impl Moment {
    /// The moments of these entries.
    pub(super) fn all(entries: &[Entry], budget: &Budget) -> Result<Vec<Self>, LedgerError> {
        let mine: Vec<&Entry> = entries.iter().filter(|entry| budget.applies(&entry.dataset, &entry.analyst)).collect();
        // (time, voided, entry): in the order of time; of what happens at once, reservations come first.
        let mut events: Vec<(i64, bool, &Entry)> = mine.iter().map(|&entry| (entry.time, false, entry)).collect();
        for &entry in &mine {
            if let State::Void { time, .. } = entry.state {
                events.push((time.max(entry.time), true, entry));
            }
        }
        events.sort_by_key(|&(time, voided, entry)| (time, voided, entry.number));
        let fresh = || budget.filter().map_err(|why| currency_error(budget, why));
        let (mut filter, mut moments, mut standing) = (fresh()?, Vec::new(), Vec::new());
        for (time, voided, entry) in events {
            if voided {
                standing.retain(|other: &&Entry| other.number != entry.number);
                filter = fresh()?;
                standing.iter().try_for_each(|other| add(&mut filter, budget, other))?;
            } else {
                standing.push(entry);
                add(&mut filter, budget, entry)?;
            }
            moments.push(Self { time, entry: entry.number, epsilon: filter.spent() });
        }
        Ok(moments)
    }
}

impl Reaccounted {
    /// What an accountant makes of these entries.
    pub(super) fn all(entries: &[Entry], name: Name, budgets: &[Budget]) -> Result<Vec<Self>, LedgerError> {
        let price = |account: Account| {
            let counts = |entry: &&Entry| {
                entry.counts()
                    && entry.dataset == account.dataset
                    && account.analyst.as_deref().is_none_or(|analyst| analyst == entry.analyst)
            };
            let counted = entries.iter().filter(counts);
            let costs: Vec<Cost> =
                counted.flat_map(|entry| costs_for(&account.unit, &entry.charge).into_iter().cloned()).collect();
            let loss = if account.unknown > 0 {
                Err(format!("{} of {} releases say nothing of this unit", account.unknown, account.releases))
            } else {
                accountant::epsilon(&Cost::Series(costs), account.delta, name).map_err(|why| why.to_string())
            };
            Self { account, accountant: name, loss }
        };
        Ok(accounts(entries, budgets)?.into_iter().map(price).collect())
    }
}

/// The budgets of the latest entry that each applied to.
pub(super) fn in_force(entries: &[Entry]) -> Vec<Budget> {
    let mut last: Vec<Budget> = Vec::new();
    let mut known = BTreeSet::new();
    for entry in entries.iter().rev() {
        for budget in entry.budgets.iter() {
            if known.insert((&budget.dataset, &budget.unit, &budget.analyst)) {
                last.push(budget.clone());
            }
        }
    }
    last.sort_by(|a, b| (&a.dataset, &a.unit, &a.analyst).cmp(&(&b.dataset, &b.unit, &b.analyst)));
    last
}

fn changes(entries: &[Entry]) -> Vec<BudgetChange> {
    let mut last: Vec<Budget> = Vec::new();
    let mut changes = Vec::new();
    for entry in entries {
        for after in entry.budgets.iter() {
            let same = |budget: &&mut Budget| {
                (&budget.dataset, &budget.unit, &budget.analyst) == (&after.dataset, &after.unit, &after.analyst)
            };
            match last.iter_mut().find(same) {
                Some(before) if before != after => {
                    changes.push(BudgetChange { entry: entry.number, before: before.clone(), after: after.clone() });
                    *before = after.clone();
                }
                Some(_) => {}
                None => last.push(after.clone()),
            }
        }
    }
    changes
}

/// One account for each budget, and one for each unit that was charged and has none.
pub(super) fn accounts(entries: &[Entry], budgets: &[Budget]) -> Result<Vec<Account>, LedgerError> {
    let mut watches = Watches::default();
    let mut found: Vec<Account> =
        budgets.iter().map(|budget| kept(entries, &mut watches, budget)).collect::<Result<_, _>>()?;
    let charged: BTreeSet<(&str, &Unit)> = entries
        .iter()
        .filter(|entry| entry.counts())
        .flat_map(|entry| entry.charge.iter().map(move |(rung, _)| (entry.dataset.as_str(), &rung.unit)))
        .collect();
    for (dataset, unit) in charged {
        let own = |account: &Account| account.dataset == dataset && account.unit == *unit && account.analyst.is_none();
        if found.iter().any(own) {
            continue;
        }
        // Reported at the δ of the data set's other budgets.
        let deltas = budgets.iter().filter(|budget| budget.dataset == dataset && budget.delta > 0.0);
        let delta = deltas.map(|budget| budget.delta).fold(f64::INFINITY, f64::min);
        let delta = if delta.is_finite() { delta } else { DELTA };
        found.push(meter_account(entries, &meter(None, dataset, unit, delta))?);
    }
    found.sort_by(|a, b| (&a.dataset, &a.unit, &a.analyst).cmp(&(&b.dataset, &b.unit, &b.analyst)));
    Ok(found)
}

/// The δ at which a unit's loss is reported where no budget of the data set names one.
const DELTA: f64 = 1e-6;

/// What a budget has spent and what it has left.
fn kept(entries: &[Entry], watches: &mut Watches, budget: &Budget) -> Result<Account, LedgerError> {
    let mut account = empty(budget, entries);
    let voids = entries.iter().filter(|entry| !entry.counts()).count() as u64;
    account.budget = Some(budget.clone());
    match watches.filter(budget, entries, voids) {
        Ok(filter) => (account.spent, account.left) = (filter.spent(), Some(filter.left())),
        Err(LedgerError::Unknown { .. }) => (account.spent, account.left) = (f64::INFINITY, Some(0.0)),
        Err(error) => return Err(error),
    }
    Ok(account)
}

/// A budget that nobody declared, so large that only its meter matters.
fn meter(like: Option<&Budget>, dataset: &str, unit: &Unit, delta: f64) -> Budget {
    let mut meter = Budget::new(dataset, unit.clone(), 1000.0, delta);
    if let Some(like) = like {
        meter.currency = like.currency;
    }
    meter
}

fn meter_account(entries: &[Entry], meter: &Budget) -> Result<Account, LedgerError> {
    let mut account = empty(meter, entries);
    if account.unknown > 0 {
        account.spent = f64::INFINITY;
        return Ok(account);
    }
    let read = |meter: &Budget| -> Result<Filter, LedgerError> {
        let mut filter = meter.filter().map_err(|why| currency_error(meter, why))?;
        let mine = |entry: &&Entry| entry.counts() && meter.applies(&entry.dataset, &entry.analyst);
        entries.iter().filter(mine).try_for_each(|entry| add(&mut filter, meter, entry))?;
        Ok(filter)
    };
    // ρ has a price for every kind of run, so it stands in where the usual currency has none.
    let filter = read(meter).or_else(|_| {
        let delta = if meter.delta > 0.0 { meter.delta } else { DELTA };
        account.delta = delta;
        read(&Budget { currency: super::CurrencyName::Concentrated, delta, ..meter.clone() })
    })?;
    account.spent = filter.spent();
    Ok(account)
}

fn empty(budget: &Budget, entries: &[Entry]) -> Account {
    let mine = entries.iter().filter(|entry| entry.counts() && budget.applies(&entry.dataset, &entry.analyst));
    let (mut releases, mut unknown) = (0, 0);
    for entry in mine {
        releases += 1;
        unknown += u64::from(costs_for(&budget.unit, &entry.charge).is_empty());
    }
    Account {
        dataset: budget.dataset.clone(),
        unit: budget.unit.clone(),
        analyst: budget.analyst.clone(),
        releases,
        unknown,
        spent: 0.0,
        delta: budget.delta,
        budget: None,
        left: None,
    }
}
