//! What a partition file holds: how its items are spread over its elements.

use crate::number::brief;
use crate::plain::PlainText;
use crate::table::{Side, Table};
use serde::Serialize;
use std::io::{self, Write};
use std::path::PathBuf;
use whit_query::partition::{PartitionFile, PartitionKind};

/// What there is to say of a partition.
#[derive(Serialize)]
pub struct PartitionView {
    file: PathBuf,
    name: String,
    kind: PartitionKind,
    #[serde(skip_serializing_if = "Option::is_none")]
    sql: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    listed: Option<Listed>,
    #[serde(skip_serializing_if = "Option::is_none")]
    objective: Option<f64>,
    hash: String,
}

/// How the items of a list are spread over its elements.
#[derive(Serialize)]
struct Listed {
    items: usize,
    elements: u32,
    singletons: usize,
    empty: usize,
    /// Of the elements that have items: the least, the quartiles, the 99th of a hundred, the largest.
    sizes: [u64; 6],
}

const QUANTILES: [(f64, &str); 6] = [
    (0.0, "smallest"),
    (0.25, "first quarter"),
    (0.5, "half"),
    (0.75, "third quarter"),
    (0.99, "99 %"),
    (1.0, "largest"),
];

impl PartitionView {
    /// What a file holds, and how close its clusters lie where they were made just now.
    pub fn of(file: &PartitionFile, path: PathBuf, objective: Option<f64>) -> Self {
        let listed = file.is_listed().then(|| {
            let mut sizes = file.cluster_sizes();
            sizes.sort_unstable();
            let empty = sizes.partition_point(|&size| size == 0);
            let used = &sizes[empty..];
            let at = |share: f64| {
                let last = used.len().saturating_sub(1);
                used.get((share * last as f64).round() as usize).copied().unwrap_or(0)
            };
            Listed {
                items: file.items().len(),
                elements: file.elements(),
                singletons: used.iter().filter(|&&size| size == 1).count(),
                empty,
                sizes: QUANTILES.map(|(share, _)| at(share)),
            }
        });
        let (name, kind, hash) = (file.name().to_owned(), file.kind().clone(), file.hash().to_owned());
        Self { file: path, name, kind, sql: file.sql(), listed, objective, hash }
    }

    /// How many items its elements have, and how to declare it.
    pub fn write(&self, out: &mut dyn Write) -> io::Result<()> {
        let out = &mut PlainText::onto(out);
        let mut table = Table::new([("partition", Side::Left), (self.name.as_str(), Side::Right)]);
        if let Some(sql) = &self.sql {
            table.row(["element", sql]);
        }
        if let Some(listed) = &self.listed {
            table.row(["items".to_owned(), listed.items.to_string()]);
            table.row(["elements".to_owned(), listed.elements.to_string()]);
            for ((_, name), size) in QUANTILES.iter().zip(listed.sizes) {
                table.row([format!("  items in an element, {name}"), size.to_string()]);
            }
            table.row(["  elements of one item".to_owned(), listed.singletons.to_string()]);
            table.row(["  elements without items".to_owned(), listed.empty.to_string()]);
        }
        if let Some(objective) = self.objective {
            table.row(["sum of squared distances".to_owned(), brief(objective)]);
        }
        table.write(out)?;
        writeln!(out, "\nblake3 {}", self.hash)?;
        match &self.sql {
            Some(sql) => writeln!(out, "in whit.toml: unit.element = {}", toml_text(sql)),
            None => writeln!(
                out,
                "in whit.toml: unit.element = {{ column = \"…\", file = {} }}",
                toml_text(&self.file.to_string_lossy())
            ),
        }
    }
}

/// A text as TOML has it.
fn toml_text(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}
