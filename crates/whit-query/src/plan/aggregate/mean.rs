//! `AVG(x)`.
//!
//! Its interval is the set of values that a test of "this is the truth" does not rule out: what the noisy measures say under that value is a sum of
//! independent noises, whose reach is known ([`Together`]).

use super::call::Asked;
use super::estimator::NoisyMeasures;
use super::part::Draft;
use super::sum::{Summed, are_whole};
use super::{Aggregate, Estimator, Statistic};
use crate::answer::{Cell, Value};
use crate::bound::SumNoise;
use crate::bound::quantise::Quantise;
use crate::error::QueryError;
use crate::evaluate::mean::mean;
use crate::noise::Together;
use crate::plan::{Part, Shape};
use datafusion::arrow::datatypes::DataType;
use datafusion::logical_expr::Expr;
use serde_json::{Value as Json, json};
use std::sync::Arc;

pub(super) struct Mean;

impl Aggregate for Mean {
    fn names(&self) -> &'static [&'static str] {
        &["avg", "mean"]
    }

    fn suggested(&self) -> &'static [&'static str] {
        &["AVG"]
    }

    fn inside(&self) -> &'static [&'static str] {
        &["avg"]
    }

    fn exact(&self, asked: &Asked<'_>, types: &[DataType]) -> Option<Expr> {
        if asked.name() != "avg" || asked.params().distinct || !are_whole(types) {
            return None;
        }
        let mut call = asked.call.clone();
        let (mean, exactly) = mean();
        call.func = Arc::new(mean);
        call.params.args = call.params.args.into_iter().map(exactly).collect();
        Some(Expr::AggregateFunction(call).alias(asked.expr.schema_name().to_string()))
    }

    fn plan(&self, asked: &Asked<'_>, draft: &mut Draft<'_>) -> Result<Statistic, QueryError> {
        Ok(Statistic::noisy(MeanEstimator::of(Summed::of(asked, draft)?, asked, draft)?))
    }
}

/// A mean: of a centred sum and a count.
#[derive(Debug)]
pub(super) struct MeanEstimator {
    sum: usize,
    count: usize,
}

impl MeanEstimator {
    /// The mean of what is added up.
    pub(super) fn of(summed: Summed, asked: &Asked<'_>, draft: &mut Draft<'_>) -> Result<Self, QueryError> {
        let sum = summed.sum(Shape::Centred, asked, draft)?;
        let count = draft.count(Some(summed.value), asked, format!("{}: count", asked.title))?;
        Ok(Self { sum, count })
    }

    /// The mean of a centred sum and a count that there are.
    pub(super) fn made_of(sum: usize, count: usize) -> Self {
        Self { sum, count }
    }

    fn quotient<'a>(&self, noisy: &NoisyMeasures<'a>) -> Result<Quotient<'a>, QueryError> {
        let of_count = (noisy.noise(self.count), noisy.step(self.count));
        Ok(Quotient::new(noisy.quantise(self.sum)?, noisy.noise(self.sum), of_count, noisy.confidence()))
    }
}

impl Estimator for MeanEstimator {
    fn measures(&self) -> Vec<usize> {
        vec![self.sum, self.count]
    }

    fn meaning(&self) -> Json {
        json!({ "mean": [self.sum, self.count] })
    }

    fn cells(&self, noisy: &NoisyMeasures<'_>, groups: &[usize]) -> Result<Vec<Cell>, QueryError> {
        let quotient = self.quotient(noisy)?;
        let of = |&group: &usize| quotient.cell(noisy.number(self.sum, group), noisy.number(self.count, group));
        Ok(groups.iter().map(of).collect())
    }

    fn values(&self, noisy: &NoisyMeasures<'_>, groups: usize) -> Result<Option<Vec<Value>>, QueryError> {
        let quotient = self.quotient(noisy)?;
        let of = |group| Value::Float(quotient.at(noisy.number(self.sum, group), noisy.number(self.count, group)));
        Ok(Some((0..groups).map(of).collect()))
    }

    fn widest(&self, part: &Part, _: f64) -> Option<f64> {
        part.bounds_of(self.sum).map(|(low, high)| (high - low) / 2.0)
    }

    fn rests_on(&self, rows: &str) -> String {
        format!("for a group of {rows} rows, less for larger ones")
    }
}

/// Into how many parts bounds are cut to look for means that are not ruled out.
const CUTS: u32 = 64;

/// A mean as a quotient: the centre of the bounds and a ratio of two noisy numbers.
pub(super) struct Quotient<'a> {
    pub(super) quantise: Quantise,
    /// The noise of the sum and that of the count.
    together: Together<'a>,
    /// How many rows one step of the count is.
    pub(super) unit: f64,
    /// How far noise takes the count, in rows.
    of_count: f64,
}

impl<'a> Quotient<'a> {
    pub(super) fn new(
        quantise: Quantise,
        of_sum: &'a SumNoise,
        (of_count, unit): (&'a SumNoise, f64),
        confidence: f64,
    ) -> Self {
        let together = Together::new(vec![of_sum, of_count], confidence);
        Self { quantise, together, unit, of_count: of_count.within(confidence) * unit }
    }

    pub(super) fn rows(&self, count: i64) -> f64 {
        count as f64 * self.unit
    }

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
        let some = self.rows(count) >= 1.0;
        let at = if some { self.quantise.centre() + self.offset(sum, count) } else { f64::midpoint(low, high) };
        at.clamp(low, high)
    }

    pub(super) fn offset(&self, sum: i64, count: i64) -> f64 {
        sum as f64 * self.quantise.step() / self.rows(count)
    }

    /// The distances from the centre that are not ruled out: if r is the true one, `total − r·n` is the noise of the sum less r times that
    /// of the count. (Fieller 1954, for the laws that the noises have.) They lie within the bounds, as every mean does.
    pub(super) fn offsets(&self, sum: i64, count: i64) -> (f64, f64) {
        let (low, high) = self.quantise.bounds();
        let (least, most) = (low - self.quantise.centre(), high - self.quantise.centre());
        let (total, n, step) = (sum as f64 * self.quantise.step(), self.rows(count), self.quantise.step());
        let reach = |r: f64| self.together.within(&[step, r * self.unit]);
        let holds = |r: f64| (total - r * n).abs() <= reach(r);
        let guess = if n >= 1.0 { (total / n).clamp(least, most) } else { f64::midpoint(least, most) };
        let (mut first, mut last) = (guess, guess);
        if n <= 2.0 * self.of_count || !holds(guess) {
            // Few rows: what is not ruled out may lie anywhere, and in two pieces.
            let at = |i: u32| least + (most - least) * f64::from(i) / f64::from(CUTS);
            let mut held = (0..=CUTS).map(at).filter(|&r| holds(r));
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
