//! From SQL aggregates to measures: integer vectors of which it is known how far one unit moves them.

mod keys;
mod reach;

use super::range::Range;
use super::track::{self, Private, Surroundings, Tag, Tracked, aggregate_call, safe_value, type_of};
use super::{
    Asking, Auto, ELEMENT, Grain, Groups, Key, LEAVES, Leaves, Measure, Part, Place, Shape, Statistic, USER, WEIGHT,
    What,
};
use crate::bound::quantise::{self, Quantise};
use crate::error::{QueryError, planning};
use crate::evaluate::number::literal;
use datafusion::arrow::datatypes::DataType;
use datafusion::logical_expr::expr::AggregateFunction;
use datafusion::logical_expr::{Aggregate, Expr, lit, when};
use whit_core::declare::{Dataset, UnitDeclaration};
use whit_core::mechanism::quantile::Tree;
use whit_core::unit::Kind;
use whit_core::{Bound, Ladder, Rung};

/// What a part is planned from.
struct Draft<'a> {
    input: &'a Tracked,
    private: &'a Private,
    around: &'a Surroundings<'a>,
    unit: &'a UnitDeclaration,
    asking: &'a Asking,
    ladder: Ladder,
    grain: Grain,
    /// Whether something beyond a cap is left out, so that where one goes another may come.
    truncated: bool,
    keys: Vec<Key>,
    key_tags: Vec<Tag>,
    groups: Groups,
    /// The number of groups, where it is public.
    number: Option<u64>,
    /// The most groups of one unit.
    groups_per_unit: u64,
    /// The same, where groups beyond it have to be left out.
    limit: Option<u64>,
    measures: Vec<Measure>,
    autos: Vec<Auto>,
}

/// Plans one private aggregate.
pub(crate) fn plan(
    input: &Tracked,
    private: &Private,
    aggregate: &Aggregate,
    asking: &Asking,
    around: &Surroundings<'_>,
) -> Result<(Part, Vec<Rung>, Vec<String>), QueryError> {
    let missing = |_| QueryError::failed(format!("the data set `{}` is not declared", private.dataset));
    let dataset = around.declaration.dataset(&private.dataset).map_err(missing)?;
    let payer = around.declaration.dataset(&private.payer).map_err(missing)?;
    let unit = dataset.unit.as_ref().ok_or_else(|| QueryError::failed("a public table has no unit"))?;
    let paying = payer.unit.as_ref().ok_or_else(|| QueryError::failed("a public table has no unit"))?;
    check_payers(private, payer, around)?;
    let ladder = paying.ladder().map_err(|error| QueryError::asked(error.to_string(), error.hint()))?;
    let grain = grain_of(unit, private)?;
    let mut notes = Vec::new();
    if (unit.protect == Kind::Element && grain == Grain::User) || (unit.protect == Kind::Event && grain != Grain::Row) {
        notes.push(format!(
            "rows are bounded user by user, because the question looks at more than one {} at once",
            unit.protect
        ));
    }
    let above = ladder.rungs().len() > 1;
    let truncated = match (unit.protect, grain) {
        (Kind::Event, Grain::Row) => above,
        (Kind::Element, Grain::Element) => above && unit.caps.elements_per_user.is_some(),
        _ => false,
    };
    let mut draft = Draft {
        input,
        private,
        around,
        unit,
        asking,
        ladder,
        grain,
        truncated,
        keys: Vec::new(),
        key_tags: Vec::new(),
        groups: Groups::One,
        number: Some(1),
        groups_per_unit: 1,
        limit: None,
        measures: Vec::new(),
        autos: Vec::new(),
    };
    // Columns stand in the order of their texts, so that one question has one meaning in whichever order it is asked.
    let (keys, key_order) = in_order(&aggregate.group_expr, |expr| Ok(track::said(expr)))?;
    let (calls, call_order) = in_order(&aggregate.aggr_expr, |expr| Ok(title(aggregate_call(expr)?)))?;
    draft.take_keys(&keys, &mut notes)?;
    draft.take_limit()?;
    let mut statistics = Vec::new();
    for expr in &calls {
        statistics.push(draft.statistic(expr)?);
    }
    let presence = (draft.groups == Groups::Selected).then(|| draft.presence());
    let places: Vec<usize> =
        key_order.into_iter().chain(call_order.into_iter().map(|place| keys.len() + place)).collect();
    let output = draft.output(aggregate, &calls, &places);
    let rungs = draft.ladder.rungs().to_vec();
    notes.extend(without_user(private, around));
    if draft.key_tags.iter().any(|tag| tag.observed && !tag.public) {
        notes.push(format!("which values of {} occur is taken as public, as declared", unit.public.join(", ")));
    }
    let (rows_per_group, rows_in_all) = match grain {
        Grain::Row => (None, None),
        Grain::Element | Grain::User => (draft.rows().ok(), draft.rows_in_all()),
    };
    let mut row_caps = Vec::new();
    if truncated && grain == Grain::Row {
        for (rung, &held) in draft.ladder.rungs().iter().zip(draft.ladder.held()).skip(1) {
            match rung.unit.kind() {
                Kind::Element => row_caps.push((vec![USER, ELEMENT], held)),
                Kind::User => row_caps.push((vec![USER], held)),
                Kind::Event | Kind::Feature | Kind::Label => {}
            }
        }
    }
    let after_caps = draft.after_caps(&statistics, &row_caps);
    let mut kept = None;
    if after_caps.contains(&true) {
        kept = draft.kept()?;
    }
    // Where nothing is asked but which keys there are, caps may keep some from showing.
    if after_caps.contains(&true) || (statistics.is_empty() && draft.limit.is_some()) {
        notes.extend(draft.caps_in_words(&row_caps));
    }
    let part = Part {
        rows: draft.input.plan.clone(),
        grain,
        groups: draft.groups,
        groups_per_unit: draft.limit,
        elements_per_user: draft.element_cap(),
        rows_per_group,
        rows_in_all,
        row_caps,
        keys: draft.keys,
        measures: draft.measures,
        autos: draft.autos,
        statistics,
        after_caps,
        kept,
        output,
        places,
        presence,
    };
    Ok((part, rungs, notes))
}

/// Refuses data sets that cannot pay together, whichever of them is read first.
fn check_payers(private: &Private, payer: &Dataset, around: &Surroundings<'_>) -> Result<(), QueryError> {
    let protects = |dataset: &Dataset| dataset.unit.as_ref().map(|unit| unit.protect);
    for source in &private.sources {
        let missing = |_| QueryError::failed(format!("the data set `{source}` is not declared"));
        let guest = around.declaration.dataset(source).map_err(missing)?;
        let whole = [protects(guest), protects(payer)].iter().all(|&protect| protect == Some(Kind::User));
        if payer.name != guest.name && !whole {
            return Err(QueryError::asked(
                format!(
                    "`{}` pays from the budget of `{}`, which is possible for whole users only",
                    guest.name, payer.name
                ),
                "write unit.protect = \"user\" for both",
            ));
        }
    }
    Ok(())
}

/// What a reader must know of rows without a user.
fn without_user(private: &Private, around: &Surroundings<'_>) -> Vec<String> {
    let column = |source: &String| {
        let unit = around.declaration.dataset(source).ok()?.unit.as_ref()?;
        unit.user.as_ref().map(|user| user.column().to_owned())
    };
    let columns = private.sources.iter().filter_map(column).filter(|_| private.user && !private.rows_public);
    columns.map(|column| format!("rows without a user in `{column}` are left out")).collect()
}

fn grain_of(unit: &UnitDeclaration, private: &Private) -> Result<Grain, QueryError> {
    let whole_user = || {
        if private.user {
            Ok(Grain::User)
        } else {
            Err(QueryError::asked(
                "one row of the result depends on several rows of the source, and no user is declared to bound them by",
                "declare unit.user",
            ))
        }
    };
    match unit.protect {
        Kind::Event => {
            if private.copies.is_some() {
                Ok(Grain::Row)
            } else {
                whole_user()
            }
        }
        Kind::Element => {
            if private.element {
                Ok(Grain::Element)
            } else {
                whole_user()
            }
        }
        Kind::User => whole_user(),
        Kind::Feature | Kind::Label => match (&unit.user, private.copies) {
            (None, Some(_)) => Ok(Grain::Row),
            (Some(_), _) | (None, None) => whole_user(),
        },
    }
}

impl Draft<'_> {
    /// The names and types of the output columns, of which each column of the aggregate has one.
    fn output(&self, aggregate: &Aggregate, calls: &[Expr], places: &[usize]) -> Vec<(String, DataType)> {
        let mut output = vec![(String::new(), DataType::Null); places.len()];
        for (field, &place) in aggregate.schema.fields().iter().zip(places) {
            output[place].1 = field.data_type().clone();
        }
        let titles = calls.iter().filter_map(|expr| aggregate_call(expr).ok()).map(title);
        for (column, name) in output.iter_mut().zip(self.keys.iter().map(|key| key.name.clone()).chain(titles)) {
            column.0 = name;
        }
        output
    }

    /// The number of a measure; one that is there already is not summed twice.
    fn add(&mut self, measure: Measure) -> usize {
        let same = |other: &Measure| (&other.what, other.low, other.high) == (&measure.what, measure.low, measure.high);
        self.measures.iter().position(same).unwrap_or_else(|| {
            self.measures.push(measure);
            self.measures.len() - 1
        })
    }

    fn statistic(&mut self, expr: &Expr) -> Result<Statistic, QueryError> {
        let call = aggregate_call(expr)?;
        let (name, params) = (call.func.name().to_owned(), &call.params);
        let said = title(call);
        if self.is_free(call)
            && let Some(exact) = self.of_no_order(expr, call)?
        {
            return Ok(Statistic::Exact(Box::new(exact)));
        }
        let filter = params.filter.as_ref().map(|filter| safe_value(filter, self.around)).transpose()?;
        let conditional = |value: Expr| -> Result<Expr, QueryError> {
            match &filter {
                None => Ok(value),
                Some(filter) => when(filter.clone(), value).end().map_err(|error| planning(&error)),
            }
        };
        if params.args.len() > 1 && !matches!(name.as_str(), "approx_percentile_cont" | "percentile_cont") {
            return Err(refused(&said, "it has more than one argument"));
        }
        if params.distinct && name != "count" {
            return Err(refused(
                &said,
                "DISTINCT counts a value once over all users, so one user may change what others add",
            ));
        }
        if params.args.iter().any(|arg| matches!(arg, Expr::Literal(value, _) if value.is_null())) {
            return Err(refused(&said, "its argument is always missing"));
        }
        let argument = params
            .args
            .iter()
            .chain(params.order_by.iter().map(|sort| &sort.expr))
            .find(|arg| !matches!(arg, Expr::Literal(..)));
        match name.as_str() {
            "count" => {
                if params.distinct {
                    let argument = argument.ok_or_else(|| refused(&said, "COUNT(DISTINCT) of a constant"))?;
                    return self.distinct(argument, &conditional, &said);
                }
                let value = argument.map(|arg| safe_value(arg, self.around)).transpose()?;
                let value = match (value, &filter) {
                    (None, None) => None,
                    (None, Some(_)) => Some(conditional(lit(1_i64))?),
                    (Some(value), _) => Some(conditional(value)?),
                };
                Ok(Statistic::Count(self.count(value, said)?))
            }
            "sum" | "avg" | "mean" | "var" | "var_samp" | "var_sample" | "var_pop" | "stddev" | "stddev_samp"
            | "stddev_pop" => {
                let argument = argument.cloned().or_else(|| params.args.first().cloned());
                let argument = argument.ok_or_else(|| refused(&said, "it has no argument"))?;
                self.moments(&name, &argument, &conditional, &said)
            }
            "median" | "approx_median" | "approx_percentile_cont" | "percentile_cont" | "min" | "max" => {
                let argument = argument.ok_or_else(|| refused(&said, "it has no argument"))?.clone();
                let share = params.args.iter().find_map(|arg| match arg {
                    Expr::Literal(value, _) => literal(value),
                    _ => None,
                });
                let downwards = params.order_by.first().is_some_and(|sort| !sort.asc);
                let share = share.map(|share| if downwards { 1.0 - share } else { share });
                self.order_statistic(&name, &argument, share, &conditional, &said)
            }
            _ => Err(QueryError::asked(
                format!("`{name}` has no private form here"),
                "use COUNT, SUM, AVG, VAR, STDDEV, MIN, MAX, MEDIAN or APPROX_PERCENTILE_CONT",
            )),
        }
    }

    /// Whether an aggregate reads nothing that neighbours differ in.
    fn is_free(&self, call: &AggregateFunction) -> bool {
        let public = |expr: &Expr| self.input.tag_of(expr, self.around).public;
        let parts = call.params.args.iter().chain(call.params.order_by.iter().map(|sort| &sort.expr));
        self.private.rows_public
            && self.key_tags.iter().all(|tag| tag.public)
            && parts.chain(call.params.filter.iter().map(AsRef::as_ref)).all(public)
    }

    /// An aggregate in a form that no order of rows changes, not in its last bit: in which order public values stand in a file may tell what
    /// is private beside them. Nothing where there is no such form.
    fn of_no_order(&self, expr: &Expr, call: &AggregateFunction) -> Result<Option<Expr>, QueryError> {
        let types = call.params.args.iter().map(|arg| type_of(arg, self.input)).collect::<Result<Vec<_>, _>>()?;
        let whole = types.iter().all(|kind| kind.is_integer() || *kind == DataType::Boolean);
        let exact = types.iter().all(DataType::is_decimal) || whole;
        Ok(match call.func.name() {
            "count" | "min" | "max" | "median" | "bool_and" | "bool_or" => Some(expr.clone()),
            "sum" if exact => Some(expr.clone()),
            "avg" if whole && !call.params.distinct => {
                let mut call = call.clone();
                let (mean, exactly) = crate::evaluate::mean::mean();
                call.func = std::sync::Arc::new(mean);
                call.params.args = call.params.args.into_iter().map(exactly).collect();
                Some(Expr::AggregateFunction(call).alias(expr.schema_name().to_string()))
            }
            _ => None,
        })
    }

    fn count(&mut self, value: Option<Expr>, name: String) -> Result<usize, QueryError> {
        let rows =
            i64::try_from(self.rows()?).map_err(|_| refused(&name, "the cap on rows does not fit into 63 bits"))?;
        if let Some(value) = value.clone().filter(|_| rows < 1 << 40)
            && self.may_scale()?
        {
            let (moved, high) = (self.of_rows(0, WEIGHT)?, rows * WEIGHT);
            return Ok(self.add(Measure { what: What::Parts(value), low: 0, high, moved, name }));
        }
        let moved = self.of_rows(0, 1)?;
        Ok(self.add(Measure { what: What::Rows(value), low: 0, high: rows, moved, name }))
    }

    fn distinct(
        &mut self,
        argument: &Expr,
        conditional: &dyn Fn(Expr) -> Result<Expr, QueryError>,
        name: &str,
    ) -> Result<Statistic, QueryError> {
        let tag = self.input.tag_of(argument, self.around);
        let plain = conditional(lit(1_i64))? == lit(1_i64);
        if tag.user && self.grain != Grain::Row && plain {
            let moved = self.users_moved()?;
            let measure = Measure { what: What::Users, low: 0, high: 1, moved, name: name.to_owned() };
            return Ok(Statistic::Count(self.add(measure)));
        }
        let most = self.rows()?;
        let high = i64::try_from(most).map_err(|_| refused(name, "the cap on rows does not fit into 63 bits"))?;
        // A value that others have too may stay when this unit goes: what moves is at most what a count would.
        let moved = self.of_rows(0, 1)?;
        let value = conditional(safe_value(argument, self.around)?)?;
        let what = What::Distinct { value, most };
        Ok(Statistic::Count(self.add(Measure { what, low: 0, high, moved, name: name.to_owned() })))
    }

    fn range_of(&self, argument: &Expr, name: &str) -> Result<Range, QueryError> {
        let numeric = type_of(argument, self.input)?;
        if !(numeric.is_numeric() || numeric == DataType::Boolean) {
            return Err(QueryError::asked(
                format!("`{name}` needs a number, and `{}` is {numeric}", track::said(argument)),
                "cast it to a number, or count it instead",
            ));
        }
        self.input.tag_of(argument, self.around).range.ok_or_else(|| {
            let column = argument.column_refs().iter().map(|column| column.name.clone()).min().unwrap_or_default();
            QueryError::asked(
                format!("`{name}` has no finite sensitivity: nothing bounds `{}`", track::said(argument)),
                format!(
                    "declare `columns.{column} = {{ bounds = [low, high] }}` (or \"auto\") in whit.toml, or write clamp({}, low, high)",
                    track::said(argument)
                ),
            )
        })
    }

    fn auto(&mut self, argument: &Expr, value: &Expr) -> Result<usize, QueryError> {
        let name = track::said(argument);
        if let Some(found) = self.autos.iter().position(|auto| auto.name == name && auto.value == *value) {
            return Ok(found);
        }
        // One row, or one unit's rows with their weight divided among the bins: at most this in ℓ1, so in ℓ2.
        let radius = if self.grain == Grain::Row { self.rows()? as f64 } else { WEIGHT as f64 };
        let moved = self.ball(radius)?;
        self.autos.push(Auto { value: value.clone(), name, moved });
        Ok(self.autos.len() - 1)
    }

    fn moments(
        &mut self,
        function: &str,
        argument: &Expr,
        conditional: &dyn Fn(Expr) -> Result<Expr, QueryError>,
        name: &str,
    ) -> Result<Statistic, QueryError> {
        let range = self.range_of(argument, name)?;
        let value = conditional(safe_value(argument, self.around)?)?;
        let integers = type_of(argument, self.input)?.is_integer();
        // Where rows may come to count for less, means and variances are fractions, so a finer lattice than that of the values is needed.
        let scaled = self.may_scale()?;
        let sum = |draft: &mut Self, shape: Shape| -> Result<usize, QueryError> {
            let (place, low, high) = match range {
                Range::Known { low, high } => {
                    let whole = integers && (shape == Shape::Plain || !scaled);
                    let quantise = Quantise::of(low, high, shape, whole)?;
                    let (low, high) = (quantise.low(), quantise.high());
                    (Place::Known(quantise), low, high)
                }
                Range::Auto => {
                    let (low, high) = quantise::found_range(shape);
                    (Place::Found { range: draft.auto(argument, &value)?, shape }, low, high)
                }
            };
            let moved = draft.of_rows(low, high)?;
            let rows = i64::try_from(draft.rows()?).ok();
            let (low, high) = rows
                .and_then(|rows| Some((low.min(0).checked_mul(rows)?, high.max(0).checked_mul(rows)?)))
                .filter(|(low, high)| low.unsigned_abs().max(high.unsigned_abs()) < 1 << 55)
                .ok_or_else(|| {
                    refused(name, "one unit's sum may leave 55 bits; declare smaller caps or narrower bounds")
                })?;
            let word = match shape {
                Shape::Plain => name.to_owned(),
                Shape::Centred => format!("{name}: centred sum"),
                Shape::Squared => format!("{name}: sum of squares"),
            };
            let what = What::Sum { value: value.clone(), place };
            Ok(draft.add(Measure { what, low, high, moved, name: word }))
        };
        if function == "sum" {
            return Ok(Statistic::Sum(sum(self, Shape::Plain)?));
        }
        let centred = sum(self, Shape::Centred)?;
        if matches!(function, "avg" | "mean") {
            let count = self.count(Some(value), format!("{name}: count"))?;
            return Ok(Statistic::Mean { sum: centred, count });
        }
        let squares = sum(self, Shape::Squared)?;
        let count = self.count(Some(value), format!("{name}: count"))?;
        let (sample, root) = (!function.ends_with("_pop"), function.starts_with("stddev"));
        Ok(Statistic::Spread { sum: centred, squares, count, sample, root })
    }

    fn order_statistic(
        &mut self,
        function: &str,
        argument: &Expr,
        share: Option<f64>,
        conditional: &dyn Fn(Expr) -> Result<Expr, QueryError>,
        name: &str,
    ) -> Result<Statistic, QueryError> {
        let range = self.range_of(argument, name)?;
        let value = conditional(safe_value(argument, self.around)?)?;
        let rows = self.rows()?;
        let (tree, shape) = match range {
            Range::Known { low, high } => {
                let tree = Tree::new(low, high, LEAVES).map_err(|error| refused(name, &error.to_string()))?;
                (Leaves::Known { low, high }, tree)
            }
            Range::Auto => {
                let any = Tree::new(0.0, 1.0, LEAVES).map_err(|error| refused(name, &error.to_string()))?;
                (Leaves::Found { range: self.auto(argument, &value)? }, any)
            }
        };
        // One row adds one on each level, so that a unit's tree is as many times as long as its weights over groups.
        let bound = shape.bound(1, 1).map_err(|error| refused(name, &error.to_string()))?;
        let weight = if self.grain == Grain::Row { 1.0 } else { WEIGHT as f64 };
        let moved = match bound {
            Bound::Ball { radius, .. } => {
                self.ball(((radius * self.length_of_rows()?).next_up() * weight).next_up())?
            }
            Bound::Coordinates { .. } | Bound::Weighted(_) => {
                return Err(QueryError::failed("a tree's bound is a length"));
            }
        };
        let high = i64::try_from(rows).unwrap_or(i64::MAX);
        let tree = self.add(Measure {
            what: What::Tree { value, tree, rows },
            low: 0,
            high,
            moved,
            name: format!("quantiles of {}", track::said(argument)),
        });
        match function {
            "min" => Ok(Statistic::Least(tree)),
            "max" => Ok(Statistic::Largest(tree)),
            "median" | "approx_median" => Ok(Statistic::Quantile { tree, share: 0.5 }),
            _ => {
                let share = share.filter(|share| (0.0..=1.0).contains(share));
                let share = share.ok_or_else(|| refused(name, "it needs a share between 0 and 1"))?;
                Ok(Statistic::Quantile { tree, share })
            }
        }
    }
}

/// Expressions in the order of their texts, and for each as it was asked its place there.
fn in_order(
    exprs: &[Expr],
    text: impl Fn(&Expr) -> Result<String, QueryError>,
) -> Result<(Vec<Expr>, Vec<usize>), QueryError> {
    let mut texts =
        exprs.iter().map(text).enumerate().map(|(i, text)| Ok((text?, i))).collect::<Result<Vec<_>, QueryError>>()?;
    texts.sort();
    let mut places = vec![0; exprs.len()];
    for (place, (_, asked)) in texts.iter().enumerate() {
        places[*asked] = place;
    }
    Ok((texts.into_iter().map(|(_, asked)| exprs[asked].clone()).collect(), places))
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

fn refused(name: &str, why: &str) -> QueryError {
    QueryError::asked(format!("`{name}` cannot be made private: {why}"), "ask it differently")
}
