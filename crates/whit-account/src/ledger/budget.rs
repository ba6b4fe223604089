//! Budgets as their owner declares them, and which of a charge's rungs answers to which.

use crate::accountant::Unsupported;
use crate::filter::{Currency, Filter};
use serde::{Deserialize, Serialize};
use std::fmt;
use whit_core::unit::Slicing;
use whit_core::{Change, Charge, Cost, Kind, Refusal, Rung, Unit};

/// In which currency a budget is kept, by name.
///
/// ```
/// use whit_account::ledger::CurrencyName;
/// assert_eq!("gaussian".parse::<CurrencyName>()?, CurrencyName::Gaussian);
/// assert!("euro".parse::<CurrencyName>().unwrap_err().to_string().contains("gaussian, concentrated, renyi or sum"));
/// # Ok::<(), whit_account::ledger::NoSuchCurrency>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum CurrencyName {
    /// μ²: best for Gaussian noise with some pure runs among it.
    Gaussian,
    /// ρ: takes every kind of run.
    Concentrated,
    /// Rényi divergences: rewards sampling.
    Renyi,
    /// ε and δ added up: the only one at δ = 0.
    Sum,
}

impl fmt::Display for CurrencyName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Gaussian => "gaussian",
            Self::Concentrated => "concentrated",
            Self::Renyi => "renyi",
            Self::Sum => "sum",
        })
    }
}

/// A word that names no currency.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("there is no currency `{0}`: a budget is kept in gaussian, concentrated, renyi or sum")]
pub struct NoSuchCurrency(pub String);

impl std::str::FromStr for CurrencyName {
    type Err = NoSuchCurrency;

    fn from_str(word: &str) -> Result<Self, NoSuchCurrency> {
        [Self::Gaussian, Self::Concentrated, Self::Renyi, Self::Sum]
            .into_iter()
            .find(|name| name.to_string() == word)
            .ok_or_else(|| NoSuchCurrency(word.to_owned()))
    }
}

/// What an owner allows one unit of a data set to lose: to everybody together, or to one analyst.
///
/// A budget for an analyst limits what that analyst is charged for. What was released to others is no secret from
/// anybody who asks the same, so it is the data set's own budget that protects; an analyst's keeps one from using it up.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Budget {
    /// The data set.
    pub dataset: String,
    /// The unit that is protected.
    pub unit: Unit,
    /// For whom; for all together where there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub analyst: Option<String>,
    /// ε.
    pub epsilon: f64,
    /// δ.
    pub delta: f64,
    /// What is added up.
    pub currency: CurrencyName,
    /// The slices in which its units lie, each in one, as the declaration has it: what reads some of them alone is charged to those alone. All is charged to all where there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub slicing: Option<Slicing>,
}

impl Budget {
    /// A budget for everybody together, in the default currency: [`CurrencyName::Gaussian`], or [`CurrencyName::Sum`] where δ is 0.
    ///
    /// ```
    /// use whit_account::ledger::{Budget, CurrencyName};
    /// use whit_core::Unit;
    /// let budget = Budget::new("visits", Unit::element("user_id", "domain"), 3.0, 1e-6);
    /// assert_eq!((budget.currency, budget.analyst.clone()), (CurrencyName::Gaussian, None));
    /// assert_eq!(budget.clone().of_analyst("alice").analyst.as_deref(), Some("alice"));
    /// ```
    #[must_use]
    pub fn new(dataset: &str, unit: Unit, epsilon: f64, delta: f64) -> Self {
        let currency = if delta == 0.0 { CurrencyName::Sum } else { CurrencyName::Gaussian };
        Self { dataset: dataset.to_owned(), unit, analyst: None, epsilon, delta, currency, slicing: None }
    }

    /// The same for one analyst only.
    #[must_use]
    pub fn of_analyst(self, analyst: &str) -> Self {
        Self { analyst: Some(analyst.to_owned()), ..self }
    }

    /// The same with slices in which its units lie, each in one: see [`lies_in_one_slice`](whit_core::declare::UnitDeclaration::lies_in_one_slice), on which the promise rests.
    #[must_use]
    pub fn along(self, slicing: Option<Slicing>) -> Self {
        Self { slicing, ..self }
    }

    /// A filter that has not been charged yet. Half of δ is set aside for the δ that approximate runs bring along; a sum shares all of it.
    pub fn filter(&self) -> Result<Filter, Unsupported> {
        let (epsilon, delta) = (self.epsilon, self.delta);
        let half = 0.5 * delta;
        match self.currency {
            CurrencyName::Sum => Filter::new(epsilon, delta, Currency::Sum),
            CurrencyName::Gaussian => Filter::with_aside(epsilon, delta, half, Currency::Gaussian),
            CurrencyName::Concentrated => Filter::with_aside(epsilon, delta, half, Currency::Concentrated),
            CurrencyName::Renyi => Filter::with_aside(epsilon, delta, half, Currency::renyi(epsilon, half)),
        }
    }

    /// Whether what this analyst asks of this data set is charged to this budget.
    pub(super) fn applies(&self, dataset: &str, analyst: &str) -> bool {
        self.dataset == dataset && self.analyst.as_deref().is_none_or(|own| own == analyst)
    }
}

/// How a charge stands to one budget.
#[derive(Debug, Clone, PartialEq)]
pub struct Fit {
    /// The budget.
    pub budget: Budget,
    /// What it has left for this charge: see [`Filter::left`].
    pub left: f64,
    /// The slice in which that is, such as "day = 2024-01-03", where it is one among others.
    pub slice: Option<String>,
    /// Its "no", where it would say that.
    pub refusal: Option<Refusal>,
    /// The share of the whole budget that it takes: see [`Filter::share`].
    pub share: f64,
    /// How often the same would fit, one after the other, as far as that is [counted](MOST_TIMES).
    pub times: u64,
}

/// Further than this nobody counts.
pub const MOST_TIMES: u64 = 1_000;

/// What a charge costs a unit: at its own rung, or at a rung whose unit contains it; empty where the charge says nothing of it.
pub(super) fn costs_for<'a>(unit: &Unit, charge: &'a Charge) -> Vec<(&'a Rung, &'a Cost)> {
    let units = || charge.iter().map(|(rung, _)| &rung.unit);
    let speaks = units().find(|&own| own == unit).or_else(|| units().find(|coarse| contains(coarse, unit)));
    let Some(speaks) = speaks else { return Vec::new() };
    charge.iter().filter(|(rung, _)| rung.unit == *speaks).map(|(rung, cost)| (rung, cost)).collect()
}

/// Whether whatever one unit `fine` may do to the data, one unit `coarse` may do too, so that a cost for `coarse` is one for `fine`.
///
/// # Why
/// A user under `replace` may exchange the user's rows for any others. One whose rows in one element become any others of that
/// element, or whose private columns do, is such a user. The same cannot be said of events: a row that is replaced may go
/// from one user to another, and one that is added may belong to a user who was not there, which changes the number of
/// users, and that is public under `replace`.
fn contains(coarse: &Unit, fine: &Unit) -> bool {
    if coarse.kind() != Kind::User || coarse.change() != Change::Replace {
        return false;
    }
    match fine.kind() {
        Kind::Element => fine.key().first() == coarse.key().first(),
        Kind::Feature | Kind::Label => fine.key() == coarse.key(),
        Kind::Event | Kind::User => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use whit_core::unit::{Rows, distance};
    use whit_core::{Epsilon, Rung};

    fn pure(epsilon: f64) -> Cost {
        Cost::Pure { epsilon: Epsilon::new(epsilon).unwrap() }
    }

    fn charge(units: &[(Unit, f64)]) -> Charge {
        let rung = |unit: &Unit| Rung { unit: unit.clone(), holds: 1, disjoint: false, slices: None };
        units.iter().map(|(unit, epsilon)| (rung(unit), pure(*epsilon))).collect()
    }

    fn costs_for<'a>(unit: &Unit, charge: &'a Charge) -> Vec<&'a Cost> {
        super::costs_for(unit, charge).into_iter().map(|(_, cost)| cost).collect()
    }

    #[test]
    fn a_unit_pays_at_its_own_rung_or_at_one_that_contains_it() {
        let (element, user) = (Unit::element("id", "day"), Unit::user("id", Change::Replace));
        let both = charge(&[(element.clone(), 0.1), (user.clone(), 2.0)]);
        assert_eq!(costs_for(&element, &both), [&pure(0.1)]);
        assert_eq!(
            costs_for(&Unit::element("id", "word"), &both),
            [&pure(2.0)],
            "another partition: as the whole user"
        );
        assert_eq!(costs_for(&Unit::label(&["id"], "ill"), &both), [&pure(2.0)]);
        assert!(costs_for(&Unit::element("other", "day"), &both).is_empty());
        assert!(costs_for(&Unit::event(Change::Replace), &both).is_empty());
        assert!(costs_for(&Unit::label(&[], "ill"), &both).is_empty(), "whose row it is may be the label");
        let added = charge(&[(Unit::user("id", Change::AddRemove), 2.0)]);
        assert!(costs_for(&element, &added).is_empty(), "to replace is more than to add or remove");
        let twice = charge(&[(user.clone(), 2.0), (user, 3.0)]);
        assert_eq!(costs_for(&element, &twice), [&pure(2.0), &pure(3.0)]);
    }

    /// The two sorts of containment, and the two that are none, on data small enough to look at.
    #[test]
    fn what_is_contained_is_a_neighbour_of_the_coarser_unit_too() {
        let rows = |rows: &[[i64; 2]]| {
            Rows::new(&["id", "day"], rows.iter().map(|row| row.to_vec()).collect()).unwrap().with_places(3)
        };
        let (before, user) = (rows(&[[1, 1], [1, 2], [2, 1]]), Unit::user("id", Change::Replace));
        let other_day = rows(&[[1, 1], [1, 2], [1, 2], [2, 1]]);
        assert_eq!(distance(&Unit::element("id", "day"), &before, &other_day).unwrap(), Some(1));
        assert_eq!(distance(&user, &before, &other_day).unwrap(), Some(1));
        let moved = rows(&[[2, 2], [1, 2], [2, 1]]);
        assert_eq!(distance(&Unit::event(Change::Replace), &before, &moved).unwrap(), Some(1));
        assert_eq!(distance(&user, &before, &moved).unwrap(), Some(2), "one event, two users");
    }

    #[test]
    fn every_currency_makes_a_filter_and_none_but_the_sum_goes_without_delta() {
        let unit = Unit::user("id", Change::Replace);
        for currency in [CurrencyName::Gaussian, CurrencyName::Concentrated, CurrencyName::Renyi, CurrencyName::Sum] {
            let mut budget = Budget::new("visits", unit.clone(), 1.0, 1e-6);
            budget.currency = currency;
            let mut filter = budget.filter().unwrap();
            filter.charge(&pure(0.9)).unwrap();
            assert!(filter.charge(&pure(0.2)).is_err(), "{currency}");
            budget.delta = 0.0;
            assert_eq!(budget.filter().is_ok(), currency == CurrencyName::Sum);
        }
    }
}
