//! Asks one question after the other, as another program says, and tells how long each took: so that whit and an engine in another language can be asked in turns.
//!
//! `laps <folder> [threads]` opens `whit.toml` in the folder. Each line of standard input is a question in SQL, and each line of standard output what came of it: seconds, rows of
//! the answer, and memory at its peak so far. Opening is not timed; planning, the engine, noise, and a charge that is durable in a ledger are.

use serde_json::json;
use std::error::Error;
use std::io::{BufRead, Write};
use std::path::Path;
use std::time::Instant;
use whit_account::ledger::Books;
use whit_core::declare::Declaration;
use whit_query::Tables;
use whit_query::plan::Asking;
use whit_query::source::Tuning;

type Fallible<T> = Result<T, Box<dyn Error>>;

/// The most memory that the process has had, in kibibytes.
fn peak() -> Fallible<u64> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).ok_or("no peak of memory is told")?;
    Ok(line.trim().trim_end_matches("kB").trim().parse()?)
}

fn main() -> Fallible<()> {
    let mut arguments = std::env::args().skip(1);
    let folder = arguments.next().ok_or("which folder? `laps <folder> [threads]`")?;
    let threads = arguments.next().map_or(Ok(2), |word| word.parse())?;
    let folder = Path::new(&folder);
    let declaration = Declaration::parse(&std::fs::read_to_string(folder.join("whit.toml"))?)?;
    let tables = Tables::of(declaration, folder, Tuning { memory: None, threads: Some(threads) })?;
    let mut books = Books::open(&folder.join("whit.ledger"))?;
    // A hair more ε each time, so that nothing is answered from the ledger; it knows the files after the first question.
    for (lap, sql) in std::io::stdin().lock().lines().enumerate() {
        let epsilon = Some(1.0 + 1e-6 * lap as f64);
        let (sql, asking) = (sql?, Asking { epsilon, delta: Some(1e-6), ..Asking::default() });
        let start = Instant::now();
        let said = match whit_query::ask(&tables, &sql, &asking, &mut books, "race") {
            Ok(answer) => {
                let seconds = start.elapsed().as_secs_f64();
                json!({ "seconds": seconds, "rows": answer.rows.len(), "peak_kib": peak()? })
            }
            Err(error) => json!({ "refused": error.sentence }),
        };
        let mut out = std::io::stdout().lock();
        writeln!(out, "{said}")?;
        out.flush()?;
    }
    Ok(())
}
