//! Bag norms and clipped sums against gradients that automatic differentiation forms, bag by bag, for every layer.

#![expect(clippy::unwrap_used, reason = "a test that cannot set itself up has failed")]

use proptest::prelude::*;
use whit_learn::bound::{Bags, clipped_sum_for_tests};
use whit_learn::custom::burn::module::Module;
use whit_learn::custom::burn::tensor::Tensor;
use whit_learn::custom::{
    Activation, Convolution, Embedding, GroupNorm, Inputs, LayerNorm, Linear, Model, Pooling, Tape, Window, burn,
};
use whit_learn::loss::{LossFunction, Targets};
use whit_learn::params::Layout;
use whit_learn::{Clip, Clipping, LearnError};
use whit_noise::{Entropy, Replay};

/// Every layer there is, one after the other.
#[derive(Module, Debug)]
struct Everything {
    embedding: Embedding,
    convolution: Convolution,
    group: GroupNorm,
    hidden: Linear,
    layer: LayerNorm,
    last: Linear,
}

const SIDE: usize = 5;
const TOKENS: usize = 3;

impl Everything {
    fn new(entropy: &mut Replay) -> Self {
        let window = Window { kernel: [2, 2], stride: [1, 1], padding: [0, 0] };
        Self {
            embedding: Embedding::new(6, 4, entropy),
            convolution: Convolution::new(1, 4, window, entropy),
            group: GroupNorm::new(4, 2).unwrap(),
            hidden: Linear::new(4 * 3 * 3 + 4, 7, entropy),
            layer: LayerNorm::new(7),
            last: Linear::new(7, 3, entropy),
        }
    }
}

impl Model for Everything {
    fn forward(&self, inputs: &Inputs, tape: &mut Tape) -> Result<Tensor<2>, LearnError> {
        let rows = inputs.rows();
        let x = inputs.features.clone().reshape([rows, 1, SIDE, SIDE]);
        let x = Activation::Gelu.forward(self.group.forward(self.convolution.forward(x, tape)?, tape)?);
        let pool = Window { kernel: [2, 2], stride: [1, 1], padding: [0, 0] };
        let x = Pooling::Mean(pool).forward(x)?.reshape([rows, 4 * 3 * 3]);
        let words = self.embedding.forward(&inputs.tokens, TOKENS, tape)?.mean_dim(1).reshape([rows, 4]);
        let x = Tensor::cat(vec![x, words], 1);
        let x = self.layer.forward(Activation::Tanh.forward(self.hidden.forward(x, tape)), tape);
        Ok(self.last.forward(x, tape))
    }

    fn outputs(&self) -> usize {
        3
    }
}

fn numbers(count: usize, entropy: &mut Replay) -> Vec<f32> {
    (0..count).map(|_| entropy.bits(24) as f32 / 2f32.powi(23) - 1.0).collect()
}

/// The weighted loss of some rows, at parameters that a difference moves.
fn loss_at(
    model: &Everything,
    layout: &Layout,
    theta: &[f32],
    inputs: &Inputs,
    targets: &Targets,
    weights: &[f32],
) -> f64 {
    let moved = layout.fill(model.clone(), theta).unwrap();
    let z = moved.forward(inputs, &mut Tape::open()).unwrap().into_data().try_to_vec::<f32>().unwrap();
    let (losses, _) = LossFunction::Softmax.loss_and_gradient(whit_learn::loss::Share::Whole, &z, targets, weights, 3);
    losses.iter().zip(weights).map(|(&loss, &weight)| f64::from(loss) * f64::from(weight)).sum()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, failure_persistence: None, ..ProptestConfig::default() })]

    /// Whole bags through the tapped model, against each bag alone without clipping, for which the sum is the gradient itself.
    #[test]
    fn bag_norms_and_sums_agree_with_gradients_that_are_formed(
        sizes in proptest::collection::vec(0..5_usize, 1..7), seed in any::<u64>(), how in 0..3_usize, norm in 0.05..3.0_f64,
    ) {
        let mut entropy = Replay::new(seed);
        let model = Everything::new(&mut entropy);
        let (layout, _) = Layout::of(&model);
        let rows: usize = sizes.iter().sum();
        prop_assume!(rows > 0);
        let features = numbers(rows * SIDE * SIDE, &mut entropy);
        let tokens: Vec<u32> = (0..rows * TOKENS).map(|_| entropy.bits(16) as u32 % 6).collect();
        let labels: Vec<u32> = (0..rows).map(|_| entropy.bits(16) as u32 % 3).collect();
        let weights = numbers(rows, &mut entropy); // negative ones, too
        let part = |start: usize, end: usize| {
            let mut inputs = Inputs::of(features[start * SIDE * SIDE..end * SIDE * SIDE].to_vec(), SIDE * SIDE);
            inputs.tokens = tokens[start * TOKENS..end * TOKENS].to_vec();
            (inputs, Targets::Classes { labels: labels[start..end].to_vec(), classes: 3 }, &weights[start..end])
        };
        let layers = 6;
        let how = [Clipping::Flat, Clipping::PerLayer { layers }, Clipping::Normalising][how];
        let clip = Clip { norm, how };

        let mut expected = vec![0.0; layout.len()];
        let mut start = 0;
        for &size in sizes.iter().filter(|&&size| size > 0) {
            let (inputs, targets, weights) = part(start, start + size);
            let bag = Bags::of_sizes([size]);
            let gradient = clipped_sum_for_tests(&model, &layout, LossFunction::Softmax, inputs, &targets, weights, &bag, None).unwrap();
            // Each layer has its weight and its bias next to each other.
            let squared: Vec<f64> = layer_ranges(&layout).iter().map(|range| gradient[range.clone()].iter().map(|v| v * v).sum()).collect();
            for (range, layer) in layer_ranges(&layout).into_iter().zip(&squared) {
                let (length, most) = match how {
                    Clipping::PerLayer { .. } => (layer.sqrt(), norm / f64::from(layers).sqrt()),
                    Clipping::Flat | Clipping::Normalising => (squared.iter().sum::<f64>().sqrt(), norm),
                };
                let factor = if how == Clipping::Normalising { most / length } else { (most / length).min(1.0) };
                for i in range {
                    expected[i] += factor * gradient[i];
                }
            }
            start += size;
        }
        let (inputs, targets, weights) = part(0, rows);
        let bags = Bags::of_sizes(sizes.iter().copied());
        let found =
            clipped_sum_for_tests(&model, &layout, LossFunction::Softmax, inputs, &targets, weights, &bags, Some(clip)).unwrap();
        let length = expected.iter().map(|value| value * value).sum::<f64>().sqrt();
        let error = found.iter().zip(&expected).map(|(a, b)| (a - b) * (a - b)).sum::<f64>().sqrt();
        prop_assert!(error <= 1e-5 * (length + norm * sizes.len() as f64), "{error} of {length}");
        prop_assert!(length <= norm * sizes.len() as f64 * (1.0 + 1e-6));
    }

    /// The gradient of a bag against differences of its loss.
    #[test]
    fn a_bags_gradient_is_the_slope_of_its_loss(seed in any::<u64>(), size in 1..4_usize) {
        let mut entropy = Replay::new(seed);
        let model = Everything::new(&mut entropy);
        let (layout, theta) = Layout::of(&model);
        let mut inputs = Inputs::of(numbers(size * SIDE * SIDE, &mut entropy), SIDE * SIDE);
        inputs.tokens = (0..size * TOKENS).map(|_| entropy.bits(16) as u32 % 6).collect();
        let targets = Targets::Classes { labels: (0..size as u32).map(|row| row % 3).collect(), classes: 3 };
        let weights = numbers(size, &mut entropy);
        let bags = Bags::of_sizes([size]);
        let found = clipped_sum_for_tests(&model, &layout, LossFunction::Softmax, inputs.clone(), &targets, &weights, &bags, None).unwrap();
        // Along a random direction, and along each parameter's own block.
        for slot in layout.slots() {
            let direction = numbers(slot.range.len(), &mut entropy);
            let along = |step: f32| {
                let mut moved = theta.clone();
                for (value, direction) in moved[slot.range.clone()].iter_mut().zip(&direction) {
                    *value += step * direction;
                }
                loss_at(&model, &layout, &moved, &inputs, &targets, &weights)
            };
            let slope = (along(1e-2) - along(-1e-2)) / 2e-2;
            let expected: f64 = found[slot.range.clone()].iter().zip(&direction).map(|(g, &d)| g * f64::from(d)).sum();
            let scale = found[slot.range.clone()].iter().map(|g| g * g).sum::<f64>().sqrt() + 0.05;
            prop_assert!((slope - expected).abs() < 0.05 * scale * (direction.len() as f64).sqrt(), "{}: {slope} {expected}", slot.name);
        }
    }
}

/// The parameters of each layer, in the order of the model.
fn layer_ranges(layout: &Layout) -> Vec<std::ops::Range<usize>> {
    let mut ranges: Vec<(String, std::ops::Range<usize>)> = Vec::new();
    for slot in layout.slots() {
        let layer = slot.name.rsplit_once('.').unwrap().0.to_owned();
        match ranges.last_mut() {
            Some((last, range)) if *last == layer => range.end = slot.range.end,
            _ => ranges.push((layer, slot.range.clone())),
        }
    }
    ranges.into_iter().map(|(_, range)| range).collect()
}

/// One that forgets a tap, and one that uses a layer twice.
#[derive(Module, Debug)]
struct Odd {
    first: Linear,
    second: Linear,
    twice: bool,
}

impl Model for Odd {
    fn forward(&self, inputs: &Inputs, tape: &mut Tape) -> Result<Tensor<2>, LearnError> {
        let x = self.first.forward(inputs.features.clone(), tape);
        if self.twice {
            let x = self.second.forward(x, tape);
            return Ok(self.second.forward(x, tape));
        }
        Ok(self.second.forward(x, &mut Tape::open()))
    }

    fn outputs(&self) -> usize {
        2
    }
}

#[test]
fn a_parameter_without_a_tap_or_with_two_is_refused_by_name() {
    let mut entropy = Replay::new(1);
    for (twice, said) in [(false, "`second.weight` has no tap"), (true, "`second.weight` is used twice")] {
        let model = Odd { first: Linear::new(2, 2, &mut entropy), second: Linear::new(2, 2, &mut entropy), twice };
        let (layout, _) = Layout::of(&model);
        let targets = Targets::Classes { labels: vec![0], classes: 2 };
        let inputs = Inputs::of(vec![1.0, 2.0], 2);
        let clip = Some(Clip { norm: 1.0, how: Clipping::Flat });
        let found = clipped_sum_for_tests(
            &model,
            &layout,
            LossFunction::Softmax,
            inputs,
            &targets,
            &[1.0],
            &Bags::single(1),
            clip,
        );
        assert!(found.unwrap_err().to_string().contains(said));
    }
}

/// A float of any size: each exponent is as likely as another, and 0 and the ends come often.
fn of_any_size() -> impl Strategy<Value = f32> {
    let any = (any::<bool>(), 0..0x7f80_0000_u32).prop_map(|(sign, bits)| f32::from_bits(bits | u32::from(sign) << 31));
    prop_oneof![8 => any, 1 => Just(0.0), 1 => Just(f32::MAX), 1 => Just(f32::from_bits(1)), 1 => Just(-2.6e-23)]
}

fn length(values: impl Iterator<Item = f64>) -> f64 {
    values.map(|value| value * value).sum::<f64>().sqrt()
}

/// Half of what a sum may err by, over the clip norm, and a hair for the arithmetic here.
const SLACK: f64 = whit_learn::plan::SUMMATION / 2.0 + 1e-9;

proptest! {
    #![proptest_config(ProptestConfig { cases: 3000, failure_persistence: None, ..ProptestConfig::default() })]

    /// A linear model at 0 under the squared loss has inputs and gradients that are the rows and targets themselves, so all that floats can be goes into the
    /// clip. What a unit adds is what the sum is with it and without it.
    #[test]
    fn no_row_of_any_size_adds_more_than_the_clip(
        sizes in proptest::collection::vec(1..4_usize, 1..5), p in 1..20_usize, q in 1..4_usize, biased: bool, power in -100..=100_i32, how in 0..3_usize,
        mixed: bool, x in proptest::collection::vec(of_any_size(), 20 * 12), y in proptest::collection::vec(of_any_size(), 4 * 12),
        alike in any::<bool>(),
    ) {
        let model = Linear::at_zero(p, q, biased);
        let (layout, _) = Layout::of(&model);
        let rows: usize = sizes.iter().sum();
        // Of mixed sizes in a row, or all of the same size but for their sign.
        let number = |of: &[f32], row: usize, at: usize| if mixed { of[row * 4 + at % 4] } else { of[row].copysign(of[at % 4]) };
        let mut features: Vec<f32> = (0..rows * p).map(|at| if mixed { x[at] } else { number(&x, at / p, at % p) }).collect();
        let targets: Vec<f32> = (0..rows * q).map(|at| number(&y, at / q, at % q)).collect();
        if alike && rows > 1 {
            // Rows that nearly cancel each other.
            let first: Vec<f32> = features[..p].iter().map(|value| -value).collect();
            features[p..2 * p].copy_from_slice(&first);
        }
        let clip = Clip { norm: 2_f64.powi(power), how: [Clipping::Flat, Clipping::PerLayer { layers: 1 }, Clipping::Normalising][how] };
        let sum = |from: usize, to: usize, bags: &[usize]| {
            let inputs = Inputs::of(features[from * p..to * p].to_vec(), p);
            let targets = Targets::Numbers { values: targets[from * q..to * q].to_vec(), width: q };
            let weights = vec![1.0; to - from];
            let bags = Bags::of_sizes(bags.iter().copied());
            clipped_sum_for_tests(&model, &layout, LossFunction::Squared, inputs, &targets, &weights, &bags, Some(clip)).unwrap()
        };
        let (last, first) = (*sizes.last().unwrap(), rows - sizes.last().unwrap());
        let alone = sum(first, rows, &[last]);
        prop_assert!(length(alone.iter().copied()) <= clip.norm * (1.0 + SLACK), "{} of {}", length(alone.iter().copied()), clip.norm);
        let (with, without) = (sum(0, rows, &sizes), sum(0, first, &sizes[..sizes.len() - 1]));
        let moved = length(with.iter().zip(&without).map(|(a, b)| a - b));
        prop_assert!(moved <= clip.norm * (1.0 + 2.0 * SLACK), "{moved} of {}", clip.norm);
        if last == 1 {
            // And nothing is shortened that need not be.
            let wide = |values: &[f32]| length(values.iter().map(|&value| f64::from(value)));
            let constant = if biased { 1.0 } else { 0.0 };
            let whole = wide(&features[first * p..]).hypot(constant) * wide(&targets[first * q..]);
            let expected = if clip.how == Clipping::Normalising && whole > 0.0 { clip.norm } else { whole.min(clip.norm) };
            let found = length(alone.iter().copied());
            prop_assert!((found - expected).abs() <= clip.norm * SLACK + expected * 1e-6, "{found} and {expected}");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, failure_persistence: None, ..ProptestConfig::default() })]

    /// The same for every layer there is, at parameters of any size.
    #[test]
    fn no_layer_lets_more_through_than_the_clip(
        size in 1..4_usize, seed: u64, how in 0..3_usize, power in -60..=60_i32, grown in -12..=12_i32, at in 0..3 * SIDE * SIDE, odd in of_any_size(),
        scale in -30..=30_i32,
    ) {
        let mut entropy = Replay::new(seed);
        let model = Everything::new(&mut entropy);
        let (layout, theta) = Layout::of(&model);
        let grown: Vec<f32> = theta.iter().map(|value| value * 10_f32.powi(grown)).collect();
        let model = layout.fill(model, &grown).unwrap();
        let mut features: Vec<f32> = numbers(size * SIDE * SIDE, &mut entropy).iter().map(|x| x * 10_f32.powi(scale)).collect();
        let place = at % features.len();
        features[place] = odd;
        let mut inputs = Inputs::of(features, SIDE * SIDE);
        inputs.tokens = (0..size * TOKENS).map(|_| entropy.bits(16) as u32 % 6).collect();
        let targets = Targets::Classes { labels: (0..size as u32).map(|row| row % 3).collect(), classes: 3 };
        let (weights, bags) = (numbers(size, &mut entropy), Bags::of_sizes([size]));
        let how = [Clipping::Flat, Clipping::PerLayer { layers: 6 }, Clipping::Normalising][how];
        let clip = Clip { norm: 2_f64.powi(power), how };
        let found = clipped_sum_for_tests(&model, &layout, LossFunction::Softmax, inputs, &targets, &weights, &bags, Some(clip)).unwrap();
        let found = length(found.iter().copied());
        prop_assert!(found <= clip.norm * (1.0 + SLACK), "{found} of {}", clip.norm);
    }

    /// One number of one row is none, or infinite: the whole unit adds nothing, and all others add what they would without it.
    #[test]
    fn a_unit_that_is_no_number_adds_nothing_and_harms_nobody(
        sizes in proptest::collection::vec(1..4_usize, 2..6), seed: u64, how in 0..3_usize, bad in 0..3_usize, which: prop::sample::Index, at: prop::sample::Index,
    ) {
        let mut entropy = Replay::new(seed);
        let model = Everything::new(&mut entropy);
        let (layout, _) = Layout::of(&model);
        let rows: usize = sizes.iter().sum();
        let mut features = numbers(rows * SIDE * SIDE, &mut entropy);
        let tokens: Vec<u32> = (0..rows * TOKENS).map(|_| entropy.bits(16) as u32 % 6).collect();
        let labels: Vec<u32> = (0..rows).map(|_| entropy.bits(16) as u32 % 3).collect();
        let weights = numbers(rows, &mut entropy);
        let which = which.index(sizes.len());
        let start: usize = sizes[..which].iter().sum();
        let odd = start..start + sizes[which];
        let clip = Clip { norm: 0.5, how: [Clipping::Flat, Clipping::PerLayer { layers: 6 }, Clipping::Normalising][how] };
        let sum = |features: &[f32], kept: &dyn Fn(usize) -> bool, sizes: &[usize]| {
            let kept: Vec<usize> = (0..rows).filter(|&row| kept(row)).collect();
            let pick = |of: &[f32], width: usize| kept.iter().flat_map(|row| of[row * width..(row + 1) * width].to_vec()).collect::<Vec<f32>>();
            let mut inputs = Inputs::of(pick(features, SIDE * SIDE), SIDE * SIDE);
            inputs.tokens = kept.iter().flat_map(|row| tokens[row * TOKENS..(row + 1) * TOKENS].to_vec()).collect();
            let targets = Targets::Classes { labels: kept.iter().map(|&row| labels[row]).collect(), classes: 3 };
            let bags = Bags::of_sizes(sizes.iter().copied());
            clipped_sum_for_tests(&model, &layout, LossFunction::Softmax, inputs, &targets, &pick(&weights, 1), &bags, Some(clip)).unwrap()
        };
        let others: Vec<usize> = sizes.iter().enumerate().filter(|(bag, _)| *bag != which).map(|(_, size)| *size).collect();
        let expected = sum(&features, &|row| !odd.contains(&row), &others);
        features[odd.start * SIDE * SIDE + at.index(odd.len() * SIDE * SIDE)] = [f32::NAN, f32::INFINITY, f32::NEG_INFINITY][bad];
        let found = sum(&features, &|_| true, &sizes);
        let error = length(found.iter().zip(&expected).map(|(a, b)| a - b));
        prop_assert!(error <= 1e-5, "{error}");
        let alone = sum(&features, &|row| odd.contains(&row), &[sizes[which]]);
        prop_assert!(alone.iter().all(|value| *value == 0.0));
    }
}

#[test]
fn a_gradient_that_overflows_adds_nothing() {
    let model = Linear::at_zero(2, 1, true);
    let (layout, _) = Layout::of(&model);
    let clip = Some(Clip { norm: 1.0, how: Clipping::Flat });
    let targets = Targets::Numbers { values: vec![1.0, 1.0], width: 1 };
    let inputs = Inputs::of(vec![f32::MAX, f32::MAX, 0.25, 0.0], 2);
    let model = layout.fill(model, &[f32::MAX, f32::MAX, 0.0]).unwrap();
    let sum = |inputs, bags: &Bags, clip| {
        clipped_sum_for_tests(&model, &layout, LossFunction::Squared, inputs, &targets, &[1.0, 1.0], bags, clip)
            .unwrap()
    };
    let found = sum(inputs.clone(), &Bags::single(2), clip);
    assert!((length(found.iter().copied()) - 1.0).abs() < 1e-3, "the other row is clipped as ever: {found:?}");
    assert_eq!(sum(inputs, &Bags::of_sizes([2]), clip), [0.0; 3], "and in one unit with the first it is nothing");
}
