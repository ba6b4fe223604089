//! Data walks one way: of the modules at the top of a crate, no two use one another, nor more of them in a circle; and so of the modules in each folder.
//!
//! A module uses another where one of its files names it, in a `use` or in a path: `crate::plan`, `super::super::plan`, or a name that the crate's root
//! takes from there. Tests are left out: they stand above everything. What calls a method on somebody else's type names nobody, and is not seen.

use crate::rust_text::{code, without_tests};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fmt::Write as _;
use std::path::Path;

/// Fails on the shortest circle of each folder.
pub(crate) fn check(root: &Path) -> Result<(), String> {
    let crates = root.join("crates");
    let mut names: Vec<String> = std::fs::read_dir(&crates)
        .map_err(|error| format!("{} cannot be read: {error}", crates.display()))?
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
        .filter(|name| crates.join(name).join("src").is_dir())
        .collect();
    names.sort();
    let mut wrong = String::new();
    for name in &names {
        let mut files = Vec::new();
        read(&crates.join(name).join("src"), "", &mut files)?;
        for folder in folders(&files) {
            let place = [std::slice::from_ref(name), folder.as_slice()].concat().join("/");
            if let Some(fault) = circle(&uses(&files, &folder)) {
                // Writing to a text never fails.
                let _ = write!(wrong, "\n{place}: {fault}");
            }
        }
    }
    if wrong.is_empty() { Ok(()) } else { Err(format!("modules use one another in a circle:{wrong}")) }
}

/// All Rust files below a folder, by their paths from `src` on.
fn read(folder: &Path, prefix: &str, files: &mut Vec<(String, String)>) -> Result<(), String> {
    let wrong = |error: std::io::Error| format!("{} cannot be read: {error}", folder.display());
    let mut entries = std::fs::read_dir(folder).map_err(wrong)?.collect::<Result<Vec<_>, _>>().map_err(wrong)?;
    entries.sort_by_key(std::fs::DirEntry::file_name);
    for entry in entries {
        let Ok(name) = entry.file_name().into_string() else { continue };
        let path = entry.path();
        if path.is_dir() {
            read(&path, &format!("{prefix}{name}/"), files)?;
        } else if path.extension().is_some_and(|kind| kind == "rs") {
            let text = std::fs::read_to_string(&path).map_err(wrong)?;
            files.push((format!("{prefix}{name}"), text));
        }
    }
    Ok(())
}

/// Who uses whom, and in which lines.
type Uses = BTreeMap<(String, String), Vec<String>>;

/// The module that a file is, from the root on: `plan/track/mod.rs` is `plan::track`, and the root itself is nothing. No programs next to it.
fn module(path: &str) -> Option<Vec<&str>> {
    let path = path.strip_suffix(".rs")?;
    let path = path.strip_suffix("/mod").unwrap_or(path);
    match path.split('/').collect::<Vec<_>>() {
        parts if matches!(parts.as_slice(), ["lib" | "main"]) => Some(Vec::new()),
        parts if parts.first() == Some(&"bin") => None,
        parts => Some(parts),
    }
}

/// All modules of a crate that have modules of their own, the root first.
fn folders(files: &[(String, String)]) -> BTreeSet<Vec<String>> {
    let modules = files.iter().filter_map(|(path, _)| module(path)).filter(|module| !module.is_empty());
    modules.map(|module| module[..module.len() - 1].iter().map(|&part| part.to_owned()).collect()).collect()
}

/// The uses among the modules of one folder of a crate, of which these are the files. What the folder's own file uses is its own matter: it stands above them.
fn uses(files: &[(String, String)], folder: &[String]) -> Uses {
    let plain: Vec<(&str, String)> = files.iter().map(|(path, text)| (path.as_str(), code(text))).collect();
    let mut tests = BTreeSet::new();
    let mut rest = Vec::new();
    for (path, text) in &plain {
        let original = files.iter().find(|(own, _)| own == path).map_or("", |(_, text)| text.as_str());
        rest.push((*path, without_tests(path, text, original, &mut tests)));
    }
    let is_test =
        |path: &str| tests.iter().any(|test| path == format!("{test}.rs") || path.starts_with(&format!("{test}/")));
    let here = |module: &[&str]| module.len() > folder.len() && module.iter().zip(folder).all(|(a, b)| a == b);
    let own_of = |path: &str| module(path).filter(|module| here(module)).map(|module| module[folder.len()].to_owned());
    let modules: BTreeSet<String> =
        rest.iter().filter(|(path, _)| !is_test(path)).filter_map(|(path, _)| own_of(path)).collect();
    let mut folder_names = BTreeMap::new();
    let is_folder = |path: &str| module(path).is_some_and(|module| module == folder);
    for (_, text) in rest.iter().filter(|(path, _)| is_folder(path)) {
        for (_, segments) in paths_of(text) {
            let from = segments.iter().find(|segment| *segment != "crate" && *segment != "self");
            if let (Some(from), Some(last)) = (from.filter(|from| modules.contains(*from)), segments.last()) {
                folder_names.insert(last.clone(), from.clone());
            }
        }
    }
    let mut uses = Uses::new();
    for (path, text) in rest.iter().filter(|(path, _)| !is_test(path)) {
        let (Some(own), Some(module)) = (own_of(path), module(path)) else { continue };
        for (line, segments) in paths_of(text) {
            let supers = segments.iter().take_while(|segment| *segment == "super").count();
            let whole: Vec<&str> = match segments.first().map(String::as_str) {
                Some("crate") => segments[1..].iter().map(String::as_str).collect(),
                Some("super") if supers <= module.len() => {
                    let above = module[..module.len() - supers].iter().copied();
                    above.chain(segments[supers..].iter().map(String::as_str)).collect()
                }
                _ => continue,
            };
            let Some(&named) = whole.get(folder.len()).filter(|_| here(&whole)) else { continue };
            let used = if modules.contains(named) { Some(named) } else { folder_names.get(named).map(String::as_str) };
            if let Some(used) = used.filter(|used| *used != own) {
                let place = format!("{path}:{line}");
                let places = uses.entry((own.clone(), used.to_owned())).or_default();
                if !places.contains(&place) {
                    places.push(place);
                }
            }
        }
    }
    uses
}

/// The shortest circle among those who use one another, with where they do.
fn circle(uses: &Uses) -> Option<String> {
    let mut neighbours: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for (from, to) in uses.keys() {
        neighbours.entry(from).or_default().insert(to);
    }
    let circle = neighbours.keys().filter_map(|start| way(&neighbours, start, start)).min_by_key(Vec::len)?;
    let mut sentence = circle.join(" → ");
    for pair in circle.windows(2) {
        let places = uses.get(&(pair[0].to_owned(), pair[1].to_owned())).map_or(&[][..], Vec::as_slice);
        let more = if places.len() > 3 { format!(" and {} more", places.len() - 3) } else { String::new() };
        let first = places.iter().take(3).cloned().collect::<Vec<_>>().join(", ");
        let _ = write!(sentence, "\n  `{}` uses `{}` in {first}{more}", pair[0], pair[1]);
    }
    Some(sentence)
}

/// The shortest way from one module to another, of at least one step.
fn way<'a>(neighbours: &BTreeMap<&'a str, BTreeSet<&'a str>>, from: &str, to: &str) -> Option<Vec<&'a str>> {
    let start = neighbours.get_key_value(from).map(|(start, _)| *start)?;
    let mut queue = VecDeque::from([vec![start]]);
    let mut met = BTreeSet::new();
    while let Some(way) = queue.pop_front() {
        for next in way.last().and_then(|last| neighbours.get(last)).into_iter().flatten() {
            let longer: Vec<&str> = way.iter().copied().chain([*next]).collect();
            if *next == to {
                return Some(longer);
            }
            if met.insert(*next) {
                queue.push_back(longer);
            }
        }
    }
    None
}

/// All paths in some code, with their lines; `a::{b, c::d}` is `a::b` and `a::c::d`.
fn paths_of(code: &str) -> Vec<(usize, Vec<String>)> {
    let chars: Vec<char> = code.chars().collect();
    let (mut paths, mut line, mut i) = (Vec::new(), 1, 0);
    while i < chars.len() {
        let c = chars[i];
        if c.is_alphabetic() || c == '_' {
            i = path_at(&chars, i, line, &[], &mut paths, &mut line);
        } else {
            line += usize::from(c == '\n');
            i += 1;
        }
    }
    paths
}

/// Reads one path, with those that it opens in braces, and tells where it ends.
fn path_at(
    chars: &[char],
    mut i: usize,
    first: usize,
    before: &[String],
    paths: &mut Vec<(usize, Vec<String>)>,
    line: &mut usize,
) -> usize {
    let mut segments = before.to_vec();
    let spaces = |mut i: usize, line: &mut usize| {
        while chars.get(i).is_some_and(|c| c.is_whitespace()) {
            *line += usize::from(chars[i] == '\n');
            i += 1;
        }
        i
    };
    loop {
        let name: String = chars[i..].iter().take_while(|c| c.is_alphanumeric() || **c == '_').collect();
        i += name.chars().count();
        segments.push(name);
        if !(chars.get(i) == Some(&':') && chars.get(i + 1) == Some(&':')) {
            break;
        }
        i = spaces(i + 2, line);
        match chars.get(i) {
            Some('{') => {
                i += 1;
                while i < chars.len() && chars[i] != '}' {
                    i = spaces(i, line);
                    match chars.get(i) {
                        Some(c) if c.is_alphabetic() || *c == '_' => {
                            let own = *line;
                            i = path_at(chars, i, own, &segments, paths, line);
                        }
                        Some('}') | None => {}
                        Some(_) => i += 1,
                    }
                }
                return i + 1;
            }
            Some(c) if c.is_alphabetic() || *c == '_' => {}
            _ => break,
        }
    }
    if segments.len() > 1 {
        paths.push((first, segments));
    }
    i
}

#[cfg(test)]
mod tests {
    use super::*;

    fn made_up(files: &[(&str, &str)]) -> Uses {
        used(files, &[])
    }

    fn used(files: &[(&str, &str)], folder: &[&str]) -> Uses {
        let files: Vec<_> = files.iter().map(|(path, text)| ((*path).to_owned(), (*text).to_owned())).collect();
        uses(&files, &folder.iter().map(|&part| part.to_owned()).collect::<Vec<_>>())
    }

    fn pairs(uses: &Uses) -> Vec<String> {
        uses.iter().map(|((from, to), places)| format!("{from} → {to}: {}", places.join(", "))).collect()
    }

    #[test]
    fn a_circle_is_named_with_the_lines_that_make_it() {
        let uses = made_up(&[
            ("lib.rs", "mod plan; mod bound; mod engine; pub use plan::Part;"),
            ("plan/mod.rs", "mod track;\nuse crate::bound::Shape;"),
            ("plan/track.rs", "fn f() { super::super::bound::g() }"),
            ("bound.rs", "use std::fmt;\nfn g() {\n    crate::engine::run()\n}"),
            ("engine.rs", "use crate::{error::Wrong, plan::{self, Part}};"),
            ("error.rs", ""),
        ]);
        let expected = [
            "bound → engine: bound.rs:3",
            "engine → error: engine.rs:1",
            "engine → plan: engine.rs:1",
            "plan → bound: plan/mod.rs:2, plan/track.rs:1",
        ];
        assert_eq!(pairs(&uses), expected);
        let fault = circle(&uses).unwrap();
        for word in
            ["bound → engine → plan → bound", "`engine` uses `plan` in engine.rs:1", "plan/mod.rs:2, plan/track.rs:1"]
        {
            assert!(fault.contains(word), "{word}: {fault}");
        }
    }

    #[test]
    fn a_name_that_the_root_takes_from_a_module_is_that_modules() {
        let uses = made_up(&[
            ("lib.rs", "mod a;\nmod b;\npub use a::{Answer, deep::Other};"),
            ("a.rs", "use crate::b::B;"),
            ("b/mod.rs", "use crate::Answer;\npub(in crate::b) fn f(_: super::Other) {}"),
        ]);
        assert_eq!(pairs(&uses), ["a → b: a.rs:1", "b → a: b/mod.rs:1, b/mod.rs:2"]);
    }

    #[test]
    fn tests_comments_and_texts_use_nobody() {
        let uses = made_up(&[
            ("lib.rs", "mod a;\nmod b;\n#[cfg(test)]\nmod trial;"),
            (
                "a/mod.rs",
                "//! See [`b`](crate::b).\n/* crate::b /* crate::b */ crate::b */\n#[cfg(test)]\nmod sweep;\n#[cfg(test)]\n#[path = \"many_tests.rs\"]\nmod tests;\nconst S: &str = \"crate::b \\\" crate::b\";\nconst R: &str = r#\"crate::b \" crate::b\"#;\nfn f<'a>(c: &'a char) -> bool { *c == '\"' || *c == '\\'' }\n#[cfg(test)]\nfn only() { let _ = crate::b::g(); }\n#[cfg(all(test, unix))]\nmod inside {\n    use crate::b;\n    fn f() { if true { crate::b::g() } }\n}\nuse crate::c;",
            ),
            ("a/sweep.rs", "use crate::b;"),
            ("a/many_tests.rs", "use crate::b;"),
            ("trial.rs", "use crate::a;"),
            ("b.rs", "use crate::a::f;"),
            ("c.rs", ""),
        ]);
        assert_eq!(pairs(&uses), ["a → c: a/mod.rs:18", "b → a: b.rs:1"]);
        assert_eq!(circle(&uses), None);
    }

    #[test]
    fn a_circle_inside_of_a_folder_is_found() {
        let files = [
            ("lib.rs", "mod plan;"),
            ("plan/mod.rs", "mod join;\nmod order;\nmod range;\npub use range::Range;\nfn f() { join::g() }"),
            ("plan/join.rs", "use super::order::h;\nfn g() { super::f() }"),
            ("plan/order/mod.rs", "mod deep;\nuse crate::plan::Range;"),
            ("plan/order/deep.rs", "use super::super::join::g;"),
            ("plan/range.rs", ""),
        ];
        let uses = used(&files, &["plan"]);
        let expected = [
            "join → order: plan/join.rs:1",
            "order → join: plan/order/deep.rs:1",
            "order → range: plan/order/mod.rs:2",
        ];
        assert_eq!(pairs(&uses), expected);
        assert!(circle(&uses).is_some_and(|fault| fault.starts_with("join → order → join")));
        assert_eq!(circle(&made_up(&files)), None);
    }

    /// The house itself. `cargo xtask check` does the same.
    #[test]
    fn no_crate_of_ours_has_a_circle() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
        assert_eq!(check(root), Ok(()));
    }
}
