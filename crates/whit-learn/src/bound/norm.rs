//! How long a bag's gradient is, layer by layer, without forming it where that is dearer.
//!
//! For a linear map with inputs aᵢ and gradients gᵢ at its output, a bag's gradient is Σᵢ aᵢgᵢᵀ. Its squared norm is
//! Σᵢⱼ (aᵢ·aⱼ)(gᵢ·gⱼ) (the Gram form: n²(p+q) operations), or that of the matrix itself (n·p·q). The cheaper one is taken. What is formed is
//! kept, since it is small then, and clipping needs it again.

use super::bags::Bags;
use super::tape::{Felt, Felts};
use super::windows::Windows;
use crate::matrix::{Into, Matrix, product};
use rayon::prelude::*;

/// The gradients of one layer's parameters, bag by bag.
pub(crate) struct Lengths {
    /// At least the squared norm of each bag's gradient.
    pub(crate) squared: Vec<f64>,
    /// Σᵢ |aᵢ|·|gᵢ| of each bag: what rounding errors of a sum are proportional to. Nothing where each bag's gradient is formed by itself.
    pub(crate) spread: Option<Vec<f64>>,
    /// The gradients themselves, where they were formed: weight and then bias, bag by bag.
    pub(crate) formed: Option<Vec<f32>>,
}

/// By how much of the squared spread the squared norm of a single row is raised: more than rounding can take away from it. A dot product is
/// taken in runs of [`RUN`] products in f32, in [`LANES`] lanes, and lanes are added in f64, so its error is below (RUN/LANES + 1)·2⁻²⁴ ≈ 2⁻²⁰ of the
/// product of the norms. The product of two such dots is within twice that of the product of all four norms, to first order, and the rest covers the second and
/// that each factor is rounded to f32 once more.
const ROUNDING: f64 = 1.0 / 262_144.0; // 2^-18
/// The same for a bag of several rows, which may cancel each other so that little of the spread is left: their dots are taken in f64, and only the last rounding
/// to f32 is left to cover.
const WIDE_ROUNDING: f64 = 1.0 / 4_194_304.0; // 2^-22
/// So many products are added in f32.
const RUN: usize = 256;
/// In so many sums at once.
const LANES: usize = 16;

/// a·b.
pub(crate) fn dot(a: &[f32], b: &[f32]) -> f64 {
    let run = |(a, b): (&[f32], &[f32])| {
        let mut lanes = [0_f32; LANES];
        let (a, b) = (a.chunks_exact(LANES), b.chunks_exact(LANES));
        let rest: f32 = a.remainder().iter().zip(b.remainder()).map(|(a, b)| a * b).sum();
        for (a, b) in a.zip(b) {
            for lane in 0..LANES {
                lanes[lane] += a[lane] * b[lane];
            }
        }
        f64::from(rest) + lanes.iter().map(|&lane| f64::from(lane)).sum::<f64>()
    };
    a.chunks(RUN).zip(b.chunks(RUN)).map(run).sum()
}

/// a·b in f64.
fn wide_dot(a: &[f32], b: &[f32]) -> f64 {
    let mut lanes = [0_f64; 8];
    let (a, b) = (a.chunks_exact(8), b.chunks_exact(8));
    let rest: f64 = a.remainder().iter().zip(b.remainder()).map(|(&a, &b)| f64::from(a) * f64::from(b)).sum();
    for (a, b) in a.zip(b) {
        for lane in 0..8 {
            lanes[lane] += f64::from(a[lane]) * f64::from(b[lane]);
        }
    }
    rest + lanes.iter().sum::<f64>()
}

/// Whether a bag of so many positions has its gradient formed, rather than its Gram matrix.
fn is_formed(positions: usize, input: usize, output: usize) -> bool {
    // Forming writes its result, too.
    positions > 1 && positions * (input + output) / 2 > input * output
}

impl Lengths {
    /// Of one layer. `rows` is how many rows all bags have; a row has one or more positions.
    pub(crate) fn of(felt: &Felt, bags: &Bags) -> Self {
        let positions = felt.gradient.len() / felt.width.max(1);
        let each = positions / bags.rows().max(1);
        match &felt.map {
            Felts::Linear { input, width } => {
                let longest = bags.ranges().map(|range| range.len()).max().unwrap_or(0) * each;
                if is_formed(longest, *width, felt.width) {
                    formed_linear(input, *width, felt, bags, each)
                } else {
                    gram(input, *width, felt, bags, each)
                }
            }
            Felts::Lookup { tokens } => lookup(tokens, felt, bags, each),
            Felts::Scale { input } => formed_scale(input, felt, bags, each),
            Felts::Windows { images, grid } => Windows::new(images, grid, felt).lengths(bags),
        }
    }
}

fn gram(input: &[f32], p: usize, felt: &Felt, bags: &Bags, each: usize) -> Lengths {
    let (q, biased) = (felt.width, felt.bias.is_some());
    let one = f64::from(u8::from(biased));
    let of = |bag: usize| {
        let range = bags.range(bag);
        let positions = range.start * each..range.end * each;
        let a = |i: usize| &input[i * p..(i + 1) * p];
        let g = |i: usize| &felt.gradient[i * q..(i + 1) * q];
        if positions.len() == 1 {
            let (a, g) = (a(positions.start), g(positions.start));
            let squared = (dot(a, a) + one) * dot(g, g);
            return (squared * (1.0 + ROUNDING), squared.sqrt());
        }
        let (mut squared, mut spread) = (0.0, 0.0);
        for i in positions.clone() {
            let own = (wide_dot(a(i), a(i)) + one) * wide_dot(g(i), g(i));
            squared += own;
            spread += own.sqrt();
            for j in positions.start..i {
                squared += 2.0 * (wide_dot(a(i), a(j)) + one) * wide_dot(g(i), g(j));
            }
        }
        (squared.max(0.0) + WIDE_ROUNDING * spread * spread, spread)
    };
    let (squared, spread) = (0..bags.len()).into_par_iter().with_min_len(16).map(of).unzip();
    Lengths { squared, spread: Some(spread), formed: None }
}

/// Forms the gradient of each bag and takes its norm, which is then exact to the last bits of f64.
fn formed(size: usize, bags: &Bags, form: impl Fn(usize, &mut [f32]) + Sync) -> Lengths {
    let mut all = vec![0_f32; size * bags.len()];
    let norm = |(bag, gradient): (usize, &mut [f32])| {
        form(bag, gradient);
        gradient.iter().map(|&value| f64::from(value) * f64::from(value)).sum::<f64>()
    };
    let squared = all.par_chunks_mut(size.max(1)).enumerate().map(norm).collect();
    Lengths { squared, spread: None, formed: Some(all) }
}

fn formed_linear(input: &[f32], p: usize, felt: &Felt, bags: &Bags, each: usize) -> Lengths {
    let (q, biased) = (felt.width, felt.bias.is_some());
    formed(p * q + if biased { q } else { 0 }, bags, |bag, out| {
        let range = bags.range(bag);
        let (start, end) = (range.start * each, range.end * each);
        let (weight, bias) = out.split_at_mut(p * q);
        let (a, g) = (&input[start * p..end * p], &felt.gradient[start * q..end * q]);
        let n = end - start;
        product(Matrix::new(a, n, p).turned(), Matrix::new(g, n, q), weight, Into::Rows);
        if biased {
            for g in g.chunks_exact(q) {
                bias.iter_mut().zip(g).for_each(|(sum, value)| *sum += value);
            }
        }
    })
}

fn formed_scale(input: &[f32], felt: &Felt, bags: &Bags, each: usize) -> Lengths {
    let q = felt.width;
    formed(2 * q, bags, |bag, out| {
        let range = bags.range(bag);
        let (scale, shift) = out.split_at_mut(q);
        for i in range.start * each..range.end * each {
            let (x, g) = (&input[i * q..(i + 1) * q], &felt.gradient[i * q..(i + 1) * q]);
            for k in 0..q {
                scale[k] += x[k] * g[k];
                shift[k] += g[k];
            }
        }
    })
}

/// The gradient of a table touches the rows of the bag's tokens: the same token twice adds up before it is squared.
fn lookup(tokens: &[u32], felt: &Felt, bags: &Bags, each: usize) -> Lengths {
    let q = felt.width;
    let of = |bag: usize| {
        let range = bags.range(bag);
        let mut order: Vec<usize> = (range.start * each..range.end * each).collect();
        order.sort_by_key(|&i| tokens[i]);
        let (mut squared, mut spread) = (0.0, 0.0);
        let mut sum = vec![0_f64; q];
        for family in order.chunk_by(|&i, &j| tokens[i] == tokens[j]) {
            sum.fill(0.0);
            for &i in family {
                let g = &felt.gradient[i * q..(i + 1) * q];
                spread += wide_dot(g, g).sqrt();
                sum.iter_mut().zip(g).for_each(|(sum, &value)| *sum += f64::from(value));
            }
            squared += sum.iter().map(|value| value * value).sum::<f64>();
        }
        (squared + WIDE_ROUNDING * spread * spread, spread)
    };
    let (squared, spread) = (0..bags.len()).into_par_iter().with_min_len(16).map(of).unzip();
    Lengths { squared, spread: Some(spread), formed: None }
}
