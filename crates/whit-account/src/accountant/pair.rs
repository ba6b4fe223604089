//! Which two laws of a step of subsampled Gaussian noise are easiest to distinguish, and how well.
//!
//! # The key lemma
//! Let E = N(e), A = N(a), B = N(b) have the same covariance σ²·I, |a − e| ≤ r and |a − b| ≤ d, and let
//! P = (1−q)E + qA, Q = (1−q)E + qB. For an event S with A(S) = x, Neyman and Pearson give
//! E(S) ≥ Φ(Φ⁻¹(x) − r/σ) and B(S) ≥ Φ(Φ⁻¹(x) − d/σ). As 1 − e^ε ≤ 0 for ε ≥ 0,
//! P(S) − e^ε·Q(S) ≤ sup over x of (1−q)(1−e^ε)·Φ(Φ⁻¹(x) − r/σ) + q·x − q·e^ε·Φ(Φ⁻¹(x) − d/σ), and the collinear
//! triple e = 0, a = r, b = r − d with a half-line for S attains it. So at every ε ≥ 0 the worst pair is
//! **(0; r, r − d)**: (1−q)N(0) + qN(r) against (1−q)N(0) + qN(r − d).
//!
//! # Composition
//! Under `replace` neighbours may swap roles, so the worst direction may change from step to step. The *reflected*
//! loss takes the loss of (0; r, r − d) where it is positive, puts mass e^-l·w at −l for each mass w at l > 0 and the
//! rest at 0: its profile is at least that of both directions at every real ε, so it dominates them and composes
//! (Zhu, Dong, Wang 2022, Theorem 10). Where d = 2r the pair is its own mirror image, and nothing changes.
//! Under `add-remove` the direction is the same in all steps: either the unit is there or it is not, and both
//! compositions are worked out.

use super::Unsupported;
use super::binomial::{BinomialParts, PartSide};
use crate::normal::{gap, gaussian_delta, gaussian_epsilon_up};
use whit_core::{Change, Draw, Sampled, Sampling};
use whit_noise::round::whole_up;

/// The pair that dominates one step, with means in units of the clip norm.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Dominating {
    /// (1−q)N(0) + qN(reach) against N(0); both directions, each for all steps.
    Sided {
        /// How far the drawn mean may be from the undrawn one.
        reach: f64,
    },
    /// The reflected loss of (1−q)N(0) + qN(reach) against (1−q)N(0) + qN(reach − apart), apart ≤ 2·reach.
    Reflected {
        /// How far the drawn mean may be from the undrawn one.
        reach: f64,
        /// How far it may be from its neighbour's.
        apart: f64,
    },
    /// N(j) with j ~ Binomial(holds, q), against N(0); both directions, each for all steps.
    Binomial {
        /// How many units change at once.
        holds: u64,
    },
    /// (j, N(2j)) against (j, N(0)) with j ~ Binomial(holds, q) in view: two neighbours' contributions are as far apart as the clip norm allows. It is its
    /// own mirror image.
    Revealed {
        /// How many units change at once.
        holds: u64,
    },
}

/// So many deviations away from the drawn means, the undrawn one tells the coin: the two overlap by less than e^-800.
pub(crate) const APART: f64 = 80.0;

/// The pair that dominates a step, row by row of the table in the design.
///
/// At a rate of 1 each pair is plain Gaussian noise at the distance `reach` (`Sided`), `apart` (`Reflected`),
/// `holds` (`Binomial`) or `2 · holds` (`Revealed`); at a rate of 0 its two laws are equal. Both are handled
/// by what reads the pair, so the answer does not depend on rate and noise.
///
/// # Why
/// - *Poisson, the unit itself, add-remove.* e = b = 0, a = the unit's contribution, |a| ≤ 1: key lemma with r = d = 1 for
///   one direction; for the other, N(0)(S) = x leaves A(S) ≥ Φ(Φ⁻¹(x) − 1/σ) by Neyman–Pearson directly.
/// - *Poisson, the unit itself, replace.* a, b are the two contributions, e = 0: r = 1, d = `difference` (errata E4, F1).
/// - *Poisson, whole users of k units.* The user's other units share the coin: a is at most k from e, and a change of h of
///   them moves it by 2h (replace; `difference` if h = 1) or by h (add-remove): errata E1. Where all k are added
///   or removed, b = e and the pair is the first one, scaled.
/// - *Poisson, the unit itself, h units at once, add-remove.* P = Σ over drawn subsets of N(their sum), against N(0). For an event
///   with N(0)(S) = x, a subset of j units has P(S) between Φ(Φ⁻¹(x) ∓ j/σ), both attained by the collinear case.
/// - *Poisson, the unit itself, h at once, replace.* Reveal which are drawn, which can only help the adversary; given that j are,
///   the means are at most 2j apart, and P(j) is binomial on both sides. `difference` is about one unit whose public
///   part stays; a user's change moves that part too, so that it is of no use here, whatever is drawn.
/// - *A fixed-size batch.* Couple the batches so that when the unit is not drawn another one is in its place:
///   undrawn and drawn mean differ by that one too, so r doubles, and d is as before (erratum E3).
pub fn dominating(s: &Sampled) -> Result<Dominating, Unsupported> {
    s.validate()?;
    let reach = |units: u64| match s.sampling {
        Sampling::Poisson => whole_up(units.into()),
        Sampling::Fixed => 2.0 * whole_up(units.into()),
    };
    Ok(match (s.draw, s.change) {
        (Draw::Unit, Change::AddRemove) if s.holds == 1 => Dominating::Sided { reach: reach(1) },
        (Draw::Unit, Change::Replace) if s.holds == 1 => Dominating::Reflected { reach: reach(1), apart: s.difference },
        (Draw::Unit, Change::AddRemove | Change::Replace) if s.sampling == Sampling::Fixed => {
            return Err(Unsupported::Drawing {
                sampling: "several units that change at once when units are drawn in batches of fixed size",
                instead: "draw with Poisson sampling, or draw whole users",
            });
        }
        (Draw::Unit, Change::AddRemove) => Dominating::Binomial { holds: s.holds },
        // A coarser change also moves what `difference` takes as fixed, so only the clip norm bounds it.
        (Draw::Unit, Change::Replace) => Dominating::Revealed { holds: s.holds },
        (Draw::User { elements }, Change::AddRemove) if s.holds == elements => {
            Dominating::Sided { reach: reach(elements) }
        }
        (Draw::User { elements }, Change::AddRemove) => {
            // In a batch of fixed size, a user all of whose units go leaves the pool, and another one takes the place.
            let other = if s.sampling == Sampling::Fixed { elements } else { 0 };
            let apart = u128::from(s.holds) + u128::from(other);
            let apart = whole_up(apart);
            Dominating::Reflected { reach: reach(elements), apart }
        }
        (Draw::User { elements }, Change::Replace) => {
            // As above: with every unit drawn it is the same change, and has the same price.
            let apart = if s.holds == 1 { s.difference } else { 2.0 * whole_up(s.holds.into()) };
            Dominating::Reflected { reach: reach(elements), apart }
        }
    })
}

impl Dominating {
    /// The distance of the means when everything is drawn: Gaussian noise at this distance dominates the pair at every rate.
    ///
    /// # Why
    /// Reveal the coins. Given them, the two laws are equal or Gaussians at most so far apart, and hockey-stick
    /// divergences are jointly convex, so the mixture is no easier to tell apart than the worst of them.
    pub fn distance(&self) -> f64 {
        match *self {
            Self::Sided { reach } => reach,
            Self::Reflected { apart, .. } => apart,
            Self::Binomial { holds } => whole_up(holds.into()),
            Self::Revealed { holds } => 2.0 * whole_up(holds.into()),
        }
    }
}

/// The hockey-stick divergence sup over events of P(S) − e^ε·Q(S) of one step at ε ≥ 0, the worse of both directions.
///
/// Exact up to a relative rounding error of about 1e-11: at the point where e^ε·Q and P balance every term is a
/// positive multiple of a [`gap`], so nothing cancels.
///
/// ```
/// use whit_account::accountant::pair::{Dominating, step_delta};
/// // Erratum E1: a user of three elements, drawn as a whole, and the pair that holds only for one element.
/// let whole_user = step_delta(&Dominating::Reflected { reach: 3.0, apart: 2.0 }, 0.1, 1.0, 1.0);
/// let one_element = step_delta(&Dominating::Reflected { reach: 1.0, apart: 2.0 }, 0.1, 1.0, 1.0);
/// assert!((whole_user - 0.04438).abs() < 1e-5 && (one_element - 3.273e-4).abs() < 1e-7);
/// ```
pub fn step_delta(pair: &Dominating, rate: f64, sigma: f64, epsilon: f64) -> f64 {
    if rate <= 0.0 || epsilon == f64::INFINITY {
        return 0.0;
    }
    if rate >= 1.0 {
        return gaussian_delta(epsilon, pair.distance() / sigma);
    }
    match *pair {
        Dominating::Sided { reach } => {
            let away = reflected_delta(reach / sigma, reach / sigma, rate, epsilon);
            away.max(towards_delta(reach / sigma, rate, epsilon))
        }
        Dominating::Reflected { reach, apart } => reflected_delta(reach / sigma, apart / sigma, rate, epsilon),
        Dominating::Binomial { holds } => binomial_delta(holds, rate, sigma, epsilon),
        Dominating::Revealed { holds } => {
            let drawn = BinomialParts::of(holds, rate, PartSide::Up);
            let all = drawn.weighted.iter().map(|&(j, weight)| weight * gaussian_delta(epsilon, 2.0 * j / sigma));
            (drawn.missing + all.sum::<f64>()).min(1.0)
        }
    }
}

/// ln(e^a + e^b).
pub(crate) fn ln_add(a: f64, b: f64) -> f64 {
    let (low, high) = if a < b { (a, b) } else { (b, a) };
    if low == f64::NEG_INFINITY { high } else { high + (low - high).exp().ln_1p() }
}

/// ln(e^x − 1) for x ≥ 0.
pub(crate) fn ln_expm1(x: f64) -> f64 {
    if x > 37.0 { x + (-(-x).exp()).ln_1p() } else { x.exp_m1().ln() }
}

/// The profile of (0; r, r − d) at ε ≥ 0, with r and d in units of σ.
///
/// With y the distance from r, the likelihoods balance where exp(t1) + exp(t2) = 1 for
/// t1 = ln((1−q)/q·(e^ε−1)) − r·y − r²/2 and t2 = ε − d·y − d²/2, and there
/// δ = q·(exp(t1)·gap(y, r) + exp(t2)·gap(y, d)).
/// ln(exp(t1) + exp(t2)) is convex and falls in y, so Newton's method converges from everywhere; the loss is
/// positive exactly on y > −d/2 and increases there, so the event is a half-line.
fn reflected_delta(r: f64, d: f64, q: f64, epsilon: f64) -> f64 {
    let ln_undrawn = (-q).ln_1p() - q.ln() + if epsilon == 0.0 { f64::NEG_INFINITY } else { ln_expm1(epsilon) };
    let terms = |y: f64| (ln_undrawn - r * (y + 0.5 * r), epsilon - d * (y + 0.5 * d));
    // One term alone is 1 here, so this is to the left of the root, from where Newton's method never overshoots.
    let mut y = (ln_undrawn / r - 0.5 * r).max(epsilon / d - 0.5 * d);
    for _ in 0..100 {
        let (t1, t2) = terms(y);
        let sum = ln_add(t1, t2);
        let share = (t1 - sum).exp();
        let step = sum / (r * share + d * (1.0 - share));
        y += step;
        if step.abs() <= 1e-14 * y.abs().max(1e-3) {
            break;
        }
    }
    let (t1, t2) = terms(y);
    let share = (t1 - ln_add(t1, t2)).exp();
    // At the root the shares add up to 1; taking them so removes the first-order error of y.
    let found = share * gap(y, r) + (1.0 - share) * gap(y, d);
    q * if found <= 1.0 { found } else { 1.0 }
}

/// The profile of N(0) against (1−q)N(0) + qN(r) at ε ≥ 0: (1 − e^ε(1−q))·δ_Gauss(ε′; r), e^ε′ = q·e^ε/(1 − e^ε(1−q)),
/// and 0 once e^ε(1−q) ≥ 1.
fn towards_delta(r: f64, q: f64, epsilon: f64) -> f64 {
    // 1 − e^ε(1−q) = q − (e^ε − 1)(1 − q)
    let kept = if epsilon < 1.0 { q - epsilon.exp_m1() * (1.0 - q) } else { 1.0 - epsilon.exp() * (1.0 - q) };
    if kept <= 0.0 {
        return 0.0;
    }
    kept * gaussian_delta((q.ln() + epsilon - kept.ln()).max(0.0), r)
}

/// The profile of N(j), j ~ Binomial(holds, q), against N(0) at ε ≥ 0, the worse direction; means in units of 1, noise σ.
fn binomial_delta(holds: u64, q: f64, sigma: f64, epsilon: f64) -> f64 {
    let drawn = BinomialParts::of(holds, q, PartSide::Up);
    let terms: Vec<_> = drawn.weighted.iter().map(|&(j, weight)| (j / sigma, weight, weight.ln())).collect();
    let dropped = drawn.missing; // counted as if it gave everything away
    // L(x) = ln Σ w·exp(h·x − h²/2), the log-ratio of the mixture to N(0): convex and increasing in x.
    let ratio = |x: f64| {
        let peak = terms.iter().map(|&(h, _, ln_w)| ln_w + h * (x - 0.5 * h)).fold(f64::NEG_INFINITY, f64::max);
        let (mut sum, mut slope) = (0.0, 0.0);
        for &(h, _, ln_w) in &terms {
            let term = (ln_w + h * (x - 0.5 * h) - peak).exp();
            sum += term;
            slope += term * h;
        }
        (peak + sum.ln(), slope / sum)
    };
    let solve = |level: f64| {
        // From the right of the root Newton's method on a convex increasing function never overshoots.
        let mut x = 1.0;
        while ratio(x).0 < level {
            x *= 2.0;
        }
        for _ in 0..200 {
            let (value, slope) = ratio(x);
            let step = (value - level) / slope;
            x -= step;
            if step.abs() <= 1e-14 * x.abs().max(1e-3) || !x.is_finite() {
                break;
            }
        }
        x
    };
    let x = solve(epsilon);
    // Nothing shows more than that something was drawn at all: also where rounding leaves no place at which to look.
    let most = (dropped + terms.iter().filter(|term| term.0 > 0.0).map(|term| term.1).sum::<f64>()).min(1.0);
    let away: f64 = dropped + terms.iter().map(|&(h, w, _)| w * gap(x - h, h)).sum::<f64>();
    let away = if away <= most { away } else { most };
    let none = terms.first().filter(|term| term.0 == 0.0).map_or(f64::NEG_INFINITY, |term| term.2);
    if none >= -epsilon {
        return away; // even far to the left the loss of the other direction stays below ε
    }
    // Here the weights w·exp(h·x − h²/2 + ε) add up to 1, as the shares do in `reflected_delta`.
    let x = solve(-epsilon);
    let towards: f64 =
        terms.iter().map(|&(h, _, ln_w)| (ln_w + h * (x - 0.5 * h) + epsilon).exp().min(1.0) * gap(-x, h)).sum();
    if towards <= most { away.max(towards) } else { most }
}

/// The smallest ε at which one step is (ε, δ)-differentially private, rounded up by a hair; infinite where δ = 0.
pub(crate) fn step_epsilon_up(pair: &Dominating, rate: f64, sigma: f64, delta: f64) -> f64 {
    let aim = delta * (1.0 - 1e-10);
    if rate <= 0.0 || step_delta(pair, rate, sigma, 0.0) <= aim {
        return 0.0;
    }
    // Gaussian noise at the full distance dominates, so its ε is large enough.
    let mut high = gaussian_epsilon_up(aim, pair.distance() / sigma);
    if high == f64::INFINITY || rate >= 1.0 {
        return high;
    }
    let mut low = 0.0;
    while high - low > 1e-12 * high && high > 1e-300 {
        let middle = 0.5 * (low + high);
        if step_delta(pair, rate, sigma, middle) <= aim {
            high = middle;
        } else {
            low = middle;
        }
    }
    // Where means are far apart ε itself is rounded before it meets them.
    high * (1.0 + 8.0 * f64::EPSILON)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::accountant::binomial::binomial;

    fn sampled(sampling: Sampling, draw: Draw, change: Change, holds: u64) -> Sampled {
        Sampled { noise: 1.0, rate: 0.1, sampling, draw, change, difference: 1.5, holds }
    }

    #[test]
    fn every_row_of_the_table_has_its_pair() {
        use Change::{AddRemove, Replace};
        use Draw::{Unit, User};
        use Sampling::{Fixed, Poisson};
        let user = User { elements: 5 };
        let rows = [
            (Poisson, Unit, AddRemove, 1, Dominating::Sided { reach: 1.0 }),
            (Poisson, Unit, Replace, 1, Dominating::Reflected { reach: 1.0, apart: 1.5 }),
            (Poisson, Unit, AddRemove, 4, Dominating::Binomial { holds: 4 }),
            (Poisson, Unit, Replace, 4, Dominating::Revealed { holds: 4 }),
            (Poisson, user, AddRemove, 1, Dominating::Reflected { reach: 5.0, apart: 1.0 }),
            (Poisson, user, Replace, 1, Dominating::Reflected { reach: 5.0, apart: 1.5 }),
            (Poisson, user, Replace, 3, Dominating::Reflected { reach: 5.0, apart: 6.0 }),
            (Poisson, user, AddRemove, 3, Dominating::Reflected { reach: 5.0, apart: 3.0 }),
            (Poisson, user, AddRemove, 5, Dominating::Sided { reach: 5.0 }),
            (Poisson, user, Replace, 5, Dominating::Reflected { reach: 5.0, apart: 10.0 }),
            (Fixed, Unit, AddRemove, 1, Dominating::Sided { reach: 2.0 }),
            (Fixed, Unit, Replace, 1, Dominating::Reflected { reach: 2.0, apart: 1.5 }),
            (Fixed, user, Replace, 1, Dominating::Reflected { reach: 10.0, apart: 1.5 }),
            (Fixed, user, AddRemove, 5, Dominating::Sided { reach: 10.0 }),
        ];
        for (sampling, draw, change, holds, pair) in rows {
            assert_eq!(
                dominating(&sampled(sampling, draw, change, holds)),
                Ok(pair),
                "{sampling:?} {draw:?} {change:?} {holds}"
            );
        }
        for change in [AddRemove, Replace] {
            let refused = dominating(&sampled(Fixed, Unit, change, 2)).unwrap_err();
            assert!(matches!(refused, Unsupported::Drawing { .. }) && refused.to_string().contains("fixed size"));
            let most = dominating(&sampled(Poisson, Unit, change, u64::MAX)).unwrap();
            assert!(most.distance() >= u64::MAX as f64, "{most:?}");
        }
    }

    #[test]
    fn a_million_units_at_once_cost_no_less_than_the_exact_sum_and_hardly_more() {
        let (holds, rate, sigma) = (1_u64 << 20, 0.5, 1e6);
        for epsilon in [0.0, 0.3, 1.0, 3.0] {
            let exact: f64 = binomial(holds, rate)
                .0
                .iter()
                .map(|&(j, weight)| weight * gaussian_delta(epsilon, 2.0 * j / sigma))
                .sum();
            let found = step_delta(&Dominating::Revealed { holds }, rate, sigma, epsilon);
            assert!(found >= exact * (1.0 - 1e-9) && found <= 1.05 * exact, "ε = {epsilon}: {found} for {exact}");
        }
    }

    /// Rates so small that hardly a float is left: the search for ε once went on for ever.
    #[test]
    fn a_rate_that_is_hardly_a_number_ends_the_search() {
        for holds in [2, 70, 1751, u64::MAX] {
            for sigma in [0.01, 1.0, 1e6] {
                let pair = Dominating::Binomial { holds };
                let found = step_epsilon_up(&pair, 1e-300, sigma, 1e-6);
                assert!((0.0..1e-3).contains(&found), "{holds} at once, noise {sigma}: {found}");
                assert!(step_delta(&pair, 1e-300, sigma, 0.0) <= 1e-270);
            }
        }
    }

    /// reach, apart, rate, σ, ε, δ: worked out with 120 digits from the definition.
    const REFLECTED: [(f64, f64, f64, f64, f64, f64); 12] = [
        (1.0, 2.0, 0.01, 1.0, 0.0, 0.006_826_894_921_370_859),
        (1.0, 2.0, 0.01, 1.0, 0.001, 0.006_346_364_545_722_986),
        (1.0, 2.0, 1e-9, 1.0, 1e-9, 3.320_204_054_378_711_6e-10),
        (3.0, 2.0, 0.1, 1.0, 1.0, 0.044_380_713_520_040_18),
        (30.0, 2.0, 0.01, 4.0, 3.0, 3.400_911_735_673_529e-12),
        (1000.0, 2.0, 0.05, 0.2, 20.0, 0.049_901_459_073_271_384),
        (1000.0, 2.0, 0.05, 0.2, 0.01, 0.049_999_971_191_171_55),
        (1.0, 0.1, 0.0625, 1.0, 0.05, 0.000_276_817_295_195_632_37),
        (1.0, 2.0, 0.5, 1000.0, 1e-4, 0.000_350_952_812_394_125_8),
        (2.0, 2.0, 0.001, 0.8, 5.0, 8.730_968_978_165_431e-8),
        (1.0, 2.0, 0.01, 4.0, 2.0, 1.099_908_998_013_571e-149),
        (2.0, 2.0, 1e-9, 0.2, 40.0, 1.216_724_284_131_93e-10),
    ];

    #[test]
    fn one_step_profiles_are_accurate_for_rates_and_noises_of_every_size() {
        for (reach, apart, rate, sigma, epsilon, expected) in REFLECTED {
            let found = step_delta(&Dominating::Reflected { reach, apart }, rate, sigma, epsilon);
            assert!(
                (found / expected - 1.0).abs() < 2e-12,
                "({reach}; {apart}) q {rate} σ {sigma} ε {epsilon}: {found}"
            );
        }
        // reach, rate, σ, ε, N(0) against the mixture, the mixture against N(0)
        for (reach, rate, sigma, epsilon, towards, away) in [
            (1.0, 0.01, 1.0, 0.001, 0.003_159_797_073_185_801, 0.003_537_335_580_466_762),
            (1.0, 0.01, 1.0, 0.005, 0.000_963_144_335_305_304_8, 0.002_635_150_845_899_187),
            (1.0, 0.9, 0.5, 1.0, 0.343_205_184_804_138_8, 0.447_771_591_984_296_1),
            (1.0, 0.9, 0.5, 2.2, 0.005_640_266_739_279_265, 0.255_531_679_573_979_26),
            (2.0, 0.5, 0.2, 0.5, 0.175_639_148_918_693_7, 0.499_999_566_912_510_3),
        ] {
            assert!((towards_delta(reach / sigma, rate, epsilon) / towards - 1.0).abs() < 1e-12);
            assert!((step_delta(&Dominating::Sided { reach }, rate, sigma, epsilon) / away - 1.0).abs() < 1e-12);
        }
        for (holds, rate, sigma, epsilon, expected) in [
            (3, 0.1, 1.0, 0.5, 0.035_396_290_907_543_614),
            (3, 0.1, 1.0, 0.0, 0.110_811_405_509_092_6),
            (10, 0.01, 2.0, 0.02, 0.013_103_278_934_686_362),
            (20, 0.5, 4.0, 3.0, 0.375_285_074_645_489_2),
            (2, 0.9, 0.5, 1.0, 0.821_232_118_679_685),
        ] {
            let found = step_delta(&Dominating::Binomial { holds }, rate, sigma, epsilon);
            assert!((found / expected - 1.0).abs() < 1e-12, "{holds} at once: {found} for {expected}");
        }
    }

    /// The key lemma, tried: no triple of means in the plane within the distances does better than the collinear one.
    #[test]
    fn no_other_triple_of_means_is_easier_to_tell_apart() {
        let (q, sigma, reach, apart) = (0.1, 1.0, 3.0, 2.0);
        let pair = Dominating::Reflected { reach, apart };
        for epsilon in [0.0, 0.1, 0.5, 1.0, 2.0] {
            let worst = step_delta(&pair, q, sigma, epsilon);
            for (a, angle) in [(3.0, 0.0), (3.0, 0.8), (2.0, 0.5), (1.0, 3.1), (2.5, 2.0), (0.5, 0.0), (3.0, 3.1)] {
                // e at the origin, a on the axis, b at distance `apart` from a under an angle; ∫ (P − e^ε·Q)₊ on a grid
                let b = (a - apart * f64::cos(angle), apart * f64::sin(angle));
                let step = 0.05;
                let mut sum = 0.0;
                for i in -160..=200 {
                    for j in -160..=160 {
                        let (x, y) = (f64::from(i) * step, f64::from(j) * step);
                        let bump = |u: f64, v: f64| (-0.5 * ((x - u).powi(2) + (y - v).powi(2))).exp();
                        let (p, r) = (
                            (1.0 - q) * bump(0.0, 0.0) + q * bump(a, 0.0),
                            (1.0 - q) * bump(0.0, 0.0) + q * bump(b.0, b.1),
                        );
                        sum += (p - epsilon.exp() * r).max(0.0);
                    }
                }
                let found = sum * step * step / std::f64::consts::TAU;
                assert!(found <= worst + 1e-4, "a {a}, angle {angle}, ε {epsilon}: {found} above {worst}");
            }
        }
    }

    #[test]
    fn one_step_costs_more_the_more_is_drawn_and_the_less_noise_there_is() {
        let pairs = [
            Dominating::Sided { reach: 1.0 },
            Dominating::Reflected { reach: 1.0, apart: 2.0 },
            Dominating::Reflected { reach: 30.0, apart: 2.0 },
            Dominating::Reflected { reach: 1.0, apart: 0.01 },
            Dominating::Binomial { holds: 7 },
            Dominating::Revealed { holds: 7 },
        ];
        let rates = [0.0, 1e-9, 1e-4, 0.01, 0.3, 0.999, 1.0];
        for pair in &pairs {
            for sigma in [0.2, 1.0, 30.0, 1000.0] {
                for epsilon in [0.0, 1e-6, 0.01, 1.0, 30.0, 1e5] {
                    let mut before = 0.0;
                    for rate in rates {
                        let delta = step_delta(pair, rate, sigma, epsilon);
                        assert!((0.0..=1.0).contains(&delta), "{pair:?} q {rate} σ {sigma} ε {epsilon}: {delta}");
                        assert!(
                            delta >= before * (1.0 - 1e-11),
                            "{pair:?} q {rate} σ {sigma} ε {epsilon}: {delta} after {before}"
                        );
                        assert!(delta >= step_delta(pair, rate, sigma * 1.5, epsilon) * (1.0 - 1e-11));
                        before = delta;
                    }
                }
                for rate in rates {
                    let epsilon = step_epsilon_up(pair, rate, sigma, 1e-6);
                    assert!(step_delta(pair, rate, sigma, epsilon) <= 1e-6, "{pair:?} q {rate} σ {sigma}: ε {epsilon}");
                }
            }
        }
    }
}
