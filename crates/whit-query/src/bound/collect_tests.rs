use super::super::{Addend, Layout, count_values, merge};
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
    let addends = vec![Addend { column: Some(0), low: 0, high: 3 }];
    Rules { layout, elements_per_user: None, groups_per_unit: None, inner: Inner::None, addends, seed: 7 }
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

fn collect(rules: &Rules, batches: &[&[Row]]) -> Sums {
    let mut collector = Collector::new(rules.clone(), &schema(rules.layout)).unwrap();
    for rows in batches {
        collector.push(&batch(rows, rules.layout)).unwrap();
    }
    collector.finish().unwrap()
}

/// Sums by their keys and inner values.
fn table(sums: &Sums) -> BTreeMap<Vec<i64>, Vec<i64>> {
    let key = |g: usize| sums.keys.iter().map(|key| key.as_primitive::<Int64Type>().value(g)).collect();
    (0..sums.groups).map(|g| (key(g), sums.values.iter().map(|values| values[g]).collect())).collect()
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
    let counted = table(&count_values(&collect(&limited, &[&rows])).unwrap());
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
        shared.inner = Inner::Weights { each: 1024, rows };
        let total: i64 = collect(&shared, &[&repeated.collect::<Vec<Row>>()]).values[0].iter().sum();
        let expected = counts.iter().sum::<i64>().min(rows as i64) * 1024;
        assert!(total <= expected && total > expected - counts.len() as i64, "{counts:?}: {total} of {expected}");
    }
}

/// Exhaustively: of all small sets of children, a parent keeps at most `most`, and all if there are no more.
#[test]
fn families_keep_their_smallest_and_ties_at_the_limit_go() {
    let kept = |groups: &[(u32, u32)], priorities: &[u64], most| -> Vec<u32> {
        let leaf = |&(element, group): &(u32, u32)| Leaf { element, group, inner: 0, start: 0, end: 1 };
        let mut leaves: Vec<Leaf> = groups.iter().map(leaf).collect();
        thin(&mut leaves, |leaf| leaf.element, |leaf| leaf.group, priorities, most, &mut Vec::new());
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
        (1..4_u64).prop_map(|rows| Inner::Weights { each: 1024, rows }),
    ];
    let cap = || proptest::option::of(1..4_u64);
    (any::<bool>(), 0..2_usize, inner, cap(), cap()).prop_map(|(element, keys, inner, elements_per_user, groups)| {
        let layout = Layout { user: true, element, keys, inner: inner != Inner::None };
        let addends = match inner {
            Inner::None => vec![Addend { column: Some(0), low: -2, high: 3 }, Addend { column: None, low: 0, high: 2 }],
            _ => Vec::new(),
        };
        Rules { layout, elements_per_user, groups_per_unit: groups.filter(|_| keys > 0), inner, addends, seed: 9 }
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
    own.addends.push(Addend { column: None, low: 0, high: 1 });
    let mut collector = Collector::new(own.clone(), &schema).unwrap();
    let whole = batch(&rows, layout);
    collector.push(&RecordBatch::try_new(Arc::clone(&schema), whole.columns()[1..].to_vec()).unwrap()).unwrap();
    let expected = BTreeMap::from([(vec![10], vec![5, 2, 2]), (vec![11], vec![1, 2, 2])]);
    assert_eq!(table(&collector.finish().unwrap()), expected);

    own.addends[0].high = i64::MAX;
    let mut collector = Collector::new(own, &schema).unwrap();
    let refused = collector.push(&RecordBatch::try_new(schema, whole.columns()[1..].to_vec()).unwrap());
    assert!(refused.is_err_and(|error| error.to_string().contains("does not fit")));
}

proptest! {
    /// However rows are cut into batches, or users spread over streams and shares: the same sums.
    #[test]
    fn what_a_user_adds_depends_on_nobody_else(rules in any_rules(), rows in any_rows(), cut in 0..80_usize) {
        let expected = one_by_one(&rules, &rows);
        let (first, second) = rows.split_at(cut.min(rows.len()));
        prop_assert_eq!(&table(&collect(&rules, &[first, second])), &expected);

        let (even, odd): (Vec<Row>, Vec<Row>) = rows.iter().partition(|row| row.0 % 2 == 0);
        let merged = table(&merge(vec![collect(&rules, &[&even]), collect(&rules, &[]), collect(&rules, &[&odd])]).unwrap());
        let ones = |table: BTreeMap<Vec<i64>, Vec<i64>>| table.into_keys().collect::<Vec<_>>();
        if matches!(rules.inner, Inner::Distinct { .. }) {
            prop_assert_eq!(ones(merged), ones(expected)); // how often a value was kept is not asked
        } else {
            prop_assert_eq!(merged, expected);
        }
    }

    /// A unit keeps no more than it may, and everything where it has no more.
    #[test]
    fn what_a_unit_keeps_stays_within_its_caps(rows in any_rows(), most in 1..6_u64) {
        let mut limited = rules(BY_USER);
        (limited.groups_per_unit, limited.addends) = (Some(most), vec![Addend { column: None, low: 0, high: 100 }]);
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
