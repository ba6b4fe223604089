//! A ledger as lines of JSON, complete enough to build it again, and as a table for spreadsheets.

use super::chain::{Event, Fault, Head, Kind, New, Stop, append, check_head, read_head, walk};
use super::entry::Seen;
use super::error::LedgerError;
use super::format::{VERSION, hex, read_budgets, read_charge, time_text, unhex, write_budgets, write_charge};
use super::sqlite::Books;
use rusqlite::types::Value;
use serde::{Deserialize, Serialize};
use serde_json::value::Value as Json;
use std::io::{self, BufRead, Write};
use std::path::Path;

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct First {
    ledger: String,
    version: i64,
    events: u64,
    head: String,
}

/// One event. Which fields there are hangs on its kind.
#[derive(Serialize, Deserialize, Default)]
#[serde(deny_unknown_fields)]
struct Line {
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
    fingerprint: Option<String>,
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
    hash: String,
}

impl Books {
    /// Writes the ledger as lines of JSON: what it is, and then one event a line, with everything that belongs to it.
    pub fn export(&self, out: &mut dyn Write) -> Result<(), ExportError> {
        let transaction = self.connection.unchecked_transaction().map_err(|error| self.explain(&error))?;
        let head = self.head()?;
        let first = First { ledger: "whit".to_owned(), version: VERSION, events: head.events, head: head.to_string() };
        let write = |out: &mut dyn Write, line: &dyn Fn(&mut dyn Write) -> serde_json::Result<()>| -> io::Result<()> {
            line(out)?;
            out.write_all(b"\n")
        };
        write(out, &|out| serde_json::to_writer(out, &first))?;
        let mut failed = None;
        let walked = walk(&transaction, Head::start(), true, |event| {
            let line = line(event)?;
            write(out, &|out| serde_json::to_writer(out, &line)).map_err(|error| {
                failed = Some(error);
                Fault::file("is fine; the output is not".to_owned()).into()
            })
        });
        if let Some(error) = failed {
            return Err(error.into());
        }
        let walked = walked.map_err(|stop| stop.into_error(|error| self.explain(error)))?;
        check_head(walked, head).map_err(LedgerError::Changed)?;
        Ok(())
    }

    /// Writes one line for each rung of each entry, with commas between the fields: for spreadsheets. It does not hold all that the ledger does.
    pub fn export_csv(&self, out: &mut dyn Write) -> Result<(), ExportError> {
        writeln!(out, "entry,time,state,dataset,analyst,question,fingerprint,unit,holds,cost")?;
        for entry in self.entries(&super::Which::default())? {
            for (rung, cost) in entry.charge.iter() {
                let cost = serde_json::to_string(cost).map_err(io::Error::from)?;
                let texts =
                    [&entry.dataset, &entry.analyst, &entry.question, &entry.fingerprint, &rung.unit.to_string()];
                let [dataset, analyst, question, fingerprint, unit] = texts.map(|text| quoted(text));
                let (time, state) = (time_text(entry.time), entry.state.word());
                let (number, holds, cost) = (entry.number, rung.holds, quoted(&cost));
                writeln!(
                    out,
                    "{number},{time},{state},{dataset},{analyst},{question},{fingerprint},{unit},{holds},{cost}"
                )?;
            }
        }
        Ok(())
    }

    /// Builds a ledger again from its export, in a file that must not be there yet. Every hash must come out as it was.
    pub fn import(path: &Path, lines: impl BufRead) -> Result<Self, LedgerError> {
        if path.exists() {
            let why = "it is there already, and a ledger is rebuilt into a new file".to_owned();
            return Err(LedgerError::Unwritable { path: path.to_owned(), why });
        }
        let books = Self::open(path)?;
        let rebuilt = books.take_lines(lines);
        rebuilt.map(|()| books)
    }

    fn take_lines(&self, lines: impl BufRead) -> Result<(), LedgerError> {
        let transaction = self.connection.unchecked_transaction().map_err(|error| self.explain(&error))?;
        let mut wanted: Option<Head> = None;
        let mut seen = Seen::default();
        for (place, text) in lines.lines().enumerate() {
            let wrong = |what: String| LedgerError::Line { line: place as u64 + 1, what };
            let text = text.map_err(|error| wrong(error.to_string()))?;
            if wanted.is_none() {
                let first: First = serde_json::from_str(&text).map_err(|error| wrong(error.to_string()))?;
                if first.ledger != "whit" || first.version != VERSION {
                    return Err(wrong(format!("it is no export of format {VERSION}")));
                }
                wanted = Some(first.head.parse().map_err(wrong)?);
                continue;
            }
            let line: Line = serde_json::from_str(&text).map_err(|error| wrong(error.to_string()))?;
            let (kind, values) = values(&line).map_err(wrong)?;
            let (entry, time) = (line.entry as i64, line.time);
            let head = append(&transaction, seen.head, &New { kind, entry, time, values: &values })
                .map_err(|error| self.explain(&error))?;
            if hex(head.hash().as_bytes()) != line.hash || head.events != line.event {
                return Err(wrong("its hash does not follow from its fields and the line before".to_owned()));
            }
            seen.take(Event { head, kind, entry: line.entry, time, values })?;
        }
        let wanted = wanted.ok_or(LedgerError::Line { line: 1, what: "there is none".to_owned() })?;
        check_head(seen.head, wanted)?;
        let says = read_head(&transaction).map_err(|error| self.explain(&error))?.unwrap_or_else(Head::start);
        check_head(seen.head, says)?;
        transaction.commit().map_err(|error| self.explain(&error))
    }
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

fn line(event: Event) -> Result<Line, Stop> {
    let Event { head, kind, entry, time, values } = event;
    let mut line = Line {
        event: head.events,
        kind: kind.word().to_owned(),
        entry,
        time,
        hash: hex(head.hash().as_bytes()),
        ..Line::default()
    };
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
            Fault { event: Some(head.events), entry: Some(entry), field: field.to_owned(), what }
        })
    };
    match kind {
        Kind::Reserve => {
            (line.dataset, line.analyst, line.question, line.meaning) = (text(), text(), text(), text());
            (line.fingerprint, line.partition) = (text(), text());
            (line.charge, line.budgets) = (json("charge", text())?, json("budgets", text())?);
        }
        Kind::Commit => match values.next() {
            Some(Value::Blob(bytes)) => match String::from_utf8(bytes) {
                Ok(readable) => line.value = Some(readable),
                Err(other) => line.value_hex = Some(hex(other.as_bytes())),
            },
            _ => return Err(Fault::file("has a result that is none".to_owned()).into()),
        },
        Kind::Void => line.reason = text(),
    }
    Ok(line)
}

/// The values of an event, in the order in which they are kept and in the very bytes that were kept.
fn values(line: &Line) -> Result<(Kind, Vec<Value>), String> {
    let missing = |field: &str| format!("`{field}` is missing");
    let text = |field: &str, value: &Option<String>| value.clone().map(Value::Text).ok_or_else(|| missing(field));
    let kind = Kind::of(&line.kind).ok_or_else(|| format!("`{}` is no kind of event", line.kind))?;
    let values = match kind {
        Kind::Reserve => {
            let meaning = line.meaning.as_deref().and_then(unhex).ok_or_else(|| missing("meaning"))?;
            let charge = line.charge.as_ref().ok_or_else(|| missing("charge"))?;
            let budgets = read_budgets(&line.budgets.as_ref().ok_or_else(|| missing("budgets"))?.to_string())?;
            vec![
                text("dataset", &line.dataset)?,
                text("analyst", &line.analyst)?,
                text("question", &line.question)?,
                Value::Blob(meaning),
                text("fingerprint", &line.fingerprint)?,
                line.partition.clone().map_or(Value::Null, Value::Text),
                Value::Text(write_charge(&read_charge(&charge.to_string())?)?),
                Value::Text(write_budgets(&budgets.iter().collect::<Vec<_>>())?),
            ]
        }
        Kind::Commit => vec![Value::Blob(match (&line.value, &line.value_hex) {
            (Some(text), None) => text.clone().into_bytes(),
            (None, Some(hex)) => unhex(hex).ok_or_else(|| "`value_hex` is no hexadecimal".to_owned())?,
            _ => return Err(missing("value")),
        })],
        Kind::Void => vec![text("reason", &line.reason)?],
    };
    Ok((kind, values))
}
