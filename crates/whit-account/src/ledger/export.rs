//! A ledger as lines of JSON, complete enough to build it again, and as a table for spreadsheets.
//!
//! An export may be shown. So it has no fingerprint of the data, no checkpoint's hash, none of the chain's hashes (they vouch for both), and no secret. What is built from it knows every
//! charge and every result, and has a chain, a secret and heads of its own; since it knows no fingerprints, it answers nothing from what was released before.

use super::chain::{ChainFault, Event, EventKind, Stop};
use super::entry::{read_progress, write_progress};
use super::error::LedgerError;
use super::format::{VERSION, genesis, hex, read_budgets, read_charge, time_text, unhex, write_budgets, write_charge};
use super::secret::UNKNOWN;
use rusqlite::types::Value;
use serde::{Deserialize, Serialize};
use serde_json::value::Value as Json;
use std::io::{self, Write};
use whit_core::Progress;

/// The first line: what it is, and how many events there are.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct First {
    pub(super) ledger: String,
    pub(super) version: i64,
    pub(super) events: u64,
}

/// One event. Which fields there are hangs on its kind.
#[derive(Serialize, Deserialize, Default)]
#[serde(deny_unknown_fields)]
pub(super) struct EventLine {
    pub(super) event: u64,
    kind: String,
    pub(super) entry: u64,
    pub(super) time: i64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    dataset: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    analyst: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    question: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    meaning: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    partition: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    charge: Option<Json>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    budgets: Option<Json>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    value: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    value_hex: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    step: Option<u64>,
}

/// What ends a line: a hash of the line and of the one before, so that what was changed on the way is found.
const CHECK: &str = ",\"check\":\"";

fn check(before: blake3::Hash, line: &str) -> blake3::Hash {
    blake3::hash(&[before.as_bytes(), line.as_bytes()].concat())
}

/// A line with its check.
fn checked(line: &str, check: blake3::Hash) -> String {
    format!("{}{CHECK}{}\"}}\n", line.strip_suffix('}').unwrap_or(line), hex(check.as_bytes()))
}

/// A line without its check, if that is right.
pub(super) fn unchecked(text: &str, before: blake3::Hash) -> Option<(String, blake3::Hash)> {
    let (line, said) = text.rsplit_once(CHECK)?;
    let line = format!("{line}}}");
    let own = check(before, &line);
    (said.strip_suffix("\"}")? == hex(own.as_bytes())).then_some((line, own))
}

/// Lines with their checks, as they are written.
pub(super) struct CheckedLines<'a> {
    out: &'a mut dyn Write,
    last: blake3::Hash,
}

impl<'a> CheckedLines<'a> {
    /// Says first what it is, and how many events there are.
    pub(super) fn begin(out: &'a mut dyn Write, events: u64) -> io::Result<Self> {
        let mut lines = Self { out, last: genesis() };
        lines.write(&First { ledger: "whit".to_owned(), version: VERSION, events })?;
        Ok(lines)
    }

    pub(super) fn write(&mut self, line: &impl Serialize) -> io::Result<()> {
        let line = serde_json::to_string(line)?;
        self.last = check(self.last, &line);
        self.out.write_all(checked(&line, self.last).as_bytes())
    }
}

/// Writes events as lines of JSON.
pub(super) fn write_events(events: &[Event], out: &mut dyn Write) -> Result<(), ExportError> {
    let mut lines = CheckedLines::begin(out, events.len() as u64)?;
    for event in events {
        let line = line(event.clone()).map_err(|stop| match stop {
            Stop::ChainFault(fault) => LedgerError::Changed(fault),
            Stop::Sqlite(error) => LedgerError::Charge(error.to_string()),
        })?;
        lines.write(&line)?;
    }
    Ok(())
}

/// Entries as a table.
pub(super) fn write_csv(entries: &[super::Entry], out: &mut dyn Write) -> Result<(), ExportError> {
    writeln!(out, "entry,time,state,dataset,analyst,question,unit,holds,cost,slices")?;
    for entry in entries {
        for (rung, cost) in entry.charge.iter() {
            let cost = serde_json::to_string(cost).map_err(io::Error::from)?;
            let texts = [&entry.dataset, &entry.analyst, &entry.question, &rung.unit.to_string()];
            let [dataset, analyst, question, unit] = texts.map(|text| quoted(text));
            let (time, state) = (time_text(entry.time), entry.state.word());
            let (number, holds, cost) = (entry.number, rung.holds, quoted(&cost));
            let slices = quoted(&rung.slices.as_ref().map_or_else(String::new, ToString::to_string));
            writeln!(out, "{number},{time},{state},{dataset},{analyst},{question},{unit},{holds},{cost},{slices}")?;
        }
    }
    Ok(())
}

/// Why an export ended early: the ledger, or where it was written to.
#[derive(Debug, thiserror::Error)]
pub enum ExportError {
    /// The ledger cannot be read.
    #[error(transparent)]
    Ledger(#[from] LedgerError),
    /// The output cannot be written.
    #[error("the export could not be written: {0}")]
    Output(#[from] io::Error),
}

/// A field for a spreadsheet.
fn quoted(text: &str) -> String {
    if text.contains(['"', ',', '\n', '\r']) { format!("\"{}\"", text.replace('"', "\"\"")) } else { text.to_owned() }
}

/// An event as it is exported.
pub(super) fn line(event: Event) -> Result<EventLine, Stop> {
    let Event { head, kind, entry, time, values } = event;
    let mut line = EventLine { event: head.events, kind: kind.word().to_owned(), entry, time, ..EventLine::default() };
    let mut values = values.into_iter();
    let mut text = || match values.next() {
        Some(Value::Text(text)) => Some(text),
        Some(Value::Blob(bytes)) => Some(hex(&bytes)),
        _ => None,
    };
    let json = |field: &str, text: Option<String>| {
        let parsed = text.map(|text| serde_json::from_str(&text)).transpose();
        parsed.map_err(|error| {
            let what = format!("cannot be read: {error}");
            ChainFault { event: Some(head.events), entry: Some(entry), field: field.to_owned(), what }
        })
    };
    match kind {
        EventKind::Reserve => {
            (line.dataset, line.analyst, line.question, line.meaning) = (text(), text(), text(), text());
            line.partition = {
                text(); // the fingerprint
                text()
            };
            (line.charge, line.budgets) = (json("charge", text())?, json("budgets", text())?);
        }
        EventKind::Commit => match values.next() {
            Some(Value::Blob(bytes)) => match String::from_utf8(bytes) {
                Ok(readable) => line.value = Some(readable),
                Err(other) => line.value_hex = Some(hex(other.as_bytes())),
            },
            _ => return Err(ChainFault::file("has a result that is none".to_owned()).into()),
        },
        EventKind::Void | EventKind::Note => line.reason = text(),
        EventKind::Progress => line.step = text().as_deref().and_then(read_progress).map(|progress| progress.step),
    }
    Ok(line)
}

/// The values of an event, in the order in which they are kept.
pub(super) fn values(line: &EventLine) -> Result<(EventKind, Vec<Value>), String> {
    let missing = |field: &str| format!("`{field}` is missing");
    let text = |field: &str, value: &Option<String>| value.clone().map(Value::Text).ok_or_else(|| missing(field));
    let kind = EventKind::of(&line.kind).ok_or_else(|| format!("`{}` is no kind of event", line.kind))?;
    let values = match kind {
        EventKind::Reserve => {
            let meaning = line.meaning.as_deref().and_then(unhex).ok_or_else(|| missing("meaning"))?;
            let charge = line.charge.as_ref().ok_or_else(|| missing("charge"))?;
            let budgets = read_budgets(&line.budgets.as_ref().ok_or_else(|| missing("budgets"))?.to_string())?;
            vec![
                text("dataset", &line.dataset)?,
                text("analyst", &line.analyst)?,
                text("question", &line.question)?,
                Value::Blob(meaning),
                Value::Text(UNKNOWN.to_owned()),
                line.partition.clone().map_or(Value::Null, Value::Text),
                Value::Text(write_charge(&read_charge(&charge.to_string())?)?),
                Value::Text(write_budgets(&budgets.iter().collect::<Vec<_>>())?),
            ]
        }
        EventKind::Commit => vec![Value::Blob(match (&line.value, &line.value_hex) {
            (Some(text), None) => text.clone().into_bytes(),
            (None, Some(hex)) => unhex(hex).ok_or_else(|| "`value_hex` is no hexadecimal".to_owned())?,
            _ => return Err(missing("value")),
        })],
        EventKind::Void | EventKind::Note => vec![text("reason", &line.reason)?],
        EventKind::Progress => {
            let step = line.step.ok_or_else(|| missing("step"))?;
            vec![Value::Text(write_progress(&Progress { step, checkpoint: String::new() }))]
        }
    };
    Ok((kind, values))
}
