//! What a release asks of a ledger: a charge set aside before anything is read, and the value noted before anybody sees it.

use super::Refusal;
use crate::cost::Cost;
use crate::unit::Rung;

/// The costs of one release, rung by rung.
pub type Charge = Vec<(Rung, Cost)>;

/// A place in a ledger that is spent from now on, whatever happens. It is worth one commit, so it cannot be copied.
#[derive(Debug, PartialEq, Eq)]
#[must_use = "what is reserved is spent, so commit it"]
pub struct Reservation {
    number: u64,
}

impl Reservation {
    /// The reservation with this number: ledgers make them.
    pub fn new(number: u64) -> Self {
        Self { number }
    }

    /// The number that the ledger gave it.
    pub fn number(&self) -> u64 {
        self.number
    }
}

/// Why a ledger could neither say yes nor no: it cannot be read or written. The messages speak of files, never of data.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{sentence}")]
pub struct LedgerFailure {
    /// What went wrong.
    pub sentence: String,
    /// What to do about it.
    pub hint: Option<String>,
}

/// A ledger that could not note that work was done.
pub type CommitError = LedgerFailure;

/// How far long work under one reservation has come. One reservation pays for one path of noise, so an interrupted run goes on from the
/// last checkpoint that its ledger has noted, and from no other.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Progress {
    /// How many steps were taken.
    pub step: u64,
    /// The hash of the checkpoint after them.
    pub checkpoint: String,
}

/// Notes how far work has come, durably; where it fails, the work ends. See [`Ledger::progress`].
pub type Note<'a> = dyn FnMut(&Progress) -> Result<(), LedgerFailure> + 'a;

/// The list of charges that a release writes to before anything is drawn.
pub trait Ledger {
    /// Sets the charge aside, durably: a crash from here on leaves it spent.
    fn reserve(&mut self, charge: &Charge) -> Result<Reservation, Refusal>;

    /// Notes, durably, that the reserved work was done and what came of it, so that asking again is free.
    fn commit(&mut self, reservation: Reservation, value: &[u8]) -> Result<(), CommitError>;

    /// Notes, durably, how far the reserved work has come: from then on it goes on from this checkpoint and from no other.
    ///
    /// The order that survives being killed at any moment: write the next checkpoint next to the last one and synchronise it; note it here;
    /// rename it. A run that goes on takes whichever of the two files has the hash that was noted.
    ///
    /// A ledger that does not outlive the process has nothing to go on from, and keeps nothing.
    fn progress(&mut self, reservation: &Reservation, progress: &Progress) -> Result<(), LedgerFailure> {
        let _ = (reservation, progress);
        Ok(())
    }

    /// Whether the last refusal was none of a budget's: why the ledger itself could not be read or written.
    fn failure(&self) -> Option<LedgerFailure> {
        None
    }
}
