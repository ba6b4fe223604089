//! Answers as tables for people, with a short account of what they protect and cost.

use crate::measure::{Measure, Shown, column};
use crate::number::{brief, brief_up, grouped, number_of, percent, times_left};
use crate::plain::PlainText;
use crate::table::{Side, Table, fit, folded};
use std::io::{self, Write};
use whit_query::{Answer, Cell, Role, Statement, Value};

/// How much of a long answer is shown.
#[derive(Debug, Clone, Copy)]
pub struct Excerpt {
    /// The most rows.
    pub rows: usize,
    /// The most letters of a key.
    pub letters: usize,
    /// How many columns a line has.
    pub columns: usize,
}

impl Excerpt {
    /// Everything.
    pub const ALL: Self = Self { rows: usize::MAX, letters: usize::MAX, columns: usize::MAX };
    /// What fits on a terminal.
    pub const TERMINAL: Self = Self { rows: 50, letters: 60, columns: usize::MAX };
}

/// Writes the table, what was left out of it, and the statement.
pub fn write(answer: &Answer, cut: Excerpt, out: &mut dyn Write) -> io::Result<()> {
    let out = &mut PlainText::onto(out);
    write_rows(answer, cut, out)?;
    writeln!(out)?;
    statement_within(answer, cut.columns, out)
}

/// Writes the table alone, and what was left out of it.
pub(crate) fn write_rows(answer: &Answer, cut: Excerpt, out: &mut dyn Write) -> io::Result<()> {
    if !answer.columns.is_empty() {
        table(answer, cut).write_within(cut.columns, out)?;
    }
    let left = answer.rows.len().saturating_sub(cut.rows);
    if left > 0 {
        writeln!(out, "… {}: --all shows them", number_of(grouped(&left.to_string()), "more row"))?;
    }
    if answer.rows.is_empty() {
        writeln!(out, "(no rows)")?;
    }
    Ok(())
}

/// The rows as people read them: keys on the left, numbers on the right with their intervals.
pub(crate) fn table(answer: &Answer, cut: Excerpt) -> Table {
    let rows = &answer.rows[..answer.rows.len().min(cut.rows)];
    let mut columns = Vec::new();
    let mut headings = Vec::new();
    for (i, heading) in answer.columns.iter().enumerate() {
        let cells: Vec<&Cell> = rows.iter().filter_map(|row| row.get(i)).collect();
        let numbers = cells.iter().all(|cell| !matches!(cell.value, Value::Text(_) | Value::Bool(_)));
        let side = if numbers && !cells.is_empty() { Side::Right } else { Side::Left };
        let name = match heading.role {
            Role::Exact => format!("{} (exact)", heading.name),
            Role::Key | Role::Noisy => heading.name.clone(),
        };
        headings.push((name, side));
        let shown: Vec<Shown> = cells.iter().map(|cell| shown(cell, heading.role, cut.letters)).collect();
        columns.push(if side == Side::Right { column(&shown) } else { shown.iter().map(Shown::line).collect() });
    }
    let mut table = Table::new(headings);
    for i in 0..rows.len() {
        table.row(columns.iter().map(|column| column.get(i).cloned().unwrap_or_default()));
    }
    table
}

/// One cell. Keys are shown as they are; of numbers, the digits that mean something.
pub(crate) fn shown(cell: &Cell, role: Role, letters: usize) -> Shown {
    match (&cell.value, measure(cell, role)) {
        (Value::Null, _) => Shown::plain(if role == Role::Key { "NULL" } else { "–" }),
        (Value::Bool(value), _) => Shown::plain(value.to_string()),
        (Value::Text(text), _) if text.is_empty() => Shown::plain("\"\""),
        (Value::Text(text), _) => Shown::plain(fit(text, letters)),
        (Value::Int(value), _) if role == Role::Key => Shown::plain(value.to_string()),
        (Value::Float(value), _) if role == Role::Key => Shown::plain(value.to_string()),
        // An exact count keeps the digits that a float would lose.
        (Value::Int(value), _) if role == Role::Exact => Shown::plain(grouped(&value.to_string())),
        (Value::Int(_) | Value::Float(_), Some(measure)) if role == Role::Exact => Shown::plain(measure.in_full()),
        (Value::Int(_) | Value::Float(_), Some(measure)) => measure.shown(),
        (Value::Int(_) | Value::Float(_), None) => Shown::plain("–"),
    }
}

/// The number in a cell, if it has one.
pub fn measure(cell: &Cell, role: Role) -> Option<Measure> {
    let (value, whole) = match cell.value {
        Value::Int(value) => (value as f64, true),
        Value::Float(value) => (value, false),
        Value::Null | Value::Bool(_) | Value::Text(_) => return None,
    };
    match role {
        Role::Noisy => Some(Measure { value, low: cell.low, high: cell.high, whole }),
        Role::Key | Role::Exact => Some(Measure { whole, ..Measure::exactly(value) }),
    }
}

/// What the answer protects, what it costs at every rung, how it was made and what to know about it.
pub fn write_statement(answer: &Answer, out: &mut dyn Write) -> io::Result<()> {
    statement_within(answer, usize::MAX, out)
}

fn statement_within(answer: &Answer, columns: usize, out: &mut dyn Write) -> io::Result<()> {
    let out = &mut PlainText::onto(out);
    let statement = &answer.statement;
    if statement.prices.is_empty() {
        writeln!(out, "Nothing private was read: this answer is exact and free.")?;
    } else {
        labelled("protected", std::slice::from_ref(&statement.unit), columns, out)?;
        writeln!(out)?;
        prices(statement).write_within(columns, out)?;
        writeln!(out)?;
    }
    write_account(answer, columns, out)
}

/// All that a statement says but its prices, in lines of so many columns.
pub(crate) fn write_account(answer: &Answer, columns: usize, out: &mut dyn Write) -> io::Result<()> {
    account(answer).iter().try_for_each(|(label, lines)| labelled(label, lines, columns, out))
}

/// Lines behind a label, folded so that none has more than so many columns.
fn labelled(label: &str, lines: &[String], columns: usize, out: &mut dyn Write) -> io::Result<()> {
    let lines = lines.iter().flat_map(|line| folded(line, columns.saturating_sub(13)));
    for (i, line) in lines.enumerate() {
        writeln!(out, "  {:<9}  {line}", if i == 0 { label } else { "" })?;
    }
    Ok(())
}

/// What each rung pays.
pub(crate) fn prices(statement: &Statement) -> Table {
    let headings = [("unit", Side::Left), ("ε at most", Side::Right), ("δ", Side::Right), ("accountant", Side::Left)];
    let mut table = Table::new(headings);
    for price in &statement.prices {
        table.row([price.unit.clone(), brief_up(price.epsilon), brief_up(price.delta), price.accountant.clone()]);
    }
    table
}

/// Everything else that a statement says, each thing under its label.
pub(crate) fn account(answer: &Answer) -> Vec<(&'static str, Vec<String>)> {
    let statement = &answer.statement;
    let noisy = |i: usize| answer.columns[i].role == Role::Noisy;
    let measured = answer.rows.iter().flat_map(|row| row.iter().enumerate().filter(|(i, _)| noisy(*i)));
    let (mut known, mut unknown) = (false, false);
    for (_, cell) in measured.filter(|(_, cell)| matches!(cell.value, Value::Int(_) | Value::Float(_))) {
        let none = cell.low.is_none() && cell.high.is_none();
        (known, unknown) = (known || !none, unknown || none);
    }
    let mut intervals = Vec::new();
    if known {
        intervals.push(format!("each holds with {} probability", percent(statement.confidence)));
    }
    if unknown {
        intervals.push("± ? marks a value whose interval is not known".to_owned());
    }
    let capped: Vec<&str> =
        answer.columns.iter().filter(|column| column.after_caps).map(|column| column.name.as_str()).collect();
    if !capped.is_empty() {
        intervals.push(format!("after caps, see the notes: {}", capped.join(", ")));
    }
    let ledger = match (statement.stored, statement.entry) {
        (true, Some(entry)) => vec![format!("read again from entry {entry}: nothing was charged this time")],
        (true, None) => vec!["read again: nothing was charged this time".to_owned()],
        (false, Some(entry)) => vec![match statement.more_like_this {
            Some(0) => format!("entry {entry}; the budget has no room for another like this"),
            Some(times) => format!("entry {entry}; the budget has room for {} more like this", times_left(times)),
            None => format!("entry {entry}"),
        }],
        (false, None) => Vec::new(),
    };
    let parts = statement.partition.iter().map(|hash| format!("partition {}", brief_hash(hash))).collect();
    vec![
        ("sanitised", statement.mechanisms.clone()),
        ("intervals", intervals),
        ("elements", parts),
        ("note", statement.notes.clone()),
        ("ledger", ledger),
    ]
}

/// As much of a hash as people compare.
fn brief_hash(hash: &str) -> String {
    fit(hash, 17)
}

/// One line for a picture: what is protected, at which price, and how sure the intervals are.
pub(crate) fn one_line(statement: &Statement) -> String {
    let Some(price) = statement.prices.first() else {
        return "Nothing private was read: the values are exact.".to_owned();
    };
    let delta = if price.delta > 0.0 { format!(", δ = {}", brief(price.delta)) } else { String::new() };
    format!(
        "ε ≤ {}{delta} for each {}. Each interval holds with {} probability.",
        brief_up(price.epsilon),
        statement.unit,
        percent(statement.confidence)
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::samples::{answer, cell, key, priced};

    fn written(answer: &Answer, cut: Excerpt) -> String {
        let mut out = Vec::new();
        write(answer, cut, &mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn an_answer_for_people() {
        let rows = vec![
            vec![key("search.example"), cell(Value::Int(1234), 1193.0, 1275.0), cell(Value::Float(41.27), 39.9, 42.64)],
            vec![key("mail.example"), cell(Value::Int(87), 46.0, 128.0), cell(Value::Float(7.5), 0.0, 23.0)],
        ];
        let columns = [("domain", Role::Key), ("visits", Role::Noisy), ("mean seconds", Role::Noisy)];
        let expected = "\
domain              visits    mean seconds
──────────────  ──────────  ──────────────
search.example  1,234 ± 41  41.27 ± 1.37
mail.example       87 ± 41   8    [0 … 23]

  protected  element (user_id, domain), replace

unit                                ε at most  δ  accountant
──────────────────────────────────  ─────────  ─  ──────────
element (user_id, domain), replace          1  0  basic
user (user_id), replace                   400  0  basic

  sanitised  count(*): discrete Laplace, scale 12
  intervals  each holds with 95 % probability
  note       rows without a user were left out
             bounds of `seconds` were declared
  ledger     entry 12
";
        let printed = written(&priced(answer(&columns, rows)), Excerpt::ALL);
        assert_eq!(printed, expected, "\n{printed}");
    }

    #[test]
    fn what_is_exact_unknown_or_nothing_says_so() {
        let plain = |value| Cell { value, low: None, high: None };
        let rows = vec![
            vec![plain(Value::Int(2024)), plain(Value::Int(1_234_567)), plain(Value::Float(2.5)), key("x")],
            vec![plain(Value::Null), plain(Value::Null), plain(Value::Null), key("")],
        ];
        let columns = [("year", Role::Key), ("shops", Role::Exact), ("mean", Role::Noisy), ("kind", Role::Key)];
        let expected = "\
year  shops (exact)     mean  kind
────  ─────────────  ───────  ────
2024      1,234,567  2.5 ± ?  x
NULL              –  –        \"\"

Nothing private was read: this answer is exact and free.
  intervals  ± ? marks a value whose interval is not known
";
        let printed = written(&answer(&columns, rows), Excerpt::ALL);
        assert_eq!(printed, expected, "\n{printed}");
    }

    #[test]
    fn a_long_answer_is_cut_and_says_how_much_is_missing() {
        let row = |i: i64| vec![key(&format!("{}{i}", "long ".repeat(20))), cell(Value::Int(i), 0.0, 2.0 * i as f64)];
        let long = answer(&[("key", Role::Key), ("n", Role::Noisy)], (0..1300).map(row).collect());
        let printed = written(&long, Excerpt::TERMINAL);
        assert!(printed.contains("\n… 1,250 more rows: --all shows them\n"), "{printed}");
        assert!(printed.lines().count() < 60 && printed.lines().all(|line| line.chars().count() < 80));
        assert_eq!(written(&long, Excerpt::ALL).lines().count(), 1300 + 5);
        let one = written(&long, Excerpt { rows: 1299, letters: 9, ..Excerpt::ALL });
        assert!(one.contains("\n… 1 more row: --all shows them\n"));
    }

    #[test]
    fn no_line_is_longer_than_a_narrow_screen() {
        let row = |i: i64| {
            vec![
                key("a long name of a place"),
                cell(Value::Int(1234 + i), 0.0, 9999.0),
                cell(Value::Float(41.27), 39.9, 42.64),
            ]
        };
        let columns = [("domain", Role::Key), ("visits", Role::Noisy), ("mean seconds", Role::Noisy)];
        let answer = priced(answer(&columns, (0..3).map(row).collect()));
        for columns in [60, 40] {
            let printed = written(&answer, Excerpt { columns, ..Excerpt::TERMINAL });
            assert!(printed.lines().all(|line| line.chars().count() <= columns), "{printed}");
            assert_eq!(printed.matches("a long name of a place").count(), 3, "{printed}");
        }
    }

    #[test]
    fn an_answer_from_the_ledger_says_that_it_cost_nothing() {
        let mut again = priced(answer(&[("n", Role::Noisy)], Vec::new()));
        again.statement.stored = true;
        again.statement.prices[1].epsilon = f64::INFINITY;
        again.statement.prices[1].delta = 1e-6;
        let printed = written(&again, Excerpt::ALL);
        assert!(printed.starts_with("n\n─\n(no rows)\n\n  protected  "), "{printed}");
        assert!(
            printed.contains("  ledger     read again from entry 12: nothing was charged this time\n"),
            "{printed}"
        );
        assert!(printed.contains("user (user_id), replace                     ∞  1e-6  basic\n"), "{printed}");
        assert!(!printed.contains("intervals"), "there are none");
    }

    #[test]
    fn keys_cannot_command_a_terminal() {
        let rows = vec![vec![key("\u{1b}]0;owned\u{7}\r\n")]];
        let printed = written(&answer(&[("\u{1b}[2Jkey", Role::Key)], rows), Excerpt::ALL);
        assert!(!printed.contains(['\u{1b}', '\u{7}', '\r']), "{printed:?}");
    }
}
