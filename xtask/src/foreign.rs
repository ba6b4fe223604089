//! Who calls a library of ours needs no type of the engines below it: no table engine's and no tensor library's name stands in what is public, so that a new
//! version of one of them, or another one in its place, breaks nobody's code.
//!
//! It reads text, as [`crate::public`] does, and knows a foreign type by the `use` that brings it into a file, or by its whole path.

use crate::claims::text;
use crate::public::{Item, declared, libraries};
use crate::rust_text::{code, words};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::Path;

/// The engines that stay inside.
const ENGINES: [&str; 6] = ["datafusion", "arrow", "parquet", "burn", "burn_flex", "sqlparser"];

/// What shows a foreign type nevertheless: crate, name of the item, and why. This list only becomes shorter: one that shows none any more has to leave it.
const MEANT: &[(&str, &str, &str)] = &[
    ("whit-learn", "Inputs", OWN_MODELS),
    ("whit-learn", "Model", OWN_MODELS),
    ("whit-learn", "forward", OWN_MODELS),
    ("whit-learn", "forward_each", OWN_MODELS),
    ("whit-learn", "dropout", OWN_MODELS),
];
const OWN_MODELS: &str =
    "whoever brings a model of their own writes it with burn: `whit_learn::custom` is where, and says why";

/// A public item that shows a foreign type.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Foreign {
    library: String,
    file: String,
    line: usize,
    name: String,
    types: BTreeSet<String>,
}

/// All public items of the libraries that show a type of an engine, by file and line.
pub(crate) fn find(root: &Path) -> Result<Vec<Foreign>, String> {
    let mut found = Vec::new();
    for library in libraries(root)? {
        let mut files = Vec::new();
        for path in &library.files {
            files.push((path.strip_prefix(root).unwrap_or(path).to_string_lossy().into_owned(), text(path)?));
        }
        found.extend(judge(&library.name, &files));
    }
    Ok(found)
}

/// The items of one library, of which these are the files.
fn judge(library: &str, files: &[(String, String)]) -> Vec<Foreign> {
    let mut found = Vec::new();
    for (file, source) in files {
        let (items, imported) = (declared(file, source), imported(&code(source)));
        // A trait's type is seen where the type that has the trait is.
        let named: BTreeSet<&str> =
            items.iter().filter(|item| item.kind != "impl").map(|item| item.name.as_str()).collect();
        for item in items.iter().filter(|item| named.contains(item.name.as_str())) {
            let Some(types) = shows(item, &imported) else { continue };
            let (library, file, name) = (library.to_owned(), file.clone(), item.name.clone());
            found.push(Foreign { library, file, line: item.line, name, types });
        }
    }
    found
}

/// The foreign types that an item shows; nothing where it shows none.
fn shows(item: &Item, imported: &BTreeMap<String, String>) -> Option<BTreeSet<String>> {
    let mut types = BTreeSet::new();
    for word in words(&item.shown) {
        let path = |name: &str| item.shown.contains(&format!("{name}::"));
        if ENGINES.contains(&word) && path(word) {
            types.insert(word.to_owned());
        }
        // A module, in lower case, is meant where a path begins with it; the same word may be a parameter's.
        let module = word.starts_with(char::is_lowercase);
        if let Some(whole) = imported.get(word).filter(|_| word != item.name && (!module || path(word))) {
            types.insert(whole.clone());
        }
    }
    (!types.is_empty()).then_some(types)
}

/// The names that a file takes from the engines, and what they are in full.
fn imported(code: &str) -> BTreeMap<String, String> {
    let mut names = BTreeMap::new();
    for statement in code.split(';') {
        // What stands before the last `use` of a statement is an item before it.
        let Some(at) = statement.rfind("use ") else { continue };
        let begins = statement[..at].chars().next_back().is_none_or(|c| c.is_whitespace() || c == '{' || c == '}');
        let tree = statement[at + 4..].trim();
        if begins && ENGINES.contains(&words(tree).next().unwrap_or_default()) {
            expand("", tree, &mut names);
        }
    }
    names
}

/// The names of one tree of a `use`: `a::{b, c::{self, D as E}}` has `b`, `c` and `E`.
fn expand(before: &str, tree: &str, names: &mut BTreeMap<String, String>) {
    let tree = tree.trim();
    if let Some((path, inner)) = tree.split_once('{') {
        let inner = inner.trim_end().strip_suffix('}').unwrap_or(inner);
        let (mut depth, mut start) = (0_i32, 0);
        for (at, c) in inner.char_indices() {
            depth += i32::from(c == '{') - i32::from(c == '}');
            if c == ',' && depth == 0 {
                expand(&format!("{before}{path}"), &inner[start..at], names);
                start = at + 1;
            }
        }
        expand(&format!("{before}{path}"), &inner[start..], names);
        return;
    }
    let (path, renamed) = tree.split_once(" as ").map_or((tree, None), |(path, name)| (path, Some(name.trim())));
    let whole = format!("{before}{}", path.trim());
    let whole = whole.strip_suffix("::self").unwrap_or(&whole).to_owned();
    let last = whole.rsplit("::").next().unwrap_or_default();
    let name = renamed.unwrap_or(last);
    if !["", "_", "*"].contains(&name) {
        names.insert(name.to_owned(), whole);
    }
}

/// A sentence about each, and what to do.
pub(crate) fn complain(found: &[Foreign]) -> Result<(), String> {
    let is_wrong = |own: &&Foreign| !MEANT.iter().any(|meant| meant.0 == own.library && meant.1 == own.name);
    let mut list = String::new();
    for Foreign { file, line, name, types, .. } in found.iter().filter(is_wrong) {
        let types = types.iter().map(String::as_str).collect::<Vec<_>>().join(", ");
        let _ = write!(list, "\n  {file}:{line}  {name} shows {types}"); // writing to a text never fails
    }
    for (library, name, _) in MEANT {
        if !found.iter().any(|own| own.library == *library && own.name == *name) {
            let _ = write!(list, "\n  {library}: `{name}` shows no foreign type any more: take it off the list");
        }
    }
    if list.is_empty() {
        return Ok(());
    }
    Err(format!(
        "who calls a library would need types of the engine below it: make it `pub(crate)`, or wrap the type, or say in xtask/src/foreign.rs why it is meant{list}"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOURCE: &str = "\
use datafusion::arrow::{array::{self, ArrayRef}, datatypes::SchemaRef as Columns};
use burn::prelude::Tensor;
use std::sync::Arc;

pub struct Source {
    pub columns: Columns,
    hidden: Tensor,
}

pub(crate) fn inner(schema: Columns) {}

impl Source {
    pub fn named(&self, array: &str) -> Arc<str> {
        let x: ArrayRef = y;
    }
    pub async fn whole(
        &self,
        batch: datafusion::arrow::array::RecordBatch,
    ) -> Result<array::Int64Array, Wrong> {
    }
}

pub enum Held { One(ArrayRef), None }

#[cfg(test)]
mod tests {
    pub fn of_a_test(_: Tensor) {}
}
";

    #[test]
    fn a_foreign_type_is_found_in_fields_signatures_and_variants() {
        let found = judge("shop", &[("crates/shop/src/lib.rs".to_owned(), SOURCE.to_owned())]);
        let names: Vec<(&str, Vec<&str>)> =
            found.iter().map(|own| (own.name.as_str(), own.types.iter().map(String::as_str).collect())).collect();
        assert_eq!(
            names,
            [
                ("Source", vec!["datafusion::arrow::datatypes::SchemaRef"]),
                ("whole", vec!["arrow", "datafusion", "datafusion::arrow::array"]),
                ("Held", vec!["datafusion::arrow::array::ArrayRef"]),
            ]
        );
        assert!(complain(&found).is_err_and(|words| words.contains("crates/shop/src/lib.rs:5  Source shows")));
    }

    #[test]
    fn who_shows_nothing_of_an_engine_is_let_pass() {
        let plain = "use datafusion::arrow::array::RecordBatch;\npub fn count(rows: &[Row]) -> u64 {\n    0\n}\n\nimpl Iterator for Inner {\n    type Item = RecordBatch;\n}\n";
        assert!(judge("shop", &[("crates/shop/src/lib.rs".to_owned(), plain.to_owned())]).is_empty());
    }
}
