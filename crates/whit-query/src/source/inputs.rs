//! Files that no output may replace: the ledger and what belongs to it, declarations and training files, partitions, checkpoints, and the data.
//!
//! One rule for whatever writes a file that somebody named: [`Inputs::check`], before anything is charged. Files are compared as files, so that another
//! way to write a path, a symbolic link and a hard link are all the same one. It reads declarations, the names of files and their first bytes, and no row.

use super::{Tables, locate};
use crate::error::QueryError;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use whit_core::declare::{Declaration, ElementSource};

/// What a file is, that no output may replace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Input {
    /// A ledger, or something next to it that belongs to it.
    Ledger,
    /// A declaration or a training file.
    Declaration,
    /// A file that rows or items are read from.
    Data,
    /// A partition.
    Partition,
    /// A model that is read.
    Model,
    /// The checkpoint of a training.
    Checkpoint,
}

impl Input {
    fn words(self) -> &'static str {
        match self {
            Self::Ledger => "a ledger or belongs to one",
            Self::Declaration => "a declaration or a training file",
            Self::Data => "a file that data is read from",
            Self::Partition => "a partition",
            Self::Model => "the model that is read",
            Self::Checkpoint => "the checkpoint of a training",
        }
    }
}

/// What stands next to a ledger, by what is added to its name.
const LEDGER_SIBLINGS: [&str; 7] = [".head", ".head.new", ".log", ".lock", "-journal", "-wal", "-shm"];
/// The names of checkpoints, and of what stands next to one, end so.
const CHECKPOINTS: [&str; 5] =
    [".checkpoint", ".checkpoint.next", ".checkpoint.lock", ".checkpoint.curve", ".checkpoint.part"];
/// The name that a declaration has where none was said.
const DECLARATION: &str = "whit.toml";

/// Files that no output may replace.
///
/// Whatever is named here, what a `whit.toml` in the present folder or in that of the output declares, and what shows by itself what it is: an SQLite file
/// and what stands next to it, a checkpoint, a partition, a TOML file.
#[derive(Debug, Clone, Default)]
pub struct Inputs {
    kept: Vec<(Input, PathBuf)>,
    /// Folders of heads.
    heads: Vec<PathBuf>,
    /// Folders that are tables as a whole.
    tables: Vec<PathBuf>,
    may: Vec<Input>,
}

impl Inputs {
    /// What open data sets were declared with: the declaration, their files, partitions and ledger.
    pub fn of(tables: &Tables) -> Self {
        let warehouse = tables.warehouse();
        let mut inputs = Self::default();
        inputs.kept.extend(tables.config().map(|config| (Input::Declaration, config.to_owned())));
        for source in warehouse.sources() {
            inputs.kept.extend(source.files.iter().map(|path| (Input::Data, path.clone())));
            inputs.tables.extend(source.table.clone());
        }
        inputs.declared(warehouse.declaration(), warehouse.folder());
        inputs
    }

    /// Whether a path leads to one of these files, under whichever name.
    pub(crate) fn are_one(path: &Path, files: &[PathBuf]) -> bool {
        let place = FileIdentity::of(path);
        files.iter().any(|file| place.is_at(file))
    }

    /// Whether a path leads into a folder, through whichever links.
    pub(super) fn is_in(path: &Path, folder: &Path) -> bool {
        resolved(path).starts_with(resolved(folder))
    }

    /// These and one more.
    #[must_use]
    pub fn and(mut self, input: Input, path: &Path) -> Self {
        self.kept.push((input, path.to_owned()));
        self
    }

    /// These and the heads of ledgers that are kept in this folder.
    #[must_use]
    pub fn and_heads_in(mut self, folder: &Path) -> Self {
        self.heads.push(folder.to_owned());
        self
    }

    /// These, for an output that is to take the place of such a file.
    #[must_use]
    pub fn may_replace(mut self, input: Input) -> Self {
        self.may.push(input);
        self
    }

    /// Refuses an output that would replace one of these, and names it.
    pub fn check(&self, output: &Path) -> Result<(), QueryError> {
        let near = [Self::declared_in(Path::new(DECLARATION)), Self::declared_in(&folder_of(output).join(DECLARATION))];
        // Which files of such a folder are the table's now is private, so that all are refused alike, and before any is known by itself.
        let mut tables = near.iter().chain([self]).flat_map(|inputs| &inputs.tables);
        if let Some(folder) = tables.find(|folder| Self::is_in(output, folder)) {
            let [output, folder] = [output, folder].map(|path| path.strip_prefix(".").unwrap_or(path).display());
            let sentence = format!(
                "`{output}` lies in `{folder}`, which is a Delta table as a whole, and no output is written into it"
            );
            return Err(QueryError::asked(sentence, "name another file for the output; nothing was touched"));
        }
        // What is written at once is written to a file next to it first.
        for path in [output.to_owned(), with(output, ".part")] {
            let place = FileIdentity::of(&path);
            let kept = near.iter().chain([self]).flat_map(|inputs| &inputs.kept);
            for (input, own) in kept.filter(|(input, _)| !self.may.contains(input)) {
                if place.is_at(own) {
                    return Err(replaces(&path, *input, own));
                }
            }
        }
        match self.by_itself(output).filter(|input| !self.may.contains(input)) {
            Some(input) => Err(replaces(output, input, output)),
            None => Ok(()),
        }
    }

    /// What a declaration in this file says; nothing where there is none.
    fn declared_in(config: &Path) -> Self {
        let mut inputs = Self::default();
        let Ok(text) = std::fs::read_to_string(config) else { return inputs };
        let folder = folder_of(config);
        inputs.kept.push((Input::Declaration, config.to_owned()));
        // One with a mistake in it still has its ledger.
        let declaration = Declaration::parse(&text).unwrap_or_default();
        inputs.declared(&declaration, folder);
        let local = declaration.datasets.values().filter(|dataset| !locate::is_remote(&dataset.source));
        for dataset in local {
            match locate::declared(dataset, folder) {
                Ok(found) => {
                    inputs.kept.extend(found.files.into_values().map(|path| (Input::Data, path)));
                    inputs.tables.extend(found.logged.and_then(|logged| logged.folder));
                }
                // One of several may be missing, and the others are data still.
                Err(_) => inputs.kept.extend(dataset.source.iter().map(|name| (Input::Data, folder.join(name)))),
            }
        }
        inputs
    }

    /// The ledger and the partitions of a declaration.
    fn declared(&mut self, declaration: &Declaration, folder: &Path) {
        let ledger = folder.join(declaration.ledger.as_deref().unwrap_or("whit.ledger"));
        self.kept.extend(LEDGER_SIBLINGS.map(|ending| (Input::Ledger, with(&ledger, ending))));
        self.kept.push((Input::Ledger, ledger));
        for dataset in declaration.datasets.values() {
            let element = dataset.unit.as_ref().and_then(|unit| unit.element.as_ref());
            if let Some(ElementSource::PartitionFile { path, .. }) = element {
                self.kept.push((Input::Partition, folder.join(path)));
            }
        }
    }

    /// What a file that is there shows to be, by its name and its first bytes.
    fn by_itself(&self, path: &Path) -> Option<Input> {
        if !path.is_file() {
            return None;
        }
        let real = resolved(path);
        let name = real.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        let first = first_bytes(&real);
        let stripped = |ending: &&str| name.strip_suffix(*ending).map(|name| real.with_file_name(name));
        if is_database(&first)
            || LEDGER_SIBLINGS.iter().filter_map(stripped).any(|path| is_database(&first_bytes(&path)))
        {
            return Some(Input::Ledger);
        }
        let head = [".head", ".head.new"].iter().any(|ending| name.ends_with(*ending));
        if head && self.heads.iter().any(|folder| real.starts_with(resolved(folder))) {
            return Some(Input::Ledger);
        }
        if first.starts_with(b"whit checkpoint ") || CHECKPOINTS.iter().any(|ending| name.ends_with(*ending)) {
            return Some(Input::Checkpoint);
        }
        if first.starts_with(b"whit partition ") {
            return Some(Input::Partition);
        }
        let toml = real.extension().is_some_and(|ending| ending.eq_ignore_ascii_case("toml"));
        toml.then_some(Input::Declaration)
    }
}

fn replaces(output: &Path, input: Input, own: &Path) -> QueryError {
    // A path in the present folder is shown without its dot.
    let [output, own] = [output, own].map(|path| path.strip_prefix(".").unwrap_or(path));
    let (name, words) = (output.display(), input.words());
    let sentence = if output == own {
        format!("`{name}` is {words}, and no output is written over it")
    } else {
        format!("`{name}` is the same file as `{}`, which is {words}, and no output is written over it", own.display())
    };
    QueryError::asked(sentence, "name another file for the output; this one was not touched")
}

fn is_database(first: &[u8]) -> bool {
    first.starts_with(b"SQLite format 3")
}

/// How a file begins; nothing where it cannot be read, or is none but a device or a pipe.
fn first_bytes(path: &Path) -> Vec<u8> {
    let mut first = Vec::new();
    if path.is_file() {
        // What cannot be read shows nothing of what it is.
        let _ = File::open(path).and_then(|file| file.take(16).read_to_end(&mut first));
    }
    first
}

fn with(path: &Path, ending: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(ending);
    name.into()
}

fn folder_of(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Where an output goes.
struct FileIdentity {
    numbers: Option<(u64, u64)>,
    real: PathBuf,
}

impl FileIdentity {
    fn of(path: &Path) -> Self {
        Self { numbers: numbers_of(path), real: resolved(path) }
    }

    /// Whether another path leads to the same file, or would if there were one.
    fn is_at(&self, other: &Path) -> bool {
        match (self.numbers, numbers_of(other)) {
            (None, None) => self.real == resolved(other),
            (own, other) => own == other,
        }
    }
}

/// The numbers by which the system knows a file, whatever it is called, where it has such.
fn numbers_of(path: &Path) -> Option<(u64, u64)> {
    #[cfg(unix)]
    {
        use std::os::unix::fs::MetadataExt;
        std::fs::metadata(path).ok().map(|about| (about.dev(), about.ino()))
    }
    #[cfg(not(unix))]
    {
        let _ = path;
        None
    }
}

/// Where a path leads: through all links, also where there is no file yet, and no folder for it.
fn resolved(path: &Path) -> PathBuf {
    follow(path, 40)
}

fn follow(path: &Path, links: u8) -> PathBuf {
    if let Ok(real) = path.canonicalize() {
        return real;
    }
    if let Ok(target) = std::fs::read_link(path)
        && links > 0
    {
        return follow(&folder_of(path).join(target), links - 1);
    }
    match path.file_name() {
        Some(name) => follow(folder_of(path), links).join(name),
        None => std::path::absolute(path).unwrap_or_else(|_| path.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::super::scratch::Scratch;
    use super::*;

    const DECLARED: &str = r#"
ledger = "books/whit.ledger"

[dataset.visits]
source = ["parts/*.csv", "more.csv"]
unit.user = "user"
unit.element = { column = "word", file = "words.partition" }
unit.protect = "element"
unit.caps = { elements_per_user = 3 }
columns.user = "text"
columns.word = "text"
budget.element = { epsilon = 1.0, delta = 1e-6 }
"#;

    /// A folder with a declaration, two files of data, and a ledger without a head.
    fn room(name: &str) -> Scratch {
        let scratch = Scratch::new(name);
        scratch.write("whit.toml", DECLARED);
        scratch.write("parts/one.csv", "user,word\na,b\n");
        scratch.write("more.csv", "user,word\na,b\n");
        scratch.write("books/whit.ledger", "SQLite format 3\0 and more");
        scratch
    }

    fn refused(inputs: &Inputs, path: &Path, words: &str) {
        let error = inputs.check(path).unwrap_err();
        assert!(error.sentence.contains(words), "{}: {}", path.display(), error.sentence);
        assert!(error.hint.is_some_and(|hint| hint.contains("name another file")));
    }

    #[test]
    fn what_a_declaration_names_is_not_written_over() {
        let scratch = room("inputs_declared");
        let at = |name: &str| scratch.path().join(name);
        let inputs = Inputs::default();
        for name in ["books/whit.ledger", "books/../books/./whit.ledger"] {
            refused(&inputs, &at(name), "a ledger or belongs to one");
        }
        // In another folder than the declaration, and not there yet: the rule is about the declared names.
        let tables = Inputs::default().and(Input::Ledger, &at("books/whit.ledger.log"));
        refused(&tables, &at("books/whit.ledger.log"), "a ledger");
        refused(&inputs, &at("whit.toml"), "a declaration");
        refused(&inputs, &at("more.csv"), "data is read from");
        refused(&inputs, &at("words.partition"), "a partition");
        // It would be written to the declared file before it is moved.
        scratch.write("whit.toml", DECLARED.replace("more.csv", "more.csv.part"));
        scratch.write("more.csv.part", "user,word\na,b\n");
        refused(&inputs, &at("more.csv"), "more.csv.part");
        for name in ["out.csv", "new/out.parquet", "books/whit.ledger.svg", "parts/one.csv.svg"] {
            assert_eq!(inputs.check(&at(name)), Ok(()), "{name}");
        }
    }

    #[test]
    fn what_shows_itself_is_not_written_over_without_a_declaration() {
        let scratch = Scratch::new("inputs_by_themselves");
        let database = scratch.write("any.db", "SQLite format 3\0 and more");
        let inputs = Inputs::default().and_heads_in(&scratch.path().join("state"));
        refused(&inputs, &database, "a ledger");
        for ending in LEDGER_SIBLINGS {
            let path = scratch.write(&format!("any.db{ending}"), "x");
            refused(&inputs, &path, "a ledger");
        }
        refused(&inputs, &scratch.write("state/f00d.head", "x"), "a ledger");
        refused(&inputs, &scratch.write("m.checkpoint", ""), "checkpoint");
        refused(&inputs, &scratch.write("kept", "whit checkpoint 2 f00d\n{}"), "checkpoint");
        refused(&inputs, &scratch.write("words", "whit partition 1\n{}"), "a partition");
        refused(&inputs, &scratch.write("train.toml", "steps = 3"), "a training file");
        for name in ["state/note.txt", "free.head", "out.csv"] {
            assert_eq!(inputs.check(&scratch.write(name, "x")), Ok(()), "{name}");
        }
        // A declaration that is drafted anew takes the place of one, and a partition of another; of nothing else.
        let path = scratch.path().join("train.toml");
        assert_eq!(inputs.clone().may_replace(Input::Declaration).check(&path), Ok(()));
        refused(&inputs.may_replace(Input::Declaration), &database, "a ledger");
    }

    #[cfg(unix)]
    #[test]
    fn links_and_other_paths_to_a_file_are_that_file() {
        use std::os::unix::fs::symlink;
        let scratch = room("inputs_links");
        let at = |name: &str| scratch.path().join(name);
        let inputs = Inputs::default();
        symlink(at("more.csv"), at("soft.parquet")).unwrap();
        std::fs::hard_link(at("more.csv"), at("hard.parquet")).unwrap();
        // A link to what is not there yet: the head would be made by writing through it.
        symlink("books/whit.ledger.head", at("loose.parquet")).unwrap();
        symlink(at("parts"), at("elsewhere")).unwrap();
        refused(&inputs, &at("soft.parquet"), "more.csv");
        refused(&inputs, &at("hard.parquet"), "more.csv");
        refused(&inputs, &at("loose.parquet"), "whit.ledger.head");
        // Where the folder is another and declares nothing, whoever opened the data still knows its files.
        let known = Inputs::default().and(Input::Data, &at("parts/one.csv"));
        refused(&known, &at("elsewhere/one.csv"), "one.csv");
        symlink("itself", at("itself")).unwrap();
        assert_eq!(inputs.check(&at("itself")), Ok(()), "a link to itself leads nowhere");
    }
}
