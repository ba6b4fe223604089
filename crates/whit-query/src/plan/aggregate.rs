//! From SQL aggregates to measures: integer vectors of which it is known how far one unit moves them.

use super::range::{self, Range};
use super::track::{Private, Surroundings, Tag, Tracked, aggregate_call, safe_value, type_of};
use super::{
    Asking, Auto, ELEMENT, Grain, Groups, Key, Leaves, Measure, Part, Place, Presence, Shape, Statistic, USER, WEIGHT,
    What,
};
use crate::bound::quantise::{self, Quantise};
use crate::engine::{LEAVES, planning};
use crate::error::QueryError;
use datafusion::arrow::array::{Array, ArrayRef};
use datafusion::arrow::datatypes::DataType;
use datafusion::logical_expr::{Aggregate, Expr, LogicalPlanBuilder, lit, when};
use datafusion::scalar::ScalarValue;
use whit_core::declare::{Dataset, Keys, UnitDeclaration};
use whit_core::mechanism::keys::Moved;
use whit_core::mechanism::quantile::Tree;
use whit_core::unit::{Change, Kind};
use whit_core::{Bound, Ladder, Rung, Sensitivity, Support};

/// The most groups that a question may list.
const MOST_GROUPS: usize = 1_000_000;

/// What a part is planned from.
struct Draft<'a> {
    input: &'a Tracked,
    private: &'a Private,
    around: &'a Surroundings<'a>,
    dataset: &'a Dataset,
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
    /// Whether groups beyond that are left out.
    enforced: bool,
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
    if payer.name != dataset.name && (unit.protect != Kind::User || paying.protect != Kind::User) {
        return Err(QueryError::asked(
            format!(
                "`{}` pays from the budget of `{}`, which is possible for whole users only",
                dataset.name, payer.name
            ),
            "write unit.protect = \"user\" for both",
        ));
    }
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
        dataset,
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
        enforced: false,
        measures: Vec::new(),
        autos: Vec::new(),
    };
    draft.take_keys(&aggregate.group_expr, &mut notes)?;
    let limit = draft.take_limit()?;
    let mut statistics = Vec::new();
    for expr in &aggregate.aggr_expr {
        statistics.push(draft.statistic(expr)?);
    }
    let presence = (draft.groups == Groups::Selected).then(|| draft.presence());
    let output =
        aggregate.schema.fields().iter().map(|field| (field.name().clone(), field.data_type().clone())).collect();
    let rungs = draft.ladder.rungs().to_vec();
    if draft.private.user && !draft.private.rows_public {
        notes.push(format!(
            "rows without a user in `{}` are left out",
            unit.user.as_ref().map_or("", |user| user.column())
        ));
    }
    if draft.key_tags.iter().any(|tag| tag.observed && !tag.public) {
        notes.push(format!("which values of {} occur is taken as public, as declared", unit.public.join(", ")));
    }
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
    let part = Part {
        rows: draft.input.plan.clone(),
        grain,
        groups: draft.groups,
        groups_per_unit: limit,
        elements_per_user: unit.caps.elements_per_user.filter(|_| truncated && grain == Grain::Element),
        row_caps,
        keys: draft.keys,
        measures: draft.measures,
        autos: draft.autos,
        statistics,
        output,
        presence,
    };
    Ok((part, rungs, notes))
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
    fn take_keys(&mut self, exprs: &[Expr], notes: &mut Vec<String>) -> Result<(), QueryError> {
        if exprs.iter().any(|expr| matches!(expr, Expr::GroupingSet(_))) {
            return Err(QueryError::asked(
                "GROUPING SETS, ROLLUP and CUBE would release several groupings at once",
                "ask one query for each grouping, so that each has its own price",
            ));
        }
        for expr in exprs {
            let tag = self.input.tag_of(expr, self.around);
            if tag.user && !(tag.public && self.private.rows_public) {
                return Err(QueryError::asked(
                    format!("grouping by `{expr}` makes a row of each user, so every row would be about one person"),
                    "group by something that many users share, and use COUNT(DISTINCT user) to count them",
                ));
            }
            let listed = self.listed(expr, &tag)?;
            let data_type = type_of(expr, self.input)?;
            let observed = tag.public && self.private.rows_public;
            let name = expr.schema_name().to_string();
            self.keys.push(Key { expr: safe_value(expr, self.around)?, name, data_type, listed, observed });
            self.key_tags.push(tag);
        }
        self.groups = if self.keys.is_empty() {
            Groups::One
        } else if self.keys.iter().all(|key| key.listed.is_some()) {
            Groups::Listed
        } else if self.keys.iter().all(|key| key.observed) {
            Groups::Observed
        } else {
            Groups::Selected
        };
        self.number = match self.groups {
            Groups::One => Some(1),
            Groups::Listed => {
                let number = self
                    .keys
                    .iter()
                    .map(|key| key.listed.as_ref().map_or(0, Vec::len))
                    .try_fold(1_usize, usize::checked_mul);
                let number = number.filter(|&number| number <= MOST_GROUPS).ok_or_else(|| {
                    QueryError::asked(
                        format!("the listed keys make more than {MOST_GROUPS} groups, and each of them would appear"),
                        "group by fewer columns, or leave a list out so that keys are selected privately",
                    )
                })?;
                Some(number as u64)
            }
            Groups::Observed | Groups::Selected => None,
        };
        if self.groups == Groups::Listed && self.keys.iter().any(|key| key.listed.is_some()) {
            notes.push("rows whose keys are not listed are left out".to_owned());
        }
        Ok(())
    }

    /// The public values of a key: listed, of a public table, of a column whose values are known, or of bins.
    fn listed(&self, expr: &Expr, tag: &Tag) -> Result<Option<Vec<ScalarValue>>, QueryError> {
        let data_type = type_of(expr, self.input)?;
        if tag.public && self.private.rows_public {
            return Ok(None); // those that occur are known, and so are their combinations
        }
        if data_type == DataType::Boolean {
            return Ok(Some(vec![ScalarValue::Boolean(Some(false)), ScalarValue::Boolean(Some(true))]));
        }
        if let Some(values) = bins(expr) {
            return Ok(Some(values));
        }
        let Some((table, column)) = &tag.origin else { return Ok(None) };
        let Ok(origin) = self.around.declaration.dataset(table) else { return Ok(None) };
        match origin.keys(column) {
            Some(Keys::Listed(texts)) => {
                let parse = |text: &String| {
                    ScalarValue::try_from_string(text.clone(), &data_type).map_err(|_| {
                        QueryError::asked(
                            format!("the key `{text}` of `{table}.{column}` is not of its type, {data_type}"),
                            "write the keys as the column has them",
                        )
                    })
                };
                return texts.iter().map(parse).collect::<Result<Vec<_>, _>>().map(Some);
            }
            Some(Keys::FromTable { table, column }) => return self.values_of(table, column, &data_type).map(Some),
            None => {}
        }
        if origin.public || tag.observed || tag.public {
            return self.values_of(table, column, &data_type).map(Some);
        }
        Ok(None)
    }

    /// All values of a column that may be looked at: one of a public table, or one that is declared as public.
    fn values_of(&self, table: &str, column: &str, data_type: &DataType) -> Result<Vec<ScalarValue>, QueryError> {
        let scan = find_scan(&self.input.plan, table).or_else(|| self.around.tables.get(table).cloned());
        let scan = scan.ok_or_else(|| QueryError::failed(format!("the table `{table}` cannot be found")))?;
        let name = Expr::Column(datafusion::common::Column::new(scan_name(&scan), column));
        let plan = LogicalPlanBuilder::from(scan)
            .project(vec![name.alias("value")])
            .and_then(LogicalPlanBuilder::distinct)
            .and_then(LogicalPlanBuilder::build)
            .map_err(|error| planning(&error))?;
        let mut values = Vec::new();
        for batch in (self.around.collect)(plan)? {
            values.extend(scalars(batch.column(0))?);
        }
        let cast = |value: ScalarValue| value.cast_to(data_type).map_err(|error| planning(&error));
        let mut values =
            values.into_iter().filter(|value| !value.is_null()).map(cast).collect::<Result<Vec<_>, _>>()?;
        values.sort_by(|a, b| a.partial_cmp(b).unwrap_or(std::cmp::Ordering::Equal));
        if values.len() > MOST_GROUPS {
            return Err(QueryError::asked(
                format!("`{table}.{column}` has more than {MOST_GROUPS} values, and each would appear"),
                "group by something coarser",
            ));
        }
        Ok(values)
    }

    /// Whether all keys are functions of who the unit is.
    fn known_keys(&self) -> bool {
        self.grain == Grain::Element && self.key_tags.iter().all(|tag| tag.known)
    }

    /// Whether all keys are columns that neighbours agree on, row by row.
    fn public_keys(&self) -> bool {
        matches!(self.unit.protect, Kind::Feature | Kind::Label) && self.key_tags.iter().all(|tag| tag.public)
    }

    /// How many groups of one unit count, and whether that has to be seen to.
    fn take_limit(&mut self) -> Result<Option<u64>, QueryError> {
        if self.keys.is_empty() || self.grain == Grain::Row || self.known_keys() {
            self.groups_per_unit = 1;
            return Ok(None);
        }
        let declared =
            self.asking.groups.or(self.unit.caps.groups).or(self.dataset.query.and_then(|query| query.groups));
        let implied = [self.number, self.structural(), self.rows_declared()].into_iter().flatten().min();
        let limit = match (declared, implied) {
            (Some(declared), Some(implied)) => declared.min(implied),
            (Some(declared), None) => declared,
            (None, Some(implied)) => implied,
            (None, None) => {
                return Err(QueryError::asked(
                    format!("nothing says to how many groups one {} may contribute", self.unit_word()),
                    "say it with --groups N, or declare unit.caps = { groups = N }",
                ));
            }
        };
        self.groups_per_unit = limit.max(1);
        // A unit cannot be in more groups than there are.
        let enforced =
            self.number.is_none_or(|number| number > limit) && self.structural().is_none_or(|most| most > limit);
        self.enforced = enforced;
        Ok(enforced.then_some(self.groups_per_unit))
    }

    fn unit_word(&self) -> &'static str {
        match self.grain {
            Grain::Row => "row",
            Grain::Element => "element",
            Grain::User => "user",
        }
    }

    /// The most rows of one unit that there can be, by the way the question is built.
    fn structural(&self) -> Option<u64> {
        match self.grain {
            Grain::Row => None,
            Grain::Element => [self.private.rows_of_element, self.private.rows_of_user].into_iter().flatten().min(),
            Grain::User => self.private.rows_of_user,
        }
    }

    fn rows_declared(&self) -> Option<u64> {
        let caps = &self.unit.caps;
        match self.grain {
            Grain::Row => self.private.copies,
            Grain::Element => caps.rows_per_element,
            Grain::User => {
                let product = caps.elements_per_user.zip(caps.rows_per_element).and_then(|(k, r)| k.checked_mul(r));
                [caps.rows_per_user, product].into_iter().flatten().min()
            }
        }
    }

    /// How many rows of one unit in one group count.
    fn rows(&self) -> Result<u64, QueryError> {
        if self.grain == Grain::Row {
            return self.private.copies.ok_or_else(|| QueryError::failed("a row without a source"));
        }
        let said = self.asking.rows.or(self.unit.caps.rows_per_group).or_else(|| self.rows_declared());
        let rows = [said, self.structural()].into_iter().flatten().min();
        rows.ok_or_else(|| {
            QueryError::asked(
                format!("nothing says how many rows of one {} count in one group", self.unit_word()),
                "say it with --rows N, or declare unit.caps = { rows_per_group = N }",
            )
        })
    }

    /// How far one unit of each rung moves a vector to which a unit of the grain adds as the bound says.
    fn moved(&self, bound: Bound) -> Vec<Sensitivity> {
        let worst = |bound: &Bound| {
            let (one, alone) = (bound.sensitivity(Change::Replace), bound.sensitivity(Change::AddRemove));
            Sensitivity { l1: one.l1.max(alone.l1), l2: one.l2.max(alone.l2) }
        };
        let rungs = self.ladder.rungs();
        match (self.unit.protect, self.grain) {
            // A row that goes may let in another of the same user, so each change is a replacement.
            // A row that becomes another user's lets one in there and pushes one out here: two replacements.
            (Kind::Event, Grain::Row) if self.truncated => rungs
                .iter()
                .zip(self.ladder.held())
                .map(|(rung, &held)| {
                    let twice = u64::from(rung.unit.kind() == Kind::Event && rung.unit.change() == Change::Replace);
                    worst(&bound).at(&Rung { holds: held.saturating_mul(1 + twice), disjoint: false, ..rung.clone() })
                })
                .collect(),
            // What changes one event or element changes one user's rows, and so takes one user's place by another.
            (Kind::Event | Kind::Element, Grain::User) => rungs
                .iter()
                .map(|rung| match (rung.unit.kind(), rung.unit.change()) {
                    (Kind::User, Change::AddRemove) => bound.sensitivity(Change::AddRemove),
                    // A row that becomes another user's changes what two users have.
                    (Kind::Event, Change::Replace) => {
                        worst(&bound).at(&Rung { holds: 2, disjoint: false, ..rung.clone() })
                    }
                    _ => worst(&bound),
                })
                .collect(),
            _ => bound.on(&self.ladder),
        }
    }

    fn support(&self, low: i64) -> Support {
        let alone = if low >= 0 { Support::NonNegative } else { Support::Any };
        let one_coordinate = self.keys.is_empty();
        // An element that is emptied may let another in, in another group; with one group there is no other.
        let own_group = self.known_keys() && !self.truncated;
        // Which of its groups a unit keeps may depend on what is private, unless it keeps them all.
        let public_groups = self.public_keys() && !self.enforced;
        if public_groups || one_coordinate || own_group {
            if low >= 0 && self.groups_per_unit == 1 { Support::Single } else { Support::Fixed { may_be_empty: true } }
        } else {
            alone
        }
    }

    fn coordinates(&self, low: i64, high: i64) -> Result<Vec<Sensitivity>, QueryError> {
        let bound = Bound::coordinates(self.groups_per_unit, low, high, self.support(low));
        let bound = bound.map_err(|error| QueryError::failed(error.to_string()))?;
        Ok(self.moved(bound))
    }

    fn ball(&self, radius: f64) -> Result<Vec<Sensitivity>, QueryError> {
        let bound = Bound::ball(radius, Support::NonNegative).map_err(|error| QueryError::failed(error.to_string()))?;
        Ok(self.moved(bound))
    }

    /// For each rung, how many keys it moves the number of users (or rows) of, and by how much.
    fn presence(&self) -> Presence {
        let users = self.grain != Grain::Row;
        let sides = |change: Change| match change {
            Change::AddRemove => 1,
            Change::Replace => 2,
        };
        let many = |held: u64| self.groups_per_unit.saturating_mul(held);
        let moved = self.ladder.rungs().iter().zip(self.ladder.held()).map(|(rung, &held)| {
            if self.grain == Grain::Row {
                let copies = self.private.copies.unwrap_or(1);
                let moves_user = rung.unit.kind() == Kind::Event && rung.unit.change() == Change::Replace;
                let sides = match (self.truncated, moves_user) {
                    (true, true) => 4,
                    (true, false) => 2,
                    (false, _) => sides(rung.unit.change()),
                };
                // Where a row changes hands, what two users keep may change in one group.
                let hands = if self.truncated && moves_user { 2 } else { 1 };
                let by = copies.saturating_mul(held).saturating_mul(hands);
                return Moved { keys: copies.saturating_mul(sides).saturating_mul(held), by };
            }
            // A user has a key or not, however many of the user's elements do.
            let whole = self.grain == Grain::User;
            let held = if whole { 1 } else { held };
            let change = if whole && rung.unit.kind() != Kind::User { Change::Replace } else { rung.unit.change() };
            // An element whose group follows from who it is has that group or not.
            let fixed = self.known_keys() && !self.truncated && rung.unit.kind() == Kind::Element;
            if whole && rung.unit.kind() == Kind::Event && rung.unit.change() == Change::Replace {
                return Moved { keys: many(1).saturating_mul(4), by: 2 }; // two users change
            }
            Moved { keys: many(held).saturating_mul(if fixed { 1 } else { sides(change) }), by: 1 }
        });
        Presence { moved: moved.collect(), users }
    }

    fn add(&mut self, measure: Measure) -> usize {
        let text = format!("{:?} {} {}", measure.what, measure.low, measure.high);
        let same =
            self.measures.iter().position(|other| format!("{:?} {} {}", other.what, other.low, other.high) == text);
        same.unwrap_or_else(|| {
            self.measures.push(measure);
            self.measures.len() - 1
        })
    }

    fn statistic(&mut self, expr: &Expr) -> Result<Statistic, QueryError> {
        let (call, _) = aggregate_call(expr)?;
        let (name, params) = (call.func.name().to_owned(), &call.params);
        let said = format!("{}({})", name, params.args.iter().map(ToString::to_string).collect::<Vec<_>>().join(", "));
        if self.is_free(call) {
            return Ok(Statistic::Exact(Box::new(expr.clone())));
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
                if params.distinct {
                    return Err(refused(
                        &said,
                        "DISTINCT inside of a sum counts a value once over all users, so one user may change what others add",
                    ));
                }
                let argument = argument.cloned().or_else(|| params.args.first().cloned());
                let argument = argument.ok_or_else(|| refused(&said, "it has no argument"))?;
                self.moments(&name, &argument, &conditional, &said)
            }
            "median" | "approx_median" | "approx_percentile_cont" | "percentile_cont" | "min" | "max" => {
                let argument = argument.ok_or_else(|| refused(&said, "it has no argument"))?.clone();
                let share = params.args.iter().find_map(|arg| match arg {
                    Expr::Literal(value, _) => range::literal(value),
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
    fn is_free(&self, call: &datafusion::logical_expr::expr::AggregateFunction) -> bool {
        let public = |expr: &Expr| self.input.tag_of(expr, self.around).public;
        let parts = call.params.args.iter().chain(call.params.order_by.iter().map(|sort| &sort.expr));
        self.private.rows_public
            && self.key_tags.iter().all(|tag| tag.public)
            && parts.chain(call.params.filter.iter().map(AsRef::as_ref)).all(public)
    }

    fn count(&mut self, value: Option<Expr>, name: String) -> Result<usize, QueryError> {
        let rows =
            i64::try_from(self.rows()?).map_err(|_| refused(&name, "the cap on rows does not fit into 63 bits"))?;
        let moved = self.coordinates(0, rows)?;
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
        let moved = self.coordinates(0, high)?;
        let value = conditional(safe_value(argument, self.around)?)?;
        let what = What::Distinct { value, most };
        Ok(Statistic::Count(self.add(Measure { what, low: 0, high, moved, name: name.to_owned() })))
    }

    /// How far one unit of each rung moves, for each group, the number of users with rows in it.
    fn users_moved(&self) -> Result<Vec<Sensitivity>, QueryError> {
        if self.grain == Grain::User {
            return self.coordinates(0, 1);
        }
        // Of an element as of any unit; of a user, who has a key or not however many elements do, one each.
        let element = self.coordinates(0, 1)?;
        let whole = |rung: &Rung, held: u64| {
            let groups = self.groups_per_unit.saturating_mul(held).min(self.number.unwrap_or(u64::MAX));
            let support = if self.keys.is_empty() { Support::Single } else { Support::NonNegative };
            let bound = Bound::coordinates(groups, 0, 1, support);
            bound
                .map(|bound| bound.sensitivity(rung.unit.change()))
                .map_err(|error| QueryError::failed(error.to_string()))
        };
        let rungs = self.ladder.rungs().iter().zip(self.ladder.held()).zip(element);
        rungs
            .map(
                |((rung, &held), of_element)| {
                    if rung.unit.kind() == Kind::User { whole(rung, held) } else { Ok(of_element) }
                },
            )
            .collect()
    }

    fn range_of(&self, argument: &Expr, name: &str) -> Result<Range, QueryError> {
        let numeric = type_of(argument, self.input)?;
        if !(numeric.is_numeric() || numeric == DataType::Boolean) {
            return Err(QueryError::asked(
                format!("`{name}` needs a number, and `{argument}` is {numeric}"),
                "cast it to a number, or count it instead",
            ));
        }
        self.input.tag_of(argument, self.around).range.ok_or_else(|| {
            let column = argument.column_refs().iter().map(|column| column.name.clone()).min().unwrap_or_default();
            QueryError::asked(
                format!("`{name}` has no finite sensitivity: nothing bounds `{argument}`"),
                format!(
                    "declare `columns.{column} = {{ bounds = [low, high] }}` (or \"auto\") in whit.toml, or write clamp({argument}, low, high)"
                ),
            )
        })
    }

    fn auto(&mut self, argument: &Expr, value: &Expr) -> Result<usize, QueryError> {
        let name = argument.to_string();
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
        let whole = type_of(argument, self.input)?.is_integer();
        let sum = |draft: &mut Self, shape: Shape| -> Result<usize, QueryError> {
            let (place, low, high) = match range {
                Range::Known { low, high } => {
                    let quantise = Quantise::of(low, high, shape, whole)?;
                    let (low, high) = (quantise.low(), quantise.high());
                    (Place::Known(quantise), low, high)
                }
                Range::Auto => {
                    let (low, high) = quantise::found_range(shape);
                    (Place::Found { range: draft.auto(argument, &value)?, shape }, low, high)
                }
            };
            let rows = i64::try_from(draft.rows()?).ok();
            let (low, high) = rows
                .and_then(|rows| Some((low.min(0).checked_mul(rows)?, high.max(0).checked_mul(rows)?)))
                .filter(|(low, high)| low.unsigned_abs().max(high.unsigned_abs()) < 1 << 55)
                .ok_or_else(|| {
                    refused(name, "one unit's sum may leave 55 bits; declare smaller caps or narrower bounds")
                })?;
            let moved = draft.coordinates(low, high)?;
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
        let bound = shape.bound(self.groups_per_unit, rows).map_err(|error| refused(name, &error.to_string()))?;
        let weight = if self.grain == Grain::Row { 1.0 } else { WEIGHT as f64 };
        let moved = match bound {
            Bound::Ball { radius, .. } => self.ball((radius * weight).next_up())?,
            Bound::Coordinates { .. } => return Err(QueryError::failed("a tree's bound is a length")),
        };
        let high = i64::try_from(rows).unwrap_or(i64::MAX);
        let tree = self.add(Measure {
            what: What::Tree { value, tree, rows },
            low: 0,
            high,
            moved,
            name: format!("quantiles of {argument}"),
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

fn refused(name: &str, why: &str) -> QueryError {
    QueryError::asked(format!("`{name}` cannot be made private: {why}"), "ask it differently")
}

/// The values that `bin(x, low, high, n)` can take: the lower ends of its bins.
fn bins(expr: &Expr) -> Option<Vec<ScalarValue>> {
    let call = match expr {
        Expr::Alias(alias) => return bins(&alias.expr),
        Expr::ScalarFunction(call) if call.name() == "bin" => call,
        _ => return None,
    };
    let number = |i: usize| match call.args.get(i) {
        Some(Expr::Literal(value, _)) => range::literal(value),
        _ => None,
    };
    let (low, high, count) = (number(1)?, number(2)?, number(3)?);
    let edges = crate::functions::edges(low, high, count)?;
    Some(edges.into_iter().map(|edge| ScalarValue::Float64(Some(edge))).collect())
}

/// The scan of a table somewhere in a plan.
fn find_scan(
    plan: &datafusion::logical_expr::LogicalPlan,
    table: &str,
) -> Option<datafusion::logical_expr::LogicalPlan> {
    use datafusion::logical_expr::LogicalPlan;
    match plan {
        LogicalPlan::TableScan(scan) if scan.table_name.table() == table => Some(plan.clone()),
        _ => plan.inputs().into_iter().find_map(|input| find_scan(input, table)),
    }
}

fn scan_name(scan: &datafusion::logical_expr::LogicalPlan) -> Option<datafusion::common::TableReference> {
    match scan {
        datafusion::logical_expr::LogicalPlan::TableScan(scan) => Some(scan.table_name.clone()),
        _ => None,
    }
}

/// The values of an array.
pub(crate) fn scalars(array: &ArrayRef) -> Result<Vec<ScalarValue>, QueryError> {
    (0..array.len()).map(|i| ScalarValue::try_from_array(array, i).map_err(|error| planning(&error))).collect()
}
