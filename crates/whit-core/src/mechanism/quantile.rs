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
/// `no_unit_adds_more_than_the_bound_says`; the intervals by `intervals_hold_the_quantile_as_often_as_stated`,
/// `an_interval_is_as_wide_as_the_noise_on_its_own_rank_needs`,
/// `next_to_a_gap_that_ends_in_a_spike_intervals_hold_as_often_as_stated`, `at_the_ends_of_the_range_intervals_hold_as_often_as_stated`.
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
    pub(super) fn with_branching(low: f64, high: f64, leaves: u32, branching: u32) -> Result<Self, BadParameter> {
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
    /// is (Σ α_i·v_i / V)·h and apart from it something of variance Σ α_i²·v_i − (Σ α_i·v_i)² / V. From the leaf that is
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
    /// the total.
    fn pooled(&self, start: usize, size: usize, q: f64) -> f64 {
        let first = start.min(self.leaves() - 1);
        let last = ((start + size).min(self.leaves()) - 1).max(first);
        let weigh =
            |leaf: usize| if leaf < start { 1.0 } else { 1.0 - (leaf + 1 - start).min(size) as f64 / size as f64 };
        self.weighed(first, (first..=last).map(|leaf| weigh(leaf) - q).collect(), 1.0 - q, -q)
    }

    /// The variance of the number of values in so many leaves from `start` on.
    fn among(&self, start: usize, size: usize) -> f64 {
        self.weighed(start, vec![1.0; size], 0.0, 0.0)
    }

    /// The variance of a sum of leaves by weights: these from the leaf `first` on, others before and after them. See
    /// [`prefix`](Self::prefix) for what one level adds.
    fn weighed(&self, mut first: usize, mut weights: Vec<f64>, before: f64, after: f64) -> f64 {
        let weight = |node: usize, first: usize, weights: &[f64]| match node.checked_sub(first) {
            None => before,
            Some(place) => weights.get(place).copied().unwrap_or(after),
        };
        let mut variance = 0.0;
        for level in (0..self.levels() - 1).rev() {
            let spread = &self.spread[level + 1];
            let of = |node: usize| weight(node, first, &weights);
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
        let top = self.spread[0].iter().enumerate();
        variance + top.map(|(node, spread)| weight(node, first, &weights).powi(2) * spread).sum::<f64>()
    }

    /// How many leaves lie before each place where two topmost nodes meet, and before the last and the next of these, or the ends; none where topmost
    /// nodes are leaves.
    fn meetings(&self) -> impl Iterator<Item = [usize; 3]> {
        let (below, leaves) = (self.sizes.len() - 1, self.leaves());
        let width = self.branching.saturating_pow(below as u32);
        let nodes = if below == 0 { 1 } else { self.sizes[0] };
        (1..nodes).map(move |node| [(node - 1) * width, node * width, ((node + 1) * width).min(leaves)])
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

/// A noisy tree, read: how many values lie below each bin, as far as can be seen.
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
    /// How many values there are, as far as can be seen.
    pub fn total(&self) -> f64 {
        self.below[self.below.len() - 1]
    }

    /// The value below which a share `q` (clamped to 0..1) of all values lies.
    ///
    /// The best guess never falls as `q` grows. The interval is made to hold the bin of the true quantile with this
    /// confidence: it covers all bins that a test of "the quantile lies here" does not rule out. The test looks at
    /// ranks that rise, as true ones do (Woodruff 1952): of ranks that may fall, one stray among thousands would
    /// stretch the interval far beyond what the noise on the rank asked for comes to. That noise is of one linear form
    /// of the counts, the rank less q times the total, and its variance is known exactly. Where ranks fell and were
    /// pooled, it is the variance of the pool's mean, and a little less. At the ends of a stretch without values the nearest rising sequence
    /// leans outwards; so where a pool is flatter than noise would make it next to such slopes as it lies between, its
    /// first and last rank may also pass half-way between what was pooled and what was counted.
    ///
    /// That is tried, not proved: which ranks are pooled is the noise's choice. Intervals for 95 % hold 94 to 97 % in
    /// humps, tails, next to gaps and spikes, and 99 % where the noise on a rank is a tenth of all values or more; where
    /// they are a few bins wide, no narrower one may do.
    ///
    /// The interval speaks of the noise, and not of values that bounding left out; at 0 and 1 it reaches to the end of
    /// the range, for which [`smallest`](Self::smallest) and [`largest`](Self::largest) are better. Where the total is
    /// not clearly above 0 (there may be no data at all) the answer is the middle of the range, and all of it.
    pub fn quantile(&self, q: f64, confidence: f64) -> Estimate {
        let (q, z) = (if q.is_nan() { 0.5 } else { q.clamp(0.0, 1.0) }, deviations((1.0 - confidence) / 2.0));
        let total = self.total();
        if total <= self.slack(z, self.tree.leaves(), 0.0) {
            return self.tree.everything();
        }
        let leaves = self.tree.leaves();
        let above = |end: usize| self.rising[end] - q * total;
        let slack = self.slacks(z, q, &above);
        let (mut may_start, mut may_end) = (vec![true; leaves + 1], vec![true; leaves + 1]);
        for end in 1..leaves {
            (may_start[end], may_end[end]) = (above(end) <= slack[end], above(end) >= -slack[end]);
        }
        for &(start, size) in self.pools.iter().filter(|(_, size)| *size > 1) {
            let own =
                |end: usize| (f64::midpoint(self.below[end], self.rising[end]) - q * total, self.slack(z, end, q));
            let last = start + size - 1;
            let ((lower, about), (upper, near)) = (own(start), own(last));
            let (ends, starts) = (!may_end[start] && lower >= -about, !may_start[last] && upper <= near);
            if (ends || starts) && self.flat(start, size) {
                may_end[start] |= ends;
                may_start[last] |= starts;
            }
        }
        // Where topmost nodes meet, a rank has far less noise than next to it, and holds its neighbours: one that is clearly too high speaks against all
        // that start there or later. A second test, so each end has half of its chance to be wrong; and one only: in a gap all of them say the same,
        // so a meeting is heard where ranks rise clearly from the last and to the next.
        let surer = deviations((1.0 - confidence) / 4.0);
        for [before, end, after] in self.tree.meetings() {
            let (away, slack) = (self.below[end] - q * total, self.slack(surer, end, q));
            let rises = |from: usize, to: usize| self.rising[to] - self.rising[from] > 2.0 * slack;
            if rises(before, end) && rises(end, after) {
                if away > slack {
                    may_start[end..].fill(false);
                } else if away < -slack {
                    may_end[..=end].fill(false);
                }
            }
        }
        let may_hold = |leaf: &usize| may_start[*leaf] && may_end[*leaf + 1];
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

    /// Whether ranks stay the same over a pool for longer than noise would make them: at the steeper of the slopes next to
    /// it, as far again to either side, they would have risen by more than four standard deviations of that rise.
    fn flat(&self, start: usize, size: usize) -> bool {
        let (first, last) = (start, start + size - 1);
        let (from, to) = ((first - 1).saturating_sub(size), (last + 1 + size).min(self.tree.leaves()));
        let slope = |a: usize, b: usize| (self.rising[b] - self.rising[a]) / (b - a) as f64;
        let steeper = slope(from, first).max(slope(last, to));
        steeper * size as f64 > 4.0 * self.deviation * self.tree.among(first, size - 1).sqrt()
    }

    /// The same for ranks that rise, one for each number of leaves: what lies further off by any measure is left as it is.
    ///
    /// A pool between others has less noise than its mean, since they hold it from both sides, the more so the fewer pools
    /// there are for the ranks in question: 2 % less for each halving fits simulations (even values, humps, tails; noise
    /// on a rank of 0.3 to 30 % of all values). A pool that is flat by itself is held by nothing.
    fn slacks(&self, z: f64, q: f64, above: &dyn Fn(usize) -> f64) -> Vec<f64> {
        let mut slacks: Vec<f64> = (0..=self.tree.leaves()).map(|end| self.slack(z, end, q)).collect();
        let near = |(start, size): &(usize, usize)| {
            (*start..start + size).filter(|end| above(*end).abs() <= slacks[*end]).count()
        };
        let ranks: Vec<usize> = self.pools.iter().map(near).collect();
        let pools = ranks.iter().filter(|near| **near > 0).count().max(1);
        let held = 1.0 - 0.02 * (ranks.iter().sum::<usize>().max(pools) as f64 / pools as f64).log2();
        for (&(start, size), _) in self.pools.iter().zip(ranks).filter(|((_, size), near)| *size > 1 && *near > 0) {
            let held = if self.flat(start, size) { 1.0 } else { held };
            let pooled = self.within(z * held, self.tree.pooled(start, size, q));
            for slack in &mut slacks[start..start + size] {
                *slack = pooled.min(*slack);
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
mod tests;
