//! What can go wrong while learning. Messages speak of columns, layers and parameters, never of rows.

mod sanitiser;

pub use sanitiser::SanitiserError;

use std::path::PathBuf;
use thiserror::Error;
use whit_core::digits::number_of;
use whit_core::mechanism::SanitiseError;
use whit_core::release::{LedgerFailure, ReadError};

/// Why nothing was learned, or no more.
#[derive(Debug, Error)]
pub enum LearnError {
    /// Something in the plan contradicts something else.
    #[error(transparent)]
    Plan(#[from] crate::plan::PlanError),
    /// Data that does not fit the plan.
    #[error("{0}")]
    Data(String),
    /// Rows that cannot be kept, or not be read back.
    #[error(transparent)]
    Store(#[from] crate::store::StoreError),
    /// A unit of a coarser rung that holds more than its cap.
    #[error("one {unit} has more than the {} that its caps allow and its price was made for", number_of(held, "unit"))]
    Cap {
        /// The coarser unit.
        unit: String,
        /// Its cap.
        held: u64,
    },
    /// A parameter without a tap.
    #[error("the parameter `{0}` has no tap, so what one unit contributes to it is not known")]
    Untapped(String),
    /// A parameter that several taps lead to.
    #[error("the parameter `{0}` is used twice, and the norm of what a unit contributes to it is then not known")]
    Shared(String),
    /// A gradient of plain learning that is no number. A private step never fails so: there a unit like that contributes nothing.
    #[error("the gradient of {0} is infinite or not a number; the step was not taken")]
    NotANumber(String),
    /// A layer that cannot be had.
    #[error("{0}")]
    Layer(String),
    /// A file that cannot be read or written, or a model that does not fit.
    #[error("{what}")]
    File {
        /// What is wrong.
        what: String,
        /// The next step.
        hint: String,
    },
    /// A checkpoint that is none, or not as it was written.
    #[error("`{}` {what}", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        what: String,
    },
    /// A checkpoint of another run.
    #[error("`{}` is the checkpoint of another run: the training file or the declaration is another", .0.display())]
    OtherRun(PathBuf),
    /// A place that another process has.
    #[error("another process is training with `{}`", .0.display())]
    Busy(PathBuf),
    /// A run that whoever watches it stopped between two steps, where it can go on.
    #[error("the run was stopped after step {taken} of {steps}")]
    Stopped {
        /// How many steps were taken.
        taken: u64,
        /// Of how many.
        steps: u64,
    },
    /// A ledger that did not note how far a run has come.
    #[error(transparent)]
    Ledger(LedgerFailure),
    /// The noise could not be drawn or added.
    #[error(transparent)]
    Sanitise(#[from] SanitiserError),
    /// Units that the plan cannot draw from.
    #[error(transparent)]
    Pool(#[from] crate::sample::PoolError),
    /// A window that does not fit.
    #[error(transparent)]
    Window(#[from] crate::kernel::WindowError),
    /// An optimiser that cannot be had.
    #[error(transparent)]
    Optimise(#[from] crate::optimise::Error),
}

/// What could not be read for a release, as that says it.
impl From<LearnError> for ReadError {
    fn from(error: LearnError) -> Self {
        Self { hint: Some(error.hint()), ..Self::failed(error.to_string()) }
    }
}

impl From<LearnError> for SanitiseError {
    fn from(error: LearnError) -> Self {
        match error {
            LearnError::Ledger(failure) => Self::Note(failure),
            other => Self::Read(other.into()),
        }
    }
}

impl LearnError {
    /// A file that cannot be read or written, or does not fit, and what to do about it.
    pub fn file(what: impl Into<String>, hint: impl Into<String>) -> Self {
        Self::File { what: what.into(), hint: hint.into() }
    }

    /// What to do about it.
    pub fn hint(&self) -> String {
        match self {
            Self::Plan(error) => error.hint(),
            Self::Data(_) => "check the columns that the training file names".to_owned(),
            Self::Store(error) => error.hint().to_owned(),
            Self::Cap { .. } => {
                "cut the rows to what is declared, with `Rows::bounded`, or declare a higher cap".to_owned()
            }
            Self::Untapped(_) => "build the model of layers of `whit_learn::custom`, which have taps".to_owned(),
            Self::Shared(_) => "give each use a parameter of its own".to_owned(),
            Self::NotANumber(_) => "scale the features, or take shorter steps".to_owned(),
            Self::Layer(_) => "group norm and layer norm look at one row at a time and are offered instead".to_owned(),
            Self::File { hint, .. } => hint.clone(),
            Self::Damaged { .. } => {
                "put it back from a backup; or remove it, and void the entry of its run if nothing of that has left: then the same training begins anew"
                    .to_owned()
            }
            Self::OtherRun(_) => {
                "put training file and declaration back to finish that run, give this one another output.model, or remove the checkpoint if that run is not to go on"
                    .to_owned()
            }
            Self::Busy(_) => {
                "wait until it is done; if that is another training, give this one another output.model".to_owned()
            }
            Self::Stopped { .. } => "the same training goes on from there, and pays no second time".to_owned(),
            Self::Ledger(failure) => {
                failure.hint.clone().unwrap_or_else(|| "nothing more of this run was kept".to_owned())
            }
            Self::Sanitise(error) => error.hint().unwrap_or("nothing of this step was released").to_owned(),
            Self::Pool(error) => error.hint().to_owned(),
            Self::Window(_) => "make the window or its stride smaller, or the image larger".to_owned(),
            Self::Optimise(error) => error.hint().to_owned(),
        }
    }
}
