//! Numbers as people type them. How they are read is in `whit_view::number`.

use std::fmt;
use whit::core::declare::QueryDefaults;

/// What is wrong with a value on the command line. Together with the option and the value it makes a sentence.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Wrong {
    /// Completes "but it must be …".
    pub(crate) range: &'static str,
    /// The next step.
    pub(crate) hint: &'static str,
}

impl fmt::Display for Wrong {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "it must be {}", self.range)
    }
}

impl std::error::Error for Wrong {}

/// Reads a number that has to satisfy `holds`; what is no number at all, NaN included, never does.
fn number(text: &str, holds: fn(f64) -> bool, wrong: Wrong) -> Result<f64, Wrong> {
    match text.trim().parse::<f64>() {
        Ok(value) if !value.is_nan() && holds(value) => Ok(value),
        Ok(_) | Err(_) => Err(wrong),
    }
}

/// σ over the clip norm.
pub(crate) fn noise(text: &str) -> Result<f64, Wrong> {
    let wrong = Wrong {
        range: "a number greater than 0",
        hint: "the noise is its standard deviation over the largest norm that one drawn unit can contribute, such as 1.1",
    };
    number(text, |value| value > 0.0 && value.is_finite(), wrong)
}

/// A probability of being drawn.
pub(crate) fn rate(text: &str) -> Result<f64, Wrong> {
    let wrong = Wrong {
        range: "a number from 0 to 1",
        hint: "the rate is the probability with which one unit is drawn in one step; 1 means that every step sees all",
    };
    number(text, |value| (0.0..=1.0).contains(&value), wrong)
}

/// A whole number as people write it, `1e18` and `2.5e6` included: digit by digit, never by way of a float.
fn whole(text: &str) -> Option<u64> {
    let text = text.trim();
    let (digits, exponent) = text.split_once(['e', 'E']).unwrap_or((text, "0"));
    let exponent: i32 = exponent.parse().ok().filter(|power| (0..=40).contains(power))?;
    let (whole, part) = digits.split_once('.').unwrap_or((digits, ""));
    if whole.is_empty() || (text == digits && digits.contains('.')) {
        return None;
    }
    let zeros = usize::try_from(exponent).ok()?.checked_sub(part.len())?;
    let all = format!("{whole}{part}{}", "0".repeat(zeros));
    all.bytes().all(|digit| digit.is_ascii_digit()).then_some(())?;
    all.parse().ok()
}

/// A whole number of which 0 has no meaning, for this reason.
fn at_least_one(text: &str, hint: &'static str) -> Result<u64, Wrong> {
    whole(text).filter(|&number| number >= 1).ok_or(Wrong { range: "a whole number, at least 1", hint })
}

/// How often a step is made.
pub(crate) fn steps(text: &str) -> Result<u64, Wrong> {
    at_least_one(text, "a run of no steps reads nothing and costs nothing")
}

/// How many elements one user has at most.
pub(crate) fn elements(text: &str) -> Result<u64, Wrong> {
    at_least_one(text, "it is the cap that you enforce on the elements that one user keeps")
}

/// How many of something count.
pub(crate) fn count(text: &str) -> Result<u64, Wrong> {
    at_least_one(text, "of none there is nothing to say; leave the option out for what is declared")
}

/// ε as a target or a question.
pub(crate) fn epsilon(text: &str) -> Result<f64, Wrong> {
    let wrong = Wrong {
        range: "a number that is at least 0 and finite",
        hint: "ε is the logarithm of the factor by which an output may become more likely; 1 is strong, 10 is weak",
    };
    number(text, |value| value >= 0.0 && value.is_finite(), wrong)
}

/// ε of a release that has to be made, so that 0 will not do.
pub(crate) fn positive_epsilon(text: &str) -> Result<f64, Wrong> {
    let wrong = Wrong {
        range: "a number from 0.001 to 1000",
        hint: "ε is the logarithm of the factor by which an output may become more likely; 1 is strong, 10 is weak",
    };
    number(text, |value| QueryDefaults::EPSILON.contains(&value), wrong)
}

/// δ where a bound needs one that is not 0.
pub(crate) fn delta(text: &str) -> Result<f64, Wrong> {
    let wrong = Wrong {
        range: "a number greater than 0 and less than 1",
        hint: "Gaussian noise has no finite ε at δ = 0; take δ well below one over the number of units, such as 1e-6",
    };
    number(text, |value| value > 0.0 && value < 1.0, wrong)
}

/// δ where 0 means pure ε.
pub(crate) fn delta_or_zero(text: &str) -> Result<f64, Wrong> {
    let wrong = Wrong {
        range: "a number that is at least 0 and less than 1",
        hint: "δ is a probability; at 1 nothing is promised, and 0 stands for pure ε",
    };
    number(text, |value| (0.0..1.0).contains(&value), wrong)
}

/// How far apart two neighbours' contributions are, in clip norms.
pub(crate) fn difference(text: &str) -> Result<f64, Wrong> {
    let wrong = Wrong {
        range: "a number greater than 0 and at most 2",
        hint: "it is counted in clip norms, and two contributions in a ball are never more than 2 apart",
    };
    number(text, |value| value > 0.0 && value <= 2.0, wrong)
}

/// What an adversary believes beforehand.
pub(crate) fn prior(text: &str) -> Result<f64, Wrong> {
    let wrong = Wrong {
        range: "probabilities greater than 0 and less than 1, with commas between them",
        hint: "who is already certain learns nothing; try --prior 0.01,0.1,0.5",
    };
    number(text, |value| value > 0.0 && value < 1.0, wrong)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_meant_is_turned_away() {
        for text in ["0", "-1", "nan", "inf", "four", ""] {
            assert!(noise(text).is_err(), "noise {text}");
        }
        for text in ["-0.1", "1.0001", "NaN"] {
            assert!(rate(text).is_err(), "rate {text}");
        }
        for text in ["0", "1", "-1e-6", "nan"] {
            assert!(delta(text).is_err(), "delta {text}");
        }
        assert!(steps("0").is_err() && steps("1.5").is_err() && steps("-3").is_err());
        assert!(epsilon("-0.5").is_err() && epsilon("inf").is_err());
        assert!(difference("0").is_err() && difference("2.1").is_err());
        assert!(prior("0").is_err() && prior("1").is_err());
        for text in ["0", "1e-3", "2.55e1", "1e20", "e5", ".5e1", "1.", "1e", "+-3", "1e0.5", "0e5", "1 000"] {
            assert!(elements(text).is_err(), "elements {text}");
        }
    }

    #[test]
    fn what_can_be_meant_is_read() {
        assert_eq!(noise("4"), Ok(4.0));
        assert_eq!((rate("0"), rate("1")), (Ok(0.0), Ok(1.0)));
        assert_eq!(delta("1e-5"), Ok(1e-5));
        assert_eq!((delta_or_zero("0"), epsilon("0")), (Ok(0.0), Ok(0.0)));
        assert_eq!(steps("40000"), Ok(40_000));
        assert_eq!(steps("1e18"), Ok(1_000_000_000_000_000_000));
        assert_eq!((elements("2.5e6"), elements("9007199254740993")), (Ok(2_500_000), Ok((1 << 53) + 1)));
        assert_eq!((elements("1.8446744073709551615e19"), elements("0007")), (Ok(u64::MAX), Ok(7)));
        assert_eq!(difference("2"), Ok(2.0));
    }
}
