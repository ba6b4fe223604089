//! k-means over public embeddings: k-means++ seeds, then Lloyd's iterations as matrix products.
//!
//! The points are published (word vectors, say), so nothing here is private and a seed may be chosen by hand: it makes a
//! partition that others can make again. Centroids of private data would tell of that data; this is not for them.
//!
//! # Seeding
//! k-means++ (Arthur, Vassilvitskii 2007) takes each next centre with probability proportional to D², the squared distance
//! to the nearest centre so far. One centre at a time reads all points once for each centre. Here centres are taken by the
//! batch, from the very same law: a point that was drawn in proportion to an older D² is kept with probability
//! D²(now) / D²(then), where "now" counts the centres that the batch already has. D² only falls, so this is a probability, and
//! what is kept has the law of D²(now). After the batch one matrix product brings all D² up to date, so that the whole seeding costs
//! about as much arithmetic as one iteration, and leaves every point assigned to its nearest seed.

use super::product::{Nearest, Vectors, half_square, squared_distance};
use whit_noise::{Entropy, Replay};

/// Vectors of one dimension.
#[derive(Debug, Clone, PartialEq)]
pub struct Points {
    coordinates: Vec<f32>,
    dimension: usize,
}

/// Why points were not clustered.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum KmeansError {
    /// No points, or no coordinates.
    #[error("there are no points to cluster: expected at least one vector with at least one coordinate")]
    Nothing,
    /// A vector of another dimension.
    #[error("vector {number} has {found} coordinates, and the first has {expected}: give all of them the same number")]
    Dimension {
        /// Which one, from 1.
        number: usize,
        /// How many coordinates it has.
        found: usize,
        /// How many the first has.
        expected: usize,
    },
    /// A coordinate that is NaN, infinite, or too large to square.
    #[error("vector {0} has a coordinate that is no finite number of usual size: leave it out or repair it")]
    NotFinite(usize),
    /// More clusters than different points.
    #[error("{asked} clusters were asked for and only {found} different vectors are there: ask for at most {found}")]
    TooMany {
        /// How many were asked for.
        asked: u32,
        /// How many there can be.
        found: u32,
    },
    /// No clusters.
    #[error("0 clusters were asked for: every point needs one, so ask for at least 1")]
    None,
}

impl Points {
    /// Takes vectors one after the other, `dimension` coordinates each.
    pub fn new(coordinates: Vec<f32>, dimension: usize) -> Result<Self, KmeansError> {
        if dimension == 0 || coordinates.is_empty() {
            return Err(KmeansError::Nothing);
        }
        if !coordinates.len().is_multiple_of(dimension) {
            let (number, found) = (coordinates.len() / dimension + 1, coordinates.len() % dimension);
            return Err(KmeansError::Dimension { number, found, expected: dimension });
        }
        // Squares of what is left fit into single precision, whatever the dimension.
        match coordinates.iter().position(|x| x.is_nan() || x.abs() > 1e12) {
            Some(at) => Err(KmeansError::NotFinite(at / dimension + 1)),
            None => Ok(Self { coordinates, dimension }),
        }
    }

    /// How many there are.
    #[expect(clippy::len_without_is_empty, reason = "there is always a point")]
    pub fn len(&self) -> usize {
        self.coordinates.len() / self.dimension
    }

    /// How many coordinates each has.
    pub fn dimension(&self) -> usize {
        self.dimension
    }

    fn matrix(&self) -> Vectors<'_> {
        Vectors::new(&self.coordinates, self.dimension)
    }

    /// Moves the mean to 0, so that products of long, similar vectors do not drown their differences.
    fn centred(mut self) -> (Self, Vec<f32>) {
        let mut mean = vec![0.0_f64; self.dimension];
        for row in self.coordinates.chunks_exact(self.dimension) {
            mean.iter_mut().zip(row).for_each(|(sum, x)| *sum += f64::from(*x));
        }
        let count = self.len() as f64;
        let mean: Vec<f32> = mean.into_iter().map(|sum| (sum / count) as f32).collect();
        for row in self.coordinates.chunks_exact_mut(mean.len()) {
            row.iter_mut().zip(&mean).for_each(|(x, mean)| *x -= mean);
        }
        (self, mean)
    }
}

/// What decides how points are clustered. Threads change how long it takes and not what comes out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Settings {
    /// How many clusters.
    pub clusters: u32,
    /// The most iterations; fewer where no point moves any more.
    pub iterations: u32,
    /// What seeds the choice of the first centres.
    pub seed: u64,
    /// How many threads work.
    pub threads: usize,
}

/// How far a clustering has come.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Progress {
    /// So many of the first centres are chosen.
    Seeding {
        /// How many are there.
        chosen: u32,
        /// How many there will be.
        of: u32,
    },
    /// An iteration is done.
    Iteration {
        /// Which one, from 1.
        number: u32,
        /// The most there will be.
        of: u32,
        /// The sum of squared distances to the nearest centroid.
        objective: f64,
        /// How many points changed their cluster.
        moved: u64,
    },
}

/// Points in clusters.
#[derive(Debug, Clone, PartialEq)]
pub struct Clustering {
    /// The centroids, one after the other.
    pub centroids: Vec<f32>,
    /// For each point the number of the nearest centroid.
    pub cluster_of: Vec<u32>,
    /// The sum of squared distances to it.
    pub objective: f64,
    /// How many iterations were made.
    pub iterations: u32,
}

/// Clusters points: k-means++ seeds and at most [`Settings::iterations`] of Lloyd's iterations.
///
/// A cluster that loses all its points starts anew at the point that is furthest from its centroid, so that there are as
/// many clusters as asked for. The objective never rises.
///
/// ```
/// use whit_query::partition::kmeans::{Points, Settings, cluster};
/// let points = Points::new(vec![0.0, 0.1, 9.0, 9.2, 0.2], 1)?;
/// let settings = Settings { clusters: 2, iterations: 10, seed: 7, threads: 1 };
/// let found = cluster(points, settings, &mut |_| ())?;
/// assert_eq!(found.cluster_of[0], found.cluster_of[4]);
/// assert_ne!(found.cluster_of[0], found.cluster_of[2]);
/// # Ok::<(), whit_query::partition::kmeans::KmeansError>(())
/// ```
pub fn cluster(
    points: Points,
    settings: Settings,
    progress: &mut dyn FnMut(Progress),
) -> Result<Clustering, KmeansError> {
    if settings.clusters == 0 {
        return Err(KmeansError::None);
    }
    let (points, mean) = points.centred();
    let points = points.matrix();
    let halves: Vec<f32> = (0..points.len()).map(|i| half_square(points.row(i))).collect();
    let (mut centroids, mut nearest) = seeds(points, &halves, settings, progress)?;
    let mut objective = objective_of(&halves, &nearest);
    let mut made = 0;
    for number in 1..=settings.iterations {
        update(points, &halves, &nearest, &mut centroids);
        let before = std::mem::replace(&mut nearest, Nearest::nowhere(points.len()));
        nearest.improve(points, Vectors::new(&centroids, points.dimension), 0, settings.threads);
        let moved = before.centre.iter().zip(&nearest.centre).filter(|(old, new)| old != new).count() as u64;
        objective = objective_of(&halves, &nearest);
        made = number;
        progress(Progress::Iteration { number, of: settings.iterations, objective, moved });
        if moved == 0 {
            break;
        }
    }
    for row in centroids.chunks_exact_mut(mean.len()) {
        row.iter_mut().zip(&mean).for_each(|(x, mean)| *x += mean);
    }
    Ok(Clustering { centroids, cluster_of: nearest.centre, objective, iterations: made })
}

/// ‖x − c‖² of a point and its nearest centre; rounding may take what is nearly 0 below it.
fn squared(half: f32, score: f32) -> f32 {
    (2.0 * (half + score)).max(0.0)
}

fn objective_of(halves: &[f32], nearest: &Nearest) -> f64 {
    halves.iter().zip(&nearest.score).map(|(half, score)| f64::from(squared(*half, *score))).sum()
}

/// The first centres by k-means++, and each point's nearest of them.
fn seeds(
    points: Vectors<'_>,
    halves: &[f32],
    settings: Settings,
    progress: &mut dyn FnMut(Progress),
) -> Result<(Vec<f32>, Nearest), KmeansError> {
    let of = settings.clusters;
    let mut entropy = Replay::new(settings.seed);
    let mut unit = || entropy.bits(53) as f64 / 2f64.powi(53);
    let mut nearest = Nearest::nowhere(points.len());
    let mut chosen: Vec<f32> = Vec::new();
    let first = ((unit() * points.len() as f64) as usize).min(points.len() - 1);
    let mut batch: Vec<f32> = points.row(first).to_vec();
    loop {
        let have = (chosen.len() / points.dimension) as u32;
        nearest.improve(points, Vectors::new(&batch, points.dimension), have, settings.threads);
        chosen.append(&mut batch);
        let have = (chosen.len() / points.dimension) as u32;
        progress(Progress::Seeding { chosen: have, of });
        if have == of {
            return Ok((chosen, nearest));
        }
        let mut total = 0.0;
        let sums: Vec<f64> = (halves.iter().zip(&nearest.score))
            .map(|(half, score)| {
                total += f64::from(squared(*half, *score));
                total
            })
            .collect();
        // More than half as many again, and the batch would throw away much of what it draws.
        let wanted = (have / 2).clamp(1, of - have) as usize;
        let (mut drawn, patience) = (0, 4 * wanted + 64);
        while batch.len() < wanted * points.dimension && drawn < patience && total > 0.0 {
            drawn += 1;
            let mark = unit() * total;
            let i = sums.partition_point(|sum| *sum <= mark).min(points.len() - 1);
            let then = f64::from(squared(halves[i], nearest.score[i]));
            // Exactly, so that a point on top of a centre is never taken for a new one however products round.
            let old = squared_distance(
                points.row(i),
                &chosen[nearest.centre[i] as usize * points.dimension..][..points.dimension],
            );
            let new = batch.chunks_exact(points.dimension).map(|centre| squared_distance(points.row(i), centre));
            let now = new.fold(old.min(then), f64::min);
            if old > 0.0 && unit() * then < now {
                batch.extend_from_slice(points.row(i));
            }
        }
        if batch.is_empty() {
            // Nothing far from all centres was found by luck, so look at all points.
            let far = (0..points.len()).find(|&i| {
                let centre = nearest.centre[i] as usize * points.dimension;
                squared_distance(points.row(i), &chosen[centre..][..points.dimension]) > 0.0
            });
            let far = far.ok_or(KmeansError::TooMany { asked: of, found: have })?;
            batch.extend_from_slice(points.row(far));
        }
    }
}

/// Moves each centroid to the mean of its points, and those without points to where points are furthest from theirs.
fn update(points: Vectors<'_>, halves: &[f32], nearest: &Nearest, centroids: &mut [f32]) {
    let dimension = points.dimension;
    let mut sums = vec![0.0_f64; centroids.len()];
    let mut counts = vec![0_u32; centroids.len() / dimension];
    for (i, &centre) in nearest.centre.iter().enumerate() {
        let sum = &mut sums[centre as usize * dimension..][..dimension];
        sum.iter_mut().zip(points.row(i)).for_each(|(sum, x)| *sum += f64::from(*x));
        counts[centre as usize] += 1;
    }
    for ((centroid, sum), &count) in
        centroids.chunks_exact_mut(dimension).zip(sums.chunks_exact(dimension)).zip(&counts)
    {
        if count > 0 {
            centroid.iter_mut().zip(sum).for_each(|(x, sum)| *x = (sum / f64::from(count)) as f32);
        }
    }
    let empty: Vec<usize> = (0..counts.len()).filter(|&c| counts[c] == 0).collect();
    if empty.is_empty() {
        return;
    }
    let mut furthest: Vec<usize> = (0..points.len()).collect();
    let distance = |i: usize| squared(halves[i], nearest.score[i]);
    let take = empty.len().min(points.len());
    furthest.select_nth_unstable_by(take - 1, |&a, &b| distance(b).total_cmp(&distance(a)).then(a.cmp(&b)));
    furthest.truncate(take);
    furthest.sort_unstable_by(|&a, &b| distance(b).total_cmp(&distance(a)).then(a.cmp(&b)));
    for (centre, point) in empty.into_iter().zip(furthest) {
        centroids[centre * dimension..][..dimension].copy_from_slice(points.row(point));
    }
}

#[cfg(test)]
mod tests;
