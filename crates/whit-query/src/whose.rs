//! Whose rows are, derived from a plan alone.
//!
//! Planning rewrites a question and says of the result whose its rows are. This reads a plan and nothing else, operator by operator, and comes to its own
//! view. The two are compared where a part is planned, and again over what the engine has made of it: its analysis and its optimiser rewrite a plan before it
//! is run, and the last of them is the largest rewrite there is. So a slip in one of them refuses a question, and releases nothing.
//!
//! What the engine does below that, where it turns operators into streams, is not looked at.

use crate::error::{QueryError, planning};
use crate::evaluate::words::renamed;
use crate::evaluate::{guarded, keeps_apart, number};
use datafusion::arrow::datatypes::DataType;
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::common::{Column, Result as Outcome, ScalarValue};
use datafusion::execution::SessionState;
use datafusion::logical_expr::utils::split_conjunction;
use datafusion::logical_expr::{
    BinaryExpr, Expr, ExprSchemable, JoinType, LogicalPlan, LogicalPlanBuilder, Operator, TableScan, lit,
};
use datafusion::physical_plan::ExecutionPlan;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use whit_core::declare::{Dataset, Declaration, Owning};

/// The private tables that may be read, and what of each says whose a row is.
pub(crate) type Owners = BTreeMap<String, OwnerColumns>;

/// What of a private table says whose a row is.
#[derive(Debug, Clone, Default)]
pub(crate) struct OwnerColumns {
    /// The column that holds the user.
    pub(crate) user: Option<String>,
    /// The element alone, as it is computed from a scan of the table.
    pub(crate) element: Option<LogicalPlan>,
}

/// The column of users that a looked-up table has beside its own.
pub(crate) const OWNER: &str = "__whit_owner";

/// The column that holds the user of a data set's rows, as they are read; nothing where it has none.
pub(crate) fn user_column<'a>(declaration: &'a Declaration, dataset: &'a Dataset) -> Option<&'a str> {
    declaration.owning(dataset).map(|owning| match owning {
        Owning::Column(column) => column,
        Owning::LookedUp { .. } => OWNER,
    })
}

/// Those of a declaration, over the scans of its tables.
pub(crate) fn owners(
    declaration: &Declaration,
    elements: &BTreeMap<String, Expr>,
    scans: &BTreeMap<String, LogicalPlan>,
) -> Owners {
    let private = declaration.datasets.values().filter_map(|dataset| {
        dataset.unit.as_ref()?;
        let user = user_column(declaration, dataset).map(str::to_owned);
        // One that cannot be computed is never found again, and what needs it is refused.
        let element = elements.get(&dataset.name).zip(scans.get(&dataset.name));
        let element = element.and_then(|(element, scan)| alone(element, scan).ok());
        Some((dataset.name.clone(), OwnerColumns { user, element }))
    });
    private.collect()
}

/// One expression over a scan, and nothing else of it.
fn alone(expr: &Expr, scan: &LogicalPlan) -> Outcome<LogicalPlan> {
    let table = scan.schema().qualified_field(0).0.cloned();
    let own = |column: Column| Column::new(table.clone(), column.name);
    let expr = renamed(expr.clone(), &own)?.data;
    LogicalPlanBuilder::from(scan.clone()).project([expr.alias("element")])?.build()
}

/// The same, with each element as the engine would run it: what it makes of a plan it makes of the element there, too.
fn as_run(owners: &Owners, plan: &LogicalPlan, state: &SessionState) -> Result<Owners, QueryError> {
    let mut read = BTreeSet::new();
    let _ = plan.apply_with_subqueries(|node| {
        if let LogicalPlan::TableScan(scan) = node {
            read.insert(scan.table_name.table().to_owned());
        }
        Ok(TreeNodeRecursion::Continue)
    });
    let made = owners.iter().filter(|(name, _)| read.contains(*name)).map(|(name, columns)| {
        let mut columns = columns.clone();
        if let Some(element) = columns.element.take_if(|element| matches!(Traced::at(element, 0), Traced::Step(..))) {
            let guarded = guarded(element, state)?;
            columns.element = Some(state.optimize(&guarded).map_err(|error| planning(&error))?);
        }
        Ok((name.clone(), columns))
    });
    made.collect()
}

/// Why something is not run.
pub(crate) fn unlike(why: &str) -> QueryError {
    QueryError::failed(format!("what would be run is not what was planned: {why}"))
}

/// What the engine runs for a guarded plan: its own optimised form, if that is still what it was taken for, and no other. `fits` is told whose the rows of that form are.
pub(crate) async fn engine_plan(
    plan: &LogicalPlan,
    state: &SessionState,
    owners: &Owners,
    fits: impl FnOnce(&LogicalPlan, &Whose, &Owners) -> Result<(), QueryError>,
) -> Outcome<Arc<dyn ExecutionPlan>> {
    let own = |error: QueryError| datafusion::common::DataFusionError::External(Box::new(error));
    let optimised = state.optimize(plan)?;
    let owners = as_run(owners, plan, state).map_err(own)?;
    let whose = Whose::of(&optimised, &owners).map_err(|why| own(unlike(&why)))?;
    fits(&optimised, &whose, &owners).map_err(own)?;
    // Not `state.create_physical_plan`, which would optimise once more, and nobody would look at what comes out.
    state.query_planner().create_physical_plan(&optimised, state).await
}

/// The same for rows that stand each for itself, whose users and elements are read from these columns.
pub(crate) async fn engine_plan_of_rows(
    plan: &LogicalPlan,
    state: &SessionState,
    owners: &Owners,
    user: Option<usize>,
    element: Option<usize>,
) -> Outcome<Arc<dyn ExecutionPlan>> {
    engine_plan(plan, state, owners, |_, whose, _| whose.stand_alone(user, element)).await
}

/// Whose the rows of a relation are.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "each is a question of its own, and any answers go together")]
pub(crate) struct Whose {
    /// Whether a private table is read.
    pub(crate) private: bool,
    /// Which ones.
    sources: BTreeSet<String>,
    /// The columns that hold the user that a row belongs to.
    pub(crate) users: BTreeSet<usize>,
    /// The columns that hold the element of that user that it belongs to.
    pub(crate) elements: BTreeSet<usize>,
    /// Whether each row comes from one row of a private table.
    pub(crate) single: bool,
    /// Whether a row may have something of several elements of its user, so that no expression over its columns is its element.
    mixed: bool,
    /// Whether there are no rows at all, whatever the tables hold.
    pub(crate) nothing: bool,
}

impl Whose {
    /// Derives it from a plan; where an operator mixes users, why.
    pub(crate) fn of(plan: &LogicalPlan, owners: &Owners) -> Result<Self, String> {
        public_inside(plan, owners)?;
        match plan {
            LogicalPlan::TableScan(scan) => return Self::of_scan(scan, owners),
            LogicalPlan::EmptyRelation(empty) => {
                return Ok(Self { nothing: !empty.produce_one_row, ..Self::default() });
            }
            _ => {}
        }
        fits_its_schema(plan)?;
        let below = plan.inputs();
        let inputs = below.iter().map(|input| Self::of(input, owners)).collect::<Result<Vec<_>, _>>()?;
        if !inputs.iter().any(|input| input.private) {
            return Ok(Self { nothing: stays_nothing(plan, &inputs), ..Self::default() });
        }
        match (plan, inputs.as_slice()) {
            (LogicalPlan::Projection(projection), [input]) => {
                let users = places(&projection.expr, below[0], &input.users);
                let elements = input.elements_among(&projection.expr, below[0], owners);
                Ok(Self { users, elements, ..input.clone() })
            }
            (LogicalPlan::Filter(_) | LogicalPlan::SubqueryAlias(_) | LogicalPlan::Repartition(_), [input]) => {
                Ok(input.clone())
            }
            (LogicalPlan::Sort(sort), [input]) if sort.fetch.is_none() => Ok(input.clone()),
            (LogicalPlan::Distinct(_), [input]) if !input.users.is_empty() => {
                Ok(Self { single: false, ..input.clone() })
            }
            (LogicalPlan::Aggregate(aggregate), [input]) => {
                let users = places(&aggregate.group_expr, below[0], &input.users);
                if users.is_empty() {
                    return Err("an aggregate brings rows of several users together".to_owned());
                }
                let elements = input.elements_among(&aggregate.group_expr, below[0], owners);
                Ok(Self { users, single: false, mixed: input.mixed || elements.is_empty(), elements, ..input.clone() })
            }
            (LogicalPlan::Window(window), [input]) => {
                let (mut elements, mut mixed) = (input.elements.clone(), input.mixed);
                for expr in &window.window_expr {
                    let Expr::WindowFunction(call) = expr.clone().unalias_nested().data else {
                        return Err("a window that is none".to_owned());
                    };
                    if places(&call.params.partition_by, below[0], &input.users).is_empty() {
                        return Err("a window reaches over rows of several users".to_owned());
                    }
                    // Over several elements of a user, what it adds to a row is of the whole user.
                    if input.elements_among(&call.params.partition_by, below[0], owners).is_empty() {
                        elements.clear();
                        mixed = true;
                    }
                }
                Ok(Self { elements, mixed, single: false, ..input.clone() })
            }
            (LogicalPlan::Join(join), [left, right]) => Self::of_join(join, (left, below[0]), (right, below[1])),
            (LogicalPlan::Union(_), inputs) if inputs.iter().all(|input| input.private || input.nothing) => {
                Ok(Self::of_union(inputs.iter().filter(|input| !input.nothing)))
            }
            _ => Err(format!("{} is not known to keep the unit", plan.display())),
        }
    }

    fn of_scan(scan: &TableScan, owners: &Owners) -> Result<Self, String> {
        let table = scan.table_name.table();
        let Some(unit) = owners.get(table) else { return Ok(Self::default()) };
        // Conditions that are asked while reading look at one row each; how many rows came before does not.
        if scan.fetch.is_some() {
            return Err(format!("a scan of `{table}` that ends early is not known to keep the unit"));
        }
        let element = unit.element.as_ref().and_then(|element| match Traced::at(element, 0) {
            Traced::Source(_, column) => Some(column),
            _ => None,
        });
        let fields = || scan.projected_schema.fields().iter().map(|field| field.name().as_str()).enumerate();
        let named = |name: Option<&str>| fields().filter(|(_, own)| Some(*own) == name).map(|(i, _)| i).collect();
        Ok(Self {
            private: true,
            sources: BTreeSet::from([table.to_owned()]),
            users: named(unit.user.as_deref()),
            elements: named(element),
            single: true,
            mixed: false,
            nothing: false,
        })
    }

    fn of_join(
        join: &datafusion::logical_expr::Join,
        (left, left_plan): (&Self, &LogicalPlan),
        (right, right_plan): (&Self, &LogicalPlan),
    ) -> Result<Self, String> {
        let width = left_plan.schema().fields().len();
        let of_left = matches!(join.join_type, JoinType::LeftSemi | JoinType::LeftAnti | JoinType::LeftMark);
        let of_right = matches!(join.join_type, JoinType::RightSemi | JoinType::RightAnti | JoinType::RightMark);
        let along = |(a, b): &(Expr, Expr)| holds(a, left_plan, &left.users) && holds(b, right_plan, &right.users);
        // SQL leaves equalities in the filter, until somebody sorts them out.
        let said = join.filter.iter().flat_map(split_conjunction).any(|said| match said {
            Expr::BinaryExpr(BinaryExpr { left: a, op: Operator::Eq, right: b }) => {
                let (a, b) = (a.as_ref().clone(), b.as_ref().clone());
                along(&(a.clone(), b.clone())) || along(&(b, a))
            }
            _ => false,
        });
        let both = left.private && right.private;
        if both && !said && !join.on.iter().any(along) {
            return Err("a join lets rows of several users meet".to_owned());
        }
        // Where a side may be missing, its column does not say whose the row is.
        let keeps_left = !of_right && !matches!(join.join_type, JoinType::Right | JoinType::Full);
        let keeps_right = !of_left && !matches!(join.join_type, JoinType::Left | JoinType::Full);
        if (left.private && !right.private && !keeps_left) || (right.private && !left.private && !keeps_right) {
            return Err("a join makes rows that belong to nobody".to_owned());
        }
        let shift = if of_right { 0 } else { width };
        let joined = |lefts: &BTreeSet<usize>, rights: &BTreeSet<usize>| {
            let lefts = lefts.iter().copied().filter(|_| keeps_left);
            lefts.chain(rights.iter().map(|column| column + shift).filter(|_| keeps_right)).collect()
        };
        Ok(Self {
            private: true,
            sources: left.sources.union(&right.sources).cloned().collect(),
            users: joined(&left.users, &right.users),
            // Where rows of a user meet, they are of different elements.
            elements: if both { BTreeSet::new() } else { joined(&left.elements, &right.elements) },
            single: !both && (left.single || right.single),
            mixed: both || left.mixed || right.mixed,
            nothing: false,
        })
    }

    fn of_union<'a>(mut inputs: impl Iterator<Item = &'a Self>) -> Self {
        let Some(mut whole) = inputs.next().cloned() else { return Self { nothing: true, ..Self::default() } };
        for input in inputs {
            whole.users.retain(|user| input.users.contains(user));
            // Elements of different tables have nothing to do with one another.
            whole.elements.retain(|element| input.elements.contains(element) && input.sources == whole.sources);
            whole.single &= input.single;
            whole.mixed |= input.mixed;
            whole.sources.extend(input.sources.iter().cloned());
        }
        whole
    }

    /// Which of these expressions over such rows are the element: a column that holds it, or the declared expression over columns of the table.
    fn elements_among(&self, exprs: &[Expr], input: &LogicalPlan, owners: &Owners) -> BTreeSet<usize> {
        let mut found = places(exprs, input, &self.elements);
        let source = self
            .sources
            .first()
            .filter(|_| self.sources.len() == 1 && !self.mixed)
            .and_then(|source| owners.get(source));
        let Some(element) = source.and_then(|unit| unit.element.as_ref()).map(|element| Traced::at(element, 0)) else {
            return found;
        };
        if let Traced::Step(..) = element {
            let same = |expr: &Expr| element.is(&Traced::of(expr, input));
            found.extend(exprs.iter().enumerate().filter(|(_, expr)| same(expr)).map(|(i, _)| i));
        }
        found
    }

    /// Whether a column of a plan's rows is among those that say whose they are.
    pub(crate) fn has_user(&self, plan: &LogicalPlan, name: &str) -> bool {
        place_of(plan, name).is_some_and(|hidden| self.users.contains(&hidden))
    }

    /// The same for their elements.
    pub(crate) fn has_element(&self, plan: &LogicalPlan, name: &str) -> bool {
        place_of(plan, name).is_some_and(|hidden| self.elements.contains(&hidden))
    }

    /// Whether each row is one of a table, or belongs to none, and these columns say whose it is.
    fn stand_alone(&self, user: Option<usize>, element: Option<usize>) -> Result<(), QueryError> {
        if self.nothing || !self.private {
            return Ok(());
        }
        if !self.single {
            return Err(unlike("a row stands for several"));
        }
        if user.is_some_and(|user| !self.users.contains(&user)) {
            return Err(unlike("the column of users is not the user"));
        }
        if element.is_some_and(|element| !self.elements.contains(&element)) {
            return Err(unlike("the column of elements is not the element"));
        }
        Ok(())
    }
}

/// Refuses sub-queries inside of an operator's expressions that read private rows.
fn public_inside(plan: &LogicalPlan, owners: &Owners) -> Result<(), String> {
    let mut private = false;
    let walked = plan.apply_subqueries(|inside| {
        inside.apply_with_subqueries(|node| {
            private |= matches!(node, LogicalPlan::TableScan(scan) if owners.contains_key(scan.table_name.table()));
            Ok(TreeNodeRecursion::Continue)
        })
    });
    if private || walked.is_err() {
        Err("a sub-query inside an expression reads private rows".to_owned())
    } else {
        Ok(())
    }
}

/// Whether an operator over no rows has none itself.
fn stays_nothing(plan: &LogicalPlan, inputs: &[Whose]) -> bool {
    let by_row = matches!(
        plan,
        LogicalPlan::Projection(_)
            | LogicalPlan::Filter(_)
            | LogicalPlan::SubqueryAlias(_)
            | LogicalPlan::Sort(_)
            | LogicalPlan::Repartition(_)
            | LogicalPlan::Union(_)
    );
    by_row && !inputs.is_empty() && inputs.iter().all(|input| input.nothing)
}

fn place_of(plan: &LogicalPlan, name: &str) -> Option<usize> {
    plan.schema().fields().iter().position(|field| field.name() == name)
}

/// Whether an expression is what these columns hold, under whichever name, and as whichever type keeps different ones apart.
fn holds(expr: &Expr, input: &LogicalPlan, columns: &BTreeSet<usize>) -> bool {
    let apart = |inner: &Expr, to: &DataType| inner.get_type(input.schema()).is_ok_and(|from| keeps_apart(&from, to));
    match expr {
        Expr::Column(column) => {
            input.schema().maybe_index_of_column(column).is_some_and(|index| columns.contains(&index))
        }
        Expr::Alias(alias) => holds(&alias.expr, input, columns),
        Expr::Cast(cast) => apart(&cast.expr, cast.field.data_type()) && holds(&cast.expr, input, columns),
        Expr::TryCast(cast) => apart(&cast.expr, cast.field.data_type()) && holds(&cast.expr, input, columns),
        // NaN is no user, as NULL is none.
        Expr::ScalarFunction(call) if call.name() == number::NAME => holds(&call.args[0], input, columns),
        _ => false,
    }
}

/// Which of these expressions are what these columns hold.
fn places(exprs: &[Expr], input: &LogicalPlan, columns: &BTreeSet<usize>) -> BTreeSet<usize> {
    exprs.iter().enumerate().filter(|(_, expr)| holds(expr, input, columns)).map(|(i, _)| i).collect()
}

/// Refuses an operator that has other columns than its expressions say: what is known of a column is known by its place. (The engine has one column for keys that are repeated.)
fn fits_its_schema(plan: &LogicalPlan) -> Result<(), String> {
    let input = || plan.inputs().first().map_or(0, |input| input.schema().fields().len());
    let said = match plan {
        LogicalPlan::Projection(projection) => projection.expr.len(),
        LogicalPlan::Aggregate(aggregate) if !matches!(aggregate.group_expr[..], [Expr::GroupingSet(_)]) => {
            aggregate.group_expr.len() + aggregate.aggr_expr.len()
        }
        LogicalPlan::Window(window) => input() + window.window_expr.len(),
        _ => return Ok(()),
    };
    let has = plan.schema().fields().len();
    if said == has { Ok(()) } else { Err(format!("{} has {has} columns and speaks of {said}", plan.display())) }
}

/// Where a value comes from, followed down through names, projections, filters, windows and joins that leave it as it is.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Traced<'a> {
    /// A column of a table.
    Source(&'a str, &'a str),
    /// A step that is computed over a relation.
    Step(&'a Expr, &'a LogicalPlan),
    /// Something else.
    Elsewhere,
}

impl<'a> Traced<'a> {
    /// The value of an expression over a relation.
    pub(crate) fn of(mut expr: &'a Expr, input: &'a LogicalPlan) -> Self {
        while let Expr::Alias(alias) = expr {
            expr = &alias.expr;
        }
        match expr {
            Expr::Column(column) => match input.schema().maybe_index_of_column(column) {
                Some(index) => Self::at(input, index),
                None => Self::Elsewhere,
            },
            step => Self::Step(step, input),
        }
    }

    /// The value in a column of a relation.
    pub(crate) fn at(plan: &'a LogicalPlan, index: usize) -> Self {
        match plan {
            LogicalPlan::Projection(projection) => match projection.expr.get(index) {
                Some(expr) => Self::of(expr, &projection.input),
                None => Self::Elsewhere,
            },
            LogicalPlan::Filter(filter) => Self::at(&filter.input, index),
            LogicalPlan::SubqueryAlias(alias) => Self::at(&alias.input, index),
            LogicalPlan::Sort(sort) => Self::at(&sort.input, index),
            LogicalPlan::Window(window) if index < window.input.schema().fields().len() => {
                Self::at(&window.input, index)
            }
            LogicalPlan::Join(join) => Self::below_join(join, index),
            LogicalPlan::TableScan(scan) => match scan.projected_schema.fields().get(index) {
                Some(field) => Self::Source(scan.table_name.table(), field.name()),
                None => Self::Elsewhere,
            },
            _ => Self::Elsewhere,
        }
    }

    /// The value in a column of a join, where it is that of one side. A side that may be missing has NULL in its place.
    fn below_join(join: &'a datafusion::logical_expr::Join, index: usize) -> Self {
        let (left, right) = (join.left.schema().fields().len(), join.right.schema().fields().len());
        match join.join_type {
            JoinType::Inner | JoinType::Left | JoinType::LeftSemi | JoinType::LeftAnti | JoinType::LeftMark
                if index < left =>
            {
                Self::at(&join.left, index)
            }
            JoinType::Inner | JoinType::Right if index >= left => Self::at(&join.right, index - left),
            JoinType::RightSemi | JoinType::RightAnti | JoinType::RightMark if index < right => {
                Self::at(&join.right, index)
            }
            _ => Self::Elsewhere,
        }
    }

    /// Whether both are computed in the same way from the same columns of the same table.
    fn is(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Source(table, column), Self::Source(own_table, own_column)) => {
                (table, column) == (own_table, own_column)
            }
            (Self::Step(step, input), Self::Step(own, own_input)) => {
                if step == own {
                    let columns = step.column_refs();
                    return columns.into_iter().all(|column| {
                        let column = Expr::Column(column.clone());
                        Traced::of(&column, input).is(&Traced::of(&column, own_input))
                    });
                }
                let (parts, own_parts) = (children(step), children(own));
                // Parts that occur several times the engine may compute below, under a name.
                std::mem::discriminant(*step) == std::mem::discriminant(*own)
                    && parts.len() == own_parts.len()
                    && without_children(step) == without_children(own)
                    && parts.iter().zip(own_parts).all(|(a, b)| Traced::of(a, input).is(&Traced::of(b, own_input)))
            }
            _ => false,
        }
    }
}

fn children(expr: &Expr) -> Vec<&Expr> {
    let mut found = Vec::new();
    let _ = expr.apply_children(|child| {
        found.push(child);
        Ok(TreeNodeRecursion::Continue)
    });
    found
}

fn without_children(expr: &Expr) -> Option<Expr> {
    expr.clone().map_children(|_| Ok(Transformed::yes(lit(ScalarValue::Null)))).ok().map(|done| done.data)
}
