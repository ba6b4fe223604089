//! From noisy measures to statistics with intervals: post-processing, which costs nothing.
//!
//! An interval holds what the bounded rows come to. For a mean and a spread it is the set of values that a test of "this is the truth"
//! does not rule out: what the noisy measures say under that value is a sum of independent noises, whose law is known exactly.

use super::Noise;
use super::noise::Together;
use crate::answer::{Cell, Value};
use crate::bound::quantise::Quantise;
use crate::engine::{quantise_of, tree_of};
use crate::error::QueryError;
use crate::plan::{Grain, Part, Statistic, WEIGHT, What};
use whit_account::normal::upper_quantile;
use whit_core::mechanism::quantile::Tree;

/// Into how many parts bounds are cut to look for means that are not ruled out.
const PARTS: u32 = 64;

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
                let mean = self.mean(*sum, *count, self.confidence)?;
                Ok(groups
                    .iter()
                    .map(|&group| mean.cell(self.values[*sum][group], self.values[*count][group]))
                    .collect())
            }
            Statistic::Spread { sum, squares, count, sample, root } => {
                let spread = self.spread(*sum, *squares, *count, (*sample, *root))?;
                let of = |i: usize, group: usize| self.values[i][group];
                let cell = |&group: &usize| spread.cell(of(*sum, group), of(*squares, group), of(*count, group));
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

    /// The values of one statistic alone, one a group, where it is made of plain numbers and of no tree.
    pub(crate) fn values(&self, statistic: &Statistic, groups: usize) -> Result<Option<Vec<Value>>, QueryError> {
        let of = |i: usize, group: usize| self.values[i][group];
        Ok(match statistic {
            Statistic::Count(_) | Statistic::Sum(_) => {
                let cells = self.cells(statistic, &(0..groups).collect::<Vec<_>>())?;
                Some(cells.into_iter().map(|cell| cell.value).collect())
            }
            Statistic::Mean { sum, count } => {
                let mean = self.mean(*sum, *count, self.confidence)?;
                Some((0..groups).map(|group| Value::Float(mean.at(of(*sum, group), of(*count, group)))).collect())
            }
            Statistic::Spread { sum, squares, count, sample, root } => {
                let spread = self.spread(*sum, *squares, *count, (*sample, *root))?;
                let at = |group| Value::Float(spread.at(of(*sum, group), of(*squares, group), of(*count, group)));
                Some((0..groups).map(at).collect())
            }
            Statistic::Quantile { .. } | Statistic::Least(_) | Statistic::Largest(_) | Statistic::Exact(_) => None,
        })
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

    fn mean(&self, sum: usize, count: usize, confidence: f64) -> Result<Mean<'_>, QueryError> {
        let (of_sum, of_count) = (&self.noise[sum], &self.noise[count]);
        Ok(Mean {
            quantise: self.quantise(sum)?,
            together: Together::new(vec![of_sum, of_count], confidence),
            of_count: of_count.within(confidence),
        })
    }

    fn spread(
        &self,
        sum: usize,
        squares: usize,
        count: usize,
        (sample, root): (bool, bool),
    ) -> Result<Spread<'_>, QueryError> {
        let noises = [squares, sum, count].map(|i| &self.noise[i]).to_vec();
        Ok(Spread {
            mean: self.mean(sum, count, f64::midpoint(1.0, self.confidence))?,
            deviations: upper_quantile((1.0 - self.confidence) / 4.0),
            second: self.quantise(squares)?,
            together: Together::new(noises, self.confidence),
            of_count: self.within[count],
            sample,
            root,
        })
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

/// A mean: the centre of the bounds and a ratio of two noisy numbers.
struct Mean<'a> {
    quantise: Quantise,
    /// The noise of the sum and that of the count.
    together: Together<'a>,
    of_count: f64,
}

impl Mean<'_> {
    fn cell(&self, sum: i64, count: i64) -> Cell {
        let (low, high) = self.quantise.bounds();
        let centre = self.quantise.centre();
        let (from, to) = self.offsets(sum, count);
        let (from, to) = ((centre + from).clamp(low, high), (centre + to).clamp(low, high));
        Cell { value: Value::Float(self.at(sum, count).clamp(from, to)), low: Some(from), high: Some(to) }
    }

    /// The best guess; the middle of the bounds where there seem to be no rows.
    fn at(&self, sum: i64, count: i64) -> f64 {
        let (low, high) = self.quantise.bounds();
        let at = if count >= 1 { self.quantise.centre() + self.offset(sum, count) } else { f64::midpoint(low, high) };
        at.clamp(low, high)
    }

    fn offset(&self, sum: i64, count: i64) -> f64 {
        sum as f64 * self.quantise.step() / count as f64
    }

    /// The distances from the centre that are not ruled out: if r is the true one, `total − r·n` is the noise of the sum less r times that
    /// of the count. (Fieller 1954, for the laws that the noises have.) They lie within the bounds, as every mean does.
    fn offsets(&self, sum: i64, count: i64) -> (f64, f64) {
        let (low, high) = self.quantise.bounds();
        let (least, most) = (low - self.quantise.centre(), high - self.quantise.centre());
        let (total, n, step) = (sum as f64 * self.quantise.step(), count as f64, self.quantise.step());
        let reach = |r: f64| self.together.within(&[step, r]);
        let holds = |r: f64| (total - r * n).abs() <= reach(r);
        let guess = if n >= 1.0 { (total / n).clamp(least, most) } else { f64::midpoint(least, most) };
        let (mut first, mut last) = (guess, guess);
        if n <= 2.0 * self.of_count || !holds(guess) {
            // Few rows: what is not ruled out may lie anywhere, and in two pieces.
            let at = |i: u32| least + (most - least) * f64::from(i) / f64::from(PARTS);
            let mut held = (0..=PARTS).map(at).filter(|&r| holds(r));
            match (held.next(), held.next_back(), holds(guess)) {
                (None, _, false) => {
                    // Noise took the ratio out of the bounds. Nearest to it is an end, and so far from that it may be.
                    let spread = reach(guess) / n.abs().max(1.0);
                    return ((guess - spread).max(least), (guess + spread).min(most));
                }
                (None, _, true) => {}
                (Some(one), other, true) => (first, last) = (guess.min(one), guess.max(other.unwrap_or(one))),
                (Some(one), other, false) => (first, last) = (one, other.unwrap_or(one)),
            }
        }
        (edge(first, least, &holds), edge(last, most, &holds))
    }
}

/// Where what holds ends, between a point where it does and an end: to a thousandth, and outwards.
fn edge(from: f64, end: f64, holds: &dyn Fn(f64) -> bool) -> f64 {
    if holds(end) {
        return end;
    }
    let (mut inside, mut outside) = (from, end);
    for _ in 0..60 {
        if (outside - inside).abs() <= 1e-3 * (outside - from).abs() {
            break;
        }
        let middle = f64::midpoint(inside, outside);
        if holds(middle) { inside = middle } else { outside = middle }
    }
    outside
}

/// A variance or its root.
struct Spread<'a> {
    /// For the mean alone, wrong half as often.
    mean: Mean<'a>,
    /// How many standard deviations that is.
    deviations: f64,
    second: Quantise,
    /// The noise of the squares, of the sum and of the count.
    together: Together<'a>,
    of_count: f64,
    sample: bool,
    root: bool,
}

impl Spread<'_> {
    fn shape(&self, variance: f64) -> f64 {
        if self.root { variance.max(0.0).sqrt() } else { variance.max(0.0) }
    }

    /// n / (n − 1) for a sample; of one row there is none.
    fn correction(&self, n: f64) -> f64 {
        if self.sample { n.max(2.0) / (n.max(2.0) - 1.0) } else { 1.0 }
    }

    /// The most that a variance can be.
    fn most(&self) -> f64 {
        let (low, high) = self.mean.quantise.bounds();
        (high - low) * (high - low) / 4.0
    }

    /// q/n − (s/n)², as it comes.
    fn plain(&self, sum: i64, squares: i64, count: i64) -> f64 {
        squares as f64 * self.second.step() / count as f64 - self.mean.offset(sum, count).powi(2)
    }

    /// The best guess; that of values spread evenly over the bounds where there seem to be no two rows.
    fn at(&self, sum: i64, squares: i64, count: i64) -> f64 {
        if count < 2 {
            return self.shape(self.most() / 3.0);
        }
        self.shape(self.plain(sum, squares, count).clamp(0.0, self.most()) * self.correction(count as f64))
    }

    /// If m and V are the true mean and variance, `q − 2m·s + (m² − V)·n` is made of the three noises alone, and it is also
    /// `n·(V̂ + (m − m̂)² − V)`. So V is V̂, and what the mean is off by, squared, and that noise over n. The square is s² on
    /// average, if the mean has the deviation s, and nearly all of it lies between 0 and what the mean's own interval allows; it is
    /// uncorrelated with the noise, whose law is symmetric, so that the two are added as lengths are.
    fn cell(&self, sum: i64, squares: i64, count: i64) -> Cell {
        let (n, most, at) = (count as f64, self.most(), self.at(sum, squares, count));
        if n <= self.of_count.max(1.0) {
            // The noise may be all there is: nothing is known beyond the bounds.
            let widest = self.shape(most * self.correction(2.0));
            return Cell { value: Value::Float(at.min(widest)), low: Some(0.0), high: Some(widest) };
        }
        let (first, second) = (self.mean.quantise.step(), self.second.step());
        let (mean, plain) = (self.mean.offset(sum, count), self.plain(sum, squares, count));
        let (from, to) = self.mean.offsets(sum, count);
        let off = (mean - from).abs().max((to - mean).abs());
        let usual = (off / self.deviations).powi(2);
        let (mut least, mut largest) = (plain.clamp(0.0, most), plain.clamp(0.0, most));
        for _ in 0..2 {
            let furthest = from.abs().max(to.abs());
            let nearest = if from < 0.0 && to > 0.0 { 0.0 } else { from.abs().min(to.abs()) };
            let of_count = (furthest * furthest - least).abs().max((nearest * nearest - largest).abs());
            let reach = self.together.within(&[second, 2.0 * furthest * first, of_count]) / n;
            let (from, to) = (plain + usual - reach.hypot(usual), plain + usual + reach.hypot(off * off - usual));
            (least, largest) = (from.clamp(0.0, most), to.clamp(0.0, most));
        }
        // For the fewest and the most rows that there may be.
        let (fewest, many) = ((n - self.of_count).max(2.0), n + self.of_count);
        let (from, to) = (self.shape(least * self.correction(many)), self.shape(largest * self.correction(fewest)));
        Cell { value: Value::Float(at.clamp(from, to)), low: Some(from), high: Some(to) }
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
