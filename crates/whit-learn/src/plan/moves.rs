//! What a cut to caps makes of a change.

use whit_core::{Change, Kind, Ladder, Rung};

/// How many protected units of a rung move at once, each of them how, after a cut: `held` of them, as the rung says, save that a row which is a unit of its own
/// may make room for another of its user, or push one out: see [`Cut`](crate::source::Cut). Without coarser rungs nothing is cut.
pub(crate) fn moves(ladder: &Ladder, rung: &Rung, held: u64) -> (Change, u64) {
    let change = rung.unit.change();
    if rung.unit.kind() != Kind::Event || ladder.rungs().len() == 1 {
        return (change, held);
    }
    match change {
        Change::AddRemove => (Change::Replace, held),
        Change::Replace => (Change::Replace, held.saturating_add(1)),
    }
}
