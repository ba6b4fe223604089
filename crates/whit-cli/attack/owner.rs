//! An owner's own declaration, laid over rows that are made up: its unit, columns, bounds, keys and caps, and none of its data.

use super::Attacker;
use super::ground::{ColumnKind, Form, Ground, GroundColumn, of_unit};
use std::path::{Path, PathBuf};

/// The grounds of a declaration: one for each private data set, with its public tables where they are.
pub(crate) fn declared(attacker: &Attacker, config: &Path) -> Result<Vec<Ground>, String> {
    let text =
        std::fs::read_to_string(config).map_err(|error| format!("`{}` cannot be read: {error}", config.display()))?;
    let table: toml::Table = text.parse().map_err(|error| format!("`{}` is no TOML: {error}", config.display()))?;
    let folder = config
        .parent()
        .filter(|folder| !folder.as_os_str().is_empty())
        .map_or_else(|| PathBuf::from("."), Path::to_owned);
    let folder = folder.canonicalize().map_err(|error| format!("`{}` cannot be opened: {error}", folder.display()))?;
    let name = config.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let printed = attacker.ask(&folder, &["check", &name, "--json"], "");
    if printed.code != Some(0) {
        return Err(format!("`whit check {}` says no: {}", config.display(), printed.talk.trim()));
    }
    let view: serde_json::Value =
        serde_json::from_str(&printed.out).map_err(|error| format!("`whit check --json`: {error}"))?;
    let sets = table.get("dataset").and_then(toml::Value::as_table).cloned().unwrap_or_default();
    let mut grounds = Vec::new();
    for (name, set) in &sets {
        let Some(unit) = set.get("unit").and_then(toml::Value::as_table) else { continue };
        let columns = columns(&view, name, set);
        if columns.is_empty() {
            return Err(format!("`whit check` shows no columns of `{name}`"));
        }
        let mut declaration = table.clone();
        declaration.remove("ledger");
        if let Some(sets) = declaration.get_mut("dataset").and_then(toml::Value::as_table_mut) {
            for (other, set) in sets.iter_mut() {
                let Some(set) = set.as_table_mut() else { continue };
                set.remove("budget");
                let source = if other == name { "rows.csv".to_owned() } else { at(&folder, set.get("source")) };
                set.insert("source".to_owned(), source.into());
            }
            // Other private tables stay out: their rows are nobody's to be read here.
            sets.retain(|other, set| other == name || set.get("public").is_some());
            if let Some(set) = sets.get_mut(name).and_then(toml::Value::as_table_mut) {
                declare_types(set, &columns);
                // Attacks are many, and none of them is to be stopped by a budget.
                let mut enough = toml::Table::new();
                enough.insert("epsilon".to_owned(), 1e9.into());
                enough.insert("delta".to_owned(), 1e-3.into());
                let mut budget = toml::Table::new();
                budget.insert(of_unit(unit).protect, enough.into());
                set.insert("budget".to_owned(), budget.into());
            }
        }
        let declaration = toml::to_string(&declaration).map_err(|error| error.to_string())?;
        let (title, moving) = (format!("{name} as declared"), of_unit(unit));
        grounds.push(Ground { title, dataset: name.clone(), columns, moving, form: Form::Csv, declaration });
    }
    if grounds.is_empty() {
        return Err(format!("`{}` declares no private data set", config.display()));
    }
    Ok(grounds)
}

fn at(folder: &Path, source: Option<&toml::Value>) -> String {
    let source = source.and_then(toml::Value::as_str).unwrap_or_default();
    folder.join(source).display().to_string()
}

fn columns(view: &serde_json::Value, name: &str, set: &toml::Value) -> Vec<GroundColumn> {
    let shown = view["datasets"].as_array().into_iter().flatten().find(|set| set["name"] == *name);
    let facts = |column: &str| set.get("columns").and_then(|columns| columns.get(column));
    let column = |shown: &serde_json::Value| {
        let name = shown["name"].as_str()?.to_owned();
        let keys = facts(&name).and_then(|facts| facts.get("keys")).and_then(toml::Value::as_array);
        let keys =
            keys.into_iter().flatten().map(|key| key.as_str().map_or_else(|| key.to_string(), str::to_owned)).collect();
        let bounded = facts(&name).is_some_and(|facts| facts.get("bounds").is_some());
        let kind = ColumnKind::named(shown["type"].as_str().or_else(|| shown["kind"].as_str()).unwrap_or("text"));
        Some(GroundColumn { name, kind, keys, bounded })
    };
    shown.and_then(|set| set["columns"].as_array()).into_iter().flatten().filter_map(column).collect()
}

fn declare_types(set: &mut toml::Table, columns: &[GroundColumn]) {
    let declared = set.entry("columns").or_insert_with(|| toml::Table::new().into());
    let Some(declared) = declared.as_table_mut() else { return };
    for column in columns {
        let facts = declared.entry(column.name.clone()).or_insert_with(|| toml::Table::new().into());
        if let Some(facts) = facts.as_table_mut() {
            facts.insert("type".to_owned(), column.kind.declared().into());
        }
    }
}
