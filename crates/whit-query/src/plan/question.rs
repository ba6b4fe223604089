//! From the text of a question to its plan.

use super::call::{self, Call};
use super::condition::with_conditions_as_joins;
use super::misread::misread;
use super::{Asking, Plan, aggregate, dialect, heeded, outline, sensible, title, track};
use crate::error::{QueryError, planning};
use crate::source::Tables;
use crate::source::spelling::Spelling;
use crate::whose;
use datafusion::arrow::datatypes::DataType;
use datafusion::common::Result as Outcome;
use datafusion::common::tree_node::{Transformed, TreeNodeRecursion};
use datafusion::logical_expr::type_coercion::binary::type_union_coercion;
use datafusion::logical_expr::{Aggregate, Expr, LogicalPlan, LogicalPlanBuilder, Union};
use datafusion::sql::parser::Statement;
use datafusion::sql::sqlparser::ast::Statement as Written;
use std::sync::Arc;

impl Tables {
    /// Plans a question that was read already. Nothing private is read, and it is not tried on made-up rows.
    pub(crate) fn outlined(&self, sql: &str, logical: &LogicalPlan, asking: &Asking) -> Result<Plan, QueryError> {
        asking.check_limits()?;
        let plan = self.surrounded(|around| outline::plan(sql, logical, asking, around))?;
        Ok(self.sliced(plan))
    }

    /// Whether a question reads what an estimator releases, and what it does with that.
    pub(crate) fn call(&self, sql: &str, logical: &LogicalPlan) -> Result<Option<(Call, LogicalPlan)>, QueryError> {
        self.surrounded(|around| outline::around_call(sql, logical, around))
    }

    /// Reads a question.
    pub(crate) fn logical(&self, sql: &str) -> Result<LogicalPlan, QueryError> {
        if sql.trim().is_empty() {
            return Err(QueryError::asked("the question is empty", "write one, such as SELECT COUNT(*) FROM NAME"));
        }
        let mut state = self.warehouse.context().state();
        call::register(&mut state, self.warehouse.folder());
        aggregate::register(&mut state).map_err(|error| planning(&error))?;
        let read = state.sql_to_statement(sql, &state.config().options().sql_parser.dialect);
        let mut statement = read.map_err(|error| misread(&error, sql, self.warehouse()))?;
        asks(&statement)?;
        heeded::all(&statement)?;
        self.spelling(&mut statement).question(&mut statement);
        dialect::translated(&mut statement);
        title::apart(&mut statement);
        let planned = self.runtime.block_on(state.statement_to_plan(statement));
        let logical = planned.map_err(|error| misread(&error, sql, self.warehouse()))?;
        only_asks(&logical)?;
        sensible::comparisons(&logical, sql)?;
        let private = |table: &str| {
            let dataset = self.warehouse.declaration().datasets.get(table);
            dataset.is_some_and(|dataset| dataset.unit.is_some())
        };
        let plan = with_each_key_once(logical).and_then(with_one_type_a_column).map_err(|error| planning(&error))?;
        with_conditions_as_joins(plan, &private)
    }

    /// How the names of a question are declared.
    fn spelling(&self, statement: &mut Statement) -> Spelling {
        let tables = self.warehouse.sources().map(|source| {
            let columns = source.schema.fields().iter().map(|field| field.name().as_str());
            (source.dataset.name.as_str(), columns.collect())
        });
        Spelling::over(statement, tables)
    }

    pub(super) fn surrounded<T>(&self, plan: impl FnOnce(&track::Surroundings<'_>) -> T) -> T {
        let collect = |plan: LogicalPlan| self.collect(&plan);
        let owners = whose::owners(self.warehouse.declaration(), &self.elements, &self.scans);
        plan(&track::Surroundings {
            declaration: self.warehouse.declaration(),
            owners,
            elements: &self.elements,
            inside_units: &aggregate::inside_units(),
            tables: &self.scans,
            collect: &collect,
        })
    }
}

/// The same question, with keys that are repeated (`GROUP BY k, k`) said once. The engine has one column for all of them, and whatever is known of a column is known by its place.
fn with_each_key_once(plan: LogicalPlan) -> Outcome<LogicalPlan> {
    let done = plan.transform_up_with_subqueries(|node| match node {
        LogicalPlan::Aggregate(aggregate) => {
            let mut keys: Vec<Expr> = Vec::new();
            for key in &aggregate.group_expr {
                if !keys.contains(key) {
                    keys.push(key.clone());
                }
            }
            if keys.len() == aggregate.group_expr.len() {
                return Ok(Transformed::no(LogicalPlan::Aggregate(aggregate)));
            }
            let once = Aggregate::try_new(aggregate.input, keys, aggregate.aggr_expr)?;
            Ok(Transformed::yes(LogicalPlan::Aggregate(once)))
        }
        other => Ok(Transformed::no(other)),
    });
    done.map(|done| done.data)
}

/// The same question, with numbers that are united brought to one type: `UNION ALL` of whole numbers and floats is of floats. The engine would do so later, and what is planned
/// until then would be of the first branch alone.
fn with_one_type_a_column(plan: LogicalPlan) -> Outcome<LogicalPlan> {
    let mut mixed = false;
    plan.apply_with_subqueries(|node| {
        mixed |= matches!(node, LogicalPlan::Union(union) if !common_numbers(union).iter().all(Option::is_none));
        Ok(TreeNodeRecursion::Continue)
    })?;
    if !mixed {
        return Ok(plan);
    }
    let done = plan.transform_up_with_subqueries(|node| match node {
        LogicalPlan::Union(union) => {
            let common = common_numbers(&union);
            let cast = |input: &Arc<LogicalPlan>| {
                let columns = input.schema().iter().zip(&common).map(|((table, field), common)| {
                    let column = Expr::from((table, field));
                    match common {
                        Some(common) if common != field.data_type() => {
                            datafusion::prelude::cast(column, common.clone())
                                .alias_qualified(table.cloned(), field.name())
                        }
                        _ => column,
                    }
                });
                LogicalPlanBuilder::from(input.as_ref().clone())
                    .project(columns.collect::<Vec<_>>())?
                    .build()
                    .map(Arc::new)
            };
            let inputs = union.inputs.iter().map(cast).collect::<Outcome<Vec<_>>>()?;
            Ok(Transformed::yes(LogicalPlan::Union(Union::try_new_with_loose_types(inputs)?)))
        }
        // What was made of the first branch's types is made of the common ones.
        other => other.recompute_schema().map(Transformed::yes),
    });
    done.map(|done| done.data)
}

/// For each column of a union whose branches have numbers of different types, the type that holds all of them.
fn common_numbers(union: &Union) -> Vec<Option<DataType>> {
    let types = |place: usize| {
        union.inputs.iter().map(move |input| input.schema().fields().get(place).map(|field| field.data_type()))
    };
    let common = |place: usize| {
        let first = types(place).next()??;
        let whole = types(place).try_fold(first.clone(), |whole, next| {
            let next = next.filter(|next| next.is_numeric() && whole.is_numeric())?;
            if *next == whole { Some(whole) } else { type_union_coercion(&whole, next) }
        })?;
        types(place).flatten().any(|kind| *kind != whole).then_some(whole)
    };
    (0..union.schema.fields().len()).map(common).collect()
}

/// Whether a statement is a question at all.
fn asks(statement: &Statement) -> Result<(), QueryError> {
    let statement = match statement {
        Statement::Statement(statement) => statement,
        Statement::Explain(_) => return Ok(()), // refused by its plan, in words of its own
        _ => return Err(would_change()),
    };
    match statement.as_ref() {
        Written::Query(_) | Written::Explain { .. } | Written::ExplainTable { .. } => Ok(()),
        other if other.to_string().starts_with("SHOW") => Err(QueryError::asked(
            "only questions are answered here",
            "ask with SELECT; `Declared::check` shows tables and columns",
        )),
        _ => Err(would_change()),
    }
}

fn would_change() -> QueryError {
    QueryError::asked("only questions are answered here, and this would change something", "ask with SELECT")
}

/// Whether a plan only asks: wherever one of its steps stands, it changes nothing and shows nothing of the engine.
fn only_asks(plan: &LogicalPlan) -> Result<(), QueryError> {
    let mut fault = None;
    let walked = plan.apply_with_subqueries(|node| {
        match node {
            LogicalPlan::Ddl(_) | LogicalPlan::Dml(_) | LogicalPlan::Copy(_) | LogicalPlan::Statement(_) => {
                fault = Some(would_change());
            }
            LogicalPlan::Explain(_) | LogicalPlan::Analyze(_) | LogicalPlan::DescribeTable(_) => {
                let hint = "`Session::preview` shows how a question is planned";
                fault = Some(QueryError::asked("the engine's own plan could tell of the data", hint));
            }
            LogicalPlan::TableScan(_) if Call::is(node) && Call::of(node).is_none() => {
                fault = Some(QueryError::asked("a call that cannot be read", "check its options"));
            }
            _ => {}
        }
        Ok(TreeNodeRecursion::Continue)
    });
    walked.map_err(|error| planning(&error))?;
    fault.map_or(Ok(()), Err)
}
