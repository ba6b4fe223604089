//! What the engine is about to run, compared with what was planned and priced: whose rows are, and what bounds that which they add.

use super::{CHOICE, ChoiceFunction, Cut, CutFunction, Job, Pass, PresentFunction};
use crate::bound::quantise::QuantiseFunction;
use crate::error::QueryError;
use crate::plan::measure::{LEAVES, quantise_of};
use crate::plan::{Grain, What};
use crate::whose::{Traced, Whose, unlike};
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::{Expr, LogicalPlan, ScalarUDFImpl};
use datafusion::scalar::ScalarValue;
use std::any::Any;
use whit_core::mechanism::range::Bins;

impl Job<'_> {
    /// Refuses to run what was rewritten so that it no longer says whose rows are, or adds something that is not bounded as its noise was priced for.
    pub(super) fn is_as_planned(
        &self,
        planned: &LogicalPlan,
        run: &LogicalPlan,
        whose: &Whose,
    ) -> Result<(), QueryError> {
        let names = |plan: &LogicalPlan| plan.schema().fields().iter().map(|field| field.name().clone()).collect();
        let (names, planned): (Vec<String>, Vec<String>) = (names(run), names(planned));
        if names != planned {
            return Err(unlike("its columns are others"));
        }
        if whose.nothing {
            return Ok(()); // the engine found that no row can pass
        }
        if self.part.grain == Grain::Row && whose.private && !whose.single {
            return Err(unlike("a row stands for several"));
        }
        if self.has_users() && !whose.users.contains(&0) {
            return Err(unlike("the first column is not the user"));
        }
        let elements = self.part.grain == Grain::Element || self.row_caps().iter().any(|cap| cap.of_element);
        if elements && !whose.elements.contains(&1) {
            return Err(unlike("the second column is not the element"));
        }
        if !self.part.row_caps.is_empty() && !self.are_numbered(&names, run) {
            return Err(unlike("rows beyond a cap are not chosen by their numbers"));
        }
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

    /// Whether the number by which rows are chosen is still the hash that was planned, under the question's seed. How many are kept, `bound` sees to.
    fn are_numbered(&self, names: &[String], run: &LogicalPlan) -> bool {
        let place = names.iter().position(|name| name == CHOICE);
        match place.map(|place| Traced::at(run, place)) {
            Some(Traced::Step(Expr::ScalarFunction(call), _)) => {
                function::<ChoiceFunction>(call).is_some_and(|function| function.parameter == self.seed)
            }
            _ => false,
        }
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
