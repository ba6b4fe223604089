//! The estimators as tables in SQL: `SELECT * FROM hitters('visits', 'page', 'items=pages.page')`.
//!
//! A call stands for the table that the estimator releases, so everything around it is done with released numbers and costs
//! nothing. It is one question of the ledger, the same that `whit hitters` and `whit histogram` ask.

use crate::answer::Column;
use crate::partition::PartitionFile;
use datafusion::arrow::datatypes::{DataType, Field, Schema};
use datafusion::catalog::{TableFunctionArgs, TableFunctionImpl, TableProvider};
use datafusion::common::{Result, ScalarValue, plan_err};
use datafusion::datasource::MemTable;
use datafusion::execution::SessionState;
use datafusion::logical_expr::{Expr, LogicalPlan};
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

/// How many users have each item.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct HittersQuestion {
    /// The data set.
    pub dataset: String,
    /// The column of items.
    pub item: String,
    /// Which items may be named; where absent, what is declared of the column.
    pub items: Option<ItemList>,
    /// Show so many, with intervals that hold all at once; all of them without.
    pub top: Option<usize>,
    /// The most items for which a user counts fully; where absent, what the declared caps come to.
    pub items_per_user: Option<u64>,
    /// Only pairs whose true counts are this far apart count as wrongly ordered; where absent, one deviation of the noise.
    pub gap: Option<f64>,
}

/// How much of each item users have, in the clusters of a partition.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct HistogramQuestion {
    /// The data set.
    pub dataset: String,
    /// The column of items.
    pub item: String,
    /// The partition file that lists items and their clusters.
    pub partition: PathBuf,
    /// A column of weights to add up; rows are counted without.
    pub weight: Option<String>,
    /// How the radius is found.
    pub radius: Radius,
    /// Show so many; all of them without.
    pub top: Option<usize>,
    /// The most clusters for which a user counts fully; where absent, what the declared caps come to.
    pub clusters_per_user: Option<u64>,
    /// Whether to tell shares of the whole instead of sums.
    pub shares: bool,
}

impl HistogramQuestion {
    /// What the column of sums is called.
    pub(crate) fn measured(&self) -> &str {
        match (&self.weight, self.shares) {
            (_, true) => "share",
            (Some(weight), false) => weight,
            (None, false) => "count",
        }
    }
}

/// Where the list of items comes from. It is public: it must be made without looking at the data.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum ItemList {
    /// These.
    Listed(Vec<String>),
    /// A partition file, or a text file with one item a line.
    File(PathBuf),
    /// A column of a table that is declared public.
    Column {
        /// The table.
        table: String,
        /// Its column.
        column: String,
    },
}

impl ItemList {
    /// As people write it: a file where there is one in the folder, else `table.column`.
    pub fn read(text: &str, folder: &Path) -> Self {
        let path = folder.join(text);
        match text.split_once('.') {
            Some((table, column)) if !path.exists() && !text.contains(['/', '\\']) && !table.is_empty() => {
                Self::Column { table: table.to_owned(), column: column.to_owned() }
            }
            _ => Self::File(path),
        }
    }
}

/// How the radius ρ is found.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub enum Radius {
    /// By hand, in the unit of what is counted.
    Given(f64),
    /// A share of the budget counts blocks by length, and ρ is the quantile of these noisy counts.
    TwoStage {
        /// The share of the squared noise ratio that stage one gets.
        share: f64,
        /// Which quantile of blocks' lengths.
        quantile: f64,
    },
    /// A share of the users is set aside: their blocks are counted by length with the whole budget, and the histogram is of all
    /// others, scaled up to stand for all.
    Split {
        /// The share of users.
        users: f64,
        /// Which quantile of blocks' lengths.
        quantile: f64,
    },
}

impl Radius {
    /// The share of the budget, or of the users, that finds the radius where nobody says another.
    pub const SHARE: f64 = 0.1;
    /// The quantile of blocks' lengths that is the radius where nobody says another.
    pub const QUANTILE: f64 = 0.95;
}

/// Under this name a call stands in the schema of the empty table that takes its place in the plan.
const CALL: &str = "whit.call";

/// A question that is called like a function.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) enum Call {
    /// `hitters(data set, column, options…)`.
    Hitters(HittersQuestion),
    /// `histogram(data set, column, partition file, options…)`.
    Histogram(HistogramQuestion),
}

impl Call {
    /// The call that a scan stands for.
    pub(crate) fn of(node: &LogicalPlan) -> Option<Self> {
        let LogicalPlan::TableScan(scan) = node else { return None };
        let schema = scan.source.schema();
        Self::is(node).then(|| serde_json::from_str(schema.metadata().get(CALL)?).ok()).flatten()
    }

    /// Whether a scan stands for a call. The engine names such scans; no declared data set can be called so.
    pub(crate) fn is(node: &LogicalPlan) -> bool {
        let LogicalPlan::TableScan(scan) = node else { return false };
        let names = [Which::Hitters, Which::Histogram].map(|which| format!("{}()", which.name()));
        names.iter().any(|name| name == scan.table_name.table())
    }

    pub(crate) fn name(&self) -> &'static str {
        match self {
            Self::Hitters(_) => Which::Hitters.name(),
            Self::Histogram(_) => Which::Histogram.name(),
        }
    }

    /// Whether its intervals hold all at once.
    pub(crate) fn holds_all_at_once(&self) -> bool {
        match self {
            Self::Hitters(question) => question.top.is_some(),
            Self::Histogram(question) => question.top.is_some(),
        }
    }

    /// The columns of the table: what names an item, and how much there is of it.
    fn schema(&self) -> Schema {
        let text = |name: &str| Field::new(name, DataType::Utf8, true);
        match self {
            Self::Hitters(question) => {
                Schema::new(vec![text(&question.item), Field::new("users", DataType::Float64, true)])
            }
            Self::Histogram(question) => Schema::new(vec![
                text(&question.item),
                text("cluster"),
                Field::new(question.measured(), DataType::Float64, true),
            ]),
        }
    }

    /// The names and types of an answer's columns.
    pub(crate) fn output(&self, columns: &[Column]) -> Vec<(String, DataType)> {
        let types = self.schema();
        columns
            .iter()
            .zip(types.fields())
            .map(|(column, field)| (column.name.clone(), field.data_type().clone()))
            .collect()
    }
}

/// Lets questions call the estimators, with files that are looked for from this folder.
pub(crate) fn register(state: &mut SessionState, folder: &Path) {
    for which in [Which::Hitters, Which::Histogram] {
        state.register_udtf(which.name(), Arc::new(Function { which, folder: folder.to_owned() }));
    }
}

#[derive(Debug)]
struct Function {
    which: Which,
    folder: PathBuf,
}

#[derive(Debug, Clone, Copy)]
enum Which {
    Hitters,
    Histogram,
}

impl Which {
    fn name(self) -> &'static str {
        match self {
            Self::Hitters => "hitters",
            Self::Histogram => "histogram",
        }
    }

    fn usage(self) -> &'static str {
        match self {
            Self::Hitters => {
                "hitters('data set', 'column', …) with options such as 'items=table.column', 'items=words.partition', 'items_per_user=20', 'top=10', 'gap=5'"
            }
            Self::Histogram => {
                "histogram('data set', 'column', 'partition file', …) with options such as 'radius=auto', 'weight=seconds', 'clusters_per_user=20', 'top=10', 'shares=true'"
            }
        }
    }

    fn read(self, words: &[String], folder: &Path) -> std::result::Result<Call, String> {
        let fixed = match self {
            Self::Hitters => 2,
            Self::Histogram => 3,
        };
        if words.len() < fixed {
            return Err(format!("{} needs {fixed} names first", self.name()));
        }
        let mut options = Options::read(&words[fixed..])?;
        let (dataset, item) = (words[0].clone(), words[1].clone());
        let call = match self {
            Self::Hitters => Call::Hitters(HittersQuestion {
                dataset,
                item,
                items: options.take("items").map(|text| items(&text, folder)).transpose()?,
                top: options.parse("top", "a whole number")?,
                items_per_user: options.parse("items_per_user", "a whole number")?,
                gap: options.parse("gap", "a number")?,
            }),
            Self::Histogram => {
                let share = options.parse("radius_share", "a share such as 0.1")?.unwrap_or(Radius::SHARE);
                let quantile = options.parse("radius_quantile", "a share such as 0.95")?.unwrap_or(Radius::QUANTILE);
                let radius = match options.take("radius").as_deref() {
                    None | Some("auto") => Radius::TwoStage { share, quantile },
                    Some("split") => Radius::Split { users: share, quantile },
                    Some(number) => match number.parse() {
                        Ok(radius) if f64::is_finite(radius) => Radius::Given(radius),
                        _ => return Err(format!("radius={number}: expected a number, auto or split")),
                    },
                };
                Call::Histogram(HistogramQuestion {
                    dataset,
                    item,
                    partition: partition(&words[2], folder)?,
                    weight: options.take("weight"),
                    radius,
                    top: options.parse("top", "a whole number")?,
                    clusters_per_user: options.parse("clusters_per_user", "a whole number")?,
                    shares: options.parse("shares", "true or false")?.unwrap_or(false),
                })
            }
        };
        options.finish().map(|()| call)
    }
}

/// The list of items that a question names: a column of a table, which is asked for being public later, or a partition file. Whoever asks
/// may name no other file: the lines of any would be shown.
fn items(text: &str, folder: &Path) -> std::result::Result<ItemList, String> {
    match ItemList::read(text, folder) {
        ItemList::File(_) => partition(text, folder).map(ItemList::File),
        other => Ok(other),
    }
}

/// A partition file within the folder of the declaration.
fn partition(text: &str, folder: &Path) -> std::result::Result<PathBuf, String> {
    let path = folder.join(text);
    let inside = Path::new(text).components().all(|part| matches!(part, Component::Normal(_)));
    if !inside || PartitionFile::load(&path).is_err() {
        return Err(format!("'{text}' is no partition file in the folder of whit.toml"));
    }
    Ok(path)
}

impl TableFunctionImpl for Function {
    fn call_with_args(&self, args: TableFunctionArgs<'_, '_>) -> Result<Arc<dyn TableProvider>> {
        let mut words = Vec::new();
        for expr in args.exprs() {
            match expr {
                Expr::Literal(ScalarValue::Utf8(Some(text)) | ScalarValue::Utf8View(Some(text)), _) => {
                    words.push(text.clone());
                }
                other => return plan_err!("{other} is not text in quotes; write {}", self.which.usage()),
            }
        }
        let call = match self.which.read(&words, &self.folder) {
            Ok(call) => call,
            Err(wrong) => return plan_err!("{wrong}; write {}", self.which.usage()),
        };
        let written =
            serde_json::to_string(&call).map_err(|error| datafusion::common::plan_datafusion_err!("{error}"))?;
        let schema = call.schema().with_metadata(HashMap::from([(CALL.to_owned(), written)]));
        Ok(Arc::new(MemTable::try_new(Arc::new(schema), vec![Vec::new()])?))
    }
}

/// `name=value`, each once.
struct Options(Vec<(String, String)>);

impl Options {
    fn read(words: &[String]) -> std::result::Result<Self, String> {
        let mut options: Vec<(String, String)> = Vec::new();
        for word in words {
            let Some((name, value)) = word.split_once('=') else {
                return Err(format!("'{word}' is no option, which are written 'name=value'"));
            };
            let name = name.trim().to_owned();
            if options.iter().any(|(other, _)| *other == name) {
                return Err(format!("{name} is given twice"));
            }
            options.push((name, value.trim().to_owned()));
        }
        Ok(Self(options))
    }

    fn take(&mut self, name: &str) -> Option<String> {
        let place = self.0.iter().position(|(own, _)| own == name)?;
        Some(self.0.remove(place).1)
    }

    fn parse<T: std::str::FromStr>(&mut self, name: &str, expected: &str) -> std::result::Result<Option<T>, String> {
        let Some(text) = self.take(name) else { return Ok(None) };
        let finite = !matches!(text.parse::<f64>(), Ok(number) if !number.is_finite());
        text.parse().ok().filter(|_| finite).map(Some).ok_or_else(|| format!("{name}={text}: expected {expected}"))
    }

    fn finish(self) -> std::result::Result<(), String> {
        self.0.first().map_or(Ok(()), |(name, _)| Err(format!("there is no option {name}")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(which: Which, words: &[&str]) -> std::result::Result<Call, String> {
        which.read(&words.iter().map(|&word| word.to_owned()).collect::<Vec<_>>(), Path::new(""))
    }

    #[test]
    fn options_are_read_and_wrong_ones_are_named() {
        let Ok(Call::Hitters(question)) = read(Which::Hitters, &["talk", "word", "items=words.word", "top = 3"]) else {
            panic!("hitters")
        };
        assert_eq!((question.dataset.as_str(), question.top), ("talk", Some(3)));
        assert_eq!(question.items, Some(ItemList::Column { table: "words".into(), column: "word".into() }));
        for path in ["a.partition", "/etc/passwd", "../words.partition"] {
            let refused = read(Which::Histogram, &["talk", "word", path, "radius=2.5"]);
            assert!(refused.is_err_and(|message| message.contains("no partition file")), "{path}");
        }
        for (words, wrong) in [
            (&["talk"][..], "needs 2"),
            (&["talk", "word", "top"], "'name=value'"),
            (&["talk", "word", "top=x"], "expected a whole number"),
            (&["talk", "word", "gap=inf"], "expected a number"),
            (&["talk", "word", "top=1", "top=2"], "twice"),
            (&["talk", "word", "colour=red"], "no option colour"),
        ] {
            assert!(read(Which::Hitters, words).is_err_and(|message| message.contains(wrong)), "{words:?}");
        }
    }
}
