//! Clauses that the engine reads and does not heed: a question with one of them would be answered as another.

use crate::error::QueryError;
use datafusion::sql::parser::Statement as Parsed;
use datafusion::sql::sqlparser::ast::{
    CharacterLength, DataType, Expr, GroupByExpr, GroupByWithModifier, Query, Select, Statement, TableFactor, Visit,
    Visitor,
};
use std::ops::ControlFlow;

/// Whether all that a question says is heeded. What is no statement of SQL is refused elsewhere.
pub(super) fn all(statement: &Parsed) -> Result<(), QueryError> {
    let Parsed::Statement(statement) = statement else { return Ok(()) };
    let statement: &Statement = statement;
    match statement.visit(&mut Unheeded) {
        ControlFlow::Continue(()) => Ok(()),
        ControlFlow::Break(fault) => Err(*fault),
    }
}

/// Finds the first clause that is not heeded.
struct Unheeded;

type Heeded = ControlFlow<Box<QueryError>>;

fn unless(clauses: &[(bool, &'static str)]) -> Heeded {
    match clauses.iter().find(|(stands, _)| *stands) {
        Some((_, clause)) => unheeded(clause, "leave it out".to_owned()),
        None => ControlFlow::Continue(()),
    }
}

fn unheeded(clause: &str, hint: String) -> Heeded {
    let sentence = format!("{clause} would not be heeded, so the answer would be that of another question");
    ControlFlow::Break(Box::new(QueryError::asked(sentence, hint)))
}

/// To how many letters a type would cut a text, where it says so.
fn cut_to(kind: &DataType) -> Option<u64> {
    match kind {
        DataType::Varchar(Some(CharacterLength::IntegerLength { length, .. }))
        | DataType::Char(Some(CharacterLength::IntegerLength { length, .. }))
        | DataType::Character(Some(CharacterLength::IntegerLength { length, .. }))
        | DataType::CharVarying(Some(CharacterLength::IntegerLength { length, .. }))
        | DataType::CharacterVarying(Some(CharacterLength::IntegerLength { length, .. })) => Some(*length),
        _ => None,
    }
}

/// The words after the columns of GROUP BY, as they are written here: in front of them.
fn modified(keys: &[Expr], modifiers: &[GroupByWithModifier]) -> Heeded {
    let Some(modifier) = modifiers.first() else { return ControlFlow::Continue(()) };
    let keys = keys.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
    let (clause, instead) = match modifier {
        GroupByWithModifier::Rollup => ("GROUP BY … WITH ROLLUP", format!("ROLLUP({keys})")),
        GroupByWithModifier::Cube => ("GROUP BY … WITH CUBE", format!("CUBE({keys})")),
        GroupByWithModifier::Totals => ("GROUP BY … WITH TOTALS", format!("GROUPING SETS (({keys}), ())")),
        _ => return unheeded("what follows the columns of GROUP BY", "leave it out".to_owned()),
    };
    unheeded(clause, format!("write GROUP BY {instead}"))
}

impl Visitor for Unheeded {
    type Break = Box<QueryError>;

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
        match &select.group_by {
            GroupByExpr::All(modifiers) => modified(&[], modifiers)?,
            GroupByExpr::Expressions(keys, modifiers) => modified(keys, modifiers)?,
        }
        unless(&[
            (select.prewhere.is_some(), "PREWHERE"),
            (!select.connect_by.is_empty(), "CONNECT BY"),
            (select.value_table_mode.is_some(), "SELECT AS VALUE or AS STRUCT"),
            (select.select_modifiers.is_some(), "a modifier of SELECT"),
        ])
    }

    fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<Self::Break> {
        if let Expr::Cast { expr: of, data_type, .. } = expr
            && let Some(letters) = cut_to(data_type)
        {
            let clause = format!("the length of {data_type}");
            return unheeded(&clause, format!("write left({of}, {letters})"));
        }
        let Expr::Interval(span) = expr else { return ControlFlow::Continue(()) };
        let number = span.value.to_string();
        let number = number.trim_matches('\'');
        if span.leading_field.is_some() || number.trim().parse::<f64>().is_err() {
            return ControlFlow::Continue(());
        }
        let fault = QueryError::asked(
            format!("INTERVAL {number} says no unit: {number} of what?"),
            format!("write INTERVAL '{} days', or hours, or months", number.trim()),
        );
        ControlFlow::Break(Box::new(fault))
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
