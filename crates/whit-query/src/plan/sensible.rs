//! Comparisons that mean nothing: a date that is none, a date beside a number, text beside a number. The engine would turn one side into the other's type, each such row
//! would be missing or stand elsewhere than it says, and the answer would be charged.

use super::misread::placed;
use crate::error::{QueryError, planning};
use crate::evaluate::compares;
use crate::evaluate::words::{said, written};
use crate::source::is_text;
use crate::translate::in_words;
use datafusion::arrow::datatypes::DataType;
use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::common::{DFSchema, ScalarValue};
use datafusion::logical_expr::expr::{Between, InList};
use datafusion::logical_expr::type_coercion::binary::comparison_coercion;
use datafusion::logical_expr::{BinaryExpr, Expr, ExprSchemable, LogicalPlan};

/// Refuses a question in which something is compared with what it can never be.
pub(super) fn comparisons(plan: &LogicalPlan, sql: &str) -> Result<(), QueryError> {
    let mut fault = None;
    let walked = plan.apply_with_subqueries(|node| {
        let mut schema = DFSchema::empty();
        node.inputs().iter().for_each(|input| schema.merge(input.schema()));
        for expr in node.expressions() {
            expr.apply(|part| {
                fault = fault.take().or_else(|| wrong(part, &schema));
                Ok(if fault.is_some() { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
            })?;
        }
        Ok(if fault.is_some() { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
    });
    walked.map_err(|error| planning(&error))?;
    fault.map_or(Ok(()), |fault| Err(placed(fault, sql)))
}

fn wrong(expr: &Expr, schema: &DFSchema) -> Option<QueryError> {
    match expr {
        Expr::BinaryExpr(BinaryExpr { left, op, right }) if compares(*op) => pair(left, right, schema),
        Expr::Between(Between { expr, low, high, .. }) => pair(expr, low, schema).or_else(|| pair(expr, high, schema)),
        Expr::InList(InList { expr, list, .. }) => list.iter().find_map(|one| pair(expr, one, schema)),
        // TRY_CAST says itself that it may fail.
        Expr::Cast(cast) => text(&cast.expr).and_then(|text| no_such(text, cast.field.data_type(), None)),
        _ => None,
    }
}

/// The text of a constant.
fn text(expr: &Expr) -> Option<&str> {
    match expr {
        Expr::Literal(ScalarValue::Utf8(Some(text)) | ScalarValue::Utf8View(Some(text)), _) => Some(text),
        Expr::Alias(alias) => text(&alias.expr),
        _ => None,
    }
}

fn is_time(kind: &DataType) -> bool {
    matches!(kind, DataType::Date32 | DataType::Date64 | DataType::Timestamp(..))
}

/// What a text cannot become, where it is beside something, or is cast.
fn no_such(text: &str, kind: &DataType, beside: Option<&Expr>) -> Option<QueryError> {
    let becomes = ScalarValue::from(text).cast_to(kind);
    if becomes.is_ok_and(|value| !value.is_null()) {
        return None;
    }
    let (what, hint) = match kind {
        DataType::Date32 | DataType::Date64 => ("a date", "write year, month and day: DATE '2024-12-31'"),
        DataType::Timestamp(..) => ("a time", "write it as TIMESTAMP '2024-12-31 23:59:00'"),
        kind if kind.is_numeric() => ("a number", "write the number without quotes, or compare a column of text"),
        DataType::Boolean => ("true or false", "write TRUE or FALSE"),
        _ => return None,
    };
    let why = beside.map_or_else(String::new, |beside| format!(", and `{}` is {}", said(beside), in_words(kind)));
    Some(QueryError::asked(format!("'{text}' is not {what}{why}"), hint))
}

fn pair(a: &Expr, b: &Expr, schema: &DFSchema) -> Option<QueryError> {
    if let (Some(one), Some(other)) = (text(a), text(b)) {
        let sentence = format!("'{one}' and '{other}' are both text, so this is the same for every row");
        return Some(QueryError::asked(
            sentence,
            format!("a column stands without quotes, or in double ones: \"{one}\""),
        ));
    }
    let (left, right) = (a.get_type(schema).ok()?, b.get_type(schema).ok()?);
    beside(a, &left, b, &right).or_else(|| beside(b, &right, a, &left))
}

/// What is wrong with the second where it is compared with the first.
fn beside(a: &Expr, left: &DataType, b: &Expr, right: &DataType) -> Option<QueryError> {
    if let (Some(text), false) = (text(b), is_text(left)) {
        return no_such(text, left, Some(a));
    }
    let not_one = |hint: String| {
        let (one, other) = (in_words(left), in_words(right));
        Some(QueryError::asked(format!("`{}` is {one} and `{}` is {other}", said(a), said(b)), hint))
    };
    if is_time(left) && right.is_numeric() {
        // 2024-01-31 is a difference of numbers, 1992.
        return not_one("a date stands in quotes: DATE '2024-01-31'".to_owned());
    }
    // Two columns are what a join goes by, which says itself what it can compare.
    if is_text(left) && text(a).is_none() && right.is_numeric() && b.column_refs().is_empty() {
        return not_one(format!("compare it with text in quotes, or with a number by CAST({} AS DOUBLE)", written(a)));
    }
    // What has no order with the other in any engine: text beside true or false, a number beside a span of time.
    // A text that is written out is read as what it is compared with, and was looked at above. Of what is computed the engine knows the type later than here.
    let plain = |expr: &Expr| text(expr).is_none() && matches!(expr, Expr::Column(_) | Expr::Literal(..));
    if plain(a) && plain(b) && comparison_coercion(left, right).is_none() {
        let hint = match (is_text(left), right == &DataType::Boolean) {
            (true, true) => format!("compare it with text in quotes: {} = 'yes'", written(a)),
            _ => "compare things of one type, or CAST one of them".to_owned(),
        };
        return not_one(hint);
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use datafusion::prelude::SessionContext;

    fn asked(sql: &str) -> Result<(), String> {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(async {
            let context = SessionContext::new();
            let create = "CREATE TABLE t (day DATE, at TIMESTAMP, n INT, x DOUBLE, name VARCHAR, yes BOOLEAN)";
            context.sql(create).await.unwrap().collect().await.unwrap();
            let plan = context.state().create_logical_plan(sql).await.unwrap();
            comparisons(&plan, sql).map_err(|error| format!("{}; {}", error.sentence, error.hint.unwrap_or_default()))
        })
    }

    #[test]
    fn what_no_row_could_mean_is_refused() {
        let wrong = [
            ("day BETWEEN 2024-01-01 AND 2024-01-10", "`day` is a date and `2024 - 1 - 1` is a whole number", "DATE '"),
            ("day > '2024-13-01'", "'2024-13-01' is not a date, and `day` is a date", "DATE '2024-12-31'"),
            ("day = DATE '2024-02-30'", "'2024-02-30' is not a date", "DATE '2024-12-31'"),
            ("at >= 'yesterday'", "'yesterday' is not a time", "TIMESTAMP"),
            ("n IN (1, 'two')", "'two' is not a number, and `n` is a whole number", "without quotes"),
            ("name = 5", "`name` is text and `5` is a whole number", "CAST(name AS DOUBLE)"),
            ("5.5 < name", "`name` is text and `5.5` is a number", "in quotes"),
            ("yes = CAST('maybe' AS BOOLEAN)", "'maybe' is not true or false", "TRUE"),
            ("'Ship Country' = 'Austria'", "'Ship Country' and 'Austria' are both text", "\"Ship Country\""),
            ("day > 20240101", "`day` is a date and `20240101` is a whole number", "DATE '"),
        ];
        for (condition, sentence, hint) in wrong {
            for sql in [
                format!("SELECT COUNT(*) FROM t WHERE {condition}"),
                format!("SELECT SUM(CASE WHEN {condition} THEN 1 ELSE 0 END) FROM t"),
                format!("SELECT COUNT(*) FROM (SELECT * FROM t WHERE NOT ({condition})) u JOIN t ON u.n = t.n"),
            ] {
                let fault = asked(&sql).unwrap_err();
                assert!(fault.contains(sentence) && fault.contains(hint), "{sql}: {fault}");
            }
        }
    }

    #[test]
    fn what_means_something_is_not() {
        for condition in [
            "day BETWEEN '2024-01-01' AND DATE '2024-01-10'",
            "day > at",
            "at > '2024-01-01' AND at < '2024-01-02 10:00:00'",
            "n = '5' AND x < 3 AND x > n AND n <> 2.5",
            "name = '5' AND name > 'abc' AND 'x' = name",
            "yes = 'true' AND yes = TRUE AND yes",
            "day = TRY_CAST('never' AS DATE)",
            "n IS NULL OR n = NULL OR name = NULL",
            "day - DATE '2024-01-01' > INTERVAL '3 days'",
            "CAST(name AS DOUBLE) > 5",
            "name > n",
        ] {
            asked(&format!("SELECT COUNT(*) FROM t WHERE {condition}"))
                .unwrap_or_else(|fault| panic!("{condition}: {fault}"));
        }
    }
}
