//! Heavy hitters: how many users have each item of a public dictionary (Element-Level DP, mechanism (7)).

use super::noise::{Calibration, EstimateError, rounded};
use super::projected::{ProjectedSums, ProjectionReach, UserProjection, in_l2, least_noise, noise_on};
use super::stored::{StoredEstimate, push_varint, read_varint};
use super::{RowsMoved, Touch, order};
use whit_core::mechanism::SanitiseError;
use whit_core::mechanism::additive::{Additive, Reaches};
use whit_core::{Accuracy, Cost, Mechanism, Persist, Rung, Sealed, Sensitivity, Unit};
use whit_noise::round::{root_of_whole_up, root_up, sum_up};
use whit_noise::{Entropy, Ratio};

/// Steps to one user, as a power of two, where users with many items count for less than one.
const BITS: u32 = 24;

/// How users are counted, item by item: the public part of the mechanism, and how far each unit moves its sums.
///
/// A user with N different items adds 1 to each of them, or √(m/N) where N is more than the cap m: the user's whole
/// vector of presences is projected on the ball of radius √m.
///
/// ```
/// use whit_core::{Change, Unit};
/// use whit_query::estimate::{Touch, hitters::PresenceBound};
/// let words = PresenceBound::new(400_000, Some(50), Touch::Most(1), "author")?;
/// let (word, author) = (Unit::element("author", "word"), Unit::user("author", Change::Replace));
/// assert_eq!(words.sensitivity(&word), Some(1.0));
/// assert_eq!(words.sensitivity(&author), Some(10.0)); // √(2·50): fifty words go, fifty others come
/// # Ok::<(), whit_query::estimate::EstimateError>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct PresenceBound {
    items: u32,
    /// m, where it is less than the number of items.
    cap: Option<u64>,
    touch: Touch,
    user: String,
    /// The most that one item which comes or goes moves a user's vector, squared, in steps.
    flip: u128,
}

impl PresenceBound {
    /// A dictionary of so many items, the most of them for which a user counts fully, how many of them one element can
    /// touch, and the column that tells users apart.
    pub fn new(items: u32, cap: Option<u64>, touch: Touch, user: &str) -> Result<Self, EstimateError> {
        if items == 0 {
            return Err(EstimateError::NoItems);
        }
        if cap == Some(0) || touch == Touch::Most(0) {
            return Err(EstimateError::NoCap);
        }
        let cap = cap.filter(|&cap| cap < u64::from(items));
        let mut bound = Self { items, cap, touch, user: user.to_owned(), flip: 1 };
        bound.flip = bound.worst_flip();
        Ok(bound)
    }

    /// How many items there are.
    pub fn items(&self) -> usize {
        self.items as usize
    }

    /// The most items for which a user counts fully, where that is fewer than there are.
    pub fn cap(&self) -> Option<u64> {
        self.cap
    }

    /// How many lattice steps one user is.
    pub fn steps(&self) -> i64 {
        if self.cap.is_some() { 1 << BITS } else { 1 }
    }

    /// What a user with so many different items adds to each of them, in steps: ⌊2^24·√(m/N)⌋, exactly.
    fn weight(&self, count: u64) -> u128 {
        match self.cap {
            None => 1,
            Some(cap) if count <= cap => 1 << BITS,
            // ⌊√⌊x⌋⌋ = ⌊√x⌋
            Some(cap) => ((u128::from(cap) << (2 * BITS)) / u128::from(count)).isqrt(),
        }
    }

    /// The square of how far one item more moves a user's vector, at worst over all numbers N of items: the new coordinate is
    /// w(N + 1), and N others fall from w(N) to w(N + 1).
    ///
    /// It is computed for m ≤ N < 4m. Below m it is one user's steps, squared: call it S. From 4m on, w(N + 1)² < S/4, and with
    /// ⌊·⌋ a coordinate falls by at most √S·√m/(2N^1.5) + 1, so that N of them add at most S·m/(2N²) + 2N ≤ S/8 + 2N in squares,
    /// and 2N is below S/2 because N has 32 bits and S has 48.
    fn worst_flip(&self) -> u128 {
        let square = (self.steps() as u128).pow(2);
        let Some(cap) = self.cap else { return square };
        let last = u64::from(self.items).min(cap.saturating_mul(4));
        let moved = (cap..last).map(|count| {
            let (old, new) = (self.weight(count), self.weight(count + 1));
            new * new + u128::from(count) * (old - new) * (old - new)
        });
        moved.fold(square, u128::max)
    }

    /// How far one unit moves the sums in ℓ2, in steps, rounded up; nothing where nothing bounds it.
    pub fn distance(&self, unit: &Unit) -> Option<f64> {
        let square = (self.steps() as u128).pow(2);
        let kept = u128::from(self.cap.unwrap_or(u64::from(self.items)));
        // N·w(N)² ≤ m·S because w is rounded down, no coordinate exceeds √S, and nothing is negative: no slack at all.
        let user = |times: u128| root_of_whole_up(square * (times * kept).min(self.items.into()));
        let row = root_of_whole_up(self.flip);
        Some(match RowsMoved::by(unit, &self.user)? {
            RowsMoved::Row => row,
            // Two rows of two users may move one coordinate. Without a cap each moves its own item, and no other.
            RowsMoved::TwoRows if self.cap.is_none() => root_up(2.0),
            RowsMoved::TwoRows => 2.0 * row,
            RowsMoved::Element => match self.touch {
                Touch::Most(1) => row,
                Touch::Most(items) => {
                    // Before rounding at most √items apart, after it at most one step more in each coordinate.
                    let real = root_of_whole_up(square * u128::from(items).min(self.items.into()));
                    let slack = if self.cap.is_some() { root_up(self.items.into()) } else { 0.0 };
                    sum_up(real, slack).min(user(2))
                }
                Touch::Any => user(2),
            },
            RowsMoved::User => user(1),
            RowsMoved::UserReplaced => user(2),
        })
    }

    /// How far one unit moves the counts of users in ℓ2.
    pub fn sensitivity(&self, unit: &Unit) -> Option<f64> {
        self.distance(unit).map(|distance| distance / self.steps() as f64)
    }

    /// Adds up who has what. A pair that stands there twice counts once, and the order of pairs does not matter.
    pub fn gather(&self, mut pairs: Vec<(u64, u32)>) -> Result<ProjectedSums<Self>, EstimateError> {
        if let Some(&(_, item)) = pairs.iter().find(|(_, item)| *item >= self.items) {
            return Err(EstimateError::Item { item, items: self.items() });
        }
        pairs.sort_unstable();
        pairs.dedup();
        ProjectedSums::over(self, pairs.chunk_by(|a, b| a.0 == b.0))
    }
}

impl Reaches for PresenceBound {
    fn at(&self, rung: &Rung) -> Sensitivity {
        in_l2(self.distance(&rung.unit))
    }
}

impl ProjectionReach for PresenceBound {
    fn moved(&self, unit: &Unit) -> Option<f64> {
        self.distance(unit)
    }

    fn covers(&self, other: &Self) -> bool {
        self == other
    }
}

impl UserProjection for &PresenceBound {
    /// Different items, each next to the same user.
    type User<'a> = &'a [(u64, u32)];
    type Reach = PresenceBound;

    fn reach(&self) -> PresenceBound {
        (*self).clone()
    }

    fn coordinates(&self) -> usize {
        self.items()
    }

    fn project(&mut self, user: &[(u64, u32)], mut add: impl FnMut(usize, i64)) {
        let weight = self.weight(user.len() as u64) as i64;
        for (_, item) in user {
            add(*item as usize, weight);
        }
    }
}

/// How many users have each item, plus rounded Gaussian noise.
///
/// # Neighbours
/// Data sets that differ in one unit. With an item (or a part of one) as the element, one user has one item or has it
/// not. Of a user, all items may become others. An event is one row of one user and one item.
///
/// # Claim
/// Neighbours are no easier to tell apart than `N(0, σ²)` and `N(Δ, σ²)`, for every test, where with m items per user and
/// d items in all Δ is
///
/// | unit | Δ |
/// |---|---|
/// | event, add-remove | 1 |
/// | event, replace | √2 without a cap, 2 with one |
/// | element of one item | 1 |
/// | element of c items | √c, and √d lattice steps (of 2⁻²⁴) more with a cap; never more than a user |
/// | user, add-remove | √min(m, d) |
/// | user, replace | √min(2m, d) |
///
/// # Why
/// A user's presences are a 0/1 vector x, and x' differs from it in one coordinate for each item that comes or goes.
/// With a cap, both are projected on the ball of radius √m. Balls are convex, so that ‖π(x) − π(x')‖ ≤ ‖x − x'‖, and
/// what an element moves is not more than it was; a cap that drops items would let others move in (erratum: two
/// coordinates for one). π(x) is x·min(1, √(m/N)) for N items. Its one number is rounded down to a multiple of 2⁻²⁴, so N of them still have a
/// length of at most √m, two users who share nothing are at most √(2m) apart (E8: not √m), no user moves a coordinate by more
/// than 1, and what one item moves is computed exactly over all N, in integers. Rounding moves each coordinate by less
/// than one step, which is where the √d steps of larger elements come from. Rounded noise on integers is post-processing of
/// the continuous Gaussian mechanism.
///
/// # Tried by
/// `no_neighbour_moves_the_sums_further_than_stated`, `a_cap_that_drops_items_is_caught`, `one_item_moves_no_more_than_stated_for_any_number_of_items`,
/// `the_claimed_loss_is_not_exceeded`.
#[derive(Debug, Clone)]
pub struct Hitters {
    noise: Additive<PresenceBound>,
}

impl Hitters {
    /// Noise of this standard deviation, in users.
    pub fn new(bound: PresenceBound, sigma: Ratio) -> Result<Self, EstimateError> {
        let large = || EstimateError::Range { name: "σ", value: sigma.to_f64(), range: "below 2^100" };
        let steps = sigma.times(&Ratio::from(bound.steps() as u64)).ok_or_else(large)?;
        Ok(Self { noise: noise_on(bound.items(), bound, rounded(steps)?) })
    }

    /// The least noise that keeps a promise to a unit.
    pub(crate) fn for_promise(bound: PresenceBound, unit: &Unit, promise: Calibration) -> Result<Self, EstimateError> {
        Ok(Self { noise: least_noise(bound.items(), bound, unit, promise.mu()?)? })
    }

    /// The same as it was when this was drawn, to say how far off that is. Where nobody wrote that down, it is taken to be as it is now.
    pub(super) fn with_noise_of(mut self, drawn: &StoredEstimate<NoisyVector>) -> Self {
        if let Some(law) = drawn.laws().next() {
            self.noise = self.noise.with_law(law.clone());
        }
        self
    }

    /// Reads what a ledger holds of a release.
    pub(super) fn read(bytes: &[u8]) -> Option<StoredEstimate<NoisyVector>> {
        StoredEstimate::read(bytes, 1, NoisyVector::from_bytes)
    }

    /// How users are counted.
    pub fn bound(&self) -> &PresenceBound {
        self.noise.reach()
    }

    /// The standard deviation of the noise, in users.
    pub fn sigma(&self) -> f64 {
        self.noise.deviation() / self.bound().steps() as f64
    }

    /// With this probability the noise on none of `items` counts exceeds this many users.
    pub fn within(&self, confidence: f64, items: usize) -> f64 {
        self.noise.law().all_within(confidence, items) / self.bound().steps() as f64
    }

    /// The items from the most to the least users, the first `top` of them or all.
    ///
    /// Whoever looks at the top has picked the largest of all noisy counts, so there all intervals hold at once, over the
    /// whole dictionary. Without a `top` each holds by itself. Ties are broken by the item's number.
    pub(crate) fn ranking(
        &self,
        noisy: &NoisyVector,
        top: Option<usize>,
        confidence: f64,
        gap: Option<f64>,
    ) -> Ranking {
        let users: Vec<f64> = noisy.0.iter().map(|&steps| steps as f64 / self.bound().steps() as f64).collect();
        let within = self.within(confidence, if top.is_some() { users.len() } else { 1 });
        let items = ranked(&noisy.0, top);
        let rows = items.iter().map(|&item| {
            let users = users[item as usize];
            RankedItem { item, users, low: (users - within).max(0.0), high: (users + within).max(0.0) }
        });
        let gap = gap.unwrap_or_else(|| self.sigma().max(1.0));
        let wrong = order::expected_wrong(&users, &items, self.sigma(), gap);
        let pairs = (items.len() as u64).saturating_mul(items.len().saturating_sub(1) as u64) / 2;
        Ranking { rows: rows.collect(), simultaneous: top.is_some(), wrong, pairs, gap }
    }
}

/// The numbers of the largest values, the largest first; ties by number.
pub(super) fn ranked(noisy: &[i64], top: Option<usize>) -> Vec<u32> {
    let mut items: Vec<u32> = (0..noisy.len() as u32).collect();
    let key = |item: &u32| (std::cmp::Reverse(noisy[*item as usize]), *item);
    if let Some(top) = top.filter(|&top| top < items.len()) {
        if top > 0 {
            items.select_nth_unstable_by_key(top - 1, key);
        }
        items.truncate(top);
    }
    items.sort_unstable_by_key(key);
    items
}

/// An item and how many users have it, with the interval in which the count of the bounded data lies.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct RankedItem {
    /// The item's number.
    pub(crate) item: u32,
    /// The noisy number of users.
    pub(crate) users: f64,
    /// The lower end, never below 0.
    pub(crate) low: f64,
    /// The upper end.
    pub(crate) high: f64,
}

/// Items in their noisy order.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Ranking {
    /// From the most users to the least.
    pub(crate) rows: Vec<RankedItem>,
    /// Whether all intervals hold at once, with the confidence that was asked for.
    pub(crate) simultaneous: bool,
    /// About how many of the pairs below are in the wrong order: an estimate and no bound. See [`order`].
    pub(crate) wrong: f64,
    /// How many pairs of items the order has.
    pub(crate) pairs: u64,
    /// Pairs count as wrong only if their true counts are at least this far apart.
    pub(crate) gap: f64,
}

/// Noisy integers, as a ledger keeps them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NoisyVector(pub Vec<i64>);

impl Persist for NoisyVector {
    /// The length and each number as a varint: seven bits a byte, small numbers of either sign first.
    fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(self.0.len() * 2 + 8);
        push_varint(&mut bytes, self.0.len() as u64);
        for &value in &self.0 {
            push_varint(&mut bytes, (value.cast_unsigned() << 1) ^ (value >> 63).cast_unsigned());
        }
        bytes
    }
}

impl NoisyVector {
    /// Reads what [`Persist::to_bytes`] wrote, and nothing else.
    pub(crate) fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let mut rest = bytes;
        let found = Self::read(&mut rest)?;
        rest.is_empty().then_some(found)
    }

    /// Takes a vector from the front.
    pub(super) fn read(rest: &mut &[u8]) -> Option<Self> {
        let length = read_varint(rest)?;
        // Each number takes a byte or more, so a length that lies is found out before it is believed.
        let mut values = Vec::new();
        for _ in 0..length {
            let coded = read_varint(rest)?;
            values.push((coded >> 1).cast_signed() ^ -(coded & 1).cast_signed());
        }
        Some(Self(values))
    }
}

impl Mechanism for Hitters {
    type Exact = ProjectedSums<PresenceBound>;
    type Noisy = StoredEstimate<NoisyVector>;

    fn cost(&self, rung: &Rung) -> Cost {
        self.noise.cost(rung)
    }

    fn sanitise(&self, exact: &Self::Exact, entropy: &mut dyn Entropy) -> Result<Sealed<Self::Noisy>, SanitiseError> {
        let noisy = exact.with_noise(&self.noise, entropy)?;
        Ok(Sealed::new(StoredEstimate::new(NoisyVector(noisy), [self.noise.law()])))
    }

    /// The error of the worst item, in lattice steps.
    fn accuracy(&self, confidence: f64) -> Accuracy {
        self.noise.accuracy(confidence)
    }
}

#[cfg(test)]
mod tests;
