//! What is public is a promise to whoever builds on a crate. An item that nobody outside of its crate names is not meant as one, so it is
//! `pub(crate)`, or stands in [`MEANT`] with the reason.
//!
//! It reads text, quickly, and knows names only: two functions of one name are one. So it may miss an item, and finds none that is named.

use crate::claims::{sources, text};
use crate::long::FOLDERS;
use crate::rust_text::{code, examples, of_page, used, words};
use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

/// What library users are meant to have although nobody here names it: crate, name, and why.
const MEANT: &[(&str, &str, &str)] = &[
    ("whit-account", "TOLERANCE", "the guarantee of `Filter` is stated by it"),
    ("whit-account", "pure_mu", "the proof behind filters in μ stands there, and their documentation leads to it"),
    ("whit-account", "renyi_for", "for whoever plans many runs of one kind; a declaration knows of none beforehand"),
    ("whit-core", "serialize", "serde calls it, in `finite_or_word`, which answers and cards of models name"),
];

/// A public item of a library.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Item {
    pub(crate) file: String,
    pub(crate) line: usize,
    pub(crate) kind: String,
    pub(crate) name: String,
    /// What others see of it: a signature, public fields, variants.
    pub(crate) shown: String,
    /// The words of that, and of the type around it.
    seen: BTreeSet<String>,
}

impl Item {
    /// Whether it may stand in a signature, so that it is used by whoever uses that.
    fn is_type(&self) -> bool {
        ["struct", "enum", "trait", "type", "union", "const"].contains(&self.kind.as_str())
    }
}

/// A library of the workspace: its name, and the files that are of it.
pub(crate) struct Library {
    pub(crate) name: String,
    pub(crate) files: Vec<PathBuf>,
}

/// All public items that nobody outside of their crate names, by file and line.
pub(crate) fn find(root: &Path) -> Result<Vec<Item>, String> {
    let mut all = Vec::new();
    for folder in FOLDERS {
        for path in sources(&root.join(folder))? {
            let source = text(&path)?;
            all.push((path, source));
        }
    }
    let pages = pages(root)?;
    let mut found = Vec::new();
    for library in libraries(root)? {
        let mut named: BTreeSet<String> = used(&pages).map(str::to_owned).collect();
        let mut items = Vec::new();
        for (path, source) in &all {
            if library.files.contains(path) {
                named.extend(used(&examples(source)).map(str::to_owned));
                let file = path.strip_prefix(root).unwrap_or(path).to_string_lossy().into_owned();
                items.extend(declared(&file, source));
            } else {
                named.extend(used(&code(source)).map(str::to_owned));
                // Serde finds in strings what to call.
                let attributes = source.lines().filter(|line| line.trim_start().starts_with("#[serde("));
                named.extend(attributes.flat_map(words).map(str::to_owned));
            }
        }
        named.extend(MEANT.iter().filter(|meant| meant.0 == library.name).map(|meant| meant.1.to_owned()));
        found.extend(unnamed(&items, named));
    }
    Ok(found)
}

/// What pages show of Rust. `claims.md` is made from the code, so what it names is named by the code itself.
fn pages(root: &Path) -> Result<String, String> {
    let mut shown = String::new();
    for folder in [root.to_owned(), root.join("docs"), root.join("bench")] {
        let fail = |error: std::io::Error| format!("`{}` could not be read: {error}", folder.display());
        for entry in std::fs::read_dir(&folder).map_err(fail)? {
            let path = entry.map_err(fail)?.path();
            let made = path.file_name().is_some_and(|name| name == "claims.md" || name == "CHANGELOG.md");
            if path.extension().is_some_and(|extension| extension == "md") && !made {
                shown.push_str(&of_page(&text(&path)?));
            }
        }
    }
    Ok(shown)
}

/// The libraries of `crates/`. Where one shares its folder with a command, only the modules that `lib.rs` names are the library's.
pub(crate) fn libraries(root: &Path) -> Result<Vec<Library>, String> {
    let folder = root.join("crates");
    let fail = |error: std::io::Error| format!("`{}` could not be read: {error}", folder.display());
    let mut found = Vec::new();
    for entry in std::fs::read_dir(&folder).map_err(fail)? {
        let path = entry.map_err(fail)?.path();
        let top = path.join("src").join("lib.rs");
        if !top.is_file() {
            continue;
        }
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let modules = modules(&code(&text(&top)?));
        let is_of_it = |file: &PathBuf| {
            let below = file.strip_prefix(path.join("src")).unwrap_or(file);
            let first = below.components().next().map(|part| part.as_os_str().to_string_lossy().into_owned());
            let first = first.unwrap_or_default();
            let module = first.strip_suffix(".rs").unwrap_or(&first);
            module == "lib" || modules.contains(module)
        };
        let files = sources(&path.join("src"))?.into_iter().filter(is_of_it).collect();
        found.push(Library { name, files });
    }
    found.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(found)
}

/// The modules that a file declares.
fn modules(code: &str) -> BTreeSet<String> {
    let all: Vec<&str> = words(code).collect();
    all.windows(2).filter(|pair| pair[0] == "mod").map(|pair| pair[1].to_owned()).collect()
}

/// The items that are not named, nor seen in what others see of an item that is.
fn unnamed(items: &[Item], mut named: BTreeSet<String>) -> Vec<Item> {
    let types: BTreeSet<&str> = items.iter().filter(|item| item.is_type()).map(|item| item.name.as_str()).collect();
    loop {
        let before = named.len();
        for item in items {
            if named.contains(&item.name) {
                named.extend(item.seen.iter().filter(|word| types.contains(word.as_str())).cloned());
            }
        }
        if named.len() == before {
            break;
        }
    }
    items.iter().filter(|item| item.kind != "impl" && !named.contains(&item.name)).cloned().collect()
}

/// The public items of a file. Tests have none: modules of theirs are left out.
pub(crate) fn declared(file: &str, source: &str) -> Vec<Item> {
    let tests = Path::new(file).components().any(|part| part.as_os_str() == "tests");
    if tests || file.ends_with("_tests.rs") || file.ends_with("/tests.rs") {
        return Vec::new();
    }
    let code = code(source);
    let lines: Vec<&str> = code.lines().collect();
    let (mut items, mut owner, mut at) = (Vec::new(), None, 0);
    while at < lines.len() {
        let line = lines[at];
        if line.trim_start().starts_with("#[cfg(test)]") {
            at = end(&lines, at + 1) + 1;
            continue;
        }
        if line.starts_with("impl") {
            owner = implemented(line);
        } else if line.starts_with('}') {
            owner = None;
        }
        if let Some(owner) = owner.as_ref().filter(|_| line.trim_start().starts_with("type ")) {
            // What a trait's type is for this one, as `type Noisy = Ranking;`: whoever has the one meets the other.
            let (kind, name) = ("impl".to_owned(), owner.clone());
            let shown = shown("type", &[line]);
            let seen = seen(&shown);
            items.push(Item { file: file.to_owned(), line: at + 1, kind, name, shown, seen });
        }
        if let Some((kind, name)) = public(line) {
            let last = end(&lines, at);
            let name = name.to_owned();
            let shown = shown(kind, &lines[at..=last]);
            let mut seen = seen(&shown);
            seen.remove(&name);
            if kind == "fn" && line.starts_with(' ') {
                // `Self` is the type around it, and who calls the function has one.
                seen.extend(owner.iter().cloned());
            }
            items.push(Item { file: file.to_owned(), line: at + 1, kind: kind.to_owned(), name, shown, seen });
        }
        at += 1;
    }
    items
}

/// The type that a line begins to implement something for.
fn implemented(line: &str) -> Option<String> {
    let body = line.split(" where").next()?;
    let subject = body.rsplit(" for ").next()?;
    let subject = subject.strip_prefix("impl").map_or(subject, |rest| {
        // Its parameters come first.
        if rest.starts_with('<') { rest.split_once("> ").map_or(rest, |(_, rest)| rest) } else { rest }
    });
    words(subject).next().map(str::to_owned)
}

/// Kind and name of what a line declares for everybody.
fn public(line: &str) -> Option<(&str, &str)> {
    let mut rest = line.trim_start().strip_prefix("pub ")?.split_whitespace();
    let mut kind = rest.next()?;
    let mut name = rest.next()?;
    while ["const", "unsafe", "async", "extern"].contains(&kind) && ["unsafe", "async", "extern", "fn"].contains(&name)
    {
        kind = name;
        name = rest.next()?;
    }
    let known = ["fn", "struct", "enum", "union", "const", "static", "trait", "type", "mod"].contains(&kind);
    known.then(|| words(name).next()).flatten().map(|name| (kind, name))
}

/// The last line of the item that begins at a line, by the indentation that the formatter gives it.
fn end(lines: &[&str], start: usize) -> usize {
    let Some(first) = lines.get(start) else { return lines.len() - 1 };
    let indent = &first[..first.len() - first.trim_start().len()];
    for (at, line) in lines.iter().enumerate().skip(start) {
        let own = line.strip_prefix(indent).is_some_and(|rest| !rest.starts_with(' '));
        let closed = line.trim_end();
        if own && (closed.ends_with(';') || closed.ends_with('}') || (closed.ends_with("},") && at > start)) {
            return at;
        }
    }
    lines.len() - 1
}

/// What others see of an item that stands on these lines.
fn shown(kind: &str, lines: &[&str]) -> String {
    match kind {
        "mod" => String::new(),
        "enum" | "trait" | "type" | "const" | "static" => lines.join("\n"),
        "struct" | "union" => {
            let head = lines.first().map_or("", |line| line.split('{').next().unwrap_or(line));
            let mut shown = vec![head];
            if let Some((before, fields)) = head.split_once('(') {
                shown = vec![before];
                shown.extend(fields.split(", ").filter(|field| field.trim_start().starts_with("pub ")));
            }
            shown.extend(lines.iter().skip(1).filter(|line| line.trim_start().starts_with("pub ")));
            shown.join("\n")
        }
        _ => {
            let mut signature = String::new();
            for line in lines {
                let _ = writeln!(signature, "{line}");
                if line.trim_end().ends_with(['{', ';', '}']) {
                    break;
                }
            }
            signature.split('{').next().unwrap_or_default().to_owned()
        }
    }
}

fn seen(shown: &str) -> BTreeSet<String> {
    words(shown).map(str::to_owned).collect()
}

/// A sentence about each, and what to do.
pub(crate) fn complain(found: &[Item]) -> Result<(), String> {
    if found.is_empty() {
        return Ok(());
    }
    let list = found.iter().fold(String::new(), |mut list, item| {
        let _ = write!(list, "\n  {}:{}  {} {}", item.file, item.line, item.kind, item.name);
        list
    });
    Err(format!(
        "nobody outside of its crate names what is public here ({} items): make it `pub(crate)`, or say in xtask/src/public.rs why library users are meant to have it{list}",
        found.len()
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOURCE: &str = "\
//! A shop.
pub mod till;

/// What is sold.
pub struct Basket { // with `pub fn comment`
    pub total: Price,
    secret: Recipe,
}

pub struct Pair(pub Left, Right);

pub enum Answer {
    Yes(Price),
    No { why: Reason },
}

impl<T> Basket {
    pub const fn weigh(&self) -> Weight {
        let inner = Hidden;
    }
    pub(crate) fn count(&self) {}
    fn add(&self) {}
}

pub fn open(
    door: &Door,
) -> Opened
where
    Door: Wood,
{
    \"pub fn in_a_string\"
}

pub const MOST: usize = 3;

#[cfg(test)]
mod tests {
    pub fn of_a_test() {}
}

pub trait Sell {
    fn sell(&self) -> Receipt;
}
pub type Short = Long;
";

    fn item<'a>(items: &'a [Item], name: &str) -> &'a Item {
        items.iter().find(|item| item.name == name).expect("it is declared")
    }

    fn has(item: &Item, word: &str) -> bool {
        item.seen.contains(word)
    }

    #[test]
    fn public_items_are_found_by_kind_name_and_line() {
        let items = declared("crates/shop/src/lib.rs", SOURCE);
        let found: Vec<_> = items.iter().map(|item| (item.kind.as_str(), item.name.as_str(), item.line)).collect();
        let lines = |text: &str| SOURCE.lines().position(|line| line.contains(text)).unwrap() + 1;
        assert_eq!(
            found,
            [
                ("mod", "till", 2),
                ("struct", "Basket", 5),
                ("struct", "Pair", 10),
                ("enum", "Answer", 12),
                ("fn", "weigh", lines("fn weigh")),
                ("fn", "open", lines("fn open")),
                ("const", "MOST", lines("MOST")),
                ("trait", "Sell", lines("trait Sell")),
                ("type", "Short", lines("type Short")),
            ]
        );
        assert!(declared("crates/shop/src/till_tests.rs", SOURCE).is_empty(), "tests promise nothing");
    }

    #[test]
    fn what_others_see_of_an_item_is_its_signature_and_what_is_public_in_it() {
        let items = declared("crates/shop/src/lib.rs", SOURCE);
        let basket = item(&items, "Basket");
        assert!(has(basket, "Price") && !has(basket, "Recipe"), "{basket:?}");
        let pair = item(&items, "Pair");
        assert!(has(pair, "Left") && !has(pair, "Right"), "{pair:?}");
        let answer = item(&items, "Answer");
        assert!(has(answer, "Price") && has(answer, "Reason"));
        let weigh = item(&items, "weigh");
        assert!(has(weigh, "Weight") && has(weigh, "Basket") && !has(weigh, "Hidden"), "{weigh:?}");
        let open = item(&items, "open");
        assert!(has(open, "Opened") && has(open, "Wood") && !has(open, "in_a_string"), "{open:?}");
        assert!(has(item(&items, "Sell"), "Receipt"));
    }

    #[test]
    fn an_item_is_used_by_whoever_names_it_or_names_what_shows_it() {
        let items = declared(
            "crates/shop/src/lib.rs",
            "pub fn open() -> Door { x }\npub struct Door;\npub struct Window;\npub fn shut(window: Window) {}\n",
        );
        let named = |words: &[&str]| words.iter().map(|&word| word.to_owned()).collect();
        let left: Vec<_> = unnamed(&items, named(&["open"])).into_iter().map(|item| item.name).collect();
        assert_eq!(left, ["Window", "shut"], "a door is seen by whoever opens; nobody shuts a window");
        assert!(unnamed(&items, named(&["open", "shut"])).is_empty());
        let items = declared(
            "crates/shop/src/lib.rs",
            "pub struct Door;\nimpl Open for Door {\n    type View = Garden;\n}\npub struct Garden;\n",
        );
        assert!(unnamed(&items, named(&["Door"])).is_empty(), "a garden is what a door opens to");
        assert_eq!(unnamed(&items, named(&[])).len(), 2);
    }

    #[test]
    fn libraries_are_what_lib_rs_names() {
        assert_eq!(modules(&code("pub mod a;\nmod b; // mod c;\n")), BTreeSet::from(["a".to_owned(), "b".to_owned()]));
        let root = crate::root();
        let noise = libraries(&root).unwrap().into_iter().find(|library| library.name == "whit-noise").unwrap();
        assert!(noise.files.iter().any(|file| file.ends_with("entropy.rs")));
    }

    #[test]
    fn the_whole_house_is_read() {
        let found = find(&crate::root()).unwrap();
        assert!(!found.iter().any(|item| item.name == "release" || item.name == "Cost"), "{found:?}");
        assert!(MEANT.iter().all(|(_, _, why)| why.split_whitespace().count() >= 3), "each has its reason");
    }
}
