//! Taps: what goes into each layer and, after one backward pass, the gradient of the loss at its output.
//!
//! A layer adds a tap to its output, a tensor of zeros (or the bias itself) that is the only thing which automatic differentiation
//! tracks. Its gradient is ∂L/∂z row by row, and with the layer's input that is all that a bag's gradient is made of. No gradient of a
//! weight is ever formed by automatic differentiation.

use crate::error::LearnError;
use crate::kernel::{self, Floats, Window, WindowGrid, floats};
use crate::tensor;
use burn::module::{Param, ParamId};
use burn::tensor::{Gradients, Tensor};

/// What a layer does with its parameters.
#[derive(Debug)]
pub(crate) enum Map {
    /// z = x·W + b, for each position of each row.
    Linear {
        /// The input, position by position.
        input: Tensor<2>,
    },
    /// z = `W[token]`, for each position of each row.
    Lookup {
        /// The tokens, position by position.
        tokens: Vec<u32>,
    },
    /// z = x⊙γ + β, for each position of each row.
    Scale {
        /// The input, position by position.
        input: Tensor<2>,
    },
    /// z = patch·W + b, for each window of each row, which is an image.
    Windows {
        /// The images.
        images: Tensor<4>,
        /// The windows.
        grid: WindowGrid,
        /// How many channels come out.
        width: usize,
    },
}

/// One use of a layer.
#[derive(Debug)]
pub(crate) struct Use {
    pub(crate) map: Map,
    pub(crate) weight: ParamId,
    pub(crate) bias: Option<ParamId>,
    tap: Tensor<2>,
}

/// Follows rows through a model.
#[derive(Debug, Default)]
pub struct Tape {
    uses: Vec<Use>,
    tapped: bool,
    /// Weights that stay as they are: what goes through them is not tapped, and gradients go through them to what comes before.
    frozen: Vec<ParamId>,
    /// What dropout draws from; nothing where rows are only looked at.
    coins: Option<whit_noise::Replay>,
}

/// What a layer's use comes to after the backward pass: its input, and the gradient at its output.
pub(crate) struct OutputGradient {
    pub(crate) input: LayerInput,
    pub(crate) weight: ParamId,
    pub(crate) bias: Option<ParamId>,
    /// The gradient at the output: positions by width, and for windows images by width by positions.
    pub(crate) gradient: Floats,
    pub(crate) width: usize,
}

/// The input of a layer as numbers.
pub(crate) enum LayerInput {
    Linear { input: Floats, width: usize },
    Lookup { tokens: Vec<u32> },
    Scale { input: Floats },
    Windows { images: Floats, grid: WindowGrid },
}

impl OutputGradient {
    /// Whether it is a scale, whose gradients are always formed.
    pub(crate) fn is_scale(&self) -> bool {
        matches!(self.input, LayerInput::Scale { .. })
    }
}

impl Tape {
    /// One that only lets rows through: for predictions.
    pub fn open() -> Self {
        Self::default()
    }

    /// One that taps every layer but those whose weights are frozen. `coins` decides what dropout drops.
    pub(crate) fn tapped(coins: Option<whit_noise::Replay>, frozen: &[ParamId]) -> Self {
        Self { tapped: true, coins, frozen: frozen.to_vec(), ..Self::default() }
    }

    /// Whether a layer with this weight is tapped.
    fn taps(&self, weight: ParamId) -> bool {
        self.tapped && !self.frozen.contains(&weight)
    }

    /// z = x·W + b for every row of `x`.
    pub(crate) fn linear(
        &mut self,
        x: Tensor<2>,
        weight: &Param<Tensor<2>>,
        bias: Option<&Param<Tensor<1>>>,
    ) -> Tensor<2> {
        let (rows, width) = (x.dims()[0], weight.lazy_shape()[1]);
        let input = x.clone();
        let z = x.matmul(constant(weight));
        if !self.taps(weight.id) {
            return match bias {
                Some(bias) => z + constant(bias).unsqueeze(),
                None => z,
            };
        }
        // The broadcast bias is the tap: one addition for both.
        let tap = match bias {
            Some(bias) => constant(bias).unsqueeze::<2>().expand([rows, width]),
            None => tensor::of(vec![0.0; rows * width], [rows, width]),
        };
        let tap = tap.autodiff().require_grad();
        self.uses.push(Use {
            map: Map::Linear { input: input.inner() },
            weight: weight.id,
            bias: bias.map(|bias| bias.id),
            tap: tap.clone(),
        });
        z + tap
    }

    /// z = `W[token]` for every token.
    pub(crate) fn lookup(&mut self, tokens: &[u32], weight: &Param<Tensor<2>>) -> Tensor<2> {
        let table = constant(weight);
        let found = tensor::rows_of(&table, tokens);
        if !self.taps(weight.id) {
            return found;
        }
        let tap = found.autodiff().require_grad();
        self.uses.push(Use {
            map: Map::Lookup { tokens: tokens.to_vec() },
            weight: weight.id,
            bias: None,
            tap: tap.clone(),
        });
        tap
    }

    /// z = x⊙γ + β for every row of `x`.
    pub(crate) fn scale(&mut self, x: Tensor<2>, scale: &Param<Tensor<1>>, shift: &Param<Tensor<1>>) -> Tensor<2> {
        let [rows, width] = x.dims();
        let (scaled, shift_value) = (x.clone() * constant(scale).unsqueeze(), constant(shift).unsqueeze::<2>());
        if !self.taps(scale.id) {
            return scaled + shift_value;
        }
        let tap = shift_value.expand([rows, width]).autodiff().require_grad();
        self.uses.push(Use {
            map: Map::Scale { input: x.inner() },
            weight: scale.id,
            bias: Some(shift.id),
            tap: tap.clone(),
        });
        scaled + tap
    }

    /// z = patch·W + b for every window of every image.
    pub(crate) fn convolve(
        &mut self,
        images: Tensor<4>,
        weight: &Param<Tensor<2>>,
        bias: &Param<Tensor<1>>,
        window: Window,
    ) -> Result<Tensor<4>, LearnError> {
        let (constants, tap) = ((constant(weight), constant(bias)), tensor::of(vec![0.0], [1, 1]));
        if !self.taps(weight.id) {
            return Ok(kernel::convolve(images, &constants.0, &constants.1, tap, window)?);
        }
        let tap = tap.autodiff().require_grad();
        let grid = WindowGrid::new(images.dims(), window)?;
        let z = kernel::convolve(images.clone(), &constants.0, &constants.1, tap.clone(), window)?;
        self.uses.push(Use {
            map: Map::Windows { images: images.inner(), grid, width: constants.0.dims()[1] },
            weight: weight.id,
            bias: Some(bias.id),
            tap,
        });
        Ok(z)
    }

    /// What dropout draws from, while learning.
    pub(crate) fn coins(&mut self) -> Option<&mut whit_noise::Replay> {
        self.coins.as_mut()
    }

    /// The inputs and output gradients of all layers.
    pub(crate) fn output_gradients(self, gradients: &mut Gradients) -> Result<Vec<OutputGradient>, LearnError> {
        self.uses
            .into_iter()
            .map(|layer| {
                let [rows, width] = match &layer.map {
                    Map::Windows { grid, width, images } => [images.dims()[0] * grid.pool(), *width],
                    _ => layer.tap.dims(),
                };
                // Where there is none, the loss does not depend on this layer at all.
                let found = layer.tap.grad_remove(gradients);
                let gradient = found.unwrap_or_else(|| tensor::of(vec![0.0; rows * width], [rows, width]));
                let input = match layer.map {
                    Map::Linear { input } => {
                        let width = input.dims()[1];
                        LayerInput::Linear { input: floats(&input)?, width }
                    }
                    Map::Lookup { tokens } => LayerInput::Lookup { tokens },
                    Map::Scale { input } => LayerInput::Scale { input: floats(&input)? },
                    Map::Windows { images, grid, .. } => LayerInput::Windows { images: floats(&images)?, grid },
                };
                Ok(OutputGradient {
                    input,
                    weight: layer.weight,
                    bias: layer.bias,
                    gradient: floats(&gradient)?,
                    width,
                })
            })
            .collect()
    }
}

/// A parameter that automatic differentiation does not track.
fn constant<const D: usize>(param: &Param<Tensor<D>>) -> Tensor<D> {
    param.val().inner()
}
