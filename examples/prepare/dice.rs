//! Chance that comes again: what is made here is public, and whoever makes it again should get the same.

use whit_account::normal;
use whit_noise::{Entropy, Replay};

/// Draws from a seed.
pub(crate) struct Dice(Replay);

impl Dice {
    pub(crate) fn new(seed: u64) -> Self {
        Self(Replay::new(seed))
    }

    /// Between 0 and 1, neither of them.
    pub(crate) fn uniform(&mut self) -> f64 {
        (self.0.bits(53) as f64 + 0.5) * 2f64.powi(-53)
    }

    /// A whole number from 0 on, below `count`.
    pub(crate) fn below(&mut self, count: usize) -> usize {
        ((self.uniform() * count as f64) as usize).min(count - 1)
    }

    /// A standard normal number.
    pub(crate) fn normal(&mut self) -> f64 {
        normal::quantile(self.uniform())
    }

    /// A point on the sphere.
    pub(crate) fn direction(&mut self, dimension: usize) -> Vec<f64> {
        let point: Vec<f64> = (0..dimension).map(|_| self.normal()).collect();
        let length = point.iter().map(|v| v * v).sum::<f64>().sqrt();
        point.iter().map(|v| v / length).collect()
    }

    /// `few` different numbers below `count`.
    pub(crate) fn choose(&mut self, few: usize, count: usize) -> Vec<usize> {
        let mut all: Vec<usize> = (0..count).collect();
        for i in 0..few {
            let other = i + (self.uniform() * (count - i) as f64) as usize;
            all.swap(i, other.min(count - 1));
        }
        all.truncate(few);
        all
    }
}
