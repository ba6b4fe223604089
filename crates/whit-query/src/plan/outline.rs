//! Which parts of a question are private aggregates, and what is done with their tables afterwards.

use super::call::Call;
use super::misread::placed;
use super::track::{Lost, Surroundings, track};
use super::{Asking, Part, Plan, aggregate, clock, part_name, sets};
use crate::error::{QueryError, planning};
use crate::evaluate::allow;
use crate::evaluate::words::{one_of, said};
use datafusion::arrow::datatypes::{DataType, Field, Schema};
use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::common::{Column, DFSchema};
use datafusion::datasource::{MemTable, provider_as_source};
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::{Aggregate, Distinct, Expr, LogicalPlan, LogicalPlanBuilder};
use std::sync::Arc;
use whit_core::Rung;

/// The hidden column that says which group a row of a released table is.
pub(crate) const ROW: &str = "__whit_row";

/// What is said where several groupings are released.
const EACH_ITS_OWN: &str = "each grouping has noise of its own, so that rows do not add up to their totals; each interval is that of its row, and totals count also rows that finer groups leave out";

struct Outline<'a> {
    asking: &'a Asking,
    around: &'a Surroundings<'a>,
    parts: Vec<Part>,
    rungs: Vec<Rung>,
    payer: Option<String>,
    notes: Vec<String>,
    /// What each part was planned from.
    aggregates: Vec<Aggregate>,
}

/// Plans a whole question.
pub(super) fn plan(
    sql: &str,
    logical: &LogicalPlan,
    asking: &Asking,
    around: &Surroundings<'_>,
) -> Result<Plan, QueryError> {
    divided(sql, logical, asking, around, clock::now()).map(|(plan, _)| plan)
}

/// The same at a time of asking, and the aggregate that each of its parts was planned from.
pub(super) fn divided(
    sql: &str,
    logical: &LogicalPlan,
    asking: &Asking,
    around: &Surroundings<'_>,
    seconds: i64,
) -> Result<(Plan, Vec<Aggregate>), QueryError> {
    presentable(logical, around).map_err(|error| placed(error, sql))?;
    let (logical, notes) = clock::fixed(logical, seconds)?;
    let logical = &logical;
    let mut outline = Outline::new(asking, around, notes);
    let after = outline.after(logical).map_err(|error| placed(error, sql))?;
    let Outline { parts, rungs, payer, notes, aggregates, .. } = outline;
    // What comes after release may read what was released and public tables, and nothing else.
    if tables_of(&after).iter().any(|name| is_private(name, around)) {
        return Err(QueryError::asked(
            "a part of the question reads private rows without aggregating them",
            "aggregate every private table that is read",
        ));
    }
    let mut kept: Vec<String> = Vec::new();
    for note in notes {
        if !kept.contains(&note) {
            kept.push(note);
        }
    }
    let dataset = match payer {
        Some(payer) => payer,
        None => tables_of(logical).into_iter().next().unwrap_or_default(),
    };
    let tables = tables_of(logical);
    Ok((Plan { question: sql.to_owned(), dataset, rungs, parts, tables, after, notes: kept }, aggregates))
}

/// A question that reads what an estimator releases: the estimator's own question, and what is done with its table, which is the first part.
pub(super) fn around_call(
    sql: &str,
    logical: &LogicalPlan,
    around: &Surroundings<'_>,
) -> Result<Option<(Call, LogicalPlan)>, QueryError> {
    let calls = calls_of(logical);
    let Some(call) = calls.first() else { return Ok(None) };
    if calls.len() > 1 || tables_of(logical).iter().any(|name| is_private(name, around)) {
        return Err(QueryError::asked(
            format!("`{}` is released by itself, and nothing else that is private along with it", call.name()),
            "ask one question for each, and put the answers together afterwards",
        ));
    }
    let mut outside = 0;
    let flat = logical.apply(|node| {
        outside += usize::from(Call::of(node).is_some());
        Ok(TreeNodeRecursion::Continue)
    });
    flat.map_err(|error| planning(&error))?;
    if outside == 0 {
        return Err(QueryError::asked(
            format!("`{}` stands in a sub-query inside an expression", call.name()),
            "put it into FROM, and join with it",
        ));
    }
    presentable(logical, around).map_err(|error| placed(error, sql))?;
    let asking = Asking::default();
    let mut outline = Outline::new(&asking, around, Vec::new());
    let after = outline.after(logical).map_err(|error| placed(error, sql))?;
    Ok(Some((call.clone(), after)))
}

/// The estimators that a plan reads.
fn calls_of(plan: &LogicalPlan) -> Vec<Call> {
    let mut calls = Vec::new();
    let _ = plan.apply_with_subqueries(|node| {
        calls.extend(Call::of(node));
        Ok(TreeNodeRecursion::Continue)
    });
    calls
}

fn is_private(table: &str, around: &Surroundings<'_>) -> bool {
    around.declaration.datasets.get(table).is_some_and(|dataset| dataset.unit.is_some())
}

/// Whether a question keeps to what planning can follow, wherever it stands: no sub-query in an expression over a private table, nothing
/// that changes from one run to the next, no name that is ours.
fn presentable(plan: &LogicalPlan, around: &Surroundings<'_>) -> Result<(), QueryError> {
    let (mut reads, mut reads_inside) = (0, 0);
    let mut fault = None;
    let walked = plan.apply_with_subqueries(|node| {
        if let LogicalPlan::TableScan(scan) = node {
            reads_inside += usize::from(is_private(scan.table_name.table(), around));
        }
        if node.schema().fields().iter().any(|field| field.name().to_lowercase().starts_with("__whit")) {
            fault = Some(QueryError::asked(
                "names that begin with `__whit` are kept for whit itself",
                "call the column something else",
            ));
        }
        for expr in node.expressions() {
            if expr.is_volatile() {
                fault = Some(QueryError::asked(
                    format!(
                        "`{}` changes from one run to the next, so what it bounds now it may not bound then",
                        said(&expr)
                    ),
                    "leave it out",
                ));
            }
        }
        Ok(TreeNodeRecursion::Continue)
    });
    let flat = plan.apply(|node| {
        if let LogicalPlan::TableScan(scan) = node {
            reads += usize::from(is_private(scan.table_name.table(), around));
        }
        Ok(TreeNodeRecursion::Continue)
    });
    walked.and(flat).map_err(|error| planning(&error))?;
    if let Some(fault) = fault.filter(|_| reads_inside > 0) {
        return Err(fault);
    }
    if reads_inside > reads {
        return Err(reads_inside_an_expression());
    }
    Ok(())
}

fn reads_inside_an_expression() -> QueryError {
    QueryError::asked(
        "a sub-query inside an expression reads a private table",
        "write it as a join with a sub-query in FROM, so that it is released on its own",
    )
}

/// The tables that a plan reads.
pub(crate) fn tables_of(plan: &LogicalPlan) -> Vec<String> {
    let mut names = Vec::new();
    let _ = plan.apply_with_subqueries(|node| {
        if let LogicalPlan::TableScan(scan) = node {
            names.push(scan.table_name.table().to_owned());
        }
        Ok(TreeNodeRecursion::Continue)
    });
    names
}

impl<'a> Outline<'a> {
    fn new(asking: &'a Asking, around: &'a Surroundings<'a>, notes: Vec<String>) -> Self {
        let (parts, rungs, aggregates) = (Vec::new(), Vec::new(), Vec::new());
        Self { asking, around, parts, rungs, payer: None, notes, aggregates }
    }

    /// What is done after release: the plan with each private aggregate in place of a scan of its released table.
    fn after(&mut self, plan: &LogicalPlan) -> Result<LogicalPlan, QueryError> {
        match plan {
            LogicalPlan::TableScan(_) if Call::of(plan).is_some() => {
                let places: Vec<usize> = (0..plan.schema().fields().len()).collect();
                placeholder(0, plan.schema(), &places)
            }
            LogicalPlan::Aggregate(_) if !calls_of(plan).is_empty() => self.rebuilt(plan),
            LogicalPlan::Aggregate(aggregate) => self.aggregate(plan, aggregate),
            LogicalPlan::Distinct(Distinct::All(input)) if self.is_private(input) => {
                // Which values there are is a grouping without sums.
                let keys: Vec<Expr> = input.schema().iter().map(Expr::from).collect();
                let aggregate =
                    Aggregate::try_new(Arc::clone(input), keys, Vec::new()).map_err(|error| planning(&error))?;
                match track(input, self.around) {
                    Err(Lost::Mixed) => self.rebuilt(plan),
                    _ => self.aggregate(&LogicalPlan::Aggregate(aggregate.clone()), &aggregate),
                }
            }
            LogicalPlan::TableScan(scan) if self.is_private(plan) => Err(QueryError::asked(
                format!("the rows of `{}` themselves cannot be released", scan.table_name.table()),
                format!("aggregate them with {}, with or without GROUP BY", one_of(aggregate::suggested().into_iter())),
            )),
            _ => self.rebuilt(plan),
        }
    }

    fn is_private(&self, plan: &LogicalPlan) -> bool {
        tables_of(plan).iter().any(|name| is_private(name, self.around))
    }

    fn rebuilt(&mut self, plan: &LogicalPlan) -> Result<LogicalPlan, QueryError> {
        let mut inside = false;
        for expr in plan.expressions() {
            let _ = expr.apply(|node| {
                inside |= match node {
                    Expr::InSubquery(sub) => self.is_private(&sub.subquery.subquery),
                    Expr::Exists(sub) => self.is_private(&sub.subquery.subquery),
                    Expr::ScalarSubquery(sub) => self.is_private(&sub.subquery),
                    _ => false,
                };
                Ok(TreeNodeRecursion::Continue)
            });
        }
        if inside {
            return Err(reads_inside_an_expression());
        }
        // What puts rows of several inputs below one another, or compares whole rows, goes by the columns there are: the number of a group would be one more.
        let by_place = matches!(plan, LogicalPlan::Union(_) | LogicalPlan::Distinct(_));
        let input = |input: &LogicalPlan| {
            let after = self.after(input)?;
            if by_place { columns_of(input, after) } else { Ok(after) }
        };
        let inputs = plan.inputs().into_iter().map(input).collect::<Result<Vec<_>, _>>()?;
        // Noise may make a divisor zero: that is no reason to fail.
        let names = NamePreserver::new(plan);
        let exprs = plan.expressions().into_iter().map(|expr| {
            let name = names.save(&expr);
            Ok(name.restore(allow::harmless(expr)?))
        });
        let exprs = exprs.collect::<Result<Vec<_>, QueryError>>()?;
        plan.with_new_exprs(exprs, inputs).map_err(|error| planning(&error))
    }

    fn aggregate(&mut self, plan: &LogicalPlan, aggregate: &Aggregate) -> Result<LogicalPlan, QueryError> {
        let input = match track(&aggregate.input, self.around) {
            Ok(input) => input,
            // The aggregate inside is a release, and this one is made of its table.
            Err(Lost::Mixed) => return self.rebuilt(plan),
            Err(Lost::Never(error)) => return Err(error),
        };
        let Some(private) = input.private.clone() else { return Ok(plan.clone()) };
        if let Some(below_one_another) = sets::apart(aggregate)? {
            self.notes.push(EACH_ITS_OWN.to_owned());
            return self.after(&below_one_another);
        }
        if self.payer.as_ref().is_some_and(|payer| *payer != private.payer) {
            return Err(QueryError::asked(
                format!(
                    "the question reads `{}` and `{}`, which have separate budgets",
                    self.payer.as_deref().unwrap_or_default(),
                    private.payer
                ),
                "ask about one at a time",
            ));
        }
        let (part, rungs, notes) = aggregate::plan(&input, &private, aggregate, self.asking, self.around)?;
        self.payer = Some(private.payer);
        self.rungs = rungs;
        self.notes.extend(notes);
        let places = part.places.clone();
        self.parts.push(part);
        self.aggregates.push(aggregate.clone());
        placeholder(self.parts.len() - 1, &aggregate.schema, &places)
    }
}

/// What comes after a plan, with that plan's columns alone.
fn columns_of(plan: &LogicalPlan, after: LogicalPlan) -> Result<LogicalPlan, QueryError> {
    if after.schema().fields().len() == plan.schema().fields().len() {
        return Ok(after);
    }
    let columns = after.schema().iter().filter(|(_, field)| field.name() != ROW).map(Expr::from).collect::<Vec<_>>();
    LogicalPlanBuilder::from(after)
        .project(columns)
        .and_then(LogicalPlanBuilder::build)
        .map_err(|error| planning(&error))
}

/// The types of a part's released table: its columns by number, and which group a row is.
pub(crate) fn part_schema(output: &[(String, DataType)]) -> Schema {
    let mut fields: Vec<Field> =
        output.iter().enumerate().map(|(i, (_, kind))| Field::new(format!("c{i}"), kind.clone(), true)).collect();
    fields.push(Field::new(ROW, DataType::Int64, true));
    Schema::new(fields)
}

/// A scan of a table that is not there yet, under the names that its columns had.
fn placeholder(number: usize, columns: &DFSchema, places: &[usize]) -> Result<LogicalPlan, QueryError> {
    let mut output = vec![(String::new(), DataType::Null); places.len()];
    for (field, &place) in columns.fields().iter().zip(places) {
        output[place] = (field.name().clone(), field.data_type().clone());
    }
    let schema = Arc::new(part_schema(&output));
    let table = MemTable::try_new(schema, vec![Vec::new()]).map_err(|error| planning(&error))?;
    let mut names: Vec<Expr> = columns
        .iter()
        .zip(places)
        .map(|((table, field), place)| {
            let column = Expr::Column(Column::new(Some(part_name(number)), format!("c{place}")));
            column.alias_qualified(table.cloned(), field.name())
        })
        .collect();
    names.push(Expr::Column(Column::new(Some(part_name(number)), ROW)).alias(ROW));
    LogicalPlanBuilder::scan(part_name(number), provider_as_source(Arc::new(table)), None)
        .and_then(|builder| builder.project(names))
        .and_then(LogicalPlanBuilder::build)
        .map_err(|error| planning(&error))
}
