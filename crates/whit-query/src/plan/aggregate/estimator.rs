//! From noisy measures to statistics with intervals: post-processing, which costs nothing.
//!
//! An interval holds what the bounded rows come to. How it is found each aggregate says in its own file.

use crate::answer::{Cell, Value};
use crate::bound::quantise::Quantise;
use crate::error::QueryError;
use crate::plan::measure::{What, quantise_of, tree_of};
use crate::plan::{Part, Statistic};
use serde_json::Value as Json;
use std::fmt::Debug;
use whit_core::mechanism::additive::Additive;
use whit_core::mechanism::quantile::Tree;

/// One call of an aggregate, once it is planned: which measures it is made of, what they come to with their noise, and what is said of it. Numbers of measures
/// are those of their part.
pub(crate) trait Estimator: Debug + Send + Sync {
    /// The measures that it is made of: plain numbers, or one tree.
    fn measures(&self) -> Vec<usize>;

    /// What it is in the meaning of a question. That is a format: whoever changes it has stored answers paid for again.
    fn meaning(&self) -> Json;

    /// Values and intervals of some groups.
    fn cells(&self, noisy: &NoisyMeasures<'_>, groups: &[usize]) -> Result<Vec<Cell>, QueryError>;

    /// The values alone of so many groups, where they can be had without intervals and faster; nothing where it is read from a tree.
    fn values(&self, noisy: &NoisyMeasures<'_>, groups: usize) -> Result<Option<Vec<Value>>, QueryError> {
        let cells = self.cells(noisy, &(0..groups).collect::<Vec<_>>())?;
        Ok(Some(cells.into_iter().map(|cell| cell.value).collect()))
    }

    /// Whether it is its only measure, in steps: the noise of that is then its own.
    fn is_its_measure(&self) -> bool {
        false
    }

    /// Whether a preview has to make up values over all of their bounds, because it is about how they are spread.
    fn is_about_spread(&self) -> bool {
        false
    }

    /// The most that it can come to over so many rows, or be off by if one knows nothing; nothing where no bounds are known.
    fn widest(&self, part: &Part, rows: f64) -> Option<f64>;

    /// How far it may be off from this truth where an answer leaves all of a range open.
    fn furthest(&self, _truth: f64, (low, high): (f64, f64)) -> f64 {
        high - low
    }

    /// What a guess of its error rests on, for a group of so many rows.
    fn rests_on(&self, rows: &str) -> String {
        format!("for a group of {rows} rows, spread evenly over their bounds")
    }
}

/// The noisy measures of one part: for each measure, one number a group, or one block of nodes a group for a tree.
pub(crate) struct NoisyMeasures<'a> {
    part: &'a Part,
    noise: &'a [Additive],
    values: Vec<Vec<i64>>,
    found: &'a [(f64, f64)],
    confidence: f64,
    /// Measure by measure, how far noise takes a number with this confidence, in steps.
    within: Vec<f64>,
    /// Whether the values are exact, and trees are read so.
    exact: bool,
}

impl<'a> NoisyMeasures<'a> {
    pub(crate) fn new(
        part: &'a Part,
        noise: &'a [Additive],
        values: Vec<Vec<i64>>,
        found: &'a [(f64, f64)],
        confidence: f64,
    ) -> Self {
        let within = noise.iter().map(|noise| noise.within(confidence)).collect();
        Self { part, noise, values, found, confidence, within, exact: false }
    }

    /// The same of values to which no noise was added: trees hide nothing then.
    pub(crate) fn without_noise(self) -> Self {
        Self { exact: true, ..self }
    }

    /// All cells of one statistic, one a group.
    pub(crate) fn cells(&self, statistic: &Statistic, groups: &[usize]) -> Result<Vec<Cell>, QueryError> {
        let estimate = statistic.estimator();
        estimate.ok_or_else(|| QueryError::failed("an exact value is not made of noise"))?.cells(self, groups)
    }

    /// The values of one statistic alone, one a group, where it is made of plain numbers and of no tree.
    pub(crate) fn values(&self, statistic: &Statistic, groups: usize) -> Result<Option<Vec<Value>>, QueryError> {
        statistic.estimator().map_or(Ok(None), |estimate| estimate.values(self, groups))
    }

    /// With which confidence intervals hold.
    pub(super) fn confidence(&self) -> f64 {
        self.confidence
    }

    /// A measure's number in one group, in steps.
    pub(super) fn number(&self, measure: usize, group: usize) -> i64 {
        self.values[measure][group]
    }

    /// The noise of a measure.
    pub(super) fn noise(&self, measure: usize) -> &'a Additive {
        &self.noise[measure]
    }

    /// How far noise takes a measure, in steps.
    pub(super) fn within(&self, measure: usize) -> f64 {
        self.within[measure]
    }

    /// What one step of a measure is worth.
    pub(super) fn step(&self, measure: usize) -> f64 {
        self.part.step_of(measure, self.found)
    }

    /// How the values of a sum were put on its lattice.
    pub(super) fn quantise(&self, measure: usize) -> Result<Quantise, QueryError> {
        match &self.part.measures[measure].what {
            What::Sum { quantisation, .. } => quantise_of(quantisation, self.found),
            _ => Err(QueryError::failed("a sum without its lattice")),
        }
    }

    /// The shape of a tree of counts.
    pub(super) fn tree(&self, measure: usize) -> Result<Tree, QueryError> {
        match &self.part.measures[measure].what {
            What::Tree { tree, .. } => tree_of(tree, self.found),
            _ => Err(QueryError::failed("a quantile without its tree")),
        }
    }

    /// The nodes of one group's tree, and the deviation of their noise.
    pub(super) fn nodes(&self, measure: usize, tree: &Tree, group: usize) -> (&[i64], f64) {
        let nodes = tree.nodes();
        let block = &self.values[measure][group * nodes..(group + 1) * nodes];
        (block, if self.exact { 0.0 } else { self.noise[measure].deviation() })
    }
}
