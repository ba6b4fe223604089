//! How files seem to be written, for the owner to confirm. Nothing on the way of a question comes here.

use super::cell::{Column, Taken};
use super::letters::shown_by;
use super::writing::{Writing, packed_by};
use crate::error::QueryError;
use crate::source::files::unreadable;
use std::collections::BTreeMap;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use whit_core::declare::{ColumnType, Compression, Encoding, FileLayout, Format};

/// So much of each file is looked at for its letters,
const BYTES: u64 = 1 << 24;
/// and so many lines of the first for its signs.
const LINES: usize = 50;
/// What mostly stands between values.
const DELIMITERS: [char; 4] = [',', '\t', ';', '|'];

/// What the bytes of files suggest of how they are written, where their endings do not say it.
pub(in crate::source) fn layout_of(
    format: Format,
    files: &BTreeMap<String, PathBuf>,
) -> Result<FileLayout, QueryError> {
    let mut layout = FileLayout::default();
    for (name, path) in files {
        let plain = Writing::of(&layout, format, false, name).compression == Compression::None;
        layout.compression = layout.compression.or_else(|| packed_by(path).filter(|_| plain));
        let raw =
            beginning(&Writing::of(&layout, format, false, name), path).map_err(|error| unreadable(name, &error))?;
        // UTF-16 without its mark: every other byte of most letters is 0.
        let zeros = raw.iter().take(1 << 12).filter(|byte| **byte == 0).count();
        let shown = if 4 * zeros > raw.len().min(1 << 12) { Encoding::Utf16 } else { shown_by(&raw) };
        if shown != Encoding::Utf8 && layout.encoding != Some(Encoding::Windows1252) {
            layout.encoding = Some(shown);
        }
    }
    if format != Format::Csv {
        return Ok(layout);
    }
    for (name, path) in files {
        let plain = Writing::of(&layout, format, false, name);
        let text = beginning(&plain, path).map_err(|error| unreadable(name, &error))?;
        let text = text.strip_prefix(b"\xef\xbb\xbf").unwrap_or(&text);
        let lines: Vec<&[u8]> = text.split(|&byte| byte == b'\n').filter(|line| !line.is_empty()).take(LINES).collect();
        let Some(first) = lines.first() else { continue };
        if first.starts_with(b"#") {
            layout.comment = Some('#');
        }
        let signs_of = |delimiter: Option<char>| {
            let layout = FileLayout { delimiter, ..layout.clone() };
            Writing::of(&layout, format, false, name).signs
        };
        let lines: Vec<&[u8]> = lines.into_iter().filter(|line| !signs_of(None).is_comment(line)).collect();
        let width = |delimiter, line: &[u8]| signs_of(delimiter).fields(line, &mut Vec::new(), |_, _| true).fields;
        // The one that cuts most lines into as many values as the first.
        let score = |delimiter: Option<char>| {
            let many = lines.first().map_or(0, |line| width(delimiter, line));
            let alike = lines.iter().filter(|line| width(delimiter, line) == many).count();
            if many > 1 { (alike, many) } else { (0, 0) }
        };
        let others = DELIMITERS.into_iter().map(Some);
        let best = others.fold(None, |best, next| if score(next) > score(best) { next } else { best });
        layout.delimiter = best;
        if let Some(first) = lines.first() {
            layout.names = nameless(first, &Writing::of(&layout, format, false, name));
        }
        break;
    }
    Ok(layout)
}

fn beginning(writing: &Writing, path: &Path) -> io::Result<Vec<u8>> {
    let mut text = Vec::new();
    writing.text(path)?.take(BYTES).read_to_end(&mut text)?;
    Ok(text)
}

/// Names by place, where a first line has what no heading has: a number, a day, or one thing twice.
fn nameless(line: &[u8], writing: &Writing) -> Option<Vec<String>> {
    let (mut values, mut spare) = (Vec::new(), Vec::new());
    let line = writing.line(line.strip_suffix(b"\r").unwrap_or(line), &mut spare);
    writing.signs.fields(line, &mut Vec::new(), |_, value| {
        values.push(value.trim_ascii().to_vec());
        true
    });
    let is_value = |value: &Vec<u8>| {
        let kinds = [ColumnType::Float, ColumnType::Date, ColumnType::Timestamp];
        kinds.iter().any(|kind| Column::new(kind).take(value) == Taken::Value)
    };
    let twice = |(at, value): (usize, &Vec<u8>)| values[..at].contains(value);
    let heading = !values.iter().any(is_value) && !values.iter().enumerate().any(twice);
    (!heading).then(|| (1..=values.len()).map(|place| format!("column_{place}")).collect())
}

#[cfg(test)]
mod tests {
    use super::super::super::scratch::Scratch;
    use super::*;

    fn sniffed(name: &str, bytes: &[u8]) -> FileLayout {
        let scratch = Scratch::new(&format!("sniff_{name}_{}", bytes.len()));
        let path = scratch.write(name, bytes);
        layout_of(Format::Csv, &BTreeMap::from([(name.to_owned(), path)])).unwrap()
    }

    #[test]
    fn signs_and_letters_are_noticed() {
        assert!(sniffed("a.csv", b"id,name\n1,\"a; b; c\"\n2,x\n").is_default());
        assert!(sniffed("a.csv", b"id\n1\n2\n").is_default(), "one column has no delimiter");
        assert!(sniffed("a.csv", b"").is_default());
        assert!(sniffed("a.tsv", b"id\tname\n1\ta\n").is_default());
        assert_eq!(sniffed("a.csv", b"id;name;x\n1;a,b;0,5\n2;c;1,5\n").delimiter, Some(';'));
        assert_eq!(sniffed("a.csv", b"id|name\n1|a\n").delimiter, Some('|'));
        let tabs = sniffed("a.csv", b"# made, on, Monday\nid\tname\n1\ta\n");
        assert_eq!((tabs.delimiter, tabs.comment, tabs.names), (Some('\t'), Some('#'), None));
        let bare = sniffed("a.csv", b"1,a,2024-01-01\n2,b,2024-01-02\n");
        assert_eq!(bare.names.unwrap(), ["column_1", "column_2", "column_3"]);
        assert_eq!(sniffed("a.csv", b"id,name\n1,caf\xe9\n").encoding, Some(Encoding::Latin1));
        assert_eq!(sniffed("a.csv", b"id,name\n1,\x80\n").encoding, Some(Encoding::Windows1252));
        let wide: Vec<u8> = "id;name\n1;a\n".encode_utf16().flat_map(u16::to_le_bytes).collect();
        let wide = sniffed("a.csv", &wide);
        assert_eq!((wide.encoding, wide.delimiter), (Some(Encoding::Utf16), Some(';')));
    }
}
