//! `whit check`: what a `whit.toml` amounts to, before anything is asked.

use super::{Error, write_json};
use crate::table::{Side, Table};
use std::io::Write;
use std::path::{Path, PathBuf};
use whit::core::declare::Declaration;
use whit::query::source::{DatasetView, Tuning, Warehouse, runtime};

/// Check a declaration against its files, and show the ladder.
///
/// Reads `whit.toml`, finds every file that it names, and shows for each data set what one whit is, what a question costs at each
/// rung, and what cannot be asked until more is declared. Spends nothing and leaves the ledger alone.
#[derive(clap::Args)]
pub(super) struct Check {
    /// The declaration.
    #[arg(value_name = "FILE", default_value = "whit.toml")]
    file: PathBuf,
    /// Print JSON for programs instead of tables for people.
    #[arg(long)]
    json: bool,
}

impl Check {
    pub(super) fn run(&self, out: &mut dyn Write, talk: &mut dyn Write) -> Result<(), Error> {
        let (declaration, folder) = declared(&self.file)?;
        let tuning = Tuning::default();
        let warehouse = runtime(tuning.threads)?.block_on(Warehouse::open(declaration, &folder, tuning))?;
        let views = warehouse.survey()?;
        if self.json {
            return write_json(&serde_json::json!({ "datasets": views }), out);
        }
        for view in &views {
            write(view, out)?;
        }
        let number = if views.len() == 1 { "1 data set".to_owned() } else { format!("{} data sets", views.len()) };
        Ok(writeln!(talk, "{} is sound: {number}", self.file.display())?)
    }
}

/// Reads a declaration, and says in which folder it stands.
pub(super) fn declared(file: &Path) -> Result<(Declaration, PathBuf), Error> {
    let text = std::fs::read_to_string(file).map_err(|error| Error::Asked {
        sentence: format!("`{}` cannot be read: {error}", file.display()),
        hint: "name the declaration, or let `whit init PATH` draft one from your data".to_owned(),
    })?;
    let declaration = Declaration::parse(&text).map_err(|error| Error::Asked {
        sentence: format!("{}, {error}", file.display()),
        hint: error.hint().to_owned(),
    })?;
    Ok((declaration, file.parent().map(Path::to_owned).unwrap_or_default()))
}

fn write(view: &DatasetView, out: &mut dyn Write) -> Result<(), Error> {
    let files = if view.files == 1 { "file" } else { "files" };
    let (format, size) = (&view.format, bytes(view.bytes));
    writeln!(out, "{}: {} {format} {files}, {size} ({})", view.name, view.files, view.source.join(", "))?;
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
            let budgets = if budgets.is_empty() { "not limited".to_owned() } else { budgets.join("; ") };
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
    Ok(writeln!(out)?)
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
