//! How long a bag's gradient is, layer by layer, without forming it where that is dearer.
//!
//! For a linear map with inputs aᵢ and gradients gᵢ at its output, a bag's gradient is Σᵢ aᵢgᵢᵀ. Its squared norm is
//! Σᵢⱼ (aᵢ·aⱼ)(gᵢ·gⱼ) (the Gram form: n²(p+q) operations), or that of the matrix itself (n·p·q). The cheaper one is taken, bag by bag: what is formed in f32
//! rounds, and may overflow, and that must follow from the bag alone and not from who else was drawn. What is formed is kept, since it is small then, and clipping
//! needs it again.

use super::bags::Bags;
use super::formed::{Formed, Lengths, dot, squared_up};
use super::windows::Windows;
use crate::layer::{LayerInput, OutputGradient};
use rayon::prelude::*;
use whit_core::matrix::{Destination, Matrix, product};

/// By how much of the squared spread a squared norm is raised, at least. Rows of a bag may cancel each other, so that little of the spread is left: this keeps a
/// norm at 2⁻¹¹ of it or more, and so what clipped sums round away within what is allowed for it.
const LEAST_RAISE: f64 = 1.0 / 4_194_304.0; // 2^-22

/// The same for dots of so many products, and so many positions: more than rounding can take away from a norm.
///
/// Products of two f32 are exact in f64, from the smallest (2⁻²⁹⁸) to the largest (2²⁵⁶), and so is their range: 2⁵⁰ products of four of them neither
/// vanish nor overflow. A dot of n products errs by at most (n/8 + 16)·2⁻⁵³ of the product of both norms, the product of two dots by both errors, and a sum
/// over m² of them by m²·2⁻⁵³ of the squared spread besides. (Higham 2002, section 3.1.)
fn raise(products: usize, positions: usize) -> f64 {
    LEAST_RAISE + (products as f64 + (positions as f64).powi(2) + 64.0) * f64::EPSILON
}

/// Whether a bag of so many positions has its gradient formed, rather than its Gram matrix.
fn is_formed(positions: usize, input: usize, output: usize) -> bool {
    // Forming writes its result, too.
    positions > 1 && positions * (input + output) / 2 > input * output
}

impl Lengths {
    /// Of one layer. `rows` is how many rows all bags have; a row has one or more positions.
    pub(crate) fn of(output: &OutputGradient, bags: &Bags) -> Self {
        let positions = output.gradient.len() / output.width.max(1);
        let each = positions / bags.rows().max(1);
        match &output.input {
            LayerInput::Linear { input, width } => {
                let is_formed = |range: std::ops::Range<usize>| is_formed(range.len() * each, *width, output.width);
                let all = bags.ranges().enumerate();
                let chosen: Vec<usize> =
                    all.filter(|(_, range)| is_formed(range.clone())).map(|(bag, _)| bag).collect();
                if chosen.len() == bags.len() {
                    return formed_linear(input, *width, output, bags, chosen, each);
                }
                let mut lengths = gram(input, *width, output, bags, &chosen, each);
                if !chosen.is_empty() {
                    let formed = formed_linear(input, *width, output, bags, chosen.clone(), each);
                    for (bag, squared) in chosen.into_iter().zip(formed.squared) {
                        lengths.squared[bag] = squared;
                    }
                    lengths.formed = formed.formed;
                }
                lengths
            }
            LayerInput::Lookup { tokens } => lookup(tokens, output, bags, each),
            LayerInput::Scale { input } => formed_scale(input, output, bags, each),
            LayerInput::Windows { images, grid } => Windows::new(images, grid, output).lengths(bags),
        }
    }
}

fn gram(input: &[f32], p: usize, output: &OutputGradient, bags: &Bags, formed: &[usize], each: usize) -> Lengths {
    let (q, biased) = (output.width, output.bias.is_some());
    let one = f64::from(u8::from(biased));
    let of = |bag: usize| {
        if formed.binary_search(&bag).is_ok() {
            return (0.0, 0.0);
        }
        let range = bags.range(bag);
        let positions = range.start * each..range.end * each;
        let a = |i: usize| &input[i * p..(i + 1) * p];
        let g = |i: usize| &output.gradient[i * q..(i + 1) * q];
        let raise = raise(p + q, positions.len());
        let (mut squared, mut spread) = (0.0_f64, 0.0);
        for i in positions.clone() {
            let own = (dot(a(i), a(i)) + one) * dot(g(i), g(i));
            squared += own;
            spread += own.sqrt();
            for j in positions.start..i {
                squared += 2.0 * (dot(a(i), a(j)) + one) * dot(g(i), g(j));
            }
        }
        (squared.max(0.0) + raise * spread * spread, spread)
    };
    let (squared, spread) = (0..bags.len()).into_par_iter().with_min_len(16).map(of).unzip();
    Lengths { squared, spread: Some(spread), formed: None }
}

/// Forms the gradient of each bag and takes its norm. What is formed in f32 is what is added up later: where it vanished it adds nothing, and where it
/// overflowed the norm is not finite, which the caller looks for.
fn formed(size: usize, bags: Vec<usize>, form: impl Fn(usize, &mut [f32]) + Sync) -> Lengths {
    let mut values = vec![0_f32; size * bags.len()];
    let norm = |(gradient, &bag): (&mut [f32], &usize)| {
        form(bag, gradient);
        squared_up(gradient)
    };
    let squared = values.par_chunks_mut(size.max(1)).zip(&bags).map(norm).collect();
    Lengths { squared, spread: None, formed: Some(Formed { bags, values }) }
}

fn formed_linear(
    input: &[f32],
    p: usize,
    output: &OutputGradient,
    bags: &Bags,
    chosen: Vec<usize>,
    each: usize,
) -> Lengths {
    let (q, biased) = (output.width, output.bias.is_some());
    formed(p * q + if biased { q } else { 0 }, chosen, |bag, out| {
        let range = bags.range(bag);
        let (start, end) = (range.start * each, range.end * each);
        let (weight, bias) = out.split_at_mut(p * q);
        let (a, g) = (&input[start * p..end * p], &output.gradient[start * q..end * q]);
        let n = end - start;
        product(Matrix::new(a, n, p).turned(), Matrix::new(g, n, q), weight, Destination::Rows);
        if biased {
            for g in g.chunks_exact(q) {
                bias.iter_mut().zip(g).for_each(|(sum, value)| *sum += value);
            }
        }
    })
}

fn formed_scale(input: &[f32], output: &OutputGradient, bags: &Bags, each: usize) -> Lengths {
    let q = output.width;
    formed(2 * q, (0..bags.len()).collect(), |bag, out| {
        let range = bags.range(bag);
        let (scale, shift) = out.split_at_mut(q);
        for i in range.start * each..range.end * each {
            let (x, g) = (&input[i * q..(i + 1) * q], &output.gradient[i * q..(i + 1) * q]);
            for k in 0..q {
                scale[k] += x[k] * g[k];
                shift[k] += g[k];
            }
        }
    })
}

/// The gradient of a table touches the rows of the bag's tokens: the same token twice adds up before it is squared.
fn lookup(tokens: &[u32], output: &OutputGradient, bags: &Bags, each: usize) -> Lengths {
    let q = output.width;
    let of = |bag: usize| {
        let range = bags.range(bag);
        let raise = raise(q, range.len() * each);
        let mut order: Vec<usize> = (range.start * each..range.end * each).collect();
        order.sort_by_key(|&i| tokens[i]);
        let (mut squared, mut spread) = (0.0, 0.0);
        let mut sum = vec![0_f64; q];
        for family in order.chunk_by(|&i, &j| tokens[i] == tokens[j]) {
            sum.fill(0.0);
            for &i in family {
                let g = &output.gradient[i * q..(i + 1) * q];
                spread += dot(g, g).sqrt();
                sum.iter_mut().zip(g).for_each(|(sum, &value)| *sum += f64::from(value));
            }
            squared += sum.iter().map(|value| value * value).sum::<f64>();
        }
        (squared + raise * spread * spread, spread)
    };
    let (squared, spread) = (0..bags.len()).into_par_iter().with_min_len(16).map(of).unzip();
    Lengths { squared, spread: Some(spread), formed: None }
}
