//! Group keys: which are public, and in how many groups one unit counts.

use super::Draft;
use crate::error::{QueryError, planning};
use crate::evaluate::number::literal;
use crate::plan::track::{self, Tag, safe_value, type_of};
use crate::plan::{Grain, Groups, Key};
use datafusion::arrow::array::{Array, ArrayRef};
use datafusion::arrow::datatypes::DataType;
use datafusion::common::{Column, TableReference};
use datafusion::logical_expr::{Expr, LogicalPlan, LogicalPlanBuilder};
use datafusion::scalar::ScalarValue;
use std::collections::BTreeSet;
use whit_core::unit::Kind;

/// The most groups that a question may list.
const MOST_GROUPS: usize = 1_000_000;

/// The most groups of keys that nobody listed and that are shown all the same.
const MOST_IMPLIED_GROUPS: usize = 10_000;

impl Draft<'_> {
    /// Takes the keys of a grouping that has sums, or of one that asks which keys there are.
    pub(super) fn take_keys(&mut self, exprs: &[Expr], sums: bool, notes: &mut Vec<String>) -> Result<(), QueryError> {
        let mut implied = Vec::new();
        for expr in exprs {
            let tag = self.input.tag_of(expr, self.around);
            if tag.user && !(tag.public && self.private.rows_public) {
                return Err(QueryError::asked(
                    format!(
                        "grouping by `{}` makes a row of each user, so every row would be about one person",
                        track::said(expr)
                    ),
                    "group by something that many users share, and use COUNT(DISTINCT user) to count them",
                ));
            }
            let (listed, of_range) = self.listed(expr, &tag)?.unzip();
            implied.push(of_range.unwrap_or_default());
            let data_type = type_of(expr, self.input)?;
            let name = track::said(expr);
            self.keys.push(Key { expr: safe_value(expr, self.around)?, name, data_type, listed });
            self.key_tags.push(tag);
        }
        // What nobody listed is shown only where it is a table that people read, and where all of it is public.
        if self.listed_groups().is_none_or(|groups| groups > MOST_IMPLIED_GROUPS) {
            let keys = self.keys.iter_mut().zip(implied);
            keys.filter(|(_, implied)| *implied).for_each(|(key, _)| key.listed = None);
        }
        let all_listed = self.keys.iter().all(|key| key.listed.is_some());
        self.groups = if self.keys.is_empty() {
            Groups::One
        } else if all_listed && sums {
            Groups::Listed
        } else if all_listed {
            // Without sums a list would be shown as it stands, whatever is asked of the rows: which of its keys they have is private.
            Groups::Selected
        } else if self.private.rows_public && self.key_tags.iter().all(|tag| tag.public) {
            Groups::Observed
        } else {
            Groups::Selected
        };
        self.number = match self.groups {
            Groups::One => Some(1),
            Groups::Listed | Groups::Selected if all_listed => {
                let number = self.listed_groups();
                let number = number.filter(|&number| number <= MOST_GROUPS).ok_or_else(|| {
                    QueryError::asked(
                        format!("the listed keys make more than {MOST_GROUPS} groups, and each of them would appear"),
                        "group by fewer columns, or leave a list out so that keys are selected privately",
                    )
                })?;
                Some(number as u64)
            }
            Groups::Listed | Groups::Observed | Groups::Selected => None,
        };
        if all_listed && !self.keys.is_empty() {
            notes.push("rows whose keys are not listed are left out".to_owned());
        }
        Ok(())
    }

    /// How many groups the keys make; nothing where one of them is not listed, or nobody could count them.
    fn listed_groups(&self) -> Option<usize> {
        let mut keys = self.keys.iter().map(|key| key.listed.as_ref().map(Vec::len));
        keys.try_fold(1_usize, |all, keys| all.checked_mul(keys?))
    }

    /// The public values of a key: true and false, bins, or whatever its [domain](Self::domain) has; and whether nobody listed them.
    fn listed(&self, expr: &Expr, tag: &Tag) -> Result<Option<(Vec<ScalarValue>, bool)>, QueryError> {
        let data_type = type_of(expr, self.input)?;
        if tag.public && self.private.rows_public {
            return Ok(None); // those that occur are known, and so are their combinations
        }
        if data_type == DataType::Boolean {
            return Ok(Some((vec![ScalarValue::Boolean(Some(false)), ScalarValue::Boolean(Some(true))], false)));
        }
        if let Some(values) = bins(expr) {
            return Ok(Some((values, false)));
        }
        self.domain(expr, &data_type)
    }

    /// All values of a column that may be looked at: one of a public table, or one that is declared as public.
    pub(super) fn values_of(
        &self,
        table: &str,
        column: &str,
        data_type: &DataType,
    ) -> Result<Vec<ScalarValue>, QueryError> {
        let scan = self.around.tables.get(table);
        let scan = scan.ok_or_else(|| QueryError::failed(format!("the table `{table}` cannot be found")))?;
        let name = Expr::Column(Column::new(Some(TableReference::bare(table)), column));
        let plan = LogicalPlanBuilder::from(scan.clone())
            .project(vec![name.alias("value")])
            .and_then(LogicalPlanBuilder::distinct)
            .and_then(LogicalPlanBuilder::build)
            .map_err(|error| planning(&error))?;
        let values = self.sorted_values(plan, data_type)?;
        if values.len() > MOST_GROUPS {
            return Err(QueryError::asked(
                format!("`{table}.{column}` has more than {MOST_GROUPS} values, and each would appear"),
                "group by something coarser",
            ));
        }
        Ok(values)
    }

    /// What the only column of a plan over public rows has, in order.
    pub(super) fn sorted_values(
        &self,
        plan: LogicalPlan,
        data_type: &DataType,
    ) -> Result<Vec<ScalarValue>, QueryError> {
        let mut values = Vec::new();
        for batch in (self.around.collect)(plan)? {
            values.extend(scalars(batch.column(0))?);
        }
        let cast = |value: ScalarValue| value.cast_to(data_type).map_err(|error| planning(&error));
        let mut values =
            values.into_iter().filter(|value| !value.is_null()).map(cast).collect::<Result<Vec<_>, _>>()?;
        values.sort_by(|a, b| a.partial_cmp(b).unwrap_or(std::cmp::Ordering::Equal));
        values.dedup();
        Ok(values)
    }

    /// Whether all keys are functions of who the unit is.
    pub(super) fn known_keys(&self) -> bool {
        self.grain == Grain::Element && self.key_tags.iter().all(|tag| tag.known)
    }

    /// Whether all keys are columns that neighbours agree on, row by row.
    pub(super) fn public_keys(&self) -> bool {
        matches!(self.unit.protect, Kind::Feature | Kind::Label) && self.key_tags.iter().all(|tag| tag.public)
    }

    /// The declared cap on groups: of the table that the keys are from, or of all that have one, whichever of them is read first.
    fn groups_declared(&self) -> Option<u64> {
        let of_key = |key: &Key| -> Option<Vec<String>> {
            let columns = key.expr.column_refs();
            let origin = |column: &&Column| self.input.tag(column).and_then(|tag| tag.origin.clone());
            let tables: Vec<String> = columns.iter().filter_map(origin).map(|(table, _)| table).collect();
            let private =
                tables.len() == columns.len() && tables.iter().all(|table| self.private.sources.contains(table));
            private.then_some(tables)
        };
        let cap = |table: &String| {
            let dataset = self.around.declaration.dataset(table).ok()?;
            let unit = dataset.unit.as_ref()?;
            unit.caps.groups.or(dataset.query.and_then(|query| query.groups))
        };
        let product = |tables: &BTreeSet<String>| {
            tables.iter().filter_map(cap).fold(None, |all: Option<u64>, cap| Some(all.unwrap_or(1).saturating_mul(cap)))
        };
        let of_keys: Option<Vec<Vec<String>>> = self.keys.iter().map(of_key).collect();
        let of_keys: Option<BTreeSet<String>> = of_keys.map(|tables| tables.into_iter().flatten().collect());
        of_keys.as_ref().and_then(product).or_else(|| product(&self.private.sources))
    }

    /// How many groups of one unit count, and whether that has to be seen to.
    pub(super) fn take_limit(&mut self) -> Result<(), QueryError> {
        if self.keys.is_empty() || self.grain == Grain::Row || self.known_keys() {
            return Ok(()); // one group, as it stands
        }
        let declared = self.asking.groups.or_else(|| self.groups_declared());
        // Where each key follows from user and element, a user has no more of them than elements.
        let of_elements =
            self.unit.caps.elements_per_user.filter(|_| {
                self.grain == Grain::User && self.private.element && self.key_tags.iter().all(|tag| tag.known)
            });
        let implied = [self.number, self.rows_in_all(), of_elements].into_iter().flatten().min();
        let limit = match (declared, implied) {
            (Some(declared), Some(implied)) => declared.min(implied),
            (Some(declared), None) => declared,
            (None, Some(implied)) => implied,
            (None, None) => {
                return Err(QueryError::asked(
                    format!("nothing says to how many groups one {} may contribute", self.unit_word()),
                    "say it with `asking.groups = N`, or declare unit.caps = { groups = N }",
                ));
            }
        };
        self.groups_per_unit = limit.max(1);
        // A unit cannot be in more groups than there are.
        let enforced =
            self.number.is_none_or(|number| number > limit) && self.structural().is_none_or(|most| most > limit);
        self.limit = enforced.then_some(self.groups_per_unit);
        Ok(())
    }
}

/// The values that `bin(x, low, high, n)` can take, the lower ends of its bins, and those of `width_bucket`, their numbers and one on either side.
fn bins(expr: &Expr) -> Option<Vec<ScalarValue>> {
    let call = match expr {
        Expr::Alias(alias) => return bins(&alias.expr),
        Expr::ScalarFunction(call) if ["bin", "width_bucket"].contains(&call.name()) => call,
        _ => return None,
    };
    let number = |i: usize| match call.args.get(i) {
        Some(Expr::Literal(value, _)) => literal(value),
        _ => None,
    };
    let (low, high, count) = (number(1)?, number(2)?, number(3)?);
    let edges = crate::functions::edges(low, high, count)?;
    if call.name() == "width_bucket" {
        return Some((0..=edges.len() as i64 + 1).map(|number| ScalarValue::Int64(Some(number))).collect());
    }
    Some(edges.into_iter().map(|edge| ScalarValue::Float64(Some(edge))).collect())
}

/// The values of an array.
fn scalars(array: &ArrayRef) -> Result<Vec<ScalarValue>, QueryError> {
    (0..array.len()).map(|i| ScalarValue::try_from_array(array, i).map_err(|error| planning(&error))).collect()
}
