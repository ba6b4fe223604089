//! What a user keeps where there is more than the caps allow: a sample of its own, chosen by keyed hashes.

use super::Rows;
use std::collections::BTreeMap;
use whit_core::{Kind, Ladder};

/// The caps that rows are cut to.
///
/// # Neighbours
/// Data sets that differ in one unit of a rung of the ladder, before anything is cut.
///
/// # Claim
/// After it no unit of a rung has more protected units with rows than [`Ladder::held`] says. One protected element or user that changes replaces at most one bag by another,
/// also where it is emptied and lets in one that was left out. One row that is a protected event replaces at most one bag where it comes or goes, and two where
/// it becomes another user's. What coarser rungs change stays as many bags as they hold.
///
/// # Why
/// Each cut keeps, of a bag of things, the m with the least hashes, all of them where there are no more. A thing's hash is that of what it is (a user and element; a row's
/// content, and how many equal ones stand before it), so it does not change with other things. Where i things leave such a bag and j come, at most max(i, j) of those that
/// are kept leave and as many come, and both numbers are no larger. One after the other, within one element and then within one user, cuts keep that property. A row that
/// becomes another user's is one that leaves the first user, where one may be let in, and one that comes to the other, where one may be pushed out. A step's law
/// depends on the bag of bags alone, since coins are independent and equal. [`Plan::cost`](crate::plan::Plan::cost) and [`Scatter`](crate::scatter::Scatter) count so.
///
/// # Tried by
/// `a_cut_replaces_as_many_bags_as_its_claim_says`
#[derive(Debug, Clone, Copy)]
pub struct Cut<'a> {
    /// The protected unit and those above it.
    pub ladder: &'a Ladder,
    /// The most rows of one protected unit.
    pub rows_per_unit: Option<u64>,
    /// The most units that have a place, where batches have a fixed size.
    pub places: Option<Places>,
    /// A hash of what each row holds. Without it rows are kept in their order.
    pub contents: Option<&'a [u64]>,
    /// Which of a user's units and rows are kept depends on this, and on them.
    pub key: u64,
}

impl Cut<'_> {
    /// A key for the rows of a data set of this name: the same for all that is learned from it, so that asking again samples no other users.
    pub fn key_of(dataset: &str) -> u64 {
        let hash = blake3::hash(format!("whit learn cut 1 {dataset}").as_bytes());
        u64::from_le_bytes(hash.as_bytes()[..8].try_into().unwrap_or_default())
    }
}

/// What has a place in batches of fixed size.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Places {
    /// So many protected units.
    Units(u64),
    /// So many users, each with all its units.
    Users(u64),
}

/// A hash of numbers, under a key.
fn mix(key: u64, parts: [u64; 3]) -> u64 {
    let mut bytes = [0; 32];
    for (place, part) in [key, parts[0], parts[1], parts[2]].into_iter().enumerate() {
        bytes[8 * place..8 * place + 8].copy_from_slice(&part.to_le_bytes());
    }
    let hash = blake3::hash(&bytes);
    u64::from_le_bytes(hash.as_bytes()[..8].try_into().unwrap_or_default())
}

impl Rows {
    /// Keeps what the caps allow, of each unit and of each user: never refuses, and never looks at anybody else's rows.
    #[must_use]
    pub fn bounded(mut self, cut: &Cut<'_>) -> Self {
        if let Some(most) = cut.rows_per_unit.filter(|_| self.kind != Kind::Event) {
            self.cut_rows(cut, most);
        }
        for (rung, &held) in cut.ladder.rungs().iter().zip(cut.ladder.held()).skip(1) {
            let within_elements = match (self.kind, rung.unit.kind()) {
                (Kind::Event, Kind::Element) => true,
                (Kind::Event | Kind::Element, Kind::User) => false,
                _ => continue, // one bag for a user, or rows that stay in view
            };
            let families = self.families(within_elements);
            self.keep_units(cut, families, held);
        }
        match cut.places {
            None => {}
            Some(Places::Units(places)) => {
                let all: Vec<u32> = (0..self.units() as u32).collect();
                self.keep_units(cut, vec![all], places);
            }
            Some(Places::Users(places)) => self.keep_users(cut, places),
        }
        self
    }

    fn starts(ends: &[u32]) -> impl Iterator<Item = std::ops::Range<u32>> {
        let starts = std::iter::once(0).chain(ends.iter().copied());
        starts.zip(ends).map(|(start, &end)| start..end)
    }

    /// The units of each user, or of each of a user's elements.
    fn families(&self, within_elements: bool) -> Vec<Vec<u32>> {
        let users = Self::starts(&self.user_ends).map(Iterator::collect::<Vec<u32>>);
        let Some(elements) = self.elements.as_ref().filter(|_| within_elements) else { return users.collect() };
        let element = |unit: &u32| self.of_unit(*unit).first().map_or(0, |&row| elements[row as usize]);
        let mut families = Vec::new();
        for mut units in users {
            units.sort_by_key(element);
            families.extend(units.chunk_by(|a, b| element(a) == element(b)).map(<[u32]>::to_vec));
        }
        families
    }

    /// The rows with the least hashes of what they hold; of equal ones each counts those before it.
    fn least_rows(cut: &Cut<'_>, rows: &[u32], most: usize) -> Vec<u32> {
        let Some(contents) = cut.contents else { return rows[..most.min(rows.len())].to_vec() };
        let mut met: BTreeMap<u64, u64> = BTreeMap::new();
        let mut ranked: Vec<(u64, u32)> = Vec::with_capacity(rows.len());
        for &row in rows {
            let content = contents[row as usize];
            let nth = met.entry(content).or_default();
            ranked.push((mix(cut.key, [0, content, *nth]), row));
            *nth += 1;
        }
        ranked.sort_unstable();
        let mut kept: Vec<u32> = ranked[..most.min(ranked.len())].iter().map(|&(_, row)| row).collect();
        kept.sort_unstable();
        kept
    }

    /// At most so many rows of each unit.
    fn cut_rows(&mut self, cut: &Cut<'_>, most: u64) {
        let most = usize::try_from(most).unwrap_or(usize::MAX);
        let (mut order, mut unit_ends) = (Vec::with_capacity(self.order.len()), Vec::with_capacity(self.units()));
        for unit in 0..self.unit_ends.len() as u32 {
            let own = self.of_unit(unit);
            if own.len() > most {
                order.extend(Self::least_rows(cut, own, most));
            } else {
                order.extend_from_slice(own);
            }
            unit_ends.push(order.len() as u32);
        }
        (self.order, self.unit_ends) = (order, unit_ends);
    }

    /// At most so many units of each family.
    fn keep_units(&mut self, cut: &Cut<'_>, families: Vec<Vec<u32>>, most: u64) {
        let most = usize::try_from(most).unwrap_or(usize::MAX);
        if families.iter().all(|family| family.len() <= most) {
            return;
        }
        let mut kept = vec![true; self.units()];
        for family in families.into_iter().filter(|family| family.len() > most) {
            for &unit in &family {
                kept[unit as usize] = false;
            }
            let chosen = if self.kind == Kind::Event {
                // Each unit is a row, and rows stand in the order of their units within a user.
                let rows: Vec<u32> = family.iter().filter_map(|&unit| self.of_unit(unit).first().copied()).collect();
                let units: BTreeMap<u32, u32> = rows.iter().copied().zip(family.iter().copied()).collect();
                let least = Self::least_rows(cut, &rows, most);
                least.iter().filter_map(|row| units.get(row).copied()).collect::<Vec<u32>>()
            } else {
                let mut ranked: Vec<(u64, u32)> = family.iter().map(|&unit| (self.rank(cut, unit), unit)).collect();
                ranked.sort_unstable();
                ranked[..most].iter().map(|&(_, unit)| unit).collect()
            };
            for unit in chosen {
                kept[unit as usize] = true;
            }
        }
        self.only(&kept);
    }

    /// The hash of who a unit is.
    fn rank(&self, cut: &Cut<'_>, unit: u32) -> u64 {
        let row = self.of_unit(unit).first().map_or(0, |&row| row as usize);
        let of = |owners: Option<&Vec<u64>>| owners.and_then(|owners| owners.get(row)).copied().unwrap_or(0);
        let element = if self.kind == Kind::Element { of(self.elements.as_ref()) } else { 0 };
        mix(cut.key, [1, of(self.users.as_ref()), element])
    }

    /// At most so many users, with all their units.
    fn keep_users(&mut self, cut: &Cut<'_>, most: u64) {
        let most = usize::try_from(most).unwrap_or(usize::MAX);
        if self.user_ends.len() <= most {
            return;
        }
        let users: Vec<std::ops::Range<u32>> = Self::starts(&self.user_ends).collect();
        let rank = |units: &std::ops::Range<u32>| {
            let row = self.of_unit(units.start).first().map_or(0, |&row| row as usize);
            mix(cut.key, [2, self.users.as_ref().and_then(|users| users.get(row)).copied().unwrap_or(0), 0])
        };
        let mut ranked: Vec<(u64, usize)> = users.iter().map(rank).zip(0..).collect();
        ranked.sort_unstable();
        let mut kept = vec![false; self.units()];
        for &(_, user) in &ranked[..most] {
            users[user].clone().for_each(|unit| kept[unit as usize] = true);
        }
        self.only(&kept);
    }

    /// Leaves out all other units, and users who have none any more.
    fn only(&mut self, kept: &[bool]) {
        let (mut order, mut unit_ends, mut user_ends) = (Vec::new(), Vec::new(), Vec::new());
        for units in Self::starts(&self.user_ends) {
            for unit in units.filter(|&unit| kept[unit as usize]) {
                order.extend_from_slice(self.of_unit(unit));
                unit_ends.push(order.len() as u32);
            }
            if user_ends.last().copied().unwrap_or(0) < unit_ends.len() as u32 {
                user_ends.push(unit_ends.len() as u32);
            }
        }
        (self.order, self.unit_ends, self.user_ends) = (order, unit_ends, user_ends);
    }
}

#[cfg(test)]
mod tests {
    use super::super::Owners;
    use super::*;
    use crate::loss::Targets;
    use crate::store::Store;
    use whit_core::unit::Caps;
    use whit_core::{Change, Unit};
    use whit_noise::{Replay, below};

    /// A row: user, element, content.
    type Row = [u64; 3];

    const CAPS: Caps = Caps { elements_per_user: Some(2), rows_per_element: Some(2) };

    fn ladder(kind: Kind, change: Change) -> Ladder {
        let units = vec![Unit::event(change), Unit::element("user", "element"), Unit::user("user", change)];
        Ladder::new(units, CAPS, kind).unwrap()
    }

    fn cut_of(rows: &[Row], kind: Kind, ladder: &Ladder, places: Option<Places>) -> Rows {
        let column = |place: usize| rows.iter().map(|row| row[place]).collect::<Vec<u64>>();
        let (users, elements, contents) = (column(0), column(1), column(2));
        let features = Store::of(vec![0.0; rows.len()], 1).unwrap();
        let targets = Targets::Numbers { values: vec![0.0; rows.len()], width: 1 };
        let owners = Owners { users: Some(&users), elements: Some(&elements) };
        let made = Rows::new(features, targets, kind, owners).unwrap();
        let cut = Cut { ladder, rows_per_unit: Some(2), places, contents: Some(&contents), key: 7 };
        made.bounded(&cut)
    }

    /// The bags that steps are made of: what each unit's rows hold, in any order.
    fn bags(rows: &[Row], kind: Kind, ladder: &Ladder, places: Option<Places>) -> BTreeMap<Vec<u64>, i64> {
        let made = cut_of(rows, kind, ladder, places);
        made.check(ladder).unwrap(); // every cap is kept
        let mut bags = BTreeMap::new();
        for unit in 0..made.units() as u32 {
            let mut bag: Vec<u64> = made.of_unit(unit).iter().map(|&row| rows[row as usize][2]).collect();
            bag.sort_unstable();
            assert!(kind == Kind::Event || bag.len() <= if kind == Kind::User { 9 } else { 2 });
            *bags.entry(bag).or_insert(0) += 1;
        }
        bags
    }

    /// How many bags go and how many come.
    fn moved(one: &BTreeMap<Vec<u64>, i64>, other: &BTreeMap<Vec<u64>, i64>) -> (i64, i64) {
        let keys: std::collections::BTreeSet<_> = one.keys().chain(other.keys()).collect();
        let count = |bags: &BTreeMap<Vec<u64>, i64>, key: &Vec<u64>| bags.get(key).copied().unwrap_or(0);
        let differences = keys.into_iter().map(|key| count(other, key) - count(one, key));
        differences.fold((0, 0), |(gone, come), by| (gone + (-by).max(0), come + by.max(0)))
    }

    /// What is left is a function of the rows as a bag; every cap holds; and no neighbour of 4,000 moves more bags than is claimed. At least one moves as many.
    #[test]
    fn a_cut_replaces_as_many_bags_as_its_claim_says() {
        let mut coins = Replay::new(0xcd7);
        let mut furthest: BTreeMap<(&str, bool), i64> = BTreeMap::new();
        for round in 0..4000_u64 {
            let mut draw = |many: u64| below(many, &mut coins);
            let any = |draw: &mut dyn FnMut(u64) -> u64| [draw(3), draw(4), draw(5)];
            let rows: Vec<Row> = (0..draw(24)).map(|_| any(&mut draw)).collect();
            let places = [None, Some(Places::Units(5))][(round % 2) as usize];
            let (row, other) = (draw(rows.len().max(1) as u64) as usize, any(&mut draw));
            let (user, element) = (draw(3), draw(4));
            let fresh: Vec<Row> = (0..draw(5)).map(|_| [user, element, draw(5)]).collect();
            let mut cases: Vec<(&str, Kind, Change, Vec<Row>, i64)> = Vec::new();
            if row < rows.len() {
                let mut gone = rows.clone();
                gone.remove(row);
                cases.push(("a row goes", Kind::Event, Change::AddRemove, gone, 1));
                let mut replaced = rows.clone();
                replaced[row] = other;
                cases.push(("a row is another", Kind::Event, Change::Replace, replaced, 2));
            }
            let mut changed: Vec<Row> =
                rows.iter().copied().filter(|row| (row[0], row[1]) != (user, element)).collect();
            changed.extend(&fresh);
            cases.push(("an element is another", Kind::Element, Change::Replace, changed.clone(), 1));
            cases.push(("an element of events is another", Kind::Event, Change::Replace, changed, 2));
            let without: Vec<Row> = rows.iter().copied().filter(|row| row[0] != user).collect();
            cases.push(("a user goes", Kind::User, Change::Replace, without.clone(), 1));
            cases.push(("a user of elements goes", Kind::Element, Change::Replace, without.clone(), 2));
            cases.push(("a user of events goes", Kind::Event, Change::Replace, without, 4));
            for (name, kind, change, neighbour, most) in cases {
                let ladder = ladder(kind, change);
                let one = bags(&rows, kind, &ladder, places);
                let (gone, come) = moved(&one, &bags(&neighbour, kind, &ladder, places));
                assert!(gone.max(come) <= most, "{name}: {gone} bags go and {come} come\n{rows:?}\n{neighbour:?}");
                let far = furthest.entry((name, places.is_some())).or_insert(0);
                *far = (*far).max(gone.max(come));
                if places.is_none() && name.ends_with("goes") && name.contains("user") {
                    assert_eq!(come, 0, "{name}: no other unit comes in");
                }
                let mut turned = rows.clone();
                turned.reverse();
                assert_eq!(one, bags(&turned, kind, &ladder, places), "{name}: order does not count");
            }
        }
        let exact = ["a row goes", "a row is another", "an element is another"].map(|name| furthest[&(name, false)]);
        assert_eq!(exact, [1, 2, 1], "{furthest:?}");
    }

    #[test]
    fn users_have_places_as_a_whole() {
        let rows: Vec<Row> = (0..6).flat_map(|user| [[user, 0, 1], [user, 1, 1]]).collect();
        let ladder = ladder(Kind::Element, Change::Replace);
        let made = cut_of(&rows, Kind::Element, &ladder, Some(Places::Users(4)));
        assert_eq!((made.user_ends(), made.units()), (&[2, 4, 6, 8][..], 8));
        let all = cut_of(&rows, Kind::Element, &ladder, Some(Places::Users(6)));
        assert_eq!(all.units(), 12);
    }

    /// Each of a user's nine elements is kept equally often, whoever the user is: 2 of 9 at 600 users is 133 ± 10 each; one in 10⁹ is beyond 62 off.
    #[test]
    fn what_is_kept_is_a_sample_of_each_users_own() {
        let rows: Vec<Row> = (0..600).flat_map(|user| (0..9).map(move |element| [user, element, element])).collect();
        let made = cut_of(&rows, Kind::Element, &ladder(Kind::Element, Change::Replace), None);
        assert_eq!(made.units(), 1200);
        let mut kept = [0_i64; 9];
        (0..1200).for_each(|unit| kept[rows[made.of_unit(unit)[0] as usize][1] as usize] += 1);
        assert!(kept.iter().all(|&times| (times - 133).abs() < 62), "{kept:?}");
    }
}
