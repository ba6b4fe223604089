use super::super::collect::Collector;
use super::super::hash::hashes;
use super::super::{Addend, BoundedSums, Inner, Layout, Rules, UnitLimit};
use super::*;
use datafusion::arrow::array::{BooleanArray, Int64Array, RecordBatch, StringArray, UInt64Array};
use datafusion::arrow::datatypes::Field;
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::sync::Arc;

/// A row: user, element, key, inner value, what it adds, and whether it counts.
type Row = (i64, u8, i64, i64, Option<i64>, Option<bool>);

const SEED: u64 = 11;

fn columns(rows: &[Row]) -> [ArrayRef; 6] {
    let numbers = |of: fn(&Row) -> Option<i64>| Arc::new(rows.iter().map(of).collect::<Int64Array>()) as ArrayRef;
    [
        numbers(|row| Some(row.0)),
        Arc::new(rows.iter().map(|row| Some(format!("e{}", row.1))).collect::<StringArray>()),
        numbers(|row| Some(row.2)),
        numbers(|row| Some(row.3)),
        numbers(|row| row.4),
        Arc::new(rows.iter().map(|row| row.5).collect::<BooleanArray>()),
    ]
}

/// The numbers by which rows are chosen. Coarse ones, of which many are equal, stand for what happens once in 2^64 pairs.
fn numbers(rows: &[Row], coarse: bool) -> Vec<u64> {
    let numbers = hashes(&columns(rows), rows.len(), SEED, Role::Row).unwrap();
    numbers.into_iter().map(|number| if coarse { number % 3 } else { number }).collect()
}

fn rules(inner: bool) -> Rules {
    let limit = UnitLimit { low: -3, high: 3 };
    let addend = |column| Addend { column, each: 1, limit };
    Rules {
        layout: Layout { user: false, element: false, keys: 1, inner },
        elements_per_user: None,
        groups_per_unit: None,
        rows_per_group: u64::MAX,
        rows_in_all: u64::MAX,
        rows_kept: None,
        observed: false,
        inner: if inner { Inner::Weights { each: 1024 } } else { Inner::None },
        addends: if inner { Vec::new() } else { vec![addend(Some(0)), addend(None)] },
        seed: SEED,
    }
}

fn batch(rows: &[Row], inner: bool, caps: &[RowCap], coarse: bool) -> RecordBatch {
    let [user, element, key, value, added, counts] = columns(rows);
    let mut named = vec![("user", user)];
    if caps.iter().any(|cap| cap.of_element) {
        named.push(("element", element));
    }
    let choice: ArrayRef = Arc::new(UInt64Array::from(numbers(rows, coarse)));
    named.extend([("choice", choice), ("counts", counts), ("k0", key)]);
    named.push(if inner { ("inner", value) } else { ("m", added) });
    let fields = named.iter().map(|(name, column)| Field::new(*name, column.data_type().clone(), true));
    let schema = Arc::new(Schema::new(fields.collect::<Vec<_>>()));
    RecordBatch::try_new(schema, named.into_iter().map(|(_, column)| column).collect()).unwrap()
}

/// What is added up, with rows beyond a cap leaving whenever `first` are held.
fn collect(batches: &[&[Row]], inner: bool, caps: &[RowCap], (first, coarse): (usize, bool)) -> BoundedSums {
    let mut collector = Collector::keeping(rules(inner), &batch(&[], inner, caps, coarse).schema(), caps).unwrap();
    collector.choose_early(first);
    for rows in batches {
        collector.push(&batch(rows, inner, caps, coarse)).unwrap();
    }
    collector.finish().unwrap()
}

impl KeptRows {
    /// Lets rows beyond a cap go as soon as there are so many.
    pub(in crate::bound) fn early(&mut self, first: usize) {
        (self.first, self.full) = (first, first);
    }
}

/// Sums by their keys and inner values.
fn table(sums: &BoundedSums) -> BTreeMap<Vec<i64>, Vec<i128>> {
    let key = |g: usize| {
        let whole = |key: &ArrayRef| key.as_primitive::<datafusion::arrow::datatypes::Int64Type>().value(g);
        sums.keys().iter().map(whole).collect()
    };
    (0..sums.groups()).map(|g| (key(g), sums.values.iter().map(|values| values[g]).collect())).collect()
}

/// The rows that are kept, chosen as docs/choice.md says: in each element, and then of the user, those with the least numbers.
fn kept(rows: &[Row], caps: &[RowCap]) -> Vec<Row> {
    let mut numbered: Vec<(u64, Row)> = numbers(rows, false).into_iter().zip(rows.iter().copied()).collect();
    numbered.sort_unstable_by_key(|(number, _)| *number);
    for cap in caps {
        let mut met = BTreeMap::<(i64, Option<u8>), u64>::new();
        numbered.retain(|(_, row)| {
            let met = met.entry((row.0, cap.of_element.then_some(row.1))).or_insert(0);
            *met += 1;
            *met <= cap.most
        });
    }
    numbered.into_iter().map(|(_, row)| row).collect()
}

/// What rows add up to.
fn added(rows: &[Row], inner: bool) -> BTreeMap<Vec<i64>, Vec<i128>> {
    let mut sums = BTreeMap::<Vec<i64>, Vec<i128>>::new();
    for row in rows.iter().filter(|row| row.5 == Some(true)) {
        if inner {
            sums.entry(vec![row.2, row.3]).or_insert_with(|| vec![0])[0] += 1;
        } else {
            let sums = sums.entry(vec![row.2]).or_insert_with(|| vec![0; 3]);
            sums.iter_mut().zip([row.4.unwrap_or(0), 1, 1]).for_each(|(sum, more)| *sum += i128::from(more));
        }
    }
    sums
}

fn any_rows() -> impl Strategy<Value = Vec<Row>> {
    let counts = prop_oneof![4 => Just(Some(true)), 1 => Just(Some(false)), 1 => Just(None)];
    let row = (0..5_i64, 0..4_u8, 0..4_i64, 0..3_i64, proptest::option::of(-3..4_i64), counts);
    proptest::collection::vec(row, 0..120)
}

fn any_caps() -> impl Strategy<Value = Vec<RowCap>> {
    let cap = |of_element| (1..12_u64).prop_map(move |most| RowCap { of_element, most });
    prop_oneof![
        cap(false).prop_map(|user| vec![user]),
        cap(true).prop_map(|element| vec![element]),
        (cap(true), cap(false)).prop_map(|(element, user)| vec![element, user]),
    ]
}

proptest! {
    /// However rows come, in whichever order, and whenever those beyond a cap go: it is the rows that docs/choice.md says.
    #[test]
    fn rows_that_are_cut_early_are_those_that_are_cut_in_the_end(
        rows in any_rows().prop_shuffle(), caps in any_caps(), first in 1..60_usize, size in 1..40_usize, inner in any::<bool>(),
    ) {
        let expected = added(&kept(&rows, &caps), inner);
        let batches: Vec<&[Row]> = rows.chunks(size).collect();
        prop_assert_eq!(table(&collect(&batches, inner, &caps, (first, false))), expected.clone());
        prop_assert_eq!(table(&collect(&batches, inner, &caps, (FIRST, false))), expected.clone());
        let turned: Vec<Row> = rows.iter().rev().copied().collect();
        prop_assert_eq!(table(&collect(&[&turned], inner, &caps, (first, false))), expected);
    }

    /// Users may be divided among machines: partial sums merge.
    #[test]
    fn partial_sums_of_chosen_rows_merge(rows in any_rows(), caps in any_caps(), places in proptest::collection::vec(0..3_usize, 5)) {
        let of = |place: usize| -> Vec<Row> {
            rows.iter().copied().filter(|row| places[row.0 as usize] == place).collect()
        };
        let parts = (0..3).map(|place| collect(&[&of(place)], false, &caps, (4, false))).collect();
        prop_assert_eq!(table(&BoundedSums::merge(parts).unwrap()), added(&kept(&rows, &caps), false));
    }

    /// A row that comes takes the place of at most one other of its user, also where numbers are equal: no sum moves by more than two rows.
    #[test]
    fn a_row_more_moves_no_more_than_one_other(
        rows in any_rows(), more in any_rows(), caps in any_caps(), coarse in any::<bool>(), place in 0..120_usize,
    ) {
        let Some(&more) = more.first() else { return Ok(()) };
        let mut with = rows.clone();
        with.insert(place.min(rows.len()), more);
        let [one, other] = [&rows, &with].map(|rows| table(&collect(&[rows], false, &caps, (5, coarse))));
        // Which rows it may be is seen in the numbers of rows alone: one group more, and one less.
        let count = |table: &BTreeMap<Vec<i64>, Vec<i128>>, key: i64| table.get(&vec![key]).map_or(0, |sums| sums[2]);
        let moved: Vec<i128> = (0..4).map(|key| count(&other, key) - count(&one, key)).collect();
        prop_assert!(moved.iter().all(|by| by.abs() <= 1), "{:?}", moved);
        prop_assert!(moved.iter().map(|by| by.abs()).sum::<i128>() <= 2, "{:?}", moved);
    }
}

/// Each user keeps what it may, whatever other users have, and equal rows are interchangeable.
#[test]
fn users_keep_as_many_rows_as_they_may() {
    let rows: Vec<Row> = (0..400).map(|i| (i % 4, 0, 7, 0, Some(1), Some(true))).collect();
    for most in [1, 30, 99, 100, 500] {
        let caps = [RowCap { of_element: false, most }];
        let expected = 4 * i128::from(most.min(100));
        assert_eq!(table(&collect(&[&rows], false, &caps, (8, false)))[&vec![7]], [expected; 3], "{most}");
    }
}

/// Of 3,000 users with 20 rows, in as many groups, each keeps five: every group keeps a quarter of its rows. A fair choice fails once in 10⁹ seeds (Hoeffding).
#[test]
fn a_cap_on_rows_leaves_each_group_its_share() {
    let (users, groups) = (3000_i64, 20_i64);
    let rows: Vec<Row> = (0..users * groups).map(|i| (i / groups, 0, i % groups, 0, Some(1), Some(true))).collect();
    let kept = table(&collect(&[&rows], false, &[RowCap { of_element: false, most: 5 }], (1000, false)));
    let tolerance = ((2.0e9 * groups as f64).ln() / (2.0 * users as f64)).sqrt();
    for group in 0..groups {
        let share = kept[&vec![group]][0] as f64 / users as f64;
        assert!((share - 0.25).abs() < tolerance, "group {group} keeps {share} of its rows");
    }
}

/// What is held is a few times what is kept, and not all that came.
#[test]
fn rows_that_are_left_out_take_no_memory() {
    let caps = [RowCap { of_element: false, most: 2 }];
    let held = |rows: i64| {
        let schema = batch(&[], false, &caps, false).schema();
        let mut collector = Collector::keeping(rules(false), &schema, &caps).unwrap();
        collector.choose_early(64);
        for start in (0..rows).step_by(100) {
            let some: Vec<Row> = (start..start + 100).map(|i| (i % 10, 0, 7, i, Some(1), Some(true))).collect();
            collector.push(&batch(&some, false, &caps, false)).unwrap();
        }
        collector.size()
    };
    let (few, many) = (held(1000), held(100_000));
    assert!(many < 2 * few, "{few} bytes for 1,000 rows and {many} for 100,000");
}
