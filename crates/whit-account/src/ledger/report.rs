//! What was spent and what is left: by rung, by analyst, over time, and as other accountants see it.

use super::budget::{Budget, costs_for};
use super::entry::{Entry, State};
use super::error::LedgerError;
use super::segments::Segments;
use super::spending::{SliceLevel, Spending, currency_error, ranges_of};
use super::watch::Watches;
use crate::accountant::{self, Name};
use crate::filter::{Currency, Filter};
use std::collections::BTreeSet;
use whit_core::digits::number_of;
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
    /// ε so far, at δ; where units lie in slices, in the slice in which it is largest.
    pub spent: f64,
    /// The δ at which ε is reported: the budget's.
    pub delta: f64,
    /// The budget, where there is one.
    pub budget: Option<Budget>,
    /// ε of the largest release that would still fit into the budget, in every slice of it.
    pub left: Option<f64>,
    /// The slices by what was spent in them, most first; none where units do not lie in slices.
    pub slices: Vec<SliceLevel>,
}

/// What was spent, by rung and by analyst.
#[derive(Debug, Clone, PartialEq)]
pub struct SpendingReport {
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

impl SpendingReport {
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
                by_analyst.push(match budgets.iter().find(own) {
                    Some(budget) => Account::of(entries, budget)?,
                    None => metered(entries, &Account { analyst: Some(analyst.to_owned()), ..account.clone() })?,
                });
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
    /// The moments of these entries, of one budget.
    pub(super) fn all(entries: &[Entry], budget: &Budget) -> Result<Vec<Self>, LedgerError> {
        Self::read(entries, || Meter::of(budget))
    }

    /// The same of one account, also where it has no budget.
    pub(super) fn of(entries: &[Entry], account: &Account) -> Result<Vec<Self>, LedgerError> {
        Self::read(entries, || Meter::for_account(account))
    }

    fn read(entries: &[Entry], fresh: impl Fn() -> Result<Meter, LedgerError>) -> Result<Vec<Self>, LedgerError> {
        let mut meter = fresh()?;
        let mine: Vec<&Entry> = entries.iter().filter(|entry| meter.applies(entry)).collect();
        // (time, voided, entry): in the order of time; of what happens at once, reservations come first.
        let mut events: Vec<(i64, bool, &Entry)> = mine.iter().map(|&entry| (entry.time, false, entry)).collect();
        for &entry in &mine {
            if let State::Void { time, .. } = entry.state {
                events.push((time.max(entry.time), true, entry));
            }
        }
        events.sort_by_key(|&(time, voided, entry)| (time, voided, entry.number));
        let (mut moments, mut standing) = (Vec::new(), Vec::new());
        for (time, voided, entry) in events {
            if voided {
                standing.retain(|other: &&Entry| other.number != entry.number);
                meter = fresh()?;
                standing.iter().try_for_each(|other| meter.add(other))?;
            } else {
                standing.push(entry);
                meter.add(entry)?;
            }
            moments.push(Self { time, entry: entry.number, epsilon: meter.spent() });
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
            let counted: Vec<&Entry> = entries.iter().filter(counts).collect();
            let loss = if account.unknown > 0 {
                let releases = number_of(account.releases, "release");
                Err(format!("{} of {releases} say nothing of this unit", account.unknown))
            } else {
                worst_loss(&account, &counted, name)
            };
            Self { account, accountant: name, loss }
        };
        Ok(accounts(entries, budgets)?.into_iter().map(price).collect())
    }
}

/// What an accountant makes of entries in the slice in which that is most; of all of them together where units do not lie in slices.
fn worst_loss(account: &Account, entries: &[&Entry], name: Name) -> Result<Loss, String> {
    let limit = || Budget::new(&account.dataset, account.unit.clone(), UNLIMITED, account.delta);
    let budget = account.budget.clone().unwrap_or_else(limit);
    let mut slices: Segments<Vec<&Cost>> = Segments::all(Vec::new());
    for (rung, cost) in entries.iter().flat_map(|entry| costs_for(&account.unit, &entry.charge)) {
        slices.touch(ranges_of(&budget, rung), |costs| costs.push(cost));
    }
    // Many slices have seen the same, and each is asked once.
    let mut lists: Vec<&Vec<&Cost>> = Vec::new();
    for (_, costs) in slices.iter() {
        if !lists.contains(&costs) {
            lists.push(costs);
        }
    }
    let mut worst: Option<Loss> = None;
    for costs in lists {
        let costs = Cost::Series(costs.iter().map(|&cost| cost.clone()).collect());
        let loss = accountant::epsilon(&costs, account.delta, name).map_err(|why| why.to_string())?;
        // The loss of all is at most the largest upper bound, and at least the largest lower one.
        worst = Some(match worst {
            Some(so_far) if so_far.upper >= loss.upper => Loss { lower: so_far.lower.max(loss.lower), ..so_far },
            Some(so_far) => Loss { lower: so_far.lower.max(loss.lower), ..loss },
            None => loss,
        });
    }
    worst.ok_or_else(|| "there is no slice".to_owned())
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
        found.push(metered(entries, &empty(&Budget::new(dataset, unit.clone(), UNLIMITED, delta), entries))?);
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
    match watches.spending(budget, entries, voids) {
        Ok(spending) => {
            (account.spent, account.left) = (spending.spent(), Some(spending.left()));
            account.slices = spending.levels();
        }
        Err(LedgerError::Unknown { .. }) => (account.spent, account.left) = (f64::INFINITY, Some(0.0)),
        Err(error) => return Err(error),
    }
    Ok(account)
}

/// What adds up the loss of a unit: one filter in the currency of its budget, or several where nobody limits it.
///
/// Each of several bounds the whole at its share of δ, so the least of them counts. What a filter says was spent depends on how large a budget is by its Rényi orders alone, and where
/// there is none these are spread over all that may be best.
struct Meter {
    /// What is added up: this data set's, and of this analyst where one is named.
    of: Budget,
    filters: Vec<Spending>,
}

impl Meter {
    /// For a budget.
    fn of(budget: &Budget) -> Result<Self, LedgerError> {
        Ok(Self { of: budget.clone(), filters: vec![Spending::of(budget)?] })
    }

    /// For an account: in the currency of its unit's budget, where that has one.
    fn for_account(account: &Account) -> Result<Self, LedgerError> {
        match &account.budget {
            Some(budget) => Self::of(&Budget { analyst: account.analyst.clone(), ..budget.clone() }),
            None => Self::unlimited(account),
        }
    }

    /// For an account of a unit that nobody limits.
    fn unlimited(account: &Account) -> Result<Self, LedgerError> {
        let of = Budget::new(&account.dataset, account.unit.clone(), UNLIMITED, account.delta);
        let of = Budget { analyst: account.analyst.clone(), ..of };
        // ρ has a price for every kind of run; Rényi orders reward sampling. Where one of several filters is believed, δ is divided among them, as among the orders of one
        // (the module of filters says why). Nearly all of it is for what most releases are, so that one of them alone is reported as what it cost.
        let currencies =
            [(Currency::Gaussian, 0.98), (Currency::Concentrated, 0.01), (Currency::renyi_of_any_loss(), 0.01)];
        let filters = currencies.into_iter().map(|(currency, share)| {
            let delta = share * of.delta;
            Filter::with_aside(UNLIMITED, delta, 0.5 * delta, currency).map(|filter| Spending::with(filter, None))
        });
        let filters = filters.collect::<Result<_, _>>().map_err(|why| currency_error(&of, why))?;
        Ok(Self { of, filters })
    }

    fn applies(&self, entry: &Entry) -> bool {
        self.of.applies(&entry.dataset, &entry.analyst)
    }

    /// Adds what an entry cost. A filter that has no price for it says nothing from then on; an error where none is left.
    fn add(&mut self, entry: &Entry) -> Result<(), LedgerError> {
        let (mut why, of) = (Ok(()), &self.of);
        self.filters.retain_mut(|filter| match filter.add(of, entry) {
            Ok(()) => true,
            Err(error) => {
                why = Err(error);
                false
            }
        });
        if self.filters.is_empty() { why } else { Ok(()) }
    }

    fn spent(&mut self) -> f64 {
        self.filters.iter_mut().map(Spending::spent).fold(f64::INFINITY, f64::min)
    }
}

/// More than anybody may lose: no filter says no to what is only added.
const UNLIMITED: f64 = 1000.0;

/// What was lost by the unit and to the analyst of an account, in the currency of its budget where it has one, which is then not its own.
fn metered(entries: &[Entry], like: &Account) -> Result<Account, LedgerError> {
    let delta = if like.delta > 0.0 { like.delta } else { DELTA };
    let key = Budget::new(&like.dataset, like.unit.clone(), UNLIMITED, like.delta);
    let mut account = empty(&Budget { analyst: like.analyst.clone(), ..key }, entries);
    if account.unknown > 0 {
        account.spent = f64::INFINITY;
        return Ok(account);
    }
    let read = |meter: Result<Meter, LedgerError>| -> Result<f64, LedgerError> {
        let mut meter = meter?;
        let mine: Vec<&Entry> = entries.iter().filter(|entry| entry.counts() && meter.applies(entry)).collect();
        mine.into_iter().try_for_each(|entry| meter.add(entry))?;
        Ok(meter.spent())
    };
    account.spent = read(Meter::for_account(like)).or_else(|_| {
        account.delta = delta;
        read(Meter::unlimited(&Account { delta, ..like.clone() }))
    })?;
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
        slices: Vec::new(),
    }
}
