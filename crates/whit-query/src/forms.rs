//! How functions are called, for who called one otherwise.

/// Functions with all of their arguments, as a question writes them; what may be left out stands in brackets.
const FORMS: &[&str] = &[
    "approx_percentile_cont(x, 0.9)",
    "bin(x, low, high, n)",
    "btrim(text[, letters])",
    "ceil(x)",
    "clamp(x, low, high)",
    "concat_ws('|', a, b)",
    "corr(y, x)",
    "covar_pop(y, x)",
    "covar_samp(y, x)",
    "date_bin(INTERVAL '15 minutes', ts)",
    "date_part('hour', ts)",
    "date_trunc('day', ts)",
    "ends_with(text, 'end')",
    "floor(x)",
    "from_unixtime(seconds)",
    "left(text, n)",
    "levenshtein(text, 'other')",
    "log([base, ]x)",
    "lower(text)",
    "lpad(text, n[, filling])",
    "ltrim(text[, letters])",
    "make_date(year, month, day)",
    "nullif(x, y)",
    "nvl2(x, where_there, where_missing)",
    "power(x, y)",
    "regexp_like(text, 'pattern')",
    "regexp_replace(text, 'pattern', 'instead')",
    "regr_avgx(y, x)",
    "regr_avgy(y, x)",
    "regr_count(y, x)",
    "regr_intercept(y, x)",
    "regr_r2(y, x)",
    "regr_slope(y, x)",
    "regr_sxx(y, x)",
    "regr_sxy(y, x)",
    "regr_syy(y, x)",
    "repeat(text, n)",
    "replace(text, 'old', 'new')",
    "right(text, n)",
    "round(x[, digits])",
    "rpad(text, n[, filling])",
    "rtrim(text[, letters])",
    "split_part(text, ',', 1)",
    "sqrt(x)",
    "starts_with(text, 'beginning')",
    "strpos(text, 'part')",
    "substr(text, from[, length])",
    "to_char(ts, '%Y-%m')",
    "trunc(x[, digits])",
    "upper(text)",
    "width_bucket(x, low, high, n)",
];

/// Aggregates of numbers: of something else, they are asked otherwise.
const OF_NUMBERS: &[&str] = &[
    "approx_percentile_cont",
    "avg",
    "geomean",
    "max",
    "mean",
    "median",
    "min",
    "percentile_cont",
    "stddev",
    "stddev_pop",
    "stddev_samp",
    "sum",
    "var",
    "var_pop",
    "var_samp",
];

/// Why a call cannot be had, and what to write: the function, and the types of what it was given, in words and with commas between them.
pub(crate) fn miscalled(function: &str, types: &str) -> (String, String) {
    let given = if types.is_empty() { 0 } else { types.split(", ").count() };
    let form = FORMS.iter().find(|form| form.split('(').next() == Some(function));
    let takes = form.filter(|form| !form.contains('[')).map(|form| form.matches(", ").count() + 1);
    let sentence = match takes {
        Some(takes) if takes != given => format!("`{function}` is given {}, and takes {takes}", arguments(given)),
        _ if given == 0 => format!("`{function}` needs something in its parentheses"),
        _ => format!("`{function}` does not take {types}"),
    };
    let of_numbers = OF_NUMBERS.contains(&function);
    let hint = match (form, types) {
        (Some(form), _) => format!("write {form}"),
        (None, "") => "name a column there".to_owned(),
        (None, "true or false") if of_numbers => {
            "count the rows where it is true: COUNT(*) FILTER (WHERE …)".to_owned()
        }
        (None, "a date" | "a time") if of_numbers => {
            "ask for a number of it, such as date_part('year', …), or COUNT it".to_owned()
        }
        (None, _) if of_numbers && given > 1 => "give it one thing alone".to_owned(),
        (None, _) if of_numbers => "cast it, or ask for something else of it, such as COUNT".to_owned(),
        (None, _) => "CAST what it is given to another type, or give it something else".to_owned(),
    };
    (sentence, hint)
}

fn arguments(many: usize) -> String {
    match many {
        0 => "nothing".to_owned(),
        1 => "1 argument".to_owned(),
        many => format!("{many} arguments"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_with_something_missing_is_told_how_it_is_written() {
        for (function, types, sentence, hint) in [
            ("corr", "a whole number", "`corr` is given 1 argument, and takes 2", "write corr(y, x)"),
            ("corr", "text, text", "`corr` does not take text, text", "write corr(y, x)"),
            ("clamp", "", "`clamp` is given nothing, and takes 3", "write clamp(x, low, high)"),
            ("substr", "text", "`substr` does not take text", "write substr(text, from[, length])"),
            ("avg", "", "`avg` needs something in its parentheses", "name a column there"),
            ("sum", "true or false", "`sum` does not take true or false", "FILTER (WHERE …)"),
            ("sum", "a date", "`sum` does not take a date", "date_part('year'"),
            ("sum", "text", "`sum` does not take text", "cast it"),
            ("chr", "text", "`chr` does not take text", "CAST what it is given"),
        ] {
            let (said, next) = miscalled(function, types);
            assert_eq!(said, sentence);
            assert!(next.contains(hint), "{function}: {next}");
        }
    }

    #[test]
    fn forms_are_in_order_and_closed() {
        assert!(FORMS.is_sorted() && FORMS.iter().all(|form| form.ends_with(')') && form.contains('(')));
    }
}
