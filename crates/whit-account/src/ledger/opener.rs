//! How one comes by a ledger: by opening what is there, by making one, or by what its owner decides.

use super::error::LedgerError;
#[cfg(doc)]
use super::memory::Memory;
use super::opening::Opening;
use super::register::Register;
use super::sqlite::Books;
use std::fmt;
use std::path::{Path, PathBuf};

/// A ledger that is open, whichever it is, and may go to another thread.
pub type OpenRegister = Box<dyn Register + Send>;

/// What opens a ledger.
///
/// [`BooksFile`] opens the durable ledger in a file, and [`HandedOver`] gives one that is open, such as a [`Memory`]. Whoever keeps ledgers elsewhere writes one of
/// these, and the sessions of `whit` stand on it as on any other.
pub trait Opener: Send {
    /// Opens the ledger, and makes it where there is none.
    fn open(&mut self) -> Result<OpenRegister, LedgerError>;

    /// Opens a ledger that must be there, be it only to look: [`LedgerError::Missing`] where there is none, and nothing is made.
    fn open_existing(&mut self) -> Result<OpenRegister, LedgerError>;

    /// Takes the ledger as it stands, whatever is known of it elsewhere. The reason is kept. For its owner alone.
    fn accept(&mut self, reason: &str) -> Result<OpenRegister, LedgerError> {
        let _ = reason;
        Err(LedgerError::Undecidable)
    }

    /// Begins anew where a ledger was and is gone. The reason is kept. For its owner alone.
    fn reset(&mut self, reason: &str) -> Result<OpenRegister, LedgerError> {
        let _ = reason;
        Err(LedgerError::Undecidable)
    }

    /// The file that it is, where it is one, which no output may replace.
    fn file(&self) -> Option<&Path> {
        None
    }

    /// The folder in which more is known of it, where no output goes either.
    fn heads(&self) -> Option<&Path> {
        None
    }
}

/// The durable ledger in one file: what opens [`Books`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BooksFile {
    path: PathBuf,
    opening: Opening,
}

impl BooksFile {
    /// The ledger in this file, opened as is said.
    pub fn new(path: PathBuf, opening: Opening) -> Self {
        Self { path, opening }
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Opener for BooksFile {
    fn open(&mut self) -> Result<OpenRegister, LedgerError> {
        Ok(Box::new(Books::open_as(&self.path, &self.opening)?))
    }

    fn open_existing(&mut self) -> Result<OpenRegister, LedgerError> {
        Ok(Box::new(Books::open_existing(&self.path, &self.opening)?))
    }

    fn accept(&mut self, reason: &str) -> Result<OpenRegister, LedgerError> {
        Ok(Box::new(Books::accept(&self.path, &self.opening, reason)?))
    }

    fn reset(&mut self, reason: &str) -> Result<OpenRegister, LedgerError> {
        Ok(Box::new(Books::reset(&self.path, &self.opening, reason)?))
    }

    fn file(&self) -> Option<&Path> {
        Some(&self.path)
    }

    fn heads(&self) -> Option<&Path> {
        self.opening.witness.as_deref()
    }
}

/// A ledger that is open already. It is given once, and never as a copy: two copies would each spend the same ε.
///
/// ```
/// use whit_account::ledger::{HandedOver, LedgerError, Memory, Opener};
/// let mut opener = HandedOver::new(Memory::new());
/// assert_eq!(opener.open()?.verify()?.entries, 0);
/// assert_eq!(opener.open().err(), Some(LedgerError::Taken));
/// assert_eq!(opener.reset("to begin anew").err(), Some(LedgerError::Undecidable));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct HandedOver {
    ledger: Option<OpenRegister>,
}

impl HandedOver {
    /// This one.
    pub fn new(ledger: impl Register + Send + 'static) -> Self {
        Self { ledger: Some(Box::new(ledger)) }
    }
}

impl fmt::Debug for HandedOver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HandedOver").field("given", &self.ledger.is_none()).finish_non_exhaustive()
    }
}

impl Opener for HandedOver {
    fn open(&mut self) -> Result<OpenRegister, LedgerError> {
        self.ledger.take().ok_or(LedgerError::Taken)
    }

    fn open_existing(&mut self) -> Result<OpenRegister, LedgerError> {
        self.open()
    }
}
