//! Data sets as they are declared: source, unit, caps, bounds, budgets. Reads the text of `whit.toml`, never files.
//!
//! ```
//! use whit_core::Kind;
//! use whit_core::declare::{Bounds, Declaration};
//! let declaration = Declaration::parse(r#"
//!     [dataset.visits]
//!     source = "visits/*.parquet"
//!     unit.user = "user_id"
//!     unit.element = "registrable_domain(url)"
//!     unit.public = ["country"]
//!     unit.protect = "element"
//!     unit.caps = { elements_per_user = 400, rows_per_element = 50 }
//!     columns.seconds = { bounds = [0, 600] }
//!     budget.element = { epsilon = 3.0, delta = 1e-6 }
//!     budget.user    = { epsilon = 30.0, delta = 1e-6 }
//! "#)?;
//! let visits = declaration.dataset("visits")?;
//! assert_eq!(visits.columns["seconds"].bounds, Some(Bounds::Declared { low: 0.0, high: 600.0 }));
//!
//! let ladder = visits.unit.as_ref().unwrap().ladder().unwrap();
//! assert_eq!(ladder.protected().unit.to_string(), "element (user_id, registrable_domain(url)), replace");
//! assert_eq!(ladder.rung(Kind::User).map(|rung| rung.holds), Some(800)); // 400 elements go, and 400 others come
//! # Ok::<(), whit_core::declare::DeclareError>(())
//! ```
//!
//! There is no default unit. A table has one, or says `public = true`.

mod check;
mod day;
mod error;
mod kind;
mod layout;
pub mod nearest;
mod read;
mod unit;
mod value;

pub use day::Day;
pub use error::DeclareError;
pub use kind::ColumnType;
pub use layout::{Compression, Encoding, FileLayout};
pub use nearest::nearest;
pub use read::table_name;

use crate::unit::{Change, Kind};
use serde::Serialize;
use std::collections::BTreeMap;
use std::fmt;

/// Everything that one `whit.toml` declares.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Declaration {
    /// The data sets, by name.
    pub datasets: BTreeMap<String, Dataset>,
    /// Where the ledger is, relative to `whit.toml`; `whit.ledger` next to it where this is absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ledger: Option<String>,
}

impl Declaration {
    /// Reads the text of a `whit.toml`, and checks all that can be checked without looking at data.
    ///
    /// ```
    /// use whit_core::declare::Declaration;
    /// let wrong = Declaration::parse("[dataset.visits]\nsource = 'v.csv'\nunit.usr = 'id'\nunit.protect = 'user'").unwrap_err();
    /// assert_eq!(wrong.to_string(), "line 3: `dataset.visits.unit.usr` is not a key that is known here");
    /// assert_eq!(wrong.hint(), "did you mean `user`? Known here: user, element, public, label, protect, change, caps");
    /// ```
    pub fn parse(text: &str) -> Result<Self, DeclareError> {
        read::declaration(text)
    }

    /// The data set of a name; where there is none, the error names the nearest.
    pub fn dataset(&self, name: &str) -> Result<&Dataset, DeclareError> {
        self.datasets.get(name).ok_or_else(|| {
            let names = self.datasets.keys().map(String::as_str);
            let hint = match nearest(name, names.clone()) {
                Some(near) => format!("did you mean `{near}`?"),
                None if self.datasets.is_empty() => "declare one: `DeclarationDraft::of` writes a draft".to_owned(),
                None => format!("declared are: {}", names.collect::<Vec<_>>().join(", ")),
            };
            DeclareError::new(format!("no data set is called `{name}`"), hint)
        })
    }

    /// What says whose the rows of a data set are, where it has users.
    ///
    /// A key that leads to the users of another table holds a user itself. A key that leads to any other column is looked up there, and its rows belong to
    /// whomever that table's row belongs to. Where a key leads to a key, both say the same.
    pub fn owning<'a>(&'a self, dataset: &'a Dataset) -> Option<Owning<'a>> {
        let own = dataset.unit.as_ref()?.user.as_ref()?;
        let (mut at, column) = (own, own.column());
        // No chain is longer than there are data sets: that none is a circle was checked when they were read.
        for _ in 0..=self.datasets.len() {
            let UserKey::Through { other_table, other_column, .. } = at else { return Some(Owning::Column(column)) };
            let there = self.datasets.get(other_table)?.unit.as_ref()?.user.as_ref()?;
            if there.column() != other_column {
                return Some(Owning::LookedUp { column, table: other_table, key: other_column });
            }
            at = there;
        }
        None
    }

    /// The budgets of a data set; none where there is no such data set.
    pub fn budgets_of(&self, dataset: &str) -> &[BudgetDeclaration] {
        self.datasets.get(dataset).map_or(&[], |dataset| &dataset.budgets)
    }
}

/// One table.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Dataset {
    /// Its name: lower-case letters, digits and underscores, as SQL has it without quotes.
    pub name: String,
    /// Files, globs and folders, relative to `whit.toml`.
    pub source: Vec<String>,
    /// How the files are written; by their extension where this is absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub format: Option<Format>,
    /// Which version of a Delta table is read; the newest where this is absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<u64>,
    /// Whether a value of a CSV file may hold line breaks, in quotes. Where it may not, every line is a row.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub newlines_in_values: bool,
    /// How else they are written, where that is not what their endings say.
    #[serde(skip_serializing_if = "FileLayout::is_default")]
    pub layout: FileLayout,
    /// Columns whose values are in the names of folders, as in `day=2024-01-01/part-0.parquet`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub partitioned_by: Vec<String>,
    /// A column of lists of which each item is a row, with the rest of its row beside it. What is declared of the column is of its items.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub open: Option<String>,
    /// Whether the whole table is public: it joins freely and has no unit.
    pub public: bool,
    /// What one whit is; there unless the table is public.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unit: Option<UnitDeclaration>,
    /// The column by whose values rows are divided into slices: what reads some of them alone is charged to those alone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub slice: Option<String>,
    /// What is said of columns.
    pub columns: BTreeMap<String, ColumnDeclaration>,
    /// What an owner allows: those for everybody first, fine to coarse, then those of analysts by name.
    pub budgets: Vec<BudgetDeclaration>,
    /// What a question gets that does not say otherwise.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub query: Option<QueryDefaults>,
}

impl Dataset {
    /// The declared bounds of a column.
    pub fn bounds(&self, column: &str) -> Option<Bounds> {
        self.columns.get(column).and_then(|declared| declared.bounds)
    }

    /// The declared type of a column.
    pub fn column_type(&self, column: &str) -> Option<&ColumnType> {
        self.columns.get(column).and_then(|declared| declared.kind.as_ref())
    }

    /// The declared keys of a column.
    pub fn keys(&self, column: &str) -> Option<&Keys> {
        self.columns.get(column).and_then(|declared| declared.keys.as_ref())
    }
}

/// How files are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Format {
    /// Apache Parquet.
    Parquet,
    /// Values with commas between them, under a line of names.
    Csv,
    /// One JSON object a line.
    Ndjson,
    /// A folder of Parquet files, with a log that says which of them are the table's.
    Delta,
}

impl Format {
    /// Every format.
    pub const ALL: [Self; 4] = [Self::Parquet, Self::Csv, Self::Ndjson, Self::Delta];

    /// The format that an extension stands for, in any case.
    ///
    /// ```
    /// use whit_core::declare::Format;
    /// assert_eq!(Format::of_extension("jsonl"), Some(Format::Ndjson));
    /// assert_eq!(Format::of_extension("xlsx"), None);
    /// ```
    pub fn of_extension(extension: &str) -> Option<Self> {
        let extension = extension.to_ascii_lowercase();
        Self::ALL.into_iter().find(|format| format.extensions().contains(&extension.as_str()))
    }

    /// The extensions that stand for it, without the dot. No ending stands for a folder with a log.
    pub fn extensions(self) -> &'static [&'static str] {
        match self {
            Self::Parquet => &["parquet", "pq"],
            Self::Csv => &["csv", "tsv"],
            Self::Ndjson => &["ndjson", "jsonl"],
            Self::Delta => &[],
        }
    }

    /// The word for it in a declaration.
    pub(crate) fn word(self) -> &'static str {
        self.extensions().first().copied().unwrap_or("delta")
    }

    /// Whether its rows lie in Parquet files, which say what their columns are.
    pub fn is_parquet(self) -> bool {
        match self {
            Self::Parquet | Self::Delta => true,
            Self::Csv | Self::Ndjson => false,
        }
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
    }
}

/// What one whit of a table is.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct UnitDeclaration {
    /// Which column says whose a row is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub user: Option<UserKey>,
    /// Which element of a partition a row falls into.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub element: Option<ElementSource>,
    /// Columns that never change between neighbours.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub public: Vec<String>,
    /// The one private column of a label unit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    /// The rung that every release protects.
    pub protect: Kind,
    /// How neighbours differ on the event and user rungs; `replace` where absent, so that all rungs compare.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub change: Option<Change>,
    /// Limits on what one unit contributes. Data is bounded so that they hold.
    pub caps: CapsDeclaration,
}

/// Which column says whose a row is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum UserKey {
    /// A column of the table.
    Column(String),
    /// A column of the table that leads to another, `orders.customer_id -> customers.id`: to its users, or to a key of rows that belong to its users, as in
    /// `lines.order_id -> orders.id`.
    Through {
        /// The table itself.
        table: String,
        /// Its column.
        column: String,
        /// The table that the key leads to.
        other_table: String,
        /// The column there.
        other_column: String,
    },
}

impl UserKey {
    /// The table's own column whose value says whose a row is.
    pub fn column(&self) -> &str {
        match self {
            Self::Column(column) | Self::Through { column, .. } => column,
        }
    }
}

/// What says whose a row is, at the end of a chain of keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Owning<'a> {
    /// A column of the table: its values are users.
    Column(&'a str),
    /// A column of the table that is a key of another: whoever has that row has this one.
    LookedUp {
        /// The table's own column.
        column: &'a str,
        /// The table that says whose the key is.
        table: &'a str,
        /// The key there.
        key: &'a str,
    },
}

impl fmt::Display for UserKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Column(column) => f.write_str(column),
            Self::Through { table, column, other_table, other_column } => {
                write!(f, "{table}.{column} -> {other_table}.{other_column}")
            }
        }
    }
}

/// How a row is mapped to its element.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum ElementSource {
    /// SQL text: a column, `date_trunc('day', at)`, `registrable_domain(url)`.
    Expression(String),
    /// A published list of values and their elements, and one element for all other values.
    Dictionary {
        /// The column whose values are looked up.
        column: String,
        /// The element of each value that is listed.
        elements: BTreeMap<String, String>,
        /// The element of every other value.
        unknown: String,
    },
    /// A file that `whit partition` wrote.
    PartitionFile {
        /// The column whose values are looked up.
        column: String,
        /// The file, relative to `whit.toml`.
        path: String,
    },
}

impl fmt::Display for ElementSource {
    /// The text by which the element stands in a unit's key: the expression, or the name of the column.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Expression(text)
            | Self::Dictionary { column: text, .. }
            | Self::PartitionFile { column: text, .. } => f.write_str(text),
        }
    }
}

/// Limits on what one unit contributes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct CapsDeclaration {
    /// The most elements in which one user keeps rows.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub elements_per_user: Option<u64>,
    /// The most rows that one user keeps in one element.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rows_per_element: Option<u64>,
    /// The most rows that one user keeps.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rows_per_user: Option<u64>,
    /// The most groups of a question to which one unit contributes (L0).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub groups: Option<u64>,
    /// The most rows that one unit keeps in one group.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rows_per_group: Option<u64>,
}

/// What is said of one column.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct ColumnDeclaration {
    /// What its values are. In files without types of their own, CSV and NDJSON, a private column is there only with one.
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    pub kind: Option<ColumnType>,
    /// The range into which its numbers are clamped.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bounds: Option<Bounds>,
    /// The group keys that are known without looking at the data.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub keys: Option<Keys>,
}

/// The range into which a column's numbers are clamped, or in which its days are.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Bounds {
    /// Known without looking at the data: `bounds = [0, 600]`. Both are finite, and `low < high`.
    Declared {
        /// The least value.
        low: f64,
        /// The largest value.
        high: f64,
    },
    /// The days that a date or a timestamp may have: `bounds = ["2024-01-01", "2024-12-31"]`. Each of them is a public key.
    Days {
        /// The first.
        first: Day,
        /// The last.
        last: Day,
    },
    /// Found privately, from a part of each question's budget: `bounds = "auto"`.
    Auto,
}

/// Group keys that are known without looking at the data. All of them appear in an answer, with zeros.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Keys {
    /// `keys = ["at", "de"]`; numbers and booleans as text.
    Listed(Vec<String>),
    /// `keys = "countries.code"`: a column of a table that is declared public.
    FromTable {
        /// The public table.
        table: String,
        /// Its column.
        column: String,
    },
}

/// The loss that an owner allows at one rung.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct BudgetDeclaration {
    /// The rung.
    pub kind: Kind,
    /// Whose it is; everybody's together where absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub analyst: Option<String>,
    /// ε, above 0 and finite.
    pub epsilon: f64,
    /// δ, at least 0 and below 1.
    pub delta: f64,
    /// What the filter adds up: `gaussian`, `concentrated`, `renyi` or `sum`. Where absent, `gaussian`; a budget with δ = 0
    /// always has `sum`, the only one that works there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub currency: Option<String>,
}

impl BudgetDeclaration {
    /// The words for what a filter adds up.
    pub(super) const CURRENCIES: [&'static str; 4] = ["gaussian", "concentrated", "renyi", "sum"];
}

/// What a question gets that does not say otherwise.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct QueryDefaults {
    /// ε of one question at the protected rung.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub epsilon: Option<f64>,
    /// δ of one question at the protected rung.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delta: Option<f64>,
    /// The most groups to which one unit contributes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub groups: Option<u64>,
}

impl QueryDefaults {
    /// The ε of one question that makes sense: below it noise drowns every answer, and above it nothing is protected. What is declared and what is typed is held to it; a
    /// program may go beyond, at the price that it is told.
    pub const EPSILON: std::ops::RangeInclusive<f64> = 0.001..=1000.0;
}

#[cfg(test)]
mod tests;
