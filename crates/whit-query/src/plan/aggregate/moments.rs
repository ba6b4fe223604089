//! What is made of the six sums of two values, with its interval.
//!
//! An interval is the set of values that a test of "this is the truth" does not rule out. Each test is a sum of the noises alone, if the means and spreads that it needs were
//! known: for the slope b it is that of (x − m)·(y − k − b·(x − m)) over the rows, with the means m and k. Such a sum hardly moves with what stands in for these
//! (its slope in each of them is 0 at the truth), so what the noise of means and spreads adds is of second order. That is worked out from the value itself: how it bends
//! along each noise and along each two of them gives what it is off by on the average, and how far around that.
//!
//! That is tried, not proved: see `intervals_of_pairs_hold_about_as_often_as_they_say`.

use crate::answer::{Cell, Value};
use crate::bound::SumNoise;
use crate::noise::Together;
use whit_account::normal::upper_quantile;

/// What is asked of two values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PairStatistic {
    /// How much they vary together.
    Covariance {
        /// Whether it is divided by n − 1.
        sample: bool,
    },
    /// The same as a share of how much each varies.
    Correlation,
    /// Its square.
    Determination,
    /// By how much y grows with x, on the line of least squares.
    Slope,
    /// Where that line meets x = 0.
    Intercept,
    /// The squares of x around its mean, added up.
    SquaresOfX,
    /// Those of y.
    SquaresOfY,
    /// The products of both around their means, added up.
    Products,
}

impl PairStatistic {
    /// What it is called in the meaning of a question.
    pub(super) fn word(self) -> &'static str {
        match self {
            Self::Covariance { sample: false } => "covariance",
            Self::Covariance { sample: true } => "covariance of a sample",
            Self::Correlation => "correlation",
            Self::Determination => "determination",
            Self::Slope => "slope",
            Self::Intercept => "intercept",
            Self::SquaresOfX => "squares of x",
            Self::SquaresOfY => "squares of y",
            Self::Products => "products",
        }
    }

    /// Of which sums it is made: rows, x, y, x·y, x², y².
    pub(super) fn needs(self) -> [bool; 6] {
        match self {
            Self::Covariance { .. } | Self::Products => [true, true, true, true, false, false],
            Self::Slope | Self::Intercept => [true, true, true, true, true, false],
            Self::Correlation | Self::Determination => [true; 6],
            Self::SquaresOfX => [true, true, false, false, true, false],
            Self::SquaresOfY => [true, false, true, false, false, true],
        }
    }

    /// The most that it can be, to either side, over so many rows; nothing where bounds do not say.
    pub(super) fn most(self, [x, y]: [ValueBounds; 2], rows: f64) -> Option<f64> {
        match self {
            Self::Covariance { .. } => Some(x.half * y.half),
            Self::Correlation | Self::Determination => Some(1.0),
            Self::Slope | Self::Intercept => None,
            Self::SquaresOfX => Some(rows * x.half * x.half),
            Self::SquaresOfY => Some(rows * y.half * y.half),
            Self::Products => Some(rows * x.half * y.half),
        }
    }

    /// Whether it is never below 0.
    fn is_positive(self) -> bool {
        matches!(self, Self::Determination | Self::SquaresOfX | Self::SquaresOfY)
    }

    /// Whether it is divided by the spreads of x and of y.
    fn divides(self) -> (bool, bool) {
        match self {
            Self::Slope | Self::Intercept => (true, false),
            Self::Correlation | Self::Determination => (true, true),
            _ => (false, false),
        }
    }
}

/// The bounds of one of the values.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct ValueBounds {
    /// The middle.
    pub(super) centre: f64,
    /// The distance of the ends from it.
    pub(super) half: f64,
}

/// Means and spreads, around the middle of the bounds.
struct MeansAndSpreads {
    rows: f64,
    x: f64,
    y: f64,
    together: f64,
    of_x: f64,
    of_y: f64,
}

impl MeansAndSpreads {
    fn of(&[rows, x, y, product, square_x, square_y]: &[f64; 6]) -> Self {
        let (x, y) = (x / rows, y / rows);
        let (of_x, of_y) = (square_x / rows - x * x, square_y / rows - y * y);
        Self { rows, x, y, together: product / rows - x * y, of_x, of_y }
    }
}

/// Six sums with their noises: rows, x, y, x·y, x², y². Those that are not needed have none.
pub(super) struct PairSums<'a> {
    kind: PairStatistic,
    sides: [ValueBounds; 2],
    /// What one step of each is worth, and how far noise usually takes it; 0 where it is not needed.
    steps: [f64; 6],
    usual: [f64; 6],
    /// Which of them have noise.
    there: Vec<usize>,
    together: Together<'a>,
    /// How far noise takes the number of rows.
    of_rows: f64,
    /// How many deviations the confidence is, of a Gaussian.
    deviations: f64,
}

/// A spread that is not so many times the reach of its noise may be far smaller: nothing is divided by it. What noise made look clear is mostly what noise made larger, so this is
/// well beyond what rules 0 out.
const CLEAR: f64 = 3.0;

impl<'a> PairSums<'a> {
    pub(super) fn new(
        kind: PairStatistic,
        sides: [ValueBounds; 2],
        sums: [Option<(&'a SumNoise, f64)>; 6],
        confidence: f64,
    ) -> Self {
        let there: Vec<usize> = (0..6).filter(|&i| sums[i].is_some()).collect();
        let noises = sums.iter().flatten().map(|(noise, _)| *noise).collect();
        Self {
            kind,
            sides,
            steps: sums.map(|sum| sum.map_or(0.0, |(_, step)| step)),
            usual: sums.map(|sum| sum.map_or(0.0, |(noise, step)| noise.deviation() * step)),
            there,
            together: Together::new(noises, confidence),
            of_rows: sums[0].map_or(0.0, |(noise, step)| noise.within(confidence) * step),
            deviations: upper_quantile((1.0 - confidence) / 2.0),
        }
    }

    /// How far the noise of a sum of the six takes it, with these coefficients.
    fn reach(&self, coefficients: &[f64; 6]) -> f64 {
        let steps: Vec<f64> = self.there.iter().map(|&i| coefficients[i] * self.steps[i]).collect();
        self.together.within(&steps)
    }

    /// The value as it comes, but for what is beyond its bounds; nothing where it divides by what is not above 0.
    fn plain(&self, sums: &[f64; 6]) -> Option<f64> {
        let moment = MeansAndSpreads::of(sums);
        let [x, y] = self.sides;
        let (of_x, of_y) = self.kind.divides();
        if moment.rows <= 0.0 || of_x && moment.of_x <= 0.0 || of_y && moment.of_y <= 0.0 {
            return None;
        }
        let value = match self.kind {
            PairStatistic::Covariance { .. } => moment.together,
            PairStatistic::Correlation | PairStatistic::Determination => {
                moment.together / (moment.of_x * moment.of_y).sqrt()
            }
            PairStatistic::Slope => moment.together / moment.of_x,
            PairStatistic::Intercept => y.centre + moment.y - moment.together / moment.of_x * (x.centre + moment.x),
            PairStatistic::SquaresOfX => moment.rows * moment.of_x,
            PairStatistic::SquaresOfY => moment.rows * moment.of_y,
            PairStatistic::Products => moment.rows * moment.together,
        };
        value.is_finite().then_some(value)
    }

    /// The test of "this is the truth": the coefficients of its noise, and by how much it grows where the truth is less by one.
    fn test(&self, truth: f64, sums: &[f64; 6]) -> ([f64; 6], f64) {
        let MeansAndSpreads { rows, x, y, of_x, of_y, .. } = MeansAndSpreads::of(sums);
        match self.kind {
            PairStatistic::Covariance { .. } => ([x * y - truth, -y, -x, 1.0, 0.0, 0.0], rows),
            PairStatistic::Products => ([x * y, -y, -x, 1.0, 0.0, 0.0], 1.0),
            PairStatistic::SquaresOfX => ([x * x, -2.0 * x, 0.0, 0.0, 1.0, 0.0], 1.0),
            PairStatistic::SquaresOfY => ([y * y, 0.0, -2.0 * y, 0.0, 0.0, 1.0], 1.0),
            PairStatistic::Slope => ([x * y - truth * x * x, 2.0 * truth * x - y, -x, 1.0, -truth, 0.0], rows * of_x),
            PairStatistic::Intercept => {
                // Rows weigh 1 − κ·(x − zero), with which the slope has no part in the sum of what is left of y.
                let zero = -self.sides[0].centre;
                let far = x - zero;
                let kappa = far / (of_x + far * far);
                let omega = 1.0 + kappa * zero;
                let slope = MeansAndSpreads::of(sums).together / of_x;
                let at = truth - self.sides[1].centre - slope * zero;
                let of_x_alone = at * kappa - slope * omega;
                ([-at * omega, of_x_alone, omega, -kappa, slope * kappa, 0.0], rows * of_x / (of_x + far * far))
            }
            PairStatistic::Correlation | PairStatistic::Determination => {
                let both = (of_x * of_y).sqrt();
                let all = x * y / both - truth / 2.0 * (x * x / of_x + y * y / of_y);
                let (alone_x, alone_y) = (truth * x / of_x - y / both, truth * y / of_y - x / both);
                ([all, alone_x, alone_y, both.recip(), -truth / (2.0 * of_x), -truth / (2.0 * of_y)], rows)
            }
        }
    }

    /// What the value is off by on the average because it bends, and how far around that.
    fn bend(&self, sums: &[f64; 6], at: f64) -> Option<(f64, f64)> {
        let moved = |moves: &[(usize, f64)]| {
            let mut sums = *sums;
            for &(i, by) in moves {
                sums[i] += by * self.usual[i];
            }
            self.plain(&sums)
        };
        let (mut off, mut around) = (0.0, 0.0);
        for (number, &i) in self.there.iter().enumerate() {
            let own = (moved(&[(i, 1.0)])? + moved(&[(i, -1.0)])? - 2.0 * at) / 2.0;
            off += own;
            around += 2.0 * own * own;
            for &j in &self.there[..number] {
                let same = moved(&[(i, 1.0), (j, 1.0)])? + moved(&[(i, -1.0), (j, -1.0)])?;
                let other = moved(&[(i, 1.0), (j, -1.0)])? + moved(&[(i, -1.0), (j, 1.0)])?;
                around += ((same - other) / 4.0).powi(2);
            }
        }
        Some((off, self.deviations * around.sqrt()))
    }

    /// Whether what it is divided by is clearly above 0.
    fn is_clear(&self, sums: &[f64; 6]) -> bool {
        let MeansAndSpreads { rows, x, y, of_x, of_y, .. } = MeansAndSpreads::of(sums);
        // As above, for a covariance of a value with itself.
        let spread_of_x = || self.reach(&[x * x - of_x, -2.0 * x, 0.0, 0.0, 1.0, 0.0]) / rows;
        let spread_of_y = || self.reach(&[y * y - of_y, 0.0, -2.0 * y, 0.0, 0.0, 1.0]) / rows;
        let (divides_x, divides_y) = self.kind.divides();
        rows > 2.0_f64.max(self.of_rows)
            && (!divides_x || of_x > CLEAR * spread_of_x())
            && (!divides_y || of_y > CLEAR * spread_of_y())
    }

    /// n / (n − 1) for a sample.
    fn correction(&self, rows: f64) -> f64 {
        let sample = self.kind == PairStatistic::Covariance { sample: true };
        if sample { rows.max(2.0) / (rows.max(2.0) - 1.0) } else { 1.0 }
    }

    /// Within what bounds say of it.
    fn bounded(&self, value: f64, rows: f64) -> f64 {
        let most = match self.kind {
            // How many rows there are is noisy too, and what is added up over them has no other bound.
            PairStatistic::SquaresOfX | PairStatistic::SquaresOfY | PairStatistic::Products => f64::INFINITY,
            kind => kind.most(self.sides, rows).unwrap_or(f64::INFINITY),
        };
        value.clamp(if self.kind.is_positive() { 0.0 } else { -most }, most)
    }

    /// What a number of the test comes to as it is shown: of R² the test is that of the correlation.
    fn shown(&self, value: f64, rows: f64) -> f64 {
        if self.kind == PairStatistic::Determination {
            return value.clamp(-1.0, 1.0).powi(2);
        }
        self.bounded(value, rows) * self.correction(rows)
    }

    /// The best guess; nothing where there is none.
    pub(super) fn at(&self, sums: &[f64; 6]) -> Option<f64> {
        if sums[0] < 2.0 {
            return (!matches!(self.kind, PairStatistic::Slope | PairStatistic::Intercept)).then_some(0.0);
        }
        match self.plain(sums) {
            Some(value) => Some(self.shown(value, sums[0])),
            None => (!matches!(self.kind, PairStatistic::Slope | PairStatistic::Intercept)).then_some(0.0),
        }
    }

    pub(super) fn cell(&self, sums: &[f64; 6]) -> Cell {
        let value = self.at(sums);
        let ends = self.plain(sums).filter(|_| self.is_clear(sums)).and_then(|at| self.ends(sums, at));
        let Some((low, high)) = ends.filter(|(low, high)| low.is_finite() && high.is_finite()) else {
            // Nothing is known beyond the bounds.
            let most =
                self.kind.most(self.sides, (sums[0] + self.of_rows).max(1.0)).map(|most| most * self.correction(2.0));
            let low = most.map(|most| if self.kind.is_positive() { 0.0 } else { -most });
            let clamp = |value: f64| low.zip(most).map_or(value, |(low, high)| value.clamp(low, high));
            return Cell { value: value.map(clamp).map_or(Value::Null, Value::Float), low, high: most };
        };
        let value = value.map(|value| value.clamp(low, high));
        Cell { value: value.map_or(Value::Null, Value::Float), low: Some(low), high: Some(high) }
    }

    /// What is not ruled out.
    fn ends(&self, sums: &[f64; 6], at: f64) -> Option<(f64, f64)> {
        let (off, around) = self.bend(sums, at)?;
        let end = |sign: f64| {
            let mut end = at;
            // Each end moves its own test by less than itself where what it is divided by is clear: this settles.
            for _ in 0..6 {
                let (coefficients, grows) = self.test(end, sums);
                end = at - off + sign * (self.reach(&coefficients) / grows).hypot(around);
                if matches!(self.kind, PairStatistic::Correlation | PairStatistic::Determination) {
                    end = end.clamp(-1.0, 1.0);
                }
            }
            end
        };
        let (low, high) = (end(-1.0), end(1.0));
        if !(low.is_finite() && high.is_finite()) {
            return None;
        }
        if self.kind == PairStatistic::Determination {
            let least = if low <= 0.0 && high >= 0.0 { 0.0 } else { low.abs().min(high.abs()) };
            return Some((least.powi(2), low.abs().max(high.abs()).powi(2)));
        }
        // For the fewest and the most rows that there may be.
        let rows = [(sums[0] - self.of_rows).max(2.0), sums[0] + self.of_rows];
        let all =
            || rows.iter().flat_map(|&rows| [low, high].map(|end| self.bounded(end, rows) * self.correction(rows)));
        Some((all().fold(f64::INFINITY, f64::min), all().fold(f64::NEG_INFINITY, f64::max)))
    }
}

#[cfg(test)]
mod tests;
