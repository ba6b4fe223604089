//! What a question means: two spellings of one question have the same meaning, two questions never.
//!
//! It is JSON of our own ([`whit_account::meaning`]), made of the rows as planning leaves them and of what is asked of these rows. Names that a
//! question gives to tables and columns, the order of its columns and conditions, sub-queries that only pick and rename, and what is done with the
//! released table afterwards do not belong to it: they cost nothing. The engine's optimiser has no part in it, so that another version of the engine
//! finds what this one stored.

mod expression;
mod numbers;
mod rows;
mod value;

use super::aggregate::StatisticKind;
use super::{Grain, Groups, Leaves, Part, Plan, Quantisation, RowExpr, Shape, Statistic, What};
use crate::error::QueryError;
use crate::evaluate::attempt::quietly;
use datafusion::logical_expr::{Expr, LogicalPlan};
use datafusion::prelude::SessionContext;
use numbers::Numbers;
use rows::Rows;
use serde_json::{Value, json};
use whit_account::meaning::{number, units};

/// The version of the format. Whoever changes it has all stored answers paid for again.
const VERSION: u32 = 2;

/// The meaning of all parts of a plan: with its price, and whatever else decides what comes of it.
pub(crate) fn of(plan: &Plan, price: &Value, context: &SessionContext) -> Result<String, QueryError> {
    let parts: Vec<Value> =
        plan.parts.iter().map(|part| of_part(part, &plan.question, context)).collect::<Result<_, _>>()?;
    let what = json!({ "dataset": plan.dataset, "units": units(&plan.rungs), "parts": parts, "price": price });
    Ok(whit_account::meaning::of("question", VERSION, &what))
}

/// The meaning of one part.
fn of_part(part: &Part, question: &str, context: &SessionContext) -> Result<Value, QueryError> {
    // A constant over which the engine panics is the question's own fault, and ends nothing else.
    let computed = quietly(|| crate::evaluate::computed(part.rows.clone(), &context.state())).ok_or_else(|| {
        QueryError::asked("the engine cannot compute a constant of this question", "write it out, or leave it out")
    })?;
    let plan = computed.map_err(|error| crate::error::planning(&error))?;
    let mut numbers = Numbers::of(question, rows::inside);
    let rows = rows::of(&plan, &mut numbers)?;
    let mut asked = Asked { plan: &plan, rows: &rows, numbers, context };
    let mut hidden = serde_json::Map::new();
    for (word, name) in [("user", super::USER), ("element", super::ELEMENT)] {
        if let Some(column) = super::track::hidden(plan.schema(), name) {
            hidden.insert(word.to_owned(), asked.expression(&column)?);
        }
    }
    let mut keys = Vec::new();
    for key in &part.keys {
        let listed = key.listed.as_ref().map(|listed| listed.iter().map(value::literal).collect::<Vec<_>>());
        keys.push(json!({ "of": asked.expression(&key.expr)?, "type": value::kind(&key.data_type), "listed": listed }));
    }
    let mut measures = Vec::new();
    for measure in &part.measures {
        measures.push(json!({ "what": asked.what(&measure.what)?, "least": measure.low, "most": measure.high }));
    }
    let mut ranges = Vec::new();
    for auto in &part.autos {
        ranges.push(asked.expression(&auto.value)?);
    }
    let mut statistics = Vec::new();
    for statistic in &part.statistics {
        statistics.push(asked.statistic(statistic)?);
    }
    let row_caps = part.row_caps.iter().map(|(columns, most)| {
        let columns = columns.iter().map(|name| if *name == super::USER { "user" } else { "element" });
        json!({ "of": columns.collect::<Vec<_>>(), "rows": most })
    });
    let row_caps: Vec<Value> = row_caps.collect();
    Ok(json!({
        "rows": rows.json(),
        "whose": hidden,
        "bounded": match part.grain {
            Grain::Row => "row",
            Grain::Element => "element",
            Grain::User => "user",
        },
        "groups": match part.groups {
            Groups::One => "one",
            Groups::Listed => "listed",
            Groups::Observed => "observed",
            Groups::Selected => "selected",
        },
        "caps": {
            "groups": part.groups_per_unit,
            "elements": part.elements_per_user,
            "rows in a group": part.rows_per_group,
            "rows in all": part.rows_in_all,
            "rows": row_caps,
            "counted": part.kept.as_ref().map(|kept| kept.most[0]),
        },
        "keys": keys,
        "measures": measures,
        "ranges": ranges,
        "statistics": statistics,
    }))
}

/// What is asked of rows.
struct Asked<'a> {
    plan: &'a LogicalPlan,
    rows: &'a Rows,
    numbers: Numbers,
    context: &'a SessionContext,
}

impl Asked<'_> {
    fn expression(&mut self, expr: &Expr) -> Result<Value, QueryError> {
        let state = self.context.state();
        let computed = quietly(|| crate::evaluate::computed_over(expr.clone(), self.plan.schema(), &state));
        let computed = computed.and_then(Result::ok).unwrap_or_else(|| expr.clone());
        expression::of(&computed, &self.rows.over(self.plan.schema()), &mut self.numbers)
    }

    fn what(&mut self, what: &What) -> Result<Value, QueryError> {
        Ok(match what {
            What::Rows(value) => {
                json!({ "rows with": value.as_ref().map(|value| self.expression(&value.0)).transpose()? })
            }
            What::Parts(RowExpr(value)) => json!({ "parts of rows with": self.expression(value)? }),
            What::Users => json!("users"),
            What::Sum { value: RowExpr(value), quantisation } => {
                json!({ "sum": self.expression(value)?, "on": lattice_of(quantisation) })
            }
            What::Distinct { value: RowExpr(value), most } => {
                json!({ "different": self.expression(value)?, "most": most })
            }
            What::Tree { value: RowExpr(value), tree, rows } => {
                let over = match tree {
                    Leaves::Known { low, high } => json!([number(*low), number(*high)]),
                    Leaves::Found { range } => json!({ "range": range }),
                };
                json!({ "ranks of": self.expression(value)?, "over": over, "rows": rows })
            }
        })
    }

    fn statistic(&mut self, statistic: &Statistic) -> Result<Value, QueryError> {
        match statistic.kind() {
            StatisticKind::Exact(expr) => Ok(json!({ "exact": self.expression(expr)? })),
            StatisticKind::Noisy(estimate) => Ok(estimate.meaning()),
        }
    }
}

fn lattice_of(quantisation: &Quantisation) -> Value {
    match quantisation {
        Quantisation::Known(quantise) => {
            let (low, high) = quantise.bounds();
            json!({
                "bounds": [number(low), number(high)],
                "centre": number(quantise.centre()),
                "step": number(quantise.step()),
                "steps": [quantise.low(), quantise.high()],
            })
        }
        Quantisation::Found { range, shape } => {
            let shape = match shape {
                Shape::Plain => "plain",
                Shape::Centred => "centred",
                Shape::Squared => "squared",
            };
            json!({ "range": range, "shape": shape })
        }
    }
}

#[cfg(test)]
mod tests;
