//! Reals to integers and back: the only place where a statistic's value is rounded.
//!
//! Quantise each contribution, sum exactly in integers, add integer noise, scale back. Integer sums do not depend on
//! their order, so the sensitivity of a sum is the true one, and noise never touches a float.

use whit_noise::Ratio;

/// A number that has no place on a lattice.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum LatticeError {
    /// Not a number: it has no nearest point.
    #[error("a value is NaN; drop such rows or give them a stated value before they are summed")]
    NotANumber,
    /// Farther from zero than 64 bits reach.
    #[error("a value or a sum does not fit into 64 bits of lattice steps; use a coarser step or narrower bounds")]
    Overflow,
    /// The step cannot be used.
    #[error("a lattice step of {step} is not usable: expected more than 0, with numerator and denominator below 2^62")]
    Step {
        /// The step as text.
        step: String,
    },
    /// The lower end lies above the upper one, or one of them is NaN.
    #[error("the range {low}..{high} is empty; its lower end must not be above its upper end")]
    Range {
        /// The lower end.
        low: f64,
        /// The upper end.
        high: f64,
    },
}

/// Numerators and denominators of steps stay below this, so that every product fits into 128 bits.
const LIMIT: u128 = 1 << 62;

/// All whole multiples of a step.
///
/// ```
/// use whit_core::Lattice;
/// let cents = Lattice::new("0.01".parse()?)?;
/// let bills = [12.34, 0.5, f64::INFINITY].map(|bill| cents.quantise_between(bill, 0.0, 100.0));
/// let total = cents.sum(bills.into_iter().collect::<Result<Vec<_>, _>>()?)?;
/// assert_eq!((total, cents.value(total)), (11_284, 112.84));
/// assert!(cents.quantise(f64::NAN).is_err());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lattice {
    step: Ratio,
}

impl Lattice {
    /// The integers themselves.
    ///
    /// ```
    /// use whit_core::Lattice;
    /// assert_eq!(Lattice::INTEGERS.quantise(2.5), Ok(3));
    /// ```
    pub const INTEGERS: Self = Self { step: Ratio::ONE };

    /// The multiples of `step`.
    pub fn new(step: Ratio) -> Result<Self, LatticeError> {
        if step.is_zero() || step.numerator() >= LIMIT || step.denominator() >= LIMIT {
            return Err(LatticeError::Step { step: step.to_string() });
        }
        Ok(Self { step })
    }

    /// The distance of two neighbouring points.
    pub fn step(&self) -> &Ratio {
        &self.step
    }

    /// The number of steps to the nearest point, exactly; halves go away from zero. Infinities and far values are errors.
    pub fn quantise(&self, value: f64) -> Result<i64, LatticeError> {
        if value.is_nan() {
            return Err(LatticeError::NotANumber);
        }
        if value.is_infinite() {
            return Err(LatticeError::Overflow);
        }
        // value = ±mantissa · 2^exponent, and step = numerator / denominator, all in integers from here on.
        let bits = value.abs().to_bits();
        let (field, fraction) = ((bits >> 52) as i32, bits & ((1 << 52) - 1));
        let (mantissa, exponent) = if field == 0 { (fraction, -1074) } else { (fraction | 1 << 52, field - 1075) };
        let mut above = u128::from(mantissa) * self.step.denominator(); // below 2^115
        let mut below = self.step.numerator(); // below 2^62
        if exponent >= 0 {
            // A product of 2^127 or more is at least 2^65 steps.
            if above != 0 && exponent > above.leading_zeros() as i32 - 1 {
                return Err(LatticeError::Overflow);
            }
            above <<= exponent.min(127);
        } else {
            // A divisor of 2^126 or more leaves less than half a step.
            if -exponent > below.leading_zeros() as i32 - 2 {
                return Ok(0);
            }
            below <<= -exponent;
        }
        let steps = (above + below / 2) / below; // odd divisors have no halves, so flooring their half is right
        let steps = i64::try_from(steps).map_err(|_| LatticeError::Overflow)?;
        Ok(if value < 0.0 { -steps } else { steps })
    }

    /// Clamps to `[low, high]`, infinities too, and then quantises; NaN is an error.
    pub fn quantise_between(&self, value: f64, low: f64, high: f64) -> Result<i64, LatticeError> {
        if low.is_nan() || high.is_nan() || low > high {
            return Err(LatticeError::Range { low, high });
        }
        if value.is_nan() { Err(LatticeError::NotANumber) } else { self.quantise(value.clamp(low, high)) }
    }

    /// The points between which [`quantise_between`](Self::quantise_between) stays: what a bound on a coordinate says.
    pub fn range(&self, low: f64, high: f64) -> Result<(i64, i64), LatticeError> {
        // Rounding to the nearest point is monotone, so the ends of the range are the ends of its image.
        Ok((self.quantise_between(low, low, high)?, self.quantise_between(high, low, high)?))
    }

    /// The exact sum of points of this lattice; an error when it leaves 64 bits, however the terms are ordered.
    pub fn sum(&self, points: impl IntoIterator<Item = i64>) -> Result<i64, LatticeError> {
        // 2^63 terms of 2^63 each fit into 128 bits, and no iterator lives long enough to yield more.
        let sum: i128 = points.into_iter().map(i128::from).sum();
        i64::try_from(sum).map_err(|_| LatticeError::Overflow)
    }

    /// The real that a point stands for, as the nearest float or one next to it.
    pub fn value(&self, point: i64) -> f64 {
        // The product is below 2^125.
        let above = i128::from(point) * self.step.numerator() as i128;
        above as f64 / self.step.denominator() as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn lattice(step: &str) -> Lattice {
        Lattice::new(step.parse().unwrap()).unwrap()
    }

    #[test]
    fn the_nearest_point_is_found_exactly_even_where_floats_would_slip() {
        // 0.15 as a float lies just below 3/20, so it is nearer to 0.1; 2.5 / 5 is a true half.
        assert_eq!(lattice("0.1").quantise(0.15), Ok(1));
        assert_eq!(lattice("5").quantise(2.5), Ok(1));
        assert_eq!(lattice("5").quantise(-2.5), Ok(-1));
        assert_eq!(lattice("1/3").quantise(0.5), Ok(2));
        assert_eq!(Lattice::INTEGERS.quantise(9_007_199_254_740_993.0), Ok(9_007_199_254_740_992));
        assert_eq!(lattice("1000000").quantise(f64::MIN_POSITIVE), Ok(0));
        assert_eq!(Lattice::INTEGERS.quantise(-(2f64.powi(62))), Ok(-(1 << 62)));
    }

    #[test]
    fn what_has_no_place_is_an_error_and_never_wraps() {
        let whole = Lattice::INTEGERS;
        assert_eq!(whole.quantise(f64::NAN), Err(LatticeError::NotANumber));
        for far in [1e19, -1e19, 2f64.powi(63), f64::MAX, f64::INFINITY, f64::NEG_INFINITY] {
            assert_eq!(whole.quantise(far), Err(LatticeError::Overflow), "{far}");
        }
        assert_eq!(whole.sum([i64::MAX, 1]), Err(LatticeError::Overflow));
        assert_eq!(whole.sum([i64::MAX, 1, -1]), Ok(i64::MAX));
        assert_eq!(whole.quantise_between(f64::INFINITY, -2.0, 7.0), Ok(7));
        assert_eq!(whole.quantise_between(f64::NAN, -2.0, 7.0), Err(LatticeError::NotANumber));
        assert!(whole.quantise_between(0.0, 1.0, 0.0).is_err());
        assert!(Lattice::new(Ratio::ZERO).is_err());
    }

    proptest! {
        #[test]
        fn a_point_lies_within_half_a_step_and_inside_the_declared_range(
            value in -1e9..1e9_f64, n in 1_u32..1000, d in 1_u32..1000, a in -1e6..1e6_f64, b in -1e6..1e6_f64,
        ) {
            let grid = Lattice::new(Ratio::new(u128::from(n), u128::from(d)).unwrap()).unwrap();
            let step = f64::from(n) / f64::from(d);
            let point = grid.quantise(value).unwrap();
            prop_assert!((grid.value(point) - value).abs() <= step / 2.0 + 1e-6);
            let (low, high) = (a.min(b), a.max(b));
            let (first, last) = grid.range(low, high).unwrap();
            let inside = grid.quantise_between(value, low, high).unwrap();
            prop_assert!((first..=last).contains(&inside));
            prop_assert_eq!(grid.quantise(grid.value(inside)), Ok(inside));
        }
    }
}
