//! A line of a CSV file, cut into fields.
//!
//! This is not the `csv` crate, because of what a bad row may do. There, a quote that nothing closes takes the lines that follow into its field, and a row of
//! another length is an error of the file; both would let one person's row decide what becomes of another's, or whether a question fails. Here a record is cut by
//! itself (a line, unless the declaration says that values hold line breaks): what was open ends with it, and what is too short or too long is that row's own affair. `csv-core` could be begun anew with each line, but it
//! copies every field, also those that no question asks for, where this one hands on slices of what was read and stops after the last that is wanted.

/// The signs of a CSV file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::source) struct Signs {
    /// What stands between two fields.
    pub(in crate::source) delimiter: u8,
    /// What stands around a field that holds others of these.
    pub(in crate::source) quote: Option<u8>,
    /// What in quotes takes the meaning from the byte that follows.
    pub(in crate::source) escape: Option<u8>,
    /// What a line begins with that is no row.
    pub(in crate::source) comment: Option<u8>,
}

impl Default for Signs {
    fn default() -> Self {
        Self { delimiter: b',', quote: Some(b'"'), escape: None, comment: None }
    }
}

/// Where a record ends, and whether a quote was still open there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Ended {
    /// How many fields there were.
    pub(super) fields: usize,
    /// Whether the last one began with a quote that nothing closed: it goes to the end of the record then.
    pub(super) open: bool,
}

impl Signs {
    /// Whether a line is a comment, and so no row.
    pub(super) fn is_comment(self, line: &[u8]) -> bool {
        self.comment.is_some() && line.first().copied() == self.comment
    }

    /// Whether a field begins with a quote here.
    fn opens(self, text: &[u8]) -> bool {
        self.quote.is_some() && text.first().copied() == self.quote
    }

    /// The place of the first byte in quotes that means something: a quote, or what takes its meaning.
    fn turn(self, text: &[u8]) -> Option<usize> {
        let (quote, escape) = (self.quote, self.escape);
        text.iter().position(|byte| Some(*byte) == quote || Some(*byte) == escape)
    }

    /// Hands the fields of a record on, one by one, until `each` has had enough. `spare` holds a field whose quotes had to be taken out.
    pub(super) fn fields(
        self,
        record: &[u8],
        spare: &mut Vec<u8>,
        mut each: impl FnMut(usize, &[u8]) -> bool,
    ) -> Ended {
        let (mut rest, mut number) = (record, 0);
        loop {
            let (field, next, open) = if self.opens(rest) {
                self.quoted(&rest[1..], spare)
            } else {
                let (field, next) = self.cut(rest);
                (field, next, false)
            };
            let go_on = each(number, field);
            number += 1;
            match next {
                Some(next) if go_on => rest = next,
                _ => return Ended { fields: number, open },
            }
        }
    }

    /// Up to the next delimiter, and what is behind it.
    fn cut(self, text: &[u8]) -> (&[u8], Option<&[u8]>) {
        match text.iter().position(|&byte| byte == self.delimiter) {
            Some(end) => (&text[..end], Some(&text[end + 1..])),
            None => (text, None),
        }
    }

    /// A field behind its opening quote; two quotes stand for one, and what follows the closing one up to the delimiter belongs to it.
    fn quoted<'t: 'f, 'f>(self, text: &'t [u8], spare: &'f mut Vec<u8>) -> (&'f [u8], Option<&'t [u8]>, bool) {
        let Some(first) = self.turn(text) else { return (text, None, true) };
        if Some(text[first]) == self.quote {
            match text.get(first + 1) {
                None => return (&text[..first], None, false),
                Some(&byte) if byte == self.delimiter => return (&text[..first], Some(&text[first + 2..]), false),
                Some(_) => {}
            }
        }
        spare.clear();
        let mut rest = text;
        loop {
            let Some(turn) = self.turn(rest) else {
                spare.extend_from_slice(rest);
                return (spare, None, true);
            };
            spare.extend_from_slice(&rest[..turn]);
            let next = rest.get(turn + 1).copied();
            if Some(rest[turn]) == self.escape || next == self.quote {
                // At the end of a record there is nothing that could lose its meaning.
                spare.extend(next);
                rest = rest.get(turn + 2..).unwrap_or_default();
                continue;
            }
            let (tail, next) = self.cut(&rest[turn + 1..]);
            spare.extend_from_slice(tail);
            return (spare, next, false);
        }
    }

    /// Where a record ends in which quotes may hold line breaks: the place of its line break, if it is there.
    pub(super) fn end_of_record(self, text: &[u8]) -> Option<usize> {
        if self.is_comment(text) {
            return text.iter().position(|&byte| byte == b'\n');
        }
        let mut at = 0;
        loop {
            // At the beginning of a field.
            if self.opens(text.get(at..)?) {
                at += 1;
                loop {
                    at += self.turn(text.get(at..)?)?;
                    if Some(text[at]) == self.escape || (text.get(at + 1).copied() == self.quote) {
                        at += 2;
                        continue;
                    }
                    at += 1;
                    break;
                }
            }
            at += text.get(at..)?.iter().position(|&byte| byte == self.delimiter || byte == b'\n')?;
            if text[at] == b'\n' {
                return Some(at);
            }
            at += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(record: &str) -> (Vec<String>, bool) {
        let (mut found, mut spare) = (Vec::new(), Vec::new());
        let ended = Signs::default().fields(record.as_bytes(), &mut spare, |_, field| {
            found.push(String::from_utf8_lossy(field).into_owned());
            true
        });
        assert_eq!(ended.fields, found.len());
        (found, ended.open)
    }

    #[test]
    fn fields_are_cut_at_commas_outside_of_quotes() {
        for (record, expected) in [
            ("", &[""][..]),
            ("a", &["a"]),
            ("a,b,", &["a", "b", ""]),
            ("\"a, b\",c", &["a, b", "c"]),
            ("\"say \"\"hi\"\"\",x", &["say \"hi\"", "x"]),
            ("\"\",\"\"", &["", ""]),
            ("a\"b,c\"", &["a\"b", "c\""]),
            ("\"ab\"cd,e", &["abcd", "e"]),
            ("\"\"\"\"", &["\""]),
        ] {
            assert_eq!(all(record), (expected.iter().map(|&field| field.to_owned()).collect(), false), "{record}");
        }
    }

    #[test]
    fn a_quote_that_nothing_closes_takes_the_rest_of_its_line_and_no_more() {
        assert_eq!(all("1,\"two,3"), (vec!["1".to_owned(), "two,3".to_owned()], true));
        assert_eq!(all("\"a\"\"b"), (vec!["a\"b".to_owned()], true));
        assert_eq!(all("\""), (vec![String::new()], true));
    }

    #[test]
    fn a_reader_that_has_enough_is_handed_no_more() {
        let mut seen = 0;
        let ended = Signs::default().fields(b"1,2,3,4", &mut Vec::new(), |number, _| {
            seen += 1;
            number < 1
        });
        assert_eq!((seen, ended.fields), (2, 2));
    }

    #[test]
    fn a_record_ends_at_a_line_break_outside_of_quotes() {
        for (text, expected) in [
            ("a,b\nc", Some(3)),
            ("a,\"b\nc\"\nd", Some(7)),
            ("\"a\"\"\n\"\nd", Some(6)),
            ("a,\"b\nc", None),
            ("a,b", None),
            ("a\"b\nc", Some(3)),
            ("\n", Some(0)),
            ("\"", None),
            ("\"a\"", None),
        ] {
            assert_eq!(Signs::default().end_of_record(text.as_bytes()), expected, "{text:?}");
        }
    }

    #[test]
    fn other_signs_cut_as_they_say() {
        let all = |signs: Signs, record: &str| {
            let mut found = Vec::new();
            let ended = signs.fields(record.as_bytes(), &mut Vec::new(), |_, field| {
                found.push(String::from_utf8_lossy(field).into_owned());
                true
            });
            (found.join("|"), ended.open)
        };
        let plain = Signs::default();
        let semicolons = Signs { delimiter: b';', quote: Some(b'\''), ..plain };
        assert_eq!(all(semicolons, "1;'a;b';\"c\""), ("1|a;b|\"c\"".to_owned(), false));
        let tabs = Signs { delimiter: b'\t', quote: None, ..plain };
        assert_eq!(all(tabs, "1\t\"a\tb"), ("1|\"a|b".to_owned(), false), "no quote is a quote");
        let escaped = Signs { escape: Some(b'\\'), ..plain };
        assert_eq!(all(escaped, r#""a\"b, c",d\,"e""f""#), (r#"a"b, c|d\|e"f"#.to_owned(), false));
        assert_eq!(all(escaped, r#""a\\",b"#), (r"a\|b".to_owned(), false));
        assert_eq!(all(escaped, r#""a\"#), ("a".to_owned(), true), "the end of a line is the end");
        assert_eq!(all(escaped, r#""a\",b"#), (r#"a",b"#.to_owned(), true));
        assert_eq!(escaped.end_of_record(b"\"a\\\"\nb\"\nc"), Some(7));
        assert_eq!(escaped.end_of_record(b"\"a\\"), None);
        let comments = Signs { comment: Some(b'#'), ..plain };
        assert_eq!(comments.end_of_record(b"# it,\"s open\n1\n"), Some(12));
        assert!(comments.is_comment(b"# x") && !comments.is_comment(b" # x") && !plain.is_comment(b"# x"));
    }
}
