//! Releases beside the steps of a training: each has an entry of its own in the ledger, and what all of them cost must fit before any is charged.

use super::of_ledger;
use super::spec::asked;
use crate::command::Error;
use crate::number::brief_down;
use whit::account::ledger::{Booking, Books, Budget, CurrencyName, Question, State, Which};
use whit::core::mechanism::SanitiseError;
use whit::core::release::{
    CommitError, LedgerFailure, ReleaseError, Reservation, release_reproducibly_without_privacy,
};
use whit::core::{Accuracy, Charge, Cost, Ladder, Ledger, Mechanism, Persist, Refusal, Rung, Sealed};
use whit::learn::{LearnError, Noise};
use whit::noise::{Entropy, Os, Ratio, Replay};

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

/// What a release costs where neither it nor a reservation for it is there yet.
pub(super) fn unpaid(charge: Charge, question: &Question, books: &mut Books) -> Result<Charge, Error> {
    let stored = books.stored(question).map_err(of_ledger)?.is_some();
    let paid = stored || books.open_reservation(question).map_err(of_ledger)?.is_some();
    Ok(if paid { Charge::new() } else { charge })
}

/// The budgets that watch over a training, unless its owner gives all privacy up.
pub(super) struct Budgets {
    pub(super) list: Vec<Budget>,
    pub(super) given_up: bool,
}

impl Budgets {
    /// A ledger for one release.
    pub(super) fn booking<'a>(&'a self, books: &'a mut Books, question: Question) -> Booking<'a> {
        let booking = books.booking(question, &self.list);
        if self.given_up { booking.without_privacy() } else { booking }
    }
}

/// Whether all of a charge fits, or why not. Nothing is written. `at` says what the same would cost at another ε, so that one which is told was tried.
pub(super) fn check(
    charge: &Charge,
    question: &Question,
    books: &mut Books,
    budgets: &Budgets,
    at: impl Fn(f64, &mut Books) -> Option<Charge>,
) -> Result<(), Error> {
    if budgets.given_up {
        return Ok(());
    }
    let refusal = {
        let mut booking = budgets.booking(books, question.clone());
        let Err(refusal) = booking.would_fit(charge) else { return Ok(()) };
        if let Some(failure) = booking.failure() {
            return Err(broken(&failure));
        }
        refusal
    };
    let mut fits = |text: &String| {
        let Ok(epsilon) = text.parse::<f64>() else { return false };
        let Some(charge) = at(epsilon, &mut *books) else { return false };
        budgets.booking(&mut *books, question.clone()).would_fit(&charge).is_ok()
    };
    // What is left of a budget is about what would fit; to plan a training takes a while, so few are tried.
    let near = refusal.available.filter(|near| *near > 0.0);
    let shares = near.into_iter().flat_map(|near| [1.0, 0.97, 0.9, 0.7, 0.5].map(|share| share * near));
    let fitting = shares.map(brief_down).find(|text| fits(text));
    Err(refused(&refusal, &budgets.list, fitting.as_deref()))
}

/// What a charge comes to with this noise: everything, where it can be drawn again.
pub(super) fn exposed(charge: Charge, noise: Noise) -> Charge {
    if noise.protects() {
        return charge;
    }
    charge.into_iter().map(|(rung, _)| (rung, Cost::Everything)).collect()
}

/// What a mechanism does with rows, which it reads itself.
pub(super) type Work<'a, N> = dyn Fn(&mut dyn Entropy) -> Result<Sealed<N>, SanitiseError> + 'a;

/// A mechanism that reads its rows when it runs, and so after its charge is reserved.
///
/// # Neighbours
/// Data sets that differ in one unit of a rung of the charge.
///
/// # Claim
/// What its charge says of that rung, and everything at a rung that it does not speak of.
///
/// # Why
/// It is another mechanism, which `work` runs on rows that it reads: the charge is that mechanism's own cost, rung by rung ([`charge`]), or what telling labels
/// costs, of which no row is read to know it. Nothing of a row is read before [`Mechanism::sanitise`] is called, which a release does after its reservation, and nothing
/// in a row makes it fail.
///
/// # Tried by
/// `rows_are_read_after_the_reservation_and_never_without_one`, `parameters_come_with_intervals_that_are_promised_with_the_steps`,
/// `noise_on_labels_is_compared_with_noise_on_gradients`.
struct Late<'a, N> {
    charge: Charge,
    work: Box<Work<'a, N>>,
}

impl<N> Mechanism for Late<'_, N> {
    type Exact = ();
    type Noisy = N;

    fn cost(&self, rung: &Rung) -> Cost {
        self.charge.iter().find(|(known, _)| known == rung).map_or(Cost::Everything, |(_, cost)| cost.clone())
    }

    fn sanitise(&self, (): &(), entropy: &mut dyn Entropy) -> Result<Sealed<N>, SanitiseError> {
        (self.work)(entropy)
    }

    fn accuracy(&self, confidence: f64) -> Accuracy {
        Accuracy { within: f64::INFINITY, confidence }
    }
}

/// What went wrong with rows that were read, as a mechanism says it.
pub(super) fn unread(error: &LearnError) -> SanitiseError {
    SanitiseError::Engine(format!("{error}; {}", error.hint()))
}

/// What a mechanism releases of rows that `exact` reads, at the mechanism's own price.
pub(super) fn release_of<M: Mechanism<Exact: Sized, Noisy: Persist>>(
    mechanism: &M,
    exact: impl Fn() -> Result<M::Exact, LearnError>,
    ladder: &Ladder,
    question: Question,
    noise: Noise,
    books: (&mut Books, &Budgets),
) -> Result<M::Noisy, Error> {
    let work = |entropy: &mut dyn Entropy| {
        let exact = exact().map_err(|error| unread(&error))?;
        mechanism.sanitise(&exact, entropy)
    };
    release(charge(mechanism, ladder), Box::new(work), question, noise, books)
}

/// Reserves, reads and sanitises, and commits. Where that was interrupted before, the reservation is still open and nothing of it was seen, so it goes on under
/// the same.
pub(super) fn release<N: Persist>(
    charge: Charge,
    work: Box<Work<'_, N>>,
    question: Question,
    noise: Noise,
    (books, budgets): (&mut Books, &Budgets),
) -> Result<N, Error> {
    let rungs: Vec<Rung> = charge.iter().map(|(rung, _)| rung.clone()).collect();
    let late = Late { charge: exposed(charge, noise), work };
    let reserved = books.open_reservation(&question).map_err(of_ledger)?;
    let mut booking = match reserved {
        Some(entry) => books.resume(question, &budgets.list, entry.number),
        None => budgets.booking(books, question),
    };
    let released = match noise {
        Noise::Secret { .. } => whit::release(&late, &(), &rungs, &mut booking, &mut Os),
        Noise::Replay { .. } | Noise::Off => {
            release_reproducibly_without_privacy(&late, &(), &rungs, &mut booking, &mut seeded(noise))
        }
    };
    let entry = booking.entry();
    match released {
        Ok(released) => Ok(released.value),
        Err(_) if is_void(entry, books) => Err(Error::Failed(voided(entry, AGAIN))),
        Err(error) => Err(failed(error, &budgets.list)),
    }
}

/// What to do about an entry that was made void.
pub(super) const AGAIN: &str = "the same command begins anew, with a charge of its own";

/// Whether an entry was made void: its work may still have been under way.
pub(super) fn is_void(entry: Option<u64>, books: &Books) -> bool {
    // Where that cannot be told, it is not said.
    let entries = entry.map_or_else(Vec::new, |_| books.entries(&Which::default()).unwrap_or_default());
    entries.iter().any(|found| Some(found.number) == entry && matches!(found.state, State::Void { .. }))
}

/// What is said of work whose entry was made void.
pub(super) fn voided(entry: Option<u64>, hint: &str) -> String {
    let number = entry.map_or_else(String::new, |number| format!(" {number}"));
    format!(
        "entry{number} of the ledger was made void while this run was under way: it ended, nothing of it is released, and nothing of it is spent\n  hint: {hint}"
    )
}

/// What an interrupted run was begun with, and the ledger does not have.
pub(super) fn gone(what: &str) -> Error {
    asked(
        format!("the {what} that this run was begun with are not in the ledger any more"),
        "remove its checkpoint and void its entry, to begin anew",
    )
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
    Ok(released.map_err(|error| failed(error, &[]))?.value)
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

fn failed(error: ReleaseError, budgets: &[Budget]) -> Error {
    match error {
        ReleaseError::Refused(refusal) => refused(&refusal, budgets, None),
        ReleaseError::Ledger(failure) => broken(&failure),
        other => Error::Failed(format!(
            "{other}\n  hint: while the data is as it was, the same command goes on with it, and pays no second time"
        )),
    }
}

/// A ledger that could not be asked, with what to do about it.
pub(super) fn broken(failure: &LedgerFailure) -> Error {
    let hint = failure.hint.clone().map_or_else(String::new, |hint| format!("\n  hint: {hint}"));
    Error::Failed(format!("{failure}{hint}"))
}

/// A refusal, with the ε that was tried and would fit, and what might help.
pub(super) fn refused(refusal: &Refusal, budgets: &[Budget], fits: Option<&str>) -> Error {
    let fits = fits.map_or_else(String::new, |fits| format!("; privacy.epsilon = {fits} would fit"));
    let plain = budgets.iter().any(|budget| budget.delta > 0.0 && budget.currency != CurrencyName::Renyi);
    let better = if plain {
        "; a budget with currency = \"renyi\" sees that only some units are drawn, and counts less"
    } else {
        ""
    };
    Error::Refused(format!(
        "{refusal}\n  hint: nothing was charged for it{fits}{better}; `whit ledger` shows what was spent"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;
    use whit::core::{Change, Unit};

    /// A ledger that says yes or no, and shows that it was asked.
    struct Asked<'a> {
        yes: bool,
        reserved: &'a Cell<bool>,
    }

    impl Ledger for Asked<'_> {
        fn reserve(&mut self, _: &Charge) -> Result<Reservation, Refusal> {
            self.reserved.set(self.yes);
            let [asked, left, unit] = ["ε = 1", "ε = 0", "event"].map(str::to_owned);
            if self.yes { Ok(Reservation::new(1)) } else { Err(Refusal { asked, left, unit, available: None }) }
        }

        fn commit(&mut self, _: Reservation, _: &[u8]) -> Result<(), CommitError> {
            Ok(())
        }
    }

    #[test]
    fn rows_are_read_after_the_reservation_and_never_without_one() {
        let rung = Rung { unit: Unit::event(Change::AddRemove), holds: 1, disjoint: false };
        let cost = Cost::Gaussian { noise: 2.0 };
        for yes in [true, false] {
            let (reserved, read) = (Cell::new(false), Cell::new(false));
            let work = |_: &mut dyn Entropy| {
                assert!(reserved.get(), "rows are read before anything is reserved");
                read.set(true);
                Ok::<_, SanitiseError>(Sealed::new(7_i64))
            };
            let late = Late { charge: vec![(rung.clone(), cost.clone())], work: Box::new(work) };
            assert_eq!(late.cost(&rung), cost);
            assert_eq!(late.cost(&Rung { holds: 2, ..rung.clone() }), Cost::Everything, "of which nobody spoke");
            let (mut ledger, mut coins) = (Asked { yes, reserved: &reserved }, Replay::new(1));
            let rungs = [rung.clone()];
            let released = release_reproducibly_without_privacy(&late, &(), &rungs, &mut ledger, &mut coins);
            assert_eq!((released.is_ok(), read.get()), (yes, yes));
        }
    }
}
