//! `CORR(y, x)`, `COVAR_POP`, `COVAR_SAMP` and `REGR_…(y, x)`: what two values have to do with one another, over the rows in which both are there.
//!
//! All are made of up to six sums: of the rows, of both values' distances from the middle of their bounds, of the squares of these, and of their product. Those
//! which several calls need are summed once, in whichever order a call names its two values.

use super::call::Asked;
use super::count::CountEstimator;
use super::estimator::NoisyMeasures;
use super::mean::MeanEstimator;
use super::moments::{PairStatistic, PairSums, ValueBounds};
use super::part::Draft;
use super::sum::Summed;
use super::{Aggregate, Estimator, Statistic};
use crate::answer::{Cell, Value};
use crate::error::{QueryError, planning};
use crate::functions::clamped;
use crate::plan::range::Range;
use crate::plan::track::{said, type_of};
use crate::plan::{Part, Shape};
use datafusion::arrow::datatypes::DataType;
use datafusion::logical_expr::{Expr, cast, lit, when};
use serde_json::{Value as Json, json};

pub(super) struct Pair;

impl Aggregate for Pair {
    fn names(&self) -> &'static [&'static str] {
        &[
            "corr",
            "covar_pop",
            "covar_samp",
            "regr_slope",
            "regr_intercept",
            "regr_r2",
            "regr_count",
            "regr_avgx",
            "regr_avgy",
            "regr_sxx",
            "regr_syy",
            "regr_sxy",
        ]
    }

    fn suggested(&self) -> &'static [&'static str] {
        &["CORR", "COVAR_POP", "REGR_SLOPE"]
    }

    fn has_parameters(&self, _: &str) -> bool {
        true
    }

    fn plan(&self, asked: &Asked<'_>, draft: &mut Draft<'_>) -> Result<Statistic, QueryError> {
        let [y, x] = asked.params().args.as_slice() else { return Err(asked.refused("it is of two values")) };
        let (y, x) = (BoundedValue::of(y, asked, draft)?, BoundedValue::of(x, asked, draft)?);
        let (masked_y, masked_x) = (y.beside(&x)?, x.beside(&y)?);
        let [of_y, of_x] = [masked_y, masked_x].map(|value| Summed::of_value(value, asked, draft));
        let (of_y, of_x) = (of_y?, of_x?);
        // The same in whichever order the two stand: sums that are the same are taken once.
        let first = if said(&y.value) <= said(&x.value) { &of_y } else { &of_x };
        let count = draft.count(Some(first.value.clone()), asked, format!("{}: count", asked.title))?;
        let mut sum = |summed: &Summed, shape: Shape| summed.sum(shape, asked, draft);
        let kind = match asked.name() {
            "regr_count" => return Ok(Statistic::noisy(CountEstimator(count))),
            "regr_avgx" => return Ok(Statistic::noisy(MeanEstimator::made_of(sum(&of_x, Shape::Centred)?, count))),
            "regr_avgy" => return Ok(Statistic::noisy(MeanEstimator::made_of(sum(&of_y, Shape::Centred)?, count))),
            "covar_pop" => PairStatistic::Covariance { sample: false },
            "covar_samp" => PairStatistic::Covariance { sample: true },
            "regr_slope" => PairStatistic::Slope,
            "regr_intercept" => PairStatistic::Intercept,
            "regr_r2" => PairStatistic::Determination,
            "regr_sxx" => PairStatistic::SquaresOfX,
            "regr_syy" => PairStatistic::SquaresOfY,
            "regr_sxy" => PairStatistic::Products,
            _ => PairStatistic::Correlation,
        };
        let needs = kind.needs();
        let mut measures = [Some(count), None, None, None, None, None];
        let sums = [
            (1, &of_x, Shape::Centred),
            (2, &of_y, Shape::Centred),
            (4, &of_x, Shape::Squared),
            (5, &of_y, Shape::Squared),
        ];
        for (place, summed, shape) in sums.into_iter().filter(|(place, ..)| needs[*place]) {
            measures[place] = Some(sum(summed, shape)?);
        }
        if needs[3] {
            let (one, other) = if said(&y.value) <= said(&x.value) { (&y, &x) } else { (&x, &y) };
            let product = one.distance() * other.distance();
            let name = format!("{}: sum of products", asked.title);
            let product = Summed::of_value(product, asked, draft)?.sum_called(Shape::Plain, name, asked, draft)?;
            measures[3] = Some(product);
        }
        let sides = [x.side(), y.side()];
        Ok(Statistic::noisy(PairEstimator { kind, measures, sides }))
    }
}

/// One of the two values, within its bounds.
struct BoundedValue {
    value: Expr,
    low: f64,
    high: f64,
}

impl BoundedValue {
    fn of(value: &Expr, asked: &Asked<'_>, draft: &Draft<'_>) -> Result<Self, QueryError> {
        let (low, high) = match draft.range_of(value, &asked.title)? {
            Range::Known { low, high } if low == high => return Err(asked.always(value, low)),
            Range::Known { low, high } => (low, high),
            Range::Auto => {
                let name = said(value);
                return Err(QueryError::asked(
                    format!(
                        "`{}` needs bounds that are declared, and those of `{name}` are to be found first",
                        asked.title
                    ),
                    format!("declare bounds of `{name}`, or write clamp({name}, low, high)"),
                ));
            }
        };
        let kind = type_of(value, draft.input)?;
        let number = if kind == DataType::Float64 { value.clone() } else { cast(value.clone(), DataType::Float64) };
        Ok(Self { value: clamped(number, low, high), low, high })
    }

    /// It, where the other is there too.
    fn beside(&self, other: &Self) -> Result<Expr, QueryError> {
        let there = when(other.value.clone().is_not_null(), self.value.clone()).end();
        there.map_err(|error| planning(&error))
    }

    /// Its distance from the middle of its bounds.
    fn distance(&self) -> Expr {
        self.value.clone() - lit(f64::midpoint(self.low, self.high))
    }

    fn side(&self) -> ValueBounds {
        ValueBounds { centre: f64::midpoint(self.low, self.high), half: (self.high - self.low) / 2.0 }
    }
}

/// What is made of the sums.
#[derive(Debug)]
struct PairEstimator {
    kind: PairStatistic,
    /// The numbers of the measures, in the order of [`PairSums`], where they are needed.
    measures: [Option<usize>; 6],
    /// Of x and of y.
    sides: [ValueBounds; 2],
}

impl PairEstimator {
    fn moments<'a>(&self, noisy: &NoisyMeasures<'a>) -> PairSums<'a> {
        let sums = self.measures.map(|measure| measure.map(|measure| (noisy.noise(measure), noisy.step(measure))));
        PairSums::new(self.kind, self.sides, sums, noisy.confidence())
    }

    /// The sums of one group, as they are.
    fn numbers(&self, noisy: &NoisyMeasures<'_>, group: usize) -> [f64; 6] {
        let number = |measure: usize| noisy.number(measure, group) as f64 * noisy.step(measure);
        self.measures.map(|measure| measure.map_or(0.0, number))
    }
}

impl Estimator for PairEstimator {
    fn measures(&self) -> Vec<usize> {
        self.measures.into_iter().flatten().collect()
    }

    fn meaning(&self) -> Json {
        json!({ "pair": self.kind.word(), "of": self.measures })
    }

    fn cells(&self, noisy: &NoisyMeasures<'_>, groups: &[usize]) -> Result<Vec<Cell>, QueryError> {
        let moments = self.moments(noisy);
        Ok(groups.iter().map(|&group| moments.cell(&self.numbers(noisy, group))).collect())
    }

    fn values(&self, noisy: &NoisyMeasures<'_>, groups: usize) -> Result<Option<Vec<Value>>, QueryError> {
        let moments = self.moments(noisy);
        let of = |group| moments.at(&self.numbers(noisy, group)).map_or(Value::Null, Value::Float);
        Ok(Some((0..groups).map(of).collect()))
    }

    fn is_about_spread(&self) -> bool {
        true
    }

    /// Made-up values have nothing to do with one another, and there some of these are 0 whatever the noise: their intervals say how far they are off.
    fn previewed(&self, noisy: &NoisyMeasures<'_>, draws: usize) -> Result<Option<Vec<f64>>, QueryError> {
        let cells = self.cells(noisy, &(0..draws).collect::<Vec<_>>())?;
        let half = |cell: Cell| match (cell.low, cell.high) {
            // R² moves by up to twice what the correlation does, and its own interval at 0 is the square of that.
            (Some(_), Some(high)) if self.kind == PairStatistic::Determination => (2.0 * high.sqrt()).min(1.0),
            (Some(low), Some(high)) => (high - low) / 2.0,
            _ => f64::NAN,
        };
        Ok(Some(cells.into_iter().map(half).collect()))
    }

    fn widest(&self, _: &Part, rows: f64) -> Option<f64> {
        self.kind.most(self.sides, rows)
    }
}
