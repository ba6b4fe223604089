//! Rényi divergences of every kind of run, as upper bounds: closed forms here, `quadrature` for mixtures.

use super::binomial::{BinomialParts, PartSide};
use super::choice;
use super::pair::{APART, Dominating, dominating, ln_add, ln_expm1};
use super::quadrature::{BinomialMixture, INFLATION, from_ln_excess, ln_rest};
pub use super::quadrature::{Direction, reflected, sided};
use super::{Unsupported, pure_epsilon_up};
use whit_core::Cost;

/// Above so many units that change at once the coins of a binomial mixture are revealed, which is looser: the integral takes
/// time with the square of their number.
const MOST_MIXED: u64 = 24;

/// Above this distance discrete Laplace noise is taken as pure.
const MOST_SHIFTED: u64 = 10_000;

/// ln(e^x − 1 − x), for x ≠ 0, without cancellation.
fn ln_exp_rest(x: f64) -> f64 {
    if x > 700.0 {
        return x;
    }
    if x.abs() > 0.5 {
        return (x.exp_m1() - x).ln();
    }
    let (mut sum, mut term, mut k) = (0.0, 0.5, 2.0);
    while sum + term != sum {
        sum += term;
        k += 1.0;
        term *= x / k;
    }
    2.0 * x.abs().ln() + sum.ln()
}

/// D_α of a pure ε: that of randomised response, ln((e^{αε} + e^{(1−α)ε})/(1+e^ε))/(α−1), the most that ε allows.
pub fn pure(alpha: f64, epsilon: f64) -> f64 {
    if epsilon == 0.0 || epsilon == f64::INFINITY || alpha == f64::INFINITY {
        return epsilon;
    }
    // The excess factors into (e^{(α−1)ε} − 1)·(1 − e^{−αε})/(1 + e^{−ε}).
    let grown = (alpha - 1.0) * epsilon;
    let ln_grown = if grown > 40.0 { grown } else { grown.exp_m1().ln() };
    let ln_excess = ln_grown + (-(-alpha * epsilon).exp_m1()).ln() - (-epsilon).exp().ln_1p();
    from_ln_excess(ln_excess, alpha).min(epsilon)
}

/// D_α of an ε-bounded range: the lesser of αε²/8 (Cesar and Rogers 2021) and the exact supremum over where the range lies.
///
/// With losses in [−t, ε−t] the moment is at most e^{−αt}(1 + (e^t−1)·K), K = (e^{αε}−1)/(e^ε−1), by convexity; it is
/// largest at e^t = α(K−1)/((α−1)K).
pub(crate) fn bounded_range(alpha: f64, epsilon: f64) -> f64 {
    if epsilon == 0.0 || alpha == f64::INFINITY {
        return epsilon;
    }
    let quadratic = alpha * epsilon * epsilon / 8.0 * (1.0 + 4.0 * f64::EPSILON);
    if alpha * epsilon < 0.1 {
        return quadratic;
    }
    let ln_k = ln_expm1(alpha * epsilon) - ln_expm1(epsilon);
    let ln_less = ln_expm1(ln_k); // ln(K − 1)
    let t = (alpha / (alpha - 1.0)).ln() + ln_less - ln_k;
    let ln_moment = -alpha * t + ln_less - (alpha - 1.0).ln();
    let exact = ln_moment / (alpha - 1.0) + 1e-13 * (1.0 + epsilon) * alpha / (alpha - 1.0).min(1.0);
    quadratic.min(exact).min(epsilon)
}

/// D_α of Gaussian noise at distance μ: αμ²/2 (Mironov 2017, Proposition 7).
pub fn gaussian(alpha: f64, mu: f64) -> f64 {
    if mu == 0.0 { 0.0 } else { 0.5 * alpha * mu * mu * (1.0 + 4.0 * f64::EPSILON) }
}

/// D_α of Laplace noise with `scale` times the distance of neighbours (Mironov 2017, Table II):
/// ln(α/(2α−1)·e^{(α−1)/scale} + (α−1)/(2α−1)·e^{−α/scale})/(α−1), its linear terms taken out before they cancel.
///
/// ```
/// use whit_account::accountant::divergence::laplace;
/// assert!((laplace(2.0, 1.0) - 0.619_123_629_998_592_8).abs() < 1e-14);
/// ```
pub fn laplace(alpha: f64, scale: f64) -> f64 {
    let epsilon = pure_epsilon_up(1.0, scale);
    if alpha == f64::INFINITY || epsilon == 0.0 {
        return epsilon;
    }
    let up = alpha.ln() + ln_exp_rest((alpha - 1.0) * epsilon);
    let down = (alpha - 1.0).ln() + ln_exp_rest(-alpha * epsilon);
    from_ln_excess(ln_add(up, down) - (2.0 * alpha - 1.0).ln() + 1e-14, alpha).min(epsilon)
}

/// D_α of discrete Laplace noise of the given scale, at a whole distance: a sum over its at most `shift` + 1 losses.
pub fn geometric(alpha: f64, shift: u64, scale: f64) -> f64 {
    let epsilon = pure_epsilon_up(shift as f64, scale);
    if shift > MOST_SHIFTED || alpha == f64::INFINITY || epsilon == 0.0 {
        return pure(alpha, epsilon);
    }
    let ln_a = -1.0 / scale;
    let ln_norm = -ln_a.exp().ln_1p(); // of 1/(1+a)
    let ln_point = ln_norm + (-ln_a.exp_m1()).ln(); // of (1−a)/(1+a)
    let rest = |loss: f64| ln_rest(alpha, loss.exp_m1(), loss);
    // Masses of the law at `shift`: a^shift/(1+a) at or below 0, where the loss is ε, 1/(1+a) at or above `shift`.
    let mut ln_excess = ln_add(ln_norm - epsilon + rest(epsilon), ln_norm + rest(-epsilon));
    for k in 1..shift {
        let away = (shift - k) as f64;
        ln_excess = ln_add(ln_excess, ln_point + away * ln_a + rest((shift as f64 - 2.0 * k as f64) / scale));
    }
    from_ln_excess(ln_excess + 1e-12, alpha).min(pure(alpha, epsilon))
}

/// A bound on D_α for a draw of whole users with any number of other elements: the coin is revealed, so that
/// D ≤ ln(1 − q + q·exp(α(α−1)μ²/2))/(α−1), μ = apart/σ (erratum E1).
pub fn any_elements(alpha: f64, rate: f64, mu: f64) -> f64 {
    if rate == 0.0 || mu == 0.0 {
        return 0.0;
    }
    from_ln_excess(rate.ln() + ln_expm1(0.5 * alpha * (alpha - 1.0) * mu * mu) + 1e-15, alpha)
}

/// Up to this order a sum is cheaper than an integral.
const LARGEST_SUM: f64 = 1024.0;

/// D_α of (1−q)N(0) + qN(r) against N(0) for a whole α, in closed form (Mironov, Talwar, Zhang 2019, §3.3): exp((α−1)D) is
/// Σ over j of binom(α, j)·(1−q)^(α−j)·q^j·exp(j(j−1)r²/2). Without the exponential the terms add up to 1, so
/// what is above 1 is the same sum with exp(…) − 1: positive terms, of which the first two vanish.
fn whole_order(alpha: f64, q: f64, r: f64) -> f64 {
    let (undrawn, odds) = ((-q).ln_1p(), q.ln() - (-q).ln_1p());
    let mut ln_weight = alpha * undrawn;
    let mut ln_excess = f64::NEG_INFINITY;
    for j in 1..=alpha as u32 {
        let j = f64::from(j);
        ln_weight += ((alpha - j + 1.0) / j).ln() + odds;
        if j > 1.0 {
            ln_excess = ln_add(ln_excess, ln_weight + ln_expm1(0.5 * j * (j - 1.0) * r * r));
        }
    }
    // Every term carries the rounding of up to 3α logarithms, none of which is larger than the first weight's.
    from_ln_excess(ln_excess + INFLATION + 2.0 * f64::EPSILON * alpha * alpha * undrawn.abs().max(odds.abs()), alpha)
}

/// D_α of the pair that dominates one step, the worse of its directions; an upper bound, a little above the integral.
pub fn step(alpha: f64, pair: &Dominating, rate: f64, sigma: f64) -> f64 {
    if rate <= 0.0 {
        return 0.0;
    }
    if alpha == f64::INFINITY {
        return f64::INFINITY;
    }
    let revealed = |holds: u64, difference: f64| {
        let drawn = BinomialParts::of(holds, rate, PartSide::Up);
        // What is left out of the law counts as if all were drawn: at high orders the rarest case may weigh most.
        let rest = (holds as f64 * (1.0 + f64::EPSILON), drawn.missing);
        let ln_excess = drawn
            .weighted
            .into_iter()
            .chain([rest])
            .filter(|&(j, weight)| j > 0.0 && weight > 0.0)
            .map(|(j, weight)| {
                let mu = difference * j / sigma;
                weight.ln() + ln_expm1(0.5 * alpha * (alpha - 1.0) * mu * mu)
            })
            .fold(f64::NEG_INFINITY, ln_add);
        from_ln_excess(ln_excess + INFLATION, alpha)
    };
    // Gaussian noise at the full distance dominates every pair, so it is never worth reporting more.
    let most = gaussian(alpha, pair.distance() / sigma);
    if rate >= 1.0 {
        return most;
    }
    let found = match *pair {
        // With means so far away the coin shows: the integral would find nothing else.
        Dominating::Reflected { reach, apart } if (reach - apart) / sigma >= APART => {
            any_elements(alpha, rate, (apart / sigma).next_up())
        }
        Dominating::Sided { reach } if alpha.fract() != 0.0 && reach / sigma >= APART => {
            any_elements(alpha, rate, (reach / sigma).next_up())
        }
        // D(P‖N(0)) is the larger direction (Mironov, Talwar, Zhang 2019, Theorem 5); a test compares the two.
        Dominating::Sided { reach } if alpha.fract() == 0.0 && alpha <= LARGEST_SUM => {
            whole_order(alpha, rate, reach / sigma)
        }
        Dominating::Sided { reach } => sided(alpha, rate, reach / sigma, Direction::Away),
        Dominating::Reflected { reach, apart } => reflected(alpha, rate, reach / sigma, apart / sigma),
        Dominating::Binomial { holds } if holds > MOST_MIXED => revealed(holds, 1.0),
        Dominating::Binomial { holds } => {
            let mixture = BinomialMixture::new(holds, rate, sigma);
            let directions =
                [Direction::Away, Direction::Towards].map(|direction| mixture.divergence(alpha, direction));
            if directions[0] < directions[1] { directions[1] } else { directions[0] + 0.0 * directions[1] } // keeps a NaN
        }
        Dominating::Revealed { holds } => revealed(holds, 2.0),
    };
    if found.is_nan() { most } else { found.min(most) }
}

/// Whether a δ would have to be set aside for some run. How often that is, among runs of which nobody knows the number, is not known.
fn sets_aside(cost: &Cost) -> bool {
    cost.leaves().iter().any(|(leaf, _)| match leaf {
        Cost::Approximate { delta, .. } => delta.get() > 0.0,
        Cost::Chosen { candidates, .. } => candidates.iter().any(sets_aside),
        Cost::Nothing
        | Cost::Everything
        | Cost::Pure { .. }
        | Cost::Concentrated { .. }
        | Cost::Gaussian { .. }
        | Cost::Laplace { .. }
        | Cost::Geometric { .. }
        | Cost::BoundedRange { .. }
        | Cost::Sampled(_)
        | Cost::Repeat { .. }
        | Cost::Series(_) => false,
    })
}

/// D_α of one run of a leaf, an upper bound; for `Approximate` of the part that is left when its δ is set aside.
/// At infinite order the pure ε, or infinity.
pub(crate) fn run_divergence_up(leaf: &Cost, alpha: f64) -> Result<f64, Unsupported> {
    Ok(match leaf {
        Cost::Nothing => 0.0,
        Cost::Everything => f64::INFINITY,
        Cost::Pure { epsilon } | Cost::Approximate { epsilon, .. } => pure(alpha, epsilon.get()),
        Cost::BoundedRange { epsilon } => bounded_range(alpha, epsilon.get()),
        Cost::Concentrated { rho } if rho.get() == 0.0 => 0.0,
        Cost::Concentrated { rho } => (rho.get() * alpha).next_up(),
        Cost::Gaussian { noise } => gaussian(alpha, (1.0 / noise).next_up()),
        Cost::Laplace { scale } => laplace(alpha, *scale),
        Cost::Geometric { shift, scale } => geometric(alpha, *shift, *scale),
        Cost::Sampled(s) => step(alpha, &dominating(s)?, s.rate, s.noise),
        Cost::Chosen { candidates, .. } if candidates.iter().any(sets_aside) => f64::INFINITY,
        Cost::Chosen { candidates, law } => {
            for candidate in candidates {
                run_divergence_up(candidate, alpha)?; // so that what has no price is said
            }
            let one = |candidate: &Cost, order| run_divergence_up(candidate, order).unwrap_or(f64::INFINITY);
            choice::divergence_up(law, alpha, |order| {
                candidates.iter().map(|candidate| one(candidate, order)).fold(0.0, f64::max)
            })
        }
        Cost::Repeat { .. } | Cost::Series(_) => {
            let mut sum = 0.0;
            for (inner, times) in leaf.leaves() {
                sum += run_divergence_up(&inner, alpha)? * times as f64 * (1.0 + f64::EPSILON);
            }
            sum
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_whole_order_is_a_sum_and_an_integral() {
        for (alpha, q, r) in
            [(2.0, 0.01, 1.0), (3.0, 1e-9, 5.0), (17.0, 0.3, 0.25), (256.0, 1e-3, 0.3), (64.0, 0.999, 2.0)]
        {
            let (sum, integral) = (whole_order(alpha, q, r), sided(alpha, q, r, Direction::Away));
            assert!((sum / integral - 1.0).abs() < 1e-8, "α = {alpha}, q = {q}, r = {r}: {sum} and {integral}");
        }
    }

    #[test]
    fn a_binomial_mixture_of_one_is_the_plain_step_and_stays_below_the_revealed_one() {
        for (alpha, q, sigma) in [(1.5, 0.01, 1.0), (8.0, 0.2, 2.0), (40.0, 1e-3, 1.0), (3.0, 0.9, 0.5)] {
            let one = BinomialMixture::new(1, q, sigma);
            for direction in [Direction::Away, Direction::Towards] {
                let plain = sided(alpha, q, 1.0 / sigma, direction);
                assert!((one.divergence(alpha, direction) / plain - 1.0).abs() < 1e-8);
            }
            let several = step(alpha, &Dominating::Binomial { holds: 6 }, q, sigma);
            // Contributions that are 2 apart under twice the noise are 1 apart under the noise itself.
            let shown = step(alpha, &Dominating::Revealed { holds: 6 }, q, 2.0 * sigma);
            assert!(
                several <= shown * (1.0 + 1e-8) && several >= step(alpha, &Dominating::Binomial { holds: 5 }, q, sigma)
            );
        }
    }

    #[test]
    fn closed_forms_are_what_their_definitions_sum_to() {
        for alpha in [1.01, 1.5, 2.0, 7.0, 60.0] {
            for epsilon in [1e-6, 0.01, 0.5, 3.0, 40.0_f64] {
                // Randomised response, as a two-point sum of h
                let (p, lie) = (1.0 / (1.0 + (-epsilon).exp()), 1.0 / (1.0 + epsilon.exp()));
                let sum = ln_add(
                    lie.ln() + ln_rest(alpha, epsilon.exp_m1(), epsilon),
                    p.ln() + ln_rest(alpha, (-epsilon).exp_m1(), -epsilon),
                );
                let direct = from_ln_excess(sum, alpha);
                assert!((pure(alpha, epsilon) / direct - 1.0).abs() < 1e-11, "α {alpha} ε {epsilon}");
                assert!(
                    pure(alpha, epsilon) <= epsilon
                        && laplace(alpha, 1.0 / epsilon) <= pure(alpha, epsilon) * (1.0 + 1e-9)
                );
                // Every place of a bounded range stays below its bound, and randomised response is one of them.
                for place in [0.1, 0.3, 0.5, 0.7, 0.9] {
                    let t = place * epsilon;
                    let q = t.exp_m1() / epsilon.exp_m1();
                    let sum = ln_add(
                        q.ln() + ln_rest(alpha, (epsilon - t).exp_m1(), epsilon - t),
                        (1.0 - q).ln() + ln_rest(alpha, (-t).exp_m1(), -t),
                    );
                    let found = from_ln_excess(sum, alpha);
                    assert!(found <= bounded_range(alpha, epsilon) * (1.0 + 1e-9), "α {alpha} ε {epsilon} at {place}");
                }
                assert!(
                    bounded_range(alpha, epsilon) <= (0.125 * alpha * epsilon * epsilon).min(epsilon) * (1.0 + 1e-9)
                );
                // Discrete Laplace noise of a shift of 1 is randomised response; of many small steps, Laplace noise.
                assert!(
                    (geometric(alpha, 1, 1.0 / epsilon) / pure(alpha, epsilon) - 1.0).abs() < 1e-9,
                    "α {alpha} ε {epsilon}"
                );
                let fine = geometric(alpha, 2000, 2000.0 / epsilon);
                assert!((fine / laplace(alpha, 1.0 / epsilon) - 1.0).abs() < 1e-3, "α {alpha} ε {epsilon}: {fine}");
            }
        }
    }

    #[test]
    fn no_rate_noise_or_order_gives_a_nan_and_more_is_never_less() {
        let pairs = [
            Dominating::Sided { reach: 1.0 },
            Dominating::Sided { reach: 1000.0 },
            Dominating::Reflected { reach: 1.0, apart: 2.0 },
            Dominating::Reflected { reach: 1000.0, apart: 2.0 },
            Dominating::Reflected { reach: 1.0, apart: 0.001 },
            Dominating::Binomial { holds: 5 },
            Dominating::Revealed { holds: 1000 },
        ];
        for pair in &pairs {
            for sigma in [0.2, 1.0, 30.0, 1000.0] {
                for rate in [1e-9, 1e-5, 0.01, 0.5, 0.999, 1.0] {
                    let mut before = 0.0;
                    for alpha in [1.0 + 1e-6, 1.1, 2.0, 17.3, 400.0, 1e5, 1e9] {
                        let found = step(alpha, pair, rate, sigma);
                        assert!(found.is_finite() && found > 0.0, "{pair:?} q {rate} σ {sigma} α {alpha}: {found}");
                        assert!(
                            found >= before * (1.0 - 1e-8),
                            "{pair:?} q {rate} σ {sigma} α {alpha}: {found} after {before}"
                        );
                        before = found;
                    }
                }
            }
        }
    }
}
