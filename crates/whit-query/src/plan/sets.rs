//! `ROLLUP`, `CUBE` and `GROUPING SETS` over private rows: one grouping each, below one another. Each is a part of the question with noise of its own, and all have one price:
//! a total is as exact as if it had been asked for alone with that share of ε, and is not the sum of noisy rows.

use crate::error::{QueryError, planning};
use datafusion::arrow::datatypes::DataType;
use datafusion::common::Result as Outcome;
use datafusion::logical_expr::expr::GroupingSet;
use datafusion::logical_expr::utils::grouping_set_to_exprlist;
use datafusion::logical_expr::{Aggregate, Expr, LogicalPlan, LogicalPlanBuilder, Union, lit};
use datafusion::scalar::ScalarValue;
use std::sync::Arc;

/// The most groupings of one question.
const MOST_SETS: usize = 64;

/// The groupings of an aggregate below one another, under the columns that it has; nothing where it has one alone.
pub(super) fn apart(aggregate: &Aggregate) -> Result<Option<LogicalPlan>, QueryError> {
    let [Expr::GroupingSet(sets)] = aggregate.group_expr.as_slice() else { return Ok(None) };
    let sets = listed(sets)?;
    let asked = aggregate.aggr_expr.iter().filter_map(left_out).flatten();
    if let Some(other) = asked.into_iter().find(|key| !sets.iter().any(|set| set.contains(key))) {
        return Err(QueryError::asked(
            format!("`GROUPING({})` asks of what is no key of this grouping", super::track::said(other)),
            "name one of the keys of ROLLUP, CUBE or GROUPING SETS in it",
        ));
    }
    for (number, set) in sets.iter().enumerate() {
        if sets[..number].iter().any(|other| other.len() == set.len() && set.iter().all(|key| other.contains(key))) {
            return Err(QueryError::asked(
                "one of the groupings of GROUPING SETS stands twice, and would be paid for twice",
                "name each of them once",
            ));
        }
    }
    below_one_another(aggregate, &sets).map(Some).map_err(|error| planning(&error))
}

/// All groupings that are asked for.
fn listed(sets: &GroupingSet) -> Result<Vec<Vec<Expr>>, QueryError> {
    let too_many = || {
        QueryError::asked(
            format!("more than {MOST_SETS} groupings are asked for at once, and each has noise of its own"),
            "name those that you need with GROUPING SETS ((a, b), (a), ())",
        )
    };
    let sets = match sets {
        GroupingSet::Rollup(keys) => (0..=keys.len()).rev().map(|many| keys[..many].to_vec()).collect(),
        GroupingSet::Cube(keys) if keys.len() > 6 => return Err(too_many()),
        GroupingSet::Cube(keys) => {
            let of = |left_out: usize| {
                let kept = keys.iter().enumerate().filter(|(i, _)| left_out >> (keys.len() - 1 - i) & 1 == 0);
                kept.map(|(_, key)| key.clone()).collect()
            };
            (0..1 << keys.len()).map(of).collect()
        }
        GroupingSet::GroupingSets(sets) => sets.clone(),
    };
    if sets.len() > MOST_SETS { Err(too_many()) } else { Ok(sets) }
}

fn below_one_another(aggregate: &Aggregate, sets: &[Vec<Expr>]) -> Outcome<LogicalPlan> {
    let keys = grouping_set_to_exprlist(&aggregate.group_expr)?;
    let fields: Vec<DataType> = aggregate.schema.fields().iter().map(|field| field.data_type().clone()).collect();
    let sums: Vec<&Expr> = aggregate.aggr_expr.iter().filter(|expr| left_out(expr).is_none()).collect();
    let called = |place: usize| format!("s{place}");
    let mut branches = Vec::new();
    for set in sets {
        let grouped =
            Aggregate::try_new(Arc::clone(&aggregate.input), set.clone(), sums.iter().copied().cloned().collect())?;
        let grouped = LogicalPlan::Aggregate(grouped);
        let column = |place: usize| Expr::from(grouped.schema().qualified_field(place));
        let mut columns = Vec::new();
        for (key, kind) in keys.iter().zip(&fields) {
            columns.push(match set.iter().position(|own| own == *key) {
                Some(place) => column(place),
                None => lit(ScalarValue::try_from(kind)?),
            });
        }
        let gone = |keys: &[&Expr]| keys.iter().fold(0_u64, |bits, key| bits << 1 | u64::from(!set.contains(key)));
        columns.push(lit(ScalarValue::UInt64(Some(gone(&keys))).cast_to(&fields[keys.len()])?));
        let mut next = set.len();
        for (expr, kind) in aggregate.aggr_expr.iter().zip(&fields[keys.len() + 1..]) {
            columns.push(if let Some(keys) = left_out(expr) {
                lit(ScalarValue::UInt64(Some(gone(&keys.iter().collect::<Vec<_>>()))).cast_to(kind)?)
            } else {
                next += 1;
                column(next - 1)
            });
        }
        let columns = columns.into_iter().enumerate().map(|(place, column)| column.alias(called(place)));
        let branch = LogicalPlanBuilder::from(grouped.clone()).project(columns.collect::<Vec<_>>())?.build()?;
        branches.push(Arc::new(branch));
    }
    let union = if branches.len() == 1 {
        branches.remove(0).as_ref().clone()
    } else {
        LogicalPlan::Union(Union::try_new(branches)?)
    };
    let own = union.schema().iter().map(Expr::from).collect::<Vec<_>>();
    let names = own.into_iter().zip(aggregate.schema.iter());
    let names = names.map(|(own, (table, field))| own.alias_qualified(table.cloned(), field.name()));
    LogicalPlanBuilder::from(union).project(names.collect::<Vec<_>>())?.build()
}

/// The keys of which `GROUPING(…)` asks whether they are left out.
fn left_out(expr: &Expr) -> Option<&[Expr]> {
    match expr {
        Expr::Alias(alias) => left_out(&alias.expr),
        Expr::AggregateFunction(call) if call.func.name() == "grouping" => Some(&call.params.args),
        _ => None,
    }
}
