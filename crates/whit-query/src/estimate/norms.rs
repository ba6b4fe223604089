//! How long users' blocks are: a noisy histogram of lengths, from which a radius is chosen.

use super::noise::EstimateError;
use super::tokens::Tokens;
use super::{Moved, Touch, float_up, root_up};
use whit_core::Unit;

/// How many lengths are told apart. Each is 2^¼ times the one before.
pub const BINS: usize = 64;
/// Steps to one block, as a power of two, where users with many blocks count for less.
const BITS: u32 = 24;

/// The public part of stage one: which lengths are told apart, and how far each unit moves their counts.
///
/// A user's blocks are counted by length, and the vector of these counts is projected on the ball of radius √k, k being
/// the cap on clusters per user. So a user with many blocks counts for less than their number, which a choice of radius
/// can bear, and both rungs keep their figures, for the reasons that [`Hitters`](super::hitters::Hitters) gives:
///
/// | unit | Δ |
/// |---|---|
/// | event, add-remove; element of one cluster | √2: a block leaves one length and joins another |
/// | event, replace | 2√2 |
/// | element of t clusters | √2·t |
/// | user, add-remove | √k, or the number of clusters without a cap |
/// | user, replace | √2 times that |
///
/// and √64 lattice steps (of 2⁻²⁴) for rounding on those that rely on the projection.
/// Tried by `no_neighbour_moves_the_lengths_further_than_told`.
#[derive(Debug, Clone, PartialEq)]
pub struct NormBound {
    clusters: u64,
    cap: Option<u64>,
    touch: Touch,
    user: String,
    /// The shortest length that is told apart, in weight units.
    shortest: f64,
}

impl NormBound {
    pub(super) fn new(
        clusters: u64,
        cap: Option<u64>,
        touch: Touch,
        user: &str,
        shortest: f64,
    ) -> Result<Self, EstimateError> {
        if !(shortest > 0.0 && shortest.is_finite()) {
            let range = "finite and greater than 0";
            return Err(EstimateError::Range { name: "the shortest length", value: shortest, range });
        }
        Ok(Self { clusters, cap, touch, user: user.to_owned(), shortest })
    }

    /// How far one unit moves the counts in ℓ2, in steps, rounded up.
    pub(super) fn distance(&self, unit: &Unit) -> Option<f64> {
        let step = f64::from(1 << BITS);
        // Both vectors lie in the positive part of a ball, so they are no further apart than √2 times its radius. The
        // radius is kept to a relative 2^-45; see `gather`.
        let radius =
            self.cap.map_or(self.clusters as f64, |cap| root_up(float_up(cap.into())).min(self.clusters as f64));
        let user = step * radius * (1.0 + 2f64.powi(-44));
        let replaced = (user * root_up(2.0)).next_up();
        // Rounding down moves a coordinate by less than one step; two roundings differ by less than one step too.
        let slack = root_up(BINS as f64) + user * 2f64.powi(-44);
        let blocks = |blocks: f64| ((step * root_up(2.0) * blocks).next_up() + slack).next_up().min(replaced);
        Some(match Moved::by(unit, &self.user)? {
            Moved::Row => blocks(1.0),
            // Two users may be moved, and a user's figure bounds one of them.
            Moved::TwoRows => 2.0 * blocks(1.0),
            Moved::Element => match self.touch {
                Touch::Most(clusters) => blocks(clusters as f64),
                Touch::Any => replaced,
            },
            Moved::User => user,
            Moved::UserReplaced => replaced,
        })
    }

    /// The longest length of a bin, in weight units; the last one holds all that is longer, too.
    pub(super) fn edge(&self, bin: usize) -> f64 {
        self.shortest * 2f64.powf(bin as f64 / 4.0)
    }

    /// The bin of a block by the square of its length. A function of nothing else.
    fn bin(&self, square: u128) -> usize {
        let length = (square as f64).sqrt();
        (0..BINS - 1).find(|&bin| length <= self.edge(bin)).unwrap_or(BINS - 1)
    }

    /// Counts the blocks of the users that are kept, by length.
    pub(super) fn gather(&self, tokens: &Tokens, keep: impl Fn(u64) -> bool) -> Result<Vec<i64>, EstimateError> {
        let mut sums = vec![0_i64; BINS];
        for (_, user) in tokens.users().filter(|(mark, _)| keep(*mark)) {
            let mut counts = [0_u64; BINS];
            user.blocks().for_each(|(square, _)| counts[self.bin(square)] += 1);
            let square: u128 = counts.iter().map(|&count| u128::from(count).pow(2)).sum();
            // A relative error of a few 2^-53, and the same number for the same user whatever else is there.
            let scale = self.cap.map_or(1.0, |cap| (cap as f64 / square as f64).sqrt().min(1.0)) * f64::from(1 << BITS);
            for (sum, &count) in sums.iter_mut().zip(&counts) {
                *sum = sum.checked_add((count as f64 * scale) as i64).ok_or(EstimateError::Overflow)?;
            }
        }
        Ok(sums)
    }

    /// The shortest length that at least this share of blocks does not exceed, by noisy counts.
    pub(super) fn quantile(&self, noisy: &[i64], share: f64) -> f64 {
        let total: f64 = noisy.iter().map(|&count| count as f64).sum();
        let mut sum = 0.0;
        let reached = |count: &i64| {
            sum += *count as f64;
            sum >= share * total
        };
        // Where noise has eaten all, any radius is as good as another.
        self.edge(if total > 0.0 { noisy.iter().position(reached).unwrap_or(BINS - 1) } else { 0 })
    }

    /// What a radius cuts off, by noisy counts with noise of this deviation.
    pub(super) fn clipping(&self, noisy: &[i64], radius: f64, sigma: f64) -> Clipping {
        let (mut blocks, mut cut, mut length, mut lost) = (0.0, 0.0, 0.0, 0.0);
        for (bin, &count) in noisy.iter().enumerate() {
            // What is mostly noise is left out: the longest bins would make much of it.
            let count = if count as f64 > 5.0 * sigma { count as f64 } else { 0.0 };
            let middle = self.edge(bin) * 2f64.powf(-0.125);
            blocks += count;
            length += count * middle;
            if self.edge(bin) > radius * (1.0 + 1e-9) {
                cut += count;
                lost += count * (middle - radius).max(0.0);
            }
        }
        let share = |part: f64, whole: f64| if whole > 0.0 { part / whole } else { 0.0 };
        Clipping { blocks: share(cut, blocks), length: share(lost, length) }
    }
}

/// About how much a radius cuts off, estimated from the noisy lengths.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Clipping {
    /// The share of blocks that are longer than the radius.
    pub blocks: f64,
    /// The share of all blocks' length that is cut off.
    pub length: f64,
}
