//! Averages of iterates: post-processing of what was released, so they cost nothing, and they take most of the noise
//! out.

use super::Error;
use serde::{Deserialize, Serialize};

/// Which iterates count, and how much.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Weights {
    /// All of them alike, from the one after step `from` on (Polyak, Ruppert). Its law is known: see
    /// [`statistics`](crate::statistics).
    Uniform {
        /// The first step that counts; steps count from 1.
        from: u64,
    },
    /// Later ones more: each step keeps `decay` of the average so far.
    Exponential {
        /// Between 0 and 1; 0 keeps the last iterate alone.
        decay: f64,
    },
}

/// A running average of parameters, in `f64`, so that the ten-thousandth iterate still counts.
///
/// ```
/// use whit_learn::optimise::{Average, Weights};
/// let mut average = Average::new(Weights::Uniform { from: 2 }, 1)?;
/// for (step, theta) in [(1, 100.0), (2, 1.0), (3, 3.0)] {
///     average.take(step, &[theta])?;
/// }
/// assert_eq!(average.value(), Some(vec![2.0]));
/// # Ok::<(), whit_learn::optimise::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Average {
    weights: Weights,
    taken: u64,
    /// Uniform: the mean. Exponential: the sum of (1 − decay)·decay^age·θ, not yet divided by its weight.
    state: Vec<f64>,
    /// The exponential weights' sum so far, 1 − decay^taken.
    weight: f64,
}

impl Average {
    /// An average of `dimension` parameters that has seen nothing.
    pub fn new(weights: Weights, dimension: usize) -> Result<Self, Error> {
        if let Weights::Exponential { decay } = weights
            && !(0.0..1.0).contains(&decay)
        {
            return Err(Error::Parameter { name: "decay", value: decay, range: "0 to 1, 1 excluded" });
        }
        Ok(Self { weights, taken: 0, state: vec![0.0; dimension], weight: 0.0 })
    }

    /// Whether a state that was read back is that of a model with so many parameters, and its numbers can be meant.
    pub fn validated(self, dimension: usize) -> Result<Self, Error> {
        Self::new(self.weights, dimension)?;
        let given = self.state.len();
        if given == dimension { Ok(self) } else { Err(Error::Length { what: "averages", given, expected: dimension }) }
    }

    /// Takes the iterate after step `step` into account.
    pub fn take(&mut self, step: u64, theta: &[f32]) -> Result<(), Error> {
        if theta.len() != self.state.len() {
            return Err(Error::Length { what: "parameters", given: theta.len(), expected: self.state.len() });
        }
        match self.weights {
            Weights::Uniform { from } => {
                if step < from {
                    return Ok(());
                }
                self.taken += 1;
                let share = 1.0 / self.taken as f64;
                for (mean, &theta) in self.state.iter_mut().zip(theta) {
                    *mean += (f64::from(theta) - *mean) * share;
                }
            }
            Weights::Exponential { decay } => {
                self.taken += 1;
                self.weight = decay * self.weight + (1.0 - decay);
                for (sum, &theta) in self.state.iter_mut().zip(theta) {
                    *sum = decay * *sum + (1.0 - decay) * f64::from(theta);
                }
            }
        }
        Ok(())
    }

    /// How many iterates count.
    pub fn taken(&self) -> u64 {
        self.taken
    }

    /// The average, or nothing where no iterate counts yet. The zero from which exponential sums start has no weight.
    pub fn value(&self) -> Option<Vec<f64>> {
        if self.taken == 0 {
            return None;
        }
        let divisor = match self.weights {
            Weights::Uniform { .. } => 1.0,
            Weights::Exponential { .. } => self.weight,
        };
        Some(self.state.iter().map(|value| value / divisor).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn averages_equal_their_closed_forms(
            thetas in proptest::collection::vec(-5_f32..5.0, 1..60), decay in 0_f64..0.99, from in 1_u64..10
        ) {
            let mut uniform = Average::new(Weights::Uniform { from }, 1).unwrap();
            let mut exponential = Average::new(Weights::Exponential { decay }, 1).unwrap();
            for (step, &theta) in (1..).zip(&thetas) {
                uniform.take(step, &[theta]).unwrap();
                exponential.take(step, &[theta]).unwrap();
            }
            let counted: Vec<f64> = thetas.iter().skip(from as usize - 1).map(|&t| f64::from(t)).collect();
            let mean = counted.iter().sum::<f64>() / counted.len() as f64;
            match uniform.value() {
                Some(value) => prop_assert!((value[0] - mean).abs() < 1e-12),
                None => prop_assert!(counted.is_empty()),
            }
            let weight = |age: usize| decay.powi(age as i32);
            let (above, below) = thetas.iter().rev().enumerate()
                .fold((0.0, 0.0), |(a, b), (age, &t)| (a + weight(age) * f64::from(t), b + weight(age)));
            prop_assert!((exponential.value().unwrap()[0] - above / below).abs() < 1e-9);
        }
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        assert!(Average::new(Weights::Exponential { decay: 1.0 }, 1).is_err());
        let mut average = Average::new(Weights::Uniform { from: 1 }, 2).unwrap();
        assert!(average.take(1, &[1.0]).is_err());
        assert_eq!(average.value(), None);
        assert!(average.clone().validated(3).is_err() && average.validated(2).is_ok());
    }
}
