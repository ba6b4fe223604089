//! Slices of a data set: its rows by the value of one column, of which a question may read some alone.
//!
//! Two things are said of slices, and each is said by who knows it. A question knows which slices it reads: see [`Slices`], which stand on a [`Rung`](super::Rung) of
//! its charge. A declaration knows whether a unit lies in one slice as a whole: see [`UnitDeclaration::lies_in_one_slice`](crate::declare::UnitDeclaration::lies_in_one_slice).
//! Only together do they mean that questions about different slices cost the maximum and not the sum.

use serde::{Deserialize, Serialize};
use std::fmt;

/// What the values of a column are that divides rows into slices.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SliceKind {
    /// Whole numbers.
    Number,
    /// Days, by their number since 1 January 1970.
    Day,
    /// Texts, in the order of their bytes.
    Text,
}

/// By which column rows are divided into slices.
///
/// What was said of slices under one slicing says nothing under another, not even where only the type of the column, or how it is read, is another.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Slicing {
    /// The column.
    pub column: String,
    /// What its values are.
    pub kind: SliceKind,
    /// How they are read from files, as far as that is declared: under another heading, encoding or sign for what is missing, the same rows have other values under the same name, and so lie
    /// in other slices. Empty where nothing is declared of it.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reading: String,
}

/// The value of a slice.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(untagged)]
pub enum SliceValue {
    /// A whole number, or the number of a day.
    Whole(i64),
    /// A text.
    Text(String),
}

impl SliceValue {
    fn is_of(&self, kind: SliceKind) -> bool {
        match self {
            Self::Whole(_) => matches!(kind, SliceKind::Number | SliceKind::Day),
            Self::Text(_) => kind == SliceKind::Text,
        }
    }

    /// The next whole number; nothing behind the last, nor behind a text.
    pub fn next(&self) -> Option<Self> {
        match self {
            Self::Whole(number) => number.checked_add(1).map(Self::Whole),
            Self::Text(_) => None,
        }
    }

    /// The value as people write it.
    pub fn words(&self, kind: SliceKind) -> String {
        match (self, kind) {
            (Self::Whole(number), SliceKind::Day) => day_text(*number),
            (Self::Whole(number), SliceKind::Number | SliceKind::Text) => number.to_string(),
            (Self::Text(text), _) => format!("'{text}'"),
        }
    }
}

/// A day by its number since 1 January 1970, as people write it. (Howard Hinnant, "chrono-compatible low-level date algorithms".)
fn day_text(number: i64) -> String {
    let z = i128::from(number) + 719_468;
    let (era, day_of_era) = (z.div_euclid(146_097), z.rem_euclid(146_097));
    let year = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year + year / 4 - year / 100);
    let shifted = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted + 2) / 5 + 1;
    let month = if shifted < 10 { shifted + 3 } else { shifted - 9 };
    let year = year + era * 400 + i128::from(month <= 2);
    format!("{year:04}-{month:02}-{day:02}")
}

/// Slices that follow one another: from one value to another, both included.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SliceRange {
    /// The least value; there is none where all below are in it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<SliceValue>,
    /// The largest value; there is none where all above are in it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<SliceValue>,
}

impl SliceRange {
    /// The slice of one value.
    pub fn one(value: SliceValue) -> Self {
        Self { from: Some(value.clone()), to: Some(value) }
    }

    /// What is in both; nothing where nothing is.
    #[must_use]
    pub fn and(&self, other: &Self) -> Option<Self> {
        // Where there is no least value, the other's counts, and `None` is less than all; where there is no largest, likewise.
        let from = self.from.clone().max(other.from.clone());
        let to = match (&self.to, &other.to) {
            (Some(a), Some(b)) => Some(a.min(b).clone()),
            (end, None) | (None, end) => end.clone(),
        };
        let some = from.as_ref().zip(to.as_ref()).is_none_or(|(from, to)| from <= to);
        some.then_some(Self { from, to })
    }

    /// Whether another range that begins no earlier begins in this one or right behind it.
    fn reaches(&self, next: &Self) -> bool {
        let (Some(to), Some(from)) = (&self.to, &next.from) else { return self.to.is_none() || next.from.is_none() };
        from <= to || to.next().as_ref() == Some(from)
    }

    /// The range in words: `2024-01-03`, or `2024-01-03 to 2024-01-09`.
    pub fn words(&self, kind: SliceKind) -> String {
        let words = |value: &SliceValue| value.words(kind);
        match (&self.from, &self.to) {
            (Some(from), Some(to)) if from == to => words(from),
            (Some(from), Some(to)) => format!("{} to {}", words(from), words(to)),
            (Some(from), None) => format!("{} and above", words(from)),
            (None, Some(to)) => format!("{} and below", words(to)),
            (None, None) => "every value".to_owned(),
        }
    }
}

/// The slices that a question may read: it reads no row whose value in the column lies elsewhere, and none without a value.
///
/// # What it claims
/// On two data sets that differ only in rows of which none lies in one of these slices, the question has the same law, whatever else is in the data and whatever was answered
/// before. Whoever puts it on a rung has seen to that.
///
/// ```
/// use whit_core::unit::{SliceKind, SliceRange, SliceValue, Slices, Slicing};
/// let slicing = Slicing { column: "day".into(), kind: SliceKind::Day, reading: String::new() };
/// let day = |number| SliceRange::one(SliceValue::Whole(number));
/// let slices = Slices::new(slicing, vec![day(19_726), day(19_725), day(19_730)]).unwrap();
/// assert_eq!(slices.to_string(), "day = 2024-01-03 to 2024-01-04, 2024-01-08");
/// ```
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "SlicesDraft")]
pub struct Slices {
    slicing: Slicing,
    ranges: Vec<SliceRange>,
}

impl Slices {
    /// These slices, in whichever order they are given and however often; nothing where there are none, or one is of another kind.
    pub fn new(slicing: Slicing, mut ranges: Vec<SliceRange>) -> Option<Self> {
        let fits = |value: &Option<SliceValue>| value.as_ref().is_none_or(|value| value.is_of(slicing.kind));
        let sound = |range: &SliceRange| {
            let ends = range.from.as_ref().zip(range.to.as_ref());
            fits(&range.from) && fits(&range.to) && ends.is_none_or(|(from, to)| from <= to)
        };
        if ranges.is_empty() || !ranges.iter().all(sound) {
            return None;
        }
        ranges.sort();
        let mut merged: Vec<SliceRange> = Vec::new();
        for range in ranges {
            match merged.last_mut().filter(|last| last.reaches(&range)) {
                Some(last) => {
                    last.to = last.to.take().zip(range.to).map(|(a, b)| a.max(b));
                }
                None => merged.push(range),
            }
        }
        Some(Self { slicing, ranges: merged })
    }

    /// By which column.
    pub fn slicing(&self) -> &Slicing {
        &self.slicing
    }

    /// The slices, in order and apart.
    pub fn ranges(&self) -> &[SliceRange] {
        &self.ranges
    }
}

impl fmt::Display for Slices {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        /// More are counted.
        const NAMED: usize = 5;
        let words: Vec<String> = self.ranges.iter().take(NAMED).map(|range| range.words(self.slicing.kind)).collect();
        write!(f, "{} = {}", self.slicing.column, words.join(", "))?;
        match self.ranges.len().saturating_sub(NAMED) {
            0 => Ok(()),
            more => write!(f, " and {more} more"),
        }
    }
}

/// Slices as they stand in a file, before it is known that they make sense.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct SlicesDraft {
    slicing: Slicing,
    ranges: Vec<SliceRange>,
}

impl TryFrom<SlicesDraft> for Slices {
    type Error = String;

    fn try_from(SlicesDraft { slicing, ranges }: SlicesDraft) -> Result<Self, String> {
        let column = slicing.column.clone();
        let made = Self::new(slicing, ranges.clone());
        made.filter(|slices| slices.ranges == ranges).ok_or_else(|| format!("`{column}` has slices that are none"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn range(from: Option<i64>, to: Option<i64>) -> SliceRange {
        SliceRange { from: from.map(SliceValue::Whole), to: to.map(SliceValue::Whole) }
    }

    fn numbers(ranges: Vec<SliceRange>) -> Option<Slices> {
        Slices::new(Slicing { column: "n".to_owned(), kind: SliceKind::Number, reading: String::new() }, ranges)
    }

    fn text(from: &str, to: &str) -> SliceRange {
        SliceRange { from: Some(SliceValue::Text(from.to_owned())), to: Some(SliceValue::Text(to.to_owned())) }
    }

    /// Every set of small numbers, as ranges in any cut, is the same slices, and what is in two of them is in their intersection.
    #[test]
    fn slices_are_sets_however_they_are_written() {
        let within = |slices: &[SliceRange], n: i64| {
            let point = SliceRange::one(SliceValue::Whole(n));
            slices.iter().any(|range| range.and(&point).is_some())
        };
        let choices = [
            range(None, Some(1)),
            range(Some(0), Some(2)),
            range(Some(2), Some(2)),
            range(Some(3), Some(5)),
            range(Some(5), None),
            range(None, None),
        ];
        for a in 0..1_usize << choices.len() {
            let chosen: Vec<SliceRange> =
                choices.iter().enumerate().filter(|(i, _)| (a >> i) & 1 == 1).map(|(_, range)| range.clone()).collect();
            let Some(slices) = numbers(chosen.clone()) else {
                assert!(chosen.is_empty());
                continue;
            };
            for n in -3..9 {
                assert_eq!(within(slices.ranges(), n), within(&chosen, n), "{chosen:?} at {n}");
            }
            let apart = slices.ranges().windows(2).all(|pair| !pair[0].reaches(&pair[1]));
            assert!(apart, "{slices}");
            let written = serde_json::to_string(&slices).unwrap();
            assert_eq!(serde_json::from_str::<Slices>(&written).unwrap(), slices);
        }
        for (a, b) in choices.iter().flat_map(|a| choices.iter().map(move |b| (a, b))) {
            let both: Vec<SliceRange> = a.and(b).into_iter().collect();
            for n in -3..9 {
                let each = within(std::slice::from_ref(a), n) && within(std::slice::from_ref(b), n);
                assert_eq!(within(&both, n), each, "{a:?} and {b:?} at {n}");
            }
        }
    }

    #[test]
    fn slices_of_another_kind_upside_down_or_none_are_refused() {
        assert!(numbers(Vec::new()).is_none());
        assert!(numbers(vec![range(Some(2), Some(1))]).is_none());
        assert!(numbers(vec![text("a", "b")]).is_none());
        for wrong in [
            r#"{"slicing":{"column":"n","kind":"number"},"ranges":[]}"#,
            r#"{"slicing":{"column":"n","kind":"number"},"ranges":[{"from":"a","to":"a"}]}"#,
            r#"{"slicing":{"column":"n","kind":"day"},"ranges":[{"from":3,"to":3},{"from":1,"to":1}]}"#,
            r#"{"slicing":{"column":"n","kind":"day"},"ranges":[{"from":3,"to":3,"more":1}]}"#,
        ] {
            assert!(serde_json::from_str::<Slices>(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn slices_read_as_people_write_values() {
        let region = Slicing { column: "region".to_owned(), kind: SliceKind::Text, reading: String::new() };
        let slices = Slices::new(region, vec![text("de", "de"), text("at", "at")]).unwrap();
        assert_eq!(slices.to_string(), "region = 'at', 'de'");
        let many = numbers((0..9).map(|n| range(Some(2 * n), Some(2 * n))).collect()).unwrap();
        assert_eq!(many.to_string(), "n = 0, 2, 4, 6, 8 and 4 more");
        assert_eq!(numbers(vec![range(Some(3), None)]).unwrap().to_string(), "n = 3 and above");
        for (number, day) in [(0, "1970-01-01"), (19_782, "2024-02-29"), (-1, "1969-12-31"), (47_541, "2100-03-01")] {
            assert_eq!(SliceValue::Whole(number).words(SliceKind::Day), day);
        }
    }
}
