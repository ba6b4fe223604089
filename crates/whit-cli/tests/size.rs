//! A subcommand reads options, calls the library and prints: so its file is short. What decides or computes belongs to `whit`, what draws to `whit-view`.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on should say where")]

use std::path::{Path, PathBuf};

/// The most lines of a file under `src/command`, with its short tests.
const MOST: usize = 150;

fn files(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files(&path, found);
        } else if path.extension().is_some_and(|kind| kind == "rs") && path.file_name().unwrap() != "tests.rs" {
            found.push(path);
        }
    }
}

#[test]
fn no_file_of_a_subcommand_has_more_than_150_lines() {
    let mut found = Vec::new();
    files(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src/command"), &mut found);
    assert!(found.len() > 20, "the subcommands are somewhere else: {found:?}");
    let long: Vec<String> = found
        .iter()
        .map(|path| (path, std::fs::read_to_string(path).unwrap().lines().count()))
        .filter(|(_, lines)| *lines > MOST)
        .map(|(path, lines)| format!("{} has {lines}", path.display()))
        .collect();
    assert!(long.is_empty(), "more than {MOST} lines:\n{}", long.join("\n"));
}
