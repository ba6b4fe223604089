//! Functions of other engines that are one of ours under another name.

use datafusion::sql::parser::Statement as Parsed;
use datafusion::sql::sqlparser::ast::{
    Expr, Function, FunctionArg, FunctionArgExpr, FunctionArguments, Ident, ObjectName, ObjectNamePart, Value,
    VisitMut, VisitorMut,
};
use std::ops::ControlFlow;

/// The same question in our words.
pub(super) fn translated(statement: &mut Parsed) {
    if let Parsed::Statement(statement) = statement {
        let ControlFlow::Continue(()) = statement.visit(&mut Translator);
    }
}

struct Translator;

impl VisitorMut for Translator {
    type Break = std::convert::Infallible;

    fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<Self::Break> {
        if let Expr::Function(call) = expr {
            strftime(call);
        }
        ControlFlow::Continue(())
    }
}

/// `strftime('%Y', t)`, or the other way round, is `to_char(t, '%Y')`.
fn strftime(call: &mut Function) {
    let [ObjectNamePart::Identifier(name)] = call.name.0.as_slice() else { return };
    let FunctionArguments::List(list) = &mut call.args else { return };
    if !name.value.eq_ignore_ascii_case("strftime") || list.args.len() != 2 {
        return;
    }
    if is_text(&list.args[0]) {
        list.args.swap(0, 1);
    }
    call.name = ObjectName(vec![ObjectNamePart::Identifier(Ident::new("to_char"))]);
}

fn is_text(argument: &FunctionArg) -> bool {
    let FunctionArg::Unnamed(FunctionArgExpr::Expr(Expr::Value(value))) = argument else { return false };
    matches!(value.value, Value::SingleQuotedString(_))
}

#[cfg(test)]
mod tests {
    use super::*;
    use datafusion::sql::parser::DFParser;

    #[test]
    fn strftime_is_to_char_whichever_argument_stands_first() {
        for (sql, ours) in [
            ("SELECT strftime('%Y', t) FROM v", "SELECT to_char(t, '%Y') FROM v"),
            ("SELECT a FROM v WHERE STRFTIME(t, '%Y') = '1'", "SELECT a FROM v WHERE to_char(t, '%Y') = '1'"),
            ("SELECT strftime('%Y') FROM v", "SELECT strftime('%Y') FROM v"),
            ("SELECT \"Strf\"('%Y', t) FROM v", "SELECT \"Strf\"('%Y', t) FROM v"),
        ] {
            let mut statement = DFParser::parse_sql(sql).unwrap().pop_front().unwrap();
            translated(&mut statement);
            assert_eq!(statement.to_string(), ours);
        }
    }
}
