//! Letters that are not written as UTF-8, made so.
//!
//! Written by hand and not with `encoding_rs`, whose tables of all encodings of the world would come along for 32 letters and a pair of bytes. What stands for no letter
//! becomes a byte that is never UTF-8, so that its cell is NULL like any other that is not text, and nothing beside it changes.

use std::io::{self, Read};
use whit_core::declare::Encoding;

/// A byte that no text in UTF-8 has.
const NONE: u8 = 0xff;

/// The letters of Windows-1252 from 0x80 to 0x9f; five places have none.
const WINDOWS: [Option<char>; 32] = [
    Some('€'),
    None,
    Some('‚'),
    Some('ƒ'),
    Some('„'),
    Some('…'),
    Some('†'),
    Some('‡'),
    Some('ˆ'),
    Some('‰'),
    Some('Š'),
    Some('‹'),
    Some('Œ'),
    None,
    Some('Ž'),
    None,
    None,
    Some('‘'),
    Some('’'),
    Some('“'),
    Some('”'),
    Some('•'),
    Some('–'),
    Some('—'),
    Some('˜'),
    Some('™'),
    Some('š'),
    Some('›'),
    Some('œ'),
    None,
    Some('ž'),
    Some('Ÿ'),
];

fn push(text: &mut Vec<u8>, letter: Option<char>) {
    match letter {
        Some(letter) => text.extend_from_slice(letter.encode_utf8(&mut [0; 4]).as_bytes()),
        None => text.push(NONE),
    }
}

/// A line of bytes that are letters each, as UTF-8 in `spare` where it is not the same.
pub(super) fn in_utf8<'a>(line: &'a [u8], encoding: Encoding, spare: &'a mut Vec<u8>) -> &'a [u8] {
    let windows = match encoding {
        Encoding::Latin1 => false,
        Encoding::Windows1252 => true,
        Encoding::Utf8 | Encoding::Utf16 => return line,
    };
    if line.is_ascii() {
        return line;
    }
    spare.clear();
    for &byte in line {
        match byte {
            0x80..=0x9f if windows => push(spare, WINDOWS[usize::from(byte - 0x80)]),
            _ => push(spare, Some(char::from(byte))),
        }
    }
    spare
}

/// UTF-16 as UTF-8. The mark at the beginning says which byte comes first, and is left out.
pub(super) struct FromUtf16<R> {
    from: R,
    big: bool,
    begun: bool,
    /// Bytes that were read and not decoded: half of a unit, and what waits for its second half.
    held: Vec<u8>,
    /// What was decoded and not handed out, from a place on.
    ready: Vec<u8>,
    at: usize,
}

impl<R: Read> FromUtf16<R> {
    pub(super) fn new(from: R) -> Self {
        Self { from, big: false, begun: false, held: Vec::new(), ready: Vec::new(), at: 0 }
    }

    fn unit(&self, pair: [u8; 2]) -> u16 {
        if self.big { u16::from_be_bytes(pair) } else { u16::from_le_bytes(pair) }
    }

    /// Decodes what is held; with `last` also what nothing follows.
    fn decode(&mut self, last: bool) {
        if !self.begun && (last || self.held.len() >= 2) {
            self.begun = true;
            let mark = self.held.get(..2).map(<[u8]>::to_vec);
            self.big = mark.as_deref() == Some(&[0xfe, 0xff]);
            if matches!(mark.as_deref(), Some([0xfe, 0xff] | [0xff, 0xfe])) {
                self.held.drain(..2);
            }
        }
        let units: Vec<u16> = self.held.as_chunks::<2>().0.iter().map(|pair| self.unit(*pair)).collect();
        let mut taken = 0;
        while let Some(&unit) = units.get(taken) {
            let second = units.get(taken + 1).copied();
            let high = (0xd800..0xdc00).contains(&unit);
            if high && second.is_none() && !last {
                break;
            }
            let pair = second.filter(|second| high && (0xdc00..0xe000).contains(second));
            let letter = char::decode_utf16([Some(unit), pair].into_iter().flatten()).next();
            push(&mut self.ready, letter.and_then(Result::ok));
            taken += 1 + usize::from(pair.is_some());
        }
        self.held.drain(..2 * taken);
        if last && !self.held.is_empty() {
            self.held.clear();
            self.ready.push(NONE);
        }
    }
}

impl<R: Read> Read for FromUtf16<R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        while self.at == self.ready.len() {
            self.ready.clear();
            self.at = 0;
            let before = self.held.len();
            self.held.resize(before + (1 << 16), 0);
            let more = self.from.read(&mut self.held[before..]);
            self.held.truncate(before + *more.as_ref().unwrap_or(&0));
            let last = more? == 0;
            self.decode(last);
            if last && self.ready.is_empty() {
                return Ok(0);
            }
        }
        let many = into.len().min(self.ready.len() - self.at);
        into[..many].copy_from_slice(&self.ready[self.at..self.at + many]);
        self.at += many;
        Ok(many)
    }
}

/// What the beginning of a file shows of how its letters are written. For the owner: it may follow from a row.
pub(in crate::source) fn shown_by(text: &[u8]) -> Encoding {
    if text.starts_with(&[0xff, 0xfe]) || text.starts_with(&[0xfe, 0xff]) {
        return Encoding::Utf16;
    }
    match std::str::from_utf8(text) {
        Ok(_) => Encoding::Utf8,
        // The last letter may be cut where reading stopped.
        Err(error) if error.error_len().is_none() => Encoding::Utf8,
        Err(_) if text.iter().any(|byte| (0x80..0xa0).contains(byte)) => Encoding::Windows1252,
        Err(_) => Encoding::Latin1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Hands out a few bytes at a time.
    struct Slowly<'a>(&'a [u8], usize);

    impl Read for Slowly<'_> {
        fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
            let many = self.1.min(self.0.len()).min(into.len());
            into[..many].copy_from_slice(&self.0[..many]);
            self.0 = &self.0[many..];
            Ok(many)
        }
    }

    fn utf16(text: &str, mark: bool, big: bool) -> Vec<u8> {
        let units = mark.then_some(0xfeff).into_iter().chain(text.encode_utf16());
        units.flat_map(|unit| if big { unit.to_be_bytes() } else { unit.to_le_bytes() }).collect()
    }

    #[test]
    fn utf_16_is_read_in_either_order_however_it_is_cut() {
        let text = "id,name\n1,Žofie 🎈\n2,\u{ffff}é\n";
        for (mark, big) in [(true, true), (true, false), (false, false)] {
            for step in [1, 2, 3, 7, 1000] {
                let bytes = utf16(text, mark, big);
                let mut found = Vec::new();
                FromUtf16::new(Slowly(&bytes, step)).read_to_end(&mut found).unwrap();
                assert_eq!(String::from_utf8(found).unwrap(), text, "{step} at a time");
            }
        }
    }

    #[test]
    fn half_of_a_letter_takes_nothing_beside_it_along() {
        // A first half before a line break, a second half alone, and a byte too many at the end.
        let mut bytes = vec![0xff, 0xfe, 0x41, 0x00, 0x3d, 0xd8, 0x0a, 0x00, 0x88, 0xde, 0x42, 0x00, 0x3d, 0xd8];
        bytes.push(0x43);
        for step in [1, 2, 3, 1000] {
            let mut found = Vec::new();
            FromUtf16::new(Slowly(&bytes, step)).read_to_end(&mut found).unwrap();
            assert_eq!(found, [b'A', NONE, b'\n', NONE, b'B', NONE, NONE]);
        }
    }

    #[test]
    fn bytes_that_are_letters_are_read_as_such() {
        let mut spare = Vec::new();
        let mut read =
            |line: &[u8], encoding| String::from_utf8_lossy(in_utf8(line, encoding, &mut spare)).into_owned();
        assert_eq!(read(b"caf\xe9", Encoding::Latin1), "café");
        assert_eq!(read(b"\x80 5", Encoding::Windows1252), "€ 5");
        assert_eq!(read(b"\x9f\xff", Encoding::Windows1252), "Ÿÿ");
        assert_eq!(read(b"\x80", Encoding::Latin1), "\u{80}");
        assert_eq!(read(b"a\x81", Encoding::Windows1252), "a\u{fffd}", "no letter is no text");
        assert_eq!(read("ž".as_bytes(), Encoding::Utf8), "ž");
    }

    #[test]
    fn the_beginning_of_a_file_shows_its_letters() {
        for (text, expected) in [
            (&b"id\n1\n"[..], Encoding::Utf8),
            (b"\xef\xbb\xbfid\n", Encoding::Utf8),
            ("né".as_bytes(), Encoding::Utf8),
            (&"né".as_bytes()[..2], Encoding::Utf8),
            (b"\xff\xfei\0d\0", Encoding::Utf16),
            (b"\xfe\xff\0i\0d", Encoding::Utf16),
            (b"n\xe9,x\n", Encoding::Latin1),
            (b"\x80 5\n", Encoding::Windows1252),
        ] {
            assert_eq!(shown_by(text), expected, "{text:?}");
        }
    }
}
