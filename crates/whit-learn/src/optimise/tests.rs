//! Optimisers against their closed forms.

use super::*;
use proptest::prelude::*;
use whit_noise::{Replay, RoundedGaussian};

fn constant(rule: Rule, size: f64, dimension: usize) -> Optimiser {
    Optimiser::new(rule, Schedule::Constant { size }, None, dimension).unwrap()
}

/// E10: loss (θ − 1)²/2, θ0 = 0, α = 0.1. Right is 0.1; the paper's sign gives −0.1.
#[test]
fn a_step_goes_downhill() {
    for rule in [Rule::PLAIN, Rule::Descent { momentum: 0.9, decay: 0.0 }] {
        let mut theta = [0.0_f32];
        let gradient = f64::from(theta[0]) - 1.0;
        constant(rule, 0.1, 1).step(&mut theta, &[gradient], 0.0).unwrap();
        assert_eq!(theta, [0.1]);
    }
}

/// C10: g = 10, C = 1, σ = 0, L = 1, η = 0.1, θ = 0.
#[test]
fn the_clipped_gradient_is_what_steps() {
    let (g, clip, expected_bags) = (10.0_f64, 1.0, 1.0);
    let clipped = g * (clip / g.abs()).min(1.0);
    let mut theta = [0.0_f32];
    constant(Rule::PLAIN, 0.1, 1).step(&mut theta, &[clipped / expected_bags], 0.0).unwrap();
    assert_eq!(theta, [-0.1]);
}

/// E11: with a radius, iterates stay in Θ whatever the noise does, so that what bounds gradients in Θ holds.
#[test]
fn noise_never_leaves_theta() {
    let mut optimiser = Optimiser::new(Rule::PLAIN, Schedule::Constant { size: 0.5 }, Some(1.0), 1).unwrap();
    let noise = RoundedGaussian::new("100".parse().unwrap()).unwrap();
    let (mut theta, mut entropy, mut at_the_edge) = ([0.0_f32], Replay::new(11), 0);
    for _ in 0..200 {
        let drawn = noise.draw(&mut entropy).unwrap() as f64 / 10.0;
        optimiser.step(&mut theta, &[drawn], 10.0).unwrap();
        assert!(theta[0].abs() <= 1.0);
        at_the_edge += u32::from(theta[0].abs() == 1.0);
    }
    assert!(at_the_edge > 100, "without the ball most of these would have left it");
}

/// Steps of descent on λθ²/2 from θ0 = 1: (1 − αλ)^k; with momentum, the linear recursion of second order.
#[test]
fn descent_on_a_parabola_has_its_closed_form() {
    let mut theta = [1.0_f32];
    let mut plain = constant(Rule::Descent { momentum: 0.0, decay: 1.0 }, 0.1, 1);
    for _ in 0..20 {
        let gradient = 2.0 * f64::from(theta[0]);
        plain.step(&mut theta, &[gradient], 0.0).unwrap();
    }
    assert!((f64::from(theta[0]) - 0.7_f64.powi(20)).abs() < 1e-7, "curvature 2 and decay 1 shrink by 0.3 a step");
    // A constant gradient and momentum μ: the step grows to g/(1 − μ).
    let mut theta = [0.0_f32];
    let mut heavy = constant(Rule::Descent { momentum: 0.5, decay: 0.0 }, 1.0, 1);
    for _ in 0..10 {
        heavy.step(&mut theta, &[1.0], 0.0).unwrap();
    }
    let closed: f64 = (1..=10).map(|k| 2.0 - 2.0_f64.powi(1 - k)).sum();
    assert!((f64::from(theta[0]) + closed).abs() < 1e-5);
}

proptest! {
    /// Kingma, Ba 2015, Algorithm 1, written out in f64, for comparison with ours.
    #[test]
    fn adam_without_noise_is_adam_by_the_book(gradients in proptest::collection::vec(-3_f64..3.0, 1..50)) {
        let rule = Rule::Adam { first: 0.9, second: 0.999, floor: 0.0, epsilon: 1e-8, decay: 0.0 };
        let mut ours = constant(rule, 0.01, 1);
        let (mut theta, mut book, mut m, mut v) = ([0.5_f32], 0.5_f64, 0.0, 0.0);
        for (t, &g) in (1..).zip(&gradients) {
            ours.step(&mut theta, &[g], 0.0).unwrap();
            m = 0.9 * m + 0.1 * g;
            v = 0.999 * v + 0.001 * g * g;
            let (m_hat, v_hat) = (m / (1.0 - 0.9_f64.powi(t)), v / (1.0 - 0.999_f64.powi(t)));
            book -= 0.01 * m_hat / (v_hat.sqrt() + 1e-8);
            prop_assert!((f64::from(theta[0]) - book).abs() < 1e-5, "step {t}: {} against {book}", theta[0]);
        }
    }

    /// A checkpoint in the middle changes nothing, to the bit.
    #[test]
    fn a_state_read_back_goes_on_as_if_nothing_happened(
        gradients in proptest::collection::vec(proptest::array::uniform2(-3_f64..3.0), 2..20), adam in proptest::bool::ANY
    ) {
        let rule = if adam { Rule::ADAM } else { Rule::Descent { momentum: 0.9, decay: 0.1 } };
        let schedule = Schedule::Power { first: 0.3, decay: 0.6 };
        let mut straight = Optimiser::new(rule, schedule, Some(2.0), 2).unwrap();
        let (mut a, half) = ([0.1_f32, 0.2], gradients.len() / 2);
        let mut b = a;
        for g in &gradients {
            straight.step(&mut a, g, 0.3).unwrap();
        }
        let mut broken = Optimiser::new(rule, schedule, Some(2.0), 2).unwrap();
        for g in &gradients[..half] {
            broken.step(&mut b, g, 0.3).unwrap();
        }
        let text = serde_json::to_string(&broken).unwrap();
        let mut back: Optimiser = serde_json::from_str::<Optimiser>(&text).unwrap().validated(2).unwrap();
        for g in &gradients[half..] {
            back.step(&mut b, g, 0.3).unwrap();
        }
        prop_assert_eq!(a, b);
        prop_assert_eq!(straight, back);
    }
}

/// 20,000 coordinates with clean gradient 1/2 and noise of deviation 3, which changes to 5 halfway. The mean of v̂ −
/// Φ̂ has deviation 0.018, so a correct optimiser fails (0.1, five deviations) less than once in 10⁶ seeds; leaving Φ
/// in is off by more than 9.
#[test]
fn adams_second_moment_is_that_of_the_clean_gradient() {
    let dimension = 20_000;
    let rule = Rule::Adam { first: 0.9, second: 0.99, floor: 1e-10, epsilon: 0.0, decay: 0.0 };
    let mut optimiser = constant(rule, 1e-3, dimension);
    let noise = RoundedGaussian::new("10000".parse().unwrap()).unwrap();
    let (mut theta, mut draws, mut entropy) = (vec![0.0_f32; dimension], vec![0; dimension], Replay::new(0xADA));
    for step in 0..200 {
        let deviation = if step < 100 { 3.0 } else { 5.0 };
        noise.fill(&mut draws, &mut entropy).unwrap();
        let gradient: Vec<f64> = draws.iter().map(|&z| 0.5 + deviation * z as f64 / 10_000.0).collect();
        optimiser.step(&mut theta, &gradient, deviation).unwrap();
    }
    let clean = optimiser.clean_squares().unwrap();
    let mean = clean.iter().sum::<f64>() / dimension as f64;
    assert!((mean - 0.25).abs() < 0.1, "mean {mean}");
    let uncorrected = optimiser.squares.iter().sum::<f64>() / dimension as f64;
    assert!(uncorrected > 9.0, "a broken one must fail: {uncorrected}");
}

/// 1000 parameters without signal and noise of deviation 1, for 50 steps: with the floor for that noise no step is longer
/// than 6 α; with a tiny floor some are ten thousand times as long.
#[test]
fn the_floor_keeps_parameters_without_signal_from_leaping() {
    let longest = |rule| {
        let mut optimiser = constant(rule, 1.0, 1000);
        let (mut entropy, mut longest) = (Replay::new(0xF1), 0.0_f32);
        for _ in 0..50 {
            let mut theta = vec![0.0_f32; 1000];
            let gradient: Vec<f64> = (0..1000).map(|_| crate::trial::normal(&mut entropy)).collect();
            optimiser.step(&mut theta, &gradient, 1.0).unwrap();
            longest = theta.iter().fold(longest, |most, x| most.max(x.abs()));
        }
        longest
    };
    // |m̂| of the first step, where v̂ − Φ = g² − 1 < floor, is below √1.032: at most 5.72 α then.
    let (floored, bare) = (longest(Rule::adam_for(1.0)), longest(Rule::ADAM));
    println!("longest step {floored:.2} α with the floor, {bare:.0} α without");
    assert!(floored < 6.0, "{floored}");
    assert!(bare > 1000.0, "{bare}");
}

#[test]
fn what_cannot_be_meant_is_refused_and_changes_nothing() {
    let mut optimiser = constant(Rule::ADAM, 0.1, 2);
    let (before, mut theta) = (optimiser.clone(), [1.0_f32, 2.0]);
    assert!(matches!(optimiser.step(&mut theta, &[1.0], 0.0), Err(Error::Length { what: "gradients", .. })));
    assert!(matches!(optimiser.step(&mut theta, &[1.0, f64::NAN], 0.0), Err(Error::NotFinite { step: 1 })));
    assert!(matches!(optimiser.step(&mut theta, &[1.0, f64::INFINITY], 0.0), Err(Error::NotFinite { .. })));
    assert!(optimiser.step(&mut theta, &[1.0, 1.0], -1.0).is_err());
    assert_eq!((optimiser, theta), (before.clone(), [1.0, 2.0]));
    assert!(before.validated(3).is_err());
    let schedule = Schedule::Constant { size: 0.1 };
    assert!(Optimiser::new(Rule::Descent { momentum: 1.0, decay: 0.0 }, schedule, None, 1).is_err());
    assert!(Optimiser::new(Rule::PLAIN, schedule, Some(0.0), 1).is_err());
    let bare = Rule::Adam { first: 0.9, second: 0.9, floor: 0.0, epsilon: 0.0, decay: 0.0 };
    assert!(!Optimiser::new(bare, schedule, None, 1).unwrap_err().hint().is_empty());
}
