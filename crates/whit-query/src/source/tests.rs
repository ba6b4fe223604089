mod delta;
mod folders;
mod written;

use super::owner::Owner;
use super::scratch::Scratch;
use super::*;
use crate::error::Fault;
use datafusion::arrow::array::{ArrayRef, Float64Array, Int64Array, RecordBatch, StringArray};
use datafusion::arrow::datatypes::DataType;

fn ints(values: impl IntoIterator<Item = i64>) -> ArrayRef {
    Arc::new(Int64Array::from_iter_values(values))
}

fn floats(values: impl IntoIterator<Item = f64>) -> ArrayRef {
    Arc::new(Float64Array::from_iter_values(values))
}

fn texts<'a>(values: impl IntoIterator<Item = &'a str>) -> ArrayRef {
    Arc::new(StringArray::from_iter_values(values))
}

/// Two files of visits, four rows in all.
fn visits(name: &str) -> Scratch {
    let scratch = Scratch::new(name);
    let columns = |user, url, seconds| vec![("user_id", ints(user)), ("url", texts(url)), ("seconds", floats(seconds))];
    scratch.parquet("visits/a.parquet", columns([1, 1, 2], vec!["a.org", "b.org", "a.org"], [1.0, 2.0, 3.0]));
    scratch.parquet("visits/b.parquet", columns([3, 3, 3], vec!["a.org", "a.org", "a.org"], [4.0, 5.0, 6.0]));
    scratch
}

const VISITS: &str = "[dataset.visits]\nsource = 'visits/*.parquet'\nunit.user = 'user_id'\nunit.protect = 'user'\n";

async fn open(scratch: &Scratch, text: &str) -> Result<Warehouse, QueryError> {
    Warehouse::open(Declaration::parse(text)?, scratch.path(), Tuning::default()).await
}

/// What is said of a declaration that does not fit, and that it is the writer's move.
async fn message(scratch: &Scratch, text: &str) -> String {
    match open(scratch, text).await {
        Ok(_) => panic!("this was opened: {text}"),
        Err(error) => {
            assert_eq!(error.fault, Fault::Asked, "{error}");
            format!("{} | {}", error.sentence, error.hint.unwrap())
        }
    }
}

fn owner() -> Owner {
    Owner::who_may_see_every_row()
}

async fn count(warehouse: &Warehouse, sql: &str) -> i64 {
    let batches = warehouse.context().sql(sql).await.unwrap().collect().await.unwrap();
    batches[0].column(0).as_any().downcast_ref::<Int64Array>().unwrap().value(0)
}

#[tokio::test]
async fn a_glob_of_parquet_files_is_one_table() {
    let scratch = visits("open_parquet");
    let warehouse = open(&scratch, VISITS).await.unwrap();
    let source = warehouse.source("visits").unwrap();
    assert_eq!((source.files.len(), source.format), (2, Format::Parquet));
    assert_eq!(source.schema.field_with_name("url").unwrap().data_type(), &DataType::Utf8View);
    assert_eq!(count(&warehouse, "SELECT count(*) FROM visits").await, 6);
    assert_eq!(count(&warehouse, "SELECT count(DISTINCT user_id) FROM visits WHERE url = 'a.org'").await, 3);
    let error = warehouse.source("visit").err().unwrap();
    assert_eq!(error.hint.as_deref(), Some("did you mean `visits`?"));
    assert!(source.bytes().unwrap() > 100); // for the owner
}

#[tokio::test]
async fn csv_and_ndjson_are_tables_too() {
    let scratch = Scratch::new("open_text");
    scratch.write("c.csv", "user_id,note,seconds,empty\n1,\"a, b\",5,\n2,\"two\nlines\",7.5,\n");
    scratch.write("j/1.ndjson", "{\"user_id\": \"x\", \"seconds\": 1}\n{\"user_id\": \"y\"}\n");
    scratch.write("j/2.jsonl", "{\"user_id\": \"x\", \"seconds\": 2.5, \"more\": true}\n");
    let text = "[dataset.c]\nsource = 'c.csv'\nnewlines_in_values = true\nunit.user = 'user_id'\nunit.protect = 'user'\n\
                columns = { user_id = 'int', note = 'text', seconds = 'float' }\n\
                [dataset.j]\nsource = 'j'\nunit.user = 'user_id'\nunit.protect = 'user'\n\
                columns = { user_id = 'text', seconds = 'float', more = 'bool', never = 'date' }\n";
    let warehouse = open(&scratch, text).await.unwrap();
    assert_eq!(count(&warehouse, "SELECT count(*) FROM c").await, 2, "a line break in quotes ends no row");
    assert_eq!(count(&warehouse, "SELECT count(*) FROM c WHERE seconds > 6").await, 1);
    assert_eq!(count(&warehouse, "SELECT count(*) FROM j WHERE seconds > 0.5").await, 2);
    assert_eq!(count(&warehouse, "SELECT count(never) + count(more) FROM j").await, 1);
    let kind = |table: &str, column: &str| {
        warehouse.source(table).unwrap().schema.field_with_name(column).unwrap().data_type().clone()
    };
    assert_eq!((kind("c", "seconds"), kind("c", "note")), (DataType::Float64, DataType::Utf8));
    assert_eq!((kind("j", "seconds"), kind("j", "more")), (DataType::Float64, DataType::Boolean));
    assert_eq!(warehouse.source("c").unwrap().untyped, ["empty"]);
}

/// Whatever rows hold, the columns, their types, and what is said of them are the same, and each other row is what it was.
#[tokio::test]
async fn no_row_changes_a_type_or_another_row() {
    let csv = "[dataset.t]\nsource = 't.csv'\nunit.user = 'user_id'\nunit.protect = 'user'\n\
               columns = { user_id = 'int', x = 'int', note = 'text', day = 'date' }\n";
    let ndjson = &csv.replace("t.csv", "t.ndjson");
    let odd = [
        "5,12.5,a,2024-01-01",
        "5",
        "5,1,2,3,4,5,6",
        "5,\"open,1",
        "x,y,z,w",
        "\u{1},\"\"\"",
        "5,1e400,,9999-99-99",
        "\"",
        ",,,",
    ];
    let odd_bytes: Vec<Vec<u8>> =
        odd.iter().map(|line| line.as_bytes().to_vec()).chain([b"5,1,\xff\xfe,2024-01-01".to_vec()]).collect();
    let odd_json = [
        "{\"user_id\": 5, \"x\": 12.5}",
        "{",
        "[1]",
        "nonsense",
        "{\"user_id\": {\"a\": [}}",
        "{\"user_id\": 5, \"x\": \"open",
        "{\"new\": 1}",
        "{}",
        "{\"x\": 1e999, \"user_id\": 5}",
        "{\"note\": \"\\ud800\", \"day\": [1]}",
    ];
    let others = "SELECT count(*) * 1000 + sum(x) * 10 + count(DISTINCT user_id) FROM t WHERE user_id < 5";
    let files = odd_bytes.iter().map(|line| (csv, "t.csv", line.clone()));
    for (text, name, line) in
        files.chain(odd_json.iter().map(|line| (ndjson.as_str(), "t.ndjson", line.as_bytes().to_vec())))
    {
        let scratch = Scratch::new("no_row_changes");
        let row = |user: i32, x: i32| match name {
            "t.csv" => format!("{user},{x},n,2024-01-01\n"),
            _ => format!("{{\"user_id\": {user}, \"x\": {x}, \"note\": \"n\"}}\n"),
        };
        let mut bytes = if name == "t.csv" { b"user_id,x,note,day\n".to_vec() } else { Vec::new() };
        let with = |bytes: &mut Vec<u8>| (1..5).for_each(|user| bytes.extend(row(user, 2 * user).bytes()));
        with(&mut bytes);
        bytes.extend(&line);
        bytes.push(b'\n');
        with(&mut bytes);
        scratch.write(name, &bytes);
        let warehouse = open(&scratch, text).await.unwrap();
        let shown = String::from_utf8_lossy(&line).into_owned();
        let kinds: Vec<DataType> =
            warehouse.source("t").unwrap().schema.fields().iter().map(|field| field.data_type().clone()).collect();
        assert_eq!(kinds.len(), 4, "{shown}");
        assert!(kinds.contains(&DataType::Int64) && kinds.contains(&DataType::Date32), "{shown}");
        assert_eq!(count(&warehouse, others).await, 8000 + 400 + 4, "{shown}");
        assert_eq!(count(&warehouse, "SELECT count(*) FROM t").await, 9, "a line is a row: {shown}");
    }
}

/// However a file is divided among threads, it has the same rows.
#[tokio::test]
async fn threads_divide_a_file_and_lose_nothing() {
    let scratch = Scratch::new("open_divided");
    let mut text = String::from("user_id,note\n");
    for user in 0..300_000 {
        writeln!(text, "{user},n{}", user % 7).unwrap();
    }
    scratch.write("t.csv", &text);
    let declared = Declaration::parse(
        "[dataset.t]\nsource = 't.csv'\nunit.user = 'user_id'\nunit.protect = 'user'\ncolumns.user_id = 'int'\n",
    )
    .unwrap();
    for threads in [1, 3, 16] {
        let tuning = Tuning { memory: None, threads: Some(threads) };
        let warehouse = Warehouse::open(declared.clone(), scratch.path(), tuning).await.unwrap();
        assert_eq!(count(&warehouse, "SELECT count(DISTINCT user_id) FROM t").await, 300_000);
        assert_eq!(count(&warehouse, "SELECT sum(user_id) FROM t").await, 299_999 * 150_000);
        assert_eq!(count(&warehouse, "SELECT count(*) FROM t").await, 300_000);
    }
}

#[tokio::test]
async fn columns_go_by_their_names_in_each_file() {
    let scratch = Scratch::new("open_headings");
    scratch.write("in/a.csv", "user_id,x\n1,10\n");
    scratch.write("in/b.csv", "\u{feff}x,\"user_id\",more\r\n20,2,z\r\n");
    scratch.write("in/c.csv", "user_id\n3\n");
    scratch.write("in/d.csv", "");
    let text = "[dataset.t]\nsource = 'in'\nunit.user = 'user_id'\nunit.protect = 'user'\ncolumns = { user_id = 'int', x = 'int' }\n";
    let warehouse = open(&scratch, text).await.unwrap();
    assert_eq!(count(&warehouse, "SELECT sum(user_id) * 100 + sum(x) FROM t").await, 630);
    assert_eq!(count(&warehouse, "SELECT count(*) * 10 + count(x) FROM t").await, 32, "what a file has not is NULL");
    assert_eq!(warehouse.source("t").unwrap().untyped, ["more"]);
}

#[tokio::test]
async fn private_lines_need_types_and_are_shown_how_to_write_them() {
    let scratch = Scratch::new("open_untyped");
    scratch.write("t.csv", "user_id,x,secret\n1,2,3\n");
    scratch.write("t.ndjson", "{\"user_id\": 1, \"x\": 2}\n");
    let text =
        |more: &str| format!("[dataset.t]\nsource = 't.csv'\nunit.user = 'user_id'\nunit.protect = 'user'\n{more}\n");
    for (declared, expected) in [
        (text(""), "`t.user_id`, which `unit.user` names, has no declared type | csv files have no types"),
        (
            text("columns.user_id = 'int'\ncolumns.x.bounds = [0, 1]"),
            "`t.x`, which `columns.x` names, has no declared type",
        ),
        (text("columns.user_id = 'int'\nunit.element = 'lower(secret)'"), "declare columns.secret.type = "),
        (
            text("columns = { user_id = 'int', y = 'int' }"),
            "`t` has no column `y`, which `columns.y` names | its columns are: user_id",
        ),
        (text("columns = { user_id = 'int', x = 'list(int)' }"), "a value of a CSV file is no list"),
        (
            text("").replace("t.csv", "t.ndjson"),
            "`t.user_id`, which `unit.user` names, has no declared type | ndjson files",
        ),
    ] {
        let found = message(&scratch, &declared).await;
        assert!(found.contains(expected), "{found}");
    }
    let public = "[dataset.t]\nsource = 't.csv'\npublic = true\ncolumns.x = 'text'\n";
    let public = open(&scratch, public).await.unwrap();
    let kinds: Vec<_> =
        public.source("t").unwrap().schema.fields().iter().map(|field| field.data_type().clone()).collect();
    assert_eq!(kinds, [DataType::Int64, DataType::Utf8, DataType::Int64], "public files may be asked for the rest");
}

/// Files of one table whose types differ: the declared one wins, and what does not fit is NULL.
#[tokio::test]
async fn declared_types_win_over_those_of_parquet_files() {
    let scratch = Scratch::new("open_parquet_types");
    scratch.parquet("in/a.parquet", vec![("user_id", ints([1, 2])), ("x", ints([5, 6]))]);
    scratch.parquet("in/b.parquet", vec![("x", floats([7.0, f64::NAN])), ("user_id", texts(["3", "nobody"]))]);
    scratch.parquet("in/c.parquet", vec![("user_id", ints([4]))]);
    let text = "[dataset.t]\nsource = 'in'\nunit.user = 'user_id'\nunit.protect = 'user'\ncolumns = { user_id = 'int', x = 'int' }\n";
    let warehouse = open(&scratch, text).await.unwrap();
    assert_eq!(count(&warehouse, "SELECT sum(user_id) * 100 + sum(x) FROM t").await, 1018);
    assert_eq!(count(&warehouse, "SELECT count(*) * 100 + count(user_id) * 10 + count(x) FROM t").await, 543);
    assert_eq!(count(&warehouse, "SELECT count(*) FROM t WHERE x > 5").await, 2, "filters too");
}

/// What one user wrote must never become another user's row, however large the file and however many threads read it.
#[tokio::test]
async fn a_text_with_line_breaks_adds_no_rows() {
    let scratch = Scratch::new("open_injected");
    let mut text = String::from("user_id,note\n");
    for user in 0..600_000 {
        writeln!(text, "{user},\"hello\n7,mine\n7,mine\n\"").unwrap();
    }
    assert!(text.len() > 12 << 20, "the engine cuts files of ten mebibytes and more");
    scratch.write("c.csv", text);
    let declared = "[dataset.c]\nsource = 'c.csv'\nnewlines_in_values = true\nunit.user = 'user_id'\nunit.protect = 'user'\ncolumns = { user_id = 'int', note = 'text' }\n";
    let tuning = Tuning { memory: None, threads: Some(4) };
    let warehouse = Warehouse::open(Declaration::parse(declared).unwrap(), scratch.path(), tuning).await.unwrap();
    assert_eq!(count(&warehouse, "SELECT count(*) FROM c").await, 600_000);
    assert_eq!(count(&warehouse, "SELECT count(*) FROM c WHERE user_id = 7").await, 1);

    // Without the precaution the same engine cuts the file within quotes, and reads other rows or none at all.
    let (context, path) = (warehouse.context(), scratch.path().join("c.csv"));
    let careless = datafusion::prelude::CsvReadOptions::new().schema(&warehouse.source("c").unwrap().schema);
    context.register_csv("cut", path.to_str().unwrap(), careless).await.unwrap();
    let rows = context.sql("SELECT user_id, note FROM cut").await.unwrap().collect().await;
    let rows = rows.map(|batches| batches.iter().map(RecordBatch::num_rows).sum::<usize>());
    assert!(rows.as_ref().ok() != Some(&600_000), "this test could not have failed: {rows:?}");
}

#[tokio::test]
async fn an_empty_table_is_a_table() {
    let scratch = Scratch::new("open_empty");
    scratch.parquet("e.parquet", vec![("user_id", ints([])), ("x", floats([]))]);
    scratch.write("e.csv", "user_id,x\n");
    scratch.write("nothing.csv", "");
    scratch.write("nothing.ndjson", "");
    for file in ["e.parquet", "e.csv", "nothing.csv", "nothing.ndjson"] {
        let text = format!(
            "[dataset.e]\nsource = '{file}'\nunit.user = 'user_id'\nunit.protect = 'user'\ncolumns.user_id = 'int'\n"
        );
        let warehouse = open(&scratch, &text).await.unwrap();
        assert_eq!(count(&warehouse, "SELECT count(*) FROM e").await, 0, "{file}");
    }
}

/// Two files with 100 different values each: together more than an index of eight bits can tell apart.
#[tokio::test]
async fn dictionaries_with_narrow_indices_hold_as_many_values_as_there_are() {
    use datafusion::arrow::array::{DictionaryArray, Int8Array, StringArray};
    use datafusion::arrow::datatypes::{DataType, Int8Type};
    let scratch = Scratch::new("open_dictionary");
    for part in 0..2 {
        let names: StringArray = (0..100).map(|i| Some(format!("shop {}", 100 * part + i))).collect();
        let keys: Int8Array = (0..100_i8).map(Some).collect();
        let shops = DictionaryArray::<Int8Type>::try_new(keys, Arc::new(names)).unwrap();
        let users: Int64Array = (0..100).map(Some).collect();
        let columns: Vec<(&str, ArrayRef)> = vec![("user_id", Arc::new(users)), ("shop", Arc::new(shops))];
        scratch.parquet(&format!("d/{part}.parquet"), columns);
    }
    let text = "[dataset.d]\nsource = 'd/*.parquet'\nunit.user = 'user_id'\nunit.protect = 'user'\nunit.caps = { groups = 9, rows_per_group = 1 }\n";
    let warehouse = open(&scratch, text).await.unwrap();
    let kind = warehouse.source("d").unwrap().schema.field_with_name("shop").unwrap().data_type().clone();
    assert!(!matches!(kind, DataType::Dictionary(..)), "{kind}");
    assert_eq!(count(&warehouse, "SELECT count(*) FROM (SELECT shop FROM d GROUP BY shop)").await, 200);
}

#[tokio::test]
async fn odd_file_names_are_only_names() {
    let scratch = Scratch::new("open_odd");
    for (number, name) in ["[a].csv", "a b.csv", "50%41.csv", "ü#?.csv", "a:b.csv", "q'q.csv"].iter().enumerate() {
        scratch.write(&format!("in/{name}"), format!("user_id,x\n{number},1\n"));
    }
    let text = "[dataset.t]\nsource = 'in'\nunit.user = 'user_id'\nunit.protect = 'user'\ncolumns.user_id = 'int'\n";
    let warehouse = open(&scratch, text).await.unwrap();
    assert_eq!(count(&warehouse, "SELECT count(DISTINCT user_id) FROM t").await, 6);
}

#[tokio::test]
async fn files_that_cannot_be_read_are_named() {
    let scratch = visits("bad_files");
    let good = std::fs::read(scratch.path().join("visits/a.parquet")).unwrap();
    scratch.write("cut/a.parquet", &good[..good.len() - 20]);
    scratch.write("none/a.parquet", "");
    scratch.write("text/a.parquet", "user_id,url\n1,secret\n");
    scratch.write("ragged.csv", "user_id,x\n1,2\n1,2,secret\n");
    scratch.write("empty.csv", "");
    scratch.write("twice.csv", "user_id,x,x\n1,2,3\n");
    scratch.write("broken.ndjson", "{\"user_id\": 1}\n{\"user_id\": secret\n");
    scratch.write("list.ndjson", "[{\"user_id\": 1, \"x\": \"secret\"}]\n");
    let public = async |file: &str| message(&scratch, &format!("[dataset.t]\nsource = '{file}'\npublic = true")).await;
    scratch.write("odd.xlsx", "");
    let ask = async |file: &str| message(&scratch, &VISITS.replace("visits/*.parquet", file)).await;
    for file in ["cut/a.parquet", "none/a.parquet", "text/a.parquet"] {
        let found = ask(file).await;
        assert!(found.starts_with(&format!("`{file}` is not a Parquet file that can be read: ")), "{found}");
        assert!(!found.contains("secret"), "{found}");
    }
    for (file, expected) in [
        ("odd.xlsx", "extension that is not known: `.xlsx`"),
        ("visits/*.csv", "no file matches `visits/*.csv`, the source of `visits`"),
        ("visits/c.parquet", "no file matches `visits/c.parquet`, the source of `visits` | did you mean `a.parquet`?"),
    ] {
        let found = ask(file).await;
        assert!(found.contains(expected) && !found.contains("secret"), "{file}: {found}");
    }
    for (file, expected) in [
        ("ragged.csv", "`ragged.csv` cannot be read as CSV, near line 3: a line has more or fewer values"),
        ("empty.csv", "`empty.csv` is empty, so it has no columns"),
        ("twice.csv", "`twice.csv` has two columns called `x`"),
        ("broken.ndjson", "`broken.ndjson` cannot be read as NDJSON"),
        ("list.ndjson", "`list.ndjson` cannot be read as NDJSON"),
    ] {
        let found = public(file).await;
        assert!(found.contains(expected) && !found.contains("secret"), "{file}: {found}");
        // What is private is never asked, so nothing can be wrong with it: but for the heading, which is public.
        let private = format!("{}columns = {{ user_id = 'int', x = 'int' }}", VISITS.replace("visits/*.parquet", file));
        match file {
            "twice.csv" => assert!(message(&scratch, &private).await.contains("two columns called `x`")),
            _ => assert!(open(&scratch, &private).await.is_ok(), "{file}"),
        }
    }
}

#[tokio::test]
async fn files_that_disagree_are_named_with_the_column() {
    let scratch = Scratch::new("disagree");
    let user = || ("user_id", ints([1]));
    scratch.parquet("less/a.parquet", vec![user(), ("x", ints([1]))]);
    scratch.parquet("less/b.parquet", vec![user()]);
    scratch.parquet("more/a.parquet", vec![user()]);
    scratch.parquet("more/b.parquet", vec![user(), ("x", ints([1]))]);
    scratch.parquet("type/a.parquet", vec![user(), ("x", ints([1]))]);
    scratch.parquet("type/b.parquet", vec![user(), ("x", texts(["secret"]))]);
    scratch.parquet("order/a.parquet", vec![user(), ("x", ints([1]))]);
    scratch.parquet("order/b.parquet", vec![("x", ints([5])), ("user_id", ints([2]))]);
    scratch.write("csv/a.csv", "user_id,x\n1,2\n");
    scratch.write("csv/b.csv", "x,user_id\n1,2\n");
    scratch.write("date/a.csv", "user_id,x\n1,2024-01-01\n");
    scratch.write("date/b.csv", "user_id,x\n1,17\n");
    let text = |folder: &str| VISITS.replace("visits/*.parquet", folder);
    for (folder, expected) in [
        ("less", "`less/b.parquet` has no column `x`, which `less/a.parquet` has"),
        ("more", "`more/a.parquet` has no column `x`, which `more/b.parquet` has"),
        ("type", "column `x` is a whole number in `type/a.parquet` and text in `type/b.parquet`"),
        ("csv", "column `x` stands in place 2 in `csv/a.csv` and in place 1 in `csv/b.csv`"),
        ("date", "column `x` is a date in `date/a.csv` and a whole number in `date/b.csv`"),
    ] {
        let found = match folder {
            "csv" | "date" => message(&scratch, &format!("[dataset.t]\nsource = '{folder}'\npublic = true")).await,
            _ => message(&scratch, &text(folder)).await,
        };
        assert!(found.starts_with(expected), "{found}");
    }
    let order = open(&scratch, &text("order")).await.unwrap();
    assert_eq!(count(&order, "SELECT sum(user_id) FROM visits").await, 3, "Parquet columns go by their names");
    assert_eq!(count(&order, "SELECT sum(x) FROM visits").await, 6);
}

#[tokio::test]
async fn a_declaration_that_does_not_fit_the_columns_is_refused_with_what_does_not_fit() {
    let scratch = visits("unfit");
    scratch.write("countries.csv", "code,size\nat,1\n");
    scratch.write("lists.ndjson", "{\"user_id\": [1], \"x\": 1}\n");
    let countries = "[dataset.countries]\nsource = 'countries.csv'\npublic = true\n";
    let list = "[dataset.lists]\nsource = 'lists.ndjson'\nunit.user = 'user_id'\nunit.protect = 'user'\ncolumns.user_id = 'list(int)'\n";
    for (text, expected) in [
        (
            VISITS.replace("'user_id'", "'usr_id'"),
            "`visits` has no column `usr_id`, which `unit.user` names | did you mean `user_id`?",
        ),
        (
            VISITS.replace("'user_id'", "'seconds'"),
            "`visits.seconds` says whose a row is, but is a number, and numbers that are rounded",
        ),
        (list.to_owned(), "`lists.user_id` says whose a row is, but is a list"),
        (
            format!("{VISITS}unit.public = ['country']"),
            "`visits` has no column `country`, which `unit.public` names | its columns are: user_id, url, seconds",
        ),
        (
            format!("{VISITS}unit.label = 'secnds'").replace("protect = 'user'", "protect = 'label'"),
            "which `unit.label` names | did you mean `seconds`?",
        ),
        (format!("{VISITS}columns.second.bounds = [0, 1]"), "which `columns.second` names | did you mean `seconds`?"),
        (format!("{VISITS}columns.url.bounds = [0, 1]"), "`visits.url` has bounds, but is text"),
        (format!("{VISITS}columns.url.bounds = 'auto'"), "`visits.url` has bounds, but is text"),
        (format!("{VISITS}columns.seconds.keys = [1]"), "`visits.seconds` has keys to group by, but is a number"),
        (
            format!("{VISITS}columns.url.keys = 'countries.cod'\n{countries}"),
            "`countries` has no column `cod`, which `columns.url.keys of `visits`` names | did you mean `code`?",
        ),
        (format!("{VISITS}unit.element = 'dat'"), "`unit.element` of `visits` is `dat`, which cannot be evaluated"),
        (format!("{VISITS}unit.element = 'lower(ur)'"), "did you mean `url`?"),
        (format!("{VISITS}unit.element = 'nosuch(url)'"), "which cannot be evaluated"),
        (format!("{VISITS}unit.element = 'url ||'"), "which cannot be evaluated"),
        (
            format!("{VISITS}unit.element = 'seconds'"),
            "`visits.seconds` says which element a row falls into, but is a number",
        ),
        (format!("{VISITS}unit.element = 'random()'"), "depends on more than the row"),
        (format!("{VISITS}unit.element = 'max(url)'"), "depends on more than the row"),
        (
            format!("{VISITS}unit.element = {{ column = 'uri', dictionary = {{ a = 'b' }}, unknown = 'c' }}"),
            "which `unit.element` names | did you mean `url`?",
        ),
        (
            format!("{VISITS}unit.element = {{ column = 'url', file = 'no.partition' }}"),
            "there is no partition file `no.partition`",
        ),
    ] {
        let found = message(&scratch, &text).await;
        assert!(found.contains(expected), "{text}\n{found}");
    }
    for sound in [
        "unit.element = 'url'",
        "unit.element = 'lower(url)'",
        "unit.element = 'registrable_domain(url)'",
        "columns.seconds.bounds = [0, 9]",
        "columns.url.keys = ['a.org']",
    ] {
        open(&scratch, &format!("{VISITS}{sound}")).await.unwrap_or_else(|error| panic!("{sound}: {error}"));
    }
}

#[tokio::test]
async fn keys_between_tables_have_one_type() {
    let scratch = Scratch::new("through");
    scratch.write("orders.csv", "customer_id,x\n1,2\n");
    scratch.write("customers.csv", "id,name\n1,n\n");
    scratch.write("named.csv", "id,name\nk1,n\n");
    let text = |customers: &str, kind: &str| {
        format!(
            "[dataset.orders]\nsource = 'orders.csv'\nunit.user = 'orders.customer_id -> customers.id'\nunit.protect = 'user'\ncolumns.customer_id = 'int'\n\
             [dataset.customers]\nsource = '{customers}'\nunit.user = 'id'\nunit.protect = 'user'\ncolumns.id = '{kind}'\n"
        )
    };
    assert!(open(&scratch, &text("customers.csv", "int")).await.is_ok());
    // Who pays is said, and not that there is no budget.
    let paid = text("customers.csv", "int") + "budget.user = { epsilon = 1.0, delta = 1e-6, currency = 'sum' }\n";
    let views = open(&scratch, &paid).await.unwrap().survey().unwrap();
    let orders = views.iter().find(|view| view.name == "orders").unwrap();
    assert_eq!(orders.pays_from.as_deref(), Some("customers"));
    let said = |word: &str| orders.missing.iter().filter(|missing| missing.contains(word)).count();
    assert_eq!((said("paid for from the budget of `customers`"), said("no budget")), (1, 0), "{:?}", orders.missing);
    assert_eq!(said("only questions with δ = 0 are answered"), 1, "{:?}", orders.missing);
    let unpaid = open(&scratch, &text("customers.csv", "int")).await.unwrap().survey().unwrap();
    let orders = unpaid.iter().find(|view| view.name == "orders").unwrap();
    assert!(orders.missing.iter().any(|missing| missing.contains("which has none: every question is refused")));
    let found = message(&scratch, &text("named.csv", "text")).await;
    assert!(
        found.starts_with(
            "`orders.customer_id -> customers.id` does not lead anywhere: the one is a whole number, the other text"
        ),
        "{found}"
    );
}

#[tokio::test]
async fn a_fingerprint_is_of_the_content() {
    let scratch = visits("fingerprint");
    let fingerprint =
        async || open(&scratch, VISITS).await.unwrap().source("visits").unwrap().fingerprint(&mut NoHashes).unwrap();
    let first = fingerprint().await;
    assert_eq!((first.len(), fingerprint().await), (64, first.clone()));
    let copy = visits("fingerprint_copy");
    let elsewhere = open(&copy, VISITS).await.unwrap().source("visits").unwrap().fingerprint(&mut NoHashes).unwrap();
    assert_eq!(elsewhere, first, "wherever the files are");
    scratch
        .parquet("visits/c.parquet", vec![("user_id", ints([9])), ("url", texts(["x"])), ("seconds", floats([0.0]))]);
    assert_ne!(fingerprint().await, first);
}

#[tokio::test]
async fn an_inspection_knows_names_and_types_only() {
    let scratch = visits("inspect");
    let seen = inspect(&owner(), &scratch.path().join("visits")).await.unwrap();
    assert_eq!((seen.files, seen.format, seen.user.as_deref()), (2, Format::Parquet, Some("user_id")));
    assert_eq!((seen.url.as_deref(), seen.numbers.as_slice()), (Some("url"), ["seconds".to_owned()].as_slice()));
    let draft = seen.draft("visits", "visits");
    open(&scratch, &draft).await.unwrap();
    let other = Scratch::new("inspect_other");
    for file in ["visits/a.parquet", "visits/b.parquet"] {
        other.parquet(file, vec![("user_id", ints([9])), ("url", texts(["x"])), ("seconds", floats([-1e9]))]);
    }
    let same = inspect(&owner(), &other.path().join("visits")).await.unwrap().draft("visits", "visits");
    assert_eq!(same, draft, "other values, the same draft");
    let error = inspect(&owner(), &scratch.path().join("nothing.csv")).await.unwrap_err();
    assert!(error.sentence.contains("no file matches"), "{error}");
}

#[tokio::test]
async fn a_survey_shows_the_ladder_and_what_is_missing() {
    let scratch = visits("survey");
    scratch.write("sites.csv", "url,size\na.org,1\n");
    let text = "[dataset.visits]\nsource = 'visits'\nunit.user = 'user_id'\nunit.element = 'url'\nunit.protect = 'element'\n\
                unit.caps = { elements_per_user = 4 }\ncolumns.url.keys = 'sites.url'\n\
                budget.element = { epsilon = 3, delta = 1e-6 }\nbudget.analyst.eve.user = { epsilon = 1 }\n\
                [dataset.sites]\nsource = 'sites.csv'\npublic = true\n";
    let views = open(&scratch, text).await.unwrap().survey().unwrap();
    let (sites, visits) = (&views[0], &views[1]);
    assert!(sites.public && sites.unit.is_none() && sites.rungs.is_empty() && sites.missing.is_empty());
    assert_eq!(sites.columns[0].role, Some("public"));
    assert_eq!(visits.unit.as_deref(), Some("element (user_id, url), replace"));
    let rungs: Vec<_> = visits.rungs.iter().map(|rung| (rung.unit.as_str(), rung.holds, rung.caps.join(" "))).collect();
    assert_eq!(
        rungs,
        [("element (user_id, url)", 1, String::new()), ("user (user_id)", 8, "elements_per_user = 4".to_owned())]
    );
    assert_eq!(visits.rungs[0].budgets[0].to_string(), "ε = 3, δ = 1e-6");
    assert_eq!(visits.rungs[1].budgets[0].to_string(), "eve: ε = 1");
    assert_eq!(
        (visits.columns[0].role, visits.columns[1].keys.as_ref().unwrap().to_string()),
        (Some("user"), "those of sites.url".to_owned())
    );
    assert_eq!(
        visits.missing,
        [
            "no bounds on `seconds`: sums, means and quantiles of it are refused until it has some, or \"auto\"",
            "no unit.caps.rows_per_element: each question has to say how many rows of one element count in a group, or is refused",
            "no unit.caps.groups: a question with GROUP BY may have to say to how many groups one element contributes",
            "no query.epsilon: each question has to say its ε"
        ]
    );
    let json = serde_json::to_value(visits).unwrap();
    assert_eq!(json["rungs"][1]["rung"], "user");
    assert_eq!(json["columns"][2]["type"], "a number");

    let bare = "[dataset.visits]\nsource = 'visits'\nunit.user = 'user_id'\nunit.protect = 'event'\ncolumns.seconds.bounds = [0, 9]";
    let views = open(&scratch, bare).await.unwrap().survey().unwrap();
    assert!(views[0].missing[0].starts_with("no budget: every question is refused"), "{:?}", views[0].missing);
    assert!(views[0].missing[1].starts_with("no unit.caps.rows_per_user: what a question costs one user has no bound"));
    assert_eq!(views[0].columns[2].bounds.as_ref().unwrap().to_string(), "0 to 9");
}

#[tokio::test]
async fn little_memory_is_enough_to_open_and_count() {
    let scratch = visits("little_memory");
    let tuning = Tuning { memory: Some(16 << 20), threads: Some(2) };
    let warehouse = Warehouse::open(Declaration::parse(VISITS).unwrap(), scratch.path(), tuning).await.unwrap();
    assert_eq!(warehouse.tuning(), tuning);
    assert_eq!(
        count(&warehouse, "SELECT count(*) FROM (SELECT DISTINCT url, seconds FROM visits ORDER BY seconds)").await,
        6
    );
}
