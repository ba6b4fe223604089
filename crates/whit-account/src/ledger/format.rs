//! What a ledger looks like on disk: the tables, the texts in them, and the hashes that chain them.
//!
//! What outlives a process carries a version. [`VERSION`] is the file's; a charge says its own besides, since it is what a
//! later accountant reads again. A test reads a file of each version ever written.

use super::budget::Budget;
use rusqlite::types::ValueRef;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use whit_core::{Charge, Cost, Rung};

/// The format that is written. Format 1 had no secret, no progress and no head outside of the file; it is brought up to date when it is opened. Format 2 had no slices, in
/// charges and budgets: a ledger of it is read as it is, and is one of format 3 from the next event on that is written, so that programs which know nothing of slices
/// do not read it.
pub(super) const VERSION: i64 = 3;

/// The first format that is not brought up to date when it is opened.
pub(super) const SINCE_SECRET: i64 = 2;

/// "whit", where SQLite files say which program they belong to.
pub(super) const APPLICATION: i64 = 0x7768_6974;

/// The version of a charge as text. In the first no rung has slices, and a charge without any is still written so.
const CHARGE_VERSIONS: [u32; 2] = [1, 2];

fn version_of(charge: &Charge) -> u32 {
    CHARGE_VERSIONS[usize::from(charge.iter().any(|(rung, _)| rung.slices.is_some()))]
}

/// The tables. Rows of the first three are never changed; the triggers are there against accidents, the hashes against the rest. There is no
/// index: one that is damaged would hide what is there, and nothing but a look at all of it would tell.
pub(super) const SCHEMA: &str = "
CREATE TABLE entries (
    number INTEGER PRIMARY KEY,
    dataset TEXT NOT NULL,
    analyst TEXT NOT NULL,
    question TEXT NOT NULL,
    meaning BLOB NOT NULL,
    fingerprint TEXT NOT NULL,
    partition_hash TEXT,
    charge TEXT NOT NULL,
    budgets TEXT NOT NULL
) STRICT;
CREATE TABLE results (
    entry INTEGER PRIMARY KEY,
    value BLOB NOT NULL
) STRICT;
CREATE TABLE events (
    sequence INTEGER PRIMARY KEY,
    kind TEXT NOT NULL,
    entry INTEGER NOT NULL,
    time INTEGER NOT NULL,
    reason TEXT,
    digests BLOB NOT NULL,
    hash BLOB NOT NULL
) STRICT;
CREATE TABLE head (
    id INTEGER PRIMARY KEY CHECK (id = 1),
    events INTEGER NOT NULL,
    hash BLOB NOT NULL
) STRICT;
CREATE TRIGGER entries_stay BEFORE UPDATE ON entries BEGIN SELECT RAISE(ABORT, 'a ledger only grows'); END;
CREATE TRIGGER entries_last BEFORE DELETE ON entries BEGIN SELECT RAISE(ABORT, 'a ledger only grows'); END;
CREATE TRIGGER results_stay BEFORE UPDATE ON results BEGIN SELECT RAISE(ABORT, 'a ledger only grows'); END;
CREATE TRIGGER results_last BEFORE DELETE ON results BEGIN SELECT RAISE(ABORT, 'a ledger only grows'); END;
CREATE TRIGGER events_stay BEFORE UPDATE ON events BEGIN SELECT RAISE(ABORT, 'a ledger only grows'); END;
CREATE TRIGGER events_last BEFORE DELETE ON events BEGIN SELECT RAISE(ABORT, 'a ledger only grows'); END;
";

/// What format 2 has besides. Rows of `files` and `sources` are no part of the chain; `sound` is a hash of the rest of a row, under the secret.
pub(super) const SINCE_2: &str = "
CREATE TABLE secret (
    id INTEGER PRIMARY KEY CHECK (id = 1),
    ledger BLOB NOT NULL,
    key BLOB NOT NULL,
    sound BLOB NOT NULL
) STRICT;
CREATE TABLE files (
    path TEXT PRIMARY KEY,
    size INTEGER NOT NULL,
    modified INTEGER NOT NULL,
    hash TEXT NOT NULL,
    sound BLOB NOT NULL
) STRICT;
CREATE TABLE sources (
    dataset TEXT PRIMARY KEY,
    fingerprint TEXT NOT NULL,
    sound BLOB NOT NULL
) STRICT;
";

/// What goes when a ledger of format 1 is brought up to date. Hashes of files are made again.
pub(super) const UNTIL_1: &str = "
DROP INDEX entries_by_meaning;
DROP INDEX events_by_entry;
DROP TABLE files;
";

/// The hash that the first event follows.
pub(super) fn genesis() -> blake3::Hash {
    blake3::hash(b"whit ledger, format 1")
}

/// The hash of an event: of the one before, its place, and the digests of its fields.
pub(super) fn link(previous: &blake3::Hash, sequence: i64, digests: &[u8]) -> blake3::Hash {
    let mut hasher = blake3::Hasher::new();
    hasher.update(previous.as_bytes()).update(&sequence.to_le_bytes()).update(digests);
    hasher.finalize()
}

/// The digest of one field: its name, its type and its bytes.
pub(super) fn digest(name: &str, value: ValueRef<'_>) -> blake3::Hash {
    let mut hasher = blake3::Hasher::new();
    hasher.update(&(name.len() as u64).to_le_bytes()).update(name.as_bytes());
    match value {
        ValueRef::Null => hasher.update(&[0]),
        ValueRef::Integer(number) => hasher.update(&[1]).update(&number.to_le_bytes()),
        ValueRef::Real(number) => hasher.update(&[2]).update(&number.to_bits().to_le_bytes()),
        ValueRef::Text(bytes) => hasher.update(&[3]).update(bytes),
        ValueRef::Blob(bytes) => hasher.update(&[4]).update(bytes),
    };
    hasher.finalize()
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct ChargeText<'a> {
    version: u32,
    rungs: Vec<RungText<'a>>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct RungText<'a> {
    rung: Cow<'a, Rung>,
    cost: Cow<'a, Cost>,
}

/// A charge as text, which reads back as the charge itself or as one that costs the same.
pub(super) fn write_charge(charge: &Charge) -> Result<String, String> {
    let rungs =
        charge.iter().map(|(rung, cost)| RungText { rung: Cow::Borrowed(rung), cost: writable(cost) }).collect();
    let text = ChargeText { version: version_of(charge), rungs };
    let written = serde_json::to_string(&text).map_err(|error| error.to_string())?;
    let read = read_charge(&written)?;
    let same = read.iter().zip(&text.rungs).all(|((rung, cost), kept)| *rung == *kept.rung && *cost == *kept.cost);
    if same { Ok(written) } else { Err("it has a number that text does not keep".to_owned()) }
}

/// Reads a charge that [`write_charge`] wrote, and checks every number in it.
pub(super) fn read_charge(text: &str) -> Result<Charge, String> {
    #[derive(Deserialize)]
    struct Version {
        version: u32,
    }
    let Version { version } = serde_json::from_str(text).map_err(|error| error.to_string())?;
    if !CHARGE_VERSIONS.contains(&version) {
        let [first, last] = CHARGE_VERSIONS;
        return Err(format!("it has version {version}, and this whit reads versions {first} and {last}"));
    }
    let text: ChargeText<'_> = serde_json::from_str(text).map_err(|error| error.to_string())?;
    let charge: Charge = text.rungs.into_iter().map(|r| (r.rung.into_owned(), r.cost.into_owned())).collect();
    for (_, cost) in &charge {
        cost.validate().map_err(|error| error.to_string())?;
    }
    if version_of(&charge) != version {
        return Err(format!("it has version {version}, and is written as one of version {}", version_of(&charge)));
    }
    Ok(charge)
}

/// JSON has no infinity. What protects nothing is `Everything`, what is drowned in noise is `Nothing`, and both can be written.
fn writable(cost: &Cost) -> Cow<'_, Cost> {
    let exposed = |number: f64| if number == f64::INFINITY { Some(Cost::Everything) } else { None };
    let drowned = |number: f64| if number == f64::INFINITY { Some(Cost::Nothing) } else { None };
    let instead = match cost {
        Cost::Nothing | Cost::Everything => None,
        Cost::Pure { epsilon } | Cost::BoundedRange { epsilon } | Cost::Approximate { epsilon, .. } => {
            exposed(epsilon.get())
        }
        Cost::Concentrated { rho } => exposed(rho.get()),
        Cost::Gaussian { noise } => drowned(*noise),
        Cost::Laplace { scale } | Cost::Geometric { scale, .. } => drowned(*scale),
        Cost::Sampled(step) => drowned(step.noise),
        Cost::Chosen { candidates, law } => Some(Cost::Chosen {
            candidates: candidates.iter().map(|cost| writable(cost).into_owned()).collect(),
            law: *law,
        }),
        Cost::Repeat { times, cost } => Some(writable(cost).into_owned().repeat(*times)),
        Cost::Series(costs) => Some(Cost::Series(costs.iter().map(|cost| writable(cost).into_owned()).collect())),
    };
    instead.map_or(Cow::Borrowed(cost), Cow::Owned)
}

/// The budgets that were in force, as text.
pub(super) fn write_budgets(budgets: &[&Budget]) -> Result<String, String> {
    if budgets.iter().any(|budget| !budget.epsilon.is_finite() || !budget.delta.is_finite()) {
        return Err("a budget's ε and δ are finite numbers".to_owned());
    }
    serde_json::to_string(budgets).map_err(|error| error.to_string())
}

/// Reads what [`write_budgets`] wrote.
pub(super) fn read_budgets(text: &str) -> Result<Vec<Budget>, String> {
    serde_json::from_str(text).map_err(|error| error.to_string())
}

/// What stands for a question's meaning: the hash of its canonical text.
pub(super) fn meaning_hash(meaning: &str) -> blake3::Hash {
    blake3::hash(meaning.as_bytes())
}

/// Bytes in hexadecimal.
pub(super) fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write;
    bytes.iter().fold(String::with_capacity(2 * bytes.len()), |mut text, byte| {
        let _ = write!(text, "{byte:02x}"); // a string takes everything
        text
    })
}

/// Reads [`hex`].
pub(super) fn unhex(text: &str) -> Option<Vec<u8>> {
    if !text.is_ascii() || !text.len().is_multiple_of(2) {
        return None;
    }
    (0..text.len()).step_by(2).map(|i| u8::from_str_radix(&text[i..i + 2], 16).ok()).collect()
}

/// A ledger's time, in milliseconds since 1970, as people write it, in UTC.
///
/// ```
/// use whit_account::ledger::time_text;
/// assert_eq!(time_text(0), "1970-01-01 00:00:00");
/// assert_eq!(time_text(1_709_210_096_789), "2024-02-29 12:34:56");
/// ```
pub fn time_text(milliseconds: i64) -> String {
    let seconds = milliseconds.div_euclid(1000);
    let (days, rest) = (seconds.div_euclid(86_400), seconds.rem_euclid(86_400));
    // Days from 1 March of year 0, in eras of 400 years (Howard Hinnant, "chrono-compatible low-level date algorithms").
    let z = days + 719_468;
    let (era, day_of_era) = (z.div_euclid(146_097), z.rem_euclid(146_097));
    let year = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year + year / 4 - year / 100);
    let shifted = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted + 2) / 5 + 1;
    let month = if shifted < 10 { shifted + 3 } else { shifted - 9 };
    let year = year + era * 400 + i64::from(month <= 2);
    let (hour, minute, second) = (rest / 3600, rest / 60 % 60, rest % 60);
    format!("{year:04}-{month:02}-{day:02} {hour:02}:{minute:02}:{second:02}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use whit_core::{Change, Delta, Draw, Epsilon, Rho, RunLaw, Sampled, Sampling, Unit};

    fn rung() -> Rung {
        Rung { unit: Unit::user("id", Change::Replace), holds: 3, disjoint: true, slices: None }
    }

    #[test]
    fn every_kind_of_cost_is_read_back_as_it_was_written() {
        let epsilon = Epsilon::new(0.1).unwrap();
        let step = Sampled {
            noise: 1.1,
            rate: 0.01,
            sampling: Sampling::Fixed,
            draw: Draw::User { elements: 7 },
            change: Change::AddRemove,
            difference: 1.5,
            holds: 7,
        };
        let costs = vec![
            Cost::Nothing,
            Cost::Everything,
            Cost::Pure { epsilon },
            Cost::Approximate { epsilon, delta: Delta::new(1e-9).unwrap() },
            Cost::Concentrated { rho: Rho::new(1.0 / 3.0).unwrap() },
            Cost::Gaussian { noise: 2.0_f64.sqrt() },
            Cost::Laplace { scale: 1e-300 },
            Cost::Geometric { shift: u64::MAX, scale: 20.0 },
            Cost::BoundedRange { epsilon },
            Cost::Sampled(step).repeat(u64::MAX),
            Cost::Chosen {
                candidates: vec![Cost::Sampled(step).repeat(7), Cost::Pure { epsilon }],
                law: RunLaw::Logarithmic { spread: 1.0 / 3.0 },
            },
            Cost::Chosen { candidates: vec![Cost::Nothing], law: RunLaw::Geometric { stop: 0.1 } },
        ];
        let charge = vec![(rung(), Cost::Series(costs)), (rung(), Cost::Nothing)];
        assert_eq!(read_charge(&write_charge(&charge).unwrap()).unwrap(), charge);
    }

    #[test]
    fn what_json_cannot_write_is_written_as_what_it_means() {
        let infinite =
            Cost::Series(vec![Cost::Pure { epsilon: Epsilon::INFINITE }, Cost::Gaussian { noise: f64::INFINITY }]);
        let text = write_charge(&vec![(rung(), infinite)]).unwrap();
        assert_eq!(read_charge(&text).unwrap()[0].1, Cost::Series(vec![Cost::Everything, Cost::Nothing]));
        assert!(write_charge(&vec![(rung(), Cost::Gaussian { noise: f64::NAN })]).is_err());
        assert!(write_charge(&vec![(rung(), Cost::Gaussian { noise: -1.0 })]).is_err());
        assert!(read_charge(r#"{"version":3,"rungs":[]}"#).unwrap_err().contains("version 3"));
        assert!(read_charge(r#"{"version":1,"rungs":[],"more":1}"#).is_err());
    }

    /// The words stand in ledgers: what was written once is read as that, and nothing else is.
    #[test]
    fn slices_are_written_into_a_charge_of_their_own_version() {
        use whit_core::unit::{SliceKind, SliceRange, SliceValue, Slices, Slicing};
        let slicing = Slicing { column: "day".to_owned(), kind: SliceKind::Day, reading: String::new() };
        let slices = Slices::new(slicing, vec![SliceRange::one(SliceValue::Whole(19_725))]);
        let charge = vec![(Rung { slices, ..rung() }, Cost::Nothing), (rung(), Cost::Everything)];
        let text = write_charge(&charge).unwrap();
        let kept = r#""slices":{"slicing":{"column":"day","kind":"day"},"ranges":[{"from":19725,"to":19725}]}"#;
        assert!(text.starts_with(r#"{"version":2,"#) && text.contains(kept), "{text}");
        assert_eq!(read_charge(&text).unwrap(), charge);
        assert!(
            read_charge(&text.replacen("\"version\":2", "\"version\":1", 1)).is_err(),
            "the first version has no slices"
        );
        let plain = write_charge(&vec![(rung(), Cost::Nothing)]).unwrap();
        assert!(plain.starts_with(r#"{"version":1,"#) && !plain.contains("slices"), "{plain}");
    }

    #[test]
    fn fields_that_differ_in_name_type_or_bytes_have_different_digests() {
        let digests = [
            digest("a", ValueRef::Null),
            digest("b", ValueRef::Null),
            digest("a", ValueRef::Text(b"")),
            digest("a", ValueRef::Blob(b"")),
            digest("a", ValueRef::Text(b"1")),
            digest("a", ValueRef::Integer(1)),
            digest("a", ValueRef::Integer(2)),
        ];
        for (i, one) in digests.iter().enumerate() {
            assert!(digests[..i].iter().all(|other| other != one), "{i}");
        }
    }

    #[test]
    fn hexadecimal_is_read_back() {
        let bytes: Vec<u8> = (0..=255).collect();
        assert_eq!(unhex(&hex(&bytes)).unwrap(), bytes);
        assert!(unhex("abc").is_none() && unhex("zz").is_none() && unhex("é").is_none());
    }

    #[test]
    fn times_are_written_across_leap_years_and_centuries() {
        assert_eq!(time_text(-1), "1969-12-31 23:59:59");
        assert_eq!(time_text(951_782_400_000), "2000-02-29 00:00:00");
        assert_eq!(time_text(4_107_542_400_000), "2100-03-01 00:00:00");
    }
}
