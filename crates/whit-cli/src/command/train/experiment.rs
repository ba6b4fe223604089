//! `whit experiment`: training files compared over values and seeds, by whoever may look at the rows.

use super::options::declaration_next_to;
use super::watch::Watcher;
use crate::command::asked::room;
use crate::error::Error;
use crate::number;
use crate::output::{Drawing, ProgressLine, drawing, write_json};
use std::io::Write;
use std::path::PathBuf;
use whit::learn::train::keep_memory;
use whit::query::source::Tuning;
use whit::session::{Options, Session};
use whit::train::experiment::ExperimentRequest;
use whit_view::experiment::Figures;

/// Compare training files over values and seeds, on data whose owner wants to know what works.
///
/// A command for the owner of the data. Each arm of the experiment is a training file of `whit train`; it is run for each value and each seed, the way `whit train`
/// runs it. For data that is public or whose owner only looks: noise comes from seeds and scores are not sanitised, so this is non-private. Nothing is charged, and
/// no ledger is opened.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  whit experiment experiment.toml --plot figure.svg
  whit experiment experiment.toml --config out/mnist/whit.toml --seeds 1 --only DP-SGD")]
pub(crate) struct Experiment {
    /// The experiment file.
    file: PathBuf,
    /// The declaration; without it, the `whit.toml` in the same folder.
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// How often each training is repeated; as the file has it without.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    seeds: Option<u64>,
    /// Run this arm alone; may be given several times.
    #[arg(long, value_name = "ARM")]
    only: Vec<String>,
    /// How many threads read the data; as many as the machine has without it.
    #[arg(long, value_name = "N", value_parser = number::count)]
    threads: Option<u64>,
    /// The memory that rows may take, such as 512MiB; 1GiB without it.
    #[arg(long, value_name = "SIZE", value_parser = room)]
    memory: Option<u64>,
    /// Print JSON for programs, with every run, instead of tables for people.
    #[arg(long)]
    json: bool,
    /// Draw the comparison into a file that ends in .svg, .png or .html; may be given several times.
    #[arg(long, value_name = "FILE", value_parser = drawing)]
    plot: Vec<Drawing>,
}

impl Experiment {
    pub(crate) fn run(&self, out: &mut dyn Write, talk: &mut dyn Write) -> Result<(), Error> {
        keep_memory();
        let request = ExperimentRequest {
            file: &self.file,
            seeds: self.seeds,
            only: self.only.clone(),
            memory: self.memory,
            outputs: self.plot.iter().map(|drawing| drawing.path().to_owned()).collect(),
        };
        let config = self.config.clone().unwrap_or_else(|| declaration_next_to(&self.file));
        let tuning = Tuning { memory: None, threads: self.threads.map(|threads| threads as usize) };
        let session = Session::open(&config, Options { tuning, ..Options::default() })?;
        let found = session.experiment(&request, &mut Watcher::new(ProgressLine::new(self.json), talk))?;
        let figures = Figures::of(&found);
        if self.json {
            write_json(&figures.for_programs(), out)?;
        } else {
            figures.write_tables(out)?;
        }
        out.flush()?;
        writeln!(talk, "{}", figures.lasted())?;
        for drawing in &self.plot {
            drawing.write_for_owner(figures.picture().svg(), || figures.page(), talk)?;
        }
        Ok(())
    }
}
