//! Gaussian differential privacy (Dong, Roth, Su 2022): no easier to tell apart than N(0, 1) and N(μ, 1).
//!
//! μ of Gaussian noise is exact, squares of μ add up, and the profile of what comes out is exact again. A central-limit
//! theorem gives a μ for many small steps; it is an approximation that may understate, so [`Clt`] is a type of its own.

use super::divergence::run_divergence_up;
use super::pair::{Dominating, dominating};
use super::{Name, Unsupported, check_delta, check_epsilon, exp_up, pure_epsilon_up, runs, word_for};
use crate::normal::{
    cdf, gaussian_delta, gaussian_epsilon_up, ln_gaussian_delta, upper_quantile, upper_quantile_ln, upper_tail,
};
use whit_core::{Cost, Sampled};

/// μ of a pure ε: −2Φ⁻¹(1/(1+e^ε)), rounded up by a hair.
///
/// # Why
/// The trade-off curve of ε is made of two straight lines that meet where both errors are 1/(1+e^ε). The curve of
/// μ is convex and passes through the same three corners, so it is nowhere above.
pub fn pure_mu(epsilon: f64) -> f64 {
    if epsilon == 0.0 {
        return 0.0;
    }
    if epsilon == f64::INFINITY {
        return f64::INFINITY;
    }
    // Near ε = 0 the quantile of ½ − tanh(ε/2)/2 keeps its relative accuracy only if the difference is formed first.
    let z = if epsilon < 1.0 {
        upper_quantile(0.5 - 0.5 * (0.5 * epsilon).tanh())
    } else {
        upper_quantile_ln(-(epsilon + (-epsilon).exp().ln_1p()))
    };
    // Below 1e-3 the subtraction from ½ costs digits; ε·√(2π)/2 is an upper bound there, since z is concave in ε.
    let linear = 0.5 * epsilon * 1.253_314_137_315_500_3;
    2.0 * if epsilon < 1e-3 { linear } else { z.min(linear) } * (1.0 + 1e-12)
}

/// μ of several μ, one after the other: the root of the sum of squares, rounded up.
///
/// ```
/// use whit_account::accountant::gdp::compose;
/// assert!((compose([0.5, 0.3, 1.2]) - 1.334_166_406_412_633_3).abs() < 1e-12);
/// ```
pub fn compose(mus: impl IntoIterator<Item = f64>) -> f64 {
    let squares =
        mus.into_iter().filter(|&mu| mu > 0.0).fold(0.0, |sum: f64, mu| (sum + (mu * mu).next_up()).next_up());
    if squares == 0.0 { 0.0 } else { squares.sqrt().next_up() }
}

/// μ for a group of k units: k·μ (Dong, Roth, Su, Theorem 2.14).
pub fn group(mu: f64, k: u64) -> f64 {
    mu * k as f64
}

/// μ of one run.
///
/// - An ε-bounded range: for losses in [−t, ε−t] the two kinds of error are at worst s(v) and 1 − s(v+ε) for a v that t
///   fixes, s being the logistic function. Φ⁻¹(s(v+ε)) − Φ⁻¹(s(v)) is largest when centred, because the slope of
///   Φ⁻¹∘s falls away from 0 on both sides; there it is the μ of a pure ε/2.
/// - Laplace noise, continuous or discrete, is taken as pure.
/// - Subsampled Gaussian noise is taken without amplification, as Gaussian noise at the full distance, which dominates it.
pub fn mu(leaf: &Cost) -> Result<f64, Unsupported> {
    let unsupported = |instead| Unsupported::Cost { accountant: Name::Gdp, cost: word_for(leaf), instead };
    Ok(match leaf {
        Cost::Nothing => 0.0,
        Cost::Everything => f64::INFINITY,
        Cost::Pure { epsilon } => pure_mu(epsilon.get()),
        Cost::BoundedRange { epsilon } => pure_mu(0.5 * epsilon.get()),
        Cost::Approximate { epsilon, delta } if delta.get() == 0.0 => pure_mu(epsilon.get()),
        Cost::Approximate { .. } => {
            return Err(unsupported("no μ covers a δ that was already given; ask pld, rdp, advanced or basic"));
        }
        Cost::Concentrated { .. } => {
            return Err(unsupported("a ρ alone does not bound the trade-off curve; ask zcdp or rdp"));
        }
        Cost::Gaussian { noise } => (1.0 / noise).next_up(),
        Cost::Laplace { scale } => pure_mu(pure_epsilon_up(1.0, *scale)),
        Cost::Geometric { shift, scale } => pure_mu(pure_epsilon_up(*shift as f64, *scale)),
        Cost::Chosen { .. } => match run_divergence_up(leaf, f64::INFINITY)? {
            f64::INFINITY => {
                return Err(unsupported(
                    "no trade-off curve is known for it; ask rdp or pld, and give budgets currency = \"renyi\"",
                ));
            }
            pure => pure_mu(pure),
        },
        Cost::Sampled(s) if s.rate == 0.0 => 0.0,
        Cost::Sampled(s) => (dominating(s)?.distance() / s.noise).next_up(),
        Cost::Repeat { .. } | Cost::Series(_) => {
            let mut squares = 0.0;
            for (inner, times) in leaf.leaves() {
                let mu = mu(&inner)?;
                squares += mu * mu * times as f64;
            }
            if squares == 0.0 { 0.0 } else { squares.sqrt() * (1.0 + 1e-14 * (1.0 + leaf.leaves().len() as f64)) }
        }
    })
}

/// ε at δ.
pub fn epsilon(cost: &Cost, delta: f64) -> Result<f64, Unsupported> {
    check_delta(delta)?;
    let Some(leaves) = runs(cost)? else { return Ok(f64::INFINITY) };
    let mu = mu(cost)?;
    match leaves.first() {
        Some((leaf, _)) if delta == 0.0 && mu > 0.0 => {
            Err(Unsupported::NeedsDelta { accountant: Name::Gdp, cost: word_for(leaf) })
        }
        _ => Ok(gaussian_epsilon_up(delta, mu)),
    }
}

/// ε at δ where runs bring a δ of their own along: that is taken away first, and their ε is pure then, since all of it holds but with that probability.
pub fn epsilon_with_deltas_aside(cost: &Cost, delta: f64) -> Result<f64, Unsupported> {
    check_delta(delta)?;
    let (mut aside, mut rest) = (0.0, Vec::new());
    for (leaf, times) in cost.leaves() {
        rest.push(match leaf {
            Cost::Approximate { epsilon, delta } => {
                aside += delta.get() * times as f64 * (1.0 + 1e-12);
                Cost::Pure { epsilon }.repeat(times)
            }
            other => other.repeat(times),
        });
    }
    let left = (delta - aside) * (1.0 - 1e-12);
    if left <= 0.0 {
        return Ok(f64::INFINITY);
    }
    epsilon(&Cost::Series(rest), left)
}

/// δ at ε.
pub fn delta(cost: &Cost, epsilon: f64) -> Result<f64, Unsupported> {
    check_epsilon(epsilon)?;
    if runs(cost)?.is_none() {
        return Ok(1.0);
    }
    // The profile is accurate to 1e-12 relative; the factor keeps it an upper bound, also where it is hardly a number.
    let (mu, ln) = (mu(cost)?, |mu| exp_up(ln_gaussian_delta(epsilon, mu)));
    Ok((gaussian_delta(epsilon, mu).max(ln(mu)) * (1.0 + 1e-11)).min(1.0))
}

/// What a central-limit theorem says of many small steps. **An approximation: it may understate the loss**, so no
/// accountant reports it and nothing is ever charged by it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Clt {
    /// The μ to which the composition tends.
    pub mu: f64,
}

impl Clt {
    /// ε at δ if the limit were reached. Not a guarantee.
    pub fn approximate_epsilon(&self, delta: f64) -> f64 {
        gaussian_epsilon_up(delta, self.mu)
    }

    /// The limit for batches of fixed size as Bu, Dong, Long and Su (2020) give it, for sensitivity 1 and a symmetrised
    /// curve: √2·q·√T·√(e^{1/σ²}·Φ(1.5/σ) + 3Φ(−0.5/σ) − 2). It is here to be compared with; it prices no relation of this crate.
    pub fn uniform_sampling(rate: f64, sigma: f64, steps: u64) -> Self {
        let r = 1.0 / sigma;
        let chi = (r * r).exp() * cdf(1.5 * r) + 3.0 * upper_tail(0.5 * r) - 2.0;
        Self { mu: rate * (2.0 * steps as f64 * chi).sqrt() }
    }
}

/// The central-limit approximation of a cost that is made of Gaussian noise and Poisson-like steps only.
///
/// A step of the pair (0; r, b) adds q²·E[(e^{rx−r²/2} − e^{bx−b²/2})²] = q²(e^{r²} − 2e^{rb} + e^{b²}) to μ², x standard normal
/// and r, b in units of σ.
pub fn clt(cost: &Cost) -> Option<Clt> {
    let mut squares = 0.0;
    for (leaf, times) in cost.leaves() {
        let square = match &leaf {
            Cost::Gaussian { noise } => 1.0 / (noise * noise),
            Cost::Sampled(s) => step_square(s)?,
            Cost::Nothing
            | Cost::Everything
            | Cost::Pure { .. }
            | Cost::Approximate { .. }
            | Cost::Concentrated { .. }
            | Cost::Laplace { .. }
            | Cost::Geometric { .. }
            | Cost::BoundedRange { .. }
            | Cost::Chosen { .. }
            | Cost::Repeat { .. }
            | Cost::Series(_) => return None,
        };
        squares += square * times as f64;
    }
    Some(Clt { mu: squares.sqrt() })
}

fn step_square(s: &Sampled) -> Option<f64> {
    let (r, b) = match dominating(s).ok()? {
        Dominating::Sided { reach } => (reach / s.noise, 0.0),
        Dominating::Reflected { reach, apart } => (reach / s.noise, (reach - apart) / s.noise),
        Dominating::Binomial { .. } | Dominating::Revealed { .. } => return None,
    };
    // e^{r²} − 2e^{rb} + e^{b²}, without the cancellation of the three ones
    Some(s.rate * s.rate * ((r * r).exp_m1() - 2.0 * (r * b).exp_m1() + (b * b).exp_m1()))
}

/// The trade-off curve of (ε, δ): the least false-negative rate of any test whose false-positive rate is `alpha`.
///
/// ```
/// use whit_account::accountant::gdp::{approximate_curve, gaussian_curve};
/// assert_eq!(approximate_curve(0.0, 0.0, 0.3), 0.7); // nothing learnt: guessing
/// assert!((gaussian_curve(1.0, 0.05) - 0.7405).abs() < 1e-4);
/// ```
pub fn approximate_curve(epsilon: f64, delta: f64, alpha: f64) -> f64 {
    let steep = 1.0 - delta - epsilon.exp() * alpha;
    let flat = (-epsilon).exp() * (1.0 - delta - alpha);
    steep.max(flat).max(0.0)
}

/// The trade-off curve of μ: Φ(Φ⁻¹(1 − α) − μ).
pub fn gaussian_curve(mu: f64, alpha: f64) -> f64 {
    cdf(upper_quantile(alpha) - mu)
}

#[cfg(test)]
mod tests {
    use super::*;
    use whit_core::{Change, Delta, Draw, Epsilon, Rho, Sampling};

    #[test]
    fn the_curve_of_mu_is_nowhere_above_that_of_epsilon() {
        for epsilon in [1e-8, 1e-3, 0.1, 1.0, 5.0, 30.0] {
            let mu = pure_mu(epsilon);
            for k in 0..=1000 {
                let alpha = f64::from(k) / 1000.0;
                let (exact, bound) = (approximate_curve(epsilon, 0.0, alpha), gaussian_curve(mu, alpha));
                assert!(bound <= exact + 1e-14, "ε {epsilon} α {alpha}: {bound} above {exact}");
            }
            // and it touches where the two errors are equal, so no smaller μ would do
            let corner = 1.0 / (1.0 + epsilon.exp());
            assert!((gaussian_curve(mu, corner) / corner - 1.0).abs() < 1e-9 * (1.0 + epsilon), "ε {epsilon}");
        }
    }

    #[test]
    fn a_bounded_range_is_worst_when_it_is_centred() {
        for epsilon in [0.01, 0.5, 2.0, 8.0_f64] {
            let mu = pure_mu(0.5 * epsilon);
            for k in 1..200 {
                let t = epsilon * f64::from(k) / 200.0;
                let wrong = t.exp_m1() / epsilon.exp_m1(); // mass under Q of the outcome with loss ε − t
                let right = wrong * (epsilon - t).exp();
                let needed = upper_quantile(wrong) - upper_quantile(right);
                assert!(needed <= mu * (1.0 + 1e-9), "ε {epsilon} t {t}: {needed} above {mu}");
            }
        }
    }

    #[test]
    fn gaussian_runs_compose_exactly() {
        let cost = Cost::Series(vec![Cost::Gaussian { noise: 5.0 }.repeat(16), Cost::Gaussian { noise: 5.0 / 3.0 }]);
        let found = epsilon(&cost, 1e-5).unwrap(); // μ² = 16/25 + 9/25
        assert!((4.377_178_095_681_224_5..4.377_178_096).contains(&found), "{found}");
    }

    #[test]
    fn what_has_no_mu_is_refused_in_a_sentence() {
        let approximate = Cost::Approximate { epsilon: Epsilon::new(1.0).unwrap(), delta: Delta::new(1e-9).unwrap() };
        let refused = epsilon(&approximate, 1e-6).unwrap_err().to_string();
        assert!(refused.starts_with("the gdp accountant cannot price approximate (ε, δ):"), "{refused}");
        assert!(delta(&Cost::Concentrated { rho: Rho::new(0.1).unwrap() }, 1.0).is_err());
    }

    #[test]
    fn the_central_limit_may_understate_and_says_so_by_its_type() {
        let step = Sampled {
            noise: 1.0,
            rate: 0.01,
            sampling: Sampling::Poisson,
            draw: Draw::Unit,
            change: Change::AddRemove,
            difference: 2.0,
            holds: 1,
        };
        let cost = Cost::Sampled(step).repeat(1000);
        // The exact ε at δ = 1e-5 is at least 1.82822; the limit says 1.6177.
        assert!(clt(&cost).unwrap().approximate_epsilon(1e-5) < 1.6178);
        assert!(epsilon(&cost, 1e-5).unwrap() > 1.8282, "the accountant itself ignores the rate");
        assert_eq!(clt(&Cost::Everything), None);
    }
}
