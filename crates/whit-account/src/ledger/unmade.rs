//! A ledger that is not there yet. Looked at, it is empty; the first charge that fits makes it, so that whatever is asked wrongly or refused leaves none behind.

use super::budget::{Budget, Fit};
use super::chain::{ChainFault, Head};
use super::entry::{Decision, Entry};
use super::error::{Denied, LedgerError};
use super::export::ExportError;
use super::memory::Memory;
use super::opener::{OpenRegister, Opener};
use super::question::{Question, Stored};
use super::register::{Register, Terms};
use super::report::Which;
use super::turn::Turn;
use super::verify::Verified;
use std::fmt;
use std::io::Write;
use std::path::Path;
use whit_core::{Charge, Progress};

/// A ledger that a charge makes where there is none, and else the one that is open.
///
/// ```
/// use whit_account::ledger::{HandedOver, Memory, Register as _, Unmade};
/// let (mut opener, mut none, mut made) = (HandedOver::new(Memory::new()), Memory::new(), None);
/// let ledger = Unmade::new(&mut opener, &mut none, &mut made);
/// assert_eq!(ledger.verify()?.entries, 0);
/// assert!(made.is_none(), "nothing was opened to look");
/// # Ok::<(), whit_account::ledger::ChainFault>(())
/// ```
pub struct Unmade<'a> {
    opener: &'a mut dyn Opener,
    none: &'a mut Memory,
    made: &'a mut Option<OpenRegister>,
}

impl fmt::Debug for Unmade<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Unmade").field("made", &self.made.is_some()).finish_non_exhaustive()
    }
}

impl<'a> Unmade<'a> {
    /// The ledger that is open, or the one that this opener will make. Until then `none` keeps what is known of files, and nothing is ever charged to it.
    pub fn new(opener: &'a mut dyn Opener, none: &'a mut Memory, made: &'a mut Option<OpenRegister>) -> Self {
        Self { opener, none, made }
    }

    fn now(&self) -> &dyn Register {
        match &*self.made {
            Some(made) => &**made,
            None => &*self.none,
        }
    }

    fn now_mut(&mut self) -> &mut dyn Register {
        match self.made {
            Some(made) => &mut **made,
            None => self.none,
        }
    }

    /// Makes it, if this charge could be written into an empty one: what does not fit there fits nowhere.
    fn make_for(&mut self, question: &Question, charge: &Charge, terms: Terms<'_>) -> Result<(), Denied> {
        if self.made.is_some() {
            return Ok(());
        }
        if !terms.gives_up {
            self.none.would_fit(question, terms.budgets, charge)?;
        }
        let mut made = self.opener.open()?;
        self.none.hand_over(&mut *made)?;
        *self.made = Some(made);
        Ok(())
    }
}

impl Register for Unmade<'_> {
    fn file(&self) -> Option<&Path> {
        self.now().file()
    }

    fn turn(&self, question: &Question) -> Result<Turn, LedgerError> {
        self.now().turn(question)
    }

    fn is_at_work(&self, question: &Question) -> Result<bool, LedgerError> {
        self.now().is_at_work(question)
    }

    fn stored(&self, question: &Question) -> Result<Option<Stored>, LedgerError> {
        self.now().stored(question)
    }

    fn open_reservation(&mut self, question: &Question) -> Result<Option<Entry>, LedgerError> {
        self.now_mut().open_reservation(question)
    }

    fn interrupted_reservation(&mut self, question: &Question) -> Result<Option<Entry>, LedgerError> {
        self.now_mut().interrupted_reservation(question)
    }

    fn would_fit(&mut self, question: &Question, budgets: &[Budget], charge: &Charge) -> Result<(), Denied> {
        self.now_mut().would_fit(question, budgets, charge)
    }

    fn fits(&mut self, asked: (&str, &str), budgets: &[Budget], charge: &Charge) -> Result<Vec<Fit>, LedgerError> {
        self.now_mut().fits(asked, budgets, charge)
    }

    fn prepare_for(&mut self, question: &Question, charge: &Charge, terms: Terms<'_>) -> Result<(), Denied> {
        self.make_for(question, charge, terms)
    }

    fn reserve_for(&mut self, question: &Question, charge: &Charge, terms: Terms<'_>) -> Result<u64, Denied> {
        self.make_for(question, charge, terms)?;
        self.now_mut().reserve_for(question, charge, terms)
    }

    fn check_open(&mut self, number: u64, charge: &Charge, at: Option<&Progress>) -> Result<(), LedgerError> {
        self.now_mut().check_open(number, charge, at)
    }

    fn note_progress(&mut self, number: u64, after: Option<&Progress>, next: &Progress) -> Result<(), LedgerError> {
        self.now_mut().note_progress(number, after, next)
    }

    fn progress_of(&mut self, number: u64) -> Result<Option<Progress>, LedgerError> {
        self.now_mut().progress_of(number)
    }

    fn commit_entry(&mut self, number: u64, at: Option<&Progress>, value: &[u8]) -> Result<(), LedgerError> {
        self.now_mut().commit_entry(number, at, value)
    }

    fn void(&mut self, number: u64, reason: &str) -> Result<(), LedgerError> {
        self.now_mut().void(number, reason)
    }

    fn entries(&self, which: &Which) -> Result<Vec<Entry>, LedgerError> {
        self.now().entries(which)
    }

    fn decisions(&self) -> Result<Vec<Decision>, LedgerError> {
        self.now().decisions()
    }

    fn head(&self) -> Result<Head, LedgerError> {
        self.now().head()
    }

    fn verify(&self) -> Result<Verified, ChainFault> {
        self.now().verify()
    }

    fn verify_after(&self, kept: &Head) -> Result<Verified, ChainFault> {
        self.now().verify_after(kept)
    }

    fn export(&self, out: &mut dyn Write) -> Result<(), ExportError> {
        self.now().export(out)
    }

    fn note_source(&mut self, dataset: &str, fingerprint: &str) -> Result<bool, LedgerError> {
        self.now_mut().note_source(dataset, fingerprint)
    }

    fn source_changed(&self, dataset: &str, fingerprint: &str) -> Result<bool, LedgerError> {
        self.now().source_changed(dataset, fingerprint)
    }

    fn remember_file(&mut self, path: &str, size: u64, modified: i64, hash: &str) -> Result<(), LedgerError> {
        self.now_mut().remember_file(path, size, modified, hash)
    }

    fn recall_file(&self, path: &str, size: u64, modified: i64) -> Result<Option<String>, LedgerError> {
        self.now().recall_file(path, size, modified)
    }
}
