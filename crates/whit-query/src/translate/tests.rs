use super::*;

#[test]
fn types_and_constants_are_as_people_write_them() {
    for (engine, ours) in [
        ("count(Int64(1)) AS n", "COUNT(*) AS n"),
        ("sum(t.x) * Int64(2)", "sum(t.x) * 2"),
        ("Utf8 = Boolean", "text = true or false"),
        ("lower(t.a) = Utf8(\"b c\")", "lower(t.a) = 'b c'"),
        ("Timestamp(ns) - Int64", "a time - a whole number"),
        ("Interval(MonthDayNano), Decimal128(10, 2)", "a span of time, a number"),
        ("Struct(\"a\": Int64)", "a structure"),
    ] {
        assert_eq!(plain(engine), ours);
    }
}

#[test]
fn what_was_written_for_programmers_is_not_shown() {
    for text in [
        "This feature is not implemented: Unsupported thing Table { name: ObjectName([]) }",
        "Internal error: LogicalPlan::Filter is odd",
        "",
    ] {
        assert_eq!(in_our_words(text).sentence, "this way of asking is not understood here");
    }
    let rule = "Optimizer rule 'eliminate_limit' failed\ncaused by\nError during planning: LIMIT must be >= 0, '-1' was provided";
    assert_eq!(in_our_words(rule).sentence, "LIMIT and OFFSET are whole numbers, from 0 on");
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
fn names_stand_in_quotes_where_they_need_them() {
    assert_eq!(as_name("seconds"), "seconds");
    assert_eq!(as_name("Ship Country"), "\"Ship Country\"");
    assert_eq!(as_name("Paid?"), "\"Paid?\"");
    assert_eq!(as_name("2nd"), "\"2nd\"");
}
