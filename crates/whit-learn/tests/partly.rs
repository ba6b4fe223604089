//! Models of which a part is learned: frozen layers, and adapters beside weights that stay; and images that are seen several times.

#![expect(clippy::unwrap_used, reason = "a test that cannot set itself up has failed")]

use whit_core::unit::Caps;
use whit_core::{Change, Kind, Ladder, Unit};
use whit_learn::augment::Augmenting;
use whit_learn::bound::{Bags, clipped_sum_for_tests};
use whit_learn::custom::{Inputs, Model, Tape};
use whit_learn::loss::{LossFunction, Share, Targets};
use whit_learn::model::{Activation, Named, Network, Stage, is_of_adapter, layers_of};
use whit_learn::optimise::{Optimiser, Rule, Schedule};
use whit_learn::params::Layout;
use whit_learn::{Clip, Clipping, Count, Draft, Learner, NoiseSource, Owners, Parts, Rows, Store, Tuning};
use whit_noise::{Entropy, Replay};

const ROWS: usize = 6;

fn numbers(count: usize, seed: u64) -> Vec<f32> {
    let mut entropy = Replay::new(seed);
    (0..count).map(|_| entropy.bits(24) as f32 / 2f32.powi(23) - 1.0).collect()
}

fn perceptron() -> Network {
    let named = Named::Perceptron { hidden: vec![5, 4], activation: Activation::Tanh, dropout: 0.0 };
    named.build(3, 2, &mut Replay::new(3)).unwrap()
}

/// Convolutions before linear layers, so that gradients go through frozen ones of either kind.
fn windows() -> Network {
    let stages = vec![Stage { channels: 2, kernel: 2, stride: 1, padding: 0, pool: [1, 1] }; 2];
    let named = Named::Convolutional { image: [1, 4, 4], stages, hidden: vec![3], activation: Activation::Tanh };
    named.build(16, 2, &mut Replay::new(4)).unwrap()
}

fn width(model: &Network) -> usize {
    if matches!(model, Network::Convolutional(_)) { 16 } else { 3 }
}

fn targets() -> Targets {
    Targets::Classes { labels: vec![0, 1, 1, 0, 1, 0], classes: 2 }
}

fn inputs(model: &Network) -> Inputs {
    Inputs::of(numbers(ROWS * width(model), 9), width(model))
}

fn sum(model: &Network, layout: &Layout, bags: &Bags, clip: Option<f64>) -> Vec<f64> {
    let clip = clip.map(|norm| Clip { norm, how: Clipping::Flat });
    let weights = [1.0; ROWS];
    clipped_sum_for_tests(model, layout, LossFunction::Softmax, inputs(model), &targets(), &weights, bags, clip)
        .unwrap()
}

fn loss(model: &Network) -> f64 {
    let z = model.forward(&inputs(model), &mut Tape::open()).unwrap().into_data().try_to_vec::<f32>().unwrap();
    let (losses, _) = LossFunction::Softmax.loss_and_gradient(Share::Whole, &z, &targets(), &[1.0; ROWS], 2);
    losses.iter().map(|&loss| f64::from(loss)).sum()
}

fn norm(values: &[f64]) -> f64 {
    values.iter().map(|value| value * value).sum::<f64>().sqrt()
}

/// The numbers of some parameters of a model.
fn part(model: &Network, keep: impl Fn(&str) -> bool) -> Vec<f32> {
    let (layout, theta) = Layout::of(model);
    let kept = layout.slots().iter().filter(|slot| keep(&slot.name));
    kept.flat_map(|slot| theta[slot.range.clone()].to_vec()).collect()
}

#[test]
fn what_is_learned_has_the_gradient_that_it_has_in_the_whole() {
    for (model, places) in
        [(perceptron(), vec![0]), (perceptron(), vec![1, 2]), (windows(), vec![1, 2]), (windows(), vec![0, 3])]
    {
        let whole = Layout::of(&model).0;
        let layers = layers_of(&whole);
        let frozen: Vec<String> = places.iter().flat_map(|&place| layers[place].clone()).collect();
        let (layout, theta) = Layout::without(&model, &frozen);
        assert_eq!(layout.len(), theta.len());
        let bags = Bags::of_sizes([2, 1, 3]);
        let (all, learned) = (sum(&model, &whole, &bags, None), sum(&model, &layout, &bags, None));
        let kept = whole.slots().iter().filter(|slot| !frozen.contains(&slot.name));
        let expected: Vec<f64> = kept.flat_map(|slot| all[slot.range.clone()].to_vec()).collect();
        assert_eq!(expected.len(), learned.len());
        for (a, b) in expected.iter().zip(&learned) {
            assert!((a - b).abs() < 1e-5, "{a} and {b}, with {frozen:?} frozen");
        }
        // One bag that is longer than the norm has exactly that norm in what is learned: nothing else counts.
        let one = Bags::of_sizes([ROWS]);
        let clip = norm(&sum(&model, &layout, &one, None)) / 2.0;
        let clipped = norm(&sum(&model, &layout, &one, Some(clip)));
        assert!((clipped / clip - 1.0).abs() < 1e-3 && clipped <= clip * (1.0 + 1e-9), "{clipped} of {clip}");
    }
}

#[test]
fn frozen_layers_stay_as_they_are_through_noisy_steps() {
    let ladder = Ladder::new(vec![Unit::event(Change::AddRemove)], Caps::default(), Kind::Event).unwrap();
    let draft = Draft::new(ladder, "1/2".parse().unwrap(), Count::Declared(ROWS as u64), 1.0, 3);
    let plan = draft.with_noise(2.0).unwrap().drawing(NoiseSource::Replay { seed: 5 });
    let model = perceptron();
    let frozen = layers_of(&Layout::of(&model).0)[1].clone();
    let size = Layout::without(&model, &frozen).0.len();
    let rows =
        Rows::new(Store::of(numbers(ROWS * 3, 2), 3).unwrap(), targets(), Kind::Event, Owners::default()).unwrap();
    let optimiser = Optimiser::new(Rule::ADAM, Schedule::Constant { size: 0.1 }, None, size).unwrap();
    let before = model.clone();
    let parts =
        Parts { model, plan, loss: LossFunction::Softmax, rows, optimiser, average: None, tuning: Tuning::default() };
    let mut learner = Learner::without(parts, &frozen).unwrap();
    for _ in 0..3 {
        learner.step().unwrap();
    }
    let after = learner.model().unwrap();
    let is_frozen = |name: &str| frozen.iter().any(|frozen| frozen == name);
    assert_eq!(part(&before, is_frozen), part(&after, is_frozen));
    let moved = part(&before, |name| !is_frozen(name)).into_iter().zip(part(&after, |name| !is_frozen(name)));
    assert!(moved.into_iter().all(|(before, after)| before != after), "all others have noise, if nothing else");
}

/// By differences, since nothing else forms the gradients of adapters.
#[test]
fn adapters_have_the_gradients_of_their_products() {
    for model in [perceptron(), windows()] {
        let says = loss(&model);
        let adapted = model.adapted(2, 3.0, &mut Replay::new(8));
        assert!((loss(&adapted) - says).abs() < 1e-12, "it starts where the model was");
        // Away from the start, where one of the two matrices is zero.
        let names = |model: &Network| -> Vec<String> {
            let slots = Layout::of(model).0;
            slots.slots().iter().map(|slot| slot.name.clone()).filter(|name| !is_of_adapter(name)).collect()
        };
        let (layout, theta) = Layout::without(&adapted, &names(&adapted));
        let theta: Vec<f32> = theta.iter().zip(numbers(theta.len(), 21)).map(|(a, b)| a + 0.3 * b).collect();
        let adapted = layout.fill(adapted, &theta).unwrap();
        let found = sum(&adapted, &layout, &Bags::of_sizes([ROWS]), None);
        for (place, &gradient) in found.iter().enumerate() {
            let at = |by: f32| {
                let mut theta = theta.clone();
                theta[place] += by;
                loss(&layout.fill(adapted.clone(), &theta).unwrap())
            };
            let difference = (at(5e-3) - at(-5e-3)) / 1e-2;
            assert!((difference - gradient).abs() < 2e-3, "number {place}: {difference} and {gradient}");
        }
        let clip = norm(&found) / 3.0;
        let clipped = norm(&sum(&adapted, &layout, &Bags::of_sizes([ROWS]), Some(clip)));
        assert!((clipped / clip - 1.0).abs() < 1e-3 && clipped <= clip * (1.0 + 1e-9), "{clipped} of {clip}");
        // Merged, it is the same function of as many numbers as before.
        let merged = adapted.clone().merged();
        assert!((loss(&merged) - loss(&adapted)).abs() < 1e-5);
        assert_eq!(names(&merged).len(), Layout::of(&merged).0.slots().len());
        assert_ne!(part(&merged, |_| true), part(&adapted, |name| !is_of_adapter(name)));
    }
}

/// Copies that are all the same are one row: the same steps, to the last digits.
#[test]
fn a_row_that_is_seen_several_times_counts_once() {
    let ladder = Ladder::new(vec![Unit::event(Change::AddRemove)], Caps::default(), Kind::Event).unwrap();
    let learner = |copies: Option<usize>| {
        let draft = Draft::new(ladder.clone(), "1/1".parse().unwrap(), Count::Declared(ROWS as u64), 0.3, 4);
        let plan = draft.with_noise(1.0).unwrap().drawing(NoiseSource::Off);
        let model = windows();
        let rows = Store::of(numbers(ROWS * 16, 2), 16).unwrap();
        let rows = Rows::new(rows, targets(), Kind::Event, Owners::default()).unwrap();
        let size = Layout::of(&model).0.len();
        let optimiser = Optimiser::new(Rule::PLAIN, Schedule::Constant { size: 0.5 }, None, size).unwrap();
        let (loss, tuning) = (LossFunction::Softmax, Tuning::default());
        let learner = Learner::new(Parts { model, plan, loss, rows, optimiser, average: None, tuning }).unwrap();
        match copies {
            Some(copies) => learner.augmenting(Augmenting { copies, flip: false, crop: 0 }, [1, 4, 4]).unwrap(),
            None => learner,
        }
    };
    let (mut once, mut often) = (learner(None), learner(Some(5)));
    for _ in 0..4 {
        let (one, five) = (once.step().unwrap(), often.step().unwrap());
        assert_eq!((one.bags, one.clipped, 5 * one.rows), (five.bags, five.clipped, five.rows));
    }
    let apart = once.theta().iter().zip(often.theta()).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
    assert!(apart < 1e-5, "{apart}");
    let how = Augmenting { copies: 2, flip: true, crop: 1 };
    assert!(learner(None).augmenting(how, [1, 3, 4]).is_err(), "images of another shape");
}
