//! Which expressions a private row may pass through, and how they are made unable to fail.
//!
//! An expression must be a function of its row alone: no volatile functions, no look at other rows. And it must not
//! fail because of what is in a row: an error that one row causes tells of that row. So casts become casts that give
//! NULL where they cannot be made, and division by zero gives NULL.

use crate::error::QueryError;
use datafusion::arrow::datatypes::DataType;
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::logical_expr::{Expr, LogicalPlan, Operator, TryCast, lit, when};
use datafusion::scalar::ScalarValue;
use whit_core::declare::nearest;

/// Functions of one row that never fail, whatever is in it.
const FUNCTIONS: &[&str] = &[
    "acos",
    "acosh",
    "ascii",
    "asin",
    "asinh",
    "atan",
    "atan2",
    "atanh",
    "bin",
    "bit_length",
    "btrim",
    "cbrt",
    "ceil",
    "character_length",
    "clamp",
    "coalesce",
    "concat",
    "concat_ws",
    "cos",
    "cosh",
    "cot",
    "date_part",
    "date_trunc",
    "degrees",
    "ends_with",
    "exp",
    "floor",
    "greatest",
    "initcap",
    "isnan",
    "iszero",
    "least",
    "left",
    "levenshtein",
    "ln",
    "log",
    "log10",
    "log2",
    "lower",
    "ltrim",
    "nanvl",
    "nullif",
    "nvl",
    "nvl2",
    "octet_length",
    "pi",
    "radians",
    "registrable_domain",
    "replace",
    "reverse",
    "right",
    "round",
    "rtrim",
    "signum",
    "sin",
    "sinh",
    "split_part",
    "sqrt",
    "starts_with",
    "strpos",
    "substr",
    "substr_index",
    "tan",
    "tanh",
    "to_hex",
    "translate",
    "trunc",
    "upper",
];

/// Whether a scalar function may touch a private row.
pub(crate) fn function(name: &str) -> bool {
    FUNCTIONS.contains(&name) || name.starts_with(crate::plan::track::PARTITION_FUNCTION)
}

/// Aggregates that depend on the values alone and not on the order of rows: fit for sub-queries that stay within a unit.
pub(crate) fn inner_aggregate(name: &str) -> bool {
    const NAMES: &[&str] = &["count", "sum", "avg", "min", "max", "median", "bool_and", "bool_or"];
    NAMES.contains(&name)
}

/// Window functions that look at the rows of their partition only.
pub(crate) fn window(name: &str) -> bool {
    const NAMES: &[&str] = &[
        "row_number",
        "rank",
        "dense_rank",
        "percent_rank",
        "cume_dist",
        "ntile",
        "lag",
        "lead",
        "first_value",
        "last_value",
        "nth_value",
    ];
    NAMES.contains(&name) || inner_aggregate(name)
}

/// Makes an expression over a private row unable to fail, or says why it cannot stand there.
///
/// `public` says whether a sub-query reads public tables only.
pub(crate) fn expression(
    expr: Expr,
    public: &mut dyn FnMut(&LogicalPlan) -> Result<bool, QueryError>,
) -> Result<Expr, QueryError> {
    let mut fault = None;
    let checked = expr.apply(|node| {
        fault = fault_of(node, public).err();
        Ok(if fault.is_some() { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
    });
    if let Some(fault) = fault {
        return Err(fault);
    }
    checked.map_err(|error| crate::engine::planning(&error))?;
    harmless(expr)
}

/// A cast that gives NULL where it cannot be made.
pub(crate) fn soft_cast(expr: Expr) -> Transformed<Expr> {
    match expr {
        Expr::Cast(cast) => Transformed::yes(Expr::TryCast(TryCast { expr: cast.expr, field: cast.field })),
        other => Transformed::no(other),
    }
}

/// The same expression, unable to fail: what cannot be cast is NULL, and so is what is divided by zero.
pub(crate) fn harmless(expr: Expr) -> Result<Expr, QueryError> {
    let safe = expr.transform_up(|node| {
        Ok(match node {
            cast @ Expr::Cast(_) => soft_cast(cast),
            Expr::BinaryExpr(binary) if matches!(binary.op, Operator::Divide | Operator::Modulo) => {
                if is_plain_divisor(&binary.right) {
                    Transformed::no(Expr::BinaryExpr(binary))
                } else {
                    // By zero there is no quotient, and the least whole number has none by −1 either.
                    let (dividend, divisor) = (binary.left.as_ref().clone(), binary.right.as_ref().clone());
                    let by_minus_one =
                        if binary.op == Operator::Divide { Expr::Negative(Box::new(dividend)) } else { lit(0) };
                    let guarded = when(divisor.clone().eq(lit(0)), lit(ScalarValue::Null))
                        .when(divisor.eq(lit(-1)), by_minus_one)
                        .otherwise(Expr::BinaryExpr(binary))?;
                    Transformed::yes(guarded)
                }
            }
            Expr::ScalarFunction(mut call) if call.name() == "abs" && call.args.len() == 1 => {
                let value = call.args.remove(0);
                let below = value.clone().lt(lit(0));
                Transformed::yes(when(below, Expr::Negative(Box::new(value.clone()))).otherwise(value)?)
            }
            other => Transformed::no(other),
        })
    });
    safe.map(|safe| safe.data).map_err(|error| crate::engine::planning(&error))
}

/// A literal that is not zero divides anything.
fn is_plain_divisor(expr: &Expr) -> bool {
    match expr {
        Expr::Literal(value, _) => {
            !value.is_null()
                && value.cast_to(&DataType::Float64).is_ok_and(
                    |value| !matches!(value, ScalarValue::Float64(Some(divisor)) if divisor == 0.0 || divisor == -1.0),
                )
        }
        _ => false,
    }
}

#[expect(
    clippy::match_same_arms,
    reason = "the order matters: what is refused among literals and operators stands before the rest of them"
)]
fn fault_of(expr: &Expr, public: &mut dyn FnMut(&LogicalPlan) -> Result<bool, QueryError>) -> Result<(), QueryError> {
    let refuse = |what: String, hint: &str| Err(QueryError::asked(what, hint));
    match expr {
        Expr::Alias(_)
        | Expr::Column(_)
        | Expr::Like(_)
        | Expr::Not(_)
        | Expr::IsNotNull(_)
        | Expr::IsNull(_)
        | Expr::IsTrue(_)
        | Expr::IsFalse(_)
        | Expr::IsUnknown(_)
        | Expr::IsNotTrue(_)
        | Expr::IsNotFalse(_)
        | Expr::IsNotUnknown(_)
        | Expr::Negative(_)
        | Expr::Between(_)
        | Expr::Case(_)
        | Expr::Cast(_)
        | Expr::TryCast(_)
        | Expr::InList(_) => Ok(()),
        Expr::BinaryExpr(binary)
            if matches!(
                binary.op,
                Operator::RegexMatch | Operator::RegexNotMatch | Operator::RegexIMatch | Operator::RegexNotIMatch
            ) =>
        {
            refuse(format!("`{expr}` may fail on what is in a row"), "use LIKE")
        }
        Expr::Literal(value, _) if matches!(value.data_type(), DataType::Interval(_) | DataType::Duration(_)) => {
            refuse(
                format!("`{expr}` may fail on a date that is too far away"),
                "compare with a fixed date instead, or use date_part",
            )
        }
        Expr::ScalarFunction(call) if call.name() == "abs" => Ok(()), // written out below
        Expr::ScalarFunction(call) if function(call.name()) => constants(call),
        Expr::ScalarFunction(call) => refuse(
            format!(
                "`{}` may not read a private row: it is not known to be a function of that row that never fails",
                call.name()
            ),
            &format!(
                "{}compute it beforehand, or use one of: {}",
                nearest(call.name(), FUNCTIONS.iter().copied())
                    .map_or_else(String::new, |near| format!("did you mean `{near}`? else ")),
                FUNCTIONS.join(", ")
            ),
        ),
        Expr::BinaryExpr(_) | Expr::Literal(..) => Ok(()),
        Expr::InSubquery(inside) => subquery(&inside.subquery, public),
        Expr::Exists(inside) => subquery(&inside.subquery, public),
        Expr::ScalarSubquery(inside) => subquery(inside, public),
        other => refuse(
            format!("`{other}` may not read a private row: this kind of expression is not known to stay within it"),
            "rewrite it with comparisons, arithmetic, CASE and functions of one row",
        ),
    }
}

/// The parts of a date that have a name.
const PARTS: [&str; 21] = [
    "year",
    "quarter",
    "month",
    "week",
    "day",
    "hour",
    "minute",
    "second",
    "millisecond",
    "microsecond",
    "isoyear",
    "isodow",
    "dow",
    "doy",
    "epoch",
    "decade",
    "century",
    "milliseconds",
    "microseconds",
    "nanosecond",
    "nanoseconds",
];

/// Arguments that must be constants, and make sense: what is wrong with them would show only when a row gets there.
fn constants(call: &datafusion::logical_expr::expr::ScalarFunction) -> Result<(), QueryError> {
    let number = |i: usize| match call.args.get(i) {
        Some(Expr::Literal(value, _)) => super::range::literal(value),
        Some(Expr::Negative(inner)) => match inner.as_ref() {
            Expr::Literal(value, _) => super::range::literal(value).map(|value| -value),
            _ => None,
        },
        _ => None,
    };
    let word = |i: usize| match call.args.get(i) {
        Some(Expr::Literal(value, _)) => Some(value.to_string().to_lowercase()),
        _ => None,
    };
    let fine = match call.name() {
        "clamp" => number(1).zip(number(2)).is_some_and(|(low, high)| low <= high),
        "bin" => {
            matches!((number(1), number(2), number(3)), (Some(low), Some(high), Some(n)) if crate::functions::edges(low, high, n).is_some())
        }
        "date_trunc" | "date_part" => word(0).is_some_and(|part| PARTS.contains(&part.as_str())),
        "substr" => (1..call.args.len()).all(|i| number(i).is_some_and(|n| (0.0..1e9).contains(&n))),
        "split_part" | "substr_index" => number(2).is_some_and(|n| n != 0.0 && n.abs() < 1e9),
        "round" | "trunc" => (1..call.args.len()).all(|i| number(i).is_some_and(|n| n.abs() < 300.0)),
        "left" | "right" => number(1).is_some_and(|n| n.abs() < 1e9),
        "log" => call.args.len() < 2 || number(0).is_some(),
        _ => true,
    };
    if fine {
        return Ok(());
    }
    Err(QueryError::asked(
        format!("`{}` needs constants that make sense as its options, or it may fail on some row", call.name()),
        "write the numbers and words out",
    ))
}

fn subquery(
    inside: &datafusion::logical_expr::Subquery,
    public: &mut dyn FnMut(&LogicalPlan) -> Result<bool, QueryError>,
) -> Result<(), QueryError> {
    if inside.outer_ref_columns.is_empty() && public(&inside.subquery)? {
        return Ok(());
    }
    Err(QueryError::asked(
        "a sub-query inside an expression reads private rows, or the row around it, so one row would depend on others",
        "join along the user key instead, or make the other table public if it is",
    ))
}
