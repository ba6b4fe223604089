//! An aggregate as a question asks for it.

use super::Aggregate;
use crate::error::{QueryError, planning};
use crate::evaluate::words::{one_of, written};
use crate::plan::track::{self, Surroundings, aggregate_call, safe_value};
use datafusion::logical_expr::expr::{AggregateFunction, AggregateFunctionParams};
use datafusion::logical_expr::{Expr, when};

/// One call of an aggregate.
pub(crate) struct Asked<'a> {
    /// The whole expression, with its name.
    pub(super) expr: &'a Expr,
    pub(super) call: &'a AggregateFunction,
    /// As a question would write it.
    pub(super) title: String,
    /// What it is of: the first that is no constant.
    pub(super) argument: Option<&'a Expr>,
    /// Which rows count, made safe.
    pub(super) filter: Option<Expr>,
}

impl<'a> Asked<'a> {
    /// Reads a call.
    pub(super) fn of(expr: &'a Expr) -> Result<Self, QueryError> {
        let call = aggregate_call(expr)?;
        // What WITHIN GROUP is ordered by stands among the arguments already, and any other order changes nothing of what is released.
        let argument = call.params.args.iter().find(|arg| !matches!(arg, Expr::Literal(..)));
        Ok(Self { expr, call, title: title(call), argument, filter: None })
    }

    /// Refuses what no aggregate can be asked for, and makes the filter safe.
    pub(super) fn checked(
        self,
        aggregate: Option<&dyn Aggregate>,
        around: &Surroundings<'_>,
    ) -> Result<Self, QueryError> {
        let params = self.params();
        let filter = params.filter.as_ref().map(|filter| safe_value(filter, around)).transpose()?;
        let Some(aggregate) = aggregate else { return Err(no_private_form(self.name())) };
        if params.args.len() > 1 && !aggregate.has_parameters(self.name()) {
            let refused = self.refused("it has more than one argument");
            let of_all = params.args.iter().map(written).collect::<Vec<_>>().join(", ");
            let hint = format!("write COUNT(DISTINCT concat_ws('|', {of_all}))");
            return Err(if params.distinct { QueryError { hint: Some(hint), ..refused } } else { refused });
        }
        if params.distinct && !aggregate.distinct() {
            let refused =
                self.refused("DISTINCT counts a value once over all users, so one user may change what others add");
            let (name, of) = (self.name().to_uppercase(), written(self.value()?));
            let hint = format!(
                "SELECT {name}({of}) FROM (SELECT DISTINCT {of} FROM …) is that of the values that enough units have"
            );
            return Err(QueryError { hint: Some(hint), ..refused });
        }
        if params.args.iter().any(|arg| matches!(arg, Expr::Literal(value, _) if value.is_null())) {
            return Err(self.refused("its argument is always missing"));
        }
        Ok(Self { filter, ..self })
    }

    /// What it is of; of a constant, that.
    pub(super) fn value(&self) -> Result<&'a Expr, QueryError> {
        self.argument.or_else(|| self.params().args.first()).ok_or_else(|| self.refused("it has no argument"))
    }

    /// The function's name.
    pub(super) fn name(&self) -> &str {
        self.call.func.name()
    }

    pub(super) fn params(&self) -> &'a AggregateFunctionParams {
        &self.call.params
    }

    /// A value where the filter holds, and nothing elsewhere.
    pub(super) fn conditional(&self, value: Expr) -> Result<Expr, QueryError> {
        match &self.filter {
            None => Ok(value),
            Some(filter) => when(filter.clone(), value).end().map_err(|error| planning(&error)),
        }
    }

    /// Why it is not asked of rows: what it is of has one value, wherever it has one.
    pub(super) fn always(&self, argument: &Expr, value: f64) -> QueryError {
        let (title, said) = (&self.title, track::said(argument));
        let why = if said == value.to_string() {
            format!("`{said}` is a constant")
        } else {
            format!("`{said}` is always {value}")
        };
        QueryError::asked(
            format!("`{title}` says nothing of the rows: {why}"),
            "write its value where you need it, and COUNT(*) to ask how many rows there are",
        )
    }

    /// Why it cannot be had.
    pub(super) fn refused(&self, why: &str) -> QueryError {
        let hint = if why.contains("a share between 0 and 1") {
            "write the share out: APPROX_PERCENTILE_CONT(x, 0.9)"
        } else if why.contains("more than one argument") {
            "count one thing, or several as one: COUNT(DISTINCT concat_ws('|', a, b))"
        } else {
            "ask it differently"
        };
        QueryError::asked(format!("`{}` cannot be made private: {why}", self.title), hint)
    }
}

/// An aggregate that can be computed of public columns, or not at all.
pub(super) fn no_private_form(name: &str) -> QueryError {
    let hint = match name.to_lowercase().as_str() {
        "bool_and" | "bool_or" | "every" => "count the rows where it is true: COUNT(*) FILTER (WHERE …)".to_owned(),
        "any_value" | "first_value" | "last_value" | "nth_value" => "use MIN, MAX or MEDIAN of a number".to_owned(),
        "array_agg" | "string_agg" => {
            "COUNT(*) by it, with GROUP BY, names the values that enough units have".to_owned()
        }
        _ => format!("use {}", one_of(super::suggested().into_iter())),
    };
    QueryError::asked(format!("`{name}` has no private form here"), hint)
}

/// An aggregate as a question would write it.
fn title(call: &AggregateFunction) -> String {
    let (name, params) = (call.func.name(), &call.params);
    let downwards = call.func.supports_within_group_clause() && params.order_by.first().is_some_and(|sort| !sort.asc);
    let mut arguments: Vec<String> = params.args.iter().map(track::said).collect();
    if let Some(first) = arguments.first_mut().filter(|_| downwards) {
        first.push_str(" DESC");
    }
    let all = name == "count" && params.args.iter().all(|arg| matches!(arg, Expr::Literal(..)));
    let inside = if all { "*".to_owned() } else { arguments.join(", ") };
    let filter = params.filter.as_ref().map_or_else(String::new, |filter| format!(" where {}", track::said(filter)));
    format!("{}({}{inside}){filter}", name.to_uppercase(), if params.distinct { "DISTINCT " } else { "" })
}
