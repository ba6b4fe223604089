//! The rows of a run, read when something that is paid for needs them, and not before.

use super::prepare::{self, Planned};
use super::spec::Spec;
use crate::command::Error;
use std::cell::RefCell;
use whit::learn::model::Network;
use whit::learn::train::Learner;
use whit::learn::{Keep, LearnError};
use whit::query::Tables;

/// Makes a learner of the rows the first time that somebody asks. All who ask are mechanisms, which run after their charge is reserved.
pub(super) struct Reader<'a> {
    pub(super) spec: &'a Spec,
    pub(super) tables: &'a Tables,
    pub(super) planned: &'a Planned,
    keep: Keep,
    learner: RefCell<Option<Learner<Network>>>,
}

impl<'a> Reader<'a> {
    pub(super) fn new(spec: &'a Spec, tables: &'a Tables, planned: &'a Planned, keep: Keep) -> Self {
        Self { spec, tables, planned, keep, learner: RefCell::new(None) }
    }

    /// Takes the learner; reads the rows where none is there.
    pub(super) fn take(&self) -> Result<Learner<Network>, LearnError> {
        if let Some(learner) = self.learner.take() {
            return Ok(learner);
        }
        let read = prepare::read(self.spec, self.tables, self.keep.clone());
        read.and_then(|read| self.planned.learner(read)).map_err(|error| match error {
            Error::Asked { sentence, .. } => LearnError::File(sentence),
            other => LearnError::File(other.to_string()),
        })
    }

    /// Gives it back, for whoever asks next.
    pub(super) fn put(&self, learner: Learner<Network>) {
        self.learner.replace(Some(learner));
    }

    /// Looks at the learner.
    pub(super) fn with<T>(
        &self,
        look: impl FnOnce(&Learner<Network>) -> Result<T, LearnError>,
    ) -> Result<T, LearnError> {
        let learner = self.take()?;
        let seen = look(&learner);
        self.put(learner);
        seen
    }
}
