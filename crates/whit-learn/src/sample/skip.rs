//! How many coins fall on "not drawn" before the next one shows "drawn", exactly.

use dashu_int::IBig;
use whit_noise::ball::Ball;
use whit_noise::{Entropy, Ratio};

/// P(at least k) = (1 − q)ᵏ for a rational q in (0, 1).
///
/// # Why
/// For a uniform real V the largest k with V < (1 − q)ᵏ is at least k with probability (1 − q)ᵏ. Floats find it as
/// ⌊ln V / ln(1 − q)⌋ from the first 63 bits of V; where the float is too close to a whole number for its error bound, V
/// is compared with the powers themselves in interval arithmetic, and more of its bits are drawn until the answer is certain.
#[derive(Debug, Clone)]
pub(super) struct Skip {
    /// 1 − q.
    kept: Ratio,
    /// −1/ln(1 − q), to within a relative 2^-47.
    scale: f64,
}

impl Skip {
    /// The law for a rate between 0 and 1, both left out.
    pub(super) fn new(rate: &Ratio) -> Option<Self> {
        let above = rate.denominator().checked_sub(rate.numerator())?;
        let kept = Ratio::new(above, rate.denominator()).ok()?;
        if rate.is_zero() || kept.is_zero() {
            return None;
        }
        // `to_f64` is within a relative 2^-51. Up to q = 1/2 a relative error of q grows by at most 1.45 in −ln(1 − q). Above,
        // a relative error of 1 − q moves the logarithm by as much, and that is at least ln 2. FreeBSD's s_log1p.c and
        // e_log.c are good to one unit in the last place, so 2^-47 holds with room.
        let log = if rate.to_f64() <= 0.5 { -libm::log1p(-rate.to_f64()) } else { -libm::log(kept.to_f64()) };
        Some(Self { kept, scale: 1.0 / log })
    }

    /// The number of coins before the next "drawn", or `most` where there are as many or more.
    pub(super) fn draw(&self, most: u64, entropy: &mut dyn Entropy) -> u64 {
        let bits = entropy.bits(63);
        // Below 2^20 (once in 10^13 draws) the unknown bits of V matter too much.
        if bits >= 1 << 20 {
            let float = bits as f64;
            let value = -libm::log(float * 2f64.powi(-63)) * self.scale;
            // V is within a relative 1/bits of its first bits, these within 2^-53 of the float; the logarithm is good
            // to one unit in the last place (FreeBSD's e_log.c), the scale to 2^-47, the product to 2^-53.
            let tolerance = self.scale * (1.0 / float + 2f64.powi(-51)) + value * 2f64.powi(-46);
            if value - tolerance >= most as f64 {
                return most;
            }
            let whole = value.floor();
            if value - whole > tolerance && whole + 1.0 - value > tolerance {
                return whole as u64; // less than `most`: else the line before the last would have been too close to tell
            }
        }
        self.settle(bits, most, entropy)
    }

    /// The same, by bisection on exact comparisons.
    #[cold]
    fn settle(&self, bits: u64, most: u64, entropy: &mut dyn Entropy) -> u64 {
        let mut uniform = Uniform { bits: IBig::from(bits), known: 63 };
        if uniform.is_below(entropy, |precision| self.power(most, precision)) {
            return most;
        }
        let (mut low, mut high) = (0, most); // V < (1 − q)^low holds, V < (1 − q)^high does not
        while high - low > 1 {
            let middle = low + (high - low) / 2;
            if uniform.is_below(entropy, |precision| self.power(middle, precision)) {
                low = middle;
            } else {
                high = middle;
            }
        }
        low
    }

    /// (1 − q)ᵏ, by squaring.
    fn power(&self, k: u64, precision: usize) -> Ball {
        // Each of the 128 products at most doubles the radius and adds two.
        let work = precision + 160;
        let mut square = Ball::ratio(&IBig::from(self.kept.numerator()), &IBig::from(self.kept.denominator()), work);
        let mut power = Ball::integer(&IBig::ONE, work);
        let mut left = k;
        while left > 0 {
            if left & 1 == 1 {
                power = power.times(&square);
            }
            square = square.times(&square);
            left >>= 1;
        }
        power.at(precision)
    }
}

/// A uniform real in (0, 1), of which only the first bits are known.
struct Uniform {
    bits: IBig,
    known: usize,
}

impl Uniform {
    /// Whether it is less than a threshold that can be computed to any precision; equality has probability 0.
    fn is_below(&mut self, entropy: &mut dyn Entropy, threshold: impl Fn(usize) -> Ball) -> bool {
        loop {
            let ball = threshold(self.known + 16);
            if (&self.bits + IBig::ONE) << 16 <= ball.low() {
                return true;
            }
            if &self.bits << 16 >= ball.high() {
                return false;
            }
            self.bits = (&self.bits << 64) + IBig::from(entropy.bits(64));
            self.known += 64;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use whit_noise::Replay;

    fn skip(n: u128, d: u128) -> Skip {
        Skip::new(&Ratio::new(n, d).unwrap()).unwrap()
    }

    /// One scripted word, then fair bits.
    struct Script(Option<u64>, Replay);

    impl Entropy for Script {
        fn bits(&mut self, count: u32) -> u64 {
            self.0.take().unwrap_or_else(|| self.1.bits(count))
        }
        fn fill(&mut self, words: &mut [u64]) {
            words.fill_with(|| self.1.bits(64));
        }
    }

    /// Floats and interval arithmetic are two ways to one answer: they agree on the same bits.
    #[test]
    fn the_fast_way_and_the_exact_way_agree() {
        let mut entropy = Replay::new(0x5c1);
        for (n, d) in [(1, 2000), (1, 2), (2, 3), (1, 3), (999, 1000), (1, 1_000_003), (1, 1 << 40), (7, 1 << 60)] {
            let skip = skip(n, d);
            for most in [0, 1, 5, 3000, 1 << 32] {
                for shift in [0, 0, 0, 0, 0, 0, 1, 1, 4, 10, 30, 43, 50] {
                    let bits = entropy.bits(63) >> shift;
                    let fast = skip.draw(most, &mut Script(Some(bits), Replay::new(1)));
                    let exact = skip.settle(bits, most, &mut Replay::new(1));
                    assert_eq!(fast, exact, "{n}/{d}, at most {most}, V = {bits}/2^63");
                }
            }
        }
    }

    /// Right at (1 − q)ᵏ the answer turns: the last 63-bit word below says k or more, the first one above says less.
    #[test]
    fn the_answer_turns_at_the_exact_power() {
        for (n, d, k) in [(1, 2000, 1), (1, 2000, 1234), (1, 3, 5), (2, 3, 7), (1, 2, 3), (1, 1_000_003, 900_001)] {
            let skip = skip(n, d);
            let (mut low, mut high) = (0_u64, 1 << 63);
            while high - low > 1 {
                let middle = low + (high - low) / 2;
                let found = skip.draw(1 << 40, &mut Script(Some(middle), Replay::new(9)));
                if found >= k { low = middle } else { high = middle }
            }
            let exact = skip.power(k, 63);
            assert!(exact.low() <= IBig::from(low) + IBig::ONE && IBig::from(low) <= exact.high(), "{n}/{d}, {k}");
        }
    }

    #[test]
    fn a_rate_of_nothing_or_all_needs_no_coins() {
        assert!(Skip::new(&Ratio::ZERO).is_none() && Skip::new(&Ratio::ONE).is_none());
        assert!(Skip::new(&Ratio::from(2)).is_none());
    }
}
