//! Numbers into tensors and out of them.

use crate::kernel;
use burn::tensor::Tensor;

/// A tensor of these numbers, of which there are as many as the shape says.
pub(crate) fn of<const D: usize>(values: Vec<f32>, shape: [usize; D]) -> Tensor<D> {
    match kernel::tensor(values, shape) {
        Ok(tensor) => tensor,
        Err(error) => unreachable!("{error}"),
    }
}

/// The numbers of a tensor, row by row.
pub(crate) fn floats<const D: usize>(tensor: Tensor<D>) -> Vec<f32> {
    match kernel::into_floats(tensor) {
        Ok(values) => values,
        Err(error) => unreachable!("{error}"),
    }
}

/// Some rows of a table.
pub(crate) fn rows_of(table: &Tensor<2>, rows: &[u32]) -> Tensor<2> {
    let width = table.dims()[1];
    let values = floats(table.clone());
    let picked = rows.iter().flat_map(|&row| values[row as usize * width..(row as usize + 1) * width].iter().copied());
    of(picked.collect(), [rows.len(), width])
}
