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

    /// The same where a line has so many columns: a table that is wider is written row by row, each cell behind its heading, so that no line is broken in the middle of a table.
    pub(crate) fn write_within(&self, columns: usize, out: &mut dyn Write) -> io::Result<()> {
        let widest = |i: usize| self.rows.iter().map(|row| width(&row[i])).chain([width(&self.columns[i].0)]).max();
        let all: usize = (0..self.columns.len()).filter_map(widest).map(|wide| wide + 2).sum();
        if all <= columns.saturating_add(2) || self.rows.is_empty() {
            return self.write(out);
        }
        let named = self.columns.iter().map(|(name, _)| width(name)).max().unwrap_or(0);
        for (number, row) in self.rows.iter().enumerate() {
            if number > 0 {
                writeln!(out)?;
            }
            for ((name, _), cell) in self.columns.iter().zip(row) {
                let gap = " ".repeat(named - width(name));
                for (line, words) in folded(cell.trim(), columns.saturating_sub(named + 2)).iter().enumerate() {
                    let name = if line == 0 { format!("{name}{gap}") } else { " ".repeat(named) };
                    writeln!(out, "{}", format!("{name}  {words}").trim_end())?;
                }
            }
        }
        Ok(())
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

/// A text in lines of so many columns, broken between words, and inside of one where it is longer than a line. There is always one line.
pub(crate) fn folded(text: &str, columns: usize) -> Vec<String> {
    // Less room than this helps nobody: the terminal breaks lines then.
    if columns < 12 || width(text) <= columns {
        return vec![text.to_owned()];
    }
    let mut lines = vec![String::new()];
    for word in text.split(' ') {
        let mut word = word.to_owned();
        loop {
            let line = lines.last_mut().expect("there is always one");
            let needed = width(&word) + usize::from(!line.is_empty());
            if width(line) + needed <= columns {
                if !line.is_empty() {
                    line.push(' ');
                }
                line.push_str(&word);
                break;
            }
            if width(&word) <= columns {
                lines.push(String::new());
                continue;
            }
            // A word that is longer than a line fills one after the other.
            let room = columns.saturating_sub(width(line) + usize::from(!line.is_empty()));
            let mut taken = 0;
            let end = word.char_indices().find(|(_, c)| {
                taken += width(c.encode_utf8(&mut [0; 4]));
                taken > room
            });
            let (head, tail) = word.split_at(end.map_or(word.len(), |(at, _)| at));
            if !line.is_empty() && !head.is_empty() {
                line.push(' ');
            }
            line.push_str(head);
            lines.push(String::new());
            word = tail.to_owned();
        }
    }
    lines
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
    fn a_table_that_is_wider_than_the_screen_is_written_row_by_row() {
        let mut table = Table::new([("unit", Side::Left), ("ε at most", Side::Right)]);
        table.row(["element (user_id, domain), replace", "  1"]);
        table.row(["user", "12.5"]);
        let within = |columns| {
            let mut out = Vec::new();
            table.write_within(columns, &mut out).unwrap();
            String::from_utf8(out).unwrap()
        };
        assert_eq!(within(usize::MAX), written(&table));
        assert_eq!(within(45), written(&table), "it has just that many");
        let narrow = "unit       element (user_id, domain),\n           replace\nε at most  1\n\nunit       user\nε at most  12.5\n";
        assert_eq!(within(44), narrow);
        assert!(within(30).lines().all(|line| width(line) <= 30), "{}", within(30));
    }

    #[test]
    fn lines_are_broken_between_words_and_lose_nothing() {
        assert_eq!(folded("one two three four five", 12), ["one two", "three four", "five"]);
        assert_eq!(folded("", 12), [""]);
        for text in ["ab abcdefghijklmnopqrstuvwxyz cd", "abcdefghijklmnopqrstuvwxyz", "単位単位単位単位単位 x"]
        {
            let lines = folded(text, 12);
            assert!(lines.iter().all(|line| width(line) <= 12), "{lines:?}");
            assert_eq!(lines.concat().replace(' ', ""), text.replace(' ', ""));
        }
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
