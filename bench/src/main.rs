//! `whit-bench noise | account [--json]`: how fast whit is, next to the peers that can be called from Rust.
//!
//! `run.sh` adds the peers that are called from Python and sets the requirement beside each figure.

mod account;
mod clock;
mod memory;
mod noise;
mod table;

use std::error::Error;
use std::io::{self, Write};

fn main() -> Result<(), Box<dyn Error>> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let mut out = io::stdout().lock();
    match words[..] {
        ["noise"] => noise::race()?.write_table(&mut out)?,
        ["noise", "--json"] => serde_json::to_writer(&mut out, &noise::race()?)?,
        ["account"] => account::race()?.write_table(&mut out)?,
        ["account", "--json"] => serde_json::to_writer(&mut out, &account::race()?)?,
        ["peak", task] => write!(out, "{}", memory::peak(task)?)?, // a child of one of the above
        _ => return Err("say `noise` or `account`, and `--json` for programs".into()),
    }
    Ok(())
}
