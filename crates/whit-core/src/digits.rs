//! Digits that people see: few, and rounded to the side that keeps a bound.

use std::fmt::Display;

/// Which way the last digit that people see is rounded.
#[derive(Clone, Copy, PartialEq, Eq)]
enum DigitRounding {
    Nearest,
    Up,
    Down,
}

/// Five significant digits, rounded to the nearest.
pub fn brief(value: f64) -> String {
    shorten(value, 5, DigitRounding::Nearest)
}

/// Five significant digits that are never below the value by more than a hair (1e-12 of it): for bounds from above.
pub fn brief_up(value: f64) -> String {
    shorten(value, 5, DigitRounding::Up)
}

/// Five significant digits that are never above the value by more than a hair (1e-12 of it): for bounds from below.
pub fn brief_down(value: f64) -> String {
    shorten(value, 5, DigitRounding::Down)
}

/// The same with four digits: for a number that a person is to type again.
pub fn terse_down(value: f64) -> String {
    shorten(value, 4, DigitRounding::Down)
}

/// A probability as a percentage of four significant digits, rounded to the nearest.
pub fn percent(value: f64) -> String {
    format!("{} %", shorten(value * 100.0, 4, DigitRounding::Nearest))
}

/// The same, never below the value by more than a hair.
pub fn percent_up(value: f64) -> String {
    format!("{} %", shorten(value * 100.0, 4, DigitRounding::Up))
}

/// The same, never above the value by more than a hair.
pub fn percent_down(value: f64) -> String {
    format!("{} %", shorten(value * 100.0, 4, DigitRounding::Down))
}

fn shorten(value: f64, significant: usize, toward: DigitRounding) -> String {
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
        DigitRounding::Up if shown < value - hair => 1,
        DigitRounding::Down if shown > value + hair => -1,
        DigitRounding::Nearest | DigitRounding::Up | DigitRounding::Down => 0,
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
pub fn grouped(plain: &str) -> String {
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

/// A number of things, by the noun for one of them.
///
/// ```
/// use whit_core::digits::{grouped, number_of};
/// assert_eq!(number_of(1, "row"), "1 row");
/// assert_eq!(number_of(0, "data set"), "0 data sets");
/// assert_eq!(number_of(2, "entry"), "2 entries");
/// assert_eq!(number_of(3, "class"), "3 classes");
/// assert_eq!(number_of(grouped("1234"), "day"), "1,234 days");
/// ```
pub fn number_of(number: impl Display, noun: &str) -> String {
    let number = number.to_string();
    if number == "1" {
        return format!("1 {noun}");
    }
    match noun.strip_suffix('y') {
        Some(stem) if !stem.ends_with(['a', 'e', 'o', 'u']) => format!("{number} {stem}ies"),
        _ if noun.ends_with(['s', 'x']) => format!("{number} {noun}es"),
        _ => format!("{number} {noun}s"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
        assert_eq!([1234.5, 0.123_46, 0.5, 9.999_9].map(terse_down), ["1234", "0.1234", "0.5", "9.999"]);
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
}
