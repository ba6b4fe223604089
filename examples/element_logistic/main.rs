//! Logistic regression on simulated people, each of whom knows of a few topics: what it costs to protect one topic of a person, and all of them.
//!
//! The simulation is that of Asi, Duchi and Javidbakht, section 4.2: 1,000 users with 50 rows in 10 dimensions, 10 topics, of which a user knows
//! 2, 5 or 8; 200 steps of Algorithm 1, with steps α₀/√k. Four roads for each ε: (user, topic) pairs drawn and protected; whole users drawn and topics
//! protected, at the true price of that (erratum E1); whole users protected; nobody protected.
//!
//! ```text
//! cargo run --release -p whit-learn --example element_logistic             # 5 seeds, about a minute
//! cargo run --release -p whit-learn --example element_logistic -- 20       # 20 seeds
//! ```
//!
//! Each figure is the mean of ‖θ̂ − θ*‖ over seeds ± 1.64 standard errors. α₀, the clip norm and the rate are fixed for each road beforehand, the same for every ε; the paper
//! searched for the best.

use std::error::Error;
use std::io::Write;
use std::time::Instant;
use whit_account::calibrate::Target;
use whit_core::unit::Caps;
use whit_core::{Change, Kind, Ladder, Unit};
use whit_learn::layer::Linear;
use whit_learn::loss::{Loss, Targets};
use whit_learn::optimise::{Optimiser, Rule, Schedule};
use whit_learn::{Count, Draft, Drawn, Learner, Noise, Owners, Parts, Plan, Rows, Store, Tuning, Way};
use whit_noise::{Entropy, Replay};

type Fallible<T> = Result<T, Box<dyn Error>>;

const USERS: usize = 1000;
const ROWS: usize = 50;
const DIMENSION: usize = 10;
const TOPICS: usize = 10;
const STEPS: u64 = 200;
const EPSILONS: [f64; 6] = [0.25, 0.5, 1.0, 2.0, 4.0, 8.0];

struct People {
    features: Vec<f32>,
    answers: Vec<f32>,
    users: Vec<u64>,
    topics: Vec<u64>,
    truth: Vec<f64>,
}

fn uniform(entropy: &mut Replay) -> f64 {
    (entropy.bits(53) as f64 + 0.5) * 2f64.powi(-53)
}

/// A point on the sphere.
fn direction(entropy: &mut Replay) -> Vec<f64> {
    let point: Vec<f64> = (0..DIMENSION).map(|_| whit_account::normal::quantile(uniform(entropy))).collect();
    let length = point.iter().map(|v| v * v).sum::<f64>().sqrt();
    point.iter().map(|v| v / length).collect()
}

fn people(known: usize, seed: u64) -> People {
    let entropy = &mut Replay::new(seed);
    let centres: Vec<Vec<f64>> = (0..TOPICS).map(|_| direction(entropy)).collect();
    let truth = direction(entropy);
    let mut people = People {
        features: Vec::new(),
        answers: Vec::new(),
        users: Vec::new(),
        topics: Vec::new(),
        truth: truth.clone(),
    };
    for user in 0..USERS {
        let mut topics: Vec<usize> = (0..TOPICS).collect();
        for i in 0..known {
            let other = i + (uniform(entropy) * (TOPICS - i) as f64) as usize;
            topics.swap(i, other.min(TOPICS - 1));
        }
        for _ in 0..ROWS {
            let topic = topics[((uniform(entropy) * known as f64) as usize).min(known - 1)];
            let row: Vec<f64> = centres[topic].iter().zip(direction(entropy)).map(|(c, v)| c + v).collect();
            let z: f64 = row.iter().zip(&truth).map(|(x, t)| x * t).sum();
            people.answers.push(if uniform(entropy) < 1.0 / (1.0 + (-z).exp()) { 1.0 } else { 0.0 });
            people.features.extend(row.iter().map(|&v| v as f32));
            people.users.push(user as u64);
            people.topics.push(topic as u64);
        }
    }
    people
}

/// Who is protected, who is drawn, how long a step is at first, and how long a gradient may be.
#[derive(Clone, Copy)]
struct Road {
    name: &'static str,
    kind: Kind,
    drawn: Drawn,
    rate: &'static str,
    first: f64,
    clip: f64,
}

const ROADS: [Road; 3] = [
    Road { name: "topic, pairs drawn", kind: Kind::Element, drawn: Drawn::Units, rate: "1/5", first: 6.0, clip: 0.5 },
    Road { name: "topic, users drawn", kind: Kind::Element, drawn: Drawn::Users, rate: "1/5", first: 6.0, clip: 0.5 },
    Road { name: "user", kind: Kind::User, drawn: Drawn::Units, rate: "1/5", first: 6.0, clip: 0.5 },
];

fn plan(road: Road, known: usize, epsilon: f64) -> Fallible<Plan> {
    let caps = Caps { elements_per_user: Some(known as u64), rows_per_element: None };
    let (element, user) = (Unit::element("user", "topic"), Unit::user("user", Change::Replace));
    let units = if road.kind == Kind::User { vec![user] } else { vec![element, user] };
    let ladder = Ladder::new(units, caps, road.kind)?;
    let count = if road.kind == Kind::User { USERS } else { USERS * known };
    let draft = Draft::new(ladder, road.rate.parse()?, Count::Declared(count as u64), road.clip, STEPS);
    let draft = Draft { drawn: road.drawn, users: Some(USERS as u64), ..draft };
    Ok(draft.for_target(Target { epsilon, delta: (USERS as f64).powf(-1.1) })?)
}

/// How far θ ends from the truth.
fn error(people: &People, road: Road, plan: &Plan, noise: Noise) -> Fallible<f64> {
    let owners = Owners { users: Some(&people.users), elements: Some(&people.topics) };
    let targets = Targets::Numbers { values: people.answers.clone(), width: 1 };
    let rows = Rows::new(Store::of(people.features.clone(), DIMENSION)?, targets, road.kind, owners)?;
    let schedule = Schedule::Power { first: road.first, decay: 0.5 };
    let parts = Parts {
        model: Linear::at_zero(DIMENSION, 1, false),
        plan: plan.clone(),
        loss: Loss::Logistic,
        way: Way::Mean,
        rows,
        optimiser: Optimiser::new(Rule::PLAIN, schedule, Some(3.0), DIMENSION)?,
        average: None,
        noise,
        tuning: Tuning::default(),
    };
    let mut learner = Learner::new(parts)?;
    for _ in 0..STEPS {
        learner.step()?;
    }
    let apart = learner.theta().iter().zip(&people.truth).map(|(&a, b)| (f64::from(a) - b).powi(2));
    Ok(apart.sum::<f64>().sqrt())
}

/// Mean ± 1.64 standard errors.
fn told(errors: &[f64]) -> String {
    let n = errors.len() as f64;
    let mean = errors.iter().sum::<f64>() / n;
    let variance = errors.iter().map(|e| (e - mean).powi(2)).sum::<f64>() / (n - 1.0).max(1.0);
    format!("{mean:.3} ± {:.3}", 1.64 * (variance / n).sqrt())
}

fn main() -> Fallible<()> {
    let seeds: u64 = std::env::args().nth(1).map_or(Ok(5), |word| word.parse())?;
    let out = &mut std::io::stdout();
    let start = Instant::now();
    writeln!(out, "‖θ̂ − θ*‖ after {STEPS} steps, {USERS} users × {ROWS} rows, {seeds} seeds, δ = n^-1.1\n")?;
    for known in [2, 5, 8] {
        write!(out, "{:<22}", format!("{known} of {TOPICS} topics"))?;
        for epsilon in EPSILONS {
            write!(out, "{:>17}", format!("ε = {epsilon}"))?;
        }
        writeln!(out, "{:>17}", "nobody protected")?;
        let everyone = (0..seeds).map(|seed| people(known, seed)).collect::<Vec<_>>();
        for road in ROADS {
            write!(out, "{:<22}", road.name)?;
            let mut last = None;
            for epsilon in EPSILONS {
                let plan = plan(road, known, epsilon)?;
                let errors = everyone.iter().map(|people| error(people, road, &plan, Noise::Secret { threads: 1 }));
                write!(out, "{:>17}", told(&errors.collect::<Fallible<Vec<_>>>()?))?;
                out.flush()?;
                last = Some(plan);
            }
            if let Some(plan) = last {
                let errors = everyone.iter().map(|people| error(people, road, &plan, Noise::Off));
                write!(out, "{:>17}", told(&errors.collect::<Fallible<Vec<_>>>()?))?;
            }
            writeln!(out)?;
        }
        writeln!(out)?;
    }
    writeln!(out, "{:.0} s", start.elapsed().as_secs_f64())?;
    Ok(())
}
