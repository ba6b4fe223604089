//! `MIN`, `MAX`, `MEDIAN` and percentiles: all read from one tree of counts.

use super::call::Asked;
use super::estimator::NoisyMeasures;
use super::part::Draft;
use super::{Aggregate, Estimator, Statistic};
use crate::answer::{Cell, Value};
use crate::bound::WEIGHT;
use crate::error::QueryError;
use crate::evaluate::number::literal;
use crate::plan::measure::LEAVES;
use crate::plan::range::Range;
use crate::plan::track::{safe_value, said};
use crate::plan::{Grain, Leaves, Measure, Part, RowExpr, What};
use datafusion::arrow::datatypes::DataType;
use datafusion::logical_expr::Expr;
use serde_json::{Value as Json, json};
use whit_account::meaning::number;
use whit_core::Bound;
use whit_core::mechanism::quantile::Tree;

pub(super) struct Order;

impl Aggregate for Order {
    fn names(&self) -> &'static [&'static str] {
        &["min", "max", "median", "approx_median", "approx_percentile_cont", "percentile_cont"]
    }

    fn suggested(&self) -> &'static [&'static str] {
        &["MIN", "MAX", "MEDIAN", "APPROX_PERCENTILE_CONT"]
    }

    fn inside(&self) -> &'static [&'static str] {
        &["min", "max", "median"]
    }

    fn has_parameters(&self, name: &str) -> bool {
        matches!(name, "approx_percentile_cont" | "percentile_cont")
    }

    fn exact(&self, asked: &Asked<'_>, types: &[DataType]) -> Option<Expr> {
        if !matches!(asked.name(), "min" | "max" | "median") {
            return None;
        }
        if !types.iter().any(DataType::is_floating) {
            return Some(asked.expr.clone());
        }
        // Where NaN and the sign of zero stand among numbers is for the order of rows to say, so neither gets there.
        let mut call = asked.call.clone();
        call.params.args = call.params.args.into_iter().map(crate::evaluate::number::number).collect();
        Some(Expr::AggregateFunction(call).alias(asked.expr.schema_name().to_string()))
    }

    fn plan(&self, asked: &Asked<'_>, draft: &mut Draft<'_>) -> Result<Statistic, QueryError> {
        let argument = asked.value()?;
        let tree = tree(asked, argument, draft)?;
        let rank = match asked.name() {
            "min" => Rank::Least,
            "max" => Rank::Largest,
            "median" | "approx_median" => Rank::Quantile(0.5),
            _ => {
                let share = share(asked).filter(|share| (0.0..=1.0).contains(share));
                Rank::Quantile(share.ok_or_else(|| asked.refused("it needs a share between 0 and 1"))?)
            }
        };
        Ok(Statistic::noisy(RankEstimator { tree, rank }))
    }
}

/// What is read from a tree.
#[derive(Debug)]
struct RankEstimator {
    tree: usize,
    rank: Rank,
}

/// Which value it is.
#[derive(Debug)]
enum Rank {
    /// The least that can be distinguished from none.
    Least,
    /// The largest.
    Largest,
    /// The one below which this share of the rows lies.
    Quantile(f64),
}

impl Estimator for RankEstimator {
    fn measures(&self) -> Vec<usize> {
        vec![self.tree]
    }

    fn meaning(&self) -> Json {
        match self.rank {
            Rank::Least => json!({ "least": self.tree }),
            Rank::Largest => json!({ "largest": self.tree }),
            Rank::Quantile(share) => json!({ "quantile": number(share), "of": self.tree }),
        }
    }

    fn cells(&self, noisy: &NoisyMeasures<'_>, groups: &[usize]) -> Result<Vec<Cell>, QueryError> {
        let (tree, confidence) = (noisy.tree(self.tree)?, noisy.confidence());
        let cell = |&group: &usize| {
            let (nodes, deviation) = noisy.nodes(self.tree, &tree, group);
            let ranks = tree.read(nodes, deviation).map_err(|error| QueryError::failed(error.to_string()))?;
            let estimate = match self.rank {
                Rank::Least => ranks.smallest(confidence),
                Rank::Largest => ranks.largest(confidence),
                Rank::Quantile(share) => ranks.quantile(share, confidence),
            };
            Ok(Cell { value: Value::Float(estimate.at), low: Some(estimate.low), high: Some(estimate.high) })
        };
        groups.iter().map(cell).collect()
    }

    fn values(&self, _: &NoisyMeasures<'_>, _: usize) -> Result<Option<Vec<Value>>, QueryError> {
        Ok(None)
    }

    fn widest(&self, part: &Part, _: f64) -> Option<f64> {
        let (low, high) = part.bounds_of(self.tree)?;
        Some(if matches!(self.rank, Rank::Quantile(_)) { (high - low) / 2.0 } else { high - low })
    }

    fn furthest(&self, truth: f64, (low, high): (f64, f64)) -> f64 {
        if matches!(self.rank, Rank::Quantile(_)) { (truth - low).max(high - truth) } else { high - low }
    }
}

/// Below which share of the rows the value lies that is asked for.
fn share(asked: &Asked<'_>) -> Option<f64> {
    let share = asked.params().args.iter().find_map(|arg| match arg {
        Expr::Literal(value, _) => literal(value),
        _ => None,
    });
    let downwards = asked.params().order_by.first().is_some_and(|sort| !sort.asc);
    share.map(|share| if downwards { 1.0 - share } else { share })
}

/// The number of the measure that counts values leaf by leaf.
fn tree(asked: &Asked<'_>, argument: &Expr, draft: &mut Draft<'_>) -> Result<usize, QueryError> {
    let range = draft.range_of(argument, &asked.title)?;
    let value = asked.conditional(safe_value(argument, draft.around)?)?;
    let rows = draft.rows()?;
    let (tree, shape) = match range {
        Range::Known { low, high } if low == high => return Err(asked.always(argument, low)),
        Range::Known { low, high } => {
            let tree = Tree::new(low, high, LEAVES).map_err(|error| asked.refused(&error.to_string()))?;
            (Leaves::Known { low, high }, tree)
        }
        Range::Auto => {
            let any = Tree::new(0.0, 1.0, LEAVES).map_err(|error| asked.refused(&error.to_string()))?;
            (Leaves::Found { range: draft.auto(argument, &value)? }, any)
        }
    };
    // One row adds one on each level, so that a unit's tree is as many times as long as its weights over groups.
    let bound = shape.bound(1, 1).map_err(|error| asked.refused(&error.to_string()))?;
    let weight = if draft.grain == Grain::Row { 1.0 } else { WEIGHT as f64 };
    let moved = match bound {
        Bound::Ball { radius, .. } => draft.ball(((radius * draft.length_of_rows()?).next_up() * weight).next_up())?,
        Bound::Coordinates { .. } | Bound::Weighted(_) => {
            return Err(QueryError::failed("a tree's bound is a length"));
        }
    };
    let high = i64::try_from(rows).unwrap_or(i64::MAX);
    Ok(draft.add(Measure {
        what: What::Tree { value: RowExpr(value), tree, rows },
        low: 0,
        high,
        moved,
        name: format!("quantiles of {}", said(argument)),
    }))
}
