//! Quantiles in `f64` with a certified error: −ln V for a uniform V, and the upper normal quantile.
//!
//! Both take the first 63 bits of a uniform real. The position of the leading one picks a binade, the next bits a
//! cell of it, the rest a place t in [−1, 1] within the cell, and a Taylor polynomial of degree 7 does the rest. All
//! bounds below are *certified*: the tests recompute every cell in ball arithmetic, with the remainder of Taylor's
//! theorem and the rounding of Horner's rule, and find the total below the constants that the samplers rely on.

use std::sync::OnceLock;

/// Bits that pick a cell within its binade.
const CELL_BITS: u32 = 5;
const CELLS: usize = 1 << CELL_BITS;
/// A Taylor polynomial of degree 7: eight coefficients, one cache line.
type TaylorCell = [f64; 8];

/// Binades of the normal table; what lies further out (about once in 2^32 draws) is settled in ball arithmetic.
pub(crate) const NORMAL_BINADES: usize = 32;
/// Binades for which the logarithm is trusted to `f64`.
pub(crate) const LOG_BINADES: usize = 40;

/// |polynomial − quantile| in every cell of the normal table, for the real that the known bits stand for.
pub(crate) const NORMAL_ERROR: f64 = 1.0 / (1_u64 << 47) as f64;
/// |polynomial + ln m| in every cell of the logarithm's table.
pub(crate) const LOG_ERROR: f64 = 1.0 / (1_u64 << 50) as f64;

/// Splits 63 known bits into binade, cell, and place within the cell. `bits` must not be 0.
#[inline]
fn place(bits: u64) -> (usize, usize, f64) {
    let binade = (bits << 1).leading_zeros(); // bit 62 is the first
    let rest = bits << 1 << binade << 1; // the leading one is gone
    let cell = rest >> (64 - CELL_BITS);
    let within = (rest << CELL_BITS) ^ (1 << 63); // as a signed number: −2^63 at the left end of the cell
    (binade as usize, cell as usize, within as i64 as f64 * (1.0 / (1_u64 << 63) as f64))
}

/// Horner's rule, always in this order: the certificate is about these very operations.
#[inline]
fn horner(c: &TaylorCell, t: f64) -> f64 {
    let mut sum = c[7];
    for k in (0..7).rev() {
        sum = sum * t + c[k];
    }
    sum
}

/// −ln of the uniform real V with these first 63 bits, its binade (V is in [2^(−1−binade), 2^−binade)).
///
/// The error is at most [`log_error`]: the real beyond the known bits is counted in.
#[inline]
pub(crate) fn minus_ln(table: &[TaylorCell; CELLS], bits: u64) -> (f64, usize) {
    let (binade, cell, t) = place(bits);
    (horner(&table[cell], t) + binade as f64 * std::f64::consts::LN_2, binade)
}

/// A bound on the error of [`minus_ln`] in this binade: the table, the 2^-63 that are not known yet (−ln has slope
/// 1/V ≤ 2^(binade + 1)), and rounding: `binade · LN_2` errs by at most binade·2^-54 + 2^-49 and the sum by 2^-49.
pub(crate) fn log_error(binade: usize) -> f64 {
    LOG_ERROR + 2f64.powi(binade as i32 - 62) + 2f64.powi(-47)
}

/// The upper normal quantile z with Q(z) = V/2, for the uniform real V with these first 63 bits. `None` in the far tail.
///
/// The error is at most [`normal_error`].
#[inline]
pub(crate) fn normal(table: &[[TaylorCell; CELLS]; NORMAL_BINADES], bits: u64) -> Option<(f64, usize)> {
    let (binade, cell, t) = place(bits | 1); // a zero would have no leading one; it is far tail either way
    Some((horner(&table.get(binade)?[cell], t), binade))
}

/// A bound on the error of [`normal`] in this binade. With v = V/2 in [2^(−2−binade), …) the 2^-64 that are not known
/// move z by at most 2^-64/φ(z) ≤ 2^-64·√(π/2)/Q(z) ≤ 2^(binade − 61), since Q(z) ≤ √(π/2)·φ(z) for z ≥ 0; and the
/// same once more for the lowest bit that [`normal`] sets.
pub(crate) fn normal_error(binade: usize) -> f64 {
    NORMAL_ERROR + 2f64.powi(binade as i32 - 60)
}

/// The middle of a cell and half its width, for V in [1, 2)·2^(−1−binade), both exact.
fn middle(cell: usize) -> (f64, f64) {
    let width = 1.0 / CELLS as f64;
    (1.0 + (cell as f64 + 0.5) * width, width / 2.0)
}

/// The logarithm's table: Taylor polynomials of −ln(m/2), m in [1, 2), in t = (m − middle)/half width.
pub(crate) fn log_table() -> &'static [TaylorCell; CELLS] {
    static TABLE: OnceLock<[TaylorCell; CELLS]> = OnceLock::new();
    TABLE.get_or_init(|| {
        std::array::from_fn(|cell| {
            let (m, half) = middle(cell);
            let u = half / m;
            let mut coefficients = [0.0; 8];
            coefficients[0] = -libm::log(m / 2.0);
            let mut power = 1.0;
            for (k, c) in coefficients.iter_mut().enumerate().skip(1) {
                power *= -u;
                *c = power / k as f64;
            }
            coefficients
        })
    })
}

/// The normal table: Taylor polynomials of the upper quantile z(v), v = (m/4)·2^-binade, m in [1, 2).
///
/// With w = 1/φ(z): z⁽ⁿ⁾(v) = (−w)ⁿ·Pₙ(z), where P₁ = 1 and Pₙ₊₁ = Pₙ′ + n·z·Pₙ. All coefficients of Pₙ are
/// non-negative, so every derivative is largest in size at the cell's smaller end, which bounds the remainder.
pub(crate) fn normal_table() -> &'static [[TaylorCell; CELLS]; NORMAL_BINADES] {
    static TABLE: OnceLock<Vec<[TaylorCell; CELLS]>> = OnceLock::new();
    let table = TABLE.get_or_init(|| {
        let mut table = vec![[[0.0; 8]; CELLS]; NORMAL_BINADES];
        for (binade, cells) in table.iter_mut().enumerate() {
            for (cell, coefficients) in cells.iter_mut().enumerate() {
                let (m, half) = middle(cell);
                let scale = 2f64.powi(-2 - binade as i32);
                *coefficients = normal_cell(upper_quantile(m * scale), half * scale);
            }
        }
        table
    });
    table.as_slice().try_into().expect("the table has as many binades as it was made with")
}

fn normal_cell(z: f64, half: f64) -> TaylorCell {
    let step = -half / density(z); // −w·h
    let mut coefficients = [z, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0];
    let mut polynomial = [1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0]; // P₁, lowest power first
    let mut power = 1.0;
    for (n, coefficient) in coefficients.iter_mut().enumerate().skip(1) {
        power *= step / n as f64; // (−w h)ⁿ/n!
        *coefficient = power * polynomial.iter().rev().fold(0.0, |sum, c| sum * z + c);
        let mut next = [0.0; 8];
        for k in 0..7 {
            next[k] += (k + 1) as f64 * polynomial[k + 1];
            next[k + 1] += n as f64 * polynomial[k];
        }
        polynomial = next;
    }
    coefficients
}

fn density(z: f64) -> f64 {
    libm::exp(-z * z / 2.0) / (2.0 * std::f64::consts::PI).sqrt()
}

/// Newton's iteration on Q(z) = v; for v ≤ 1/2 it rises to the root from the left of it, where Q is convex.
fn upper_quantile(v: f64) -> f64 {
    let mut z = 0.0;
    for _ in 0..60 {
        let step = (libm::erfc(z * std::f64::consts::FRAC_1_SQRT_2) / 2.0 - v) / density(z);
        z += step;
        if step.abs() < 1e-17 {
            break;
        }
    }
    z
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ball::{self, Ball};
    use dashu_int::IBig;

    /// An f64 as a fraction of integers.
    fn exact(value: f64) -> (IBig, IBig) {
        let (mut value, mut shift) = (value, 0_usize);
        while value != value.trunc() {
            value *= 2.0;
            shift += 1;
        }
        (IBig::from(value as i128), IBig::ONE << shift)
    }

    fn ball(value: f64, precision: usize) -> Ball {
        let (n, d) = exact(value);
        Ball::ratio(&n, &d, precision)
    }

    /// max |ball|, as a float, safely above.
    fn size(ball: &Ball) -> f64 {
        let largest = ball.high().max(-ball.low());
        Ball::between(&largest, &largest, ball.precision()).to_f64() * (1.0 + 1e-12)
    }

    /// Rounding of Horner's rule on |t| ≤ 1 (Higham, Accuracy and Stability, §5.1): γ₁₆·Σ|cₖ|, plus the rounding of t.
    fn horner_rounding(c: &TaylorCell) -> f64 {
        let (gamma, tail) = (16.0 * 2f64.powi(-53) * 1.001, c[1..].iter().map(|c| c.abs()).sum::<f64>());
        gamma * tail + 2.0 * 2f64.powi(-53) * (c[0].abs() + tail) + 8.0 * 2f64.powi(-53) * tail
    }

    #[test]
    fn every_cell_of_the_logarithm_is_certified() {
        const P: usize = 160;
        let mut worst: f64 = 0.0;
        for (cell, c) in log_table().iter().enumerate() {
            let (m, half) = middle(cell);
            let ((mn, md), u) = (exact(m), half / (m - half));
            let (hn, hd) = exact(half);
            let mut error = size(&ball(c[0], P).minus(&ball::minus_ln(&mn, &(&md * IBig::from(2)), P)));
            let ratio = Ball::ratio(&(hn * &md), &(hd * &mn), P); // h/m
            let mut power = Ball::integer(&IBig::ONE, P);
            for (k, &c) in c.iter().enumerate().skip(1) {
                power = power.times(&ratio).times(&Ball::integer(&IBig::from(-1), P));
                error += size(&ball(c, P).minus(&power.over(k as u64)));
            }
            // |f⁽⁸⁾|h⁸/8! at the smaller end, where it is largest: (h/(m − h))⁸/8.
            error += u.powi(8) / 8.0 * (1.0 + 1e-9) + horner_rounding(c);
            worst = worst.max(error);
        }
        assert!(worst < LOG_ERROR, "{worst:e} is not below {LOG_ERROR:e}");
    }

    #[test]
    fn every_cell_of_the_normal_quantile_is_certified() {
        const P: usize = 200;
        let mut worst: f64 = 0.0;
        for (binade, cells) in normal_table().iter().enumerate() {
            for (cell, c) in cells.iter().enumerate() {
                let (m, half) = middle(cell);
                let scale = 2f64.powi(-2 - binade as i32);
                let (v, h) = (m * scale, half * scale);
                // The centre: Q(z ± e) bracket v, so the true quantile is within e of z.
                let e = 2f64.powi(-49);
                let at = |z: f64| {
                    let (n, d) = exact(z.max(0.0));
                    ball::normal_tail(&n, &d, P)
                };
                let target = ball(v, P);
                assert!(at(c[0] + e).high() < target.low(), "binade {binade}, cell {cell}");
                assert!(c[0] - e <= 0.0 || at(c[0] - e).low() > target.high(), "binade {binade}, cell {cell}");
                // The remainder: the eighth derivative at the smaller end of the cell.
                let left = normal_cell_at_degree_eight(upper_quantile(v - h) + 1e-12, h);
                // The other coefficients, for a centre that is off by e: d/dz of wᵏ·Pₖ is wᵏ·Pₖ₊₁, so coefficient k
                // moves by e·(k + 1)·|cₖ₊₁|/|c₁|. Their arithmetic: 32 roundings a power and 16 for Pₖ, so 2^-45.
                let next = c[2..].iter().copied().chain([left]);
                let moved: f64 = next.zip(2..).map(|(c, k)| e * f64::from(k) * c.abs()).sum::<f64>() / c[1].abs();
                let rounded: f64 = c[1..].iter().map(|c| c.abs() * 2f64.powi(-45)).sum();
                worst = worst.max(e + moved + rounded + left + horner_rounding(c));
            }
        }
        assert!(worst < NORMAL_ERROR, "{worst:e} is not below {NORMAL_ERROR:e}");
    }

    /// |z⁽⁸⁾|·h⁸/8! with a per cent of head-room, evaluated at a z not below the true one.
    fn normal_cell_at_degree_eight(z: f64, half: f64) -> f64 {
        let mut polynomial = vec![1.0];
        for n in 1..8 {
            let mut next = vec![0.0; polynomial.len() + 1];
            for (k, &c) in polynomial.iter().enumerate() {
                if k > 0 {
                    next[k - 1] += k as f64 * c;
                }
                next[k + 1] += f64::from(n) * c;
            }
            polynomial = next;
        }
        let value = polynomial.iter().rev().fold(0.0, |sum, c| sum * z + c);
        (half / density(z)).powi(8) * value / 40320.0 * 1.01
    }

    /// The coefficients agree with differences of the quantile itself, computed without the recursion.
    #[test]
    fn coefficients_are_those_of_the_quantile() {
        for (binade, cell) in [(0, 0), (0, 31), (3, 7), (12, 16), (31, 31)] {
            let c = &normal_table()[binade][cell];
            let (m, half) = middle(cell);
            let scale = 2f64.powi(-2 - binade as i32);
            for t in [-1.0, -0.5, 0.3, 1.0] {
                let z = upper_quantile((m + t * half) * scale);
                assert!((horner(c, t) - z).abs() < 4e-15, "binade {binade}, cell {cell}, t {t}");
            }
        }
    }
}
