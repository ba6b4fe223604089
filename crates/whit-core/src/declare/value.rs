//! TOML values that know their key and their line, so that every mistake can be named.

use super::{DeclareError, nearest};
use std::collections::BTreeMap;
use std::ops::Range;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// One value, its full key, and the text that it stands in.
#[derive(Clone)]
pub(super) struct TomlValue<'a> {
    text: &'a str,
    key: String,
    span: Range<usize>,
    toml: &'a DeValue<'a>,
}

/// A table whose keys are all among the known ones.
pub(super) struct Entries<'a> {
    place: KeyPosition<'a>,
    values: BTreeMap<&'a str, TomlValue<'a>>,
}

/// Where something stands: its full key and its line.
#[derive(Clone)]
pub(super) struct KeyPosition<'a> {
    text: &'a str,
    key: String,
    start: usize,
}

impl KeyPosition<'_> {
    /// A mistake here. `{key}` in the sentence stands for the full key in quotes.
    pub(super) fn wrong(&self, sentence: &str, hint: impl Into<String>) -> DeclareError {
        let key = format!("`{}`", self.key);
        DeclareError::new(sentence.replace("{key}", &key), hint).at(line_of(self.text, self.start))
    }

    /// The place of an entry below this one that is not there.
    pub(super) fn below(&self, name: &str) -> Self {
        KeyPosition { key: joined(&self.key, name), ..self.clone() }
    }
}

/// Parses a whole text; syntax errors become sentences with a line.
pub(super) fn parse(text: &str) -> Result<Spanned<DeTable<'_>>, DeclareError> {
    DeTable::parse(text).map_err(|error| {
        let message = error.message().lines().next().unwrap_or("it is not TOML").to_owned();
        let line = line_of(text, error.span().map_or(0, |span| span.start));
        let there = text.lines().nth(line - 1).unwrap_or("").trim();
        let hint = if message.contains("duplicate key") {
            "two entries have one name, so which one counts is not clear: rename one or leave it out"
        } else {
            "a line is `key = value`, text stands in quotes, and `[dataset.NAME]` begins a data set"
        };
        DeclareError::new(format!("this is not TOML: {message} at `{there}`"), hint).at(line)
    })
}

/// The top of a text.
pub(super) fn root<'a>(text: &'a str, table: &'a DeTable<'a>, known: &[&str]) -> Result<Entries<'a>, DeclareError> {
    Entries::new(KeyPosition { text, key: String::new(), start: 0 }, table, Some(known))
}

fn line_of(text: &str, offset: usize) -> usize {
    // By bytes: an offset need not fall between two characters.
    1 + text.as_bytes().iter().take(offset).filter(|&&byte| byte == b'\n').count()
}

/// Keys that need quotes in TOML get them.
fn joined(key: &str, name: &str) -> String {
    let plain = !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-');
    let name = if plain { name.to_owned() } else { format!("{name:?}") };
    if key.is_empty() { name } else { format!("{key}.{name}") }
}

impl<'a> Entries<'a> {
    fn new(place: KeyPosition<'a>, table: &'a DeTable<'a>, known: Option<&[&str]>) -> Result<Self, DeclareError> {
        let mut values = BTreeMap::new();
        for (name, value) in table {
            let (text, key) = (place.text, joined(&place.key, name.get_ref()));
            if let Some(known) = known.filter(|known| !known.contains(&name.get_ref().as_ref())) {
                let all = known.join(", ");
                let hint = match nearest(name.get_ref(), known.iter().copied()) {
                    Some(near) => format!("did you mean `{near}`? Known here: {all}"),
                    None => format!("known here: {all}"),
                };
                let place = KeyPosition { text, key, start: name.span().start };
                return Err(place.wrong("{key} is not a key that is known here", hint));
            }
            let name: &'a str = name.get_ref();
            values.insert(name, TomlValue { text, key, span: value.span(), toml: value.get_ref() });
        }
        Ok(Self { place, values })
    }

    /// The place of the table itself.
    pub(super) fn place(&self) -> &KeyPosition<'a> {
        &self.place
    }

    /// An entry, if it is there.
    pub(super) fn get(&self, name: &str) -> Option<&TomlValue<'a>> {
        self.values.get(name)
    }

    /// An entry read in some way, if it is there.
    pub(super) fn read<T>(
        &self,
        name: &str,
        read: impl FnOnce(&TomlValue<'a>) -> Result<T, DeclareError>,
    ) -> Result<Option<T>, DeclareError> {
        self.get(name).map(read).transpose()
    }

    /// All entries, by name.
    pub(super) fn iter(&self) -> impl Iterator<Item = (&'a str, &TomlValue<'a>)> {
        self.values.iter().map(|(&name, value)| (name, value))
    }

    /// The names of all entries, in the order in which they stand in the text.
    pub(super) fn as_written(&self) -> Vec<String> {
        let mut names: Vec<(usize, &str)> = self.values.iter().map(|(name, value)| (value.span.start, *name)).collect();
        names.sort_unstable();
        names.into_iter().map(|(_, name)| name.to_owned()).collect()
    }

    /// Whether nothing is in it.
    pub(super) fn is_empty(&self) -> bool {
        self.values.is_empty()
    }
}

impl<'a> TomlValue<'a> {
    /// Where the value stands.
    pub(super) fn place(&self) -> KeyPosition<'a> {
        KeyPosition { text: self.text, key: self.key.clone(), start: self.span.start }
    }

    /// A mistake in this value. `{key}` in the sentence stands for the full key in quotes.
    pub(super) fn wrong(&self, sentence: &str, hint: impl Into<String>) -> DeclareError {
        self.place().wrong(sentence, hint)
    }

    fn not(&self, expected: &str, hint: impl Into<String>) -> DeclareError {
        let article = match self.toml {
            DeValue::Integer(_) | DeValue::Array(_) => "an",
            DeValue::String(_) | DeValue::Float(_) | DeValue::Boolean(_) | DeValue::Datetime(_) | DeValue::Table(_) => {
                "a"
            }
        };
        self.wrong(&format!("{{key}} must be {expected}, and is {article} {}", self.toml.type_str()), hint)
    }

    /// The entries of a table whose keys are known.
    pub(super) fn entries(&self, known: &[&str]) -> Result<Entries<'a>, DeclareError> {
        Entries::new(self.place(), self.table(&format!("known here: {}", known.join(", ")))?, Some(known))
    }

    /// The entries of a table whose keys are names of the writer's own.
    pub(super) fn names(&self, hint: &str) -> Result<Entries<'a>, DeclareError> {
        Entries::new(self.place(), self.table(hint)?, None)
    }

    fn table(&self, hint: &str) -> Result<&'a DeTable<'a>, DeclareError> {
        self.toml.as_table().ok_or_else(|| self.not("a table of keys and values", hint))
    }

    /// Whether it is a table.
    pub(super) fn is_table(&self) -> bool {
        self.toml.is_table()
    }

    /// Whether it is a list.
    pub(super) fn is_array(&self) -> bool {
        self.toml.is_array()
    }

    /// Whether it is text, or a moment, which TOML also takes without quotes.
    pub(super) fn is_text(&self) -> bool {
        self.toml.is_str() || self.toml.is_datetime()
    }

    /// Text that says something.
    pub(super) fn text(&self, hint: &str) -> Result<String, DeclareError> {
        let text = self.toml.as_str().ok_or_else(|| self.not("text in quotes", hint))?.trim();
        if text.is_empty() {
            return Err(self.wrong("{key} is empty", hint));
        }
        Ok(text.to_owned())
    }

    /// One word of a list of them.
    pub(super) fn word<T: Copy>(&self, words: &[(&str, T)], hint: &str) -> Result<T, DeclareError> {
        let text = self.text(hint)?;
        words.iter().find(|(word, _)| *word == text).map(|&(_, meaning)| meaning).ok_or_else(|| {
            let all: Vec<&str> = words.iter().map(|&(word, _)| word).collect();
            let hint = match nearest(&text, all.iter().copied()) {
                Some(near) => format!("did you mean `{near}`? Known here: {}", all.join(", ")),
                None => format!("known here: {}", all.join(", ")),
            };
            self.wrong(&format!("{{key}} is `{text}`, which is not known"), hint)
        })
    }

    /// The items of a list.
    pub(super) fn items(&self, hint: &str) -> Result<Vec<Self>, DeclareError> {
        let array = self.toml.as_array().ok_or_else(|| self.not("a list in brackets", hint))?;
        let item = |value: &'a Spanned<DeValue<'a>>| TomlValue {
            text: self.text,
            key: self.key.clone(),
            span: value.span(),
            toml: value.get_ref(),
        };
        Ok(array.iter().map(item).collect())
    }

    /// A list of texts that say something.
    pub(super) fn texts(&self, hint: &str) -> Result<Vec<String>, DeclareError> {
        self.items(hint)?.iter().map(|item| item.text(hint)).collect()
    }

    /// A finite number.
    pub(super) fn number(&self, hint: &str) -> Result<f64, DeclareError> {
        let number = match self.toml {
            // Decimals are read by their digits, as floats are, so that both round alike.
            DeValue::Integer(integer) if integer.radix() == 10 => integer.as_str().parse().ok(),
            DeValue::Integer(integer) => {
                i64::from_str_radix(integer.as_str(), integer.radix()).ok().map(|whole| whole as f64)
            }
            DeValue::Float(float) => float.as_str().parse::<f64>().ok(),
            DeValue::String(_) | DeValue::Boolean(_) | DeValue::Datetime(_) | DeValue::Array(_) | DeValue::Table(_) => {
                return Err(self.not("a number", hint));
            }
        };
        match number {
            Some(number) if number.is_finite() => Ok(number),
            Some(number) if number.is_nan() => Err(self.wrong("{key} is not a number (NaN)", hint)),
            Some(_) | None => Err(self.wrong("{key} must be a finite number", hint)),
        }
    }

    /// A whole number, at least 1.
    pub(super) fn count(&self, hint: &str) -> Result<u64, DeclareError> {
        let integer = self.toml.as_integer().ok_or_else(|| self.not("a whole number, at least 1", hint))?;
        match i64::from_str_radix(integer.as_str(), integer.radix()) {
            Ok(count) if count >= 1 => Ok(count.unsigned_abs()),
            Ok(count) => Err(self.wrong(&format!("{{key}} is {count}, but must be a whole number, at least 1"), hint)),
            Err(_) => Err(self.wrong("{key} does not fit into 64 bits", hint)),
        }
    }

    /// A whole number, at least 0.
    pub(super) fn whole(&self, hint: &str) -> Result<u64, DeclareError> {
        let integer = self.toml.as_integer().ok_or_else(|| self.not("a whole number", hint))?;
        let found = i64::from_str_radix(integer.as_str(), integer.radix()).ok();
        let fits = found.and_then(|whole| u64::try_from(whole).ok());
        fits.ok_or_else(|| self.wrong("{key} must be a whole number, at least 0", hint))
    }

    /// Yes or no.
    pub(super) fn boolean(&self, hint: &str) -> Result<bool, DeclareError> {
        self.toml.as_bool().ok_or_else(|| self.not("true or false", hint))
    }

    /// A group key: text, also empty, or a number or boolean as its text.
    pub(super) fn key_text(&self, hint: &str) -> Result<String, DeclareError> {
        match self.toml {
            DeValue::String(text) => Ok(text.clone().into_owned()),
            DeValue::Integer(integer) => i64::from_str_radix(integer.as_str(), integer.radix())
                .map(|whole| whole.to_string())
                .map_err(|_| self.wrong("{key} does not fit into 64 bits", hint)),
            DeValue::Float(_) => self.number(hint).map(|number| number.to_string()),
            DeValue::Boolean(yes) => Ok(yes.to_string()),
            DeValue::Datetime(moment) => Ok(moment.to_string()),
            DeValue::Array(_) | DeValue::Table(_) => Err(self.not("text, a number or a boolean", hint)),
        }
    }
}
