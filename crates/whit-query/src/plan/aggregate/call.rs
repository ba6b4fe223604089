//! An aggregate as a question asks for it.

use super::Aggregate;
use crate::error::{QueryError, planning};
use crate::evaluate::words::one_of;
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
        let ordered = call.params.order_by.iter().map(|sort| &sort.expr);
        let argument = call.params.args.iter().chain(ordered).find(|arg| !matches!(arg, Expr::Literal(..)));
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
        if params.args.len() > 1 && !aggregate.is_some_and(|aggregate| aggregate.has_parameters(self.name())) {
            return Err(self.refused("it has more than one argument"));
        }
        if params.distinct && !aggregate.is_some_and(Aggregate::distinct) {
            return Err(
                self.refused("DISTINCT counts a value once over all users, so one user may change what others add")
            );
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

    /// Why it cannot be had.
    pub(super) fn refused(&self, why: &str) -> QueryError {
        QueryError::asked(format!("`{}` cannot be made private: {why}", self.title), "ask it differently")
    }
}

/// An aggregate that can be computed of public columns, or not at all.
pub(super) fn no_private_form(name: &str) -> QueryError {
    let hint = format!("use {}", one_of(super::suggested().into_iter()));
    QueryError::asked(format!("`{name}` has no private form here"), hint)
}

/// An aggregate as a question would write it.
fn title(call: &AggregateFunction) -> String {
    let (name, params) = (call.func.name(), &call.params);
    let ordered = params.order_by.iter().map(|sort| &sort.expr);
    let arguments: Vec<String> = params.args.iter().chain(ordered).map(track::said).collect();
    let all = name == "count" && params.args.iter().all(|arg| matches!(arg, Expr::Literal(..)));
    let inside = if all { "*".to_owned() } else { arguments.join(", ") };
    let filter = params.filter.as_ref().map_or_else(String::new, |filter| format!(" where {}", track::said(filter)));
    format!("{}({}{inside}){filter}", name.to_uppercase(), if params.distinct { "DISTINCT " } else { "" })
}
