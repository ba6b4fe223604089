//! README.md and docs/ as somebody follows them: every `toml` block is written where it belongs, and every `sh` block is run as it is printed,
//! by the real binary, in one folder a page. What a page takes for granted (the reader's own data) is made here.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on should say where")]

use datafusion::arrow::array::{
    ArrayRef, Float32Builder, Float64Array, Int64Array, ListBuilder, RecordBatch, StringArray,
};
use datafusion::parquet::arrow::ArrowWriter;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;

/// A block of a page: its language and its text.
struct Block {
    language: String,
    text: String,
    line: usize,
}

fn page(name: &str) -> Vec<Block> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(name);
    let text = std::fs::read_to_string(&path).unwrap();
    let mut blocks: Vec<Block> = Vec::new();
    let mut open = false;
    for (number, line) in text.lines().enumerate() {
        match (line.strip_prefix("```"), open) {
            (Some(language), false) => {
                blocks.push(Block { language: language.to_owned(), text: String::new(), line: number + 2 });
                open = true;
            }
            (Some(_), true) => open = false,
            (None, true) => {
                let _ = writeln!(blocks.last_mut().unwrap().text, "{line}");
            }
            (None, false) => {}
        }
    }
    assert!(!open && blocks.len() > 3, "{name} has blocks, and all of them end");
    blocks
}

fn folder(name: &str) -> PathBuf {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("docs").join(name);
    let _ = std::fs::remove_dir_all(&folder); // it may not be there
    std::fs::create_dir_all(&folder).unwrap();
    folder
}

/// Runs lines of a shell in a folder, where `whit` is the binary that was built.
fn run(folder: &Path, lines: &str, at: &str) {
    let binary = Path::new(env!("CARGO_BIN_EXE_whit")).parent().unwrap();
    let path = format!("{}:{}", binary.display(), std::env::var("PATH").unwrap_or_default());
    let done = Command::new("sh")
        .args(["-e", "-x", "-c", lines])
        .current_dir(folder)
        .env("PATH", path)
        .env("WHIT_STATE", folder.join("state"))
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let talk = String::from_utf8_lossy(&done.stderr);
    assert!(done.status.success(), "{at} ended with {:?}:\n{talk}", done.status.code());
    assert!(!talk.contains("panicked"), "{at}: {talk}");
}

/// Where a block of TOML belongs; nothing where it is a part of a file that is shown elsewhere.
fn place(text: &str) -> Option<&'static str> {
    if text.contains("[dataset.") {
        Some("whit.toml")
    } else if text.contains("[[arm]]") {
        Some("experiment.toml")
    } else if text.contains("dataset = ") {
        Some("train.toml")
    } else {
        None
    }
}

/// Follows a page. Lines of `cargo` are for whoever has the repository: they build what is tested here.
fn follow(name: &str, folder: &Path) -> Vec<Block> {
    let (mut rest, mut ran) = (Vec::new(), 0);
    for block in page(name) {
        let at = format!("{name}, line {}", block.line);
        match block.language.as_str() {
            "toml" => match place(&block.text) {
                Some(file) => std::fs::write(folder.join(file), &block.text).unwrap(),
                None => rest.push(block),
            },
            "sh" => {
                let lines: String = block
                    .text
                    .lines()
                    .filter(|line| !line.starts_with("cargo "))
                    .fold(String::new(), |text, line| text + line + "\n");
                ran += lines.matches("whit ").count();
                run(folder, &lines, &at);
            }
            "rust" | "text" => {} // README's Rust is tried as documentation of the crate
            other => panic!("{at}: nobody tries a block of `{other}`"),
        }
    }
    assert!(ran > 3, "{name} shows commands");
    rest
}

fn parquet(path: &Path, columns: Vec<(&str, ArrayRef)>) {
    let batch = RecordBatch::try_from_iter(columns).unwrap();
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    let mut writer = ArrowWriter::try_new(std::fs::File::create(path).unwrap(), batch.schema(), None).unwrap();
    writer.write(&batch).unwrap();
    writer.close().unwrap();
}

/// Words with two numbers each, in two clouds.
fn vectors(folder: &Path, words: usize) {
    let mut lists = ListBuilder::new(Float32Builder::new());
    for i in 0..words {
        lists.values().append_value((i % 2) as f32 * 10.0);
        lists.values().append_value((i / 2) as f32 / 10.0);
        lists.append(true);
    }
    let names: StringArray = (0..words).map(|i| Some(format!("w{i}"))).collect();
    parquet(&folder.join("vectors.parquet"), vec![("word", Arc::new(names)), ("vector", Arc::new(lists.finish()))]);
}

/// Nothing is made beforehand: the README makes what it asks about.
#[test]
fn the_readme_runs_as_printed() {
    let folder = folder("readme");
    let rest = follow("README.md", &folder);
    assert!(rest.is_empty(), "every declaration of the README is whole");
    assert!(folder.join("model.safetensors").exists() && folder.join("model.card.txt").exists());
}

#[test]
fn the_first_day_runs_as_printed() {
    let folder = folder("first-day");
    let rest = follow("docs/first-day.md", &folder);
    assert!(rest.is_empty(), "every declaration of the page is whole");
    for made in ["visits.html", "model.safetensors", "ledger.jsonl"] {
        assert!(folder.join(made).exists(), "{made} was written");
    }
}

#[test]
fn the_commands_at_a_glance_run_as_printed() {
    let folder = folder("commands");
    let rows = 40_000_usize;
    for part in 0..2 {
        let of = move |i: usize| i * 2 + part;
        let users: Int64Array = (0..rows).map(|i| Some((of(i) % 5000) as i64)).collect();
        let urls: StringArray =
            (0..rows).map(|i| Some(format!("https://www.site{}.org/p{}", of(i) / 5000 % 9, i % 7))).collect();
        let countries: StringArray = (0..rows).map(|i| Some(["at", "de", "ch"][of(i) % 3])).collect();
        let words: StringArray = (0..rows).map(|i| Some(format!("w{}", of(i) * 7 % 60))).collect();
        let hours: Int64Array = (0..rows).map(|i| Some((of(i) * 5 % 24) as i64)).collect();
        let seconds: Float64Array = (0..rows).map(|i| Some((of(i) * 37 % 600) as f64)).collect();
        let bought: Int64Array = (0..rows).map(|i| Some(i64::from(of(i) * 37 % 600 > 300))).collect();
        let columns: Vec<(&str, ArrayRef)> = vec![
            ("user_id", Arc::new(users)),
            ("url", Arc::new(urls)),
            ("country", Arc::new(countries)),
            ("word", Arc::new(words)),
            ("hour", Arc::new(hours)),
            ("seconds", Arc::new(seconds)),
            ("bought", Arc::new(bought)),
        ];
        parquet(&folder.join(format!("visits/{part}.parquet")), columns);
    }
    vectors(&folder, 60);
    let words: String = (0..60).fold(String::new(), |text, i| text + &format!("w{i}\n"));
    std::fs::write(folder.join("words.txt"), words).unwrap();
    let rest = follow("docs/commands.md", &folder);
    assert!(rest.is_empty(), "every declaration of the page is whole");
    for made in ["out.html", "model.safetensors", "predicted.csv", "trade-off.svg"] {
        assert!(folder.join(made).exists(), "{made} was written");
    }
}

#[test]
fn the_page_about_tables_runs_as_printed() {
    let folder = folder("tables");
    vectors(&folder, 300);
    assert!(follow("docs/tables.md", &folder).is_empty());
    assert!(folder.join("answer.html").exists() && folder.join("ledger.jsonl").exists());
}

/// What PyTorch would write of `nn.Sequential(nn.Linear(2, 16), nn.ReLU(), nn.Linear(16, 1))`.
fn start(path: &Path) {
    let tensor = |shape: &[usize], start: usize, end: usize| serde_json::json!({ "dtype": "F32", "shape": shape, "data_offsets": [4 * start, 4 * end] });
    let header = serde_json::json!({
        "0.weight": tensor(&[16, 2], 0, 32),
        "0.bias": tensor(&[16], 32, 48),
        "2.weight": tensor(&[1, 16], 48, 64),
        "2.bias": tensor(&[1], 64, 65),
    });
    let header = header.to_string();
    let numbers: Vec<u8> = (0..65_u16).flat_map(|i| f32::from(i).sin().to_le_bytes()).collect();
    let length = (header.len() as u64).to_le_bytes();
    std::fs::write(path, [&length[..], header.as_bytes(), &numbers].concat()).unwrap();
}

#[test]
fn the_page_about_learning_runs_as_printed() {
    let folder = folder("learning");
    let parts = follow("docs/learning.md", &folder);
    assert!(folder.join("figure.svg").exists());
    // Parts of training files are tried in the file that they are a part of, under a declaration that they fit.
    let declared = std::fs::read_to_string(folder.join("whit.toml")).unwrap();
    let training = std::fs::read_to_string(folder.join("train.toml")).unwrap();
    for part in parts {
        let at = format!("docs/learning.md, line {}", part.line);
        let mut whole: toml::Table = training.parse().unwrap();
        for (name, value) in part.text.parse::<toml::Table>().unwrap() {
            whole.insert(name, value);
        }
        let mut declared = declared.clone();
        if whole.contains_key("intervals") {
            // A regression of events, in steps enough to come to an end.
            declared = declared.replace("\"element\"", "\"event\"").replace("budget.element", "budget.event");
            whole.remove("classes");
            let privacy = whole["privacy"].as_table_mut().unwrap();
            privacy.insert("steps".to_owned(), 1000.into());
            privacy.insert("epsilon".to_owned(), 2.0.into());
        } else if part.text.contains("way =") {
            let kept = declared.lines().filter(|line| !line.starts_with("unit.") && !line.starts_with("budget."));
            declared = kept.fold(String::new(), |text, line| text + line + "\n");
            declared += "unit.label = \"y\"\nunit.protect = \"label\"\nbudget.label = { epsilon = 3.0 }\n";
        }
        let own = folder.join(format!("part-{}", part.line));
        std::fs::create_dir_all(&own).unwrap();
        if part.text.contains("start =") {
            start(&own.join("base.safetensors"));
        }
        std::fs::copy(folder.join("visits.csv"), own.join("visits.csv")).unwrap();
        std::fs::write(own.join("whit.toml"), declared).unwrap();
        std::fs::write(own.join("train.toml"), toml::to_string(&whole).unwrap()).unwrap();
        run(&own, "whit train train.toml --preview", &at);
    }
}

/// A block that nobody runs is a block that is wrong one day.
#[test]
fn every_page_with_commands_is_followed() {
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs");
    for entry in std::fs::read_dir(docs).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|extension| extension == "md") {
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            let followed = ["tables.md", "learning.md", "first-day.md", "commands.md"].contains(&name.as_str());
            let text = std::fs::read_to_string(&path).unwrap();
            assert!(
                followed || !(text.contains("```sh") || text.contains("```toml")),
                "{name} has blocks that no test follows"
            );
        }
    }
}
