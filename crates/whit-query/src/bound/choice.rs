//! Which of its own a unit keeps: hashes of who it is and what it has, under a secret seed.

/// One hash of two. Multiplied to 128 bits and folded, so that each bit of one meets each bit of the other, and then stirred once
/// more, since where few candidates differ it is the high bits that decide.
pub(crate) fn mix(a: u64, b: u64) -> u64 {
    let product = u128::from(a ^ 0x9e37_79b9_7f4a_7c15) * u128::from(b ^ 0xd1b5_4a32_d192_ed03);
    let mut z = (product as u64) ^ ((product >> 64) as u64) ^ b.rotate_left(32);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// A number below `most`, each nearly as likely as the others.
pub(crate) fn share_of(hash: u64, most: u64) -> u64 {
    ((u128::from(hash) * u128::from(most)) >> 64) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Of 20 groups each user keeps the five with the smallest hashes. A right mix fails once in 10⁹ seeds (Hoeffding, over all groups): each is
    /// then kept by a quarter of the users; if the choice were the group's alone, it would be all users or none.
    #[test]
    fn every_group_is_kept_by_its_share_of_users() {
        let (users, groups, most) = (20_000_u64, 20_u64, 5_usize);
        // Hashes of users and groups that are as poor as can be: small whole numbers.
        let mut kept = vec![0_u64; groups as usize];
        for user in 0..users {
            let mut order: Vec<(u64, u64)> = (0..groups).map(|group| (mix(user, group), group)).collect();
            order.sort_unstable();
            order[..most].iter().for_each(|&(_, group)| kept[group as usize] += 1);
        }
        let tolerance = ((2.0e9 * groups as f64).ln() / (2.0 * users as f64)).sqrt();
        for (group, &kept) in kept.iter().enumerate() {
            let share = kept as f64 / users as f64;
            assert!((share - 0.25).abs() < tolerance, "group {group}: {share}");
        }
    }

    #[test]
    fn shares_are_below_what_they_are_shares_of() {
        for most in [1, 2, 3, 1000, u64::MAX] {
            for hash in [0, 1, u64::MAX / 2, u64::MAX] {
                assert!(share_of(hash, most) < most);
            }
        }
        let mut met = [0_u64; 7];
        (0..70_000).for_each(|i| met[share_of(mix(i, 3), 7) as usize] += 1);
        assert!(met.iter().all(|&times| (9_400..10_600).contains(&times)), "{met:?}"); // six standard deviations
    }
}
