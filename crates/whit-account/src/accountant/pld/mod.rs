//! The privacy loss distribution: the law of the loss itself, composed numerically, from above and from below.
//!
//! `problem` reads a cost as laws, `law` holds the loss of one step exactly, `plan` chooses a tilt and a window,
//! `lattice` puts laws on a lattice so that they dominate or are dominated, `compose` convolves many steps with a bound
//! on every numerical error, and this file refines the lattice until both sides are close; `removal` takes a replacement for two
//! changes where that proves less. Choices affect only how
//! close the two sides come, never that they are bounds.
//!
//! The upper ε is a bound for every mechanism that the cost describes. The lower ε is attained by an explicit pair of
//! neighbours that the cost allows: no accountant can soundly report less for this cost. Where the dominating loss is a
//! *reflected* one (see [`pair`](super::pair)), there is a true gap between the two.

mod compose;
mod lattice;
mod law;
mod plan;
mod problem;
mod removal;

use super::{DeltaLoss, Name, Unsupported, advanced, basic, gdp, renyi, zcdp};
use crate::normal::{gaussian_delta, gaussian_epsilon_up};
use compose::{LatticeSteps, Sketch, TiltedWindow, Workspace, sketch_cumulant};
use lattice::{LARGEST_LOSS, LossLattice};
use plan::{TiltPlan, sketch};
use problem::{LARGEST_STEP, Leg, Problem, StepLaw, StepLaws};
use removal::through_removal;
use std::cell::{Cell, RefCell};
use whit_core::{Cost, Epsilon, Loss};

/// How close the two sides should come, relative to ε (or to δ).
const CLOSE: f64 = 6e-4;
/// The most points of a transform: 2^20 complex numbers are 16 MiB, and a window needs three times that.
const LARGEST_TRANSFORM: f64 = 1_048_576.0;
/// The most cells of all lattice laws together, each counted once for every Gaussian that it adds up.
const MOST_CELLS: f64 = 1_048_576.0;
/// How much work one question may be, in points of a transform (about 0.2 µs): a lattice is not refined beyond it.
const MOST_WORK: f64 = 8e6;
/// A cell of a law that dominates is so much work, and one of a law that is dominated, whose ends are searched for.
const CELL_WORK: (f64, f64) = (2.0, 12.0);

/// What a question has cost so far: counted, not timed, so that the same question has the same answer everywhere.
#[derive(Default)]
struct WorkDone {
    spent: Cell<f64>,
    workspace: RefCell<Workspace>,
}

impl WorkDone {
    fn add(&self, work: f64) {
        self.spent.set(self.spent.get() + work);
    }
}

impl StepLaw {
    fn parts(&self) -> f64 {
        match self {
            Self::Curve { curve, .. } => curve.parts() as f64,
            Self::Atoms(_) => 0.1,
        }
    }
}

/// All leaves on one lattice, for one direction.
fn on_lattice(
    problem: &Problem,
    leg: usize,
    step: f64,
    cut: f64,
    upper: bool,
    work: &WorkDone,
) -> Vec<(LossLattice, u64)> {
    let put = |leaf: &StepLaws| {
        let leg = &leaf.legs[leg.min(leaf.legs.len() - 1)];
        let law = if upper { &leg.upper } else { &leg.lower };
        let lattice = match (law, upper) {
            (StepLaw::Curve { curve, reflect }, true) => lattice::dominating(&**curve, step, cut, *reflect),
            (StepLaw::Curve { curve, .. }, false) => lattice::dominated(&**curve, step, cut),
            (StepLaw::Atoms(atoms), true) => lattice::dominating_atoms(atoms, step),
            (StepLaw::Atoms(atoms), false) => lattice::dominated_atoms(atoms, step),
        };
        work.add(law.parts() * lattice.mass.len() as f64 * if upper { CELL_WORK.0 } else { CELL_WORK.1 });
        (lattice, leaf.times)
    };
    problem.leaves.iter().map(put).collect()
}

/// Composes in a window that is widened until what it misplaces no longer matters, as far as memory goes. `None` where
/// the plan itself asks for more.
fn window(laws: &[(LossLattice, u64)], step: f64, plan: TiltPlan, delta: f64, work: &WorkDone) -> Option<TiltedWindow> {
    let steps = LatticeSteps { laws: laws.iter().map(|(law, times)| (law, *times)).collect(), step };
    let outside = steps.outside(plan.theta);
    let (mut low, mut high) = (plan.low, plan.high);
    let wider = |low: f64, high: f64| (0.5 * plan.spread).max(0.05 * (high - low)).max(step);
    let fits = |width: f64| width / step <= LARGEST_TRANSFORM;
    if !fits(high - low) {
        return None;
    }
    while fits(high - low + wider(low, high)) {
        if outside.right(low, high) > 1e-6 * delta {
            high += wider(low, high);
        } else if outside.left(low, high) > 1e-6 * delta {
            low -= wider(low, high);
        } else {
            break;
        }
    }
    work.add((high - low) / step + laws.iter().map(|(law, _)| law.mass.len() as f64).sum::<f64>());
    Some(steps.window(&outside, low, high, &mut work.workspace.borrow_mut()))
}

impl Problem {
    fn steps(&self) -> f64 {
        self.leaves.iter().map(|leaf| leaf.times as f64).sum()
    }

    fn tight(&self) -> bool {
        self.leaves.iter().all(|leaf| leaf.tight)
    }

    fn directions(&self) -> usize {
        self.leaves.iter().map(|leaf| leaf.legs.len()).max().unwrap_or(1)
    }

    fn sketch(&self, leg: usize, upper: bool) -> Sketch {
        let one = |leaf: &StepLaws| {
            let leg = &leaf.legs[leg.min(leaf.legs.len() - 1)];
            (sketch(if upper { &leg.upper } else { &leg.lower }), leaf.times)
        };
        self.leaves.iter().map(one).collect()
    }

    /// A lattice step near `wanted` on which the atoms of the first leaf that has some lie exactly.
    fn aligned(&self, wanted: f64) -> f64 {
        match self.leaves.iter().find_map(|leaf| leaf.anchor) {
            Some(anchor) if anchor >= wanted && anchor / wanted < 1e9 => anchor / (anchor / wanted).ceil(),
            _ => wanted,
        }
    }

    /// What placing lattice points, and losses a billionth of a step next to them, may have cost: see [`lattice`].
    fn slack(&self, step: f64) -> f64 {
        self.steps() * lattice::allowance(step)
    }

    /// The share of δ that may be given away by cutting off each step's far tail.
    fn cut(&self, delta: f64) -> f64 {
        (delta * 1e-6 / self.steps().max(1.0)).max(1e-305)
    }

    /// Σ T·(total variation of a step): an upper bound on δ at ε = 0.
    fn variation(&self) -> f64 {
        let one = |leaf: &StepLaws| {
            let leg = |leg: &Leg| match &leg.upper {
                StepLaw::Atoms(atoms) => {
                    atoms.infinite + atoms.atoms.iter().map(|&(l, p)| p * (-(-l).exp_m1()).max(0.0)).sum::<f64>()
                }
                StepLaw::Curve { curve, .. } => {
                    let above = curve.above(curve.place(0.0, f64::NAN));
                    above.p - above.q + 64.0 * curve.rounding() * above.p
                }
            };
            // Not a number is as bad as 1.
            let worst = leaf.legs.iter().map(leg).fold(0.0, |a: f64, b| if b <= 1.0 { a.max(b) } else { 1.0 });
            worst * leaf.times as f64
        };
        self.leaves.iter().map(one).sum::<f64>() * (1.0 + 1e-9)
    }

    /// What the laws leave out, in all steps.
    fn missing(&self) -> f64 {
        self.leaves.iter().map(|leaf| leaf.missing * leaf.times as f64).sum()
    }

    /// The range of the losses of all laws together, each as often as it has parts: what a lattice has to hold.
    fn reach(&self, cut: f64, upper: bool) -> f64 {
        let law = |law: &StepLaw| match law {
            StepLaw::Atoms(atoms) => atoms.atoms.iter().map(|atom| atom.0.abs()).fold(0.0, f64::max) * 2.0,
            StepLaw::Curve { curve, .. } => lattice::range(&**curve, cut) * law.parts(),
        };
        let side = |leg: &Leg| law(if upper { &leg.upper } else { &leg.lower });
        self.leaves.iter().flat_map(|leaf| &leaf.legs).map(side).sum()
    }

    /// The lattice for a plan, halved `finer` times, as far as memory goes; and whether it went that far.
    fn step(&self, plan: &TiltPlan, cut: f64, finer: i32, upper: bool) -> (f64, bool) {
        let cells = if upper { MOST_CELLS } else { MOST_CELLS * CELL_WORK.0 / CELL_WORK.1 };
        let finest = ((plan.high - plan.low) / (LARGEST_TRANSFORM / 4.0)).max(self.reach(cut, upper) / cells);
        // The error of a lattice is of second order in its step over the deviation of one loss.
        let single = plan.spread.min(plan.calm.max(plan.spread / 8.0)) / self.steps().sqrt();
        let wanted = 0.06 * single * 0.5_f64.powi(finer);
        (self.aligned(wanted.max(finest)), wanted > finest)
    }

    /// Refines the lattice until both sides are close; `solve` gives (upper, lower, whether finer is possible).
    fn refine(&self, work: &WorkDone, solve: impl Fn(i32) -> (f64, f64, bool)) -> (f64, f64) {
        let mut best = (f64::INFINITY, 0.0_f64);
        let mut finer = 0;
        // Where the lower law is another one, the gap does not close, and two lattices are enough.
        for _ in 0..if self.tight() { 6 } else { 2 } {
            let before = work.spent.get();
            let (upper, lower, more) = solve(finer);
            let spent = work.spent.get();
            best = (best.0.min(upper), best.1.max(lower));
            let gap = (best.0 - best.1) / best.0;
            if gap <= CLOSE || !more || best.0 == 0.0 || best.0 == f64::INFINITY {
                break;
            }
            // The gap falls with the square of the step, at best.
            let wanted = if self.tight() { (0.5 * (gap / CLOSE).log2()).ceil().clamp(1.0, 4.0) as i32 } else { 1 };
            // Half the step is twice the work.
            let affordable = ((MOST_WORK - spent) / (spent - before)).log2().floor();
            if affordable < 1.0 || affordable.is_nan() {
                break;
            }
            finer += wanted.min(affordable as i32);
        }
        (best.0, best.1.min(best.0))
    }

    fn epsilon(&self, delta: f64) -> (f64, f64) {
        let delta = delta - self.missing();
        if delta <= 0.0 || delta.is_nan() {
            return (f64::INFINITY, 0.0);
        }
        if self.variation() <= delta {
            return (0.0, 0.0);
        }
        if self.single(0.0).is_some() {
            return self.invert_single(delta);
        }
        let plan = |leg: usize, upper: bool| TiltPlan::for_delta(&self.sketch(leg, upper), delta);
        let plans: Vec<TiltPlan> = (0..self.directions()).map(|leg| plan(leg, true)).collect();
        // Chernoff's bound tells which direction costs more.
        let chernoff = |leg: usize| {
            let theta = plans[leg].theta;
            (sketch_cumulant(&self.sketch(leg, true), theta).0 - delta.ln()) / theta
        };
        let main = (0..plans.len()).max_by(|&a, &b| chernoff(a).total_cmp(&chernoff(b))).unwrap_or(0);
        let below = if self.tight() { plans[main] } else { plan(main, false) };
        let cut = self.cut(delta);
        let work = WorkDone::default();
        let side = |leg: usize, plan: &TiltPlan, mut step: f64, upper: bool| {
            let mut laws = on_lattice(self, leg, step, cut, upper, &work);
            let mut plan = *plan;
            let mut examined = f64::INFINITY;
            for _ in 0..8 {
                let Some(found) = window(&laws, step, plan, delta, &work) else { break };
                let epsilon = found.epsilon(delta, upper);
                examined = examined.min(found.start());
                work.workspace.borrow_mut().recycle(found);
                if let Some(epsilon) = epsilon {
                    return epsilon + if upper { self.slack(step) } else { -self.slack(step) };
                }
                // ε lies further left: flatten the tilt and look there. Below 0 there is nothing to look for.
                let width = plan.high - plan.low;
                plan = TiltPlan { theta: plan.theta * 0.7, low: (plan.low - width).max(-2.0 * step), ..plan };
                if (plan.high - plan.low) / step > 0.5 * LARGEST_TRANSFORM {
                    step = self.aligned(4.0 * step);
                    laws = on_lattice(self, leg, step, cut, upper, &work);
                }
            }
            if upper { examined.max(0.0) + self.slack(step) } else { 0.0 }
        };
        let above = |leg: usize, finer: i32| {
            let (step, more) = self.step(&plans[leg], cut, finer, true);
            (side(leg, &plans[leg], step, true), more)
        };
        self.refine(&work, |finer| {
            let (mut upper, more) = above(main, finer);
            for leg in (0..plans.len()).filter(|leg| *leg != main) {
                // The direction that costs less need only be shown to cost less, which a coarser lattice may do.
                let rough =
                    [finer - 2, finer - 1].into_iter().map(|finer| above(leg, finer).0).find(|rough| *rough <= upper);
                upper = upper.max(rough.unwrap_or_else(|| above(leg, finer).0));
            }
            let (step, _) = self.step(&below, cut, finer, false);
            (upper, side(main, &below, step, false).max(0.0), more)
        })
    }

    /// δ at ε of a single step, without a lattice.
    fn single(&self, epsilon: f64) -> Option<(f64, f64)> {
        let [StepLaws { times: 1, legs, .. }] = &self.leaves[..] else { return None };
        let one = |law: &StepLaw| match law {
            StepLaw::Curve { curve, .. } => {
                let above = lattice::at(&**curve, curve.place(epsilon.min(LARGEST_LOSS), f64::NAN)).0;
                if epsilon > LARGEST_LOSS { above.p } else { (above.p - epsilon.exp() * above.q).max(0.0) }
            }
            StepLaw::Atoms(atoms) => {
                atoms.infinite + atoms.atoms.iter().map(|&(l, p)| p * (-(epsilon - l).exp_m1()).max(0.0)).sum::<f64>()
            }
        };
        let upper = legs.iter().map(|leg| one(&leg.upper)).fold(0.0, f64::max);
        let lower = legs.iter().map(|leg| one(&leg.lower)).fold(0.0, f64::max);
        let lower = if epsilon > LARGEST_LOSS { 0.0 } else { lower };
        // Both masses are off by a few units in the last place of what lies above ε.
        let above = |law: &StepLaw| match law {
            StepLaw::Curve { curve, .. } => {
                let place = curve.place(epsilon.min(LARGEST_LOSS), f64::NAN);
                4.0 * lattice::blur(&**curve, lattice::at(&**curve, place).0.p)
            }
            StepLaw::Atoms(_) => 64.0 * f64::EPSILON * upper,
        };
        let slack = legs.iter().map(|leg| above(&leg.upper).max(above(&leg.lower))).fold(0.0, f64::max);
        Some(((upper + slack).min(1.0), (lower - slack).max(0.0)))
    }

    /// ε at δ of a single step, by bisection.
    fn invert_single(&self, delta: f64) -> (f64, f64) {
        let at = |epsilon: f64| self.single(epsilon).unwrap_or((1.0, 0.0));
        let mut top = 1.0;
        while at(top).0 > delta {
            top *= 2.0;
            if top > LARGEST_LOSS {
                return (f64::INFINITY, if at(LARGEST_LOSS).1 > delta { LARGEST_LOSS } else { 0.0 });
            }
        }
        let solve = |holds: &dyn Fn(f64) -> bool, keep_upper: bool| {
            let (mut low, mut high) = (0.0, top);
            for _ in 0..100 {
                let middle = f64::midpoint(low, high);
                if holds(middle) { high = middle } else { low = middle }
            }
            if keep_upper { high } else { low }
        };
        let upper = solve(&|epsilon| at(epsilon).0 <= delta, true);
        (upper, solve(&|epsilon| at(epsilon).1 < delta, false).min(upper))
    }

    fn delta(&self, epsilon: f64) -> (f64, f64) {
        let missing = self.missing();
        if let Some((upper, lower)) = self.single(epsilon) {
            return ((upper + missing).min(1.0), lower);
        }
        let plan = |leg: usize, upper: bool| TiltPlan::for_epsilon(&self.sketch(leg, upper), epsilon);
        let plans: Vec<TiltPlan> = (0..self.directions()).map(|leg| plan(leg, true)).collect();
        // Chernoff's bound, which is off by a prefactor, tells which direction matters and what is negligible.
        let rough = |leg: usize| {
            let (k, ..) = sketch_cumulant(&self.sketch(leg, true), plans[leg].theta);
            (k - plans[leg].theta * epsilon).exp().clamp(1e-290, 1.0) * 1e-3
        };
        let sizes: Vec<f64> = (0..plans.len()).map(rough).collect();
        let main = (0..plans.len()).max_by(|&a, &b| sizes[a].total_cmp(&sizes[b])).unwrap_or(0);
        let below = if self.tight() { plans[main] } else { plan(main, false) };
        let work = WorkDone::default();
        let side = |leg: usize, plan: &TiltPlan, step: f64, upper: bool| {
            let laws = on_lattice(self, leg, step, self.cut(sizes[leg]), upper, &work);
            let moved = if upper { epsilon - self.slack(step) } else { epsilon + self.slack(step) };
            let plan = TiltPlan { low: plan.low.min(moved - step), ..*plan };
            let found = window(&laws, step, plan, sizes[leg], &work);
            found.map_or(if upper { 1.0 } else { 0.0 }, |found| found.delta(moved, upper))
        };
        let (upper, lower) = self.refine(&work, |finer| {
            let (mut upper, mut more): (f64, bool) = (0.0, true);
            for (leg, plan) in plans.iter().enumerate() {
                let (step, finer) = self.step(plan, self.cut(sizes[leg]), finer, true);
                upper = upper.max(side(leg, plan, step, true));
                more &= finer || leg != main;
            }
            let (step, _) = self.step(&below, self.cut(sizes[main]), finer, false);
            (upper, side(main, &below, step, false), more)
        });
        ((upper + missing).min(1.0), lower)
    }
}

/// Whether some leaf is a choice, of which divergences alone are known: Rényi accounting of all leaves bounds it then.
fn has_choice(cost: &Cost) -> bool {
    cost.leaves().iter().any(|(leaf, _)| matches!(leaf, Cost::Chosen { .. }))
}

/// The cost without the leaves that are lost for sure.
fn without_sure(cost: &Cost) -> Cost {
    let rest = cost.leaves().into_iter().filter_map(|(leaf, times)| match leaf {
        Cost::Pure { epsilon } | Cost::BoundedRange { epsilon } if epsilon.get() > LARGEST_STEP => None,
        Cost::Approximate { epsilon, delta } if epsilon.get() > LARGEST_STEP => {
            Some(Cost::Approximate { epsilon: Epsilon::ZERO, delta }.repeat(times))
        }
        Cost::Laplace { scale } if 1.0 / scale > LARGEST_STEP => None,
        Cost::Geometric { shift, scale } if shift as f64 / scale > LARGEST_STEP => None,
        other => Some(other.repeat(times)),
    });
    Cost::Series(rest.collect())
}

/// ε at δ, from both sides.
///
/// # Claim
/// A mechanism with this cost is (upper, δ)-differentially private for the unit of the cost; some mechanism with this cost
/// is (lower − η, δ)-private for no η > 0.
///
/// # Why
/// Each step's loss is dominated by the law that [`pair`](super::pair) and `law` state, domination survives adaptive
/// composition (Zhu, Dong, Wang 2022, Theorem 10), the lattice dominates the law, and all numerical errors are added.
/// From below: binning is post-processing, mass of P left out or given a smaller loss only lowers δ, and errors are
/// subtracted. It is assumed that the library's `erfc` and `exp` are within four units in the last place.
///
/// # Tried by
/// `the_true_profile_lies_between_the_two_lattices`, `no_extreme_breaks_the_laws` and the other laws in `tests/laws.rs`, the references in
/// `tests/oracles/pld.rs`, and `no_accountant_falls_below_the_truth_at_any_extreme`, against integrals of up to 400 digits.
pub fn epsilon(cost: &Cost, delta: f64) -> Result<Loss, Unsupported> {
    Ok(epsilon_by(cost, delta)?.0)
}

/// The same, and who proved the upper bound: another accountant where it says less, or where no lattice is fine enough.
pub(super) fn epsilon_by(cost: &Cost, delta: f64) -> Result<(Loss, Name), Unsupported> {
    if has_choice(cost) {
        return Ok((Loss { upper: renyi::epsilon(cost, delta)?, lower: 0.0, delta }, Name::Rdp));
    }
    let problem = Problem::new(cost)?;
    let loss = |upper: f64, lower: f64| Ok((Loss { upper, lower, delta }, Name::Pld));
    if problem.everything {
        return loss(f64::INFINITY, f64::INFINITY);
    }
    if delta >= 1.0 {
        return loss(0.0, 0.0);
    }
    if problem.surely > 0.0 && delta > 0.0 {
        // (ε₁, 0) and (ε₂, δ) compose to (ε₁ + ε₂, δ).
        let (rest, by) = epsilon_by(&without_sure(cost), delta)?;
        let sum = (problem.surely + rest.upper) * (1.0 + 4.0 * f64::EPSILON);
        let (upper, by) = least((sum, by), [(renyi::epsilon(cost, delta), Name::Rdp)]);
        // All of it is lost but with a chance of δ that e^(ε − all) makes up for: δ(ε) = 1 − e^(ε − all).
        let lower = (problem.surely_lower * (1.0 - 1e-9) + (-delta).ln_1p()).max(0.0);
        return Ok((Loss { upper, lower: lower.min(upper), delta }, by));
    }
    if delta <= 0.0 {
        return match (problem.bounded, problem.unbounded) {
            (Some(sum), _) => {
                loss(sum, if problem.leaves.iter().all(|leaf| leaf.tight) { sum * (1.0 - 1e-12) } else { 0.0 })
            }
            (None, word) => Err(Unsupported::NeedsDelta { accountant: Name::Pld, cost: word.unwrap_or("this cost") }),
        };
    }
    if problem.rho > 0.0 {
        return concentrated(cost, &problem, delta);
    }
    if problem.leaves.is_empty() {
        let mu = problem.squares.sqrt();
        let upper = if mu > 0.0 { gaussian_epsilon_up(delta, mu) } else { 0.0 };
        return loss(upper, upper * (1.0 - 1e-9));
    }
    let (mut upper, mut lower) = problem.epsilon(delta);
    let mut by = Name::Pld;
    if upper == f64::INFINITY || upper - lower > 0.01 * upper {
        // So many steps that no lattice is fine enough, or a gap in what is known: others may prove less.
        if let Some(both) = through_removal(cost, delta).filter(|both| both.0 < upper) {
            (upper, by) = both;
        }
        let others = [
            (renyi::epsilon(cost, delta), Name::Rdp),
            (gdp::epsilon(cost, delta), Name::Gdp),
            (zcdp::epsilon(cost, delta), Name::Zcdp),
            (advanced::epsilon(cost, delta), Name::Advanced),
            (basic::epsilon(cost, delta), Name::Basic),
        ];
        (upper, by) = least((upper, by), others);
        debug_assert!(lower <= upper * (1.0 + 1e-6), "{lower} is attained, and {by} proves {upper}: {cost:?}");
        lower = lower.min(upper);
    }
    if let Some(sum) = problem.bounded.filter(|&sum| sum < upper) {
        (upper, by) = (sum, Name::Pld); // no loss is larger, so that this is the end of its distribution
        lower = lower.min(upper);
    }
    if by == Name::Pld {
        // Plain Gaussian noise has a closed form, which is as good as any lattice where nearly all are drawn.
        (upper, by) = least((upper, by), [(gdp::epsilon(cost, delta), Name::Gdp)]);
        lower = lower.min(upper);
    }
    Ok((Loss { upper, lower, delta }, by))
}

/// The least of what is proved already and what others prove, and who proves it.
fn least<const N: usize>(ours: (f64, Name), others: [(Result<f64, Unsupported>, Name); N]) -> (f64, Name) {
    others.into_iter().fold(ours, |best, (found, name)| match found {
        Ok(bound) if bound < best.0 => (bound, name),
        Ok(_) | Err(_) => best,
    })
}

/// Where nothing but zCDP is known of some leaves: Rényi accounting of all, or their (ε, δ/2) added to the others' PLD.
fn concentrated(cost: &Cost, problem: &Problem, delta: f64) -> Result<(Loss, Name), Unsupported> {
    let others = |replace: bool| {
        let leaves = cost.leaves().into_iter().filter_map(|(leaf, times)| match leaf {
            Cost::Concentrated { rho } => {
                // Gaussian noise with the same ρ is one such mechanism.
                replace.then(|| Cost::Gaussian { noise: 1.0 / (2.0 * rho.get()).sqrt() }.repeat(times))
            }
            other => Some(other.repeat(times)),
        });
        Cost::Series(leaves.collect())
    };
    let (rest, by) = epsilon_by(&others(false), delta / 2.0)?;
    let split = zcdp::tight_epsilon(problem.rho, delta / 2.0) + rest.upper;
    let alone = if problem.leaves.is_empty() && problem.squares == 0.0 {
        zcdp::tight_epsilon(problem.rho, delta)
    } else {
        f64::INFINITY
    };
    let (upper, by) = least((split, by), [(Ok(alone), Name::Zcdp), (renyi::epsilon(cost, delta), Name::Rdp)]);
    Ok((Loss { upper, lower: epsilon(&others(true), delta)?.lower.min(upper), delta }, by))
}

/// δ at ε, from both sides.
///
/// # Tried by
/// `no_extreme_breaks_the_laws`, `the_delta_of_a_run_is_kept_to_the_last_digit` and
/// `the_way_back_from_the_true_epsilon_is_no_less_than_delta`.
pub fn delta(cost: &Cost, epsilon: f64) -> Result<DeltaLoss, Unsupported> {
    Ok(delta_by(cost, epsilon)?.0)
}

/// The same, and who proved the upper bound.
pub(super) fn delta_by(cost: &Cost, epsilon: f64) -> Result<(DeltaLoss, Name), Unsupported> {
    if has_choice(cost) {
        return Ok((DeltaLoss { upper: renyi::delta(cost, epsilon)?.min(1.0), lower: 0.0, epsilon }, Name::Rdp));
    }
    let problem = Problem::new(cost)?;
    let loss = |upper: f64, lower: f64| Ok((DeltaLoss { upper, lower, epsilon }, Name::Pld));
    if problem.everything {
        return loss(1.0, 1.0);
    }
    if problem.bounded.is_some_and(|sum| epsilon >= sum) {
        return loss(0.0, 0.0);
    }
    if epsilon == f64::INFINITY {
        let infinite = |leaf: &StepLaws| match &leaf.legs[0].upper {
            StepLaw::Atoms(atoms) => atoms.infinite,
            StepLaw::Curve { .. } => 0.0,
        };
        return loss(problem.leaves.iter().map(|leaf| infinite(leaf) * leaf.times as f64).sum::<f64>().min(1.0), 0.0);
    }
    if problem.rho > 0.0 {
        return Ok((DeltaLoss { upper: renyi::delta(cost, epsilon)?, lower: 0.0, epsilon }, Name::Rdp));
    }
    if problem.surely > 0.0 {
        return if epsilon > problem.surely {
            let (rest, by) = delta_by(&without_sure(cost), epsilon - problem.surely)?;
            Ok((DeltaLoss { upper: rest.upper, lower: 0.0, epsilon }, by))
        } else {
            loss(1.0, 0.0)
        };
    }
    if problem.leaves.is_empty() {
        let exact = if problem.squares > 0.0 { gaussian_delta(epsilon, problem.squares.sqrt()) } else { 0.0 };
        let least = if problem.squares > 0.0 { f64::from_bits(1) } else { 0.0 };
        return loss((exact * (1.0 + 1e-9)).clamp(least, 1.0), gaussian_delta_down(epsilon, problem.squares));
    }
    let (mut upper, lower) = problem.delta(epsilon);
    upper = upper.max(f64::from_bits(1)); // a loss without an end is more likely than 0, though not a number
    let mut by = Name::Pld;
    if upper - lower > 0.01 * upper {
        let others = [
            (renyi::delta(cost, epsilon), Name::Rdp),
            (gdp::delta(cost, epsilon), Name::Gdp),
            (zcdp::delta(cost, epsilon), Name::Zcdp),
            (basic::delta(cost, epsilon), Name::Basic),
        ];
        (upper, by) = least((upper, by), others);
        // The smallest δ at which leaving and coming cost no more than ε: down from what is known by ever larger factors, then by
        // bisection of its logarithm. Each try prices two runs, the longer the more pieces there are.
        let keeps = |ln_delta: f64| through_removal(cost, ln_delta.exp()).filter(|both| both.0 <= epsilon);
        let few = !cost.leaves().iter().any(|(leaf, _)| matches!(leaf, Cost::Sampled(s) if s.holds > 100));
        let (mut low, mut high, mut stride) = (f64::NEG_INFINITY, upper.ln(), 0.5);
        if keeps(high).is_some() {
            for _ in 0..if few { 12 } else { 4 } {
                let next = if low == f64::NEG_INFINITY { high - stride } else { f64::midpoint(low, high) };
                if let Some((_, prover)) = keeps(next) {
                    (high, by) = (next, prover);
                    stride *= 2.0;
                } else {
                    low = next;
                }
            }
            upper = upper.min(high.exp() * (1.0 + 4.0 * f64::EPSILON));
        }
    }
    Ok((DeltaLoss { upper, lower: lower.min(upper), epsilon }, by))
}

/// δ at ε of plain Gaussian noise from below. μ² was raised by what adding up may have lost, and where ε is large that is
/// more than δ can bear: so μ is lowered by as much.
fn gaussian_delta_down(epsilon: f64, squares: f64) -> f64 {
    if squares > 0.0 { gaussian_delta(epsilon, squares.sqrt() * (1.0 - 1e-12)) * (1.0 - 1e-9) } else { 0.0 }
}
