//! What is wrong with a question, and where in it.

use crate::error::QueryError;
use crate::source::Warehouse;
use datafusion::common::DataFusionError;
use whit_core::declare::nearest;

/// Where in the question the thing stands that an error names in backticks.
pub(super) fn placed(mut error: QueryError, sql: &str) -> QueryError {
    if let Some((line, column)) = place_of(&error.sentence, sql) {
        error.sentence = format!("{} (line {line}, column {column})", error.sentence);
    }
    error
}

/// Where a word stands as a whole, and not as a part of another.
fn word_in(text: &str, word: &str) -> Option<usize> {
    let of_name = |c: Option<char>| c.is_some_and(|c| c.is_alphanumeric() || c == '_');
    text.match_indices(word).map(|(at, _)| at).find(|&at| {
        let (before, after) = (&text[..at], &text[at + word.len()..]);
        let begins = !of_name(word.chars().next()) || !of_name(before.chars().next_back());
        begins && (!of_name(word.chars().next_back()) || !of_name(after.chars().next()))
    })
}

fn place_of(sentence: &str, sql: &str) -> Option<(usize, usize)> {
    // Letters beyond ASCII may have other lengths in lower case, and places are counted in the question itself.
    let lower = sql.to_ascii_lowercase();
    let quoted = sentence.split('`').skip(1).step_by(2);
    let at = quoted.filter_map(|word| {
        // The last part of a name, or the name of a function: `visits.seconds`, `sum(visits.seconds)`.
        let word = word.split('(').next().unwrap_or(word);
        let word = word.rsplit('.').next().unwrap_or(word).trim().to_ascii_lowercase();
        (!word.is_empty()).then(|| word_in(&lower, &word)).flatten()
    });
    let words = [
        ("LIMIT", "limit"),
        ("GROUPING SETS", "group"),
        ("UNION", "union"),
        ("join", "join"),
        ("sub-query", "(select"),
    ];
    let at = at
        .min()
        .or_else(|| words.iter().find(|(said, _)| sentence.contains(said)).and_then(|(_, word)| lower.find(word)))?;
    let before = sql.get(..at)?;
    Some((before.matches('\n').count() + 1, before.rsplit('\n').next().unwrap_or(before).chars().count() + 1))
}

/// What the engine could not read, in our words where the nearest name helps.
pub(super) fn misread(error: &DataFusionError, sql: &str, warehouse: &Warehouse) -> QueryError {
    let text = error.strip_backtrace();
    let names = |what: &str| -> Option<String> {
        text.split(what).nth(1).map(|rest| rest.trim_start_matches([' ', '\'', '"', '`', ':']).to_owned())
    };
    if let Some(wanted) = text.split("No field named").nth(1).map(last_name) {
        let known: Vec<String> = warehouse
            .sources()
            .filter(|source| sql.to_lowercase().contains(&source.dataset.name.to_lowercase()))
            .flat_map(|source| source.schema.fields().iter().map(|field| field.name().clone()).collect::<Vec<_>>())
            .collect();
        let asked =
            || warehouse.sources().filter(|source| sql.to_lowercase().contains(&source.dataset.name.to_lowercase()));
        let untyped = asked().find(|source| source.untyped.contains(&wanted)).and_then(|own| own.untyped_hint(&wanted));
        let hint = match (nearest(&wanted, known.iter().map(String::as_str)), untyped) {
            (_, Some(untyped)) => untyped,
            (Some(near), None) => format!("did you mean `{near}`?"),
            (None, None) => match in_double_quotes(sql, &wanted) {
                Some(text) => format!("double quotes name a column; text stands in single quotes: '{text}'"),
                None => format!("there are: {}", known.join(", ")),
            },
        };
        return placed(QueryError::asked(format!("there is no column `{wanted}`"), hint), sql);
    }
    if let (Some(start), true) = (text.find("table '"), text.contains("not found")) {
        let wanted: String = text[start + 7..].chars().take_while(|&c| c != '\'').collect();
        let wanted = wanted.rsplit('.').next().unwrap_or_default().to_owned();
        let known: Vec<&str> = warehouse.declaration().datasets.keys().map(String::as_str).collect();
        let hint = match nearest(&wanted, known.iter().copied()) {
            Some(near) => format!("did you mean `{near}`?"),
            None => format!("declared are: {}", known.join(", ")),
        };
        return placed(QueryError::asked(format!("there is no table `{wanted}`"), hint), sql);
    }
    // The engine lists everything that it would have taken; what it got is enough.
    if let Some(rest) = names("No function matches the given name and argument types") {
        let got: String = rest.chars().take_while(|&c| c != '\'').collect();
        let (function, types) = got.split_once('(').unwrap_or((&got, ""));
        let sentence = format!("`{function}` does not take {}", types.trim_end_matches(')'));
        return placed(QueryError::asked(sentence, "cast it, or ask for something else of it, such as COUNT"), sql);
    }
    if let Some(rest) = names("Invalid function") {
        let function: String = rest.chars().take_while(|&c| c != '\'').collect();
        let instead = match function.as_str() {
            "quantile" | "percentile" | "percentile_disc" => Some("APPROX_PERCENTILE_CONT(x, 0.9)"),
            "mode" => Some("SELECT x, COUNT(*) FROM t GROUP BY x ORDER BY 2 DESC LIMIT 1"),
            _ => None,
        };
        if let Some(instead) = instead {
            return placed(
                QueryError::asked(format!("there is no function `{function}`"), format!("ask for {instead}")),
                sql,
            );
        }
    }
    let hint = swapped(sql).map_or_else(
        || "check the spelling of the question".to_owned(),
        |(word, keyword)| format!("did you mean {keyword} where {word} stands?"),
    );
    let text = text.trim_start_matches("SQL error: ").trim_start_matches("Error during planning: ").to_owned();
    QueryError::asked(text, hint)
}

/// The last part of a name that the engine wrote, without its quotes: of `orders."Unit Price"` the column.
fn last_name(written: &str) -> String {
    let (mut last, mut rest) = ("", written.trim_start_matches([' ', ':', '\'', '`']));
    loop {
        let after = if let Some(quoted) = rest.strip_prefix('"') {
            let (name, after) = quoted.split_once('"').unwrap_or((quoted, ""));
            last = name;
            after
        } else {
            let end = rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len());
            if end == 0 {
                return last.to_owned();
            }
            last = &rest[..end];
            &rest[end..]
        };
        match after.strip_prefix('.') {
            Some(more) => rest = more,
            None => return last.to_owned(),
        }
    }
}

/// What stands in double quotes and begins so.
fn in_double_quotes<'a>(sql: &'a str, begins: &str) -> Option<&'a str> {
    let mut quoted = sql.split('"').skip(1).step_by(2);
    quoted.find(|quoted| !begins.is_empty() && quoted.starts_with(begins))
}

/// A word that has the letters of a keyword which the question lacks, in another order: FORM for FROM.
fn swapped(sql: &str) -> Option<(String, &'static str)> {
    let words = || sql.split(|c: char| !c.is_alphanumeric() && c != '_').map(str::to_ascii_uppercase);
    let letters = |word: &str| {
        let mut letters: Vec<char> = word.chars().collect();
        letters.sort_unstable();
        letters
    };
    let keywords = ["SELECT", "FROM", "WHERE", "GROUP", "HAVING"].into_iter();
    let mut lacking = keywords.filter(|keyword| words().all(|word| word != *keyword));
    lacking.find_map(|keyword| words().find(|word| letters(word) == letters(keyword)).map(|word| (word, keyword)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_found_where_it_stands_as_a_word() {
        assert_eq!(place_of("there is no column `n`", "SELECT COUNT(n) FROM t"), Some((1, 14)));
        assert_eq!(place_of("`visits.day` is private", "SELECT\n  daytime, \"Day\" FROM t"), Some((2, 13)));
        assert_eq!(place_of("`sum(x)` is wrong", "SELECT 'İ', SUM(x) FROM t"), Some((1, 13)));
        assert_eq!(place_of("there is no column `day`", "SELECT today FROM t"), None);
    }

    #[test]
    fn a_name_is_read_with_its_spaces() {
        for (written, name) in [
            (" \"Ship Countri\". Did you mean 'x'?", "Ship Countri"),
            (" orders.\"Unit Prise\".", "Unit Prise"),
            (" visits.shop. Valid fields are visits.site", "shop"),
            (" shop. Did you mean", "shop"),
            (" \"Paid?\"", "Paid?"),
        ] {
            assert_eq!(last_name(written), name, "{written}");
        }
    }

    #[test]
    fn keywords_with_swapped_letters_are_found() {
        assert_eq!(swapped("SELECT COUNT(*) FORM visits"), Some(("FORM".to_owned(), "FROM")));
        assert_eq!(swapped("slecet form FROM t"), Some(("SLECET".to_owned(), "SELECT")));
        assert_eq!(swapped("SELECT form FROM forms"), None);
    }

    #[test]
    fn text_in_double_quotes_is_found_by_its_beginning() {
        assert_eq!(in_double_quotes("WHERE shop = \"new york\" AND 'a' < b", "new"), Some("new york"));
        assert_eq!(in_double_quotes("WHERE shop = 'new york'", "new"), None);
    }
}
