//! Partitions, made without the private data: from a name, a list of values, or published embeddings.

use crate::Error;
use std::path::Path;
use whit_query::QueryError;
use whit_query::partition::embeddings::Embeddings;
use whit_query::partition::kmeans::{self, Settings, cluster};
use whit_query::partition::{PartitionFile, PartitionFileError, PartitionKind};
use whit_query::source::runtime;

/// What partition files say is wrong with them.
fn wrong(error: PartitionFileError) -> Error {
    QueryError::from(error).into()
}

/// Reads a partition file.
pub fn load(path: &Path) -> Result<PartitionFile, Error> {
    PartitionFile::load(path).map_err(wrong)
}

/// Writes a partition file.
pub fn save(file: &PartitionFile, path: &Path) -> Result<(), Error> {
    file.save(path).map_err(|error| match error {
        PartitionFileError::Io { path, error, .. } => Error::file(&path, &error),
        other => wrong(other),
    })
}

/// A partition that a column, an expression or a domain makes, row by row.
pub fn symbolic(name: &str, kind: PartitionKind) -> Result<PartitionFile, Error> {
    PartitionFile::symbolic(name, kind).map_err(wrong)
}

/// A partition from a text file with a value and its element on each line, and a tab or, where there is none, the last comma between them. All
/// other values are of the element `unknown`.
pub fn dictionary(list: &Path, name: &str, unknown: &str) -> Result<PartitionFile, Error> {
    let text = std::fs::read_to_string(list)
        .map_err(|error| Error::asked(format!("`{}` cannot be read: {error}", list.display()), "name a text file"))?;
    let mut pairs = Vec::new();
    for (number, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
        let pair = line.rsplit_once('\t').or_else(|| line.rsplit_once(','));
        let (value, element) = pair.ok_or_else(|| {
            Error::asked(
                format!("line {} of `{}` has no tab and no comma", number + 1, list.display()),
                "write a value, a tab and its element on each line",
            )
        })?;
        pairs.push((value.trim(), element.trim()));
    }
    PartitionFile::dictionary(name, pairs, unknown).map_err(wrong)
}

/// Clusters of published embeddings, by k-means++.
#[derive(Debug, Clone, Copy)]
pub struct ClusteringPlan<'a> {
    /// Parquet, CSV, or text with an item and its coordinates on each line.
    pub embeddings: &'a Path,
    /// The column of items, in Parquet and CSV.
    pub item: &'a str,
    /// The column of vectors, or several of coordinates; all columns of numbers where there is none.
    pub vector: &'a [String],
    /// How many clusters.
    pub clusters: u32,
    /// The most iterations.
    pub iterations: u32,
    /// What seeds the first centres. Embeddings are public, so this is no secret: the same seed makes the same partition.
    pub seed: u64,
    /// How many threads work; as many as the machine has without it.
    pub threads: Option<usize>,
}

/// How far a clustering has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ClusteringStep {
    /// The embeddings are read.
    Reading,
    /// So many items are clustered.
    Clustering {
        /// How many.
        items: usize,
    },
    /// A part of it is done.
    Done {
        /// How much.
        part: u64,
        /// Of how much.
        of: u64,
    },
}

/// What a clustering made.
#[derive(Debug)]
pub struct Clustered {
    /// The partition.
    pub file: PartitionFile,
    /// The sum of squared distances between items and their centres.
    pub objective: f64,
    /// How many items stood there twice; the first of each was taken.
    pub repeated: usize,
}

impl ClusteringPlan<'_> {
    /// Reads the embeddings, clusters them, and names the partition.
    pub fn run(&self, name: &str, watch: &mut dyn FnMut(ClusteringStep)) -> Result<Clustered, Error> {
        watch(ClusteringStep::Reading);
        let Embeddings { items, points, repeated } = self.read()?;
        let dimension = points.dimension();
        watch(ClusteringStep::Clustering { items: points.len() });
        let machine = || std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        let settings = Settings {
            clusters: self.clusters,
            iterations: self.iterations,
            seed: self.seed,
            threads: self.threads.unwrap_or_else(machine).max(1),
        };
        // Seeding costs about as much as one iteration.
        let of = 100 * (u64::from(self.iterations) + 1);
        let found = cluster(points, settings, &mut |step| {
            let part = match step {
                kmeans::Progress::Seeding { chosen, of } => u64::from(chosen) * 100 / u64::from(of),
                kmeans::Progress::Iteration { number, .. } => (u64::from(number) + 1) * 100,
            };
            watch(ClusteringStep::Done { part, of });
        });
        let found = found.map_err(|why| Error::asked(why.to_string(), "see `ClusteringPlan`"))?;
        let file = Embeddings::partition(items, name, &found, dimension, self.seed).map_err(wrong)?;
        Ok(Clustered { file, objective: found.objective, repeated })
    }

    fn read(&self) -> Result<Embeddings, Error> {
        let ending = self.embeddings.extension().map(|ending| ending.to_string_lossy().to_lowercase());
        Ok(match ending.as_deref() {
            Some("parquet" | "csv") => {
                let reading = Embeddings::read_table(self.embeddings, self.item, self.vector);
                runtime(self.threads)?.block_on(reading)?
            }
            _ => Embeddings::read_text(self.embeddings)?,
        })
    }
}
