//! Rust as text: what of a file is code, what is an example in its documentation, and which words stand there.

use std::collections::BTreeSet;

/// The code of a file, line by line where it was: comments, strings and characters are left out.
pub(crate) fn code(source: &str) -> String {
    let bytes: Vec<char> = source.chars().collect();
    let mut out = String::with_capacity(source.len());
    let mut at = 0;
    while at < bytes.len() {
        let (here, next) = (bytes[at], bytes.get(at + 1).copied());
        let end = match here {
            '/' if next == Some('/') => bytes[at..].iter().position(|&c| c == '\n').map_or(bytes.len(), |n| at + n),
            '/' if next == Some('*') => comment(&bytes, at),
            '"' => string(&bytes, at),
            'r' if !after_word(&bytes, at) => raw(&bytes, at).unwrap_or(at),
            '\'' => character(&bytes, at).unwrap_or(at),
            _ => at,
        };
        if end == at {
            out.push(here);
            at += 1;
        } else {
            out.push(' ');
            out.extend(bytes[at..end].iter().filter(|&&c| c == '\n'));
            at = end;
        }
    }
    out
}

fn after_word(text: &[char], at: usize) -> bool {
    // A `b` before an `r` begins a string of bytes; any other letter is of a name that the `r` goes on with.
    let before = |n: usize| at.checked_sub(n).map(|at| text[at]);
    let part = |c: Option<char>| c.is_some_and(|c| c.is_alphanumeric() || c == '_');
    if before(1) == Some('b') { part(before(2)) } else { part(before(1)) }
}

/// The end of a comment of the kind that nests.
fn comment(text: &[char], start: usize) -> usize {
    let (mut depth, mut at) = (0_usize, start);
    while at + 1 < text.len() {
        match (text[at], text[at + 1]) {
            ('/', '*') => (depth, at) = (depth + 1, at + 2),
            ('*', '/') => (depth, at) = (depth - 1, at + 2),
            _ => at += 1,
        }
        if depth == 0 {
            return at;
        }
    }
    text.len()
}

fn string(text: &[char], start: usize) -> usize {
    let mut at = start + 1;
    while at < text.len() {
        match text[at] {
            '\\' => at += 2,
            '"' => return at + 1,
            _ => at += 1,
        }
    }
    text.len()
}

/// The end of a raw string; nothing where none begins.
fn raw(text: &[char], start: usize) -> Option<usize> {
    let hashes = text[start + 1..].iter().take_while(|&&c| c == '#').count();
    let open = start + 1 + hashes;
    if text.get(open) != Some(&'"') {
        return None;
    }
    let close = |at: usize| text[at] == '"' && text[at + 1..].iter().take_while(|&&c| c == '#').count() >= hashes;
    Some((open + 1..text.len()).find(|&at| close(at)).map_or(text.len(), |at| at + 1 + hashes))
}

/// The end of a character; nothing where the quote begins a lifetime.
fn character(text: &[char], start: usize) -> Option<usize> {
    match (text.get(start + 1)?, text.get(start + 2)?) {
        ('\\', _) => text[start + 3..].iter().position(|&c| c == '\'').map(|n| start + 4 + n),
        (_, '\'') => Some(start + 3),
        _ => None,
    }
}

/// The same code without what is there for tests only. Files that are tests as a whole go into `tests`, by their paths without `.rs`.
pub(crate) fn without_tests(path: &str, plain: &str, original: &str, tests: &mut BTreeSet<String>) -> String {
    const MARKS: [&str; 2] = ["#[cfg(test)]", "#[cfg(all(test,"];
    let folder = match path.rsplit_once('/') {
        Some((folder, "mod.rs")) => format!("{folder}/"),
        _ if matches!(path, "lib.rs" | "main.rs") => String::new(),
        _ => format!("{}/", path.trim_end_matches(".rs")),
    };
    let mut rest = plain.to_owned();
    while let Some((start, mark)) = MARKS.iter().filter_map(|mark| Some((rest.find(mark)?, mark.len()))).min() {
        let after = &rest[start + mark..];
        let length = after.find([';', '{']).map_or(after.len(), |stop| {
            let item = &after[..stop];
            if after[stop..].starts_with(';') {
                let name = item.split("mod ").nth(1).map(str::trim).unwrap_or_default();
                // A path stands in quotes, so it is read where these were not made spaces.
                let line = rest[..start].matches('\n').count();
                let mut attributes = original.lines().skip(line).take(item.matches('\n').count() + 1);
                let other = attributes.find_map(|line| line.split("path = \"").nth(1)?.split(".rs\"").next());
                if !name.is_empty() {
                    tests.insert(format!("{folder}{name}"));
                }
                if let Some(other) = other {
                    let here = path.rsplit_once('/').map_or(String::new(), |(here, _)| format!("{here}/"));
                    tests.insert(format!("{here}{other}"));
                }
                return stop + 1;
            }
            let mut depth = 0;
            let end = after[stop..].char_indices().find(|(_, c)| {
                depth += match c {
                    '{' => 1,
                    '}' => -1,
                    _ => 0,
                };
                depth == 0
            });
            // What ends in a list, as `use a::{b, c};` does, ends with what follows it.
            end.map_or(after.len(), |(end, _)| stop + end + 1)
        });
        let end = start + mark + length;
        let blank: String = rest[start..end].chars().map(|c| if c == '\n' { '\n' } else { ' ' }).collect();
        rest.replace_range(start..end, &blank);
    }
    rest
}

/// The names and key words of a text, in order.
pub(crate) fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !(c.is_alphanumeric() || c == '_'))
        .filter(|word| word.starts_with(|c: char| c.is_alphabetic() || c == '_'))
}

/// The words of a text that are used in it: all but those that it declares.
pub(crate) fn used(text: &str) -> impl Iterator<Item = &str> {
    let mut declared = false;
    words(text).filter(move |word| {
        let use_of_it = !declared;
        declared = ["fn", "struct", "enum", "trait", "type", "union", "mod", "static"].contains(word);
        use_of_it
    })
}

/// The code of the examples in a file's documentation, which use it from outside.
pub(crate) fn examples(source: &str) -> String {
    let documented = source.lines().filter_map(|line| {
        let line = line.trim_start();
        line.strip_prefix("///").or_else(|| line.strip_prefix("//!"))
    });
    fenced(documented, |language| !["text", "sh", "toml", "json"].contains(&language))
}

/// The code of a page: its blocks of Rust, and paths and types that stand between back-ticks.
pub(crate) fn of_page(page: &str) -> String {
    let mut out = fenced(page.lines(), |language| language.starts_with("rust"));
    let prose = page.split("```").step_by(2);
    for span in prose.flat_map(|part| part.split('`').skip(1).step_by(2)) {
        let path = span.contains("::");
        let name = span.starts_with(|c: char| c.is_ascii_uppercase()) && words(span).count() == 1;
        if path || name {
            out.push_str(span);
            out.push('\n');
        }
    }
    out
}

fn fenced<'a>(lines: impl Iterator<Item = &'a str>, wanted: impl Fn(&str) -> bool) -> String {
    let (mut out, mut open) = (String::new(), None);
    for line in lines {
        if let Some(language) = line.trim_start().strip_prefix("```") {
            open = if open.is_some() { None } else { Some(wanted(language)) };
        } else if open == Some(true) {
            out.push_str(line);
            out.push('\n');
        }
    }
    code(&out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_strings_and_characters_are_no_code() {
        let source = "let a = \"b \\\" c\"; // d\nlet e = r#\"f \" g\"#; /* h /* i */ j */ let k = '\\''; let l: &'m str = 'n';\n";
        assert_eq!(
            words(&code(source)).collect::<Vec<_>>(),
            ["let", "a", "let", "e", "let", "k", "let", "l", "m", "str"]
        );
        assert_eq!(code(source).lines().count(), source.lines().count());
        assert_eq!(words(&code("let s = \"one\n two\"; for x in y { var\"z\"; }")).last(), Some("var"));
    }

    #[test]
    fn what_is_declared_is_not_used_by_that() {
        assert_eq!(used("fn open(x: Door) { close() }").collect::<Vec<_>>(), ["fn", "x", "Door", "close"]);
    }

    #[test]
    fn examples_are_the_code_of_documentation() {
        let source = "/// Says `hello`.\n///\n/// ```\n/// greet(); // aloud\n/// ```\n///\n/// ```text\n/// shout\n/// ```\nfn greet() {}\n";
        assert_eq!(words(&examples(source)).collect::<Vec<_>>(), ["greet"]);
    }

    #[test]
    fn of_a_page_rust_and_names_of_types_count() {
        let page = "Take `whit_learn::label` or `Prior`, not `release` nor `SELECT x`.\n\n```rust\nbook();\n```\n\n```sh\nrun\n```\n";
        assert_eq!(words(&of_page(page)).collect::<Vec<_>>(), ["book", "whit_learn", "label", "Prior"]);
    }
}
