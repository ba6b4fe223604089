//! Which expressions a private row may pass through.
//!
//! An expression must be a function of its row alone: no volatile functions, no look at other rows, at files or at the clock.
//! That it does not fail because of what is in a row is seen to by [`evaluate`](super), whatever it is made of. Casts that cannot be
//! made, quotients by zero and roots of what is below zero are common, so they are written out here as NULL, which is quicker.

use super::number::literal;
use super::words::said;
use crate::error::{QueryError, planning};
use crate::partition::PARTITION_FUNCTION;
use datafusion::arrow::datatypes::DataType;
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::logical_expr::{Expr, LogicalPlan, Operator, TryCast, lit, when};
use datafusion::scalar::ScalarValue;
use whit_core::declare::nearest;

/// Functions of one row alone. What they cannot be computed for is NULL.
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
    "chr",
    "clamp",
    "coalesce",
    "concat",
    "concat_ws",
    "contains",
    "cos",
    "cosh",
    "cot",
    "date_bin",
    "date_part",
    "date_trunc",
    "degrees",
    "ends_with",
    "exp",
    "factorial",
    "find_in_set",
    "floor",
    "from_unixtime",
    "gcd",
    "greatest",
    "initcap",
    "isnan",
    "iszero",
    "lcm",
    "least",
    "left",
    "levenshtein",
    "ln",
    "log",
    "log10",
    "log2",
    "lower",
    "lpad",
    "ltrim",
    "make_date",
    "make_time",
    "nanvl",
    "nullif",
    "nvl",
    "nvl2",
    "octet_length",
    "overlay",
    "pi",
    "power",
    "radians",
    "regexp_count",
    "regexp_instr",
    "regexp_like",
    "regexp_replace",
    "registrable_domain",
    "repeat",
    "replace",
    "reverse",
    "right",
    "round",
    "rpad",
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
    "to_char",
    "to_date",
    "to_hex",
    "to_local_time",
    "to_time",
    "to_timestamp",
    "to_timestamp_micros",
    "to_timestamp_millis",
    "to_timestamp_nanos",
    "to_timestamp_seconds",
    "to_unixtime",
    "translate",
    "trunc",
    "upper",
    "width_bucket",
];

/// Whether a scalar function may touch a private row.
pub(crate) fn function(name: &str) -> bool {
    FUNCTIONS.contains(&name) || name.starts_with(PARTITION_FUNCTION)
}

/// The names of all scalar functions that may touch a private row.
pub(crate) fn names() -> impl Iterator<Item = &'static str> {
    FUNCTIONS.iter().copied()
}

/// Window functions, other than aggregates, that look at the rows of their partition only.
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
    NAMES.contains(&name)
}

/// An expression over a private row with its common failures written out, or why it cannot stand there.
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
    checked.map_err(|error| planning(&error))?;
    harmless(expr)
}

/// A cast that gives NULL where it cannot be made.
pub(crate) fn soft_cast(expr: Expr) -> Transformed<Expr> {
    match expr {
        Expr::Cast(cast) => Transformed::yes(Expr::TryCast(TryCast { expr: cast.expr, field: cast.field })),
        other => Transformed::no(other),
    }
}

/// The same expression with common failures written out: what cannot be cast is NULL, and so are a quotient by zero and a root of what is below it.
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
            Expr::ScalarFunction(call) if call.name() == "sqrt" && call.args.len() == 1 => {
                let below = call.args[0].clone().lt(lit(0));
                Transformed::yes(when(below, lit(ScalarValue::Float64(None))).otherwise(Expr::ScalarFunction(call))?)
            }
            Expr::ScalarFunction(mut call) if call.name() == "abs" && call.args.len() == 1 => {
                let value = call.args.remove(0);
                let below = value.clone().lt(lit(0));
                Transformed::yes(when(below, Expr::Negative(Box::new(value.clone()))).otherwise(value)?)
            }
            other => Transformed::no(other),
        })
    });
    safe.map(|safe| safe.data).map_err(|error| planning(&error))
}

/// A literal that is not zero divides anything.
pub(crate) fn is_plain_divisor(expr: &Expr) -> bool {
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
            ) && !matches!(binary.right.as_ref(), Expr::Literal(..)) =>
        {
            refuse(format!("the pattern of `{}` is no constant", said(expr)), "write the pattern out")
        }
        Expr::SimilarTo(like) if !matches!(like.pattern.as_ref(), Expr::Literal(..)) => {
            refuse(format!("the pattern of `{}` is no constant", said(expr)), "write the pattern out")
        }
        Expr::SimilarTo(_) => Ok(()),
        Expr::ScalarFunction(call) if call.name() == "abs" => Ok(()), // written out below
        Expr::ScalarFunction(call) if function(call.name()) => constants(call),
        Expr::ScalarFunction(call) => refuse(
            format!("`{}` may not read a private row: it is not known to be a function of that row alone", call.name()),
            &instead_of(call.name()),
        ),
        Expr::BinaryExpr(_) | Expr::Literal(..) => Ok(()),
        Expr::InSubquery(inside) => subquery(&inside.subquery, public),
        Expr::Exists(inside) => subquery(&inside.subquery, public),
        Expr::ScalarSubquery(inside) => subquery(inside, public),
        Expr::Placeholder(gap) => {
            refuse(format!("`{}` stands for a value that nobody gives here", gap.id), "write the value itself")
        }
        other => refuse(
            format!(
                "`{}` may not read a private row: this kind of expression is not known to stay within it",
                said(other)
            ),
            "rewrite it with comparisons, arithmetic, CASE and functions of one row",
        ),
    }
}

/// What to write where a function may not stand.
fn instead_of(name: &str) -> String {
    let rewritten = match name {
        "regexp_match" => {
            "regexp_like(x, 'pattern') says whether it matches, and regexp_replace(x, '^.*(pattern).*$', '\\1') takes a part"
        }
        "uuid" | "random" => "what changes from run to run has no place in a question",
        "encode" | "decode" | "md5" | "sha224" | "sha256" | "sha384" | "sha512" | "digest" => "compare the text itself",
        "arrow_typeof" | "version" => "nothing of a row is in it: leave it out",
        "arrow_cast" => "CAST(x AS DOUBLE)",
        "struct" | "named_struct" => "compare one thing after the other, with AND between them",
        _ => "",
    };
    match nearest(name, FUNCTIONS.iter().copied()).filter(|_| rewritten.is_empty()) {
        Some(near) => format!("did you mean `{near}`? else compute it beforehand, as a column of its own"),
        None if rewritten.is_empty() => "compute it beforehand, as a column of its own".to_owned(),
        None => rewritten.to_owned(),
    }
}

/// Arguments that must be constants: edges of bins that are known without looking, and patterns that are compiled once.
fn constants(call: &datafusion::logical_expr::expr::ScalarFunction) -> Result<(), QueryError> {
    let number = |i: usize| match call.args.get(i) {
        Some(Expr::Literal(value, _)) => literal(value),
        Some(Expr::Negative(inner)) => match inner.as_ref() {
            Expr::Literal(value, _) => literal(value).map(|value| -value),
            _ => None,
        },
        _ => None,
    };
    let constant = |i: usize| matches!(call.args.get(i), Some(Expr::Literal(value, _)) if !value.is_null());
    let fine = match call.name() {
        "clamp" => number(1).zip(number(2)).is_some_and(|(low, high)| low <= high),
        "bin" | "width_bucket" => {
            matches!((number(1), number(2), number(3)), (Some(low), Some(high), Some(n)) if crate::functions::edges(low, high, n).is_some())
        }
        "date_trunc" | "date_part" => constant(0),
        "regexp_like" | "regexp_count" | "regexp_instr" | "regexp_replace" => {
            constant(1) && (2..call.args.len()).all(constant)
        }
        _ => true,
    };
    if fine {
        return Ok(());
    }
    Err(QueryError::asked(
        format!("`{}` needs constants that make sense as its options", call.name()),
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
