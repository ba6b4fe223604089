//! How far one unit of each rung moves a measure: caps, bounds, and what follows from them.

use super::Draft;
use crate::error::QueryError;
use crate::plan::{ELEMENT, Grain, Kept, Presence, Statistic, USER, What};
use whit_core::bound::Weighted;
use whit_core::digits::number_of;
use whit_core::mechanism::keys::Moved;
use whit_core::unit::{Change, Kind};
use whit_core::{Bound, Rung, Sensitivity, Support};

/// Hidden columns, and how many rows with the same values in them are kept.
type CapOnRows = (Vec<&'static str>, u64);

/// So many are, or one is.
fn are(number: u64) -> String {
    format!("{number} {}", if number == 1 { "is" } else { "are" })
}

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
        match self.grain {
            Grain::Row => self.private.copies,
            // An element has no more rows than its user.
            Grain::Element => [self.private.caps.of_element, self.private.caps.of_user].into_iter().flatten().min(),
            Grain::User => self.private.caps.of_user,
        }
    }

    /// How many rows of one unit count in all its groups, where that is limited.
    pub(super) fn rows_in_all(&self) -> Option<u64> {
        if self.grain == Grain::Row {
            return None; // each row is a unit, and so are its copies together
        }
        [self.rows_declared(), self.structural()].into_iter().flatten().min()
    }

    /// Whether a unit may have more rows than count.
    pub(super) fn may_scale(&self) -> Result<bool, QueryError> {
        if self.grain == Grain::Row {
            return Ok(false);
        }
        let least = self.rows()?.min(self.rows_in_all().unwrap_or(u64::MAX));
        Ok(self.structural().is_none_or(|most| most > least))
    }

    /// Whether the rows that count in all groups of a unit may be fewer than those that count in each, so that groups share them.
    pub(super) fn may_share(&self) -> Result<bool, QueryError> {
        let (rows, in_all) = (self.rows()?, self.rows_in_all().unwrap_or(u64::MAX));
        Ok(self.groups_per_unit > 1 && in_all < self.groups_per_unit.saturating_mul(rows) && self.may_scale()?)
    }

    /// How many rows of one unit in one group count.
    pub(super) fn rows(&self) -> Result<u64, QueryError> {
        if self.grain == Grain::Row {
            return self.private.copies.ok_or_else(|| QueryError::failed("a row without a source"));
        }
        let said = self.asking.rows.or(self.private.caps.in_group);
        // Where the element is among the keys, the rows of one user in one group are of one element.
        let by_element =
            self.grain == Grain::User && self.private.element && self.key_tags.iter().any(|tag| tag.element);
        let of_element = self.private.caps.of_element.filter(|_| by_element);
        let rows = [said, self.rows_in_all(), of_element].into_iter().flatten().min();
        rows.ok_or_else(|| {
            QueryError::asked(
                format!("nothing says how many rows of one {} count in one group", self.unit_word()),
                "say it with `asking.rows = N`, or declare unit.caps = { rows_per_group = N }",
            )
        })
    }

    /// Where each row stands for itself and coarser rungs rest on caps: how many rows of a user, and of a user in one element, are kept.
    ///
    /// A row of the source may have become several, of which one event moves as many: so whoever is within a cap there is not cut here, and what is priced is as many
    /// events as a coarser unit holds, with all their copies.
    pub(super) fn row_caps(&self) -> Vec<CapOnRows> {
        if !self.truncated || self.grain != Grain::Row {
            return Vec::new();
        }
        let copies = self.private.copies.unwrap_or(1);
        let coarser = self.ladder.rungs().iter().zip(self.ladder.held()).skip(1);
        let kept = |(rung, &held): (&Rung, &u64)| match rung.unit.kind() {
            Kind::Element => Some((vec![USER, ELEMENT], held.saturating_mul(copies))),
            Kind::User => Some((vec![USER], held.saturating_mul(copies))),
            Kind::Event | Kind::Feature | Kind::Label => None,
        };
        coarser.filter_map(kept).collect()
    }

    /// For each statistic, whether caps may leave something out of it.
    pub(super) fn after_caps(&self, statistics: &[Statistic], row_caps: &[CapOnRows]) -> Vec<bool> {
        let chosen = self.limit.is_some() || self.element_cap().is_some() || !row_caps.is_empty();
        let scaled = self.may_scale().unwrap_or(false);
        let counts_users = |statistic: &Statistic| {
            statistic.measures().iter().all(|&measure| self.measures[measure].what == What::Users)
        };
        let capped = |statistic: &Statistic| !statistic.is_exact() && (chosen || (scaled && !counts_users(statistic)));
        statistics.iter().map(capped).collect()
    }

    /// At most so many elements of one user, where that has to be seen to.
    pub(super) fn element_cap(&self) -> Option<u64> {
        self.unit.caps.elements_per_user.filter(|_| self.truncated && self.grain == Grain::Element)
    }

    /// How many rows caps leave, where that can be released: of one unit sixteen times as many are counted as may be left, so that it shows how many there were
    /// at least. Not where each row is a unit of its own, for which caps cut rows of a user whom nothing else counts, nor where rows are public.
    pub(super) fn kept(&self) -> Result<Option<Kept>, QueryError> {
        let Ok(rows) = self.rows() else { return Ok(None) };
        let left = self.groups_per_unit.saturating_mul(rows).min(self.rows_in_all().unwrap_or(u64::MAX));
        if self.grain == Grain::Row || self.private.rows_public || left > 1 << 40 {
            return Ok(None);
        }
        // One number, to which a unit adds no more than so many rows.
        let moved = |most: u64| {
            let support = Support::NonNegative;
            self.within(Weighted { groups: 1, rows: most, in_all: most, coordinates: 1, low: 0, high: 1, support })
        };
        let mut caps = Vec::new();
        caps.extend(self.element_cap().map(|most| format!("`elements_per_user = {most}`")));
        caps.extend(self.limit.map(|most| format!("`groups = {most}`")));
        if self.may_scale()? {
            caps.push(format!("`rows = {rows}`"));
            let in_all = self.rows_in_all().filter(|&most| most < self.groups_per_unit.saturating_mul(rows));
            caps.extend(in_all.map(|most| format!("{} in all", number_of(most, "row"))));
        }
        let caps = match caps.split_last() {
            Some((last, rest)) if !rest.is_empty() => format!("{} and {last}", rest.join(", ")),
            _ => caps.concat(),
        };
        let most = 16 * left;
        Ok(Some(Kept { most: [most, left], moved: [moved(most)?, moved(left)?], caps }))
    }

    /// What caps do, and what intervals say of it.
    pub(super) fn caps_in_words(&self, row_caps: &[CapOnRows]) -> Vec<String> {
        let unit = self.unit_word();
        let mut words = Vec::new();
        if let Some(most) = self.element_cap() {
            let more = number_of(most, "element");
            words.push(format!("a user with more than {more} keeps {most} of them, chosen by chance"));
        }
        for (within, most) in row_caps {
            let of = if within.len() > 1 { "a user in one element" } else { "a user" };
            words.push(format!(
                "of more than {} of {of}, {} kept, chosen by chance",
                number_of(most, "row"),
                are(*most)
            ));
        }
        if let Some(most) = self.limit {
            let all = self.number.filter(|&number| number > most).map_or_else(String::new, |number| {
                format!(", so one in all {number} keeps {:.0} %", 100.0 * most as f64 / number as f64)
            });
            let more = number_of(most, "group");
            words.push(format!("of more than {more} of one {unit}, {} kept, chosen by chance{all}", are(most)));
        }
        if let (Ok(true), Ok(rows)) = (self.may_scale(), self.rows()) {
            let in_all = self.rows_in_all().filter(|_| !self.keys.is_empty());
            let also =
                in_all.map_or_else(String::new, |most| format!(", and more than {most} in all groups as {most}"));
            let more = number_of(rows, "row");
            words.push(format!("more than {more} of one {unit} in a group count as {rows}, all alike{also}"));
        }
        words.push("intervals are about what these caps leave, and do not include what they leave out".to_owned());
        words
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

    /// The limits on a vector to which a row adds something between these two.
    fn limits(&self, low: i64, high: i64) -> Result<Weighted, QueryError> {
        Ok(Weighted {
            groups: self.groups_per_unit,
            rows: self.rows()?,
            in_all: self.rows_in_all().unwrap_or(u64::MAX),
            coordinates: self.number.unwrap_or(u64::MAX),
            low: low.min(0),
            high: high.max(0),
            support: self.support(low.min(0)),
        })
    }

    fn within(&self, limits: Weighted) -> Result<Vec<Sensitivity>, QueryError> {
        let bound = Bound::Weighted(limits).validated().map_err(|error| QueryError::failed(error.to_string()))?;
        Ok(self.moved(bound))
    }

    /// How far one unit of each rung moves a vector to which each of its rows adds something between these two.
    pub(super) fn of_rows(&self, low: i64, high: i64) -> Result<Vec<Sensitivity>, QueryError> {
        self.within(self.limits(low, high)?)
    }

    /// How far the rows of one unit move the sum of their weights' squares, at most: the length of one unit's weights.
    pub(super) fn length_of_rows(&self) -> Result<f64, QueryError> {
        Ok(Bound::Weighted(self.limits(0, 1)?).sensitivity(Change::AddRemove).l2)
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
        // A unit has a group or not, however many rows it has there.
        let one = Weighted {
            groups: self.groups_per_unit,
            rows: 1,
            in_all: u64::MAX,
            coordinates: self.number.unwrap_or(u64::MAX),
            low: 0,
            high: 1,
            support: self.support(0),
        };
        if self.grain == Grain::User {
            return self.within(one);
        }
        // Of an element as of any unit; of a user, who has a key or not however many elements do, one each.
        let element = self.within(one)?;
        let whole = |rung: &Rung, held: u64| {
            let groups = self.groups_per_unit.saturating_mul(held).min(one.coordinates);
            let bound = Bound::Weighted(Weighted { groups, support: Support::NonNegative, ..one });
            bound
                .validated()
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
