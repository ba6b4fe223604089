//! What the engine is about to run, compared with what was planned and priced: whose rows are, and what bounds that which they add.

use super::{Cut, CutFunction, Job, NUMBER, Pass, PresentFunction};
use crate::bound::quantise::QuantiseFunction;
use crate::error::QueryError;
use crate::plan::measure::{LEAVES, quantise_of};
use crate::plan::{Grain, USER, What};
use crate::whose::{Owners, Traced, Whose, unlike};
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::utils::split_conjunction;
use datafusion::logical_expr::{BinaryExpr, Expr, LogicalPlan, Operator, ScalarUDFImpl};
use datafusion::scalar::ScalarValue;
use std::any::Any;
use whit_core::mechanism::range::Bins;

impl Job<'_> {
    /// Refuses to run what was rewritten so that it no longer says whose rows are, or adds something that is not bounded as its noise was priced for.
    pub(super) fn is_as_planned(
        &self,
        planned: &LogicalPlan,
        run: &LogicalPlan,
        (whose, owners): (&Whose, &Owners),
    ) -> Result<(), QueryError> {
        let names = |plan: &LogicalPlan| plan.schema().fields().iter().map(|field| field.name().clone()).collect();
        let (names, planned): (Vec<String>, Vec<String>) = (names(run), names(planned));
        if names != planned {
            return Err(unlike("its columns are others"));
        }
        if whose.nothing {
            return Ok(()); // the engine found that no row can pass
        }
        match self.part.grain {
            Grain::Row if whose.private && !whose.single && self.part.row_caps.is_empty() => {
                return Err(unlike("a row stands for several"));
            }
            Grain::Element | Grain::User if !whose.users.contains(&0) => {
                return Err(unlike("the first column is not the user"));
            }
            Grain::Element if !whose.elements.contains(&1) => {
                return Err(unlike("the second column is not the element"));
            }
            Grain::Row | Grain::Element | Grain::User => {}
        }
        self.are_cut(run, owners)?;
        for (place, name) in names.iter().enumerate() {
            let added = Traced::at(run, place);
            let bounded = match name.strip_prefix('m').map(str::parse::<usize>) {
                Some(Ok(measure)) => self.is_bounded(measure, &added)?,
                _ if name == "inner" => self.is_cut(&added)?,
                _ => true,
            };
            if !bounded {
                return Err(unlike("something is added that is not bounded as its noise was priced for"));
            }
        }
        Ok(())
    }

    /// Whether rows beyond what one user, or one of their elements, may have are still cut where coarser rungs rest on it, and each row stands for itself before that.
    fn are_cut(&self, run: &LogicalPlan, owners: &Owners) -> Result<(), QueryError> {
        let lost = || unlike("rows beyond a cap are not cut");
        let mut at = run;
        for (within, most) in self.part.row_caps.iter().rev() {
            let kept = |predicate: &Expr| split_conjunction(predicate).into_iter().any(|part| is_at_most(part, *most));
            while !matches!(at, LogicalPlan::Filter(filter) if kept(&filter.predicate)) {
                at = row_by_row(at).ok_or_else(lost)?;
            }
            at = row_by_row(at).ok_or_else(lost)?;
            while matches!(at, LogicalPlan::Projection(_) | LogicalPlan::SubqueryAlias(_)) {
                at = row_by_row(at).ok_or_else(lost)?;
            }
            let LogicalPlan::Window(window) = at else { return Err(lost()) };
            let (below, rows) = (&window.input, Whose::of(&window.input, owners).map_err(|why| unlike(&why))?);
            let numbers = |by: &[Expr]| {
                by.len() == within.len()
                    && within.iter().all(|name| {
                        let is = |expr: &Expr| {
                            if *name == USER { rows.is_user(expr, below) } else { rows.is_element(expr, below) }
                        };
                        by.iter().any(is)
                    })
            };
            let numbered = window.window_expr.iter().any(|expr| match expr.clone().unalias() {
                Expr::WindowFunction(call) => call.fun.name() == "row_number" && numbers(&call.params.partition_by),
                _ => false,
            });
            if !numbered {
                return Err(lost());
            }
            at = below;
        }
        let rows = Whose::of(at, owners).map_err(|why| unlike(&why))?;
        if !self.part.row_caps.is_empty() && rows.private && !rows.single && !rows.nothing {
            return Err(unlike("a row stands for several"));
        }
        Ok(())
    }

    /// Whether what rows add to a measure comes out of the function that bounds it, with the limits that the measure was priced for, as the last thing that is
    /// done with it. What is the same for all rows the engine has computed by now.
    fn is_bounded(&self, measure: usize, added: &Traced<'_>) -> Result<bool, QueryError> {
        let Some(planned) = self.part.measures.get(measure) else { return Ok(false) };
        let (low, high, fits) = match &planned.what {
            What::Sum { quantisation, .. } => {
                let quantise = quantise_of(quantisation, self.found)?;
                let fits = match added {
                    Traced::Step(Expr::ScalarFunction(call), _) => {
                        function::<QuantiseFunction>(call).is_some_and(|function| *function.limits() == quantise)
                    }
                    Traced::Step(Expr::Literal(ScalarValue::Int64(steps), _), _) => {
                        steps.is_none_or(|steps| (quantise.low()..=quantise.high()).contains(&steps))
                    }
                    _ => false,
                };
                (quantise.low(), quantise.high(), fits)
            }
            What::Rows(Some(_)) | What::Parts(_) => {
                let fits = match added {
                    Traced::Step(Expr::ScalarFunction(call), _) => function::<PresentFunction>(call).is_some(),
                    Traced::Step(Expr::Literal(ScalarValue::Boolean(_), _), _) => true,
                    _ => false,
                };
                (0, planned.what.each(), fits)
            }
            What::Rows(None) | What::Users | What::Distinct { .. } | What::Tree { .. } => return Ok(false),
        };
        // As many rows of a unit as count in a group come to no more than its noise was made for.
        let (rows, limit) = (i128::from(self.part.rows_per_group.unwrap_or(1)), self.part.limit_of(measure));
        let priced = i128::from(low.min(0)) * rows >= i128::from(limit.low)
            && i128::from(high.max(0)) * rows <= i128::from(limit.high);
        Ok(fits && priced)
    }

    /// Whether the value inside of a group is what was planned: a leaf of the planned tree, a bin, or any value where different ones are counted.
    fn is_cut(&self, added: &Traced<'_>) -> Result<bool, QueryError> {
        let (cut, cuts) = match self.pass {
            Pass::Range(_) => (Cut::Bins, Bins::default().len()),
            Pass::Inner(measure) => match &self.part.measures[measure].what {
                What::Tree { tree, .. } => (Cut::of(tree, self.found)?, LEAVES as usize),
                _ => return Ok(true),
            },
            Pass::Plain => return Ok(false),
        };
        Ok(match added {
            Traced::Step(Expr::ScalarFunction(call), _) => {
                function::<CutFunction>(call).is_some_and(|function| function.parameter == cut)
            }
            Traced::Step(Expr::Literal(ScalarValue::Int64(leaf), _), _) => {
                leaf.is_none_or(|leaf| usize::try_from(leaf).is_ok_and(|leaf| leaf < cuts))
            }
            _ => false,
        })
    }
}

/// A function of a plan as what it is.
fn function<T: ScalarUDFImpl>(call: &ScalarFunction) -> Option<&T> {
    let inner: &dyn Any = call.func.inner().as_ref();
    inner.downcast_ref()
}

#[cfg(test)]
mod tests;

/// The input of an operator that leaves rows as they are, each for itself.
fn row_by_row(plan: &LogicalPlan) -> Option<&LogicalPlan> {
    match plan {
        LogicalPlan::Filter(_) | LogicalPlan::Projection(_) | LogicalPlan::SubqueryAlias(_) => {
            plan.inputs().first().copied()
        }
        _ => None,
    }
}

/// Whether a condition keeps rows up to a number: the one that `cut_rows` gives them.
fn is_at_most(condition: &Expr, most: u64) -> bool {
    let Expr::BinaryExpr(BinaryExpr { left, op, right }) = condition else { return false };
    let number = |expr: &Expr| matches!(expr, Expr::Column(column) if column.name == NUMBER);
    let limit = |expr: &Expr| match expr {
        Expr::Literal(ScalarValue::UInt64(Some(limit)), _) => Some(*limit),
        Expr::Literal(ScalarValue::Int64(Some(limit)), _) => u64::try_from(*limit).ok(),
        _ => None,
    };
    match op {
        Operator::LtEq => number(left) && limit(right).is_some_and(|limit| limit <= most),
        Operator::Lt => number(left) && limit(right).is_some_and(|limit| limit <= most.saturating_add(1)),
        Operator::Eq => number(left) && limit(right).is_some_and(|limit| limit <= most),
        _ => false,
    }
}
