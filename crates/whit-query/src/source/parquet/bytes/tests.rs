use super::super::super::scratch::Scratch;
use super::super::tally;
use super::*;
use datafusion::arrow::array::{
    Array, AsArray, DictionaryArray, Int64Array, LargeStringArray, ListArray, StringArray, StringViewArray,
    TimestampSecondArray,
};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{Int32Type, TimeUnit};

/// Text of a test's file whose bytes are then no text.
const MARK: &str = "q~q~q~q~";

/// Columns of text of every kind, and others whose types a file only hints at. The second row has the mark.
fn columns() -> Vec<(&'static str, ArrayRef)> {
    let texts = [Some("a"), Some(MARK), None, Some("ä"), Some("12")];
    let lists: Vec<Option<Vec<Option<i32>>>> =
        vec![Some(vec![Some(1)]), Some(vec![Some(2), None]), None, Some(vec![]), Some(vec![Some(3)])];
    let lists = ListArray::from_iter_primitive::<Int32Type, _, _>(lists);
    let words: ArrayRef = Arc::new(StringArray::from(vec![Some("b"), Some(MARK), None, Some("c")]));
    let item = Arc::new(Field::new_list_field(DataType::Utf8, true));
    let words = ListArray::new(item, lists.offsets().clone(), words, lists.nulls().cloned());
    let times = TimestampSecondArray::from(vec![1, 2, 3, 4, 5]).with_timezone("+01:00");
    vec![
        ("text", Arc::new(StringArray::from(texts.to_vec()))),
        ("large", Arc::new(LargeStringArray::from(texts.to_vec()))),
        ("view", Arc::new(StringViewArray::from(texts.to_vec()))),
        ("dictionary", Arc::new(texts.into_iter().collect::<DictionaryArray<Int32Type>>())),
        ("words", Arc::new(words)),
        ("pairs", Arc::new(lists)),
        ("time", Arc::new(times)),
        ("number", Arc::new(Int64Array::from(vec![1, 2, 3, 4, 5]))),
    ]
}

/// The file with the mark, and the same with other bytes in its place.
fn files(scratch: &Scratch) -> (PathBuf, PathBuf) {
    let good = scratch.parquet("good.parquet", columns());
    let mut bytes = std::fs::read(&good).unwrap();
    let marks: Vec<usize> = (0..bytes.len()).filter(|&at| bytes[at..].starts_with(MARK.as_bytes())).collect();
    assert!(marks.len() >= 5, "{}", marks.len());
    for at in marks {
        bytes[at + 2] = 0xff;
    }
    (good, scratch.write("bad.parquet", bytes))
}

fn read_whole(path: &Path, schema: &SchemaRef) -> RecordBatch {
    let batches: Vec<RecordBatch> =
        read(ParquetFile { path: path.to_owned(), folders: BTreeMap::new() }, schema).map(Result::unwrap).collect();
    assert_eq!(batches.len(), 1);
    batches[0].clone()
}

#[test]
fn the_same_is_read_as_by_the_engine_and_what_is_no_text_is_missing() {
    let scratch = Scratch::new("bytes_as_text");
    let (good, bad) = files(&scratch);
    let whole = RecordBatch::try_from_iter(columns()).unwrap();
    assert_eq!(read_whole(&good, &whole.schema()), whole);

    let found = read_whole(&bad, &whole.schema());
    for (column, expected) in found.columns().iter().zip(whole.columns()) {
        assert_eq!(column.data_type(), expected.data_type());
        for row in [0, 2, 3, 4] {
            assert_eq!(column.slice(row, 1).as_ref(), expected.slice(row, 1).as_ref(), "{}", column.data_type());
        }
    }
    for name in ["text", "large", "view", "dictionary"] {
        let text = cast(found.column_by_name(name).unwrap(), &DataType::Utf8).unwrap();
        assert!(text.is_null(1) && text.null_count() == 2, "{name}");
    }
    let words = found.column_by_name("words").unwrap().as_list::<i32>().value(1);
    assert_eq!((words.len(), words.is_null(0), words.is_null(1)), (2, true, true));
}

#[test]
fn a_table_asks_for_some_columns_as_other_types_and_for_none() {
    let scratch = Scratch::new("bytes_as_other_types");
    let (_, bad) = files(&scratch);
    let kinds = [
        ("number", DataType::Utf8View),
        ("nobody", DataType::Int64),
        ("text", DataType::Int64),
        ("time", DataType::Timestamp(TimeUnit::Nanosecond, None)),
    ];
    let fields: Vec<Field> = kinds.into_iter().map(|(name, kind)| Field::new(name, kind, true)).collect();
    let found = read_whole(&bad, &Arc::new(Schema::new(fields)));
    assert_eq!(found.column(0).as_string_view().value(4), "5");
    assert_eq!(found.column(1).null_count(), 5);
    assert_eq!(found.column(2).as_ref(), &Int64Array::from(vec![None, None, None, None, Some(12)]) as &dyn Array);
    assert_eq!(found.column(3).null_count(), 0);
    assert_eq!(read_whole(&bad, &Arc::new(Schema::empty())).num_rows(), 5);
}

#[test]
fn the_owner_is_shown_where_text_is_none() {
    let scratch = Scratch::new("bytes_for_the_owner");
    let (good, bad) = files(&scratch);
    let schema = RecordBatch::try_from_iter(columns()).unwrap().schema();
    let tallied = tally(&[good, bad], &schema).unwrap();
    assert_eq!((tallied.wrong[0].rows, tallied.wrong[0].first), (1, Some((1, 2))));
    assert_eq!((tallied.wrong[2].rows, tallied.wrong[7].rows), (1, 0));
}
