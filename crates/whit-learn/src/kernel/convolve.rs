//! Convolutions, image by image: patches of one image fit the nearest caches, those of a batch fit none.
//!
//! An image's patches are unfolded into memory of the thread's own, multiplied with the weights straight into the image's channels, and forgotten. Backward
//! does the same the other way round. What stays of a batch is its images and its outputs, which are smaller than its patches by a factor of kernel
//! over stride.

use super::{Step, Stepping, Window, WindowError, WindowGrid, dense, primitive, tracked};
use burn::backend::autodiff::checkpoint::base::Checkpointer;
use burn::backend::autodiff::checkpoint::strategy::CheckpointStrategy;
use burn::backend::autodiff::grads::Gradients;
use burn::backend::autodiff::ops::{Backward, Ops, OpsKind, binary};
use burn::backend::flex::FlexTensor;
use burn::backend::tensor::FloatTensor;
use burn::backend::{Autodiff, Dispatch, Flex};
use burn::tensor::Tensor;
use rayon::prelude::*;
use whit_core::matrix::{Destination, Matrix, product};

/// A convolution that is ready to be done: windows, weights and what is added to each channel.
#[derive(Clone, Debug)]
pub(crate) struct Convolving {
    grid: WindowGrid,
    /// `[c · kh · kw, q]`.
    weight: FlexTensor,
    /// `[q]`.
    bias: FlexTensor,
    outputs: usize,
}

/// The convolution of images `[n, c, h, w]` with weights `[c · kh · kw, q]`, and `[q]` added: `[n, q, oh, ow]`.
///
/// The gradient at the output becomes that of `tap`, image by image and channel by channel: `[n · q, oh · ow]`, whatever the shape of `tap` is. Its value is not
/// read. Weights are taken as constants.
pub(crate) fn convolve(
    images: Tensor<4>,
    weight: &Tensor<2>,
    bias: &Tensor<1>,
    tap: Tensor<2>,
    window: Window,
) -> Result<Tensor<4>, WindowError> {
    let grid = WindowGrid::new(images.dims(), window)?;
    let ([patch, outputs], found) = (weight.dims(), bias.dims()[0]);
    if (patch, found) != (grid.patch(), outputs) {
        return Err(WindowError::Unfilled { found: patch * outputs, shape: vec![grid.patch(), found] });
    }
    primitive(&images)?;
    let (weight, bias) = (primitive(weight)?.to_contiguous(), primitive(bias)?.to_contiguous());
    let convolving = Convolving { grid, weight, bias, outputs };
    Ok(Tensor::from_dispatch(Dispatch::convolve(images.into_dispatch(), tap.into_dispatch(), convolving)))
}

impl Convolving {
    pub(super) fn forward(&self, images: &FlexTensor) -> FlexTensor {
        let Self { grid, outputs, .. } = self;
        let images = images.to_contiguous();
        let (weight, bias) = (self.weight.storage::<f32>(), self.bias.storage::<f32>());
        let (pool, patch) = (grid.pool(), grid.patch());
        let mut output = vec![0.0; grid.images * outputs * pool];
        if !grid.is_empty() {
            let all = output.par_chunks_mut(outputs * pool).zip(images.storage::<f32>().par_chunks(grid.image()));
            all.for_each_init(
                || Patches::new(grid),
                |patches, (output, image)| {
                    for (channel, bias) in output.chunks_exact_mut(pool).zip(bias) {
                        channel.fill(*bias);
                    }
                    let patches = Matrix::new(patches.of(image), pool, patch);
                    product(patches, Matrix::new(weight, patch, *outputs), output, Destination::AddedToColumns);
                },
            );
        }
        dense(output, &[grid.images, *outputs, grid.places[0], grid.places[1]])
    }

    /// The gradient of the images.
    fn backward(&self, gradient: &FlexTensor) -> FlexTensor {
        let Self { grid, outputs, .. } = self;
        let gradient = gradient.to_contiguous();
        let (pool, patch) = (grid.pool(), grid.patch());
        let weight = Matrix::new(self.weight.storage::<f32>(), patch, *outputs);
        let mut of_images = vec![0.0; grid.images * grid.image()];
        if !grid.is_empty() {
            let all = of_images.par_chunks_mut(grid.image()).zip(gradient.storage::<f32>().par_chunks(outputs * pool));
            all.for_each_init(
                || Patches::new(grid),
                |patches, (image, gradient)| {
                    let gradient = Matrix::new(gradient, *outputs, pool).turned();
                    product(gradient, weight.turned(), &mut patches.values, Destination::Rows);
                    patches.add_to(image);
                },
            );
        }
        dense(of_images, &grid.shape())
    }
}

impl<C: CheckpointStrategy> Stepping for Autodiff<Flex, C> {
    fn step(input: FloatTensor<Self>, step: Step) -> FloatTensor<Self> {
        tracked::<C>(input, step)
    }

    fn convolve(images: FloatTensor<Self>, tap: FloatTensor<Self>, convolving: Convolving) -> FloatTensor<Self> {
        let ((images, node), (tap, tap_node)) = (images.into_parts(), tap.into_parts());
        let output = Flex::convolve(images, tap, convolving.clone());
        match Back.prepare::<C>([node, tap_node]).compute_bound().stateful() {
            OpsKind::Tracked(prepared) => prepared.finish(convolving, output),
            OpsKind::UnTracked(prepared) => prepared.finish(output),
        }
    }
}

/// The backward of a convolution: for its images, and for its tap.
#[derive(Debug)]
struct Back;

impl Backward<Flex, 2> for Back {
    type State = Convolving;

    fn backward(self, ops: Ops<Self::State, 2>, grads: &mut Gradients, _: &mut Checkpointer) {
        let convolving = ops.state;
        let sides = [convolving.grid.images * convolving.outputs, convolving.grid.pool()];
        binary::<Flex, _, _>(
            ops.parents,
            ops.node,
            grads,
            |gradient| convolving.backward(&gradient),
            |gradient| gradient.to_contiguous().reshape(sides.into()),
        );
    }
}

/// The patches of one image at a time, in memory that is used again.
pub(crate) struct Patches<'a> {
    grid: &'a WindowGrid,
    /// The image with its padding, whose border stays zero.
    canvas: Vec<f32>,
    /// One patch in a row.
    values: Vec<f32>,
}

impl<'a> Patches<'a> {
    pub(crate) fn new(grid: &'a WindowGrid) -> Self {
        Self { grid, canvas: vec![0.0; grid.canvas()], values: vec![0.0; grid.pool() * grid.patch()] }
    }

    /// Of an image. Rows go down and then across; columns by channel, then down, then across. Padding is zero.
    pub(crate) fn of(&mut self, image: &[f32]) -> &[f32] {
        let (grid, canvas) = (self.grid, &mut self.canvas);
        let canvas = if grid.window.padding == [0, 0] {
            image
        } else {
            grid.each_row(|inside, on_canvas| canvas[on_canvas].copy_from_slice(&image[inside]));
            canvas
        };
        // A run's length is known to the compiler for the usual kernels: a copy is then two instructions,
        // where a call to `memcpy` would cost more than the bytes.
        match grid.window.kernel[1] {
            1 => gather(grid, 1, canvas, &mut self.values),
            2 => gather(grid, 2, canvas, &mut self.values),
            3 => gather(grid, 3, canvas, &mut self.values),
            4 => gather(grid, 4, canvas, &mut self.values),
            5 => gather(grid, 5, canvas, &mut self.values),
            7 => gather(grid, 7, canvas, &mut self.values),
            8 => gather(grid, 8, canvas, &mut self.values),
            other => gather(grid, other, canvas, &mut self.values),
        }
        &self.values
    }

    /// Adds patches up to where they were read: the transpose of [`Patches::of`]. The image is overwritten.
    fn add_to(&mut self, image: &mut [f32]) {
        let grid = self.grid;
        let padded = grid.window.padding != [0, 0];
        let canvas = if padded { &mut self.canvas } else { &mut *image };
        canvas.fill(0.0);
        match grid.window.kernel[1] {
            1 => scatter(grid, 1, &self.values, canvas),
            2 => scatter(grid, 2, &self.values, canvas),
            3 => scatter(grid, 3, &self.values, canvas),
            4 => scatter(grid, 4, &self.values, canvas),
            5 => scatter(grid, 5, &self.values, canvas),
            7 => scatter(grid, 7, &self.values, canvas),
            8 => scatter(grid, 8, &self.values, canvas),
            other => scatter(grid, other, &self.values, canvas),
        }
        if padded {
            grid.each_row(|inside, on_canvas| image[inside].copy_from_slice(&self.canvas[on_canvas]));
            // The border is zero whenever an image comes in.
            self.canvas.fill(0.0);
        }
    }
}

#[expect(clippy::inline_always, reason = "the width becomes a constant only where this is called")]
#[inline(always)]
fn gather(grid: &WindowGrid, width: usize, canvas: &[f32], patches: &mut [f32]) {
    let mut runs = patches.chunks_exact_mut(width);
    grid.each_run(|start| {
        if let Some(run) = runs.next() {
            run.copy_from_slice(&canvas[start..start + width]);
        }
    });
}

#[expect(clippy::inline_always, reason = "the width becomes a constant only where this is called")]
#[inline(always)]
fn scatter(grid: &WindowGrid, width: usize, patches: &[f32], canvas: &mut [f32]) {
    let mut runs = patches.chunks_exact(width);
    grid.each_run(|start| {
        if let Some(run) = runs.next() {
            for (sum, value) in canvas[start..start + width].iter_mut().zip(run) {
                *sum += value;
            }
        }
    });
}
