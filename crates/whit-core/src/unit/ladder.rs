//! Chains of units from fine to coarse, and what one unit holds of another.
//!
//! A mechanism protects one rung, and what it costs there bounds what it costs on every coarser rung, as soon as it is
//! known how many units of the protected rung move when one unit of the coarser one does. The caps that say so are
//! enforced by bounding the data, never assumed.

use super::{Change, Kind, Slices, Unit};
use serde::{Deserialize, Serialize};
use std::fmt;

/// The caps that link rungs. Data is bounded so that they hold.
///
/// ```
/// use whit_core::unit::Caps;
/// let caps = Caps { elements_per_user: Some(12), rows_per_element: Some(5) };
/// assert_eq!(caps.rows_per_user(), Some(60));
/// ```
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Caps {
    /// The most elements in which one user has rows.
    pub elements_per_user: Option<u64>,
    /// The most rows that one user has in one element.
    pub rows_per_element: Option<u64>,
}

impl Caps {
    /// The most rows of one user: the product of the two caps, if both are there and it fits into 64 bits.
    pub fn rows_per_user(&self) -> Option<u64> {
        self.elements_per_user?.checked_mul(self.rows_per_element?)
    }

    /// Caps for data without a partition: the whole user is one element.
    #[must_use]
    pub fn one_element(rows_per_user: u64) -> Self {
        Self { elements_per_user: Some(1), rows_per_element: Some(rows_per_user) }
    }
}

/// One unit's place on a ladder.
///
/// A report names the unit with its change at each rung, as `Display` does.
///
/// ```
/// use whit_core::{Change, Rung, Unit};
/// let rung = Rung { unit: Unit::user("author", Change::AddRemove), holds: 12, disjoint: false, slices: None };
/// assert_eq!(rung.to_string(), "user (author), add-remove: 12 units of the protected rung");
/// ```
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Rung {
    /// The unit.
    pub unit: Unit,
    /// At most so many units of the protected rung move when one unit of this rung moves; 1 on the protected rung itself.
    pub holds: u64,
    /// Whether those units move different coordinates (an element-wise histogram), so that ℓ2 grows with the root.
    pub disjoint: bool,
    /// Which slices of the data set are read at all, where a question reads some alone: see [`Slices`]. Nothing says that it may read everything.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub slices: Option<Slices>,
}

impl Rung {
    /// Whether a loss on this rung and one on `other` may be compared: only under one change is a coarser rung never cheaper.
    ///
    /// A user who comes or goes moves a sum by C where an element that is replaced moves it by 2C: these are two promises.
    fn compares_with(&self, other: &Self) -> bool {
        self.unit.change() == other.unit.change()
    }
}

impl fmt::Display for Rung {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.holds {
            1 => write!(f, "{}", self.unit),
            holds => write!(f, "{}: {holds} units of the protected rung", self.unit),
        }
    }
}

/// A chain of units from fine to coarse, and the caps that link them.
///
/// ```
/// use whit_core::{Change, Ladder, Unit};
/// use whit_core::unit::{Caps, Kind};
/// let caps = Caps { elements_per_user: Some(12), rows_per_element: None };
/// let units = vec![Unit::element("author", "word"), Unit::user("author", Change::Replace)];
/// let ladder = Ladder::new(units, caps, Kind::Element)?;
/// assert_eq!(ladder.rungs()[0].holds, 1);
/// assert_eq!(ladder.rungs()[1].holds, 24); // twelve words go, and twelve other words come
/// # Ok::<(), whit_core::unit::LadderError>(())
/// ```
///
/// # How many units move
/// Let a unit of the coarser rung hold at most k units of the protected one.
///
/// | protected | coarser rung is add-remove | coarser rung is replace |
/// |---|---|---|
/// | event, add-remove | k | 2k: the old rows go, the new ones come |
/// | event, replace | k | k: a row takes the place of a row |
/// | element | k | over events: as above; user over elements: **2k**, since an element keeps its identity |
/// | feature, label, of one row | – | k, under the same feature or label unit of one user |
///
/// The 2k of a user over elements is attained: one whose k elements are replaced by k others changes the rows of 2k
/// elements, each of which keeps its identity. (Heavy-hitter indicators show it: √(2m), not √m.)
/// [`Bound::on`](crate::Bound::on) takes back what the factor costs where a bound does not look at identities.
///
/// A feature or label rung has no event, element or user rung above it: those move what a feature unit leaves in view,
/// so no number of its steps adds up to one of theirs. What protects one row's features protects k rows' features
/// of one user, and that is `Unit::feature(&["user"], …)`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ladder {
    rungs: Vec<Rung>,
    held: Vec<u64>,
}

/// A ladder that cannot stand. [`LadderError::hint`] offers the next step.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LadderError {
    /// No units.
    #[error("a ladder without units protects nothing")]
    Empty,
    /// Two units of one sort.
    #[error("the ladder has two rungs `{0}`, so which caps link them is not clear")]
    Twice(Kind),
    /// A coarse unit before a fine one.
    #[error("`{coarser}` stands before `{finer}`, but a ladder goes from fine to coarse")]
    Order {
        /// The unit that stands first and should not.
        coarser: String,
        /// The unit that follows it.
        finer: String,
    },
    /// Two units that speak of different users.
    #[error("`{finer}` is not a part of `{coarser}`: their user columns differ")]
    Apart {
        /// The finer unit.
        finer: String,
        /// The coarser unit.
        coarser: String,
    },
    /// A unit above a feature or label unit that moves what the latter leaves in view.
    #[error(
        "`{coarser}` moves columns or rows that are public to `{finer}`, so no number of changes to the one adds up to the other"
    )]
    InView {
        /// The feature or label unit.
        finer: String,
        /// The unit above it.
        coarser: String,
    },
    /// The protected rung is not there.
    #[error("the ladder has no rung `{0}` to protect")]
    NotThere(Kind),
    /// A cap that is needed and was not declared.
    #[error("without `{cap}` one `{coarser}` may hold any number of `{finer}`, and its loss has no bound")]
    NoCap {
        /// The missing cap.
        cap: &'static str,
        /// The protected unit.
        finer: String,
        /// The unit above it.
        coarser: String,
    },
    /// A cap of zero.
    #[error("`{0}` is 0, so nothing would be left of the data")]
    ZeroCap(&'static str),
    /// Caps whose product does not fit.
    #[error("the caps below `{0}` multiply to more than 64 bits hold")]
    TooLarge(Unit),
    /// What can be said of elements only, said of another protected rung.
    #[error("only elements have coordinates of their own or a known number, and the protected rung is `{0}`")]
    NotElementWise(Unit),
    /// Rungs under different changes.
    #[error("`{first}` and `{second}` are different promises, and their losses do not compare")]
    MixedChanges {
        /// One unit.
        first: String,
        /// A unit under another change.
        second: String,
    },
}

impl LadderError {
    /// What to do next.
    ///
    /// ```
    /// use whit_core::{Change, Ladder, Unit};
    /// use whit_core::unit::{Caps, Kind};
    /// let units = vec![Unit::element("author", "word"), Unit::user("author", Change::Replace)];
    /// let error = Ladder::new(units, Caps::default(), Kind::Element).unwrap_err();
    /// assert_eq!(error.hint(), "declare `elements_per_user`; what a user has beyond it is left out");
    /// ```
    pub fn hint(&self) -> String {
        match self {
            Self::Empty => "name what one whit is, for example `Unit::user(\"id\", Change::Replace)`".to_owned(),
            Self::Twice(kind) => format!("keep one `{kind}` unit, and give the other a ladder of its own"),
            Self::Order { finer, coarser } => format!("write `{finer}` before `{coarser}`: event, element, user"),
            Self::Apart { .. } => "use one user column throughout".to_owned(),
            Self::InView { finer, .. } => {
                format!("above `{finer}` put the same kind of unit with the user column as its key")
            }
            Self::NotThere(kind) => format!("add a unit of kind `{kind}`, or protect one that is there"),
            Self::NoCap { cap, .. } => format!("declare `{cap}`; what a user has beyond it is left out"),
            Self::ZeroCap(cap) => format!("declare `{cap}` as 1 or more"),
            Self::TooLarge(_) => "declare smaller caps".to_owned(),
            Self::NotElementWise(_) => "protect the element rung, or leave the ladder as it is".to_owned(),
            Self::MixedChanges { .. } => "name the change at each, or declare both under one change".to_owned(),
        }
    }
}

impl Ladder {
    /// Builds the ladder of `units`, which stand from fine to coarse, for a mechanism that protects the unit of kind `protect`
    /// (the finest of that kind).
    ///
    /// Units below the protected one are left out: what hides the coarser unit hides all that moves within it.
    pub fn new(units: Vec<Unit>, caps: Caps, protect: Kind) -> Result<Self, LadderError> {
        if units.is_empty() {
            return Err(LadderError::Empty);
        }
        for (cap, name) in [(caps.elements_per_user, ELEMENTS), (caps.rows_per_element, ROWS)] {
            if cap == Some(0) {
                return Err(LadderError::ZeroCap(name));
            }
        }
        for pair in units.windows(2) {
            check_step(&pair[0], &pair[1])?;
        }
        let start = units.iter().position(|unit| unit.kind() == protect).ok_or(LadderError::NotThere(protect))?;
        let protected = units[start].clone();
        let (mut rungs, mut held) = (Vec::new(), Vec::new());
        for unit in units.into_iter().skip(start) {
            let k = if rungs.is_empty() { 1 } else { held_by(&unit, &protected, caps)? };
            let moved = if rungs.is_empty() { 1 } else { moves_per_held(&unit, &protected) };
            let holds = k.checked_mul(moved).ok_or_else(|| LadderError::TooLarge(unit.clone()))?;
            rungs.push(Rung { unit, holds, disjoint: false, slices: None });
            held.push(k);
        }
        Ok(Self { rungs, held })
    }

    /// The same ladder for a statistic with coordinates of its own for each element, such as a histogram over the elements.
    pub fn element_wise(mut self) -> Result<Self, LadderError> {
        self.check_elements()?;
        self.rungs.iter_mut().for_each(|rung| rung.disjoint = true);
        Ok(self)
    }

    /// The same ladder for a partition of only so many elements and a statistic that does not look at who a user is.
    ///
    /// Then one user who takes another's place is the same as one whose rows become the other's, so no more elements
    /// move than there are: min(2k, `elements`). [`Partition::elements`](crate::Partition::elements) tells their number.
    ///
    /// ```
    /// use whit_core::{Change, Ladder, Unit};
    /// use whit_core::unit::{Caps, Kind};
    /// let caps = Caps { elements_per_user: Some(7), rows_per_element: None };
    /// let units = vec![Unit::element("user", "weekday"), Unit::user("user", Change::Replace)];
    /// let ladder = Ladder::new(units, caps, Kind::Element)?.with_elements(7)?;
    /// assert_eq!(ladder.rungs()[1].holds, 7);
    /// # Ok::<(), whit_core::unit::LadderError>(())
    /// ```
    pub fn with_elements(mut self, elements: u64) -> Result<Self, LadderError> {
        self.check_elements()?;
        if elements == 0 {
            return Err(LadderError::ZeroCap("elements"));
        }
        for (rung, held) in self.rungs.iter_mut().zip(&mut self.held) {
            rung.holds = rung.holds.min(elements);
            *held = (*held).min(elements);
        }
        Ok(self)
    }

    fn check_elements(&self) -> Result<(), LadderError> {
        let protected = &self.rungs[0].unit;
        if protected.kind() == Kind::Element { Ok(()) } else { Err(LadderError::NotElementWise(protected.clone())) }
    }

    /// The rungs, fine to coarse, from the protected one up.
    pub fn rungs(&self) -> &[Rung] {
        &self.rungs
    }

    /// For each rung, the most units of the protected rung that one of its units has rows in, at any one time.
    ///
    /// Where a change empties some units and fills others, [`Rung::holds`] counts both, and this one side.
    pub fn held(&self) -> &[u64] {
        &self.held
    }

    /// The protected rung.
    pub fn protected(&self) -> &Rung {
        &self.rungs[0]
    }

    /// The rung of a kind, if the ladder reaches it; the coarsest of that kind.
    pub fn rung(&self, kind: Kind) -> Option<&Rung> {
        self.rungs.iter().rev().find(|rung| rung.unit.kind() == kind)
    }

    /// Refuses unless all rungs are under one change, and so may be compared.
    ///
    /// ```
    /// use whit_core::{Caps, Change, Kind, Ladder, Unit};
    /// let caps = Caps { elements_per_user: Some(4), rows_per_element: None };
    /// let rungs = |change| vec![Unit::element("author", "word"), Unit::user("author", change)];
    /// assert!(Ladder::new(rungs(Change::Replace), caps, Kind::Element)?.check_comparable().is_ok());
    /// assert!(Ladder::new(rungs(Change::AddRemove), caps, Kind::Element)?.check_comparable().is_err());
    /// # Ok::<(), whit_core::unit::LadderError>(())
    /// ```
    pub fn check_comparable(&self) -> Result<(), LadderError> {
        let first = &self.rungs[0];
        match self.rungs.iter().find(|rung| !rung.compares_with(first)) {
            None => Ok(()),
            Some(other) => {
                Err(LadderError::MixedChanges { first: first.unit.to_string(), second: other.unit.to_string() })
            }
        }
    }
}

const ELEMENTS: &str = "elements_per_user";
const ROWS: &str = "rows_per_element";

/// Whether `coarser` may stand right above `finer`.
fn check_step(finer: &Unit, coarser: &Unit) -> Result<(), LadderError> {
    let (fine, coarse) = (finer.to_string(), coarser.to_string());
    match (finer.kind(), coarser.kind()) {
        (Kind::Event, Kind::Element | Kind::User) => Ok(()),
        (Kind::Element, Kind::User) if finer.key()[0] == coarser.key()[0] => Ok(()),
        (Kind::Element, Kind::User) => Err(LadderError::Apart { finer: fine, coarser: coarse }),
        (Kind::Feature, Kind::Feature) | (Kind::Label, Kind::Label) => check_feature_step(finer, coarser),
        (Kind::Feature | Kind::Label, _) => Err(LadderError::InView { finer: fine, coarser: coarse }),
        (Kind::Event, Kind::Event) | (Kind::Element, Kind::Element) | (Kind::User, Kind::User) => {
            Err(LadderError::Twice(finer.kind()))
        }
        (Kind::Element | Kind::User, Kind::Event)
        | (Kind::User, Kind::Element)
        | (Kind::Event | Kind::Element | Kind::User, Kind::Feature | Kind::Label) => {
            Err(LadderError::Order { coarser: fine, finer: coarse })
        }
    }
}

/// From one row to one user, with the same columns in view.
fn check_feature_step(finer: &Unit, coarser: &Unit) -> Result<(), LadderError> {
    if finer.key() == coarser.key() {
        return Err(LadderError::Twice(finer.kind()));
    }
    if coarser.key().is_empty() {
        return Err(LadderError::Order { coarser: finer.to_string(), finer: coarser.to_string() });
    }
    // All that the finer unit leaves in view must stay in view, or its steps do not add up to the coarser one's.
    let kept =
        finer.public().iter().all(|column| coarser.is_public(column)) && finer.label_column() == coarser.label_column();
    if finer.key().is_empty() && kept {
        Ok(())
    } else {
        Err(LadderError::InView { finer: finer.to_string(), coarser: coarser.to_string() })
    }
}

/// The most units like `protected` in which one `unit` has rows.
fn held_by(unit: &Unit, protected: &Unit, caps: Caps) -> Result<u64, LadderError> {
    let no_cap = |cap| LadderError::NoCap { cap, finer: protected.to_string(), coarser: unit.to_string() };
    let elements = || caps.elements_per_user.ok_or_else(|| no_cap(ELEMENTS));
    let rows = || caps.rows_per_element.ok_or_else(|| no_cap(ROWS));
    match (protected.kind(), unit.kind()) {
        (Kind::Element, _) => elements(),
        (Kind::Event, Kind::Element) => rows(),
        (Kind::Event | Kind::Feature | Kind::Label | Kind::User, _) => {
            elements()?.checked_mul(rows()?).ok_or_else(|| LadderError::TooLarge(unit.clone()))
        }
    }
}

/// How many changes of a protected unit each unit that is held may take: see the table at [`Ladder`].
fn moves_per_held(unit: &Unit, protected: &Unit) -> u64 {
    match (protected.kind(), protected.change(), unit.change()) {
        (Kind::Event, Change::AddRemove, Change::Replace)
        | (Kind::Element, Change::AddRemove | Change::Replace, Change::Replace) => 2,
        (Kind::Event, Change::Replace, Change::AddRemove | Change::Replace)
        | (Kind::Event, Change::AddRemove, Change::AddRemove)
        | (Kind::Element, Change::AddRemove | Change::Replace, Change::AddRemove)
        | (
            Kind::Feature | Kind::Label | Kind::User,
            Change::AddRemove | Change::Replace,
            Change::AddRemove | Change::Replace,
        ) => 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::unit::{Domain, Rows, distance, neighbours};

    const CAPS: Caps = Caps { elements_per_user: Some(2), rows_per_element: Some(2) };

    fn user(change: Change) -> Unit {
        Unit::user("user", change)
    }

    fn element() -> Unit {
        Unit::element("user", "element")
    }

    fn within_caps(rows: &Rows) -> bool {
        let elements = rows.units(&element()).unwrap();
        let users = rows.units(&user(Change::Replace)).unwrap();
        let elements_of =
            |rows: &[Vec<i64>]| rows.iter().map(|row| row[1]).collect::<std::collections::BTreeSet<_>>().len();
        elements.iter().all(|rows| rows.len() <= 2) && users.iter().all(|rows| elements_of(rows) <= 2)
    }

    /// Walks through every neighbour of a few data sets within the caps, and measures it in the protected unit.
    fn furthest(protected: &Unit, coarser: &Unit) -> Option<u64> {
        let values = vec![vec![0, 1], vec![0, 1, 2, 3], vec![0, 1]];
        let domain = Domain { values, rows_per_unit: 4 };
        let columns = ["user", "element", "value"];
        let starts: [&[[i64; 3]]; 4] = [
            &[],
            &[[0, 0, 0], [0, 0, 0], [0, 1, 0], [0, 1, 0]],
            &[[0, 0, 0], [0, 0, 1], [0, 1, 1]],
            &[[0, 0, 0], [0, 1, 0], [1, 0, 1]],
        ];
        let (mut most, mut met) = (Some(0), 0);
        for start in starts {
            let start = Rows::new(&columns, start.iter().map(|row| row.to_vec()).collect()).unwrap();
            let found = neighbours(coarser, &start.clone().with_places(2), &domain).unwrap();
            for other in found.iter().filter(|other| within_caps(other)) {
                let (a, b) = (start.clone().with_places(20), other.clone().with_places(20));
                most = most.and_then(|most| Some(most.max(distance(protected, &a, &b).unwrap()?)));
                met += 1;
            }
        }
        assert!(met > 10);
        most
    }

    /// For every pair of rungs: no coarser neighbour is further away than the ladder says, and some are as far.
    #[test]
    fn a_rung_holds_exactly_as_many_units_as_its_neighbours_can_move() {
        let (add, replace) = (Change::AddRemove, Change::Replace);
        for (protected, coarser, holds) in [
            (element(), user(replace), 4), // and not 2: two elements go, two others come
            (element(), user(add), 2),
            (Unit::event(replace), element(), 2),
            (Unit::event(add), element(), 4),
            (Unit::event(replace), user(replace), 4),
            (Unit::event(replace), user(add), 4),
            (Unit::event(add), user(add), 4),
            (Unit::event(add), user(replace), 8),
            (Unit::feature(&[], &["element"]), Unit::feature(&["user"], &["element"]), 4),
            (Unit::label(&[], "value"), Unit::label(&["user"], "value"), 4),
        ] {
            let ladder = Ladder::new(vec![protected.clone(), coarser.clone()], CAPS, protected.kind()).unwrap();
            assert_eq!(ladder.rungs()[0].holds, 1);
            assert_eq!(ladder.rungs()[1].holds, holds, "{coarser} over {protected}");
            assert_eq!(furthest(&protected, &coarser), Some(holds), "{coarser} over {protected}");
        }
    }

    #[test]
    fn a_user_is_no_number_of_features() {
        let label = Unit::label(&[], "value");
        assert_eq!(furthest(&label, &user(Change::Replace)), None);
        let error = Ladder::new(vec![label, user(Change::Replace)], CAPS, Kind::Label).unwrap_err();
        assert!(matches!(error, LadderError::InView { .. }));
        assert!(error.hint().contains("user column as its key"), "{}", error.hint());
        let narrow = [Unit::feature(&[], &["age", "place"]), Unit::feature(&["user"], &["age"])];
        assert!(matches!(Ladder::new(narrow.to_vec(), CAPS, Kind::Feature), Err(LadderError::InView { .. })));
    }

    #[test]
    fn a_ladder_starts_at_the_protected_rung() {
        let units = vec![Unit::event(Change::Replace), element(), user(Change::Replace)];
        let caps = Caps { elements_per_user: Some(12), rows_per_element: Some(5) };
        let holds = |protect| -> Vec<u64> {
            Ladder::new(units.clone(), caps, protect).unwrap().rungs().iter().map(|rung| rung.holds).collect()
        };
        assert_eq!(holds(Kind::Event), [1, 5, 60]);
        assert_eq!(holds(Kind::Element), [1, 24]);
        assert_eq!(holds(Kind::User), [1]);
        let ladder = Ladder::new(units, caps, Kind::Element).unwrap();
        assert_eq!(ladder.held(), [1, 12]);
        assert_eq!(ladder.protected().unit, element());
        assert_eq!(ladder.rung(Kind::User).map(|rung| rung.holds), Some(24));
        assert!(ladder.rungs().iter().all(|rung| !rung.disjoint));
        assert!(ladder.element_wise().unwrap().rungs().iter().all(|rung| rung.disjoint));
    }

    #[test]
    fn what_cannot_stand_is_refused_with_the_next_step() {
        let replace = Change::Replace;
        let refuse = |units: &[Unit], caps, protect| Ladder::new(units.to_vec(), caps, protect).unwrap_err();
        assert_eq!(refuse(&[], CAPS, Kind::User), LadderError::Empty);
        let upside_down = refuse(&[user(replace), element()], CAPS, Kind::User);
        assert_eq!(
            upside_down.to_string(),
            "`user (user), replace` stands before `element (user, element), replace`, but a ladder goes from fine to coarse"
        );
        let twice = [user(replace), user(Change::AddRemove)];
        assert_eq!(refuse(&twice, CAPS, Kind::User), LadderError::Twice(Kind::User));
        assert_eq!(refuse(&[element()], CAPS, Kind::Event), LadderError::NotThere(Kind::Event));
        let zero = Caps { elements_per_user: Some(0), ..CAPS };
        assert_eq!(refuse(&[element()], zero, Kind::Element), LadderError::ZeroCap("elements_per_user"));
        let capless = refuse(&[Unit::event(replace), element()], Caps::default(), Kind::Event);
        assert!(capless.to_string().starts_with("without `rows_per_element`"), "{capless}");
        assert!(capless.hint().starts_with("declare `rows_per_element`"));
        let huge = Caps { elements_per_user: Some(1 << 40), rows_per_element: Some(1 << 40) };
        assert!(matches!(refuse(&[Unit::event(replace), user(replace)], huge, Kind::Event), LadderError::TooLarge(_)));
        let strangers = [element(), Unit::user("author", replace)];
        assert!(matches!(refuse(&strangers, CAPS, Kind::Element), LadderError::Apart { .. }));
        let wise = Ladder::new(vec![user(replace)], CAPS, Kind::User).unwrap().element_wise();
        assert!(matches!(wise, Err(LadderError::NotElementWise(_))));
        let none = Ladder::new(vec![element()], CAPS, Kind::Element).unwrap().with_elements(0);
        assert_eq!(none, Err(LadderError::ZeroCap("elements")));
    }

    #[test]
    fn rungs_compare_under_one_change_only() {
        let mixed = Ladder::new(vec![element(), user(Change::AddRemove)], CAPS, Kind::Element).unwrap();
        assert!(matches!(mixed.check_comparable(), Err(LadderError::MixedChanges { .. })));
        let one = Ladder::new(vec![element(), user(Change::Replace)], CAPS, Kind::Element).unwrap();
        assert_eq!(one.check_comparable(), Ok(()));
        let named: Vec<String> = one.rungs().iter().map(Rung::to_string).collect();
        assert_eq!(named, ["element (user, element), replace", "user (user), replace: 4 units of the protected rung"]);
    }

    #[test]
    fn caps_that_no_rung_needs_may_be_absent() {
        let caps = Caps { elements_per_user: Some(3), rows_per_element: None };
        assert!(Ladder::new(vec![element(), user(Change::Replace)], caps, Kind::Element).is_ok());
        assert!(Ladder::new(vec![user(Change::Replace)], Caps::default(), Kind::User).is_ok());
        assert_eq!(Caps::one_element(7).rows_per_user(), Some(7));
    }

    #[test]
    fn a_rung_survives_being_written_down() {
        let rung = Rung { unit: Unit::label(&["user"], "clicked"), holds: 3, disjoint: true, slices: None };
        let text = serde_json::to_string(&rung).unwrap();
        assert_eq!(serde_json::from_str::<Rung>(&text).unwrap(), rung);
    }
}
