//! What the tests of several files share: a ledger without end, and draws that come again.

use whit_core::release::{CommitError, Reservation, release_reproducibly_without_privacy};
use whit_core::{Change, Charge, Ledger, Mechanism, Refusal, Rung, Unit};
use whit_noise::{Entropy, Replay};

pub(crate) struct Endless;

impl Ledger for Endless {
    fn reserve(&mut self, _: &Charge) -> Result<Reservation, Refusal> {
        Ok(Reservation::new(1))
    }

    fn commit(&mut self, _: Reservation, _: &[u8]) -> Result<(), CommitError> {
        Ok(())
    }
}

/// What a release of these sums would be, from a seed.
pub(crate) fn sanitised<M: Mechanism<Noisy = Vec<i64>>>(mechanism: &M, sums: &M::Exact, seed: u64) -> Vec<i64> {
    let rungs = [Rung { unit: Unit::event(Change::AddRemove), holds: 1, disjoint: false, slices: None }];
    release_reproducibly_without_privacy(mechanism, |_| Ok(sums), &rungs, &mut Endless, &mut Replay::new(seed))
        .unwrap()
        .value
}

/// Between 0 and 1, neither of them.
pub(crate) fn uniform(entropy: &mut dyn Entropy) -> f64 {
    (entropy.bits(52) as f64 + 0.5) / 2_f64.powi(52)
}

/// A standard Gaussian, for made-up data.
pub(crate) fn normal(entropy: &mut dyn Entropy) -> f64 {
    let (radius, angle) = ((-2.0 * uniform(entropy).ln()).sqrt(), std::f64::consts::TAU * uniform(entropy));
    radius * angle.cos()
}
