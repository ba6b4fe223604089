//! What a release asks of a mechanism: a cost, a sealed value, an accuracy. The [mechanisms](crate::mechanism) answer.

use super::accuracy::Accuracy;
use super::ledger::{LedgerFailure, Note};
use super::read::ReadError;
use super::seal::Sealed;
use crate::cost::Cost;
use crate::unit::Rung;
use whit_noise::{Entropy, Overflow};

/// What sanitises a bounded, exact statistic.
///
/// The documentation of each has four headings: who are neighbours, what is claimed of them, why that is so, and which
/// tests tried to break it.
pub trait Mechanism {
    /// The exact statistic; where noise is drawn between one reading and the next, what reads it. Nobody has one before its charge is reserved: see
    /// [`release`](crate::release()).
    type Exact: ?Sized;
    /// What may leave once it is paid for.
    type Noisy;

    /// What one run costs one unit of this rung. It depends on parameters only, never on data.
    fn cost(&self, rung: &Rung) -> Cost;

    /// Draws the noise. The result stays sealed until a ledger has been charged.
    fn sanitise(&self, exact: &Self::Exact, entropy: &mut dyn Entropy) -> Result<Sealed<Self::Noisy>, SanitiseError>;

    /// The same for long work, which has the ledger note how far it has come, so that it can go on after being killed. This is what a release calls.
    fn sanitise_in_steps(
        &self,
        exact: &Self::Exact,
        entropy: &mut dyn Entropy,
        note: &mut Note<'_>,
    ) -> Result<Sealed<Self::Noisy>, SanitiseError> {
        let _ = note;
        self.sanitise(exact, entropy)
    }

    /// With at least this probability, the error is at most [`Accuracy::within`].
    fn accuracy(&self, confidence: f64) -> Accuracy;
}

/// Why a mechanism could not run. The messages speak of parameters and shapes, never of values.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SanitiseError {
    /// Statistic plus noise leaves 64 bits. It is never wrapped and never clamped.
    #[error("the noisy value does not fit into 64 bits; use a coarser lattice or a smaller scale")]
    Overflow,
    /// The statistic has another number of coordinates than the mechanism was made for.
    #[error("the statistic has {given} coordinates, but the mechanism was made for {expected}")]
    Length {
        /// How many it has.
        given: usize,
        /// How many it should have.
        expected: usize,
    },
    /// A value lies outside of the declared domain.
    #[error("a value is not in the declared domain of {size} values (0 to {size} exclusive)")]
    Domain {
        /// How many values the domain has.
        size: u64,
    },
    /// What the mechanism was given is not what it was made for.
    #[error("{0}")]
    Unfit(&'static str),
    /// What is read while the mechanism runs could not be.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// The ledger did not note how far the work has come, so it ended.
    #[error(transparent)]
    Note(#[from] LedgerFailure),
}

impl From<Overflow> for SanitiseError {
    fn from(_: Overflow) -> Self {
        Self::Overflow
    }
}
