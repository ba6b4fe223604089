//! What the library says is for whoever calls it: it names settings and methods, and no option of the command.

use std::path::{Path, PathBuf};

fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|kind| kind == "rs") {
            found.push(path);
        }
    }
}

/// Whether a line of code has an option of a command in a text: two dashes and a letter, at its start or after a space, quote or bracket.
fn names_an_option(line: &str) -> bool {
    let code = line.trim_start();
    if code.starts_with("//") {
        return false;
    }
    let Some((_, text)) = code.split_once('"').or_else(|| Some(("", code)).filter(|_| !code.contains(['(', '{'])))
    else {
        return false;
    };
    let text = format!("\"{text}");
    let option = |(at, _): (usize, &str)| {
        let before = text[..at].chars().next_back();
        let after = text[at + 2..].chars().next();
        before.is_some_and(|before| " `\"(".contains(before))
            && after.is_some_and(|after| after.is_ascii_lowercase() || after == '{')
    };
    text.match_indices("--").any(option)
}

#[test]
fn an_option_is_found_in_a_text_and_nowhere_else() {
    assert!(names_an_option(r#"    "try --epsilon 0.5","#));
    assert!(names_an_option(r#"    format!("--groups {n}")"#));
    assert!(names_an_option(r#"    "name it with `--ledger`""#));
    assert!(names_an_option(r#"    format!("with --{option} 0 nothing")"#));
    assert!(!names_an_option("    /// See `--owner`."));
    assert!(!names_an_option(r#"    "a – b, a -- b, 1e--3""#));
}

#[test]
fn no_text_of_the_library_names_an_option_of_the_command() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let mut files = Vec::new();
    for name in ["whit", "whit-query", "whit-learn", "whit-account", "whit-core", "whit-noise"] {
        sources(&crates.join(name).join("src"), &mut files);
    }
    assert!(files.len() > 100, "the sources are here");
    let mut wrong = Vec::new();
    for file in files.iter().filter(|file| !file.to_string_lossy().contains("tests")) {
        let text = std::fs::read_to_string(file).unwrap();
        for (number, line) in text.lines().enumerate().filter(|(_, line)| names_an_option(line)) {
            wrong.push(format!("{}:{}: {}", file.display(), number + 1, line.trim()));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// How a text speaks to somebody who typed a command.
const TYPED: &[&str] = &[
    "`whit ",
    "\"whit train",
    "\"whit query",
    "\"whit ask",
    "same command",
    "this command",
    "the command",
    "another command",
    "type `",
];

/// What is booked, and what is said to a caller, names methods and settings. A draft is a file for people, and speaks of what they type.
#[test]
fn no_text_of_the_library_speaks_of_a_command() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let mut files = Vec::new();
    for name in ["whit", "whit-query", "whit-learn", "whit-account", "whit-core", "whit-noise"] {
        sources(&crates.join(name).join("src"), &mut files);
    }
    let is_for_people = |file: &Path| file.ends_with("draft.rs") || file.to_string_lossy().contains("tests");
    for file in files.iter().filter(|file| !is_for_people(file)) {
        let text = std::fs::read_to_string(file).unwrap();
        let code = text.split("#[cfg(test)]").next().unwrap().lines();
        let mut code = code.filter(|line| !line.trim_start().starts_with("//"));
        let wrong = code.find(|line| TYPED.iter().any(|word| line.contains(word)));
        assert_eq!(wrong, None, "{}", file.display());
    }
}
