//! How the files of a data set are written, where that is not what their endings say.

use super::error::DeclareResult;
use super::value::{Entries, TomlValue};
use serde::Serialize;
use std::fmt;

/// What is declared of how files are written. Signs are single bytes of ASCII, so that they are the same in every encoding.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct FileLayout {
    /// What stands between two values of a CSV file; a comma where absent, and a tab in files that end with `.tsv`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delimiter: Option<char>,
    /// What stands around a value with delimiters in it; nothing does where absent.
    pub quote: Option<char>,
    /// What in quotes takes the meaning from the sign that follows; two quotes stand for one in any case.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub escape: Option<char>,
    /// The names of the columns, in the order in which values stand in a line; absent where each file begins with a line of names.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub names: Option<Vec<String>>,
    /// Lines that begin so are no rows.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub comment: Option<char>,
    /// Texts that stand for a value that is missing, in addition to the empty one.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub null: Vec<String>,
    /// How files are packed; by their endings where absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub compression: Option<Compression>,
    /// How letters are written as bytes; UTF-8 where absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub encoding: Option<Encoding>,
}

impl Default for FileLayout {
    fn default() -> Self {
        Self {
            delimiter: None,
            quote: Some('"'),
            escape: None,
            names: None,
            comment: None,
            null: Vec::new(),
            compression: None,
            encoding: None,
        }
    }
}

impl FileLayout {
    /// The keys of `whit.toml` that are read into it.
    pub(super) const KEYS: [&'static str; 8] =
        ["delimiter", "quote", "escape", "header", "comment", "null", "compression", "encoding"];

    /// Whether nothing of it was declared.
    pub fn is_default(&self) -> bool {
        *self == Self::default()
    }

    /// The first key that was declared and has a meaning in CSV files alone.
    pub fn of_csv_alone(&self) -> Option<&'static str> {
        let declared = [
            ("delimiter", self.delimiter.is_some()),
            ("quote", self.quote != Some('"')),
            ("escape", self.escape.is_some()),
            ("header", self.names.is_some()),
            ("comment", self.comment.is_some()),
            ("null", !self.null.is_empty()),
        ];
        declared.into_iter().find(|(_, said)| *said).map(|(key, _)| key)
    }

    /// The first key that was declared and has a meaning in files of lines alone.
    pub fn of_lines_alone(&self) -> Option<&'static str> {
        let packed = self.compression.map(|_| "compression");
        self.of_csv_alone().or(packed).or(self.encoding.map(|_| "encoding"))
    }

    /// Reads it from a data set; `columns` are those with a declared type, in the order in which they are written.
    pub(super) fn read(table: &Entries<'_>, columns: &[String]) -> DeclareResult<Self> {
        let one = |name: &str, hint: &str| table.read(name, |v| sign(v, hint)).map(Option::flatten);
        let delimiter = one("delimiter", "one sign between values: delimiter = \";\", or \"\\t\" for a tab")?;
        let quote_hint = "one sign around values: quote = \"'\", or quote = \"\" where values never stand in quotes";
        let quote = table.read("quote", |v| sign(v, quote_hint))?.unwrap_or(Some('"'));
        let escape = one("escape", "one sign: escape = \"\\\\\"; two quotes stand for one without it")?;
        let escape = escape.filter(|escape| Some(*escape) != quote);
        let comment = one("comment", "the sign that lines begin with which are no rows: comment = \"#\"")?;
        if let (Some(value), None) = (table.get("escape"), quote) {
            let hint = "leave it out, or say what values stand in: quote = \"'\"";
            return Err(value.wrong("{key} has a meaning in quotes alone, and `quote` says that there are none", hint));
        }
        let signs = [("delimiter", Some(delimiter.unwrap_or(','))), ("quote", quote), ("escape", escape)];
        for (at, (name, sign)) in signs.iter().enumerate() {
            let same = signs[..at].iter().find(|(_, other)| sign.is_some() && other == sign);
            if let (Some((other, _)), Some(value)) = (same, table.get(name).or_else(|| table.get(signs[0].0))) {
                let sentence =
                    format!("{{key}}: `{other}` and `{name}` are the same sign, so which one is meant is not clear");
                return Err(value.wrong(&sentence, "give each a sign of its own"));
            }
        }
        Ok(Self {
            delimiter,
            quote,
            escape,
            names: table.read("header", |v| names(v, columns))?.flatten(),
            comment,
            null: table.read("null", nulls)?.unwrap_or_default(),
            compression: table.read("compression", |v| {
                v.word(&Compression::WORDS, "gzip, zstd or none; else the ending decides: `.csv.gz`, `.ndjson.zst`")
            })?,
            encoding: table.read("encoding", |v| v.word(&Encoding::WORDS, Encoding::KNOWN))?,
        })
    }
}

/// One sign of ASCII; nothing where the text is empty.
fn sign(value: &TomlValue<'_>, hint: &str) -> DeclareResult<Option<char>> {
    let text = value.key_text(hint)?;
    let text = if matches!(text.as_str(), "\\t" | "tab") { "\t" } else { &text };
    let mut signs = text.chars();
    match (signs.next(), signs.next()) {
        (None, _) => Ok(None),
        (Some(sign), None)
            if sign.is_ascii() && !matches!(sign, '\n' | '\r' | '\0') && !sign.is_ascii_alphanumeric() =>
        {
            Ok(Some(sign))
        }
        _ => Err(value
            .wrong(&format!("{{key}} is `{text}`, but must be one sign of ASCII that is no letter or digit"), hint)),
    }
}

/// Whether files begin with a line of names; where they do not, the names by place.
fn names(value: &TomlValue<'_>, columns: &[String]) -> DeclareResult<Option<Vec<String>>> {
    let hint = "header = false takes the columns in the order in which they are declared; header = [\"user_id\", \"page\"] names them by place";
    if value.is_array() {
        let names = value.texts(hint)?;
        let twice = names.iter().enumerate().find(|(at, name)| names[..*at].contains(name));
        return match twice {
            Some((_, twice)) => {
                Err(value.wrong(&format!("{{key}} lists `{twice}` twice"), "give each place a name of its own"))
            }
            None if names.is_empty() => Err(value.wrong("{key} lists no names", hint)),
            None => Ok(Some(names)),
        };
    }
    if value.boolean(hint)? {
        return Ok(None);
    }
    if columns.is_empty() {
        return Err(value.wrong(
            "{key} is false, and no column has a declared type, so that no value has a name",
            "declare the columns in the order in which they stand in a line: columns.user_id = \"int\", then the next",
        ));
    }
    Ok(Some(columns.to_vec()))
}

fn nulls(value: &TomlValue<'_>) -> DeclareResult<Vec<String>> {
    let hint = "the text that stands for a missing value, null = \"NA\", or a list of such";
    let items = if value.is_array() { value.items(hint)? } else { vec![value.clone()] };
    items.iter().map(|item| item.key_text(hint)).collect()
}

/// How a file is packed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Compression {
    /// Not at all.
    None,
    /// `.gz`.
    Gzip,
    /// `.zst`.
    Zstd,
}

impl Compression {
    const WORDS: [(&'static str, Self); 3] = [("gzip", Self::Gzip), ("zstd", Self::Zstd), ("none", Self::None)];

    /// The compression that an ending stands for, in any case.
    ///
    /// ```
    /// use whit_core::declare::Compression;
    /// assert_eq!(Compression::of_extension("gz"), Some(Compression::Gzip));
    /// assert_eq!(Compression::of_extension("csv"), None);
    /// ```
    pub fn of_extension(extension: &str) -> Option<Self> {
        match extension.to_ascii_lowercase().as_str() {
            "gz" | "gzip" => Some(Self::Gzip),
            "zst" | "zstd" => Some(Self::Zstd),
            _ => None,
        }
    }
}

impl fmt::Display for Compression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let word = Self::WORDS.iter().find(|(_, own)| own == self).map_or("", |(word, _)| word);
        f.write_str(word)
    }
}

/// How letters are written as bytes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Encoding {
    /// UTF-8, with or without a mark at the beginning of a file.
    #[default]
    #[serde(rename = "utf-8")]
    Utf8,
    /// UTF-16 in the order that the mark at the beginning of a file says; the low byte first where a file has none.
    #[serde(rename = "utf-16")]
    Utf16,
    /// ISO 8859-1: a byte is the letter of its number.
    Latin1,
    /// What Windows calls ANSI in western Europe: Latin-1 with letters in the place of control signs.
    #[serde(rename = "windows-1252")]
    Windows1252,
}

impl Encoding {
    const WORDS: [(&'static str, Self); 4] =
        [("utf-8", Self::Utf8), ("utf-16", Self::Utf16), ("latin1", Self::Latin1), ("windows-1252", Self::Windows1252)];
    const KNOWN: &'static str = "how letters are written as bytes: utf-8 (the default), utf-16, latin1 or windows-1252";
}

impl fmt::Display for Encoding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let word = Self::WORDS.iter().find(|(_, own)| own == self).map_or("", |(word, _)| word);
        f.write_str(word)
    }
}
