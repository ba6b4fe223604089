//! An expression in our own words, over columns that are known by where they come from.

use super::numbers::{Numbers, Over, wordless};
use super::value;
use crate::error::QueryError;
use datafusion::logical_expr::expr::{GroupingSet, NullTreatment, SetQuantifier, Sort, WindowFunction};
use datafusion::logical_expr::{Expr, Operator, WindowFrameBound, WindowFrameUnits, WindowFunctionDefinition};
use datafusion::scalar::ScalarValue;
use serde_json::{Value, json};
use whit_account::meaning::{set, text};

/// What an expression means.
#[expect(clippy::too_many_lines, reason = "one arm a kind of expression, and each a few lines")]
pub(super) fn of(expr: &Expr, over: &Over<'_>, numbers: &mut Numbers<'_>) -> Result<Value, QueryError> {
    let mut inside = |expr: &Expr| of(expr, over, numbers);
    Ok(match expr {
        Expr::Alias(alias) => inside(&alias.expr)?,
        Expr::Column(column) => over.column(column)?,
        Expr::Literal(constant, _) => value::literal(constant)?,
        Expr::BinaryExpr(binary) => match binary.op {
            op @ (Operator::And | Operator::Or) => {
                let mut sides = Vec::new();
                flatten(expr, op, &mut sides);
                let word = if op == Operator::And { "all" } else { "any" };
                let mut said = Vec::new();
                for side in sides {
                    said.extend(each(inside(side)?, word));
                }
                json!({ word: set(said) })
            }
            op => {
                let (left, right) = (inside(&binary.left)?, inside(&binary.right)?);
                step(op, left, right)
            }
        },
        Expr::Not(of) => json!({ "not": inside(of)? }),
        Expr::Negative(of) => json!({ "minus": inside(of)? }),
        Expr::IsNull(of) => json!({ "is": "null", "of": inside(of)? }),
        Expr::IsNotNull(of) => json!({ "not": { "is": "null", "of": inside(of)? } }),
        Expr::IsTrue(of) => json!({ "is": "true", "of": inside(of)? }),
        Expr::IsNotTrue(of) => json!({ "not": { "is": "true", "of": inside(of)? } }),
        Expr::IsFalse(of) => json!({ "is": "false", "of": inside(of)? }),
        Expr::IsNotFalse(of) => json!({ "not": { "is": "false", "of": inside(of)? } }),
        Expr::IsUnknown(of) => json!({ "is": "unknown", "of": inside(of)? }),
        Expr::IsNotUnknown(of) => json!({ "not": { "is": "unknown", "of": inside(of)? } }),
        Expr::Between(between) => {
            let [of, low, high] = [&between.expr, &between.low, &between.high].map(|expr| inside(expr));
            let (of, low, high) = (of?, low?, high?);
            let sides = vec![step(Operator::LtEq, low, of.clone()), step(Operator::LtEq, of, high)];
            negated(json!({ "all": set(sides) }), between.negated)
        }
        Expr::Like(like) | Expr::SimilarTo(like) => {
            let (of, pattern) = (inside(&like.expr)?, inside(&like.pattern)?);
            let how = if matches!(expr, Expr::Like(_)) { "like" } else { "similar to" };
            let said = json!({
                how: pattern,
                "of": of,
                "escape": like.escape_char.map(String::from),
                "any case": like.case_insensitive,
            });
            negated(said, like.negated)
        }
        Expr::Case(case) => {
            let of = case.expr.as_deref().map(&mut inside).transpose()?;
            let mut cases = Vec::new();
            for (when, then) in &case.when_then_expr {
                cases.push(json!([inside(when)?, inside(then)?]));
            }
            let otherwise = case.else_expr.as_deref().map(&mut inside).transpose()?;
            json!({ "case": of, "when": cases, "else": otherwise })
        }
        Expr::Cast(cast) => json!({ "cast": inside(&cast.expr)?, "to": value::kind(cast.field.data_type()) }),
        // NULL where it cannot be made.
        Expr::TryCast(cast) => json!({ "try cast": inside(&cast.expr)?, "to": value::kind(cast.field.data_type()) }),
        Expr::ScalarFunction(call) => {
            let arguments: Vec<Value> = call.args.iter().map(inside).collect::<Result<_, _>>()?;
            json!({ "call": call.name(), "with": arguments })
        }
        Expr::InList(list) => {
            let of = inside(&list.expr)?;
            let values = list.list.iter().map(inside).collect::<Result<_, _>>()?;
            negated(json!({ "in": set(values), "of": of }), list.negated)
        }
        Expr::InSubquery(within) => {
            let of = inside(&within.expr)?;
            let values = numbers.subquery(&within.subquery.subquery, over)?;
            negated(json!({ "in": values, "of": of }), within.negated)
        }
        Expr::Exists(exists) => {
            negated(json!({ "exists": numbers.subquery(&exists.subquery.subquery, over)? }), exists.negated)
        }
        Expr::ScalarSubquery(query) => json!({ "value": numbers.subquery(&query.subquery, over)? }),
        Expr::AggregateFunction(call) => {
            let arguments: Vec<Value> = call.params.args.iter().map(&mut inside).collect::<Result<_, _>>()?;
            let filter = call.params.filter.as_deref().map(&mut inside).transpose()?;
            let order = order_of(&call.params.order_by, over, numbers)?;
            json!({
                "aggregate": call.func.name(),
                "of": arguments,
                "different": call.params.distinct,
                "where": filter,
                "order": order,
                "nulls": call.params.null_treatment.map(nulls),
            })
        }
        Expr::WindowFunction(call) => window(call, over, numbers)?,
        Expr::SetComparison(compared) => {
            let of = inside(&compared.expr)?;
            let values = numbers.subquery(&compared.subquery.subquery, over)?;
            let which = match compared.quantifier {
                SetQuantifier::Any => "any of",
                SetQuantifier::All => "all of",
            };
            json!({ "step": word(compared.op), "of": of, which: values })
        }
        Expr::GroupingSet(sets) => {
            let mut each = |of: &[Expr]| of.iter().map(&mut inside).collect::<Result<Vec<_>, _>>();
            match sets {
                GroupingSet::Rollup(keys) => json!({ "rollup": each(keys)? }),
                GroupingSet::Cube(keys) => json!({ "cube": each(keys)? }),
                GroupingSet::GroupingSets(sets) => {
                    json!({ "sets": sets.iter().map(|keys| each(keys)).collect::<Result<Vec<_>, _>>()? })
                }
            }
        }
        Expr::OuterReferenceColumn(_, column) => numbers.outer(column)?,
        _ => {
            return Err(wordless("a variable, an opened list or a function of functions", "write the values out"));
        }
    })
}

fn negated(said: Value, negated: bool) -> Value {
    if negated { json!({ "not": said }) } else { said }
}

/// The conditions of which one is made by this word (`all`, `any`): itself, where it is not.
pub(super) fn each(condition: Value, word: &str) -> Vec<Value> {
    match condition {
        Value::Object(mut members) if members.len() == 1 && members.contains_key(word) => match members.remove(word) {
            Some(Value::Array(inside)) => inside,
            other => vec![json!({ word: other })],
        },
        other => vec![other],
    }
}

/// All sides of conditions that are joined by the same word.
pub(super) fn flatten<'a>(expr: &'a Expr, op: Operator, sides: &mut Vec<&'a Expr>) {
    match expr {
        Expr::BinaryExpr(binary) if binary.op == op => {
            flatten(&binary.left, op, sides);
            flatten(&binary.right, op, sides);
        }
        Expr::Alias(alias) => flatten(&alias.expr, op, sides),
        other => sides.push(other),
    }
}

/// One step of two values. Those that mean the same turned around are written in one direction.
pub(super) fn step(op: Operator, left: Value, right: Value) -> Value {
    let (op, left, right) = match op {
        Operator::Gt => (Operator::Lt, right, left),
        Operator::GtEq => (Operator::LtEq, right, left),
        Operator::Eq | Operator::NotEq | Operator::IsDistinctFrom | Operator::IsNotDistinctFrom
            if text(&left) > text(&right) =>
        {
            (op, right, left)
        }
        op => (op, left, right),
    };
    json!({ "step": word(op), "of": [left, right] })
}

/// An operator in words that are ours: one that the engine adds stops the build until it has its own, and what it prints is not asked.
fn word(op: Operator) -> &'static str {
    match op {
        Operator::Eq => "=",
        Operator::NotEq => "!=",
        Operator::Lt => "<",
        Operator::LtEq => "<=",
        Operator::Gt => ">",
        Operator::GtEq => ">=",
        Operator::Plus => "+",
        Operator::Minus => "-",
        Operator::Multiply => "*",
        Operator::Divide => "/",
        Operator::Modulo => "%",
        Operator::And => "AND",
        Operator::Or => "OR",
        Operator::RegexMatch => "~",
        Operator::RegexIMatch => "~*",
        Operator::RegexNotMatch => "!~",
        Operator::RegexNotIMatch => "!~*",
        Operator::LikeMatch => "~~",
        Operator::ILikeMatch => "~~*",
        Operator::NotLikeMatch => "!~~",
        Operator::NotILikeMatch => "!~~*",
        Operator::IsDistinctFrom => "IS DISTINCT FROM",
        Operator::IsNotDistinctFrom => "IS NOT DISTINCT FROM",
        Operator::BitwiseAnd => "&",
        Operator::BitwiseOr => "|",
        Operator::BitwiseXor => "BIT_XOR",
        Operator::BitwiseShiftRight => ">>",
        Operator::BitwiseShiftLeft => "<<",
        Operator::StringConcat => "||",
        Operator::AtArrow => "@>",
        Operator::ArrowAt => "<@",
        Operator::Arrow => "->",
        Operator::LongArrow => "->>",
        Operator::HashArrow => "#>",
        Operator::HashLongArrow => "#>>",
        Operator::AtAt => "@@",
        Operator::IntegerDivide => "DIV",
        Operator::HashMinus => "#-",
        Operator::AtQuestion => "@?",
        Operator::Question => "?",
        Operator::QuestionAnd => "?&",
        Operator::QuestionPipe => "?|",
        Operator::Colon => ":",
    }
}

fn nulls(treatment: NullTreatment) -> &'static str {
    match treatment {
        NullTreatment::IgnoreNulls => "IGNORE NULLS",
        NullTreatment::RespectNulls => "RESPECT NULLS",
    }
}

pub(super) fn order_of(order: &[Sort], over: &Over<'_>, numbers: &mut Numbers<'_>) -> Result<Vec<Value>, QueryError> {
    let by = |sort: &Sort| {
        Ok(json!({
            "by": of(&sort.expr, over, numbers)?,
            "rising": sort.asc,
            "nulls first": sort.nulls_first,
        }))
    };
    order.iter().map(by).collect()
}

fn window(call: &WindowFunction, over: &Over<'_>, numbers: &mut Numbers<'_>) -> Result<Value, QueryError> {
    let name = match &call.fun {
        WindowFunctionDefinition::AggregateUDF(function) => function.name(),
        WindowFunctionDefinition::WindowUDF(function) => function.name(),
    };
    let params = &call.params;
    let mut inside = |expr: &Expr| of(expr, over, numbers);
    let arguments: Vec<Value> = params.args.iter().map(&mut inside).collect::<Result<_, _>>()?;
    let partitions = params.partition_by.iter().map(&mut inside).collect::<Result<_, _>>()?;
    let filter = params.filter.as_deref().map(&mut inside).transpose()?;
    let frame = &params.window_frame;
    let units = match frame.units {
        WindowFrameUnits::Rows => "rows",
        WindowFrameUnits::Range => "range",
        WindowFrameUnits::Groups => "groups",
    };
    let bound = |bound: &WindowFrameBound| -> Result<Value, QueryError> {
        Ok(match bound {
            WindowFrameBound::Preceding(by) => json!({ "before": distance(by)? }),
            WindowFrameBound::CurrentRow => json!("here"),
            WindowFrameBound::Following(by) => json!({ "after": distance(by)? }),
        })
    };
    Ok(json!({
        "window": name,
        "of": arguments,
        "by": set(partitions),
        "where": filter,
        "order": order_of(&params.order_by, over, numbers)?,
        "frame": [units, bound(&frame.start_bound)?, bound(&frame.end_bound)?],
        "different": params.distinct,
        "nulls": params.null_treatment.map(nulls),
    }))
}

/// How far a frame reaches: to the end, where it says nothing.
fn distance(by: &ScalarValue) -> Result<Value, QueryError> {
    if by.is_null() { Ok(Value::Null) } else { value::literal(by) }
}
