//! A loss law put on a lattice of step h: once so that it dominates, once so that it is dominated.
//!
//! *From above* (connect the dots; Doroshenko et al. 2022): a cell of the law that gives mass (P, Q) is split between
//! the two lattice losses around it so that both masses are kept. The profile of the result is the chord where the
//! true one is convex, so it lies above it, by an amount of second order in h.
//!
//! *From below*: outputs are binned so that each bin's P/Q is *exactly* a lattice point. Binning is post-processing, so
//! the bins are no easier to tell apart than the law; and the average over a bin again errs in second order only. Mass
//! of P that is left out, or given a smaller loss, can only lower the result.

use super::law::{Atoms, LossCurve, Masses};

/// Mass at offset + i·step for whole i, and at infinity.
#[derive(Debug, Clone)]
pub(crate) struct LossLattice {
    /// The i of `mass[0]`.
    pub(crate) start: i64,
    /// Where the lattice's zero lies; not more than half a step from 0.
    pub(crate) offset: f64,
    pub(crate) mass: Vec<f64>,
    pub(crate) infinite: f64,
}

/// What rounding may have done to a tail of a curve: an error of the argument x counts x² times in e^(−x²/2), and x² is at
/// most twice the logarithm of one over the tail.
pub(crate) fn blur(curve: &dyn LossCurve, tail: f64) -> f64 {
    curve.rounding() * tail * (1.0 - 2.0 * tail.clamp(1e-305, 1.0).ln())
}

/// The most cells of one law; a plan that asks for more is answered with no protection, or with no attack.
const MOST_CELLS: f64 = 2_097_152.0;
/// Beyond this laws are not followed: means that are too far away are brought nearer, a larger loss counts as infinite, and a lower one is cut to it.
pub(crate) const LARGEST_LOSS: f64 = 600.0;

/// How far a loss may lie outside of its cell of width `step` before the cell is lifted: the driver pays for so much in every step.
pub(crate) fn allowance(step: f64) -> f64 {
    1e-14 + 1e-9 * step
}

/// A sum of many masses, with an error of a few units in the last place, however many they are (Neumaier 1974).
pub(crate) fn sum_of(masses: impl IntoIterator<Item = f64>) -> f64 {
    let (mut sum, mut rest) = (0.0_f64, 0.0_f64);
    for mass in masses {
        let next = sum + mass;
        rest += if sum.abs() >= mass.abs() { (sum - next) + mass } else { (mass - next) + sum };
        sum = next;
    }
    sum + rest
}

/// A cell of a law between two coordinates, computed from whichever side is the smaller; and the size, for P and for Q, of
/// what was subtracted.
pub(crate) fn cell(low: (Masses, Masses), high: (Masses, Masses)) -> (Masses, Masses) {
    // (above, below) at each end
    let between = |above_low: f64, above_high: f64, below_low: f64, below_high: f64| {
        if above_low < 0.5 {
            (above_low - above_high, above_low)
        } else if below_high < 0.5 {
            (below_high - below_low, below_high)
        } else {
            (1.0 - below_low - above_high, 1.0)
        }
    };
    let (p, p_scale) = between(low.0.p, high.0.p, low.1.p, high.1.p);
    let (q, q_scale) = between(low.0.q, high.0.q, low.1.q, high.1.q);
    (Masses { p: p.max(0.0), q: q.max(0.0) }, Masses { p: p_scale, q: q_scale })
}

pub(crate) fn at(curve: &dyn LossCurve, u: f64) -> (Masses, Masses) {
    let (none, all) = (Masses { p: 0.0, q: 0.0 }, Masses { p: 1.0, q: 1.0 });
    if u == f64::INFINITY {
        (none, all)
    } else if u == f64::NEG_INFINITY {
        (all, none)
    } else {
        let above = curve.above(u);
        // Where both are small from above, nobody asks how much is below.
        let small = above.p < 0.5 && above.q < 0.5;
        (above, if small { Masses { p: 1.0 - above.p, q: 1.0 - above.q } } else { curve.below(u) })
    }
}

/// Bisects for the coordinate beyond which `mass` is at most `cut`.
fn edge(curve: &dyn LossCurve, cut: f64, upper: bool) -> f64 {
    let (low, high) = curve.span();
    let (mut near, mut far) = if upper { (low, high) } else { (high, low) };
    for _ in 0..60 {
        let middle = f64::midpoint(near, far);
        let mass = if upper { curve.above(middle).p } else { curve.below(middle).p };
        if mass > cut { near = middle } else { far = middle }
    }
    far
}

/// The losses that cover all but `cut` of P on either side.
fn losses(curve: &dyn LossCurve, cut: f64) -> (f64, f64) {
    (curve.loss(edge(curve, cut, false)).max(-LARGEST_LOSS), curve.loss(edge(curve, cut, true)).min(LARGEST_LOSS))
}

/// How far these losses are apart, from 0 too.
pub(crate) fn range(curve: &dyn LossCurve, cut: f64) -> f64 {
    let (low, high) = losses(curve, cut);
    2.0 * high.abs().max(low.abs())
}

/// A lattice law that dominates the curve. With `reflect` only its positive losses are read, and the law is completed
/// so that it is its own mirror image (errata, key lemma).
pub(crate) fn dominating(curve: &dyn LossCurve, step: f64, cut: f64, reflect: bool) -> LossLattice {
    let (low, high) = losses(curve, cut);
    if !(high >= low && (high - low).max(high) / step < MOST_CELLS) {
        return LossLattice { start: 0, offset: 0.0, mass: vec![1.0], infinite: 1.0 };
    }
    let (first, last) = ((low / step).floor() as i64, (high / step).ceil() as i64);
    let (first, last) = if reflect { (0, last.max(1)) } else { (first, last.max(first + 1)) };
    let mut mass = vec![0.0; (last - first + 1) as usize];
    let shrink = -(-step).exp_m1(); // 1 − e^-h
    let astray = |u: f64| if u.is_finite() { curve.astray(u) } else { 0.0 };
    let mut place = curve.place(first as f64 * step, f64::NAN);
    let mut low = at(curve, place);
    let mut error = astray(place);
    let mut infinite = 0.0;
    if !reflect {
        mass[0] += low.1.p; // what has a smaller loss than the lattice is given the smallest
    }
    for i in first..last {
        place = curve.place((i + 1) as f64 * step, place);
        let high = at(curve, place);
        let (c, scale) = cell(low, high);
        let loss = i as f64 * step;
        let ratio = if loss.abs() > LARGEST_LOSS { 0.0 } else { loss.exp() };
        // P of the cell is off by so much, and e^loss·Q.
        let unsure = blur(curve, scale.p);
        let slack = ((unsure + ratio * blur(curve, scale.q)) / shrink).min(c.p);
        // P = u + v and Q = u·e^-l + v·e^-(l+h) for shares u and v at the cell's ends.
        let v = if ratio == 0.0 { c.p } else { ((c.p - ratio * c.q) / shrink).clamp(0.0, c.p) };
        // Where rounding may have put losses outside of the cell, they are given those of the cells above it.
        let next = astray(place);
        let worst = error.max(next);
        let lift = if worst > allowance(step) { (worst / step).ceil().min(1e9) as usize } else { 0 };
        let at = (i - first) as usize + lift;
        if at + 1 < mass.len() {
            mass[at] += c.p - v + slack;
            mass[at + 1] += v + slack + unsure;
        } else {
            infinite += c.p + unsure;
        }
        (low, error) = (high, next);
    }
    let infinite = (infinite + low.0.p + blur(curve, low.0.p)).min(1.0);
    if !reflect {
        return LossLattice { start: first, offset: 0.0, mass, infinite };
    }
    let positive = &mass[1..];
    let mut whole: Vec<f64> =
        positive.iter().zip(1_u32..).map(|(mass, i)| mass * (-f64::from(i) * step).exp()).collect();
    whole.reverse();
    let both = sum_of(positive.iter().chain(&whole).copied());
    whole.push((1.0 - both - infinite).max(0.0) + 4.0 * f64::EPSILON);
    whole.extend_from_slice(positive);
    LossLattice { start: -(positive.len() as i64), offset: 0.0, mass: whole, infinite }
}

/// A lattice law that the curve dominates.
///
/// The first bin is the heaviest cell, and the lattice is shifted so that its loss lies on it exactly: it may hold nearly
/// all of the mass (the unit was not drawn), and an error there would count in every step. From its two ends bins are
/// cut outwards.
pub(crate) fn dominated(curve: &dyn LossCurve, step: f64, cut: f64) -> LossLattice {
    let (bottom, top) = (edge(curve, cut, false), edge(curve, cut, true).min(curve.place(LARGEST_LOSS, f64::NAN)));
    let end = top.next_down(); // an atom at the top is a bin of its own
    let (low, high) = (curve.loss(bottom), curve.loss(top));
    if !(high >= low && (high - low) / step < MOST_CELLS) {
        return LossLattice { start: 0, offset: 0.0, mass: vec![0.0], infinite: 0.0 };
    }
    let has_atom = curve.below(bottom).p > 2.0 * cut + 1e-5 || curve.above(end).p > 2.0 * cut + 1e-5;
    // Where atoms sit at the ends, the driver has laid the lattice on them.
    let (left, right) =
        if has_atom { (curve.place(0.0, f64::NAN), None) } else { heaviest(curve, step, low, high, bottom, end) };
    let middle = right.map(|right| cell(at(curve, left), at(curve, right)).0);
    let loss = middle.map_or(0.0, |m| (m.p / m.q).ln());
    let offset = loss - (loss / step).round() * step;
    let index = |loss: f64| ((loss - offset) / step + 1e-9).floor() as i64;
    let first = index(low) - 1;
    let mut mass = vec![0.0; (index(high) - first + 2) as usize];
    let mut give = |loss: f64, p: f64| {
        let i = index(loss.min(LARGEST_LOSS)) - first;
        if i >= 0 {
            let i = (i as usize).min(mass.len() - 1);
            mass[i] += p * (1.0 - 1e-12);
        }
    };
    if let Some(middle) = middle {
        give(loss, middle.p);
    }
    for upwards in [true, false] {
        let mut from = if upwards { right.unwrap_or(left) } else { left };
        let mut here = at(curve, from);
        let mut centre = from;
        // From this end, bins around the lattice losses beyond it. One that is too close is passed over, since
        // rounding would hide so small a bin; the next one then takes its mass too.
        let mut passed = 0.02;
        loop {
            let at_end = (curve.loss(from) - offset) / step;
            let next = if upwards { (at_end + passed).floor() + 1.0 } else { (at_end - passed).ceil() - 1.0 };
            let loss = next * step + offset;
            centre = curve.place(loss, centre);
            if if upwards { centre >= end } else { centre <= bottom } {
                break;
            }
            let ratio = loss.exp();
            // How much P exceeds ratio·Q between this end and u.
            let excess = |u: f64| {
                let there = at(curve, u);
                let (c, scale) = if upwards { cell(here, there) } else { cell(there, here) };
                (c.p - ratio * c.q - 2.0 * (blur(curve, scale.p) + ratio * blur(curve, scale.q)), c.p, there)
            };
            if let Some((to, p, there)) = balance(excess, from, centre, if upwards { end } else { bottom }) {
                give(loss, p);
                (from, here, passed) = (to, there, 0.02);
            } else if passed < 8.0 {
                passed += 1.0;
            } else {
                break;
            }
        }
        // What is left at this end, an atom apart, is rounded down.
        let rest = if upwards {
            [cell(here, at(curve, end)).0, at(curve, end).0]
        } else {
            [here.1, Masses { p: 0.0, q: 0.0 }]
        };
        for part in rest {
            if part.p > 0.0 && part.q > 0.0 {
                give((part.p / part.q).ln(), part.p);
            }
        }
    }
    LossLattice { start: first, offset, mass, infinite: 0.0 }
}

/// The ends of a cell of one step that is about as heavy as any: at the bottom, around 0, or where the law is densest.
fn heaviest(curve: &dyn LossCurve, step: f64, low: f64, high: f64, bottom: f64, end: f64) -> (f64, Option<f64>) {
    let knots: Vec<f64> = curve.knots().into_iter().filter(|u| *u > bottom && *u < end).collect();
    let density = |ends: &[f64]| {
        let p = cell(at(curve, ends[0]), at(curve, ends[1])).0.p;
        p / (curve.loss(ends[1]) - curve.loss(ends[0])).max(step)
    };
    let densest = knots.windows(2).max_by(|a, b| density(a).total_cmp(&density(b))).map(|ends| curve.loss(ends[0]));
    let starts = [Some(low), (low < 0.0 && high > 0.0).then_some(-0.5 * step), densest];
    let place = |loss: f64| curve.place(loss, f64::NAN).clamp(bottom, end);
    let cells = starts.into_iter().flatten().map(|start| (place(start), place(start + step)));
    let weight = |ends: &(f64, f64)| cell(at(curve, ends.0), at(curve, ends.1)).0.p;
    let best = cells.max_by(|a, b| weight(a).total_cmp(&weight(b)));
    best.map_or((bottom, None), |(left, right)| (left, Some(right)))
}

/// Where to end a bin that begins at `from`: beyond the centre, near the mirror image of `from`, where the excess is not
/// negative but nearly 0. With the bin's mass and what lies at its end; `None` where there is no such place.
fn balance(
    excess: impl Fn(f64) -> (f64, f64, (Masses, Masses)),
    from: f64,
    centre: f64,
    limit: f64,
) -> Option<(f64, f64, (Masses, Masses))> {
    let sign = (limit - from).signum();
    let width = ((centre - from) * sign).max(1e-12 * (1.0 + centre.abs()));
    let clip = |u: f64| if sign > 0.0 { u.min(limit) } else { u.max(limit) };
    // Upwards the excess is negative up to the root, downwards it is positive: step out until it turns.
    let turned = |value: f64| (value >= 0.0) == (sign > 0.0);
    let (mut inner, mut inside) = (centre, excess(centre));
    if turned(inside.0) {
        return None; // rounding hides so small a bin
    }
    let mut reach = width;
    let (mut outer, mut outside) = loop {
        let next = clip(centre + sign * reach);
        let trial = excess(next);
        if turned(trial.0) {
            break (next, trial);
        }
        if next == limit {
            return if sign > 0.0 { None } else { Some((next, trial.1, trial.2)) };
        }
        (inner, inside) = (next, trial);
        reach *= 1.05;
    };
    // Regula falsi with the Illinois rule, in the square of the distance from the centre: there the excess is nearly
    // a straight line.
    let (mut a, mut b) = (inside.0, outside.0);
    let square = |u: f64| (u - centre) * (u - centre);
    for _ in 0..12 {
        if (outer - inner).abs() < 1e-5 * width {
            break;
        }
        let (near, far) = (square(inner), square(outer));
        let root = centre + sign * (far - b * (far - near) / (b - a)).max(0.0).sqrt();
        // A little to the side of the end that is further away, so that it moves too.
        let aim = root + if (root - inner).abs() < (outer - root).abs() { sign } else { -sign } * 2e-6 * width;
        let between = (aim - inner) * sign > 0.0 && (outer - aim) * sign > 0.0;
        let next = if between { aim } else { f64::midpoint(inner, outer) };
        let trial = excess(next);
        if turned(trial.0) {
            (outer, outside, b) = (next, trial, trial.0);
            a /= 2.0;
        } else {
            (inner, inside, a) = (next, trial, trial.0);
            b /= 2.0;
        }
    }
    let (u, kept) = if sign > 0.0 { (outer, outside) } else { (inner, inside) };
    Some((u, kept.1, kept.2))
}

/// A lattice law that dominates finitely many atoms: each is split between its two neighbours, both masses kept.
pub(crate) fn dominating_atoms(law: &Atoms, step: f64) -> LossLattice {
    let places: Vec<f64> = law.atoms.iter().map(|atom| atom.0 / step).collect();
    let first = places.iter().copied().fold(f64::INFINITY, f64::min).floor() as i64;
    let last = places.iter().copied().fold(f64::NEG_INFINITY, f64::max).ceil() as i64;
    let mut mass = vec![0.0; (last - first + 1) as usize];
    for (&(_, p), &place) in law.atoms.iter().zip(&places) {
        let below = (place + 1e-9).floor(); // an atom within a billionth of a step is on the lattice; the driver pays
        let share = if place - below <= 1e-9 {
            0.0
        } else {
            (-(-step * (place - below)).exp_m1() / -(-step).exp_m1()).clamp(0.0, 1.0)
        };
        let at = (below as i64 - first) as usize;
        mass[at] += p * (1.0 - share);
        if share > 0.0 {
            mass[at + 1] += p * share;
        }
    }
    for m in &mut mass {
        *m *= 1.0 + 4.0 * f64::EPSILON;
    }
    LossLattice { start: first, offset: 0.0, mass, infinite: law.infinite }
}

/// A lattice law that finitely many atoms dominate: each is given the lattice loss below it.
pub(crate) fn dominated_atoms(law: &Atoms, step: f64) -> LossLattice {
    let place = |loss: f64| (loss / step + 1e-9).floor() as i64;
    let first = law.atoms.iter().map(|atom| place(atom.0)).min().unwrap_or(0);
    let last = law.atoms.iter().map(|atom| place(atom.0)).max().unwrap_or(0);
    let mut mass = vec![0.0; (last - first + 1) as usize];
    for &(loss, p) in &law.atoms {
        mass[(place(loss) - first) as usize] += p * (1.0 - 4.0 * f64::EPSILON);
    }
    LossLattice { start: first, offset: 0.0, mass, infinite: law.infinite }
}

#[cfg(test)]
mod tests {
    use super::super::law::{BoundedRangeLoss, DippingLoss, LaplaceLoss, MixtureLoss, PairLoss};
    use super::*;

    fn profile(lattice: &LossLattice, step: f64, epsilon: f64) -> f64 {
        let finite = lattice.mass.iter().zip(lattice.start..);
        let finite = finite.map(|(mass, i)| mass * (-(epsilon - lattice.offset - i as f64 * step).exp_m1()).max(0.0));
        lattice.infinite + finite.sum::<f64>()
    }

    /// At every ε the true profile lies between the two lattices, and they are close.
    fn encloses(curve: &dyn LossCurve, step: f64, reflect: bool) {
        let (up, down) = (dominating(curve, step, 1e-14, reflect), dominated(curve, step, 1e-14));
        for k in -40..200 {
            let epsilon = f64::from(k) * step * 0.77;
            let m = at(curve, curve.place(epsilon, f64::NAN)).0;
            let exact = m.p - epsilon.exp() * m.q;
            let (high, low) = (profile(&up, step, epsilon), profile(&down, step, epsilon));
            assert!(low <= exact + 1e-15 && exact <= high + 1e-15, "ε = {epsilon}: {low:e} ≤ {exact:e} ≤ {high:e}");
            assert!(
                high - low < 0.4 * step * step.max(0.05) + 1e-10,
                "ε = {epsilon}: {low:e} and {high:e} are far apart"
            );
        }
    }

    #[test]
    fn the_true_profile_lies_between_the_two_lattices() {
        encloses(&PairLoss::new(0.1, 1.0, -1.0), 0.01, false);
        encloses(&PairLoss::new(0.1, 1.0, -1.0), 0.01, true);
        encloses(&MixtureLoss::sided(0.01, 0.25), 0.0005, false);
        encloses(&MixtureLoss::sided(0.01, 0.25).reversed(), 0.0002, false);
        encloses(&DippingLoss::new(PairLoss::new(0.1, 3.0, 1.0)), 0.01, false);
        encloses(&MixtureLoss::new(&[(1.0, 1.0)], &[(1.0, 0.0)]), 0.02, false);
        encloses(&LaplaceLoss { epsilon: 1.0 }, 0.02, false);
        encloses(&BoundedRangeLoss { epsilon: 1.0 }, 0.02, false);
    }

    #[test]
    fn atoms_on_the_lattice_stay_where_they_are() {
        let law = Atoms::response(1.0, 1e-3);
        let (up, down) = (dominating_atoms(&law, 0.25), dominated_atoms(&law, 0.25));
        assert_eq!((up.start, up.mass.len()), (-4, 9));
        for (a, b) in up.mass.iter().zip(&down.mass) {
            assert!((a - b).abs() < 1e-14);
        }
        assert!((up.infinite - 1e-3).abs() < 1e-15);
        // Off the lattice the profile is between.
        let (up, down) = (dominating_atoms(&law, 0.3), dominated_atoms(&law, 0.3));
        for epsilon in [0.0, 0.2, 0.5, 0.9, 1.1] {
            let exact = 1e-3 + law.atoms.iter().map(|&(l, p)| p * (-(epsilon - l).exp_m1()).max(0.0)).sum::<f64>();
            assert!(profile(&down, 0.3, epsilon) <= exact + 1e-15 && exact <= profile(&up, 0.3, epsilon) + 1e-15);
        }
    }
}
