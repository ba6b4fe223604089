//! What the number of right guesses about many units of one run says about ε (Steinke, Nasr, Jagielski 2023, *Privacy
//! auditing with one (1) training run*).
//!
//! Each of m units is in one of two states by a fair coin S_i of its own, and two data sets that differ in one coin are
//! neighbours. Who attacks sees what the mechanism released, guesses r of the coins and keeps silent about the others:
//! T_i is 1, −1 or 0.
//!
//! **Pure ε.** *Claim:* the number W of right guesses is, in distribution, at most that of r coins which fall right
//! with probability q = e^ε/(e^ε + 1). *Why:* fix the guesses t and the coins before the i-th. With A and B for the
//! probabilities of t when coin i is t_i and when it is −t_i, averaged over later coins, A ≤ e^ε·B; and as the coin is
//! fair, it is t_i with probability A/(A + B) ≤ q given t. So, coin by coin, W is no more than a sum of independent
//! coins of bias q, whatever t is.
//!
//! **(ε, δ).** *Claim:* P[W ≥ v] ≤ P[V ≥ v] + m·δ·min(2α, 1 − q), where V is that sum and α = max over i ≥ 1 of P[v − i
//! ≤ V < v]/i. *Why, for the first of the two:* the main theorem of the paper. *For the second:* A/(A + B) = q + (1 −
//! q)·(A − e^ε·B)/(A + B), which is at most q + f with f = (1 − q)·max(0, A − e^ε·B)/(A + B). The guesses t have
//! probability (A + B)/2, so f is on average at most ½·(1 − q)·Σ max(0, A − e^ε·B). That sum is at most δ over all t
//! with t_i = 1, and again over those with t_i = −1; together f ≤ (1 − q)·δ. Draw one uniform number for each coin: it
//! decides the coin of bias q, and with probability f beyond that the guess is right on top. W exceeds V only if that
//! happens once, and the chance of it is at most m·(1 − q)·δ.

/// P[k of n] for every k.
pub(crate) fn binomial(n: usize, p: f64) -> Vec<f64> {
    let factorial = |n: usize| libm::lgamma(n as f64 + 1.0);
    let at = |k: usize| {
        let ways = factorial(n) - factorial(k) - factorial(n - k);
        (ways + k as f64 * p.ln() + (n - k) as f64 * (-p).ln_1p()).exp()
    };
    (0..=n).map(at).collect()
}

/// One attack: so many units had a coin, so many of the coins were guessed, and so many of the guesses were right.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Guesses {
    pub(crate) units: usize,
    pub(crate) made: usize,
    pub(crate) right: usize,
}

impl Guesses {
    /// At most this is the chance of so many right guesses, or more, about a mechanism that is (ε, δ).
    pub(crate) fn chance(self, epsilon: f64, delta: f64) -> f64 {
        let q = 1.0 / (1.0 + (-epsilon).exp());
        let law = binomial(self.made, q);
        let reached: f64 = law[self.right..].iter().sum();
        let (mut below, mut steepest) = (0.0, 0.0_f64);
        for i in 1..=self.right {
            below += law[self.right - i];
            steepest = steepest.max(below / i as f64);
        }
        reached + self.units as f64 * delta * (2.0 * steepest).min(1.0 - q)
    }

    /// A lower bound on ε at δ that is too high with probability at most `alarm`: a mechanism with this ε, and so one
    /// with a smaller ε, has fewer right guesses but for that chance.
    pub(crate) fn epsilon(self, delta: f64, alarm: f64) -> f64 {
        let refuted = |epsilon: f64| self.chance(epsilon, delta) <= alarm;
        if !refuted(0.0) {
            return 0.0;
        }
        let (mut low, mut high) = (0.0, 20.0);
        for _ in 0..40 {
            let middle = f64::midpoint(low, high);
            if refuted(middle) { low = middle } else { high = middle }
        }
        low
    }
}

/// The chance that this many right guesses, or more, are seen, from the law of their number.
fn at_least(law: &[f64], right: usize) -> f64 {
    law[right..].iter().sum()
}

/// How likely it is that the bound for all guesses of randomised response is above `line`, exactly, where each is right
/// with probability `p`.
fn bound_is_above(line: f64, units: usize, p: f64) -> f64 {
    let bound = |right| Guesses { units, made: units, right }.epsilon(0.0, 0.05);
    // More right guesses prove more.
    let (mut low, mut high) = (0, units + 1);
    while low < high {
        let middle = usize::midpoint(low, high);
        if bound(middle) > line { high = middle } else { low = middle + 1 }
    }
    if low > units { 0.0 } else { at_least(&binomial(units, p), low) }
}

fn accuracy(epsilon: f64) -> f64 {
    1.0 / (1.0 + (-epsilon).exp())
}

/// Randomised response attains the theorem, so its ε is exceeded about as often as is allowed, and the bound is close
/// to it.
#[test]
fn the_bound_holds_for_randomised_response_and_is_close() {
    for (units, near) in [(100, 0.4), (1000, 0.8)] {
        for epsilon in [0.5, 1.0, 2.0, 3.0] {
            let above = bound_is_above(epsilon, units, accuracy(epsilon));
            assert!(above <= 0.05 && above > 0.02, "ε = {epsilon}, {units} units: exceeded with probability {above}");
            let close = bound_is_above(near * epsilon, units, accuracy(epsilon));
            assert!(close > 0.5 || epsilon < 1.0, "ε = {epsilon}, {units} units: {close}");
        }
    }
}

/// Twice the claimed ε is found out almost surely by 200 guesses, and a tenth more is not.
#[test]
fn a_violation_of_known_size_is_found() {
    assert!(bound_is_above(1.0, 200, accuracy(2.0)) > 0.99);
    assert!(bound_is_above(2.0, 200, accuracy(4.0)) > 0.999);
    assert!(bound_is_above(1.0, 200, accuracy(1.1)) < 0.2);
}

/// Two mechanisms that are (ε, δ) and known exactly: one shows all coins with probability δ, the other each of them;
/// else they answer by randomised response. The bound without δ is wrong about both.
#[test]
fn delta_is_counted_and_has_to_be() {
    for units in [5, 30, 200] {
        for epsilon in [0.0, 1.0, 3.0] {
            for delta in [1e-5, 1e-3, 0.05] {
                let q = accuracy(epsilon);
                let answers = binomial(units, q);
                let each = binomial(units, q + (1.0 - q) * delta);
                let (mut wrong_of_all, mut wrong_of_each) = (0, 0);
                for right in 1..=units {
                    let all = (1.0 - delta) * at_least(&answers, right) + delta;
                    let each = at_least(&each, right);
                    let guesses = Guesses { units, made: units, right };
                    let most = guesses.chance(epsilon, delta) * (1.0 + 1e-9);
                    assert!(all <= most && each <= most, "{all} and {each} of {most}: {guesses:?}, ε = {epsilon}");
                    let pure = guesses.chance(epsilon, 0.0) * (1.0 + 1e-9);
                    wrong_of_all += usize::from(all > pure);
                    wrong_of_each += usize::from(each > pure);
                }
                assert!(wrong_of_all > 0 && wrong_of_each > 0, "{units} units, ε = {epsilon}, δ = {delta}");
            }
        }
    }
}
