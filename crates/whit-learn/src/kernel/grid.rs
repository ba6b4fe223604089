//! The places of a window on a batch of images, and what is read and written at each.

use super::{Window, WindowError};
use rayon::prelude::*;
use std::ops::Range;

/// Where no value of a window is greater than zero.
pub(super) const NOWHERE: u32 = u32::MAX;

/// A window on a batch of images.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WindowGrid {
    pub(super) images: usize,
    pub(super) channels: usize,
    /// Of the image, before padding.
    pub(super) sides: [usize; 2],
    pub(super) window: Window,
    /// Places of the window, down and across.
    pub(super) places: [usize; 2],
}

impl WindowGrid {
    pub(crate) fn new([images, channels, height, width]: [usize; 4], window: Window) -> Result<Self, WindowError> {
        let sides = [height, width];
        Ok(Self { images, channels, sides, window, places: window.over(sides)? })
    }

    pub(super) fn shape(&self) -> [usize; 4] {
        [self.images, self.channels, self.sides[0], self.sides[1]]
    }

    pub(super) fn pooled(&self) -> [usize; 4] {
        [self.images, self.channels, self.places[0], self.places[1]]
    }

    /// Values in an image.
    pub(crate) fn image(&self) -> usize {
        self.channels * self.plane()
    }

    /// Values in a channel of an image.
    pub(super) fn plane(&self) -> usize {
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
    pub(super) fn padded(&self) -> [usize; 2] {
        [0, 1].map(|axis| self.sides[axis] + 2 * self.window.padding[axis])
    }

    /// Whether there is no value to read or none to write. Chunks of size zero do not exist, so this is asked first.
    pub(super) fn is_empty(&self) -> bool {
        self.images * self.channels * self.plane() == 0
    }

    /// Values of an image with its padding.
    pub(super) fn canvas(&self) -> usize {
        let [height, width] = self.padded();
        self.channels * height * width
    }

    /// Where each row of an image lies, and where it lies on the canvas.
    pub(super) fn each_row(&self, mut visit: impl FnMut(Range<usize>, Range<usize>)) {
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
    pub(super) fn each_run(&self, mut visit: impl FnMut(usize)) {
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
    pub(super) fn max(&self, input: &[f32], rectified: bool) -> (Vec<f32>, Vec<u32>) {
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

    pub(super) fn spread_max(&self, grad: &[f32], winners: &[u32]) -> Vec<f32> {
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

    pub(super) fn mean(&self, input: &[f32]) -> Vec<f32> {
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

    pub(super) fn spread_mean(&self, grad: &[f32]) -> Vec<f32> {
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
