//! What one whit is: its key, its public columns, how neighbours differ; rungs and ladders of units.
//!
//! A data set is a bag of rows, and a [`Unit`] says which data sets are neighbours. [`distance`](mod@distance) has that as
//! code, for data small enough to look at, and [`ladder`] says what one unit costs in terms of another.

pub mod distance;
pub mod ladder;
mod slices;

pub use distance::{Domain, Rows, RowsError, are_neighbours, distance, neighbours};
pub use ladder::{Caps, Ladder, LadderError, Rung};
pub use slices::{SliceKind, SliceRange, SliceValue, Slices, Slicing};

use serde::{Deserialize, Serialize};
use std::fmt;

/// How neighbours differ.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Change {
    /// One unit's rows are there or not.
    AddRemove,
    /// One unit's rows become any others, possibly none; public columns are kept, and the number of units is known.
    Replace,
}

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::AddRemove => "add-remove",
            Self::Replace => "replace",
        })
    }
}

/// Which of the five sorts of unit one is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// One row.
    Event,
    /// All rows of one user in one element of a partition.
    Element,
    /// The private columns of one row, or of one user's rows.
    Feature,
    /// One column of one row, or of one user's rows; all others are public.
    Label,
    /// All rows of one user.
    User,
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Event => "event",
            Self::Element => "element",
            Self::Feature => "feature",
            Self::Label => "label",
            Self::User => "user",
        })
    }
}

/// What one whit is: the rows that move together, and what stays in view.
///
/// There is no default unit: a source without one cannot be planned.
///
/// ```
/// use whit_core::{Change, Unit};
/// let word = Unit::element("author", "word");
/// assert_eq!(word.key(), ["author", "word"]);
/// assert_eq!(word.change(), Change::Replace);
/// assert_eq!(word.to_string(), "element (author, word), replace");
/// ```
///
/// | unit | rows that move together | what stays |
/// |---|---|---|
/// | event | one row | nothing |
/// | element | one user's rows in one element | the element's identity, the user, and the user's other elements |
/// | feature | one row, or the rows with one key | that the rows are there, their key and their public columns |
/// | label | one row, or the rows with one key | all but the label |
/// | user | one user's rows | nothing, not even who the user is |
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "UnitDraft")]
pub struct Unit {
    kind: Kind,
    key: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    public: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    label: Option<String>,
    change: Change,
}

impl Unit {
    /// One row.
    ///
    /// ```
    /// use whit_core::{Change, Unit};
    /// assert_eq!(Unit::event(Change::AddRemove).to_string(), "event, add-remove");
    /// ```
    #[must_use]
    pub fn event(change: Change) -> Self {
        Self { kind: Kind::Event, key: Vec::new(), public: Vec::new(), label: None, change }
    }

    /// All rows of one user that fall into one element; always `replace`.
    ///
    /// `element` names the column that holds a row's element, as a [`Partition`](crate::Partition) gives it.
    #[must_use]
    pub fn element(user: &str, element: &str) -> Self {
        let key = vec![user.to_owned(), element.to_owned()];
        Self { kind: Kind::Element, key, public: Vec::new(), label: None, change: Change::Replace }
    }

    /// The private columns of the rows with one key, or of one row if the key is empty; always `replace`.
    ///
    /// The key and the `public` columns stay as they are, and so does the number of rows.
    ///
    /// ```
    /// use whit_core::Unit;
    /// let income = Unit::feature(&[], &["education", "age"]);
    /// assert!(income.is_public("age") && !income.is_public("income"));
    /// assert_eq!(income.to_string(), "feature, public (education, age), replace");
    /// ```
    #[must_use]
    pub fn feature(key: &[&str], public: &[&str]) -> Self {
        Self { kind: Kind::Feature, key: owned(key), public: owned(public), label: None, change: Change::Replace }
    }

    /// The label of the rows with one key, or of one row if the key is empty; all other columns are public; always `replace`.
    ///
    /// ```
    /// use whit_core::Unit;
    /// let click = Unit::label(&[], "clicked");
    /// assert!(click.is_public("advertiser") && !click.is_public("clicked"));
    /// ```
    #[must_use]
    pub fn label(key: &[&str], label: &str) -> Self {
        let label = Some(label.to_owned());
        Self { kind: Kind::Label, key: owned(key), public: Vec::new(), label, change: Change::Replace }
    }

    /// All rows of one user.
    ///
    /// ```
    /// use whit_core::{Change, Unit};
    /// assert_eq!(Unit::user("author", Change::Replace).to_string(), "user (author), replace");
    /// ```
    #[must_use]
    pub fn user(user: &str, change: Change) -> Self {
        Self { kind: Kind::User, key: vec![user.to_owned()], public: Vec::new(), label: None, change }
    }

    /// The columns whose values say which rows move together; empty where each row moves alone.
    pub fn key(&self) -> &[String] {
        &self.key
    }

    /// The columns that were named public. A label unit names none, since all but its label are: see [`Unit::is_public`].
    pub fn public(&self) -> &[String] {
        &self.public
    }

    /// How neighbours differ.
    pub fn change(&self) -> Change {
        self.change
    }

    /// Which sort of unit this is.
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// Whether neighbours agree on this column, row by row, so that what reads only such columns costs nothing.
    pub fn is_public(&self, column: &str) -> bool {
        match self.kind {
            Kind::Event | Kind::Element | Kind::User => false,
            Kind::Feature => self.key.iter().chain(&self.public).any(|c| c == column),
            Kind::Label => self.label.as_deref() != Some(column) || self.key.iter().any(|c| c == column),
        }
    }

    /// The one private column of a label unit.
    pub(crate) fn label_column(&self) -> Option<&str> {
        self.label.as_deref()
    }
}

fn owned(names: &[&str]) -> Vec<String> {
    names.iter().map(|&name| name.to_owned()).collect()
}

impl fmt::Display for Unit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.kind)?;
        if !self.key.is_empty() {
            write!(f, " ({})", self.key.join(", "))?;
        }
        if !self.public.is_empty() {
            write!(f, ", public ({})", self.public.join(", "))?;
        }
        if let Some(label) = &self.label {
            write!(f, " of {label}")?;
        }
        write!(f, ", {}", self.change)
    }
}

/// A unit as it stands in a file, before it is known to make sense.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct UnitDraft {
    kind: Kind,
    #[serde(default)]
    key: Vec<String>,
    #[serde(default)]
    public: Vec<String>,
    #[serde(default)]
    label: Option<String>,
    change: Change,
}

/// A unit that was written down in a way that no constructor of [`Unit`] would have.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum UnitError {
    /// An element, feature or label unit with another change than replace.
    #[error("a unit of kind `{0}` is `replace` by definition: write `change = \"replace\"`")]
    OnlyReplace(Kind),
    /// The key has not the columns that the kind needs.
    #[error("a unit of kind `{kind}` needs {needs} in its key, and `key` has {found}")]
    Key {
        /// The kind of unit.
        kind: Kind,
        /// What its key holds.
        needs: &'static str,
        /// How many columns were found.
        found: usize,
    },
    /// Public columns where the kind has none, or a label where there is none, or none where there is.
    #[error("`{field}` {verdict} a unit of kind `{kind}`")]
    Field {
        /// The kind of unit.
        kind: Kind,
        /// The field.
        field: &'static str,
        /// Whether it is missing from or of no use to the kind.
        verdict: &'static str,
    },
}

impl TryFrom<UnitDraft> for Unit {
    type Error = UnitError;

    fn try_from(draft: UnitDraft) -> Result<Self, UnitError> {
        let UnitDraft { kind, key, public, label, change } = draft;
        let (needs, fits) = match kind {
            Kind::Event => ("no column", key.is_empty()),
            Kind::Element => ("a user column and an element column", key.len() == 2),
            Kind::User => ("one user column", key.len() == 1),
            Kind::Feature | Kind::Label => ("any columns", true),
        };
        if !fits {
            return Err(UnitError::Key { kind, needs, found: key.len() });
        }
        if change != Change::Replace && !matches!(kind, Kind::Event | Kind::User) {
            return Err(UnitError::OnlyReplace(kind));
        }
        if !public.is_empty() && kind != Kind::Feature {
            return Err(UnitError::Field { kind, field: "public", verdict: "has no meaning for" });
        }
        match (&label, kind) {
            (None, Kind::Label) => Err(UnitError::Field { kind, field: "label", verdict: "is missing from" }),
            (Some(_), Kind::Event | Kind::Element | Kind::Feature | Kind::User) => {
                Err(UnitError::Field { kind, field: "label", verdict: "has no meaning for" })
            }
            (None, _) | (Some(_), Kind::Label) => Ok(Self { kind, key, public, label, change }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elements_features_and_labels_are_replaced_by_definition() {
        for unit in [Unit::element("user", "word"), Unit::feature(&[], &["age"]), Unit::label(&[], "ill")] {
            assert_eq!(unit.change(), Change::Replace);
            let text = serde_json::to_string(&unit).unwrap();
            assert_eq!(serde_json::from_str::<Unit>(&text).unwrap(), unit);
            let message = serde_json::from_str::<Unit>(&text.replace("replace", "add-remove")).unwrap_err().to_string();
            assert!(message.contains("is `replace` by definition"), "{message}");
        }
        for unit in [Unit::event(Change::AddRemove), Unit::user("id", Change::AddRemove)] {
            let text = serde_json::to_string(&unit).unwrap();
            assert_eq!(serde_json::from_str::<Unit>(&text).unwrap(), unit);
        }
    }

    #[test]
    fn a_unit_that_no_constructor_makes_is_refused_when_read() {
        for (text, message) in [
            (r#"{"kind":"user","key":[],"change":"replace"}"#, "needs one user column in its key, and `key` has 0"),
            (r#"{"kind":"event","key":["id"],"change":"replace"}"#, "needs no column"),
            (r#"{"kind":"label","change":"replace"}"#, "`label` is missing from a unit of kind `label`"),
            (r#"{"kind":"user","key":["id"],"public":["age"],"change":"replace"}"#, "`public` has no meaning for"),
            (r#"{"kind":"user","key":["id"],"label":"ill","change":"replace"}"#, "`label` has no meaning for"),
        ] {
            let error = serde_json::from_str::<Unit>(text).unwrap_err().to_string();
            assert!(error.contains(message), "{error}");
        }
    }

    #[test]
    fn what_a_unit_leaves_in_view_is_public() {
        assert!(Unit::label(&["user"], "ill").is_public("user"));
        assert!(Unit::feature(&["user"], &["age"]).is_public("user"), "the key stays");
        assert!(!Unit::user("user", Change::Replace).is_public("user"), "who a user is does not");
        assert_eq!(Unit::label(&["user"], "ill").to_string(), "label (user) of ill, replace");
    }
}
