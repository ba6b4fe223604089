//! From noisy measures to statistics with intervals: post-processing, which costs nothing.

use super::Noise;
use crate::answer::{Cell, Value};
use crate::bound::quantise::Quantise;
use crate::engine::{quantise_of, tree_of};
use crate::error::QueryError;
use crate::plan::{Grain, Part, Statistic, WEIGHT, What};
use whit_core::mechanism::quantile::Tree;

/// The noisy measures of one part: for each measure, one number a group, or one block of nodes a group for a tree.
pub(crate) struct Noisy<'a> {
    part: &'a Part,
    noise: &'a [Noise],
    values: Vec<Vec<i64>>,
    found: &'a [(f64, f64)],
    confidence: f64,
    /// Measure by measure, how far noise takes a number with this confidence, in steps.
    within: Vec<f64>,
}

/// A cell with an interval around its value.
fn around(value: Value, at: f64, within: f64) -> Cell {
    Cell { value, low: Some(at - within), high: Some(at + within) }
}

impl<'a> Noisy<'a> {
    pub(crate) fn new(
        part: &'a Part,
        noise: &'a [Noise],
        values: Vec<Vec<i64>>,
        found: &'a [(f64, f64)],
        confidence: f64,
    ) -> Self {
        let within = noise.iter().map(|noise| noise.within(confidence)).collect();
        Self { part, noise, values, found, confidence, within }
    }

    /// All cells of one statistic, one a group.
    pub(crate) fn cells(&self, statistic: &Statistic, groups: &[usize]) -> Result<Vec<Cell>, QueryError> {
        match statistic {
            Statistic::Count(i) => Ok(groups.iter().map(|&group| self.count(*i, group)).collect()),
            Statistic::Sum(i) => {
                let quantise = self.quantise(*i)?;
                let within = self.within[*i] * quantise.step();
                let whole = quantise.step() == 1.0;
                let cell = |&group: &usize| {
                    let steps = self.values[*i][group];
                    let at = steps as f64 * quantise.step();
                    around(if whole { Value::Int(steps) } else { Value::Float(at) }, at, within)
                };
                Ok(groups.iter().map(cell).collect())
            }
            Statistic::Mean { sum, count } => {
                let quantise = self.quantise(*sum)?;
                Ok(groups.iter().map(|&group| self.mean(*sum, *count, &quantise, group)).collect())
            }
            Statistic::Spread { sum, squares, count, sample, root } => {
                let (first, second) = (self.quantise(*sum)?, self.quantise(*squares)?);
                let cell =
                    |&group: &usize| self.spread((*sum, &first), (*squares, &second), *count, (*sample, *root), group);
                Ok(groups.iter().map(cell).collect())
            }
            Statistic::Quantile { tree, .. } | Statistic::Least(tree) | Statistic::Largest(tree) => {
                let What::Tree { tree: leaves, .. } = &self.part.measures[*tree].what else {
                    return Err(QueryError::failed("a quantile without its tree"));
                };
                let shape = tree_of(leaves, self.found)?;
                groups.iter().map(|&group| self.ordered(statistic, *tree, &shape, group)).collect()
            }
            Statistic::Exact(_) => Err(QueryError::failed("an exact value is not made of noise")),
        }
    }

    fn quantise(&self, i: usize) -> Result<Quantise, QueryError> {
        match &self.part.measures[i].what {
            What::Sum { place, .. } => quantise_of(place, self.found),
            _ => Err(QueryError::failed("a sum without its lattice")),
        }
    }

    fn count(&self, i: usize, group: usize) -> Cell {
        let count = self.values[i][group];
        around(Value::Int(count), count as f64, self.within[i])
    }

    /// The mean is the centre plus a ratio of two noisy numbers, whose error follows from both.
    fn mean(&self, sum: usize, count: usize, quantise: &Quantise, group: usize) -> Cell {
        let (low, high) = quantise.bounds();
        let n = self.values[count][group] as f64;
        let total = self.values[sum][group] as f64 * quantise.step();
        let (of_sum, of_count) = (self.within[sum] * quantise.step(), self.within[count]);
        if n <= of_count.max(1.0) {
            // The noise may be all there is: nothing is known beyond the bounds.
            let middle =
                if n >= 1.0 { (quantise.centre() + total / n).clamp(low, high) } else { f64::midpoint(low, high) };
            return Cell { value: Value::Float(middle), low: Some(low), high: Some(high) };
        }
        let offset = total / n;
        // Fieller's set for a ratio of independent normals: (total − r·n)² ≤ z²(σ_s² + r²σ_n²).
        let (a, b, c) = (n * n - of_count * of_count, total * n, total * total - of_sum * of_sum);
        let root = (b * b - a * c).max(0.0).sqrt();
        let (from, to) = ((b - root) / a, (b + root) / a);
        let at = (quantise.centre() + offset).clamp(low, high);
        Cell {
            value: Value::Float(at),
            low: Some((quantise.centre() + from).clamp(low, high)),
            high: Some((quantise.centre() + to).clamp(low, high)),
        }
    }

    fn spread(
        &self,
        (sum, first): (usize, &Quantise),
        (squares, second): (usize, &Quantise),
        count: usize,
        (sample, root): (bool, bool),
        group: usize,
    ) -> Cell {
        let (low, high) = first.bounds();
        let most = (high - low) * (high - low) / 4.0;
        let shape = |variance: f64| if root { variance.max(0.0).sqrt() } else { variance.max(0.0) };
        let n = self.values[count][group] as f64;
        let within = |i: usize| self.within[i];
        if n <= within(count).max(1.0) {
            return Cell { value: Value::Null, low: Some(0.0), high: Some(shape(most)) };
        }
        let (s, q) =
            (self.values[sum][group] as f64 * first.step(), self.values[squares][group] as f64 * second.step());
        let mean = s / n;
        let plain = q / n - mean * mean;
        let correction = if sample { n / (n - 1.0).max(1.0) } else { 1.0 };
        let variance = (plain * correction).clamp(0.0, most * correction);
        // To first order in the three noises, which are independent.
        let of_squares = within(squares) * second.step() / n;
        let of_sum = 2.0 * mean * within(sum) * first.step() / n;
        let of_count = (2.0 * mean * mean - q / n) * within(count) / n;
        let error = correction * (of_squares.powi(2) + of_sum.powi(2) + of_count.powi(2)).sqrt();
        Cell {
            value: Value::Float(shape(variance)),
            low: Some(shape(variance - error)),
            high: Some(shape((variance + error).min(most * correction))),
        }
    }

    fn ordered(&self, statistic: &Statistic, i: usize, tree: &Tree, group: usize) -> Result<Cell, QueryError> {
        let nodes = tree.nodes();
        let block = &self.values[i][group * nodes..(group + 1) * nodes];
        let ranks =
            tree.read(block, self.noise[i].deviation()).map_err(|error| QueryError::failed(error.to_string()))?;
        let estimate = match statistic {
            Statistic::Least(_) => ranks.smallest(self.confidence),
            Statistic::Largest(_) => ranks.largest(self.confidence),
            Statistic::Quantile { share, .. } => ranks.quantile(*share, self.confidence),
            _ => return Err(QueryError::failed("not an order statistic")),
        };
        Ok(Cell { value: Value::Float(estimate.at), low: Some(estimate.low), high: Some(estimate.high) })
    }
}

/// What one step of a measure is worth, for people.
pub(crate) fn step_of(part: &Part, i: usize, found: &[(f64, f64)]) -> f64 {
    match &part.measures[i].what {
        What::Sum { place, .. } => quantise_of(place, found).map_or(1.0, |quantise| quantise.step()),
        What::Tree { .. } if part.grain != Grain::Row => 1.0 / WEIGHT as f64,
        _ => 1.0,
    }
}
