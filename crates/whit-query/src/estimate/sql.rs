//! The estimators as tables in SQL: `SELECT * FROM hitters('visits', 'page', 'items=pages.txt')`.
//!
//! A call stands for the table that the estimator releases, so everything around it is done with released numbers and costs
//! nothing. It is one question of the ledger, the same that `whit hitters` and `whit histogram` ask.

use super::ask::{self, HistogramQuestion, HittersQuestion};
use super::dictionary::ItemList;
use super::histogram::Radius;
use crate::answer::{Answer, Column};
use crate::error::QueryError;
use crate::explain::Preview;
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
use std::path::{Path, PathBuf};
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
        let called = [Which::Hitters, Which::Histogram].iter().any(|which| {
            // The engine names such scans; no declared data set can be called so.
            scan.table_name.table() == format!("{}()", which.name())
        });
        let schema = scan.source.schema();
        called.then(|| serde_json::from_str(schema.metadata().get(CALL)?).ok()).flatten()
    }

    pub(crate) fn name(&self) -> &'static str {
        match self {
            Self::Hitters(_) => Which::Hitters.name(),
            Self::Histogram(_) => Which::Histogram.name(),
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
                "hitters('data set', 'column', …) with options such as 'items=list.txt', 'items_per_user=20', 'top=10', 'gap=5'"
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
                items: options.take("items").map(|text| ItemList::read(&text, folder)),
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
                    Some(number) => Radius::Given(
                        number.parse().map_err(|_| format!("radius={number}: expected a number, auto or split"))?,
                    ),
                };
                Call::Histogram(HistogramQuestion {
                    dataset,
                    item,
                    partition: folder.join(&words[2]),
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
        text.parse().map(Some).map_err(|_| format!("{name}={text}: expected {expected}"))
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
        let Ok(Call::Histogram(question)) = read(Which::Histogram, &["talk", "word", "a.partition", "radius=2.5"])
        else {
            panic!("histogram")
        };
        assert_eq!(question.radius, Radius::Given(2.5));
        for (words, wrong) in [
            (&["talk"][..], "needs 2"),
            (&["talk", "word", "top"], "'name=value'"),
            (&["talk", "word", "top=x"], "expected a whole number"),
            (&["talk", "word", "top=1", "top=2"], "twice"),
            (&["talk", "word", "colour=red"], "no option colour"),
        ] {
            assert!(read(Which::Hitters, words).is_err_and(|told| told.contains(wrong)), "{words:?}");
        }
    }
}
