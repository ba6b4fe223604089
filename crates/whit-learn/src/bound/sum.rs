//! Sums of clipped gradients, to a known error.
//!
//! A product of matrices in f32 rounds. How much depends on all rows at once, so it can differ between neighbours and counts as a part of
//! what one unit moves. It is kept below a share of the clip norm that the plan pays for: products are taken over as few rows at a time
//! as that needs, in f64 where those of f32 would be too few, and added up to twice the digits of f64, so that it matters neither how many products there are nor
//! how many batches.
//!
//! The share is divided among batches by their units. A unit's norm is at least 2⁻¹¹ of its spread, so it is kept for all steps of N units through a model of L layers with
//! N·√L at most 2³²; there are not more than 2³² units.

use super::bags::Bags;
use super::formed::{Lengths, add_formed};
use super::total::Part;
use super::windows::Windows;
use crate::layer::{LayerInput, OutputGradient};
use whit_core::matrix::{Matrix, wide_product};

/// Fewer rows than this are not worth a product of their own.
const FEWEST: usize = 24;
/// The distance of one from the next larger f32, halved.
const HALF_STEP: f64 = 1.0 / 16_777_216.0;
/// More rows than this take memory, and are not much faster, in f64.
const MOST_WIDE: usize = 512;

/// Adds a part to the whole, each number on its own.
fn gather<T: Copy + Into<f64> + Sync>(whole: &mut Part<'_>, part: &[T]) {
    whole.by_blocks(|start, mut whole| {
        let part = &part[start..start + whole.len()];
        whole.add(part.iter().map(|&value| value.into()));
    });
}

/// How many rows may be multiplied at once in f32, so that the error of the sum over all of them is at most `allowed`; none where f32 does not do.
///
/// The error of a product over k rows is at most k·2⁻²⁴/(1 − k·2⁻²⁴) times Σᵢ |aᵢ|·|gᵢ| in the Frobenius norm, and each factor·gradient is rounded once before it; that of adding
/// the products up is that of [`Total`](super::total::Total), far below the share that is left for it here. (Higham 2002, section 3.5.)
pub(crate) fn rows_at_once(spread: f64, allowed: f64) -> Option<usize> {
    if spread == 0.0 {
        return Some(usize::MAX);
    }
    let rows = 0.97 * allowed / (spread * HALF_STEP) - 2.0;
    (rows >= FEWEST as f64).then_some(rows.min(65_536.0) as usize)
}

/// The same in f64, which always does: spread over what is allowed is at most 2¹¹·2⁸·N·√L, and so 2⁵¹, for which one row at a time errs by two roundings of 2⁻⁵³.
fn rows_at_once_wide(spread: f64, allowed: f64) -> usize {
    let rows = 0.97 * allowed / (spread * (f64::EPSILON / 2.0)) - 2.0;
    // Without a spread it is no number or infinite, and then as many as there may be.
    if rows < MOST_WIDE as f64 { rows.max(1.0) as usize } else { MOST_WIDE }
}

/// Whether f32 holds all numbers of a product: none overflows, and what vanishes of small ones is not missed.
///
/// Whatever is below 2⁻¹²⁶ may be lost or flushed to zero, of inputs, of factor·gradient and of products. Over n rows of p inputs and q outputs that is at most
/// n·√(pq)·2⁻¹²⁶·(max |a| + max |g| + 2) in the Frobenius norm.
fn fits(input: &[f32], scaled: f64, rows: usize, size: usize, allowed: f64) -> bool {
    let largest = f64::from(input.iter().fold(0_f32, |most, value| most.max(value.abs())));
    let lost = rows as f64 * (size as f64).sqrt() * f64::from(f32::MIN_POSITIVE) * (largest + scaled + 2.0);
    let most = rows as f64 * largest.max(1.0) * scaled;
    most < 2_f64.powi(120) && lost <= 0.01 * allowed
}

/// Adds Σ over bags of factor·gradient of one layer to the sums of its weight and its bias.
///
/// `allowed` is the largest Euclidean error that the sum may have from rounding.
pub(crate) fn add(
    output: &OutputGradient,
    lengths: &Lengths,
    bags: &Bags,
    factors: &[f64],
    allowed: f64,
    weight: &mut Part<'_>,
    bias: &mut Part<'_>,
) {
    let mut factors = factors.to_vec();
    if let Some(formed) = &lengths.formed {
        let size = weight.len() + bias.len();
        // Nothing is left to add of them.
        let own: Vec<f64> = formed.bags.iter().map(|&bag| std::mem::take(&mut factors[bag])).collect();
        add_formed(&formed.values, size, 0, &own, weight);
        add_formed(&formed.values, size, weight.len(), &own, bias);
        if own.len() == factors.len() {
            return;
        }
    }
    let factors = &factors[..];
    let q = output.width;
    let positions = output.gradient.len() / q.max(1);
    let each = positions / bags.rows().max(1);
    let spread: f64 = lengths.spread.iter().flatten().zip(factors).map(|(spread, factor)| spread * factor.abs()).sum();
    let of_position: Vec<f64> = bags
        .ranges()
        .zip(factors)
        .flat_map(|(range, &factor)| std::iter::repeat_n(factor, range.len() * each))
        .collect();
    match &output.input {
        LayerInput::Lookup { tokens } => {
            for ((&token, g), factor) in tokens.iter().zip(output.gradient.chunks_exact(q)).zip(&of_position) {
                let mut row = weight.at(token as usize * q..(token as usize + 1) * q);
                row.add(g.iter().map(|&value| factor * f64::from(value)));
            }
        }
        LayerInput::Linear { input, width: p } => {
            let p = *p;
            for (g, factor) in output.gradient.chunks_exact(q).zip(&of_position) {
                // Without a bias there is nothing to add to.
                bias.add(g.iter().map(|&value| factor * f64::from(value)));
            }
            let scaled = output.gradient.chunks_exact(q).zip(&of_position).fold(0.0_f64, |most, (g, factor)| {
                most.max(f64::from(g.iter().fold(0_f32, |most, value| most.max(value.abs()))) * factor.abs())
            });
            let narrow = rows_at_once(spread, allowed).filter(|_| fits(input, scaled, positions, p * q, allowed));
            if let Some(rows) = narrow {
                let rows = rows.min(positions);
                let mut scaled = vec![0_f32; rows * q];
                let mut part = vec![0_f32; p * q];
                for start in (0..positions).step_by(rows.max(1)) {
                    let n = rows.min(positions - start);
                    let scaled = &mut scaled[..n * q];
                    let from = output.gradient[start * q..(start + n) * q].chunks_exact(q);
                    for ((out, g), factor) in scaled.chunks_exact_mut(q).zip(from).zip(&of_position[start..]) {
                        out.iter_mut().zip(g).for_each(|(out, &value)| *out = (factor * f64::from(value)) as f32);
                    }
                    let a = Matrix::new(&input[start * p..(start + n) * p], n, p);
                    wide_product(a.turned(), Matrix::new(scaled, n, q), &mut part);
                    gather(weight, &part);
                }
            } else {
                // In blocks, so that memory stays where it is, and few enough rows in each.
                let rows = rows_at_once_wide(spread, allowed);
                let mut part = vec![0_f64; p * q];
                for start in (0..positions).step_by(rows) {
                    let n = rows.min(positions - start);
                    let a: Vec<f64> = input[start * p..(start + n) * p].iter().map(|&value| f64::from(value)).collect();
                    let g = output.gradient[start * q..(start + n) * q].chunks_exact(q).zip(&of_position[start..]);
                    let g: Vec<f64> =
                        g.flat_map(|(g, &factor)| g.iter().map(move |&v| factor * f64::from(v))).collect();
                    wide_product(Matrix::new(&a, n, p).turned(), Matrix::new(&g, n, q), &mut part);
                    gather(weight, &part);
                }
            }
        }
        LayerInput::Windows { images, grid } => {
            let clipped = !lengths.squared.is_empty();
            Windows::new(images, grid, output).add(bags, factors, clipped, weight, bias);
        }
        // Always formed.
        LayerInput::Scale { .. } => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bound::total::Total;
    use crate::plan::SUMMATION;

    #[test]
    fn formed_gradients_of_any_number_of_batches_err_by_one_rounding_each() {
        // 2¹⁸ units in batches of 64, each a third of the clip norm, as a multiple of 2⁻⁶⁰.
        let (formed, factors) = ([1.0_f32; 64], [1.0 / 3.0; 64]);
        let (mut total, mut plain, batches) = (Total::new(1), 0.0_f64, 1 << 12);
        for _ in 0..batches {
            add_formed(&formed, 1, 0, &factors, &mut total.whole());
            for factor in factors {
                plain += factor;
            }
        }
        let steps = |value: f64| (value * 2_f64.powi(60)) as i128;
        let (units, third) = (64 * i128::from(batches), steps(1.0 / 3.0));
        let off = |found: f64| (steps(found) - units * third).unsigned_abs() as f64;
        let rounding = (units * third) as f64 * f64::EPSILON / 2.0;
        assert!(off(total.values()[0]) <= 2.0 * rounding, "{} roundings", off(total.values()[0]) / rounding);
        assert!(off(plain) > 512.0 * rounding, "a plain sum has {} roundings", off(plain) / rounding);
    }

    #[test]
    fn so_few_rows_are_multiplied_at_once_that_the_error_stays_within_its_share() {
        // What the worst units of a step may be: norms of 2⁻¹¹ of their spread, each with its share of what all of them may have.
        for units in [1.0, 1000.0, 2_f64.powi(24), 2_f64.powi(31), 2_f64.powi(32)] {
            let (spread, allowed) = (2_f64.powi(11), SUMMATION / 2.0 / units);
            let rows = rows_at_once_wide(spread, allowed);
            let error = (rows as f64 + 1.0) * f64::EPSILON / 2.0 * spread;
            assert!(rows >= 1 && error <= allowed, "{units} units, {rows} rows: {error:e} beyond {allowed:e}");
        }
        // Blocks of 512 rows are too many for the last of them.
        assert!(513.0 * f64::EPSILON / 2.0 * 2_f64.powi(11) > SUMMATION / 2.0 / 2_f64.powi(32));
        assert_eq!(rows_at_once_wide(0.0, 0.0), MOST_WIDE);
        assert_eq!(rows_at_once_wide(0.0, 1.0), MOST_WIDE);
        assert_eq!(rows_at_once_wide(1.0, f64::INFINITY), MOST_WIDE);
    }
}
