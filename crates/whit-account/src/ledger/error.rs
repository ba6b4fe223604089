//! What goes wrong with a ledger that is a file, in sentences.

use super::chain::{ChainFault, Stop};
use crate::accountant::Unsupported;
use rusqlite::ErrorCode;
use std::path::{Path, PathBuf};
use std::time::Duration;
use whit_core::declare::nearest;
use whit_core::digits::number_of;
use whit_core::release::LedgerFailure;
use whit_core::{Kind, Refusal};

/// Why a ledger did not do what it was asked. [`LedgerError::hint`] offers the next step.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum LedgerError {
    /// There is no such file.
    #[error("there is no ledger at `{}`", .0.display())]
    Missing(PathBuf),
    /// The folder or the file cannot be written.
    #[error("the ledger `{}` cannot be opened for writing: {why}", path.display())]
    Unwritable {
        /// The file.
        path: PathBuf,
        /// What the system says.
        why: String,
    },
    /// Another process holds it.
    #[error("another process has held the ledger `{}` for more than {} s", path.display(), waited.as_secs_f64())]
    Locked {
        /// The file.
        path: PathBuf,
        /// How long we waited.
        waited: Duration,
    },
    /// Another process is at work on the very same question.
    #[error("another process has been at work on the very same question for more than {} s", waited.as_secs_f64())]
    Working {
        /// How long we waited.
        waited: Duration,
    },
    /// A file that some other program made.
    #[error("`{}` is no ledger of whit: {what}", path.display())]
    NotALedger {
        /// The file.
        path: PathBuf,
        /// What it is instead.
        what: &'static str,
    },
    /// A format that this version does not know.
    #[error("the ledger `{}` has format {found}, and this whit reads formats up to {known}", path.display())]
    Newer {
        /// The file.
        path: PathBuf,
        /// Its format.
        found: i64,
        /// The newest that is known here.
        known: i64,
    },
    /// Something in it cannot be read any more.
    #[error("the ledger `{}` is damaged: {what}", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What was found.
        what: String,
    },
    /// A record is not as it was written.
    #[error("the ledger was changed: {0}")]
    Changed(#[from] ChainFault),
    /// The ledger is not there, and something outside of it knows that it was.
    #[error("a ledger with {} stood at `{}`, and it is gone: `{}` says so", number_of(events, "event"), path.display(), witness.display())]
    Gone {
        /// The file.
        path: PathBuf,
        /// What knows of it.
        witness: PathBuf,
        /// How many events it had.
        events: u64,
    },
    /// The ledger and what is known of it outside of its file do not agree.
    #[error("the ledger `{}` and its head `{}` do not agree: {what}", path.display(), witness.display())]
    Unlike {
        /// The file.
        path: PathBuf,
        /// The head.
        witness: PathBuf,
        /// How they differ.
        what: String,
    },
    /// Another ledger is there than the one that is known to have been.
    #[error("another ledger stood at `{}` before, with {}: `{}` says so", path.display(), number_of(events, "event"), witness.display())]
    Foreign {
        /// The file.
        path: PathBuf,
        /// What knows of the other.
        witness: PathBuf,
        /// How many events the other had.
        events: u64,
    },
    /// A head that names this ledger, and is not as it was written.
    #[error("`{}`, which names the ledger `{}`, is not as it was written: how far a ledger there went is not known", witness.display(), path.display())]
    Torn {
        /// The file.
        path: PathBuf,
        /// The head.
        witness: PathBuf,
    },
    /// The ledger's path is a link that leads nowhere.
    #[error("the ledger `{}` is a link to `{}`, where there is no file", path.display(), target.display())]
    Link {
        /// The link.
        path: PathBuf,
        /// Where it leads.
        target: PathBuf,
    },
    /// The folder for heads far away would be another in every folder.
    #[error("the folder `{}` for heads of ledgers is no absolute path, so it would be another in every folder", .0.display())]
    Relative(PathBuf),
    /// A head outside of the file, or the folder of those far away, cannot be read or written.
    #[error("`{}`, where a head of the ledger is kept, cannot be read or written: {why}", path.display())]
    Head {
        /// The head, or its folder.
        path: PathBuf,
        /// What the system says.
        why: String,
    },
    /// The disk is full, or failed.
    #[error("the ledger `{}` could not be written: {why}", path.display())]
    Disk {
        /// The file.
        path: PathBuf,
        /// What the system says.
        why: String,
    },
    /// There is no entry of this number.
    #[error("the ledger has no entry {number}; its last one is {last}")]
    NoEntry {
        /// The number asked for.
        number: u64,
        /// The highest there is.
        last: u64,
    },
    /// The entry is not open any more.
    #[error("entry {number} is {state} already")]
    Closed {
        /// Its number.
        number: u64,
        /// "committed" or "void".
        state: &'static str,
    },
    /// A decision of the owner without a reason.
    #[error("what the owner decides has a reason that is kept, and none was given")]
    NoReason,
    /// A decision of the owner about a ledger of which nothing is known but what it says itself.
    #[error("nothing outside of this ledger says how far it went, so there is nothing to decide about it as a whole")]
    Undecidable,
    /// A ledger that was open already and was given to somebody before.
    #[error("the ledger was handed over before, and there is only one of it")]
    Taken,
    /// No rung of a charge has a budget.
    #[error("no budget of `{dataset}` watches over this release, which is charged per {units}")]
    NoBudget {
        /// The data set.
        dataset: String,
        /// The units of the charge, in words.
        units: String,
        /// The kind of the finest of them.
        kind: Kind,
    },
    /// A budget for a unit of which a charge says nothing.
    #[error(
        "`{dataset}` has a budget per {unit}, and what this release costs there is not known: it is charged per {units}"
    )]
    Silent {
        /// The data set.
        dataset: String,
        /// The budget's unit.
        unit: String,
        /// The units of the charge.
        units: String,
    },
    /// A budget for a unit of which an earlier charge says nothing.
    #[error("no budget per {unit} can be kept for `{dataset}`: entry {number} was charged per {units} only")]
    Unknown {
        /// The data set.
        dataset: String,
        /// The budget's unit.
        unit: String,
        /// The earlier entry.
        number: u64,
        /// The units of its charge.
        units: String,
    },
    /// A budget in a currency that does not fit it, or that has no price for an earlier entry.
    #[error("the budget of `{dataset}` per {unit} cannot be kept in this currency: {why}")]
    Currency {
        /// The data set.
        dataset: String,
        /// The budget's unit.
        unit: String,
        /// What the filter says.
        why: Unsupported,
    },
    /// Work that would go on under an entry that pays for other work.
    #[error("entry {number} is charged with something else than what would go on under it")]
    OtherCharge {
        /// The entry.
        number: u64,
    },
    /// Work that would go on from somewhere else than where it was when that was last noted.
    #[error(
        "entry {number} has gone on to step {step}, and what would go on under it does not follow from that checkpoint"
    )]
    OtherCheckpoint {
        /// The entry.
        number: u64,
        /// The step that was last noted.
        step: u64,
    },
    /// Progress that goes back, or stays.
    #[error("entry {number} has gone on to step {last}, so step {step} is none to go on to")]
    NoProgress {
        /// The entry.
        number: u64,
        /// The step that was last noted.
        last: u64,
        /// The step that was to be noted.
        step: u64,
    },
    /// A data set or an analyst of whom no entry speaks.
    #[error("the ledger knows no {what} `{name}`: nothing was ever charged for it")]
    Unheard {
        /// Which of the two.
        what: &'static str,
        /// The name that was asked for.
        name: String,
        /// Those that it knows.
        known: Vec<String>,
    },
    /// A charge that cannot be written down.
    #[error("the charge cannot be written down: {0}")]
    Charge(String),
    /// A line that cannot be read when a ledger is rebuilt.
    #[error("line {line} of the export: {what}")]
    Line {
        /// Which line, from 1.
        line: u64,
        /// What is wrong with it.
        what: String,
    },
}

impl LedgerError {
    /// The next step.
    pub fn hint(&self) -> Option<String> {
        Some(match self {
            Self::Missing(_) => "a first release makes one; or name another file".to_owned(),
            Self::Unwritable { path, .. } => match path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
                Some(folder) if !folder.is_dir() => format!("make the folder `{}` first", folder.display()),
                _ => "check who may write the file and its folder: more files stand next to a ledger".to_owned(),
            },
            Self::Locked { .. } => "wait for the other process, or end it; what it reserved stays spent".to_owned(),
            Self::Working { .. } => {
                "nothing was charged: ask again when it is done, and the answer costs nothing more; or end that process, if it hangs".to_owned()
            }
            Self::NotALedger { path, .. } if path.is_dir() => {
                format!("name a file: in that folder it would be `{}`", path.join("whit.ledger").display())
            }
            Self::NotALedger { .. } => "name another file: nothing in this one was changed".to_owned(),
            Self::Newer { .. } => "use the whit that wrote it, or a later one; nothing was changed".to_owned(),
            Self::Damaged { .. } => "`Register::verify` says how far it can be read; take the file from a backup".to_owned(),
            Self::Changed(_) => {
                "nothing more is released by it: take the file from a backup, or find out who changed what with `Register::verify`".to_owned()
            }
            Self::Head { path, .. } => format!("{}; what was reserved stays spent", head_hint(path)),
            Self::Disk { .. } => "make room and ask again; what was reserved stays spent".to_owned(),
            Self::NoEntry { .. } => "`Register::entries` lists them".to_owned(),
            Self::Closed { state: "committed", .. } => "what was released cannot be taken back; only a reservation without a result can be voided".to_owned(),
            Self::Closed { .. } => "ask anew: a void entry is over".to_owned(),
            Self::NoReason => "say why, such as \"the disk was full before anything was drawn\"".to_owned(),
            Self::Undecidable => "go on with it as it is, or hand over another".to_owned(),
            Self::Taken => "hand over another, or ask whoever has it".to_owned(),
            Self::NoBudget { dataset, kind, .. } => {
                format!("declare one under [dataset.{dataset}] in whit.toml: `budget.{kind} = {{ epsilon = 1.0, delta = 1e-6 }}`")
            }
            Self::Silent { unit, .. } => format!(
                "protect {unit} or what lies within it, declare the caps that link the two, or take that budget out of whit.toml"
            ),
            Self::Unknown { .. } => "take that budget out of whit.toml, or begin a new ledger where the data is new".to_owned(),
            Self::Currency { .. } => "choose another: `currency = \"concentrated\"` counts every kind of run, `\"sum\"` is for δ = 0".to_owned(),
            Self::OtherCharge { .. } => "go on with the parameters that it was reserved with, or ask anew".to_owned(),
            Self::OtherCheckpoint { .. } | Self::NoProgress { .. } => {
                "one reservation pays for one run: go on from its last checkpoint, or ask anew".to_owned()
            }
            Self::Gone { .. } => {
                "put the file back, with its head; an owner who means to begin anew says so: `Books::reset`".to_owned()
            }
            Self::Unlike { .. } => {
                "put both files back as they were; an owner who means to go on with the ledger as it stands says so: `Books::accept`"
                    .to_owned()
            }
            Self::Foreign { .. } => {
                "put that ledger back, with its head; an owner who means to go on with the one that stands there now says so: `Books::accept`"
                    .to_owned()
            }
            Self::Torn { .. } => {
                "put that head back as it was; an owner who knows why says so: `Books::accept` where the ledger is there, \
                 `Books::reset` where it is gone"
                    .to_owned()
            }
            Self::Link { .. } => {
                "put the ledger back where the link leads, with its head; or remove the link, and name the file itself".to_owned()
            }
            Self::Relative(_) => {
                "give the whole path, from `/` on, in `WHIT_STATE`; an empty one says that no heads are kept far away".to_owned()
            }
            Self::Unheard { name, known, .. } => match nearest(name, known.iter().map(String::as_str)) {
                Some(near) => format!("did you mean `{near}`?"),
                None => format!("it knows: {}", known.join(", ")),
            },
            Self::Charge(_) | Self::Line { .. } => return None,
        })
    }

    /// Whether the system did not let us read or write, which says nothing about what the ledger holds.
    pub fn is_of_the_system(&self) -> bool {
        matches!(self, Self::Unwritable { .. } | Self::Locked { .. } | Self::Head { .. } | Self::Disk { .. })
    }

    /// The sentence for what SQLite says.
    pub(super) fn from_sqlite(error: &rusqlite::Error, path: &Path, waited: Duration) -> Self {
        let path = path.to_owned();
        let why = error.to_string();
        match error.sqlite_error_code() {
            Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => Self::Locked { path, waited },
            Some(ErrorCode::NotADatabase) => Self::NotALedger { path, what: "it is not even a database" },
            Some(ErrorCode::CannotOpen | ErrorCode::PermissionDenied | ErrorCode::ReadOnly) => {
                Self::Unwritable { path, why }
            }
            Some(ErrorCode::DiskFull | ErrorCode::SystemIoFailure) => Self::Disk { path, why },
            // A constraint or a wrong type cannot come from our own statements, so a hand was at the tables.
            Some(_) | None => Self::Damaged { path, what: why },
        }
    }
}

/// Why there is no reservation.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum Denied {
    /// A budget said no.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// The question is answered already, so there is nothing to pay for.
    #[error("entry {entry} answers this question already")]
    Answered {
        /// By this entry.
        entry: u64,
    },
    /// The ledger could not be asked.
    #[error(transparent)]
    Failed(#[from] LedgerError),
}

impl Stop {
    pub(super) fn into_error(self, explain: impl FnOnce(&rusqlite::Error) -> LedgerError) -> LedgerError {
        match self {
            Self::ChainFault(fault) => LedgerError::Changed(fault),
            Self::Sqlite(error) => explain(&error),
        }
    }
}

/// What to do about a head, or a folder of heads, that cannot be read or written. One that stands next to its ledger goes nowhere else.
fn head_hint(path: &Path) -> String {
    let name = path.file_stem().and_then(|name| name.to_str()).unwrap_or_default();
    let is_away = name.len() == 32 && name.chars().all(|c| c.is_ascii_hexdigit());
    if path.extension().is_some_and(|ending| ending == "head") && !is_away {
        return "see to it that it can be read and written, and its folder too".to_owned();
    }
    let folder = if is_away { path.parent().unwrap_or(path) } else { path };
    match folder.ancestors().find(|folder| folder.exists()) {
        Some(file) if !file.is_dir() => {
            format!("`{}` is a file: name a folder with `WHIT_STATE`, by its whole path", file.display())
        }
        Some(other) if other != folder => {
            format!("make the folder `{}`, or name another with `WHIT_STATE`, by its whole path", folder.display())
        }
        _ => "see to it that it can be read and written, or name another folder for heads with `WHIT_STATE`".to_owned(),
    }
}

impl From<LedgerError> for ChainFault {
    fn from(error: LedgerError) -> Self {
        match error {
            LedgerError::Changed(fault) => fault,
            other if other.is_of_the_system() => Self::unread(&other),
            other => Self::file(format!("is not what it was: {other}")),
        }
    }
}

impl From<LedgerError> for LedgerFailure {
    fn from(error: LedgerError) -> Self {
        Self { sentence: error.to_string(), hint: error.hint() }
    }
}
