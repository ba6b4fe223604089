//! What the estimators would be charged with, before they are asked.

use super::{Calibration, HistogramPlan, HistogramQuestion, Hitters, HittersPlan, HittersQuestion};
use crate::error::QueryError;
use crate::estimate::histogram::Histogram;
use crate::plan::Asking;
use crate::release::Tables;
use whit_account::ledger::Question;
use whit_core::Charge;
use whit_core::release::charge_of;

/// A question as the ledger knows it, but for the fingerprint of its data, and what it would be charged with.
pub(crate) struct Charged<'a> {
    /// The question.
    pub(crate) question: Question,
    /// The data sets that it reads, in order.
    pub(crate) reads: Vec<String>,
    /// The charge.
    pub(crate) charge: Charge,
    /// The charge at another ε, where it can be had so.
    pub(crate) price: Box<dyn Fn(f64) -> Option<Charge> + 'a>,
}

/// What heavy hitters would be charged with.
pub(in crate::estimate) fn charged_for_hitters<'a>(
    tables: &'a Tables,
    question: &HittersQuestion,
    asking: &Asking,
    analyst: &str,
) -> Result<Charged<'a>, QueryError> {
    let plan = HittersPlan::new(tables, question, asking)?;
    let asked = plan.question(tables, question, analyst);
    let HittersPlan { declared, bound, hitters, .. } = plan;
    let charge = charge_of(&hitters, declared.ladder.rungs());
    let price = move |epsilon: f64| {
        let promise = Calibration { epsilon, ..declared.promise };
        let other = Hitters::for_promise(bound.clone(), declared.protected(), promise).ok()?;
        Some(charge_of(&other, declared.ladder.rungs()))
    };
    Ok(Charged { question: asked, reads: vec![question.dataset.clone()], charge, price: Box::new(price) })
}

/// What a histogram would be charged with.
pub(in crate::estimate) fn charged_for_histogram<'a>(
    tables: &'a Tables,
    question: &'a HistogramQuestion,
    asking: &Asking,
    analyst: &str,
) -> Result<Charged<'a>, QueryError> {
    let plan = HistogramPlan::new(tables, question, asking)?;
    let asked = plan.question(question, analyst);
    let HistogramPlan { declared, histogram, .. } = plan;
    let charge = charge_of(&histogram, declared.ladder.rungs());
    let price = move |epsilon: f64| {
        let promise = Calibration { epsilon, ..declared.promise };
        let bound = histogram.bound().clone();
        let other = Histogram::for_promise(bound, question.radius, declared.protected(), promise).ok()?;
        Some(charge_of(&other, declared.ladder.rungs()))
    };
    Ok(Charged { question: asked, reads: vec![question.dataset.clone()], charge, price: Box::new(price) })
}

/// Refuses a data set that pays from another's budget.
pub(super) fn check_payer(tables: &Tables, name: &str) -> Result<(), QueryError> {
    let dataset = tables.warehouse().declaration().dataset(name)?;
    let payer = &crate::source::payer(dataset, tables.warehouse().declaration()).name;
    if payer == name {
        return Ok(());
    }
    Err(QueryError::asked(
        format!(
            "`{name}` pays from the budget of `{payer}`, and items are counted for data sets with a budget of their own"
        ),
        "ask in SQL: COUNT(DISTINCT user) by item",
    ))
}
