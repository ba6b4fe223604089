//! Partitions: which element a row falls into.
//!
//! A partition is made without the private data: by naming a column, writing an expression, taking a published dictionary
//! or published embeddings. One that is fitted on private data (centroids of it, its most frequent words) tells of
//! that data, so the fit is a release of its own, and is charged before the partition is used.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// How a row is mapped to its element.
///
/// ```
/// use whit_core::Partition;
/// let days = Partition::dictionary([("sat", "weekend"), ("sun", "weekend")], "weekday");
/// assert_eq!(days.element_of("sun")?, "weekend");
/// assert_eq!(days.element_of("tue")?, "weekday");
/// # Ok::<(), whit_core::partition::PartitionError>(())
/// ```
///
/// Every value has exactly one element, also a value that nobody thought of: a row that fell into none would be protected by
/// no unit.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Partition {
    /// The value of a column is the element.
    Column {
        /// The column.
        column: String,
    },
    /// A list of values and their elements, and one element for all other values.
    Dictionary {
        /// The element of each value that is listed.
        elements: BTreeMap<String, String>,
        /// The element of every other value.
        unknown: String,
    },
    /// The nearest of some points to a value's embedding.
    Nearest(Nearest),
    /// A SQL expression over a row, for an engine to evaluate.
    Expression {
        /// What people call the element: `day`.
        name: String,
        /// The text: `date_trunc('day', at)`.
        sql: String,
    },
    /// The registrable domain of a URL, by the public-suffix list, for an engine to evaluate.
    RegistrableDomain {
        /// The column with URLs or host names.
        column: String,
    },
}

/// A partition that makes no sense, or that is asked what it cannot tell.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PartitionError {
    /// Only an engine can evaluate it.
    #[error(
        "the partition {0} is evaluated by an engine, row by row, and not in memory: plan a query with it, or use a column, a dictionary or centroids"
    )]
    Symbolic(String),
    /// Nothing to be near to.
    #[error("there are no centroids, so no row has an element: give at least one")]
    NoCentroids,
    /// Points of different dimension.
    #[error(
        "`{what}` has {found} coordinates where the first centroid has {expected}: give all of them the same number"
    )]
    Dimension {
        /// Which point.
        what: String,
        /// How many coordinates it should have.
        expected: usize,
        /// How many it has.
        found: usize,
    },
    /// A coordinate that is NaN or infinite.
    #[error("`{0}` has a coordinate that is not a finite number, so it is near to nothing: leave it out or repair it")]
    NotFinite(String),
    /// The element for unknown values is none of the centroids.
    #[error("values without an embedding go to centroid {unknown}, but the last one has number {last}")]
    NoSuchCentroid {
        /// The number that was given.
        unknown: usize,
        /// The largest there is.
        last: usize,
    },
}

impl Partition {
    /// By the value of a column.
    #[must_use]
    pub fn column(column: &str) -> Self {
        Self::Column { column: column.to_owned() }
    }

    /// By a published list; what is not on it goes to `unknown`.
    #[must_use]
    pub fn dictionary<'a>(elements: impl IntoIterator<Item = (&'a str, &'a str)>, unknown: &str) -> Self {
        let elements = elements.into_iter().map(|(value, element)| (value.to_owned(), element.to_owned())).collect();
        Self::Dictionary { elements, unknown: unknown.to_owned() }
    }

    /// By the nearest of some centroids.
    #[must_use]
    pub fn nearest(nearest: Nearest) -> Self {
        Self::Nearest(nearest)
    }

    /// By a SQL expression, under a name.
    ///
    /// ```
    /// use whit_core::Partition;
    /// let day = Partition::expression("day", "date_trunc('day', at)");
    /// assert!(day.element_of("2024-05-01T12:00").is_err()); // an engine's business
    /// ```
    #[must_use]
    pub fn expression(name: &str, sql: &str) -> Self {
        Self::Expression { name: name.to_owned(), sql: sql.to_owned() }
    }

    /// By the registrable domain of a column of URLs.
    #[must_use]
    pub fn registrable_domain(column: &str) -> Self {
        Self::RegistrableDomain { column: column.to_owned() }
    }

    /// The element of a value, where that needs no engine. Centroids are called by their numbers, from 0.
    pub fn element_of(&self, value: &str) -> Result<String, PartitionError> {
        match self {
            Self::Column { .. } => Ok(value.to_owned()),
            Self::Dictionary { elements, unknown } => Ok(elements.get(value).unwrap_or(unknown).clone()),
            Self::Nearest(nearest) => Ok(nearest.number_of(value).to_string()),
            Self::Expression { sql, .. } => Err(PartitionError::Symbolic(format!("`{sql}`"))),
            Self::RegistrableDomain { column } => {
                Err(PartitionError::Symbolic(format!("by the registrable domain of `{column}`")))
            }
        }
    }

    /// How many elements there are, where that is known: it bounds how many of them one user has.
    pub fn elements(&self) -> Option<u64> {
        match self {
            Self::Dictionary { elements, unknown } => {
                let named: std::collections::BTreeSet<&String> = elements.values().chain([unknown]).collect();
                Some(named.len() as u64)
            }
            Self::Nearest(nearest) => Some(nearest.centroids.len() as u64),
            Self::Column { .. } | Self::Expression { .. } | Self::RegistrableDomain { .. } => None,
        }
    }
}

/// Centroids, and where each value lies among them.
///
/// The assignment step of k-means, no more: both the centroids and the embeddings come from outside.
///
/// ```
/// use std::collections::BTreeMap;
/// use whit_core::{Partition, partition::Nearest};
/// let embeddings = BTreeMap::from([("tea".to_owned(), vec![0.9, 0.1]), ("rain".to_owned(), vec![0.0, 1.0])]);
/// let words = Partition::nearest(Nearest::new(vec![vec![1.0, 0.0], vec![0.0, 1.0]], embeddings, 1)?);
/// assert_eq!(words.element_of("tea")?, "0");
/// assert_eq!(words.element_of("xyzzy")?, "1");
/// # Ok::<(), whit_core::partition::PartitionError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "NearestDraft")]
pub struct Nearest {
    centroids: Vec<Vec<f64>>,
    embeddings: BTreeMap<String, Vec<f64>>,
    unknown: usize,
}

/// The same as it stands in a file, before it is known to make sense.
#[derive(Deserialize)]
struct NearestDraft {
    centroids: Vec<Vec<f64>>,
    embeddings: BTreeMap<String, Vec<f64>>,
    unknown: usize,
}

impl TryFrom<NearestDraft> for Nearest {
    type Error = PartitionError;

    fn try_from(points: NearestDraft) -> Result<Self, PartitionError> {
        Self::new(points.centroids, points.embeddings, points.unknown)
    }
}

impl Nearest {
    /// Takes centroids, the embedding of each value that has one, and the number of the centroid for values that have none.
    pub fn new(
        centroids: Vec<Vec<f64>>,
        embeddings: BTreeMap<String, Vec<f64>>,
        unknown: usize,
    ) -> Result<Self, PartitionError> {
        let expected = centroids.first().ok_or(PartitionError::NoCentroids)?.len();
        let check = |what: &dyn Fn() -> String, point: &[f64]| {
            if point.len() != expected {
                return Err(PartitionError::Dimension { what: what(), expected, found: point.len() });
            }
            if point.iter().all(|x| x.is_finite()) { Ok(()) } else { Err(PartitionError::NotFinite(what())) }
        };
        for (number, centroid) in centroids.iter().enumerate() {
            check(&|| format!("centroid {number}"), centroid)?;
        }
        for (value, embedding) in &embeddings {
            check(&|| value.clone(), embedding)?;
        }
        if unknown >= centroids.len() {
            return Err(PartitionError::NoSuchCentroid { unknown, last: centroids.len() - 1 });
        }
        Ok(Self { centroids, embeddings, unknown })
    }

    /// The number of the centroid that is nearest to a value; the first of those that are equally near.
    pub fn number_of(&self, value: &str) -> usize {
        self.embeddings.get(value).map_or(self.unknown, |embedding| self.nearest_to(embedding))
    }

    fn nearest_to(&self, point: &[f64]) -> usize {
        let square = |centroid: &Vec<f64>| -> f64 { centroid.iter().zip(point).map(|(c, x)| (c - x) * (c - x)).sum() };
        let mut best = (0, f64::INFINITY);
        for (number, distance) in self.centroids.iter().map(square).enumerate() {
            if distance < best.1 {
                best = (number, distance);
            }
        }
        best.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(points: &[(&str, f64)]) -> BTreeMap<String, Vec<f64>> {
        points.iter().map(|&(value, x)| (value.to_owned(), vec![x])).collect()
    }

    #[test]
    fn every_value_has_exactly_one_element() {
        let words = Partition::dictionary([("tea", "drink"), ("ale", "drink")], "other");
        assert_eq!(words.element_of("tea"), words.element_of("ale"));
        assert_eq!(words.element_of("never seen").as_deref(), Ok("other"));
        assert_eq!(words.elements(), Some(2));
        assert_eq!(Partition::column("word").element_of("tea").as_deref(), Ok("tea"));
        assert_eq!(Partition::column("word").elements(), None);
    }

    #[test]
    fn a_value_goes_to_the_nearest_centroid_and_a_tie_to_the_first() {
        let embeddings = line(&[("low", 0.9), ("middle", 1.0), ("high", 1.1), ("far", 1e200)]);
        let nearest = Nearest::new(vec![vec![0.0], vec![2.0]], embeddings, 1).unwrap();
        assert_eq!(["low", "middle", "high"].map(|value| nearest.number_of(value)), [0, 0, 1]);
        assert_eq!(nearest.number_of("far"), 0, "distances that overflow are a tie");
        assert_eq!(nearest.number_of("never seen"), 1);
        assert_eq!(Partition::nearest(nearest).elements(), Some(2));
    }

    #[test]
    fn what_only_an_engine_can_tell_is_not_guessed() {
        let message = Partition::expression("day", "date_trunc('day', at)").element_of("x").unwrap_err().to_string();
        assert!(message.starts_with("the partition `date_trunc('day', at)` is evaluated by an engine"), "{message}");
        assert!(Partition::registrable_domain("url").element_of("https://a.example.org").is_err());
    }

    #[test]
    fn points_that_make_no_sense_are_refused_by_name() {
        let one = || line(&[("tea", 1.0)]);
        assert_eq!(Nearest::new(vec![], one(), 0), Err(PartitionError::NoCentroids));
        let flat = Nearest::new(vec![vec![0.0, 0.0]], one(), 0).unwrap_err().to_string();
        assert_eq!(flat, "`tea` has 1 coordinates where the first centroid has 2: give all of them the same number");
        let nan = Nearest::new(vec![vec![0.0]], line(&[("tea", f64::NAN)]), 0);
        assert_eq!(nan, Err(PartitionError::NotFinite("tea".to_owned())));
        assert!(matches!(Nearest::new(vec![vec![0.0]], one(), 1), Err(PartitionError::NoSuchCentroid { .. })));
    }

    #[test]
    fn a_partition_survives_being_written_down() {
        let nearest = Nearest::new(vec![vec![0.0], vec![2.0]], line(&[("tea", 0.1)]), 0).unwrap();
        for partition in [
            Partition::column("word"),
            Partition::dictionary([("tea", "drink")], "other"),
            Partition::nearest(nearest),
            Partition::expression("day", "date_trunc('day', at)"),
            Partition::registrable_domain("url"),
        ] {
            let text = serde_json::to_string(&partition).unwrap();
            assert_eq!(serde_json::from_str::<Partition>(&text).unwrap(), partition);
        }
        let empty = r#"{"nearest":{"centroids":[],"embeddings":{},"unknown":0}}"#;
        assert!(serde_json::from_str::<Partition>(empty).is_err());
    }
}
