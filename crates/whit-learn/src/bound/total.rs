//! Sums of very many numbers, to twice the digits of a float.
//!
//! A running sum in f64 rounds at each addition by up to 2⁻⁵³ of all that was added before: over N units of one clip norm that is N²·2⁻⁵⁴ clip norms, which for 2²⁴ of
//! them is more than a plan pays for. So what is rounded away is kept next to the sum.

use rayon::prelude::*;
use std::ops::Range;

/// So many numbers of a sum are added to by one thread at a time.
const BLOCK: usize = 512;

/// A sum of vectors.
///
/// K additions err by at most K·2⁻¹⁰⁵ times the largest sum on the way, number by number, and what is read of it in the end by 2⁻⁵³ of itself besides: algorithm 4 of Joldes,
/// Muller and Popescu 2017, whose theorem bounds each addition by 2·2⁻¹⁰⁶ of its result, whatever the signs are.
#[derive(Debug, Clone, Default)]
pub(crate) struct Total {
    sum: Vec<f64>,
    /// What the sum lacks: at most half a unit in its last place.
    rest: Vec<f64>,
}

/// Some of its numbers, to add to.
pub(crate) struct Part<'a> {
    sum: &'a mut [f64],
    rest: &'a mut [f64],
}

impl Total {
    /// So many zeros.
    pub(crate) fn new(numbers: usize) -> Self {
        Self { sum: vec![0.0; numbers], rest: vec![0.0; numbers] }
    }

    /// These numbers.
    #[cfg(test)]
    pub(super) fn of(sum: Vec<f64>) -> Self {
        let rest = vec![0.0; sum.len()];
        Self { sum, rest }
    }

    /// Zeros again.
    pub(crate) fn clear(&mut self) {
        self.sum.fill(0.0);
        self.rest.fill(0.0);
    }

    /// The sums, each rounded once.
    pub(crate) fn values(&self) -> &[f64] {
        &self.sum
    }

    /// The same, kept.
    pub(crate) fn into_values(self) -> Vec<f64> {
        self.sum
    }

    /// All of it.
    pub(crate) fn whole(&mut self) -> Part<'_> {
        Part { sum: &mut self.sum, rest: &mut self.rest }
    }

    /// Two parts that do not overlap; nothing where they do, or end beyond it.
    pub(crate) fn parts(&mut self, ranges: [Range<usize>; 2]) -> Option<[Part<'_>; 2]> {
        let [first, second] = self.sum.get_disjoint_mut(ranges.clone()).ok()?;
        let [first_rest, second_rest] = self.rest.get_disjoint_mut(ranges).ok()?;
        Some([Part { sum: first, rest: first_rest }, Part { sum: second, rest: second_rest }])
    }
}

impl Part<'_> {
    /// How many numbers it has.
    pub(crate) fn len(&self) -> usize {
        self.sum.len()
    }

    /// Some of them.
    pub(crate) fn at(&mut self, range: Range<usize>) -> Part<'_> {
        Part { sum: &mut self.sum[range.clone()], rest: &mut self.rest[range] }
    }

    /// Adds a value to each, as long as there are values.
    pub(crate) fn add(&mut self, values: impl Iterator<Item = f64>) {
        for ((sum, rest), value) in self.sum.iter_mut().zip(self.rest.iter_mut()).zip(values) {
            let high = *sum + value;
            let moved = high - *sum;
            // What the addition rounded away, exactly.
            let lost = (*sum - (high - moved)) + (value - moved);
            let low = *rest + lost;
            *sum = high + low;
            *rest = low - (*sum - high);
        }
    }

    /// Has all threads add, each to blocks of its own, which begin at the index that is given.
    pub(crate) fn by_blocks(&mut self, add: impl Fn(usize, Part<'_>) + Sync) {
        let blocks = self.sum.par_chunks_mut(BLOCK).zip(self.rest.par_chunks_mut(BLOCK)).enumerate();
        blocks.for_each(|(block, (sum, rest))| add(block * BLOCK, Part { sum, rest }));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A float that is a multiple of 2⁻⁶⁰, in such multiples: exact, since the product is.
    fn exactly(value: f64) -> i128 {
        let scaled = value * 2_f64.powi(60);
        assert!(scaled.fract() == 0.0 && scaled.abs() < 2_f64.powi(120));
        scaled as i128
    }

    /// How far a float is from an exact sum, over 2⁻⁶⁰.
    fn off(found: f64, exact: i128) -> f64 {
        (exactly(found) - exact).unsigned_abs() as f64
    }

    #[test]
    fn a_sum_of_very_many_numbers_errs_once_and_not_at_each_addition() {
        // A third rounds the same way for as long as the sum stays between two powers of two.
        let (third, many) = (1.0_f64 / 3.0, 1 << 20);
        let (mut total, mut plain) = (Total::new(1), 0.0_f64);
        for _ in 0..many {
            total.whole().add(std::iter::once(third));
            plain += third;
        }
        let (exact, whole) = (i128::from(many) * exactly(third), f64::from(many) * third);
        let unit = 2_f64.powi(60 - 53) * whole;
        assert!(off(total.values()[0], exact) <= unit, "one rounding: {}", off(total.values()[0], exact) / unit);
        // Blocks of 512 rows have room for 512 roundings of the whole, and a running sum has none for its own.
        assert!(off(plain, exact) > 512.0 * unit, "{} roundings", off(plain, exact) / unit);
    }

    #[test]
    fn large_numbers_that_cancel_leave_the_small_ones() {
        let mut total = Total::new(2);
        let (mut plain, mut exact) = (0.0_f64, 0_i128);
        let mut state = 1_u64;
        for place in 0..100_000 {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let small = (state >> 40) as f64 * 2_f64.powi(-60);
            let large = if place % 2 == 0 { 2_f64.powi(11) / 3.0 } else { -(2_f64.powi(11) / 3.0) };
            for value in [large, small] {
                total.whole().add([value, -value].into_iter());
                plain += value;
                exact += exactly(value);
            }
        }
        let [up, down] = [total.values()[0], total.values()[1]];
        // 200 000 additions, of sums of at most 2¹¹, and one rounding.
        let bound = 200_000.0 * 2_f64.powi(60 - 105 + 11) + 2_f64.powi(60 - 53) * up.abs();
        assert!(off(up, exact) <= bound && down == -up, "{} beyond {bound}", off(up, exact));
        assert!(off(plain, exact) > 1000.0 * bound, "a plain sum errs by {}", off(plain, exact));
    }

    #[test]
    fn parts_are_added_to_where_they_lie() {
        let mut total = Total::new(1300);
        total.whole().by_blocks(|start, mut part| {
            let numbers = start..start + part.len();
            part.add(numbers.map(|number| number as f64));
        });
        let [mut first, mut second] = total.parts([1..3, 1299..1300]).expect("they are apart");
        first.add([0.5, 0.25, 7.0].into_iter());
        second.at(0..1).add(std::iter::once(1.0));
        assert_eq!(total.values()[..4], [0.0, 1.5, 2.25, 3.0]);
        assert_eq!(total.values()[1298..], [1298.0, 1300.0]);
        assert!(total.parts([0..2, 1..3]).is_none() && total.parts([0..1, 5..1301]).is_none());
        total.clear();
        assert!(total.into_values().iter().all(|value| *value == 0.0));
    }
}
