//! The demo's table: who visited which site how often. It is made up by a fixed rule, so nobody is in it.

/// The sites, how many of a thousand users visit each, and how often they mostly do.
const SITES: [(&str, u64, u64); 8] = [
    ("search.example", 930, 4),
    ("mail.example", 780, 4),
    ("video.example", 690, 3),
    ("news.example", 560, 3),
    ("shop.example", 450, 3),
    ("maps.example", 330, 2),
    ("bank.example", 190, 2),
    ("clinic.example", 60, 2),
];

/// How many users there are.
pub(super) const USERS: u64 = 300;

/// The public list of sites: the histogram has a bar for each, visited or not.
pub(super) fn sites() -> Vec<String> {
    SITES.iter().map(|(site, _, _)| (*site).to_owned()).collect()
}

/// How often each user visited each site: one entry a user, one number a site.
pub(super) fn visits() -> Vec<[u64; SITES.len()]> {
    let of = |user: u64| {
        let mut row = [0; SITES.len()];
        for (site, (count, &(_, share, often))) in row.iter_mut().zip(&SITES).enumerate() {
            let dice = scramble(user * 64 + site as u64);
            if dice % 1000 < share {
                let binge = if (dice >> 40).is_multiple_of(31) { 12 } else { 0 };
                *count = 1 + (dice >> 20) % (2 * often - 1) + binge;
            }
        }
        row
    };
    (0..USERS).map(of).collect()
}

/// A fixed rule that looks like chance (the finaliser of SplitMix64). The data are invented with it, never noise.
fn scramble(seed: u64) -> u64 {
    let mut x = seed.wrapping_add(1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    x = (x ^ (x >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    x ^ (x >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_the_same_every_time_and_has_something_at_every_site() {
        assert_eq!(visits(), visits());
        let totals: Vec<u64> = (0..SITES.len()).map(|site| visits().iter().map(|row| row[site]).sum()).collect();
        assert!(totals.iter().all(|&total| total > 10), "{totals:?}");
        assert!(totals.is_sorted_by(|a, b| a >= b), "the most visited site comes first: {totals:?}");
    }
}
