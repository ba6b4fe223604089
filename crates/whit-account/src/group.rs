//! What an (ε, δ) for one unit means for k of them, and for one that is drawn with probability q.
//!
//! Both are rules on (ε, δ) alone. Where the mechanism is known, [`group`](fn@group) rewrites its [`Cost`] instead, which is
//! exact for noise of a known shape; subsampled steps carry their own `holds` and `rate`.

use crate::accountant::Unsupported;
use whit_core::{Cost, Delta, Epsilon, Rho};

/// (kε, k·e^{(k−1)ε}·δ): the usual statement of group privacy (Dwork and Roth 2014, Theorem 2.2 and its kin).
pub fn loose(epsilon: f64, delta: f64, k: u64) -> (f64, f64) {
    if k == 0 {
        return (0.0, 0.0);
    }
    let k = k as f64;
    let grown = if delta == 0.0 { 0.0 } else { k * ((k - 1.0) * epsilon).exp() * delta };
    (k * epsilon, grown)
}

/// (kε, δ·(e^{kε}−1)/(e^ε−1)): the sum Σ e^{jε}·δ that the proof gives before it is rounded up to [`loose`].
///
/// Walking through k neighbours, P₀(S) ≤ e^ε·P₁(S) + δ ≤ e^ε(e^ε·P₂(S) + δ) + δ ≤ …
/// ```
/// use whit_account::group::{loose, tight};
/// let (epsilon, delta) = tight(1.0, 1e-8, 5);
/// assert!(epsilon == 5.0 && (delta - 8.579_102_488_372_16e-7).abs() < 1e-18);
/// assert!(delta < loose(1.0, 1e-8, 5).1);
/// ```
pub fn tight(epsilon: f64, delta: f64, k: u64) -> (f64, f64) {
    let all = k as f64 * epsilon;
    let grown = if delta == 0.0 || k == 0 {
        0.0
    } else if epsilon == 0.0 {
        k as f64 * delta
    } else {
        delta * all.exp_m1() / epsilon.exp_m1()
    };
    (all, grown)
}

/// (ln(1 + q(e^ε−1)), q·δ): amplification where the drawn thing is the unit itself.
///
/// # Claim
/// Valid for add-remove with Poisson sampling, and for replace with a fixed-size batch without replacement, if the mechanism
/// is private for that same unit and change (Balle, Barthe, Gaboardi 2018, Theorems 8 and 9). **Not** valid where whole
/// users are drawn and one element changes (erratum E2), nor for replace with Poisson sampling: then only
/// [`amplified_delta_only`] is.
///
/// The rule of thumb (2qε, qδ) fails for ε above 1.2564 (erratum T2).
/// ```
/// use whit_account::group::amplified;
/// let (epsilon, delta) = amplified(2.0, 1e-5, 0.1);
/// assert!((epsilon - 0.494_028_708_044_178_75).abs() < 1e-14 && (delta - 1e-6).abs() < 1e-18);
/// ```
pub fn amplified(epsilon: f64, delta: f64, rate: f64) -> (f64, f64) {
    let amplified = if epsilon < 600.0 { (rate * epsilon.exp_m1()).ln_1p() } else { epsilon + rate.ln() };
    (amplified.max(0.0), rate * delta)
}

/// (ε, q·δ): all that sampling gives in general when the drawn thing is not the unit (erratum E2).
///
/// # Why
/// Reveal the coin. If the user was not drawn the two laws are equal; if drawn, they are (ε, δ) apart.
pub fn amplified_delta_only(epsilon: f64, delta: f64, rate: f64) -> (f64, f64) {
    (epsilon, rate * delta)
}

/// The cost of the same runs for k units that change together, of which the cost for one is known.
///
/// Noise is read as being k times closer, since k neighbours in a row move the statistic k times as far; ρ grows with k² and an
/// (ε, δ) as in [`tight`]. Subsampled steps are refused: how several units share their coins is what
/// [`Sampled::holds`](whit_core::Sampled) says, so ask for the cost at that rung.
pub fn group(cost: &Cost, k: u64) -> Result<Cost, Unsupported> {
    let times = |epsilon: Epsilon| epsilon.times(k);
    if k == 0 {
        return Ok(Cost::Nothing);
    }
    Ok(match cost {
        Cost::Nothing => Cost::Nothing,
        Cost::Everything => Cost::Everything,
        Cost::Pure { epsilon } => Cost::Pure { epsilon: times(*epsilon) },
        Cost::BoundedRange { epsilon } => Cost::BoundedRange { epsilon: times(*epsilon) },
        Cost::Approximate { epsilon, delta } => {
            let grown = tight(epsilon.get(), delta.get(), k).1 * (1.0 + 1e-14);
            Cost::Approximate { epsilon: times(*epsilon), delta: Delta::new(grown.min(1.0))? }
        }
        Cost::Concentrated { rho } => Cost::Concentrated { rho: Rho::times(rho.times(k), k) },
        Cost::Gaussian { noise } => Cost::Gaussian { noise: (noise / k as f64).next_down() },
        Cost::Laplace { scale } => Cost::Laplace { scale: (scale / k as f64).next_down() },
        Cost::Geometric { shift, scale } => Cost::Geometric { shift: shift.saturating_mul(k), scale: *scale },
        Cost::Sampled(_) if k == 1 => cost.clone(),
        Cost::Sampled(_) => {
            return Err(Unsupported::Drawing {
                sampling: "a group of units whose sampled cost is known for one of them only",
                instead: "state the cost at the coarser rung, with `holds` set to the group's size",
            });
        }
        Cost::Chosen { candidates, law } => Cost::Chosen {
            candidates: candidates.iter().map(|cost| group(cost, k)).collect::<Result<_, _>>()?,
            law: *law,
        },
        Cost::Repeat { times, cost } => group(cost, k)?.repeat(*times),
        Cost::Series(costs) => Cost::Series(costs.iter().map(|cost| group(cost, k)).collect::<Result<_, _>>()?),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::accountant::{Name, epsilon};

    /// The largest log-ratio of M = sum of a user's elements in [−1, 1] + Laplace(2/ε), the user drawn with probability q and having
    /// `elements` of them at 1, one of which becomes −1. Beyond the larger sum the ratio no longer changes and is largest.
    fn sup_log_ratio(epsilon: f64, rate: f64, elements: f64) -> f64 {
        let mixture = |mean: f64| (rate * (0.5 * epsilon * mean).exp_m1()).ln_1p();
        mixture(elements) - mixture(elements - 2.0)
    }

    /// Erratum E2: amplification as printed fails when whole users are drawn and one element changes.
    #[test]
    fn a_users_other_elements_give_the_draw_away() {
        let claimed = amplified(1.0, 0.0, 0.1).0;
        assert!((claimed - 0.15857).abs() < 1e-5);
        assert!((sup_log_ratio(1.0, 0.1, 2.0) - claimed).abs() < 1e-12, "two elements attain the claim");
        for elements in 3..=20 {
            let truth = sup_log_ratio(1.0, 0.1, f64::from(elements));
            assert!(truth > claimed, "{elements} elements violate it");
            assert!(truth <= amplified_delta_only(1.0, 0.0, 0.1).0);
        }
        assert!((sup_log_ratio(1.0, 0.1, 20.0) - 0.99930).abs() < 1e-5);
        assert!((amplified(2.0, 0.0, 0.01).0 - 0.06193).abs() < 1e-5);
        assert!((sup_log_ratio(2.0, 0.01, 40.0) - 2.0).abs() < 1e-5);
    }

    /// Erratum T2: 2qε is no bound once e^ε − 1 > 2ε.
    #[test]
    fn twice_the_rate_times_epsilon_is_too_small_for_large_epsilon() {
        for (epsilon, rate, printed, right) in [(2.0, 0.1, 0.4, 0.49403), (4.0, 0.01, 0.08, 0.42917)] {
            assert!((2.0_f64 * rate * epsilon - printed).abs() < 1e-12);
            let ours = amplified(epsilon, 0.0, rate).0;
            assert!((ours - right).abs() < 1e-5 && ours > printed);
            // Randomised response attains it, so that nothing smaller is a bound: mix its two answers with the coin.
            let (p, r): (f64, f64) = (1.0 / (1.0 + (-epsilon).exp()), 1.0 / (1.0 + f64::exp(epsilon)));
            let truth = ((rate * p + (1.0 - rate) * r) / r).ln();
            assert!((truth - ours).abs() < 1e-12);
        }
        let worse = |epsilon: f64| epsilon.exp_m1() > 2.0 * epsilon;
        assert!(!worse(1.25643) && worse(1.25644));
    }

    #[test]
    fn a_group_costs_what_noise_at_k_times_the_distance_costs() {
        let gaussian = group(&Cost::Gaussian { noise: 6.0 }, 3).unwrap();
        let far = epsilon(&gaussian, 1e-6, Name::Gdp).unwrap().upper;
        let near = epsilon(&Cost::Gaussian { noise: 2.0 }, 1e-6, Name::Gdp).unwrap().upper;
        assert!(far >= near && far < near * (1.0 + 1e-12));
        let costs = Cost::Series(vec![
            Cost::Laplace { scale: 10.0 }.repeat(2),
            Cost::Geometric { shift: 2, scale: 10.0 },
            Cost::Pure { epsilon: Epsilon::new(0.1).unwrap() },
        ]);
        let sum = epsilon(&group(&costs, 5).unwrap(), 0.0, Name::Basic).unwrap().upper;
        assert!((2.5..2.500_001).contains(&sum));
        assert_eq!(group(&Cost::Everything, 4).unwrap(), Cost::Everything);
        let rho = group(&Cost::Concentrated { rho: Rho::new(0.5).unwrap() }, 4).unwrap();
        assert!(matches!(rho, Cost::Concentrated { rho } if (8.0..8.000_001).contains(&rho.get())));
    }

    #[test]
    fn a_group_of_one_costs_the_same_and_a_larger_one_never_less() {
        let approximate = Cost::Approximate { epsilon: Epsilon::new(0.3).unwrap(), delta: Delta::new(1e-7).unwrap() };
        let mut before = 0.0;
        for k in 1..20 {
            let loss = epsilon(&group(&approximate, k).unwrap(), 0.5, Name::Basic).unwrap().upper;
            assert!(loss >= before);
            before = loss;
        }
        assert_eq!(tight(0.3, 1e-7, 1), (0.3, 1e-7));
        assert_eq!(loose(0.3, 1e-7, 1), (0.3, 1e-7));
    }
}
