//! The list of what was charged, and the budgets that say no.
//!
//! [`Books`] are the durable ledger, one SQLite file: every charge is *reserved* before anything is drawn and *committed* with its
//! result after, so a crash leaves it spent and asking again is free. [`Memory`] lasts as long as the process does.
//!
//! # What the file holds
//! | table | one row is |
//! |---|---|
//! | `entries` | a release: data set, analyst, question, fingerprint of the data, charge, budgets in force |
//! | `results` | what was released |
//! | `events` | *reserve*, *commit* or *void*, chained by hashes |
//! | `head` | how many events there are, and the last one's hash |
//! | `files` | hashes of source files, to save reading them again; no part of the chain |
//!
//! Each event keeps a digest of every field that it is about, and a hash over these digests and the hash before. So
//! [`Books::verify`] names the entry and the field of the first change.
//!
//! # What verifying cannot find
//! Whoever may write the file can write all of it anew: every hash from a changed record on, and the head, or an older copy of the
//! whole file, or one whose last records were cut off together with the head. A chain without a secret shows accidents and careless hands, not such a forgery. To find it
//! keep the [`Head`] elsewhere (print it, mail it, sign it) and ask [`Books::verify_after`], which checks that the
//! chain still leads through it. Bytes of the file that hold nothing (free pages) are not looked at.

mod budget;
mod chain;
mod entry;
mod error;
mod export;
mod format;
pub mod memory;
mod report;
mod sqlite;
mod verify;
mod watch;

pub use budget::{Budget, CurrencyName, NoSuchCurrency};
pub use chain::{Fault, Head};
pub use entry::{Entry, State};
pub use error::LedgerError;
pub use export::ExportError;
pub use format::time_text;
pub use memory::Memory;
pub use report::{Account, BudgetChange, Moment, Reaccounted, Statement, Which};
#[doc(hidden)]
pub use sqlite::Step;
pub use sqlite::{Booking, Books, Question, Stored};
pub use verify::Verified;

use crate::filter::{Filter, Refused};
use whit_core::{Cost, Refusal};

/// A filter's "no" to a cost, in the words of a release.
fn refusal(refused: Refused, unit: String, filter: &Filter, cost: &Cost) -> Refusal {
    match refused {
        Refused::Short { asked, left, delta } => {
            let available = filter.available(cost);
            Refusal { asked: told(asked, delta), left: told(left, delta), unit, available }
        }
        Refused::Aside { asked, left } => {
            let (asked, left) = (format!("δ = {asked:.3e} of its own"), format!("δ = {left:.3e}"));
            Refusal { asked, left, unit, available: None }
        }
        Refused::Unsupported(why) => {
            let asked = format!("what this budget cannot count ({why})");
            Refusal { asked, left: told(filter.left(), filter.delta()), unit, available: None }
        }
    }
}

/// ε at δ in words, short enough to read.
fn told(epsilon: f64, delta: f64) -> String {
    let digits =
        if epsilon.is_finite() && epsilon != 0.0 { (3 - epsilon.abs().log10().floor() as i32).clamp(0, 12) } else { 0 };
    let text = format!("{epsilon:.*}", digits as usize);
    let epsilon = if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.') } else { &text };
    if delta == 0.0 { format!("ε = {epsilon}") } else { format!("ε = {epsilon} at δ = {delta:e}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_speaks_in_short_numbers() {
        assert_eq!(told(0.100_000_000_000_01, 0.0), "ε = 0.1");
        assert_eq!(told(1.234_567, 1e-6), "ε = 1.235 at δ = 1e-6");
        assert_eq!(told(f64::INFINITY, 1e-6), "ε = inf at δ = 1e-6");
        assert_eq!(told(120.0, 0.0), "ε = 120");
    }
}
