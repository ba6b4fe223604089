//! What it would cost to ask the same again and again, each time of data that has changed, as a dashboard does.

use super::Fits;
use crate::answer::{Price, price};
use serde::Serialize;

/// So many times the same, each of other data and with fresh noise, and so each charged.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Repeated {
    /// How many times.
    pub times: u64,
    /// What each rung would pay for all of them together.
    pub prices: Vec<Price>,
    /// What that is of each budget.
    pub budgets: Vec<RepeatedBudget>,
}

/// What asking so many times is of one budget.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RepeatedBudget {
    /// The unit.
    pub unit: String,
    /// For whom; for everybody together where there is none.
    pub analyst: Option<String>,
    /// The budget's ε.
    pub epsilon: f64,
    /// The budget's δ.
    pub delta: f64,
    /// The share of the whole budget that all of them take, as the budget counts; above 1 where they are more than there is of it. Infinite where it has no price for them.
    #[serde(with = "whit_core::persist::finite_or_word")]
    pub share: f64,
    /// Whether so many fit into what is left now.
    pub fits: bool,
    /// How many would, as far as that is counted.
    pub room: u64,
}

impl Repeated {
    /// Of what one asking would cost, and how it stands to the budgets.
    ///
    /// The prices are those of runs that are all fixed beforehand, at the δ of one of them; where that is too little for what each brings along, at as many times that δ.
    pub fn of(times: u64, prices: &[Price], fits: &Fits) -> Self {
        let all = |one: &Price| {
            let cost = one.cost.clone().repeat(times);
            let at = |delta: f64| price(one.unit.clone(), &cost, delta);
            let plain = at(one.delta);
            let each = (one.delta * times as f64).min(1.0 - f64::EPSILON);
            if plain.epsilon.is_finite() { plain } else { at(each) }
        };
        let budgets = fits.budgets.iter().map(|budget| RepeatedBudget {
            unit: budget.unit.clone(),
            analyst: budget.analyst.clone(),
            epsilon: budget.epsilon,
            delta: budget.delta,
            share: budget.share * times as f64,
            fits: budget.times >= times,
            room: budget.times,
        });
        Self { times, prices: prices.iter().map(all).collect(), budgets: budgets.collect() }
    }
}
