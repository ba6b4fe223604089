//! Times a private step and the plain step of the same model over as many rows: `step [laps] [rounds]` prints JSON.
//!
//! Each is timed in a process of its own, so that its peak of memory is its own, and its steps are taken one right after the other: a private step draws units,
//! reads their rows, clips, adds exact lattice noise, which a thread draws anew all the while and which is waited for where it is not ready, and moves the
//! parameters. Bags of one row, and of ten. `step LAPS - MODEL SIZE MODE` is one such process.

use serde_json::{Value, json};
use std::error::Error;
use std::io::Write;
use std::process::Command;
use std::time::Instant;
use whit_core::unit::Caps;
use whit_core::{Change, Kind, Ladder, Sampling, Unit};
use whit_learn::custom::Model;
use whit_learn::loss::{LossFunction, Targets};
use whit_learn::model::{Activation, Convolutional, Perceptron, Stage};
use whit_learn::optimise::{Optimiser, Rule, Schedule};
use whit_learn::params::Layout;
use whit_learn::train::{Plain, keep_memory};
use whit_learn::{Count, Draft, Learner, Owners, Parts, Rows, Store, Tuning};
use whit_noise::{Entropy, Replay};

type Fallible<T> = Result<T, Box<dyn Error>>;

const BATCH: usize = 512;
const CLASSES: u32 = 10;
/// So many steps go before those that are timed: noise that was drawn ahead of the first is used up by then. The peers have as many.
const WARM: usize = 5;

fn numbers(count: usize, entropy: &mut Replay) -> Vec<f32> {
    (0..count).map(|_| entropy.bits(24) as f32 / 2f32.powi(23) - 1.0).collect()
}

fn optimiser(dimension: usize) -> Fallible<Optimiser> {
    Ok(Optimiser::new(Rule::PLAIN, Schedule::Constant { size: 0.01 }, None, dimension)?)
}

/// A line of what the system tells of this process, in MiB, where it does: `VmRSS` is memory now, `VmHWM` at its peak.
fn memory(name: &str) -> Option<f64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find(|line| line.starts_with(name))?;
    line.split_whitespace().nth(1)?.parse().ok().map(|kib: f64| kib / 1024.0)
}

/// Takes steps one after the other: milliseconds by the whole time, the middle lap and the fastest.
fn timed(laps: usize, mut step: impl FnMut() -> Fallible<()>) -> Fallible<Value> {
    for _ in 0..WARM {
        step()?;
    }
    let mut each = Vec::with_capacity(laps);
    let (start, mut last) = (Instant::now(), Instant::now());
    for _ in 0..laps {
        step()?;
        each.push(last.elapsed().as_secs_f64());
        last = Instant::now();
    }
    let mean = start.elapsed().as_secs_f64() / laps as f64;
    each.sort_by(f64::total_cmp);
    Ok(json!({ "mean_ms": 1e3 * mean, "median_ms": 1e3 * each[laps / 2], "fastest_ms": 1e3 * each[0] }))
}

/// Bags of `size` rows, of which one step draws as many as hold `BATCH` rows, out of twice as many.
fn race<M: Model>(model: &M, width: usize, size: usize, mode: &str, laps: usize) -> Fallible<Value> {
    let mut entropy = Replay::new(7);
    let drawn = BATCH / size;
    let bags = 2 * drawn;
    let rows = if mode == "plain" { drawn * size } else { bags * size };
    let features = numbers(rows * width, &mut entropy);
    let labels: Vec<u32> = (0..rows).map(|_| entropy.bits(20) as u32 % CLASSES).collect();
    let targets = Targets::Classes { labels, classes: CLASSES };
    let dimension = Layout::of(model).0.len();
    if mode == "plain" {
        let mut plain = Plain::new(model.clone(), LossFunction::Softmax, optimiser(dimension)?);
        return timed(laps, || Ok(plain.step(features.clone(), width, &targets).map(|_| ())?));
    }
    let users: Vec<u64> = (0..rows).map(|row| (row / size) as u64).collect();
    let owners = Owners { users: Some(&users), elements: Some(&users) };
    let data = Rows::new(Store::of(features, width)?, targets, Kind::Element, owners)?;
    let caps = Caps { elements_per_user: Some(1), rows_per_element: None };
    let ladder =
        Ladder::new(vec![Unit::element("user", "topic"), Unit::user("user", Change::Replace)], caps, Kind::Element)?;
    let draft = Draft::new(ladder, "1/2".parse()?, Count::Declared(bags as u64), 1.0, 1_000_000);
    let plan = Draft { sampling: Sampling::Fixed, ..draft }.with_noise(1.0)?;
    let parts = Parts {
        model: model.clone(),
        plan,
        loss: LossFunction::Softmax,
        rows: data,
        optimiser: optimiser(dimension)?,
        average: None,
        tuning: Tuning::default(),
    };
    let mut private = Learner::new(parts)?;
    timed(laps, || {
        let seen = private.step()?;
        assert_eq!(seen.rows, drawn * size, "the same number of rows");
        Ok(())
    })
}

/// One of the models, one of the modes, in this process.
fn one(laps: usize, name: &str, size: usize, mode: &str) -> Fallible<Value> {
    let mut entropy = Replay::new(1);
    // What the process has before it has rows or a model does not count. Where the peak can be set back, it is.
    let _ = std::fs::write("/proc/self/clear_refs", "5");
    let before = memory("VmRSS");
    let mut found = if name == "perceptron" {
        let model = Perceptron::new(&[600, 300, 100, 10], Activation::Relu, 0.0, &mut entropy);
        race(&model, 600, size, mode, laps)?
    } else {
        let stages = [
            Stage { channels: 16, kernel: 8, stride: 2, padding: 3, pool: [2, 1] },
            Stage { channels: 32, kernel: 4, stride: 2, padding: 0, pool: [2, 1] },
        ];
        let model = Convolutional::new([1, 28, 28], &stages, &[32], 10, Activation::Relu, &mut entropy)?;
        race(&model, 784, size, mode, laps)?
    };
    let own = memory("VmHWM").zip(before).map(|(peak, before)| peak - before);
    for (key, value) in [("model", json!(name)), ("mode", json!(mode)), ("rows_per_bag", json!(size))] {
        found[key] = value;
    }
    (found["laps"], found["peak_mib"]) = (json!(laps), json!(own));
    Ok(found)
}

fn main() -> Fallible<()> {
    keep_memory();
    let words: Vec<String> = std::env::args().skip(1).collect();
    let number = |at: usize, usual: usize| words.get(at).map_or(Ok(usual), |word| word.parse());
    let laps = number(0, 60)?;
    let shown = if let [_, _, model, size, mode] = &words[..] {
        one(laps, model, size.parse()?, mode)?
    } else {
        let mut found = Vec::new();
        // In turns, so that what else the machine does meets all of them.
        for _ in 0..number(1, 3)? {
            for (model, size) in
                [("perceptron", "1"), ("perceptron", "10"), ("convolutional", "1"), ("convolutional", "10")]
            {
                for mode in ["plain", "private"] {
                    let of = Command::new(std::env::current_exe()?)
                        .args([&laps.to_string(), "-", model, size, mode])
                        .output()?;
                    found.push(serde_json::from_slice::<Value>(&of.stdout)?);
                }
            }
        }
        Value::Array(found)
    };
    writeln!(std::io::stdout(), "{}", serde_json::to_string_pretty(&shown)?)?;
    Ok(())
}
