//! Products of matrices that lie in slices, by strides.

use gemm::Parallelism;

/// A matrix in a slice: `rows × columns`, one row `down` further, one column `across` further.
#[derive(Clone, Copy)]
pub(crate) struct Matrix<'a, T> {
    values: &'a [T],
    rows: usize,
    columns: usize,
    down: usize,
    across: usize,
}

impl<'a, T> Matrix<'a, T> {
    /// Row by row.
    pub(crate) fn new(values: &'a [T], rows: usize, columns: usize) -> Self {
        assert_eq!(values.len(), rows * columns, "as many values as the sides say");
        Self { values, rows, columns, down: columns, across: 1 }
    }

    /// The transpose, in the same place.
    pub(crate) fn turned(self) -> Self {
        Self { rows: self.columns, columns: self.rows, down: self.across, across: self.down, ..self }
    }
}

/// Where a product goes.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Into {
    /// Row by row, over what was there.
    Rows,
    /// Row by row, added to what is there.
    AddedToRows,
    /// Column by column, added to what is there.
    AddedToColumns,
}

/// a·b on this thread.
pub(crate) fn product<T: 'static + Copy + From<f32>>(a: Matrix<'_, T>, b: Matrix<'_, T>, out: &mut [T], how: Into) {
    multiply(a, b, out, how, Parallelism::None);
}

/// a·b on all threads.
pub(crate) fn wide_product<T: 'static + Copy + From<f32>>(a: Matrix<'_, T>, b: Matrix<'_, T>, out: &mut [T]) {
    multiply(a, b, out, Into::Rows, Parallelism::Rayon(0));
}

fn multiply<T: 'static + Copy + From<f32>>(
    a: Matrix<'_, T>,
    b: Matrix<'_, T>,
    out: &mut [T],
    how: Into,
    threads: Parallelism,
) {
    assert!(a.columns == b.rows && out.len() == a.rows * b.columns, "sides as they must be");
    let (down, across) = if how == Into::AddedToColumns { (1, a.rows) } else { (b.columns, 1) };
    let kept = if how == Into::Rows { 0.0 } else { 1.0 };
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
            how != Into::Rows,
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
        product(Matrix::new(&a, 2, 3), Matrix::new(&b, 3, 2), &mut out, Into::Rows);
        assert_eq!(out, [5.0, 11.0, 14.0, 23.0]);
        product(Matrix::new(&a, 2, 3), Matrix::new(&b, 3, 2), &mut out, Into::AddedToRows);
        assert_eq!(out, [10.0, 22.0, 28.0, 46.0]);
        let mut out = [1.0; 4];
        product(Matrix::new(&a, 2, 3), Matrix::new(&b, 3, 2), &mut out, Into::AddedToColumns);
        assert_eq!(out, [6.0, 15.0, 12.0, 24.0]);
        let mut out = [0.0; 9];
        wide_product(Matrix::new(&a, 2, 3).turned(), Matrix::new(&a, 2, 3), &mut out);
        assert_eq!(out, [17.0, 22.0, 27.0, 22.0, 29.0, 36.0, 27.0, 36.0, 45.0]);
    }
}
