//! Days, as people write them.

use serde::{Serialize, Serializer};
use std::fmt;

/// A day of the calendar, from year 1 to 9999.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Day {
    year: u16,
    month: u8,
    /// Of the month.
    of_month: u8,
}

impl Day {
    /// Reads `2024-01-31`; nothing where the calendar has no such day.
    pub fn parse(text: &str) -> Option<Self> {
        let digits = |part: &str, length: usize| {
            (part.len() == length && part.bytes().all(|byte| byte.is_ascii_digit()))
                .then(|| part.parse::<u16>().ok())?
        };
        let (year, rest) = text.split_once('-')?;
        let (month, day) = rest.split_once('-')?;
        let (year, month, day) = (digits(year, 4)?, digits(month, 2)?, digits(day, 2)?);
        let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
        let last = match month {
            2 if leap => 29,
            2 => 28,
            4 | 6 | 9 | 11 => 30,
            1..=12 => 31,
            _ => return None,
        };
        let (month, day) = (u8::try_from(month).ok()?, u8::try_from(day).ok()?);
        (year >= 1 && (1..=last).contains(&day)).then_some(Self { year, month, of_month: day })
    }
}

impl fmt::Display for Day {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:04}-{:02}-{:02}", self.year, self.month, self.of_month)
    }
}

impl Serialize for Day {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Bounds, Declaration};
    use super::*;

    #[test]
    fn days_are_those_of_the_calendar() {
        for text in ["2024-02-29", "0001-01-01", "9999-12-31", "2000-02-29"] {
            assert_eq!(Day::parse(text).map(|day| day.to_string()).as_deref(), Some(text));
        }
        for text in [
            "2023-02-29",
            "1900-02-29",
            "2024-13-01",
            "2024-00-10",
            "2024-1-01",
            "0000-01-01",
            "2024-04-31",
            "+024-01-01",
            "today",
        ] {
            assert_eq!(Day::parse(text), None, "{text}");
        }
        assert!(Day::parse("2023-12-31") < Day::parse("2024-01-01"));
    }

    #[test]
    fn days_are_bounds_with_quotes_or_without() {
        let text = "[dataset.t]\nsource = 't.csv'\nunit.user = 'u'\nunit.protect = 'user'\n\
            columns.u = { type = 'timestamp', bounds = [2024-01-31, '2024-02-29'] }";
        let bounds = Declaration::parse(text).unwrap().datasets["t"].bounds("u");
        let days = Day::parse("2024-01-31").zip(Day::parse("2024-02-29"));
        assert_eq!(bounds, days.map(|(first, last)| Bounds::Days { first, last }));
    }
}
