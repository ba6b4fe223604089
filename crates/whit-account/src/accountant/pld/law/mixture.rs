//! The loss between two mixtures of unit Gaussians.

use super::{FAR, LossCurve, Masses, knots_around, solve};
use crate::normal::upper_tail;

/// A mixture of unit Gaussians against another: Σ wᵢ·N(mᵢ, 1), with a loss that never falls.
#[derive(Debug, Clone)]
pub(crate) struct MixtureLoss {
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

impl MixtureLoss {
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

impl LossCurve for MixtureLoss {
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
