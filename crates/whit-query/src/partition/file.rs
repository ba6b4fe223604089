//! Partition files: a list of items and their elements, with a hash that the ledger records.
//!
//! The file is text. The first line says what it is, the second is a JSON object that describes the partition, then there is
//! one line an item (a JSON array of the item and its element's number), and the last line is the BLAKE3 hash of all before it:
//!
//! ```text
//! whit partition 1
//! {"name":"words","kind":{"kmeans":{"dimension":100,"seed":7,"iterations":20}},"items":2,"elements":3,"unknown":2}
//! ["rain",0]
//! ["tea",1]
//! blake3 6f0c…
//! ```

use crate::error::QueryError;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::Write as _;
use std::path::{Path, PathBuf};

const FIRST_LINE: &str = "whit partition 1";
const HASH: &str = "blake3 ";

/// How a partition was made.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PartitionKind {
    /// The value of a column is the element.
    Column {
        /// The column.
        column: String,
    },
    /// A SQL expression over a row is the element.
    Expression {
        /// The text.
        sql: String,
    },
    /// The registrable domain of a column is the element.
    Domain {
        /// The column with URLs or host names.
        column: String,
    },
    /// Items and their elements are listed.
    Dictionary,
    /// Items are listed with their nearest of so many centroids.
    Kmeans {
        /// How many coordinates the embeddings have.
        dimension: u32,
        /// What the choice of the first centres was seeded with.
        seed: u64,
        /// How many iterations were made.
        iterations: u32,
    },
}

/// A partition with its hash, as it is saved and loaded.
///
/// ```
/// use whit_query::partition::PartitionFile;
/// let days = PartitionFile::dictionary("days", [("sat", "weekend"), ("sun", "weekend"), ("mon", "work")], "other")?;
/// assert_eq!(days.element("sun"), days.element("sat"));
/// assert_eq!(days.label(days.element("xyzzy")), "other");
/// assert_eq!(PartitionFile::read(&days.text())?, days);
/// # Ok::<(), whit_query::partition::PartitionFileError>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct PartitionFile {
    name: String,
    kind: PartitionKind,
    items: Vec<String>,
    element_of: Vec<u32>,
    elements: u32,
    unknown: u32,
    labels: Vec<String>,
    hash: String,
    /// Numbers of items, sorted by the item.
    sorted: Vec<u32>,
}

/// Why a partition file could not be made, written or read.
#[derive(Debug, thiserror::Error)]
pub enum PartitionFileError {
    /// An item that stands there twice.
    #[error("the item `{0}` is listed twice, and it can have one element only: leave one of the two out")]
    Twice(String),
    /// Lists of different length, or an element without a number.
    #[error("item {item} has element {element}, but there are {elements} elements, counted from 0")]
    Element {
        /// Which item, from 1.
        item: usize,
        /// Its element.
        element: u32,
        /// How many there are.
        elements: u32,
    },
    /// Not one element for each item.
    #[error("{items} items were given and {elements} elements for them: give one for each")]
    Length {
        /// How many items.
        items: usize,
        /// How many elements.
        elements: usize,
    },
    /// Something else than a partition file.
    #[error("{path} is not a partition file that this version reads: it should start with `{FIRST_LINE}` and does not", path = shown(.0.as_ref()))]
    Foreign(Option<PathBuf>),
    /// A file whose bytes are not those that were written.
    #[error("{path} is damaged: its content hashes to {found}, and its last line says {expected}; make it again or restore it", path = shown(.path.as_ref()))]
    Damaged {
        /// The file.
        path: Option<PathBuf>,
        /// What the last line says.
        expected: String,
        /// What the content gives.
        found: String,
    },
    /// A line that makes no sense, in a file that is not damaged.
    #[error("line {line} of {path} cannot be read: {why}", path = shown(.path.as_ref()))]
    Line {
        /// The file.
        path: Option<PathBuf>,
        /// Which line, from 1.
        line: usize,
        /// What is wrong with it.
        why: String,
    },
    /// The file cannot be read or written.
    #[error("`{path}` could not be {verb}: {error}")]
    Io {
        /// The file.
        path: PathBuf,
        /// What was tried.
        verb: &'static str,
        /// Why not.
        error: std::io::Error,
    },
}

impl From<PartitionFileError> for QueryError {
    fn from(error: PartitionFileError) -> Self {
        let sentence = error.to_string();
        match error {
            PartitionFileError::Io { .. } => Self::asked(sentence, "`PartitionFile::save` writes such files"),
            PartitionFileError::Damaged { .. } => Self::failed(sentence),
            PartitionFileError::Foreign(_) | PartitionFileError::Line { .. } => {
                Self::asked(sentence, "`PartitionFile::save` writes such files; name one of them")
            }
            PartitionFileError::Twice(_) | PartitionFileError::Element { .. } | PartitionFileError::Length { .. } => {
                Self::asked(sentence, "correct the list")
            }
        }
    }
}

fn shown(path: Option<&PathBuf>) -> String {
    path.map_or_else(|| "this text".to_owned(), |path| format!("`{}`", path.display()))
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Header {
    name: String,
    kind: PartitionKind,
    items: u64,
    elements: u32,
    unknown: u32,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    labels: Vec<String>,
}

impl PartitionFile {
    /// A list of items and the numbers of their elements, of which there are `elements`, counted from 0. Values
    /// that are not listed go to `unknown`, which is one of these numbers.
    pub fn listed(
        name: &str,
        kind: PartitionKind,
        items: Vec<String>,
        element_of: Vec<u32>,
        elements: u32,
        unknown: u32,
    ) -> Result<Self, PartitionFileError> {
        Self::new(
            Header { name: name.to_owned(), kind, items: 0, elements, unknown, labels: Vec::new() },
            items,
            element_of,
        )
    }

    /// A list of items and the names of their elements; other values go to the element called `unknown`.
    pub fn dictionary<'a>(
        name: &str,
        elements: impl IntoIterator<Item = (&'a str, &'a str)>,
        unknown: &str,
    ) -> Result<Self, PartitionFileError> {
        let (items, named): (Vec<&str>, Vec<&str>) = elements.into_iter().unzip();
        let mut numbers: BTreeMap<&str, u32> = named.iter().copied().chain([unknown]).map(|name| (name, 0)).collect();
        numbers.values_mut().zip(0..).for_each(|(number, next)| *number = next);
        let header = Header {
            name: name.to_owned(),
            kind: PartitionKind::Dictionary,
            items: 0,
            elements: numbers.len() as u32,
            unknown: numbers[unknown],
            labels: numbers.keys().map(|&name| name.to_owned()).collect(),
        };
        Self::new(
            header,
            items.into_iter().map(str::to_owned).collect(),
            named.iter().map(|name| numbers[name]).collect(),
        )
    }

    /// A partition that an engine evaluates: nothing is listed. `kind` is a column, an expression or a domain.
    pub fn symbolic(name: &str, kind: PartitionKind) -> Result<Self, PartitionFileError> {
        let header = Header { name: name.to_owned(), kind, items: 0, elements: 1, unknown: 0, labels: Vec::new() };
        Self::new(header, Vec::new(), Vec::new())
    }

    fn new(header: Header, items: Vec<String>, element_of: Vec<u32>) -> Result<Self, PartitionFileError> {
        if items.len() != element_of.len() {
            return Err(PartitionFileError::Length { items: items.len(), elements: element_of.len() });
        }
        let elements = header.elements;
        let outside = element_of.iter().position(|&element| element >= elements);
        if let Some(at) = outside {
            return Err(PartitionFileError::Element { item: at + 1, element: element_of[at], elements });
        }
        if header.unknown >= elements {
            return Err(PartitionFileError::Element { item: 0, element: header.unknown, elements });
        }
        if !(header.labels.is_empty() || header.labels.len() == elements as usize) {
            return Err(PartitionFileError::Length { items: elements as usize, elements: header.labels.len() });
        }
        let mut sorted: Vec<u32> = (0..items.len() as u32).collect();
        sorted.sort_unstable_by(|&a, &b| items[a as usize].cmp(&items[b as usize]));
        if let Some(pair) = sorted.windows(2).find(|pair| items[pair[0] as usize] == items[pair[1] as usize]) {
            return Err(PartitionFileError::Twice(items[pair[0] as usize].clone()));
        }
        let Header { name, kind, unknown, labels, .. } = header;
        let mut file = Self { name, kind, items, element_of, elements, unknown, labels, hash: String::new(), sorted };
        file.hash = hash_of(&file.body());
        Ok(file)
    }

    /// What it is called.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// How it was made.
    pub fn kind(&self) -> &PartitionKind {
        &self.kind
    }

    /// The items that are listed.
    pub fn items(&self) -> &[String] {
        &self.items
    }

    /// The number of each item's element.
    pub fn element_of(&self) -> &[u32] {
        &self.element_of
    }

    /// How many elements there are.
    pub fn elements(&self) -> u32 {
        self.elements
    }

    /// The element of values that are not listed.
    pub fn unknown(&self) -> u32 {
        self.unknown
    }

    /// BLAKE3 of the file's content, in hexadecimal digits.
    pub fn hash(&self) -> &str {
        &self.hash
    }

    /// Whether elements are listed item by item; otherwise [`sql`](Self::sql) says what they are.
    pub fn is_listed(&self) -> bool {
        self.sql().is_none()
    }

    /// What a symbolic partition is in SQL.
    pub fn sql(&self) -> Option<String> {
        let quoted = |column: &str| format!("\"{}\"", column.replace('"', "\"\""));
        match &self.kind {
            PartitionKind::Column { column } => Some(quoted(column)),
            PartitionKind::Expression { sql } => Some(sql.clone()),
            PartitionKind::Domain { column } => {
                Some(format!("{}({})", super::domain::REGISTRABLE_DOMAIN, quoted(column)))
            }
            PartitionKind::Dictionary | PartitionKind::Kmeans { .. } => None,
        }
    }

    /// The number of an item in the list.
    pub fn position(&self, item: &str) -> Option<u32> {
        let at = self.sorted.binary_search_by(|&i| self.items[i as usize].as_str().cmp(item)).ok()?;
        Some(self.sorted[at])
    }

    /// The number of a value's element.
    pub fn element(&self, item: &str) -> u32 {
        self.position(item).map_or(self.unknown, |at| self.element_of[at as usize])
    }

    /// What an element is called: its name, or its number.
    pub fn label(&self, element: u32) -> String {
        self.labels.get(element as usize).cloned().unwrap_or_else(|| element.to_string())
    }

    /// How many listed items each element has.
    pub fn cluster_sizes(&self) -> Vec<u64> {
        let mut sizes = vec![0; self.elements as usize];
        self.element_of.iter().for_each(|&element| sizes[element as usize] += 1);
        sizes
    }

    /// All lines but the last.
    fn body(&self) -> String {
        let header = Header {
            name: self.name.clone(),
            kind: self.kind.clone(),
            items: self.items.len() as u64,
            elements: self.elements,
            unknown: self.unknown,
            labels: self.labels.clone(),
        };
        let mut text = format!("{FIRST_LINE}\n{}\n", json(&header));
        for (item, element) in self.items.iter().zip(&self.element_of) {
            let _ = writeln!(text, "[{},{element}]", json(item)); // a String takes everything
        }
        text
    }

    /// The whole file.
    pub fn text(&self) -> String {
        let mut text = self.body();
        let _ = writeln!(text, "{HASH}{}", self.hash);
        text
    }

    /// Reads a file's text, and refuses it unless its hash is that of its content.
    pub fn read(text: &str) -> Result<Self, PartitionFileError> {
        read(text, None)
    }

    /// Loads a file.
    pub fn load(path: &Path) -> Result<Self, PartitionFileError> {
        let failed = |error| PartitionFileError::Io { path: path.to_owned(), verb: "read", error };
        let bytes = std::fs::read(path).map_err(failed)?;
        let text = String::from_utf8(bytes).map_err(|_| PartitionFileError::Foreign(Some(path.to_owned())))?;
        read(&text, Some(path))
    }

    /// Saves the file, whole or not at all: it is written next to its place and then moved there.
    pub fn save(&self, path: &Path) -> Result<(), PartitionFileError> {
        let failed = |error| PartitionFileError::Io { path: path.to_owned(), verb: "written", error };
        let mut partial = path.as_os_str().to_owned();
        partial.push(".part");
        let partial = PathBuf::from(partial);
        let write = || -> std::io::Result<()> {
            if let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
                std::fs::create_dir_all(folder)?;
            }
            let mut file = std::fs::File::create(&partial)?;
            file.write_all(self.text().as_bytes())?;
            file.sync_all()?;
            std::fs::rename(&partial, path)
        };
        write().map_err(failed)
    }
}

fn json(value: &impl Serialize) -> String {
    serde_json::to_string(value).unwrap_or_default() // numbers and texts have no other outcome
}

fn hash_of(body: &str) -> String {
    blake3::hash(body.as_bytes()).to_hex().to_string()
}

fn read(text: &str, path: Option<&Path>) -> Result<PartitionFile, PartitionFileError> {
    let path = || path.map(Path::to_owned);
    if text.lines().next() != Some(FIRST_LINE) {
        return Err(PartitionFileError::Foreign(path()));
    }
    // The last line starts after the last line break but one.
    let end = text.strip_suffix('\n').and_then(|text| text.rfind('\n')).map_or(0, |at| at + 1);
    let (body, last) = text.split_at(end);
    let expected = last.strip_prefix(HASH).map_or("", str::trim_end).to_owned();
    let found = hash_of(body);
    if expected != found {
        let expected = if expected.is_empty() { "nothing".to_owned() } else { expected };
        return Err(PartitionFileError::Damaged { path: path(), expected, found });
    }
    let wrong = |line: usize, why: String| PartitionFileError::Line { path: path(), line, why };
    let mut lines = body.lines().enumerate().skip(1);
    let (_, header) = lines.next().ok_or_else(|| wrong(2, "it is missing".to_owned()))?;
    let header: Header = serde_json::from_str(header).map_err(|why| wrong(2, why.to_string()))?;
    let (mut items, mut element_of) = (Vec::new(), Vec::new());
    for (number, line) in lines {
        let (item, element) = serde_json::from_str(line).map_err(|why| wrong(number + 1, why.to_string()))?;
        items.push(item);
        element_of.push(element);
    }
    if header.items != items.len() as u64 {
        return Err(wrong(2, format!("it speaks of {} items, and {} follow", header.items, items.len())));
    }
    let file = PartitionFile::new(header, items, element_of)?;
    // Bytes that differ and mean the same would make two hashes of one partition.
    if file.hash == found { Ok(file) } else { Err(wrong(2, "the file was not written by whit".to_owned())) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn words() -> PartitionFile {
        let items = ["tea", "rain", "a \"b\"\n\tc", "", "ü"].map(str::to_owned).to_vec();
        let kind = PartitionKind::Kmeans { dimension: 3, seed: 7, iterations: 2 };
        PartitionFile::listed("words", kind, items, vec![0, 1, 1, 0, 3], 5, 4).unwrap()
    }

    #[test]
    fn what_is_saved_is_loaded() {
        let folder = std::env::temp_dir().join(format!("whit-partition-{}", std::process::id()));
        let path = folder.join("deep/words.partition");
        let words = words();
        words.save(&path).unwrap();
        let again = PartitionFile::load(&path).unwrap();
        assert_eq!(again, words);
        assert_eq!(again.hash().len(), 64);
        assert_eq!(again.element("rain"), 1);
        assert_eq!((again.element("snow"), again.position("snow")), (4, None));
        assert_eq!(again.position("ü"), Some(4));
        assert_eq!(again.cluster_sizes(), [2, 2, 0, 1, 0]);
        assert!(!path.with_extension("partition.part").exists());
        std::fs::remove_dir_all(folder).unwrap();
        let message = PartitionFile::load(&path).unwrap_err().to_string();
        assert!(message.contains("could not be read"), "{message}");
    }

    /// Every byte of the file, changed, is found; so is every cut.
    #[test]
    fn a_changed_byte_is_found() {
        let text = words().text().into_bytes();
        for at in 0..text.len() {
            for other in [text[at] ^ 1, b'7', b'\n'] {
                let mut changed = text.clone();
                changed[at] = other;
                // A last line break more or less is no change of content.
                if changed != text && at + 1 < text.len() {
                    assert!(String::from_utf8(changed).map_or(true, |t| PartitionFile::read(&t).is_err()), "byte {at}");
                }
            }
        }
        for cut in 0..text.len() - 1 {
            assert!(
                std::str::from_utf8(&text[..cut]).map_or(true, |t| PartitionFile::read(t).is_err()),
                "cut at {cut}"
            );
        }
        let message = PartitionFile::read(&words().text().replace("rain", "sun")).unwrap_err().to_string();
        assert!(message.starts_with("this text is damaged: its content hashes to "), "{message}");
        assert!(PartitionFile::read("{}").unwrap_err().to_string().contains("should start with `whit partition 1`"));
    }

    #[test]
    fn the_hash_tells_partitions_apart() {
        let words = words();
        let mut element_of = words.element_of().to_vec();
        element_of[0] = 2;
        let items = words.items().to_vec();
        let other = PartitionFile::listed("words", words.kind().clone(), items, element_of, 5, 4).unwrap();
        assert_ne!(other.hash(), words.hash());
    }

    #[test]
    fn a_list_that_makes_no_sense_is_refused() {
        let make = |items: &[&str], elements: &[u32], unknown| {
            let items = items.iter().map(|&item| item.to_owned()).collect();
            PartitionFile::listed("x", PartitionKind::Dictionary, items, elements.to_vec(), 2, unknown)
        };
        assert!(make(&["a", "b"], &[0, 1], 1).is_ok());
        assert_eq!(
            make(&["a", "b", "a"], &[0, 1, 0], 1).unwrap_err().to_string(),
            "the item `a` is listed twice, and it can have one element only: leave one of the two out"
        );
        assert!(make(&["a"], &[2], 1).is_err() && make(&["a"], &[1], 2).is_err() && make(&["a"], &[], 0).is_err());
    }

    #[test]
    fn a_symbolic_partition_says_what_it_is_in_sql() {
        let sql = |kind| PartitionFile::symbolic("x", kind).unwrap().sql();
        assert_eq!(sql(PartitionKind::Domain { column: "url".into() }).unwrap(), "registrable_domain(\"url\")");
        assert_eq!(sql(PartitionKind::Column { column: "a\"b".into() }).unwrap(), "\"a\"\"b\"");
        assert_eq!(words().sql(), None);
    }

    proptest! {
        #[test]
        fn any_items_come_back(items in proptest::collection::btree_set("\\PC{0,12}|[\\x00-\\x7f]{0,4}", 0..20), elements in 1_u32..5) {
            let items: Vec<String> = items.into_iter().collect();
            let element_of = (0..items.len() as u32).map(|i| i % elements).collect();
            let file = PartitionFile::listed("x", PartitionKind::Dictionary, items, element_of, elements, 0).unwrap();
            prop_assert_eq!(PartitionFile::read(&file.text()).unwrap(), file);
        }
    }
}
