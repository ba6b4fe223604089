//! The lines of a part of a file.
//!
//! A part is a range of bytes, and has the lines that begin in it: so parts that together are the file have each line once, however it
//! is divided.

use super::writing::Writing;
use std::fs::File;
use std::io::{self, BufRead, Read, Seek, SeekFrom};
use std::ops::Range;
use std::path::Path;

/// How much is read at a time.
const BUFFER: usize = 1 << 18;
/// Of a line that is longer, only so much is looked at.
pub(super) const LONGEST: usize = 1 << 24;

/// The place of a byte. The standard library looks for it many bytes at a time.
fn find(text: &[u8], byte: u8) -> Option<usize> {
    let mut rest = text;
    let read = rest.skip_until(byte).ok()?;
    read.checked_sub(1).filter(|&last| text[last] == byte)
}

/// Lines, one after the other.
pub(super) struct Lines {
    text: Box<dyn Read + Send>,
    writing: Writing,
    buffer: Vec<u8>,
    /// A line whose letters had to be written anew.
    spare: Vec<u8>,
    /// What of the buffer is filled and not handed out yet.
    rest: Range<usize>,
    /// Where in the file the rest begins.
    at: u64,
    /// Lines that begin here or later belong to another part.
    end: u64,
    /// Whether the file has no more.
    done: bool,
    /// Whether that is because it is packed, and what is packed breaks off.
    broken: bool,
}

impl Lines {
    /// The lines of a file that begin in a range; `start` is the first byte of rows, from which on lines count. Of a file whose places are none of its text
    /// the range is all of it.
    pub(super) fn open(path: &Path, start: u64, part: Range<u64>, writing: &Writing) -> io::Result<Self> {
        let (part, writing) = (if writing.is_stream() { 0..u64::MAX } else { part }, writing.clone());
        let from = part.start.max(start);
        // Whether a line begins just here is known from the byte before.
        let back = u64::from(from > start);
        let text: Box<dyn Read + Send> = if writing.is_stream() {
            let mut text = writing.text(path)?;
            match io::copy(&mut text.by_ref().take(start), &mut io::sink()) {
                Err(error) if error.kind() != io::ErrorKind::InvalidData => return Err(error),
                // One that breaks off says so again when it is read on.
                _ => text,
            }
        } else {
            let mut file = File::open(path)?;
            file.seek(SeekFrom::Start(from - back))?;
            Box::new(file)
        };
        let (buffer, spare) = (vec![0; BUFFER], Vec::new());
        let (rest, at, end) = (0..0, from - back, part.end);
        let mut lines = Self { text, writing, buffer, spare, rest, at, end, done: false, broken: false };
        if back > 0 {
            lines.end = u64::MAX;
            lines.skip()?;
            lines.end = part.end;
        }
        Ok(lines)
    }

    /// Whether the file breaks off: rows that stood behind are none.
    pub(super) fn is_broken(&self) -> bool {
        self.broken
    }

    /// Goes to the end of the present line, however long it is.
    fn skip(&mut self) -> io::Result<()> {
        loop {
            let text = &self.buffer[self.rest.clone()];
            if let Some(end) = find(text, b'\n') {
                self.hand_out(end + 1);
                return Ok(());
            }
            self.hand_out(text.len());
            if self.done {
                return Ok(());
            }
            self.fill()?;
        }
    }

    fn hand_out(&mut self, bytes: usize) -> Range<usize> {
        let start = self.rest.start;
        self.rest.start += bytes;
        self.at += bytes as u64;
        start..start + bytes
    }

    /// Reads more behind the rest, which moves to the front.
    fn fill(&mut self) -> io::Result<()> {
        self.buffer.copy_within(self.rest.clone(), 0);
        self.rest = 0..self.rest.len();
        if self.rest.end == self.buffer.len() {
            self.buffer.resize(2 * self.buffer.len(), 0);
        }
        loop {
            match self.text.read(&mut self.buffer[self.rest.end..]) {
                Ok(0) => {
                    self.done = true;
                    return Ok(());
                }
                Ok(more) => {
                    self.rest.end += more;
                    return Ok(());
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                // What failed here would tell whoever asks of the file after the charge. What could be unpacked is read, and of a line that is cut nothing is known to be whole.
                Err(error) if error.kind() == io::ErrorKind::InvalidData => {
                    (self.done, self.broken) = (true, true);
                    return Ok(());
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// The beginning of a line that is too long; the rest of it is skipped.
    fn cut(&mut self) -> io::Result<Range<usize>> {
        let found = self.hand_out(LONGEST);
        let mut line = self.buffer[found].to_vec();
        self.skip()?;
        // What was read behind the line is kept, and the line goes before it.
        line.extend_from_slice(&self.buffer[self.rest.clone()]);
        self.rest = LONGEST..line.len();
        self.buffer = line;
        Ok(0..LONGEST)
    }

    /// The next line without its end, as UTF-8.
    pub(super) fn next(&mut self) -> io::Result<Option<&[u8]>> {
        if self.at >= self.end {
            return Ok(None);
        }
        // Where nothing was found before, nothing need be looked for again; with quotes it depends on what was before.
        let mut looked = 0;
        let found = loop {
            let text = &self.buffer[self.rest.clone()];
            // Never further, or where a long line is cut would depend on how much was read before it.
            let near = &text[..text.len().min(LONGEST + 1)];
            let end = if self.writing.quotes {
                self.writing.signs.end_of_record(near)
            } else {
                find(&near[looked..], b'\n').map(|end| looked + end)
            };
            if let Some(end) = end {
                let mut found = self.hand_out(end + 1);
                found.end -= 1;
                break found;
            }
            if text.len() > LONGEST {
                break self.cut()?;
            }
            if self.done {
                if text.is_empty() || self.broken {
                    return Ok(None);
                }
                let all = text.len();
                break self.hand_out(all);
            }
            looked = text.len();
            self.fill()?;
        };
        let line = &self.buffer[found];
        Ok(Some(self.writing.line(line.strip_suffix(b"\r").unwrap_or(line), &mut self.spare)))
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::scratch::Scratch;
    use super::*;
    use whit_core::declare::{FileLayout, Format};

    fn lines(path: &Path, start: u64, part: Range<u64>, quotes: bool) -> Vec<Vec<u8>> {
        let writing = Writing::of(&FileLayout::default(), Format::Csv, quotes, "t.csv");
        let mut lines = Lines::open(path, start, part, &writing).unwrap();
        let mut found = Vec::new();
        while let Some(line) = lines.next().unwrap() {
            found.push(line.to_vec());
        }
        found
    }

    #[test]
    fn parts_have_each_line_once_wherever_a_file_is_cut() {
        let scratch = Scratch::new("lines_parts");
        let text = "head\none\n\ntwo and more\r\n\n\nthree\nfour";
        let path = scratch.write("t", text);
        let (start, size) = (5, text.len() as u64);
        let whole = lines(&path, start, 0..size, false);
        assert_eq!(whole, ["one", "", "two and more", "", "", "three", "four"].map(|line| line.as_bytes().to_vec()));
        for first in 0..=size {
            for second in first..=size {
                let parts = [0..first, first..second, second..size];
                let all: Vec<_> = parts.into_iter().flat_map(|part| lines(&path, start, part, false)).collect();
                assert_eq!(all, whole, "cut at {first} and {second}");
            }
        }
    }

    #[test]
    fn lines_longer_than_any_buffer_are_lines() {
        let scratch = Scratch::new("lines_long");
        let long = "x".repeat(3 * BUFFER + 7);
        let path = scratch.write("t", format!("{long}\nshort\n{long}"));
        let found = lines(&path, 0, 0..u64::MAX, false);
        assert_eq!(found.iter().map(Vec::len).collect::<Vec<_>>(), [long.len(), 5, long.len()]);
        let endless = "y".repeat(LONGEST + 3 * BUFFER);
        let path = scratch.write("e", format!("a\n{endless}\nb\nc\n"));
        let found = lines(&path, 0, 0..u64::MAX, false);
        assert_eq!(found.iter().map(Vec::len).collect::<Vec<_>>(), [1, LONGEST, 1, 1], "the rest of it is left out");
    }

    #[test]
    fn a_break_in_quotes_ends_a_record_unless_it_may_stand_there() {
        let scratch = Scratch::new("lines_quotes");
        let path = scratch.write("t", "1,\"a\nb\"\n2,c\n");
        assert_eq!(lines(&path, 0, 0..u64::MAX, false).len(), 3);
        assert_eq!(lines(&path, 0, 0..u64::MAX, true), [b"1,\"a\nb\"".to_vec(), b"2,c".to_vec()]);
    }
}
