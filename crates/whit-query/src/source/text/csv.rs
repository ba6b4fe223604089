//! A line of a CSV file, cut into fields.
//!
//! This is not the `csv` crate, because of what a bad row may do. There, a quote that nothing closes takes the lines that follow into its field, and a row of
//! another length is an error of the file; both would let one person's row decide what becomes of another's, or whether a question fails. Here a record is cut by
//! itself (a line, unless the declaration says that values hold line breaks): what was open ends with it, and what is too short or too long is that row's own affair. `csv-core` could be begun anew with each line, but it
//! copies every field, also those that no question asks for, where this one hands on slices of what was read and stops after the last that is wanted.

/// What stands between two fields.
const COMMA: u8 = b',';
const QUOTE: u8 = b'"';

/// Where a record ends, and whether a quote was still open there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Ended {
    /// How many fields there were.
    pub(super) fields: usize,
    /// Whether the last one began with a quote that nothing closed: it goes to the end of the record then.
    pub(super) open: bool,
}

/// Hands the fields of a record on, one by one, until `each` has had enough. `spare` holds a field whose quotes had to be taken out.
pub(super) fn fields(record: &[u8], spare: &mut Vec<u8>, mut each: impl FnMut(usize, &[u8]) -> bool) -> Ended {
    let (mut rest, mut number) = (record, 0);
    loop {
        let (field, next, open) = if rest.first() == Some(&QUOTE) {
            quoted(&rest[1..], spare)
        } else {
            let (field, next) = cut(rest);
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

/// Up to the next comma, and what is behind it.
fn cut(text: &[u8]) -> (&[u8], Option<&[u8]>) {
    match text.iter().position(|&byte| byte == COMMA) {
        Some(comma) => (&text[..comma], Some(&text[comma + 1..])),
        None => (text, None),
    }
}

/// A field behind its opening quote; two quotes stand for one, and what follows the closing one up to the comma belongs to it.
fn quoted<'t: 'f, 'f>(text: &'t [u8], spare: &'f mut Vec<u8>) -> (&'f [u8], Option<&'t [u8]>, bool) {
    let Some(first) = text.iter().position(|&byte| byte == QUOTE) else { return (text, None, true) };
    match text.get(first + 1) {
        None => return (&text[..first], None, false),
        Some(&COMMA) => return (&text[..first], Some(&text[first + 2..]), false),
        Some(_) => {}
    }
    spare.clear();
    let mut rest = text;
    loop {
        let Some(quote) = rest.iter().position(|&byte| byte == QUOTE) else {
            spare.extend_from_slice(rest);
            return (spare, None, true);
        };
        spare.extend_from_slice(&rest[..quote]);
        if rest.get(quote + 1) == Some(&QUOTE) {
            spare.push(QUOTE);
            rest = &rest[quote + 2..];
            continue;
        }
        let (tail, next) = cut(&rest[quote + 1..]);
        spare.extend_from_slice(tail);
        return (spare, next, false);
    }
}

/// Where a record ends in which quotes may hold line breaks: the place of its line break, if it is there.
pub(super) fn end_of_record(text: &[u8]) -> Option<usize> {
    let mut at = 0;
    loop {
        // At the beginning of a field.
        if text.get(at) == Some(&QUOTE) {
            at += 1;
            loop {
                at += text[at..].iter().position(|&byte| byte == QUOTE)? + 1;
                match text.get(at) {
                    Some(&QUOTE) => at += 1,
                    _ => break,
                }
            }
        }
        at += text.get(at..)?.iter().position(|&byte| byte == COMMA || byte == b'\n')?;
        if text[at] == b'\n' {
            return Some(at);
        }
        at += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(record: &str) -> (Vec<String>, bool) {
        let (mut found, mut spare) = (Vec::new(), Vec::new());
        let ended = fields(record.as_bytes(), &mut spare, |_, field| {
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
        let ended = fields(b"1,2,3,4", &mut Vec::new(), |number, _| {
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
            assert_eq!(end_of_record(text.as_bytes()), expected, "{text:?}");
        }
    }
}
