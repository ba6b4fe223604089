//! Follows the unit through the relational algebra.
//!
//! Every relation over private rows carries hidden columns that say whose a row is. What comes out of an operator is
//! still attributable when each of its rows comes from rows of one unit alone: a filter and a projection keep that, a
//! join with a public table does, an aggregate does if it groups by the unit, and so on. What does not is refused.
//!
//! | operator | keeps the unit when |
//! |---|---|
//! | projection, filter, alias | always |
//! | join with public tables | always; one row may become several, and how many the public table says |
//! | join of private tables | it is along the user key; then rows belong to users, no longer to elements or events |
//! | aggregate, DISTINCT | it groups by the user; by the element too, or the rows belong to whole users from there on |
//! | window | it is partitioned by the user; likewise |
//! | UNION ALL | all inputs are private and pay from one budget |
//! | ORDER BY | always, since order is dropped |
//! | LIMIT | never: which rows stay depends on other units |

mod again;
mod equality;
mod group;
mod join;
mod order;
mod scan;
#[cfg(test)]
mod tests;

pub(crate) use crate::evaluate::words::{bare, renamed, said};
pub(crate) use group::aggregate_call;

use super::range::{self, Range};
use super::{ELEMENT, USER};
use crate::error::{QueryError, planning};
use crate::evaluate::allow;
use crate::translate::in_words;
use crate::whose::Owners;
use datafusion::arrow::datatypes::DataType;
use datafusion::common::{Column, DFSchema};
use datafusion::logical_expr::{
    Aggregate, Distinct, Expr, ExprSchemable, Filter, LogicalPlan, LogicalPlanBuilder, Projection, SubqueryAlias, Union,
};
use group::{group, look_around};
use join::pair;
use order::equalities_inside;
use scan::source;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use whit_core::declare::{Declaration, UnitDeclaration};

/// What planning asks of its surroundings.
pub(crate) struct Surroundings<'a> {
    /// What is declared.
    pub(crate) declaration: &'a Declaration,
    /// The element of each data set that has one, as an expression over its columns.
    pub(crate) elements: &'a BTreeMap<String, Expr>,
    /// Which data sets are private, and whose their rows are.
    pub(crate) owners: Owners,
    /// The scan of each data set.
    pub(crate) tables: &'a BTreeMap<String, LogicalPlan>,
    /// The aggregates that a sub-query inside of a unit may call.
    pub(crate) inside_units: &'a [&'static str],
    /// Runs a plan over public tables.
    pub(crate) collect: &'a dyn Fn(LogicalPlan) -> Result<Vec<datafusion::arrow::array::RecordBatch>, QueryError>,
}

/// What is known of a column.
#[derive(Debug, Clone, Default, PartialEq)]
#[expect(clippy::struct_excessive_bools, reason = "five independent facts about a column")]
pub(crate) struct Tag {
    /// It is the user.
    pub(crate) user: bool,
    /// It is the element.
    pub(crate) element: bool,
    /// Neighbours agree on it, row by row (feature and label units).
    pub(crate) public: bool,
    /// It is a function of who the unit is, and not of its rows: of the user and the element.
    pub(crate) known: bool,
    /// Neighbours agree on which values occur, because that was declared.
    pub(crate) observed: bool,
    /// The table and column that it was taken from, unchanged.
    pub(crate) origin: Option<(String, String)>,
    /// Between which numbers it lies.
    pub(crate) range: Option<Range>,
}

/// A relation, rewritten, and what is known of it.
#[derive(Debug, Clone)]
pub(crate) struct Tracked {
    pub(crate) plan: LogicalPlan,
    /// One for each column, hidden ones included.
    pub(crate) tags: Vec<Tag>,
    /// `None` where only public tables are read.
    pub(crate) private: Option<Private>,
}

/// What is known of a relation over private rows.
#[derive(Debug, Clone, PartialEq)]
#[expect(clippy::struct_excessive_bools, reason = "four independent facts about a relation")]
pub(crate) struct Private {
    /// The data set that the unit is taken from: the payer, where it is among those that are read.
    pub(crate) dataset: String,
    /// All private data sets that are read.
    pub(crate) sources: BTreeSet<String>,
    /// What was declared of the rows of one unit in all of them.
    pub(crate) caps: Caps,
    /// The data set whose budget pays: the one that a chain of keys leads to.
    pub(crate) payer: String,
    /// Whether the hidden user column is there.
    pub(crate) user: bool,
    /// Whether the hidden element column is there.
    pub(crate) element: bool,
    /// Where each row comes from one row of the source: how many rows one row of it may become.
    pub(crate) copies: Option<u64>,
    /// At most so many rows of one user, where the question itself makes it so: one, when it groups by the user alone.
    pub(crate) rows_of_user: Option<u64>,
    /// The same for one user in one element.
    pub(crate) rows_of_element: Option<u64>,
    /// Whether neighbours agree on which rows are there (feature and label units).
    pub(crate) rows_public: bool,
    /// Columns, by where they come from, of which no user has a value twice: keys that others lead to, as long as each row stands once, and what rows were grouped by.
    pub(crate) unique: BTreeSet<(String, String)>,
    /// Whether rows of private tables meet only under one user, though the question does not say so.
    pub(crate) met: bool,
}

/// How many rows one unit has, as declared: what the caps of the tables come to for a relation that is made of them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Caps {
    /// At most so many of one user.
    pub(crate) of_user: Option<u64>,
    /// At most so many of one user in one element.
    pub(crate) of_element: Option<u64>,
    /// At most so many of one unit in one group.
    pub(crate) in_group: Option<u64>,
}

impl Caps {
    fn of(unit: &UnitDeclaration) -> Self {
        let caps = &unit.caps;
        let product = caps.elements_per_user.zip(caps.rows_per_element).and_then(|(k, r)| k.checked_mul(r));
        Self {
            of_user: [caps.rows_per_user, product].into_iter().flatten().min(),
            of_element: caps.rows_per_element,
            in_group: caps.rows_per_group,
        }
    }

    /// Where each row may become so many.
    fn times(self, most: u64) -> Self {
        let of = |cap: Option<u64>| cap.and_then(|cap| cap.checked_mul(most));
        Self { of_user: of(self.of_user), of_element: of(self.of_element), in_group: of(self.in_group) }
    }

    /// Of two relations together, in whichever order: each row of one with each of the other, or the rows of both.
    fn with(self, other: Self, both: fn(u64, u64) -> Option<u64>) -> Self {
        let of = |a: Option<u64>, b: Option<u64>| a.zip(b).and_then(|(a, b)| both(a, b));
        // Where only one says how many rows count in a group, those of the other are as many as it may have.
        let said = self.in_group.is_some() || other.in_group.is_some();
        let counted = |caps: Self| caps.in_group.or(caps.of_user);
        Self {
            of_user: of(self.of_user, other.of_user),
            of_element: of(self.of_element, other.of_element),
            in_group: of(counted(self), counted(other)).filter(|_| said),
        }
    }
}

impl Private {
    /// What of one relation and another is known of both together, whichever comes first.
    fn together(&self, other: &Self) -> Self {
        let sources: BTreeSet<String> = self.sources.union(&other.sources).cloned().collect();
        let least = sources.first().cloned().unwrap_or_default();
        let dataset = if sources.contains(&self.payer) { self.payer.clone() } else { least };
        Self { dataset, sources, met: self.met || other.met, ..self.clone() }
    }
}

impl Tracked {
    fn public(plan: LogicalPlan) -> Self {
        let table = match &plan {
            LogicalPlan::TableScan(scan) => Some(scan.table_name.table().to_owned()),
            _ => None,
        };
        let tag = |field: &str| Tag {
            public: true,
            known: true,
            origin: table.as_ref().map(|table| (table.clone(), field.to_owned())),
            ..Tag::default()
        };
        let tags = plan.schema().fields().iter().map(|field| tag(field.name())).collect();
        Self { plan, tags, private: None }
    }

    /// The tag of a column.
    pub(crate) fn tag(&self, column: &Column) -> Option<&Tag> {
        self.plan.schema().maybe_index_of_column(column).map(|index| &self.tags[index])
    }

    /// What is known of an expression over this relation.
    pub(crate) fn tag_of(&self, expr: &Expr, around: &Surroundings<'_>) -> Tag {
        match expr {
            Expr::Alias(alias) => self.tag_of(&alias.expr, around),
            Expr::Column(column) => self.tag(column).cloned().unwrap_or_default(),
            _ => {
                let columns = expr.column_refs();
                let all = |test: &dyn Fn(&Tag) -> bool| {
                    columns.iter().all(|column| self.tag(column).is_some_and(test)) && !expr.is_volatile()
                };
                let element = self.is_element(expr, around);
                Tag {
                    user: false,
                    element,
                    public: all(&|tag| tag.public),
                    known: element || all(&|tag| tag.known),
                    observed: all(&|tag| tag.observed || tag.public),
                    origin: None,
                    range: range::of(expr, &|column| self.tag(column).and_then(|tag| tag.range)),
                }
            }
        }
    }

    /// Whether an expression is the declared element, written out.
    fn is_element(&self, expr: &Expr, around: &Surroundings<'_>) -> bool {
        let Some(private) = self.private.as_ref().filter(|private| private.element) else { return false };
        let Some(element) = around.elements.get(&private.dataset) else { return false };
        let columns = expr.column_refs();
        let from_source = columns.iter().all(|column| {
            let tag = self.tag(column).and_then(|tag| tag.origin.as_ref());
            tag.is_some_and(|(table, name)| *table == private.dataset && *name == column.name)
        });
        !columns.is_empty() && from_source && bare(expr) == bare(element)
    }

    /// The hidden column of a name.
    pub(crate) fn hidden(&self, name: &str) -> Option<Expr> {
        hidden(self.plan.schema(), name)
    }

    /// The columns that the question knows of, wherever hidden ones stand among them.
    fn visible(&self) -> impl Iterator<Item = (Expr, &Tag)> {
        let columns = self.plan.schema().iter().zip(&self.tags);
        columns
            .filter(|((_, field), _)| ![USER, ELEMENT].contains(&field.name().as_str()))
            .map(|(field, tag)| (Expr::from(field), tag))
    }

    fn hidden_columns(&self) -> Vec<Expr> {
        [USER, ELEMENT].into_iter().filter_map(|name| self.hidden(name)).collect()
    }
}

/// The hidden column of a name, whatever table it is under.
pub(crate) fn hidden(schema: &DFSchema, name: &str) -> Option<Expr> {
    schema
        .iter()
        .find(|(_, field)| field.name() == name)
        .map(|(table, field)| Expr::Column(Column::new(table.cloned(), field.name().clone())))
}

/// Why a relation cannot be attributed to units.
#[derive(Debug)]
pub(crate) enum Lost {
    /// An aggregate that does not group by the unit: it may be a release of its own, with this as post-processing.
    Mixed,
    /// It cannot be done.
    Never(QueryError),
}

impl From<QueryError> for Lost {
    fn from(error: QueryError) -> Self {
        Self::Never(error)
    }
}

fn never<T>(sentence: impl Into<String>, hint: impl Into<String>) -> Result<T, Lost> {
    Err(Lost::Never(QueryError::asked(sentence, hint)))
}

/// Rewrites a relation so that each of its rows says whose it is, and derives that again from what came out.
pub(crate) fn track(plan: &LogicalPlan, around: &Surroundings<'_>) -> Result<Tracked, Lost> {
    let tracked = follow(plan, around)?;
    again::compare(&tracked, &around.owners)?;
    Ok(tracked)
}

/// One function for each operator.
fn follow(plan: &LogicalPlan, around: &Surroundings<'_>) -> Result<Tracked, Lost> {
    match plan {
        LogicalPlan::TableScan(scan) => source(plan, scan, around),
        LogicalPlan::SubqueryAlias(alias) => rename(alias, around),
        LogicalPlan::Projection(projection) => project(projection, around),
        LogicalPlan::Filter(filter) => select(filter, around),
        LogicalPlan::Join(join) => pair(join, around),
        LogicalPlan::Union(union) => unite(union, around),
        LogicalPlan::Aggregate(aggregate) => group(aggregate, around),
        LogicalPlan::Distinct(Distinct::All(input)) => distinct(input, around),
        LogicalPlan::Window(window) => look_around(window, around),
        // In which order rows stand changes no aggregate.
        LogicalPlan::Sort(sort) if sort.fetch.is_none() => track(&sort.input, around),
        LogicalPlan::EmptyRelation(_) | LogicalPlan::Values(_) => Ok(Tracked::public(plan.clone())),
        LogicalPlan::Sort(_) | LogicalPlan::Limit(_) => limit(plan, around),
        other => unknown(other, around),
    }
}

fn rename(alias: &SubqueryAlias, around: &Surroundings<'_>) -> Result<Tracked, Lost> {
    let input = track(&alias.input, around)?;
    let plan = built(LogicalPlanBuilder::from(input.plan).alias(alias.alias.clone()))?;
    Ok(Tracked { plan, ..input })
}

/// An aggregate by all columns, of nothing.
fn distinct(input: &Arc<LogicalPlan>, around: &Surroundings<'_>) -> Result<Tracked, Lost> {
    let (exprs, none): (Vec<Expr>, Vec<Expr>) = (input.schema().iter().map(Expr::from).collect(), Vec::new());
    let aggregate = Aggregate::try_new(Arc::clone(input), exprs, none).map_err(|error| planning(&error))?;
    group(&aggregate, around)
}

fn limit(plan: &LogicalPlan, around: &Surroundings<'_>) -> Result<Tracked, Lost> {
    let input = plan
        .inputs()
        .first()
        .map_or_else(|| never("LIMIT without rows", "leave it out"), |input| track(input, around))?;
    if input.private.is_some() {
        return never(
            "LIMIT inside of an aggregate: which rows stay would depend on other units",
            "put LIMIT at the end, where it works on the released table",
        );
    }
    Ok(Tracked::public(plan.clone()))
}

/// What is not known keeps nothing.
fn unknown(plan: &LogicalPlan, around: &Surroundings<'_>) -> Result<Tracked, Lost> {
    let mut private = false;
    for input in plan.inputs() {
        private |= track(input, around)?.private.is_some();
    }
    let name = plan.display().to_string();
    let name = name.split([' ', ':']).next().unwrap_or("this operator").to_owned();
    if private || plan.inputs().is_empty() {
        return never(
            format!("{name} is not known to keep the unit of privacy"),
            "use projections, WHERE, joins, GROUP BY, UNION ALL and window functions",
        );
    }
    Ok(Tracked::public(plan.clone()))
}

fn built(builder: datafusion::common::Result<LogicalPlanBuilder>) -> Result<LogicalPlan, QueryError> {
    builder.and_then(LogicalPlanBuilder::build).map_err(|error| planning(&error))
}

/// An expression made safe, under the name that it had.
fn safe(expr: &Expr, around: &Surroundings<'_>) -> Result<Expr, QueryError> {
    let name = expr.schema_name().to_string();
    let changed = safe_value(expr, around)?;
    let kept = changed.schema_name().to_string() == name;
    Ok(if kept { changed } else { changed.alias(name) })
}

/// The same where nobody reads its name.
pub(crate) fn safe_value(expr: &Expr, around: &Surroundings<'_>) -> Result<Expr, QueryError> {
    let mut public = |plan: &LogicalPlan| Ok(track(plan, around).is_ok_and(|tracked| tracked.private.is_none()));
    allow::expression(expr.clone(), &mut public)
}

fn project(projection: &Projection, around: &Surroundings<'_>) -> Result<Tracked, Lost> {
    let input = track(&projection.input, around)?;
    if input.private.is_none() {
        return Ok(relabelled(LogicalPlan::Projection(projection.clone()), &projection.expr, &input, around));
    }
    let mut exprs = projection.expr.iter().map(|expr| safe(expr, around)).collect::<Result<Vec<_>, _>>()?;
    let mut tags: Vec<Tag> = projection.expr.iter().map(|expr| input.tag_of(expr, around)).collect();
    for column in input.hidden_columns() {
        tags.push(input.tag_of(&column, around));
        exprs.push(column);
    }
    let projected = Projection::try_new(exprs, Arc::new(input.plan)).map_err(|error| planning(&error))?;
    Ok(Tracked { plan: LogicalPlan::Projection(projected), tags, private: input.private })
}

fn relabelled(plan: LogicalPlan, exprs: &[Expr], input: &Tracked, around: &Surroundings<'_>) -> Tracked {
    let tags = exprs.iter().map(|expr| input.tag_of(expr, around)).collect();
    Tracked { plan, tags, private: None }
}

fn select(filter: &Filter, around: &Surroundings<'_>) -> Result<Tracked, Lost> {
    let (inside, predicate) = equalities_inside(&filter.input, &filter.predicate)?;
    let input = track(&inside, around)?;
    let Some(mut private) = input.private.clone() else {
        return Ok(Tracked { plan: LogicalPlan::Filter(filter.clone()), ..input });
    };
    let Some(predicate) = predicate else { return Ok(input) };
    private.rows_public &= input.tag_of(&predicate, around).public;
    let (schema, columns) = (input.plan.schema(), input.plan.schema().columns());
    let narrowed = columns.iter().zip(schema.fields()).zip(input.tags).map(|((column, field), tag)| {
        let range = range::under(&predicate, column, field.data_type(), tag.range);
        Tag { range, ..tag }
    });
    let tags = narrowed.collect();
    let predicate = safe_value(&predicate, around)?;
    let plan = built(LogicalPlanBuilder::from(input.plan).filter(predicate))?;
    Ok(Tracked { plan, tags, private: Some(private) })
}

fn unite(union: &Union, around: &Surroundings<'_>) -> Result<Tracked, Lost> {
    let inputs = union.inputs.iter().map(|input| track(input, around)).collect::<Result<Vec<_>, _>>()?;
    let privates: Vec<Private> = inputs.iter().filter_map(|input| input.private.clone()).collect();
    let Some(mut merged) = privates.first().cloned() else {
        return Ok(Tracked::public(LogicalPlan::Union(union.clone())));
    };
    if privates.len() < inputs.len() || privates.iter().any(|private| private.payer != merged.payer) {
        return never(
            "UNION ALL of tables that do not all belong to users with one budget",
            "ask them one by one and unite what was released",
        );
    }
    let one_source = privates.iter().all(|private| private.sources == merged.sources);
    for other in &privates[1..] {
        merged = merged.together(other);
        merged.caps = merged.caps.with(other.caps, u64::checked_add);
    }
    merged.element = one_source && privates.iter().all(|private| private.element);
    merged.user = privates.iter().all(|private| private.user);
    merged.rows_public = privates.iter().all(|private| private.rows_public);
    merged.copies = privates.iter().try_fold(0_u64, |sum, private| sum.checked_add(private.copies?));
    merged.rows_of_user = privates.iter().try_fold(0_u64, |sum, private| sum.checked_add(private.rows_of_user?));
    merged.rows_of_element = privates.iter().try_fold(0_u64, |sum, private| sum.checked_add(private.rows_of_element?));
    if !one_source {
        merged.copies = None; // what is one row of one table is none of the other
    }
    merged.unique.clear();
    let mut plans: Vec<LogicalPlan> = Vec::new();
    for input in &inputs {
        let mut exprs: Vec<Expr> = input.visible().map(|(field, _)| field).collect();
        exprs.extend(input.hidden(USER).filter(|_| merged.user).map(|column| column.alias(USER)));
        exprs.extend(input.hidden(ELEMENT).filter(|_| merged.element).map(|column| column.alias(ELEMENT)));
        plans.push(built(LogicalPlanBuilder::from(input.plan.clone()).project(exprs))?);
    }
    of_one_type(&plans)?;
    let first = plans.remove(0);
    let united = plans.into_iter().try_fold(LogicalPlanBuilder::from(first), LogicalPlanBuilder::union);
    let plan = built(united)?;
    let same = |i: usize| {
        let mut tags = inputs.iter().filter_map(|input| input.visible().nth(i)).map(|(_, tag)| tag.clone());
        let first = tags.next().unwrap_or_default();
        tags.fold(first, |a, b| Tag {
            user: a.user && b.user,
            element: a.element && b.element,
            public: a.public && b.public,
            // Two functions of who a unit is are not one: a unit would have a group for each.
            known: (a.user && b.user) || (a.element && b.element),
            observed: a.observed && b.observed,
            origin: a.origin.filter(|origin| Some(origin) == b.origin.as_ref()),
            range: a.range.filter(|range| Some(range) == b.range.as_ref()),
        })
    };
    let mut tags: Vec<Tag> = (0..union.schema.fields().len()).map(same).collect();
    let hidden = Tag { known: true, ..Tag::default() };
    tags.extend(merged.user.then(|| Tag { user: true, ..hidden.clone() }));
    tags.extend(merged.element.then_some(Tag { element: true, ..hidden }));
    Ok(Tracked { plan, tags, private: Some(merged) })
}

/// Refuses branches of a union whose columns are of different types. (Numbers have one by now.)
fn of_one_type(branches: &[LogicalPlan]) -> Result<(), Lost> {
    let Some((first, others)) = branches.split_first() else { return Ok(()) };
    let fields = || first.schema().fields().iter();
    let pairs = others.iter().flat_map(|other| fields().zip(other.schema().fields()));
    let Some((field, other)) = pairs.into_iter().find(|(field, other)| field.data_type() != other.data_type()) else {
        return Ok(());
    };
    let (what, hint) = match field.name().as_str() {
        USER => ("the user".to_owned(), "declare the columns that hold users with one type".to_owned()),
        ELEMENT => ("the element".to_owned(), "declare the columns that hold elements with one type".to_owned()),
        name => (
            format!("`{name}`"),
            format!(
                "bring both to one type in the branches, such as CAST({name} AS VARCHAR) or CAST({name} AS DOUBLE)"
            ),
        ),
    };
    never(
        format!(
            "in this UNION ALL {what} is {} in one branch and {} in another",
            in_words(field.data_type()),
            in_words(other.data_type())
        ),
        hint,
    )
}

/// The relation without some of its hidden columns. Its rows belong to whole users from here on.
fn without(tracked: Tracked, hidden: &[&str]) -> Result<Tracked, QueryError> {
    let (mut exprs, mut tags) = (Vec::new(), Vec::new());
    for ((table, field), tag) in tracked.plan.schema().iter().zip(&tracked.tags) {
        if !hidden.contains(&field.name().as_str()) {
            exprs.push(Expr::Column(Column::new(table.cloned(), field.name().clone())));
            tags.push(Tag { element: false, known: tag.user, ..tag.clone() });
        }
    }
    let plan = built(LogicalPlanBuilder::from(tracked.plan).project(exprs))?;
    Ok(Tracked { plan, tags, private: tracked.private })
}

/// The type of an expression over a tracked relation.
pub(crate) fn type_of(expr: &Expr, tracked: &Tracked) -> Result<DataType, QueryError> {
    expr.get_type(tracked.plan.schema()).map_err(|error| planning(&error))
}
