//! How long do a million lines of CSV take, compared with the engine's own reader with the same types? `lines [folder]` writes them there (or into the
//! system's folder for such files), reads both ways with one thread and with two, and prints the fastest of five laps each.

use datafusion::arrow::datatypes::{DataType, Field, Schema};
use datafusion::prelude::{CsvReadOptions, SessionConfig, SessionContext};
use std::error::Error;
use std::fmt::Write as _;
use std::io::Write as _;
use std::path::PathBuf;
use std::time::Instant;
use whit_core::declare::Declaration;
use whit_query::Tables;
use whit_query::source::Tuning;
use whit_query::source::owner::Owner;

const DECLARED: &str = "[dataset.t]\nsource = 'lines.csv'\nunit.user = 'user_id'\nunit.protect = 'user'\n\
    columns = { user_id = 'int', shop = 'text', day = 'date', seconds = 'float', country = 'text' }\n";

const READ: [&str; 3] =
    ["count(*)", "sum(user_id)", "count(shop) + sum(user_id) + count(day) + count(seconds) + count(country)"];

/// The fastest of five, in milliseconds.
fn fastest(mut lap: impl FnMut() -> Result<usize, Box<dyn Error>>) -> Result<f64, Box<dyn Error>> {
    let mut best = f64::INFINITY;
    for _ in 0..5 {
        let start = Instant::now();
        lap()?;
        best = best.min(start.elapsed().as_secs_f64());
    }
    Ok(1e3 * best)
}

fn main() -> Result<(), Box<dyn Error>> {
    let folder = std::env::args_os().nth(1).map_or_else(std::env::temp_dir, PathBuf::from);
    let path = folder.join("lines.csv");
    let mut text = String::from("user_id,shop,day,seconds,country\n");
    for i in 0..1_000_000_u64 {
        let shop = ["north", "south", "east", "west"][(i % 4) as usize];
        writeln!(text, "{},{shop},2024-01-{:02},{}.25,at", i * 7919 % 40_000, i % 28 + 1, i % 600)?;
    }
    std::fs::write(&path, text)?;
    let columns = [("user_id", DataType::Int64), ("shop", DataType::Utf8), ("day", DataType::Date32)];
    let columns = columns.into_iter().chain([("seconds", DataType::Float64), ("country", DataType::Utf8)]);
    let schema = Schema::new(columns.map(|(name, kind)| Field::new(name, kind, true)).collect::<Vec<_>>());
    let owner = Owner::who_may_see_every_row();
    let mut out = std::io::stdout().lock();
    for threads in [1, 2] {
        let tuning = Tuning { memory: None, threads: Some(threads) };
        let tables = Tables::of(Declaration::parse(DECLARED)?, &folder, tuning)?;
        // As ours is set up: so many threads, and nothing is taken from what files say of their values.
        let config = SessionConfig::new().with_target_partitions(threads).with_collect_statistics(false);
        let (context, runtime) = (SessionContext::new_with_config(config), tables.runtime());
        let options = CsvReadOptions::new().schema(&schema);
        runtime.block_on(context.register_csv("t", path.to_str().ok_or("a name that is text")?, options))?;
        for read in READ {
            let sql = format!("SELECT {read} FROM t");
            let own = fastest(|| Ok(tables.rows_without_privacy(&owner, &sql)?))?;
            let engine = fastest(|| Ok(runtime.block_on(async { context.sql(&sql).await?.collect().await })?.len()))?;
            writeln!(out, "{threads} threads, {read}: {own:.0} ms, the engine's reader {engine:.0} ms")?;
        }
    }
    Ok(std::fs::remove_file(path)?)
}
