//! A file is one idea. Past 600 lines it is usually two, or it says at its top why it is not.

use crate::claims::{sources, text};
use std::fmt::Write as _;
use std::path::Path;

/// The most lines of a file that gives no reason.
const MOST: usize = 600;

/// A reason stands among so many first lines, where whoever opens the file sees it.
const TOP: usize = 20;

/// Where our Rust lies. `bench` is a workspace of its own, and its environment for Python is not ours.
pub(crate) const FOLDERS: [&str; 4] = ["crates", "xtask", "examples", "bench/src"];

/// A file that is too long and does not say why.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Long {
    pub(crate) file: String,
    pub(crate) lines: usize,
}

/// All files over the most lines without a reason, longest first.
pub(crate) fn find(root: &Path) -> Result<Vec<Long>, String> {
    let mut found = Vec::new();
    for folder in FOLDERS {
        for path in sources(&root.join(folder))? {
            let file = path.strip_prefix(root).unwrap_or(&path).to_string_lossy().into_owned();
            found.extend(judge(&file, &text(&path)?));
        }
    }
    found.sort_by(|a, b| b.lines.cmp(&a.lines).then_with(|| a.file.cmp(&b.file)));
    Ok(found)
}

fn judge(file: &str, source: &str) -> Option<Long> {
    let lines = source.lines().count();
    (lines > MOST && reason(source).is_none()).then(|| Long { file: file.to_owned(), lines })
}

/// Why a file is long, in its own words: `//! Long: …` or `// Long: …`, of three words at least.
fn reason(source: &str) -> Option<&str> {
    source.lines().take(TOP).find_map(|line| {
        let words = line.strip_prefix("//!").or_else(|| line.strip_prefix("//"))?.trim_start().strip_prefix("Long:")?;
        (words.split_whitespace().count() >= 3).then(|| words.trim())
    })
}

/// A sentence about each, and what to do.
pub(crate) fn complain(found: &[Long]) -> Result<(), String> {
    if found.is_empty() {
        return Ok(());
    }
    let list = found.iter().fold(String::new(), |mut list, long| {
        let _ = write!(list, "\n  {:>5}  {}", long.lines, long.file);
        list
    });
    Err(format!(
        "{} files have more than {MOST} lines and do not say why: make two of each, or write `//! Long: …` among its first {TOP} lines{list}",
        found.len()
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(top: &str, lines: usize) -> String {
        top.to_owned() + &"fn f() {}\n".repeat(lines - top.lines().count())
    }

    #[test]
    fn a_file_of_600_lines_needs_no_reason_and_one_of_601_does() {
        assert_eq!(judge("a.rs", &file("//! One idea.\n", 600)), None);
        assert_eq!(judge("a.rs", &file("//! One idea.\n", 601)), Some(Long { file: "a.rs".into(), lines: 601 }));
        assert_eq!(judge("a.rs", &file("//! One idea.\n//!\n//! Long: one table, row by row.\n", 601)), None);
        assert_eq!(judge("a.rs", &file("// Long: one table, row by row.\n", 601)), None);
    }

    #[test]
    fn a_reason_is_a_sentence_and_stands_at_the_top() {
        assert_eq!(reason("//! Long: one proof, case by case.\n"), Some("one proof, case by case."));
        assert_eq!(reason("//! Long:\n"), None, "nothing is no reason");
        assert_eq!(reason("//! Long: it is.\n"), None, "two words are none either");
        assert_eq!(reason("/// Long: of a function, not of the file.\n"), None);
        assert_eq!(reason("let s = \"//! Long: not a comment at all\";\n"), None);
        let late = "\n".repeat(TOP) + "//! Long: one proof, case by case.\n";
        assert_eq!(reason(&late), None, "nobody sees it there");
    }

    #[test]
    fn what_is_found_is_reported_by_name_and_length() {
        assert_eq!(complain(&[]), Ok(()));
        let message = complain(&[Long { file: "crates/a/src/b.rs".into(), lines: 700 }]).unwrap_err();
        assert!(message.contains("1 files") && message.contains("700  crates/a/src/b.rs"), "{message}");
    }

    #[test]
    fn no_file_of_the_front_desk_is_too_long() {
        let found = find(&crate::root()).unwrap();
        assert!(!found.iter().any(|long| long.file.starts_with("xtask/")), "{found:?}");
    }
}
