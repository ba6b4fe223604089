//! Aligned tables for people.

use crate::plain::visible;
use std::io::{self, Write};

/// On which side a column's text stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    /// Words.
    Left,
    /// Numbers.
    Right,
}

/// Rows of text under a heading, each column as wide as its widest cell.
pub struct Table {
    columns: Vec<(String, Side)>,
    rows: Vec<Vec<String>>,
}

impl Table {
    /// An empty table with these headings.
    pub fn new<T: Into<String>>(columns: impl IntoIterator<Item = (T, Side)>) -> Self {
        Self {
            columns: columns.into_iter().map(|(name, side)| (visible(&name.into()), side)).collect(),
            rows: Vec::new(),
        }
    }

    /// The headings, and on which side their columns stand.
    pub(crate) fn columns(&self) -> &[(String, Side)] {
        &self.columns
    }

    /// The rows, one cell a column.
    pub fn rows(&self) -> &[Vec<String>] {
        &self.rows
    }

    /// Adds a row; cells that are missing at the end stay empty. What would move a terminal's cursor is spelt out.
    pub fn row<T: Into<String>>(&mut self, cells: impl IntoIterator<Item = T>) {
        let mut cells: Vec<String> = cells.into_iter().map(|cell| visible(&cell.into())).collect();
        debug_assert!(cells.len() <= self.columns.len(), "a cell without a heading");
        cells.resize(self.columns.len(), String::new());
        self.rows.push(cells);
    }

    /// Writes the headings, a rule and the rows; no line ends in blanks.
    pub fn write(&self, out: &mut dyn Write) -> io::Result<()> {
        let widths: Vec<usize> = (0..self.columns.len())
            .map(|i| self.rows.iter().map(|row| width(&row[i])).chain([width(&self.columns[i].0)]).max().unwrap_or(0))
            .collect();
        let heading: Vec<&str> = self.columns.iter().map(|(name, _)| name.as_str()).collect();
        let rule: Vec<String> = widths.iter().map(|&width| "─".repeat(width)).collect();
        self.line(&heading, &widths, out)?;
        self.line(&rule, &widths, out)?;
        self.rows.iter().try_for_each(|row| self.line(row, &widths, out))
    }

    fn line<T: AsRef<str>>(&self, cells: &[T], widths: &[usize], out: &mut dyn Write) -> io::Result<()> {
        let mut line = String::new();
        for ((cell, &wide), (_, side)) in cells.iter().zip(widths).zip(&self.columns) {
            let (cell, gap) = (cell.as_ref(), " ".repeat(wide - width(cell.as_ref())));
            match side {
                Side::Left => line.extend([cell, &gap, "  "]),
                Side::Right => line.extend([&gap, cell, "  "]),
            }
        }
        writeln!(out, "{}", line.trim_end())
    }
}

/// The text, or as much of its beginning as fits into so many columns of a terminal with an ellipsis.
pub(crate) fn fit(text: &str, columns: usize) -> String {
    if width(text) <= columns {
        return text.to_owned();
    }
    let mut kept = String::new();
    for c in text.chars() {
        if width(&kept) + width(c.encode_utf8(&mut [0; 4])) + 1 > columns {
            break;
        }
        kept.push(c);
    }
    kept + "…"
}

/// The columns that a text takes on a terminal: none for a combining mark, two for East Asian wide characters.
pub(crate) fn width(text: &str) -> usize {
    text.chars()
        .map(|c| match u32::from(c) {
            0x0300..=0x036F | 0x200B..=0x200F | 0xFE00..=0xFE0F => 0,
            0x1100..=0x115F
            | 0x2E80..=0xA4CF
            | 0xAC00..=0xD7A3
            | 0xF900..=0xFAFF
            | 0xFF00..=0xFF60
            | 0x1F300..=0x1FAFF => 2,
            _ => 1,
        })
        .sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(table: &Table) -> String {
        let mut out = Vec::new();
        table.write(&mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn words_stand_left_and_numbers_right() {
        let mut table = Table::new([("unit", Side::Left), ("ε", Side::Right), ("note", Side::Left)]);
        table.row(["element", "1", "a bound"]);
        table.row(["user", "12.5"]);
        assert_eq!(
            written(&table),
            "unit        ε  note\n───────  ────  ───────\nelement     1  a bound\nuser     12.5\n"
        );
    }

    #[test]
    fn what_a_terminal_would_obey_is_spelt_out() {
        let mut table = Table::new([("key", Side::Left)]);
        table.row(["a\u{1b}[31m\r\nb\u{202E}c"]);
        assert_eq!(table.rows()[0][0], "a\\u{1b}[31m\\u{d}\\nb\\u{202e}c");
    }

    #[test]
    fn a_long_text_is_cut_and_says_so() {
        assert_eq!(fit("registrable.example", 8), "registr…");
        assert_eq!(fit("単位単位", 5), "単位…");
        assert_eq!(fit("short", 5), "short");
    }

    #[test]
    fn marks_take_no_room_and_wide_letters_two() {
        assert_eq!(width("é"), 1);
        assert_eq!(width("e\u{301}"), 1);
        assert_eq!(width("単位"), 4);
        assert_eq!(width("± 41"), 4);
    }
}
