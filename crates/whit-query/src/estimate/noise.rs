//! The law of the estimators' noise: a rounded Gaussian in lattice steps, by what is promised or by its standard deviation. What it is added to is in
//! [`projected`](super::projected).

use whit_account::normal::gaussian_mu_down;
use whit_core::Cost;
use whit_core::mechanism::additive::Law;
use whit_noise::Ratio;
use whit_noise::round::{quotient_down, ratio_down};

/// Parameters with which an estimator would make no sense.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum EstimateError {
    /// No items.
    #[error("the list of items is empty, so there is nothing to count: give at least one")]
    NoItems,
    /// A cap of zero.
    #[error("a cap of 0 leaves nothing of any user: allow at least 1")]
    NoCap,
    /// A number that is not what it should be.
    #[error("{name} is {value}, but it must be {range}")]
    Range {
        /// What the number was meant to be.
        name: &'static str,
        /// The number.
        value: f64,
        /// Where it would have to lie.
        range: &'static str,
    },
    /// A promise that no Gaussian noise keeps.
    #[error(
        "no Gaussian noise keeps ε = {epsilon} at δ = {delta}: ε and δ must both be greater than 0, and δ less than 1"
    )]
    Promise {
        /// The ε that was asked for.
        epsilon: f64,
        /// The δ that was asked for.
        delta: f64,
    },
    /// A unit about which the statistic knows nothing.
    #[error("nothing bounds what one `{0}` moves here: users are told apart by another column")]
    Unbounded(String),
    /// An item that is not on the list, or clusters for another number of items.
    #[error("item number {item} is not on the list of {items} items")]
    Item {
        /// Its number.
        item: u32,
        /// How many there are.
        items: usize,
    },
    /// A sum that leaves 64 bits.
    #[error("a sum does not fit into 64 bits; use a larger weight step")]
    Overflow,
}

/// How much noise: what is promised to the protected unit.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Calibration {
    /// The largest ε.
    pub(crate) epsilon: f64,
    /// The δ at which it must hold.
    pub(crate) delta: f64,
}

impl Calibration {
    /// The μ of Gaussian differential privacy that keeps this promise, rounded down.
    pub(super) fn mu(self) -> Result<f64, EstimateError> {
        let Self { epsilon, delta } = self;
        let sensible = epsilon > 0.0 && epsilon.is_finite() && delta > 0.0 && delta < 1.0;
        let mu = if sensible { gaussian_mu_down(epsilon, delta) } else { 0.0 };
        if mu > 0.0 && mu.is_finite() { Ok(mu) } else { Err(EstimateError::Promise { epsilon, delta }) }
    }
}

/// Rounded Gaussian noise of this standard deviation, in lattice steps.
pub(super) fn rounded(sigma: Ratio) -> Result<Law, EstimateError> {
    let range = |_| EstimateError::Range { name: "σ", value: sigma.to_f64(), range: "greater than 0" };
    Law::rounded(sigma).map_err(range)
}

/// The least noise under which neighbours at this distance are no easier to tell apart than N(0, 1) and N(μ, 1).
pub(super) fn for_mu(mu: f64, distance: f64) -> Result<Law, EstimateError> {
    let sigma = distance / mu * (1.0 + 1e-12); // the hair covers the rounding here and in `over`
    let range = |_| EstimateError::Range { name: "σ", value: sigma, range: "finite and below 2^120" };
    rounded(Ratio::from_f64_up(sigma).map_err(range)?)
}

/// A float that is not above the standard deviation over the distance; 0 where nothing is left of it, or where the noise is of another law.
pub(super) fn over(law: &Law, distance: f64) -> f64 {
    let Law::Rounded(law) = law else { return 0.0 };
    let quotient = quotient_down(ratio_down(law.sigma()), distance);
    if quotient.is_finite() { quotient.max(0.0) } else { 0.0 }
}

/// Gaussian noise over distance as a cost.
pub(super) fn gaussian(noise: f64) -> Cost {
    if noise > 0.0 { Cost::Gaussian { noise } } else { Cost::Everything }
}
