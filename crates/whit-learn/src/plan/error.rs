//! Why there is no such plan, and what to do about it.

use crate::reporting;
use whit_account::Unsupported;
use whit_account::calibrate::CalibrateError;
use whit_core::{Kind, Unit};

/// A plan that would promise what its parts do not keep. [`PlanError::hint`] offers the next step.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum PlanError {
    /// The rate is no probability of being drawn.
    #[error("a rate of {rate} draws nothing or more than everything")]
    Rate {
        /// The rate as text.
        rate: String,
    },
    /// The clip norm bounds nothing.
    #[error("a clip norm of {norm} bounds nothing that a step can use")]
    Clip {
        /// The norm.
        norm: f64,
    },
    /// Features that would not be numbers any more.
    #[error("features times {scale} and {offset} are beyond what floats hold, or all the same")]
    Scale {
        /// What they are multiplied with.
        scale: f32,
        /// What is added.
        offset: f32,
    },
    /// Clipping layer by layer, and there are none.
    #[error("clipping layer by layer needs the number of layers, and it is 0")]
    NoLayers,
    /// A way of contributing that shows a part of the unit.
    #[error("this way of learning is for another unit than {kind}, of which it would show a part")]
    Way {
        /// The sort of unit.
        kind: Kind,
    },
    /// A way of contributing that noisy labels do not have.
    #[error("noisy labels are learned from as they are: their means or sums")]
    WayOfNoisyLabels,
    /// A learner without noise, to be released.
    #[error("what is learned without noise is non-private, and is not released")]
    NoNoise,
    /// A card that speaks of another plan, or of other noise.
    #[error("the card is not of the plan that it is to be released with")]
    OtherCard,
    /// A plan without noisy labels, which are asked of it.
    #[error("the plan is not for noisy labels, so it says of none how they are reported")]
    NoLabels,
    /// Noisy labels of another mechanism than the plan's.
    #[error("the labels are reported in another way, by other coins or of other rows than the plan was made for")]
    OtherLabels,
    /// Labels that cannot be reported so.
    #[error(transparent)]
    Labels(#[from] reporting::Error),
    /// Directions that nothing was planned for.
    #[error(
        "rows are projected on directions whose second moments the plan does not promise, so that ε leaves them out"
    )]
    OtherDirections,
    /// A learner of another plan than was paid for.
    #[error("the learner goes by another plan than was paid for: by other noise, another way or other numbers")]
    OtherPlan,
    /// The noise is no multiplier.
    #[error("a noise multiplier of {noise} cannot be drawn")]
    Noise {
        /// The multiplier.
        noise: f64,
    },
    /// The limit of losses is none.
    #[error("a loss of {limit} is no limit below which rows count")]
    Limit {
        /// The limit.
        limit: f64,
    },
    /// The difference is no distance of two clipped contributions.
    #[error("two contributions of at most 1 clip norm are not {difference} clip norms apart")]
    Difference {
        /// The difference.
        difference: f64,
    },
    /// A small difference for a unit whose neighbours share nothing.
    #[error("neighbours under `{unit}` may be two clip norms apart, so a difference of {difference} does not hold")]
    DifferenceOf {
        /// The protected unit.
        unit: Unit,
        /// The difference.
        difference: f64,
    },
    /// A small difference of what is blown up to the clip norm afterwards.
    #[error(
        "normalising may move two near gradients two clip norms apart, so a difference of {difference} does not hold"
    )]
    DifferenceNormalised {
        /// The difference.
        difference: f64,
    },
    /// Noisy labels, and another unit than a label.
    #[error("`{unit}` is protected, and noisy labels hide nothing else")]
    NotLabels {
        /// The protected unit.
        unit: Unit,
    },
    /// No steps.
    #[error("a plan of 0 steps learns nothing")]
    NoSteps,
    /// No units to divide by.
    #[error("the number of units is declared as 0, so there is nothing to divide by")]
    NoUnits,
    /// The divisor would be computed from rows that are private.
    #[error("under `{unit}` the number of units with rows is private, and a count of them would be the divisor")]
    CountedUnits {
        /// The protected unit.
        unit: Unit,
    },
    /// A batch of fixed size where the number of units is private.
    #[error("a batch of fixed size shows how many units there are, and under `{unit}` that is private")]
    FixedSize {
        /// The protected unit.
        unit: Unit,
    },
    /// A batch of fixed size that is no whole number.
    #[error("a rate of {rate} of {places} is not a whole number, so there is no batch of that size")]
    NotWhole {
        /// The rate as text.
        rate: String,
        /// How many there are to draw from.
        places: u64,
    },
    /// Whole users are drawn in batches of fixed size, and it is not declared how many users there are.
    #[error("whole users are drawn in batches of fixed size, and the number of users is not declared")]
    NoUsers,
    /// Whole users are drawn, and nothing says how many units one has.
    #[error("whole users are drawn, and no rung says how many units of kind `{kind}` one user has")]
    NoUserRung {
        /// The kind of the protected unit.
        kind: Kind,
    },
    /// Whole users are drawn, and a row may become another user's.
    #[error("whole users are drawn, and under `{unit}` a row may become another user's, so that two of them change")]
    MovedRows {
        /// The protected unit.
        unit: Unit,
    },
    /// No accountant can price a rung.
    #[error("`{unit}` has no price: {reason}")]
    Unpriced {
        /// The unit of the rung, in words.
        unit: String,
        /// What the accountant says.
        reason: Unsupported,
    },
    /// No noise keeps the promise.
    #[error(transparent)]
    Unreachable(#[from] CalibrateError),
    /// What is promised together with the steps leaves nothing for them.
    #[error(
        "what is released together with the steps costs ε = {epsilon:.4} already, and {target} was asked for in all"
    )]
    Accompanying {
        /// What it costs.
        epsilon: f64,
        /// What was asked for.
        target: f64,
    },
    /// The calibrated noise does not keep the promise after all.
    #[error("the noise that was found costs ε = {epsilon}, and {target} was asked for")]
    AboveTarget {
        /// What it costs.
        epsilon: f64,
        /// What was asked for.
        target: f64,
    },
}

impl PlanError {
    /// What to do next.
    ///
    /// ```
    /// use whit_learn::PlanError;
    /// assert_eq!(PlanError::NoSteps.hint(), "plan at least one step");
    /// ```
    pub fn hint(&self) -> String {
        match self {
            Self::Rate { .. } => "give a rate greater than 0 and at most 1, such as `1/2000`".to_owned(),
            Self::Clip { .. } => "give a clip norm between 2^-100 and 2^100, such as 1".to_owned(),
            Self::Scale { .. } => {
                "give a scale between 2^-100 and 2^100, and an offset of at most 2^100, or leave them out".to_owned()
            }
            Self::NoLayers => "count the layers that have parameters, or clip the whole gradient at once".to_owned(),
            Self::NoNoise => "take secret noise; audits and experiments read the learner itself".to_owned(),
            Self::OtherCard => "make the card of the plan, with `Card::of`".to_owned(),
            Self::NoLabels => "make the plan with `Draft::after_labels`".to_owned(),
            Self::OtherLabels => "make them with `LabelRun`, of the learner's own plan and rows".to_owned(),
            Self::Labels(error) => error.hint().to_owned(),
            Self::OtherDirections => {
                "name their cost in `Draft::accompanying`: that of the second moments which they come from".to_owned()
            }
            Self::OtherPlan => "make plan and learner of one value".to_owned(),
            Self::Way { .. } => {
                "take the mean of what a unit has, or protect the unit that this way is for".to_owned()
            }
            Self::WayOfNoisyLabels => "leave the way out, or learn without noisy labels".to_owned(),
            Self::Noise { .. } => "give a noise multiplier between 2^-30 and 2^30, such as 1, or a target".to_owned(),
            Self::Limit { .. } => "give a loss greater than 0, from which on a row counts nothing".to_owned(),
            Self::Difference { .. } => "give a difference greater than 0 and at most 2, or leave it at 2".to_owned(),
            Self::DifferenceOf { .. } => {
                "leave the difference at 2; less holds for feature and label units only, whose neighbours share public columns"
                    .to_owned()
            }
            Self::DifferenceNormalised { .. } => "clip instead of normalising, or leave the difference at 2".to_owned(),
            Self::NotLabels { .. } => "protect the label, or plan with noise".to_owned(),
            Self::NoSteps => "plan at least one step".to_owned(),
            Self::NoUnits => "declare about how many units there are; it need not be exact".to_owned(),
            Self::CountedUnits { .. } => {
                "declare about how many units there are, without looking: the divisor scales the steps and need not be exact"
                    .to_owned()
            }
            Self::FixedSize { .. } => {
                "draw with Poisson sampling, or protect the unit under `replace`, where their number is public".to_owned()
            }
            Self::NotWhole { places, .. } => format!("give the rate as a fraction of {places}, such as `1/{places}`"),
            Self::NoUsers => "declare the number of users, or draw with Poisson sampling".to_owned(),
            Self::NoUserRung { .. } => {
                "put the user above the protected unit, with the caps that link them, or draw units".to_owned()
            }
            Self::MovedRows { .. } => {
                "draw units, protect the element or the user, or declare change = \"add-remove\"".to_owned()
            }
            Self::Unpriced { .. } => "draw with Poisson sampling, or leave that rung out of the ladder".to_owned(),
            Self::Accompanying { .. } => "give it more noise, or allow a larger ε".to_owned(),
            Self::Unreachable(_) | Self::AboveTarget { .. } => {
                "allow a larger ε or δ, take fewer steps, or draw at a lower rate".to_owned()
            }
        }
    }
}
