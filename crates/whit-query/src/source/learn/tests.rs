use super::open::{Opened, Values, width_of};
use super::*;
use crate::source::Tuning;
use crate::source::scratch::Scratch;
use datafusion::arrow::array::{
    BinaryArray, BooleanArray, DictionaryArray, FixedSizeBinaryArray, FixedSizeListArray, Float32Array, Float64Array,
    Int64Array, ListArray, StringArray, UInt8Array,
};
use datafusion::arrow::datatypes::{Field, Float32Type, Int32Type};
use std::sync::Arc;

const PLAIN: (f32, f32) = (1.0, 0.0);

/// The numbers of a column, and which rows fit.
fn floats(column: &ArrayRef, width: usize) -> (Vec<f32>, Vec<bool>) {
    let mut fits = vec![true; column.len()];
    match Opened::of(column, width, false, PLAIN, &mut fits).unwrap().values {
        Values::Floats(values) => (values.to_vec(), fits),
        Values::Bytes(_) => panic!("bytes"),
    }
}

fn bytes(column: &ArrayRef, width: usize, bits: bool) -> (Vec<u8>, Vec<bool>) {
    let mut fits = vec![true; column.len()];
    match Opened::of(column, width, bits, PLAIN, &mut fits).unwrap().values {
        Values::Bytes(values) => (values.to_vec(), fits),
        Values::Floats(_) => panic!("floats"),
    }
}

fn lists(rows: Vec<Option<Vec<Option<f32>>>>) -> ArrayRef {
    Arc::new(ListArray::from_iter_primitive::<Float32Type, _, _>(rows))
}

#[test]
fn lists_and_bytes_are_opened_up() {
    let even: ArrayRef = lists(vec![Some(vec![Some(1.0), Some(2.0)]), Some(vec![Some(3.0), Some(4.0)])]);
    assert_eq!(floats(&even, 2), (vec![1.0, 2.0, 3.0, 4.0], vec![true; 2]));
    assert_eq!(floats(&even.slice(1, 1), 2), (vec![3.0, 4.0], vec![true]));
    let fixed: ArrayRef = Arc::new(FixedSizeListArray::new(
        Arc::new(Field::new_list_field(DataType::Float32, true)),
        2,
        Arc::new(Float32Array::from(vec![1.0, 2.0, 3.0, 4.0])),
        None,
    ));
    assert_eq!(floats(&fixed.slice(1, 1), 2), (vec![3.0, 4.0], vec![true]));
    let fixed: ArrayRef = Arc::new(FixedSizeBinaryArray::try_from_iter([[1_u8], [0x80]].into_iter()).unwrap());
    assert_eq!(bytes(&fixed, 1, false).0, [1, 128]);
    let (bits, _) = bytes(&fixed, 8, true);
    assert_eq!((bits.len(), bits[7], bits[8], bits.iter().sum::<u8>()), (16, 1, 1, 2));
    let binary: ArrayRef = Arc::new(BinaryArray::from(vec![&[9, 8][..], &[7, 6], &[5, 4]]));
    assert_eq!(bytes(&binary.slice(1, 2), 2, false).0, [7, 6, 5, 4]);
    let small: ArrayRef = Arc::new(UInt8Array::from(vec![3, 200, 7]));
    assert_eq!(bytes(&small.slice(1, 2), 1, false).0, [200, 7]);
    let flags: ArrayRef = Arc::new(BooleanArray::from(vec![true, false, true]));
    assert_eq!(bytes(&flags.slice(1, 2), 1, false).0, [0, 1]);
    let wide: ArrayRef = Arc::new(Int64Array::from(vec![1 << 40, -3]));
    assert_eq!(floats(&wide, 1).0, [(1_i64 << 40) as f32, -3.0]);
}

#[test]
fn what_does_not_fit_is_zero_and_its_row_is_marked() {
    let odd = lists(vec![
        Some(vec![Some(1.0), Some(2.0)]),
        Some(vec![Some(3.0)]),
        None,
        Some(vec![Some(4.0), None]),
        Some(vec![]),
        Some(vec![Some(5.0), Some(f32::NAN)]),
        Some(vec![Some(6.0), Some(7.0), Some(8.0)]),
    ]);
    let only_first = [true, false, false, false, false, false, false];
    let (values, fits) = floats(&odd, 2);
    assert_eq!(fits, only_first);
    assert_eq!(values, [1.0, 2.0, 0.0, 0.0, 0.0, 0.0, 4.0, 0.0, 0.0, 0.0, 5.0, 0.0, 0.0, 0.0]);
    assert_eq!(floats(&odd.slice(1, 1), 2), (vec![0.0, 0.0], vec![false]));
    let binary: ArrayRef = Arc::new(BinaryArray::from(vec![Some(&[9, 8][..]), None, Some(&[5]), Some(&[1, 2])]));
    assert_eq!(bytes(&binary, 2, false), (vec![9, 8, 0, 0, 0, 0, 1, 2], vec![true, false, false, true]));
    let flags: ArrayRef = Arc::new(BooleanArray::from(vec![Some(true), None]));
    assert_eq!(bytes(&flags, 1, false), (vec![1, 0], vec![true, false]));
    let small: ArrayRef = Arc::new(UInt8Array::from(vec![Some(3), None]));
    assert_eq!(bytes(&small, 1, false), (vec![3, 0], vec![true, false]));
    for odd in [f64::NAN, 1e300, f64::NEG_INFINITY] {
        let odd: ArrayRef = Arc::new(Float64Array::from(vec![Some(odd), Some(2.0), None]));
        assert_eq!(floats(&odd, 1), (vec![0.0, 2.0, 0.0], vec![false, true, false]));
    }
    // Too large once it is scaled.
    let large: ArrayRef = Arc::new(Float32Array::from(vec![3e38, 1.0]));
    let mut fits = vec![true; 2];
    let opened = Opened::of(&large, 1, false, (10.0, 0.5), &mut fits).unwrap();
    assert_eq!((opened.values, fits), (Values::Floats(vec![0.0, 1.0].into()), vec![false, true]));
}

#[test]
fn widths_follow_from_types_or_are_declared() {
    let item = || Arc::new(Field::new_list_field(DataType::Float32, true));
    let list = DataType::List(item());
    assert_eq!(width_of(&DataType::Int64, false, None), Ok(1));
    assert_eq!(width_of(&DataType::FixedSizeList(item(), 7), false, None), Ok(7));
    assert_eq!(width_of(&DataType::FixedSizeBinary(3), true, None), Ok(24));
    assert_eq!(width_of(&list, false, Some(5)), Ok(5));
    assert!(width_of(&list, false, None).unwrap_err().0.contains("nothing says how many numbers"));
    assert!(width_of(&DataType::Binary, true, Some(12)).unwrap_err().0.contains("no whole bytes"));
    assert!(width_of(&DataType::FixedSizeBinary(3), false, Some(4)).unwrap_err().0.contains("`widths` says 4"));
    assert!(width_of(&list, false, Some(0)).is_err());
}

#[test]
fn a_target_that_is_none_of_the_classes_is_the_first_and_marked() {
    let names = ["no".to_owned(), "yes".to_owned()];
    let target = |classes| Target { column: "y", classes, counted: false, fits: Fits::Any };
    let read = |column: ArrayRef, target| {
        let mut fits = vec![true; column.len()];
        (target_values(&column, target, &mut fits).unwrap(), fits)
    };
    let words: ArrayRef = Arc::new(StringArray::from(vec![Some("yes"), Some("maybe"), None, Some("no")]));
    assert_eq!(read(words, target(Some(&names))), (vec![1.0, 0.0, 0.0, 0.0], vec![true, false, false, true]));
    let numbers = |values: Vec<f64>| -> ArrayRef { Arc::new(Float64Array::from(values)) };
    let (values, fits) = read(numbers(vec![1.0, 2.0, -1.0, 0.5, f64::NAN]), target(Some(&names)));
    assert_eq!((values, fits), (vec![1.0, 0.0, 0.0, 0.0, 0.0], vec![true, false, false, false, false]));
    // Truth is a number where classes are numbered, and a word where they are called so.
    let flags = || -> ArrayRef { Arc::new(BooleanArray::from(vec![true, false])) };
    let numbered = ["0".to_owned(), "1".to_owned()];
    let called = ["true".to_owned(), "false".to_owned()];
    assert_eq!(read(flags(), target(Some(&numbered))).0, [1.0, 0.0]);
    assert_eq!(read(flags(), target(Some(&called))).0, [0.0, 1.0]);
    for (fits, good) in
        [(Fits::Any, [true; 3]), (Fits::NotNegative, [true, true, false]), (Fits::ZeroOrOne, [true, false, false])]
    {
        let (_, found) =
            read(numbers(vec![1.0, 2.0, -1.0]), Target { column: "y", classes: None, counted: false, fits });
        assert_eq!(found, good);
    }
}

#[test]
fn columns_are_laid_side_by_side_and_stay_bytes_where_all_are() {
    let bytes = |width: usize, rows: usize| Opened {
        values: Values::Bytes((0..rows * width).map(|i| (i % 251) as u8).collect()),
        width,
    };
    let floats = |width: usize, rows: usize| Opened {
        values: Values::Floats((0..rows * width).map(|i| i as f32 * 0.5).collect()),
        width,
    };
    let number = |opened: &Opened, at: usize| match &opened.values {
        Values::Bytes(values) => f32::from(values[at]),
        Values::Floats(values) => values[at],
    };
    for rows in [1, 7, 40_000] {
        for columns in [
            vec![bytes(3, rows)],
            vec![bytes(2, rows), bytes(1, rows)],
            vec![floats(2, rows), bytes(3, rows), floats(1, rows)],
        ] {
            let width = columns.iter().map(|column| column.width).sum();
            let expected: Vec<f32> = (0..rows)
                .flat_map(|row| {
                    let columns = columns.iter();
                    columns.flat_map(move |one| (0..one.width).map(move |i| number(one, row * one.width + i)))
                })
                .collect();
            let (mut found, mut whole) = (Vec::new(), true);
            hand_on(&columns, rows, width, &mut |stated, block| {
                assert_eq!(stated, width);
                match block {
                    Block::Bytes(values) => found.extend(values.iter().map(|&byte| f32::from(byte))),
                    Block::Floats(values) => {
                        whole = false;
                        found.extend_from_slice(values);
                    }
                }
                Ok(())
            })
            .unwrap();
            assert_eq!(found, expected);
            assert_eq!(whole, columns.iter().all(|column| matches!(column.values, Values::Bytes(_))));
        }
    }
}

/// Rows are read on the caller's thread, where a panic would print its words and go on to the caller.
#[test]
fn a_panic_over_rows_is_an_error_without_its_words() {
    let scratch = Scratch::new("learning_panics");
    let columns: Vec<(&str, ArrayRef)> = vec![
        ("user_id", Arc::new(Int64Array::from(vec![1, 2, 3]))),
        ("x", Arc::new(Float64Array::from(vec![0.5, 13.0, 2.0]))),
    ];
    scratch.parquet("t.parquet", columns);
    let config = scratch.write(
        "whit.toml",
        "[dataset.t]\nsource = 't.parquet'\nunit.user = 'user_id'\nunit.protect = 'user'\nunit.caps = { rows_per_user = 5 }\n",
    );
    let tables = Tables::open(&config, Tuning { memory: None, threads: Some(2) }).unwrap();
    let (features, widths) = (["x".into()], BTreeMap::new());
    let reading = Reading {
        dataset: "t",
        features: &features,
        widths: &widths,
        bits: false,
        scaled: PLAIN,
        target: None,
        filter: None,
        part: None,
        users: true,
        elements: false,
        contents: false,
        misfits: Misfits::LeftOut,
        carried: &[],
    };
    let mut rows = 0;
    tables
        .rows_for_learning(&reading, &mut |_, block| {
            rows += if let Block::Floats(values) = block { values.len() } else { 0 };
            Ok(())
        })
        .unwrap();
    assert_eq!(rows, 3, "without the panic there are rows");
    let error = tables.rows_for_learning(&reading, &mut |_, block| panic!("there is {block:?}")).unwrap_err();
    assert!(error.fault == crate::error::Fault::Failed && !error.to_string().contains("there is"), "{error}");
}

/// Written down once, and never to change: a run that goes on finds the units that it had, in any engine and in any version of this one.
#[test]
fn users_and_elements_have_the_numbers_that_they_had() {
    let users: ArrayRef = Arc::new(StringArray::from(vec![Some("ada"), None]));
    assert_eq!(owners_of("t", Role::User, &users).unwrap(), [0x588f_d378_6c42_f9bf, 0xb789_1bb7_37dd_a86c]);
    let elements: ArrayRef = Arc::new(StringArray::from(vec!["a.org"]));
    assert_eq!(owners_of("t", Role::Element, &elements).unwrap(), [0x14c0_395b_48ee_08a3]);
    // However the engine holds them.
    let golden = [0x2c8b_1725_b8cb_9652, 0x4515_d713_aaa2_96cc];
    let columns: [ArrayRef; 3] = [
        Arc::new(Int64Array::from(vec![1, 2])),
        Arc::new(UInt8Array::from(vec![1, 2])),
        Arc::new(DictionaryArray::<Int32Type>::new(vec![0, 1].into(), Arc::new(Int64Array::from(vec![1, 2])))),
    ];
    for column in columns {
        assert_eq!(owners_of("t", Role::User, &column).unwrap(), golden, "{}", column.data_type());
    }
}

/// Two hundred rows of twenty users, of which every third has no number.
fn visits(scratch: &Scratch, unit: &str) -> Tables {
    let numbers: Vec<Option<f64>> = (0..200_u8).map(|i| (i % 3 > 0).then(|| f64::from(i))).collect();
    let columns: Vec<(&str, ArrayRef)> = vec![
        ("user_id", Arc::new(Int64Array::from((0..200).map(|i| i % 20).collect::<Vec<i64>>()))),
        ("x", Arc::new(Float64Array::from(numbers))),
        ("y", Arc::new(Int64Array::from((0..200).map(|i| i % 2).collect::<Vec<i64>>()))),
    ];
    scratch.parquet("t.parquet", columns);
    let config = scratch.write("whit.toml", &format!("[dataset.t]\nsource = 't.parquet'\n{unit}"));
    Tables::open(&config, Tuning { memory: None, threads: Some(2) }).unwrap()
}

const USERS: &str = "unit.user = 'user_id'\nunit.protect = 'user'\nunit.caps = { rows_per_user = 5 }\n";

fn whole(features: &[Feature]) -> Reading<'_> {
    static NONE: BTreeMap<String, usize> = BTreeMap::new();
    Reading {
        dataset: "t",
        features,
        widths: &NONE,
        bits: false,
        scaled: PLAIN,
        target: None,
        filter: None,
        part: None,
        users: true,
        elements: false,
        contents: true,
        misfits: Misfits::LeftOut,
        carried: &[],
    }
}

/// Both parts together are all rows, and no user is in both.
#[test]
fn rows_are_split_by_user_or_by_what_they_are() {
    let scratch = Scratch::new("learning_split");
    let tables = visits(&scratch, USERS);
    let features = ["user_id + 20 * y".into()];
    let rows = |part: Option<SplitPart>| {
        tables.rows_for_learning(&Reading { part, ..whole(&features) }, &mut |_, _| Ok(())).unwrap()
    };
    for by in [SplitBy::User, SplitBy::Row] {
        let part = |aside| Some(SplitPart { by, test: 0.3, seed: 7, aside });
        let (learned, tried) = (rows(part(false)), rows(part(true)));
        assert_eq!(learned.rows + tried.rows, 200);
        assert!((20..110).contains(&tried.rows), "{}", tried.rows);
        let users = |numbers: &Numbers| numbers.users.clone().unwrap();
        let both = users(&learned).iter().any(|user| users(&tried).contains(user));
        assert_eq!(both, by == SplitBy::Row, "{by:?}");
        assert_eq!(rows(part(true)), tried, "the same each time");
        let other = rows(Some(SplitPart { by, test: 0.3, seed: 8, aside: true }));
        assert_ne!(other.contents, tried.contents, "another seed sets others aside");
    }
    assert_eq!(
        tables
            .in_view_for_learning("t", None, Some(SplitPart { by: SplitBy::User, test: 0.3, seed: 7, aside: true }))
            .unwrap()
            .rows,
        rows(Some(SplitPart { by: SplitBy::User, test: 0.3, seed: 7, aside: true })).rows
    );
}

/// A split by rows must not read what a unit hides, or which rows there are would not be public.
#[test]
fn rows_that_stay_in_view_are_split_by_what_is_public() {
    let part = SplitPart { by: SplitBy::Row, test: 0.5, seed: 1, aside: true };
    for (name, unit, columns) in [
        ("feature", "unit.public = ['y']\nunit.protect = 'feature'\n", &["y"][..]),
        ("label", "unit.label = 'y'\nunit.protect = 'label'\n", &["user_id", "x"]),
        ("event", "unit.protect = 'event'\n", &["user_id", "x", "y"]),
    ] {
        let scratch = Scratch::new(&format!("learning_in_view_{name}"));
        let tables = visits(&scratch, unit);
        let source = tables.warehouse().source("t").unwrap();
        assert_eq!(part.columns(source, None).unwrap(), columns, "{name}");
        let error = SplitPart { by: SplitBy::User, ..part }.columns(source, None).unwrap_err();
        assert!(error.sentence.contains("no user of `t` is declared"), "{error}");
    }
}

/// What is missing leaves its row out, or marks it; and what an expression reads is known.
#[test]
fn expressions_are_null_where_they_fail_and_say_what_they_read() {
    let scratch = Scratch::new("learning_expressions");
    let tables = visits(&scratch, USERS);
    let failing = ["100 / (user_id - 3)".into(), "x".into()];
    let checked = tables.check_learning(&whole(&failing)).unwrap();
    assert_eq!((checked.reads, checked.widths), (vec![vec!["user_id".to_owned()], vec!["x".to_owned()]], vec![1, 1]));
    assert!(checked.meanings[1].is_null() && !checked.meanings[0].is_null());
    let again = tables.check_learning(&whole(&["100/( USER_ID-3)".into(), "x".into()])).unwrap();
    assert_eq!(again.meanings, checked.meanings, "however it is spelled");
    let read = |features: &[Feature]| {
        let mut values = Vec::new();
        let numbers = tables.rows_for_learning(&whole(features), &mut |_, block| {
            if let Block::Floats(block) = block {
                values.extend_from_slice(block);
            }
            Ok(())
        });
        (numbers.unwrap(), values)
    };
    // 10 rows of user 3, and 67 without a number, of which 4 are of user 3.
    let missing = (0..200).filter(|i| i % 20 == 3 || i % 3 == 0).count();
    assert_eq!(read(&failing).0.rows, 200 - missing);
    let marked = failing.map(|feature: Feature| Feature { indicator: true, ..feature });
    let (numbers, values) = read(&marked);
    assert_eq!((numbers.rows, numbers.left_out.len(), values.len()), (200, 0, 800));
    assert_eq!(values[12..16], [0.0, 1.0, 0.0, 1.0], "the row of user 3 without a number");
    assert_eq!(values[4..8], [-50.0, 0.0, 1.0, 0.0], "100 / (1 - 3), and 1");
}
