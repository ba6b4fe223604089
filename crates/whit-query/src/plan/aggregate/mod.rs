//! SQL aggregates: each is one file, and this is the list of them.
//!
//! An aggregate's file has all that is its own, behind two traits. [`Aggregate`] is what a question can call: under which names, and how a call is planned,
//! which says which sums the engine takes over the rows ([`Measure`](super::Measure)s, integer vectors of which it is known how far one unit moves them).
//! [`Estimator`] is a call once it is planned: what is made of these sums when they have noise, with which interval, and in which words. No other file tells
//! one released aggregate from another, so whoever adds one writes its file, and two lines here: the module, and its place in `ALL`. (Which functions a sub-query inside
//! of a unit may call is another question, of the engine's: `track/group.rs`.)

mod call;
mod count;
mod distinct;
pub(crate) mod estimator;
mod keys;
mod logic;
mod mean;
mod order;
mod part;
mod reach;
mod spread;
mod sum;

pub(crate) use part::plan;

use crate::error::QueryError;
use call::Asked;
use datafusion::arrow::datatypes::DataType;
use datafusion::logical_expr::Expr;
use datafusion::logical_expr::expr::AggregateFunction;
use estimator::Estimator;
use part::Draft;
use std::sync::Arc;

/// All of them.
const ALL: &[&dyn Aggregate] =
    &[&count::Count, &distinct::Distinct, &sum::Sum, &mean::Mean, &spread::Spread, &order::Order, &logic::Logic];

/// What one aggregate of a question comes to.
#[derive(Debug, Clone)]
pub struct Statistic(StatisticKind);

/// What a statistic is made of.
#[derive(Debug, Clone)]
pub(crate) enum StatisticKind {
    /// Public columns only: computed exactly, by this aggregate expression over the rows.
    Exact(Box<Expr>),
    /// Measures that get noise.
    Noisy(Arc<dyn Estimator>),
}

impl Statistic {
    /// One that is made of noisy measures.
    fn noisy(estimate: impl Estimator + 'static) -> Self {
        Self(StatisticKind::Noisy(Arc::new(estimate)))
    }

    /// What it is made of.
    pub(crate) fn kind(&self) -> &StatisticKind {
        &self.0
    }

    /// What is made of noisy measures for it; nothing where it is exact.
    pub(crate) fn estimator(&self) -> Option<&dyn Estimator> {
        match &self.0 {
            StatisticKind::Noisy(estimate) => Some(estimate.as_ref()),
            StatisticKind::Exact(_) => None,
        }
    }

    /// Whether it reads public columns only, and so is exact.
    pub fn is_exact(&self) -> bool {
        matches!(self.0, StatisticKind::Exact(_))
    }

    /// The numbers of the measures that it is made of.
    pub fn measures(&self) -> Vec<usize> {
        self.estimator().map_or_else(Vec::new, Estimator::measures)
    }
}

/// One SQL aggregate, as questions call it.
pub(crate) trait Aggregate: Sync {
    /// What questions call it, as the engine spells it.
    fn names(&self) -> &'static [&'static str];

    /// What is suggested where something has no private form: its names as people write them.
    fn suggested(&self) -> &'static [&'static str] {
        &[]
    }

    /// Whether it is the one with DISTINCT.
    fn distinct(&self) -> bool {
        false
    }

    /// Whether constants may stand next to what it is of.
    fn has_parameters(&self, _name: &str) -> bool {
        false
    }

    /// Over public columns of these types: in a form that no order of rows changes, not in its last bit. In which order public values stand in a
    /// file may show what is private next to them. Nothing where there is no such form.
    fn exact(&self, _asked: &Asked<'_>, _types: &[DataType]) -> Option<Expr> {
        None
    }

    /// The measures that it is made of, and what is made of them.
    fn plan(&self, asked: &Asked<'_>, draft: &mut Draft<'_>) -> Result<Statistic, QueryError>;
}

/// The aggregate that a call asks for. DISTINCT finds its own where there is one.
fn of(call: &AggregateFunction) -> Option<&'static dyn Aggregate> {
    let named = || ALL.iter().copied().filter(|aggregate| aggregate.names().contains(&call.func.name()));
    named().find(|aggregate| aggregate.distinct() == call.params.distinct).or_else(|| named().next())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn what_has_no_private_form_is_answered_with_what_has() {
        let hint = call::no_private_form("regr_slope").hint;
        assert_eq!(
            hint.as_deref(),
            Some("use COUNT, SUM, AVG, VAR, STDDEV, MIN, MAX, MEDIAN or APPROX_PERCENTILE_CONT")
        );
        for name in ALL.iter().flat_map(|aggregate| aggregate.suggested()) {
            assert!(ALL.iter().any(|aggregate| aggregate.names().contains(&name.to_lowercase().as_str())), "{name}");
        }
    }

    #[test]
    fn no_two_aggregates_answer_to_one_name() {
        let mut met = BTreeSet::new();
        for aggregate in ALL {
            for name in aggregate.names() {
                assert!(met.insert((*name, aggregate.distinct())), "{name}");
            }
        }
    }
}
