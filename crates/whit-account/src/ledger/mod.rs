//! The list of what was charged, and the budgets that say no.
//!
//! [`Books`] are the durable ledger, one SQLite file: every charge is *reserved* before anything is drawn and *committed* with its
//! result after, so a crash leaves it spent and asking again is free. [`Memory`] lasts as long as the process does. Both are a [`Register`], and so is whatever
//! else keeps a ledger; callers take that.
//!
//! # What the file holds
//! | table | one row is |
//! |---|---|
//! | `entries` | a release: data set, analyst, question, fingerprint of the data (keyed), charge, budgets in force |
//! | `results` | what was released |
//! | `events` | *reserve*, *commit*, *void*, *progress* or *note*, chained by hashes |
//! | `head` | how many events there are, and the last one's hash |
//! | `secret` | what fingerprints are keyed with; it never leaves the file |
//! | `files`, `sources` | hashes of source files, to save reading them again, and of data sets; no part of the chain |
//!
//! Each event keeps a digest of every field that it is about, and a hash over these digests and the hash before. So
//! [`Register::verify`] names the entry and the field of the first change.
//!
//! # What stands next to it
//! | file | what it is |
//! |---|---|
//! | `whit.ledger.head` | how far the chain goes: without it, or where it says otherwise, nothing is opened |
//! | `whit.ledger-journal` | SQLite's, to take back a transaction that was killed; empty or void otherwise |
//! | `whit.ledger.log` | [`OperatorLog`]: what the owner must see and the analyst must not |
//! | `whit.ledger.turn-…` | empty; there while somebody works on a question, for others who ask the very same to wait ([`Register::turn`]). One that a killed process leaves goes with the next turn that is taken |
//!
//! All are made with mode 0600. A second head may stand [far away](Opening::witness), for the case that all of these go at once. It names every path at which the ledger was ever seen, links
//! followed, and a lock next to it keeps copies of one ledger apart.
//! A file that is gone, cut, rolled back to an older copy, or changed in any byte that holds something is an error when the ledger is next opened or verified; who
//! has it open already reads only what is new. An owner who knows why [accepts](Books::accept) the ledger as it stands, or [begins anew](Books::reset); both are kept.
//!
//! # What happens when
//! | | |
//! |---|---|
//! | a process is killed | before an event's commit: as if it had never been. After it: it is booked, nothing was answered, and the next to open or write brings the heads up to date |
//! | many processes write | one at a time, each after it has read what the others wrote. Who waits longer than its patience gets an error; what it had reserved stays spent |
//! | the disk is full, or a folder cannot be written | nothing is answered. What came as far as the main file stays booked, and the heads follow when they can |
//! | the file goes, or another takes its place, or an older copy is written into it, while it is open | who has it open says so instead of answering; who opens it next learns that it is gone, or unlike its head |
//! | another ledger takes its place, or it goes and one is made without the head far away | an error, where a head far away knows of the first at this path, until the owner [accepts](Books::accept) the other |
//! | copies of one ledger are charged at once | with a head far away, one; the others learn that their file is an older copy |
//! | nothing can be written | a sound ledger can be [looked at](Books::open_existing) |
//! | a file goes, or an older copy comes back, while nobody has it open | an error, as above, unless all files that could know went or came back together |
//! | the clock jumps | times in reports jump with it, to the end of the year 9999 at most. No order, sum or limit hangs on the clock |
//! | making a ledger is interrupted | there is none, or an empty one |
//! | [`reset`](Books::reset) or [`accept`](Books::accept) is | the old refusal stays until the reason stands in the chain and the heads follow from it; to ask again completes it |
//! | [`import`](Books::import) is | an empty file, or a whole ledger whose head does not know of it and which is refused: remove it, and import again |
//!
//! # What this cannot find
//! Whoever may write all of these files can write all of them anew: every hash from a changed record on, and every head. A chain without a signature
//! shows accidents and careless hands, not such a forgery. To find it keep the [`Head`] out of reach (print it, mail it) and ask
//! [`Books::verify_after`], which checks that the chain still leads through it. Bytes that hold nothing (free pages) are not looked at.
//! Nor is it known here what another folder for heads knows, and a head far away that is damaged in the very path that it names is missed by nobody.

mod booking;
mod books;
mod budget;
mod chain;
mod entry;
mod error;
mod export;
mod format;
mod log;
pub mod memory;
mod open;
mod opener;
mod opening;
mod question;
mod rebuild;
mod register;
mod remembered;
mod report;
mod secret;
mod segments;
mod spending;
mod sqlite;
mod turn;
mod unmade;
mod verify;
mod watch;
mod witness;

pub use booking::Booking;
pub use budget::{Budget, CurrencyName, Fit, MOST_TIMES, NoSuchCurrency};
pub use chain::{ChainFault, Head};
pub use entry::{Decision, Entry, State};
pub(crate) use entry::{gone_on_with_after, interrupted_after};
pub use error::{Denied, LedgerError};
pub use export::ExportError;
pub use format::time_text;
pub use log::OperatorLog;
pub use memory::Memory;
pub use opener::{BooksFile, HandedOver, OpenRegister, Opener};
pub use opening::Opening;
pub use question::{Question, Stored};
pub use register::{Register, Terms};
pub use report::{Account, BudgetChange, Moment, Reaccounted, SpendingReport, Which};
pub use spending::SliceLevel;
pub use sqlite::Books;
#[doc(hidden)]
pub use sqlite::Step;
pub use turn::Turn;
pub use unmade::Unmade;
pub use verify::Verified;

use crate::filter::{Filter, Refused};
use whit_core::digits::{brief_down, brief_up};
use whit_core::release::{ShortOf, Shortfall};
use whit_core::{Cost, Refusal, Unit};

/// A filter's "no" to a cost, in the words of a release and in its numbers. It is the filter of this unit, and of this analyst and this slice alone where they are named. The
/// words are rounded as in every report: what is left is never printed as more, nor what is asked as less.
fn refusal(
    refused: Refused,
    (unit, analyst, slice): (&Unit, Option<&str>, Option<String>),
    filter: &Filter,
    cost: &Cost,
) -> Refusal {
    let (asked, left, of) = match refused {
        Refused::Short { asked, left, delta } => {
            let of = ShortOf::Epsilon { asked, left, delta };
            (in_words(&brief_up(asked), delta), in_words(&brief_down(left), delta), of)
        }
        Refused::Aside { asked, left } => {
            (format!("δ = {asked:.3e} of its own"), format!("δ = {left:.3e}"), ShortOf::Delta { asked, left })
        }
        Refused::Unsupported(why) => {
            let (left, delta) = (filter.left(), filter.delta());
            let of = ShortOf::Uncountable { left, delta };
            (format!("what this budget cannot count ({why})"), in_words(&brief_down(left), delta), of)
        }
    };
    let available = if matches!(of, ShortOf::Epsilon { .. }) { filter.available(cost) } else { None };
    let mut whose = unit.to_string();
    if let Some(analyst) = analyst {
        whose = format!("{whose} for {analyst}");
    }
    if let Some(slice) = &slice {
        whose = format!("{whose}, where {slice}");
    }
    let shortfall = Shortfall { unit: unit.clone(), analyst: analyst.map(str::to_owned), slice, of, fits: None };
    Refusal { available, shortfall: Some(Box::new(shortfall)), ..Refusal::new(asked, left, whose) }
}

/// ε, as it is printed, at δ.
fn in_words(epsilon: &str, delta: f64) -> String {
    if delta == 0.0 { format!("ε = {epsilon}") } else { format!("ε = {epsilon} at δ = {delta:e}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_speaks_in_short_numbers_that_err_on_the_safe_side() {
        for brief in [brief_down, brief_up] {
            let printed = |epsilon, delta| in_words(&brief(epsilon), delta);
            assert_eq!(printed(0.1, 0.0), "ε = 0.1");
            assert_eq!(printed(0.3 - 0.2, 0.0), "ε = 0.1");
            assert_eq!(printed(f64::INFINITY, 1e-6), "ε = ∞ at δ = 1e-6");
            assert_eq!(printed(120.0, 0.0), "ε = 120");
            assert_eq!(printed(0.0, 0.0), "ε = 0");
        }
        assert_eq!(in_words(&brief_down(1.234_567), 1e-6), "ε = 1.2345 at δ = 1e-6");
        assert_eq!(in_words(&brief_up(1.234_567), 1e-6), "ε = 1.2346 at δ = 1e-6");
    }
}
