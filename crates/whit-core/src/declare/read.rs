//! From the text of a `whit.toml` to a [`Declaration`].

use super::error::DeclareResult;
use super::value::{self, Entries, TomlValue};
use super::{
    Bounds, BudgetDeclaration, CapsDeclaration, ColumnDeclaration, ColumnType, Dataset, Day, Declaration, DeclareError,
    ElementSource, FileLayout, Format, Keys, QueryDefaults, UnitDeclaration, UserKey, check, nearest,
};
use crate::unit::{Change, Kind};
use std::collections::{BTreeMap, BTreeSet};

const KINDS: [(&str, Kind); 5] = [
    ("event", Kind::Event),
    ("element", Kind::Element),
    ("feature", Kind::Feature),
    ("label", Kind::Label),
    ("user", Kind::User),
];

pub(super) fn declaration(text: &str) -> DeclareResult<Declaration> {
    let parsed = value::parse(text)?;
    let root = value::root(text, parsed.get_ref(), &["dataset", "ledger"])?;
    let ledger = root.read("ledger", |v| v.text("a path next to this file, such as ledger = \"whit.ledger\""))?;
    let no_data = "begin one with `[dataset.NAME]` and a `source`; `DeclarationDraft::of` writes a draft";
    let Some(datasets) = root.get("dataset") else {
        return Err(DeclareError::new("no data set is declared", no_data));
    };
    let entries = datasets.names(no_data)?;
    if entries.is_empty() {
        return Err(datasets.wrong("no data set is declared", no_data));
    }
    let mut declaration = Declaration { datasets: BTreeMap::new(), ledger };
    for (name, value) in entries.iter() {
        check_name(name, value)?;
        declaration.datasets.insert(name.to_owned(), dataset(name, value)?);
    }
    // What one data set says of another can be checked only when all are there.
    for (name, value) in entries.iter() {
        let table = value.entries(&known())?;
        check::references(&declaration, &declaration.datasets[name], &table)?;
    }
    Ok(declaration)
}

/// SQL reads a name without quotes in lower case, so a table with another name could not be asked for.
fn check_name(name: &str, value: &TomlValue<'_>) -> DeclareResult<()> {
    let plain = table_name(name);
    if plain == name {
        return Ok(());
    }
    Err(value.wrong(
        "{key} must be named in lower-case letters, digits and underscores, since SQL asks for it by that name",
        format!("call it `{plain}`"),
    ))
}

/// The name nearest to a text that SQL reads without quotes: lower-case letters, digits and underscores.
///
/// ```
/// use whit_core::declare::table_name;
/// assert_eq!(table_name("Page views (2024)"), "page_views_2024");
/// assert_eq!(table_name("2024"), "table_2024");
/// ```
pub fn table_name(text: &str) -> String {
    let (mut name, mut replaced) = (String::new(), false);
    for c in text.chars().flat_map(char::to_lowercase) {
        // A letter whose lower case is not itself even now is no letter for SQL.
        if c == '_' || (c.is_alphanumeric() && c.to_lowercase().eq([c])) {
            name.push(c);
        } else {
            replaced = true;
            if !name.is_empty() && !name.ends_with('_') {
                name.push('_');
            }
        }
    }
    let name = if replaced { name.trim_end_matches('_') } else { &name };
    match name.chars().next() {
        None => "table".to_owned(),
        Some(first) if first.is_numeric() => format!("table_{name}"),
        Some(_) => name.to_owned(),
    }
}

const DATASET: [&str; 12] = [
    "source",
    "format",
    "version",
    "newlines_in_values",
    "partitioned_by",
    "open",
    "public",
    "unit",
    "slice",
    "columns",
    "budget",
    "query",
];

/// The keys of a data set.
fn known() -> Vec<&'static str> {
    let (files, rest) = DATASET.split_at(4);
    files.iter().chain(&FileLayout::KEYS).chain(rest).copied().collect()
}

fn dataset(name: &str, value: &TomlValue<'_>) -> DeclareResult<Dataset> {
    let table = value.entries(&known())?;
    let public = table.read("public", |v| v.boolean("public = true says that the whole table is public"))?;
    let public = public.unwrap_or(false);
    let unit = table.read("unit", |v| unit(name, v))?;
    check::unit_or_public(&table, public)?;
    let budgets = table.read("budget", |v| budgets(v, unit.as_ref()))?.unwrap_or_default();
    let columns = table.read("columns", columns)?.unwrap_or_default();
    let partitioned_by = table.read("partitioned_by", |v| partitions(v, &columns))?.unwrap_or_default();
    // A line of a file without names holds what no folder says.
    let typed = |name: &str| columns.get(name).is_some_and(|column| column.kind.is_some());
    let in_lines = |name: &String| typed(name) && !partitioned_by.contains(name);
    let in_order = table.read("columns", |v| Ok(v.names("")?.as_written()))?.unwrap_or_default();
    let in_order: Vec<String> = in_order.into_iter().filter(in_lines).collect();
    let layout = FileLayout::read(&table, &in_order)?;
    if let Some((value, unit)) = table.get("comment").zip(unit.as_ref())
        && matches!(unit.protect, Kind::Feature | Kind::Label)
    {
        // Such units leave in view which rows there are, and a value may begin a line.
        let sentence = format!(
            "{{key}} lets a value decide whether a line is a row, and where `unit.protect` is `{}` rows are in view",
            unit.protect
        );
        return Err(value.wrong(&sentence, "take such lines out of the files, or protect another rung"));
    }
    Ok(Dataset {
        name: name.to_owned(),
        source: source(&table)?,
        format: table.read("format", |v| {
            let hint = "parquet, csv, ndjson or delta; else the extension decides, or a folder's log";
            v.word(&Format::ALL.map(|format| (format.word(), format)), hint)
        })?,
        version: table.read("version", |v| v.whole("the number of a version of a Delta table, as in version = 12"))?,
        newlines_in_values: table
            .read("newlines_in_values", |v| {
                v.boolean("true where a value of a CSV file may hold line breaks, in quotes")
            })?
            .unwrap_or(false),
        layout,
        open: table.read("open", |v| opened(v, unit.as_ref(), &columns, &partitioned_by))?,
        partitioned_by,
        public,
        slice: table.read("slice", |v| check::slice(v, unit.as_ref()))?,
        unit,
        columns,
        budgets,
        query: table.read("query", query)?,
    })
}

/// Columns that folders are named after, each with a type: names of folders are as private as rows, and have none of their own.
fn partitions(value: &TomlValue<'_>, columns: &BTreeMap<String, ColumnDeclaration>) -> DeclareResult<Vec<String>> {
    let hint = "list the names before the `=` of folders: partitioned_by = [\"day\"]";
    let names = if value.is_array() { value.texts(hint)? } else { vec![value.text(hint)?] };
    for (at, name) in names.iter().enumerate() {
        if names[..at].contains(name) {
            return Err(value.wrong(&format!("{{key}} lists `{name}` twice"), "leave one out"));
        }
        match columns.get(name).map(|column| &column.kind) {
            Some(Some(ColumnType::List(_))) => {
                return Err(value.wrong(&format!("{{key}} lists `{name}`, but the name of a folder is no list"), hint));
            }
            Some(Some(_)) => {}
            Some(None) | None => {
                let sentence = format!("{{key}} lists `{name}`, which has no declared type");
                return Err(value.wrong(&sentence, format!("say what it is: columns.{name} = \"date\"")));
            }
        }
    }
    Ok(names)
}

/// A column of lists that is opened. A row of a file becomes several, so that it is no unit by itself, and how many it becomes is private.
fn opened(
    value: &TomlValue<'_>,
    unit: Option<&UnitDeclaration>,
    columns: &BTreeMap<String, ColumnDeclaration>,
    folders: &[String],
) -> DeclareResult<String> {
    let hint = "name the column of lists of which each item is to be a row: open = \"tags\"";
    let name = value.text(hint)?;
    if let Some(kind) =
        columns.get(&name).and_then(|column| column.kind.as_ref()).filter(|kind| matches!(kind, ColumnType::List(_)))
    {
        return Err(value.wrong(
            &format!("{{key}} opens `{name}`, which is declared as {kind}, but what is declared is of one item"),
            format!("declare what an item is: columns.{name} = \"text\""),
        ));
    }
    if folders.contains(&name) {
        return Err(value.wrong(&format!("{{key}} opens `{name}`, but the name of a folder is no list"), hint));
    }
    let Some(unit) = unit else { return Ok(name) };
    if !matches!(unit.protect, Kind::User | Kind::Element) {
        return Err(value.wrong(
            &format!("{{key}} makes several rows of one, and `unit.protect` is `{}`, which would be a part of what one row was", unit.protect),
            "protect whose the row is: unit.protect = \"user\", or \"element\"; caps count the opened rows",
        ));
    }
    if unit.user.as_ref().is_some_and(|user| user.column() == name) {
        return Err(
            value.wrong(&format!("{{key}} opens `{name}`, the user column, but a row belongs to one user"), hint)
        );
    }
    Ok(name)
}

fn source(table: &Entries<'_>) -> DeclareResult<Vec<String>> {
    let hint = "name a file, a glob or a folder, relative to this file: source = \"visits/*.parquet\"";
    let Some(value) = table.get("source") else {
        return Err(table.place().wrong("{key} has no source, so there is nothing to read", hint));
    };
    let sources = if value.is_array() { value.texts(hint)? } else { vec![value.text(hint)?] };
    if sources.is_empty() {
        return Err(value.wrong("{key} is empty", hint));
    }
    Ok(sources)
}

fn unit(dataset: &str, value: &TomlValue<'_>) -> DeclareResult<UnitDeclaration> {
    let table = value.entries(&["user", "element", "public", "label", "protect", "change", "caps"])?;
    let protect_hint = "say what one whit is: event, element, feature, label or user";
    let Some(protect) = table.get("protect") else {
        let sentence = format!("`dataset.{dataset}` does not say what it protects: `unit.protect` is missing");
        return Err(table.place().wrong(&sentence, format!("{protect_hint}; there is no default")));
    };
    let unit = UnitDeclaration {
        user: table.read("user", |v| user(dataset, v))?,
        element: table.read("element", element)?,
        public: table.read("public", public)?.unwrap_or_default(),
        label: table.read("label", |v| v.text("the one private column: unit.label = \"clicked\""))?,
        protect: protect.word(&KINDS, protect_hint)?,
        change: table.read("change", |v| {
            let words = [("replace", Change::Replace), ("add-remove", Change::AddRemove)];
            v.word(&words, "replace (the default) or add-remove")
        })?,
        caps: table.read("caps", caps)?.unwrap_or_default(),
    };
    check::unit(dataset, &unit, &table)?;
    Ok(unit)
}

fn user(dataset: &str, value: &TomlValue<'_>) -> DeclareResult<UserKey> {
    let hint = "a column, unit.user = \"user_id\", or a key, unit.user = \"orders.customer_id -> customers.id\"";
    let text = value.text(hint)?;
    let Some((here, there)) = text.split_once("->") else {
        return Ok(UserKey::Column(text));
    };
    let (Some((table, column)), Some((other_table, other_column))) = (dotted(here), dotted(there)) else {
        return Err(value.wrong("{key} has an arrow, so it must be `table.column -> other.column`", hint));
    };
    if table != dataset {
        return Err(value.wrong(
            &format!("{{key}} begins at `{table}`, but belongs to `{dataset}`"),
            format!("write the key of this table first: \"{dataset}.{column} -> {other_table}.{other_column}\""),
        ));
    }
    Ok(UserKey::Through { table, column, other_table, other_column })
}

/// `table.column`; what is behind the first dot is the column's name.
fn dotted(text: &str) -> Option<(String, String)> {
    let (table, column) = text.trim().split_once('.')?;
    let (table, column) = (table.trim(), column.trim());
    (!table.is_empty() && !column.is_empty()).then(|| (table.to_owned(), column.to_owned()))
}

fn element(value: &TomlValue<'_>) -> DeclareResult<ElementSource> {
    let hint = "a column or SQL, unit.element = \"date_trunc('day', at)\"; or { column = \"word\", file = \
                \"words.partition\" }; or { column = \"weekday\", dictionary = { sat = \"weekend\" }, unknown = \"weekday\" }";
    if !value.is_table() {
        return value.text(hint).map(ElementSource::Expression);
    }
    let table = value.entries(&["column", "file", "dictionary", "unknown"])?;
    let Some(column) = table.read("column", |v| v.text(hint))? else {
        return Err(value.wrong("{key} does not say which column decides: `column` is missing", hint));
    };
    match (table.get("file"), table.get("dictionary"), table.get("unknown")) {
        (Some(file), None, None) => Ok(ElementSource::PartitionFile { column, path: file.text(hint)? }),
        (None, Some(list), Some(unknown)) => {
            let entries = list.names(hint)?;
            let read = |(name, v): (&str, &TomlValue<'_>)| Ok((name.to_owned(), v.key_text(hint)?));
            let elements = entries.iter().map(read).collect::<DeclareResult<_>>()?;
            Ok(ElementSource::Dictionary { column, elements, unknown: unknown.text(hint)? })
        }
        (None, Some(_), None) => Err(value.wrong(
            "{key} does not say where values go that its dictionary does not list: `unknown` is missing",
            "every row needs an element, or no unit protects it: add unknown = \"other\"",
        )),
        (Some(_), _, _) => Err(value.wrong("{key} has a file and a dictionary, and only one can decide", hint)),
        (None, None, _) => Err(value.wrong("{key} has neither a `file` nor a `dictionary`", hint)),
    }
}

fn public(value: &TomlValue<'_>) -> DeclareResult<Vec<String>> {
    let hint = "list the columns that never change between neighbours: unit.public = [\"country\"]";
    let columns = value.texts(hint)?;
    let mut seen = BTreeSet::new();
    match columns.iter().find(|column| !seen.insert(column.as_str())) {
        Some(twice) => Err(value.wrong(&format!("{{key}} lists `{twice}` twice"), "leave one out")),
        None => Ok(columns),
    }
}

fn caps(value: &TomlValue<'_>) -> DeclareResult<CapsDeclaration> {
    let known = ["elements_per_user", "rows_per_element", "rows_per_user", "groups", "rows_per_group"];
    let table = value.entries(&known)?;
    let cap = |name| table.read(name, |v| v.count("a cap is a whole number, at least 1; leave it out for none"));
    Ok(CapsDeclaration {
        elements_per_user: cap("elements_per_user")?,
        rows_per_element: cap("rows_per_element")?,
        rows_per_user: cap("rows_per_user")?,
        groups: cap("groups")?,
        rows_per_group: cap("rows_per_group")?,
    })
}

fn columns(value: &TomlValue<'_>) -> DeclareResult<BTreeMap<String, ColumnDeclaration>> {
    let entries = value.names("one entry a column: columns.seconds = { type = \"int\", bounds = [0, 600] }")?;
    let column = |(name, v): (&str, &TomlValue<'_>)| {
        if !v.is_table() {
            // `columns.day = "date"`: often the type is all there is to say.
            let declared = ColumnDeclaration { kind: Some(kind(v)?), ..ColumnDeclaration::default() };
            return Ok((name.to_owned(), declared));
        }
        let table = v.entries(&["type", "bounds", "keys"])?;
        let declared = ColumnDeclaration {
            kind: table.read("type", kind)?,
            bounds: table.read("bounds", bounds)?,
            keys: table.read("keys", keys)?,
        };
        if declared == ColumnDeclaration::default() {
            let hint = "give it type = \"int\", bounds = [0, 600] or keys = [\"a\", \"b\"]";
            return Err(v.wrong("{key} says nothing", hint));
        }
        let fits = |kind: &ColumnType| match declared.bounds {
            Some(Bounds::Days { .. }) => matches!(kind, ColumnType::Date | ColumnType::Timestamp),
            Some(Bounds::Declared { .. } | Bounds::Auto) => kind.is_number(),
            None => true,
        };
        if let Some(kind) = declared.kind.as_ref().filter(|kind| !fits(kind)) {
            return Err(v.wrong(
                &format!("{{key}} has bounds that are not of its type, which is {kind}"),
                "numbers have numbers as bounds, dates and timestamps have days, as in bounds = [\"2024-01-01\", \"2024-12-31\"], and others none",
            ));
        }
        Ok((name.to_owned(), declared))
    };
    entries.iter().map(column).collect()
}

fn kind(value: &TomlValue<'_>) -> DeclareResult<ColumnType> {
    let hint = format!("a column's type is one of: {}", ColumnType::KNOWN);
    let text = value.text(&hint)?;
    ColumnType::parse(&text).ok_or_else(|| {
        let meant = match text.to_ascii_lowercase().as_str() {
            "integer" | "bigint" | "int64" | "long" | "whole" => Some("int"),
            "double" | "number" | "real" | "float64" => Some("float"),
            "string" | "str" | "varchar" | "utf8" | "category" => Some("text"),
            "boolean" => Some("bool"),
            "datetime" | "time" => Some("timestamp"),
            other => nearest(other, ColumnType::WORDS.iter().map(|(word, _)| *word)),
        };
        let hint = meant
            .map_or_else(|| hint.clone(), |meant| format!("did you mean `{meant}`? Known here: {}", ColumnType::KNOWN));
        value.wrong(&format!("{{key}} is `{text}`, which is not a type that is known"), hint)
    })
}

fn bounds(value: &TomlValue<'_>) -> DeclareResult<Bounds> {
    let hint = "bounds = [0, 600], which you can defend without looking at the data, or bounds = \"auto\" to find them privately";
    if !value.is_array() {
        let auto = value.word(&[("auto", ())], hint).map(|()| Bounds::Auto);
        return auto.map_err(|_| value.wrong("{key} must be two numbers or \"auto\"", hint));
    }
    let items = value.items(hint)?;
    let [low, high] = items.as_slice() else {
        return Err(value.wrong(&format!("{{key}} must be two numbers, and has {}", items.len()), hint));
    };
    if low.is_text() && high.is_text() {
        return days(value, low, high);
    }
    let (low, high) = (low.number(hint)?, high.number(hint)?);
    if low < high {
        return Ok(Bounds::Declared { low, high });
    }
    let (sentence, hint) = if low > high {
        ("is empty", format!("write the least value first: bounds = [{high}, {low}]"))
    } else {
        ("holds one value only, so every sum would be a count", format!("widen it, or count instead; {hint}"))
    };
    Err(value.wrong(&format!("{{key}} = [{low}, {high}] {sentence}"), hint))
}

fn days(value: &TomlValue<'_>, first: &TomlValue<'_>, last: &TomlValue<'_>) -> DeclareResult<Bounds> {
    let hint = "write both days as year, month and day: bounds = [\"2024-01-01\", \"2024-12-31\"]";
    let day = |value: &TomlValue<'_>| {
        let text = value.key_text(hint)?;
        Day::parse(&text).ok_or_else(|| value.wrong(&format!("{{key}} has `{text}`, which is no day"), hint))
    };
    let (first, last) = (day(first)?, day(last)?);
    if first > last {
        let hint = format!("write the first day first: bounds = [\"{last}\", \"{first}\"]");
        return Err(value.wrong(&format!("{{key}} = [\"{first}\", \"{last}\"] is empty"), hint));
    }
    Ok(Bounds::Days { first, last })
}

fn keys(value: &TomlValue<'_>) -> DeclareResult<Keys> {
    let hint = "list them, keys = [\"at\", \"de\"], or take them from a public table, keys = \"countries.code\"";
    if !value.is_array() {
        let text = value.text(hint)?;
        let (table, column) = dotted(&text)
            .ok_or_else(|| value.wrong(&format!("{{key}} is `{text}`, which is not `table.column`"), hint))?;
        return Ok(Keys::FromTable { table, column });
    }
    let listed = value.items(hint)?.iter().map(|item| item.key_text(hint)).collect::<DeclareResult<Vec<_>>>()?;
    if listed.is_empty() {
        return Err(value.wrong("{key} lists no keys, so every answer would be empty", hint));
    }
    let mut seen = BTreeSet::new();
    match listed.iter().find(|key| !seen.insert(key.as_str())) {
        Some(twice) => Err(value.wrong(&format!("{{key}} lists `{twice}` twice"), "leave one out")),
        None => Ok(Keys::Listed(listed)),
    }
}

fn budgets(value: &TomlValue<'_>, unit: Option<&UnitDeclaration>) -> DeclareResult<Vec<BudgetDeclaration>> {
    let rungs = KINDS.map(|(word, _)| word);
    let known: Vec<&str> = rungs.into_iter().chain(["analyst"]).collect();
    let table = value.entries(&known)?;
    let mut budgets = rung_budgets(&table, None, unit)?;
    if let Some(analysts) = table.get("analyst") {
        let by_name = analysts.names("budget.analyst.alice.element = { epsilon = 1.0, delta = 1e-6 }")?;
        for (name, value) in by_name.iter() {
            let own = value.entries(&rungs)?;
            if own.is_empty() {
                return Err(value.wrong("{key} names no rung", format!("one of: {}", rungs.join(", "))));
            }
            budgets.extend(rung_budgets(&own, Some(name), unit)?);
        }
    }
    Ok(budgets)
}

fn rung_budgets(
    table: &Entries<'_>,
    analyst: Option<&str>,
    unit: Option<&UnitDeclaration>,
) -> DeclareResult<Vec<BudgetDeclaration>> {
    let mut budgets = Vec::new();
    for (word, kind) in KINDS {
        if let Some(value) = table.get(word) {
            if let Some(unit) = unit {
                check::budget_rung(kind, unit, value)?;
            }
            budgets.push(budget(kind, analyst, value)?);
        }
    }
    Ok(budgets)
}

fn budget(kind: Kind, analyst: Option<&str>, value: &TomlValue<'_>) -> DeclareResult<BudgetDeclaration> {
    let hint = format!("budget.{kind} = {{ epsilon = 3.0, delta = 1e-6 }}");
    let table = value.entries(&["epsilon", "delta", "currency"])?;
    let Some(epsilon) = epsilon(&table)? else {
        return Err(value.wrong("{key} has no `epsilon`", hint));
    };
    let delta = delta(&table)?.unwrap_or(0.0);
    let words = BudgetDeclaration::CURRENCIES.map(|word| (word, word));
    let currency = table.read("currency", |v| v.word(&words, "what the budget adds up; gaussian is the default"))?;
    let currency = match (currency, delta > 0.0) {
        (currency, true) => currency,
        (None | Some("sum"), false) => Some("sum"),
        (Some(other), false) => {
            return Err(value.wrong(
                &format!("{{key}} adds up in `{other}`, which needs a δ above 0"),
                "add delta = 1e-6, or write currency = \"sum\", the only one that works at δ = 0",
            ));
        }
    };
    Ok(BudgetDeclaration {
        kind,
        analyst: analyst.map(str::to_owned),
        epsilon,
        delta,
        currency: currency.map(str::to_owned),
    })
}

fn query(value: &TomlValue<'_>) -> DeclareResult<QueryDefaults> {
    let table = value.entries(&["epsilon", "delta", "groups"])?;
    let groups = table.read("groups", |v| v.count("the most groups to which one unit contributes"))?;
    let (epsilon, range) = (epsilon(&table)?, QueryDefaults::EPSILON);
    let beyond = epsilon.filter(|epsilon| !range.contains(epsilon));
    if let Some((epsilon, value)) = beyond.zip(table.get("epsilon")) {
        let sentence =
            format!("{{key}} is {epsilon}, but a question has an ε from {} to {}", range.start(), range.end());
        return Err(value.wrong(&sentence, "1 is strong, 10 is weak; a budget may be larger"));
    }
    Ok(QueryDefaults { epsilon, delta: delta(&table)?, groups })
}

fn epsilon(table: &Entries<'_>) -> DeclareResult<Option<f64>> {
    let hint = "ε is the logarithm of the factor by which an output may become more likely; 1 is strong, 10 is weak";
    table.read("epsilon", |v| match v.number(hint)? {
        epsilon if epsilon > 0.0 => Ok(epsilon),
        epsilon => Err(v.wrong(&format!("{{key}} is {epsilon}, but must be above 0"), hint)),
    })
}

fn delta(table: &Entries<'_>) -> DeclareResult<Option<f64>> {
    let hint = "δ is a probability; take it well below one over the number of units, such as 1e-6";
    table.read("delta", |v| match v.number(hint)? {
        delta if (0.0..1.0).contains(&delta) => Ok(delta),
        delta => Err(v.wrong(&format!("{{key}} is {delta}, but must be at least 0 and below 1"), hint)),
    })
}
