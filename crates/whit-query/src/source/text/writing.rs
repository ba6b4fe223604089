//! How one file of lines is written, and its bytes as text: unpacked, and with UTF-16 as UTF-8.

use super::csv::Signs;
use super::letters::{FromUtf16, in_utf8, shown_by};
use crate::source::files::endings;
use flate2::read::MultiGzDecoder;
use std::fs::File;
use std::io::{self, BufReader, Read};
use std::path::Path;
use std::sync::Arc;
use whit_core::declare::{Compression, Encoding, FileLayout, Format};

/// A heading that is longer is none.
const HEADING: u64 = 1 << 20;

/// How a file is written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::source) struct Writing {
    /// CSV or NDJSON.
    pub(in crate::source) format: Format,
    /// Whether a line break in quotes ends no row of a CSV file.
    pub(in crate::source) quotes: bool,
    pub(in crate::source) signs: Signs,
    /// The columns by their place; absent where the first line names them.
    pub(in crate::source) names: Option<Arc<[String]>>,
    /// What stands for a missing value.
    pub(in crate::source) nulls: Arc<[String]>,
    pub(in crate::source) compression: Compression,
    pub(in crate::source) encoding: Encoding,
}

/// The heading of a file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(in crate::source) struct Heading {
    /// The names of the columns, in order.
    pub(in crate::source) names: Vec<String>,
    /// Where rows begin, in bytes of the text,
    pub(in crate::source) start: u64,
    /// and how many lines are before them.
    pub(in crate::source) lines: u64,
    /// How its letters seem to be written, where they are not UTF-8 and nobody said so.
    pub(in crate::source) foreign: Option<Encoding>,
    /// Whether it has no end, or goes over several lines: what is taken for names may then be rows, and is told to nobody.
    pub(in crate::source) hidden: bool,
}

impl Writing {
    /// How a file is written that is called so: what is declared, else what its ending says.
    pub(in crate::source) fn of(layout: &FileLayout, format: Format, quotes: bool, name: &str) -> Self {
        let byte = |sign: char| u8::try_from(sign).ok();
        let (ending, packed) = endings(name);
        let tabs = ending.is_some_and(|ending| ending.eq_ignore_ascii_case("tsv"));
        let signs = Signs {
            delimiter: layout.delimiter.and_then(byte).unwrap_or(if tabs { b'\t' } else { b',' }),
            quote: layout.quote.and_then(byte),
            escape: layout.escape.and_then(byte),
            comment: layout.comment.and_then(byte),
        };
        Self {
            format,
            quotes: quotes && format == Format::Csv,
            signs,
            names: layout.names.as_ref().map(|names| names.as_slice().into()),
            nulls: layout.null.as_slice().into(),
            compression: layout.compression.or(packed).unwrap_or(Compression::None),
            encoding: layout.encoding.unwrap_or_default(),
        }
    }

    /// Whether the engine's own readers read it too.
    pub(in crate::source) fn is_plain(&self) -> bool {
        self.signs == Signs::default()
            && self.names.is_none()
            && self.nulls.is_empty()
            && self.compression == Compression::None
            && self.encoding == Encoding::Utf8
    }

    /// What a fingerprint tells of it, where it is not how files are mostly written.
    pub(in crate::source) fn fingerprint(&self) -> Option<String> {
        let Self { format: _, quotes: _, signs, names, nulls, compression, encoding } = self;
        let Signs { delimiter, quote, escape, comment } = signs;
        (!self.is_plain()).then(|| {
            format!(
                "written {delimiter} {quote:?} {escape:?} {comment:?} {names:?} {nulls:?} {compression} {encoding}\n"
            )
        })
    }

    /// Whether reading can begin in the middle of a file.
    pub(in crate::source) fn is_divisible(&self) -> bool {
        !self.quotes && !self.is_stream()
    }

    /// Whether places in the text are none in the file.
    pub(super) fn is_stream(&self) -> bool {
        self.compression != Compression::None || self.encoding == Encoding::Utf16
    }

    /// The text of a file, from its beginning on.
    pub(in crate::source) fn text(&self, path: &Path) -> io::Result<Box<dyn Read + Send>> {
        let bytes = unpacked(File::open(path)?, self.compression)?;
        Ok(if self.encoding == Encoding::Utf16 { Box::new(FromUtf16::new(bytes)) } else { bytes })
    }

    /// A line of the text as UTF-8.
    pub(super) fn line<'a>(&self, line: &'a [u8], spare: &'a mut Vec<u8>) -> &'a [u8] {
        in_utf8(line, self.encoding, spare)
    }

    /// The names of the columns of a CSV file, and where rows begin. An empty file has none.
    pub(in crate::source) fn heading(&self, path: &Path) -> io::Result<Heading> {
        let named = self.format == Format::Csv && self.names.is_none();
        let mut text = Vec::new();
        self.text(path)?.take(if named { HEADING } else { 3 }).read_to_end(&mut text)?;
        let mut start = if text.starts_with(b"\xef\xbb\xbf") { 3 } else { 0 };
        if !named {
            let names = self.names.as_deref().unwrap_or_default().to_vec();
            return Ok(Heading { names, start: start as u64, ..Heading::default() });
        }
        let mut lines = 0;
        loop {
            let rest = &text[start..];
            let end =
                if self.quotes { self.signs.end_of_record(rest) } else { rest.iter().position(|&byte| byte == b'\n') };
            let line = &rest[..end.unwrap_or(rest.len())];
            let behind = end.map_or(text.len(), |end| start + end + 1);
            lines += u64::from(!rest.is_empty());
            if self.signs.is_comment(line) && end.is_some() {
                start = behind;
                continue;
            }
            let (raw, mut spare) = (line, Vec::new());
            let line = self.line(line.strip_suffix(b"\r").unwrap_or(line), &mut spare);
            let mut names = Vec::new();
            if !line.is_empty() {
                self.signs.fields(line, &mut Vec::new(), |_, name| {
                    names.push(String::from_utf8_lossy(name).trim().to_owned());
                    true
                });
            }
            let shown = if line.contains(&0) { Encoding::Utf16 } else { shown_by(raw) };
            let foreign = Some(shown).filter(|shown| self.encoding == Encoding::Utf8 && *shown != Encoding::Utf8);
            let whole = raw.strip_suffix(b"\r").unwrap_or(raw);
            let clear = raw.is_empty() || end.is_some() && !whole.iter().any(|byte| matches!(byte, b'\n' | b'\r'));
            return Ok(Heading { names, start: behind as u64, lines, foreign, hidden: !clear });
        }
    }
}

fn unpacked(file: File, compression: Compression) -> io::Result<Box<dyn Read + Send>> {
    Ok(match compression {
        Compression::None => Box::new(file),
        Compression::Gzip => Box::new(Unpacked { of: "gzip", from: MultiGzDecoder::new(BufReader::new(file)) }),
        Compression::Zstd => Box::new(Unpacked { of: "zstd", from: zstd::stream::read::Decoder::new(file)? }),
    })
}

/// What comes out of a file that is packed. What is wrong with one is said in one way, wherever that is.
struct Unpacked<R> {
    of: &'static str,
    from: R,
}

impl<R: Read> Read for Unpacked<R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        self.from.read(into).map_err(|error| match error.kind() {
            io::ErrorKind::Interrupted => error,
            _ => io::Error::new(io::ErrorKind::InvalidData, format!("it is not packed as {} to its end", self.of)),
        })
    }
}

/// How a file is packed, by its first bytes, which no text begins with.
pub(in crate::source) fn packed_by(path: &Path) -> Option<Compression> {
    let mut first = Vec::new();
    std::fs::File::open(path).ok()?.take(4).read_to_end(&mut first).ok()?;
    match first.as_slice() {
        [0x1f, 0x8b, ..] => Some(Compression::Gzip),
        [0x28, 0xb5, 0x2f, 0xfd] => Some(Compression::Zstd),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::scratch::Scratch;
    use super::*;

    #[test]
    fn a_heading_comes_behind_marks_and_comments() {
        let scratch = Scratch::new("writing_heading");
        let layout = FileLayout { comment: Some('#'), delimiter: Some(';'), ..FileLayout::default() };
        let writing = Writing::of(&layout, Format::Csv, false, "a.csv");
        let path = scratch.write("a.csv", "\u{feff}# made on Monday\n# \"x\nid;name\r\n1;a\n");
        let heading = writing.heading(&path).unwrap();
        assert_eq!((heading.names, heading.start, heading.lines), (vec!["id".to_owned(), "name".to_owned()], 34, 3));
        let empty = writing.heading(&scratch.write("e.csv", "")).unwrap();
        assert_eq!((empty.names.len(), empty.start, empty.lines), (0, 0, 0));
        let latin = writing.heading(&scratch.write("l.csv", b"id;na\xefve\n1;a\n")).unwrap();
        assert_eq!(latin.foreign, Some(Encoding::Latin1));
    }

    #[test]
    fn what_may_be_rows_is_not_told_as_a_heading() {
        let scratch = Scratch::new("writing_hidden");
        let hidden = |quotes: bool, text: &str| {
            let writing = Writing::of(&FileLayout::default(), Format::Csv, quotes, "a.csv");
            writing.heading(&scratch.write("a.csv", text)).unwrap().hidden
        };
        assert!(!hidden(false, "id,x\r\n1,a\r\n") && !hidden(false, "id,x\n"));
        assert!(hidden(false, "id,x\r1,secret\r") && hidden(false, "id,x\r1,secret\n2,b\n") && hidden(false, "id,x"));
        assert!(hidden(true, "id,\"x\n1,secret\n2,b\n") && hidden(true, "id,\"x\n1,secret\",y\n2,b\n"));
    }
}
