//! Limits on what one unit contributes, and the sensitivity they give at each rung.
//!
//! A unit's contribution to a grouped aggregate is a vector, one coordinate a group. What is bounded is either the number
//! of its groups and each coordinate, or its length. How far a statistic moves then follows from how neighbours differ:
//!
//! | bound | add-remove | replace, any signs | replace, v ≥ 0 | replace, same L0 coordinates |
//! |---|---|---|---|---|
//! | at most L0 groups, each in \[lo, hi\] | L0·c, √L0·c | 2·L0·c, max(√(2·L0)·c, √L0·w) | 2·L0·c, √(2·L0)·c | L0·(hi − lo), √L0·(hi − lo) |
//! | ‖v‖2 ≤ ρ | ρ | 2ρ | √2·ρ | 2ρ; ρ if it is one coordinate and v ≥ 0 |
//!
//! The first figure is for ℓ1, the second for ℓ2; c = max(|lo|, |hi|) and w = max(hi, 0) − min(lo, 0). A length says nothing
//! of ℓ1, save on one coordinate. Where a unit may lose all its rows, 0 belongs to \[lo, hi\] in the last column.
//! All are rounded up: integers are squared exactly, and only the root and what follows it rounds.

mod weighted;

pub use weighted::Weighted;

use crate::unit::{Change, Kind, Ladder, Rung};
use serde::{Deserialize, Serialize};
use whit_noise::round::{product_up, root_of_whole_up, root_times_up, sum_up, whole_product_up, whole_up};

/// What is known of the coordinates at which a unit's contribution is not zero.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Support {
    /// Nothing.
    Any,
    /// They are not negative.
    NonNegative,
    /// They are the same for neighbours, because groups are a function of what the unit keeps: of the element
    /// itself, or of public columns. Signs are free.
    Fixed {
        /// Whether a coordinate may also be 0 because it has no rows. Only a feature or label unit, whose rows stay, may
        /// say no; an element can always be emptied.
        may_be_empty: bool,
    },
    /// One coordinate, the same for neighbours, and not negative: a count in the group that is the unit's own.
    Single,
}

/// A limit on what one unit contributes to a grouped aggregate.
///
/// ```
/// use whit_core::{Bound, Change, Support};
/// let visits = Bound::coordinates(3, 0, 1, Support::NonNegative)?;
/// assert_eq!(visits.sensitivity(Change::AddRemove).l1, 3.0);
/// assert_eq!(visits.sensitivity(Change::Replace).l1, 6.0);
/// # Ok::<(), whit_core::bound::BoundError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Bound {
    /// At most so many coordinates, each in a range.
    Coordinates {
        /// The most groups that one unit contributes to: L0.
        groups: u64,
        /// The least value of a coordinate.
        low: i64,
        /// The largest value of a coordinate.
        high: i64,
        /// What is known of the coordinates.
        support: Support,
    },
    /// A length of at most ρ in ℓ2, over any number of coordinates.
    Ball {
        /// The largest length: ρ.
        radius: f64,
        /// What is known of the coordinates.
        support: Support,
    },
    /// Rows that count for so much in each group and in all, and a number of groups that may be known: the proofs stand with [`Weighted`].
    Weighted(Weighted),
}

/// A bound that makes no sense.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum BoundError {
    /// No groups, so no data.
    #[error("a unit that contributes to 0 groups contributes nothing: allow at least 1")]
    NoGroups,
    /// The range is empty.
    #[error("the range {low}..{high} is empty: give the smaller end first")]
    EmptyRange {
        /// What was given as the least value.
        low: i64,
        /// What was given as the largest value.
        high: i64,
    },
    /// A range with negative values for coordinates that were said to have none.
    #[error(
        "the range {low}..{high} has negative values, and its coordinates are said to have none: start it at 0 or allow any signs"
    )]
    Negative {
        /// The least value.
        low: i64,
        /// The largest value.
        high: i64,
    },
    /// More than one group for a single coordinate.
    #[error("a single coordinate is one group, and {0} were allowed: allow 1, or say that the support is fixed")]
    NotSingle(u64),
    /// Not a length.
    #[error("the radius is {0}, but a length is finite and at least 0")]
    Radius(f64),
    /// No clusters, or one without items.
    #[error("each cluster holds at least 1 item, and there is at least 1 cluster: leave empty ones out")]
    NoItems,
}

impl Bound {
    /// At most `groups` coordinates, each in `low..=high`.
    pub fn coordinates(groups: u64, low: i64, high: i64, support: Support) -> Result<Self, BoundError> {
        Self::Coordinates { groups, low, high, support }.validated()
    }

    /// A length of at most `radius`.
    ///
    /// ```
    /// use whit_core::{Bound, Change, Support};
    /// let gradient = Bound::ball(1.0, Support::Any)?;
    /// assert_eq!(gradient.sensitivity(Change::Replace).l2, 2.0);
    /// assert!(Bound::ball(f64::NAN, Support::Any).is_err());
    /// # Ok::<(), whit_core::bound::BoundError>(())
    /// ```
    pub fn ball(radius: f64, support: Support) -> Result<Self, BoundError> {
        Self::Ball { radius, support }.validated()
    }

    /// Whether the numbers can be meant. Bounds that come from a file are checked with this before they are used.
    pub fn validated(self) -> Result<Self, BoundError> {
        match self {
            Self::Coordinates { groups: 0, .. } | Self::Weighted(Weighted { groups: 0, .. }) => {
                Err(BoundError::NoGroups)
            }
            Self::Coordinates { low, high, .. } | Self::Weighted(Weighted { low, high, .. }) if low > high => {
                Err(BoundError::EmptyRange { low, high })
            }
            Self::Coordinates { low, high, support: Support::NonNegative | Support::Single, .. }
            | Self::Weighted(Weighted { low, high, support: Support::NonNegative | Support::Single, .. })
                if low < 0 =>
            {
                Err(BoundError::Negative { low, high })
            }
            Self::Coordinates { groups, support: Support::Single, .. }
            | Self::Weighted(Weighted { groups, support: Support::Single, .. })
                if groups > 1 =>
            {
                Err(BoundError::NotSingle(groups))
            }
            Self::Ball { radius, .. } if !(radius.is_finite() && radius >= 0.0) => Err(BoundError::Radius(radius)),
            Self::Coordinates { .. } | Self::Ball { .. } | Self::Weighted(_) => Ok(self),
        }
    }

    /// How far one unit moves the statistic, rounded up: the table of this module.
    ///
    /// A bound that is not [valid](Bound::validated) never gets too small an answer.
    pub fn sensitivity(&self, change: Change) -> Sensitivity {
        match *self {
            Self::Coordinates { groups, low, high, support } => coordinates(groups, low, high, support, change),
            Self::Ball { radius, support } => ball(radius, support, change),
            Self::Weighted(weighted) => weighted.sensitivity(change),
        }
    }

    /// How far one unit of each rung moves the statistic, when it is the protected unit's contribution that is bounded.
    ///
    /// Never more than [`Sensitivity::at`], which knows no more than how many protected units move. This one knows
    /// that a unit that comes or goes moves a sum by its contribution and not by a replacement, and that where one user's k
    /// elements make room for k others, each pair of them moves a sum no further than one replacement does, unless the
    /// bound leans on the elements' identities.
    ///
    /// ```
    /// use whit_core::{Bound, Change, Ladder, Support, Unit};
    /// use whit_core::unit::{Caps, Kind};
    /// let caps = Caps { elements_per_user: Some(8), rows_per_element: None };
    /// let units = vec![Unit::element("author", "word"), Unit::user("author", Change::Replace)];
    /// let ladder = Ladder::new(units, caps, Kind::Element)?.element_wise()?;
    /// let count = Bound::coordinates(1, 0, 1, Support::Single)?;
    /// assert_eq!(count.on(&ladder)[0].l2, 1.0);
    /// assert_eq!(count.on(&ladder)[1].l2, 4.0); // √16: eight words go, eight other words come
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn on(&self, ladder: &Ladder) -> Vec<Sensitivity> {
        let protected = ladder.protected();
        let one = self.sensitivity(protected.unit.change());
        let alone = self.sensitivity(Change::AddRemove);
        let step = |(rung, &held): (&Rung, &u64)| {
            let side = Rung { holds: held, ..rung.clone() };
            match rung.unit.change() {
                Change::AddRemove => alone.at(&side),
                Change::Replace if rung.unit == protected.unit => one,
                Change::Replace => match (protected.unit.kind(), self.support()) {
                    (Kind::Feature | Kind::Label, _) => one.at(rung), // all rows stay
                    (Kind::Event | Kind::User, _) => one.max(alone).at(rung), // rows may go, whatever the bound says
                    (Kind::Element, Support::Any | Support::NonNegative) => one.at(&side),
                    // s elements stay and change, at most 2(k − s) come or go: the worst is at one end. Where there are
                    // fewer than 2k elements, each of them moves by the worse of the two.
                    (Kind::Element, Support::Fixed { .. } | Support::Single) => {
                        let twice = Rung { holds: held.saturating_mul(2), ..rung.clone() };
                        one.at(&side).max(alone.at(&twice)).min(one.max(alone).at(rung))
                    }
                },
            }
        };
        ladder.rungs().iter().zip(ladder.held()).map(step).collect()
    }

    fn support(&self) -> Support {
        match *self {
            Self::Coordinates { support, .. }
            | Self::Ball { support, .. }
            | Self::Weighted(Weighted { support, .. }) => support,
        }
    }
}

fn coordinates(groups: u64, low: i64, high: i64, support: Support, change: Change) -> Sensitivity {
    let (low, high) = (i128::from(low.min(high)), i128::from(low.max(high)));
    let largest = low.unsigned_abs().max(high.unsigned_abs()); // c
    let with_zero = (high.max(0) - low.min(0)).unsigned_abs(); // w
    let one_sided =
        |size| Sensitivity { l1: whole_product_up(groups.into(), size), l2: root_times_up(groups.into(), size) };
    match (change, support) {
        (Change::AddRemove, _) => one_sided(largest),
        // Where s groups coincide, ℓ2² is at most s·w² + 2(L0 − s)·c², which is largest at s = 0 or s = L0.
        (Change::Replace, Support::Any | Support::NonNegative) => {
            let apart = root_times_up(2 * u128::from(groups), largest);
            Sensitivity {
                l1: whole_product_up(2 * u128::from(groups), largest),
                l2: apart.max(one_sided(with_zero).l2),
            }
        }
        (Change::Replace, Support::Fixed { may_be_empty: false }) => one_sided((high - low).unsigned_abs()),
        (Change::Replace, Support::Fixed { may_be_empty: true } | Support::Single) => one_sided(with_zero),
    }
}

fn ball(radius: f64, support: Support, change: Change) -> Sensitivity {
    let radius = if radius >= 0.0 { radius } else { f64::INFINITY }; // not a length: no bound
    let l1 = if radius == 0.0 { 0.0 } else { f64::INFINITY };
    match (change, support) {
        (Change::AddRemove | Change::Replace, Support::Single) => Sensitivity { l1: radius, l2: radius },
        (Change::AddRemove, Support::Any | Support::NonNegative | Support::Fixed { .. }) => {
            Sensitivity { l1, l2: radius }
        }
        (Change::Replace, Support::NonNegative) => Sensitivity { l1, l2: product_up(radius, root_of_whole_up(2)) },
        (Change::Replace, Support::Any | Support::Fixed { .. }) => Sensitivity { l1, l2: 2.0 * radius },
    }
}

/// How far one unit moves a statistic, rounded up. Infinite where nothing bounds it.
///
/// ```
/// use whit_core::{Change, Rung, Sensitivity, Unit};
/// let rung = Rung { unit: Unit::user("author", Change::AddRemove), holds: 9, disjoint: true, slices: None };
/// let word = Sensitivity { l1: 1.0, l2: 1.0 };
/// assert_eq!(word.at(&rung), Sensitivity { l1: 9.0, l2: 3.0 });
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Sensitivity {
    /// The sum of how far each coordinate moves.
    pub l1: f64,
    /// The length of that movement.
    pub l2: f64,
}

impl Sensitivity {
    /// The sensitivity at a coarser rung, of which one unit moves [`Rung::holds`] protected units.
    #[must_use]
    pub fn at(&self, rung: &Rung) -> Self {
        let times = u128::from(rung.holds);
        let stretch = if rung.disjoint { root_of_whole_up(times) } else { whole_up(times) };
        Self { l1: product_up(self.l1, whole_up(times)), l2: product_up(self.l2, stretch) }
    }

    fn max(self, other: Self) -> Self {
        Self { l1: self.l1.max(other.l1), l2: self.l2.max(other.l2) }
    }

    fn min(self, other: Self) -> Self {
        Self { l1: self.l1.min(other.l1), l2: self.l2.min(other.l2) }
    }
}

/// A histogram over items in clusters, each cluster's counts scaled into a ball: what one element (a user's items in one
/// cluster) and one user move it by.
///
/// Counts are not negative, so two blocks of a cluster with two items or more may be √2·ρ apart (all weight on one
/// item, or all on another), and blocks of a single item at most ρ.
///
/// ```
/// use whit_core::{Change, bound::Clusters};
/// let words = Clusters::new(vec![1, 1, 3], 2.0)?;
/// assert_eq!(words.user(Change::Replace).l2, 4.0); // 2·√(1 + 1 + 2)
/// assert_eq!(words.element(Change::AddRemove).l2, 2.0);
/// # Ok::<(), whit_core::bound::BoundError>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Clusters {
    sizes: Vec<u64>,
    radius: f64,
}

impl Clusters {
    /// Clusters of so many items each, and the radius ρ to which each block is scaled.
    pub fn new(sizes: Vec<u64>, radius: f64) -> Result<Self, BoundError> {
        Bound::ball(radius, Support::NonNegative)?;
        if sizes.is_empty() || sizes.contains(&0) { Err(BoundError::NoItems) } else { Ok(Self { sizes, radius }) }
    }

    /// How far one user's block in the cluster of that number moves the sum. Under `add-remove` its content is there or not.
    pub fn block(&self, cluster: usize, change: Change) -> Option<Sensitivity> {
        self.sizes.get(cluster).map(|&size| self.of_size(size, change))
    }

    /// The same for the worst cluster.
    pub fn element(&self, change: Change) -> Sensitivity {
        let worst = self.sizes.iter().copied().max().unwrap_or(1);
        self.of_size(worst, change)
    }

    /// How far one user's blocks in all clusters move the sum.
    pub fn user(&self, change: Change) -> Sensitivity {
        let weight = |size: &u64| match change {
            Change::AddRemove => 1,
            Change::Replace => u128::from((*size).min(2)),
        };
        let l1 = self.sizes.iter().fold(0.0, |sum, &size| sum_up(sum, self.of_size(size, change).l1));
        Sensitivity { l1, l2: product_up(self.radius, root_of_whole_up(self.sizes.iter().map(weight).sum())) }
    }

    fn of_size(&self, size: u64, change: Change) -> Sensitivity {
        let half = u128::from(size / 2);
        let (spread, length) = match change {
            Change::AddRemove => (root_of_whole_up(size.into()), 1.0),
            // One block may have all of some p items and the other all of the rest: √p + √(size − p), largest in the middle.
            Change::Replace => (
                sum_up(root_of_whole_up(half), root_of_whole_up(u128::from(size) - half)),
                root_of_whole_up(size.min(2).into()),
            ),
        };
        Sensitivity { l1: product_up(self.radius, spread), l2: product_up(self.radius, length) }
    }
}

/// For each item of a dictionary the number of users who have it, each user with at most so many different items.
///
/// ```
/// use whit_core::{Change, bound::HeavyHitters};
/// let words = HeavyHitters { items_per_user: 8, dictionary: 400_000 };
/// assert_eq!(words.user(Change::Replace).l2, 4.0); // √(2m): eight items go, eight others come
/// assert_eq!(words.element().l2, 1.0);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HeavyHitters {
    /// The most different items of one user: m.
    pub items_per_user: u64,
    /// How many items there are: d.
    pub dictionary: u64,
}

impl HeavyHitters {
    /// One user has one item, or has it not.
    pub fn element(&self) -> Sensitivity {
        Sensitivity { l1: 1.0, l2: 1.0 }
    }

    /// One user's items are there or not, or become others.
    pub fn user(&self, change: Change) -> Sensitivity {
        let sides = match change {
            Change::AddRemove => 1,
            Change::Replace => 2,
        };
        let moved = (sides * u128::from(self.items_per_user)).min(self.dictionary.into());
        Sensitivity { l1: whole_up(moved), l2: root_of_whole_up(moved) }
    }
}

#[cfg(test)]
mod tests;
