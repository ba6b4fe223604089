//! The known name that somebody probably meant.

/// The nearest of `names` to `name` by edit distance, if one is near enough to be meant; the first of those equally near.
///
/// Case and the difference between `-`, `_` and a blank do not count. Two letters that changed places count once.
///
/// ```
/// use whit_core::declare::nearest;
/// assert_eq!(nearest("contry", ["city", "country"].into_iter()), Some("country"));
/// assert_eq!(nearest("User-ID", ["user_id", "user"].into_iter()), Some("user_id"));
/// assert_eq!(nearest("weather", ["city", "country"].into_iter()), None);
/// ```
pub fn nearest<'a>(name: &str, names: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let wanted = folded(name);
    let mut best: Option<(usize, &str)> = None;
    for candidate in names {
        let other = folded(candidate);
        // A third of the letters may be wrong, and one always; but not all of a short name.
        let allowed = (wanted.len().max(other.len()) / 3).max(1).min(wanted.len().max(1));
        if wanted.len().abs_diff(other.len()) > allowed {
            continue;
        }
        let distance = distance(&wanted, &other);
        let something_is_left = distance < wanted.len().max(other.len());
        if distance <= allowed && something_is_left && best.is_none_or(|(least, _)| distance < least) {
            best = Some((distance, candidate));
        }
    }
    best.map(|(_, candidate)| candidate)
}

fn folded(name: &str) -> Vec<char> {
    let plain = name.chars().map(|c| if c == '-' || c == ' ' { '_' } else { c });
    plain.flat_map(char::to_lowercase).collect()
}

/// Optimal string alignment: insertions, deletions, replacements, and neighbours that changed places.
fn distance(a: &[char], b: &[char]) -> usize {
    let mut before: Vec<usize> = Vec::new();
    let mut last: Vec<usize> = (0..=b.len()).collect();
    for (i, &x) in a.iter().enumerate() {
        let mut row = vec![i + 1];
        for (j, &y) in b.iter().enumerate() {
            let replaced = last[j] + usize::from(x != y);
            let mut least = replaced.min(last[j + 1] + 1).min(row[j] + 1);
            if i > 0 && j > 0 && x == b[j - 1] && a[i - 1] == y {
                least = least.min(before[j - 1] + 1);
            }
            row.push(least);
        }
        before = std::mem::replace(&mut last, row);
    }
    last[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn edits_are_counted_one_by_one() {
        for (a, b, expected) in
            [("", "", 0), ("abc", "", 3), ("kitten", "sitting", 3), ("recieve", "receive", 1), ("ab", "ba", 1)]
        {
            assert_eq!(distance(&folded(a), &folded(b)), expected, "{a} to {b}");
            assert_eq!(distance(&folded(b), &folded(a)), expected, "{b} to {a}");
        }
    }

    #[test]
    fn what_is_far_is_not_offered() {
        let names = ["id", "at", "url", "seconds"];
        assert_eq!(nearest("second", names.into_iter()), Some("seconds"));
        assert_eq!(nearest("x", names.into_iter()), None);
        assert_eq!(nearest("", names.into_iter()), None);
        assert_eq!(nearest("minutes", names.into_iter()), None);
        assert_eq!(nearest("anything", std::iter::empty()), None);
    }

    #[test]
    fn the_first_of_those_equally_near_is_taken() {
        assert_eq!(nearest("cat", ["bat", "hat"].into_iter()), Some("bat"));
        assert_eq!(nearest("CAT", ["bat", "cat"].into_iter()), Some("cat"));
    }
}
