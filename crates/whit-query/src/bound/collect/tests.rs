use super::super::sums::{MOST, saturated};
use super::super::{Addend, Layout};
use super::*;
use datafusion::arrow::array::{Int64Array, StringArray};
use datafusion::arrow::datatypes::{Field, SchemaRef};
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// A row: user, element, key, inner value, what it adds.
type Row = (i64, u8, i64, i64, Option<i64>);

fn schema(layout: Layout) -> SchemaRef {
    let mut fields = vec![Field::new("user", DataType::Int64, true)];
    if layout.element {
        fields.push(Field::new("element", DataType::Utf8, true));
    }
    fields.extend((0..layout.keys).map(|i| Field::new(format!("k{i}"), DataType::Int64, true)));
    if layout.inner {
        fields.push(Field::new("inner", DataType::Int64, true));
    }
    fields.push(Field::new("m", DataType::Int64, true));
    Arc::new(Schema::new(fields))
}

fn rules(layout: Layout) -> Rules {
    let addends = vec![Addend { column: Some(0), each: 1, limit: UnitLimit { low: 0, high: 3 } }];
    Rules {
        layout,
        elements_per_user: None,
        groups_per_unit: None,
        rows_per_group: u64::MAX,
        rows_in_all: u64::MAX,
        rows_kept: Some([50, 50]),
        observed: false,
        inner: Inner::None,
        addends,
        seed: 7,
    }
}

fn batch(rows: &[Row], layout: Layout) -> RecordBatch {
    let numbers =
        |of: &dyn Fn(&Row) -> Option<i64>| -> ArrayRef { Arc::new(rows.iter().map(of).collect::<Int64Array>()) };
    let mut columns = vec![numbers(&|row| Some(row.0))];
    if layout.element {
        columns.push(Arc::new(rows.iter().map(|row| Some(format!("e{}", row.1))).collect::<StringArray>()));
    }
    if layout.keys > 0 {
        columns.push(numbers(&|row| Some(row.2)));
    }
    if layout.inner {
        columns.push(numbers(&|row| Some(row.3)));
    }
    columns.push(numbers(&|row| row.4));
    RecordBatch::try_new(schema(layout), columns).unwrap()
}

fn collect(rules: &Rules, batches: &[&[Row]]) -> BoundedSums {
    let mut collector = Collector::new(rules.clone(), &schema(rules.layout)).unwrap();
    for rows in batches {
        collector.push(&batch(rows, rules.layout)).unwrap();
    }
    collector.finish().unwrap()
}

/// Sums by their keys and inner values.
fn table(sums: &BoundedSums) -> BTreeMap<Vec<i64>, Vec<i64>> {
    let key = |g: usize| sums.keys.iter().map(|key| key.as_primitive::<Int64Type>().value(g)).collect();
    (0..sums.groups).map(|g| (key(g), sums.values.iter().map(|values| saturated(values[g])).collect())).collect()
}

const BY_USER: Layout = Layout { user: true, element: false, keys: 1, inner: false };
const BY_ELEMENT: Layout = Layout { user: true, element: true, keys: 1, inner: false };
const WITHIN: Layout = Layout { user: true, element: false, keys: 1, inner: true };

#[test]
fn each_unit_is_clamped_in_each_group() {
    let rows = [
        (1, 0, 10, 0, Some(2)),
        (1, 0, 11, 0, Some(9)),
        (2, 0, 10, 0, Some(5)),
        (3, 0, 11, 0, Some(-4)),
        (4, 0, 11, 0, None),
    ];
    let sums = table(&collect(&rules(BY_USER), &[&rows]));
    assert_eq!(sums, BTreeMap::from([(vec![10], vec![5, 2]), (vec![11], vec![3, 3])]));
}

#[test]
fn no_user_keeps_more_groups_than_allowed_and_the_choice_is_the_users_own() {
    let crowd: Vec<Row> = (0..50).map(|key| (1, 0, key, 0, Some(1))).collect();
    let mut limited = rules(BY_USER);
    limited.groups_per_unit = Some(4);
    let alone = table(&collect(&limited, &[&crowd]));
    assert_eq!(alone.len(), 4);
    let others: Vec<Row> = (0..30).map(|i| (2 + i / 3, 0, i, 0, Some(1))).collect();
    let together = table(&collect(&limited, &[&others, &crowd]));
    let of_others = table(&collect(&limited, &[&others]));
    for (key, sum) in &together {
        let expected = alone.get(key).map_or(0, |s| s[0]) + of_others.get(key).map_or(0, |s| s[0]);
        assert_eq!(sum[0], expected, "another user's rows changed what this user keeps");
    }
}

#[test]
fn a_user_keeps_so_many_elements_and_is_counted_once_in_a_group() {
    let rows: Vec<Row> = (0..20).map(|element| (1, element, 5, 0, Some(1))).collect();
    let mut limited = rules(BY_ELEMENT);
    limited.elements_per_user = Some(3);
    assert_eq!(table(&collect(&limited, &[&rows])), BTreeMap::from([(vec![5], vec![3, 1])]));
}

#[test]
fn different_values_are_counted_over_units_and_each_unit_brings_a_few() {
    let mut limited = rules(WITHIN);
    limited.inner = Inner::Distinct { most: 2 };
    let rows: Vec<Row> = (0..10)
        .map(|value| (1, 0, 5, value, Some(1)))
        .chain([(2, 0, 5, 3, Some(1)), (3, 0, 5, 3, Some(1)), (3, 0, 6, 8, Some(1))])
        .collect();
    let counted = table(&collect(&limited, &[&rows]).count_values().unwrap());
    assert!((2..=3).contains(&counted[&vec![5]][0]), "user 1 brings two, users 2 and 3 the same one");
    assert_eq!(counted[&vec![6]], [1]);
}

#[test]
fn weights_of_one_unit_never_add_up_to_more_than_its_rows() {
    for (counts, rows) in [(vec![3_i64, 4, 5], 5_u64), (vec![1, 1], 5), (vec![100_000, 1, 1], 7), (vec![2, 2, 2, 1], 3)]
    {
        let repeated = counts
            .iter()
            .enumerate()
            .flat_map(|(value, &count)| std::iter::repeat_n((1, 0, 5, value as i64, Some(1)), count as usize));
        let mut shared = rules(WITHIN);
        (shared.inner, shared.rows_per_group) = (Inner::Weights { each: 1024 }, rows);
        let total: i128 = collect(&shared, &[&repeated.collect::<Vec<Row>>()]).values[0].iter().sum();
        let expected = i128::from(counts.iter().sum::<i64>().min(rows as i64) * 1024);
        assert!(total <= expected && total > expected - counts.len() as i128, "{counts:?}: {total} of {expected}");
    }
}

/// Each group gets its share, up or down by less than one part of a row, and together they are exactly as many as may be.
#[test]
fn groups_of_one_unit_share_the_rows_that_it_may_have_in_all() {
    for (counts, in_all) in [(vec![3_u64, 4, 5], 5_u64), (vec![1, 1], 5), (vec![1000, 1, 1], 7), (vec![2, 2, 2, 1], 3)]
    {
        let own = |(key, &count): (usize, &u64)| std::iter::repeat_n((1, 0, key as i64, 0, Some(1)), count as usize);
        let rows: Vec<Row> = counts.iter().enumerate().flat_map(own).collect();
        let mut limited = rules(BY_USER);
        let parts = WEIGHT;
        limited.addends = vec![Addend { column: None, each: parts, limit: UnitLimit { low: 0, high: parts << 20 } }];
        limited.rows_in_all = in_all;
        let sums = collect(&limited, &[&rows]);
        let (all, found) = (counts.iter().sum::<u64>(), table(&sums));
        let share = in_all.min(all) as f64 / all as f64;
        for (key, &count) in counts.iter().enumerate() {
            let weight = found[&vec![key as i64]][0];
            let expected = share * (count * WEIGHT as u64) as f64;
            assert!((weight as f64 - expected).abs() < 1.0, "{counts:?}: {weight} of {count}");
        }
        assert_eq!(found.values().map(|values| values[0]).sum::<i64>(), in_all.min(all) as i64 * parts, "{counts:?}");
        assert_eq!(sums.kept, [i128::from(all.min(50)), i128::from(in_all.min(all))], "{counts:?}");
    }
}

#[test]
fn rows_before_caps_and_after_them_are_counted_up_to_limits_of_their_own() {
    let rows: Vec<Row> = (0..9).map(|i| (1, 0, i % 3, 0, Some(1))).collect();
    let mut limited = rules(BY_USER);
    for (most, kept) in [([50, 50], [9, 9]), ([6, 50], [6, 9]), ([50, 4], [9, 4])] {
        limited.rows_kept = Some(most);
        assert_eq!(collect(&limited, &[&rows]).kept, kept);
    }
}

/// Exhaustively: of all small sets of children, a parent keeps at most `most`, and all if there are no more.
#[test]
fn families_keep_their_smallest_and_ties_at_the_limit_go() {
    let kept = |groups: &[(u32, u32)], priorities: &[u64], most| -> Vec<u32> {
        let leaf = |&(element, group): &(u32, u32)| Leaf { element, group, inner: 0, start: 0, end: 1 };
        let mut leaves: Vec<Leaf> = groups.iter().map(leaf).collect();
        let priority = |leaf: &Leaf| priorities[leaf.group as usize];
        thin(&mut leaves, |leaf| leaf.element, |leaf| leaf.group, priority, most, &mut Vec::new());
        leaves.iter().map(|leaf| leaf.group).collect()
    };
    assert_eq!(kept(&[(0, 0), (0, 1), (0, 2), (1, 3)], &[5, 5, 1, 9], 2), [2, 3]);
    assert_eq!(kept(&[(0, 0), (0, 1)], &[5, 5], 2), [0, 1]);
    assert_eq!(kept(&[(0, 0), (0, 1), (0, 2)], &[3, 2, 1], 1), [2]);
    let all: Vec<(u32, u32)> = (0..5).map(|group| (0, group)).collect();
    for code in 0..4_u32.pow(5) {
        let priorities: Vec<u64> = (0..5).map(|i| u64::from(code / 4_u32.pow(i) % 4)).collect();
        for most in 1..=5 {
            let number = kept(&all, &priorities, most).len() as u64;
            assert!(number <= most);
            let distinct: BTreeSet<u64> = priorities.iter().copied().collect();
            assert!(distinct.len() < 5 || number == most, "without ties all places are taken");
        }
    }
}

fn any_rules() -> impl Strategy<Value = Rules> {
    let inner = prop_oneof![
        Just(Inner::None),
        (1..4_u64).prop_map(|most| Inner::Distinct { most }),
        Just(Inner::Weights { each: 1024 }),
    ];
    let cap = || proptest::option::of(1..4_u64);
    let rows = || prop_oneof![Just(u64::MAX), 1..5_u64];
    let caps = (cap(), cap(), rows(), rows());
    (any::<bool>(), 0..2_usize, inner, caps).prop_map(|(element, keys, inner, caps)| {
        let (elements_per_user, groups, rows_per_group, rows_in_all) = caps;
        let layout = Layout { user: true, element, keys, inner: inner != Inner::None };
        let addends = match inner {
            Inner::None => vec![
                Addend { column: Some(0), each: 1, limit: UnitLimit { low: -2, high: 3 } },
                Addend { column: None, each: 1, limit: UnitLimit { low: 0, high: 2 } },
            ],
            _ => Vec::new(),
        };
        let groups_per_unit = groups.filter(|_| keys > 0);
        let rows_kept = Some([5, 5]);
        Rules {
            layout,
            elements_per_user,
            groups_per_unit,
            rows_per_group,
            rows_in_all,
            rows_kept,
            observed: false,
            inner,
            addends,
            seed: 9,
        }
    })
}

fn any_rows() -> impl Strategy<Value = Vec<Row>> {
    let row = (0..6_i64, 0..5_u8, 0..5_i64, 0..5_i64, proptest::option::of(-3..4_i64));
    proptest::collection::vec(row, 0..80)
}

/// All that units contribute, user by user and on its own, added up.
fn one_by_one(rules: &Rules, rows: &[Row]) -> BTreeMap<Vec<i64>, Vec<i64>> {
    let mut whole = BTreeMap::<Vec<i64>, Vec<i64>>::new();
    for user in 0..6 {
        let own: Vec<Row> = rows.iter().copied().filter(|row| row.0 == user).collect();
        for (key, values) in table(&collect(rules, &[&own])) {
            let sums = whole.entry(key).or_insert_with(|| vec![0; values.len()]);
            let distinct = matches!(rules.inner, Inner::Distinct { .. });
            sums.iter_mut().zip(values).for_each(|(sum, value)| *sum = if distinct { 1 } else { *sum + value });
        }
    }
    whole
}

#[test]
fn rows_that_stand_for_themselves_are_added_as_they_come() {
    let layout = Layout { user: false, element: false, keys: 1, inner: false };
    let rows = [(0, 0, 10, 0, Some(2)), (0, 0, 10, 0, Some(3)), (0, 0, 11, 0, None), (0, 0, 11, 0, Some(1))];
    let schema = Arc::new(Schema::new(schema(layout).fields()[1..].to_vec()));
    let mut own = rules(layout);
    own.addends.push(Addend { column: None, each: 1, limit: UnitLimit { low: 0, high: 1 } });
    let mut collector = Collector::new(own.clone(), &schema).unwrap();
    let whole = batch(&rows, layout);
    collector.push(&RecordBatch::try_new(Arc::clone(&schema), whole.columns()[1..].to_vec()).unwrap()).unwrap();
    let expected = BTreeMap::from([(vec![10], vec![5, 2, 2]), (vec![11], vec![1, 2, 2])]);
    assert_eq!(table(&collector.finish().unwrap()), expected);
}

/// However large, and in whatever order: what comes of it is the sum, clamped, and adding up never fails.
#[test]
fn sums_that_leave_64_bits_are_clamped_and_never_fail() {
    let (layout, huge) = (Layout { user: false, element: false, keys: 1, inner: false }, i64::MAX - 5);
    let schema = Arc::new(Schema::new(schema(layout).fields()[1..].to_vec()));
    let mut wide = rules(layout);
    wide.addends = vec![Addend { column: Some(0), each: 1, limit: UnitLimit { low: -huge, high: huge } }];
    let sum = |signs: &[i64]| {
        let rows: Vec<Row> = signs.iter().map(|sign| (0, 0, 10, 0, Some(sign * huge))).collect();
        let columns = batch(&rows, layout).columns()[1..].to_vec();
        let mut collector = Collector::new(wide.clone(), &schema).unwrap();
        collector.push(&RecordBatch::try_new(Arc::clone(&schema), columns).unwrap()).unwrap();
        collector.finish().unwrap()
    };
    assert_eq!(table(&sum(&[1, 1, 1]))[&vec![10]][0], MOST as i64);
    assert_eq!(table(&sum(&[-1, -1, -1]))[&vec![10]][0], -MOST as i64);
    assert_eq!(table(&sum(&[1, 1, 1, -1, -1, -1]))[&vec![10]][0], 0, "what was beyond comes back");
    let merged = BoundedSums::merge(vec![sum(&[1, 1]), sum(&[-1, -1]), sum(&[])]).unwrap();
    assert_eq!(table(&merged)[&vec![10]][0], 0, "also from another stream");

    let (layout, many) = (BY_USER, 8_i64);
    let mut wide = rules(layout);
    wide.addends = vec![Addend { column: None, each: 1, limit: UnitLimit { low: 0, high: i64::MAX } }];
    let mut collector = Collector::new(wide, &super::tests::schema(layout)).unwrap();
    collector.sums = vec![vec![i64::MAX - 2]];
    collector.push(&batch(&(0..many).map(|user| (user, 0, 10, 0, None)).collect::<Vec<_>>(), layout)).unwrap();
    let sums = collector.finish().unwrap();
    assert_eq!(sums.values[0][0], i128::from(i64::MAX) - 2 + i128::from(many));
}

/// If units chose by the group alone, five groups would have everybody and fifteen nobody. A fair choice fails once in 10⁹ seeds (Hoeffding).
#[test]
fn a_cap_on_groups_leaves_each_group_its_share_of_users() {
    let (users, groups, most) = (3000_i64, 20_i64, 5_u64);
    let rows: Vec<Row> = (0..users * groups).map(|i| (i / groups, 0, i % groups, 0, Some(1))).collect();
    let mut limited = rules(BY_USER);
    limited.groups_per_unit = Some(most);
    let kept = table(&collect(&limited, &[&rows]));
    let tolerance = ((2.0e9 * groups as f64).ln() / (2.0 * users as f64)).sqrt();
    for group in 0..groups {
        let share = kept.get(&vec![group]).map_or(0, |sums| sums[0]) as f64 / users as f64;
        assert!((share - 0.25).abs() < tolerance, "group {group} keeps {share} of its users");
    }
    let again = Rules { seed: 8, ..limited.clone() };
    assert_ne!(table(&collect(&again, &[&rows])), kept, "another seed, another choice");

    // Elements of a user and different values likewise.
    let mut limited = rules(Layout { keys: 1, ..BY_ELEMENT });
    limited.elements_per_user = Some(most);
    let rows: Vec<Row> =
        (0..users * groups).map(|i| (i / groups, (i % groups) as u8, i % groups, 0, Some(1))).collect();
    let kept = table(&collect(&limited, &[&rows]));
    for group in 0..groups {
        let share = kept.get(&vec![group]).map_or(0, |sums| sums[0]) as f64 / users as f64;
        assert!((share - 0.25).abs() < tolerance, "element {group} keeps {share} of its users");
    }
    let mut limited = rules(WITHIN);
    limited.inner = Inner::Distinct { most: 1 };
    let rows: Vec<Row> = (0..200 * groups).map(|i| (i / groups, 0, 5, i % groups, Some(1))).collect();
    let counted = table(&collect(&limited, &[&rows]).count_values().unwrap());
    assert_eq!(counted[&vec![5]][0], groups, "200 users with one value each find all of twenty");
}

/// A user with 30 rows of which 10 count: the mean over users is that of all rows, not of clamped sums over clamped counts.
#[test]
fn a_unit_over_its_cap_counts_for_less_in_all_sums_alike() {
    let mut capped = rules(BY_USER);
    capped.rows_per_group = 10;
    // A sum, a count of what is there, and a count of rows.
    capped.addends = vec![
        Addend { column: Some(0), each: 1, limit: UnitLimit { low: -10_000, high: 10_000 } },
        Addend { column: None, each: 1, limit: UnitLimit { low: 0, high: 10 } },
    ];
    let value = |user: i64, row: i64| (user * 7 + row * 13) % 1000;
    let rows: Vec<Row> =
        (0..400).flat_map(|user| (0..30).map(move |row| (user, 0, 5, 0, Some(value(user, row))))).collect();
    let sums = table(&collect(&capped, &[&rows]))[&vec![5]].clone();
    assert_eq!(sums[1], 4000, "ten rows a user");
    let truth = rows.iter().filter_map(|row| row.4).sum::<i64>() as f64 / rows.len() as f64;
    let mean = sums[0] as f64 / sums[1] as f64;
    // Each user's sum is off by less than a step.
    assert!((mean - truth).abs() <= 400.0 / 4000.0, "{mean} and {truth}");
}

/// Rows that are there in a third of a user's rows count for a third of the user's cap, on average: rounding down would leave nothing.
#[test]
fn what_is_rounded_is_right_on_average() {
    let mut capped = rules(BY_USER);
    (capped.rows_per_group, capped.addends) =
        (1, vec![Addend { column: Some(0), each: 1, limit: UnitLimit { low: 0, high: 1 } }]);
    let rows: Vec<Row> =
        (0..3000).flat_map(|user| (0..3).map(move |row| (user, 0, 5, 0, Some(i64::from(row == 0))))).collect();
    let kept = table(&collect(&capped, &[&rows]))[&vec![5]][0] as f64 / 3000.0;
    assert!((kept - 1.0 / 3.0).abs() < (2.0e9_f64.ln() / 6000.0).sqrt(), "{kept}");
}

proptest! {
    /// However rows are cut into batches, or users spread over streams and shares: the same sums.
    #[test]
    fn what_a_user_adds_depends_on_nobody_else(rules in any_rules(), rows in any_rows(), cut in 0..80_usize) {
        let expected = one_by_one(&rules, &rows);
        let (first, second) = rows.split_at(cut.min(rows.len()));
        prop_assert_eq!(&table(&collect(&rules, &[first, second])), &expected);

        let (even, odd): (Vec<Row>, Vec<Row>) = rows.iter().partition(|row| row.0 % 2 == 0);
        let merged = table(&BoundedSums::merge(vec![collect(&rules, &[&even]), collect(&rules, &[]), collect(&rules, &[&odd])]).unwrap());
        let ones = |table: BTreeMap<Vec<i64>, Vec<i64>>| table.into_keys().collect::<Vec<_>>();
        if matches!(rules.inner, Inner::Distinct { .. }) {
            prop_assert_eq!(ones(merged), ones(expected)); // how often a value was kept is not asked
        } else {
            prop_assert_eq!(merged, expected);
        }
    }

    /// Sums carry what they were bounded to: no unit adds more, whatever its rows are.
    #[test]
    fn no_unit_adds_more_than_the_limits_that_its_sums_carry(rules in any_rules(), rows in any_rows()) {
        for (user, element) in (0..6).flat_map(|user| (0..5).map(move |element| (user, element))) {
            let is_own = |row: &Row| row.0 == user && (row.1 == element || !rules.layout.element);
            let own: Vec<Row> = rows.iter().copied().filter(is_own).collect();
            let sums = collect(&rules, &[&own]);
            let mut groups = BTreeMap::<Vec<i64>, Vec<i64>>::new();
            for (key, values) in table(&sums) {
                let group = groups.entry(key[..rules.layout.keys].to_vec()).or_insert_with(|| vec![0; values.len()]);
                group.iter_mut().zip(values).for_each(|(sum, value)| *sum += value);
            }
            let within = |value: i64, limit: &UnitLimit| (limit.low..=limit.high).contains(&value);
            for values in groups.values() {
                prop_assert_eq!(values.len(), sums.limits.len());
                prop_assert!(values.iter().zip(&sums.limits).all(|(&value, limit)| within(value, limit)), "{:?}", sums);
            }
            prop_assert!((0..2).all(|i| within(saturated(sums.kept[i]), &sums.kept_limits[i])), "{:?}", sums);
        }
    }

    /// Rows that count: as many as there are, but no more in a group or in all than allowed; and all of them where that is not reached.
    #[test]
    fn rows_count_no_more_often_than_allowed_in_a_group_and_in_all(
        rows in any_rows(), most in 1..5_u64, in_all in 1..9_u64, inner in 0..3_u8,
    ) {
        let mut limited = rules(if inner == 0 { BY_USER } else { WITHIN });
        (limited.rows_per_group, limited.rows_in_all) = (most, in_all);
        limited.inner = [Inner::None, Inner::Weights { each: 1 << 10 }, Inner::Distinct { most }][usize::from(inner)];
        let each = if inner == 2 { 1 } else { WEIGHT };
        limited.addends = vec![Addend { column: None, each, limit: UnitLimit { low: 0, high: most as i64 * each } }];
        for user in 0..6 {
            let own: Vec<Row> = rows.iter().copied().filter(|row| row.0 == user).collect();
            let mut counts = BTreeMap::<i64, BTreeMap<i64, i64>>::new();
            for row in &own {
                *counts.entry(row.2).or_default().entry(row.3).or_default() += 1;
            }
            let mut kept = BTreeMap::<i64, i64>::new();
            for (key, values) in table(&collect(&limited, &[&own])) {
                *kept.entry(key[0]).or_default() += values[0];
            }
            let (most, in_all) = (most as i64 * each, in_all as i64 * each);
            let full: i64 = counts
                .values()
                .map(|of| (if inner == 2 { of.len() as i64 } else { of.values().sum::<i64>() } * each).min(most))
                .sum();
            let together: i64 = kept.values().sum();
            prop_assert!(kept.values().all(|&kept| kept <= most) && together <= in_all);
            let lost = if inner == 1 { own.len() as i64 } else { 0 }; // a tree's weights are rounded down
            prop_assert!(together >= full.min(in_all) - lost, "{} of {} and {}", together, full, in_all);
        }
    }

    /// A unit keeps no more than it may, and everything where it has no more.
    #[test]
    fn what_a_unit_keeps_stays_within_its_caps(rows in any_rows(), most in 1..6_u64) {
        let mut limited = rules(BY_USER);
        (limited.groups_per_unit, limited.addends) = (Some(most), vec![Addend { column: None, each: 1, limit: UnitLimit { low: 0, high: 100 } }]);
        for user in 0..6 {
            let own: Vec<Row> = rows.iter().copied().filter(|row| row.0 == user).collect();
            let mut counts = BTreeMap::<Vec<i64>, Vec<i64>>::new();
            for row in &own {
                counts.entry(vec![row.2]).or_insert_with(|| vec![0, 1])[0] += 1;
            }
            let kept = table(&collect(&limited, &[&own]));
            prop_assert_eq!(kept.len(), counts.len().min(most as usize));
            prop_assert!(kept.iter().all(|(key, values)| &counts[key] == values));
        }
    }
}

/// Sums of rows of which each stands for itself.
fn collect_rows(rows: &[Row]) -> BoundedSums {
    let layout = Layout { user: false, ..BY_USER };
    let by_user = schema(BY_USER);
    let mut collector = Collector::new(rules(layout), &Schema::new(by_user.fields()[1..].to_vec())).unwrap();
    collector.push(&batch(rows, BY_USER).project(&[1, 2]).unwrap()).unwrap();
    collector.finish().unwrap()
}

proptest! {
    /// Partial sums merge: in whichever parts users stand, and in whichever order and grouping these are merged, it is the sums of all of them at once.
    /// So bounding can run where the data is.
    #[test]
    fn partial_sums_of_users_merge(
        rules in any_rules(), rows in any_rows(), places in proptest::collection::vec(0..5_usize, 6), turn in 0..5_usize,
    ) {
        let of = |place: usize| -> Vec<Row> {
            rows.iter().copied().filter(|row| places[row.0 as usize % 6] == place).collect()
        };
        let mut parts: Vec<BoundedSums> = (0..5).map(|place| collect(&rules, &[&of(place)])).collect();
        parts.rotate_left(turn);
        let (whole, flat) = (collect(&rules, &[&rows]), BoundedSums::merge(parts.clone()).unwrap());
        let nested = parts.into_iter().reduce(|merged, part| BoundedSums::merge(vec![part, merged]).unwrap()).unwrap();
        for merged in [flat, nested] {
            prop_assert_eq!(merged.kept, whole.kept);
            let (merged, whole) = (table(&merged), table(&whole));
            if matches!(rules.inner, Inner::Distinct { .. }) {
                prop_assert!(merged.keys().eq(whole.keys())); // how often a value was kept is not asked
            } else {
                prop_assert_eq!(merged, whole);
            }
        }
    }

    /// The same of rows that stand for themselves, however they are split.
    #[test]
    fn partial_sums_of_rows_merge(rows in any_rows(), places in proptest::collection::vec(0..4_usize, 1..20)) {
        let of = |place: usize| -> Vec<Row> {
            let split = rows.iter().enumerate().filter(|(i, _)| places[i % places.len()] == place);
            split.map(|(_, row)| *row).collect()
        };
        let merged = BoundedSums::merge((0..4).map(|place| collect_rows(&of(place))).collect()).unwrap();
        prop_assert_eq!(table(&merged), table(&collect_rows(&rows)));
    }
}
