//! The ledger in a file as lines of JSON, and one that is built again from such lines.

use super::chain::{ChainFault, Event, Head, New, append, check_head, read_head, walk};
use super::entry::EntriesSeen;
use super::error::LedgerError;
use super::export::{CheckedLines, EventLine, ExportError, First, line, unchecked, values};
use super::format::{SINCE_SECRET, VERSION, genesis};
use super::sqlite::Books;
use serde::Deserialize;
use std::io::{BufRead, Write};
use std::path::Path;

/// What every export says first.
#[derive(Deserialize)]
struct Any {
    version: i64,
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
                && !(SINCE_SECRET..=VERSION).contains(&version)
            {
                return Err(wrong(format!(
                    "it is an export of format {version}, and this whit reads formats {SINCE_SECRET} to {VERSION}"
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
