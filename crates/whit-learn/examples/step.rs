//! Times one private step beside the plain step of the same model over the same rows, in turns: `step [laps] [model]` prints JSON.
//!
//! A private step draws units, clips, adds exact lattice noise that a thread prepared, and moves the parameters; bags of one row, and of ten.

use serde_json::{Value, json};
use std::error::Error;
use std::io::Write;
use std::time::Instant;
use whit_core::unit::Caps;
use whit_core::{Change, Kind, Ladder, Sampling, Unit};
use whit_learn::layer::Activation;
use whit_learn::loss::{Loss, Targets};
use whit_learn::model::{Convolutional, Model, Perceptron, Stage};
use whit_learn::optimise::{Optimiser, Rule, Schedule};
use whit_learn::params::Layout;
use whit_learn::train::{Plain, keep_memory};
use whit_learn::{Count, Draft, Learner, Noise, Owners, Parts, Rows, Store, Tuning, Way};
use whit_noise::{Entropy, Replay};

type Fallible<T> = Result<T, Box<dyn Error>>;

const BATCH: usize = 512;
const CLASSES: u32 = 10;

fn numbers(count: usize, entropy: &mut Replay) -> Vec<f32> {
    (0..count).map(|_| entropy.bits(24) as f32 / 2f32.powi(23) - 1.0).collect()
}

fn optimiser(dimension: usize) -> Fallible<Optimiser> {
    Ok(Optimiser::new(Rule::PLAIN, Schedule::Constant { size: 0.01 }, None, dimension)?)
}

/// Resident memory at its peak so far, in MiB, where the system tells it.
fn peak() -> Option<f64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find(|line| line.starts_with("VmHWM"))?;
    line.split_whitespace().nth(1)?.parse().ok().map(|kib: f64| kib / 1024.0)
}

/// The fastest and the middle lap, in milliseconds.
fn told(mut seconds: Vec<f64>) -> Value {
    seconds.sort_by(f64::total_cmp);
    json!({ "fastest": 1e3 * seconds[0], "median": 1e3 * seconds[seconds.len() / 2] })
}

/// Bags of `size` rows, of which one step draws as many as hold `BATCH` rows, out of twice as many.
fn race<M: Model>(name: &str, model: &M, width: usize, size: usize, laps: usize) -> Fallible<Value> {
    let mut entropy = Replay::new(7);
    let drawn = BATCH / size;
    let bags = 2 * drawn;
    let rows = bags * size;
    let features = numbers(rows * width, &mut entropy);
    let labels: Vec<u32> = (0..rows).map(|_| entropy.bits(20) as u32 % CLASSES).collect();
    let users: Vec<u64> = (0..rows).map(|row| (row / size) as u64).collect();
    let targets = Targets::Classes { labels, classes: CLASSES };
    let owners = Owners { users: Some(&users), elements: Some(&users) };
    let data = Rows::new(Store::of(features.clone(), width)?, targets.clone(), Kind::Element, owners)?;
    let caps = Caps { elements_per_user: Some(1), rows_per_element: None };
    let ladder =
        Ladder::new(vec![Unit::element("user", "topic"), Unit::user("user", Change::Replace)], caps, Kind::Element)?;
    let draft = Draft::new(ladder, "1/2".parse()?, Count::Declared(bags as u64), 1.0, 1_000_000);
    let plan = Draft { sampling: Sampling::Fixed, ..draft }.with_noise(1.0)?;
    let dimension = Layout::of(model).0.len();
    let parts = Parts {
        model: model.clone(),
        plan,
        loss: Loss::Softmax,
        way: Way::Mean,
        rows: data,
        optimiser: optimiser(dimension)?,
        average: None,
        noise: Noise::Secret { threads: 1 },
        tuning: Tuning::default(),
    };
    let mut private = Learner::new(parts)?;
    let mut plain = Plain::new(model.clone(), Loss::Softmax, optimiser(dimension)?);
    let picked: Vec<u32> = (0..(drawn * size) as u32).collect();
    let (few, few_targets) = (features[..drawn * size * width].to_vec(), targets.pick(&picked));
    let (mut of_plain, mut of_private) = (Vec::new(), Vec::new());
    for lap in 0..laps + 3 {
        let start = Instant::now();
        plain.step(few.clone(), width, &few_targets)?;
        let between = Instant::now();
        let seen = private.step()?;
        let end = Instant::now();
        assert_eq!(seen.rows, drawn * size, "the same number of rows");
        if lap >= 3 {
            of_plain.push((between - start).as_secs_f64());
            of_private.push((end - between).as_secs_f64());
        }
    }
    let fastest = |of: &[f64]| of.iter().copied().fold(f64::INFINITY, f64::min);
    let ratio = fastest(&of_private) / fastest(&of_plain);
    Ok(json!({
        "model": name, "rows_per_bag": size, "rows": drawn * size, "parameters": dimension,
        "plain_ms": told(of_plain), "private_ms": told(of_private), "ratio": ratio, "peak_mib": peak(),
    }))
}

fn main() -> Fallible<()> {
    keep_memory();
    let laps = std::env::args().nth(1).map_or(Ok(40), |word| word.parse())?;
    let mut entropy = Replay::new(1);
    let perceptron = Perceptron::new(&[600, 300, 100, 10], Activation::Relu, 0.0, &mut entropy);
    let stages = [
        Stage { channels: 16, kernel: 8, stride: 2, padding: 3, pool: [2, 1] },
        Stage { channels: 32, kernel: 4, stride: 2, padding: 0, pool: [2, 1] },
    ];
    let network = Convolutional::new([1, 28, 28], &stages, &[32], 10, Activation::Relu, &mut entropy)?;
    let mut rows = Vec::new();
    let wanted = std::env::args().nth(2).unwrap_or_default();
    for size in [1, 10] {
        if "perceptron".starts_with(&wanted) {
            rows.push(race("perceptron 600-300-100-10", &perceptron, 600, size, laps)?);
        }
        if "convolutional".starts_with(&wanted) {
            rows.push(race("convolutional, 26 k parameters, 28 × 28", &network, 784, size, laps / 2)?);
        }
    }
    writeln!(std::io::stdout(), "{}", serde_json::to_string_pretty(&rows)?)?;
    Ok(())
}
