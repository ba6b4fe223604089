//! What a question means: two spellings of one question have the same meaning, two questions never.
//!
//! It is JSON of our own ([`whit_account::meaning`]), made of the rows as planning leaves them and of what is asked of these rows. Names that a
//! question gives to tables and columns, the order of its columns and conditions, sub-queries that only pick and rename, and what is done with the
//! released table afterwards do not belong to it: they cost nothing. The engine's optimiser has no part in it, so that another version of the engine
//! finds what this one stored.

use super::aggregate::StatisticKind;
use super::{Grain, Groups, Leaves, Part, Plan, Quantisation, RowExpr, Shape, Statistic, What};
use crate::canonical::{Canonical, constant, kind};
use crate::error::QueryError;
use crate::evaluate::attempt::quietly;
use crate::source::{Warehouse, chain};
use datafusion::logical_expr::LogicalPlan;
use serde_json::{Value, json};
use whit_account::meaning::{number, text, units};

/// The version of the format. Whoever changes it has all stored answers paid for again.
const VERSION: u32 = 2;

/// The meaning of all parts of a plan: with its price, and whatever else decides what comes of it.
pub(crate) fn of(plan: &Plan, price: &Value, warehouse: &Warehouse) -> Result<String, QueryError> {
    let parts: Vec<Value> = plan.parts.iter().map(|part| of_part(part, warehouse)).collect::<Result<_, _>>()?;
    let what = json!({ "dataset": plan.dataset, "units": units(&plan.rungs), "parts": parts, "price": price });
    Ok(whit_account::meaning::of("question", VERSION, &what))
}

/// Rows with their constants computed.
fn computed(rows: &LogicalPlan, warehouse: &Warehouse) -> Result<LogicalPlan, QueryError> {
    // A constant over which the engine panics is the question's own fault, and ends nothing else.
    let computed =
        quietly(|| crate::evaluate::computed(rows.clone(), &warehouse.context().state())).ok_or_else(|| {
            QueryError::asked("the engine cannot compute a constant of this question", "write it out, or leave it out")
        })?;
    computed.map_err(|error| crate::error::planning(&error))
}

/// What rows are and what each of their columns is, by which columns of other spellings are found again.
pub(super) fn of_columns(rows: &LogicalPlan, warehouse: &Warehouse) -> Result<(Value, Vec<Value>), QueryError> {
    let (plan, declaration) = (computed(rows, warehouse)?, warehouse.declaration());
    let users = |table: &str| chain::meaning(declaration, declaration.datasets.get(table)?);
    let canonical = Canonical::of(&plan, warehouse.context(), &users)?;
    Ok((canonical.rows(), canonical.columns()))
}

/// What a part is of, whatever is summed there: its rows, whose they are, its groups and its caps.
pub(super) fn of_frame(part: &Part, warehouse: &Warehouse) -> Result<String, QueryError> {
    let mut said = of_part(part, warehouse)?;
    if let Some(said) = said.as_object_mut() {
        for of_sums in ["measures", "ranges", "statistics"] {
            said.remove(of_sums);
        }
        if let Some(caps) = said.get_mut("caps").and_then(Value::as_object_mut) {
            caps.remove("counted");
        }
        // In which order keys stand follows from what they are called.
        if let Some(keys) = said.get_mut("keys").and_then(Value::as_array_mut) {
            keys.sort_by_cached_key(text);
        }
    }
    Ok(text(&said))
}

/// The meaning of one part.
pub(super) fn of_part(part: &Part, warehouse: &Warehouse) -> Result<Value, QueryError> {
    let (context, declaration) = (warehouse.context(), warehouse.declaration());
    let plan = computed(&part.rows, warehouse)?;
    // The keys by which a table's rows find their users, where these stand in other tables.
    let users = |table: &str| chain::meaning(declaration, declaration.datasets.get(table)?);
    let mut rows = Canonical::of(&plan, context, &users)?;
    let mut hidden = serde_json::Map::new();
    for (word, name) in [("user", super::USER), ("element", super::ELEMENT)] {
        if let Some(column) = super::track::hidden(plan.schema(), name) {
            hidden.insert(word.to_owned(), rows.expression(&column)?);
        }
    }
    let mut keys = Vec::new();
    for key in &part.keys {
        let listed = key.listed.as_ref().map(|listed| listed.iter().map(constant).collect::<Result<Vec<_>, _>>());
        let listed = listed.transpose()?;
        keys.push(json!({ "of": rows.expression(&key.expr)?, "type": kind(&key.data_type), "listed": listed }));
    }
    let mut measures = Vec::new();
    for (i, measure) in part.measures.iter().enumerate() {
        let mut said = json!({ "what": what(&measure.what, &mut rows)?, "least": measure.low, "most": measure.high });
        if part.weight(i) != 1.0 {
            said["weight"] = number(part.weight(i));
        }
        measures.push(said);
    }
    let mut ranges = Vec::new();
    for auto in &part.autos {
        ranges.push(rows.expression(&auto.value)?);
    }
    let mut statistics = Vec::new();
    for statistic in &part.statistics {
        statistics.push(made(statistic, &mut rows)?);
    }
    let row_caps = part.row_caps.iter().map(|(columns, most)| {
        let columns = columns.iter().map(|name| if *name == super::USER { "user" } else { "element" });
        json!({ "of": columns.collect::<Vec<_>>(), "rows": most })
    });
    let row_caps: Vec<Value> = row_caps.collect();
    Ok(json!({
        "rows": rows.rows(),
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

/// What is measured of rows.
fn what(what: &What, rows: &mut Canonical<'_>) -> Result<Value, QueryError> {
    Ok(match what {
        What::Rows(value) => {
            json!({ "rows with": value.as_ref().map(|value| rows.expression(&value.0)).transpose()? })
        }
        What::Parts(RowExpr(value)) => json!({ "parts of rows with": rows.expression(value)? }),
        What::Users => json!("users"),
        What::Sum { value: RowExpr(value), quantisation } => {
            json!({ "sum": rows.expression(value)?, "on": lattice_of(quantisation) })
        }
        What::Distinct { value: RowExpr(value), most, worth } => match worth {
            None => json!({ "different": rows.expression(value)?, "most": most }),
            Some(worth) => {
                let on = lattice_of(&Quantisation::Known(worth.clone()));
                json!({ "sum of different": rows.expression(value)?, "on": on, "most": most })
            }
        },
        What::Tree { value: RowExpr(value), tree, rows: most } => {
            let over = match tree {
                Leaves::Known { low, high } => json!([number(*low), number(*high)]),
                Leaves::Found { range } => json!({ "range": range }),
            };
            json!({ "ranks of": rows.expression(value)?, "over": over, "rows": most })
        }
    })
}

/// What is made of what was measured.
fn made(statistic: &Statistic, rows: &mut Canonical<'_>) -> Result<Value, QueryError> {
    match statistic.kind() {
        StatisticKind::Exact(expr) => Ok(json!({ "exact": rows.expression(expr)? })),
        StatisticKind::Noisy(estimate) => Ok(estimate.meaning()),
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
