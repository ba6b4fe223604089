//! Audits in one run: a thousand units at once, each in one of two states by a coin of its own, and who attacks guesses
//! the coins. [`super::chance`] says what right guesses prove.
//!
//! Unit i alone has feature i, and its gradient is longer than the clip norm, so the gradients are at right angles and
//! one unit hides nothing of another. Two data sets that differ in one coin are neighbours of the ladder: an event or a
//! user is there or not; an element's rows, a row's private features or its label become the opposite, which pulls the
//! other way and is the furthest that a replacement can go.

use super::chance::Guesses;
use super::{Case, FAR};
use crate::bound::{Bags, ClippedSum, clipped_sum_for_tests};
use crate::custom::Inputs;
use crate::custom::Linear;
use crate::loss::{LossFunction, Targets};
use crate::optimise::{Optimiser, Rule, Schedule};
use crate::params::Layout;
use crate::{Learner, NoiseSource, Owners, Padding, Parts, Plan, Pool, Rows, Sampler, Sanitiser, Store, Tuning, Way};
use whit_core::Kind;
use whit_noise::{Entropy, Replay};

const UNITS: usize = 1000;
const STEPS: u64 = 16;
const DELTA: f64 = 1e-5;
/// So many coins are guessed on either side, those that are clearest; it was fixed before any run.
const CLEAREST: usize = 60;
/// The bound is too high with at most this probability.
const ALARM: f64 = 0.05;

/// The units' coins, from other bits than the learner's noise and draws.
fn coins(seed: u64) -> Vec<bool> {
    let mut entropy = Replay::new(0x5eed_0000 + seed);
    (0..UNITS).map(|_| entropy.bits(1) == 1).collect()
}

/// Rows with their users and elements, as the coins say.
struct Data {
    features: Vec<f32>,
    targets: Vec<f32>,
    users: Vec<u64>,
    elements: Vec<u64>,
}

impl Data {
    /// `rows` rows a unit; elements are four to a user.
    fn new(unit: Kind, rows: usize, coins: &[bool]) -> Self {
        let mut data = Self { features: Vec::new(), targets: Vec::new(), users: Vec::new(), elements: Vec::new() };
        for (i, &coin) in coins.iter().enumerate() {
            let sign = if coin { 1.0 } else { -1.0 };
            let (x, y, rows) = match unit {
                Kind::Event | Kind::User => (1.0, FAR, if coin { rows } else { 0 }),
                Kind::Element | Kind::Label => (1.0, sign * FAR, rows),
                Kind::Feature => (sign, FAR, rows),
            };
            for _ in 0..rows {
                let start = data.features.len();
                data.features.resize(start + UNITS, 0.0);
                data.features[start + i] = x;
                data.targets.push(y);
                let four = if unit == Kind::Element { 4 } else { 1 };
                data.users.push(i as u64 / four);
                data.elements.push(i as u64 % four);
            }
        }
        data
    }

    fn rows(self, kind: Kind) -> Rows {
        let targets = Targets::Numbers { values: self.targets, width: 1 };
        let owners = Owners { users: Some(&self.users), elements: Some(&self.elements) };
        Rows::new(Store::of(self.features, UNITS).unwrap(), targets, kind, owners).unwrap()
    }
}

fn case(kind: Kind, noise: f64, way: Way) -> Case {
    Case { kind, rate: "1/2", units: UNITS as u64, noise, way, norm: 1.0 }
}

/// What a learner shows of each unit: the sum over all steps of how far θ went along the way that the unit pulls.
fn shown(plan: Plan, way: Way, rows: Rows, seed: u64) -> Vec<f64> {
    let parts = Parts {
        model: Linear::at_zero(UNITS, 1, false),
        plan: plan.stepping(way).unwrap().drawing(NoiseSource::Replay { seed }),
        loss: LossFunction::Squared,
        rows,
        optimiser: Optimiser::new(Rule::PLAIN, Schedule::Constant { size: 1e-3 }, None, UNITS).unwrap(),
        average: None,
        tuning: Tuning::default(),
    };
    let mut learner = Learner::new(parts).unwrap();
    let mut scores = vec![0.0; UNITS];
    let mut before = learner.theta().to_vec();
    for _ in 0..STEPS {
        learner.step().unwrap();
        for ((score, &now), before) in scores.iter_mut().zip(learner.theta()).zip(&mut before) {
            *score += f64::from(now) - f64::from(*before);
            *before = now;
        }
    }
    scores
}

/// The lower bound on ε that the clearest scores prove.
fn proven(scores: &[f64], coins: &[bool]) -> f64 {
    let mut order: Vec<usize> = (0..scores.len()).collect();
    order.sort_by(|&a, &b| scores[a].total_cmp(&scores[b]));
    let low = order[..CLEAREST].iter().filter(|&&unit| !coins[unit]).count();
    let high = order[UNITS - CLEAREST..].iter().filter(|&&unit| coins[unit]).count();
    Guesses { units: UNITS, made: 2 * CLEAREST, right: low + high }.epsilon(DELTA, ALARM)
}

fn claimed(plan: &Plan) -> f64 {
    plan.loss(DELTA).unwrap()[0].1.upper
}

#[test]
fn one_run_shows_no_more_of_any_unit_than_is_claimed() {
    let private = (0..UNITS).collect();
    let feature = Way::Feature { private, padding: Padding::Mean(vec![0.0; UNITS]), public: 1.0 };
    let cases = [
        ("event", 1, case(Kind::Event, 1.5, Way::Mean)),
        ("user", 3, case(Kind::User, 1.5, Way::Sum)),
        ("element", 2, case(Kind::Element, 3.0, Way::Mean)),
        ("feature", 1, case(Kind::Feature, 3.0, feature)),
        ("label", 1, case(Kind::Label, 3.0, Way::Label)),
    ];
    for (seed, (name, rows, case)) in (1..).zip(cases) {
        let (coins, plan) = (coins(seed), case.plan(STEPS));
        let claimed = claimed(&plan);
        let rows = Data::new(case.kind, rows, &coins).rows(case.kind);
        let found = proven(&shown(plan, case.way, rows, seed), &coins);
        assert!(found <= claimed, "{name}: {found} proven, {claimed} claimed");
        // An attack that proves nothing would not find a bug either.
        assert!(found > 0.2 * claimed, "{name}: {found} proven of {claimed} claimed");
    }
}

/// A learner whose noise is a quarter of what its plan says.
#[test]
fn too_little_noise_is_caught_in_one_run() {
    let noise = 6.0;
    let honest = case(Kind::Event, noise, Way::Mean).plan(STEPS);
    let broken = case(Kind::Event, noise / 4.0, Way::Mean).plan(STEPS);
    let coins = coins(7);
    let run = |plan: &Plan| {
        let rows = Data::new(Kind::Event, 1, &coins).rows(Kind::Event);
        proven(&shown(plan.clone(), Way::Mean, rows, 7), &coins)
    };
    let (right, wrong, claimed) = (run(&honest), run(&broken), claimed(&honest));
    assert!(right <= claimed && wrong > claimed, "{right} and {wrong} of {claimed}");
}

/// A learner that protects users, as it says, and clips each of their eight rows on its own.
#[test]
fn rows_taken_for_users_are_caught_in_one_run() {
    let users = case(Kind::User, 6.0, Way::Sum).plan(STEPS);
    let events = case(Kind::Event, 6.0, Way::Sum).plan(STEPS);
    let coins = coins(8);
    let run = |plan: &Plan, kind: Kind| {
        let rows = Data::new(Kind::User, 8, &coins).rows(kind);
        proven(&shown(plan.clone(), Way::Sum, rows, 8), &coins)
    };
    let (right, wrong, claimed) = (run(&users, Kind::User), run(&events, Kind::Event), claimed(&users));
    assert!(right <= claimed && wrong > claimed, "{right} and {wrong} of {claimed}");
}

/// A learner put together by hand, that clips or forgets to: its rows' gradients are five times as long as the clip
/// norm.
fn by_hand(plan: &Plan, coins: &[bool], clips: bool, seed: u64) -> Vec<f64> {
    let model = Linear::at_zero(UNITS, 1, false);
    let (layout, _) = Layout::of(&model);
    let present: Vec<usize> = (0..UNITS).filter(|&unit| coins[unit]).collect();
    let mut sampler = Sampler::new(plan, Pool::Units(present.len())).unwrap();
    let mut sanitiser = Sanitiser::new(&plan.clone().drawing(NoiseSource::Replay { seed }), UNITS).unwrap();
    let mut draws = Replay::new(seed + 1);
    let (mut scores, mut mean) = (vec![0.0; UNITS], vec![0.0; UNITS]);
    for _ in 0..STEPS {
        let drawn = sampler.draw(&mut draws);
        let mut features = vec![0.0; drawn.len() * UNITS];
        for (row, &unit) in features.chunks_exact_mut(UNITS).zip(&drawn) {
            row[present[unit as usize]] = 1.0;
        }
        let targets = Targets::Numbers { values: vec![5.0; drawn.len()], width: 1 };
        let (weights, bags) = (vec![1.0; drawn.len()], Bags::single(drawn.len()));
        let (inputs, clip) = (Inputs::of(features, UNITS), clips.then_some(plan.clip()));
        let sum =
            clipped_sum_for_tests(&model, &layout, LossFunction::Squared, inputs, &targets, &weights, &bags, clip)
                .unwrap();
        sanitiser.sanitise(&ClippedSum::forged(sum, plan.clip()), &mut mean).unwrap();
        scores.iter_mut().zip(&mean).for_each(|(score, mean)| *score -= mean);
    }
    scores
}

#[test]
fn a_learner_that_forgets_to_clip_is_caught_in_one_run() {
    let plan = case(Kind::Event, 6.0, Way::Mean).plan(STEPS);
    let (coins, claimed) = (coins(9), claimed(&plan));
    let found = |clips| proven(&by_hand(&plan, &coins, clips, 9), &coins);
    let (right, wrong) = (found(true), found(false));
    assert!(right <= claimed && wrong > claimed, "{right} and {wrong} of {claimed}");
}
