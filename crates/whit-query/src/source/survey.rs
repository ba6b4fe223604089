//! What a declaration amounts to, by itself: nothing here follows from rows, nor from how many files or bytes there are.
//!
//! It is the ladder with its caps and budgets, the columns, and what cannot be asked yet.

use super::{Source, Warehouse};
use crate::error::QueryError;
use crate::translate::in_words;
use datafusion::arrow::datatypes::Field;
use datafusion::scalar::ScalarValue;
use serde::Serialize;
use std::fmt;
use whit_core::declare::{Bounds, Dataset, Day, Declaration, Keys, UnitDeclaration, UserKey};
use whit_core::unit::LadderError;
use whit_core::{Change, Kind, Ladder, Unit};

/// One data set, as people and programs look at it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct DatasetView {
    /// Its name.
    pub name: String,
    /// Where its files are, as declared.
    pub source: Vec<String>,
    /// How they are written.
    pub format: String,
    /// Whether the whole table is public.
    pub public: bool,
    /// The protected unit, in words; absent where the table is public.
    pub unit: Option<String>,
    /// The data set whose budget pays for questions, where its user key leads to another one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pays_from: Option<String>,
    /// The rungs from the protected one up.
    pub rungs: Vec<RungView>,
    /// The columns in their order.
    pub columns: Vec<ColumnView>,
    /// Columns of CSV files that have no declared type, so that nobody can ask for them.
    pub untyped: Vec<String>,
    /// What cannot be asked, or is not limited, until more is declared.
    pub missing: Vec<String>,
}

/// One rung of a ladder.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RungView {
    /// Its kind.
    pub rung: Kind,
    /// The unit with its key, in words.
    pub unit: String,
    /// How neighbours differ.
    pub change: Change,
    /// At most so many protected units move when one unit of this rung does.
    pub holds: u64,
    /// The caps that say so.
    pub caps: Vec<String>,
    /// What may be spent.
    pub budgets: Vec<BudgetView>,
}

/// What may be spent at one rung.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct BudgetView {
    /// Whose it is; everybody's together where absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub analyst: Option<String>,
    /// ε.
    pub epsilon: f64,
    /// δ.
    pub delta: f64,
    /// What the filter adds up.
    pub currency: String,
    /// The column by whose values it is kept apart, where units of this rung lie in one of its slices each.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub slice: Option<String>,
}

impl fmt::Display for BudgetView {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(analyst) = &self.analyst {
            write!(f, "{analyst}: ")?;
        }
        write!(f, "ε = {}", self.epsilon)?;
        if self.delta > 0.0 {
            write!(f, ", δ = {:e}", self.delta)?;
        }
        self.slice.iter().try_for_each(|slice| write!(f, " for each {slice}"))
    }
}

/// One column.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ColumnView {
    /// Its name.
    pub name: String,
    /// Its type, in words.
    #[serde(rename = "type")]
    pub kind: String,
    /// `user`, `label` or `public`, where it is one of these.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub role: Option<&'static str>,
    /// The range into which its numbers are clamped.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bounds: Option<BoundsView>,
    /// The keys that are known without looking.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub keys: Option<KeysView>,
}

/// A range as JSON has it in `whit.toml`: two numbers, two days, or "auto".
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(untagged)]
pub enum BoundsView {
    /// `[0, 600]`.
    Declared([f64; 2]),
    /// `["2024-01-01", "2024-12-31"]`.
    Days([Day; 2]),
    /// `"auto"`.
    Auto(&'static str),
}

impl fmt::Display for BoundsView {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Declared([low, high]) => write!(f, "{low} to {high}"),
            Self::Days([first, last]) => write!(f, "{first} to {last}"),
            Self::Auto(_) => f.write_str("found privately"),
        }
    }
}

/// Keys as JSON has them in `whit.toml`: a list, or a column of a public table.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub enum KeysView {
    /// `["at", "de"]`.
    Listed(Vec<String>),
    /// `"countries.code"`.
    From(String),
}

impl fmt::Display for KeysView {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Listed(keys) if keys.len() <= 5 => f.write_str(&keys.join(", ")),
            Self::Listed(keys) => write!(f, "{}, … ({} in all)", keys[..4].join(", "), keys.len()),
            Self::From(column) => write!(f, "those of {column}"),
        }
    }
}

impl Warehouse {
    /// What the declaration amounts to, data set by data set.
    pub fn survey(&self) -> Result<Vec<DatasetView>, QueryError> {
        self.sources().map(|source| view(source, payer(&source.dataset, self.declaration()))).collect()
    }
}

/// The data set whose budget pays for a data set: where its user key leads to.
pub(crate) fn payer<'a>(dataset: &'a Dataset, declaration: &'a Declaration) -> &'a Dataset {
    let mut at = dataset;
    // A chain of keys is no longer than there are data sets, so a circle ends too.
    for _ in 0..declaration.datasets.len() {
        let through = at.unit.as_ref().and_then(|unit| match &unit.user {
            Some(UserKey::Through { other_table, .. }) => declaration.datasets.get(other_table),
            _ => None,
        });
        match through.filter(|other| other.unit.is_some()) {
            Some(other) => at = other,
            None => break,
        }
    }
    at
}

fn view(source: &Source, payer: &Dataset) -> Result<DatasetView, QueryError> {
    let dataset = &source.dataset;
    let ladder = dataset.unit.as_ref().map(|unit| unit.ladder().map(|ladder| (unit, ladder))).transpose();
    let ladder = ladder.map_err(|error| QueryError::asked(error.to_string(), error.hint()))?;
    let protected = ladder.as_ref().map(|(_, ladder)| &ladder.protected().unit);
    let columns = source
        .schema
        .fields()
        .iter()
        .map(|field| column(source, protected, field.name(), &in_words(field.data_type())));
    Ok(DatasetView {
        name: dataset.name.clone(),
        source: dataset.source.clone(),
        format: source.format.to_string(),
        public: dataset.public,
        unit: protected.map(Unit::to_string),
        pays_from: (payer.name != dataset.name).then(|| payer.name.clone()),
        rungs: ladder.as_ref().map(|(unit, ladder)| rungs(source, unit, ladder)).unwrap_or_default(),
        columns: columns.collect(),
        untyped: source.untyped.clone(),
        missing: ladder.as_ref().map(|(unit, ladder)| missing(source, payer, unit, ladder)).unwrap_or_default(),
    })
}

/// What people call the type of a column.
pub(super) fn type_in_words(kind: &datafusion::arrow::datatypes::DataType) -> String {
    in_words(kind)
}

fn rungs(source: &Source, unit: &UnitDeclaration, ladder: &Ladder) -> Vec<RungView> {
    let view = |rung: &whit_core::Rung| {
        let kind = rung.unit.kind();
        let budgets = source.dataset.budgets.iter().filter(|budget| budget.kind == kind);
        let slice = source.dataset.slice.as_ref().filter(|column| unit.lies_in_one_slice(&rung.unit, column));
        RungView {
            rung: kind,
            unit: rung.unit.to_string().trim_end_matches(&format!(", {}", rung.unit.change())).to_owned(),
            change: rung.unit.change(),
            holds: rung.holds,
            caps: linking(unit, kind),
            budgets: budgets
                .map(|budget| BudgetView {
                    analyst: budget.analyst.clone(),
                    epsilon: budget.epsilon,
                    delta: budget.delta,
                    currency: budget.currency.clone().unwrap_or_else(|| "gaussian".to_owned()),
                    slice: slice.cloned(),
                })
                .collect(),
        }
    };
    ladder.rungs().iter().map(view).collect()
}

/// The caps by which a rung is linked to the protected one.
fn linking(unit: &UnitDeclaration, kind: Kind) -> Vec<String> {
    let caps = &unit.caps;
    let elements = ("elements_per_user", caps.elements_per_user);
    let in_element = ("rows_per_element", caps.rows_per_element);
    let in_user = ("rows_per_user", caps.rows_per_user);
    let linking = match (unit.protect, kind) {
        (Kind::Element, Kind::User) => vec![elements],
        (Kind::Event, Kind::Element) => vec![in_element],
        (Kind::Event, Kind::User) if unit.element.is_some() => vec![elements, in_element],
        (Kind::Event, Kind::User) => vec![in_user],
        _ => Vec::new(),
    };
    linking.into_iter().filter_map(|(name, cap)| cap.map(|cap| format!("{name} = {cap}"))).collect()
}

fn column(source: &Source, protected: Option<&Unit>, name: &str, kind: &str) -> ColumnView {
    let dataset = &source.dataset;
    let unit = dataset.unit.as_ref();
    let listed = |unit: &UnitDeclaration| unit.public.iter().any(|public| public == name);
    let role = if unit.and_then(|unit| unit.user.as_ref()).is_some_and(|user| user.column() == name) {
        Some("user")
    } else if unit.is_some_and(|unit| unit.label.as_deref() == Some(name)) {
        Some("label")
    } else if dataset.public || unit.is_some_and(listed) || protected.is_some_and(|unit| unit.is_public(name)) {
        Some("public")
    } else {
        None
    };
    ColumnView {
        name: name.to_owned(),
        kind: kind.to_owned(),
        role,
        bounds: dataset.bounds(name).map(|bounds| match bounds {
            Bounds::Declared { low, high } => BoundsView::Declared([low, high]),
            Bounds::Days { first, last } => BoundsView::Days([first, last]),
            Bounds::Auto => BoundsView::Auto("auto"),
        }),
        keys: dataset.keys(name).map(|keys| match keys {
            Keys::Listed(keys) => KeysView::Listed(keys.clone()),
            Keys::FromTable { table, column } => KeysView::From(format!("{table}.{column}")),
        }),
    }
}

/// What cannot be asked, or is not limited, until more is declared.
fn missing(source: &Source, payer: &Dataset, unit: &UnitDeclaration, ladder: &Ladder) -> Vec<String> {
    let dataset = &source.dataset;
    let protected = &ladder.protected().unit;
    let kind = protected.kind();
    let user = unit.user.as_ref().map(whit_core::declare::UserKey::column);
    let mut notes = Vec::new();
    if !source.untyped.is_empty() {
        let names: Vec<String> = source.untyped.iter().map(|name| format!("`{name}`")).collect();
        notes.push(format!(
            "no type for {}: nobody can ask for {} until columns.NAME.type says what it is",
            listed(&names),
            if names.len() == 1 { "it" } else { "them" }
        ));
    }
    let boundless = source.schema.fields().iter().filter(|field| {
        let name = field.name().as_str();
        field.data_type().is_numeric()
            && dataset.bounds(name).is_none()
            && user != Some(name)
            && !protected.is_public(name)
            && !unit.public.iter().any(|public| public == name)
    });
    let boundless: Vec<String> = boundless.map(|field| format!("`{}`", field.name())).collect();
    if !boundless.is_empty() {
        let (it, has) = if boundless.len() == 1 { ("it", "it has") } else { ("them", "they have") };
        notes.push(format!(
            "no bounds on {}: sums, means and quantiles of {it} are refused until {has} some, or \"auto\"",
            listed(&boundless)
        ));
    }
    if payer.name != dataset.name {
        let name = &payer.name;
        let whose = format!("its users are those of `{name}`, so questions are paid for from the budget of `{name}`");
        let none = if payer.budgets.is_empty() { ", which has none: every question is refused" } else { "" };
        notes.push(format!("{whose}{none}"));
    } else if dataset.budgets.is_empty() {
        notes.push(format!("no budget: every question is refused until there is one, such as budget.{kind} = {{ epsilon = 3.0, delta = 1e-6 }}"));
    } else if !dataset.budgets.iter().any(|budget| budget.kind == kind && budget.analyst.is_none()) {
        notes.push(format!(
            "no budget for everybody at the protected rung: what is spent per {kind} is written down, and not limited"
        ));
    }
    // Questions take the least δ of the budgets that pay, and Gaussian noise with it.
    if payer.budgets.iter().any(|budget| budget.delta > 0.0 && budget.currency.as_deref() == Some("sum"))
        && dataset.query.and_then(|query| query.delta) != Some(0.0)
    {
        notes.push(
            "a budget with currency = \"sum\" and a δ: a sum has no price for Gaussian noise, so that only questions with δ = 0 are answered; leave the currency out, or \
             declare query.delta = 0"
                .to_owned(),
        );
    }
    for coarser in [Kind::Element, Kind::User] {
        if ladder.rung(coarser).is_none()
            && let Some(LadderError::NoCap { cap, .. }) = unit.missing(coarser)
        {
            let cap = if unit.element.is_none() { "rows_per_user" } else { cap };
            notes.push(format!(
                "no unit.caps.{cap}: what a question costs one {coarser} has no bound, so answers do not tell it and no budget can limit it"
            ));
        }
    }
    let rows = match kind {
        Kind::Element => unit.caps.rows_per_element,
        Kind::Feature | Kind::Label | Kind::User => unit.caps.rows_per_user,
        Kind::Event => Some(1),
    };
    // Rows that stand for themselves need no cap; of all others it has to be known how many count.
    if rows.or(unit.caps.rows_per_group).is_none() {
        let cap = if kind == Kind::Element { "rows_per_element" } else { "rows_per_user" };
        notes.push(format!(
            "no unit.caps.{cap}: each question has to say how many rows of one {kind} count in a group, or is refused"
        ));
    }
    notes.extend(source.schema.fields().iter().filter_map(|field| misfit(dataset, field)));
    if rows.or(unit.caps.groups).or(dataset.query.and_then(|query| query.groups)).is_none() {
        notes.push(format!(
            "no unit.caps.groups: a question with GROUP BY may have to say to how many groups one {kind} contributes"
        ));
    }
    if dataset.query.and_then(|query| query.epsilon).is_none() {
        notes.push("no query.epsilon: each question has to say its ε".to_owned());
    }
    notes
}

/// A listed key that its column can never have.
fn misfit(dataset: &Dataset, field: &Field) -> Option<String> {
    let (name, kind) = (field.name(), field.data_type());
    let Some(Keys::Listed(keys)) = dataset.keys(name) else { return None };
    let wrong = keys.iter().find(|key| ScalarValue::try_from_string((*key).clone(), kind).is_err())?;
    Some(format!(
        "the key `{wrong}` of `{name}` is not of its type, and the column is {}: questions that group by it are refused until the keys are as the column has them",
        in_words(kind)
    ))
}

/// Names for a sentence: all of a few, the first of many.
fn listed(names: &[String]) -> String {
    match names {
        [] => String::new(),
        [one] => one.clone(),
        names if names.len() <= 8 => {
            format!("{} and {}", names[..names.len() - 1].join(", "), names[names.len() - 1])
        }
        names => format!("{} and {} more columns", names[..6].join(", "), names.len() - 6),
    }
}
