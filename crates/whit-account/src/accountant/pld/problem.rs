//! A cost as laws: for every kind of step, and for each direction, what dominates it and what it certainly is.

use super::law::{
    Atoms, BoundedRangeLoss, DippingLoss, FAR, LaplaceLoss, LossCurve, MixtureLoss, PairLoss, RevealedLoss,
};
use crate::accountant::binomial::{BinomialParts, PartSide};
use crate::accountant::pair::{APART, Dominating, dominating};
use crate::accountant::{Unsupported, word_for};
use whit_core::Cost;

/// A step with a larger ε is beyond all amplification by composition: it is simply added.
pub(super) const LARGEST_STEP: f64 = 50.0;
/// The most atoms of one law.
const MOST_ATOMS: u64 = 1000;

pub(super) enum StepLaw {
    Curve { curve: Box<dyn LossCurve>, reflect: bool },
    Atoms(Atoms),
}

/// One kind of step in one direction: what dominates it, and what it certainly is.
pub(super) struct Leg {
    pub(super) upper: StepLaw,
    pub(super) lower: StepLaw,
}

pub(super) struct StepLaws {
    pub(super) times: u64,
    /// The direction "unit is there" against "is not", and the other; the same where neighbours may swap.
    pub(super) legs: Vec<Leg>,
    /// Whether the lower law is the upper one, so that the gap closes as the lattice is refined.
    pub(super) tight: bool,
    /// A distance of which all atoms are multiples.
    pub(super) anchor: Option<f64>,
    /// What the laws leave out of P, because it is hardly a number.
    pub(super) missing: f64,
}

/// What is left of a cost when everything with a closed form has been taken out.
pub(super) struct Problem {
    pub(super) leaves: Vec<StepLaws>,
    /// Total μ² of plain Gaussian noise.
    pub(super) squares: f64,
    /// Total ρ of which nothing but zCDP is known.
    pub(super) rho: f64,
    pub(super) everything: bool,
    /// Losses too large for a lattice, added up: they are lost for sure, as far as anybody can tell.
    pub(super) surely: f64,
    /// The part of them that randomised response does lose, but for a chance of e^-50 a step.
    pub(super) surely_lower: f64,
    /// All losses are bounded, and this is the sum of the bounds.
    pub(super) bounded: Option<f64>,
    /// The first leaf that needs δ > 0.
    pub(super) unbounded: Option<&'static str>,
}

fn symmetric(curve: impl LossCurve + Clone + 'static) -> Leg {
    let lower = StepLaw::Curve { curve: Box::new(curve.clone()), reflect: false };
    Leg { upper: StepLaw::Curve { curve: Box::new(curve), reflect: true }, lower }
}

/// Both directions of a mixture, and of the one below it where that is another.
fn sided(upper: &MixtureLoss, lower: Option<&MixtureLoss>) -> Vec<Leg> {
    let lower = lower.unwrap_or(upper);
    [(upper.clone(), lower.clone()), (upper.reversed(), lower.reversed())]
        .into_iter()
        .map(|(upper, lower)| Leg {
            upper: StepLaw::Curve { curve: Box::new(upper), reflect: false },
            lower: StepLaw::Curve { curve: Box::new(lower), reflect: false },
        })
        .collect()
}

fn atoms(law: Atoms) -> Leg {
    Leg { upper: StepLaw::Atoms(law.clone()), lower: StepLaw::Atoms(law) }
}

impl Problem {
    pub(super) fn new(cost: &Cost) -> Result<Self, Unsupported> {
        cost.validate()?;
        let mut problem = Self {
            leaves: Vec::new(),
            squares: 0.0,
            rho: 0.0,
            everything: false,
            surely: 0.0,
            surely_lower: 0.0,
            bounded: Some(0.0),
            unbounded: None,
        };
        for (leaf, times) in cost.leaves() {
            problem.add(&leaf, times)?;
        }
        problem.squares *= 1.0 + 1e-15 * cost.leaves().len() as f64; // what adding up may have lost
        if problem.squares == f64::INFINITY || problem.rho == f64::INFINITY {
            problem.everything = true;
        }
        if problem.squares > 0.0 && !problem.leaves.is_empty() {
            let mu = problem.squares.sqrt();
            let leg = symmetric(MixtureLoss::new(&[(1.0, mu)], &[(1.0, 0.0)]));
            problem.leaves.push(StepLaws { times: 1, legs: vec![leg], tight: true, anchor: None, missing: 0.0 });
            problem.squares = 0.0;
        }
        Ok(problem)
    }

    fn needs_delta(&mut self, word: &'static str) {
        self.bounded = None;
        self.unbounded.get_or_insert(word);
    }

    /// Adds a leaf whose loss is at most ε: as a law while that is small, for sure where it is large.
    fn add_bounded(
        &mut self,
        epsilon: f64,
        times: u64,
        surely: bool,
        law: impl FnOnce(f64) -> (Leg, bool, Option<f64>),
    ) {
        let all = epsilon * times as f64 * (1.0 + 4.0 * f64::EPSILON);
        if !all.is_finite() {
            self.everything = true;
        } else if epsilon > LARGEST_STEP {
            self.surely += all;
            self.surely_lower += if surely { all } else { 0.0 };
        } else if epsilon > 0.0 {
            let (leg, tight, anchor) = law(epsilon);
            self.leaves.push(StepLaws { times, legs: vec![leg], tight, anchor, missing: 0.0 });
        }
        self.bounded = self.bounded.map(|sum| (sum + all) * (1.0 + 4.0 * f64::EPSILON));
    }

    fn add(&mut self, leaf: &Cost, times: u64) -> Result<(), Unsupported> {
        let t = times as f64;
        match leaf {
            Cost::Nothing | Cost::Repeat { .. } | Cost::Series(_) => {} // leaves have none of these
            // Nothing but divergences is known of a choice, and these were asked before.
            Cost::Everything | Cost::Chosen { .. } => self.everything = true,
            Cost::Pure { epsilon } => {
                self.add_bounded(epsilon.get(), times, true, |e| (atoms(Atoms::response(e, 0.0)), true, Some(e)));
            }
            Cost::Approximate { epsilon, delta } => {
                let d = delta.get();
                self.add_bounded(epsilon.get(), times, false, |e| (atoms(Atoms::response(e, 0.0)), true, Some(e)));
                if d > 0.0 && !self.everything {
                    // (ε, δ) is ε and, apart from it, nothing but the δ.
                    if let Some(leaf) =
                        self.leaves.last_mut().filter(|_| epsilon.get() > 0.0 && epsilon.get() <= LARGEST_STEP)
                    {
                        leaf.legs = vec![atoms(Atoms::response(epsilon.get(), d))];
                    } else {
                        let legs = vec![atoms(Atoms::response(0.0, d))];
                        self.leaves.push(StepLaws { times, legs, tight: true, anchor: None, missing: 0.0 });
                    }
                    self.needs_delta(word_for(leaf));
                }
            }
            Cost::Laplace { scale } => self.add_bounded(1.0 / scale, times, false, |epsilon| {
                let law = || StepLaw::Curve { curve: Box::new(LaplaceLoss { epsilon }), reflect: false };
                (Leg { upper: law(), lower: law() }, true, Some(epsilon))
            }),
            Cost::Geometric { shift, scale } => self.add_bounded(*shift as f64 / scale, times, false, |epsilon| {
                if *shift <= MOST_ATOMS {
                    return (atoms(Atoms::geometric(*shift, *scale)), true, Some(1.0 / scale));
                }
                // Too many atoms: randomised response dominates them, and three bins of them are dominated.
                let lower = StepLaw::Atoms(Atoms::three_bins(*shift, *scale));
                let upper = StepLaw::Atoms(Atoms::response(epsilon, 0.0));
                (Leg { upper, lower }, false, Some(epsilon))
            }),
            Cost::BoundedRange { epsilon } => self.add_bounded(epsilon.get(), times, false, |epsilon| {
                // Randomised response with ε/2 has a range of ε.
                let lower = StepLaw::Atoms(Atoms::response(epsilon / 2.0, 0.0));
                let upper = StepLaw::Curve { curve: Box::new(BoundedRangeLoss { epsilon }), reflect: true };
                (Leg { upper, lower }, false, Some(epsilon / 2.0))
            }),
            Cost::Concentrated { rho } => {
                self.rho += t * rho.get() * (1.0 + 4.0 * f64::EPSILON);
                if rho.get() > 0.0 {
                    self.needs_delta(word_for(leaf));
                }
            }
            Cost::Gaussian { noise } => {
                self.squares += t / (noise * noise) * (1.0 + 4.0 * f64::EPSILON);
                if *noise < f64::INFINITY {
                    self.needs_delta(word_for(leaf));
                }
            }
            Cost::Sampled(s) => {
                let pair = dominating(s)?;
                if s.rate <= 0.0 || s.noise == f64::INFINITY {
                    return Ok(());
                }
                if s.rate >= 1.0 {
                    self.squares += t * (pair.distance() / s.noise).powi(2) * (1.0 + 4.0 * f64::EPSILON);
                } else {
                    self.leaves.push(sampled(&pair, s.rate, s.noise, times));
                }
                self.needs_delta(word_for(leaf));
            }
        }
        Ok(())
    }
}

fn sampled(pair: &Dominating, rate: f64, noise: f64, times: u64) -> StepLaws {
    let up = |distance: f64| (distance / noise).next_up();
    let leaf = |legs: Vec<Leg>, tight: bool, missing: f64| StepLaws { times, legs, tight, anchor: None, missing };
    match *pair {
        Dominating::Sided { reach } => leaf(sided(&MixtureLoss::sided(rate, up(reach)), None), true, 0.0),
        Dominating::Reflected { reach, apart } => {
            if (reach - apart) / noise >= APART {
                // A user with so many other elements gives the draw away: the coin may as well be shown.
                let shown = RevealedLoss { parts: vec![(rate, up(apart).min(FAR))] };
                let upper = StepLaw::Curve { curve: Box::new(shown), reflect: true };
                // Whoever sees the coin can bring the drawn means this near, and nearer together, so this law is attained. It has no atom at 0,
                // which a lattice from below would have to cut in two.
                let (near, apart) = (0.5 * APART, (apart / noise).next_down().min(FAR - APART));
                let lower = DippingLoss::new(PairLoss::new(rate, near + apart, near));
                return leaf(
                    vec![Leg { upper, lower: StepLaw::Curve { curve: Box::new(lower), reflect: false } }],
                    false,
                    0.0,
                );
            }
            let pair = PairLoss::new(rate, up(reach), (reach - apart) / noise);
            let upper = StepLaw::Curve { curve: Box::new(pair), reflect: true };
            let lower: Box<dyn LossCurve> =
                if apart >= reach { Box::new(pair) } else { Box::new(DippingLoss::new(pair)) };
            let lower = StepLaw::Curve { curve: lower, reflect: false };
            leaf(vec![Leg { upper, lower }], apart == 2.0 * reach, 0.0)
        }
        Dominating::Binomial { holds } => {
            let side = |toward: PartSide| {
                let drawn = BinomialParts::of(holds, rate, toward);
                let parts: Vec<_> = drawn.weighted.iter().map(|&(j, w)| (w, j / noise)).collect();
                (MixtureLoss::new(&parts, &[(1.0, 0.0)]), drawn)
            };
            let ((upper, drawn), (lower, _)) = (side(PartSide::Up), side(PartSide::Down));
            leaf(sided(&upper, (!drawn.exact).then_some(&lower)), drawn.exact, drawn.missing)
        }
        Dominating::Revealed { holds } => {
            let drawn = BinomialParts::of(holds, rate, PartSide::Up);
            let shown = drawn.weighted.iter().filter(|part| part.0 > 0.0 && part.1 > 0.0);
            let parts: Vec<_> = shown.map(|&(j, w)| (w, up(2.0 * j).min(FAR))).collect();
            // Contributions of ±1 are an explicit pair of neighbours.
            let fewer = BinomialParts::of(holds, rate, PartSide::Down).weighted;
            let side = |sign: f64| -> Vec<_> { fewer.iter().map(|&(j, w)| (w, sign * j / noise)).collect() };
            let lower = StepLaw::Curve { curve: Box::new(MixtureLoss::new(&side(1.0), &side(-1.0))), reflect: false };
            let upper = StepLaw::Curve { curve: Box::new(RevealedLoss { parts }), reflect: true };
            leaf(vec![Leg { upper, lower }], false, drawn.missing)
        }
    }
}
