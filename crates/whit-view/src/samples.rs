//! Answers for tests.

use whit_query::{Answer, Cell, Column, Price, Role, Statement, Value};

/// A key.
pub(crate) fn key(text: &str) -> Cell {
    Cell { value: Value::Text(text.into()), low: None, high: None }
}

/// A value between two ends.
pub(crate) fn cell(value: Value, low: f64, high: f64) -> Cell {
    Cell { value, low: Some(low), high: Some(high) }
}

/// An answer that read nothing private.
pub(crate) fn answer(columns: &[(&str, Role)], rows: Vec<Vec<Cell>>) -> Answer {
    let statement = Statement {
        dataset: "visits".into(),
        question: "SELECT domain, COUNT(*) AS visits FROM visits GROUP BY domain".into(),
        unit: "element (user_id, domain), replace".into(),
        prices: Vec::new(),
        confidence: 0.95,
        mechanisms: Vec::new(),
        notes: Vec::new(),
        partition: None,
        entry: None,
        stored: false,
        more_like_this: None,
    };
    let columns = columns.iter().map(|(name, role)| Column { name: (*name).into(), role: *role, after_caps: false });
    Answer { columns: columns.collect(), rows, statement }
}

/// The same answer, paid for.
pub(crate) fn priced(mut answer: Answer) -> Answer {
    let price = |unit: &str, epsilon| Price {
        unit: unit.into(),
        cost: whit_core::Cost::Everything,
        epsilon,
        delta: 0.0,
        accountant: "basic".into(),
    };
    answer.statement.prices =
        vec![price("element (user_id, domain), replace", 1.0), price("user (user_id), replace", 400.0)];
    answer.statement.mechanisms = vec!["count(*): discrete Laplace, scale 12".into()];
    answer.statement.notes =
        vec!["rows without a user were left out".into(), "bounds of `seconds` were declared".into()];
    answer.statement.entry = Some(12);
    answer
}
