//! The estimators as tables in SQL (`plan/call.rs`), asked and previewed.

use super::ask;
pub(crate) use super::ask::Charged;
use crate::answer::{Answer, Preview};
use crate::error::QueryError;
use crate::plan::Asking;
use crate::plan::call::Call;
use crate::source::Tables;
use whit_account::ledger::Register;

/// What a call would be charged with.
pub(crate) fn charged<'a>(
    call: &'a Call,
    tables: &'a Tables,
    asking: &Asking,
    analyst: &str,
) -> Result<Charged<'a>, QueryError> {
    match call {
        Call::Hitters(question) => ask::charged_for_hitters(tables, question, asking, analyst),
        Call::Histogram(question) => ask::charged_for_histogram(tables, question, asking, analyst),
    }
}

/// Asks a call, and pays for it.
pub(crate) fn ask(
    call: &Call,
    tables: &Tables,
    asking: &Asking,
    books: &mut dyn Register,
    analyst: &str,
) -> Result<Answer, QueryError> {
    match call {
        Call::Hitters(question) => ask::hitters(tables, question, asking, books, analyst),
        Call::Histogram(question) => ask::histogram(tables, question, asking, books, analyst),
    }
}

/// What a call would cost, and how wrong it would be.
pub(crate) fn preview(call: &Call, tables: &Tables, sql: &str, asking: &Asking) -> Result<Preview, QueryError> {
    match call {
        Call::Hitters(question) => ask::preview_hitters(tables, sql, question, asking),
        Call::Histogram(question) => ask::preview_histogram(tables, sql, question, asking),
    }
}
