use super::*;
use std::collections::BTreeMap;
use whit_account::filter::{Currency, Filter};
use whit_account::ledger::Memory;
use whit_core::unit::{Domain, Rows, neighbours};
use whit_core::{Change, HeavyHitters, release};
use whit_noise::{Os, Replay};

const ADD: Change = Change::AddRemove;
const REPLACE: Change = Change::Replace;

fn bound(items: u32, cap: Option<u64>, touch: Touch) -> PresenceBound {
    PresenceBound::new(items, cap, touch, "user").unwrap()
}

/// Rows of user, item and nothing else.
fn pairs(rows: &Rows) -> Vec<(u64, u32)> {
    let users = rows.units(&Unit::user("user", REPLACE)).unwrap();
    users.into_iter().flatten().map(|row| (row[0] as u64, row[1] as u32)).collect()
}

fn squared(a: &[i64], b: &[i64]) -> u128 {
    a.iter().zip(b).map(|(x, y)| u128::from(x.abs_diff(*y)).pow(2)).sum()
}

/// Two users with any items: 2^4 sets of items each, of which all pairs are tried, with every neighbour of each.
fn furthest(moved: &Unit, items: u32, gather: &dyn Fn(Vec<(u64, u32)>) -> Vec<i64>) -> u128 {
    let domain = Domain {
        values: vec![vec![0, 1, 2], (0..i64::from(items)).collect()],
        rows_per_unit: if moved.kind() == whit_core::Kind::User { items as usize } else { 1 },
    };
    let set = |user: i64, bits: u32| (0..items).filter(move |i| bits >> i & 1 == 1).map(move |i| vec![user, i.into()]);
    let mut most = 0;
    for one in 0..1 << items {
        for two in [0, 1, (1 << items) - 1] {
            let rows = Rows::new(&["user", "item"], set(0, one).chain(set(1, two)).collect()).unwrap().with_places(12);
            let before = gather(pairs(&rows));
            for other in neighbours(moved, &rows, &domain).unwrap() {
                most = most.max(squared(&before, &gather(pairs(&other))));
            }
        }
    }
    most
}

#[test]
fn no_neighbour_moves_the_sums_further_than_stated() {
    for items in [1, 3, 4] {
        for cap in [None, Some(1), Some(2), Some(3), Some(100)] {
            let bound = bound(items, cap, Touch::Most(1));
            let gather = |pairs| bound.gather(pairs).unwrap().exact().to_vec();
            for unit in [
                Unit::event(ADD),
                Unit::event(REPLACE),
                Unit::element("user", "item"),
                Unit::label(&["user"], "item"),
                Unit::label(&[], "item"),
                Unit::user("user", ADD),
                Unit::user("user", REPLACE),
            ] {
                let (most, stated) = (furthest(&unit, items, &gather), bound.distance(&unit).unwrap());
                assert!((most as f64).sqrt() <= stated, "{unit}, {items} items, cap {cap:?}: √{most} > {stated}");
                if matches!(unit.kind(), whit_core::Kind::Element | whit_core::Kind::User) {
                    let near = (most as f64).sqrt() / stated;
                    // Floors lose a little, and where m does not divide d no user attains √min(2m, d).
                    assert!(near > 0.80, "{unit}, {items} items, cap {cap:?}: {stated} is more than √{most}");
                }
            }
        }
    }
}

/// The first m items of each user, as a cap that drops would have it.
fn dropped(pairs: Vec<(u64, u32)>, items: u32, cap: usize) -> Vec<i64> {
    let mut by_user: BTreeMap<u64, Vec<u32>> = BTreeMap::new();
    for (user, item) in pairs {
        by_user.entry(user).or_default().push(item);
    }
    let mut sums = vec![0; items as usize];
    for mut kept in by_user.into_values() {
        kept.sort_unstable();
        kept.dedup();
        kept.into_iter().take(cap).for_each(|item| sums[item as usize] += 1);
    }
    sums
}

/// The same brute force finds what is wrong with a cap that keeps the first m: an item goes, another moves in.
#[test]
fn a_cap_that_drops_items_is_caught() {
    let word = Unit::element("user", "item");
    let most = furthest(&word, 4, &|pairs| dropped(pairs, 4, 2));
    assert_eq!(most, 2, "√2 and not the claimed 1");
    let stated = bound(4, Some(2), Touch::Most(1)).sensitivity(&word).unwrap();
    assert!((most as f64).sqrt() > stated, "so the claim for a projection would be false for it");
    assert_eq!(
        furthest(&Unit::user("user", REPLACE), 4, &|pairs| dropped(pairs, 4, 2)),
        4,
        "the user's figure is right"
    );
}

/// Elements of two items, and elements of any: all pairs of sets that agree outside of the element.
#[test]
fn larger_elements_move_the_sums_no_further_than_stated() {
    let word = Unit::element("user", "cluster");
    for cap in [None, Some(1), Some(2), Some(3)] {
        for (block, touch) in [(2_u32, Touch::Most(2)), (3, Touch::Most(3)), (5, Touch::Any)] {
            let bound = bound(5, cap, touch);
            let sums =
                |bits: u32| bound.gather((0..5).filter(|i| bits >> i & 1 == 1).map(|i| (0, i)).collect()).unwrap();
            let stated = bound.distance(&word).unwrap();
            let mut most = 0;
            for (one, two) in (0..32_u32).flat_map(|one| (0..32).map(move |two| (one, two))) {
                if (one ^ two) >> block == 0 {
                    most = most.max(squared(sums(one).exact(), sums(two).exact()));
                }
            }
            assert!((most as f64).sqrt() <= stated, "cap {cap:?}, {touch:?}: √{most} > {stated}");
            assert!((most as f64).sqrt() > stated * 0.79, "cap {cap:?}, {touch:?}: {stated} is far above √{most}");
        }
    }
}

/// Every N of a large dictionary, for caps of all sizes, in integers; the part of the claim that is proved and not
/// computed (from 4m on) included.
#[test]
fn one_item_moves_no_more_than_stated_for_any_number_of_items() {
    for cap in [1, 2, 3, 10, 50, 999, 4_000, 70_000] {
        let bound = bound(100_000, Some(cap), Touch::Most(1));
        for count in 0..99_999_u64 {
            let (old, new) = (bound.weight(count.max(1)), bound.weight(count + 1));
            let moved = new * new + u128::from(count) * (old - new).pow(2);
            assert!(moved <= bound.flip, "{count} items, cap {cap}");
            assert!((u128::from(count) * old * old) <= u128::from(cap) << (2 * BITS), "a user's length");
        }
        assert_eq!(bound.flip, 1 << (2 * BITS), "and it is no more than one user");
    }
}

/// E8 and the reference collection's figures, with and without a small dictionary.
#[test]
fn users_move_as_far_as_the_core_says() {
    for (m, d) in [(5, 100), (50, 30), (50, 400_000), (1, 2)] {
        let known = HeavyHitters { items_per_user: m, dictionary: d.into() };
        let bound = bound(d, Some(m), Touch::Most(1));
        for change in [ADD, REPLACE] {
            let (stated, core) = (bound.sensitivity(&Unit::user("user", change)).unwrap(), known.user(change).l2);
            assert!((stated / core - 1.0).abs() < 1e-12, "{m} of {d}: {stated} and {core}");
        }
        assert_eq!(bound.sensitivity(&Unit::element("user", "item")), Some(known.element().l2));
    }
    assert_eq!(bound(9, None, Touch::Most(1)).sensitivity(&Unit::user("user", ADD)), Some(3.0), "all there are");
    assert_eq!(bound(9, None, Touch::Most(1)).sensitivity(&Unit::user("author", ADD)), None, "another column");
}

#[test]
fn noise_is_the_least_that_keeps_the_promise() {
    let promise = Calibration { epsilon: 1.0, delta: 1e-5 };
    let sigma =
        |unit: &Unit| Hitters::for_promise(bound(400_000, Some(50), Touch::Most(1)), unit, promise).unwrap().sigma();
    assert!((sigma(&Unit::element("user", "word")) - 3.730_631_6).abs() < 1e-6);
    // E8: ten times as much for a user, since √(2·50) = 10; √50 would be 26.4 and break the promise.
    assert!((sigma(&Unit::user("user", REPLACE)) - 37.306_316).abs() < 1e-5);
    let hitters =
        Hitters::for_promise(bound(9, Some(2), Touch::Most(1)), &Unit::element("user", "word"), promise).unwrap();
    let rung = |unit| Rung { unit, holds: 1, disjoint: false, slices: None };
    let epsilon =
        |unit| whit_account::epsilon(&hitters.cost(&rung(unit)), 1e-5, whit_account::Name::Gdp).unwrap().upper;
    let stated = epsilon(Unit::element("user", "word"));
    assert!(stated <= 1.0 && stated > 0.999_999, "{stated}");
    assert!(epsilon(Unit::user("user", REPLACE)) > 2.0);
    assert_eq!(hitters.cost(&rung(Unit::user("author", REPLACE))), Cost::Everything);
    for (epsilon, delta) in [(0.0, 1e-5), (1.0, 0.0), (f64::NAN, 0.1), (1.0, 1.0)] {
        let promise = Calibration { epsilon, delta };
        assert!(Hitters::for_promise(bound(9, None, Touch::Most(1)), &Unit::event(ADD), promise).is_err());
    }
}

#[test]
fn what_is_counted_is_users_and_not_rows() {
    let plain = bound(3, None, Touch::Most(1));
    let rows = vec![(7, 0), (7, 0), (8, 0), (8, 2), (7, 0)];
    assert_eq!(plain.gather(rows).unwrap().exact(), [2, 0, 1]);
    let capped = bound(4, Some(1), Touch::Most(1));
    let sums = capped.gather(vec![(1, 0), (1, 1), (1, 2), (1, 3), (2, 3)]).unwrap();
    assert_eq!(sums.exact(), [1 << 23, 1 << 23, 1 << 23, (1 << 23) + (1 << 24)], "four items, √(1/4) each");
    assert_eq!(plain.gather(vec![(1, 3)]).unwrap_err().to_string(), "item number 3 is not on the list of 3 items");
    assert!(!format!("{:?}", plain.gather(vec![(1, 1)]).unwrap()).contains('['), "sums are not for logs");
}

#[test]
fn sums_bounded_in_another_way_are_refused() {
    let hitters = Hitters::new(bound(3, Some(1), Touch::Most(1)), Ratio::from(5)).unwrap();
    let other = bound(3, Some(2), Touch::Most(1)).gather(vec![(1, 1)]).unwrap();
    assert!(hitters.sanitise(&other, &mut Replay::new(1)).is_err());
}

fn released(hitters: &Hitters, exact: &ProjectedSums<PresenceBound>) -> NoisyVector {
    let word = Unit::element("user", "word");
    let mut ledger = Memory::new().with_budget(word.clone(), Filter::new(1e6, 1e-6, Currency::Gaussian).unwrap());
    let rungs = [Rung { unit: word, holds: 1, disjoint: false, slices: None }];
    release(hitters, |_| Ok(exact), &rungs, &mut ledger, &mut Os).unwrap().value.value
}

/// An audit on 4,000 releases of each of two neighbours: the threshold test that is best for Gaussian noise, with Clopper–Pearson
/// style slack of 5 deviations (a false alarm in 10⁶). With the noise of a fifth of what the claim needs it must fail.
#[test]
fn the_claimed_loss_is_not_exceeded() {
    let loss = |sigma: Ratio| {
        let bound = bound(4, Some(2), Touch::Most(1));
        let hitters = Hitters::new(bound.clone(), sigma).unwrap();
        let (with, without) = (vec![(1, 0), (1, 1), (1, 2)], vec![(1, 0), (1, 1)]);
        let (with, without) = (bound.gather(with).unwrap(), bound.gather(without).unwrap());
        let direction: Vec<f64> = with.exact().iter().zip(without.exact()).map(|(a, b)| (a - b) as f64).collect();
        let middle: f64 = direction
            .iter()
            .zip(with.exact().iter().zip(without.exact()))
            .map(|(d, (a, b))| d * (a + b) as f64 / 2.0)
            .sum();
        let above = |exact: &ProjectedSums<PresenceBound>| {
            let hits = (0..4000).filter(|_| {
                let noisy = released(&hitters, exact).0;
                direction.iter().zip(&noisy).map(|(d, x)| d * *x as f64).sum::<f64>() > middle
            });
            hits.count() as f64 / 4000.0
        };
        let (p, q) = (above(&with), above(&without));
        let slack = 5.0 * (0.25_f64 / 4000.0).sqrt();
        // δ(ε) at ε = 0 is the total variation distance: what the test gains over guessing.
        (p - q - 2.0 * slack).max(0.0)
    };
    let claimed = whit_account::normal::gaussian_delta(0.0, 0.5); // σ = 2, Δ = 1
    assert!(loss(Ratio::from(2)) <= claimed, "the claim holds");
    assert!(loss("2/5".parse().unwrap()) > claimed, "and too little noise is found out");
}

#[test]
fn the_top_is_ranked_with_intervals_that_hold_for_all() {
    let bound = bound(1000, None, Touch::Most(1));
    let rows: Vec<(u64, u32)> =
        (0..500).flat_map(|user| (0..=(user / 50) as u32).map(move |item| (user, item))).collect();
    let exact = bound.gather(rows).unwrap();
    let hitters = Hitters::new(bound, Ratio::from(3)).unwrap();
    let noisy = released(&hitters, &exact);
    let top = hitters.ranking(&noisy, Some(5), 0.999_999, None);
    assert_eq!(top.rows.len(), 5);
    assert_eq!(top.rows[0].item, 0, "500 users against 450, at a deviation of 3");
    // One failure in a million runs.
    assert!(top.rows.iter().all(|row| (row.low..=row.high).contains(&(exact.exact()[row.item as usize] as f64))));
    assert!(top.rows.windows(2).all(|pair| pair[0].users >= pair[1].users));
    assert!(top.simultaneous && top.pairs == 10 && top.wrong < 1e-3);
    let all = hitters.ranking(&noisy, None, 0.95, None);
    assert_eq!((all.rows.len(), all.simultaneous), (1000, false));
    assert!(all.rows[0].high - all.rows[0].users < top.rows[0].high - top.rows[0].users);
    assert!(hitters.ranking(&noisy, Some(0), 0.95, None).rows.is_empty());
}

/// 4,000 items with enough users each; each interval by itself. A deviation is 0.35 %.
#[test]
fn each_interval_holds_its_count_as_often_as_stated() {
    let rows: Vec<(u64, u32)> = (0..4000).flat_map(|item| (0..40).map(move |user| (user, item))).collect();
    for cap in [None, Some(100)] {
        for epsilon in [0.1, 1.0, 10.0, 50.0] {
            let bound = bound(4000, cap, Touch::Most(1));
            let exact = bound.gather(rows.clone()).unwrap();
            let promise = Calibration { epsilon, delta: 1e-6 };
            let hitters = Hitters::for_promise(bound, &Unit::element("user", "word"), promise).unwrap();
            let steps = hitters.bound().steps() as f64;
            let all = hitters.ranking(&released(&hitters, &exact), None, 0.95, None);
            let (within, truth) = (hitters.within(0.95, 1), |item: u32| exact.exact()[item as usize] as f64 / steps);
            let share = |less: f64| {
                let held = all.rows.iter().filter(|row| (row.users - truth(row.item)).abs() <= within - less);
                held.count() as f64 / 4000.0
            };
            let stated =
                all.rows.iter().filter(|row| (row.low - 1e-9..=row.high + 1e-9).contains(&truth(row.item))).count();
            assert!(
                (stated as f64 / 4000.0 - share(-1e-9)).abs() < 1e-9,
                "what cannot be below 0 is cut there, and no less true"
            );
            assert!(share(-1e-9) >= 0.95 - 0.0175, "cap {cap:?}, ε = {epsilon}: {}", share(-1e-9));
            // A step less would be too little.
            assert!(share(-1e-9) <= 0.97 || share(1.0 / steps - 1e-9) < 0.95, "cap {cap:?}, ε = {epsilon}");
        }
    }
}

#[test]
fn a_stored_release_is_read_back_as_it_was() {
    for values in [vec![], vec![0], vec![1, -1, 63, -64, 64, i64::MAX, i64::MIN, 1 << 40]] {
        let noisy = NoisyVector(values);
        let bytes = noisy.to_bytes();
        assert_eq!(NoisyVector::from_bytes(&bytes), Some(noisy));
        assert_eq!(NoisyVector::from_bytes(&[&bytes[..], &[0]].concat()), None);
        for cut in 0..bytes.len() {
            assert_eq!(NoisyVector::from_bytes(&bytes[..cut]), None);
        }
    }
    assert_eq!(NoisyVector::from_bytes(&[0xff; 20]), None);
}
