//! A data set as its declaration has it, and as its owner may see it.

use crate::number::{grouped, number_of};
use crate::plain::PlainText;
use crate::table::{Side, Table};
use std::io::{self, Write};
use whit_query::Tables;
use whit_query::source::DatasetView;
use whit_query::source::owner::OwnerView;

/// What is declared of a data set: its ladder, its columns, and what cannot be asked until more is declared.
pub fn write(view: &DatasetView, out: &mut dyn Write) -> io::Result<()> {
    let out = &mut PlainText::onto(out);
    writeln!(out, "{}: {} ({})", view.name, view.format, view.source.join(", "))?;
    match &view.unit {
        Some(unit) => writeln!(out, "  protects one {unit}\n")?,
        None => writeln!(out, "  public: it joins freely, and costs nothing\n")?,
    }
    if !view.rungs.is_empty() {
        let mut table = Table::new([
            ("rung", Side::Left),
            ("unit", Side::Left),
            ("change", Side::Left),
            ("holds", Side::Right),
            ("linked by", Side::Left),
            ("budget", Side::Left),
        ]);
        for rung in &view.rungs {
            let budgets: Vec<String> = rung.budgets.iter().map(ToString::to_string).collect();
            let budgets = match &view.pays_from {
                _ if !budgets.is_empty() => budgets.join("; "),
                Some(payer) => format!("that of {payer}"),
                None => "not limited".to_owned(),
            };
            let kind = rung.rung.to_string();
            let key = rung.unit.strip_prefix(&kind).unwrap_or(&rung.unit).trim_start_matches([' ', ',']).to_owned();
            let caps = if rung.caps.is_empty() { "—".to_owned() } else { rung.caps.join(" × ") };
            table.row([kind, key, rung.change.to_string(), rung.holds.to_string(), caps, budgets]);
        }
        table.write(out)?;
        writeln!(out)?;
    }
    let mut table = Table::new([
        ("column", Side::Left),
        ("type", Side::Left),
        ("role", Side::Left),
        ("bounds", Side::Left),
        ("keys", Side::Left),
    ]);
    for column in &view.columns {
        let bounds = column.bounds.as_ref().map(ToString::to_string).unwrap_or_default();
        let keys = column.keys.as_ref().map(ToString::to_string).unwrap_or_default();
        table.row([column.name.as_str(), &column.kind, column.role.unwrap_or_default(), &bounds, &keys]);
    }
    table.write(out)?;
    for missing in &view.missing {
        writeln!(out, "{}- {missing}", if Some(missing) == view.missing.first() { "\n" } else { "" })?;
    }
    writeln!(out)
}

/// The data sets, and what questions about them protect.
pub fn write_list(tables: &Tables, out: &mut dyn Write) -> io::Result<()> {
    let out = &mut PlainText::onto(out);
    let mut table = Table::new([("table", Side::Left), ("protects", Side::Left), ("columns", Side::Right)]);
    for source in tables.warehouse().sources() {
        let protected = source.dataset.unit.as_ref().map(|unit| {
            let own = unit.units().into_iter().find(|own| own.kind() == unit.protect);
            own.map_or_else(|| unit.protect.to_string(), |own| own.to_string())
        });
        let protects = protected.unwrap_or_else(|| "nothing: it is public".to_owned());
        table.row([source.dataset.name.clone(), protects, source.columns().count().to_string()]);
    }
    table.write(out)
}

/// The columns that can be asked about, of one data set or of each.
pub fn write_columns(tables: &Tables, one: Option<&str>, out: &mut dyn Write) -> io::Result<()> {
    let out = &mut PlainText::onto(out);
    let mut table = Table::new([("table", Side::Left), ("column", Side::Left), ("type", Side::Left)]);
    for source in tables.warehouse().sources().filter(|source| one.is_none_or(|one| one == source.dataset.name)) {
        for (name, kind) in source.columns() {
            table.row([source.dataset.name.clone(), name.to_owned(), kind]);
        }
    }
    table.write(out)
}

/// A part of a whole as people say it.
fn share(part: u64, whole: u64) -> String {
    match (part, whole) {
        (0, _) | (_, 0) => "–".to_owned(),
        (part, whole) => format!("{} ({:.1} %)", grouped(&part.to_string()), 100.0 * part as f64 / whole as f64),
    }
}

/// What only the owner of the data may see of a data set: what does not fit, and what caps cut.
pub fn write_for_owner(view: &OwnerView, out: &mut dyn Write) -> io::Result<()> {
    let out = &mut PlainText::onto(out);
    let rows = number_of(grouped(&view.rows.to_string()), "row");
    writeln!(out, "{}: {rows} in {}, {}", view.name, number_of(view.files, "file"), bytes(view.bytes))?;
    match view.changed {
        Some(true) => {
            writeln!(out, "  the data changed since the ledger last saw it: earlier answers are about other rows")?;
        }
        Some(false) => writeln!(out, "  the data did not change since the ledger last saw it")?,
        None => writeln!(out, "  there is no ledger yet")?,
    }
    if let Some(without) = view.without_user.filter(|&without| without > 0) {
        let which = if without == 1 { "row has no user, and is" } else { "rows have no user, and are" };
        writeln!(out, "  {} {which} left out", share(without, view.rows))?;
    }
    if let Some(shared) = view.shared_keys.filter(|&shared| shared > 0) {
        let which = if shared == 1 { "key leads" } else { "keys lead" };
        let shared = grouped(&shared.to_string());
        writeln!(out, "  {shared} {which} to several users, so rows with such a key belong to nobody")?;
    }
    if !view.untyped.is_empty() {
        writeln!(out, "  not declared, so nobody can ask for them: {}", view.untyped.join(", "))?;
    }
    writeln!(out)?;
    if !view.lines.is_empty() {
        let mut table = Table::new([
            ("lines with", Side::Left),
            ("rows", Side::Right),
            ("first", Side::Left),
            ("what becomes of them", Side::Left),
        ]);
        for line in &view.lines {
            table.row([line.fault, &share(line.rows, view.rows), line.first.as_deref().unwrap_or(""), line.becomes]);
        }
        table.write(out)?;
        writeln!(out)?;
    }
    let mut table = Table::new([
        ("column", Side::Left),
        ("type", Side::Left),
        ("missing", Side::Right),
        ("of another type", Side::Right),
        ("clamped", Side::Right),
        ("other keys", Side::Right),
        ("first of another type", Side::Left),
    ]);
    for column in &view.columns {
        let name = column.role.map_or_else(|| column.name.clone(), |role| format!("{} ({role})", column.name));
        let optional = |part: Option<u64>| part.map(|part| share(part, view.rows)).unwrap_or_default();
        table.row([
            name,
            column.kind.clone(),
            share(column.missing, view.rows),
            share(column.wrong, view.rows),
            optional(column.clamped),
            optional(column.other_keys),
            column.first_wrong.clone().unwrap_or_default(),
        ]);
    }
    table.write(out)?;
    writeln!(out)?;
    if !view.caps.is_empty() {
        let mut table = Table::new([
            ("cap", Side::Left),
            ("limit", Side::Right),
            ("how many", Side::Right),
            ("over it", Side::Right),
            ("largest", Side::Right),
            ("beyond it", Side::Right),
        ]);
        for cap in &view.caps {
            let number = |number: u64| grouped(&number.to_string());
            table.row([
                cap.cap.to_owned(),
                number(cap.limit),
                number(cap.units),
                share(cap.over, cap.units),
                number(cap.largest),
                share(cap.beyond, cap.all),
            ]);
        }
        table.write(out)?;
        writeln!(out)?;
    }
    Ok(())
}

/// A number of bytes as people say it.
fn bytes(bytes: u64) -> String {
    let units = ["bytes", "KiB", "MiB", "GiB", "TiB"];
    let (mut size, mut unit) = (bytes as f64, 0);
    while size >= 1024.0 && unit + 1 < units.len() {
        size /= 1024.0;
        unit += 1;
    }
    let digits = usize::from(unit > 0 && size < 10.0);
    format!("{size:.digits$} {}", units[unit])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_said_in_two_digits_or_more() {
        let said = [0, 999, 1024, 1536, 200 << 20, 5 << 40].map(bytes);
        assert_eq!(said, ["0 bytes", "999 bytes", "1.0 KiB", "1.5 KiB", "200 MiB", "5.0 TiB"]);
    }
}
