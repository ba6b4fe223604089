//! The law of the loss in one step, and in one direction: what P and Q give to where the loss is large.
//!
//! The loss is ln dP/dQ of the output. A law is read along a coordinate u in which the loss never falls: the output
//! itself for mixtures of Gaussians, the loss where there is no better one. Nothing here is discretised yet.

mod mixture;
mod pair;

pub(crate) use mixture::MixtureLoss;
pub(crate) use pair::{DippingLoss, PairLoss};

use crate::normal::upper_tail;

/// The mass that P and that Q give to one event.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Masses {
    pub(crate) p: f64,
    pub(crate) q: f64,
}

/// A law whose loss rises continuously with a coordinate; atoms may sit at either end.
pub(crate) trait LossCurve {
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

/// Laplace noise of scale 1 on a distance ε: atoms at ±ε, and between them a density.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LaplaceLoss {
    pub(crate) epsilon: f64,
}

impl LossCurve for LaplaceLoss {
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
pub(crate) struct BoundedRangeLoss {
    pub(crate) epsilon: f64,
}

impl LossCurve for BoundedRangeLoss {
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
pub(crate) struct RevealedLoss {
    /// (weight, μ), every μ greater than 0; what is missing from 1 has no loss at all.
    pub(crate) parts: Vec<(f64, f64)>,
}

impl LossCurve for RevealedLoss {
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

    /// The same as [`geometric`](Self::geometric) when only three things are distinguished: outputs up to 0, from `shift`
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
    fn is_a_law(curve: &dyn LossCurve) {
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
                    let pair = PairLoss::new(rate, reach, reach - apart);
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
        is_a_law(&PairLoss::new(0.1, 1.0, -1.0));
        is_a_law(&MixtureLoss::sided(0.01, 0.25));
        is_a_law(&MixtureLoss::sided(0.01, 0.25).reversed());
        is_a_law(&DippingLoss::new(PairLoss::new(0.3, 3.0, 1.0)));
        is_a_law(&DippingLoss::new(PairLoss::new(0.01, 7.5, 7.0)));
        is_a_law(&LaplaceLoss { epsilon: 0.8 });
        is_a_law(&BoundedRangeLoss { epsilon: 1.3 });
        is_a_law(&RevealedLoss { parts: vec![(0.1, 0.5), (0.01, 1.0)] });
    }

    #[test]
    fn a_loss_is_found_where_it_is() {
        let pair = PairLoss::new(0.01, 0.25, -0.25);
        for loss in [-0.01, -1e-5, 0.0, 1e-6, 0.003, 0.5, 3.0] {
            assert!((pair.loss(pair.place(loss, 0.0)) - loss).abs() < 1e-14, "{loss}");
        }
        let bounded = MixtureLoss::sided(0.01, 0.25).reversed();
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
