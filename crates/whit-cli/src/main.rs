//! The `whit` command: data to standard output, talk to standard error, and an exit code that says how it went
//! (0 done, 1 failed, 2 asked wrongly, 3 refused, 130 interrupted).

mod command;
mod demo;
mod error;
mod hint;
mod interrupt;
mod number;
mod output;

use std::io;
use std::process::ExitCode;

fn main() -> ExitCode {
    let (mut out, mut talk) = (io::BufWriter::new(io::stdout().lock()), io::stderr());
    command::main(std::env::args_os(), &mut out, &mut talk)
}
