//! Seal, reserve, open: the order of things, as types.
//!
//! A mechanism returns a [`Sealed`] value, which nobody can read. [`release`] reserves its charge in a [`Ledger`], and only then has
//! the private value read; it lets the mechanism draw its noise, commits the value, and opens the seal.

mod accuracy;
mod ledger;
mod read;
mod refusal;
mod sanitise;
mod seal;

pub use crate::persist::Persist;
pub use accuracy::Accuracy;
pub use ledger::{Charge, CommitError, Ledger, LedgerFailure, Note, Progress, Reservation};
pub use read::ReadError;
pub use refusal::{Refusal, ShortOf, Shortfall};
pub use sanitise::{Mechanism, SanitiseError};
pub use seal::Sealed;

use crate::unit::Rung;
use std::borrow::Borrow;
use whit_noise::{Entropy, Replay, Secret};

/// Why nothing was released.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum ReleaseError {
    /// A budget said no, and nothing was charged.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// No rung was named, so nobody would have paid. Nothing was charged.
    #[error("a release names no rung, so it would protect nobody; pass the ladder's rungs, the protected one first")]
    NoRung,
    /// The private value could not be read after its charge was reserved; even that tells something, so the reservation stays spent.
    #[error("{0} (its charge was reserved before and stays spent)")]
    Read(#[from] ReadError),
    /// The mechanism failed after its charge was reserved; the reservation stays spent until the owner voids it.
    #[error("{0} (its charge was reserved before and stays spent)")]
    Sanitise(#[from] SanitiseError),
    /// The ledger could not be read or written, so nothing was drawn.
    #[error("{0} (nothing was drawn)")]
    Ledger(LedgerFailure),
    /// The value was drawn and could not be written down, so it stays sealed for good; the reservation stays spent.
    #[error("{0} (the value was not opened; its charge was reserved before and stays spent)")]
    Commit(CommitError),
}

impl ReleaseError {
    /// Whether it is nothing but that whoever asked stopped it.
    pub fn is_interruption(&self) -> bool {
        match self {
            Self::Read(error) | Self::Sanitise(SanitiseError::Read(error)) => error.interrupted,
            Self::Refused(_) | Self::NoRung | Self::Sanitise(_) | Self::Ledger(_) | Self::Commit(_) => false,
        }
    }

    /// What to do about it, where somebody knows.
    pub fn hint(&self) -> Option<&str> {
        match self {
            Self::Ledger(failure) | Self::Commit(failure) => failure.hint.as_deref(),
            Self::Refused(_) | Self::NoRung | Self::Read(_) | Self::Sanitise(_) => None,
        }
    }
}

/// The confidence for which a release states its accuracy.
pub const CONFIDENCE: f64 = 0.95;

/// A value that left, with what it cost and how far off it may be.
#[derive(Debug, Clone, PartialEq)]
pub struct Release<T> {
    /// What was released.
    pub value: T,
    /// What it cost, rung by rung.
    pub charge: Charge,
    /// The number of its reservation: its entry in the ledger.
    pub entry: u64,
    /// How far the value may be from the truth, in lattice steps or scores.
    pub accuracy: Accuracy,
    /// Whether the noise can be drawn again from a seed. If so, there is no privacy: whoever knows the seed knows the truth.
    pub reproducible: bool,
}

/// Reserves, reads, sanitises, commits, opens: in that order, here and nowhere else.
///
/// `read` is the way to the private value. It is called once, after the reservation, which it is shown, is durable; so a question that is
/// refused has read nothing. It gives the value, or a reference to it, or, where noise is drawn between one reading and the next, a reader that
/// it opens for this reservation.
///
/// When it fails, or the mechanism does, the reservation stays spent: noise may have been drawn, and to fail shows something too. When the commit fails, the value is
/// dropped unread, since asking again would draw another: the average of many shows more than one.
///
/// ```
/// use whit_core::mechanism::laplace::Laplace;
/// use whit_core::{Bound, Change, Charge, Ledger, Rung, Support, Unit, release};
/// use whit_core::release::{CommitError, Refusal, Reservation};
///
/// #[derive(Default)]
/// struct Endless { charges: Vec<Charge> }
/// impl Ledger for Endless {
///     fn reserve(&mut self, charge: &Charge) -> Result<Reservation, Refusal> {
///         self.charges.push(charge.clone());
///         Ok(Reservation::new(self.charges.len() as u64))
///     }
///     fn commit(&mut self, _: Reservation, _: &[u8]) -> Result<(), CommitError> { Ok(()) }
/// }
///
/// let one_row = Bound::Coordinates { groups: 1, low: 0, high: 1, support: Support::NonNegative };
/// let count = Laplace::for_epsilon(one_row, Change::AddRemove, "0.1".parse()?)?;
/// let rungs = [Rung { unit: Unit::user("id", Change::AddRemove), holds: 1, disjoint: false, slices: None }];
/// let released = release(&count, |_| Ok(1_234), &rungs, &mut Endless::default(), &mut whit_noise::Os)?;
/// assert_eq!(released.accuracy.to_string(), "± 30 at 95 %");
/// assert!(!released.reproducible);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// A seed is no secret, so it does not compile:
///
/// ```compile_fail,E0277
/// # use whit_core::{Bound, Ledger, Rung, mechanism::laplace::Laplace};
/// fn seeded(count: &Laplace, rungs: &[Rung], ledger: &mut dyn Ledger) {
///     let _ = whit_core::release(count, |_| Ok(1_234), rungs, ledger, &mut whit_noise::Replay::new(7));
/// }
/// ```
pub fn release<M: Mechanism, E: Borrow<M::Exact>>(
    mechanism: &M,
    read: impl FnOnce(&Reservation) -> Result<E, ReadError>,
    rungs: &[Rung],
    ledger: &mut dyn Ledger,
    entropy: &mut dyn Secret,
) -> Result<Release<M::Noisy>, ReleaseError>
where
    M::Noisy: Persist,
{
    in_order(mechanism, read, rungs, ledger, entropy, false)
}

/// The same with noise that comes again with its seed, so that a test or a demonstration prints the same twice.
///
/// It charges the ledger as [`release`] does, and protects nobody: whoever knows the seed can subtract the noise.
/// The release says so.
pub fn release_reproducibly_without_privacy<M: Mechanism, E: Borrow<M::Exact>>(
    mechanism: &M,
    read: impl FnOnce(&Reservation) -> Result<E, ReadError>,
    rungs: &[Rung],
    ledger: &mut dyn Ledger,
    entropy: &mut Replay,
) -> Result<Release<M::Noisy>, ReleaseError>
where
    M::Noisy: Persist,
{
    in_order(mechanism, read, rungs, ledger, entropy, true)
}

fn in_order<M: Mechanism, E: Borrow<M::Exact>>(
    mechanism: &M,
    read: impl FnOnce(&Reservation) -> Result<E, ReadError>,
    rungs: &[Rung],
    ledger: &mut dyn Ledger,
    entropy: &mut dyn Entropy,
    reproducible: bool,
) -> Result<Release<M::Noisy>, ReleaseError>
where
    M::Noisy: Persist,
{
    if rungs.is_empty() {
        return Err(ReleaseError::NoRung);
    }
    let charge = charge_of(mechanism, rungs);
    let reservation = match ledger.reserve(&charge) {
        Ok(reservation) => reservation, // a crash from here on leaves it spent
        Err(refusal) => return Err(ledger.failure().map_or(ReleaseError::Refused(refusal), ReleaseError::Ledger)),
    };
    let entry = reservation.number();
    let exact = read(&reservation)?;
    let mut note = |progress: &Progress| ledger.progress(&reservation, progress);
    let Sealed(value) = mechanism.sanitise_in_steps(exact.borrow(), entropy, &mut note)?;
    ledger.commit(reservation, &value.to_bytes()).map_err(ReleaseError::Commit)?;
    Ok(Release { value, charge, entry, accuracy: mechanism.accuracy(CONFIDENCE), reproducible })
}

/// What one run of a mechanism costs, rung by rung: what a release of it is charged.
pub fn charge_of(mechanism: &(impl Mechanism + ?Sized), rungs: &[Rung]) -> Charge {
    rungs.iter().map(|rung| (rung.clone(), mechanism.cost(rung))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cost::Cost;
    use crate::loss::Epsilon;
    use crate::unit::{Change, Unit};
    use std::cell::RefCell;

    /// Writes down what happens to it, in the order in which it happens.
    struct Recorder<'a> {
        events: &'a RefCell<Vec<String>>,
        mood: Mood,
    }

    #[derive(Clone, Copy, PartialEq)]
    enum Mood {
        Willing,
        SaysNo,
        CannotRead,
        CannotCommit,
    }

    fn full_disk() -> LedgerFailure {
        LedgerFailure { sentence: "the disk is full".into(), hint: Some("make room".into()) }
    }

    impl Ledger for Recorder<'_> {
        fn reserve(&mut self, charge: &Charge) -> Result<Reservation, Refusal> {
            if matches!(self.mood, Mood::SaysNo | Mood::CannotRead) {
                let (asked, left) = ("ε = 1", "ε = 0.5");
                return Err(Refusal::new(asked, left, "user"));
            }
            self.events.borrow_mut().push(format!("reserve {}", charge.len()));
            Ok(Reservation::new(5))
        }

        fn commit(&mut self, reservation: Reservation, value: &[u8]) -> Result<(), CommitError> {
            self.events.borrow_mut().push(format!("commit {} {}", reservation.number(), value[0]));
            if self.mood == Mood::CannotCommit { Err(full_disk()) } else { Ok(()) }
        }

        fn failure(&self) -> Option<LedgerFailure> {
            (self.mood == Mood::CannotRead).then(full_disk)
        }
    }

    struct Watched<'a> {
        events: &'a RefCell<Vec<String>>,
        fails: bool,
    }

    impl Mechanism for Watched<'_> {
        type Exact = i64;
        type Noisy = i64;

        fn cost(&self, _: &Rung) -> Cost {
            Cost::Pure { epsilon: Epsilon::ZERO }
        }

        fn sanitise(&self, exact: &i64, entropy: &mut dyn Entropy) -> Result<Sealed<i64>, SanitiseError> {
            self.events.borrow_mut().push(format!("draw {}", entropy.bits(1) < 2));
            if self.fails { Err(SanitiseError::Overflow) } else { Ok(Sealed::new(exact + 1)) }
        }

        fn accuracy(&self, confidence: f64) -> Accuracy {
            Accuracy { within: 1.0, confidence }
        }
    }

    fn rungs() -> Vec<Rung> {
        vec![
            Rung { unit: Unit::event(Change::Replace), holds: 1, disjoint: false, slices: None },
            Rung { unit: Unit::user("id", Change::Replace), holds: 9, disjoint: false, slices: None },
        ]
    }

    fn run(fails: bool, mood: Mood, rungs: &[Rung]) -> (Result<Release<i64>, ReleaseError>, Vec<String>) {
        let events = RefCell::new(Vec::new());
        let (mechanism, mut ledger) = (Watched { events: &events, fails }, Recorder { events: &events, mood });
        let read = |reservation: &Reservation| {
            events.borrow_mut().push(format!("read for {}", reservation.number()));
            Ok(41)
        };
        let result = release(&mechanism, read, rungs, &mut ledger, &mut whit_noise::Os);
        (result, events.into_inner())
    }

    #[test]
    fn a_value_that_cannot_be_read_leaves_its_reservation_spent() {
        let events = RefCell::new(Vec::new());
        let mechanism = Watched { events: &events, fails: false };
        let mut ledger = Recorder { events: &events, mood: Mood::Willing };
        let read = |_: &Reservation| Err::<i64, _>(ReadError::failed("the disk is gone"));
        let error = release(&mechanism, read, &rungs(), &mut ledger, &mut whit_noise::Os).unwrap_err();
        assert_eq!(error.to_string(), "the disk is gone (its charge was reserved before and stays spent)");
        assert_eq!(*events.borrow(), ["reserve 2"], "no noise, no commit, and no way to take the reservation back");
    }

    #[test]
    fn rows_are_read_after_the_reservation_noise_comes_after_that_and_commit_last() {
        let (result, events) = run(false, Mood::Willing, &rungs());
        let released = result.unwrap();
        assert_eq!((released.value, released.charge.len(), released.reproducible), (42, 2, false));
        assert_eq!(released.entry, 5);
        assert_eq!(events, ["reserve 2", "read for 5", "draw true", "commit 5 42"]);
    }

    /// Work in three steps, of which each is noted.
    struct Long;

    impl Mechanism for Long {
        type Exact = i64;
        type Noisy = i64;

        fn cost(&self, _: &Rung) -> Cost {
            Cost::Nothing
        }

        fn sanitise(&self, _: &i64, _: &mut dyn Entropy) -> Result<Sealed<i64>, SanitiseError> {
            Err(SanitiseError::Unfit("a release goes step by step"))
        }

        fn sanitise_in_steps(
            &self,
            exact: &i64,
            _: &mut dyn Entropy,
            note: &mut Note<'_>,
        ) -> Result<Sealed<i64>, SanitiseError> {
            for step in 1..=3 {
                let progress = Progress { step, checkpoint: format!("after {step}") };
                note(&progress)?;
            }
            Ok(Sealed::new(*exact))
        }

        fn accuracy(&self, confidence: f64) -> Accuracy {
            Accuracy { within: 0.0, confidence }
        }
    }

    #[test]
    fn long_work_has_the_ledger_note_how_far_it_has_come_and_ends_where_it_cannot() {
        struct Notes(Vec<String>, usize);
        impl Ledger for Notes {
            fn reserve(&mut self, _: &Charge) -> Result<Reservation, Refusal> {
                Ok(Reservation::new(9))
            }
            fn commit(&mut self, _: Reservation, _: &[u8]) -> Result<(), CommitError> {
                self.0.push("commit".into());
                Ok(())
            }
            fn progress(&mut self, reservation: &Reservation, progress: &Progress) -> Result<(), LedgerFailure> {
                if self.0.len() == self.1 {
                    return Err(full_disk());
                }
                self.0.push(format!("{} {} {}", reservation.number(), progress.step, progress.checkpoint));
                Ok(())
            }
        }
        let mut ledger = Notes(Vec::new(), 9);
        assert_eq!(release(&Long, |_| Ok(42), &rungs(), &mut ledger, &mut whit_noise::Os).unwrap().value, 42);
        assert_eq!(ledger.0, ["9 1 after 1", "9 2 after 2", "9 3 after 3", "commit"]);
        let mut full = Notes(Vec::new(), 2);
        let error = release(&Long, |_| Ok(42), &rungs(), &mut full, &mut whit_noise::Os).unwrap_err();
        assert!(error.to_string().starts_with("the disk is full"), "{error}");
        assert_eq!(full.0.len(), 2, "nothing is committed");
    }

    #[test]
    fn a_refusal_draws_no_noise_and_charges_nothing() {
        let (result, events) = run(false, Mood::SaysNo, &rungs());
        assert_eq!(
            result.unwrap_err().to_string(),
            "this release needs ε = 1 per user, and ε = 0.5 of the budget is left"
        );
        assert!(events.is_empty());
    }

    #[test]
    fn a_mechanism_that_fails_leaves_its_reservation_spent() {
        let (result, events) = run(true, Mood::Willing, &rungs());
        assert!(matches!(result, Err(ReleaseError::Sanitise(SanitiseError::Overflow))));
        assert_eq!(
            events,
            ["reserve 2", "read for 5", "draw true"],
            "no commit, and no way to take the reservation back"
        );
    }

    #[test]
    fn a_value_that_cannot_be_written_down_is_not_opened() {
        let (result, events) = run(false, Mood::CannotCommit, &rungs());
        let error = result.unwrap_err();
        assert_eq!(error, ReleaseError::Commit(full_disk()));
        assert!(error.to_string().contains("was not opened") && error.hint() == Some("make room"), "{error}");
        assert_eq!(events, ["reserve 2", "read for 5", "draw true", "commit 5 42"]);
    }

    #[test]
    fn a_ledger_that_cannot_be_read_is_no_refusal() {
        let (result, events) = run(false, Mood::CannotRead, &rungs());
        assert_eq!(result.unwrap_err(), ReleaseError::Ledger(full_disk()));
        assert!(events.is_empty(), "nothing was drawn");
    }

    #[test]
    fn without_a_rung_nobody_would_pay_so_nothing_leaves() {
        let (result, events) = run(false, Mood::Willing, &[]);
        assert_eq!(result, Err(ReleaseError::NoRung));
        assert!(events.is_empty());
    }

    #[test]
    fn a_release_from_a_seed_says_that_it_is_one() {
        let events = RefCell::new(Vec::new());
        let mechanism = Watched { events: &events, fails: false };
        let mut ledger = Recorder { events: &events, mood: Mood::Willing };
        let mut seed = Replay::new(1);
        let released = release_reproducibly_without_privacy(&mechanism, |_| Ok(1), &rungs(), &mut ledger, &mut seed);
        assert!(released.unwrap().reproducible);
        assert_eq!(events.borrow().len(), 3, "it is charged like any other");
    }
}
