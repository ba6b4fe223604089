//! Histograms over items in clusters (Element-Level DP, mechanism (9)), with the sensitivity that is right for each cluster.

use super::hitters::{NoisyVector, ranked};
use super::noise::{Calibration, EstimateError, gaussian, over};
use super::norms::{BINS, CutOff, NormBound};
use super::projected::{ProjectedSums, ProjectionReach, UserProjection, in_l2, least_noise};
use super::stored::StoredEstimate;
use super::tokens::{Items, Tokens, User};
use super::{RowsMoved, Touch};
use crate::error::QueryError;
pub use crate::plan::call::Radius;
use std::sync::Arc;
use whit_account::accountant::gdp;
use whit_account::normal::upper_quantile;
use whit_core::mechanism::SanitiseError;
use whit_core::mechanism::additive::{Additive, Law, Reaches};
use whit_core::{Accuracy, Cost, Mechanism, Persist, Rung, Sealed, Sensitivity, Unit};
use whit_noise::Entropy;
use whit_noise::round::{product_up, quotient_down, quotient_up, root_of_whole_up, root_up};

/// Steps to the distance that one element moves its block, as a power of two.
const BITS: u32 = 30;

/// The share of the allowed error that is the noise's where users are set aside; the rest is that of their choice.
const NOISE: f64 = 0.5;

/// How noise is spread over clusters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Spread {
    /// Each cluster gets what its own shape needs: √2 times less where it has a single item. All cost an element the same.
    PerCluster,
    /// All get the same: cheaper for a user who has items in many clusters of one item.
    Even,
}

/// How blocks are bounded and added up: the public part of the mechanism.
///
/// In units of `radius · w`, with w = 1 for a cluster of one item (if noise is spread [per cluster](Spread::PerCluster), or if there
/// are no others) and w = √2 else, no element moves its block further than 1. Everything is counted in these units.
#[derive(Debug, Clone, PartialEq)]
pub struct BlockBound {
    items: Arc<Items>,
    cap: Option<u64>,
    touch: Touch,
    user: String,
    /// The value of one unit of weight: 1 for counts.
    unit: f64,
    /// The most units of weight that one row has.
    row: u64,
    /// Whether clusters of one item count in units of the radius.
    finer: bool,
    /// How many clusters have one item.
    singles: u64,
}

impl BlockBound {
    /// Counts of items in clusters; the most clusters for which a user counts fully, how many clusters one element can
    /// touch, and the column that tells users apart.
    pub fn new(
        items: Arc<Items>,
        cap: Option<u64>,
        touch: Touch,
        user: &str,
        spread: Spread,
    ) -> Result<Self, EstimateError> {
        if cap == Some(0) || touch == Touch::Most(0) {
            return Err(EstimateError::NoCap);
        }
        let singles = items.sizes().iter().filter(|&&size| size == 1).count() as u64;
        let finer = singles > 0 && (spread == Spread::PerCluster || singles == items.clusters() as u64);
        Ok(Self { items, cap, touch, user: user.to_owned(), unit: 1.0, row: 1, finer, singles })
    }

    /// The same for weights instead of counts: what one unit of weight is worth, and the most units that one row has.
    pub fn weighted(mut self, unit: f64, row: u64) -> Result<Self, EstimateError> {
        if !(unit > 0.0 && unit.is_finite()) {
            let range = "finite and greater than 0";
            return Err(EstimateError::Range { name: "the unit of weight", value: unit, range });
        }
        (self.unit, self.row) = (unit, row);
        Ok(self)
    }

    /// The dictionary.
    pub fn items(&self) -> &Items {
        &self.items
    }

    /// w of a cluster of this size.
    fn width(&self, size: u32) -> f64 {
        if size == 1 && self.finer { 1.0 } else { std::f64::consts::SQRT_2 }
    }

    /// The square of a user's largest length, R².
    fn largest(&self) -> f64 {
        let clusters = self.items.clusters() as u64;
        let (whole, half) = if self.finer { (self.singles, clusters - self.singles) } else { (0, clusters) };
        let all = whole as f64 + half as f64 / 2.0;
        self.cap.map_or(all, |cap| all.min(cap as f64 * if self.finer { 1.0 } else { 0.5 }))
    }

    /// The square of how far all blocks of a user move at once.
    fn together(&self) -> f64 {
        let clusters = self.items.clusters() as f64;
        // A cluster of one item, in units that are √2 times too large for it, moves by 1/√2.
        if self.finer { clusters } else { clusters - self.singles as f64 / 2.0 }
    }

    /// How far one unit moves the sums in ℓ2, in steps, rounded up. With a `radius` (in units of weight), what one row
    /// moves is known better.
    pub fn distance(&self, unit: &Unit, radius: Option<f64>) -> Option<f64> {
        let step = f64::from(1 << BITS);
        let user = step * root_up(self.largest()) * (1.0 + 2f64.powi(-44));
        let slack = root_of_whole_up(self.items.len() as u128) + user * 2f64.powi(-44);
        let moved = |length: f64| ((step * length).next_up() + slack).next_up();
        let replaced = product_up(user, root_up(2.0)).min(moved(root_up(self.together())));
        let narrowest = self.width(if self.finer { 1 } else { 2 });
        let row = radius.map_or(1.0, |radius| (self.row as f64 / (radius * narrowest) * (1.0 + 1e-14)).min(1.0));
        Some(match RowsMoved::by(unit, &self.user)? {
            RowsMoved::Row => moved(row).min(replaced),
            RowsMoved::TwoRows => 2.0 * moved(row).min(replaced),
            RowsMoved::Element => match self.touch {
                Touch::Most(clusters) => moved(root_up(clusters as f64)).min(replaced),
                Touch::Any => replaced,
            },
            RowsMoved::User => user,
            RowsMoved::UserReplaced => replaced,
        })
    }

    /// Projects each user's blocks on the radius and each user on the largest length, and adds up, in steps, by item.
    fn gather(
        &self,
        tokens: &Tokens,
        radius: f64,
        keep: impl Fn(u64) -> bool,
    ) -> Result<ProjectedSums<BlockReach>, EstimateError> {
        let users = tokens.users().filter(|(mark, _)| keep(*mark)).map(|(_, user)| user);
        ProjectedSums::over(BlockProjection { bound: self, radius, scales: Vec::new() }, users)
    }
}

/// How far units move sums of blocks that are no longer than a radius.
#[derive(Debug, Clone, PartialEq)]
struct BlockReach {
    bound: BlockBound,
    /// The radius in units of weight, or any: one that is found is not known when its noise is priced.
    radius: Option<f64>,
}

impl Reaches for BlockReach {
    fn at(&self, rung: &Rung) -> Sensitivity {
        in_l2(self.moved(&rung.unit))
    }
}

impl ProjectionReach for BlockReach {
    fn moved(&self, unit: &Unit) -> Option<f64> {
        self.bound.distance(unit, self.radius)
    }

    /// Where the radius may be any, no unit moves sums further at one.
    fn covers(&self, other: &Self) -> bool {
        self.bound == other.bound && (self.radius.is_none() || self.radius == other.radius)
    }
}

/// A bound on blocks at the radius on which they are projected.
struct BlockProjection<'b> {
    bound: &'b BlockBound,
    radius: f64,
    /// What each block of the user at hand is multiplied by.
    scales: Vec<f64>,
}

impl UserProjection for BlockProjection<'_> {
    type User<'a> = User<'a>;
    type Reach = BlockReach;

    fn reach(&self) -> BlockReach {
        BlockReach { bound: self.bound.clone(), radius: Some(self.radius) }
    }

    fn coordinates(&self) -> usize {
        self.bound.items.len()
    }

    fn project(&mut self, user: User<'_>, mut add: impl FnMut(usize, i64)) {
        let Self { bound, radius, ref mut scales } = *self;
        let largest = bound.largest();
        scales.clear();
        // Squared lengths by width: sums of integers for blocks that are short, numbers of those that are long. So few
        // roundings follow that every scale is right to a relative 2^-48, whatever the number of blocks.
        let (mut short, mut long) = ([0_u128; 2], [0_u64; 2]);
        for (square, block) in user.blocks() {
            let width = bound.width(bound.items.size_at(block[0].item));
            let kind = usize::from(width > 1.0);
            let length = (square as f64).sqrt();
            if length <= radius {
                short[kind] += square;
                scales.push(1.0 / (radius * width));
            } else {
                long[kind] += 1;
                scales.push(1.0 / (length * width));
            }
        }
        // A block is 1 long at the least, so where some are short the radius has a square; the square of a shorter radius may be 0, and 0/0 is no length.
        let in_radii = |kind: usize| match short[kind] {
            0 => long[kind] as f64,
            short => short as f64 / (radius * radius) + long[kind] as f64,
        };
        let square = in_radii(0) + in_radii(1) / 2.0;
        let shrink = if square > largest { (largest / square).sqrt() } else { 1.0 } * f64::from(1 << BITS);
        for ((_, block), scale) in user.blocks().zip(&*scales) {
            for token in block {
                add(bound.items.item_at(token.item) as usize, (token.weight as f64 * (scale * shrink)) as i64);
            }
        }
    }
}

/// For each item the sum of what users have of it, with rounded Gaussian noise.
///
/// # Neighbours
/// Data sets that differ in one unit. An element is what one user has in one cluster; its items and weights become any others
/// of that cluster, or none. Of a user, everything may.
///
/// # Claim
/// With ρ given, neighbours are no easier to tell apart than `N(0, σ²)` and `N(Δ, σ²)`, for every test. In units of ρ·w (w = 1 for a
/// cluster of one item, √2 for others) and with at most k clusters per user
///
/// | unit | Δ |
/// |---|---|
/// | element of one cluster | 1, so √2·ρ for a cluster of two items or more and ρ for one of a single item (E7) |
/// | element of t clusters | √t |
/// | event, add-remove; replace | min(1, weight / (ρ·w)); twice that |
/// | user, add-remove | R; R² is k, or k/2 where every w is √2 |
/// | user, replace | √2·R, or the root of the number of clusters where that is less |
///
/// and √d lattice steps (of 2⁻³⁰) more for rounding. In two stages the cost is that of counting blocks by length
/// (`NormBound`) and then of this, one after the other. On a split, see below.
///
/// # Why
/// One user's vector is projected twice: each block on the ball of radius ρ, then the whole, in the units above, on the ball of
/// radius R. Each set is convex, so neither step brings two vectors further apart in the norm of these units. Before
/// the second step, neighbours by an element differ in one block, by √2·ρ at most since counts are not negative, and by ρ on a single
/// coordinate. After it, users lie in the positive part of a ball. What one user adds depends on no other user. Each
/// coordinate is rounded down to a lattice: two roundings differ by less than one step, hence √d; the floats before it are right to
/// a relative 2⁻⁴⁸, which the figures cover with 2⁻⁴⁴ of R. Weights are integers from the start, so that no sum depends on the order of rows.
///
/// ρ, when it is found from noisy counts, is a function of what was released, and the second stage is private for every ρ: adaptive composition.
///
/// On a split, who is set aside depends on the user's key and on a seed that is drawn for the release, and on nothing else; for every seed, an element belongs to one user, so it is seen by one of the stages:
/// it pays the larger of the two. A user who is replaced may move from one side to the other, and pays for leaving
/// the one and for joining the other: √(μ₁² + μ₂²) with the figures of add-remove, or one side under replace, whichever is most.
///
/// # Tried by
/// `no_neighbour_moves_a_histogram_further_than_stated`, `the_papers_radius_is_not_enough`, `dropping_clusters_is_caught`,
/// `a_radius_next_to_nothing_leaves_no_user_longer`, `neither_stage_of_a_split_moves_further_than_both_pay_for`, `sums_at_another_radius_than_the_noise_is_made_for_get_none`; the intervals by `a_split_stands_for_all_users` and
/// `intervals_of_a_split_hold_what_few_users_have`.
#[derive(Debug, Clone)]
pub struct Histogram {
    radius: Radius,
    /// The noise on blocks by length, where the radius is found in them.
    on_lengths: Option<Additive<NormBound>>,
    /// The noise on the sums by item.
    on_sums: Additive<BlockReach>,
}

impl Histogram {
    /// The least noise that keeps a promise to a unit.
    pub(crate) fn for_promise(
        bound: BlockBound,
        radius: Radius,
        unit: &Unit,
        promise: Calibration,
    ) -> Result<Self, EstimateError> {
        check(radius)?;
        let mu = promise.mu()?;
        let on_lengths = |mu: f64| {
            // Of counts the shortest block has length 1; of weights, let it be a sixteenth of the heaviest row.
            let shortest = (bound.row as f64 / 16.0).max(1.0);
            let clusters = bound.items.clusters() as u64;
            let norms = NormBound::new(clusters, bound.cap, bound.touch, &bound.user, shortest)?;
            least_noise(BINS, norms, unit, mu)
        };
        let items = bound.items.len();
        let two_stages = |first: f64, second: f64| -> Result<Self, EstimateError> {
            let reach = BlockReach { bound: bound.clone(), radius: None };
            let on_lengths = Some(on_lengths(first)?);
            Ok(Self { radius, on_lengths, on_sums: least_noise(items, reach, unit, second)? })
        };
        match radius {
            Radius::Given(given) => {
                let reach = BlockReach { radius: Some(given / bound.unit), bound };
                Ok(Self { radius, on_lengths: None, on_sums: least_noise(items, reach, unit, mu)? })
            }
            Radius::TwoStage { share, .. } => two_stages(mu * share.sqrt(), mu * (1.0 - share).sqrt()),
            Radius::Split { .. } => {
                // All μ scale with the noise, so one correction is enough for units that may change sides.
                let unbounded = || EstimateError::Unbounded(unit.to_string());
                let reached = two_stages(mu, mu)?.split_mu(unit).ok_or_else(unbounded)?;
                let corrected = mu * (mu / reached).min(1.0) * (1.0 - 1e-12);
                two_stages(corrected, corrected)
            }
        }
    }

    /// The laws of the noise, in the order in which it is drawn.
    fn laws(&self) -> impl Iterator<Item = &Law> {
        self.on_lengths.iter().map(Additive::law).chain([self.on_sums.law()])
    }

    /// The same as it was when this was drawn, to say how far off that is. Where nobody wrote that down, it is taken to be as it is now.
    pub(super) fn with_noise_of(mut self, drawn: &StoredEstimate<NoisyHistogram>) -> Self {
        let mut laws = drawn.laws().cloned();
        self.on_lengths = self.on_lengths.map(|noise| as_drawn(noise, laws.next()));
        self.on_sums = as_drawn(self.on_sums, laws.next());
        self
    }

    /// Reads what a ledger holds of a release of this.
    pub(super) fn read(&self, bytes: &[u8]) -> Option<StoredEstimate<NoisyHistogram>> {
        StoredEstimate::read(bytes, self.laws().count(), NoisyHistogram::from_bytes)
    }

    /// How blocks are bounded.
    pub fn bound(&self) -> &BlockBound {
        &self.on_sums.reach().bound
    }

    /// The standard deviation of the noise on an item, given the radius (in the unit of what is counted).
    pub fn sigma(&self, item: u32, radius: f64) -> f64 {
        self.on_sums.deviation() * self.step(item, radius)
    }

    /// With this probability the noise on none of `items` items like this one takes its sum further than this, given the radius.
    pub fn within(&self, item: u32, radius: f64, confidence: f64, items: usize) -> f64 {
        self.on_sums.law().all_within(confidence, items) * self.step(item, radius)
    }

    /// The value of one step of an item.
    fn step(&self, item: u32, radius: f64) -> f64 {
        let size = if self.bound().items.is_single(item) { 1 } else { 2 };
        radius * self.bound().width(size) / f64::from(1 << BITS) / (1.0 - self.aside())
    }

    /// The share of users who are set aside, and for whom the others stand.
    fn aside(&self) -> f64 {
        match self.radius {
            Radius::Split { users, .. } => users,
            Radius::Given(_) | Radius::TwoStage { .. } => 0.0,
        }
    }

    /// How often the noise on all of `named` sums has to hold, so that with what the choice of users does all hold as
    /// often as asked; and for that choice the L of [`ends`](Self::ends).
    fn shared(&self, confidence: f64, named: usize) -> (f64, f64) {
        if self.aside() == 0.0 {
            return (confidence, 0.0);
        }
        let wrong = 1.0 - confidence;
        // Sums of different items hang together by the users who have both, so their errors are added up.
        (1.0 - NOISE * wrong, (2.0 * named.max(1) as f64 / ((1.0 - NOISE) * wrong)).ln())
    }

    /// From where to where a sum over all users lies, if its noise is at most this and one user has at most `most` of
    /// it.
    ///
    /// Of a split the sum T = Σ xᵢ is known by the users who were not set aside, times 1/(1 − f). Each is set aside
    /// with the chance f, by a hash under a seed that nobody could foresee, so that this is T + D, where D adds up terms of mean 0, each between −xᵢ and xᵢ·f/(1 − f).
    /// With 0 ≤ xᵢ ≤ `most` their variance is at most v·T, for v = most·f/(1 − f). By Bernstein's inequality D >
    /// √(2·v·T·L) + most·f/(1 − f)·L/3 with a chance of at most exp(−L), and so is −D > √(2·v·T·L) + most·L/3. (A
    /// normal law would not do: who alone has an item is there or not.) So with S = T + D + noise
    ///
    /// T − √(2·v·T·L) − most·L/3 ≤ S + noise, and T + √(2·v·T·L) + most·f/(1 − f)·L/3 ≥ S − noise,
    ///
    /// and both are quadratic in √T. This is proved for a radius that is given. One that is found depends on who is set
    /// aside, a little: there it is tried, and not proved.
    fn ends(&self, value: f64, noise: f64, most: f64, logarithm: f64) -> (f64, f64) {
        let aside = self.aside();
        if aside == 0.0 {
            return ((value - noise).max(0.0), (value + noise).max(0.0));
        }
        let odds = aside / (1.0 - aside);
        let half = 0.5 * most * odds * logarithm; // v·L/2
        let (least, largest) = (value - noise - most * odds * logarithm / 3.0, value + noise + most * logarithm / 3.0);
        let low = if least > 0.0 { ((half + least).sqrt() - half.sqrt()).powi(2) } else { 0.0 };
        let high = ((half + largest).max(0.0).sqrt() + half.sqrt()).powi(2);
        (low, high)
    }

    /// The most that one user adds to the sum over all items: as long as a user may be, and spread over the items as
    /// their widths are.
    fn longest(&self, radius: f64) -> f64 {
        let width = |item: u32| self.bound().width(if self.bound().items.is_single(item) { 1 } else { 2 });
        let widths: f64 = (0..self.bound().items.len() as u32).map(|item| width(item).powi(2)).sum();
        radius * (self.bound().largest() * widths).sqrt()
    }

    /// μ of both stages together, where each unit is seen by one of them, or leaves the one and joins the other.
    fn split_mu(&self, unit: &Unit) -> Option<f64> {
        let first = self.on_lengths.as_ref()?;
        let mu = |noise: f64| if noise > 0.0 { quotient_up(1.0, noise) } else { f64::INFINITY };
        let of = |unit: &Unit| -> Option<(f64, f64)> {
            let (length, distance) = (first.reach().moved(unit)?, self.on_sums.reach().moved(unit)?);
            Some((mu(over(first.law(), length)), mu(over(self.on_sums.law(), distance))))
        };
        let (one, two) = of(unit)?;
        // The part that one side sees when a unit moves to the other: it goes, or it comes.
        let sided = match RowsMoved::by(unit, &self.bound().user)? {
            RowsMoved::TwoRows => Some(Unit::event(whit_core::Change::AddRemove)),
            RowsMoved::UserReplaced => Some(Unit::user(&self.bound().user, whit_core::Change::AddRemove)),
            RowsMoved::Row | RowsMoved::Element | RowsMoved::User => None,
        };
        let across = sided.map_or(Some(0.0), |sided| of(&sided).map(|(one, two)| gdp::compose([one, two])));
        Some(one.max(two).max(across?))
    }

    /// Whether a user with this mark is set aside for the radius.
    fn is_aside(&self, mark: u64) -> bool {
        match self.radius {
            Radius::Split { users, .. } => (mark as f64) < users * 2f64.powi(64),
            Radius::Given(_) | Radius::TwoStage { .. } => false,
        }
    }

    /// What the radius cuts off, where stage one can tell.
    pub fn clipping(&self, noisy: &NoisyHistogram) -> Option<CutOff> {
        let (noise, counts) = self.on_lengths.as_ref().zip(noisy.norms.as_ref())?;
        Some(noise.reach().clipping(counts, noisy.radius / self.bound().unit, noise.deviation()))
    }

    /// The items from the most to the least, the first `top` of them or all, with intervals for the noise and, of a
    /// split, for the choice of the users who are set aside.
    ///
    /// As for `Hitters::ranking`, intervals of a `top` hold all at once. Ties are broken by number.
    pub fn bars(&self, noisy: &NoisyHistogram, top: Option<usize>, confidence: f64) -> Vec<Bar> {
        let steps: Vec<f64> = (0..noisy.values.len() as u32).map(|item| self.step(item, noisy.radius)).collect();
        let named = if top.is_some() { steps.len() } else { 1 };
        let (confidence, logarithm) = self.shared(confidence, named);
        let within = self.on_sums.law().all_within(confidence, named);
        // Ranked by value, not by steps: a step is worth more in some clusters.
        let least = steps.iter().copied().fold(f64::INFINITY, f64::min);
        let order: Vec<i64> =
            noisy.values.iter().zip(&steps).map(|(&value, step)| (value as f64 * (step / least)) as i64).collect();
        let bar = |item: u32| {
            let (step, value) = (steps[item as usize], noisy.values[item as usize] as f64);
            // No coordinate of a block is longer than the block.
            let (low, high) = self.ends(value * step, within * step, noisy.radius, logarithm);
            Bar { item, value: value * step, low, high }
        };
        ranked(&order, top).into_iter().map(bar).collect()
    }

    /// The sum over all items, and how far noise takes it from that of the bounded data, with this probability; of a
    /// split also the choice of the users who are set aside.
    pub fn total(&self, noisy: &NoisyHistogram, confidence: f64) -> (f64, f64) {
        let mut total = 0.0;
        let mut square = 0.0;
        for (item, &value) in noisy.values.iter().enumerate() {
            let step = self.step(item as u32, noisy.radius);
            total += value as f64 * step;
            // Rounding to whole steps adds at most half a step to each; a deviation is millions of them.
            square += ((self.on_sums.deviation() + 0.5) * step).powi(2);
        }
        let (confidence, logarithm) = self.shared(confidence, 1);
        let noise = square.sqrt() * upper_quantile(0.5 * (1.0 - confidence));
        if self.aside() == 0.0 {
            return (total, noise);
        }
        let (low, high) = self.ends(total, noise, self.longest(noisy.radius), logarithm);
        (total, (total - low).max(high - total))
    }
}

/// The noise as it was drawn, where that was written down.
fn as_drawn<R>(noise: Additive<R>, law: Option<Law>) -> Additive<R> {
    match law {
        Some(law) => noise.with_law(law),
        None => noise,
    }
}

fn check(radius: Radius) -> Result<(), EstimateError> {
    let inside = |name, value: f64| {
        let fine = value > 0.0 && value < 1.0;
        if fine { Ok(()) } else { Err(EstimateError::Range { name, value, range: "between 0 and 1, and neither" }) }
    };
    match radius {
        Radius::Given(radius) if radius > 0.0 && radius.is_finite() => Ok(()),
        Radius::Given(value) => {
            Err(EstimateError::Range { name: "the radius", value, range: "finite and greater than 0" })
        }
        Radius::TwoStage { share, quantile } => {
            inside("the share of the budget", share).and(inside("the quantile", quantile))
        }
        Radius::Split { users, quantile } => inside("the share of users", users).and(inside("the quantile", quantile)),
    }
}

/// An item and the sum of what users have of it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Bar {
    /// The item's number.
    pub item: u32,
    /// The noisy sum.
    pub value: f64,
    /// The lower end of the interval, never below 0.
    pub low: f64,
    /// The upper end.
    pub high: f64,
}

/// What leaves.
#[derive(Debug, Clone, PartialEq)]
pub struct NoisyHistogram {
    /// The radius, in the unit of what is counted.
    pub radius: f64,
    /// Blocks by length, where they were counted, in steps.
    pub norms: Option<Vec<i64>>,
    /// By item, in steps.
    pub values: Vec<i64>,
}

impl Persist for NoisyHistogram {
    fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = self.radius.to_bytes();
        bytes.push(u8::from(self.norms.is_some()));
        bytes.extend(self.norms.iter().flat_map(|norms| NoisyVector(norms.clone()).to_bytes()));
        bytes.extend(NoisyVector(self.values.clone()).to_bytes());
        bytes
    }
}

impl NoisyHistogram {
    /// Reads what [`Persist::to_bytes`] wrote, and nothing else.
    pub(crate) fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let (radius, rest) = bytes.split_first_chunk::<8>()?;
        let (&flag, mut rest) = rest.split_first()?;
        let norms = match flag {
            0 => None,
            1 => Some(NoisyVector::read(&mut rest)?.0),
            _ => return None,
        };
        let values = NoisyVector::read(&mut rest)?.0;
        rest.is_empty().then_some(Self { radius: f64::from_bits(u64::from_le_bytes(*radius)), norms, values })
    }
}

impl Mechanism for Histogram {
    type Exact = Tokens;
    type Noisy = StoredEstimate<NoisyHistogram>;

    fn cost(&self, rung: &Rung) -> Cost {
        match (self.radius, &self.on_lengths) {
            (Radius::Given(_), _) => self.on_sums.cost(rung),
            (Radius::TwoStage { .. }, Some(first)) => match (first.cost(rung), self.on_sums.cost(rung)) {
                (Cost::Everything, Cost::Everything) => Cost::Everything,
                (one, two) => Cost::Series(vec![one, two]),
            },
            (Radius::Split { .. }, Some(_)) => {
                self.split_mu(&rung.unit).map_or(Cost::Everything, |mu| gaussian(quotient_down(1.0, mu)))
            }
            (Radius::TwoStage { .. } | Radius::Split { .. }, None) => Cost::Everything,
        }
    }

    fn sanitise(&self, exact: &Tokens, entropy: &mut dyn Entropy) -> Result<Sealed<Self::Noisy>, SanitiseError> {
        let failed = |why: EstimateError| SanitiseError::from(QueryError::from(why));
        if exact.items() != &self.bound().items {
            return Err(SanitiseError::Unfit("tokens and noise are of different dictionaries"));
        }
        let (norms, radius) = match (self.radius, &self.on_lengths) {
            (Radius::Given(radius), _) => (None, radius / self.bound().unit),
            (Radius::TwoStage { quantile, .. } | Radius::Split { quantile, .. }, Some(noise)) => {
                let (norms, all) = (noise.reach(), matches!(self.radius, Radius::TwoStage { .. }));
                let counts = norms.gather(exact, |mark| all || self.is_aside(mark)).map_err(failed)?;
                let noisy = counts.with_noise(noise, entropy)?;
                let radius = norms.quantile(&noisy, quantile);
                (Some(noisy), radius)
            }
            (Radius::TwoStage { .. } | Radius::Split { .. }, None) => {
                return Err(SanitiseError::Unfit("the radius is to be found, and nothing was made to find it"));
            }
        };
        let sums = self.bound().gather(exact, radius, |mark| !self.is_aside(mark)).map_err(failed)?;
        let values = sums.with_noise(&self.on_sums, entropy)?;
        let noisy = NoisyHistogram { radius: radius * self.bound().unit, norms, values };
        Ok(Sealed::new(StoredEstimate::new(noisy, self.laws())))
    }

    /// The error of the worst item, in lattice steps.
    fn accuracy(&self, confidence: f64) -> Accuracy {
        self.on_sums.accuracy(confidence)
    }
}

#[cfg(test)]
mod tests;
