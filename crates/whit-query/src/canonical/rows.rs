//! Rows in our own words: which tables they come from, which conditions they meet, and what each column is.
//!
//! Filters, projections, other names and inner joins are one thing, tables and a set of conditions, however they were nested. Whatever else makes rows
//! (a group, a union, an outer join, a window's look around) is a table of its own, with a number by which columns say where they come from.

use super::expression::{self, each, flatten, order_of, step};
use super::numbers::{Numbers, Over, wordless};
use crate::error::QueryError;
use datafusion::common::{DFSchema, JoinType, NullEquality};
use datafusion::logical_expr::{Distinct, Expr, FetchType, Join, LogicalPlan, Operator, SkipType};
use serde_json::{Value, json};
use whit_account::meaning::set;

/// What rows are.
pub(super) struct Rows {
    tables: Vec<Value>,
    conditions: Vec<Value>,
    /// What each column is, in the order of the plan's own.
    pub(super) columns: Vec<Value>,
}

impl Rows {
    /// One table of its own.
    fn table(said: Value, columns: Vec<Value>) -> Self {
        Self { tables: vec![said], conditions: Vec::new(), columns }
    }

    pub(super) fn json(&self) -> Value {
        json!({ "from": self.tables, "where": set(self.conditions.clone()) })
    }

    pub(super) fn over<'a>(&'a self, schema: &'a DFSchema) -> Over<'a> {
        Over { schema, columns: &self.columns }
    }
}

/// The rows of a sub-query and what it gives of them.
pub(super) fn inside(plan: &LogicalPlan, numbers: &mut Numbers<'_>) -> Result<Value, QueryError> {
    let rows = of(plan, numbers)?;
    Ok(json!({ "rows": rows.json(), "columns": rows.columns }))
}

/// The columns of a table by their places in it.
fn numbered(number: u32, columns: usize) -> Vec<Value> {
    (0..columns).map(|place| json!({ "column": place, "of": number })).collect()
}

/// What a plan's rows are.
#[expect(clippy::too_many_lines, reason = "one arm an operator, and each a few lines")]
pub(super) fn of(plan: &LogicalPlan, numbers: &mut Numbers<'_>) -> Result<Rows, QueryError> {
    Ok(match plan {
        LogicalPlan::TableScan(scan) => {
            let number = numbers.next();
            let columns: Vec<Value> =
                plan.schema().fields().iter().map(|field| json!({ "column": field.name(), "of": number })).collect();
            let mut said = json!({ "table": scan.table_name.table(), "number": number, "first": scan.fetch });
            if let Some(keys) = numbers.users_of(scan.table_name.table()) {
                said["users"] = keys;
            }
            let mut rows = Rows::table(said, columns);
            for filter in &scan.filters {
                let condition = expression::of(filter, &rows.over(plan.schema()), numbers)?;
                rows.conditions.extend(each(condition, "all"));
            }
            rows
        }
        LogicalPlan::SubqueryAlias(alias) => of(&alias.input, numbers)?,
        LogicalPlan::Subquery(query) => of(&query.subquery, numbers)?,
        LogicalPlan::Projection(projection) => {
            let rows = of(&projection.input, numbers)?;
            let over = rows.over(projection.input.schema());
            let columns =
                projection.expr.iter().map(|expr| expression::of(expr, &over, numbers)).collect::<Result<_, _>>()?;
            Rows { columns, ..rows }
        }
        LogicalPlan::Filter(filter) => {
            let mut rows = of(&filter.input, numbers)?;
            let mut conditions = Vec::new();
            flatten(&filter.predicate, Operator::And, &mut conditions);
            for condition in conditions {
                let condition = expression::of(condition, &rows.over(filter.input.schema()), numbers)?;
                rows.conditions.extend(each(condition, "all"));
            }
            rows
        }
        LogicalPlan::Join(join) => joined(join, numbers)?,
        LogicalPlan::Union(union) => {
            let mut inputs = Vec::new();
            for input in &union.inputs {
                let rows = of(input, numbers)?;
                inputs.push(json!({ "rows": rows.json(), "columns": rows.columns }));
            }
            let number = numbers.next();
            Rows::table(json!({ "union": inputs, "number": number }), numbered(number, plan.schema().fields().len()))
        }
        LogicalPlan::Aggregate(aggregate) => {
            let rows = of(&aggregate.input, numbers)?;
            let over = rows.over(aggregate.input.schema());
            let all = aggregate.group_expr.iter().chain(&aggregate.aggr_expr);
            let all: Vec<Value> = all.map(|expr| expression::of(expr, &over, numbers)).collect::<Result<_, _>>()?;
            let number = numbers.next();
            let keys = all[..aggregate.group_expr.len()].to_vec();
            let grouped = aggregate.group_expr.iter().any(|expr| matches!(expr, Expr::GroupingSet(_)));
            let mut said = json!({ "groups of": rows.json(), "by": set(keys), "number": number });
            // Sets of groups have a hidden column, and keys that are not those of one group: columns are known by their places, and the table says what is there.
            let columns = if grouped {
                said["gives"] = json!(all);
                numbered(number, plan.schema().fields().len())
            } else {
                all.into_iter().map(|expr| json!({ "each": expr, "of": number })).collect()
            };
            Rows::table(said, columns)
        }
        LogicalPlan::Distinct(Distinct::All(input)) => {
            let rows = of(input, numbers)?;
            let number = numbers.next();
            let columns = rows.columns.iter().map(|column| json!({ "each": column, "of": number })).collect();
            Rows::table(json!({ "groups of": rows.json(), "by": set(rows.columns.clone()), "number": number }), columns)
        }
        LogicalPlan::Distinct(Distinct::On(first)) => {
            let rows = of(&first.input, numbers)?;
            let over = rows.over(first.input.schema());
            let by: Vec<Value> =
                first.on_expr.iter().map(|expr| expression::of(expr, &over, numbers)).collect::<Result<_, _>>()?;
            let columns: Vec<Value> =
                first.select_expr.iter().map(|expr| expression::of(expr, &over, numbers)).collect::<Result<_, _>>()?;
            let order = order_of(first.sort_expr.as_deref().unwrap_or_default(), &over, numbers)?;
            let number = numbers.next();
            let columns = columns.into_iter().map(|column| json!({ "each": column, "of": number })).collect();
            let said = json!({ "first of groups of": rows.json(), "by": set(by), "order": order, "number": number });
            Rows::table(said, columns)
        }
        LogicalPlan::Window(window) => {
            let rows = of(&window.input, numbers)?;
            // What a row sees around itself are the rows from before any later condition.
            let number = numbers.next();
            let mut columns = rows.columns.clone();
            for expr in &window.window_expr {
                let said = expression::of(expr, &rows.over(window.input.schema()), numbers)?;
                columns.push(json!({ "around": said, "of": number }));
            }
            Rows::table(json!({ "rows": rows.json(), "number": number }), columns)
        }
        LogicalPlan::Sort(sort) => {
            let rows = of(&sort.input, numbers)?;
            // Without a limit the order of rows is no part of them.
            let Some(first) = sort.fetch else { return Ok(rows) };
            let order = order_of(&sort.expr, &rows.over(sort.input.schema()), numbers)?;
            let number = numbers.next();
            let columns = rows.columns.clone();
            Rows::table(json!({ "rows": rows.json(), "order": order, "first": first, "number": number }), columns)
        }
        LogicalPlan::Limit(limit) => {
            // The order below a limit decides which rows stay.
            let (order, input) = match limit.input.as_ref() {
                LogicalPlan::Sort(sort) if sort.fetch.is_none() => (sort.expr.as_slice(), sort.input.as_ref()),
                other => (&[][..], other),
            };
            let rows = of(input, numbers)?;
            let order = order_of(order, &rows.over(input.schema()), numbers)?;
            let (Ok(SkipType::Literal(skip)), Ok(FetchType::Literal(first))) =
                (limit.get_skip_type(), limit.get_fetch_type())
            else {
                return Err(wordless("a LIMIT or OFFSET that is no number", "write how many rows in digits"));
            };
            let number = numbers.next();
            let columns = rows.columns.clone();
            Rows::table(
                json!({ "rows": rows.json(), "order": order, "skip": skip, "first": first, "number": number }),
                columns,
            )
        }
        LogicalPlan::Values(values) => {
            let nothing = DFSchema::empty();
            let over = Over { schema: &nothing, columns: &[] };
            let mut rows = Vec::new();
            for row in &values.values {
                let row: Vec<Value> =
                    row.iter().map(|expr| expression::of(expr, &over, numbers)).collect::<Result<_, _>>()?;
                rows.push(row);
            }
            let number = numbers.next();
            Rows::table(json!({ "values": rows, "number": number }), numbered(number, plan.schema().fields().len()))
        }
        LogicalPlan::EmptyRelation(empty) => {
            let number = numbers.next();
            let said = json!({ "rows without columns": u8::from(empty.produce_one_row), "number": number });
            Rows::table(said, numbered(number, plan.schema().fields().len()))
        }
        LogicalPlan::RecursiveQuery(query) => {
            let (first, again) = (inside(&query.static_term, numbers)?, inside(&query.recursive_term, numbers)?);
            let number = numbers.next();
            // Inside of itself it is a table of this name.
            let said = json!({
                "recursive": query.name,
                "first": first,
                "again": again,
                "different": query.is_distinct,
                "number": number,
            });
            Rows::table(said, numbered(number, plan.schema().fields().len()))
        }
        LogicalPlan::Repartition(_)
        | LogicalPlan::Statement(_)
        | LogicalPlan::Explain(_)
        | LogicalPlan::Analyze(_)
        | LogicalPlan::Extension(_)
        | LogicalPlan::Dml(_)
        | LogicalPlan::Ddl(_)
        | LogicalPlan::Copy(_)
        | LogicalPlan::DescribeTable(_)
        | LogicalPlan::Unnest(_) => {
            return Err(wordless("what makes rows of a list, or is no SELECT,", "write the rows out with VALUES"));
        }
    })
}

fn joined(join: &Join, numbers: &mut Numbers<'_>) -> Result<Rows, QueryError> {
    let (left, right) = (of(&join.left, numbers)?, of(&join.right, numbers)?);
    let both: Vec<Value> = left.columns.iter().chain(&right.columns).cloned().collect();
    let schema = join.left.schema().join(join.right.schema()).map_err(|error| crate::error::planning(&error))?;
    let equal = match join.null_equality {
        NullEquality::NullEqualsNothing => Operator::Eq,
        NullEquality::NullEqualsNull => Operator::IsNotDistinctFrom,
    };
    let mut conditions = Vec::new();
    for (of_left, of_right) in &join.on {
        let of_left = expression::of(of_left, &left.over(join.left.schema()), numbers)?;
        let of_right = expression::of(of_right, &right.over(join.right.schema()), numbers)?;
        conditions.push(step(equal, of_left, of_right));
    }
    let over = Over { schema: &schema, columns: &both };
    let mut others = Vec::new();
    if let Some(filter) = &join.filter {
        flatten(filter, Operator::And, &mut others);
    }
    for condition in others {
        conditions.extend(each(expression::of(condition, &over, numbers)?, "all"));
    }
    let kind = match join.join_type {
        JoinType::Inner => {
            let tables = left.tables.into_iter().chain(right.tables).collect();
            let conditions = left.conditions.into_iter().chain(right.conditions).chain(conditions).collect();
            return Ok(Rows { tables, conditions, columns: both });
        }
        JoinType::Left => "left",
        JoinType::Right => "right",
        JoinType::Full => "full",
        JoinType::LeftSemi => "left semi",
        JoinType::RightSemi => "right semi",
        JoinType::LeftAnti => "left anti",
        JoinType::RightAnti => "right anti",
        JoinType::LeftMark => "left mark",
        JoinType::RightMark => "right mark",
    };
    let number = numbers.next();
    let said = json!({
        "join": kind,
        "left": left.json(),
        "right": right.json(),
        "on": set(conditions),
        "nulls decide": join.null_aware,
        "number": number,
    });
    let columns = match join.join_type {
        JoinType::LeftSemi | JoinType::LeftAnti => left.columns,
        JoinType::RightSemi | JoinType::RightAnti => right.columns,
        JoinType::LeftMark | JoinType::RightMark => numbered(number, join.schema.fields().len()),
        // What has no partner is NULL there: not the same column any more.
        _ => both.into_iter().map(|column| json!({ "joined": column, "of": number })).collect(),
    };
    Ok(Rows::table(said, columns))
}
