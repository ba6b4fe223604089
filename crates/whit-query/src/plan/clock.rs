//! The time of asking: `now()`, `current_timestamp`, `current_date` and `current_time` are one moment, at which a question is planned. From there on it is a constant like
//! any other: it is part of what the question means, so that the same text later is another question, and it is said beside the answer.

use crate::error::{QueryError, planning};
use datafusion::arrow::datatypes::DataType;
use datafusion::common::DFSchema;
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::{Expr, ExprSchemable, LogicalPlan};
use datafusion::scalar::ScalarValue;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

const DAY: i64 = 86_400;

/// The seconds since 1970 in UTC, now. Whole ones: nobody means less, and who asks twice within one pays once.
#[expect(
    clippy::disallowed_methods,
    reason = "the time of asking is part of the question; no price and no noise depends on it"
)]
pub(super) fn now() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.ok().and_then(|since| i64::try_from(since.as_secs()).ok()).unwrap_or(0)
}

/// The same question with the time of asking written out, and what is said of that.
pub(super) fn fixed(plan: &LogicalPlan, seconds: i64) -> Result<(LogicalPlan, Vec<String>), QueryError> {
    let mut read = BTreeSet::new();
    let walked = plan.apply_with_subqueries(|node| {
        for expr in node.expressions() {
            expr.apply(|part| {
                read.extend(Clock::of(part));
                Ok(TreeNodeRecursion::Continue)
            })?;
        }
        Ok(TreeNodeRecursion::Continue)
    });
    walked.map_err(|error| planning(&error))?;
    if read.is_empty() {
        return Ok((plan.clone(), Vec::new()));
    }
    let done = plan.clone().transform_up_with_subqueries(|node| {
        let names = NamePreserver::new(&node);
        node.map_expressions(|expr| {
            let name = names.save(&expr);
            let written = expr.transform_up(|part| {
                Ok(match Clock::of(&part) {
                    Some(clock) => Transformed::yes(Expr::Literal(clock.at(seconds), None)),
                    None => Transformed::no(part),
                })
            })?;
            Ok(written.update_data(|written| name.restore(written)))
        })
    });
    let done = done.map_err(|error| planning(&error))?.data;
    Ok((done, read.iter().map(|clock| clock.said(seconds)).collect()))
}

/// What a question reads off the clock.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Clock {
    /// A moment, in a zone.
    Moment(Option<Arc<str>>),
    /// A day.
    Day,
    /// A time of day.
    Time,
}

impl Clock {
    fn of(expr: &Expr) -> Option<Self> {
        let Expr::ScalarFunction(call) = expr else { return None };
        match (call.name(), call.args.is_empty()) {
            ("now", true) => match expr.get_type(&DFSchema::empty()) {
                Ok(DataType::Timestamp(_, zone)) => Some(Self::Moment(zone)),
                _ => Some(Self::Moment(None)),
            },
            ("current_date", true) => Some(Self::Day),
            ("current_time", true) => Some(Self::Time),
            _ => None,
        }
    }

    fn at(&self, seconds: i64) -> ScalarValue {
        match self {
            Self::Moment(zone) => ScalarValue::TimestampNanosecond(seconds.checked_mul(1_000_000_000), zone.clone()),
            Self::Day => ScalarValue::Date32(i32::try_from(seconds.div_euclid(DAY)).ok()),
            Self::Time => ScalarValue::Time64Nanosecond(Some(seconds.rem_euclid(DAY) * 1_000_000_000)),
        }
    }

    /// What is said beside the answer, and how to ask the very same again.
    fn said(&self, seconds: i64) -> String {
        let text = |value: ScalarValue| match value.cast_to(&DataType::Utf8) {
            Ok(ScalarValue::Utf8(Some(text))) => text.replace('T', " "),
            _ => String::new(),
        };
        let moment = text(ScalarValue::TimestampSecond(Some(seconds), None));
        let (word, constant) = match self {
            Self::Moment(_) => ("now()", format!("TIMESTAMP '{moment}'")),
            Self::Day => ("current_date", format!("DATE '{}'", text(self.at(seconds)))),
            Self::Time => (
                "current_time",
                format!("TIME '{}'", text(ScalarValue::Time32Second(i32::try_from(seconds.rem_euclid(DAY)).ok()))),
            ),
        };
        format!(
            "`{word}` is {constant} in UTC, when this was asked; with that in its place the question stays the same, and asking it again costs nothing"
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use datafusion::prelude::SessionContext;

    /// 2024-02-29 23:59:58.
    const LEAP: i64 = 1_709_251_198;

    fn planned(sql: &str) -> LogicalPlan {
        let runtime = tokio::runtime::Runtime::new().unwrap();
        runtime.block_on(SessionContext::new().state().create_logical_plan(sql)).unwrap()
    }

    #[test]
    fn the_clock_is_read_once_and_written_out_everywhere() {
        let plan = planned(
            "SELECT now() AS a, current_timestamp AS b, current_date AS c, today() AS d, current_time AS e \
             WHERE now() > TIMESTAMP '2020-01-01' AND EXISTS (SELECT 1 WHERE current_date > DATE '2020-01-01')",
        );
        let (written, notes) = fixed(&plan, LEAP).unwrap();
        assert_eq!(written.schema().fields(), plan.schema().fields());
        assert_eq!(fixed(&written, LEAP + 1).unwrap(), (written.clone(), Vec::new()));
        let text = written.display_indent().to_string();
        assert!(text.matches("1709251198000000000").count() >= 3 && text.matches("2024-02-29").count() >= 2, "{text}");
        let said = notes.join("\n");
        for word in ["TIMESTAMP '2024-02-29 23:59:58'", "DATE '2024-02-29'", "TIME '23:59:58'"] {
            assert!(said.contains(word), "{said}");
        }
    }

    #[test]
    fn a_question_without_a_clock_stays_as_it_is() {
        let plan = planned("SELECT DATE '2024-01-01' AS a");
        assert_eq!(fixed(&plan, LEAP).unwrap(), (plan, Vec::new()));
    }
}
