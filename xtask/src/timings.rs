//! What `cargo build --timings` writes: a page with a list of units, one object each, as `const UNIT_DATA = [ … ];`.

use std::collections::BTreeMap;

/// One run of a compiler or of a build script.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Unit {
    pub(crate) name: String,
    pub(crate) seconds: f64,
}

/// The units of a report.
pub(crate) fn read(page: &str) -> Result<Vec<Unit>, String> {
    let (_, after) = page.split_once("const UNIT_DATA = [").ok_or("this is no report of `cargo build --timings`")?;
    let (list, _) = after.split_once("\n];").ok_or("the report of `cargo build --timings` breaks off")?;
    // Objects of the list begin and end on lines of their own, two blanks in; what they hold is further in.
    let units = list.split("\n  {").skip(1).map(|object| {
        let name = field(object, "name")?.trim_matches('"').to_owned();
        let seconds = field(object, "duration")?.parse().ok()?;
        Some(Unit { name, seconds })
    });
    units.collect::<Option<Vec<_>>>().ok_or_else(|| "a unit of the report has no name or no duration".to_owned())
}

/// The value of a key of an object, as it is written.
fn field<'a>(object: &'a str, key: &str) -> Option<&'a str> {
    let start = format!("\n    \"{key}\": ");
    let (_, rest) = object.split_once(&start)?;
    rest.lines().next().map(|value| value.trim_end_matches(','))
}

/// The time of each crate, all its units together, longest first.
pub(crate) fn by_crate(units: &[Unit]) -> Vec<Unit> {
    let mut sums: BTreeMap<&str, f64> = BTreeMap::new();
    for unit in units {
        *sums.entry(&unit.name).or_default() += unit.seconds;
    }
    let mut sums: Vec<Unit> = sums.into_iter().map(|(name, seconds)| Unit { name: name.to_owned(), seconds }).collect();
    sums.sort_by(|a, b| b.seconds.total_cmp(&a.seconds));
    sums
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As cargo 1.95 writes it.
    const PAGE: &str = r#"<script>
DURATION = 9;
const UNIT_DATA = [
  {
    "i": 0,
    "name": "serde",
    "version": "1.0.1",
    "mode": "run-custom-build",
    "target": " build script (run)",
    "features": ["std"],
    "start": 0.31,
    "duration": 0.36,
    "unblocked_units": [],
    "sections": null
  },
  {
    "i": 1,
    "name": "datafusion",
    "version": "55.2.0",
    "mode": "todo",
    "target": "",
    "features": [
      "sql"
    ],
    "start": 0.7,
    "duration": 61.5,
    "unblocked_units": [2],
    "sections": [
      [
        "Frontend",
        {
          "start": 0.0,
          "end": 40.0
        }
      ]
    ]
  },
  {
    "i": 2,
    "name": "serde",
    "duration": 2.5,
    "sections": null
  }
];
const CONCURRENCY_DATA = [
  {
    "t": 0.31
  }
];
"#;

    #[test]
    fn units_of_one_crate_are_added_up() {
        let units = read(PAGE).unwrap();
        assert_eq!(units.len(), 3);
        let sums = by_crate(&units);
        assert_eq!(sums[0], Unit { name: "datafusion".into(), seconds: 61.5 });
        assert_eq!((sums[1].name.as_str(), sums[1].seconds), ("serde", 2.86));
    }

    #[test]
    fn what_is_no_report_is_said_to_be_none() {
        assert!(read("<html>").unwrap_err().contains("no report"));
        assert!(read("const UNIT_DATA = [\n  {\n    \"name\": \"a\"").unwrap_err().contains("breaks off"));
        assert!(read("const UNIT_DATA = [\n  {\n    \"name\": \"a\"\n  }\n];").unwrap_err().contains("no duration"));
        assert_eq!(read("const UNIT_DATA = [\n];"), Ok(vec![]), "a build with nothing to do");
    }
}
