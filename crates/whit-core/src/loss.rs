//! ε, δ, ρ, μ: the numbers in which a loss of privacy is stated. Arithmetic on them rounds up, never down.

use serde::{Deserialize, Serialize};

/// A number that is not the kind of loss that it was offered as.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[error("{name} is {value}, but it must be {range}")]
pub struct OutOfRange {
    /// What the number was meant to be.
    pub name: &'static str,
    /// The number.
    pub value: f64,
    /// Where it would have to lie.
    pub range: &'static str,
}

/// The next larger float: one step that covers the half step that an addition or product may have lost.
fn up(value: f64) -> f64 {
    if value == 0.0 { value } else { value.next_up() }
}

macro_rules! amount {
    ($(#[$doc:meta])* $name:ident, $word:literal) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, PartialOrd, Serialize, Deserialize)]
        #[serde(try_from = "f64", into = "f64")]
        pub struct $name(f64);

        impl $name {
            /// Nothing is lost.
            pub const ZERO: Self = Self(0.0);
            /// Everything is lost: no protection.
            pub const INFINITE: Self = Self(f64::INFINITY);

            #[doc = concat!("Takes a number as ", $word, "; it must not be negative, and not be NaN.")]
            pub fn new(value: f64) -> Result<Self, OutOfRange> {
                if value >= 0.0 {
                    Ok(Self(value + 0.0)) // turns −0 into 0
                } else {
                    Err(OutOfRange { name: $word, value, range: "at least 0" })
                }
            }

            /// The number itself.
            pub fn get(self) -> f64 {
                self.0
            }

            /// The sum, rounded up.
            #[must_use]
            pub fn plus(self, other: Self) -> Self {
                if other.0 == 0.0 {
                    self
                } else if self.0 == 0.0 {
                    other
                } else {
                    Self(up(self.0 + other.0))
                }
            }

            /// `times` as much, rounded up. Nothing repeated is nothing; something infinite not repeated at all is nothing too.
            #[must_use]
            pub fn times(self, times: u64) -> Self {
                match times {
                    0 => Self::ZERO,
                    1 => self,
                    _ => Self(up(up(self.0 * times as f64))),
                }
            }
        }

        impl TryFrom<f64> for $name {
            type Error = OutOfRange;
            fn try_from(value: f64) -> Result<Self, OutOfRange> {
                Self::new(value)
            }
        }

        impl From<$name> for f64 {
            fn from(value: $name) -> f64 {
                value.0
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                self.0.fmt(f)
            }
        }
    };
}

amount! {
    /// ε: how much more likely an output may become, as a logarithm.
    ///
    /// ```
    /// use whit_core::Epsilon;
    /// let third = Epsilon::ratio_up(1, 3);
    /// assert!(third.get() * 3.0 >= 1.0);
    /// assert!(Epsilon::new(-1.0).is_err());
    /// ```
    Epsilon, "ε"
}
amount! {
    /// δ: the probability mass on which ε may fail.
    ///
    /// ```
    /// use whit_core::Delta;
    /// assert!(Delta::new(1e-6).is_ok());
    /// ```
    Delta, "δ"
}
amount! {
    /// ρ of zero-concentrated differential privacy: the Rényi divergence of every order α is at most ρ·α.
    Rho, "ρ"
}
amount! {
    /// μ of Gaussian differential privacy: no easier to tell apart than N(0, 1) and N(μ, 1).
    Mu, "μ"
}

impl Epsilon {
    /// The smallest ε that is not below `numerator / denominator`; infinite when the denominator is 0.
    #[must_use]
    pub fn ratio_up(numerator: u64, denominator: u64) -> Self {
        if numerator == 0 {
            return Self::ZERO;
        }
        if denominator == 0 {
            return Self::INFINITE;
        }
        // Each conversion and the division lose at most half a step; three steps cover them all.
        Self(up(up(up(numerator as f64 / denominator as f64))))
    }
}

/// What an accountant says of a cost at one δ: ε lies between the two, and the upper one is the promise.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Loss {
    /// A proven bound: the mechanism is (upper, δ)-differentially private.
    pub upper: f64,
    /// Some mechanism with this cost is not private for any smaller ε. Zero where the accountant knows of none.
    pub lower: f64,
    /// The δ at which both hold.
    pub delta: f64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_and_products_never_fall_below_the_exact_value() {
        let tenth = Epsilon::new(0.1).unwrap();
        let mut sum = Epsilon::ZERO;
        for _ in 0..1000 {
            sum = sum.plus(tenth);
        }
        assert!(sum.get() >= 100.0 && sum.get() < 100.000_001);
        assert!(tenth.times(1000).get() >= 100.0);
        assert_eq!(Epsilon::INFINITE.times(0), Epsilon::ZERO);
        assert_eq!(Epsilon::INFINITE.plus(tenth), Epsilon::INFINITE);
    }

    #[test]
    fn what_is_no_loss_is_refused_by_name() {
        assert_eq!(Delta::new(-0.5).unwrap_err().to_string(), "δ is -0.5, but it must be at least 0");
        assert!(Epsilon::new(f64::NAN).is_err());
    }
}
