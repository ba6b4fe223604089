//! How long do a million lines of CSV take, beside the engine's own reader with the same types? `lines [folder]` writes them there (or into the
//! system's folder for such files), reads both ways with one thread and with two, and prints the fastest of five laps each.

use std::error::Error;
use std::fmt::Write as _;
use std::io::Write as _;
use std::path::PathBuf;
use std::time::Instant;
use whit_core::declare::Declaration;
use whit_query::source::{Tuning, Warehouse, runtime};

const DECLARED: &str = "[dataset.t]\nsource = 'lines.csv'\nunit.user = 'user_id'\nunit.protect = 'user'\n\
    columns = { user_id = 'int', shop = 'text', day = 'date', seconds = 'float', country = 'text' }\n";

const READ: [&str; 3] =
    ["count(*)", "sum(user_id)", "count(shop) + sum(user_id) + count(day) + count(seconds) + count(country)"];

async fn fastest(warehouse: &Warehouse, sql: &str) -> Result<f64, Box<dyn Error>> {
    let mut best = f64::INFINITY;
    for _ in 0..5 {
        let start = Instant::now();
        warehouse.context().sql(sql).await?.collect().await?;
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
    let mut out = std::io::stdout().lock();
    for threads in [1, 2] {
        let tuning = Tuning { memory: None, threads: Some(threads) };
        runtime(Some(threads))?.block_on(async {
            let warehouse = Warehouse::open(Declaration::parse(DECLARED)?, &folder, tuning).await?;
            let options = datafusion::prelude::CsvReadOptions::new().schema(&warehouse.source("t")?.schema);
            warehouse.context().register_csv("engine", path.to_str().ok_or("a name that is text")?, options).await?;
            for read in READ {
                let own = fastest(&warehouse, &format!("SELECT {read} FROM t")).await?;
                let engine = fastest(&warehouse, &format!("SELECT {read} FROM engine")).await?;
                writeln!(out, "{threads} threads, {read}: {own:.0} ms, the engine's reader {engine:.0} ms")?;
            }
            Ok::<(), Box<dyn Error>>(())
        })?;
    }
    Ok(std::fs::remove_file(path)?)
}
