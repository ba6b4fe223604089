//! What stands between layers and has no parameters: activations, pooling, dropout.

use super::Tape;
use crate::error::LearnError;
use crate::kernel::{self, Window};
use crate::tensor;
use burn::tensor::Tensor;
use burn::tensor::activation;
use serde::{Deserialize, Serialize};
use whit_noise::Entropy;

/// What stands between layers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Activation {
    /// max(z, 0).
    Relu,
    /// z·Φ(z).
    Gelu,
    /// tanh z.
    Tanh,
}

impl Activation {
    /// Of each number.
    pub fn forward<const D: usize>(self, z: Tensor<D>) -> Tensor<D> {
        match self {
            Self::Relu => activation::relu(z),
            Self::Gelu => activation::gelu(z),
            // What is not ours to read in memory is left to its own backend.
            Self::Tanh => kernel::tanh(z.clone()).unwrap_or_else(|_| z.tanh()),
        }
    }
}

/// How a window of an image becomes one number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pooling {
    /// The largest.
    Max(Window),
    /// The mean.
    Mean(Window),
}

impl Pooling {
    /// Of images: rows, channels, height, width.
    pub fn forward(self, x: Tensor<4>) -> Result<Tensor<4>, LearnError> {
        Ok(match self {
            Self::Max(window) => kernel::max_pool(x, window)?,
            Self::Mean(window) => kernel::mean_pool(x, window)?,
        })
    }

    /// Of an activation of images: in one pass where that is possible, and the largest value first where the activation only grows, which leaves it
    /// fewer values to be taken of.
    pub(crate) fn forward_after(self, activation: Activation, x: Tensor<4>) -> Result<Tensor<4>, LearnError> {
        match (activation, self) {
            (Activation::Relu, Self::Max(window)) => Ok(kernel::rectified_max_pool(x, window)?),
            (Activation::Tanh, Self::Max(_)) => Ok(activation.forward(self.forward(x)?)),
            _ => self.forward(activation.forward(x)),
        }
    }

    /// The height and width that come out.
    pub fn over(self, size: [usize; 2]) -> Result<[usize; 2], LearnError> {
        let (Self::Max(window) | Self::Mean(window)) = self;
        Ok(window.over(size)?)
    }
}

/// Leaves each number out with this chance, and makes up for it in the others; only while learning. What is left out depends on coins alone.
pub fn dropout(x: Tensor<2>, chance: f64, tape: &mut Tape) -> Tensor<2> {
    let Some(coins) = tape.coins().filter(|_| chance > 0.0) else { return x };
    let [rows, width] = x.dims();
    let limit = (chance.min(1.0) * 2f64.powi(32)) as u64;
    let kept = (1.0 / (1.0 - chance).max(1e-6)) as f32;
    let mask = (0..rows * width).map(|_| if coins.bits(32) < limit { 0.0 } else { kept }).collect();
    x * tensor::of(mask, [rows, width])
}
