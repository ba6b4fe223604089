//! Which tilt, and which window: a rough look at the laws. A bad plan costs sharpness, never soundness.

use super::compose::{Sketch, sketch_cumulant};
use super::lattice;
use super::problem::StepLaw;

/// A sketch of a law: (loss, mass) in rough cells.
pub(super) fn sketch(law: &StepLaw) -> Vec<(f64, f64)> {
    match law {
        StepLaw::Atoms(atoms) => atoms.atoms.clone(),
        StepLaw::Curve { curve, reflect } => {
            let mut knots = curve.knots();
            if *reflect {
                let zero = curve.place(0.0, f64::NAN);
                knots.retain(|u| *u > zero);
                knots.insert(0, zero);
            }
            let ends: Vec<_> = knots.iter().map(|&u| lattice::at(&**curve, u)).collect();
            let cells = ends.windows(2).map(|ends| lattice::cell(ends[0], ends[1]).0);
            // The average loss of a cell, as far as rounding lets it be seen.
            let cells =
                cells.zip(&knots).map(|(c, &u)| (if c.q > 0.0 { (c.p / c.q).ln() } else { curve.loss(u) }, c.p));
            let mut points: Vec<(f64, f64)> = cells.filter(|cell| cell.1 > 0.0).collect();
            if let (false, [first, .., last]) = (*reflect, &knots[..]) {
                points.push((curve.loss(*first), curve.below(*first).p));
                points.push((curve.loss(*last), curve.above(*last).p));
            }
            if *reflect {
                let mirrored: Vec<_> = points.iter().map(|&(l, p)| (-l, p * (-l).exp())).collect();
                let rest = 1.0 - points.iter().chain(&mirrored).map(|point| point.1).sum::<f64>();
                points.extend(mirrored);
                points.push((0.0, rest.max(0.0)));
            }
            points
        }
    }
}

/// Which tilt, and where the window lies.
#[derive(Debug, Clone, Copy)]
pub(super) struct TiltPlan {
    pub(super) theta: f64,
    pub(super) low: f64,
    pub(super) high: f64,
    /// The standard deviation of the composed, tilted loss.
    pub(super) spread: f64,
    /// The same without the tilt.
    pub(super) calm: f64,
}

/// Solves `rising(θ) = 0` for θ > 0 by bisection on ln θ, to less than a hundredth: a plan needs no more.
fn tilt_where(rising: impl Fn(f64) -> f64) -> f64 {
    let (mut low, mut high) = (-16.0_f64, 25.0_f64);
    for _ in 0..16 {
        let middle = f64::midpoint(low, high);
        if rising(middle.exp()) < 0.0 { low = middle } else { high = middle }
    }
    low.exp()
}

impl TiltPlan {
    /// For ε at δ: the tilt of Chernoff's bound, θK′ − K = ln(1/δ), puts the bulk at the bound on ε that it gives.
    pub(super) fn for_delta(sketch: &Sketch, delta: f64) -> Self {
        let aim = (1.0 / delta).ln().max(0.1);
        let theta = tilt_where(|theta| {
            let (k, mean, _) = sketch_cumulant(sketch, theta);
            theta * mean - k - aim
        });
        Self::around(sketch, theta)
    }

    /// A bounded loss that is tilted too far is nothing but its largest value: at most to where a fifth of the
    /// deviation is left.
    fn not_too_steep(sketch: &Sketch, theta: f64) -> f64 {
        let (_, _, calm) = sketch_cumulant(sketch, 0.0);
        let spare = |theta: f64| 0.04 * calm - sketch_cumulant(sketch, theta).2;
        if spare(theta) <= 0.0 { theta } else { theta.min(tilt_where(spare)) }
    }

    /// For δ at ε: the saddle point K′ = ε.
    pub(super) fn for_epsilon(sketch: &Sketch, epsilon: f64) -> Self {
        let theta = tilt_where(|theta| sketch_cumulant(sketch, theta).1 - epsilon);
        let (_, _, variance) = sketch_cumulant(sketch, theta);
        // Never so flat that what wraps around is not damped.
        let theta = theta.max(0.3 / variance.sqrt().max(1e-12));
        let mut plan = Self::around(sketch, theta);
        plan.low = plan.low.min(epsilon);
        plan.high = plan.high.max(epsilon + 4.0 * plan.spread);
        plan
    }

    fn around(sketch: &Sketch, theta: f64) -> Self {
        let theta = Self::not_too_steep(sketch, theta);
        let (_, mean, variance) = sketch_cumulant(sketch, theta);
        let spread = variance.sqrt().max(1e-9 * (1.0 + mean.abs()));
        let (_, _, calm) = sketch_cumulant(sketch, 0.0);
        Self { theta, low: mean - 1.5 * spread, high: mean + 4.0 * spread, spread, calm: calm.sqrt() }
    }
}
