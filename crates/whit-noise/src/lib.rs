//! Random bits, and samplers that are exact: every draw has the stated distribution, to the last bit.
//!
//! Parameters are exact rationals ([`Ratio`]), outputs are integers, and nothing here knows of privacy. The fast
//! samplers treat the random bits as one infinitely long uniform real, evaluate a quantile of it in `f64` with a
//! *certified* error bound, and go on with more bits and more precision in the rare case that the answer is still open.

pub mod ball;
pub mod bernoulli;
mod bulk;
pub mod entropy;
pub mod fit;
pub mod gaussian;
pub mod geometric;
mod quantile;
pub mod race;
pub mod ratio;
pub mod round;
pub mod uniform;
mod whole;

pub use bernoulli::{bernoulli, bernoulli_exp};
pub use entropy::{Entropy, Os, Replay, Secret};
pub use gaussian::{DiscreteGaussian, RoundedGaussian};
pub use geometric::{DiscreteLaplace, Geometric};
pub use ratio::{BadRatio, Ratio};
pub use uniform::below;

/// A draw, or a sum with one, that does not fit into 64 bits. It is never wrapped and never clamped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the noisy value does not fit into 64 bits; use a coarser lattice or a smaller scale")]
pub struct Overflow;
