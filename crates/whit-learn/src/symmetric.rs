//! Eigenvalues and eigenvectors of a symmetric matrix, by Householder reflections and implicit QL steps.
//!
//! Both run along rows in memory, so a matrix of 784 rows takes a second or two. (Golub, Van Loan, *Matrix
//! Computations*, 8.3.)
//!
//! `faer` 0.24 would do it in a fourteenth of the time (0.2 s of processor for 784 rows and 3.6 s for 2,048, at `opt-level = 1`, where this takes 2.7 s and 51 s),
//! but with the least of its features that has the decomposition it adds 113 s of processor time to every first build, beyond the `gemm` that is there anyway.
//! A training takes a few matrices apart at most, so builds would pay more than trainings gain.

/// A matrix that cannot be taken apart.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The numbers do not make a square.
    #[error("{given} numbers are no square matrix of {dimension} rows")]
    Shape {
        /// How many numbers came.
        given: usize,
        /// How many rows there should be.
        dimension: usize,
    },
    /// A number is infinite or none.
    #[error("a number in the matrix is infinite or not a number")]
    NotFinite,
    /// The QL steps did not settle.
    #[error("the eigenvalues of the {dimension}-row matrix did not settle")]
    Unsettled {
        /// How many rows it has.
        dimension: usize,
    },
}

impl Error {
    /// What to do next.
    pub fn hint(&self) -> &'static str {
        match self {
            Self::Shape { .. } => "give all rows one after the other, each with as many numbers as there are rows",
            Self::NotFinite => "look at the radius and the noise: sums on a lattice are always finite",
            Self::Unsettled { .. } => "scale the matrix so that its largest entry is near 1",
        }
    }
}

/// A symmetric matrix as its eigenvalues, largest first, and eigenvectors of length 1.
#[derive(Debug, Clone, PartialEq)]
pub struct Eigen {
    /// The eigenvalues, largest first.
    pub values: Vec<f64>,
    /// The eigenvectors in the same order, one after the other.
    pub vectors: Vec<f64>,
}

impl Eigen {
    /// Takes a matrix apart, of which the mean with its transpose is meant: rows one after the other.
    ///
    /// ```
    /// use whit_learn::symmetric::Eigen;
    /// let eigen = Eigen::of(&[2.0, 1.0, 1.0, 2.0], 2)?;
    /// assert!((eigen.values[0] - 3.0).abs() < 1e-14 && (eigen.values[1] - 1.0).abs() < 1e-14);
    /// # Ok::<(), whit_learn::symmetric::Error>(())
    /// ```
    pub fn of(matrix: &[f64], dimension: usize) -> Result<Self, Error> {
        let n = dimension;
        if n == 0 || n.checked_mul(n) != Some(matrix.len()) {
            return Err(Error::Shape { given: matrix.len(), dimension });
        }
        if !matrix.iter().all(|value| value.is_finite()) {
            return Err(Error::NotFinite);
        }
        let mut a = vec![0.0; n * n];
        for i in 0..n {
            for j in 0..n {
                a[i * n + j] = f64::midpoint(matrix[i * n + j], matrix[j * n + i]);
            }
        }
        let (mut diagonal, mut off_diagonal, mut rows) = tridiagonal(&mut a, n);
        settle(&mut diagonal, &mut off_diagonal, &mut rows).ok_or(Error::Unsettled { dimension })?;
        let mut order: Vec<usize> = (0..n).collect();
        order.sort_by(|&i, &j| diagonal[j].total_cmp(&diagonal[i]));
        let values = order.iter().map(|&i| diagonal[i]).collect();
        let vectors = order.iter().flat_map(|&i| rows[i * n..(i + 1) * n].iter().copied()).collect();
        Ok(Self { values, vectors })
    }

    /// How many rows the matrix has.
    pub fn dimension(&self) -> usize {
        self.values.len()
    }

    /// The eigenvector of the i-th largest eigenvalue, counted from 0.
    pub fn vector(&self, i: usize) -> &[f64] {
        let n = self.dimension();
        &self.vectors[i * n..(i + 1) * n]
    }

    /// The matrix with `f` applied to each eigenvalue: an inverse, a root, a power.
    pub fn map(&self, f: impl Fn(f64) -> f64) -> Vec<f64> {
        let n = self.dimension();
        let mut out = vec![0.0; n * n];
        for k in 0..n {
            let (value, vector) = (f(self.values[k]), self.vector(k));
            for (row, &left) in out.chunks_exact_mut(n).zip(vector) {
                axpy(row, value * left, vector);
            }
        }
        out
    }

    /// Rows F with `Fᵀ·F` equal to the matrix less its negative part: what a [`Scatter`](crate::scatter::Scatter) sums.
    pub fn factor(&self) -> Vec<f64> {
        let n = self.dimension();
        let rows = self.values.iter().zip(self.vectors.chunks_exact(n));
        rows.flat_map(|(value, vector)| vector.iter().map(move |x| x * value.max(0.0).sqrt())).collect()
    }
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    // Four sums at a time: additions that do not wait for one another.
    let mut sums = [0.0; 4];
    let (a4, b4) = (a.chunks_exact(4), b.chunks_exact(4));
    let rest: f64 = a4.remainder().iter().zip(b4.remainder()).map(|(x, y)| x * y).sum();
    for (x, y) in a4.zip(b4) {
        for k in 0..4 {
            sums[k] += x[k] * y[k];
        }
    }
    sums.iter().sum::<f64>() + rest
}

fn axpy(out: &mut [f64], factor: f64, row: &[f64]) {
    for (out, x) in out.iter_mut().zip(row) {
        *out += factor * x;
    }
}

/// `A = Q·T·Qᵀ`: the diagonal of T, what stands next to it, and Qᵀ.
fn tridiagonal(a: &mut [f64], n: usize) -> (Vec<f64>, Vec<f64>, Vec<f64>) {
    let (mut off_diagonal, mut reflections) = (vec![0.0; n], Vec::new());
    for k in 0..n.saturating_sub(1) {
        // Reflect column k below the diagonal onto its first coordinate. Scaled, so that squares do not underflow.
        let column = &a[k * n + k + 1..(k + 1) * n];
        let scale = column.iter().fold(0.0_f64, |most, x| most.max(x.abs()));
        if scale == 0.0 {
            reflections.push((Vec::new(), 0.0));
            continue;
        }
        let mut v: Vec<f64> = column.iter().map(|x| x / scale).collect();
        let norm = dot(&v, &v).sqrt();
        let target = if v[0] > 0.0 { -norm } else { norm };
        v[0] -= target;
        off_diagonal[k] = target * scale;
        let length = dot(&v, &v);
        let beta = if length == 0.0 { 0.0 } else { 2.0 / length };
        // A ← (I − βvvᵀ)·A·(I − βvvᵀ) on what is left: A − v·wᵀ − w·vᵀ.
        let mut w: Vec<f64> = (k + 1..n).map(|i| beta * dot(&a[i * n + k + 1..(i + 1) * n], &v)).collect();
        let half = 0.5 * beta * dot(&w, &v);
        axpy(&mut w, -half, &v);
        for i in k + 1..n {
            let (vi, wi) = (v[i - k - 1], w[i - k - 1]);
            for ((x, v), w) in a[i * n + k + 1..(i + 1) * n].iter_mut().zip(&v).zip(&w) {
                *x -= vi * w + wi * v;
            }
        }
        reflections.push((v, beta));
    }
    let diagonal = (0..n).map(|i| a[i * n + i]).collect();
    // Qᵀ is the product of the reflections, last one leftmost; built from the last, each touches only the corner that
    // is not the identity.
    let mut rows = vec![0.0; n * n];
    for i in 0..n {
        rows[i * n + i] = 1.0;
    }
    for (k, (v, beta)) in reflections.iter().enumerate().rev().filter(|(_, (v, _))| !v.is_empty()) {
        for i in k + 1..n {
            let row = &mut rows[i * n + k + 1..(i + 1) * n];
            let along = beta * dot(row, v);
            axpy(row, -along, v);
        }
    }
    (diagonal, off_diagonal, rows)
}

/// Implicit QL steps with Wilkinson's shift: the diagonal becomes the eigenvalues, the rows their vectors.
fn settle(diagonal: &mut [f64], off_diagonal: &mut [f64], rows: &mut [f64]) -> Option<()> {
    let n = diagonal.len();
    for l in 0..n {
        for attempt in 0.. {
            let negligible = |m: &usize| {
                let near = diagonal[*m].abs() + diagonal[*m + 1].abs();
                off_diagonal[*m].abs() <= f64::EPSILON * near || off_diagonal[*m].abs() < f64::MIN_POSITIVE
            };
            let m = (l..n - 1).find(negligible).unwrap_or(n - 1);
            if m == l {
                break;
            }
            if attempt == 100 {
                return None;
            }
            sweep(diagonal, off_diagonal, rows, l, m);
        }
    }
    Some(())
}

/// One QL step on rows l to m.
fn sweep(diagonal: &mut [f64], off_diagonal: &mut [f64], rows: &mut [f64], l: usize, m: usize) {
    let n = diagonal.len();
    let shift = (diagonal[l + 1] - diagonal[l]) / (2.0 * off_diagonal[l]);
    let mut g = diagonal[m] - diagonal[l] + off_diagonal[l] / (shift + shift.hypot(1.0).copysign(shift));
    let (mut s, mut c, mut p) = (1.0, 1.0, 0.0);
    for i in (l..m).rev() {
        let (f, b) = (s * off_diagonal[i], c * off_diagonal[i]);
        let r = f.hypot(g);
        off_diagonal[i + 1] = r;
        if r == 0.0 {
            diagonal[i + 1] -= p;
            off_diagonal[m] = 0.0;
            return;
        }
        (s, c) = (f / r, g / r);
        let moved = diagonal[i + 1] - p;
        let turned = (diagonal[i] - moved) * s + 2.0 * c * b;
        p = s * turned;
        diagonal[i + 1] = moved + p;
        g = c * turned - b;
        let (above, below) = rows.split_at_mut((i + 1) * n);
        for (x, y) in above[i * n..].iter_mut().zip(&mut below[..n]) {
            (*x, *y) = (c * *x - s * *y, s * *x + c * *y);
        }
    }
    diagonal[l] -= p;
    off_diagonal[l] = g;
    off_diagonal[m] = 0.0;
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn check(matrix: &[f64], n: usize) {
        let eigen = Eigen::of(matrix, n).unwrap();
        let size = matrix.iter().fold(1e-300_f64, |most, x| most.max(x.abs())) * n as f64;
        let again = eigen.map(|value| value);
        for (a, b) in again.iter().zip(matrix) {
            assert!((a - b).abs() < 1e-13 * size, "{a} instead of {b}");
        }
        for i in 0..n {
            for j in 0..=i {
                let expected = if i == j { 1.0 } else { 0.0 };
                assert!((dot(eigen.vector(i), eigen.vector(j)) - expected).abs() < 1e-12);
            }
        }
        assert!(eigen.values.windows(2).all(|pair| pair[0] >= pair[1]));
    }

    proptest! {
        #[test]
        fn a_matrix_is_put_together_again(
            n in 1_usize..12, seed in proptest::collection::vec(-1_f64..1.0, 144), scale in -150..150
        ) {
            let entry = |i: usize, j: usize| seed[i.min(j) * 12 + i.max(j)] * 10_f64.powi(scale);
            let matrix: Vec<f64> = (0..n * n).map(|at| entry(at / n, at % n)).collect();
            check(&matrix, n);
        }
    }

    #[test]
    fn degenerate_matrices_come_apart_too() {
        check(&[0.0; 16], 4);
        check(&[7.0], 1);
        check(&(0..25).map(|at| if at / 5 == at % 5 { 3.0 } else { 0.0 }).collect::<Vec<_>>(), 5);
        check(&[1.0; 36], 6);
        check(&(0..64).map(|at| if at / 8 + at % 8 == 7 { 1.0 } else { 0.0 }).collect::<Vec<_>>(), 8);
        assert_eq!(Eigen::of(&[1.0; 5], 2), Err(Error::Shape { given: 5, dimension: 2 }));
        assert_eq!(Eigen::of(&[f64::NAN], 1).unwrap_err(), Error::NotFinite);
    }

    /// The second difference on a path has eigenvalues 2 − 2·cos(πk/(n + 1)).
    #[test]
    fn known_eigenvalues_are_found() {
        let n = 50;
        let entry = |i: usize, j: usize| if i == j { 2.0 } else { -f64::from(u8::from(i.abs_diff(j) == 1)) };
        let matrix: Vec<f64> = (0..n * n).map(|at| entry(at / n, at % n)).collect();
        let eigen = Eigen::of(&matrix, n).unwrap();
        for (k, value) in eigen.values.iter().rev().enumerate() {
            let angle = std::f64::consts::PI * (k + 1) as f64 / (n + 1) as f64;
            assert!((value - (2.0 - 2.0 * angle.cos())).abs() < 1e-13);
        }
    }

    #[test]
    fn a_factor_leaves_out_what_is_negative() {
        let factor = Eigen::of(&[0.0, 2.0, 2.0, 0.0], 2).unwrap().factor(); // eigenvalues 2 and −2
        let squared = |i: usize, j: usize| factor[i] * factor[j] + factor[2 + i] * factor[2 + j];
        for at in [(0, 0), (0, 1), (1, 1)] {
            assert!((squared(at.0, at.1) - 1.0).abs() < 1e-14);
        }
    }
}
