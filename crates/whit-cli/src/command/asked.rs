//! What every question to a declared data set says: where it is declared, who asks, and what it may cost.

use crate::error::Error;
use crate::hint::about_ledger;
use crate::number::{self, Wrong};
use std::path::PathBuf;
use whit::query::plan::Asking;
use whit::query::source::Tuning;
use whit::session::{Options, Session};

/// Options that questions share.
#[derive(Debug, Clone, clap::Args)]
pub(super) struct QuestionOptions {
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

impl QuestionOptions {
    /// What a question says about its price.
    pub(super) fn asking(&self) -> Asking {
        Asking { epsilon: self.epsilon, delta: self.delta, confidence: self.confidence, ..Asking::default() }
    }

    /// Opens the data sets; the ledger is opened by whatever is paid for.
    pub(super) fn session(&self) -> Result<Session, Error> {
        let tuning = Tuning { memory: self.memory, threads: self.threads };
        let options = Options { analyst: self.analyst.clone(), tuning, ..Options::default() };
        let session = Session::open(&self.config, options)?;
        about_ledger(session.ledger_file());
        Ok(session)
    }
}
