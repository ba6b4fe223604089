//! A ledger, open at one question: what a release writes to.

use super::budget::Budget;
use super::error::{Denied, LedgerError};
use super::question::{Question, everything};
use super::register::{Register, Terms};
use std::fmt;
use whit_core::release::{CommitError, LedgerFailure, Reservation};
use whit_core::{Charge, Ledger, Progress, Refusal};

/// A [`Register`], open at one question. See [`Books::booking`](super::Books::booking).
pub struct Booking<'a> {
    register: &'a mut dyn Register,
    question: Question,
    budgets: &'a [Budget],
    /// The entry that was reserved before, where there is one.
    under: Option<u64>,
    /// The checkpoint that was noted last, as far as this work knows.
    at: Option<Progress>,
    /// Whether the owner gives all privacy up, so that no budget is asked.
    gives_up: bool,
    entry: Option<u64>,
    /// Whether somebody else committed under the same entry first.
    beaten: bool,
    failure: Option<LedgerFailure>,
}

impl fmt::Debug for Booking<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Booking").field("text", &self.question.text).field("entry", &self.entry).finish_non_exhaustive()
    }
}

impl<'a> Booking<'a> {
    /// For one release: the question and the budgets that watch over it. It is charged whether or not the question is answered already: [`Desk`](crate::desk::Desk)
    /// looks first.
    pub fn new(register: &'a mut dyn Register, question: Question, budgets: &'a [Budget]) -> Self {
        Self {
            register,
            question,
            budgets,
            under: None,
            at: None,
            gives_up: false,
            entry: None,
            beaten: false,
            failure: None,
        }
    }

    /// The same under an entry that was reserved before: see [`Books::resume`](super::Books::resume).
    #[must_use]
    pub fn under(self, entry: u64) -> Self {
        Self { under: Some(entry), ..self }
    }

    /// The same for work that goes on from a checkpoint: reserving succeeds only where that is the one that was noted last.
    #[must_use]
    pub fn from_checkpoint(self, at: Option<Progress>) -> Self {
        Self { at, ..self }
    }

    /// The same for a release with which the owner gives all privacy up: no budget is asked, and every rung is charged with everything, so that budgets refuse
    /// all that comes after.
    #[must_use]
    pub fn without_privacy(self) -> Self {
        Self { gives_up: true, ..self }
    }

    /// The number of the entry that was reserved last, if one was.
    pub fn entry(&self) -> Option<u64> {
        self.entry
    }

    /// Whether the commit failed because somebody else had committed under the same entry: that is its value then, and ours was never opened.
    pub(crate) fn beaten(&self) -> bool {
        self.beaten
    }

    /// Whether a charge would fit now, or why not: a budget's "no" is told from a ledger that cannot say. Nothing is written, so it may not fit any more when it is reserved.
    pub fn would_fit(&mut self, charge: &Charge) -> Result<(), Denied> {
        self.register.would_fit(&self.question, self.budgets, charge)
    }

    /// What a [`Ledger`] answers, which knows of refusals alone; one that is none of a budget's is told by [`Ledger::failure`], which a release asks for.
    fn refused(&mut self, denied: Denied, charge: &Charge) -> Refusal {
        let error = match denied {
            Denied::Refused(refusal) => return refusal,
            Denied::Answered { entry } => LedgerError::Closed { number: entry, state: "committed" },
            Denied::Failed(error) => error,
        };
        let asked = if matches!(error, LedgerError::NoBudget { .. }) { "a budget" } else { "a ledger" };
        self.failure = Some(error.into());
        let unit = charge.first().map_or_else(|| "unit".to_owned(), |(rung, _)| rung.unit.to_string());
        Refusal::new(asked, "none", unit)
    }
}

impl Ledger for Booking<'_> {
    fn reserve(&mut self, charge: &Charge) -> Result<Reservation, Refusal> {
        self.failure = None;
        let terms = Terms { budgets: self.budgets, gives_up: self.gives_up, again: true };
        let reserved = match self.under {
            None => self.register.reserve_for(&self.question, charge, terms),
            Some(number) => {
                let given_up = self.gives_up.then(|| everything(charge));
                let open = self.register.check_open(number, given_up.as_ref().unwrap_or(charge), self.at.as_ref());
                open.map(|()| number).map_err(Denied::Failed)
            }
        };
        let number = reserved.map_err(|denied| self.refused(denied, charge))?;
        self.entry = Some(number);
        Ok(Reservation::new(number))
    }

    fn commit(&mut self, reservation: Reservation, value: &[u8]) -> Result<(), CommitError> {
        let committed = self.register.commit_entry(reservation.number(), self.at.as_ref(), value);
        self.beaten = matches!(committed, Err(LedgerError::Closed { state: "committed", .. }));
        Ok(committed?)
    }

    fn progress(&mut self, reservation: &Reservation, progress: &Progress) -> Result<(), LedgerFailure> {
        self.register.note_progress(reservation.number(), self.at.as_ref(), progress)?;
        self.at = Some(progress.clone());
        Ok(())
    }

    fn failure(&self) -> Option<LedgerFailure> {
        self.failure.clone()
    }
}
