//! Why a sum was not sanitised.

use whit_core::mechanism::{BadParameter, SanitiseError};
use whit_noise::Overflow;

/// Why a sum was not sanitised. Nothing of it has left, whatever the reason.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum SanitiserError {
    /// All planned steps are taken.
    #[error("all {steps} steps that the plan pays for are taken")]
    Spent {
        /// How many there were.
        steps: u64,
    },
    /// A sum of another length.
    #[error("the sum has {found} coordinates, and noise was planned for {expected}")]
    Length {
        /// How many there should be.
        expected: usize,
        /// How many there are.
        found: usize,
    },
    /// More coordinates than the lattice is made for, or none.
    #[error("{coordinates} coordinates cannot be sanitised at once")]
    Coordinates {
        /// How many there are.
        coordinates: usize,
    },
    /// A sum of contributions that were clipped to another norm.
    #[error("contributions were clipped to a norm of {found}, and noise was planned for {expected}")]
    Clip {
        /// The norm that noise was planned for.
        expected: f64,
        /// The norm that they have.
        found: f64,
    },
    /// NaN or infinity in the sum.
    #[error("the clipped sum is not finite, so what clips does not bound")]
    NotFinite,
    /// Noise, or a noisy sum, beyond 64 bits.
    #[error(transparent)]
    Overflow(#[from] Overflow),
    /// Noise that was not drawn.
    #[error(transparent)]
    Draw(#[from] SanitiseError),
    /// Noise that cannot be drawn exactly.
    #[error(transparent)]
    Noise(#[from] BadParameter),
    /// The noise thread did not start.
    #[error("the thread that draws noise did not start: {reason}")]
    Thread {
        /// What the operating system says.
        reason: String,
    },
    /// The noise thread is gone.
    #[error("the thread that draws noise has stopped")]
    Stopped,
    /// This process was forked off the one that drew the noise.
    #[error("this process was forked from the one whose noise this is, and both would use the same")]
    Forked,
}

impl SanitiserError {
    /// What to do next, where somebody knows.
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            Self::Spent { .. } => Some("plan more steps; what is learnt so far may be used as it is"),
            Self::Length { .. } => Some("make the sanitiser for the number of parameters that are trained"),
            Self::Coordinates { .. } => Some("train between 1 and 2^32 parameters"),
            Self::Clip { .. } => Some("clip with the norm of the plan that the sanitiser is made for"),
            Self::NotFinite => Some("let a bag whose gradient is not finite contribute nothing"),
            Self::Thread { .. } => Some("free some memory or threads"),
            Self::Forked => Some("make a new sanitiser in each process"),
            Self::Overflow(_) | Self::Draw(_) | Self::Noise(_) | Self::Stopped => None,
        }
    }
}
