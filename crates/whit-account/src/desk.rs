//! The release desk: the whole way of one release, from the question to the value, for every kind of work.
//!
//! ```text
//! stored? → fits? → reserve → read → sanitise → commit → value
//! ```
//!
//! [`Desk::once`] walks it. What is stored is released again and costs nothing; what does not fit is refused, with the largest ε that was tried and would; rows are read after the
//! reservation is durable and never without one; whatever fails after that leaves the charge spent.

use crate::ledger::{
    Booking, Budget, Denied, Entry, LedgerError, Question, Register, Stored, Terms, gone_on_with_after,
    interrupted_after,
};
use std::borrow::Borrow;
use whit_core::declare::QueryDefaults;
use whit_core::digits::terse_down;
use whit_core::release::Persist;
use whit_core::release::{
    ReadError, Release, ReleaseError, Reservation, charge_of, release_reproducibly_without_privacy,
};
use whit_core::{Charge, Mechanism, Progress, Refusal, Rung, release};
use whit_noise::{Replay, Secret};

/// Where noise comes from.
pub enum Coins<'a> {
    /// From where nobody can foresee it.
    Secret(&'a mut dyn Secret),
    /// From a seed: it comes again, and protects nobody. The release says so.
    Seeded(&'a mut Replay),
}

/// Under which reservation the work is done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Start {
    /// Under a new one, or under one that whoever asks [interrupted](Entry::is_interrupted). Any other that an earlier try left open stays spent: why it ended may have shown something.
    Anew,
    /// Under one of the same question and analyst that is open, if there is one. For work of which nothing can have been seen when it ends early, and in which nothing
    /// that is in a row makes it fail.
    Open,
    /// Under this entry, from this checkpoint, which must be the one that the ledger noted last.
    Under {
        /// The entry.
        entry: u64,
        /// The checkpoint.
        at: Option<Progress>,
    },
}

/// How else a promise might be made that does not fit.
#[derive(Clone, Copy)]
pub enum Instead<'a> {
    /// Nobody can say.
    Nothing,
    /// What it would cost at another ε, where that can be had: the largest below the one that was refused is looked for.
    Search {
        /// The ε that was refused.
        epsilon: f64,
        /// The charge at another ε.
        price: &'a PriceAt<'a>,
    },
    /// The same where one such price takes a while: a few shares of what is left are tried.
    Shares {
        /// The charge at another ε.
        price: &'a PriceAt<'a>,
    },
}

/// What the same would cost at another ε, as far as it is not paid yet; nothing where it cannot be had so.
pub type PriceAt<'a> = dyn Fn(f64, &mut dyn Register) -> Option<Charge> + 'a;

/// What is asked for: a question, who pays, and how.
pub struct ReleaseRequest<'a> {
    /// The question.
    pub question: &'a Question,
    /// The units that pay, the protected one first.
    pub rungs: &'a [Rung],
    /// Where noise comes from.
    pub coins: Coins<'a>,
    /// Under which reservation.
    pub start: Start,
    /// What to say where it does not fit.
    pub instead: Instead<'a>,
}

/// A value that left, now or before.
#[derive(Debug, Clone, PartialEq)]
pub struct Served<T> {
    /// What was released.
    pub value: T,
    /// What it was charged with, rung by rung.
    pub charge: Charge,
    /// Its entry in the ledger.
    pub entry: u64,
    /// Whether it was there already, and cost nothing more.
    pub stored: bool,
    /// Whether its noise was drawn from a seed, so that it protects nobody. What two seeds draw are two questions, so what is stored was drawn as it is asked for.
    pub reproducible: bool,
}

/// Why nothing was served.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum DeskError {
    /// A budget said no; nothing was read and nothing was charged.
    #[error("{refusal}")]
    Refused {
        /// Its "no".
        refusal: Refusal,
        /// The ε, as it is written, that was tried and would fit.
        fits: Option<String>,
    },
    /// The ledger could not be asked; nothing was read and nothing was charged.
    #[error(transparent)]
    Ledger(#[from] LedgerError),
    /// The entry was made void while the work was under way: nothing of it is released, and nothing of it is spent.
    #[error(
        "entry {entry} of the ledger was made void while this run was under way: it ended, nothing of it is released, and nothing of it is spent"
    )]
    Void {
        /// The entry.
        entry: u64,
    },
    /// Whoever asked stopped it: nothing of it was released.
    #[error("it was interrupted{}", left(.0))]
    Interrupted(Interruption),
    /// What the ledger has stored cannot be read.
    #[error("entry {entry} of the ledger holds no answer that can be read: {why}")]
    Unreadable {
        /// The entry.
        entry: u64,
        /// Why.
        why: String,
    },
    /// Reading, sanitising or committing failed: where a charge was reserved, it stays spent.
    #[error(transparent)]
    Release(#[from] ReleaseError),
}

/// Work that whoever asked for it stopped before anything of it was released.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Interruption {
    /// The entry that stays spent; none where nothing was charged yet.
    pub entry: Option<u64>,
    /// Whether asking the same again goes on under that entry. It does not where the ledger could not note that it was stopped.
    pub goes_on: bool,
}

fn left(interruption: &Interruption) -> String {
    match interruption.entry {
        Some(entry) => format!(
            ": what was charged for it, as entry {entry} of the ledger, stays spent, and nothing of it was released"
        ),
        None => ": nothing was charged, and nothing was released".to_owned(),
    }
}

impl Interruption {
    /// The next step.
    fn hint(self) -> String {
        match (self.entry, self.goes_on) {
            (None, _) => "ask it again".to_owned(),
            (Some(entry), true) => {
                format!("ask the same again: it goes on under entry {entry}, and is not charged a second time")
            }
            (Some(entry), false) => format!(
                "the ledger could not note that it was stopped, so asking again is charged anew; the owner of the data may make entry {entry} void"
            ),
        }
    }
}

impl DeskError {
    /// The next step, where somebody knows one.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Refused { fits: Some(fits), .. } => Some(format!("nothing was charged; ε = {fits} would fit")),
            Self::Refused { fits: None, .. } => {
                Some("nothing was charged; the owner of the data may raise the budget".to_owned())
            }
            Self::Ledger(error) => error.hint(),
            Self::Void { .. } => Some("ask anew, with a charge of its own".to_owned()),
            Self::Interrupted(interruption) => Some(interruption.hint()),
            Self::Unreadable { .. } => None,
            Self::Release(error) => error.hint().map(str::to_owned),
        }
    }
}

/// A ledger and the budgets that watch over what is released by it.
pub struct Desk<'a> {
    ledger: &'a mut dyn Register,
    budgets: &'a [Budget],
    gives_up: bool,
}

impl<'a> Desk<'a> {
    /// A desk at this ledger.
    pub fn new(ledger: &'a mut dyn Register, budgets: &'a [Budget]) -> Self {
        Self { ledger, budgets, gives_up: false }
    }

    /// The same for an owner who gives all privacy up: no budget is asked, and every rung is charged with everything.
    #[must_use]
    pub fn without_privacy(self) -> Self {
        Self { gives_up: true, ..self }
    }

    /// Serves a question once: from the ledger where it was answered before, else by reserving, reading, sanitising and committing. `decode` reads what is stored.
    ///
    /// Of several who ask the very same at once, one works and the others wait for it and are answered from the ledger: nothing that is answered is charged again.
    ///
    /// # Why
    /// Who begins [anew](Start::Anew), or goes on under [whatever is open](Start::Open), first takes a [turn](Register::turn), which goes with the process that has it. And the ledger looks once more whether the question is
    /// answered where it reserves, in the transaction in which nobody else can write. A reservation that is open, and whose worker is gone, is not gone on with: it may have
    /// ended because of what was drawn, or of how many rows there are.
    ///
    /// One is gone on with: that of work which whoever asked stopped, and which noted so itself. The charge pays for one run of the mechanism, and one run is seen. What the first
    /// had drawn, if anything, was never committed, and only what is committed is opened; it went with the process or with the call. That it was stopped was decided outside, by
    /// somebody who had seen nothing of it but how long it took (which is not hidden: SECURITY.md), so the second run, with noise of its own, is distributed as if there had been no
    /// first. Work that ends for any other reason does not note this: [`ReleaseError::is_interruption`] is true of a read that was stopped from outside, and of nothing that can be in a row.
    ///
    /// No two go on with the same: who does so first replaces the note by another, in a transaction, which succeeds only where the note is still the last. From then on the entry is as open as
    /// any: if this run dies, nobody goes on with it, and if it is stopped again, that is noted anew. The commit, too, succeeds only where this run's own note is the last.
    ///
    /// # Tried by
    /// `what_was_interrupted_goes_on_under_its_entry_and_is_charged_once`, `nobody_goes_on_with_what_died_or_failed`, `one_of_two_goes_on_with_what_was_interrupted`, and with processes
    /// that are stopped and killed: `questions_that_are_stopped_go_on_and_are_charged_once`.
    pub fn once<M: Mechanism<Noisy: Persist>, E: Borrow<M::Exact>>(
        &mut self,
        request: ReleaseRequest<'_>,
        mechanism: &M,
        read: impl FnOnce(&Reservation) -> Result<E, ReadError>,
        decode: impl Fn(&[u8]) -> Result<M::Noisy, String>,
    ) -> Result<Served<M::Noisy>, DeskError> {
        let ReleaseRequest { question, rungs, coins, start, instead } = request;
        let reproducible = matches!(coins, Coins::Seeded(_));
        let served = |stored: Stored| served(stored, reproducible, &decode);
        // What is stored waits for nobody.
        if let Some(stored) = self.ledger.stored(question)? {
            return served(stored);
        }
        let charge = charge_of(mechanism, rungs);
        let terms = Terms { budgets: self.budgets, gives_up: self.gives_up, again: false };
        if !rungs.is_empty() && !matches!(start, Start::Under { .. }) {
            match self.ledger.prepare_for(question, &charge, terms) {
                // What was answered meanwhile is found below.
                Ok(()) | Err(Denied::Answered { .. }) => {}
                Err(Denied::Refused(refusal)) => return Err(self.refused(refusal, question, instead)),
                Err(Denied::Failed(error)) => return Err(error.into()),
            }
        }
        // Dropped when all is done: until then others who ask the same wait. Who goes on under an entry of its own knows that nobody else does.
        let _turn = match start {
            Start::Anew | Start::Open => Some(self.ledger.turn(question)?),
            Start::Under { .. } => None,
        };
        if let Some(stored) = self.ledger.stored(question)? {
            return served(stored);
        }
        let anew = start == Start::Anew;
        let open = match start {
            Start::Anew => self.interrupted(question, &charge)?,
            Start::Open => self.ledger.open_reservation(question)?.map(|entry| (entry.number, entry.progress)),
            Start::Under { entry, at } => Some((entry, at)),
        };
        let (entry, at) = match open {
            Some(open) => open,
            None if rungs.is_empty() => return Err(ReleaseError::NoRung.into()),
            None => {
                match self.ledger.reserve_for(question, &charge, terms) {
                    Ok(entry) => (entry, None),
                    Err(Denied::Refused(refusal)) => return Err(self.refused(refusal, question, instead)),
                    Err(Denied::Failed(error)) => return Err(error.into()),
                    Err(Denied::Answered { entry }) => {
                        // Somebody else was faster, where turns are not to be had.
                        let stored = self.ledger.stored(question)?;
                        let gone = || LedgerError::Closed { number: entry, state: "committed" };
                        return served(stored.ok_or_else(gone)?);
                    }
                }
            }
        };
        let last = at.clone();
        let booking = Booking::new(self.ledger, question.clone(), self.budgets).under(entry).from_checkpoint(at);
        let mut booking = if self.gives_up { booking.without_privacy() } else { booking };
        let released = match coins {
            Coins::Secret(coins) => release(mechanism, read, rungs, &mut booking, coins),
            Coins::Seeded(coins) => release_reproducibly_without_privacy(mechanism, read, rungs, &mut booking, coins),
        };
        let beaten = booking.beaten();
        match released {
            Ok(Release { value, charge, reproducible, .. }) => {
                Ok(Served { value, charge, entry, stored: false, reproducible })
            }
            // Somebody else went on under the same entry, and theirs is its value: ours was never opened.
            Err(error) if beaten => match self.ledger.stored(question)? {
                Some(stored) => served(stored),
                None => Err(error.into()),
            },
            // Where that cannot be known, it is not said.
            Err(_) if self.ledger.is_void(entry).unwrap_or(false) => Err(DeskError::Void { entry }),
            Err(error) if anew && error.is_interruption() => {
                let noted = self.ledger.note_progress(entry, last.as_ref(), &interrupted_after(last.as_ref()));
                Err(DeskError::Interrupted(Interruption { entry: Some(entry), goes_on: noted.is_ok() }))
            }
            Err(error) => Err(error.into()),
        }
    }

    /// The entry of the same question that was interrupted, from now on this work's own; none where there is none, where somebody else was faster, or where the price is another by now.
    fn interrupted(
        &mut self,
        question: &Question,
        charge: &Charge,
    ) -> Result<Option<(u64, Option<Progress>)>, LedgerError> {
        let Some(entry) = self.goes_on(question, charge)? else { return Ok(None) };
        let next = gone_on_with_after(entry.progress.as_ref());
        match self.ledger.note_progress(entry.number, entry.progress.as_ref(), &next) {
            Ok(()) => Ok(Some((entry.number, Some(next)))),
            Err(LedgerError::OtherCheckpoint { .. } | LedgerError::Closed { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// The entry under which asking this would go on, charged with this, where it was interrupted. Nothing is written.
    pub fn goes_on(&mut self, question: &Question, charge: &Charge) -> Result<Option<Entry>, LedgerError> {
        if self.gives_up {
            return Ok(None);
        }
        Ok(self.ledger.interrupted_reservation(question)?.filter(|entry| *entry.charge == *charge))
    }

    /// Whether all of a charge fits now, or why not. Nothing is written: for work of several releases, which must fit together before the first.
    pub fn fits(&mut self, question: &Question, charge: &Charge, instead: Instead<'_>) -> Result<(), DeskError> {
        if self.gives_up {
            return Ok(());
        }
        match self.ledger.would_fit(question, self.budgets, charge) {
            // What is answered is not charged again.
            Ok(()) | Err(Denied::Answered { .. }) => Ok(()),
            Err(Denied::Refused(refusal)) => Err(self.refused(refusal, question, instead)),
            Err(Denied::Failed(error)) => Err(error.into()),
        }
    }

    /// A "no" with the ε that would fit, which was tried.
    fn refused(&mut self, mut refusal: Refusal, question: &Question, instead: Instead<'_>) -> DeskError {
        let mut fits = |price: &PriceAt<'_>, epsilon: f64| {
            let Some(charge) = price(epsilon, &mut *self.ledger) else { return false };
            self.ledger.would_fit(question, self.budgets, &charge).is_ok()
        };
        let fits = match instead {
            Instead::Nothing => None,
            Instead::Search { epsilon, price } => largest(epsilon, |epsilon| fits(price, epsilon)),
            Instead::Shares { price } => {
                let near = refusal.available.filter(|near| *near > 0.0);
                let shares = near.into_iter().flat_map(|near| [1.0, 0.97, 0.9, 0.7, 0.5].map(|share| share * near));
                shares.map(terse_down).find(|written| written.parse().is_ok_and(|epsilon| fits(price, epsilon)))
            }
        };
        if let Some(shortfall) = &mut refusal.shortfall {
            shortfall.fits = fits.as_ref().and_then(|fits| fits.parse().ok());
        }
        DeskError::Refused { refusal, fits }
    }
}

/// What is not paid yet of a charge: nothing where the question is answered, or a reservation for it is open.
pub fn unpaid(ledger: &mut dyn Register, charge: Charge, question: &Question) -> Result<Charge, LedgerError> {
    let paid = ledger.stored(question)?.is_some() || ledger.open_reservation(question)?.is_some();
    Ok(if paid { Charge::new() } else { charge })
}

fn served<T>(
    stored: Stored,
    reproducible: bool,
    decode: impl Fn(&[u8]) -> Result<T, String>,
) -> Result<Served<T>, DeskError> {
    let Stored { number: entry, charge, value, .. } = stored;
    let value = decode(&value).map_err(|why| DeskError::Unreadable { entry, why })?;
    Ok(Served { value, charge, entry, stored: true, reproducible })
}

/// The least ε that makes sense.
const LEAST_EPSILON: f64 = *QueryDefaults::EPSILON.start();

/// The largest ε below the one that was refused with which the same would fit now, as it is written: that very text was tried.
pub fn largest(refused: f64, mut fits: impl FnMut(f64) -> bool) -> Option<String> {
    // Below this an answer helps nobody: see `QueryDefaults`.
    let (mut low, mut high) = ((refused * 1e-4).max(LEAST_EPSILON), refused);
    if low >= high || !fits(low) {
        return None;
    }
    while high / low > 1.000_1 {
        let middle = (low * high).sqrt();
        if fits(middle) { low = middle } else { high = middle }
    }
    // What is rounded down fits if more did, and that is looked at all the same.
    [0.0, 0.001, 0.002, 0.01]
        .into_iter()
        .map(|less| terse_down(low * (1.0 - less)))
        .find(|written| written.parse().is_ok_and(|epsilon| epsilon >= LEAST_EPSILON && fits(epsilon)))
}

#[cfg(test)]
mod tests;
