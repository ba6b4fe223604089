//! How many pairs a noisy order has the wrong way round: an estimate from the noisy counts alone.
//!
//! The order loss of Element-Level DP, (8), counts *wrong* pairs (erratum E14) among those whose true counts are at least a gap
//! apart. Who knows the true counts can ask [`order_loss`](whit_core::mechanism::topk::order_loss). This is for everybody else: it
//! reads what was released, so it costs nothing.
//!
//! # How
//! By empirical Bayes. Each true count is taken as a draw from one unknown law on a grid of a quarter of the noise's
//! deviation (whole counts at least), and that law is estimated from all noisy counts by expectation–maximisation. To the number of items
//! that fall to a grid point a quarter is added, one for each deviation: where many items are, the law is learnt; where few are,
//! it stays flat, which says that a gap between two noisy counts is as likely too large as too small. Given the law, each item has
//! a posterior, and each pair a probability to be the wrong way round. The sum of these is the estimate.
//!
//! It is an estimate and no bound, and says so wherever it is shown. To take noise out of a law is hard: on word counts, of which most are
//! 0 or 1, it was within a third of the loss, where a flat law was off by a factor of seven.

/// Beyond so many grid points (eight deviations on a grid of a quarter) nothing is told apart from nothing.
const REACH: i64 = 32;
/// Items that are added to each grid point before the law is estimated.
const FLAT: f64 = 0.25;
/// Rounds of expectation–maximisation, and the most grid points over which all of them are made.
const ROUNDS: usize = 200;
const POINTS: usize = 10_000;

/// About how many pairs of `released` items are in the wrong order, of those whose true counts are `gap` or more apart.
///
/// `noisy` are the noisy counts of all items, `released` the numbers of those in the order, and `sigma` the standard deviation of the noise.
pub(crate) fn expected_wrong(noisy: &[f64], released: &[u32], sigma: f64, gap: f64) -> f64 {
    if released.len() < 2 || !(sigma > 0.0 && sigma.is_finite()) {
        return 0.0;
    }
    let width = (sigma / 4.0).max(1.0_f64.min(sigma));
    let cell = |value: f64| (value / width).round() as i64;
    let cells = tally(noisy.iter().map(|&value| cell(value)));
    let law = CountLaw::estimate(&cells, width / sigma);
    let shown = tally(released.iter().map(|&item| cell(noisy[item as usize])));
    let steps = ((gap / width).round() as i64).max(1);
    let posteriors: Vec<Posterior> = shown.iter().map(|&(at, _)| law.posterior(at)).collect();
    let mut wrong = 0.0;
    for (i, &(low, few)) in shown.iter().enumerate() {
        // Two items of one cell are in either order, so the pair is wrong with half the probability that they are apart.
        wrong += few * (few - 1.0) / 2.0 * posteriors[i].below(&posteriors[i], steps);
        for (j, &(high, many)) in shown.iter().enumerate().skip(i + 1) {
            if high - low > 2 * REACH {
                break;
            }
            wrong += few * many * posteriors[j].below(&posteriors[i], steps);
        }
    }
    wrong
}

/// The cells that are not empty, in order, and how many values each holds.
fn tally(cells: impl Iterator<Item = i64>) -> Vec<(i64, f64)> {
    let mut cells: Vec<i64> = cells.collect();
    cells.sort_unstable();
    cells.chunk_by(|a, b| a == b).map(|same| (same[0], same.len() as f64)).collect()
}

/// What true counts are like: a weight for each grid point near a noisy count, and none below 0.
struct CountLaw {
    points: Vec<i64>,
    weights: Vec<f64>,
    /// The noise's density, by distance in grid points.
    kernel: Vec<f64>,
}

/// Where one item's true count may lie: consecutive entries of the law's points, with probabilities.
struct Posterior {
    points: Vec<i64>,
    chances: Vec<f64>,
}

impl CountLaw {
    /// `width` is the grid's width in deviations of the noise.
    fn estimate(cells: &[(i64, f64)], width: f64) -> Self {
        let kernel = (0..=REACH).map(|k| (-0.5 * (k as f64 * width).powi(2)).exp()).collect();
        let mut points: Vec<i64> = Vec::new();
        for &(at, _) in cells {
            let from = points.last().map_or(at - REACH, |last| (last + 1).max(at - REACH)).max(0);
            points.extend(from..=at + REACH);
        }
        if points.is_empty() {
            points.push(0); // all noisy counts are far below 0
        }
        let mut law = Self { weights: vec![1.0; points.len()], points, kernel };
        for _ in 0..(ROUNDS * POINTS / cells.len().max(POINTS)).max(20) {
            let mut next = vec![FLAT; law.points.len()];
            for &(at, count) in cells {
                let (first, chances) = law.chances(at);
                next[first..].iter_mut().zip(chances).for_each(|(sum, chance)| *sum += count * chance);
            }
            law.weights = next;
        }
        law
    }

    /// The probabilities of the grid points near a cell, and the number of the first of them.
    fn chances(&self, at: i64) -> (usize, Vec<f64>) {
        let first = self.points.partition_point(|&point| point < at - REACH).min(self.points.len() - 1);
        let near =
            self.points[first..].iter().zip(&self.weights[first..]).take_while(|(point, _)| **point <= at + REACH);
        let mut chances: Vec<f64> =
            near.map(|(point, weight)| weight * self.kernel[(point - at).unsigned_abs() as usize]).collect();
        let total: f64 = chances.iter().sum();
        if total > 0.0 {
            for chance in &mut chances {
                *chance /= total;
            }
        } else {
            chances = vec![1.0]; // far below 0, where no count can be: the nearest point
        }
        (first, chances)
    }

    fn posterior(&self, at: i64) -> Posterior {
        let (first, chances) = self.chances(at);
        Posterior { points: self.points[first..first + chances.len()].to_vec(), chances }
    }
}

impl Posterior {
    /// The probability that this count is `steps` or more below the other.
    fn below(&self, other: &Self, steps: i64) -> f64 {
        let (mut sum, mut passed, mut next) = (0.0, 0.0, 0);
        for (point, chance) in other.points.iter().zip(&other.chances) {
            while next < self.points.len() && self.points[next] <= point - steps {
                passed += self.chances[next];
                next += 1;
            }
            sum += chance * passed;
        }
        sum
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use whit_core::mechanism::topk::order_loss;
    use whit_noise::{Replay, RoundedGaussian};

    /// True counts, the mean order loss over some draws, the mean estimate, and the mean of what a flat law says.
    fn trial(truth: &[f64], sigma: u64, top: Option<usize>, gap: f64, draws: u32) -> (f64, f64, f64) {
        let noise = RoundedGaussian::new(whit_noise::Ratio::from(sigma)).unwrap();
        let mut entropy = Replay::new(77);
        let (mut lost, mut expected, mut flat) = (0.0, 0.0, 0.0);
        for _ in 0..draws {
            let noisy: Vec<f64> = truth.iter().map(|t| t + noise.draw(&mut entropy).unwrap() as f64).collect();
            let steps: Vec<i64> = noisy.iter().map(|&x| x as i64).collect();
            let items = super::super::hitters::ranked(&steps, top);
            let pick = |from: &[f64]| items.iter().map(|&i| from[i as usize]).collect::<Vec<_>>();
            lost += order_loss(&pick(truth), &pick(&noisy), gap) as f64;
            expected += expected_wrong(&noisy, &items, sigma as f64, gap);
            let shown = pick(&noisy);
            for (i, high) in shown.iter().enumerate() {
                for low in &shown[i + 1..] {
                    flat += 0.5 * erfc((high - low + gap) / (2.0 * sigma as f64));
                }
            }
        }
        (lost / f64::from(draws), expected / f64::from(draws), flat / f64::from(draws))
    }

    fn erfc(x: f64) -> f64 {
        2.0 * whit_account::normal::upper_tail(x * std::f64::consts::SQRT_2)
    }

    /// Word counts: a few large, many small, most of them 0. The seed is fixed.
    #[test]
    fn the_estimate_is_near_the_loss_and_a_flat_law_is_not() {
        let truth: Vec<f64> = (0..3000).map(|rank| (2000.0 / f64::from(rank + 1)).floor()).collect();
        let truth: Vec<f64> = truth.into_iter().chain(std::iter::repeat_n(0.0, 3000)).collect();
        for (sigma, top, gap, margin) in
            [(5, None, 5.0, 0.33), (5, Some(60), 5.0, 0.33), (20, None, 20.0, 0.33), (20, Some(40), 20.0, 0.33)]
        {
            let (lost, expected, flat) = trial(&truth, sigma, top, gap, if top.is_some() { 40 } else { 3 });
            assert!(
                (expected / lost - 1.0).abs() < margin,
                "σ {sigma}, {top:?}: expected {expected}, lost {lost}, flat {flat}"
            );
            if top.is_none() {
                assert!(flat / lost > 2.0, "a flat law takes equal counts for different ones: {flat} for {lost}");
            }
        }
    }

    #[test]
    fn what_is_far_apart_is_in_order_and_what_is_alone_has_none() {
        assert_eq!(expected_wrong(&[1000.0, 500.0, 0.0], &[0, 1, 2], 3.0, 1.0), 0.0);
        assert_eq!(expected_wrong(&[5.0], &[0], 3.0, 1.0), 0.0);
        assert_eq!(expected_wrong(&[-1e9, -2e9], &[0, 1], 3.0, 1.0), 0.0);
        let close = expected_wrong(&[10.0, 10.0], &[0, 1], 4.0, 1.0);
        assert!((0.2..0.5).contains(&close), "{close}");
    }

    /// Two items, far from all others: nothing is known of them but their noisy counts, so that a gap of one deviation of
    /// the difference is wrong with probability Q(1) = 0.159, or a little more since the law is also learnt from these two.
    #[test]
    fn two_lonely_items_are_judged_by_their_gap() {
        let sigma = 40.0;
        let noisy = [1000.0 + sigma * std::f64::consts::SQRT_2, 1000.0];
        let expected = expected_wrong(&noisy, &[0, 1], sigma, 1.0);
        assert!((0.14..0.3).contains(&expected), "{expected}");
    }
}
