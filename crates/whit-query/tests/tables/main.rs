//! Questions over real files, answered through the public interface. One binary, because each links the engine.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on says so at once")]

mod ask;
mod audit;
mod brute;
mod caps;
mod chain_brute;
mod chains;
mod constants;
mod coverage;
mod dates;
mod domains;
mod geomean;
mod lines;
mod memory;
mod names;
mod neighbours;
mod pairs;
mod public;
mod refuse;
mod room;
mod sets;
mod slices;
mod small;
mod suites;
mod ways;
mod words;
mod workloads;
