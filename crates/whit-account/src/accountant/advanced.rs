//! Advanced composition of (ε, δ) runs: many small losses add up like a random walk, not like a sum.
//!
//! Several bounds are proven; each is best somewhere, and the least of valid bounds is valid, so [`epsilon`] takes it. Where all
//! runs are alike, Kairouz, Oh and Viswanath's bound is the exact loss of the worst such runs.
//!
//! The element-level paper prints a δ that is too small (erratum E6), and Talwar's slides an ε that is (erratum T1);
//! tests show both failing.

use super::basic::{self, Runs, Split, compose};
use super::{Name, Unsupported, check_delta, check_epsilon, invert};
use whit_core::Cost;

/// Σ of `amount` over all runs.
fn total(runs: &[Runs], amount: impl Fn(&Runs) -> f64) -> f64 {
    runs.iter().map(|run| run.times as f64 * amount(run)).sum()
}

/// √(2·Σε²·ln(1/δ′)) + Σε(e^ε−1), with δ′ + Σδ: Dwork and Roth 2014, Theorem 3.20, for runs that may differ.
///
/// ```
/// use whit_account::accountant::advanced::dwork_roth;
/// use whit_account::accountant::basic::Runs;
/// let (epsilon, delta) = dwork_roth(&[Runs { epsilon: 0.1, delta: 0.0, times: 100 }], 1e-6);
/// assert!((epsilon - 6.308_230_950_513_408).abs() < 1e-12 && delta == 1e-6);
/// ```
pub fn dwork_roth(runs: &[Runs], delta_prime: f64) -> (f64, f64) {
    let squares = total(runs, |run| run.epsilon * run.epsilon);
    let drift = total(runs, |run| if run.epsilon == 0.0 { 0.0 } else { run.epsilon * run.epsilon.exp_m1() });
    (drift + (-2.0 * squares * delta_prime.ln()).sqrt(), compose(runs).1 + delta_prime)
}

/// (3/2)·Σε² + √(6·Σε²·ln(1/δ′)): the constants of the element-level paper's Corollary 2.3, valid but loose, with the δ that
/// is right, δ′ + Σδ. The paper's δ′ + Σδ/(1+e^ε) is not a bound (erratum E6).
pub fn element_level(runs: &[Runs], delta_prime: f64) -> (f64, f64) {
    let squares = total(runs, |run| run.epsilon * run.epsilon);
    (1.5 * squares + (-6.0 * squares * delta_prime.ln()).sqrt(), compose(runs).1 + delta_prime)
}

/// Kairouz, Oh and Viswanath 2015, Theorem 3.4 (and 3.5 for runs that differ): the least of Σε and, with
/// drift Σε·(e^ε−1)/(e^ε+1), of drift + √(2Σε²·ln(e + √Σε²/δ′)) and drift + √(2Σε²·ln(1/δ′)); δ is 1 − (1−δ′)·Π(1−δ).
pub fn kairouz_simple(runs: &[Runs], delta_prime: f64) -> (f64, f64) {
    let squares = total(runs, |run| run.epsilon * run.epsilon);
    let drift = total(runs, |run| run.epsilon * (0.5 * run.epsilon).tanh());
    let with = |ln: f64| drift + (2.0 * squares * ln).sqrt();
    let epsilon = with((std::f64::consts::E + squares.sqrt() / delta_prime).ln()).min(with(-delta_prime.ln()));
    let kept = (-delta_prime).ln_1p() + total(runs, |run| (-run.delta).ln_1p());
    (epsilon.min(compose(runs).0), -kept.exp_m1())
}

/// The exact δ at ε of the worst runs that are all (ε, δ)-private alike (Kairouz, Oh and Viswanath 2015, Theorem 3.3), rounded up
/// by 1e-9 relative: 1 − (1−δ)^k·(1 − Σ over l of C(k,l)·p^{k−l}(1−p)^l·(1 − e^{ε−(k−2l)ε₀})₊), p = e^ε₀/(1+e^ε₀).
///
/// The sum starts at its largest term, whose logarithm is exact to about 1e-12, and goes both ways by the ratio of neighbours
/// until what is left, bounded by a geometric series, no longer counts: about √k terms, so k = 10⁸ is no trouble.
pub fn kairouz_optimal_delta(runs: &Runs, epsilon: f64) -> f64 {
    let sum = (randomised_response_delta(runs.epsilon, runs.times, epsilon) * (1.0 + 1e-9)).min(1.0);
    let kept = (-sum).ln_1p() + runs.times as f64 * (-runs.delta).ln_1p();
    -kept.exp_m1()
}

/// Σ over l of Binomial(k, 1/(1+e^ε₀))(l)·(1 − e^{ε−(k−2l)ε₀})₊.
fn randomised_response_delta(each: f64, times: u64, epsilon: f64) -> f64 {
    let k = times as f64;
    if each == 0.0 || times == 0 || epsilon >= k * each {
        return 0.0;
    }
    let loss_left = |l: f64| (k - 2.0 * l) * each - epsilon;
    // The largest l whose loss exceeds ε.
    let mut last = (0.5 * (k - epsilon / each)).floor().clamp(0.0, k);
    while last > 0.0 && loss_left(last) <= 0.0 {
        last -= 1.0;
    }
    let lie = 1.0 / (1.0 + each.exp());
    let odds = each.exp(); // p/(1−p)
    let start = last.min((k * lie).floor());
    let term = |l: f64, weight: f64| weight * -(-loss_left(l)).exp_m1();
    let mut sum = term(start, 1.0);
    let (mut l, mut weight) = (start, 1.0);
    while l > 0.0 {
        let ratio = l / (k - l + 1.0) * odds;
        weight *= ratio;
        l -= 1.0;
        sum += term(l, weight);
        // Ratios only get smaller, so the rest is at most weight·ratio/(1−ratio).
        if ratio < 1.0 && weight * ratio / (1.0 - ratio) < 1e-14 * sum {
            sum += weight * ratio / (1.0 - ratio);
            break;
        }
    }
    let (mut l, mut weight) = (start, 1.0);
    while l < last {
        let ratio = (k - l) / (l + 1.0) / odds;
        weight *= ratio;
        l += 1.0;
        sum += term(l, weight);
        if ratio < 1.0 && weight * ratio / (1.0 - ratio) < 1e-14 * sum {
            sum += weight * ratio / (1.0 - ratio);
            break;
        }
    }
    (ln_binomial(k, start, lie) + sum.ln()).exp().min(1.0)
}

/// ln of the binomial probability of l among k at rate p, by Loader's saddle point (2000): no large numbers that cancel.
fn ln_binomial(k: f64, l: f64, p: f64) -> f64 {
    if l == 0.0 {
        return k * (-p).ln_1p();
    }
    if l == k {
        return k * p.ln();
    }
    let deviance = |x: f64, mean: f64| {
        // x·ln(x/mean) + mean − x
        let t = (x - mean) / mean;
        if t.abs() > 0.1 {
            return x * (x / mean).ln() + mean - x;
        }
        // mean·((1+t)ln(1+t) − t) = mean·Σ over n ≥ 2 of (−t)^n/(n(n−1))
        let (mut sum, mut power, mut n) = (0.0, t * t, 2.0);
        loop {
            let add: f64 = power / (n * (n - 1.0));
            if sum + add == sum {
                return mean * sum;
            }
            sum += add;
            power *= -t;
            n += 1.0;
        }
    };
    stirling_rest(k) - stirling_rest(l) - stirling_rest(k - l) - deviance(l, k * p) - deviance(k - l, k * (1.0 - p))
        + 0.5 * (k / (l * (k - l) * std::f64::consts::TAU)).ln()
}

/// ln n! − ln(√(2πn)·(n/e)^n), for whole n ≥ 1.
fn stirling_rest(n: f64) -> f64 {
    if n < 16.0 {
        return libm::lgamma(n + 1.0) - (n + 0.5) * n.ln() + n - 0.5 * std::f64::consts::TAU.ln();
    }
    let square = 1.0 / (n * n);
    (1.0 / 12.0 - square * (1.0 / 360.0 - square * (1.0 / 1260.0 - square * (1.0 / 1680.0 - square / 1188.0)))) / n
}

/// The smallest ε at δ of the worst runs that are all alike, rounded up by a hair; infinite where the δ of the runs alone come to more.
///
/// ```
/// use whit_account::accountant::advanced::kairouz_optimal_epsilon;
/// use whit_account::accountant::basic::Runs;
/// let epsilon = kairouz_optimal_epsilon(&Runs { epsilon: 0.1, delta: 0.0, times: 100 }, 1e-6);
/// assert!((epsilon - 4.774_567_588).abs() < 1e-8);
/// ```
pub fn kairouz_optimal_epsilon(runs: &Runs, delta: f64) -> f64 {
    if kairouz_optimal_delta(runs, 0.0) <= delta {
        return 0.0;
    }
    let (sum, aside) = compose(std::slice::from_ref(runs));
    if kairouz_optimal_delta(runs, sum) > delta {
        return if aside <= delta { sum } else { f64::INFINITY };
    }
    let (mut fails, mut holds) = (0.0, sum);
    while holds - fails > 1e-11 * holds && holds > 1e-300 {
        let middle = 0.5 * (fails + holds);
        if kairouz_optimal_delta(runs, middle) <= delta {
            holds = middle;
        } else {
            fails = middle;
        }
    }
    holds
}

/// Which part of δ the runs that are not pure may take, before the rest pays for composition.
const SHARES: [f64; 8] = [0.01, 0.05, 0.15, 0.3, 0.5, 0.7, 0.9, 0.99];

/// The exact δ of so many runs is a sum of about the root of their number of terms: beyond this it takes too long, and the closed
/// bounds alone are reported. When ε is searched through for a δ, it is asked for a hundred times.
const MOST_SUMMED: u64 = 1_000_000_000;
const MOST_SEARCHED: u64 = 1_000_000;

/// ε at δ: the least of all bounds here and the basic one, over several ways to divide δ.
pub fn epsilon(cost: &Cost, delta: f64) -> Result<f64, Unsupported> {
    check_delta(delta)?;
    let Some(split) = Split::of(cost)? else { return Ok(f64::INFINITY) };
    if let (true, Some(cost)) = (delta == 0.0, split.needs_delta()) {
        return Err(Unsupported::NeedsDelta { accountant: Name::Advanced, cost });
    }
    if delta >= 1.0 {
        return Ok(0.0);
    }
    epsilon_of(&split, delta, MOST_SUMMED)
}

fn epsilon_of(split: &Split, delta: f64, most: u64) -> Result<f64, Unsupported> {
    let mut least = basic::epsilon_of(split, delta)?;
    if delta == 0.0 {
        return Ok(least);
    }
    let aside = compose(&split.fixed).1;
    if split.sharers == 0 {
        return Ok(least.min(composed(&split.fixed, delta, most)));
    }
    for part in SHARES {
        let share = part * (delta - aside) / split.sharers as f64;
        if share > 0.0 {
            least = least.min(composed(&split.with(share)?, delta, most));
        }
    }
    Ok(least)
}

/// The least of the bounds for runs whose (ε, δ) are fixed, at a total δ.
fn composed(runs: &[Runs], delta: f64, most: u64) -> f64 {
    let mut least = f64::INFINITY;
    let left = delta - compose(runs).1;
    if left > 0.0 {
        least = least.min(dwork_roth(runs, left).0 * (1.0 + 1e-14)).min(element_level(runs, left).0 * (1.0 + 1e-14));
    }
    // 1 − (1−δ′)·Π(1−δ) = δ, solved for δ′
    let left = -((-delta).ln_1p() - total(runs, |run| (-run.delta).ln_1p())).exp_m1() * (1.0 - 1e-12);
    if left > 0.0 {
        least = least.min(kairouz_simple(runs, left).0 * (1.0 + 1e-14));
        // Runs that differ are no worse than if each had the largest ε of them.
        let epsilon = runs.iter().map(|run| run.epsilon).fold(0.0, f64::max);
        let times = runs.iter().fold(0_u64, |sum, run| sum.saturating_add(run.times));
        if times <= most {
            least = least.min(kairouz_optimal_epsilon(&Runs { epsilon, delta: 0.0, times }, left));
        }
    }
    least
}

/// δ at ε.
pub fn delta(cost: &Cost, epsilon: f64) -> Result<f64, Unsupported> {
    check_epsilon(epsilon)?;
    let Some(split) = Split::of(cost)? else { return Ok(1.0) };
    if split.needs_delta().is_none() && basic::epsilon_of(&split, 0.0)? <= epsilon {
        return Ok(0.0);
    }
    if let ([only], 0) = (split.fixed.as_slice(), split.sharers)
        && only.times <= MOST_SUMMED
    {
        return Ok(kairouz_optimal_delta(only, epsilon)); // exact, so the least of all
    }
    invert(epsilon, |delta| if delta >= 1.0 { Ok(0.0) } else { epsilon_of(&split, delta, MOST_SEARCHED) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use whit_core::{Change, Delta, Draw, Epsilon, Sampled, Sampling};

    fn alike(epsilon: f64, delta: f64, times: u64) -> Runs {
        Runs { epsilon, delta, times }
    }

    /// Erratum E6: the printed δ′ + Σδ/(1+e^ε) is below the exact δ at the printed ε; δ′ + Σδ is not.
    #[test]
    fn the_element_level_papers_delta_is_too_small() {
        let (runs, delta_prime) = (alike(0.1, 1e-3, 10), 1e-6);
        let (epsilon, corrected) = element_level(&[runs], delta_prime);
        let printed = delta_prime + 10.0 * 1e-3 / (1.0 + 0.1_f64.exp());
        let exact = kairouz_optimal_delta(&runs, epsilon);
        assert!((epsilon - 3.0291).abs() < 1e-4 && (printed - 0.004_751_2).abs() < 1e-7);
        assert!((exact - 0.009_955_1).abs() < 1e-7);
        assert!(printed < exact && exact <= corrected);
        // The extreme case: with ε = 0, a run that shows its bit with probability δ has total variation δ, not δ/2.
        assert!(kairouz_optimal_delta(&alike(0.0, 0.01, 1), 0.0) >= 0.01 * (1.0 - 1e-12));
    }

    #[test]
    fn the_element_level_papers_constants_are_worse_than_a_plain_sum_where_others_are_better() {
        let runs = [alike(0.1, 0.0, 100)];
        assert!((element_level(&runs, 1e-6).0 - 10.605).abs() < 1e-3);
        assert!((dwork_roth(&runs, 1e-6).0 - 6.3082).abs() < 1e-4);
        assert!((kairouz_simple(&runs, 1e-6).0 - 5.7561).abs() < 1e-4);
        assert!((kairouz_optimal_epsilon(&runs[0], 1e-6) - 4.7746).abs() < 1e-4);
    }

    /// Erratum T1: (ε√(T·ln(1/δ)), (T+1)δ) lacks a √2 and the drift.
    #[test]
    fn the_slides_rule_for_many_runs_is_too_small() {
        let printed = |times: f64| 0.1 * (times * 1e6_f64.ln()).sqrt();
        let hundred = alike(0.1, 1e-6, 100);
        assert!((printed(100.0) - 3.7169).abs() < 1e-4);
        assert!((kairouz_optimal_delta(&hundred, printed(100.0)) - 2.1816e-4).abs() < 1e-8);
        assert!(kairouz_optimal_delta(&hundred, printed(100.0)) > 1.01e-4);
        assert!((kairouz_optimal_epsilon(&hundred, 1.01e-4) - 4.7739).abs() < 1e-4);
        let many = kairouz_optimal_epsilon(&alike(0.1, 1e-6, 10_000), 10_001.0 * 1e-6);
        assert!((printed(10_000.0) - 37.17).abs() < 1e-2 && (many - 87.88).abs() < 1e-2, "{many}");
        let cost = Cost::Approximate { epsilon: Epsilon::new(0.1).unwrap(), delta: Delta::new(1e-6).unwrap() };
        assert!(epsilon(&cost.repeat(100), 1.01e-4).unwrap() >= 4.7739 - 1e-4);
    }

    #[test]
    fn binomial_probabilities_add_up_to_one_for_any_number_of_runs() {
        for (k, p) in [(1.0, 0.3), (7.0, 0.5), (40.0, 0.01), (300.0, 0.49)] {
            let sum: f64 = (0..=k as u32).map(|l| ln_binomial(k, f64::from(l), p).exp()).sum();
            assert!((sum - 1.0).abs() < 1e-13, "k {k} p {p}: {sum}");
        }
        let (k, p) = (1e8, 0.4999);
        let window = (-60_000..=60_000).map(|step| k * p + f64::from(step));
        let sum: f64 = window.map(|l| ln_binomial(k, l.round(), p).exp()).sum();
        assert!((sum - 1.0).abs() < 1e-11, "{sum}");
    }

    #[test]
    fn a_hundred_million_runs_are_no_trouble() {
        // ε₀ = 1e-4, k = 1e8: ε₀√k = 1, so this is close to Gaussian noise with μ = 1.
        let runs = alike(1e-4, 0.0, 100_000_000);
        let exact = kairouz_optimal_epsilon(&runs, 1e-5);
        assert!((exact - 4.377_178).abs() < 1e-3, "{exact}");
        assert!(exact < kairouz_simple(&[runs], 1e-5).0);
        for epsilon in [1e-9, 1e-3, 0.5, 3.0] {
            let all = kairouz_optimal_epsilon(&alike(epsilon, 0.0, 100_000_000), 1e-9);
            assert!(all.is_finite() && all <= epsilon * 1e8 * (1.0 + 1e-12), "{epsilon}: {all}");
        }
    }

    #[test]
    fn a_mixed_bag_never_costs_more_than_its_sum_and_no_less_than_its_parts() {
        let step = Cost::Sampled(Sampled {
            noise: 1.0,
            rate: 0.01,
            sampling: Sampling::Poisson,
            draw: Draw::Unit,
            change: Change::AddRemove,
            difference: 2.0,
            holds: 1,
        });
        let pure = Cost::Pure { epsilon: Epsilon::new(0.05).unwrap() };
        for cost in [
            step.clone().repeat(1000),
            Cost::Series(vec![step.clone().repeat(300), pure.clone().repeat(200), Cost::Gaussian { noise: 20.0 }]),
            pure.clone().repeat(3),
        ] {
            let advanced = epsilon(&cost, 1e-5).unwrap();
            assert!(advanced <= super::super::basic::epsilon(&cost, 1e-5).unwrap());
            let back = delta(&cost, advanced).unwrap();
            assert!(back <= 1e-5 * (1.0 + 1e-6), "{back}");
        }
        // The exact ε of these thousand steps is 1.828.
        assert!(epsilon(&step.repeat(1000), 1e-5).unwrap() >= 1.828);
        assert_eq!(delta(&pure, 0.06).unwrap(), 0.0);
    }
}
