//! From what a declaration calls its source to files: a file, a glob, a folder, or several of these.

use crate::error::QueryError;
use datafusion::arrow::datatypes::SchemaRef;
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::path::{Component, Path, PathBuf};
use whit_core::declare::{Compression, Format, nearest};

/// The files of a data set, sorted by the name under which people know them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Found {
    /// What people call each file, relative to `whit.toml` where it lies below it, and where it is.
    pub(crate) files: BTreeMap<String, PathBuf>,
    /// How they are written.
    pub(crate) format: Format,
    /// What a log says of them, where there is one.
    pub(crate) logged: Option<Logged>,
}

/// What the log of a table says, so that no file is asked for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Logged {
    /// The folder of the table, all of which is the table's; none where only copies of its files are on this machine.
    pub(crate) folder: Option<PathBuf>,
    /// Its columns.
    pub(crate) schema: SchemaRef,
    /// What these add to a fingerprint.
    pub(crate) mark: String,
    /// Those whose values are the same in all rows of a file,
    pub(crate) partitions: Vec<String>,
    /// and these values, as text, by the names of files.
    pub(crate) values: BTreeMap<String, BTreeMap<String, Option<String>>>,
}

/// The folder in which a Delta table has its log.
pub(crate) const LOG: &str = "_delta_log";

/// Finds the files of a source. `whose` is what it belongs to, for messages; nothing where it is still to be declared.
///
/// Names that begin with a dot or an underscore are left out of folders and globs (`_SUCCESS`, `.crc`); a folder gives all that
/// is in and below it.
pub(crate) fn find(whose: &str, sources: &[String], format: Option<Format>, base: &Path) -> Result<Found, QueryError> {
    let mut search = Search::new(base, format);
    for source in sources {
        let before = search.files.len();
        search.source(whose, source)?;
        if search.files.len() == before && !search.holds_all_of(source) {
            return Err(no_file(whose, source, base, format));
        }
    }
    let mut formats: BTreeMap<Format, String> = BTreeMap::new();
    for name in search.files.keys() {
        let format = format.map_or_else(|| format_of(whose, name), Ok)?;
        formats.entry(format).or_insert_with(|| shown(name));
    }
    let mut found = formats.into_iter();
    match (found.next(), found.next()) {
        (Some((format, _)), None) => Ok(Found { format, files: search.files, logged: None }),
        (Some((one, first)), Some((other, second))) => Err(QueryError::asked(
            format!(
                "these files{} are of several formats: `{first}` is {one}, `{second}` is {other}",
                of(", the source of", whose)
            ),
            format!("name one kind of file, such as \"*.{one}\", or make two data sets of it"),
        )),
        (None, _) => Err(no_file(whose, sources.first().map_or("", String::as_str), base, format)),
    }
}

struct Search<'a> {
    base: &'a Path,
    format: Option<Format>,
    files: BTreeMap<String, PathBuf>,
    /// The same files by where they are.
    known: BTreeSet<PathBuf>,
    /// Folders of the present source, with what was left of its pattern: links may lead to one folder many times.
    walked: BTreeSet<(PathBuf, usize)>,
}

impl<'a> Search<'a> {
    fn new(base: &'a Path, format: Option<Format>) -> Self {
        Self { base, format, files: BTreeMap::new(), known: BTreeSet::new(), walked: BTreeSet::new() }
    }

    fn source(&mut self, whose: &str, source: &str) -> Result<(), QueryError> {
        let path = self.base.join(source);
        self.walked.clear();
        if path.is_dir() {
            return self.folder(&path);
        }
        if path.exists() {
            return self.add(&path);
        }
        if !source.contains(['*', '?', '[']) {
            return Err(no_file(whose, source, self.base, self.format));
        }
        // The base is taken as it is: only the source is a pattern.
        let mut start = self.base.to_owned();
        let mut pattern: Vec<String> = Vec::new();
        for part in Path::new(source).components() {
            match part {
                Component::Normal(name) => pattern.push(name.to_string_lossy().into_owned()),
                Component::ParentDir if pattern.is_empty() => start.push(".."),
                Component::ParentDir => pattern.push("..".to_owned()),
                Component::CurDir => {}
                Component::RootDir | Component::Prefix(_) => start = PathBuf::from(part.as_os_str()),
            }
        }
        self.glob(&start, &pattern)
    }

    fn glob(&mut self, at: &Path, pattern: &[String]) -> Result<(), QueryError> {
        let Some((first, rest)) = pattern.split_first() else {
            return if at.is_dir() { self.folder(at) } else { self.add(at) };
        };
        if !first.contains(['*', '?', '[']) {
            let next = at.join(first);
            return if next.exists() { self.glob(&next, rest) } else { Ok(()) };
        }
        if !at.as_os_str().is_empty() && (!at.is_dir() || !self.walk(at, pattern.len())?) {
            return Ok(());
        }
        if first == "**" {
            self.glob(at, rest)?; // no folder at all
        }
        for (name, path) in entries(at)? {
            let name = name.to_string_lossy();
            if first == "**" {
                if path.is_dir() {
                    self.glob(&path, pattern)?;
                }
            } else if matches(first, &name) && (rest.is_empty() || path.is_dir()) {
                self.glob(&path, rest)?;
            }
        }
        Ok(())
    }

    /// Whether a folder is met for the first time with so much of the pattern left.
    fn walk(&mut self, folder: &Path, left: usize) -> Result<bool, QueryError> {
        let real = folder.canonicalize().map_err(|error| unreadable(&self.name(folder), &error))?;
        Ok(self.walked.insert((real, left)))
    }

    fn folder(&mut self, folder: &Path) -> Result<(), QueryError> {
        if !self.walk(folder, 0)? {
            return Ok(());
        }
        if folder.join(LOG).is_dir() {
            let name = shown(&self.name(folder));
            return Err(QueryError::asked(
                format!("`{name}` is a Delta table, whose log alone says which files are its own"),
                format!("name it by itself, as in source = \"{name}\", and leave `format` out"),
            ));
        }
        for (_, path) in entries(folder)? {
            if path.is_dir() {
                self.folder(&path)?;
                continue;
            }
            let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
            let (extension, known) = (endings(&name).0, format_by(&name));
            // Parts of a table often have no extension; then the format has to be said.
            if known
                .map_or(self.format.is_some() && extension.is_none(), |known| self.format.is_none_or(|f| f == known))
            {
                self.add(&path)?;
            }
        }
        Ok(())
    }

    fn add(&mut self, path: &Path) -> Result<(), QueryError> {
        // One file that two sources name is one file: its rows count once.
        let real = path.canonicalize().map_err(|error| unreadable(&self.name(path), &error))?;
        if self.known.insert(real.clone()) {
            let mut name = self.name(path);
            // Letters that are none are all written alike, and a file is a file of its own whatever it is called.
            while self.files.contains_key(&name) {
                name = format!("again/{name}");
            }
            self.files.insert(name, real);
        }
        Ok(())
    }

    fn name(&self, path: &Path) -> String {
        path.strip_prefix(self.base).unwrap_or(path).to_string_lossy().into_owned()
    }

    /// Whether a source that gave no new file gave some that were there already.
    fn holds_all_of(&self, source: &str) -> bool {
        let mut again = Search::new(self.base, self.format);
        again.source("", source).is_ok() && !again.files.is_empty()
    }
}

/// The visible entries of a folder, by name.
fn entries(folder: &Path) -> Result<BTreeMap<OsString, PathBuf>, QueryError> {
    let folder = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
    let wrong = |error| unreadable(&folder.display().to_string(), &error);
    let mut found = BTreeMap::new();
    for entry in std::fs::read_dir(folder).map_err(wrong)? {
        let entry = entry.map_err(wrong)?;
        let name = entry.file_name();
        if !name.to_string_lossy().starts_with(['.', '_']) {
            found.insert(name, entry.path());
        }
    }
    Ok(found)
}

/// The ending that says how a file is written, and how it is packed by the ending behind that.
pub(crate) fn endings(name: &str) -> (Option<&str>, Option<Compression>) {
    let ending = |name: &'_ Path| name.extension().and_then(|ending| ending.to_str()).map(str::len);
    let last = |name: &str| ending(Path::new(name)).map(|length| name.len() - length);
    let Some(at) = last(name) else { return (None, None) };
    match Compression::of_extension(&name[at..]) {
        None => (Some(&name[at..]), None),
        Some(packed) => {
            let inner = &name[..at - 1];
            (last(inner).map(|at| &inner[at..]), Some(packed))
        }
    }
}

/// The format that the ending of a name stands for. Parquet is packed within, and never as a whole.
fn format_by(name: &str) -> Option<Format> {
    let (ending, packed) = endings(name);
    ending.and_then(Format::of_extension).filter(|format| packed.is_none() || *format != Format::Parquet)
}

/// What the names of folders say of columns that they are named after, as in `day=2024-01-01/part-0.csv`; nothing of a column that no folder names, or that a folder
/// says is missing.
pub(crate) fn folders_of(name: &str, columns: &[String]) -> BTreeMap<String, Option<String>> {
    let mut found: BTreeMap<String, Option<String>> = columns.iter().map(|column| (column.clone(), None)).collect();
    let folders = Path::new(name).parent().map(Path::components).into_iter().flatten();
    for folder in folders.filter_map(|folder| folder.as_os_str().to_str()) {
        if let Some((column, value)) = folder.split_once('=')
            && let Some(text) = found.get_mut(&plain(column).unwrap_or_default())
        {
            *text = plain(value).filter(|value| value != "__HIVE_DEFAULT_PARTITION__");
        }
    }
    found
}

/// The columns that the folders of all these files are named after, in order.
pub(crate) fn named_after<'a>(names: impl Iterator<Item = &'a String>) -> Vec<String> {
    let mut columns: Vec<String> = Vec::new();
    for name in names {
        let folders = Path::new(name).parent().map(Path::components).into_iter().flatten();
        let named =
            folders.filter_map(|folder| folder.as_os_str().to_str()?.split_once('=').and_then(|(own, _)| plain(own)));
        for column in named.filter(|column| !column.is_empty()) {
            if !columns.contains(&column) {
                columns.push(column);
            }
        }
    }
    columns
}

/// A name with `%3A` for what no folder may be called.
pub(super) fn plain(name: &str) -> Option<String> {
    let (mut bytes, mut rest) = (Vec::new(), name.as_bytes());
    while let Some((&first, behind)) = rest.split_first() {
        let code = behind.get(..2).filter(|_| first == b'%').and_then(|code| std::str::from_utf8(code).ok());
        let code = code.filter(|code| code.bytes().all(|digit| digit.is_ascii_hexdigit()));
        if let Some(byte) = code.and_then(|code| u8::from_str_radix(code, 16).ok()) {
            bytes.push(byte);
            rest = &behind[2..];
        } else {
            bytes.push(first);
            rest = behind;
        }
    }
    String::from_utf8(bytes).ok()
}

/// A name as messages tell it: a folder that is named after a value is as private as the rows in it.
pub(crate) fn shown(name: &str) -> String {
    let part = |part: &str| part.split_once('=').map_or(part.to_owned(), |(column, _)| format!("{column}=…"));
    // The last may be a file, which is called as it is.
    let (folders, file) = name.rsplit_once('/').map_or((None, name), |(folders, file)| (Some(folders), file));
    let file = if format_by(file).is_some() { file.to_owned() } else { part(file) };
    let folders = folders.map(|folders| folders.split('/').map(part).collect::<Vec<_>>().join("/") + "/");
    folders.unwrap_or_default() + &file
}

fn format_of(whose: &str, name: &str) -> Result<Format, QueryError> {
    let extension = Path::new(name).extension().map(|extension| extension.to_string_lossy().into_owned());
    let known: Vec<&str> = Format::ALL.iter().flat_map(|format| format.extensions()).copied().collect();
    let hint = match extension.as_deref() {
        Some("bz2" | "xz" | "zip" | "7z") => {
            "unpack it first, or pack it as gzip or zstd; Parquet is compressed within".to_owned()
        }
        Some("gz" | "gzip" | "zst" | "zstd") => {
            "an ending before it says how the file is written, as in `visits.csv.gz`; else say it: format = \"csv\"; Parquet is compressed within".to_owned()
        }
        // A draft is made of files that say by their names how they are written.
        _ if whose.is_empty() => format!(
            "known are: {}; give the file such an ending, or write whit.toml by hand, with format = \"csv\" below its source",
            known.join(", ")
        ),
        _ => format!("known are: {}; for another name say how it is written: format = \"csv\"", known.join(", ")),
    };
    let told = shown(name);
    match extension {
        None => Err(QueryError::asked(format!("`{told}`{} has no extension", of(", a source of", whose)), hint)),
        Some(extension) => format_by(name).ok_or_else(|| {
            QueryError::asked(
                format!("`{told}`{} has an extension that is not known: `.{extension}`", of(", a source of", whose)),
                hint,
            )
        }),
    }
}

/// Whose a file is, as a part of a sentence; nothing where it belongs to none yet.
fn of(words: &str, whose: &str) -> String {
    if whose.is_empty() { String::new() } else { format!("{words} `{whose}`,") }
}

fn no_file(whose: &str, source: &str, base: &Path, format: Option<Format>) -> QueryError {
    let path = base.join(source);
    if path.is_dir() {
        let kinds = format.map_or("Parquet, CSV or NDJSON".to_owned(), |format| format.to_string());
        return QueryError::asked(
            format!("the folder `{source}`{} has no file that is {kinds}", of(", the source of", whose)),
            "name another folder, or the files by a glob together with `format`",
        );
    }
    // The nearest thing in the same folder, for a name that was misspelt.
    let siblings = path.parent().and_then(|folder| entries(folder).ok()).unwrap_or_default();
    let wanted = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    // A folder that is named after a value is no name that is told.
    let names = siblings.keys().filter_map(|name| name.to_str()).filter(|name| !name.contains('='));
    let hint = match nearest(&wanted, names) {
        Some(near) => format!("did you mean `{near}`?"),
        None => "a source is looked for relative to the folder of `whit.toml`".to_owned(),
    };
    QueryError::asked(format!("no file matches `{source}`{}", of(", the source of", whose).trim_end_matches(',')), hint)
}

pub(crate) fn unreadable(name: &str, error: &std::io::Error) -> QueryError {
    let name = shown(name);
    if error.kind() == std::io::ErrorKind::InvalidData {
        let hint = "pack it again, or say how it is packed: compression = \"gzip\", \"zstd\" or \"none\"";
        return QueryError::asked(format!("`{name}` cannot be read: {error}"), hint);
    }
    QueryError::asked(format!("`{name}` cannot be read: {error}"), "check that it is there and that you may read it")
}

/// Whether a name matches a pattern with `*`, `?` and `[a-z]` or `[!a-z]`.
fn matches(pattern: &str, name: &str) -> bool {
    let (pattern, name): (Vec<char>, Vec<char>) = (pattern.chars().collect(), name.chars().collect());
    // Where the last `*` stood, and how much of the name it has taken so far: to go back to on a mismatch.
    let (mut p, mut n, mut star) = (0, 0, None);
    while n < name.len() {
        let step = match pattern.get(p) {
            Some('*') => {
                star = Some((p, n));
                p += 1;
                continue;
            }
            Some('?') => Some(1),
            Some('[') => set(&pattern[p..], name[n]),
            Some(&letter) if letter == name[n] => Some(1),
            Some(_) | None => None,
        };
        match (step, star) {
            (Some(step), _) => (p, n) = (p + step, n + 1),
            (None, Some((at, taken))) => {
                star = Some((at, taken + 1));
                (p, n) = (at + 1, taken + 1);
            }
            (None, None) => return false,
        }
    }
    pattern[p..].iter().all(|&letter| letter == '*')
}

/// If `letter` is in the set that `pattern` begins with: how long the set is. A bracket that never closes is a bracket.
fn set(pattern: &[char], letter: char) -> Option<usize> {
    let close = pattern.iter().skip(2).position(|&c| c == ']').map(|at| at + 2);
    let Some(close) = close else { return (letter == '[').then_some(1) };
    let inside = &pattern[1..close];
    let (inside, wanted) = if inside[0] == '!' { (&inside[1..], false) } else { (inside, true) };
    let mut found = false;
    let mut at = 0;
    while at < inside.len() {
        if at + 2 < inside.len() && inside[at + 1] == '-' {
            found |= (inside[at]..=inside[at + 2]).contains(&letter);
            at += 3;
        } else {
            found |= inside[at] == letter;
            at += 1;
        }
    }
    (found == wanted).then_some(close + 1)
}

#[cfg(test)]
mod tests {
    use super::super::scratch::Scratch;
    use super::*;

    /// Two names that are no text look alike, and hid one another: with another user's folder 499 rows went.
    #[cfg(unix)]
    #[test]
    fn names_that_are_no_text_are_files_of_their_own() {
        use std::os::unix::ffi::OsStrExt;
        let scratch = Scratch::new("files_no_text");
        let names: [&[u8]; 4] = [b"c=\xff", b"c=\xfe", "c=\u{fffd}".as_bytes(), b"c=at"];
        for name in names {
            let folder = scratch.path().join("d").join(std::ffi::OsStr::from_bytes(name));
            std::fs::create_dir_all(&folder).unwrap();
            std::fs::write(folder.join("1.csv"), "x\n1\n").unwrap();
        }
        for source in ["d", "d/*/1.csv", "d/**/*.csv"] {
            let found = find("t", &[source.to_owned()], None, scratch.path()).unwrap();
            assert_eq!(found.files.len(), 4, "{source}: {:?}", found.files);
            assert_eq!(found.files.values().collect::<BTreeSet<_>>().len(), 4);
        }
    }

    #[test]
    fn what_a_folder_is_named_after_is_not_told() {
        assert_eq!(shown("d/c=secret/1.csv"), "d/c=…/1.csv");
        assert_eq!(shown("c=secret"), "c=…");
        assert_eq!(plain("100%+5%41").as_deref(), Some("100%+5A"));
        let scratch = Scratch::new("files_told");
        for name in ["d/c=secret/1.csv", "d/c=hidden/1.ndjson", "d/c=veiled/1.txt"] {
            scratch.write(name, "x\n1\n");
        }
        for source in ["d", "d/*/*", "d/c=secre", "d/*/*.txt"] {
            let error = find("t", &[source.to_owned()], None, scratch.path()).err();
            let told = error.map(|error| format!("{} {}", error.sentence, error.hint.unwrap_or_default()));
            let told = told.unwrap_or_default().replace("d/c=secre`", "");
            for value in ["secret", "hidden", "veiled"] {
                assert!(!told.contains(value), "{source}: {told}");
            }
        }
    }

    #[test]
    fn patterns_match_as_shells_do() {
        for (pattern, name, expected) in [
            ("*.parquet", "a.parquet", true),
            ("*.parquet", "a.parquet.tmp", false),
            ("part-?.csv", "part-3.csv", true),
            ("part-?.csv", "part-33.csv", false),
            ("2024-0[1-3]*", "2024-02-11.csv", true),
            ("2024-0[1-3]*", "2024-04-11.csv", false),
            ("[!a]b", "ab", false),
            ("[!a]b", "cb", true),
            ("[]x]", "]", true),
            ("[x", "[x", true),
            ("*a*b*c*", "xxaxxbxxcxx", true),
            ("*a*b*c*", "xxaxxcxxbxx", false),
            ("", "", true),
            ("*", "", true),
            ("?", "", false),
            ("ü*", "über", true),
        ] {
            assert_eq!(matches(pattern, name), expected, "{pattern} against {name}");
        }
    }

    fn names(scratch: &Scratch, sources: &[&str], format: Option<Format>) -> Result<Vec<String>, QueryError> {
        let sources: Vec<String> = sources.iter().map(|&source| source.to_owned()).collect();
        find("visits", &sources, format, scratch.path()).map(|found| found.files.into_keys().collect())
    }

    #[test]
    fn files_globs_folders_and_lists_are_found_in_order() {
        let scratch = Scratch::new("files_in_order");
        for name in
            ["b.csv", "a.csv", "in/x.csv", "in/deep/y.csv", "in/_tmp.csv", "in/.z.csv", "in/notes.txt", "[k].csv"]
        {
            scratch.write(name, "id\n1\n");
        }
        let found = |sources: &[&str]| names(&scratch, sources, None).unwrap();
        assert_eq!(found(&["a.csv"]), ["a.csv"]);
        assert_eq!(found(&["*.csv"]), ["[k].csv", "a.csv", "b.csv"]);
        assert_eq!(found(&["[k].csv"]), ["[k].csv"], "what is there by its name is no pattern");
        assert_eq!(found(&["[ab].csv"]), ["a.csv", "b.csv"]);
        assert_eq!(found(&["in"]), ["in/deep/y.csv", "in/x.csv"]);
        assert_eq!(found(&["**/*.csv"]), ["[k].csv", "a.csv", "b.csv", "in/deep/y.csv", "in/x.csv"]);
        let error = names(&scratch, &["in/*"], None).unwrap_err();
        assert!(error.sentence.contains("`in/notes.txt`"), "a glob names what it names: {error}");
        assert_eq!(found(&["a.csv", "*.csv", "a.csv"]), ["[k].csv", "a.csv", "b.csv"], "once each");
    }

    #[test]
    fn what_is_not_found_is_said() {
        let scratch = Scratch::new("files_not_found");
        scratch.write("visits.csv", "id\n1\n");
        scratch.write("old/visits.parquet", "");
        scratch.write("more/visits.xlsx", "");
        scratch.write("packed.csv.xz", "");
        scratch.write("packed.parquet.gz", "");
        scratch.write("packed.gz", "");
        scratch.write("plain", "id\n1\n");
        let message = |sources: &[&str], format| {
            let error = names(&scratch, sources, format).unwrap_err();
            format!("{} | {}", error.sentence, error.hint.unwrap())
        };
        assert_eq!(
            message(&["visit.csv"], None),
            "no file matches `visit.csv`, the source of `visits` | did you mean `visits.csv`?"
        );
        assert!(message(&["*.ndjson"], None).starts_with("no file matches `*.ndjson`"));
        assert!(message(&["visits.csv", "*.ndjson"], None).starts_with("no file matches `*.ndjson`"));
        assert!(message(&["nowhere/*.csv"], None).starts_with("no file matches `nowhere/*.csv`"));
        assert!(
            message(&["more"], None).contains("the folder `more`, the source of `visits`, has no file that is Parquet")
        );
        assert!(message(&["more/visits.xlsx"], None).contains("an extension that is not known: `.xlsx`"));
        assert!(message(&["packed.csv.xz"], None).contains("unpack it first, or pack it as gzip or zstd"));
        assert!(message(&["packed.parquet.gz"], None).contains("Parquet is compressed within"));
        assert!(message(&["packed.gz"], None).contains("as in `visits.csv.gz`"));
        assert_eq!(names(&scratch, &["packed.gz"], Some(Format::Csv)).unwrap(), ["packed.gz"]);
        assert!(message(&["plain"], None).contains("has no extension"));
        assert_eq!(names(&scratch, &["plain"], Some(Format::Csv)).unwrap(), ["plain"]);
        assert!(message(&["visits.csv", "old"], None).contains("`old/visits.parquet` is parquet, `visits.csv` is csv"));
    }

    #[cfg(unix)]
    #[test]
    fn a_circle_of_links_ends() {
        let scratch = Scratch::new("files_circle");
        scratch.write("in/a.csv", "id\n1\n");
        for again in ["in/again", "in/and_again"] {
            std::os::unix::fs::symlink(scratch.path().join("in"), scratch.path().join(again)).unwrap();
        }
        for source in ["in", "**/*.csv", "in/*"] {
            assert_eq!(
                names(&scratch, &[source], None).unwrap(),
                ["in/a.csv"],
                "one file under many names is one file"
            );
        }
    }

    #[test]
    fn endings_say_how_a_file_is_written_and_packed() {
        for (name, expected) in [
            ("a.csv", (Some("csv"), None)),
            ("in.d/a.tsv.gz", (Some("tsv"), Some(Compression::Gzip))),
            ("a.ndjson.ZST", (Some("ndjson"), Some(Compression::Zstd))),
            ("a.gz", (None, Some(Compression::Gzip))),
            ("v1.2/a", (None, None)),
        ] {
            assert_eq!(endings(name), expected, "{name}");
        }
    }

    #[test]
    fn folders_say_what_they_are_named_after() {
        let columns = ["day", "land", "at"].map(str::to_owned);
        let found = folders_of("visits/day=2024-01-01/land=__HIVE_DEFAULT_PARTITION__/other=1/part=0.csv", &columns);
        assert_eq!(found["day"].as_deref(), Some("2024-01-01"));
        assert_eq!((&found["land"], &found["at"], found.len()), (&None, &None, 3));
        let found = folders_of("at=2024-01-01%2010%3A00/day=a=b/x.csv", &columns);
        assert_eq!((found["at"].as_deref(), found["day"].as_deref()), (Some("2024-01-01 10:00"), Some("a=b")));
        assert_eq!(folders_of("day=%ff/x", &columns)["day"], None, "no text is no value");
        assert_eq!(shown("v/day=2024-01-01/part=0.csv"), "v/day=…/part=0.csv");
        assert_eq!(shown("part=0.csv"), "part=0.csv");
    }
}
