//! What is open while somebody asks: data sets, the ledger, and who it is.

use crate::Error;
use crate::ledger::{Bookkeeper, ledger_in};
use std::path::PathBuf;
use whit_account::ledger::{Memory, OperatorLog, Register, Unmade};
use whit_query::Tables;
use whit_query::source::{Input, Inputs};

/// Where the ledger of data sets is.
pub(crate) fn ledger_of(tables: &Tables) -> PathBuf {
    let warehouse = tables.warehouse();
    ledger_in(warehouse.folder(), Some(warehouse.declaration()))
}

/// What a session holds, and a training works with.
pub(crate) struct SessionState {
    pub(crate) tables: Tables,
    /// Who has the ledger, and opens it when something is paid for or somebody looks.
    pub(crate) keeper: Bookkeeper,
    /// What is known of files while there is no ledger.
    pub(crate) none: Memory,
    pub(crate) analyst: String,
}

impl SessionState {
    /// What no output may replace: what the data sets were declared with, the ledger, and heads that are kept elsewhere.
    pub(crate) fn inputs(&self) -> Inputs {
        let mut inputs = Inputs::of(&self.tables);
        if let Some(ledger) = self.keeper.file() {
            inputs = inputs.and(Input::Ledger, ledger);
        }
        match self.keeper.opener.heads() {
            Some(folder) => inputs.and_heads_in(folder),
            None => inputs,
        }
    }

    /// The ledger, made where there is none.
    pub(crate) fn made(&mut self) -> Result<&mut dyn Register, Error> {
        self.keeper.made()
    }

    /// Data sets, and the ledger for whatever is paid for: where there is none, the first charge that fits makes it.
    pub(crate) fn charging(&mut self) -> Result<(&Tables, Unmade<'_>), Error> {
        self.books_if_any()?;
        let Bookkeeper { opener, books } = &mut self.keeper;
        Ok((&self.tables, Unmade::new(&mut **opener, &mut self.none, books)))
    }

    /// The ledger where there is one: to look makes none.
    pub(crate) fn books_if_any(&mut self) -> Result<Option<&mut (dyn Register + 'static)>, Error> {
        self.keeper.if_any()
    }

    /// Data sets and the ledger to look into: an empty one that ends with the session, where there is none yet.
    pub(crate) fn looking(&mut self) -> Result<(&Tables, &mut dyn Register), Error> {
        Ok(match self.keeper.if_any()? {
            Some(books) => (&self.tables, books),
            None => (&self.tables, &mut self.none),
        })
    }

    /// Tells the owner, in the operator's log, that data is not what it was. Nobody who asks learns of it, nor whether the log could be written. Where it could
    /// not, the ledger notes nothing either, and the next question tries again.
    pub(crate) fn log_change(&mut self) {
        let Some(books) = &mut self.keeper.books else { return };
        let log = books.file().map(OperatorLog::next_to);
        for (dataset, fingerprint) in self.tables.take_changed() {
            let line = format!("{dataset}: the data changed; earlier answers are about other rows");
            // A ledger that is no file has nothing next to it, and its owner asks it.
            if log.as_ref().is_none_or(|log| log.write(now(), &line).is_ok()) {
                let _ = books.note_source(&dataset, &fingerprint); // what is not noted is said once more
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
