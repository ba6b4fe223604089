//! Files as they are: signs, letters and packing.

use super::*;
use std::io::Write as _;

/// A private table of users, notes and numbers; `more` is what is declared of its files.
fn table(source: &str, more: &str) -> String {
    format!(
        "[dataset.t]\nsource = '{source}'\n{more}\nunit.user = 'user_id'\nunit.protect = 'user'\n\
         columns.user_id = 'int'\ncolumns.note = 'text'\ncolumns.x = 'float'\n"
    )
}

/// All rows as a text: users, notes and numbers.
async fn rows(warehouse: &Warehouse) -> String {
    let sql = "SELECT coalesce(cast(user_id AS varchar), '-') || ' ' || coalesce(note, '-') || ' ' || coalesce(cast(x AS varchar), '-') FROM t ORDER BY 1";
    let batches = warehouse.context().sql(sql).await.unwrap().collect().await.unwrap();
    let column = |batch: &RecordBatch| {
        let texts = datafusion::arrow::compute::cast(batch.column(0), &DataType::Utf8).unwrap();
        let texts = texts.as_any().downcast_ref::<StringArray>().unwrap().clone();
        texts.iter().map(|text| text.unwrap().to_owned()).collect::<Vec<_>>()
    };
    batches.iter().flat_map(column).collect::<Vec<_>>().join(" | ")
}

pub(super) fn gzip(text: &[u8]) -> Vec<u8> {
    let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    packed.write_all(text).unwrap();
    packed.finish().unwrap()
}

fn zstd(text: &[u8]) -> Vec<u8> {
    zstd::stream::encode_all(text, 1).unwrap()
}

fn utf16(text: &str) -> Vec<u8> {
    let units = [0xfeff].into_iter().chain(text.encode_utf16());
    units.flat_map(u16::to_le_bytes).collect()
}

const PLAIN: &str = "1 a, b 0.5 | 2 say \"hi\" 7.0 | 3 - -";

#[tokio::test]
async fn signs_are_those_that_are_declared() {
    let scratch = Scratch::new("written_signs");
    let comma = "user_id,note,x\n1,\"a, b\",0.5\n2,\"say \"\"hi\"\"\",7\n3,,\n";
    for (name, text, more) in [
        ("t.csv", comma, ""),
        ("t.csv", "user_id;note;x\n1;a, b;0.5\n2;\"say \"\"hi\"\"\";7\n3;;\n", "delimiter = ';'"),
        ("t.tsv", "user_id\tnote\tx\n1\ta, b\t0.5\n2\t\"say \"\"hi\"\"\"\t7\n3\t\t\n", ""),
        ("t.tsv", "user_id\tnote\tx\n1\ta, b\t0.5\n2\tsay \"hi\"\t7\n3\t\t\n", "quote = ''"),
        ("t.txt", "user_id\tnote\tx\n1\ta, b\t0.5\n2\tsay \"hi\"\t7\n3\t\t\n", "delimiter = 'tab'\nformat = 'csv'"),
        ("t.csv", "user_id|note|x\n1|'a, b'|0.5\n2|'say \"hi\"'|7\n3||\n", "delimiter = '|'\nquote = \"'\""),
        ("t.csv", "user_id,note,x\n1,\"a, b\",0.5\n2,\"say \\\"hi\\\"\",7\n3,,\n", "escape = '\\'"),
        (
            "t.csv",
            "# made by\n#\nuser_id,note,x\n1,\"a, b\",0.5\n# more, \"to come\n2,\"say \"\"hi\"\"\",7\n3,,\n",
            "comment = '#'",
        ),
        ("t.csv", "user_id,note,x\n1,\"a, b\",0.5\n2,\"say \"\"hi\"\"\",7\n3,NA,\\N\n", "null = ['NA', '\\N']"),
        ("t.csv", "1,\"a, b\",0.5\n2,\"say \"\"hi\"\"\",7\n3,,\n", "header = false"),
        ("t.csv", "\u{feff}1,\"a, b\",0.5\n2,\"say \"\"hi\"\"\",7\n3,,\n", "header = false"),
        ("t.csv", "1,zz,0.5,\"a, b\"\n2,,7,\"say \"\"hi\"\"\"\n3\n", "header = ['user_id', 'other', 'x', 'note']"),
        (
            "t.ndjson",
            "\u{feff}{\"user_id\":1,\"note\":\"a, b\",\"x\":0.5}\n{\"user_id\":2,\"note\":\"say \\\"hi\\\"\",\"x\":7}\n{\"user_id\":3}\n",
            "",
        ),
    ] {
        scratch.write(name, text);
        let warehouse = open(&scratch, &table(name, more)).await.unwrap_or_else(|error| panic!("{more}: {error}"));
        assert_eq!(rows(&warehouse).await, PLAIN, "{name} with {more}");
    }
}

#[tokio::test]
async fn packed_files_are_read_by_their_endings_or_as_declared() {
    let scratch = Scratch::new("written_packed");
    let csv = "user_id,note,x\n1,\"a, b\",0.5\n2,\"say \"\"hi\"\"\",7\n3,,\n";
    let tsv = "user_id\tnote\tx\n1\ta, b\t0.5\n2\t\"say \"\"hi\"\"\"\t7\n3\t\t\n";
    let json = "{\"user_id\":1,\"note\":\"a, b\",\"x\":0.5}\n{\"user_id\":2,\"note\":\"say \\\"hi\\\"\",\"x\":7}\n{\"user_id\":3}\n";
    // What several writers put behind one another is one text.
    let (head, tail) = csv.split_at(30);
    for (name, bytes, more) in [
        ("t.csv.gz", gzip(csv.as_bytes()), ""),
        ("t.csv.GZ", [gzip(head.as_bytes()), gzip(tail.as_bytes())].concat(), ""),
        ("t.tsv.zst", zstd(tsv.as_bytes()), ""),
        ("u.csv.zst", [zstd(head.as_bytes()), zstd(tail.as_bytes())].concat(), ""),
        ("t.ndjson.gz", gzip(json.as_bytes()), ""),
        ("t.jsonl.zst", zstd(json.as_bytes()), ""),
        ("t.csv", gzip(csv.as_bytes()), "compression = 'gzip'"),
        ("part-0", zstd(csv.as_bytes()), "compression = 'zstd'\nformat = 'csv'"),
        ("plain.csv.gz", csv.as_bytes().to_vec(), "compression = 'none'"),
        ("u.csv.gz", gzip(&utf16(csv)), "encoding = 'utf-16'"),
        ("v.csv.gz", gzip(csv.as_bytes()), "newlines_in_values = true"),
    ] {
        scratch.write(name, bytes);
        let warehouse = open(&scratch, &table(name, more)).await.unwrap_or_else(|error| panic!("{name}: {error}"));
        assert_eq!(rows(&warehouse).await, PLAIN, "{name} with {more}");
        assert_eq!(count(&warehouse, "SELECT count(*) FROM t").await, 3);
    }
}

/// More than any buffer holds, and a thread each would be given a part of a file that has none.
#[tokio::test]
async fn large_packed_files_lose_nothing() {
    let scratch = Scratch::new("written_large");
    let mut text = String::from("user_id,note,x\n");
    for user in 0..200_000 {
        writeln!(text, "{user},n{},{user}", user % 7).unwrap();
    }
    scratch.write("in/a.csv.gz", gzip(text.as_bytes()));
    scratch.write("in/b.csv.zst", zstd(text.as_bytes()));
    scratch.write("in/c.csv", &text);
    scratch.write("u.csv", utf16(&text));
    for (source, more, files) in [("in", "", 3), ("u.csv", "encoding = 'utf-16'", 1)] {
        for threads in [1, 5] {
            let tuning = Tuning { memory: None, threads: Some(threads) };
            let declared = Declaration::parse(&table(source, more)).unwrap();
            let warehouse = Warehouse::open(declared, scratch.path(), tuning).await.unwrap();
            assert_eq!(count(&warehouse, "SELECT sum(user_id) FROM t").await, files * 199_999 * 100_000);
            assert_eq!(count(&warehouse, "SELECT count(*) FROM t").await, files * 200_000);
        }
    }
}

#[tokio::test]
async fn what_is_not_packed_as_it_says_is_refused_before_anything_is_asked() {
    let scratch = Scratch::new("written_unpacked");
    let mut long = String::from("user_id,note,x\n");
    for user in 0..200_000 {
        writeln!(long, "{user},n{},{}", user * 7919 % 1000, user * 31 % 977).unwrap();
    }
    scratch.write("t.csv.gz", "user_id,note,x\n1,a,2\n");
    scratch.write("t.ndjson.zst", "{}\n");
    let packed = gzip(long.as_bytes());
    scratch.write("cut.csv.gz", &packed[..packed.len() - 9]);
    assert_eq!(
        message(&scratch, &table("t.csv.gz", "")).await,
        "`t.csv.gz` cannot be read: it is not packed as gzip to its end | pack it again, or say how it is packed: \
         compression = \"gzip\", \"zstd\" or \"none\""
    );
    assert!(message(&scratch, &table("t.ndjson.zst", "")).await.contains("not packed as zstd"));
    // One that breaks off later is read as far as that goes: nothing fails after the charge, and only the owner is told.
    let whole = zstd(long.as_bytes());
    scratch.write("cut.csv.zst", &whole[..whole.len() / 2]);
    scratch.write("half.csv.gz", &packed[..packed.len() / 2]);
    for (file, most) in [("cut.csv.gz", 200_000), ("half.csv.gz", 150_000), ("cut.csv.zst", 150_000)] {
        let warehouse = open(&scratch, &table(file, "")).await.unwrap();
        let rows = count(&warehouse, "SELECT count(*) FROM t").await;
        assert!(rows > 50_000 && rows <= most, "{file}: {rows}");
        // No row is made of a part of a line.
        let odd = "SELECT count(*) FROM t WHERE user_id IS NULL OR note <> concat('n', user_id * 7919 % 1000) OR x <> user_id * 31 % 977";
        assert_eq!(count(&warehouse, odd).await, 0, "{file}");
        let tally = warehouse.source("t").unwrap().text.as_ref().unwrap().tally().unwrap();
        assert_eq!(tally.shapes[&text::Shape::Cut].first, Some((0, rows as u64 + 2)), "{file}");
    }
}

#[tokio::test]
async fn letters_are_read_as_they_are_written() {
    let scratch = Scratch::new("written_letters");
    let expected = "1 Žofie 0.5 | 2 café 7.0";
    let text = "user_id,note,x\n1,Žofie,0.5\n2,café,7\n";
    let big: Vec<u8> = [0xfeff].into_iter().chain(text.encode_utf16()).flat_map(u16::to_be_bytes).collect();
    for (bytes, encoding) in [
        (text.as_bytes().to_vec(), "utf-8"),
        (utf16(text), "utf-16"),
        (big, "utf-16"),
        (b"user_id,note,x\n1,\x8eofie,0.5\n2,caf\xe9,7\n".to_vec(), "windows-1252"),
    ] {
        scratch.write("t.csv", bytes);
        let warehouse = open(&scratch, &table("t.csv", &format!("encoding = '{encoding}'"))).await.unwrap();
        assert_eq!(rows(&warehouse).await, expected, "{encoding}");
    }
    scratch.write("t.csv", b"user_id,note,x\n2,caf\xe9,7\n");
    assert_eq!(rows(&open(&scratch, &table("t.csv", "encoding = 'latin1'")).await.unwrap()).await, "2 café 7.0");
}

/// A heading is public, and rows are not: a heading in other letters is refused with what reads it, and a row in other letters is NULL where it is text.
#[tokio::test]
async fn other_letters_are_named_where_everybody_may_know_and_told_to_the_owner_where_not() {
    let scratch = Scratch::new("written_foreign");
    for (heading, expected) in [
        (
            utf16("user_id,note,x\n1,a,2\n"),
            "the heading of `t.csv` is not UTF-8, and seems to be UTF-16 | declare encoding = \"utf-16\", or write",
        ),
        (utf16("user_id,note,x\n1,a,2\n")[2..].to_vec(), "seems to be UTF-16 | declare encoding = \"utf-16\""),
        (
            b"user_id,note,x,pr\xe9nom\n1,a,2,b\n".to_vec(),
            "seems to be Latin-1 or Windows-1252 | declare encoding = \"latin1\" (\"windows-1252\"",
        ),
        (b"user_id,note,x,\x80\n1,a,2,b\n".to_vec(), "seems to be Windows-1252 | declare encoding = \"windows-1252\""),
    ] {
        scratch.write("t.csv", heading);
        let found = message(&scratch, &table("t.csv", "")).await;
        assert!(found.contains(expected), "{found}");
    }
    // The same bytes in a row decide nothing, also where the first line is one.
    for (name, bytes, more) in [
        ("t.csv", &b"user_id,note,x\n1,caf\xe9,2\n2,b,3\n"[..], ""),
        ("t.csv", b"\xff\xfe1,caf\xe9,2\n2,b,3\n", "header = false"),
        ("t.ndjson", b"\xff\xfe{\"user_id\":1}\n{\"user_id\":2,\"note\":\"b\",\"x\":3}\n", ""),
    ] {
        scratch.write(name, bytes);
        let warehouse = open(&scratch, &table(name, more)).await.unwrap();
        assert!(rows(&warehouse).await.contains("2 b 3.0"), "{name} {more}");
        assert_eq!(count(&warehouse, "SELECT count(*) FROM t").await, 2);
        let tally = warehouse.source("t").unwrap().text.as_ref().unwrap().tally().unwrap();
        let foreign = &tally.shapes[&text::Shape::Foreign];
        let line = if more.is_empty() && name == "t.csv" { 2 } else { 1 };
        assert_eq!((foreign.rows, foreign.first), (1, Some((0, line))), "{name} {more}");
    }
}

/// However files are written, a row that is odd leaves every other row what it was.
#[tokio::test]
async fn no_row_moves_another_however_files_are_written() {
    let odd =
        ["", "\"", "\"open", "5;\"a", "5\\", "\"5\\", "'", "#", "\u{fffe}x", "5;;;;;;;", "NA;NA;NA", "\t\t", "\\N;\\"];
    let layouts = [
        "delimiter = ';'",
        "delimiter = ';'\nquote = ''",
        "delimiter = ';'\nescape = '\\'",
        "delimiter = ';'\nquote = \"'\"\ncomment = '#'",
        "delimiter = ';'\nheader = false",
        "delimiter = ';'\nnull = ['NA', '\\N']",
        "delimiter = ';'\nencoding = 'utf-16'",
        "delimiter = ';'\nencoding = 'windows-1252'",
        "delimiter = ';'\ncompression = 'gzip'",
    ];
    for layout in layouts {
        for odd in odd {
            let scratch = Scratch::new("written_no_row");
            let heading = if layout.contains("header") { "" } else { "user_id;note;x\n" };
            let text = format!("{heading}1;a;10\n{odd}\n2;b;20\n{odd}\n3;c;30\n");
            let bytes = match layout {
                _ if layout.contains("utf-16") => utf16(&text),
                _ if layout.contains("gzip") => gzip(text.as_bytes()),
                _ => text.into_bytes(),
            };
            scratch.write("t.csv", bytes);
            let warehouse = open(&scratch, &table("t.csv", layout)).await.unwrap();
            let sql = "SELECT sum(user_id) * 100 + sum(cast(x AS bigint)) FROM t WHERE user_id < 4 AND note IN ('a', 'b', 'c')";
            assert_eq!(count(&warehouse, sql).await, 660, "{odd:?} with {layout}");
        }
    }
}

#[tokio::test]
async fn what_is_declared_of_files_has_a_meaning_for_them() {
    let scratch = Scratch::new("written_idle");
    scratch.write("t.ndjson", "{}\n");
    scratch.parquet("t.parquet", vec![("user_id", ints([1]))]);
    for (name, more, expected) in [
        ("t.ndjson", "delimiter = ';'", "`delimiter` of `t` has no meaning: its files are ndjson"),
        ("t.ndjson", "header = false", "`header` of `t`"),
        ("t.parquet", "compression = 'gzip'", "`compression` of `t` has no meaning: its files are parquet"),
        ("t.parquet", "encoding = 'latin1'", "`encoding` of `t`"),
    ] {
        let found = message(&scratch, &table(name, more)).await;
        assert!(found.starts_with(expected), "{found}");
    }
}

/// What is read of the same bytes is another question where they are read in another way.
#[tokio::test]
async fn how_files_are_read_is_part_of_their_fingerprint() {
    let scratch = Scratch::new("written_fingerprint");
    let text = "user_id,note,x\n1,a,2\n";
    scratch.write("t.csv", text);
    scratch.write("t.tsv", text);
    let mut seen = std::collections::BTreeSet::new();
    for (name, more) in [
        ("t.csv", ""),
        ("t.csv", "header = ['user_id', 'note', 'x']"),
        ("t.tsv", "header = ['user_id', 'note', 'x']"),
        ("t.csv", "quote = \"'\""),
        ("t.csv", "quote = ''"),
        ("t.csv", "escape = '\\'"),
        ("t.csv", "comment = '#'"),
        ("t.csv", "null = 'NA'"),
        ("t.csv", "header = ['user_id', 'x', 'note']"),
        ("t.csv", "encoding = 'latin1'"),
        ("t.csv", "encoding = 'windows-1252'"),
    ] {
        let warehouse =
            open(&scratch, &table(name, more)).await.unwrap_or_else(|error| panic!("{name} {more}: {error}"));
        assert!(seen.insert(warehouse.source("t").unwrap().fingerprint(&mut NoHashes).unwrap()), "{name} with {more}");
    }
}

#[tokio::test]
async fn public_files_are_asked_for_their_types_however_they_are_written() {
    let scratch = Scratch::new("written_public");
    scratch.write("t.csv.gz", gzip(b"code;name;n;odd\n7;Caf\xe9;1.5;1\n8;b;NA;x\n"));
    let text = "[dataset.t]\nsource = 't.csv.gz'\npublic = true\ndelimiter = ';'\nencoding = 'latin1'\nnull = 'NA'\n";
    let warehouse = open(&scratch, text).await.unwrap();
    let kinds: Vec<String> =
        warehouse.source("t").unwrap().columns().map(|(name, kind)| format!("{name} {kind}")).collect();
    assert_eq!(kinds, ["code int", "name text", "n float", "odd text"]);
    assert_eq!(count(&warehouse, "SELECT sum(code) * 10 + count(n) FROM t WHERE name IN ('Café', 'b')").await, 151);
}
