//! Noise that is drawn on another thread while the last step is still at work.

use super::SanitiserError;
use crate::plan::NoiseSource;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::JoinHandle;
use whit_core::mechanism::SanitiseError;
use whit_core::mechanism::additive::Additive;
use whit_noise::{Os, Replay};

/// Buffers on the way: one in use, one being filled.
const BUFFERS: usize = 2;

/// A thread that fills buffers with noise, one step ahead.
///
/// A filled buffer is handed over by value and comes back by value to be filled anew, so no draw can be used twice: the
/// owner is one at any time. The one way round that is a fork, which copies filled buffers into a process where no thread
/// fills them; it is noticed and refused.
#[derive(Debug)]
pub(super) struct Ahead {
    /// The way there; gone once this is dropped.
    empty: Option<SyncSender<Vec<i64>>>,
    /// The way back.
    full: Receiver<Result<Vec<i64>, SanitiseError>>,
    /// What the thread draws.
    noise: Arc<Additive>,
    thread: Option<JoinHandle<()>>,
    process: u32,
}

impl Ahead {
    /// Starts the thread, which begins at once.
    pub(super) fn new(noise: Additive, coordinates: usize, source: NoiseSource) -> Result<Self, SanitiserError> {
        // As much room as there are buffers, so no `send` ever waits.
        let (give_empty, empty) = sync_channel::<Vec<i64>>(BUFFERS);
        let (give_full, full) = sync_channel(BUFFERS);
        for _ in 0..BUFFERS {
            give_empty.send(vec![0; coordinates]).map_err(|_| SanitiserError::Stopped)?;
        }
        let noise = Arc::new(noise);
        let drawn = Arc::clone(&noise);
        let work = move || {
            let mut replay = match source {
                NoiseSource::Replay { seed } => Some(Replay::new(seed)),
                NoiseSource::Secret { .. } | NoiseSource::Off => None,
            };
            for mut buffer in empty {
                buffer.resize(coordinates, 0);
                let filled = match (source, &mut replay) {
                    (NoiseSource::Secret { threads: 0 | 1 }, _) => drawn.fill(&mut buffer, &mut Os),
                    (NoiseSource::Secret { threads }, _) => drawn.fill_parallel(&mut buffer, threads),
                    (NoiseSource::Replay { .. }, Some(replay)) => drawn.fill(&mut buffer, replay),
                    (NoiseSource::Replay { .. }, None) | (NoiseSource::Off, _) => {
                        buffer.fill(0);
                        Ok(())
                    }
                };
                if give_full.send(filled.map(|()| buffer)).is_err() {
                    return; // the learner is gone
                }
            }
        };
        let thread = std::thread::Builder::new().name("whit-noise".to_owned()).spawn(work);
        let thread = thread.map_err(|error| SanitiserError::Thread { reason: error.to_string() })?;
        Ok(Self { empty: Some(give_empty), full, noise, thread: Some(thread), process: std::process::id() })
    }

    /// The noise that buffers are filled with.
    pub(super) fn noise(&self) -> &Additive {
        &self.noise
    }

    /// The next buffer, filled. Waits for it where the thread is behind.
    pub(super) fn take(&mut self) -> Result<Vec<i64>, SanitiserError> {
        if std::process::id() != self.process {
            return Err(SanitiserError::Forked);
        }
        Ok(self.full.recv().map_err(|_| SanitiserError::Stopped)??)
    }

    /// Hands a used buffer back, to be filled anew.
    pub(super) fn give_back(&mut self, buffer: Vec<i64>) {
        if let Some(empty) = &self.empty {
            // A thread that is gone needs no buffers, and the next `take` says so.
            let _ = empty.send(buffer);
        }
    }
}

impl Drop for Ahead {
    fn drop(&mut self) {
        self.empty = None; // the thread's loop ends with the buffer that it is at
        if std::process::id() != self.process {
            return; // the thread is the parent's
        }
        if let Some(thread) = self.thread.take() {
            // A panic over there was reported by `take` already.
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;
    use whit_core::mechanism::additive::{Coordinates, Law, Reach};

    fn noise(coordinates: usize) -> Additive {
        let law = Law::rounded("1000000".parse().unwrap()).unwrap();
        Additive::new(law, Reach::known(Vec::new()), Coordinates::Many(coordinates))
    }

    fn ahead(coordinates: usize, source: NoiseSource) -> Ahead {
        Ahead::new(noise(coordinates), coordinates, source).unwrap()
    }

    /// All draws of all steps, one after the other, are those of one generator: none lost, none given twice.
    #[test]
    fn every_buffer_is_given_once_and_in_order() {
        let (d, steps) = (1_003, 50);
        let mut ahead = ahead(d, NoiseSource::Replay { seed: 17 });
        let mut replay = Replay::new(17);
        for step in 0..steps {
            let mut expected = vec![0; d];
            noise(d).fill(&mut expected, &mut replay).unwrap();
            let buffer = ahead.take().unwrap();
            assert_eq!(buffer, expected, "step {step}");
            ahead.give_back(buffer);
        }
    }

    /// Draws at σ = 10⁶ seldom agree; two buffers of a thousand that agree anywhere in 64 places in a row are one.
    #[test]
    fn secret_noise_never_comes_again() {
        for threads in [1, 3] {
            let (d, steps) = (1_000, 40);
            let mut ahead = ahead(d, NoiseSource::Secret { threads });
            let (mut seen, mut drawn) = (BTreeSet::new(), 0);
            for _ in 0..steps {
                let buffer = ahead.take().unwrap();
                drawn += buffer.len();
                for row in buffer.chunks_exact(8) {
                    assert!(seen.insert(row.to_vec()), "eight draws of σ = 10⁶ came again");
                }
                ahead.give_back(buffer);
            }
            assert_eq!((drawn, seen.len()), (d * steps, d * steps / 8));
        }
    }

    /// A buffer that is given back is not what is given next, whatever was written into it.
    #[test]
    fn what_is_given_back_is_filled_anew() {
        let mut ahead = ahead(100, NoiseSource::Secret { threads: 1 });
        for _ in 0..10 {
            let mut buffer = ahead.take().unwrap();
            assert!(buffer.iter().any(|&draw| draw != 7));
            buffer.fill(7);
            buffer.truncate(3); // even one of another length
            ahead.give_back(buffer);
        }
        assert_eq!(ahead.take().unwrap().len(), 100);
    }

    /// A child that was forked off has the filled buffers, and no thread: it would use its parent's noise again.
    #[test]
    fn another_process_gets_no_noise() {
        let mut ahead = ahead(10, NoiseSource::Secret { threads: 1 });
        ahead.process = ahead.process.wrapping_add(1); // as a child would see it
        assert_eq!(ahead.take(), Err(SanitiserError::Forked));
    }

    #[test]
    fn the_thread_ends_with_its_owner_at_any_moment() {
        for takes in 0..4 {
            let mut ahead = ahead(10_000, NoiseSource::Secret { threads: 1 });
            for _ in 0..takes.min(BUFFERS) {
                ahead.take().unwrap(); // and never given back
            }
            drop(ahead); // joins, or this test never ends
        }
        assert!(NoiseSource::Secret { threads: 1 }.protects());
        assert!(!NoiseSource::Replay { seed: 1 }.protects() && !NoiseSource::Off.protects());
    }
}
