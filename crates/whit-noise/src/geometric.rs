//! The geometric law and its two-sided form, the discrete Laplace law.

use crate::ball::{self, Ball};
use crate::entropy::{Entropy, Os};
use crate::quantile::{LOG_BINADES, log_error, log_table, minus_ln};
use crate::ratio::{BadRatio, Ratio};
use crate::uniform::Unknown;
use crate::{Overflow, bulk};
use dashu_int::IBig;
use std::cmp::Ordering;

/// P(k) = (1 − a)·aᵏ for k = 0, 1, 2, …, with a = e^(−1/scale).
///
/// Drawn as ⌊−scale·ln V⌋ for a uniform real V, of which as many bits are drawn as the floor needs.
///
/// ```
/// use whit_noise::{Geometric, Os, Ratio};
/// let failures = Geometric::new(Ratio::from(5))?.draw(&mut Os);
/// assert!(failures.is_ok());
/// # Ok::<(), whit_noise::BadRatio>(())
/// ```
#[derive(Debug, Clone)]
pub struct Geometric(Floor);

/// P(x) = (1 − a)/(1 + a)·a^|x| for every integer x, with a = e^(−1/scale).
///
/// |x| ≥ k has probability 2aᵏ/(1 + a) for k ≥ 1, so |x| = ⌊scale·(−ln V) + scale·ln(2/(1 + a))⌋ for a uniform real V, and
/// a fair coin gives the sign.
///
/// ```
/// use whit_noise::{DiscreteLaplace, Os};
/// let noise = DiscreteLaplace::new("10/3".parse()?)?;
/// let mut many = [0; 1000];
/// noise.fill(&mut many, &mut Os).expect("a scale of 10/3 does not overflow");
/// # Ok::<(), whit_noise::BadRatio>(())
/// ```
#[derive(Debug, Clone)]
pub struct DiscreteLaplace(Floor);

/// ⌊scale·(−ln V) + offset⌋, where the offset is 0, or scale·ln(2/(1 + e^(−1/scale))).
#[derive(Debug, Clone)]
struct Floor {
    scale: Ratio,
    two_sided: bool,
    near_scale: f64,
    near_offset: f64,
    /// By binade: how close to a whole number is too close.
    tolerance: [f64; LOG_BINADES],
}

impl Floor {
    fn new(scale: Ratio, two_sided: bool) -> Result<Self, BadRatio> {
        if scale.is_zero() {
            return Err(BadRatio { given: scale.to_string(), expected: "a scale greater than 0" });
        }
        let near_scale = scale.to_f64();
        let near_offset = if two_sided { near_scale * offset(&scale) } else { 0.0 };
        let mut tolerance = [0.0; LOG_BINADES];
        for (binade, tolerance) in tolerance.iter_mut().enumerate() {
            // The largest value in the binade times what three products and a sum may lose, and the logarithm's error.
            let largest = near_scale * ((binade + 1) as f64 * std::f64::consts::LN_2) + near_offset + 1.0;
            *tolerance = near_scale * log_error(binade) * 1.01 + largest * 2f64.powi(-48);
        }
        Ok(Self { scale, two_sided, near_scale, near_offset, tolerance })
    }

    /// The law's value for the uniform real with these first 63 bits.
    #[inline]
    fn decide(&self, table: &[[f64; 8]; 32], bits: u64, entropy: &mut dyn Entropy) -> Result<u64, Overflow> {
        let mut guess = 0;
        if bits != 0 {
            let (log, binade) = minus_ln(table, bits);
            let value = log * self.near_scale + self.near_offset;
            let whole = value as u64; // saturates, and then the tolerance is far above 1/2
            if let Some(tolerance) = self.tolerance.get(binade)
                && (value - whole as f64 - 0.5).abs() < 0.5 - tolerance
            {
                return Ok(whole);
            }
            guess = whole;
        }
        self.settle(Unknown::new(bits, 63), guess, entropy)
    }

    /// Finds the value exactly, from a guess that may be off: the law is at least k when V < `threshold(k)`.
    #[cold]
    fn settle(&self, mut v: Unknown, guess: u64, entropy: &mut dyn Entropy) -> Result<u64, Overflow> {
        search(guess, |k| v.compare(entropy, |precision| self.threshold(k, precision)) == Ordering::Less)
    }

    /// P(value ≥ k): aᵏ, or 2aᵏ/(1 + a).
    fn threshold(&self, k: u64, precision: usize) -> Ball {
        let work = precision + 8;
        let (n, d) = (IBig::from(self.scale.numerator()), IBig::from(self.scale.denominator()));
        let power = ball::exp_minus(&(&d * IBig::from(k)), &n, work);
        if !self.two_sided {
            return power.at(precision);
        }
        let one_more = Ball::integer(&IBig::ONE, work).plus(&ball::exp_minus(&d, &n, work));
        power.doubled(1).divided_by(&one_more).at(precision)
    }
}

/// ln(2/(1 + e^(−1/scale))) to within a relative 2^-50, by ball arithmetic.
fn offset(scale: &Ratio) -> f64 {
    let (n, d) = (IBig::from(scale.numerator()), IBig::from(scale.denominator()));
    // For a large scale the logarithm is about 1/(2·scale), so as many bits more are carried.
    let precision = 128 + (128 - scale.numerator().leading_zeros() as usize);
    let a = ball::exp_minus(&d, &n, precision);
    let one = IBig::ONE << precision;
    let half_of_one_more: IBig = (&one + (a.low() + a.high()) / IBig::from(2)) / IBig::from(2);
    ball::minus_ln(&half_of_one_more, &one, precision).to_f64()
}

/// The largest k for which `reaches(k)`, where `reaches(0)` holds and `reaches` never comes back once it failed.
/// Gallops from the guess, then bisects.
pub(crate) fn search(guess: u64, mut reaches: impl FnMut(u64) -> bool) -> Result<u64, Overflow> {
    let (mut low, mut high);
    let mut step = 1;
    if guess == 0 || reaches(guess) {
        low = guess;
        loop {
            high = low.checked_add(step).ok_or(Overflow)?;
            if !reaches(high) {
                break;
            }
            low = high;
            step = step.saturating_mul(2);
        }
    } else {
        high = guess;
        loop {
            low = high.saturating_sub(step);
            if low == 0 || reaches(low) {
                break;
            }
            high = low;
            step = step.saturating_mul(2);
        }
    }
    while high - low > 1 {
        let middle = low + (high - low) / 2;
        if reaches(middle) {
            low = middle;
        } else {
            high = middle;
        }
    }
    Ok(low)
}

/// The magnitude with the sign of the word's lowest bit.
#[inline]
pub(crate) fn signed(magnitude: u64, word: u64) -> Result<i64, Overflow> {
    let magnitude = i64::try_from(magnitude).map_err(|_| Overflow)?;
    let flip = -((word & 1) as i64); // 0 or −1
    Ok((magnitude ^ flip) - flip)
}

impl Geometric {
    /// The law with this scale, which must be greater than 0.
    pub fn new(scale: Ratio) -> Result<Self, BadRatio> {
        Floor::new(scale, false).map(Self)
    }

    /// One draw.
    pub fn draw(&self, entropy: &mut dyn Entropy) -> Result<u64, Overflow> {
        let bits = entropy.bits(63);
        self.0.decide(log_table(), bits, entropy)
    }
}

impl DiscreteLaplace {
    /// The law with this scale, which must be greater than 0.
    pub fn new(scale: Ratio) -> Result<Self, BadRatio> {
        Floor::new(scale, true).map(Self)
    }

    /// The scale, exactly.
    pub fn scale(&self) -> &Ratio {
        &self.0.scale
    }

    /// One draw.
    pub fn draw(&self, entropy: &mut dyn Entropy) -> Result<i64, Overflow> {
        let word = entropy.bits(64);
        signed(self.0.decide(log_table(), word >> 1, entropy)?, word)
    }

    /// Fills a slice with independent draws. After an error the slice holds nothing of use.
    pub fn fill(&self, out: &mut [i64], entropy: &mut dyn Entropy) -> Result<(), Overflow> {
        let table = log_table();
        bulk::by_word(out, entropy, |word, entropy| signed(self.0.decide(table, word >> 1, entropy)?, word))
    }

    /// [`fill`](Self::fill) on several threads, each with its own generator.
    pub fn fill_parallel(&self, out: &mut [i64], threads: usize) -> Result<(), Overflow> {
        bulk::in_parallel(out, threads, |part| self.fill(part, &mut Os))
    }
}
