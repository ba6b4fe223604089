//! Goodness of fit, for tests: each with a stated rate of false alarms, and exhaustive trees of random bits.

use crate::entropy::Entropy;

/// How far the empirical distribution function of `n` draws may stray from the true one, except with probability
/// `false_alarm` (Dvoretzky–Kiefer–Wolfowitz with Massart's constant; holds for discrete laws too).
///
/// ```
/// let tolerance = whit_noise::fit::dkw_tolerance(1_000_000, 1e-9);
/// assert!(tolerance < 0.0033);
/// ```
pub fn dkw_tolerance(n: u64, false_alarm: f64) -> f64 {
    ((2.0 / false_alarm).ln() / (2.0 * n as f64)).sqrt()
}

/// The chance that Pearson's statistic of a correct sampler is as large as the one of these counts.
/// Cells that expect fewer than 10 are merged with their right neighbour; the number of draws is the sum of the counts.
pub fn chi_square_p_value(observed: &[u64], expected: &[f64]) -> f64 {
    let (mut statistic, mut cells) = (0.0, 0_u32);
    let (mut seen, mut due) = (0.0, 0.0);
    let total: f64 = expected.iter().sum();
    let mut left = total;
    for (&o, &e) in observed.iter().zip(expected) {
        seen += o as f64;
        due += e;
        left -= e;
        if due >= 10.0 && left >= 10.0 {
            statistic += (seen - due).powi(2) / due;
            cells += 1;
            (seen, due) = (0.0, 0.0);
        }
    }
    if due > 0.0 {
        statistic += (seen - due).powi(2) / due;
        cells += 1;
    }
    upper_gamma(f64::from(cells.saturating_sub(1)) / 2.0, statistic / 2.0)
}

/// The regularised upper incomplete gamma function: by its series below the mean, by its continued fraction above.
fn upper_gamma(a: f64, x: f64) -> f64 {
    if a <= 0.0 {
        return 1.0;
    }
    let front = (a * x.ln() - x - libm::lgamma(a)).exp();
    if x < a + 1.0 {
        let (mut term, mut sum) = (1.0 / a, 1.0 / a);
        for n in 1..100_000 {
            term *= x / (a + f64::from(n));
            sum += term;
            if term < sum * 1e-16 {
                break;
            }
        }
        return (1.0 - front * sum).max(0.0);
    }
    let (mut b, mut c) = (x + 1.0 - a, 1e300);
    let mut d = 1.0 / b;
    let mut h = d;
    for n in 1..100_000 {
        let an = -f64::from(n) * (f64::from(n) - a);
        b += 2.0;
        d = 1.0 / (an * d + b);
        c = b + an / c;
        h *= d * c;
        if (d * c - 1.0).abs() < 1e-15 {
            break;
        }
    }
    front * h
}

/// Walks every string of random bits down to a depth: the exact law of a sampler that needs few bits.
#[derive(Debug)]
pub struct BitTree {
    depth: usize,
}

struct Path<'a> {
    bits: &'a [bool],
    at: usize,
    /// Bits were asked for that the path does not have.
    ran_out: bool,
}

impl Entropy for Path<'_> {
    fn bits(&mut self, count: u32) -> u64 {
        (0..count).fold(0, |word, _| {
            let bit = self.bits.get(self.at).copied();
            self.at += 1;
            self.ran_out |= bit.is_none();
            word << 1 | u64::from(bit.unwrap_or(false))
        })
    }

    fn fill(&mut self, words: &mut [u64]) {
        for word in words {
            *word = self.bits(64);
        }
    }
}

impl BitTree {
    /// All strings of at most `depth` bits.
    pub fn new(depth: usize) -> Self {
        Self { depth }
    }

    /// The probability that `event` holds, and the probability that `depth` bits do not decide it.
    /// `event` must end after finitely many zero bits.
    pub fn probability(&self, mut event: impl FnMut(&mut dyn Entropy) -> bool) -> (f64, f64) {
        let (mut hit, mut open) = (0.0, 0.0);
        let mut stack = vec![Vec::new()];
        while let Some(bits) = stack.pop() {
            let mut path = Path { bits: &bits, at: 0, ran_out: false };
            let holds = event(&mut path);
            let mass = 2f64.powi(-(bits.len() as i32));
            if !path.ran_out {
                hit += if holds { mass } else { 0.0 };
            } else if bits.len() == self.depth {
                open += mass;
            } else {
                for bit in [false, true] {
                    let mut longer = bits.clone();
                    longer.push(bit);
                    stack.push(longer);
                }
            }
        }
        (hit, open)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn p_values_match_tables() {
        // χ² with 1 degree of freedom at 3.841 and with 10 at 18.307: 5 %.
        assert!((upper_gamma(0.5, 3.841_458_820_694_124 / 2.0) - 0.05).abs() < 1e-9);
        assert!((upper_gamma(5.0, 18.307_038_053_275_14 / 2.0) - 0.05).abs() < 1e-9);
        assert!((upper_gamma(5.0, 2.0) - 0.947_346_982_656_289).abs() < 1e-9);
    }

    #[test]
    fn a_loaded_die_is_caught_and_a_fair_one_is_not() {
        let fair = [10_050, 9_950, 10_020, 9_990, 9_970, 10_020];
        let loaded = [10_500, 9_900, 9_900, 9_900, 9_900, 9_900];
        assert!(chi_square_p_value(&fair, &[10_000.0; 6]) > 0.5);
        assert!(chi_square_p_value(&loaded, &[10_000.0; 6]) < 1e-4);
    }
}
