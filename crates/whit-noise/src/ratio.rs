//! Exact parameters: a non-negative fraction of two integers.

use crate::whole::{whole_down, whole_up};
use std::cmp::Ordering;
use std::fmt;
use std::str::FromStr;

/// A parameter that is no fraction that a sampler can use.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{given}` is not usable here: expected {expected}")]
pub struct BadRatio {
    /// What was given, as text.
    pub given: String,
    /// What would have been accepted.
    pub expected: &'static str,
}

/// Numerators and denominators stay below this, so that one doubling never overflows.
const LIMIT: u128 = 1 << 126;

/// A non-negative rational number in lowest terms.
///
/// ```
/// use whit_noise::Ratio;
/// let scale: Ratio = "10/3".parse()?;
/// assert_eq!(scale, Ratio::new(20, 6)?);
/// assert_eq!("2.5".parse::<Ratio>()?.to_string(), "5/2");
/// assert!(Ratio::new(1, 0).is_err());
/// # Ok::<(), whit_noise::BadRatio>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Ratio {
    numerator: u128,
    denominator: u128,
}

fn gcd(mut a: u128, mut b: u128) -> u128 {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}

impl Ratio {
    /// Zero.
    pub const ZERO: Self = Self { numerator: 0, denominator: 1 };
    /// One.
    pub const ONE: Self = Self { numerator: 1, denominator: 1 };

    /// `numerator / denominator`, reduced.
    pub fn new(numerator: u128, denominator: u128) -> Result<Self, BadRatio> {
        let bad = |expected| BadRatio { given: format!("{numerator}/{denominator}"), expected };
        if denominator == 0 {
            return Err(bad("a denominator other than 0"));
        }
        let common = gcd(numerator, denominator);
        let (n, d) = (numerator / common, denominator / common);
        if n >= LIMIT || d >= LIMIT {
            return Err(bad("a numerator and a denominator below 2^126"));
        }
        Ok(Self { numerator: n, denominator: d })
    }

    /// A float, exactly where it fits, else the nearest fraction in the direction `upwards`.
    fn from_f64(value: f64, upwards: bool) -> Result<Self, BadRatio> {
        let bad = |expected| BadRatio { given: value.to_string(), expected };
        if !(value >= 0.0 && value.is_finite()) {
            return Err(bad("a finite number that is not negative"));
        }
        if value == 0.0 {
            return Ok(Self::ZERO);
        }
        if value >= 2f64.powi(120) {
            return Err(bad("a number below 2^120"));
        }
        // Scale by a power of two so that the integer part holds the whole significand, where the limit allows.
        let exponent = (value.log2().floor() as i32).max(-1074);
        let shift = (60 - exponent).clamp(0, 120);
        let scaled = value * 2f64.powi(shift); // exact: a power of two, and no overflow by the checks above
        let whole = if upwards { scaled.ceil() } else { scaled.floor() };
        Self::new(whole as u128, 1 << shift)
    }

    /// A fraction that is not below `value`: `value` itself where it is a multiple of 2^-120, else the next such multiple.
    pub fn from_f64_up(value: f64) -> Result<Self, BadRatio> {
        Self::from_f64(value, true)
    }

    /// A fraction that is not above `value`: `value` itself where it is a multiple of 2^-120, else the multiple before it
    /// (so 0 for what is smaller than 2^-120).
    pub fn from_f64_down(value: f64) -> Result<Self, BadRatio> {
        Self::from_f64(value, false)
    }

    /// What stands above the line.
    pub fn numerator(&self) -> u128 {
        self.numerator
    }

    /// What stands below the line, never 0.
    pub fn denominator(&self) -> u128 {
        self.denominator
    }

    /// Whether this is 0.
    pub fn is_zero(&self) -> bool {
        self.numerator == 0
    }

    /// A float close to it: relative error below 2^-51.
    pub fn to_f64(&self) -> f64 {
        self.numerator as f64 / self.denominator as f64
    }

    /// A float that is not above it.
    pub fn to_f64_down(&self) -> f64 {
        if self.is_zero() {
            0.0
        } else {
            (whole_down(self.numerator) / whole_up(self.denominator)).next_down().max(0.0)
        }
    }

    /// A float that is not below it.
    pub fn to_f64_up(&self) -> f64 {
        if self.is_zero() { 0.0 } else { (whole_up(self.numerator) / whole_down(self.denominator)).next_up() }
    }

    /// The product, or nothing when it cannot be represented.
    #[must_use]
    pub fn times(&self, other: &Self) -> Option<Self> {
        // Cross-reduce first, so that only true overflow is refused.
        let (a, b) = (gcd(self.numerator, other.denominator), gcd(other.numerator, self.denominator));
        let numerator = (self.numerator / a.max(1)).checked_mul(other.numerator / b.max(1))?;
        let denominator = (self.denominator / b.max(1)).checked_mul(other.denominator / a.max(1))?;
        Self::new(numerator, denominator).ok()
    }

    /// One over it, or nothing for 0.
    #[must_use]
    pub fn inverse(&self) -> Option<Self> {
        (!self.is_zero()).then_some(Self { numerator: self.denominator, denominator: self.numerator })
    }
}

impl From<u64> for Ratio {
    fn from(value: u64) -> Self {
        Self { numerator: u128::from(value), denominator: 1 }
    }
}

impl Ord for Ratio {
    /// Compares by continued fractions, so that no product overflows.
    fn cmp(&self, other: &Self) -> Ordering {
        let (mut a, mut b) = (*self, *other);
        let mut flipped = false;
        loop {
            let (qa, qb) = (a.numerator / a.denominator, b.numerator / b.denominator);
            let (ra, rb) = (a.numerator % a.denominator, b.numerator % b.denominator);
            let order = match qa.cmp(&qb) {
                Ordering::Equal if ra == 0 || rb == 0 => (ra != 0).cmp(&(rb != 0)),
                Ordering::Equal => {
                    // Equal whole parts: compare the fractions by their inverses, the other way round.
                    a = Self { numerator: a.denominator, denominator: ra };
                    b = Self { numerator: b.denominator, denominator: rb };
                    flipped = !flipped;
                    continue;
                }
                unequal => unequal,
            };
            return if flipped { order.reverse() } else { order };
        }
    }
}

impl PartialOrd for Ratio {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl fmt::Display for Ratio {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.denominator == 1 {
            write!(f, "{}", self.numerator)
        } else {
            write!(f, "{}/{}", self.numerator, self.denominator)
        }
    }
}

impl FromStr for Ratio {
    type Err = BadRatio;

    fn from_str(text: &str) -> Result<Self, BadRatio> {
        let bad =
            || BadRatio { given: text.to_owned(), expected: "a fraction such as `10/3`, or a decimal such as `2.5`" };
        let whole = |digits: &str| -> Result<u128, BadRatio> {
            if digits.is_empty() || !digits.bytes().all(|b| b.is_ascii_digit()) {
                return Err(bad());
            }
            digits.parse().map_err(|_| bad())
        };
        if let Some((above, below)) = text.split_once('/') {
            return Self::new(whole(above.trim())?, whole(below.trim())?);
        }
        let Some((before, after)) = text.split_once('.') else {
            return Self::new(whole(text)?, 1);
        };
        let places = 10_u128.checked_pow(u32::try_from(after.len()).map_err(|_| bad())?).ok_or_else(bad)?;
        let (before, after) = (if before.is_empty() { 0 } else { whole(before)? }, whole(after)?);
        let numerator = before.checked_mul(places).and_then(|n| n.checked_add(after)).ok_or_else(bad)?;
        Self::new(numerator, places)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn floats_become_fractions_on_the_stated_side() {
        for value in [0.1, 1.0 / 3.0, 1e-9, 12_345.678, 1e30, 4.0, 1e-35, f64::MIN_POSITIVE] {
            let (low, high) = (Ratio::from_f64_down(value).unwrap(), Ratio::from_f64_up(value).unwrap());
            assert!(low <= high, "{value}");
            assert!(low.to_f64_down() <= value && value <= high.to_f64_up(), "{value}");
            if value > 1e-15 {
                assert_eq!(low, high, "{value} is a dyadic fraction and fits");
            }
        }
        assert!(Ratio::from_f64_up(f64::NAN).is_err());
        assert!(Ratio::from_f64_up(-1.0).is_err());
    }

    #[test]
    fn order_is_that_of_the_numbers_even_where_products_would_overflow() {
        let big = (1_u128 << 125) + 1;
        let (a, b) = (Ratio::new(big, big - 2).unwrap(), Ratio::new(big - 2, big - 4).unwrap());
        assert!(a < b);
        assert_eq!(b.cmp(&a), Ordering::Greater);
        assert_eq!(a.cmp(&a.clone()), Ordering::Equal);
        assert!(Ratio::new(1, 3).unwrap() < Ratio::new(1, 2).unwrap());
        assert!(Ratio::new(7, 2).unwrap() > Ratio::from(3));
        assert_eq!(Ratio::from(3).cmp(&Ratio::new(6, 2).unwrap()), Ordering::Equal);
    }

    #[test]
    fn text_is_read_exactly_or_refused() {
        assert_eq!("0.1".parse::<Ratio>().unwrap(), Ratio::new(1, 10).unwrap());
        for bad in ["", "-1", "1/0", "a", "1.2.3", "1e5", "/", "1."] {
            assert!(bad.parse::<Ratio>().is_err(), "{bad}");
        }
    }
}
