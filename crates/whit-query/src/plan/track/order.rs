//! Inner joins in an order in which each has an equality: `FROM a, b WHERE a.k = b.k` is the join that it says, not all pairs of rows.
//!
//! How many partners a row finds is what a join costs, so equalities have to stand where rows meet before that is
//! counted. Inner joins may be put into any order, and a condition on their result may be asked as soon as all that it names is there.

use super::equality::{of_one_kind, sorted_out};
use crate::error::{QueryError, planning};
use datafusion::common::NullEquality;
use datafusion::logical_expr::utils::{conjunction, find_valid_equijoin_key_pair, split_conjunction_owned};
use datafusion::logical_expr::{
    BinaryExpr, Expr, ExprSchemable, Join, JoinConstraint, JoinType, LogicalPlan, Operator, Projection,
};
use std::sync::Arc;

/// What is joined, in the order in which it stands, on what conditions, and how many joins have no equality.
#[derive(Default)]
struct Chain {
    tables: Vec<LogicalPlan>,
    conditions: Vec<Expr>,
    crossed: usize,
}

impl Chain {
    fn read(&mut self, plan: &LogicalPlan) -> Result<(), QueryError> {
        match plan {
            LogicalPlan::Join(join)
                if join.join_type == JoinType::Inner
                    && join.null_equality == NullEquality::NullEqualsNothing
                    && !join.null_aware =>
            {
                let join = sorted_out(join)?;
                self.read(&join.left)?;
                self.read(&join.right)?;
                self.crossed += usize::from(join.on.is_empty());
                self.conditions.extend(join.on.into_iter().map(|(a, b)| a.eq(b)));
                self.conditions.extend(join.filter.into_iter().flat_map(split_conjunction_owned));
            }
            other => self.tables.push(other.clone()),
        }
        Ok(())
    }
}

/// Both sides of an equality between two relations whose values are compared as they are.
fn sides(condition: &Expr, left: &LogicalPlan, right: &LogicalPlan) -> Result<Option<(Expr, Expr)>, QueryError> {
    let Expr::BinaryExpr(BinaryExpr { left: a, op: Operator::Eq, right: b }) = condition else { return Ok(None) };
    let pair = find_valid_equijoin_key_pair(a, b, left.schema(), right.schema()).map_err(|error| planning(&error))?;
    let alike = |(a, b): &(Expr, Expr)| {
        let kinds = a.get_type(left.schema()).ok().zip(b.get_type(right.schema()).ok());
        kinds.is_some_and(|(a, b)| of_one_kind(&a, &b))
    };
    Ok(pair.filter(alike))
}

/// Whether a relation has all columns that a condition names.
fn covers(condition: &Expr, plan: &LogicalPlan) -> bool {
    condition.column_refs().iter().all(|column| plan.schema().has_column(column))
}

/// The same joins with fewer of them without an equality, where these conditions on their result, or their own, allow for it; and the
/// conditions that are left to ask.
pub(super) fn untangled(plan: &LogicalPlan, asked: Vec<Expr>) -> Result<Option<(LogicalPlan, Vec<Expr>)>, QueryError> {
    let mut chain = Chain::default();
    chain.read(plan)?;
    if chain.crossed == 0 {
        return Ok(None);
    }
    let equal = |condition: &Expr| match condition {
        Expr::BinaryExpr(BinaryExpr { left, op: Operator::Eq, right }) => {
            [left, right].iter().all(|side| !side.column_refs().is_empty() && !side.contains_scalar_subquery())
        }
        _ => false,
    };
    let (equalities, mut rest): (Vec<Expr>, Vec<Expr>) = asked.into_iter().partition(equal);
    let mut conditions: Vec<Expr> = chain.conditions.into_iter().chain(equalities).collect();
    let mut waiting = chain.tables;
    let mut joined = waiting.remove(0);
    let mut crossed = 0;
    while !waiting.is_empty() {
        let mut next = None;
        for (place, table) in waiting.iter().enumerate() {
            for condition in &conditions {
                if next.is_none() && sides(condition, &joined, table)?.is_some() {
                    next = Some(place);
                }
            }
        }
        crossed += usize::from(next.is_none());
        let table = waiting.remove(next.unwrap_or(0));
        let (mut on, mut filter, mut later) = (Vec::new(), Vec::new(), Vec::new());
        for condition in conditions {
            match sides(&condition, &joined, &table)? {
                Some(pair) => on.push(pair),
                None => later.push(condition),
            }
        }
        let join = |on, filter| {
            let (left, right) = (Arc::new(joined.clone()), Arc::new(table.clone()));
            let (constraint, nulls) = (JoinConstraint::On, NullEquality::NullEqualsNothing);
            Join::try_new(left, right, on, filter, JoinType::Inner, constraint, nulls, false)
                .map(LogicalPlan::Join)
                .map_err(|error| planning(&error))
        };
        let plain = join(on.clone(), None)?;
        conditions = Vec::new();
        for condition in later {
            if covers(&condition, &plain) { filter.push(condition) } else { conditions.push(condition) }
        }
        joined = join(on, conjunction(filter))?;
    }
    if crossed >= chain.crossed {
        return Ok(None);
    }
    rest.extend(conditions);
    let columns: Vec<Expr> = plan.schema().iter().map(Expr::from).collect();
    if joined.schema().columns() != plan.schema().columns() {
        let ordered = Projection::try_new(columns, Arc::new(joined)).map_err(|error| planning(&error))?;
        joined = LogicalPlan::Projection(ordered);
    }
    Ok(Some((joined, rest)))
}

/// The input of a filter with its equalities where rows meet, and what is left to filter by.
pub(super) fn equalities_inside(
    input: &LogicalPlan,
    predicate: &Expr,
) -> Result<(LogicalPlan, Option<Expr>), QueryError> {
    let untangled = match input {
        LogicalPlan::Join(_) => untangled(input, split_conjunction_owned(predicate.clone()))?,
        _ => None,
    };
    Ok(match untangled {
        Some((joined, rest)) => (joined, conjunction(rest)),
        None => (input.clone(), Some(predicate.clone())),
    })
}
