//! How many of the units that were drawn had gradients longer than the clip norm: what the owner sets the norm by, and nobody else sees.

use super::owner::Owner;
use serde::Serialize;
use whit_learn::bound::Seen;

/// The share of the units that were drawn whose gradients were longer than the clip norm. It was computed from rows without noise, so it stands in no card and no
/// ledger, and is as private as the rows.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Shortened {
    /// In all steps that were taken this time.
    pub all: f64,
    /// In the last tenth of the training's steps.
    pub last: f64,
}

/// Counts them, step by step.
#[derive(Debug)]
pub(crate) struct Shortening {
    /// After so many steps the last tenth begins.
    late: u64,
    all: ClippedShare,
    last: ClippedShare,
}

/// How many of how many.
#[derive(Debug, Clone, Copy, Default)]
struct ClippedShare {
    clipped: usize,
    drawn: usize,
}

impl ClippedShare {
    fn add(&mut self, seen: &Seen) {
        self.clipped += seen.clipped;
        self.drawn += seen.bags;
    }

    fn get(self) -> Option<f64> {
        (self.drawn > 0).then(|| self.clipped as f64 / self.drawn as f64)
    }
}

impl Shortening {
    /// Of a training of so many steps.
    pub(crate) fn new(steps: u64) -> Self {
        Self { late: steps - steps.div_ceil(10), all: ClippedShare::default(), last: ClippedShare::default() }
    }

    /// What the owner is told of one step.
    pub(crate) fn see(&mut self, _: Owner, taken: u64, seen: &Seen) -> Option<f64> {
        self.all.add(seen);
        if taken > self.late {
            self.last.add(seen);
        }
        ClippedShare { clipped: seen.clipped, drawn: seen.bags }.get()
    }

    /// What the owner is told of all of them; nothing where none was seen.
    pub(crate) fn found(&self) -> Option<Shortened> {
        Some(Shortened { all: self.all.get()?, last: self.last.get()? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_tenth_of_the_steps_is_counted_apart() {
        let owner = Owner::who_may_see_every_row();
        let mut counted = Shortening::new(20);
        assert_eq!(counted.found(), None);
        for step in 1..=20 {
            let seen = Seen { clipped: if step > 18 { 1 } else { 5 }, bags: 10, ..Seen::default() };
            assert_eq!(counted.see(owner, step, &seen), Some(seen.clipped as f64 / 10.0));
        }
        assert_eq!(counted.found(), Some(Shortened { all: 92.0 / 200.0, last: 0.1 }));
        assert_eq!(counted.see(owner, 20, &Seen::default()), None, "nobody was drawn");
    }
}
