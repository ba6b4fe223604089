//! A ledger in memory: a filter for each unit that has a budget, and the list of what was charged.
//!
//! It lasts as long as the process does, so it is for tests, demonstrations and programs that keep their own books.

use super::budget::{Budget, Fit};
use super::chain::{ChainFault, Event, EventKind, Head, New};
use super::entry::{Decision, EntriesSeen, Entry, write_progress};
use super::error::{Denied, LedgerError};
use super::export::{ExportError, write_events};
use super::question::{About, Question, Stored, advances, everything, follows, reserved_values};
use super::refusal;
use super::register::{Register, Terms};
use super::report::{Which, accounts, in_force};
use super::verify::Verified;
use super::watch::Watches;
use crate::filter::Filter;
use rusqlite::types::Value;
use std::collections::BTreeMap;
use std::io::Write;
use whit_core::release::{CommitError, LedgerFailure, Reservation};
use whit_core::{Charge, Ledger, Progress, Refusal, Unit};

/// A ledger that forgets everything when the process ends.
///
/// A charge is all or nothing: if the budget of one rung says no, no rung is charged. Rungs without a budget are written down and
/// not limited; a charge of which no rung has a budget is refused, because nobody would ever say no to it.
///
/// As a [`Register`] it does what [`Books`](super::Books) do, with the budgets that come with each question, and is charged for those of each data set apart from
/// what was released without a question. It reads no clock, so that all its times are 0.
///
/// ```
/// use whit_account::filter::{Currency, Filter};
/// use whit_account::ledger::Memory;
/// use whit_core::mechanism::laplace::Laplace;
/// use whit_core::{Bound, Change, Rung, Support, Unit, release};
///
/// let user = Unit::user("id", Change::AddRemove);
/// let mut ledger = Memory::new().with_budget(user.clone(), Filter::new(0.25, 0.0, Currency::Sum)?);
///
/// let rows = Bound::Coordinates { groups: 1, low: 0, high: 1, support: Support::NonNegative };
/// let count = Laplace::for_epsilon(rows, Change::AddRemove, "0.1".parse()?)?;
/// let rungs = [Rung { unit: user, holds: 1, disjoint: false, slices: None }];
/// for _ in 0..2 {
///     release(&count, |_| Ok(1_234), &rungs, &mut ledger, &mut whit_noise::Os)?;
/// }
/// let refused = release(&count, |_| Ok(1_234), &rungs, &mut ledger, &mut whit_noise::Os).unwrap_err();
/// assert!(refused.to_string().starts_with("this release needs ε = 0.1"), "{refused}");
/// assert_eq!(ledger.entries().len(), 2);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, Default)]
pub struct Memory {
    budgets: BTreeMap<Unit, Filter>,
    seen: EntriesSeen,
    events: Vec<Event>,
    watches: Watches,
    sources: BTreeMap<String, String>,
    files: BTreeMap<String, (u64, i64, String)>,
    failure: Option<LedgerFailure>,
}

impl Memory {
    /// A ledger without budgets, which refuses everything.
    pub fn new() -> Self {
        Self::default()
    }

    /// The same with a budget for a unit, in place of one that it may have had.
    #[must_use]
    pub fn with_budget(mut self, unit: Unit, budget: Filter) -> Self {
        self.budgets.insert(unit, budget);
        self
    }

    /// The filter that watches over a unit.
    pub fn budget(&self, unit: &Unit) -> Option<&Filter> {
        self.budgets.get(unit)
    }

    /// Everything that was charged, in order.
    pub fn entries(&self) -> &[Entry] {
        &self.seen.entries
    }

    /// Charges each rung in turn; on a "no" says which.
    fn charge_all(&mut self, charge: &Charge) -> Result<(), Refusal> {
        for (rung, cost) in charge {
            let Some(filter) = self.budgets.get_mut(&rung.unit) else { continue };
            filter.charge(cost).map_err(|refused| refusal(refused, (&rung.unit, None, None), filter, cost))?;
        }
        Ok(())
    }

    /// Takes in one event.
    fn append(&mut self, kind: EventKind, entry: u64, values: Vec<Value>) -> Result<(), LedgerError> {
        let (head, _) = New { kind, entry: entry as i64, time: 0, values: &values }.after(self.seen.head);
        let event = Event { head, kind, entry, time: 0, values };
        self.seen.take(event.clone())?;
        self.events.push(event);
        Ok(())
    }

    fn reserve_entry(&mut self, question: &Question, charge: &Charge, budgets: &[&Budget]) -> Result<u64, LedgerError> {
        let number = self.seen.entries.len() as u64 + 1;
        let values = reserved_values(question, question.fingerprint.clone(), charge, budgets)?;
        self.append(EventKind::Reserve, number, values.to_vec())?;
        Ok(number)
    }

    fn about<T>(&self, question: &Question, look: impl FnOnce(&About<'_>, &[Entry]) -> Option<T>) -> Option<T> {
        let fingerprints = [question.fingerprint.clone(), question.fingerprint.clone()];
        look(&About::new(question, &fingerprints), &self.seen.entries).filter(|_| question.names_data())
    }

    /// Has another ledger remember what this one does of files and data sets. A data set that is another there stays so: its owner is to hear of it.
    pub(super) fn hand_over(&self, other: &mut dyn Register) -> Result<(), LedgerError> {
        for (path, (size, modified, hash)) in &self.files {
            other.remember_file(path, *size, *modified, hash)?;
        }
        for (dataset, fingerprint) in &self.sources {
            if !other.source_changed(dataset, fingerprint)? {
                other.note_source(dataset, fingerprint)?;
            }
        }
        Ok(())
    }

    /// All events again, from the start.
    fn replay(&self) -> Result<EntriesSeen, ChainFault> {
        let mut seen = EntriesSeen::default();
        for event in &self.events {
            seen.take(event.clone())?;
        }
        Ok(seen)
    }
}

impl Ledger for Memory {
    fn reserve(&mut self, charge: &Charge) -> Result<Reservation, Refusal> {
        let unit = || charge.first().map_or_else(|| "unit".to_owned(), |(rung, _)| rung.unit.to_string());
        let none = |asked: &str| Refusal::new(asked, "none", unit());
        self.failure = None;
        if !charge.iter().any(|(rung, _)| self.budgets.contains_key(&rung.unit)) {
            return Err(none("a budget"));
        }
        let marks: Vec<_> = self.budgets.values().map(Filter::mark).collect();
        let reserved = self.charge_all(charge).and_then(|()| {
            self.reserve_entry(&Question::default(), charge, &[]).map_err(|error| {
                self.failure = Some(error.into());
                none("a ledger")
            })
        });
        if reserved.is_err() {
            self.budgets.values_mut().zip(marks).for_each(|(filter, mark)| filter.restore(mark));
        }
        reserved.map(Reservation::new)
    }

    fn commit(&mut self, reservation: Reservation, value: &[u8]) -> Result<(), CommitError> {
        let at = self.seen.numbered(reservation.number())?.progress.clone();
        Ok(self.commit_entry(reservation.number(), at.as_ref(), value)?)
    }

    fn progress(&mut self, reservation: &Reservation, progress: &Progress) -> Result<(), LedgerFailure> {
        let after = self.seen.numbered(reservation.number())?.progress.clone();
        Ok(self.note_progress(reservation.number(), after.as_ref(), progress)?)
    }

    fn failure(&self) -> Option<LedgerFailure> {
        self.failure.clone()
    }
}

impl Register for Memory {
    fn stored(&self, question: &Question) -> Result<Option<Stored>, LedgerError> {
        let found =
            self.about(question, |about, entries| about.answer(entries).map(|(entry, time)| (entry.clone(), time)));
        Ok(found.map(|(entry, time)| {
            let event = self.seen.commits.get(&entry.number).and_then(|event| self.events.get(*event as usize - 1));
            let value = event.and_then(|event| event.values.first());
            let value = if let Some(Value::Blob(value)) = value { value.clone() } else { Vec::new() };
            Stored { number: entry.number, time, analyst: entry.analyst, charge: (*entry.charge).clone(), value }
        }))
    }

    fn open_reservation(&mut self, question: &Question) -> Result<Option<Entry>, LedgerError> {
        Ok(self.about(question, |about, entries| about.open(entries).cloned()))
    }

    fn interrupted_reservation(&mut self, question: &Question) -> Result<Option<Entry>, LedgerError> {
        Ok(self.about(question, |about, entries| about.interrupted(entries).cloned()))
    }

    fn would_fit(&mut self, question: &Question, budgets: &[Budget], charge: &Charge) -> Result<(), Denied> {
        let (budgets, entries) = (question.budgets_of(budgets), (&self.seen.entries[..], self.seen.voids));
        self.watches.judge(&question.dataset, &budgets, entries, charge)
    }

    fn fits(&mut self, asked: (&str, &str), budgets: &[Budget], charge: &Charge) -> Result<Vec<Fit>, LedgerError> {
        self.watches.fits(asked, budgets, (&self.seen.entries, self.seen.voids), charge)
    }

    fn reserve_for(&mut self, question: &Question, charge: &Charge, terms: Terms<'_>) -> Result<u64, Denied> {
        let answered = self.about(question, |about, entries| about.answer(entries).map(|(entry, _)| entry.number));
        if let Some(entry) = answered.filter(|_| !terms.again) {
            return Err(Denied::Answered { entry });
        }
        if terms.gives_up {
            return Ok(self.reserve_entry(question, &everything(charge), &[])?);
        }
        self.would_fit(question, terms.budgets, charge)?;
        Ok(self.reserve_entry(question, charge, &question.budgets_of(terms.budgets))?)
    }

    fn check_open(&mut self, number: u64, charge: &Charge, at: Option<&Progress>) -> Result<(), LedgerError> {
        let entry = self.seen.open_entry(number)?;
        if *entry.charge == *charge { follows(entry, at) } else { Err(LedgerError::OtherCharge { number }) }
    }

    fn note_progress(&mut self, number: u64, after: Option<&Progress>, next: &Progress) -> Result<(), LedgerError> {
        advances(self.seen.open_entry(number)?, after, next)?;
        self.append(EventKind::Progress, number, vec![Value::Text(write_progress(next))])
    }

    fn progress_of(&mut self, number: u64) -> Result<Option<Progress>, LedgerError> {
        Ok(self.seen.numbered(number)?.progress.clone())
    }

    fn commit_entry(&mut self, number: u64, at: Option<&Progress>, value: &[u8]) -> Result<(), LedgerError> {
        follows(self.seen.open_entry(number)?, at)?;
        self.append(EventKind::Commit, number, vec![Value::Blob(value.to_vec())])
    }

    fn void(&mut self, number: u64, reason: &str) -> Result<(), LedgerError> {
        if reason.trim().is_empty() {
            return Err(LedgerError::NoReason);
        }
        self.seen.open_entry(number)?;
        self.append(EventKind::Void, number, vec![Value::Text(reason.trim().to_owned())])
    }

    fn entries(&self, which: &Which) -> Result<Vec<Entry>, LedgerError> {
        Ok(self.seen.entries.iter().filter(|entry| which.takes(entry)).cloned().collect())
    }

    fn decisions(&self) -> Result<Vec<Decision>, LedgerError> {
        Ok(self.seen.decisions.clone())
    }

    fn head(&self) -> Result<Head, LedgerError> {
        Ok(self.seen.head)
    }

    fn verify(&self) -> Result<Verified, ChainFault> {
        self.verify_after(&Head::start())
    }

    fn verify_after(&self, kept: &Head) -> Result<Verified, ChainFault> {
        let seen = self.replay()?;
        let through = *kept == Head::start() || self.events.iter().any(|event| event.head == *kept);
        if !through {
            return Err(ChainFault::file(format!("does not lead through the head that was kept, {kept}")));
        }
        let accounts = accounts(&seen.entries, &in_force(&seen.entries));
        let accounts = accounts.map_err(|error| ChainFault::file(format!("cannot be added up: {error}")))?;
        Ok(Verified { events: seen.head.events, entries: seen.entries.len() as u64, head: seen.head, accounts })
    }

    fn export(&self, out: &mut dyn Write) -> Result<(), ExportError> {
        write_events(&self.events, out)
    }

    fn note_source(&mut self, dataset: &str, fingerprint: &str) -> Result<bool, LedgerError> {
        let last = self.sources.insert(dataset.to_owned(), fingerprint.to_owned());
        Ok(last.is_some_and(|last| last != fingerprint))
    }

    fn source_changed(&self, dataset: &str, fingerprint: &str) -> Result<bool, LedgerError> {
        Ok(self.sources.get(dataset).is_some_and(|last| last != fingerprint))
    }

    fn remember_file(&mut self, path: &str, size: u64, modified: i64, hash: &str) -> Result<(), LedgerError> {
        self.files.insert(path.to_owned(), (size, modified, hash.to_owned()));
        Ok(())
    }

    fn recall_file(&self, path: &str, size: u64, modified: i64) -> Result<Option<String>, LedgerError> {
        let known = self.files.get(path).filter(|known| (known.0, known.1) == (size, modified));
        Ok(known.map(|known| known.2.clone()))
    }
}

#[cfg(test)]
mod tests {
    use super::super::entry::State;
    use super::*;
    use crate::filter::Currency;
    use whit_core::{Change, Cost, Epsilon, Rung};

    fn pure(epsilon: f64) -> Cost {
        Cost::Pure { epsilon: Epsilon::new(epsilon).unwrap() }
    }

    fn rungs() -> [Rung; 2] {
        [
            Rung { unit: Unit::element("user", "domain"), holds: 1, disjoint: false, slices: None },
            Rung { unit: Unit::user("user", Change::Replace), holds: 10, disjoint: false, slices: None },
        ]
    }

    fn ledger() -> Memory {
        let [element, user] = rungs();
        Memory::new()
            .with_budget(element.unit, Filter::new(1.0, 0.0, Currency::Sum).unwrap())
            .with_budget(user.unit, Filter::new(2.0, 1e-6, Currency::Concentrated).unwrap())
    }

    fn charge(element: f64, user: f64) -> Charge {
        let [first, second] = rungs();
        vec![(first, pure(element)), (second, pure(user))]
    }

    #[test]
    fn a_crash_leaves_the_reservation_spent() {
        let mut ledger = ledger();
        let dropped = ledger.reserve(&charge(0.6, 0.1)).unwrap();
        drop(dropped); // the process dies here
        assert_eq!(ledger.entries()[0].state, State::Reserved);
        assert!(ledger.reserve(&charge(0.6, 0.1)).is_err(), "0.6 of 1 is gone");
        let kept = ledger.reserve(&charge(0.3, 0.1)).unwrap();
        ledger.commit(kept, b"").unwrap();
        let committed = |place: usize| matches!(ledger.entries()[place].state, State::Committed { .. });
        assert!(committed(1) && !committed(0));
    }

    #[test]
    fn a_refused_reservation_charges_no_rung() {
        let mut ledger = ledger();
        let before: Vec<f64> = rungs().iter().map(|rung| ledger.budget(&rung.unit).unwrap().spent()).collect();
        // The element's budget would allow it, the user's does not.
        let refused = ledger.reserve(&charge(0.5, 7.0)).unwrap_err();
        assert_eq!(refused.unit, rungs()[1].unit.to_string());
        let after: Vec<f64> = rungs().iter().map(|rung| ledger.budget(&rung.unit).unwrap().spent()).collect();
        assert_eq!(before, after);
        assert!(ledger.entries().is_empty());
        let _ = ledger.reserve(&charge(0.5, 0.5)).unwrap();
    }

    #[test]
    fn one_unit_charged_twice_at_once_pays_twice() {
        let mut ledger = ledger();
        let [element, _] = rungs();
        let twice = vec![(element.clone(), pure(0.6)), (element.clone(), pure(0.6))];
        assert!(ledger.reserve(&twice).is_err());
        assert_eq!(ledger.budget(&element.unit).unwrap().spent(), 0.0);
    }

    #[test]
    fn what_no_budget_watches_over_is_refused() {
        let refused = Memory::new().reserve(&charge(0.1, 0.1)).unwrap_err();
        assert!(refused.to_string().contains("needs a budget"), "{refused}");
        assert!(ledger().reserve(&Vec::new()).is_err());
    }

    /// What `Books` do with a question, this does too.
    #[test]
    fn it_is_a_register_like_any_other() {
        let (mut ledger, [_, user]) = (Memory::new(), rungs());
        let budgets = [Budget::new("visits", user.unit.clone(), 1.0, 0.0)];
        let question = |meaning: &str| Question {
            dataset: "visits".to_owned(),
            analyst: "alice".to_owned(),
            meaning: meaning.to_owned(),
            text: "SELECT 1".to_owned(),
            fingerprint: "blake3:1".to_owned(),
            partition: None,
        };
        let each = vec![(user, pure(0.4))];
        let ledger: &mut dyn Register = &mut ledger;
        let terms = Terms { budgets: &budgets, gives_up: false, again: false };
        assert_eq!(ledger.stored(&question("a")).unwrap(), None);
        assert_eq!(ledger.reserve_for(&question("a"), &each, terms).unwrap(), 1);
        assert_eq!(ledger.open_reservation(&question("a")).unwrap().unwrap().number, 1);
        ledger.check_open(1, &each, None).unwrap();
        let next = Progress { step: 3, checkpoint: "c".to_owned() };
        ledger.note_progress(1, None, &next).unwrap();
        assert!(ledger.note_progress(1, None, &next).is_err() && ledger.commit_entry(1, None, b"7").is_err());
        ledger.commit_entry(1, Some(&next), b"7").unwrap();
        assert_eq!(ledger.stored(&question("a")).unwrap().unwrap().value, b"7");
        // What is answered is not charged again, unless that is meant.
        assert_eq!(ledger.reserve_for(&question("a"), &each, terms), Err(Denied::Answered { entry: 1 }));
        assert_eq!(ledger.reserve_for(&question("a"), &each, Terms { again: true, ..terms }), Ok(2));
        let refused = ledger.reserve_for(&question("b"), &each, terms).unwrap_err();
        assert!(matches!(&refused, Denied::Refused(no) if no.left == "ε = 0.2"), "{refused}");
        let head = ledger.head().unwrap();
        ledger.void(2, "nothing was drawn").unwrap();
        assert!(ledger.is_void(2).unwrap() && ledger.reserve_for(&question("b"), &each, terms) == Ok(3));
        assert!((ledger.spent(&budgets[0]).unwrap().spent - 0.8).abs() < 1e-9);
        assert_eq!(ledger.history(&budgets[0]).unwrap().len(), 4);
        assert_eq!(ledger.budgets().unwrap(), budgets);
        let verified = ledger.verify_after(&head).unwrap();
        assert_eq!((verified.entries, verified.events, verified.head), (3, 6, ledger.head().unwrap()));
        let mut lines = Vec::new();
        ledger.export(&mut lines).unwrap();
        assert_eq!(String::from_utf8(lines).unwrap().lines().count(), 7);
        assert!(!ledger.note_source("visits", "1").unwrap() && ledger.source_changed("visits", "2").unwrap());
        ledger.remember_file("a.csv", 7, 1, "hash").unwrap();
        assert_eq!(ledger.recall_file("a.csv", 7, 1).unwrap().as_deref(), Some("hash"));
        assert_eq!(ledger.recall_file("a.csv", 8, 1).unwrap(), None);
    }
}
