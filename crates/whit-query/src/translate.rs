//! What the engine says of a question, in our words: no type as the engine calls it, nothing that was written for its programmers.

use crate::forms::miscalled;
use datafusion::arrow::datatypes::DataType;

/// What people call a type.
pub(crate) fn in_words(data_type: &DataType) -> String {
    let bits = |wide: usize, what: &str| format!("{what} ({} bits)", 8 * wide);
    match data_type {
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => "text".to_owned(),
        DataType::Boolean => "true or false".to_owned(),
        DataType::Date32 | DataType::Date64 => "a date".to_owned(),
        DataType::Timestamp(..) => "a time".to_owned(),
        DataType::Time32(_) | DataType::Time64(_) => "a time of day".to_owned(),
        DataType::Interval(_) | DataType::Duration(_) => "a span of time".to_owned(),
        DataType::Dictionary(_, values) => in_words(values),
        DataType::List(_) | DataType::LargeList(_) | DataType::FixedSizeList(_, _) => "a list".to_owned(),
        DataType::Struct(_) => "a structure".to_owned(),
        DataType::Map(..) => "a map".to_owned(),
        DataType::Null => "always missing".to_owned(),
        DataType::Int64 => "a whole number".to_owned(),
        DataType::Float64 => "a number".to_owned(),
        DataType::Decimal32(digits, after)
        | DataType::Decimal64(digits, after)
        | DataType::Decimal128(digits, after)
        | DataType::Decimal256(digits, after) => format!("a number ({digits} digits, {after} behind the point)"),
        other if other.is_unsigned_integer() => bits(other.primitive_width().unwrap_or(8), "a whole number from 0 on"),
        other if other.is_integer() => bits(other.primitive_width().unwrap_or(8), "a whole number"),
        other if other.is_numeric() => bits(other.primitive_width().unwrap_or(8), "a number"),
        DataType::Binary | DataType::LargeBinary | DataType::BinaryView | DataType::FixedSizeBinary(_) => {
            "bytes".to_owned()
        }
        _ => "of a type that has no name here".to_owned(),
    }
}

/// A complaint of the engine in our words.
pub(crate) struct Said {
    /// What is wrong.
    pub(crate) sentence: String,
    /// The next step, where the complaint has one of its own.
    pub(crate) hint: Option<String>,
}

/// The same sentence without the kinds of errors before it, and with types as people call them. It says what the engine found wrong in a schema or a question.
pub(crate) fn in_our_words(text: &str) -> Said {
    let text = without_kinds(text);
    if let Some(said) = known(text) {
        return said;
    }
    let plain = plain(text.lines().next().unwrap_or_default()).trim_end_matches('.').to_owned();
    let foreign = [
        "{",
        "::",
        "ataFusion",
        "Error(",
        "Arrow",
        "Schema",
        "LogicalPlan",
        "UDF",
        "Unsupported",
        "not supported",
        "ExprPlanner",
        "Literal",
        "nested_expr",
        "sqltorel",
        "_expr",
        "coerce",
        "Cannot infer",
    ];
    if plain.is_empty() || foreign.iter().any(|word| plain.contains(word)) {
        let hint = "ask it with GROUP BY, joins, sub-queries in FROM and functions of one row".to_owned();
        return Said { sentence: "this way of asking is not understood here".to_owned(), hint: Some(hint) };
    }
    Said { sentence: plain, hint: None }
}

/// What stands behind the kinds of errors that an error went through.
fn without_kinds(mut text: &str) -> &str {
    const KINDS: &[&str] = &[
        "SQL error: ",
        "Error during planning: ",
        "This feature is not implemented: ",
        "Execution error: ",
        "Internal error: ",
        "Schema error: ",
        "Arrow error: ",
        "External error: ",
        "Parser error: ",
        "Cast error: ",
        "Compute error: ",
        "Invalid argument error: ",
        "Optimizer rule ",
        "type_coercion",
        "caused by",
    ];
    while let Some(rest) = KINDS.iter().find_map(|kind| text.strip_prefix(kind)) {
        // A rule is named, and the reason stands on a line of its own.
        let rest = match rest.split_once(" failed\n") {
            Some((_, reason)) if text.starts_with("Optimizer rule ") => reason,
            _ => rest,
        };
        text = rest.trim_start();
    }
    text.trim()
}

/// What stands between two marks.
fn between<'a>(text: &'a str, before: &str, after: &str) -> Option<&'a str> {
    let rest = &text[text.find(before)? + before.len()..];
    Some(&rest[..rest.find(after)?])
}

#[expect(clippy::unnecessary_wraps, reason = "each complaint is one line: `return said(…)`")]
fn said(sentence: String, hint: &str) -> Option<Said> {
    Some(Said { sentence, hint: Some(hint.to_owned()) })
}

/// Complaints that analysts meet.
fn known(text: &str) -> Option<Said> {
    of_names(text).or_else(|| of_types(text)).or_else(|| of_clauses(text)).or_else(|| of_ways(text))
}

/// Of names, and of what cannot be read at all.
fn of_names(text: &str) -> Option<Said> {
    if let Some(unread) = unread(text) {
        return Some(Said { sentence: unread, hint: None });
    }
    if let Some((_, name)) = text.split_once("No field named") {
        return Some(Said { sentence: format!("there is no column `{}`", last_name(name)), hint: None });
    }
    if text.contains("must be in GROUP BY or an aggregate function") {
        let clause = between(text, "Column in ", " must").unwrap_or("SELECT");
        let column = last_name(between(text, "column \"", "\" must").unwrap_or_default());
        return Some(Said {
            sentence: format!("`{column}` stands in {clause}, but neither in GROUP BY nor inside an aggregate"),
            hint: Some(format!("group by it (GROUP BY {0}), or aggregate it, such as COUNT({0})", as_name(&column))),
        });
    }
    None
}

/// Of types that do not go together.
fn of_types(text: &str) -> Option<Said> {
    if text.contains("Divide by zero") {
        return said("it divides by zero".to_owned(), "divide by something else");
    }
    if let Some(types) = text.split_once("Cannot infer common argument type for ").map(|(_, types)| types) {
        let types =
            plain(types.trim_start_matches("comparison operation ").trim_start_matches("logical boolean operation "));
        return said(
            format!("these two cannot be compared: {types}"),
            "compare things of one type, or CAST one of them",
        );
    }
    if let Some(types) = between(text, "There isn't a common type to coerce ", " in LIKE") {
        return said(
            format!("LIKE is for text, and here it stands between {}", plain(types)),
            "compare a column of text with a pattern in quotes",
        );
    }
    let computed = between(text, "Cannot coerce arithmetic expression ", " to valid types")
        .or_else(|| text.split_once("Cannot infer common type for bitwise operation ").map(|(_, types)| types));
    if let Some(types) = computed {
        let types = plain(types);
        let sign = types.split(' ').find(|word| matches!(*word, "+" | "-"));
        let hint = match (types.contains("a time") || types.contains("a date"), sign) {
            (true, Some(sign)) => format!("a span of time stands behind a time: … {sign} INTERVAL '7 days'"),
            _ => "CAST one of them to the other's type".to_owned(),
        };
        return said(format!("there is no arithmetic of these two: {types}"), &hint);
    }
    if let Some(call) = between(text, "No function matches the given name and argument types '", "'") {
        let (function, types) = call.split_once('(').unwrap_or((call, ""));
        let (sentence, hint) = miscalled(function, &plain(types.strip_suffix(')').unwrap_or(types)));
        return said(sentence, &hint);
    }
    if let Some((function, kind)) =
        text.strip_prefix("[return_type] ").and_then(|text| text.split_once(" not supported for "))
    {
        let (sentence, hint) =
            miscalled(&function.to_lowercase(), if kind.eq_ignore_ascii_case("null") { "" } else { kind });
        return said(sentence, &hint);
    }
    if let Some((from, to)) = between(text, "nsupported CAST from ", "\n")
        .or_else(|| text.split_once("nsupported CAST from ").map(|(_, types)| types))
        .or_else(|| text.split_once("nsupported TRY_CAST from ").map(|(_, types)| types))
        .and_then(|types| types.split_once(" to "))
    {
        return said(
            format!("{} cannot become {}", plain(from), plain(to)),
            "compare it instead, or make another type of it: text becomes anything that it can be read as",
        );
    }
    if text.to_lowercase().contains("invalid input syntax for type interval") {
        return said(
            "a span of time cannot be read".to_owned(),
            "write a number and a unit: INTERVAL '90 days', or INTERVAL '2' MONTH",
        );
    }
    if let Some(part) = between(text, "Date part '", "' not supported") {
        return said(
            format!("a time has no part '{part}'"),
            "name a part: year, quarter, month, week, day, dow, doy, hour, minute, second or epoch",
        );
    }
    if let Some(part) = between(text, "Unsupported date_trunc granularity: '", "'") {
        return said(
            format!("a time cannot be cut down to '{part}'"),
            "name one of: second, minute, hour, day, week, month, quarter or year; others by date_bin(INTERVAL '14 days', ts)",
        );
    }
    if text.contains("DATE_BIN stride must be non-zero") {
        return said("its bins have no width".to_owned(), "name a span above 0: date_bin(INTERVAL '1 hour', ts)");
    }
    if let Some(time) = between(text, "Error parsing timestamp from '", "'") {
        return said(format!("'{time}' is not a time"), "write it as TIMESTAMP '2024-12-31 23:59:00'");
    }
    if text.starts_with("Cannot get result type for temporal operation") {
        return said(
            "there is no such arithmetic of times".to_owned(),
            "add spans to times, such as ts + INTERVAL '1 day', or subtract two times",
        );
    }
    if let Some(what) = between(text, "non-boolean predicate '", "' returning ") {
        let kind = plain(text.rsplit(" returning ").next().unwrap_or_default());
        let what = plain(what.rsplit_once('.').map_or(what, |(_, name)| name));
        return said(
            format!("the condition `{what}` is {kind}, and a condition is true or false"),
            "compare it with something",
        );
    }
    if let Some(kind) = text.split_once("requires a boolean expression, got ").map(|(_, kind)| kind) {
        return said(
            format!("NOT stands before a condition, and what stands there is {}", plain(kind)),
            "compare it with something",
        );
    }
    if text.starts_with("Unary operator '-'") {
        return said("a minus stands before what is no number".to_owned(), "CAST it to a number");
    }
    None
}

/// Of what stands where it cannot.
fn of_clauses(text: &str) -> Option<Said> {
    if text.starts_with("Too many columns! The subquery should only return one column") {
        return said("a sub-query that is compared has several columns".to_owned(), "select one column in it");
    }
    if let Some(window) = between(text, "The window ", " is not defined") {
        return said(format!("no window is called `{window}` here"), "write what it is: OVER (PARTITION BY …)");
    }
    if let Some(name) = text.split_once("duplicate qualified field name ").map(|(_, name)| name) {
        let table = name.split('.').next().unwrap_or_default();
        return said(
            format!("two tables are called `{table}` here"),
            "give each a name of its own: FROM visits a JOIN visits b ON a.user_id = b.user_id",
        );
    }
    if text.starts_with("No SQL statements were provided") {
        return said("the question is empty".to_owned(), "write one, such as SELECT COUNT(*) FROM NAME");
    }
    if let Some(table) = text.strip_prefix("Invalid qualifier ") {
        return said(
            format!("no table is called `{}` here", last_name(table)),
            "write before a column the table that FROM names, or nothing",
        );
    }
    if let Some(place) = between(text, "Cannot find column with position ", " in SELECT") {
        let most = text.rsplit("1 to ").next().unwrap_or_default();
        return said(
            format!("GROUP BY {place} means the column at place {place} of SELECT, and there are {most}"),
            "group by the name of the column",
        );
    }
    if let Some(place) = between(text, "Order by column out of bounds, specified: ", ",") {
        let most = text.rsplit("max: ").next().unwrap_or_default();
        return said(
            format!("ORDER BY {place} means the column at place {place} of SELECT, and there are {most}"),
            "order by the name of the column",
        );
    }
    if text.contains("Aggregate functions are not allowed in the WHERE clause") {
        return said(
            "WHERE picks rows, before anything is aggregated".to_owned(),
            "put the condition on an aggregate into HAVING",
        );
    }
    if text.contains("Aggregate function calls cannot be nested") {
        return said(
            "an aggregate stands inside of another".to_owned(),
            "put the inner one into a sub-query in FROM, and aggregate its column",
        );
    }
    if let Some(kind) = text.split_once("Unsupported SQL type ").map(|(_, kind)| kind) {
        let kind = kind.split_whitespace().next().unwrap_or_default();
        return said(
            format!("there is no type {kind}"),
            "use INT, DOUBLE, DECIMAL, VARCHAR, BOOLEAN, DATE or TIMESTAMP",
        );
    }
    if let Some(column) =
        text.split_once("Ambiguous reference to unqualified field ").map(|(_, column)| last_name(column))
    {
        return said(
            format!("`{column}` is a column of several tables here"),
            "write before it which table is meant, with a dot between them",
        );
    }
    if let Some(function) = between(text, "table function '", "' not found") {
        return said(format!("there is no table function `{function}`"), "there are: hitters, histogram");
    }
    if text.contains("different number of columns") || text.contains("different number of fields") {
        return said(
            "the branches of UNION have different numbers of columns".to_owned(),
            "select as many columns in each of them",
        );
    }
    if text.contains("require unique expression names") {
        let name = between(text, " AS ", "\" at position")
            .or_else(|| between(text, "expression \"", "\" at"))
            .unwrap_or_default();
        let name = plain(name.rsplit(" AS ").next().unwrap_or_default());
        return said(format!("two columns would be called `{name}`"), "give one of them a name of its own with AS");
    }
    None
}

/// Of ways to ask that are not understood.
fn of_ways(text: &str) -> Option<Said> {
    if text.contains("only supports a single SQL statement") {
        return said("several questions stand here".to_owned(), "ask one question at a time");
    }
    if text.contains("Regular expression did not compile") || text.contains("regex parse error") {
        let why = text.lines().find_map(|line| line.trim().strip_prefix("error: ")).unwrap_or("it means nothing");
        return said(
            format!("a regular expression cannot be read: {why}"),
            "write a backslash before what is meant as it stands",
        );
    }
    if text.starts_with("Cannot access field") {
        return said(
            "a name stands behind a column that has no parts".to_owned(),
            "a dot stands between a table and its column",
        );
    }
    if text.contains("has no type information") && text.starts_with("variable") {
        return said("there are no variables here".to_owned(), "write the value itself");
    }
    if let Some(node) = text.strip_prefix("Unsupported ast node ") {
        let node = node.trim_start_matches("in sqltorel: ");
        let word: String = node.chars().take_while(char::is_ascii_alphanumeric).collect();
        if word == "RLike" {
            return said(
                "RLIKE is not understood here".to_owned(),
                "write regexp_like(x, 'pattern'), or x ~ 'pattern'",
            );
        }
        return said(
            format!("{} is not understood here", word.to_uppercase()),
            "ask it with GROUP BY, joins and sub-queries in FROM",
        );
    }
    if text.contains("LIMIT must be") || text.contains("Expected LIMIT to be") || text.contains("Expected OFFSET to be")
    {
        return said("LIMIT and OFFSET are whole numbers, from 0 on".to_owned(), "write such a number");
    }
    if text.starts_with("Unsupported compound identifier") {
        return said(
            "a name has too many parts".to_owned(),
            "a table is one name, and a column one behind a table and a dot",
        );
    }
    if text == "ANY in LIKE expression" {
        return said(
            "LIKE ANY is not understood here".to_owned(),
            "write one LIKE for each pattern, with OR between them",
        );
    }
    if ["TOP", "LATERAL VIEWS"].contains(&text) {
        return said(format!("{text} is not understood here"), "use LIMIT for the first rows, and sub-queries in FROM");
    }
    if text.starts_with("FETCH clause is not supported") {
        return said("FETCH is not understood here".to_owned(), "use LIMIT for the first rows");
    }
    if let Some(operator) = between(text, "Operator ", " is not yet supported") {
        return said(
            format!("there is no operator {operator} here"),
            "use comparisons, arithmetic, || and functions of one row",
        );
    }
    if text.starts_with("Invalid escape character in LIKE") {
        return said(
            "ESCAPE has more than one letter".to_owned(),
            "write one letter in quotes: LIKE '10!%' ESCAPE '!'",
        );
    }
    if text.starts_with("Invalid HexStringLiteral") {
        return said("what stands behind X is no bytes".to_owned(), "text stands in single quotes without a letter");
    }
    if text.starts_with("Unsupported Value") {
        return said(
            "a value is written in a way that is not understood here".to_owned(),
            "text stands in single quotes",
        );
    }
    None
}

/// Where and why the text of a question could not be read.
fn unread(text: &str) -> Option<String> {
    let inner = ["ParserError(\"", "TokenizerError(\""].iter().find_map(|kind| text.split_once(kind));
    let inner =
        inner.map(|(_, inner)| inner.rsplit_once("\")").map_or(inner, |(inner, _)| inner).replace("\\\"", "\""))?;
    let (why, place) = match inner.rsplit_once(" at Line: ") {
        Some((why, place)) => (why, format!(" (line {})", place.trim().replace(", Column: ", ", column "))),
        None => (inner.as_str(), String::new()),
    };
    let Some((wanted, found)) = why.strip_prefix("Expected: ").and_then(|why| why.rsplit_once(", found: ")) else {
        let why = if why.to_lowercase().contains("unterminated") || why.contains("close delimiter") {
            "what begins with a quote has no end"
        } else if why.contains("comment") {
            "a comment has no end"
        } else {
            "the question cannot be read"
        };
        return Some(format!("{why}{place}"));
    };
    let wanted = match wanted {
        "an SQL statement" => "a question".to_owned(),
        "identifier" => "a name".to_owned(),
        wanted if wanted.ends_with("after IS") => "NULL, TRUE or FALSE".to_owned(),
        wanted if wanted.contains("query body") => "another question".to_owned(),
        wanted if wanted.contains(' ') => wanted.to_owned(),
        sign => format!("`{sign}`"),
    };
    Some(match (wanted.as_str(), found) {
        (wanted, "EOF") => format!("the question ends where {wanted} is expected"),
        ("end of statement", found) => format!("nothing is expected any more where `{found}` stands{place}"),
        (wanted, found) => format!("{wanted} is expected where `{found}` stands{place}"),
    })
}

/// Text of the engine with types and constants as people write them: `count(Int64(1))` is `COUNT(*)`, `Utf8("a")` is `'a'` and `Int64` a whole number.
pub(crate) fn plain(text: &str) -> String {
    let text = text.replace("count(Int64(1))", "COUNT(*)");
    let mut plain = String::new();
    let mut rest = text.as_str();
    while let Some(start) = rest.find(|c: char| c.is_ascii_alphanumeric() || c == '_') {
        plain.push_str(&rest[..start]);
        rest = &rest[start..];
        let end = rest.find(|c: char| !(c.is_ascii_alphanumeric() || c == '_')).unwrap_or(rest.len());
        let (word, after) = rest.split_at(end);
        let inside = parenthesised(after);
        let taken = inside.map_or(0, |inside| inside.len() + 2);
        match (engine_type(word), inside) {
            // A constant stands in the parentheses of its type.
            (Some(kind), Some(value)) if kind.holds_value => {
                plain.push_str(&value.replace('"', "'"));
                rest = &after[taken..];
            }
            (Some(kind), _) => {
                plain.push_str(kind.words);
                rest = &after[if kind.holds_value { 0 } else { taken }..];
            }
            (None, _) => {
                plain.push_str(word);
                rest = after;
            }
        }
    }
    plain.push_str(rest);
    plain
}

/// Types as SQL calls them, where an expression is cast to one.
pub(crate) fn with_sql_types(text: &str) -> String {
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
    for (engine, ours) in [(" AS Timestamp(", " AS TIMESTAMP"), (" AS Interval(", " AS INTERVAL")] {
        while let Some(at) = text.find(engine) {
            let Some(end) = text[at..].find(')') else { break };
            text.replace_range(at..=at + end, ours);
        }
    }
    text
}

/// What stands in the parentheses that a text begins with.
fn parenthesised(text: &str) -> Option<&str> {
    let inside = text.strip_prefix('(')?;
    let mut depth = 1;
    for (at, c) in inside.char_indices() {
        match c {
            '(' => depth += 1,
            ')' => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return Some(&inside[..at]);
        }
    }
    None
}

/// A type of the engine.
struct EngineType {
    words: &'static str,
    /// Whether what stands in parentheses behind it is a constant, and no part of the type.
    holds_value: bool,
}

fn engine_type(word: &str) -> Option<EngineType> {
    let (words, holds_value) = match word {
        "Utf8" | "LargeUtf8" | "Utf8View" => ("text", true),
        "Boolean" => ("true or false", true),
        "Int8" | "Int16" | "Int32" | "Int64" | "UInt8" | "UInt16" | "UInt32" | "UInt64" => ("a whole number", true),
        "Float16" | "Float32" | "Float64" => ("a number", true),
        "Date32" | "Date64" => ("a date", true),
        "Decimal32" | "Decimal64" | "Decimal128" | "Decimal256" => ("a number", false),
        "Timestamp" | "TimestampNanosecond" | "TimestampMicrosecond" | "TimestampMillisecond" | "TimestampSecond" => {
            ("a time", false)
        }
        "Time32" | "Time64" => ("a time of day", false),
        "Interval" | "Duration" | "IntervalMonthDayNano" | "IntervalDayTime" | "IntervalYearMonth" => {
            ("a span of time", false)
        }
        "List" | "LargeList" | "FixedSizeList" => ("a list", false),
        "Struct" => ("a structure", false),
        "Map" => ("a map", false),
        "Null" => ("NULL", false),
        "Binary" | "LargeBinary" | "BinaryView" | "FixedSizeBinary" => ("bytes", false),
        "Dictionary" => ("text", false),
        _ => return None,
    };
    Some(EngineType { words, holds_value })
}

/// The last part of a name that the engine wrote, without its quotes: of `orders."Unit Price"` the column.
pub(crate) fn last_name(written: &str) -> String {
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

/// A name as a question writes it: in double quotes where it needs them.
pub(crate) fn as_name(name: &str) -> String {
    let mut letters = name.chars();
    let begins = letters.next().is_some_and(|c| c.is_alphabetic() || c == '_');
    let plain = begins && letters.all(|c| c.is_alphanumeric() || c == '_');
    if plain { name.to_owned() } else { format!("\"{}\"", name.replace('"', "\"\"")) }
}

#[cfg(test)]
mod tests;
