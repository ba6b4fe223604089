//! Comparisons that mean nothing: a date that is none, a date beside a number, text beside a number, a zone or a pattern that says nothing of a time. The engine would turn
//! one side into the other's type, each such row would be missing or stand elsewhere than it says, and the answer would be charged.

use super::misread::placed;
use crate::error::{QueryError, planning};
use crate::evaluate::words::{said, written};
use crate::evaluate::{CHOICES, compares};
use crate::source::is_text;
use crate::translate::in_words;
use datafusion::arrow::array::timezone::Tz;
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
        Expr::Cast(cast) => no_zone(cast.field.data_type())
            .or_else(|| text(&cast.expr).and_then(|text| no_such(text, cast.field.data_type(), None))),
        Expr::Case(case) => case.when_then_expr.iter().find_map(|(when, _)| match &case.expr {
            Some(of) => pair(of, when, schema),
            None => no_condition(when, schema),
        }),
        Expr::AggregateFunction(call) => no_condition(call.params.filter.as_ref()?, schema),
        Expr::ScalarFunction(call) if CHOICES.contains(&call.name()) => {
            let of = call.args.iter().find(|one| text(one).is_none())?;
            let kind = of.get_type(schema).ok().filter(|kind| !is_text(kind))?;
            call.args.iter().filter_map(text).find_map(|text| no_such(text, &kind, Some(of)))
        }
        Expr::ScalarFunction(call) if call.name() == "to_char" => no_time_in(text(call.args.get(1)?)?),
        _ => None,
    }
}

/// What is taken for a condition, and is none: a number would count as true where it is not 0.
fn no_condition(expr: &Expr, schema: &DFSchema) -> Option<QueryError> {
    let kind = expr.get_type(schema).ok().filter(|kind| !matches!(kind, DataType::Boolean | DataType::Null))?;
    let said = said(expr);
    let hint = if kind.is_numeric() {
        format!("compare it: {} <> 0", written(expr))
    } else {
        "compare it with something".to_owned()
    };
    Some(QueryError::asked(
        format!("the condition `{said}` is {}, and a condition is true or false", in_words(&kind)),
        hint,
    ))
}

/// A zone that no clock goes by.
fn no_zone(kind: &DataType) -> Option<QueryError> {
    let DataType::Timestamp(_, Some(zone)) = kind else { return None };
    let known = zone.parse::<Tz>().is_ok();
    let hint = "name a place, such as 'Europe/Vienna', or a distance from UTC, such as '+01:00'";
    (!known).then(|| QueryError::asked(format!("there is no time zone '{zone}'"), hint))
}

/// A pattern that would write the same for every time. Most come from where patterns are letters.
fn no_time_in(pattern: &str) -> Option<QueryError> {
    if pattern.contains('%') {
        return None;
    }
    let signs = [
        ("YYYY", "%Y"),
        ("yyyy", "%Y"),
        ("MM", "%m"),
        ("mm", "%m"),
        ("DD", "%d"),
        ("dd", "%d"),
        ("HH24", "%H"),
        ("HH12", "%I"),
        ("HH", "%H"),
        ("hh", "%H"),
        ("MI", "%M"),
        ("mi", "%M"),
        ("SS", "%S"),
        ("ss", "%S"),
        ("Month", "%B"),
        ("Mon", "%b"),
        ("Day", "%A"),
        ("Dy", "%a"),
        ("IW", "%V"),
        ("Q", "%q"),
    ];
    let meant = signs.iter().fold(pattern.to_owned(), |meant, (letters, sign)| meant.replace(letters, sign));
    let hint =
        if meant == pattern { "write signs such as '%Y-%m-%d %H:%M'".to_owned() } else { format!("write '{meant}'") };
    Some(QueryError::asked(
        format!("'{pattern}' has no sign for a part of a time, so this is the same for every row"),
        hint,
    ))
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
            ("CASE day WHEN 'soon' THEN TRUE ELSE FALSE END", "'soon' is not a date, and `day` is a date", "DATE '"),
            ("CASE n WHEN 'few' THEN TRUE ELSE FALSE END", "'few' is not a number", "without quotes"),
            ("nullif(day, 'never') IS NULL", "'never' is not a date", "DATE '"),
            ("at AT TIME ZONE 'Mars/Olympus' > at", "there is no time zone 'Mars/Olympus'", "Europe/Vienna"),
            ("to_char(at, 'YYYY-MM-DD HH24:MI') = 'a'", "the same for every row", "write '%Y-%m-%d %H:%M'"),
            ("to_char(at, 'week') = 'a'", "the same for every row", "signs such as"),
            ("CASE WHEN n THEN TRUE END", "the condition `n` is a whole number", "n <> 0"),
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
            "CASE day WHEN '2024-01-01' THEN TRUE ELSE FALSE END AND CASE name WHEN 'a' THEN yes END",
            "coalesce(name, '?') = 'a' AND nullif(n, '5') > 3",
            "at AT TIME ZONE 'Europe/Vienna' > at AND at AT TIME ZONE '+02:00' < at",
            "to_char(at, '%Y-%m') = '2024-01' AND to_char(day, '%d.%m.') = '01.01.'",
        ] {
            asked(&format!("SELECT COUNT(*) FROM t WHERE {condition}"))
                .unwrap_or_else(|fault| panic!("{condition}: {fault}"));
        }
    }
}
