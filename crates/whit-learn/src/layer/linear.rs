//! A layer that is a matrix and a constant.

use super::Tape;
use super::{filled, uniform};
use burn::module::{Module, Param};
use burn::tensor::Tensor;
use whit_noise::Entropy;

/// z = x·W + b.
#[derive(Module, Debug)]
pub struct Linear {
    weight: Param<Tensor<2>>,
    bias: Option<Param<Tensor<1>>>,
}

impl Linear {
    /// From `input` numbers to `output`, started at random.
    pub fn new(input: usize, output: usize, entropy: &mut dyn Entropy) -> Self {
        let most = 1.0 / (input.max(1) as f64).sqrt();
        Self { weight: uniform([input, output], most, entropy), bias: Some(uniform([output], most, entropy)) }
    }

    /// Started at zero, as convex models are.
    pub fn at_zero(input: usize, output: usize, biased: bool) -> Self {
        Self { weight: filled([input, output], 0.0), bias: biased.then(|| filled([output], 0.0)) }
    }

    /// How many numbers come out.
    pub fn outputs(&self) -> usize {
        self.weight.lazy_shape()[1]
    }

    /// Of each row.
    pub fn forward(&self, x: Tensor<2>, tape: &mut Tape) -> Tensor<2> {
        tape.linear(x, &self.weight, self.bias.as_ref())
    }

    /// Of each position of each row.
    pub fn forward_each(&self, x: Tensor<3>, tape: &mut Tape) -> Tensor<3> {
        let [rows, positions, width] = x.dims();
        self.forward(x.reshape([rows * positions, width]), tape).reshape([rows, positions, self.outputs()])
    }
}
