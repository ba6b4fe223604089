use super::*;
use datafusion::arrow::array::{Int64Array, StringArray};
use datafusion::arrow::datatypes::{DataType, Field};
use std::collections::{BTreeMap, BTreeSet};

fn schema(layout: Layout) -> SchemaRef {
    let mut fields = vec![Field::new("user", DataType::Int64, true)];
    if layout.element {
        fields.push(Field::new("element", DataType::Utf8, true));
    }
    fields.extend((0..layout.keys).map(|i| Field::new(format!("k{i}"), DataType::Int64, true)));
    if layout.inner {
        fields.push(Field::new("inner", DataType::Int64, true));
    }
    fields.extend((0..layout.partials).map(|i| Field::new(format!("m{i}"), DataType::Int64, true)));
    Arc::new(Schema::new(fields))
}

fn rules(layout: Layout) -> Rules {
    Rules {
        layout,
        elements_per_user: None,
        groups_per_unit: None,
        inner: Inner::None,
        clamps: vec![(0, 3); layout.partials],
        users: false,
        seed: 7,
    }
}

/// (user, element, key, value) rows.
fn batch(rows: &[(i64, &str, i64, i64)], layout: Layout) -> RecordBatch {
    let mut columns: Vec<ArrayRef> = vec![Arc::new(rows.iter().map(|row| Some(row.0)).collect::<Int64Array>())];
    if layout.element {
        columns.push(Arc::new(rows.iter().map(|row| Some(row.1)).collect::<StringArray>()));
    }
    columns.push(Arc::new(rows.iter().map(|row| Some(row.2)).collect::<Int64Array>()));
    columns.push(Arc::new(rows.iter().map(|row| Some(row.3)).collect::<Int64Array>()));
    RecordBatch::try_new(schema(layout), columns).unwrap()
}

fn run(rules: &Rules, batches: Vec<RecordBatch>) -> BTreeMap<i64, Vec<i64>> {
    let mut collector = Collector::new(rules.clone(), schema(rules.layout)).unwrap();
    collector.take(batches).unwrap();
    let sums = collector.finish().unwrap();
    let keys = sums.keys[0].as_primitive::<Int64Type>();
    (0..sums.groups).map(|g| (keys.value(g), sums.values.iter().map(|values| values[g]).collect())).collect()
}

const BY_USER: Layout = Layout { element: false, keys: 1, inner: false, partials: 1 };
const BY_ELEMENT: Layout = Layout { element: true, keys: 1, inner: false, partials: 1 };

#[test]
fn each_unit_is_clamped_in_each_group() {
    let rows = [(1, "", 10, 2), (1, "", 11, 9), (2, "", 10, 5), (3, "", 11, -4)];
    let sums = run(&rules(BY_USER), vec![batch(&rows, BY_USER)]);
    assert_eq!(sums, BTreeMap::from([(10, vec![5]), (11, vec![3])]));
}

#[test]
fn no_user_keeps_more_groups_than_allowed_and_the_choice_is_the_users_own() {
    let crowd: Vec<(i64, &str, i64, i64)> = (0..50).map(|key| (1, "", key, 1)).collect();
    let mut limited = rules(BY_USER);
    limited.groups_per_unit = Some(4);
    let alone = run(&limited, vec![batch(&crowd, BY_USER)]);
    assert_eq!(alone.len(), 4);
    let others: Vec<(i64, &str, i64, i64)> = (0..30).map(|i| (2 + i / 3, "", i, 1)).collect();
    let together = run(&limited, vec![batch(&others, BY_USER), batch(&crowd, BY_USER)]);
    let of_others = run(&limited, vec![batch(&others, BY_USER)]);
    for (key, sum) in &together {
        let expected = alone.get(key).map_or(0, |s| s[0]) + of_others.get(key).map_or(0, |s| s[0]);
        assert_eq!(sum[0], expected, "another user's rows changed what this user keeps");
    }
}

#[test]
fn a_user_keeps_so_many_elements_and_is_counted_once_in_a_group() {
    let names: Vec<String> = (0..20).map(|i| format!("e{i}")).collect();
    let rows: Vec<(i64, &str, i64, i64)> = names.iter().map(|name| (1, name.as_str(), 5, 1)).collect();
    let mut limited = rules(BY_ELEMENT);
    limited.elements_per_user = Some(3);
    limited.users = true;
    assert_eq!(run(&limited, vec![batch(&rows, BY_ELEMENT)]), BTreeMap::from([(5, vec![3, 1])]));
}

#[test]
fn different_values_are_counted_over_units_and_each_unit_brings_a_few() {
    let layout = Layout { element: false, keys: 1, inner: true, partials: 1 };
    let make = |rows: &[(i64, i64, i64)]| {
        let column = |f: &dyn Fn(&(i64, i64, i64)) -> i64| -> ArrayRef {
            Arc::new(rows.iter().map(|row| Some(f(row))).collect::<Int64Array>())
        };
        RecordBatch::try_new(schema(layout), vec![column(&|r| r.0), column(&|r| r.1), column(&|r| r.2), column(&|_| 1)])
            .unwrap()
    };
    let mut limited = rules(layout);
    limited.inner = Inner::Distinct { most: 2 };
    let rows: Vec<(i64, i64, i64)> =
        (0..10).map(|value| (1, 5, value)).chain([(2, 5, 3), (3, 5, 3), (3, 6, 8)]).collect();
    let mut collector = Collector::new(limited, schema(layout)).unwrap();
    collector.take(vec![make(&rows)]).unwrap();
    let counted = count_values(&collector.finish().unwrap()).unwrap();
    let keys: Vec<i64> = counted.keys[0].as_primitive::<Int64Type>().values().to_vec();
    let five = keys.iter().position(|&key| key == 5).unwrap();
    assert!((2..=3).contains(&counted.values[0][five]), "user 1 brings two, users 2 and 3 the same one");
    assert_eq!(counted.values[0][1 - five], 1);
}

#[test]
fn weights_of_one_unit_never_add_up_to_more_than_its_rows() {
    let layout = Layout { element: false, keys: 1, inner: true, partials: 1 };
    for (counts, rows) in
        [(vec![3_i64, 4, 5], 5_u64), (vec![1, 1], 5), (vec![1_000_000, 1, 1], 7), (vec![2, 2, 2, 1], 3)]
    {
        let column = |values: Vec<i64>| -> ArrayRef { Arc::new(Int64Array::from(values)) };
        let n = counts.len();
        let columns =
            vec![column(vec![1; n]), column(vec![5; n]), column((0..n as i64).collect()), column(counts.clone())];
        let mut shared = rules(layout);
        shared.inner = Inner::Weights { each: 1024, rows };
        let mut collector = Collector::new(shared, schema(layout)).unwrap();
        collector.take(vec![RecordBatch::try_new(schema(layout), columns).unwrap()]).unwrap();
        let total: i64 = collector.finish().unwrap().values[0].iter().sum();
        let expected = counts.iter().sum::<i64>().min(rows as i64) * 1024;
        assert!(total <= expected && total > expected - n as i64, "{counts:?}: {total} of {expected}");
    }
}

/// Exhaustively: of all small sets of children, a parent keeps at most `most`, all if there are no more, and never
/// depends on another parent.
#[test]
fn families_keep_their_smallest_and_ties_at_the_limit_go() {
    assert_eq!(keep(&[0, 0, 0, 1], &[5, 5, 1, 9], 2, 2), [false, false, true, true]);
    assert_eq!(keep(&[0, 0], &[5, 5], 1, 2), [true, true]);
    assert_eq!(keep(&[0, 0, 0], &[3, 2, 1], 1, 1), [false, false, true]);
    for code in 0..4_u32.pow(5) {
        let priorities: Vec<u64> = (0..5).map(|i| u64::from(code / 4_u32.pow(i) % 4)).collect();
        for most in 1..=5 {
            let kept = keep(&[0; 5], &priorities, 1, most);
            let number = kept.iter().filter(|&&kept| kept).count() as u64;
            assert!(number <= most);
            let distinct: BTreeSet<u64> = priorities.iter().copied().collect();
            assert!(distinct.len() < 5 || number == most, "without ties all places are taken");
        }
    }
}

#[test]
fn parts_of_the_data_add_up_to_the_whole() {
    let first = [(1, "", 10, 2), (1, "", 11, 1)];
    let second = [(2, "", 11, 3), (3, "", 12, 1)];
    let collect = |rows: &[(i64, &str, i64, i64)]| {
        let mut collector = Collector::new(rules(BY_USER), schema(BY_USER)).unwrap();
        collector.take(vec![batch(rows, BY_USER)]).unwrap();
        collector.finish().unwrap()
    };
    let whole = merge(vec![collect(&first), collect(&[]), collect(&second)]).unwrap();
    let keys = whole.keys[0].as_primitive::<Int64Type>();
    let found: BTreeMap<i64, i64> = (0..whole.groups).map(|g| (keys.value(g), whole.values[0][g])).collect();
    assert_eq!(found, BTreeMap::from([(10, 2), (11, 4), (12, 1)]));
}
