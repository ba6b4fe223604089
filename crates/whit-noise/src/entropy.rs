//! Where random bits come from.
//!
//! [`Os`] is the source of every release: ChaCha20, keyed by the operating system, one generator a thread, keyed anew
//! after every mebibyte and after every fork. [`Replay`] repeats itself, for tests; it is not [`Secret`], and
//! releases ask for a `Secret`, so no release can reach it by accident.

use chacha20::ChaCha20Rng;
use chacha20::rand_core::{Rng, SeedableRng};
use std::cell::RefCell;
use std::sync::Once;
use std::sync::atomic::{AtomicU64, Ordering};

/// A source of fair, independent random bits.
pub trait Entropy {
    /// The next `count` bits (1 to 64), as the low bits of a word.
    fn bits(&mut self, count: u32) -> u64;

    /// Fills every word with 64 bits.
    fn fill(&mut self, words: &mut [u64]);
}

mod sealed {
    pub trait SecretSource {}
    impl SecretSource for super::Os {}
}

/// Entropy that nobody can predict or repeat: the only kind from which something may be released.
///
/// ```compile_fail
/// fn release(entropy: &mut dyn whit_noise::Secret) {}
/// release(&mut whit_noise::Replay::new(7)); // a seed is no secret
/// ```
pub trait Secret: Entropy + sealed::SecretSource {}
impl Secret for Os {}

/// How many words one generator gives before it is keyed anew: one mebibyte.
const WORDS_PER_KEY: usize = 1 << 17;
/// Words that wait for callers who want few at a time.
const BUFFER: usize = 64;

/// How often this process has been born by a fork. A child that finds it changed throws its parent's generator away.
static FORKS: AtomicU64 = AtomicU64::new(0);

#[cfg(unix)]
fn watch_forks() {
    extern "C" fn child() {
        FORKS.fetch_add(1, Ordering::Relaxed);
    }
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        #[expect(
            unsafe_code,
            reason = "pthread_atfork is how a library learns of a fork; the handler only adds to an atomic"
        )]
        // SAFETY: the handler is an `extern "C"` function without captured state, and it is async-signal-safe.
        let status = unsafe { libc::pthread_atfork(None, None, Some(child)) };
        assert!(status == 0, "cannot watch for forks (pthread_atfork: {status}), so random bits might be shared");
    });
}

#[cfg(not(unix))]
fn watch_forks() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {});
}

struct Generator {
    chacha: ChaCha20Rng,
    left: usize,
    forks: u64,
    buffer: [u64; BUFFER],
    at: usize,
}

impl Generator {
    fn new() -> Self {
        watch_forks();
        Self {
            chacha: keyed(),
            left: WORDS_PER_KEY,
            forks: FORKS.load(Ordering::Relaxed),
            buffer: [0; BUFFER],
            at: BUFFER,
        }
    }

    /// Drops all that a parent process may know too.
    fn check(&mut self) {
        if self.forks != FORKS.load(Ordering::Relaxed) {
            *self = Self::new();
        }
    }

    fn fill(&mut self, words: &mut [u64]) {
        self.check();
        let mut rest = words;
        while !rest.is_empty() {
            if self.left == 0 {
                self.chacha = keyed();
                self.left = WORDS_PER_KEY;
            }
            let (now, later) = rest.split_at_mut(rest.len().min(self.left).min(BUFFER * 8));
            let mut bytes = [0; BUFFER * 64];
            let bytes = &mut bytes[..now.len() * 8];
            self.chacha.fill_bytes(bytes);
            for (word, chunk) in now.iter_mut().zip(bytes.as_chunks().0) {
                *word = u64::from_le_bytes(*chunk);
            }
            self.left -= now.len();
            rest = later;
        }
    }

    fn word(&mut self) -> u64 {
        self.check();
        if self.at == BUFFER {
            let mut buffer = [0; BUFFER];
            self.fill(&mut buffer);
            self.buffer = buffer;
            self.at = 0;
        }
        let word = std::mem::take(&mut self.buffer[self.at]); // what was given out is not kept
        self.at += 1;
        word
    }
}

/// A ChaCha20 generator with a fresh key from the operating system.
///
/// # Panics
/// When the operating system has no entropy to give: going on without would be worse.
fn keyed() -> ChaCha20Rng {
    let mut key = [0; 32];
    getrandom::fill(&mut key).expect("the operating system gives entropy");
    ChaCha20Rng::from_seed(key)
}

thread_local! {
    static GENERATOR: RefCell<Generator> = RefCell::new(Generator::new());
}

/// The operating system's entropy, stretched by ChaCha20: this thread's generator.
///
/// ```
/// use whit_noise::{Entropy, Os};
/// assert!(Os.bits(3) < 8);
/// ```
#[derive(Debug, Clone, Copy, Default)]
pub struct Os;

impl Entropy for Os {
    fn bits(&mut self, count: u32) -> u64 {
        GENERATOR.with_borrow_mut(Generator::word) >> (64 - count)
    }

    fn fill(&mut self, words: &mut [u64]) {
        GENERATOR.with_borrow_mut(|generator| generator.fill(words));
    }
}

/// Bits that come again whenever the seed does. For tests and experiments: whoever knows the seed can subtract the noise.
///
/// ```
/// use whit_noise::{Entropy, Replay};
/// assert_eq!(Replay::new(7).bits(64), Replay::new(7).bits(64));
/// ```
#[derive(Debug)]
pub struct Replay(ChaCha20Rng);

impl Replay {
    /// The sequence that belongs to `seed`.
    pub fn new(seed: u64) -> Self {
        let mut key = [0; 32];
        key[..8].copy_from_slice(&seed.to_le_bytes());
        Self(ChaCha20Rng::from_seed(key))
    }
}

impl Entropy for Replay {
    fn bits(&mut self, count: u32) -> u64 {
        self.0.next_u64() >> (64 - count)
    }

    fn fill(&mut self, words: &mut [u64]) {
        for word in words {
            *word = self.0.next_u64();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A child that has inherited its parent's generator, buffer and all, must not repeat what the parent draws.
    #[cfg(unix)]
    #[test]
    fn a_forked_child_draws_other_bits_than_its_parent() {
        Os.bits(64); // the generator exists, and its buffer is full
        let mut pipe = [0; 2];
        #[expect(unsafe_code, reason = "a fork cannot be had otherwise; the child only draws, writes and leaves")]
        // SAFETY: the descriptors are this test's own, and the child calls nothing after `_exit`.
        let drawn_by_child = unsafe {
            assert_eq!(libc::pipe(pipe.as_mut_ptr()), 0);
            match libc::fork() {
                0 => {
                    let word = Os.bits(64).to_le_bytes();
                    let wrote = libc::write(pipe[1], word.as_ptr().cast(), 8);
                    libc::_exit(i32::from(wrote != 8));
                }
                child => {
                    let (mut word, mut status) = ([0_u8; 8], 0);
                    assert_eq!(libc::read(pipe[0], word.as_mut_ptr().cast(), 8), 8);
                    libc::waitpid(child, &raw mut status, 0);
                    assert_eq!(status, 0);
                    u64::from_le_bytes(word)
                }
            }
        };
        assert_ne!(drawn_by_child, Os.bits(64));
    }

    #[test]
    fn a_generator_is_keyed_anew_after_a_mebibyte() {
        let mut generator = Generator::new();
        let mut words = vec![0; WORDS_PER_KEY];
        generator.fill(&mut words);
        assert_eq!(generator.left, 0);
        // Going on with the old key would give this; the new key gives something else.
        let mut stale = [0; 8];
        generator.chacha.fill_bytes(&mut stale);
        let mut next = [0];
        generator.fill(&mut next);
        assert_ne!(next[0], u64::from_le_bytes(stale));
        assert_eq!(generator.left, WORDS_PER_KEY - 1);
    }

    #[test]
    fn bits_are_the_low_bits_of_a_word() {
        for count in 1..=64 {
            let word = Os.bits(count);
            assert!(count == 64 || word < 1 << count);
        }
    }
}
