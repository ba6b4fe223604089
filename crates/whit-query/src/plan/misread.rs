//! What is wrong with a question, and where in it.

use super::aggregate;
use crate::error::{QueryError, own_words};
use crate::evaluate::allow;
use crate::evaluate::words::one_of;
use crate::forms::miscalled;
use crate::source::Warehouse;
use crate::translate::{as_name, in_our_words, last_name, plain, with_sql_types};
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
        no_column(written, sql, warehouse)
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
        let (sentence, hint) = miscalled(function, &plain(types.strip_suffix(')').unwrap_or(types)));
        QueryError::asked(sentence, hint)
    } else if let Some(function) = behind("Invalid function") {
        no_function(&function)
    } else {
        let said = in_our_words(&text);
        let swapped = swapped(sql).map(|(word, keyword)| format!("did you mean {keyword} where {word} stands?"));
        let pair = said.sentence.contains("neither in GROUP BY") && sql.to_uppercase().contains("GROUP BY (");
        let pair = pair.then(|| "leave out the parentheses behind GROUP BY: they make one key of several".to_owned());
        let hint = pair.or(swapped).or_else(|| needs_quotes(sql, warehouse, |_| true)).or(said.hint);
        let hint = hint.or_else(|| unclosed(sql)).or_else(|| out_of_order(sql, &said.sentence));
        let hint = hint.unwrap_or_else(|| "check the spelling of the question".to_owned());
        let error = QueryError::asked(said.sentence, hint);
        // What the reader of SQL says has its place already.
        return if error.sentence.contains("(line ") { error } else { placed(error, sql) };
    };
    placed(said, sql)
}

/// A column that nobody has.
fn no_column(written: &str, sql: &str, warehouse: &Warehouse) -> QueryError {
    let wanted = &*last_name(written);
    let before = |keyword: &str| {
        let words: Vec<String> = words_of(sql).collect();
        words.windows(2).any(|pair| pair[0] == keyword && pair[1].eq_ignore_ascii_case(wanted))
    };
    if before("LIMIT") || before("OFFSET") {
        return QueryError::asked("LIMIT and OFFSET are whole numbers, from 0 on", "write such a number");
    }
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
        let qualifier = written.trim_start_matches([' ', ':', '\'', '`', '"']);
        let qualifier: String = qualifier.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
        if qualifier != wanted && qualifier != *table {
            return Some(format!(
                "`{wanted}` is a column of `{table}`, and nothing that has it is called `{qualifier}` here: write `{wanted}` alone, or name the table so, with FROM {table} AS {qualifier}"
            ));
        }
        if let Some(sign) = dangling(sql) {
            return Some(format!("something is missing between {sign} and FROM"));
        }
        Some(format!(
            "`{wanted}` is a column of `{table}`: select it in the sub-query too, and write before it no table but that which FROM has"
        ))
    };
    let named = || {
        let words: Vec<String> = words_of(sql).collect();
        let named = words.windows(2).any(|pair| pair[0] == "AS" && pair[1].eq_ignore_ascii_case(wanted));
        named.then(|| {
            format!("`{wanted}` is what SELECT calls a result, and WHERE picks rows before there is one: put the condition into HAVING, or ask of a sub-query in FROM")
        })
    };
    let clock = || {
        let clock = ["now", "today", "current_date", "current_timestamp"].iter().find(|clock| **clock == wanted)?;
        Some(format!("the time of asking is {clock}()"))
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
        .or_else(named)
        .or_else(elsewhere)
        .or_else(|| nearest(wanted, known.iter().copied()).map(|near| format!("did you mean `{near}`?")))
        .or(of_time)
        .or_else(clock)
        .or_else(quoted)
        .unwrap_or_else(listed);
    QueryError::asked(format!("there is no column `{wanted}`"), hint)
}

/// The parts of a time that people ask for.
const TIMES: &[&str] = &["year", "quarter", "month", "week", "day", "hour", "minute", "second", "dow", "doy"];

/// A function that nobody has: what does the same, or one that is spelled nearly so, or else which aggregates there are.
fn no_function(function: &str) -> QueryError {
    let instead = match function {
        "quantile" | "percentile" | "percentile_disc" | "percentile_approx" | "approx_quantile"
        | "approx_quantiles" => Some("APPROX_PERCENTILE_CONT(x, 0.9)".to_owned()),
        "kurtosis" | "skewness" | "skew" | "kurtosis_pop" => {
            Some("VAR(x), STDDEV(x) and quantiles: higher moments have no private form".to_owned())
        }
        "first" | "last" | "any" | "arbitrary" | "some" => Some("MIN(x), MAX(x) or MEDIAN(x) of a number".to_owned()),
        "list" | "collect_list" | "collect_set" | "array_concat_agg" => {
            Some("COUNT(*) by it, with GROUP BY".to_owned())
        }
        "product" => Some("exp(SUM(clamp(ln(x), low, high)))".to_owned()),
        "sumsq" | "sum_of_squares" => Some("SUM(x * x)".to_owned()),
        "date_sub" | "subdate" => Some("x - INTERVAL '7 days'".to_owned()),
        "date_add" | "dateadd" | "adddate" | "timestampadd" => Some("x + INTERVAL '7 days'".to_owned()),
        "lag" | "lead" | "rank" | "dense_rank" | "percent_rank" | "cume_dist" | "row_number" | "first_value"
        | "nth_value" => Some(format!(
            "{}(…) OVER (PARTITION BY the user ORDER BY a column) in a sub-query of FROM, and aggregate what it gives",
            function.to_uppercase()
        )),
        "cast" | "try_cast" | "convert" | "to_number" | "toint64" | "int" | "float" | "safe_cast" => {
            Some("CAST(x AS INT), or AS DOUBLE".to_owned())
        }
        "date" | "to_day" | "todate" => Some("CAST(x AS DATE)".to_owned()),
        "datetime" | "timestamp" => Some("CAST(x AS TIMESTAMP)".to_owned()),
        "getdate" | "sysdate" | "curdate" => Some("now() or current_date".to_owned()),
        "unix_timestamp" | "epoch" => Some("date_part('epoch', x)".to_owned()),
        "uniq" | "uniqexact" | "approx_count_distinct" | "count_distinct" | "ndv" => {
            Some("COUNT(DISTINCT x)".to_owned())
        }
        "topk" | "top_k" | "approx_top_k" | "approx_top_count" => {
            Some("SELECT x, COUNT(*) FROM t GROUP BY x ORDER BY 2 DESC LIMIT 10".to_owned())
        }
        "mod" => Some("x % y".to_owned()),
        "safe_divide" | "div0" | "try_divide" => Some("x / nullif(y, 0)".to_owned()),
        "zeroifnull" => Some("coalesce(x, 0)".to_owned()),
        "split" => Some("split_part(x, ',', 1)".to_owned()),
        "ucase" => Some("upper(x)".to_owned()),
        "lcase" => Some("lower(x)".to_owned()),
        "bucket" | "cut" | "qcut" => Some("bin(x, low, high, n) as a key of GROUP BY".to_owned()),
        json if json.contains("json") => Some("a column of its own, unpacked where the file is written".to_owned()),
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

/// The words of a question, in capital letters.
fn words_of(sql: &str) -> impl Iterator<Item = String> {
    sql.split(|c: char| !c.is_alphanumeric() && c != '_').filter(|word| !word.is_empty()).map(str::to_ascii_uppercase)
}

/// The sign before FROM behind which something is missing.
fn dangling(sql: &str) -> Option<char> {
    let lower = sql.to_ascii_lowercase();
    let before = lower[..word_in(&lower, "from")?].trim_end();
    let sign = before.chars().next_back().filter(|sign| "+-/%*|".contains(*sign))?;
    // SELECT * and t.* end with a sign, and mean all columns.
    let rest = before[..before.len() - 1].trim_end();
    (sign != '*' || rest.ends_with([')', '_']) || rest.ends_with(char::is_numeric)).then_some(sign)
}

/// Clauses in another order than SQL has them, or cut short; and what may be missing before a word that nobody expects.
fn out_of_order(sql: &str, sentence: &str) -> Option<String> {
    const ORDER: [&str; 7] = ["SELECT", "FROM", "WHERE", "GROUP", "HAVING", "ORDER", "LIMIT"];
    let words: Vec<String> = words_of(sql).collect();
    let cut = |word: &&str| {
        words.iter().enumerate().any(|(at, own)| own == word && words.get(at + 1).is_none_or(|next| next != "BY"))
    };
    if let Some(word) = ["GROUP", "ORDER"].iter().find(|word| cut(word) && words.iter().any(|own| own == **word)) {
        return Some(format!("write {word} BY and what it goes by"));
    }
    let single = words.iter().filter(|word| *word == "SELECT").count() == 1;
    let places = words.iter().filter_map(|word| ORDER.iter().position(|keyword| keyword == word));
    if single && !places.is_sorted() {
        return Some("clauses stand in this order: SELECT, FROM, WHERE, GROUP BY, HAVING, ORDER BY, LIMIT".to_owned());
    }
    sentence
        .starts_with("nothing is expected any more where `")
        .then(|| "is a comma or a sign missing before it?".to_owned())
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
    fn text_in_double_quotes_is_found_by_its_beginning() {
        assert_eq!(in_double_quotes("WHERE shop = \"new york\" AND 'a' < b", "new"), Some("new york"));
        assert_eq!(in_double_quotes("WHERE shop = 'new york'", "new"), None);
    }
}
