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

pub(crate) use convolve::{Patches, convolve};

use convolve::Convolving;
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
pub enum Error {
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
/// # use whit_learn::kernel::Window;
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
    pub fn over(&self, [height, width]: [usize; 2]) -> Result<[usize; 2], Error> {
        let places = |axis: usize, side: usize| {
            let (kernel, stride) = (self.kernel[axis], self.stride[axis]);
            let room = self.padding[axis].checked_mul(2)?.checked_add(side)?.checked_sub(kernel)?;
            (kernel > 0 && stride > 0).then(|| room / stride + 1)
        };
        match (places(0, height), places(1, width)) {
            (Some(rows), Some(columns)) => Ok([rows, columns]),
            _ => Err(Error::Unfit { window: *self, height, width }),
        }
    }
}

/// Rows of positions to images: `[n · oh · ow, q]` to `[n, q, oh, ow]`, given `[n, oh, ow]`.
///
/// It is one transposition per image, done in memory: the next step reads the images in order, and a strided view would make each read a
/// cache miss.
pub fn fold_channels(rows: Tensor<2>, [images, height, width]: [usize; 3]) -> Result<Tensor<4>, Error> {
    let [found, channels] = rows.dims();
    let positions = height.checked_mul(width).and_then(|plane| plane.checked_mul(images));
    if positions != Some(found) {
        return Err(Error::Unfilled { found, shape: vec![images, height, width] });
    }
    run(rows, Step::Fold { images, channels, sides: [height, width] })
}

/// The greatest value under the window, channel by channel: `[n, c, h, w]` to `[n, c, oh, ow]`.
///
/// Padding never wins, so a window that can lie in padding alone (`padding ≥ kernel`) is refused. Of equal values the
/// first wins, down and then across, and takes the whole gradient. The first NaN wins over everything.
pub fn max_pool(input: Tensor<4>, window: Window) -> Result<Tensor<4>, Error> {
    max(input, window, false)
}

/// [`max_pool`] of max(z, 0), in one pass: the greatest value, or zero where none is greater.
pub fn rectified_max_pool(input: Tensor<4>, window: Window) -> Result<Tensor<4>, Error> {
    max(input, window, true)
}

fn max(input: Tensor<4>, window: Window, rectified: bool) -> Result<Tensor<4>, Error> {
    let grid = Grid::new(input.dims(), window)?;
    let lonely = (0..2).any(|axis| window.padding[axis] >= window.kernel[axis]);
    // A winner is remembered as a `u32` within its plane.
    if lonely || grid.plane() >= NOWHERE as usize {
        return Err(Error::Unfit { window, height: grid.sides[0], width: grid.sides[1] });
    }
    run(input, Step::Max { grid, rectified })
}

/// The mean under the window, channel by channel: `[n, c, h, w]` to `[n, c, oh, ow]`.
///
/// Padding counts as zeros, so every mean divides by `kh · kw` (PyTorch's `count_include_pad = true`).
pub fn mean_pool(input: Tensor<4>, window: Window) -> Result<Tensor<4>, Error> {
    let grid = Grid::new(input.dims(), window)?;
    run(input, Step::Mean(grid))
}

/// tanh of each value, by a quotient of polynomials: many at a time on every core, where burn asks the system's library for one after the other.
pub fn tanh<const D: usize>(input: Tensor<D>) -> Result<Tensor<D>, Error> {
    run(input, Step::Tanh)
}

/// A tensor's values, read where they lie: a `[f32]` in row-major order.
pub struct Floats(FlexTensor);

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
pub fn floats<const D: usize>(tensor: &Tensor<D>) -> Result<Floats, Error> {
    Ok(Floats(primitive(tensor)?.to_contiguous()))
}

/// Takes a tensor's values: its own memory if nothing else holds it, a copy if something does.
pub fn into_floats<const D: usize>(tensor: Tensor<D>) -> Result<Vec<f32>, Error> {
    let found = tensor.dtype();
    let data = tensor.without_autodiff().into_data();
    data.try_into_vec().map_err(|_| Error::NotFloats { found: format!("{found:?}") })
}

/// Makes a tensor of a vector, in the vector's own memory.
pub fn tensor<const D: usize>(values: Vec<f32>, shape: [usize; D]) -> Result<Tensor<D>, Error> {
    let wanted = shape.iter().try_fold(1_usize, |product, &side| product.checked_mul(side));
    if wanted != Some(values.len()) {
        return Err(Error::Unfilled { found: values.len(), shape: shape.to_vec() });
    }
    Ok(Tensor::from_primitive::<Flex>(dense(values, &shape)))
}

fn dense(values: Vec<f32>, shape: &[usize]) -> FlexTensor {
    FlexTensor::new(Bytes::from_elems(values), Layout::contiguous(Shape::from(shape.to_vec())), DType::F32)
}

/// The tensor under the tensor, or what stands there instead.
fn primitive<const D: usize>(tensor: &Tensor<D>) -> Result<FlexTensor, Error> {
    let dtype = tensor.dtype();
    if dtype != DType::F32 {
        return Err(Error::NotFloats { found: format!("{dtype:?}") });
    }
    let plain = tensor.clone().without_autodiff();
    plain.try_into_primitive::<Flex>().map_err(|found| Error::NotFloats { found: format!("{found:?}") })
}

/// Takes a step on whichever road the tensor is on, after a look at what would make burn panic.
fn run<const D: usize, const E: usize>(input: Tensor<D>, step: Step) -> Result<Tensor<E>, Error> {
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

/// Where no value of a window is greater than zero.
const NOWHERE: u32 = u32::MAX;

/// One operation, with all that it must know of shapes.
#[derive(Clone, Copy, Debug)]
enum Step {
    Fold { images: usize, channels: usize, sides: [usize; 2] },
    Max { grid: Grid, rectified: bool },
    Mean(Grid),
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

/// A window on a batch of images.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Grid {
    images: usize,
    channels: usize,
    /// Of the image, before padding.
    sides: [usize; 2],
    window: Window,
    /// Places of the window, down and across.
    places: [usize; 2],
}

impl Grid {
    pub(crate) fn new([images, channels, height, width]: [usize; 4], window: Window) -> Result<Self, Error> {
        let sides = [height, width];
        Ok(Self { images, channels, sides, window, places: window.over(sides)? })
    }

    fn shape(&self) -> [usize; 4] {
        [self.images, self.channels, self.sides[0], self.sides[1]]
    }

    fn pooled(&self) -> [usize; 4] {
        [self.images, self.channels, self.places[0], self.places[1]]
    }

    /// Values in an image.
    pub(crate) fn image(&self) -> usize {
        self.channels * self.plane()
    }

    /// Values in a channel of an image.
    fn plane(&self) -> usize {
        self.sides[0] * self.sides[1]
    }

    /// Places of the window.
    pub(crate) fn pool(&self) -> usize {
        self.places[0] * self.places[1]
    }

    /// Values in a patch.
    pub(crate) fn patch(&self) -> usize {
        self.channels * self.window.kernel[0] * self.window.kernel[1]
    }

    /// Sides of an image with its padding.
    fn padded(&self) -> [usize; 2] {
        [0, 1].map(|axis| self.sides[axis] + 2 * self.window.padding[axis])
    }

    /// Whether there is no value to read or none to write. Chunks of size zero do not exist, so this is asked first.
    fn is_empty(&self) -> bool {
        self.images * self.channels * self.plane() == 0
    }

    /// Values of an image with its padding.
    fn canvas(&self) -> usize {
        let [height, width] = self.padded();
        self.channels * height * width
    }

    /// Where each row of an image lies, and where it lies on the canvas.
    fn each_row(&self, mut visit: impl FnMut(Range<usize>, Range<usize>)) {
        let ([height, width], [high, wide]) = (self.sides, self.padded());
        let [above, left] = self.window.padding;
        for row in 0..self.channels * height {
            let (channel, y) = (row / height, row % height);
            let start = (channel * high + above + y) * wide + left;
            visit(row * width..(row + 1) * width, start..start + width);
        }
    }

    /// Where on the canvas each run of each patch starts, in the order of [`Patches::of`].
    #[inline]
    fn each_run(&self, mut visit: impl FnMut(usize)) {
        let [high, wide] = self.padded();
        let Window { kernel, stride, .. } = self.window;
        for y in 0..self.places[0] {
            for x in 0..self.places[1] {
                let corner = y * stride[0] * wide + x * stride[1];
                for channel in 0..self.channels {
                    for down in 0..kernel[0] {
                        visit(corner + (channel * high + down) * wide);
                    }
                }
            }
        }
    }

    /// The best of each window, and where it was.
    fn max(&self, input: &[f32], rectified: bool) -> (Vec<f32>, Vec<u32>) {
        let count = self.images * self.channels * self.pool();
        let (mut best, mut from) = (vec![f32::NEG_INFINITY; count], vec![0; count]);
        if self.is_empty() {
            return (best, from);
        }
        let first = self.first_inside();
        let outputs = best.par_chunks_mut(self.pool()).zip(from.par_chunks_mut(self.pool()));
        let planes = outputs.zip(input.par_chunks(self.plane()));
        if self.window.padding == [0, 0] {
            let scratch = || (vec![0.0; self.plane()], vec![0; self.plane()]);
            planes.for_each_init(scratch, |scratch, ((best, from), plane)| {
                self.max_of_all(plane, scratch, best, from);
                rectify(rectified, best, from);
            });
        } else {
            let (taps, step) = (self.taps(), self.window.stride[1]);
            planes.for_each(|((best, from), plane)| {
                // A window of nothing but −∞ has a winner too: its first value that is not padding.
                from.copy_from_slice(&first);
                for tap in &taps {
                    let (best, from) = (&mut best[tap.outputs.clone()], &mut from[tap.outputs.clone()]);
                    let values = plane[tap.start..].iter().step_by(step);
                    let places = (tap.start as u32..).step_by(step);
                    for (((best, from), &value), place) in best.iter_mut().zip(from).zip(values).zip(places) {
                        (*best, *from) = better((value, place), (*best, *from));
                    }
                }
                rectify(rectified, best, from);
            });
        }
        (best, from)
    }

    /// The best of the windows at every place of a plane, in long runs that go through the processor many at a time, of which those are kept that the
    /// strides lead to.
    fn max_of_all(&self, plane: &[f32], scratch: &mut (Vec<f32>, Vec<u32>), best: &mut [f32], from: &mut [u32]) {
        let Window { kernel, stride, .. } = self.window;
        let width = self.sides[1];
        let run = plane.len() - (kernel[0] - 1) * width - (kernel[1] - 1);
        let (all, places) = (&mut scratch.0[..run], &mut scratch.1[..run]);
        all.copy_from_slice(&plane[..run]);
        for (place, index) in places.iter_mut().zip(0..) {
            *place = index;
        }
        for offset in (0..kernel[0]).flat_map(|down| (0..kernel[1]).map(move |across| down * width + across)).skip(1) {
            let values = &plane[offset..offset + run];
            for (((best, from), &value), place) in all.iter_mut().zip(&mut *places).zip(values).zip(offset as u32..) {
                (*best, *from) = better((value, place), (*best, *from));
            }
        }
        let rows = best.chunks_exact_mut(self.places[1]).zip(from.chunks_exact_mut(self.places[1]));
        for (y, (best, from)) in rows.enumerate() {
            let start = y * stride[0] * width;
            let picked = all[start..].iter().zip(&places[start..]).step_by(stride[1]);
            for ((best, from), (value, place)) in best.iter_mut().zip(from).zip(picked) {
                (*best, *from) = (*value, *place);
            }
        }
    }

    fn spread_max(&self, grad: &[f32], winners: &[u32]) -> Vec<f32> {
        let mut output = vec![0.0; self.images * self.channels * self.plane()];
        if self.is_empty() {
            return output;
        }
        let grads = grad.par_chunks(self.pool()).zip(winners.par_chunks(self.pool()));
        output.par_chunks_mut(self.plane()).zip(grads).for_each(|(plane, (grad, winners))| {
            for (value, &place) in grad.iter().zip(winners).filter(|(_, place)| **place != NOWHERE) {
                plane[place as usize] += value;
            }
        });
        output
    }

    fn mean(&self, input: &[f32]) -> Vec<f32> {
        let mut output = vec![0.0; self.images * self.channels * self.pool()];
        if self.is_empty() {
            return output;
        }
        let (taps, step, share) = (self.taps(), self.window.stride[1], self.share());
        output.par_chunks_mut(self.pool()).zip(input.par_chunks(self.plane())).for_each(|(sums, plane)| {
            for tap in &taps {
                let values = plane[tap.start..].iter().step_by(step);
                for (sum, value) in sums[tap.outputs.clone()].iter_mut().zip(values) {
                    *sum += value;
                }
            }
            for sum in sums {
                *sum *= share;
            }
        });
        output
    }

    fn spread_mean(&self, grad: &[f32]) -> Vec<f32> {
        let mut output = vec![0.0; self.images * self.channels * self.plane()];
        if self.is_empty() {
            return output;
        }
        let (taps, step, share) = (self.taps(), self.window.stride[1], self.share());
        output.par_chunks_mut(self.plane()).zip(grad.par_chunks(self.pool())).for_each(|(plane, grad)| {
            for tap in &taps {
                let values = plane[tap.start..].iter_mut().step_by(step);
                for (value, grad) in values.zip(&grad[tap.outputs.clone()]) {
                    *value += share * grad;
                }
            }
        });
        output
    }

    /// What one value of a window adds to its mean.
    fn share(&self) -> f32 {
        1.0 / (self.window.kernel[0] * self.window.kernel[1]) as f32
    }

    /// For each window of a plane, its first place that is not padding.
    fn first_inside(&self) -> Vec<u32> {
        let Window { stride, padding, .. } = self.window;
        let rows = (0..self.places[0]).map(|y| (y * stride[0]).saturating_sub(padding[0]));
        rows.flat_map(|row| {
            (0..self.places[1]).map(move |x| (row * self.sides[1] + (x * stride[1]).saturating_sub(padding[1])) as u32)
        })
        .collect()
    }

    /// Every tap of a plane: by row of windows, then down the window, then across it.
    fn taps(&self) -> Vec<Tap> {
        let Window { kernel, stride, padding } = self.window;
        let [height, width] = self.sides;
        let mut taps = Vec::new();
        for y in 0..self.places[0] {
            for down in 0..kernel[0] {
                let Some(row) = (y * stride[0] + down).checked_sub(padding[0]).filter(|&row| row < height) else {
                    continue;
                };
                for across in 0..kernel[1] {
                    // Windows `x` with `0 ≤ x · stride + across − padding < width`.
                    let low = padding[1].saturating_sub(across).div_ceil(stride[1]);
                    let high = (width + padding[1]).saturating_sub(across).div_ceil(stride[1]).min(self.places[1]);
                    if low < high {
                        let start = row * width + low * stride[1] + across - padding[1];
                        taps.push(Tap { outputs: y * self.places[1] + low..y * self.places[1] + high, start });
                    }
                }
            }
        }
        taps
    }
}

/// One offset within the window, for one row of windows: the outputs that it reaches, and the place in the plane that
/// the first of them reads. The next ones read a stride further each.
struct Tap {
    outputs: Range<usize>,
    start: usize,
}

/// The better of a value and the best so far, with its place. The first NaN stays.
///
/// By masks and not by a choice: the compiler would make a branch of each choice, and many values at a time have none.
#[inline]
fn better((value, place): (f32, u32), (best, from): (f32, u32)) -> (f32, u32) {
    let wins = (value > best) | (value.is_nan() & !best.is_nan());
    let mask = u32::from(wins).wrapping_neg();
    let pick = |new: u32, old: u32| (new & mask) | (old & !mask);
    (f32::from_bits(pick(value.to_bits(), best.to_bits())), pick(place, from))
}

/// Zero where nothing is greater.
fn rectify(rectified: bool, best: &mut [f32], from: &mut [u32]) {
    if rectified {
        for (best, from) in best.iter_mut().zip(from) {
            let lost = u32::from(*best <= 0.0).wrapping_neg();
            *best = f32::from_bits(best.to_bits() & !lost);
            *from |= lost; // which is `NOWHERE` where all bits are set
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

#[cfg(test)]
#[path = "kernel_tests.rs"]
mod tests;
