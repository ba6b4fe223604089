//! What every ledger can do: keep the charges of releases, find what was released, and tell of both.

use super::budget::{Budget, Fit};
use super::chain::{ChainFault, Head};
use super::entry::{Decision, Entry};
use super::error::{Denied, LedgerError};
use super::export::{ExportError, write_csv};
use super::question::{Question, Stored};
use super::report::{Account, Moment, Reaccounted, SpendingReport, Which, in_force};
use super::turn::Turn;
use super::verify::Verified;
use crate::accountant::Name;
use std::io::Write;
use std::path::Path;
use whit_core::{Charge, Progress};

/// On which terms a charge is reserved.
#[derive(Debug, Clone, Copy)]
pub struct Terms<'a> {
    /// The budgets of which those apply that watch over the question.
    pub budgets: &'a [Budget],
    /// Whether the owner gives all privacy up: no budget is asked, and every rung is charged with everything.
    pub gives_up: bool,
    /// Whether it is charged also where the question is answered already.
    pub again: bool,
}

/// A ledger as a whole: [`Books`](super::Books) are one in SQLite, [`Memory`](super::Memory) is one that ends with the process.
///
/// A release writes to a [`Ledger`](whit_core::Ledger), which knows of one question only: a [`Booking`](super::Booking) is that, of any register. What it promises, all keep: what is
/// reserved is durable, as far as the ledger is, before anything is drawn; no two reservations spend the same ε; one entry is committed once.
pub trait Register {
    /// The file that it is, where it is one: [`OperatorLog`](super::OperatorLog) stands next to it.
    fn file(&self) -> Option<&Path> {
        None
    }

    /// Waits until nobody else is at work on the very same question. A ledger that only one can write to has nobody to wait for.
    fn turn(&self, question: &Question) -> Result<Turn, LedgerError> {
        let _ = question;
        Ok(Turn::default())
    }

    /// Whether somebody else has the [turn](Self::turn) of this question now. Nobody is waited for; where turns are not to be had, it is not known of anybody.
    fn is_at_work(&self, question: &Question) -> Result<bool, LedgerError> {
        let _ = question;
        Ok(false)
    }

    /// What was released before to the same question about the same data, by whomever it was asked.
    fn stored(&self, question: &Question) -> Result<Option<Stored>, LedgerError>;

    /// The entry of the same question, by the same analyst, that was reserved and of which nothing has come yet.
    fn open_reservation(&mut self, question: &Question) -> Result<Option<Entry>, LedgerError>;

    /// The entry of the same question, by the same analyst, that [was interrupted](Entry::is_interrupted): the oldest, where there are several.
    fn interrupted_reservation(&mut self, question: &Question) -> Result<Option<Entry>, LedgerError>;

    /// Whether a charge would fit now. Nothing is written.
    fn would_fit(&mut self, question: &Question, budgets: &[Budget], charge: &Charge) -> Result<(), Denied>;

    /// How a charge stands to every budget that applies to what this analyst asks of this data set. Nothing is written.
    fn fits(&mut self, asked: (&str, &str), budgets: &[Budget], charge: &Charge) -> Result<Vec<Fit>, LedgerError>;

    /// Sees to it that a charge has something to be written to, before anybody waits or works for it. Where there is no ledger yet, one that could never be
    /// written is refused here, so that none is made for it: see [`Unmade`](super::Unmade). Others have nothing to do.
    fn prepare_for(&mut self, question: &Question, charge: &Charge, terms: Terms<'_>) -> Result<(), Denied> {
        let _ = (question, charge, terms);
        Ok(())
    }

    /// Sets a charge aside, durably, and gives the number of its entry. Whether it fits and, where the terms say so, whether the question is answered by now is
    /// decided where nobody else can write.
    fn reserve_for(&mut self, question: &Question, charge: &Charge, terms: Terms<'_>) -> Result<u64, Denied>;

    /// Whether an entry is open, charged with exactly this, and stands at this checkpoint.
    fn check_open(&mut self, number: u64, charge: &Charge, at: Option<&Progress>) -> Result<(), LedgerError>;

    /// Notes how far the work of an open entry has come, after what was noted last.
    fn note_progress(&mut self, number: u64, after: Option<&Progress>, next: &Progress) -> Result<(), LedgerError>;

    /// How far the work of an entry had come when that was last noted.
    fn progress_of(&mut self, number: u64) -> Result<Option<Progress>, LedgerError>;

    /// Notes what came of an open entry, whose work stands at this checkpoint.
    fn commit_entry(&mut self, number: u64, at: Option<&Progress>, value: &[u8]) -> Result<(), LedgerError>;

    /// Takes back a reservation of which nothing came. The reason is kept, and so is the entry.
    ///
    /// It is for the owner of the data to say that no value left: the ledger knows only that none was committed. Work that still runs
    /// when its entry is voided cannot commit, so its value is never opened.
    fn void(&mut self, number: u64, reason: &str) -> Result<(), LedgerError>;

    /// The entries, in order.
    fn entries(&self, which: &Which) -> Result<Vec<Entry>, LedgerError>;

    /// That the ledger knows the data set and the analyst whose entries are asked for: an error that names those it knows, where it knows others alone.
    fn check_known(&self, which: &Which) -> Result<(), LedgerError> {
        which.check(&self.entries(&Which::default())?)
    }

    /// What the owner decided about the ledger as a whole, in order.
    fn decisions(&self) -> Result<Vec<Decision>, LedgerError>;

    /// How far the chain goes: a short text to keep elsewhere.
    fn head(&self) -> Result<Head, LedgerError>;

    /// Recomputes every hash and every total. The fault names the entry and the field of the first thing that is not as it was written.
    fn verify(&self) -> Result<Verified, ChainFault>;

    /// The same, and that the chain leads through a head that was kept elsewhere: so nothing before it was changed,
    /// not even by somebody who wrote all hashes anew.
    fn verify_after(&self, kept: &Head) -> Result<Verified, ChainFault>;

    /// Writes the ledger as lines of JSON, from which one can be [built again](super::Books::import).
    fn export(&self, out: &mut dyn Write) -> Result<(), ExportError>;

    /// Notes the fingerprint of one data set, and tells whether it was another when it was last noted. For the owner of the data only.
    fn note_source(&mut self, dataset: &str, fingerprint: &str) -> Result<bool, LedgerError>;

    /// Whether a data set had another fingerprint when it was last noted. Nothing is noted now.
    fn source_changed(&self, dataset: &str, fingerprint: &str) -> Result<bool, LedgerError>;

    /// Notes the hash of a source file, so that it need not be read again while its size and time stay the same.
    fn remember_file(&mut self, path: &str, size: u64, modified: i64, hash: &str) -> Result<(), LedgerError>;

    /// The hash that was noted for a file of this size and time.
    fn recall_file(&self, path: &str, size: u64, modified: i64) -> Result<Option<String>, LedgerError>;

    /// Whether an entry was made void.
    fn is_void(&self, number: u64) -> Result<bool, LedgerError> {
        let entries = self.entries(&Which::default())?;
        Ok(entries.iter().any(|entry| entry.number == number && !entry.counts()))
    }

    /// Writes one line for each rung of each entry, with commas between the fields: for spreadsheets. It does not hold all that the ledger does.
    fn export_csv(&self, out: &mut dyn Write) -> Result<(), ExportError> {
        write_csv(&self.entries(&Which::default())?, out)
    }

    /// The budgets that were in force last, for each data set, unit and analyst.
    fn budgets(&self) -> Result<Vec<Budget>, LedgerError> {
        Ok(in_force(&self.entries(&Which::default())?))
    }

    /// What was spent, and what is left of these budgets. Rungs without a budget are reported too.
    fn statement(&self, budgets: &[Budget]) -> Result<SpendingReport, LedgerError> {
        SpendingReport::of(&self.entries(&Which::default())?, budgets)
    }

    /// What was spent of one budget, and what is left.
    fn spent(&self, budget: &Budget) -> Result<Account, LedgerError> {
        Account::of(&self.entries(&Which::default())?, budget)
    }

    /// ε over time: one moment for every entry that was charged to the budget, and one for every one that was voided.
    fn history(&self, budget: &Budget) -> Result<Vec<Moment>, LedgerError> {
        Moment::all(&self.entries(&Which::default())?, budget)
    }

    /// The same for an account, also where nobody limits what it loses.
    fn history_of(&self, account: &Account) -> Result<Vec<Moment>, LedgerError> {
        Moment::of(&self.entries(&Which::default())?, account)
    }

    /// What another accountant makes of everything that was charged, for each unit that has a budget or was charged.
    ///
    /// The filter's figure holds whatever the analyst saw before choosing the next question. An accountant's is for costs that
    /// do not depend on the answers: if they did, it is an estimate and no promise, though often a good one.
    fn reaccount(&self, name: Name, budgets: &[Budget]) -> Result<Vec<Reaccounted>, LedgerError> {
        Reaccounted::all(&self.entries(&Which::default())?, name, budgets)
    }
}
