//! From a sanitised gradient to new parameters. Everything here reads what is already noisy, so nothing here costs.
//!
//! | file | what |
//! |---|---|
//! | [`mod@self`] | [`Optimiser`]: descent with momentum, and Adam that knows how much of what it sees is noise |
//! | [`schedule`] | step sizes |
//! | [`average`] | averages of iterates |
//! | [`mod@project`] | the ball Θ, and the factors on a bag's gradient for projected and truncated steps |
//!
//! A gradient arrives as the clipped sum plus noise, divided by the *fixed* expected number of bags (C10): it is the
//! gradient, and is subtracted (E10).

pub mod average;
pub mod project;
pub mod schedule;

pub use average::{Average, Weights};
pub use project::{project, truncated};
pub use schedule::Schedule;

use serde::{Deserialize, Serialize};

/// What an optimiser cannot use.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum Error {
    /// A number outside of its range.
    #[error("the {name} is {value}: expected {range}")]
    Parameter {
        /// Which.
        name: &'static str,
        /// What was given.
        value: f64,
        /// What would do.
        range: &'static str,
    },
    /// A vector of another length than the model has parameters.
    #[error("{given} {what} were given, but the optimiser was made for {expected}")]
    Length {
        /// Of what.
        what: &'static str,
        /// How many came.
        given: usize,
        /// How many should have come.
        expected: usize,
    },
    /// A gradient or parameter that is infinite or not a number. Nothing was changed.
    #[error("step {step} would make a parameter infinite or not a number, so it was not taken")]
    NotFinite {
        /// Which step.
        step: u64,
    },
}

impl Error {
    /// What to do next.
    pub fn hint(&self) -> &'static str {
        match self {
            Self::Parameter { .. } => {
                "change it in the plan: optimiser settings read no data, so trying others is free"
            }
            Self::Length { .. } => "make the optimiser from the same model, or load the checkpoint that belongs to it",
            Self::NotFinite { .. } => "use a smaller step size, or keep the parameters in a ball with a radius",
        }
    }
}

/// How a gradient becomes a direction.
///
/// ```
/// use whit_learn::optimise::{Optimiser, Rule, Schedule};
/// let mut optimiser = Optimiser::new(Rule::ADAM, Schedule::Constant { size: 0.1 }, None, 1)?;
/// let mut theta = [1.0_f32];
/// optimiser.step(&mut theta, &[3.0], 0.0)?;
/// assert!((theta[0] - 0.9).abs() < 1e-6); // Adam's first step is as long as its size
/// # Ok::<(), whit_learn::optimise::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Rule {
    /// `b ← momentum·b + g + decay·θ`, and θ moves by `−α·b`.
    Descent {
        /// How much of the last direction is kept; 0 for plain descent.
        momentum: f64,
        /// Weight decay, as the gradient of `decay·|θ|²/2`.
        decay: f64,
    },
    /// Adam with the noise's variance taken out of the second moment (DP-AdamBC; Tang, Shpilevskiy, Lécuyer 2023).
    ///
    /// `v̂` estimates `E g² = (E clean)² + Var(clean) + Φ`, where `Φ = (σC/B)²` is known. Where noise dominates, `√v̂
    /// ≈ √Φ` for every parameter, and Adam would be descent with momentum and a smaller step: so θ moves by
    /// `−α·m̂/(√max(v̂ − Φ̂, floor) + ε)`, where Φ̂ averages the Φ of each step by the weights of v̂. Without noise
    /// and floor this is Adam by the book.
    Adam {
        /// How much of the mean gradient is kept: β1.
        first: f64,
        /// How much of the mean squared gradient is kept: β2.
        second: f64,
        /// The least corrected second moment: γ′. It bounds a step by `α·|m̂|/√floor`, and must not be 0 where there
        /// is noise.
        floor: f64,
        /// Added to the root: ε of the book.
        epsilon: f64,
        /// Weight decay apart from the gradient: θ also moves by `−α·decay·θ`.
        decay: f64,
    },
}

impl Rule {
    /// Descent without momentum or decay: the iteration whose averages have a known law.
    pub const PLAIN: Self = Self::Descent { momentum: 0.0, decay: 0.0 };

    /// Adam by the book (β1 = 0.9, β2 = 0.999, ε = 10⁻⁸), with a floor of 10⁻¹⁰ under its corrected second moment.
    pub const ADAM: Self = Self::Adam { first: 0.9, second: 0.999, floor: 1e-10, epsilon: 1e-8, decay: 0.0 };

    /// Adam by the book for gradients whose noise has this standard deviation, with the floor where the correction
    /// stops to mean anything.
    ///
    /// Noise of variance Φ makes v̂ itself stray by `Φ·√(2(1 − β2)/(1 + β2))`, 3 % of Φ: below that, `v̂ − Φ` is
    /// chance, and dividing by its root would let parameters without signal take the longest steps. The paper tunes
    /// γ′; this is a choice of ours that needs no data.
    pub fn adam_for(noise: f64) -> Self {
        let (first, second) = (0.9, 0.999_f64);
        let stray = noise * noise * (2.0 * (1.0 - second) / (1.0 + second)).sqrt();
        Self::Adam { first, second, floor: stray.max(1e-10), epsilon: 1e-8, decay: 0.0 }
    }

    fn validated(self) -> Result<Self, Error> {
        let kept = |name, value: f64| match value {
            value if (0.0..1.0).contains(&value) => Ok(()),
            value => Err(Error::Parameter { name, value, range: "0 to 1, 1 excluded" }),
        };
        let least = |name, value: f64| match value {
            value if value.is_finite() && value >= 0.0 => Ok(()),
            value => Err(Error::Parameter { name, value, range: "at least 0" }),
        };
        match self {
            Self::Descent { momentum, decay } => kept("momentum", momentum).and(least("weight decay", decay))?,
            Self::Adam { first, second, floor, epsilon, decay } => {
                kept("first moment's share", first).and(kept("second moment's share", second))?;
                least("floor", floor).and(least("epsilon", epsilon)).and(least("weight decay", decay))?;
                if floor == 0.0 && epsilon == 0.0 {
                    let range = "more than 0 where epsilon is 0, else a still parameter divides by 0";
                    return Err(Error::Parameter { name: "floor", value: floor, range });
                }
            }
        }
        Ok(self)
    }
}

/// Takes steps, and remembers what it needs for the next one. It can be written to a checkpoint and read back.
///
/// ```
/// use whit_learn::optimise::{Optimiser, Rule, Schedule};
/// // One example, g = 10, clipped to C = 1, no noise, divided by the fixed L = 1, step size 0.1 (C10).
/// let mut optimiser = Optimiser::new(Rule::PLAIN, Schedule::Constant { size: 0.1 }, None, 1)?;
/// let mut theta = [0.0_f32];
/// optimiser.step(&mut theta, &[1.0], 0.0)?;
/// assert_eq!(theta, [-0.1]);
/// # Ok::<(), whit_learn::optimise::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Optimiser {
    rule: Rule,
    schedule: Schedule,
    radius: Option<f64>,
    dimension: usize,
    taken: u64,
    /// Momentum's direction, or Adam's mean gradient; empty where nothing is remembered.
    direction: Vec<f64>,
    /// Adam's mean squared gradient.
    squares: Vec<f64>,
    /// The mean noise variance, weighted as `squares` is.
    noise: f64,
}

impl Optimiser {
    /// An optimiser of `dimension` parameters that stay in the ball of `radius` about 0, where one is given.
    pub fn new(rule: Rule, schedule: Schedule, radius: Option<f64>, dimension: usize) -> Result<Self, Error> {
        let (rule, schedule) = (rule.validated()?, schedule.validated()?);
        if let Some(radius) = radius
            && !(radius.is_finite() && radius > 0.0)
        {
            return Err(Error::Parameter { name: "radius", value: radius, range: "more than 0" });
        }
        let (first, second) = match rule {
            Rule::Descent { momentum: 0.0, .. } => (0, 0),
            Rule::Descent { .. } => (dimension, 0),
            Rule::Adam { .. } => (dimension, dimension),
        };
        let (direction, squares) = (vec![0.0; first], vec![0.0; second]);
        Ok(Self { rule, schedule, radius, dimension, taken: 0, direction, squares, noise: 0.0 })
    }

    /// How many steps were taken.
    pub fn taken(&self) -> u64 {
        self.taken
    }

    /// How gradients become directions.
    pub fn rule(&self) -> Rule {
        self.rule
    }

    /// The step sizes.
    pub fn schedule(&self) -> Schedule {
        self.schedule
    }

    /// The radius of the ball Θ, where there is one.
    pub fn radius(&self) -> Option<f64> {
        self.radius
    }

    /// The size of the step that comes next: the α that truncated and projected bags are made with.
    pub(crate) fn next_size(&self) -> f64 {
        self.schedule.at(self.taken + 1)
    }

    /// Whether a state that was read back is that of a model with so many parameters, and its numbers can be meant.
    pub fn validated(self, dimension: usize) -> Result<Self, Error> {
        let fresh = Self::new(self.rule, self.schedule, self.radius, dimension)?;
        let pairs = [
            (self.dimension, dimension),
            (self.direction.len(), fresh.direction.len()),
            (self.squares.len(), fresh.squares.len()),
        ];
        match pairs.into_iter().find(|(given, expected)| given != expected) {
            Some((given, expected)) => Err(Error::Length { what: "remembered numbers", given, expected }),
            None => Ok(self),
        }
    }

    /// Takes one step: `gradient` is the sanitised mean, and `noise` the standard deviation of its noise on each
    /// coordinate.
    ///
    /// Where the outcome would not be finite, nothing has changed.
    pub fn step(&mut self, theta: &mut [f32], gradient: &[f64], noise: f64) -> Result<(), Error> {
        for (what, given) in [("parameters", theta.len()), ("gradients", gradient.len())] {
            if given != self.dimension {
                return Err(Error::Length { what, given, expected: self.dimension });
            }
        }
        if !(noise.is_finite() && noise >= 0.0) {
            return Err(Error::Parameter { name: "noise's deviation", value: noise, range: "at least 0" });
        }
        // Moments and parameters are bounded by what went into them, so one look at the inputs is a look at the
        // outputs, save for overflow of a single float; squares up to 10³⁰⁰ stay clear of that.
        let step = self.taken + 1;
        let usable = |value: f64| value.abs() < 1e150; // false for NaN
        if !gradient.iter().all(|&value| usable(value)) || !theta.iter().all(|value| value.is_finite()) {
            return Err(Error::NotFinite { step });
        }
        let alpha = self.schedule.at(step);
        match self.rule {
            Rule::Descent { momentum, decay } => self.descend(theta, gradient, alpha, momentum, decay),
            Rule::Adam { first, second, floor, epsilon, decay } => {
                self.noise = second * self.noise + (1.0 - second) * noise * noise;
                let moments = Moments { first, second, floor, epsilon };
                self.adapt(theta, gradient, alpha, decay, moments);
            }
        }
        if let Some(radius) = self.radius {
            project(theta, radius);
        }
        self.taken = step;
        Ok(())
    }

    fn descend(&mut self, theta: &mut [f32], gradient: &[f64], alpha: f64, momentum: f64, decay: f64) {
        if momentum == 0.0 {
            for (theta, &g) in theta.iter_mut().zip(gradient) {
                let old = f64::from(*theta);
                *theta = narrow(old - alpha * (g + decay * old));
            }
            return;
        }
        for ((theta, &g), b) in theta.iter_mut().zip(gradient).zip(&mut self.direction) {
            let old = f64::from(*theta);
            *b = momentum * *b + g + decay * old;
            *theta = narrow(old - alpha * *b);
        }
    }

    fn adapt(&mut self, theta: &mut [f32], gradient: &[f64], alpha: f64, decay: f64, moments: Moments) {
        let Moments { first, second, floor, epsilon } = moments;
        let steps = i32::try_from(self.taken + 1).unwrap_or(i32::MAX);
        let (grown, squared) = (1.0 / (1.0 - first.powi(steps)), 1.0 / (1.0 - second.powi(steps)));
        let noise = self.noise * squared;
        let moments = self.direction.iter_mut().zip(&mut self.squares);
        for ((theta, &g), (m, v)) in theta.iter_mut().zip(gradient).zip(moments) {
            let old = f64::from(*theta);
            *m = first * *m + (1.0 - first) * g;
            *v = second * *v + (1.0 - second) * g * g;
            let root = (*v * squared - noise).max(floor).sqrt() + epsilon;
            *theta = narrow(old - alpha * (*m * grown / root + decay * old));
        }
    }

    /// Adam's estimate of the clean gradient's second moment, coordinate by coordinate, before the floor: `v̂ − Φ̂`.
    /// Nothing before the first step, or for another rule.
    #[cfg(test)]
    fn clean_squares(&self) -> Option<Vec<f64>> {
        let Rule::Adam { second, .. } = self.rule else { return None };
        if self.taken == 0 {
            return None;
        }
        let grown = 1.0 / (1.0 - second.powi(i32::try_from(self.taken).unwrap_or(i32::MAX)));
        Some(self.squares.iter().map(|v| (v - self.noise) * grown).collect())
    }
}

#[derive(Clone, Copy)]
struct Moments {
    first: f64,
    second: f64,
    floor: f64,
    epsilon: f64,
}

/// To the nearest `f32`; what lies beyond its range stops at the end of it.
fn narrow(value: f64) -> f32 {
    value.clamp(f64::from(f32::MIN), f64::from(f32::MAX)) as f32
}

#[cfg(test)]
mod tests;
