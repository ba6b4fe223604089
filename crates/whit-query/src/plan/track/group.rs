//! Aggregates and windows that stay within a user, and what of a row's unit is left after them.

use super::{Lost, Private, Surroundings, Tag, Tracked, built, never, safe, safe_value, track, type_of, without};
use crate::error::{QueryError, planning};
use crate::evaluate::allow;
use crate::evaluate::mean::mean;
use crate::evaluate::number::number;
use crate::evaluate::words::one_of;
use crate::plan::range::{self, Range};
use crate::plan::{ELEMENT, USER};
use datafusion::common::Column;
use datafusion::logical_expr::expr::{AggregateFunction, WindowFunction};
use datafusion::logical_expr::{
    Aggregate, Expr, LogicalPlan, LogicalPlanBuilder, Window, WindowFrame, WindowFrameBound, WindowFrameUnits,
    WindowFunctionDefinition,
};
use std::collections::BTreeSet;
use std::sync::Arc;
use whit_core::declare::Owning;

/// Whether some of these expressions is a key that says whose rows are: then those of one key are one user's, and grouping by the user too changes nothing but where several
/// users have rows of one key, each of whom has a group of their own.
fn has_owner_key(exprs: &[Expr], input: &Tracked, around: &Surroundings<'_>) -> bool {
    let declared = around.declaration;
    let owning = || declared.datasets.values().filter_map(|dataset| Some((&dataset.name, declared.owning(dataset)?)));
    exprs.iter().filter_map(|expr| input.tag_of(expr, around).origin).any(|(table, column)| {
        owning().any(|(name, owning)| match owning {
            Owning::LookedUp { column: own, table: other, key } => {
                (*name == table && own == column) || (other == table && key == column)
            }
            Owning::Column(_) => false,
        })
    })
}

/// The one column that rows are grouped by, beside the user, where there is one and it was taken unchanged.
fn grouped_by(exprs: &[Expr], input: &Tracked, around: &Surroundings<'_>) -> BTreeSet<(String, String)> {
    let mut others = exprs.iter().map(|expr| input.tag_of(expr, around)).filter(|tag| !tag.user);
    match (others.next(), others.next()) {
        (Some(tag), None) => tag.origin.into_iter().collect(),
        _ => BTreeSet::new(),
    }
}

/// Whether some of these expressions are the user, and the element.
fn covers(exprs: &[Expr], input: &Tracked, around: &Surroundings<'_>) -> (bool, bool) {
    let tags: Vec<Tag> = exprs.iter().map(|expr| input.tag_of(expr, around)).collect();
    (tags.iter().any(|tag| tag.user), tags.iter().any(|tag| tag.element))
}

pub(super) fn group(aggregate: &Aggregate, around: &Surroundings<'_>) -> Result<Tracked, Lost> {
    let input = track(&aggregate.input, around)?;
    let Some(private) = input.private.clone() else {
        let mut tags: Vec<Tag> = aggregate.group_expr.iter().map(|expr| input.tag_of(expr, around)).collect();
        tags.resize(aggregate.schema.fields().len(), Tag { public: true, known: true, ..Tag::default() });
        return Ok(Tracked { plan: LogicalPlan::Aggregate(aggregate.clone()), tags, private: None });
    };
    let (user, element) = covers(&aggregate.group_expr, &input, around);
    if !private.user || !(user || has_owner_key(&aggregate.group_expr, &input, around)) {
        return Err(Lost::Mixed);
    }
    if matches!(aggregate.group_expr.as_slice(), [Expr::GroupingSet(_)]) {
        return never(
            "GROUPING SETS, ROLLUP and CUBE are not known to keep the unit",
            "write one query for each grouping",
        );
    }
    let keeps_element = private.element && element;
    let mut groups = aggregate.group_expr.iter().map(|expr| safe(expr, around)).collect::<Result<Vec<_>, _>>()?;
    let mut tags: Vec<Tag> = aggregate.group_expr.iter().map(|expr| input.tag_of(expr, around)).collect();
    for (name, keep) in [(USER, true), (ELEMENT, keeps_element)] {
        if let Some(column) = input.hidden(name).filter(|_| keep) {
            tags.push(input.tag_of(&column, around));
            groups.push(column);
        }
    }
    let mut sums = Vec::new();
    for expr in &aggregate.aggr_expr {
        let call = aggregate_call(expr)?;
        exact_inside(call, &input)?;
        if !around.inside_units.contains(&call.func.name()) || !call.params.order_by.is_empty() {
            return never(
                format!("`{}` inside of a unit depends on the order of rows, or is not known", call.func.name()),
                format!("use {} there", one_of(around.inside_units.iter().map(|name| name.to_uppercase()))),
            );
        }
        sums.push(safe_aggregate(expr, &input, around)?);
        let parts = call.params.args.iter().chain(call.params.filter.iter().map(AsRef::as_ref));
        let args_public = parts.clone().all(|part| input.tag_of(part, around).public);
        let range = inner_range(call.func.name(), &call.params.args, &input);
        let public = private.rows_public && args_public && tags.iter().all(|tag| tag.public);
        tags.push(Tag { public, range, ..Tag::default() });
    }
    // Grouping by the user alone leaves one row of each, and by user and element one of each of those.
    let by = |test: &dyn Fn(&Tag) -> bool| aggregate.group_expr.iter().all(|expr| test(&input.tag_of(expr, around)));
    let (by_user, by_element) = (by(&|tag| tag.user), keeps_element && by(&|tag| tag.user || tag.element));
    let unique = grouped_by(&aggregate.group_expr, &input, around);
    let rows_public = private.rows_public && aggregate.group_expr.iter().all(|expr| input.tag_of(expr, around).public);
    let known = |tag: Tag| if keeps_element { tag } else { Tag { known: tag.user, ..tag } };
    let tags = tags.into_iter().map(known).collect();
    let grouped = Aggregate::try_new(Arc::new(input.plan), groups, sums).map_err(|error| planning(&error))?;
    let plan = LogicalPlan::Aggregate(grouped);
    Ok(Tracked {
        plan,
        tags,
        private: Some(Private {
            element: keeps_element,
            copies: None,
            rows_of_user: by_user.then_some(1),
            rows_of_element: by_element.then_some(1),
            rows_public,
            unique,
            ..private
        }),
    })
}

/// Sums of floats depend on the order in which they are added, and so on how rows of others fall into batches.
fn exact_inside(call: &AggregateFunction, input: &Tracked) -> Result<(), QueryError> {
    let name = call.func.name();
    let Some(argument) = call.params.args.first() else { return Ok(()) };
    let whole = type_of(argument, input)
        .is_ok_and(|kind| kind.is_integer() || kind == datafusion::arrow::datatypes::DataType::Boolean);
    match name {
        "sum" | "avg" if !whole => Err(QueryError::asked(
            format!("`{name}` of fractions inside of a unit depends on the order in which they are added"),
            format!("make them whole first: {name}(CAST({argument} * 1000 AS BIGINT))"),
        )),
        "avg" if call.params.distinct => Err(QueryError::asked(
            "`avg(DISTINCT …)` inside of a unit depends on the order in which values are added",
            "divide a sum by a count: SUM(DISTINCT x) / COUNT(DISTINCT x)",
        )),
        _ => Ok(()),
    }
}

/// The range of an aggregate over one unit's rows, where it follows from that of its argument.
fn inner_range(name: &str, args: &[Expr], input: &Tracked) -> Option<Range> {
    match name {
        "avg" | "min" | "max" | "median" => {
            range::of(args.first()?, &|column| input.tag(column).and_then(|tag| tag.range))
        }
        "bool_and" | "bool_or" => Some(Range::Known { low: 0.0, high: 1.0 }),
        _ => None,
    }
}

/// The aggregate function that an expression calls.
pub(crate) fn aggregate_call(expr: &Expr) -> Result<&AggregateFunction, QueryError> {
    match expr {
        Expr::AggregateFunction(call) => Ok(call),
        Expr::Alias(alias) => aggregate_call(&alias.expr),
        other => Err(QueryError::asked(format!("`{other}` is not an aggregate"), "use an aggregate function there")),
    }
}

/// An expression made safe, whose NaN is missing: sums and extremes with NaN depend on the order of rows.
fn numbers_only(expr: &Expr, input: &Tracked, around: &Surroundings<'_>) -> Result<Expr, QueryError> {
    let safe = safe_value(expr, around)?;
    Ok(if type_of(expr, input)?.is_floating() { number(safe) } else { safe })
}

/// An aggregate with its arguments and its filter made safe, under the name that it had.
fn safe_aggregate(expr: &Expr, input: &Tracked, around: &Surroundings<'_>) -> Result<Expr, QueryError> {
    let name = expr.schema_name().to_string();
    let call = aggregate_call(expr)?;
    let mut call = call.clone();
    call.params.args = call.params.args.iter().map(|arg| numbers_only(arg, input, around)).collect::<Result<_, _>>()?;
    call.params.filter = call.params.filter.map(|filter| safe_value(&filter, around).map(Box::new)).transpose()?;
    if call.func.name() == "avg" {
        let (mean, whole) = mean();
        call.func = Arc::new(mean);
        call.params.args = call.params.args.into_iter().map(whole).collect();
    }
    Ok(Expr::AggregateFunction(call).alias(name))
}

pub(super) fn look_around(window: &Window, around: &Surroundings<'_>) -> Result<Tracked, Lost> {
    let input = track(&window.input, around)?;
    let Some(private) = input.private.clone() else {
        let mut tags = input.tags.clone();
        tags.resize(window.schema.fields().len(), Tag { public: true, known: true, ..Tag::default() });
        return Ok(Tracked { plan: LogicalPlan::Window(window.clone()), tags, private: None });
    };
    let mut keeps_element = private.element;
    let mut windows = Vec::new();
    for expr in &window.window_expr {
        let call = match expr {
            Expr::WindowFunction(call) => call,
            Expr::Alias(alias) => match alias.expr.as_ref() {
                Expr::WindowFunction(call) => call,
                _ => return never(format!("`{expr}` is not a window function"), "use one there"),
            },
            _ => return never(format!("`{expr}` is not a window function"), "use one there"),
        };
        let name = match &call.fun {
            WindowFunctionDefinition::AggregateUDF(function) => function.name().to_owned(),
            WindowFunctionDefinition::WindowUDF(function) => function.name().to_owned(),
        };
        if !allow::window(&name) && !around.inside_units.contains(&name.as_str()) {
            return never(
                format!("the window function `{name}` is not known"),
                "use row_number, rank, lag, lead or an aggregate",
            );
        }
        let (user, element) = covers(&call.params.partition_by, &input, around);
        if !private.user || !(user || has_owner_key(&call.params.partition_by, &input, around)) {
            return never(
                format!("the window of `{name}` reaches over the rows of several users"),
                "add the user column to PARTITION BY",
            );
        }
        keeps_element &= element;
        windows.push(safe_window(expr, call, &name, &input, around)?);
    }
    if private.rows_public {
        return never(
            "window functions over a table whose rows are public would mix what is public with what is not",
            "compute the column beforehand",
        );
    }
    let (tags, width) = (input.tags.clone(), input.plan.schema().fields().len());
    let looked = by_order(windows, input.plan)?;
    // What a window adds depends on all rows of its partition, so a row no longer stands for itself.
    let tags: Vec<Tag> = tags.into_iter().chain(vec![Tag::default(); looked.schema().fields().len() - width]).collect();
    let mut tracked = Tracked {
        plan: looked,
        tags,
        private: Some(Private { element: keeps_element, copies: None, ..private }), // as many rows as before
    };
    if !keeps_element {
        tracked = without(tracked, &[ELEMENT])?;
    }
    Ok(tracked)
}

/// Windows over a relation, those of one order and partition together: the engine takes no others at once.
fn by_order(mut windows: Vec<Expr>, mut plan: LogicalPlan) -> Result<LogicalPlan, QueryError> {
    let order = |expr: &Expr| match expr {
        Expr::Alias(alias) => match alias.expr.as_ref() {
            Expr::WindowFunction(call) => (call.params.partition_by.clone(), call.params.order_by.clone()),
            _ => (Vec::new(), Vec::new()),
        },
        _ => (Vec::new(), Vec::new()),
    };
    let mut columns: Vec<Expr> = plan.schema().iter().map(Expr::from).collect();
    columns.extend(windows.iter().map(|expr| Expr::Column(Column::new_unqualified(expr.schema_name().to_string()))));
    let mut steps = 0;
    while let Some(first) = windows.first() {
        steps += 1;
        let own = order(first);
        let (these, others): (Vec<Expr>, Vec<Expr>) = windows.into_iter().partition(|expr| order(expr) == own);
        let looked = Window::try_new(these, Arc::new(plan)).map_err(|error| planning(&error))?;
        (plan, windows) = (LogicalPlan::Window(looked), others);
    }
    if steps > 1 {
        plan = built(LogicalPlanBuilder::from(plan).project(columns))?; // in the order in which they were asked for
    }
    Ok(plan)
}

/// Whether a frame is given in rows, or has no end but the partition's and the current row, so that a completed order leaves nothing open.
fn by_rows_or_whole(frame: &WindowFrame) -> bool {
    let plain = |bound: &WindowFrameBound| match bound {
        WindowFrameBound::CurrentRow => true,
        WindowFrameBound::Preceding(distance) | WindowFrameBound::Following(distance) => distance.is_null(),
    };
    match frame.units {
        WindowFrameUnits::Rows => true,
        WindowFrameUnits::Range | WindowFrameUnits::Groups => plain(&frame.start_bound) && plain(&frame.end_bound),
    }
}

/// A distance in rows or groups that is so large that the engine's sum of it and the place of a row could overflow, which it does or not with how many rows
/// there are.
fn furthest(call: &WindowFunction) -> Option<String> {
    const FAR: i128 = 1 << 31;
    let frame = &call.params.window_frame;
    let counts = frame.units != WindowFrameUnits::Range;
    let bounds = [&frame.start_bound, &frame.end_bound].into_iter().filter(|_| counts);
    let bounds = bounds.filter_map(|bound| match bound {
        WindowFrameBound::Preceding(by) | WindowFrameBound::Following(by) => Some(by),
        WindowFrameBound::CurrentRow => None,
    });
    // The second argument of `lag`, `lead` and `nth_value`, and the only one of `ntile`, are distances, too.
    let values = call.params.args.iter().filter_map(|arg| match arg {
        Expr::Literal(value, _) => Some(value),
        Expr::Negative(inner) => match inner.as_ref() {
            Expr::Literal(value, _) => Some(value),
            _ => None,
        },
        _ => None,
    });
    let values = values.filter(|value| value.data_type().is_integer());
    bounds.chain(values).filter(|value| !value.is_null()).find_map(|value| {
        let number = value.to_string();
        let near = number.parse::<i128>().is_ok_and(|number| number.abs() < FAR);
        (!near).then_some(number)
    })
}

/// A window function whose parts are made safe, that never reaches beyond one user, and whose order leaves nothing open.
fn safe_window(
    expr: &Expr,
    call: &WindowFunction,
    name: &str,
    input: &Tracked,
    around: &Surroundings<'_>,
) -> Result<Expr, Lost> {
    let mut safe = call.clone();
    let all = |exprs: &[Expr]| exprs.iter().map(|expr| safe_value(expr, around)).collect::<Result<Vec<_>, _>>();
    safe.params.args =
        call.params.args.iter().map(|arg| numbers_only(arg, input, around)).collect::<Result<Vec<_>, _>>()?;
    safe.params.partition_by = all(&call.params.partition_by)?;
    safe.params.partition_by.extend(input.hidden(USER));
    safe.params.filter =
        call.params.filter.as_ref().map(|filter| safe_value(filter, around).map(Box::new)).transpose()?;
    for sort in &mut safe.params.order_by {
        sort.expr = numbers_only(&sort.expr, input, around)?;
    }
    let frame = &call.params.window_frame;
    if let Some(far) = furthest(call) {
        return never(
            format!("`{name}` over a window that reaches {far} rows, which the engine cannot count to"),
            "name less than 2,147,483,648, or UNBOUNDED",
        );
    }
    let first_or_last = ["first_value", "last_value", "nth_value"].contains(&name);
    if first_or_last && !by_rows_or_whole(frame) {
        return never(
            format!("`{name}` over a frame of values or groups: which of several equal rows it tells of is open"),
            "write the frame in rows: ROWS BETWEEN … AND …",
        );
    }
    // Whatever counts rows or stands at one of them needs an order that leaves nothing open: rows that stand side by side in the given order
    // stand in the order of all their columns, and rows that agree in all of them are the same. Ranks and frames of values look at what
    // is ordered by and no further.
    let by_position = first_or_last || ["row_number", "ntile", "lag", "lead"].contains(&name);
    if by_position || frame.units == WindowFrameUnits::Rows {
        safe.params.order_by.extend(input.plan.schema().iter().map(|field| Expr::from(field).sort(true, true)));
    }
    if matches!(name, "sum" | "avg")
        && !call.params.args.iter().all(|arg| type_of(arg, input).is_ok_and(|kind| kind.is_integer()))
    {
        return never(
            format!("`{name}` of fractions in a window depends on the order in which they are added"),
            format!("make them whole first: {name}(CAST(x * 1000 AS BIGINT))"),
        );
    }
    if name == "avg" {
        if call.params.distinct {
            return never(
                "`avg(DISTINCT …)` in a window depends on the order in which values are added",
                "leave DISTINCT out",
            );
        }
        let (mean, whole) = mean();
        safe.fun = WindowFunctionDefinition::AggregateUDF(Arc::new(mean));
        safe.params.args = safe.params.args.into_iter().map(whole).collect();
    }
    Ok(Expr::WindowFunction(Box::new(safe)).alias(expr.schema_name().to_string()))
}
