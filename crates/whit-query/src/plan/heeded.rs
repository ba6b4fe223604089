//! Clauses that the engine reads and does not heed: a question with one of them would be answered as another.

use crate::error::QueryError;
use datafusion::sql::parser::Statement as Parsed;
use datafusion::sql::sqlparser::ast::{
    GroupByExpr, GroupByWithModifier, Query, Select, Statement, TableFactor, Visit, Visitor,
};
use std::ops::ControlFlow;

/// Whether all that a question says is heeded. What is no statement of SQL is refused elsewhere.
pub(super) fn all(statement: &Parsed) -> Result<(), QueryError> {
    let Parsed::Statement(statement) = statement else { return Ok(()) };
    let statement: &Statement = statement;
    match statement.visit(&mut Unheeded) {
        ControlFlow::Continue(()) => Ok(()),
        ControlFlow::Break(clause) => Err(QueryError::asked(
            format!("{clause} would not be heeded, so the answer would be that of another question"),
            "leave it out",
        )),
    }
}

/// Finds the first clause that is not heeded.
struct Unheeded;

fn unless(clauses: &[(bool, &'static str)]) -> ControlFlow<&'static str> {
    match clauses.iter().find(|(stands, _)| *stands) {
        Some((_, clause)) => ControlFlow::Break(clause),
        None => ControlFlow::Continue(()),
    }
}

impl Visitor for Unheeded {
    type Break = &'static str;

    fn pre_visit_table_factor(&mut self, table: &TableFactor) -> ControlFlow<Self::Break> {
        match table {
            TableFactor::Table { with_hints, version, with_ordinality, partitions, json_path, sample, .. } => {
                unless(&[
                    (sample.is_some(), "TABLESAMPLE"),
                    (version.is_some(), "a version of a table"),
                    (!partitions.is_empty(), "PARTITION of a table"),
                    (!with_hints.is_empty(), "WITH after a table"),
                    (*with_ordinality, "WITH ORDINALITY"),
                    (json_path.is_some(), "a path into a table"),
                ])
            }
            TableFactor::Derived { sample, .. } => unless(&[(sample.is_some(), "TABLESAMPLE")]),
            _ => ControlFlow::Continue(()),
        }
    }

    fn pre_visit_select(&mut self, select: &Select) -> ControlFlow<Self::Break> {
        let (GroupByExpr::All(modifiers) | GroupByExpr::Expressions(_, modifiers)) = &select.group_by;
        let with = |one: &GroupByWithModifier| modifiers.contains(one);
        unless(&[
            (with(&GroupByWithModifier::Rollup), "GROUP BY … WITH ROLLUP"),
            (with(&GroupByWithModifier::Cube), "GROUP BY … WITH CUBE"),
            (with(&GroupByWithModifier::Totals), "GROUP BY … WITH TOTALS"),
            (!modifiers.is_empty(), "what follows the columns of GROUP BY"),
            (select.prewhere.is_some(), "PREWHERE"),
            (!select.connect_by.is_empty(), "CONNECT BY"),
            (select.value_table_mode.is_some(), "SELECT AS VALUE or AS STRUCT"),
            (select.select_modifiers.is_some(), "a modifier of SELECT"),
        ])
    }

    fn pre_visit_query(&mut self, query: &Query) -> ControlFlow<Self::Break> {
        unless(&[
            (!query.locks.is_empty(), "FOR UPDATE or FOR SHARE"),
            (query.for_clause.is_some(), "FOR at the end of a query"),
            (query.settings.is_some(), "SETTINGS"),
            (query.format_clause.is_some(), "FORMAT"),
        ])
    }
}
