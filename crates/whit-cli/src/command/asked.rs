//! What every question to a declared data set says: where it is declared, who asks, and what it may cost.

use super::Error;
use crate::number::{self, Wrong};
use std::path::PathBuf;
use whit::account::ledger::{Books, LedgerError, OperatorLog};
use whit::query::plan::Asking;
use whit::query::source::Tuning;
use whit::query::{QueryError, Tables};

/// Options that questions share.
#[derive(Debug, Clone, clap::Args)]
pub(super) struct Asked {
    /// The declaration.
    #[arg(long, value_name = "FILE", default_value = "whit.toml")]
    config: PathBuf,
    /// The ε that the protected unit may lose. Without it, what is declared for questions.
    #[arg(long, allow_negative_numbers = true, value_parser = number::positive_epsilon)]
    epsilon: Option<f64>,
    /// The δ at which ε holds; 0 asks for pure ε. Without it, what is declared for questions, or else the least δ of a budget.
    #[arg(long, allow_negative_numbers = true, value_parser = number::delta_or_zero)]
    delta: Option<f64>,
    /// The confidence of intervals.
    #[arg(long, value_name = "SHARE", value_parser = confidence)]
    confidence: Option<f64>,
    /// Who asks, for budgets of single analysts.
    #[arg(long, value_name = "NAME", default_value = "anyone")]
    analyst: String,
    /// How many threads work; as many as the machine has without it.
    #[arg(long, value_name = "N")]
    threads: Option<usize>,
    /// The memory that a question may use, such as 1GiB: what does not fit is read in shares of the users, or written to disk. All there is without it.
    #[arg(long, value_name = "SIZE", value_parser = size)]
    memory: Option<u64>,
}

/// A number of bytes, with its unit.
fn bytes(text: &str) -> Option<f64> {
    let text = text.trim();
    let digits = text.find(|c: char| !(c.is_ascii_digit() || c == '.')).unwrap_or(text.len());
    let number: f64 = text[..digits].parse().ok()?;
    let unit = match text[digits..].trim().to_ascii_lowercase().as_str() {
        "" | "b" => 1.0,
        "kib" | "k" => 1024.0,
        "kb" => 1e3,
        "mib" | "m" => 1_048_576.0,
        "mb" => 1e6,
        "gib" | "g" => 1_073_741_824.0,
        "gb" => 1e9,
        _ => return None,
    };
    Some(number * unit).filter(|&bytes| bytes < 1e18)
}

/// How much an engine may keep.
fn size(text: &str) -> Result<u64, Wrong> {
    let wrong = Wrong { range: "a size of at least 64 MiB", hint: "write it as 512MiB, 1GiB or 4GB" };
    bytes(text).filter(|&bytes| bytes >= 67_108_864.0).map(|bytes| bytes as u64).ok_or(wrong)
}

/// How much rows may take; nothing is enough.
pub(super) fn room(text: &str) -> Result<u64, Wrong> {
    let wrong = Wrong { range: "a size", hint: "write it as 512MiB, 1GiB or 4GB" };
    bytes(text).map(|bytes| bytes as u64).ok_or(wrong)
}

fn confidence(text: &str) -> Result<f64, Wrong> {
    let wrong = Wrong { range: "a number between 0 and 1", hint: "0.95 is usual" };
    text.trim().parse().ok().filter(|&share: &f64| share > 0.0 && share < 1.0).ok_or(wrong)
}

/// A ledger that does not do, with what to do about it.
#[expect(clippy::needless_pass_by_value, reason = "for map_err")]
pub(super) fn of_ledger(error: LedgerError) -> Error {
    let hint = error.hint();
    Error::from(QueryError { hint, ..QueryError::failed(error.to_string()) })
}

/// Where the ledger of data sets is.
pub(super) fn ledger_of(tables: &Tables) -> PathBuf {
    let warehouse = tables.warehouse();
    warehouse.folder().join(warehouse.declaration().ledger.as_deref().unwrap_or("whit.ledger"))
}

/// Data and ledger, open.
pub(super) struct Open {
    pub(super) tables: Tables,
    pub(super) books: Books,
    pub(super) analyst: String,
}

impl Open {
    /// Tells the owner, in the operator's log, that data is not what it was. Nobody who asks is told, nor whether the log could be written. Where it could
    /// not, the ledger notes nothing either, and the next question tries again.
    pub(super) fn log_change(&mut self) {
        let log = OperatorLog::beside(self.books.path());
        for (dataset, fingerprint) in self.tables.take_changed() {
            let told = log.write(now(), &format!("{dataset}: the data changed; earlier answers are about other rows"));
            if told.is_ok() {
                let _ = self.books.note_source(&dataset, &fingerprint); // what is not noted is told once more
            }
        }
    }
}

/// Milliseconds since 1970.
#[expect(clippy::disallowed_methods, reason = "a log has a clock; no mechanism and no accountant reads it")]
fn now() -> i64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    since.ok().and_then(|since| i64::try_from(since.as_millis()).ok()).unwrap_or_default()
}

/// That the clock tells a time that the engine can, which panics otherwise.
#[expect(clippy::disallowed_methods, reason = "what is no time is refused; no mechanism and no accountant reads it")]
pub(super) fn check_clock() -> Result<(), Error> {
    check_time(std::time::SystemTime::now())
}

fn check_time(now: std::time::SystemTime) -> Result<(), Error> {
    /// The last second of the year 9999.
    const LAST: u64 = 253_402_300_799;
    match now.duration_since(std::time::UNIX_EPOCH) {
        Ok(since) if since.as_secs() <= LAST => Ok(()),
        _ => Err(Error::Failed(
            "the clock of this machine tells a time before 1970 or after 9999\n  hint: set it, and ask again"
                .to_owned(),
        )),
    }
}

impl Asked {
    /// What a question says about its price.
    pub(super) fn asking(&self) -> Asking {
        Asking { epsilon: self.epsilon, delta: self.delta, confidence: self.confidence, ..Asking::default() }
    }

    /// Opens the data sets, and no ledger.
    pub(super) fn tables(&self) -> Result<Tables, Error> {
        Ok(Tables::open(&self.config, Tuning { memory: self.memory, threads: self.threads })?)
    }

    /// Who asks.
    pub(super) fn analyst(&self) -> &str {
        &self.analyst
    }

    /// Opens the ledger beside the data sets, where there is one: to look at it makes none.
    pub(super) fn books_if_any(tables: &Tables) -> Result<Option<Books>, Error> {
        match Books::open_existing(&ledger_of(tables), &super::ledger::opening()) {
            Ok(books) => Ok(Some(books)),
            Err(LedgerError::Missing(_)) => Ok(None),
            Err(error) => Err(of_ledger(error)),
        }
    }

    /// Opens the data sets and the ledger beside them.
    pub(super) fn open(&self) -> Result<Open, Error> {
        let tables = self.tables()?;
        let books = Books::open_as(&ledger_of(&tables), &super::ledger::opening()).map_err(of_ledger)?;
        Ok(Open { tables, books, analyst: self.analyst.clone() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::{Duration, UNIX_EPOCH};

    #[test]
    fn a_clock_that_nobody_can_tell_is_refused_in_words() {
        let first_of_10000 = Duration::from_hours(70_389_528);
        assert!(check_time(UNIX_EPOCH).is_ok() && check_clock().is_ok());
        for never in [UNIX_EPOCH - Duration::from_secs(1), UNIX_EPOCH + first_of_10000] {
            let error = check_time(never).unwrap_err();
            assert!(error.to_string().starts_with("the clock of this machine tells"), "{error}");
        }
    }
}
