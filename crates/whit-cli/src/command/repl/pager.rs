//! Answers that are longer than the screen go through a pager, as in other shells.

use std::io::{self, Write};
use std::process::{Command, Stdio};

/// The pager that somebody wants, and what it is called with; nothing where none is wanted (`PAGER=`).
fn wanted(pager: Option<String>) -> Option<Vec<String>> {
    let words = match pager {
        Some(pager) => pager.split_whitespace().map(str::to_owned).collect(),
        // Lines are not folded, so that tables stay tables; colours are shown.
        None => ["less", "-FRSX"].map(str::to_owned).to_vec(),
    };
    Some(words).filter(|words| !words.is_empty())
}

/// Prints a text, through the pager where it has more lines than fit on the screen and there is a pager.
pub(super) fn print(text: &[u8], rows: Option<usize>, out: &mut dyn Write) -> io::Result<()> {
    let lines = text.split(|&byte| byte == b'\n').count() - 1;
    let long = rows.is_some_and(|rows| lines >= rows);
    let pager = wanted(std::env::var("PAGER").ok()).filter(|_| long);
    let started = pager.and_then(|words| {
        let (program, options) = words.split_first()?;
        Command::new(program).args(options).stdin(Stdio::piped()).spawn().ok()
    });
    let Some(mut pager) = started else { return out.write_all(text) };
    out.flush()?;
    if let Some(mut input) = pager.stdin.take() {
        let _ = input.write_all(text); // whoever leaves the pager has seen enough
    }
    pager.wait().map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_empty_word_means_no_pager_and_options_are_kept() {
        assert_eq!(wanted(Some(String::new())), None);
        assert_eq!(wanted(Some("more -d".to_owned())), Some(vec!["more".to_owned(), "-d".to_owned()]));
        assert_eq!(wanted(None).unwrap()[0], "less");
        let mut out = Vec::new();
        print(b"one\ntwo\n", Some(24), &mut out).unwrap();
        assert_eq!(out, b"one\ntwo\n");
    }
}
