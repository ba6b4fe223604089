//! A layer that is a matrix and a constant.

use super::Tape;
use super::{filled, uniform};
use crate::tensor;
use burn::module::{Module, Param};
use burn::tensor::Tensor;
use whit_core::matrix::{Matrix, wide_product};
use whit_noise::Entropy;

/// z = x·W + b; and where it is adapted, z = x·W + b + scale·(x·A)·B.
#[derive(Module, Debug)]
pub struct Linear {
    weight: Param<Tensor<2>>,
    bias: Option<Param<Tensor<1>>>,
    adapter: Option<Adapter>,
}

/// A product of two narrow matrices that is added to a weight (LoRA; Hu et al. 2021). Each has a tap of its own, so what a unit contributes to it is known as for any
/// layer.
#[derive(Module, Debug)]
pub(super) struct Adapter {
    down: Param<Tensor<2>>,
    up: Param<Tensor<2>>,
    #[module(skip)]
    scale: f64,
}

impl Linear {
    /// From `input` numbers to `output`, started at random.
    pub fn new(input: usize, output: usize, entropy: &mut dyn Entropy) -> Self {
        let most = 1.0 / (input.max(1) as f64).sqrt();
        let (weight, bias) = (uniform([input, output], most, entropy), uniform([output], most, entropy));
        Self { weight, bias: Some(bias), adapter: None }
    }

    /// Started at zero, as convex models are.
    pub fn at_zero(input: usize, output: usize, biased: bool) -> Self {
        let bias = biased.then(|| filled([output], 0.0));
        Self { weight: filled([input, output], 0.0), bias, adapter: None }
    }

    /// The same function, to which a product of matrices of this rank is added from now on: A at random, B at zero, and alpha over the rank times their product.
    #[must_use]
    pub(crate) fn adapted(self, rank: usize, alpha: f64, entropy: &mut dyn Entropy) -> Self {
        let [input, output] = [self.weight.lazy_shape()[0], self.weight.lazy_shape()[1]];
        let most = 1.0 / (input.max(1) as f64).sqrt();
        let (down, up) = (uniform([input, rank], most, entropy), filled([rank, output], 0.0));
        Self { adapter: Some(Adapter { down, up, scale: alpha / rank.max(1) as f64 }), ..self }
    }

    /// The same function by one matrix.
    #[must_use]
    pub(crate) fn merged(self) -> Self {
        let Some(Adapter { down, up, scale }) = self.adapter else { return self };
        let ([input, output], rank) = ([self.weight.lazy_shape()[0], self.weight.lazy_shape()[1]], up.lazy_shape()[0]);
        let wide = |values: Vec<f32>| values.into_iter().map(f64::from).collect::<Vec<f64>>();
        let (a, b) = (wide(tensor::floats(down.val().inner())), wide(tensor::floats(up.val().inner())));
        let mut product = vec![0.0; input * output];
        wide_product(Matrix::new(&a, input, rank), Matrix::new(&b, rank, output), &mut product);
        let weight = self.weight.map(|weight| {
            let sum = |(weight, product): (f32, f64)| (f64::from(weight) + scale * product) as f32;
            tensor::of(tensor::floats(weight.inner()).into_iter().zip(product).map(sum).collect(), [input, output])
        });
        Self { weight, bias: self.bias, adapter: None }
    }

    /// How many numbers come out.
    pub fn outputs(&self) -> usize {
        self.weight.lazy_shape()[1]
    }

    /// Of each row.
    pub fn forward(&self, x: Tensor<2>, tape: &mut Tape) -> Tensor<2> {
        let Some(Adapter { down, up, scale }) = &self.adapter else {
            return tape.linear(x, &self.weight, self.bias.as_ref());
        };
        let z = tape.linear(x.clone(), &self.weight, self.bias.as_ref());
        let narrow = tape.linear(x, down, None);
        z + tape.linear(narrow, up, None) * *scale
    }

    /// Of each position of each row.
    pub fn forward_each(&self, x: Tensor<3>, tape: &mut Tape) -> Tensor<3> {
        let [rows, positions, width] = x.dims();
        self.forward(x.reshape([rows * positions, width]), tape).reshape([rows, positions, self.outputs()])
    }
}
