//! What bounds a contribution.

use whit_noise::round::{quotient_down, root_of_whole_up};

/// How a bag's gradient is brought into the ball of radius C.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Clipping {
    /// g · min(1, C/|g|), and 0 for 0.
    Flat,
    /// Each layer's part to C/√L, so that all of them together have at most norm C.
    PerLayer {
        /// L, the number of layers that have parameters.
        layers: u32,
    },
    /// g · C/|g|: every bag weighs the same, and 0 stays 0.
    Normalising,
}

/// The largest norm of one unit's contribution, and how it is enforced.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Clip {
    /// C.
    pub norm: f64,
    /// How it is enforced.
    pub how: Clipping,
}

impl Clip {
    /// The largest norm of one layer's part: C/√L layer by layer (rounded down), else C.
    pub(crate) fn of_layer(&self) -> f64 {
        match self.how {
            Clipping::Flat | Clipping::Normalising => self.norm,
            Clipping::PerLayer { layers } => quotient_down(self.norm, root_of_whole_up(layers.max(1).into())),
        }
    }
}
