//! The nearest of many centres for each of many points, as matrix products.
//!
//! ‖x − c‖² = ‖x‖² + 2·(‖c‖²/2 − x·c), so the nearest centre is where ‖c‖²/2 − x·c is least, and all of these for a block
//! of points and a block of centres are one product. Blocks are small enough that a product is read again while it is
//! still in the cache.

use std::sync::{Mutex, PoisonError};
use whit_core::matrix::{Destination, Matrix, product};

/// Points that share one block.
const ROWS: usize = 256;
/// Centres that share one block.
const COLUMNS: usize = 768;

/// Vectors of one dimension, one after the other.
#[derive(Debug, Clone, Copy)]
pub(super) struct Vectors<'a> {
    pub(super) values: &'a [f32],
    pub(super) dimension: usize,
}

impl<'a> Vectors<'a> {
    pub(super) fn new(values: &'a [f32], dimension: usize) -> Self {
        assert!(dimension > 0 && values.len().is_multiple_of(dimension), "a whole number of vectors");
        Self { values, dimension }
    }

    pub(super) fn len(&self) -> usize {
        self.values.len() / self.dimension
    }

    pub(super) fn row(&self, i: usize) -> &'a [f32] {
        &self.values[i * self.dimension..][..self.dimension]
    }

    /// So many of them as the rows of a matrix.
    fn rows(&self, from: usize, count: usize) -> Matrix<'a, f32> {
        Matrix::new(&self.values[from * self.dimension..][..count * self.dimension], count, self.dimension)
    }
}

/// The squared distance, in double precision.
pub(super) fn squared_distance(a: &[f32], b: &[f32]) -> f64 {
    a.iter().zip(b).map(|(x, y)| (f64::from(*x) - f64::from(*y)).powi(2)).sum()
}

/// Half the squared length.
pub(super) fn half_square(vector: &[f32]) -> f32 {
    (0.5 * vector.iter().map(|x| f64::from(*x) * f64::from(*x)).sum::<f64>()) as f32
}

/// For each point its nearest centre so far, and ‖c‖²/2 − x·c for that centre.
#[derive(Debug, Clone)]
pub(super) struct Nearest {
    pub(super) centre: Vec<u32>,
    pub(super) score: Vec<f32>,
}

impl Nearest {
    pub(super) fn nowhere(points: usize) -> Self {
        Self { centre: vec![0; points], score: vec![f32::INFINITY; points] }
    }

    /// Moves every point to one of `centres`, whose numbers start at `first`, where that is nearer than what it has. Of
    /// two that are equally near, the first stays. The result does not depend on the number of threads.
    pub(super) fn improve(&mut self, points: Vectors<'_>, centres: Vectors<'_>, first: u32, threads: usize) {
        assert_eq!(points.dimension, centres.dimension, "points and centres of one dimension");
        assert_eq!(points.len(), self.centre.len(), "every point has a place");
        let halves: Vec<f32> = (0..centres.len()).map(|j| half_square(centres.row(j))).collect();
        let blocks = self.centre.chunks_mut(ROWS).zip(self.score.chunks_mut(ROWS)).enumerate();
        let blocks = Mutex::new(blocks);
        let work = || {
            let mut products = vec![0.0; ROWS * COLUMNS.min(centres.len())];
            loop {
                let next = blocks.lock().unwrap_or_else(PoisonError::into_inner).next();
                let Some((number, (centre, score))) = next else { return };
                let rows = points.rows(number * ROWS, centre.len());
                for from in (0..centres.len()).step_by(COLUMNS) {
                    let count = COLUMNS.min(centres.len() - from);
                    let products = &mut products[..centre.len() * count];
                    product(rows, centres.rows(from, count).turned(), products, Destination::Rows);
                    let halves = &halves[from..from + count];
                    for ((centre, score), products) in
                        centre.iter_mut().zip(score.iter_mut()).zip(products.chunks_exact(count))
                    {
                        let least = least(products, halves);
                        if least < *score {
                            let at = products.iter().zip(halves).position(|(product, half)| half - product == least);
                            *score = least;
                            *centre = first + (from + at.unwrap_or(0)) as u32;
                        }
                    }
                }
            }
        };
        std::thread::scope(|scope| {
            for _ in 1..threads.max(1) {
                scope.spawn(work);
            }
            work();
        });
    }
}

/// The least of half − product. Lanes are folded apart, so that the compiler makes vector instructions of them.
fn least(products: &[f32], halves: &[f32]) -> f32 {
    const LANES: usize = 16;
    let mut lanes = [f32::INFINITY; LANES];
    let (products, products_rest) = products.as_chunks::<LANES>();
    let (halves, halves_rest) = halves.as_chunks::<LANES>();
    for (products, halves) in products.iter().zip(halves) {
        for ((lane, product), half) in lanes.iter_mut().zip(products).zip(halves) {
            let score = half - product;
            *lane = if score < *lane { score } else { *lane };
        }
    }
    let rest = products_rest.iter().zip(halves_rest).map(|(product, half)| half - product);
    rest.chain(lanes).fold(f32::INFINITY, f32::min)
}

#[cfg(test)]
mod tests {
    use super::*;
    use whit_noise::{Entropy, Replay};

    pub(crate) fn random(count: usize, dimension: usize, seed: u64) -> Vec<f32> {
        let mut entropy = Replay::new(seed);
        (0..count * dimension).map(|_| entropy.bits(24) as f32 / 2f32.powi(23) - 1.0).collect()
    }

    /// Sizes that fill blocks, that do not, and single rows; one thread and three.
    #[test]
    fn the_nearest_centre_is_the_one_that_distances_find() {
        for (points, centres, dimension) in [(1, 1, 1), (300, 7, 3), (513, 800, 10), (257, 1537, 5), (5, 20, 100)] {
            let (x, c) = (random(points, dimension, 1), random(centres, dimension, 2));
            let (x, c) = (Vectors::new(&x, dimension), Vectors::new(&c, dimension));
            let mut found = Nearest::nowhere(points);
            found.improve(x, c, 40, 1);
            let mut again = Nearest::nowhere(points);
            again.improve(x, c, 40, 3);
            assert_eq!((&found.centre, &found.score), (&again.centre, &again.score), "threads change nothing");
            for i in 0..points {
                let distances = (0..centres).map(|j| squared_distance(x.row(i), c.row(j)));
                let nearest = distances.fold(f64::INFINITY, f64::min);
                let distance = squared_distance(x.row(i), c.row(found.centre[i] as usize - 40));
                assert!(distance <= nearest + 1e-4, "point {i}: {distance} where {nearest} is there");
                let score = 2.0 * f64::from(half_square(x.row(i)) + found.score[i]);
                assert!((score - distance).abs() < 1e-4, "point {i}: the score says {score}, the distance {distance}");
            }
        }
    }

    #[test]
    fn the_first_of_equals_stays() {
        let (x, c) = ([1.0, 1.0], [0.0, 0.0, 2.0, 2.0, 0.0, 0.0]);
        let mut found = Nearest::nowhere(1);
        found.improve(Vectors::new(&x, 2), Vectors::new(&c, 2), 0, 1);
        assert_eq!(found.centre, [0]);
        found.improve(Vectors::new(&x, 2), Vectors::new(&[2.0, 0.0], 2), 3, 1);
        assert_eq!(found.centre, [0]);
    }
}
