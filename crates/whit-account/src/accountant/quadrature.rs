//! Rényi divergences of mixtures of Gaussians, by quadrature.
//!
//! With y = P/Q − 1, ∫ Q·y = 0, so exp((α−1)·D_α(P‖Q)) − 1 = ∫ Q·h_α(y) with h_α(y) = (1+y)^α − 1 − α·y ≥ 0. That
//! integrand is positive and small where P and Q are close, so nothing is lost to cancellation even where D is 1e-20
//! (a rate of 1e-9, say), and it is handled in logarithms, so nothing overflows where it is e^1e6.
//!
//! Integrals are found by adaptive Gauss–Legendre quadrature: a panel counts once it agrees with its two halves to 1e-11 of the whole,
//! and the halves, which are used, are then far closer than that. The result is inflated by [`INFLATION`] before it counts as an
//! upper bound. That is an estimate, not a proof, of the quadrature's error; tests compare it with 60-digit integrals.

use super::pair::ln_add;
use crate::normal::integral_nodes;

/// By how much, relatively, a numerical exp((α−1)D) − 1 is raised before it counts as an upper bound.
pub(crate) const INFLATION: f64 = 1e-9;

/// D from ln(exp((α−1)D) − 1), rounded up.
pub(super) fn from_ln_excess(ln_excess: f64, alpha: f64) -> f64 {
    let ln_moment = if ln_excess > 40.0 { ln_excess + (-ln_excess).exp() } else { ln_excess.exp().ln_1p() };
    ln_moment / (alpha - 1.0) * (1.0 + 4.0 * f64::EPSILON)
}

/// ln h_α(y) for y = e^loss − 1, where h_α(y) = (1+y)^α − 1 − αy. `y` may be infinite where e^loss overflows.
pub(super) fn ln_rest(alpha: f64, y: f64, loss: f64) -> f64 {
    if y == 0.0 {
        return f64::NEG_INFINITY;
    }
    if y.abs() < 0.05 && alpha * y.abs() < 0.5 {
        // Σ over k ≥ 2 of binom(α, k)·y^k, whose terms shrink at least sixfold
        let (mut sum, mut term, mut k) = (0.0, 1.0, 2.0);
        while sum + term != sum {
            sum += term;
            term *= (alpha - k) / (k + 1.0) * y;
            k += 1.0;
        }
        return (0.5 * alpha * (alpha - 1.0)).ln() + 2.0 * y.abs().ln() + sum.ln();
    }
    // With e^loss = 1 + y drawn out: (1+y)·(e^g − 1) − (α−1)·y, which stays exact as α goes to 1.
    let g = (alpha - 1.0) * loss;
    if loss < 0.0 {
        return (loss.exp() * g.exp_m1() - (alpha - 1.0) * loss.exp_m1()).ln();
    }
    let share = -(alpha - 1.0) * (-loss).exp_m1();
    if g > 40.0 { alpha * loss + (-(-g).exp() * (1.0 + share)).ln_1p() } else { loss + (g.exp_m1() - share).ln() }
}

/// Q/P − 1 from y = P/Q − 1, which may be infinite.
fn backwards(y: f64) -> f64 {
    if y == f64::INFINITY { -1.0 } else { -y / (1.0 + y) }
}

/// Which of the two laws stands first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    /// The mixture against the law without the unit.
    Away,
    /// The law without the unit against the mixture.
    Towards,
}

/// (1−q)N(0) + qN(m) at x, m and x in units of σ: ln of its ratio to N(0).
#[derive(Clone, Copy)]
struct Coin {
    q: f64,
    ln_q: f64,
    mean: f64,
}

impl Coin {
    fn new(q: f64, mean: f64) -> Self {
        Self { q, ln_q: q.ln(), mean }
    }

    fn exponent(&self, x: f64) -> f64 {
        self.mean * (x - 0.5 * self.mean)
    }

    fn ln_ratio(&self, x: f64) -> f64 {
        let t = self.exponent(x);
        let y = self.q * t.exp_m1();
        if t < 600.0 && y > -0.5 { y.ln_1p() } else { ln_add((-self.q).ln_1p(), self.ln_q + t) }
    }

    /// Where both parts of the mixture weigh the same.
    fn crossover(&self) -> f64 {
        0.5 * self.mean + ((-self.q).ln_1p() - self.ln_q) / self.mean
    }
}

const LN_ROOT_TWO_PI: f64 = 0.918_938_533_204_672_7;

fn ln_density(x: f64) -> f64 {
    -0.5 * x * x - LN_ROOT_TWO_PI
}

/// D_α of (1−q)N(0) + qN(r) against N(0), or the other way round; r in units of σ.
pub fn sided(alpha: f64, q: f64, r: f64, direction: Direction) -> f64 {
    let coin = Coin::new(q, r);
    let ln_integrand = |x: f64| {
        let loss = coin.ln_ratio(x);
        let y = q * coin.exponent(x).exp_m1();
        match direction {
            Direction::Away => ln_density(x) + ln_rest(alpha, y, loss),
            Direction::Towards => ln_density(x) + loss + ln_rest(alpha, backwards(y), -loss),
        }
    };
    let means = match direction {
        Direction::Away => vec![0.0, r, 2.0 * r, alpha * r],
        Direction::Towards => vec![0.0, r, -r, 2.0 * r, (1.0 - alpha) * r],
    };
    from_ln_excess(ln_integral_up(ln_integrand, alpha, &means, &knees(&[coin], alpha), f64::NEG_INFINITY), alpha)
}

/// D_α of the reflected loss of (0; r, r − d), r and d in units of σ.
///
/// Its pair has P and Q, and Q and P, side by side on x > x₀ = r − d/2, where P ≥ Q, and an atom that both share; so
/// exp((α−1)D) − 1 = ∫ over x > x₀ of Q·h_α(P/Q − 1) + P·h_α(Q/P − 1): the linear terms of the two cancel.
pub fn reflected(alpha: f64, q: f64, r: f64, d: f64) -> f64 {
    let b = r - d;
    let start = r - 0.5 * d;
    let (first, second) = (Coin::new(q, r), Coin::new(q, b));
    let ln_integrand = |x: f64| {
        let (ln_p, ln_q) = (first.ln_ratio(x), second.ln_ratio(x));
        // P/Q − 1 = q·e^{t_b}·(e^{t_r − t_b} − 1)/Q, t_r − t_b = d·(x − x₀)
        let between = (d * (x - start)).max(0.0);
        let y = (q.ln() + second.exponent(x) - ln_q).exp() * between.exp_m1();
        let loss = if y < 1e15 { y.ln_1p() } else { ln_p - ln_q };
        let with = ln_q + ln_rest(alpha, y, loss);
        let against = ln_p + ln_rest(alpha, backwards(y), -loss);
        ln_density(x) + ln_add(with, against)
    };
    let means =
        [0.0, r, b, 2.0 * r, 2.0 * r - b, alpha * r, alpha * r - (alpha - 1.0) * b, alpha * b - (alpha - 1.0) * r];
    let coins = if b == 0.0 { vec![first] } else { vec![first, second] };
    from_ln_excess(ln_integral_up(ln_integrand, alpha, &means, &knees(&coins, alpha), start), alpha)
}

/// N(j/σ) with j ~ Binomial(holds, q).
pub(super) struct BinomialMixture {
    /// Log-weight of the part at 0.
    ln_none: f64,
    /// Mean and log-weight of each other part.
    parts: Vec<(f64, f64)>,
}

impl BinomialMixture {
    pub(super) fn new(holds: u64, q: f64, sigma: f64) -> Self {
        // Weights may underflow, and at high orders the rarest part may count most: so in logarithms throughout.
        let (ln_none, odds) = (holds as f64 * (-q).ln_1p(), q.ln() - (-q).ln_1p());
        let mut ln_weight = ln_none;
        let mut parts = Vec::new();
        for j in 1..=holds {
            ln_weight += ((holds - j + 1) as f64 / j as f64).ln() + odds;
            parts.push((j as f64 / sigma, ln_weight));
        }
        Self { ln_none, parts }
    }

    /// The ratio to N(0) at x, less 1, and its logarithm.
    fn ratio(&self, x: f64) -> (f64, f64) {
        let exponents = || self.parts.iter().map(|&(mean, ln_weight)| (mean * (x - 0.5 * mean), ln_weight));
        // Σ of weight·(e^t − 1), so that nothing cancels where the ratio is near 1.
        let y: f64 =
            exponents().map(|(t, ln)| if t < 1.0 { ln.exp() * t.exp_m1() } else { (ln + t).exp() - ln.exp() }).sum();
        if y.abs() < 0.5 {
            return (y, y.ln_1p());
        }
        let peak = exponents().map(|(t, ln)| ln + t).fold(self.ln_none, f64::max);
        let sum: f64 = exponents().map(|(t, ln)| (ln + t - peak).exp()).sum();
        (y, peak + (sum + (self.ln_none - peak).exp()).ln())
    }

    /// D_α of the mixture and N(0), in one direction.
    pub(super) fn divergence(&self, alpha: f64, direction: Direction) -> f64 {
        let ln_integrand = |x: f64| {
            let (y, loss) = self.ratio(x);
            match direction {
                Direction::Away => ln_density(x) + ln_rest(alpha, y, loss),
                Direction::Towards => ln_density(x) + loss + ln_rest(alpha, backwards(y), -loss),
            }
        };
        let mut means = vec![0.0];
        let mut turns = Vec::new();
        let mut before = (0.0, 0.0);
        for &(mean, ln_weight) in &self.parts {
            match direction {
                Direction::Away => means.extend([mean, 2.0 * mean, alpha * mean]),
                Direction::Towards => means.extend([mean, -mean, (1.0 - alpha) * mean]),
            }
            // where this part and the one before weigh the same
            let between = mean - before.0;
            turns.push((0.5 * (mean + before.0) + (before.1 - ln_weight) / between, between));
            before = (mean, ln_weight);
        }
        from_ln_excess(ln_integral_up(ln_integrand, alpha, &means, &turns, f64::NEG_INFINITY), alpha)
    }
}

/// Where the log-integrand turns from one slope to another, and how sharply: around the point where the parts of a mixture
/// weigh the same, and where its α-fold begins to differ from one part.
fn knees(coins: &[Coin], alpha: f64) -> Vec<(f64, f64)> {
    coins
        .iter()
        .flat_map(|coin| {
            let (at, sharp) = (coin.crossover(), coin.mean.abs());
            [(at, sharp), (at - alpha.ln() / coin.mean, sharp)]
        })
        .collect()
}

/// ln ∫ exp(f) over x > `start`, for an f that is −x²/2 plus a function that is nearly linear but for its `turns` (place and
/// sharpness), with slopes among or between `means`. Inflated, so that it counts as an upper bound.
///
/// Between turns exp(f) is nearly a normal density around one of the means, cut off at the turns. Panels begin and end at
/// means, turns, and a ladder of distances around each; a panel is halved until the rule on it agrees with the rule
/// on its halves. Beyond 13 from the outermost mean nothing counts (e^−84). Where x is large f is a small difference of
/// numbers of the size of x², and α multiplies the rounding of a loss, so agreement and inflation allow for that too.
/// NaN if it does not settle.
fn ln_integral_up(f: impl Fn(f64) -> f64, alpha: f64, means: &[f64], turns: &[(f64, f64)], start: f64) -> f64 {
    let rounding = |x: f64| 1e-15 * (x * x + alpha);
    let low = (means.iter().fold(f64::INFINITY, |a, &b| a.min(b)) - 13.0).max(start);
    let high = means.iter().fold(f64::NEG_INFINITY, |a, &b| a.max(b)).max(start) + 13.0;
    let mut edges = vec![low, high];
    for &mean in means.iter().chain([&start]) {
        edges.extend([-13.0, -6.0, -3.0, -1.0, 0.0, 1.0, 3.0, 6.0, 13.0].map(|step| mean + step));
    }
    for &(at, sharp) in turns {
        edges.extend([-40.0, -10.0, -3.0, 0.0, 3.0, 10.0, 40.0].map(|step| at + step / sharp));
    }
    edges.retain(|x| *x >= low && *x <= high);
    edges.sort_by(f64::total_cmp);
    edges.dedup();

    let rule = |from: f64, to: f64| {
        let mut values = [0.0; 16];
        let mut peak = f64::NEG_INFINITY;
        for (value, (x, _)) in values.iter_mut().zip(integral_nodes(from, to - from)) {
            *value = f(x);
            peak = peak.max(*value);
        }
        if peak == f64::NEG_INFINITY {
            return peak;
        }
        let nodes = integral_nodes(from, to - from);
        peak + values.iter().zip(nodes).map(|(v, (_, w))| w * (v - peak).exp()).sum::<f64>().ln()
    };
    let panels: Vec<_> = edges.windows(2).map(|edge| (edge[0], edge[1], rule(edge[0], edge[1]))).collect();
    let rough = panels.iter().fold(f64::NEG_INFINITY, |sum, panel| ln_add(sum, panel.2));
    let (mut total, mut lost) = (f64::NEG_INFINITY, 0.0_f64);
    let mut pending = panels;
    let mut patience = 20_000;
    while let Some((from, to, value)) = pending.pop() {
        patience -= 1;
        if patience == 0 {
            return f64::NAN;
        }
        let middle = 0.5 * (from + to);
        let ends = f(from).max(f(to)).max(f(middle)) + (to - from).ln();
        if value.max(ends) < rough - 60.0 {
            total = ln_add(total, value.max(ends)); // e^-60 of the whole, whatever its halves say
            continue;
        }
        let (left, right) = (rule(from, middle), rule(middle, to));
        let halves = ln_add(left, right);
        let largest = halves.max(value);
        let share = (largest - rough).min(0.0).exp();
        let noise = rounding(from.abs().max(to.abs()));
        let negligible = largest.max(ends) < rough - 45.0;
        let agrees = (halves - value).abs() * share < 1e-11 + noise && ends < largest + 20.0 + noise;
        if negligible || agrees || middle <= from || middle >= to {
            total = ln_add(total, largest);
            lost = lost.max(noise * share);
        } else {
            pending.push((from, middle, left));
            pending.push((middle, to, right));
        }
    }
    total + INFLATION + 4.0 * lost
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::accountant::binomial::binomial;

    /// α, q, r, D(mixture ‖ N(0)), D(N(0) ‖ mixture): 60 digits, from the definition.
    const SIDED: [(f64, f64, f64, f64, f64); 11] = [
        (1.0001, 0.01, 1.0, 8.382_078_919_703_06e-5, 8.189_777_345_526_34e-5),
        (1.5, 1e-9, 1.0, 1.288_711_369_602_95e-18, 1.288_711_362_637_6e-18),
        (64.0, 1e-9, 1.0, 10.947_793_435_483, 5.498_500_885_208_05e-17),
        (2.0, 1e-9, 5.0, 7.200_489_674_403_32e-8, 6.096_157_365_923_58e-11),
        (3.0, 0.5, 5.0, 36.460_279_229_160_1, 0.685_989_245_572_747),
        (100.0, 0.01, 0.001, 5.000_007_350_763_51e-9, 4.999_997_500_250_87e-9),
        (1000.0, 0.01, 0.01, 5.005_197_240_093_17e-6, 4.995_300_899_676_24e-6),
        (20.0, 0.999, 2.0, 39.998_946_841_754_1, 6.418_896_940_899_75),
        (1.5, 0.3, 25.0, 465.138_081_587_022, 0.356_674_943_938_732),
        (1.25, 1e-6, 60.0, 2_180.922_447_210_18, 1.000_000_500_000_33e-6),
        (300.0, 1e-3, 0.3, 6.569_141_862_614_39, 1.372_933_073_516_14e-5),
    ];

    /// α, q, r, d, D of the reflected loss.
    const REFLECTED: [(f64, f64, f64, f64, f64); 10] = [
        (2.0, 0.05, 2.5, 0.5, 0.012_947_787_095_161_1),
        (1.3, 1e-6, 10.0, 2.0, 3.938_238_558_534_63e-6),
        (8.0, 0.1, 50.0, 4.0, 63.671_059_272_429_4),
        (30.0, 0.01, 0.3, 0.02, 1.006_163_899_953_93e-6),
        (2.0, 0.9, 3.0, 0.5, 0.227_609_059_928_497),
        (1.05, 0.01, 500.0, 10.0, 2.409_734_070_972_14),
        (220.0, 1e-9, 1.0, 0.9, 88.123_327_366_788_5),
        (4.0, 0.01, 0.5, 1.0, 0.000_201_476_176_531_52),
        (1.1, 0.3, 2.0, 4.0, 0.600_522_632_676_821),
        (16.0, 1e-4, 1.0, 2.0, 3.759_561_671_079_02e-7),
    ];

    fn is_just_above(found: f64, expected: f64, what: &str) {
        let ratio = found / expected - 1.0;
        assert!((-1e-13..4e-9).contains(&ratio), "{what}: {found} for {expected}, off by {ratio:e}");
    }

    #[test]
    fn integrals_are_just_above_the_exact_divergence() {
        for (alpha, q, r, away, towards) in SIDED {
            is_just_above(sided(alpha, q, r, Direction::Away), away, &format!("away α {alpha} q {q} r {r}"));
            is_just_above(sided(alpha, q, r, Direction::Towards), towards, &format!("towards α {alpha} q {q} r {r}"));
        }
        for (alpha, q, r, d, expected) in REFLECTED {
            is_just_above(reflected(alpha, q, r, d), expected, &format!("reflected α {alpha} q {q} r {r} d {d}"));
        }
    }

    #[test]
    fn whole_orders_agree_with_the_binomial_closed_form() {
        for (q, r) in [(0.01_f64, 1.0_f64), (0.3, 0.5), (1e-4, 3.0)] {
            for alpha in 2..12_u32 {
                let mut moment = 0.0;
                let mut choose = 1.0;
                for k in 0..=alpha {
                    let k = f64::from(k);
                    moment += choose
                        * (1.0 - q).powf(f64::from(alpha) - k)
                        * q.powf(k)
                        * (0.5 * k * (k - 1.0) * r * r).exp_m1();
                    choose *= (f64::from(alpha) - k) / (k + 1.0);
                }
                let expected = moment.ln_1p() / f64::from(alpha - 1);
                let found = sided(f64::from(alpha), q, r, Direction::Away);
                assert!((found / expected - 1.0).abs() < 1e-8, "α {alpha} q {q} r {r}: {found} for {expected}");
            }
        }
    }

    #[test]
    fn order_two_of_a_binomial_mixture_agrees_with_its_double_sum() {
        // Σ over i, j of w_i·w_j·e^{ij/σ²}
        let (q, sigma) = (0.1_f64, 2.0_f64);
        let weights = binomial(6, q).0;
        let moment: f64 = weights
            .iter()
            .flat_map(|a| weights.iter().map(move |b| a.1 * b.1 * (a.0 * b.0 / (sigma * sigma)).exp()))
            .sum();
        let found = BinomialMixture::new(6, q, sigma).divergence(2.0, Direction::Away);
        assert!((found / moment.ln() - 1.0).abs() < 1e-8);
    }
}
