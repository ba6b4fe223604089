//! The best of several trainings, by a score that is paid for with them.
//!
//! Settings that were tried on private rows are a release: whoever publishes the best of ten models has shown something of all ten. Here the number of trainings is random and
//! stays secret, each draws its settings from a list, and is scored with noise; the best leaves. [`BestOf`] has the price and its proof.

use crate::custom::{Inputs, Model, Tape};
use crate::error::LearnError;
use crate::loss::{LossFunction, Share, Targets};
use crate::params::Layout;
use crate::plan::{Plan, PlanError, moves};
use crate::release::{Card, Recipe, Trained};
use crate::source::Rows;
use crate::tensor;
use crate::train::Learner;
use whit_core::mechanism::best::BestOf;
use whit_core::{Charge, Cost, Ladder, Rung};
use whit_noise::round::{quotient_down, ratio_up};
use whit_noise::{Entropy, Ratio, RoundedGaussian, below};

/// A unit's share of right rows is counted in so many steps, down: what noise is added to is a whole number.
const STEPS: u32 = 1 << 20;

/// So many rows go through a model at once, always: what comes out for a row may differ in its last bits with that number, and must not follow from who else is there.
const BLOCK: usize = 512;

/// The most noise, which fits into 64 bits of steps with all that there may be.
const MOST_NOISE: f64 = (1_u64 << 30) as f64;

/// How a model is scored: the sum over units of the share of a unit's rows that it predicts right, with Gaussian noise.
///
/// # Neighbours
/// Data sets that differ in one unit of a rung of a ladder, after the cut to its caps.
///
/// # Claim
/// A score of a model that is public, or paid for, costs [`Scoring::cost`]: Gaussian noise of the stated deviation, in units, over as many units as move at once.
///
/// # Why
/// Each unit adds a whole number from 0 to 2²⁰, whatever its rows are, and one without rows adds 0. It follows from the unit's rows and the model alone: rows go through the model in blocks of one size,
/// filled up with zeros. So a unit that comes, goes or becomes another moves the sum by at most 2²⁰, and k of them by k times that. How many move at once after a cut is
/// what plans are priced for, too. The noise is a real Gaussian rounded to whole numbers, drawn exactly, of 2²⁰ times the stated deviation: post-processing of the Gaussian mechanism.
///
/// # Tried by
/// `a_unit_moves_a_score_by_one_at_most`, `scores_count_units_and_not_rows`.
#[derive(Debug, Clone, PartialEq)]
pub struct Scoring {
    noise: Ratio,
    limit: Option<f64>,
}

impl Scoring {
    /// With noise of this deviation, in units. Where there are no classes, a row counts for as much as its loss is below the limit, as a share of it.
    pub fn new(noise: f64, limit: Option<f64>) -> Result<Self, PlanError> {
        let fits = (1.0 / MOST_NOISE..=MOST_NOISE).contains(&noise);
        let noise = Ratio::from_f64_down(noise).ok().filter(|_| fits).ok_or(PlanError::Noise { noise })?;
        match limit {
            Some(limit) if !(limit > 0.0 && limit.is_finite()) => Err(PlanError::Limit { limit }),
            limit => Ok(Self { noise, limit }),
        }
    }

    /// What one score costs a rung.
    pub fn cost(&self, ladder: &Ladder, rung: &Rung) -> Cost {
        let mut rungs = ladder.rungs().iter().zip(ladder.held());
        rungs.find(|(known, _)| known.unit == rung.unit).map_or(Cost::Everything, |(known, &held)| {
            let (_, held) = moves(ladder, known, held);
            Cost::Gaussian { noise: quotient_down(self.noise.to_f64_down(), ratio_up(&Ratio::from(held))) }
        })
    }

    /// What a unit's rows count, of 2²⁰, by what a model says of them.
    fn counts(&self, loss: LossFunction, z: &[f32], targets: &Targets, width: usize) -> Vec<f64> {
        let rows = targets.len();
        let largest = |z: &[f32]| (0..z.len()).fold(0, |best, i| if z[i] > z[best] { i } else { best });
        let right = |right: bool| f64::from(u8::from(right));
        match (targets, self.limit) {
            (Targets::Classes { labels, .. }, _) => {
                let each = z.chunks_exact(width).zip(labels);
                each.map(|(z, &label)| right(z.iter().all(|z| z.is_finite()) && largest(z) == label as usize)).collect()
            }
            (Targets::Numbers { values, .. }, None) => {
                let middle = if loss == LossFunction::Logistic { 0.0 } else { 0.5 };
                z.iter().zip(values).map(|(z, y)| right(z.is_finite() && (*z > middle) == (*y > 0.5))).collect()
            }
            (Targets::Numbers { .. }, Some(limit)) => {
                let (losses, _) = loss.loss_and_gradient(Share::Whole, z, targets, &vec![1.0; rows], width);
                let below = |loss: f32| 1.0 - f64::from(loss) / limit;
                // What is no number counts nothing.
                losses.into_iter().map(|loss| if below(loss) > 0.0 { below(loss).min(1.0) } else { 0.0 }).collect()
            }
        }
    }

    /// The sum over units, without noise: as private as the rows.
    fn exact<M: Model>(&self, model: &M, loss: LossFunction, rows: &Rows) -> Result<i64, LearnError> {
        let width = rows.width();
        let all: Vec<u32> = (0..rows.units() as u32).flat_map(|unit| rows.of_unit(unit).to_vec()).collect();
        let mut counts = Vec::with_capacity(all.len());
        for part in all.chunks(BLOCK) {
            let mut features = rows.pick(part)?;
            features.resize(BLOCK * width, 0.0);
            let z = tensor::floats(model.forward(&Inputs::of(features, width), &mut Tape::open())?);
            let z = &z[..part.len() * model.outputs()];
            counts.extend(self.counts(loss, z, &rows.targets().pick(part), model.outputs()));
        }
        let mut counts = counts.into_iter();
        let unit = |unit: u32| {
            let many = rows.of_unit(unit).len();
            let total: f64 = counts.by_ref().take(many).sum();
            (total / many.max(1) as f64 * f64::from(STEPS)).clamp(0.0, f64::from(STEPS)) as i64
        };
        Ok((0..rows.units() as u32).map(unit).sum())
    }

    /// The score, with its noise.
    fn score<M: Model>(
        &self,
        model: &M,
        loss: LossFunction,
        rows: &Rows,
        entropy: &mut dyn Entropy,
    ) -> Result<i64, LearnError> {
        let deviation = self.noise.times(&Ratio::from(u64::from(STEPS)));
        let law = deviation.and_then(|deviation| RoundedGaussian::new(deviation).ok());
        let law = law.ok_or(PlanError::Noise { noise: self.noise.to_f64() })?;
        let noise = law.draw(entropy).map_err(|why| LearnError::Data(why.to_string()))?;
        Ok(self.exact(model, loss, rows)?.saturating_add(noise))
    }
}

/// One of the trainings that are chosen among: all that is known of it before a row is read.
#[derive(Debug, Clone)]
pub struct Candidate {
    /// What is promised for one run of it.
    pub plan: Plan,
    /// What its model would say of itself, with the price of the whole choice.
    pub card: Card,
    /// How rows become its input.
    pub recipe: Recipe,
}

/// A choice among trainings: a random number of runs, each of a candidate that a coin draws, and the best by its score.
///
/// # Neighbours
/// Data sets that differ in one unit of a rung of the candidates' ladder.
///
/// # Claim
/// The model that leaves, and which candidate it is of, cost [`Choice::cost`] together: however many runs there were, and all their scores.
///
/// # Why
/// A run is one training under its plan, with noise of its own ([`Learner`]), and then a score of what was learned ([`Scoring`]); one after the other they cost both. That is what [`BestOf`] is told of
/// each candidate, and it runs nothing else. What all candidates see are the same rows, cut alike.
///
/// # Tried by
/// `a_choice_costs_what_the_theorem_says_of_steps_and_score`, `the_best_of_several_trainings_is_chosen_and_paid_for_once`.
pub struct Choice {
    /// How many runs there are.
    pub best: BestOf,
    /// How each is scored.
    pub scoring: Scoring,
    /// What is chosen among.
    pub candidates: Vec<Candidate>,
}

impl Choice {
    /// What the choice costs a rung.
    pub fn cost(&self, rung: &Rung) -> Cost {
        let one = |candidate: &Candidate| {
            let plan = &candidate.plan;
            Cost::Series(vec![plan.cost(rung), self.scoring.cost(plan.ladder(), rung)])
        };
        self.best.cost(self.candidates.iter().map(one).collect())
    }

    /// The same for all rungs: what a ledger is asked to reserve before a row is read.
    pub fn charge(&self) -> Charge {
        let rungs = self.candidates.first().map_or(&[][..], |candidate| candidate.plan.ladder().rungs());
        rungs.iter().map(|rung| (rung.clone(), self.cost(rung))).collect()
    }

    /// Runs, scores and returns the best. `make` gives a learner of the candidate of that number that stands at its start; `rows` are those that are scored by.
    ///
    /// What it returns is to stay sealed until it is paid for.
    pub fn choose<M: Model>(
        &self,
        make: &dyn Fn(usize) -> Result<Learner<M>, LearnError>,
        rows: &Rows,
        entropy: &mut dyn Entropy,
    ) -> Result<Trained, LearnError> {
        self.best.run(entropy, |entropy| {
            let place = below(self.candidates.len() as u64, entropy) as usize;
            let candidate = &self.candidates[place];
            let mut learner = make(place)?;
            rows.check(candidate.plan.ladder())?;
            // What was reserved is this plan's, of noise and coins and all.
            if *learner.plan() != candidate.plan || learner.taken() > 0 {
                return Err(PlanError::OtherPlan.into());
            }
            while learner.taken() < candidate.plan.steps() {
                learner.step()?;
            }
            let model = learner.model()?.merged();
            let score = self.scoring.score(&model, candidate.recipe.loss, rows, entropy)?;
            let (layout, theta) = Layout::of(&model);
            Ok((score, Trained::of(candidate.card.clone(), candidate.recipe.clone(), (&layout, theta))))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::custom::Linear;
    use crate::optimise::{Optimiser, Rule, Schedule};
    use crate::plan::{Count, Draft, NoiseSource};
    use crate::source::Owners;
    use crate::store::Store;
    use crate::train::{Parts, Tuning};
    use whit_account::{Name, epsilon};
    use whit_core::mechanism::best::RunCount;
    use whit_core::unit::Caps;
    use whit_core::{Change, Kind, RunLaw, Unit};
    use whit_noise::Replay;

    fn ladder() -> Ladder {
        let caps = Caps { elements_per_user: Some(3), rows_per_element: None };
        Ladder::new(vec![Unit::element("user", "topic"), Unit::user("user", Change::Replace)], caps, Kind::Element)
            .unwrap()
    }

    /// Rows of one feature, which are right where it is positive, by users and elements.
    fn rows(features: &[f32], users: &[u64], elements: &[u64]) -> Rows {
        let targets = Targets::Numbers { values: vec![1.0; features.len()], width: 1 };
        let owners = Owners { users: Some(users), elements: Some(elements) };
        Rows::new(Store::of(features.to_vec(), 1).unwrap(), targets, Kind::Element, owners).unwrap()
    }

    fn sign() -> Linear {
        let model = Linear::at_zero(1, 1, false);
        let layout = Layout::of(&model).0;
        layout.fill(model, &[1.0]).unwrap()
    }

    #[test]
    fn scores_count_units_and_not_rows() {
        let scoring = Scoring::new(1.0, None).unwrap();
        let exact = |rows: &Rows| scoring.exact(&sign(), LossFunction::Logistic, rows).unwrap();
        // One unit of three rows, two of which are right; one of one that is right; one of one that is wrong.
        let some = rows(&[1.0, 2.0, -1.0, 3.0, -2.0], &[1, 1, 1, 1, 2], &[5, 5, 5, 6, 5]);
        assert_eq!(exact(&some), i64::from(STEPS) * 2 / 3 + i64::from(STEPS));
        assert_eq!(exact(&rows(&[], &[], &[])), 0);
        let targets = Targets::Numbers { values: vec![1.0; 3], width: 1 };
        let wild = scoring.counts(LossFunction::Logistic, &[f32::NAN, f32::INFINITY, 1.0], &targets, 1);
        assert_eq!(wild, [0.0, 0.0, 1.0], "what is no number counts nothing");
        let limited = Scoring::new(1.0, Some(4.0)).unwrap();
        // z = 1 for y = 1 has no loss; z = −1 has (−2)²/2 = 2, or (−2)² = 4: half of the limit, or all of it.
        let one = |x: f32| limited.exact(&sign(), LossFunction::Squared, &rows(&[x], &[1], &[1])).unwrap();
        assert_eq!(one(1.0), i64::from(STEPS));
        assert!(one(-1.0) < one(0.5) && one(-9.0) == 0 && one(f32::MAX) == 0);
        assert!(Scoring::new(0.0, None).is_err() && Scoring::new(1.0, Some(0.0)).is_err());
    }

    #[test]
    fn a_unit_moves_a_score_by_one_at_most() {
        let mut coins = Replay::new(4);
        for limit in [None, Some(0.7)] {
            let scoring = Scoring::new(1.0, limit).unwrap();
            let loss = if limit.is_some() { LossFunction::Squared } else { LossFunction::Logistic };
            for _ in 0..40 {
                let many = 1 + below(9, &mut coins) as usize;
                let mut number = || [1e30, -1e30, f32::MAX, 0.0, 0.5, -0.5][below(6, &mut coins) as usize];
                let mut features: Vec<f32> = (0..many).map(|_| number()).collect();
                let users: Vec<u64> = (0..many as u64).map(|row| row / 2).collect();
                let elements = vec![0; many];
                let exact =
                    |features: &[f32]| scoring.exact(&sign(), loss, &rows(features, &users, &elements)).unwrap();
                let before = exact(&features);
                features[0] = number(); // and the second row, which is of the same unit, where there is one
                if many > 1 {
                    features[1] = number();
                }
                assert!((before - exact(&features)).abs() <= i64::from(STEPS));
            }
        }
        let costs = ladder()
            .rungs()
            .iter()
            .map(|rung| Scoring::new(6.0, None).unwrap().cost(&ladder(), rung))
            .collect::<Vec<_>>();
        // Rounded down, which is dearer.
        for (cost, expected) in costs.iter().zip([6.0, 2.0]) {
            let near = |noise: f64| noise <= expected && noise > expected * (1.0 - 1e-12);
            assert!(matches!(cost, Cost::Gaussian { noise } if near(*noise)), "{cost:?} for {expected}");
        }
        assert_eq!(costs.len(), 2);
        let other = Rung { unit: Unit::event(Change::AddRemove), holds: 1, disjoint: false, slices: None };
        assert_eq!(Scoring::new(6.0, None).unwrap().cost(&ladder(), &other), Cost::Everything);
    }

    fn recipe() -> Recipe {
        Recipe {
            dataset: "visits".to_owned(),
            features: vec!["x".into()],
            widths: std::collections::BTreeMap::new(),
            bits: false,
            scale: 1.0,
            offset: 0.0,
            target: "y".to_owned(),
            classes: None,
            model: crate::model::Named::Linear { bias: false },
            loss: LossFunction::Logistic,
            projection: None,
            inputs: 1,
            outputs: 1,
        }
    }

    fn plan(noise: f64, source: NoiseSource) -> Plan {
        let draft = Draft::new(ladder(), "1/2".parse().unwrap(), Count::Declared(40), 1.0, 20);
        draft.with_noise(noise).unwrap().drawing(source)
    }

    fn choice(noises: &[f64], source: NoiseSource) -> Choice {
        let candidate = |&noise: &f64| {
            let plan = plan(noise, source);
            Candidate { card: Card::of(&plan, 1e-6, &recipe(), 1).unwrap(), plan, recipe: recipe() }
        };
        Choice {
            best: BestOf::new(RunCount::Geometric { stop: "1/4".parse().unwrap() }).unwrap(),
            scoring: Scoring::new(2.0, None).unwrap(),
            candidates: noises.iter().map(candidate).collect(),
        }
    }

    #[test]
    fn a_choice_costs_what_the_theorem_says_of_steps_and_score() {
        let secret = NoiseSource::Secret { threads: 1 };
        let choice = choice(&[4.0, 8.0], secret);
        let ladder = ladder();
        let protected = ladder.protected();
        let steps = |noise| plan(noise, secret).cost(protected);
        let expected = Cost::Chosen {
            candidates: [4.0, 8.0]
                .map(|noise| Cost::Series(vec![steps(noise), Cost::Gaussian { noise: 2.0_f64.next_down() }]))
                .to_vec(),
            law: RunLaw::Geometric { stop: 0.25_f64.next_down() }, // rounded down, which is dearer, and so is the noise
        };
        assert_eq!(choice.cost(protected).leaves(), expected.leaves());
        assert_eq!(choice.charge().len(), 2);
        let price = |cost: &Cost| epsilon(cost, 1e-6, Name::Rdp).unwrap().upper;
        let one = Cost::Series(vec![steps(4.0), Cost::Gaussian { noise: 2.0 }]);
        assert!(price(&choice.cost(protected)) > 1.2 * price(&one), "paying for one run would be too little");
        let seeded = super::tests::choice(&[4.0], NoiseSource::Replay { seed: 1 });
        assert_eq!(price(&seeded.cost(protected)), f64::INFINITY);
    }

    /// With little noise the candidate that learns wins over the one whose steps are all noise.
    #[test]
    fn the_best_of_several_trainings_is_chosen_and_paid_for_once() {
        let many = 40_usize;
        let features: Vec<f32> = (0..many).map(|row| if row % 8 == 0 { -0.5 } else { 1.0 }).collect();
        let users: Vec<u64> = (0..many as u64).collect();
        let data = rows(&features, &users, &vec![0; many]);
        let mut choice = choice(&[0.1, 1000.0], NoiseSource::Replay { seed: 3 });
        choice.best = BestOf::new(RunCount::Geometric { stop: "1/50".parse().unwrap() }).unwrap();
        let make = |place: usize| {
            let optimiser = Optimiser::new(Rule::PLAIN, Schedule::Constant { size: 1.0 }, None, 1)?;
            Learner::new(Parts {
                model: Linear::at_zero(1, 1, false),
                plan: choice.candidates[place].plan.clone(),
                loss: LossFunction::Logistic,
                rows: data.clone(),
                optimiser,
                average: None,
                tuning: Tuning::default(),
            })
        };
        let trained = choice.choose(&make, &data, &mut Replay::new(8)).unwrap();
        assert!(trained.theta()[0] > 0.0, "what predicts most rows right: {:?}", trained.theta());
        let other = |_: usize| {
            let optimiser = Optimiser::new(Rule::PLAIN, Schedule::Constant { size: 1.0 }, None, 1)?;
            let (model, plan) = (Linear::at_zero(1, 1, false), plan(2.0, NoiseSource::Replay { seed: 3 }));
            let (rows, tuning) = (data.clone(), Tuning::default());
            Learner::new(Parts { model, plan, loss: LossFunction::Logistic, rows, optimiser, average: None, tuning })
        };
        assert!(choice.choose(&other, &data, &mut Replay::new(8)).is_err(), "a learner of another plan");
    }
}
