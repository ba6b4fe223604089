//! Attacks on the learner: one unit is there, or not, or another; what every step shows of it must not be above the claim for a step. Learners
//! with a known bug show more, and are caught.
//!
//! Every row's gradient is longer than the clip norm whatever θ is, so each step is a run of the same mechanism of its own, and one training
//! gives thousands of them. Who attacks sees θ before and after, and knows all other rows.
//! [`one_run`] attacks a thousand units at once instead. Learners are broken from inside of the crate, since nothing outside can: what is not clipped is no `ClippedSum`.

mod chance;
mod draw;
mod label;
#[path = "../../tests/ladder/mod.rs"]
mod ladder;
mod one_run;

use crate::bound::{Bags, ClippedSum, clipped_sum_for_tests};
use crate::custom::Inputs;
use crate::custom::Linear;
use crate::loss::{LossFunction, Targets};
use crate::optimise::{Optimiser, Rule, Schedule};
use crate::params::Layout;
use crate::{
    Clip, Clipping, Count, Draft, Learner, NoiseSource, Owners, Padding, Parts, Plan, Pool, Rows, Sampler, Sanitiser,
    Store, Tuning, Way,
};
use ladder::ladder;
use whit_account::{Name, epsilon};
use whit_core::Kind;
use whit_noise::Replay;

const STEPS: usize = 12_000;
const DELTA: f64 = 0.01;
/// The chance of a false alarm of one audit, by Chernoff's bounds on both sides.
const ALARM: f64 = 1e-5;

/// An upper bound on a probability of which `hits` of `runs` were seen, by Chernoff: it holds but for a chance of `ALARM`.
fn above(hits: usize, runs: usize) -> f64 {
    let (seen, n) = (hits as f64 / runs as f64, runs as f64);
    let far = |p: f64| {
        let part = |a: f64, b: f64| if a > 0.0 { a * (a / b).ln() } else { 0.0 };
        n * (part(seen, p) + part(1.0 - seen, 1.0 - p)) > -f64::ln(ALARM)
    };
    let (mut low, mut high) = (seen, 1.0);
    for _ in 0..60 {
        let middle = f64::midpoint(low, high);
        if middle >= 1.0 || far(middle) { high = middle } else { low = middle }
    }
    high
}

/// A lower bound on ε at δ from two lists of what an attacker saw: the threshold is chosen on the first halves, by the
/// bound that it gives there, and judged on the second.
fn shown(a: &[f64], b: &[f64]) -> f64 {
    let ((a, judged_a), (b, judged_b)) = (a.split_at(a.len() / 2), b.split_at(b.len() / 2));
    let bound = |a: &[f64], b: &[f64], at: f64, side: f64| {
        let hits = |seen: &[f64]| seen.iter().filter(|&&v| side * v >= side * at).count();
        let least = 1.0 - above(a.len() - hits(a), a.len());
        let most = above(hits(b), b.len());
        // No number where δ alone explains what was seen, and then the other one counts.
        ((least - DELTA) / most).ln().max(0.0)
    };
    let mut sorted = a.to_vec();
    sorted.sort_by(f64::total_cmp);
    let thresholds = (1..200).map(|quantile| sorted[a.len() * quantile / 200]);
    let choices = thresholds.flat_map(|at| [(at, 1.0), (at, -1.0)]);
    let best = choices.map(|(at, side)| (bound(a, b, at, side), at, side)).max_by(|x, y| x.0.total_cmp(&y.0));
    best.map_or(0.0, |(_, at, side)| bound(judged_a, judged_b, at, side))
}

fn both_ways(a: &[f64], b: &[f64]) -> f64 {
    shown(a, b).max(shown(b, a))
}

struct Case {
    kind: Kind,
    rate: &'static str,
    units: u64,
    noise: f64,
    way: Way,
    /// The clip norm.
    norm: f64,
}

impl Case {
    fn plan(&self, steps: u64) -> Plan {
        let draft =
            Draft::new(ladder(self.kind), self.rate.parse().unwrap(), Count::Declared(self.units), self.norm, steps);
        draft.with_noise(self.noise).unwrap()
    }

    /// What one step claims to cost at δ.
    fn claimed(&self) -> f64 {
        let plan = self.plan(1);
        epsilon(&plan.cost(plan.ladder().protected()), DELTA, Name::Pld).unwrap().upper
    }

    /// How far each step moves θ against the direction of the first feature.
    fn moves(&self, data: &[(u64, u64, [f32; 2], f32)], seed: u64) -> Vec<f64> {
        let features = data.iter().flat_map(|row| row.2).collect();
        let targets = Targets::Numbers { values: data.iter().map(|row| row.3).collect(), width: 1 };
        let users: Vec<u64> = data.iter().map(|row| row.0).collect();
        let topics: Vec<u64> = data.iter().map(|row| row.1).collect();
        let owners = Owners { users: Some(&users), elements: Some(&topics) };
        let rows = Rows::new(Store::of(features, 2).unwrap(), targets, self.kind, owners).unwrap();
        let parts = Parts {
            model: Linear::at_zero(2, 1, false),
            plan: self.plan(STEPS as u64).stepping(self.way.clone()).unwrap().drawing(NoiseSource::Replay { seed }),
            loss: LossFunction::Squared,
            rows,
            optimiser: Optimiser::new(Rule::PLAIN, Schedule::Constant { size: 1e-3 }, None, 2).unwrap(),
            average: None,
            tuning: Tuning::default(),
        };
        let mut learner = Learner::new(parts).unwrap();
        let mut before = 0.0;
        (0..STEPS)
            .map(|_| {
                learner.step().unwrap();
                let now = f64::from(learner.theta()[0]);
                let moved = now - before;
                before = now;
                moved
            })
            .collect()
    }
}

/// Far from any output, so that gradients are always clipped.
const FAR: f32 = 1e4;

#[test]
fn no_unit_shows_more_than_its_claim() {
    let other = |user: u64| (user, 0, [0.0, 1.0], FAR);
    let others: Vec<_> = (10..16).map(other).collect();
    let with = |rows: &[(u64, u64, [f32; 2], f32)]| [&others[..], rows].concat();
    let row = |user, topic, x: f32, y: f32| (user, topic, [x, 0.0], y);
    let event = Case { kind: Kind::Event, rate: "3/4", units: 8, noise: 0.7, way: Way::Mean, norm: 1.0 };
    let element = Case { kind: Kind::Element, rate: "3/4", units: 8, noise: 1.4, way: Way::Mean, norm: 1.0 };
    let user = Case { kind: Kind::User, rate: "3/4", units: 8, noise: 0.7, way: Way::Sum, norm: 1.0 };
    let local = Case {
        kind: Kind::User,
        rate: "3/4",
        units: 8,
        noise: 0.7,
        way: Way::Local { steps: 2, size: 1e-5 },
        norm: 1.0,
    };
    let tiny = Case { kind: Kind::Event, rate: "3/4", units: 8, noise: 0.7, way: Way::Mean, norm: 1e-29 };
    let padding = Padding::Mean(vec![0.0]);
    let way = Way::Feature { private: vec![0], padding, public: 1.0 };
    let feature = Case { kind: Kind::Feature, rate: "3/4", units: 8, noise: 1.4, way, norm: 1.0 };
    let three = |y: f32| [row(1, 0, 1.0, y), row(1, 0, 1.0, y), row(1, 0, 1.0, y)];
    let cases = [
        ("event", &event, with(&[row(1, 0, 1.0, FAR)]), with(&[])),
        // The same user's other elements stay; one element's rows become others.
        (
            "element",
            &element,
            with(&[row(1, 1, 1.0, FAR), row(1, 0, 1.0, FAR), row(1, 0, 1.0, FAR)]),
            with(&[row(1, 1, 1.0, FAR), row(1, 0, 1.0, -FAR)]),
        ),
        ("user", &user, with(&three(FAR)), with(&[])),
        ("user, local steps", &local, with(&three(FAR)), with(&[])),
        // What the private feature is decides which way the row pulls; all else is public.
        ("feature", &feature, with(&[row(1, 0, 1.0, FAR)]), with(&[row(1, 0, -1.0, FAR)])),
        // Rows whose squares vanish in f32 are still a thousand million times as long as this clip.
        ("tiny rows", &tiny, with(&[row(1, 0, 1e-24, FAR)]), with(&[])),
    ];
    for (name, case, one, another) in cases {
        let found = both_ways(&case.moves(&one, 1), &case.moves(&another, 2));
        let claimed = case.claimed();
        assert!(found <= claimed, "{name}: {found} shown, {claimed} claimed");
        // An attack that shows nothing would not find a bug either.
        assert!(found > 0.25 * claimed, "{name}: {found} shown of {claimed} claimed");
    }
}

/// One step of a learner put together by hand, with what it gets wrong.
fn by_hand(
    present: bool,
    seed: u64,
    case: &Case,
    others: usize,
    break_it: impl Fn(&mut Vec<f64>, usize, &[f64]),
) -> Vec<f64> {
    let plan = case.plan(STEPS as u64).drawing(NoiseSource::Replay { seed });
    let model = Linear::at_zero(1, 1, true);
    let (layout, _) = Layout::of(&model);
    let rows = others + usize::from(present);
    let mut sampler = Sampler::new(&plan, Pool::Units(rows)).unwrap();
    let mut sanitiser = Sanitiser::new(&plan, 2).unwrap();
    let mut coins = Replay::new(seed + 1);
    let mut seen = Vec::new();
    for _ in 0..STEPS {
        let drawn = sampler.draw(&mut coins);
        // The last row pulls against all others.
        let target = |&unit: &u32| if (unit as usize) < others { FAR } else { -FAR };
        let targets = Targets::Numbers { values: drawn.iter().map(target).collect(), width: 1 };
        let sum = |clip| {
            let inputs = Inputs::of(vec![0.5; drawn.len()], 1);
            let (weights, bags) = (vec![1.0; drawn.len()], Bags::single(drawn.len()));
            clipped_sum_for_tests(&model, &layout, LossFunction::Squared, inputs, &targets, &weights, &bags, clip)
                .unwrap()
        };
        let mut clipped = sum(Some(Clip { norm: 1.0, how: Clipping::Flat }));
        let plain = sum(None);
        // Sums are broken before noise, means after it.
        break_it(&mut clipped, 0, &plain);
        let mut mean = vec![0.0; 2];
        sanitiser.sanitise(&ClippedSum::forged(clipped, plan.clip()), &mut mean).unwrap();
        break_it(&mut mean, drawn.len(), &plain);
        seen.push(mean[0] + mean[1]);
    }
    seen
}

#[test]
fn a_learner_that_divides_by_the_drawn_size_is_caught() {
    let case = Case { kind: Kind::Event, rate: "1", units: 100, noise: 0.8, way: Way::Mean, norm: 1.0 };
    let right = |_: &mut Vec<f64>, _: usize, _: &[f64]| {};
    let wrong = |values: &mut Vec<f64>, drawn: usize, _: &[f64]| {
        if drawn > 0 {
            for value in values.iter_mut() {
                *value *= 100.0 / drawn as f64;
            }
        }
    };
    let claimed = case.claimed();
    let honest = both_ways(&by_hand(true, 1, &case, 100, right), &by_hand(false, 3, &case, 100, right));
    let bug = both_ways(&by_hand(true, 1, &case, 100, wrong), &by_hand(false, 3, &case, 100, wrong));
    assert!(honest <= claimed && bug > claimed, "{honest} and {bug} of {claimed}");
}

#[test]
fn a_learner_that_forgets_to_clip_a_layer_is_caught() {
    let case = Case { kind: Kind::Event, rate: "1", units: 4, noise: 0.8, way: Way::Mean, norm: 1.0 };
    // The constant's gradient as it is, and a little of it only, so that it does not drown everything.
    let wrong = |values: &mut Vec<f64>, drawn: usize, plain: &[f64]| {
        if drawn == 0 {
            values[1] = plain[1] * 3e-4;
        }
    };
    let bug = both_ways(&by_hand(true, 1, &case, 4, wrong), &by_hand(false, 3, &case, 4, wrong));
    assert!(bug > case.claimed(), "{bug} of {}", case.claimed());
}
