//! The loss between the two mixtures of the key lemma (see [`pair`](crate::accountant::pair)), read so that nothing cancels.

use super::{FAR, LossCurve, Masses, knots_around, solve};
use crate::accountant::pair::ln_add;
use crate::normal::upper_tail;

/// (1−q)N(0) + qN(r) against (1−q)N(0) + qN(r − d), with r and d in units of the noise.
///
/// It is read along u = x − (r − d/2), the distance from where the loss is 0, so that nothing cancels: the drawn means
/// are at ±d/2, the undrawn one at d/2 − r, and the loss is ln(1 + b·(e^(d·u) − 1)), b being the share of the drawn part in Q.
/// The loss rises where it is positive, and everywhere if d ≥ r.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PairLoss {
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

impl PairLoss {
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

impl LossCurve for PairLoss {
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
pub(crate) struct DippingLoss {
    pair: PairLoss,
    lowest: f64,
}

impl DippingLoss {
    pub(crate) fn new(pair: PairLoss) -> Self {
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

impl LossCurve for DippingLoss {
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
