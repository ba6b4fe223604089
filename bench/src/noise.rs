//! Is a draw's time the same at every scale, and how does it compare with peers that are exact, or fast, but not both?

use crate::clock::{fastest, timed};
use crate::{memory, table};
use chacha20::ChaCha20Rng;
use chacha20::rand_core::{Rng, SeedableRng};
use dashu::rational::RBig;
use opendp::traits::samplers::{sample_discrete_gaussian, sample_discrete_laplace};
use rand_distr::{Distribution, Normal};
use serde::Serialize;
use std::error::Error;
use std::hint::black_box;
use std::io::{self, Write};
use whit_noise::{DiscreteGaussian, DiscreteLaplace, Os, Ratio, RoundedGaussian};

/// The scales (standard deviations, for a Gaussian) at which everything is drawn.
const SCALES: [u32; 3] = [1, 1_000, 1_000_000];
const DRAWS: usize = 10_000_000;
/// The exact peers are slow, so fewer draws have to do; all figures are per draw.
const PEER_DRAWS: usize = 20_000;
const REPEATS: usize = 7;

type Outcome = Result<(), Box<dyn Error>>;

/// One sampler's nanoseconds a draw, scale by scale.
#[derive(Serialize)]
struct Time {
    sampler: &'static str,
    threads: usize,
    nanoseconds: [f64; SCALES.len()],
}

/// How many times faster (or, of the inexact peer, how many times its time), scale by scale.
#[derive(Serialize)]
struct Ratios {
    id: &'static str,
    what: &'static str,
    times: [f64; SCALES.len()],
}

/// The MiB that filling takes beyond its output.
#[derive(Serialize)]
struct Memory {
    draws: usize,
    mebibytes: f64,
}

/// Everything that was measured.
#[derive(Serialize)]
pub(crate) struct Noise {
    scales: [u32; SCALES.len()],
    draws: usize,
    times: Vec<Time>,
    ratios: Vec<Ratios>,
    memory: Vec<Memory>,
}

const ROUNDED: &str = "rounded Gaussian";
const LAPLACE: &str = "discrete Laplace";
const DISCRETE: &str = "discrete Gaussian";
const PEER_LAPLACE: &str = "opendp, discrete Laplace";
const PEER_GAUSSIAN: &str = "opendp, discrete Gaussian";
const PEER_NORMAL: &str = "rand_distr, normal in f64 (inexact)";
const WORDS: &str = "ChaCha20, one 64-bit word (the floor)";

/// Who is timed, with how many threads and draws.
const FIELD: [(&str, usize, usize); 10] = [
    (ROUNDED, 1, DRAWS),
    (LAPLACE, 1, DRAWS),
    (DISCRETE, 1, DRAWS),
    (PEER_GAUSSIAN, 1, PEER_DRAWS),
    (PEER_LAPLACE, 1, PEER_DRAWS),
    (PEER_NORMAL, 1, DRAWS),
    (WORDS, 1, DRAWS),
    (ROUNDED, 2, DRAWS),
    (LAPLACE, 2, DRAWS),
    (DISCRETE, 2, DRAWS),
];

/// Times the whole field in turns, so that whatever else the machine does falls on all alike.
pub(crate) fn race() -> Result<Noise, Box<dyn Error>> {
    let (mut integers, mut floats) = (vec![0; DRAWS], vec![0.0; DRAWS]);
    let mut times = FIELD.map(|(sampler, threads, _)| Time { sampler, threads, nanoseconds: [0.0; SCALES.len()] });
    for (at, &scale) in SCALES.iter().enumerate() {
        let mut laps = FIELD.map(|_| Vec::new());
        for _ in 0..REPEATS {
            for (&(sampler, threads, draws), laps) in FIELD.iter().zip(&mut laps) {
                let (outcome, seconds) =
                    timed(|| draw(sampler, threads, scale, &mut integers[..draws], &mut floats[..draws]));
                outcome?;
                laps.push(seconds * 1e9 / draws as f64);
            }
        }
        for (time, laps) in times.iter_mut().zip(laps) {
            time.nanoseconds[at] = fastest(&laps);
        }
    }
    let memory = |draws| memory::peak_of(&format!("fill-{draws}")).map(|mebibytes| Memory { draws, mebibytes });
    let memory = vec![memory(DRAWS / 100)?, memory(DRAWS)?];
    Ok(Noise { scales: SCALES, draws: DRAWS, ratios: ratios(&times), times: times.into(), memory })
}

/// One lap. Setting a sampler up belongs to it.
fn draw(sampler: &str, threads: usize, scale: u32, integers: &mut [i64], floats: &mut [f64]) -> Outcome {
    let (ratio, seed) = (Ratio::from(u64::from(scale)), [7; 32]);
    match (sampler, threads) {
        (ROUNDED, 1) => RoundedGaussian::new(ratio)?.fill(integers, &mut Os)?,
        (ROUNDED, _) => RoundedGaussian::new(ratio)?.fill_parallel(integers, threads)?,
        (LAPLACE, 1) => DiscreteLaplace::new(ratio)?.fill(integers, &mut Os)?,
        (LAPLACE, _) => DiscreteLaplace::new(ratio)?.fill_parallel(integers, threads)?,
        (DISCRETE, 1) => DiscreteGaussian::new(variance(scale))?.fill(integers, &mut Os)?,
        (DISCRETE, _) => DiscreteGaussian::new(variance(scale))?.fill_parallel(integers, threads)?,
        (PEER_LAPLACE | PEER_GAUSSIAN, _) => {
            let peer = if sampler == PEER_LAPLACE { sample_discrete_laplace } else { sample_discrete_gaussian };
            let scale = RBig::from(scale);
            for _ in 0..integers.len() {
                black_box(peer(scale.clone()).map_err(|error| error.to_string())?);
            }
        }
        (PEER_NORMAL, _) => {
            let (normal, mut generator) = (Normal::new(0.0, f64::from(scale))?, ChaCha20Rng::from_seed(seed));
            floats.fill_with(|| normal.sample(&mut generator));
        }
        (WORDS, _) => {
            let (mut generator, mut block) = (ChaCha20Rng::from_seed(seed), [0; 4096]);
            for _ in 0..integers.len() * 8 / block.len() {
                generator.fill_bytes(black_box(&mut block));
            }
        }
        _ => return Err(format!("nobody is called `{sampler}`").into()),
    }
    black_box((integers, floats));
    Ok(())
}

fn variance(scale: u32) -> Ratio {
    Ratio::from(u64::from(scale).pow(2))
}

/// What a child does while its memory is watched.
pub(crate) fn fill_all(out: &mut [i64]) -> Outcome {
    for sampler in [ROUNDED, LAPLACE, DISCRETE] {
        SCALES.iter().try_for_each(|&scale| draw(sampler, 1, scale, out, &mut []))?;
    }
    Ok(())
}

fn ratios(times: &[Time]) -> Vec<Ratios> {
    let of = |sampler: &str, threads: usize| {
        let time = times.iter().find(|time| time.sampler == sampler && time.threads == threads);
        time.map_or([f64::NAN; SCALES.len()], |time| time.nanoseconds)
    };
    let ratio = |id, what, over: [f64; SCALES.len()], under: [f64; SCALES.len()]| {
        let mut times = over;
        times.iter_mut().zip(under).for_each(|(over, under)| *over /= under);
        Ratios { id, what, times }
    };
    let (rounded, laplace, discrete) = (of(ROUNDED, 1), of(LAPLACE, 1), of(DISCRETE, 1));
    let (peer, inexact) = (of(PEER_GAUSSIAN, 1), of(PEER_NORMAL, 1));
    vec![
        ratio("rounded/opendp", "rounded Gaussian: speed over opendp's discrete Gaussian", peer, rounded),
        ratio("laplace/opendp", "discrete Laplace: speed over opendp's", of(PEER_LAPLACE, 1), laplace),
        ratio("discrete/opendp", "discrete Gaussian: speed over opendp's", peer, discrete),
        ratio("rounded/rand_distr", "rounded Gaussian: time over rand_distr's normal", rounded, inexact),
        ratio("laplace/rand_distr", "discrete Laplace: time over rand_distr's normal", laplace, inexact),
        ratio("discrete/rand_distr", "discrete Gaussian: time over rand_distr's normal", discrete, inexact),
        ratio("rounded/threads", "rounded Gaussian: speed of two threads over one", rounded, of(ROUNDED, 2)),
        ratio("laplace/threads", "discrete Laplace: speed of two threads over one", laplace, of(LAPLACE, 2)),
        ratio("discrete/threads", "discrete Gaussian: speed of two threads over one", discrete, of(DISCRETE, 2)),
    ]
}

impl Noise {
    /// For people.
    pub(crate) fn write_table(&self, out: &mut dyn Write) -> io::Result<()> {
        let row = |name: &str, values: &[f64; SCALES.len()], digits: usize| {
            [name.to_owned()].into_iter().chain(values.iter().map(|value| format!("{value:.digits$}"))).collect()
        };
        let heading = |text: &str| {
            [text.to_owned()].into_iter().chain(SCALES.iter().map(|scale| format!("scale {scale}"))).collect()
        };
        let mut rows: Vec<Vec<String>> = vec![heading("nanoseconds a draw")];
        for time in &self.times {
            let threads = if time.threads > 1 { format!(", {} threads", time.threads) } else { String::new() };
            rows.push(row(&format!("  {}{threads}", time.sampler), &time.nanoseconds, 2));
        }
        rows.push(heading("ratios"));
        rows.extend(self.ratios.iter().map(|ratio| row(&format!("  {}", ratio.what), &ratio.times, 2)));
        table::write(&rows, out)?;
        for memory in &self.memory {
            writeln!(out, "memory beyond an output of {} draws: {:.2} MiB", memory.draws, memory.mebibytes)?;
        }
        Ok(())
    }
}
