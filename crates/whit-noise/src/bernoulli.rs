//! Coins with an exactly stated bias.

use crate::ball;
use crate::entropy::Entropy;
use crate::quantile::{LOG_BINADES, log_error, log_table, minus_ln};
use crate::ratio::Ratio;
use crate::uniform::Unknown;
use dashu_int::IBig;
use std::cmp::Ordering;

/// True with probability exactly `p`.
///
/// A uniform real is compared with p bit by bit, and the first bit in which they differ decides: two bits on average.
///
/// ```
/// use whit_noise::{Os, Ratio, bernoulli};
/// assert!(bernoulli(&Ratio::ONE, &mut Os));
/// ```
///
/// # Panics
/// When `p` is greater than 1.
pub fn bernoulli(p: &Ratio, entropy: &mut dyn Entropy) -> bool {
    let (mut numerator, denominator) = (p.numerator(), p.denominator());
    assert!(numerator <= denominator, "a probability of {p} is greater than 1");
    if numerator == denominator {
        return true;
    }
    loop {
        if numerator == 0 {
            return false; // all further bits of p are 0, and the uniform real is greater almost surely
        }
        numerator *= 2; // below 2^127: fractions stay below 2^126
        let expected = numerator >= denominator;
        if expected {
            numerator -= denominator;
        }
        match (entropy.bits(1) == 1, expected) {
            (false, true) => return true,
            (true, false) => return false,
            _ => {}
        }
    }
}

/// True with probability exactly e^-x.
///
/// A uniform real V is less than e^-x when −ln V is greater than x; both are first compared in `f64`, with the
/// certified error of the logarithm, and only a comparison that is too close goes on in ball arithmetic.
///
/// ```
/// use whit_noise::{Os, Ratio, bernoulli_exp};
/// assert!(bernoulli_exp(&Ratio::ZERO, &mut Os));
/// ```
pub fn bernoulli_exp(x: &Ratio, entropy: &mut dyn Entropy) -> bool {
    if x.is_zero() {
        return true;
    }
    accept(x.to_f64(), entropy, || (IBig::from(x.numerator()), IBig::from(x.denominator())))
}

/// True with probability exactly e^-x, where `near` is x to within a relative 2^-49 and `exact` gives its fraction.
pub(crate) fn accept(near: f64, entropy: &mut dyn Entropy, exact: impl Fn() -> (IBig, IBig)) -> bool {
    let bits = entropy.bits(63);
    if bits != 0 {
        let (log, binade) = minus_ln(log_table(), bits);
        if binade < LOG_BINADES {
            let slack = log_error(binade) + near * 2f64.powi(-48);
            if log > near + slack {
                return true;
            }
            if log < near - slack {
                return false;
            }
        }
    }
    let (numerator, denominator) = exact();
    let threshold = |precision| ball::exp_minus(&numerator, &denominator, precision);
    Unknown::new(bits, 63).compare(entropy, threshold) == Ordering::Less
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fit::BitTree;
    use crate::uniform::below;

    fn ratio(n: u128, d: u128) -> Ratio {
        Ratio::new(n, d).unwrap()
    }

    /// All strings of random bits down to depth 40, each with its probability: nothing is left to chance.
    #[test]
    fn a_biased_coin_has_exactly_its_bias() {
        for (n, d) in [(1, 3), (2, 3), (1, 2), (5, 7), (1, 1000), (999, 1000), (3, 8)] {
            let (yes, open) = BitTree::new(40).probability(|entropy| bernoulli(&ratio(n, d), entropy));
            // The mass at p − yes that is still open is what the bits beyond depth 40 decide.
            let p = n as f64 / d as f64;
            assert!(yes <= p + 1e-15 && p <= yes + open + 1e-15, "{n}/{d}: {yes} + {open}");
            assert!(open <= 2f64.powi(-39), "{open}");
        }
        let (wrong, open) =
            BitTree::new(40).probability(|entropy| bernoulli(&ratio(1, 3), entropy) || entropy.bits(12) == 0);
        assert!(wrong > 1.0 / 3.0 + 1e-4 && open < 1e-7, "a bias of one in 4,096 would be seen");
    }

    #[test]
    fn a_uniform_integer_is_exactly_uniform() {
        for n in [1, 2, 3, 5, 6, 7, 12, 17] {
            for k in 0..n {
                let (hit, open) = BitTree::new(18).probability(|entropy| below(n, entropy) == k);
                let p = 1.0 / n as f64;
                assert!(hit <= p + 1e-15 && p <= hit + open + 1e-15, "{k} of {n}");
            }
        }
    }

    /// The coin is a threshold on 63 bits: find the threshold by bisection and compare it with e^-x.
    #[test]
    fn an_exponential_coin_turns_at_the_exact_threshold() {
        for (n, d) in [(1, 1), (1, 3), (7, 2), (1, 1_000_000), (20, 1), (40, 1)] {
            let x = ratio(n, d);
            let says = |bits: u64| bernoulli_exp(&x, &mut Script::new(bits));
            let (mut low, mut high) = (0, 1_u64 << 63);
            while high - low > 1 {
                let middle = low + (high - low) / 2;
                if says(middle) { low = middle } else { high = middle }
            }
            let exact = ball::exp_minus(&IBig::from(n), &IBig::from(d), 63);
            let at = IBig::from(low);
            assert!(exact.low() <= &at + IBig::ONE && at <= exact.high(), "e^-{n}/{d} turns at {low}");
        }
    }

    /// One scripted word, then fair bits from a fixed seed.
    struct Script {
        first: Option<u64>,
        rest: crate::Replay,
    }

    impl Script {
        fn new(first: u64) -> Self {
            Self { first: Some(first), rest: crate::Replay::new(3) }
        }
    }

    impl Entropy for Script {
        fn bits(&mut self, count: u32) -> u64 {
            self.first.take().unwrap_or_else(|| self.rest.bits(count))
        }
        fn fill(&mut self, words: &mut [u64]) {
            for word in words {
                *word = self.bits(64);
            }
        }
    }
}
