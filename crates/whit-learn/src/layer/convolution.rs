//! A layer that takes every window of an image through one matrix.

use super::Tape;
use super::uniform;
use crate::error::LearnError;
use crate::kernel::Window;
use burn::module::{Module, Param};
use burn::tensor::Tensor;
use whit_noise::Entropy;

/// A convolution in two dimensions: every window as a row, times a matrix.
#[derive(Module, Debug)]
pub struct Convolution {
    weight: Param<Tensor<2>>,
    bias: Param<Tensor<1>>,
    #[module(skip)]
    window: Window,
}

impl Convolution {
    /// From `input` channels to `output`, started at random.
    pub fn new(input: usize, output: usize, window: Window, entropy: &mut dyn Entropy) -> Self {
        let size = input * window.kernel[0] * window.kernel[1];
        let most = 1.0 / (size.max(1) as f64).sqrt();
        Self { weight: uniform([size, output], most, entropy), bias: uniform([output], most, entropy), window }
    }

    /// The height and width that come out.
    pub fn over(&self, size: [usize; 2]) -> Result<[usize; 2], LearnError> {
        Ok(self.window.over(size)?)
    }

    /// Of images: rows, channels, height, width.
    pub fn forward(&self, x: Tensor<4>, tape: &mut Tape) -> Result<Tensor<4>, LearnError> {
        tape.convolve(x, &self.weight, &self.bias, self.window)
    }
}
