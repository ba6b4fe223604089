//! Times a large job: softmax regression of 101 classes on 2,048 features, 8,000 users × 100 rows, one (user, element) protected, 400 pairs a step on
//! average out of 240,000. `softmax [steps]` prints JSON; the plan is for 40,000 steps, whatever number is taken (500 unless given).
//!
//! The rows are made up from a seed, as they would come from the last layer but one of an image network: half-normal numbers, larger where their class is at
//! home. They are 6.1 GiB, of which 1 GiB lies in memory and the rest in a file without a name in TMPDIR.

use serde_json::{Value, json};
use std::error::Error;
use std::io::Write;
use std::time::Instant;
use whit_account::calibrate::Target;
use whit_account::normal;
use whit_core::unit::Caps;
use whit_core::{Change, Kind, Ladder, Unit};
use whit_learn::bound::{Bags, ClippedSum};
use whit_learn::custom::Inputs;
use whit_learn::custom::Linear;
use whit_learn::loss::{LossFunction, Targets};
use whit_learn::optimise::{Optimiser, Rule, Schedule};
use whit_learn::params::Layout;
use whit_learn::store::Builder;
use whit_learn::train::{evaluate, keep_memory, predict};
use whit_learn::{Count, Draft, Keep, Learner, Owners, Parts, Plan, Pool, Rows, Sampler, Sanitiser, Store, Tuning};
use whit_noise::{Entropy, Replay};

type Fallible<T> = Result<T, Box<dyn Error>>;

const USERS: usize = 8_000;
const ROWS: usize = 100;
const ELEMENTS: u64 = 50;
const OWN: usize = 30;
const WIDTH: usize = 2_048;
const CLASSES: usize = 101;
const PAIRS: u64 = 400;
const STEPS: u64 = 40_000;

/// Resident memory at its peak so far, in MiB, where the system tells it.
fn peak() -> Option<f64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find(|line| line.starts_with("VmHWM"))?;
    line.split_whitespace().nth(1)?.parse().ok().map(|kib: f64| kib / 1024.0)
}

/// The time of all processors that this process has taken, in seconds, where the system tells it: what else runs on the machine adds little to it.
fn processor() -> Option<f64> {
    const TICKS_A_SECOND: f64 = 100.0;
    let status = std::fs::read_to_string("/proc/self/stat").ok()?;
    let after_the_name = status.rsplit_once(')')?.1;
    let ticks = after_the_name.split_whitespace().skip(11).take(2).map(|word| word.parse::<f64>().ok());
    Some(ticks.sum::<Option<f64>>()? / TICKS_A_SECOND)
}

/// Half-normal numbers around a mean for each class.
struct World {
    quantiles: Vec<f32>,
    means: Vec<f32>,
    entropy: Replay,
}

impl World {
    fn new() -> Self {
        let mut entropy = Replay::new(101);
        let quantiles: Vec<f32> =
            (0..4096).map(|i| normal::quantile(0.5 + (f64::from(i) + 0.5) / 8192.0) as f32).collect();
        let means = (0..CLASSES * WIDTH).map(|_| if entropy.bits(3) == 0 { 0.5 } else { 0.0 }).collect();
        Self { quantiles, means, entropy }
    }

    /// A row of a class. Rows are about as long as 1.
    fn row(&mut self, class: usize, out: &mut Vec<f32>) {
        let mut bits = 0;
        for (i, &mean) in self.means[class * WIDTH..(class + 1) * WIDTH].iter().enumerate() {
            bits = if i % 5 == 0 { self.entropy.bits(60) } else { bits >> 12 };
            out.push((self.quantiles[(bits & 4095) as usize] + mean) / (WIDTH as f32).sqrt());
        }
    }

    /// A class of an element: two are at home in each, and one in none.
    fn class(&mut self, element: u64) -> u32 {
        if self.entropy.bits(7) == 0 { CLASSES as u32 - 1 } else { (2 * element + self.entropy.bits(1)) as u32 }
    }
}

struct Data {
    rows: Store,
    labels: Vec<u32>,
    users: Vec<u64>,
    elements: Vec<u64>,
}

/// The rows of users who have [`OWN`] of the elements each, in ascending order, which their rows take in turns.
fn data(world: &mut World, users: usize, keep: Keep) -> Fallible<Data> {
    let mut builder = Builder::new(WIDTH, keep)?;
    let (mut labels, mut owners, mut elements) = (Vec::new(), Vec::new(), Vec::new());
    let mut block = Vec::with_capacity(ROWS * WIDTH);
    for user in 0..users {
        let mut own: Vec<u64> = (0..ELEMENTS).collect();
        while own.len() > OWN {
            own.remove(world.entropy.bits(32) as usize % own.len());
        }
        block.clear();
        for row in 0..ROWS {
            let element = own[row % OWN];
            let class = world.class(element);
            world.row(class as usize, &mut block);
            labels.push(class);
            owners.push(user as u64);
            elements.push(element);
        }
        builder.push_floats(&block)?;
    }
    Ok(Data { rows: builder.finish(), labels, users: owners, elements })
}

/// The rows of a pair: units stand by user and then by element.
fn rows_of(unit: u32) -> impl Iterator<Item = u32> {
    let (user, place) = (unit as usize / OWN, unit as usize % OWN);
    (place..ROWS).step_by(OWN).map(move |row| (user * ROWS + row) as u32)
}

fn plan() -> Fallible<Plan> {
    let caps = Caps { elements_per_user: Some(OWN as u64), rows_per_element: Some(4) };
    let units = vec![Unit::element("user", "element"), Unit::user("user", Change::Replace)];
    let ladder = Ladder::new(units, caps, Kind::Element)?;
    let pairs = (USERS * OWN) as u64;
    let draft = Draft::new(ladder, format!("{PAIRS}/{pairs}").parse()?, Count::Declared(pairs), 1.0, STEPS);
    Ok(draft.for_target(Target { epsilon: 3.0, delta: 1e-6 })?)
}

/// Fastest, middle and mean, in milliseconds.
fn quantiles(mut seconds: Vec<f64>) -> Value {
    let mean = seconds.iter().sum::<f64>() / seconds.len() as f64;
    seconds.sort_by(f64::total_cmp);
    json!({ "fastest": 1e3 * seconds[0], "median": 1e3 * seconds[seconds.len() / 2], "mean": 1e3 * mean })
}

/// What the parts of a step take by themselves, one after the other: rows, the way through the model, all of the clipped sum (the way there and back included),
/// and noise.
fn parts(plan: &Plan, rows: &Store, labels: &Targets, model: &Linear, laps: usize) -> Fallible<Value> {
    let mut sampler = Sampler::new(plan, Pool::Units(USERS * OWN))?;
    let layout = Layout::of(model).0;
    let mut sanitiser = Sanitiser::new(plan, layout.len())?;
    let mut entropy = Replay::new(3);
    let (mut read, mut forward, mut bound, mut noise) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for _ in 0..laps {
        let drawn = sampler.draw(&mut entropy);
        let picked: Vec<u32> = drawn.iter().flat_map(|&unit| rows_of(unit)).collect();
        let sizes: Vec<usize> = drawn.iter().map(|&unit| rows_of(unit).count()).collect();
        let weights: Vec<f32> = sizes.iter().flat_map(|&size| std::iter::repeat_n(1.0 / size as f32, size)).collect();
        let start = Instant::now();
        let features = rows.pick(&picked)?;
        read.push(start.elapsed().as_secs_f64());
        let store = Store::of(features.clone(), WIDTH)?;
        let start = Instant::now();
        predict(model, &store, None, Tuning::default())?;
        forward.push(start.elapsed().as_secs_f64());
        let (inputs, targets, bags) = (Inputs::of(features, WIDTH), labels.pick(&picked), Bags::of_sizes(sizes));
        let start = Instant::now();
        let sum =
            ClippedSum::of_gradients(model, LossFunction::Softmax, inputs, &targets, &weights, &bags, plan.clip())?;
        bound.push(start.elapsed().as_secs_f64());
        let mut mean = vec![0.0; sum.coordinates()];
        let start = Instant::now();
        sanitiser.sanitise(&sum, &mut mean)?;
        noise.push(start.elapsed().as_secs_f64());
    }
    Ok(
        json!({ "read": quantiles(read), "forward": quantiles(forward), "clipped_sum": quantiles(bound), "noise": quantiles(noise) }),
    )
}

fn main() -> Fallible<()> {
    keep_memory();
    let steps: u64 = std::env::args().nth(1).map_or(Ok(500), |word| word.parse())?;
    let mut world = World::new();
    let start = Instant::now();
    let Data { rows, labels, users, elements } = data(&mut world, USERS, Keep::default())?;
    let made = start.elapsed().as_secs_f64();
    let trial = data(&mut world, 20, Keep::default())?;
    let start = Instant::now();
    let plan = plan()?;
    let planned = start.elapsed().as_secs_f64();
    let targets = Targets::Classes { labels, classes: CLASSES as u32 };
    let owners = Owners { users: Some(&users), elements: Some(&elements) };
    let model = Linear::at_zero(WIDTH, CLASSES, true);
    let alone = parts(&plan, &rows, &targets, &model, 30)?;
    let before = peak();
    let data = Rows::new(rows, targets, Kind::Element, owners)?;
    let dimension = Layout::of(&model).0.len();
    let optimiser = Optimiser::new(Rule::PLAIN, Schedule::Power { first: 8.0, decay: 0.5 }, None, dimension)?;
    let sigma = plan.noise();
    let mut learner = Learner::new(Parts {
        model,
        plan,
        loss: LossFunction::Softmax,
        rows: data,
        optimiser,
        average: None,
        tuning: Tuning::default(),
    })?;
    let (mut laps, mut seen, mut drawn) = (Vec::new(), 0, 0);
    let (whole, of_processors) = (Instant::now(), processor());
    for _ in 0..steps.min(STEPS) {
        let start = Instant::now();
        let step = learner.step()?;
        laps.push(start.elapsed().as_secs_f64());
        (seen, drawn) = (seen + step.rows, drawn + step.bags);
    }
    let total = whole.elapsed().as_secs_f64();
    let taken = laps.len() as f64;
    let of_processors = processor().zip(of_processors).map(|(end, start)| 1e3 * (end - start) / taken);
    let outputs = predict(&learner.model()?, &trial.rows, None, Tuning::default())?;
    let of_trial = Targets::Classes { labels: trial.labels, classes: CLASSES as u32 };
    let (_, accuracy) = evaluate(LossFunction::Softmax, &outputs, &of_trial, CLASSES);
    let shown = json!({
        "steps": laps.len(), "parameters": dimension, "rows": USERS * ROWS, "noise": sigma,
        "rows_a_step": seen as f64 / taken, "pairs_a_step": drawn as f64 / taken,
        "step_ms": quantiles(laps), "step_ms_of_processors": of_processors, "total_s": total, "of_40000_steps_s": total / taken * STEPS as f64,
        "alone_ms": alone, "rows_made_s": made, "planned_s": planned,
        "peak_mib": peak(), "peak_mib_before_learning": before, "accuracy": accuracy,
    });
    writeln!(std::io::stdout(), "{}", serde_json::to_string_pretty(&shown)?)?;
    Ok(())
}
