use burn::tensor::module::{avg_pool2d, conv2d, max_pool2d};
use burn::tensor::ops::{AvgPoolOptions, ConvOptions, MaxPoolOptions};
use burn::tensor::{Device, GradientCheckpointingStrategy, TensorData};
use proptest::prelude::*;

use super::*;

/// Batches and windows that go together, with a seed for what is in them.
fn cases() -> impl Strategy<Value = ([usize; 4], Window, u64)> {
    let pair = |range: Range<usize>| [range.clone(), range];
    let shape = [1..4_usize, 1..4, 1..12, 1..12];
    // Widths 6 and 9 take the road for kernels that are not usual.
    let window = (pair(1..10), pair(1..4), pair(0..4));
    (shape, window, any::<u64>()).prop_filter_map("a window that fits", |(shape, window, seed)| {
        let window = Window { kernel: window.0, stride: window.1, padding: window.2 };
        window.over([shape[2], shape[3]]).ok().map(|_| (shape, window, seed))
    })
}

/// Values in ±1 that repeat with the seed and hardly ever tie.
fn noise<const D: usize>(shape: [usize; D], seed: u64) -> Tensor<D> {
    let mut state = seed;
    let draw = |_| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 40) as f32 / (1_u64 << 23) as f32 - 1.0
    };
    tensor((0..shape.iter().product()).map(draw).collect(), shape).unwrap()
}

fn agree<const D: usize>(ours: &Tensor<D>, theirs: &Tensor<D>) {
    assert_eq!(ours.dims(), theirs.dims());
    let (ours, theirs) = (floats(ours).unwrap(), floats(theirs).unwrap());
    for (index, (a, b)) in ours.iter().zip(theirs.iter()).enumerate() {
        assert!((a - b).abs() <= 1e-5 * (1.0 + b.abs()), "at {index}: {a} and {b}");
    }
}

/// The output of `forward`, and the gradient of its inputs under a fixed random weighting of that output.
fn both<const N: usize>(inputs: [Tensor<4>; N], forward: impl Fn([Tensor<4>; N]) -> Tensor<4>) -> Vec<Tensor<4>> {
    let inputs = inputs.map(|input| input.autodiff().require_grad());
    let output = forward(inputs.clone());
    let weighting = noise(output.dims(), 7);
    let mut grads = (output.clone() * weighting.autodiff()).sum().backward();
    let mut found = vec![output];
    found.extend(inputs.iter().map(|input| input.grad_remove(&mut grads).unwrap()));
    found
}

/// Our convolution with burn's weights, and its tap.
fn convolved(x: Tensor<4>, weight: &Tensor<4>, bias: &Tensor<1>, tap: Tensor<2>, window: Window) -> Tensor<4> {
    let [q, c, kh, kw] = weight.dims();
    let weight = weight.clone().reshape([q, c * kh * kw]).transpose();
    convolve(x, &weight, bias, tap, window).unwrap()
}

fn pooling(window: Window) -> bool {
    (0..2).all(|axis| window.padding[axis] < window.kernel[axis])
}

fn max_options(window: Window) -> MaxPoolOptions<2> {
    let padding = window.padding.map(|side| (side, side));
    MaxPoolOptions { stride: window.stride, padding, ..MaxPoolOptions::new(window.kernel) }
}

fn mean_options(window: Window) -> AvgPoolOptions<2> {
    let padding = window.padding.map(|side| (side, side));
    AvgPoolOptions { stride: window.stride, padding, ..AvgPoolOptions::new(window.kernel) }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn a_convolution_is_burns_forward_and_backward((shape, window, seed) in cases()) {
        let (x, weight) = (noise(shape, seed), noise([5, shape[1], window.kernel[0], window.kernel[1]], !seed));
        let (bias, tap) = (noise([5], seed ^ 1), noise([1, 1], 3).autodiff().require_grad());
        let options = ConvOptions::new(window.stride, window.padding, [1, 1], 1);
        let ours = both([x.clone()], |[x]| convolved(x, &weight, &bias, tap.clone(), window));
        let theirs = both([x.clone()], |[x]| conv2d(x, weight.clone(), Some(bias.clone()), options.clone()));
        for (ours, theirs) in ours.iter().zip(&theirs) {
            agree(ours, theirs);
        }
        let plain = convolved(x.clone(), &weight, &bias, noise([1, 1], 3), window);
        prop_assert!(!plain.is_autodiff());
        agree(&plain, &ours[0]);
        // The tap has the gradient at the output, also where nothing follows the images.
        let output = convolved(x, &weight, &bias, tap.clone(), window);
        let weighting = noise(output.dims(), 7);
        let mut grads = (output * weighting.clone().autodiff()).sum().backward();
        let output_gradient = tap.grad_remove(&mut grads).unwrap();
        let [n, q, height, width] = weighting.dims();
        agree(&output_gradient, &weighting.reshape([n * q, height * width]));
    }

    #[test]
    fn rectified_windows_are_two_steps_in_one((shape, window, seed) in cases()) {
        prop_assume!(pooling(window));
        let x = noise(shape, seed);
        let ours = both([x.clone()], |[x]| rectified_max_pool(x, window).unwrap());
        let theirs = both([x.clone()], |[x]| max_pool2d(burn::tensor::activation::relu(x), max_options(window)));
        // Padding takes part in neither: a window of negative values and padding is zero either way.
        agree(&ours[0], &theirs[0]);
        agree(&ours[1], &theirs[1]);
    }

    #[test]
    fn the_greatest_of_a_window_is_burns_forward_and_backward((shape, window, seed) in cases()) {
        prop_assume!(pooling(window));
        let x = noise(shape, seed);
        let ours = both([x.clone()], |[x]| max_pool(x, window).unwrap());
        let theirs = both([x.clone()], |[x]| max_pool2d(x, max_options(window)));
        agree(&ours[0], &theirs[0]);
        agree(&ours[1], &theirs[1]);
        agree(&max_pool(x, window).unwrap(), &ours[0]);
    }

    #[test]
    fn the_mean_of_a_window_is_burns_forward_and_backward((shape, window, seed) in cases()) {
        prop_assume!(pooling(window));
        let x = noise(shape, seed);
        let ours = both([x.clone()], |[x]| mean_pool(x, window).unwrap());
        let theirs = both([x.clone()], |[x]| avg_pool2d(x, mean_options(window)));
        agree(&ours[0], &theirs[0]);
        agree(&ours[1], &theirs[1]);
        agree(&mean_pool(x, window).unwrap(), &ours[0]);
    }

    #[test]
    fn a_tangent_is_burns_forward_and_backward(shape in [1..4_usize, 1..4, 1..12, 1..200], times in 0.01_f32..20.0, seed: u64) {
        let x = noise(shape, seed) * times;
        let ours = both([x.clone()], |[x]| tanh(x).unwrap());
        let theirs = both([x.clone()], |[x]| x.tanh());
        agree(&ours[0], &theirs[0]);
        agree(&ours[1], &theirs[1]);
        agree(&tanh(x).unwrap(), &ours[0]);
    }

    #[test]
    fn folding_channels_is_a_transposition_forward_and_backward(
        [n, oh, ow, q] in [1..4_usize, 1..12, 1..14, 1..9], seed: u64,
    ) {
        let rows = noise([n * oh * ow, q], seed).reshape([n, oh, ow, q]);
        let ours = both([rows.clone()], |[rows]| fold_channels(rows.reshape([n * oh * ow, q]), [n, oh, ow]).unwrap());
        let theirs = both([rows], |[rows]| rows.permute([0, 3, 1, 2]));
        agree(&ours[0], &theirs[0]);
        agree(&ours[1], &theirs[1]);
    }
}

#[test]
fn a_tangent_is_right_to_a_few_units_in_the_last_place() {
    let mut worst = 0.0_f64;
    for bits in (0..f32::INFINITY.to_bits()).step_by(997) {
        let x = f32::from_bits(bits);
        let (found, right) = (f64::from(tanh_of(x)), f64::from(x).tanh());
        worst = worst.max((found - right).abs() / right.max(f64::from(f32::MIN_POSITIVE)));
        assert_eq!(tanh_of(-x), -tanh_of(x), "an odd function, at {x}");
    }
    assert!(worst < 8.0 * f64::from(f32::EPSILON), "{worst}");
    assert!(tanh_of(f32::NAN).is_nan());
    assert!(tanh_of(f32::INFINITY) <= 1.0 && tanh_of(f32::INFINITY) > 0.999_999);
}

const PAIRS: Window = Window { kernel: [1, 2], stride: [1, 1], padding: [0, 0] };

#[test]
fn of_equal_values_the_first_takes_the_gradient() {
    let x = tensor(vec![1.0; 6], [1, 1, 2, 3]).unwrap().autodiff().require_grad();
    let window = Window { kernel: [2, 2], ..PAIRS };
    let mut grads = max_pool(x.clone(), window).unwrap().sum().backward();
    assert_eq!(*floats(&x.grad_remove(&mut grads).unwrap()).unwrap(), [1.0, 1.0, 0.0, 0.0, 0.0, 0.0]);
}

#[test]
fn nan_wins_wherever_it_stands() {
    let x = tensor(vec![f32::NAN, 1.0, 2.0, f32::NAN, f32::INFINITY], [1, 1, 1, 5]).unwrap();
    let best = floats(&max_pool(x, PAIRS).unwrap()).unwrap().to_vec();
    assert!(best[0].is_nan() && best[2].is_nan() && best[3].is_nan());
    assert_eq!(best[1], 2.0);
}

#[test]
fn padding_never_wins_even_over_minus_infinity() {
    let x = tensor(vec![f32::NEG_INFINITY; 2], [1, 1, 1, 2]).unwrap().autodiff().require_grad();
    let pooled = max_pool(x.clone(), Window { padding: [0, 1], ..PAIRS }).unwrap();
    assert_eq!(*floats(&pooled).unwrap(), [f32::NEG_INFINITY; 3]);
    let mut grads = pooled.sum().backward();
    assert_eq!(*floats(&x.grad_remove(&mut grads).unwrap()).unwrap(), [2.0, 1.0]);
}

#[test]
fn a_view_is_read_in_its_own_order() {
    let x = noise([2, 3, 4, 5], 1);
    let view = x.clone().swap_dims(2, 3).slice([0..2, 1..3]);
    let copy = tensor(view.to_data().try_into_vec().unwrap(), view.dims()).unwrap();
    agree(&max_pool(view.clone(), PAIRS).unwrap(), &max_pool(copy.clone(), PAIRS).unwrap());
    let (weight, bias, tap) = (noise([4, 5], 2), noise([5], 3), noise([1, 1], 4));
    let done = |x| convolve(x, &weight, &bias, tap.clone(), PAIRS).unwrap();
    agree(&done(view), &done(copy));
}

#[test]
fn both_checkpointing_strategies_are_served() {
    for strategy in [GradientCheckpointingStrategy::Disabled, GradientCheckpointingStrategy::Balanced] {
        let x = noise([1, 1, 4, 4], 3).autodiff().with_gradient_checkpointing_strategy(strategy).require_grad();
        let mut grads = mean_pool(x.clone(), PAIRS).unwrap().sum().backward();
        let grad = floats(&x.grad_remove(&mut grads).unwrap()).unwrap().to_vec();
        assert_eq!(grad[..4], [0.5, 1.0, 1.0, 0.5]);
    }
}

#[test]
fn an_empty_batch_stays_empty() {
    let empty = tensor(Vec::new(), [0, 3, 4, 4]).unwrap();
    let (weight, bias, tap) = (noise([6, 5], 2), noise([5], 3), noise([1, 1], 4));
    assert_eq!(convolve(empty.clone(), &weight, &bias, tap, PAIRS).unwrap().dims(), [0, 5, 4, 3]);
    assert_eq!(max_pool(empty.clone(), PAIRS).unwrap().dims(), [0, 3, 4, 3]);
    assert_eq!(mean_pool(empty, PAIRS).unwrap().dims(), [0, 3, 4, 3]);
    assert_eq!(fold_channels(tensor(Vec::new(), [0, 3]).unwrap(), [0, 4, 4]).unwrap().dims(), [0, 3, 4, 4]);
}

#[test]
fn what_does_not_fit_is_an_error_and_no_panic() {
    let x = noise([1, 1, 2, 2], 5);
    for window in [
        Window { kernel: [3, 1], ..PAIRS },
        Window { kernel: [0, 1], ..PAIRS },
        Window { stride: [1, 0], ..PAIRS },
        Window { padding: [usize::MAX, 0], ..PAIRS },
    ] {
        assert!(matches!(mean_pool(x.clone(), window), Err(WindowError::Unfit { .. })), "{window:?}");
        let found = convolve(x.clone(), &noise([2, 3], 0), &noise([3], 0), noise([1, 1], 0), window);
        assert!(matches!(found, Err(WindowError::Unfit { .. })), "{window:?}");
    }
    assert!(matches!(max_pool(x.clone(), Window { padding: [1, 0], ..PAIRS }), Err(WindowError::Unfit { .. })));
    assert!(matches!(fold_channels(noise([7, 2], 0), [2, 2, 2]), Err(WindowError::Unfilled { .. })));
    assert!(matches!(tensor(vec![0.0; 5], [2, 3]), Err(WindowError::Unfilled { .. })));
    let double = Tensor::<4>::from_data(TensorData::new(vec![0.0_f64; 4], [1, 1, 2, 2]), (&Device::flex(), DType::F64));
    assert!(matches!(mean_pool(double.clone(), PAIRS), Err(WindowError::NotFloats { .. })));
    let other = convolve(x, &noise([3, 2], 0), &noise([2], 0), noise([1, 1], 0), PAIRS);
    assert!(matches!(other, Err(WindowError::Unfilled { .. })), "weights of another window");
    assert!(matches!(into_floats(double), Err(WindowError::NotFloats { .. })));
}

#[test]
fn values_go_in_and_out_without_a_copy() {
    let values = vec![1.0_f32; 1000];
    let address = values.as_ptr();
    let x = tensor(values, [10, 100]).unwrap();
    assert_eq!(floats(&x).unwrap().as_ptr(), address);
    let x = x.autodiff().require_grad();
    assert_eq!(floats(&x).unwrap().as_ptr(), address);
    assert_eq!(floats(&x.clone().reshape([1000])).unwrap().as_ptr(), address);
    let back = into_floats(x).unwrap();
    assert_eq!(back.as_ptr(), address);
}

#[test]
fn a_shared_tensor_keeps_its_values() {
    let x = noise([4], 9);
    let other = x.clone();
    let mut taken = into_floats(x).unwrap();
    taken.fill(0.0);
    assert_eq!(*floats(&other).unwrap(), *floats(&noise([4], 9)).unwrap());
}
