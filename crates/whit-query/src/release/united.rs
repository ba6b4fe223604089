//! Released tables that are put below one another, by `GROUPING SETS` or `UNION ALL`. Each row is of one of them, and has its interval from there.

use super::after::{Table, carry};
use crate::plan::outline::{ROW, part_schema};
use crate::plan::{part_name, track};
use datafusion::arrow::datatypes::{DataType, Field};
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::common::{Column, DFSchema, TableReference};
use datafusion::datasource::{MemTable, provider_as_source};
use datafusion::logical_expr::{Expr, LogicalPlan, LogicalPlanBuilder, Projection, Union, lit};
use std::sync::Arc;

/// What is done with the rows of one table.
pub(super) struct Branch {
    /// The number of its part.
    pub(super) part: usize,
    /// All of it, over this table alone, which is called as if it were the only one.
    pub(super) after: LogicalPlan,
    /// The number of its first row.
    pub(super) first: usize,
}

/// What is done with several tables, row by row.
pub(super) struct United {
    /// All of it, with the number of each row.
    pub(super) after: LogicalPlan,
    pub(super) branches: Vec<Branch>,
}

impl United {
    /// Nothing where rows are not followed so simply.
    pub(super) fn of(plan: &LogicalPlan, parts: &[Table<'_>]) -> Option<Self> {
        let union = union_of(plan)?;
        let numbers = union.inputs.iter().map(|input| part_of(input)).collect::<Option<Vec<_>>>()?;
        let (mut branches, mut numbered, mut first) = (Vec::new(), Vec::new(), 0);
        for (input, &part) in union.inputs.iter().zip(&numbers) {
            let carried = carry(input)?;
            let all = carried.schema().iter().map(Expr::from).collect::<Vec<_>>();
            let (row, columns) = all.split_last()?;
            let own = |row: Expr, plan: LogicalPlan| {
                let called = columns.iter().zip(union.schema.iter());
                let called =
                    called.map(|(column, (table, field))| column.clone().alias_qualified(table.cloned(), field.name()));
                let columns = called.chain([row.alias(ROW)]).collect::<Vec<_>>();
                Projection::try_new(columns, Arc::new(plan)).ok().map(LogicalPlan::Projection)
            };
            numbered.push(Arc::new(own(row.clone() + lit(first as i64), carried.clone())?));
            let alone = own(row.clone(), alone(carried, part, parts.get(part)?.output)?)?;
            branches.push(Branch { part, after: above(plan, &alone)?, first });
            first += parts.get(part)?.released.keys.len();
        }
        let row = (None, Arc::new(Field::new(ROW, DataType::Int64, true)));
        let fields = union.schema.iter().map(|(table, field)| (table.cloned(), Arc::clone(field))).chain([row]);
        let schema = DFSchema::new_with_metadata(fields.collect(), union.schema.metadata().clone()).ok()?;
        let union = LogicalPlan::Union(Union { inputs: numbered, schema: Arc::new(schema) });
        Some(Self { after: above(plan, &union)?, branches })
    }
}

/// The only union on the way from a plan's last step to its tables.
fn union_of(plan: &LogicalPlan) -> Option<&Union> {
    match plan {
        LogicalPlan::Union(union) => Some(union),
        LogicalPlan::Projection(_)
        | LogicalPlan::Filter(_)
        | LogicalPlan::Sort(_)
        | LogicalPlan::Limit(_)
        | LogicalPlan::SubqueryAlias(_) => union_of(plan.inputs().first()?),
        _ => None,
    }
}

/// What stands above the union, over something else with its columns and the number of a row.
fn above(plan: &LogicalPlan, below: &LogicalPlan) -> Option<LogicalPlan> {
    match plan {
        LogicalPlan::Union(_) => Some(below.clone()),
        LogicalPlan::Projection(projection) => {
            let input = above(&projection.input, below)?;
            let mut exprs = projection.expr.clone();
            exprs.push(track::hidden(input.schema(), ROW)?);
            Projection::try_new(exprs, Arc::new(input)).ok().map(LogicalPlan::Projection)
        }
        _ => {
            let input = above(plan.inputs().first()?, below)?;
            plan.with_new_exprs(plan.expressions(), vec![input]).ok()
        }
    }
}

/// The number of the only table that a branch reads.
fn part_of(plan: &LogicalPlan) -> Option<usize> {
    let mut tables = Vec::new();
    let _ = plan.apply_with_subqueries(|node| {
        if let LogicalPlan::TableScan(scan) = node {
            tables.push(scan.table_name.table().to_owned());
        }
        Ok(TreeNodeRecursion::Continue)
    });
    let [table] = tables.as_slice() else { return None };
    let number = table.strip_prefix("__whit_part_")?.parse().ok()?;
    (part_name(number) == *table).then_some(number)
}

/// A branch over the first table: as if there were no other.
fn alone(plan: LogicalPlan, part: usize, output: &[(String, DataType)]) -> Option<LogicalPlan> {
    if part == 0 {
        return Some(plan);
    }
    let (old, new) = (part_name(part), TableReference::bare(part_name(0)));
    let renamed = plan.transform_up(|node| match node {
        LogicalPlan::TableScan(_) => {
            let table = MemTable::try_new(Arc::new(part_schema(output)), vec![Vec::new()])?;
            let scan = LogicalPlanBuilder::scan(new.clone(), provider_as_source(Arc::new(table)), None)?.build()?;
            Ok(Transformed::yes(scan))
        }
        other => {
            let other = other.map_expressions(|expr| {
                expr.transform_up(|part| match part {
                    Expr::Column(column) if column.relation.as_ref().is_some_and(|table| table.table() == old) => {
                        Ok(Transformed::yes(Expr::Column(Column::new(Some(new.clone()), column.name))))
                    }
                    other => Ok(Transformed::no(other)),
                })
            })?;
            other.map_data(LogicalPlan::recompute_schema)
        }
    });
    renamed.ok().map(|renamed| renamed.data)
}
