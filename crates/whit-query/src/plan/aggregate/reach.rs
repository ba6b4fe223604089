//! How far one unit of each rung moves a measure: caps, bounds, and what follows from them.

use super::Draft;
use crate::error::QueryError;
use crate::plan::{Grain, Presence};
use whit_core::mechanism::keys::Moved;
use whit_core::unit::{Change, Kind};
use whit_core::{Bound, Rung, Sensitivity, Support};

impl Draft<'_> {
    pub(super) fn unit_word(&self) -> &'static str {
        match self.grain {
            Grain::Row => "row",
            Grain::Element => "element",
            Grain::User => "user",
        }
    }

    /// The most rows of one unit that there can be, by the way the question is built.
    pub(super) fn structural(&self) -> Option<u64> {
        match self.grain {
            Grain::Row => None,
            Grain::Element => [self.private.rows_of_element, self.private.rows_of_user].into_iter().flatten().min(),
            Grain::User => self.private.rows_of_user,
        }
    }

    pub(super) fn rows_declared(&self) -> Option<u64> {
        let caps = &self.unit.caps;
        match self.grain {
            Grain::Row => self.private.copies,
            Grain::Element => caps.rows_per_element,
            Grain::User => {
                let product = caps.elements_per_user.zip(caps.rows_per_element).and_then(|(k, r)| k.checked_mul(r));
                [caps.rows_per_user, product].into_iter().flatten().min()
            }
        }
    }

    /// How many rows of one unit in one group count.
    pub(super) fn rows(&self) -> Result<u64, QueryError> {
        if self.grain == Grain::Row {
            return self.private.copies.ok_or_else(|| QueryError::failed("a row without a source"));
        }
        let said = self.asking.rows.or(self.unit.caps.rows_per_group).or_else(|| self.rows_declared());
        let rows = [said, self.structural()].into_iter().flatten().min();
        rows.ok_or_else(|| {
            QueryError::asked(
                format!("nothing says how many rows of one {} count in one group", self.unit_word()),
                "say it with --rows N, or declare unit.caps = { rows_per_group = N }",
            )
        })
    }

    /// How far one unit of each rung moves a vector to which a unit of the grain adds as the bound says.
    fn moved(&self, bound: Bound) -> Vec<Sensitivity> {
        let worst = |bound: &Bound| {
            let (one, alone) = (bound.sensitivity(Change::Replace), bound.sensitivity(Change::AddRemove));
            Sensitivity { l1: one.l1.max(alone.l1), l2: one.l2.max(alone.l2) }
        };
        let rungs = self.ladder.rungs();
        match (self.unit.protect, self.grain) {
            // A row that goes may let in another of the same user, so each change is a replacement.
            // A row that becomes another user's lets one in there and pushes one out here: two replacements.
            (Kind::Event, Grain::Row) if self.truncated => rungs
                .iter()
                .zip(self.ladder.held())
                .map(|(rung, &held)| {
                    let twice = u64::from(rung.unit.kind() == Kind::Event && rung.unit.change() == Change::Replace);
                    worst(&bound).at(&Rung { holds: held.saturating_mul(1 + twice), disjoint: false, ..rung.clone() })
                })
                .collect(),
            // What changes one event or element changes one user's rows, and so takes one user's place by another.
            (Kind::Event | Kind::Element, Grain::User) => rungs
                .iter()
                .map(|rung| match (rung.unit.kind(), rung.unit.change()) {
                    (Kind::User, Change::AddRemove) => bound.sensitivity(Change::AddRemove),
                    // A row that becomes another user's changes what two users have.
                    (Kind::Event, Change::Replace) => {
                        worst(&bound).at(&Rung { holds: 2, disjoint: false, ..rung.clone() })
                    }
                    _ => worst(&bound),
                })
                .collect(),
            _ => bound.on(&self.ladder),
        }
    }

    fn support(&self, low: i64) -> Support {
        let alone = if low >= 0 { Support::NonNegative } else { Support::Any };
        let one_coordinate = self.keys.is_empty();
        // An element that is emptied may let another in, in another group; with one group there is no other.
        let own_group = self.known_keys() && !self.truncated;
        // Which of its groups a unit keeps may depend on what is private, unless it keeps them all.
        let public_groups = self.public_keys() && self.limit.is_none();
        if public_groups || one_coordinate || own_group {
            if low >= 0 && self.groups_per_unit == 1 { Support::Single } else { Support::Fixed { may_be_empty: true } }
        } else {
            alone
        }
    }

    pub(super) fn coordinates(&self, low: i64, high: i64) -> Result<Vec<Sensitivity>, QueryError> {
        let bound = Bound::coordinates(self.groups_per_unit, low, high, self.support(low));
        let bound = bound.map_err(|error| QueryError::failed(error.to_string()))?;
        Ok(self.moved(bound))
    }

    pub(super) fn ball(&self, radius: f64) -> Result<Vec<Sensitivity>, QueryError> {
        let bound = Bound::ball(radius, Support::NonNegative).map_err(|error| QueryError::failed(error.to_string()))?;
        Ok(self.moved(bound))
    }

    /// For each rung, how many keys it moves the number of users (or rows) of, and by how much.
    pub(super) fn presence(&self) -> Presence {
        let sides = |change: Change| match change {
            Change::AddRemove => 1,
            Change::Replace => 2,
        };
        let many = |held: u64| self.groups_per_unit.saturating_mul(held);
        let moved = self.ladder.rungs().iter().zip(self.ladder.held()).map(|(rung, &held)| {
            if self.grain == Grain::Row {
                let copies = self.private.copies.unwrap_or(1);
                let moves_user = rung.unit.kind() == Kind::Event && rung.unit.change() == Change::Replace;
                let sides = match (self.truncated, moves_user) {
                    (true, true) => 4,
                    (true, false) => 2,
                    (false, _) => sides(rung.unit.change()),
                };
                // Where a row changes hands, what two users keep may change in one group.
                let hands = if self.truncated && moves_user { 2 } else { 1 };
                let by = copies.saturating_mul(held).saturating_mul(hands);
                return Moved { keys: copies.saturating_mul(sides).saturating_mul(held), by };
            }
            // A user has a key or not, however many of the user's elements do.
            let whole = self.grain == Grain::User;
            let held = if whole { 1 } else { held };
            let change = if whole && rung.unit.kind() != Kind::User { Change::Replace } else { rung.unit.change() };
            // An element whose group follows from who it is has that group or not.
            let fixed = self.known_keys() && !self.truncated && rung.unit.kind() == Kind::Element;
            if whole && rung.unit.kind() == Kind::Event && rung.unit.change() == Change::Replace {
                return Moved { keys: many(1).saturating_mul(4), by: 2 }; // two users change
            }
            Moved { keys: many(held).saturating_mul(if fixed { 1 } else { sides(change) }), by: 1 }
        });
        Presence { moved: moved.collect() }
    }

    /// How far one unit of each rung moves, for each group, the number of users with rows in it.
    pub(super) fn users_moved(&self) -> Result<Vec<Sensitivity>, QueryError> {
        if self.grain == Grain::User {
            return self.coordinates(0, 1);
        }
        // Of an element as of any unit; of a user, who has a key or not however many elements do, one each.
        let element = self.coordinates(0, 1)?;
        let whole = |rung: &Rung, held: u64| {
            let groups = self.groups_per_unit.saturating_mul(held).min(self.number.unwrap_or(u64::MAX));
            let support = if self.keys.is_empty() { Support::Single } else { Support::NonNegative };
            let bound = Bound::coordinates(groups, 0, 1, support);
            bound
                .map(|bound| bound.sensitivity(rung.unit.change()))
                .map_err(|error| QueryError::failed(error.to_string()))
        };
        let rungs = self.ladder.rungs().iter().zip(self.ladder.held()).zip(element);
        rungs
            .map(
                |((rung, &held), of_element)| {
                    if rung.unit.kind() == Kind::User { whole(rung, held) } else { Ok(of_element) }
                },
            )
            .collect()
    }
}
