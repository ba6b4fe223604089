//! How long do the questions take that people ask of an accountant?

use crate::clock::{median, timed};
use crate::{memory, table};
use serde::Serialize;
use std::error::Error;
use std::hint::black_box;
use std::io::{self, Write};
use whit_account::calibrate::{self, Target};
use whit_account::filter::{Currency, Filter};
use whit_account::{Name, epsilon};
use whit_core::{Change, Cost, Draw, Epsilon, Sampled, Sampling};
use whit_noise::{Entropy, Replay};

const DELTA: f64 = 1e-5;
const RATE: f64 = 0.01;
const STEPS: u64 = 40_000;
const REPEATS: usize = 9;
/// No question is asked again once its answers have taken so long together.
const PATIENCE: f64 = 3.0;
/// A small and a large ε, and the noise that gives it.
const PEAKS: [(f64, f64); 2] = [(0.01, 975.4), (50.0, 0.7345)];

/// One question: how long the first answer took, how long an answer takes in the middle of several, and the answer.
#[derive(Serialize)]
struct Row {
    id: String,
    question: String,
    first_seconds: f64,
    seconds: f64,
    lower: Option<f64>,
    upper: Option<f64>,
}

/// A question whose memory was watched.
#[derive(Serialize)]
struct Peak {
    question: String,
    mebibytes: f64,
}

/// Everything that was measured.
#[derive(Serialize)]
pub(crate) struct Account {
    rows: Vec<Row>,
    memory: Vec<Peak>,
}

fn step(noise: f64, change: Change) -> Sampled {
    Sampled { noise, rate: RATE, sampling: Sampling::Poisson, draw: Draw::Unit, change, difference: 2.0, holds: 1 }
}

/// Asks a question several times; the answer is a lower and an upper value, where there is one.
fn ask(
    id: impl Into<String>,
    question: impl Into<String>,
    answer: impl Fn() -> Result<Option<(f64, f64)>, Box<dyn Error>>,
) -> Result<Row, Box<dyn Error>> {
    let (given, first_seconds) = timed(&answer);
    let (lower, upper) = given?.unzip();
    let mut times = vec![first_seconds];
    while times.len() < REPEATS && times.iter().sum::<f64>() < PATIENCE {
        times.push(timed(|| black_box(answer().is_ok())).1);
    }
    Ok(Row { id: id.into(), question: question.into(), first_seconds, seconds: median(times), lower, upper })
}

/// Asks everything.
pub(crate) fn race() -> Result<Account, Box<dyn Error>> {
    let mut rows = Vec::new();
    let price = |cost: &Cost| epsilon(cost, DELTA, Name::Pld).map(|loss| Some((loss.lower, loss.upper)));
    for (id, change) in [("add-remove", Change::AddRemove), ("replace", Change::Replace)] {
        let cost = Cost::Sampled(step(4.0, change)).repeat(STEPS);
        let question = format!("ε of {STEPS} steps, rate {RATE}, noise 4, {id}");
        rows.push(ask(id, question, || Ok(price(&cost)?))?);
    }
    let different = |i: u32| Cost::Sampled(step(1.0 + 0.02 * f64::from(i), Change::AddRemove)).repeat(100);
    let different = Cost::Series((0..50).map(different).collect());
    rows.push(ask("different", "ε of 50 different steps, 100 of each", || Ok(price(&different)?))?);
    let target = Target { epsilon: 3.0, delta: DELTA };
    rows.push(ask("calibration", format!("noise for ε = 3, {STEPS} steps, replace"), || {
        let found = calibrate::noise(&step(1.0, Change::Replace), STEPS, target, Name::Pld)?;
        Ok(Some((found.value, found.value)))
    })?);
    let sizes = |kind| [10_000, 20_000].map(|charges| (kind, charges));
    let filters = KINDS.iter().flat_map(sizes).chain([(&KINDS[0], 2_000)]); // the last for a peer who is quadratic
    for (kind, charges) in filters {
        let question = format!("filter, {charges} charges, {}", kind.what);
        rows.push(ask(format!("{}-{charges}", kind.id), question, || kind.run(charges).map(|()| None))?);
    }
    let peak = |(epsilon, noise)| {
        let question = format!("ε = {epsilon} (noise {noise}, replace)");
        memory::peak_of(&task_of((epsilon, noise))).map(|mebibytes| Peak { question, mebibytes })
    };
    let memory = PEAKS.into_iter().map(peak).collect::<Result<_, _>>()?;
    Ok(Account { rows, memory })
}

/// Charges of one kind, each chosen after seeing an answer and what is left of the budget.
struct Kind {
    id: &'static str,
    what: &'static str,
    currency: fn(f64, f64) -> Currency,
    /// A cost from a number between 0 and 1: what the analyst makes of the last answer.
    cost: fn(f64) -> Result<Cost, Box<dyn Error>>,
}

const KINDS: [Kind; 4] = [
    Kind {
        id: "pure",
        what: "pure, in Σε",
        currency: |_, _| Currency::Sum,
        cost: |x| Ok(Cost::Pure { epsilon: Epsilon::new(1e-6 * (1.0 + x))? }),
    },
    Kind {
        id: "gaussian",
        what: "Gaussian, in ρ",
        currency: |_, _| Currency::Concentrated,
        cost: |x| Ok(Cost::Gaussian { noise: 1e4 * (1.0 + x) }),
    },
    Kind {
        id: "sampled-some",
        what: "subsampled, at five Rényi orders, 64 kinds",
        currency: Currency::renyi,
        cost: |x| Ok(Cost::Sampled(step(20.0 + (64.0 * x).floor(), Change::AddRemove))),
    },
    Kind {
        id: "sampled",
        what: "subsampled, at five Rényi orders, no two alike",
        currency: Currency::renyi,
        cost: |x| Ok(Cost::Sampled(step(20.0 * (1.0 + x), Change::AddRemove))),
    },
];

impl Kind {
    fn run(&self, charges: u32) -> Result<(), Box<dyn Error>> {
        let mut filter = Filter::new(1.0, DELTA, (self.currency)(1.0, DELTA))?;
        let mut answers = Replay::new(7);
        for _ in 0..charges {
            let seen = answers.bits(52) as f64 / (1_u64 << 52) as f64;
            filter.charge(&(self.cost)(seen * filter.left().min(1.0))?)?;
        }
        Ok(())
    }
}

/// What a child is called by.
fn task_of((epsilon, _): (f64, f64)) -> String {
    format!("epsilon-{epsilon}")
}

/// What a child does while its memory is watched.
pub(crate) fn price_at(task: &str) -> Result<(), Box<dyn Error>> {
    let (target, noise) = PEAKS.into_iter().find(|&peak| task_of(peak) == task).ok_or("no such task")?;
    let loss = epsilon(&Cost::Sampled(step(noise, Change::Replace)).repeat(STEPS), DELTA, Name::Pld)?;
    if (loss.upper / target - 1.0).abs() > 0.01 {
        return Err(format!("ε is {} at noise {noise}, not {target}", loss.upper).into());
    }
    Ok(())
}

impl Account {
    /// For people.
    pub(crate) fn write_table(&self, out: &mut dyn Write) -> io::Result<()> {
        let heading = ["question", "first, ms", "median, ms", "lower", "upper", "gap"].map(str::to_owned).to_vec();
        let show = |value: Option<f64>| value.map_or(String::new(), |value| format!("{value:.5}"));
        let rows = self.rows.iter().map(|row| {
            let gap =
                row.lower.zip(row.upper).map_or(String::new(), |(low, high)| format!("{:.1e}", (high - low) / high));
            let times = [row.first_seconds, row.seconds].map(|seconds| format!("{:.2}", seconds * 1e3));
            [row.question.clone()].into_iter().chain(times).chain([show(row.lower), show(row.upper), gap]).collect()
        });
        table::write(&[heading].into_iter().chain(rows).collect::<Vec<_>>(), out)?;
        for peak in &self.memory {
            writeln!(out, "peak memory at {}: {:.1} MiB", peak.question, peak.mebibytes)?;
        }
        Ok(())
    }
}
