//! Expressions as a question would write them.

use crate::translate::as_name;
use datafusion::common::Column;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::logical_expr::Expr;
use datafusion::scalar::ScalarValue;

/// Names to choose from: "a, b or c".
pub(crate) fn one_of(names: impl Iterator<Item = impl Into<String>>) -> String {
    let mut names: Vec<String> = names.map(Into::into).collect();
    match (names.pop(), names.is_empty()) {
        (Some(last), false) => format!("{} or {last}", names.join(", ")),
        (last, _) => last.unwrap_or_default(),
    }
}

/// The same expression over columns of other names.
pub(crate) fn renamed(expr: Expr, rename: &dyn Fn(Column) -> Column) -> datafusion::common::Result<Transformed<Expr>> {
    expr.transform_up(|node| {
        Ok(match node {
            Expr::Column(column) => Transformed::yes(Expr::Column(rename(column))),
            other => Transformed::no(other),
        })
    })
}

/// A column without the name of its table.
pub(crate) fn unqualified(column: Column) -> Column {
    Column::new_unqualified(column.name)
}

/// An expression without table names and aliases, to compare with another.
pub(crate) fn bare(expr: &Expr) -> Expr {
    let plain = renamed(expr.clone().unalias_nested().data, &unqualified);
    plain.map_or_else(|_| expr.clone(), |plain| plain.data)
}

/// A span of time as a question would write it.
fn in_spans(months: i32, days: i32, nanoseconds: i64) -> String {
    let spans = [(i64::from(months), "months"), (i64::from(days), "days")].into_iter();
    let mut spans: Vec<String> =
        spans.filter(|(many, _)| *many != 0).map(|(many, unit)| format!("{many} {unit}")).collect();
    if nanoseconds != 0 || spans.is_empty() {
        spans.push(format!("{} seconds", nanoseconds as f64 / 1e9));
    }
    format!("INTERVAL '{}'", spans.join(" "))
}

/// An expression as a question would have to write it, with names in quotes where they need them.
pub(crate) fn written(expr: &Expr) -> String {
    let quoted = bare(expr).transform_up(|node| {
        Ok(match node {
            Expr::Column(column) => Transformed::yes(Expr::Column(Column::new_unqualified(as_name(&column.name)))),
            other => Transformed::no(other),
        })
    });
    quoted.map_or_else(|_| said(expr), |quoted| said(&quoted.data))
}

/// An expression as a question would write it: without table names, and with plain literals.
pub(crate) fn said(expr: &Expr) -> String {
    let plain = bare(expr).transform_up(|node| {
        Ok(match node {
            Expr::Literal(value, _) => {
                let quoted = super::is_text(&value.data_type());
                let text = match &value {
                    ScalarValue::IntervalMonthDayNano(Some(span)) => in_spans(span.months, span.days, span.nanoseconds),
                    ScalarValue::IntervalDayTime(Some(span)) => {
                        in_spans(0, span.days, i64::from(span.milliseconds) * 1_000_000)
                    }
                    ScalarValue::IntervalYearMonth(Some(months)) => in_spans(*months, 0, 0),
                    value if quoted && !value.is_null() => format!("'{value}'"),
                    value => value.to_string(),
                };
                Transformed::yes(Expr::Column(Column::new_unqualified(text)))
            }
            other => Transformed::no(other),
        })
    });
    // What the engine calls a count of rows.
    plain.map_or_else(|_| expr.to_string(), |plain| plain.data.to_string()).replace("count(Int64(1))", "count(*)")
}
