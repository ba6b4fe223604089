//! A ledger as lines of JSON, complete enough to build it again, and as a table for spreadsheets.
//!
//! An export may be shown. So it has no fingerprint of the data, no checkpoint's hash, none of the chain's hashes (they vouch for both), and no secret. What is built from it knows every
//! charge and every result, and has a chain, a secret and heads of its own; since it knows no fingerprints, it answers nothing from what was released before.

use super::chain::{ChainFault, Event, EventKind, Head, New, Stop, append, check_head, read_head, walk};
use super::entry::{EntriesSeen, read_progress, write_progress};
use super::error::LedgerError;
use super::format::{VERSION, genesis, hex, read_budgets, read_charge, time_text, unhex, write_budgets, write_charge};
use super::secret::UNKNOWN;
use super::sqlite::Books;
use rusqlite::types::Value;
use serde::{Deserialize, Serialize};
use serde_json::value::Value as Json;
use std::io::{self, BufRead, Write};
use std::path::Path;
use whit_core::Progress;

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct First {
    ledger: String,
    version: i64,
    events: u64,
}

/// One event. Which fields there are hangs on its kind.
#[derive(Serialize, Deserialize, Default)]
#[serde(deny_unknown_fields)]
struct EventLine {
    event: u64,
    kind: String,
    entry: u64,
    time: i64,
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
fn unchecked(text: &str, before: blake3::Hash) -> Option<(String, blake3::Hash)> {
    let (line, said) = text.rsplit_once(CHECK)?;
    let line = format!("{line}}}");
    let own = check(before, &line);
    (said.strip_suffix("\"}")? == hex(own.as_bytes())).then_some((line, own))
}

/// Lines with their checks, as they are written.
struct CheckedLines<'a> {
    out: &'a mut dyn Write,
    last: blake3::Hash,
}

impl<'a> CheckedLines<'a> {
    /// Says first what it is, and how many events there are.
    fn begin(out: &'a mut dyn Write, events: u64) -> io::Result<Self> {
        let mut lines = Self { out, last: genesis() };
        lines.write(&First { ledger: "whit".to_owned(), version: VERSION, events })?;
        Ok(lines)
    }

    fn write(&mut self, line: &impl Serialize) -> io::Result<()> {
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
    writeln!(out, "entry,time,state,dataset,analyst,question,unit,holds,cost")?;
    for entry in entries {
        for (rung, cost) in entry.charge.iter() {
            let cost = serde_json::to_string(cost).map_err(io::Error::from)?;
            let texts = [&entry.dataset, &entry.analyst, &entry.question, &rung.unit.to_string()];
            let [dataset, analyst, question, unit] = texts.map(|text| quoted(text));
            let (time, state) = (time_text(entry.time), entry.state.word());
            let (number, holds, cost) = (entry.number, rung.holds, quoted(&cost));
            writeln!(out, "{number},{time},{state},{dataset},{analyst},{question},{unit},{holds},{cost}")?;
        }
    }
    Ok(())
}

/// Writes the ledger in a file as lines of JSON: what it is, and then one event a line, with everything that belongs to it.
pub(super) fn write_chain(books: &Books, out: &mut dyn Write) -> Result<(), ExportError> {
    books.check_there()?;
    let transaction = books.connection.unchecked_transaction().map_err(|error| books.explain(&error))?;
    let head = books.chain_head()?;
    let mut lines = CheckedLines::begin(out, head.events)?;
    let mut failed = None;
    let walked = walk(&transaction, Head::start(), true, |event| {
        lines.write(&line(event)?).map_err(|error| {
            failed = Some(error);
            ChainFault::file("is fine; the output is not".to_owned()).into()
        })
    });
    if let Some(error) = failed {
        return Err(error.into());
    }
    let walked = walked.map_err(|stop| stop.into_error(|error| books.explain(error)))?;
    check_head(walked, head).map_err(LedgerError::Changed)?;
    Ok(())
}

impl Books {
    /// Builds a ledger again from its export, in a file that must not be there yet. Every line must be as it was written.
    pub fn import(path: &Path, lines: impl BufRead) -> Result<Self, LedgerError> {
        if path.exists() {
            let why = "it is there already, and a ledger is rebuilt into a new file".to_owned();
            return Err(LedgerError::Unwritable { path: path.to_owned(), why });
        }
        let mut books = Self::open(path)?;
        let head = books.take_lines(lines)?;
        // All at once, and not event by event: heads that were left behind would say that it is none of theirs.
        books.witness.write(books.secret.ledger, head)?;
        books.read_on()?;
        Ok(books)
    }

    fn take_lines(&self, lines: impl BufRead) -> Result<Head, LedgerError> {
        let transaction = self.connection.unchecked_transaction().map_err(|error| self.explain(&error))?;
        let (mut wanted, mut last, mut seen) = (None, genesis(), EntriesSeen::default());
        for (place, text) in lines.lines().enumerate() {
            let wrong = |what: String| LedgerError::Line { line: place as u64 + 1, what };
            let text = text.map_err(|error| wrong(error.to_string()))?;
            if let (None, Ok(Any { version })) = (wanted, serde_json::from_str::<Any>(&text))
                && version != VERSION
            {
                return Err(wrong(format!(
                    "it is an export of format {version}, and this whit reads format {VERSION}"
                )));
            }
            let (text, check) = unchecked(&text, last)
                .ok_or_else(|| wrong("its check does not follow from its fields and the line before".to_owned()))?;
            last = check;
            if wanted.is_none() {
                let first: First = serde_json::from_str(&text).map_err(|error| wrong(error.to_string()))?;
                if first.ledger != "whit" {
                    return Err(wrong("it is no export of a ledger".to_owned()));
                }
                wanted = Some(first.events);
                continue;
            }
            let line: EventLine = serde_json::from_str(&text).map_err(|error| wrong(error.to_string()))?;
            let (kind, values) = values(&line).map_err(wrong)?;
            let (entry, time) = (line.entry as i64, line.time);
            let head = append(&transaction, seen.head, &New { kind, entry, time, values: &values })
                .map_err(|error| self.explain(&error))?;
            if head.events != line.event {
                return Err(wrong(format!("it is event {} and should be {}", line.event, head.events)));
            }
            seen.take(Event { head, kind, entry: line.entry, time, values })?;
        }
        let wanted = wanted.ok_or(LedgerError::Line { line: 1, what: "there is none".to_owned() })?;
        if seen.head.events != wanted {
            let what = format!("the export is cut off: it has {} of {wanted} events", seen.head.events);
            return Err(LedgerError::Line { line: seen.head.events + 2, what });
        }
        let says = read_head(&transaction).map_err(|error| self.explain(&error))?.unwrap_or_else(Head::start);
        check_head(seen.head, says)?;
        transaction.commit().map_err(|error| self.explain(&error))?;
        Ok(seen.head)
    }
}

/// What every export says first.
#[derive(Deserialize)]
struct Any {
    version: i64,
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

fn line(event: Event) -> Result<EventLine, Stop> {
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
fn values(line: &EventLine) -> Result<(EventKind, Vec<Value>), String> {
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
