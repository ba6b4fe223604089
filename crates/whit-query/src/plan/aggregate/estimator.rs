//! From noisy measures to statistics with intervals: post-processing, which costs nothing.
//!
//! An interval holds what the bounded rows come to. How it is found each aggregate says in its own file.

pub(crate) use super::Estimator;

use crate::answer::{Cell, Value};
use crate::bound::SumNoise;
use crate::bound::quantise::Quantise;
use crate::error::QueryError;
use crate::plan::measure::{What, quantise_of, tree_of};
use crate::plan::{Part, Statistic};
use whit_core::mechanism::quantile::Tree;

/// The noisy measures of one part: for each measure, one number a group, or one block of nodes a group for a tree.
pub(crate) struct NoisyMeasures<'a> {
    part: &'a Part,
    noise: &'a [SumNoise],
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
        noise: &'a [SumNoise],
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
    pub(super) fn noise(&self, measure: usize) -> &'a SumNoise {
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
            What::Distinct { worth: Some(quantise), .. } => Ok(quantise.clone()),
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
