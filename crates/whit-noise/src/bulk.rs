//! Many draws at once: by the block, and by the thread.

use crate::Overflow;
use crate::entropy::Entropy;

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

/// Cuts a slice into one part a thread and fills each; the first error is reported after all have ended.
pub(crate) fn in_parallel(
    out: &mut [i64],
    threads: usize,
    fill: impl Fn(&mut [i64]) -> Result<(), Overflow> + Sync,
) -> Result<(), Overflow> {
    let share = out.len().div_ceil(threads.max(1)).max(1);
    std::thread::scope(|scope| {
        let fill = &fill;
        let parts: Vec<_> = out.chunks_mut(share).map(|part| scope.spawn(move || fill(part))).collect();
        parts.into_iter().try_for_each(|part| part.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
    })
}

/// Takes words from another source by the block, for draws that need several.
pub(crate) struct Ahead<'a> {
    entropy: &'a mut dyn Entropy,
    words: [u64; BLOCK],
    at: usize,
}

impl<'a> Ahead<'a> {
    pub(crate) fn new(entropy: &'a mut dyn Entropy) -> Self {
        Self { entropy, words: [0; BLOCK], at: BLOCK }
    }
}

impl Entropy for Ahead<'_> {
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
