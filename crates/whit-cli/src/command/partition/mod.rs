//! `whit partition`: which element a value falls into, made without the private data.

mod options;
#[cfg(test)]
mod tests;

use crate::error::Error;
use crate::output::{ProgressLine, inputs, write_json};
use options::{ColumnOptions, DictionaryOptions, DomainOptions, ExpressionOptions, KmeansOptions, Saved, ShowOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use whit::partition::{Clustered, ClusteringPlan, ClusteringStep};
use whit::query::partition::{PartitionFile, PartitionKind, registrable_domain};
use whit::query::source::Input;
use whit_view::number::number_of;
use whit_view::partition::PartitionView;

/// Make a partition: which element a value falls into.
///
/// A partition is made without the private data, or else it would tell of it: from a column's name, an expression, a
/// published list, or published embeddings. It is saved as a small file, whose hash the ledger records with every release that
/// uses it. Name it in whit.toml: unit.element = { column = "word", file = "words.partition" }.
#[derive(clap::Subcommand)]
pub(super) enum PartitionCommand {
    /// The value of a column is the element.
    Column(ColumnOptions),
    /// A SQL expression over a row is the element, such as "date_trunc('day', at)".
    Expression(ExpressionOptions),
    /// The registrable domain of a column of URLs or host names is the element.
    Domain(DomainOptions),
    /// A list of values and their elements, one to a line.
    Dictionary(DictionaryOptions),
    /// Clusters of published embeddings, by k-means++.
    Kmeans(KmeansOptions),
    /// Show what a partition file holds.
    Show(ShowOptions),
}

impl PartitionCommand {
    pub(super) fn run(&self, out: &mut dyn Write, talk: &mut dyn Write) -> Result<(), Error> {
        match self {
            Self::Column(column) => {
                let kind = PartitionKind::Column { column: column.column.clone() };
                column.saved.symbolic(kind, out, talk)
            }
            Self::Expression(expression) => {
                let kind = PartitionKind::Expression { sql: expression.sql.clone() };
                expression.saved.symbolic(kind, out, talk)
            }
            Self::Domain(domain) => {
                for url in &domain.tried {
                    writeln!(talk, "{url} → {}", registrable_domain(url))?;
                }
                domain.saved.symbolic(PartitionKind::Domain { column: domain.column.clone() }, out, talk)
            }
            Self::Dictionary(dictionary) => {
                let DictionaryOptions { list, unknown, saved } = dictionary;
                saved.check(Some(list))?;
                let file = whit::partition::dictionary(list, &saved.name(), unknown)?;
                saved.save(&file, None, out, talk)
            }
            Self::Kmeans(kmeans) => kmeans.run(out, talk),
            Self::Show(show) => {
                let file = whit::partition::load(&show.file)?;
                print(&file, show.file.clone(), None, show.json, out)
            }
        }
    }
}

/// What a partition file holds, for people or for programs.
fn print(
    file: &PartitionFile,
    path: PathBuf,
    objective: Option<f64>,
    json: bool,
    out: &mut dyn Write,
) -> Result<(), Error> {
    let view = PartitionView::of(file, path, objective);
    if json { write_json(&view, out) } else { Ok(view.write(out)?) }
}

impl Saved {
    fn name(&self) -> String {
        let stem = || self.output.file_stem().map(|stem| stem.to_string_lossy().into_owned());
        self.name.clone().or_else(stem).unwrap_or_default()
    }

    /// Refuses to replace what no output may replace, and what the partition is made from.
    fn check(&self, source: Option<&Path>) -> Result<(), Error> {
        let inputs = inputs().may_replace(Input::Partition);
        let inputs = source.into_iter().fold(inputs, |inputs, path| inputs.and(Input::Data, path));
        Ok(inputs.check(&self.output)?)
    }

    fn symbolic(&self, kind: PartitionKind, out: &mut dyn Write, talk: &mut dyn Write) -> Result<(), Error> {
        self.check(None)?;
        let file = whit::partition::symbolic(&self.name(), kind)?;
        self.save(&file, None, out, talk)
    }

    fn save(
        &self,
        file: &PartitionFile,
        objective: Option<f64>,
        out: &mut dyn Write,
        talk: &mut dyn Write,
    ) -> Result<(), Error> {
        whit::partition::save(file, &self.output)?;
        writeln!(talk, "wrote {}", self.output.display())?;
        print(file, self.output.clone(), objective, self.json, out)
    }
}

impl KmeansOptions {
    fn run(&self, out: &mut dyn Write, talk: &mut dyn Write) -> Result<(), Error> {
        self.saved.check(Some(&self.embeddings))?;
        let clustering = ClusteringPlan {
            embeddings: &self.embeddings,
            item: &self.item,
            vector: &self.vector,
            clusters: self.clusters,
            iterations: self.iterations,
            seed: self.seed,
            threads: self.threads,
        };
        let progress = ProgressLine::new(self.saved.json);
        let clustered = clustering.run(&self.saved.name(), &mut |step| match step {
            ClusteringStep::Reading => progress.start("reading embeddings"),
            ClusteringStep::Clustering { items } => progress.start(&format!("clustering {}", number_of(items, "item"))),
            ClusteringStep::Done { part, of } => progress.set(part, of),
        });
        progress.finish();
        let Clustered { file, objective, repeated } = clustered?;
        if repeated > 0 {
            let stand = if repeated == 1 { "stands" } else { "stand" };
            writeln!(talk, "note: {} {stand} there twice; the first of each was taken", number_of(repeated, "item"))?;
        }
        self.saved.save(&file, Some(objective), out, talk)
    }
}
