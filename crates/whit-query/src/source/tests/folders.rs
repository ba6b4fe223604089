//! Folders that are named after values, and fields inside of structs.

use super::*;
use datafusion::arrow::array::{Array, ListArray, StructArray};
use datafusion::arrow::buffer::NullBuffer;
use datafusion::arrow::datatypes::{Field, Fields, Int32Type};

fn table(source: &str, more: &str) -> String {
    format!(
        "[dataset.t]\nsource = '{source}'\npartitioned_by = ['day', 'land']\nunit.user = 'user_id'\nunit.protect = 'user'\n\
         columns.user_id = 'int'\ncolumns.x = 'int'\ncolumns.day = 'date'\ncolumns.land = 'text'\n{more}\n"
    )
}

/// Two days of two lands, one of them missing, in the format of an ending.
fn days(name: &str, ending: &str) -> Scratch {
    let scratch = Scratch::new(name);
    let folders =
        ["day=2024-01-01/land=at", "day=2024-01-01/land=de", "day=2024-01-02/land=__HIVE_DEFAULT_PARTITION__"];
    for (folder, user) in folders.into_iter().zip(1..) {
        let file = format!("t/{folder}/part-0.{ending}");
        match ending {
            "csv" => drop(scratch.write(&file, format!("user_id,x\n{user},{}\n{user},1\n", 10 * user))),
            "ndjson" => {
                let line = |x: i64| format!("{{\"user_id\": {user}, \"x\": {x}, \"land\": \"no\"}}\n");
                scratch.write(&file, line(10 * user) + &line(1));
            }
            _ => drop(scratch.parquet(&file, vec![("user_id", ints([user, user])), ("x", ints([10 * user, 1]))])),
        }
    }
    scratch
}

#[tokio::test]
async fn folders_are_columns_of_their_files() {
    for ending in ["csv", "ndjson", "parquet"] {
        let scratch = days(&format!("folders_{ending}"), ending);
        let warehouse = open(&scratch, &table("t", "")).await.unwrap();
        for (sql, expected) in [
            ("SELECT count(*) FROM t", 6),
            ("SELECT sum(x) FROM t WHERE day = date '2024-01-01'", 32),
            ("SELECT sum(x) FROM t WHERE land = 'de'", 21),
            ("SELECT count(*) FROM t WHERE land IS NULL AND day > date '2024-01-01'", 2),
            ("SELECT count(DISTINCT land) FROM t", 2),
            ("SELECT count(*) FROM t WHERE land = 'at'", 2),
        ] {
            assert_eq!(count(&warehouse, sql).await, expected, "{ending}: {sql}");
        }
        let source = warehouse.source("t").unwrap();
        assert_eq!(source.schema.field_with_name("day").unwrap().data_type(), &DataType::Date32, "{ending}");
        let mark = source.fingerprint(&mut NoHashes).unwrap();
        // Rows that move to another day are other data, though no file changed.
        std::fs::rename(scratch.path().join("t/day=2024-01-02"), scratch.path().join("t/day=2024-01-03")).unwrap();
        let moved = open(&scratch, &table("t", "")).await.unwrap();
        assert_ne!(moved.source("t").unwrap().fingerprint(&mut NoHashes).unwrap(), mark, "{ending}");
        // What is not of the declared type is NULL, here too.
        std::fs::rename(scratch.path().join("t/day=2024-01-03"), scratch.path().join("t/day=soon")).unwrap();
        let odd = open(&scratch, &table("t", "")).await.unwrap();
        assert_eq!(count(&odd, "SELECT count(*) * 10 + count(day) FROM t").await, 64, "{ending}");
    }
}

/// Which folders there are is private: a folder that comes, whatever its files call their columns, changes no column, no type and no message.
#[tokio::test]
async fn no_folder_changes_a_type_or_a_message() {
    for ending in ["csv", "parquet"] {
        let scratch = days(&format!("folders_private_{ending}"), ending);
        let shape = async |scratch: &Scratch, text: &str| match open(scratch, text).await {
            Ok(warehouse) => {
                let views = serde_json::to_string(&warehouse.survey().unwrap()).unwrap();
                format!("{:?} {views}", warehouse.source("t").unwrap().schema)
            }
            Err(error) => format!("{error} {:?}", error.hint),
        };
        let texts = [table("t", ""), table("t", "columns.more = 'int'"), table("t", "unit.element = 'nothing'")];
        let mut before = Vec::new();
        for text in &texts {
            before.push(shape(&scratch, text).await);
        }
        match ending {
            "csv" => drop(
                scratch.write("t/day=2024-02-01/land=fr/p.csv", b"x,user_id,user_id,more,\xff,nothing\n1,2,3,4,5,6\n"),
            ),
            _ => drop(scratch.parquet(
                "t/day=2024-02-01/land=fr/p.parquet",
                vec![("x", texts_of(["1"])), ("user_id", floats([2.0])), ("more", ints([4])), ("nothing", ints([1]))],
            )),
        }
        for (text, before) in texts.iter().zip(before) {
            assert_eq!(shape(&scratch, text).await, before, "{ending}");
        }
        let warehouse = open(&scratch, &table("t", "")).await.unwrap();
        assert_eq!(count(&warehouse, "SELECT count(*) FROM t WHERE land = 'fr' AND user_id = 2 AND x = 1").await, 1);
    }
}

fn texts_of<'a>(values: impl IntoIterator<Item = &'a str>) -> ArrayRef {
    texts(values)
}

#[tokio::test]
async fn messages_name_no_folder_that_is_a_value() {
    let scratch = days("folders_messages", "parquet");
    scratch.write("t/day=2024-02-01/land=fr/p.parquet", "this is none at all");
    let found = message(&scratch, &table("t", "")).await;
    assert!(found.starts_with("`t/day=…/land=…/p.parquet` is not a Parquet file"), "{found}");
    let (packed, text) = (days("folders_messages_gz", "csv"), table("t", ""));
    packed.write("t/day=2024-02-01/land=fr/p.csv.gz", "this is none at all");
    let found = message(&packed, &text).await;
    assert!(!found.contains("2024-02") && found.contains("not packed as gzip"), "{found}");
}

#[tokio::test]
async fn columns_of_folders_have_types() {
    let scratch = days("folders_declared", "csv");
    let found = message(&scratch, &table("t", "").replace("columns.day = 'date'\n", "")).await;
    assert!(
        found.contains("lists `day`, which has no declared type | say what it is: columns.day = \"date\""),
        "{found}"
    );
    let found = message(&scratch, &table("t", "").replace("'date'", "'list(int)'")).await;
    assert!(found.contains("the name of a folder is no list"), "{found}");
}

/// People with addresses, of which the third has none.
fn people(scratch: &Scratch, name: &str, city: [&str; 3]) {
    let inner = Fields::from(vec![Field::new("lat", DataType::Float64, true)]);
    let place: ArrayRef = Arc::new(StructArray::new(inner.clone(), vec![floats([1.5, 2.5, 3.5])], None));
    let fields = Fields::from(vec![
        Field::new("city", DataType::Utf8, true),
        Field::new("place", DataType::Struct(inner), true),
    ]);
    let address = StructArray::new(fields, vec![texts(city), place], Some(NullBuffer::from(vec![true, true, false])));
    assert_eq!(address.null_count(), 1);
    scratch.parquet(name, vec![("user_id", ints([1, 2, 3])), ("address", Arc::new(address))]);
}

#[tokio::test]
async fn fields_of_structs_are_columns_where_they_are_declared() {
    let scratch = Scratch::new("folders_nested");
    people(&scratch, "t/a.parquet", ["wien", "linz", "graz"]);
    scratch.parquet("t/b.parquet", vec![("user_id", ints([4]))]);
    let text = "[dataset.t]\nsource = 't'\nunit.user = 'user_id'\nunit.protect = 'user'\ncolumns.user_id = 'int'\ncolumns.address = 'text'\n\
                columns.\"address.city\" = { type = 'text', keys = ['wien'] }\ncolumns.\"address.place.lat\" = { type = 'float', bounds = [0, 9] }\n";
    let warehouse = open(&scratch, text).await.unwrap();
    for (sql, expected) in [
        ("SELECT count(*) FROM t", 4),
        ("SELECT count(\"address.city\") FROM t", 2),
        ("SELECT count(*) FROM t WHERE \"address.city\" = 'wien'", 1),
        ("SELECT cast(sum(\"address.place.lat\") AS bigint) FROM t", 4),
        ("SELECT count(*) FROM t WHERE \"address.place.lat\" > 2", 1),
        ("SELECT count(*) FROM t WHERE \"address.city\" IS NULL", 2),
    ] {
        assert_eq!(count(&warehouse, sql).await, expected, "{sql}");
    }
    let found = message(&scratch, &text.replace("address.city", "address.town")).await;
    assert!(found.contains("`t` has no column `address.town`"), "{found}");
}

/// Text of one row that is none must not decide whether a question is answered, inside of a struct either.
#[tokio::test]
async fn text_in_a_struct_that_is_no_text_is_missing() {
    let scratch = Scratch::new("folders_nested_bytes");
    people(&scratch, "good.parquet", ["wien", "q~q~q~q~", "graz"]);
    let mut bytes = std::fs::read(scratch.path().join("good.parquet")).unwrap();
    let marks: Vec<usize> = (0..bytes.len()).filter(|&at| bytes[at..].starts_with(b"q~q~q~q~")).collect();
    assert!(!marks.is_empty());
    for at in marks {
        bytes[at + 2] = 0xff;
    }
    scratch.write("t.parquet", bytes);
    let text = "[dataset.t]\nsource = 't.parquet'\nunit.user = 'user_id'\nunit.protect = 'user'\ncolumns.user_id = 'int'\n\
                columns.\"address.city\" = 'text'\ncolumns.\"address.place.lat\" = 'float'\n";
    let warehouse = open(&scratch, text).await.unwrap();
    let sql = "SELECT count(\"address.city\") * 10 + cast(sum(\"address.place.lat\") AS bigint) FROM t";
    let first = warehouse.context().sql(sql).await.unwrap().collect().await;
    assert!(
        first.is_err() && Patience::gained(warehouse.context()),
        "the engine gives up, and is followed by who does not"
    );
    assert_eq!(count(&warehouse, sql).await, 14);
    let tally = parquet::tally(&warehouse.source("t").unwrap().files, &warehouse.source("t").unwrap().schema).unwrap();
    let wrong: u64 = tally.wrong.iter().map(|found| found.rows).sum();
    assert_eq!(wrong, 1, "and the owner is told");
}

/// Each item of a list is a row of whose the list is; a list that is empty or missing is none.
#[tokio::test]
async fn lists_are_opened_to_rows() {
    let scratch = Scratch::new("folders_open");
    let lists: Vec<Option<Vec<Option<i32>>>> =
        vec![Some(vec![Some(1), Some(2), None]), Some(vec![]), None, Some(vec![Some(3)])];
    let lists = ListArray::from_iter_primitive::<Int32Type, _, _>(lists);
    scratch.parquet(
        "t.parquet",
        vec![
            ("user_id", ints([7, 7, 8, 8])),
            ("x", ints([1, 2, 3, 4])),
            ("y", ints([1; 4])),
            ("tags", Arc::new(lists)),
        ],
    );
    scratch.write(
        "t.ndjson",
        "{\"user_id\":7,\"x\":1,\"tags\":[1,2,\"odd\"]}\n{\"user_id\":7,\"x\":2,\"tags\":[]}\n{\"user_id\":8,\"x\":3}\n{\"user_id\":8,\"x\":4,\"tags\":[3]}\n",
    );
    let text = |name: &str, more: &str| {
        format!(
            "[dataset.t]\nsource = '{name}'\n{more}\nunit.user = 'user_id'\nunit.protect = 'user'\ncolumns.user_id = 'int'\ncolumns.x = 'int'\ncolumns.tags = {{ type = 'int', bounds = [0, 9] }}\n"
        )
    };
    let mut seen = std::collections::BTreeSet::new();
    for name in ["t.parquet", "t.ndjson"] {
        let warehouse = open(&scratch, &text(name, "open = 'tags'")).await.unwrap();
        for (sql, expected) in [
            ("SELECT count(*) FROM t", 4),
            ("SELECT count(tags) * 100 + sum(tags) FROM t", 306),
            ("SELECT sum(x) FROM t", 7),
            ("SELECT sum(x) * 10 + count(*) FROM t WHERE tags > 1", 52),
            ("SELECT count(*) FROM t WHERE user_id = 7", 3),
            ("SELECT count(DISTINCT user_id) FROM t", 2),
        ] {
            assert_eq!(count(&warehouse, sql).await, expected, "{name}: {sql}");
        }
        let source = warehouse.source("t").unwrap();
        assert_eq!(source.schema.field_with_name("tags").unwrap().data_type(), &DataType::Int64);
        assert!(seen.insert(source.fingerprint(&mut NoHashes).unwrap()));
    }
    let found = message(&scratch, &text("t.parquet", "open = 'y'")).await;
    assert!(found.contains("`open` of `t` names `y`, which is no list"), "{found}");
    let found = message(&scratch, &text("t.parquet", "open = 'z'")).await;
    assert!(found.contains("`t` has no column `z`, which `open` names"), "{found}");
    scratch.write("t.csv", "user_id,x,tags\n");
    let found = message(&scratch, &text("t.csv", "open = 'tags'")).await;
    assert!(found.contains("a value of a CSV file is no list"), "{found}");
}
