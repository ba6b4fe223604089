//! Products of matrices that lie in slices, by strides: the one place that calls `gemm`.

use gemm::Parallelism;

/// Numbers that matrices are made of.
pub trait Scalar: sealed::Multiplied + Copy + From<f32> + 'static {}

impl Scalar for f32 {}
impl Scalar for f64 {}

mod sealed {
    /// `gemm` takes any type and knows few, so nobody else says that one is a number.
    pub trait Multiplied {}

    impl Multiplied for f32 {}
    impl Multiplied for f64 {}
}

/// A matrix in a slice: `rows × columns`, one row `down` further, one column `across` further.
#[derive(Debug, Clone, Copy)]
pub struct Matrix<'a, T> {
    values: &'a [T],
    rows: usize,
    columns: usize,
    down: usize,
    across: usize,
}

impl<'a, T> Matrix<'a, T> {
    /// Row by row.
    ///
    /// # Panics
    /// Where there are not as many values as the sides say.
    #[must_use]
    pub fn new(values: &'a [T], rows: usize, columns: usize) -> Self {
        assert!(rows.checked_mul(columns) == Some(values.len()), "as many values as the sides say");
        Self { values, rows, columns, down: columns, across: 1 }
    }

    /// The transpose, in the same place.
    #[must_use]
    pub fn turned(self) -> Self {
        Self { rows: self.columns, columns: self.rows, down: self.across, across: self.down, ..self }
    }
}

/// Where a product goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Destination {
    /// Row by row, over what was there.
    Rows,
    /// Row by row, added to what is there.
    AddedToRows,
    /// Column by column, added to what is there.
    AddedToColumns,
}

/// a·b on this thread.
///
/// ```
/// use whit_core::matrix::{Destination, Matrix, product};
/// let (row, mut square) = ([1.0, 2.0], [0.0; 4]);
/// product(Matrix::new(&row, 1, 2).turned(), Matrix::new(&row, 1, 2), &mut square, Destination::Rows);
/// assert_eq!(square, [1.0, 2.0, 2.0, 4.0]);
/// ```
///
/// # Panics
/// Where the sides do not fit one another, or the room does not fit them.
pub fn product<T: Scalar>(a: Matrix<'_, T>, b: Matrix<'_, T>, out: &mut [T], to: Destination) {
    multiply(a, b, out, to, Parallelism::None);
}

/// a·b on all threads, row by row.
///
/// # Panics
/// Where the sides do not fit one another, or the room does not fit them.
pub fn wide_product<T: Scalar>(a: Matrix<'_, T>, b: Matrix<'_, T>, out: &mut [T]) {
    multiply(a, b, out, Destination::Rows, Parallelism::Rayon(0));
}

fn multiply<T: Scalar>(a: Matrix<'_, T>, b: Matrix<'_, T>, out: &mut [T], to: Destination, threads: Parallelism) {
    assert!(a.columns == b.rows && a.rows.checked_mul(b.columns) == Some(out.len()), "sides as they must be");
    let (down, across) = if to == Destination::AddedToColumns { (1, a.rows) } else { (b.columns, 1) };
    let kept = if to == Destination::Rows { 0.0 } else { 1.0 };
    #[expect(unsafe_code, reason = "the product of matrices is a call with raw pointers")]
    // SAFETY: each slice is as long as its sides say, whichever way it is read (a `Matrix` is made of a slice of exactly that length and only
    // ever turned), and `out` is borrowed mutably, so it overlaps neither of the others. It is read only where it is added to.
    unsafe {
        gemm::gemm(
            a.rows,
            b.columns,
            a.columns,
            out.as_mut_ptr(),
            across as isize,
            down as isize,
            to != Destination::Rows,
            a.values.as_ptr(),
            a.across as isize,
            a.down as isize,
            b.values.as_ptr(),
            b.across as isize,
            b.down as isize,
            T::from(kept),
            T::from(1.0),
            false,
            false,
            false,
            threads,
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_product_goes_where_it_is_sent() {
        let a = [1.0_f32, 2.0, 3.0, 4.0, 5.0, 6.0]; // 2 × 3
        let b = [1.0_f32, 0.0, 2.0, 1.0, 0.0, 3.0]; // 3 × 2
        let mut out = [7.0; 4];
        product(Matrix::new(&a, 2, 3), Matrix::new(&b, 3, 2), &mut out, Destination::Rows);
        assert_eq!(out, [5.0, 11.0, 14.0, 23.0]);
        product(Matrix::new(&a, 2, 3), Matrix::new(&b, 3, 2), &mut out, Destination::AddedToRows);
        assert_eq!(out, [10.0, 22.0, 28.0, 46.0]);
        let mut out = [1.0; 4];
        product(Matrix::new(&a, 2, 3), Matrix::new(&b, 3, 2), &mut out, Destination::AddedToColumns);
        assert_eq!(out, [6.0, 15.0, 12.0, 24.0]);
        let mut out = [0.0; 9];
        wide_product(Matrix::new(&a, 2, 3).turned(), Matrix::new(&a, 2, 3), &mut out);
        assert_eq!(out, [17.0, 22.0, 27.0, 22.0, 29.0, 36.0, 27.0, 36.0, 45.0]);
    }

    #[test]
    fn both_kinds_of_numbers_and_all_threads_say_the_same() {
        let (n, p, q) = (37, 53, 29);
        let a: Vec<f64> = (0..n * p).map(|i| f64::from((i * 7 % 23) as u32) - 11.0).collect();
        let b: Vec<f64> = (0..p * q).map(|i| f64::from((i * 5 % 19) as u32) - 9.0).collect();
        let plain: Vec<f64> =
            (0..n * q).map(|at| (0..p).map(|k| a[at / q * p + k] * b[k * q + at % q]).sum()).collect();
        let (mut alone, mut wide) = (vec![f64::NAN; n * q], vec![f64::NAN; n * q]);
        product(Matrix::new(&a, n, p), Matrix::new(&b, p, q), &mut alone, Destination::Rows);
        wide_product(Matrix::new(&a, n, p), Matrix::new(&b, p, q), &mut wide);
        assert_eq!((&alone, &wide), (&plain, &plain), "whole numbers, so nothing rounds");
        let single = |values: &[f64]| values.iter().map(|&value| value as f32).collect::<Vec<f32>>();
        let mut out = vec![0.0; n * q];
        wide_product(Matrix::new(&single(&a), n, p), Matrix::new(&single(&b), p, q), &mut out);
        assert_eq!(out, single(&plain));
    }

    #[test]
    #[should_panic(expected = "sides as they must be")]
    fn sides_that_do_not_fit_are_refused() {
        product(Matrix::new(&[1.0; 6], 2, 3), Matrix::new(&[1.0; 6], 2, 3), &mut [0.0; 4], Destination::Rows);
    }

    #[test]
    #[should_panic(expected = "as many values as the sides say")]
    fn a_slice_that_is_too_short_is_no_matrix() {
        let _ = Matrix::new(&[1.0; 5], 2, 3);
    }
}
