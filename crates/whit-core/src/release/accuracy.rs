//! How far a released value may be from the truth.

use std::fmt;

/// With probability at least `confidence`, the error is at most `within`.
///
/// ```
/// use whit_core::Accuracy;
/// let preview = Accuracy { within: 41.0, confidence: 0.95 };
/// assert_eq!(preview.to_string(), "± 41 at 95 %");
/// assert_eq!(preview.times(0.01).to_string(), "± 0.41 at 95 %");
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Accuracy {
    /// The error, in lattice steps or in the unit that the mechanism names.
    pub within: f64,
    /// The probability.
    pub confidence: f64,
}

impl Accuracy {
    /// The same in units of `step` to a lattice step.
    #[must_use]
    pub fn times(self, step: f64) -> Self {
        Self { within: self.within * step, ..self }
    }

    /// The smallest whole error that is exceeded with probability at most 1 − `confidence`, where `tail(m)` bounds the
    /// probability that it exceeds m and falls with m. At confidence 1 the error is unbounded.
    pub(crate) fn of_tail(confidence: f64, tail: impl Fn(u64) -> f64) -> Self {
        // A hair less than allowed, for the rounding in the tail itself.
        let allowed = (1.0 - confidence) * (1.0 - 1e-12);
        if allowed.is_nan() || allowed <= 0.0 {
            return Self { within: f64::INFINITY, confidence };
        }
        let (mut low, mut high) = (0, 1_u64);
        while tail(high) > allowed {
            if high >= 1 << 62 {
                return Self { within: f64::INFINITY, confidence };
            }
            (low, high) = (high, high * 2);
        }
        if tail(0) <= allowed {
            return Self { within: 0.0, confidence };
        }
        // tail(low) is too much, tail(high) is not.
        while high - low > 1 {
            let middle = low + (high - low) / 2;
            if tail(middle) > allowed { low = middle } else { high = middle }
        }
        Self { within: high as f64, confidence }
    }
}

impl fmt::Display for Accuracy {
    /// Whole errors are written out; others have three digits and are rounded up.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let percent = (self.confidence * 1e8).round() / 1e6;
        if self.within.fract() == 0.0 || !self.within.is_finite() {
            return write!(f, "± {} at {percent} %", self.within);
        }
        let places = (2 - self.within.abs().log10().floor() as i32).clamp(0, 300);
        let scale = 10_f64.powi(places);
        // The hair keeps 0.41 from becoming 0.411 because 41 · 0.01 is a little more.
        let shown = (self.within * scale * (1.0 - 1e-12)).ceil() / scale;
        write!(f, "± {shown} at {percent} %")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_accuracy_reads_like_an_error_bar() {
        let read = |within, confidence| Accuracy { within, confidence }.to_string();
        assert_eq!(read(41.0, 0.95), "± 41 at 95 %");
        assert_eq!(read(123_456.0, 0.999), "± 123456 at 99.9 %");
        assert_eq!(read(8.188_689, 0.95), "± 8.19 at 95 %");
        assert_eq!(read(0.001_234_1, 0.99), "± 0.00124 at 99 %");
        assert_eq!(read(98_765.4, 0.9), "± 98766 at 90 %");
        assert_eq!(read(f64::INFINITY, 1.0), "± inf at 100 %");
    }

    #[test]
    fn the_smallest_sufficient_error_is_found() {
        for wanted in [0_u64, 1, 2, 3, 17, 1 << 40] {
            let found = Accuracy::of_tail(0.95, |m| if m >= wanted { 0.049 } else { 0.051 });
            assert_eq!(found.within, wanted as f64);
        }
        assert_eq!(Accuracy::of_tail(1.0, |_| 0.0).within, f64::INFINITY);
        assert_eq!(Accuracy::of_tail(0.95, |_| 1.0).within, f64::INFINITY);
    }
}
