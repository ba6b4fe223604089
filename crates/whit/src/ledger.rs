//! A ledger by itself: what was charged to it, whether it is as it was written, and what its owner decides about it.
//!
//! A [`Session`](crate::Session) does this with the ledger of its data sets. A [`Bookkeeper`] needs none of them, and not even a declaration: the data may be gone, and what was spent of it is not.

use crate::Error;
use crate::error::of_fault;
use std::io::Write;
use std::path::{Path, PathBuf};
use whit_account::Name;
use whit_account::ledger::{
    BooksFile, ChainFault, Entry, ExportError, Head, LedgerError, OpenRegister, Opener, Opening, Reaccounted, Register,
    Verified, Which,
};
use whit_core::declare::Declaration;

/// The ledger where nobody named another.
const USUAL: &str = "whit.ledger";

/// How a ledger is opened where nothing else is said: its head is also kept in the folder that `WHIT_STATE` names, or else where programs of this user keep their state. An empty
/// `WHIT_STATE` says that it is not; one that is no absolute path is refused when the ledger is opened.
pub fn heads() -> Opening {
    let folder = |name: &str| std::env::var_os(name).map(PathBuf::from);
    let state = if let Some(named) = folder("WHIT_STATE") {
        Some(named).filter(|named| !named.as_os_str().is_empty())
    } else {
        let state = folder("XDG_STATE_HOME").filter(|state| state.is_absolute());
        let home = || folder("HOME").filter(|home| home.is_absolute()).map(|home| home.join(".local/state"));
        state.or_else(home).map(|state| state.join("whit"))
    };
    Opening { witness: state, ..Opening::default() }
}

/// Where the ledger is that a declaration in this folder names, or is silent about.
pub(crate) fn ledger_in(folder: &Path, declared: Option<&Declaration>) -> PathBuf {
    folder.join(declared.and_then(|declared| declared.ledger.as_deref()).unwrap_or(USUAL))
}

/// Looks into a ledger, and carries out what its owner decides about it. Nothing is charged here, and to look makes no ledger.
///
/// ```
/// use whit::account::ledger::Opening;
/// use whit::error::Reason;
/// use whit::ledger::Bookkeeper;
/// let mut none = Bookkeeper::at("no-such.ledger".into(), Opening::default());
/// let error = none.verify(None).unwrap_err();
/// assert_eq!(error.reason, Some(Reason::NoLedger("no-such.ledger".into())));
/// ```
pub struct Bookkeeper {
    /// What opens the ledger, when something is paid for or somebody looks.
    pub(crate) opener: Box<dyn Opener>,
    pub(crate) books: Option<OpenRegister>,
}

impl std::fmt::Debug for Bookkeeper {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Bookkeeper").field("file", &self.file()).finish_non_exhaustive()
    }
}

impl Bookkeeper {
    /// The ledger in this file.
    pub fn at(file: PathBuf, opening: Opening) -> Self {
        Self::on(Box::new(BooksFile::new(file, opening)))
    }

    /// The ledger that a declaration names, or `whit.ledger` next to it. There need be no declaration; one that is there must be sound, since it may name another.
    pub fn declared(config: &Path, opening: Opening) -> Result<Self, Error> {
        let declared = match std::fs::read_to_string(config) {
            Ok(text) => Some(Declaration::parse(&text)),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => None,
            Err(error) => {
                let sentence = format!("`{}` cannot be read: {error}", config.display());
                let hint = "it may name the ledger: see to it that it can be read, or name the ledger's own file";
                return Err(Error::failed(sentence).with_hint(hint));
            }
        };
        let declared = declared.transpose().map_err(|error| {
            let hint = error.hint();
            Error::asked(error.to_string(), hint).at(config.display().to_string())
        })?;
        let folder = config.parent().unwrap_or_else(|| Path::new(""));
        Ok(Self::at(ledger_in(folder, declared.as_ref()), opening))
    }

    /// The ledger that this opens.
    pub fn on(opener: Box<dyn Opener>) -> Self {
        Self { opener, books: None }
    }

    /// The file that it is, or will be; nothing where it is kept elsewhere.
    pub fn file(&self) -> Option<&Path> {
        self.opener.file()
    }

    /// The ledger, to look into: an error where there is none.
    pub fn look(&mut self) -> Result<&dyn Register, Error> {
        Ok(&*self.existing()?)
    }

    /// What was charged, in its order.
    pub fn history(&mut self, which: &Which) -> Result<Vec<Entry>, Error> {
        Ok(self.existing()?.entries(which)?)
    }

    /// What another accountant makes of everything that was charged, against the budgets that were in force last: see [`Register::reaccount`].
    pub fn reaccount(&mut self, name: Name) -> Result<Vec<Reaccounted>, Error> {
        let books = self.existing()?;
        Ok(books.reaccount(name, &books.budgets()?)?)
    }

    /// Writes the ledger as lines of JSON, from which one can be [built again](whit_account::ledger::Books::import).
    pub fn export(&mut self, out: &mut dyn Write) -> Result<(), ExportError> {
        self.opened()?.export(out)
    }

    /// Writes one line for each rung of each entry, for spreadsheets.
    pub fn export_csv(&mut self, out: &mut dyn Write) -> Result<(), ExportError> {
        self.opened()?.export_csv(out)
    }

    /// Recomputes every hash and every total, and that the chain leads through a head that was kept elsewhere, where there is one. What was changed is the error's
    /// [reason](crate::error::Reason::Ledger), also where it was so much that the ledger could not be opened.
    pub fn verify(&mut self, kept: Option<&Head>) -> Result<Verified, Error> {
        let opened = match self.opened() {
            Err(error) if is_elsewhere(&error) => return Err(error.into()),
            opened => opened,
        };
        let verified = opened.map_err(ChainFault::from).and_then(|books| match kept {
            None => books.verify(),
            Some(head) => books.verify_after(head),
        });
        verified.map_err(|fault| {
            let hint = if fault.is_damage() {
                "nothing after this can be trusted; put the files back as they were, from a backup"
            } else {
                "nothing is known to be wrong with it; see to it that its files can be read, and ask again"
            };
            let error = of_fault(fault).with_hint(hint);
            match self.file() {
                Some(file) => error.at(file.display().to_string()),
                None => error,
            }
        })
    }

    /// Takes back a reservation of which nothing came. The reason is kept.
    pub fn void(&mut self, entry: u64, reason: &str) -> Result<(), Error> {
        Ok(self.existing()?.void(entry, reason)?)
    }

    /// Takes the ledger as it stands, whatever its heads say: for an owner who knows why they differ, such as a backup that was put back. What the heads knew and
    /// the ledger does not is forgotten; that, and the reason, are kept.
    pub fn accept(&mut self, reason: &str) -> Result<Verified, Error> {
        let accepted = self.opener.accept(reason)?;
        let books = self.books.insert(accepted); // what was open before would go on from what it had read
        books.verify().map_err(of_fault)
    }

    /// Begins anew where a ledger was and is gone: for an owner who knows why. The reason is the first thing in it.
    pub fn reset(&mut self, reason: &str) -> Result<(), Error> {
        self.books = Some(self.opener.reset(reason)?);
        Ok(())
    }

    /// The ledger, made where there is none.
    pub(crate) fn made(&mut self) -> Result<&mut dyn Register, Error> {
        let books = match self.books.take() {
            Some(books) => books,
            None => self.opener.open()?,
        };
        Ok(&mut **self.books.insert(books))
    }

    /// The ledger where there is one: to look makes none.
    pub(crate) fn if_any(&mut self) -> Result<Option<&mut (dyn Register + 'static)>, Error> {
        match self.opened() {
            Ok(books) => Ok(Some(books)),
            Err(LedgerError::Missing(_)) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    fn existing(&mut self) -> Result<&mut (dyn Register + 'static), Error> {
        Ok(self.opened()?)
    }

    fn opened(&mut self) -> Result<&mut (dyn Register + 'static), LedgerError> {
        let books = match self.books.take() {
            Some(books) => books,
            None => self.opener.open_existing()?,
        };
        Ok(&mut **self.books.insert(books))
    }
}

/// Whether it says nothing about what the ledger holds.
fn is_elsewhere(error: &LedgerError) -> bool {
    error.is_of_the_system()
        || matches!(
            error,
            LedgerError::Missing(_)
                | LedgerError::NotALedger { .. }
                | LedgerError::Newer { .. }
                | LedgerError::Link { .. }
                | LedgerError::Relative(_)
                | LedgerError::Taken
        )
}
