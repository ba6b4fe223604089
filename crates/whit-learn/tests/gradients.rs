//! Bag norms and clipped sums against gradients that automatic differentiation forms, bag by bag, for every layer.

#![expect(clippy::unwrap_used, reason = "a test that cannot set itself up has failed")]

use burn::module::Module;
use burn::tensor::Tensor;
use proptest::prelude::*;
use whit_learn::bound::{Bags, Tape, clipped_sum_for_tests};
use whit_learn::kernel::Window;
use whit_learn::layer::{Activation, Convolution, Embedding, GroupNorm, LayerNorm, Linear, Pool};
use whit_learn::loss::{Loss, Targets};
use whit_learn::model::{Inputs, Model};
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
        let x = Pool::Mean(pool).forward(x)?.reshape([rows, 4 * 3 * 3]);
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
    let (losses, _) = Loss::Softmax.feel(whit_learn::loss::Share::Whole, &z, targets, weights, 3);
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
            let gradient = clipped_sum_for_tests(&model, &layout, Loss::Softmax, inputs, &targets, weights, &bag, None).unwrap();
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
            clipped_sum_for_tests(&model, &layout, Loss::Softmax, inputs, &targets, weights, &bags, Some(clip)).unwrap();
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
        let found = clipped_sum_for_tests(&model, &layout, Loss::Softmax, inputs.clone(), &targets, &weights, &bags, None).unwrap();
        // Along a random direction, and along each parameter's own block.
        for place in layout.places() {
            let direction = numbers(place.range.len(), &mut entropy);
            let along = |step: f32| {
                let mut moved = theta.clone();
                for (value, direction) in moved[place.range.clone()].iter_mut().zip(&direction) {
                    *value += step * direction;
                }
                loss_at(&model, &layout, &moved, &inputs, &targets, &weights)
            };
            let slope = (along(1e-2) - along(-1e-2)) / 2e-2;
            let expected: f64 = found[place.range.clone()].iter().zip(&direction).map(|(g, &d)| g * f64::from(d)).sum();
            let scale = found[place.range.clone()].iter().map(|g| g * g).sum::<f64>().sqrt() + 0.05;
            prop_assert!((slope - expected).abs() < 0.05 * scale * (direction.len() as f64).sqrt(), "{}: {slope} {expected}", place.name);
        }
    }
}

/// The parameters of each layer, in the order of the model.
fn layer_ranges(layout: &Layout) -> Vec<std::ops::Range<usize>> {
    let mut ranges: Vec<(String, std::ops::Range<usize>)> = Vec::new();
    for place in layout.places() {
        let layer = place.name.rsplit_once('.').unwrap().0.to_owned();
        match ranges.last_mut() {
            Some((last, range)) if *last == layer => range.end = place.range.end,
            _ => ranges.push((layer, place.range.clone())),
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
        let found =
            clipped_sum_for_tests(&model, &layout, Loss::Softmax, inputs, &targets, &[1.0], &Bags::single(1), clip);
        assert!(found.unwrap_err().to_string().contains(said));
    }
}

#[test]
fn a_gradient_that_is_no_number_is_refused_and_names_its_layer() {
    let model = Linear::at_zero(2, 1, true);
    let (layout, _) = Layout::of(&model);
    let clip = Some(Clip { norm: 1.0, how: Clipping::Flat });
    let targets = Targets::Numbers { values: vec![1.0], width: 1 };
    let inputs = Inputs::of(vec![f32::MAX, f32::MAX], 2);
    let model = layout.fill(model, &[f32::MAX, f32::MAX, 0.0]).unwrap();
    let found = clipped_sum_for_tests(&model, &layout, Loss::Squared, inputs, &targets, &[1.0], &Bags::single(1), clip);
    assert!(found.unwrap_err().to_string().contains("`weight` is not a number"));
}
