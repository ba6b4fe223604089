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

use super::range::{self, Range};
use super::{ELEMENT, USER, allow};
use crate::engine::{number, planning};
use crate::error::QueryError;
use datafusion::arrow::array::{Array, Int64Array};
use datafusion::common::{Column, DFSchema};
use datafusion::logical_expr::Operator;
use datafusion::logical_expr::utils::{conjunction, find_valid_equijoin_key_pair, split_conjunction_owned};
use datafusion::logical_expr::{
    Aggregate, Distinct, Expr, ExprSchemable, Filter, Join, JoinType, LogicalPlan, LogicalPlanBuilder, Projection,
    TableScan, Union, Window, WindowFunctionDefinition, lit,
};
use datafusion::prelude::col;
use std::collections::BTreeMap;
use std::sync::Arc;
use whit_core::declare::{Bounds, Dataset, Declaration, UserKey};
use whit_core::unit::Kind;

/// The names of functions that look an element up in a partition file start with this.
pub(crate) const PARTITION_FUNCTION: &str = "whit_element_of_";

/// What planning asks of its surroundings.
pub(crate) struct Surroundings<'a> {
    /// What is declared.
    pub(crate) declaration: &'a Declaration,
    /// The element of each data set that has one, as an expression over its columns.
    pub(crate) elements: &'a BTreeMap<String, Expr>,
    /// The scan of each data set.
    pub(crate) tables: &'a BTreeMap<String, LogicalPlan>,
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
pub(crate) struct Private {
    /// The data set that is read first.
    pub(crate) dataset: String,
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

/// An expression without table names and aliases, to compare with another.
fn bare(expr: &Expr) -> Expr {
    use datafusion::common::tree_node::{Transformed, TreeNode};
    let stripped = expr.clone().transform_up(|node| {
        Ok(match node {
            Expr::Column(column) => Transformed::yes(Expr::Column(Column::new_unqualified(column.name))),
            Expr::Alias(alias) => Transformed::yes(*alias.expr),
            other => Transformed::no(other),
        })
    });
    stripped.map_or_else(|_| expr.clone(), |stripped| stripped.data)
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

/// Rewrites a relation so that each of its rows says whose it is.
pub(crate) fn track(plan: &LogicalPlan, around: &Surroundings<'_>) -> Result<Tracked, Lost> {
    match plan {
        LogicalPlan::TableScan(scan) => source(plan, scan, around),
        LogicalPlan::SubqueryAlias(alias) => {
            let input = track(&alias.input, around)?;
            let plan = built(LogicalPlanBuilder::from(input.plan).alias(alias.alias.clone()))?;
            Ok(Tracked { plan, ..input })
        }
        LogicalPlan::Projection(projection) => project(projection, around),
        LogicalPlan::Filter(filter) => select(filter, around),
        LogicalPlan::Join(join) => pair(join, around),
        LogicalPlan::Union(union) => unite(union, around),
        LogicalPlan::Aggregate(aggregate) => group(aggregate, around),
        LogicalPlan::Distinct(Distinct::All(input)) => {
            let (exprs, none): (Vec<Expr>, Vec<Expr>) = (input.schema().iter().map(Expr::from).collect(), Vec::new());
            let aggregate = Aggregate::try_new(Arc::clone(input), exprs, none).map_err(|error| planning(&error))?;
            group(&aggregate, around)
        }
        LogicalPlan::Window(window) => look_around(window, around),
        LogicalPlan::Sort(sort) if sort.fetch.is_none() => track(&sort.input, around),
        LogicalPlan::EmptyRelation(_) | LogicalPlan::Values(_) => Ok(Tracked::public(plan.clone())),
        LogicalPlan::Sort(_) | LogicalPlan::Limit(_) => {
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
        other => {
            let mut private = false;
            for input in other.inputs() {
                private |= track(input, around)?.private.is_some();
            }
            let name = other.display().to_string();
            let name = name.split([' ', ':']).next().unwrap_or("this operator").to_owned();
            if private || other.inputs().is_empty() {
                return never(
                    format!("{name} is not known to keep the unit of privacy"),
                    "use projections, WHERE, joins, GROUP BY, UNION ALL and window functions",
                );
            }
            Ok(Tracked::public(other.clone()))
        }
    }
}

fn built(builder: datafusion::common::Result<LogicalPlanBuilder>) -> Result<LogicalPlan, QueryError> {
    builder.and_then(LogicalPlanBuilder::build).map_err(|error| planning(&error))
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

fn source(plan: &LogicalPlan, scan: &TableScan, around: &Surroundings<'_>) -> Result<Tracked, Lost> {
    let table = scan.table_name.table();
    let Ok(dataset) = around.declaration.dataset(table) else {
        return never(
            format!("`{table}` is not declared, so nobody has said what one whit of it is"),
            "declare it in whit.toml, with a unit or with `public = true`",
        );
    };
    let Some(unit) = dataset.unit.as_ref() else { return Ok(Tracked::public(plan.clone())) };
    let schema = plan.schema();
    // Arithmetic on decimals fails where it overflows, and a failure tells of a row: as floats they do not.
    let plain =
        |(table, field): (Option<&datafusion::common::TableReference>, &datafusion::arrow::datatypes::FieldRef)| {
            let column = Expr::Column(Column::new(table.cloned(), field.name().clone()));
            match field.data_type() {
                kind if kind.is_decimal() => {
                    let float = datafusion::logical_expr::TryCast::new(
                        Box::new(column),
                        datafusion::arrow::datatypes::DataType::Float64,
                    );
                    Expr::TryCast(float).alias_qualified(table.cloned(), field.name())
                }
                kind if kind.is_floating() => number(column).alias_qualified(table.cloned(), field.name()),
                _ => column,
            }
        };
    let mut exprs: Vec<Expr> = schema.iter().map(plain).collect();
    let mut tags: Vec<Tag> = Vec::new();
    let is_public = |column: &str| unit.units().first().is_some_and(|unit| unit.is_public(column));
    let element_column = around.elements.get(table).and_then(|element| match element {
        Expr::Column(column) => Some(column.name.clone()),
        _ => None,
    });
    let user_column = unit.user.as_ref().map(|user| user.column().to_owned());
    for field in schema.fields() {
        let name = field.name();
        let range = dataset.bounds(name).map(|bounds| match bounds {
            Bounds::Declared { low, high } => Range::Known { low, high },
            Bounds::Auto => Range::Auto,
        });
        let (user, element) = (user_column.as_ref() == Some(name), element_column.as_ref() == Some(name));
        tags.push(Tag {
            user,
            element,
            public: is_public(name),
            known: user || element || is_public(name),
            observed: unit.public.contains(name),
            origin: Some((table.to_owned(), name.clone())),
            range: range.or_else(|| {
                (field.data_type() == &datafusion::arrow::datatypes::DataType::Boolean)
                    .then_some(Range::Known { low: 0.0, high: 1.0 })
            }),
        });
    }
    let grouped = matches!(unit.protect, Kind::Event | Kind::Element | Kind::User) || unit.user.is_some();
    let mut private = Private {
        dataset: table.to_owned(),
        payer: payer(dataset, around.declaration).name.clone(),
        user: false,
        element: false,
        copies: Some(1),
        rows_of_user: None,
        rows_of_element: None,
        rows_public: matches!(unit.protect, Kind::Feature | Kind::Label),
    };
    let mut keep = None;
    if let (Some(user), true) = (&unit.user, grouped) {
        let column = Expr::Column(Column::new(Some(scan.table_name.clone()), user.column()));
        exprs.push(column.clone().alias(USER));
        tags.push(Tag { user: true, known: true, ..Tag::default() });
        private.user = true;
        // A feature unit's rows stay whatever happens, so there they are kept too.
        if !private.rows_public {
            keep = Some(column.is_not_null());
        }
        if let Some(element) = around.elements.get(table) {
            exprs.push(qualify(element, scan).alias(ELEMENT));
            tags.push(Tag { element: true, known: true, ..Tag::default() });
            private.element = true;
        }
    }
    let mut builder = LogicalPlanBuilder::from(plan.clone());
    if let Some(keep) = keep {
        builder = builder.filter(keep).map_err(|error| planning(&error))?;
    }
    let plan = built(builder.project(exprs))?;
    Ok(Tracked { plan, tags, private: Some(private) })
}

/// The declared element with its columns under the scanned table's name.
fn qualify(element: &Expr, scan: &TableScan) -> Expr {
    use datafusion::common::tree_node::{Transformed, TreeNode};
    let qualified = element.clone().transform_up(|node| {
        Ok(match node {
            Expr::Column(column) => {
                Transformed::yes(Expr::Column(Column::new(Some(scan.table_name.clone()), column.name)))
            }
            other => Transformed::no(other),
        })
    });
    qualified.map_or_else(|_| element.clone(), |qualified| qualified.data)
}

/// An expression made safe, under the name that it had.
fn safe(expr: &Expr, around: &Surroundings<'_>) -> Result<Expr, QueryError> {
    let mut public = |plan: &LogicalPlan| Ok(track(plan, around).is_ok_and(|tracked| tracked.private.is_none()));
    let name = expr.schema_name().to_string();
    let changed = allow::expression(expr.clone(), &mut public)?;
    let kept = changed.schema_name().to_string() == name;
    Ok(if kept { changed } else { changed.alias(name) })
}

/// The same for a predicate, whose name nobody reads.
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
    let input = track(&filter.input, around)?;
    let Some(mut private) = input.private.clone() else {
        return Ok(Tracked { plan: LogicalPlan::Filter(filter.clone()), ..input });
    };
    let predicate = safe_value(&filter.predicate, around)?;
    private.rows_public &= input.tag_of(&filter.predicate, around).public;
    let plan = built(LogicalPlanBuilder::from(input.plan).filter(predicate))?;
    Ok(Tracked { plan, tags: input.tags, private: Some(private) })
}

/// Whether both sides of each equality are of one kind, so that the engine compares them as they are: a text that is turned into a number
/// may find more partners than there are equal texts.
fn comparable(own: &[Expr], owner: &Tracked, others: &[Expr], other: &Tracked) -> Result<(), QueryError> {
    use datafusion::arrow::datatypes::DataType;
    let kind = |kind: &DataType| match kind {
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => Some(0),
        kind if kind.is_integer() => Some(1),
        _ => None,
    };
    let plain = |kind: DataType| match kind {
        DataType::Dictionary(_, inner) => *inner,
        other => other,
    };
    for (a, b) in own.iter().zip(others) {
        let (left, right) = (plain(type_of(a, owner)?), plain(type_of(b, other)?));
        if left != right && (kind(&left).is_none() || kind(&left) != kind(&right)) {
            return Err(QueryError::asked(
                format!(
                    "`{a}` is {left} and `{b}` is {right}, so how many partners a row finds would depend on how they are compared"
                ),
                "cast one of them in a sub-query, or declare both tables with one type",
            ));
        }
    }
    Ok(())
}

fn has_limit(plan: &LogicalPlan) -> bool {
    match plan {
        LogicalPlan::Limit(_) => true,
        LogicalPlan::Sort(sort) if sort.fetch.is_some() => true,
        other => other.inputs().into_iter().any(has_limit),
    }
}

/// The most rows of a public relation that share values of some expressions: how many partners one row finds.
fn partners(plan: &LogicalPlan, keys: Vec<Expr>, around: &Surroundings<'_>) -> Result<u64, QueryError> {
    use datafusion::functions_aggregate::expr_fn::{count, max};
    let counted = LogicalPlanBuilder::from(plan.clone()).aggregate(keys, vec![count(lit(1_i64)).alias("partners")]);
    let most =
        counted.and_then(|builder| builder.aggregate(Vec::<Expr>::new(), vec![max(col("partners")).alias("most")]));
    let batches = (around.collect)(built(most)?)?;
    let found = batches.first().and_then(|batch| {
        batch.column(0).as_any().downcast_ref::<Int64Array>().filter(|most| most.is_valid(0)).map(|most| most.value(0))
    });
    Ok(found.map_or(0, |most| most.max(0) as u64))
}

/// A join whose equalities all stand in `on`, where SQL may have left them in the filter.
fn sorted_out(join: &Join) -> Result<Join, QueryError> {
    use datafusion::logical_expr::BinaryExpr;
    let mut join = join.clone();
    let Some(filter) = join.filter.take() else { return Ok(join) };
    let mut rest = Vec::new();
    for condition in split_conjunction_owned(filter) {
        let pair = match &condition {
            Expr::BinaryExpr(BinaryExpr { left, op: Operator::Eq, right }) => {
                find_valid_equijoin_key_pair(left, right, join.left.schema(), join.right.schema())
                    .map_err(|error| planning(&error))?
            }
            _ => None,
        };
        match pair {
            Some(pair) => join.on.push(pair),
            None => rest.push(condition),
        }
    }
    join.filter = conjunction(rest);
    Ok(join)
}

fn pair(join: &Join, around: &Surroundings<'_>) -> Result<Tracked, Lost> {
    let join = &sorted_out(join)?;
    let (left, right) = (track(&join.left, around)?, track(&join.right, around)?);
    match (left.private.clone(), right.private.clone()) {
        (None, None) => {
            let tags = joined_tags(join.join_type, &left.tags, &right.tags);
            Ok(Tracked { plan: LogicalPlan::Join(join.clone()), tags, private: None })
        }
        (Some(private), None) => {
            if !matches!(join.join_type, JoinType::Inner | JoinType::Left | JoinType::LeftSemi | JoinType::LeftAnti) {
                return unsided(join.join_type);
            }
            with_public(join, left, right, private, true, around)
        }
        (None, Some(private)) => {
            if !matches!(join.join_type, JoinType::Inner | JoinType::Right | JoinType::RightSemi | JoinType::RightAnti)
            {
                return unsided(join.join_type);
            }
            with_public(join, left, right, private, false, around)
        }
        (Some(a), Some(b)) => along_user(join, left, right, a, &b, around),
    }
}

fn unsided<T>(join_type: JoinType) -> Result<T, Lost> {
    never(
        format!(
            "a {join_type} join would make rows for public rows without a private partner, and these belong to nobody"
        ),
        "use an inner join, or put the private table on the side whose rows all stay",
    )
}

fn joined_tags(join_type: JoinType, left: &[Tag], right: &[Tag]) -> Vec<Tag> {
    match join_type {
        JoinType::LeftSemi | JoinType::LeftAnti => left.to_vec(),
        JoinType::RightSemi | JoinType::RightAnti => right.to_vec(),
        JoinType::LeftMark => left.iter().cloned().chain([Tag::default()]).collect(),
        JoinType::RightMark => right.iter().cloned().chain([Tag::default()]).collect(),
        JoinType::Inner | JoinType::Left | JoinType::Right | JoinType::Full => {
            left.iter().chain(right).cloned().collect()
        }
    }
}

fn rejoined(
    join: &Join,
    left: LogicalPlan,
    right: LogicalPlan,
    around: &Surroundings<'_>,
) -> Result<LogicalPlan, QueryError> {
    let on = join.on.iter().map(|(a, b)| Ok((safe_value(a, around)?, safe_value(b, around)?)));
    let on = on.collect::<Result<Vec<_>, QueryError>>()?;
    let filter = join.filter.as_ref().map(|filter| safe_value(filter, around)).transpose()?;
    let joined = Join::try_new(
        Arc::new(left),
        Arc::new(right),
        on,
        filter,
        join.join_type,
        join.join_constraint,
        join.null_equality,
        join.null_aware,
    );
    Ok(LogicalPlan::Join(joined.map_err(|error| planning(&error))?))
}

fn with_public(
    join: &Join,
    left: Tracked,
    right: Tracked,
    mut private: Private,
    private_left: bool,
    around: &Surroundings<'_>,
) -> Result<Tracked, Lost> {
    let (owner, other) = if private_left { (&left, &right) } else { (&right, &left) };
    let ends = |(a, b): &(Expr, Expr)| if private_left { (a.clone(), b.clone()) } else { (b.clone(), a.clone()) };
    let (own, others): (Vec<Expr>, Vec<Expr>) = join.on.iter().map(ends).unzip();
    let own_public = own.iter().all(|expr| owner.tag_of(expr, around).public);
    let own_known = own.iter().all(|expr| owner.tag_of(expr, around).known);
    let filtered = join.filter.as_ref().map(|filter| {
        filter
            .column_refs()
            .iter()
            .all(|column| owner.tag(column).or_else(|| other.tag(column)).is_some_and(|tag| tag.public))
    });
    let public = own_public && filtered.unwrap_or(true);
    private.rows_public &= public;
    comparable(&own, owner, &others, other)?;
    if has_limit(&other.plan) {
        return never(
            "LIMIT inside of a table that private rows are joined with: which of its rows stay may change from run to run",
            "leave it out, or make a public table of the result",
        );
    }
    let widens = matches!(join.join_type, JoinType::Inner | JoinType::Left | JoinType::Right);
    let most = if widens { partners(&other.plan, others, around)?.max(1) } else { 1 };
    private.copies = private.copies.and_then(|copies| copies.checked_mul(most));
    private.rows_of_user = private.rows_of_user.and_then(|rows| rows.checked_mul(most));
    private.rows_of_element = private.rows_of_element.and_then(|rows| rows.checked_mul(most));
    let adopt = |tag: &Tag| Tag {
        public: tag.public && public,
        known: own_known && most <= 1 && filtered.is_none(),
        user: false,
        element: false,
        ..tag.clone()
    };
    let adopted: Vec<Tag> = other.tags.iter().map(adopt).collect();
    let tags = if private_left {
        joined_tags(join.join_type, &left.tags, &adopted)
    } else {
        joined_tags(join.join_type, &adopted, &right.tags)
    };
    let plan = rejoined(join, left.plan, right.plan, around)?;
    Ok(Tracked { plan, tags, private: Some(private) })
}

fn along_user(
    join: &Join,
    left: Tracked,
    right: Tracked,
    a: Private,
    b: &Private,
    around: &Surroundings<'_>,
) -> Result<Tracked, Lost> {
    if a.payer != b.payer {
        return never(
            format!(
                "`{}` and `{}` have separate budgets, so no budget would pay for a question about both",
                a.dataset, b.dataset
            ),
            "lead the user key of one to the other: unit.user = \"orders.customer_id -> customers.id\"",
        );
    }
    let along = join.on.iter().any(|(x, y)| left.tag_of(x, around).user && right.tag_of(y, around).user);
    if !along {
        return never(
            format!(
                "`{}` and `{}` are both private and are not joined along the user, so one user's rows would meet another's",
                a.dataset, b.dataset
            ),
            "add the user columns to the join condition: ON a.user_id = b.user_id AND …",
        );
    }
    if !matches!(join.join_type, JoinType::Inner | JoinType::Left | JoinType::LeftSemi | JoinType::LeftAnti) {
        return never(
            format!("a {} join of two private tables is not known to keep the user", join.join_type),
            "use an inner or left join",
        );
    }
    if a.rows_public || b.rows_public {
        return never(
            "a join of two tables whose rows are public would mix what is public with what is not",
            "ask each table on its own",
        );
    }
    // The left side's user goes on; the right side's hidden columns and the left side's element end here.
    let strip = |tracked: Tracked, keep_user: bool| -> Result<(LogicalPlan, Vec<Tag>), QueryError> {
        let (mut exprs, mut tags) = (Vec::new(), Vec::new());
        for ((table, field), tag) in tracked.plan.schema().iter().zip(&tracked.tags) {
            let name = field.name().as_str();
            if name != ELEMENT && (name != USER || keep_user) {
                exprs.push(Expr::Column(Column::new(table.cloned(), name)));
                tags.push(Tag { element: false, known: tag.user, ..tag.clone() });
            }
        }
        Ok((built(LogicalPlanBuilder::from(tracked.plan.clone()).project(exprs))?, tags))
    };
    let ((left, left_tags), (right, right_tags)) = (strip(left, true)?, strip(right, false)?);
    // Where a row finds no partner, the right side's user is missing and says nothing of whose the row is.
    let outer = join.join_type == JoinType::Left;
    let right_tags: Vec<Tag> = right_tags
        .into_iter()
        .map(|tag| if outer { Tag { user: false, known: false, public: false, ..tag } } else { tag })
        .collect();
    let tags = joined_tags(join.join_type, &left_tags, &right_tags);
    let plan = rejoined(join, left, right, around)?;
    Ok(Tracked {
        plan,
        tags,
        private: Some(Private { element: false, copies: None, rows_of_user: None, rows_of_element: None, ..a }),
    })
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
    let one_source = privates.iter().all(|private| private.dataset == merged.dataset);
    merged.element = one_source && privates.iter().all(|private| private.element);
    merged.user = privates.iter().all(|private| private.user);
    merged.rows_public = privates.iter().all(|private| private.rows_public);
    merged.copies = privates.iter().try_fold(0_u64, |sum, private| sum.checked_add(private.copies?));
    merged.rows_of_user = privates.iter().try_fold(0_u64, |sum, private| sum.checked_add(private.rows_of_user?));
    merged.rows_of_element = privates.iter().try_fold(0_u64, |sum, private| sum.checked_add(private.rows_of_element?));
    if !one_source {
        merged.copies = None; // what is one row of one table is none of the other
    }
    let width = union.schema.fields().len();
    let mut plans: Vec<LogicalPlan> = Vec::new();
    for input in &inputs {
        let mut exprs: Vec<Expr> = input.plan.schema().iter().take(width).map(Expr::from).collect();
        exprs.extend(input.hidden(USER).filter(|_| merged.user).map(|column| column.alias(USER)));
        exprs.extend(input.hidden(ELEMENT).filter(|_| merged.element).map(|column| column.alias(ELEMENT)));
        plans.push(built(LogicalPlanBuilder::from(input.plan.clone()).project(exprs))?);
    }
    let first = plans.remove(0);
    let united = plans.into_iter().try_fold(LogicalPlanBuilder::from(first), LogicalPlanBuilder::union);
    let plan = built(united)?;
    let same = |i: usize| {
        let mut tags = inputs.iter().map(|input| input.tags[i].clone());
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
    let mut tags: Vec<Tag> = (0..width).map(same).collect();
    let hidden = Tag { known: true, ..Tag::default() };
    tags.extend(merged.user.then(|| Tag { user: true, ..hidden.clone() }));
    tags.extend(merged.element.then_some(Tag { element: true, ..hidden }));
    Ok(Tracked { plan, tags, private: Some(merged) })
}

/// Whether some of these expressions are the user, and the element.
fn covers(exprs: &[Expr], input: &Tracked, around: &Surroundings<'_>) -> (bool, bool) {
    let tags: Vec<Tag> = exprs.iter().map(|expr| input.tag_of(expr, around)).collect();
    (tags.iter().any(|tag| tag.user), tags.iter().any(|tag| tag.element))
}

fn group(aggregate: &Aggregate, around: &Surroundings<'_>) -> Result<Tracked, Lost> {
    let input = track(&aggregate.input, around)?;
    let Some(private) = input.private.clone() else {
        let mut tags: Vec<Tag> = aggregate.group_expr.iter().map(|expr| input.tag_of(expr, around)).collect();
        tags.resize(aggregate.schema.fields().len(), Tag { public: true, known: true, ..Tag::default() });
        return Ok(Tracked { plan: LogicalPlan::Aggregate(aggregate.clone()), tags, private: None });
    };
    let (user, element) = covers(&aggregate.group_expr, &input, around);
    if !user || !private.user {
        return Err(Lost::Mixed);
    }
    if matches!(aggregate.group_expr.as_slice(), [Expr::GroupingSet(_)]) {
        return never(
            "GROUPING SETS, ROLLUP and CUBE are not known to keep the unit",
            "write one query for each grouping",
        );
    }
    let keeps_element = private.element && element;
    let mut groups = aggregate.group_expr.iter().map(|expr| safe(expr, around)).collect::<Result<Vec<_>, _>>()?;
    let mut tags: Vec<Tag> = aggregate.group_expr.iter().map(|expr| input.tag_of(expr, around)).collect();
    for (name, keep) in [(USER, true), (ELEMENT, keeps_element)] {
        if let Some(column) = input.hidden(name).filter(|_| keep) {
            tags.push(input.tag_of(&column, around));
            groups.push(column);
        }
    }
    let mut sums = Vec::new();
    for expr in &aggregate.aggr_expr {
        let (call, _) = aggregate_call(expr)?;
        exact_inside(call, &input)?;
        if !allow::inner_aggregate(call.func.name()) || !call.params.order_by.is_empty() {
            return never(
                format!("`{}` inside of a unit depends on the order of rows, or is not known", call.func.name()),
                "use COUNT, SUM, AVG, MIN, MAX, MEDIAN, VAR or STDDEV there",
            );
        }
        sums.push(safe_aggregate(expr, &input, around)?);
        let args_public = call.params.args.iter().all(|arg| input.tag_of(arg, around).public);
        let range = inner_range(call.func.name(), &call.params.args, &input);
        let public = private.rows_public && args_public && tags.iter().all(|tag| tag.public);
        tags.push(Tag { public, range, ..Tag::default() });
    }
    // Grouping by the user alone leaves one row of each, and by user and element one of each of those.
    let by = |test: &dyn Fn(&Tag) -> bool| aggregate.group_expr.iter().all(|expr| test(&input.tag_of(expr, around)));
    let (by_user, by_element) = (by(&|tag| tag.user), keeps_element && by(&|tag| tag.user || tag.element));
    let rows_public = private.rows_public && aggregate.group_expr.iter().all(|expr| input.tag_of(expr, around).public);
    let known = |tag: Tag| if keeps_element { tag } else { Tag { known: tag.user, ..tag } };
    let tags = tags.into_iter().map(known).collect();
    let grouped = Aggregate::try_new(Arc::new(input.plan), groups, sums).map_err(|error| planning(&error))?;
    let plan = LogicalPlan::Aggregate(grouped);
    Ok(Tracked {
        plan,
        tags,
        private: Some(Private {
            element: keeps_element,
            copies: None,
            rows_of_user: by_user.then_some(1),
            rows_of_element: by_element.then_some(1),
            rows_public,
            ..private
        }),
    })
}

/// Sums of floats depend on the order in which they are added, and so on how rows of others fall into batches.
fn exact_inside(call: &datafusion::logical_expr::expr::AggregateFunction, input: &Tracked) -> Result<(), QueryError> {
    let name = call.func.name();
    let Some(argument) = call.params.args.first() else { return Ok(()) };
    let whole = type_of(argument, input)
        .is_ok_and(|kind| kind.is_integer() || kind == datafusion::arrow::datatypes::DataType::Boolean);
    match name {
        "sum" | "avg" if !whole => Err(QueryError::asked(
            format!("`{name}` of fractions inside of a unit depends on the order in which they are added"),
            format!("make them whole first: {name}(CAST({argument} * 1000 AS BIGINT))"),
        )),
        _ => Ok(()),
    }
}

/// The range of an aggregate over one unit's rows, where it follows from that of its argument.
fn inner_range(name: &str, args: &[Expr], input: &Tracked) -> Option<Range> {
    match name {
        "avg" | "min" | "max" | "median" => {
            range::of(args.first()?, &|column| input.tag(column).and_then(|tag| tag.range))
        }
        "bool_and" | "bool_or" => Some(Range::Known { low: 0.0, high: 1.0 }),
        _ => None,
    }
}

/// The aggregate function that an expression calls, and the name under which it does.
pub(crate) fn aggregate_call(
    expr: &Expr,
) -> Result<(&datafusion::logical_expr::expr::AggregateFunction, Option<&str>), QueryError> {
    match expr {
        Expr::AggregateFunction(call) => Ok((call, None)),
        Expr::Alias(alias) => aggregate_call(&alias.expr).map(|(call, _)| (call, Some(alias.name.as_str()))),
        other => Err(QueryError::asked(format!("`{other}` is not an aggregate"), "use an aggregate function there")),
    }
}

/// An expression made safe, whose NaN is missing: sums and extremes with NaN depend on the order of rows.
fn numbers_only(expr: &Expr, input: &Tracked, around: &Surroundings<'_>) -> Result<Expr, QueryError> {
    let safe = safe_value(expr, around)?;
    Ok(if type_of(expr, input)?.is_floating() { number(safe) } else { safe })
}

/// An aggregate with its arguments and its filter made safe, under the name that it had.
fn safe_aggregate(expr: &Expr, input: &Tracked, around: &Surroundings<'_>) -> Result<Expr, QueryError> {
    let name = expr.schema_name().to_string();
    let (call, _) = aggregate_call(expr)?;
    let mut call = call.clone();
    call.params.args = call.params.args.iter().map(|arg| numbers_only(arg, input, around)).collect::<Result<_, _>>()?;
    call.params.filter = call.params.filter.map(|filter| safe_value(&filter, around).map(Box::new)).transpose()?;
    Ok(Expr::AggregateFunction(call).alias(name))
}

fn look_around(window: &Window, around: &Surroundings<'_>) -> Result<Tracked, Lost> {
    let input = track(&window.input, around)?;
    let Some(private) = input.private.clone() else {
        let mut tags = input.tags.clone();
        tags.resize(window.schema.fields().len(), Tag { public: true, known: true, ..Tag::default() });
        return Ok(Tracked { plan: LogicalPlan::Window(window.clone()), tags, private: None });
    };
    let mut keeps_element = private.element;
    let mut windows = Vec::new();
    for expr in &window.window_expr {
        let call = match expr {
            Expr::WindowFunction(call) => call,
            Expr::Alias(alias) => match alias.expr.as_ref() {
                Expr::WindowFunction(call) => call,
                _ => return never(format!("`{expr}` is not a window function"), "use one there"),
            },
            _ => return never(format!("`{expr}` is not a window function"), "use one there"),
        };
        let name = match &call.fun {
            WindowFunctionDefinition::AggregateUDF(function) => function.name().to_owned(),
            WindowFunctionDefinition::WindowUDF(function) => function.name().to_owned(),
        };
        if !allow::window(&name) {
            return never(
                format!("the window function `{name}` is not known"),
                "use row_number, rank, lag, lead or an aggregate",
            );
        }
        let (user, element) = covers(&call.params.partition_by, &input, around);
        if !user || !private.user {
            return never(
                format!("the window of `{name}` reaches over the rows of several users"),
                "add the user column to PARTITION BY",
            );
        }
        keeps_element &= element;
        windows.push(safe_window(expr, call, &name, &input, around)?);
    }
    if private.rows_public {
        return never(
            "window functions over a table whose rows are public would mix what is public with what is not",
            "compute the column beforehand",
        );
    }
    let (tags, width) = (input.tags.clone(), input.plan.schema().fields().len());
    let looked = Window::try_new(windows, Arc::new(input.plan)).map_err(|error| planning(&error))?;
    // What a window adds depends on all rows of its partition, so a row no longer stands for itself.
    let tags: Vec<Tag> = tags.into_iter().chain(vec![Tag::default(); looked.schema.fields().len() - width]).collect();
    let mut tracked = Tracked {
        plan: LogicalPlan::Window(looked),
        tags,
        private: Some(Private { element: keeps_element, copies: None, ..private }), // as many rows as before
    };
    if !keeps_element {
        tracked = without_element(tracked)?;
    }
    Ok(tracked)
}

/// A window function whose parts are made safe, that never reaches beyond one user, and whose order leaves nothing open.
fn safe_window(
    expr: &Expr,
    call: &datafusion::logical_expr::expr::WindowFunction,
    name: &str,
    input: &Tracked,
    around: &Surroundings<'_>,
) -> Result<Expr, Lost> {
    let mut safe = call.clone();
    let all = |exprs: &[Expr]| exprs.iter().map(|expr| safe_value(expr, around)).collect::<Result<Vec<_>, _>>();
    safe.params.args =
        call.params.args.iter().map(|arg| numbers_only(arg, input, around)).collect::<Result<Vec<_>, _>>()?;
    safe.params.partition_by = all(&call.params.partition_by)?;
    safe.params.partition_by.extend(input.hidden(USER));
    safe.params.filter =
        call.params.filter.as_ref().map(|filter| safe_value(filter, around).map(Box::new)).transpose()?;
    for sort in &mut safe.params.order_by {
        sort.expr = numbers_only(&sort.expr, input, around)?;
    }
    let by_position = ["row_number", "ntile", "lag", "lead", "first_value", "last_value", "nth_value"];
    if by_position.contains(&name) {
        // Rows that stand side by side in the given order stand in the order of all their columns.
        safe.params.order_by.extend(input.plan.schema().iter().map(|field| Expr::from(field).sort(true, true)));
    } else if matches!(name, "sum" | "avg")
        && !call.params.args.iter().all(|arg| type_of(arg, input).is_ok_and(|kind| kind.is_integer()))
    {
        return never(
            format!("`{name}` of fractions in a window depends on the order in which they are added"),
            format!("make them whole first: {name}(CAST(x * 1000 AS BIGINT))"),
        );
    }
    Ok(Expr::WindowFunction(Box::new(safe)).alias(expr.schema_name().to_string()))
}

fn without_element(tracked: Tracked) -> Result<Tracked, QueryError> {
    let (mut exprs, mut tags) = (Vec::new(), Vec::new());
    for ((table, field), tag) in tracked.plan.schema().iter().zip(&tracked.tags) {
        if field.name() != ELEMENT {
            exprs.push(Expr::Column(Column::new(table.cloned(), field.name().clone())));
            tags.push(Tag { element: false, known: tag.user, ..tag.clone() });
        }
    }
    let plan = built(LogicalPlanBuilder::from(tracked.plan).project(exprs))?;
    Ok(Tracked { plan, tags, private: tracked.private })
}

/// The type of an expression over a tracked relation.
pub(crate) fn type_of(expr: &Expr, tracked: &Tracked) -> Result<datafusion::arrow::datatypes::DataType, QueryError> {
    expr.get_type(tracked.plan.schema()).map_err(|error| planning(&error))
}
