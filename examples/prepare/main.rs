//! Makes the data of the experiments: Parquet files, and a `whit.toml` that declares units, caps and budgets.
//!
//! ```text
//! cargo run --release -p whit-query --example prepare -- mnist --data FOLDER      # out/mnist, from FOLDER/mnist.parquet
//! cargo run --release -p whit-query --example prepare -- mnist                    # out/mnist-small, made up
//! cargo run --release -p whit-query --example prepare -- element_logistic         # out/element_logistic: a simulation needs no data
//! ```
//!
//! `cargo xtask experiment NAME` calls it, and then `whit experiment` with the files of `examples/NAME`.

mod cifar;
mod dice;
mod element_logistic;
mod mnist;
mod retail;
mod table;

use std::error::Error;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Instant;

type Fallible<T> = Result<T, Box<dyn Error>>;

const USAGE: &str = "\
prepare NAME [--data FOLDER] [--to FOLDER] [--small] [--seeds N] [--elements K]

  NAME        element_logistic, mnist, retail or cifar
  --data      the folder with the real files; without it a small version is made up
  --to        where to write; out/NAME, or out/NAME-small, without it
  --small     the small version, whatever data there is
  --seeds     element_logistic: how many worlds to simulate (10; 3 for the small version)
  --elements  cifar: of how many elements a user has images (30; 5 is the other one of the paper)";

/// What can be made.
const NAMES: [&str; 4] = ["element_logistic", "mnist", "retail", "cifar"];

/// What was asked for.
struct Asked {
    name: String,
    data: Option<PathBuf>,
    to: Option<PathBuf>,
    small: bool,
    seeds: Option<u64>,
    elements: Option<usize>,
}

impl Asked {
    fn read(mut words: impl Iterator<Item = String>) -> Fallible<Self> {
        let mut asked = Self { name: String::new(), data: None, to: None, small: false, seeds: None, elements: None };
        while let Some(word) = words.next() {
            let mut value = || words.next().ok_or_else(|| format!("{word} needs a value\n\n{USAGE}"));
            match word.as_str() {
                "--data" => asked.data = Some(value()?.into()),
                "--to" => asked.to = Some(value()?.into()),
                "--small" => asked.small = true,
                "--seeds" => asked.seeds = Some(value()?.parse()?),
                "--elements" => asked.elements = Some(value()?.parse()?),
                name if asked.name.is_empty() && !name.starts_with('-') => name.clone_into(&mut asked.name),
                other => return Err(format!("`{other}` is not known here\n\n{USAGE}").into()),
            }
        }
        if !NAMES.contains(&asked.name.as_str()) {
            return Err(format!("there is nothing called `{}`\n\n{USAGE}", asked.name).into());
        }
        Ok(asked)
    }

    /// Where to write.
    fn to(&self, small: bool) -> PathBuf {
        let name = if small { format!("{}-small", self.name) } else { self.name.clone() };
        self.to.clone().unwrap_or_else(|| Path::new("out").join(name))
    }
}

fn run() -> Fallible<()> {
    let start = Instant::now();
    let asked = Asked::read(std::env::args().skip(1))?;
    let data = asked.data.as_deref().filter(|_| !asked.small);
    let small = asked.small || (asked.name != "element_logistic" && data.is_none());
    let to = asked.to(small);
    std::fs::create_dir_all(&to)?;
    match (asked.name.as_str(), data) {
        ("element_logistic", _) => element_logistic::prepare(&to, small, asked.seeds)?,
        ("mnist", Some(data)) => mnist::declare(&data.canonicalize()?.join("mnist.parquet"), &to)?,
        ("mnist", None) => mnist::make(&to)?,
        ("retail", Some(data)) => retail::rewrite(&data.join("retail600_k100.parquet"), &to)?,
        ("retail", None) => retail::make(&to)?,
        (_, Some(data)) => cifar::assign(data, &to, asked.elements.unwrap_or(30))?,
        (_, None) => cifar::make(&to)?,
    }
    eprintln!("wrote {} in {:.1} s", to.display(), start.elapsed().as_secs_f64());
    Ok(())
}

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}
