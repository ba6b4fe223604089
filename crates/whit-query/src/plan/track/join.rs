//! Joins: with public tables, of which it is known how many partners a row finds, and of private tables along the user.

use super::equality::{of_one_kind, sorted_out};
use super::order::untangled;
use super::{Caps, Lost, Private, Surroundings, Tag, Tracked, built, never, safe_value, track, type_of, without};
use crate::error::{QueryError, planning};
use crate::evaluate::words::{said, written};
use crate::plan::{ELEMENT, USER};
use crate::source::is_text;
use crate::translate::in_words;
use datafusion::arrow::array::{Array, Int64Array};
use datafusion::arrow::datatypes::DataType;
use datafusion::common::{Column, NullEquality};
use datafusion::logical_expr::utils::{conjunction, split_conjunction_owned};
use datafusion::logical_expr::{BinaryExpr, Expr, Join, JoinType, LogicalPlan, LogicalPlanBuilder, Operator, lit};
use datafusion::prelude::col;
use std::collections::BTreeSet;
use std::sync::Arc;
use whit_core::declare::Owning;

/// Whether both sides of each equality are of one kind: a text that is turned into a number may find more partners than there are equal texts.
fn comparable(own: &[Expr], owner: &Tracked, others: &[Expr], other: &Tracked) -> Result<(), QueryError> {
    for (a, b) in own.iter().zip(others) {
        let (left, right) = (type_of(a, owner)?, type_of(b, other)?);
        if !of_one_kind(&left, &right) {
            return Err(QueryError::asked(
                format!(
                    "`{}` is {} and `{}` is {}, so how many partners a row finds would depend on how they are compared",
                    said(a),
                    in_words(&left),
                    said(b),
                    in_words(&right)
                ),
                "cast one of them in a sub-query, or declare both tables with one type",
            ));
        }
    }
    Ok(())
}

/// Whether both sides of an equality are text, or none is: the engine would read the one as the other, row by row, and what cannot be read would find nobody, at full price.
fn both_text_or_none(own: &Expr, owner: &Tracked, others: &Expr, other: &Tracked) -> Result<(), QueryError> {
    let (left, right) = (type_of(own, owner)?, type_of(others, other)?);
    let null = [&left, &right].contains(&&DataType::Null);
    if null || is_text(&left) == is_text(&right) {
        return Ok(());
    }
    let (one, another) = (in_words(&left), in_words(&right));
    let number = written(if is_text(&left) { others } else { own });
    Err(QueryError::asked(
        format!("`{}` is {one} and `{}` is {another}, so they are not joined", said(own), said(others)),
        format!("declare both columns with one type, or join in a sub-query that has CAST({number} AS VARCHAR)"),
    ))
}

fn has_limit(plan: &LogicalPlan) -> bool {
    match plan {
        LogicalPlan::Limit(_) => true,
        LogicalPlan::Sort(sort) if sort.fetch.is_some() => true,
        other => other.inputs().into_iter().any(has_limit),
    }
}

/// The most rows of a public relation that share values of some expressions: how many partners one row finds.
fn partners(plan: &LogicalPlan, keys: Vec<Expr>, around: &Surroundings<'_>) -> Result<u64, QueryError> {
    use datafusion::functions_aggregate::expr_fn::{count, max};
    let counted = LogicalPlanBuilder::from(plan.clone()).aggregate(keys, vec![count(lit(1_i64)).alias("partners")]);
    let most =
        counted.and_then(|builder| builder.aggregate(Vec::<Expr>::new(), vec![max(col("partners")).alias("most")]));
    let batches = (around.collect)(built(most)?)?;
    let found = batches.first().and_then(|batch| {
        batch.column(0).as_any().downcast_ref::<Int64Array>().filter(|most| most.is_valid(0)).map(|most| most.value(0))
    });
    Ok(found.map_or(0, |most| most.max(0) as u64))
}

pub(super) fn pair(join: &Join, around: &Surroundings<'_>) -> Result<Tracked, Lost> {
    if let Some((plan, rest)) = untangled(&LogicalPlan::Join(join.clone()), Vec::new())? {
        let plan = match conjunction(rest) {
            Some(rest) => built(LogicalPlanBuilder::from(plan).filter(rest))?,
            None => plan,
        };
        return track(&plan, around);
    }
    let (left, right) = (track(&join.left, around)?, track(&join.right, around)?);
    let (whole, (join, compared)) = (sorted_out(join)?, without_not_in(join)?);
    match (left.private.clone(), right.private.clone()) {
        (None, None) => {
            let tags = joined_tags(join.join_type, &left.tags, &right.tags);
            Ok(Tracked { plan: LogicalPlan::Join(whole), tags, private: None })
        }
        (Some(private), None) => {
            if !keeps_left(join.join_type) {
                return unsided(join.join_type);
            }
            let join = match compared {
                // Nothing but the list decides, and the engine looks for NULL in it.
                Some(_) if join.on.is_empty() && join.filter.is_none() => whole,
                Some(compared) => {
                    comparable(std::slice::from_ref(&compared.0), &left, std::slice::from_ref(&compared.1), &right)?;
                    with_condition(join, compared)
                }
                None => join,
            };
            with_public(&join, left, right, private, true, around)
        }
        (None, Some(private)) => {
            if !matches!(join.join_type, JoinType::Inner | JoinType::Right | JoinType::RightSemi | JoinType::RightAnti)
            {
                return unsided(join.join_type);
            }
            with_public(&join, left, right, private, false, around)
        }
        (Some(a), Some(b)) => along_user(join, compared, left, right, &a, &b, around),
    }
}

/// The two sides of what `NOT IN` compares.
type Compared = (Expr, Expr);

/// A join by its equalities and other conditions, without the one by which it is a `NOT IN`: that compares with NULL in a way of its own.
fn without_not_in(join: &Join) -> Result<(Join, Option<Compared>), Lost> {
    if !join.null_aware {
        return Ok((sorted_out(join)?, None));
    }
    let mut conditions = join.filter.clone().map(split_conjunction_owned).unwrap_or_default();
    // It is written before the others.
    match (!conditions.is_empty()).then(|| conditions.remove(0)) {
        Some(Expr::BinaryExpr(BinaryExpr { left, op: Operator::Eq, right })) if join.on.is_empty() => {
            let rest = Join { filter: conjunction(conditions), null_aware: false, ..join.clone() };
            Ok((sorted_out(&rest)?, Some((*left, *right))))
        }
        _ => never(
            "this NOT IN cannot be told apart from its other conditions",
            "write NOT EXISTS (SELECT 1 FROM … WHERE …) instead",
        ),
    }
}

/// The join with what `NOT IN` asks beside its other conditions: whatever is equal, or missing on either side, is a partner, and a row with one does not stay.
fn with_condition(join: Join, (one, other): Compared) -> Join {
    let missing = one.clone().is_null().or(other.clone().is_null());
    let filter = conjunction(join.filter.into_iter().chain([one.eq(other).or(missing)]));
    Join { filter, ..join }
}

/// Whether each row that comes out is one of the left side's, alone or beside others.
fn keeps_left(join_type: JoinType) -> bool {
    use JoinType::{Inner, Left, LeftAnti, LeftMark, LeftSemi};
    matches!(join_type, Inner | Left | LeftSemi | LeftAnti | LeftMark)
}

fn unsided<T>(join_type: JoinType) -> Result<T, Lost> {
    if !matches!(join_type, JoinType::Inner | JoinType::Left | JoinType::Right | JoinType::Full) {
        return never(
            "a sub-query inside an expression reads a private table, and would decide which public rows stay",
            "ask of the private table, and join the public one to it",
        );
    }
    never(
        format!(
            "a {join_type} join would make rows for public rows without a private partner, and these belong to nobody"
        ),
        "use an inner join, or put the private table on the side whose rows all stay",
    )
}

fn joined_tags(join_type: JoinType, left: &[Tag], right: &[Tag]) -> Vec<Tag> {
    match join_type {
        JoinType::LeftSemi | JoinType::LeftAnti => left.to_vec(),
        JoinType::RightSemi | JoinType::RightAnti => right.to_vec(),
        JoinType::LeftMark => left.iter().cloned().chain([Tag::default()]).collect(),
        JoinType::RightMark => right.iter().cloned().chain([Tag::default()]).collect(),
        JoinType::Inner | JoinType::Left | JoinType::Right | JoinType::Full => {
            left.iter().chain(right).cloned().collect()
        }
    }
}

fn rejoined(
    join: &Join,
    left: LogicalPlan,
    right: LogicalPlan,
    around: &Surroundings<'_>,
) -> Result<LogicalPlan, QueryError> {
    let on = join.on.iter().map(|(a, b)| Ok((safe_value(a, around)?, safe_value(b, around)?)));
    let on = on.collect::<Result<Vec<_>, QueryError>>()?;
    let filter = join.filter.as_ref().map(|filter| safe_value(filter, around)).transpose()?;
    let joined = Join::try_new(
        Arc::new(left),
        Arc::new(right),
        on,
        filter,
        join.join_type,
        join.join_constraint,
        join.null_equality,
        join.null_aware,
    );
    Ok(LogicalPlan::Join(joined.map_err(|error| planning(&error))?))
}

fn with_public(
    join: &Join,
    left: Tracked,
    right: Tracked,
    mut private: Private,
    private_left: bool,
    around: &Surroundings<'_>,
) -> Result<Tracked, Lost> {
    let (owner, other) = if private_left { (&left, &right) } else { (&right, &left) };
    let ends = |(a, b): &(Expr, Expr)| if private_left { (a.clone(), b.clone()) } else { (b.clone(), a.clone()) };
    let (own, others): (Vec<Expr>, Vec<Expr>) = join.on.iter().map(ends).unzip();
    let own_public = own.iter().all(|expr| owner.tag_of(expr, around).public);
    let own_known = own.iter().all(|expr| owner.tag_of(expr, around).known);
    let filtered = join.filter.as_ref().map(|filter| {
        filter
            .column_refs()
            .iter()
            .all(|column| owner.tag(column).or_else(|| other.tag(column)).is_some_and(|tag| tag.public))
    });
    let public = own_public && filtered.unwrap_or(true);
    private.rows_public &= public;
    comparable(&own, owner, &others, other)?;
    if has_limit(&other.plan) {
        return never(
            "LIMIT inside of a table that private rows are joined with: which of its rows stay may change from run to run",
            "leave it out, or make a public table of the result",
        );
    }
    let widens = matches!(join.join_type, JoinType::Inner | JoinType::Left | JoinType::Right);
    let most = if widens { partners(&other.plan, others, around)?.max(1) } else { 1 };
    private.copies = private.copies.and_then(|copies| copies.checked_mul(most));
    private.rows_of_user = private.rows_of_user.and_then(|rows| rows.checked_mul(most));
    private.rows_of_element = private.rows_of_element.and_then(|rows| rows.checked_mul(most));
    // What is declared is about rows of the source: who is within a cap there is not cut here.
    private.caps = private.caps.times(most);
    if most > 1 {
        private.unique.clear();
    }
    let adopt = |tag: &Tag| Tag {
        public: tag.public && public,
        known: own_known && most <= 1 && filtered.is_none(),
        user: false,
        element: false,
        ..tag.clone()
    };
    let adopted: Vec<Tag> = other.tags.iter().map(adopt).collect();
    let tags = if private_left {
        joined_tags(join.join_type, &left.tags, &adopted)
    } else {
        joined_tags(join.join_type, &adopted, &right.tags)
    };
    let plan = rejoined(join, left.plan, right.plan, around)?;
    Ok(Tracked { plan, tags, private: Some(private) })
}

/// The side of a join of whose rows each finds at most one partner on the other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum KeySide {
    Left,
    Right,
}

/// A join of two private relations whose rows belong to one user.
struct Meeting {
    join: Join,
    left: Tracked,
    right: Tracked,
    /// The side whose rows find at most one partner each,
    single: Option<KeySide>,
    /// and the same where that is known by a key that is no user.
    linked: Option<KeySide>,
    /// Whether it was the planner that said so, and no declared key: what is asked may have meant other rows.
    added: bool,
}

/// The right side's user, where it is compared with the left side's.
const PARTNER: &str = "__whit_partner";

/// A join of two private relations, in which rows meet only where they belong to one user: where the question does not say so, the planner does. (An order's lines are those
/// of the order's customer; where keys lead astray, rows of two users would meet.) The left side's user goes on; what else is hidden ends here.
fn of_one_user(
    mut join: Join,
    compared: Option<&Compared>,
    left: Tracked,
    right: Tracked,
    around: &Surroundings<'_>,
) -> Result<Meeting, Lost> {
    let (mut linked, mut single, mut implied) = (None, None, false);
    let unique = |tracked: &Tracked, column: &(String, String)| {
        tracked.private.as_ref().is_some_and(|private| private.unique.contains(column))
    };
    for (x, y) in join.on.iter().chain(compared) {
        let (x, y) = (left.tag_of(x, around), right.tag_of(y, around));
        let users = x.user && y.user;
        let (Some(x), Some(y)) = (x.origin, y.origin) else { continue };
        let (one, other) = (led_to(&x, around), led_to(&y, around));
        implied |= (one.is_some() || other.is_some()) && one.as_ref().unwrap_or(&x) == other.as_ref().unwrap_or(&y);
        // Where NULL finds NULL, what nobody has twice may be missing twice.
        let side = match (unique(&left, &x), unique(&right, &y)) {
            _ if join.null_equality == NullEquality::NullEqualsNull => None,
            (_, true) => Some(KeySide::Left),
            (true, false) => Some(KeySide::Right),
            (false, false) => None,
        };
        single = single.or(side);
        // How many rows a user has in a table of users is what its cap says.
        linked = linked.or(side.filter(|_| !users));
    }
    let along = join.on.iter().any(|(x, y)| left.tag_of(x, around).user && right.tag_of(y, around).user);
    let names =
        |tracked: &Tracked| tracked.private.as_ref().map(|private| (private.dataset.clone(), private.sources.clone()));
    let ((one, ones), (other, others)) = (names(&left).unwrap_or_default(), names(&right).unwrap_or_default());
    let (alone, compares) = (ones == others, !join.on.is_empty() || compared.is_some());
    let ours = left.hidden(USER);
    let left = without(left, &[ELEMENT])?;
    if along {
        return Ok(Meeting { join, left, right: without(right, &[USER, ELEMENT])?, single, linked, added: false });
    }
    match ours {
        // Rows of one table that share a value are seldom meant to be one user's only.
        Some(ours) if right.hidden(USER).is_some() && (implied || (compares && !alone)) => {
            join.on.push((ours, Expr::Column(Column::new_unqualified(PARTNER))));
            Ok(Meeting { join, left, right: as_partner(right)?, single, linked, added: !implied })
        }
        _ => never(
            format!(
                "`{one}` and `{other}` are both private and are not joined along the user, so one user's rows would meet another's"
            ),
            "add the user columns to the join condition: ON a.user_id = b.user_id AND …",
        ),
    }
}

/// The key that a column leads to by its declaration, if it is one that says whose rows are.
fn led_to((table, column): &(String, String), around: &Surroundings<'_>) -> Option<(String, String)> {
    let dataset = around.declaration.datasets.get(table)?;
    match around.declaration.owning(dataset)? {
        Owning::LookedUp { column: own, table, key } if own == column => Some((table.to_owned(), key.to_owned())),
        _ => None,
    }
}

/// A relation whose user has another name, so that it can be compared with that of the relation which it is joined to.
fn as_partner(tracked: Tracked) -> Result<Tracked, QueryError> {
    let user = tracked.hidden(USER);
    let tracked = without(tracked, &[ELEMENT])?;
    let exprs = tracked.plan.schema().iter().map(|field| {
        let column = Expr::from(field);
        if Some(&column) == user.as_ref() { column.alias(PARTNER) } else { column }
    });
    let exprs: Vec<Expr> = exprs.collect();
    let plan = built(LogicalPlanBuilder::from(tracked.plan).project(exprs))?;
    Ok(Tracked { plan, ..tracked })
}

/// The same without the partner's user, where it was named.
fn without_partner(plan: LogicalPlan, tags: Vec<Tag>) -> Result<(LogicalPlan, Vec<Tag>), QueryError> {
    if plan.schema().iter().all(|(_, field)| field.name() != PARTNER) {
        return Ok((plan, tags));
    }
    let kept = plan.schema().iter().zip(tags).filter(|((_, field), _)| field.name() != PARTNER);
    let (exprs, tags): (Vec<Expr>, Vec<Tag>) = kept.map(|(field, tag)| (Expr::from(field), tag)).unzip();
    Ok((built(LogicalPlanBuilder::from(plan).project(exprs))?, tags))
}

fn along_user(
    mut join: Join,
    mut compared: Option<Compared>,
    left: Tracked,
    right: Tracked,
    a: &Private,
    b: &Private,
    around: &Surroundings<'_>,
) -> Result<Tracked, Lost> {
    if a.payer != b.payer {
        return never(
            format!(
                "`{}` and `{}` have separate budgets, so no budget would pay for a question about both",
                a.dataset, b.dataset
            ),
            "lead the user key of one to the other: unit.user = \"orders.customer_id -> customers.id\"",
        );
    }
    if !keeps_left(join.join_type) {
        return never(
            format!(
                "a {} join of two private tables is not known to keep the user",
                join.join_type.to_string().to_uppercase()
            ),
            "use an inner or left join",
        );
    }
    if a.rows_public || b.rows_public {
        return never(
            "a join of two tables whose rows are public would mix what is public with what is not",
            "ask each table on its own",
        );
    }
    for (x, y) in join.on.iter().chain(&compared) {
        both_text_or_none(x, &left, y, &right)?;
    }
    // Nobody's user is missing, so that there NOT IN is no more than NOT EXISTS.
    let users = |(x, y): &mut Compared| left.tag_of(x, around).user && right.tag_of(y, around).user;
    join.on.extend(compared.take_if(users));
    // A list that does not depend on the row is that of all users, and nobody finds what is missing in it.
    let listed = join.on.is_empty() && join.filter.is_none();
    let there = compared.as_ref().filter(|_| listed).map(|(x, _)| x.clone());
    let Meeting { join, left, right, single, linked, added } =
        of_one_user(join, compared.as_ref(), left, right, around)?;
    let join = &match compared {
        Some(compared) => with_condition(join, compared),
        None => join,
    };
    // Where a row finds no partner, the right side's user is missing and says nothing of whose the row is.
    let outer = join.join_type == JoinType::Left;
    let known =
        |tag: &Tag| if outer { Tag { user: false, known: false, public: false, ..tag.clone() } } else { tag.clone() };
    let right_tags: Vec<Tag> = right.tags.iter().map(known).collect();
    let tags = joined_tags(join.join_type, &left.tags, &right_tags);
    let plan = rejoined(join, left.plan, right.plan, around)?;
    let (mut plan, tags) = without_partner(plan, tags)?;
    if let Some(there) = there {
        plan = built(LogicalPlanBuilder::from(plan).filter(safe_value(&there, around)?.is_not_null()))?;
    }
    // Each row of a user may meet each of the other side's, so the caps of both tables bound the result, in whichever order they stand.
    // A semi-join keeps rows of the left side, once each.
    let widens = matches!(join.join_type, JoinType::Inner | JoinType::Left);
    let of_user = |rows: Option<u64>, others: Option<u64>| match (rows, others) {
        (Some(rows), _) if !widens => Some(rows),
        (Some(rows), Some(others)) => rows.checked_mul(others.max(1)),
        _ => None,
    };
    let caps = match linked {
        _ if !widens => a.caps,
        // Each row finds at most one: whoever keeps to the caps of the side that has them is not cut here.
        Some(KeySide::Left) => a.caps,
        Some(KeySide::Right) if join.join_type == JoinType::Inner => b.caps,
        // and rows of the left side without any partner stand beside them.
        Some(KeySide::Right) => a.caps.with(b.caps, u64::checked_add),
        None => a.caps.with(b.caps, u64::checked_mul),
    };
    let unique = match single {
        _ if !widens => a.unique.clone(),
        // The same column of the same table would stand for two.
        _ if !a.sources.is_disjoint(&b.sources) => BTreeSet::new(),
        Some(KeySide::Left) => a.unique.clone(),
        Some(KeySide::Right) => b.unique.clone(),
        None => BTreeSet::new(),
    };
    let private = Private {
        unique,
        element: false,
        copies: None,
        rows_of_user: of_user(a.rows_of_user, b.rows_of_user),
        rows_of_element: None,
        caps: Caps { of_element: None, ..caps },
        met: added || a.met || b.met,
        ..a.together(b)
    };
    Ok(Tracked { plan, tags, private: Some(private) })
}
