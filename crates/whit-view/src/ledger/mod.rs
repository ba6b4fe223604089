//! What a ledger says, as plain values that tables, JSON and pictures share.

mod picture;
mod table;

pub use table::{write_budgets, write_notes, write_reaccounted, write_releases, write_verified};

use crate::number::{Exact, number_of};
use crate::page::Report;
use crate::plot::Picture;
use serde::Serialize;
use whit::account::Name;
use whit::account::ledger::{
    Account, Budget, ChainFault, CurrencyName, LedgerError, Reaccounted, Register, SliceLevel, State, Verified, Which,
    time_text,
};
use whit::core::Kind;
use whit::core::unit::SliceKind;
use whit::{Cost, Rung};

/// What one unit has lost.
#[derive(Serialize)]
pub(crate) struct AccountView {
    pub(crate) dataset: String,
    pub(crate) unit: String,
    #[serde(skip)]
    pub(crate) kind: Kind,
    pub(crate) analyst: Option<String>,
    pub(crate) releases: u64,
    #[serde(skip_serializing_if = "is_zero")]
    unknown: u64,
    #[serde(rename = "epsilon_spent")]
    pub(crate) spent: Exact,
    #[serde(rename = "epsilon_left")]
    pub(crate) left: Option<Exact>,
    pub(crate) delta: f64,
    pub(crate) budget: Option<LedgerBudget>,
    /// The column by whose values the budget is kept apart.
    #[serde(rename = "slice", skip_serializing_if = "Option::is_none")]
    pub(crate) slice_column: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) slices: Vec<SliceLevelView>,
}

/// Slices in which the same was spent.
#[derive(Serialize)]
pub(crate) struct SliceLevelView {
    pub(crate) slices: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) number: Option<u64>,
    pub(crate) releases: u64,
    #[serde(rename = "epsilon_spent")]
    pub(crate) spent: Exact,
    #[serde(rename = "epsilon_left")]
    pub(crate) left: Exact,
}

impl SliceLevelView {
    fn of(level: &SliceLevel) -> Self {
        Self {
            slices: level.slices.clone(),
            number: level.number,
            releases: level.releases,
            spent: Exact(level.spent),
            left: Exact(level.left),
        }
    }
}

#[derive(Serialize, Clone, Copy)]
pub(crate) struct LedgerBudget {
    pub(crate) epsilon: f64,
    pub(crate) delta: f64,
    pub(crate) currency: CurrencyName,
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
            kind: account.unit.kind(),
            analyst: account.analyst.clone(),
            releases: account.releases,
            unknown: account.unknown,
            spent: Exact(account.spent),
            left: account.left.map(Exact),
            delta: account.delta,
            budget: budget.map(|b| LedgerBudget { epsilon: b.epsilon, delta: b.delta, currency: b.currency }),
            slice_column: budget.and_then(|b| b.slicing.as_ref()).map(|slicing| slicing.column.clone()),
            slices: account.slices.iter().map(SliceLevelView::of).collect(),
        }
    }
}

/// Everything that `whit ledger` shows.
#[derive(Serialize)]
pub struct ShowView {
    ledger: String,
    pub(crate) open: u64,
    void: u64,
    pub(crate) accounts: Vec<AccountView>,
    pub(crate) by_analyst: Vec<AccountView>,
    pub(crate) changes: Vec<ChangeView>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) decisions: Vec<DecisionView>,
    pub(crate) histories: Vec<HistoryView>,
    pub(crate) releases: Vec<ReleaseView>,
}

#[derive(Serialize)]
pub(crate) struct ChangeView {
    pub(crate) entry: u64,
    pub(crate) dataset: String,
    pub(crate) unit: String,
    pub(crate) epsilon_before: f64,
    pub(crate) epsilon: f64,
    pub(crate) delta_before: f64,
    pub(crate) delta: f64,
    pub(crate) currency_before: CurrencyName,
    pub(crate) currency: CurrencyName,
    /// The column by whose values it is kept apart, where it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) slice_before: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) slice: Option<String>,
}

/// The column of slices of a budget, and what its values are.
fn column_of(budget: &Budget) -> Option<String> {
    let kind = |kind: SliceKind| match kind {
        SliceKind::Number => "whole numbers",
        SliceKind::Day => "days",
        SliceKind::Text => "texts",
    };
    budget.slicing.as_ref().map(|slicing| format!("{} ({})", slicing.column, kind(slicing.kind)))
}

/// What the owner decided about the ledger as a whole.
#[derive(Serialize)]
pub(crate) struct DecisionView {
    pub(crate) time: String,
    pub(crate) reason: String,
}

/// ε over time for one unit.
#[derive(Serialize)]
pub(crate) struct HistoryView {
    pub(crate) dataset: String,
    pub(crate) unit: String,
    pub(crate) delta: f64,
    /// The budget's ε.
    pub(crate) budget: Option<f64>,
    pub(crate) moments: Vec<MomentView>,
}

#[derive(Serialize)]
pub(crate) struct MomentView {
    time: String,
    /// In seconds since 1970.
    #[serde(skip)]
    pub(crate) at: f64,
    entry: u64,
    pub(crate) epsilon: Exact,
}

#[derive(Serialize)]
pub(crate) struct ReleaseView {
    pub(crate) entry: u64,
    pub(crate) time: String,
    pub(crate) dataset: String,
    pub(crate) analyst: String,
    pub(crate) state: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
    pub(crate) question: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    partition: Option<String>,
    charge: Vec<ChargeView>,
}

#[derive(Serialize)]
struct ChargeView {
    unit: String,
    holds: u64,
    cost: Cost,
    #[serde(skip_serializing_if = "Option::is_none")]
    slices: Option<String>,
}

impl ChargeView {
    fn of((rung, cost): &(Rung, Cost)) -> Self {
        let slices = rung.slices.as_ref().map(ToString::to_string);
        Self { unit: rung.unit.to_string(), holds: rung.holds, cost: cost.clone(), slices }
    }
}

impl ShowView {
    /// Reads all of it from the books; of one data set where that is asked for, which they must know then.
    pub fn of(books: &dyn Register, dataset: Option<&str>) -> Result<Self, LedgerError> {
        let which = Which { dataset: dataset.map(str::to_owned), analyst: None };
        books.check_known(&which)?;
        let entries = books.entries(&which)?;
        let wanted = |name: &str| dataset.is_none_or(|dataset| dataset == name);
        let statement = books.statement(&books.budgets()?)?;
        let mut histories = Vec::new();
        for account in statement.accounts.iter().filter(|a| a.analyst.is_none() && wanted(&a.dataset)) {
            let moments = match books.history_of(account) {
                Ok(moments) => moments,
                Err(LedgerError::Unknown { .. } | LedgerError::Currency { .. }) => continue,
                Err(error) => return Err(error),
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
            ledger: books.file().map_or_else(|| "no file".to_owned(), |file| file.display().to_string()),
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
                    currency_before: change.before.currency,
                    currency: change.after.currency,
                    slice_before: column_of(&change.before),
                    slice: column_of(&change.after),
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
                    state: if entry.is_interrupted() { "interrupted" } else { entry.state.word() },
                    reason: match entry.state {
                        State::Void { reason, .. } => Some(reason),
                        State::Reserved | State::Committed { .. } => None,
                    },
                    charge: entry.charge.iter().map(ChargeView::of).collect(),
                    dataset: entry.dataset,
                    analyst: entry.analyst,
                    question: entry.question,
                    partition: entry.partition,
                })
                .collect(),
        })
    }

    /// ε over time, as steps under the budget.
    pub fn picture(&self) -> Picture {
        picture::of(&self.histories)
    }

    /// The same as a page of its own.
    pub fn page(&self) -> String {
        Report::new("Ledger").picture(self.picture().svg()).finish()
    }

    /// How many releases there are, in words.
    fn count(&self) -> String {
        let all = self.releases.len();
        let (first, last) = (self.releases.first(), self.releases.last());
        let (Some(first), Some(last)) = (first, last) else { return "nothing was released yet".to_owned() };
        let mut text = format!("{} from {} to {}", number_of(all, "release"), &first.time[..10], &last.time[..10]);
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
pub struct VerifyView {
    sound: bool,
    pub(crate) events: u64,
    pub(crate) entries: u64,
    pub(crate) head: String,
    pub(crate) accounts: Vec<AccountView>,
}

impl VerifyView {
    /// What was found to be as it was written.
    pub fn of(verified: &Verified) -> Self {
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
pub struct FaultView {
    sound: bool,
    event: Option<u64>,
    entry: Option<u64>,
    field: String,
    what: String,
}

impl FaultView {
    /// The fault, field by field.
    pub fn of(fault: &ChainFault) -> Self {
        let ChainFault { event, entry, field, what } = fault.clone();
        Self { sound: false, event, entry, field, what }
    }
}

/// One unit as another accountant sees it.
#[derive(Serialize)]
pub struct ReaccountView {
    pub(crate) dataset: String,
    pub(crate) unit: String,
    pub(crate) analyst: Option<String>,
    pub(crate) releases: u64,
    pub(crate) delta: f64,
    pub(crate) epsilon_filter: Exact,
    accountant: Name,
    pub(crate) epsilon_upper: Option<Exact>,
    pub(crate) epsilon_lower: Option<Exact>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) unsupported: Option<String>,
}

impl ReaccountView {
    /// One line of what was accounted again.
    pub fn of(line: &Reaccounted) -> Self {
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
