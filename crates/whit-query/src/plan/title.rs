//! What the columns of an answer are called: as the question wrote them, and two alike if it wrote them so.

use datafusion::sql::parser::Statement as Parsed;
use datafusion::sql::sqlparser::ast::{Expr, Ident, Query, Select, SelectItem, SetExpr, Statement};
use datafusion::sql::sqlparser::dialect::GenericDialect;
use datafusion::sql::sqlparser::parser::Parser;
use std::collections::BTreeSet;

/// Stands between a name and a number where the engine must not see two columns of one name. Nobody types it.
const AGAIN: char = '\u{1f}';

/// A name as it is shown.
pub(crate) fn shown(name: &str) -> &str {
    name.split(AGAIN).next().unwrap_or(name)
}

/// Gives columns of the outermost SELECT that have one name each a name of its own, which [`shown`] undoes. Groups of SELECT DISTINCT stay as they are.
pub(super) fn apart(statement: &mut Parsed) {
    if let Parsed::Statement(statement) = statement
        && let Statement::Query(query) = statement.as_mut()
    {
        branches(&mut query.body);
    }
}

fn branches(body: &mut SetExpr) {
    match body {
        SetExpr::Select(select) if select.distinct.is_none() => select_apart(select),
        SetExpr::SetOperation { left, right, .. } => {
            branches(left);
            branches(right);
        }
        SetExpr::Query(query) => branches(&mut query.body),
        _ => {}
    }
}

fn select_apart(select: &mut Select) {
    let mut met = BTreeSet::new();
    for (i, item) in select.projection.iter_mut().enumerate() {
        let (path, name) = match &*item {
            SelectItem::ExprWithAlias { alias, .. } => (normal(alias), alias.value.clone()),
            SelectItem::UnnamedExpr(Expr::Identifier(name)) => (normal(name), name.value.clone()),
            SelectItem::UnnamedExpr(Expr::CompoundIdentifier(path)) => {
                let whole: Vec<String> = path.iter().map(normal).collect();
                (whole.join("."), path.last().map_or_else(String::new, |name| name.value.clone()))
            }
            SelectItem::UnnamedExpr(expr) => (expr.to_string().to_lowercase(), expr.to_string()),
            _ => continue,
        };
        if met.insert(path) {
            continue;
        }
        let own = Ident::with_quote('"', format!("{name}{AGAIN}{i}"));
        match item {
            SelectItem::ExprWithAlias { alias, .. } => *alias = own,
            SelectItem::UnnamedExpr(expr) => *item = SelectItem::ExprWithAlias { expr: expr.clone(), alias: own },
            _ => {}
        }
    }
}

/// A name as the engine compares it.
fn normal(name: &Ident) -> String {
    if name.quote_style.is_some() { name.value.clone() } else { name.value.to_lowercase() }
}

/// For each column of a question what it wrote where it gave no name; nothing for one with a name, and no list where columns cannot be counted.
pub(crate) fn written(sql: &str) -> Vec<Option<String>> {
    let Ok(statements) = Parser::parse_sql(&GenericDialect {}, sql) else { return Vec::new() };
    let [Statement::Query(query)] = statements.as_slice() else { return Vec::new() };
    let Some(select) = first(query) else { return Vec::new() };
    let text = |item: &SelectItem| match item {
        SelectItem::ExprWithAlias { .. }
        | SelectItem::UnnamedExpr(Expr::Identifier(_) | Expr::CompoundIdentifier(_)) => Some(None),
        SelectItem::UnnamedExpr(expr) => Some(Some(expr.to_string())),
        _ => None,
    };
    select.projection.iter().map(text).collect::<Option<Vec<_>>>().unwrap_or_default()
}

/// The SELECT by which the columns of a question are called.
fn first(query: &Query) -> Option<&Select> {
    let mut body = query.body.as_ref();
    loop {
        match body {
            SetExpr::Select(select) => return Some(select),
            SetExpr::SetOperation { left, .. } => body = left,
            SetExpr::Query(query) => body = query.body.as_ref(),
            _ => return None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_has_no_name_is_called_as_it_was_written() {
        let texts = |sql: &str| written(sql).into_iter().map(Option::unwrap_or_default).collect::<Vec<_>>();
        assert_eq!(texts("SELECT a, t.b, count(*) * 2, SUM(x) AS s FROM t"), ["", "", "count(*) * 2", ""]);
        assert_eq!(texts("(SELECT 1 + 1) UNION ALL SELECT 2"), ["1 + 1"]);
        assert!(written("SELECT *, 1 FROM t").is_empty() && written("SELEC").is_empty());
    }

    #[test]
    fn two_columns_of_one_name_are_kept_apart() {
        let apart = |sql: &str| {
            let mut statement = datafusion::sql::parser::DFParser::parse_sql(sql).unwrap().pop_front().unwrap();
            super::apart(&mut statement);
            statement.to_string().replace(AGAIN, "#")
        };
        assert_eq!(
            apart("SELECT a, b AS A, count(*), COUNT(*) FROM t"),
            "SELECT a, b AS \"A#1\", count(*), COUNT(*) AS \"COUNT(*)#3\" FROM t"
        );
        assert_eq!(apart("SELECT a.x, b.x, \"n\", \"N\" FROM t"), "SELECT a.x, b.x, \"n\", \"N\" FROM t");
        assert_eq!(apart("SELECT DISTINCT a, a FROM t"), "SELECT DISTINCT a, a FROM t");
        assert_eq!(shown("n\u{1f}3"), "n");
    }
}
