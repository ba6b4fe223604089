//! Partitions, made without the private data: which element a value falls into.
//!
//! A column or a SQL expression names the element itself. [`registrable_domain`] takes it from a URL. A [dictionary](file::PartitionFile::dictionary) and
//! [k-means](mod@kmeans) over published embeddings list it, value by value, in a small [file](mod@file) whose hash the ledger records.

pub mod domain;
pub mod embeddings;
pub mod file;
pub mod kmeans;
mod lookup;
mod product;
mod text;

pub use domain::registrable_domain;
pub(crate) use domain::registrable_domain_udf;
pub use file::{PartitionFile, PartitionFileError, PartitionKind};
pub(crate) use lookup::{Lookup, PARTITION_FUNCTION, lookup_udf};
