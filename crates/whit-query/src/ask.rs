//! Who answers a question: the parts that it is planned into, or an estimator that stands in it as a table. Both are below, and neither knows of the other's questions.
//!
//! [`Tables`] are opened and planned over; asking them, which is paid for, begins here.

use crate::answer::Answer;
use crate::error::QueryError;
use crate::estimate;
use crate::plan::Asking;
use crate::plan::call::Call;
use crate::release::{ReleasedPart, after, finish};
use crate::source::Tables;
use datafusion::logical_expr::LogicalPlan;
use whit_account::ledger::Register;

/// Answers a question: charges the ledger, or finds the answer in it.
pub fn ask(
    tables: &Tables,
    sql: &str,
    asking: &Asking,
    books: &mut dyn Register,
    analyst: &str,
) -> Result<Answer, QueryError> {
    let logical = tables.logical(sql)?;
    match tables.call(sql, &logical)? {
        Some((call, after)) => estimated(tables, sql, (&call, &after), asking, books, analyst),
        None => tables.answer_planned(sql, &logical, asking, books, analyst),
    }
}

/// Asks an estimator, and does with its table what the question says.
fn estimated(
    tables: &Tables,
    sql: &str,
    (call, after): (&Call, &LogicalPlan),
    asking: &Asking,
    books: &mut dyn Register,
    analyst: &str,
) -> Result<Answer, QueryError> {
    tables.rehearse_after(after)?;
    let Answer { columns, rows, mut statement } = estimate::sql::ask(call, tables, asking, books, analyst)?;
    sql.clone_into(&mut statement.question);
    let output = call.output(&columns);
    let keys = columns.len() - 1;
    let mut released = ReleasedPart { cells: vec![Vec::new()], ..ReleasedPart::default() };
    for mut row in rows {
        released.cells[0].extend(row.pop());
        released.keys.push(row.into_iter().map(|cell| cell.value).collect());
    }
    let (exact, caps) = (vec![false], [columns[keys].after_caps]);
    let (after_caps, all_at_once) = (&caps, call.holds_all_at_once());
    let (made_of, public, selected, released) = (None, false, false, &released);
    let table =
        after::Table { keys, output: &output, exact, after_caps, made_of, public, selected, all_at_once, released };
    finish::answer(tables, after, &[table], statement)
}
