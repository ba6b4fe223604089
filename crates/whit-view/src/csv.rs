//! Answers as comma-separated values: `name`, and `name_low` and `name_high` next to what is noisy.
//!
//! Quotation marks are those of RFC 4180. Lines end in a line feed alone, as command lines expect. Nothing is an empty
//! field, an empty text is `""`, and numbers have every digit. (The `csv` crate quotes all empty fields of a file or none, so that NULL and an
//! empty text would be the same.)

use std::io::{self, Write};
use whit_query::Answer;
use whit_query::export::{flat, text};

/// Writes the heading and the rows.
pub fn write(answer: &Answer, out: &mut dyn Write) -> io::Result<()> {
    let columns = flat(&answer.columns);
    line(columns.iter().map(|column| Some(column.name.clone())), out)?;
    answer.rows.iter().try_for_each(|row| line(columns.iter().map(|column| text(&column.of(row))), out))
}

/// Writes one line; nothing is an empty field.
pub(crate) fn line(fields: impl Iterator<Item = Option<String>>, out: &mut dyn Write) -> io::Result<()> {
    let fields: Vec<String> = fields.map(|field| field.map_or(String::new(), |field| quoted(&field))).collect();
    writeln!(out, "{}", fields.join(","))
}

/// The field as it stands, or in quotation marks where it would end early or be taken for nothing.
fn quoted(field: &str) -> String {
    let plain = !field.is_empty() && !field.contains([',', '"', '\n', '\r']) && field.trim() == field;
    if plain { field.to_owned() } else { format!("\"{}\"", field.replace('"', "\"\"")) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::samples::{answer, cell, key};
    use whit_query::{Role, Value};

    fn written(answer: &Answer) -> String {
        let mut out = Vec::new();
        write(answer, &mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn the_ends_of_intervals_stand_beside_the_values() {
        let rows = vec![vec![key("a"), cell(Value::Int(1234), 1193.5, 1274.5), key("x")]];
        let answer = answer(&[("site", Role::Key), ("n", Role::Noisy), ("size", Role::Exact)], rows);
        assert_eq!(written(&answer), "site,n,n_low,n_high,size\na,1234,1193.5,1274.5,x\n");
    }

    #[test]
    fn fields_that_need_quotation_marks_get_them() {
        let fields = ["a,b", "say \"no\"", "two\nlines", "cr\r", "", " blank ", "plain"];
        let rows = fields.map(|field| vec![key(field)]).to_vec();
        let answer = answer(&[("a \"key\"", Role::Key)], rows);
        let expected =
            "\"a \"\"key\"\"\"\n\"a,b\"\n\"say \"\"no\"\"\"\n\"two\nlines\"\n\"cr\r\"\n\"\"\n\" blank \"\nplain\n";
        assert_eq!(written(&answer), expected);
    }

    #[test]
    fn nothing_is_an_empty_field_and_digits_are_kept() {
        let rows = vec![
            vec![key("a"), cell(Value::Float(1.0 / 3.0), f64::NEG_INFINITY, 1e300)],
            vec![whit_query::Cell { value: Value::Null, low: None, high: None }; 2],
        ];
        let answer = answer(&[("k", Role::Key), ("v", Role::Noisy)], rows);
        assert_eq!(written(&answer), "k,v,v_low,v_high\na,0.3333333333333333,-inf,1e300\n,,,\n");
    }
}
