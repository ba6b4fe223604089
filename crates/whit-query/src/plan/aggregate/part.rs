//! One private aggregate of a question as a whole: its unit, keys and caps, and the measures that its aggregates share.

use super::call::{Asked, no_private_form};
use super::{Statistic, StatisticKind};
use crate::bound::WEIGHT;
use crate::error::QueryError;
use crate::evaluate::words::written;
use crate::plan::range::Range;
use crate::plan::track::{self, Private, Surroundings, Tag, Tracked, type_of};
use crate::plan::{Asking, Auto, Grain, Groups, Key, Measure, Part};
use crate::source::line;
use crate::translate::in_words;
use datafusion::arrow::datatypes::DataType;
use datafusion::logical_expr::expr::AggregateFunction;
use datafusion::logical_expr::{Aggregate, Expr};
use whit_core::declare::{Dataset, Owning, UnitDeclaration};
use whit_core::unit::Kind;
use whit_core::{Ladder, Rung};

/// What a part is planned from.
pub(crate) struct Draft<'a> {
    pub(super) input: &'a Tracked,
    pub(super) private: &'a Private,
    pub(super) around: &'a Surroundings<'a>,
    pub(super) unit: &'a UnitDeclaration,
    pub(super) asking: &'a Asking,
    pub(super) ladder: Ladder,
    pub(super) grain: Grain,
    /// Whether something beyond a cap is left out, so that where one goes another may come.
    pub(super) truncated: bool,
    pub(super) keys: Vec<Key>,
    pub(super) key_tags: Vec<Tag>,
    pub(super) groups: Groups,
    /// The number of groups, where it is public.
    pub(super) number: Option<u64>,
    /// The most groups of one unit.
    pub(super) groups_per_unit: u64,
    /// The same, where groups beyond it have to be left out.
    pub(super) limit: Option<u64>,
    pub(super) measures: Vec<Measure>,
    pub(super) autos: Vec<Auto>,
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
    let (calls, call_order) = in_order(&aggregate.aggr_expr, |expr| Ok(Asked::of(expr)?.title))?;
    draft.take_keys(&keys, !calls.is_empty(), &mut notes)?;
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
    let row_caps = draft.row_caps();
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
        owners: around.owners.clone(),
        grain,
        groups: draft.groups,
        groups_per_unit: draft.limit,
        elements_per_user: draft.element_cap(),
        rows_per_group,
        rows_in_all,
        row_caps,
        keys: draft.keys,
        measures: draft.measures,
        weights: Vec::new(),
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
    let note = |source: &String| match around.declaration.owning(around.declaration.datasets.get(source)?)? {
        Owning::Column(column) => Some(format!("rows without a user in `{column}` are left out")),
        Owning::LookedUp { column, table, key } => Some(format!(
            "rows of `{source}` whose `{column}` leads to nobody by `{table}.{key}`, or to several users, are left out; what is protected is a user with all rows that lead to them"
        )),
    };
    let notes = private.sources.iter().filter(|_| private.user && !private.rows_public).filter_map(note);
    let met =
        private.met.then(|| "rows of private tables meet where they belong to one user, and nowhere else".to_owned());
    notes.chain(met).collect()
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
        let titles = calls.iter().filter_map(|expr| Asked::of(expr).ok()).map(|asked| asked.title);
        for (column, name) in output.iter_mut().zip(self.keys.iter().map(|key| key.name.clone()).chain(titles)) {
            column.0 = name;
        }
        output
    }

    /// The number of a measure; one that is there already is not summed twice.
    pub(super) fn add(&mut self, measure: Measure) -> usize {
        let same = |other: &Measure| (&other.what, other.low, other.high) == (&measure.what, measure.low, measure.high);
        self.measures.iter().position(same).unwrap_or_else(|| {
            self.measures.push(measure);
            self.measures.len() - 1
        })
    }

    /// Plans one aggregate of the question.
    fn statistic(&mut self, expr: &Expr) -> Result<Statistic, QueryError> {
        let asked = Asked::of(expr)?;
        let aggregate = super::of(asked.call);
        if self.is_free(asked.call)
            && let Some(aggregate) = aggregate
        {
            let types = asked.params().args.iter().map(|arg| type_of(arg, self.input));
            if let Some(exact) = aggregate.exact(&asked, &types.collect::<Result<Vec<_>, _>>()?) {
                return Ok(Statistic(StatisticKind::Exact(Box::new(exact))));
            }
        }
        let asked = asked.checked(aggregate, self.around)?;
        aggregate.ok_or_else(|| no_private_form(asked.name()))?.plan(&asked, self)
    }

    /// Whether an aggregate reads nothing that neighbours differ in.
    fn is_free(&self, call: &AggregateFunction) -> bool {
        let public = |expr: &Expr| self.input.tag_of(expr, self.around).public;
        let parts = call.params.args.iter().chain(call.params.order_by.iter().map(|sort| &sort.expr));
        self.private.rows_public
            && self.key_tags.iter().all(|tag| tag.public)
            && parts.chain(call.params.filter.iter().map(AsRef::as_ref)).all(public)
    }

    pub(super) fn range_of(&self, argument: &Expr, title: &str) -> Result<Range, QueryError> {
        let numeric = type_of(argument, self.input)?;
        if !(numeric.is_numeric() || numeric == DataType::Boolean) {
            return Err(QueryError::asked(
                format!("`{title}` needs a number, and `{}` is {}", track::said(argument), in_words(&numeric)),
                "cast it to a number, or count it instead",
            ));
        }
        self.input.tag_of(argument, self.around).range.ok_or_else(|| {
            let clamp = format!("write clamp({}, low, high)", written(argument));
            if let Some((name, of)) = self.logarithm(argument) {
                return QueryError::asked(
                    format!(
                        "`{title}` has no finite sensitivity: nothing keeps `{}` above 0, so nothing bounds its logarithm",
                        track::said(of)
                    ),
                    format!("write {name}(clamp({}, low, high)) with a low above 0", written(of)),
                );
            }
            let hint = match self.unbounded_column(argument) {
                Some(line) => {
                    format!("declare {line}, with bounds that you can defend without looking or \"auto\"; or {clamp}")
                }
                None => clamp,
            };
            QueryError::asked(
                format!("`{title}` has no finite sensitivity: nothing bounds `{}`", track::said(argument)),
                hint,
            )
        })
    }

    /// A logarithm of something that may be 0, though it has bounds: its name, and what it is of.
    fn logarithm<'e>(&self, argument: &'e Expr) -> Option<(&'e str, &'e Expr)> {
        let Expr::ScalarFunction(call) = argument else { return None };
        let of = call.args.first().filter(|_| ["ln", "log2", "log10"].contains(&call.name()))?;
        let range = self.input.tag_of(of, self.around).range;
        matches!(range, Some(Range::Known { low, .. }) if low <= 0.0).then_some((call.name(), of))
    }

    /// The line with which a declaration would bound a column of an expression, where one of them is of a table and has no bounds.
    fn unbounded_column(&self, argument: &Expr) -> Option<String> {
        let mut origins: Vec<_> = argument
            .column_refs()
            .into_iter()
            // Bounds are of numbers: for text or a date nothing could be declared.
            .filter(|column| type_of(&Expr::Column((*column).clone()), self.input).is_ok_and(|kind| kind.is_numeric()))
            .filter_map(|column| self.input.tag(column))
            .filter(|tag| tag.range.is_none())
            .filter_map(|tag| tag.origin.as_ref())
            .collect();
        origins.sort();
        let (table, column) = origins.first()?;
        let dataset = self.around.declaration.dataset(table).ok()?;
        Some(line::with(dataset, column, ("bounds", "[low, high]")))
    }

    pub(super) fn auto(&mut self, argument: &Expr, value: &Expr) -> Result<usize, QueryError> {
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
