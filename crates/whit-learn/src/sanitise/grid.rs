//! The lattice of a step: how fine it is, and how sums are put on it.

use super::SanitiserError;
use crate::plan::SNAPPING;
use whit_core::mechanism::additive::add_to;
use whit_noise::{Overflow, Ratio};

/// Sums stay within so many lattice steps: there a float still tells halves apart, and noise has room in 64 bits.
const REACH: f64 = (1_u64 << 51) as f64;

/// 1.5 · 2^52. Between 2^52 and 2^53 floats are the integers, so adding this rounds to the nearest one, halves to even.
const ROUNDER: f64 = 6_755_399_441_055_744.0;

/// The multiples of a power of two, fine enough for d coordinates and clip norm C.
///
/// The step is the largest power of two that is at most C · 2^-20 and of which √d are at most C · 2^-10. Up to d = 2^20 the
/// first condition decides, beyond it the second; the step is then never below C · 2^-27 for d up to 2^32.
///
/// # Why
/// Rounding moves each coordinate by at most half a step, so a sum by at most √d·step/2 ≤ C · 2^-11 in Euclidean norm, and
/// two sums apart by at most C · 2^-10, which is `SNAPPING` clip norms. Scaling by a power of two and rounding are exact.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Grid {
    step: f64,
    /// One over the step, exactly.
    inverse: f64,
}

impl Grid {
    /// The lattice for so many coordinates, of which there is at least one, and a clip norm between 2^-100 and 2^100.
    pub(super) fn new(clip: f64, coordinates: usize) -> Self {
        let power_below = f64::from_bits(clip.to_bits() & (0x7ff << 52)); // the float without its fraction
        let mut step = power_below * 2f64.powi(-20);
        // d·step² ≤ C²·SNAPPING²: the left side is exact, and the fused sign of the difference too.
        while clip.mul_add(clip, -(coordinates as f64) * (step / SNAPPING).powi(2)) < 0.0 {
            step /= 2.0;
        }
        Self { step, inverse: 1.0 / step }
    }

    /// The distance of two neighbouring points along an axis.
    pub fn step(&self) -> f64 {
        self.step
    }

    /// A real that is a float, in steps, exactly; nothing where it does not fit.
    pub(super) fn in_steps(&self, noise: f64, clip: f64) -> Option<Ratio> {
        let clip = Ratio::from_f64_down(clip * self.inverse).ok()?; // 53 bits, down to 2^-33: exact
        let noise = Ratio::from_f64_down(noise).ok()?; // 53 bits, down to 2^-83: exact
        clip.times(&noise)
    }

    /// Refuses what no clipped sum is, before anything is drawn.
    pub(super) fn check(sum: &[f64]) -> Result<(), SanitiserError> {
        // Without a branch in the loop, so that it goes by vectors.
        let fits = sum.iter().fold(true, |fits, value| fits & value.is_finite());
        if fits { Ok(()) } else { Err(SanitiserError::NotFinite) }
    }

    /// Adds the nearest points to `noise`; the sum was checked before. A coordinate beyond the lattice stays at its end, which moves no two sums further apart.
    pub(super) fn add_to(&self, noise: &mut [i64], sum: &[f64]) -> Result<(), Overflow> {
        add_to(noise, sum.iter().map(|&value| self.snap(value)))
    }

    /// The nearest point to a value, of those within 2^51 steps.
    #[inline]
    fn snap(self, value: f64) -> i64 {
        // The bits of floats between 2^52 and 2^53 count up by one from integer to integer.
        ((value * self.inverse).clamp(-REACH, REACH) + ROUNDER).to_bits() as i64 - ROUNDER.to_bits() as i64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_step_is_the_largest_that_keeps_both_conditions() {
        for clip in [1.0, 0.999, 1.5, 3.0e-7, 12_345.6, 2f64.powi(100), 2f64.powi(-100)] {
            for d in [1, 2, 1000, 1 << 20, (1 << 20) + 1, 1 << 21, 7_654_321, 1_usize << 32] {
                let step = Grid::new(clip, d).step();
                let keeps = |step: f64| {
                    step <= clip * 2f64.powi(-20) && (d as f64).sqrt() * step <= clip * SNAPPING * (1.0 + 1e-15)
                };
                assert!(keeps(step) && !keeps(2.0 * step), "C {clip}, d {d}: {step}");
                assert!(step >= clip * 2f64.powi(-27));
                assert_eq!(step.log2().fract(), 0.0);
            }
        }
    }

    /// The noise in steps is the exact product, for floats with all their bits in use.
    #[test]
    fn noise_in_steps_is_exact() {
        for (noise, clip) in [(1.1, 0.3), (std::f64::consts::PI, std::f64::consts::E), (1e-9, 1e30), (1e9, 1e-30)] {
            let grid = Grid::new(clip, 1 << 32);
            let exact = grid.in_steps(noise, clip).unwrap();
            let product = noise * clip * grid.inverse;
            let lost = noise.mul_add(clip, -(noise * clip)) * grid.inverse; // what the product rounded away
            let rest = exact.numerator() as f64 / exact.denominator() as f64 - product;
            assert!((rest - lost).abs() <= product * 2f64.powi(-51), "{rest} {lost}");
            assert!(exact.denominator().is_power_of_two());
        }
    }

    proptest! {
        #[test]
        fn a_value_moves_by_at_most_half_a_step(value in -1e6..1e6_f64, clip in 1e-3..1e3_f64, d in 1_usize..1 << 24) {
            let grid = Grid::new(clip, d);
            let point = grid.snap(value);
            // Both are exact: the scaling is by a power of two, and the two lie close together.
            let moved = (value * grid.inverse - point as f64).abs();
            prop_assert!(moved <= 0.5, "{value} moved by {moved} steps");
            prop_assert!(Grid::check(&[value]).is_ok());
        }
    }

    #[test]
    fn halves_ends_and_signs_are_rounded_to_the_nearest_point() {
        let grid = Grid { step: 1.0, inverse: 1.0 };
        let cases = [(0.0, 0), (-0.0, 0), (0.5, 0), (1.5, 2), (-0.5, 0), (-2.5, -2), (0.499_999_999_999_999_94, 0)];
        for (value, point) in cases {
            assert_eq!(grid.snap(value), point, "{value}");
        }
        let last = REACH - 0.5;
        assert!((grid.snap(last) as f64 - last).abs() <= 0.5 && (grid.snap(-last) as f64 + last).abs() <= 0.5);
        let end = REACH as i64;
        assert_eq!([REACH, 2.0 * REACH, 1e300].map(|far| grid.snap(far)), [end; 3]);
        assert_eq!([-REACH, -2.0 * REACH, -1e300].map(|far| grid.snap(far)), [-end; 3]);
        let mut noise = [i64::MAX];
        assert_eq!(grid.add_to(&mut noise, &[1.0]), Err(Overflow));
        let mut noise = [i64::MIN];
        assert_eq!(grid.add_to(&mut noise, &[1.0]), Ok(()));
    }
}
