//! A line of an NDJSON file, cut into its members. A value that is odd stays its own business: members are found by brackets and quotes
//! alone, and only what is asked for is looked at.

use super::cell::{Column, Taken};

/// A value as it stands in a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Raw<'a> {
    /// What stands between quotes, with its escapes.
    Text(&'a [u8]),
    /// A number, `true`, `false`, `null`, or nonsense.
    Bare(&'a [u8]),
    /// What stands between brackets.
    List(&'a [u8]),
    /// An object.
    Object,
}

/// Hands the members of an object on, one by one; a name comes with its escapes. Whether all of the line was one object.
pub(super) fn members<'a>(line: &'a [u8], mut each: impl FnMut(&'a [u8], Raw<'a>)) -> bool {
    let Some(mut rest) = after(line, b'{') else { return false };
    if let Some(end) = after(rest, b'}') {
        return end.trim_ascii().is_empty();
    }
    loop {
        let Some((Raw::Text(name), behind)) = value(rest) else { return false };
        let Some((found, behind)) = after(behind, b':').and_then(value) else { return false };
        each(name, found);
        match after(behind, b',') {
            Some(next) => rest = next,
            None => return after(behind, b'}').is_some_and(|end| end.trim_ascii().is_empty()),
        }
    }
}

/// Hands the items of a list on, one by one.
pub(super) fn items<'a>(mut rest: &'a [u8], mut each: impl FnMut(Raw<'a>)) {
    while let Some((item, behind)) = value(rest) {
        each(item);
        match after(behind, b',') {
            Some(next) => rest = next,
            None => break,
        }
    }
}

/// What is behind a mark, if the text begins with it.
fn after(text: &[u8], mark: u8) -> Option<&[u8]> {
    let text = text.trim_ascii_start();
    text.split_first().filter(|(first, _)| **first == mark).map(|(_, rest)| rest)
}

/// The first value of a text, and what is behind it.
fn value(text: &[u8]) -> Option<(Raw<'_>, &[u8])> {
    let text = text.trim_ascii_start();
    match text.first()? {
        b'"' => {
            let end = closing(&text[1..])? + 1;
            Some((Raw::Text(&text[1..end]), &text[end + 1..]))
        }
        &open @ (b'{' | b'[') => {
            let (mut depth, mut at) = (0_usize, 0);
            loop {
                match text.get(at)? {
                    b'"' => at += closing(&text[at + 1..])? + 1,
                    b'{' | b'[' => depth += 1,
                    b'}' | b']' => depth -= 1,
                    _ => {}
                }
                at += 1;
                if depth == 0 {
                    break;
                }
            }
            let found = if open == b'[' { Raw::List(&text[1..at - 1]) } else { Raw::Object };
            Some((found, &text[at..]))
        }
        _ => {
            let bare = |byte: &u8| !matches!(byte, b',' | b'}' | b']' | b':' | b'"') && !byte.is_ascii_whitespace();
            let end = text.iter().position(|byte| !bare(byte)).unwrap_or(text.len());
            (end > 0).then(|| (Raw::Bare(&text[..end]), &text[end..]))
        }
    }
}

/// The place of the quote that closes a text.
fn closing(text: &[u8]) -> Option<usize> {
    let mut at = 0;
    loop {
        match text.get(at)? {
            b'"' => return Some(at),
            b'\\' => at += 2,
            _ => at += 1,
        }
    }
}

/// A text without its escapes; nothing where one is none.
pub(super) fn plain<'a>(raw: &'a [u8], spare: &'a mut String) -> Option<&'a [u8]> {
    if !raw.contains(&b'\\') {
        return Some(raw);
    }
    let mut quoted = Vec::with_capacity(raw.len() + 2);
    quoted.push(b'"');
    quoted.extend_from_slice(raw);
    quoted.push(b'"');
    *spare = serde_json::from_slice(&quoted).ok()?;
    Some(spare.as_bytes())
}

/// Puts a value into a column.
pub(super) fn put(column: &mut Column, raw: Raw<'_>) -> Taken {
    match raw {
        Raw::Bare(b"null") => {
            column.null();
            Taken::Missing
        }
        Raw::Bare(text) => column.take(text),
        Raw::Text([]) => column.take_empty(),
        Raw::Text(text) => {
            let mut spare = String::new();
            if let Some(text) = plain(text, &mut spare) {
                column.take(text)
            } else {
                column.null();
                Taken::Wrong
            }
        }
        Raw::List(list) => column.take_list(|column| {
            let mut many = 0;
            items(list, |item| {
                put(column, item);
                many += 1;
            });
            many
        }),
        Raw::Object => {
            column.null();
            Taken::Wrong
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use datafusion::arrow::array::{Array, AsArray};
    use datafusion::arrow::datatypes::{Float64Type, Int64Type};
    use whit_core::declare::ColumnType;

    fn all(line: &str) -> (Vec<(String, String)>, bool) {
        let mut found = Vec::new();
        let whole = members(line.as_bytes(), |name, raw| {
            found.push((
                String::from_utf8_lossy(name).into_owned(),
                match raw {
                    Raw::Text(text) => format!("'{}'", String::from_utf8_lossy(text)),
                    Raw::Bare(text) => String::from_utf8_lossy(text).into_owned(),
                    Raw::List(text) => format!("[{}]", String::from_utf8_lossy(text)),
                    Raw::Object => "{}".to_owned(),
                },
            ));
        });
        (found, whole)
    }

    #[test]
    fn members_are_found_by_brackets_and_quotes() {
        let (found, whole) = all(r#" { "a" : 1 , "b":"x\"}, y","c":[1,[2,"]"]], "d": {"e": "}"} ,"f":null} "#);
        let expected = [("a", "1"), ("b", r#"'x\"}, y'"#), ("c", r#"[1,[2,"]"]]"#), ("d", "{}"), ("f", "null")];
        assert!(whole);
        assert_eq!(found, expected.map(|(name, value)| (name.to_owned(), value.to_owned())));
        assert_eq!(all("{}"), (vec![], true));
    }

    #[test]
    fn what_stands_before_a_break_is_read() {
        for (line, many) in [
            ("", 0),
            ("[1]", 0),
            ("{", 0),
            (r#"{"a": 1"#, 1),
            (r#"{"a": 1, "b": "#, 1),
            (r#"{"a": 1, "b": "open"#, 1),
            (r#"{"a": 1, "b": [1, {]"#, 1),
            (r#"{"a": 1, b: 2}"#, 1),
            (r#"{"a": 1} {"a": 2}"#, 1),
            (r#"{"a": 1 "b": 2}"#, 1),
            (r#"{"a": 1, "b": "x\"#, 1),
        ] {
            let (found, whole) = all(line);
            assert_eq!((found.len(), whole), (many, false), "{line}");
        }
        let deep = format!("{{\"a\": {}1{}, \"b\": 2}}", "[".repeat(100_000), "]".repeat(100_000));
        assert_eq!(all(&deep).0.len(), 2, "however deep");
    }

    #[test]
    fn values_become_what_was_declared_or_null() {
        let mut ints = Column::new(&ColumnType::Int);
        let taken =
            [Raw::Bare(b"1"), Raw::Bare(b"2.0"), Raw::Text(b"3"), Raw::Bare(b"null"), Raw::Bare(b"4.5"), Raw::Object]
                .map(|raw| put(&mut ints, raw));
        assert_eq!(taken, [Taken::Value, Taken::Value, Taken::Value, Taken::Missing, Taken::Wrong, Taken::Wrong]);
        assert_eq!(ints.finish().as_primitive::<Int64Type>().values()[..3], [1, 2, 3]);
        let mut texts = Column::new(&ColumnType::Text);
        let raws =
            [Raw::Text(br"a\u00fc\n"), Raw::Bare(b"7"), Raw::Text(br"\ud800"), Raw::Text(b"\xff"), Raw::Text(b"")];
        for raw in raws {
            put(&mut texts, raw);
        }
        let texts = texts.finish();
        let texts: Vec<_> = texts.as_string::<i32>().iter().collect();
        assert_eq!(texts, [Some("aü\n"), Some("7"), None, None, Some("")]);
        let mut lists = Column::new(&ColumnType::parse("list(float)").unwrap());
        for raw in [Raw::List(b"1, 2.5, \"x\""), Raw::List(b""), Raw::Bare(b"1"), Raw::List(b"[1]")] {
            put(&mut lists, raw);
        }
        let lists = lists.finish();
        let lists = lists.as_list::<i32>();
        assert_eq!((lists.value(0).len(), lists.value(0).null_count(), lists.value(1).len()), (3, 1, 0));
        assert_eq!(lists.value(0).as_primitive::<Float64Type>().value(1), 2.5);
        assert_eq!((lists.is_null(2), lists.value(3).null_count()), (true, 1));
    }
}
