//! Text where it meets a terminal. Names, reasons and questions were typed by somebody, so nothing in them is obeyed: what would be is spelt out.

use std::io::{self, Write};

/// What a terminal would obey, or what would turn the line around.
fn is_obeyed(c: char) -> bool {
    c.is_control() || matches!(c, '\u{200E}' | '\u{200F}' | '\u{2028}'..='\u{202E}' | '\u{2066}'..='\u{2069}')
}

/// The text on one line, with what a terminal would obey spelt out as `\u{1b}`.
///
/// ```
/// use whit_view::plain::visible;
/// assert_eq!(visible("a\u{1b}[31m\r\nb\u{202E}c"), "a\\u{1b}[31m\\u{d}\\nb\\u{202e}c");
/// assert_eq!(visible("ε = 1"), "ε = 1");
/// ```
pub fn visible(text: &str) -> String {
    let spell = |c: char| match c {
        '\n' => "\\n".to_owned(),
        '\t' => "\\t".to_owned(),
        c => c.escape_unicode().to_string(),
    };
    spelt(text, is_obeyed, spell)
}

fn spelt(text: &str, is_obeyed: impl Fn(char) -> bool, spell: impl Fn(char) -> String) -> String {
    if !text.contains(&is_obeyed) {
        return text.to_owned();
    }
    text.chars().map(|c| if is_obeyed(c) { spell(c) } else { c.to_string() }).collect()
}

/// A writer of lines: ends of lines and tabs are kept, and all else that a terminal would obey is spelt out.
pub struct PlainText<'a> {
    out: &'a mut dyn Write,
    spell: fn(char) -> String,
}

impl<'a> PlainText<'a> {
    /// For people, onto this, which is a terminal or may be shown on one.
    pub fn onto(out: &'a mut dyn Write) -> Self {
        Self { out, spell: |c| c.escape_unicode().to_string() }
    }

    /// The same for JSON, of which programs read the very same.
    pub fn json(out: &'a mut dyn Write) -> Self {
        Self { out, spell: |c| format!("\\u{:04x}", u32::from(c)) } // all of them are below U+10000
    }
}

impl Write for PlainText<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let text = String::from_utf8_lossy(bytes); // whoever formats writes whole letters
        let is_obeyed = |c: char| is_obeyed(c) && !matches!(c, '\n' | '\t');
        self.out.write_all(spelt(&text, is_obeyed, self.spell).as_bytes())?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_stay_lines_and_command_no_terminal() {
        let mut written = Vec::new();
        let mut out = PlainText::onto(&mut written);
        let (typed, other) = ("a\u{1b}]0;owned\u{7}", "b\r\u{9b}2J");
        writeln!(out, "{typed}: ε\t{other}").unwrap();
        out.flush().unwrap();
        assert_eq!(String::from_utf8(written).unwrap(), "a\\u{1b}]0;owned\\u{7}: ε\tb\\u{d}\\u{9b}2J\n");
    }

    #[test]
    fn programs_read_of_json_what_was_meant() {
        let (text, mut written) = ("a\u{1b}\u{7f}\u{9b}\u{202E}\nε", Vec::new());
        serde_json::to_writer_pretty(PlainText::json(&mut written), &[text]).unwrap();
        let written = String::from_utf8(written).unwrap();
        assert_eq!(written, "[\n  \"a\\u001b\\u007f\\u009b\\u202e\\nε\"\n]");
        assert_eq!(serde_json::from_str::<[String; 1]>(&written).unwrap(), [text]);
    }
}
