//! How steps are taken: what a unit contributes to one, and where the noise comes from.

use super::PlanError;
use whit_core::Kind;

/// What private features are replaced by where only the public ones may be seen.
#[derive(Debug, Clone, PartialEq)]
pub enum Padding {
    /// By these numbers, one for each private feature, which were stated without looking at the rows.
    Mean(Vec<f32>),
    /// By Gaussian draws around these, with these deviations, anew for each use.
    Gaussian {
        /// Their means.
        mean: Vec<f32>,
        /// Their standard deviations.
        deviation: Vec<f32>,
    },
}

/// How a unit's rows become its contribution.
///
/// All but [`Way::Sum`] and [`Way::Local`] go down one loss: the sum over units of the mean loss of the unit's rows, over the declared number of units. A user with
/// many rows counts as much as one with few, in the private part of a gradient and in the public one.
#[derive(Debug, Clone, PartialEq)]
pub enum Way {
    /// The mean gradient over the unit's rows: Algorithm 1 of the element-level paper with loss (10); DP-SGD where a unit is a row.
    Mean,
    /// The same with truncated steps (APROX): a unit's linear model of its loss ends at zero, which no step of its own goes beyond.
    Truncated,
    /// The sum of the gradients of the unit's rows.
    Sum,
    /// The way from θ to where so many local steps of this size lead on the unit's own rows, over the size (federated averaging).
    Local {
        /// How many.
        steps: u32,
        /// How long.
        size: f64,
    },
    /// Algorithm 1 of the feature paper: the gradient of a row less that of the row with its private features padded is private; the gradient of padded
    /// rows of a second batch, drawn and padded on its own, is public (erratum F6). Targets must be public.
    Feature {
        /// Which features are private.
        private: Vec<usize>,
        /// What stands in their place.
        padding: Padding,
        /// How much the public part counts, where it is 1 for the private one.
        public: f64,
    },
    /// The part of the loss that reads the label is private; the rest is public, from a second batch.
    Label,
}

impl Way {
    /// Whether a unit of this kind may contribute so: what one way takes as public is private under another unit.
    pub(super) fn check(&self, kind: Kind, noisy_labels: bool) -> Result<(), PlanError> {
        let fits = match self {
            Self::Mean | Self::Truncated | Self::Sum | Self::Local { .. } => true,
            Self::Feature { .. } => kind == Kind::Feature,
            Self::Label => kind == Kind::Label,
        };
        if !fits {
            return Err(PlanError::Way { kind });
        }
        if noisy_labels && !matches!(self, Self::Mean | Self::Sum) { Err(PlanError::WayOfNoisyLabels) } else { Ok(()) }
    }
}

/// Where a learner's noise comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NoiseSource {
    /// The operating system's entropy, on so many threads: the only noise that protects.
    Secret {
        /// How many threads fill a buffer. It changes how long that takes, and nothing else.
        threads: usize,
    },
    /// The same draws whenever the seed is the same. For tests and experiments: whoever knows the seed can subtract them.
    Replay {
        /// The seed.
        seed: u64,
    },
    /// None at all: for audits of what comes before the noise. Nothing that was learned so is released.
    Off,
}

impl NoiseSource {
    /// Whether it hides anything: a release of anything else must say that it is non-private.
    pub fn protects(&self) -> bool {
        match self {
            Self::Secret { .. } => true,
            Self::Replay { .. } | Self::Off => false,
        }
    }
}
