//! What must agree within a declaration: the protected rung and its columns, budgets and rungs, tables and keys.

use super::error::DeclareResult;
use super::value::{Entries, KeyPosition, TomlValue};
use super::{Dataset, Declaration, Keys, UnitDeclaration, UserKey};
use crate::unit::{Change, Kind, LadderError};

/// A table has a unit, or is public; never both, never neither.
pub(super) fn unit_or_public(table: &Entries<'_>, public: bool) -> DeclareResult<()> {
    if !public {
        return match table.get("unit") {
            Some(_) => Ok(()),
            None => Err(table.place().wrong(
                "{key} has no unit, so it is not known what one whit of it is",
                "add unit.user and unit.protect = \"user\", or public = true if the whole table is public",
            )),
        };
    }
    for (name, what) in [("unit", "a unit"), ("budget", "budgets")] {
        if let Some(value) = table.get(name) {
            return Err(value.wrong(
                &format!("{{key}} gives {what} to a table that is public, so nothing of it would be protected"),
                format!("leave out `public = true` to protect the table, or leave out `{name}`"),
            ));
        }
    }
    Ok(())
}

/// A column of slices divides a private table, and units of some rung that is charged lie in one slice each: else nothing would ever be charged to a slice alone.
pub(super) fn slice(value: &TomlValue<'_>, unit: Option<&UnitDeclaration>) -> DeclareResult<String> {
    let column = value.text("name the column by whose values questions are charged apart: slice = \"day\"")?;
    let Some(unit) = unit else {
        return Err(value.wrong("{key} divides a table that is public, and nothing of it is charged", "leave it out"));
    };
    let Ok(ladder) = unit.ladder() else { return Ok(column) }; // said already
    if ladder.rungs().iter().any(|rung| unit.lies_in_one_slice(&rung.unit, &column)) {
        return Ok(column);
    }
    let (why, hint) = match unit.protect {
        Kind::Event => (
            "a row that is replaced may go from one slice to another",
            "write unit.change = \"add-remove\", or leave `slice` out".to_owned(),
        ),
        Kind::Element => (
            "an element is not known to lie in one slice",
            format!("make the column itself the element, unit.element = \"{column}\", or leave `slice` out"),
        ),
        Kind::User => (
            "a user has rows in many slices",
            format!(
                "make the column the element, unit.element = \"{column}\" with unit.protect = \"element\": what is protected then is a user's rows in one slice. Or leave `slice` out"
            ),
        ),
        Kind::Feature | Kind::Label if unit.user.is_some() => (
            "one user's rows, of which each keeps its public columns, may lie in many slices",
            "leave out unit.user, so that one row is protected, or leave `slice` out".to_owned(),
        ),
        Kind::Feature | Kind::Label => (
            "its column is private, so that a row may go from one slice to another",
            format!("list it, unit.public = [\"{column}\"], if it is known of everybody anyway; or leave `slice` out"),
        ),
    };
    Err(value.wrong(
        &format!("{{key}} is `{column}`, but `unit.protect` is `{}`, and {why}: questions about several slices would still be paid by one unit", unit.protect),
        hint,
    ))
}

/// The protected rung has the columns that it needs, and nothing is declared that would be ignored.
pub(super) fn unit(dataset: &str, unit: &UnitDeclaration, table: &Entries<'_>) -> DeclareResult<()> {
    let missing = |name: &str, why: &str, hint: &str| {
        let sentence = format!("{{key}} is missing, and {why}");
        Err(table.place().below(name).wrong(&sentence, hint))
    };
    let user_hint = "name the column that says whose a row is: unit.user = \"user_id\"";
    let element_hint =
        "name what parts a user's rows: unit.element = \"date_trunc('day', at)\", or protect another rung";
    match unit.protect {
        Kind::Element if unit.user.is_none() => {
            return missing("user", "`unit.protect` is `element`: a user's rows in one element", user_hint);
        }
        Kind::Element if unit.element.is_none() => {
            return missing("element", "`unit.protect` is `element`: a user's rows in one element", element_hint);
        }
        Kind::User if unit.user.is_none() => return missing("user", "`unit.protect` is `user`", user_hint),
        Kind::Feature if unit.public.is_empty() => {
            let hint = "list what is known anyway, unit.public = [\"education\"], or protect = \"event\"";
            return missing("public", "`unit.protect` is `feature`: all columns but the public ones", hint);
        }
        Kind::Label if unit.label.is_none() => {
            let hint = "name the one private column: unit.label = \"clicked\"";
            return missing("label", "`unit.protect` is `label`", hint);
        }
        Kind::Event | Kind::Element | Kind::Feature | Kind::Label | Kind::User => {}
    }
    if unit.user.is_none() && unit.element.is_some() {
        return missing("user", "an element is the rows of one user in one part of the data", user_hint);
    }
    idle(unit, table)?;
    public_columns(unit, table)?;
    caps(unit, table)?;
    // Caps whose product does not fit, and the like.
    unit.ladder().map(|_| ()).map_err(|error| {
        let sentence = format!("`dataset.{dataset}` has no ladder that stands: {error}");
        table.place().wrong(&sentence, error.hint())
    })
}

/// Refuses what would be read and then have no effect.
fn idle(unit: &UnitDeclaration, table: &Entries<'_>) -> DeclareResult<()> {
    let (protect, of_columns) = (unit.protect, matches!(unit.protect, Kind::Feature | Kind::Label));
    let refuse = |name: &str, why: &str, hint: &str| match table.get(name) {
        Some(value) => {
            Err(value.wrong(&format!("{{key}} has no meaning where `unit.protect` is `{protect}`{why}"), hint))
        }
        None => Ok(()),
    };
    if protect != Kind::Label {
        refuse("label", "", "leave it out, or write unit.protect = \"label\"")?;
    }
    if of_columns {
        refuse("element", ", whose units are rows or users", "leave it out, or write unit.protect = \"element\"")?;
    }
    if of_columns && unit.change == Some(Change::AddRemove) {
        refuse("change", ": such units are replaced by definition", "leave it out")?;
    }
    Ok(())
}

fn public_columns(unit: &UnitDeclaration, table: &Entries<'_>) -> DeclareResult<()> {
    let Some(value) = table.get("public") else { return Ok(()) };
    if let Some(label) = unit.label.as_ref().filter(|label| unit.public.contains(label)) {
        return Err(value.wrong(
            &format!("{{key}} lists `{label}`, which is the label, and so private"),
            "leave it out: all columns but the label are public anyway",
        ));
    }
    let user = unit.user.as_ref().map(UserKey::column);
    let whose = user.filter(|user| unit.public.iter().any(|column| column == user));
    match (whose, unit.protect) {
        (Some(user), Kind::Event | Kind::Element | Kind::User) => Err(value.wrong(
            &format!("{{key}} lists `{user}`, the user column, but who a user is may change between neighbours"),
            "leave it out",
        )),
        (Some(_), Kind::Feature | Kind::Label) | (None, _) => Ok(()),
    }
}

fn caps(unit: &UnitDeclaration, table: &Entries<'_>) -> DeclareResult<()> {
    let Some(value) = table.get("caps") else { return Ok(()) };
    let caps = &unit.caps;
    let refuse = |name: &str, what: &str, hint: &str| {
        Err(value.place().below(name).wrong(&format!("{{key}} caps {what}, and none is declared"), hint))
    };
    if unit.element.is_none() {
        let hint = "add unit.element, or cap the user's rows: rows_per_user = 50";
        for (name, cap) in [("elements_per_user", caps.elements_per_user), ("rows_per_element", caps.rows_per_element)]
        {
            if cap.is_some() {
                return refuse(name, "elements", hint);
            }
        }
    }
    if unit.user.is_none() && caps.rows_per_user.is_some() {
        return refuse("rows_per_user", "users", "add unit.user, or leave the cap out");
    }
    Ok(())
}

/// A budget names a rung that is on the ladder, so that it is charged.
pub(super) fn budget_rung(kind: Kind, unit: &UnitDeclaration, value: &TomlValue<'_>) -> DeclareResult<()> {
    let Ok(ladder) = unit.ladder() else { return Ok(()) }; // said already
    if ladder.rung(kind).is_some() {
        return Ok(());
    }
    let on: Vec<String> = ladder.rungs().iter().map(|rung| format!("budget.{}", rung.unit.kind())).collect();
    let on = format!("budgets can be given for {}", on.join(", "));
    match unit.missing(kind) {
        Some(LadderError::NoCap { cap, .. }) => {
            // Without an element the whole user is one, and the cap goes by another name.
            let cap = if unit.element.is_none() { "rows_per_user" } else { cap };
            Err(value.wrong(
                &format!("{{key}} cannot be kept: without `{cap}` one {kind} may hold any number of {}s", unit.protect),
                format!("declare unit.caps.{cap}; what a user has beyond it is left out. Else {on}"),
            ))
        }
        Some(LadderError::Order { .. }) => Err(value.wrong(
            &format!(
                "{{key}} names a rung below the protected one, `{}`, which hides all that moves within it",
                unit.protect
            ),
            format!("leave it out, or write unit.protect = \"{kind}\"; {on}"),
        )),
        _ => Err(value.wrong("{key} names a rung that is not declared", on)),
    }
}

/// What one data set says of another holds.
pub(super) fn references(declaration: &Declaration, dataset: &Dataset, table: &Entries<'_>) -> DeclareResult<()> {
    through(declaration, dataset, table)?;
    let Some(columns) = table.get("columns") else { return Ok(()) };
    let columns = columns.names("")?;
    for (name, value) in columns.iter() {
        let Some(Keys::FromTable { table: other, column }) = dataset.keys(name) else { continue };
        let place = value.place().below("keys");
        match declaration.dataset(other) {
            Err(error) => {
                return Err(
                    place.wrong(&format!("{{key}} are taken from `{other}.{column}`, but {error}"), error.hint())
                );
            }
            Ok(found) if !found.public => {
                return Err(place.wrong(
                    &format!("{{key}} are taken from `{other}`, which is private, so its keys are not known"),
                    format!(
                        "write public = true under [dataset.{other}] if the whole of it is public, or list the keys"
                    ),
                ));
            }
            Ok(_) => {}
        }
    }
    Ok(())
}

/// A key to another table leads to that table's users, at once or from table to table; else one person would be two.
///
/// Where it is looked up, one row of the other table decides whose many rows are: whoever changes that row changes the owner of all of them, so that nothing less than
/// the whole user is protected by any table of the chain.
fn through(declaration: &Declaration, dataset: &Dataset, table: &Entries<'_>) -> DeclareResult<()> {
    let user = dataset.unit.as_ref().and_then(|unit| unit.user.as_ref());
    let Some(UserKey::Through { column, other_table, .. }) = user else { return Ok(()) };
    let place = match table.get("unit") {
        Some(unit) => unit.place().below("user"),
        None => table.place().clone(),
    };
    let mut passed = vec![dataset.name.as_str()];
    let (mut at, mut payer, mut looked_up) = (user, dataset, false);
    while let Some(UserKey::Through { other_table, other_column, .. }) = at {
        let other = declaration
            .dataset(other_table)
            .map_err(|error| place.wrong(&format!("{{key}} leads to `{other_table}`, but {error}"), error.hint()))?;
        if passed.contains(&other.name.as_str()) {
            return Err(place.wrong(
                &format!("{{key}} leads from `{}` back to `{other_table}`, and so to nobody", passed.join("`, `")),
                format!("let one of them name its users alone, as in unit.user = \"{column}\""),
            ));
        }
        passed.push(&other.name);
        payer = other;
        at = other.unit.as_ref().and_then(|unit| unit.user.as_ref());
        looked_up |= at.is_some_and(|there| there.column() != other_column);
    }
    if at.is_none() {
        return Err(place.wrong(
            &format!("{{key}} leads to `{}`, which has no users", payer.name),
            format!("name the column alone, unit.user = \"{column}\", or give `{other_table}` a unit.user"),
        ));
    }
    let finer = |name: &&&str| {
        let unit = declaration.datasets.get(**name).and_then(|dataset| dataset.unit.as_ref());
        unit.is_some_and(|unit| unit.protect != Kind::User)
    };
    match passed.iter().find(finer) {
        Some(finer) if looked_up => Err(place.wrong(
            &format!("{{key}} is looked up, so that one row elsewhere decides whose many rows are, but `{finer}` protects less than a user"),
            format!("write unit.protect = \"user\" for each of `{}`, or write the user into the rows of `{}`", passed.join("`, `"), dataset.name),
        )),
        _ => one_promise(dataset, payer, &place),
    }
}

/// Questions about a table whose users are another's are paid for there, at the unit that is declared there: what this one says of either would be shown and not kept.
fn one_promise(dataset: &Dataset, other: &Dataset, place: &KeyPosition<'_>) -> DeclareResult<()> {
    let (name, payer) = (&dataset.name, &other.name);
    if !dataset.budgets.is_empty() {
        return Err(place.wrong(
            &format!("{{key}} leads to `{payer}`, whose budget pays, but `{name}` has a budget of its own, which nothing would be held to"),
            format!("declare the budget under [dataset.{payer}] alone"),
        ));
    }
    let change = |dataset: &Dataset| dataset.unit.as_ref().map(UnitDeclaration::change);
    if change(dataset) != change(other) {
        return Err(place.wrong(
            &format!("{{key}} leads to `{payer}`, but units of `{name}` change in another way (unit.change) than there, and a user is one"),
            format!("write the same unit.change for `{name}` and `{payer}`"),
        ));
    }
    Ok(())
}
