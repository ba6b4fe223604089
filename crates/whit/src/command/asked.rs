//! What every question to a declared data set says: where it is declared, who asks, and what it may cost.

use super::Error;
use crate::number::{self, Wrong};
use std::path::{Path, PathBuf};
use whit::account::ledger::Books;
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
    /// The δ at which ε holds. Without it, what is declared for questions, or else the least δ of a budget.
    #[arg(long, allow_negative_numbers = true, value_parser = number::delta)]
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
}

fn confidence(text: &str) -> Result<f64, Wrong> {
    let wrong = Wrong { range: "a number between 0 and 1", hint: "0.95 is usual" };
    text.trim().parse().ok().filter(|&share: &f64| share > 0.0 && share < 1.0).ok_or(wrong)
}

/// Data and ledger, open.
pub(super) struct Open {
    pub(super) tables: Tables,
    pub(super) books: Books,
    pub(super) analyst: String,
}

impl Asked {
    /// What a question says about its price.
    pub(super) fn asking(&self) -> Asking {
        Asking { epsilon: self.epsilon, delta: self.delta, confidence: self.confidence, ..Asking::default() }
    }

    /// Opens the data sets and the ledger beside them.
    pub(super) fn open(&self) -> Result<Open, Error> {
        let tables = Tables::open(&self.config, Tuning { memory: None, threads: self.threads })?;
        let warehouse = tables.warehouse();
        let ledger = warehouse.declaration().ledger.as_deref().unwrap_or("whit.ledger");
        let books = Books::open(&warehouse.folder().join(Path::new(ledger))).map_err(|error| {
            let hint = error.hint();
            Error::from(QueryError { hint, ..QueryError::failed(error.to_string()) })
        })?;
        Ok(Open { tables, books, analyst: self.analyst.clone() })
    }
}
