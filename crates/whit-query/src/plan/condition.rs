//! Sub-queries in conditions, as the joins that they are.

use super::outline::tables_of;
use datafusion::common::Result as Outcome;
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::logical_expr::utils::{conjunction, split_conjunction_owned};
use datafusion::logical_expr::{Expr, Filter, LogicalPlan, Subquery};
use datafusion::optimizer::decorrelate_predicate_subquery::DecorrelatePredicateSubquery;
use datafusion::optimizer::scalar_subquery_to_join::ScalarSubqueryToJoin;
use datafusion::optimizer::{Optimizer, OptimizerContext, OptimizerRule};
use std::sync::Arc;

/// The same question, with `EXISTS` and `IN` over private rows, or over the row around them, as the joins that they are: whether a row has a partner is then asked of the rows of
/// its own user, as in every other join of private tables. What is left inside of an expression is refused later.
pub(super) fn with_conditions_as_joins(plan: LogicalPlan, private: &dyn Fn(&str) -> bool) -> Outcome<LogicalPlan> {
    let (mut conditions, mut numbers, mut secret) = (false, false, false);
    plan.apply_with_subqueries(|node| {
        for expr in node.expressions() {
            expr.apply(|part| {
                let (inside, number): (&Subquery, bool) = match part {
                    Expr::InSubquery(inside) => (&inside.subquery, false),
                    Expr::Exists(inside) => (&inside.subquery, false),
                    Expr::ScalarSubquery(inside) => (inside, true),
                    _ => return Ok(TreeNodeRecursion::Continue),
                };
                let reads = tables_of(&inside.subquery).iter().any(|table| private(table));
                let around = !inside.outer_ref_columns.is_empty();
                conditions |= !number && (reads || around);
                numbers |= number && around;
                secret |= number && reads;
                Ok(TreeNodeRecursion::Continue)
            })?;
        }
        Ok(TreeNodeRecursion::Continue)
    })?;
    let mut rules: Vec<Arc<dyn OptimizerRule + Send + Sync>> = Vec::new();
    if conditions {
        rules.push(Arc::new(DecorrelatePredicateSubquery::new()));
    }
    // A number that is made of many private rows is a release of its own, and not part of a row.
    if numbers && !secret {
        rules.push(Arc::new(ScalarSubqueryToJoin::new()));
    }
    if rules.is_empty() {
        return Ok(plan);
    }
    Optimizer::with_rules(rules).optimize(with_conditions_last(plan)?, &OptimizerContext::new(), |_, _| {})
}

/// The same question, with conditions that hold sub-queries asked after all others: what they become a join with is then what the others have left, and equalities among these stand
/// where rows meet.
fn with_conditions_last(plan: LogicalPlan) -> Outcome<LogicalPlan> {
    let asks = |condition: &Expr| {
        condition.exists(|part| Ok(matches!(part, Expr::InSubquery(_) | Expr::Exists(_) | Expr::ScalarSubquery(_))))
    };
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
