use super::*;
use crate::plan::{Count, Draft, SNAPPING};
use proptest::prelude::*;
use whit_core::unit::Caps;
use whit_core::{Change, Kind, Ladder, Unit};
use whit_noise::fit::dkw_tolerance;

fn plan(noise: f64, norm: f64, units: u64, steps: u64) -> Plan {
    let ladder = Ladder::new(vec![Unit::event(Change::Replace)], Caps::default(), Kind::Event).unwrap();
    let draft = Draft::new(ladder, "1/10".parse().unwrap(), Count::Declared(units), norm, steps);
    draft.with_noise(noise).unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    /// With the noise off, lattice points are those of the snapped sum; it is within SNAPPING/2 clip norms of the sum, as a vector. The mean is that of the
    /// sum itself: where nothing is hidden, nothing is lost.
    #[test]
    fn a_snapped_sum_is_within_the_stated_slack(
        sum in prop::collection::vec(-50.0..50.0_f64, 1..2000), norm in 0.01..100.0_f64,
    ) {
        let mut sanitiser = Sanitiser::new(&plan(1.0, norm, 10, 5), sum.len(), Noise::Off).unwrap();
        let step = sanitiser.grid().step();
        let points = sanitiser.sanitise_with(&sum, <[i64]>::to_vec).unwrap();
        // In units of steps, where both numbers and their difference are exact.
        let moved: f64 = sum.iter().zip(&points).map(|(x, &p)| (x / step - p as f64).powi(2)).sum();
        prop_assert!(moved.sqrt() * step <= norm * SNAPPING / 2.0);
        let mut mean = vec![0.0; sum.len()];
        sanitiser.sanitise(&sum, &mut mean).unwrap();
        prop_assert_eq!(sanitiser.value(1), step); // the divisor is 10/10
        prop_assert_eq!(mean, sum);
    }
}

/// The worst sum for snapping, each coordinate half a step off, is as far off as the bound says and not further.
#[test]
fn the_bound_on_snapping_is_attained() {
    let d = 1 << 20;
    let mut sanitiser = Sanitiser::new(&plan(1.0, 1.0, 10, 1), d, Noise::Off).unwrap();
    let step = sanitiser.grid().step();
    let points = sanitiser.sanitise_with(&vec![step / 2.0; d], <[i64]>::to_vec).unwrap();
    let moved: f64 = points.iter().map(|&point| (0.5 - point as f64).powi(2)).sum();
    assert_eq!(moved.sqrt() * step, SNAPPING / 2.0);
}

/// C10: one gradient of 10, clipped to 1, no noise, L = 1, η = 0.1: θ goes to −0.1, whatever number was drawn.
#[test]
fn the_divisor_is_not_what_was_drawn() {
    let mut sanitiser = Sanitiser::new(&plan(1.0, 1.0, 10, 2), 1, Noise::Off).unwrap();
    let mut mean = [0.0];
    sanitiser.sanitise(&[1.0], &mut mean).unwrap();
    assert_eq!(-0.1 * mean[0], -0.1);
    sanitiser.sanitise(&[3.0], &mut mean).unwrap(); // three such bags were drawn: three times as far
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
    for source in [Noise::Replay { seed: 5 }, Noise::Secret { threads: 2 }] {
        let mut sanitiser = Sanitiser::new(&plan, d as usize, source).unwrap();
        let (mut mean, mut errors) = (vec![0.0; d as usize], Vec::new());
        for _ in 0..steps {
            sanitiser.sanitise(&exact, &mut mean).unwrap();
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
    let mut sanitiser = Sanitiser::new(&plan(1.0, 1.0, 10, 30), 50, Noise::Secret { threads: 1 }).unwrap();
    let sum = vec![0.0; 50];
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
    let mut sanitiser = Sanitiser::new(&plan(1.0, 1.0, 10, 3), 2, Noise::Secret { threads: 1 }).unwrap();
    let mut mean = [0.0; 2];
    for left in [2, 1, 0] {
        sanitiser.sanitise(&[0.0; 2], &mut mean).unwrap();
        assert_eq!(sanitiser.left(), left);
    }
    let error = sanitiser.sanitise(&[0.0; 2], &mut mean).unwrap_err();
    assert_eq!(error, SanitiseError::Spent { steps: 3 });
    assert!(error.hint().is_some());
}

/// After any number of refusals the next step has the noise that it would have had without them.
#[test]
fn what_is_refused_takes_no_noise() {
    let plan = plan(1.0, 1.0, 10, 3);
    let make = || Sanitiser::new(&plan, 2, Noise::Replay { seed: 3 }).unwrap();
    let (mut calm, mut troubled) = (make(), make());
    let (mut a, mut b) = ([0.0; 2], [0.0; 2]);
    for _ in 0..3 {
        for (bad, told) in [
            ([f64::NAN, 0.0], SanitiseError::NotFinite),
            ([0.0, f64::INFINITY], SanitiseError::NotFinite),
            ([f64::NEG_INFINITY, 1.0], SanitiseError::NotFinite),
        ] {
            let left = troubled.left();
            assert_eq!(troubled.sanitise(&bad, &mut b), Err(told));
            assert_eq!(troubled.left(), left);
        }
        assert!(matches!(troubled.sanitise(&[0.0; 3], &mut b), Err(SanitiseError::Length { .. })));
        assert!(matches!(troubled.sanitise(&[0.0; 2], &mut b[..1]), Err(SanitiseError::Length { .. })));
        calm.sanitise(&[1.0, 2.0], &mut a).unwrap();
        troubled.sanitise(&[1.0, 2.0], &mut b).unwrap();
        assert_eq!(a, b);
    }
    assert!(matches!(Sanitiser::new(&plan, 0, Noise::Off), Err(SanitiseError::Coordinates { .. })));
}
