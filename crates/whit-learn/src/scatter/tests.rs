//! Whether units ever move a sum farther than the claim, and whether the noise is what it should be.

use super::*;
use crate::trial::{Endless, normal, sanitised, uniform};
use proptest::prelude::*;
use whit_core::unit::{Caps, Kind};
use whit_core::{Change, Unit, release};
use whit_noise::Replay;
use whit_noise::round::{quotient_down, ratio_down, whole_up};

fn scatter(dimension: usize) -> Scatter {
    Scatter::new(dimension, 2.0, "1/2".parse().unwrap()).unwrap()
}

fn rung(change: Change, holds: u64) -> Rung {
    Rung { unit: Unit::user("id", change), holds, disjoint: false, slices: None }
}

fn of_unit(scatter: &Scatter, rows: &[f64]) -> Vec<i64> {
    let mut sum = scatter.start();
    sum.add(rows).unwrap();
    sum.finished()
}

/// The squared distance of two triangles, each coordinate over its own deviation: in integers, times 5741².
fn apart(a: &[i64], b: &[i64], d: usize) -> u128 {
    let (mut squared, mut at) = (0, 0);
    for i in 0..d {
        for j in i..d {
            let difference = u128::from(a[at].abs_diff(b[at]));
            let weight = if i == j { RATIO.0 } else { RATIO.1 };
            squared += (weight * difference).pow(2);
            at += 1;
        }
    }
    squared
}

/// R⁴ in the same integers.
fn radius_squared_twice(bits: u32) -> u128 {
    RATIO.0.pow(2) << (4 * bits)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]
    #[test]
    fn no_pair_of_units_is_farther_apart_than_claimed(
        d in 1_usize..5, a in proptest::collection::vec(-3_f64..3.0, 8), b in proptest::collection::vec(-3_f64..3.0, 8),
        size in -8..8_i32, one in 1_usize..3, other in 0_usize..3
    ) {
        let scatter = scatter(d);
        let scaled = |x: &[f64], rows: usize| -> Vec<f64> {
            x.iter().cycle().take(rows * d).map(|x| x * 10_f64.powi(size)).collect()
        };
        let (x, y) = (of_unit(&scatter, &scaled(&a, one)), of_unit(&scatter, &scaled(&b, other)));
        prop_assert!(apart(&x, &vec![0; x.len()], d) <= radius_squared_twice(18));
        prop_assert!(apart(&x, &y, d) <= 2 * radius_squared_twice(18));
    }

    #[test]
    fn rows_of_any_size_land_in_the_ball(
        rows in proptest::collection::vec(proptest::num::f64::ANY, 1..6), bits in 8_u32..=26, radius in 1e-3_f64..1e3
    ) {
        let mut sum = Scatter::with_resolution(1, radius, Ratio::ONE, bits).unwrap().start();
        sum.add(&rows).unwrap();
        let total = sum.finished()[0];
        prop_assert!((0..=1_i64 << (2 * bits)).contains(&total));
        if rows.iter().any(|x| !x.is_finite()) {
            prop_assert_eq!(total, 0);
        } else if rows.iter().any(|x| x.abs() >= radius) {
            prop_assert!(total as f64 >= 0.9 * 4_f64.powi(bits as i32), "a long unit keeps the length that it may have");
        }
    }
}

/// Hill climbing over pairs of rows, from random starts: it comes within 1 % of the claim and never passes it.
#[test]
fn the_claim_is_attained() {
    let mut entropy = Replay::new(0x5ca7);
    for d in [2, 3, 6] {
        let scatter = scatter(d);
        let distance = |pair: &[f64]| {
            let (x, y) = (of_unit(&scatter, &pair[..d]), of_unit(&scatter, &pair[d..]));
            (apart(&x, &y, d) as f64 / radius_squared_twice(18) as f64).sqrt()
        };
        let mut worst = 0.0_f64;
        for _ in 0..5 {
            let mut pair: Vec<f64> = (0..2 * d).map(|_| normal(&mut entropy)).collect();
            let mut best = distance(&pair);
            for round in 0..3000 {
                let width = 0.998_f64.powi(round);
                let next: Vec<f64> = pair.iter().map(|x| x + width * normal(&mut entropy)).collect();
                let found = distance(&next);
                if found > best {
                    (pair, best) = (next, found);
                }
            }
            worst = worst.max(best);
        }
        assert!(worst <= 2_f64.sqrt(), "{d} columns: {worst}");
        assert!(worst >= 0.99 * 2_f64.sqrt(), "{d} columns: only {worst}");
        let axis = |i: usize| (0..d).map(|j| if i == j { 2.0 } else { 0.0 }).collect::<Vec<f64>>();
        let (first, second) = (of_unit(&scatter, &axis(0)), of_unit(&scatter, &axis(1)));
        assert_eq!(apart(&first, &second, d), 2 * radius_squared_twice(18), "two axes attain √2·R² exactly");
        assert_eq!(apart(&first, &vec![0; first.len()], d), radius_squared_twice(18), "and one R²");
    }
}

#[test]
fn costs_follow_the_change_and_the_ladder() {
    let noise = |cost: Cost| if let Cost::Gaussian { noise } = cost { noise } else { panic!("Gaussian") };
    let scatter = Scatter::new(3, 5.0, "6".parse().unwrap()).unwrap();
    assert_eq!(noise(scatter.cost(&rung(Change::AddRemove, 1))), 6.0);
    assert_eq!(noise(scatter.cost(&rung(Change::AddRemove, 3))), 2.0);
    let replaced = noise(scatter.cost(&rung(Change::Replace, 1)));
    assert!(replaced * 2_f64.sqrt() <= 6.0 && replaced > 4.242_640);
    assert_eq!(scatter.cost(&rung(Change::Replace, 0)), Cost::Nothing);
    let caps = Caps { elements_per_user: Some(4), rows_per_element: None };
    let units = vec![Unit::element("author", "word"), Unit::user("author", Change::Replace)];
    let ladder = Ladder::new(units, caps, Kind::Element).unwrap().element_wise().unwrap();
    let alone = noise(scatter.cost(&ladder.rungs()[1]));
    let known = noise(scatter.clone().on(&ladder).cost(&ladder.rungs()[1]));
    assert!(
        (known * 4.0 - replaced).abs() < 1e-12,
        "four words make room for four: 4·√2·R², with no root of disjointness"
    );
    assert!((alone * 8.0 - replaced).abs() < 1e-12, "a rung on its own counts all eight");
}

/// The price is `noise` over the distance, each rounded the dear way, on every lattice; and neither noise by itself is too small for its part of the matrix.
#[test]
fn both_noises_are_priced_for_what_units_move() {
    let noise = |cost: Cost| if let Cost::Gaussian { noise } = cost { noise } else { panic!("Gaussian") };
    // From 14 bits on squares of distances are beyond single steps, and nothing is gained by their being whole.
    for (text, bits) in [("3", 18), ("1/3", 14), ("7.25", 26), ("0.000123", 18), ("123456789/1000", 15)] {
        let stated: Ratio = text.parse().unwrap();
        let scatter = Scatter::with_resolution(3, 0.7, stated, bits).unwrap();
        for holds in [1, 2, 3, 7, 10, 1 << 40, u64::MAX] {
            for (change, one) in [(Change::AddRemove, 1.0), (Change::Replace, std::f64::consts::SQRT_2)] {
                for disjoint in [false, true] {
                    let rung = Rung { disjoint, ..rung(change, holds) };
                    let distance = product_up(whole_up(holds.into()), one);
                    let found = noise(scatter.cost(&rung));
                    assert_eq!(found, quotient_down(ratio_down(&stated), distance), "{text}, {holds} {change:?}");
                    let off = noise(scatter.off_diagonal.cost(&Scatter::shared(&rung)));
                    assert!((off / found - 1.0).abs() < 1e-14, "{off} {found}");
                }
            }
        }
    }
}

/// 300 columns, nothing but noise: 44,850 entries off the diagonal give their variance to 0.7 % (one deviation), so
/// five deviations are 3.5 %; the 300 on the diagonal to 8 %. Deviation σ everywhere would be off by a factor of 2.
#[test]
fn noise_off_the_diagonal_has_half_the_variance() {
    let scatter = scatter(300);
    let matrix = scatter.matrix(&sanitised(&scatter, &scatter.start(), 3)).unwrap();
    let entry = |i: usize, j: usize| matrix[i * 300 + j] / scatter.deviation();
    let mut sums = [0.0; 2];
    for i in 0..300 {
        sums[0] += entry(i, i).powi(2) / 300.0;
        for j in i + 1..300 {
            assert_eq!(matrix[i * 300 + j].to_bits(), matrix[j * 300 + i].to_bits(), "mirrored");
            sums[1] += entry(i, j).powi(2) / 44_850.0;
        }
    }
    assert!((sums[0] - 1.0).abs() < 0.41, "diagonal {}", sums[0]);
    assert!((sums[1] - 0.5).abs() < 0.0175, "off the diagonal {}", sums[1]);
}

#[test]
fn sums_are_exact_in_any_order_and_grouping() {
    let scatter = Scatter::with_resolution(3, 1.0, Ratio::ONE, 26).unwrap(); // carried after every other unit
    let mut entropy = Replay::new(8);
    let units: Vec<Vec<f64>> =
        (0..500).map(|i| (0..3 * (i % 4)).map(|_| uniform(&mut entropy) - 0.5).collect()).collect();
    let (mut whole, mut left, mut right) = (scatter.start(), scatter.start(), scatter.start());
    let mut slow = vec![0_i64; 6];
    for (i, unit) in units.iter().enumerate() {
        whole.add(unit).unwrap();
        if i % 3 == 0 {
            left.add(unit).unwrap();
        } else {
            right.add(unit).unwrap();
        }
        slow.iter_mut().zip(of_unit(&scatter, unit)).for_each(|(sum, x)| *sum += x);
    }
    right.merge(left).unwrap();
    assert_eq!(whole.finished(), slow);
    assert_eq!(right.finished(), slow);
    let other = Scatter::new(3, 1.0, Ratio::ONE).unwrap().start();
    assert_eq!(scatter.start().merge(other), Err(Error::Different));
}

#[test]
fn what_cannot_be_meant_is_refused() {
    assert!(Scatter::new(0, 1.0, Ratio::ONE).is_err());
    assert!(Scatter::new(2, f64::INFINITY, Ratio::ONE).is_err());
    assert!(Scatter::new(2, 1.0, Ratio::ZERO).is_err());
    assert!(Scatter::with_resolution(2, 1.0, Ratio::ONE, 30).is_err_and(|error| !error.hint().is_empty()));
    assert!(scatter(2).start().add(&[1.0, 2.0, 3.0]).is_err());
    assert!(scatter(2).matrix(&[1, 2]).is_err());
    let strange = Scatter::new(2, 3.0, Ratio::ONE).unwrap().start();
    let rungs = [rung(Change::AddRemove, 1)];
    let released = release(&scatter(2), |_| Ok(&strange), &rungs, &mut Endless, &mut whit_noise::Os);
    assert!(released.is_err(), "a sum that was bounded by another radius is not released");
}

#[test]
fn a_triangle_comes_back_from_its_bytes() {
    use whit_core::Persist;
    let triangle = vec![3_i64, -7, i64::MAX, 0, i64::MIN, 1];
    let bytes = triangle.to_bytes();
    assert_eq!(Scatter::read(&bytes).unwrap(), triangle);
    for cut in 0..bytes.len() {
        assert!(Scatter::read(&bytes[..cut]).is_err(), "{cut}");
    }
}

/// 1,024 units of full length fill 62 bits at the finest lattice. More of them stay there, one by one or merged, and nothing fails.
#[test]
fn sums_beyond_the_lattice_stay_at_its_end() {
    let scatter = Scatter::with_resolution(1, 1.0, Ratio::ONE, 26).unwrap();
    let of = |units: usize| {
        let mut sum = scatter.start();
        (0..units).for_each(|_| sum.add(&[1.0]).unwrap());
        sum
    };
    assert_eq!(of(1_000).finished(), [1_000 << 52]);
    assert_eq!(of(3_000).finished(), [1 << 62]);
    let mut both = of(1_000);
    both.merge(of(1_000)).unwrap();
    assert_eq!(both.clone().finished(), [1 << 62]);
    assert!(scatter.noisy(&both, &mut Replay::new(3)).is_ok());
    for radius in [0.0, -1.0, 1e-40, 1e40, f64::NAN, f64::INFINITY] {
        assert!(matches!(Scatter::new(1, radius, Ratio::ONE), Err(Error::Radius(_))), "{radius}");
    }
}
