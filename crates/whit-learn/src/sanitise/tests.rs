use super::*;
use crate::plan::{Clip, Clipping, Count, Draft, SNAPPING};
use proptest::prelude::*;
use whit_core::unit::Caps;
use whit_core::{Change, Cost, Kind, Ladder, Mechanism, Rung, Unit};
use whit_noise::fit::dkw_tolerance;

fn plan(noise: f64, norm: f64, units: u64, steps: u64) -> Plan {
    let ladder = Ladder::new(vec![Unit::event(Change::Replace)], Caps::default(), Kind::Event).unwrap();
    let draft = Draft::new(ladder, "1/10".parse().unwrap(), Count::Declared(units), norm, steps);
    draft.with_noise(noise).unwrap()
}

/// Numbers as they are, for contributions of any norm.
fn sum_of(values: &[f64], norm: f64) -> ClippedSum {
    ClippedSum::forged(values.to_vec(), Clip { norm, how: Clipping::Flat })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    /// With the noise off, lattice points are those of the snapped sum; it is within SNAPPING/2 clip norms of the sum, as a vector. The mean is that of the
    /// sum itself: where nothing is hidden, nothing is lost.
    #[test]
    fn a_snapped_sum_is_within_the_stated_slack(
        sum in prop::collection::vec(-50.0..50.0_f64, 1..2000), norm in 0.01..100.0_f64,
    ) {
        let mut sanitiser = Sanitiser::new(&plan(1.0, norm, 10, 5).drawing(NoiseSource::Off), sum.len()).unwrap();
        let step = sanitiser.grid().step();
        let points = sanitiser.sanitise_with(&sum_of(&sum, norm), <[i64]>::to_vec).unwrap();
        // In units of steps, where both numbers and their difference are exact.
        let moved: f64 = sum.iter().zip(&points).map(|(x, &p)| (x / step - p as f64).powi(2)).sum();
        prop_assert!(moved.sqrt() * step <= norm * SNAPPING / 2.0);
        let mut mean = vec![0.0; sum.len()];
        sanitiser.sanitise(&sum_of(&sum, norm), &mut mean).unwrap();
        prop_assert_eq!(sanitiser.value(1), step); // the divisor is 10/10
        prop_assert_eq!(mean, sum);
    }
}

/// The worst sum for snapping, each coordinate half a step off, is as far off as the bound says and not further.
#[test]
fn the_bound_on_snapping_is_attained() {
    let d = 1 << 20;
    let mut sanitiser = Sanitiser::new(&plan(1.0, 1.0, 10, 1).drawing(NoiseSource::Off), d).unwrap();
    let step = sanitiser.grid().step();
    let points = sanitiser.sanitise_with(&sum_of(&vec![step / 2.0; d], 1.0), <[i64]>::to_vec).unwrap();
    let moved: f64 = points.iter().map(|&point| (0.5 - point as f64).powi(2)).sum();
    assert_eq!(moved.sqrt() * step, SNAPPING / 2.0);
}

/// C10: one gradient of 10, clipped to 1, no noise, L = 1, η = 0.1: θ goes to −0.1, whatever number was drawn.
#[test]
fn the_divisor_is_not_what_was_drawn() {
    let mut sanitiser = Sanitiser::new(&plan(1.0, 1.0, 10, 2).drawing(NoiseSource::Off), 1).unwrap();
    let mut mean = [0.0];
    sanitiser.sanitise(&sum_of(&[1.0], 1.0), &mut mean).unwrap();
    assert_eq!(-0.1 * mean[0], -0.1);
    sanitiser.sanitise(&sum_of(&[3.0], 1.0), &mut mean).unwrap(); // three such bags were drawn: three times as far
    assert_eq!(-0.1 * mean[0], -0.1 * 3.0);
}

/// Errors over their stated deviation, against Φ: a correct one fails once in 10⁹ seeds (Dvoretzky–Kiefer–Wolfowitz), and
/// mean and variance must be within seven deviations.
fn follows(errors: &mut [f64]) -> Result<(), String> {
    let n = errors.len() as f64;
    let average = errors.iter().sum::<f64>() / n;
    let variance = errors.iter().map(|e| e * e).sum::<f64>() / n;
    if average.abs() > 7.0 / n.sqrt() || (variance - 1.0).abs() > 7.0 * (2.0 / n).sqrt() {
        return Err(format!("mean {average}, variance {variance}"));
    }
    errors.sort_unstable_by(f64::total_cmp);
    // Snapping and the lattice move the distribution function by less than a step, 2^-20 or so of a deviation.
    let tolerance = dkw_tolerance(errors.len() as u64, 1e-9) + 1e-5;
    let gap =
        |(i, &error): (usize, &f64)| (0.5 * libm::erfc(-error * std::f64::consts::FRAC_1_SQRT_2) - i as f64 / n).abs();
    let worst = errors.iter().enumerate().map(gap).fold(0.0, f64::max);
    if worst < tolerance { Ok(()) } else { Err(format!("off by {worst}")) }
}

/// Over 200,000 draws: a σ that is off by 3 %, or noise that is uniform with the right variance, is caught.
#[test]
fn noise_follows_its_law() {
    let (noise, norm, d, steps) = (1.7, 0.3, 5_000, 40);
    let plan = plan(noise, norm, 640, steps);
    let exact: Vec<f64> = (0..d).map(|i| f64::from(i) * 0.001).collect();
    for source in [NoiseSource::Replay { seed: 5 }, NoiseSource::Secret { threads: 2 }] {
        let mut sanitiser = Sanitiser::new(&plan.clone().drawing(source), d as usize).unwrap();
        let (mut mean, mut errors) = (vec![0.0; d as usize], Vec::new());
        for _ in 0..steps {
            sanitiser.sanitise(&sum_of(&exact, norm), &mut mean).unwrap();
            errors.extend(mean.iter().zip(&exact).map(|(&noisy, &sum)| (noisy * 64.0 - sum) / (noise * norm)));
        }
        follows(&mut errors).unwrap();
        let mut wider: Vec<f64> = errors.iter().map(|error| error * 1.03).collect();
        assert!(follows(&mut wider).is_err());
        let n = errors.len() as f64;
        let mut flat: Vec<f64> = (0..errors.len()).map(|i| ((i as f64 + 0.5) / n - 0.5) * 12_f64.sqrt()).collect();
        assert!(follows(&mut flat).is_err());
    }
}

#[test]
fn each_step_has_noise_of_its_own() {
    let mut sanitiser =
        Sanitiser::new(&plan(1.0, 1.0, 10, 30).drawing(NoiseSource::Secret { threads: 1 }), 50).unwrap();
    let sum = ClippedSum::new(50, plan(1.0, 1.0, 10, 30).clip());
    let mut all: Vec<Vec<i64>> = (0..30).map(|_| sanitiser.sanitise_with(&sum, <[i64]>::to_vec).unwrap()).collect();
    for pair in all.windows(2) {
        let same = pair[0].iter().zip(&pair[1]).filter(|(a, b)| a == b).count();
        assert!(same <= 5, "σ is a million steps, so draws hardly ever agree");
    }
    all.sort_unstable();
    all.dedup();
    assert_eq!(all.len(), 30);
}

#[test]
fn a_plan_pays_for_so_many_steps_and_no_more() {
    let mut sanitiser = Sanitiser::new(&plan(1.0, 1.0, 10, 3).drawing(NoiseSource::Secret { threads: 1 }), 2).unwrap();
    let mut mean = [0.0; 2];
    for left in [2, 1, 0] {
        sanitiser.sanitise(&sum_of(&[0.0; 2], 1.0), &mut mean).unwrap();
        assert_eq!(sanitiser.left(), left);
    }
    let error = sanitiser.sanitise(&sum_of(&[0.0; 2], 1.0), &mut mean).unwrap_err();
    assert_eq!(error, SanitiserError::Spent { steps: 3 });
    assert!(error.hint().is_some());
}

/// After any number of refusals the next step has the noise that it would have had without them.
#[test]
fn what_is_refused_takes_no_noise() {
    let plan = plan(1.0, 1.0, 10, 3).drawing(NoiseSource::Replay { seed: 3 });
    let make = || Sanitiser::new(&plan, 2).unwrap();
    let (mut calm, mut troubled) = (make(), make());
    let (mut a, mut b) = ([0.0; 2], [0.0; 2]);
    for _ in 0..3 {
        for (bad, error) in [
            ([f64::NAN, 0.0], SanitiserError::NotFinite),
            ([0.0, f64::INFINITY], SanitiserError::NotFinite),
            ([f64::NEG_INFINITY, 1.0], SanitiserError::NotFinite),
        ] {
            let left = troubled.left();
            assert_eq!(troubled.sanitise(&sum_of(&bad, 1.0), &mut b), Err(error));
            assert_eq!(troubled.left(), left);
        }
        assert!(matches!(troubled.sanitise(&sum_of(&[0.0; 3], 1.0), &mut b), Err(SanitiserError::Length { .. })));
        assert!(matches!(troubled.sanitise(&sum_of(&[0.0; 2], 1.0), &mut b[..1]), Err(SanitiserError::Length { .. })));
        calm.sanitise(&sum_of(&[1.0, 2.0], 1.0), &mut a).unwrap();
        troubled.sanitise(&sum_of(&[1.0, 2.0], 1.0), &mut b).unwrap();
        assert_eq!(a, b);
    }
    assert!(matches!(Sanitiser::new(&plan, 0), Err(SanitiserError::Coordinates { .. })));
}

/// Contributions of a larger norm than the plan's are no part of what it pays for; of a smaller one they are.
#[test]
fn sums_of_another_bound_are_refused() {
    let plan = plan(1.0, 1.0, 10, 3);
    let mut sanitiser = Sanitiser::new(&plan, 2).unwrap();
    let mut mean = [0.0; 2];
    for norm in [1.0_f64.next_up(), 2.0, f64::INFINITY, f64::NAN] {
        let refused = sanitiser.sanitise(&ClippedSum::new(2, Clip { norm, how: Clipping::Flat }), &mut mean);
        assert!(matches!(refused, Err(SanitiserError::Clip { expected: 1.0, .. })), "{norm}");
    }
    assert_eq!(sanitiser.left(), 3);
    assert!(sanitiser.sanitise(&ClippedSum::new(2, Clip { norm: 0.5, how: Clipping::Normalising }), &mut mean).is_ok());
}

/// The mechanism on lattice points and the plan know of one noise: a unit that is always drawn pays the same by both.
#[test]
fn one_step_has_the_noise_that_the_plan_counts_on() {
    for (noise, norm, coordinates) in [(1.0, 1.0, 3), (0.7, 0.3, 100_000), (40.0, 12_345.6, 1 << 22)] {
        let plan = plan(noise, norm, 10, 1);
        let sanitiser = Sanitiser::new(&plan, coordinates).unwrap();
        let rung = Rung { unit: Unit::event(Change::AddRemove), holds: 1, disjoint: false, slices: None };
        let Cost::Gaussian { noise: found } = sanitiser.noise().cost(&rung) else { panic!("Gaussian") };
        assert!((found / plan.effective_noise() - 1.0).abs() < 1e-11, "{found} and {}", plan.effective_noise());
        let deviation = sanitiser.noise().deviation() * sanitiser.grid().step();
        assert!((deviation / (noise * norm) - 1.0).abs() < 1e-14);
    }
}
