//! Releases beside the steps of a training: each has an entry of its own in the ledger, and what all of them cost must fit before any is charged.

use super::spec::asked;
use crate::command::Error;
use crate::command::asked::Open;
use whit::account::ledger::Question;
use whit::core::release::{CommitError, ReleaseError, Reservation, release_reproducibly_without_privacy};
use whit::core::{Charge, Cost, Ladder, Ledger, Mechanism, Persist, Refusal};
use whit::learn::Noise;
use whit::noise::{Os, Ratio, Replay};

/// Noise as a file says it, as an exact fraction.
pub(super) fn noise(key: &str, noise: f64) -> Result<Ratio, Error> {
    Ratio::from_f64_down(noise)
        .ok()
        .filter(|noise| !noise.is_zero())
        .ok_or_else(|| asked(format!("{key} is {noise}, and no noise"), "give it over the squared bound, such as 5.0"))
}

/// What a release costs, rung by rung.
pub(super) fn charge(mechanism: &impl Mechanism, ladder: &Ladder) -> Charge {
    ladder.rungs().iter().map(|rung| (rung.clone(), mechanism.cost(rung))).collect()
}

/// What several releases cost together, rung by rung.
pub(super) fn together(charges: impl IntoIterator<Item = Charge>) -> Charge {
    let mut all = Charge::new();
    for (rung, cost) in charges.into_iter().flatten() {
        match all.iter_mut().find(|(known, _)| *known == rung) {
            Some((_, costs)) => *costs = Cost::Series(vec![costs.clone(), cost]),
            None => all.push((rung, cost)),
        }
    }
    all
}

/// Reserves, sanitises and commits.
pub(super) fn release<M: Mechanism<Noisy: Persist>>(
    mechanism: &M,
    exact: &M::Exact,
    ladder: &Ladder,
    question: Question,
    noise: Noise,
    open: &mut Open,
) -> Result<M::Noisy, Error> {
    let (budgets, rungs) = (open.tables.budgets(&question.dataset)?, ladder.rungs().to_vec());
    let mut booking = open.books.booking(question, &budgets);
    let released = match noise {
        Noise::Secret { .. } => whit::release(mechanism, exact, &rungs, &mut booking, &mut Os),
        Noise::Replay { .. } | Noise::Off => {
            release_reproducibly_without_privacy(mechanism, exact, &rungs, &mut booking, &mut seeded(noise))
        }
    };
    Ok(released.map_err(failed)?.value)
}

/// The same with noise that comes again, charged to nobody: for experiments.
pub(super) fn try_out<M: Mechanism<Noisy: Persist>>(
    mechanism: &M,
    exact: &M::Exact,
    ladder: &Ladder,
    noise: Noise,
) -> Result<M::Noisy, Error> {
    let (rungs, mut coins) = (ladder.rungs().to_vec(), seeded(noise));
    let released = release_reproducibly_without_privacy(mechanism, exact, &rungs, &mut Unbooked, &mut coins);
    Ok(released.map_err(failed)?.value)
}

/// A ledger that keeps no books: for experiments, whose noise comes again and protects nobody.
struct Unbooked;

impl Ledger for Unbooked {
    fn reserve(&mut self, _: &Charge) -> Result<Reservation, Refusal> {
        Ok(Reservation::new(0))
    }

    fn commit(&mut self, _: Reservation, _: &[u8]) -> Result<(), CommitError> {
        Ok(())
    }
}

fn seeded(noise: Noise) -> Replay {
    match noise {
        Noise::Replay { seed } => Replay::new(seed ^ 0xd1_4e),
        Noise::Secret { .. } | Noise::Off => Replay::new(0xd1_4e),
    }
}

fn failed(error: ReleaseError) -> Error {
    match error {
        ReleaseError::Refused(refusal) => refused(&refusal),
        other => Error::Failed(other.to_string()),
    }
}

fn refused(refusal: &Refusal) -> Error {
    Error::Refused(format!("{refusal}\n  hint: nothing was charged; `whit ledger` shows what was spent"))
}
