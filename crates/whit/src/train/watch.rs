//! Whoever waits for a long job: hears how far it has come, and may stop it between two steps.

use std::path::Path;
use whit_core::{Loss, Rung};
use whit_learn::Plan;

/// Somebody who watches, and whom nothing obliges to do anything about it.
///
/// What is said here is not private, but for what [`Step::loss`] and [`Step::clipped`] have for the owner.
pub trait Watch {
    /// This is being done from now on.
    fn doing(&mut self, _what: &str) {}

    /// Whoever asked should know this.
    fn note(&mut self, _note: &str) {}

    /// A file was written.
    fn wrote(&mut self, _file: &Path) {}

    /// A step was taken.
    fn step(&mut self, _step: &Step<'_>) {}

    /// One training of an experiment begins: which of how many, and its arm.
    fn run(&mut self, _nth: usize, _of: usize, _arm: &str) {}

    /// So many steps of all that an experiment takes are done.
    fn taken(&mut self, _steps: u64, _of: u64) {}

    /// Whether to stop now. It is asked after every step; a training that is stopped keeps where it stands, and goes on from there when it is asked for again.
    fn stop(&mut self) -> bool {
        false
    }
}

/// Nobody watches.
impl Watch for () {}

/// A step that was taken.
#[derive(Debug)]
pub struct Step<'a> {
    /// Which.
    pub taken: u64,
    /// Of how many.
    pub steps: u64,
    /// The mean loss on the rows that were drawn. It was not sanitised, so only the owner has it.
    pub loss: Option<f64>,
    /// The share of the units that were drawn whose gradients were longer than the clip norm. It was not sanitised either.
    pub clipped: Option<f64>,
    pub(crate) plan: &'a Plan,
    pub(crate) delta: f64,
}

impl Step<'_> {
    /// What the steps so far have cost, rung by rung; nothing where no accountant can tell. It takes a while to find.
    pub fn spent(&self) -> Option<Vec<(Rung, Loss)>> {
        self.plan.loss_after(self.taken, self.delta).ok()
    }
}
