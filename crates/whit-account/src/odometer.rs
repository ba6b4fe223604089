//! A meter that may be read at any time: privacy odometers.
//!
//! A filter is right when it stops. An odometer is right whenever somebody stops, even if they stop *because* of what the
//! meter and the answers so far say.
//!
//! # Claim
//! For every rule of when to stop that looks only at the transcript so far: if ε is what the odometer reads then, and L the loss of
//! the transcript, E[(1 − e^{ε−L})₊] ≤ δ. So for every event S, P(S) ≤ Σ over readings ε of e^ε·Q(S and this reading) + δ.
//!
//! # Why
//! Filters f = 0, 1, 2, … with budgets ρ₀·2^f and δ_f = δ·6/(π²(f+1)²), which add up to δ, all watch the same charges; the
//! odometer reads the ε_f of the first that is not exhausted. The expectation splits over which f that is. Where it is f,
//! filter f was never exhausted, so the transcript is the one that filter f would have let through, and its part is at
//! most δ_f, as for the Rényi orders of a [`filter`](crate::filter). (Rogers et al. 2016; Lécuyer 2021, for doubling.)
//! While all runs were pure, Σε bounds L along every path, so the lesser of the two is read.

use crate::accountant::divergence::run_divergence_up;
use crate::accountant::zcdp::{rho, tight_epsilon};
use crate::accountant::{Name, Unsupported, runs, word_for};
use whit_core::{Cost, OutOfRange};

/// The first filter's ρ: about ε = 0.017 at δ = 1e-6.
const FIRST: f64 = 1e-5;

/// Adds up what is charged and can be read at any time.
///
/// ```
/// use whit_account::odometer::Odometer;
/// use whit_core::{Cost, Epsilon};
///
/// let mut odometer = Odometer::new(1e-6)?;
/// assert_eq!(odometer.epsilon(), 0.0);
/// odometer.charge(&Cost::Gaussian { noise: 10.0 })?;
/// assert!(odometer.epsilon() > 0.5 && odometer.epsilon() < 1.0);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone)]
pub struct Odometer {
    delta: f64,
    rho: f64,
    /// Σε while all runs were pure, infinite afterwards.
    sum: f64,
}

impl Odometer {
    /// An odometer whose readings hold at this δ, which must be above 0 and below 1.
    pub fn new(delta: f64) -> Result<Self, Unsupported> {
        if delta > 0.0 && delta < 1.0 {
            Ok(Self { delta, rho: 0.0, sum: 0.0 })
        } else {
            Err(OutOfRange { name: "δ", value: delta, range: "greater than 0 and below 1" }.into())
        }
    }

    /// Adds a cost. An odometer never refuses for want of budget; it refuses runs that bring their own δ, and stays as it was.
    pub fn charge(&mut self, cost: &Cost) -> Result<(), Unsupported> {
        let Some(leaves) = runs(cost)? else {
            (self.rho, self.sum) = (f64::INFINITY, f64::INFINITY);
            return Ok(());
        };
        let mut sum = self.sum;
        for (leaf, times) in &leaves {
            if matches!(leaf, Cost::Approximate { delta, .. } if delta.get() > 0.0) {
                let instead =
                    "its δ would have to be part of the reading; charge it to a filter that keeps some δ aside";
                return Err(Unsupported::Cost { accountant: Name::Zcdp, cost: word_for(leaf), instead });
            }
            sum = up(sum + run_divergence_up(leaf, f64::INFINITY)? * *times as f64);
        }
        let (added, _) = rho(cost)?;
        self.rho = up(self.rho + added);
        self.sum = sum;
        Ok(())
    }

    /// The reading: valid at this moment, and at every other at which it is or will be read.
    pub fn epsilon(&self) -> f64 {
        if self.rho == 0.0 {
            return 0.0;
        }
        let (mut budget, mut f) = (FIRST, 0.0);
        while self.rho > budget && budget.is_finite() {
            budget *= 2.0;
            f += 1.0;
        }
        let share = self.delta * 6.0 / (std::f64::consts::PI * (f + 1.0)).powi(2) * (1.0 - 1e-12);
        tight_epsilon(budget, share).min(self.sum)
    }

    /// The δ at which readings hold.
    pub fn delta(&self) -> f64 {
        self.delta
    }
}

fn up(value: f64) -> f64 {
    if value == 0.0 { 0.0 } else { value.next_up().next_up() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::accountant::epsilon;
    use whit_core::{Delta, Epsilon};

    #[test]
    fn a_reading_is_above_what_the_runs_cost_if_fixed_beforehand_and_at_most_a_few_times_that() {
        let cost = Cost::Gaussian { noise: 20.0 };
        let mut odometer = Odometer::new(1e-6).unwrap();
        let mut before = 0.0;
        for times in 1..=3000_u64 {
            odometer.charge(&cost).unwrap();
            let reading = odometer.epsilon();
            assert!(reading >= before, "a meter does not run backwards");
            before = reading;
            if times % 500 == 1 {
                let fixed = epsilon(&cost.clone().repeat(times), 1e-6, Name::Zcdp).unwrap().upper;
                assert!(reading >= fixed && reading <= 2.2 * fixed, "{times}: {reading} for {fixed}");
            }
        }
    }

    #[test]
    fn shares_of_delta_add_up_to_delta() {
        let sum: f64 = (0..1_000_000).map(|f| 6.0 / (std::f64::consts::PI * (f64::from(f) + 1.0)).powi(2)).sum();
        assert!(sum < 1.0 && sum > 0.999_999);
    }

    #[test]
    fn a_few_pure_runs_are_read_as_their_sum_and_no_protection_as_infinite() {
        let mut odometer = Odometer::new(1e-6).unwrap();
        let pure = Cost::Pure { epsilon: Epsilon::new(0.01).unwrap() };
        odometer.charge(&pure.clone().repeat(2)).unwrap();
        assert!((odometer.epsilon() - 0.02).abs() < 1e-12);
        let approximate = Cost::Approximate { epsilon: Epsilon::new(0.1).unwrap(), delta: Delta::new(1e-9).unwrap() };
        assert!(odometer.charge(&approximate).is_err());
        assert!((odometer.epsilon() - 0.02).abs() < 1e-12, "a refused charge changes nothing");
        odometer.charge(&Cost::Everything).unwrap();
        assert_eq!(odometer.epsilon(), f64::INFINITY);
        assert!(Odometer::new(0.0).is_err());
    }
}
