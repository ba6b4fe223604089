//! What is wrong with a question, and where in it.

use super::aggregate;
use crate::error::{QueryError, own_words};
use crate::evaluate::allow;
use crate::evaluate::words::one_of;
use crate::source::Warehouse;
use crate::translate::{as_name, in_our_words, last_name, plain};
use datafusion::common::DataFusionError;
use whit_core::declare::nearest;

/// Where in the question the thing stands that an error names in backticks.
pub(super) fn placed(mut error: QueryError, sql: &str) -> QueryError {
    error.sentence = with_sql_types(&error.sentence);
    error.hint = error.hint.map(|hint| with_sql_types(&hint));
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
        // A sign stands everywhere: only a word says where.
        word.contains(char::is_alphanumeric).then(|| word_in(&lower, &word)).flatten()
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
    if let Some(own) = own_words(error) {
        return own;
    }
    let text = error.strip_backtrace();
    let behind = |what: &str| -> Option<String> {
        let (_, rest) = text.split_once(what)?;
        Some(rest.trim_start_matches([' ', '\'', '"', '`', ':']).chars().take_while(|&c| c != '\'').collect())
    };
    let said = if let Some((_, written)) = text.split_once("No field named") {
        no_column(&last_name(written), sql, warehouse)
    } else if let (Some(wanted), true) = (behind("table '"), text.contains("not found")) {
        let wanted = wanted.rsplit('.').next().unwrap_or_default();
        let known: Vec<&str> = warehouse.declaration().datasets.keys().map(String::as_str).collect();
        let hint = match nearest(wanted, known.iter().copied()) {
            Some(near) => format!("did you mean `{near}`?"),
            None => format!("declared are: {}", known.join(", ")),
        };
        QueryError::asked(format!("there is no table `{wanted}`"), hint)
    } else if let Some(got) = behind("No function matches the given name and argument types") {
        // The engine lists everything that it would have taken; what it got is enough.
        let (function, types) = got.split_once('(').unwrap_or((&got, ""));
        let types = types.strip_suffix(')').unwrap_or(types);
        if types.is_empty() {
            QueryError::asked(format!("`{function}` needs something in its parentheses"), "name a column there")
        } else {
            let sentence = format!("`{function}` does not take {}", plain(types));
            QueryError::asked(sentence, "cast it, or ask for something else of it, such as COUNT")
        }
    } else if let Some(function) = behind("Invalid function") {
        no_function(&function)
    } else {
        let said = in_our_words(&text);
        let swapped = swapped(sql).map(|(word, keyword)| format!("did you mean {keyword} where {word} stands?"));
        let hint = swapped.or_else(|| needs_quotes(sql, warehouse, |_| true)).or(said.hint).or_else(|| unclosed(sql));
        let hint = hint.unwrap_or_else(|| "check the spelling of the question".to_owned());
        let error = QueryError::asked(said.sentence, hint);
        // What the reader of SQL says has its place already.
        return if error.sentence.contains("(line ") { error } else { placed(error, sql) };
    };
    placed(said, sql)
}

/// A column that nobody has.
fn no_column(wanted: &str, sql: &str, warehouse: &Warehouse) -> QueryError {
    let asked =
        || warehouse.sources().filter(|source| sql.to_lowercase().contains(&source.dataset.name.to_lowercase()));
    let known: Vec<&str> =
        asked().flat_map(|source| source.schema.fields().iter().map(|field| field.name().as_str())).collect();
    let untyped = || asked().find(|source| source.untyped.iter().any(|own| own == wanted))?.untyped_hint(wanted);
    let of_time = TIMES.contains(&wanted).then(|| format!("a part of a time is text: date_part('{wanted}', …)"));
    let begins = |name: &str| name.to_lowercase().starts_with(&wanted.to_lowercase());
    let elsewhere = || {
        let owner = asked().find(|source| source.schema.fields().iter().any(|field| field.name() == wanted))?;
        let table = &owner.dataset.name;
        Some(format!(
            "`{wanted}` is a column of `{table}`: select it in the sub-query too, and write before it no table but that which FROM has"
        ))
    };
    let quoted = || {
        let text = in_double_quotes(sql, wanted)?;
        Some(format!("double quotes name a column; text stands in single quotes: '{text}'"))
    };
    let listed = || {
        if known.is_empty() {
            let tables: Vec<&str> = warehouse.declaration().datasets.keys().map(String::as_str).collect();
            return format!("say of which table, with FROM: {}", one_of(tables.into_iter()));
        }
        let compared = sql.split_whitespace().collect::<Vec<_>>().windows(2).any(|pair| {
            pair[0].ends_with(['=', '<', '>']) && pair[1].trim_end_matches([')', ';', ',']).eq_ignore_ascii_case(wanted)
        });
        let text = if compared { format!("; text stands in single quotes: '{wanted}'") } else { String::new() };
        format!("there are: {}{text}", known.join(", "))
    };
    let hint = untyped()
        .or_else(|| needs_quotes(sql, warehouse, begins))
        .or_else(elsewhere)
        .or_else(|| nearest(wanted, known.iter().copied()).map(|near| format!("did you mean `{near}`?")))
        .or(of_time)
        .or_else(quoted)
        .unwrap_or_else(listed);
    QueryError::asked(format!("there is no column `{wanted}`"), hint)
}

/// The parts of a time that people ask for.
const TIMES: &[&str] = &["year", "quarter", "month", "week", "day", "hour", "minute", "second", "dow", "doy"];

/// Types as SQL calls them, where an expression is cast to one.
pub(super) fn with_sql_types(text: &str) -> String {
    const TYPES: &[(&str, &str)] = &[
        ("Date32", "DATE"),
        ("Date64", "DATE"),
        ("Utf8View", "VARCHAR"),
        ("LargeUtf8", "VARCHAR"),
        ("Utf8", "VARCHAR"),
        ("Float64", "DOUBLE"),
        ("Float32", "REAL"),
        ("Int64", "BIGINT"),
        ("Int32", "INT"),
        ("Int16", "SMALLINT"),
        ("Int8", "TINYINT"),
        ("Boolean", "BOOLEAN"),
        ("Decimal128", "DECIMAL"),
        ("Decimal256", "DECIMAL"),
    ];
    let mut text = text.to_owned();
    for (engine, ours) in TYPES {
        for end in [')', '('] {
            text = text.replace(&format!(" AS {engine}{end}"), &format!(" AS {ours}{end}"));
        }
    }
    // A time has its unit in parentheses, and its zone.
    while let Some(at) = text.find(" AS Timestamp(") {
        let Some(end) = text[at..].find(')') else { break };
        text.replace_range(at..=at + end, " AS TIMESTAMP");
    }
    text
}

/// A function that nobody has: what does the same, or one that is spelled nearly so, or else which aggregates there are.
fn no_function(function: &str) -> QueryError {
    let instead = match function {
        "quantile" | "percentile" | "percentile_disc" => Some("APPROX_PERCENTILE_CONT(x, 0.9)".to_owned()),
        "mode" => Some("SELECT x, COUNT(*) FROM t GROUP BY x ORDER BY 2 DESC LIMIT 1".to_owned()),
        "dayofweek" | "weekday" => Some("EXTRACT(dow FROM x) or date_part('dow', x)".to_owned()),
        "dayofyear" => Some("EXTRACT(doy FROM x) or date_part('doy', x)".to_owned()),
        time if TIMES.contains(&time) => Some(format!("EXTRACT({time} FROM x) or date_part('{time}', x)")),
        "strftime" | "date_format" | "format_date" => Some("to_char(x, '%Y-%m')".to_owned()),
        "datediff" | "date_diff" | "timestampdiff" => Some("a difference: a - b".to_owned()),
        "if" | "iif" | "iff" => Some("CASE WHEN condition THEN a ELSE b END".to_owned()),
        "isnull" => Some("x IS NULL".to_owned()),
        "len" => Some("character_length(x)".to_owned()),
        "variance" | "var_sample" => Some("VAR(x)".to_owned()),
        "stdev" | "stddev_sample" | "std" => Some("STDDEV(x)".to_owned()),
        "covar" | "covariance" => Some("COVAR_SAMP(y, x)".to_owned()),
        "string_agg" | "listagg" | "group_concat" => Some("COUNT(*) by that text, with GROUP BY".to_owned()),
        "age" => Some("a difference: DATE '2024-12-31' - x".to_owned()),
        "regexp_extract" | "regexp_substr" => Some("regexp_replace(x, '^.*(pattern).*$', '\\1')".to_owned()),
        "regexp_matches" | "rlike" => Some("regexp_like(x, 'pattern')".to_owned()),
        "md5" | "sha256" | "hash" | "crc32" => Some("the text itself: it is compared as quickly".to_owned()),
        "instr" | "charindex" | "locate" => Some("strpos(x, 'part')".to_owned()),
        "ifnull" => Some("coalesce(x, y)".to_owned()),
        "countif" | "count_if" => Some("COUNT(*) FILTER (WHERE condition)".to_owned()),
        "sumif" | "sum_if" => Some("SUM(x) FILTER (WHERE condition)".to_owned()),
        "histogram" | "ntile" => Some("bin(x, low, high, n) as a key of GROUP BY".to_owned()),
        _ => None,
    };
    let aggregates = aggregate::suggested();
    let near = || {
        let names = aggregates.iter().map(|name| name.to_lowercase()).chain(allow::names().map(str::to_owned));
        let names: Vec<String> = names.collect();
        match nearest(function, names.iter().map(String::as_str)) {
            Some(near) => format!("did you mean `{near}`?"),
            None => format!("aggregates are {}", one_of(aggregates.iter().copied())),
        }
    };
    let hint = instead.map_or_else(near, |instead| format!("ask for {instead}"));
    QueryError::asked(format!("there is no function `{function}`"), hint)
}

/// A declared column that has to stand in double quotes, and stands in the question without.
fn needs_quotes(sql: &str, warehouse: &Warehouse, fits: impl Fn(&str) -> bool) -> Option<String> {
    let bare: String = sql.split('"').step_by(2).collect::<Vec<_>>().join(" ").to_lowercase();
    let mut columns = warehouse.sources().flat_map(|source| source.schema.fields().iter()).map(|field| field.name());
    let name =
        columns.find(|name| as_name(name) != **name && fits(name) && word_in(&bare, &name.to_lowercase()).is_some())?;
    Some(format!("a name with spaces or signs stands in double quotes: {}", as_name(name)))
}

/// Parentheses that are not closed.
fn unclosed(sql: &str) -> Option<String> {
    let many = |sign: char| sql.matches(sign).count();
    (many('(') != many(')'))
        .then(|| format!("there are {} opening parentheses and {} closing ones", many('('), many(')')))
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
    fn keywords_with_swapped_letters_are_found() {
        assert_eq!(swapped("SELECT COUNT(*) FORM visits"), Some(("FORM".to_owned(), "FROM")));
        assert_eq!(swapped("slecet form FROM t"), Some(("SLECET".to_owned(), "SELECT")));
        assert_eq!(swapped("SELECT form FROM forms"), None);
    }

    #[test]
    fn types_of_casts_are_those_of_sql() {
        for (engine, ours) in [
            ("`day - CAST('2024-01-01' AS Date32)` is wide", "`day - CAST('2024-01-01' AS DATE)` is wide"),
            ("clamp(TRY_CAST(s AS Float64), low, high)", "clamp(TRY_CAST(s AS DOUBLE), low, high)"),
            (
                "CAST(CAST(a AS Timestamp(ns, \"UTC\")) AS Decimal128(10, 2))",
                "CAST(CAST(a AS TIMESTAMP) AS DECIMAL(10, 2))",
            ),
            ("COUNT(*) AS Utf8", "COUNT(*) AS Utf8"),
        ] {
            assert_eq!(with_sql_types(engine), ours);
        }
    }

    #[test]
    fn text_in_double_quotes_is_found_by_its_beginning() {
        assert_eq!(in_double_quotes("WHERE shop = \"new york\" AND 'a' < b", "new"), Some("new york"));
        assert_eq!(in_double_quotes("WHERE shop = 'new york'", "new"), None);
    }
}
