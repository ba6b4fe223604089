//! Gradients of convolutions. They are always formed, bag by bag, from patches that are unfolded image by image.
//!
//! A Gram form would be dearer (an image has more windows than a kernel has weights, but for the smallest images), and a product over all
//! windows at once rounds too much: windows of one image cancel each other, so |a|·|g| summed over windows exceeds the bag's gradient many times, and the
//! share of it that a product in f32 may get wrong would not stay below what the plan pays for. What is formed of a bag is a function of that bag alone,
//! and then its rounding does no harm.

use super::bags::Bags;
use super::formed::{Formed, Lengths, add_formed, squared_up};
use super::total::Part;
use crate::kernel::{Patches, WindowGrid};
use crate::layer::OutputGradient;
use rayon::prelude::*;
use std::ops::Range;
use whit_core::matrix::{Destination, Matrix, product};

/// Gradients that take more bytes together are formed once for their norms and once more for their sum, and not kept between.
const KEPT: usize = 1 << 28;
/// So many bytes of them at a time.
const BLOCK: usize = 1 << 25;
/// Without a clip, so many images are added up in f32.
const TOGETHER: usize = 8;

/// A convolution's images and the gradient at its output.
pub(crate) struct Windows<'a> {
    images: &'a [f32],
    grid: &'a WindowGrid,
    gradient: &'a [f32],
    /// How many channels come out.
    width: usize,
}

impl<'a> Windows<'a> {
    pub(crate) fn new(images: &'a [f32], grid: &'a WindowGrid, output: &'a OutputGradient) -> Self {
        Self { images, grid, gradient: &output.gradient, width: output.width }
    }

    /// How many numbers a gradient has: weights, and then one for each channel.
    fn size(&self) -> usize {
        (self.grid.patch() + 1) * self.width
    }

    /// The gradient of some images.
    fn form(&self, patches: &mut Patches<'_>, rows: Range<usize>, out: &mut [f32]) {
        let (image, pool, patch) = (self.grid.image(), self.grid.pool(), self.grid.patch());
        let each = self.width * pool;
        let (weight, bias) = out.split_at_mut(patch * self.width);
        weight.fill(0.0);
        bias.fill(0.0);
        for (place, row) in rows.enumerate() {
            let gradient = &self.gradient[row * each..(row + 1) * each];
            let unfolded = Matrix::new(patches.of(&self.images[row * image..(row + 1) * image]), pool, patch);
            let how = if place == 0 { Destination::Rows } else { Destination::AddedToRows };
            product(unfolded.turned(), Matrix::new(gradient, self.width, pool).turned(), weight, how);
            for (bias, gradient) in bias.iter_mut().zip(gradient.chunks_exact(pool.max(1))) {
                *bias += gradient.iter().sum::<f32>();
            }
        }
    }

    /// The gradients of groups of images, one after the other.
    fn formed(&self, groups: &[Range<usize>], all: &mut [f32]) {
        all.par_chunks_mut(self.size().max(1))
            .zip(groups)
            .for_each_init(|| Patches::new(self.grid), |patches, (out, rows)| self.form(patches, rows.clone(), out));
    }

    /// How long the gradients of bags are, raised by what rounding may have taken away.
    pub(crate) fn lengths(&self, bags: &Bags) -> Lengths {
        let size = self.size();
        let groups: Vec<Range<usize>> = bags.ranges().collect();
        let norms = |all: &[f32]| -> Vec<f64> { all.par_chunks(size.max(1)).map(squared_up).collect() };
        let kept = size * groups.len() * size_of::<f32>() <= KEPT;
        let at_once = if kept { groups.len() } else { self.at_once() };
        let mut all = vec![0_f32; size * at_once.min(groups.len())];
        let mut squared = Vec::with_capacity(groups.len());
        for groups in groups.chunks(at_once.max(1)) {
            let all = &mut all[..size * groups.len()];
            self.formed(groups, all);
            squared.extend(norms(all));
        }
        let formed = kept.then(|| Formed { bags: (0..groups.len()).collect(), values: all });
        Lengths { squared, spread: None, formed }
    }

    fn at_once(&self) -> usize {
        (BLOCK / (self.size() * size_of::<f32>()).max(1)).max(1)
    }

    /// Adds the gradients of bags times their factors, forming them anew. Without a clip factors are all one, and images are added up in f32 first.
    pub(crate) fn add(&self, bags: &Bags, factors: &[f64], clipped: bool, weight: &mut Part<'_>, bias: &mut Part<'_>) {
        let (groups, factors): (Vec<Range<usize>>, Vec<f64>) = if clipped {
            bags.ranges().zip(factors.iter().copied()).unzip()
        } else {
            let rows = bags.rows();
            (0..rows).step_by(TOGETHER).map(|start| (start..rows.min(start + TOGETHER), 1.0)).unzip()
        };
        let size = self.size();
        let at_once = self.at_once();
        let mut all = vec![0_f32; size * at_once.min(groups.len())];
        for (groups, factors) in groups.chunks(at_once).zip(factors.chunks(at_once)) {
            let all = &mut all[..size * groups.len()];
            self.formed(groups, all);
            add_formed(all, size, 0, factors, weight);
            add_formed(all, size, weight.len(), factors, bias);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bound::total::Total;
    use crate::kernel::Window;
    use proptest::prelude::*;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        /// What is formed anew for the sum is what was formed for the norms.
        #[test]
        fn gradients_that_were_not_kept_add_up_to_the_same(
            sizes in prop::collection::vec(0..4_usize, 1..5), sides in [2..6_usize, 2..6], padding in 0..2_usize, seed: u64,
        ) {
            let bags = Bags::of_sizes(sizes);
            let window = Window { kernel: [2, 2], stride: [1, 2], padding: [padding; 2] };
            let grid = WindowGrid::new([bags.rows(), 2, sides[0], sides[1]], window).unwrap();
            let mut state = seed;
            let mut numbers = |count: usize| -> Vec<f32> {
                let draw = |_| {
                    state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                    (state >> 40) as f32 / (1_u64 << 23) as f32 - 1.0
                };
                (0..count).map(draw).collect()
            };
            let (images, gradient) = (numbers(bags.rows() * grid.image()), numbers(bags.rows() * 3 * grid.pool()));
            let windows = Windows { images: &images, grid: &grid, gradient: &gradient, width: 3 };
            let lengths = windows.lengths(&bags);
            let formed = lengths.formed.expect("they are small").values;
            let factors: Vec<f64> = numbers(bags.len()).iter().map(|&factor| f64::from(factor)).collect();
            let weights = grid.patch() * 3;
            let sum = |add: &dyn Fn(&mut Part<'_>, &mut Part<'_>)| {
                let mut total = Total::new(weights + 3);
                let [mut weight, mut bias] = total.parts([0..weights, weights..weights + 3]).expect("they are apart");
                add(&mut weight, &mut bias);
                total.into_values()
            };
            let kept = sum(&|weight, bias| {
                add_formed(&formed, windows.size(), 0, &factors, weight);
                add_formed(&formed, windows.size(), weights, &factors, bias);
            });
            let anew = sum(&|weight, bias| windows.add(&bags, &factors, true, weight, bias));
            prop_assert_eq!(&kept, &anew);
            let ones = vec![1.0; bags.len()];
            let plain = sum(&|weight, bias| windows.add(&bags, &ones, false, weight, bias));
            let one_by_one = sum(&|weight, bias| windows.add(&bags, &ones, true, weight, bias));
            for (a, b) in plain.iter().zip(&one_by_one) {
                prop_assert!((a - b).abs() <= 1e-4 * (1.0 + b.abs()), "{a} and {b}");
            }
        }
    }
}
