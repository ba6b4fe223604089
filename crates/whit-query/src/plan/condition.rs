//! Sub-queries in conditions, as the joins that they are.
//!
//! The engine's own rules make them joins. They are held to what these do rightly: a sub-query that depends on the row around it is one of plain rows or of groups, a number
//! that is made of such rows is missing where there are none, and NOT IN stands where what is unknown and what is false come to the same.

use super::outline::tables_of;
use crate::error::{QueryError, planning};
use datafusion::common::Result as Outcome;
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::logical_expr::utils::{conjunction, split_conjunction, split_conjunction_owned};
use datafusion::logical_expr::{
    Aggregate, BinaryExpr, Distinct, Expr, Filter, JoinType, LogicalPlan, Operator, Subquery,
};
use datafusion::optimizer::decorrelate_predicate_subquery::DecorrelatePredicateSubquery;
use datafusion::optimizer::scalar_subquery_to_join::ScalarSubqueryToJoin;
use datafusion::optimizer::{Optimizer, OptimizerContext, OptimizerRule};
use std::sync::Arc;

/// A sub-query inside of an expression.
struct Inside<'a> {
    query: &'a Subquery,
    /// Whether it stands for a number, and not for a condition.
    number: bool,
}

impl<'a> Inside<'a> {
    fn of(expr: &'a Expr) -> Option<Self> {
        match expr {
            Expr::InSubquery(inside) => Some(Self { query: &inside.subquery, number: false }),
            Expr::Exists(inside) => Some(Self { query: &inside.subquery, number: false }),
            Expr::ScalarSubquery(query) => Some(Self { query, number: true }),
            _ => None,
        }
    }

    /// Whether it depends on the row around it.
    fn correlated(&self) -> bool {
        !self.query.outer_ref_columns.is_empty()
    }
}

/// Calls this for each sub-query inside of an expression, wherever it stands; the first fault ends it.
fn each_inside(
    plan: &LogicalPlan,
    mut look: impl FnMut(&Inside<'_>) -> Result<(), QueryError>,
) -> Result<(), QueryError> {
    let mut fault = None;
    let walked = plan.apply_with_subqueries(|node| {
        for expr in node.expressions() {
            expr.apply(|part| {
                if let (Some(inside), None) = (Inside::of(part), &fault) {
                    fault = look(&inside).err();
                }
                Ok(TreeNodeRecursion::Continue)
            })?;
        }
        Ok(TreeNodeRecursion::Continue)
    });
    walked.map_err(|error| planning(&error))?;
    fault.map_or(Ok(()), Err)
}

/// The same question, with `EXISTS` and `IN` over private rows, or over the row around them, as the joins that they are: whether a row has a partner is then asked of the rows of
/// its own user, as in every other join of private tables. What is left inside of an expression is refused later.
pub(super) fn with_conditions_as_joins(
    plan: LogicalPlan,
    private: &dyn Fn(&str) -> bool,
) -> Result<LogicalPlan, QueryError> {
    let reads = |plan: &LogicalPlan| tables_of(plan).iter().any(|table| private(table));
    if !reads(&plan) {
        return Ok(plan);
    }
    let (mut conditions, mut numbers, mut secret) = (false, false, false);
    each_inside(&plan, |inside| {
        let reads = reads(&inside.query.subquery);
        conditions |= !inside.number && (reads || inside.correlated());
        numbers |= inside.number && inside.correlated();
        secret |= inside.number && reads;
        Ok(())
    })?;
    let mut rules: Vec<Arc<dyn OptimizerRule + Send + Sync>> = Vec::new();
    if conditions {
        rules.push(Arc::new(DecorrelatePredicateSubquery::new()));
        lists_where_unknown_is_false(&plan)?;
    }
    // A number that is made of many private rows is a release of its own, and not part of a row.
    if numbers && !secret {
        rules.push(Arc::new(ScalarSubqueryToJoin::new()));
    }
    if rules.is_empty() {
        return Ok(plan);
    }
    each_inside(&plan, |inside| if inside.correlated() { of_rows_or_groups(inside) } else { Ok(()) })?;
    let made = with_conditions_last(plan)
        .and_then(|plan| Optimizer::with_rules(rules).optimize(plan, &OptimizerContext::new(), |_, _| {}));
    let made = made.map_err(|_| no_join("a sub-query in a condition"))?;
    // What reads private rows is refused in words of its own.
    each_inside(&made, |inside| {
        let left = inside.correlated() && !reads(&inside.query.subquery);
        if left { Err(no_join("a sub-query that depends on the row around it")) } else { Ok(()) }
    })?;
    Ok(made)
}

fn no_join(what: &str) -> QueryError {
    QueryError::asked(
        format!("{what} cannot be written as a join"),
        "compare columns of both by =, or join a sub-query in FROM that is grouped by what the two have in common",
    )
}

/// Refuses sub-queries that depend on the row around them and would be others as joins: a limit counts the rows of each row around it, and an aggregate without GROUP BY
/// has a row even where there is none below it.
fn of_rows_or_groups(inside: &Inside<'_>) -> Result<(), QueryError> {
    let number = if inside.number { Some(made_of_rows(&inside.query.subquery)?) } else { None };
    let mut fault = None;
    let walked = inside.query.subquery.apply(|node| {
        if node.all_out_ref_exprs().is_empty() || fault.is_some() {
            return Ok(TreeNodeRecursion::Jump);
        }
        fault = match node {
            LogicalPlan::Projection(_)
            | LogicalPlan::Filter(_)
            | LogicalPlan::SubqueryAlias(_)
            | LogicalPlan::Subquery(_)
            | LogicalPlan::Distinct(Distinct::All(_)) => None,
            LogicalPlan::Join(join) if join.join_type == JoinType::Inner => None,
            LogicalPlan::Aggregate(aggregate) if number == Some(aggregate) => None,
            LogicalPlan::Aggregate(aggregate) if aggregate.group_expr.is_empty() => Some(QueryError::asked(
                "an aggregate without GROUP BY in a sub-query that depends on the row around it has a row even where nothing is found, and would have none as a join",
                "join a sub-query in FROM that is grouped by what the two have in common, by LEFT JOIN where nothing counts as 0",
            )),
            LogicalPlan::Aggregate(aggregate)
                if !matches!(aggregate.group_expr.as_slice(), [Expr::GroupingSet(_)]) =>
            {
                None
            }
            LogicalPlan::Limit(_) => Some(QueryError::asked(
                "LIMIT or OFFSET in a sub-query that depends on the row around it counts the rows that are found for each row, and would not as a join",
                "leave it out: EXISTS and IN ask whether there is a row, however many there are",
            )),
            _ => Some(no_join("a sub-query that depends on the row around it")),
        };
        Ok(TreeNodeRecursion::Continue)
    });
    walked.map_err(|error| planning(&error))?;
    fault.map_or(Ok(()), Err)
}

/// The aggregate of which a number is made, where that is missing whenever no row is found: then it is what a LEFT JOIN finds.
fn made_of_rows(plan: &LogicalPlan) -> Result<&Aggregate, QueryError> {
    match plan {
        LogicalPlan::SubqueryAlias(alias) => made_of_rows(&alias.input),
        LogicalPlan::Projection(projection) if projection.expr.iter().all(missing_with_its_parts) => {
            made_of_rows(&projection.input)
        }
        LogicalPlan::Aggregate(aggregate) if aggregate.group_expr.is_empty() => {
            let plain = |expr: &Expr| match expr {
                Expr::AggregateFunction(call) => ["avg", "max", "min", "sum"].contains(&call.func.name()),
                _ => false,
            };
            if aggregate.aggr_expr.iter().all(plain) {
                return Ok(aggregate);
            }
            Err(no_number())
        }
        _ => Err(no_number()),
    }
}

fn no_number() -> QueryError {
    QueryError::asked(
        "a number from a sub-query that depends on the row around it is known where it is a SUM, AVG, MIN or MAX that is missing where nothing is found",
        "join a sub-query in FROM that is grouped by what the two have in common, by LEFT JOIN where nothing counts as 0",
    )
}

/// Whether an expression is NULL where one of its columns is.
fn missing_with_its_parts(expr: &Expr) -> bool {
    use Operator::{Divide, Minus, Modulo, Multiply, Plus};
    let steps = expr.exists(|part| {
        Ok(match part {
            Expr::BinaryExpr(BinaryExpr { op, .. }) => !matches!(op, Plus | Minus | Multiply | Divide | Modulo),
            Expr::Column(_) | Expr::Literal(..) | Expr::Alias(_) => false,
            part => !matches!(part, Expr::Negative(_) | Expr::Cast(_) | Expr::TryCast(_)),
        })
    });
    matches!(steps, Ok(false)) && !expr.column_refs().is_empty()
}

/// Refuses IN and NOT IN where it would be told whether they are false or unknown: as a join inside of a condition they are true or false.
fn lists_where_unknown_is_false(plan: &LogicalPlan) -> Result<(), QueryError> {
    let mut told = false;
    let walked = plan.apply_with_subqueries(|node| {
        if let LogicalPlan::Filter(filter) = node {
            told |= split_conjunction(&filter.predicate).into_iter().any(|condition| match condition {
                Expr::InSubquery(_) => false,
                Expr::Not(inner) if matches!(inner.as_ref(), Expr::InSubquery(_)) => false,
                other => tells_unknown(other, true),
            });
        }
        Ok(TreeNodeRecursion::Continue)
    });
    walked.map_err(|error| planning(&error))?;
    if !told {
        return Ok(());
    }
    Err(QueryError::asked(
        "NOT IN with a sub-query stands inside of another condition, where what is missing is neither in the list nor not in it",
        "write NOT EXISTS (SELECT 1 FROM … WHERE … = …), or put it beside the other conditions by AND",
    ))
}

/// Whether a condition, or its opposite, is another where IN is unknown than where it is false.
fn tells_unknown(condition: &Expr, as_it_is: bool) -> bool {
    match condition {
        Expr::BinaryExpr(BinaryExpr { left, op: Operator::And | Operator::Or, right }) => {
            tells_unknown(left, as_it_is) || tells_unknown(right, as_it_is)
        }
        Expr::Not(inner) => tells_unknown(inner, !as_it_is),
        Expr::InSubquery(inside) => inside.negated == as_it_is,
        other => other.exists(|part| Ok(matches!(part, Expr::InSubquery(_)))).unwrap_or(true),
    }
}

/// The same question, with conditions that hold sub-queries asked after all others: what they become a join with is then what the others have left, and equalities among these stand
/// where rows meet.
fn with_conditions_last(plan: LogicalPlan) -> Outcome<LogicalPlan> {
    let asks = |condition: &Expr| condition.exists(|part| Ok(Inside::of(part).is_some()));
    let done = plan.transform_up_with_subqueries(|node| {
        let LogicalPlan::Filter(filter) = node else { return Ok(Transformed::no(node)) };
        let (mut last, mut first) = (Vec::new(), Vec::new());
        for condition in split_conjunction_owned(filter.predicate.clone()) {
            if asks(&condition)? { last.push(condition) } else { first.push(condition) }
        }
        let (Some(last), Some(first)) = (conjunction(last), conjunction(first)) else {
            return Ok(Transformed::no(LogicalPlan::Filter(filter)));
        };
        let below = LogicalPlan::Filter(Filter::try_new(first, filter.input)?);
        Ok(Transformed::yes(LogicalPlan::Filter(Filter::try_new(last, Arc::new(below))?)))
    });
    done.map(|done| done.data)
}
