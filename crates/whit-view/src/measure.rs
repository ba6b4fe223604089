//! A value with the interval in which the truth lies, and how people read the two.
//!
//! A digit is shown where the interval gives it a meaning: the reach of the interval has two significant digits (of ±, three if
//! the first is a 1), rounded up, and the value ends where they end. What is shown always covers what is known. Files keep every digit.

use crate::number::grouped;

/// A value, and the interval in which the truth lies, where that is known.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Measure {
    /// The value.
    pub value: f64,
    /// The lower end; may be infinite.
    pub low: Option<f64>,
    /// The upper end; may be infinite.
    pub high: Option<f64>,
    /// Whether it counts, so that it has no digits behind the point.
    pub whole: bool,
}

impl Measure {
    /// A value that is known exactly.
    pub fn exactly(value: f64) -> Self {
        Self { value, low: Some(value), high: Some(value), whole: false }
    }

    /// A value that is off by at most `error` either way.
    #[cfg(test)]
    pub fn around(value: f64, error: f64) -> Self {
        Self { value, low: Some(value - error), high: Some(value + error), whole: false }
    }

    /// The finite ends and the value, for the range of an axis.
    pub(crate) fn reach(&self) -> impl Iterator<Item = f64> + use<> {
        [Some(self.value), self.low, self.high].into_iter().flatten().filter(|end| end.is_finite())
    }

    /// The value and its interval in the fewest digits that mean something.
    pub fn shown(&self) -> Shown {
        let known = |end: Option<f64>| end.filter(|end| !end.is_nan());
        let (value, low, high) = (self.value, known(self.low), known(self.high));
        let spread = match (low, high) {
            _ if !value.is_finite() => String::new(),
            (None, None) => "± ?".into(),
            (Some(low), Some(high)) if low == high && low == value => "± 0".into(),
            (Some(f64::NEG_INFINITY), Some(f64::INFINITY)) => "± ∞".into(),
            (low, high) => return self.shown_within(low, high),
        };
        Shown { value: self.in_full(), spread }
    }

    /// With at least one end known, and not all of the line.
    fn shown_within(&self, low: Option<f64>, high: Option<f64>) -> Shown {
        let value = self.value;
        let finite = |end: Option<f64>| end.filter(|end| end.is_finite());
        let (down, up) = (finite(low).map(|low| value - low), finite(high).map(|high| high - value));
        let widest = [down, up].into_iter().flatten().map(f64::abs).fold(0.0, f64::max);
        if widest == 0.0 {
            // The one end that is known is the value itself.
            let ends = format!("[{} … {}]", end(low, 0, f64::floor), end(high, 0, f64::ceil));
            return Shown { value: self.in_full(), spread: ends };
        }
        let even = match (down, up) {
            (Some(down), Some(up)) => down >= 0.0 && up >= 0.0 && (up - down).abs() <= 0.05 * widest,
            (_, _) => false,
        };
        let padded = (widest * (1.0 + HAIR)).min(f64::MAX);
        let first = exponent(padded);
        let digits = if even && padded < 2.0 * power(first) { 3 } else { 2 };
        // No more digits than a float has, and none behind the point of a count.
        let least = if value == 0.0 { i32::MIN } else { exponent(value) - 15 };
        let place = (first + 1 - digits).max(least).max(if self.whole { 0 } else { i32::MIN });
        let rounded = scaled(value, place, f64::round);
        let spread = if even {
            // Rounding moved the value, so the interval around it reaches a little further.
            let reach = (rounded - value).abs() + widest;
            format!("± {}", at(scaled(reach, place, f64::ceil), place))
        } else {
            format!("[{} … {}]", end(low, place, f64::floor), end(high, place, f64::ceil))
        };
        Shown { value: at(rounded, place), spread }
    }

    /// The value where nothing says how many of its digits mean something.
    pub(crate) fn in_full(&self) -> String {
        let value = self.value;
        if value == value.trunc() && value.abs() < HUGE {
            return at(value, 0);
        }
        let place = if value.is_finite() { exponent(value) - 5 } else { 0 };
        let text = at(value, place);
        let (digits, rest) = text.split_at(text.find('e').unwrap_or(text.len()));
        if digits.contains('.') { digits.trim_end_matches('0').trim_end_matches('.').to_owned() + rest } else { text }
    }
}

/// A value and its interval as people read them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Shown {
    /// `1,234`.
    pub value: String,
    /// `± 41`, `[1,190 … 1,300]`, `± ?` where nothing is known, or empty where nothing is to be said.
    pub spread: String,
}

impl Shown {
    /// Words, or a number about which there is nothing more to say.
    pub fn plain(value: impl Into<String>) -> Self {
        Self { value: value.into(), spread: String::new() }
    }

    /// Both on one line.
    pub fn line(&self) -> String {
        format!("{} {}", self.value, self.spread).trim_end().to_owned()
    }
}

/// The cells of one column, padded so that decimal points stand under decimal points and ± under ±.
pub fn column(cells: &[Shown]) -> Vec<String> {
    let values = by_point(&cells.iter().map(|cell| cell.value.as_str()).collect::<Vec<_>>());
    let reaches: Vec<&str> = cells.iter().map(|cell| cell.spread.strip_prefix("± ").unwrap_or("")).collect();
    let mut reaches = by_point(&reaches).into_iter();
    let spreads: Vec<String> = cells
        .iter()
        .map(|cell| {
            let reach = reaches.next().unwrap_or_default();
            if cell.spread.starts_with("± ") { format!("± {reach}") } else { cell.spread.clone() }
        })
        .collect();
    let widest = spreads.iter().map(|spread| spread.chars().count()).max().unwrap_or(0);
    let join = |(value, spread): (String, String)| {
        let gap = widest - spread.chars().count();
        if widest == 0 { value } else { format!("{value} {spread}{}", " ".repeat(gap)) }
    };
    values.into_iter().zip(spreads).map(join).collect()
}

/// Numbers padded to one width with their points, or their ends, under one another.
fn by_point(numbers: &[&str]) -> Vec<String> {
    let split = |number: &str| {
        let point = number.find('.').unwrap_or(number.len());
        (number[..point].chars().count(), number[point..].chars().count())
    };
    let widest = numbers.iter().map(|number| split(number)).fold((0, 0), |(a, b), (c, d)| (a.max(c), b.max(d)));
    let pad = |number: &&str| {
        let (before, behind) = split(number);
        format!("{}{number}{}", " ".repeat(widest.0 - before), " ".repeat(widest.1 - behind))
    };
    numbers.iter().map(pad).collect()
}

/// From here on digits are not written out: a float does not have them.
const HUGE: f64 = 1e15;
/// Rounding to a place stays this close to a number that is there already, in the last place's units and relatively.
const HAIR: f64 = 1e-9;

fn power(place: i32) -> f64 {
    10_f64.powi(place)
}

/// The place of the first significant digit. The number must be finite and not 0.
fn exponent(value: f64) -> i32 {
    let text = format!("{value:e}");
    text.split_once('e').and_then(|(_, exponent)| exponent.parse().ok()).unwrap_or(0)
}

/// A number rounded to a place, and left alone where it is there already but for the last bits.
fn scaled(value: f64, place: i32, round: fn(f64) -> f64) -> f64 {
    let steps = if place < 0 { value * power(-place) } else { value / power(place) };
    let near = steps.round();
    let whole = if (steps - near).abs() <= HAIR * near.abs().max(1.0) { near } else { round(steps) };
    let rounded = if place < 0 { whole / power(-place) } else { whole * power(place) };
    if rounded.is_finite() { rounded } else { value }
}

/// An end of an interval, rounded outwards.
fn end(end: Option<f64>, place: i32, outwards: fn(f64) -> f64) -> String {
    end.map_or("?".into(), |end| at(scaled(end, place, outwards), place))
}

/// A number down to a place.
fn at(value: f64, place: i32) -> String {
    if value.is_nan() {
        return "not a number".into();
    }
    if value.is_infinite() {
        return if value > 0.0 { "∞".into() } else { "-∞".into() };
    }
    if value == 0.0 {
        return if (-9..0).contains(&place) { format!("{:.*}", -place as usize, 0.0) } else { "0".into() };
    }
    if value.abs() >= HUGE || place < -9 {
        let digits = (exponent(value) - place).clamp(0, 16) as usize;
        return format!("{value:.digits$e}");
    }
    grouped(&format!("{value:.*}", (-place).max(0) as usize))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn whole(value: f64, low: f64, high: f64) -> String {
        Measure { value, low: Some(low), high: Some(high), whole: true }.shown().line()
    }

    fn any(value: f64, low: f64, high: f64) -> String {
        Measure { value, low: Some(low), high: Some(high), whole: false }.shown().line()
    }

    #[test]
    fn digits_end_where_the_interval_ends_them() {
        assert_eq!(whole(1234.0, 1193.0, 1275.0), "1,234 ± 41");
        assert_eq!(whole(1_234_567.0, 1_230_567.0, 1_238_567.0), "1,234,600 ± 4,100");
        assert_eq!(whole(12_953.0, 12_833.0, 13_073.0), "12,953 ± 120");
        assert_eq!(whole(12.0, 9.0, 15.0), "12 ± 3");
        assert_eq!(whole(12.0, 11.6, 12.4), "12 ± 1");
        assert_eq!(any(0.517_3, 0.395_1, 0.639_5), "0.517 ± 0.123");
        assert_eq!(any(42.0, 41.5, 42.5), "42.00 ± 0.50");
        assert_eq!(any(1.0 / 3.0, 1.0 / 3.0 - 1e-4, 1.0 / 3.0 + 1e-4), "0.333333 ± 0.000101");
    }

    #[test]
    fn an_uneven_interval_shows_both_ends() {
        assert_eq!(whole(1234.0, 1190.0, 1300.0), "1,234 [1,190 … 1,300]");
        assert_eq!(whole(-3.0, 0.0, 40.0), "-3 [0 … 40]");
        assert_eq!(whole(1234.0, 1190.0, f64::INFINITY), "1,234 [1,190 … ∞]");
        assert_eq!(whole(5.0, f64::NEG_INFINITY, 5.0), "5 [-∞ … 5]");
        let from = Measure { value: 1234.0, low: Some(1190.0), high: None, whole: true };
        assert_eq!(from.shown().line(), "1,234 [1,190 … ?]");
    }

    #[test]
    fn what_is_not_a_plain_interval_is_still_said() {
        assert_eq!(whole(7.0, 7.0, 7.0), "7 ± 0");
        assert_eq!(any(0.1, 0.1, 0.1), "0.1 ± 0");
        assert_eq!(any(5.0, f64::NEG_INFINITY, f64::INFINITY), "5 ± ∞");
        assert_eq!(any(f64::NAN, 1.0, 2.0), "not a number");
        assert_eq!(any(f64::INFINITY, 1.0, 2.0), "∞");
        assert_eq!(any(5.0, f64::NAN, f64::NAN), "5 ± ?");
        assert_eq!(Measure { value: 2.5, low: None, high: None, whole: false }.shown().line(), "2.5 ± ?");
    }

    #[test]
    fn negative_huge_and_tiny_numbers_are_read_like_others() {
        assert_eq!(whole(-1234.0, -1275.0, -1193.0), "-1,234 ± 41");
        assert_eq!(any(-0.001, -0.5, 0.498), "0.00 ± 0.50");
        assert_eq!(any(1.234e18, 1.193e18, 1.275e18), "1.234e18 ± 4.1e16");
        assert_eq!(any(5.0, -1e20, 1e20), "0 ± 1.00e20");
        assert_eq!(any(1.234e-12, 1.193e-12, 1.275e-12), "1.234e-12 ± 4.1e-14");
        assert_eq!(any(1e15, 1e15 - 1.0, 1e15 + 1.0), "1.000000000000000e15 ± 1");
        assert_eq!(any(1.5e15, 1.5e15, 1.5e15), "1.5e15 ± 0");
        assert_eq!(any(f64::MAX, 0.0, f64::MAX), "1.8e308 [0 … 1.8e308]");
    }

    #[test]
    fn what_is_shown_covers_what_is_known() {
        for i in 1..400 {
            let value = f64::from(i) * 17.317 - 3000.0;
            let (low, high) = (value - f64::from(i) * 0.713, value + f64::from(i) * 0.713);
            let shown = any(value, low, high);
            let (middle, reach) = shown.split_once(" ± ").expect("even");
            let read = |text: &str| text.replace(',', "").parse::<f64>().expect("a number");
            let slack = read(reach) * 1e-6;
            assert!(read(middle) - read(reach) <= low + slack, "{shown} should reach down to {low}");
            assert!(read(middle) + read(reach) >= high - slack, "{shown} should reach up to {high}");
            assert!(read(reach) <= 1.08 * (high - value), "{shown} should not exaggerate {high}");
        }
    }

    #[test]
    fn a_column_lines_up() {
        let cells = [(1234.0, 1193.0, 1275.0), (0.5, 0.1, 0.9), (9.0, 8.0, 30.0)]
            .map(|(value, low, high)| Measure { value, low: Some(low), high: Some(high), whole: false }.shown());
        assert_eq!(column(&cells), ["1,234    ± 41    ", "    0.50 ±  0.40 ", "    9    [8 … 30]"]);
        assert_eq!(column(&[Shown::plain("–"), Shown::plain("12")]), [" –", "12"]);
    }
}
