//! Small data sets, how far apart they are under a unit, and all neighbours of one.
//!
//! This is the meaning of each unit as code, for tests and audits: whoever claims that two data sets are neighbours can
//! ask [`distance`] for 1, and whoever needs neighbours to try a claim on can take them from [`neighbours`].
//!
//! A data set is a bag of rows: their order does not matter, and equal rows count as often as they stand there.
//!
//! | unit | one step | not reachable |
//! |---|---|---|
//! | event, user; add-remove | one unit's rows, whichever they are, come or go together | |
//! | event, user; replace | one of n places is given to another unit, or to none, or is taken from none | another n |
//! | element | the rows of one user in one element become any others of that user in that element, or none, or some from none | another n, where it is stated |
//! | feature, label | the private columns of one row (or of all rows with one key) become any others | a public column, a key or the number of rows differs |
//!
//! Under `replace` the number n of units is public, so it is a part of the data set: [`Rows::with_places`] states it, and
//! a unit that has a place and no rows is not seen. Without it every unit is taken to be seen.
//! "None" must be possible for an event too: else no number of replaced events would make an element that loses a
//! row, and nothing could be said of coarser rungs.

use super::{Change, Kind, Unit};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

type Row = Vec<i64>;
type Bag = Vec<Row>; // kept sorted, so that equal bags are equal vectors

/// A data set that is small enough to look at: named columns of small integers.
///
/// ```
/// use whit_core::{Change, Unit};
/// use whit_core::unit::{Rows, distance};
/// let before = Rows::new(&["author", "word"], vec![vec![1, 7], vec![1, 7], vec![1, 8]])?;
/// let after = Rows::new(&["author", "word"], vec![vec![1, 8]])?;
/// assert_eq!(distance(&Unit::element("author", "word"), &before, &after)?, Some(1));
/// assert_eq!(distance(&Unit::event(Change::AddRemove), &before, &after)?, Some(2));
/// # Ok::<(), whit_core::unit::RowsError>(())
/// ```
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Rows {
    columns: Vec<String>,
    bag: Bag,
    places: Option<u64>,
}

/// A small data set, or a question about one, that makes no sense.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RowsError {
    /// A row, or a domain, is too short or too long.
    #[error("there are {columns} columns and {found} values for them: give one for each")]
    Width {
        /// How many columns there are.
        columns: usize,
        /// How many values were found.
        found: usize,
    },
    /// The unit speaks of a column that is not there.
    #[error("the unit `{unit}` needs a column `{column}`, and the rows have none of that name: add it or name another")]
    NoColumn {
        /// The unit.
        unit: Unit,
        /// The column that it names.
        column: String,
    },
    /// Two data sets with different columns.
    #[error("data sets are compared column by column, and these have different ones: give both the same, in one order")]
    Columns,
    /// More units than there is room for.
    #[error("{seen} units have rows and only {places} places were stated: state at least as many")]
    Places {
        /// How many units have rows.
        seen: u64,
        /// How many were said to be there.
        places: u64,
    },
}

impl Rows {
    /// Takes rows with one value for each column.
    pub fn new(columns: &[&str], rows: Vec<Vec<i64>>) -> Result<Self, RowsError> {
        if let Some(row) = rows.iter().find(|row| row.len() != columns.len()) {
            return Err(RowsError::Width { columns: columns.len(), found: row.len() });
        }
        let columns = columns.iter().map(|&name| name.to_owned()).collect();
        Ok(Self { columns, bag: sorted(rows), places: None })
    }

    /// States n, the number of units that are public under `replace`; those that are not seen hold no rows.
    #[must_use]
    pub fn with_places(self, places: u64) -> Self {
        Self { places: Some(places), ..self }
    }

    /// The names of the columns.
    pub fn columns(&self) -> &[String] {
        &self.columns
    }

    /// The rows, sorted.
    pub fn rows(&self) -> &[Vec<i64>] {
        &self.bag
    }

    /// The units that have rows, each as its rows, sorted.
    pub fn units(&self, unit: &Unit) -> Result<Vec<Vec<Vec<i64>>>, RowsError> {
        Ok(UnitColumns::of(unit, self)?.pieces(&self.bag))
    }

    fn places(&self, seen: usize) -> Result<u64, RowsError> {
        let seen = seen as u64;
        match self.places {
            Some(places) if places < seen => Err(RowsError::Places { seen, places }),
            stated => Ok(stated.unwrap_or(seen)),
        }
    }

    fn with_rows(&self, rows: Bag, places: Option<u64>) -> Self {
        Self { columns: self.columns.clone(), bag: sorted(rows), places }
    }
}

/// Says how many rows there are, and nothing of what is in them.
impl fmt::Debug for Rows {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Rows").field("columns", &self.columns).field("rows", &self.bag.len()).finish_non_exhaustive()
    }
}

fn sorted(mut rows: Bag) -> Bag {
    rows.sort_unstable();
    rows
}

/// Where a unit's columns stand in the rows.
struct UnitColumns {
    key: Vec<usize>,
    /// What neighbours agree on, row by row: the key and the public columns of a feature or label unit.
    kept: Vec<usize>,
}

impl UnitColumns {
    fn of(unit: &Unit, rows: &Rows) -> Result<Self, RowsError> {
        let find = |column: &str| {
            let missing = || RowsError::NoColumn { unit: unit.clone(), column: column.to_owned() };
            rows.columns.iter().position(|name| name == column).ok_or_else(missing)
        };
        let key = unit.key().iter().map(|column| find(column)).collect::<Result<_, _>>()?;
        for column in unit.public().iter().map(String::as_str).chain(unit.label_column()) {
            find(column)?;
        }
        let kept = (0..rows.columns.len()).filter(|&i| unit.is_public(&rows.columns[i])).collect();
        Ok(Self { key, kept })
    }

    /// The rows of each unit: one bag for each key, or for each row where there is no key.
    fn pieces(&self, rows: &[Row]) -> Vec<Bag> {
        if self.key.is_empty() {
            return rows.iter().map(|row| vec![row.clone()]).collect();
        }
        let mut groups: BTreeMap<Row, Bag> = BTreeMap::new();
        for row in rows {
            groups.entry(project(row, &self.key)).or_default().push(row.clone());
        }
        let mut pieces: Vec<Bag> = groups.into_values().collect();
        pieces.sort_unstable();
        pieces
    }
}

fn project(row: &[i64], columns: &[usize]) -> Row {
    columns.iter().map(|&i| row[i]).collect()
}

/// How many entries two sorted lists have in common, each counted as often as it stands in both.
fn shared<T: Ord>(a: &[T], b: &[T]) -> u64 {
    let (mut i, mut j, mut count) = (0, 0, 0);
    while i < a.len() && j < b.len() {
        match a[i].cmp(&b[j]) {
            std::cmp::Ordering::Less => i += 1,
            std::cmp::Ordering::Greater => j += 1,
            std::cmp::Ordering::Equal => (i, j, count) = (i + 1, j + 1, count + 1),
        }
    }
    count
}

/// The least number of units that must change to turn `a` into `b`; `None` if no number of them does.
///
/// It is a metric: the length of the shortest walk from neighbour to neighbour.
pub fn distance(unit: &Unit, a: &Rows, b: &Rows) -> Result<Option<u64>, RowsError> {
    if a.columns != b.columns {
        return Err(RowsError::Columns);
    }
    let layout = UnitColumns::of(unit, a)?;
    let (in_a, in_b) = (layout.pieces(&a.bag), layout.pieces(&b.bag));
    let same = shared(&in_a, &in_b);
    let (size_a, size_b) = (in_a.len() as u64, in_b.len() as u64);
    Ok(match (unit.kind(), unit.change()) {
        (Kind::Event | Kind::User, Change::AddRemove) => Some(size_a + size_b - 2 * same),
        // Units that agree keep their places; each other place of the fuller side must change hands once.
        (Kind::Event | Kind::User, Change::Replace) => {
            (a.places(in_a.len())? == b.places(in_b.len())?).then_some(size_a.max(size_b) - same)
        }
        // Keys are never exchanged: each one at which the two differ is a step.
        (Kind::Element, Change::AddRemove | Change::Replace) => {
            let keys =
                |pieces: &[Bag]| -> BTreeSet<Row> { pieces.iter().map(|p| project(&p[0], &layout.key)).collect() };
            (a.places == b.places).then_some(keys(&in_a).union(&keys(&in_b)).count() as u64 - same)
        }
        (Kind::Feature | Kind::Label, Change::AddRemove | Change::Replace) => {
            let view = |rows: &Rows| sorted(rows.bag.iter().map(|row| project(row, &layout.kept)).collect());
            (a.places == b.places && view(a) == view(b)).then_some(size_a - same)
        }
    })
}

/// Whether the two differ in exactly one unit.
pub fn are_neighbours(unit: &Unit, a: &Rows, b: &Rows) -> Result<bool, RowsError> {
    Ok(distance(unit, a, b)? == Some(1))
}

/// The values that each column may take, and the most rows that one user or element may have, so that there are
/// finitely many data sets to try.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Domain {
    /// For each column, in order, the values that it may take.
    pub values: Vec<Vec<i64>>,
    /// The most rows that an element's or a user's rows may become.
    pub rows_per_unit: usize,
}

impl Domain {
    /// Every row of the domain that agrees with `row` on the columns in `kept`.
    fn rows_like(&self, row: &[i64], kept: &[usize]) -> Bag {
        self.values.iter().enumerate().fold(vec![Row::new()], |prefixes, (column, values)| {
            let values = if kept.contains(&column) { std::slice::from_ref(&row[column]) } else { values.as_slice() };
            let longer = |prefix: Row| {
                values.iter().map(move |&value| {
                    let mut next = prefix.clone();
                    next.push(value);
                    next
                })
            };
            prefixes.into_iter().flat_map(longer).collect()
        })
    }

    /// What a unit may consist of, never nothing: one row, or up to [`Domain::rows_per_unit`] rows of one key.
    fn alternatives(&self, key: &[usize]) -> Vec<Bag> {
        let rows = self.rows_like(&[], &[]);
        if key.is_empty() {
            return rows.into_iter().map(|row| vec![row]).collect();
        }
        let mut by_key: BTreeMap<Row, Bag> = BTreeMap::new();
        for row in rows {
            by_key.entry(project(&row, key)).or_default().push(row);
        }
        by_key.values().flat_map(|rows| bags(rows, self.rows_per_unit)).filter(|bag| !bag.is_empty()).collect()
    }
}

/// All bags of at most `most` of these rows.
fn bags(rows: &[Row], most: usize) -> Vec<Bag> {
    let mut all = vec![(0, Bag::new())];
    let mut done = 0;
    while done < all.len() {
        let (first, bag) = all[done].clone();
        done += 1;
        if bag.len() < most {
            for (i, row) in rows.iter().enumerate().skip(first) {
                let mut larger = bag.clone();
                larger.push(row.clone());
                all.push((i, larger));
            }
        }
    }
    all.into_iter().map(|(_, bag)| bag).collect()
}

/// Every neighbour of `rows` whose changed unit lies in `domain`, each once.
///
/// ```
/// use whit_core::{Change, Unit};
/// use whit_core::unit::{Domain, Rows, are_neighbours, neighbours};
/// let rows = Rows::new(&["id", "ill"], vec![vec![1, 0], vec![2, 1]])?;
/// let domain = Domain { values: vec![vec![1, 2, 3], vec![0, 1]], rows_per_unit: 1 };
/// let label = Unit::label(&[], "ill");
/// assert_eq!(neighbours(&label, &rows, &domain)?.len(), 2);
/// let user = Unit::user("id", Change::AddRemove);
/// for other in neighbours(&user, &rows, &domain)? {
///     assert!(are_neighbours(&user, &rows, &other)?);
/// }
/// # Ok::<(), whit_core::unit::RowsError>(())
/// ```
pub fn neighbours(unit: &Unit, rows: &Rows, domain: &Domain) -> Result<Vec<Rows>, RowsError> {
    if domain.values.len() != rows.columns.len() {
        return Err(RowsError::Width { columns: rows.columns.len(), found: domain.values.len() });
    }
    let layout = UnitColumns::of(unit, rows)?;
    let pieces = layout.pieces(&rows.bag);
    let without = |i: usize| -> Vec<Bag> { pieces[..i].iter().chain(&pieces[i + 1..]).cloned().collect() };
    let key_of = |bag: &Bag| project(&bag[0], &layout.key);
    // A key belongs to one unit only; units without a key, which are single rows, may be equal.
    let free = |rest: &[Bag], bag: &Bag| layout.key.is_empty() || rest.iter().all(|other| key_of(other) != key_of(bag));
    let mut found = BTreeSet::new();
    match (unit.kind(), unit.change()) {
        (Kind::Event | Kind::User, Change::AddRemove) => {
            found.extend((0..pieces.len()).map(|i| rows.with_rows(without(i).concat(), rows.places)));
            for bag in domain.alternatives(&layout.key).into_iter().filter(|bag| free(&pieces, bag)) {
                found.insert(rows.with_rows([rows.bag.clone(), bag].concat(), rows.places));
            }
        }
        (Kind::Event | Kind::User, Change::Replace) => {
            let places = rows.places(pieces.len())?;
            let mut rests: Vec<Vec<Bag>> = (0..pieces.len()).map(without).collect();
            if places > pieces.len() as u64 {
                rests.push(pieces.clone());
            }
            let alternatives = domain.alternatives(&layout.key);
            for rest in rests {
                found.insert(rows.with_rows(rest.concat(), Some(places)));
                for bag in alternatives.iter().filter(|bag| free(&rest, bag)) {
                    found.insert(rows.with_rows([rest.concat(), bag.clone()].concat(), Some(places)));
                }
            }
        }
        (Kind::Element, Change::AddRemove | Change::Replace) => {
            for bag in domain.alternatives(&layout.key) {
                let rest: Vec<Bag> = pieces.iter().filter(|other| key_of(other) != key_of(&bag)).cloned().collect();
                found.insert(rows.with_rows([rest.concat(), bag].concat(), rows.places));
            }
            found.extend((0..pieces.len()).map(|i| rows.with_rows(without(i).concat(), rows.places)));
        }
        (Kind::Feature | Kind::Label, Change::AddRemove | Change::Replace) => {
            for (i, piece) in pieces.iter().enumerate() {
                let mut variants = vec![Bag::new()];
                for row in piece {
                    let rows_like = domain.rows_like(row, &layout.kept);
                    let extend = |bag: &Bag, row: &Row| [bag.as_slice(), std::slice::from_ref(row)].concat();
                    variants =
                        variants.iter().flat_map(|bag| rows_like.iter().map(move |row| extend(bag, row))).collect();
                }
                for bag in variants {
                    found.insert(rows.with_rows([without(i).concat(), bag].concat(), rows.places));
                }
            }
        }
    }
    Ok(found.into_iter().filter(|other| other.bag != rows.bag).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    const COLUMNS: [&str; 3] = ["user", "element", "value"];

    fn domain() -> Domain {
        Domain { values: vec![vec![0, 1]; 3], rows_per_unit: 3 }
    }

    fn rows(rows: &[[i64; 3]]) -> Rows {
        Rows::new(&COLUMNS, rows.iter().map(|row| row.to_vec()).collect()).unwrap()
    }

    /// Every data set of at most three of the eight rows: 165 of them.
    fn all(places: u64) -> Vec<Rows> {
        let rows = domain().rows_like(&[], &[]);
        bags(&rows, 3).into_iter().map(|bag| Rows::new(&COLUMNS, bag).unwrap().with_places(places)).collect()
    }

    fn units() -> Vec<Unit> {
        vec![
            Unit::event(Change::AddRemove),
            Unit::event(Change::Replace),
            Unit::element("user", "element"),
            Unit::feature(&[], &["user", "element"]),
            Unit::feature(&["user"], &["element"]),
            Unit::feature(&[], &[]),
            Unit::label(&[], "value"),
            Unit::label(&["user"], "element"),
            Unit::user("user", Change::AddRemove),
            Unit::user("user", Change::Replace),
        ]
    }

    /// The generator and the formula were written apart; walks through all neighbours are the judge of both.
    #[test]
    fn the_distance_is_the_length_of_the_shortest_walk_from_neighbour_to_neighbour() {
        for unit in units() {
            let sets = all(3);
            let index: BTreeMap<&Rows, usize> = sets.iter().enumerate().map(|(i, set)| (set, i)).collect();
            let steps: Vec<Vec<usize>> = sets
                .iter()
                .map(|set| {
                    neighbours(&unit, set, &domain()).unwrap().iter().filter_map(|n| index.get(n).copied()).collect()
                })
                .collect();
            for (from, start) in sets.iter().enumerate() {
                let mut walk = vec![None; sets.len()];
                walk[from] = Some(0_u64);
                let mut queue = std::collections::VecDeque::from([from]);
                while let Some(here) = queue.pop_front() {
                    for &next in &steps[here] {
                        if walk[next].is_none() {
                            walk[next] = walk[here].map(|length| length + 1);
                            queue.push_back(next);
                        }
                    }
                }
                for (to, length) in walk.iter().enumerate() {
                    let found = distance(&unit, start, &sets[to]).unwrap();
                    assert_eq!(found, *length, "{unit}: {:?} to {:?}", start.bag, sets[to].bag);
                }
            }
        }
    }

    #[test]
    fn the_distance_is_a_metric() {
        for unit in units() {
            let sets: Vec<Rows> = all(3).into_iter().filter(|set| set.bag.len() <= 2).collect();
            let table: Vec<Vec<Option<u64>>> =
                sets.iter().map(|a| sets.iter().map(|b| distance(&unit, a, b).unwrap()).collect()).collect();
            for i in 0..sets.len() {
                for j in 0..sets.len() {
                    assert_eq!(table[i][j] == Some(0), i == j, "{unit}");
                    assert_eq!(table[i][j], table[j][i], "{unit}");
                    for through in &table {
                        if let (Some(first), Some(second)) = (through[i], through[j]) {
                            assert!(table[i][j].unwrap() <= first + second, "{unit}");
                        }
                    }
                }
            }
        }
    }

    #[test]
    fn all_that_is_generated_is_one_step_away() {
        for unit in units() {
            for set in all(4) {
                for other in neighbours(&unit, &set, &domain()).unwrap() {
                    assert!(are_neighbours(&unit, &set, &other).unwrap(), "{unit}");
                }
            }
        }
    }

    #[test]
    fn a_partition_with_one_element_makes_the_element_the_user() {
        let element = Unit::element("user", "element");
        let user = Unit::user("user", Change::Replace);
        let sets: Vec<Rows> = all(2).into_iter().filter(|set| set.bag.iter().all(|row| row[1] == 0)).collect();
        let users = |set: &Rows| -> BTreeSet<i64> { set.bag.iter().map(|row| row[0]).collect() };
        for a in &sets {
            for b in &sets {
                let (fine, coarse) =
                    (distance(&element, a, b).unwrap().unwrap(), distance(&user, a, b).unwrap().unwrap());
                assert!(coarse <= fine);
                // Who is there is kept by an element and not by a user; where nobody took another's place they agree.
                if users(a).is_subset(&users(b)) || users(b).is_subset(&users(a)) {
                    assert_eq!(fine, coarse);
                }
            }
        }
    }

    #[test]
    fn a_partition_with_one_element_a_row_makes_the_element_the_event() {
        let element = Unit::element("user", "element");
        let event = Unit::event(Change::Replace);
        let ids = |set: &Rows| -> Vec<(i64, i64)> { set.bag.iter().map(|row| (row[0], row[1])).collect() };
        let lonely = |set: &Rows| ids(set).windows(2).all(|pair| pair[0] != pair[1]);
        let sets: Vec<Rows> = all(4).into_iter().filter(lonely).collect();
        let mut agreed = 0;
        for a in &sets {
            for b in &sets {
                let (one, other) = (distance(&element, a, b).unwrap(), distance(&event, a, b).unwrap());
                assert!(other <= one);
                if ids(a) == ids(b) {
                    assert_eq!(one, other);
                    agreed += 1;
                }
            }
        }
        assert!(agreed > sets.len());
    }

    #[test]
    fn a_label_moves_within_a_feature_and_a_feature_within_an_event() {
        let chain = [Unit::label(&[], "value"), Unit::feature(&[], &["user"]), Unit::event(Change::Replace)];
        for set in all(3) {
            for pair in chain.windows(2) {
                for other in neighbours(&pair[0], &set, &domain()).unwrap() {
                    assert!(are_neighbours(&pair[1], &set, &other).unwrap(), "{} within {}", pair[0], pair[1]);
                }
            }
        }
    }

    #[test]
    fn what_a_unit_keeps_cannot_be_reached() {
        let (a, b) = (rows(&[[0, 0, 0], [1, 0, 0]]), rows(&[[0, 0, 0], [1, 1, 0]]));
        assert_eq!(distance(&Unit::label(&[], "value"), &a, &b).unwrap(), None);
        assert_eq!(distance(&Unit::feature(&[], &["element"]), &a, &b).unwrap(), None);
        assert_eq!(distance(&Unit::feature(&[], &["user"]), &a, &b).unwrap(), Some(1));
        assert_eq!(distance(&Unit::element("user", "element"), &a, &b).unwrap(), Some(2)); // E9: a token that moves
        let fewer = rows(&[[0, 0, 0]]);
        for unit in [Unit::user("user", Change::Replace), Unit::event(Change::Replace)] {
            assert_eq!(distance(&unit, &a, &fewer).unwrap(), None, "{unit}: n is public");
            let (two, still_two) = (a.clone().with_places(2), fewer.clone().with_places(2));
            assert_eq!(distance(&unit, &two, &still_two).unwrap(), Some(1), "{unit}: but who holds rows is not");
        }
        assert_eq!(distance(&Unit::feature(&[], &[]), &a, &fewer).unwrap(), None, "a feature's row stays");
    }

    #[test]
    fn a_question_that_makes_no_sense_gets_a_sentence() {
        let set = rows(&[[0, 0, 0]]);
        let message = distance(&Unit::user("author", Change::Replace), &set, &set).unwrap_err().to_string();
        assert!(message.contains("`user (author), replace` needs a column `author`"), "{message}");
        assert!(Rows::new(&["a"], vec![vec![1, 2]]).is_err());
        let crowded = rows(&[[0, 0, 0], [1, 0, 0]]).with_places(1);
        assert!(distance(&Unit::event(Change::Replace), &crowded, &crowded).is_err());
        assert!(!format!("{:?}", rows(&[[77, 77, 77]])).contains("77"), "rows are not for logs");
    }
}
