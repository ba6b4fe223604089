//! Types that values suggest, for the owner to confirm. Nothing on the way of a question comes here.

use super::cell::{Column, Taken};
use super::json::{self, Raw};
use super::lines::Lines;
use super::writing::{Heading, Writing};
use crate::error::QueryError;
use crate::source::files::unreadable;
use std::path::PathBuf;
use whit_core::declare::{ColumnType, Format};

/// So many lines of each file are looked at.
const LINES: usize = 100_000;
/// A type is suggested if at most one value in so many is of another.
const SHARE: u64 = 20;

/// What the values of a column suggest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::source) struct Suggested {
    pub(in crate::source) name: String,
    pub(in crate::source) kind: ColumnType,
    /// How many values were looked at, and how many of them are not of that type.
    pub(in crate::source) values: u64,
    pub(in crate::source) wrong: u64,
    /// Whether it is text only because its numbers have a comma where a point is expected.
    pub(in crate::source) commas: bool,
}

/// The types in the order in which they are tried: the first that holds nearly all values is suggested.
const TRIED: [ColumnType; 5] =
    [ColumnType::Int, ColumnType::Float, ColumnType::Bool, ColumnType::Date, ColumnType::Timestamp];

#[derive(Default)]
struct Seen {
    name: String,
    values: u64,
    /// How many values each of the tried types holds.
    fits: [u64; TRIED.len()],
    /// Dates that are written as moments are moments.
    plain_dates: u64,
    /// Numbers with a comma: `1.234,50`.
    commas: u64,
    lists: u64,
    items: Option<Box<Seen>>,
}

impl Seen {
    fn text(&mut self, text: &[u8]) {
        if text.trim_ascii().is_empty() {
            return;
        }
        self.values += 1;
        for (fits, kind) in self.fits.iter_mut().zip(&TRIED) {
            *fits += u64::from(Column::new(kind).take(text) == Taken::Value);
        }
        self.plain_dates += u64::from(text.trim_ascii().len() == 10);
        self.commas += u64::from(has_comma(text));
    }

    fn raw(&mut self, raw: Raw<'_>) {
        match raw {
            Raw::Bare(b"null") => {}
            // `"12"` in quotes is meant as text, and so is `"true"`; days and moments have no other way to be written.
            Raw::Text(text) => {
                self.values += 1;
                for place in [3, 4] {
                    self.fits[place] += u64::from(Column::new(&TRIED[place]).take(text) == Taken::Value);
                }
                self.plain_dates += u64::from(text.len() == 10);
            }
            Raw::Bare(text) => self.text(text),
            Raw::List(items) => {
                self.values += 1;
                self.lists += 1;
                let seen = self.items.get_or_insert_default();
                json::items(items, |item| seen.raw(item));
            }
            Raw::Object => self.values += 1,
        }
    }

    /// Whether nearly all values are numbers if a comma may stand in them, and some have one.
    fn has_commas(&self) -> bool {
        let numbers = self.commas + self.fits[1];
        self.commas > 0 && self.values.saturating_sub(numbers) * SHARE <= self.values
    }

    fn suggested(&self) -> (ColumnType, u64) {
        let enough = |fits: u64| self.values > 0 && (self.values - fits) * SHARE <= self.values;
        if enough(self.lists) {
            let item = self.items.as_ref().map_or(ColumnType::Float, |items| items.suggested().0);
            return (ColumnType::List(Box::new(item)), self.values - self.lists);
        }
        let fitting = TRIED.iter().zip(self.fits).find(|(kind, fits)| {
            enough(*fits)
                // 0 and 1 are numbers before they are truths; numbers that are nearly all whole are numbers with a point.
                && (**kind != ColumnType::Int || *fits == self.values)
                && (**kind != ColumnType::Date || self.plain_dates * SHARE >= self.values)
        });
        fitting.map_or((ColumnType::Text, 0), |(kind, fits)| (kind.clone(), self.values - fits))
    }
}

/// Whether a number stands there whose fraction follows a comma, with or without points between its thousands.
fn has_comma(text: &[u8]) -> bool {
    let Some((whole, fraction)) = std::str::from_utf8(text).ok().and_then(|text| text.trim().split_once(',')) else {
        return false;
    };
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    digits(fraction) && digits(&whole.trim_start_matches(['-', '+']).replace('.', ""))
}

/// The type that nearly all of some values have, as they stand in the names of folders.
pub(in crate::source) fn of_values<'a>(values: impl Iterator<Item = &'a str>) -> ColumnType {
    let mut seen = Seen::default();
    values.for_each(|value| seen.text(value.as_bytes()));
    seen.suggested().0
}

/// Looks at the first lines of each file.
pub(in crate::source) fn suggest(files: &[(&String, &PathBuf, Writing)]) -> Result<Vec<Suggested>, QueryError> {
    let mut seen: Vec<Seen> = Vec::new();
    for (name, path, writing) in files {
        let wrong = |error: std::io::Error| unreadable(name, &error);
        let Heading { names, start, .. } = writing.heading(path).map_err(wrong)?;
        let place = |seen: &mut Vec<Seen>, name: &str| {
            seen.iter().position(|own| own.name == name).unwrap_or_else(|| {
                seen.push(Seen { name: name.to_owned(), ..Seen::default() });
                seen.len() - 1
            })
        };
        let places: Vec<usize> = names.iter().map(|name| place(&mut seen, name)).collect();
        let mut lines = Lines::open(path, start, 0..u64::MAX, writing).map_err(wrong)?;
        let mut spare = Vec::new();
        for _ in 0..LINES {
            let Some(line) = lines.next().map_err(wrong)? else { break };
            if writing.format == Format::Csv {
                if writing.signs.is_comment(line) {
                    continue;
                }
                writing.signs.fields(line, &mut spare, |number, field| {
                    let missing = writing.nulls.iter().any(|null| null.as_bytes() == field);
                    if let Some(&place) = places.get(number).filter(|_| !missing) {
                        seen[place].text(field);
                    }
                    true
                });
                continue;
            }
            json::members(line, |name, raw| {
                let mut spare = String::new();
                if let Some(name) = json::plain(name, &mut spare).and_then(|name| std::str::from_utf8(name).ok()) {
                    let place = place(&mut seen, name);
                    seen[place].raw(raw);
                }
            });
        }
    }
    let suggested = seen.into_iter().filter(|seen| !seen.name.is_empty()).map(|seen| {
        let (kind, wrong) = seen.suggested();
        let commas = kind == ColumnType::Text && seen.has_commas();
        Suggested { name: seen.name, kind, values: seen.values, wrong, commas }
    });
    Ok(suggested.collect())
}

#[cfg(test)]
mod tests {
    use super::super::super::scratch::Scratch;
    use super::*;
    use std::fmt::Write as _;
    use whit_core::declare::FileLayout;

    fn suggested(format: Format, text: &str) -> Vec<(String, String, u64)> {
        let scratch = Scratch::new(&format!("suggest_{}", text.len()));
        let (name, path) = ("f".to_owned(), scratch.write("f", text));
        let writing = Writing::of(&FileLayout::default(), format, false, &name);
        let found = suggest(&[(&name, &path, writing)]).unwrap();
        found.into_iter().map(|one| (one.name, one.kind.to_string(), one.wrong)).collect()
    }

    fn expected(columns: &[(&str, &str, u64)]) -> Vec<(String, String, u64)> {
        columns.iter().map(|&(name, kind, wrong)| (name.to_owned(), kind.to_owned(), wrong)).collect()
    }

    #[test]
    fn types_of_csv_are_suggested_by_nearly_all_values() {
        let mut text = "id,x,day,at,ok,note,empty,code\n".to_owned();
        for i in 0..100 {
            let x = if i == 7 { "n/a".to_owned() } else { format!("{i}.5") };
            let (day, second, code) = (i % 9 + 1, i % 60, i % 2);
            writeln!(text, "{i},{x},2024-01-0{day},2024-01-01T00:00:{second:02},true,n{i},,{code}").unwrap();
        }
        let found = suggested(Format::Csv, &text);
        let columns = [
            ("id", "int", 0),
            ("x", "float", 1),
            ("day", "date", 0),
            ("at", "timestamp", 0),
            ("ok", "bool", 0),
            ("note", "text", 0),
            ("empty", "text", 0),
            ("code", "int", 0),
        ];
        assert_eq!(found, expected(&columns));
    }

    #[test]
    fn numbers_with_a_comma_are_text_and_known_as_such() {
        for (number, comma) in [("1,5", true), ("-1.234,50", true), ("1.5", false), ("a,b", false), ("1,2,3", false)] {
            assert_eq!(has_comma(number.as_bytes()), comma, "{number}");
        }
        let scratch = Scratch::new("suggest_commas");
        let path = scratch.write("f", "id;price;note\n1;2,50;a, b\n2;3;c\n3;1.000,00;d\n");
        let layout = FileLayout { delimiter: Some(';'), ..FileLayout::default() };
        let writing = Writing::of(&layout, Format::Csv, false, "f");
        let found = suggest(&[(&"f".to_owned(), &path, writing)]).unwrap();
        let found: Vec<_> = found.into_iter().map(|one| (one.name, one.kind.to_string(), one.commas)).collect();
        let wanted = [("id", "int", false), ("price", "text", true), ("note", "text", false)];
        assert_eq!(found, wanted.map(|(name, kind, commas)| (name.to_owned(), kind.to_owned(), commas)));
    }

    #[test]
    fn types_of_ndjson_are_suggested_by_how_values_are_written() {
        let text =
            "{\"a\": 1, \"b\": \"1\", \"c\": [1, 2.5], \"d\": {}, \"e\": \"2024-01-01\"}\n{\"a\": 2.5, \"f\": true}\n";
        let columns = [
            ("a", "float", 0),
            ("b", "text", 0),
            ("c", "list(float)", 0),
            ("d", "text", 0),
            ("e", "date", 0),
            ("f", "bool", 0),
        ];
        assert_eq!(suggested(Format::Ndjson, text), expected(&columns));
    }
}
