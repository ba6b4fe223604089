//! The estimators as tables in SQL: `SELECT * FROM hitters('visits', 'page', 'items=pages.page')`.
//!
//! A call stands for the table that the estimator releases, so everything around it is done with released numbers and costs
//! nothing. It is one question of the ledger, the same that `whit hitters` and `whit histogram` ask.

use super::ask::{self, HistogramQuestion, HittersQuestion};
use super::dictionary::ItemList;
use super::histogram::Radius;
use crate::answer::{Answer, Column};
use crate::error::QueryError;
use crate::explain::Preview;
use crate::partition::PartitionFile;
use crate::plan::Asking;
use crate::release::Tables;
use datafusion::arrow::datatypes::{DataType, Field, Schema};
use datafusion::catalog::{TableFunctionArgs, TableFunctionImpl, TableProvider};
use datafusion::common::{Result, ScalarValue, plan_err};
use datafusion::datasource::MemTable;
use datafusion::logical_expr::{Expr, LogicalPlan};
use datafusion::prelude::SessionContext;
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;
use whit_account::ledger::Books;

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

    /// Asks it, and pays for it.
    pub(crate) fn ask(
        &self,
        tables: &Tables,
        asking: &Asking,
        books: &mut Books,
        analyst: &str,
    ) -> std::result::Result<Answer, QueryError> {
        match self {
            Self::Hitters(question) => ask::hitters(tables, question, asking, books, analyst),
            Self::Histogram(question) => ask::histogram(tables, question, asking, books, analyst),
        }
    }
}

impl Call {
    /// What it would cost, and how wrong it would be.
    pub(crate) fn preview(
        &self,
        tables: &Tables,
        sql: &str,
        asking: &Asking,
    ) -> std::result::Result<Preview, QueryError> {
        match self {
            Self::Hitters(question) => ask::preview_hitters(tables, sql, question, asking),
            Self::Histogram(question) => ask::preview_histogram(tables, sql, question, asking),
        }
    }
}

/// Lets questions call the estimators, with files that are looked for from this folder.
pub(crate) fn register(context: &SessionContext, folder: &Path) {
    for which in [Which::Hitters, Which::Histogram] {
        context.register_udtf(which.name(), Arc::new(Function { which, folder: folder.to_owned() }));
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
                let share = options.parse("radius_share", "a share such as 0.1")?.unwrap_or(0.1);
                let quantile = options.parse("radius_quantile", "a share such as 0.95")?.unwrap_or(0.95);
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
/// may name no other file: the lines of any would be told.
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
        let told = serde_json::to_string(&call).map_err(|error| datafusion::common::plan_datafusion_err!("{error}"))?;
        let schema = call.schema().with_metadata(HashMap::from([(CALL.to_owned(), told)]));
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
            assert!(refused.is_err_and(|told| told.contains("no partition file")), "{path}");
        }
        for (words, wrong) in [
            (&["talk"][..], "needs 2"),
            (&["talk", "word", "top"], "'name=value'"),
            (&["talk", "word", "top=x"], "expected a whole number"),
            (&["talk", "word", "gap=inf"], "expected a number"),
            (&["talk", "word", "top=1", "top=2"], "twice"),
            (&["talk", "word", "colour=red"], "no option colour"),
        ] {
            assert!(read(Which::Hitters, words).is_err_and(|told| told.contains(wrong)), "{words:?}");
        }
    }
}
