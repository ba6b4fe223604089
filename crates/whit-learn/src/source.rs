//! Rows to learn from, and which of them are one unit.

mod cut;

pub use cut::{Cut, Places};

use crate::error::LearnError;
use crate::loss::Targets;
use crate::projection::Projection;
use crate::store::{Builder, Keep, Store};
use whit_core::{Kind, Ladder};

/// So many rows are projected at once, filled up with rows of 0: what comes out for a row may differ in its last bits with that number, and how many
/// rows there are is not to be seen.
const BLOCK: usize = 4096;

/// Rows, brought together by unit and by user.
#[derive(Clone)]
pub struct Rows {
    features: Store,
    targets: Targets,
    /// The rows, unit by unit.
    order: Vec<u32>,
    /// Where each unit's rows end in that order.
    unit_ends: Vec<u32>,
    /// Where each user's units end.
    user_ends: Vec<u32>,
    /// What is one unit.
    kind: Kind,
    /// The user and the element of each row, where they are known.
    users: Option<Vec<u64>>,
    elements: Option<Vec<u64>>,
}

/// Whose rows they are.
#[derive(Debug, Clone, Copy, Default)]
pub struct Owners<'a> {
    /// The user of each row, as a number.
    pub users: Option<&'a [u64]>,
    /// The element of each row, as a number.
    pub elements: Option<&'a [u64]>,
}

impl std::fmt::Debug for Rows {
    /// Shapes, and nothing of what is in them.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Rows").field("features", &self.features).field("kind", &self.kind).finish_non_exhaustive()
    }
}

impl Rows {
    /// Rows with these numbers ([`Store::of`] takes a vector of them), for a unit of this kind.
    pub fn new(features: Store, targets: Targets, kind: Kind, owners: Owners<'_>) -> Result<Self, LearnError> {
        let wrong = |what: String| LearnError::Data(what);
        let rows = features.len();
        if targets.len() != rows {
            return Err(wrong(format!("there are {rows} rows and {} targets", targets.len())));
        }
        for (what, owners) in [("users", owners.users), ("elements", owners.elements)] {
            if let Some(owners) = owners.filter(|owners| owners.len() != rows) {
                return Err(wrong(format!("there are {rows} rows, and {what} of {} rows", owners.len())));
            }
        }
        if u32::try_from(rows).is_err() {
            return Err(wrong("there are more than 2^32 rows".to_owned()));
        }
        let need = |owners: Option<&'_ [u64]>, what: &str| {
            owners
                .is_some()
                .then_some(())
                .ok_or_else(|| wrong(format!("the unit needs a column of {what}, and there is none")))
        };
        if matches!(kind, Kind::Element | Kind::User) {
            need(owners.users, "users")?;
        }
        if kind == Kind::Element {
            need(owners.elements, "elements")?;
        }
        let user = |row: u32| owners.users.map_or(u64::from(row), |users| users[row as usize]);
        let within = |row: u32| match kind {
            Kind::Element => owners.elements.map_or(0, |elements| elements[row as usize]),
            Kind::User => 0,
            Kind::Event | Kind::Feature | Kind::Label => u64::from(row),
        };
        let mut order: Vec<u32> = (0..rows as u32).collect();
        order.sort_by_key(|&row| (user(row), within(row)));
        let (mut unit_ends, mut user_ends) = (Vec::new(), Vec::new());
        for (place, &row) in order.iter().enumerate() {
            let next = order.get(place + 1).copied();
            if next.is_none_or(|next| (user(next), within(next)) != (user(row), within(row))) {
                unit_ends.push(place as u32 + 1);
            }
            if next.is_none_or(|next| user(next) != user(row)) {
                user_ends.push(unit_ends.len() as u32);
            }
        }
        let (users, elements) = (owners.users.map(<[u64]>::to_vec), owners.elements.map(<[u64]>::to_vec));
        Ok(Self { features, targets, order, unit_ends, user_ends, kind, users, elements })
    }

    /// How many rows there are.
    pub fn len(&self) -> usize {
        self.order.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.order.is_empty()
    }

    /// How many numbers a row has.
    pub fn width(&self) -> usize {
        self.features.width()
    }

    /// How many bytes of their numbers lie in memory.
    pub fn memory(&self) -> u64 {
        self.features.memory()
    }

    /// How many units have rows. As private as the rows.
    pub fn units(&self) -> usize {
        self.unit_ends.len()
    }

    /// Where each user's units end. As private as the rows.
    pub(crate) fn user_ends(&self) -> &[u32] {
        &self.user_ends
    }

    /// What is one unit.
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// Whether rows keep to what a ladder says: they stand together by the protected unit, and no unit of a coarser rung has more of them than that rung's
    /// price was made for.
    pub(crate) fn check(&self, ladder: &Ladder) -> Result<(), LearnError> {
        let protected = &ladder.protected().unit;
        let keyed = !protected.key().is_empty();
        let together = match protected.kind() {
            // What is private of all of a user's rows moves together.
            Kind::Feature | Kind::Label if keyed => self.kind == Kind::User,
            Kind::Feature | Kind::Label => matches!(self.kind, Kind::Event | Kind::Feature | Kind::Label),
            kind => self.kind == kind,
        };
        if !together {
            return Err(LearnError::Data(format!(
                "rows stand together by {}, and the plan protects {protected}",
                self.kind
            )));
        }
        for (rung, &held) in ladder.rungs().iter().zip(ladder.held()) {
            let (known, most) = match rung.unit.kind() {
                Kind::Event => continue,
                Kind::Element => {
                    let most = if self.kind == Kind::Event { self.most_rows_of_an_element() } else { 1 };
                    (self.users.is_some() && self.elements.is_some(), most)
                }
                Kind::Feature | Kind::Label if rung.unit.key().is_empty() => (true, 1),
                Kind::User | Kind::Feature | Kind::Label => (self.users.is_some(), self.most_units_of_a_user()),
            };
            if !known {
                return Err(LearnError::Data(format!("{} needs a column that is not there", rung.unit)));
            }
            if most > held {
                // What is left out so that caps hold is a cut's to choose: when one unit goes, another may come in, and plans are priced for that.
                return Err(LearnError::Cap { unit: rung.unit.to_string(), held });
            }
        }
        Ok(())
    }

    fn most_units_of_a_user(&self) -> u64 {
        let starts = std::iter::once(&0).chain(&self.user_ends);
        self.user_ends.iter().zip(starts).map(|(end, start)| u64::from(end - start)).max().unwrap_or(0)
    }

    fn most_rows_of_an_element(&self) -> u64 {
        let (Some(users), Some(elements)) = (&self.users, &self.elements) else { return u64::MAX };
        let mut owners: Vec<(u64, u64)> =
            self.order.iter().map(|&row| (users[row as usize], elements[row as usize])).collect();
        owners.sort_unstable();
        owners.chunk_by(|a, b| a == b).map(|same| same.len() as u64).max().unwrap_or(0)
    }

    /// What rows are measured against.
    pub fn targets(&self) -> &Targets {
        &self.targets
    }

    /// Measures rows against something else, of which there is as much.
    pub(crate) fn measure_against(&mut self, targets: Targets) {
        debug_assert_eq!(targets.len(), self.targets.len());
        self.targets = targets;
    }

    /// The user of each row.
    pub(crate) fn users(&self) -> Option<&[u64]> {
        self.users.as_deref()
    }

    /// The rows of one unit.
    pub(crate) fn of_unit(&self, unit: u32) -> &[u32] {
        let unit = unit as usize;
        let start = unit.checked_sub(1).map_or(0, |before| self.unit_ends[before]);
        &self.order[start as usize..self.unit_ends[unit] as usize]
    }

    /// The numbers of some rows. No others are loaded.
    pub(crate) fn pick(&self, rows: &[u32]) -> Result<Vec<f32>, LearnError> {
        Ok(self.features.pick(rows)?)
    }

    /// The same rows, each in the directions of a projection.
    pub(crate) fn projected(&self, projection: &Projection) -> Result<Self, LearnError> {
        let mut store = Builder::new(projection.kept(), Keep::default())?;
        let all: Vec<u32> = (0..self.features.len() as u32).collect();
        for rows in all.chunks(BLOCK) {
            // What is beyond floats stays at their end, and what is no number at 0: that one row is so makes nothing fail.
            let held = |value: f32| if value.is_nan() { 0.0 } else { value.clamp(f32::MIN, f32::MAX) };
            let mut values = self.features.pick(rows)?;
            values.resize(BLOCK * self.features.width(), 0.0);
            let projected = projection.apply(&values)?.into_iter().take(rows.len() * projection.kept());
            store.push_floats(&projected.map(held).collect::<Vec<_>>())?;
        }
        Ok(Self { features: store.finish(), ..self.clone() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbers(rows: usize) -> Targets {
        Targets::Numbers { values: vec![0.0; rows], width: 1 }
    }

    fn store(values: Vec<f32>, width: usize) -> Store {
        Store::of(values, width).unwrap()
    }

    #[test]
    fn rows_come_together_by_unit_and_units_by_user() {
        let users = [7, 3, 7, 3, 7];
        let elements = [1, 1, 2, 1, 1];
        let owners = Owners { users: Some(&users), elements: Some(&elements) };
        let of = |kind| Rows::new(store(vec![0.0, 1.0, 2.0, 3.0, 4.0], 1), numbers(5), kind, owners).unwrap();
        let pairs = of(Kind::Element);
        assert_eq!(
            (0..3).map(|unit| pairs.of_unit(unit).to_vec()).collect::<Vec<_>>(),
            [vec![1, 3], vec![0, 4], vec![2]]
        );
        assert_eq!(pairs.user_ends(), [1, 3]);
        assert_eq!(of(Kind::User).units(), 2);
        assert_eq!(of(Kind::Event).units(), 5);
    }

    #[test]
    fn what_does_not_fit_is_named() {
        let said = |rows: Result<Rows, LearnError>| rows.unwrap_err().to_string();
        let none = Owners::default();
        assert!(said(Rows::new(store(vec![0.0; 4], 2), numbers(3), Kind::Event, none)).contains("3 targets"));
        assert!(said(Rows::new(store(vec![0.0; 4], 2), numbers(2), Kind::User, none)).contains("column of users"));
        let users = [1, 1];
        let half = Owners { users: Some(&users), elements: None };
        assert!(
            said(Rows::new(store(vec![0.0; 4], 2), numbers(2), Kind::Element, half)).contains("column of elements")
        );
    }
}
