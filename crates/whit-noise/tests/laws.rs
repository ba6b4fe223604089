//! Every sampler against its law: exactly where the random bits can be walked, statistically where not.
//!
//! False-alarm rates are stated and small (10⁻⁹ a test with a fixed seed), and samplers that are broken on purpose
//! must fail the same tests.

#![expect(clippy::unwrap_used, reason = "a test that cannot read its reference has failed")]

use std::cmp::Ordering;
use whit_noise::ball::{exp_minus, normal_tail};
use whit_noise::fit::{chi_square_p_value, dkw_tolerance};
use whit_noise::{
    DiscreteGaussian, DiscreteLaplace, Entropy, Geometric, Overflow, Ratio, Replay, RoundedGaussian, race,
};

use dashu_int::IBig;

/// A first word that is given, and fair bits after it.
struct Script {
    first: Option<u64>,
    rest: Replay,
    used: usize,
}

impl Script {
    fn new(first: u64) -> Self {
        Self { first: Some(first), rest: Replay::new(11), used: 0 }
    }
}

impl Entropy for Script {
    fn bits(&mut self, count: u32) -> u64 {
        self.used += 1;
        self.first.take().map_or_else(|| self.rest.bits(count), |word| word >> (64 - count))
    }
    fn fill(&mut self, words: &mut [u64]) {
        for word in words {
            *word = self.bits(64);
        }
    }
}

/// The largest 63-bit prefix for which the magnitude is still at least k: magnitudes fall as the uniform real grows,
/// so bisection walks the whole tree of random bits down to depth 63.
fn turning_point(k: u64, magnitude: impl Fn(u64) -> u64) -> u64 {
    let (mut low, mut high) = (0, 1_u64 << 63);
    while high - low > 1 {
        let middle = low + (high - low) / 2;
        if magnitude(middle) >= k { low = middle } else { high = middle }
    }
    low
}

/// The prefix in which P(|X| ≥ k) lies, at a precision of 63 bits.
fn matches(turn: u64, low: &IBig, high: &IBig) -> bool {
    let turn = IBig::from(turn);
    *low <= &turn + IBig::ONE && turn <= *high
}

#[test]
fn the_rounded_gaussian_turns_at_exactly_the_normal_tail() {
    for sigma in ["1", "0.3", "2.5", "10/3", "1000", "1048576", "123456789/1000"] {
        let sigma: Ratio = sigma.parse().unwrap();
        let noise = RoundedGaussian::new(sigma).unwrap();
        let magnitude = |prefix: u64| noise.draw(&mut Script::new(prefix << 1)).unwrap().unsigned_abs();
        let s = sigma.to_f64();
        for k in [1, 2, 3, (0.5 * s) as u64 + 1, (2.0 * s) as u64 + 1, (5.5 * s) as u64 + 1, (8.0 * s) as u64 + 2] {
            let numerator = IBig::from(2 * k - 1) * IBig::from(sigma.denominator());
            let tail = normal_tail(&numerator, &(IBig::from(sigma.numerator()) << 1), 64); // 2Q in units of 2^-63
            assert!(matches(turning_point(k, magnitude), &tail.low(), &tail.high()), "σ = {sigma}, k = {k}");
        }
    }
}

#[test]
fn the_discrete_laplace_law_turns_at_exactly_its_tail() {
    for scale in ["1", "0.4", "2.5", "10/3", "1000", "1048576"] {
        let scale: Ratio = scale.parse().unwrap();
        let noise = DiscreteLaplace::new(scale).unwrap();
        let magnitude = |prefix: u64| noise.draw(&mut Script::new(prefix << 1)).unwrap().unsigned_abs();
        let s = scale.to_f64();
        for k in [1, 2, 3, (0.5 * s) as u64 + 1, (7.0 * s) as u64 + 1, (20.0 * s) as u64 + 1] {
            // V·(1 + a) against 2·aᵏ, in integers of 2^-80.
            let (n, d) = (IBig::from(scale.numerator()), IBig::from(scale.denominator()));
            let power = exp_minus(&(&d * IBig::from(k)), &n, 100);
            let a = exp_minus(&d, &n, 100);
            let one = IBig::ONE << 100;
            let low = (power.low() << 64) / (&one + a.high());
            let high = (power.high() << 64) / (&one + a.low()) + IBig::ONE;
            assert!(matches(turning_point(k, magnitude), &low, &high), "scale {scale}, k = {k}");
        }
    }
}

/// The reference probabilities of the discrete Laplace law to all their ten digits, read off the sampler itself: where
/// its magnitude turns from k − 1 to k is P(|X| ≥ k), to 63 bits.
#[test]
fn the_discrete_laplace_sampler_has_the_reference_probabilities() {
    let mut checked = 0;
    for entry in oracle()["entries"].as_array().unwrap() {
        let kind = entry["kind"].as_str().unwrap();
        if !matches!(kind, "discrete_laplace_pmf" | "discrete_laplace_cdf") {
            continue;
        }
        let noise = DiscreteLaplace::new(entry["inputs"]["scale"].as_str().unwrap().parse().unwrap()).unwrap();
        let magnitude = |prefix: u64| noise.draw(&mut Script::new(prefix << 1)).unwrap().unsigned_abs();
        let tail = |k: u64| if k == 0 { 1.0 } else { turning_point(k, magnitude) as f64 / (1_u64 << 63) as f64 };
        let x = entry["inputs"]["x"].as_i64().unwrap();
        let (k, expected) = (x.unsigned_abs(), entry["expected"].as_f64().unwrap());
        let found = match (kind, x) {
            ("discrete_laplace_pmf", 0) => 1.0 - tail(1),
            ("discrete_laplace_pmf", _) => (tail(k) - tail(k + 1)) / 2.0,
            (_, 0..) => 1.0 - tail(k + 1) / 2.0,
            _ => tail(k) / 2.0,
        };
        assert!((found / expected - 1.0).abs() <= 1e-10, "{}: {found} is not {expected}", entry["id"]);
        checked += 1;
    }
    assert_eq!(checked, 32);
}

#[test]
fn the_geometric_law_turns_at_exactly_its_tail() {
    for scale in ["1", "7/3", "5000"] {
        let scale: Ratio = scale.parse().unwrap();
        let noise = Geometric::new(scale).unwrap();
        let magnitude = |prefix: u64| noise.draw(&mut Script::new(prefix << 1)).unwrap();
        for k in [1, 2, 9, 20] {
            let tail =
                exp_minus(&(IBig::from(k) * IBig::from(scale.denominator())), &IBig::from(scale.numerator()), 63);
            assert!(matches(turning_point(k, magnitude), &tail.low(), &tail.high()), "scale {scale}, k = {k}");
        }
    }
}

/// Where 63 bits leave the answer open, more are drawn: on both sides of a turning point only one word is used,
/// and at it more than one.
#[test]
fn more_bits_are_drawn_exactly_where_they_are_needed() {
    let noise = RoundedGaussian::new(Ratio::from(1000)).unwrap();
    let turn = turning_point(700, |prefix| noise.draw(&mut Script::new(prefix << 1)).unwrap().unsigned_abs());
    let used = |prefix: u64| {
        let mut script = Script::new(prefix << 1);
        noise.draw(&mut script).unwrap();
        script.used
    };
    assert!((0..=1).any(|step| used(turn + step) > 1), "the straddling prefix needs a second word");
    assert_eq!((used(turn - (1 << 30)), used(turn + (1 << 30))), (1, 1));
}

fn oracle() -> serde_json::Value {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../whit-account/tests/oracles/discrete_noise.json");
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

const DRAWS: usize = 10_000_000;

/// Draws 10⁷ and asks: does the empirical CDF stray from the oracle's values by more than DKW allows (once in 10⁹
/// seeds for a correct sampler), and is the variance within six standard errors (once in 5·10⁸)?
fn follows(kind: &str, parameter: &str, value: &str, draws: &[i64]) -> Result<(), String> {
    let tolerance = dkw_tolerance(draws.len() as u64, 1e-9);
    let mut checked = 0;
    for entry in oracle()["entries"].as_array().unwrap() {
        if entry["inputs"][parameter] != value {
            continue;
        }
        let expected = entry["expected"].as_f64().unwrap();
        let n = draws.len() as f64;
        if entry["kind"] == format!("{kind}_cdf") {
            let x = entry["inputs"]["x"].as_i64().unwrap();
            let seen = draws.iter().filter(|&&draw| draw <= x).count() as f64 / n;
            if (seen - expected).abs() > tolerance {
                return Err(format!("P(X ≤ {x}) is {seen}, not {expected}"));
            }
            checked += 1;
        } else if entry["kind"] == format!("{kind}_variance") {
            let second = draws.iter().map(|&x| (x as f64).powi(2)).sum::<f64>() / n;
            let fourth = draws.iter().map(|&x| (x as f64).powi(4)).sum::<f64>() / n;
            if (second - expected).abs() > 6.0 * ((fourth - second * second) / n).sqrt() {
                return Err(format!("the variance is {second}, not {expected}"));
            }
            checked += 1;
        } else if entry["kind"] == format!("{kind}_pmf") {
            // A probability is the difference of two values of the distribution function, each within the tolerance.
            let x = entry["inputs"]["x"].as_i64().unwrap();
            let seen = draws.iter().filter(|&&draw| draw == x).count() as f64 / n;
            if (seen - expected).abs() > 2.0 * tolerance {
                return Err(format!("P(X = {x}) is {seen}, not {expected}"));
            }
            checked += 1;
        } else {
            return Err(format!("{} is a kind that nobody checks", entry["kind"]));
        }
    }
    if checked == 0 { Err(format!("no reference for {kind} with {parameter} {value}")) } else { Ok(()) }
}

#[test]
fn ten_million_draws_follow_the_reference_values() {
    let mut draws = vec![0; DRAWS];
    for scale in ["1", "2.5", "0.4", "10/3"] {
        DiscreteLaplace::new(scale.parse().unwrap()).unwrap().fill(&mut draws, &mut Replay::new(21)).unwrap();
        follows("discrete_laplace", "scale", scale, &draws).unwrap();
    }
    for variance in ["1", "4", "0.5", "10/3", "100"] {
        DiscreteGaussian::new(variance.parse().unwrap()).unwrap().fill(&mut draws, &mut Replay::new(22)).unwrap();
        follows("discrete_gaussian", "sigma_squared", variance, &draws).unwrap();
    }
    // Broken on purpose: a scale that is off by half a per cent, and a sign that is never negative at 1.
    DiscreteLaplace::new("201/200".parse().unwrap()).unwrap().fill(&mut draws, &mut Replay::new(23)).unwrap();
    assert!(follows("discrete_laplace", "scale", "1", &draws).is_err());
    DiscreteGaussian::new(Ratio::from(4)).unwrap().fill(&mut draws, &mut Replay::new(24)).unwrap();
    draws.iter_mut().filter(|draw| **draw == -1).for_each(|draw| *draw = 1);
    assert!(follows("discrete_gaussian", "sigma_squared", "4", &draws).is_err());
}

/// Pearson's test over all cells between −6σ and 6σ; a correct sampler falls below 10⁻⁹ once in 10⁹ seeds.
fn rounded_gaussian_p_value(sigma: f64, draws: &[i64]) -> f64 {
    let edge = (6.0 * sigma).ceil() as i64;
    let width = (edge / 200).max(1);
    let cells = (2 * edge / width + 2) as usize;
    let (mut observed, mut expected) = (vec![0; cells], vec![0.0; cells]);
    let cell = |x: i64| ((x.clamp(-edge, edge) + edge) / width) as usize;
    for &draw in draws {
        observed[cell(draw)] += 1;
    }
    let tail = |x: f64| libm::erfc(x / sigma * std::f64::consts::FRAC_1_SQRT_2) / 2.0;
    for x in -edge..=edge {
        let above = if x == -edge { 1.0 } else { tail(x as f64 - 0.5) };
        let beyond = if x == edge { 0.0 } else { tail(x as f64 + 0.5) };
        expected[cell(x)] += (above - beyond) * draws.len() as f64;
    }
    chi_square_p_value(&observed, &expected)
}

#[test]
fn ten_million_rounded_gaussians_pass_pearsons_test_and_a_wrong_one_does_not() {
    let mut draws = vec![0; DRAWS];
    for (sigma, seed) in [("1", 31), ("0.6", 32), ("100/3", 33), ("100000", 34)] {
        let sigma: Ratio = sigma.parse().unwrap();
        RoundedGaussian::new(sigma).unwrap().fill(&mut draws, &mut Replay::new(seed)).unwrap();
        let p = rounded_gaussian_p_value(sigma.to_f64(), &draws);
        assert!(p > 1e-9, "σ = {sigma}: p = {p:e}");
        // Moments: mean 0, variance σ² + 1/12 nearly, for σ ≥ 1.
        let (n, s) = (draws.len() as f64, sigma.to_f64());
        let mean = draws.iter().map(|&x| x as f64).sum::<f64>() / n;
        assert!(mean.abs() < 6.5 * (s + 0.3) / n.sqrt(), "σ = {sigma}: mean {mean}");
        if s >= 1.0 {
            let variance = draws.iter().map(|&x| (x as f64).powi(2)).sum::<f64>() / n;
            let due = s * s + 1.0 / 12.0;
            assert!((variance - due).abs() < 6.5 * due * (2.0 / n).sqrt(), "σ = {sigma}: variance {variance}");
        }
    }
    // A discrete Gaussian is another law than a rounded one, and truncation instead of rounding is another still.
    DiscreteGaussian::new(Ratio::ONE).unwrap().fill(&mut draws, &mut Replay::new(35)).unwrap();
    assert!(rounded_gaussian_p_value(1.0, &draws) < 1e-9);
    RoundedGaussian::new("1005/1000".parse().unwrap()).unwrap().fill(&mut draws, &mut Replay::new(36)).unwrap();
    assert!(rounded_gaussian_p_value(1.0, &draws) < 1e-9, "a deviation that is off by half a per cent shows");
}

#[test]
fn a_fill_is_the_same_as_draws_one_by_one() {
    let mut filled = vec![0; 5000];
    let noise = RoundedGaussian::new(Ratio::from(12)).unwrap();
    noise.fill(&mut filled, &mut Replay::new(41)).unwrap();
    let mut entropy = Replay::new(41);
    assert!(filled.iter().all(|&x| x == noise.draw(&mut entropy).unwrap()));
    let mut parallel = vec![i64::MAX; 10_001];
    noise.fill_parallel(&mut parallel, 3).unwrap();
    assert!(parallel.iter().all(|x| x.abs() < 200), "every part was filled");
}

/// The far tail of a law that reaches beyond 64 bits is an error, never another number.
#[test]
fn overflow_is_an_error_and_never_wraps() {
    let wide = Ratio::new(1 << 66, 1).unwrap();
    let first_of = |seed: u64| DiscreteLaplace::new(wide).unwrap().draw(&mut Replay::new(seed));
    assert!((0..20).any(|seed| first_of(seed) == Err(Overflow)));
    let gaussian = RoundedGaussian::new(Ratio::new(1 << 70, 1).unwrap()).unwrap();
    assert!((0..20).all(|seed| gaussian.draw(&mut Replay::new(seed)).is_err_and(|e| e == Overflow)));
    // A wide law that fits is drawn without an error, by balls alone.
    let fits = RoundedGaussian::new(Ratio::new(1 << 58, 1).unwrap()).unwrap();
    let draws: Vec<i64> = (0..50).map(|seed| fits.draw(&mut Replay::new(seed)).unwrap()).collect();
    assert!(draws.iter().any(|x| x.unsigned_abs() > 1 << 57) && draws.iter().any(|x| x % 2 != 0));
    assert!(RoundedGaussian::new(Ratio::ZERO).is_err() && DiscreteLaplace::new(Ratio::ZERO).is_err());
}

/// Gumbel noise wins as the softmax of the scores does; exponential noise wins as permute-and-flip does.
/// A correct race fails once in 10⁹ seeds.
#[test]
fn races_are_won_with_the_right_probabilities() {
    let (scores, factor) = ([3, 1, 0], "1/2".parse().unwrap());
    let softmax = [0.628_531_719_211_762_4, 0.231_223_897_622_149_07, 0.140_244_383_166_088_48];
    let flips = [0.731_856_865_548_030_2, 0.170_258_887_481_738_04, 0.097_884_246_970_231_78];
    let n = 1_000_000_u32;
    let mut entropy = Replay::new(51);
    let (mut gumbel, mut exponential) = ([0_u64; 3], [0_u64; 3]);
    for _ in 0..n {
        gumbel[race::gumbel(&scores, &factor, 1, &mut entropy)[0]] += 1;
        exponential[race::exponential(&scores, &factor, 1, &mut entropy)[0]] += 1;
    }
    let due = |p: [f64; 3]| p.map(|p| p * f64::from(n));
    assert!(chi_square_p_value(&gumbel, &due(softmax)) > 1e-9);
    assert!(chi_square_p_value(&exponential, &due(flips)) > 1e-9);
    assert!(chi_square_p_value(&exponential, &due(softmax)) < 1e-9, "the two laws are distinguished");
}

/// Two equal scores with equal first words: only further bits can tell them apart, and they do, fairly.
#[test]
fn a_tie_in_the_first_bits_is_settled_by_more_bits() {
    struct Twins(Replay, u32);
    impl Entropy for Twins {
        fn bits(&mut self, count: u32) -> u64 {
            self.1 += 1;
            if self.1 <= 2 { 0x1234_5678_9abc_def0 >> (64 - count) } else { self.0.bits(count) }
        }
        fn fill(&mut self, words: &mut [u64]) {
            for word in words {
                *word = self.bits(64);
            }
        }
    }
    for run in [race::gumbel, race::exponential] {
        let wins =
            (0..400).filter(|&seed| run(&[7, 7], &Ratio::ONE, 2, &mut Twins(Replay::new(seed), 0)) == [0, 1]).count();
        assert!((120..280).contains(&wins), "{wins} of 400"); // eight standard deviations
    }
}

/// The operating system's generator: two threads, and a process and its child, never share bits.
#[test]
fn threads_draw_different_bits() {
    let draw = || std::thread::spawn(|| whit_noise::Os.bits(64)).join().unwrap();
    assert_ne!(draw(), draw());
    assert_ne!(Replay::new(1).bits(64).cmp(&Replay::new(2).bits(64)), Ordering::Equal);
}
