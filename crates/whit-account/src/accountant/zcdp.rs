//! Zero-concentrated differential privacy (Bun and Steinke 2016): the Rényi divergence of every order α is at most ρ·α.
//!
//! ρ adds up under composition, also when later runs depend on earlier outputs. An (ε, δ) run is δ-approximate
//! ε²/2-concentrated (their Lemma 8.8): its δ is set aside, and what is left of δ pays for the conversion.

use super::divergence::run_divergence_up;
use super::pair::dominating;
use super::renyi::{cks_epsilon, cks_ln_delta, lowest};
use super::{Name, Unsupported, check_delta, check_epsilon, exp_up, pure_epsilon_up, runs, word_for};
use whit_core::{Cost, Rho};

/// ρ of a pure ε: ε²/2 (Bun and Steinke, Proposition 3.3), rounded up.
pub fn pure_rho(epsilon: f64) -> f64 {
    if epsilon == 0.0 { 0.0 } else { (0.5 * epsilon * epsilon).next_up() }
}

/// ρ of Gaussian noise whose standard deviation is `noise` times the ℓ2 distance of neighbours: 1/(2·noise²), rounded up.
pub fn gaussian_rho(noise: f64) -> f64 {
    let mu = (1.0 / noise).next_up();
    (0.5 * mu * mu).next_up()
}

/// ρ and the δ to be set aside of one run.
///
/// - An ε-bounded range has ρ = ε²/8 (Cesar and Rogers 2021, Lemma 3.4).
/// - Laplace noise, continuous or discrete, is taken as pure.
/// - Subsampled Gaussian noise is taken without amplification, as Gaussian noise at the full distance, which dominates it
///   ([`Dominating::distance`](super::pair::Dominating::distance)): its divergence is not linear in α, so no ρ would do it justice.
///
/// A leaf that protects nothing has an infinite ρ.
pub fn rho(leaf: &Cost) -> Result<(f64, f64), Unsupported> {
    Ok(match leaf {
        Cost::Nothing => (0.0, 0.0),
        Cost::Everything => (f64::INFINITY, 0.0),
        Cost::Pure { epsilon } => (pure_rho(epsilon.get()), 0.0),
        Cost::Approximate { epsilon, delta } => (pure_rho(epsilon.get()), delta.get()),
        Cost::BoundedRange { epsilon } => (0.25 * pure_rho(epsilon.get()), 0.0),
        Cost::Concentrated { rho } => (rho.get(), 0.0),
        Cost::Gaussian { noise } => (gaussian_rho(*noise), 0.0),
        Cost::Laplace { scale } => (pure_rho(pure_epsilon_up(1.0, *scale)), 0.0),
        Cost::Geometric { shift, scale } => (pure_rho(pure_epsilon_up(*shift as f64, *scale)), 0.0),
        Cost::Chosen { .. } => match run_divergence_up(leaf, f64::INFINITY)? {
            f64::INFINITY => {
                let instead = "how much is lost at small orders is not bounded by any ρ; ask rdp or pld, and give budgets currency = \"renyi\"";
                return Err(Unsupported::Cost { accountant: Name::Zcdp, cost: word_for(leaf), instead });
            }
            pure => (pure_rho(pure), 0.0),
        },
        Cost::Sampled(s) if s.rate == 0.0 => (0.0, 0.0),
        Cost::Sampled(s) => (gaussian_rho((s.noise / dominating(s)?.distance()).next_down()), 0.0),
        Cost::Repeat { .. } | Cost::Series(_) => {
            let mut sum = (Rho::ZERO, 0.0);
            for (inner, times) in leaf.leaves() {
                let (rho, delta) = rho(&inner)?;
                sum.0 = sum.0.plus(Rho::new(rho)?.times(times));
                sum.1 += delta * times as f64 * (1.0 + 1e-15);
            }
            (sum.0.get(), sum.1)
        }
    })
}

/// ρ + 2√(ρ·ln(1/δ)): simple, and a bound on the loss that holds with probability 1 − δ (Bun and Steinke, Proposition 1.3).
///
/// ```
/// use whit_account::accountant::zcdp::{simple_epsilon, tight_epsilon};
/// assert!((simple_epsilon(0.1, 1e-6) - 2.450_788_000_476_8).abs() < 1e-12);
/// assert!((tight_epsilon(0.1, 1e-6) - 2.141_938_928).abs() < 1e-8);
/// ```
pub fn simple_epsilon(rho: f64, delta: f64) -> f64 {
    if rho == 0.0 { 0.0 } else { rho + 2.0 * (rho * -delta.ln()).sqrt() }
}

/// The smallest ε that Canonne, Kamath and Steinke's conversion (2020, Corollary 13) proves at δ, over all orders.
///
/// Every order gives a bound, so that what the search for the best one misses can only overstate ε.
pub fn tight_epsilon(rho: f64, delta: f64) -> f64 {
    if rho == 0.0 || delta >= 1.0 {
        return 0.0;
    }
    if delta <= 0.0 || rho == f64::INFINITY {
        return f64::INFINITY;
    }
    let guess = 1.0 + ((-delta.ln()).max(1e-3) / rho).sqrt();
    lowest(guess, |alpha| cks_epsilon(alpha, rho * alpha, delta)).1
}

/// The smallest δ that the same conversion proves at ε.
pub(crate) fn tight_delta(rho: f64, epsilon: f64) -> f64 {
    if rho == 0.0 || epsilon == f64::INFINITY {
        return 0.0;
    }
    if rho == f64::INFINITY {
        return 1.0;
    }
    let guess = 1.0 + (0.5 * (epsilon / rho - 1.0)).max(1e-3);
    exp_up(lowest(guess, |alpha| cks_ln_delta(alpha, rho * alpha, epsilon)).1).min(1.0)
}

/// The largest ρ whose tight conversion at δ is at most ε, rounded down by a hair: the budget of a filter.
pub(crate) fn rho_down(epsilon: f64, delta: f64) -> f64 {
    if delta >= 1.0 || epsilon == f64::INFINITY {
        return f64::INFINITY;
    }
    if delta <= 0.0 || epsilon <= 0.0 {
        return 0.0;
    }
    let mut fits = 1e-30;
    if tight_epsilon(fits, delta) > epsilon {
        return 0.0;
    }
    while tight_epsilon(2.0 * fits, delta) <= epsilon {
        fits *= 2.0;
    }
    let mut too_much = 2.0 * fits;
    while too_much - fits > 1e-12 * fits {
        let middle = 0.5 * (fits + too_much);
        if tight_epsilon(middle, delta) <= epsilon {
            fits = middle;
        } else {
            too_much = middle;
        }
    }
    fits
}

/// ε at δ: infinite where the δ that approximate runs set aside come to as much.
pub fn epsilon(cost: &Cost, delta: f64) -> Result<f64, Unsupported> {
    check_delta(delta)?;
    let Some(leaves) = runs(cost)? else { return Ok(f64::INFINITY) };
    let (rho, aside) = rho(cost)?;
    match leaves.first() {
        Some((leaf, _)) if delta == 0.0 && (rho > 0.0 || aside > 0.0) => {
            Err(Unsupported::NeedsDelta { accountant: Name::Zcdp, cost: word_for(leaf) })
        }
        _ if aside > delta => Ok(f64::INFINITY),
        _ => Ok(tight_epsilon(rho, delta - aside)),
    }
}

/// δ at ε.
pub fn delta(cost: &Cost, epsilon: f64) -> Result<f64, Unsupported> {
    check_epsilon(epsilon)?;
    if runs(cost)?.is_none() {
        return Ok(1.0);
    }
    let (rho, aside) = rho(cost)?;
    Ok((aside + tight_delta(rho, epsilon)).min(1.0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::normal::{gaussian_delta, gaussian_epsilon_up};
    use whit_core::{Change, Delta, Draw, Epsilon, Sampled, Sampling};

    #[test]
    fn conversions_bracket_the_exact_gaussian_from_above_in_their_order() {
        for rho in [1e-9, 1e-4, 0.01, 0.3, 5.0, 400.0] {
            for delta in [1e-12, 1e-6, 1e-3, 0.2] {
                let mu = f64::sqrt(2.0 * rho);
                let tight = tight_epsilon(rho, delta);
                assert!(tight <= simple_epsilon(rho, delta) + 1e-12, "ρ {rho} δ {delta}");
                assert!(tight >= gaussian_epsilon_up(delta, mu) * (1.0 - 1e-9), "ρ {rho} δ {delta}");
                let back = tight_delta(rho, tight);
                assert!(back <= delta * (1.0 + 1e-6), "ρ {rho} δ {delta}: {back}");
                assert!(back >= gaussian_delta(tight, mu) * (1.0 - 1e-9));
            }
        }
    }

    #[test]
    fn a_filter_budget_in_rho_never_exceeds_the_budget_in_epsilon() {
        for (epsilon, delta) in [(0.01, 1e-9), (1.0, 1e-6), (3.0, 1e-5), (100.0, 1e-3)] {
            let rho = rho_down(epsilon, delta);
            assert!(tight_epsilon(rho, delta) <= epsilon);
            assert!(tight_epsilon(rho * (1.0 + 1e-6), delta) > epsilon);
        }
    }

    #[test]
    fn sampling_is_priced_without_amplification_and_approximate_runs_set_their_delta_aside() {
        let step = Cost::Sampled(Sampled {
            noise: 4.0,
            rate: 0.01,
            sampling: Sampling::Poisson,
            draw: Draw::Unit,
            change: Change::Replace,
            difference: 2.0,
            holds: 1,
        });
        assert!((rho(&step).unwrap().0 - 0.125).abs() < 1e-12, "a replacement moves the sum by twice the clip norm");
        let approximate = Cost::Approximate { epsilon: Epsilon::new(1.0).unwrap(), delta: Delta::new(1e-6).unwrap() };
        let alone = epsilon(&Cost::Pure { epsilon: Epsilon::new(1.0).unwrap() }, 1e-6).unwrap();
        assert!((epsilon(&approximate, 2e-6).unwrap() - alone).abs() < 1e-6);
        assert_eq!(epsilon(&approximate, 1e-6).unwrap(), f64::INFINITY);
        let only_delta = Cost::Approximate { epsilon: Epsilon::ZERO, delta: Delta::new(1e-3).unwrap() };
        assert_eq!(epsilon(&only_delta, 1e-6).unwrap(), f64::INFINITY, "a ρ of 0 does not excuse a δ");
        assert_eq!(epsilon(&only_delta, 2e-3).unwrap(), 0.0);
    }
}
