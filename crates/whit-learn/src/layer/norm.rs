//! Norms over one row at a time. There is no batch norm: it centres each row by the others, so one unit moves what all others contribute, and no clip bounds that.

use super::Tape;
use super::filled;
use crate::error::LearnError;
use crate::kernel;
use burn::module::{Module, Param};
use burn::tensor::Tensor;

/// Added to a variance before its root is taken.
const SMALL: f32 = 1e-5;

/// Centred and scaled over the numbers of one row, then scaled and shifted number by number.
#[derive(Module, Debug)]
pub struct LayerNorm {
    scale: Param<Tensor<1>>,
    shift: Param<Tensor<1>>,
}

impl LayerNorm {
    /// Over rows of so many numbers.
    pub fn new(width: usize) -> Self {
        Self { scale: filled([width], 1.0), shift: filled([width], 0.0) }
    }

    /// Of each row.
    pub fn forward(&self, x: Tensor<2>, tape: &mut Tape) -> Tensor<2> {
        tape.scale(standard(x), &self.scale, &self.shift)
    }
}

/// Centred and scaled over groups of channels of one image, then scaled and shifted channel by channel.
#[derive(Module, Debug)]
pub struct GroupNorm {
    scale: Param<Tensor<1>>,
    shift: Param<Tensor<1>>,
    #[module(skip)]
    groups: usize,
}

impl GroupNorm {
    /// Over so many channels in so many groups.
    pub fn new(channels: usize, groups: usize) -> Result<Self, LearnError> {
        if groups == 0 || !channels.is_multiple_of(groups) {
            return Err(LearnError::Layer(format!("{channels} channels do not make {groups} equal groups")));
        }
        Ok(Self { scale: filled([channels], 1.0), shift: filled([channels], 0.0), groups })
    }

    /// Of images: rows, channels, height, width.
    pub fn forward(&self, x: Tensor<4>, tape: &mut Tape) -> Result<Tensor<4>, LearnError> {
        let [rows, channels, height, width] = x.dims();
        let grouped = x.reshape([rows * self.groups, channels / self.groups * height * width]);
        let standard = standard(grouped).reshape([rows, channels, height * width]);
        let by_position = standard.swap_dims(1, 2).reshape([rows * height * width, channels]);
        let scaled = tape.scale(by_position, &self.scale, &self.shift);
        Ok(kernel::fold_channels(scaled, [rows, height, width])?)
    }
}

fn standard(x: Tensor<2>) -> Tensor<2> {
    let centred = x.clone() - x.mean_dim(1);
    let variance = (centred.clone() * centred.clone()).mean_dim(1);
    centred / (variance + SMALL).sqrt()
}
