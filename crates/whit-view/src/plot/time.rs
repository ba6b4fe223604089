//! Dates and times on an axis: read from text, and marked where people look for marks.
//!
//! Times are seconds since 1970-01-01 in the Gregorian calendar, without leap seconds or zones.

/// The seconds of a day.
const DAY: i64 = 86_400;
const MONTHS: [&str; 12] = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

/// Reads `2024-03`, `2024-03-09`, and either a blank or a `T` with `HH:MM`, `HH:MM:SS` and decimals behind a date.
pub(crate) fn read(text: &str) -> Option<f64> {
    let text = text.trim().trim_end_matches('Z').trim_end_matches("+00:00");
    let (date, time) = text.split_once(['T', ' ']).map_or((text, None), |(date, time)| (date, Some(time)));
    let mut parts = date.split('-');
    let year: i64 = digits(parts.next()?, 4..=4)?;
    let month = digits(parts.next()?, 2..=2)?;
    let day = parts.next();
    let known = day.map_or(Some(1), |day| digits(day, 2..=2))?;
    if parts.next().is_some() || !(1..=12).contains(&month) || !(1..=days_in(year, month)).contains(&known) {
        return None;
    }
    let days = days_from(year, month, known) as f64;
    let Some(time) = time else { return Some(days * DAY as f64) };
    day?;
    let mut parts = time.split(':');
    let (hour, minute) = (digits(parts.next()?, 2..=2)?, digits(parts.next()?, 2..=2)?);
    let second: f64 = match parts.next() {
        Some(second) if second.starts_with(|c: char| c.is_ascii_digit()) => second.parse().ok()?,
        Some(_) => return None,
        None => 0.0,
    };
    if parts.next().is_some() || !(0..24).contains(&hour) || !(0..60).contains(&minute) || second >= 60.0 {
        return None;
    }
    Some(days.mul_add(DAY as f64, (hour * 3600 + minute * 60) as f64) + second)
}

/// Writes a time the way [`read`] reads it: a date, and the time of day unless that is midnight.
pub(crate) fn write(at: f64) -> String {
    let at = at.clamp(-3e11, 3e11).round() as i64;
    let ((year, month, day), of_day) = (date(at.div_euclid(DAY)), at.rem_euclid(DAY));
    let (hour, minute, second) = (of_day / 3600, of_day / 60 % 60, of_day % 60);
    let time = match (of_day, second) {
        (0, _) => String::new(),
        (_, 0) => format!(" {hour:02}:{minute:02}"),
        (_, _) => format!(" {hour:02}:{minute:02}:{second:02}"),
    };
    format!("{year:04}-{month:02}-{day:02}{time}")
}

/// A number of so many digits and nothing else.
fn digits(text: &str, count: std::ops::RangeInclusive<usize>) -> Option<i64> {
    let plain = count.contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit());
    if plain { text.parse().ok() } else { None }
}

/// A mark on an axis of time.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct TickMark {
    /// Where it stands.
    pub(crate) at: f64,
    /// What changes from mark to mark: the hour, the day, the month.
    pub(crate) label: String,
    /// What seldom changes, where it is new: the day, the year.
    pub(crate) under: Option<String>,
}

/// How far marks are apart.
#[derive(Clone, Copy)]
enum TickStep {
    Seconds(i64),
    Months(i64),
}

const STEPS: [TickStep; 30] = [
    TickStep::Seconds(1),
    TickStep::Seconds(5),
    TickStep::Seconds(15),
    TickStep::Seconds(30),
    TickStep::Seconds(60),
    TickStep::Seconds(300),
    TickStep::Seconds(900),
    TickStep::Seconds(1800),
    TickStep::Seconds(3600),
    TickStep::Seconds(3 * 3600),
    TickStep::Seconds(6 * 3600),
    TickStep::Seconds(12 * 3600),
    TickStep::Seconds(DAY),
    TickStep::Seconds(2 * DAY),
    TickStep::Seconds(7 * DAY),
    TickStep::Seconds(14 * DAY),
    TickStep::Months(1),
    TickStep::Months(2),
    TickStep::Months(3),
    TickStep::Months(6),
    TickStep::Months(12),
    TickStep::Months(24),
    TickStep::Months(60),
    TickStep::Months(120),
    TickStep::Months(240),
    TickStep::Months(600),
    TickStep::Months(1200),
    TickStep::Months(2400),
    TickStep::Months(6000),
    TickStep::Months(12_000),
];

/// Marks inside `low..=high`, at most `wanted` or so, at full hours, days, weeks, months or years.
pub(crate) fn marks(low: f64, high: f64, wanted: u32) -> Vec<TickMark> {
    let wanted = f64::from(wanted.max(2));
    let fits = |step: &&TickStep| {
        let seconds = match step {
            TickStep::Seconds(seconds) => *seconds as f64,
            TickStep::Months(months) => *months as f64 * 30.44 * DAY as f64,
        };
        (high - low) / seconds <= wanted
    };
    let step = *STEPS.iter().find(fits).unwrap_or(&STEPS[STEPS.len() - 1]);
    let mut marks: Vec<TickMark> = Vec::new();
    let mut seen = None;
    for at in places(step, low, high) {
        let (label, under) = label(step, at);
        let new = (seen.as_ref() != Some(&under)).then(|| under.clone()).filter(|under| !under.is_empty());
        seen = Some(under);
        marks.push(TickMark { at: at as f64, label, under: new });
    }
    marks
}

fn places(step: TickStep, low: f64, high: f64) -> Vec<i64> {
    // A calendar beyond these years is not one that people use; the range keeps a bad value from looping.
    let (low, high) = (low.max(-3e11).ceil() as i64, high.min(3e11).floor() as i64);
    match step {
        TickStep::Seconds(seconds) => {
            let origin = if seconds % (7 * DAY) == 0 { 4 * DAY } else { 0 }; // weeks start on a Monday
            let (first, last) = ((low - origin).div_euclid(seconds), (high - origin).div_euclid(seconds));
            (first..=last).map(|i| i * seconds + origin).filter(|&at| at >= low).collect()
        }
        TickStep::Months(months) => {
            let step_of = |at: i64| {
                let (year, month, _) = date(at.div_euclid(DAY));
                (year * 12 + month - 1).div_euclid(months)
            };
            let at = |i: i64| days_from((i * months).div_euclid(12), (i * months).rem_euclid(12) + 1, 1) * DAY;
            (step_of(low)..=step_of(high)).map(at).filter(|&at| at >= low).collect()
        }
    }
}

/// The mark's own label and what stands under it.
fn label(step: TickStep, at: i64) -> (String, String) {
    let (year, month, day) = date(at.div_euclid(DAY));
    let name = MONTHS[(month - 1) as usize];
    let (hour, minute, second) = (at.rem_euclid(DAY) / 3600, at.rem_euclid(3600) / 60, at.rem_euclid(60));
    match step {
        TickStep::Months(months) if months >= 12 => (year.to_string(), String::new()),
        TickStep::Months(_) => (name.to_owned(), year.to_string()),
        TickStep::Seconds(seconds) if seconds >= DAY => (format!("{day} {name}"), year.to_string()),
        TickStep::Seconds(seconds) if seconds >= 60 => {
            (format!("{hour:02}:{minute:02}"), format!("{day} {name} {year}"))
        }
        TickStep::Seconds(_) => (format!("{hour:02}:{minute:02}:{second:02}"), format!("{day} {name} {year}")),
    }
}

fn days_in(year: i64, month: i64) -> i64 {
    let next = if month == 12 { (year + 1, 1) } else { (year, month + 1) };
    days_from(next.0, next.1, 1) - days_from(year, month, 1)
}

/// Days since 1970-01-01. Counts in years that start in March, so that the odd day comes last (Hinnant's
/// `days_from_civil`).
fn days_from(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let of_era = year.rem_euclid(400);
    let of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719_468
}

/// Year, month and day, the other way round.
fn date(days: i64) -> (i64, i64, i64) {
    let days = days + 719_468;
    let era = days.div_euclid(146_097);
    let of_era = days.rem_euclid(146_097);
    let year = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let march = (5 * of_year + 2) / 153;
    let (day, month) = (of_year - (153 * march + 2) / 5 + 1, if march < 10 { march + 3 } else { march - 9 });
    (year + era * 400 + i64::from(month <= 2), month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_day_has_one_date() {
        let mut before = date(-200_001);
        for days in -200_000..200_000 {
            let now = date(days);
            assert_eq!(days_from(now.0, now.1, now.2), days);
            assert!(now > before && now.2 <= days_in(now.0, now.1), "{before:?} {now:?}");
            before = now;
        }
        assert_eq!(date(19_782), (2024, 2, 29));
    }

    #[test]
    fn dates_and_times_are_read_and_nothing_else() {
        assert_eq!(read("1970-01-01"), Some(0.0));
        assert_eq!(read("2024-02-29T12:30:15.5"), Some(19_782.0 * 86_400.0 + 45_015.5));
        assert_eq!(read("2024-02-29 12:30Z"), Some(19_782.0 * 86_400.0 + 45_000.0));
        assert_eq!(read("2024-03"), Some(19_783.0 * 86_400.0));
        for text in ["1969-12-31", "2024-02-29 12:30", "2024-02-29 23:59:59"] {
            assert_eq!(write(read(text).unwrap()), text);
        }
        let wrong = ["", "2024", "2023-02-29", "2024-13-01", "24-01-01", "2024-1-1", "2024-01-01T25:00", "a-b-c"];
        for text in wrong.into_iter().chain(["2024-01-01-01", "2024-01T10:00", "2024-01-01 10:00:nan", "+024-01-01"]) {
            assert_eq!(read(text), None, "{text}");
        }
    }

    #[test]
    fn marks_stand_where_people_look_for_them() {
        let of = |from: &str, to: &str| -> Vec<String> {
            let show =
                |mark: TickMark| mark.under.map_or(mark.label.clone(), |under| format!("{}/{under}", mark.label));
            marks(read(from).unwrap(), read(to).unwrap(), 8).into_iter().map(show).collect()
        };
        assert_eq!(of("2023-11-01", "2024-03-31"), ["Nov/2023", "Dec", "Jan/2024", "Feb", "Mar"]);
        assert_eq!(of("2024-03-01T00:00", "2024-03-02T00:00")[..2], ["00:00/1 Mar 2024", "03:00"]);
        assert_eq!(of("1999-05-01", "2030-01-01"), ["2000", "2005", "2010", "2015", "2020", "2025", "2030"]);
        assert_eq!(of("2024-01-01", "2024-01-29"), ["1 Jan/2024", "8 Jan", "15 Jan", "22 Jan", "29 Jan"]);
        assert!(marks(0.0, 1e300, 8).len() < 200, "a bad value does not loop");
    }
}
