//! SQL aggregates: each is one file with one trait, and this is the list of them.
//!
//! An aggregate becomes [`Measure`](super::Measure)s, integer vectors of which it is known how far one unit moves them, and a [`Statistic`] that says what is made of
//! them. Whoever adds one writes its file, and its three lines here: the module, its place in `ALL`, and whose a statistic is.

mod call;
mod count;
mod distinct;
mod keys;
mod logic;
mod mean;
mod order;
mod part;
mod reach;
mod spread;
mod sum;

pub(crate) use part::plan;

use super::Part;
use crate::error::QueryError;
use call::Asked;
use datafusion::arrow::datatypes::DataType;
use datafusion::logical_expr::Expr;
use datafusion::logical_expr::expr::AggregateFunction;
use part::Draft;

/// All of them.
const ALL: [&dyn Aggregate; 7] =
    [&count::Count, &distinct::Distinct, &sum::Sum, &mean::Mean, &spread::Spread, &order::Order, &logic::Logic];

/// What is made of the noisy measures. Numbers are those of measures.
#[derive(Debug, Clone, PartialEq)]
pub enum Statistic {
    /// A count, of rows, users or different values.
    Count(usize),
    /// A sum.
    Sum(usize),
    /// A mean: of a centred sum and a count.
    Mean {
        /// The centred sum.
        sum: usize,
        /// The count.
        count: usize,
    },
    /// A variance or its root.
    Spread {
        /// The centred sum.
        sum: usize,
        /// The sum of its squares.
        squares: usize,
        /// The count.
        count: usize,
        /// Whether it is divided by n − 1.
        sample: bool,
        /// Whether it is the root.
        root: bool,
    },
    /// The value below which a share of the rows lies.
    Quantile {
        /// The tree.
        tree: usize,
        /// The share.
        share: f64,
    },
    /// The least value that can be told from none.
    Least(usize),
    /// The largest.
    Largest(usize),
    /// Reads public columns only: computed exactly, by this aggregate expression over the rows.
    Exact(Box<Expr>),
}

impl Statistic {
    /// The aggregate that it is of; none where it is exact.
    pub(crate) fn aggregate(&self) -> Option<&'static dyn Aggregate> {
        Some(match self {
            Self::Count(_) => &count::Count,
            Self::Sum(_) => &sum::Sum,
            Self::Mean { .. } => &mean::Mean,
            Self::Spread { .. } => &spread::Spread,
            Self::Quantile { .. } | Self::Least(_) | Self::Largest(_) => &order::Order,
            Self::Exact(_) => return None,
        })
    }
}

/// One SQL aggregate: how it is planned, and what is said of it.
pub(crate) trait Aggregate: Sync {
    /// What questions call it, as the engine spells it.
    fn names(&self) -> &'static [&'static str];

    /// Whether it is the one with DISTINCT.
    fn distinct(&self) -> bool {
        false
    }

    /// Whether constants may stand beside what it is of.
    fn has_parameters(&self, _name: &str) -> bool {
        false
    }

    /// Over public columns of these types: in a form that no order of rows changes, not in its last bit. In which order public values stand in a
    /// file may tell what is private beside them. Nothing where there is no such form.
    fn exact(&self, _asked: &Asked<'_>, _types: &[DataType]) -> Option<Expr> {
        None
    }

    /// The measures that it is made of, and what is made of them.
    fn plan(&self, asked: &Asked<'_>, draft: &mut Draft<'_>) -> Result<Statistic, QueryError>;

    /// The most that it can come to over so many rows, or be off by if one knows nothing; nothing where no bounds are known.
    fn widest(&self, statistic: &Statistic, part: &Part, rows: f64) -> Option<f64>;

    /// What a guess of its error rests on, for a group of so many rows.
    fn rests_on(&self, rows: &str) -> String {
        format!("for a group of {rows} rows, spread evenly over their bounds")
    }
}

/// The aggregate that a call asks for. DISTINCT finds its own where there is one.
fn of(call: &AggregateFunction) -> Option<&'static dyn Aggregate> {
    let named = || ALL.into_iter().filter(|aggregate| aggregate.names().contains(&call.func.name()));
    named().find(|aggregate| aggregate.distinct() == call.params.distinct).or_else(|| named().next())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

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
