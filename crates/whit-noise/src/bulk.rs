//! Many draws at once: by the block, and by the thread.

use crate::Overflow;
use crate::entropy::Entropy;
use std::sync::{Mutex, PoisonError};

/// Words that are drawn at once.
const BLOCK: usize = 512;

/// Fills a slice with draws that need one word each, and hardly ever more.
pub(crate) fn by_word(
    out: &mut [i64],
    entropy: &mut dyn Entropy,
    draw: impl Fn(u64, &mut dyn Entropy) -> Result<i64, Overflow>,
) -> Result<(), Overflow> {
    let mut words = [0; BLOCK];
    for block in out.chunks_mut(BLOCK) {
        let words = &mut words[..block.len()];
        entropy.fill(words);
        for (out, &word) in block.iter_mut().zip(&*words) {
            *out = draw(word, entropy)?;
        }
    }
    Ok(())
}

/// What one thread takes at a time: small enough that none waits long for another at the end.
const SHARE: usize = 1 << 16;

/// Fills a slice on several threads, each taking the next share as soon as it is done with one. Stops at the first error.
pub(crate) fn in_parallel(
    out: &mut [i64],
    threads: usize,
    fill: impl Fn(&mut [i64]) -> Result<(), Overflow> + Sync,
) -> Result<(), Overflow> {
    let shares = Mutex::new(out.chunks_mut(SHARE));
    let work = || -> Result<(), Overflow> {
        loop {
            let share = shares.lock().unwrap_or_else(PoisonError::into_inner).next();
            match share {
                Some(share) => fill(share)?,
                None => return Ok(()),
            }
        }
    };
    std::thread::scope(|scope| {
        let others: Vec<_> = (1..threads.max(1)).map(|_| scope.spawn(work)).collect();
        let mine = work();
        let join = |other: std::thread::ScopedJoinHandle<'_, _>| {
            other.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        };
        others.into_iter().map(join).fold(mine, Result::and)
    })
}

/// Takes words from another source by the block, for draws that need several.
pub(crate) struct WordBlock<'a> {
    entropy: &'a mut dyn Entropy,
    words: [u64; BLOCK],
    at: usize,
}

impl<'a> WordBlock<'a> {
    pub(crate) fn new(entropy: &'a mut dyn Entropy) -> Self {
        Self { entropy, words: [0; BLOCK], at: BLOCK }
    }
}

impl Entropy for WordBlock<'_> {
    fn bits(&mut self, count: u32) -> u64 {
        if self.at == BLOCK {
            self.entropy.fill(&mut self.words);
            self.at = 0;
        }
        self.at += 1;
        self.words[self.at - 1] >> (64 - count)
    }

    fn fill(&mut self, words: &mut [u64]) {
        self.entropy.fill(words);
    }
}
