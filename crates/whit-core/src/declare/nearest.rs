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
    let letters = |name: &str| name.chars().count();
    let mut best: Option<(usize, &str)> = None;
    for candidate in names {
        let other = folded(candidate);
        // A third of the letters may be wrong, and one always; but not all of a short name.
        let longest = letters(&wanted).max(letters(&other));
        let allowed = (longest / 3).max(1).min(letters(&wanted).max(1));
        // Optimal string alignment: insertions, deletions, replacements, and neighbours that changed places.
        let distance = strsim::osa_distance(&wanted, &other);
        let something_is_left = distance < longest;
        if distance <= allowed && something_is_left && best.is_none_or(|(least, _)| distance < least) {
            best = Some((distance, candidate));
        }
    }
    best.map(|(_, candidate)| candidate)
}

fn folded(name: &str) -> String {
    let plain = name.chars().map(|c| if c == '-' || c == ' ' { '_' } else { c });
    plain.flat_map(char::to_lowercase).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn letters_that_changed_places_count_once() {
        assert_eq!(nearest("recieve", ["receive"].into_iter()), Some("receive"));
        assert_eq!(nearest("ba", ["ab"].into_iter()), Some("ab"));
        assert_eq!(nearest("abcd", ["badc"].into_iter()), None);
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
