//! Names as they are declared, however a question spells them: `AGE`, `Age` and `age` are one column, as in other engines. What stands in quotes is taken as it is.

use datafusion::arrow::datatypes::Schema;
use datafusion::common::{DFSchema, DataFusionError};
use datafusion::execution::SessionState;
use datafusion::logical_expr::Expr;
use datafusion::sql::parser::Statement as Parsed;
use datafusion::sql::sqlparser::ast::{
    Expr as Written, Ident, JoinConstraint, JoinOperator, ObjectName, ObjectNamePart, Query, Select, SelectItem,
    SelectItemQualifiedWildcardKind, Statement, TableAlias, TableFactor, TableWithJoins, VisitMut, VisitorMut,
};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;

/// Names, by what they are in lower case.
#[derive(Debug, Default, Clone)]
struct Names(BTreeMap<String, BTreeSet<String>>);

impl Names {
    fn add(&mut self, name: &str) {
        self.0.entry(name.to_lowercase()).or_default().insert(name.to_owned());
    }

    fn add_all(&mut self, names: &[&str]) {
        for name in names {
            self.add(name);
        }
    }

    /// How a name of SQL is declared; nothing where it is not, and where several differ by case alone and none is spelled as here or in lower case, which a name without quotes means.
    fn declared(&self, name: &str) -> Option<&str> {
        let lower = name.to_lowercase();
        self.only(name).or_else(|| self.0.get(&lower)?.get(&lower).map(String::as_str))
    }

    /// How a name is declared that is spelled so, or is the only one but for its case.
    fn only(&self, name: &str) -> Option<&str> {
        let spelled = self.0.get(&name.to_lowercase())?;
        let one = if spelled.len() == 1 { spelled.first() } else { None };
        spelled.get(name).or(one).map(String::as_str)
    }
}

/// The one of these names that is spelled so, or is the only one but for its case.
pub(crate) fn called<'a>(names: impl IntoIterator<Item = &'a str>, name: &str) -> Option<String> {
    let mut known = Names::default();
    names.into_iter().for_each(|name| known.add(name));
    known.only(name).map(str::to_owned)
}

/// How a column is declared that somebody calls so, wherever that is no SQL; the name itself where nobody declared it, or several differ by case alone.
pub(crate) fn column_called(schema: &Schema, name: &str) -> String {
    called(schema.fields().iter().map(|field| field.name().as_str()), name).unwrap_or_else(|| name.to_owned())
}

/// How the names of a question are declared.
///
/// A name without quotes becomes the same spelling wherever it stands, as an alias too, so that what refers to one another still does.
#[derive(Debug, Default, Clone)]
pub(crate) struct Spelling {
    /// Tables, and the columns of those that the question names.
    all: Names,
    /// What the question calls a table, in lower case, and the columns of that one.
    called: BTreeMap<String, Names>,
}

impl Spelling {
    pub(crate) fn of<'a>(names: impl IntoIterator<Item = &'a str>) -> Self {
        let mut spelling = Self::default();
        spelling.all.add_all(&names.into_iter().collect::<Vec<_>>());
        spelling
    }

    /// The spelling of a question over declared tables, which stand with their columns.
    pub(crate) fn over<'a>(statement: &mut Parsed, tables: impl IntoIterator<Item = (&'a str, Vec<&'a str>)>) -> Self {
        let (mut spelling, named) = (Self::default(), Called::by(statement));
        for (table, columns) in tables {
            spelling.all.add(table);
            let calls = named.0.iter().filter(|(_, tables)| tables.contains(&table.to_lowercase()));
            for (call, tables) in calls {
                spelling.all.add_all(&columns);
                // One name for two tables, in different sub-queries, says of neither what its columns are.
                if tables.len() == 1 {
                    spelling.called.entry(call.clone()).or_default().add_all(&columns);
                }
            }
        }
        spelling
    }

    fn name(&self, name: &mut Ident) {
        spell(name, &self.all);
    }

    /// A column with what stands before it.
    fn column(&self, path: &mut [Ident]) {
        let own = match path {
            [.., table, column] if column.quote_style.is_none() => self.called.get(&table.value.to_lowercase()),
            _ => None,
        };
        if let (Some(own), Some(column)) = (own, path.last_mut()) {
            spell(column, own);
        }
        for name in path {
            self.name(name);
        }
    }

    fn path(&self, path: &mut ObjectName) {
        for part in &mut path.0 {
            if let ObjectNamePart::Identifier(name) = part {
                self.name(name);
            }
        }
    }

    fn alias(&self, alias: &mut TableAlias) {
        self.name(&mut alias.name);
        for column in &mut alias.columns {
            self.name(&mut column.name);
        }
    }

    fn joined(&self, table: &mut TableWithJoins) {
        for join in &mut table.joins {
            if let Some(JoinConstraint::Using(columns)) = constraint(&mut join.join_operator) {
                for column in columns {
                    self.path(column);
                }
            }
        }
    }

    /// A question with its names as they are declared.
    pub(crate) fn question(&mut self, statement: &mut Parsed) {
        if let Parsed::Statement(statement) = statement {
            let statement: &mut Statement = statement;
            let _ = statement.visit(self);
        }
    }

    /// Reads an expression over declared columns.
    pub(crate) fn expression(state: &SessionState, sql: &str, schema: &DFSchema) -> Result<Expr, DataFusionError> {
        // A column as it is called, spaces and all, needs no quotes where it stands alone.
        if let Some(column) = schema.iter().find(|(_, field)| field.name() == sql) {
            return Ok(Expr::from(column));
        }
        let mut written = state.sql_to_expr_with_alias(sql, &state.config().options().sql_parser.dialect)?;
        let _ = written.expr.visit(&mut Self::of(schema.fields().iter().map(|field| field.name().as_str())));
        state.create_logical_expr_from_sql_expr(written, schema)
    }
}

/// What a join says of the columns that it goes by.
fn constraint(join: &mut JoinOperator) -> Option<&mut JoinConstraint> {
    match join {
        JoinOperator::Join(constraint)
        | JoinOperator::Inner(constraint)
        | JoinOperator::Left(constraint)
        | JoinOperator::LeftOuter(constraint)
        | JoinOperator::Right(constraint)
        | JoinOperator::RightOuter(constraint)
        | JoinOperator::FullOuter(constraint)
        | JoinOperator::CrossJoin(constraint)
        | JoinOperator::Semi(constraint)
        | JoinOperator::LeftSemi(constraint)
        | JoinOperator::RightSemi(constraint)
        | JoinOperator::Anti(constraint)
        | JoinOperator::LeftAnti(constraint)
        | JoinOperator::RightAnti(constraint) => Some(constraint),
        _ => None,
    }
}

/// Writes a name without quotes as it is declared.
fn spell(name: &mut Ident, names: &Names) {
    if name.quote_style.is_none()
        && let Some(declared) = names.declared(&name.value)
    {
        name.value = declared.to_owned();
        // The engine turns whatever has no quotes into lower case.
        name.quote_style = Some('"');
    }
}

/// What a question calls tables, and which ones, all in lower case.
struct Called(BTreeMap<String, BTreeSet<String>>);

impl Called {
    fn by(statement: &mut Parsed) -> Self {
        let mut called = Self(BTreeMap::new());
        if let Parsed::Statement(statement) = statement {
            let statement: &mut Statement = statement;
            let _ = statement.visit(&mut called);
        }
        called
    }
}

impl VisitorMut for Called {
    type Break = ();

    fn pre_visit_table_factor(&mut self, table: &mut TableFactor) -> ControlFlow<()> {
        if let TableFactor::Table { name, alias, .. } = table
            && let Some(name) = name.0.last().and_then(ObjectNamePart::as_ident)
        {
            let call = alias.as_ref().map_or(name, |alias| &alias.name);
            self.0.entry(call.value.to_lowercase()).or_default().insert(name.value.to_lowercase());
        }
        ControlFlow::Continue(())
    }
}

impl VisitorMut for Spelling {
    type Break = ();

    fn pre_visit_relation(&mut self, table: &mut ObjectName) -> ControlFlow<()> {
        self.path(table);
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, expr: &mut Written) -> ControlFlow<()> {
        match expr {
            Written::Identifier(name) => self.name(name),
            Written::CompoundIdentifier(path) => self.column(path),
            _ => {}
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<()> {
        for table in query.with.iter_mut().flat_map(|with| &mut with.cte_tables) {
            self.alias(&mut table.alias);
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_select(&mut self, select: &mut Select) -> ControlFlow<()> {
        for item in &mut select.projection {
            match item {
                SelectItem::ExprWithAlias { alias, .. } => self.name(alias),
                SelectItem::QualifiedWildcard(SelectItemQualifiedWildcardKind::ObjectName(table), _) => {
                    self.path(table);
                }
                _ => {}
            }
        }
        select.from.iter_mut().for_each(|table| self.joined(table));
        ControlFlow::Continue(())
    }

    fn pre_visit_table_factor(&mut self, table: &mut TableFactor) -> ControlFlow<()> {
        match table {
            TableFactor::Table { alias, .. }
            | TableFactor::Derived { alias, .. }
            | TableFactor::TableFunction { alias, .. }
            | TableFactor::Function { alias, .. } => {
                if let Some(alias) = alias {
                    self.alias(alias);
                }
            }
            TableFactor::NestedJoin { table_with_joins, alias } => {
                self.joined(table_with_joins);
                if let Some(alias) = alias {
                    self.alias(alias);
                }
            }
            _ => {}
        }
        ControlFlow::Continue(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use datafusion::prelude::SessionContext;

    fn spelled(names: &[&str], sql: &str) -> String {
        let state = SessionContext::new().state();
        let mut statement = state.sql_to_statement(sql, &state.config().options().sql_parser.dialect).unwrap();
        Spelling::of(names.iter().copied()).question(&mut statement);
        statement.to_string()
    }

    #[test]
    fn names_are_spelled_as_they_are_declared() {
        let names = ["Visits", "UserID", "Age", "day"];
        assert_eq!(
            spelled(&names, "SELECT AGE, count(userid) FROM visits v WHERE V.age > 3 GROUP BY age ORDER BY Age"),
            r#"SELECT "Age", count("UserID") FROM "Visits" v WHERE V."Age" > 3 GROUP BY "Age" ORDER BY "Age""#
        );
        // What stands in quotes is what it is, a function is no column, and what nobody declared stays.
        assert_eq!(
            spelled(&names, r#"SELECT "age", day(DAY), other FROM visits"#),
            r#"SELECT "age", day("day"), other FROM "Visits""#
        );
    }

    #[test]
    fn what_refers_to_one_another_still_does() {
        let names = ["t", "Id", "Amount"];
        assert_eq!(
            spelled(
                &names,
                "WITH amount AS (SELECT id, sum(AMOUNT) AS amount FROM t GROUP BY ID) SELECT max(amount.amount) FROM Amount"
            ),
            r#"WITH "Amount" AS (SELECT "Id", sum("Amount") AS "Amount" FROM "t" GROUP BY "Id") SELECT max("Amount"."Amount") FROM "Amount""#
        );
        assert_eq!(
            spelled(&names, "SELECT T.* FROM t JOIN (SELECT id FROM t) AS u (ID) USING (id)"),
            r#"SELECT "t".* FROM "t" JOIN (SELECT "Id" FROM "t") AS u ("Id") USING("Id")"#
        );
    }

    #[test]
    fn a_column_outside_of_sql_is_found_where_only_one_can_be_meant() {
        use datafusion::arrow::datatypes::{DataType, Field};
        let schema = |names: &[&str]| {
            Schema::new(names.iter().map(|name| Field::new(*name, DataType::Int64, true)).collect::<Vec<_>>())
        };
        let (one, two) = (schema(&["Shop", "day"]), schema(&["Shop", "SHOP"]));
        for (schema, name, found) in [
            (&one, "SHOP", "Shop"),
            (&one, "Day", "day"),
            (&one, "shp", "shp"),
            (&two, "shop", "shop"),
            (&two, "SHOP", "SHOP"),
            // Which of two, nobody said.
            (&two, "sHop", "sHop"),
        ] {
            assert_eq!(column_called(schema, name), found);
        }
    }

    #[test]
    fn a_column_is_that_of_the_table_before_it() {
        let state = SessionContext::new().state();
        let sql = "SELECT count(*) FROM Orders o JOIN visits ON o.userid = VISITS.UserId WHERE userid > 3";
        let mut statement = state.sql_to_statement(sql, &state.config().options().sql_parser.dialect).unwrap();
        let tables = [("orders", vec!["UserID"]), ("visits", vec!["userid"]), ("other", vec!["USERID"])];
        Spelling::over(&mut statement, tables).question(&mut statement);
        assert_eq!(
            statement.to_string(),
            r#"SELECT count(*) FROM "orders" o JOIN "visits" ON o."UserID" = "visits"."userid" WHERE "userid" > 3"#
        );
    }

    #[test]
    fn names_that_differ_by_case_alone_are_told_apart_by_their_spelling() {
        let names = ["a", "A", "Bc", "BC"];
        assert_eq!(spelled(&names, "SELECT A, a, Bc, BC, bc"), r#"SELECT "A", "a", "Bc", "BC", bc"#);
    }
}
