//! The ledger, and what its tests share: a fresh folder, a question, a budget, a charge.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on should say where")]

mod books;
mod concurrent;
mod copies;
mod crash;
mod integrity;
mod report;
mod room;
mod slices;
mod verify;

use std::path::PathBuf;
use whit_account::ledger::{Books, Budget, Question};
use whit_core::release::{Refusal, Reservation};
use whit_core::{Change, Charge, Cost, Epsilon, Ledger, Rung, Unit};

/// An empty folder of this name, on a disk rather than in memory, so that synchronising costs what it costs.
pub(crate) fn folder(name: &str) -> PathBuf {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = std::fs::remove_dir_all(&folder); // it may not be there
    std::fs::create_dir_all(&folder).unwrap();
    folder
}

pub(crate) fn user() -> Unit {
    Unit::user("id", Change::Replace)
}

pub(crate) fn question(meaning: &str) -> Question {
    Question {
        dataset: "visits".to_owned(),
        analyst: "alice".to_owned(),
        meaning: meaning.to_owned(),
        text: format!("SELECT {meaning}"),
        fingerprint: "blake3:1".to_owned(),
        partition: None,
    }
}

/// A pure ε for a user.
pub(crate) fn charge(epsilon: f64) -> Charge {
    let cost = Cost::Pure { epsilon: Epsilon::new(epsilon).unwrap() };
    vec![(Rung { unit: user(), holds: 1, disjoint: false, slices: None }, cost)]
}

/// ε for a user, as a plain sum.
pub(crate) fn budgets(epsilon: f64) -> [Budget; 1] {
    [Budget::new("visits", user(), epsilon, 0.0)]
}

/// Reserves a pure ε of a budget of 1.
pub(crate) fn reserve(books: &mut Books, meaning: &str, epsilon: f64) -> Result<Reservation, Refusal> {
    books.booking(question(meaning), &budgets(1.0)).reserve(&charge(epsilon))
}
