use super::*;
use crate::unit::{Caps, Domain, Rows, Unit, neighbours};
use std::collections::BTreeMap;

const ADD: Change = Change::AddRemove;
const REPLACE: Change = Change::Replace;
const EMPTY: Support = Support::Fixed { may_be_empty: true };
const NEVER_EMPTY: Support = Support::Fixed { may_be_empty: false };

/// How far apart two integer vectors are: ℓ1 and the square of ℓ2, exactly.
fn apart(a: &[i64], b: &[i64]) -> (u64, u64) {
    a.iter().zip(b).map(|(x, y)| x.abs_diff(*y)).fold((0, 0), |(l1, square), gap| (l1 + gap, square + gap * gap))
}

fn furthest(left: &[Vec<i64>], right: &[Vec<i64>]) -> (u64, u64) {
    let pairs = left.iter().flat_map(|a| right.iter().map(|b| apart(a, b)));
    pairs.fold((0, 0), |(l1, square), next| (l1.max(next.0), square.max(next.1)))
}

/// Whether `stated` covers what was measured; with `tight`, also that it says no more than that, but for rounding.
fn check(stated: Sensitivity, (l1, square): (u64, u64), tight: bool, what: &str) {
    let (l1, square) = (l1 as f64, square as f64);
    assert!(stated.l1 >= l1, "{what}: ℓ1 {} is below {l1}", stated.l1);
    assert!(stated.l2 * stated.l2 >= square * (1.0 - 1e-15), "{what}: ℓ2 {} is below √{square}", stated.l2);
    if tight {
        assert!(stated.l1 == l1 || stated.l1.is_infinite(), "{what}: ℓ1 {} is not {l1}", stated.l1);
        assert!(stated.l2 <= square.sqrt() * (1.0 + 1e-15), "{what}: ℓ2 {} is above √{square}", stated.l2);
    }
}

fn vectors(values: &[i64], dimension: usize, keep: impl Fn(&[i64]) -> bool) -> Vec<Vec<i64>> {
    let grow = |all: Vec<Vec<i64>>, _| -> Vec<Vec<i64>> {
        all.iter().flat_map(|v| values.iter().map(move |&x| [v.as_slice(), &[x]].concat())).collect()
    };
    (0..dimension).fold(vec![vec![]], grow).into_iter().filter(|v| keep(v)).collect()
}

/// All vectors with at most `groups` coordinates in the range, and 0 elsewhere.
fn sparse(groups: usize, low: i64, high: i64, dimension: usize) -> Vec<Vec<i64>> {
    let mut values: Vec<i64> = (low..=high).chain([0]).collect();
    values.sort_unstable();
    values.dedup();
    vectors(&values, dimension, |v| v.iter().filter(|&&x| x != 0).count() <= groups)
}

#[test]
fn every_cell_of_the_first_line_is_what_brute_force_finds() {
    for (low, high) in (-2..=2).flat_map(|low| (low..=2).map(move |high| (low, high))) {
        for groups in 1..=2_u8 {
            let bound = |support| Bound::Coordinates { groups: groups.into(), low, high, support };
            for dimension in 1..=4_usize {
                let what = format!("{groups} groups of {dimension}, {low}..{high}");
                let all = sparse(groups.into(), low, high, dimension);
                let (room, twice) = (dimension >= groups.into(), dimension >= 2 * usize::from(groups));
                let added = furthest(&all, &[vec![0; dimension]]);
                let replaced = furthest(&all, &all);
                check(bound(Support::Any).sensitivity(ADD), added, room, &what);
                check(bound(Support::Any).sensitivity(REPLACE), replaced, twice, &what);
                if low >= 0 {
                    check(bound(Support::NonNegative).sensitivity(ADD), added, room, &what);
                    check(bound(Support::NonNegative).sensitivity(REPLACE), replaced, twice, &what);
                }
            }
            let range: Vec<i64> = (low..=high).collect();
            let (full, zero) = (vectors(&range, groups.into(), |_| true), vec![0; groups.into()]);
            let with_gaps = sparse(groups.into(), low, high, groups.into());
            let what = format!("{groups} known groups, {low}..{high}");
            check(bound(NEVER_EMPTY).sensitivity(ADD), furthest(&full, &[zero]), true, &what);
            check(bound(NEVER_EMPTY).sensitivity(REPLACE), furthest(&full, &full), true, &what);
            check(bound(EMPTY).sensitivity(REPLACE), furthest(&with_gaps, &with_gaps), true, &what);
            if groups == 1 && low >= 0 {
                let single = bound(Support::Single).validated().unwrap();
                check(single.sensitivity(REPLACE), furthest(&with_gaps, &with_gaps), true, &what);
            }
        }
    }
}

/// Radius 5, so that integer vectors such as (3, 4, 0) lie on the sphere.
#[test]
fn every_cell_of_the_second_line_is_what_brute_force_finds() {
    let bound = |support| Bound::ball(5.0, support).unwrap();
    let short = |v: &[i64]| v.iter().map(|x| x * x).sum::<i64>() <= 25;
    let (any, whole): (Vec<i64>, Vec<i64>) = ((-5..=5).collect(), (0..=5).collect());
    for dimension in 1..=3 {
        let (ball, orthant) = (vectors(&any, dimension, short), vectors(&whole, dimension, short));
        let zero = [vec![0; dimension]];
        check(bound(Support::Any).sensitivity(ADD), furthest(&ball, &zero), true, "ball, add-remove");
        check(bound(Support::Any).sensitivity(REPLACE), furthest(&ball, &ball), true, "ball, replace");
        check(bound(EMPTY).sensitivity(REPLACE), furthest(&ball, &ball), true, "ball on known coordinates, replace");
        check(bound(Support::NonNegative).sensitivity(ADD), furthest(&orthant, &zero), true, "orthant, add-remove");
        let replaced = furthest(&orthant, &orthant);
        check(bound(Support::NonNegative).sensitivity(REPLACE), replaced, dimension > 1, "orthant, replace");
        if dimension == 1 {
            check(bound(Support::Single).sensitivity(ADD), furthest(&orthant, &zero), true, "single, add-remove");
            check(bound(Support::Single).sensitivity(REPLACE), replaced, true, "single, replace");
            assert_eq!(furthest(&ball, &ball).0, 10, "ρ is not enough on one coordinate if signs may differ");
        }
    }
}

/// The sum over units of what each contributes: by group, the sum of its rows' values, clamped, in the first L0 groups.
fn bounded_sum(rows: &Rows, unit: &Unit, group: usize, bound: &Bound) -> Vec<i64> {
    let &Bound::Coordinates { groups, low, high, .. } = bound else { panic!("only ranges are tried here") };
    let mut sum = vec![0; 3];
    for piece in rows.units(unit).unwrap() {
        let mut by_group: BTreeMap<i64, i64> = BTreeMap::new();
        for row in &piece {
            *by_group.entry(row[group]).or_default() += row[2];
        }
        for (group, value) in by_group.into_iter().take(groups as usize) {
            sum[group as usize] += value.clamp(low, high);
        }
    }
    sum
}

const COLUMNS: [&str; 4] = ["user", "element", "value", "shop"];

fn rows(rows: &[[i64; 4]]) -> Rows {
    Rows::new(&COLUMNS, rows.iter().map(|row| row.to_vec()).collect()).unwrap().with_places(3)
}

fn starts() -> Vec<Rows> {
    vec![
        rows(&[]),
        rows(&[[0, 0, 2, 0]]),
        rows(&[[0, 0, 2, 0], [0, 1, 2, 1]]),
        rows(&[[0, 0, -2, 0], [0, 0, -2, 1]]),
        rows(&[[0, 0, -2, 0], [0, 0, -2, 0]]),
        rows(&[[0, 0, 1, 0], [0, 1, -2, 0], [1, 2, 2, 0]]),
    ]
}

/// The furthest that any neighbour under `moved` moves the sum of what each `bounded` unit contributes.
fn moved_by(moved: &Unit, bounded: &Unit, group: usize, bound: &Bound, most: usize) -> (u64, u64) {
    let values = vec![vec![0, 1], vec![0, 1, 2], vec![-2, 1, 2], vec![0, 1, 2]];
    let domain = Domain { values, rows_per_unit: 2 };
    let within = |rows: &Rows| {
        let elements = rows.units(&Unit::element("user", "element")).unwrap();
        (0..2).all(|user| elements.iter().filter(|piece| piece[0][0] == user).count() <= most)
    };
    let mut furthest = (0, 0);
    for start in starts().iter().filter(|rows| within(rows)) {
        let before = bounded_sum(start, bounded, group, bound);
        for other in neighbours(moved, start, &domain).unwrap().iter().filter(|rows| within(rows)) {
            let (l1, square) = apart(&before, &bounded_sum(other, bounded, group, bound));
            furthest = (furthest.0.max(l1), furthest.1.max(square));
        }
    }
    furthest
}

#[test]
fn no_neighbour_of_any_unit_moves_a_bounded_sum_further_than_stated() {
    let (element, shop) = (1, 3);
    let own = Unit::element("user", "element");
    let any = |groups, low, high| Bound::coordinates(groups, low, high, Support::Any).unwrap();
    for (unit, group, bound, tight) in [
        (Unit::event(ADD), shop, any(1, -2, 2), true),
        (Unit::event(REPLACE), shop, any(1, -2, 2), true),
        (Unit::user("user", ADD), shop, any(2, -2, 2), true),
        (Unit::user("user", REPLACE), shop, any(1, -2, 2), true),
        (Unit::user("user", REPLACE), shop, any(2, -2, 2), false), // three shops have no room for two and two others
        (Unit::user("user", REPLACE), shop, any(2, 0, 2), false),
        (own.clone(), shop, any(1, -2, 2), true),
        (own.clone(), shop, Bound::coordinates(1, 0, 2, Support::NonNegative).unwrap(), true),
        (own.clone(), element, Bound::coordinates(1, -2, 2, EMPTY).unwrap(), true),
        (own.clone(), element, Bound::coordinates(1, 0, 2, Support::Single).unwrap(), true),
        (own, element, Bound::coordinates(1, 1, 2, EMPTY).unwrap(), true),
        (Unit::label(&[], "value"), shop, Bound::coordinates(1, 1, 2, NEVER_EMPTY).unwrap(), true),
        (Unit::label(&["user"], "value"), shop, Bound::coordinates(2, -2, 2, NEVER_EMPTY).unwrap(), true),
        (Unit::feature(&[], &["shop"]), shop, Bound::coordinates(1, -2, 2, NEVER_EMPTY).unwrap(), true),
        (Unit::feature(&[], &["user"]), shop, any(1, -2, 2), true),
    ] {
        let what = format!("{unit}, by {}, {bound:?}", COLUMNS[group]);
        check(bound.sensitivity(unit.change()), moved_by(&unit, &unit, group, &bound, 3), tight, &what);
    }
}

#[test]
fn no_neighbour_on_a_coarser_rung_moves_the_sum_further_than_stated() {
    let (by_element, by_shop) = (1, 3);
    // With one element a user the figures are attained; with two, three groups have no room for the worst.
    for (most, change) in [(1, ADD), (1, REPLACE), (2, ADD), (2, REPLACE)] {
        let caps = Caps { elements_per_user: Some(most as u64), rows_per_element: Some(2) };
        let user = Unit::user("user", change);
        for (protected, group, bound) in [
            (Unit::element("user", "element"), by_element, Bound::coordinates(1, 0, 2, Support::Single)),
            (Unit::element("user", "element"), by_element, Bound::coordinates(1, -2, 2, EMPTY)),
            (Unit::element("user", "element"), by_shop, Bound::coordinates(1, 0, 2, Support::NonNegative)),
            (Unit::element("user", "element"), by_shop, Bound::coordinates(1, -2, 2, Support::Any)),
            (Unit::event(ADD), by_shop, Bound::coordinates(1, -2, 2, Support::Any)),
            (Unit::event(REPLACE), by_shop, Bound::coordinates(1, -2, 2, Support::Any)),
        ] {
            let bound = bound.unwrap();
            let mut ladder = Ladder::new(vec![protected.clone(), user.clone()], caps, protected.kind()).unwrap();
            if group == by_element {
                ladder = ladder.element_wise().unwrap();
            }
            let measured = moved_by(&user, &protected, group, &bound, most);
            let (stated, plain) = (bound.on(&ladder)[1], bound.sensitivity(protected.change()).at(&ladder.rungs()[1]));
            let what = format!("{user} over {protected}, by {}, {bound:?}", COLUMNS[group]);
            check(stated, measured, most == 1, &what);
            assert!(stated.l1 <= plain.l1 && stated.l2 <= plain.l2, "{what}: knowing more never costs more");
        }
    }
}

/// One user has elements 0..k and then k..2k: an element-wise count moves by √(2k), and √k would be a false promise.
#[test]
fn a_user_whose_elements_become_others_moves_twice_as_many() {
    for k in 1..=4_u8 {
        let caps = Caps { elements_per_user: Some(k.into()), rows_per_element: None };
        let units = vec![Unit::element("user", "element"), Unit::user("user", REPLACE)];
        let ladder = Ladder::new(units, caps, Kind::Element).unwrap().element_wise().unwrap();
        let count = Bound::coordinates(1, 0, 1, Support::Single).unwrap();
        let has = |range: std::ops::Range<u8>| (0..2 * k).map(|e| i64::from(range.contains(&e))).collect::<Vec<_>>();
        let measured = apart(&has(0..k), &has(k..2 * k));
        assert!(measured.1 > u64::from(k), "√k is violated");
        check(count.on(&ladder)[1], measured, true, "on");
        check(count.sensitivity(REPLACE).at(&ladder.rungs()[1]), measured, true, "at");
    }
}

/// E7. The paper's figure is ρ; (12, 0) and (0, 12), scaled to length 10, are 14.142 apart.
#[test]
fn blocks_of_two_items_are_further_apart_than_the_radius() {
    let scale = |v: [f64; 2]| v.map(|x| x * (10.0 / v[0].hypot(v[1])).min(1.0));
    let (a, b) = (scale([12.0, 0.0]), scale([0.0, 12.0]));
    let gap = (a[0] - b[0]).hypot(a[1] - b[1]);
    let (paper, ours) = (10.0, Clusters::new(vec![2], 10.0).unwrap().element(REPLACE).l2);
    assert!(gap > paper + 4.0, "the paper's figure is violated");
    assert!(gap <= ours && ours < 14.142_14);
}

/// The numbers of `histogram_noise_std` in the reference collection: sizes, ρ, element and user, replace and add-remove.
#[test]
fn clustered_histograms_move_as_far_as_the_reference_says() {
    let reference: [(&[u64], f64, [f64; 4]); 4] = [
        (&[1, 1, 1, 1], 5.0, [5.0, 5.0, 10.0, 10.0]),
        (&[2, 2], 5.0, [7.071_067_811_865_475_5, 5.0, 10.0, 7.071_067_811_865_475_5]),
        (&[1, 3], 2.0, [2.828_427_124_746_190_3, 2.0, 3.464_101_615_137_754_4, 2.828_427_124_746_190_3]),
        (&[4], 5.0, [7.071_067_811_865_475_5, 5.0, 7.071_067_811_865_475_5, 5.0]),
    ];
    for (sizes, radius, expected) in reference {
        let clusters = Clusters::new(sizes.to_vec(), radius).unwrap();
        let stated = [clusters.element(REPLACE), clusters.element(ADD), clusters.user(REPLACE), clusters.user(ADD)];
        for (stated, expected) in stated.iter().zip(expected) {
            assert!((stated.l2 / expected - 1.0).abs() < 1e-15, "{sizes:?}: {} and not {expected}", stated.l2);
        }
    }
    assert_eq!(Clusters::new(vec![1, 3], 2.0).unwrap().block(0, REPLACE).map(|s| s.l2), Some(2.0));
}

#[test]
fn clustered_histograms_move_as_far_as_brute_force_finds() {
    let whole: Vec<i64> = (0..=5).collect();
    for sizes in [vec![1], vec![1, 1], vec![2], vec![1, 2], vec![3]] {
        let clusters = Clusters::new(sizes.iter().map(|&s| s as u64).collect(), 5.0).unwrap();
        let short = |v: &[i64]| {
            let mut rest = v;
            sizes.iter().all(|&size| {
                let (block, others) = rest.split_at(size);
                rest = others;
                block.iter().map(|x| x * x).sum::<i64>() <= 25
            })
        };
        let dimension = sizes.iter().sum();
        let users = vectors(&whole, dimension, short);
        for (change, others) in [(ADD, vec![vec![0; dimension]]), (REPLACE, users.clone())] {
            let (measured, stated) = (furthest(&users, &others), clusters.user(change));
            check(stated, measured, false, "clusters");
            assert!((stated.l2 * stated.l2 / measured.1 as f64 - 1.0).abs() < 1e-14, "{sizes:?}: ℓ2 is attained");
            assert!(stated.l1 < 1.24 * measured.0 as f64, "{sizes:?}: ℓ1 is nearly attained, as far as integers go");
        }
    }
}

/// E8: √m is violated by a user who swaps all items; √(2m) holds, and √d where the dictionary is small.
#[test]
fn heavy_hitters_move_by_twice_the_items_of_a_user() {
    // `heavy_hitter_indicator_sensitivity` of the reference collection: m, d, user under replace, user under add-remove.
    for (items_per_user, dictionary, replaced, added) in [
        (5, 100, 3.162_277_660_168_379_5, 2.236_067_977_499_79),
        (50, 30, 5.477_225_575_051_661, 5.477_225_575_051_661),
    ] {
        let hitters = HeavyHitters { items_per_user, dictionary };
        assert!((hitters.user(REPLACE).l2 / replaced - 1.0).abs() < 1e-15);
        assert!((hitters.user(ADD).l2 / added - 1.0).abs() < 1e-15);
        assert_eq!(hitters.element().l2, 1.0);
    }
    for (most, dimension) in (1..=3).flat_map(|m| (1..=6).map(move |d| (m, d))) {
        let hitters = HeavyHitters { items_per_user: most as u64, dictionary: dimension as u64 };
        let users = sparse(most, 0, 1, dimension);
        let replaced = furthest(&users, &users);
        check(hitters.user(ADD), furthest(&users, &[vec![0; dimension]]), true, "add-remove");
        check(hitters.user(REPLACE), replaced, true, "replace");
        let caps = Caps { elements_per_user: Some(most as u64), rows_per_element: None };
        let units = vec![Unit::element("user", "word"), Unit::user("user", REPLACE)];
        let ladder = Ladder::new(units, caps, Kind::Element).unwrap().element_wise().unwrap();
        let ladder = ladder.with_elements(dimension as u64).unwrap();
        let count = Bound::coordinates(1, 0, 1, Support::Single).unwrap();
        assert_eq!(count.on(&ladder)[1], hitters.user(REPLACE), "the ladder knows it too");
        // Signs, and elements that are never empty: all users with at most so many elements, each −2..1 or 1..3.
        for (low, high, support) in [(-2, 1, EMPTY), (1, 3, NEVER_EMPTY), (-1, 3, EMPTY)] {
            let users = sparse(most, low, high, dimension.min(4));
            let stated = Bound::coordinates(1, low, high, support).unwrap().on(&ladder)[1];
            check(stated, furthest(&users, &users), false, "element-wise sums");
        }
        if dimension > most {
            assert!(replaced.1 > most as u64, "the paper's √m is violated");
        }
    }
}

#[test]
fn a_bound_that_makes_no_sense_is_refused() {
    assert_eq!(Bound::coordinates(0, 0, 1, Support::Any), Err(BoundError::NoGroups));
    assert_eq!(
        Bound::coordinates(1, 3, 1, Support::Any).unwrap_err().to_string(),
        "the range 3..1 is empty: give the smaller end first"
    );
    assert!(Bound::coordinates(1, -1, 1, Support::NonNegative).is_err());
    assert!(Bound::coordinates(2, 0, 1, Support::Single).is_err());
    for radius in [-1.0, f64::NAN, f64::INFINITY] {
        assert!(Bound::ball(radius, Support::Any).is_err());
        assert_eq!(Bound::Ball { radius, support: Support::Single }.sensitivity(REPLACE).l2, f64::INFINITY);
    }
    assert!(Clusters::new(vec![2, 0], 1.0).is_err() && Clusters::new(vec![], 1.0).is_err());
}

#[test]
fn rounding_goes_up_and_nothing_wraps() {
    let huge = Bound::coordinates(u64::MAX, i64::MIN, i64::MAX, Support::Any).unwrap().sensitivity(REPLACE);
    assert!(huge.l1 >= 3.4e38 && huge.l2 >= 7.9e28 && huge.l1.is_finite());
    let nothing = Bound::ball(0.0, Support::Any).unwrap().sensitivity(REPLACE);
    assert_eq!(nothing, Sensitivity { l1: 0.0, l2: 0.0 });
}
