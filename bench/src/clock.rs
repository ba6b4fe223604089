//! Stopwatch, median and fastest lap.

use std::time::Instant;

/// What a call gives, and the seconds that it takes.
pub(crate) fn timed<T>(call: impl FnOnce() -> T) -> (T, f64) {
    let start = Instant::now();
    let given = call();
    (given, start.elapsed().as_secs_f64())
}

/// The middle one, or the upper of two; a neighbour that wakes up for one of them leaves no trace.
pub(crate) fn median(mut times: Vec<f64>) -> f64 {
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}

/// The fastest one: what else runs on the machine can only add time, and two threads feel it twice.
pub(crate) fn fastest(times: &[f64]) -> f64 {
    times.iter().copied().fold(f64::INFINITY, f64::min)
}
