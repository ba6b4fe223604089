//! Keys that are public because what they are made of is: a column with declared keys, with whole numbers between declared bounds, or with days between declared ones.
//!
//! # Why
//! All values that such a column may have follow from the declaration (or from a public table) alone. An expression over it is computed on each of them, by the engine
//! that also computes it on rows, and what comes out is all that a row within the declaration can have as its key. No private row is looked at; one that is outside of what is declared
//! is left out, or falls among the others, and in both cases counts for no more than it would.

use super::part::Draft;
use crate::error::{QueryError, planning};
use crate::plan::track::safe_value;
use crate::translate::in_words;
use datafusion::arrow::array::{ArrayRef, RecordBatch, TimestampSecondArray};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType, Field, Schema};
use datafusion::catalog::MemTable;
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::common::{Column, ExprSchema, TableReference};
use datafusion::datasource::provider_as_source;
use datafusion::logical_expr::{Expr, LogicalPlanBuilder, lit};
use datafusion::scalar::ScalarValue;
use std::collections::BTreeSet;
use std::sync::Arc;
use whit_core::declare::{Bounds, Dataset, Day, Keys};

/// The most keys that follow from bounds, and are all shown: days of a year, and no more, since most of a longer list would be noise.
const MOST_IMPLIED: usize = 400;

/// The most values of a column on which an expression is tried.
const MOST_TRIED: usize = 100_000;

impl Draft<'_> {
    /// The public values of a key that is a column, or is made of one, and whether they were found by following a list or a range, and not listed themselves.
    pub(super) fn domain(
        &self,
        expr: &Expr,
        data_type: &DataType,
    ) -> Result<Option<(Vec<ScalarValue>, bool)>, QueryError> {
        let bare = unnamed(expr);
        let Some(column) = only_column(bare) else { return Ok(None) };
        let Some(tag) = self.input.tag(column) else { return Ok(None) };
        let Some((table, name)) = &tag.origin else { return Ok(None) };
        let Ok(origin) = self.around.declaration.dataset(table) else { return Ok(None) };
        let Ok(field) = self.input.plan.schema().field_from_column(column) else { return Ok(None) };
        let of_column = field.data_type();
        let seen = origin.public || tag.observed || tag.public;
        let listed = self.listed_of(origin, (table, name), of_column, seen)?;
        let is_listed = listed.is_some();
        let Some(values) = listed.or_else(|| bounded(origin, name, of_column, bare)) else { return Ok(None) };
        let plain = matches!(bare, Expr::Column(_)) && of_column == data_type;
        let values = if plain {
            values
        } else {
            match self.computed_on(bare, column, (values, of_column), data_type)? {
                Some(values) => values,
                None => return Ok(None),
            }
        };
        let implied = !(is_listed && plain);
        Ok((is_listed || values.len() <= MOST_IMPLIED).then_some((values, implied)))
    }

    /// The values of a column that are listed, or that may be looked at.
    fn listed_of(
        &self,
        origin: &Dataset,
        (table, column): (&str, &str),
        data_type: &DataType,
        seen: bool,
    ) -> Result<Option<Vec<ScalarValue>>, QueryError> {
        match origin.keys(column) {
            Some(Keys::Listed(texts)) => {
                let parse = |text: &String| {
                    ScalarValue::try_from_string(text.clone(), data_type).map_err(|_| {
                        QueryError::asked(
                            format!(
                                "the key `{text}` of `{table}.{column}` is not of its type: the column is {}",
                                in_words(data_type)
                            ),
                            "write the keys as the column has them",
                        )
                    })
                };
                texts.iter().map(parse).collect::<Result<Vec<_>, _>>().map(Some)
            }
            Some(Keys::FromTable { table, column }) => self.values_of(table, column, data_type).map(Some),
            None if seen => self.values_of(table, column, data_type).map(Some),
            None => Ok(None),
        }
    }

    /// What an expression comes to on each value of its only column, and where that is missing; nothing where it cannot be compared digit by digit.
    fn computed_on(
        &self,
        expr: &Expr,
        column: &Column,
        (values, of_column): (Vec<ScalarValue>, &DataType),
        data_type: &DataType,
    ) -> Result<Option<Vec<ScalarValue>>, QueryError> {
        if values.is_empty() || values.len() > MOST_TRIED || data_type.is_floating() {
            return Ok(None);
        }
        let missing = ScalarValue::try_from(of_column).map_err(|error| planning(&error))?;
        let values = ScalarValue::iter_to_array(values.into_iter().chain([missing]));
        let values: ArrayRef = values.map_err(|error| planning(&error))?;
        // A key that is missing although its column is there would be left out unseen: rows may have it.
        // It keeps its name, which is what a refusal says.
        let value = || Expr::Column(Column::new(Some(TableReference::bare("domain")), column.name.as_str()));
        let there = value().is_not_null();
        let schema = Arc::new(Schema::new(vec![Field::new(column.name.as_str(), values.data_type().clone(), true)]));
        let own = |inner: Expr| {
            Ok(match inner {
                Expr::Column(inner) if inner == *column => Transformed::yes(value()),
                other => Transformed::no(other),
            })
        };
        let plan = || {
            let expr = safe_value(expr, self.around).ok()?.transform(own).ok()?.data;
            let batch = RecordBatch::try_new(Arc::clone(&schema), vec![values]).ok()?;
            let table = provider_as_source(Arc::new(MemTable::try_new(schema, vec![vec![batch]]).ok()?));
            let scan = LogicalPlanBuilder::scan("domain", table, None).ok()?;
            let lost = there.and(expr.clone().is_null());
            let lost = scan.clone().filter(lost).and_then(|lost| lost.project(vec![lit(1_i64)])?.build()).ok()?;
            let keys = scan.project(vec![expr.alias("key")]).and_then(|keys| keys.distinct()?.build()).ok()?;
            Some((lost, keys))
        };
        let Some((lost, keys)) = plan() else { return Ok(None) };
        if (self.around.collect)(lost)?.iter().any(|batch| batch.num_rows() > 0) {
            return Ok(None);
        }
        self.sorted_values(keys, data_type).map(Some)
    }
}

/// An expression without the names that it was given.
fn unnamed(expr: &Expr) -> &Expr {
    match expr {
        Expr::Alias(alias) => unnamed(&alias.expr),
        other => other,
    }
}

/// The only column that an expression reads, if all that it is made of are steps over it and constants.
fn only_column(expr: &Expr) -> Option<&Column> {
    let columns: BTreeSet<&Column> = expr.column_refs().into_iter().collect();
    let mut plain = true;
    let walked = expr.apply(|inner| {
        plain &= !matches!(
            inner,
            Expr::ScalarSubquery(_)
                | Expr::InSubquery(_)
                | Expr::Exists(_)
                | Expr::SetComparison(_)
                | Expr::OuterReferenceColumn(..)
                | Expr::AggregateFunction(_)
                | Expr::WindowFunction(_)
                | Expr::GroupingSet(_)
        );
        Ok(TreeNodeRecursion::Continue)
    });
    let mut columns = columns.into_iter();
    let only = columns.next();
    if walked.is_ok() && plain && columns.next().is_none() { only } else { None }
}

/// The values between a column's declared bounds: whole numbers, days, or of moments the hours, where no more of them than that is asked.
fn bounded(origin: &Dataset, name: &str, data_type: &DataType, expr: &Expr) -> Option<Vec<ScalarValue>> {
    match origin.bounds(name)? {
        Bounds::Declared { low, high } if data_type.is_integer() => {
            let (low, high) = (low.ceil(), high.floor());
            if high - low >= MOST_TRIED as f64 {
                return None;
            }
            let whole = (low as i64..=high as i64).map(|value| ScalarValue::Int64(Some(value)).cast_to(data_type));
            whole.collect::<Result<_, _>>().ok()
        }
        Bounds::Days { first, last } => match data_type {
            DataType::Date32 => Some(days(first, last)?.map(|day| ScalarValue::Date32(Some(day))).collect()),
            DataType::Timestamp(_, None) if by_the_hour(expr) => hours(first, last, data_type),
            _ => None,
        },
        Bounds::Declared { .. } | Bounds::Auto => None,
    }
}

/// Days since 1970.
fn days(first: Day, last: Day) -> Option<std::ops::RangeInclusive<i32>> {
    let number = |day: Day| match ScalarValue::try_from_string(day.to_string(), &DataType::Date32) {
        Ok(ScalarValue::Date32(day)) => day,
        _ => None,
    };
    let days = number(first)?..=number(last)?;
    (days.clone().count() <= MOST_TRIED).then_some(days)
}

fn hours(first: Day, last: Day, data_type: &DataType) -> Option<Vec<ScalarValue>> {
    let days = days(first, last)?;
    let hours = days.flat_map(|day| (0..24).map(move |hour| (i64::from(day) * 24 + hour) * 3600));
    let hours: Vec<i64> = hours.take(MOST_TRIED + 1).collect();
    let hours = cast(&TimestampSecondArray::from(hours), data_type).ok()?;
    (0..hours.len()).map(|i| ScalarValue::try_from_array(&hours, i).ok()).collect()
}

/// Whether a value depends on a moment's hour alone: every way to the column goes through a step that forgets the rest.
fn by_the_hour(expr: &Expr) -> bool {
    let reads = |expr: &Expr| matches!(unnamed(expr), Expr::Column(_)) || by_the_hour(expr);
    match expr {
        Expr::Column(_) => false,
        Expr::Cast(cast) if cast.field.data_type() == &DataType::Date32 => reads(&cast.expr),
        Expr::TryCast(cast) if cast.field.data_type() == &DataType::Date32 => reads(&cast.expr),
        Expr::ScalarFunction(call) if matches!(call.name(), "date_trunc" | "date_part") && call.args.len() == 2 => {
            let Expr::Literal(part, _) = &call.args[0] else { return false };
            let part = part.try_as_str().flatten().unwrap_or_default().to_lowercase();
            let coarse = ["hour", "day", "week", "month", "quarter", "year", "dow", "isodow", "doy", "isoyear"];
            coarse.contains(&part.as_str()) && reads(&call.args[1])
        }
        other => {
            let mut all = true;
            let walked = other.apply_children(|inner| {
                all &= by_the_hour(inner);
                Ok(TreeNodeRecursion::Continue)
            });
            walked.is_ok() && all
        }
    }
}
