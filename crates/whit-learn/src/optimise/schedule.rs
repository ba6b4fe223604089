//! How long each step is.

use super::Error;
use serde::{Deserialize, Serialize};
use std::f64::consts::PI;

/// The step size `α_k` of step k = 1, 2, ….
///
/// It reads the number of the step and nothing else, so it costs nothing.
///
/// ```
/// use whit_learn::optimise::Schedule;
/// let falling = Schedule::Power { first: 0.5, decay: 0.6 };
/// assert_eq!(falling.at(1), 0.5);
/// assert!((falling.at(32) - 0.5 / 8.0).abs() < 1e-15); // 32^0.6 = 8
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Schedule {
    /// The same at every step.
    Constant {
        /// α.
        size: f64,
    },
    /// `α0·k^-β`, for which averaged iterates are asymptotically normal when β lies strictly between 1/2 and 1
    /// (Element-Level DP, Theorem 1).
    Power {
        /// α0.
        first: f64,
        /// β.
        decay: f64,
    },
    /// Rises along a line to `peak` in `warm_up` steps, then falls along half a cosine to `last` at step `steps`, and
    /// stays there.
    Cosine {
        /// The largest size.
        peak: f64,
        /// The steps on the way up.
        warm_up: u64,
        /// The steps altogether.
        steps: u64,
        /// The size at the end.
        last: f64,
    },
}

impl Schedule {
    /// The size of step `k`, which counts from 1.
    pub fn at(&self, k: u64) -> f64 {
        let k = k.max(1);
        match *self {
            Self::Constant { size } => size,
            Self::Power { first, decay } => first / (k as f64).powf(decay),
            Self::Cosine { peak, warm_up, .. } if k <= warm_up => peak * (k as f64 / warm_up as f64),
            Self::Cosine { peak, warm_up, steps, last } => {
                let done = if k >= steps { 1.0 } else { (k - warm_up) as f64 / (steps - warm_up) as f64 };
                last + 0.5 * (peak - last) * (1.0 + (PI * done).cos())
            }
        }
    }

    /// Whether the numbers can be meant.
    pub fn validated(self) -> Result<Self, Error> {
        let positive = |name, value: f64| {
            let usable = value.is_finite() && value > 0.0;
            if usable { Ok(()) } else { Err(Error::Parameter { name, value, range: "more than 0" }) }
        };
        match self {
            Self::Constant { size } => positive("step size", size)?,
            Self::Power { first, decay } => {
                positive("first step size", first)?;
                if !(0.0..=1.0).contains(&decay) {
                    return Err(Error::Parameter { name: "decay", value: decay, range: "0 to 1" });
                }
            }
            Self::Cosine { peak, warm_up, steps, last } => {
                positive("peak step size", peak)?;
                if !(0.0..=peak).contains(&last) {
                    return Err(Error::Parameter { name: "last step size", value: last, range: "0 to the peak" });
                }
                if warm_up >= steps {
                    let value = warm_up as f64;
                    return Err(Error::Parameter { name: "warm-up", value, range: "fewer steps than there are" });
                }
            }
        }
        Ok(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_follow_their_formulas() {
        let power = Schedule::Power { first: 0.3, decay: 0.5 };
        assert!((power.at(4) - 0.15).abs() < 1e-15 && (power.at(0) - 0.3).abs() < 1e-15);
        assert_eq!(Schedule::Constant { size: 0.1 }.at(1_000_000), 0.1);
        let cosine = Schedule::Cosine { peak: 1.0, warm_up: 10, steps: 110, last: 0.2 };
        let near = |k, expected: f64| assert!((cosine.at(k) - expected).abs() < 1e-12, "step {k}: {}", cosine.at(k));
        near(1, 0.1);
        near(10, 1.0);
        near(60, 0.6);
        near(110, 0.2);
        near(9999, 0.2);
        assert!((11..110).all(|k| cosine.at(k) > cosine.at(k + 1)));
    }

    #[test]
    fn sizes_that_cannot_be_meant_are_refused() {
        for bad in [
            Schedule::Constant { size: 0.0 },
            Schedule::Constant { size: f64::NAN },
            Schedule::Power { first: 1.0, decay: 1.5 },
            Schedule::Power { first: -1.0, decay: 0.5 },
            Schedule::Cosine { peak: 1.0, warm_up: 5, steps: 5, last: 0.0 },
            Schedule::Cosine { peak: 1.0, warm_up: 0, steps: 5, last: 2.0 },
        ] {
            assert!(bad.validated().is_err(), "{bad:?}");
        }
        assert!(Schedule::Cosine { peak: 1.0, warm_up: 0, steps: 5, last: 0.0 }.validated().is_ok());
    }
}
