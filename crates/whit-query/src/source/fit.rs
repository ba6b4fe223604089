//! Whether a declaration fits the columns that are really there.

use super::spelling::Spelling;
use super::{Source, line};
use crate::error::QueryError;
use crate::translate::{in_our_words, in_words};
use datafusion::arrow::datatypes::DataType;
use datafusion::common::tree_node::TreeNode;
use datafusion::common::{Column, DFSchema};
use datafusion::logical_expr::{Expr, ExprSchemable};
use datafusion::prelude::SessionContext;
use std::collections::BTreeMap;
use std::path::Path;
use whit_core::declare::{Bounds, ElementSource, Keys, UserKey, nearest};
use whit_core::unit::SliceKind;

type Check = Result<(), QueryError>;

pub(super) fn check(
    source: &Source,
    sources: &BTreeMap<String, Source>,
    context: &SessionContext,
    folder: &Path,
) -> Check {
    columns(source, sources)?;
    let Some(unit) = &source.dataset.unit else { return Ok(()) };
    if let Some(user) = &unit.user {
        let kind = column(source, user.column(), "unit.user")?;
        identity(source, kind, user.column(), "says whose a row is")?;
        if let UserKey::Through { other_table, other_column, .. } = user {
            through(source, user, kind, sources.get(other_table), other_column)?;
        }
    }
    for name in &unit.public {
        column(source, name, "unit.public")?;
    }
    if let Some(label) = &unit.label {
        column(source, label, "unit.label")?;
    }
    if let Some(name) = &source.dataset.slice {
        let kind = column(source, name, "slice")?;
        if slice_kind(kind).is_none() {
            return Err(QueryError::asked(
                format!("`{}.{name}` divides rows into slices, but is {}", source.dataset.name, in_words(kind)),
                "slices are whole numbers, days or texts: make it one of these where it is written, such as a date in place of a time",
            ));
        }
    }
    match &unit.element {
        None => Ok(()),
        Some(ElementSource::Expression(text)) => expression(source, text, context),
        Some(ElementSource::Dictionary { column: name, .. }) => {
            identity(source, column(source, name, "unit.element")?, name, "says which element a row falls into")
        }
        Some(ElementSource::PartitionFile { column: name, path }) => {
            identity(source, column(source, name, "unit.element")?, name, "says which element a row falls into")?;
            if folder.join(path).is_file() {
                return Ok(());
            }
            Err(QueryError::asked(
                format!("there is no partition file `{path}`, which `unit.element` of `{}` names", source.dataset.name),
                "it is looked for relative to `whit.toml`; `PartitionFile::save` writes one",
            ))
        }
    }
}

/// The kind of slices that a column of this type makes; none where its values are not whole numbers, days or texts.
pub(crate) fn slice_kind(kind: &DataType) -> Option<SliceKind> {
    match kind {
        DataType::Date32 => Some(SliceKind::Day),
        // The largest of these do not fit into the numbers that slices have.
        DataType::UInt64 => None,
        kind if kind.is_integer() => Some(SliceKind::Number),
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => Some(SliceKind::Text),
        _ => None,
    }
}

/// What is declared of columns.
fn columns(source: &Source, sources: &BTreeMap<String, Source>) -> Check {
    let own = |name: &&String| name.to_lowercase().starts_with("__whit");
    if let Some(name) = source.schema.fields().iter().map(|field| field.name()).find(own) {
        return Err(QueryError::asked(
            format!(
                "`{}.{name}` has a name that begins with `__whit`, and such names are kept for whit itself",
                source.dataset.name
            ),
            "call the column something else where the file is written",
        ));
    }
    for (name, declared) in &source.dataset.columns {
        let kind = column(source, name, &format!("columns.{}", line::key(name)))?;
        let fits = match declared.bounds {
            Some(Bounds::Days { .. }) => matches!(kind, DataType::Date32 | DataType::Timestamp(..)),
            Some(Bounds::Declared { .. } | Bounds::Auto) => kind.is_numeric(),
            None => true,
        };
        if !fits {
            return Err(QueryError::asked(
                format!("`{}.{name}` has bounds, but is {}", source.dataset.name, in_words(kind)),
                "numbers have numbers as bounds, dates and times have days: leave them out, or make the column one of these where it is written",
            ));
        }
        if declared.keys.is_some() {
            identity(source, kind, name, "has keys to group by")?;
        }
        if let Some(Keys::FromTable { table, column: other }) = &declared.keys
            && let Some(keys) = sources.get(table)
        {
            column(keys, other, &format!("columns.{}.keys of `{}`", line::key(name), source.dataset.name))?;
        }
    }
    Ok(())
}

/// The type of a column that is there.
pub(super) fn column<'a>(source: &'a Source, name: &str, whose: &str) -> Result<&'a DataType, QueryError> {
    if let Ok(field) = source.schema.field_with_name(name) {
        return Ok(field.data_type());
    }
    if let Some(hint) = source.untyped_hint(name) {
        let sentence = format!("`{}.{name}`, which `{whose}` names, has no declared type", source.dataset.name);
        return Err(QueryError::asked(sentence, hint));
    }
    let sentence = format!("`{}` has no column `{name}`, which `{whose}` names", source.dataset.name);
    Err(QueryError::asked(sentence, did_you_mean(source, name)))
}

fn did_you_mean(source: &Source, name: &str) -> String {
    let names: Vec<&str> = source.schema.fields().iter().map(|field| field.name().as_str()).collect();
    match nearest(name, names.iter().copied()) {
        Some(near) => format!("did you mean `{near}`?"),
        None if names.len() > 20 => {
            format!("its columns are: {}, and {} more", names[..20].join(", "), names.len() - 20)
        }
        None => format!("its columns are: {}", names.join(", ")),
    }
}

/// Refuses what is not the same thing twice: a float that was computed in two ways, a list, a structure.
fn identity(source: &Source, kind: &DataType, name: &str, role: &str) -> Check {
    let plain = match kind {
        DataType::Dictionary(_, values) => values.as_ref(),
        other => other,
    };
    if !plain.is_floating() && !plain.is_nested() && *plain != DataType::Null {
        return Ok(());
    }
    let why = if plain.is_floating() { ", and numbers that are rounded do not name anything reliably" } else { "" };
    Err(QueryError::asked(
        format!("`{}.{name}` {role}, but is {}{why}", source.dataset.name, in_words(kind)),
        "use a column of whole numbers or text, or make this one so where it is written",
    ))
}

/// A key and the users that it leads to have one type.
fn through(source: &Source, user: &UserKey, kind: &DataType, other: Option<&Source>, name: &str) -> Check {
    let Some(other) = other else { return Ok(()) }; // said when the declaration was read
    let there = column(other, name, &format!("unit.user of `{}`", source.dataset.name))?;
    let text = |kind: &DataType| in_words(kind) == "text";
    if (kind.is_integer() && there.is_integer()) || (text(kind) && text(there)) || kind == there {
        return Ok(());
    }
    Err(QueryError::asked(
        format!("`{user}` does not lead anywhere: the one is {}, the other {}", in_words(kind), in_words(there)),
        "write both columns as one type",
    ))
}

/// An element's SQL reads the row and nothing else, and gives the same element each time.
fn expression(source: &Source, text: &str, context: &SessionContext) -> Check {
    let name = &source.dataset.name;
    let qualified = DFSchema::try_from_qualified_schema(name.as_str(), &source.schema);
    let schema = qualified.map_err(|error| QueryError::failed(error.strip_backtrace()))?;
    let hint = "a column, or SQL over one row: \"date_trunc('day', at)\", \"registrable_domain(url)\"";
    let parsed = Spelling::expression(&context.state(), text, &schema).map_err(|error| {
        // Planning SQL reads the schema only, so its words speak of no row.
        let message = error.strip_backtrace();
        let missing = source.schema.fields().iter().all(|field| field.name() != text);
        let named = missing.then(|| named_in(&message)).flatten();
        let untyped = named.as_deref().and_then(|name| source.untyped_hint(name));
        let names = source.schema.fields().iter().map(|field| field.name().as_str());
        let near = named.as_deref().and_then(|name| nearest(name, names)).map(|near| format!("did you mean `{near}`?"));
        let message = match &named {
            Some(name) => format!("there is no column `{name}`"),
            None => in_our_words(&message).sentence,
        };
        let hint = near.or(untyped).unwrap_or_else(|| hint.to_owned());
        QueryError::asked(format!("`unit.element` of `{name}` is `{text}`, which cannot be evaluated: {message}"), hint)
    })?;
    let reads_more = parsed.exists(|part| {
        let beyond = matches!(
            part,
            Expr::AggregateFunction(_)
                | Expr::WindowFunction(_)
                | Expr::ScalarSubquery(_)
                | Expr::InSubquery(_)
                | Expr::Exists(_)
                | Expr::Placeholder(_)
        );
        Ok(beyond)
    });
    if reads_more.unwrap_or(true) || parsed.is_volatile() {
        return Err(QueryError::asked(
            format!("`unit.element` of `{name}` is `{text}`, which depends on more than the row"),
            hint,
        ));
    }
    let kind = parsed.get_type(&schema).map_err(|error| {
        let message = error.strip_backtrace();
        QueryError::asked(
            format!("`unit.element` of `{name}` is `{text}`, which has no type: {}", in_our_words(&message).sentence),
            hint,
        )
    })?;
    identity(source, &kind, text, "says which element a row falls into")
}

/// The column that a complaint is about because it is not there.
fn named_in(message: &str) -> Option<String> {
    let (_, after) = message.split_once("No field named ")?;
    let word: String = after.chars().take_while(|c| c.is_alphanumeric() || matches!(c, '_' | '.' | '"')).collect();
    Some(Column::from_qualified_name_ignore_case(word.trim_end_matches('.')).name)
}
