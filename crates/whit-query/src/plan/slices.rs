//! Which slices of a data set a question reads.
//!
//! It reads those of which its conditions let rows through, wherever a private table is scanned. A condition counts only where every row of the scan has to pass it before it
//! meets anything else: other rows, in an aggregate or a window, or a join in which its place may be taken by NULL. Whatever is not understood reads everything.

use super::Plan;
use crate::evaluate::attempt::quietly;
use crate::evaluate::computed;
use crate::source::{Tables, slice_kind};
use datafusion::arrow::datatypes::DataType;
use datafusion::common::{Column, DFSchema};
use datafusion::logical_expr::{Between, BinaryExpr, Expr, ExprSchemable, JoinType, LogicalPlan, Operator};
use datafusion::scalar::ScalarValue;
use serde_json::json;
use whit_core::declare::Dataset;
use whit_core::unit::{SliceKind, SliceRange, SliceValue, Slices, Slicing};

impl Tables {
    /// By which column a data set is divided into slices, where that is declared.
    pub(crate) fn slicing(&self, dataset: &str) -> Option<Slicing> {
        let source = self.warehouse.source(dataset).ok()?;
        let column = source.dataset.slice.as_ref()?;
        let kind = slice_kind(source.schema.field_with_name(column).ok()?.data_type())?;
        Some(Slicing { column: column.clone(), kind, reading: reading(&source.dataset) })
    }

    /// The same, where units of this rung lie in one slice each.
    ///
    /// The element is looked at as it is computed too, and not only as it is written.
    pub(crate) fn slicing_of(&self, dataset: &str, unit: &whit_core::Unit) -> Option<Slicing> {
        let slicing = self.slicing(dataset)?;
        let declared = self.warehouse.declaration().datasets.get(dataset)?.unit.as_ref()?;
        let is_column = |element: &Expr| matches!(element, Expr::Column(column) if column.name == slicing.column);
        let element = unit.kind() != whit_core::Kind::Element || self.element(dataset).is_some_and(is_column);
        (element && declared.lies_in_one_slice(unit, &slicing.column)).then_some(slicing)
    }

    /// The rungs of a plan, each with the slices that are read where its units lie in slices.
    ///
    /// # Why
    /// A row whose value lies in none of the slices, or that has none, does not pass a condition that stands between its scan and everything else that looks at it. So the
    /// rows that a part goes on with are the same with it and without, and all that comes after, what is kept under caps among it, is a function of these rows, of public tables and of
    /// coins. What a step computes of a row hangs on that row alone, and nothing in a row makes a question fail (`evaluate`), so that rows which do not pass decide nothing by failing either.
    pub(super) fn sliced(&self, mut plan: Plan) -> Plan {
        let Some(slicing) = self.slicing(&plan.dataset).filter(|_| !plan.rungs.is_empty()) else { return plan };
        let slices = self.read_by(&plan, &slicing);
        for rung in &mut plan.rungs {
            rung.slices = self.slicing_of(&plan.dataset, &rung.unit).and(slices.clone());
        }
        let column = &slicing.column;
        plan.notes.push(match &slices {
            Some(slices) => format!("it is charged to {slices} alone, where units lie in one `{column}` each"),
            None => format!(
                "it may read every `{column}`, and is charged to all: what names some alone, in a plain condition on every scan, is charged to those"
            ),
        });
        plan
    }

    /// The slices that all parts of a plan read; nothing where they may read any.
    fn read_by(&self, plan: &Plan, slicing: &Slicing) -> Option<Slices> {
        let state = self.warehouse.context().state();
        let private = |table: &str| {
            self.warehouse.declaration().datasets.get(table).is_some_and(|dataset| dataset.unit.is_some())
        };
        let table = SlicedTable { name: &plan.dataset, slicing, private: &private };
        let mut ranges = Vec::new();
        for part in &plan.parts {
            // As it is run: with types that agree, and with its constants computed.
            let typed = state.analyzer().execute_and_check(part.rows.clone(), state.config_options(), |_, _| {});
            // What the engine cannot make of it is reported where the question is tried.
            let computed = quietly(|| computed(typed.ok()?, &state).ok());
            ranges.extend(table.read(&computed??, &[])?);
        }
        // Where no row can pass there is no slice to charge it to, and it is charged to all.
        Slices::new(slicing.clone(), ranges)
    }
}

/// All that is declared of how values are read from files, in one text; empty where nothing is. Another text may mean other values of the same rows under the same names.
fn reading(dataset: &Dataset) -> String {
    let mut parts = serde_json::Map::new();
    let mut say = |name: &str, value: serde_json::Value| parts.insert(name.to_owned(), value);
    if let Some(format) = dataset.format {
        say("format", json!(format));
    }
    if dataset.newlines_in_values {
        say("newlines_in_values", true.into());
    }
    if !dataset.layout.is_default() {
        say("layout", json!(dataset.layout));
    }
    if !dataset.partitioned_by.is_empty() {
        say("partitioned_by", json!(dataset.partitioned_by));
    }
    if let Some(open) = &dataset.open {
        say("open", json!(open));
    }
    if parts.is_empty() { String::new() } else { serde_json::Value::Object(parts).to_string() }
}

/// A condition that rows have to pass: in the column of this place, a value in one of these ranges.
type Passing = (usize, Vec<SliceRange>);

/// The table whose slices are looked for.
struct SlicedTable<'a> {
    name: &'a str,
    slicing: &'a Slicing,
    private: &'a dyn Fn(&str) -> bool,
}

impl SlicedTable<'_> {
    /// The slices of which rows may pass, through a relation whose rows have to pass these conditions next; nothing where that is not known.
    fn read(&self, plan: &LogicalPlan, passing: &[Passing]) -> Option<Vec<SliceRange>> {
        match plan {
            LogicalPlan::TableScan(scan) => {
                let table = scan.table_name.table();
                if !(self.private)(table) {
                    return Some(Vec::new());
                }
                let fields = scan.projected_schema.fields();
                let own = |(place, _): &&Passing| {
                    fields.get(*place).is_some_and(|field| field.name() == &self.slicing.column)
                };
                let mut own = passing.iter().filter(own).map(|(_, ranges)| ranges.clone());
                if table != self.name {
                    return None;
                }
                let first = own.next()?;
                Some(own.fold(first, |so_far, more| both(&so_far, &more)))
            }
            LogicalPlan::Filter(filter) => {
                let mut passing = passing.to_vec();
                passing.extend(self.said_by(&filter.predicate, filter.input.schema()));
                self.read(&filter.input, &passing)
            }
            LogicalPlan::SubqueryAlias(alias) => self.read(&alias.input, passing),
            LogicalPlan::Projection(projection) => {
                let below = |(place, ranges): &Passing| {
                    let column = column_of(projection.expr.get(*place)?)?;
                    Some((projection.input.schema().maybe_index_of_column(column)?, ranges.clone()))
                };
                let passing: Vec<Passing> = passing.iter().filter_map(below).collect();
                self.read(&projection.input, &passing)
            }
            LogicalPlan::Sort(sort) if sort.fetch.is_none() => self.read(&sort.input, passing),
            LogicalPlan::Union(union) => self.all(union.inputs.iter().map(|input| (input.as_ref(), passing.to_vec()))),
            LogicalPlan::Join(join) => {
                let mut passing = passing.to_vec();
                if join.join_type == JoinType::Inner {
                    // SQL leaves conditions in the join.
                    passing.extend(join.filter.iter().flat_map(|filter| self.said_by(filter, &join.schema)));
                }
                // A side that may be missing has NULL in its place, whatever its rows were: a row that would not pass decides there whether another is left alone.
                let (keeps_left, keeps_right) = match join.join_type {
                    JoinType::Inner => (true, true),
                    JoinType::Left | JoinType::LeftSemi | JoinType::LeftAnti | JoinType::LeftMark => (true, false),
                    _ => (false, false),
                };
                let width = join.left.schema().fields().len();
                let left = passing.iter().filter(|(place, _)| keeps_left && *place < width).cloned().collect();
                let right = passing.iter().filter(|(place, _)| keeps_right && *place >= width);
                let right = right.map(|(place, ranges)| (place - width, ranges.clone())).collect();
                self.all([(join.left.as_ref(), left), (join.right.as_ref(), right)].into_iter())
            }
            // What comes out looks at several rows that went in, or is not known: nothing that is asked of it afterwards counts.
            other => self.all(other.inputs().into_iter().map(|input| (input, Vec::new()))),
        }
    }

    fn all<'p>(&self, inputs: impl Iterator<Item = (&'p LogicalPlan, Vec<Passing>)>) -> Option<Vec<SliceRange>> {
        let mut ranges = Vec::new();
        for (input, passing) in inputs {
            ranges.extend(self.read(input, &passing)?);
        }
        Some(ranges)
    }

    /// What a condition says of the values of single columns in rows for which it is true.
    fn said_by(&self, predicate: &Expr, schema: &DFSchema) -> Vec<Passing> {
        let columns = predicate.column_refs();
        let places = columns.into_iter().filter_map(|column| {
            let place = schema.maybe_index_of_column(column)?;
            // A column of another type is not the one of slices, and its constants are none of theirs.
            let fits = slice_kind(schema.field(place).data_type()) == Some(self.slicing.kind);
            let ranges = self.values(predicate, column, schema).filter(|_| fits)?;
            Some((place, ranges))
        });
        places.collect()
    }

    /// The values that a column has in rows for which an expression is true; nothing where they may be any.
    fn values(&self, expr: &Expr, column: &Column, schema: &DFSchema) -> Option<Vec<SliceRange>> {
        let own = |expr: &Expr| self.is_column(expr, column, schema);
        match expr {
            Expr::BinaryExpr(BinaryExpr { left, op: Operator::And, right }) => {
                match (self.values(left, column, schema), self.values(right, column, schema)) {
                    (Some(a), Some(b)) => Some(both(&a, &b)),
                    (one, other) => one.or(other),
                }
            }
            Expr::BinaryExpr(BinaryExpr { left, op: Operator::Or, right }) => {
                let (mut a, b) = (self.values(left, column, schema)?, self.values(right, column, schema)?);
                a.extend(b);
                Some(a)
            }
            Expr::BinaryExpr(BinaryExpr { left, op, right }) => {
                let (op, value) = match (own(left), own(right)) {
                    (true, false) => (*op, self.value(right)?),
                    (false, true) => (op.swap()?, self.value(left)?),
                    _ => return None,
                };
                compared(op, value).map(|range| range.into_iter().collect())
            }
            Expr::Between(Between { expr, negated: false, low, high }) if own(expr) => {
                let (from, to) = (Some(self.value(low)?), Some(self.value(high)?));
                Some((from <= to).then_some(SliceRange { from, to }).into_iter().collect())
            }
            Expr::InList(list) if !list.negated && own(&list.expr) => {
                list.list.iter().map(|item| self.value(item).map(SliceRange::one)).collect()
            }
            _ => None,
        }
    }

    /// Whether an expression is the column, as it is or as another type that holds the same whole number or the same text, or NULL.
    fn is_column(&self, expr: &Expr, column: &Column, schema: &DFSchema) -> bool {
        let same = |inner: &Expr, to: &DataType| {
            let from = inner.get_type(schema).ok();
            let of_one_kind = from.as_ref().and_then(slice_kind).is_some_and(|kind| slice_kind(to) == Some(kind));
            of_one_kind && self.is_column(inner, column, schema)
        };
        match expr {
            Expr::Column(named) => named == column,
            Expr::Cast(cast) => same(&cast.expr, cast.field.data_type()),
            Expr::TryCast(cast) => same(&cast.expr, cast.field.data_type()),
            _ => false,
        }
    }

    /// A constant of the kind of the slices.
    fn value(&self, expr: &Expr) -> Option<SliceValue> {
        let Expr::Literal(value, _) = expr else { return None };
        match (self.slicing.kind, value) {
            (SliceKind::Day, ScalarValue::Date32(Some(day))) => Some(SliceValue::Whole(i64::from(*day))),
            (SliceKind::Number, value) if value.data_type().is_integer() => match value.cast_to(&DataType::Int64) {
                Ok(ScalarValue::Int64(Some(number))) => Some(SliceValue::Whole(number)),
                _ => None,
            },
            (
                SliceKind::Text,
                ScalarValue::Utf8(Some(text)) | ScalarValue::LargeUtf8(Some(text)) | ScalarValue::Utf8View(Some(text)),
            ) => Some(SliceValue::Text(text.clone())),
            _ => None,
        }
    }
}

/// Which values compare in this way with one: nothing where that is not known, and no range where none does.
fn compared(op: Operator, value: SliceValue) -> Option<Option<SliceRange>> {
    let whole = |number: Option<i64>| number.map(SliceValue::Whole);
    Some(match (op, value) {
        (Operator::Eq, value) => Some(SliceRange::one(value)),
        (Operator::GtEq, value) => Some(SliceRange { from: Some(value), to: None }),
        (Operator::LtEq, value) => Some(SliceRange { from: None, to: Some(value) }),
        (Operator::Gt, SliceValue::Whole(number)) => {
            whole(number.checked_add(1)).map(|from| SliceRange { from: Some(from), to: None })
        }
        (Operator::Lt, SliceValue::Whole(number)) => {
            whole(number.checked_sub(1)).map(|to| SliceRange { from: None, to: Some(to) })
        }
        // One text more than may pass.
        (Operator::Gt, text @ SliceValue::Text(_)) => Some(SliceRange { from: Some(text), to: None }),
        (Operator::Lt, text @ SliceValue::Text(_)) => Some(SliceRange { from: None, to: Some(text) }),
        _ => return None,
    })
}

/// The column that an expression is, under whichever name.
fn column_of(expr: &Expr) -> Option<&Column> {
    match expr {
        Expr::Alias(alias) => column_of(&alias.expr),
        Expr::Column(column) => Some(column),
        _ => None,
    }
}

/// What is in a range of either.
fn both(some: &[SliceRange], others: &[SliceRange]) -> Vec<SliceRange> {
    some.iter().flat_map(|range| others.iter().filter_map(|other| range.and(other))).collect()
}
