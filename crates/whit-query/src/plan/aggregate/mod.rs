//! SQL aggregates: each is one file, and this is the list of them.
//!
//! An aggregate's file has all that is its own, behind a pair of traits that stand below. `Aggregate` is what a question can call: under which names, and how a
//! call is planned, which says which sums the engine takes over the rows ([`Measure`](super::Measure)s, integer vectors of which it is known how far one unit
//! moves them). `Estimator` is a call once it is planned: what is made of these sums when they have noise, with which interval, and in which words. They are two
//! because one comes out of the other: an aggregate is a constant of the program, without numbers of measures, and there is nothing to estimate before planning
//! has given these; a planned call has them, and cannot be planned again. In one trait half of the methods would have to fail in either.
//!
//! `ALL` is the only list: who may be called, which of them the engine has to be taught, which a sub-query inside of a unit may call, and what is suggested to
//! people, in messages and in the shell, is read off it. So whoever adds an aggregate writes its file, and two lines here: the module, and its place in `ALL`.

mod call;
mod count;
mod distinct;
mod domain;
pub(crate) mod estimator;
mod geomean;
mod keys;
mod logic;
mod mean;
mod moments;
mod order;
mod pair;
mod part;
mod reach;
mod spread;
mod sum;

pub(crate) use part::plan;

use super::Part;
use crate::answer::{Cell, Value};
use crate::error::QueryError;
use call::Asked;
use datafusion::arrow::datatypes::DataType;
use datafusion::common::Result as Outcome;
use datafusion::execution::{FunctionRegistry, SessionState};
use datafusion::logical_expr::expr::AggregateFunction;
use datafusion::logical_expr::{AggregateUDF, Expr};
use estimator::NoisyMeasures;
use part::Draft;
use serde_json::Value as Json;
use std::fmt::Debug;
use std::sync::Arc;

/// All of them.
const ALL: &[&dyn Aggregate] = &[
    &count::Count,
    &distinct::Distinct,
    &distinct::DistinctSum,
    &sum::Sum,
    &mean::Mean,
    &geomean::Geomean,
    &spread::Spread,
    &pair::Pair,
    &order::Order,
    &logic::Logic,
];

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

    /// Which of its names a sub-query inside of a unit may call too: there the engine computes it, of the values alone and in no order.
    fn inside(&self) -> &'static [&'static str] {
        &[]
    }

    /// The function itself, where the engine has none of that name.
    fn function(&self) -> Option<AggregateUDF> {
        None
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

/// One call of an aggregate, once it is planned: which measures it is made of, what they come to with their noise, and what is said of it. Numbers of measures
/// are those of their part.
pub(crate) trait Estimator: Debug + Send + Sync {
    /// The measures that it is made of: plain numbers, or one tree.
    fn measures(&self) -> Vec<usize>;

    /// What it is in the meaning of a question. That is a format: whoever changes it has stored answers paid for again.
    fn meaning(&self) -> Json;

    /// Values and intervals of some groups.
    fn cells(&self, noisy: &NoisyMeasures<'_>, groups: &[usize]) -> Result<Vec<Cell>, QueryError>;

    /// The values alone of so many groups, where they can be had without intervals and faster; nothing where it is read from a tree.
    fn values(&self, noisy: &NoisyMeasures<'_>, groups: usize) -> Result<Option<Vec<Value>>, QueryError> {
        let cells = self.cells(noisy, &(0..groups).collect::<Vec<_>>())?;
        Ok(Some(cells.into_iter().map(|cell| cell.value).collect()))
    }

    /// Whether it is its only measure, in steps: the noise of that is then its own.
    fn is_its_measure(&self) -> bool {
        false
    }

    /// Whether a preview has to make up values over all of their bounds, because it is about how they are spread.
    fn is_about_spread(&self) -> bool {
        false
    }

    /// The most that it can come to over so many rows, or be off by if one knows nothing; nothing where no bounds are known.
    fn widest(&self, part: &Part, rows: f64) -> Option<f64>;

    /// How far a preview says that it is off, draw by draw, where that does not show in its values: as far as its intervals reach.
    fn previewed(&self, _noisy: &NoisyMeasures<'_>, _draws: usize) -> Result<Option<Vec<f64>>, QueryError> {
        Ok(None)
    }

    /// How far it may be off from this truth where an answer leaves all of a range open.
    fn furthest(&self, _truth: f64, (low, high): (f64, f64)) -> f64 {
        high - low
    }

    /// What a guess of its error rests on, for a group of so many rows.
    fn rests_on(&self, rows: &str) -> String {
        format!("for a group of {rows} rows, spread evenly over their bounds")
    }
}

/// The aggregates that are suggested to people, as they write them.
pub fn suggested() -> Vec<&'static str> {
    ALL.iter().flat_map(|aggregate| aggregate.suggested()).copied().collect()
}

/// Those that a sub-query inside of a unit may call, as the engine spells them.
pub(crate) fn inside_units() -> Vec<&'static str> {
    ALL.iter().flat_map(|aggregate| aggregate.inside()).copied().collect()
}

/// Teaches the engine those that it does not have, so that it can read a question with them.
pub(crate) fn register(state: &mut SessionState) -> Outcome<()> {
    for function in ALL.iter().filter_map(|aggregate| aggregate.function()) {
        state.register_udaf(Arc::new(function))?;
    }
    Ok(())
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
        let hint = call::no_private_form("bit_and").hint;
        assert_eq!(
            hint.as_deref(),
            Some(
                "use COUNT, SUM, AVG, GEOMEAN, VAR, STDDEV, CORR, COVAR_POP, REGR_SLOPE, MIN, MAX, MEDIAN or APPROX_PERCENTILE_CONT"
            )
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
