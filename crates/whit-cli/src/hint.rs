//! The library names its own settings; whoever types a command wants its options.

use std::cell::RefCell;
use std::path::Path;
use whit::query::explain::Fits;

thread_local! {
    /// The ledger that this command is about, as an option of other commands, where it is not the one that they take without being told.
    static LEDGER: RefCell<String> = const { RefCell::new(String::new()) };
    /// What somebody typed.
    static TYPED: RefCell<Vec<String>> = const { RefCell::new(Vec::new()) };
}

/// Files of so many bytes at most are looked into for names: declarations and training files are smaller.
const LARGEST: u64 = 1 << 20;

/// Has hints leave these words as they stand, and those of the files that they name: a file or a column may be called as a setting of the library is.
pub(crate) fn typed<'a>(words: impl IntoIterator<Item = &'a str>) {
    TYPED.with_borrow_mut(|typed| typed.extend(words.into_iter().map(str::to_owned)));
}

/// Whether a name of the library's may be one that somebody typed, here or into a file that was named here, so that it is not known who wrote it.
fn is_theirs(name: &str) -> bool {
    let dataset = name.split_once('.').map(|(dataset, _)| dataset);
    let declared = dataset.map(|dataset| format!("dataset.{dataset}"));
    let says = |text: &str| {
        holds(text, name) || dataset == Some(text) || declared.as_ref().is_some_and(|declared| holds(text, declared))
    };
    TYPED.with_borrow(|typed| {
        let named = typed.iter().map(|word| word.rsplit_once('=').map_or(word.as_str(), |(_, value)| value));
        let beside = |file: &str| Path::new(file).with_file_name("whit.toml");
        let files = named.flat_map(|file| [Path::new(file).to_owned(), beside(file)]).chain(["whit.toml".into()]);
        typed.iter().any(|word| says(word)) || files.filter_map(|file| text_of(&file)).any(|text| says(&text))
    })
}

/// The text of a declaration or a training file. No other is looked into: what a refusal says must not follow from rows, whichever file somebody names.
fn text_of(file: &Path) -> Option<String> {
    file.extension().filter(|kind| *kind == "toml")?;
    let about = std::fs::metadata(file).ok()?;
    if about.is_file() && about.len() <= LARGEST { std::fs::read_to_string(file).ok() } else { None }
}

/// Whether a text has this name in it, and not only as a part of a longer one.
fn holds(text: &str, name: &str) -> bool {
    let ends = |c: Option<char>| c.is_none_or(|c| !(c.is_alphanumeric() || "_-.".contains(c)));
    text.match_indices(name)
        .any(|(at, _)| ends(text[..at].chars().next_back()) && ends(text[at + name.len()..].chars().next()))
}

/// Has hints name the ledger in this file: as printed they would else be about another one, in the folder where somebody happens to stand.
pub(crate) fn about_ledger(file: Option<&Path>) {
    let option = file.filter(|file| *file != Path::new("whit.ledger")).map(|file| {
        let file = file.display().to_string();
        let plain = |c: char| c.is_alphanumeric() || "._-/+=:@".contains(c);
        if file.chars().all(plain) {
            format!(" --ledger {file}")
        } else {
            format!(" --ledger '{}'", file.replace('\'', r"'\''"))
        }
    });
    LEDGER.set(option.unwrap_or_default());
}

/// A command with the ledger that it is for, where it takes one.
fn with_ledger(command: &str) -> String {
    if command.starts_with("whit ledger") {
        LEDGER.with_borrow(|option| format!("{command}{option}"))
    } else {
        command.to_owned()
    }
}

/// What the library calls a setting, between backticks and with or without a value, and the option that sets it.
const OPTIONS: &[(&str, &str)] = &[
    ("asking.epsilon", "--epsilon"),
    ("asking.delta", "--delta"),
    ("asking.groups", "--groups"),
    ("asking.rows", "--rows"),
    ("asking.confidence", "--confidence"),
    ("asking.about", "--about"),
    ("question.items", "--items"),
    ("draft.name", "--name"),
    ("run.change", "--change"),
    ("run.difference", "--difference"),
    ("run.draw", "--draw"),
    ("run.elements_per_user", "--elements-per-user"),
    ("request.owner", "--owner"),
    ("request.resume", "--resume"),
    ("request.memory", "--memory"),
];

/// What the library calls a method that takes a reason, between backticks and with or without the entry that it is for, and the command that does the same.
const METHODS: &[(&str, &str)] = &[
    ("Books::accept", "whit ledger accept"),
    ("Books::reset", "whit ledger reset"),
    ("Session::void", "whit ledger void"),
];

/// What the library calls other methods, between backticks, and the command that does the same.
const COMMANDS: &[(&str, &str)] = &[
    ("ClusteringPlan", "whit help partition kmeans"),
    ("DeclarationDraft::of", "whit init PATH"),
    ("Declared::check", "whit check"),
    ("HistogramQuestion", "whit help histogram"),
    ("HittersQuestion", "whit help hitters"),
    ("PartitionFile::dictionary", "whit partition dictionary"),
    ("PartitionFile::save", "whit partition"),
    ("Register::entries", "whit ledger"),
    ("Register::verify", "whit ledger verify"),
    ("Session::accounts", "whit ledger"),
    ("Session::preview", "whit preview"),
    ("Session::train", "whit train"),
];

/// How the library says that something is to be called again as it was, and how one says it who types.
const AGAIN: (&str, &str) = ("the same `Session::train`", "the same command");

/// Notes, and why something would be refused, with the command's own options.
pub(crate) fn settings_as_options<'a>(notes: impl Iterator<Item = &'a mut String>, fits: &'a mut Fits) {
    for text in notes.chain(fits.denied.as_mut().and_then(|denied| denied.hint.as_mut())) {
        *text = for_command(text);
    }
}

/// A text of the library, with the options and commands that do what it speaks of.
pub(crate) fn for_command(text: &str) -> String {
    let again = if is_theirs("Session::train") { text.to_owned() } else { text.replace(AGAIN.0, AGAIN.1) };
    let mut words = String::with_capacity(text.len());
    let mut rest = again.as_str();
    while let Some((before, quoted)) = rest.split_once('`') {
        words.push_str(before);
        rest = if let Some((option, after)) = option(quoted) {
            words.push_str(&option);
            after
        } else {
            words.push('`');
            quoted
        };
    }
    words + rest
}

/// The option for a quoted setting, and what stands after the quote.
fn option(quoted: &str) -> Option<(String, &str)> {
    let ours = |name: &str, rest: &str| rest.starts_with(['`', ' ', '(']) && !is_theirs(name);
    for (name, option) in OPTIONS {
        let Some(rest) = quoted.strip_prefix(name).filter(|rest| ours(name, rest)) else { continue };
        if let Some(after) = rest.strip_prefix('`') {
            return Some(((*option).to_owned(), after));
        }
        if let Some((value, after)) = rest.strip_prefix(" = ").and_then(|rest| rest.split_once('`')) {
            return Some((format!("{option} {value}"), after));
        }
    }
    for (name, command) in COMMANDS {
        let rest = quoted.strip_prefix(name).filter(|rest| ours(name, rest));
        if let Some(after) = rest.and_then(|rest| rest.strip_prefix('`')) {
            return Some((format!("`{}`", with_ledger(command)), after));
        }
    }
    METHODS.iter().find_map(|(name, command)| {
        let rest = quoted.strip_prefix(name).filter(|rest| ours(name, rest))?;
        if let Some(after) = rest.strip_prefix('`') {
            return Some((format!("`{} --reason …`", with_ledger(command)), after));
        }
        let (entry, after) = rest.strip_prefix('(')?.split_once(")`")?;
        Some((format!("`{} --reason …`", with_ledger(&format!("{command} {entry}"))), after))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_become_options_and_other_quotes_stay() {
        for (library, command) in [
            ("nothing was charged; `asking.epsilon = 0.25` would fit", "nothing was charged; --epsilon 0.25 would fit"),
            ("say `request.owner`; `visits.owner` is a column", "say --owner; `visits.owner` is a column"),
            ("`asking.groups = 2` `asking.rows = 1` would do", "--groups 2 --rows 1 would do"),
            ("a column ` of `asking.rows`", "a column ` of --rows"),
            ("`asking.rowsome` and `asking.rows = ", "`asking.rowsome` and `asking.rows = "),
            ("says so: `Books::reset`", "says so: `whit ledger reset --reason …`"),
            ("`Session::void(7)` ends it", "`whit ledger void 7 --reason …` ends it"),
            ("`Session::accounts` says what was spent", "`whit ledger` says what was spent"),
            ("`Register::verify` says how far", "`whit ledger verify` says how far"),
            ("the columns that `Declared::check` shows", "the columns that `whit check` shows"),
            ("`Session::preview` shows how", "`whit preview` shows how"),
            ("`PartitionFile::save` writes one", "`whit partition` writes one"),
            ("`Session::trainer` stays", "`Session::trainer` stays"),
            ("the same `Session::train` goes on; see `Session::train`", "the same command goes on; see `whit train`"),
            ("nothing", "nothing"),
        ] {
            assert_eq!(for_command(library), command);
        }
    }

    /// What the library says may be read by somebody who has no command.
    #[test]
    fn the_library_names_its_methods_and_no_command() {
        fn look(folder: &Path, found: &mut Vec<String>) {
            for entry in std::fs::read_dir(folder).unwrap() {
                let path = entry.unwrap().path();
                if path.is_dir() {
                    look(&path, found);
                    continue;
                }
                // A draft is a file for people, and speaks of what they type.
                let name = path.file_name().unwrap().to_str().unwrap();
                if path.extension().is_none_or(|kind| kind != "rs") || name == "draft.rs" || name.contains("tests") {
                    continue;
                }
                let text = std::fs::read_to_string(&path).unwrap();
                let code = text.split("#[cfg(test)]").next().unwrap().lines();
                let code = code.filter(|line| !line.trim_start().starts_with("//"));
                found.extend(code.filter(|line| line.contains("`whit ")).map(|line| format!("{name}: {line}")));
            }
        }
        let mut found = Vec::new();
        for one in ["whit-core", "whit-account", "whit-query", "whit-learn", "whit"] {
            look(&Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(one).join("src"), &mut found);
        }
        assert!(found.is_empty(), "{found:#?}");
    }

    #[test]
    fn what_somebody_typed_stays_as_it_stands() {
        let hint = "`request.owner` is no such file; say `request.owner`, or `request.memory = 1GiB`";
        // A longer name is another.
        typed(["train", "--config=my/request.owner.toml", "asking.request.memory"]);
        assert_eq!(for_command(hint), "--owner is no such file; say --owner, or --memory 1GiB");
        typed(["--config", "request.owner"]);
        assert_eq!(for_command(hint), "`request.owner` is no such file; say `request.owner`, or --memory 1GiB");
        // Columns are named with their data set, be it typed or declared.
        let columns = "`run.draw` has no declared range, nor has `asking.rows`; `asking.epsilon = 1` would fit";
        typed(["SELECT SUM(asking.rows) FROM asking", "run"]);
        assert_eq!(
            for_command(columns),
            "`run.draw` has no declared range, nor has `asking.rows`; --epsilon 1 would fit"
        );
        let file = std::env::temp_dir().join(format!("whit-typed-{}.toml", std::process::id()));
        std::fs::write(&file, "[dataset.asking]\nsource = 'asking.csv'\n").unwrap();
        typed([file.to_str().unwrap()]);
        assert!(for_command(columns).ends_with("`asking.epsilon = 1` would fit"));
        std::fs::remove_file(file).unwrap();
        TYPED.take();
        // Rows may hold anything, and change no word.
        let rows = std::env::temp_dir().join(format!("whit-typed-{}.csv", std::process::id()));
        std::fs::write(&rows, "x\nasking.epsilon\n").unwrap();
        typed([rows.to_str().unwrap()]);
        assert!(for_command(columns).ends_with("--epsilon 1 would fit"));
        std::fs::remove_file(rows).unwrap();
        TYPED.take();
    }

    #[test]
    fn commands_are_about_the_ledger_that_was_used() {
        let hint = "`Session::void(7)` ends it, `Register::verify` looks, `Session::train` goes on";
        about_ledger(Some(Path::new("sub/whit.ledger")));
        let expected = "`whit ledger void 7 --ledger sub/whit.ledger --reason …` ends it, `whit ledger verify --ledger sub/whit.ledger` looks, `whit train` goes on";
        assert_eq!(for_command(hint), expected);
        about_ledger(Some(Path::new("my data/whit.ledger")));
        assert!(for_command(hint).contains("void 7 --ledger 'my data/whit.ledger' --reason"));
        for usual in [Some(Path::new("whit.ledger")), None] {
            about_ledger(usual);
            assert!(for_command(hint).contains("`whit ledger void 7 --reason …`"));
        }
    }
}
