//! What a partition is made from, and where it goes.

use std::path::PathBuf;

/// Where a partition goes.
#[derive(clap::Args)]
pub(super) struct Saved {
    /// The file to write.
    #[arg(long, value_name = "FILE")]
    pub(super) output: PathBuf,
    /// What the partition is called; like the file without it.
    #[arg(long, value_name = "NAME")]
    pub(super) name: Option<String>,
    /// Print JSON for programs instead of a table for people.
    #[arg(long)]
    pub(super) json: bool,
}

#[derive(clap::Args)]
pub(crate) struct ColumnOptions {
    /// The column.
    pub(super) column: String,
    #[command(flatten)]
    pub(super) saved: Saved,
}

#[derive(clap::Args)]
pub(crate) struct ExpressionOptions {
    /// The expression.
    pub(super) sql: String,
    #[command(flatten)]
    pub(super) saved: Saved,
}

#[derive(clap::Args)]
pub(crate) struct DomainOptions {
    /// The column with URLs or host names.
    pub(super) column: String,
    /// Show the registrable domain of a URL; may be given several times.
    #[arg(long = "try", value_name = "URL")]
    pub(super) tried: Vec<String>,
    #[command(flatten)]
    pub(super) saved: Saved,
}

#[derive(clap::Args)]
pub(crate) struct DictionaryOptions {
    /// A text file with a value and its element on each line, and a tab or, where there is none, the last comma between them.
    pub(super) list: PathBuf,
    /// The element of all other values.
    #[arg(long, value_name = "NAME", default_value = "other")]
    pub(super) unknown: String,
    #[command(flatten)]
    pub(super) saved: Saved,
}

#[derive(clap::Args)]
pub(crate) struct KmeansOptions {
    /// The embeddings: Parquet, CSV, or text with an item and its coordinates on each line (as GloVe has it).
    pub(super) embeddings: PathBuf,
    /// How many clusters.
    #[arg(long, value_name = "K", value_parser = clap::value_parser!(u32).range(1..))]
    pub(super) clusters: u32,
    /// The column of items, in Parquet and CSV.
    #[arg(long, value_name = "COLUMN", default_value = "word")]
    pub(super) item: String,
    /// The column of vectors, or several columns of coordinates with commas between them; all columns of numbers without it.
    #[arg(long, value_name = "COLUMN", value_delimiter = ',')]
    pub(super) vector: Vec<String>,
    /// The most iterations.
    #[arg(long, value_name = "N", default_value_t = 20)]
    pub(super) iterations: u32,
    /// What seeds the first centres. Embeddings are public, so this is no secret: the same seed makes the same partition.
    #[arg(long, value_name = "NUMBER", default_value_t = 7)]
    pub(super) seed: u64,
    /// How many threads work; as many as the machine has without it.
    #[arg(long, value_name = "N")]
    pub(super) threads: Option<usize>,
    #[command(flatten)]
    pub(super) saved: Saved,
}

#[derive(clap::Args)]
pub(crate) struct ShowOptions {
    /// The partition file.
    pub(super) file: PathBuf,
    /// Print JSON for programs instead of a table for people.
    #[arg(long)]
    pub(super) json: bool,
}
