//! Whose rows are, derived again from a plan alone.
//!
//! [`track`](super::track()) rewrites a question and says of the result whose its rows are. This reads the result and nothing else, operator by operator,
//! and comes to its own view. The two are compared where a part is planned, and again after the engine's analysis has rewritten what is run. So a slip in
//! one of them refuses a question, and releases nothing.

use super::{Lost, Tracked};
use crate::error::QueryError;
use crate::evaluate::{keeps_apart, number};
use crate::plan::USER;
use datafusion::arrow::datatypes::DataType;
use datafusion::logical_expr::utils::split_conjunction;
use datafusion::logical_expr::{BinaryExpr, Expr, ExprSchemable, JoinType, LogicalPlan, Operator};
use std::collections::{BTreeMap, BTreeSet};
use whit_core::declare::Declaration;

/// The private tables that may be read, and which column of each says whose a row is.
pub(crate) type Owners = BTreeMap<String, Option<String>>;

/// Those of a declaration.
pub(crate) fn owners(declaration: &Declaration) -> Owners {
    let private = declaration.datasets.values().filter_map(|dataset| {
        let unit = dataset.unit.as_ref()?;
        Some((dataset.name.clone(), unit.user.as_ref().map(|user| user.column().to_owned())))
    });
    private.collect()
}

/// Whose the rows of a relation are.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Whose {
    /// Whether a private table is read.
    pub(crate) private: bool,
    /// The columns that hold the user that a row belongs to.
    pub(crate) users: BTreeSet<usize>,
    /// Whether each row comes from one row of a private table.
    pub(crate) single: bool,
}

impl Whose {
    /// Derives it from a plan; where an operator mixes users, why.
    pub(crate) fn of(plan: &LogicalPlan, owners: &Owners) -> Result<Self, String> {
        let inputs = plan.inputs().into_iter().map(|input| Self::of(input, owners)).collect::<Result<Vec<_>, _>>()?;
        if let LogicalPlan::TableScan(scan) = plan {
            let Some(user) = owners.get(scan.table_name.table()) else { return Ok(Self::default()) };
            let fields = plan.schema().fields().iter().enumerate();
            let users = fields.filter(|(_, field)| Some(field.name()) == user.as_ref()).map(|(i, _)| i).collect();
            return Ok(Self { private: true, users, single: true });
        }
        if !inputs.iter().any(|input| input.private) {
            return Ok(Self::default());
        }
        let below = plan.inputs();
        match (plan, inputs.as_slice()) {
            (LogicalPlan::Projection(projection), [input]) => {
                let users = places(&projection.expr, below[0], &input.users);
                Ok(Self { users, ..input.clone() })
            }
            (LogicalPlan::Filter(_) | LogicalPlan::SubqueryAlias(_) | LogicalPlan::Repartition(_), [input]) => {
                Ok(input.clone())
            }
            (LogicalPlan::Sort(sort), [input]) if sort.fetch.is_none() => Ok(input.clone()),
            (LogicalPlan::Distinct(_), [input]) if !input.users.is_empty() => {
                Ok(Self { single: false, ..input.clone() })
            }
            (LogicalPlan::Aggregate(aggregate), [input]) => {
                let users = places(&aggregate.group_expr, below[0], &input.users);
                if users.is_empty() {
                    return Err("an aggregate brings rows of several users together".to_owned());
                }
                Ok(Self { private: true, users, single: false })
            }
            (LogicalPlan::Window(window), [input]) => {
                for expr in &window.window_expr {
                    let Expr::WindowFunction(call) = expr.clone().unalias_nested().data else {
                        return Err("a window that is none".to_owned());
                    };
                    if places(&call.params.partition_by, below[0], &input.users).is_empty() {
                        return Err("a window reaches over rows of several users".to_owned());
                    }
                }
                Ok(Self { single: false, ..input.clone() })
            }
            (LogicalPlan::Join(join), [left, right]) => {
                let width = below[0].schema().fields().len();
                let of_left = matches!(join.join_type, JoinType::LeftSemi | JoinType::LeftAnti | JoinType::LeftMark);
                let of_right =
                    matches!(join.join_type, JoinType::RightSemi | JoinType::RightAnti | JoinType::RightMark);
                let along =
                    |(a, b): &(Expr, Expr)| is_user(a, below[0], &left.users) && is_user(b, below[1], &right.users);
                // SQL leaves equalities in the filter, until somebody sorts them out.
                let said = join.filter.iter().flat_map(split_conjunction).any(|said| match said {
                    Expr::BinaryExpr(BinaryExpr { left: a, op: Operator::Eq, right: b }) => {
                        let (a, b) = (a.as_ref().clone(), b.as_ref().clone());
                        along(&(a.clone(), b.clone())) || along(&(b, a))
                    }
                    _ => false,
                });
                if left.private && right.private && !said && !join.on.iter().any(along) {
                    return Err("a join lets rows of several users meet".to_owned());
                }
                // Where a side may be missing, its column does not say whose the row is.
                let keeps_left = !of_right && !matches!(join.join_type, JoinType::Right | JoinType::Full);
                let keeps_right = !of_left && !matches!(join.join_type, JoinType::Left | JoinType::Full);
                if (left.private && !right.private && !keeps_left) || (right.private && !left.private && !keeps_right) {
                    return Err("a join makes rows that belong to nobody".to_owned());
                }
                let shift = if of_right { 0 } else { width };
                let lefts = left.users.iter().copied().filter(|_| keeps_left);
                let rights = right.users.iter().map(|user| user + shift).filter(|_| keeps_right);
                let single = if left.private && right.private { false } else { left.single || right.single };
                Ok(Self { private: true, users: lefts.chain(rights).collect(), single })
            }
            (LogicalPlan::Union(_), inputs) if inputs.iter().all(|input| input.private) => {
                let users = inputs[0].users.iter().copied();
                let users = users.filter(|user| inputs.iter().all(|input| input.users.contains(user))).collect();
                Ok(Self { private: true, users, single: inputs.iter().all(|input| input.single) })
            }
            _ => Err(format!("{} is not known to keep the unit", plan.display())),
        }
    }

    /// Whether the hidden column of a plan's rows is among those that say whose they are.
    pub(crate) fn has_user(&self, plan: &LogicalPlan) -> bool {
        let hidden = plan.schema().fields().iter().position(|field| field.name() == USER);
        hidden.is_some_and(|hidden| self.users.contains(&hidden))
    }
}

/// Whether an expression is the user, under whichever name, and as whichever type keeps different ones apart.
fn is_user(expr: &Expr, input: &LogicalPlan, users: &BTreeSet<usize>) -> bool {
    let apart = |inner: &Expr, to: &DataType| inner.get_type(input.schema()).is_ok_and(|from| keeps_apart(&from, to));
    match expr {
        Expr::Column(column) => {
            input.schema().maybe_index_of_column(column).is_some_and(|index| users.contains(&index))
        }
        Expr::Alias(alias) => is_user(&alias.expr, input, users),
        Expr::Cast(cast) => apart(&cast.expr, cast.field.data_type()) && is_user(&cast.expr, input, users),
        Expr::TryCast(cast) => apart(&cast.expr, cast.field.data_type()) && is_user(&cast.expr, input, users),
        // NaN is no user, as NULL is none.
        Expr::ScalarFunction(call) if call.name() == number::NAME => is_user(&call.args[0], input, users),
        _ => false,
    }
}

/// Which of these expressions are the user.
fn places(exprs: &[Expr], input: &LogicalPlan, users: &BTreeSet<usize>) -> BTreeSet<usize> {
    exprs.iter().enumerate().filter(|(_, expr)| is_user(expr, input, users)).map(|(i, _)| i).collect()
}

/// Refuses what was followed in one way and derived in another.
pub(super) fn compare(tracked: &Tracked, owners: &Owners) -> Result<(), Lost> {
    let wrong =
        |why: &str| Lost::Never(QueryError::failed(format!("whose rows these are cannot be derived again: {why}")));
    let whose = Whose::of(&tracked.plan, owners).map_err(|why| wrong(&why))?;
    let Some(private) = &tracked.private else {
        return if whose.private { Err(wrong("private rows were taken for public ones")) } else { Ok(()) };
    };
    if private.user && !whose.has_user(&tracked.plan) {
        return Err(wrong("the hidden column is not the user"));
    }
    if private.copies.is_some() && !whose.single {
        return Err(wrong("a row stands for several"));
    }
    let mut claimed = tracked.tags.iter().enumerate().filter(|(_, tag)| tag.user).map(|(i, _)| i);
    if claimed.any(|column| !whose.users.contains(&column)) {
        return Err(wrong("a column is taken for the user"));
    }
    Ok(())
}
