//! Numbers as people type them and read them, and as programs read them.

use serde::{Serialize, Serializer};
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

/// How often a step is made.
pub(crate) fn steps(text: &str) -> Result<u64, Wrong> {
    whole(text)
        .filter(|&steps| steps >= 1)
        .ok_or(Wrong { range: "a whole number, at least 1", hint: "a run of no steps reads nothing and costs nothing" })
}

/// How many elements one user has at most.
pub(crate) fn elements(text: &str) -> Result<u64, Wrong> {
    whole(text).filter(|&elements| elements >= 1).ok_or(Wrong {
        range: "a whole number, at least 1",
        hint: "it is the cap that you enforce on the elements that one user keeps",
    })
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

/// A number in JSON: to the last digit, and infinity as the string `"Infinity"`, because JSON has no number for it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Exact(pub(crate) f64);

impl Serialize for Exact {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if self.0.is_infinite() {
            serializer.serialize_str(if self.0 > 0.0 { "Infinity" } else { "-Infinity" })
        } else {
            serializer.serialize_f64(self.0)
        }
    }
}

/// Which way the last digit that people see is rounded.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Toward {
    Nearest,
    Up,
    Down,
}

/// Five significant digits, rounded to the nearest.
pub(crate) fn brief(value: f64) -> String {
    shorten(value, 5, Toward::Nearest)
}

/// Five significant digits that are never below the value by more than a hair (1e-12 of it): for bounds from above.
pub(crate) fn brief_up(value: f64) -> String {
    shorten(value, 5, Toward::Up)
}

/// Five significant digits that are never above the value by more than a hair (1e-12 of it): for bounds from below.
pub(crate) fn brief_down(value: f64) -> String {
    shorten(value, 5, Toward::Down)
}

/// A probability as a percentage of four significant digits, rounded to the nearest.
pub(crate) fn percent(value: f64) -> String {
    format!("{} %", shorten(value * 100.0, 4, Toward::Nearest))
}

/// The same, never below the value by more than a hair.
pub(crate) fn percent_up(value: f64) -> String {
    format!("{} %", shorten(value * 100.0, 4, Toward::Up))
}

/// The same, never above the value by more than a hair.
pub(crate) fn percent_down(value: f64) -> String {
    format!("{} %", shorten(value * 100.0, 4, Toward::Down))
}

fn shorten(value: f64, significant: usize, toward: Toward) -> String {
    if value.is_infinite() {
        return if value > 0.0 { "∞".into() } else { "-∞".into() };
    }
    if value == 0.0 || value.is_nan() {
        return if value == 0.0 { "0".into() } else { "not a number".into() };
    }
    let scientific = format!("{value:.*e}", significant - 1);
    let (digits, exponent) = scientific.split_once('e').expect("the exponent form of a float has an e");
    let mut digits: i64 = digits.replace('.', "").parse().expect("some digits and perhaps a sign");
    let mut exponent: i32 = exponent.parse().expect("the exponent of a float is a small integer");
    let shown: f64 = scientific.parse().expect("a float that was just written");
    // A bound that was rounded by a few bits to be safe reads as the number it stands for; JSON has every digit.
    let hair = value.abs() * 1e-12;
    digits += match toward {
        Toward::Up if shown < value - hair => 1,
        Toward::Down if shown > value + hair => -1,
        Toward::Nearest | Toward::Up | Toward::Down => 0,
    };
    let top = 10_i64.pow(significant as u32);
    if digits.abs() == top {
        (digits, exponent) = (digits / 10, exponent + 1);
    } else if digits.abs() < top / 10 {
        (digits, exponent) = (digits * 10 + 9 * digits.signum(), exponent - 1); // 1.0000 less one step is 0.99999
    }
    let sign = if digits < 0 { "-" } else { "" };
    let digits = digits.abs().to_string();
    let trim = |text: String| text.trim_end_matches('0').trim_end_matches('.').to_owned();
    let places = significant as i32 - 1;
    match exponent {
        -4..=-1 => trim(format!("{sign}0.{}{digits}", "0".repeat((-exponent - 1) as usize))),
        0.. if exponent < places => {
            let (whole, part) = digits.split_at(exponent as usize + 1);
            trim(format!("{sign}{whole}.{part}"))
        }
        0..=8 => format!("{sign}{digits}{}", "0".repeat((exponent - places) as usize)),
        _ => format!("{sign}{}e{exponent}", trim(format!("{}.{}", &digits[..1], &digits[1..]))),
    }
}

/// A plain decimal number with its digits in groups of three: `-1234567.25` becomes `-1,234,567.25`.
pub(crate) fn grouped(plain: &str) -> String {
    let digits = plain.trim_start_matches('-');
    let whole = &digits[..digits.find(|c: char| !c.is_ascii_digit()).unwrap_or(digits.len())];
    let mut text = plain[..plain.len() - digits.len()].to_owned();
    for (i, digit) in whole.chars().enumerate() {
        if i > 0 && (whole.len() - i).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text + &digits[whole.len()..]
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

    #[test]
    fn digits_that_people_see_keep_the_side_of_the_bound() {
        for value in
            [4.380_049, 4.380_051, 93.999_999, 0.099_999_9, 1e-5, 1.234_567e-12, 123_456.7, 9.999_96e20, 1.0, 0.5]
        {
            let read = |text: String| text.parse::<f64>().unwrap();
            assert!(read(brief_up(value)) >= value, "{value} was shown as {}", brief_up(value));
            assert!(read(brief_down(value)) <= value, "{value} was shown as {}", brief_down(value));
            assert!((read(brief(value)) / value - 1.0).abs() <= 5e-5, "{value} was shown as {}", brief(value));
        }
        assert_eq!(brief_up(9.999_91), "10");
        assert_eq!((brief_up(1.0_f64.next_up()), brief_up(1.000_000_01)), ("1".into(), "1.0001".into()));
        assert_eq!(brief_down(1.000_000_1_f64.next_down()), "1");
        assert_eq!(brief_down(0.999_999), "0.99999");
    }

    #[test]
    fn numbers_look_the_way_people_write_them() {
        let shown = [4.0, 0.01, 1e-5, 40_000.0, 4.380_1, -2.5, 1e10].map(brief);
        assert_eq!(shown, ["4", "0.01", "1e-5", "40000", "4.3801", "-2.5", "1e10"]);
        assert_eq!(brief(f64::INFINITY), "∞");
        assert_eq!((percent(0.5), percent(0.07)), ("50 %".into(), "7 %".into()));
        assert_eq!((percent_up(0.123_412), percent_down(0.123_412)), ("12.35 %".into(), "12.34 %".into()));
        assert_eq!((percent_up(1.0), percent_down(0.0)), ("100 %".into(), "0 %".into()));
    }

    #[test]
    fn thousands_stand_apart() {
        let shown = ["0", "-12", "999", "1000", "-1234567.25", "1.5", "12345e9"].map(grouped);
        assert_eq!(shown, ["0", "-12", "999", "1,000", "-1,234,567.25", "1.5", "12,345e9"]);
    }

    #[test]
    fn infinity_is_a_word_in_json_and_never_null() {
        assert_eq!(serde_json::to_string(&Exact(f64::INFINITY)).unwrap(), "\"Infinity\"");
        assert_eq!(serde_json::to_string(&Exact(0.1)).unwrap(), "0.1");
    }
}
