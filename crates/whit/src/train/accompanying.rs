//! Releases that accompany the steps of a training: each has an entry of its own in the ledger, and what all of them cost must fit before any is charged.

use super::spec::asked;
use crate::Error;
use crate::error::{Reason, of_ledger};
use std::borrow::Borrow;
use whit_account::desk::{self, Coins, Desk, DeskError, Instead, ReleaseRequest, Served, Start};
use whit_account::ledger::{Budget, CurrencyName, Question, Register};
use whit_core::mechanism::SanitiseError;
use whit_core::release::{
    CommitError, LedgerFailure, ReadError, ReleaseError, Reservation, release_reproducibly_without_privacy,
};
use whit_core::{Accuracy, Charge, Cost, Ladder, Ledger, Mechanism, Persist, Refusal, Rung, Sealed};
use whit_learn::{LearnError, NoiseSource};
use whit_noise::{Entropy, Os, Ratio, Replay};

/// Noise as a file says it, as an exact fraction.
pub(crate) fn noise(key: &str, noise: f64) -> Result<Ratio, Error> {
    Ratio::from_f64_down(noise)
        .ok()
        .filter(|noise| !noise.is_zero())
        .ok_or_else(|| asked(format!("{key} is {noise}, and no noise"), "give it over the squared bound, such as 5.0"))
}

/// What a release costs, rung by rung.
pub(crate) fn charge(mechanism: &impl Mechanism, ladder: &Ladder) -> Charge {
    ladder.rungs().iter().map(|rung| (rung.clone(), mechanism.cost(rung))).collect()
}

/// What several releases cost together, rung by rung.
pub(crate) fn together(charges: impl IntoIterator<Item = Charge>) -> Charge {
    let mut all = Charge::new();
    for (rung, cost) in charges.into_iter().flatten() {
        match all.iter_mut().find(|(known, _)| *known == rung) {
            Some((_, costs)) => *costs = Cost::Series(vec![costs.clone(), cost]),
            None => all.push((rung, cost)),
        }
    }
    all
}

/// What a release costs where neither it nor a reservation for it is there yet.
pub(crate) fn unpaid(charge: Charge, question: &Question, books: &mut dyn Register) -> Result<Charge, Error> {
    desk::unpaid(books, charge, question).map_err(of_ledger)
}

/// Refuses a run that goes on (`resumed`) without what it released before its first step.
pub(crate) fn still_there(
    resumed: bool,
    question: &Question,
    books: &mut dyn Register,
    what: &str,
) -> Result<(), Error> {
    let missing = resumed && books.stored(question).map_err(of_ledger)?.is_none();
    if missing { Err(gone(what)) } else { Ok(()) }
}

/// The budgets that watch over a training, unless its owner gives all privacy up.
pub(crate) struct Budgets {
    pub(crate) list: Vec<Budget>,
    pub(crate) given_up: bool,
}

impl Budgets {
    /// Where a release is asked for.
    pub(crate) fn desk<'a>(&'a self, books: &'a mut dyn Register) -> Desk<'a> {
        let desk = Desk::new(books, &self.list);
        if self.given_up { desk.without_privacy() } else { desk }
    }

    /// Why nothing was served, and what to do about it.
    pub(crate) fn unserved(&self, error: DeskError, hint: &str) -> Error {
        match error {
            DeskError::Refused { refusal, fits } => refused(refusal, &self.list, fits.as_deref()),
            DeskError::Ledger(error) => of_ledger(error),
            DeskError::Release(ReleaseError::Ledger(failure)) => broken(&failure),
            DeskError::Void { entry } => voided(entry, AGAIN),
            other => Error::failed(other.to_string()).with_hint(hint),
        }
    }
}

/// Whether all of a charge fits, or why not. Nothing is written. `at` says what the same would cost at another ε, so that one which is offered was tried.
pub(crate) fn check(
    charge: &Charge,
    question: &Question,
    books: &mut dyn Register,
    budgets: &Budgets,
    at: impl Fn(f64, &mut dyn Register) -> Option<Charge>,
) -> Result<(), Error> {
    // To plan a training takes a while, so few are tried.
    let fits = budgets.desk(books).fits(question, charge, Instead::Shares { price: &at });
    fits.map_err(|error| budgets.unserved(error, AGAIN))
}

/// What a charge comes to with this noise: everything, where it can be drawn again.
pub(crate) fn exposed(charge: Charge, noise: NoiseSource) -> Charge {
    if noise.protects() {
        return charge;
    }
    charge.into_iter().map(|(rung, _)| (rung, Cost::Everything)).collect()
}

/// What a mechanism does with what was read.
pub(crate) type Work<'a, E, N> = dyn Fn(&E, &mut dyn Entropy) -> Result<Sealed<N>, SanitiseError> + 'a;

/// A mechanism at a price that was known before it was made: it may need rows to be made of, and noise that can be drawn again makes it cost everything.
///
/// # Neighbours
/// Data sets that differ in one unit of a rung of the charge.
///
/// # Claim
/// What its charge says of that rung, and everything at a rung that it does not speak of.
///
/// # Why
/// It is another mechanism, which `work` runs on what was read: the charge is that mechanism's own cost, rung by rung ([`charge`]). Nothing in a row makes it fail.
///
/// # Tried by
/// `rows_are_read_after_the_reservation_and_never_without_one`, `parameters_come_with_intervals_that_are_promised_with_the_steps`.
struct AtPrice<'a, E, N> {
    charge: Charge,
    work: Box<Work<'a, E, N>>,
}

impl<E, N> Mechanism for AtPrice<'_, E, N> {
    type Exact = E;
    type Noisy = N;

    fn cost(&self, rung: &Rung) -> Cost {
        self.charge.iter().find(|(known, _)| known == rung).map_or(Cost::Everything, |(_, cost)| cost.clone())
    }

    fn sanitise(&self, exact: &E, entropy: &mut dyn Entropy) -> Result<Sealed<N>, SanitiseError> {
        (self.work)(exact, entropy)
    }

    fn accuracy(&self, confidence: f64) -> Accuracy {
        Accuracy { within: f64::INFINITY, confidence }
    }
}

/// What a mechanism releases of rows that `exact` reads, at the mechanism's own price; `decode` reads what is stored.
pub(crate) fn release_of<M: Mechanism<Exact: Sized, Noisy: Persist>>(
    mechanism: &M,
    (exact, decode): (
        impl Fn(&Reservation) -> Result<M::Exact, LearnError>,
        impl Fn(&[u8]) -> Result<M::Noisy, String>,
    ),
    ladder: &Ladder,
    question: &Question,
    noise: NoiseSource,
    books: (&mut dyn Register, &Budgets),
) -> Result<Served<M::Noisy>, Error> {
    let work = |exact: &M::Exact, entropy: &mut dyn Entropy| mechanism.sanitise(exact, entropy);
    let read = |reservation: &Reservation| Ok(exact(reservation)?);
    release((charge(mechanism, ladder), Box::new(work)), (read, decode), question, noise, books)
}

/// Finds it in the ledger, or reserves, reads, sanitises and commits. Where that was interrupted before, the reservation is still open and nothing of it was seen, so it goes on under
/// the same.
pub(crate) fn release<X, E: Borrow<X>, N: Persist>(
    (charge, work): (Charge, Box<Work<'_, X, N>>),
    (read, decode): (impl FnOnce(&Reservation) -> Result<E, ReadError>, impl Fn(&[u8]) -> Result<N, String>),
    question: &Question,
    noise: NoiseSource,
    (books, budgets): (&mut dyn Register, &Budgets),
) -> Result<Served<N>, Error> {
    let rungs: Vec<Rung> = charge.iter().map(|(rung, _)| rung.clone()).collect();
    let mechanism = AtPrice { charge: exposed(charge, noise), work };
    let mut replay = seeded(noise);
    let coins = if noise.protects() { Coins::Secret(&mut Os) } else { Coins::Seeded(&mut replay) };
    let request = ReleaseRequest { question, rungs: &rungs, coins, start: Start::Open, instead: Instead::Nothing };
    let served = budgets.desk(books).once(request, &mechanism, read, decode);
    served.map_err(|error| budgets.unserved(error, GOES_ON))
}

/// What to do about a release that was interrupted.
pub(crate) const GOES_ON: &str =
    "while the data is as it was, the same `Session::train` goes on with it, and pays no second time";

/// What to do about an entry that was made void.
pub(crate) const AGAIN: &str = "the same `Session::train` begins anew, with a charge of its own";

/// What is said of work whose entry was made void.
pub(crate) fn voided(entry: u64, hint: &str) -> Error {
    Error::failed(DeskError::Void { entry }.to_string()).because(Reason::Voided { entry }).with_hint(hint)
}

/// What an interrupted run was begun with, and the ledger does not have.
fn gone(what: &str) -> Error {
    asked(
        format!("the {what} that this run was begun with are not in the ledger any more"),
        "remove its checkpoint and void its entry, to begin anew",
    )
}

/// The same with noise that comes again, charged to no budget: for experiments.
pub(crate) fn try_out<M: Mechanism<Noisy: Persist>>(
    mechanism: &M,
    exact: &M::Exact,
    ladder: &Ladder,
    noise: NoiseSource,
) -> Result<M::Noisy, Error> {
    let (rungs, mut coins) = (ladder.rungs().to_vec(), seeded(noise));
    let released = release_reproducibly_without_privacy(mechanism, |_| Ok(exact), &rungs, &mut Unbooked, &mut coins);
    Ok(released.map_err(|error| Error::failed(error.to_string()))?.value)
}

/// A ledger that keeps no books: for experiments, whose noise comes again: they are non-private.
pub(crate) struct Unbooked;

impl Ledger for Unbooked {
    fn reserve(&mut self, _: &Charge) -> Result<Reservation, Refusal> {
        Ok(Reservation::new(0))
    }

    fn commit(&mut self, _: Reservation, _: &[u8]) -> Result<(), CommitError> {
        Ok(())
    }
}

fn seeded(noise: NoiseSource) -> Replay {
    match noise {
        NoiseSource::Replay { seed } => Replay::new(seed ^ 0xd1_4e),
        NoiseSource::Secret { .. } | NoiseSource::Off => Replay::new(0xd1_4e),
    }
}

/// A ledger that could not be asked, with what to do about it.
pub(crate) fn broken(failure: &LedgerFailure) -> Error {
    Error { hint: failure.hint.clone(), ..Error::failed(failure.to_string()) }
}

/// A refusal, with the ε that was tried and would fit, and what might help.
fn refused(refusal: Refusal, budgets: &[Budget], fits: Option<&str>) -> Error {
    let fits = fits.map_or_else(String::new, |fits| format!("; privacy.epsilon = {fits} would fit"));
    let plain = budgets.iter().any(|budget| budget.delta > 0.0 && budget.currency != CurrencyName::Renyi);
    let better = if plain {
        "; a budget with currency = \"renyi\" sees that only some units are drawn, and counts less"
    } else {
        ""
    };
    let hint = format!("nothing was charged for it{fits}{better}; `Session::accounts` says what was spent");
    Error::refused(refusal, hint)
}

#[cfg(test)]
mod tests {
    use super::*;
    use whit_core::{Change, Unit};

    #[test]
    fn a_mechanism_at_a_price_costs_that_and_everything_where_nobody_spoke_of_it() {
        let rung = Rung { unit: Unit::event(Change::AddRemove), holds: 1, disjoint: false, slices: None };
        let cost = Cost::Gaussian { noise: 2.0 };
        let work = |exact: &i64, _: &mut dyn Entropy| Ok(Sealed::new(*exact));
        let priced = AtPrice { charge: vec![(rung.clone(), cost.clone())], work: Box::new(work) };
        assert_eq!(priced.cost(&rung), cost);
        assert_eq!(priced.cost(&Rung { holds: 2, ..rung }), Cost::Everything, "of which nobody spoke");
    }
}
