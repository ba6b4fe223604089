//! The one way in which expressions are computed over rows: what fails on a row is NULL there, and nothing else happens.
//!
//! An error, an overflow or a panic that one row causes would tell of that row. So each step of an expression that is not
//! known to be harmless ([`harmless`]) becomes an [`attempt`]: a function that computes the step for a whole batch, and where that
//! fails finds the rows at fault by halving, so that they and no others are NULL. Steps are guarded one by one, so what is
//! above goes on with NULL: `coalesce(sqrt(x), 0)` is 0 where `x` has no root. The engine's optimiser sees functions that it
//! knows nothing of, and so cannot move a step to where it would fail.
//!
//! A step that can be computed on no row at all ([`samples`]) is a question that cannot be meant: it is refused before
//! anything is paid. Text that a step makes longer is bounded ([`growth`]), so that a row cannot take all memory either.

pub(crate) mod allow;
pub(crate) mod attempt;
#[cfg(test)]
mod extremes;
mod growth;
pub(crate) mod mean;
pub(crate) mod number;
pub(crate) mod samples;
#[cfg(test)]
mod sweep;
#[cfg(test)]
mod tests;
pub(crate) mod words;

use crate::error::{QueryError, planning};
use attempt::Attempt;
use datafusion::arrow::datatypes::DataType;
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::common::{DFSchema, Result as Outcome};
use datafusion::execution::SessionState;
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::utils::merge_schema;
use datafusion::logical_expr::{Between, BinaryExpr, Expr, ExprSchemable, LogicalPlan, Operator, Union, Volatility};
use datafusion::scalar::ScalarValue;

/// The same plan, with types made to agree, and with every step that may fail on a row inside of the evaluator.
pub(crate) fn guarded(plan: LogicalPlan, state: &SessionState) -> Result<LogicalPlan, QueryError> {
    let analysed = state
        .analyzer()
        .execute_and_check(plan, state.config_options(), |_, _| {})
        .map_err(|error| planning(&error))?;
    let done = each_expression(analysed, |expr, schema| guarded_expression(expr, schema, state));
    done.map_err(|error| planning(&error))
}

/// A plan with each of its expressions made another, over the columns that it is given; names stay.
fn each_expression(
    plan: LogicalPlan,
    make: impl Fn(Expr, &DFSchema) -> Outcome<Transformed<Expr>>,
) -> Outcome<LogicalPlan> {
    let done = plan.transform_up_with_subqueries(|node| {
        if matches!(node, LogicalPlan::TableScan(_)) {
            return Ok(Transformed::no(node));
        }
        let schema = merge_schema(&node.inputs());
        let names = NamePreserver::new(&node);
        let node = node.map_expressions(|expr| {
            let name = names.save(&expr);
            Ok(make(expr, &schema)?.update_data(|made| name.restore(made)))
        })?;
        // What may be NULL now must not be taken for something that cannot.
        node.map_data(|node| match node {
            LogicalPlan::Union(union) => Union::try_new(union.inputs).map(LogicalPlan::Union),
            other => other.recompute_schema(),
        })
    });
    done.map(|done| done.data)
}

/// The same plan with its constants computed, each within the limits of a row's values.
pub(crate) fn computed(plan: LogicalPlan, state: &SessionState) -> Outcome<LogicalPlan> {
    each_expression(plan, |expr, schema| computed_over(expr, schema, state).map(Transformed::yes))
}

/// The same for an expression over these columns.
pub(crate) fn computed_over(expr: Expr, schema: &DFSchema, state: &SessionState) -> Outcome<Expr> {
    expr.transform_up(|step| folded(step, schema, state)).map(|done| done.data)
}

/// A step over constants alone as its value. One that has none stays: it is reported where it is tried on rows.
fn folded(step: Expr, schema: &DFSchema, state: &SessionState) -> Outcome<Transformed<Expr>> {
    let mut constant = match &step {
        Expr::ScalarFunction(call) => {
            !call.args.is_empty() && call.func.signature().volatility == Volatility::Immutable
        }
        Expr::BinaryExpr(_) | Expr::Cast(_) | Expr::TryCast(_) | Expr::Negative(_) => true,
        _ => false,
    };
    step.apply_children(|child| {
        constant &= matches!(child, Expr::Literal(..));
        Ok(TreeNodeRecursion::Continue)
    })?;
    if !constant {
        return Ok(Transformed::no(step));
    }
    Ok(match Attempt::of(step.clone(), schema, state) {
        Ok(value @ Expr::Literal(..)) => Transformed::yes(value),
        _ => Transformed::no(step),
    })
}

/// The guard for one expression, whose types agree already.
fn guarded_expression(expr: Expr, schema: &DFSchema, state: &SessionState) -> Outcome<Transformed<Expr>> {
    expr.transform_up(|node| {
        let soft = allow::soft_cast(node);
        if harmless(&soft.data, schema)? && !is_constant(&soft.data)? {
            return Ok(soft);
        }
        Attempt::of(soft.data, schema, state).map(Transformed::yes)
    })
}

/// Types whose values compare without fail.
fn is_plain(kind: &DataType) -> bool {
    use DataType as D;
    kind.is_numeric()
        || matches!(kind, D::Null | D::Boolean | D::Utf8 | D::LargeUtf8 | D::Utf8View | D::Date32 | D::Date64)
        || matches!(kind, D::Timestamp(..) | D::Time32(_) | D::Time64(_))
}

fn is_text(kind: &DataType) -> bool {
    matches!(kind, DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View)
}

/// Whether a step reads constants alone: then it is one, and functions that ask for constants find it.
fn is_constant(expr: &Expr) -> Outcome<bool> {
    let mut constant = matches!(expr, Expr::TryCast(_) | Expr::Negative(_) | Expr::BinaryExpr(_));
    expr.apply_children(|child| {
        constant &= matches!(child, Expr::Literal(..));
        Ok(TreeNodeRecursion::Continue)
    })?;
    Ok(constant)
}

/// Whole numbers and floats, whose sums, differences and products wrap around or become infinite, and never fail.
fn is_number(kind: &DataType) -> bool {
    kind.is_integer() || kind.is_floating()
}

/// Whether every number of one type is one of the other. A cast that may not succeed is no harmless step: the optimiser compares `CAST(x AS TINYINT) > 50` as
/// `x > 50`, which is another question where x does not fit.
fn is_wider(from: &DataType, to: &DataType) -> bool {
    use DataType::{Boolean, Decimal128, Float32, Float64, Int8, Int16, Int32, Int64, UInt8, UInt16, UInt32, UInt64};
    let bits = |kind: &DataType| match kind {
        Boolean => Some(1),
        Int8 | UInt8 => Some(8),
        Int16 | UInt16 => Some(16),
        Int32 | UInt32 => Some(32),
        Int64 | UInt64 => Some(64),
        _ => None,
    };
    match (bits(from), bits(to)) {
        (Some(from_bits), Some(to_bits)) => {
            let kept_sign = from.is_signed_integer() == to.is_signed_integer() || to.is_signed_integer();
            to_bits > from_bits && kept_sign
        }
        // Every whole number has at most 20 digits: so are signed and unsigned ones compared.
        (Some(_), None) if matches!(to, Decimal128(digits, 0) if *digits >= 20) => true,
        (Some(from_bits), None) => *to == Float64 && from_bits <= 32 || *to == Float32 && from_bits <= 16,
        _ => *from == Float32 && *to == Float64,
    }
}

/// Whether different values of one type are different ones of the other, and none is missing.
pub(crate) fn keeps_apart(from: &DataType, to: &DataType) -> bool {
    from == to || is_wider(from, to) || is_text(from) && is_text(to)
}

/// Whether an operator says how two values stand to one another.
pub(crate) fn compares(operator: Operator) -> bool {
    matches!(
        operator,
        Operator::Eq
            | Operator::NotEq
            | Operator::Lt
            | Operator::LtEq
            | Operator::Gt
            | Operator::GtEq
            | Operator::IsDistinctFrom
            | Operator::IsNotDistinctFrom
    )
}

/// Functions that compare or choose, and fail on nothing. The first four are written out as CASE by the optimiser.
pub(crate) const CHOICES: [&str; 6] = ["coalesce", "nvl", "nvl2", "nullif", "greatest", "least"];

/// Whether this step, without what is below it, can be computed whatever is in a row: the short list of those that need no guard, so that the
/// engine may use them to pass over parts of files.
fn harmless(expr: &Expr, schema: &DFSchema) -> Outcome<bool> {
    let kind = |expr: &Expr| expr.get_type(schema);
    let alike = |exprs: &mut dyn Iterator<Item = &Expr>| -> Outcome<bool> {
        let kinds = exprs.map(kind).collect::<Outcome<Vec<_>>>()?;
        Ok(kinds.iter().all(is_plain) && kinds.windows(2).all(|pair| pair[0] == pair[1]))
    };
    Ok(match expr {
        Expr::BinaryExpr(BinaryExpr { left, op, right }) => {
            let (a, b) = (kind(left)?, kind(right)?);
            match op {
                Operator::And | Operator::Or => true,
                op if compares(*op) => a == b && is_plain(&a),
                Operator::Plus | Operator::Minus | Operator::Multiply => a == b && is_number(&a),
                Operator::Divide | Operator::Modulo => {
                    a == b && (a.is_floating() || a.is_integer() && allow::is_plain_divisor(right))
                }
                _ => false,
            }
        }
        // The least whole number is its own negative, so that `-x < -10` is not `x > 10`, for which the engine would take it.
        Expr::Negative(inner) => kind(inner)?.is_floating(),
        Expr::TryCast(cast) => {
            let (from, to) = (kind(&cast.expr)?, cast.field.data_type());
            from == *to || from.is_null() || is_wider(&from, to) || is_text(&from) && is_text(to)
        }
        Expr::Like(like) => {
            let constant = matches!(like.pattern.as_ref(), Expr::Literal(..));
            constant && is_text(&kind(&like.expr)?)
        }
        Expr::Between(Between { expr, low, high, .. }) => alike(&mut [expr, low, high].into_iter().map(AsRef::as_ref))?,
        Expr::InList(list) => alike(&mut std::iter::once(list.expr.as_ref()).chain(&list.list))?,
        Expr::ScalarFunction(call) => {
            CHOICES.contains(&call.name()) || call.name().starts_with("__whit") || call.args.is_empty()
        }
        Expr::Cast(_) | Expr::SimilarTo(_) => false,
        _ => true, // columns, constants, CASE, tests for NULL, and what holds other expressions without computing
    })
}

/// Whether a plan holds a step that was guarded: for tests.
#[cfg(test)]
pub(crate) fn has_attempts(plan: &LogicalPlan) -> bool {
    let mut found = false;
    let _ = plan.apply(|node| {
        for expr in node.expressions() {
            let _ = expr.apply(|inner| {
                found |= matches!(inner, Expr::ScalarFunction(call) if call.name().starts_with(attempt::NAME));
                Ok(TreeNodeRecursion::Continue)
            });
        }
        Ok(TreeNodeRecursion::Continue)
    });
    found
}

/// A constant that stands for NULL of a type.
fn missing(kind: &DataType) -> Outcome<ScalarValue> {
    ScalarValue::try_from(kind)
}
