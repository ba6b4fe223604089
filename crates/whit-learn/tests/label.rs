//! Noisy labels as something to learn from.

#![expect(clippy::unwrap_used, reason = "a test that cannot set itself up has failed")]

use whit_account::{Name, epsilon};
use whit_core::release::{CommitError, Reservation, release_reproducibly_without_privacy};
use whit_core::{Charge, Ledger, Refusal, Rung, Unit};
use whit_learn::custom::Linear;
use whit_learn::label::{NoisyLabels, PriorResponse, TwoStages, priors};
use whit_learn::loss::{LossFunction, Targets};
use whit_learn::optimise::{Optimiser, Rule, Schedule};
use whit_learn::train::{Plain, Tuning, evaluate, predict};
use whit_learn::{LearnError, Store};
use whit_noise::{Entropy, Ratio, Replay, below};

const CLASSES: u32 = 10;
/// The features, and a constant.
const WIDTH: usize = 5;
const ROWS: usize = 6000;

/// Keeps what it is charged.
#[derive(Default)]
struct Book(Vec<Charge>);

impl Ledger for Book {
    fn reserve(&mut self, charge: &Charge) -> Result<Reservation, Refusal> {
        self.0.push(charge.clone());
        Ok(Reservation::new(self.0.len() as u64))
    }

    fn commit(&mut self, _: Reservation, _: &[u8]) -> Result<(), CommitError> {
        Ok(())
    }
}

fn normal(entropy: &mut dyn Entropy) -> f64 {
    let mut uniform = || (entropy.bits(52) as f64 + 0.5) / 2_f64.powi(52);
    (-2.0 * uniform().ln()).sqrt() * (std::f64::consts::TAU * uniform()).cos()
}

/// Where the classes lie: at length 2, in random directions.
fn centres(entropy: &mut dyn Entropy) -> Vec<Vec<f64>> {
    let mut centre = || {
        let way: Vec<f64> = (1..WIDTH).map(|_| normal(entropy)).collect();
        let length = way.iter().map(|x| x * x).sum::<f64>().sqrt();
        way.iter().map(|x| 2.0 * x / length).collect()
    };
    (0..CLASSES).map(|_| centre()).collect()
}

fn made(rows: usize, centres: &[Vec<f64>], entropy: &mut dyn Entropy) -> (Vec<f32>, Vec<u32>) {
    let (mut features, mut labels) = (Vec::new(), Vec::new());
    for _ in 0..rows {
        let label = below(u64::from(CLASSES), entropy) as u32;
        features.extend(centres[label as usize].iter().map(|x| (x + 0.4 * normal(entropy)) as f32));
        features.push(1.0);
        labels.push(label);
    }
    (features, labels)
}

fn stored(features: &[f32]) -> Store {
    Store::of(features.to_vec(), WIDTH).unwrap()
}

fn learn(features: &[f32], targets: &Targets) -> Result<Linear, LearnError> {
    let parameters = WIDTH * CLASSES as usize;
    let optimiser = Optimiser::new(Rule::PLAIN, Schedule::Constant { size: 1.0 }, None, parameters)?;
    let mut plain = Plain::new(Linear::at_zero(WIDTH, CLASSES as usize, false), LossFunction::Softmax, optimiser);
    for _ in 0..100 {
        plain.step(features.to_vec(), WIDTH, targets)?;
    }
    Ok(plain.model().clone())
}

fn accuracy(model: &Linear, features: &[f32], labels: &[u32]) -> f64 {
    let outputs = predict(model, &stored(features), None, Tuning::default()).unwrap();
    let targets = Targets::Classes { labels: labels.to_vec(), classes: CLASSES };
    evaluate(LossFunction::Softmax, &outputs, &targets, CLASSES as usize).1.unwrap()
}

/// ε = 1 among ten classes: less than one answer in four is true. A model of the first half narrows down what may be
/// reported of the second. How much is gained depends on the data set, so several are made; none of them is better off
/// without.
#[test]
fn two_stages_beat_plain_response() {
    let label = Rung { unit: Unit::label(&[], "y"), holds: 1, disjoint: false, slices: None };
    let (mut gained, mut worst) = (0.0, f64::INFINITY);
    let seeds = 5;
    for seed in 0..seeds {
        let mut entropy = Replay::new(0x1abe1 + seed);
        let centres = centres(&mut entropy);
        let (features, labels) = made(ROWS, &centres, &mut entropy);
        let (unseen, truths) = made(2000, &centres, &mut entropy);
        let half = ROWS / 2;
        let (first, second) = features.split_at(half * WIDTH);
        let learned = |noisy: &NoisyLabels| {
            let model = learn(first, &noisy.targets())?;
            Ok(priors(&predict(&model, &stored(second), None, Tuning::default())?, CLASSES))
        };
        let plain = PriorResponse::flat(CLASSES, Ratio::ONE, ROWS).unwrap();
        let stages = TwoStages::new(CLASSES, Ratio::ONE, ROWS, half, learned).unwrap();
        // The same coins: both say the same of the first half.
        let mut book = Book::default();
        let rungs = [label.clone()];
        let plain = release_reproducibly_without_privacy(
            &plain,
            |_| Ok(&labels[..]),
            &rungs,
            &mut book,
            &mut Replay::new(seed),
        );
        let noisy = release_reproducibly_without_privacy(
            &stages,
            |_| Ok(&labels[..]),
            &rungs,
            &mut book,
            &mut Replay::new(seed),
        );
        let (plain, noisy) = (plain.unwrap().value, noisy.unwrap().value);
        assert_eq!(plain.labels()[..half], noisy.labels()[..half]);
        for charge in &book.0 {
            assert!(epsilon(&charge[0].1, 0.0, Name::Basic).unwrap().upper <= 1.0, "all of it costs one label ε = 1");
        }
        let right = |noisy: &NoisyLabels| accuracy(&learn(&features, &noisy.targets()).unwrap(), &unseen, &truths);
        let (with, without) = (right(&noisy), right(&plain));
        gained += (with - without) / seeds as f64;
        worst = worst.min(with - without);
    }
    assert!(gained > 0.03 && worst > 0.0, "{gained} on average, {worst} at worst");
}
