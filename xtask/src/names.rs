//! One type name, one type: who reads `Place` knows which one is meant without looking where it comes from.
//!
//! Looked at are the libraries' own sources, without tests and without `whit-cli`, whose subcommands are named after what they show. What a trait's implementation calls
//! `type Noisy = …` defines no type, and neither does a `use`.

use crate::claims::{sources, text};
use crate::rust_text::{code, without_tests};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::Path;

/// Names that several types are meant to have, and why.
const MEANT: &[(&str, &str)] =
    &[("Error", "each module that has an error of its own calls it so, and a path before it says whose it is")];

/// Names that still stand for several types, and how many. This list only becomes shorter: one that stands for fewer now has to say so, and one that stands for one
/// type has to leave.
const KNOWN: &[(&str, usize)] = &[
    ("Back", 2),
    ("Bins", 2),
    ("Calibrated", 2),
    ("Caps", 2),
    ("Collector", 2),
    ("Column", 3),
    ("Count", 2),
    ("Cut", 2),
    ("Design", 2),
    ("Draft", 2),
    ("Drawn", 2),
    ("Estimate", 2),
    ("Fit", 2),
    ("Fits", 2),
    ("Found", 4),
    ("Gathered", 2),
    ("Inputs", 2),
    ("Job", 2),
    ("Kept", 2),
    ("Keys", 2),
    ("Layout", 2),
    ("Mean", 2),
    ("Measure", 2),
    ("Moments", 2),
    ("Nearest", 2),
    ("Numbers", 2),
    ("Opened", 3),
    ("Options", 2),
    ("Outcome", 3),
    ("Owners", 2),
    ("Padding", 2),
    ("Part", 2),
    ("Plan", 2),
    ("Pool", 2),
    ("Progress", 2),
    ("Promise", 2),
    ("Range", 2),
    ("Raw", 2),
    ("Reading", 3),
    ("Role", 2),
    ("Rows", 6),
    ("Sampled", 2),
    ("Seen", 2),
    ("Shape", 3),
    ("Share", 5),
    ("Spread", 3),
    ("Step", 4),
    ("Stepped", 2),
    ("Sum", 2),
    ("Table", 2),
    ("Target", 2),
    ("Tuning", 2),
    ("Which", 2),
    ("Written", 2),
];

/// Where the types of each name are defined.
type Places = BTreeMap<String, Vec<String>>;

/// Fails on a name that stands for more types than are known, and on what is listed as known and is not so any more.
pub(crate) fn check(root: &Path) -> Result<(), String> {
    complain(&faults(&find(root)?, MEANT, KNOWN))
}

/// Where each type of the libraries is defined, by name.
fn find(root: &Path) -> Result<Places, String> {
    let folder = root.join("crates");
    let fail = |error: std::io::Error| format!("`{}` could not be read: {error}", folder.display());
    let mut places = Places::new();
    for entry in std::fs::read_dir(&folder).map_err(fail)? {
        let own = entry.map_err(fail)?.path();
        if own.file_name().is_some_and(|name| name == "whit-cli") || !own.join("src").join("lib.rs").is_file() {
            continue;
        }
        let mut files = Vec::new();
        for path in sources(&own.join("src"))? {
            let file = path.strip_prefix(own.join("src")).unwrap_or(&path).to_string_lossy().replace('\\', "/");
            files.push((file, text(&path)?));
        }
        let name = own.file_name().unwrap_or_default().to_string_lossy().into_owned();
        define(&name, &files, &mut places);
    }
    for defined in places.values_mut() {
        defined.sort();
    }
    Ok(places)
}

/// Adds the types that the files of one library define.
fn define(library: &str, files: &[(String, String)], places: &mut Places) {
    let mut tests = BTreeSet::new();
    let rest: Vec<(&str, String)> = files
        .iter()
        .map(|(path, source)| (path.as_str(), without_tests(path, &code(source), source, &mut tests)))
        .collect();
    let is_test =
        |path: &str| tests.iter().any(|test| path == format!("{test}.rs") || path.starts_with(&format!("{test}/")));
    for (path, plain) in rest.iter().filter(|(path, _)| !is_test(path)) {
        for (number, line) in plain.lines().enumerate() {
            if let Some(name) = defined(line) {
                places.entry(name.to_owned()).or_default().push(format!("{library}/src/{path}:{}", number + 1));
            }
        }
    }
}

/// The name of the type that a line defines.
fn defined(line: &str) -> Option<&str> {
    let inside = line.starts_with(char::is_whitespace);
    let mut rest = line.trim_start();
    if let Some(public) = rest.strip_prefix("pub") {
        rest = match public.strip_prefix('(') {
            Some(within) => within.split_once(')')?.1,
            None => public,
        };
        rest = rest.strip_prefix(' ')?;
    }
    rest = rest.strip_prefix("unsafe ").unwrap_or(rest);
    let (kind, name) = rest.split_once(' ')?;
    let is_type = match kind {
        "struct" | "enum" | "trait" | "union" => true,
        // Inside of an `impl` or a `trait` it is a name for somebody else's type.
        "type" => !inside,
        _ => false,
    };
    let end = name.find(|c: char| !(c.is_alphanumeric() || c == '_')).unwrap_or(name.len());
    (is_type && end > 0).then(|| &name[..end])
}

fn faults(places: &Places, meant: &[(&str, &str)], known: &[(&str, usize)]) -> Vec<String> {
    let mut faults = Vec::new();
    let allowed = |name: &str| known.iter().find(|own| own.0 == name).map_or(1, |own| own.1);
    for (name, defined) in places.iter().filter(|(name, _)| !meant.iter().any(|own| own.0 == *name)) {
        if defined.len() > allowed(name) {
            faults.push(format!("`{name}` is {} types: {}", defined.len(), defined.join(", ")));
        }
    }
    for (name, count) in known {
        let now = places.get(*name).map_or(0, Vec::len);
        if now < *count {
            let instead = if now > 1 { format!("say {now}") } else { "take it off".to_owned() };
            faults.push(format!(
                "`{name}` is {now} types and no longer {count}: {instead} in the list of xtask/src/names.rs"
            ));
        }
    }
    for (name, _) in meant.iter().filter(|(name, _)| !places.contains_key(*name)) {
        faults.push(format!("no type is called `{name}`: take it off the list of xtask/src/names.rs"));
    }
    faults
}

/// A sentence about each, and what to do.
fn complain(faults: &[String]) -> Result<(), String> {
    if faults.is_empty() {
        return Ok(());
    }
    let list = faults.iter().fold(String::new(), |mut list, fault| {
        let _ = write!(list, "\n  {fault}");
        list
    });
    Err(format!("one type name is one type: give each a name that says what it is{list}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn made_up(files: &[(&str, &str)]) -> Places {
        let files: Vec<_> = files.iter().map(|(path, text)| ((*path).to_owned(), (*text).to_owned())).collect();
        let mut places = Places::new();
        define("shop", &files, &mut places);
        places
    }

    #[test]
    fn what_defines_a_type_is_found_by_name() {
        let names = [
            "pub struct Basket<'a> {",
            "enum Answer {",
            "    pub(super) struct Inner(u8);",
            "pub(crate) trait Sell: Sized {",
            "type Short = Long;",
            "pub unsafe trait Raw {}",
        ];
        assert_eq!(
            names.map(|line| defined(line).unwrap_or_default()),
            ["Basket", "Answer", "Inner", "Sell", "Short", "Raw"]
        );
        for line in
            ["    type Noisy = i64;", "pub use a::Basket;", "impl Basket {", "let structure = 3;", "fn f() {}", ""]
        {
            assert_eq!(defined(line), None, "{line}");
        }
    }

    #[test]
    fn a_name_of_two_types_is_named_with_both_and_tests_have_their_own() {
        let files = [
            ("lib.rs", "mod a;\nmod b;\n#[cfg(test)]\nmod trial;"),
            ("a.rs", "pub struct Place;\n// struct Words;\n#[cfg(test)]\nmod tests {\n    struct Words;\n}\n"),
            ("b.rs", "struct Words;\nconst S: &str = \"\nstruct Words;\n\";\npub(super) enum Place {}\n"),
            ("trial.rs", "struct Words;"),
        ];
        let places = made_up(&files);
        let found = faults(&places, &[], &[]);
        assert_eq!(found, ["`Place` is 2 types: shop/src/a.rs:1, shop/src/b.rs:5"]);
        assert!(faults(&places, &[("Place", "by design of this test")], &[]).is_empty());
        assert!(complain(&found).unwrap_err().contains("one type name is one type"));
    }

    #[test]
    fn what_is_known_passes_until_it_is_fewer() {
        let two = made_up(&[("a.rs", "struct Place;"), ("b.rs", "struct Place;")]);
        assert!(faults(&two, &[], &[("Place", 2)]).is_empty());
        assert!(faults(&two, &[], &[("Place", 3)])[0].contains("is 2 types and no longer 3: say 2"));
        let one = made_up(&[("a.rs", "struct Place;")]);
        assert!(faults(&one, &[], &[("Place", 2)])[0].contains("take it off"));
        assert!(faults(&one, &[("Gone", "by design of this test")], &[])[0].contains("no type is called `Gone`"));
    }

    /// The house itself. `cargo xtask check` does the same.
    #[test]
    fn no_type_name_of_ours_is_new_to_a_second_type() {
        assert_eq!(check(&crate::root()), Ok(()));
        assert!(MEANT.iter().all(|(_, why)| why.split_whitespace().count() >= 3), "each has its reason");
    }
}
