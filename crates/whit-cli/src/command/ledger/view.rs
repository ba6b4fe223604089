//! What the ledger tells, as plain values that tables, JSON and pictures share.

use crate::command::Error;
use serde::Serialize;
use whit::account::Name;
use whit::account::ledger::{
    Account, Books, Budget, CurrencyName, Fault, LedgerError, Reaccounted, State, Verified, Which, time_text,
};
use whit::{Cost, core::unit::Rung};
use whit_view::number::Exact;

/// What one unit has lost.
#[derive(Serialize)]
pub(super) struct AccountView {
    pub(super) dataset: String,
    pub(super) unit: String,
    pub(super) analyst: Option<String>,
    pub(super) releases: u64,
    #[serde(skip_serializing_if = "is_zero")]
    unknown: u64,
    #[serde(rename = "epsilon_spent")]
    pub(super) spent: Exact,
    #[serde(rename = "epsilon_left")]
    pub(super) left: Option<Exact>,
    pub(super) delta: f64,
    pub(super) budget: Option<BudgetView>,
}

#[derive(Serialize, Clone, Copy)]
pub(super) struct BudgetView {
    pub(super) epsilon: f64,
    pub(super) delta: f64,
    pub(super) currency: CurrencyName,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks by reference")]
fn is_zero(number: &u64) -> bool {
    *number == 0
}

impl AccountView {
    fn of(account: &Account) -> Self {
        let budget = account.budget.as_ref();
        Self {
            dataset: account.dataset.clone(),
            unit: account.unit.to_string(),
            analyst: account.analyst.clone(),
            releases: account.releases,
            unknown: account.unknown,
            spent: Exact(account.spent),
            left: account.left.map(Exact),
            delta: account.delta,
            budget: budget.map(|b| BudgetView { epsilon: b.epsilon, delta: b.delta, currency: b.currency }),
        }
    }
}

/// Everything that `whit ledger` shows.
#[derive(Serialize)]
pub(super) struct ShowView {
    ledger: String,
    pub(super) open: u64,
    void: u64,
    pub(super) accounts: Vec<AccountView>,
    pub(super) by_analyst: Vec<AccountView>,
    pub(super) changes: Vec<ChangeView>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) decisions: Vec<DecisionView>,
    pub(super) histories: Vec<HistoryView>,
    pub(super) releases: Vec<ReleaseView>,
}

#[derive(Serialize)]
pub(super) struct ChangeView {
    pub(super) entry: u64,
    pub(super) dataset: String,
    pub(super) unit: String,
    pub(super) epsilon_before: f64,
    pub(super) epsilon: f64,
    delta_before: f64,
    delta: f64,
}

/// What the owner decided about the ledger as a whole.
#[derive(Serialize)]
pub(super) struct DecisionView {
    pub(super) time: String,
    pub(super) reason: String,
}

/// ε over time for one unit.
#[derive(Serialize)]
pub(super) struct HistoryView {
    pub(super) dataset: String,
    pub(super) unit: String,
    pub(super) delta: f64,
    /// The budget's ε.
    pub(super) budget: Option<f64>,
    pub(super) moments: Vec<MomentView>,
}

#[derive(Serialize)]
pub(super) struct MomentView {
    time: String,
    /// In seconds since 1970.
    #[serde(skip)]
    pub(super) at: f64,
    entry: u64,
    pub(super) epsilon: Exact,
}

#[derive(Serialize)]
pub(super) struct ReleaseView {
    pub(super) entry: u64,
    pub(super) time: String,
    pub(super) dataset: String,
    pub(super) analyst: String,
    pub(super) state: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
    pub(super) question: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    partition: Option<String>,
    charge: Vec<RungView>,
}

#[derive(Serialize)]
struct RungView {
    unit: String,
    holds: u64,
    cost: Cost,
}

impl RungView {
    fn of((rung, cost): &(Rung, Cost)) -> Self {
        Self { unit: rung.unit.to_string(), holds: rung.holds, cost: cost.clone() }
    }
}

impl ShowView {
    pub(super) fn of(books: &Books, dataset: Option<&str>) -> Result<Self, Error> {
        let entries = books.entries(&Which { dataset: dataset.map(str::to_owned), analyst: None })?;
        let wanted = |name: &str| dataset.is_none_or(|dataset| dataset == name);
        let statement = books.statement(&books.budgets()?)?;
        let mut histories = Vec::new();
        for account in statement.accounts.iter().filter(|a| a.analyst.is_none() && wanted(&a.dataset)) {
            // Without a budget the unit is metered by one that is too large to matter.
            let meter = || Budget::new(&account.dataset, account.unit.clone(), 1000.0, account.delta);
            let moments = match books.history(&account.budget.clone().unwrap_or_else(meter)) {
                Ok(moments) => moments,
                Err(LedgerError::Unknown { .. } | LedgerError::Currency { .. }) => continue,
                Err(error) => return Err(error.into()),
            };
            histories.push(HistoryView {
                dataset: account.dataset.clone(),
                unit: account.unit.to_string(),
                delta: account.delta,
                budget: account.budget.as_ref().map(|budget| budget.epsilon),
                moments: moments
                    .iter()
                    .map(|moment| MomentView {
                        time: time_text(moment.time),
                        at: moment.time as f64 / 1000.0,
                        entry: moment.entry,
                        epsilon: Exact(moment.epsilon),
                    })
                    .collect(),
            });
        }
        let views = |accounts: &[Account]| -> Vec<AccountView> {
            accounts.iter().filter(|account| wanted(&account.dataset)).map(AccountView::of).collect()
        };
        let count = |word: &str| entries.iter().filter(|entry| entry.state.word() == word).count() as u64;
        let changes = statement.changes.iter().filter(|change| wanted(&change.after.dataset));
        Ok(Self {
            ledger: books.path().display().to_string(),
            open: count("reserved"),
            void: count("void"),
            accounts: views(&statement.accounts),
            by_analyst: views(&statement.by_analyst),
            changes: changes
                .map(|change| ChangeView {
                    entry: change.entry,
                    dataset: change.after.dataset.clone(),
                    unit: change.after.unit.to_string(),
                    epsilon_before: change.before.epsilon,
                    epsilon: change.after.epsilon,
                    delta_before: change.before.delta,
                    delta: change.after.delta,
                })
                .collect(),
            decisions: books
                .decisions()?
                .into_iter()
                .map(|decision| DecisionView { time: time_text(decision.time), reason: decision.reason })
                .collect(),
            histories,
            releases: entries
                .into_iter()
                .map(|entry| ReleaseView {
                    entry: entry.number,
                    time: time_text(entry.time),
                    state: entry.state.word(),
                    reason: match entry.state {
                        State::Void { reason, .. } => Some(reason),
                        State::Reserved | State::Committed { .. } => None,
                    },
                    charge: entry.charge.iter().map(RungView::of).collect(),
                    dataset: entry.dataset,
                    analyst: entry.analyst,
                    question: entry.question,
                    partition: entry.partition,
                })
                .collect(),
        })
    }

    /// How many releases there are, in words.
    pub(super) fn count(&self) -> String {
        let all = self.releases.len();
        let (first, last) = (self.releases.first(), self.releases.last());
        let (Some(first), Some(last)) = (first, last) else { return "nothing was released yet".to_owned() };
        let noun = if all == 1 { "release" } else { "releases" };
        let mut text = format!("{all} {noun} from {} to {}", &first.time[..10], &last.time[..10]);
        for (number, word) in [(self.open, "without a result"), (self.void, "void")] {
            if number > 0 {
                text = format!("{text}, {number} {word}");
            }
        }
        text
    }
}

/// What a sound ledger says.
#[derive(Serialize)]
pub(super) struct VerifyView {
    sound: bool,
    pub(super) events: u64,
    pub(super) entries: u64,
    pub(super) head: String,
    pub(super) accounts: Vec<AccountView>,
}

impl VerifyView {
    pub(super) fn of(verified: &Verified) -> Self {
        Self {
            sound: true,
            events: verified.events,
            entries: verified.entries,
            head: verified.head.to_string(),
            accounts: verified.accounts.iter().map(AccountView::of).collect(),
        }
    }
}

/// The first thing that is not as it was written.
#[derive(Serialize)]
pub(super) struct FaultView {
    sound: bool,
    event: Option<u64>,
    entry: Option<u64>,
    field: String,
    what: String,
}

impl FaultView {
    pub(super) fn of(fault: &Fault) -> Self {
        let Fault { event, entry, field, what } = fault.clone();
        Self { sound: false, event, entry, field, what }
    }
}

/// One unit as another accountant sees it.
#[derive(Serialize)]
pub(super) struct ReaccountView {
    pub(super) dataset: String,
    pub(super) unit: String,
    pub(super) analyst: Option<String>,
    pub(super) releases: u64,
    pub(super) delta: f64,
    pub(super) epsilon_filter: Exact,
    accountant: Name,
    pub(super) epsilon_upper: Option<Exact>,
    pub(super) epsilon_lower: Option<Exact>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) unsupported: Option<String>,
}

impl ReaccountView {
    pub(super) fn of(line: &Reaccounted) -> Self {
        let (account, loss) = (&line.account, line.loss.as_ref().ok());
        Self {
            dataset: account.dataset.clone(),
            unit: account.unit.to_string(),
            analyst: account.analyst.clone(),
            releases: account.releases,
            delta: account.delta,
            epsilon_filter: Exact(account.spent),
            accountant: line.accountant,
            epsilon_upper: loss.map(|loss| Exact(loss.upper)),
            epsilon_lower: loss.map(|loss| Exact(loss.lower)),
            unsupported: line.loss.as_ref().err().cloned(),
        }
    }
}
