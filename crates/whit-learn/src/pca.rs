//! Principal components: the directions in which rows vary most, from a noisy sum of outer products.

use crate::scatter::{self, Scatter};
use crate::symmetric::{self, Eigen};
use std::fmt;

/// What has no principal components.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum Error {
    /// More directions than there are columns, or none.
    #[error("{wanted} directions were asked for, and {columns} columns have 1 to {columns}")]
    Directions {
        /// How many were asked for.
        wanted: usize,
        /// How many columns there are.
        columns: usize,
    },
    /// A row of another length.
    #[error("the row has {given} numbers, and the directions were found for {expected}")]
    Row {
        /// How many it has.
        given: usize,
        /// How many it should have.
        expected: usize,
    },
    /// The released triangle does not fit.
    #[error(transparent)]
    Scatter(#[from] scatter::Error),
    /// The matrix does not come apart.
    #[error(transparent)]
    Symmetric(#[from] symmetric::Error),
}

impl Error {
    /// What to do next.
    pub fn hint(&self) -> &'static str {
        match self {
            Self::Directions { .. } => "ask for at least 1 direction, and for no more than there are columns",
            Self::Row { .. } => "use rows with the same columns in the same order",
            Self::Scatter(error) => error.hint(),
            Self::Symmetric(error) => error.hint(),
        }
    }
}

/// The directions of largest second moment of rows that were clipped to a radius R, from one release of [`Scatter`].
///
/// Rows are taken as they are: subtract a public or separately released mean first, where variance is meant.
///
/// # Neighbours
/// Data sets that differ in one unit of the rung, whose rows are together no longer than R. The sum of outer products
/// moves by at most R² in Frobenius norm under add-remove, and by √2·R² under replace.
///
/// # Claim
/// That of the released [`Scatter`]: one run costs `Cost::Gaussian { noise }`, with the noise's deviation over that
/// distance.
///
/// # Why
/// The distance is proved at [`Scatter`]. Eigenvalues, directions, gap and projections read the released matrix and
/// parameters alone, so they cost nothing more, whatever k is, and however often another k is tried. What they are
/// applied to is another matter: [`project`](Self::project) returns rows, which stay private data.
///
/// # Tried by
/// `scatter`'s `no_pair_of_units_is_farther_apart_than_claimed` and `the_claim_is_attained`; here
/// `a_planted_plane_is_found` and `noise_alone_has_no_gap`.
///
/// ```
/// use whit_learn::{pca::Principal, scatter::Scatter};
/// let scatter = Scatter::new(2, 1.0, "0.001".parse()?)?;
/// let released = [1_000_000_000_000, 0, 0]; // in practice from `whit_core::release(&scatter, |_| Ok(sum), …)`
/// let principal = Principal::of(&scatter, &released, 1)?;
/// assert_eq!(principal.direction(0), [1.0, 0.0]);
/// assert!(principal.gap.is_clear());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone)]
pub struct Principal {
    scatter: Scatter,
    columns: usize,
    kept: usize,
    /// All eigenvalues of the noisy matrix, largest first. Those below the noise's norm mean nothing, and some are
    /// negative.
    pub values: Vec<f64>,
    directions: Vec<f64>,
    /// What lies between the last direction that is kept and the first that is not.
    pub gap: Gap,
}

impl Principal {
    /// The first `kept` directions of a released triangle.
    pub fn of(scatter: &Scatter, noisy: &[i64], kept: usize) -> Result<Self, Error> {
        let columns = scatter.dimension();
        if !(1..=columns).contains(&kept) {
            return Err(Error::Directions { wanted: kept, columns });
        }
        let Eigen { values, mut vectors } = Eigen::of(&scatter.matrix(noisy)?, columns)?;
        vectors.truncate(kept * columns);
        for vector in vectors.chunks_exact_mut(columns) {
            // An eigenvector has no sign; the largest coordinate becomes positive, so that the same matrix gives the
            // same directions.
            let largest = vector.iter().fold(0.0_f64, |most, x| if x.abs() > most.abs() { *x } else { most });
            if largest < 0.0 {
                for x in vector.iter_mut() {
                    *x = -*x;
                }
            }
        }
        let next = values.get(kept).copied();
        let width = next.map_or(f64::INFINITY, |next| values[kept - 1] - next); // all directions are a whole
        let gap = Gap { width, noise: scatter.mean_norm(), noise_at_95: scatter.norm_at(0.95) };
        Ok(Self { scatter: scatter.clone(), columns, kept, values, directions: vectors, gap })
    }

    /// What they were found from.
    pub(crate) fn scatter(&self) -> &Scatter {
        &self.scatter
    }

    /// How many numbers a row has.
    pub fn columns(&self) -> usize {
        self.columns
    }

    /// How many directions are kept.
    pub fn kept(&self) -> usize {
        self.kept
    }

    /// A direction, of length 1, counted from 0.
    pub fn direction(&self, i: usize) -> &[f64] {
        &self.directions[i * self.columns..(i + 1) * self.columns]
    }

    /// A row's coordinates along the directions. The row is private, and so is what this returns.
    pub fn project<T: Copy + Into<f64>>(&self, row: &[T]) -> Result<Vec<f64>, Error> {
        if row.len() != self.columns {
            return Err(Error::Row { given: row.len(), expected: self.columns });
        }
        let along = |direction: &[f64]| direction.iter().zip(row).map(|(a, &x)| a * x.into()).sum();
        Ok(self.directions.chunks_exact(self.columns).map(along).collect())
    }
}

/// The eigen-gap of the released matrix compared with the norm of the noise in it: whether the directions are the data's or
/// the noise's.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Gap {
    /// The last kept eigenvalue less the next one; infinite where all are kept.
    pub width: f64,
    /// The mean spectral norm of the noise: about σ·√(2d) for deviation σ on the diagonal.
    pub noise: f64,
    /// What that norm stays below with a probability of 95 %.
    pub noise_at_95: f64,
}

impl Gap {
    /// Whether the gap is wider than the noise's norm. Where it is not, the noise alone could have made it.
    pub fn is_clear(&self) -> bool {
        self.width > self.noise
    }

    /// With a probability of 95 %, the sine of the largest angle between the kept directions and those of the exact
    /// sum is at most this. Nothing where the bound says nothing.
    ///
    /// Davis, Kahan 1970, with Weyl: with noise of norm e, the exact sum's next eigenvalue is at least `width − e`
    /// below the last one kept, so the sine is at most `e/(width − e)`.
    pub(crate) fn sine_at_95(&self) -> Option<f64> {
        let sine = self.noise_at_95 / (self.width - self.noise_at_95);
        (self.width > self.noise_at_95 && sine < 1.0).then_some(sine)
    }
}

impl fmt::Display for Gap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { width, noise, .. } = self;
        if self.width.is_infinite() {
            return write!(f, "all directions are kept, so there is no gap to hide in noise of norm {noise:.3e}");
        }
        let verdict = if self.is_clear() { "exceeds" } else { "is within" };
        write!(f, "the gap of {width:.3e} {verdict} the noise's norm of about {noise:.3e}: ")?;
        match (self.is_clear(), self.sine_at_95()) {
            (false, _) => f.write_str("keep fewer directions, or spend more"),
            (true, None) => f.write_str("the directions are the data's, but how far off is not bounded"),
            (true, Some(sine)) => {
                write!(f, "within {:.1}° of the exact directions at 95 %", sine.asin().to_degrees())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trial::{normal, sanitised};
    use std::time::Instant;
    use whit_noise::Replay;

    fn planted(rows: usize, columns: usize, spread: f64) -> (Scatter, crate::scatter::Sum) {
        // Two directions: all columns alike, and alternating signs; a little of everything else.
        let scatter = Scatter::new(columns, 1.0, "5".parse().unwrap()).unwrap();
        let (mut sum, mut entropy) = (scatter.start(), Replay::new(0x9ca));
        let root = (columns as f64).sqrt();
        for _ in 0..rows {
            let (a, b) = (0.5 * normal(&mut entropy), 0.3 * normal(&mut entropy));
            let row: Vec<f64> = (0..columns)
                .map(|j| (a + if j % 2 == 0 { b } else { -b }) / root + spread * normal(&mut entropy))
                .collect();
            sum.add(&row).unwrap();
        }
        (scatter, sum)
    }

    #[test]
    fn a_planted_plane_is_found() {
        let columns = 20;
        let (scatter, sum) = planted(20_000, columns, 0.01);
        let principal = Principal::of(&scatter, &sanitised(&scatter, &sum, 1), 2).unwrap();
        let root = (columns as f64).sqrt();
        let along = |sign: f64| {
            principal.project(&(0..columns).map(|j| sign.powi(j as i32) / root).collect::<Vec<f64>>()).unwrap()
        };
        assert!(along(1.0)[0].abs() > 0.999 && along(-1.0)[1].abs() > 0.999);
        assert!(principal.gap.is_clear());
        let sine = principal.gap.sine_at_95().unwrap();
        assert!(sine < 0.1, "{}", principal.gap);
        // What the bound says holds: the exact plane is the one without noise.
        let exact = Scatter::new(columns, 1.0, "0.000001".parse().unwrap()).unwrap();
        let exact = Principal::of(&exact, &sanitised(&exact, &sum, 2), 2).unwrap();
        for i in 0..2 {
            let seen: f64 = principal.project(exact.direction(i)).unwrap().iter().map(|x| x * x).sum();
            assert!((1.0 - seen).max(0.0).sqrt() <= sine);
        }
        assert!(principal.gap.to_string().contains("of the exact directions at 95 %"), "{}", principal.gap);
    }

    #[test]
    fn noise_alone_has_no_gap() {
        let columns = 200;
        let scatter = Scatter::new(columns, 1.0, "5".parse().unwrap()).unwrap();
        for seed in 0..5 {
            let principal = Principal::of(&scatter, &sanitised(&scatter, &scatter.start(), seed), 3).unwrap();
            assert!(!principal.gap.is_clear());
            let norm = principal.values[0].max(-principal.values[columns - 1]);
            let mean = scatter.mean_norm();
            assert!((mean - 5.0 * 400_f64.sqrt()).abs() < 1e-3);
            assert!(norm > 0.93 * mean && norm < scatter.norm_at(0.95), "norm {norm}, mean {mean}");
            assert!(principal.gap.to_string().contains("keep fewer directions"));
        }
    }

    #[test]
    fn a_matrix_of_784_columns_takes_seconds() {
        let columns = 784;
        let (scatter, sum) = planted(300, columns, 0.02);
        let noisy = sanitised(&scatter, &sum, 5);
        let start = Instant::now();
        let principal = Principal::of(&scatter, &noisy, 10).unwrap();
        let seconds = start.elapsed().as_secs_f64();
        println!("784 columns: {seconds:.2} s");
        assert!(seconds < 20.0, "{seconds} s"); // a second or two on an idle machine
        let length: f64 = principal.direction(9).iter().map(|x| x * x).sum();
        assert!((length - 1.0).abs() < 1e-12);
    }

    #[test]
    fn what_cannot_be_meant_is_refused() {
        let scatter = Scatter::new(2, 1.0, "1".parse().unwrap()).unwrap();
        for wanted in [0, 3] {
            let error = Principal::of(&scatter, &[1, 0, 1], wanted).unwrap_err();
            assert_eq!(error, Error::Directions { wanted, columns: 2 });
            assert!(!error.hint().is_empty());
        }
        assert!(Principal::of(&scatter, &[1, 0], 1).is_err());
        let all = Principal::of(&scatter, &[3, 1, 1], 2).unwrap();
        assert!(all.gap.is_clear() && all.gap.sine_at_95() == Some(0.0));
        assert!(all.gap.to_string().starts_with("all directions"));
        assert!(all.project(&[1.0_f32]).is_err());
        assert_eq!(all.kept(), 2);
    }
}
