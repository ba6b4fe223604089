//! Gaussian laws on the integers: the rounded one, which is the default, and the discrete one.

use crate::ball;
use crate::bernoulli::accept;
use crate::entropy::{Entropy, Os};
use crate::geometric::{DiscreteLaplace, search, signed};
use crate::quantile::{NORMAL_BINADES, normal, normal_error, normal_table};
use crate::ratio::{BadRatio, Ratio};
use crate::uniform::Unknown;
use crate::{Overflow, bulk};
use dashu_int::IBig;
use std::cmp::Ordering;

/// A real Gaussian N(0, σ²), rounded to the nearest integer.
///
/// For an integer x, round(x + N) = x + round(N), so adding this is post-processing of the continuous Gaussian
/// mechanism, and all that is known of that holds here.
///
/// Drawn as round(σ·Q⁻¹(V/2)) with a random sign, for a uniform real V of which as many bits are drawn as needed.
///
/// ```
/// use whit_noise::{Os, RoundedGaussian};
/// let noise = RoundedGaussian::new("2.5".parse()?)?;
/// let mut many = [0; 1000];
/// noise.fill(&mut many, &mut Os).expect("a deviation of 2.5 does not overflow");
/// # Ok::<(), whit_noise::BadRatio>(())
/// ```
#[derive(Debug, Clone)]
pub struct RoundedGaussian {
    sigma: Ratio,
    near_sigma: f64,
    /// By binade: how close to a half is too close.
    tolerance: [f64; NORMAL_BINADES],
}

impl RoundedGaussian {
    /// The law with this standard deviation (before rounding), which must be greater than 0.
    pub fn new(sigma: Ratio) -> Result<Self, BadRatio> {
        if sigma.is_zero() {
            return Err(BadRatio { given: sigma.to_string(), expected: "a standard deviation greater than 0" });
        }
        let near_sigma = sigma.to_f64();
        let mut tolerance = [0.0; NORMAL_BINADES];
        for (binade, tolerance) in tolerance.iter_mut().enumerate() {
            // z < 8 in every binade of the table; two products and a sum lose at most a relative 2^-50 of σz + 1.
            *tolerance = near_sigma * normal_error(binade) * 1.01 + (8.0 * near_sigma + 1.0) * 2f64.powi(-49);
        }
        Ok(Self { sigma, near_sigma, tolerance })
    }

    /// The standard deviation before rounding, exactly.
    pub fn sigma(&self) -> &Ratio {
        &self.sigma
    }

    #[inline]
    fn decide(&self, table: &[[[f64; 8]; 32]; 32], bits: u64, entropy: &mut dyn Entropy) -> Result<u64, Overflow> {
        let mut guess = 0;
        if let Some((z, binade)) = normal(table, bits) {
            let value = z * self.near_sigma + 0.5;
            let whole = value as u64; // saturates, and then the tolerance is far above 1/2
            if (value - whole as f64 - 0.5).abs() < 0.5 - self.tolerance[binade] {
                return Ok(whole);
            }
            guess = whole;
        }
        self.settle(Unknown::new(bits, 63), guess, entropy)
    }

    /// The magnitude is at least k ≥ 1 when σ·z ≥ k − 1/2, that is when V ≤ 2·Q((k − 1/2)/σ).
    #[cold]
    fn settle(&self, mut v: Unknown, guess: u64, entropy: &mut dyn Entropy) -> Result<u64, Overflow> {
        let denominator = IBig::from(self.sigma.numerator()) << 1;
        search(guess, |k| {
            let numerator = (IBig::from(k) * IBig::from(2) - IBig::ONE) * IBig::from(self.sigma.denominator());
            let threshold =
                |precision| ball::normal_tail(&numerator, &denominator, precision + 1).doubled(1).at(precision);
            v.compare(entropy, threshold) == Ordering::Less
        })
    }

    /// One draw.
    pub fn draw(&self, entropy: &mut dyn Entropy) -> Result<i64, Overflow> {
        let word = entropy.bits(64);
        signed(self.decide(normal_table(), word >> 1, entropy)?, word)
    }

    /// Fills a slice with independent draws. After an error the slice holds nothing of use.
    pub fn fill(&self, out: &mut [i64], entropy: &mut dyn Entropy) -> Result<(), Overflow> {
        let table = normal_table();
        bulk::by_word(out, entropy, |word, entropy| signed(self.decide(table, word >> 1, entropy)?, word))
    }

    /// [`fill`](Self::fill) on several threads, each with its own generator.
    pub fn fill_parallel(&self, out: &mut [i64], threads: usize) -> Result<(), Overflow> {
        bulk::in_parallel(out, threads, |part| self.fill(part, &mut Os))
    }
}

/// P(x) proportional to e^(−x²/(2σ²)) on the integers, for those who want zCDP by the letter.
///
/// Canonne, Kamath and Steinke (2020), Algorithm 3: a discrete Laplace proposal of scale t = ⌊σ⌋ + 1, accepted with
/// probability e^(−(|y| − σ²/t)²/(2σ²)); both are exact here, so the result is.
///
/// ```
/// use whit_noise::{DiscreteGaussian, Os, Ratio};
/// let noise = DiscreteGaussian::new(Ratio::from(100))?; // σ² = 100
/// assert!(noise.draw(&mut Os).is_ok());
/// # Ok::<(), whit_noise::BadRatio>(())
/// ```
#[derive(Debug, Clone)]
pub struct DiscreteGaussian {
    variance: Ratio,
    proposal: DiscreteLaplace,
    /// t, the proposal's scale.
    scale: u64,
}

impl DiscreteGaussian {
    /// The law with this σ², which must be greater than 0 and below 2^80.
    pub fn new(variance: Ratio) -> Result<Self, BadRatio> {
        let bad = |expected| BadRatio { given: variance.to_string(), expected };
        if variance.is_zero() {
            return Err(bad("a variance greater than 0"));
        }
        let whole = variance.numerator() / variance.denominator();
        if whole >= 1 << 80 {
            return Err(bad("a variance below 2^80"));
        }
        let scale = whole.isqrt() as u64 + 1;
        Ok(Self { variance, proposal: DiscreteLaplace::new(Ratio::from(scale))?, scale })
    }

    /// σ², exactly.
    pub fn variance(&self) -> &Ratio {
        &self.variance
    }

    /// One draw.
    pub fn draw(&self, entropy: &mut dyn Entropy) -> Result<i64, Overflow> {
        loop {
            let y = self.proposal.draw(entropy)?;
            if self.keeps(y.unsigned_abs(), entropy) {
                return Ok(y);
            }
        }
    }

    /// Accepts with probability e^-x, x = (|y|·t·d − n)²/(2·n·d·t²) for σ² = n/d.
    fn keeps(&self, y: u64, entropy: &mut dyn Entropy) -> bool {
        let (n, d, t) = (self.variance.numerator(), self.variance.denominator(), u128::from(self.scale));
        let exact = || {
            let (n, d, t) = (IBig::from(n), IBig::from(d), IBig::from(t));
            let gap = IBig::from(y) * &t * &d - &n;
            (&gap * &gap, (n * d * &t * &t) << 1)
        };
        // The difference without rounding where it fits; else there is no good approximation, and balls decide.
        let gap = u128::from(y).checked_mul(t).and_then(|yt| yt.checked_mul(d)).map(|ytd| ytd.abs_diff(n));
        match gap {
            Some(0) => true,
            Some(gap) => {
                let near = gap as f64 / (d as f64 * t as f64);
                accept(near * near / (2.0 * self.variance.to_f64()), entropy, exact)
            }
            None => {
                let (numerator, denominator) = exact();
                let threshold = |precision| ball::exp_minus(&numerator, &denominator, precision);
                Unknown::new(entropy.bits(63), 63).compare(entropy, threshold) == Ordering::Less
            }
        }
    }

    /// Fills a slice with independent draws. After an error the slice holds nothing of use.
    pub fn fill(&self, out: &mut [i64], entropy: &mut dyn Entropy) -> Result<(), Overflow> {
        let mut ahead = bulk::WordBlock::new(entropy);
        for out in out {
            *out = self.draw(&mut ahead)?;
        }
        Ok(())
    }

    /// [`fill`](Self::fill) on several threads, each with its own generator.
    pub fn fill_parallel(&self, out: &mut [i64], threads: usize) -> Result<(), Overflow> {
        bulk::in_parallel(out, threads, |part| self.fill(part, &mut Os))
    }
}
