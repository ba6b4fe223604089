//! Uniform integers, and a uniform real whose bits are drawn only when somebody asks.

use crate::ball::Ball;
use crate::entropy::Entropy;
use dashu_int::IBig;
use std::cmp::Ordering;

/// A uniform integer in `0..n`, exactly: the fewest bits that can hold it are drawn until they do.
///
/// ```
/// use whit_noise::{Os, below};
/// assert!(below(6, &mut Os) < 6);
/// ```
///
/// # Panics
/// When `n` is 0: there is no such integer.
pub fn below(n: u64, entropy: &mut dyn Entropy) -> u64 {
    assert!(n > 0, "a uniform integer below 0 does not exist");
    let width = 64 - (n - 1).leading_zeros();
    if width == 0 {
        return 0;
    }
    loop {
        let draw = entropy.bits(width);
        if draw < n {
            return draw;
        }
    }
}

/// A uniform real in (0, 1) of which only the first bits are known.
#[derive(Debug, Clone)]
pub(crate) struct Unknown {
    /// The known bits, as an integer.
    bits: IBig,
    /// How many they are.
    known: usize,
}

impl Unknown {
    pub(crate) fn new(bits: u64, known: usize) -> Self {
        Self { bits: IBig::from(bits), known }
    }

    fn extend(&mut self, entropy: &mut dyn Entropy) {
        self.bits = (&self.bits << 64) + IBig::from(entropy.bits(64));
        self.known += 64;
    }

    /// Whether the real is less or greater than a threshold that can be computed to any precision. Draws more bits
    /// until the answer is certain; equality has probability 0.
    pub(crate) fn compare(&mut self, entropy: &mut dyn Entropy, threshold: impl Fn(usize) -> Ball) -> Ordering {
        loop {
            let ball = threshold(self.known + 16);
            let (low, high) = (&self.bits << 16, (&self.bits + IBig::ONE) << 16);
            if high <= ball.low() {
                return Ordering::Less;
            }
            if low >= ball.high() {
                return Ordering::Greater;
            }
            self.extend(entropy);
        }
    }

    /// Which of two statistics of two such reals is larger; both are drawn further until it is certain.
    pub(crate) fn race(
        &mut self,
        other: &mut Self,
        entropy: &mut dyn Entropy,
        sides: impl Fn(&Self, &Self, usize) -> (Ball, Ball),
    ) -> Ordering {
        loop {
            let (mine, theirs) = sides(self, other, self.known.max(other.known) + 16);
            if mine.high() < theirs.low() {
                return Ordering::Less;
            }
            if mine.low() > theirs.high() {
                return Ordering::Greater;
            }
            self.extend(entropy);
            other.extend(entropy);
        }
    }

    /// The real, as far as it is known.
    pub(crate) fn ball(&self, precision: usize) -> Ball {
        let shift = precision - self.known;
        Ball::between(&(&self.bits << shift), &((&self.bits + IBig::ONE) << shift), precision)
    }

    /// Its negative logarithm, as far as it is known; nothing while the real may still be 0.
    pub(crate) fn minus_ln(&self, precision: usize) -> Option<Ball> {
        if self.bits == IBig::ZERO {
            return None;
        }
        let one = IBig::ONE << self.known;
        let high = crate::ball::minus_ln(&self.bits, &one, precision);
        let low = crate::ball::minus_ln(&(&self.bits + IBig::ONE), &one, precision);
        Some(Ball::between(&low.low(), &high.high(), precision))
    }
}
