//! Delta tables that the package `deltalake` wrote, compared with what it reads from them itself (`tests/data/delta/make.py`).

use super::*;
use datafusion::parquet::arrow::ArrowWriter;
use datafusion::parquet::arrow::arrow_reader::{ArrowReaderOptions, ParquetRecordBatchReaderBuilder};
use serde_json::Value;
use std::fs;

fn data() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/delta")
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap().map(Result::unwrap) {
        let target = to.join(entry.file_name());
        if entry.path().is_dir() {
            copy(&entry.path(), &target);
        } else {
            fs::copy(entry.path(), target).unwrap();
        }
    }
}

/// A folder with a copy of one table, which is called `t` there.
fn table(name: &str, test: &str) -> Scratch {
    let scratch = Scratch::new(&format!("delta_{test}"));
    copy(&data().join(name), &scratch.path().join("t"));
    scratch
}

const TABLE: &str = "[dataset.t]\nsource = 't'\nunit.user = 'user_id'\nunit.protect = 'user'\n";

fn log(scratch: &Scratch, number: u64) -> PathBuf {
    scratch.path().join(format!("t/_delta_log/{number:020}.json"))
}

/// What is said where a table cannot be read; its shape where it can: all that an analyst may see before a charge.
async fn seen(scratch: &Scratch, text: &str) -> String {
    match open(scratch, text).await {
        Ok(warehouse) => {
            let views = serde_json::to_string(&warehouse.survey().unwrap()).unwrap();
            format!("{:?} {views}", warehouse.source("t").unwrap().schema)
        }
        Err(error) => format!("{} | {}", error.sentence, error.hint.unwrap_or_default()),
    }
}

#[tokio::test]
async fn tables_are_read_as_the_package_reads_them() {
    let expected: Value = serde_json::from_str(&fs::read_to_string(data().join("expected.json")).unwrap()).unwrap();
    let mut tried = 0;
    for (name, versions) in expected.as_object().unwrap() {
        let scratch = table(name, &format!("as_package_{name}"));
        for (version, read) in versions.as_object().unwrap() {
            let pinned = if version == "newest" { String::new() } else { format!("version = {version}\n") };
            let warehouse = open(&scratch, &format!("{TABLE}{pinned}")).await.unwrap();
            let number = |key: &str| read[key].as_i64().unwrap();
            let what = format!("{name}, version {version}");
            assert_eq!(count(&warehouse, "SELECT count(*) FROM t").await, number("rows"), "{what}");
            let sum = "SELECT cast(coalesce(sum(x), 0) AS bigint) FROM t";
            assert_eq!(count(&warehouse, sum).await, number("x"), "{what}");
            for (land, rows) in read["lands"].as_object().unwrap() {
                let sql = format!("SELECT count(*) FROM t WHERE coalesce(land, '') = '{land}'");
                assert_eq!(count(&warehouse, &sql).await, rows.as_i64().unwrap(), "{what}: {land:?}");
            }
            tried += 1;
        }
    }
    assert_eq!(tried, 10);
}

#[tokio::test]
async fn columns_are_those_of_the_log_unless_others_are_declared() {
    let scratch = table("appended", "columns");
    let warehouse = open(&scratch, TABLE).await.unwrap();
    let source = warehouse.source("t").unwrap();
    assert_eq!(source.format, Format::Delta);
    assert_eq!(source.files.len(), 2, "of three files in the folder");
    let columns: Vec<(&str, String)> = source.columns().collect();
    let expected = [("user_id", "int"), ("x", "int"), ("land", "text"), ("at", "timestamp"), ("more", "float")];
    assert_eq!(columns, expected.map(|(name, kind)| (name, kind.to_owned())));
    assert_eq!(count(&warehouse, "SELECT count(more) FROM t").await, 2, "NULL in files that have it not");
    assert_eq!(count(&warehouse, "SELECT count(*) FROM t WHERE at < timestamp '2024-01-05'").await, 2);
    let first = open(&scratch, &format!("{TABLE}version = 0\nformat = 'delta'\n")).await.unwrap();
    assert_eq!(first.source("t").unwrap().columns().count(), 4, "a version has its own columns");
    let declared = format!("{TABLE}columns.x = {{ type = 'text', keys = ['10', '50'] }}\n");
    let declared = open(&scratch, &declared).await.unwrap();
    assert_eq!(count(&declared, "SELECT count(*) FROM t WHERE x IN ('10', '50')").await, 2);
}

#[tokio::test]
async fn values_of_partitions_have_the_types_of_the_log_or_declared_ones() {
    let scratch = table("partitioned", "partitions");
    let warehouse = open(&scratch, TABLE).await.unwrap();
    for (sql, expected) in [
        ("SELECT count(*) FROM t WHERE day = date '2024-01-01'", 2),
        ("SELECT count(day) FROM t", 4),
        ("SELECT count(DISTINCT land) FROM t", 2),
        ("SELECT cast(sum(x) AS bigint) FROM t WHERE land = 'a=b:c'", 20),
    ] {
        assert_eq!(count(&warehouse, sql).await, expected, "{sql}");
    }
    let declared = open(&scratch, &format!("{TABLE}columns.day = 'text'\ncolumns.land = 'int'\n")).await.unwrap();
    assert_eq!(count(&declared, "SELECT count(*) * 10 + count(land) FROM t WHERE day = '2024-01-01'").await, 20);
    let found = message(&scratch, &format!("{TABLE}partitioned_by = ['day']\ncolumns.day = 'date'\n")).await;
    assert!(found.contains("`partitioned_by` of `t` has no meaning: the log of a Delta table says it"), "{found}");
}

/// Spark writes large checkpoints in several files. These are those of a real one, row by row.
#[tokio::test]
async fn a_checkpoint_may_have_several_files() {
    let scratch = table("checkpointed", "several_files");
    let folder = scratch.path().join("t/_delta_log");
    let whole = folder.join("00000000000000000008.checkpoint.parquet");
    let options = ArrowReaderOptions::new().with_skip_arrow_metadata(true);
    let file = fs::File::open(&whole).unwrap();
    let reader = ParquetRecordBatchReaderBuilder::try_new_with_options(file, options).unwrap();
    let batches: Vec<RecordBatch> = reader.build().unwrap().map(Result::unwrap).collect();
    let rows = datafusion::arrow::compute::concat_batches(&batches[0].schema(), &batches).unwrap();
    let cut = rows.num_rows() / 2;
    for (part, rows) in [(1, rows.slice(0, cut)), (2, rows.slice(cut, rows.num_rows() - cut))] {
        let name = format!("00000000000000000008.checkpoint.{part:010}.0000000002.parquet");
        let mut writer =
            ArrowWriter::try_new(fs::File::create(folder.join(name)).unwrap(), rows.schema(), None).unwrap();
        writer.write(&rows).unwrap();
        writer.close().unwrap();
    }
    fs::remove_file(&whole).unwrap();
    let warehouse = open(&scratch, TABLE).await.unwrap();
    assert_eq!(count(&warehouse, "SELECT count(*) FROM t").await, 27);
    fs::remove_file(folder.join("00000000000000000008.checkpoint.0000000001.0000000002.parquet")).unwrap();
    let found = message(&scratch, TABLE).await;
    assert!(found.contains("`t/_delta_log/00000000000000000000.json` is missing"), "{found}");
}

/// Which files are live, and that there are any, follows from rows: nothing that is said before a charge may.
#[tokio::test]
async fn no_row_that_is_deleted_changes_what_is_seen_before_a_charge() {
    let declared =
        ["", "columns.x = 'text'\n", "columns.nothing = 'int'\n", "unit.element = 'nothing'\n", "open = 'land'\n"];
    let scratch = table("emptied", "private");
    for text in declared.map(|more| format!("{TABLE}{more}")) {
        let now = seen(&scratch, &text).await;
        let before = seen(&scratch, &format!("{text}version = 0\n")).await;
        assert_eq!(now, before.replace("\"version\":0,", ""), "{text}");
    }
    let warehouse = open(&scratch, TABLE).await.unwrap();
    assert!(warehouse.source("t").unwrap().files.is_empty());
    for sql in ["SELECT count(*) FROM t", "SELECT count(*) FROM t a JOIN t b ON a.user_id = b.user_id WHERE a.x > 1"] {
        assert_eq!(count(&warehouse, sql).await, 0, "{sql}");
    }
    // A file that comes with other columns and types than the log has changes none of them.
    let scratch = table("appended", "private_types");
    let before = seen(&scratch, TABLE).await;
    let name = "part-9.parquet";
    scratch.parquet(&format!("t/{name}"), vec![("user_id", texts(["9"])), ("odd", ints([1])), ("x", texts(["no"]))]);
    fs::write(
        log(&scratch, 3),
        format!("{{\"add\":{{\"path\":\"{name}\",\"partitionValues\":{{}},\"size\":1,\"dataChange\":true}}}}\n"),
    )
    .unwrap();
    assert_eq!(seen(&scratch, TABLE).await, before);
    let warehouse = open(&scratch, TABLE).await.unwrap();
    assert_eq!(count(&warehouse, "SELECT count(*) * 100 + count(user_id) * 10 + count(x) FROM t").await, 776);
}

#[tokio::test]
async fn the_protocol_decides_what_is_refused_and_no_file_does() {
    let scratch = table("vectors", "vectors");
    let found = message(&scratch, TABLE).await;
    assert!(found.starts_with("`t` is a Delta table with `deletionVectors`, which is not understood here"), "{found}");
    assert!(found.contains("DROP FEATURE deletionVectors"), "{found}");
    assert!(open(&scratch, &format!("{TABLE}version = 0\n")).await.is_ok(), "before the feature came");
    let scratch = table("appended", "features");
    let metadata = fs::read_to_string(log(&scratch, 0)).unwrap();
    let metadata = metadata.lines().find(|line| line.contains("\"metaData\"")).unwrap().to_owned();
    let protocol = |reader: u8, features: &str| {
        format!("{{\"protocol\":{{\"minReaderVersion\":{reader},\"minWriterVersion\":7{features}}}}}\n")
    };
    let listed = |names: &str| format!(",\"readerFeatures\":[{names}],\"writerFeatures\":[{names}]");
    let mapped = metadata.replace("\"configuration\":{}", "\"configuration\":{\"delta.columnMapping.mode\":\"name\"}");
    assert_ne!(mapped, metadata);
    for (content, expected) in [
        (protocol(3, &listed("\"v2Checkpoint\"")), Some("with `v2Checkpoint`")),
        (protocol(3, &listed("\"timestampNtz\",\"variantType\"")), Some("with `variantType`")),
        (protocol(4, ""), Some("readers of version 4")),
        (protocol(2, "") + &mapped, Some("with `columnMapping`")),
        (metadata.replace("\"provider\":\"parquet\"", "\"provider\":\"orc\""), Some("with `orc`")),
        (metadata.replace("\\\"long\\\"", "\\\"variant\\\""), Some("column `user_id` is of a type that is not known")),
        (protocol(3, &listed("\"timestampNtz\",\"vacuumProtocolCheck\",\"columnMapping\"")), None),
        (protocol(2, ""), None),
    ] {
        fs::write(log(&scratch, 3), &content).unwrap();
        let found = seen(&scratch, TABLE).await;
        assert_eq!(expected.is_none(), found.contains("Int32"), "{content}\n{found}");
        assert!(found.contains(expected.unwrap_or_default()), "{content}\n{found}");
    }
}

#[tokio::test]
async fn a_damaged_log_is_named_and_nothing_of_it_is_told() {
    let secret = "part-secret-42.parquet";
    let add = |path: &str, more: &str| format!("{{\"add\":{{\"path\":\"{path}\",\"partitionValues\":{{}}{more}}}}}\n");
    let scratch = table("appended", "damaged");
    let vector = ",\"deletionVector\":{\"storageType\":\"u\"}";
    for (content, expected) in [
        (add(secret, "")[..30].to_owned(), "000003.json` is no part of a Delta log that can be read"),
        (format!("[\"{secret}\"]\n"), "000003.json` is no part of a Delta log that can be read"),
        (add(secret, vector), "000003.json` is no part of a Delta log that can be read"),
        // Whatever the order in which a commit says so.
        (
            format!("{}{{\"protocol\":{{\"minReaderVersion\":1,\"minWriterVersion\":2}}}}\n", add(secret, vector)),
            "000003.json` is no part of a Delta log that can be read",
        ),
        (add("%ff", ""), "000003.json` is no part of a Delta log that can be read"),
        (add(secret, ""), "a file that the log of `t` lists is not there"),
        (add(&format!("../{secret}"), ""), "the log of `t` lists files that are not in its folder"),
        (add(&format!("s3://b/{secret}"), ""), "the log of `t` lists files that are not in its folder"),
        (add(&format!("/{secret}"), ""), "the log of `t` lists files that are not in its folder"),
    ] {
        fs::write(log(&scratch, 3), &content).unwrap();
        let found = message(&scratch, TABLE).await;
        assert!(found.contains(expected), "{content}\n{found}");
        assert!(!found.contains("secret") && !found.contains("42"), "{found}");
    }
    scratch.write(&format!("t/{secret}"), "no Parquet");
    fs::write(log(&scratch, 3), add(secret, "")).unwrap();
    let found = message(&scratch, TABLE).await;
    assert!(
        found.contains("a file that the log of `t` lists is not a Parquet file") && !found.contains("42"),
        "{found}"
    );
    for (number, expected) in [(1, "`t/_delta_log/00000000000000000001.json` is missing"), (0, "0.json` is missing")] {
        fs::remove_file(log(&scratch, number)).unwrap();
        let found = message(&scratch, TABLE).await;
        assert!(found.contains(expected), "{found}");
    }
    let scratch = table("checkpointed", "damaged_checkpoint");
    scratch.write("t/_delta_log/00000000000000000008.checkpoint.parquet", "PAR1");
    let found = message(&scratch, TABLE).await;
    assert!(found.contains("00000008.checkpoint.parquet` is no part of a Delta log"), "{found}");
}

#[tokio::test]
async fn what_is_no_delta_table_or_no_version_is_said() {
    let scratch = table("appended", "said");
    scratch.parquet("plain/a.parquet", vec![("user_id", ints([1])), ("x", ints([1]))]);
    scratch.write("fresh/_delta_log/_last_checkpoint", "{}");
    let with = |source: &str, more: &str| format!("{}{more}\n", TABLE.replace("'t'", source));
    for (text, expected) in [
        (with("'t'", "version = 7"), "`t` has no version 7"),
        (with("'plain'", "version = 7"), "`version` of `t` has no meaning: only Delta tables have versions"),
        (
            with("'plain'", "format = 'delta'"),
            "`plain`, the source of `t`, is no Delta table: it has no folder `_delta_log`",
        ),
        (with("['t', 'plain']", ""), "the source of `t` is a Delta table and something else"),
        (with("'t'", "format = 'parquet'"), "`t` is a Delta table, whose log alone says which files are its own"),
        (with("'.'", ""), "is a Delta table, whose log alone says"),
        (with("'fresh'", ""), "the log of `fresh` has no commit"),
        (with("'t'", "delimiter = ';'"), "has no meaning: its files are delta"),
    ] {
        let found = message(&scratch, &text).await;
        assert!(found.contains(expected), "{text}\n{found}");
    }
    let found = Declaration::parse(&with("'t'", "version = -1")).unwrap_err();
    assert!(found.to_string().contains("must be a whole number, at least 0"), "{found}");
}

/// What is the same data: the same live files under the same columns, whatever version that is.
#[tokio::test]
async fn a_fingerprint_is_of_live_files_and_columns() {
    let scratch = table("partitioned", "fingerprint");
    let mark = async |text: &str| open(&scratch, text).await.unwrap().source("t").unwrap().fingerprint(&mut NoHashes);
    let first = mark(TABLE).await.unwrap();
    fs::write(log(&scratch, 2), "{\"commitInfo\":{\"operation\":\"OPTIMIZE\"}}\n").unwrap();
    scratch.write("t/part-dead.parquet", "not the table's");
    assert_eq!(mark(TABLE).await.unwrap(), first);
    assert_ne!(mark(&format!("{TABLE}version = 0\n")).await.unwrap(), first);
    let metadata = fs::read_to_string(log(&scratch, 0)).unwrap();
    let metadata = metadata.lines().find(|line| line.contains("\"metaData\"")).unwrap();
    fs::write(log(&scratch, 2), metadata.replace("\\\"integer\\\"", "\\\"long\\\"")).unwrap();
    assert_ne!(mark(TABLE).await.unwrap(), first, "another type is other data");
    let renamed = fs::read_to_string(log(&scratch, 1)).unwrap().replace("\"2024-01-01\"", "\"2024-01-09\"");
    fs::remove_file(log(&scratch, 2)).unwrap();
    fs::write(log(&scratch, 1), renamed).unwrap();
    assert_ne!(mark(TABLE).await.unwrap(), first, "rows of another day are other data, though no file changed");
}

/// Which files of the folder are the table's is private, so that those that are and those that are not are refused in the same words.
#[test]
fn the_folder_of_a_table_is_data_as_a_whole() {
    let scratch = table("overwritten", "as_a_whole");
    scratch.write("whit.toml", TABLE);
    let tables = |more: &str| {
        Tables::of(Declaration::parse(&format!("{TABLE}{more}")).unwrap(), scratch.path(), Tuning::default()).unwrap()
    };
    let (old, tables) = (tables("version = 0\n"), tables(""));
    let dead = old.warehouse().source("t").unwrap().files[0].clone();
    let source = tables.warehouse().source("t").unwrap();
    assert!(!source.files.contains(&dead));
    let live = source.files[0].clone();
    let inputs = Inputs::of(&tables);
    let mut said = std::collections::BTreeSet::new();
    for path in [dead, live, log(&scratch, 0), scratch.path().join("t/land=at/new.csv")] {
        assert!(source.holds(&path), "{path:?}");
        let error = inputs.check(&path).unwrap_err();
        assert!(error.sentence.contains("which is a Delta table as a whole"), "{error}");
        said.insert(error.sentence.replace(&path.display().to_string(), "it"));
    }
    assert_eq!(said.len(), 1, "{said:?}");
    let outside = scratch.path().join("answer.csv");
    assert!(!source.holds(&outside));
    assert_eq!(inputs.check(&outside), Ok(()));
    #[cfg(unix)]
    {
        // By the declaration beside it, and through a link.
        std::os::unix::fs::symlink(log(&scratch, 0), &outside).unwrap();
        assert!(Inputs::default().check(&outside).unwrap_err().sentence.contains("which is a Delta table as a whole"));
    }
}

#[tokio::test]
async fn a_draft_notices_a_delta_table() {
    let scratch = table("partitioned", "draft");
    let seen = inspect(&owner(), &scratch.path().join("t")).await.unwrap();
    assert_eq!((seen.format, seen.looked, seen.user.as_deref()), (Format::Delta, false, Some("user_id")));
    assert!(seen.noticed()[0].contains("Delta table"), "{:?}", seen.noticed());
    let draft = seen.draft("t", "t");
    assert!(draft.contains("no value of any row was used") && !draft.contains("partitioned_by"), "{draft}");
    assert!(open(&scratch, &draft).await.is_ok(), "{draft}");
}
