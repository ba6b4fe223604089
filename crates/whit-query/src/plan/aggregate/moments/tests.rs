use super::*;
use crate::bound::SumReach;
use whit_core::mechanism::additive::{Coordinates, Law};
use whit_noise::{Ratio, Replay};

const KINDS: [PairStatistic; 9] = [
    PairStatistic::Covariance { sample: false },
    PairStatistic::Covariance { sample: true },
    PairStatistic::Correlation,
    PairStatistic::Determination,
    PairStatistic::Slope,
    PairStatistic::Intercept,
    PairStatistic::SquaresOfX,
    PairStatistic::SquaresOfY,
    PairStatistic::Products,
];

fn gaussian(sigma: f64) -> SumNoise {
    let law = Law::rounded(Ratio::from_f64_up(sigma).unwrap()).unwrap();
    SumNoise::new(law, SumReach::unknown(), Coordinates::Any)
}

fn laplace(scale: f64) -> SumNoise {
    let law = Law::laplace(Ratio::from_f64_up(scale).unwrap()).unwrap();
    SumNoise::new(law, SumReach::unknown(), Coordinates::Any)
}

const SIDES: [ValueBounds; 2] = [ValueBounds { centre: 50.0, half: 50.0 }, ValueBounds { centre: 5.0, half: 10.0 }];

/// Pairs within their bounds: nearly on a line; in a cloud that leans a little, off the middle; far apart at one end; and without any relation.
fn data(rows: u32) -> [Vec<(f64, f64)>; 4] {
    let even = |i: u32, by: f64| (f64::from(i) + 0.5) * by % 1.0;
    let (golden, silver) = (0.618_033_988_749_895, 0.414_213_562_373_095);
    let all = |of: &dyn Fn(f64, f64) -> (f64, f64)| -> Vec<(f64, f64)> {
        let pair = |i: u32| of(even(i, golden), even(i, silver));
        (0..rows).map(pair).map(|(x, y)| (x.clamp(0.0, 100.0), y.clamp(-5.0, 15.0))).collect()
    };
    [
        all(&|u, v| (100.0 * u, 18.0 * u - 4.0 + 2.0 * (v - 0.5))),
        all(&|u, v| (30.0 + 60.0 * u, 9.0 - 4.0 * u + 6.0 * v)),
        all(&|u, v| (-25.0 * u.ln(), 12.0 + 3.0 * v.ln() - 4.0 * u)),
        all(&|u, v| (100.0 * u, 20.0 * v - 5.0)),
    ]
}

/// What is asked, of the rows themselves.
fn truth(kind: PairStatistic, pairs: &[(f64, f64)]) -> f64 {
    let n = pairs.len() as f64;
    let (mx, my) = (pairs.iter().map(|p| p.0).sum::<f64>() / n, pairs.iter().map(|p| p.1).sum::<f64>() / n);
    let sxx: f64 = pairs.iter().map(|p| (p.0 - mx).powi(2)).sum();
    let syy: f64 = pairs.iter().map(|p| (p.1 - my).powi(2)).sum();
    let sxy: f64 = pairs.iter().map(|p| (p.0 - mx) * (p.1 - my)).sum();
    match kind {
        PairStatistic::Covariance { sample: false } => sxy / n,
        PairStatistic::Covariance { sample: true } => sxy / (n - 1.0),
        PairStatistic::Correlation => sxy / (sxx * syy).sqrt(),
        PairStatistic::Determination => sxy * sxy / (sxx * syy),
        PairStatistic::Slope => sxy / sxx,
        PairStatistic::Intercept => my - sxy / sxx * mx,
        PairStatistic::SquaresOfX => sxx,
        PairStatistic::SquaresOfY => syy,
        PairStatistic::Products => sxy,
    }
}

/// The six sums in steps, and what a step of each is worth.
fn summed(pairs: &[(f64, f64)]) -> ([i64; 6], [f64; 6]) {
    let [x, y] = SIDES;
    let fine = 2_f64.powi(-20);
    let steps =
        [1.0, x.half * fine, y.half * fine, x.half * y.half * fine, x.half * x.half * fine, y.half * y.half * fine];
    let mut sums = [0.0; 6];
    for (a, b) in pairs.iter().map(|pair| (pair.0 - x.centre, pair.1 - y.centre)) {
        for (sum, (value, step)) in sums.iter_mut().zip([1.0, a, b, a * b, a * a, b * b].into_iter().zip(steps)) {
            *sum += (value / step).round();
        }
    }
    (sums.map(|sum| sum as i64), steps)
}

#[test]
fn without_noise_values_are_those_of_the_rows() {
    let quiet = gaussian(1e-3);
    for pairs in data(400) {
        let (sums, steps) = summed(&pairs);
        let numbers: [f64; 6] = std::array::from_fn(|i| sums[i] as f64 * steps[i]);
        for kind in KINDS {
            let needs = kind.needs();
            let noises = std::array::from_fn(|i| needs[i].then_some((&quiet, steps[i])));
            let cell = PairSums::new(kind, SIDES, noises, 0.95).cell(&numbers);
            let Value::Float(value) = cell.value else { panic!("{kind:?}: {cell:?}") };
            let truth = truth(kind, &pairs);
            assert!((value - truth).abs() < 1e-4 * truth.abs().max(1.0), "{kind:?}: {value} and {truth}");
        }
    }
}

/// 1,000 runs a case: 95 % have a deviation of 0.7 %, and what is tried is no theorem, so four of them are allowed, and five to the other side: intervals that are cut at
/// bounds, or that tell of nothing but these, hold more often. With 2,000 runs they held 93.9 to 96.8 % where they are not.
#[test]
fn intervals_of_pairs_hold_about_as_often_as_they_say() {
    let mut entropy = Replay::new(0x9a1f);
    let laws = [
        (gaussian as fn(f64) -> SumNoise, 100.0, 4000),
        (gaussian, 60.0, 1600),
        (gaussian, 20.0, 1600),
        (gaussian, 10.0, 150),
        (laplace, 40.0, 1600),
        (laplace, 10.0, 1600),
        (laplace, 20.0, 400),
    ];
    let (mut tight, mut cases) = (0, 0);
    for (law, width, rows) in laws {
        for (number, pairs) in data(rows).into_iter().enumerate() {
            let (sums, steps) = summed(&pairs);
            // Noise in the proportions of what one row adds.
            let fine = 2_f64.powi(20);
            let noises: Vec<SumNoise> = (0..6).map(|i| law(if i == 0 { width } else { width * fine })).collect();
            let times = 1000;
            let mut drawn = sums.map(|exact| vec![exact; times]);
            for (noise, drawn) in noises.iter().zip(&mut drawn) {
                noise.add(drawn, &mut entropy).unwrap();
            }
            for kind in KINDS {
                let needs = kind.needs();
                let of: [_; 6] = std::array::from_fn(|i| needs[i].then_some((&noises[i], steps[i])));
                let sums = PairSums::new(kind, SIDES, of, 0.95);
                let truth = truth(kind, &pairs);
                let (mut held, mut open) = (0, 0);
                let numbers = |run: usize| -> [f64; 6] {
                    std::array::from_fn(|i| if needs[i] { drawn[i][run] as f64 * steps[i] } else { 0.0 })
                };
                for numbers in (0..times).map(numbers) {
                    let cell = sums.cell(&numbers);
                    // What has no interval may be anything.
                    let ends = cell.low.zip(cell.high);
                    held += usize::from(ends.is_none_or(|(low, high)| low - 1e-9 <= truth && truth <= high + 1e-9));
                    let cut = ends.is_none_or(|(low, high)| match kind {
                        PairStatistic::Correlation => low <= -1.0 || high >= 1.0,
                        kind => kind.is_positive() && low <= 0.0,
                    });
                    open += usize::from(cut || !sums.is_clear(&numbers));
                }
                let (held, open) = (held as f64 / times as f64, open as f64 / times as f64);
                let case = format!("{kind:?} of data {number} with {width} on {rows} rows: {held} held, {open} open");
                assert!(held >= 0.95 - 0.03, "{case}");
                assert!(held <= 0.985 || open > 0.02, "{case}");
                tight += usize::from(open <= 0.02 && held <= 0.975);
                cases += 1;
            }
        }
    }
    assert!(2 * tight > cases, "{tight} of {cases} cases are tight");
}
