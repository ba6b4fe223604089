//! Several quantiles and the extremes, from one release: a tree of counts over equal bins of a public range.
//!
//! [`GaussianVector`](super::gaussian::GaussianVector) sanitises the tree; what follows here is made of the noisy
//! tree alone.

use super::{BadParameter, SanitiseError};
use crate::bound::{Bound, BoundError, Support};
use crate::release::CONFIDENCE;
use crate::unit::Change;

/// The most leaves of a tree.
const MOST_LEAVES: u32 = 1 << 20;

/// Where a quantile lies: the best guess, and an interval that holds it with the stated confidence, all in units of
/// the range.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Estimate {
    /// The best guess.
    pub at: f64,
    /// The lower end.
    pub low: f64,
    /// The upper end.
    pub high: f64,
}

/// Counts of values over the bins of a public range, and again over runs of bins, and runs of these.
///
/// Any prefix of the bins is a few nodes together, so the noise on a rank grows with the depth of the tree and not
/// with the number of bins. The root is left out: the total is what the topmost nodes add up to.
///
/// # Neighbours
/// Trees of data sets that differ in one unit, each unit with at most `rows` values in each of at most `groups`
/// groups (a tree a group).
///
/// # Claim
/// What a unit adds to all trees is a non-negative vector of length at most `rows · √(groups · levels)`, which is
/// what [`Tree::bound`] says; with it, releasing the trees costs what `GaussianVector` claims, and what is read from
/// them costs nothing more.
///
/// # Why
/// Each value falls into one node of each level. So in one group and on one level a unit's counts are not negative
/// and add up to at most `rows`, and their length is at most their sum; there are `groups · levels` such blocks.
///
/// # Tried by
/// `no_unit_adds_more_than_the_bound_says`, `intervals_hold_the_quantile_as_often_as_told`,
/// `an_interval_is_as_wide_as_the_noise_on_its_own_rank_needs`.
///
/// ```
/// use whit_core::mechanism::quantile::Tree;
/// let ages = Tree::new(0.0, 120.0, 120)?;
/// let mut counts = vec![0; 120];
/// for age in [31, 44, 62] {
///     counts[age] += 1;
/// }
/// let median = ages.quantile(&ages.fill(&counts)?, 0.0, 0.5)?;
/// assert!((44.0..=45.0).contains(&median.at) && (median.low, median.high) == (44.0, 45.0));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone)]
pub struct Tree {
    low: f64,
    high: f64,
    branching: usize,
    /// How many nodes each level has, from the topmost to the leaves.
    sizes: Vec<usize>,
    /// Level by level, the variance of a node's estimate from the subtree under it; one noisy count has 1.
    spread: Vec<Vec<f64>>,
    /// What is known of the noise of each prefix: 0 leaves, 1 leaf, … all leaves.
    prefixes: Vec<Prefix>,
    /// The variance of the total.
    all: f64,
}

/// The estimate of a prefix is the whole of the topmost nodes before it, and `inside` times the one that it cuts and
/// something independent.
#[derive(Debug, Clone, Copy)]
struct Prefix {
    /// The variance of what is independent.
    apart: f64,
    /// The share of the node that is cut.
    inside: f64,
    /// The variance of the node that is cut.
    cut: f64,
    /// The variance of the nodes before it, together.
    before: f64,
}

impl Tree {
    /// So many bins of equal width from `low` to `high`, and sixteen children a node.
    pub fn new(low: f64, high: f64, leaves: u32) -> Result<Self, BadParameter> {
        Self::with_branching(low, high, leaves, 16)
    }

    /// The same with another number of children a node.
    pub fn with_branching(low: f64, high: f64, leaves: u32, branching: u32) -> Result<Self, BadParameter> {
        if !(low.is_finite() && high.is_finite() && low < high && (high - low).is_finite()) {
            return Err(BadParameter::range("width of the range", high - low, "finite and greater than 0"));
        }
        if !(1..=MOST_LEAVES).contains(&leaves) {
            return Err(BadParameter::range("number of leaves", leaves.into(), "between 1 and 2^20"));
        }
        if branching < 2 {
            return Err(BadParameter::range("branching", branching.into(), "at least 2"));
        }
        let branching = branching as usize;
        let mut sizes = vec![leaves as usize];
        while sizes[0] > branching {
            sizes.insert(0, sizes[0].div_ceil(branching));
        }
        let mut tree = Self { low, high, branching, sizes, spread: Vec::new(), prefixes: Vec::new(), all: 0.0 };
        tree.spread = tree.spreads();
        tree.all = tree.spread[0].iter().sum();
        tree.prefixes = (0..=tree.leaves()).map(|end| tree.prefix(end)).collect();
        Ok(tree)
    }

    /// The two ends of the range.
    pub fn range(&self) -> (f64, f64) {
        (self.low, self.high)
    }

    /// How many bins there are.
    pub fn leaves(&self) -> usize {
        self.sizes[self.sizes.len() - 1]
    }

    /// How many levels are counted, the leaves among them.
    pub fn levels(&self) -> usize {
        self.sizes.len()
    }

    /// How many counts the tree has, over all levels.
    pub fn nodes(&self) -> usize {
        self.sizes.iter().sum()
    }

    /// The bin of a value. What lies outside of the range is in the first or the last; what is not a number is in none.
    pub fn leaf(&self, value: f64) -> Option<usize> {
        if value.is_nan() {
            return None;
        }
        let share = (value.clamp(self.low, self.high) - self.low) / (self.high - self.low);
        Some(((share * self.leaves() as f64) as usize).min(self.leaves() - 1))
    }

    /// The whole tree from its leaves, the topmost level first.
    pub fn fill(&self, leaf_counts: &[i64]) -> Result<Vec<i64>, SanitiseError> {
        if leaf_counts.len() != self.leaves() {
            return Err(SanitiseError::Length { given: leaf_counts.len(), expected: self.leaves() });
        }
        let mut levels = vec![leaf_counts.to_vec()];
        while levels.len() < self.levels() {
            let add = |nodes: &[i64]| nodes.iter().try_fold(0_i64, |sum, count| sum.checked_add(*count));
            let above: Option<Vec<i64>> = levels[levels.len() - 1].chunks(self.branching).map(add).collect();
            levels.push(above.ok_or(SanitiseError::Overflow)?);
        }
        Ok(levels.into_iter().rev().flatten().collect())
    }

    /// What one unit adds to the trees of all groups, if it has at most `rows` values in each of at most `groups`
    /// groups.
    pub fn bound(&self, groups: u64, rows: u64) -> Result<Bound, BoundError> {
        blocks(groups, self.levels() as u64, rows)
    }

    /// One quantile of a noisy tree, with the confidence of a [`Release`](crate::Release): see [`Ranks::quantile`].
    pub fn quantile(&self, noisy: &[i64], sigma: f64, q: f64) -> Result<Estimate, SanitiseError> {
        Ok(self.read(noisy, sigma)?.quantile(q, CONFIDENCE))
    }

    /// What a tree says whose counts carry rounded Gaussian noise of standard deviation `sigma` (0 for none).
    ///
    /// The counts of a level and those under it say the same thing twice, so they are brought to agree first, by
    /// least squares, which has the least variance of all linear ways. (Hay, Rastogi, Miklau, Suciu 2010, for any
    /// shape of tree.)
    pub fn read(&self, noisy: &[i64], sigma: f64) -> Result<Ranks<'_>, SanitiseError> {
        if noisy.len() != self.nodes() {
            return Err(SanitiseError::Length { given: noisy.len(), expected: self.nodes() });
        }
        let mut ranks = Vec::with_capacity(self.leaves() + 1);
        ranks.push(0.0);
        for count in self.agree(noisy) {
            ranks.push(ranks[ranks.len() - 1] + count);
        }
        // Rounding adds the variance of a uniform number between −1/2 and 1/2.
        let deviation = if sigma > 0.0 { (sigma * sigma + 1.0 / 12.0).sqrt() } else { 0.0 };
        let (rising, pools) = rising(&ranks);
        Ok(Ranks { tree: self, deviation, below: ranks, rising, pools })
    }

    /// The children of a node.
    fn children(&self, level: usize, node: usize) -> std::ops::Range<usize> {
        node * self.branching..((node + 1) * self.branching).min(self.sizes[level + 1])
    }

    /// A node's own count has variance 1, its children's estimates together the sum of theirs; weighing one against
    /// the other leaves one over the sum of their inverses.
    fn spreads(&self) -> Vec<Vec<f64>> {
        let mut spread: Vec<Vec<f64>> = self.sizes.iter().map(|size| vec![1.0; *size]).collect();
        for level in (0..self.levels() - 1).rev() {
            for node in 0..self.sizes[level] {
                let below: f64 = spread[level + 1][self.children(level, node)].iter().sum();
                spread[level][node] = below / (1.0 + below);
            }
        }
        spread
    }

    /// The leaves' estimates: up the tree, each node weighs its own count against what its children say; down the
    /// tree, what is still missing is shared out among the children by their variance.
    fn agree(&self, noisy: &[i64]) -> Vec<f64> {
        let mut estimates: Vec<Vec<f64>> = Vec::new();
        let mut rest = noisy;
        for size in &self.sizes {
            let (level, below) = rest.split_at(*size);
            estimates.push(level.iter().map(|count| *count as f64).collect());
            rest = below;
        }
        for level in (0..self.levels() - 1).rev() {
            for node in 0..self.sizes[level] {
                let children = self.children(level, node);
                let below: f64 = estimates[level + 1][children.clone()].iter().sum();
                let spread: f64 = self.spread[level + 1][children].iter().sum();
                estimates[level][node] = (estimates[level][node] * spread + below) / (spread + 1.0);
            }
        }
        for level in 0..self.levels() - 1 {
            for node in 0..self.sizes[level] {
                let children = self.children(level, node);
                let below: f64 = estimates[level + 1][children.clone()].iter().sum();
                let spread: f64 = self.spread[level + 1][children.clone()].iter().sum();
                let missing = (estimates[level][node] - below) / spread;
                for child in children {
                    estimates[level + 1][child] += missing * self.spread[level + 1][child];
                }
            }
        }
        estimates.pop().unwrap_or_default()
    }

    /// The noise of the first `end` leaves together.
    ///
    /// Below a node of estimate h, child i has h_i = r_i + (v_i / V)·h, where the r_i are independent of h and of
    /// everything outside of the node, v_i is the child's own variance and V their sum. So a weighted sum Σ α_i·h_i
    /// is (Σ α_i·v_i / V)·h and beside it something of variance Σ α_i²·v_i − (Σ α_i·v_i)² / V. From the leaf that is
    /// cut up to its topmost node this adds up.
    fn prefix(&self, end: usize) -> Prefix {
        if end == self.leaves() {
            return Prefix { apart: 0.0, inside: 0.0, cut: 0.0, before: self.all };
        }
        let (mut node, mut apart, mut inside) = (end, 0.0, 0.0);
        for level in (0..self.levels() - 1).rev() {
            let parent = node / self.branching;
            let children = self.children(level, parent);
            let spread = &self.spread[level + 1];
            let whole: f64 = spread[children.start..node].iter().sum();
            let together: f64 = spread[children].iter().sum();
            let weighed = whole + inside * spread[node];
            apart += whole + inside * inside * spread[node] - weighed * weighed / together;
            inside = weighed / together;
            node = parent;
        }
        Prefix { apart, inside, cut: self.spread[0][node], before: self.spread[0][..node].iter().sum() }
    }

    /// The variance of the mean of the first `start`, `start` + 1, … leaves together, `size` such prefixes, less q times
    /// the total; see [`prefix`](Self::prefix) for what one level adds.
    fn pooled(&self, start: usize, size: usize, q: f64) -> f64 {
        let leaves = self.leaves();
        // Weights of the leaves from `first` on: all before count fully, all behind not at all.
        let mut first = start.min(leaves - 1);
        let last = (start + size).min(leaves) - 1;
        let weigh =
            |leaf: usize| if leaf < start { 1.0 } else { 1.0 - (leaf + 1 - start).min(size) as f64 / size as f64 };
        let mut weights: Vec<f64> = (first..=last.max(first)).map(|leaf| weigh(leaf) - q).collect();
        let mut variance = 0.0;
        for level in (0..self.levels() - 1).rev() {
            let spread = &self.spread[level + 1];
            let of = |node: usize| match node.checked_sub(first) {
                None => 1.0 - q,
                Some(place) => weights.get(place).copied().unwrap_or(-q),
            };
            let (from, to) = (first / self.branching, (first + weights.len() - 1) / self.branching);
            let above = (from..=to).map(|node| {
                let children = self.children(level, node);
                let together: f64 = spread[children.clone()].iter().sum();
                let weighed: f64 = children.clone().map(|child| of(child) * spread[child]).sum();
                let squared: f64 = children.map(|child| of(child).powi(2) * spread[child]).sum();
                variance += squared - weighed * weighed / together;
                weighed / together
            });
            let above = above.collect();
            (first, weights) = (from, above);
        }
        let top = self.spread[0].iter().enumerate().map(|(node, spread)| match node.checked_sub(first) {
            None => (1.0 - q).powi(2) * spread,
            Some(place) => weights.get(place).copied().unwrap_or(-q).powi(2) * spread,
        });
        variance + top.sum::<f64>()
    }

    /// The value at which so many leaves, or parts of one, lie below.
    fn value(&self, leaves: f64) -> f64 {
        let share = leaves / self.leaves() as f64;
        (self.low + (self.high - self.low) * share).min(self.high)
    }

    fn everything(&self) -> Estimate {
        Estimate { at: self.value(self.leaves() as f64 / 2.0), low: self.low, high: self.high }
    }
}

/// A noisy tree, read: how many values lie below each bin, as far as can be told.
#[derive(Debug, Clone)]
pub struct Ranks<'a> {
    tree: &'a Tree,
    deviation: f64,
    /// Below the first leaf, the second, …, and all: unbiased, but it may fall.
    below: Vec<f64>,
    /// The nearest that never falls, between 0 and the total.
    rising: Vec<f64>,
    /// From where and how many ranks were pooled for that, one after the other.
    pools: Vec<(usize, usize)>,
}

impl Ranks<'_> {
    /// How many values there are, as far as can be told.
    pub fn total(&self) -> f64 {
        self.below[self.below.len() - 1]
    }

    /// The value below which a share `q` (clamped to 0..1) of all values lies.
    ///
    /// The best guess never falls as `q` grows. The interval holds the bin of the true quantile with this confidence:
    /// it covers all bins that a test of "the quantile lies here" does not rule out, and that test is wrong about the
    /// true one at most so often. The test looks at ranks that rise, as true ones do (Woodruff 1952): of ranks that
    /// may fall, one stray among thousands would stretch the interval far beyond what the noise on the rank asked for
    /// comes to. That noise is of one linear form of the counts, the rank less q times the total, and its variance is
    /// known exactly. Where ranks fell and were pooled, the mean of a pool has less noise; which ranks are pooled was the
    /// noise's choice, so that half of what the variance gains by it is counted. The interval speaks of the noise, and
    /// not of values that bounding left out; at 0 and 1 it reaches to the end of the range, for which
    /// [`smallest`](Self::smallest) and [`largest`](Self::largest) are better. Where the total is not clearly above 0
    /// (there may be no data at all) the answer is the middle of the range, and all of it.
    pub fn quantile(&self, q: f64, confidence: f64) -> Estimate {
        let (q, z) = (if q.is_nan() { 0.5 } else { q.clamp(0.0, 1.0) }, deviations((1.0 - confidence) / 2.0));
        let total = self.total();
        if total <= self.slack(z, self.tree.leaves(), 0.0) {
            return self.tree.everything();
        }
        let leaves = self.tree.leaves();
        let above = |end: usize| self.rising[end] - q * total;
        let slack = self.slacks(z, q, &above);
        let may_start = |leaf: usize| leaf == 0 || above(leaf) <= slack[leaf];
        let may_end = |leaf: usize| leaf + 1 == leaves || above(leaf + 1) >= -slack[leaf + 1];
        let may_hold = |leaf: &usize| may_start(*leaf) && may_end(*leaf);
        let at = self.tree.value(crossing(&self.rising, q * total));
        let low = (0..leaves).find(may_hold).map_or(self.tree.low, |leaf| self.tree.value(leaf as f64));
        let high = (0..leaves).rfind(may_hold).map_or(self.tree.high, |leaf| self.tree.value(leaf as f64 + 1.0));
        Estimate { at, low: low.min(at), high: high.max(at) }
    }

    /// The least value, as far as one can tell: where the number of values below is first clearly above 0.
    ///
    /// It is biased upwards: a few values below stay hidden, about as many as the noise on the total comes to twice
    /// over. So it may be, because one unit's value is nobody's to see. With at least this confidence there is a
    /// value below it, so the minimum lies in the interval, which begins where the range does. Where nothing is clear
    /// the answer is the middle of the range, and all of it.
    ///
    /// One test is enough for all bins. If the true minimum is in bin m, no bin up to m is found unless the count
    /// below m seems to be above 0: ranks rise, so a later one that is small speaks against all earlier ones, and
    /// what is asked of a bin is never less than what is asked of a later one.
    pub fn smallest(&self, confidence: f64) -> Estimate {
        let z = deviations(1.0 - confidence);
        let (mut later, mut asked) = (f64::INFINITY, 0.0_f64);
        let mut found = None;
        for end in (1..=self.tree.leaves()).rev() {
            later = self.below[end].min(later);
            asked = self.slack(z, end, 0.0).max(asked);
            if later > asked {
                found = Some(end);
            }
        }
        found.map_or_else(
            || self.tree.everything(),
            |end| {
                let at = self.tree.value(end as f64);
                Estimate { at, low: self.tree.low, high: at }
            },
        )
    }

    /// The largest value, in the same sense: biased downwards, and with at least this confidence there is a value
    /// above it.
    pub fn largest(&self, confidence: f64) -> Estimate {
        let z = deviations(1.0 - confidence);
        let (mut earlier, mut asked) = (f64::INFINITY, 0.0_f64);
        let mut found = None;
        for end in 0..self.tree.leaves() {
            earlier = (self.total() - self.below[end]).min(earlier);
            asked = self.slack(z, end, 1.0).max(asked);
            if earlier > asked {
                found = Some(end);
            }
        }
        found.map_or_else(
            || self.tree.everything(),
            |end| {
                let at = self.tree.value(end as f64);
                Estimate { at, low: at, high: self.tree.high }
            },
        )
    }

    /// `z` standard deviations of the number of values in the first `end` leaves less q times the total, and a hair
    /// for the sums themselves.
    fn slack(&self, z: f64, end: usize, q: f64) -> f64 {
        self.within(z, self.variance(end, q))
    }

    fn within(&self, z: f64, variance: f64) -> f64 {
        z * self.deviation * variance.max(0.0).sqrt() + 1e-9 * (1.0 + self.total().abs())
    }

    fn variance(&self, end: usize, q: f64) -> f64 {
        let Prefix { apart, inside, cut, before } = self.tree.prefixes[end];
        let after = (self.tree.all - before - cut).max(0.0);
        apart + (inside - q) * (inside - q) * cut + (1.0 - q) * (1.0 - q) * before + q * q * after
    }

    /// The same for ranks that rise, one for each number of leaves: what lies further off by any measure is left as it is.
    fn slacks(&self, z: f64, q: f64, above: &dyn Fn(usize) -> f64) -> Vec<f64> {
        let mut slacks: Vec<f64> = (0..=self.tree.leaves()).map(|end| self.slack(z, end, q)).collect();
        for &(start, size) in self.pools.iter().filter(|(_, size)| *size > 1) {
            let pool = start..start + size;
            if pool.clone().any(|end| above(end).abs() <= slacks[end]) {
                let pooled = self.tree.pooled(start, size, q);
                for end in pool {
                    slacks[end] = self.within(z, f64::midpoint(self.variance(end, q), pooled)).min(slacks[end]);
                }
            }
        }
        slacks
    }
}

/// The sequence between 0 and the last number that never falls and is nearest to this one: what falls is pooled. And the
/// pools: where each starts, and its size.
fn rising(ranks: &[f64]) -> (Vec<f64>, Vec<(usize, usize)>) {
    let top = ranks[ranks.len() - 1].max(0.0);
    let mut pools: Vec<(f64, usize)> = Vec::new(); // sum and size
    for rank in &ranks[1..ranks.len() - 1] {
        let mut pool = (*rank, 1);
        while let Some(&(sum, size)) = pools.last() {
            if sum / size as f64 <= pool.0 / pool.1 as f64 {
                break;
            }
            pools.pop();
            pool = (pool.0 + sum, pool.1 + size);
        }
        pools.push(pool);
    }
    let mut places = Vec::with_capacity(pools.len());
    let mut start = 1;
    for (_, size) in &pools {
        places.push((start, *size));
        start += size;
    }
    let inner =
        pools.into_iter().flat_map(|(sum, size)| std::iter::repeat_n((sum / size as f64).clamp(0.0, top), size));
    (std::iter::once(0.0).chain(inner).chain([top]).collect(), places)
}

/// Where a sequence that never falls reaches the target, in steps and parts of one; the middle, where it stays there
/// for a while.
fn crossing(rising: &[f64], target: f64) -> f64 {
    let last = rising.len() - 1;
    let (top, hair) = (rising[last], 1e-9 * (1.0 + rising[last]));
    let left = rising.partition_point(|rank| *rank < target - hair).min(last);
    let right = rising.partition_point(|rank| *rank <= target + hair).saturating_sub(1);
    if target <= hair {
        return right as f64;
    }
    if target >= top - hair {
        return left as f64;
    }
    if left <= right {
        return f64::midpoint(left as f64, right as f64);
    }
    right as f64 + (target - rising[right]) / (rising[left] - rising[right])
}

/// The bound on a vector of `groups · levels` blocks, each not negative and adding up to at most `rows`.
pub(super) fn blocks(groups: u64, levels: u64, rows: u64) -> Result<Bound, BoundError> {
    let (Some(blocks), Ok(high)) = (groups.checked_mul(levels), i64::try_from(rows)) else {
        return Err(BoundError::Radius(f64::INFINITY));
    };
    // √blocks · rows, rounded up: the length of as many single coordinates.
    let length = Bound::coordinates(blocks, 0, high, Support::NonNegative)?.sensitivity(Change::AddRemove).l2;
    Bound::ball(length, Support::NonNegative)
}

/// The z with P[N > z] = `tail`, for a standard normal N; at most 38.
pub(super) fn deviations(tail: f64) -> f64 {
    let (mut low, mut high) = (0.0, 38.0);
    for _ in 0..60 {
        let middle = f64::midpoint(low, high);
        if libm::erfc(middle * std::f64::consts::FRAC_1_SQRT_2) / 2.0 > tail { low = middle } else { high = middle }
    }
    high
}

#[cfg(test)]
mod tests {
    use super::super::Mechanism;
    use super::super::gaussian::GaussianVector;
    use super::super::trial::within_chance;
    use super::*;
    use whit_noise::{Entropy, Replay, below};

    fn tree(leaves: u32, branching: u32) -> Tree {
        Tree::with_branching(-3.0, 7.0, leaves, branching).unwrap()
    }

    /// Values in leaf units: a hump, a spike that holds a third of all, a gap, and a thin tail.
    fn values(n: usize, leaves: usize, entropy: &mut dyn Entropy) -> Vec<usize> {
        let mut draw = |n: u64| below(n, entropy) as usize;
        let mut values: Vec<usize> = (0..n)
            .map(|_| match draw(9) {
                0..3 => leaves / 3,
                3..8 => (0..8).map(|_| draw(leaves as u64 / 2 + 1)).sum::<usize>() / 8,
                _ => leaves * 3 / 4 + draw(leaves as u64 / 4 + 1),
            })
            .map(|leaf| leaf.min(leaves - 1))
            .collect();
        values.sort_unstable();
        values
    }

    fn counts(values: &[usize], leaves: usize) -> Vec<i64> {
        let mut counts = vec![0; leaves];
        for leaf in values {
            counts[*leaf] += 1;
        }
        counts
    }

    fn noisy(tree: &Tree, exact: &[i64], sigma: &str, entropy: &mut dyn Entropy) -> Vec<i64> {
        let mechanism =
            GaussianVector::rounded(tree.bound(1, 1).unwrap(), tree.nodes(), sigma.parse().unwrap()).unwrap();
        mechanism.sanitise(&tree.fill(exact).unwrap(), entropy).unwrap().open()
    }

    #[test]
    fn without_noise_a_quantile_is_exact_to_one_leaf() {
        let mut entropy = Replay::new(5);
        for (leaves, branching) in [(1, 2), (2, 2), (5, 2), (16, 16), (17, 16), (100, 3), (1000, 16)] {
            let tree = tree(leaves, branching);
            let width = 10.0 / f64::from(leaves);
            for n in [1, 2, 7, 500] {
                let data = values(n, leaves as usize, &mut entropy);
                let ranks_of = tree.fill(&counts(&data, leaves as usize)).unwrap();
                let ranks = tree.read(&ranks_of, 0.0).unwrap();
                assert!((ranks.total() - n as f64).abs() < 1e-6);
                for percent in 0..=100 {
                    let q = f64::from(percent) / 100.0;
                    let place = (q * n as f64 - 1e-9).ceil().max(1.0) as usize;
                    let (low, next) = (data[place - 1], data[place.min(n - 1)]);
                    let Estimate { at, low: from, high: to } = ranks.quantile(q, 0.95);
                    let edge = |leaf: usize| -3.0 + width * leaf as f64;
                    // Between two values the quantile is anywhere from the one to the other.
                    assert!(
                        at >= edge(low) - 1e-9 && at <= edge(next) + width + 1e-9,
                        "{leaves} leaves, {n} values, {q}"
                    );
                    assert!(
                        from <= edge(low) + 1e-9 && to >= edge(low) + width - 1e-9,
                        "{leaves}, {n}, {q}: {from} {to}"
                    );
                    assert!(
                        q == 0.0 || q == 1.0 || to - from <= edge(next) - edge(low) + width + 1e-9,
                        "{leaves}, {n}, {q}: {from} {to}"
                    );
                }
                let (least, most) = (ranks.smallest(0.95), ranks.largest(0.95));
                assert!((least.at - (-3.0 + width * (data[0] + 1) as f64)).abs() < 1e-9);
                assert!((most.at - (-3.0 + width * data[n - 1] as f64)).abs() < 1e-9);
            }
        }
    }

    /// What makes a fit one of least squares: the residuals over each leaf's own line of nodes cancel.
    #[test]
    fn levels_agree_by_least_squares() {
        let mut entropy = Replay::new(6);
        for (leaves, branching) in [(4, 2), (13, 2), (40, 3), (300, 16)] {
            let tree = tree(leaves, branching);
            let given: Vec<i64> = (0..tree.nodes()).map(|_| below(1000, &mut entropy) as i64 - 300).collect();
            let fitted = tree.agree(&given);
            for leaf in 0..leaves as usize {
                let (mut node, mut residual, mut start) = (leaf, 0.0, tree.nodes());
                let mut width = 1;
                for size in tree.sizes.iter().rev() {
                    start -= size;
                    let under: f64 = fitted.iter().skip(node * width).take(width).sum();
                    residual += given[start + node] as f64 - under;
                    (node, width) = (node / branching as usize, width * branching as usize);
                }
                assert!(residual.abs() < 1e-7, "{leaves} leaves: {residual} over leaf {leaf}");
            }
        }
    }

    /// The estimate is linear in the noisy counts: push each of them through alone and add up the squares.
    #[test]
    fn the_noise_of_a_rank_is_what_its_formula_says() {
        for (leaves, branching) in [(1, 2), (4, 2), (11, 2), (20, 3), (40, 6)] {
            let tree = tree(leaves, branching);
            let columns: Vec<Vec<f64>> = (0..tree.nodes())
                .map(|node| {
                    let mut alone = vec![0; tree.nodes()];
                    alone[node] = 1;
                    tree.agree(&alone)
                })
                .collect();
            let nothing = tree.read(&vec![0; tree.nodes()], 1.0).unwrap();
            for q in [0.0, 0.3, 0.5, 1.0] {
                for end in 0..=leaves as usize {
                    let weigh = |leaf: usize| if leaf < end { 1.0 - q } else { -q };
                    let through =
                        |column: &Vec<f64>| -> f64 { column.iter().enumerate().map(|(i, c)| weigh(i) * c).sum() };
                    let exact: f64 = columns.iter().map(|column| through(column).powi(2)).sum();
                    let told = ((nothing.slack(1.0, end, q) - 1e-9) / nothing.deviation).powi(2);
                    assert!((told - exact).abs() < 1e-9, "{leaves} leaves, prefix {end}, q {q}: {told} for {exact}");
                }
                // And of the mean of several ranks.
                for (start, size) in
                    (0..leaves as usize).flat_map(|start| (1..=leaves as usize - start).map(move |size| (start, size)))
                {
                    let covered =
                        |leaf: usize| (start..start + size).filter(|end| leaf < *end).count() as f64 / size as f64;
                    let through = |column: &Vec<f64>| -> f64 {
                        column.iter().enumerate().map(|(i, c)| (covered(i) - q) * c).sum()
                    };
                    let exact: f64 = columns.iter().map(|column| through(column).powi(2)).sum();
                    let told = tree.pooled(start, size, q);
                    assert!(
                        (told - exact).abs() < 1e-9,
                        "{leaves} leaves, {size} prefixes from {start}, q {q}: {told} for {exact}"
                    );
                }
            }
        }
    }

    /// 600 noisy trees a case. Correct 95 % intervals fail the test once in 10⁹ seeds at each of the 27 comparisons;
    /// intervals for a third of the noise are caught.
    #[test]
    fn intervals_hold_the_quantile_as_often_as_told() {
        let trials = 600_u32;
        let mut entropy = Replay::new(0x7ee);
        for (leaves, branching, sigma, n) in [(256, 16, "4", 3000), (100, 4, "0.3", 200), (1000, 16, "25", 20_000)] {
            let tree = tree(leaves, branching);
            let data = values(n, leaves as usize, &mut entropy);
            let exact = counts(&data, leaves as usize);
            let spread: f64 = sigma.parse().unwrap();
            let shares = [0.01, 0.1, 0.25, 0.4, 0.5, 0.75, 0.9, 0.99];
            let (mut missed, mut broken, mut extremes, mut width) = ([0; 8], [0; 8], 0, [0.0; 8]);
            for _ in 0..trials {
                let released = noisy(&tree, &exact, sigma, &mut entropy);
                let ranks = tree.read(&released, spread).unwrap();
                let too_sure = Ranks { deviation: ranks.deviation / 3.0, ..ranks.clone() };
                for (i, q) in shares.into_iter().enumerate() {
                    let leaf = data[(q * n as f64).ceil() as usize - 1];
                    let middle = tree.value(leaf as f64 + 0.5);
                    let holds = |estimate: Estimate| (estimate.low..=estimate.high).contains(&middle);
                    let found = ranks.quantile(q, 0.95);
                    assert!(found.low <= found.at && found.at <= found.high);
                    missed[i] += u64::from(!holds(found));
                    width[i] += (found.high - found.low) / f64::from(trials);
                    broken[i] += u64::from(!holds(too_sure.quantile(q, 0.95)));
                }
                let (least, most) = (ranks.smallest(0.95), ranks.largest(0.95));
                let (first, last) = (tree.value(data[0] as f64), tree.value(data[n - 1] as f64 + 1.0));
                extremes += u64::from(least.at <= first || most.at >= last);
            }
            for (i, q) in shares.into_iter().enumerate() {
                assert!(within_chance(missed[i], trials.into(), 0.05), "{leaves} leaves, q {q}: {} missed", missed[i]);
            }
            // Two extremes, each wrong at most once in twenty.
            assert!(
                within_chance(extremes, trials.into(), 0.1),
                "{leaves} leaves: {extremes} extremes beyond the data"
            );
            assert!(width[4] < 2.0, "intervals of the median are {} wide, of a range of 10", width[4]);
            let caught = (0..8).any(|i| !within_chance(broken[i], trials.into(), 0.05));
            assert!(caught, "a third of the noise must be caught: {broken:?} of {trials}");
        }
    }

    /// 600 noisy trees of 5,000 values, spread evenly: the coverage of 95 % has a deviation of 0.9 %, and the error one of
    /// about 4 %. Intervals that trust ranks which fall are half as wide again. (Both are wider than errors near an end of the
    /// range, where errors are cut short.)
    #[test]
    fn an_interval_is_as_wide_as_the_noise_on_its_own_rank_needs() {
        let (tree, trials, mut entropy) = (tree(4096, 16), 600, Replay::new(0x0dd5));
        let data: Vec<usize> = (0..5000).map(|i| i * 4096 / 5000).collect();
        let exact = counts(&data, 4096);
        let shares = [0.1, 0.5, 0.9];
        let (mut held, mut width, mut errors) = ([0; 3], [0.0; 3], [vec![], vec![], vec![]]);
        for _ in 0..trials {
            let released = noisy(&tree, &exact, "40", &mut entropy);
            let ranks = tree.read(&released, 40.0).unwrap();
            for (i, q) in shares.into_iter().enumerate() {
                let truth = tree.value(data[(q * 5000.0) as usize - 1] as f64 + 0.5);
                let found = ranks.quantile(q, 0.95);
                held[i] += u32::from((found.low..=found.high).contains(&truth));
                width[i] += (found.high - found.low) / f64::from(trials);
                errors[i].push((found.at - truth).abs());
            }
        }
        for i in 0..3 {
            errors[i].sort_by(f64::total_cmp);
            let (held, error) = (f64::from(held[i]) / f64::from(trials), errors[i][trials as usize * 95 / 100]);
            let told = format!("q {}: {held} held, {} wide for an error of {error}", shares[i], width[i]);
            assert!((0.914..=0.995).contains(&held) && width[i] <= 2.0 * 1.6 * error, "{told}");
        }
    }

    #[test]
    fn quantiles_never_cross() {
        let mut entropy = Replay::new(9);
        for (leaves, sigma, n) in [(64, "10", 50), (500, "30", 2000), (500, "3", 100_000)] {
            let tree = tree(leaves, 16);
            let exact = counts(&values(n, leaves as usize, &mut entropy), leaves as usize);
            for _ in 0..20 {
                let released = noisy(&tree, &exact, sigma, &mut entropy);
                let ranks = tree.read(&released, sigma.parse().unwrap()).unwrap();
                let found: Vec<f64> = (0..=200).map(|i| ranks.quantile(f64::from(i) / 200.0, 0.9).at).collect();
                assert!(found.windows(2).all(|pair| pair[0] <= pair[1]), "{found:?}");
                assert!(found[0] >= -3.0 && found[200] <= 7.0);
            }
        }
    }

    /// 1000 noisy trees of no data: a total that looks like data comes up once in forty, and the test fails once in
    /// 10⁹ seeds.
    #[test]
    fn no_data_gives_the_middle_and_the_whole_range() {
        let tree = tree(128, 16);
        let whole = Estimate { at: 2.0, low: -3.0, high: 7.0 };
        let empty = tree.read(&vec![0; tree.nodes()], 0.0).unwrap();
        assert_eq!([empty.quantile(0.5, 0.95), empty.smallest(0.95), empty.largest(0.95)], [whole; 3]);
        let mut entropy = Replay::new(11);
        let (mut quantiles, mut extremes) = (0, 0);
        for _ in 0..1000 {
            let released = noisy(&tree, &[0; 128], "7", &mut entropy);
            quantiles += u64::from(tree.quantile(&released, 7.0, 0.5).unwrap() != whole);
            extremes += u64::from(tree.read(&released, 7.0).unwrap().smallest(0.95) != whole);
        }
        assert!(within_chance(quantiles, 1000, 0.025) && within_chance(extremes, 1000, 0.05), "{quantiles} {extremes}");
    }

    /// All ways in which a unit has at most so many values in at most so many groups, as the trees that they make.
    fn contributions(tree: &Tree, all_groups: usize, groups: usize, rows: i64) -> Vec<Vec<i64>> {
        let mut blocks = vec![vec![]];
        for _ in 0..tree.leaves() {
            let longer = |block: &Vec<i64>| (0..=rows).map(|x| [block.as_slice(), &[x]].concat()).collect::<Vec<_>>();
            blocks = blocks.iter().flat_map(longer).filter(|block| block.iter().sum::<i64>() <= rows).collect();
        }
        let trees: Vec<Vec<i64>> = blocks.iter().map(|block| tree.fill(block).unwrap()).collect();
        let mut units: Vec<(Vec<i64>, usize)> = vec![(vec![], 0)];
        for _ in 0..all_groups {
            let longer = |(unit, used): &(Vec<i64>, usize)| {
                let add = |tree: &Vec<i64>| {
                    ([unit.as_slice(), tree].concat(), used + usize::from(tree.iter().any(|count| *count != 0)))
                };
                trees.iter().map(add).collect::<Vec<_>>()
            };
            units = units.iter().flat_map(longer).filter(|(_, used)| *used <= groups).collect();
        }
        units.into_iter().map(|(unit, _)| unit).collect()
    }

    fn apart(a: &[i64], b: &[i64]) -> f64 {
        a.iter().zip(b).map(|(x, y)| ((x - y) * (x - y)) as f64).sum()
    }

    #[test]
    fn no_unit_adds_more_than_the_bound_says() {
        for (leaves, branching, all_groups, groups, rows) in
            [(4, 2, 1, 1, 3), (3, 2, 2, 1, 2), (5, 2, 2, 2, 1), (2, 2, 3, 2, 2), (4, 4, 2, 1, 2), (5, 2, 1, 1, 2)]
        {
            let tree = tree(leaves, branching);
            let units = contributions(&tree, all_groups, groups, rows);
            let bound = tree.bound(groups as u64, rows as u64).unwrap();
            let nothing = vec![0; units[0].len()];
            let added = units.iter().map(|unit| apart(unit, &nothing)).fold(0.0, f64::max);
            let replaced = units.iter().flat_map(|a| units.iter().map(|b| apart(a, b))).fold(0.0, f64::max);
            for (change, furthest) in [(Change::AddRemove, added), (Change::Replace, replaced)] {
                let told = bound.sensitivity(change).l2;
                assert!(
                    told * told >= furthest * (1.0 - 1e-15),
                    "{leaves} leaves, {groups} groups: {told}² < {furthest}"
                );
                assert!(change == Change::Replace || told * told <= furthest * (1.0 + 1e-12), "it is attained");
            }
            // A bound that forgets the levels is broken by the first value.
            assert!(tree.levels() == 1 || added > (groups as i64 * rows * rows) as f64);
            assert!(
                all_groups == groups || replaced > 1.99 * added,
                "moving to another group is twice as far, squared"
            );
        }
    }

    #[test]
    fn values_go_to_the_leaf_that_holds_them() {
        let tree = Tree::new(0.0, 600.0, 60).unwrap();
        for (value, leaf) in [(0.0, 0), (9.99, 0), (10.0, 1), (599.9, 59), (600.0, 59), (1e300, 59), (-5.0, 0)] {
            assert_eq!(tree.leaf(value), Some(leaf), "{value}");
        }
        assert_eq!(
            (tree.leaf(f64::NEG_INFINITY), tree.leaf(f64::INFINITY), tree.leaf(f64::NAN)),
            (Some(0), Some(59), None)
        );
        assert_eq!((tree.levels(), tree.nodes(), tree.leaves()), (2, 64, 60));
        assert_eq!(Tree::new(0.0, 1.0, 65_536).unwrap().levels(), 4);
        assert_eq!(Tree::new(0.0, 1.0, 1).unwrap().nodes(), 1);
    }

    #[test]
    fn trees_that_make_no_sense_are_refused() {
        for (low, high) in [(1.0, 1.0), (2.0, 1.0), (f64::NAN, 1.0), (0.0, f64::INFINITY), (-1.7e308, 1.7e308)] {
            let told = Tree::new(low, high, 10).unwrap_err().to_string();
            assert!(told.contains("width of the range"), "{told}");
        }
        assert!(Tree::new(0.0, 1.0, 0).is_err() && Tree::new(0.0, 1.0, u32::MAX).is_err());
        assert!(Tree::with_branching(0.0, 1.0, 8, 1).is_err());
        let tree = tree(40, 2);
        assert_eq!(tree.fill(&[1; 39]), Err(SanitiseError::Length { given: 39, expected: 40 }));
        assert_eq!(tree.fill(&[i64::MAX; 40]), Err(SanitiseError::Overflow));
        assert!(tree.read(&[0; 40], 1.0).is_err(), "the leaves alone are no tree");
        assert!(tree.bound(0, 1).is_err());
        assert!(tree.bound(u64::MAX, 1).is_err() && tree.bound(1, u64::MAX).is_err(), "never less than it is");
    }

    #[test]
    fn deviations_are_those_of_the_normal_law() {
        for (tail, z) in [(0.025, 1.959_963_984_540_054), (0.5, 0.0), (1e-10, 6.361_340_902_404_057)] {
            assert!((deviations(tail) - z).abs() < 1e-9);
        }
        assert_eq!(deviations(0.0), 38.0);
    }
}
