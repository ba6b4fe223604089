//! Windows over images, at the speed of memory: convolutions, folds and pools, forward and backward; and the hyperbolic tangent.
//!
//! burn's own versions of these on the processor are general: any rank, any dilation, any element. They take most of a
//! training step's time. Here are only the cases that our layers need: `f32`, two dimensions, no dilation.
//!
//! Each operation is one `Step`, which knows its forward and its backward as plain functions on slices. burn learns of
//! steps through one extension trait, `Stepping`, so plain and differentiable tensors take the same road.
//!
//! What is absent: dilation, groups, other elements than `f32`, and derivatives of derivatives.

mod convolve;
mod grid;
#[cfg(test)]
mod tests;

pub(crate) use convolve::{Patches, convolve};
pub(crate) use grid::WindowGrid;

use convolve::Convolving;
use grid::NOWHERE;
use std::ops::{Deref, Range};
use std::sync::Arc;

use burn::backend::autodiff::checkpoint::base::Checkpointer;
use burn::backend::autodiff::checkpoint::strategy::CheckpointStrategy;
use burn::backend::autodiff::grads::Gradients;
use burn::backend::autodiff::ops::{Backward, Ops, OpsKind, unary};
use burn::backend::flex::{FlexTensor, Layout};
use burn::backend::tensor::FloatTensor;
use burn::backend::{Autodiff, Backend, Dispatch, Flex, TensorMetadata, backend_extension};
use burn::tensor::{Bytes, DType, Shape, Tensor};
use rayon::prelude::*;

/// Why a tensor and an operation do not go together. It speaks of shapes, never of values.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WindowError {
    /// The tensor has another element, or lives on another backend.
    #[error("windows read 32-bit floats in this machine's memory, and this tensor is {found}")]
    NotFloats {
        /// What it is, in burn's words.
        found: String,
    },
    /// A window with an empty side or no stride, or larger than the image with its padding, or all padding.
    #[error("{window:?} does not fit an image of {height} × {width}")]
    Unfit {
        /// The window that was asked for.
        window: Window,
        /// Rows of the image.
        height: usize,
        /// Columns of the image.
        width: usize,
    },
    /// A shape that holds another number of values than there are.
    #[error("{found} values do not fill the shape {shape:?}")]
    Unfilled {
        /// How many there are.
        found: usize,
        /// What they were to fill.
        shape: Vec<usize>,
    },
}

/// A rectangle that slides over an image: `[vertical, horizontal]` each.
///
/// ```
/// # use whit_learn::custom::Window;
/// let pool = Window { kernel: [2, 2], stride: [2, 2], padding: [0, 0] };
/// assert_eq!(pool.over([28, 28]).unwrap(), [14, 14]);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    /// Its sides.
    pub kernel: [usize; 2],
    /// How far it moves at a time.
    pub stride: [usize; 2],
    /// How far it begins outside the image, and ends outside at most.
    pub padding: [usize; 2],
}

impl Window {
    /// How many places it has on an image with these sides.
    pub fn over(&self, [height, width]: [usize; 2]) -> Result<[usize; 2], WindowError> {
        let places = |axis: usize, side: usize| {
            let (kernel, stride) = (self.kernel[axis], self.stride[axis]);
            let room = self.padding[axis].checked_mul(2)?.checked_add(side)?.checked_sub(kernel)?;
            (kernel > 0 && stride > 0).then(|| room / stride + 1)
        };
        match (places(0, height), places(1, width)) {
            (Some(rows), Some(columns)) => Ok([rows, columns]),
            _ => Err(WindowError::Unfit { window: *self, height, width }),
        }
    }
}

/// Rows of positions to images: `[n · oh · ow, q]` to `[n, q, oh, ow]`, given `[n, oh, ow]`.
///
/// It is one transposition per image, done in memory: the next step reads the images in order, and a strided view would make each read a
/// cache miss.
pub(crate) fn fold_channels(rows: Tensor<2>, [images, height, width]: [usize; 3]) -> Result<Tensor<4>, WindowError> {
    let [found, channels] = rows.dims();
    let positions = height.checked_mul(width).and_then(|plane| plane.checked_mul(images));
    if positions != Some(found) {
        return Err(WindowError::Unfilled { found, shape: vec![images, height, width] });
    }
    run(rows, Step::Fold { images, channels, sides: [height, width] })
}

/// The greatest value under the window, channel by channel: `[n, c, h, w]` to `[n, c, oh, ow]`.
///
/// Padding never wins, so a window that can lie in padding alone (`padding ≥ kernel`) is refused. Of equal values the
/// first wins, down and then across, and takes the whole gradient. The first NaN wins over everything.
pub(crate) fn max_pool(input: Tensor<4>, window: Window) -> Result<Tensor<4>, WindowError> {
    max(input, window, false)
}

/// [`max_pool`] of max(z, 0), in one pass: the greatest value, or zero where none is greater.
pub(crate) fn rectified_max_pool(input: Tensor<4>, window: Window) -> Result<Tensor<4>, WindowError> {
    max(input, window, true)
}

fn max(input: Tensor<4>, window: Window, rectified: bool) -> Result<Tensor<4>, WindowError> {
    let grid = WindowGrid::new(input.dims(), window)?;
    let lonely = (0..2).any(|axis| window.padding[axis] >= window.kernel[axis]);
    // A winner is remembered as a `u32` within its plane.
    if lonely || grid.plane() >= NOWHERE as usize {
        return Err(WindowError::Unfit { window, height: grid.sides[0], width: grid.sides[1] });
    }
    run(input, Step::Max { grid, rectified })
}

/// The mean under the window, channel by channel: `[n, c, h, w]` to `[n, c, oh, ow]`.
///
/// Padding counts as zeros, so every mean divides by `kh · kw` (PyTorch's `count_include_pad = true`).
pub(crate) fn mean_pool(input: Tensor<4>, window: Window) -> Result<Tensor<4>, WindowError> {
    let grid = WindowGrid::new(input.dims(), window)?;
    run(input, Step::Mean(grid))
}

/// tanh of each value, by a quotient of polynomials: many at a time on every core, where burn asks the system's library for one after the other.
pub(crate) fn tanh<const D: usize>(input: Tensor<D>) -> Result<Tensor<D>, WindowError> {
    run(input, Step::Tanh)
}

/// A tensor's values, read where they lie: a `[f32]` in row-major order.
pub(crate) struct Floats(FlexTensor);

impl Deref for Floats {
    type Target = [f32];

    fn deref(&self) -> &[f32] {
        self.0.storage() // dense and `f32`, by `floats`
    }
}

impl Floats {
    /// The same with zeros at some places, in memory of its own.
    pub(crate) fn without(&self, places: impl IntoIterator<Item = Range<usize>>) -> Self {
        let mut values = self.to_vec();
        for place in places {
            values[place].fill(0.0);
        }
        let length = values.len();
        Self(dense(values, &[length]))
    }
}

/// Lends a tensor's values. Nothing is copied, except from a view that is not the whole of its memory in order.
pub(crate) fn floats<const D: usize>(tensor: &Tensor<D>) -> Result<Floats, WindowError> {
    Ok(Floats(primitive(tensor)?.to_contiguous()))
}

/// Takes a tensor's values: its own memory if nothing else holds it, a copy if something does.
pub(crate) fn into_floats<const D: usize>(tensor: Tensor<D>) -> Result<Vec<f32>, WindowError> {
    let found = tensor.dtype();
    let data = tensor.without_autodiff().into_data();
    data.try_into_vec().map_err(|_| WindowError::NotFloats { found: format!("{found:?}") })
}

/// Makes a tensor of a vector, in the vector's own memory.
pub(crate) fn tensor<const D: usize>(values: Vec<f32>, shape: [usize; D]) -> Result<Tensor<D>, WindowError> {
    let wanted = shape.iter().try_fold(1_usize, |product, &side| product.checked_mul(side));
    if wanted != Some(values.len()) {
        return Err(WindowError::Unfilled { found: values.len(), shape: shape.to_vec() });
    }
    Ok(Tensor::from_primitive::<Flex>(dense(values, &shape)))
}

fn dense(values: Vec<f32>, shape: &[usize]) -> FlexTensor {
    FlexTensor::new(Bytes::from_elems(values), Layout::contiguous(Shape::from(shape.to_vec())), DType::F32)
}

/// The tensor under the tensor, or what stands there instead.
fn primitive<const D: usize>(tensor: &Tensor<D>) -> Result<FlexTensor, WindowError> {
    let dtype = tensor.dtype();
    if dtype != DType::F32 {
        return Err(WindowError::NotFloats { found: format!("{dtype:?}") });
    }
    let plain = tensor.clone().without_autodiff();
    plain.try_into_primitive::<Flex>().map_err(|found| WindowError::NotFloats { found: format!("{found:?}") })
}

/// Takes a step on whichever road the tensor is on, after a look at what would make burn panic.
fn run<const D: usize, const E: usize>(input: Tensor<D>, step: Step) -> Result<Tensor<E>, WindowError> {
    primitive(&input)?;
    Ok(Tensor::from_dispatch(Dispatch::step(input.into_dispatch(), step)))
}

/// burn's door for operations of one's own.
#[backend_extension(Flex, Autodiff)]
trait Stepping: Backend {
    fn step(input: FloatTensor<Self>, step: Step) -> FloatTensor<Self>;
    fn convolve(images: FloatTensor<Self>, tap: FloatTensor<Self>, convolving: Convolving) -> FloatTensor<Self>;
}

impl Stepping for Flex {
    fn step(input: FlexTensor, step: Step) -> FlexTensor {
        step.forward(&input).0
    }

    fn convolve(images: FlexTensor, _: FlexTensor, convolving: Convolving) -> FlexTensor {
        convolving.forward(&images)
    }
}

/// A step that is followed back.
fn tracked<C: CheckpointStrategy>(input: FloatTensor<Autodiff<Flex, C>>, step: Step) -> FloatTensor<Autodiff<Flex, C>> {
    let (input, node) = input.into_parts();
    let (output, kept) = step.forward(&input);
    // Nothing of the input is kept, so there is nothing that checkpointing could save.
    match Back.prepare::<C>([node]).compute_bound().stateful() {
        OpsKind::Tracked(prepared) => prepared.finish((step, kept), output),
        OpsKind::UnTracked(prepared) => prepared.finish(output),
    }
}

/// The backward of every [`Step`].
#[derive(Debug)]
struct Back;

impl Backward<Flex, 1> for Back {
    type State = (Step, Kept);

    fn backward(self, ops: Ops<Self::State, 1>, grads: &mut Gradients, _: &mut Checkpointer) {
        let (step, kept) = ops.state;
        unary::<Flex, _>(ops.parents, ops.node, grads, |grad| step.backward(&grad, &kept));
    }
}

/// What a step's backward needs of its forward.
#[derive(Clone, Debug)]
enum Kept {
    Nothing,
    /// For each value of a [`Step::Max`], where in its plane it came from, or [`NOWHERE`].
    Winners(Arc<Vec<u32>>),
    /// What came out.
    Output(FlexTensor),
}

/// One operation, with all that it must know of shapes.
#[derive(Clone, Copy, Debug)]
enum Step {
    Fold { images: usize, channels: usize, sides: [usize; 2] },
    Max { grid: WindowGrid, rectified: bool },
    Mean(WindowGrid),
    Tanh,
}

impl Step {
    fn forward(&self, input: &FlexTensor) -> (FlexTensor, Kept) {
        let input = input.to_contiguous();
        let values = input.storage::<f32>();
        match self {
            Step::Fold { images, channels, sides: [height, width] } => {
                let shape = [*images, *channels, *height, *width];
                (dense(transpose(values, height * width, *channels), &shape), Kept::Nothing)
            }
            Step::Max { grid, rectified } => {
                let (best, from) = grid.max(values, *rectified);
                (dense(best, &grid.pooled()), Kept::Winners(Arc::new(from)))
            }
            Step::Mean(grid) => (dense(grid.mean(values), &grid.pooled()), Kept::Nothing),
            Step::Tanh => {
                let output = dense(zipped(values, values, |value, _| tanh_of(value)), &input.shape());
                (output.clone(), Kept::Output(output))
            }
        }
    }

    fn backward(&self, grad: &FlexTensor, kept: &Kept) -> FlexTensor {
        let grad = grad.to_contiguous();
        let values = grad.storage::<f32>();
        match (self, kept) {
            (Step::Fold { images, channels, sides: [height, width] }, _) => {
                let shape = [images * height * width, *channels];
                dense(transpose(values, *channels, height * width), &shape)
            }
            (Step::Max { grid, .. }, Kept::Winners(winners)) => dense(grid.spread_max(values, winners), &grid.shape()),
            (Step::Mean(grid), _) => dense(grid.spread_mean(values), &grid.shape()),
            (Step::Tanh, Kept::Output(output)) => {
                dense(zipped(values, output.storage(), |grad, tanh| grad * (1.0 - tanh * tanh)), &output.shape())
            }
            (Step::Max { .. } | Step::Tanh, _) => unreachable!("{self:?} kept {kept:?}"),
        }
    }
}

/// A function of each pair of values, on every core.
fn zipped(left: &[f32], right: &[f32], of: impl Fn(f32, f32) -> f32 + Sync) -> Vec<f32> {
    /// So many that a thread's start is nothing compared with them.
    const PIECE: usize = 1 << 14;
    let mut output = vec![0.0; left.len()];
    let pieces = left.par_chunks(PIECE).zip(right.par_chunks(PIECE));
    output.par_chunks_mut(PIECE).zip(pieces).for_each(|(output, (left, right))| {
        for ((output, left), right) in output.iter_mut().zip(left).zip(right) {
            *output = of(*left, *right);
        }
    });
    output
}

/// tanh to some units in the last place, without a branch and without a call: x·P(x²)/Q(x²), the minimax quotient of degrees 13 and 6 that Eigen and
/// XLA use. Beyond ±7.9 it is ±1 to all digits that an `f32` has, so there it stands still. NaN stays NaN.
#[inline]
fn tanh_of(x: f32) -> f32 {
    const ABOVE: [f32; 7] = [
        -2.760_768_5e-16,
        2.000_188e-13,
        -8.604_672e-11,
        5.122_297_1e-8,
        1.485_722_4e-5,
        6.372_619_3e-4,
        4.893_524_6e-3,
    ];
    const BELOW: [f32; 4] = [1.198_258_4e-6, 1.185_347_1e-4, 2.268_434_6e-3, 4.893_525e-3];
    let x = x.clamp(-7.905_311, 7.905_311);
    let square = x * x;
    let along = |coefficients: &[f32]| coefficients.iter().fold(0.0, |sum, coefficient| sum * square + coefficient);
    x * (along(&ABOVE) / along(&BELOW))
}

/// Transposes each matrix of a stack, `rows × columns` each.
fn transpose(input: &[f32], rows: usize, columns: usize) -> Vec<f32> {
    /// Rows at a time, so that what is read column by column is still in the nearest cache.
    const BLOCK: usize = 64;
    let mut output = vec![0.0; input.len()];
    if rows * columns == 0 {
        return output;
    }
    let matrices = output.par_chunks_mut(rows * columns).zip(input.par_chunks(rows * columns));
    matrices.for_each(|(to, from)| {
        for (block, from) in from.chunks(BLOCK * columns).enumerate() {
            for (column, to) in to.chunks_exact_mut(rows).enumerate() {
                let values = from[column..].iter().step_by(columns);
                for (to, &value) in to[block * BLOCK..].iter_mut().zip(values) {
                    *to = value;
                }
            }
        }
    });
    output
}
