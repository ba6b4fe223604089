//! Rényi differential privacy (Mironov 2017): at each order α the divergences of the runs add up, and any order may be
//! turned into an (ε, δ).
//!
//! There is no fixed list of orders whose end would cap the answer: the best order is searched for, and the search
//! goes on outwards until what it found lies inside. Every order gives a valid bound, so a search that misses the very
//! best one overstates ε and never understates it. [`divergence`](super::divergence) has the divergence of each kind of run.

use super::divergence::run_divergence_up;
use super::{Name, Unsupported, check_delta, check_epsilon, exp_up, runs, word_for};
use whit_core::Cost;

/// How a divergence at one order becomes an ε at one δ.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Conversion {
    /// D + ln(1/δ)/(α−1): Mironov 2017, Proposition 3.
    Mironov,
    /// D + ln((α−1)/α) − (ln δ + ln α)/(α−1): Canonne, Kamath and Steinke 2020, Proposition 12. Never worse.
    Cks,
}

/// ε at δ from the divergence at one order, by Mironov's conversion.
///
/// ```
/// use whit_account::accountant::renyi::{cks_epsilon, mironov_epsilon};
/// assert!((mironov_epsilon(10.0, 0.5, 1e-5) - 1.779_213_940_552_247_6).abs() < 1e-14);
/// assert!((cks_epsilon(10.0, 0.5, 1e-5) - 1.418_010_636_783_971_8).abs() < 1e-14);
/// ```
pub fn mironov_epsilon(alpha: f64, divergence: f64, delta: f64) -> f64 {
    divergence - delta.ln() / (alpha - 1.0)
}

/// ε at δ from the divergence at one order, by Canonne, Kamath and Steinke's conversion; at least 0, and raised by what
/// its own rounding may have cost.
pub fn cks_epsilon(alpha: f64, divergence: f64, delta: f64) -> f64 {
    let (less, rest) = ((-1.0 / alpha).ln_1p(), (delta.ln() + alpha.ln()) / (alpha - 1.0));
    let size = divergence - less + (delta.ln().abs() + alpha.ln()) / (alpha - 1.0);
    (divergence + less - rest + 2.0 * f64::EPSILON * size).max(0.0)
}

/// ln δ at ε from the divergence at one order, by the same conversion read the other way.
pub(crate) fn cks_ln_delta(alpha: f64, divergence: f64, epsilon: f64) -> f64 {
    let less = (-1.0 / alpha).ln_1p();
    let size = (alpha - 1.0) * (divergence + epsilon - less) + alpha.ln();
    (alpha - 1.0) * (divergence - epsilon + less) - alpha.ln() + 2.0 * f64::EPSILON * size
}

/// The order α > 1 with the lowest `bound`, and that bound.
///
/// Looks at α − 1 in steps of a factor e around `guess`, goes on outwards while the best is at an end, then
/// narrows down by golden section. It stops at α − 1 = 1e-9 and 1e15, where conversions from finite divergences have
/// nothing left to gain; callers add the limits α → 1 and α → ∞ where these mean something.
pub(crate) fn lowest(guess: f64, mut bound: impl FnMut(f64) -> f64) -> (f64, f64) {
    const ENDS: (f64, f64) = (-20.7, 34.5);
    let mut at = |t: f64| {
        let value = bound(1.0 + t.exp());
        (t, if value.is_nan() { f64::INFINITY } else { value })
    };
    let start = (guess - 1.0).max(f64::MIN_POSITIVE).ln().clamp(ENDS.0 + 3.0, ENDS.1 - 3.0);
    let mut seen: Vec<(f64, f64)> = (-2..=2).map(|k| at(start + f64::from(k))).collect();
    let lowest_of = |seen: &[(f64, f64)]| (0..seen.len()).min_by(|&i, &j| seen[i].1.total_cmp(&seen[j].1)).unwrap_or(0);
    loop {
        let (best, last) = (lowest_of(&seen), seen.len() - 1);
        // All infinite: smaller orders are the only ones that can help.
        if (best == 0 || seen[best].1 == f64::INFINITY) && seen[0].0 > ENDS.0 {
            let next = at(seen[0].0 - 1.0);
            seen.insert(0, next);
        } else if best == last && seen[last].0 < ENDS.1 {
            let next = at(seen[last].0 + 1.0);
            seen.push(next);
        } else {
            break;
        }
    }
    let best = lowest_of(&seen);
    let mut found = seen[best];
    let (mut low, mut high) = (seen[best.saturating_sub(1)].0, seen[(best + 1).min(seen.len() - 1)].0);
    let ratio = 0.5 * (5.0_f64.sqrt() - 1.0);
    let (mut left, mut right) = (at(high - ratio * (high - low)), at(low + ratio * (high - low)));
    while high - low > 1e-3 {
        if left.1 < right.1 {
            high = right.0;
            right = left;
            left = at(high - ratio * (high - low));
        } else {
            low = left.0;
            left = right;
            right = at(low + ratio * (high - low));
        }
        for point in [left, right] {
            if point.1 < found.1 {
                found = point;
            }
        }
    }
    (1.0 + found.0.exp(), found.1)
}

/// What the runs of a cost come to: divergences at any order, the limit of infinite order, and the δ set aside.
struct Composed {
    leaves: Vec<(Cost, u64)>,
    /// Σ of the pure ε where all runs are pure, infinite otherwise.
    infinite_order: f64,
    aside: f64,
}

impl Composed {
    fn of(cost: &Cost) -> Result<Option<Self>, Unsupported> {
        let Some(leaves) = runs(cost)? else { return Ok(None) };
        let (mut infinite_order, mut aside) = (0.0, 0.0);
        for (leaf, times) in &leaves {
            infinite_order += run_divergence_up(leaf, f64::INFINITY)? * *times as f64 * (1.0 + 1e-15);
            if let Cost::Approximate { delta, .. } = leaf {
                aside += delta.get() * *times as f64 * (1.0 + 1e-15);
            }
        }
        Ok(Some(Self { leaves, infinite_order, aside }))
    }

    /// The divergence at one order. Leaves were priced once by `of`, so that none is unsupported here.
    fn divergence(&self, alpha: f64) -> f64 {
        self.leaves
            .iter()
            .map(|(leaf, times)| run_divergence_up(leaf, alpha).unwrap_or(f64::INFINITY) * *times as f64)
            .sum::<f64>()
            * (1.0 + 1e-15 * self.leaves.len() as f64)
    }
}

/// The divergence of a cost at one order, an upper bound.
pub fn divergence(cost: &Cost, alpha: f64) -> Result<f64, Unsupported> {
    Ok(Composed::of(cost)?.map_or(f64::INFINITY, |composed| composed.divergence(alpha)))
}

/// ε at δ from the best of the given orders.
pub fn epsilon_at_orders(cost: &Cost, delta: f64, orders: &[f64], conversion: Conversion) -> Result<f64, Unsupported> {
    let Some(composed) = Composed::of(cost)? else { return Ok(f64::INFINITY) };
    let delta = delta - composed.aside;
    if delta <= 0.0 {
        return Ok(f64::INFINITY);
    }
    let bounds = orders.iter().map(|&alpha| match conversion {
        Conversion::Mironov => mironov_epsilon(alpha, composed.divergence(alpha), delta),
        Conversion::Cks => cks_epsilon(alpha, composed.divergence(alpha), delta),
    });
    Ok(bounds.fold(f64::INFINITY, f64::min))
}

/// ε at δ, from the best order: infinite where the δ that approximate runs set aside come to as much.
pub fn epsilon(cost: &Cost, delta: f64) -> Result<f64, Unsupported> {
    check_delta(delta)?;
    let Some(composed) = Composed::of(cost)? else { return Ok(f64::INFINITY) };
    let Some((leaf, _)) = composed.leaves.first() else { return Ok(0.0) };
    if delta == 0.0 && (composed.infinite_order == f64::INFINITY || composed.aside > 0.0) {
        return Err(Unsupported::NeedsDelta { accountant: Name::Rdp, cost: word_for(leaf) });
    }
    if delta < composed.aside {
        return Ok(f64::INFINITY);
    }
    let delta = delta - composed.aside;
    if delta == 0.0 {
        return Ok(composed.infinite_order);
    }
    if delta >= 1.0 {
        return Ok(0.0);
    }
    // Near the optimum of a concentrated run with the divergence that is found at order 2.
    let per_order = composed.divergence(2.0) / 2.0;
    let guess = 1.0 + (-delta.ln() / per_order).sqrt().clamp(1e-2, 1e6);
    let (_, best) = lowest(guess, |alpha| cks_epsilon(alpha, composed.divergence(alpha), delta));
    Ok(best.min(composed.infinite_order))
}

/// δ at ε, from the best order.
pub fn delta(cost: &Cost, epsilon: f64) -> Result<f64, Unsupported> {
    check_epsilon(epsilon)?;
    let Some(composed) = Composed::of(cost)? else { return Ok(1.0) };
    if composed.leaves.is_empty() || composed.infinite_order <= epsilon {
        return Ok(composed.aside.min(1.0));
    }
    let per_order = composed.divergence(2.0) / 2.0;
    if per_order == 0.0 {
        return Ok(composed.aside.min(1.0)); // never drawn
    }
    let guess = 1.0 + (0.5 * (epsilon / per_order - 1.0)).clamp(1e-2, 1e6);
    let (_, ln_delta) = lowest(guess, |alpha| cks_ln_delta(alpha, composed.divergence(alpha), epsilon));
    Ok((composed.aside + exp_up(ln_delta)).min(1.0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::normal::gaussian_epsilon_up;
    use whit_core::{Change, Delta, Draw, Epsilon, Sampled, Sampling};

    fn step(noise: f64, rate: f64, change: Change) -> Cost {
        let (sampling, draw) = (Sampling::Poisson, Draw::Unit);
        Cost::Sampled(Sampled { noise, rate, sampling, draw, change, difference: 2.0, holds: 1 })
    }

    #[test]
    fn no_list_of_orders_caps_the_answer() {
        // The best order is about √(2·ln(1/δ))/μ: far beyond any usual list for little noise, close to 1 for much.
        for mu in [1e-7, 1e-4, 0.01, 1.0, 50.0, 1e4] {
            let cost = Cost::Gaussian { noise: 1.0 / mu };
            let found = epsilon(&cost, 1e-5).unwrap();
            let exact = gaussian_epsilon_up(1e-5, mu);
            assert!(found >= exact && found <= 1.35 * exact + 0.2 * mu, "μ {mu}: {found} for {exact}");
            let (best, _) = lowest(2.0, |alpha| cks_epsilon(alpha, 0.5 * alpha * mu * mu, 1e-5));
            for other in [best * 0.97, best * 1.03, 2.0, 64.0, 1024.0] {
                if other > 1.0 {
                    assert!(
                        cks_epsilon(other, 0.5 * other * mu * mu, 1e-5) >= found * (1.0 - 1e-7),
                        "μ {mu} α {other}"
                    );
                }
            }
        }
    }

    #[test]
    fn the_searched_order_is_at_least_as_good_as_any_of_a_list() {
        let orders: Vec<f64> = (1..400).map(|k| 1.0 + 0.25 * f64::from(k)).collect();
        for (noise, rate, times) in [(1.0, 0.01, 1000), (4.0, 0.05, 200), (0.7, 0.001, 20_000), (1.0, 0.0625, 100)] {
            for change in [Change::AddRemove, Change::Replace] {
                let cost = step(noise, rate, change).repeat(times);
                let listed = epsilon_at_orders(&cost, 1e-5, &orders, Conversion::Cks).unwrap();
                let found = epsilon(&cost, 1e-5).unwrap();
                assert!(found <= listed * (1.0 + 1e-6), "σ {noise} q {rate}: {found} for {listed}");
            }
        }
    }

    #[test]
    fn pure_runs_never_cost_more_than_their_sum_and_approximate_ones_set_their_delta_aside() {
        let pure = Cost::Pure { epsilon: Epsilon::new(0.1).unwrap() };
        assert!((epsilon(&pure, 0.0).unwrap() - 0.1).abs() < 1e-12);
        assert!(epsilon(&pure, 1e-6).unwrap() <= 0.1 * (1.0 + 1e-12));
        let many = epsilon(&pure.clone().repeat(100), 1e-6).unwrap();
        assert!((4.7745..5.8).contains(&many), "above the exact 4.7746, below the simple 5.7561: {many}");
        assert_eq!(delta(&pure, 0.11).unwrap(), 0.0);
        let approximate = Cost::Approximate { epsilon: Epsilon::new(0.1).unwrap(), delta: Delta::new(1e-7).unwrap() };
        assert_eq!(epsilon(&approximate.clone().repeat(100), 9e-6).unwrap(), f64::INFINITY);
        assert!((epsilon(&approximate.repeat(100), 1.1e-5).unwrap() - many).abs() < 1e-6);
    }

    #[test]
    fn epsilon_and_delta_are_each_others_inverse() {
        for cost in [step(1.0, 0.01, Change::Replace).repeat(1000), Cost::Laplace { scale: 5.0 }.repeat(20)] {
            let found = epsilon(&cost, 1e-6).unwrap();
            let back = delta(&cost, found).unwrap();
            assert!((back / 1e-6 - 1.0).abs() < 1e-4, "{back}");
        }
    }

    #[test]
    fn no_rate_noise_or_number_of_steps_gives_a_nan() {
        for rate in [1e-9, 1e-4, 0.1, 1.0] {
            for noise in [0.2, 1.0, 1000.0] {
                for change in [Change::AddRemove, Change::Replace] {
                    let mut before = 0.0;
                    for times in [1, 1000, 100_000_000] {
                        let found = epsilon(&step(noise, rate, change).repeat(times), 1e-6).unwrap();
                        assert!(
                            found.is_finite() && found >= before,
                            "q {rate} σ {noise} T {times}: {found} after {before}"
                        );
                        before = found;
                    }
                    assert!(delta(&step(noise, rate, change), 0.5).unwrap() <= 1.0);
                }
            }
        }
    }
}
