//! Layers with taps. A model is built of these, and of operations on tensors that have no parameters and look at one row at a time.

mod convolution;
mod embedding;
mod linear;
mod norm;
mod shape;
mod tape;

pub use convolution::Convolution;
pub use embedding::Embedding;
pub use linear::Linear;
pub use norm::{GroupNorm, LayerNorm};
pub use shape::{Activation, Pooling, dropout};
pub use tape::Tape;
pub(crate) use tape::{LayerInput, OutputGradient};

use crate::tensor;
use burn::module::Param;
use burn::tensor::Tensor;
use whit_noise::Entropy;

/// A parameter of numbers between −`most` and `most`. Where a model starts says nothing of the data, so any generator will do.
fn uniform<const D: usize>(shape: [usize; D], most: f64, entropy: &mut dyn Entropy) -> Param<Tensor<D>> {
    let number = |_| (most * (entropy.bits(53) as f64 * 2f64.powi(-52) - 1.0)) as f32;
    Param::from_tensor(tensor::of((0..shape.iter().product()).map(number).collect(), shape))
}

/// A parameter of equal numbers.
fn filled<const D: usize>(shape: [usize; D], value: f32) -> Param<Tensor<D>> {
    Param::from_tensor(tensor::of(vec![value; shape.iter().product()], shape))
}
