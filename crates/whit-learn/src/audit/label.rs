//! Attacks on labels: one row has this label or that one, and everything else is known, the public part of each step
//! included.

use super::ladder::ladder;
use super::{DELTA, FAR, both_ways};
use crate::custom::Linear;
use crate::loss::{LossFunction, Targets};
use crate::optimise::{Optimiser, Rule, Schedule};
use crate::{Count, Draft, Learner, NoiseSource, Owners, Parts, Plan, Rows, Store, Tuning, Way};
use std::f64::consts::SQRT_2;
use whit_account::{Name, epsilon};
use whit_core::Kind;

const STEPS: u64 = 10_000;
const OTHERS: usize = 6;

/// A plan for labels whose contributions are at most `difference` clip norms apart.
fn plan(norm: f64, noise: f64, difference: f64, steps: u64) -> Plan {
    let units = Count::Counted(OTHERS as u64 + 1);
    let draft = Draft::new(ladder(Kind::Label), "3/4".parse().unwrap(), units, norm, steps);
    Draft { difference, ..draft }.with_noise(noise).unwrap()
}

/// What one step claims to cost at δ.
fn claimed(noise: f64, difference: f64) -> f64 {
    let plan = plan(1.0, noise, difference, 1);
    epsilon(&plan.cost(plan.ladder().protected()), DELTA, Name::Pld).unwrap().upper
}

/// What is learned from one row with feature (x, 0) among others with (0, x).
struct Attack {
    loss: LossFunction,
    x: f32,
    /// The two labels that the row may have; the others have the first.
    labels: [f32; 2],
    /// How many outputs the model has.
    outputs: usize,
}

impl Attack {
    fn targets(&self, label: usize) -> Targets {
        let labels = std::iter::repeat_n(self.labels[0], OTHERS).chain([self.labels[label]]);
        match self.loss {
            LossFunction::Softmax => {
                Targets::Classes { labels: labels.map(|label| label as u32).collect(), classes: self.outputs as u32 }
            }
            _ => Targets::Numbers { values: labels.collect(), width: 1 },
        }
    }

    /// How far each step moves θ from where the second label pulls towards where the first does.
    fn moves(&self, plan: &Plan, label: usize, seed: u64) -> Vec<f64> {
        let features = std::iter::repeat_n([0.0, self.x], OTHERS).chain([[self.x, 0.0]]).flatten().collect();
        let features = Store::of(features, 2).unwrap();
        let rows = Rows::new(features, self.targets(label), Kind::Label, Owners::default()).unwrap();
        // Short steps, so that θ stays where it is and the public part with it.
        let optimiser = Optimiser::new(Rule::PLAIN, Schedule::Constant { size: 1e-6 }, None, 2 * self.outputs).unwrap();
        let parts = Parts {
            model: Linear::at_zero(2, self.outputs, false),
            plan: plan.clone().stepping(Way::Label).unwrap().drawing(NoiseSource::Replay { seed }),
            loss: self.loss,
            rows,
            optimiser,
            average: None,
            tuning: Tuning::default(),
        };
        let mut learner = Learner::new(parts).unwrap();
        // Weights stand feature by feature, and a class pulls its own up.
        let along = |theta: &[f32]| {
            let second = if self.outputs > 1 { theta[1] } else { 0.0 };
            f64::from(theta[0]) - f64::from(second)
        };
        let mut before = 0.0;
        let step = |_| {
            learner.step().unwrap();
            let now = along(learner.theta());
            let moved = now - before;
            before = now;
            moved
        };
        (0..plan.steps()).map(step).collect()
    }

    fn shown(&self, plan: &Plan) -> f64 {
        both_ways(&self.moves(plan, 0, 1), &self.moves(plan, 1, 2))
    }
}

/// Numbers whose labels' parts are opposite.
const NUMBERS: Attack = Attack { loss: LossFunction::Squared, x: 1.0, labels: [FAR, -FAR], outputs: 1 };

/// Parts of two labels are 2 clip norms apart where labels are numbers; √2 for classes and 1 for yes or no, where a
/// unit is one row and the model is linear (erratum F4).
#[test]
fn no_label_shows_more_than_its_claim() {
    let classes = Attack { loss: LossFunction::Softmax, x: 4.0, labels: [0.0, 1.0], outputs: 3 };
    // No longer than the clip norm: what is public of the row would hide the rest from an attack that does not subtract
    // it.
    let yes_or_no = Attack { loss: LossFunction::Logistic, x: 1.0, labels: [1.0, 0.0], outputs: 1 };
    for (name, attack, difference, noise) in
        [("number", NUMBERS, 2.0, 1.4), ("class", classes, SQRT_2.next_up(), 1.0), ("yes or no", yes_or_no, 1.0, 0.7)]
    {
        let (found, claimed) = (attack.shown(&plan(1.0, noise, difference, STEPS)), claimed(noise, difference));

        assert!(found <= claimed, "{name}: {found} shown, {claimed} claimed");
        assert!(found > 0.25 * claimed, "{name}: {found} shown of {claimed} claimed");
    }
}

/// The parts of two labels are claimed to be half a clip norm apart, and they are two.
#[test]
fn a_difference_that_is_claimed_too_small_is_caught() {
    let (found, claimed) = (NUMBERS.shown(&plan(1.0, 1.0, 0.5, STEPS)), claimed(1.0, 0.5));

    assert!(found > claimed, "{found} shown, {claimed} claimed");
}

/// The label's part has length 5 and is not clipped, and the noise is that for length 1.
#[test]
fn a_label_that_is_not_clipped_is_caught() {
    let (norm, noise) = (5.0, 2.0);
    let five = Attack { labels: [5.0, -5.0], ..NUMBERS };
    let right = five.shown(&plan(1.0, noise, 2.0, STEPS));
    let wrong = five.shown(&plan(norm, noise / norm, 2.0, STEPS));
    let claimed = claimed(noise, 2.0);

    assert!(right <= claimed && wrong > claimed, "{right} and {wrong} of {claimed}");
}
