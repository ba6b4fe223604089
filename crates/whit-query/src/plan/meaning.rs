//! What a question means, as text: two spellings of one question have the same, two questions never.
//!
//! The text is made of the rows as the engine's optimiser leaves them, with tables called by number in the order in which they
//! appear, and of what is asked of these rows. Names that the question gives to its columns, the order of its columns and what
//! is done with the released table afterwards do not belong to it: they cost nothing.

use super::track::{renamed, unqualified};
use super::{Part, Plan, What};
use crate::error::QueryError;
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::common::{Column, TableReference};
use datafusion::logical_expr::utils::{conjunction, split_conjunction_owned};
use datafusion::logical_expr::{Expr, LogicalPlan};
use datafusion::prelude::SessionContext;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::Arc;

/// The meaning of all parts of a plan, without their price.
pub(crate) fn of(plan: &Plan, context: &SessionContext) -> Result<String, QueryError> {
    let mut text = format!("whit question 1\ndata set {}\n", plan.dataset);
    for rung in &plan.rungs {
        let _ = writeln!(text, "rung {rung}");
    }
    for part in &plan.parts {
        text.push_str(&of_part(part, context)?);
    }
    Ok(text)
}

/// The meaning of one part.
pub(crate) fn of_part(part: &Part, context: &SessionContext) -> Result<String, QueryError> {
    let state = context.state();
    // What is asked of the rows belongs to the plan that is simplified, so that it is simplified too.
    let mut asked: Vec<(String, Expr)> = Vec::new();
    for (i, key) in part.keys.iter().enumerate() {
        asked.push((format!("key{i}"), key.expr.clone()));
    }
    for (i, measure) in part.measures.iter().enumerate() {
        if let Some(value) = value_of(&measure.what) {
            asked.push((format!("value{i}"), value.clone()));
        }
    }
    for (i, auto) in part.autos.iter().enumerate() {
        asked.push((format!("auto{i}"), auto.value.clone()));
    }
    for (i, statistic) in part.statistics.iter().enumerate() {
        if let super::Statistic::Exact(expr) = statistic {
            for (j, argument) in exact_arguments(expr).into_iter().enumerate() {
                asked.push((format!("exact{i}_{j}"), argument));
            }
        }
    }
    let mut columns: Vec<Expr> = asked.iter().map(|(name, expr)| expr.clone().alias(name.clone())).collect();
    for name in [super::USER, super::ELEMENT] {
        columns.extend(super::track::hidden(part.rows.schema(), name).map(|column| column.alias(name)));
    }
    if columns.is_empty() {
        columns.push(datafusion::prelude::lit(1).alias("row"));
    }
    let projected = datafusion::logical_expr::LogicalPlanBuilder::from(part.rows.clone())
        .project(columns)
        .and_then(datafusion::logical_expr::LogicalPlanBuilder::build)
        .map_err(|error| crate::engine::planning(&error))?;
    let projected =
        crate::evaluate::with_constants(projected, &state).map_err(|error| crate::engine::planning(&error))?;
    // Where columns are called by the text of their expressions, names stay: then only one spelling is found again.
    let simplify = || {
        nameless(projected.clone())
            .and_then(|projected| state.optimize(&projected))
            .or_else(|_| state.optimize(&projected))
    };
    // A constant over which the engine panics is the question's own fault, and ends nothing else.
    let simplified = crate::evaluate::attempt::quietly(simplify).ok_or_else(|| {
        QueryError::asked("the engine cannot compute a constant of this question", "write it out, or leave it out")
    })?;
    let simplified = simplified.map_err(|error| crate::engine::planning(&error))?;
    let plain = canonical(simplified).map_err(|error| crate::engine::planning(&error))?;
    let mut text = format!("part\n{}\n", plain.display_indent());
    // The display cuts long lists and does not tell literals from what surrounds them, so everything is told once more in full,
    // inside of sub-queries too, with what it leaves out.
    plain
        .apply_with_subqueries(|node| {
            let _ = writeln!(text, "{} {:?}", node.display(), node.expressions());
            match node {
                LogicalPlan::Values(values) => writeln!(text, "{:?}", values.values),
                LogicalPlan::Join(join) => {
                    writeln!(text, "{:?} {:?} {}", join.join_type, join.null_equality, join.null_aware)
                }
                LogicalPlan::EmptyRelation(empty) => writeln!(text, "{}", empty.produce_one_row),
                LogicalPlan::Unnest(unnest) => writeln!(text, "{:?}", unnest.options),
                _ => Ok(()),
            }
            .map_err(|error| datafusion::common::DataFusionError::External(Box::new(error)))?;
            Ok(TreeNodeRecursion::Continue)
        })
        .map_err(|error| crate::engine::planning(&error))?;
    let _ = writeln!(
        text,
        "grain {:?} groups {:?} at most {:?} elements {:?} rows {:?} in a group {:?} in all {:?}",
        part.grain,
        part.groups,
        part.groups_per_unit,
        part.elements_per_user,
        part.row_caps,
        part.rows_per_group,
        (part.rows_in_all, part.kept.as_ref().map(|kept| kept.most[0]))
    );
    for (i, key) in part.keys.iter().enumerate() {
        let _ = writeln!(text, "key{i} {} listed {:?}", key.data_type, key.listed);
    }
    for (i, measure) in part.measures.iter().enumerate() {
        let kind = kind_of(&measure.what);
        let _ = writeln!(text, "value{i} {kind} {}..{} {:?}", measure.low, measure.high, measure.moved);
    }
    for statistic in &part.statistics {
        let word = match statistic {
            super::Statistic::Exact(expr) => format!(
                "exact {}",
                super::track::aggregate_call(expr).map_or_else(
                    |_| String::new(),
                    |call| format!(
                        "{} {} {} {:?} {} {:?}",
                        call.func.name(),
                        call.params.distinct,
                        call.params.args.len(),
                        call.params.order_by.iter().map(|sort| (sort.asc, sort.nulls_first)).collect::<Vec<_>>(),
                        call.params.filter.is_some(),
                        call.params.null_treatment
                    )
                )
            ),
            other => format!("{other:?}"),
        };
        let _ = writeln!(text, "statistic {word}");
    }
    Ok(text)
}

/// What a measure adds up, without the value.
fn kind_of(what: &What) -> String {
    match what {
        What::Rows(value) => format!("rows {}", value.is_some()),
        What::Parts(_) => "parts of rows".to_owned(),
        What::Users => "users".to_owned(),
        What::Sum { place, .. } => format!("sum {place:?}"),
        What::Distinct { most, .. } => format!("distinct {most}"),
        What::Tree { tree, rows, .. } => format!("tree {tree:?} {rows}"),
    }
}

fn exact_arguments(expr: &Expr) -> Vec<Expr> {
    super::track::aggregate_call(expr)
        .map(|call| {
            call.params
                .args
                .iter()
                .cloned()
                .chain(call.params.order_by.iter().map(|sort| sort.expr.clone()))
                .chain(call.params.filter.iter().map(|f| f.as_ref().clone()))
                .collect()
        })
        .unwrap_or_default()
}

fn value_of(what: &What) -> Option<&Expr> {
    match what {
        What::Rows(value) => value.as_ref(),
        What::Users => None,
        What::Parts(value) | What::Sum { value, .. } | What::Distinct { value, .. } | What::Tree { value, .. } => {
            Some(value)
        }
    }
}

/// How many tables a plan scans.
fn scans(plan: &LogicalPlan) -> datafusion::common::Result<usize> {
    let mut scans = 0;
    plan.apply(|node| {
        scans += usize::from(node.inputs().is_empty());
        Ok(TreeNodeRecursion::Continue)
    })?;
    Ok(scans)
}

/// The same plan without the names that it gives to its one table; as it was, where there are several.
fn nameless(plan: LogicalPlan) -> datafusion::common::Result<LogicalPlan> {
    if scans(&plan)? != 1 {
        return Ok(plan);
    }
    let done = plan.transform_up(|node| {
        Ok(Transformed::yes(match node {
            LogicalPlan::SubqueryAlias(alias) => Arc::unwrap_or_clone(alias.input),
            scan @ LogicalPlan::TableScan(_) => scan,
            other => other.map_expressions(|expr| renamed(expr, &unqualified))?.data.recompute_schema()?,
        }))
    })?;
    Ok(done.data)
}

/// The same plan with conditions in the order of their texts, and names that do not depend on what tables were called: none where
/// there is one table only, and else numbers in the order in which tables appear. It is for reading, not for running.
fn canonical(plan: LogicalPlan) -> datafusion::common::Result<LogicalPlan> {
    let alone = scans(&plan)? == 1;
    Ok(Numbered { alone, tables: 0 }.plan(plan)?.0)
}

/// The names that the columns of a relation may have before them, and what these are called instead.
type Names = BTreeMap<String, String>;

/// How many tables were met.
struct Numbered {
    alone: bool,
    tables: usize,
}

impl Numbered {
    fn next(&mut self) -> String {
        self.tables += 1;
        format!("t{}", self.tables - 1)
    }

    /// A plan with its tables called by number, and the names that stood for them above it.
    fn plan(&mut self, plan: LogicalPlan) -> datafusion::common::Result<(LogicalPlan, Names)> {
        let mut names = Names::new();
        let plan = plan
            .map_children(|child| {
                let (child, inside) = self.plan(child)?;
                names.extend(inside);
                Ok(Transformed::yes(child))
            })?
            .data;
        if let LogicalPlan::TableScan(scan) = &plan {
            names = Names::from([(scan.table_name.to_string(), self.next())]);
        }
        let called = |column: Column| {
            // A row has one user, whichever table it came with.
            let hidden = [super::USER, super::ELEMENT].contains(&column.name.as_str());
            let table = column.relation.as_ref().filter(|_| !self.alone && !hidden).map(|table| {
                names.get(&table.to_string()).map_or_else(|| table.clone(), |name| TableReference::bare(name.clone()))
            });
            Column::new(table, column.name)
        };
        Ok(match plan.map_expressions(|expr| renamed(expr, &called))?.data {
            LogicalPlan::SubqueryAlias(alias) if self.alone => (Arc::unwrap_or_clone(alias.input), names),
            // Another name of one table stands for the table.
            LogicalPlan::SubqueryAlias(alias) if names.len() == 1 => {
                let number = names.into_values().next().unwrap_or_default();
                (Arc::unwrap_or_clone(alias.input), Names::from([(alias.alias.to_string(), number)]))
            }
            LogicalPlan::SubqueryAlias(mut alias) => {
                let number = self.next();
                let names = Names::from([(alias.alias.to_string(), number.clone())]);
                alias.alias = TableReference::bare(number);
                (LogicalPlan::SubqueryAlias(alias), names)
            }
            LogicalPlan::Filter(mut filter) => {
                let conditions = sorted(split_conjunction_owned(filter.predicate));
                filter.predicate = conjunction(conditions).unwrap_or_else(|| datafusion::prelude::lit(true));
                (LogicalPlan::Filter(filter), names)
            }
            LogicalPlan::TableScan(mut scan) => {
                scan.filters = sorted(scan.filters);
                if let Some(number) = names.values().next().filter(|_| !self.alone) {
                    scan.table_name = TableReference::partial(number.as_str(), scan.table_name.table());
                }
                (LogicalPlan::TableScan(scan), names)
            }
            other => (other, names),
        })
    }
}

fn sorted(mut conditions: Vec<Expr>) -> Vec<Expr> {
    conditions.sort_by_key(ToString::to_string);
    conditions.dedup();
    conditions
}
