//! Rows with weights: what a unit moves when its rows are limited in each group and in all.
//!
//! A unit has a weight wᵢ in each coordinate (how many of its rows count there), and adds something in \[wᵢ·l, wᵢ·h\] to it, with l ≤ 0 ≤ h. At
//! most L weights are above 0, each is at most R, together they are at most T, and there are D coordinates. Let c be
//! the larger of |l| and h, d the smaller, and w = c + d. Let Q(k) be the largest Σ wᵢ² over at most k weights:
//! q·R² + (T − q·R)² with q = ⌊T/R⌋ if q < k, and k·R² otherwise.
//!
//! # One side (add-remove)
//! Σ|vᵢ| ≤ c·Σwᵢ ≤ c·min(T, L·R), and Σvᵢ² ≤ c²·Σwᵢ² ≤ c²·Q(L): a convex function has its largest value at a corner, and at a
//! corner of {0 ≤ wᵢ ≤ R, Σwᵢ ≤ T} all weights but one are 0 or R. Both are attained.
//!
//! # Two sides of one sign (d = 0)
//! |vᵢ − v′ᵢ| ≤ c·max(wᵢ, w′ᵢ). Let A be the coordinates at which w is the larger and B the rest where w′ is not 0: |A|, |B| ≤ L and
//! |A| + |B| ≤ m = min(D, 2L). So ℓ1 ≤ c·(min(T, |A|·R) + min(T, |B|·R)), and ℓ2² ≤ c²·(Q(|A|) + Q(|B|)). Each
//! further coordinate adds no more than the one before it, to both, so the sums are largest where |A| and |B| are m/2, rounded up and down. Attained:
//! weights of one unit on A, of the other on B.
//!
//! # Two sides with signs
//! At a coordinate that both have, |vᵢ − v′ᵢ| ≤ c·max(wᵢ, w′ᵢ) + d·min(wᵢ, w′ᵢ) ≤ R·w, and at one that only one has, c·wᵢ ≤ R·c. Again
//! a corner is worst, and there no more than E = min(L, ⌈T/R⌉) weights are above 0. With s coordinates that both have, e ≤ min(2(E − s), D − s) are left
//! to one, so ℓ2² ≤ R²·(e·c² + s·w²) and ℓ1 ≤ R·(e·c + s·w). Both are linear in s on either side of 2E − D, so the worst s is 0, E or that.
//! Attained where T is a multiple of R. Where it is not, two more bounds may be smaller: ℓ1 ≤ 2c·min(T, L·R), and, since (c·a + d·b)² ≤ (c² + d²)(a² + b²),
//! ℓ2² ≤ 2(c² + d²)·Q(L).
//!
//! # Known coordinates
//! Where a unit's coordinates are known, there are no more of them for it than L: D = L.

use super::{Sensitivity, Support};
use crate::unit::Change;
use serde::{Deserialize, Serialize};
use whit_noise::round::{product_up, root_of_whole_up, root_times_up, whole_product_up, whole_up};

/// How rows with weights are limited. [`u64::MAX`] stands for no limit, save on what one row adds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Weighted {
    /// The most groups of one unit: L.
    pub groups: u64,
    /// The most rows of one unit that count in one group: R.
    pub rows: u64,
    /// The most rows of one unit that count in all: T.
    pub in_all: u64,
    /// How many groups there are: D.
    pub coordinates: u64,
    /// The least that one row adds; 0 where it is above that.
    pub low: i64,
    /// The most; 0 where it is below that.
    pub high: i64,
    /// What is known of the groups.
    pub support: Support,
}

impl Weighted {
    /// The largest Σ wᵢ² over at most `groups` weights, where that fits into 128 bits.
    fn squares(groups: u128, rows: u128, in_all: u128) -> Option<u128> {
        let full = (in_all / rows).min(groups);
        let rest = if full < groups { in_all - full * rows } else { 0 };
        rows.checked_mul(rows)?.checked_mul(full)?.checked_add(rest.checked_mul(rest)?)
    }

    /// How far one unit moves the statistic, rounded up.
    pub(super) fn sensitivity(&self, change: Change) -> Sensitivity {
        let groups = u128::from(self.groups.min(self.coordinates));
        let rows = u128::from(self.rows.min(self.in_all));
        let (low, high) = (self.low.min(0).unsigned_abs(), self.high.max(0).unsigned_abs());
        let (c, d) = (u128::from(low.max(high)), u128::from(low.min(high)));
        if groups == 0 || rows == 0 || c == 0 {
            return Sensitivity { l1: 0.0, l2: 0.0 };
        }
        let in_all = u128::from(self.in_all).min(groups * rows); // both below 2^64
        let most = groups.min(in_all.div_ceil(rows)); // E
        let coordinates = match self.support {
            Support::Any | Support::NonNegative => u128::from(self.coordinates),
            Support::Fixed { .. } | Support::Single => groups,
        };
        match (change, d) {
            (Change::AddRemove, _) => Sensitivity {
                l1: whole_product_up(in_all, c),
                l2: length(Self::squares(groups, rows, in_all), c, (most, rows)),
            },
            (Change::Replace, 0) => {
                let both = coordinates.min(2 * groups);
                let (more, less) = (both.div_ceil(2), both / 2);
                let of = |side: u128| in_all.min(side * rows);
                let squares = Self::squares(more, rows, in_all)
                    .zip(if less > 0 { Self::squares(less, rows, in_all) } else { Some(0) })
                    .and_then(|(a, b)| a.checked_add(b));
                Sensitivity { l1: whole_product_up(of(more) + of(less), c), l2: length(squares, c, (2 * most, rows)) }
            }
            (Change::Replace, _) => {
                let meeting = (2 * most).saturating_sub(coordinates).min(most);
                let apart = |s: u128| (2 * (most - s)).min(coordinates - s);
                let worst = |of: &dyn Fn(u128, u128) -> f64| {
                    [0, most, meeting].into_iter().map(|s| of(apart(s), s)).fold(0.0, f64::max)
                };
                let l1 = worst(&|e, s| {
                    let both = e.checked_mul(c).and_then(|e| e.checked_add(s.checked_mul(c + d)?));
                    both.map_or(f64::INFINITY, |both| whole_product_up(both, rows))
                });
                let l2 = worst(&|e, s| {
                    let square = |size: u128| size.checked_mul(size);
                    let both = square(c).and_then(|c| c.checked_mul(e)).and_then(|apart| {
                        square(c + d).and_then(|w| w.checked_mul(s)).and_then(|meet| meet.checked_add(apart))
                    });
                    // Where that does not fit: as if all of them were as far apart as those that both have.
                    both.map_or_else(|| root_times_up(e + s, rows * (c + d)), |both| length(Some(both), rows, (1, 1)))
                });
                let by_length = (c.checked_mul(c).zip(d.checked_mul(d)))
                    .and_then(|(c, d)| c.checked_add(d)?.checked_mul(2))
                    .zip(Self::squares(groups, rows, in_all))
                    .and_then(|(sides, squares)| sides.checked_mul(squares))
                    .map_or(f64::INFINITY, root_of_whole_up);
                Sensitivity { l1: l1.min(whole_product_up(2 * in_all, c)), l2: l2.min(by_length) }
            }
        }
    }
}

/// `√squares · size`, rounded up; where there are no squares, `√count · each · size`.
fn length(squares: Option<u128>, size: u128, (count, each): (u128, u128)) -> f64 {
    let Some(squares) = squares else { return root_times_up(count, each.saturating_mul(size)) };
    let whole = size.checked_mul(size).and_then(|square| square.checked_mul(squares));
    whole.map_or_else(|| product_up(root_of_whole_up(squares), whole_up(size)), root_of_whole_up)
}

#[cfg(test)]
mod tests {
    use super::super::Bound;
    use super::*;

    const ADD: Change = Change::AddRemove;
    const REPLACE: Change = Change::Replace;

    fn limits(groups: u64, rows: u64, in_all: u64, coordinates: u64, (low, high): (i64, i64)) -> Weighted {
        let support = if low < 0 { Support::Any } else { Support::NonNegative };
        Weighted { groups, rows, in_all, coordinates, low, high, support }
    }

    /// Every vector that a unit may add: by weights first, and then by what so many rows can come to.
    fn contributions(limits: &Weighted) -> Vec<Vec<i64>> {
        let mut found = std::collections::BTreeSet::new();
        let dimension = limits.coordinates as usize;
        let mut open: Vec<(Vec<i64>, u64, u64)> = vec![(Vec::new(), 0, 0)];
        while let Some((vector, groups, rows)) = open.pop() {
            if vector.len() == dimension {
                found.insert(vector);
                continue;
            }
            for weight in 0..=limits.rows.min(limits.in_all - rows) {
                let groups = groups + u64::from(weight > 0);
                if groups <= limits.groups {
                    for value in weight as i64 * limits.low..=weight as i64 * limits.high {
                        open.push(([vector.as_slice(), &[value]].concat(), groups, rows + weight));
                    }
                }
            }
        }
        found.into_iter().collect()
    }

    /// The furthest two of these are apart: ℓ1 and the square of ℓ2, exactly.
    fn furthest(left: &[Vec<i64>], right: &[Vec<i64>]) -> (i64, i64) {
        let mut most = (0, 0);
        for a in left {
            for b in right {
                let gaps = a.iter().zip(b).map(|(x, y)| (x - y).abs());
                let (l1, square) = gaps.fold((0, 0), |(l1, square), gap| (l1 + gap, square + gap * gap));
                most = (most.0.max(l1), most.1.max(square));
            }
        }
        most
    }

    /// Exhaustively, over all pairs of what two units may add: never below, and what is said to be attained is.
    #[test]
    fn every_limit_is_what_brute_force_finds() {
        let mut tried = 0;
        for coordinates in 1..=4_u64 {
            let ranges: &[(i64, i64)] =
                if coordinates < 4 { &[(0, 1), (0, 2), (-1, 1), (-1, 2), (-2, 1)] } else { &[(0, 1), (-1, 1)] };
            for (&range, groups, rows) in
                ranges.iter().flat_map(|r| (1..=3).flat_map(move |g| (1..=2_u64).map(move |n| (r, g, n))))
            {
                for in_all in 1..=groups.min(coordinates) * rows + 1 {
                    let limits = limits(groups, rows, in_all, coordinates, range);
                    let all = contributions(&limits);
                    let zero = [vec![0; coordinates as usize]];
                    let whole = in_all % rows == 0 || in_all >= groups.min(coordinates) * rows;
                    for (change, (l1, square), tight) in [
                        (ADD, furthest(&all, &zero), true),
                        (REPLACE, furthest(&all, &all), range.0 == 0 || whole || rows == 1),
                    ] {
                        let stated = limits.sensitivity(change);
                        let (l1, l2) = (l1 as f64, (square as f64).sqrt());
                        assert!(
                            stated.l1 >= l1 && stated.l2 >= l2 * (1.0 - 1e-15),
                            "{limits:?} {change}: {stated:?}, {l1} {l2}"
                        );
                        assert!(
                            !tight || (stated.l1 == l1 && stated.l2 <= l2 * (1.0 + 1e-15)),
                            "{limits:?} {change}: {stated:?} is more than {l1} {l2}"
                        );
                        tried += 1;
                    }
                }
            }
        }
        assert!(tried > 500, "{tried}");
    }

    /// Where nothing but groups and ranges is limited, the table of the module above says the same.
    #[test]
    fn without_further_limits_it_is_the_first_line_of_the_table() {
        for (groups, rows, low, high) in [(1, 1, 0, 1), (3, 4, 0, 7), (5, 2, -3, 3), (2, 9, -1, 6), (4, 1, -5, 0)] {
            let free = limits(groups, rows, u64::MAX, u64::MAX, (low, high));
            let (least, most) = (low * rows as i64, high * rows as i64);
            let plain = Bound::coordinates(groups, least, most, Support::Any).unwrap();
            for change in [ADD, REPLACE] {
                assert_eq!(free.sensitivity(change), plain.sensitivity(change), "{free:?} {change}");
            }
            let known = Weighted { support: Support::Fixed { may_be_empty: true }, ..free };
            let plain = Bound::coordinates(groups, least, most, known.support).unwrap();
            assert_eq!(known.sensitivity(REPLACE), plain.sensitivity(REPLACE), "{known:?}");
        }
    }

    #[test]
    fn a_declared_limit_is_used_where_it_says_more() {
        // 30 rows in all are 30 in one group, not 30 in each of 30.
        let month = limits(30, 30, 30, u64::MAX, (0, 1));
        assert_eq!(month.sensitivity(ADD), Sensitivity { l1: 30.0, l2: 30.0 });
        assert_eq!(month.sensitivity(REPLACE).l1, 60.0);
        assert!(month.sensitivity(REPLACE).l2 < 42.427);
        // Seven weekdays are seven coordinates, whoever takes whose place.
        let week = limits(7, 1, u64::MAX, 7, (0, 1));
        assert_eq!(week.sensitivity(REPLACE).l1, 7.0);
        assert!((week.sensitivity(REPLACE).l2 / 7.0_f64.sqrt() - 1.0).abs() < 1e-15);
        // And with three rows in all, three go and three come.
        let few = limits(7, 3, 3, 7, (0, 1));
        assert_eq!(few.sensitivity(REPLACE).l1, 6.0);
        assert!((few.sensitivity(REPLACE).l2 / 18.0_f64.sqrt() - 1.0).abs() < 1e-15);
    }

    #[test]
    fn nothing_wraps() {
        for (low, high) in [(i64::MIN, i64::MAX), (0, i64::MAX), (i64::MIN, 0)] {
            for in_all in [1, u64::MAX] {
                let huge = limits(u64::MAX, u64::MAX, in_all, u64::MAX, (low, high));
                for change in [ADD, REPLACE] {
                    let stated = huge.sensitivity(change);
                    assert!(stated.l1 >= 9.2e18 && stated.l2 >= 9.2e18, "{huge:?} {change}: {stated:?}");
                }
            }
        }
        assert_eq!(limits(0, 1, 1, 1, (0, 1)).sensitivity(REPLACE), Sensitivity { l1: 0.0, l2: 0.0 });
    }
}
