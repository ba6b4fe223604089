//! `whit train`, `whit evaluate`, `whit predict` and `whit experiment`: a model, learned and paid for once, and what it does.

mod evaluate;
mod experiment;
mod learn;
mod options;
mod predict;
mod watch;

pub(super) use evaluate::Evaluate;
pub(super) use experiment::Experiment;
pub(super) use learn::Train;
pub(super) use predict::Predict;
