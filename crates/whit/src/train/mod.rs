//! Models: learned and paid for once, tried, compared, and asked about rows.
//!
//! A [`Training`] is a file that says what is learned and what is promised. [`Session::train`](crate::Session::train) plans it, which reads nothing private, checks that all
//! of its releases fit the budgets, reserves, reads rows, takes the steps with a checkpoint now and then, releases the model, and writes it with its card. Whoever
//! [`Watch`]es hears how far it has come and may stop it between two steps.

mod accompanying;
mod choose;
mod curve;
mod evaluate;
pub mod experiment;
mod features;
mod interval;
mod judge;
mod label_clip;
mod meaning;
mod measure;
mod network;
mod owner;
mod predict;
mod prepare;
mod project;
mod reader;
mod reads;
mod respond;
mod resume;
mod rows;
mod run;
mod shortened;
mod spec;
mod trial;
mod watch;

pub use evaluate::{Evaluated, Evaluation};
pub use interval::{Estimate, Estimates};
pub use judge::{AccuracyRange, Judged, PrivateEvaluation};
pub use measure::{ClassMeasure, Measures, Reliability};
pub use predict::{Predicted, Prediction, Predictions};
pub use run::{Learned, Outcome, Prospect, Request};
pub use shortened::Shortened;
pub use trial::Score;
pub use watch::{Step, Watch};
pub use whit_query::source::owner::Owner;

pub(crate) use evaluate::evaluate;
pub(crate) use judge::judge;
pub(crate) use predict::predict;

use crate::Error;
use crate::state::{SessionState, ledger_of};
use spec::Spec;
use std::path::{Path, PathBuf};
use whit_learn::Keep;
use whit_query::Tables;

/// A training file, as it was read.
#[derive(Debug, Clone)]
pub struct Training {
    path: PathBuf,
    pub(crate) spec: Spec,
}

impl Training {
    /// Reads a training file.
    pub fn open(path: &Path) -> Result<Self, Error> {
        Ok(Self { path: path.to_owned(), spec: Spec::open(path)? })
    }

    /// The same with features and target as they are declared, however the file spells them: a model is the same, and is charged once.
    pub(crate) fn spelled(&self, tables: &Tables) -> Self {
        let mut spelled = self.clone();
        let spec = &mut spelled.spec;
        let called = |name: &str| tables.column_called(&self.spec.dataset, name);
        let names = spec.features.iter_mut().map(|asked| &mut asked.feature.of);
        names.chain([&mut spec.target]).for_each(|name| *name = called(name));
        spec.widths =
            std::mem::take(&mut spec.widths).into_iter().map(|(name, width)| (called(&name), width)).collect();
        spelled
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The declaration that is meant where no other is named: the `whit.toml` beside it.
    pub fn config(&self) -> PathBuf {
        Spec::next_to(&self.path, Path::new("whit.toml"))
    }

    /// Where the model is written.
    pub fn model(&self) -> PathBuf {
        Spec::next_to(&self.path, &self.spec.output.model)
    }

    /// Where the model is written once more, for other runtimes, where that is asked for.
    pub(crate) fn onnx(&self) -> Option<PathBuf> {
        self.spec.output.onnx.as_ref().map(|file| Spec::next_to(&self.path, file))
    }

    /// The data set that is learned from.
    pub fn dataset(&self) -> &str {
        &self.spec.dataset
    }

    /// The column that is to be predicted.
    pub fn target(&self) -> &str {
        &self.spec.target
    }

    /// The rows that a model is tried on, as a condition in SQL; nothing where they are set aside otherwise.
    pub fn evaluate_where(&self) -> Option<&str> {
        self.spec.evaluate_where.as_deref()
    }
}

/// What a training, or a choice among several, would come to.
pub(crate) fn preview(
    state: &mut SessionState,
    request: &Request<'_>,
    watch: &mut dyn Watch,
) -> Result<Prospect, Error> {
    let training = request.training.spelled(&state.tables);
    let request = &Request { training: &training, ..request.clone() };
    if training.spec.choose.is_some() {
        choose::preview(state, request, watch)
    } else {
        run::preview(state, request, watch)
    }
}

/// Trains, or chooses among several trainings, or finds the same in the ledger.
pub(crate) fn train(state: &mut SessionState, request: &Request<'_>, watch: &mut dyn Watch) -> Result<Outcome, Error> {
    let training = request.training.spelled(&state.tables);
    let request = &Request { training: &training, ..request.clone() };
    if training.spec.choose.is_some() {
        choose::train(state, request, watch)
    } else {
        run::train(state, request, watch)
    }
}

/// Where rows lie. The folder of the ledger is on a disk that its owner chose, while `/tmp` may be in memory.
pub(crate) fn keep(tables: &Tables, memory: Option<u64>) -> Keep {
    let chosen = std::env::var_os("TMPDIR").filter(|folder| !folder.is_empty()).map(PathBuf::from);
    let of_the_ledger = || ledger_of(tables).parent().unwrap_or(Path::new(".")).to_owned();
    Keep { memory: memory.unwrap_or_else(|| Keep::default().memory), folder: chosen.unwrap_or_else(of_the_ledger) }
}
