//! The law of the loss in one step, and in one direction: what P and Q give to where the loss is large.
//!
//! The loss is ln dP/dQ of the output. A law is read along a coordinate u in which the loss never falls: the output
//! itself for mixtures of Gaussians, the loss where there is no better one. Nothing here is discretised yet.

use crate::accountant::pair::ln_add;
use crate::normal::upper_tail;

/// The mass that P and that Q give to one event.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Masses {
    pub(crate) p: f64,
    pub(crate) q: f64,
}

/// A law whose loss rises continuously with a coordinate; atoms may sit at either end.
pub(crate) trait Curve {
    /// What lies above u.
    fn above(&self, u: f64) -> Masses;
    /// What lies at or below u.
    fn below(&self, u: f64) -> Masses;
    /// The loss at u, never falling.
    fn loss(&self, u: f64) -> f64;
    /// The u at which the loss is `loss`; infinite where it never gets there. `near` is where to look first.
    fn place(&self, loss: f64, near: f64) -> f64;
    /// Coordinates that hold all but far less than any δ of P; between them the loss is finite.
    fn span(&self) -> (f64, f64);

    /// By how much the loss at [`place`](Self::place)`(l)`, which is u, may differ from l: what rounding leaves.
    fn astray(&self, _u: f64) -> f64 {
        0.0
    }
    /// How many Gaussians are added up at each u, or 1: what a question costs in time.
    fn parts(&self) -> usize {
        1
    }

    /// By how much a tail of size 1 may be off, relatively: the complementary error function and a few products.
    fn rounding(&self) -> f64 {
        16.0 * f64::EPSILON
    }

    /// Coordinates that follow the law closely enough to plan with.
    fn knots(&self) -> Vec<f64> {
        let (low, high) = self.span();
        (0..=400).map(|i| low + (high - low) * f64::from(i) / 400.0).collect()
    }
}

/// Means beyond this are as good as infinite: a loss below 600, or an overlap that is a number at all, is more than 50
/// deviations away from each of them.
pub(crate) const FAR: f64 = 200.0;

/// The u between the ends of `span` at which a rising loss is `loss`; infinite where it never gets there.
///
/// `sharp` is the largest slope that the loss can have. From a neighbour Newton's method needs two or three steps; each
/// squares the error, so that after a step of 1e-8/sharp the loss is off by rounding only.
fn solve(
    loss_and_slope: impl Fn(f64) -> (f64, f64),
    (mut low, mut high): (f64, f64),
    sharp: f64,
    loss: f64,
    near: f64,
) -> f64 {
    let mut u = near;
    for _ in 0..6 {
        let (value, slope) = loss_and_slope(u);
        let step = (loss - value) / slope;
        u += step;
        if !(u > low && u < high) {
            break;
        }
        if step.abs() * (1.0 + sharp) <= 1e-8 {
            return u;
        }
    }
    if loss_and_slope(high).0 <= loss {
        return f64::INFINITY;
    }
    if loss_and_slope(low).0 >= loss {
        return f64::NEG_INFINITY;
    }
    // Newton's method, kept inside a bracket that every step shrinks.
    let mut u = if near > low && near < high { near } else { f64::midpoint(low, high) };
    for _ in 0..200 {
        let (value, slope) = loss_and_slope(u);
        if value < loss {
            low = u;
        } else {
            high = u;
        }
        let next = u + (loss - value) / slope;
        let next = if next > low && next < high { next } else { f64::midpoint(low, high) };
        let step = (next - u).abs();
        u = next;
        if step <= 2e-16 * u.abs().max(1e-300) {
            break;
        }
    }
    u
}

/// Places around means that follow Gaussians of deviation 1 closely enough to plan with.
fn knots_around(means: impl Iterator<Item = f64>, (low, high): (f64, f64)) -> Vec<f64> {
    let offsets = (-76..=76).map(|i: i32| f64::from(i) / 2.0).chain((-64..=64).map(|i: i32| f64::from(i) / 8.0));
    let offsets: Vec<f64> = offsets.collect();
    let mut knots: Vec<f64> = means.flat_map(|m| offsets.iter().map(move |o| m + o)).collect();
    knots.retain(|u| *u > low && *u < high);
    knots.extend([low, high]);
    knots.sort_by(f64::total_cmp);
    knots.dedup_by(|a, b| *a - *b < 1e-3);
    knots
}

/// A mixture of unit Gaussians against another: Σ wᵢ·N(mᵢ, 1), with a loss that never falls.
#[derive(Debug, Clone)]
pub(crate) struct Mixture {
    /// (weight, logarithm of the weight, mean), of P.
    p: Vec<(f64, f64, f64)>,
    /// The same of Q.
    q: Vec<(f64, f64, f64)>,
    /// Every mean, with its weight in P and in Q.
    means: Vec<(f64, f64, f64)>,
    largest: f64,
}

fn components(parts: &[(f64, f64)]) -> Vec<(f64, f64, f64)> {
    let near = |mean: f64| mean.clamp(-FAR, FAR); // see `FAR`
    parts.iter().filter(|part| part.0 > 0.0).map(|&(weight, mean)| (weight, weight.ln(), near(mean))).collect()
}

impl Mixture {
    pub(crate) fn new(p: &[(f64, f64)], q: &[(f64, f64)]) -> Self {
        let (p, q) = (components(p), components(q));
        let largest = p.iter().chain(&q).map(|part| part.2.abs()).fold(0.0, f64::max);
        let means = Self::means(&p, &q);
        Self { p, q, means, largest }
    }

    fn means(p: &[(f64, f64, f64)], q: &[(f64, f64, f64)]) -> Vec<(f64, f64, f64)> {
        let mut means: Vec<f64> = p.iter().chain(q).map(|part| part.2).collect();
        means.sort_by(f64::total_cmp);
        means.dedup();
        let weight =
            |parts: &[(f64, f64, f64)], m: f64| parts.iter().filter(|part| part.2 == m).map(|part| part.0).sum();
        means.into_iter().map(|m| (m, weight(p, m), weight(q, m))).collect()
    }

    /// (1−q)N(0) + qN(reach) against N(0), in units of the noise.
    pub(crate) fn sided(rate: f64, reach: f64) -> Self {
        Self::new(&[(1.0 - rate, 0.0), (rate, reach)], &[(1.0, 0.0)])
    }

    /// Mirrored and with P and Q swapped: the other direction.
    pub(crate) fn reversed(&self) -> Self {
        // `0 − m`, so that a mean of 0 stays the same 0.
        let mirror = |parts: &[(f64, f64, f64)]| parts.iter().map(|&(w, ln, m)| (w, ln, 0.0 - m)).collect::<Vec<_>>();
        let (p, q) = (mirror(&self.q), mirror(&self.p));
        let means = Self::means(&p, &q);
        Self { p, q, means, largest: self.largest }
    }

    /// ln Σ wᵢ·exp(mᵢ·u − mᵢ²/2), and the mean of mᵢ under those weights, which is its slope.
    fn tilt(parts: &[(f64, f64, f64)], u: f64) -> (f64, f64) {
        if let [(_, _, m)] = parts {
            return (m * (u - m / 2.0), *m);
        }
        // The weights add up to 1, so that the logarithm of a sum close to 1 is seen to the last digit.
        let largest = parts.iter().map(|&(_, _, m)| m * (u - m / 2.0)).fold(f64::NEG_INFINITY, f64::max);
        if largest < 600.0 {
            let (mut excess, mut sum, mut slope) = (0.0, 0.0, 0.0);
            for &(w, _, m) in parts {
                let power = m * (u - m / 2.0);
                let term = w * power.exp();
                excess += w * power.exp_m1();
                sum += term;
                // Not w + w·(e^power − 1), which far to the left is nothing but rounding, of either sign.
                slope += term * m;
            }
            // Far below 1 it is the excess that is nothing but rounding: a rate of 1 − 1e-16 leaves 1e-16 of the sum.
            return (if excess > -0.5 { excess.ln_1p() } else { sum.ln() }, slope / sum);
        }
        let peak = parts.iter().map(|&(_, ln, m)| ln + m * (u - m / 2.0)).fold(f64::NEG_INFINITY, f64::max);
        let (mut sum, mut slope) = (0.0, 0.0);
        for &(_, ln, m) in parts {
            let term = (ln + m * (u - m / 2.0) - peak).exp();
            sum += term;
            slope += term * m;
        }
        (peak + sum.ln(), slope / sum)
    }

    fn loss_and_slope(&self, u: f64) -> (f64, f64) {
        let (p, q) = (Self::tilt(&self.p, u), Self::tilt(&self.q, u));
        (p.0 - q.0, p.1 - q.1)
    }

    fn total(&self, tail: impl Fn(f64) -> f64) -> Masses {
        self.means.iter().fold(Masses { p: 0.0, q: 0.0 }, |sum, &(m, p, q)| {
            let tail = tail(m);
            Masses { p: sum.p + p * tail, q: sum.q + q * tail }
        })
    }
}

impl Curve for Mixture {
    fn above(&self, u: f64) -> Masses {
        self.total(|m| upper_tail(u - m))
    }

    fn below(&self, u: f64) -> Masses {
        self.total(|m| upper_tail(m - u))
    }

    fn loss(&self, u: f64) -> f64 {
        self.loss_and_slope(u).0
    }

    fn place(&self, loss: f64, near: f64) -> f64 {
        solve(|u| self.loss_and_slope(u), self.span(), self.largest, loss, near)
    }

    fn span(&self) -> (f64, f64) {
        (-39.0 - self.largest, 39.0 + self.largest)
    }

    /// Each exponent m·(u − m/2) is rounded twice, and u once; each counts by its share of the slope.
    fn astray(&self, u: f64) -> f64 {
        let (p, q) = (Self::tilt(&self.p, u), Self::tilt(&self.q, u));
        let slopes = p.1.abs() + q.1.abs();
        3.0 * f64::EPSILON * (slopes * (u.abs() + 0.5 * self.largest) + p.0.abs() + q.0.abs())
    }

    fn parts(&self) -> usize {
        self.means.len()
    }

    /// Weights of many parts come from a recurrence of three roundings a part.
    fn rounding(&self) -> f64 {
        (16.0 + 8.0 * self.means.len() as f64) * f64::EPSILON
    }

    fn knots(&self) -> Vec<f64> {
        // A mixture of very many parts is dense enough with a few of them.
        let stride = (self.p.len() + self.q.len()).div_ceil(8);
        knots_around(self.p.iter().chain(&self.q).step_by(stride).map(|part| part.2), self.span())
    }
}

/// (1−q)N(0) + qN(r) against (1−q)N(0) + qN(r − d), with r and d in units of the noise.
///
/// It is read along u = x − (r − d/2), the distance from where the loss is 0, so that nothing cancels: the drawn means
/// are at ±d/2, the undrawn one at d/2 − r, and the loss is ln(1 + b·(e^(d·u) − 1)), b being the share of the drawn part in Q.
/// The loss rises where it is positive, and everywhere if d ≥ r.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Pair {
    rate: f64,
    /// r and r − d.
    reach: f64,
    other: f64,
    apart: f64,
    /// ln(q/(1−q)).
    odds: f64,
    /// Where the loss begins to rise.
    floor: f64,
}

impl Pair {
    /// r and r − d are given, since r − d may be far smaller than the rounding of r.
    pub(crate) fn new(rate: f64, reach: f64, other: f64) -> Self {
        // A drawn mean beyond `FAR` is as good as infinite, and r − d < `APART` keeps the two more than 100 apart.
        let (reach, other) = (reach.min(FAR), other.clamp(-FAR, FAR));
        let (apart, odds) = (reach - other, rate.ln() - (-rate).ln_1p());
        let mut pair = Self { rate, reach, other, apart, odds, floor: f64::NEG_INFINITY };
        if other > 0.0 {
            pair.floor = pair.lowest();
        }
        pair
    }

    /// Where the undrawn mean is.
    fn undrawn(&self) -> f64 {
        0.5 * self.apart - self.reach
    }

    /// ln of what the drawn part of Q weighs over the undrawn one at u.
    fn leaning(&self, u: f64) -> f64 {
        self.odds + self.other * (u + 0.5 * self.reach)
    }

    /// The share of the drawn part in Q at u, and what is left.
    fn shares(&self, u: f64) -> (f64, f64) {
        let t = self.leaning(u);
        (1.0 / (1.0 + (-t).exp()), 1.0 / (1.0 + t.exp()))
    }

    fn loss_and_slope(&self, u: f64) -> (f64, f64) {
        let (drawn, rest) = self.shares(u);
        let power = self.apart * u;
        if power < 600.0 {
            let y = drawn * power.exp_m1();
            // P/Q is what is left and what is drawn, each positive.
            let (grown, sum) = (drawn * power.exp(), rest + drawn * power.exp());
            let loss = if y > -0.5 { y.ln_1p() } else { sum.ln() };
            // The drawn part's share in P times r, less that in Q times r − d.
            return (loss, self.apart * grown / sum + self.other * drawn * rest * power.exp_m1() / sum);
        }
        // ln(b·e^power + 1 − b), where the exponential is no number.
        let t = self.leaning(u);
        let (ln_grown, ln_rest) = (power - ln_add(0.0, -t), -ln_add(0.0, t));
        let loss = ln_add(ln_grown, ln_rest);
        let share = (ln_grown - loss).exp();
        (loss, self.apart * share + self.other * rest * share)
    }

    /// Where the loss is lowest, left of 0, by bisection on its slope.
    fn lowest(&self) -> f64 {
        let (mut low, mut high) = (self.undrawn() - 40.0, 0.0);
        for _ in 0..80 {
            let middle = f64::midpoint(low, high);
            if self.loss_and_slope(middle).1 > 0.0 { high = middle } else { low = middle }
        }
        high
    }

    fn ends(&self) -> (f64, f64) {
        (self.undrawn().min(-0.5 * self.apart) - 39.0, 39.0 + 0.5 * self.apart)
    }

    fn total(&self, tail: impl Fn(f64) -> f64) -> Masses {
        let undrawn = (1.0 - self.rate) * tail(self.undrawn());
        Masses { p: undrawn + self.rate * tail(0.5 * self.apart), q: undrawn + self.rate * tail(-0.5 * self.apart) }
    }
}

impl Curve for Pair {
    fn above(&self, u: f64) -> Masses {
        self.total(|m| upper_tail(u - m))
    }

    fn below(&self, u: f64) -> Masses {
        self.total(|m| upper_tail(m - u))
    }

    fn loss(&self, u: f64) -> f64 {
        self.loss_and_slope(u).0
    }

    fn place(&self, loss: f64, near: f64) -> f64 {
        if loss == 0.0 {
            return 0.0;
        }
        solve(|u| self.loss_and_slope(u), self.span(), self.reach + self.apart, loss, near)
    }

    fn span(&self) -> (f64, f64) {
        let (low, high) = self.ends();
        (low.max(self.floor), high)
    }

    /// An error of the share b of Q counts by at most 1 − b in the loss, one of d·u by its slope.
    fn astray(&self, u: f64) -> f64 {
        let (loss, slope) = self.loss_and_slope(u);
        let (_, rest) = self.shares(u);
        let share = self.odds.abs() + self.other.abs() * (u.abs() + 0.5 * self.reach);
        let part = (-loss).exp_m1().abs(); // near a loss of 0 the share hardly counts
        3.0 * f64::EPSILON * (slope.abs() * u.abs() + loss.abs() + rest * part * (1.0 + share))
    }

    fn knots(&self) -> Vec<f64> {
        knots_around([self.undrawn(), -0.5 * self.apart, 0.5 * self.apart].into_iter(), self.span())
    }
}

/// The pair (0; r, r − d) with r > d: its loss falls from 0 to a lowest point before it rises, so that it is read along
/// the loss itself; outputs on both sides of the dip have the same loss.
#[derive(Debug, Clone)]
pub(crate) struct Dip {
    pair: Pair,
    lowest: f64,
}

impl Dip {
    pub(crate) fn new(pair: Pair) -> Self {
        let lowest = pair.loss(pair.floor);
        Self { pair, lowest }
    }

    /// The outputs between which the loss is below `loss` < 0.
    fn ends(&self, loss: f64) -> (f64, f64) {
        let (mut low, mut high) = (self.pair.ends().0, self.pair.floor);
        for _ in 0..70 {
            let middle = f64::midpoint(low, high);
            if self.pair.loss(middle) > loss { low = middle } else { high = middle }
        }
        (low, self.pair.place(loss, f64::NAN).max(self.pair.floor))
    }
}

impl Curve for Dip {
    fn above(&self, u: f64) -> Masses {
        if u >= 0.0 {
            let place = self.pair.place(u, f64::NAN);
            return if place == f64::INFINITY { Masses { p: 0.0, q: 0.0 } } else { self.pair.above(place) };
        }
        if u < self.lowest {
            return Masses { p: 1.0, q: 1.0 };
        }
        let (left, right) = self.ends(u);
        let (a, b) = (self.pair.below(left), self.pair.above(right));
        Masses { p: a.p + b.p, q: a.q + b.q }
    }

    fn below(&self, u: f64) -> Masses {
        if u >= 0.0 {
            let place = self.pair.place(u, f64::NAN);
            return if place == f64::INFINITY { Masses { p: 1.0, q: 1.0 } } else { self.pair.below(place) };
        }
        if u < self.lowest {
            return Masses { p: 0.0, q: 0.0 };
        }
        let (left, right) = self.ends(u);
        let (a, b) = (self.pair.above(left), self.pair.above(right));
        let (c, d) = (self.pair.below(left), self.pair.below(right));
        // Each difference from the side on which it is the smaller.
        Masses { p: if a.p < 0.5 { a.p - b.p } else { d.p - c.p }, q: if a.q < 0.5 { a.q - b.q } else { d.q - c.q } }
    }

    fn loss(&self, u: f64) -> f64 {
        u
    }

    fn place(&self, loss: f64, _: f64) -> f64 {
        loss
    }

    fn span(&self) -> (f64, f64) {
        (self.lowest, self.pair.loss(self.pair.span().1))
    }

    /// Every place is searched for.
    fn parts(&self) -> usize {
        4
    }
}

/// Laplace noise of scale 1 on a distance ε: atoms at ±ε, and between them a density.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Laplace {
    pub(crate) epsilon: f64,
}

impl Curve for Laplace {
    fn above(&self, u: f64) -> Masses {
        if u >= self.epsilon {
            return Masses { p: 0.0, q: 0.0 };
        }
        if u < -self.epsilon {
            return Masses { p: 1.0, q: 1.0 };
        }
        // The loss is above u where the noise is below t.
        let t = (self.epsilon - u) / 2.0;
        Masses { p: 1.0 - (-t).exp() / 2.0, q: (t - self.epsilon).exp() / 2.0 }
    }

    fn below(&self, u: f64) -> Masses {
        if u >= self.epsilon {
            return Masses { p: 1.0, q: 1.0 };
        }
        if u < -self.epsilon {
            return Masses { p: 0.0, q: 0.0 };
        }
        let t = (self.epsilon - u) / 2.0;
        Masses { p: (-t).exp() / 2.0, q: 1.0 - (t - self.epsilon).exp() / 2.0 }
    }

    fn loss(&self, u: f64) -> f64 {
        u
    }

    fn place(&self, loss: f64, _: f64) -> f64 {
        loss
    }

    fn span(&self) -> (f64, f64) {
        (-self.epsilon, self.epsilon)
    }
}

/// The dominating law of all mechanisms of ε-bounded range.
///
/// # Why
/// For losses in [t − ε, t] the worst law has two atoms, and P(t) = (e^ε − e^t)/(e^ε − 1). Its profile at ε′ is
/// (e^ε − e^t)(1 − e^(ε′−t))/(e^ε − 1), largest at t = (ε + ε′)/2, where it is (1 − e^(−(ε−ε′)/2))²/(1 − e^-ε). This envelope
/// over all t is the profile of the law with P(L > l) = E(1 − s)/(E − 1) and Q(L > l) = (1/s − 1)/(E − 1), where E = e^ε
/// and s = e^((l−ε)/2), on [−ε, ε]; so it dominates each of them and may be composed.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Range {
    pub(crate) epsilon: f64,
}

impl Curve for Range {
    fn above(&self, u: f64) -> Masses {
        if u >= self.epsilon {
            return Masses { p: 0.0, q: 0.0 };
        }
        if u <= -self.epsilon {
            return Masses { p: 1.0, q: 1.0 };
        }
        // E/(E − 1) = 1/(1 − e^-ε); 1/(E − 1) likewise.
        let half = (u - self.epsilon) / 2.0;
        let scale = -(-self.epsilon).exp_m1();
        Masses { p: -half.exp_m1() / scale, q: (-half).exp_m1() * (-self.epsilon).exp() / scale }
    }

    fn below(&self, u: f64) -> Masses {
        let above = self.above(-u); // the law is its own mirror image
        Masses { p: above.q, q: above.p }
    }

    fn loss(&self, u: f64) -> f64 {
        u
    }

    fn place(&self, loss: f64, _: f64) -> f64 {
        loss
    }

    fn span(&self) -> (f64, f64) {
        (-self.epsilon, self.epsilon)
    }
}

/// Gaussian noise at a distance that is revealed: with weight wⱼ the loss is that of N(μⱼ) against N(0).
#[derive(Debug, Clone)]
pub(crate) struct Revealed {
    /// (weight, μ), every μ greater than 0; what is missing from 1 has no loss at all.
    pub(crate) parts: Vec<(f64, f64)>,
}

impl Curve for Revealed {
    fn rounding(&self) -> f64 {
        (16.0 + 8.0 * self.parts.len() as f64) * f64::EPSILON
    }

    fn parts(&self) -> usize {
        self.parts.len()
    }

    fn above(&self, u: f64) -> Masses {
        let rest = 1.0 - self.parts.iter().map(|part| part.0).sum::<f64>();
        let still = if u < 0.0 { rest.max(0.0) } else { 0.0 };
        Masses {
            p: still + self.parts.iter().map(|&(w, mu)| w * upper_tail(u / mu - mu / 2.0)).sum::<f64>(),
            q: still + self.parts.iter().map(|&(w, mu)| w * upper_tail(u / mu + mu / 2.0)).sum::<f64>(),
        }
    }

    fn below(&self, u: f64) -> Masses {
        let above = self.above(-u);
        Masses { p: above.q, q: above.p }
    }

    fn loss(&self, u: f64) -> f64 {
        u
    }

    fn place(&self, loss: f64, _: f64) -> f64 {
        loss
    }

    fn span(&self) -> (f64, f64) {
        let far = self.parts.iter().map(|&(_, mu)| mu * (39.0 + mu / 2.0)).fold(0.0, f64::max);
        (-far, far)
    }
}

/// A law of finitely many losses.
#[derive(Debug, Clone)]
pub(crate) struct Atoms {
    /// (loss, probability under P), by falling loss. Q has e^-loss times that.
    pub(crate) atoms: Vec<(f64, f64)>,
    /// The probability under P of an infinite loss: given, never the difference of the others from 1.
    pub(crate) infinite: f64,
}

impl Atoms {
    /// Randomised response: the worst law among those that are (ε, δ)-private (Kairouz, Oh, Viswanath 2015).
    pub(crate) fn response(epsilon: f64, delta: f64) -> Self {
        let truth = 1.0 / (1.0 + (-epsilon).exp());
        let lie = 1.0 / (1.0 + epsilon.exp());
        Self { atoms: vec![(epsilon, (1.0 - delta) * truth), (-epsilon, (1.0 - delta) * lie)], infinite: delta }
    }

    /// The same as [`geometric`](Self::geometric) when only three things are told apart: outputs up to 0, from `shift`
    /// on, and between; those between are as likely under P as under Q.
    pub(crate) fn three_bins(shift: u64, scale: f64) -> Self {
        let (end, epsilon) = (1.0 / (1.0 + (-1.0 / scale).exp()), shift as f64 / scale);
        let far = (-epsilon).exp() * end;
        Self { atoms: vec![(epsilon, end), (0.0, 1.0 - end - far), (-epsilon, far)], infinite: 0.0 }
    }

    /// Discrete Laplace noise on one integer that moves by `shift`: the loss is shift/scale for all outputs up to 0,
    /// (shift − 2z)/scale between, −shift/scale from `shift` on.
    pub(crate) fn geometric(shift: u64, scale: f64) -> Self {
        let (a, n) = ((-1.0 / scale).exp(), shift as f64);
        let point = -(-1.0 / scale).exp_m1() / (1.0 + a); // P(z = 0)
        let mut atoms = vec![(n / scale, 1.0 / (1.0 + a))];
        for z in 1..shift {
            atoms.push(((n - 2.0 * z as f64) / scale, point * (-(z as f64) / scale).exp()));
        }
        if shift > 0 {
            atoms.push((-n / scale, (-n / scale).exp() / (1.0 + a)));
        } else {
            atoms[0].1 = 1.0;
        }
        Self { atoms, infinite: 0.0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Along every curve Q is what P says it is: dQ = e^-loss·dP, checked cell by cell.
    fn is_a_law(curve: &dyn Curve) {
        let (low, high) = curve.span();
        let (low, high) = (low.max(-12.0), high.min(25.0));
        let cells = 4000;
        for i in 0..cells {
            let at = |i: i32| low + (high - low) * f64::from(i) / f64::from(cells);
            let (a, b) = (at(i), at(i + 1));
            let (p, q) = (curve.above(a).p - curve.above(b).p, curve.above(a).q - curve.above(b).q);
            let (floor, ceiling) = (curve.loss(a), curve.loss(b));
            assert!(floor <= ceiling + 1e-12, "the loss falls at {a}");
            assert!(p >= q * floor.exp() - 1e-14 && p <= q * ceiling.exp() + 1e-14, "cell {a}..{b}: {p} and {q}");
            let both = curve.above(a).p + curve.below(a).p;
            assert!((both - 1.0).abs() < 1e-14, "at {a} the halves add up to {both}");
        }
    }

    /// Where a loss dips before it rises, the lowest point is found, and so is where it turns positive: what lies above is the total variation, of which
    /// another formula knows the value.
    #[test]
    fn a_dip_is_found_wherever_it_is() {
        use crate::accountant::pair::{Dominating, step_delta};
        for rate in [1e-4, 0.01, 0.3, 0.577_301_211_825_141_8, 0.9] {
            for elements in [2_u32, 3, 5, 12, 35, 40] {
                for i in 0..400 {
                    let sigma = 0.3 + 0.05 * f64::from(i);
                    let (reach, apart) = (f64::from(elements) / sigma, 1.0 / sigma);
                    let pair = Pair::new(rate, reach, reach - apart);
                    let above = pair.above(pair.place(0.0, f64::NAN));
                    let exact = step_delta(&Dominating::Reflected { reach, apart }, rate, 1.0, 0.0);
                    let found = above.p - above.q;
                    assert!(
                        (found - exact).abs() <= 1e-9 * exact + 1e-15,
                        "rate {rate}, {elements} elements, noise {sigma}: {found} for {exact}"
                    );
                }
            }
        }
    }

    #[test]
    fn curves_give_q_what_the_loss_says() {
        is_a_law(&Pair::new(0.1, 1.0, -1.0));
        is_a_law(&Mixture::sided(0.01, 0.25));
        is_a_law(&Mixture::sided(0.01, 0.25).reversed());
        is_a_law(&Dip::new(Pair::new(0.3, 3.0, 1.0)));
        is_a_law(&Dip::new(Pair::new(0.01, 7.5, 7.0)));
        is_a_law(&Laplace { epsilon: 0.8 });
        is_a_law(&Range { epsilon: 1.3 });
        is_a_law(&Revealed { parts: vec![(0.1, 0.5), (0.01, 1.0)] });
    }

    #[test]
    fn a_loss_is_found_where_it_is() {
        let pair = Pair::new(0.01, 0.25, -0.25);
        for loss in [-0.01, -1e-5, 0.0, 1e-6, 0.003, 0.5, 3.0] {
            assert!((pair.loss(pair.place(loss, 0.0)) - loss).abs() < 1e-14, "{loss}");
        }
        let bounded = Mixture::sided(0.01, 0.25).reversed();
        assert_eq!(bounded.place(0.02, 0.0), f64::INFINITY, "the loss of an addition stays below −ln(1 − q)");
    }

    #[test]
    fn atoms_are_probabilities_on_both_sides() {
        let laws =
            [Atoms::response(1.0, 0.0), Atoms::geometric(1, 1.0), Atoms::geometric(7, 2.5), Atoms::three_bins(7, 2.5)];
        for law in laws {
            let (p, q) = law.atoms.iter().fold((0.0, 0.0), |(p, q), &(l, w)| (p + w, q + w * (-l).exp()));
            assert!((p - 1.0_f64).abs() < 1e-14 && (q - 1.0_f64).abs() < 1e-14, "{law:?}");
        }
    }
}
